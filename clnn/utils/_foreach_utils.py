"""Lists of tensors for functions of many at once (``clnn._foreach_add`` and its like): sorted by device and dtype."""
from __future__ import annotations

from .._tensor.tensor import Tensor

__all__ = []

_foreach_supported_types = [Tensor]


def _group_tensors_by_device_and_dtype(tensorlistlist, with_indices=False):
    """The columns of equally long lists by the device and dtype of what is in the first list.

    Args:
        tensorlistlist: lists of tensors; all but the first may hold None.
        with_indices: give the places of the columns, too.

    Returns:
        ``{(device, dtype): (lists, places)}``.

    Example::

        >>> both = [clnn.ones(1), clnn.ones(1, dtype=clnn.int32)]
        >>> [places for _, places in clnn.utils._foreach_utils._group_tensors_by_device_and_dtype([both], True).values()]
        [[0], [1]]
    """
    found: dict = {}
    for i, column in enumerate(zip(*tensorlistlist)):
        lists, places = found.setdefault((column[0].device, column[0].dtype), ([[] for _ in tensorlistlist], []))
        for held, t in zip(lists, column):
            held.append(t)
        if with_indices:
            places.append(i)
    return found


def _get_foreach_kernels_supported_devices():
    """Kinds of devices that serve functions of many tensors: all."""
    return ["cpu", "cuda", "gpu"]


def _get_fused_kernels_supported_devices():
    """Kinds of devices that serve fused optimizers: all, as updates fuse by themselves."""
    return ["cpu", "cuda", "gpu"]


def _device_has_foreach_support(device) -> bool:
    """True."""
    return True


def _has_foreach_support(tensors, device) -> bool:
    """True."""
    return True
