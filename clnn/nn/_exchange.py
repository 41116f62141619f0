"""Tensors sent to several devices and added up or joined again: ``torch.cuda.comm`` and the autograd functions of ``torch.nn.parallel._functions``.

Moving a tensor and adding tensors have gradients already, so these are plain functions; ``apply`` calls them as programs written for PyTorch do.
"""
from __future__ import annotations

import clnn

from .parallel import _places

__all__ = ["broadcast", "broadcast_coalesced", "gather", "reduce_add", "reduce_add_coalesced", "scatter"]


def broadcast(tensor, devices=None, *, out=None):
    """``tensor`` on each of the devices, as a tuple."""
    if out is not None:
        return tuple(o.copy_(tensor) for o in out)
    return tuple(tensor.to(d) for d in _places(devices))


def broadcast_coalesced(tensors, devices, buffer_size=10485760):
    """:func:`broadcast` of several tensors: a list of them for each device."""
    return [tuple(t.to(d) for t in tensors) for d in _places(devices)]


def reduce_add(inputs, destination=None):
    """The sum of tensors from several devices, on ``destination`` or the first one's device.

    Example:
        >>> nn._exchange.reduce_add([clnn.ones(2), clnn.ones(2)])
        tensor([2., 2.])
    """
    place = inputs[0].device if destination is None else _places([destination])[0]
    total = inputs[0].to(place)
    for t in inputs[1:]:
        if t.shape != total.shape:
            raise ValueError(f"input 1 has invalid size: got {'x'.join(map(str, t.shape))}, but expected {'x'.join(map(str, total.shape))}")
        total = total + t.to(place)
    return total


def reduce_add_coalesced(inputs, destination=None, buffer_size=10485760):
    """:func:`reduce_add` of a list of tensors from each device: the tuple of sums."""
    return tuple(reduce_add(list(column), destination) for column in zip(*inputs))


def scatter(tensor, devices=None, chunk_sizes=None, dim=0, streams=None, *, out=None):
    """Parts of ``tensor`` along ``dim``, one for each device."""
    if out is not None:
        return tuple(o.copy_(part) for o, part in zip(out, tensor.split([o.shape[dim] for o in out], dim)))
    parts = tensor.chunk(len(devices), dim) if chunk_sizes is None else tensor.split(list(chunk_sizes), dim)
    return tuple(part.to(d) for part, d in zip(parts, _places(devices)))


def gather(tensors, dim=0, destination=None, *, out=None):
    """Tensors from several devices joined along ``dim``."""
    place = tensors[0].device if destination is None else _places([destination])[0]
    joined = clnn.cat([t.to(place) for t in tensors], dim)
    return joined if out is None else out.copy_(joined)


class Broadcast:
    """Tensors on each of the devices, one device after the other; gradients are added up."""

    @staticmethod
    def apply(target_gpus, *inputs):
        return tuple(t for tensors in broadcast_coalesced(inputs, target_gpus) for t in tensors)


class ReduceAddCoalesced:
    """Sums over devices of ``num_inputs`` tensors each, which come one device after the other."""

    @staticmethod
    def apply(destination, num_inputs, *grads):
        return reduce_add_coalesced([grads[i:i + num_inputs] for i in range(0, len(grads), num_inputs)], destination)


class Gather:
    """Tensors joined on one device."""

    @staticmethod
    def apply(target_device, dim, *inputs):
        return gather([t if t.ndim else t.reshape(1) for t in inputs], dim if inputs[0].ndim else 0, target_device)


class Scatter:
    """A tensor in parts."""

    @staticmethod
    def apply(target_gpus, chunk_sizes, dim, input):        # noqa: A002
        return scatter(input, target_gpus, chunk_sizes, dim)
