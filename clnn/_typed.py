"""``FloatTensor`` and its like: PyTorch's constructors of a fixed dtype, and ``cuda.FloatTensor`` of a fixed dtype and device."""
from __future__ import annotations

from ._tensor.tensor import Tensor
from .core import dtype as dt
from .core.shape import Size
from .ops import creation

_ROWS = dict(Float="float32", Double="float64", Half="float16", BFloat16="bfloat16", Long="int64", Int="int32", Short="int16", Char="int8", Byte="uint8",
             Bool="bool")


class Typed(type):
    """A call makes a tensor of the dtype, ``isinstance`` asks for it."""

    def __call__(cls, *args, size=None, device=None):
        args = args if size is None else (Size(size),)
        if len(args) == 1 and isinstance(args[0], Tensor):
            if args[0].dtype is not cls.dtype:
                raise TypeError(f"expected a tensor of dtype {cls.dtype} (got {args[0].dtype})")
            return args[0].detach() if cls.place is None else args[0].detach().to(cls.place)
        return creation.legacy_new(args, cls.dtype, cls.place or device)

    def __instancecheck__(cls, t):
        return isinstance(t, Tensor) and t.dtype is cls.dtype and (cls.place is None or t.is_cuda)


def types_of(module, place=None):
    """The constructors by name. With a ``place``, their tensors lie there."""
    return {f"{kind}Tensor": Typed(f"{kind}Tensor", (), {
        "dtype": dt.from_name(row), "place": place, "__module__": module,
        "__doc__": f"A tensor of dtype ``{row}`` from data, or uninitialised of a shape (PyTorch's legacy constructor)."}) for kind, row in _ROWS.items()}
