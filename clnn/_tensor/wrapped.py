"""Tensors of a program's own making: PyTorch's protocol ``__torch_dispatch__``.

A class with that classmethod is asked for each operator that meets one of its instances, below the gradients: it is told which operator of ``torch.ops.aten``
it is and computes as it likes; what it returns gets the operator's place on the tape. Its instances, made by ``_make_wrapper_subclass``, have no memory:
an operator that asks them for it is left (:class:`NoStrides`), and the class is asked instead. Modes are asked before classes.
"""
from __future__ import annotations

import inspect
import threading
import weakref

from ..core import dtype as dt
from ..core.layout import strided
from ..core.shape import Size, contiguous_strides, is_contiguous
from ..graph.op import REGISTRY
from . import foreign, override
from .foreign import NoStrides
from .grad_mode import no_grad, state
from .handle import HISTORY
from .inplace import take_history
from .tensor import Tensor
from .writing import bump

_SLOTS = ("_shape", "_dtype", "_numel", "_dense", "_offset")
_signatures: dict = {}


class _Local(threading.local):
    modes = ()                  # the modes that are entered, the innermost last


local = _Local()


class Memoryless(NoStrides):
    """An operator asked a tensor for memory that it does not have."""

    def __init__(self, tensor):
        super().__init__(tensor)
        self.args = (f"Cannot access data pointer of Tensor that doesn't have storage ({type(tensor).__name__} has no memory of its own)",)

    def of(self, name):
        self.operator = self.operator or name.lstrip("_")
        return self


class Memory:
    """Stands for the storage of a tensor that has none."""

    __slots__ = ("device", "version", "strides", "offset", "of")

    def __init__(self, tensor, device, strides, offset):
        self.device, self.version, self.strides, self.offset, self.of = device, 0, strides, offset, weakref.ref(tensor)

    def __getattr__(self, name):
        raise Memoryless(self.of())


def is_wrapped(t) -> bool:
    """Whether the class of ``t`` is asked for operators."""
    return getattr(t.__class__, "_wrapped", False)


# -- what such classes have ------------------------------------------------------------------------------------------------------------

def _refused(self):
    raise Memoryless(self)


def _alias(self):
    """Another handle with the same attributes, without history."""
    t = object.__new__(type(self))
    for name in _SLOTS:
        setattr(t, name, getattr(self, name))
    own = self._storage
    t._storage = Memory(t, own.device, own.strides, own.offset)
    t._all.update({k: v for k, v in self._all.items() if k not in HISTORY})
    for cls in type(self).__mro__:
        if cls is Tensor:
            break
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if not name.startswith("__") and hasattr(self, name):
                setattr(t, name, getattr(self, name))
    return t


def _become(self, value, name="copy"):
    """Take over what ``value`` holds, and its history: what in-place operators do whose gradient is wanted."""
    if not is_wrapped(value):
        return _asked(_aten(name + "_" if not name.endswith("_") else name), (self, value), {})
    if state.grad and (self._rg or value._rg):
        take_history(self, value)
    self._all.update({k: v for k, v in value._all.items() if k not in HISTORY})
    for cls in type(self).__mro__:
        for slot in cls.__dict__.get("__slots__", ()) if cls is not Tensor and issubclass(cls, Tensor) and not cls.__module__.startswith("clnn.") else ():
            if hasattr(value, slot):
                setattr(self, slot, getattr(value, slot))
    bump(self)
    return self


def _stride(self, dim=None):
    strides = self._storage.strides
    return strides if dim is None else strides[dim]


def changes(self, args, kwargs):
    """What ``self.to(*args, **kwargs)`` changes, as arguments of ``_to_copy``; None when that is nothing."""
    from ..nn.modules._convert import _parse_to
    copy = kwargs.get("copy", False)
    if args and isinstance(args[0], Tensor):
        args = (args[0].device, args[0].dtype, *args[1:])
    device, dtype, non_blocking, memory_format = _parse_to(*args, **{k: v for k, v in kwargs.items() if k != "copy"})
    wanted = {}
    if dtype is not None and dtype is not self.dtype:
        wanted["dtype"] = dtype
    if device is not None and device != self.device:
        wanted["device"] = device
    return wanted or ({"dtype": self.dtype} if copy else None)


def _to(self, *args, **kwargs):
    """Another dtype and/or device; the tensor itself if nothing changes."""
    wanted = changes(self, args, kwargs)
    return self if wanted is None else _recorded_as("_cast", "_to_copy", (self,), wanted)


def _detach(self):
    with no_grad():
        return _plain_history(_asked(_aten("detach"), (self,), {}))


def _maker(name):
    def method(self, *size, **kwargs):
        size = size[0] if len(size) == 1 and not isinstance(size[0], int) else list(size)
        return _asked(_aten(name), (self, list(size) if isinstance(size, tuple) else size), kwargs)
    return method


def _new_full(self, size, fill_value, **kwargs):
    return _asked(_aten("new_full"), (self, list(size), fill_value), kwargs)


def _told(name, *extra):
    def method(self, *args, **kwargs):
        return _asked(_aten(name), (self, *args), kwargs)
    return method


def _copy(self, src, non_blocking=False):
    """``copy_``: the values of ``src``, broadcast."""
    if state.grad and _tracked((self, src)):
        return _become(self, src.to(self.dtype).expand(self.shape), "copy")
    _asked(_aten("copy_"), (self, src), {"non_blocking": True} if non_blocking else {})
    bump(self)
    return self


def _deepcopy(self, memo):
    if id(self) in memo:
        return memo[id(self)]
    with no_grad():
        t = _plain_history(_asked(_aten("clone"), (self,), {}))
    t.requires_grad = self.requires_grad
    t._all.update({k: v for k, v in self._all.items() if k in ("_is_param", "_is_buffer")})
    memo[id(self)] = t
    return t


def _tolist(self):
    raise RuntimeError(f".tolist() is not supported for tensor subclasses, got {type(self).__name__}")


def _item(self):
    return _asked(_aten("_local_scalar_dense"), (self,), {})


def _set_data(self, value):
    if is_wrapped(value):
        with no_grad():
            _become(self, value, "set")
        for name in _SLOTS:
            setattr(self, name, getattr(value, name))
    else:
        raise TypeError(f"{type(self).__name__}: data must be a tensor of the same class, got {type(value).__name__}")


def _form_of(self, name):
    return lambda *args, **kwargs: formed(name, args, kwargs)


MEMBERS = dict(
    _strides=property(_refused, lambda self, value: None), _ver=None, _home=property(lambda self: self._storage.device), _alias=_alias, _snapshot=_alias,
    _become=_become, _assign=_become, _settle=lambda self: None, _own_form=_form_of, _backend=lambda self: type(self).__name__, stride=_stride, to=_to,
    storage_offset=lambda self: self._storage.offset, detach=_detach, item=_item, data=property(_detach, _set_data),
    is_contiguous=lambda self, memory_format=None: is_contiguous(self.shape, self._storage.strides),
    new_empty=_maker("new_empty"), new_zeros=_maker("new_zeros"), new_ones=_maker("new_ones"), new_full=_new_full, zero_=_told("zero_"),
    copy_=_copy, __deepcopy__=_deepcopy, tolist=_tolist,
    _inference=property(lambda self: False))


def _torch_dispatch(cls, func, types, args=(), kwargs=None):
    """What a class does that has no ``__torch_dispatch__`` of its own: it computes with the memory that its instances were made of."""
    from ..utils._pytree import tree_map
    bare = lambda t: t._all.get("_bare", t) if is_wrapped(t) else t          # noqa: E731
    return func(*tree_map(bare, tuple(args)), **tree_map(bare, dict(kwargs or {})))


def adopt(cls):
    """Called for a class that defines ``__torch_dispatch__``: its instances are without memory from now on."""
    for name, member in MEMBERS.items():
        if name not in cls.__dict__:
            setattr(cls, name, member)
    if getattr(cls.__torch_function__, "__func__", None) is override._torch_function:
        cls.__torch_function__ = staticmethod(override.disabled)        # as in PyTorch: such a class is asked below the public functions only
    cls._wrapped = True
    if foreign.dispatched is None:
        foreign.ask_early(early)
        foreign.dispatched = inplace


def make(cls, size, strides=None, storage_offset=0, memory_format=None, *, dtype=None, layout=strided, device=None, pin_memory=False, requires_grad=False,
         dispatch_sizes_strides_policy=None, dispatch_device=False, dispatch_layout=False, **ignored):
    """``Tensor._make_wrapper_subclass``: an instance of ``cls`` with this shape, dtype and device, and no memory."""
    from .device import resolve
    if not getattr(cls, "_wrapped", False):
        adopt(cls)
    t = object.__new__(cls)
    shape = Size(int(s) for s in size)
    t._shape, t._dtype = shape, dt.as_dtype(dtype) or dt.float_default()
    t._numel, t._dense, t._offset = shape.numel(), False, 0
    t._storage = Memory(t, resolve(device), tuple(strides) if strides is not None else contiguous_strides(shape), storage_offset or 0)
    if requires_grad:
        t.requires_grad = True
    return t


def made_of(cls, data, require_grad=False):
    """``Tensor._make_subclass`` for such a class: an instance that holds the tensor ``data``."""
    if isinstance(data, cls):
        t = _plain_history(data.detach())
    else:
        t = make(cls, data.shape, data.stride(), data.storage_offset(), dtype=data.dtype, device=data.device)
        t._all["_bare"] = data.detach()
    if require_grad:
        t.requires_grad = True
    return t


# -- asking ----------------------------------------------------------------------------------------------------------------------------

def found(values, have=None):
    """The instances of such classes among ``values`` and the lists in them, one of each class, subclasses first."""
    have = [] if have is None else have
    for v in values:
        if v.__class__ is list or v.__class__ is tuple:
            found(v, have)
        elif is_wrapped(v) and all(type(f) is not type(v) for f in have):
            at = next((i for i, f in enumerate(have) if isinstance(v, type(f))), len(have))
            have.insert(at, v)
    return have


def _aten(name, overload="default"):
    from .._custom import namespace
    return getattr(getattr(namespace("aten"), name), overload)


def _asked(func, args, kwargs):
    """What the innermost mode, or the classes of the arguments, make of an operator. Nothing of it is recorded."""
    whom = found((*args, *kwargs.values()))
    types = tuple([type(t) for t in whom])
    modes = local.modes
    with no_grad():
        if modes:
            local.modes = modes[:-1]
            try:
                rule = func.rules.get(type(modes[-1]))
                got = rule(modes[-1], func, types, args, kwargs) if rule else modes[-1].__torch_dispatch__(func, types, args, kwargs)
            finally:
                local.modes = modes
            if got is not NotImplemented:
                return got
        for t in whom:
            got = func.rules.get(type(t), type(t).__torch_dispatch__)(func, types, args, kwargs)
            if got is not NotImplemented:
                return got
    lines = [f"  - tensor subclass {cls}" for cls in types]
    if modes:
        lines.insert(0, f"  - mode object {modes[-1]}")
    raise TypeError("\n".join([f"Multiple dispatch failed for 'torch.ops.{func}'; all __torch_dispatch__ handlers returned NotImplemented:", "", *lines, "",
                               "For more information, try re-running with TORCH_LOGS=not_implemented"]))


def asked(op, args, kwargs):
    """A custom operator by those who take operators over."""
    if local.modes:
        from .modes import ask
        return ask(op, args, kwargs, lambda: op._computed(*args, **kwargs))
    return _asked(op, args, kwargs)


def _bound(op, args, kwargs):
    """One value per parameter of ``op``."""
    if op.kind == "elementwise":
        return (*args, *[kwargs.get(n) for n in op.params[len(args):]])
    signature = _signatures.get(op.name)
    if signature is None:
        signature = _signatures[op.name] = inspect.signature(op.fn)
    bound = signature.bind(*args, **{k: v for k, v in kwargs.items() if k != "out"})
    bound.apply_defaults()
    return tuple(bound.arguments.values())


def _tracked(values):
    return any(_tracked(v) if v.__class__ is list or v.__class__ is tuple else isinstance(v, Tensor) and v._rg for v in values)


def _plain_history(t):
    """``t``, or another handle on it, without history: the operator's is to come."""
    return t._alias() if t._rg or t._grad_fn is not None else t


def _recorded_as(leaf, name, args, kwargs):
    """An operator of ``aten`` with one tensor, on the tape as clnn's ``leaf``."""
    from .entries import attach
    r = _asked(_aten(name), args, kwargs)
    if state.grad and args[0]._rg and r.dtype.differentiable:
        r = r._alias() if r is args[0] else _plain_history(r)
        attach(REGISTRY[leaf], r, args[:len(REGISTRY[leaf].params)])
    return r


def _recorded_step(name, overload, t, given):
    """One step of a basic index, on the tape: an int, or a slice of one dimension."""
    from .entries import attach
    r = _asked(_aten(name, overload), (t, *given), {})
    if state.grad and t._rg:
        dim, r = given[0], _plain_history(r)
        entry = given[1] if name == "select" else (given[1], given[3] if len(given) > 3 else 1, r.shape[dim])
        attach(REGISTRY["_basic_index"], r, (t, (*[(0, 1, n) for n in t.shape[:dim]], entry), t.shape))
    return r


def formed(name, args, kwargs):
    """The operator ``name`` of clnn's by those who take it over, on the tape."""
    from .._aten_calls import PARTS, call_for
    op = REGISTRY.get(name)
    target = kwargs.pop("out", None) if kwargs else None
    if op is None or op.kind == "composite":
        if op is not None and state.grad and _tracked((*args, *kwargs.values())):
            raise Memoryless(found((*args, *kwargs.values()))[0]).of(name)           # it has no gradient rule
        r = _asked(_aten(name), args, kwargs)
    else:
        values = _bound(op, args, kwargs)
        if name in PARTS and (r := PARTS[name](*values)) is not None:
            return r
        track = state.grad and _tracked(values)
        if track and op.decompose is not None and len(op.outputs) > op.public:
            return op.decompose(*values)
        with no_grad():
            func, its_args, its_kwargs = call_for(op, values)
        r = _asked(func, its_args, its_kwargs)
        if op.public == 1 and isinstance(r, (tuple, list)) and r and isinstance(r[0], Tensor):
            r = r[0]
        if track:
            r = _attached(op, r, values)
    if target is not None:
        from .inplace import set_out
        return set_out(target, r)
    return r


def _attached(op, r, values):
    from .declare import attach_list
    inputs = [v for v in values if isinstance(v, Tensor)]
    if isinstance(r, (tuple, list)):
        r = tuple([t._alias() if any(t is v for v in inputs) else _plain_history(t) if isinstance(t, Tensor) else t for t in r])
    elif isinstance(r, Tensor):
        r = r._alias() if any(r is v for v in inputs) else _plain_history(r)
    else:
        return r
    (attach_list if op.variadic else op.attach)(op, r, values)
    return r


def early(name, args, kwargs):
    """The result of an operator with such operands; else, and for those made of others, NotImplemented."""
    if not found((*args, *kwargs.values())):
        return NotImplemented
    op = REGISTRY.get(name)
    if op is None or op.kind == "composite":
        from .._aten_calls import EXPLICIT, WHOLE
        whole = WHOLE.get(name)
        if whole is not None:
            return whole(*args, **kwargs)
        return NotImplemented if name not in EXPLICIT or state.grad and _tracked((*args, *kwargs.values())) else _asked(
            _aten(name, EXPLICIT[name](args, kwargs)), args, kwargs)
    if name == "_basic_index":
        from .._aten_calls import indexed
        return indexed(*args)
    return formed(name, args, kwargs)


def inplace(fn, name, self, args, kwargs):
    """An in-place operator by those who take it over; where its gradient is wanted, by the result of the other form."""
    if not found((self, *args, *kwargs.values())):
        return NotImplemented
    if state.grad and _tracked((self, *args, *kwargs.values())):
        if not is_wrapped(self):
            return NotImplemented
        if self._rg and self._grad_fn is None:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        return _become(self, fn(self, *args, **kwargs), name)
    from .._aten_calls import overload_of
    _asked(_aten(name + "_", overload_of(name, args)), (self, *args), kwargs)
    if is_wrapped(self):
        bump(self)
    return self


Tensor._make_wrapper_subclass = staticmethod(make)
Tensor.__torch_dispatch__ = classmethod(_torch_dispatch)
