"""Choosing between values: where, masked_fill, casts."""
from __future__ import annotations

import numpy as np

from .._tensor.declare import attach, composite, elementwise, kernel
from .._tensor import formats
from .._tensor.dispatch import plain, record_briefly, record_in_layout
from .._tensor.foreign import NoStrides
from .._tensor.grad_mode import state
from .._tensor.indexing import as_whole
from .._tensor.inplace import type_name
from .._tensor.refusals import spoken
from .._tensor.tensor import Tensor
from .._tensor.worded import FAILED, refuse
from ..core import dtype as dt
from ..core.layout import preserve_format
from ..core.limits import check_fits, check_operand
from ..core.warn import first_time, warn
from ..graph import fuse
from ..graph.op import REGISTRY


def _rule_where(common, kinds):
    """The condition does not take part in promotion."""
    if kinds[0] // 3 != dt.bool_.index:
        raise RuntimeError(f"where expected condition to be a boolean tensor, but got a tensor with dtype {dt.ALL[kinds[0] // 3]}")
    return common, common


_rule_where.first = 1                                            # operand from which on promotion looks

_where = elementwise("_where", "condition, input, other", "(condition != 0 ? input : other)", result=_rule_where, method=False, inplace=False,
                     complex="((condition).x != 0 ? input : other)",
                     vjp=dict(input=lambda g, condition: where(condition, g, 0.0), other=lambda g, condition: where(condition, 0.0, g)))
_where.op.grad_name = "WhereBackward0"


@composite("where", thin=True, complex=True, numpy=np.where, method=False)
def where(condition, input=None, other=None, *, out=None):
    """``input`` where the condition holds, else ``other``; with one argument, the indices where it holds."""
    if input is None:
        return REGISTRY["nonzero"].fn(condition, as_tuple=True)
    if not isinstance(condition, Tensor):
        raise TypeError(f"where(): argument 'condition' must be Tensor, not {type(condition).__name__}")
    if condition.dtype is not dt.bool_:
        if condition.dtype is not dt.uint8:
            raise RuntimeError(f"where expected condition to be a boolean tensor, but got a tensor with dtype {type_name(condition.dtype)}")
        warn("where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future version of PyTorch. "
             "Use a boolean condition instead.")
        condition = condition != 0
    for number, beside in ((input, other), (other, input)):
        if isinstance(beside, Tensor) and beside.dtype.category == dt.INT:
            check_operand(number, beside.dtype)
    return _where(condition, input, other, out=out)


def _where_method(self, condition, other):
    try:
        return where(condition, self, other)
    except FAILED:
        refuse("where", (self, condition, other), None, True)
        raise


_where_method.__name__, _where_method.__doc__ = "where", where.__doc__
Tensor.where = _where_method


def narrows(value, row) -> bool:
    """Whether numbers of the tensor ``value`` may be beyond dtype ``row``: they have to be looked at."""
    own = value.dtype
    if own is row or row is dt.bool_ or own.category < row.category:
        return False
    return own.category > row.category or not np.can_cast(own.np, row.np)


@composite("masked_fill", thin=True, complex=True, inplace=True)
def masked_fill(input, mask, value):
    """``value`` where ``mask`` is True, else ``input``; the dtype is that of ``input``."""
    if mask.dtype is not dt.bool_:
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {spoken(mask.dtype)}")
    if isinstance(value, Tensor) and value.shape:
        raise RuntimeError(f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {len(value.shape)} dimension(s).")
    if isinstance(value, Tensor) and narrows(value, input.dtype):
        number = value.item()
        check_fits(number, input.dtype)
        value = value if value._rg else number
    check_fits(value, input.dtype)
    if input.dtype.category == dt.INT:
        value = as_whole(value, input.dtype)
    r = _where(mask, value, input).contiguous()                  # in rows, as PyTorch's
    return r if r.dtype is input.dtype else r.to(input.dtype)


# -- casts ------------------------------------------------------------------------------------------------------------------------
_casts = {}


def cast(input, dtype):
    """``input`` converted to ``dtype``, lazily; gradients are converted back."""
    if input.dtype is dtype:
        return input
    if dtype.needs_fp64 and not input._storage.device.has_fp64:
        raise TypeError(f"{dtype.name} is not supported by {input._storage.device.name}; use {'complex64' if dtype.is_complex else 'float32'}, or a "
                        "device with fp64 (python -m clnn doctor lists them)")
    if input.dtype.is_complex and not dtype.is_complex and dtype is not dt.bool_:
        if first_time("casting"):
            warn("Casting complex values to real discards the imaginary part")
    dt.noticed(dtype)
    try:
        r = record_briefly(fuse.CAST, input.dtype, dtype, input, None, 0) if input.__class__ in plain and input._dense else None
        if r is None:
            r = record_in_layout(fuse.CAST, input.dtype, dtype, input.shape, input._numel, (input,))
    except NoStrides:
        return input.to(dtype)
    if input._rg and state.grad and dtype.differentiable:
        attach(_CAST_OP, r, (input,))
    return r


_cast_entry = elementwise("_cast", "input", "input", complex="input", method=False, inplace=False, vjp=dict(input=lambda g: g))
_CAST_OP = _cast_entry.op
_CAST_OP.grad_name = "ToCopyBackward0"
_clone_entry = elementwise("_clone", "input", "input", complex="input", method=False, inplace=False, vjp=dict(input=lambda g: g))
_clone_entry.op.grad_name = "CloneBackward0"


@composite("clone", complex=True)
def clone(input, *, memory_format=None):
    """A copy with its own memory (made when one side is written), part of the graph; in another order of dimensions with ``memory_format``."""
    return clone_in(input, None if memory_format is None or memory_format is preserve_format else formats.strides_of(memory_format, input.shape))


@kernel("_laid_out", complex=True, method=False, repeat="ready small")
def _laid_out(input, strides):
    return input._snapshot() if strides is None or strides == input._strides else formats.reordered(input, strides)


def clone_in(input, strides):
    """``clone`` with these dense strides; None: those of ``input``."""
    r = input.detach()
    if strides is not None and strides != input._strides or not (input._dense or r._is_permuted()):
        r = _laid_out(r, strides)
    else:
        r = r._snapshot()
    if input._rg and state.grad:
        attach(_clone_entry.op, r, (input,))
    return r
