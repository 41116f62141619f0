"""Calling an operator: promotion, broadcasting and recording, done once here for all operators.

Elementwise calls record a lazy node; kernel calls run their body; either way ``attach`` puts the operator on the tape when an input
requires gradients.
"""
from __future__ import annotations

import numpy as np

from ..core import dtype as dt
from ..core import native, symbols
from ..core.config import config
from ..core.shape import Size, broadcast_shapes, broadcast_strides, contiguous_strides, is_contiguous
from ..core.symbols import memo
from ..graph import fuse, mirror
from ..graph import node as lazy
from ..graph.node import Storage
from . import later
from .grad_mode import state
from .tensor import Tensor, make

_MAX_NODES, _MAX_LEAVES = lazy.MAX_NODES, lazy.MAX_LEAVES
_WORTH_COUNTING = 24        # nodes: to look at more of them takes longer than to compute what is pending
_FEW = 1024                 # elements
_EXACT = 1 << 53            # whole numbers up to here are exact in doubles
_MUCH = 1 << 17             # bytes of all tensors of a launch, from which on it matters whether it works on less
_new = object.__new__
_shapes: dict = symbols.kept()          # (shape, shape) -> broadcast Size
_promoted: dict = {}        # (op index, operand kinds) -> (compute dtype, result dtype)
dt.default_listeners.append(_promoted.clear)


def broadcast(name, *tensors):
    """The common Size of tensors; RuntimeError in PyTorch's words, with both shapes."""
    shapes = tuple([t.shape for t in tensors])
    got = _shapes.get(shapes)
    if got is None:
        try:
            got = Size(broadcast_shapes(*shapes))
        except ValueError as exc:
            raise RuntimeError(f"{exc} ({name.lstrip('_')}: shapes {', '.join(str(tuple(s)) for s in shapes)})") from None
        if len(_shapes) > 100000:
            _shapes.clear()
        _shapes[shapes] = got
    return got


def record_elementwise(expr, compute, result, shape, numel, operands) -> Tensor:
    """Record one elementwise operator over ``shape``; operands are Tensors or Python numbers already checked."""
    count, leaves, linear, refs, device = 1, 0, True, [], None
    for t in operands:
        if not isinstance(t, Tensor):
            refs.append(t)
            continue
        device = t._storage.device
        ref, below, read, flat = _operand(t, shape, numel, *_over(t, shape))
        refs.append(ref)
        count, leaves, linear = count + below, leaves + read, linear and flat
    if leaves > _MAX_LEAVES and count <= _WORTH_COUNTING:
        count, leaves = _counted_once(refs)
    if count > _MAX_NODES or leaves > _MAX_LEAVES:
        pending = [t for t in operands if isinstance(t, Tensor) and t._storage.node is not None]
        if pending:
            for t in pending:
                fuse.realize(t._storage)
            return record_elementwise(expr, compute, result, shape, numel, operands)
    out = make(lazy.record(expr, tuple(refs), compute, result, shape, numel, device, count, leaves, linear), shape, result, numel)
    if config.eager or expr.failing and _shows_at_once(expr, compute, numel, device, refs):
        fuse.realize(out._storage)
    return out


def _counted_once(refs):
    """(nodes, leaves) of what reads ``refs``: what several operands have in common counts once."""
    nodes, leaves, todo = set(), set(), list(refs)
    while todo and len(leaves) <= _MAX_LEAVES:
        ref = todo.pop()
        if ref.__class__ is tuple:
            source = ref[0]
            if source.__class__ is not lazy.Node or source.buf is not None:
                leaves.add((id(source), *ref[1:]))
            elif source not in nodes:
                nodes.add(source)
                todo += source.args
    return 1 + len(nodes), len(leaves)


def _shows_at_once(expr, compute, numel, device, refs):
    """Whether a division of few integers is computed now, so that a zero shows where it is divided by."""
    return (expr.failure is None and numel <= _FEW and compute.category in expr.failing and device.is_cpu
            and (refs[1].__class__ is tuple or not refs[1]))


plain = {Tensor}            # classes whose instances are no more than tensors: the short way serves them


def record_briefly(expr, compute, result, a, b, place):
    """``record_elementwise`` for the operands that most calls have: a dense tensor ``a``, and beside it nothing (``place`` 0), a number ``b`` (1) or a dense
    tensor ``b`` of the same shape on the same device (2). The same in fewer steps; None where it is not that simple."""
    st, shape, numel = a._storage, a.shape, a._numel
    node = st.node
    if node is None:
        ref, count, leaves, linear = (st.buf if st.__class__ is Storage else st.leaf(), a.dtype, a._offset, a._strides), 1, 1, True
    elif node.buf is None and node.reduce is None and numel == node.numel and a.dtype is node.dtype and (node.shape == shape or node.linear):
        ref, count, leaves, linear = (node, a.dtype, 0, a._strides), node.count + 1, node.leaves, node.linear
    else:
        return None
    if place == 2:
        other = b._storage
        node = other.node
        if node is None:
            refs, leaves = (ref, (other.buf if other.__class__ is Storage else other.leaf(), b.dtype, b._offset, b._strides)), leaves + 1
        elif node.buf is None and node.reduce is None and numel == node.numel and b.dtype is node.dtype and (node.shape == shape or node.linear):
            refs, count, leaves = (ref, (node, b.dtype, 0, b._strides)), count + node.count, leaves + node.leaves
            linear = linear and node.linear
        else:
            return None
    else:
        refs = (ref, b) if place else (ref,)
    if count > _MAX_NODES or leaves > _MAX_LEAVES or config.eager or expr.failing and _shows_at_once(expr, compute, numel, st.device, refs):
        return None
    t = _new(Tensor)
    t._storage = lazy.record(expr, refs, compute, result, shape, numel, st.device, count, leaves, linear)
    t._shape, t._strides, t._offset, t._dtype, t._numel, t._dense = shape, contiguous_strides(shape), 0, result, numel, True
    return t


def record_alike(expr, compute, result, first, operands):
    """``record_elementwise`` for numbers and dense tensors of the shape of ``first``, which is one of them, in fewer steps; None where it is not that simple."""
    shape, numel, device = first.shape, first._numel, first._storage.device
    count, leaves, linear, refs = 1, 0, True, []
    for t in operands:
        if t.__class__ is float or t.__class__ is int:
            refs.append(t)
            continue
        st = t._storage
        node = st.node
        if node is None:
            refs.append((st.buf if st.__class__ is Storage else st.leaf(), t.dtype, t._offset, t._strides))
            leaves += 1
        elif node.buf is None and node.reduce is None and numel == node.numel and t.dtype is node.dtype and (node.shape == shape or node.linear):
            refs.append((node, t.dtype, 0, t._strides))
            count, leaves, linear = count + node.count, leaves + node.leaves, linear and node.linear
        else:
            return None
    if count > _MAX_NODES or leaves > _MAX_LEAVES or config.eager or expr.failing:
        return None
    t = _new(Tensor)
    t._storage = lazy.record(expr, tuple(refs), compute, result, shape, numel, device, count, leaves, linear)
    t._shape, t._strides, t._offset, t._dtype, t._numel, t._dense = shape, contiguous_strides(shape), 0, result, numel, True
    return t


_MOST_PAIRS = 1 << 15
_pairs: dict = symbols.kept()           # (shape, strides, shape, strides) of two operands -> what follows from them, see ``_pair``


def _pair(name, a, b):
    """(shape, its number of elements, strides of ``a`` and of ``b`` over it, whether each is read in flat order) of two operands whose result lies in
    row-major order; else False."""
    shape = broadcast(name, a, b)
    found = False
    if (a.shape == shape or b.shape == shape) and result_order((a, b), shape) is None:
        (walk_a, flat_a), (walk_b, flat_b) = _over(a, shape), _over(b, shape)
        found = (shape, shape.numel(), walk_a, walk_b, flat_a, flat_b)
    if len(_pairs) > _MOST_PAIRS:
        _pairs.clear()
    _pairs[a.shape, a._strides, b.shape, b._strides] = found
    return found


def record_pair(op, compute, result, a, b):
    """``record_elementwise`` for two tensors of any shapes on one device, in fewer steps; None where the layout of the result is another."""
    found = _pairs.get((a.shape, a._strides, b.shape, b._strides))
    if found is None:
        found = _pair(op.name, a, b)
    if not found:
        return None
    shape, numel, walk_a, walk_b, flat_a, flat_b = found
    ref_a, count_a, leaves_a, linear_a = _operand(a, shape, numel, walk_a, flat_a)
    ref_b, count_b, leaves_b, linear_b = _operand(b, shape, numel, walk_b, flat_b)
    count, leaves, refs, device, expr = 1 + count_a + count_b, leaves_a + leaves_b, (ref_a, ref_b), a._storage.device, op.expr
    if count > _MAX_NODES or leaves > _MAX_LEAVES or config.eager or expr.failing and _shows_at_once(expr, compute, numel, device, refs):
        return None
    t = _new(Tensor)
    t._storage = lazy.record(expr, refs, compute, result, shape, numel, device, count, leaves, linear_a and linear_b)
    t._shape, t._strides, t._offset, t._dtype, t._numel, t._dense = shape, contiguous_strides(shape), 0, result, numel, True
    return t


native.give(worth_counting=_WORTH_COUNTING, plain=plain, dispatch=globals(), record_briefly=record_briefly, record_alike=record_alike, record_pair=record_pair)
record_briefly, record_alike, record_pair = native.form("brief", record_briefly), native.form("alike", record_alike), native.form("pair", record_pair)


_layouts: dict = symbols.kept()         # (shape, strides, density) of each operand, None for a number -> what follows from them, see ``_layout``


def _layout(op, operands, key):
    """(shape and number of elements to walk over; per operand the strides there, whether that reads it in flat order, and whether it lies in that order, None
    for a number; shape, strides and density of the result) of operands on one device, with PyTorch's layout rule."""
    tensors = [t for t in operands if isinstance(t, Tensor)]
    shape = tensors[0].shape if all([t.shape == tensors[0].shape for t in tensors]) else broadcast(op.name, *tensors)
    order = result_order(tensors, shape)
    walked = shape if order is None else Size([shape[d] for d in order])
    walks = []
    for t in operands:
        if isinstance(t, Tensor):
            strides = t._strides if t.shape == shape else broadcast_strides(t.shape, t._strides, shape)
            steps = strides if order is None else tuple([strides[d] for d in order])
            flat = not any(steps) or is_contiguous(walked, steps)
            walks.append((steps, flat, t._dense if order is None or not t.shape else is_contiguous(walked, steps)))
        else:
            walks.append(None)
    steps = contiguous_strides(walked)
    strides = steps if order is None else tuple([steps[order.index(d)] for d in range(len(order))])
    if len(_layouts) > _MOST_PAIRS:
        _layouts.clear()
    found = _layouts[key] = walked, shape.numel(), walks, shape, strides, order is None or is_contiguous(shape, strides)
    return found


def record_laid(op, compute, result, operands):
    """``record_in_layout`` for plain tensors of any layouts and Python numbers, in fewer steps; None where it is not that simple."""
    key = tuple([(t.shape, t._strides, t._dense) if t.__class__ in plain else None for t in operands])
    walked, numel, walks, shape, strides, dense = _layouts.get(key) or _layout(op, operands, key)
    expr, count, leaves, linear, refs, device = op.expr, 1, 0, True, [], None
    if expr.uses_index:                                         # element numbers are those of the shape, not of the memory
        return None
    for t, walk in zip(operands, walks):
        if walk is None:
            refs.append(t)
            continue
        steps, flat, lies = walk
        st = t._storage
        if device is not None and st.device is not device:
            return None
        node, device = st.node, st.device
        if node is not None:
            if lies and not t._offset and node.buf is None and node.reduce is None and t._numel == node.numel == numel and t.dtype is node.dtype \
                    and (node.shape == walked or node.linear):
                refs.append((node, t.dtype, 0, steps))
                count, leaves, linear = count + node.count, leaves + node.leaves, linear and node.linear
                continue
            fuse.realize(st)
        refs.append((st.buf if st.__class__ is Storage else st.leaf(), t.dtype, t._offset, steps))
        leaves, linear = leaves + 1, linear and flat
    if count > _MAX_NODES or leaves > _MAX_LEAVES or config.eager or expr.failing and _shows_at_once(expr, compute, numel, device, refs):
        return None
    t = _new(Tensor)
    t._storage = lazy.record(expr, tuple(refs), compute, result, walked, numel, device, count, leaves, linear)
    t._shape, t._strides, t._offset, t._dtype, t._numel, t._dense = shape, strides, 0, result, numel, dense
    return t


native.give(record_laid=record_laid, record_elementwise=record_elementwise)
record_laid = native.form("laid", record_laid)


def _over(t, shape):
    """(strides of ``t`` over ``shape``, whether that reads it in flat order)."""
    if t.shape == shape:
        return t._strides, t._dense or is_contiguous(shape, t._strides) or not any(t._strides)
    strides = broadcast_strides(t.shape, t._strides, shape)
    return strides, not any(strides) or is_contiguous(shape, strides)


def _operand(t, shape, numel, strides, flat):
    """(reference to what a tensor is now, nodes and leaves below it, whether they are read in flat order)."""
    st = t._storage
    node = st.node
    if node is not None:
        if (node.buf is None and node.reduce is None and t._dense and t._numel == node.numel == numel and t.dtype is node.dtype
                and (node.shape == shape or node.linear)):
            return (node, t.dtype, 0, strides), node.count, node.leaves, node.linear
        fuse.realize(st)
    if t._numel == 1 < numel and st.__class__ is mirror.Unsent:
        number = _number(t)
        if number is not None:
            return number, 0, 0, True
    return (st.buf if st.__class__ is Storage else st.leaf(), t.dtype, t._offset, strides), 0, 1, flat


def _number(t):
    """The one element of a tensor that only the host has, which then need not be sent; None where a Python number is not the same."""
    values = mirror.told(t._storage)
    if values is None:
        return None
    value = np.frombuffer(values, t.dtype.np, 1, t._offset * t.dtype.itemsize)[0]
    if t.dtype.category == dt.FLOAT:
        return float(value)
    return int(value) if t.dtype.category == dt.INT and -_EXACT < value < _EXACT else None


def record_in_layout(expr, compute, result, shape, numel, operands) -> Tensor:
    """``record_elementwise`` with PyTorch's layout rule: see :func:`result_order`."""
    order = None if expr.uses_index else result_order([t for t in operands if isinstance(t, Tensor)], shape)   # element numbers are those of the shape
    if order is None:
        return record_elementwise(expr, compute, result, shape, numel, operands)
    moved = [_permuted(t, shape, order) if isinstance(t, Tensor) else t for t in operands]
    r = record_elementwise(expr, compute, result, Size(shape[d] for d in order), numel, moved)
    back = [0] * len(order)
    for i, d in enumerate(order):
        back[d] = i
    strides = r._strides
    r._shape, r._strides = shape, tuple([strides[i] for i in back])
    r._dense = is_contiguous(r.shape, r._strides)
    return r


def memory_order(t, dense=False):
    """The dimensions of ``t`` by falling stride, when that is not their own order (``dense``: and the block has no gaps); else None."""
    return None if t._dense or not t._numel or len(t.shape) < 2 else _order(t.shape, t._strides, dense)


@memo(65536)
def _order(shape, strides, dense):
    order = None if dense and 0 in strides else _agreed(shape, (strides,))
    if order and dense and not is_contiguous(tuple([shape[d] for d in order]), tuple([strides[d] for d in order])):
        return None
    return order


def result_order(tensors, shape):
    """The order of dimensions in which an elementwise result lies in memory, None for their own: of two dimensions the first operand that has steps along
    both says which is the outer one."""
    for t in tensors:
        if not t._dense and len(shape) > 1 and 0 not in shape:
            return _agreed(tuple(shape), tuple([t._strides if t.shape == shape else broadcast_strides(t.shape, t._strides, shape) for t in tensors]))
    return None


@memo(65536)
def _agreed(shape, all_strides):
    order = list(range(len(shape)))
    for first in range(len(shape) - 2, -1, -1):                  # insertion from the back, as in PyTorch: where no operand tells, the order is not total
        at = first
        for other in range(first + 1, len(shape)):
            inner = _inner(order[at], order[other], shape, all_strides)
            if inner > 0:
                order[at], order[other] = order[other], order[at]
                at = other
            elif inner < 0:
                break
    return None if order == sorted(order) else order


def _inner(one, other, shape, all_strides):
    """1 where dimension ``one`` lies within ``other``, -1 where it is around it, 0 where no operand tells."""
    for strides in all_strides:
        a, b = strides[one], strides[other]
        if a and b:
            if a != b:
                return 1 if a < b else -1
            if shape[one] < shape[other]:
                return 1
    return 0


def in_order_of(result, order, name) -> Tensor:
    """``result``, computed with the dimensions in ``order``, with them where they were; its history shows as that of the operator ``name``."""
    back = result.permute([order.index(d) for d in range(len(order))])
    if back._grad_fn is not None:
        back._grad_fn.label = name
    return back


def _permuted(t, shape, order):
    """The operand broadcast to ``shape`` with its dimensions in ``order``."""
    v = t._alias()
    strides = broadcast_strides(t.shape, t._strides, shape) if t.shape != shape else t._strides
    if not t.shape:
        return v
    v._shape, v._strides = Size(shape[d] for d in order), tuple([strides[d] for d in order])
    v._dense = v._offset == 0 and is_contiguous(v.shape, v._strides)
    v._numel = v.shape.numel()
    return v


_INTEGER = dt.int64.index * 3                                # a Python number


def kind_of(x):
    """What promotion needs to know of an operand: dtype index, and whether it has dimensions, is 0-d or a Python number."""
    if isinstance(x, Tensor):
        return x.dtype.index * 3 + (2 if x.shape else 1)
    if not hasattr(x, "__float__") and not isinstance(x, complex):
        raise TypeError(f"an operand must be Tensor or Number, not {type(x).__name__}")
    return dt.scalar_dtype(x).index * 3


def promote(op, kinds):
    """(compute dtype, result dtype) of ``op`` for operand kinds, by its result rule."""
    first = getattr(op.rule, "first", 0)
    common = dt.result_type(*[(dt.ALL[k // 3], k % 3) for k in (kinds[first:] if first else kinds)])
    if common not in op.dtypes:
        from .elementwise import unsupported
        op.rule(common, kinds)                                  # a number where a tensor belongs is the error to report first
        raise unsupported(op, common)
    got = op.rule(common, kinds)
    dt.noticed(got[1])
    _promoted[op.number, kinds] = got
    return got


def align(name, operands):
    """Operands on one device: a 0-d tensor on another device becomes a number, as PyTorch allows for CPU scalars."""
    tensors = [t for t in operands if isinstance(t, Tensor)]
    devices = {id(t._storage.device): t for t in tensors}
    if len(devices) == 1:
        return operands
    main = [t for t in tensors if t.shape] or tensors[:1]
    if len({id(t._storage.device) for t in main}) > 1:
        names = " and ".join(sorted({str(t.device) for t in main}))
        raise RuntimeError(f"Expected all tensors to be on the same device, but found at least two devices, {names}! ({name.lstrip('_')})")
    home = main[0].device
    return tuple(t.to(home) if isinstance(t, Tensor) and t.device != home else t for t in operands)


def elementwise_call(op, operands):
    """The general path of an elementwise operator; ``declare`` has faster ones for one and two operands."""
    kinds, first, tracked, alike = [], None, False, True        # alike: dense tensors of one shape on one device, as in most calls
    for x in operands:
        if x.__class__ in plain:
            if first is None:
                first = x
            alike = alike and x._dense and (x is first or x.shape == first.shape and x._storage.device is first._storage.device)
            kinds.append(x.dtype.index * 3 + (2 if x.shape else 1))
            tracked = tracked or x._rg
        elif x.__class__ is float:
            kinds.append(dt._default_float.index * 3)
        elif x.__class__ is int:
            kinds.append(_INTEGER)
        else:
            break
    else:
        got = _promoted.get((op.number, tuple(kinds)))
        if got is not None and first is not None:
            out = record_alike(op.expr, got[0], got[1], first, operands) if alike else record_laid(op, got[0], got[1], operands)
            if out is None and alike:
                out = record_elementwise(op.expr, got[0], got[1], first.shape, first._numel, operands)
            if out is not None:
                if tracked and state.grad:
                    op.attach(op, out, operands)
                return out
    return _elementwise_call(op, operands)


def _elementwise_call(op, operands):
    kinds = tuple([kind_of(x) for x in operands])
    got = _promoted.get((op.number, kinds)) or promote(op, kinds)
    tensors = [t for t in operands if isinstance(t, Tensor)]
    first = tensors[0]
    for t in tensors:
        if t._storage.device is not first._storage.device:
            operands = align(op.name, operands)
            tensors = [t for t in operands if isinstance(t, Tensor)]
            first = tensors[0]
            break
    shape, numel = first.shape, first._numel
    for t in tensors:
        if t.shape != shape:
            shape = broadcast(op.name, *tensors)
            numel = shape.numel()
            break
    out = record_in_layout(op.expr, got[0], got[1], shape, numel, operands)
    if state.grad:
        for t in tensors:
            if t._rg:
                op.attach(op, out, operands)
                break
    return out


def run(device, path, params, global_size, local_size, *args, touched=None):
    """Launch ``kernels/<path>.cl.mako``. A Tensor argument passes its buffer and its element offset.

    ``touched``: how many bytes the launch works on, where that is less than its tensors have.
    """
    kernel = device.kernel(path, **params)
    flat, whole = [], 0
    for a in args:
        if isinstance(a, Tensor):
            st = a._storage
            if st.node is not None:
                fuse.realize(st)
            flat.append(st.buf)
            flat.append(a._offset)
            whole += st.nbytes
        elif isinstance(a, Storage):
            flat.append(a.buffer())
        else:
            flat.append(a)
    if symbols.plain(whole) > _MUCH and kernel is not None:
        kernel.touches(global_size, local_size, touched or sum(map(_bytes_of, args)))
    fuse._launch(device, kernel, global_size, local_size, *flat)


def _bytes_of(a):
    return a._numel * a.dtype.itemsize if isinstance(a, Tensor) else a.nbytes if isinstance(a, Storage) else getattr(a, "size", 0)


later.memory_order, later.record_elementwise, later.record_in_layout, later.permuted = memory_order, record_elementwise, record_in_layout, _permuted
