"""The tape's entry of an operator's call: what it keeps for backward, and how it gives the gradients of its operands."""
from __future__ import annotations

import functools
import operator
import sys
import traceback

from ..core import native
from ..core.errors import overwritten
from . import tape
from .foreign import NoStrides
from .grad_mode import no_grad, state
from .tensor import Tensor, accumulator, edge
from .underived import UNDERIVED
from .views import refresh

_new = object.__new__
_next_number = tape._counter.__next__

FREED = ("Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). Saved "
         "intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to "
         "backward through the graph a second time or if you need to access saved tensors after calling backward.")


# Of these PyTorch keeps a number as a tensor, too. A composite of them is used up with them, which few programs see: they ask for retain_graph.
FACTORS = frozenset(("mul", "true_divide", "_dropout"))


_MODULI = frozenset(("remainder", "fmod"))
# Operators of which PyTorch has a form of its own for numbers, which are no operands there; numbers in sums and products are.
_WITH_NUMBERS = frozenset(("remainder", "fmod", "floor_divide", *[f"_clamp_{n}{kind}" for n in ("both", "min", "max") for kind in ("", "_number")],
                           "_pow", "_lerp"))


# The same of composites, by the names that they show.
_OF_TENSORS = frozenset(("RsubBackward1", "MaskedFillBackward0", "TrilBackward0", "TriuBackward0"))


class _Turned(tape.Node):
    """The weight of a linear layer as programs see it among what the layer follows from: transposed, as PyTorch multiplies by it."""

    __slots__ = ()

    def name(self):
        return "TBackward0"

    def apply(self, grads, needed):
        return [grads[0].t()]


@native.know
class OpNode(tape.Node):
    """The tape entry of one operator call: its values that the gradient rules name, with their versions."""

    __slots__ = ("op", "values", "versions", "metas", "keeps")
    result, freed, lasts, label = None, False, False, ""    # label: the name of the composite whose last operator this is, where that is shown

    def __init__(self, op, edges, outs, values, versions, metas, keeps):
        self.seq, self.edges, self.outs = _next_number(), edges, outs
        self.op, self.values, self.versions, self.metas, self.keeps = op, values, versions, metas, keeps

    def name(self):
        if not self.label and self.op.name in _MODULI and None not in self.metas[:2]:
            return self.op.grad_name[:-1] + "1"
        if self.op.name == "remainder" and self.metas[0] is None:
            return UNDERIVED
        return self.label or self.op.grad_name

    def __repr__(self):
        return f"<{self.name().rpartition('::')[2]} object at {hex(id(self))}>"

    @property
    def operands(self):
        if self.op.name in _WITH_NUMBERS or self.label in _OF_TENSORS:
            return [i for i, _ in self.op.masks if self.metas[i] is not None]
        if self.op.name == "_linear2d":                         # which is addmm there, with the bias first, or mm
            return [0, 1] if self.label == "MmBackward0" else [2, 0, 1]
        return [i for i, _ in self.op.masks]

    @property
    def next_functions(self):
        edges = [self.edges[i] for i in self.operands]
        if self.op.name == "_linear2d" and edges[-1] is not None:
            edges[-1] = self.__dict__.setdefault("turned", _Turned([edges[-1]], 1)), 0
        return tuple((e[0].shown(e[1]), e[1]) if e is not None else (None, 0) for e in edges)

    def __getattr__(self, name):
        """``_saved_other``, ``_saved_result``: what was kept for backward, ``_saved_self`` being the first operand; ``_raw_saved_other`` takes hooks for it."""
        kind, _, what = name.partition("_saved_")
        what = "input" if what == "self" else what
        if kind == "_raw" and what in (*self.op.position, "result", *self.op.outputs):
            return _Kept(self, what)
        if kind or not what or what not in self.op.position and what not in ("result", *self.op.outputs):
            raise AttributeError(f"'{self.name()}' object has no attribute '{name}'")
        if self.freed:
            raise RuntimeError(FREED)
        return self.lookup(what) if what in self.op.position or self.result is not None else None

    def __dir__(self):
        """Tools that draw graphs look here for what was kept."""
        kept = [name for name, i in self.op.position.items() if self.values is not None and self.values[i] is not None] + ["result"] * bool(self.result)
        return [*super().__dir__(), *[f"{kind}_saved_{'self' if name == 'input' else name}" for name in kept for kind in ("", "_raw")]]

    def release(self):
        """Only an entry that kept tensors is used up by a backward pass, or a factor, which PyTorch keeps as a tensor. A part of a composite ``lasts``
        where the whole keeps nothing in PyTorch."""
        if self.lasts:
            return
        if self.keeps or self.result is not None or self.op.name in FACTORS:
            self.values = self.result = self.versions = None
            self.freed = True
            self.__dict__.pop("spare", None)

    def lookup(self, name):
        """A value by the name that a rule uses: parameter, ``out``/``result`` or a hidden output."""
        op = self.op
        i = op.position.get(name)
        if i is None:
            return self._output(op.outputs.index(name) if name in op.outputs else 0 if name == "result" else None, name)
        return self.input(i, name)

    def input(self, i, name):
        """The value of parameter ``i``, checked to be what it was."""
        value = self.values[i]
        if isinstance(value, Tensor):
            now = (value._ver or value._storage).version
            if self.versions[i] != now:
                raise overwritten(value, now, self.versions[i], value._grad_fn, value._out_nr)
        elif type(value) is _Packed:
            return value.unpack()
        return value

    def asked(self, i, name):
        """The value of parameter ``i`` for a rule: what hooks packed is unpacked once for all of them, as in PyTorch."""
        value = self.values[i]
        return self._once(i, value) if type(value) is _Packed else self.input(i, name)

    def _once(self, i, packed):
        spare = self.__dict__.setdefault("spare", {})           # for rules to come: the value, and how many they are
        got, left = spare.pop(i, (None, 0))
        if not left:
            got, left = packed.unpack(), sum([i in r.asks and any([self.edges[t] is not None for t in r.targets]) for r in self.op.rules])
        if left > 1:
            spare[i] = got, left - 1
        return got

    def kept(self, i):
        """The value of parameter ``i``, of which a rule reads no elements: they need not be what they were."""
        value = self.values[i]
        return value.unpack() if type(value) is _Packed else value

    def _output(self, nr, name, asked=False):
        got = self.result[nr]
        if type(got) is _Packed:
            got = self._once(-1 - nr, got) if asked else got.unpack()
        if got is None:                                          # an output that this call did not make
            return None
        t, owner, version = got
        if owner is not None and owner.version != version:
            raise overwritten(t, owner.version, version, self, nr)
        if state.grad and nr < self.outs and t._grad_fn is None:
            t = t._alias()
            t._grad_fn, t._out_nr, t._rg = self, nr, True
        return t

    def apply(self, grads, needed):
        if self.freed:
            raise RuntimeError(FREED)
        op = self.op
        if state.grad and op.decompose is not None:
            return self._through_decomposition(grads, needed)
        g = grads[0] if self.outs == 1 else tuple(grads)
        out, metas = [None] * len(self.edges), self.metas
        turn = self.outs == 1 and op.holomorphic and g.dtype.is_complex
        if op.together is not None and not turn and not state.grad and state.autocast is None \
                and not any([e is not None and not flag for e, flag in zip(self.edges, needed)]):
            try:
                for i, grad in zip(op.together.targets, op.together.call(self, g, needed)):
                    if grad is not None:
                        out[i] = self._fit(i, grad)
                return out
            except NoStrides:                                    # one rule after another is made of operators
                pass
        for rule in op.rules:
            if not rule.joint:
                i = rule.target
                if needed[i]:
                    got = rule.call(self, g, needed) if not turn else self._turned(rule, g, needed)
                    if got is not None:
                        meta = metas[i]
                        fits = got.__class__ is Tensor and meta is not None and got.dtype is meta[1] and got.shape == meta[0]
                        out[i] = got if fits else self._fit(i, got)
            elif any([needed[i] for i in rule.targets]):
                for i, grad in zip(rule.targets, rule.call(self, g, needed) if not turn else self._turned(rule, g, needed)):
                    if needed[i] and grad is not None:
                        out[i] = self._fit(i, grad)
        return out

    def _turned(self, rule, g, needed):
        """The rule's result for complex numbers. PyTorch's gradient of a real L is dL/d(conjugate of z): through f it is g * conj(f'(z)) =
        conj(conj(g) * f'(z)), whose inner part is the rule for real numbers. A rule that multiplies by no value needs no turn."""
        for i in rule.saves:
            if i < 0 or self.values[i].__class__ is complex or isinstance(self.values[i], (Tensor, _Packed)):
                return _conjugated(rule.call(self, g.conj(), needed))
        return rule.call(self, g, needed)

    def _fit(self, i, grad):
        """The gradient in its input's shape and dtype: sums over what broadcasting repeated."""
        if isinstance(grad, (list, tuple)):
            return grad
        meta = self.metas[i]
        if meta is None:
            return grad
        shape, dtype = meta
        if grad.dtype.is_complex and not dtype.is_complex:
            grad = grad.real                                     # an imaginary part of a real input would have no effect
        if grad.shape != shape:
            grad = grad.sum_to_size(shape)
        if grad.dtype is not dtype:
            grad = grad.to(dtype)
        return grad

    def _through_decomposition(self, grads, needed):
        """Gradients of a fused kernel through its decomposition, so that they can be differentiated again."""
        from .backward import grad as grad_of
        op = self.op
        values = {n: (self.lookup(n) if v is not None else None) for n, v in zip(op.params, self.values)}
        inputs = [i for i, flag in enumerate(needed) if flag]
        proxies = {op.params[i]: values[op.params[i]] for i in inputs}
        with_views = {k: (v.view_as(v) if v is not None else None) for k, v in proxies.items()}
        outs = op.decompose(**{**values, **with_views})
        outs = outs if isinstance(outs, tuple) else (outs,)
        pairs = [(o, g) for o, g in zip(outs, grads) if g is not None and o is not None and o._rg]
        got = grad_of([o for o, _ in pairs], [with_views[op.params[i]] for i in inputs], [g for _, g in pairs],
                      create_graph=True, allow_unused=True)
        out = [None] * len(self.edges)
        for i, g in zip(inputs, got):
            v = proxies[op.params[i]]
            out[i] = v.new_zeros(v.shape) if g is None and v is not None else g         # as from the rules, where the result does not depend on it
        return out


def _conjugated(grads):
    """The conjugates of a rule's results."""
    if isinstance(grads, tuple):
        return tuple(None if g is None else g.conj() for g in grads)
    return None if grads is None else grads.conj()


class _Packed:
    """A saved tensor that went through saved_tensors_hooks."""

    __slots__ = ("value", "fn", "rest", "edge")

    def __init__(self, pack, unpack, value, rest=None):
        self.edge = edge(value)
        owner = value._ver or value._storage
        before = owner.version
        with no_grad():                          # as PyTorch calls them: a hook may ask for the NumPy array
            self.value, self.fn, self.rest = pack(value), unpack, rest
        if owner.version != before:
            raise RuntimeError("A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot be modified by "
                               "in-place operations as this can lead to unexpected side-effects. Please open an issue if you need to perform in-place "
                               "operations on the input to a pack hook.")

    def unpack(self):
        got = self.fn(self.value)
        if not isinstance(got, Tensor):
            raise TypeError(f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(got).__name__}")
        if self.edge is not None:                # what comes back has the history of what was saved: it is differentiated for second gradients
            got = got._alias()
            (got._grad_fn, got._out_nr), got._rg = self.edge, True
        return got if self.rest is None else (got, *self.rest)


class _Kept:
    """One value that a node keeps, as the place to register hooks for it."""

    def __init__(self, node, name):
        self.node, self.name = node, name

    def register_hooks(self, pack_hook, unpack_hook):
        """Keep ``pack_hook(value)`` instead of the value, and call ``unpack_hook`` when it is needed."""
        node, op = self.node, self.node.op
        if not (callable(pack_hook) and callable(unpack_hook)):
            raise TypeError(f"register_hooks(): incompatible function arguments: two callables are wanted, got {pack_hook!r}, {unpack_hook!r}")
        if node.freed:
            raise RuntimeError("Calling register_hooks on a saved tensor after it has been freed. " + FREED[FREED.index("Saved "):]
                               .replace("saved tensors", "saved variables"))
        i, kept = op.position.get(self.name), node.values
        if i is None:
            i, kept = op.outputs.index(self.name) if self.name in op.outputs else 0, node.result
        value = kept[i] if kept else None
        if type(value) is _Packed:
            raise RuntimeError("Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks is allowed at a time.")
        if value is None:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        kept[i] = _Packed(pack_hook, unpack_hook, value) if kept is node.values else _Packed(pack_hook, unpack_hook, value[0], (None, 0))


class ListNode(tape.Node):
    """Tape entry of an operator over a list of tensors; its one rule returns one gradient per list element."""

    __slots__ = ("op", "attrs", "metas", "kept", "versions", "freed")
    label = ""                  # as that of OpNode

    @property
    def bare(self):
        return self.kept is None

    def name(self):
        return self.label or self.op.grad_name

    def release(self):
        if self.kept is not None:
            self.kept, self.freed = None, True

    def traits(self):
        if self.freed or any([t._version != v for t, v in zip(self.kept or (), self.versions)]):
            return None
        attrs = tuple([(v, v.__class__) for v in self.attrs.values()])
        return (self.op, attrs, self.kept is None, *self.metas), self.kept or ()

    def take(self, told):
        _, attrs, _, *self.metas = told
        self.attrs = dict(zip(self.attrs, [v for v, _ in attrs]))

    def lookup(self, name):
        if name == self.op.params[0]:
            for t, v in zip(self.kept, self.versions):
                if t._version != v:
                    raise overwritten(t, t._version, v, t._grad_fn, t._out_nr)
            return self.kept
        return self.attrs[name] if name != "metas" else self.metas

    def apply(self, grads, needed):
        if self.freed:
            raise RuntimeError(FREED)
        rule = self.op.rules[0]
        args = [(grads[0] if self.op.public == 1 else tuple(grads)) if n == "g" else needed if n == "needs" else self.lookup(n)
                for n in rule.names]
        got = rule.fn(*args)
        got = [r.real if r is not None and r.dtype.is_complex and not m[1].is_complex else r for r, m in zip(got, self.metas)]
        return [None if r is None else r if r.dtype is m[1] else r.to(m[1]) for r, m in zip(got, self.metas)]


def attach_list(op, out, values):
    tensors = values[0]
    node = ListNode([edge(t) if t._rg else None for t in tensors], op.public)
    node.op, node.freed = op, False
    node.attrs = dict(zip(op.params[1:], values[1:]))
    node.attrs.setdefault("sizes", None)
    node.metas = [(t.shape, t.dtype) for t in tensors]
    keep = op.params[0] in op.rules[0].names
    node.kept = list(tensors) if keep else None
    node.versions = [t._version for t in tensors] if keep else ()
    for nr, o in enumerate((out if out.__class__ is tuple else (out,))[:op.public]):
        o._grad_fn, o._out_nr, o._rg = node, nr, True


_HEAD = """def attach(op, out, values):
    {values}, = values
    {edges} = None
    save = {always}
"""
_TRACKED = """    if (v{i}.__class__ is Tensor or isinstance(v{i}, Tensor)) and v{i}._rg:
        if v{i}._base is not None:
            refresh(v{i})
        fn = v{i}._grad_fn
        e{i} = (fn, v{i}._out_nr) if fn is not None else (accumulator(v{i}), 0)
        m{i} = (v{i}.shape, v{i}.dtype)
        save |= {mask}
    else:
        m{i} = None
"""
_KEPT = """    n{i} = 0
    if v{i}.__class__ is Tensor or isinstance(v{i}, Tensor):
        if save & {bit}:
            owner = v{i}._storage
            if owner.version < 0:
                raise inference_saved()
            n{i}, keeps = (v{i}._ver or owner).version, True
        else:
            v{i} = None
"""
_DROPPED = """    if v{i}.__class__ is Tensor or isinstance(v{i}, Tensor):
        v{i} = None
"""
_TAIL = """    node = new(OpNode)
    node.op, node.seq, node.edges, node.outs = op, number(), [{edges}], op.public
    node.values, node.versions, node.metas, node.keeps = [{values}], [{versions}], [{metas}], keeps
    if out.__class__ is Tensor and not state.watched and not save >> {count}:
        if out.dtype.differentiable:
            out._grad_fn, out._out_nr, out._rg = node, 0, True
    else:
        finish(node, out, values, save >> {count})
"""


def attach(op, out, values) -> None:
    """Put this call on the tape. ``values`` holds every parameter of ``op`` in order; ``out`` is a Tensor or a tuple of them.

    ``op.attach`` is this, in an operator's first call, and what is written out for it from then on.
    """
    op.attach = _written_out(len(op.params), op.masks, op.decompose is not None)
    op.attach(op, out, values)


_quick = native.form("attach", None)     # of :func:`_written_out`, what it gives


@functools.lru_cache(maxsize=None)
def _written_out(count, masks, everything):
    """:func:`attach` for operators with ``count`` parameters, of which those in ``masks`` have gradients that need what the bits beside them say: written
    out, as every call that records gradients calls one. ``everything``: all operands are kept, whatever needs them."""
    if not masks:
        return lambda op, out, values: None
    all_inputs = (1 << count) - 1
    tracked, needed = dict(masks), all_inputs if everything else functools.reduce(operator.or_, [m for _, m in masks], 0)

    quick = None if _quick is None else _quick(count, tuple(masks), needed, all_inputs if everything else 0)
    if quick is not None:
        return quick

    def listed(name, there, other):
        return ", ".join([f"{name}{i}" if there(i) else other for i in range(count)])
    values = listed("v", lambda i: True, "")
    text = [_HEAD.format(values=values, edges=" = ".join([f"e{i}" for i in tracked]), always=all_inputs if everything else 0)]
    text += [_TRACKED.format(i=i, mask=mask) for i, mask in masks]
    text.append(f"    if {' is '.join([f'e{i}' for i in tracked])} is None:\n        return\n    keeps = False\n")
    text += [(_KEPT if needed >> i & 1 else _DROPPED).format(i=i, bit=1 << i) for i in range(count)]
    text.append(_TAIL.format(edges=listed("e", tracked.__contains__, "None"), metas=listed("m", tracked.__contains__, "None"), values=values, count=count,
                             versions=listed("n", lambda i: needed >> i & 1, "0")))
    place = dict(Tensor=Tensor, OpNode=OpNode, refresh=refresh, accumulator=accumulator, new=_new, number=_next_number, state=state, finish=_finish,
                 inference_saved=inference_saved)
    exec("".join(text), place)
    return place["attach"]


def _finish(node, out, values, save):
    """Keep the outputs in the bit set ``save``, do what hooks and anomaly mode ask for, and give the results their history."""
    first = out[0] if out.__class__ is tuple else out
    if first.__class__ is not Tensor and first is not None:
        node.edges = first._edges_of(node.edges, values)
    if save:
        _save_results(node, out if out.__class__ is tuple else (out,), save)
    if state.saved_hooks:
        _pack(node)
    if state.anomaly:
        caller = sys._getframe(1)
        if caller.f_code.co_name == "attach":                   # which has a frame in Python only
            caller = caller.f_back
        node.trace = "".join(traceback.format_stack(caller.f_back))
    for nr, o in enumerate(out[:node.outs] if out.__class__ is tuple else (out,)):
        if o is not None and o.dtype.differentiable:
            o._grad_fn, o._out_nr, o._rg = node, nr, True


def inference_saved():
    return RuntimeError("Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation tracked by "
                        "autograd. To work around this, you can make a clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` "
                        "instead of `torch.inference_mode()`.")


native.give(refresh=refresh, finish=_finish, inference_saved=inference_saved)


def _save_results(node, outs, save):
    """Keep the outputs in the bit set ``save``: without history, or node and output would hold each other."""
    result = [None] * len(outs)
    for nr, o in enumerate(outs):
        if save >> nr & 1 and o is not None:
            owner = o._ver or o._storage
            result[nr] = (o._alias(), owner, owner.version)
    node.result = result


def frozen(v):
    """The present value of ``v`` with its history: no copy is made until the memory of ``v`` is written."""
    kept, at = v._snapshot(), edge(v)
    if at is not None:
        kept._grad_fn, kept._out_nr, kept._rg = at[0], at[1], True
    return kept


def _present(v):
    """``v``, or where an in-place operator is about to overwrite it, its value of now with the same history."""
    try:
        return v if state.overwritten is None or v._storage is not state.overwritten else frozen(v)
    except NoStrides:
        return v


@functools.lru_cache(None)
def _alphabetical(op):
    """The operands by their names, the first of which is ``self`` in PyTorch."""
    names = {i: "self" if name == "input" else name for name, i in op.position.items()}
    return sorted(names, key=names.get)


def _pack(node):
    pack, unpack = state.saved_hooks[-1]
    node.values = values = list(node.values)
    for i in _alphabetical(node.op):                                # as PyTorch keeps them
        if isinstance(values[i], Tensor):
            values[i] = _Packed(pack, unpack, _present(values[i]))
    if node.result:
        # without the owner, whose memory the hooks may want to let go
        node.result = [None if r is None else _Packed(pack, unpack, r[0], (None, 0)) for r in node.result]
