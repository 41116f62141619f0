"""Helpers that programs take from ``torch._utils``: many tensors as one, devices by number, exceptions on their way between threads."""
from __future__ import annotations

import functools
import sys
import traceback

from ._tensor.device import device as _device
from ._tensor.tensor import Tensor
from .ops.joining import cat


def _flatten_dense_tensors(tensors):
    """All elements of several tensors as one vector.

    Example::

        >>> clnn._utils._flatten_dense_tensors([clnn.ones(1, 2), clnn.zeros(1)])
        tensor([1., 1., 0.])
    """
    return cat([t.reshape(-1) for t in tensors])


def _unflatten_dense_tensors(flat, tensors):
    """Parts of a vector, with the shapes of ``tensors``, as a tuple: undoes :func:`_flatten_dense_tensors`."""
    return tuple(part.reshape(t.shape) for part, t in zip(flat.split([t.numel() for t in tensors]), tensors))


def _take_tensors(tensors, size_limit):
    """Lists of tensors of one type, of at most ``size_limit`` bytes where they have several."""
    open_lists: dict = {}
    for t in tensors:
        held, size = open_lists.get(t.type(), ([], 0))
        if held and size + t.nbytes > size_limit:
            yield held
            held, size = [], 0
        open_lists[t.type()] = [*held, t], size + t.nbytes
    for held, _ in open_lists.values():
        if held:
            yield held


def _reorder_tensors_as(tensors, ordered_tensors):
    """``tensors``, which were sorted by type, with the types in the order of ``ordered_tensors``."""
    queues: dict = {}
    for t in tensors:
        queues.setdefault(t.type(), []).append(t)
    iters = {kind: iter(held) for kind, held in queues.items()}
    return tuple(next(iters[t.type()]) for t in ordered_tensors)


def _element_size(dtype):
    """Bytes per element."""
    return dtype.itemsize


def _get_device_index(device, optional=False, allow_cpu=False):
    """The number of a device given by number, name or object; -1 of a CPU."""
    if isinstance(device, int):
        return device
    if device is None and optional:
        return 0
    place = _device(device)
    if place.type == "cpu":
        if allow_cpu:
            return -1
        raise ValueError(f"Expected a non cpu device, but got: {device}")
    return place.index or 0


def _get_available_device_type():
    """The kind of accelerator there is, or None."""
    from . import cuda
    return "cuda" if cuda.is_available() else None


def _get_device_module(device_type):
    """The module of functions for a kind of device."""
    from ._misc import get_device_module
    return get_device_module(device_type)


def _get_all_device_indices():
    """The numbers of all GPUs; None where there is none."""
    from . import cuda
    return list(range(cuda.device_count())) if cuda.is_available() else None


def _import_dotted_name(name):
    """The object of a name with its modules."""
    first, *rest = name.split(".")
    return functools.reduce(getattr, rest, __import__(first))


def _rebuild_parameter(data, requires_grad, backward_hooks):
    """A parameter with these values."""
    from .nn.parameter import Parameter
    return Parameter(data, requires_grad)


def _rebuild_tensor(storage, storage_offset, size, stride):
    """A tensor over a typed storage."""
    return _rebuild_tensor_v2(storage, storage_offset, size, stride, False, None)


def _rebuild_tensor_v2(storage, storage_offset, size, stride, requires_grad, backward_hooks, metadata=None):
    """A tensor over a typed storage."""
    t = storage._flat().as_strided(tuple(size), tuple(stride), storage_offset).detach()
    return t.requires_grad_(requires_grad)


class ExceptionWrapper:
    """An exception with its traceback as text, to be raised elsewhere."""

    def __init__(self, exc_info=None, where="in background"):
        exc_info = exc_info or sys.exc_info()
        self.exc_type, self.where = exc_info[0], where
        self.exc_msg = "".join(traceback.format_exception(*exc_info))

    def reraise(self):
        """Raise an exception of the same type that tells where it came from."""
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        try:
            error = self.exc_type(message)
        except Exception:               # a type whose constructor takes other arguments
            raise RuntimeError(message) from None
        raise error


def not_none(obj):
    """``obj``, which must not be None."""
    if obj is None:
        raise TypeError("Invariant encountered: value was None when it should not be")
    return obj


def is_compiling() -> bool:
    """Whether :func:`clnn.compile` is recording."""
    from .compiler import is_compiling as asked
    return asked()


def _type(self, dtype=None, non_blocking=False, **kwargs):
    """``self.type(dtype)``."""
    return Tensor.type(self, dtype, non_blocking)
