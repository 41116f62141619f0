"""The sparse forms of operators, by the operators' names: what :class:`clnn._tensor.foreign.NoStrides` looks up.

A form gets the arguments of the operator as they were given. What keeps zeros is applied to the values.
"""
from __future__ import annotations

from .._tensor.tensor import Tensor
from ..core import dtype as dt
from ..core.shape import wrap_dim
from ..ops import creation
from . import _places, _products
from ._build import added, coalesce, nothing, sparse_mask, to_dense, to_layout
from ._pattern import Pattern, fn, narrow, unflat
from ._tensor import COO, LAYOUT_NAMES, SparseTensor, make

# Functions with f(0) = 0, of values that are added up first; and those that are linear, too.
_KEEP_ZERO = """abs asin asinh atan atanh ceil erf erfinv expm1 floor frac log1p relu round sgn sign signbit sin sinh sqrt square tan tanh trunc isinf isnan
isposinf isneginf nan_to_num angle""".split()
_LINEAR = "neg positive deg2rad rad2deg real imag conj resolve_conj resolve_neg conj_physical".split()


def _on_values(name):
    def form(input, *args, **kwargs):
        return input.like(fn(name)(input.part, *args, **kwargs))
    return form


def _on_merged_values(name):
    def form(input, *args, **kwargs):
        t = merged(input)
        return t.like(fn(name)(t.part, *args, **kwargs))
    return form


def merged(t):
    """``t`` with each place once: what is not linear asks for."""
    return t if t.layout is not COO else coalesce(t)


def _number(x):
    """Whether ``x`` is a number or a dense tensor of no dimensions."""
    return not isinstance(x, Tensor) or not isinstance(x, SparseTensor) and not x.shape


# -- sums -----------------------------------------------------------------------------------------------------------------------------
def _no_sum():
    return RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")


def add(a, b, alpha=1, **kwargs):
    """``a + alpha * b``: sparse where both are."""
    if _number(a) or _number(b):
        raise _no_sum()
    if alpha != 1:
        b = b * alpha
    if not isinstance(a, SparseTensor):
        return _onto(a, b)
    if not isinstance(b, SparseTensor):
        return _onto(b, a)
    _same_shape("add", a, b)
    dtype = dt.promote_types(a.dtype, b.dtype)
    if a.pattern is b.pattern and a.pattern.ordered:
        return a.like(a.part + b.part)
    kind, both = a.layout, a.pattern.ordered and b.pattern.ordered or a.layout is not COO
    a, b = _alike(a, b)
    places = fn("cat")([a.pattern.indices, b.pattern.indices], 1)
    r = make(Pattern(a.pattern.sizes, places), fn("cat")([a.part.to(dtype), b.part.to(dtype)]), COO)
    return to_layout(coalesce(r), kind) if both else r


def _alike(a, b):
    """Both by coordinates, with as many sparse dimensions."""
    a, b = to_layout(a, COO), to_layout(b, COO)
    if a.sparse_dim() != b.sparse_dim():
        raise RuntimeError(f"cannot add tensors with different sparse dimensions; got {a.sparse_dim()} and {b.sparse_dim()}")
    return a, b


def _same_shape(name, a, b):
    if a.shape != b.shape:
        raise RuntimeError(f"{name}: expected sizes of 'self' and 'other' to match, but {list(a.shape)} != {list(b.shape)}")


def _onto(dense, t):
    """A dense tensor plus a sparse one: adds to the elements that there are."""
    dense = dense if dense.shape == t.shape else dense.expand(t.shape)
    dtype, pattern = dt.promote_types(dense.dtype, t.dtype), t.pattern
    sizes = pattern.sizes
    if not sizes:
        return dense + t.part.sum(0)
    flat = dense.to(dtype).reshape(-1, *dense.shape[len(sizes):])
    return flat.index_add(0, pattern.key(), t.part.to(dtype)).reshape(dense.shape)


def add_rows_(target, t, alpha=1):
    """``target += alpha * t`` in place, which touches the rows of ``t`` only. Not recorded."""
    if isinstance(target, SparseTensor) or len(t.pattern.sizes) != 1 or t.dtype is not target.dtype:
        return target.add_(t, alpha=alpha)
    return target.index_add_(0, t.pattern.indices[0], t.part, alpha=alpha)


def sub(a, b, alpha=1, **kwargs):
    """``a - alpha * b``."""
    return add(a, b if _number(b) else -b, alpha)


# -- products of elements -------------------------------------------------------------------------------------------------------------
def mul(a, b, **kwargs):
    """``a * b``: the elements that both have; a dense operand is read at the places of the sparse one."""
    if not isinstance(a, SparseTensor):
        a, b = b, a
    if _number(b):
        return a.like(a.part * b)
    if isinstance(b, SparseTensor):
        return _meet(a, b)
    return _times_dense(a, b)


def _times_dense(t, dense):
    if dense.ndim > t.ndim or any(n not in (1, m) for n, m in zip(dense.shape[::-1], t.shape[::-1])):
        raise RuntimeError(f"mul(sparse, dense): the dense operand must broadcast to the sparse one; got {list(t.shape)} and {list(dense.shape)}")
    dense = dense.reshape((1,) * (t.ndim - dense.ndim) + tuple(dense.shape))
    sizes, places = t.pattern.sizes, t.pattern.indices
    key, step = None, 1
    for d in reversed(range(len(sizes))):
        if dense.shape[d] != 1:
            key = places[d] * step if key is None else key + places[d] * step
        step *= dense.shape[d]
    rows = dense.reshape(step, *dense.shape[len(sizes):])
    return t.like(t.part * (rows if key is None else rows.index_select(0, key)))


def _meet(a, b):
    if a.pattern is b.pattern and a.pattern.ordered:
        return a.like(a.part * b.part)
    _same_shape("mul", a, b)
    kind = a.layout
    a, b = (coalesce(t) for t in _alike(a, b))
    at, there = _search(a.pattern, b.pattern)
    chosen = fn("nonzero")(there).reshape(-1)
    pattern = Pattern(a.pattern.sizes, a.pattern.indices.index_select(1, chosen), True)
    values = a.part.index_select(0, chosen) * b.part.index_select(0, at.index_select(0, chosen))
    return to_layout(make(pattern, values, COO), kind)


def _search(wanted, known):
    """(number of each place of ``wanted`` among those of the ordered ``known``, whether it is there)."""
    total = 1
    for n in known.sizes:
        total *= n
    if not known.nnz:
        zero = creation.zeros(wanted.nnz, dtype=dt.int64, device=wanted.device)
        return zero, zero != 0
    mine, theirs = narrow(wanted.key(), total), narrow(known.key(), total)
    at = fn("searchsorted")(theirs.contiguous(), mine.contiguous()).clamp(max=known.nnz - 1)
    return at, theirs.index_select(0, at) == mine


def matched(t, pattern):
    """The values of ``t`` at the places of ``pattern``: zero where it has none."""
    t = coalesce(to_layout(t, COO))
    if t.pattern is pattern:
        return t.part
    at, there = _search(pattern, t.pattern)
    if not t._nnz():
        return t.part.new_zeros((pattern.nnz, *t.part.shape[1:]))
    return fn("where")(there.reshape(-1, *[1] * t.dense_dim()), t.part.index_select(0, at), creation.zeros((), dtype=t.dtype, device=t.device))


def div(input, other, rounding_mode=None, **kwargs):
    """By a number or a tensor of no dimensions."""
    if not _number(other):
        raise RuntimeError(f"Sparse division requires a scalar or zero-dim dense tensor divisor (got shape {list(other.shape)} for divisor)")
    if not isinstance(input, SparseTensor):
        raise RuntimeError("div: the divisor is sparse, and so zero in places; use to_dense()")
    t = input if rounding_mode is None else merged(input)
    return t.like(fn("div")(t.part, other, rounding_mode=rounding_mode))


def floor_divide(input, other, **kwargs):
    """By a number, rounded towards minus infinity."""
    return div(input, other, "floor")


def power(input, exponent, **kwargs):
    """To the power of a number above zero."""
    if not _number(exponent) or not isinstance(input, SparseTensor):
        raise NotImplementedError("pow: a sparse tensor to the power of a number")
    if not isinstance(exponent, Tensor) and exponent == 0:
        raise RuntimeError("pow: cannot raise to zeroth power on sparse tensor; it would make the result tensor dense")
    t = merged(input)
    return t.like(fn("pow")(t.part, exponent))


def float_power(input, exponent, **kwargs):
    """To the power of a number above zero, in doubles."""
    return power(input.to(dt.complex128 if input.dtype.is_complex else dt.float64), exponent)


# -- reductions -----------------------------------------------------------------------------------------------------------------------
def total(input, dim=None, keepdim=False, dtype=None, **kwargs):
    """Sum over ``dim``: sparse, unless no sparse dimension remains."""
    whole = isinstance(dim, (tuple, list)) and not dim
    if dim is None or whole:
        r = input.part.sum(dtype=dtype)
        return r.reshape((1,) * input.ndim) if keepdim else r
    dims = sorted({wrap_dim(d, input.ndim) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))})
    t, kind = to_layout(input, COO), input.layout
    sparse = t.sparse_dim()
    blocks = tuple(d - sparse + 1 for d in dims if d >= sparse)
    part = t.part if dtype is None else t.part.to(dtype)
    part = part.to(dt.int64) if dtype is None and not part.dtype.differentiable else part
    part = part.sum(blocks, keepdim=keepdim) if blocks else part
    gone = {d for d in dims if d < sparse}
    if not gone:
        return make(t.pattern, part, COO)
    sizes = [1 if d in gone else n for d, n in enumerate(t.pattern.sizes) if keepdim or d not in gone]
    if len(gone) == sparse and not keepdim:
        return part.sum(0)
    rows = [places * 0 if d in gone else places for d, places in enumerate(t.pattern.indices) if keepdim or d not in gone]
    r = coalesce(make(Pattern(sizes, fn("stack")(rows)), part, COO))
    return to_layout(r, kind) if r.ndim == 2 and not r.dense_dim() else r


def norm(input, p="fro", dim=None, keepdim=False, dtype=None, **kwargs):
    """Of all elements."""
    if dim is not None and len(dim if isinstance(dim, (tuple, list)) else (dim,)) not in (0, input.ndim) or p in (float("-inf"), 0):
        raise RuntimeError("norm_sparse currently only supports full reductions of order p != 0, -inf, so 'dim' must either be empty or contain all dimensions")
    return fn("norm")(merged(input).part.reshape(-1), p, dtype=dtype)


def softmax(input, dim, dtype=None):
    """Softmax along ``dim`` among the stored elements: those that are not stored count as -inf.

    Example:
        >>> clnn.sparse.softmax(clnn.tensor([[1., 0., 1.]]).to_sparse(), 1).values()
        tensor([0.5000, 0.5000])
    """
    return _softmax(input, dim, dtype, False)


def log_softmax(input, dim, dtype=None):
    """The logarithm of :func:`softmax`.

    Example:
        >>> clnn.sparse.log_softmax(clnn.tensor([[1.0, 0.0], [2.0, 2.0]]).to_sparse(), 1).to_dense()
        tensor([[ 0.0000,  0.0000],
                [-0.6931, -0.6931]])
    """
    return _softmax(input, dim, dtype, True)


def _softmax(input, dim, dtype, log):
    t, d = merged(input), wrap_dim(dim, input.ndim)
    sparse = t.sparse_dim()
    part = t.part if dtype is None else t.part.to(dtype)
    if d >= sparse:
        return t.like(fn("log_softmax" if log else "softmax")(part, d - sparse + 1))
    if not t._nnz():
        return t.like(part)
    numbers, count = _groups(t.pattern, d)
    top = part.detach().new_full((count, *part.shape[1:]), float("-inf")).index_reduce(0, numbers, part.detach(), "amax")
    low = part - top.index_select(0, numbers)
    sums = part.new_zeros((count, *part.shape[1:])).index_add(0, numbers, low.exp()).index_select(0, numbers)
    return t.like(low - sums.log() if log else low.exp() / sums)


def _groups(pattern, d):
    """(number of each element's line along dimension ``d``, how many lines there are to number)."""
    others = [n for k, n in enumerate(pattern.sizes) if k != d]
    key, total = None, 1
    for k, n in enumerate(pattern.sizes):
        if k != d:
            key, total = (pattern.indices[k] if key is None else key * n + pattern.indices[k]), total * n
    if not others:
        return creation.zeros(pattern.nnz, dtype=dt.int64, device=pattern.device), 1
    if total <= 4 * pattern.nnz + 1024:
        return key, total
    lines, numbers = fn("unique")(narrow(key, total), return_inverse=True)
    return numbers, lines._numel


# -- others ---------------------------------------------------------------------------------------------------------------------------
def copy_(self, src, non_blocking=False):
    """Take over the elements of another sparse tensor."""
    if not (isinstance(self, SparseTensor) and isinstance(src, SparseTensor)):
        raise RuntimeError(f"copy_() between dense and sparse Tensors is not implemented! Found self type = {self.type()} and src type = {src.type()}")
    _same_shape("copy_", self, src)
    return self._become(src.to(device=self.device, dtype=self.dtype).clone())


def zeros_like(input, *, dtype=None, device=None, requires_grad=False, layout=None, **kwargs):
    """A sparse tensor of this shape without elements."""
    from .._tensor.device import resolve
    home = input._home if device is None else resolve(device)
    if layout is not None and layout not in LAYOUT_NAMES:
        return creation.zeros(input.shape, dtype=dtype or input.dtype, device=home, requires_grad=requires_grad)
    return nothing(input, dtype or input.dtype, home).requires_grad_(requires_grad)


FORMS = dict(
    add=add, sub=sub, mul=mul, div=div, true_divide=div, floor_divide=floor_divide, pow=power, float_power=float_power, sum=total, norm=norm, copy=copy_,
    zeros_like=zeros_like, empty_like=zeros_like, any=lambda input, *a, **k: input.part.any(), mm=_products.mm, matmul=_products.matmul, mv=_products.mv,
    bmm=_products.bmm, addmm=_products.addmm, addmv=_products.addmv, linear=_products.linear, select=_places.select, narrow_copy=_places.narrow_copy,
    index_select=_places.index_select, cat=_places.cat, stack=_places.stack, unsqueeze=_places.unsqueeze, squeeze=_places.squeeze, permute=_places.permute,
    transpose=_places.transpose, t=_places.t, swapaxes=_places.transpose, swapdims=_places.transpose, adjoint=lambda input: _places.transpose(input, -2, -1),
    _add=add, _sub=sub, unbind=lambda input, dim=0: tuple([_places.select(input, dim, i) for i in range(input.shape[dim])]))
FORMS.update({name: _on_merged_values(name) for name in _KEEP_ZERO}, **{name: _on_values(name) for name in _LINEAR})

SparseTensor.smm, SparseTensor.sspaddmm = _products.smm, _products.sspaddmm
SparseTensor.mm = SparseTensor.spmm = _products.mm                      # the common ones without the detour over a refusal
SparseTensor.matmul = SparseTensor.__matmul__ = _products.matmul
SparseTensor.__rmatmul__ = lambda self, other: _products.matmul(other, self)
SparseTensor.coalesce, SparseTensor.to_dense, SparseTensor.sparse_mask, SparseTensor.narrow_copy = coalesce, to_dense, sparse_mask, _places.narrow_copy

__all__ = ["added", "unflat"]
