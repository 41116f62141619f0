"""How many bytes a launch has to move at least and how many operations an operator computes. Estimates, from shapes alone."""
from __future__ import annotations

from math import prod

from .._tensor.tensor import Tensor


def of_buffers(args) -> int:
    """Bytes of all buffers among a kernel's arguments, each counted once."""
    total, seen = 0, set()
    for a in args:
        if a is None or a.__class__ in (int, float, bytes):
            continue
        size = getattr(a, "size", 0)
        if id(a) not in seen and isinstance(size, int):
            seen.add(id(a))
            total += size
    return total


def of_walk(shape, numel, itemsize, strides) -> int:
    """Bytes of an operand of a fused kernel: dimensions that it repeats count once."""
    if strides is None:
        return numel * itemsize
    if not strides:
        return itemsize
    return itemsize * prod([n for n, s in zip(shape, strides) if s != 0])


def of_fused(group, shape, numel, targets) -> int:
    """Bytes read and written by a fused elementwise kernel."""
    total = sum(of_walk(shape, numel, leaf[1].itemsize, leaf[3]) for leaf in group.leaves)
    return total + sum(numel * t[1].itemsize for t in targets)


def of_call(op, values, result) -> int:
    """Bytes of the tensors that an operator takes and gives; of tables that are looked up, only what is looked up."""
    outputs = sum(t.nbytes for t in _tensors(result))
    if op.name in _LOOKUPS:
        return 2 * outputs + sum(t.nbytes for t in _tensors(values) if not t.dtype.is_floating_point)
    return outputs + sum(t.nbytes for t in _tensors(values))


_LOOKUPS = {"_index_rows", "_gather", "_index"}


def _tensors(values):
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, (tuple, list)):
        for v in values:
            yield from _tensors(v)


def multiply_adds(op, values, result) -> int | None:
    """Multiply-adds of an operator whose count is known (products and convolutions), else None."""
    count = COUNTS.get(op.name)
    if count is None:
        return None
    try:
        return count(dict(zip(op.params, values)), result)
    except (AttributeError, IndexError, TypeError):
        return None


def _product(a, out):
    return out._numel * a["input"].shape[-1]


def _convolution(a, out):
    return out._numel * prod(a["weight"].shape[1:])


def _conv_input_grad(a, out):
    return a["input"]._numel * prod(a["weight"].shape[1:])


def _conv_weight_grad(a, out):
    return a["grad"]._numel * prod(a["shape"][1:])


def _attention(a, out):
    return (a["query"]._numel + out[0]._numel) * a["key"].shape[-2]


def _attention_backward(a, out):
    return (3 * a["query"]._numel + 2 * a["grad"]._numel) * a["key"].shape[-2]      # scores, dQ, dK; weights' gradient, dV


COUNTS = {"mm": _product, "_mv": _product, "_bmm": _product, "_linear2d": _product, "convolution": _convolution, "conv_input_grad": _conv_input_grad,
           "conv_weight_grad": _conv_weight_grad, "_attention": _attention, "_attention_backward": _attention_backward}
