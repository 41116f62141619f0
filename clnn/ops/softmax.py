"""Softmax, log-softmax and what is made of them: one launch forward, one backward, along any dimension without transposing."""
from __future__ import annotations

import numpy as np

from .._tensor.declare import composite, kernel
from .._tensor.dispatch import run
from .._tensor.inplace import set_out, type_name
from .._tensor.tensor import empty
from .._tensor.worded import absent, is_functional, refuse
from ..core import dtype as dt
from ..core import symbols
from ..core.shape import extents, wrap_dim
from ..core.warn import warn


FEW = 5                     # elements of a row from which on a vector serves it
WIDE = 256                  # columns side by side that a work-item takes, at most (kernels/softmax/rows.cl.mako)
LONG = 2048                 # elements of a row from which on a GPU, which rarely has more than a few hundred such rows, takes more work-items for each
TALL = 8192                 # elements of a column from which on columns are too few to share the work: reductions cut them into parts
HELD = 8, 16                # elements of a row that a work-item of a GPU keeps: if possible, and at most: it shares its unit with too few others then
LARGEST = 256               # work-items of a group: NVIDIA's driver names that limit for such kernels even where they declare more
SEVERAL = 128               # elements up to which rows are worked on together (kernels/softmax/few.cl.mako)


def row_plan(device, rows, n, inner=1, vector=True, lanes=0, whole=1):
    """How rows are given to work-items (see kernels/softmax/rows.cl.mako): (FORM, LANES, chunk, global size, local size).
    ``lanes``: of a vector, where the template works on short rows together; ``whole``: elements that GPUs read as one (:func:`aligned`)."""
    chunk = _chunk(rows, n, device.compute_units)
    if lanes and device.is_cpu and inner == 1 and FEW <= n <= SEVERAL and (n < lanes or rows >= lanes):
        chunk = lanes * _rounds(rows, n, lanes, device.compute_units)
        return "few" if n < lanes else "several", 1, chunk, (-(-rows // chunk),), (1,)
    if vector and device.is_cpu and inner == 1 and n >= 16:
        return "vector", 1, chunk, (-(-rows // chunk),), (1,)
    if device.is_cpu and inner >= 16:
        cols = max(16, min(WIDE, -(-rows // (2 * device.compute_units))))      # runs of memory as long as may be, but something for all units
        even = -(-inner // -(-inner // cols))
        cols = min(WIDE, -(-even // 16) * 16)
        return "wide", 1, cols, (rows // inner * -(-inner // cols),), (1,)
    if device.loops:
        if inner > 1 or n < 32:
            return "block", 1, 1, (rows // inner * -(-inner // 64) if inner > 1 else -(-rows // 64),), (1,)
        return "loop", 64 if n >= 256 else 16, chunk, (-(-rows // chunk),), (1,)
    if inner == 1 and not device.is_cpu and n <= HELD[1] * largest(device):
        many, size, each = team_of(device, rows, n // whole, whole)
        return f"team-{many}-{size}-{each * whole}-{whole}", 1, 1, (-(-rows // (size // many)) * size,), (size,)
    if inner == 1 and n > 64:
        wide = 64 if n < LONG or device.is_cpu or device.max_work_group < LARGEST else LARGEST
        return "group", wide, 1, (rows * wide,), (wide,)
    if inner > 1:
        return "column", 1, 1, (inner, rows // inner), (64 if inner >= 64 else 16, 1)
    return "item", 1, 1, (rows,), (64,)


@symbols.computed
def _chunk(rows, n, units):
    """Rows of a work-item: some thousand elements, or all rows in a few tasks for each of the units."""
    return max(1, min(max(4096 // max(n, 1), -(-rows // 256)), -(-rows // (4 * units))))


@symbols.computed
def _rounds(rows, n, lanes, units):
    """How often a work-item takes as many rows as there are lanes."""
    return max(1, min(16384 // (n * lanes), rows // (4 * lanes * units)))


def largest(device) -> int:
    """Work-items of the largest group: a power of two."""
    return 1 << (min(LARGEST, device.max_work_group).bit_length() - 1)


def team_of(device, rows, n, whole=1):
    """(work-items of a row, of a group, vectors of each), fewer of which fill a GPU where rows are few; ``n`` vectors of ``whole`` elements."""
    size = largest(device)
    many = min(size, 1 << (-(-n // max(1, (HELD[0] if whole < 8 else HELD[1]) // whole)) - 1).bit_length())
    while many < min(size, n) and rows * many < 1 << 17 and n > 2 * many:
        many *= 2
    return many, size, -(-n // many)


def aligned(device, n, *tensors) -> int:
    """Elements of rows of ``n`` that a GPU reads and writes as one vector of 16 bytes, or half as many."""
    if device.is_cpu:
        return 1
    for whole in (16 // tensors[0].dtype.itemsize, 8 // tensors[0].dtype.itemsize):
        if whole > 1 and n % whole == 0 and not any([t._offset % whole for t in tensors]):
            return whole
    return 1


def _launch(path, tensors, out, dim, log):
    shape, device = out.shape, out._storage.device
    outer, n, inner = extents(shape, dim)
    if out._numel:
        form, lanes, chunk, gs, ls = row_plan(device, outer * inner, n, inner, lanes=64 // out.dtype.acc_dtype.itemsize, whole=aligned(device, n, *tensors))
        run(device, path, dict(T=out.dtype, FORM=form, LANES=lanes, LOG=log), gs, ls, *tensors, out, outer * inner, n, inner, chunk)
    return out


def _is_tall(shape, dim):
    _, n, inner = extents(shape, dim)
    return inner > 1 and n >= TALL


def _tall(input, dim, log):
    """The same from operators, which read memory more often but in as many parts as there is room for."""
    x = input.to(input.dtype.acc_dtype)
    x = x - input.amax(dim, True)
    e = x.exp()
    return (x - e.sum(dim, True).log() if log else e / e.sum(dim, True)).to(input.dtype)


def _tall_backward(grad, output, dim, log):
    g, y = grad.to(output.dtype.acc_dtype), output.to(output.dtype.acc_dtype)
    return (g - y.exp() * g.sum(dim, True) if log else y * (g - (g * y).sum(dim, True))).to(output.dtype)


def _forward(input, dim, log):
    if _is_tall(input.shape, dim):
        return _tall(input, dim, log)
    if log and input.dtype.round_trip and dim == len(input.shape) - 1 and input._storage.device.is_cpu:
        log = 2
    return _launch("softmax/forward", [input.contiguous()], empty(input.shape, input.dtype, input._storage.device), dim, log)


def _back(grad, output, dim, log):
    if grad.dtype is not output.dtype:
        grad = grad.to(output.dtype)
    if _is_tall(output.shape, dim):
        return _tall_backward(grad, output, dim, log)
    return _launch("softmax/backward", [grad.contiguous(), output.contiguous()], empty(output.shape, output.dtype, output._storage.device),
                   dim, log)


@kernel("_softmax_backward", method=False, repeat="whole", vjp=dict(
    grad=lambda g, output, dim: _softmax_backward(g, output, dim),
    output=lambda g, grad, output, dim: g * (grad - (grad * output).sum(dim, True)) - grad * (g * output).sum(dim, True)))
def _softmax_backward(grad, output, dim):
    return _back(grad, output, dim, 0)


@kernel("_log_softmax_backward", method=False, repeat="whole", vjp=dict(
    grad=lambda g, output, dim: g - (g * output.exp()).sum(dim, True),
    output=lambda g, grad, output, dim: -g * output.exp() * grad.sum(dim, True)))
def _log_softmax_backward(grad, output, dim):
    return _back(grad, output, dim, 1)


@kernel("_softmax", method=False, repeat="whole", vjp=dict(input=lambda g, result, dim: _softmax_backward(g, result, dim)))
def _softmax(input, dim):
    return _forward(input, dim, 0)


@kernel("_log_softmax", method=False, repeat="whole", vjp=dict(input=lambda g, result, dim: _log_softmax_backward(g, result, dim)))
def _log_softmax(input, dim):
    return _forward(input, dim, 1)


_softmax.op.grad_name, _log_softmax.op.grad_name = "SoftmaxBackward0", "LogSoftmaxBackward0"


def _prepared(name, input, dim, dtype):
    if dim is None or dim is absent:
        if not is_functional():
            refuse(name, (input, dim))
        warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.")
        dim = 0 if input.ndim in (0, 1, 3) else 1
    if dtype is not None and dtype.__class__ is not int:       # by place, a number is functional's _stacklevel, and the dtype comes after it
        input = input.to(dt.as_dtype(dtype))
    if not input.dtype.is_floating_point:
        raise NotImplementedError(f"\"{name}\" not implemented for '{type_name(input.dtype)}'; it takes float tensors (give dtype=)")
    return input, wrap_dim(dim, input.ndim)


def _np_softmax(x, dim=-1, **_):
    e = np.exp(x - x.max(dim, keepdims=True))
    return e / e.sum(dim, keepdims=True)


def _samples():
    x = np.random.default_rng(0).normal(0, 2, (3, 5, 70))
    return [((x, 1), {}), ((x, -1), {}), ((x[:, :, :9], 2), {}), ((x.reshape(50, 21), 1), {}), ((x[0, 0], 0), {}), ((x, 0), {})]


_ERRORS = (((np.zeros((2, 3)), 2), {}, IndexError, "Dimension out of range"),)


@composite("softmax", repeat=True, torch="nn.functional.softmax", numpy=_np_softmax, samples=_samples, errors=_ERRORS)
def softmax(input, dim=absent, dtype=None, _dtype=None, *, _stacklevel=3, out=None):
    """``exp(x_i) / sum_j exp(x_j)`` along ``dim``, computed from ``x - max(x)``.

    Args:
        input: ``(*)``.
        dim: the dimension that sums to 1.
        dtype: cast the input to it first.

    Example:
        >>> clnn.softmax(clnn.zeros(2), 0)
        tensor([0.5000, 0.5000])
    """
    r = _softmax(*_prepared("softmax", input, dim, dtype if _dtype is None else _dtype))
    return r if out is None else _into(out, r)


@composite("log_softmax", repeat=True, torch="nn.functional.log_softmax", numpy=lambda x, dim=-1: np.log(_np_softmax(x, dim)), samples=_samples, errors=_ERRORS)
def log_softmax(input, dim=absent, dtype=None, _dtype=None, *, _stacklevel=3, out=None):
    """``x_i - log(sum_j exp(x_j))`` along ``dim``, without overflow."""
    r = _log_softmax(*_prepared("log_softmax", input, dim, dtype if _dtype is None else _dtype))
    return r if out is None else _into(out, r)


def _into(out, r):
    return set_out(out, r)


@composite("softmin", splice=True, repeat="ready small", method=False, torch="nn.functional.softmin", numpy=lambda x, dim=-1: _np_softmax(-x, dim), samples=_samples)
def softmin(input, dim=None, dtype=None, _dtype=None, *, _stacklevel=3):
    """``softmax(-x)`` along ``dim``."""
    return _softmax(*_prepared("softmin", -input, dim, dtype if _dtype is None else _dtype))


@composite("gumbel_softmax", method=False, torch="nn.functional.gumbel_softmax")
def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """A sample of the Gumbel-softmax distribution: ``softmax((logits + gumbel noise) / tau)``.

    With ``hard`` the result is one-hot, with the gradient of the soft sample (Jang, Gu, Poole, 2017; Maddison, Mnih, Teh, 2017).
    """
    from .random import exponential_like
    if eps != 1e-10:
        warn("`eps` parameter is deprecated and has no effect.")
    tiny = 1e-20 if logits.dtype in (dt.float32, dt.float64) else 1e-7
    gumbels = -(exponential_like(logits.detach()) + tiny).log()
    soft = softmax((logits + gumbels) / tau, dim)
    if not hard:
        return soft
    index = soft.detach().argmax(dim, keepdim=True)
    one_hot = _positions(soft, dim).eq(index).to(soft.dtype)
    return one_hot - soft.detach() + soft


def _positions(t, dim):
    """0, 1, 2... along ``dim``, broadcast over the other dimensions."""
    from .creation import arange
    dim = wrap_dim(dim, t.ndim)
    shape = [1] * t.ndim
    shape[dim] = t.shape[dim]
    return arange(t.shape[dim], device=t.device).reshape(shape)
