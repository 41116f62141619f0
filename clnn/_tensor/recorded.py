"""Calls of composites that leave one entry on the tape, repeated: the launches of their recipe, and that entry over other tensors."""
from __future__ import annotations

from ..core import dtype as dt
from ..core import native
from .entries import OpNode
from .grad_mode import state
from .handle import told
from .tensor import Tensor, edge

_ATTRIBUTES = frozenset((int, float, bool, complex, str, type(None), dt.dtype))
_SHOWN, _HISTORY = {"result", "label"}, {"_grad_fn", "_out_nr", "_rg"}      # what instances may have beside their slots


@native.know
class Recorded:
    """A kind of call that records gradients: its launches, and the one entry that it leaves on the tape.

    ``places``: of the operator's parameters, which of the call's tensors each is, -1 for one of the ``values``; ``label``: a name that the entry shows.
    """

    __slots__ = ("recipe", "op", "places", "values", "label")

    @classmethod
    def of(cls, recipe, result, tensors):
        """None where ``result`` has another history than one new entry over ``tensors``."""
        node = result._grad_fn if result.__class__ is Tensor else None
        if node.__class__ is not OpNode or set(node.__dict__) - _SHOWN or {*result._all, *told(result)} - _HISTORY:
            return None
        if node.op.public != 1 or state.watched:                # what hooks made of values is no tensor
            return None
        ends, same, places = {edge(t): i for i, t in enumerate(tensors) if t._rg}, [id(t) for t in tensors], []
        for value, end, meta in zip(node.values, node.edges, node.metas):
            place = -1 if end is None else ends.get(end)
            if isinstance(value, Tensor):
                at = same.index(id(value)) if id(value) in same else None
                place = at if end is None or place is not None and at is not None and tensors[place] is value else None
            if place is None or end is not None and meta != (tensors[place].shape, tensors[place].dtype):
                return None
            if not isinstance(value, Tensor) and not _plain(value):
                return None
            places.append(place)
        new = cls()
        new.recipe, new.op, new.places, new.label = recipe, node.op, tuple(places), node.__dict__.get("label", "")
        new.values = tuple([None if isinstance(v, Tensor) else v for v in node.values])
        return new

    def parts(self):
        """What may be another for other sizes, besides the recipe."""
        return (self.values,)

    def varied(self, sizes, launches, results, values):
        """The same for other sizes."""
        new = Recorded()
        new.recipe, new.op, new.places, new.values, new.label = self.recipe.varied(sizes, launches, results), self.op, self.places, values, self.label
        return new

    def run(self, buffers, tensors):
        made = self.recipe.run(buffers)
        self.op.attach(self.op, made, tuple([v if at < 0 else tensors[at] for v, at in zip(self.values, self.places)]))
        result = made[0] if made.__class__ is tuple else made
        if self.label:
            result._grad_fn.label = self.label
        return result


def outputs(result):
    """``result``, and with it those that its entry keeps beside it: what launches are repeated for."""
    node = result._grad_fn if result.__class__ is Tensor else None
    if node.__class__ is not OpNode or node.op.public != 1 or len(node.op.outputs) == 1 or state.watched:
        return result
    kept = [None if r is None else r[0] for r in node.result or ()]
    return (result, *(kept or [None] * len(node.op.outputs))[1:])


def _plain(value):
    """Whether a value follows from what tells calls apart: no tensor, and nothing that may hold one."""
    return value.__class__ in _ATTRIBUTES or isinstance(value, (tuple, list)) and all(map(_plain, value))


def tensors_among(values):
    """The tensors among ``values`` and in lists of them, in order."""
    found = []
    for v in values:
        if isinstance(v, Tensor):
            found.append(v)
        elif v.__class__ is tuple or v.__class__ is list:
            found += tensors_among(v)
    return found
