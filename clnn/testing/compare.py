"""``assert_close``: two values are equal within a tolerance, or the message says where they are not."""
from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence

import numpy as np

from .._tensor.interop import to_numpy
from .._tensor.tensor import Tensor
from ..core import dtype as dt
from ..core.shape import Size

TOLERANCES = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
              "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7)}


def default_tolerances(*dtypes):
    """The widest (rtol, atol) that the dtypes ask for; integers and bool compare exactly."""
    pairs = [TOLERANCES.get(d.name, (0.0, 0.0)) for d in dtypes]
    return max(p[0] for p in pairs), max(p[1] for p in pairs)


def assert_close(actual, expected, *, allow_subclasses=True, rtol=None, atol=None, equal_nan=False, check_device=True, check_dtype=True,
                 check_layout=True, check_stride=False, msg=None):
    """Raise AssertionError unless ``|actual - expected| <= atol + rtol * |expected|`` everywhere.

    Args:
        actual, expected: tensors, NumPy arrays, numbers, None, or sequences and mappings of them; two of a kind.
        rtol, atol: both or neither; the defaults depend on the dtypes.
        equal_nan: a NaN equals a NaN.
        check_device, check_dtype, check_layout, check_stride: also compare these.
        msg: replaces the message; a function gets the message and returns another.

    Example:
        >>> clnn.testing.assert_close(clnn.tensor([1.0, 2.0]), clnn.tensor([1.0, 2.0 + 1e-7]))
    """
    if (rtol is None) != (atol is None):
        raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {'rtol' if rtol is None else 'atol'}.")
    rules = dict(rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=check_device, check_dtype=check_dtype, check_stride=check_stride,
                 check_layout=check_layout, allow_subclasses=allow_subclasses, check_numbers=check_dtype, alike=True)
    compare(actual, expected, rules, msg)


def compare(actual, expected, rules, msg=None):
    """``assert_close`` by a table of its options; ``check_numbers`` tells whether an int differs from a float."""
    fault = _compare(actual, expected, rules, "")
    if fault is not None:
        raise AssertionError(fault if msg is None else msg(fault) if callable(msg) else msg)


def _compare(a, b, rules, where):
    """The message of the first difference, or None."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        if set(a) != set(b):
            return f"The keys of the mappings do not match:\nMissing keys in the actual mapping: {sorted(set(b) - set(a))}\n" \
                   f"Additional keys in the actual mapping: {sorted(set(a) - set(b))}" + _at(where)
        pairs = [(a[k], b[k], f"{where}[{k!r}]") for k in a]
    elif _listlike(a) and _listlike(b):
        if len(a) != len(b):
            return f"The length of the sequences mismatch: {len(a)} != {len(b)}" + _at(where)
        pairs = [(x, y, f"{where}[{i}]") for i, (x, y) in enumerate(zip(a, b))]
    else:
        return _leaves(a, b, rules, where)
    for x, y, at in pairs:
        fault = _compare(x, y, rules, at)
        if fault is not None:
            return fault
    return None


def _listlike(x):
    return isinstance(x, Sequence) and not isinstance(x, (str, bytes, Tensor))


def _at(where):
    return f"\n\nThe failure occurred for item {where}" if where else ""


def _leaves(a, b, rules, where):
    if a is None or b is None:
        return None if a is b else f"None mismatch: {a!r} is not {b!r}" + _at(where)
    if isinstance(a, (bool, np.bool_)) and isinstance(b, (bool, np.bool_)):
        return None if a == b else f"Booleans mismatch: {a} is not {b}" + _at(where)
    number = isinstance(a, (numbers.Number, np.generic)) and isinstance(b, (numbers.Number, np.generic))
    arrays = isinstance(a, (Tensor, np.ndarray)) and isinstance(b, (Tensor, np.ndarray))
    if not number and not (arrays and (isinstance(a, Tensor) == isinstance(b, Tensor) or not rules.get("alike"))):
        if not rules.get("alike") and isinstance(a, (Tensor, np.ndarray, numbers.Number)) and isinstance(b, (Tensor, np.ndarray, numbers.Number)):
            a, b = (x if isinstance(x, (Tensor, np.ndarray)) else np.asarray(x) for x in (a, b))
            rules = {**rules, "check_dtype": False}
        else:
            raise TypeError(f"No comparison pair was able to handle inputs of type {type(a)} and {type(b)}.{_at(where)}")
    fault = _attributes(a, b, rules) if not number else _number_types(a, b) if rules["check_numbers"] else None
    if fault:
        return fault + _at(where)
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        if a.is_meta or b.is_meta:
            return None                                         # nothing to compare
        if a.is_quantized or b.is_quantized:
            fault = _values(_array(a.dequantize()), _array(b.dequantize()), dt.float32, dt.float32, rules, number)
            return None if fault is None else fault.replace("Tensor-likes", "Quantized tensor-likes", 1) + _at(where)
        if not (str(a.layout).endswith("strided") and str(b.layout).endswith("strided")):
            return _sparse(a, b, rules, where)
    fault = _values(_array(a), _array(b), _dtype(a), _dtype(b), rules, number)
    return None if fault is None else fault + _at(where)


def _number_types(a, b):
    a, b = (x.item() if isinstance(x, np.generic) else x for x in (a, b))
    return None if type(a) is type(b) else f"The (d)types do not match: {type(a)} != {type(b)}."


def _sparse(a, b, rules, where):
    """Sparse tensors part by part; beside a dense one, as a dense one."""
    if a.layout is not b.layout:
        return _compare(*(x if str(x.layout).endswith("strided") else x.to_dense() for x in (a, b)), rules, where)
    kind = str(a.layout).rpartition("_")[2].upper()
    if kind == "COO":
        a, b = a.coalesce(), b.coalesce()
    if a._nnz() != b._nnz():
        return f"The number of specified values in sparse {kind} tensors does not match: {a._nnz()} != {b._nnz()}" + _at(where)
    for part in {"COO": "indices", "CSR": "crow_indices col_indices", "CSC": "ccol_indices row_indices"}[kind].split() + ["values"]:
        fault = _compare(getattr(a, part)(), getattr(b, part)(), rules, where)
        if fault is not None:
            return fault.replace("Tensor-likes", f"Sparse {kind} {part}", 1)
    return None


def _dtype(x):
    if isinstance(x, Tensor):
        return x.dtype
    if isinstance(x, (np.ndarray, np.generic)):
        return dt.from_numpy(x.dtype)
    return dt.float64 if isinstance(x, float) else dt.complex128 if isinstance(x, complex) else dt.scalar_dtype(x)


def _array(x):
    return to_numpy(x.detach()) if isinstance(x, Tensor) else np.asarray(x)


def _attributes(a, b, rules):
    if not rules["allow_subclasses"] and type(a) is not type(b):
        raise TypeError(f"No comparison pair was able to handle inputs of type {type(a)} and {type(b)}.")
    if tuple(a.shape) != tuple(b.shape):
        return f"The values for attribute 'shape' do not match: {Size(a.shape)!r} != {Size(b.shape)!r}."
    if rules["check_dtype"] and _dtype(a) is not _dtype(b):
        return f"The values for attribute 'dtype' do not match: {_dtype(a)} != {_dtype(b)}."
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        if rules["check_device"] and a.device != b.device:
            return f"The values for attribute 'device' do not match: {a.device} != {b.device}."
        if rules["check_layout"] and a.layout is not b.layout:
            return f"The values for attribute 'layout' do not match: {a.layout} != {b.layout}."
        if rules["check_stride"] and str(a.layout).endswith("strided") and a.stride() != b.stride():
            return f"The values for attribute 'stride()' do not match: {a.stride()} != {b.stride()}."
    return None


def _values(a, b, a_dtype, b_dtype, rules, number):
    rtol, atol = rules["rtol"], rules["atol"]
    if rtol is None:
        rtol, atol = default_tolerances(a_dtype, b_dtype)
    exact = a.dtype.kind in "iub" and b.dtype.kind in "iub" and not rtol and not atol
    if exact:
        close = a == b
    else:
        wide = np.complex128 if "c" in (a.dtype.kind, b.dtype.kind) else np.float64
        x, y = a.astype(wide), b.astype(wide)
        with np.errstate(all="ignore"):
            gap = np.abs(x - y)
            close = (x == y) | (gap <= atol + rtol * np.abs(y)) & np.isfinite(y) & np.isfinite(x)
            if rules["equal_nan"]:
                close = close | (np.isnan(x) & np.isnan(y))
    if np.all(close):
        return None
    return _report(a, b, close, *_gaps(a, b, a_dtype, b_dtype, number or not np.ndim(a)), rtol, atol)


def _gaps(a, b, a_dtype, b_dtype, number):
    """Absolute and relative differences in the precision of the operands, as PyTorch reports them."""
    row = dt.promote_types(a_dtype, b_dtype)
    kind = np.float64 if number and row.category == dt.FLOAT else np.complex128 if number and row.is_complex else np.int64 if row.category < dt.FLOAT else row.np
    with np.errstate(all="ignore"):
        gap = np.abs(a.astype(kind) - b.astype(kind))
        whole = np.float64 if number else np.float32 if kind is np.int64 else gap.dtype
        return gap, gap.astype(whole) / np.abs(b.astype(kind)).astype(whole)


def _report(a, b, close, gap, relative, rtol, atol):
    bad = ~np.asarray(close)
    exact = not rtol and not atol
    limits = ["" if exact else f" (up to {limit} allowed)" for limit in (atol, rtol)]
    if not bad.shape:
        return f"Scalars are not {'equal' if exact else 'close'}!\n\nExpected {b.item()} but got {a.item()}.\n" \
               f"Absolute difference: {gap.item()}{limits[0]}\nRelative difference: {relative.item()}{limits[1]}"
    count, total = int(bad.sum()), bad.size
    lines = [f"Tensor-likes are not {'equal' if exact else 'close'}!", "", f"Mismatched elements: {count} / {total} ({100 * count / total:.1f}%)"]
    for name, values, limit in (("absolute", gap, limits[0]), ("relative", relative, limits[1])):
        worst = np.where(bad, np.nan_to_num(values.astype(np.float64), nan=np.inf, posinf=np.inf), -1.0)
        at = np.unravel_index(int(worst.argmax()), bad.shape)
        lines.append(f"Greatest {name} difference: {values[at].item()} at index {tuple(int(i) for i in at)}{limit}")
    return "\n".join(lines)


def assert_allclose(actual, expected, rtol=None, atol=None, equal_nan=True, msg=""):
    """The older form of :func:`assert_close`: numbers and lists are taken for tensors, dtypes may differ, and NaN equals NaN.

    Example::

        >>> clnn.testing.assert_allclose(clnn.ones(2), [1.0, 1.0])
    """
    import clnn
    actual = actual if isinstance(actual, clnn.Tensor) else clnn.tensor(actual)
    expected = expected if isinstance(expected, clnn.Tensor) else clnn.tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        known = {clnn.float16: (1e-3, 1e-3), clnn.float32: (1e-4, 1e-5), clnn.float64: (1e-5, 1e-8)}
        of = [known.get(t.dtype, (0.0, 0.0)) for t in (actual, expected)]
        rtol, atol = (max(pair) for pair in zip(*of))
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)
