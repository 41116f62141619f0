"""``clnn.masked``: reductions and softmax functions over the elements that a mask selects.

``mask`` is a bool tensor that broadcasts to the input; elements where it is False take no part, as if they were not there. Without a mask all elements count.
Where nothing is selected a sum is 0, a product 1, an extreme the worst value of the dtype, a mean NaN. Every function is made of ordinary operators, so
gradients follow; masked elements get none.

Example:
    >>> x, mask = clnn.tensor([[1., 2., 3.], [4., 5., 6.]]), clnn.tensor([[True, False, True], [False, False, False]])
    >>> clnn.masked.sum(x, 1, mask=mask), clnn.masked.mean(x, 1, mask=mask)
    (tensor([4., 0.]), tensor([2., nan]))
"""
from __future__ import annotations

import math
import sys

from ._tensor.tensor import Tensor
from .core import dtype as dt
from .core.shape import wrap_dim
from .graph.op import REGISTRY

__all__ = ["sum", "prod", "cumsum", "cumprod", "amax", "amin", "argmax", "argmin", "mean", "median", "logsumexp", "logaddexp", "norm", "var", "std", "softmax",
           "log_softmax", "softmin", "normalize"]

__path__ = []           # programs import the submodule that holds these functions in PyTorch
_ops = sys.modules[f"{__name__}._ops"] = sys.modules[__name__]


def __getattr__(name):
    if name in ("MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"):
        from . import _maskedtensor
        return getattr(_maskedtensor, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _dims(input, dim):
    """The dimensions to reduce: all of them for None and for none."""
    rank = len(input.shape)
    if dim is None or isinstance(dim, (tuple, list)) and not dim:
        return tuple(range(rank))
    dims = tuple([wrap_dim(d, rank) for d in ((dim,) if isinstance(dim, int) else dim)])
    if len(set(dims)) < len(dims):
        raise RuntimeError(f"dim={dim} appears multiple times in the list of dims")
    return dims


def _filled(input, mask, value):
    """``input`` with ``value`` in place of what is masked out."""
    if mask is None:
        return input
    if not isinstance(mask, Tensor):
        raise TypeError(f"mask must be Tensor, not {type(mask).__name__}")
    return REGISTRY["where"].fn(mask.to(dt.bool_), input, input.new_full((), value))


def _count(input, dims, mask):
    """How many elements take part, with the reduced dimensions kept."""
    ones = input.new_ones(input.shape, dtype=dt.int64)
    return REGISTRY["sum"].fn(_filled(ones, mask, 0), dims, True)


def _worst(row, largest):
    """What no maximum (``largest``) or minimum is worse than."""
    if row.is_floating_point:
        return -math.inf if largest else math.inf
    if row is dt.bool_:
        return not largest
    bits = 8 * row.itemsize
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if row.is_signed else (0, (1 << bits) - 1)
    return low if largest else high


def _cast(input, dtype, whole=None):
    """``input`` in ``dtype``, or integers in ``whole`` where none is given."""
    row = dt.as_dtype(dtype)
    if row is None and whole is not None and input.dtype.category < dt.FLOAT:
        row = whole
    return input if row is None else input.to(row)


def sum(input, dim=None, *, keepdim=False, dtype=None, mask=None):                     # noqa: A001
    """Sum of the selected elements over ``dim`` (all dimensions by default); integers are added up as int64.

    Example:
        >>> clnn.masked.sum(clnn.tensor([[3.0, 1.0, 2.0]]), 1, mask=clnn.tensor([[True, False, True]]))
        tensor([5.])
    """
    return _cast(_filled(_cast(input, dtype, dt.int64), mask, 0).sum(_dims(input, dim), keepdim), dtype)


def prod(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Product of the selected elements over ``dim`` (all dimensions by default).

    Example:
        >>> clnn.masked.prod(clnn.tensor([[3.0, 1.0, 2.0]]), 1, mask=clnn.tensor([[True, False, True]]))
        tensor([6.])
    """
    r = _filled(_cast(input, dtype, dt.int64), mask, 1)
    for d in sorted(_dims(input, dim), reverse=True):
        r = r.prod(d, keepdim)
    return r


def cumsum(input, dim, *, dtype=None, mask=None):
    """Running sums along ``dim`` in which what is masked out counts as 0.

    Example:
        >>> clnn.masked.cumsum(clnn.tensor([[3.0, 1.0, 2.0]]), 1, mask=clnn.tensor([[True, False, True]]))
        tensor([[3., 3., 5.]])
    """
    x = _cast(input, dtype)
    return _filled(x, mask, 0).cumsum(dim, dtype=x.dtype)


def cumprod(input, dim, *, dtype=None, mask=None):
    """Running products along ``dim`` in which what is masked out counts as 1.

    Example:
        >>> clnn.masked.cumprod(clnn.tensor([[3.0, 1.0, 2.0]]), 1, mask=clnn.tensor([[True, False, True]]))
        tensor([[3., 3., 6.]])
    """
    x = _cast(input, dtype)
    return _filled(x, mask, 1).cumprod(dim, dtype=x.dtype)


def amax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Largest selected element over ``dim`` (all dimensions by default).

    Example:
        >>> clnn.masked.amax(clnn.tensor([[3.0, 1.0, 2.0]]), 1, mask=clnn.tensor([[True, False, True]]))
        tensor([3.])
    """
    x = _cast(input, dtype)
    return _filled(x, mask, _worst(x.dtype, True)).amax(_dims(input, dim), keepdim)


def amin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Smallest selected element over ``dim`` (all dimensions by default).

    Example:
        >>> clnn.masked.amin(clnn.tensor([[3.0, 1.0, 2.0]]), 1, mask=clnn.tensor([[True, False, True]]))
        tensor([2.])
    """
    x = _cast(input, dtype)
    return _filled(x, mask, _worst(x.dtype, False)).amin(_dims(input, dim), keepdim)


def argmax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Place of the largest selected element along ``dim``, or in the flat tensor, as a number of the dtype of the input, as in PyTorch.

    Example:
        >>> clnn.masked.argmax(clnn.tensor([[3.0, 1.0, 2.0]]), 1, mask=clnn.tensor([[True, False, True]]))
        tensor([0.])
    """
    x = _cast(input, dtype)
    return _filled(x, mask, _worst(x.dtype, True)).argmax(dim, bool(keepdim)).to(x.dtype)


def argmin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Place of the smallest selected element along ``dim``, or in the flat tensor.

    Example:
        >>> clnn.masked.argmin(clnn.tensor([[3.0, 1.0, 2.0]]), 1, mask=clnn.tensor([[True, False, True]]))
        tensor([2.])
    """
    x = _cast(input, dtype)
    return _filled(x, mask, _worst(x.dtype, False)).argmin(dim, bool(keepdim)).to(x.dtype)


def _needs_float(name, row, given):
    if not row.differentiable:
        raise ValueError(f"{name}(): Could not infer output dtype. {'Optional' if given else 'Input'} dtype must be either a floating point or complex dtype. "
                         f"Got: {row}")


def mean(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Mean of the selected elements over ``dim`` (all dimensions by default); NaN where there is none.

    Raises:
        ValueError: the result would be of integers.

    Example:
        >>> clnn.masked.mean(clnn.tensor([[3.0, 1.0, 2.0]]), 1, mask=clnn.tensor([[True, False, True]]))
        tensor([2.5000])
    """
    x = _cast(input, dtype)
    _needs_float("mean", x.dtype, dtype is not None)
    dims = _dims(input, dim)
    if mask is None:
        return x.mean(dims, keepdim)
    r = _filled(x, mask, 0).sum(dims, True) / _count(x, dims, mask)
    return r if keepdim else r.reshape([s for d, s in enumerate(x.shape) if d not in dims])


def median(input, dim=-1, *, keepdim=False, dtype=None, mask=None):
    """Median of the selected elements along ``dim``, the lower one of two; NaN where there is none.

    Example:
        >>> clnn.masked.median(clnn.tensor([[3.0, 1.0, 2.0]]), 1, mask=clnn.tensor([[True, False, True]]))
        tensor([2.])
    """
    x = _cast(input, dtype)
    if not x.dtype.is_floating_point:
        raise ValueError(f"input dtype {x.dtype} not supported for masked median; it takes floats")
    return x.median(dim, keepdim).values if mask is None else _filled(x, mask, math.nan).nanmedian(dim, keepdim).values


def logsumexp(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """``log(sum(exp(x)))`` of the selected elements over ``dim``.

    Example:
        >>> clnn.masked.logsumexp(clnn.tensor([[3.0, 1.0, 2.0]]), 1, mask=clnn.tensor([[True, False, True]]))
        tensor([3.3133])
    """
    r = _filled(_cast(input, dtype, dt.float_default()), mask, -math.inf).logsumexp(_dims(input, dim), keepdim)
    return r if dtype is not None else r.to(input.dtype)


def logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None):
    """``log(exp(x) + exp(y))`` in which a masked element of either counts as ``exp(-inf)``.

    Example:
        >>> clnn.masked.logaddexp(clnn.zeros(2), clnn.zeros(2), input_mask=clnn.tensor([True, False]))
        tensor([0.6931, 0.0000])
    """
    return REGISTRY["logaddexp"].fn(_filled(_cast(input, dtype), input_mask, -math.inf), _filled(_cast(other, dtype), other_mask, -math.inf))


def norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None):           # noqa: A002
    """Vector norm of the selected elements over ``dim`` (all dimensions by default).

    Example:
        >>> clnn.masked.norm(clnn.tensor([[3.0, 1.0, 2.0]]), 2, 1, mask=clnn.tensor([[True, False, True]]))
        tensor([3.6056])
    """
    x = _cast(input, dtype)
    return REGISTRY["linalg_vector_norm"].fn(_filled(x, mask, math.inf if ord < 0 else 0), ord, _dims(input, dim), keepdim)


def _variance(input, dim, unbiased, correction, keepdim, dtype, mask):
    if unbiased is not None and correction is not None:
        raise ValueError("Only one of unbiased and correction may be given")
    correction = (1 if unbiased is None else int(unbiased)) if correction is None else correction
    x, dims = _cast(input, dtype, dt.float_default()), _dims(input, dim)
    count = _count(x, dims, mask)
    away = x - _filled(x, mask, 0).sum(dims, True) / count
    square = away.abs().square() if away.dtype.is_complex else away * away
    total = _filled(square, mask, 0).sum(dims, keepdim)
    count = count if keepdim else count.reshape(total.shape)
    return (total / (count - correction).clamp(min=0)).to(x.dtype)


def var(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """Variance of the selected elements over ``dim`` (all dimensions by default); ``correction`` is taken from their number, 1 by default.

    Example:
        >>> clnn.masked.var(clnn.tensor([[3.0, 1.0, 2.0]]), 1, mask=clnn.tensor([[True, False, True]]))
        tensor([0.5000])
    """
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask)


def std(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """Standard deviation of the selected elements: the square root of :func:`var`.

    Example:
        >>> clnn.masked.std(clnn.tensor([[3.0, 1.0, 2.0]]), 1, mask=clnn.tensor([[True, False, True]]))
        tensor([0.7071])
    """
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask).sqrt()


def softmax(input, dim, *, dtype=None, mask=None):
    """Softmax of the selected elements along ``dim``; the others are 0, and NaN where none is selected.

    Example:
        >>> clnn.masked.softmax(clnn.tensor([[3.0, 1.0, 2.0]]), 1, mask=clnn.tensor([[True, False, True]]))
        tensor([[0.7311, 0.0000, 0.2689]])
    """
    return _filled(_cast(input, dtype), mask, -math.inf).softmax(dim)


def log_softmax(input, dim, *, dtype=None, mask=None):
    """Logarithm of :func:`softmax`.

    Example:
        >>> clnn.masked.log_softmax(clnn.tensor([[3.0, 1.0, 2.0]]), 1, mask=clnn.tensor([[True, False, True]]))
        tensor([[-0.3133,    -inf, -1.3133]])
    """
    return _filled(_cast(input, dtype), mask, -math.inf).log_softmax(dim)


def softmin(input, dim, *, dtype=None, mask=None):
    """Softmax of the negative of the selected elements along ``dim``.

    Example:
        >>> clnn.masked.softmin(clnn.tensor([[3.0, 1.0, 2.0]]), 1, mask=clnn.tensor([[True, False, True]]))
        tensor([[0.2689, 0.0000, 0.7311]])
    """
    return (-_filled(_cast(input, dtype), mask, math.inf)).softmax(dim)


def normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None):                   # noqa: A002
    """The selected elements divided by their norm along ``dim``, which counts as at least ``eps``; the others are 0.

    Example:
        >>> clnn.masked.normalize(clnn.tensor([[3.0, 1.0, 2.0]]), 2, 1, mask=clnn.tensor([[True, False, True]]))
        tensor([[0.8321, 0.0000, 0.5547]])
    """
    x = _cast(input, dtype)
    size = norm(x, ord, dim, keepdim=True, mask=mask)
    return _filled(x, mask, 0) / REGISTRY["maximum"].fn(size, size.new_full((), eps))
