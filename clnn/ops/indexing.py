"""Reading by index: rows, elements, masks; and what ``x[...]`` uses for tensors and masks."""
from __future__ import annotations

import math
from array import array

import numpy as np

from .._tensor.declare import composite, kernel
from .._tensor.device import public
from .._tensor.dispatch import broadcast, in_order_of, memory_order, plain, run
from .._tensor.grad_mode import state
from .._tensor.indexing import gathered, tracked
from .._tensor.inplace import apply_inplace, set_out, type_name
from .._tensor.interop import from_array, from_bytes
from .._tensor.repeat import repeated
from .._tensor.splice import Spliced
from .._tensor.tensor import Tensor, empty, make
from ..core import dtype as dt
from ..core.limits import check_written
from ..core.shape import Size, broadcast_shapes, wrap_dim
from ..graph.node import Storage, constants
from . import _scatter
from .creation import filled, tensor
from .selection import cast, where


def split(shape, first, count):
    """(outer, chosen, inner) element counts of a shape around dimensions ``first .. first + count``."""
    return math.prod(shape[:first]), math.prod(shape[first:first + count]), math.prod(shape[first + count:])


# -- rows -----------------------------------------------------------------------------------------------------------------------------
@kernel("_index_rows", complex=True, method=False, repeat=True, vjp=dict(
    input=lambda g, index, shape, first, count, wrap: _add_rows(g, index, shape, first, count, wrap)))
def _index_rows(input, index, shape, first, count, wrap, what):
    """Dimensions ``first .. first + count`` of ``input`` (whose shape is ``shape``) replaced by those of ``index``, which numbers them."""
    B, D, R = split(shape, first, count)
    _scatter.check_rows(what, first, D, index._numel)
    out_shape = Size((*shape[:first], *index.shape, *shape[first + count:]))
    err = _scatter.code(input._storage.device, what, first, D)
    return _scatter.read_rows(input.contiguous(), index.contiguous(), out_shape, B, D, R, wrap, err)


_index_rows.op.grad_name = "IndexBackward0"


@kernel("_rows_at", complex=True, method=False, repeat=True)
def _rows_at(input, index, shape, pitch):
    """Rows of ``shape``, elements that lie one after the other in the vector ``input``, of which row n begins at element ``pitch * index[n]``."""
    R, device = Size(shape).numel(), input._storage.device
    D = (input._numel - R) // pitch + 1
    return _scatter.read_rows(input, index, Size((index._numel, *shape)), 1, D, R, False, _scatter.code(device, "stack", 0, D), pitch)


def rows_at(buf, dtype, device, begins, shape):
    """A tensor of rows of ``shape`` of a buffer, of which each begins at the element that ``begins`` has for it."""
    whole = make(Storage(device, buf.size, buf), Size((buf.size // dtype.itemsize,)), dtype, buf.size // dtype.itemsize)
    pitch = max(1, Size(shape).numel())
    if any([at % pitch for at in begins]):
        pitch = 1
    index = from_bytes(array("q", [at // pitch for at in begins]).tobytes(), Size((len(begins),)), dt.int64, device)
    return _rows_at(whole, index, shape, pitch)


@kernel("_add_rows", complex=True, method=False, repeat="whole", vjp=dict(
    g=lambda g, index, shape, first, count, wrap: _index_rows(g, index, shape, first, count, wrap, "index")))
def _add_rows(g, index, shape, first, count, wrap):
    """The transpose of ``_index_rows``: zeros of ``shape`` to which each row of ``g`` is added where it came from."""
    B, D, R = split(shape, first, count)
    device = g._storage.device
    work = g.dtype.acc_dtype if g.dtype.is_floating_point else g.dtype
    out = filled(Size(shape), 0, work, device)
    _scatter.write_rows(out, index.contiguous(), cast(g, work), B, D, R, "add", wrap, _scatter.code(device, "index", first, D))
    return cast(out, g.dtype)


_INT64 = dict(take="take", put="put_", index_copy="index_copy_")               # what takes no other, and the name that errors have
_UNLIKE = dict(index_select="index_select(): Expected dtype int32 or int64 for index", index_add="index_add_(): Expected dtype int32/int64 for index but got: {}",
               index_reduce="index_reduce_(): Expected dtype int32/int64 for index but got: {}", gather="gather(): Expected dtype int32/int64 for index")


def check_index(name, index):
    if not isinstance(index, Tensor):
        raise TypeError(f"{name}(): argument 'index' must be Tensor, not {type(index).__name__}")
    if index.dtype is dt.int64 or not index._numel:
        return
    if name == "index_fill":
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if name in _INT64:
        raise RuntimeError(f"{_INT64[name]}(): Expected a long tensor for index, but got {type_name(index.dtype)}")
    if index.dtype is not dt.int32:
        raise RuntimeError(_UNLIKE.get(name, "scatter(): Expected dtype int32/int64 for index").format(type_name(index.dtype)))


def no_vector(name, index):
    if name == "index_fill":
        raise RuntimeError("Index has to be a vector/scalar")
    what = f"is supposed to be a vector, but got dim: {len(index.shape)} with type: {type_name(index.dtype)} and size: {list(index.shape)}"
    raise IndexError(f"{name}_(): Index {f'should have dimension 1 or 0 (got {len(index.shape)})' if name == 'index_copy' else what}")


def _numbers(high, *shape):
    return np.random.default_rng(1).integers(0, high, shape)


def _values(*shape):
    return np.random.default_rng(2).standard_normal(shape)


@composite("index_select", repeat=True, complex=True, numpy=lambda x, d, i: np.take(x, i, d), samples=lambda: [
    ((_values(4, 3), 0, np.array([0, 2, 2])), {}), ((_values(2, 5, 3), 1, np.array([4, 0])), {}), ((_values(2, 5, 40), -2, np.array([1])), {})],
    errors=[((np.ones((2, 3)), 0, np.array([[0]])), {}, IndexError, "Index is supposed to be a vector")])
def index_select(input, dim, index):
    """The rows of dimension ``dim`` that the vector ``index`` numbers.

    Args:
        input: (*, D, *), any dtype.
        index: (N), int32 or int64, values 0..D-1; others raise IndexError at the next synchronisation.

    Example:
        >>> clnn.arange(6).reshape(3, 2).index_select(0, clnn.tensor([2, 0]))
        tensor([[4, 5],
                [0, 1]])
    """
    check_index("index_select", index)
    if len(index.shape) > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    d = wrap_dim(dim, len(input.shape))
    if not input.shape:
        if index._numel != 1:
            raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {index._numel} value(s)")
        return _index_rows(input.reshape(1), index.reshape(-1), (1,), 0, 1, False, "index_select").reshape(())
    return _index_rows(input, index.reshape(-1), input.shape, d, 1, False, "index_select")


# -- elements -------------------------------------------------------------------------------------------------------------------------
@kernel("_gather", complex=True, method=False, repeat=True, vjp=dict(input=lambda g, dim, index, shape, wrap: _gather_grad(g, dim, index, shape, wrap)))
def _gather(input, dim, index, shape, wrap):
    B, D, _ = split(shape, dim, 1)
    _, N, R = split(index.shape, dim, 1)
    _scatter.check_rows("gather", dim, D, index._numel)
    err = _scatter.code(input._storage.device, "gather", dim, D)
    return _scatter.read_elements(input.contiguous(), index.contiguous(), B, D, N, R, wrap, err)


def _gather_grad(g, dim, index, shape, wrap):
    if wrap:
        index = where(index < 0, index + shape[dim], index)
    return g.new_zeros(shape).scatter_add(dim, index, g)


_gather.op.grad_name = "GatherBackward0"


def fit(name, input, dim, index, other="self"):
    """``input`` cut to the sizes of ``index`` outside ``dim``."""
    if len(index.shape) != len(input.shape):
        raise RuntimeError(f"Index tensor must have the same number of dimensions as {'input' if name == 'gather' else other} tensor ({name})")
    for d in range(len(input.shape)):
        if d != dim and index.shape[d] > input.shape[d]:
            raise RuntimeError(f"Size does not match at dimension {d} expected index {list(index.shape)} to be no larger than {other} "
                               f"{list(input.shape)} apart from dimension {dim} ({name})")
    if all(d == dim or index.shape[d] == input.shape[d] for d in range(len(input.shape))):
        return input
    return input[tuple(slice(None) if d == dim else slice(0, index.shape[d]) for d in range(len(input.shape)))]


@composite("gather", repeat="whole", complex=True, numpy=lambda x, d, i: np.take_along_axis(x, i, d), samples=lambda: [
    ((_values(3, 4), 1, _numbers(4, 3, 2)), {}), ((_values(3, 4), 0, _numbers(3, 5, 4)), {}), ((_values(2, 3, 5), -2, _numbers(3, 2, 2, 5)), {})],
    errors=[((np.ones((2, 2)), 0, np.zeros(2, np.int64)), {}, RuntimeError, "same number of dimensions")])
def gather(input, dim, index, *, sparse_grad=False, out=None):
    """One element along ``dim`` per element of ``index``: ``out[i][j] = input[index[i][j]][j]`` for ``dim=0``.

    Args:
        input: any dtype.
        index: as many dimensions as ``input``, no larger than it apart from ``dim``; values 0..size(dim)-1, others raise IndexError at the
            next synchronisation.

    Example:
        >>> clnn.tensor([[1, 2], [3, 4]]).gather(1, clnn.tensor([[0, 0], [1, 0]]))
        tensor([[1, 1],
                [4, 3]])
    """
    check_index("gather", index)
    d = wrap_dim(dim, len(input.shape))
    if not input.shape or not index.shape:
        if len(input.shape) > 1 or len(index.shape) > 1 and index._numel:
            raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
        r = _gather(input.reshape(-1), 0, index.reshape(-1), input.reshape(-1).shape, False)
        return _deliver(r if index.shape else r.reshape(()), out)
    if not index._numel and index.ndim != input.ndim:
        flat = input.reshape(-1)
        return _deliver(_gather(flat, 0, index.reshape(-1), flat.shape, False).reshape(index.shape), out)
    cut = fit("gather", input, d, index)
    return _deliver(_gather(cut, d, index, cut.shape, False), out)


def _deliver(r, out):
    return set_out(out, r)


@composite("take_along_dim", splice=True, repeat="ready small", complex=True,
           numpy=lambda x, i, dim=None: np.take_along_axis(x if dim is not None else x.ravel(), i, dim or 0), samples=lambda: [
    ((_values(3, 4), _numbers(4, 3, 2)), dict(dim=1)), ((_values(3, 4), _numbers(12, 5)), {})])
def take_along_dim(input, indices, dim=None, *, out=None):
    """``gather`` whose operands are broadcast against each other (without ``dim``: both flattened)."""
    if indices.dtype is not dt.int64:
        raise RuntimeError(f"torch.take_along_dim(): dtype of indices should be Long but got {type_name(indices.dtype)}")
    if dim is None:
        return _deliver(gather(input.reshape(-1), 0, indices.reshape(-1)), out)
    if len(input.shape) != len(indices.shape):
        raise RuntimeError(f"torch.take_along_dim(): input and indices should have the same number of dimensions, but got {len(input.shape)} "
                           f"dimensions for input, and {len(indices.shape)} dimensions for indices")
    d = wrap_dim(dim, len(input.shape))

    def without(shape):
        return tuple(1 if k == d else s for k, s in enumerate(shape))
    common = broadcast_shapes(without(input.shape), without(indices.shape))

    def wide(t):
        return t.expand(tuple(t.shape[d] if k == d else s for k, s in enumerate(common)))
    x = wide(input)
    return _deliver(_gather(x, d, wide(indices), x.shape, True), out)


@composite("take", complex=True, numpy=lambda x, i: np.take(x, i), samples=lambda: [((_values(3, 4), np.array([[0, 11], [5, -1]])), {})])
def take(input, index, *, out=None):
    """Elements of the flattened ``input``, in the shape of ``index``; negative indices count from the end."""
    check_index("take", index)
    n = input._numel
    return _deliver(_index_rows(input.reshape(-1), index, (n,), 0, 1, True, "take"), out)


# -- x[tensors and masks] ---------------------------------------------------------------------------------------------------------------
@composite("_host_index", complex=True, method=False)
def _host_index(array, x):
    """An index given as a host array, on the device of ``x``."""
    if array.dtype.kind != "b" and array.dtype not in (np.int64, np.int32):
        array = array.astype(np.int64)
    t = from_array(array, x._storage.device)
    if array.dtype.kind != "b" and array.size:
        t._bounds = (int(array.min()), int(array.max()))            # lets a bad index raise at once, with its line
    return t


def _number(value, dtype, device):
    """A 0-d tensor of a storage of its own; numbers that were asked for lately need no launch."""
    key = (repr(value), dtype, device)                          # 0.0 equals -0.0
    buf = constants.get(key)
    if buf is None:
        check_written(value, dtype)
        t = filled(Size(()), value, dtype, device)
        if device.recording is not None or device.kind == "meta":       # its memory would be a part of the recording
            return t
        if len(constants) > 256:
            constants.clear()
        buf = constants[key] = t._storage.buffer()
    return make(Storage(device, dtype.itemsize, buf), Size(()), dtype, 1)


@composite("_host_value", complex=True, method=False)
def _host_value(value, x):
    """A value to be written into ``x``, given as numbers."""
    if isinstance(value, (int, float, complex)):
        return _number(value, x.dtype, x._storage.device)
    return tensor(value, device=public(x._storage.device)).to(x.dtype)


@composite("_fill_into", complex=True, method=False)
def _fill_into(target, value):
    check_written(value, target.dtype)
    apply_inplace(target, filled(target.shape, value, target.dtype, target._storage.device), "fill")


def _expand_masks(indices, shape):
    """Index tensors only, whose numbers are within ``shape`` as far as that is known: a mask becomes the coordinates of its True elements (waits for the
    device to count them)."""
    from .searching import coordinates
    out = list(indices)
    for d, t in enumerate(indices):
        if t is not None and t.dtype is dt.bool_:
            if len(t.shape) == 1:
                out[d] = coordinates(t)[0]
                continue
            for k, c in enumerate(coordinates(t)):
                out[d + k] = c
    _check_bounds(out, shape)
    return out


def _check_bounds(indices, shape):
    for d, t in enumerate(indices):
        known = t._all.get("_bounds") if t is not None else None
        if known is not None:
            for v in known:
                if not shape[d]:
                    raise IndexError("index is out of bounds for dimension with size 0")
                if not -shape[d] <= v < shape[d]:
                    raise IndexError(f"index {v} is out of bounds for dimension {d} with size {shape[d]}")


class Plan:
    """How index tensors at some dimensions read or write: a permutation, the numbered dimensions and one row number per place."""

    __slots__ = ("order", "first", "count", "rows", "wrap", "shape")

    def __init__(self, base, indices):
        at = [d for d, t in enumerate(indices) if t is not None]
        adjacent = at[-1] - at[0] + 1 == len(at)
        self.order = None if adjacent else at + [d for d in range(len(base.shape)) if d not in at]
        self.first, self.count = (at[0] if adjacent else 0), len(at)
        sizes = [base.shape[d] for d in at]
        self.rows, self.wrap = _row_numbers([indices[d] for d in at], sizes, at)
        left = base.shape if adjacent else [base.shape[d] for d in self.order]
        self.shape = Size((*left[:self.first], *self.rows.shape, *left[self.first + self.count:]))

    def arrange(self, x):
        return x if self.order is None else x.permute(self.order)

    def restore(self, x):
        return x if self.order is None else x.permute([self.order.index(d) for d in range(len(self.order))])


def _row_numbers(tensors, sizes, dims):
    """(one tensor of row numbers into the flattened ``sizes``, whether it may hold negative ones)."""
    if len(tensors) == 1:
        _scatter.check_rows("index", dims[0], sizes[0], tensors[0]._numel)
        return tensors[0], True
    try:
        shape = Size(broadcast_shapes(*[tuple(t.shape) for t in tensors]))
    except ValueError:
        raise IndexError("shape mismatch: indexing tensors could not be broadcast together with shapes "
                         + ", ".join(str(list(t.shape)) for t in tensors)) from None
    n = shape.numel()
    for size, d in zip(sizes, dims):
        _scatter.check_rows("index", d, size, n)
    return _combined(tensors, shape, tuple(sizes), tuple(dims)), False


@repeated
def _combined(tensors, shape, sizes, dims):
    """The row numbers of several index tensors, which broadcast to ``shape``."""
    device, n = tensors[0]._storage.device, shape.numel()
    out = empty(shape, dt.int64, device)
    wide = [t.to(dt.int64).expand(shape).contiguous() for t in tensors]
    codes = [_scatter.code(device, "index", d, s) for d, s in zip(dims, sizes)]
    if n:
        run(device, "indexing/linear", dict(K=len(wide)), (n,), (_scatter.local_of(n, device),), *wide, out, *sizes, n, device.error_buffer, *codes)
    return out


def _only_mask(indices):
    """(dimension, mask) when a mask is the only index."""
    found = [(d, t) for d, t in enumerate(indices) if t is not None]
    return found[0] if len(found) == 1 and found[0][1].dtype is dt.bool_ else (None, None)


@composite("_index", complex=True, method=False)
def _index(base, indices):
    """``base`` indexed by one tensor, mask or None per dimension."""
    d, mask = _only_mask(indices)
    if mask is not None:
        from .searching import flat_nonzero, picked
        if base.shape == mask.shape and base._storage.device is mask._storage.device and base.__class__ is Tensor and not tracked(base):
            found = picked(base, mask)
            if found is not None:
                return found
        return _rows(base, flat_nonzero(mask), d, len(mask.shape), False)
    if any([t is not None and t.dtype is dt.bool_ for t in indices]):
        indices = _expand_masks(indices, base.shape)
    else:
        _check_bounds(indices, base.shape)
    return _index_numbers(base, indices)


_tracked = Spliced()            # the kinds of call that record gradients


@composite("_index_numbers", complex=True, method=False, repeat=True)
def _index_numbers(base, indices):
    if state.grad and base.__class__ in plain and base._rg:
        found = [t for t in indices if t is not None]
        return _tracked.call(lambda: _by_numbers(base, indices), [base, *found], [len(found), *[t is None for t in indices]])
    return _by_numbers(base, indices)


def _by_numbers(base, indices):
    plan = Plan(base, indices)
    return _rows(plan.arrange(base), plan.rows, plan.first, plan.count, plan.wrap)


def _rows(x, rows, first, count, wrap):
    order = memory_order(x) if x.__class__ is Tensor and not x._dense and (first, count, len(rows.shape)) == (0, 1, 1) else None
    if order is None or order[0]:
        return _index_rows(x, rows, x.shape, first, count, wrap, "index")
    turned = x.permute(order)                                        # samples keep the order of their dimensions, as of images in channels_last
    return in_order_of(_index_rows(turned, rows, turned.shape, 0, 1, wrap, "index"), order, "IndexBackward0")


@composite("masked_select", complex=True, numpy=lambda x, m: x[np.broadcast_to(m, x.shape)], samples=lambda: [
    ((_values(3, 4), _values(3, 4) > 0), {}), ((_values(3, 4), _values(4) > 0), {})])
def masked_select(input, mask, *, out=None):
    """The elements where ``mask`` (broadcast against ``input``) is True, as a vector. Waits for the device to count them."""
    if mask.dtype is not dt.bool_:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    if input.shape == mask.shape:
        found = gathered(input, [mask, *[None] * (len(mask.shape) - 1)]) if mask.shape and out is None else None
        return _deliver(_index(input, [mask]), out) if found is None else found
    shape = broadcast("masked_select", input, mask)
    return _deliver(_index(input.expand(shape).reshape(-1), [mask.expand(shape).reshape(-1)]), out)


@composite("masked_scatter", repeat="ready small", complex=True, inplace=True, samples=lambda: [((_values(3, 4), _values(3, 4) > 0, _values(12)), {})],
           numpy=lambda x, m, s: np.where(np.broadcast_to(m, x.shape), s.ravel()[np.maximum(np.cumsum(np.broadcast_to(m, x.shape)) - 1, 0)
                                                                                 ].reshape(x.shape), x))
def masked_scatter(input, mask, source):
    """``input`` with the elements where ``mask`` is True replaced by those of ``source``, in order."""
    if mask.dtype is not dt.bool_:
        raise RuntimeError("masked_scatter_ only supports boolean masks, but got mask with dtype " + type_name(mask.dtype))
    if source.dtype is not input.dtype:
        raise RuntimeError("masked_scatter: expected self and source to have same dtypes but got" + f"{type_name(input.dtype)} and {type_name(source.dtype)}")
    from .searching import ranks
    wide = mask if mask.shape == input.shape else mask.expand(broadcast("masked_scatter", input, mask))
    rank, source = where(wide, ranks(wide) - 1, 0), source.reshape(-1)
    if not source._numel:                                               # the place 0 that all others ask for has to be there; it is not enough for a mask
        source, rank = source.new_zeros(1), rank + wide
    return where(wide, _index_rows(source, rank, source.shape, 0, 1, False, "masked_scatter"), input).contiguous()
