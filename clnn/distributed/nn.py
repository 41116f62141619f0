"""Exchange with gradients, as ``torch.distributed.nn.functional``, for a group of one process."""
from __future__ import annotations

import sys

from . import ReduceOp, _initialized

__all__ = ["all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce", "reduce_scatter", "scatter"]
__path__ = []


def all_reduce(tensor, op=ReduceOp.SUM, group=None):
    """The sum over one process: a copy."""
    _initialized()
    return tensor.clone()


def broadcast(tensor, src=0, group=None):
    """A copy."""
    return all_reduce(tensor)


def reduce(tensor, dst=0, op=ReduceOp.SUM, group=None):
    """The sum over one process: a copy."""
    return all_reduce(tensor)


def all_gather(tensor, group=None):
    """A tuple of a copy."""
    return (all_reduce(tensor),)


def gather(tensor, dst=0, group=None):
    """A tuple of a copy."""
    return (all_reduce(tensor),)


def scatter(tensors, src=0, group=None):
    """A copy of the first tensor."""
    return all_reduce(tensors[0])


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None):
    """A copy of the first tensor."""
    return all_reduce(input_list[0])


def all_to_all(output_tensor_list, input_tensor_list, group=None):
    """A tuple of a copy of the first tensor."""
    return (all_reduce(input_tensor_list[0]),)


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None):      # noqa: A002
    """A copy of ``input``."""
    return all_reduce(input)


functional = sys.modules[__name__]
