"""Sums, products, means, variances and truth over any dimensions; :func:`fold`, on which all reductions stand."""
from __future__ import annotations

import builtins
import math

import numpy as np

from .._tensor.declare import composite, elementwise, kernel
from .._tensor.dispatch import config, run
from .._tensor.inplace import set_out, type_name
from .._tensor.refusals import dtype_into, no_number
from .._tensor.repeat import repeated_rule
from .._tensor.tensor import Tensor, empty, make
from ..core import dtype as dt
from ..core import symbols
from ..core.shape import Size, wrap_dim, wrap_dims
from ..core.symbols import memo
from ..core.warn import warn
from ..graph import fuse
from ..graph.folds import Reduction
from ..graph.node import Storage, record
from ..graph.reduce import Call, defer
from ..runtime.sharing import shared

_NAN_MAX = ("(a > b ? a : b)", "((a > b || a != a) ? a : b)")
_NAN_MIN = ("(a < b ? a : b)", "((a < b || a != a) ? a : b)")
SUM = Reduction("sum", "(a + b)", lambda d: d.zero, complex="(a + b)")
MEAN = Reduction("mean", "(a + b)", lambda d: d.zero, "a / c", complex="(a + b)")
ROOT_SUM = Reduction("root_sum", "(a + b)", lambda d: d.zero, "sqrt(a)")
ROOT_MEAN = Reduction("root_mean", "(a + b)", lambda d: d.zero, "sqrt(a / c)")
PROD = Reduction("prod", "(a * b)", lambda d: d.one, complex="c_mul(a, b)")
MAX = Reduction("max", _NAN_MAX, lambda d: d.lowest)
MIN = Reduction("min", _NAN_MIN, lambda d: d.highest)
ANY = Reduction("any", "(a | b)", lambda d: "0")
ALL = Reduction("all", "(a & b)", lambda d: "1")


@memo(65536)
def reduced_shape(shape, dims, keepdim):
    if keepdim:
        return Size(1 if i in dims else s for i, s in enumerate(shape))
    return Size(s for i, s in enumerate(shape) if i not in dims)


def dims_of(dim, rank) -> tuple:
    """Normalised dimensions; None and an empty list mean all."""
    if isinstance(dim, (list, tuple)) and not dim:
        dim = None
    dims = wrap_dims(dim, rank)
    return dims if rank else ()


def count_of(shape, dims) -> int:
    """Number of elements that one result is made of."""
    count = 1
    for d in dims:
        count *= shape[d]
    return count


def fold(spec, input, dims, keepdim, acc, out_dtype, constant=0.0) -> Tensor:
    """Record the reduction of ``input`` over normalised ``dims``."""
    if acc.is_complex and spec.complex is None:
        raise NotImplementedError(f"\"{spec.name}\" not implemented for '{type_name(acc)}'")
    shape = reduced_shape(input.shape, dims, keepdim)
    numel = shape.numel()
    st = input._storage
    device = st.device
    node = st.node
    if node is not None and node.buf is None and input._dense and input._numel == node.numel and input.dtype is node.dtype \
            and node.reduce is None and (node.shape == input.shape or node.linear):
        ref = (node, input.dtype, 0, input._strides)
    else:
        ref = (st.buffer(), input.dtype, input._offset, input._strides)
    storage = record(None, (ref,), acc, out_dtype, shape, numel, device, 1, 1, True)
    defer(storage, Call(spec, input.shape, dims, acc, constant))
    out = make(storage, shape, out_dtype, numel)
    if config.eager or shared and ref[0] in shared:
        fuse.realize(storage)
    return out


def restore(g, input_shape, dims, keepdim):
    """A reduced gradient (or result) as a view that broadcasts over ``input_shape``."""
    if not keepdim and dims and g.shape:        # a scalar broadcasts as it is
        g = g.reshape(tuple(1 if i in dims else s for i, s in enumerate(input_shape)))
    return g.expand(input_shape)


def widen(t, shape, dims, keepdim):
    """Like :func:`restore` without the expansion: sizes of 1 where dimensions were reduced."""
    return t if keepdim or not dims else t.reshape(tuple(1 if i in dims else s for i, s in enumerate(shape)))


def _filled(shape, value, row, device):
    from .creation import filled
    return filled(shape, value, row, device)


def reference(fn):
    """A NumPy reference with PyTorch's argument names."""
    def call(x, dim=None, keepdim=False, **kw):
        return fn(x, axis=tuple(dim) if isinstance(dim, list) else dim, keepdims=keepdim, **kw)
    return call


def samples_of(**kw):
    """Reductions of a small array over all, one and several dimensions."""
    def samples():
        x = np.random.default_rng(0).standard_normal((3, 4, 5))
        wide = np.random.default_rng(1).standard_normal((5, 300))
        calls = [((x,), {}), ((x, 1), {}), ((x, -1, True), {}), ((wide,), {}), ((wide, 1), {}), ((wide, 0), {})]
        return calls + ([((x, (0, 2)), {}), ((x,), dict(dim=(1, 2), keepdim=True))] if kw.get("several", True) else [])
    return samples


_BAD_DIM = ((np.zeros((2, 3)), 2), {}, IndexError, "Dimension out of range")


# -- sums and means -----------------------------------------------------------------------------------------------------------------
def _sum_dtype(input, dtype):
    if dtype is not None:
        return dt.as_dtype(dtype)
    return input.dtype if input.dtype.differentiable else dt.int64


def _sum_body(input, dims, keepdim, shape):
    if 0 in input.shape:
        return _filled(reduced_shape(shape, dims, keepdim), 0, input.dtype, input._storage.device)
    return fold(SUM, input, dims, keepdim, input.dtype.acc_dtype, input.dtype)


def _sum_grad(g, shape, dims, keepdim):
    return restore(g, shape, dims, keepdim)


_sum_all = kernel("_sum_all", complex=True, method=False, repeat="ready alone whole", vjp=dict(input=_sum_grad))(_sum_body)
_sum = kernel("_sum", complex=True, method=False, repeat="ready alone whole", vjp=dict(input=_sum_grad))(_sum_body)
_sum_all.op.grad_name, _sum.op.grad_name = "SumBackward0", "SumBackward1"


@kernel("_sum_long", method=False, repeat="ready alone whole")
def _sum_long(input, dims, keepdim):
    if 0 in input.shape:
        return _filled(reduced_shape(input.shape, dims, keepdim), 0, dt.int64, input._storage.device)
    return fold(SUM, input, dims, keepdim, dt.int64, dt.int64)


@composite("sum", repeat="ready alone whole", complex=True, numpy=reference(np.sum), samples=samples_of(), errors=[_BAD_DIM])
def sum(input, dim=None, keepdim=False, *, dtype=None, out=None, axis=None):
    """Sum over ``dim`` (an int, several, or all). Integers are summed as int64; 16-bit floats accumulate in float32.

    Example:
        >>> clnn.ones(2, 3).sum(1)
        tensor([3., 3.])
    """
    dim = axis if axis is not None else dim
    dims = dims_of(dim, len(input.shape))
    row = _sum_dtype(input, dtype if out is None else dtype_into(out, dtype))
    if row is dt.int64 and not input.dtype.differentiable and input.dtype is not row:
        return set_out(out, _sum_long(input, dims, keepdim))
    x = input if row is input.dtype else input.to(row)
    return set_out(out, (_sum_all if dim is None else _sum)(x, dims, keepdim, x.shape))


def _mean_body(input, dims, keepdim, shape, count):
    if 0 in input.shape:
        nothing = complex(math.nan, math.nan) if input.dtype.is_complex else math.nan
        return _filled(reduced_shape(shape, dims, keepdim), nothing, input.dtype, input._storage.device)
    return fold(MEAN, input, dims, keepdim, input.dtype.acc_dtype, input.dtype, symbols.real(count))


def _mean_grad(g, shape, dims, keepdim, count):
    return restore(g, shape, dims, keepdim) / count


_mean_all = kernel("_mean_all", complex=True, method=False, repeat="ready alone whole", vjp=dict(input=_mean_grad))(_mean_body)
_mean = kernel("_mean", complex=True, method=False, repeat="ready alone whole", vjp=dict(input=_mean_grad))(_mean_body)
_mean_all.op.grad_name, _mean.op.grad_name = "MeanBackward0", "MeanBackward1"


@composite("mean", repeat="ready alone whole", complex=True, numpy=reference(np.mean), samples=samples_of(), dtypes=dt.FLOATS, errors=[_BAD_DIM])
def mean(input, dim=None, keepdim=False, *, dtype=None, out=None, axis=None):
    """Mean over ``dim`` (an int, several, or all)."""
    if dtype is not None:
        input = input.to(dtype if out is None else dtype_into(out, dtype))
    if not input.dtype.differentiable:
        raise RuntimeError(f"mean(): could not infer output dtype. {'Input' if dtype is None else 'Optional'} dtype must be either a floating point or "
                           f"complex dtype. Got: {type_name(input.dtype)}")
    dim = axis if axis is not None else dim
    dims = dims_of(dim, len(input.shape))
    return set_out(out, (_mean_all if dim is None else _mean)(input, dims, keepdim, input.shape, count_of(input.shape, dims)))


@kernel("_nansum", method=False, vjp=dict(input=lambda g, input, dims, keepdim: _where(input.isnan(), 0.0, restore(g, input.shape, dims, keepdim))))
def _nansum(input, dims, keepdim):
    return _sum(_where(input.isnan(), 0.0, input), dims, keepdim, input.shape)


_nansum.op.grad_name = "NansumBackward0"


@composite("nansum", repeat="ready whole", splice=True, numpy=reference(np.nansum), samples=samples_of())
def nansum(input, dim=None, keepdim=False, *, dtype=None):
    """Sum in which NaN counts as zero."""
    if not input.dtype.is_floating_point:
        return sum(input, dim, keepdim, dtype=dtype)
    if dtype is not None and not dtype.is_floating_point:       # which has no NaN
        return sum(_where(input.isnan(), 0.0, input), dim, keepdim, dtype=dtype)
    return _nansum(input.to(_sum_dtype(input, dtype)), dims_of(dim, len(input.shape)), keepdim)


@composite("nanmean", repeat="whole", numpy=reference(np.nanmean), samples=samples_of(), dtypes=dt.FLOATS)
def nanmean(input, dim=None, keepdim=False, *, dtype=None):
    """Mean of what is not NaN."""
    if not input.dtype.is_floating_point:
        raise RuntimeError(f"nanmean(): expected input to have floating point or complex dtype but got {type_name(input.dtype)}")
    return nansum(input, dim, keepdim, dtype=dtype) / sum(~input.isnan(), dim, keepdim)


def _where(condition, a, b):
    from .selection import where
    return where(condition, a, b)


@composite("count_nonzero", repeat="whole", complex=True, numpy=lambda x, dim=None: np.count_nonzero(x, axis=dim))
def count_nonzero(input, dim=None, *more):
    """Number of elements that are not zero."""
    return sum(input != 0, (dim, *more) if more else dim)


# -- products -----------------------------------------------------------------------------------------------------------------------
@repeated_rule
def _prod_grad(g, input, dims, keepdim):
    """Every factor's gradient is the product of the others: exclusive products from both ends, so that zeros need no division."""
    from .scans import products_of_others
    shape = input.shape
    if 0 in shape:
        return input * 0
    if len(dims) == 1 and shape:
        return widen(g, shape, dims, keepdim) * products_of_others(input, dims[0])
    return g.reshape((1,) * len(shape)) * products_of_others(input.reshape(-1), 0).reshape(shape)


@kernel("_prod", complex=True, method=False, repeat="ready whole", vjp=dict(input=_prod_grad))
def _prod(input, dims, keepdim):
    if 0 in input.shape:
        return _filled(reduced_shape(input.shape, dims, keepdim), 1, input.dtype, input._storage.device)
    return fold(PROD, input, dims, keepdim, input.dtype.acc_dtype, input.dtype)


@kernel("_prod_all", complex=True, method=False, repeat="ready whole", vjp=dict(input=_prod_grad))
def _prod_all(input, dims, keepdim):
    return _prod(input, dims, keepdim)


@composite("prod", repeat="ready whole", complex=True, numpy=reference(np.prod), samples=samples_of(several=False), errors=[_BAD_DIM])
def prod(input, dim=None, keepdim=False, *, dtype=None, out=None):
    """Product over one dimension or all. Integers are multiplied as int64."""
    dtype = dtype if out is None else dtype_into(out, dtype)
    rank = len(input.shape)
    dims = tuple(range(rank)) if dim is None else (wrap_dim(dim, rank),)[:rank]
    return set_out(out, (_prod_all if dim is None else _prod)(input.to(_sum_dtype(input, dtype)), dims, keepdim))


_prod_all.op.grad_name, _prod.op.grad_name = "ProdBackward0", "ProdBackward1"


# -- variance -----------------------------------------------------------------------------------------------------------------------
def _degrees(shape, dims, correction):
    return builtins.max(0.0, float(count_of(shape, dims) - correction))


def _variance(spec, input, dims, keepdim, correction):
    """``spec`` over the squared distances from the mean, in two passes in the accumulate type."""
    acc = input.dtype.acc_dtype
    free = _degrees(input.shape, dims, correction)
    if 0 in input.shape:                                         # sums of nothing over a count of nothing
        return _filled(reduced_shape(input.shape, dims, keepdim), math.nan, input.dtype, input._storage.device)
    if _keeps_rows(input, dims):
        return _variance_of_rows(input, dims, keepdim, free, spec is ROOT_MEAN)
    x = input if input.dtype is acc else input.to(acc)
    first = x
    for d in dims:
        first = first.narrow(d, 0, 1)
    x = x - first                                               # equal numbers have no variance at all, which programs ask for by ``std == 0``
    away = x - fold(MEAN, x, dims, True, acc, acc, float(count_of(x.shape, dims)))
    return fold(spec, away * away, dims, keepdim, acc, input.dtype, free)


def _keeps_rows(input, dims):
    """Whether GPUs keep what has to be read twice: rows in memory, enough of them to do without a second launch."""
    n, st = count_of(input.shape, dims), input._storage
    return not st.device.is_cpu and n >= 8 and dims == tuple(range(len(input.shape) - len(dims), len(input.shape))) and input._dense \
        and (st.node is None or st.node.buf is not None) and (input._numel >= 128 * n or n <= 4096)


def _variance_of_rows(input, dims, keepdim, free, root):
    """The same in one launch."""
    from .softmax import aligned, row_plan
    device, acc, n = input._storage.device, input.dtype.acc_dtype, count_of(input.shape, dims)
    rows = input._numel // n
    mean, spread = (empty(reduced_shape(input.shape, dims, keepdim), acc, device) for _ in range(2))
    form, lanes, chunk, gs, ls = row_plan(device, rows, n, whole=aligned(device, n, input))
    run(device, "normalization/moments", dict(T=input.dtype, RSTD=3 if root else 2, FORM=form, LANES=lanes), gs, ls, input, mean, spread, rows, n, chunk,
        acc.number(free))
    return spread.to(input.dtype)


def _variance_grad(g, input, dims, keepdim, correction):
    free = _degrees(input.shape, dims, correction)
    scale = 2.0 / free if free else math.nan
    return (widen(g, input.shape, dims, keepdim) * scale) * (input - input.mean(dims or None, True))


@kernel("_var", method=False, repeat="ready whole", vjp=dict(input=repeated_rule(_variance_grad)))
def _var(input, dims, keepdim, correction):
    return _variance(MEAN, input, dims, keepdim, correction)


@repeated_rule
def _std_grad(g, input, dims, keepdim, correction, result):
    return _variance_grad(_where(result == 0, 0.0, g / (result * 2)), input, dims, keepdim, correction)


@kernel("_std", method=False, repeat="ready whole", vjp=dict(input=_std_grad))
def _std(input, dims, keepdim, correction):
    return _variance(ROOT_MEAN, input, dims, keepdim, correction)


_var.op.grad_name, _std.op.grad_name = "VarBackward0", "StdBackward0"


def _spread(name, op, input, dim, unbiased, correction, keepdim):
    """The common part of var and std: dim may be left out before ``unbiased``, as in ``x.var(False)``."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if not input.dtype.differentiable:
        raise RuntimeError(f"{name if '_' in name else 'std and var'} only support floating point and complex dtypes")
    if correction is None:
        correction = 1 if unbiased or unbiased is None else 0
    dims = dims_of(dim, len(input.shape))
    if count_of(input.shape, dims) <= correction:
        warn(f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input numel "
                      "divided by output numel).")
    if input.dtype.is_complex:                                   # distances in the plane
        both = _var(input.real, dims, keepdim, correction) + _var(input.imag, dims, keepdim, correction)
        return both if op is _var else both.sqrt()
    return op(input, dims, keepdim, correction)


def _np_spread(fn):
    return lambda x, dim=None, unbiased=True, keepdim=False, correction=None: fn(
        x, axis=dim, ddof=int(unbiased) if correction is None else correction, keepdims=keepdim)


def _spread_samples():
    x = np.random.default_rng(0).standard_normal((3, 4, 5))
    return [((x,), {}), ((x, 1), {}), ((x, (0, 2)), dict(keepdim=True)), ((x, -1), dict(unbiased=False)), ((x, 1), dict(correction=2))]


@composite("var", repeat="ready alone whole", complex=True, numpy=_np_spread(np.var), samples=_spread_samples, dtypes=dt.FLOATS)
def var(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """Variance: ``sum((x - mean)^2) / max(0, N - correction)``; the default correction of 1 is Bessel's."""
    return _spread("var", _var, input, dim, unbiased, correction, keepdim)


@composite("std", repeat="ready alone whole", complex=True, numpy=_np_spread(np.std), samples=_spread_samples, dtypes=dt.FLOATS)
def std(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """Square root of :func:`var`."""
    return _spread("std", _std, input, dim, unbiased, correction, keepdim)


@composite("var_mean", repeat="ready whole", complex=True, method=False, dtypes=dt.FLOATS)
def var_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """Variance and mean."""
    return _spread("var_mean", _var, input, dim, unbiased, correction, keepdim), mean(input, None if isinstance(dim, bool) else dim, keepdim)


@composite("std_mean", repeat="ready whole", complex=True, method=False, dtypes=dt.FLOATS)
def std_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """Standard deviation and mean."""
    return _spread("std_mean", _std, input, dim, unbiased, correction, keepdim), mean(input, None if isinstance(dim, bool) else dim, keepdim)


# -- truth --------------------------------------------------------------------------------------------------------------------------
def _truth(spec, input, dim, keepdim, empty):
    dims = dims_of(dim, len(input.shape))
    row = dt.uint8 if input.dtype is dt.uint8 else dt.bool_
    if isinstance(dim, (list, tuple)) and not dim:              # no dimension, where other reductions take all
        return (input.detach() != 0).to(row)
    if 0 in input.shape:
        return _filled(reduced_shape(input.shape, dims, keepdim), empty, row, input._storage.device)
    words = _words(input, dims)
    if words is not None:
        return fold(spec, words != 0 if spec is ANY else _full_word(words), (0,), False, dt.int32, row).reshape(reduced_shape(input.shape, dims, keepdim))
    return fold(spec, input if input.dtype is dt.bool_ else input.detach() != 0, dims, keepdim, dt.int32, row)


_MANY = 1 << 14         # bytes
_full_word = elementwise("_full_word", "input", "(((input - 0x01010101) & ~input & (int)0x80808080) == 0)", dtypes=(dt.int32,), result="compare",
                         method=False, inplace=False, doc="Whether none of the four bytes of an element is zero (Mycroft, 1987).")


def _words(input, dims):
    """Many bytes in memory, four at a time, for tests that look at all of them."""
    st, n = input._storage, input._numel
    if input.dtype.itemsize > 1 or n < _MANY or len(dims) < len(input.shape) or not isinstance(st, Storage) or st.nbytes != n or n % 4 \
            or not input.is_contiguous() or st.node is not None and st.node.buf is None:
        return None
    return make(Storage(st.device, n, st.buffer()), Size((n // 4,)), dt.int32, n // 4)


@composite("any", repeat="ready alone small", complex=True, numpy=reference(np.any), samples=samples_of())
def any(input, dim=None, keepdim=False, *, out=None):
    """Whether some element is true (not zero)."""
    return set_out(out, _truth(ANY, input, dim, keepdim, 0))


@composite("all", repeat="ready alone small", complex=True, numpy=reference(np.all), samples=samples_of())
def all(input, dim=None, keepdim=False, *, out=None):
    """Whether every element is true (not zero)."""
    return set_out(out, _truth(ALL, input, dim, keepdim, 1))


# -- comparison of whole tensors ------------------------------------------------------------------------------------------------------
@composite("isclose", repeat="ready small", complex=True, numpy=np.isclose)
def isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """``|input - other| <= atol + rtol * |other|``, element by element; equal infinities are close."""
    if not isinstance(other, Tensor):
        raise no_number(isclose.op, 1, type(other).__name__)
    if input.dtype is not other.dtype:
        raise RuntimeError(f"{type_name(input.dtype)} did not match {type_name(other.dtype)}")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value < 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value}")
    input, other = input.detach(), other.detach()
    close = input == other
    if not input.dtype.differentiable:
        wide = other.to(dt.int64)
        return close | ((input.to(dt.int64) - wide).abs() <= atol + rtol * wide.abs())
    if equal_nan:
        close = close | (input.isnan() & other.isnan())
    return close | (((input - other).abs() <= atol + rtol * other.abs()) & (input - other).isfinite())


@composite("allclose", complex=True, numpy=np.allclose)
def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether :func:`isclose` holds for all elements, as a bool. Waits for the device."""
    return bool(_all_close(input, other, rtol, atol, equal_nan).item())


@composite("_all_close", repeat="ready whole", complex=True, method=False)
def _all_close(input, other, rtol, atol, equal_nan):
    return all(isclose(input, other, rtol, atol, equal_nan))


@composite("equal", complex=True, numpy=np.array_equal)
def equal(input, other):
    """Whether shapes and all values are equal, as a bool. Waits for the device."""
    if input._storage.device is not other._storage.device:
        raise RuntimeError(f"Expected all tensors to be on the same device, but found at least two devices, {input.device} and {other.device}!")
    return input.shape == other.shape and bool(_all_equal(input, other).item())


@composite("_all_equal", repeat="ready whole", complex=True, method=False)
def _all_equal(input, other):
    return all(input.detach() == other.detach())


@composite("sum_to_size", complex=True)
def sum_to_size(input, *size):
    """Sum over whatever broadcasting to this shape from ``size`` repeated."""
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = size[0]
    if not size:
        return input.sum()
    if tuple(size) == tuple(input.shape):
        return input
    lead = len(input.shape) - len(size)
    if lead < 0:
        raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{list(input.shape)}}}.")
    dims = tuple(range(lead)) + tuple(lead + i for i, s in enumerate(size) if s == 1 and input.shape[lead + i] != 1)
    for i, s in enumerate(size):
        if s != 1 and s != input.shape[lead + i]:
            raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{list(input.shape)}}}.")
    r = _sum(input.to(_sum_dtype(input, None)), dims, True, input.shape) if dims else input
    return r.reshape(tuple(size)) if lead else r
