"""``torch.utils.cpp_extension`` for programs that try to build an extension and go on without it: extensions are written against PyTorch's own C++ library,
which is not here, so that whatever would build or load one raises RuntimeError."""
from __future__ import annotations

import shutil

__all__ = ["BuildExtension", "CppExtension", "CUDAExtension", "include_paths", "is_ninja_available", "load", "load_inline", "verify_ninja_availability"]

CUDA_HOME = ROCM_HOME = CUDNN_HOME = None       # no toolkit is used
IS_HIP_EXTENSION = False


def _refuse(what):
    raise RuntimeError(f"cpp_extension.{what}: extensions in C++ or CUDA need PyTorch's C++ library, which clnn has not; operators of your own can be "
                       "declared in Python (clnn's module library) or as kernels (CONTRIBUTING.md)")


def load(name, sources, *args, **kwargs):
    """Raises RuntimeError: an extension cannot be built.

    Example:
        >>> clnn.utils.cpp_extension.CUDA_HOME is None
        True
    """
    _refuse("load")


def load_inline(name, cpp_sources, *args, **kwargs):
    """Raises RuntimeError: an extension cannot be built."""
    _refuse("load_inline")


def CppExtension(name, sources, *args, **kwargs):
    """Raises RuntimeError: an extension cannot be built."""
    _refuse("CppExtension")


def CUDAExtension(name, sources, *args, **kwargs):
    """Raises RuntimeError: an extension cannot be built."""
    _refuse("CUDAExtension")


def include_paths(device_type="cpu"):
    """Raises RuntimeError: there are no headers."""
    _refuse("include_paths")


class BuildExtension:
    """Raises RuntimeError when it is made: an extension cannot be built."""

    def __init__(self, *args, **kwargs):
        _refuse("BuildExtension")

    @classmethod
    def with_options(cls, **options):
        """Raises RuntimeError: an extension cannot be built."""
        _refuse("BuildExtension")


def is_ninja_available():
    """Whether the program ``ninja`` is there."""
    return shutil.which("ninja") is not None


def verify_ninja_availability():
    """Raises RuntimeError without the program ``ninja``."""
    if not is_ninja_available():
        raise RuntimeError("Ninja is required to load C++ extensions (pip install ninja to get it)")
