"""Pending computations of one structure, done at once: what was worked out sample by sample takes one launch where the samples become a batch."""
from __future__ import annotations

from array import array

from ..core import dtype as dt
from ..core.shape import Size, contiguous_strides, is_contiguous
from .node import MAX_LEAVES, Node, Values

FEW = 4             # fewer computations gain nothing
SMALL = 1 << 16     # elements of each, up to which its own launch costs more than its work
SIMPLE = 8          # nodes of each: they may be wanted again, and would be computed again then


def _nobody():
    """The storage of a value that nobody has."""


def stacked(roots, gather):
    """A node for what the pending ``roots`` compute, one beside the other along a new first dimension; None where they differ in more than what they read.

    Args:
        gather: given a device, several reads there, (buffer, dtype, offset, strides) each, and their shape, a buffer with their elements one after the other.
    """
    first = roots[0]
    if len(roots) < FEW or not 0 < first.numel <= SMALL or first.count > SIMPLE:
        return None
    found = _Beside(first.device, gather)
    node = found.node(roots)
    return node if node is not None and found.leaves <= MAX_LEAVES else None


class _Beside:
    """Nodes of one kind as one node each. Nothing is sent or launched before all that is pending is known to fit."""

    def __init__(self, device, gather):
        self.device, self.gather, self.made, self.leaves = device, gather, {}, 0

    def node(self, nodes):
        """The node that stands for ``nodes``; None where they are not of one kind."""
        first = nodes[0]
        before = self.made.get(first)
        if before is not None:
            return before[1] if all([a is b for a, b in zip(nodes, before[0])]) else None
        expr, compute, dtype, shape, n = first.expr, first.compute, first.dtype, first.shape, len(first.args)
        if first.reduce is not None or expr.uses_index:
            return None
        for node in nodes:
            if node.__class__ is not Node or node.buf is not None or node.expr is not expr or node.compute is not compute or node.dtype is not dtype \
                    or node.shape != shape or node.reduce is not None or len(node.args) != n:
                return None
        new = Node(expr, (), compute, dtype, Size((len(nodes), *shape)), len(nodes) * first.numel, first.device, 1, 0, True)
        new.out, args = _nobody, []
        for place, refs in enumerate(zip(*[node.args for node in nodes])):
            arg = self.operand(new, refs, shape, place in expr.longs)
            if arg is None:
                return None
            args.append(arg)
        new.args = tuple(args)
        self.made[first] = nodes, new
        return new

    def operand(self, new, refs, shape, long):
        """What ``new`` has in place of an operand that is ``refs`` of those it stands for; None where that is no operand of one kind."""
        first = refs[0]
        if first.__class__ is not tuple:
            return self.numbers(new, refs, long)
        source, dtype, _, strides = first
        for ref in refs:
            if ref.__class__ is not tuple or ref[1] is not dtype or ref[3] != strides:
                return None
        if source.__class__ is Node and source.buf is None:
            below = self.node([ref[0] for ref in refs])
            if below is None or below.shape != new.shape and not below.linear:
                return None
            new.count, new.linear = new.count + below.count, new.linear and below.linear
            return below, dtype, 0, contiguous_strides(new.shape)
        got = self.read(refs, shape)
        if got is not None:
            self.leaves += 1
            new.leaves += 1
            new.linear = new.linear and (is_contiguous(new.shape, got[3]) or not any(got[3]))
        return got

    def numbers(self, new, refs, long):
        first = refs[0]
        if all([r is first or r.__class__ is first.__class__ and r == first and r for r in refs]):       # 0.0 equals -0.0
            return first
        if new.compute is not dt.float32 or long or any([r.__class__ is tuple for r in refs]):
            return None
        self.leaves += 1
        new.leaves += 1
        new.linear = False
        return Values(self.device, array("f", refs).tobytes()), dt.float32, 0, (1, *(0,) * (len(new.shape) - 1))

    def read(self, refs, shape):
        """One read that gives what ``refs`` do, one after the other."""
        source, dtype, begin, strides = refs[0]
        if all([ref[0] is source for ref in refs]):
            step = refs[1][2] - begin
            if all([ref[2] == begin + i * step for i, ref in enumerate(refs)]) and step >= 0:
                return source, dtype, begin, (step, *strides)
        if all([ref[0].__class__ is Values for ref in refs]):
            return self.sent(refs, shape)
        if any([ref[0].__class__ is Node and ref[0].buf is None for ref in refs]):
            return None
        reads = [(ref[0].buf if isinstance(ref[0], Node) else ref[0], *ref[1:]) for ref in refs]
        return self.gather(self.device, reads, shape), dtype, 0, contiguous_strides(Size((len(refs), *shape)))

    def sent(self, refs, shape):
        """The same of values of the host, which are sent as one."""
        source, dtype, _, strides = refs[0]
        span = 1 + sum([(n - 1) * s for n, s in zip(shape, strides)])
        width, nbytes, pieces = dtype.itemsize, span * dtype.itemsize, []
        for values, _, at, _ in refs:
            piece = values.values
            if piece is None:                                   # another thread sent it
                return None
            pieces.append(piece if len(piece) == nbytes else piece[at * width:at * width + nbytes])
        return Values(self.device, b"".join(pieces)), dtype, 0, (span, *strides)
