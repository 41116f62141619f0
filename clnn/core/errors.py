"""The exceptions that clnn raises for reasons of its own (everything else is TypeError, ValueError, IndexError...)."""
from __future__ import annotations

import re


class DeviceError(RuntimeError):
    """A device is missing, unknown, unusable, or used in a process where it cannot work.

    Example:
        >>> try:
        ...     clnn.ones(1, device="nowhere")
        ... except clnn.DeviceError as error:
        ...     print(str(error).split(";")[0])
        no OpenCL device 'nowhere' here
    """


class AcceleratorError(RuntimeError):
    """What PyTorch raises where a driver reports an error; clnn's are :class:`LaunchError` and :class:`DeviceError`."""


class OutOfMemoryError(RuntimeError):
    """A device had no room for an allocation, even after the memory pool was freed and the request repeated."""


class KernelBuildError(RuntimeError):
    """A kernel did not render or build. The text shows the template, its parameters and the numbered lines around the fault."""


class LaunchError(RuntimeError):
    """A driver refused to run a kernel. The text names the kernel, its sizes and the driver's code."""


class IntegerDivisionError(RuntimeError, ZeroDivisionError):
    """A kernel divided an integer by zero; both of its bases catch it (PyTorch raises RuntimeError, Python ZeroDivisionError)."""


class _LinAlgError(RuntimeError):             # PyTorch's name, which tracebacks show
    """A matrix has no inverse or no factorisation of the kind asked for."""


LinAlgError = _LinAlgError


def overwritten(value, now, then, node=None, nr=0):
    """``value``, output ``nr`` of ``node``, was kept for backward at version ``then`` and has been written to since."""
    name = node.name() if node is not None else ""
    name = re.sub(r"Backward0?(?=\d*$)", "", name)
    made = f", which is output {nr} of {name}," if name else ""
    return RuntimeError(f"one of the variables needed for gradient computation has been modified by an inplace operation: [{value.type()} {list(value.shape)}]"
                        f"{made} is at version {now}; expected version {then} instead. Hint: enable anomaly detection to find the operation that failed to "
                        "compute its gradient, with torch.autograd.set_detect_anomaly(True, check_nan=False).")
