"""Gradient rules of operators: what a rule asks for, and calling it with that."""
from __future__ import annotations

import inspect

from ..graph.node import Expr
from .dispatch import record_elementwise
from .grad_mode import state
from .tensor import Tensor

_G, _NEEDS, _SHAPE, _INPUT, _OUTPUT, _STRIDES = range(6)       # what a rule can ask for


def parameter_names(fn):
    """The names that ``inspect.signature(fn).parameters`` has, at a tenth of its cost: an import asks for those of a thousand functions."""
    while not hasattr(fn, "__signature__") and hasattr(fn, "__wrapped__"):
        fn = fn.__wrapped__
    code = getattr(fn, "__code__", None)
    if code is None or hasattr(fn, "__signature__"):
        return tuple(inspect.signature(fn).parameters)
    named, last, names = code.co_argcount, code.co_argcount + code.co_kwonlyargcount, code.co_varnames
    listed = bool(code.co_flags & inspect.CO_VARARGS)
    end = last + listed + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return names[:named] + names[last:last + listed] + names[named:last] + names[last + listed:end]


class Rule:
    """One gradient rule: which inputs it serves and which values it asks for.

    ``fused`` is the same gradient as one C expression over the same values, which takes one recorded operator instead of several. It serves where the
    gradient itself is not differentiated. ``others``: the rules that this one stands for, which know what each gradient asks for.
    """

    __slots__ = ("targets", "target", "joint", "fn", "fused", "names", "wants", "saves", "asks", "askers", "apart", "collect")

    def __init__(self, op, key, fn, others=()):
        names = [n.strip() for n in key.split(",")]
        self.joint = len(names) > 1
        self.targets = tuple(op.position[n] for n in names)
        self.target = self.targets[0]
        self.fn, text = fn if fn.__class__ is tuple else (fn, None)
        self.names = parameter_names(self.fn)
        self.fused = None if text is None else Expr(f"{op.name}_grad", self.names, text)
        self.wants, self.saves, self.collect, self.apart = [], set(), None, not others
        for n in self.names:
            if n in ("g", "needs"):                              # even where an operand has that name
                self._want(_G if n == "g" else _NEEDS, 0, n)
            elif n in op.position:
                self._want(_INPUT, op.position[n], n, op.position[n])
            elif n in op.outputs or n == "result":
                at = op.outputs.index(n) if n in op.outputs else 0
                self._want(_OUTPUT, at, n, -1 - at)
            elif n.endswith("_shape") and n[:-6] in op.position:
                self._want(_SHAPE, op.position[n[:-6]], n)
            elif n.endswith("_strides") and n[:-8] in op.position:
                self._want(_STRIDES, op.position[n[:-8]], n, op.position[n[:-8]])
            else:
                raise ValueError(f"{op.name}: the gradient rule for {key!r} asks for {n!r}, which is no input, attribute or output")

        self.asks = {at if kind == _INPUT else -1 - at for kind, at, _ in self.wants if kind in (_INPUT, _OUTPUT)}      # of these the values
        asked = [(at, t) for r in others for kind, at, _ in r.wants if kind == _INPUT for t in r.targets]
        self.askers = {at: {t for a, t in asked if a == at} for at, _ in asked}

    def _want(self, kind, at, name, saved=None):
        self.wants.append((kind, at, name))
        if saved is not None:
            self.saves.add(saved)

    def call(self, node, g, needed):
        if self.collect is None:
            self.collect = _collector(self.wants, self.targets, self.askers, self.apart)
        args = self.collect(node, g, needed)
        if self.fused is not None and not state.grad and not g.dtype.is_complex and _alike(args):
            return record_elementwise(self.fused, g.dtype, g.dtype, g.shape, g._numel, args)
        return self.fn(*args)


_PLAIN = frozenset((int, float, bool, str, bytes, tuple, type(None)))


def _collector(wants, targets, askers, apart):
    """A function of (node, gradient, needed) that gives what a rule asks for: written out, as every step of a backward pass calls one. What no gradient that
    is needed asks for may have been overwritten."""
    lines, found, look = ["def collect(node, g, needed):", "    values = node.values"], [], "asked" if apart else "input"
    for k, (kind, at, name) in enumerate(wants):
        if kind == _INPUT:              # ``node.input`` says what is wrong, and unpacks
            some = askers.get(at, set(targets))
            free = [] if some >= set(targets) else [f"    if not ({' or '.join([f'needed[{i}]' for i in some]) or 'False'}):", f"        v{k} = node.kept({at})"]
            lines += [f"    v{k} = values[{at}]", *free, f"    {'el' if free else ''}if v{k}.__class__ is Tensor:",
                      f"        if node.versions[{at}] != (v{k}._ver or v{k}._storage).version:", f"            node.input({at}, {name!r})",
                      f"    elif v{k}.__class__ not in PLAIN:", f"        v{k} = node.{look}({at}, {name!r})"]
        # of a shape nothing else: the input may be overwritten or freed
        found.append({_G: "g", _INPUT: f"v{k}", _OUTPUT: f"node._output({at}, {name!r}, {apart})", _SHAPE: f"node.metas[{at}][0]", _STRIDES: f"node.kept({at})._strides",
                      _NEEDS: f"({', '.join([f'needed[{i}]' for i in targets])},)"}[kind])
    place = dict(Tensor=Tensor, PLAIN=_PLAIN)
    exec("\n".join([*lines, f"    return {', '.join(found)},"]), place)
    return place["collect"]


def _alike(tensors):
    """Tensors of one shape, dtype and device, dense or one element for all: what a gradient written as one expression takes."""
    first = tensors[0]
    for t in tensors:
        if not isinstance(t, Tensor) or t.shape != first.shape or t.dtype is not first.dtype:
            return False
        if not t._dense and (t.__class__ is not Tensor or any(t._strides)) or t._storage.device is not first._storage.device:
            return False
    return True
