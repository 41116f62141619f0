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
from .profiler import (ProfilerAction, ProfilerActivity, profile, schedule, supported_activities, tensorboard_trace_handler)
from .ranges import DeviceType, record_function

__all__ = ["DeviceType", "ProfilerAction", "ProfilerActivity", "profile", "record_function", "schedule", "supported_activities",
           "tensorboard_trace_handler", "kineto_available"]


def kineto_available():
    """False: the trace is clnn's own; PyTorch's question about its tracing library."""
    return False

