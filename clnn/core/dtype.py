"""The dtype table: every property of a dtype is a column here, never a branch in a kernel.

A row carries what PyTorch shows (name, itemsize, category) and what kernels need (storage type, accumulate
type, limits, load/store helpers of ``kernels/base.cl.mako``).
"""
from __future__ import annotations

import sys
from struct import pack

import ml_dtypes
import numpy as np

from .config import config


class dtype:
    """One element type. Compare by identity; ``repr`` is ``clnn.<name>``."""

    __slots__ = ("name", "np", "itemsize", "c", "acc", "category", "lowest", "highest", "is_signed", "load", "store",
                 "one", "is_floating_point", "is_complex", "index", "zero", "round_trip", "needs_fp64", "differentiable")

    def __init__(self, name, np_type, c, acc, category, lowest, highest, is_signed=True):
        self.name, self.np, self.c, self.acc, self.category = name, np.dtype(np_type), c, acc, category
        self.itemsize = self.np.itemsize
        self.lowest, self.highest, self.is_signed = lowest, highest, is_signed
        self.is_floating_point, self.is_complex, self.differentiable = category == FLOAT, category == COMPLEX, category >= FLOAT
        self.load, self.store = f"load_{name}", f"store_{name}"
        self.zero, self.one = _LITERALS.get(acc, ("0", "1"))
        # 16-bit floats are stored in 16 bits but computed in float; this rounds an intermediate to what memory would hold.
        self.round_trip = f"round_{name}" if category == FLOAT and self.itemsize == 2 else ""
        self.needs_fp64 = name in ("float64", "complex128")
        self.index = -1                 # a row of ``ALL`` gets its number there

    def __repr__(self):
        return f"{config.spoken}.{self.name}"

    def __reduce__(self):
        return (from_name, (self.name,))

    def __deepcopy__(self, memo):
        return self

    @property
    def acc_dtype(self) -> "dtype":
        """The dtype whose C type is this row's accumulate type (float32 for the 16-bit floats)."""
        return _OF_ACC[self.acc]

    def number(self, value):
        """``value`` as an argument of kernels whose parameter has the accumulate type: 64-bit floats would lose digits as a ``float``."""
        return pack("d", value) if self.needs_fp64 else float(value)

    def to_real(self) -> "dtype":
        """The dtype of the real and imaginary parts; any other dtype is its own."""
        return float32 if self is complex64 else float64 if self is complex128 else float16 if self.name == "complex32" else self

    def to_complex(self) -> "dtype":
        """The complex dtype whose parts hold this one; a complex dtype is its own."""
        if self.category < FLOAT:
            raise RuntimeError(f"Unknown Complex ScalarType for {SPOKEN[self.name]}")
        return self if self.category == COMPLEX else NAMES_ONLY[-1] if self is float16 else complex_of(self)


def complex_of(row) -> dtype:
    """The complex dtype that is computed in for ``row``: half numbers have none of their own."""
    return complex128 if row.needs_fp64 else complex64


def complex_row(name, asked) -> dtype:
    """The dtype of what the factory ``name`` makes of complex numbers."""
    row, own = as_dtype(asked), complex_of(_default_float)
    if row is not None and not row.is_complex:
        raise RuntimeError(f"torch.{name}(): inferred dtype {IN_C[own.name]} can't be safely cast to passed dtype {SPOKEN[row.name]}")
    return row or own


BOOL, INT, FLOAT, COMPLEX = 0, 1, 2, 3
_LITERALS = {"float": ("0.0f", "1.0f"), "double": ("0.0", "1.0"), "float2": ("(float2)(0.0f)", "(float2)(1.0f, 0.0f)"),
             "double2": ("(double2)(0.0)", "(double2)(1.0, 0.0)")}

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

# A complex element is a vector of its real and imaginary part. There is no order, so "lowest" and "highest" are what no kernel may use.
complex64 = dtype("complex64", np.complex64, "float2", "float2", COMPLEX, "", "")
complex128 = dtype("complex128", np.complex128, "double2", "double2", COMPLEX, "", "")

# What NumPy calls uint16, uint32 and uint64. As in PyTorch they promote with floats alone, and few operators take them.
uint16 = dtype("uint16", np.uint16, "ushort", "int", INT, "0", "65535", False)
uint32 = dtype("uint32", np.uint32, "uint", "long", INT, "0", "4294967295L", False)
uint64 = dtype("uint64", np.uint64, "ulong", "ulong", INT, "0", "ULONG_MAX", False)

REAL = (bool_, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64)
COMPLEXES = (complex64, complex128)
UNSIGNED = (uint16, uint32, uint64)
ALL = REAL + COMPLEXES + UNSIGNED
for _i, _d in enumerate(ALL):
    _d.index = _i

# Names only: programs compare dtypes with these, ask for their limits and use them as defaults. There are no tensors of them (see ``noticed``).
NAMES_ONLY = tuple([dtype(name, getattr(ml_dtypes, name), "uchar", "float", FLOAT, "", "")
                    for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")]
                   + [dtype(name, f"V{size}", "uchar", "int", INT, "", "", name[:2] == "qi")
                      for name, size in dict(qint8=1, quint8=1, qint32=4, quint4x2=1, quint2x4=1).items()]
                   + [dtype("complex32", "V4", "uint", "float2", COMPLEX, "", "")])

SPOKEN = dict(float32="Float", float64="Double", float16="Half", bfloat16="BFloat16", int64="Long", int32="Int", int16="Short", int8="Char", uint8="Byte",
              bool="Bool", complex64="ComplexFloat", complex128="ComplexDouble", uint16="UInt16", uint32="UInt32", uint64="UInt64")    # PyTorch's names in types
_OLD_TYPES = frozenset(("Float", "Double", "Half", "Long", "Int", "Short", "Char", "Byte"))


def type_in_errors(row):
    """How PyTorch's errors of ``expand`` call tensors of a dtype: those that came later have no old type."""
    name = SPOKEN[row.name]
    return f"torch.{name}Tensor" if name in _OLD_TYPES else f"CPU{name}Type"


IN_C = dict(float32="float", float64="double", float16="c10::Half", bfloat16="c10::BFloat16", int64="long int", int32="int", int16="short int",
            int8="signed char", uint8="unsigned char", bool="bool", complex64="c10::complex<float>", complex128="c10::complex<double>",
            uint16="short unsigned int", uint32="unsigned int", uint64="long unsigned int")                   # what they are in C++, which others name
FLOATS = (float16, bfloat16, float32, float64)
INTS = (uint8, int8, int16, int32, int64)
_BY_NAME = {d.name: d for d in ALL + NAMES_ONLY}
_BY_NAME.update(half=float16, float=float32, double=float64, short=int16, int=int32, long=int64, cfloat=complex64, cdouble=complex128, chalf=NAMES_ONLY[-1])
_BY_NP = {d.np: d for d in ALL}
_BY_PY = {bool: bool_, int: int64, float: float64, complex: complex128}        # as PyTorch has it, whatever the default dtype is
_OF_ACC = {"int": int32, "long": int64, "float": float32, "double": float64, "ulong": uint64, "float2": complex64, "double2": complex128}


def from_name(name: str) -> dtype:
    """The dtype called ``name`` (``'float32'``, ``'half'``...)."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise TypeError(f"unknown dtype name {name!r}; known: {', '.join(sorted(_BY_NAME))}") from None


def from_numpy(np_dtype) -> dtype:
    """The clnn dtype of a NumPy dtype. Raises TypeError for those that clnn has not (strings, dates...)."""
    row = _BY_NP.get(np_dtype)
    if row is not None:
        return row
    key = np.dtype(np_dtype)
    row = _BY_NP.get(key) or _BY_NP.get(key.newbyteorder("="))
    if row is None:
        raise TypeError(f"can't convert np.ndarray of type numpy.{key.type.__name__}. The only supported types are: float64, float32, float16, complex64, "
                        "complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool.")
    return row


def as_dtype(value) -> dtype | None:
    """Accept a clnn dtype, a NumPy dtype, a Python type or None; names are no dtypes, as in PyTorch."""
    if value is None or isinstance(value, dtype):
        return value
    if isinstance(value, type) and value in _BY_PY:
        return _BY_PY[value]
    if not isinstance(value, (type, np.dtype)):
        raise TypeError(f"{_asker(value)}argument 'dtype' must be {config.spoken}.dtype, not {type(value).__name__}")
    return from_numpy(value)


def _asker(value) -> str:
    """Of the functions on the way here the outermost that has ``value`` as its dtype, as errors begin with it."""
    frame, name = sys._getframe(2), ""
    while frame is not None and frame.f_globals.get("__name__", "").startswith("clnn."):
        if not frame.f_code.co_name.startswith(("_", "<", "method")) and frame.f_locals.get("dtype") is value:
            name = f"{frame.f_code.co_name}(): "
        frame = frame.f_back
    return name


_default_float = float32
complex_in_use = False      # whether this process has made a complex tensor: until then no operator has to look for them


def noticed(row: dtype) -> dtype:
    """``row``, noting that it is used: whatever makes a tensor of a dtype that its caller chose passes it through here.

    Raises:
        TypeError: the dtype is only a name.
    """
    global complex_in_use
    if row.index < 0:
        raise TypeError(f"clnn has no tensors of dtype {row.name}, only its name; use "
                        + ("bfloat16 or float16" if row.is_floating_point else "complex64" if row.is_complex else "integers and a scale"))
    if row.is_complex:
        complex_in_use = True
    return row


def float_default() -> dtype:
    """The dtype of tensors made from Python floats.

    Example:
        >>> clnn.get_default_dtype()
        clnn.float32
    """
    return _default_float


default_listeners: list = []            # called when the default float dtype changes: they forget what they derived from it


def set_float_default(value: dtype) -> None:
    """Set the dtype of factory functions and of Python floats.

    Example:
        >>> clnn.set_default_dtype(clnn.float16)
        >>> clnn.tensor(1.5).dtype
        clnn.float16
        >>> clnn.set_default_dtype(clnn.float32)
    """
    global _default_float
    value = as_dtype(value)
    if not isinstance(value, dtype) or not value.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    _default_float = noticed(value)
    for forget in default_listeners:
        forget()


def _promotion_table():
    """PyTorch's lattice between tensors of the same category of operand."""
    table = {}
    for a in ALL:
        for b in ALL:
            if a is b:
                r = a
            elif a in UNSIGNED or b in UNSIGNED:
                other = b if a in UNSIGNED else a
                if other.category != FLOAT:
                    continue
                r = other
            elif COMPLEX in (a.category, b.category):
                r = complex128 if any(d.needs_fp64 for d in (a, b)) else complex64
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
    """The smallest dtype that both convert to, by PyTorch's lattice.

    Example:
        >>> clnn.promote_types(clnn.int64, clnn.float16)
        clnn.float16
    """
    try:
        return PROMOTE[type1, type2]
    except KeyError:
        for at, given in enumerate((type1, type2), 1):
            if not isinstance(given, dtype):
                raise TypeError(f"promote_types(): argument 'type{at}' (position {at}) must be {config.spoken}.dtype, not {type(given).__name__}") from None
        a, b = (SPOKEN.get(d.name, d.name) for d in (type1, type2))
        raise RuntimeError(f"Promotion for uint16, uint32, uint64 types is not supported, attempted to promote {a} and {b}" if type1.index >= 0 <= type2.index
                           else f"Promotion for {a} and {b} is not supported") from None


def scalar_dtype(value) -> dtype:
    """The dtype a Python scalar stands for: bool, int64, the default float dtype or its complex one."""
    if isinstance(value, bool) or isinstance(value, np.bool_):
        return bool_
    if isinstance(value, (complex, np.complexfloating)) and not isinstance(value, float):
        return complex_of(_default_float)
    return int64 if isinstance(value, (int, np.integer)) else _default_float


def result_type(*operands) -> dtype:
    """Promotion over (dtype, rank) pairs: rank 2 = tensor with dimensions, 1 = 0-d tensor, 0 = Python scalar.

    An operand of lower rank decides only when its category is higher than that of all operands of higher rank
    (a float scalar makes an int tensor float, but never widens float16; a complex one makes float64 complex128).
    """
    best = None
    for rank in (2, 1, 0):
        here = None
        for d, r in operands:
            if r == rank:
                here = d if here is None else promote_types(here, d)
        if here is None:
            continue
        if best is None:
            best = here
        elif here.category > best.category:
            if here.category == COMPLEX:                # the width stays that of the floats of higher rank
                best = complex_of(best) if best.category == FLOAT else complex_of(_default_float) if rank == 0 else here
            else:
                best = _default_float if rank == 0 and here.category == FLOAT else here
    return best
