"""Anomaly detection: backward stops at the first NaN and shows where the forward operator was called."""
from __future__ import annotations

import warnings

from .._tensor.grad_mode import state


class set_detect_anomaly:
    """Switch anomaly detection on or off, as a function or for the length of a ``with`` block.

    Args:
        mode: on or off.
        check_nan: also look for NaN in every gradient (waits for the device at each operator).

    Example:
        >>> with clnn.autograd.set_detect_anomaly(True):
        ...     print(clnn.is_anomaly_enabled())
        True
    """

    def __init__(self, mode: bool, check_nan: bool = True):
        self.before = state.anomaly, state.anomaly_check
        state.anomaly, state.anomaly_check = bool(mode), check_nan

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        state.anomaly, state.anomaly_check = self.before


class detect_anomaly:
    """Within the block, operators remember their call stack and backward raises at the first NaN.

    Example:
        >>> x = clnn.tensor(-1.0, requires_grad=True)
        >>> with clnn.autograd.detect_anomaly():
        ...     try:
        ...         x.sqrt().backward()
        ...     except RuntimeError as exc:
        ...         print(str(exc).splitlines()[0])
        Function 'SqrtBackward0' returned nan values in its 0th output.
    """

    def __init__(self, check_nan: bool = True):
        self.check_nan = check_nan
        warnings.warn("Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging.",
                      UserWarning, stacklevel=2)

    def __enter__(self):
        self.before = state.anomaly, state.anomaly_check
        state.anomaly, state.anomaly_check = True, self.check_nan

    def __exit__(self, *exc):
        state.anomaly, state.anomaly_check = self.before


def is_anomaly_enabled() -> bool:
    """Whether anomaly detection is on."""
    return state.anomaly


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly detection looks for NaN."""
    return state.anomaly_check
