"""Copies of graphs whose tensors have traced sizes, so that what a backward pass over one does holds for others (see ``core/families.py``).

A copy is made from a graph and what tells its kind, read in the order in which ``passes._Graph`` writes it.
"""
from __future__ import annotations

import functools

from ..core import symbols
from ..core.shape import is_contiguous
from ..graph.node import Storage
from . import tape
from .entries import OpNode
from .template import Template
from .tensor import Tensor

_new = object.__new__


def _like(node):
    """An entry with the attributes of another."""
    new = _new(node.__class__)
    new.__dict__.update(node.__dict__)
    for name in _slots(node.__class__):
        if hasattr(node, name):
            setattr(new, name, getattr(node, name))
    return new


@functools.lru_cache(maxsize=None)
def _slots(cls):
    return [name for base in cls.__mro__ for name in base.__dict__.get("__slots__", ()) if not name.startswith("__")]


class Copied:
    """The copy of a graph with the ``nodes``, as ``key`` tells its sizes: ``copies`` of its entries, and of the ``leaves`` whose gradients it adds to.

    ``atoms``, ``plain``: classes of values that are told by themselves, and of tensors.
    """

    def __init__(self, nodes, seeds, key, atoms, plain, accumulate):
        self.key, self.atoms, self.plain, self.storages, self.handles, self.leaves = iter(key), atoms, plain, {}, {}, []
        self.seeds = [self.tensor(t) for t in seeds]
        self.copies = copies = {node: _like(node) for node in nodes}
        for node in nodes:
            new, kind = copies[node], node.__class__
            new.edges = [e and (copies[e[0]], e[1]) for e in node.edges]
            if kind is OpNode:
                self._operator(new)
            elif kind is tape.AccumulateGrad:
                self._leaf(new, accumulate)
            else:
                self._other(new)

    def tensor(self, t):
        shape, strides, offset, _ = [next(self.key) for _ in range(4)]
        got = self.handles.get(id(t))
        if got is None:
            got = self.handles[id(t)] = _new(Tensor)
            got._shape, got._strides, got._offset, got._dtype, got._numel = shape, strides, offset, t.dtype, shape.numel()
            got._dense = bool(offset == 0 and is_contiguous(shape, strides))
            got._storage = self._storage(t._storage, got)
        return got

    def _storage(self, st, t):
        """Memory of its own, as passes write into that of gradients."""
        new = self.storages.get(id(st))
        if new is None:
            new = self.storages[id(st)] = _new(Storage)
            new.device, new.buf, new.node, new.pinned, new.version = st.device, st.buf, None, False, st.version
            nbytes = t._numel * t.dtype.itemsize
            new.nbytes = nbytes if t._dense and symbols.plain(nbytes) == st.nbytes else st.nbytes
        return new

    def _operator(self, new):
        next(self.key)
        new.metas = [next(self.key) for _ in new.metas]
        new.values = values = [self._value(v) for v in new.values]
        new.versions = [v._storage.version if v.__class__ is Tensor else 0 for v in values]
        if new.result is not None:
            new.result = [self._result(kept) for kept in new.result]

    def _result(self, kept):
        if kept is None:
            return next(self.key)
        t = self.tensor(kept[0])
        return t, None, kept[2]

    def _value(self, v):
        kind = v.__class__
        if kind in self.plain:
            return self.tensor(v)
        if kind in self.atoms:
            told = next(self.key)
            next(self.key)
            return v if told.__class__ is str else told         # a place in the stream of random numbers is told by a word
        return self._attribute(v, kind)

    def _attribute(self, v, kind):
        next(self.key)
        if issubclass(kind, (tuple, list)):
            next(self.key)
            return getattr(kind, "_make", kind)([self._value(item) for item in v])
        if kind is float:
            next(self.key)
        return v

    def _leaf(self, new, accumulate):
        shape, strides, _, _ = [next(self.key) for _ in range(4)]
        leaf, new.variable = new.variable, _new(Tensor)
        variable = new.variable
        variable._shape, variable._strides, variable._offset, variable._dtype, variable._numel = shape, strides, leaf._offset, leaf.dtype, shape.numel()
        variable._dense, variable._storage, variable._rg = leaf._dense, leaf._storage, True
        if not accumulate:
            return
        self.leaves.append(variable)
        if leaf._grad is None:
            next(self.key)
        else:
            variable._grad = self.tensor(leaf._grad)

    def _other(self, new):
        told = next(self.key)
        if new.unfolds:
            self._function(new, told)
            return
        if not new.bare:
            raise symbols.Refused(f"{new.name()} of other sizes")
        new.take(told)

    def _function(self, new, told):
        new.template = told if told.__class__ is Template else told[0].of(*told[1:])
        for _ in new.numbers:
            next(self.key)
        new.operands, new.kept = [[None if t is None else self.tensor(t) for t in kept] for kept in (new.operands, new.kept)]
        new.versions = [0 if t is None else t._storage.version for t in new.operands]
        new.source = self.copies.get(new.source, new.source)
