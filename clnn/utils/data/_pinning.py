"""PyTorch's ``pin_memory`` of a batch: whatever in it knows how to be copied to page-locked memory is asked to be."""

import collections.abc

from clnn.utils.data.collate import _rebuild


def pin_memory(data, device=None):
    """The batch with ``pin_memory()`` called on everything that has such a method; tensors give themselves back, transfers need no such copy here."""
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, collections.abc.Mapping):
        return _rebuild(data, {k: pin_memory(v, device) for k, v in data.items()}, dict)
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pin_memory(v, device) for v in data))
    if isinstance(data, tuple):
        return type(data)(pin_memory(v, device) for v in data)
    if isinstance(data, collections.abc.Sequence) and not isinstance(data, (str, bytes)):
        return _rebuild(data, [pin_memory(v, device) for v in data], list)
    return data
