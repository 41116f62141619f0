"""Where the values of fused computations go: memory of operands that die with a launch is written over."""
from __future__ import annotations

import sys
from collections import Counter

from ..core.shape import is_contiguous
from .node import held

# Whatever is asked for is given as an item or an attribute: since Python 3.14 a variable given to a function is no reference of its own.
_refcount = sys.getrefcount
SMALL = 1 << 14        # bytes; finding out what dies costs more than another small buffer


def allocate(device, reads, nodes, outs) -> list:
    """A buffer per output; that of an operand which dies with this launch and is walked in the same order is written over.

    Args:
        reads, nodes: what :func:`~clnn.graph.structure.told` tells of the pending nodes.
        outs: (node, storage) of the values that are kept, the last node of all first.
    """
    alloc = device.alloc
    free = _dying(reads, nodes, outs) if outs[0][1].nbytes >= SMALL else None
    if not free:
        return [alloc(owner.nbytes) for _, owner in outs]
    buffers = []
    for _, owner in outs:
        at = next((i for i, (_, nbytes) in enumerate(free) if nbytes == owner.nbytes), None)
        buffers.append(alloc(owner.nbytes) if at is None else free.pop(at)[0])
    return buffers


def _dying(reads, nodes, outs) -> list:
    """(buffer, bytes) of operands that nobody refers to but nodes which end here, and that every reader walks in flat order."""
    most = len(reads) + 1                                       # references, if all were to one buffer: from tuples, and the call's argument
    if most == 3 and reads[0][0] is not reads[1][0]:
        most = 2
    few = [ref for ref in reads if _refcount(ref[0]) <= most] if not held else reads
    if not few:
        return few                                              # as it is mostly, so this is found out in few steps
    found, numel, shape, readers = [], outs[0][0].numel, outs[0][0].shape, {}
    for ref in reads:
        readers.setdefault(id(ref[0]), []).append(ref)
    for same in readers.values():
        ref, nbytes = same[0], same[0][1].itemsize * numel
        if _refcount(ref[0]) <= 1 + len(same) + (id(ref[0]) in held) and all(
                [not r[2] and r[1].itemsize * numel == nbytes and is_contiguous(shape, r[3]) for r in same]):
            found.append((ref[0], nbytes))
    return found if _all_end(nodes, outs) else []


def _all_end(nodes, outs) -> bool:
    """Whether none of ``nodes`` that is not kept is read by others, who would read its operands later."""
    if len(nodes) == len(outs):
        return True
    order, kept, uses = list(nodes), {n for n, _ in outs}, None
    for at in range(len(order)):
        if order[at] not in kept and _refcount(order[at]) > 4:                   # the dict, the list, a reader's tuple, the call's argument
            uses = uses or Counter([id(r[0]) for n in order for r in n.args if r.__class__ is tuple])
            if _refcount(order[at]) > 3 + uses[id(order[at])]:
                return False
    return True
