"""Whole objects in files (modules, optimizers, data sets, distributions): which classes and functions a file may name, and under which names they are written.

A file can make an instance of such a class without calling its ``__init__`` and set its attributes, no more: of a class that the running program
has imported itself. Functions that modules keep (an activation, say) are operators of this library, or of a package that defines such classes, too; a
file can name them but not call them. Of methods it can name ``forward``, which programs put aside when they wrap it.
"""
import argparse
import datetime
import decimal
import functools
import importlib
import pathlib
import sys
import types

from clnn._serialization.files import SerializationError
from clnn._serialization.unpickle import Callable

_OWN = __name__.partition(".")[0]
_ELSEWHERE = {"ChannelShuffle": "channelshuffle", "MultiheadAttention": "activation"}       # files of PyTorch's nn.modules, where ours have other names
_SAME = {"NonDynamicallyQuantizableLinear": "Linear"}
_FUNCTIONS = ("torch", "torch.nn.functional", "torch._C._nn", "torch._C._VariableFunctions")


_BASES = ("nn.modules.module.Module", "optim.optimizer.Optimizer", "optim.lr_scheduler.LRScheduler", "utils.data.dataset.Dataset",
          "distributions.distribution.Distribution", "distributions.constraints.Constraint", "distributions.transforms.Transform")


_PLAIN = (slice, range, argparse.Namespace, types.SimpleNamespace, datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone,
          decimal.Decimal, pathlib.PosixPath, pathlib.PurePosixPath, functools.partial)      # values of Python that checkpoints hold: making one does nothing else
_PLAIN = {f"{kind.__module__}.{kind.__qualname__}": kind for kind in _PLAIN} | {
    "__builtin__.slice": slice, "__builtin__.range": range, "__builtin__.xrange": range, "pathlib._local.PosixPath": pathlib.PosixPath}

_VALUES = {kind.__name__: kind for kind in (bool, int, float, complex, str, bytes, list, tuple, dict, frozenset)}      # classes that a file may name, not call
_VALUES.update(long=int, unicode=str)       # as pickles of protocol 2 call them


@functools.cache
def _bases():
    return tuple(getattr(importlib.import_module(f"{_OWN}.{where}"), name) for where, _, name in (base.rpartition(".") for base in _BASES))


def is_named(kind) -> bool:
    """Whether files may have the class itself as a value."""
    return issubclass(kind, _bases()) or kind in _PLAIN.values() or kind in _VALUES.values()


def is_whole(obj) -> bool:
    """Whether ``obj`` is of a kind that files hold whole."""
    return isinstance(obj, _bases()) or type(obj) in _PLAIN.values()


def is_own(function) -> bool:
    """Whether files may have a function as a value: one of the program, from a package (or file) in which there are such classes as well."""
    package = (function.__module__ or "").partition(".")[0]
    return type(function) is types.FunctionType and package not in ("", _OWN, "torch") and any(_holds(kind, package) for kind in _bases())


def _holds(kind, package):
    """Whether a class derived from ``kind`` is of the package."""
    return any(c.__module__.partition(".")[0] == package or _holds(c, package) for c in kind.__subclasses__())


def is_forward(owner, name) -> bool:
    """Whether this is the method ``forward`` of a module's class."""
    return name == "forward" and isinstance(owner, _bases()[0]) and type(getattr(type(owner), name, None)) is types.FunctionType


def _function(module, name):
    """The function of the program that has this name, or None."""
    found = vars(sys.modules[module]).get(name) if module in sys.modules else None
    return found if type(found) is types.FunctionType and found.__module__ == module and is_own(found) else None


def written_name(named):
    """The name of the module that a file gives for a class or function: PyTorch's, where it is one of this library."""
    where, name = named.__module__, named.__name__
    if isinstance(named, type) and where.partition(".")[0] == _OWN:
        return f"torch.nn.modules.{_ELSEWHERE[name]}" if name in _ELSEWHERE else "torch" + where[len(_OWN):]
    return where


def own_function(name, module="torch.nn.functional"):
    """The operator or function of ``nn.functional``, or first that of ``clnn``, called ``name``, or None."""
    import clnn
    from clnn.graph.op import REGISTRY
    operator = REGISTRY[name].fn if name in REGISTRY else None
    found = operator if module == "torch" and operator is not None else getattr(clnn.nn.functional, name, operator)
    return found if callable(found) and not isinstance(found, type) and not name.startswith("_") else None


def _class(module, name):
    """The class of such objects that the program has under this name, or None."""
    import clnn
    places = [sys.modules.get(module)]
    if module.partition(".")[0] == "torch":
        places = [sys.modules.get(_OWN + module[len("torch"):]), clnn.nn if module.startswith("torch.nn.") else None]
    for place in places:
        found = getattr(place, _SAME.get(name, name) if place is clnn.nn else name, None)
        if isinstance(found, type) and issubclass(found, _bases()):
            return found
    return None


def _not_called(name, *args):
    raise SerializationError(f"load: the file calls {name}, where a saved object only has its attributes set")


_OPERATORS = object()        # stands for the class whose attributes PyTorch's operators are


def _attribute(owner, name):
    """How PyTorch's files name an operator, and files of protocol 2 a class within a class."""
    from clnn._serialization.allowed import member
    if is_forward(owner, name):
        return types.MethodType(type(owner).forward, owner)
    if owner is not _OPERATORS:
        return member(owner, name)
    found = own_function(name, "torch") if type(name) is str else None
    if found is None:
        raise SerializationError(f"load: the file refers to torch.{name}, which is no operator of clnn")
    return found


def find(module, name):
    """What a file with whole objects may name beyond plain data, or None."""
    if module == "torch._C" and name == "_VariableFunctionsClass":
        return _OPERATORS
    if module in ("builtins", "__builtin__") and name == "getattr":
        return Callable(name, _attribute)
    kind = _PLAIN.get(f"{module}.{name}")
    if kind is not None:
        return Callable(name, kind, functools.partial(kind.__new__, kind), kind)
    kind = _class(module, name) or _VALUES.get(name if module in ("builtins", "__builtin__") else None)
    if kind is not None:
        return Callable(name, functools.partial(_not_called, name), functools.partial(kind.__new__, kind), kind)
    return own_function(name, module) if module in _FUNCTIONS else _function(module, name)
