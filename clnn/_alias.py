"""``sys.modules["torch"] = clnn``: what is then imported as ``torch.nn`` is ``clnn.nn`` itself, not a second copy of it.

Modules that PyTorch keeps elsewhere are found under its names, and an import of what clnn does not have says why.
"""
import importlib
import importlib.util
import sys
from importlib.machinery import ModuleSpec

_PACKAGE = __name__.rpartition(".")[0]
_ELSEWHERE = {
    "autograd.profiler": "profiler", "autograd.variable": "autograd", "cuda.amp.autocast_mode": "cuda.amp", "cuda.amp.common": "cuda.amp",
    "cuda.amp.grad_scaler": "amp.grad_scaler", "cuda.memory": "cuda", "cuda.random": "cuda", "cuda.streams": "cuda",
    "nn.parallel.data_parallel": "nn.parallel", "nn.parallel.distributed": "nn.parallel", "utils.data._utils": "utils.data",
    "utils.data._utils.collate": "utils.data.collate", "utils.data._utils.worker": "utils.data._worker", "utils.data.distributed": "utils.data.sampler",
}


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
        if not dot or root != _PACKAGE and sys.modules.get(root) is not sys.modules.get(_PACKAGE):
            return None
        own = f"{_PACKAGE}.{_ELSEWHERE.get(rest, rest)}"
        if own != name and (own in sys.modules or importlib.util.find_spec(own)):
            return ModuleSpec(name, _Loader(own), is_package=True)
        return None


class _Why:
    """Comes last: what no one has found is refused with the reason."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        root, _, rest = name.partition(".")
        if rest and sys.modules.get(root) is sys.modules.get(_PACKAGE) is not None:
            from ._misc import reason
            family = reason(rest.partition(".")[0])
            if family:
                raise ModuleNotFoundError(f"No module named {name!r}: clnn does not implement {family}", name=name)
        return None


sys.meta_path.insert(0, _Finder)
sys.meta_path.append(_Why)
