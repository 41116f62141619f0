"""Composites that end in one elementwise operator: what a call of a known kind records, without asking the composite again.

Such a composite looks at dtypes and attributes, and hands its operands and some numbers to an operator. The second call of a kind shows which; later calls
record the operator's node themselves. It stays pending as before, and its entry on the tape is the same.
"""
from __future__ import annotations

import numpy as np

from ..core import dtype as dt
from ..core import native, symbols
from ..core import rng
from ..core import warn as warnings
from ..graph.node import Node
from ..graph.op import REGISTRY
from . import foreign, repeat
from .dispatch import _over, plain, record_alike, record_elementwise
from .entries import OpNode
from .grad_mode import state
from .tensor import Tensor, edge

_TRIES = 4              # calls of a kind that are looked at, at most
_MOST = 4096            # kinds of call remembered per composite
_FREE = object()        # in a key, a fraction that may be any other
_LARGEST = float(np.finfo(np.float32).max)
_ATTRIBUTES = frozenset((int, float, bool, complex, str, type(None)))
_by_expr: dict = {}     # expression -> the operator that it belongs to


@native.know
class Thinned:
    """What calls of one kind record: the operator, its dtypes and operands: numbers, or the places of tensors in the call."""

    __slots__ = ("op", "expr", "compute", "result", "places", "shape", "numel", "alike", "tracked", "label")

    def record(self, tensors):
        operands = tuple([tensors[p[0]] if p.__class__ is tuple else p for p in self.places])
        r = record_alike(self.expr, self.compute, self.result, tensors[0], operands) if self.alike else None
        if r is None:
            r = record_elementwise(self.expr, self.compute, self.result, self.shape, self.numel, operands)
        if self.tracked:
            self.op.attach(self.op, r, operands)
            if self.label:
                r._grad_fn.label = self.label
        return r


class Missed:
    """In place of a result: the call is still to be made, with :meth:`Thin.learn`. ``tensors``: its operands, free fractions among them."""

    __slots__ = ("key", "tensors")

    def __init__(self, key, tensors):
        self.key, self.tensors = key, tensors


def _again(known, free, args, kwargs):
    if foreign.early is not None or state.autocast is not None or not repeat.on or symbols.tracing is not None:
        return None
    key, tensors, grad = [], [], state.grad
    for v in (*args, *kwargs.values()) if kwargs else args:
        kind = v.__class__
        if kind in plain and any([t is v for t in tensors]):    # an earlier operand once more
            key += Ellipsis, [t is v for t in tensors].index(True)
        elif kind in plain:
            tensors.append(v)
            key += (v.shape, v._strides, v.dtype, v._storage.device, bool(grad and v._rg))
        elif free and kind is float and abs(v) <= _LARGEST:
            tensors.append(v)
            key.append(_FREE)
        elif kind in _ATTRIBUTES:
            key += (v if kind is not float or v else str(v), kind)              # 0.0 equals -0.0
        else:
            return None
    if kwargs:
        if "out" in kwargs:
            return None
        key += kwargs
    key = tuple(key)
    found = known.get(key, 0)
    if found.__class__ is Thinned:
        return found.record(tensors)
    return Missed(key, tensors) if found <= _TRIES and tensors else None


native.give(thin=_again, free=_FREE, thin_attributes=_ATTRIBUTES, thin_missed=Missed, thin_tries=_TRIES)
_again = native.form("thin", _again)


def overwritten(known, free, target, args, kwargs) -> bool:
    """Let ``target`` hold what a call of a known kind records of it, as ``elementwise.overwritten`` does."""
    return False


overwritten = native.form("overwritten_thinly", overwritten)


class Thin:
    """The kinds of call of one composite. ``free``: it hands on fractions as they are, and asks none of them anything, so that one kind has any."""

    def __init__(self, free=False):
        self.known, self.free = {}, free
        dt.default_listeners.append(self.known.clear)

    def __call__(self, args, kwargs):
        """The result of a call of a known kind, a Missed, or None where the composite is to be called as it is."""
        return _again(self.known, self.free, args, kwargs)

    def overwritten(self, target, args, kwargs) -> bool:
        """Whether the in-place form was done, as most are."""
        return overwritten(self.known, self.free, target, args, kwargs)

    def learn(self, missed, body, args, kwargs):
        """Make the call, and see what it records."""
        known, key = self.known, missed.key
        if len(known) > _MOST:
            known.clear()
        found = known.get(key, 0)
        known[key] = found + 1
        if not found:
            return body(*args, **kwargs)
        operands = missed.tensors
        tensors = [t for t in operands if t.__class__ is not float]
        sources, before = [t if t.__class__ is float else t._storage.node or t._storage.buf for t in operands], _state(tensors)
        r = body(*args, **kwargs)
        if before == _state(tensors):
            got = _told(r, operands, tensors, sources)
            if got is not None:
                known[key] = got
        return r


def _state(tensors):
    """What changes where a call reads values, draws numbers, warns or writes into its operands."""
    return tensors[0]._storage.device.transfers, rng.current().position(), warnings.count, [(t._ver or t._storage).version for t in tensors]


def _told(r, operands, tensors, sources):
    """The Thinned of a call with result ``r``, whose operands were ``sources``; None where it is more than one operator of them and of numbers."""
    if len(operands) > len(tensors) and r.dtype.itemsize < 4:   # fractions are rounded first
        return None
    if r.__class__ is not Tensor or r._base is not None or not r._dense or any([r is t for t in tensors]) or len(set(map(id, sources))) < len(sources):
        return None
    node = r._storage.node
    if node.__class__ is not Node or node.buf is not None or node.reduce is not None or node.shape != r.shape:
        return None
    op = _operator(node.expr)
    places = None if op is None else [_place(ref, node, operands, sources) for ref in node.args]
    if not places or None in places or len(set(places).intersection([(i,) for i in range(len(operands))])) < len(operands):
        return None                                             # what it does with other tensors, nobody knows
    got = Thinned()
    got.op, got.expr, got.compute, got.result, got.places, got.shape, got.numel = op, node.expr, node.compute, r.dtype, places, r.shape, r._numel
    got.alike = operands[0] is tensors[0] and all([t._dense and t.shape == r.shape for t in tensors]) and all([p.__class__ in (tuple, int, float) for p in places])
    got.tracked, got.label = r._rg, ""
    operands = [operands[p[0]] if p.__class__ is tuple else p for p in places]
    if r._rg:
        entry = r._grad_fn
        if entry.__class__ is not OpNode or entry.op is not op or entry.edges != [
                edge(t) if i in op.differentiable and isinstance(t, Tensor) and t._rg else None for i, t in enumerate(operands)]:
            return None
        got.label = entry.label
    elif state.grad and any([t._rg for t in tensors]) and op.differentiable and r.dtype.differentiable:
        return None                                             # its history was cut off
    return got


def _place(ref, node, tensors, sources):
    """An operand of the node as a number, or (the place of a tensor or free fraction,); None for what is no operand of the call."""
    if ref.__class__ is not tuple:
        same = [i for i, source in enumerate(sources) if source.__class__ is float]
        return ref if not same else (same[0],) if len(same) == 1 and sources[same[0]] == ref else None
    for i, (t, source) in enumerate(zip(tensors, sources)):
        if ref[0] is source:
            same = ref[1] is t.dtype and ref[3] == _over(t, node.shape)[0] and ref[2] == (0 if isinstance(source, Node) else t._offset)
            return (i,) if same else None
    return None


def _operator(expr):
    op = _by_expr.get(expr)
    if op is None:
        _by_expr.update({o.expr: o for o in REGISTRY.values() if o.expr is not None})
        op = _by_expr.get(expr)
    return op
