"""Views: other shapes and strides on the same memory."""
from __future__ import annotations

from math import prod

from .._tensor import foreign, formats
from .._tensor.declare import composite, kernel, view, with_list
from .._tensor.grad_mode import state
from .._tensor.inplace import type_name
from .._tensor.seen import note, recalled
from .._tensor.tensor import Tensor, make_view, view_of
from .._tensor.worded import absent, looked, refuse
from .._tensor.writing import copy
from ..core import dtype as dt
from ..core import native
from ..core.layout import contiguous_format, preserve_format
from ..core.shape import Size, contiguous_strides, infer_size, is_contiguous, missing, view_strides, whole, wrap_dim
from ..core import symbols
from ..core.symbols import memo
from ..core.warn import first_time, warn
from ..graph import fuse, store
from ..graph.node import Node
from . import creation
from .creation import as_size
from .selection import clone_in


@view("_reshape_view", method=False, vjp=dict(input=lambda g, input_shape: g if g.shape == input_shape else g.reshape(input_shape)))
def _reshape_view(input, size, strides):
    return size, strides, input._offset


_reshape_view.op.grad_name = "ViewBackward0"


def _numbers(size, called=None, what=""):
    """Numbers that were given one by one or as one list; ``called``: the function that asks for some, and its name for them."""
    if len(size) == 1:
        if isinstance(size[0], (tuple, list)):
            size = size[0]
    elif not size and called:
        raise missing(called, what)
    return tuple([s if s.__class__ is int else whole(s) for s in size])


@memo(65536)
def _layout(shape, strides, numel, wanted):
    """(the new shape with its -1 filled in, its strides over the same memory or None, whether these are row-major)."""
    size = Size(infer_size(wanted, numel))
    steps = strides if not numel and size == shape else view_strides(shape, strides, size)
    return size, steps, steps is not None and is_contiguous(size, steps)


def _seen_as(input, shape, strides, rows):
    """:func:`_reshape_view` in fewer steps: ``rows`` as from :func:`_layout`."""
    if input.__class__ is not Tensor or foreign.early is not None:
        return _reshape_view(input, shape, strides)
    r = view_of(input, shape, strides, input._offset, input._numel, rows and not input._offset)
    if input._rg and state.grad:
        _reshape_view.op.attach(_reshape_view.op, r, (input, shape, strides))
    return r


@composite("view", complex=True, seen=True)
def view_(input, *size, dtype=None):
    """The same memory in another shape (one size may be -1), or reinterpreted as another dtype of the same width."""
    if dtype is not None or (len(size) == 1 and isinstance(size[0], dt.dtype)):
        return _bitcast(input, dtype or size[0])
    shape, strides, rows = _layout(input.shape, input._strides, input._numel, _numbers(size, "view", "size"))
    if strides is None:
        raise RuntimeError(f"view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
                           f"contiguous subspaces). Use .reshape(...) instead. (view: {tuple(input.shape)} -> {tuple(shape)})")
    return _seen_as(input, shape, strides, rows)


def _bitcast(input, dtype):
    if dtype is input.dtype:
        return input.view(input.shape)
    input._storage.buffer()
    return make_view(input, *_bitcast_geometry(input, dtype), dt.noticed(dtype))


def _bitcast_geometry(input, dtype):
    """Shape, strides and offset in elements of ``dtype``: the last dimension changes its length when the width does."""
    old, new = input.dtype.itemsize, dtype.itemsize
    shape, strides, offset = input.shape, input._strides, input._offset
    if old == new:
        return shape, strides, offset
    if not shape:
        raise RuntimeError(f"self.dim() cannot be 0 to view {type_name(input.dtype)} as {type_name(dtype)} (different element sizes)")
    if strides[-1] != 1:
        raise RuntimeError(f"self.stride(-1) must be 1 to view {type_name(input.dtype)} as {type_name(dtype)} (different element sizes), but got {strides[-1]}")
    if old > new:
        k = old // new
        return (*shape[:-1], shape[-1] * k), (*[s * k for s in strides[:-1]], 1), offset * k
    k = new // old
    if shape[-1] % k or offset % k or any(s % k for s in strides[:-1]):
        what = [("size(-1)", shape[-1]), ("storage_offset()", offset), *[(f"stride({d})", s) for d, s in enumerate(strides[:-1])]]
        name, value = next((name, value) for name, value in what if value % k)
        raise RuntimeError(f"self.{name} must be divisible by {k} to view {type_name(input.dtype)} as {type_name(dtype)} (different element sizes), "
                           f"but got {value}")
    return (*shape[:-1], shape[-1] // k), (*[s // k for s in strides[:-1]], 1), offset // k


@composite("reshape", complex=True, seen=True)
def reshape(input, *shape):
    """The elements in another shape: a view when the strides allow it, else a copy."""
    size, strides, rows = _layout(input.shape, input._strides, input._numel, _numbers(shape, "reshape", "shape"))
    if strides is not None:
        return _seen_as(input, size, strides, rows)
    copied = contiguous(input)
    result = _reshape_view(copied, size, contiguous_strides(size))
    if result._grad_fn is not None and copied is not input:
        result._grad_fn.label = "UnsafeViewBackward0"
    return result


@composite("view_as", complex=True)
def view_as(input, other):
    """``view`` in the shape of ``other``."""
    return view_(input, other.shape)


@composite("reshape_as", complex=True)
def reshape_as(input, other):
    """``reshape`` to the shape of ``other``."""
    return reshape(input, other.shape)


@kernel("contiguous", complex=True, repeat="ready small", vjp=dict(input=lambda g: g))
def contiguous(input):
    return copy(input)


_copy_contiguous = contiguous


@composite("_contiguous", complex=True, method=False)
def contiguous(input, memory_format=None):          # noqa: F811
    """The tensor itself when its elements lie in row-major order (or that of ``memory_format``), else a copy that does."""
    if memory_format is not None and memory_format is not contiguous_format:
        kept = memory_format is preserve_format and formats.follows(input, memory_format)      # refused only where there is something to arrange
        strides = None if kept else formats.strides_of(memory_format, input.shape)
        return input if kept or formats.follows(input, memory_format) else clone_in(input, strides)
    return input if input._dense or input.is_contiguous() else _copy_contiguous(input)


Tensor.contiguous = native.front(contiguous, dense=True)


def owned(result, input):
    """``result``, which may be a view of ``input`` where there is nothing to rearrange, on memory of its own: a write to it changes nothing else."""
    return result.clone() if result._storage is input._storage else result


def arranged(result, input):
    """``result`` on memory of its own, in the channels-last format that ``input`` has, else in rows."""
    format = formats.suggested(input)
    return owned(result.contiguous() if format is None else result.contiguous(memory_format=format), input)


_copy_contiguous.op.grad_name = "CloneBackward0"


@view("permute", steady=True, vjp=dict(input=lambda g, dims: g.permute(_inverse(dims, g.ndim))))
def _permute(input, dims):
    rank = len(input.shape)
    if len(dims) != rank:
        raise RuntimeError(f"permute: number of dimensions in the tensor input does not match the length of the desired ordering "
                           f"of dimensions i.e. input.dim() = {rank} is not equal to len(dims) = {len(dims)}")
    order = [wrap_dim(d, rank) for d in dims]
    if len(set(order)) != rank:
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return tuple(input.shape[d] for d in order), tuple(input._strides[d] for d in order), input._offset


def _inverse(dims, rank):
    inv = [0] * rank
    for i, d in enumerate(dims):
        inv[d % rank] = i
    return inv


_look_permute, _look_expand = looked("permute", method=True, outer=True), looked("expand", method=True, outer=True)


def permute(input, *dims, **named):
    """Dimensions in another order."""
    if named:
        _look_permute((input, *dims), named)
        dims = with_list(dims, named)
    try:
        return _permute(input, _numbers(dims, "permute", "dims"))
    except TypeError:
        refuse("permute", (input, *dims), named, True)
        raise


Tensor.permute = permute


@view("transpose", steady=True, aliases=("swapaxes", "swapdims"), vjp=dict(input=lambda g, dim0, dim1: g.transpose(dim0, dim1)), inplace=False)
def transpose(input, dim0, dim1):
    """Two dimensions exchanged."""
    rank = len(input.shape)
    a, b = wrap_dim(dim0, rank), wrap_dim(dim1, rank)
    shape, strides = list(input.shape), list(input._strides)
    if rank:
        shape[a], shape[b], strides[a], strides[b] = shape[b], shape[a], strides[b], strides[a]
    return tuple(shape), tuple(strides), input._offset


@view("t", steady=True, vjp=dict(input=lambda g: g.t()))
def t(input):
    """The transpose of a matrix; vectors and 0-d tensors as they are."""
    if len(input.shape) > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {len(input.shape)}D")
    return input.shape[::-1], input._strides[::-1], input._offset


_turned: dict = {}          # how matrices lie -> how their transposes do


def _reversed_dimensions(self):
    if self.ndim == 2:
        key = recalled(_turned, (self,))
        if key.__class__ is not Tensor:
            r = _permute(self, (1, 0))
            if key is not None:
                note(_turned, key, self, r)
        return r if key.__class__ is not Tensor else key
    if self.ndim == 0:
        if first_time("T of a scalar"):
            warn("Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases.")
    elif self.ndim != 2 and first_time("T"):
        warn("The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will throw an error in a future release. "
             "Consider `x.mT` to transpose batches of matrices or `x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor.")
    return _permute(self, tuple(range(self.ndim - 1, -1, -1)))


Tensor.T = property(native.front(_reversed_dimensions, seen=_turned))


def _matrices_turned(self):
    if self.ndim == 0:
        if first_time("mT of a scalar"):
            warn("Tensor.mT is deprecated on 0-D tensors. This function is the identity in these cases.")
        return self
    if self.ndim < 2:
        raise RuntimeError(f"tensor.mT is only supported on matrices or batches of matrices. Got {self.ndim}-D tensor.")
    return self.transpose(-2, -1)


Tensor.mT = property(_matrices_turned)


@view("_expand", steady=True, method=False, vjp=dict(input=lambda g: g))
def _expand(input, size):
    lead = len(size) - len(input.shape)
    if lead < 0:
        raise RuntimeError(f"expand({dt.type_in_errors(input.dtype)}{{{list(input.shape)}}}, size={list(size)}): the number of sizes provided ({len(size)}) "
                           f"must be greater or equal to the number of dimensions in the tensor ({len(input.shape)})")
    out, strides = [], []
    for i, want in reversed(tuple(enumerate(size))):            # the last that does not fit is named
        have, stride = (input.shape[i - lead], input._strides[i - lead]) if i >= lead else (1, 0)
        if want == -1:
            if i < lead:
                raise RuntimeError(f"The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension {i}")
            want = have
        if have != want and have != 1:
            raise RuntimeError(f"The expanded size of the tensor ({want}) must match the existing size ({have}) at non-singleton dimension {i}.  "
                               f"Target sizes: {list(size)}.  Tensor sizes: {list(input.shape)}")
        if want < 0:
            raise RuntimeError(f"expand: size {want} of dimension {i} is negative; only -1, which keeps a size, may be")
        if i < lead and not symbols.is_number(want) and want == 1:     # PyTorch's steps of new dimensions of one element
            stride = strides[-1] * out[-1] if out else 0
        strides.append(stride if have == want else 0)
        out.append(want)
    return tuple(out[::-1]), tuple(strides[::-1]), input._offset


_expand.op.grad_name = "ExpandBackward0"


def expand(input, *size, implicit=False, **named):
    """Dimensions of size 1 repeated without a copy; -1 keeps a size."""
    if named or implicit is not False:
        _look_expand((input, *size), {**named, "implicit": implicit})
        size = with_list(size, named)
    try:
        return _expand(input, _numbers(size, "expand", "size"))
    except TypeError:
        refuse("expand", (input, *size), named, True)
        raise


def expand_as(self, other):
    """``expand`` to the shape of ``other``."""
    if not isinstance(other, Tensor):
        refuse("expand_as", (self, other), None, True)
    return expand(self, other.shape)


Tensor.expand, Tensor.expand_as = expand, expand_as


@composite("broadcast_to", complex=True, seen=True)
def broadcast_to(input, *size):
    """``expand`` under NumPy's name."""
    return expand(input, *size)


@view("_squeeze", steady=True, method=False, vjp=dict(input=lambda g, old: g.reshape(old)))
def _squeeze(input, dims, old):
    keep = [i for i in range(len(input.shape)) if not (i in dims and input.shape[i] == 1)]
    return tuple(input.shape[i] for i in keep), tuple(input._strides[i] for i in keep), input._offset


_squeeze.op.grad_name = "SqueezeBackward0"


@composite("squeeze", complex=True, seen=True)
def squeeze(input, dim=absent, *more):
    """Without dimensions of size 1 (all, or those given)."""
    rank = len(input.shape)
    dims = range(rank) if dim is absent else [wrap_dim(d, rank) for d in ((dim, *more) if more else dim if isinstance(dim, (tuple, list)) else (dim,))]
    if len(set(dims)) < len(dims):
        raise RuntimeError(f"dim {max(dims, key=dims.count)} appears multiple times in the list of dims")
    return _squeeze(input, tuple(dims), input.shape)


@view("unsqueeze", steady=True, vjp=dict(input=lambda g, dim: g.squeeze(dim)))
def unsqueeze(input, dim):
    """With a new dimension of size 1 at ``dim``."""
    rank = len(input.shape)
    d = wrap_dim(dim, rank + 1)
    stride = input.shape[d] * input._strides[d] if d < rank else 1
    return input.shape[:d] + (1,) + input.shape[d:], input._strides[:d] + (stride,) + input._strides[d:], input._offset


@memo(65536, typed=True)
def _merged(shape, start_dim, end_dim):
    """``shape`` with the dimensions ``start_dim..end_dim`` merged; None where that changes nothing."""
    a, b = wrap_dim(start_dim, len(shape)), wrap_dim(end_dim, len(shape))
    if a > b:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    return (*shape[:a], prod(shape[a:b + 1]), *shape[b + 1:]) if a < b else None


@composite("flatten", complex=True, seen=True)
def flatten(input, start_dim=0, end_dim=-1):
    """Dimensions ``start_dim..end_dim`` merged into one."""
    if not input.shape:
        wrap_dim(start_dim, 0), wrap_dim(end_dim, 0)
        return input.reshape(1)
    shape = _merged(input.shape, start_dim, end_dim)
    return input if shape is None else reshape(input, shape)


@composite("ravel", complex=True, seen=True)
def ravel(input):
    """One dimension."""
    return contiguous(input).reshape(-1)


@composite("unflatten", complex=True, seen=True)
def unflatten(input, dim, sizes):
    """Dimension ``dim`` split into ``sizes``."""
    d = wrap_dim(dim, len(input.shape))
    if isinstance(sizes, (list, tuple)) and not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    try:
        sizes = infer_size(_numbers(sizes), input.shape[d])
    except RuntimeError as exc:
        if not str(exc).startswith("shape '"):
            raise RuntimeError(f"unflatten got an unexpected error:\n{exc}") from None
        raise RuntimeError(f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {d} ({input.shape[d]}) in the input tensor") from None
    return reshape(input, tuple(input.shape[:d]) + tuple(sizes) + tuple(input.shape[d + 1:]))


# -- arbitrary strides --------------------------------------------------------------------------------------------------------------
def _region_grad(g, size, stride, offset, home):
    shape, strides, start, span = home
    memory = embed_strided(g, (span,), size, stride, offset)
    if _overlaps(shape, strides):                               # elements of the input at one place, as of an expanded one, share its gradient
        memory = memory / embed_strided(creation.filled(shape, 1, g.dtype, g._home), (span,), shape, strides, start)
    return memory.as_strided(shape, strides, start)


@view("_as_strided", method=False, vjp=dict(input=_region_grad))
def _as_strided(input, size, stride, offset, home):
    return size, stride, offset


_as_strided.op.grad_name = "AsStridedBackward0"


@composite("as_strided", complex=True)
def as_strided(input, size, stride, storage_offset=None):
    """A view with given sizes, strides and offset (in elements of the storage)."""
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    size, stride = _numbers(size), _numbers(stride)
    offset = input._offset if storage_offset is None else whole(storage_offset)
    if any(s < 0 for s in stride):
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    if any(n < 0 for n in size):
        raise RuntimeError(f"as_strided: sizes must not be negative, got sizes {list(size)}")
    last = offset + 1 + sum((n - 1) * s for n, s in zip(size, stride)) if 0 not in size else 0
    if last * input.dtype.itemsize > input._storage.nbytes:
        raise RuntimeError(f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and itemsize {input.dtype.itemsize} "
                           f"requiring a storage size of {last * input.dtype.itemsize} are out of bounds for storage of size {input._storage.nbytes}")
    home = (input.shape, input._strides, input._offset, input._storage.nbytes // input.dtype.itemsize)      # not the input: it may be overwritten
    return _as_strided(input, size, stride, offset, home)


def _overlaps(shape, strides):
    dims = sorted((s, n) for n, s in zip(shape, strides) if n > 1)
    reach = 0
    for s, n in dims:
        if s <= reach:
            return True
        reach += s * (n - 1)
    return False


def _region_of(g, size, stride, offset):
    """The region of a dense ``g``, which may itself lie anywhere in its memory."""
    g = g.contiguous()
    return g.as_strided(size, stride, offset + g._offset)


@kernel("embed_strided", complex=True, method=False, repeat="whole", vjp=dict(input=_region_of))
def embed_strided(input, base_shape, size, stride, offset):
    """Zeros of ``base_shape`` whose strided region holds ``input``; the transpose of ``as_strided`` (overlaps are added up)."""
    base_shape = Size(base_shape)
    z = creation.filled(base_shape, 0, input.dtype, input._storage.device)
    if 0 in size:
        return z
    if _overlaps(size, stride):
        n = base_shape.numel()
        where = creation.arange(n, device=input._storage.device).as_strided(tuple(size), tuple(stride), offset).reshape(-1)
        return z.reshape(-1).index_add(0, where, input.reshape(-1)).reshape(base_shape)
    z._storage.buffer()
    source = input if input.shape == Size(size) else input.reshape(size)
    node = Node(fuse.CAST, ((source._storage.buffer(), z.dtype, source._offset, source._strides),), z.dtype, z.dtype, source.shape, source._numel, z._storage.device,
                1, 1, False)
    store.store_into(z._storage.device, node, z._storage.buf, offset, source.shape, tuple(stride), z.dtype)
    return z


@view("diagonal", steady=True, vjp=dict(input=lambda g, input_shape, offset, dim1, dim2: embed_strided(
    g, input_shape, *_diagonal(input_shape, contiguous_strides(input_shape), 0, offset, dim1, dim2))))
def diagonal(input, offset=0, dim1=0, dim2=1):
    """The diagonal of two dimensions, as the last dimension."""
    return _diagonal(input.shape, input._strides, input._offset, offset, dim1, dim2)


def _diagonal(shape, strides, base, offset, dim1, dim2):
    a, b = wrap_dim(dim1, len(shape)), wrap_dim(dim2, len(shape))
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    offset = whole(offset)
    n = max(0, min(shape[a], shape[b] - offset) if offset >= 0 else min(shape[a] + offset, shape[b]))
    start = base + (offset * strides[b] if offset >= 0 else -offset * strides[a]) * (n > 0)
    keep = [i for i in range(len(shape)) if i not in (a, b)]
    return tuple(shape[i] for i in keep) + (n,), tuple(strides[i] for i in keep) + (strides[a] + strides[b],), start


@view("unfold", steady=True, vjp=dict(input=lambda g, input_shape, dimension, size, step: embed_strided(
    g, input_shape, *_windows(input_shape, contiguous_strides(input_shape), 0, dimension, size, step))))
def unfold(input, dimension, size, step):
    """Windows of length ``size`` every ``step`` along ``dimension``, as a new last dimension."""
    return _windows(input.shape, input._strides, input._offset, dimension, size, step)


def _windows(shape, strides, base, dimension, size, step):
    d = wrap_dim(dimension, len(shape))
    size, step, have = whole(size), whole(step), shape[d] if shape else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > have:
        raise RuntimeError(f"maximum size for tensor at dimension {d} is {have} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if not shape:
        return (size,), (1,), base
    shape, strides = tuple(shape), tuple(strides)
    count = (have - size) // step + 1
    return shape[:d] + (count,) + shape[d + 1:] + (size,), strides[:d] + (strides[d] * step,) + strides[d + 1:] + (strides[d],), base


Tensor.as_size = staticmethod(as_size)
