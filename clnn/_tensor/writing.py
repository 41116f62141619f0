"""Putting values into the memory of tensors."""
from __future__ import annotations

import sys
import weakref

from ..graph import fuse, store
from ..graph.node import Node as LazyNode
from ..graph.node import held, record
from . import later
from .grad_mode import state

_refcount = sys.getrefcount


def bump(t):
    ver = t._ver or t._storage
    ver.version += 1


def copy(t):
    """A dense copy, recorded lazily."""
    return later.record_elementwise(fuse.CAST, t.dtype, t.dtype, t.shape, t._numel, (t,))


def rebind(target, value) -> bool:
    """:func:`write` of a pending value where all of the target's memory is replaced, which nobody else looks into; False, with nothing done, elsewhere."""
    st, src = target._storage, value._storage
    node = src.node
    if (node is None or st.pinned or st.mirrored or st.version < 0 or src is st or src.pinned or not target._dense or not value._dense
            or value.dtype is not target.dtype or src.nbytes != st.nbytes or target._numel * target.dtype.itemsize != st.nbytes):
        return False
    st.node, st.buf = node, src.buf
    node.out = weakref.ref(st)
    (target._ver or st).version += 1
    return True


def of_inference():
    return RuntimeError("Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal tensor before "
                        "doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details.")


def write(target, value, gone=False) -> None:
    """Put ``value`` into the memory of ``target``: by re-binding the storage when all of it is replaced, else by a strided kernel.

    ``value`` must have the shape and dtype of ``target``. ``gone``: nobody has it any more when this returns.
    """
    st = target._storage
    if st.version < 0 and not state.inference:
        raise of_inference()
    if target._dense and target._numel * target.dtype.itemsize == st.nbytes and not st.pinned:
        if not (value._dense and value._numel * value.dtype.itemsize == value._storage.nbytes and value.dtype is target.dtype):
            value = copy(value)
        src = value._storage
        if src.pinned and src is not st:                         # its memory is the program's
            value = copy(value)
            src = value._storage
        if st.mirrored:
            st.buf = src.buffer()
        elif src is not st:
            node, buf = src.node, src.buf
            st.node, st.buf = node, buf
            if node is not None and _refcount(value._storage) <= 4:         # the source dies here: its node now belongs to the target
                node.out = weakref.ref(st)
    elif target._numel:
        _write_region(target, value, gone)
    bump(target)


def kept_beside(st, node, region, dtype) -> bool:
    """Whether something needs the memory of ``st`` as it is while the pending ``node`` is written into a region of it, (shape, strides, offset) in
    elements of ``dtype``: a snapshot, another pending node, or ``node`` itself for what overlaps that region."""
    buf, (_, strides, offset) = st.buf, region
    kept = _refcount(st.buf) - 3 - (id(buf) in held)
    if kept > 0:
        kept -= len({id(r) for r in node.args if r.__class__ is tuple and r[0] is buf and r[2] == offset and r[3] == strides and r[1] is dtype})
    return kept > 0 and kept > store.reads_beside(node, buf, region, dtype)


def _write_region(target, value, gone):
    with target._storage.device.lock:                            # another thread may be about to compute what is pending here
        _write_into(target, value, gone)


def _write_into(target, value, gone):
    st = target._storage
    device = st.device
    if st.node is not None:
        fuse.realize(st)
    node = value._storage.node
    inline = node is not None and node.buf is None and node.reduce is None and value._dense and value._numel == node.numel \
        and value.dtype is node.dtype and (value.shape == node.shape or node.linear)
    if not inline:
        if node is not None:
            fuse.realize(value._storage)
        src = value._storage
        node = LazyNode(fuse.CAST, ((src.buf, value.dtype, value._offset, value._strides),), target.dtype, target.dtype, target.shape,
                        target._numel, device, 1, 1, False)
    elif node.shape != target.shape:
        fuse.reshape_node(node, target.shape)
    # Others may still read the old contents (snapshots, pending readers): write to a copy then. Reads of exactly this region by this very
    # node are harmless, each element is read before it is written; so are reads of other regions.
    same = any([r.__class__ is tuple and r[0] is st.buf and r[2] == target._offset and r[3] == target._strides for r in node.args])
    if st.mirrored or not st.pinned and kept_beside(st, node, (target.shape, target._strides, target._offset), target.dtype):
        fresh = device.duplicate(st.buf, st.nbytes)
        if not st.mirrored:                          # to which a complete value is told
            st.buf = fresh
    else:
        fresh = st.buf
    store.store_into(device, node, fresh, target._offset, target.shape, target._strides, target.dtype)
    if st.mirrored:
        st.buf = fresh
    if inline and same and node.buf is None and not gone:        # what the node read is gone: whoever still holds the value finds it where it was written
        there = record(fuse.CAST, ((st.buf, target.dtype, target._offset, target._strides),), target.dtype, target.dtype, target.shape, target._numel,
                       device, 1, 1, False)
        held_by = value._storage
        held_by.node, held_by.buf = there.node, there.buf
        if there.node is not None:
            there.node.out = weakref.ref(held_by)
