"""Writing objects of a program's own classes, as pickles have them: the class by its name, and the state."""

import sys
import types

from clnn._serialization import whole
from clnn._serialization.unpickle import trusts

_NO_OBJECTS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType, type)


def _importable(named):
    """Whether ``named``, a class or a function, is found under its own name."""
    found = sys.modules.get(named.__module__)
    for part in named.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is named


def _reduced(obj):
    """(what to call, its arguments, whether that is ``__new__``, state, items, pairs) as ``__reduce_ex__`` tells, or None."""
    got = obj.__reduce_ex__(2)
    if not isinstance(got, tuple):
        return None
    function, args, state, items, pairs = (*got, None, None, None)[:5]
    new = getattr(function, "__name__", "") == "__newobj__"
    if new:
        function, *args = args
    return (function, tuple(args), new, state, list(items or ()), list(pairs or ())) if _importable(function) else None


def _kept_by_state(kind):
    """Whether ``state_dict`` of instances comes from clnn, so optimizers and schedules; that of a program's class may be anything."""
    return any(["state_dict" in vars(c) and c.__module__.partition(".")[0] == "clnn" for c in kind.__mro__])


def write_object(pickler, obj):
    """Write ``obj`` with ``pickler``; False where it is not to be: functions of a program, scalers of losses (whose ``state_dict`` is), what cannot be pickled."""
    kind = type(obj)
    if isinstance(obj, types.FunctionType | types.BuiltinFunctionType):
        for module in ("torch.nn.functional", "torch"):
            if whole.own_function(obj.__name__, module) is obj:
                pickler._global(module, obj.__name__)
                return True
        if _importable(obj):
            return _write_own(pickler, obj, whole.is_own(obj))
    if isinstance(obj, types.MethodType) and hasattr(obj.__self__, "__reduce_ex__"):
        return _write_method(pickler, obj)
    if isinstance(obj, type) and _importable(obj) and obj.__module__.partition(".")[0] != "numpy":
        return _write_own(pickler, obj, whole.is_named(obj))
    known = whole.is_whole(obj)
    if isinstance(obj, _NO_OBJECTS) or _kept_by_state(kind) and not known or kind.__module__.partition(".")[0] == "numpy" or not _importable(kind):
        return False
    try:
        parts = _reduced(obj)
    except (TypeError, AttributeError):
        return False
    if parts is None:
        return False
    function, args, new, state, items, pairs = parts
    if not trusts(kind) and not known:
        pickler.foreign = pickler.foreign or f"{kind.__module__}.{kind.__qualname__}"
    _write_name(pickler, function)
    pickler.out += b"("
    for value in args:
        _write_name(pickler, value) if isinstance(value, type) else pickler._save(value)
    pickler.out += b"t\x81" if new else b"tR"
    pickler._memoize(obj)
    for value in items:
        pickler._save(value)
        pickler.out += b"a"
    if pairs:
        pickler._pairs(dict(pairs))
    if state is not None:
        pickler.path.append("state")
        pickler._save(state)
        pickler.path.pop()
        pickler.out += b"b"
    return True


def _write_own(pickler, named, known):
    """A class or function of the program as a value."""
    if not (known or trusts(named)):
        pickler.foreign = pickler.foreign or f"{named.__module__}.{named.__qualname__}"
    _write_name(pickler, named)
    return True


def _write_method(pickler, method):
    """A bound method, as ``pickle`` writes it: the attribute of its object, which is written first."""
    if not whole.is_forward(method.__self__, method.__name__):
        pickler.foreign = pickler.foreign or method.__qualname__
    pickler._global("builtins", "getattr")
    pickler.out += b"("
    pickler._save(method.__self__)
    pickler._save(method.__name__)
    pickler.out += b"tR"
    return True


def _write_name(pickler, named):
    """A class or function by its name, in two steps where it is an attribute of a class."""
    owner, _, name = named.__qualname__.rpartition(".")
    if not owner:
        pickler._global(whole.written_name(named), name)
        return
    pickler._global("builtins", "getattr")
    pickler.out += b"("
    _write_name(pickler, _owner(named, owner))
    pickler._save(name)
    pickler.out += b"tR"


def _owner(named, path):
    found = sys.modules[named.__module__]
    for part in path.split("."):
        found = getattr(found, part)
    return found
