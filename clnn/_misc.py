"""Functions of the top-level namespace that are neither operators nor factories: questions, switches, windows and small helpers."""
from __future__ import annotations

import math

import numpy as np

from ._tensor.interop import from_array, from_numpy
from ._tensor.tensor import Tensor
from ._tensor.device import resolve
from .core import dtype as dt
from .graph.op import REGISTRY
from .ops import creation
from .ops import random as _random
from .ops.extras import empty_strided  # noqa: F401

# -- questions ----------------------------------------------------------------------------------------------------------------------


def is_signed(input):
    """True when the dtype can hold negative numbers."""
    return input.dtype.is_signed


def is_inference(input):
    """True for a tensor made in inference mode."""
    return input.is_inference()


def is_same_size(input, other):
    """True when the shapes are equal."""
    return input.shape == other.shape


def is_conj(input):
    """Always False: clnn has no complex dtypes."""
    return False


is_neg = is_distributed = is_conj


def is_storage(obj):
    """True for the storage behind a tensor."""
    from .graph.node import Storage
    return isinstance(obj, Storage)


def get_device(input):
    """The device index, -1 on a CPU."""
    return input.get_device()


def typename(obj):
    """The qualified name of an object's type."""
    if isinstance(obj, Tensor):
        return obj.type()
    cls = obj if isinstance(obj, type) else type(obj)
    return f"{cls.__module__}.{cls.__qualname__}" if cls.__module__ not in ("builtins", None) else cls.__qualname__


# -- switches: accepted where the answer is fixed -------------------------------------------------------------------------------------
_precision = "highest"


def set_float32_matmul_precision(precision):
    """Accepted: float32 products are always computed in float32."""
    global _precision
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(f"{precision} is not one of 'highest', 'high', or 'medium'")
    _precision = precision


def get_float32_matmul_precision():
    """What :func:`set_float32_matmul_precision` was given."""
    return _precision


def are_deterministic_algorithms_enabled():
    """True: every clnn kernel gives equal bits in two runs."""
    return True


def is_deterministic_algorithms_warn_only_enabled():
    """False: nothing warns, as every kernel is deterministic."""
    return False


def set_deterministic_debug_mode(mode):
    """Accepted: every clnn kernel is deterministic."""


def get_deterministic_debug_mode():
    """0."""
    return 0


def set_flush_denormal(mode):
    """False: drivers decide how subnormal numbers are treated."""
    return False


def set_warn_always(flag):
    """Accepted: Python's warning filters decide."""


def set_num_interop_threads(n):
    """Accepted: the OpenCL driver decides."""


def get_num_interop_threads():
    """1."""
    return 1


def set_default_tensor_type(kind):
    """Set the default float dtype by PyTorch's type name (``'clnn.DoubleTensor'``) or constructor."""
    name = kind if isinstance(kind, str) else getattr(kind, "__name__", str(kind))
    for key, row in dict(Double="float64", Float="float32", Half="float16", BFloat16="bfloat16").items():
        if name.endswith(key + "Tensor"):
            dt.set_float_default(dt.from_name(row))
            return
    raise TypeError(f"invalid type object: {kind}")


# -- factories -------------------------------------------------------------------------------------------------------------------------


def range(start, end=None, step=1, **kwargs):       # noqa: A001
    """``start, start + step, ...`` up to and including ``end`` (deprecated in PyTorch; use ``arange``)."""
    if end is None:
        start, end = 0, start
    return creation.arange(start, end + step / 2, step, dtype=kwargs.pop("dtype", None) or dt._default_float, **kwargs)


def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False):
    """A 1-d tensor with a copy of the elements in a Python buffer."""
    return creation._done(from_array(np.frombuffer(buffer, dtype.np, count, offset), resolve(None)), requires_grad)


def _window(name, fn, doc):
    def window(window_length, periodic=True, *args, dtype=None, layout=None, device=None, requires_grad=False, **kw):
        n = window_length + 1 if periodic and window_length > 1 else window_length
        values = fn(n, *args, **kw)[:window_length]
        return creation._done(from_array(np.asarray(values, np.float64), resolve(device), dt.as_dtype(dtype) or dt._default_float), requires_grad)
    window.__name__, window.__doc__ = name, doc
    return window


def _cosine(a, b=None):
    def fn(n, alpha=a, beta=None):
        beta = 1 - alpha if beta is None and b is None else b if beta is None else beta
        return alpha - beta * np.cos(2 * np.pi * np.arange(n) / max(1, n - 1)) if n > 1 else np.ones(n)
    return fn


hann_window = _window("hann_window", _cosine(0.5), "Hann window: ``0.5 - 0.5 cos(2 pi n / N)``.")
hamming_window = _window("hamming_window", _cosine(0.54, 0.46), "Hamming window: ``alpha - beta cos(2 pi n / N)``.")
bartlett_window = _window("bartlett_window", np.bartlett, "Bartlett (triangular) window.")
blackman_window = _window("blackman_window", np.blackman, "Blackman window.")
kaiser_window = _window("kaiser_window", lambda n, beta=12.0: np.kaiser(n, beta), "Kaiser window of shape ``beta``.")


def vander(x, N=None, increasing=False):
    """Vandermonde matrix: powers of the elements of ``x`` as columns."""
    n = x.shape[-1] if N is None else N
    powers = creation.arange(n, device=x.device) if increasing else creation.arange(n - 1, -1, -1, device=x.device)
    return x.unsqueeze(-1) ** powers


def gradient(input, *, spacing=1, dim=None, edge_order=1):
    """Second-order estimates of the derivative along dimensions, with even spacing, as a tuple."""
    dims = (dim,) if isinstance(dim, int) else tuple(dim) if dim is not None else tuple(_range(input.ndim))
    steps = spacing if isinstance(spacing, (list, tuple)) else [spacing] * len(dims)
    cat, out = REGISTRY["cat"].fn, []
    for d, h in zip(dims, steps):
        if isinstance(h, Tensor):
            raise NotImplementedError("gradient: coordinates as spacing are not supported; give numbers")
        n = input.shape[d]
        inner = (input.narrow(d, 2, n - 2) - input.narrow(d, 0, n - 2)) / (2 * h)
        if edge_order == 1:
            first = (input.narrow(d, 1, 1) - input.narrow(d, 0, 1)) / h
            last = (input.narrow(d, n - 1, 1) - input.narrow(d, n - 2, 1)) / h
        else:
            first = (-3 * input.narrow(d, 0, 1) + 4 * input.narrow(d, 1, 1) - input.narrow(d, 2, 1)) / (2 * h)
            last = (3 * input.narrow(d, n - 1, 1) - 4 * input.narrow(d, n - 2, 1) + input.narrow(d, n - 3, 1)) / (2 * h)
        out.append(cat([first, inner, last], d))
    return tuple(out)


_range = __builtins__["range"] if isinstance(__builtins__, dict) else __builtins__.range


# -- function forms of methods ----------------------------------------------------------------------------------------------------------


def detach(input):
    """The same memory without history."""
    return input.detach()


def detach_(input):
    """Take a tensor off the tape in place."""
    return input.detach_()


def zero_(input):
    """Overwrite with zeros."""
    return input.zero_()


def renorm(input, p, dim, maxnorm):
    """Sub-tensors along ``dim`` scaled down to a p-norm of at most ``maxnorm``."""
    return input.renorm(p, dim, maxnorm)


def imag(input):
    """Raises: clnn has no complex dtypes."""
    return input.imag


def resize_as_(input, other):
    """Change the shape of ``input`` to that of ``other``."""
    return input.resize_as_(other)


def to_dlpack(input):
    """A DLPack capsule with a host copy of the values."""
    return input.__dlpack__()


def dropout(input, p, train):
    """``nn.functional.dropout`` in the order of arguments of the top-level function."""
    return _random.dropout(input, p, train)


def dropout_(input, p, train):
    """In-place :func:`dropout`."""
    return _random.dropout(input, p, train, True)


def alpha_dropout(input, p, train):
    """``nn.functional.alpha_dropout`` in the order of arguments of the top-level function."""
    return _random.alpha_dropout(input, p, train)


def feature_dropout(input, p, train):
    """Dropout of whole channels."""
    return _random.feature_dropout(input, p, train)


def nuclear_norm(input, dim=None, keepdim=False):
    """The sum of the singular values."""
    return input.norm("nuc", dim=dim, keepdim=keepdim) if dim is not None else input.norm("nuc")


def frobenius_norm(input, dim=None, keepdim=False):
    """The square root of the sum of squares."""
    return (input * input).sum(dim, keepdim).sqrt()


def matrix_exp(input):
    """The exponential of square matrices, by scaling and squaring of an 18th-order Taylor series."""
    norm = float(input.detach().abs().sum(-1).max()) if input._numel else 0.0
    squarings = max(0, math.ceil(math.log2(norm))) + 1 if norm > 0 else 0
    a = input / 2 ** squarings
    eye = creation.eye(input.shape[-1], dtype=input.dtype, device=input.device)
    term = total = eye.expand(input.shape)
    for k in _range(1, 19):
        term = (term @ a) / k
        total = total + term
    for _ in _range(squarings):
        total = total @ total
    return total


Tensor.matrix_exp = matrix_exp
for _name in ("relu_", "selu_", "celu_", "rrelu_", "threshold_"):
    if _name[:-1] in REGISTRY and hasattr(Tensor, _name):
        globals()[_name] = getattr(Tensor, _name)


def public():
    """The names that the package re-exports."""
    import types
    return {k: v for k, v in globals().items() if not k.startswith("_") and isinstance(v, types.FunctionType)
            and k not in ("public", "from_array", "from_numpy", "resolve")}


__all__ = ["from_numpy"]
