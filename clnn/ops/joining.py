"""Joining tensors."""
from __future__ import annotations

import itertools
import math

import numpy as np

from .._tensor import formats
from .._tensor.declare import composite, kernel, kind_name
from .._tensor.device import resolve
from .._tensor.dispatch import broadcast, run
from .._tensor.inplace import refuse_overlap, set_out, type_name
from .._tensor.interop import from_array
from .._tensor.tensor import Tensor, empty, make_view
from ..core import dtype as dt
from ..core import native
from ..core.shape import Size, collapse, contiguous_strides, is_contiguous, view_strides, whole, wrap_dim
from ..core.symbols import memo
from ..core.warn import first_time, warn
from ..graph import fuse
from ..graph.node import Node
from ..graph.tasks import work_group
from . import _scatter
from ._batches import in_one_piece
from .creation import filled, shared
from .indexing import _values
from .triangular import places_of_triangle
from .views import _expand, _layout, _seen_as


_RECOMPUTE = 6       # a pending input this small is evaluated in place even if it may be wanted again
_AT_ONCE = 8         # inputs per launch
_MOST = 16           # the same where a work-item takes one input after the other; their arguments fill half of the 1024 bytes that every driver takes


# -- writing into regions -----------------------------------------------------------------------------------------------------------------
def source_node(t, dtype):
    """The pending computation of ``t`` if it may be evaluated where it is needed, else a plain read, as a node of dtype ``dtype``."""
    st = t._storage
    node = st.node
    if node is not None and node.buf is None and node.reduce is None and t._dense and t._numel == node.numel and t.dtype is node.dtype \
            and dtype is t.dtype and (node.shape == t.shape or node.linear) and node.count <= _RECOMPUTE:
        if node.shape != t.shape:
            fuse.reshape_node(node, t.shape)
        return node
    fuse.realize(st)
    return Node(fuse.CAST, ((st.buf, t.dtype, t._offset, t._strides),), t.dtype, dtype, t.shape, t._numel, st.device, 1, 1, False)


def write_regions(out, parts):
    """Evaluate tensors into strided regions of the fresh dense ``out``: (tensor, strides, offset) each; equal shapes share launches."""
    device, buf, dtype = out._storage.device, out._storage.buf, out.dtype
    if device.kind == "meta":
        return
    with device.lock:                                   # another thread may be about to compute what is pending here
        _write_regions(device, buf, dtype, [p for p in parts if p[0]._numel])


def _write_regions(device, buf, dtype, parts):
    while parts:
        shape, take, leaves, count = parts[0][0].shape, 0, 0, 0
        group, targets = fuse.Group(), []
        for t, strides, offset in parts[:_AT_ONCE]:
            node = source_node(t, dtype)
            leaves, count = leaves + node.leaves, count + node.count
            if t.shape != shape or targets and (leaves > 12 or count > 40):
                break
            at = group.index.get(node)
            targets.append((group.visit(node) if at is None else at, dtype, buf, offset, strides))
            take += 1
        take = max(1, 1 << (take.bit_length() - 1)) if take < len(parts) or take & (take - 1) else take      # few distinct kernels: 1, 2, 4, 8
        if take < len(targets):
            group, targets = fuse.Group(), []
            for t, strides, offset in parts[:take]:
                node = source_node(t, dtype)
                at = group.index.get(node)
                targets.append((group.visit(node) if at is None else at, dtype, buf, offset, strides))
        fuse.run(device, group, shape, parts[0][0]._numel, targets)
        parts = parts[take:]


def _row_step(t, dim):
    """Elements from one of the rows that the dimensions from ``dim`` on make to the next; None where these are not dense or not evenly spaced."""
    if t._dense or t.is_contiguous():
        return math.prod(t.shape[dim:])
    sizes, (walk,) = collapse(tuple(t.shape[:dim]), (t._strides[:dim],))
    return walk[0] if len(sizes) == 1 and is_contiguous(t.shape[dim:], t._strides[dim:]) else None


@memo(1024)
def _shares(count, loop):
    """(first, end) of the inputs of each launch: few different numbers of them, as each is a kernel of its own."""
    shares, at = [], 0
    while at < count:
        take = min(_MOST if loop and count - at >= _MOST else _AT_ONCE, count - at)
        shares.append((at, at + take))
        at += take
    return shares


def _cat_rows(device, dtype, some, sizes, steps, out, at, rows, pitch):
    """A launch of CPUs: rows of ``sizes`` elements go to those of ``out`` from column ``at`` on."""
    width = sum(sizes)
    seg, chunk = max(8192, -(-width // 64)), max(1, 8192 // max(1, width), -(-rows // 64))
    target = make_view(out, out.shape, out._strides, at) if at else out
    run(device, "indexing/cat", dict(U=_scatter.width(dtype), K=len(some), LOOP=True, E=1, DOWN=False), (-(-width // seg), -(-rows // chunk)), (1, 1),
        *some, target, *sizes, *steps, rows, pitch, seg, chunk)


def _cat_columns(device, dtype, some, sizes, steps, out, at, rows, pitch):
    """The same of other devices: up to 16 bytes at a time, and several of them by each work-item where the device is full."""
    U, per = _scatter.wider(dtype, *sizes, *steps, *[t._offset for t in some], at, pitch)
    sizes, steps, at, pitch = [n // per for n in sizes], [n // per for n in steps], at // per, pitch // per
    width = sum(sizes)
    wide, high = local = work_group(device, width, rows)
    E = 4 if width * rows >= device.compute_units * 8192 else 1
    down = width < 4 * wide
    items = (width, -(-rows // (E * high)) * high) if down else (-(-width // (E * wide)) * wide, rows)
    operands = [part for t in some for part in (t._storage, t._offset // per)]
    run(device, "indexing/cat", dict(U=U, K=len(some), LOOP=False, E=E, DOWN=down), items, local, *operands, out._storage, at, *sizes, *steps, rows, pitch, 1, 1)


def _write_side_by_side(out, tensors, dim, lengths):
    """The launch for inputs whose rows lie in memory densely, as most do: much less host work than general regions. False if it does not fit."""
    dtype = out.dtype
    if any(t.dtype is not dtype or t._storage.node is not None for t in tensors):
        return False
    steps = [_row_step(t, dim) for t in tensors]
    if None in steps:
        return False
    device, shape = out._storage.device, out.shape
    rows, inner = math.prod(shape[:dim]), math.prod(shape[dim + 1:])
    pitch = shape[dim] * inner
    if rows * pitch == 0:
        return True
    if device.is_cpu and pitch == len(tensors) and set(steps) == {1} and 1 < pitch < 16 and rows * pitch >= 4096:
        chunk = max(256, min(8192, -(-rows // (4 * device.compute_units)) + 15 & ~15))
        run(device, "indexing/interleave", dict(U=_scatter.width(dtype), K=pitch), (-(-rows // chunk),), (1,), *tensors, out, rows, chunk)
        return True
    if pitch < fuse.NARROW * len(tensors) and rows >= 256:        # interleaving: strided stores of long vectors do better
        return False
    at = 0
    for k, end in _shares(len(tensors), device.is_cpu):
        some, sizes = tensors[k:end], [n * inner for n in lengths[k:end]]
        (_cat_rows if device.is_cpu else _cat_columns)(device, dtype, some, sizes, steps[k:end], out, at, rows, pitch)
        at += sum(sizes)
    return True


# -- cat ------------------------------------------------------------------------------------------------------------------------------------
def _cat_grad(g, dim, sizes, needs):
    out, at = [], 0
    for n, need in zip(sizes, needs):
        out.append(g.narrow(dim, at, n) if need else None)
        at += n
    return out


@kernel("_cat", complex=True, method=False, repeat="ready", variadic=True, vjp=dict(tensors=_cat_grad))
def _cat(tensors, dim, sizes, dtype):
    whole = _in_one_format(tensors, dim, sizes, dtype)
    return _joined(tensors, dim, sizes, dtype) if whole is None else whole


def _in_one_format(tensors, dim, sizes, dtype):
    """The tensors joined in the channels-last format that all have; None where they have none."""
    format = formats.suggested(tensors[0])
    if format is None or not all([formats.suggested(t) is format for t in tensors[1:]]):
        return None
    return formats.inside(format, tensors, dim, lambda views, d: _joined(views, d, sizes, dtype))


def _joined(tensors, dim, sizes, dtype):
    first = tensors[0]
    shape = Size((*first.shape[:dim], sum(sizes), *first.shape[dim + 1:]))
    out = empty(shape, dtype, first._storage.device)
    if _write_side_by_side(out, tensors, dim, sizes):
        return out
    strides, at, parts = contiguous_strides(shape), 0, []
    for t, n in zip(tensors, sizes):
        parts.append((t, strides, at * strides[dim]))
        at += n
    write_regions(out, parts)
    return out


_cat.op.grad_name = "CatBackward0"


def _stack_grad(g, dim, needs):
    return [g.select(dim, i) if need else None for i, need in enumerate(needs)]


@kernel("_stack", complex=True, method=False, repeat="ready", variadic=True, vjp=dict(tensors=_stack_grad))
def _stack(tensors, dim, dtype):
    first = tensors[0]
    shape = Size((*first.shape[:dim], len(tensors), *first.shape[dim:]))
    if dim < len(first.shape):
        whole = _in_one_format(tensors, dim, [t.shape[dim] for t in tensors], dtype)
        if whole is not None:
            return make_view(whole, shape, view_strides(whole.shape, whole._strides, shape), 0)
    out = empty(shape, dtype, first._storage.device)
    if _write_side_by_side(out, tensors, dim, [1] * len(tensors)):
        return out
    strides = contiguous_strides(shape)
    inner = strides[:dim] + strides[dim + 1:]
    write_regions(out, [(t, inner, i * strides[dim]) for i, t in enumerate(tensors)])
    return out


_stack.op.grad_name = "StackBackward0"


def _placed(out, r, tensors):
    if out is None:
        return r
    refuse_overlap(out, tensors, True)
    if r.dtype.category > out.dtype.category:
        raise TypeError(f"torch.cat(): input types can't be cast to the desired output type {type_name(out.dtype)}")
    return set_out(out, r, tensors)


def of_one_kind(tensors):
    """The dtype of a list of plain tensors that all have it, on one device; None of others."""
    first = tensors[0]
    if first.__class__ is not Tensor:
        return None
    device, dtype = first._storage.device, first.dtype
    return dtype if all([t.__class__ is Tensor and t.dtype is dtype and t._storage.device is device for t in tensors]) else None


of_one_kind = native.form("of_one_kind", of_one_kind)


def _common(name, tensors):
    """A list of at least one tensor, all on one device, and their common dtype."""
    if isinstance(tensors, Tensor) or not isinstance(tensors, (list, tuple)):
        raise TypeError(f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not {type(tensors).__name__}")
    tensors = list(tensors)
    if not tensors:
        if name != "cat":
            raise RuntimeError(f"{name} expects a non-empty TensorList")
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    dtype = of_one_kind(tensors)                                    # as most are
    if dtype is not None:
        return tensors, dtype
    device = None
    for i, t in enumerate(tensors):
        if not isinstance(t, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {kind_name(t)}")
        if t._storage.device is not device:
            if i:
                raise RuntimeError("Expected all tensors to be on the same device, but found at least two devices, "
                                   f"{' and '.join(sorted({str(t.device) for t in tensors}))}! ({name})")
            device = t._storage.device
        if t.dtype is not dtype:
            dtype = dt.PROMOTE[dtype, t.dtype] if i else t.dtype
    return tensors, dtype


def _np_cat(tensors, dim=0):
    return np.concatenate(tensors, dim)


@composite("cat", repeat="settled", complex=True, aliases=("concat", "concatenate"), numpy=_np_cat, method=False, samples=lambda: [
    (([_values(2, 3), _values(4, 3)], 0), {}), (([_values(2, 3), _values(2, 1), _values(2, 3)], 1), {})])
def cat(tensors, dim=0, *, axis=None, out=None):
    """Tensors one after the other along ``dim``; other sizes agree. Pending inputs are computed straight into their place.

    Args:
        tensors: list or tuple of tensors; empty vectors are skipped, dtypes are promoted.

    Example:
        >>> clnn.cat([clnn.zeros(1, 2), clnn.ones(1, 2)])
        tensor([[0., 0.],
                [1., 1.]])
    """
    tensors, dtype = _common("cat", tensors)
    none, d, sizes = _cat_plan(tuple([t.shape for t in tensors]), dim if axis is None else axis)
    if none is not None:
        return _placed(out, _cat([t.reshape(none) if t.shape == (0,) else t for t in tensors], d, sizes, dtype), tensors)
    joined = in_one_piece("_cat", (tensors, d, sizes, dtype), (sum(sizes), *tensors[0].shape[1:])) if d == 0 else None
    return _placed(out, _cat(tensors, d, sizes, dtype) if joined is None else joined, tensors)


@memo(4096)
def _cat_plan(shapes, dim):
    """(the shape that empty vectors take, which go with anything, None where there are none; the dimension; the sizes in it)."""
    joined = [i for i, s in enumerate(shapes) if s != (0,)] or [0]
    first = shapes[joined[0]]
    if () in shapes:
        raise RuntimeError(f"zero-dimensional tensor (at position {shapes.index(())}) cannot be concatenated")
    d = wrap_dim(dim, len(first)) if first != (0,) else 0
    for i in joined:
        shape = shapes[i]
        if len(shape) != len(first):
            raise RuntimeError(f"Tensors must have same number of dimensions: got {len(first)} and {len(shape)}")
        for k, n in enumerate(shape):
            if k != d and n != first[k]:
                raise RuntimeError(f"Sizes of tensors must match except in dimension {d}. Expected size {first[k]} but got size "
                                   f"{n} for tensor number {i} in the list.")
    none = Size((*first[:d], 0, *first[d + 1:])) if len(joined) < len(shapes) else None
    return none, d, tuple([0 if s == (0,) else s[d] for s in shapes])


@composite("stack", repeat="settled", complex=True, numpy=np.stack, method=False, samples=lambda: [(([_values(2, 3)] * 3, 0), {}), (([_values(2, 3)] * 2, -1), {})])
def stack(tensors, dim=0, *, out=None):
    """Tensors of equal shape along a new dimension ``dim``."""
    tensors, dtype = _common("stack", tensors)
    first = tensors[0]
    shape = first.shape
    for i, t in enumerate(tensors):
        if t.shape != shape:
            raise RuntimeError(f"stack expects each tensor to be equal size, but got {list(first.shape)} at entry 0 and {list(t.shape)} at entry {i}")
    d = wrap_dim(dim, len(first.shape) + 1)
    joined = in_one_piece("_stack", (tensors, d, dtype), (len(tensors), *first.shape)) if d == 0 else None
    return _placed(out, _stack(tensors, d, dtype) if joined is None else joined, tensors)


# -- at least so many dimensions ----------------------------------------------------------------------------------------------------------
def _atleast(rank, grow):
    def body(*tensors):
        if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
            tensors = tensors[0]
            return tuple(t if len(t.shape) >= rank else grow(t) for t in tensors)
        if len(tensors) == 1:
            return tensors[0] if len(tensors[0].shape) >= rank else grow(tensors[0])
        return tuple(t if len(t.shape) >= rank else grow(t) for t in tensors)
    body.__doc__ = f"The tensors with at least {rank} dimension(s)."
    return composite(f"atleast_{rank}d", complex=True, method=False)(body)


atleast_1d = _atleast(1, lambda t: t.reshape(1))
atleast_2d = _atleast(2, lambda t: t.reshape(1, -1))
atleast_3d = _atleast(3, lambda t: t.reshape(1, 1, 1) if not t.shape else t.reshape(1, -1, 1) if len(t.shape) == 1 else t.unsqueeze(-1))


def _some(name, tensors):
    if isinstance(tensors, Tensor):
        raise TypeError(f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor")
    tensors = list(tensors)
    if not tensors:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    return tensors


@composite("hstack", repeat="ready small", complex=True, numpy=np.hstack, method=False,
           samples=lambda: [(([_values(2), _values(3)],), {}), (([_values(2, 1), _values(2, 3)],), {})])
def hstack(tensors, *, out=None):
    """``cat`` along dimension 1 (vectors: 0)."""
    tensors = atleast_1d(_some("hstack", tensors))
    return cat(tensors, 0 if len(tensors[0].shape) == 1 else 1, out=out)


@composite("vstack", repeat="ready small", complex=True, aliases=("row_stack",), numpy=np.vstack, method=False, samples=lambda: [(([_values(3), _values(3)],), {})])
def vstack(tensors, *, out=None):
    """``cat`` along dimension 0 after ``atleast_2d``."""
    return cat(atleast_2d(_some("vstack", tensors)), 0, out=out)


@composite("dstack", repeat="ready small", complex=True, numpy=np.dstack, method=False, samples=lambda: [(([_values(3), _values(3)],), {})])
def dstack(tensors, *, out=None):
    """``cat`` along dimension 2 after ``atleast_3d``."""
    return cat(atleast_3d(_some("dstack", tensors)), 2, out=out)


@composite("column_stack", repeat="ready small", complex=True, numpy=np.column_stack, method=False, samples=lambda: [(([_values(3), _values(3, 2)],), {})])
def column_stack(tensors, *, out=None):
    """``hstack`` with vectors as columns."""
    return hstack([t.reshape(-1, 1) if len(t.shape) <= 1 else t for t in _some("column_stack", tensors)], out=out)


# -- grids and combinations ---------------------------------------------------------------------------------------------------------------
@composite("meshgrid", complex=True, method=False)
def meshgrid(*tensors, indexing=None):
    """One expanded view per vector, of the shape that all lengths make together."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tensors[0]
    if indexing is None and first_time("meshgrid"):
        warn("torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.")
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    swap = indexing == "xy" and len(tensors) >= 2
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for t in tensors:
        if t.dtype is not tensors[0].dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
        if len(t.shape) > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got:  {t.detach()}")
    tensors = [t if t.shape else t.reshape(-1) for t in tensors]
    if swap:
        tensors[0], tensors[1] = tensors[1], tensors[0]
    shape = tuple([t._numel for t in tensors])
    grids = [_expand(_seen_as(t, *_layout(t.shape, t._strides, t._numel, (1,) * i + (t._numel,) + (1,) * (len(shape) - 1 - i))), shape)
             for i, t in enumerate(tensors)]
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


@composite("broadcast_tensors", complex=True, method=False)
def broadcast_tensors(*tensors):
    """The tensors expanded to their common shape."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tensors[0]
    shape = broadcast("broadcast_tensors", *tensors)
    return tuple(t if t.shape == shape else t.expand(shape) for t in tensors)


@composite("block_diag", repeat=True, complex=True, method=False)
def block_diag(*tensors):
    """A matrix with the given matrices along its diagonal and zeros elsewhere."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tensors[0]
    if not tensors:
        return filled(Size((1, 0)), 0, dt._default_float, resolve(None))
    for at, t in enumerate(tensors):
        if len(t.shape) > 2:
            raise RuntimeError(f"block_diag: Input tensors must have 2 or fewer dimensions. Input {at} has {len(t.shape)} dimensions")
    tensors = [atleast_2d(t) for t in tensors]
    rows = []
    width, at = sum(t.shape[1] for t in tensors), 0
    from .padding import constant_pad
    for t in tensors:
        rows.append(constant_pad(t, (at, width - at - t.shape[1]), 0))
        at += t.shape[1]
    return cat(rows, 0)


@composite("cartesian_prod", repeat=True, complex=True, method=False)
def cartesian_prod(*tensors):
    """All combinations of one element of each vector, one per row."""
    for t in tensors:
        if len(t.shape) != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(t.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    return stack([g.reshape(-1) for g in meshgrid(*tensors, indexing="ij")], 1)


@composite("combinations", complex=True, method=False, samples=lambda: [((_values(4),), {}), ((_values(4), 3), dict(with_replacement=True))])
def combinations(input, r=2, with_replacement=False):
    """All choices of ``r`` elements of a vector, in order, one per row."""
    if len(input.shape) != 1:
        raise RuntimeError("Expect a 1D vector, but got shape " + str(list(input.shape)))
    if whole(r) < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return input[:0]
    if r > 2:
        pick = itertools.combinations_with_replacement if with_replacement else itertools.combinations
        return input[np.array(list(pick(range(input._numel), r)), np.int64).reshape(-1, r)]
    n, device = input._numel, input._storage.device
    rows = shared(device, ("combinations", n, r, with_replacement), lambda: from_array(
        np.ascontiguousarray(places_of_triangle(n, n, 0 if with_replacement else 1, True).T) if r == 2 else np.arange(n).reshape(n, 1), device))
    return input[rows]
