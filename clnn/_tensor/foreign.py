"""Tensors without strides: how an operator written for dense memory hands such operands over.

A sparse tensor has no storage; whoever asks it for one gets :class:`NoStrides`. The constructors of operators catch that and ask the tensor for its own
form of the operator. So no operator looks for sparse operands, and dense ones cost nothing.
"""
from __future__ import annotations

import threading

from . import later, tape
from .tensor import Tensor


early = None            # asked first by operators, once there are tensors that stand for others: early(name, args, kwargs) gives a result or NotImplemented
dispatched = None       # asked first by in-place operators, once classes have __torch_dispatch__: dispatched(function, name, self, args, kwargs)


stand_ins = False       # whether those who ask look for tensors that stand for others, so that no operator may be taken together with its neighbours


def ask_early(fn, stands_in=True):
    """Have operators ask ``fn``, too, before they compute."""
    global early, stand_ins
    before, stand_ins = early, stand_ins or stands_in
    if before is None:
        early = fn
        return

    def chain(name, args, kwargs):
        got = fn(name, args, kwargs)
        return before(name, args, kwargs) if got is NotImplemented else got
    early = chain


class _Here(threading.local):
    maps = ()           # of this thread the maps over samples that are under way, the innermost last: (number, samples, what becomes of random numbers)
    due = 0, 0          # blocks and words of random numbers that were drawn by operators that gave each sample its own, or all the same, as they should


here = _Here()
fresh = None            # while there are: fresh(draw, shape) gives each sample its numbers, from draw(shape)


class NoStrides(NotImplementedError):
    """An operator asked a tensor without strides for its memory. What remains uncaught says which operator that was."""

    def __init__(self, tensor):
        super().__init__("Cannot access storage of SparseTensorImpl: a sparse tensor has no strides, use its indices() and values() or to_dense()")
        self.tensor, self.operator = tensor, ""

    def instead(self, name, args, kwargs):
        """What the tensor's own form of the operator ``name`` gives; raises this error, with the name in it, where there is none."""
        own = self.tensor._own_form(name)
        if own is not None:
            return own(*args, **kwargs)
        raise self.of(name)

    def of(self, name):
        """This error, saying that it was the operator ``name``; the innermost of several is named."""
        if not self.operator:
            self.operator = name.lstrip("_")
            self.args = (f"Could not run 'aten::{self.operator}' with arguments from the '{self.tensor._backend()}' backend: clnn has no such operator for "
                         "sparse tensors. Use to_dense() first, or apply it to values().",)
        return self


later.NoStrides = NoStrides


def without_kernels(name, args):
    """The operator ``name`` of a tensor whose dtype no kernel takes: its own form."""
    tensor = next(a for a in args if isinstance(a, Tensor) and a.dtype.index < 0)
    return tensor._refusal().instead(name, args, {})


# What tensors with strides answer where both kinds differ: their device, the tensor whose history theirs is, a gradient of that as one of theirs and the
# reverse; the edges of an operator that gave them; whether they can be written into another; and computing what is pending.
Tensor._home = property(lambda self: self._storage.device)
Tensor._bearer = property(lambda self: self)
Tensor._dressed = Tensor._bared = lambda self, g: g
Tensor._check_fits = lambda self, target, name: None
Tensor._edges_of = lambda self, edges, values: edges
Tensor._settle = lambda self: self._storage.buffer()


class Dressing(tape.Node):
    """Stands behind the part of a tensor that a custom function returned: hands that function a gradient of the tensor."""


class OfPart(Tensor):
    """A tensor made of another, ``part``, that has the memory and the history. Subclasses say which nodes stand before and behind that history."""

    __slots__ = ("part",)

    @property
    def _rg(self):
        return self.part._rg

    @_rg.setter
    def _rg(self, value):
        if value is not self.part._rg:
            self.part = self.part._alias()
            self.part._rg = value

    @property
    def _grad_fn(self):
        return self._node_before()

    @_grad_fn.setter
    def _grad_fn(self, node):
        self.part = self.part._alias()
        if node is not None:
            self.part._grad_fn, self.part._rg = self._node_behind(node), True

    @property
    def _out_nr(self):
        return 0

    @_out_nr.setter
    def _out_nr(self, number):
        if isinstance(self.part._grad_fn, Dressing):
            self.part._grad_fn.edges = [(self.part._grad_fn.edges[0][0], number)]
