"""What ``tensor`` takes (numbers, nested lists, NumPy arrays) as a NumPy array of the dtype that PyTorch gives it."""
from __future__ import annotations

import functools
import numbers
from array import array as packed
from itertools import chain

import numpy as np

from .._tensor.interop import read
from .._tensor.tensor import Tensor
from ..core import dtype as dt
from ..core.shape import Size


_NUMBERS = frozenset((int, float, bool, complex))


def _numbers(data):
    """A NumPy array from lists of equal lengths that hold nothing but Python's numbers; None where they hold more, or are no such lists."""
    inner = data
    try:
        while inner and inner[0].__class__ in (list, tuple):
            inner = list(chain.from_iterable(inner))
        return np.asarray(data) if inner and _NUMBERS.issuperset(map(type, inner)) else None
    except (TypeError, ValueError):
        return None


_MOST = 4096            # numbers: more are converted faster by NumPy


def packed_numbers(data):
    """(bytes, shape, dtype) of a float, an int, or a list of floats or of ints, in fewer steps than by an array; None of all else."""
    kind, listed = data.__class__, data.__class__ is list
    if listed and 0 < len(data) <= _MOST:
        kind = data[0].__class__
        if (kind is float or kind is int) and not {kind}.issuperset(map(type, data)):
            return None
    row = dt.int64 if kind is int else dt._default_float if kind is float else None
    if row is not dt.int64 and row is not dt.float32:           # doubles, which a device may lack, and 16 bits
        return None
    code = "q" if kind is int else "f"
    try:
        return packed(code, data if listed else (data,)).tobytes(), Size((len(data),) if listed else ()), row
    except OverflowError:
        return None


def nested(data):
    """A NumPy array from nested lists that may hold tensors, each of which is one number; PyTorch's dtypes for Python numbers."""
    if isinstance(data, Tensor):
        if data.numel() != 1:
            if not data.dtype.differentiable:
                raise TypeError("only integer tensors of a single element can be converted to an index")
            raise ValueError("only one element tensors can be converted to Python scalars")
        return read(data.detach()).reshape(())
    if data.__class__ is list or data.__class__ is tuple:
        plain = _numbers(data)
        if plain is not None:
            return plain
    if isinstance(data, (list, tuple)) and data and any(isinstance(d, (Tensor, list, tuple)) for d in data):
        rows = isinstance(data[0], (list, tuple, np.ndarray))        # the first one says whether these are rows or numbers
        parts = [read(d.detach()) if rows and isinstance(d, Tensor) else nested(d) for d in data]
        shapes = {np.shape(p) for p in parts}
        if len(shapes) > 1:
            odd = next((d for d, part in zip(data, parts) if bool(np.shape(part)) is not rows and isinstance(d, (int, float, complex, list, tuple))), None)
            if odd is not None:
                whole = "'{}' object cannot be interpreted as an integer" if isinstance(data[0], int) else "must be real number, not {}"
                raise TypeError("not a sequence" if rows else whole.format(type(odd).__name__))
            lengths = [np.shape(p)[0] if np.shape(p) else 0 for p in parts]
            other = next((n for n in lengths if n != lengths[0]), lengths[0])
            raise ValueError(f"expected sequence of length {lengths[0]} at dim 1 (got {other})")
        joined = np.stack([np.asarray(p) for p in parts])
        if any(isinstance(d, Tensor) for d in data):                 # PyTorch's rule, not NumPy's: float32 and int64 make float32
            rows = [d.dtype if isinstance(d, Tensor) else dt.from_numpy(to_array(d, None).dtype) for d in data]
            joined = joined.astype(functools.reduce(dt.promote_types, rows).np)
        return joined
    return data


def _no_number(value, first=None):
    """The error of something that no dtype holds; ``first``: what a list begins with."""
    if isinstance(value, (str, bytes)):
        if isinstance(first, str):                                       # PyTorch goes into it, as into a list
            return ValueError("too many dimensions 'str'")
        return TypeError(f"new(): invalid data type '{'str' if isinstance(value, str) else 'bytes'}'")
    return RuntimeError(f"Could not infer dtype of {type(value).__name__}: tensor() takes numbers, nested lists of equal lengths, NumPy arrays or tensors")


def to_array(data, dtype):
    if isinstance(data, np.ndarray) or isinstance(data, np.generic):
        return np.asarray(data)
    if isinstance(data, (bytearray, memoryview)):                        # sequences of numbers like any other
        data = data.tolist() if isinstance(data, memoryview) else list(data)
    array = np.asarray(nested(data))
    if (array.dtype == object or array.dtype == np.uint64 and dtype is not dt.uint64) and not has_numpy(data) and array.size:
        array = _long_numbers(array, dtype)
    if array.dtype in (np.float64, np.complex128) and dtype is None:
        default = dt._default_float if array.dtype == np.float64 else dt.complex_of(dt._default_float)
        array = array.astype((_common(data) if has_numpy(data) else default).np)
    if array.dtype == object or array.dtype.kind in "US":
        if not isinstance(data, (list, tuple)):
            raise _no_number(data)
        raise _no_number(next((v for v in array.flat if not isinstance(v, numbers.Number)), data), _first(data))
    if array.size == 0 and dtype is None and not has_numpy(data):
        array = array.astype(dt._default_float.np)
    return array


def _long_numbers(array, dtype):
    """Whole numbers beyond int64: floats can hold them, integers cannot."""
    if all(isinstance(v, int) for v in array.ravel().tolist()):
        if dtype is None or dtype.category == dt.INT:
            raise OverflowError("int too big to convert") if dtype is dt.uint64 else ValueError("Overflow when unpacking long long")
        return array.astype(np.float64)
    return array


def _common(data):
    """The common dtype of nested lists with NumPy scalars: PyTorch's rule, not NumPy's."""
    if isinstance(data, (list, tuple)):
        return functools.reduce(dt.promote_types, map(_common, data)) if data else dt._default_float
    return data.dtype if isinstance(data, Tensor) else dt.from_numpy(data.dtype) if hasattr(data, "dtype") else dt.scalar_dtype(data)


def _first(data):
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return data


def has_numpy(data):
    return isinstance(_first(data), (np.ndarray, np.generic, Tensor))


def check_range(array, row):
    """Numbers that an integer dtype cannot hold are refused; an unsigned one also takes whole numbers that are negative as often."""
    info = np.iinfo(row.np)
    low, high = array.min(), array.max()
    if row is dt.uint64 and low < 0 and array.dtype.kind == "i":
        raise OverflowError("can't convert negative int to unsigned")
    if not (low >= (info.min or (-info.max if array.dtype.kind != "f" else 0)) and high <= info.max):
        raise RuntimeError(f"value cannot be converted to type {row.name} without overflow")
