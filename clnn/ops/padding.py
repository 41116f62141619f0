"""Extending tensors at their edges: ``pad`` with constants or with the tensor's own values."""
from __future__ import annotations

import math

import numpy as np

from .._tensor.declare import composite, kernel
from .._tensor.dispatch import run
from .._tensor.formats import keeps_format
from .._tensor.repeat import repeated
from .._tensor.tensor import empty, writable
from ..core.limits import check_fits
from ..core.shape import Size, contiguous_strides, whole
from . import _scatter
from .creation import filled
from .indexing import _values
from .joining import write_regions


_FEW = 1 << 13       # elements that are padded in one launch, however they lie
_ROWS = 32           # rows that keep all cores busy
_SPAN = 1 << 15      # places of a long row that a work-item does


def _pairs(pad, rank):
    """(before, after) per dimension from PyTorch's flat list, which starts at the last dimension."""
    before, after = [0] * rank, [0] * rank
    for k in range(len(pad) // 2):
        before[rank - 1 - k], after[rank - 1 - k] = whole(pad[2 * k]), whole(pad[2 * k + 1])
    return before, after


def _inside(g, before, shape):
    return g[tuple(slice(b, b + s) for b, s in zip(before, shape))]


@kernel("_constant_pad", complex=True, method=False, vjp=dict(input=lambda g, before, shape: writable(_inside(g, before, shape))))
@keeps_format(1)
def _constant_pad(input, before, after, value, shape):
    """``input`` (of ``shape``) with non-negative numbers of constants before and after each dimension."""
    node, out_shape = input._storage.node, Size(b + s + a for b, s, a in zip(before, shape, after))
    many = input._numel > _FEW
    if not input._numel or many and (node is not None and node.buf is None or not input.is_contiguous() or math.prod(out_shape[:-1]) < _ROWS):
        return _constant_around(input, before, value, out_shape)
    return _padded(input, before, value, out_shape)


def _constant_around(input, before, value, out_shape):
    """The constant everywhere and ``input`` over it, which is computed or read by its strides right there."""
    out = empty(out_shape, input.dtype, input._storage.device)
    strides = contiguous_strides(out_shape)
    offset = sum(b * s for b, s in zip(before, strides))
    write_regions(out, [(filled(out_shape, value, input.dtype, input._storage.device), strides, 0), (input, strides, offset)])
    return out


@repeated
def _padded(input, before, value, out_shape):
    """All of the result in one launch over its rows."""
    x, device, dtype = input.contiguous(), input._storage.device, input.dtype
    out = empty(out_shape, dtype, device)
    sizes, first = list(zip(x.shape, out_shape, before)), next(d for d, (n, m) in enumerate(zip(x.shape, out_shape)) if n != m)
    while len(sizes) > first + 1 and sizes[-1][0] == sizes[-1][1] < 64 and math.prod(out_shape[:len(sizes) - 2]) >= _ROWS:      # short rows that are whole
        width = sizes.pop()[0]
        sizes[-1] = tuple([n * width for n in sizes[-1]])
    shape, over, starts = zip(*sizes)
    gs, ls, chunk, geometry = _launch_of(device, shape, over, starts, len(shape) - first, over, device.is_cpu, True)
    with np.errstate(all="ignore"):
        word = np.asarray(value).astype(dtype.np).tobytes()
    run(device, "indexing/pad", dict(U=_scatter.width(dtype), RANK=len(shape) - first, MODE="constant", LOOP=device.is_cpu), gs, ls, x, out,
        math.prod(over[:-1]), chunk, over[-1] if ls == (1,) else _SPAN, word, *geometry)
    return out


_constant_pad.op.grad_name = "ConstantPadNdBackward0"


@composite("constant_pad_nd", repeat="ready small", complex=True, method=False, samples=lambda: [
    ((_values(2, 3), (1, 2, 0, 1), 0.5), {}), ((_values(2, 3), (-1, 2)), {})])
def constant_pad(input, pad, value=0):
    """``pad`` with a constant; negative numbers cut off."""
    rank = len(input.shape)
    if isinstance(pad, int):
        raise TypeError("pad(): argument 'pad' (position 2) must be tuple of ints, not int")
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    if len(pad) > 2 * rank:
        raise RuntimeError(f"Length of pad should be no more than twice the number of dimensions of the input. Pad length is {len(pad)} while the "
                           f"input has {rank} dimensions.")
    before, after = _pairs(pad, rank)
    shape = tuple(input.shape)
    for d in range(rank):
        if shape[d] + before[d] + after[d] < 0:
            raise RuntimeError(f"The input size {input.shape[d]}, plus negative padding {before[d]} and {after[d]} resulted in a negative output "
                               f"size, which is invalid. Check dimension {d} of your input.")
    x = input
    if min(before, default=0) < 0 or min(after, default=0) < 0:
        x = input[tuple([slice(max(0, -b), s - max(0, -a)) for b, a, s in zip(before, after, shape)])]
        before, after = [max(0, b) for b in before], [max(0, a) for a in after]
    if not any(before) and not any(after):
        return x.clone()
    check_fits(value, x.dtype)
    return _constant_pad(x, tuple(before), tuple(after), value, x.shape)


# -- the tensor's own values ----------------------------------------------------------------------------------------------------------------
@kernel("_mode_pad", complex=True, method=False, repeat=True, vjp=dict(
    input=lambda g, mode, before, after, shape, rank: _mode_pad_backward(g, mode, before, after, shape, rank)))
@keeps_format(1)
def _mode_pad(input, mode, before, after, shape, rank):
    out_shape = Size(b + s + a for b, s, a in zip(before, shape, after))
    x, device = input.contiguous(), input._storage.device
    out = empty(out_shape, input.dtype, device)
    if out._numel == 0:
        return out
    gs, ls, chunk, geometry = _launch_of(device, shape, out_shape, before, rank, out_shape, device.is_cpu, True)
    run(device, "indexing/pad", dict(U=_scatter.width(x.dtype), RANK=rank, MODE=mode, LOOP=device.is_cpu), gs, ls, x, out, math.prod(out_shape[:-1]), chunk,
        out_shape[-1] if ls == (1,) else _SPAN, *geometry)
    return out


def _launch_of(device, shape, out_shape, before, rank, over, loop, pieces=False):
    """(global size, local size, rows of a work-item, sizes and paddings of the last ``rank`` dimensions) of a launch over the rows of ``over``.

    Of a few long rows a work-item does ``_SPAN`` places where ``pieces`` may be: the global size has another dimension.
    """
    rows, last = math.prod(over[:-1]), over[-1]
    chunk = max(1, min(8192 // last, rows // (8 * device.compute_units))) if loop else 1
    gs, ls = ((-(-rows // chunk),), (1,)) if loop else ((last, rows), (64 if last >= 64 else 16, 1))
    if loop and pieces and last > _SPAN and rows < 8 * device.compute_units:
        gs, ls = (rows, -(-last // _SPAN)), (1, 1)
    return gs, ls, chunk, [v for d in range(len(shape) - rank, len(shape)) for v in (shape[d], out_shape[d], before[d])]


@kernel("_mode_pad_backward", complex=True, method=False, repeat=True, vjp=dict(
    grad=lambda g, mode, before, after, shape, rank: _mode_pad(g, mode, before, after, shape, rank)))
def _mode_pad_backward(grad, mode, before, after, shape, rank):
    device, gx = grad._storage.device, empty(shape, grad.dtype, grad._storage.device)
    if gx._numel:
        loop = device.is_cpu and grad.dtype.acc_dtype is grad.dtype
        gs, ls, chunk, geometry = _launch_of(device, shape, grad.shape, before, rank, gx.shape, loop)
        run(device, "indexing/pad_backward", dict(T=grad.dtype, RANK=rank, MODE=mode, LOOP=loop), gs, ls, grad.contiguous(), gx, math.prod(shape[:-1]), chunk,
            *geometry)
    return gx


_NAMES = dict(reflect="ReflectionPadBackward0", replicate="ReplicationPadBackward0", circular="PadCircularBackward0")
_mode_pad.op.grad_name = _NAMES["reflect"]


def _check_mode(input, mode, before, after, rank):
    shape = input.shape
    for d in reversed(range(len(shape) - rank, len(shape))):
        pads = f"padding ({before[d]}, {after[d]}) at dimension {d} of input {list(shape)}"
        if mode == "reflect" and max(before[d], after[d]) >= shape[d]:
            raise RuntimeError(f"Argument #{2 + 2 * (len(shape) - d)}: Padding size should be less than the corresponding input dimension, but got: {pads}")
        if mode == "circular" and max(before[d], after[d]) > shape[d]:
            raise RuntimeError(f"Padding value causes wrapping around more than once. ({pads})")
        if shape[d] + before[d] + after[d] < (0 if mode == "circular" else 1):
            raise RuntimeError(f"pad: the output would have no elements along dimension {d}: {pads}")
        if shape[d] == 0:
            raise RuntimeError(f"pad: cannot extend an empty dimension with mode {mode!r}: {pads}")


def _np_pad(x, pad, mode="constant", value=0):
    pairs = [(0, 0)] * (x.ndim - len(pad) // 2) + [(pad[2 * k], pad[2 * k + 1]) for k in range(len(pad) // 2 - 1, -1, -1)]
    name = dict(reflect="reflect", replicate="edge", circular="wrap").get(mode, mode)
    return np.pad(x, pairs, name, **(dict(constant_values=value) if mode == "constant" else {}))


@composite("pad", splice=True, repeat="ready small", complex=True, method=False, torch="nn.functional.pad", numpy=_np_pad, samples=lambda: [
    ((_values(2, 3), (1, 2)), {}), ((_values(2, 3), (1, 2, 0, 1), "constant", 5.0), {}), ((_values(2, 3, 4), (2, 1), "reflect"), {}),
    ((_values(2, 3, 4, 4), (2, 1, 1, 3), "reflect"), {}),
    ((_values(2, 3, 4), (2, 5), "replicate"), {}), ((_values(2, 3, 4), (-4, 5), "replicate"), {}), ((_values(2, 3, 4), (4, 1), "circular"), {}),
    ((_values(2, 2, 37), (30, 5), "reflect"), {}), ((_values(1, 2, 5, 19), (3, 2, 1, 4), "circular"), {}),
    ((_values(1, 2, 3, 20), (-2, 3, 2, -1), "replicate"), {})])
def pad(input, pad, mode="constant", value=None):
    """Extended at the edges: ``pad = (left, right, top, bottom, front, back)`` for the last, the last two or three dimensions, and so on.

    Args:
        mode: ``'constant'`` (``value``, default 0), ``'reflect'`` (mirrored, the edge itself not repeated), ``'replicate'`` (the edge) or
            ``'circular'`` (from the other side); the last three extend the last 1 to 3 dimensions of a (N, C, *) or (C, *) tensor.

    Negative numbers cut off.

    Example:
        >>> clnn.nn.functional.pad(clnn.tensor([[1, 2, 3]]), (1, 1), mode="reflect")
        tensor([[2, 1, 2, 3, 2]])
    """
    rank = len(input.shape)
    if isinstance(pad, int):
        raise TypeError("pad(): argument 'pad' (position 2) must be tuple of ints, not int")
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) > 2 * rank:
        raise RuntimeError("Padding length should be less than or equal to two times the input dimension but got padding length "
                           f"{len(pad)} and input of dimension {rank}")
    if mode == "constant":
        return constant_pad(input, pad, 0 if value is None else value)
    if mode not in _NAMES:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if value is not None and value != 0:
        raise RuntimeError(f"Padding mode \"{mode}\" doesn't take in value argument")
    count = len(pad) // 2
    if not 1 <= count <= 3 or not count + 1 <= rank <= count + 2:
        raise NotImplementedError(f"Padding size {len(pad)} is not supported for {rank}D input tensor.\nSupported combinations for non-constant padding:\n"
                                  "  - 2D or 3D input: padding size = 2 (pads last dimension)\n  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
                                  "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)")
    before, after = _pairs(pad, rank)
    if mode == "circular" and any(v < 0 for v in before + after):       # what is cut off does not come in again on the other side
        input = constant_pad(input, [min(0, int(v)) for v in pad])
        before, after = [max(0, b) for b in before], [max(0, a) for a in after]
    _check_mode(input, mode, before, after, count)
    if mode == "circular":
        input = input.contiguous()                                      # the result is in rows, as PyTorch's
    return _mode_pad(input, mode, tuple(before), tuple(after), input.shape, count)
