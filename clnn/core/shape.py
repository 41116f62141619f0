"""Shapes and strides as tuples of Python ints: broadcasting, contiguity, reshaping views, collapsing dimensions."""
from __future__ import annotations

import math
import operator

from . import native
from .config import config
from .symbols import index, memo


def whole_items(items):
    """Items of a ``Size``, not all of which are plain ints, as ints where they stand for some."""
    found = []
    for at, item in enumerate(items):
        try:
            found.append(item if isinstance(item, int) and item.__class__ is not bool else operator.index(item))
        except TypeError:
            raise TypeError(f"{config.spoken}.Size() takes an iterable of 'int' (item {at} is '{type(item).__name__}')") from None
    return tuple(found)


class Size(tuple):
    """The shape of a tensor: a tuple that prints as PyTorch's ``torch.Size`` and counts elements.

    Example:
        >>> s = clnn.Size((2, 3))
        >>> s, s.numel(), s[:1]
        (clnn.Size([2, 3]), 6, clnn.Size([2]))
    """

    __slots__ = ()

    def __new__(cls, items=()):
        got = tuple.__new__(cls, items)
        for item in got:
            if item.__class__ is not int:
                return tuple.__new__(cls, whole_items(got))
        return got

    def __repr__(self):
        return f"{config.spoken}.Size([{', '.join(map(str, self))}])"

    def numel(self) -> int:
        return math.prod(self)

    def __getitem__(self, item):
        got = tuple.__getitem__(self, item)
        return Size(got) if isinstance(item, slice) else got

    def __add__(self, other):
        if isinstance(other, tuple):
            return Size(tuple.__add__(self, other))
        if hasattr(other, "__radd__"):
            return NotImplemented
        raise TypeError(f"can only concatenate tuple (not {type(other).__name__}) to {config.spoken}.Size")

    def __radd__(self, other):
        return Size(tuple.__add__(other, self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, count):
        return Size(tuple.__mul__(self, count)) if hasattr(count, "__index__") else NotImplemented

    __rmul__ = __mul__

    def __reduce__(self):
        return (Size, (tuple(self),))


native.give(Size=Size, whole_items=whole_items)
native.maker(Size)
native.method(Size, "__getitem__")


@memo(65536)
def contiguous_strides(shape: tuple) -> tuple:
    """Row-major strides in elements. Cached, so equal shapes give the identical tuple."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


@memo(65536)
def is_contiguous(shape: tuple, strides: tuple) -> bool:
    if 0 in shape:
        return True
    step = 1
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size != 1:
            if stride != step:
                return False
            step *= size
    return True


@memo(65536)
def broadcast_shapes(*shapes: tuple) -> tuple:
    """The common shape of ``shapes``; ValueError where two sizes differ and neither is 1."""
    rank = max(map(len, shapes), default=0)
    out = [1] * rank
    for shape in shapes:
        lead = rank - len(shape)
        for i in range(len(shape) - 1, -1, -1):         # from the last dimension on: the first that differs is the one to name
            size, have = shape[i], out[lead + i]
            if size != have and size != 1:
                if have != 1:
                    raise ValueError(f"The size of tensor a ({have}) must match the size of tensor b ({size}) "
                                     f"at non-singleton dimension {lead + i}")
                out[lead + i] = size
    return tuple(out)


def not_negative(shapes) -> None:
    """Raise where a size in ``shapes`` is negative."""
    if any(n < 0 for shape in shapes for n in shape):
        raise ValueError("Attempting to broadcast a dimension with negative length!")


def misfit(shapes):
    """The words for the first of ``shapes`` that does not go with those before it."""
    common = [1] * max(map(len, shapes))
    for at, shape in enumerate(shapes):
        for d in range(-1, -1 - len(shape), -1):
            if shape[d] == 1 or common[d] == shape[d]:
                continue
            if common[d] != 1:
                return (f"Attempting to broadcast a dimension of length {shape[d]} at {d}! Mismatching argument at index {at} had {shape}; "
                        f"but expected shape should be broadcastable to {common}")
            common[d] = shape[d]


@memo(65536)
def broadcast_strides(shape: tuple, strides: tuple, to: tuple) -> tuple:
    """Strides of a view of ``shape`` expanded to ``to`` (repeated dimensions get stride 0)."""
    lead = len(to) - len(shape)
    return (0,) * lead + tuple(0 if size == 1 and want != 1 else stride
                               for size, stride, want in zip(shape, strides, to[lead:]))


@memo(65536)
def view_strides(shape: tuple, strides: tuple, new_shape: tuple) -> tuple | None:
    """Strides that show the same elements as ``new_shape`` without a copy, or None if there are none."""
    if 0 in shape or 1 not in shape and is_contiguous(shape, strides):
        return contiguous_strides(new_shape)
    if not shape:
        return (1,) * len(new_shape)
    # Walks over maximal runs of old dimensions that lie contiguously in memory. Dimensions of one element take the steps that PyTorch gives them, which
    # tell later operators about the format of memory.
    out, at, left = [0] * len(new_shape), len(new_shape) - 1, 1
    taken, step = 1, strides[-1]
    for d in range(len(shape) - 1, -1, -1):
        left *= shape[d]
        if d and (shape[d - 1] == 1 or strides[d - 1] == left * step):
            continue
        while at >= 0 and (taken < left or new_shape[at] == 1):
            out[at] = taken * step
            taken *= new_shape[at]
            at -= 1
        if taken != left:
            return None
        if d:
            left = taken = 1
            step = strides[d - 1]
    return tuple(out) if at < 0 else None


def infer_size(shape, numel: int) -> tuple:
    """Fill in one ``-1`` of a requested shape; RuntimeError when the element counts cannot agree."""
    known, hole = 1, None
    for i, size in enumerate(shape):
        if size == -1:
            if hole is not None:
                raise RuntimeError("only one dimension can be inferred")
            hole = i
        elif size < 0:
            raise RuntimeError(f"invalid shape dimension {size} at index {i} of shape {list(shape)}")
        else:
            known *= size
    if hole is None:
        if known != numel:
            raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")
        return tuple(shape)
    if known == 0 and numel:
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")
    if known == 0:
        raise RuntimeError(f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified "
                           "dimension size -1 can be any value and is ambiguous")
    if numel % known:
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")
    return tuple(shape[:hole]) + (numel // known,) + tuple(shape[hole + 1:])


def wrap_dim(dim: int, rank: int) -> int:
    """Turn a possibly negative dimension into 0..rank-1; a 0-d tensor accepts 0 and -1 as PyTorch does."""
    limit = max(rank, 1)
    if dim.__class__ is not int:
        dim = whole(dim)
    if not -limit <= dim < limit:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got {dim})")
    return dim + limit if dim < 0 else dim


def whole(number):
    """A size, count or place that a caller gave: any class of integers, but no fraction, not even 2.0, as a division leaves one by mistake."""
    try:
        if number is not True and number is not False:
            return index(number)
    except TypeError:
        pass
    raise TypeError(f"sizes, counts and dimensions must be (tuple of) ints, but found element of type {type(number).__name__}")


def missing(called, what):
    """The error of a function that was called without its argument ``what``, in PyTorch's words."""
    return TypeError(f'{called}() missing 1 required positional arguments: "{what}"')


def flag(name, what, value) -> bool:
    """``value`` of the argument ``what`` of a function, which takes True and False and nothing else that is true or false."""
    if value.__class__ is not bool:
        raise TypeError(f"{name}(): argument '{what}' must be bool, not {type(value).__name__}")
    return value


def wrap_dims(dims, rank: int) -> tuple:
    """Normalised dimensions; None or () means all. Repeated ones are refused."""
    if dims is None:
        return tuple(range(rank))
    if isinstance(dims, int) or not hasattr(dims, "__len__") or hasattr(dims, "dtype"):      # a number, of whatever class
        dims = (dims,)
    out = tuple([wrap_dim(d if i == 0 or d.__class__ is not bool else int(d), rank) for i, d in enumerate(dims)])     # PyTorch looks at the first
    if len(set(out)) != len(out):
        twice = next(d for d in out if out.count(d) > 1)
        raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
    return out


@memo(65536)
def extents(shape: tuple, dim: int) -> tuple:
    """(outer, n, inner): how many elements there are before, in and after dimension ``dim``; a 0-d shape counts as one element."""
    sizes = tuple(shape) or (1,)            # slices of a Size are Sizes, which take longer
    return math.prod(sizes[:dim]), sizes[dim], math.prod(sizes[dim + 1:])


def collapse(shape: tuple, all_strides: tuple) -> tuple:
    """Merge neighbouring dimensions that every operand walks contiguously.

    Returns ``(sizes, strides_of_each_operand)``; fewer dimensions mean cheaper index arithmetic and fewer distinct kernels.
    """
    sizes, cols = [], []
    for d, size in enumerate(shape):
        if size == 1:
            continue
        col = [s[d] for s in all_strides]
        if sizes and all(p == c * size for p, c in zip(cols[-1], col)):
            sizes[-1] *= size
            cols[-1] = col
        else:
            sizes.append(size)
            cols.append(col)
    if not sizes:
        sizes, cols = [1], [[0] * len(all_strides)]
    return tuple(sizes), tuple(tuple(col[k] for col in cols) for k in range(len(all_strides)))


def span(shape, strides) -> int:
    """Number of storage elements from the first to the last that a (non-negative stride) view touches."""
    if 0 in shape:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides))
