"""Running sums, products and extremes along a dimension, differences and the trapezoidal rule."""
from __future__ import annotations

import numpy as np

from .._tensor.declare import composite, kernel
from .._tensor.dispatch import run
from .._tensor.foreign import NoStrides
from .._tensor.inplace import set_out, type_name
from .._tensor.refusals import dtype_into, same_dtype
from .._tensor.repeat import repeated_rule
from .._tensor.return_types import named
from .._tensor.tensor import Tensor, empty
from ..core import dtype as dt
from ..core.shape import contiguous_strides, extents, wrap_dim
from ..graph.op import REGISTRY
from . import _scan_group
from .arithmetic import lasting
from .creation import zeros
from .selection import where
from .views import embed_strided

SHORT = 1024            # longer sequences are cut into parts
PART = 256
LARGE = 4096            # elements from which on kernels are made for one short length, or few columns (CPUs)
COLUMNS = 512           # the most columns per work-item on CPUs
_Max, _Min = named("cummax", "values", "indices"), named("cummin", "values", "indices")


def _grid(device, outer, inner, part, parts, columns=0):
    """(global size, local size, parts per work-item) of a launch over (inner, outer, parts); ``columns``: of a work-item in the vector forms."""
    if columns:
        units = outer * parts
        chunk = max(1, min(16384 // (part * min(columns, inner)), units // (8 * device.compute_units)))
        return (-(-inner // columns), -(-units // chunk)), (1, 1), chunk
    if device.loops:
        return (inner, outer, parts), (1, 1, 1), 1
    return (inner, outer, parts), ((64, 1, 1) if inner >= 64 else (1, 16 if outer >= 16 else 1, 1)), 1


def scan(op, x, dim, reverse, out_dtype=None) -> Tensor:
    """The running ``op`` (sum, prod, logaddexp) of ``x`` along ``dim``."""
    out = empty(x.shape, out_dtype or x.dtype, x._storage.device)
    if x._numel == 0 or not x.shape:
        return out if x._numel == 0 else x.to(out.dtype) + 0
    _scan(op, x.contiguous(), out, *extents(x.shape, dim), reverse)
    return out


def _form(device, numel, acc, n, inner):
    """(form of the kernel, what it is made for)."""
    width = 64 // max(4, acc.itemsize)
    if not device.is_cpu or acc.is_complex:
        return "array", 0
    if numel >= LARGE and inner == 1 and n <= min(15, width):
        return "rows", n
    if numel >= LARGE and 1 < inner < 16 and n >= width:
        return "beside", inner
    return "vector" if inner == 1 else "columns" if inner >= width else "array", 0


def _columns_grid(device, outer, inner, part, parts):
    """(global size, local size, parts and columns per work-item) of scan/columns: runs as long as leaves each unit some work-items."""
    span = min(COLUMNS, max(64, inner * outer * parts // (2 * device.compute_units) + 63 & ~63))
    units = outer * parts
    chunk = max(1, min(16384 // (part * min(span, inner)), units // (8 * device.compute_units)))
    return (-(-inner // span), -(-units // chunk)), (1, 1), chunk, span


def _scan(op, x, out, outer, n, inner, reverse):
    device, acc = x._storage.device, x.dtype.acc_dtype
    if _scan_group.suits(device, inner, n):
        _scan_group.scan(op, x, None, (out,), outer, n, inner, reverse)
        return
    form, count = _form(device, x._numel, acc, n, inner)

    def phase(name, z, y, part, parts):
        params, beside = dict(T=x.dtype, R=y.dtype, OP=op, REVERSE=reverse, PHASE=name), 1 if name == "through" else parts
        if form == "columns":
            gs, ls, chunk, span = _columns_grid(device, outer, inner, part, beside)
            run(device, "scan/columns", dict(params, COLUMNS=COLUMNS), gs, ls, x, z, y, outer, n, inner, part, parts, chunk, span)
            return
        gs, ls, chunk = _grid(device, outer, inner, part, beside, dict(vector=1, beside=64, rows=1).get(form, 0))
        if form == "rows":
            chunk = -(-chunk // 16) * 16
            gs = 1, -(-outer // chunk)
        run(device, "scan/cumulate", dict(params, FORM=form, COUNT=count), gs, ls, x, z, y, outer, n, inner, part, parts, chunk)
    if n <= SHORT:
        phase("whole", out, out, n, 1)
        return
    parts = -(-n // PART)
    if parts <= SHORT and form in ("vector", "columns") and outer * (-(-inner // 128)) >= 2 * device.compute_units:      # each element is read once
        phase("through", out, out, PART, parts)
        return
    totals, scanned = empty((outer, parts, inner), acc, device), empty((outer, parts, inner), acc, device)
    phase("total", totals, totals, PART, parts)
    _scan(op, totals, scanned, outer, parts, inner, False)
    phase("apply", scanned, out, PART, parts)


def shift(x, dim, reverse=False):
    """Every element moved on by one along ``dim``; zero comes in and the last one is lost."""
    x = x.contiguous()
    strides, n = contiguous_strides(x.shape), x.shape[dim]
    size = x.shape[:dim] + (n - 1,) + x.shape[dim + 1:]
    step = strides[dim]
    if n <= 1:
        return x * 0
    return embed_strided(x.as_strided(size, strides, x._offset + (step if reverse else 0)), x.shape, size, strides, 0 if reverse else step)


def _start(x, dim, reverse):
    """True at the element where a scan along ``dim`` begins."""
    from .creation import arange
    shape = [1] * len(x.shape)
    shape[dim] = x.shape[dim]
    return (arange(x.shape[dim], device=x._storage.device) == (x.shape[dim] - 1 if reverse else 0)).reshape(shape)


def _before(x, dim, reverse):
    """Product of all elements that a scan along ``dim`` met earlier (1 for the first)."""
    return where(_start(x, dim, reverse), 1.0, shift(_cumprod(x, dim, reverse), dim, reverse))


def products_of_others(x, dim):
    """For each element the product of all others along ``dim``."""
    return _before(x, dim, False) * _before(x, dim, True)


# -- the linear recurrence on which the gradient of running products stands ---------------------------------------------------------
def _recurrence_grad(g, a, dim, reverse, lag, result):
    u = recurrence(a, g, dim, not reverse, 1 - lag)
    past = shift(result, dim, reverse) if not lag else result
    return (shift(u, dim, not reverse) if lag else u) * past, u


@kernel("_recurrence", complex=True, method=False, vjp={"a, b": _recurrence_grad})
def recurrence(a, b, dim, reverse, lag):
    """``y[t] = b[t] + a[t - lag] * y[t - 1]``."""
    out = empty(b.shape, b.dtype, b._storage.device)
    outer, n, inner = extents(b.shape, dim)
    if out._numel:
        gs, ls, _ = _grid(b._storage.device, outer, inner, n, 1)
        run(b._storage.device, "scan/recurrence", dict(T=b.dtype, REVERSE=reverse, LAG=lag), gs[:2], ls[:2], a.contiguous(), b.contiguous(), out,
            outer, n, inner)
    return out


# -- sums and products --------------------------------------------------------------------------------------------------------------
@kernel("_cumsum", complex=True, method=False, repeat="whole", vjp=dict(input=lambda g, dim, reverse: _cumsum(g, dim, not reverse)))
def _cumsum(input, dim, reverse):
    return scan("sum", input, dim, reverse)


@repeated_rule
def _cumprod_grad(g, input, dim, reverse):
    """d/dx_j = (product before j) * s_j with s_j = g_j + x_(j+1) * s_(j+1): no division, so zeros are harmless."""
    if not input.shape:
        return g
    return _before(input, dim, reverse) * recurrence(input, g, dim, not reverse, 1)


@kernel("_cumprod", complex=True, method=False, repeat="whole", vjp=dict(input=_cumprod_grad))
def _cumprod(input, dim, reverse):
    return scan("prod", input, dim, reverse)


def _logcumsumexp_grad(g, input, dim, reverse, result):
    """exp(x_j - y_j) * s_j with s_j = g_j + exp(y_j - y_(j+1)) * s_(j+1): all exponents are at most zero."""
    if not input.shape:
        return g
    following = shift(result, dim, not reverse)
    falls = where((result == following) | _start(input, dim, not reverse), 0.0, result - following)
    return where(input == result, 0.0, input - result).exp() * recurrence(falls.exp(), g, dim, not reverse, 0)


@kernel("_logcumsumexp", complex=True, method=False, repeat="whole", vjp=dict(input=_logcumsumexp_grad))
def _logcumsumexp(input, dim, reverse):
    return scan("logaddexp", input, dim, reverse)


_cumsum.op.grad_name, _cumprod.op.grad_name, _logcumsumexp.op.grad_name = "CumsumBackward0", "CumprodBackward0", "LogcumsumexpBackward0"


def _samples():
    r = np.random.default_rng(0)
    return [((r.uniform(0.5, 1.5, s), d), {}) for s, d in (((7,), 0), ((3, 4, 5), 1), ((3, 40), -1), ((40, 20), 0), ((2, 1100), 1), ((1030, 2), 0))]


_BAD_DIM = [((np.zeros((2, 3)), 2), {}, IndexError, "Dimension out of range")]


def _running(op, input, dim, dtype, out):
    dtype = dtype_into(out, dtype)
    if dtype is not None:
        input = input.to(dt.as_dtype(dtype))
    elif not input.dtype.differentiable:
        input = input.to(dt.int64)
    return set_out(out, op(input, wrap_dim(dim, len(input.shape)), False), (input,))


@composite("cumsum", repeat="whole", complex=True, inplace=True, numpy=lambda x, dim, dtype=None: np.cumsum(x, dim, dtype=dtype), samples=_samples, errors=_BAD_DIM)
def cumsum(input, dim, *, dtype=None, out=None):
    """Running sum along ``dim``. Integers become int64.

    Example:
        >>> clnn.tensor([1, 2, 3]).cumsum(0)
        tensor([1, 3, 6])
    """
    return _running(_cumsum, input, dim, dtype, out)


@composite("cumprod", repeat="whole", complex=True, inplace=True, numpy=lambda x, dim, dtype=None: np.cumprod(x, dim, dtype=dtype), samples=lambda: _samples()[:4],
           errors=_BAD_DIM)
def cumprod(input, dim, *, dtype=None, out=None):
    """Running product along ``dim``. Integers become int64."""
    return _running(_cumprod, input, dim, dtype, out)


@composite("logcumsumexp", repeat="whole", complex=True, numpy=lambda x, dim: np.logaddexp.accumulate(x, dim), samples=_samples, errors=_BAD_DIM, dtypes=dt.FLOATS)
def logcumsumexp(input, dim):
    """Logarithm of the running sum of exponentials along ``dim``, without overflow."""
    if not input.dtype.differentiable:
        raise NotImplementedError(f'"logcumsumexp" not implemented for \'{type_name(input.dtype)}\'')
    return _logcumsumexp(input, wrap_dim(dim, len(input.shape)), False)


# -- extremes -----------------------------------------------------------------------------------------------------------------------
def _extreme(input, dim, sign):
    values = empty(input.shape, input.dtype, input._storage.device)
    at = empty(input.shape, dt.int64, input._storage.device)
    if input._numel:
        shape, d = (tuple(input.shape), dim) if input.shape else ((1,), 0)
        _scan_extreme(input.contiguous(), None, values, at, *extents(shape, d), sign)
    return values, at


def _scan_extreme(x, j, values, at, outer, n, inner, sign):
    device = x._storage.device
    if _scan_group.suits(device, inner, n):
        _scan_group.scan("max" if sign == ">=" else "min", x, j, (values, at), outer, n, inner, False)
        return
    width = 8 if x.dtype.itemsize == 8 else 16
    form = "item" if j is not None or not device.is_cpu or n >= 2 ** 31 else "vector" if inner == 1 else "columns" if inner >= width else "item"

    def phase(name, zv, zi, v, i, part, parts):
        if form == "columns":
            gs, ls, chunk, span = _columns_grid(device, outer, inner, part, parts)
        else:
            (gs, ls, chunk), span = _grid(device, outer, inner, part, parts, 1 if form == "vector" else 0), 1
        run(device, "scan/extreme", dict(T=x.dtype, SIGN=sign, PHASE=name, FORM=form, POSITIONS=j is not None and name != "apply", COLUMNS=COLUMNS), gs, ls,
            x, zv, zi, v, i, outer, n, inner, part, parts, chunk, span)
    alone = form != "item" and outer * -(-inner // 128) >= 2 * device.compute_units                   # enough to do without parts
    if n <= SHORT or alone or j is not None:                     # a million parts: one work-item each is enough
        phase("whole", x, at if j is None else j, values, at, n, 1)
        return
    parts = -(-n // PART)
    tv, sv = (empty((outer, parts, inner), x.dtype, device) for _ in range(2))
    ti, si = (empty((outer, parts, inner), dt.int64, device) for _ in range(2))
    phase("total", x, ti, tv, ti, PART, parts)
    _scan_extreme(tv, ti, sv, si, outer, parts, inner, sign)
    phase("apply", sv, si, values, at, PART, parts)


@repeated_rule
def _extreme_grad(g, dim, indices):
    g = g[0] if isinstance(g, tuple) else g
    if not g.shape:
        return g
    return (g * 0).scatter_add(dim, indices, g)


@kernel("_cummax", method=False, repeat="whole", outputs=("values", "indices"), vjp=dict(input=_extreme_grad))
def _cummax(input, dim):
    return _extreme(input, dim, ">=")


@kernel("_cummin", method=False, repeat="whole", outputs=("values", "indices"), vjp=dict(input=_extreme_grad))
def _cummin(input, dim):
    return _extreme(input, dim, "<=")


_cummax.op.grad_name, _cummin.op.grad_name = "CummaxBackward0", "CumminBackward0"


def _np_latest(fn):
    def call(x, dim):
        values = fn.accumulate(x, dim)
        shape = [1] * x.ndim
        shape[dim] = x.shape[dim]
        at = np.where(x == values, np.arange(x.shape[dim]).reshape(shape), 0)
        return values, np.maximum.accumulate(at, dim)
    return call


def _placed(op, out, got):
    if out is None:
        return got
    same_dtype(op, out, got)
    return set_out(tuple(out), got)


@composite("cummax", repeat="whole", numpy=_np_latest(np.maximum), samples=_samples, errors=_BAD_DIM)
def cummax(input, dim, *, out=None):
    """Running maximum along ``dim`` and the latest position that holds it, as ``(values, indices)``."""
    return _placed(cummax.op, out, _Max(*_cummax(input, wrap_dim(dim, len(input.shape)))))


@composite("cummin", repeat="whole", numpy=_np_latest(np.minimum), samples=_samples, errors=_BAD_DIM)
def cummin(input, dim, *, out=None):
    """Running minimum along ``dim`` and the latest position that holds it, as ``(values, indices)``."""
    return _placed(cummin.op, out, _Min(*_cummin(input, wrap_dim(dim, len(input.shape)))))


# -- differences and integrals --------------------------------------------------------------------------------------------------------
def _slice(x, dim, start, length):
    """Elements ``start .. start + length`` of a dimension, as a view."""
    try:
        return x.as_strided(x.shape[:dim] + (length,) + x.shape[dim + 1:], x._strides, x._offset + start * x._strides[dim])
    except NoStrides:
        return x.narrow(dim, start, length)


@composite("diff", splice=True, repeat="ready small", complex=True, numpy=lambda x, n=1, dim=-1: np.diff(x, n, dim),
           samples=lambda: [((np.arange(12.0).reshape(3, 4) ** 2,), {}), ((np.arange(12.0).reshape(3, 4) ** 2, 2, 1), {})])
def diff(input, n=1, dim=-1, prepend=None, append=None):
    """Differences of neighbours along ``dim``, ``n`` times."""
    if not input.shape:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    d = wrap_dim(dim, len(input.shape))
    parts = [t for t in (prepend, input, append) if t is not None]
    for t in parts if len(parts) > 1 else ():
        if len(t.shape) != len(input.shape):
            raise RuntimeError("diff expects prepend or append to be the same dimension as input")
        for i, (own, size) in enumerate(zip(input.shape, t.shape)):
            if i != d and own != size:
                raise RuntimeError("diff expects the shape of tensor to prepend or append to match that of input except along the differencing dimension; "
                                   f"input.size({i}) = {own}, but got tensor.size({i}) = {size}")
    if len(parts) > 1 and n:
        input = REGISTRY["cat"].fn(parts, d)
    for _ in range(min(n, input.shape[d])):
        m = max(input.shape[d] - 1, 0)
        later, earlier = (_slice(input, d, 1, m), _slice(input, d, 0, m)) if m else (_slice(input, d, 0, 0),) * 2
        input = later ^ earlier if input.dtype is dt.bool_ else later - earlier
    return input if n else input.clone()


def _np_trapezoid(y, x=None, *, dx=1.0, dim=-1):
    return np.trapezoid(y, x, dx, dim)


@composite("trapezoid", splice=True, repeat="ready whole", complex=True, aliases=("trapz",), method=False, numpy=_np_trapezoid,
           samples=lambda: [((np.arange(12.0).reshape(3, 4) ** 2,), {}), ((np.arange(12.0).reshape(3, 4), np.array([0.0, 1, 3, 4])), {})])
def trapezoid(y, x=None, *, dx=None, dim=-1):
    """Integral of samples ``y`` along ``dim`` by the trapezoidal rule, at points ``x`` or ``dx`` apart."""
    d = wrap_dim(dim, len(y.shape))
    _one_each("trapezoid", y, x, d)
    if not y.shape[d]:
        return zeros([n for i, n in enumerate(y.shape) if i != d], dtype=y.dtype, device=y.device)      # of its dtype, and without a history
    terms = _trapezoids(y, x, 1 if dx is None else dx, d)
    return terms.sum(d)


@composite("cumulative_trapezoid", repeat="ready whole", complex=True, method=False)
def cumulative_trapezoid(y, x=None, *, dx=None, dim=-1):
    """Running :func:`trapezoid`."""
    d = wrap_dim(dim, len(y.shape))
    _one_each("cumulative_trapezoid", y, x, d)
    return _trapezoids(y, x, 1 if dx is None else dx, d).cumsum(d)


def _one_each(name, y, x, d):
    if not y.shape:
        raise IndexError(f"{name}: Dimension specified as -1 but tensor has no dimensions")
    if x is not None and len(x.shape) == 1 and x.shape[0] != y.shape[d]:
        raise RuntimeError(f"{name}: There must be one `x` value for each sample point")


def _trapezoids(y, x, dx, d):
    m = max(y.shape[d] - 1, 0)
    pairs = _slice(y, d, 0, m) + _slice(y, d, min(1, y.shape[d]), m)
    if x is None:
        return lasting(pairs * (dx / 2.0))
    if len(x.shape) == 1 and len(y.shape) > 1:
        shape = [1] * len(y.shape)
        shape[d] = x.shape[0]
        x = x.reshape(shape)
    elif len(x.shape) < len(y.shape):
        x = x.reshape((*[1] * (len(y.shape) - len(x.shape)), *x.shape))
    return lasting(pairs * diff(x, 1, d) / 2.0)
