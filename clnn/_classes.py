"""``clnn.classes``: classes that extensions of PyTorch register, of which there are none."""
from __future__ import annotations

import types


class _Namespace(types.ModuleType):
    def __getattr__(self, name):
        if name[:2] == "__":
            raise AttributeError(name)
        place = self.__name__.rpartition("classes")[2].lstrip(".")
        raise RuntimeError(f"Tried to instantiate class '{place}.{name}', but it does not exist! Ensure that it is registered via torch::class_")


class _Classes(types.ModuleType):
    __file__ = "_classes.py"

    def __getattr__(self, name):
        if name[:2] == "__":
            raise AttributeError(name)
        found = _Namespace(f"clnn.classes.{name}")
        setattr(self, name, found)
        return found

    @property
    def loaded_libraries(self):
        """None."""
        return set()

    def load_library(self, path):
        """Refused: libraries of PyTorch's extensions hold code for PyTorch's tensors."""
        raise OSError(f"classes.load_library: {path} is a library of code for PyTorch's own tensors")


classes = _Classes("clnn.classes")
