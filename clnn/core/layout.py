"""Names of memory layouts and formats, which programs pass on and compare. ``clnn._tensor.formats`` has the strides of formats, ``clnn.sparse`` the
tensors of other layouts."""
from __future__ import annotations

from .config import config


class _Name(str):
    """A constant of the package, which shows the name that programs know the package by, as dtypes do."""

    __slots__ = ()

    def __repr__(self):
        return f"{config.spoken}.{self.rpartition('.')[2]}"

    __str__ = __repr__

    def __new__(cls, name=""):
        if not str(name).startswith("clnn."):                # those below, which are all
            raise TypeError(f"cannot create '{config.spoken}.{cls.__name__}' instances")
        return str.__new__(cls, name)

    def __reduce__(self):
        return named, (str.__str__(self),)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __format__(self, spec):
        return format(repr(self), spec)


class layout(_Name):
    """How the elements of a tensor are stored: ``clnn.strided`` or one of the sparse ones."""

    __slots__ = ()


class memory_format(_Name):
    """An order of dimensions in memory, as an argument of ``to``, ``contiguous`` and others."""

    __slots__ = ()


class qscheme(_Name):
    """How the integers of a quantised tensor stand for numbers: ``clnn.per_tensor_affine`` or one of its kind."""

    __slots__ = ()


# blocks are only a name, which programs ask layouts for: no tensor has it
strided, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc, jagged = (layout("clnn." + n) for n in (
    "strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged"))
contiguous_format, preserve_format, channels_last, channels_last_3d = (
    memory_format("clnn." + n) for n in ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d"))
legacy_contiguous_format = contiguous_format
per_tensor_affine, per_channel_affine, per_tensor_symmetric, per_channel_symmetric, per_channel_affine_float_qparams = (
    qscheme("clnn." + n) for n in ("per_tensor_affine", "per_channel_affine", "per_tensor_symmetric", "per_channel_symmetric",
                                   "per_channel_affine_float_qparams"))
_ALL = {str.__str__(name): name for name in (strided, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc, jagged, contiguous_format,
                                                preserve_format, channels_last, channels_last_3d,
                                                per_tensor_affine, per_channel_affine, per_tensor_symmetric, per_channel_symmetric,
                                                per_channel_affine_float_qparams)}


def named(name):
    """The one constant of this name: programs compare them with ``is``."""
    return _ALL[name]
