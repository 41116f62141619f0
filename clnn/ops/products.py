"""Products of vectors and tensors made of matrix products: dot, outer, cross, kron, tensordot, einsum, matrix powers."""
from __future__ import annotations

import math
import operator
import string

import numpy as np

from .._tensor.declare import composite, kernel
from .._tensor.inplace import type_name
from .._tensor.tensor import Tensor
from ..core.layout import contiguous_format
from ..core import dtype as dt
from ..core.shape import broadcast_shapes, whole, wrap_dim
from ..core.symbols import memo
from ..core.warn import warn
from .joining import cat, stack
from .matmul import matmul
from .reductions import _sum


def _pairs(*shapes):
    def make():
        r = np.random.default_rng(0)
        return [((r.standard_normal(a), r.standard_normal(b)), {}) for a, b in shapes]
    return make


# -- vectors ------------------------------------------------------------------------------------------------------------------------
@kernel("_dot", complex=True, method=False, vjp=dict(input=lambda g, tensor: g * tensor, tensor=lambda g, input: g * input))
def _dot(input, tensor):
    return _sum(input * tensor, (0,), False, input.shape)


_dot.op.grad_name = "DotBackward0"


@composite("dot", repeat="whole", splice=True, complex=True, numpy=np.dot, samples=_pairs((5, 5), (1, 1)),
           errors=[((np.ones(3), np.ones(4)), {}, RuntimeError, "inconsistent tensor size, expected tensor [3] and src [4]"),
                   ((np.ones((3, 1)), np.ones(3)), {}, RuntimeError, "1D tensors expected, but got 2D and 1D tensors")])
def dot(input, tensor):
    """Sum of products of two vectors of equal length."""
    if len(input.shape) != 1 or len(tensor.shape) != 1:
        raise RuntimeError(f"1D tensors expected, but got {len(input.shape)}D and {len(tensor.shape)}D tensors")
    if input.dtype is not tensor.dtype:
        raise RuntimeError(f"dot : expected both vectors to have same dtype, but found {type_name(input.dtype)} and {type_name(tensor.dtype)}")
    if input.shape != tensor.shape:
        raise RuntimeError(f"inconsistent tensor size, expected tensor {list(input.shape)} and src {list(tensor.shape)} to have the same number "
                           f"of elements, but got {input._numel} and {tensor._numel} elements respectively")
    return _dot(input, tensor)


@composite("vdot", repeat="ready small", complex=True, numpy=np.vdot, samples=_pairs((5, 5), (1, 1)))
def vdot(input, other):
    """:func:`dot` of the conjugate of ``input`` and ``other``."""
    return dot(input.conj(), other)


@composite("outer", repeat="ready small", splice=True, complex=True, aliases=("ger",), numpy=np.outer, samples=_pairs((3, 4)),
           errors=[((np.ones((3, 1)), np.ones(3)), {}, RuntimeError, "outer: Expected 1-D argument self, but got 2-D")])
def outer(input, vec2):
    """All products of two vectors: shape (N, M)."""
    for name, t in (("self", input), ("vec2", vec2)):
        if len(t.shape) != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {len(t.shape)}-D")
    return input.unsqueeze(1) * vec2


@composite("inner", repeat="ready small", complex=True, numpy=np.inner, samples=_pairs((4, 4), ((2, 3), (5, 3))))
def inner(input, other):
    """Dot products along the last dimensions: shape ``input.shape[:-1] + other.shape[:-1]``."""
    if not input.shape or not other.shape:
        return input * other
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError(f"inner() the last dimension must match on both input tensors but got shapes {list(input.shape)} and {list(other.shape)}")
    return dot(input, other) if len(input.shape) == len(other.shape) == 1 else tensordot(input, other, ((-1,), (-1,)))


@composite("linalg_cross", splice=True, repeat="whole", complex=True, method=False, numpy=lambda a, b, dim=-1: np.cross(a, b, axis=dim), torch="linalg.cross",
           samples=_pairs((3, 3), ((4, 3), (4, 3)), ((4, 3), (1, 3))))
def linalg_cross(input, other, *, dim=-1):
    """Cross product of vectors of length 3 along ``dim``, with broadcasting."""
    if len(input.shape) != len(other.shape):
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    if input.dtype is not other.dtype:
        raise RuntimeError(f"expected scalar type {type_name(input.dtype)} but found {type_name(other.dtype)}")
    wrap_dim(dim, len(input.shape))
    if input.shape[dim] != 3 or other.shape[dim] != 3:
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {input.shape[dim]} and {other.shape[dim]}")
    a, b = input.unbind(dim), other.unbind(dim)
    return stack([a[i - 2] * b[i - 1] - a[i - 1] * b[i - 2] for i in range(3)], wrap_dim(dim, len(input.shape)))


@composite("cross", splice=True, repeat="whole", complex=True)
def cross(input, other, dim=None):
    """Cross product along ``dim``, by default the first dimension of size 3."""
    if dim is None:
        sizes = [i for i, s in enumerate(input.shape) if s == 3]
        if not sizes:
            raise RuntimeError("no dimension of size 3 in input")
        dim = sizes[0]
        warn("Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim explicitly or simply use torch.linalg.cross.\n"
             "The default value of dim will change to agree with that of linalg.cross in a future release.")
    return linalg_cross(input, other, dim=dim)


# -- tensors ------------------------------------------------------------------------------------------------------------------------
@composite("kron", splice=True, repeat="small", complex=True, numpy=np.kron, samples=_pairs(((2, 3), (4, 5)), ((2,), (3, 2))))
def kron(input, other):
    """Kronecker product."""
    rank = max(len(input.shape), len(other.shape))
    a, b = ((1,) * (rank - len(t.shape)) + tuple(t.shape) for t in (input, other))
    left = [s for n in a for s in (n, 1)]
    right = [s for n in b for s in (1, n)]
    return (input.reshape(left) * other.reshape(right)).reshape([m * n for m, n in zip(a, b)])


def _np_tensordot(a, b, dims=2):
    return np.tensordot(a, b, dims)


@composite("tensordot", splice=True, repeat=True, complex=True, method=False, numpy=_np_tensordot, samples=lambda: [
    ((*_pairs(((2, 3, 4), (3, 4, 5)))()[0][0], 2), {}), ((*_pairs(((2, 3, 4), (4, 3)))()[0][0], ([1, 2], [1, 0])), {})])
def tensordot(a, b, dims=2):
    """Sums of products over ``dims``: a count of last and first dimensions, or a pair of dimension lists."""
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(len(a.shape), len(b.shape)):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        dims = (list(range(-dims, 0)), list(range(dims)))
    if isinstance(dims, Tensor) and dims._numel > 1:
        dims = dims.tolist()
    if not isinstance(dims, (list, tuple)):
        raise RuntimeError(f"tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] containing two lists, but got dims={dims}")
    da, db = ([wrap_dim(int(d), len(t.shape)) for d in (ds if isinstance(ds, (list, tuple)) else [ds])] for t, ds in zip((a, b), dims))
    if len(da) != len(db):
        raise RuntimeError("both dimension lists should have same length")
    if a.dtype is not b.dtype:
        raise RuntimeError("both inputs should have same dtype")
    for i, j in zip(da, db):
        if a.shape[i] == 1 or b.shape[j] == 1:              # a size of 1 broadcasts: the other factor is summed by itself
            a, b = (a if b.shape[j] == 1 and a.shape[i] == 1 else a.sum(i, True, dtype=a.dtype) if b.shape[j] == 1 else a), \
                (b.sum(j, True, dtype=b.dtype) if a.shape[i] == 1 else b)
        if a.shape[i] != b.shape[j]:
            raise RuntimeError(f"contracted dimensions need to match, but first has size {a.shape[i]} in dim {i} and second has size "
                               f"{b.shape[j]} in dim {j}")
    ra, rb = [i for i in range(len(a.shape)) if i not in da], [i for i in range(len(b.shape)) if i not in db]
    k = math.prod(a.shape[i] for i in da)
    left = a.permute((*ra, *da)).reshape(math.prod(a.shape[i] for i in ra), k)
    right = b.permute((*db, *rb)).reshape(k, math.prod(b.shape[i] for i in rb))
    return matmul(left, right).reshape([a.shape[i] for i in ra] + [b.shape[i] for i in rb])


# -- einsum ---------------------------------------------------------------------------------------------------------------------------
def _labels(text, i, rank):
    """Labels of one operand; the dimensions of an ellipsis are numbered from the right: -1, -2, ..."""
    names = text.replace("...", ".")
    if "." in text.replace("...", ""):
        raise RuntimeError(f"einsum(): found '.' for operand {i} that is not part of any ellipsis")
    for at, c in enumerate(names):
        if not (c.isalpha() and c.isascii()) and c != ".":
            raise RuntimeError(f"einsum(): invalid subscript given at index {at} in the equation string, subscripts must be in [a-zA-Z]")
    if names.count(".") > 1:
        raise RuntimeError(f"einsum(): found '.' for operand {i} for which an ellipsis was already found")
    extra = rank - len(names.replace(".", ""))
    if extra < 0 or (extra and "." not in names):
        raise RuntimeError(f"einsum(): the number of subscripts in the equation ({len(names.replace('.', ''))}) does not match the number of "
                           f"dimensions ({rank}) for operand {i}" + ("" if "." in names else " and no ellipsis was given"))
    out = []
    for c in names:
        out += list(range(-extra, 0)) if c == "." else [c]
    return out


class _Planned:
    """Stands for a tensor while a plan is made: what it comes from (the number of an operand, or two factors and how they meet) and the calls it then takes."""

    __slots__ = ("source", "shape", "calls")

    def __init__(self, source, shape, calls=()):
        self.source, self.shape, self.calls = source, tuple(shape), calls

    def _then(self, shape, name, *args):
        return _Planned(self.source, shape, (*self.calls, (name, args)))

    def diagonal(self, offset, i, j):
        return self._then([n for d, n in enumerate(self.shape) if d not in (i, j)] + [self.shape[i]], "diagonal", offset, i, j)

    def sum(self, dims):
        return self._then([n for d, n in enumerate(self.shape) if d not in dims], "sum", dims)

    def permute(self, order):
        order = tuple(order)
        return self if order == tuple(range(len(order))) else self._then([self.shape[d] for d in order], "permute", order)

    def reshape(self, shape):
        shape = tuple(shape)
        return self if shape == self.shape else self._then(shape, "reshape", shape)

    def expand(self, shape):
        shape = tuple(shape)
        return self if shape == self.shape else self._then(shape, "expand", shape)

    def of(self, operands):
        """The tensor that this stands for."""
        if self.source.__class__ is int:
            t = operands[self.source]
        else:
            left, right, meet = self.source
            t = meet(left.of(operands), right.of(operands))
        for name, args in self.calls:
            t = getattr(t, name)(*args)
        return t


def _parse(equation, operands):
    """(labels of each operand, labels of the result)."""
    if not operands:
        raise ValueError("einsum(): must specify the equation string and at least one operand, or at least one operand and its subscripts list")
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise RuntimeError(f"einsum(): {'fewer' if len(operands) < len(terms) else 'more'} operands were provided than specified in the equation")
    inputs = [_labels(t, i, len(x.shape)) for i, (t, x) in enumerate(zip(terms, operands))]
    flat = [c for ls in inputs for c in ls]
    dots = sorted({c for c in flat if isinstance(c, int)})
    if not arrow:
        return inputs, dots + sorted(c for c in set(flat) if isinstance(c, str) and flat.count(c) == 1)
    result = []
    if "." in right.replace("...", ""):
        raise RuntimeError("einsum(): found '.' for output that is not part of any ellipsis (...)")
    for c in right.replace("...", "."):
        result += dots if c == "." else [c]
    for c in result:
        if isinstance(c, str) and not c.isalpha():
            raise RuntimeError(f"einsum(): invalid subscript given at index {equation.rindex(c)} in the equation string, subscripts must be in [a-zA-Z]")
        if c not in flat:
            raise RuntimeError(f"einsum(): output subscript {c} does not appear in the equation for any input operand")
        if result.count(c) > 1:
            raise RuntimeError(f"einsum(): output subscript {c} appears more than once in the output")
    return inputs, result


def _from_lists(args):
    """(equation, operands) of the form ``einsum(a, [0, 1], b, [1, 2], [0, 2])``."""
    def letters(numbers):
        if any(c is not Ellipsis and not 0 <= c < 52 for c in numbers):
            raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
        return "".join("..." if c is Ellipsis else (string.ascii_uppercase + string.ascii_lowercase)[c] for c in numbers)
    pairs = len(args) // 2
    equation = ",".join(letters(n) for n in args[1:2 * pairs:2])
    return equation + ("->" + letters(args[-1]) if len(args) % 2 else ""), args[:2 * pairs:2]


def _diagonals(x, labels, at):
    """One dimension per label of operand ``at``: repeated labels take the diagonal."""
    labels = list(labels)
    for c in dict.fromkeys(labels):
        while labels.count(c) > 1:
            i = labels.index(c)
            j = labels.index(c, i + 1)
            if x.shape[i] != x.shape[j]:
                raise RuntimeError(f"einsum(): subscript {c} is repeated for operand {at} but the sizes don't match, {x.shape[j]} != {x.shape[i]}")
            x = x.diagonal(0, i, j)
            del labels[j], labels[i]
            labels.append(c)
    return x, labels


def _arranged(x, labels, groups):
    """``x`` with one dimension per group of labels."""
    x = x.permute([labels.index(c) for g in groups for c in g])
    sizes, at = [], 0
    for g in groups:
        sizes.append(math.prod(x.shape[at:at + len(g)]))
        at += len(g)
    return x.reshape(sizes)


def _in_memory(labels, operands, sizes):
    """Labels of an elementwise product from the slowest to the fastest in memory, as PyTorch lays it out: as the operands lie, the first before the others."""
    strides = [{c: math.prod([sizes[d] for d in ls[i + 1:]]) for i, c in enumerate(ls)} for ls in operands]
    order = []                              # the fastest first
    for label in reversed(labels):
        at = len(order)
        for k in range(len(order) - 1, -1, -1):
            known = next((s for s in strides if label in s and order[k] in s), None)
            if known is None:
                continue                    # no operand has both: they stay as they are unless another one decides
            if known[order[k]] <= known[label]:
                break
            at = k
        order.insert(at, label)
    return order[::-1]


def _without(x, labels, gone):
    """``x`` summed over some labels; those of size 1 are dropped."""
    at = [i for i, c in enumerate(labels) if c in gone and x.shape[i] != 1]
    if at:
        x, labels = x.sum(at), [c for i, c in enumerate(labels) if i not in at]
    return x.reshape([n for c, n in zip(labels, x.shape) if c not in gone]), [c for c in labels if c not in gone]


def _contract(a, la, b, lb, keep, sizes, result):
    """Sum of products of two operands over the labels that neither the result nor later operands need."""
    alone_a, alone_b = ([i for i, c in enumerate(mine) if c not in other and c not in keep] for mine, other in ((la, lb), (lb, la)))
    if alone_a:
        a, la = a.sum(alone_a), [c for i, c in enumerate(la) if i not in alone_a]
    if alone_b:
        b, lb = b.sum(alone_b), [c for i, c in enumerate(lb) if i not in alone_b]
    single = [c for c in la if c in lb and c not in keep and 1 in (a.shape[la.index(c)], b.shape[lb.index(c)])]
    if single:                              # nothing is left to sum there: as in PyTorch, no matrix product for them
        (a, la), (b, lb) = _without(a, la, single), _without(b, lb, single)
    both = [c for c in la if c in lb]
    batch, summed = [c for c in both if c in keep], [c for c in both if c not in keep]
    only_a, only_b = [c for c in la if c not in lb], [c for c in lb if c not in la]
    labels = batch + only_a + only_b
    if not summed:
        labels = _in_memory([c for c in result if c in labels] + [c for c in labels if c not in result], (la, lb), sizes)
        left, right = (_arranged(t, ls, [[c] if c in ls else [] for c in labels]) for t, ls in ((a, la), (b, lb)))
        return _Planned((left, right, operator.mul), broadcast_shapes(left.shape, right.shape)), labels
    a, b = (t.expand([sizes[c] if c in summed + batch else n for c, n in zip(ls, t.shape)]) for t, ls in ((a, la), (b, lb)))
    stack = [batch] if batch else []
    left, right = _arranged(a, la, [*stack, only_a, summed]), _arranged(b, lb, [*stack, summed, only_b])
    widths = {**dict(zip(la, a.shape)), **dict(zip(lb, b.shape))}
    product = _Planned((left, right, matmul), (*left.shape[:-1], right.shape[-1]))
    return product.reshape([widths[c] for c in labels]), labels


@memo(1024)
def _plan(equation, shapes):
    """What gives the result of an equation for operands of such shapes."""
    operands = [_Planned(i, shape) for i, shape in enumerate(shapes)]
    inputs, result = _parse(equation, operands)
    pairs = [_diagonals(x, ls, at) for at, (x, ls) in enumerate(zip(operands, inputs))]
    sizes = {}
    for i, (x, ls) in enumerate(pairs):
        for c, n in zip(ls, x.shape):
            have = sizes.setdefault(c, n)
            if n != have and 1 not in (n, have):
                raise RuntimeError(f"einsum(): subscript {c if isinstance(c, str) else '...'} has size {n} for operand {i} which does not broadcast "
                                   f"with previously seen size {have}")
            sizes[c] = max(n, have)
    acc, labels = pairs[0]
    for i, (x, ls) in enumerate(pairs[1:], 2):
        keep = {c for _, rest in pairs[i:] for c in rest} | set(result)
        first, second = ([result.index(c) for c in mine if c in result and c not in other] for mine, other in ((labels, ls), (ls, labels)))
        summed = any(c in labels and c not in keep for c in ls)
        swap = summed and first and second and min(second) < min(first)    # then the result comes out in rows
        acc, labels = _contract(x, ls, acc, labels, keep, sizes, result) if swap else _contract(acc, labels, x, ls, keep, sizes, result)
    gone = [i for i, c in enumerate(labels) if c not in result]
    if gone:
        acc, labels = acc.sum(gone), [c for c in labels if c in result]
    return acc.permute([labels.index(c) for c in result])


def _np_einsum(equation, *operands):
    return np.einsum(equation, *operands)


def _einsum_samples():
    r = np.random.default_rng(0)
    cases = [("ij,jk->ik", (2, 3), (3, 4)), ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)), ("ij->ji", (2, 3)), ("ii->i", (3, 3)), ("ij->", (2, 3)),
             ("i,j->ij", (2,), (3,)), ("...ij,...jk->...ik", (2, 3, 4), (4, 5)), ("bhqd,bhkd->bhqk", (1, 2, 3, 4), (1, 2, 5, 4)),
             ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)), ("ab,cb", (2, 3), (4, 3)), ("ijk,ijk->i", (2, 3, 4), (2, 3, 4))]
    return [((eq, *(r.standard_normal(s) for s in shapes)), {}) for eq, *shapes in cases]


@composite("einsum", repeat=True, complex=True, method=False, numpy=_np_einsum, samples=_einsum_samples)
def einsum(equation, *operands):
    """Sums of products in Einstein's notation, from left to right, each pair as one batched matrix product.

    Args:
        equation: subscripts such as ``"bij,bjk->bik"``; ``...`` stands for leading dimensions, ``->`` may be left out.
        *operands: tensors, or one list of them.

    Example:
        >>> clnn.einsum("i,i->", clnn.tensor([1., 2.]), clnn.tensor([3., 4.]))
        tensor(11.)
    """
    if isinstance(equation, Tensor):
        equation, operands = _from_lists((equation, *operands))
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    if not isinstance(equation, str):
        raise TypeError(f"einsum(): argument 'equation' (position 1) must be str, not {type(equation).__name__}")
    return _plan(equation, tuple([tuple(x.shape) for x in operands])).of(operands)


def _one_by_one(args):
    """The arguments with a list of operands taken apart: so classes that take functions over see them."""
    return (args[0], *args[1]) if len(args) == 2 and isinstance(args[1], (list, tuple)) else args


einsum.spread = _one_by_one


# -- chains and powers ------------------------------------------------------------------------------------------------------------------
def _best_order(sizes):
    """Split points of the cheapest order of a chain of matrices of sizes ``sizes[i] x sizes[i + 1]``."""
    n = len(sizes) - 1
    cost, split = [[0] * n for _ in range(n)], [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i][j], split[i][j] = min((cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j))
    return split


def _chain(tensors):
    """Raise where ``tensors`` are no chain of matrices, of which the first and the last may be vectors."""
    last = len(tensors) - 1
    for at, t in enumerate(tensors):
        rank, end = len(t.shape), {0: "the first tensor", last: "the last tensor"}.get(at)
        if rank != 2 and (end is None or rank != 1):
            raise RuntimeError(f"multi_dot(): {end or f'tensor {at}'} must be {'1D or ' if end else ''}2D but got {rank}D")
        if t.dtype is not tensors[0].dtype:
            own, other = (dt.IN_C.get(s.dtype.name, s.dtype.name) for s in (tensors[0], t))
            raise RuntimeError(f"multi_dot(): all tensors must have be the same dtype but tensor 0 is {own} and tensor {at} {other}")
    for at in range(last):
        left, right = tensors[at], tensors[at + 1]
        if left.shape[-1] != right.shape[0]:
            a, b = (1, *left.shape)[-2:], (*right.shape, 1)[:2]
            raise RuntimeError(f"multi_dot(): tensors {at} and {at + 1} with shapes {list(a)} and {list(b)} cannot be multiplied")


@composite("linalg_multi_dot", repeat="ready small", complex=True, method=False, torch="linalg.multi_dot", samples=lambda: [
    (([np.random.default_rng(0).standard_normal(s) for s in ((2, 3), (3, 4), (4, 5))],), {})], numpy=lambda ts: np.linalg.multi_dot(ts))
def multi_dot(tensors):
    """Product of a chain of matrices in the cheapest order; the first and last may be vectors."""
    tensors = list(tensors)
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    _chain(tensors)
    first, last = len(tensors[0].shape) == 1, len(tensors[-1].shape) == 1
    if first:
        tensors[0] = tensors[0].unsqueeze(0)
    if last:
        tensors[-1] = tensors[-1].unsqueeze(1)
    split = _best_order([t.shape[0] for t in tensors] + [tensors[-1].shape[1]])

    def product(i, j):
        return tensors[i] if i == j else matmul(product(i, split[i][j]), product(split[i][j] + 1, j))
    r = product(0, len(tensors) - 1)
    r = r.squeeze(0) if first else r
    return r.squeeze(-1) if last else r


@composite("chain_matmul", repeat="ready small", complex=True, method=False)
def chain_matmul(*matrices):
    """Product of a chain of matrices."""
    matrices = matrices[0] if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)) else matrices
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    return matrices[0].clone() if len(matrices) == 1 else multi_dot(matrices)


@composite("matrix_power", splice=True, repeat="ready small", complex=True, numpy=lambda x, n: np.linalg.matrix_power(x, n),
           samples=lambda: [((np.random.default_rng(0).standard_normal((2, 3, 3)), n), {}) for n in (0, 1, 2, 5)],
           errors=[((np.ones((2, 3)), 2), {}, RuntimeError, "A must be batches of square matrices, but they are 2 by 3 matrices")])
def matrix_power(input, n):
    """``n``-th power of square matrices (of the inverse when negative), by repeated squaring."""
    from .linalg import inv, square
    n = whole(n)
    square("linalg.matrix_power", input)
    if n == 0:
        from .creation import eye
        one = eye(input.shape[-1], dtype=input.dtype, device=input._storage.device)
        return input.clone(memory_format=contiguous_format).copy_(one)              # a part of the graph, in which it is constant
    if n < 0:
        input, n = inv(input), -n
    result = None
    while n:
        if n & 1:
            result = input if result is None else matmul(result, input)
        n >>= 1
        if n:
            input = matmul(input, input)
    return result.clone(memory_format=contiguous_format) if result is input else result


# -- products of groups -------------------------------------------------------------------------------------------------------------
def _groups(mat_a, mat_b, offs):
    """Matrix products by runs of rows, of columns or of both inner dimensions, as NumPy does them."""
    ends = [*offs]
    runs = list(zip([0, *ends[:-1]], ends))
    if mat_a.ndim == 2 and mat_b.ndim == 3:
        return np.concatenate([mat_a[i:j] @ b for (i, j), b in zip(runs, mat_b)])
    if mat_a.ndim == 3:
        return np.concatenate([a @ mat_b[:, i:j] for (i, j), a in zip(runs, mat_a)], 1)
    return np.stack([mat_a[:, i:j] @ mat_b[i:j] for i, j in runs])


def _aligned(matrices):
    """Refuse matrices whose rows (or columns) do not begin every 16 bytes, as PyTorch's kernels do."""
    *_, m, n = matrices.shape
    *_, down, along = matrices._strides
    step = along if down == 1 and along >= max(1, m) else down if along == 1 and down >= max(1, n) else None
    if step is None:
        raise RuntimeError(f"Invalid strides/sizes, got {list(matrices._strides)} for strides and {list(matrices.shape)} for sizes")
    if step * matrices.dtype.itemsize % 16:
        raise RuntimeError("strides should be multiple of 16 bytes")


def _grouped_samples():
    r, offs = np.random.default_rng(0), np.array([2, 5, 8], np.int32)
    return [((r.standard_normal(a), r.standard_normal(b)), dict(offs=offs)) for a, b in (((8, 8), (3, 8, 8)), ((3, 8, 8), (8, 8)), ((8, 8), (8, 8)))]


@composite("grouped_mm", method=False, numpy=lambda a, b, offs: _groups(a, b, offs.tolist()), samples=_grouped_samples, torch="nn.functional.grouped_mm",
           errors=[((np.ones((4, 4)), np.ones((1, 4, 4))), {}, RuntimeError, "Have to provide offsets if there is a 2d matrix"),
                   ((np.ones((4, 4)), np.ones((2, 4, 4))), dict(offs=np.array([4], np.int32)), RuntimeError, "matrix batch sizes have to match")])
def grouped_mm(mat_a, mat_b, *, offs=None, bias=None, out_dtype=None):
    """Products of groups of unequal length, as layers of several experts need them.

    Args:
        mat_a, mat_b: ``(M, K)`` and ``(G, K, N)``: runs of rows of ``mat_a``, each with a matrix of its own; ``(G, M, K)`` and ``(K, N)``: runs of columns;
            ``(M, K)`` and ``(K, N)``: runs along K, giving ``(G, M, N)``; ``(G, M, K)`` and ``(G, K, N)``: without ``offs``, as ``bmm``.
        offs: int32, the end of each run. What lies behind the last one is not computed: 0.
        bias, out_dtype: nothing but the default and the dtype of ``mat_a``, as in PyTorch.

    The ends are read on the host. Raises RuntimeError where shapes, dtypes or ``offs`` do not fit.

    Example:
        >>> clnn.nn.functional.grouped_mm(clnn.ones(2, 4), clnn.ones(2, 4, 4), offs=clnn.tensor([1, 2], dtype=clnn.int32))[1]
        tensor([4., 4., 4., 4.])
    """
    ranks = len(mat_a.shape), len(mat_b.shape)
    if not set(ranks) <= {2, 3}:
        raise RuntimeError(f"mat_a and mat_b have to be 2 or 3 dimensional, got {ranks[0]}D and {ranks[1]}D")
    if (offs is None) != (ranks == (3, 3)):
        raise RuntimeError("Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d")
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if ranks != (2, 2) and mat_a.shape[-1] != mat_b.shape[-2]:
        raise RuntimeError("contraction dimension of mat_a and mat_b must match")
    _aligned(mat_a)
    _aligned(mat_b)
    if out_dtype is not None and out_dtype is not mat_a.dtype:
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")
    if offs is None:
        return matmul(mat_a, mat_b)
    if offs.dtype.name != "int32":
        raise RuntimeError("Offsets have to be int32")
    ends = offs.tolist()
    if any(rank == 3 and t.shape[0] != len(ends) for rank, t in zip(ranks, (mat_a, mat_b))):
        raise RuntimeError("matrix batch sizes have to match")
    sizes = [j - i for i, j in zip([0, *ends[:-1]], ends)]
    total = mat_b.shape[1] if ranks == (3, 2) else mat_a.shape[ranks == (2, 2)]

    def runs(t, dim):       # cut apart at once: the gradients are joined then, instead of added, each in an image of the whole
        return t.split([*sizes, total - ends[-1]], dim)[:len(sizes)]
    if ranks == (2, 2):
        return stack([matmul(a, b) for a, b in zip(runs(mat_a, 1), runs(mat_b, 0))])
    if ranks == (2, 3):
        parts = [matmul(a, b) for a, b in zip(runs(mat_a, 0), mat_b.unbind())]
        return cat([*parts, mat_a.new_zeros(total - ends[-1], mat_b.shape[2])] if ends[-1] < total else parts)
    parts = [matmul(a, b) for a, b in zip(mat_a.unbind(), runs(mat_b, 1))]
    return cat([*parts, mat_a.new_zeros(mat_a.shape[1], total - ends[-1])] if ends[-1] < total else parts, 1)
