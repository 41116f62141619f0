"""Window functions, as in ``torch.signal.windows``: weights that fade a stretch of a signal in and out.

All take the number of points ``M`` and ``sym``: True for a symmetric window, False for a periodic one (M points of a window of M + 1).
Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform", Proceedings of the IEEE 66, 1978.
"""
from __future__ import annotations

import numpy as np

from .._tensor.device import resolve
from .._tensor.interop import from_array
from ..core import dtype as dt
from ..core.layout import strided
from ..core.public import name_functions
from ..ops.creation import _done

__all__ = ["bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann", "kaiser", "nuttall"]


def _window(formula):
    """A window from ``formula(n, N, ...)``: its values at the points ``n``, 0 .. N, as float64."""
    def window(M, *args, sym=True, dtype=None, layout=None, device=None, requires_grad=False, **kwargs):
        if layout not in (None, strided):
            raise ValueError(f"{formula.__name__} is implemented for strided tensors only, got: {layout}")
        if M < 0:
            raise ValueError(f"{formula.__name__} requires non-negative window length, got M={M}")
        row = dt.as_dtype(dtype) or dt._default_float
        if row not in (dt.float32, dt.float64):
            raise ValueError(f"{formula.__name__} expects float32 or float64 dtypes, got: {row}")
        last = M - 1 if sym else M
        values = formula(np.arange(M, dtype=np.float64), last, *args, **kwargs) if M > 1 else np.ones(M)
        return _done(from_array(values, resolve(device), row), requires_grad)
    window.__name__, window.__doc__ = formula.__name__, formula.__doc__
    return window


def _cosines(n, last, weights):
    return sum((-1) ** k * a * np.cos(2 * np.pi * k * n / last) for k, a in enumerate(weights))


@_window
def general_cosine(n, N, a):
    """``a[0] - a[1] cos(2 pi n / N) + a[2] cos(4 pi n / N) - ...``

    Example:
        >>> clnn.signal.windows.general_cosine(3, a=[0.5, 0.5])
        tensor([0., 1., 0.])
    """
    if not isinstance(a, (list, tuple)):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")
    return _cosines(n, N, a)


@_window
def general_hamming(n, N, *, alpha=0.54):
    """``alpha - (1 - alpha) cos(2 pi n / N)``.

    Example:
        >>> clnn.signal.windows.general_hamming(4, alpha=0.5)
        tensor([0.0000, 0.7500, 0.7500, 0.0000])
    """
    return _cosines(n, N, (alpha, 1 - alpha))


@_window
def hamming(n, N):
    """``0.54 - 0.46 cos(2 pi n / N)``.

    Example:
        >>> clnn.signal.windows.hamming(4)
        tensor([0.0800, 0.7700, 0.7700, 0.0800])
    """
    return _cosines(n, N, (0.54, 0.46))


@_window
def hann(n, N):
    """``0.5 - 0.5 cos(2 pi n / N)``.

    Example:
        >>> clnn.signal.windows.hann(4)
        tensor([0.0000, 0.7500, 0.7500, 0.0000])
    """
    return _cosines(n, N, (0.5, 0.5))


@_window
def blackman(n, N):
    """``0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N)``.

    Example:
        >>> clnn.signal.windows.blackman(5)[1:4]
        tensor([0.3400, 1.0000, 0.3400])
    """
    return _cosines(n, N, (0.42, 0.5, 0.08))


@_window
def nuttall(n, N):
    """Nuttall's four-term window with continuous first derivative (1981).

    Example:
        >>> clnn.signal.windows.nuttall(4)
        tensor([3.6280e-04, 5.2923e-01, 5.2923e-01, 3.6280e-04])
    """
    return _cosines(n, N, (0.3635819, 0.4891775, 0.1365995, 0.0106411))


@_window
def bartlett(n, N):
    """A triangle that is zero at both ends.

    Example:
        >>> clnn.signal.windows.bartlett(4)
        tensor([0.0000, 0.6667, 0.6667, 0.0000])
    """
    return 1 - np.abs(2 * n / N - 1)


@_window
def cosine(n, N):
    """Half a period of a sine: ``sin(pi (n + 1/2) / (N + 1))``.

    Example:
        >>> clnn.signal.windows.cosine(4)
        tensor([0.3827, 0.9239, 0.9239, 0.3827])
    """
    return np.sin(np.pi * (n + 0.5) / (N + 1))


@_window
def exponential(n, N, *, center=None, tau=1.0):
    """``exp(-|n - center| / tau)``; ``center`` is the middle unless given.

    Example:
        >>> clnn.signal.windows.exponential(4)
        tensor([0.2231, 0.6065, 0.6065, 0.2231])
    """
    if center is not None and N == len(n) - 1:
        raise ValueError("Center must be None for symmetric windows")
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    return np.exp(-np.abs(n - (N / 2 if center is None else center)) / tau)


@_window
def gaussian(n, N, *, std=1.0):
    """``exp(-((n - N/2) / std)^2 / 2)``.

    Example:
        >>> clnn.signal.windows.gaussian(4)
        tensor([0.3247, 0.8825, 0.8825, 0.3247])
    """
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    return np.exp(-0.5 * ((n - N / 2) / std) ** 2)


@_window
def kaiser(n, N, *, beta=12.0):
    """Kaiser's window ``I0(beta sqrt(1 - (2 n / N - 1)^2)) / I0(beta)``.

    Example:
        >>> clnn.signal.windows.kaiser(4)
        tensor([5.2773e-05, 5.1884e-01, 5.1884e-01, 5.2773e-05])
    """
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    return np.i0(beta * np.sqrt(np.maximum(0.0, 1 - (2 * n / N - 1) ** 2))) / np.i0(beta)


name_functions(globals(), __name__)
