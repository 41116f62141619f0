"""Operators by qualified name: ``clnn.ops.<namespace>.<operator>``, with a schema, kernels by device type and a gradient.

The module ``library`` registers them. The namespace ``aten`` holds clnn's own operators under PyTorch's names.
"""
from __future__ import annotations

from ._schemas import FunctionSchema
from ._tensor import foreign, override, wrapped
from ._tensor.grad_mode import no_grad, state
from ._tensor.inplace import set_out
from ._tensor.refusals import no_out
from ._tensor.tensor import Tensor
from ._vmap.calls import by_rule
from ._vmap.forms import has_batched, sample_by_sample
from .autograd.function import Function
from .utils._pytree import tree_leaves

_table: dict = {}               # "namespace::operator" -> OpOverload
watchers: list = []             # called with (operator, args, kwargs, result) after each kernel


def device_kind(name):
    """'cpu', 'gpu' or 'meta' for the names of device types and dispatch keys; 'any' for kernels that serve all devices."""
    known = {"cuda": "gpu", "gpu": "gpu", "cpu": "cpu", "meta": "meta", "xpu": "gpu", "mps": "gpu", "default": "any", "compositeexplicitautograd": "any",
             "compositeimplicitautograd": "implicit", "autograd": "autograd", "autogradcpu": "autograd", "autogradcuda": "autograd"}
    got = known.get(name.lower())
    if got is None:
        raise RuntimeError(f"unknown device type or dispatch key {name!r}; use 'cpu', 'cuda' (or 'gpu'), 'CompositeExplicitAutograd', "
                           "'CompositeImplicitAutograd', 'Autograd' or 'Meta'")
    return got


def _handed_over(op, args, kwargs):
    return override.hand_over(op, args, kwargs, [] if override.local.off else override.overloaded((*args, *kwargs.values())))


class OpOverload:
    """One operator: callable, with kernels by device type."""

    entry = None                                                # the class of what the tape keeps of it

    def __init__(self, namespace, schema):
        name, _, overload = schema.name.rpartition("::")[2].partition(".")
        self.namespace, self._opname, self._overloadname = namespace, name, overload or "default"
        self._schema = schema
        self._qualname = f"{namespace}::{name}"
        self.kernels, self.off, self.fake, self.backward, self.setup_context, self.low = {}, set(), None, None, None, {}
        self.batched, self.rules = None, {}                     # the rule for vmap; those of classes with __torch_dispatch__
        self.strict = False                                     # results may not alias arguments: for operators of custom_op
        self.__name__ = f"{name}.{self._overloadname}"
        self.__qualname__, self.__module__ = self.__name__, f"clnn.ops.{namespace}"

    @property
    def op(self):
        return self

    @property
    def overloadpacket(self):
        return getattr(namespace(self.namespace), self._opname)

    _overloadpacket = overloadpacket
    _namespace = property(lambda self: self.namespace)
    _name = property(lambda self: self.name())

    def __deepcopy__(self, memo):
        return self

    def name(self):
        """``namespace::operator``, with the overload."""
        return self._qualname + ("" if self._overloadname == "default" else f".{self._overloadname}")

    def overloads(self):
        return [self._overloadname]

    @property
    def default(self):
        return self

    def __repr__(self):
        return f"<OpOverload(op='{self.namespace}.{self._opname}', overload='{self._overloadname}')>"

    def __str__(self):
        return f"{self.namespace}.{self._opname}.{self._overloadname}"

    def __call__(self, *args, **kwargs):
        if override.asked(args, kwargs):
            return _handed_over(self, args, kwargs)
        args, kwargs = self._schema.bind(args, kwargs)
        if wrapped.local.modes or foreign.dispatched is not None and wrapped.found((*args, *kwargs.values())):
            return wrapped.asked(self, args, kwargs)
        if foreign.early is not None and has_batched((*args, *kwargs.values())):
            return by_rule(self.batched, args, kwargs) if self.batched is not None else sample_by_sample(self._computed, *args, **kwargs)
        return self._computed(*args, **kwargs)

    def _computed(self, *args, **kwargs):
        tensors = [t for t in tree_leaves((list(args), kwargs)) if isinstance(t, Tensor)]
        if state.autocast is not None and state.autocast.kind in self.low:
            return self._cast(args, kwargs)
        if "implicit" in self.kernels:
            return self.kernels["implicit"](*args, **kwargs)
        if "autograd" in self.kernels and "autograd" not in self.off:
            return self.kernels["autograd"](*args, **kwargs)
        if state.grad and any(t._rg for t in tensors):
            return self._recorded(args, kwargs)
        with no_grad():
            return self._run(tensors, args, kwargs)

    def _cast(self, args, kwargs):
        from ._tensor.autocast import cast_floats
        policy, target = state.autocast, self.low[state.autocast.kind]
        state.autocast = None
        try:
            return self(*[cast_floats(a, policy, target) for a in args], **{k: cast_floats(v, policy, target) for k, v in kwargs.items()})
        finally:
            state.autocast = policy

    def redispatch(self, *args, **kwargs):
        """The kernel itself, without recording."""
        with no_grad():
            return self._run([t for t in tree_leaves((list(args), kwargs)) if isinstance(t, Tensor)], args, kwargs)

    def _run(self, tensors, args, kwargs):
        kinds = {t._storage.device.kind for t in tensors}
        kind = "meta" if "meta" in kinds else "gpu" if "gpu" in kinds else "cpu"
        if kind == "meta" and "meta" not in self.kernels and self.fake is not None:
            return self.fake(*args, **kwargs)
        kernel = self.kernels.get(kind) if kind not in self.off else None
        if kernel is None and kind != "meta":
            kernel = self.kernels.get("any")
        if kernel is None:
            what = "Meta" if kind == "meta" else {"gpu": "CUDA", "cpu": "CPU"}[kind]
            if kind == "meta":
                raise NotImplementedError(f"There was no fake impl registered for {self}: use register_fake to say what its results look like.")
            raise NotImplementedError(f"Could not run '{self._qualname}' with arguments from the '{what}' backend: no kernel is registered for it.")
        result = kernel(*args, **kwargs)
        self._schema.check_result(result)
        if self.strict and not self._schema.is_mutable:
            self._refuse_aliases(tensors, result)
        for seen in watchers:
            seen(self, args, kwargs, result)
        return result

    def _refuse_aliases(self, tensors, result):
        seen = {id(t._storage) for t in tensors}
        for t in tree_leaves(result):
            if isinstance(t, Tensor):
                if id(t._storage) in seen and t._numel:
                    place = getattr(next(iter(self.kernels.values()), None), "__module__", None)
                    raise RuntimeError(f"{self._opname} (with implementation in {place}): The output of this custom operator (1) must not also be an input to "
                                       "this custom operator and (2) may not alias any inputs to this custom operator or other returns. Return a clone() of it.")
                seen.add(id(t._storage))

    def _recorded(self, args, kwargs):
        if self._schema.is_mutable and self.backward is not None:
            raise RuntimeError(f"{self._qualname}: an operator that changes its arguments has no gradient; make it functional")
        structure, flat = _flatten(args)
        kinds = []
        if self.entry is None:                                  # a class of its own, as ``grad_fn`` shows its name
            self.entry = type(f"GeneratedBackwardFor_{self.namespace}_{self._opname}_{self._overloadname}", (Recorded,), {})
        got = self.entry.apply(self, structure, kwargs, kinds, *flat)
        return list(got) if kinds[0] is list else got


def _flatten(args):
    """(per argument None or the number of its items, all values one after the other)."""
    structure, flat = [], []
    for a in args:
        if isinstance(a, (list, tuple)) and a and all(isinstance(t, Tensor) or t is None for t in a):
            structure.append((type(a), len(a)))
            flat += a
        else:
            structure.append(None)
            flat.append(a)
    return structure, flat


def _restore(structure, flat):
    values, at = [], 0
    for s in structure:
        if s is None:
            values.append(flat[at])
            at += 1
        else:
            values.append(list(flat[at:at + s[1]]))
            at += s[1]
    return tuple(values)


class Recorded(Function):
    """The tape entry of a custom operator: its arguments with lists taken apart."""

    @staticmethod
    def forward(ctx, op, structure, kwargs, kinds, *flat):
        args = _restore(structure, flat)
        result = op._run([t for t in flat if isinstance(t, Tensor)], args, kwargs)
        ctx.op, ctx.structure = op, structure
        needs = ctx.needs_input_grad
        ctx.needs_input_grad = _needs(structure, needs[4:])
        ctx.set_materialize_grads(True)
        if op.setup_context is not None:
            if op._schema.arguments and any(a.kwarg_only for a in op._schema.arguments):
                op.setup_context(ctx=ctx, inputs=args, keyword_only_inputs=kwargs, output=result)
            else:
                op.setup_context(ctx=ctx, inputs=args, output=result)
        ctx.many = result.__class__ if isinstance(result, (tuple, list)) else None
        kinds.append(ctx.many)
        return tuple(result) if ctx.many else result

    @staticmethod
    def backward(ctx, *grads):
        op = ctx.op
        if op.backward is None:
            raise RuntimeError(f"Trying to backward through {op} but no autograd formula was registered. Please use register_autograd to add one.")
        got = op.backward(ctx, list(grads)) if ctx.many is list else op.backward(ctx, *grads)
        got = tuple(got) if isinstance(got, tuple) else (got,)
        if len(got) != len(ctx.structure):
            raise RuntimeError(f"{op._qualname}: backward returned {len(got)} gradients for {len(ctx.structure)} arguments")
        flat = []
        for s, g in zip(ctx.structure, got):
            if s is None:
                flat.append(g)
            else:
                flat += [None] * s[1] if g is None else list(g)
        return (None, None, None, None, *flat)


def _needs(structure, flags):
    flags = list(flags)
    return tuple(list(v) if isinstance(v, list) else v for v in _restore(structure, flags))


# -- namespaces ------------------------------------------------------------------------------------------------------------------------

class OpOverloadPacket:
    """All overloads of an operator of one name. clnn's own operators have one, which goes by every overload name."""

    def __init__(self, qualname, call, overload):
        self._qualname, self._call, self._overload = qualname, call, overload
        self.__name__ = qualname.partition("::")[2]
        self.__module__ = "clnn.ops." + qualname.partition("::")[0]

    def __call__(self, *args, **kwargs):
        if override.asked(args, kwargs):
            return _handed_over(self, args, kwargs)
        return self._call(*args, **kwargs)

    @property
    def _qualified_op_name(self):
        return self._qualname

    def overloads(self):
        return ["default"]

    def __reduce__(self):
        space, _, name = self._qualname.partition("::")
        return getattr, (namespace(space), name)

    def __deepcopy__(self, memo):
        return self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if self._overload is not None or not self._qualname.startswith("aten::"):
            return self._overload
        made = self.__dict__[name] = _Aten(self, self._call, name)
        return made

    def __repr__(self):
        return f"<OpOverloadPacket(op='{self}')>"

    def __str__(self):
        return self._qualname.replace("::", ".")


class _Aten(OpOverload):
    """An overload of one of clnn's operators: it goes by PyTorch's name."""

    def __init__(self, packet, fn, overload):
        self.fn, self._overloadname, self.namespace = fn, overload, "aten"
        self._opname = packet.__name__
        self.__name__ = self.__qualname__ = f"{self._opname}.{overload}"
        self.__module__, self._qualname = "clnn._ops.aten", f"aten::{self._opname}"
        self.kernels, self.off, self.fake, self.backward, self.setup_context, self.low, self.batched = {}, set(), None, None, None, {}, None
        self.tags, self.rules = (), {}

    def __call__(self, *args, **kwargs):
        if override.asked(args, kwargs):
            return _handed_over(self, args, kwargs)
        if kwargs.get("out") is not None:
            if no_out(self._opname):                                 # PyTorch's functions of that name take none, their overloads do
                return set_out(kwargs.pop("out"), self.fn(*args, **kwargs), args)
        return self.fn(*args, **kwargs)

    def __reduce__(self):
        return getattr, (self.overloadpacket, self._overloadname)


class Namespace:
    """The operators of one namespace as attributes."""

    def __init__(self, name):
        self.name, self.__name__ = name, f"clnn.ops.{name}"

    def __getattr__(self, name):
        if name.startswith("__") or name == "name":         # copies ask before there is a name
            raise AttributeError(name)
        qualname = f"{self.name}::{name}"
        op = _table.get(qualname)
        if op is not None:
            packet = OpOverloadPacket(qualname, op, op)
        elif self.name == "higher_order":
            from .fx import _branches
            return _branches._found(name)
        elif self.name == "quantized":
            from ._quantized import functions
            packet = getattr(functions, name, None)
            if packet is None:
                raise AttributeError(f"'_OpNamespace' 'quantized' object has no attribute '{name}'")
        else:
            from . import _aten
            fn = _aten.find(name) if self.name == "aten" else None
            if fn is None:
                raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{name}'")
            packet = OpOverloadPacket(qualname, fn, None)
        self.__dict__[name] = packet
        return packet

    def __dir__(self):
        return sorted(q.partition("::")[2] for q in _table if q.startswith(self.name + "::"))

    def __repr__(self):
        return f"<module '{self.__name__}'>"


_namespaces: dict = {}


def namespace(name):
    """The namespace ``clnn.ops.<name>``, made when it is first asked for."""
    got = _namespaces.get(name)
    if got is None:
        got = _namespaces[name] = Namespace(name)
    return got


expected: dict = {}             # what the results of operators look like that are yet to be declared


def known(qualname):
    """Whether an operator of that name was declared."""
    return qualname.removesuffix(".default") in _table


def enter(op):
    """Make ``op`` known under its name; an operator that had it is gone."""
    _table[op._qualname] = op
    op.fake = expected.pop(op._qualname, None)
    namespace(op.namespace).__dict__.pop(op._opname, None)
    return op


def forget(qualname):
    """Take an operator out of the table."""
    op = _table.pop(qualname, None)
    if op is not None:
        namespace(op.namespace).__dict__.pop(op._opname, None)


def find(op):
    """The operator that an argument means: itself, its name, or what ``custom_op`` returned."""
    if isinstance(op, str):
        space, _, named = op.partition("::")
        name, _, overload = named.partition(".")
        got = _table.get(f"{space}::{name}")
        if got is None or overload not in ("", "default", got._overloadname):
            raise RuntimeError(f"Could not find the operator {op}. Please make sure you have already registered the operator and (if registered from C++) "
                               "loaded it via torch.ops.load_library.")
        return got
    if isinstance(op, OpOverload):
        return op
    if isinstance(op, OpOverloadPacket):
        return op._overload or op.default
    inner = getattr(op, "_opoverload", None)
    if inner is None:
        raise ValueError(f"expected an operator: its name, clnn.ops.<namespace>.<name> or the result of custom_op; got {type(op).__name__}")
    return inner


__all__ = ["FunctionSchema", "Namespace", "OpOverload", "OpOverloadPacket", "enter", "expected", "find", "forget", "known", "namespace"]
