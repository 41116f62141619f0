"""What factories have in common: sizes by name, ``out=``, words of refusals, and calls that are remembered."""
from __future__ import annotations

import functools
import sys
from inspect import signature

from .._tensor.inplace import set_out
from .._tensor.tensor import Tensor
from .._tensor.worded import looked, refuse
from ..core import dtype as dt
from ..core import native
from ..core.layout import strided
from ..core.shape import flag
from ..core.warn import warn


def _done(t, requires_grad):
    if requires_grad:
        if requires_grad is not True:
            flag(sys._getframe(1).f_code.co_name, "requires_grad", requires_grad)
        if not t.dtype.differentiable:
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        t.requires_grad = True
    return t


def factory(fn, again=None):
    """``fn``, taking its ``*size`` by name too, and ``out=``, whose dtype and device it then has; ``again``: what remembers its calls (:func:`native.remembered`)."""
    by_size = any(p.kind is p.VAR_POSITIONAL for p in signature(fn).parameters.values())
    look = looked(fn.__name__)

    @functools.wraps(fn)
    def call(*args, **kwargs):
        out = sized = None
        try:
            if again is not None and (made := again(args, kwargs)) is not None:
                return made
            if look is not None:
                look(args, kwargs)
            if not kwargs:
                return fn(*args) if again is None else remember(again, args, kwargs, fn(*args))
            sized = by_size and "size" in kwargs
            if sized:
                args = (*args, kwargs.pop("size"))
            out, layout = kwargs.pop("out", None), kwargs.get("layout")
            if layout is not None and layout.__class__ is not strided.__class__:
                raise TypeError(f"{fn.__name__}(): argument 'layout' must be torch.layout, not {type(layout).__name__}")
            if layout is not None and layout is not strided and fn.__name__ in ("zeros", "empty"):
                from .creation import zeros
                return zeros(*args, **{**kwargs, "layout": None}).to_sparse(layout=layout)
            if out is not None:
                return _into(out, fn, args, kwargs, by_size)
            return fn(*args, **kwargs) if again is None or sized else remember(again, args, kwargs, fn(*args, **kwargs))
        except TypeError:
            if sized:
                args, kwargs["size"] = args[:-1], args[-1]
            refuse(fn.__name__, args, kwargs if out is None else {**kwargs, "out": out})
            raise
    return call if again is None else native.front(call, made=again)


def remember(again, args, kwargs, made):
    """``made``, which the next such call gets another of."""
    again.keep(args, kwargs, made)
    return made


def constant(fn, shares=False):
    """A factory whose results follow from its arguments alone (decorator)."""
    return factory(fn, native.remembered(shares))


def _into(out, fn, args, kwargs, by_size):
    """What a factory makes, written into a tensor, whose dtype and device it has."""
    if not isinstance(out, Tensor):
        raise TypeError(f"{fn.__name__}(): argument 'out' must be Tensor, not {type(out).__name__}")
    row = dt.as_dtype(kwargs.get("dtype"))
    if row is not None and row is not out.dtype:
        raise RuntimeError(f"dtype {dt.SPOKEN[row.name]} does not match dtype of out parameter ({dt.SPOKEN[out.dtype.name]})")
    wanted = kwargs.pop("requires_grad", False)
    made = fn(*args, **{"device": out.device, **kwargs, "dtype": out.dtype})
    if not by_size and len(made.shape) == 1 and made._numel == out._numel:
        made = made.reshape(out.shape)                          # as many numbers fill a tensor of any shape
    if fn.__name__ == "arange" and out._numel not in (0, made._numel):
        warn(f"The number of elements in the out tensor of shape {list(out.shape)} is {out._numel} which does not match the computed number of elements "
             f"{made._numel}. Note that this may occur as a result of rounding error. The out tensor will be resized to a tensor of shape ({made._numel},).")
    return _done(set_out(out, made, quiet=True), wanted)
