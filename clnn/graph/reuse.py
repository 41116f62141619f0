"""Where the values of fused computations go: memory of operands that die with a launch is written over."""
from __future__ import annotations

import sys
from collections import Counter

from ..core.shape import is_contiguous
from .node import Node, held

# Whatever is asked for is given as an item or an attribute: since Python 3.14 a variable given to a function is no reference of its own.
_refcount = sys.getrefcount
SMALL = 1 << 14        # bytes; finding out what dies costs more than another small buffer


def spare(node: Node, nbytes: int):
    """The buffer of an operand that only ``node`` refers to and reads in flat order; it may be written over. None if there is none."""
    for ref in node.args:
        if (ref.__class__ is tuple and not ref[2] and ref[1].itemsize * node.numel == nbytes
                and _refcount(ref[0]) <= 2 + (id(ref[0]) in held) and is_contiguous(node.shape, ref[3])):     # the tuple and the call's argument
            return ref[0]
    return None


def dies(reads, numel: int, nbytes: int) -> bool:
    """Whether an operand of ``nbytes`` bytes may be referred to by pending nodes of one structure only; most are not, which costs little to see.

    ``reads``: the operands as (buffer, dtype, offset, strides); these tuples hold the only references that are known.
    """
    for ref in reads:
        if not ref[2] and ref[1].itemsize * numel == nbytes:
            buf = ref[0]
            count = len([r for r in reads if r[0] is buf])
            if _refcount(ref[0]) <= 2 + count + (id(buf) in held):      # the variable, the call's argument
                return True
    return False


def allocate(device, group, outs) -> list:
    """A buffer per output; a leaf that dies with this launch and is walked in the same order is written over."""
    if outs[0][1].nbytes < SMALL or not any([group.held_alone(n.numel, owner.nbytes) for n, owner in outs]):
        alloc = device.alloc
        return [alloc(owner.nbytes) for _, owner in outs]
    free = _dying(group, {n for n, _ in outs})
    buffers = []
    for n, owner in outs:
        nbytes = owner.nbytes
        for i, (buf, size) in enumerate(free):
            if size == nbytes:
                buffers.append(buf)
                del free[i]
                break
        else:
            buffers.append(device.alloc(nbytes))
    return buffers


def _dying(group, written) -> list:
    """(buffer, bytes) of leaves that only nodes which end here refer to, and that every reader walks in flat order."""
    counts, spoiled, outlives, uses = {}, set(), set(), Counter()
    for n in group.order:
        uses.update([ref[0] for ref in n.args if ref.__class__ is tuple and ref[0].__class__ is Node])
    n = None
    for at in range(len(group.order) - 1, -1, -1):               # readers first: what a surviving node reads survives too
        n = group.order[at]
        # order list, index key, loop variable, call argument, and one per reference inside the group (args tuples)
        ends = n in written or (_refcount(group.order[at]) <= uses[n] + 5 and id(n) not in outlives)
        if not ends:
            outlives.update([id(ref[0]) for ref in n.args if ref.__class__ is tuple])
        for ref in n.args:
            if ref.__class__ is tuple and ref[0].__class__ is not Node:
                buf, dtype, offset, strides = ref
                whole = offset == 0 and is_contiguous(n.shape, strides)
                entry = counts.setdefault(id(buf), [buf, 0, n.numel * dtype.itemsize])
                entry[1] += 1
                if not (ends and whole):
                    spoiled.add(id(buf))
                ref = buf = None
            elif ref.__class__ is tuple and ref[0].buf is not None:
                spoiled.add(id(ref[0].buf))
    out = []
    leaf_refs = {}
    for leaf in group.leaves:
        leaf_refs[id(leaf[0])] = leaf_refs.get(id(leaf[0]), 0) + 1
    for key, entry in counts.items():
        if key in spoiled:
            continue
        # owners: the args tuples, the group's leaves, ``entry`` itself and getrefcount's argument
        if _refcount(entry[0]) <= entry[1] + leaf_refs.get(key, 0) + 2 + (key in held):
            out.append((entry[0], entry[2]))
    return out
