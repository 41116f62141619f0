"""The dtype table: every property of a dtype is a column here, never a branch in a kernel.

A row carries what PyTorch shows (name, itemsize, category) and what kernels need (storage type, accumulate
type, limits, load/store helpers of ``kernels/base.cl.mako``).
"""
from __future__ import annotations

import ml_dtypes
import numpy as np


class dtype:
    """One element type. Compare by identity; ``repr`` is ``clnn.<name>``."""

    __slots__ = ("name", "np", "itemsize", "c", "acc", "category", "lowest", "highest", "is_signed", "load", "store",
                 "one", "is_floating_point", "is_complex", "index", "zero", "round_trip", "needs_fp64")

    def __init__(self, name, np_type, c, acc, category, lowest, highest, is_signed=True):
        self.name, self.np, self.c, self.acc, self.category = name, np.dtype(np_type), c, acc, category
        self.itemsize = self.np.itemsize
        self.lowest, self.highest, self.is_signed = lowest, highest, is_signed
        self.is_floating_point, self.is_complex = category == FLOAT, False
        self.load, self.store = f"load_{name}", f"store_{name}"
        self.zero, self.one = ("0.0f", "1.0f") if acc == "float" else ("0.0", "1.0") if acc == "double" else ("0", "1")
        # 16-bit floats are stored in 16 bits but computed in float; this rounds an intermediate to what memory would hold.
        self.round_trip = f"round_{name}" if category == FLOAT and self.itemsize == 2 else ""
        self.needs_fp64 = name == "float64"

    def __repr__(self):
        return f"clnn.{self.name}"

    def __reduce__(self):
        return (from_name, (self.name,))

    def __deepcopy__(self, memo):
        return self

    @property
    def acc_dtype(self) -> "dtype":
        """The dtype whose C type is this row's accumulate type (float32 for the 16-bit floats)."""
        return float32 if self.acc == "float" else float64 if self.acc == "double" else int64 if self.acc == "long" else int32

    def to_real(self):
        return self


BOOL, INT, FLOAT = 0, 1, 2

bool_ = dtype("bool", np.bool_, "uchar", "int", BOOL, "0", "1", False)
uint8 = dtype("uint8", np.uint8, "uchar", "int", INT, "0", "255", False)
int8 = dtype("int8", np.int8, "char", "int", INT, "(-128)", "127")
int16 = dtype("int16", np.int16, "short", "int", INT, "(-32768)", "32767")
int32 = dtype("int32", np.int32, "int", "int", INT, "INT_MIN", "INT_MAX")
int64 = dtype("int64", np.int64, "long", "long", INT, "LONG_MIN", "LONG_MAX")
float16 = dtype("float16", np.float16, "ushort", "float", FLOAT, "(-INFINITY)", "INFINITY")
bfloat16 = dtype("bfloat16", ml_dtypes.bfloat16, "ushort", "float", FLOAT, "(-INFINITY)", "INFINITY")
float32 = dtype("float32", np.float32, "float", "float", FLOAT, "(-INFINITY)", "INFINITY")
float64 = dtype("float64", np.float64, "double", "double", FLOAT, "(-INFINITY)", "INFINITY")

ALL = (bool_, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64)
for _i, _d in enumerate(ALL):
    _d.index = _i

FLOATS = (float16, bfloat16, float32, float64)
INTS = (uint8, int8, int16, int32, int64)
_BY_NAME = {d.name: d for d in ALL}
_BY_NAME.update(half=float16, float=float32, double=float64, short=int16, int=int32, long=int64)
_BY_NP = {d.np: d for d in ALL}
_BY_PY = {bool: bool_, int: int64, float: float32}


def from_name(name: str) -> dtype:
    """The dtype called ``name`` (``'float32'``, ``'half'``...)."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise TypeError(f"unknown dtype name {name!r}; known: {', '.join(sorted(_BY_NAME))}") from None


def from_numpy(np_dtype) -> dtype:
    """The clnn dtype of a NumPy dtype. Raises TypeError for those that clnn has not (complex, strings, uint16...)."""
    key = np.dtype(np_dtype)
    row = _BY_NP.get(key) or _BY_NP.get(key.newbyteorder("="))
    if row is None:
        raise TypeError(f"can't convert np.ndarray of type {key}. The only supported types are: "
                        + ", ".join(d.name for d in ALL) + ".")
    return row


def as_dtype(value) -> dtype | None:
    """Accept a clnn dtype, a NumPy dtype, a Python type or None."""
    if value is None or isinstance(value, dtype):
        return value
    if isinstance(value, type) and value in _BY_PY:
        return float_default() if value is float else _BY_PY[value]
    if isinstance(value, str):
        return from_name(value)
    return from_numpy(value)


_default_float = float32


def float_default() -> dtype:
    return _default_float


def set_float_default(value: dtype) -> None:
    """Set the dtype of factory functions and of Python floats."""
    global _default_float
    value = as_dtype(value)
    if not isinstance(value, dtype) or not value.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type, got {value!r}")
    _default_float = value


def _promotion_table():
    """PyTorch's lattice between tensors of the same category of operand."""
    table = {}
    for a in ALL:
        for b in ALL:
            if a is b:
                r = a
            elif a.category != b.category:
                r = a if a.category > b.category else b
            elif a.category == FLOAT:
                r = float32 if {a, b} == {float16, bfloat16} else (a if a.itemsize > b.itemsize else b)
            elif uint8 in (a, b):
                other = b if a is uint8 else a
                r = int16 if other is int8 else other
            else:
                r = a if a.itemsize > b.itemsize else b
            table[a, b] = r
    return table


PROMOTE = _promotion_table()


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest dtype that both convert to, by PyTorch's lattice."""
    return PROMOTE[type1, type2]


def scalar_dtype(value) -> dtype:
    """The dtype a Python scalar stands for: bool, int64 or the default float dtype."""
    if isinstance(value, bool) or isinstance(value, np.bool_):
        return bool_
    return int64 if isinstance(value, (int, np.integer)) else _default_float


def result_type(*operands) -> dtype:
    """Promotion over (dtype, rank) pairs: rank 2 = tensor with dimensions, 1 = 0-d tensor, 0 = Python scalar.

    An operand of lower rank decides only when its category is higher than that of all operands of higher rank
    (a float scalar makes an int tensor float, but never widens float16).
    """
    best = None
    for rank in (2, 1, 0):
        here = None
        for d, r in operands:
            if r == rank:
                here = d if here is None else PROMOTE[here, d]
        if here is None:
            continue
        if best is None:
            best = here
        elif here.category > best.category:
            best = _default_float if rank == 0 and here.category == FLOAT else here
    return best
