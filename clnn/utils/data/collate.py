"""Making a batch out of samples."""

import collections.abc
import copy
import re

import numpy as np

from clnn._tensor.tensor import Tensor
from clnn.utils.data.dataset import TensorBatch

np_str_obj_array_pattern = re.compile("[SaUO]")     # kinds of NumPy arrays that tensors cannot hold


class HostArray:
    """A tensor's contents as a NumPy array: how a worker process sends it, so that it need not open a device."""

    __slots__ = ("array",)

    def __init__(self, array):
        self.array = array

    def __getstate__(self):
        return self.array

    def __setstate__(self, array):
        self.array = array


def array_to_tensor(array):
    """A NumPy array, copied into a tensor on the default device."""
    from ..._tensor.device import resolve
    from ..._tensor.interop import from_array
    return from_array(array, resolve(None)) if array.dtype.kind != "O" else _no_tensor(array)


def _no_tensor(array):
    raise TypeError(default_collate_err_msg_format.format(array.dtype))


def _is_array(x):
    return isinstance(x, (np.ndarray, np.generic))


def _rebuild(like, values, kind):
    """A container of `like`'s type holding `values`; falls back to `kind` for types that cannot be built from them."""
    try:
        if isinstance(like, collections.abc.MutableMapping) and type(like) is not dict:
            made = copy.copy(like)                  # it may have more than its entries, as a defaultdict has its factory
            made.update(values)
            return made
        return type(like)(values)
    except TypeError:
        return kind(values)


def _is_namedtuple(x):
    return isinstance(x, tuple) and hasattr(x, "_fields")


def default_convert(data):
    """Turn NumPy arrays and scalars inside nested containers into tensors, and leave everything else.

    Example::

        >>> import numpy as np
        >>> clnn.utils.data.default_convert([np.array([0, 1]), "text"])
        [tensor([0, 1]), 'text']
    """
    if isinstance(data, Tensor):
        return data
    if _is_array(data):
        return data if data.dtype.kind in "USO" else array_to_tensor(np.asarray(data))
    if isinstance(data, collections.abc.Mapping):
        return _rebuild(data, {k: default_convert(v) for k, v in data.items()}, dict)
    if _is_namedtuple(data):
        return type(data)(*(default_convert(v) for v in data))
    if isinstance(data, collections.abc.Sequence) and not isinstance(data, (str, bytes)):
        items = [default_convert(v) for v in data]
        return items if isinstance(data, tuple) else _rebuild(data, items, list)  # tuples become lists, as in PyTorch
    return data


def default_collate(batch):
    """Stack a list of samples into a batch; the containers inside the samples are kept.

    Tensors `(*)` become one tensor `(N, *)`; NumPy arrays and numbers become tensors (a Python float becomes float64, as in
    PyTorch); strings and bytes stay as they are; dicts, lists, tuples and named tuples are collated entry by entry.

    Raises:
        TypeError: a sample holds something else; give the `DataLoader` a `collate_fn`.
        RuntimeError: samples differ in length or shape.

    Example::

        >>> clnn.utils.data.default_collate([(1, "a"), (2, "b")])
        [tensor([1, 2]), ('a', 'b')]
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def _values(t):
    """The values of a tensor, or of what stands for one, as an array of their own."""
    from ..._tensor.interop import read
    return read(t) if t.__class__ is Tensor and not t._rg else t.numpy()


def host_collate(batch):
    """`default_collate` that leaves `HostArray`s in place of tensors: it touches no device."""
    return _collate(batch, lambda tensors: HostArray(_stack_arrays([_values(t) for t in tensors])), HostArray, _Rules(default_collate_fn_map))


default_collate.takes_rows = host_collate.takes_rows = True      # gathered ones, that are no list yet


def collate(batch, *, collate_fn_map=None):
    """`default_collate` with rules for further types.

    Args:
        batch: the samples.
        collate_fn_map: a dict from types (or tuples of them) to functions ``(batch, *, collate_fn_map)``; what it does not name is treated as ever.
            Rules that are put into ``default_collate_fn_map`` serve every `DataLoader`.

    Example::

        >>> from clnn.utils.data.collate import collate
        >>> collate([1 + 1j, 2 + 2j], collate_fn_map={complex: lambda batch, *, collate_fn_map: sum(batch)})
        (3+3j)
    """
    return _collate(batch, _stack_on_device, array_to_tensor, _Rules(collate_fn_map or {}))


def _plain_rule(batch, *, collate_fn_map=None):
    """The treatment of a type that needs no rule: tensors are stacked, numbers become tensors, texts stay."""
    return _collate(batch, _stack_on_device, array_to_tensor, _Rules({}))


collate_tensor_fn = collate_numpy_array_fn = collate_numpy_scalar_fn = collate_float_fn = collate_int_fn = collate_str_fn = _plain_rule
default_collate_err_msg_format = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
default_collate_fn_map = {Tensor: _plain_rule, np.ndarray: _plain_rule, (np.bool_, np.number, np.object_): _plain_rule, float: _plain_rule,
                          int: _plain_rule, str: _plain_rule, bytes: _plain_rule}


class _Rules:
    """The rules of a map that are not those for types known here."""

    def __init__(self, table):
        self.table = table
        self.own = {kind: fn for kind, fn in table.items() if fn is not _plain_rule}

    def find(self, sample):
        if self.own:
            if (fn := self.own.get(type(sample))) is not None:
                return fn
            return next((fn for kind, fn in self.own.items() if isinstance(sample, kind)), None)


def _stack_on_device(tensors):
    import clnn
    return clnn.stack(tensors, 0)


def _stack_arrays(arrays):
    first = arrays[0]
    for a in arrays:
        if a.shape != first.shape:
            at = next(i for i, other in enumerate(arrays) if other.shape != first.shape)
            raise RuntimeError(f"stack expects each tensor to be equal size, but got {list(first.shape)} at entry 0 and {list(a.shape)} at entry {at}")
    return np.stack(arrays)


def _numbers(batch):
    """The array of a batch whose first sample is a number: floats are doubles, integers among which is a float are single, as in PyTorch."""
    single = not isinstance(batch[0], float)
    for x in batch:
        if not isinstance(x, (int, float, np.generic)):
            name = type(x).__name__
            raise (TypeError(f"new(): invalid data type '{name}'") if single and isinstance(x, str) else
                   RuntimeError(f"Could not infer dtype of {name}") if single else TypeError(f"must be real number, not {name}"))
    if not single:
        return np.array(batch, dtype=np.float64)
    if any(isinstance(x, (float, np.floating)) for x in batch):
        from clnn import get_default_dtype
        return np.array(batch, dtype=np.float64 if any(isinstance(x, np.float64) for x in batch) else get_default_dtype().np)
    return np.array(batch, dtype=np.bool_ if all(isinstance(x, (bool, np.bool_)) for x in batch) else np.int64)


def _collate(batch, stack, make, rules):
    if isinstance(batch, TensorBatch):
        return [t if stack is _stack_on_device else HostArray(_values(t)) for t in batch.tensors]
    first = batch[0]
    if (rule := rules.find(first)) is not None:
        return rule(batch, collate_fn_map=rules.table)
    if isinstance(first, Tensor):
        return stack(list(batch))
    if _is_array(first):
        if first.dtype.kind in "USO":
            raise TypeError(default_collate_err_msg_format.format(first.dtype))
        return make(_stack_arrays([np.asarray(x) for x in batch]))
    if isinstance(first, (float, int)):
        return make(_numbers(batch))
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, collections.abc.Mapping):
        return _rebuild(first, {k: _collate([d[k] for d in batch], stack, make, rules) for k in first}, dict)
    if _is_namedtuple(first):
        return type(first)(*(_collate(column, stack, make, rules) for column in zip(*batch)))
    if isinstance(first, collections.abc.Sequence):
        return _collate_sequences(batch, first, stack, make, rules)
    raise TypeError(default_collate_err_msg_format.format(type(first)))


def _collate_sequences(batch, first, stack, make, rules):
    for sample in batch:
        if len(sample) != len(first):
            raise RuntimeError("each element in list of batch should be of equal size")
    columns = [_collate(column, stack, make, rules) for column in zip(*batch)]
    return columns if isinstance(first, tuple) else _rebuild(first, columns, list)


def _map_leaves(data, test, change):
    """Copy nested containers, applying `change` to the leaves that pass `test`."""
    if test(data):
        return change(data)
    if isinstance(data, collections.abc.Mapping):
        return _rebuild(data, {k: _map_leaves(v, test, change) for k, v in data.items()}, dict)
    if _is_namedtuple(data):
        return type(data)(*(_map_leaves(v, test, change) for v in data))
    if isinstance(data, (list, tuple)):
        return _rebuild(data, [_map_leaves(v, test, change) for v in data], list)
    return data


def to_wire(data):
    """Replace tensors by `HostArray`s, for the way from a worker process."""
    if isinstance(data, TensorBatch):
        data = list(data)
    return _map_leaves(data, lambda x: isinstance(x, Tensor), lambda t: HostArray(_values(t.detach())))


def from_wire(data):
    """Undo `to_wire` in the receiving process."""
    return _map_leaves(data, lambda x: isinstance(x, HostArray), lambda h: array_to_tensor(h.array))
