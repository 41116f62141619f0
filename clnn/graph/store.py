"""Values straight into regions of buffers that there are: what is pending, or a plain copy."""
from __future__ import annotations

from ..core import symbols
from ..runtime import launch as launcher
from .fuse import CAST, FEW, FULL, GROWN, Group, _Launch, _of_structure, finish, fits, owner_of, realize, run
from .node import Node
from .structure import packed, told

_stores: dict = symbols.kept()


def store(device, value, dtype, shape, numel, buf, offset, strides) -> None:
    """Put ``value``, a number or (buffer, dtype, offset, strides), into a region of ``buf``: what :func:`store_into` does for a plain copy, with nothing
    recorded."""
    copied = value.__class__ is tuple
    key = device, dtype, shape, strides, offset != 0, (value[2] != 0, value[3]) if copied else None
    common = _stores.get(key)
    if common is None:
        if len(_stores) > 8192:         # a loop over ever new shapes must not grow without bound
            _stores.clear()
        group = Group()
        group.visit(Node(CAST if copied else FULL, (value,), dtype, dtype, shape, numel, device, 1, int(copied), False))
        common = _stores[key] = _Launch(device, group, shape, numel, [(0, dtype, None, offset, strides)])
    common.launch(device, (value,) if copied else (), () if copied else (packed(value, dtype.acc),), [buf], (offset,))


def store_into(device, node: Node, buf, offset, shape, strides, dtype) -> None:
    """Evaluate the pending ``node`` straight into a strided region of ``buf``; of a long computation of few elements the value is kept as well."""
    if node.count == 1 and node.shape == shape and launcher.recorders is None:
        key, reads, numbers, _ = told(node)
        known = _of_structure((*key, dtype, offset != 0, strides), node, [(node, dtype, None, offset, strides)])
        known.run(device, reads, numbers, [buf], (offset,))
        return
    group, outs = Group(), []
    targets = [(group.visit(node), dtype, buf, offset, strides)]
    if node.count > GROWN and node.numel <= FEW:                # a loop that extends a chain and writes it each time would compute ever more
        outs = [(n, owner) for n, owner in [(n, n.out()) for n in group.order] if owner is not None and owner.node is n]
        targets += [(group.index[n], n.dtype, device.alloc(owner.nbytes), 0, None) for n, owner in outs]
    if not fits(device, group, len(shape), len(targets)):
        realize(owner_of(group.order[(len(group.order) - 1) // 2]))
        store_into(device, node, buf, offset, shape, strides, dtype)
        return
    run(device, group, shape, node.numel, targets)
    for (n, owner), target in zip(outs, targets[1:]):
        finish(n, owner, target[2])


def reads_beside(node: Node, buf, region, target) -> int:
    """How many references to ``buf`` the pending ``node`` and all below it hold for reads of other bytes than those of a region, (shape, strides, offset) in
    elements of dtype ``target``; reads by ``node`` itself of just that region do not count. -1 where another one overlaps it."""
    shape, strides, offset = region
    first, end = offset * target.itemsize, (offset + 1 + sum([(n - 1) * s for n, s in zip(shape, strides)])) * target.itemsize
    stack, seen, count = [node], set(), 0
    while stack:
        n = stack.pop()
        for ref in n.args:
            if ref.__class__ is not tuple or id(ref) in seen:
                continue
            seen.add(id(ref))
            source, dtype, begin, steps = ref
            if source is buf:
                size = dtype.itemsize
                if n is node and begin == offset and steps == strides and dtype is target:
                    continue
                if begin * size < end and first < (begin + 1 + sum([(k - 1) * s for k, s in zip(n.shape, steps)])) * size:
                    return -1
                count += 1
            elif isinstance(source, Node):
                if source.buf is buf:
                    return -1
                if id(source) not in seen:
                    seen.add(id(source))
                    stack.append(source)
    return count
