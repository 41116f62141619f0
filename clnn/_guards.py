"""What a recording depends on besides its inputs: modes, flags and plain attributes of modules, tensors that modules own, and plain values of closures,
globals and the objects a function works on. A call is told apart from others by all of them, so a recording is never replayed for other values."""
from __future__ import annotations

import functools
import inspect
import types

from ._results import keeps_tensors
from ._tensor.grad_mode import state
from ._tensor.tensor import Tensor
from .core.config import config

PLAIN = frozenset((int, float, bool, complex, str, bytes, type(None)))
_ALWAYS = frozenset(("training", "_maybe_hooked"))
_MOST = 256             # functions that are looked through for names
_HOME = __name__.partition(".")[0]


def plain(value):
    """``value`` if it can be compared at once, or a tuple of such; else None."""
    kind = value.__class__
    return value if kind in PLAIN or kind is tuple and all(v.__class__ in PLAIN for v in value) else None


def _own(thing):
    return (getattr(thing, "__module__", None) or "").partition(".")[0] in (_HOME, config.spoken)


def _names(code):
    """Every name that the code and the functions defined in it use."""
    found = set(code.co_names)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            found |= _names(const)
    return found


@functools.cache
def _reached(names, cls):
    """``names`` and those that methods and properties of the class use which go by one of them."""
    found, new = set(), set(names)
    while new:
        found |= new
        met = [inspect.getattr_static(cls, name, None) for name in new]
        met = [f.fget if isinstance(f, property) else getattr(f, "__func__", f) for f in met]
        new = set().union(*[_names(f.__code__) for f in met if isinstance(f, types.FunctionType) and not _own(f)]) - found
    return frozenset(found)


_FORWARD = frozenset(("forward",))


def _function(fn):
    """The Python function that a callable runs, and the object that it belongs to."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    owner = getattr(fn, "__self__", None)
    target = getattr(fn, "__func__", fn)
    if not isinstance(target, types.FunctionType):
        owner, target = target, getattr(type(target), "forward", None) or getattr(type(target), "__call__", None)
    return (target if isinstance(target, types.FunctionType) else None), owner


def flatten(value, leaves, names):
    """Tensors go to ``leaves``; the returned key describes everything else, of objects the plain attributes in ``names``."""
    if isinstance(value, Tensor):
        leaves.append(value)
        grad = value._grad if value._rg else None                  # of an input is added to, like what lived before the call: the recording keeps it
        return ("T", value.shape, value.dtype, id(value._storage.device), value._rg, value._dense, None if grad is None else id(grad))
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, *[flatten(v, leaves, names) for v in value])
    if isinstance(value, dict):
        return ("dict", *[(k, flatten(v, leaves, names)) for k, v in value.items()])
    try:
        hash(value)
    except TypeError:
        return ("object", id(value), _plain_attributes(value, names), keeps_tensors(value))
    return ("V", type(value), value, _plain_attributes(value, names), keeps_tensors(value))


def _plain_attributes(value, names):
    if value.__class__ in PLAIN or not hasattr(value, "__dict__"):
        return None
    names = _reached(names, type(value))
    return tuple([(k, v) for k, v in vars(value).items() if k in names and plain(v) is not None])


def hidden(key):
    """Whether a key of :func:`flatten` tells of an object that keeps tensors: a recording would go on with those it found there."""
    if key.__class__ is not tuple or not key:
        return False
    return key[0] in ("object", "V") and key[-1] is True or key[0] not in ("T", "V", "object") and any(map(hidden, key))


class Watch:
    """All that the results of ``fn`` depend on besides its arguments, as far as it can be seen."""

    def __init__(self, fn):
        self.fn, self.modules, self.names, self._epoch = fn, None, frozenset(), -1
        self._values, self._tensors = (), []

    def modes(self):
        """A value that is equal for calls that one recording can serve; where a number of a storage comes to mean another one, the recording is stale."""
        from .nn.modules import _hooks
        if self.modules is None:
            self._look()
        if self._epoch != _hooks.changes[0]:
            self._epoch = _hooks.changes[0]
            self._read_modules()
        tensors = self._tensors
        return (state.grad, state.inference, state.autocast and (state.autocast.low, state.autocast.kind), self._values, tuple([t._rg for t in tensors]),
                tuple([id(t._storage) for t in tensors]), tuple([plain(read(key)) for read, key in self._reads]))

    def add(self, modules):
        """Watch the modules that were called, too; True where there are new ones."""
        known = set(map(id, self.modules))
        new = [m for m in modules if id(m) not in known]
        self.modules += new
        for cls in {type(m) for m in new if not _own(type(m))}:
            self._search(getattr(cls, "forward", None))
        self._epoch = -1
        return bool(new)

    def hooked(self):
        """Whether a module has a hook of the program's, which may do anything in Python."""
        tables = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
        return any(not _own(hook if isinstance(hook, types.FunctionType) else type(hook))
                   for m in self.modules if vars(m).get("_maybe_hooked") for table in tables for hook in vars(m)[table].values())

    def _look(self):
        self.modules, self._reads, self._seen, names = [], [], {}, set()
        target, owner = _function(self.fn)
        self._search(target)
        for code in self._seen:
            names |= _names(code)
        self.names = frozenset(names)
        self._note(owner)
        if owner is not None:
            names = _reached(self.names, type(owner)).intersection(getattr(owner, "__dict__", ()))
            self._reads += [(vars(owner).get, k) for k in names if plain(vars(owner)[k]) is not None]

    def _search(self, fn):
        """Note the plain values and modules that a function, and what it calls of the program's, finds outside."""
        if not isinstance(fn, types.FunctionType) or _own(fn) or fn.__code__ in self._seen or len(self._seen) >= _MOST:
            return
        self._seen[fn.__code__] = None
        cells = [(c.__getattribute__, "cell_contents") for c in fn.__closure__ or ()]
        outside = [(fn.__globals__.get, name) for name in _names(fn.__code__) if name in fn.__globals__]
        for read, key in cells + outside:
            try:
                value = read(key)
            except ValueError:                  # a cell that is still empty
                continue
            if plain(value) is not None:
                self._reads.append((read, key))
            elif isinstance(value, types.FunctionType):
                self._search(value)
            else:
                self._note(value)

    def _note(self, value):
        from .nn import Module
        if isinstance(value, Module):
            known = set(map(id, self.modules))
            self.modules += [m for m in value.modules() if id(m) not in known]

    def _read_modules(self):
        values, tensors = [], {}
        for m in self.modules:
            own, names = vars(m), None if _own(type(m)) else _reached(_FORWARD, type(m))      # of clnn's own classes all count
            values.append(tuple([(k, v) for k, v in own.items() if v.__class__ in PLAIN and (names is None or k in _ALWAYS or k in names)]))
            for t in (*own.get("_parameters", {}).values(), *own.get("_buffers", {}).values()):
                if t is not None:
                    tensors[id(t)] = t
        self._values, self._tensors = tuple(values), list(tensors.values())


def active_fake_mode(*_):
    """None: what PyTorch compiles with tensors without values is compiled otherwise here."""


detect_fake_mode = active_fake_mode


class TracingContext:
    """What PyTorch's compiler keeps while it works; nobody asks for it here."""

    @staticmethod
    def try_get():
        """None: nothing is being compiled."""
