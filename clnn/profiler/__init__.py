"""Where the time of a program goes: operators, kernels, modules, on the host and on the device.

Example::

    with clnn.profiler.profile(record_shapes=True) as prof:
        with clnn.profiler.record_function("train step"):
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
    print(prof.key_averages().table(sort_by="self_device_time_total", row_limit=10))
    print(prof.kernels().table())            # each kernel, its operator and module, and how far it is from the device's best
    print(prof.modules().table())
    prof.export_chrome_trace("trace.json")   # for chrome://tracing or ui.perfetto.dev

Nothing of this is in the way of a program that is not being profiled: a profile replaces the engine's functions by timed ones
while it runs.
"""
import contextlib

from .averages import Rows as EventList
from .profiler import (ProfilerAction, ProfilerActivity, profile, schedule, supported_activities, tensorboard_trace_handler)
from .ranges import DeviceType, record_function

__all__ = ["DeviceType", "EventList", "ProfilerAction", "ProfilerActivity", "profile", "record_function", "schedule", "supported_activities",
           "tensorboard_trace_handler", "kineto_available"]


class emit_nvtx(contextlib.nullcontext):
    """A block that changes nothing: the marks would be for a tool of another vendor's GPUs."""

    def __init__(self, enabled=True, record_shapes=False):
        super().__init__()


emit_itt = emit_nvtx


def kineto_available():
    """True: profiles with schedules, traces and events of the device are there, though the library that PyTorch asks for is not."""
    return True
