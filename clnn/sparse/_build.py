"""Making sparse tensors, from places and values or from dense tensors, and dense ones from them."""
from __future__ import annotations

import math

from .._tensor.device import resolve
from .._tensor.interop import read
from .._tensor.tensor import Tensor
from ..core import dtype as dt
from ..core.shape import Size
from ..ops import creation
from ._pattern import Pattern, flat_key, fn, pattern_of, remember, settled, unflat
from ._tensor import COO, CSC, CSR, LAYOUT_NAMES, SparseTensor, _sparse_values, make


class check_sparse_tensor_invariants:
    """Whether constructors check that places lie within the tensor, which takes a look at the values: a switch, a context and a decorator.

    Without it a wrong place is reported when it is first used. Off at the start, as in PyTorch.

    Example:
        >>> with clnn.sparse.check_sparse_tensor_invariants():
        ...     clnn.sparse_coo_tensor([[5]], [1.], (2,))
        Traceback (most recent call last):
            ...
        RuntimeError: size is inconsistent with indices: for dim 0, size is 2 but found index 5
    """

    _on = False

    def __init__(self, enable=True):
        self._wanted, self._before = enable, []

    @staticmethod
    def is_enabled():
        """Whether constructors check."""
        return check_sparse_tensor_invariants._on

    @staticmethod
    def enable():
        """Check from now on."""
        check_sparse_tensor_invariants._on = True

    @staticmethod
    def disable():
        """Do not check from now on."""
        check_sparse_tensor_invariants._on = False

    def __enter__(self):
        self._before.append(check_sparse_tensor_invariants._on)
        check_sparse_tensor_invariants._on = self._wanted
        return self

    def __exit__(self, *exc):
        check_sparse_tensor_invariants._on = self._before.pop()

    def __call__(self, function):
        def checked(*args, **kwargs):
            with type(self)(self._wanted):
                return function(*args, **kwargs)
        return checked


def _checks(wanted):
    return check_sparse_tensor_invariants._on if wanted is None else wanted


# -- places and values ----------------------------------------------------------------------------------------------------------------
def _parts(values, dtype, device, *places):
    """(values, places) as tensors on one device; floats in lists get the default dtype."""
    given = [v for v in (values, *places) if isinstance(v, Tensor)]
    home = device if device is not None else (values if isinstance(values, Tensor) else given[0] if given else None)
    home = home.device if isinstance(home, Tensor) else home
    values = creation.as_tensor(values, dtype=dt.as_dtype(dtype), device=home)
    return values, [creation.as_tensor(p, device=home) for p in places]


def _places(t, name, cut=False):
    """Indices in memory of their own; ``cut``: whole numbers of any dtype."""
    if t.dtype.differentiable or t.dtype is dt.bool_:
        if t._numel and not cut:
            raise RuntimeError(f"{name} must be an int64 tensor, but got {t.dtype}")
        t = t.detach().to(dt.int64)
    return t.detach()._snapshot()


def _finish(pattern, values, kind, shape, requires_grad):
    part = _sparse_values(values) if values._rg and not requires_grad else values._alias()
    t = make(pattern, part, kind, shape)
    return t.requires_grad_(True) if requires_grad else t


def sparse_coo_tensor(indices=None, values=None, size=None, *, dtype=None, device=None, pin_memory=False, requires_grad=False, check_invariants=None,
                      is_coalesced=None):
    """A tensor of which the elements ``values`` at ``indices`` are stored; values at one place add up.

    Args:
        indices: int64 (sparse dimensions, nnz).
        values: (nnz, *dense dimensions). Gradients flow to it.
        size: the shape; by default the smallest that holds all. ``sparse_coo_tensor(size)`` alone has no elements.
        check_invariants: look at the indices now; by default as :class:`clnn.sparse.check_sparse_tensor_invariants` says.
        is_coalesced: promise that the indices are in order and differ.

    Raises:
        RuntimeError: numbers of indices, values and dimensions do not fit, or (checked) an index is out of range.

    Example:
        >>> clnn.sparse_coo_tensor([[0, 1], [2, 0]], [3., 4.], (2, 3)).to_dense()
        tensor([[0., 0., 3.],
                [4., 0., 0.]])
    """
    if values is None:
        size = indices if size is None else size
        return _empty(size, dtype, device, requires_grad)
    values, (given,) = _parts(values, dtype, device, indices)
    indices = _places(given, "indices", True).to(dt.int64)
    if indices.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(indices.shape)}")
    if not values.shape:
        values = values.expand((indices.shape[1],))
    sparse, dense = indices.shape[0], values.ndim - 1
    if size is None:
        top = (indices.amax(1) + 1).tolist() if indices._numel else [0] * sparse
        for d, low in enumerate(indices.amin(1).tolist() if indices._numel else ()):
            if low < 0:
                raise RuntimeError(f"found negative index {low} for dim {d}")
        size = (*top, *values.shape[1:])
    size = Size(size)
    if len(size) != sparse + dense:
        raise RuntimeError(f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = {sparse}, dense_dim = {dense}")
    if indices.shape[1] != values.shape[0]:
        raise RuntimeError(f"indices and values must have same nnz, but got nnz from indices: {indices.shape[1]}, nnz from values: {values.shape[0]}")
    if tuple(size[sparse:]) != tuple(values.shape[1:]):
        raise RuntimeError(f"values has incorrect size, expected {[indices.shape[1], *size[sparse:]]}, got {list(values.shape)}")
    if _checks(check_invariants):
        _check_places(indices, size)
    pattern = None if is_coalesced else pattern_of(given, size[:sparse])
    if pattern is None:
        pattern = Pattern(size[:sparse], settled(indices.contiguous()), bool(is_coalesced))
        remember(given, pattern)
    return _finish(pattern, values, COO, size, requires_grad)


def _check_places(indices, size):
    if not indices._numel:
        return
    places = read(indices)
    for d in range(len(places)):
        low, high = int(places[d].min()), int(places[d].max())
        if low < 0:
            raise RuntimeError(f"found negative index {low} for dim {d}")
        if high >= size[d]:
            raise RuntimeError(f"size is inconsistent with indices: for dim {d}, size is {size[d]} but found index {high}")


def _empty(size, dtype, device, requires_grad, sparse=None):
    size = creation.as_size((size if isinstance(size, int) else tuple(size),))
    sparse = len(size) if sparse is None else sparse
    place = resolve(device)
    values = creation.zeros((0, *size[sparse:]), dtype=dtype, device=place)
    t = make(Pattern(size[:sparse], creation.zeros((sparse, 0), dtype=dt.int64, device=place), True), values, COO, size)
    return t.requires_grad_(requires_grad)


def rows_tensor(numbers, rows, shape):
    """The tensor of which ``rows`` (nnz, *) are the rows called ``numbers`` (nnz), one or several times."""
    return make(Pattern(shape[:1], numbers.to(dt.int64).unsqueeze(0)), rows, COO, Size(shape))


def nothing_of(size, sparse_dim, dtype, device):
    """A tensor without elements."""
    return _empty(size, dtype, device, False, sparse_dim)


def nothing(like, dtype, device):
    """A tensor like ``like`` without elements."""
    t = nothing_of(like.shape, like.sparse_dim(), dtype, device)
    return t if like.layout is COO else to_layout(t, like.layout)


def sparse_compressed_tensor(compressed_indices, plain_indices, values, size=None, *, dtype=None, layout=None, device=None, pin_memory=False,
                             requires_grad=False, check_invariants=None):
    """A matrix by compressed rows (``layout=clnn.sparse_csr``) or columns (``clnn.sparse_csc``): where each starts, and the others' numbers.

    Example:
        >>> m = clnn.sparse_compressed_tensor([0, 1, 2], [1, 0], [3.0, 4.0], (2, 2), layout=clnn.sparse_csr)
        >>> m.to_dense()
        tensor([[0., 3.],
                [4., 0.]])
    """
    if layout not in (CSR, CSC):
        raise RuntimeError(f"sparse_compressed_tensor: the layout is clnn.sparse_csr or clnn.sparse_csc; got {layout}")
    side, start_name, other_name = (0, "crow_indices", "col_indices") if layout == CSR else (1, "ccol_indices", "row_indices")
    values, places = _parts(values, dtype, device, compressed_indices, plain_indices)
    starts, others = (_places(p, n).contiguous() for p, n in zip(places, (start_name, other_name)))
    if starts.ndim != 1 or others.ndim != 1 or values.ndim != 1:
        raise NotImplementedError(f"sparse_compressed_tensor: one matrix of numbers, no stack of them; got {start_name} of shape {tuple(starts.shape)}, "
                                  f"{other_name} {tuple(others.shape)}, values {tuple(values.shape)}")
    if starts.dtype is not others.dtype:
        raise RuntimeError(f"{start_name} and {other_name} must have the same dtype, but got {starts.dtype} and {others.dtype}")
    if size is None:
        top = int(others.max()) + 1 if others._numel else 0
        size = (starts._numel - 1, top) if side == 0 else (top, starts._numel - 1)
    size = Size(size)
    if starts._numel != size[side] + 1:
        raise RuntimeError(f"{start_name}.shape[-1] must be equal to the number of {'rows' if side == 0 else 'columns'} + 1 = {size[side] + 1}, but got "
                           f"{starts._numel}")
    if others._numel != values._numel:
        raise RuntimeError(f"number of {other_name} and values must be equal, but got {others._numel} and {values._numel}")
    if _checks(check_invariants):
        _check_compressed(starts, others, size, side, start_name, other_name)
    pattern = Pattern(size, None, side == 0, (side, settled(starts), settled(others)))
    return _finish(pattern, values, CSR if side == 0 else CSC, size, requires_grad)


def _check_compressed(starts, others, size, side, start_name, other_name):
    ends, places = read(starts), read(others)
    for at, wanted, name in ((0, 0, "0"), (-1, len(places), "nnz")):
        if ends[at] != wanted:
            raise RuntimeError(f"`{start_name}[..., {at}] == {name}` is not satisfied.")
    if (ends[1:] < ends[:-1]).any():
        raise RuntimeError(f"`0 <= {start_name}[..., 1:] - {start_name}[..., :-1]` is not satisfied.")
    if len(places) and (places.min() < 0 or places.max() >= size[1 - side]):
        raise RuntimeError(f"`0 <= {other_name} < {'ncols' if side == 0 else 'nrows'}` is not satisfied.")


def sparse_csr_tensor(crow_indices, col_indices, values, size=None, *, dtype=None, device=None, pin_memory=False, requires_grad=False,
                      check_invariants=None):
    """A matrix by compressed rows.

    Args:
        crow_indices: (rows + 1), where each row starts among the elements.
        col_indices: (nnz), the column of each.
        values: (nnz).

    Example:
        >>> clnn.sparse_csr_tensor([0, 1, 3], [2, 0, 2], [3., 4., 5.], (2, 3)) @ clnn.ones(3, 1)
        tensor([[3.],
                [9.]])
    """
    return sparse_compressed_tensor(crow_indices, col_indices, values, size, dtype=dtype, layout=CSR, device=device, requires_grad=requires_grad,
                                    check_invariants=check_invariants)


def sparse_csc_tensor(ccol_indices, row_indices, values, size=None, *, dtype=None, device=None, pin_memory=False, requires_grad=False,
                      check_invariants=None):
    """A matrix by compressed columns: where each starts, (columns + 1), and the row of each element.

    Example:
        >>> m = clnn.sparse_csc_tensor([0, 1, 2], [1, 0], [3.0, 4.0], (2, 2))
        >>> m.to_dense()
        tensor([[0., 4.],
                [3., 0.]])
    """
    return sparse_compressed_tensor(ccol_indices, row_indices, values, size, dtype=dtype, layout=CSC, device=device, requires_grad=requires_grad,
                                    check_invariants=check_invariants)


# -- from and to dense ----------------------------------------------------------------------------------------------------------------
def to_sparse(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
    """The elements that are not zero, as a sparse tensor. With ``sparse_dim``, places in the first dimensions, and whole blocks as values."""
    if isinstance(sparse_dim, str):
        sparse_dim, layout = None, sparse_dim
    layout = COO if layout is None else layout
    if layout not in LAYOUT_NAMES:
        raise NotImplementedError(f"to_sparse: clnn has the layouts sparse_coo, sparse_csr and sparse_csc; got {layout}")
    if isinstance(self, SparseTensor):
        return to_layout(self, layout)
    rank = self.ndim
    sparse = rank if sparse_dim is None else sparse_dim
    if not 0 < sparse <= rank and rank:
        raise RuntimeError(f"sparse_dim argument must be in >0 and <={rank}, but got {sparse}")
    sizes, dense = tuple(self.shape[:sparse]), tuple(self.shape[sparse:])
    flat = self.reshape(math.prod(sizes), *dense)
    found = flat.detach() != 0
    if dense:
        found = found.reshape(found.shape[0], -1).any(1)
    keys = fn("nonzero")(found).reshape(-1)
    if not rank:
        places = creation.zeros((0, keys._numel), dtype=dt.int64, device=self.device)
    else:
        places = unflat(keys, sizes)
    t = make(Pattern(sizes, settled(places), True), flat.index_select(0, keys), COO, self.shape)
    return t if layout == COO else to_layout(t, layout)


def to_layout(t, wanted):
    """``t`` in another sparse layout; the values keep their order where they can."""
    wanted = next(k for k in LAYOUT_NAMES if k == wanted)
    if t.layout is wanted:
        return t
    if wanted is COO:
        return make(t.pattern, t.part, COO, t.shape)
    if len(t.pattern.sizes) != 2 or t.dense_dim():
        raise RuntimeError(f"to_sparse_{'csr' if wanted is CSR else 'csc'} expects a matrix of numbers; got {t.sparse_dim()} sparse and {t.dense_dim()} dense "
                           "dimensions")
    if wanted is CSR:
        t = coalesce(t)
        return make(t.pattern, t.part, CSR, t.shape)
    t = coalesce(t)
    packed = t.pattern.packed(1)
    pattern = Pattern(t.pattern.sizes, t.pattern.indices.index_select(1, packed.place))
    pattern.compressed = (1, packed.start.to(dt.int64), packed.other.to(dt.int64))
    return make(pattern, t.part.index_select(0, packed.place), CSC, t.shape)


def coalesce(t):
    """``t`` with its places in order and values at one place added up."""
    pattern, inverse = t.pattern.merged()
    if pattern is t.pattern:
        return t
    if inverse is None:
        return make(pattern, t.part, COO, t.shape)
    return make(pattern, added(t.part, inverse, pattern.nnz), COO, t.shape)


def added(part, numbers, count):
    """(count, *): row n is the sum of the rows of ``part`` whose number is n."""
    if part.dtype is dt.bool_:
        return added(part.to(dt.uint8), numbers, count) != 0
    return part.new_zeros((count, *part.shape[1:])).index_add(0, numbers, part)


def to_dense(t, dtype=None, *, masked_grad=None):
    """``t`` with all its elements."""
    if dtype is not None:
        raise RuntimeError("dtype argument is not supported by sparse_to_dense")
    pattern = t.pattern
    if not pattern.sizes:
        return t.part.sum(0)
    return added(t.part, pattern.key(), math.prod(pattern.sizes)).reshape(t.shape)


def sparse_mask(self, mask):
    """The elements of ``self``, dense or sparse, at the places of the sparse ``mask``."""
    if not isinstance(mask, SparseTensor):
        raise RuntimeError("sparse_mask expected a sparse mask")
    if self.shape != mask.shape:
        raise RuntimeError(f"sparse_mask(): operands have incompatible sizes; self has size {list(self.shape)} but mask has size {list(mask.shape)}")
    if isinstance(self, SparseTensor):
        from ._operators import matched
        return make(mask.pattern, matched(self, mask.pattern), mask.layout, mask.shape)
    sizes = mask.pattern.sizes
    flat = self.reshape(math.prod(sizes), *self.shape[len(sizes):])
    return make(mask.pattern, flat.index_select(0, mask.pattern.key()), mask.layout, mask.shape)


__all__ = ["flat_key"]
