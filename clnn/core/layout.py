"""Names of memory layouts and formats, which programs pass on and compare. ``clnn._tensor.formats`` has the strides of formats, ``clnn.sparse`` the
tensors of other layouts."""
from __future__ import annotations


class layout(str):
    """How the elements of a tensor are stored: ``clnn.strided`` or one of the sparse ones."""

    __slots__ = ()
    __repr__ = str.__str__


class memory_format(str):
    """An order of dimensions in memory, as an argument of ``to``, ``contiguous`` and others."""

    __slots__ = ()
    __repr__ = str.__str__


strided, sparse_coo, sparse_csr, sparse_csc, jagged = (layout("clnn." + n) for n in ("strided", "sparse_coo", "sparse_csr", "sparse_csc", "jagged"))
contiguous_format, preserve_format, channels_last, channels_last_3d = (
    memory_format("clnn." + n) for n in ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d"))
