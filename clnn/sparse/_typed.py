"""``sparse.FloatTensor`` and its like: PyTorch's legacy constructors."""
from __future__ import annotations

from .._typed import _ROWS
from ..core import dtype as dt
from ._build import sparse_coo_tensor
from ._tensor import SparseTensor


class Typed(type):
    """A call makes a sparse tensor of the dtype from ``(indices, values, size)``, ``(size)`` or nothing; ``isinstance`` asks for it."""

    def __call__(cls, *args):
        if len(args) >= 2 and not isinstance(args[0], int):
            return sparse_coo_tensor(*args, dtype=cls.dtype)
        size = args[0] if len(args) == 1 and not isinstance(args[0], int) else args or (0,)
        return sparse_coo_tensor(size=tuple(size), dtype=cls.dtype)

    def __instancecheck__(cls, t):
        return isinstance(t, SparseTensor) and t.is_sparse and t.dtype is cls.dtype


def types_of(module):
    """The constructors by name."""
    return {f"{kind}Tensor": Typed(f"{kind}Tensor", (), {
        "dtype": dt.from_name(row), "__module__": module,
        "__doc__": f"A sparse tensor of dtype ``{row}`` (PyTorch's legacy constructor)."}) for kind, row in _ROWS.items()}
