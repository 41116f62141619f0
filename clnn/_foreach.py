"""``_foreach_add(tensors, ...)`` and the like: one operator for each tensor of a list. Optimizers written for PyTorch call these by name."""
from __future__ import annotations

from ._tensor.tensor import Tensor
from .graph.op import REGISTRY
from .ops.norms import vector_norm

_ONE = set("abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round rsqrt sigmoid sign sin sinh sqrt "
           "tan tanh trunc clone".split())
_TWO = set("add sub mul div pow maximum minimum clamp_min clamp_max lerp addcmul addcdiv".split())
_NUMBERS = {"maximum": "clamp_min", "minimum": "clamp_max"}         # what the other operand is called when it is a number


def _each(count, values):
    """The operands of each call: a list gives one per tensor, anything else is shared."""
    if not count:
        raise RuntimeError("Tensor list must have at least one tensor.")
    rows = []
    for v in values:
        if isinstance(v, (list, tuple)):
            if len(v) != count:
                if not v or not isinstance(v[0], Tensor):
                    raise RuntimeError("Tensor list must have same number of elements as scalar list.")
                raise RuntimeError(f"Tensor lists must have the same number of tensors, got {count} and {len(v)}")
            rows.append(v)
        else:
            rows.append([v] * count)
    return list(zip(*rows)) if rows else [()] * count


def _call(op, end, tensor, args, kwargs):
    if op in _NUMBERS and not isinstance(args[0], Tensor):
        op = _NUMBERS[op]
    if not isinstance(tensor, Tensor):
        return REGISTRY[op].fn(tensor, *args, **kwargs)
    if end and not hasattr(tensor, op + end):                      # an extreme has no form in place of its own
        return tensor.copy_(getattr(tensor, op)(*args, **kwargs))
    return getattr(tensor, op + end)(*args, **kwargs)


def _make(name, op, end):
    def foreach(self, *args, **kwargs):
        tensors = self
        if op in ("addcmul", "addcdiv"):                            # the factor may come by position, and as a tensor with one number for each
            value = args[2] if len(args) > 2 else kwargs.pop("value", kwargs.pop("scalars", 1))
            value = value.tolist() if isinstance(value, Tensor) and value.dim() else value
            rows = _each(len(tensors), (*args[:2], value))
            results = [_call(op, end, t, row[:2], dict(value=row[2])) for t, row in zip(tensors, rows)]
        else:
            args += tuple(kwargs.pop(k) for k in ("other", "exponent", "scalars", "scalar", "tensors1", "weight") if k in kwargs)
            if not isinstance(tensors, (list, tuple)):              # a number to the power of each
                tensors, args = [tensors] * len(args[0]), args
            results = [_call(op, end, t, row, kwargs) for t, row in zip(tensors, _each(len(tensors), args))]
        return results if end else tuple(results)
    return foreach


def _norm(self, ord=2, dtype=None):                                  # noqa: A002
    return tuple(vector_norm(t, ord, dtype=dtype) for t in self)


def _max(self):
    return tuple(t.max() for t in self)


def _copy_(self, src, non_blocking=False):
    return [t.copy_(s) for t, s in _each(len(self), (self, src))]


def _zero_(self):
    return [t.zero_() for t in self]


_OTHER = {"norm": _norm, "max": _max, "copy_": _copy_, "zero_": _zero_}


def find(name):
    """The function ``_foreach_<operator>``, with a final underscore for the form in place; None when there is none."""
    op = name.removeprefix("_foreach_")
    if op in _OTHER:
        made = _OTHER[op]
    elif op.removesuffix("_") in _ONE | _TWO:
        made = _make(name, op.removesuffix("_"), "_" if op.endswith("_") else "")
    else:
        return None
    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"``{op}`` of each tensor of a list."
    return made
