"""What pending nodes compute, told by a key: structures that were launched before are launched again without working anything out anew."""
from __future__ import annotations

import struct

from ..core import native, symbols
from ..core.shape import Size, contiguous_strides
from .node import Node


def told(root: Node):
    """(key, operands, numbers, nodes) of all that is pending below ``root``.

    The key is equal for nodes that one kernel serves with the same sizes. The operands are (buffer, dtype, offset, strides), in the order in which
    :meth:`~clnn.graph.fuse.Group.visit` comes to them, and the numbers as launches take them; ``nodes`` numbers the nodes from the root on.
    """
    key, reads, numbers, nodes = [root.device], [], [], {}
    _tell(root, key, reads, numbers, nodes)
    n = len(reads)
    if n > 1 and (reads[0][0] is reads[1][0] if n == 2 else len({id(r[0]) for r in reads}) < n):
        places = [(id(r[0]), r[2]) for r in reads]              # equal reads share an operand
        key.append(bytes([places.index(place) for place in places]))
    return key, reads, numbers, nodes


def _tell(node, key, reads, numbers, nodes):
    expr, compute = node.expr, node.compute
    nodes[node] = len(nodes)
    key += (expr, compute, node.dtype, node.shape)
    place = 0
    for ref in node.args:
        if ref.__class__ is not tuple:
            kind = compute.acc
            numbers.append(symbols.real(ref) if kind == "float" and not expr.longs else packed(ref, "long" if place in expr.longs else kind))
            key.append(None)
        else:
            source = ref[0]
            if isinstance(source, Node):
                if source.buf is None:
                    at = nodes.get(source)
                    if at is None:
                        _tell(source, key, reads, numbers, nodes)
                    else:
                        key.append(float(at))                   # no number that a family may vary
                    place += 1
                    continue
                ref = (source.buf, *ref[1:])
            reads.append(ref)
            key += (ref[1], True if ref[2] else False, ref[3])
        place += 1


def varied(node, key, made):
    """A copy of what is pending below ``node`` with the shapes and strides of ``key``, an iterator over what :func:`told` tells; ``made``: {node: its copy}."""
    new = made[node] = Node.__new__(Node)
    next(key), next(key), next(key)
    new.expr, new.compute, new.dtype, new.device, new.shape = node.expr, node.compute, node.dtype, node.device, next(key)
    new.numel, new.buf, new.reduce, new.count, new.leaves, args = new.shape.numel(), None, None, node.count, node.leaves, []
    new.linear = False                                          # whether it is read in flat order is asked again
    for ref in node.args:
        if ref.__class__ is not tuple:
            next(key)
        else:
            source = ref[0]
            if isinstance(source, Node):
                if source.buf is None:
                    at = made.get(source)
                    ref = (varied(source, key, made) if at is None else at, *ref[1:])
                    if at is not None:
                        next(key)
                    args.append(ref)
                    continue
                source = source.buf
            dtype, _, strides = next(key), next(key), next(key)
            ref = (source, dtype, ref[2], strides)
        args.append(ref)
    new.args = tuple(args)
    return new


def sizeless(key, shape):
    """``key``, of :func:`told`, without the sizes, where everything is read in flat order or is one element for all; else None."""
    flat, zero, out, before = contiguous_strides(shape), (0,) * len(shape), [], None
    if flat == zero:                                            # of no dimensions
        return None
    for part in key:
        if before.__class__ is bool:                            # strides
            if part != flat and part != zero:
                return None
            part = part == flat
        elif part.__class__ is Size:
            if part != shape:
                return None
            part = None
        out.append(part)
        before = part if part.__class__ is bool and before.__class__ is not bool else None
    return tuple(out)


_PACK_D, _PACK_Q, _PACK_FF, _PACK_DD = struct.Struct("d").pack, struct.Struct("Q").pack, struct.Struct("2f").pack, struct.Struct("2d").pack


def packed(value, kind):
    """A scalar in the form ``launch`` takes: float, int, or packed bytes for double and for complex numbers."""
    if kind == "float":
        return float(value)
    if kind == "double":
        return _PACK_D(float(value))
    if kind == "ulong":
        return _PACK_Q(int(value) % (1 << 64))
    return int(value) if kind in ("int", "long") else (_PACK_FF if kind == "float2" else _PACK_DD)(value.real, value.imag)


native.give(packed=packed, real=symbols.real)
told = native.form("told", told)
