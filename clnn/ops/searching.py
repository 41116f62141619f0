"""Finding elements: nonzero, unique, binary search, histograms, membership."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._tensor.declare import composite, elementwise
from .._tensor.dispatch import run
from .._tensor.indexing import located
from .._tensor.interop import from_array, item, read
from .._tensor.tensor import Tensor, empty
from ..core import dtype as dt
from ..core.shape import Size, flag, whole, wrap_dim
from . import _radix, _scatter, _tiles
from .creation import arange, filled, tensor
from .indexing import _deliver, _index_rows
from .reductions import MAX, MIN, fold
from .selection import cast


# -- nonzero ----------------------------------------------------------------------------------------------------------------------------
_FEW = 4096             # elements: reading them costs no more than reading a number that follows from them, and takes no launches


def _host_sized(x, few=_FEW):
    return 0 < x._numel <= few and x.dtype is not dt.bfloat16 and x._storage.device.kind != "meta"


class _Counted:
    """Chunks of a contiguous ``x`` whose elements that count were counted: ``counts`` of chunks added up, and a tensor with their ``total``."""

    def __init__(self, x, changed=False, places=False, rank=1, U="uchar"):
        x = x.detach().contiguous()
        self.x = x = x != 0 if x.dtype.is_complex else x
        self.device, n = x._storage.device, x._numel
        self.params, cpu = dict(T=x.dtype, RANK=rank, CHANGED=changed, PLACES=places), self.device.is_cpu
        self.local = 1 if cpu else _tiles.group_of(self.device)
        self.path = "indexing/compact" if cpu else "indexing/compact_tiles"
        if not cpu:
            self.params.update(U=U, LOCAL=self.local, SMALL=n < 2 ** 31)
        self.chunk = max(1024, -(-n // (8 * self.device.compute_units))) if cpu else 16 * self.local
        self.chunks = -(-n // self.chunk)
        self.counts = empty((self.chunks,), dt.int32, self.device)
        self.run("count_nonzero", x, self.counts, n)
        self.total = _tiles.scan(self.counts, 1, self.chunks)

    def run(self, kernel, *args, sizes=()):
        run(self.device, f"{self.path}:{kernel}", self.params, (self.chunks * self.local,), (self.local,), *args, self.chunk, self.chunks, *sizes)

    def lengths(self, at, n):
        """From each of the positions ``at`` to the next, the last one to ``n``."""
        count, out = at._numel, empty(at.shape, dt.int64, self.device)
        run(self.device, f"{self.path}:run_lengths", self.params, (count,), (_scatter.local_of(count, self.device),), at, out, count, n)
        return out


def _found(x, places, few=_FEW):
    """What a NumPy function ``places`` says of few elements, as tensors; None for more of them."""
    if not _host_sized(x, few):
        return None
    got = places(read(x.detach()))
    return [from_array(a, x._storage.device) for a in (got if got.__class__ is tuple else (got,))]


def flat_nonzero(x):
    """Flat positions (int64) of the elements that are not zero, in order. Waits for the device to count them."""
    device, n = x._storage.device, x._numel
    if n == 0:
        return empty((0,), dt.int64, device)
    found = located(x) if len(x.shape) == 1 else None
    if found is None:
        found = _found(x, np.flatnonzero)
    return _positions(x, (n,)).reshape(-1) if found is None else found[0]


def _positions(x, shape):
    """(ndim, count) indices of the elements of ``x`` as a tensor of ``shape`` that are not zero."""
    device, rank = x._storage.device, len(shape)
    found = _Counted(x, rank=rank)
    out = empty((rank, item(found.total)), dt.int64, device)
    if out._numel:
        found.run("find_nonzero", found.x, found.counts, found.total, out, sizes=shape)
    return out


def picked(y, mask):
    """The elements of ``y`` where ``mask``, of the same shape, is True: few of a CPU by the host, others in one pass after they were counted. None where places
    are found sooner."""
    device = y._storage.device
    if device.is_cpu and _host_sized(mask) and _host_sized(y):
        return from_array(read(y.detach())[read(mask.detach())], device)
    if device.is_cpu or not y._numel or _host_sized(mask):
        return None
    y, found = y.contiguous(), _Counted(mask, U=_scatter.width(y.dtype))
    values = empty((item(found.total),), y.dtype, y._storage.device)
    if values._numel:
        found.run("find_runs", found.x, found.counts, found.total, y, values, found.counts, y._numel)
    return values


def ranks(x):
    """How many elements are not zero up to and including each (int64, shape of ``x``)."""
    device, n = x._storage.device, x._numel
    out = empty(x.shape, dt.int64, device)
    if n:
        found = _Counted(x)
        found.run("rank_nonzero", found.x, found.counts, out, n)
    return out


def _table(x):
    """(count, ndim) indices of the elements that are not zero; in columns, as PyTorch lays them out."""
    device, found = x._storage.device, located(x)
    if found is not None:
        return found.t()
    found = _found(x, lambda a: np.argwhere(a).T)
    if found is not None:
        return found[0].t()
    if x._numel == 0 or not x.shape:
        return empty((len(x.shape), flat_nonzero(x)._numel), dt.int64, device).t()
    return _positions(x, tuple(x.shape)).t()


def coordinates(x):
    """One contiguous index vector per dimension."""
    if len(x.shape) == 1:
        return (flat_nonzero(x),)
    found = _found(x, np.nonzero)
    if found is not None:
        return tuple(found)
    return tuple(_table(x).unbind(1))


@composite("nonzero", complex=True, numpy=lambda x: np.argwhere(x), samples=lambda: [
    ((np.array([[1, 0, 2], [0, 0, 3]]),), {}), ((np.zeros(4),), {}), ((np.arange(5000).reshape(50, 100) % 3,), {})])
def nonzero(input, *, as_tuple=False, out=None):
    """Indices of the elements that are not zero, (count, ndim), or one vector per dimension. Waits for the device to count them.

    Example:
        >>> clnn.tensor([0, 3, 0, 5]).nonzero()
        tensor([[1],
                [3]])
    """
    if flag("nonzero", "as_tuple", as_tuple):
        if out is not None:
            raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
        x = input.reshape(1) if not input.shape else input
        return coordinates(x) if len(x.shape) == 1 else tuple(_table(x).unbind(1))
    return _deliver(_table(input), out)


@composite("argwhere", complex=True, numpy=lambda x: np.argwhere(x), samples=lambda: [((np.array([[1, 0, 2], [0, 0, 3]]),), {})])
def argwhere(input):
    """``nonzero`` under NumPy's name."""
    return _table(input)


@composite("nonzero_static", complex=True, samples=lambda: [((np.array([1, 0, 2]),), dict(size=4)), ((np.array([1, 3, 2]),), dict(size=2))],
           numpy=lambda x, size, fill_value=-1: np.concatenate([np.argwhere(x), np.full((size, x.ndim), fill_value)])[:size])
def nonzero_static(input, *, size, fill_value=-1):
    """The first ``size`` rows of ``nonzero``, filled up with ``fill_value``."""
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    from .padding import constant_pad
    return constant_pad(table := _table(input)[:size], (0, 0, 0, size - table.shape[0]), fill_value).contiguous()


@composite("unravel_index", repeat="ready small", method=False, samples=lambda: [((np.array([[3, 7], [11, 0]]), (3, 4)), {})], numpy=lambda i, s: np.unravel_index(i, s))
def unravel_index(indices, shape):
    """One tensor of coordinates per dimension of ``shape`` for flat positions."""
    if indices.dtype.category != dt.INT:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    sizes = (shape,) if isinstance(shape, int) else shape
    if isinstance(shape, Tensor) or not isinstance(sizes, Sequence):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    for size in [size for size in sizes if not isinstance(size, int)]:
        raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(size)}")
    if any([size < 0 for size in sizes]):
        raise ValueError(f"'shape' cannot have negative values, but got {tuple(sizes)}")
    out, rest = [], indices.to(dt.int64)
    for size in reversed(sizes):
        out.append(rest % size)
        rest = rest.div(size, rounding_mode="floor")
    return tuple(reversed(out))


def bounds(x):
    """(smallest, greatest) element as numbers. Waits for the device."""
    x = x.detach()
    if _host_sized(x):
        array = read(x)
        return array.min().item(), array.max().item()
    dims = tuple(range(len(x.shape)))
    low, high = (fold(spec, x, dims, False, x.dtype.acc_dtype, x.dtype) for spec in (MIN, MAX))
    return item(low), item(high)


# -- unique -----------------------------------------------------------------------------------------------------------------------------
def _starts(changed, n, device):
    """Flags of the elements that differ from the one before, from flags of the neighbours' difference."""
    from .joining import cat
    first = filled(Size((1,)), True, dt.bool_, device)
    return cat([first, changed]) if n > 1 else first


def _runs(flags, n, device, want_counts):
    """(positions where runs start, run lengths or None)."""
    from .joining import cat
    at = flat_nonzero(flags)
    if not want_counts:
        return at, None
    ends = cat([at[1:], filled(Size((1,)), n, dt.int64, device)])
    return at, ends - at


def _runs_of(x, n, want_ranks, want_counts):
    """(the first element of each run of equal ones in flat ``x``, the number of each element's run or None, run lengths or None)."""
    device, found = x._storage.device, _Counted(x, changed=True, places=want_counts, U=_scatter.width(x.dtype))
    count, cpu = item(found.total), device.is_cpu
    values, at = empty((count,), x.dtype, device), empty((count if want_counts else 1,), dt.int64, device)
    found.run("find_runs", found.x, found.counts, found.total, *(() if cpu else (found.x,)), values, at, *(() if cpu else (n,)))
    rank, lengths = None, found.lengths(at, n) if want_counts else None
    if want_ranks:
        rank = empty((n,), dt.int64, device)
        found.run("rank_nonzero", found.x, found.counts, rank, n)
    return values, rank, lengths


def _results(values, inverse, counts):
    got = (values,) + ((inverse,) if inverse is not None else ()) + ((counts,) if counts is not None else ())
    return got[0] if len(got) == 1 else got


def _invert(rank, order, shape):
    """Which run each element belongs to, at its original place."""
    if order is None:
        return rank.reshape(shape)
    n = order._numel
    out = empty((n,), dt.int64, order._storage.device)
    err = _scatter.code(order._storage.device, "unique", 0, n)
    return _scatter.write_rows(out, order, rank, 1, n, 1, "set", False, err, unique=True).reshape(shape)


def _unique_flat(input, ordered, return_inverse, return_counts):
    x, device, n = input.detach().contiguous().reshape(-1), input._storage.device, input._numel
    if n == 0:
        none = empty((0,), dt.int64, device)
        return _results(x, none.reshape(input.shape) if return_inverse else None, none if return_counts else None)

    def distinct(array):
        if array.dtype.kind != "f" and not return_inverse:              # equal ones are the same to the bit: a sort of values, which is several times as fast
            return np.unique(array, return_counts=return_counts) if return_counts else (np.unique(array),)
        values, _, *more = np.unique(array, True, return_inverse, return_counts, equal_nan=False)       # by first places, as a stable sort has them
        return values, *more

    def runs(array):
        first = np.empty(n, bool)
        first[0] = True
        np.not_equal(array[1:], array[:-1], out=first[1:])
        at = np.flatnonzero(first)
        return array[at], *([np.cumsum(first) - 1] if return_inverse else []), *([np.diff(at, append=n)] if return_counts else [])
    found = _found(x, distinct) if ordered else _found(x, runs, 4 * _FEW)
    if found is not None:
        return _results(found[0], found[1].reshape(input.shape) if return_inverse else None, found[-1] if return_counts else None)
    order = None
    if ordered:
        x, order = _sorted_within(x, n) if x.dtype is dt.int64 and not device.is_cpu and n > _FEW else _radix.sort_rows(x, 1, n)
    values, rank, counts = _runs_of(x, n, return_inverse, return_counts)
    return _results(values, _invert(rank, order, input.shape) if return_inverse else None, counts)


def _sorted_within(x, n):
    """A vector of wide integers in order, and their places: few bits tell those apart that are not far from each other."""
    (low, high), device = bounds(x), x._storage.device
    out = empty((n,), x.dtype, device), empty((n,), dt.int64, device)
    base = (low + 2 ** 63) % 2 ** 64                            # the key of the least
    _tiles.passes(x, 1, n, False, max(1, (high - low).bit_length()), out, base - (base >> 63 << 64))
    return out


def _row_order(rows):
    """Positions that sort rows lexicographically: stable sorts by each column, the last one first."""
    n, width = rows.shape
    order = arange(n, device=rows.device)
    for c in range(width - 1, -1, -1):
        column = _index_rows(rows[:, c].contiguous(), order, (n,), 0, 1, False, "unique")
        order = _index_rows(order, _radix.sort_rows(column, 1, n)[1], (n,), 0, 1, False, "unique")
    return order


def _unique_rows(input, dim, ordered, return_inverse, return_counts):
    if not input.shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    d = wrap_dim(dim, len(input.shape))
    moved = input.detach().movedim(d, 0).contiguous()
    n, device = moved.shape[0], moved._storage.device
    if moved._numel == 0 and n > 0:
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    if list(moved.shape).count(0) > 1:
        raise RuntimeError("Number of zero sized dimensions is more than one, so unique cannot be applied ")
    rows = moved.reshape(n, -1) if n else moved
    order = None
    if ordered and n:
        order = _row_order(rows)
        rows = _index_rows(rows, order, rows.shape, 0, 1, False, "unique")
    flags = _starts(cast(rows[1:] != rows[:-1], dt.int32).sum(1) != 0, n, device) if n else empty((0,), dt.bool_, device)
    at, counts = _runs(flags, n, device, return_counts)
    values = _index_rows(rows, at, rows.shape, 0, 1, False, "unique").reshape(at._numel, *moved.shape[1:]).movedim(0, d)
    return _results(values, _invert(ranks(flags) - 1, order, (n,)) if return_inverse else None, counts)


@composite("unique", samples=lambda: [((np.array([3, 1, 2, 3, 1]),), {})], numpy=lambda x: np.unique(x))
def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The distinct elements (with ``dim``: distinct slices) in ascending order. Waits for the device to count them.

    Args:
        return_inverse: also where each element of ``input`` is found in the result.
        return_counts: also how often each occurs.

    Example:
        >>> clnn.tensor([3, 1, 3]).unique()
        tensor([1, 3])
    """
    flag("_unique2", "sorted", sorted)
    if dim is not None:
        return _unique_rows(input, dim, True, return_inverse, return_counts)
    return _unique_flat(input, True, return_inverse, return_counts)


@composite("unique_consecutive", samples=lambda: [((np.array([1, 1, 2, 3, 3, 1]),), {})])
def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """The first element of each run of equal ones (with ``dim``: of equal slices)."""
    if dim is not None:
        return _unique_rows(input, dim, False, return_inverse, return_counts)
    return _unique_flat(input, False, return_inverse, return_counts)


def _common(a, b):
    return dt.result_type((a.dtype, 2 if a.shape else 1), (b.dtype, 2 if b.shape else 1))


# -- binary search ------------------------------------------------------------------------------------------------------------------------
@composite("searchsorted", repeat=True, numpy=lambda s, v, right=False: np.searchsorted(s, v, "right" if right else "left"), method=False, samples=lambda: [
    ((np.array([1., 3., 5., 7.]), np.array([[3., 6.], [0., 9.]])), {}), ((np.array([1, 3, 3, 7]), np.array([3, 8])), dict(right=True))])
def searchsorted(sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None, out=None):
    """Where each value would be inserted into the sorted innermost dimension so that it stays sorted.

    Args:
        sorted_sequence: (L), or (*, L) with the leading sizes of ``input``.
        input: (*, n), or a number.
        right: after equal elements instead of before (``side='right'`` is the same).
        sorter: the permutation that sorts ``sorted_sequence``, if it is not sorted itself.
    """
    if right.__class__ is not bool:
        flag("searchsorted", "right", right)
    if side not in (None, "left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError("torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True")
    right = right or side == "right"
    seq = sorted_sequence
    number = not isinstance(input, Tensor)
    if len(seq.shape) != 1 and (number or not input.shape):
        raise RuntimeError("torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got boundaries tensor "
                           f"dim({len(seq.shape)}) and input value's dim(0) numel(1)")
    common = dt.result_type((seq.dtype, 2), (dt.scalar_dtype(input), 0)) if number else _common(seq, input)
    values, seq = filled(Size(()), input, common, seq._storage.device) if number else cast(input, common), cast(seq, common)
    if len(seq.shape) != 1 and (len(seq.shape) != len(values.shape) or seq.shape[:-1] != values.shape[:-1]):
        raise RuntimeError("torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input "
                           f"value tensor must match, but we got boundaries tensor {list(seq.shape)} and input value tensor {list(values.shape)}")
    if sorter is not None:
        if sorter.shape != seq.shape:
            raise RuntimeError("torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor "
                               f"{list(seq.shape)}and got sorter tensor {list(sorter.shape)}")
        if sorter.dtype is not dt.int64:
            raise RuntimeError(f"torch.searchsorted(): sorter must be a tensor of long dtype but got dtype {dt.SPOKEN[sorter.dtype.name]}")
        seq = _index_rows(seq, sorter, seq.shape, 0, 1, False, "searchsorted") if len(seq.shape) == 1 else seq.gather(-1, sorter)
    seq, values = seq.detach().contiguous(), values.detach().contiguous()
    device, kind = seq._storage.device, dt.int32 if out_int32 else dt.int64
    r = empty(values.shape, kind, device)
    if r._numel:
        L, single = seq.shape[-1], len(seq.shape) == 1
        n = r._numel if single else values.shape[-1]
        if L == 0:
            return _deliver(filled(r.shape, 0, kind, device), out)
        many = 16 if device.loops else 1
        items = -(-n // many)
        run(device, "indexing/search", dict(T=seq.dtype, TO=kind, RIGHT=right, MANY=many), (items, r._numel // n),
            (_scatter.local_of(items, device) if many == 1 else 1, 1), seq, values, r, L, n, 0 if single else L)
    return _deliver(r, out)


@composite("bucketize", repeat="ready small", method=False, samples=lambda: [((np.array([3., 6.]), np.array([1., 3., 5.])), {})],
           numpy=lambda v, s, right=False: np.searchsorted(s, v, "right" if right else "left"))
def bucketize(input, boundaries, *, out_int32=False, right=False, out=None):
    """The bucket of each value between sorted ``boundaries`` (``searchsorted`` with the operands swapped)."""
    if len(boundaries.shape) != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({len(boundaries.shape)})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right, out=out)


_TESTS = 16


@composite("isin", repeat="ready small", method=False, samples=lambda: [((np.array([[1, 2], [3, 4]]), np.array([2, 4, 9])), {})], numpy=np.isin)
def isin(elements, test_elements, *, assume_unique=False, invert=False, out=None):
    """Whether each element occurs among ``test_elements``."""
    home = elements if isinstance(elements, Tensor) else test_elements
    elements, tests = (t if isinstance(t, Tensor) else tensor(t, device=home.device) for t in (elements, test_elements))
    tests = tests.reshape(-1)
    common = dt.PROMOTE[elements.dtype, tests.dtype]
    elements, tests = cast(elements.detach(), common), cast(tests.detach(), common)
    n = tests._numel
    if n == 0:
        return _deliver(filled(elements.shape, bool(invert), dt.bool_, home._storage.device), out)
    if n <= _TESTS:                                             # compared with each, in one launch
        found = (elements.unsqueeze(-1) == tests).any(-1)
        return _deliver(~found if invert else found, out)
    ordered = _radix.sort_rows(tests.contiguous(), 1, n)[0]
    at = searchsorted(ordered, elements.reshape(-1)).clamp(max=n - 1)
    found = _index_rows(ordered, at, (n,), 0, 1, False, "isin").reshape(elements.shape)
    return _deliver((found != elements) if invert else (found == elements), out)


# ``place`` counts the classes: a division of IDX by their number would cost more than all the rest.
_one_hot = elementwise("_one_hot", "input, place, classes", dict(bool="0", int="(place == input)", float="0"), method=False, inplace=False,
                       checked=dict(bool="0", int="(input < 0 || input >= classes)", float="0"),
                       failure=(RuntimeError, "Class values must be smaller than num_classes."))


@composite("one_hot", method=False, repeat="small", torch="nn.functional.one_hot", samples=lambda: [((np.array([[0, 2], [1, 1]]),), dict(num_classes=4))],
           numpy=lambda x, num_classes: np.eye(num_classes, dtype=np.int64)[x])
def one_hot(tensor, num_classes=-1):
    """1 at the class number along a new last dimension, 0 elsewhere, as int64; without ``num_classes`` it is the greatest number + 1.

    Example:
        >>> clnn.nn.functional.one_hot(clnn.tensor([0, 2]), 3)
        tensor([[1, 0, 0],
                [0, 0, 1]])
    """
    if tensor.dtype is not dt.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    num_classes = whole(num_classes)
    if num_classes == -1:
        if tensor._numel == 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        least, most = bounds(tensor)
        if least < 0:
            raise RuntimeError("Class values must be non-negative.")
        return one_hot(tensor, most + 1)
    if num_classes < 1:
        raise RuntimeError("Class values must be smaller than num_classes." if tensor._numel else "Can not infer total number of classes from empty tensor.")
    shape = (*tensor.shape, num_classes)
    if tensor._numel == 0:
        return filled(Size(shape), 0, dt.int64, tensor._storage.device)
    return _one_hot(tensor.contiguous().unsqueeze(-1), arange(num_classes, device=tensor._storage.device), num_classes)
