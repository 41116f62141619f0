"""Composites of few elements as one entry of the tape.

A composite that records gradients leaves an entry per operator, and each costs the host several times what the device needs for a few thousand elements.
There the whole composite is one operator: forward it is repeated as a list of launches, and so is its backward pass, which computes the composite once
more and differentiates it. Second gradients, batches of samples and larger tensors take the composite as it is.
"""
from __future__ import annotations

import functools

from ..graph.node import Storage
from . import foreign
from .grad_mode import state
from .repeat import repeated
from .tensor import Tensor

_FEW = 1 << 18          # elements of all operands: computing them once more takes less time than the entries would


def _gradients(body, places):
    """The gradients of ``body`` for the operands at ``places``, as a function of (g, operands, flags)."""
    @functools.partial(repeated, mode="whole")
    def gradients(g, *rest):
        from .backward import grad as grad_of
        values, needs, leaves = list(rest[:-1]), rest[-1], []
        for i, needed in zip(places, needs):
            if needed:
                values[i] = values[i].detach().requires_grad_(True)
                leaves.append(values[i])
        before, state.grad = state.grad, True
        try:
            found = iter(grad_of([body(*values)], leaves, [g], allow_unused=True))
        finally:
            state.grad = before
        got = [next(found) if needed else None for needed in needs]
        return tuple([t if t is None or t._dense else t.contiguous() for t in got])
    return gradients


def _kind(values, places):
    """What tells calls apart that one operator can serve, besides the operands; None where the composite goes as it is."""
    total, tracked, rest = 0, [], []
    for i, v in enumerate(values):
        if v.__class__ is Tensor:
            if not isinstance(v._storage, Storage) or v.dtype.is_complex or v._rg and i not in places:
                return None
            total += v._numel
            tracked.append(v._rg)
        elif isinstance(v, Tensor) or v.__class__.__hash__ is None:
            return None
        else:
            rest.append(v)
    return (*rest, tuple(tracked)) if any(tracked) and 0 < total <= _FEW else None


def tied(name, body, inputs):
    """``body`` of a composite with one result, as one entry of the tape where it has few elements. ``inputs``: the operands with gradients, comma-separated."""
    from .declare import _binder, kernel
    params, bind = _binder(body)
    names = [n.strip() for n in inputs.split(",")]
    places = [params.index(n) for n in names]
    listed = ", ".join(params)
    one = "[0]" if len(names) == 1 else ""
    rule = eval(f"lambda g, {listed}, needs: gradients(g, {listed}, needs){one}", dict(gradients=_gradients(body, places)))

    @functools.wraps(body)
    def plain(*values):
        return body(*values)
    whole = kernel("_tied_" + name, method=False, repeat="whole", decompose=body, vjp={", ".join(names): rule})(plain)
    labels = {}

    @functools.wraps(body)
    def call(*args, **kwargs):
        if not state.grad or state.autocast is not None or foreign.stand_ins or foreign.dispatched is not None:
            return body(*args, **kwargs)
        try:
            values = bind(args, kwargs)
        except TypeError:
            return body(*args, **kwargs)
        key = _kind(values, places)
        if key is None:
            return body(*args, **kwargs)
        label = labels.get(key)
        if label is None:                                       # what it is called follows from the first call of a kind
            r = body(*args, **kwargs)
            if r._grad_fn is not None:
                labels[key] = r._grad_fn.name()
            return r
        r = whole(*values)
        if r._grad_fn is not None:
            r._grad_fn.label = label
        return r
    return call
