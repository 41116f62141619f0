"""``sys.modules["torch"] = clnn``: what is then imported as ``torch.nn`` is ``clnn.nn`` itself, not a second copy of it."""
import importlib
import importlib.util
import sys
from importlib.machinery import ModuleSpec

_PACKAGE = __name__.rpartition(".")[0]


class _Loader:
    """Hands out the module that is already there under its own name."""

    def __init__(self, name):
        self.name = name

    def create_module(self, spec):
        module = importlib.import_module(self.name)
        self.own = module.__spec__
        return module

    def exec_module(self, module):
        module.__spec__ = self.own  # the import system just wrote the other name's over it


class _Finder:
    """Sends imports below another name of the package to the package."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        root, dot, rest = name.partition(".")
        if not dot or root == _PACKAGE or sys.modules.get(root) is not sys.modules.get(_PACKAGE):
            return None
        own = f"{_PACKAGE}.{rest}"
        return ModuleSpec(name, _Loader(own)) if own in sys.modules or importlib.util.find_spec(own) else None


sys.meta_path.insert(0, _Finder)
