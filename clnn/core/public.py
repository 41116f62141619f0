"""Where functions are public: those that are made, not written with ``def``, get a name by which a pickle finds them again."""
import sys
from types import FunctionType


def _found(fn):
    """Whether ``fn`` is what its module has under its name."""
    name = fn.__qualname__
    if "." in name:                                             # a method, or made within a function
        return "<locals>" not in name
    return getattr(sys.modules.get(fn.__module__), "__dict__", {}).get(name) is fn


def name_functions(names, module):
    """Make ``module`` the home of the public functions among ``names``, its variables, that are not found under the module and name that they carry."""
    for name, fn in names.items():
        if isinstance(fn, FunctionType) and name[0] != "_" and not _found(fn):
            fn.__module__, fn.__qualname__ = module, name


def name_methods(cls, module):
    """The same for the methods of ``cls``, a class of ``module``."""
    for name, fn in list(vars(cls).items()):
        if isinstance(fn, FunctionType) and name[0] != "_" and ("<" in fn.__qualname__ or not _found(fn)):
            fn.__module__, fn.__qualname__ = module, f"{cls.__name__}.{name}"
