"""Functions taken over by other classes: PyTorch's protocol ``__torch_function__``.

A class that has the classmethod ``__torch_function__(cls, func, types, args, kwargs)`` is asked what a public function gives for its instances; a mode
(:class:`clnn.overrides.TorchFunctionMode`) is asked for all calls. Nobody asks while no program needs it: the check is written into the public functions,
in place, when the first subclass of Tensor is defined, the first mode is entered or the first call fails for an argument that has the protocol
(:func:`activate`). Until then a call costs what it did; the function objects stay the same, so they can be keys of a program's tables.
"""
from __future__ import annotations

import functools
import sys
import threading
from types import FunctionType

from ..core import native
from ..core.config import config
from . import tape
from .grad_mode import state
from .handle import told
from .spelt import in_python, spelt_out
from .tensor import Tensor

active = False
_undo: list = []                # (function, code, defaults, keyword defaults, __wrapped__) of what was changed
_changed: set = set()           # these functions
_wrappers: set = set()          # code of the functions that call :func:`late`
_makers: dict = {}
_twins: dict = {}               # function -> the method that does the same, and the other way round
_kinds: dict = {}               # class -> whether its instances take functions over; None for lists, whose items are asked


class _Local(threading.local):
    off = 0                     # 1: no subclass is asked in this thread; 2: no mode either
    passed = False              # the next function of a program that asks goes on by itself
    modes = ()


local = _Local()
native.give(override=local)


def disabled(func, types, args=(), kwargs=None):
    """The ``__torch_function__`` of classes that take nothing over: their instances count as plain tensors."""
    with switched_off():
        return func(*args, **(kwargs or {}))


class switched_off:
    """No class is asked in this block (``level`` 1), nor any mode (2)."""

    level = 1

    def __enter__(self):
        self.before = local.off
        local.off = max(self.level, local.off)

    def __exit__(self, *exc):
        local.off = self.before


class all_switched_off(switched_off):
    """Neither a class nor a mode is asked in this block."""

    level = 2


# -- whom to ask --------------------------------------------------------------------------------------------------------------------

def _kind(cls):
    """Whether instances of ``cls`` take functions over."""
    if cls is list or cls is tuple:
        return None
    if cls is Tensor:
        return False
    found = getattr(cls, "__torch_function__", None)
    got = found is not None and found is not disabled
    if len(_kinds) > 10000:
        _kinds.clear()
    _kinds[cls] = got
    return got


_kinds.update({Tensor: False, int: False, float: False, bool: False, str: False, type(None): False, list: None, tuple: None})


def overloaded(values, found=None):
    """The arguments to ask, one of each class, subclasses first; items of lists and tuples too."""
    found = [] if found is None else found
    for v in values:
        cls = type(v)
        kind = _kinds.get(cls, 0)
        if kind == 0 and kind is not False:                     # a class not seen before
            kind = _kind(cls)
        if kind is None:
            overloaded([i for i in v if type(i) is not list and type(i) is not tuple], found)
        elif kind and all(type(f) is not cls for f in found):
            at = next((i for i, f in enumerate(found) if issubclass(cls, type(f))), len(found))
            found.insert(at, v)
    return found


def asked(args, kwargs=None):
    """Whether a call with these arguments is one to hand over."""
    off = local.off
    if off == 2:
        return False
    if local.modes:
        return True
    if off:
        return False
    return bool(overloaded(args) or kwargs and overloaded(kwargs.values()))


def passing() -> bool:
    """Whether the function that asks is the one that :func:`redispatched` calls."""
    passed, local.passed = local.passed, False
    return passed


def redispatched(func, args, kwargs):
    """``func`` itself: nobody is asked for it, but for what a program's own function calls."""
    if not isinstance(func, FunctionType) or func in _changed:
        with all_switched_off():
            return func(*args, **kwargs)
    local.passed = True
    try:
        return func(*args, **kwargs)
    finally:
        local.passed = False


def hand_over(func, args, kwargs, found, by_program=False):
    """Ask the innermost mode, then the arguments ``found``, until one answers; ``by_program``: for a function that a program names.

    Raises TypeError when all return NotImplemented.
    """
    args, kwargs = spelt_out(func, args, {} if kwargs is None else kwargs)
    types = tuple([type(f) for f in found])
    modes = local.modes
    if modes and local.off < 2:
        mode = modes[-1]
        local.modes = modes[:-1]
        try:
            result = mode.__torch_function__(func, types, args, kwargs)
        finally:
            local.modes = modes
        if result is not NotImplemented:
            return result
    for f in found:
        result = f.__torch_function__(func, types, args, kwargs)
        if result is not NotImplemented:
            return result
    lines = [f"  - tensor subclass {cls}" for cls in types]
    if modes:
        lines.insert(0, f"  - mode object {modes[-1]}")
    place = (getattr(func, "__module__", None) or "clnn").partition(".")[0]
    own = func.__qualname__ if getattr(func, "__qualname__", "").startswith("Tensor.") else getattr(func, "__name__", "")
    name = f"{config.spoken if place == 'clnn' else place}.{own}" if hasattr(func, "__module__") else repr(func)
    python = f"{func.__module__}.{func.__name__}" if by_program and place != "clnn" else in_python(func) or by_program and name
    if python:
        raise TypeError(f"no implementation found for '{python}' on types that implement __torch_function__: {list(types)}"
                        + (f" nor in mode {modes[-1]}" if modes else ""))
    raise TypeError("\n".join([f"Multiple dispatch failed for '{name}'; all __torch_function__ handlers returned NotImplemented:", "", *lines, "",
                               "For more information, try re-running with TORCH_LOGS=not_implemented"]))


# -- the check, written into the public functions ------------------------------------------------------------------------------------

def _entry(inner, func, by_arguments=True):
    """What a function does while overrides are active: ``inner`` is the function as it was, ``func`` what the classes are told.

    ``by_arguments``: the arguments are asked, not just the modes; else they count as plain tensors.
    """
    kinds, here, spread, symbol = _kinds, local, getattr(func, "spread", None), getattr(inner, "symbol", False)

    def factory(args, kwargs):
        if here.modes and here.off < 2:
            return hand_over(func, args, kwargs, ())
        with switched_off():
            return inner(*args, **kwargs)

    def entry(args, kwargs):
        off = here.off
        if off == 2:
            return inner(*args, **kwargs)
        found = ()
        if not off:
            for a in args:
                if kinds.get(type(a), True) is not False:
                    found = overloaded((*args, *kwargs.values()))
                    break
            else:
                if kwargs:
                    found = overloaded(kwargs.values())
        if found or here.modes:
            try:
                return hand_over(func, args if spread is None else spread(args), kwargs, found)
            except TypeError:
                if symbol:                                      # Python asks the other side, and says what it cannot do
                    return NotImplemented
                raise
        return inner(*args, **kwargs)
    if not by_arguments:
        return factory
    return entry if native.built is None else native.built.asking(inner, entry, kinds)


def _code(free):
    """Code that hands its arguments to ``_entry``, over the free variables of the function that gets it."""
    code = _makers.get(free)
    if code is None:
        names, place = ", ".join(free), {}
        above = _code.__code__.co_firstlineno + 3               # so that tracebacks show the line with "return"
        lines = [f"def make({names}):", "    def call(*args, _entry, **kwargs):", "        return _entry(args, kwargs)"]
        exec("\n" * above + "\n".join([*lines, *([f"        {names}"] if free else []), "    return call"]), place)
        code = _makers[free] = place["make"](*free).__code__.replace(co_filename=__file__)
    return code


def _rewrite(fn, func, by_arguments):
    """Put the check before ``fn``, in place."""
    code = fn.__code__
    inner = copied(fn)
    _changed.add(fn)
    _undo.append((fn, code, fn.__defaults__, fn.__kwdefaults__, fn.__dict__.get("__wrapped__")))
    fn.__code__, fn.__defaults__ = _code(code.co_freevars).replace(co_name=code.co_name), None
    fn.__kwdefaults__, fn.__wrapped__ = {"_entry": _entry(inner, func, by_arguments)}, inner


def activate():
    """Write the check into the public functions, methods and properties."""
    global active
    if active:
        return
    from .overridable import functions
    active, plain = True, tape.run
    for row in list(functions()):
        _rewrite(*row)

    def run(*args, **kwargs):
        with all_switched_off():                                # gradient rules may have kept instances of other classes
            return plain(*args, **kwargs)
    tape.run = functools.wraps(plain)(run)


def deactivate():
    """Give all functions back their own code."""
    global active
    if active:
        tape.run = tape.run.__wrapped__
    while _undo:
        fn, fn.__code__, fn.__defaults__, fn.__kwdefaults__, wrapped = _undo.pop()
        if wrapped is None:
            del fn.__wrapped__
        else:
            fn.__wrapped__ = wrapped
    active = False


def answers(call):
    """Mark ``call`` as one that asks :func:`late` when it fails (decorator)."""
    _wrappers.add(call.__code__)
    return call


def late(fn, args, kwargs=None):
    """Called when ``fn`` has failed: what an argument that takes functions over makes of it, the first such call of a program.

    Returns NotImplemented where there is no such argument, where the check was made already, or where a caller of ``fn`` is the one to ask.
    """
    values = (*args, *kwargs.values()) if kwargs else args
    if active or not overloaded(values):
        return NotImplemented
    frame, depth = sys._getframe(1), 0
    while frame is not None and depth < 2:
        if frame.f_code in _wrappers:
            depth += 1
            fn = _by_code.get(id(frame.f_code), fn)             # a method, or a function's twin in nn.functional
        frame = frame.f_back
    if depth > 1:
        return NotImplemented
    activate()
    return fn(*args, **(kwargs or {}))


# -- methods ---------------------------------------------------------------------------------------------------------------------------

def copied(fn):
    """The same function, over the same variables, as an object of its own."""
    new = FunctionType(fn.__code__, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)
    new.__kwdefaults__, new.__doc__, new.__module__, new.__qualname__ = fn.__kwdefaults__, fn.__doc__, fn.__module__, fn.__qualname__
    new.__dict__.update(fn.__dict__)
    return native.fronted_as(new, fn)


_by_code: dict = {}     # id -> the function that has this code for itself
codes: dict = {}        # id -> code, of methods; codes alone would be found by what they do, as which those of functions are equal
twin_codes: dict = {}   # the same, of functions of nn.functional that another function of that name is beside


def method_of(fn):
    """``fn`` as a method of Tensor, which classes tell from the function: in PyTorch they are two objects."""
    method = _twins.get(fn)
    if method is None:
        method = _twinned(fn)
        method.__module__, method.__qualname__ = "clnn", f"Tensor.{fn.__name__}"
        apart(method)                                           # so that errors count arguments as the program wrote them (see worded)
        codes[id(method.__code__)] = method.__code__
    return method


def apart(fn):
    """``fn`` with code of its own, by which it is told from the function that it copies."""
    fn.__code__ = fn.__code__.replace()
    native.settle(fn)
    _by_code[id(fn.__code__)] = fn
    return fn


def twin_of(fn, module, name=None):
    """The same function as an object of its own, of ``module``: some take other arguments there (see worded), and graphs tell them apart."""
    twin = apart(copied(fn))
    twin_codes[id(twin.__code__)] = twin.__code__
    twin.__module__, twin.__qualname__ = module, name or fn.__name__
    return twin


def function_of(method):
    """A method of Tensor as a function of the package."""
    fn = _twins.get(method)
    if fn is None:
        fn = _twinned(method)
        fn.__module__, fn.__qualname__ = "clnn", method.__name__
    return fn


def _twinned(fn):
    twin = _twins[fn] = copied(fn)
    _twins[twin] = fn
    return twin


def forms(fn):
    """``fn``, and the method or function that does the same: what is written into the one has to be written into the other."""
    return (fn, _twins[fn]) if fn in _twins else (fn,)


# -- the protocol of Tensor's subclasses -----------------------------------------------------------------------------------------------

def _torch_function(cls, func, types, args=(), kwargs=None):
    """Compute ``func`` as for plain tensors, and make the tensors in its result instances of ``cls``."""
    if not all([issubclass(cls, t) for t in types]):
        return NotImplemented
    with switched_off():
        result = func(*args, **(kwargs or {}))
        return result if func in _kept() else converted(result, cls)


def converted(result, cls):
    """``result`` with its tensors, also those in tuples and lists, as instances of ``cls``."""
    if cls is Tensor:
        return result
    if isinstance(result, Tensor):
        return result if isinstance(result, cls) else as_subclass(result, cls)
    if isinstance(result, (tuple, list)):
        items = [converted(r, cls) for r in result]
        return type(result)(*items) if hasattr(result, "_fields") else type(result)(items)
    return result


def _kept():
    """Functions whose results are handed out as they are."""
    return (Tensor.grad.__get__,)


_HISTORY = ("_rg", "_grad_fn", "_out_nr", "_base", "_ver", "_view_version", "_origin", "_rewritten")


def as_subclass(self, cls):
    """The same tensor, with its memory and its history, as an instance of ``cls``, a subclass of Tensor.

    Example:
        >>> class Mine(clnn.Tensor): pass
        >>> type(clnn.ones(2).as_subclass(Mine)).__name__
        'Mine'
    """
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError("Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure your class inherits from Tensor.")
    with all_switched_off():
        if self._rg and self._grad_fn is None and state.grad:
            self = self.view_as(self)
            self._grad_fn.label = "AliasBackward0"
        t = Tensor._make_subclass(cls, self)
    theirs = told(self)
    for name in _HISTORY:
        if name in theirs:
            setattr(t, name, theirs[name])
    return t


def _init_subclass(cls, **kwargs):
    super(Tensor, cls).__init_subclass__(**kwargs)
    if cls.__module__.partition(".")[0] == __package__.partition(".")[0] and "__torch_function__" not in cls.__dict__:
        cls.__torch_function__ = staticmethod(disabled)         # clnn's own classes take nothing over
    if "__torch_dispatch__" in cls.__dict__:
        from .wrapped import adopt
        adopt(cls)
    _takes_over(cls)


def _takes_over(cls):
    """Called for a class that may have a ``__torch_function__`` of its own now."""
    for seen in [kind for kind in _kinds if kind is not Tensor and issubclass(kind, cls)]:
        del _kinds[seen]
    if cls is Tensor or cls.__torch_function__ is disabled:
        return
    activate()
    if getattr(cls.__torch_function__, "__func__", None) is not _torch_function:
        for name in ("shape", "dtype"):                         # no function stands before them
            if name not in cls.__dict__ and getattr(cls, name) is getattr(Tensor, name):
                setattr(cls, name, _asking(getattr(Tensor, name)))


def _asking(slot):
    """A property that reads ``slot`` through the protocol."""
    read = _entry(slot.__get__, slot.__get__)
    return property(lambda self: read((self,), {}))


Tensor._takes_over = classmethod(_takes_over)
Tensor.__torch_function__ = classmethod(_torch_function)
Tensor.__init_subclass__ = classmethod(_init_subclass)
Tensor.as_subclass = as_subclass
