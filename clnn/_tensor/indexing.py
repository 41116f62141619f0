"""``x[index]`` and ``x[index] = value``: what each part of an index means, then a view (ints, slices, None, ...) or a gather (tensors, masks)."""
from __future__ import annotations

import math
import operator

import numpy as np

from ..core import dtype as dt
from ..core import native, symbols
from ..core.limits import check_written
from ..core.shape import Size, contiguous_strides, is_contiguous
from ..core.warn import warn
from ..graph.node import Storage
from ..graph.op import REGISTRY
from ..runtime import capture
from . import foreign, later, wrapped
from .declare import view
from .dispatch import plain
from .device import public
from .grad_mode import state
from .inplace import apply_inplace, put, refuse_overlap
from .listed import whole_numbers
from .tensor import Tensor, view_of


# -- basic indexing is a view ---------------------------------------------------------------------------------------------------------
def region(spec, shape, strides, offset):
    """(shape, strides, offset) of a basic index. Per entry of ``spec``: an int takes one element of the next dimension, a tuple
    ``(start, step, length)`` some of them, None makes a dimension of size 1. Dimensions that ``spec`` does not reach stay."""
    sizes, steps, d = [], [], 0
    for s in spec:
        if s is None:
            sizes.append(1)
            steps.append(sizes[-1] if d >= len(strides) else strides[d] * shape[d])
        elif s.__class__ is tuple:
            start, step, length = s
            offset += start * strides[d]
            sizes.append(length)
            steps.append(strides[d] * step)
            d += 1
        else:
            offset += s * strides[d]
            d += 1
    if d < len(strides):
        sizes += shape[d:]
        steps += strides[d:]
    return tuple(sizes), tuple(steps), offset


def _grad(g, spec, shape):
    if g._numel == math.prod(shape):            # nothing was left out
        return g.reshape(shape)
    return REGISTRY["embed_strided"].fn(g, shape, *region(spec, shape, contiguous_strides(shape), 0))


@view("_basic_index", steady=True, method=False, vjp=dict(input=_grad))
def basic_index(input, spec, shape):
    """A view made of ints, slices and new dimensions; ``shape`` is that of ``input``."""
    return region(spec, shape, input._strides, input._offset)


basic_index.op.grad_name = "SliceBackward0"


def _take(x, spec, shape):
    """The view that ``spec`` means. Its history bears the name of the last step that PyTorch would take for it, one per entry."""
    view = basic_index(x, spec, shape)
    node = view._grad_fn
    if node is not None:
        node.label, d = "AliasBackward0", 0
        for s in spec:
            if s is None:
                node.label = "UnsqueezeBackward0"
                continue
            if s.__class__ is not tuple:
                node.label = "SelectBackward0"
            elif s[0] or s[1] != 1 or s[2] != shape[d]:
                node.label = "SliceBackward0"
            d += 1
    return view


def take_int(i, size, dim):
    """A checked non-negative position."""
    if not -size <= i < size:
        if not -1 << 63 <= i < 1 << 63:
            raise ValueError("Overflow when unpacking long long")
        raise IndexError(f"index {i} is out of bounds for dimension {dim} with size {size}")
    return i + size if i < 0 else i


def take_slice(s, size):
    """(start, step, length) of a slice of a dimension."""
    step = 1 if s.step is None else operator.index(s.step)
    if step <= 0:
        raise ValueError("step must be greater than zero" if step else "slice step cannot be zero")
    if s.start is None and s.stop is None and s.step is None:
        return 0, 1, size
    if any(map(symbols.is_number, (s.start, s.stop, size))):
        start, stop = _bound(s.start, 0, size), _bound(s.stop, size, size)
        return start, step, 0 if stop <= start else -(-(stop - start) // step)
    start, stop, step = s.indices(size)
    return start, step, max(0, -(-(stop - start) // step))


def _bound(i, missing, size):
    """Where a slice of ``size`` elements begins or ends, of numbers that may be traced."""
    if i is None:
        return missing
    i = i + size if i < 0 else i
    return 0 if i < 0 else size if i > size else i


# -- understanding an index -----------------------------------------------------------------------------------------------------------
_NO_INDICES = (dt.int8, dt.int16, *dt.UNSIGNED)


def _as_item(item, x):
    """An index part in canonical form: int, slice, None, Ellipsis or a Tensor on the device of ``x``."""
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    if isinstance(item, Tensor):
        if item._storage.device is not x._storage.device:
            item = item.to(public(x._storage.device))
        if item.dtype.differentiable or item.dtype in _NO_INDICES:
            if not item.shape and item.dtype.category == dt.INT:
                return item.item()
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        if item.dtype is dt.uint8:
            warn("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.")
            return item != 0
        return item
    if isinstance(item, (bool, np.bool_)):
        return REGISTRY["_host_index"].fn(np.asarray(bool(item)), x)
    if isinstance(item, (int, np.integer)) or isinstance(item, np.ndarray) and not item.shape and item.dtype.kind in "iu":
        return int(item)
    if isinstance(item, (list, tuple, range, np.ndarray)):
        return _from_host(item, x)
    if isinstance(item, (str, bytes)):                          # sequences that hold no indices
        raise TypeError(f"new(): invalid data type '{type(item).__name__}'")
    try:
        return operator.index(item)
    except TypeError:
        raise IndexError("only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
                         f"(got {type(item).__name__})") from None


def _from_host(item, x):
    if not isinstance(item, np.ndarray) and any(isinstance(v, Tensor) for v in item):
        item = [v.tolist() if isinstance(v, Tensor) else v for v in item]
    array = np.asarray(item)
    if array.size == 0 and not isinstance(item, np.ndarray):
        array = array.astype(np.int64)
    if array.dtype.kind not in "iub" or array.dtype.kind == "u" and array.dtype != np.uint8:
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    return REGISTRY["_host_index"].fn(array != 0 if array.dtype == np.uint8 else array, x)


def _consumed(item):
    if item is None or item is Ellipsis:
        return 0
    return len(item.shape) if isinstance(item, Tensor) and item.dtype is dt.bool_ else 1


def _expand_ellipsis(items, x):
    rank, used = len(x.shape), sum(map(_consumed, items))
    if used > rank:
        if rank == 0 and len(items) == 1 and isinstance(items[0], slice):
            raise IndexError("slice() cannot be applied to a 0-dim tensor.")
        if rank == 0 and len(items) == 1 and not isinstance(items[0], Tensor):
            raise IndexError("invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
                             "0-dim tensor to a number")
        raise IndexError(f"too many indices for tensor of dimension {rank}")
    at = [i for i, item in enumerate(items) if item is Ellipsis]
    for k in reversed(at[1:]):
        items[k:k + 1] = []                                     # further ellipses stand for nothing
    if at:
        items[at[0]:at[0] + 1] = [slice(None)] * (rank - used)
    return items


def _parts(index):
    """The entries of an index. A short list that holds more than numbers is taken for a tuple, as in PyTorch (and in NumPy before 1.23)."""
    if index.__class__ is tuple:
        return index
    if isinstance(index, list) and len(index) < 32 and any(i is None or i is Ellipsis or isinstance(i, _PARTS) for i in index):
        if not all(isinstance(i, Tensor) for i in index):
            warn("Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in pytorch 2.9; use x[tuple(seq)] instead of "
                 "x[seq]. In pytorch 2.9 this will be interpreted as tensor index, x[torch.tensor(seq)], which will result either in an error or a "
                 "different result")
        return tuple(index)
    return (index,)


_PARTS = (Tensor, list, tuple, slice, np.ndarray)


def _selects(t):
    """Whether an index selects as an int does: its number is read, and ``x[t]`` is a view. Graphs and batches of samples go without the number."""
    return (not t.shape and t.dtype is not dt.bool_ and isinstance(t._storage, Storage) and t._storage.device.kind != "meta"
            and capture.own() is None and not wrapped.local.modes)


def parse(x, index, view=True):
    """(view after the basic parts, one Tensor or None per dimension of it). Without ``view``, no numbers are read that a gather takes as well."""
    items = [_as_item(i, x) for i in _parts(index)]
    tensors = [i for i in items if isinstance(i, Tensor)]
    mixed = len(tensors) > 1 or tensors and any(isinstance(i, int) for i in items)      # it must not move the dimensions that other tensors make
    items = [int(i) if isinstance(i, Tensor) and (mixed and not i.shape and i.dtype is not dt.bool_ or view and x.shape and _selects(i)) else i
             for i in items]
    spec, found, d = [], {}, 0
    for item in _expand_ellipsis(items, x):
        if item is None:
            spec.append(None)
        elif isinstance(item, Tensor):
            out = sum(1 for s in spec if s is None or s.__class__ is tuple)
            if item.dtype is dt.bool_ and not item.shape:
                spec.append(None)
                found[out] = item.reshape(1)
                continue
            n = _consumed(item)
            if item.dtype is dt.bool_ and tuple(item.shape) != tuple(x.shape[d:d + n]):
                at = next(k for k in range(n) if item.shape[k] != x.shape[d + k])
                raise IndexError(f"The shape of the mask {list(item.shape)} at index {at} does not match the shape of the indexed tensor "
                                 f"{list(x.shape)} at index {d + at}")
            found[out] = item
            spec += [(0, 1, x.shape[d + k]) for k in range(n)]
            d += n
        elif isinstance(item, slice):
            spec.append(take_slice(item, x.shape[d]))
            d += 1
        else:
            spec.append(take_int(item, x.shape[d], d))
            d += 1
    whole = all(s.__class__ is tuple and s[0] == 0 and s[1] == 1 and s[2] == x.shape[k] for k, s in enumerate(spec))
    base = x if found and whole else _take(x, tuple(spec), x.shape)
    return base, _per_dimension(base, found)


def _per_dimension(base, found):
    """Index tensors by dimension; a mask over several dimensions stands at its first."""
    if not found:
        return None
    indices = [None] * len(base.shape)
    for d, t in found.items():
        indices[d] = t
    return indices


def _plain(index, shape):
    """The entries for :func:`region` of a tuple of ints, slices, None and an Ellipsis that fits ``shape``; None where it is anything else."""
    sizes, spec, d = tuple(shape), [], 0
    for item in index:
        kind = item.__class__
        if item is None:
            spec.append(None)
            continue
        if item is Ellipsis:
            rest = len(sizes) + 1 - sum([i is not None for i in index])
            if sum([i is Ellipsis for i in index]) > 1 or rest < 0:
                return None
            spec += [(0, 1, n) for n in sizes[d:d + rest]]
            d += rest
            continue
        if d == len(sizes):
            return None
        if kind is int:
            if not -sizes[d] <= item < sizes[d] and sum([i is not None and i is not Ellipsis for i in index]) > len(sizes):
                return None                                     # there are too many of them, which is said first
            spec.append(take_int(item, sizes[d], d))
        elif kind is slice:
            spec.append(take_slice(item, sizes[d]))
        else:
            return None
        d += 1
    return tuple(spec)


def _basic(x, index):
    """The view that an int or a tuple of ints, slices, None and an Ellipsis means; None where the index needs :func:`parse`."""
    shape = x.shape
    if (index.__class__ is int or index.__class__ is slice) and x.__class__ is Tensor and not x._rg and foreign.early is None and symbols.tracing is None:
        view = _part(x, index)
        if view is not None:
            return view
    if index.__class__ is int and shape:
        return _take(x, (take_int(index, tuple(shape)[0], 0),), shape)
    if index.__class__ is slice and shape:
        view = _take(x, (take_slice(index, tuple(shape)[0]),), shape)
        if view._grad_fn is not None:
            view._grad_fn.label = "SliceBackward0"              # a slice alone is one even where it takes everything
        return view
    if index is None:
        return _take(x, (None,), shape)
    if index.__class__ is tuple and not any([isinstance(i, Tensor) for i in index]):
        spec = _plain(index, shape)
        return None if spec is None else _take(x, spec, shape)
    return None


def _only_tensors(x, index):
    """What :func:`parse` finds where nothing but one mask, or int64 tensors beside whole dimensions, index, as is usual; None where that is to be worked out."""
    index = (index,) if isinstance(index, Tensor) else index
    shape = x.shape
    if index.__class__ is not tuple or not 0 < len(index) <= len(shape):
        return None
    device, found, wide = x._storage.device, [], False
    for t in index:
        if t.__class__ is slice and t.start is t.stop is t.step is None:
            found.append(None)
            continue
        if t is Ellipsis and not wide:
            found, wide = found + [None] * (len(shape) + 1 - len(index)), True
            continue
        if not isinstance(t, Tensor) or not t.shape or t._storage.device is not device:
            return None
        if t.dtype is not dt.int64 and (t.dtype is not dt.bool_ or len(index) > 1 or tuple(t.shape) != tuple(shape[:len(t.shape)])):
            return None
        found.append(t)
    return [*found, *[None] * (len(shape) - len(found))]


def _read_numbers(index):
    """``index`` with the numbers of the integer tensors without dimensions in it; None where there is none, or one that is not read."""
    found = False
    items = []
    for i in index:
        if isinstance(i, Tensor) and not i.shape:
            if i.dtype is not dt.int64 or not _selects(i):
                return None
            i, found = i.item(), True
        items.append(i)
    return tuple(items) if found else None


def _beside_numbers(x, index):
    """What :func:`parse` finds where int64 tensors stand beside ints and slices; None where that is to be worked out."""
    if index.__class__ is not tuple or x.__class__ not in plain:
        return None
    rest, found, device = [], [], x._storage.device
    for t in index:
        if isinstance(t, Tensor):
            if t.dtype is not dt.int64 or not t.shape or t._storage.device is not device:
                return None
            rest.append(_ALL)
            found.append(t)
            continue
        if t.__class__ is not int:
            if t.__class__ is not slice:
                return None
            found.append(None)
        rest.append(t)
    base = _basic(x, tuple(rest))
    return None if base is None else (base, found + [None] * (len(base.shape) - len(found)))


_ALL = slice(None)
native.give(only_tensors=_only_tensors, all=_ALL, read_numbers=_read_numbers, wrapped=wrapped.local)
_only_tensors, _beside_numbers = native.form("only_tensors", _only_tensors), native.form("beside_numbers", _beside_numbers)
_read_numbers = native.form("read_numbers", _read_numbers)
_ways: dict = symbols.kept()           # (shape, strides, None or the length and step of a slice) of a part along the first dimension -> see ``_part_of``


def _part_of(x, key):
    """(size of the first dimension, step along it, shape, strides, number of elements, whether these lie densely) of one element of it, or of a slice."""
    shape, strides, length, step = key
    if not shape:
        return None
    lead, ahead = ((), ()) if length is None else ((length,), (strides[0] * step,))
    sizes, steps = Size((*lead, *shape[1:])), (*ahead, *strides[1:])
    if len(_ways) > _MOST_WAYS:
        _ways.clear()
    _ways[key] = found = shape[0], strides[0], sizes, steps, sizes.numel(), is_contiguous(sizes, steps)
    return found


def _part(x, index):
    """``x[index]`` for an int or a slice of a tensor without history, in fewer steps; None where it is not that simple."""
    shape = x.shape
    if index.__class__ is int:
        start, key = index, (shape, x._strides, None, 1)
    else:
        step = index.step
        if not shape or step is not None and (step.__class__ is not int or step < 1):
            return None
        start, stop, step = index.indices(shape[0])
        key = shape, x._strides, max(0, -(-(stop - start) // step)), step
    size, step, shape, strides, numel, dense = _ways.get(key) or _part_of(x, key) or _NOTHING
    if start < 0:
        start += size
    if not 0 <= start < size and (index.__class__ is int or start != size):
        return None
    offset = x._offset + start * step
    return view_of(x, shape, strides, offset, numel, offset == 0 and dense)


_MOST_WAYS, _NOTHING = 1 << 14, (-1, 0, (), (), 0, False)
native.give(basic=_basic, basic_op=basic_index.op)
_basic = native.form("basic", _basic)


def gathered(x, indices):
    """Few elements of ``x`` by tensors of numbers or one mask (None for a whole dimension), where the host has the device's memory before it and nobody keeps a
    history: it reads them itself, which takes less time than a launch. None where it does not, which without the C form is always."""
    return None


def scattered(x, indices, value):
    """The same for writes of a number or a tensor: True once it is written, or None."""
    return None


def located(x):
    """Where ``x`` is not zero, (dimensions, count), found the same way; None where it is not, or nothing was found."""
    return None


gathered, scattered, located = native.form("gathered", gathered), native.form("scattered", scattered), native.form("located", located)


def getitem(x, index):
    """``x[index]``: a view for ints (integer tensors of rank 0, too), slices, None and Ellipsis; a copy as soon as any other tensor, a list or mask takes part."""
    view = _basic(x, index)
    if view is not None:
        return view
    if index.__class__ is list and x.__class__ is Tensor and x.shape:
        index = whole_numbers(index, x)
    if isinstance(index, Tensor) and index.dtype is dt.int64 and index.shape and x.shape and x.shape[0] and index._storage.device is x._storage.device \
            and (x._dense or x.__class__ is not Tensor):
        found = gathered(x, [index, *[None] * (len(x.shape) - 1)])
        if found is not None:
            return found
        return REGISTRY["_index_rows"].fn(x, index, x.shape, 0, 1, True, "index")
    base, indices = x, _only_tensors(x, index)
    if indices is None:
        numbers = _read_numbers(index if index.__class__ is tuple else (index,)) if x.shape else None
        if numbers is not None:
            return getitem(x, numbers)
        base, indices = _beside_numbers(x, index) or parse(x, index)
        if indices is None:
            return base
    found = gathered(base, indices)
    return REGISTRY["_index"].fn(base, indices) if found is None else found


def _place(x, index):
    """(shape, strides, offset, number of elements) of the region that an index of ints, slices, None and an Ellipsis means; None where it is anything else."""
    index = index if index.__class__ is tuple else (index,)
    for i in index:
        if i.__class__ is not int and i.__class__ is not slice and i is not None and i is not Ellipsis:
            return None
    spec = _plain(index, x.shape)
    if spec is None:
        return None
    sizes, steps, offset = region(spec, x.shape, x._strides, x._offset)
    return Size(sizes), steps, offset, math.prod(sizes)


native.give(place=_place)
_place = native.form("place", _place)


def _put(x, index, value) -> bool:
    """``x[index] = value`` for most indices of ints and slices and most values, without a view; False where it is anything else."""
    kind, dtype = value.__class__, x.dtype
    if kind is Tensor:
        if value.dtype is not dtype:
            return False
    elif kind is not float and kind is not bool and (kind is not int or not -1 << 63 <= value < 1 << 63):
        return False
    if not x._numel or x._storage.device.kind == "meta":
        return False
    found = _place(x, index)
    if found is None:
        return False
    sizes, steps, offset, numel = found
    if not numel or numel == x._numel or 0 in steps:
        return False
    if kind is not Tensor:
        check_written(value, dtype)
        value = value != 0 if dtype is dt.bool_ else value
    return put(x, sizes, steps, offset, numel, value)


native.give(put_at=_put)
_put = native.form("put_at", _put)


def _as_number(value, x):
    """What may be written into elements: a number of Python's, or an integer of NumPy's."""
    if isinstance(value, (int, np.integer)):
        if value.__class__ is not bool and not -1 << 63 <= value < 1 << 63:
            raise ValueError("Overflow when unpacking long long")
        return value if value.__class__ is bool else int(value)
    if not isinstance(value, (float, complex)) or isinstance(value, np.complexfloating) and not isinstance(value, complex):
        kind, module = type(value), type(value).__module__
        name = f"{module}.{kind.__name__}" if module in ("numpy", "decimal") else kind.__name__
        raise TypeError(f"can't assign a {name} to a {dt.type_in_errors(x.dtype)}")
    return value


def setitem(x, index, value):
    """``x[index] = value``; the value is broadcast and, where no tensor is an index, converted to the dtype of ``x``."""
    if x.__class__ is Tensor and _put(x, index, value):
        return
    value = value if isinstance(value, Tensor) else _as_number(value, x)
    base, indices = _basic(x, index), None
    if base is None:
        base, indices = x, _only_tensors(x, index)
        if indices is not None and scattered(x, indices, value):
            return
    if base is x and indices is None:
        base, indices = parse(x, index, view=isinstance(value, Tensor) and value._storage is x._storage)     # ``x[t] += 1`` writes the view that it read
    if base._strides == x._strides and base.shape == x.shape and base._offset == x._offset:
        base = x                                                # all of it: no view of a view
    if isinstance(value, Tensor):
        if value._storage.device is not x._storage.device:
            value = value.to(public(x._storage.device))
    if indices is None:
        _assign(base, value)
        return
    if isinstance(value, Tensor) and not value.shape and value._storage is base._storage:
        value = value.clone()                                   # a number of its own
    refuse_overlap(base, (value, indices))
    if not _assign_mask(base, indices, value):
        if not isinstance(value, Tensor):
            value = REGISTRY["_host_value"].fn(value, x)
        elif value.dtype is not base.dtype and not any([i is not None and (i.shape or i.dtype is dt.bool_) for i in indices]):
            value = value.to(base.dtype)                        # as if places were numbers
        REGISTRY["_index_put_into"].fn(base, indices, value)


def _assign(target, value):
    """Write into a view: numbers as a constant, tensors with leading dimensions of size 1 dropped."""
    if not isinstance(value, Tensor):
        REGISTRY["_fill_into"].fn(target, value)
        return
    while len(value.shape) > len(target.shape) and value.shape[0] == 1:
        value = value.squeeze(0)
    if 0 in target.shape and value._numel == 1:
        value = value.reshape(()).expand(target.shape)
    if len(value.shape) > len(target.shape):
        raise RuntimeError(f"expand({dt.type_in_errors(value.dtype)}{{{list(value.shape)}}}, size={list(target.shape)}): the number of "
                           f"sizes provided ({len(target.shape)}) must be greater or equal to the number of dimensions in the tensor "
                           f"({len(value.shape)})")
    if value._storage is target._storage and value.shape != target.shape:
        value = value.expand(target.shape)                      # broadcast first: elements of the target itself are no overlap
    target.copy_(value)


def _assign_mask(base, indices, value):
    """``x[mask] = value`` without waiting for the mask: one fused ``where``. False when the value depends on how many are True."""
    masks = [i for i in indices if i is not None]
    if len(masks) != 1 or masks[0].dtype is not dt.bool_ or indices[0] is not masks[0]:
        return False
    mask = masks[0]
    rest = len(base.shape) - len(mask.shape)
    if isinstance(value, Tensor):
        if value.dtype is not base.dtype and value._numel != 1:
            return False
        if value.dtype.is_complex and not base.dtype.is_complex:
            check_written(value.item(), base.dtype)
        if len(value.shape) > rest:
            lead = value.shape[:len(value.shape) - rest]
            if len(lead) != 1 or lead[0] != 1:
                return False
            value = value.squeeze(0)
        if any(s not in (1, t) for s, t in zip(reversed(value.shape), reversed(base.shape))):
            return False
    else:
        check_written(value, base.dtype)
    if base.dtype.category == dt.INT:
        value = as_whole(value, base.dtype)
    for _ in range(rest):
        mask = mask.unsqueeze(-1)
    result = REGISTRY["where"].fn(mask, value, base)
    if result._grad_fn is not None and result._rg:
        result._grad_fn.label = "IndexPutBackward0"
    if result.dtype is not base.dtype:
        result = result.to(base.dtype)
    apply_inplace(base, result, "index_put")
    return True


def as_whole(value, dtype):
    """What integers of ``dtype`` hold of a number or tensor: a choice between a fraction and them would make floats of all, and large ones lose digits."""
    return value.to(dtype) if isinstance(value, Tensor) else int(value.real)


def tracked(*tensors):
    """Whether an operator on these would be recorded."""
    return state.grad and any(isinstance(t, Tensor) and t._rg for t in tensors)


later.getitem, later.setitem = getitem, setitem
