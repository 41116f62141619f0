"""Samples that become a batch: what ``stack`` and ``cat`` along the first dimension do before values are sent or computed one by one."""
from __future__ import annotations

import numpy as np

from .._tensor import foreign, repeat
from .._tensor.grad_mode import state
from .._tensor.interop import from_bytes
from .._tensor.tensor import Tensor, make, make_view
from ..core import dtype as dt
from ..core.shape import Size, is_contiguous
from ..graph import fuse, mirror, together
from ..graph.node import Storage, record
from ..graph.op import REGISTRY
from ..runtime.device import Device
from .indexing import rows_at


def in_one_piece(op, args, shape):
    """What the operator ``op`` gives, tensors one after the other in memory as one of ``shape``, where the host has the values of all, they are rows of one
    tensor, or pending computations of few kinds; else None.

    Args:
        args: those of the operator: the tensors first, their common dtype last.
    """
    tensors = args[0]
    first = tensors[0]._storage
    if first.device.records() or not repeat.on or first.device.__class__ is not Device:
        return None
    batch = _told(op, args, shape) if first.__class__ is not Storage else None
    if batch is not None or len(tensors) < together.FEW or repeat.observing is not None:
        return batch
    if any([t._storage.node is not None for t in tensors]):
        return _pending(op, args, shape)
    return _rows(op, args, shape) if tensors[-1]._storage is first and first.__class__ is Storage else None


def _asked(op, args):
    """What whoever takes functions over makes of the operator ``op``."""
    return NotImplemented if foreign.early is None else foreign.early(op, args, {})


def _told(op, args, shape):
    """Of values that the host has: samples become a batch before they are sent."""
    tensors, dtype = args[0], args[-1]
    pieces, tracked = [], state.grad
    for t in tensors:
        if t.__class__ is not Tensor or t.dtype is not dtype or tracked and t._rg or not (t._dense or t.is_contiguous()):
            return None
        values = mirror.told(t._storage)
        if values is None:
            return None
        nbytes = t._numel * dtype.itemsize
        if nbytes != len(values):
            at = t._offset * dtype.itemsize
            values = values[at:at + nbytes]
        pieces.append(values)
    got = _asked(op, args)
    return from_bytes(b"".join(pieces), Size(shape), dtype, tensors[0]._storage.device) if got is NotImplemented else got


def known(tensors):
    """The values of tensors of one dtype without gradients as arrays, where the host has them all; else None."""
    out, tracked = [], state.grad
    for t in tensors:
        row = t.dtype
        if t.__class__ is not Tensor or row is dt.bfloat16 or tracked and t._rg or not (t._dense or t.is_contiguous()) or foreign.early is not None:
            return None
        st = t._storage
        values = None if st.__class__ is Storage or st.device.records() or not repeat.on else mirror.told(st)
        if values is None:
            return None
        out.append(np.frombuffer(values, row.np, t._numel, t._offset * row.itemsize).reshape(t.shape))
    return out


def _pending(op, args, shape):
    """Of pending samples: those of each kind are computed in one launch, all of them when they are needed where there is but one kind."""
    tensors, dtype = args[0], args[-1]
    first, tracked, kinds = tensors[0], state.grad, {}
    if first._numel > together.SMALL:
        return None
    for i, t in enumerate(tensors):
        node = t._storage.node
        if t.__class__ is not Tensor or t.dtype is not dtype or tracked and t._rg or t.shape != first.shape:
            return None
        if node is not None and node.dtype is dtype and t._numel == node.numel and t._dense:
            kinds.setdefault((node.expr, node.compute, node.count, node.leaves), []).append(i)
    kinds = [places for places in kinds.values() if len(places) >= together.FEW]
    if not kinds:
        return None
    got = _asked(op, args)
    if got is not NotImplemented:
        return got
    device, parts = first._storage.device, list(tensors)
    for places in kinds:
        with device.lock:                               # another thread may be about to compute what is pending here
            node = together.stacked([tensors[i]._storage.node for i in places], _gathered)
        if node is None:
            continue
        storage = record(node.expr, node.args, node.compute, dtype, node.shape, node.numel, device, node.count, node.leaves, node.linear)
        if len(places) == len(tensors):
            return make(storage, Size(shape), dtype, node.numel)
        storage.buffer()
        whole = make(storage, Size((len(places), *first.shape)), dtype, node.numel)
        for row, i in enumerate(places):
            parts[i] = make_view(whole, first.shape, whole._strides[1:], row * first._numel)
    return None if all([a is b for a, b in zip(parts, tensors)]) else REGISTRY[op].fn(parts, *args[1:])


def _rows(op, args, shape):
    """Of rows of one tensor, wherever they begin: loops over samples have them elsewhere each time."""
    tensors, dtype = args[0], args[-1]
    first, begins, tracked = tensors[0], [], state.grad
    storage, sizes, strides = first._storage, first.shape, first._strides
    if not first._numel or not is_contiguous(sizes, strides):
        return None
    for t in tensors:
        if t._storage is not storage or t.__class__ is not Tensor or t.dtype is not dtype or t.shape != sizes or t._strides != strides or tracked and t._rg:
            return None
        begins.append(t._offset)
    got = _asked(op, args)
    if got is not NotImplemented:
        return got
    device, shape, numel, step = storage.device, Size(shape), len(begins) * first._numel, begins[1] - begins[0]
    if step <= 0 or begins != [*range(begins[0], begins[-1] + 1, step)]:
        return make(rows_at(storage.buf, dtype, device, begins, sizes)._storage, shape, dtype, numel)
    read = (storage.buf, dtype, begins[0], (step, *strides))
    return make(record(fuse.CAST, (read,), dtype, dtype, Size((len(begins), *sizes)), numel, device, 1, 1, step == first._numel), shape, dtype, numel)


def _gathered(device, reads, shape):
    """A buffer with the elements of several reads one after the other."""
    dtype, tensors = reads[0][1], []
    if all([read[0] is reads[0][0] for read in reads]) and is_contiguous(shape, reads[0][3]):
        return rows_at(reads[0][0], dtype, device, [read[2] for read in reads], shape)._storage.buf
    for buf, _, offset, strides in reads:
        whole = make(Storage(device, buf.size, buf), Size((buf.size // dtype.itemsize,)), dtype, buf.size // dtype.itemsize)
        tensors.append(make_view(whole, shape, strides, offset))
    return REGISTRY["_stack"].fn(tensors, 0, dtype)._storage.buf
