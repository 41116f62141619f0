"""``clnn.fft``: discrete Fourier transforms under PyTorch's names.

The forward transform is ``X[k] = sum over n of x[n] exp(-2 pi i k n / N)``. ``norm`` says which direction divides: ``"backward"`` (the default) the inverse
by N, ``"forward"`` the forward one by N, ``"ortho"`` both by the square root of N. Any length is fast; powers of 2, 3 and 5 are fastest.
"""
from __future__ import annotations

import functools
import math

import numpy as np

from ._tensor.declare import common_names
from ._tensor.device import resolve
from ._tensor.grad_mode import state
from ._tensor.inplace import set_out
from ._tensor.inplace import type_name as _type_name
from ._tensor.interop import from_array
from ._tensor.tensor import Tensor
from ._tensor.worded import looked
from .core import dtype as dt
from .core.shape import whole, wrap_dim
from .ops.creation import _done, _float_default
from .ops.fourier import fft_c2c, fft_c2r, fft_r2c
from .ops.padding import constant_pad
from .ops.rearrange import roll

__all__ = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fft2", "ifft2", "rfft2", "irfft2", "hfft2", "ihfft2", "fftn", "ifftn", "rfftn", "irfftn", "hfftn",
           "ihfftn", "fftfreq", "rfftfreq", "fftshift", "ifftshift"]


# -- arguments ------------------------------------------------------------------------------------------------------------------------
def _scale(norm, count, back):
    """What results are multiplied by."""
    if norm not in (None, "backward", "forward", "ortho"):
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    if norm == "ortho":
        return 1.0 / math.sqrt(count)
    return 1.0 / count if back == (norm != "forward") else 1.0


def _number(input, name, to_complex):
    """``input`` in a dtype that transforms take: integers as the default float dtype, real numbers as complex ones where asked for."""
    row = input.dtype
    if row in (dt.float16, dt.bfloat16) and state.autocast is not None and state.autocast.kind == "cpu":
        input = input.to(dt.float32)
    elif row in (dt.float16, dt.bfloat16):
        raise RuntimeError(f"{name}: Unsupported dtype {row}; transforms take float32, float64 and complex numbers")
    if row.category < dt.FLOAT:
        input = input.to(dt.float_default())
    return input.to(dt.complex_of(input.dtype)) if to_complex else input


def _real(input, name):
    if input.dtype.is_complex:
        raise RuntimeError(f"{name} expects a real input tensor, but got {_type_name(input.dtype)}")
    return _number(input, name, False)


def _resized(x, dim, n):
    """``x`` cut or filled up with zeros to ``n`` elements along ``dim``."""
    have = x.shape[dim]
    if n > have:
        return constant_pad(x, [0, 0] * (len(x.shape) - dim - 1) + [0, n - have])
    return x if n == have else x.narrow(dim, 0, n)


def _length(n, fallback):
    n = fallback if n is None else whole(n)
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")
    return n


def _dims(x, s, dim, last=None):
    """(dimensions, lengths) of a transform of several: ``s`` of None keeps, -1 too; without ``dim`` the last len(s) or all. ``last`` is the default length of
    the last dimension where it is not that of the input."""
    rank = len(x.shape)
    if s is not None and hasattr(s, "__index__"):
        s = (int(s),)
    if dim is None:
        dims = list(range(rank)) if s is None else list(range(rank - len(s), rank))
        if s is not None and len(s) > rank:
            raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has {rank} dimensions.")
    else:
        dims = [wrap_dim(d, rank) for d in ((dim,) if hasattr(dim, "__index__") else dim)]
        if dims and not rank:
            raise IndexError(f"Dimension specified as {dim if isinstance(dim, int) else dim[0]} but tensor has no dimensions")
    if len(set(dims)) < len(dims):
        raise RuntimeError("FFT dims must be unique")
    if s is not None and len(s) != len(dims):
        raise RuntimeError("When given, dim and shape arguments must have the same length")
    sizes = [x.shape[d] for d in dims]
    if dims and last is not None:
        sizes[-1] = last(sizes[-1])
    return dims, [_length(None if s is None or s[i] == -1 else s[i], n) for i, n in enumerate(sizes)]


def _input(input, name):
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    return input


# -- several dimensions, of which the others are cases --------------------------------------------------------------------------------
def _c2c(input, s, dim, norm, back, name):
    x = _number(_input(input, name), name, back)
    dims, sizes = _dims(x, s, dim)
    scale = _scale(norm, math.prod(sizes), back)
    for i, (d, n) in enumerate(zip(dims, sizes)):
        x, by = _resized(x, d, n), scale if i == len(dims) - 1 else 1.0
        x = fft_c2c(x, d, back, by) if x.dtype.is_complex else fft_r2c(x, d, by, False)
    return x if dims else _number(x, name, True)


def _r2c(input, s, dim, norm, back, name):
    """Half of the transform of real numbers; ``back``: of the inverse, which is its conjugate."""
    x = _real(_input(input, name), name)
    dims, sizes = _dims(x, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    scale = _scale(norm, math.prod(sizes), back)
    *rest, last = list(zip(dims, sizes))
    for d, n in rest:
        x = _resized(x, d, n)
    x = fft_r2c(_resized(x, *last), last[0], 1.0 if rest else scale)
    for i, (d, _) in enumerate(reversed(rest)):
        x = fft_c2c(x, d, False, scale if i == len(rest) - 1 else 1.0)
    return x.conj() if back else x


def _c2r(input, s, dim, norm, back, name):
    """The real transform of half of conjugate symmetric numbers; forward, of their conjugates backward."""
    x = _number(_input(input, name), name, True)
    dims, sizes = _dims(x, s, dim, lambda n: 2 * (n - 1))
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    scale = _scale(norm, math.prod(sizes), back)
    x = x if back else x.conj()
    *rest, (last, n) = list(zip(dims, sizes))
    for d, size in rest:
        x = fft_c2c(_resized(x, d, size), d, True, 1.0)
    return fft_c2r(_resized(x, last, n // 2 + 1), last, n, scale)


_SHARED = """

    Args:
        input: {takes}.
        {size}
        {dim}
        norm: ``"backward"``, ``"forward"`` or ``"ortho"``; see :mod:`clnn.fft`.

    Raises:
        RuntimeError: a length below 1, a dtype that has no transform, or dimensions that do not fit.

    Example:
        >>> {example}
    """
_ONE = dict(size="n: the length, to which the input is cut or filled up with zeros; by default {n}.", dim="dim: the dimension that is transformed.")
_MANY = dict(size="s: the lengths, to which the input is cut or filled up with zeros; by default {n}.",
             dim="dim: the dimensions that are transformed{all}.")


_PARAMETERS = ("input", "dim", "n", "s", "norm", "out")


def _make(name, work, back, kind, text, takes, example, n="that of the input"):
    def one(input, n=None, dim=-1, norm=None, *, out=None):
        if n is not None:
            _length(n, None)                                    # of one dimension -1 is no length either
        return set_out(out, work(input, None if n is None else (n,), (dim,), norm, back, name))

    def two(input, s=None, dim=(-2, -1), norm=None, *, out=None):
        return set_out(out, work(input, s, dim, norm, back, name))

    def many(input, s=None, dim=None, norm=None, *, out=None):
        return set_out(out, work(input, s, dim, norm, back, name))
    body, look = {"": one, "2": two, "n": many}[kind], looked("fft_" + name, outer=True)

    @functools.wraps(body)
    def fn(*args, **kwargs):
        look(args, kwargs)
        return body(*args, **(common_names(kwargs, _PARAMETERS) or kwargs))
    shared = _ONE if kind == "" else _MANY
    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = text + _SHARED.format(takes=takes, example=example, size=shared["size"].format(n=n),
                                       dim=shared["dim"].format(all=", by default the last ``len(s)`` or all" if kind == "n" else ""))
    return fn


_ANY, _REAL, _HALF = "real or complex, (*, N, *)", "real, (*, N, *)", "complex, (*, N // 2 + 1, *)"
_OF = {"": "one dimension", "2": "the last two dimensions", "n": "several dimensions"}


def _family(kind):
    """The six transforms of one, two or several dimensions."""
    x, of = "clnn.ones(1, 4)" if kind == "2" else "clnn.ones(4)", _OF[kind]

    def values(text):
        return f"tensor([[{text}]])" if kind == "2" else f"tensor([{text}])"

    def shape(n):
        return f"clnn.Size([1, {n}])" if kind == "2" else f"clnn.Size([{n}])"

    def example(call, shown):
        return f"{call}\n        {shown}"
    last = "that of the input, and 2 (N - 1) of the last one"
    return (
        _make("fft" + kind, _c2c, False, kind, f"The discrete Fourier transform of {of}.", _ANY,
              example(f"clnn.fft.fft{kind}({x}).real", values("4., 0., 0., 0."))),
        _make("ifft" + kind, _c2c, True, kind, f"The inverse of :func:`fft{kind}`.", _ANY, example(f"clnn.fft.ifft{kind}({x}).real", values("1., 0., 0., 0."))),
        _make("rfft" + kind, _r2c, False, kind, f"The Fourier transform of real numbers in {of}: the first N // 2 + 1 results of the last one, the others are "
              "their conjugates.", _REAL, example(f"clnn.fft.rfft{kind}({x}).shape", shape(3))),
        _make("irfft" + kind, _c2r, True, kind, f"The inverse of :func:`rfft{kind}`: real numbers.", _HALF,
              example(f"clnn.fft.irfft{kind}(clnn.fft.rfft{kind}({x}))", values("1., 1., 1., 1.")), last),
        _make("hfft" + kind, _c2r, False, kind, f"The Fourier transform of conjugate symmetric numbers in {of}, given half of them: real numbers.", _HALF,
              example(f"clnn.fft.hfft{kind}({x}).shape", shape(6)), last),
        _make("ihfft" + kind, _r2c, True, kind, f"The inverse of :func:`hfft{kind}`: half of conjugate symmetric numbers.", _REAL,
              example(f"clnn.fft.ihfft{kind}({x}).shape", shape(3))))


fft, ifft, rfft, irfft, hfft, ihfft = _family("")
fft2, ifft2, rfft2, irfft2, hfft2, ihfft2 = _family("2")
fftn, ifftn, rfftn, irfftn, hfftn, ihfftn = _family("n")


# -- frequencies and order --------------------------------------------------------------------------------------------------------------
def _frequencies(counts, n, d, out, dtype, device, requires_grad):
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    with np.errstate(all="ignore"):                             # no distance, and no samples, give infinite ones
        values = counts * np.divide(1.0, n * d)
    return set_out(out, _done(from_array(values, resolve(device), _float_default(dtype)), requires_grad))


def fftfreq(n, d=1.0, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    """The frequencies of the results of :func:`fft` for ``n`` samples that lie ``d`` apart: ``[0, 1, ..., -2, -1] / (d n)``.

    Example:
        >>> clnn.fft.fftfreq(4)
        tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    n = whole(n)
    return _frequencies(np.concatenate([np.arange((n + 1) // 2), np.arange(-(n // 2), 0)]), n, d, out, dtype, device, requires_grad)


def rfftfreq(n, d=1.0, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    """The frequencies of the results of :func:`rfft` for ``n`` samples that lie ``d`` apart: ``[0, 1, ..., n // 2] / (d n)``.

    Example:
        >>> clnn.fft.rfftfreq(4)
        tensor([0.0000, 0.2500, 0.5000])
    """
    n = whole(n)
    return _frequencies(np.arange(n // 2 + 1), n, d, out, dtype, device, requires_grad)


def _shift(input, dim, by):
    dims = range(len(input.shape)) if dim is None else [wrap_dim(d, len(input.shape)) for d in ((dim,) if hasattr(dim, "__index__") else dim)]
    return roll(input, [by(input.shape[d]) for d in dims], list(dims)) if input.shape else input


def fftshift(input, dim=None):
    """The zero frequency in the middle of ``dim`` (an int, several, or all) in place of its start.

    Example:
        >>> clnn.fft.fftshift(clnn.arange(5))
        tensor([3, 4, 0, 1, 2])
    """
    return _shift(input, dim, lambda n: n // 2)


def ifftshift(input, dim=None):
    """The inverse of :func:`fftshift`.

    Example:
        >>> clnn.fft.ifftshift(clnn.arange(5))
        tensor([2, 3, 4, 0, 1])
    """
    return _shift(input, dim, lambda n: -(n // 2))
