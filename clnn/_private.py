"""Functions with an underscore that programs take from PyTorch's top level all the same: checks with an exception each, and casts."""
from __future__ import annotations

import enum

from ._tensor.tensor import Tensor
from .core import dtype as dt
from .ops.creation import tensor, zeros
from .ops.gamma import _dirichlet_grad, sample_dirichlet as _sample_dirichlet, standard_gamma as _standard_gamma  # noqa: F401
from .ops.segments import segment_reduce as _segment_reduce  # noqa: F401


Tag = enum.Enum("Tag", """core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout generated inplace inplace_view maybe_aliasing_or_mutating
    needs_contiguous_strides needs_exact_strides needs_fixed_stride_order nondeterministic_bitwise nondeterministic_seeded out out_variant pointwise
    pt2_compliant_tag reduction view_copy""", module="torch")
Tag.__module__ = __name__.partition(".")[0]
Tag.__doc__ = "What may be told of an operator by ``tags=``: its compilers read them, of which clnn has none."


def _check_with(error_type, cond, message=None):
    """Raise ``error_type`` unless ``cond``; ``message`` is a function that gives the text.

    Example::

        >>> clnn._check(2 > 1, lambda: "two is more")
    """
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is not None and not callable(message):
        raise TypeError("message must be a callable")
    raise error_type(str(message()) if message is not None else "Expected cond to be True, but got False. (Could this error message be improved? If so, please "
                     "report an enhancement request to PyTorch.)".partition(" (")[0])


def _check(cond, message=None):
    """Raise RuntimeError unless ``cond``; ``message`` is a function that gives the text."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond, message=None):
    """Raise IndexError unless ``cond``."""
    _check_with(IndexError, cond, message)


def _check_value(cond, message=None):
    """Raise ValueError unless ``cond``."""
    _check_with(ValueError, cond, message)


def _check_type(cond, message=None):
    """Raise TypeError unless ``cond``."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond, message=None):
    """Raise NotImplementedError unless ``cond``."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i, message=None, *, max=None):       # noqa: A002
    """Raise RuntimeError unless ``i`` is 0 or more, and at most ``max``."""
    _check(i >= 0 and (max is None or i <= max), message)


def _check_tensor_all_with(error_type, cond, message=None):
    """Raise ``error_type`` unless all elements of the bool tensor ``cond`` are True."""
    if not isinstance(cond, Tensor) or cond.dtype is not dt.bool_:
        raise TypeError(f"cond must be a bool tensor, but got {getattr(cond, 'dtype', type(cond))}")
    _check_with(error_type, bool(cond.all()), message)


def _check_tensor_all(cond, message=None):
    """Raise RuntimeError unless all elements of the bool tensor ``cond`` are True."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _assert_async(input, assert_msg=""):
    """Raise RuntimeError if the one element is 0, once its value is known: here, at once."""
    if not bool(input):
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")


def _shape_as_tensor(input):
    """The shape as an int64 tensor."""
    return tensor(list(input.shape), dtype=dt.int64)


def _convert_indices_from_coo_to_csr(input, size, *, out_int32=False):
    """Where each row starts among the elements, from their sorted rows: (elements,) -> (size + 1,)."""
    ends = input.bincount(minlength=size).cumsum(0)
    row = dt.int32 if out_int32 else dt.int64
    starts = zeros(size + 1, dtype=row, device=input.device)
    starts[1:] = ends.to(row)
    return starts


def _convert_indices_from_csr_to_coo(crow_indices, col_indices, *, out_int32=False, transpose=False):
    """Rows and columns of the elements, from where each row starts: (2, elements)."""
    from .ops.creation import arange
    counts = crow_indices.diff()
    rows = arange(counts.numel(), device=crow_indices.device).repeat_interleave(counts)
    pair = [rows, col_indices.to(dt.int64)]
    pair = pair[::-1] if transpose else pair
    from .ops.joining import stack
    return stack(pair).to(dt.int32 if out_int32 else dt.int64)


def _cast(name, row):
    def cast(input, non_blocking=False):
        return input.to(row)
    cast.__name__, cast.__doc__ = name, f"``input`` as {row.name}."
    return cast


for _n, _row in dict(Byte="uint8", Char="int8", Double="float64", Float="float32", Half="float16", Int="int32", Long="int64", Short="int16").items():
    globals()[f"_cast_{_n}"] = _cast(f"_cast_{_n}", dt.from_name(_row))


class SymInt:
    """A size that is only known when a recorded program runs: PyTorch's tracers make them, clnn has none."""


class SymFloat(SymInt):
    """As :class:`SymInt`, of a float."""


class SymBool(SymInt):
    """As :class:`SymInt`, of a truth value."""


def while_loop(cond_fn, body_fn, carried_inputs):
    """``while cond_fn(*carried): carried = body_fn(*carried)``.

    Example::

        >>> clnn.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (clnn.tensor(0), clnn.ones(2)))
        (tensor(3), tensor([8., 8.]))
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError(f"Expect carried_inputs to be a tuple, got {type(carried_inputs)}")
    carried = tuple(carried_inputs)
    while bool(cond_fn(*carried)):
        carried = tuple(body_fn(*carried))
    return carried
