"""Tensors whose items differ in size: ``clnn.nested.nested_tensor([a, b])``.

A nested tensor holds its items; an operator computes item by item, so gradients follow. The layout ``clnn.jagged`` has items that differ in their first
dimension alone, and knows them as one tensor too: ``values()`` and ``offsets()``.
"""
from __future__ import annotations

import itertools

import clnn
from clnn._tensor import override
from clnn._tensor.dispatch import memory_order
from clnn._tensor.tensor import Tensor
from clnn.core.layout import jagged, strided
from clnn.core.shape import Size
from clnn.utils._pytree import tree_leaves, tree_map

__all__ = ["as_nested_tensor", "masked_select", "narrow", "nested_tensor", "nested_tensor_from_jagged", "to_padded_tensor"]
_numbers = itertools.count(1)
_known: dict = {}               # lengths -> the size that stands for them


class Ragged(int):
    """The size of a dimension that differs between items: it compares equal to that of the same lengths only. Its value is the greatest length."""

    def __new__(cls, lengths):
        got = _known.get(lengths)
        if got is None:
            got = _known[lengths] = super().__new__(cls, max(lengths, default=0))
            got.name = f"j{next(_numbers)}"
        return got

    def __repr__(self):
        return self.name

    __str__ = __repr__

    def __eq__(self, other):
        return self is other

    def __ne__(self, other):
        return self is not other

    __hash__ = object.__hash__


class NestedTensor(Tensor):
    """Items of the same number of dimensions, of any sizes."""

    __slots__ = ("parts", "_layout", "_given")

    def __new__(cls, parts, layout=strided):
        override.activate()                                     # functions ask for subclasses from now on
        t = object.__new__(cls)
        t.parts, t._layout, t._given = list(parts), layout, None
        return t

    # -- what it is -------------------------------------------------------------------------------------------------------------------
    is_nested = True
    _joins = False                                              # of tensors that want gradients of their own
    layout = property(lambda self: self._layout)
    dtype = property(lambda self: self.parts[0].dtype if self.parts else clnn.get_default_dtype())
    device = property(lambda self: self.parts[0].device if self.parts else clnn.device("cpu"))
    is_cuda = property(lambda self: bool(self.parts) and self.parts[0].is_cuda)
    is_cpu = property(lambda self: not self.is_cuda)
    is_leaf = property(lambda self: not self._joins and all(p.is_leaf for p in self.parts))
    grad_fn = property(lambda self: next((p.grad_fn for p in self.parts if p.grad_fn is not None), None))
    ndim = property(lambda self: self.dim())

    @property
    def shape(self):
        if self._layout is strided:
            raise RuntimeError("Internal error: NestedTensorImpl doesn't support sizes: the items differ; use size(dim), or unbind()")
        return Size((len(self.parts), *[self._size(d) for d in range(1, self.dim())]))

    @property
    def requires_grad(self):
        return any(p.requires_grad for p in self.parts)

    @requires_grad.setter
    def requires_grad(self, value):
        for p in self.parts:
            p.requires_grad = value

    @property
    def grad(self):
        grads = [p.grad for p in self.parts]
        return None if all(g is None for g in grads) else self._like([clnn.zeros_like(p) if g is None else g for p, g in zip(self.parts, grads)])

    @grad.setter
    def grad(self, value):
        for i, p in enumerate(self.parts):
            p.grad = None if value is None else value.parts[i]

    def _like(self, parts):
        return NestedTensor(parts, self._layout)

    def _size(self, dim):
        sizes = {p.shape[dim - 1] for p in self.parts}
        if len(sizes) == 1 and not (self._layout is jagged and dim == 1 and self._alike_but(0)):
            return sizes.pop()
        return Ragged(tuple([p.shape[dim - 1] for p in self.parts]))

    def _alike_but(self, d):
        """Whether the items have the same sizes but for dimension ``d``: a transposed one may differ in another."""
        return len({p.shape[:d] + p.shape[d + 1:] for p in self.parts}) < 2

    def dim(self):
        return self.parts[0].dim() + 1 if self.parts else 1

    def size(self, dim=None):
        if dim is None:
            return self.shape
        dim = dim % self.dim()
        got = len(self.parts) if dim == 0 else self._size(dim)
        if self._layout is strided and isinstance(got, Ragged):
            raise RuntimeError(f"Given dimension {dim} is irregular and does not have a size.")
        return got

    def numel(self):
        return sum(p.numel() for p in self.parts)

    def is_contiguous(self, memory_format=None):
        return True

    def requires_grad_(self, requires_grad=True):
        self.requires_grad = requires_grad
        return self

    # -- parts ------------------------------------------------------------------------------------------------------------------------
    def unbind(self, dim=0):
        if dim != 0:
            raise RuntimeError("unbind of a nested tensor is along dimension 0")
        return tuple(self.parts)

    def __len__(self):
        return len(self.parts)

    def __iter__(self):
        return iter(self.parts)

    def __getitem__(self, index):
        first, *rest = index if isinstance(index, tuple) else (index,)
        if isinstance(first, slice):
            parts = self.parts[first]
            return self._like([p[tuple(rest)] for p in parts] if rest else parts)
        if first is Ellipsis:
            return self._like([p[(Ellipsis, *rest)] for p in self.parts])
        return self.parts[first][tuple(rest)] if rest else self.parts[first]

    def _jagged(self, name):
        if self._layout is not jagged:
            raise RuntimeError(f"{name}() is of nested tensors with layout=jagged")

    def values(self):
        """All items one after the other."""
        self._jagged("values")
        if self._given is None:
            differs = next((d for d in range(self.dim() - 1) if self._alike_but(d)), 0)
            self._given = clnn.cat(self.parts, differs)
        return self._given

    def offsets(self):
        """Where each item begins in ``values()``, and the end."""
        self._jagged("offsets")
        return clnn.tensor([0, *itertools.accumulate(p.shape[0] for p in self.parts)], device=self.device)

    def lengths(self):
        """None: there is nothing between the items."""
        self._jagged("lengths")

    def to_padded_tensor(self, padding, output_size=None):
        """One dense tensor: items filled up with ``padding`` to the greatest size, or to ``output_size``."""
        sizes = [max(p.shape[d] for p in self.parts) for d in range(self.dim() - 1)] if output_size is None else list(output_size[1:])
        out = []
        for p in self.parts:
            missing = [m - n for m, n in zip(sizes, p.shape)]
            if min(missing, default=0) < 0:
                raise RuntimeError("Value in output_size is less than NestedTensor padded size. Truncation is not supported.")
            out.append(clnn.nn.functional.pad(p, [k for m in reversed(missing) for k in (0, m)], value=padding) if any(missing) else p)
        return clnn.stack(out)

    def backward(self, gradient=None, **kwargs):
        clnn.autograd.backward(self.parts, None if gradient is None else gradient.parts, **kwargs)

    def __repr__(self, *, tensor_contents=None):
        history = f", grad_fn={self.grad_fn}" if self.grad_fn is not None else ", requires_grad=True" if self.requires_grad else ""
        if self._layout is jagged:
            return f"NestedTensor(size=({', '.join(map(str, self.shape))}), offsets={self.offsets()}{history}, contiguous=True)"
        inner = ",\n".join("\n".join("  " + line for line in repr(p).split("\n")) for p in self.parts)
        return f"nested_tensor([\n{inner}\n]{history})"

    __str__ = __repr__
    __hash__ = object.__hash__

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        name, kwargs = getattr(func, "__name__", ""), kwargs or {}
        own = cls.__dict__.get(name)
        if own is not None and callable(own) and name in _OWN and isinstance(args[0], NestedTensor):
            return own(*args, **kwargs)
        handler = _HANDLERS.get(name)
        return handler(func, args, kwargs) if handler is not None else _mapped(func, args, kwargs)


_OWN = "unbind size dim numel is_contiguous requires_grad_ __len__ __iter__ __getitem__ __repr__ backward".split()
_POINTWISE = set("""add sub mul div true_divide pow rsub maximum minimum where eq ne lt le gt ge atan2 add_ sub_ mul_ div_ logical_and logical_or copy_
                    masked_fill fmod remainder""".split())


def _nested_in(values):
    return [v for v in tree_leaves(values) if isinstance(v, NestedTensor)]


def _sizes(nest):
    return f"({', '.join(map(str, (len(nest), *[nest._size(d) for d in range(1, nest.dim())])))})"


def _mapped(func, args, kwargs):
    """``func`` item by item. Dense operands of pointwise operators are broadcast against the whole."""
    nests = _nested_in((list(args), kwargs))
    first, name = nests[0], getattr(func, "__name__", "")
    for other in nests[1:]:
        if len(other) != len(first) or name in _POINTWISE and any(a.shape != b.shape and 1 not in (*a.shape, *b.shape) for a, b in zip(first, other)):
            raise RuntimeError(f"cannot call binary pointwise function {name}.Tensor with inputs of shapes {_sizes(first)} and {_sizes(other)}")

    def item(i):
        def pick(v):
            if isinstance(v, NestedTensor):
                return v.parts[i]
            if isinstance(v, Tensor) and name in _POINTWISE and v.dim() == first.dim():
                return v[i if v.shape[0] > 1 else 0]
            return v
        return func(*tree_map(pick, tuple(args)), **tree_map(pick, kwargs))
    return _gathered([item(i) for i in range(len(first))], first)


def _gathered(results, like):
    """The results of all items as nested tensors."""
    one = results[0]
    if isinstance(one, Tensor):
        return like._like(results)
    if isinstance(one, (tuple, list)):
        items = [_gathered(list(column), like) for column in zip(*results)]
        return type(one)(*items) if hasattr(one, "_fields") else type(one)(items)
    return one


def _inner(dim, ndim):
    """The dimension of an item that ``dim`` of the whole is."""
    if not -ndim <= dim < ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})")
    if dim % ndim == 0:
        raise RuntimeError("this operator is not possible along dimension 0 of a nested tensor; use unbind()")
    return dim % ndim - 1


def _along(first, last, names, extra=0):
    """A handler of an operator whose arguments number ``first`` up to ``last`` (or by the name) are dimensions."""
    def handler(func, args, kwargs):
        ndim = _nested_in((list(args), kwargs))[0].dim() + extra
        fix = lambda d: tuple(fix(i) for i in d) if isinstance(d, (tuple, list)) else _inner(d, ndim)       # noqa: E731
        args = [fix(a) if first <= i < last and a is not None else a for i, a in enumerate(args)]
        return _mapped(func, args, {k: fix(v) if k in names and v is not None else v for k, v in kwargs.items()})
    return handler


def _reduction(func, args, kwargs):
    """Over everything: a dense number. Over the dimension in which jagged items differ: a dense tensor of the items' results."""
    (nest, *rest), kwargs = args, dict(kwargs)
    dim = rest.pop(0) if rest else kwargs.pop("dim", None)
    if dim is None:
        return func(clnn.cat([p.reshape(-1) for p in nest.parts]), **kwargs)
    dims = tuple(_inner(d, nest.dim()) for d in (dim if isinstance(dim, (tuple, list)) else (dim,)))
    r = _mapped(func, (nest, dims if isinstance(dim, (tuple, list)) else dims[0], *rest), kwargs)
    if nest.layout is jagged and 0 in dims:
        return clnn.stack(r.parts) if isinstance(r, NestedTensor) else type(r)(*[clnn.stack(t.parts) for t in r])
    return r


def _reshape(func, args, kwargs):
    """``view`` and ``reshape``: the first two sizes stay, the second as -1 or the size itself."""
    nest, *size = args
    size = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    if size[0] not in (-1, len(nest)):
        raise RuntimeError(f"view: the first size is the number of items, {len(nest)}; got {size[0]}")
    return nest._like([p.reshape([p.shape[0] if isinstance(n, Ragged) or n == -1 and i == 0 else n for i, n in enumerate(size[1:])]) for p in nest.parts])


def _permute(func, args, kwargs):
    nest, *dims = args
    dims = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
    return nest._like([p.permute([_inner(d, nest.dim()) for d in dims[1:]]) for p in nest.parts])


def _dropout(func, args, kwargs):
    """One mask for all items, drawn in the order of memory, also where it changes nothing."""
    nest, *rest = args
    order = [memory_order(p, dense=True) or list(range(p.dim())) for p in nest.parts]
    lying = [p.permute(o) for p, o in zip(nest.parts, order)]
    flat = clnn.cat([p.reshape(-1) for p in lying])
    p, train = (rest + [kwargs.get("p", 0.5), kwargs.get("training", kwargs.get("train", True))][len(rest):])[:2]
    if train and p in (0, 1):
        clnn.empty_like(flat).bernoulli_(1 - p)
    items = func(flat, *rest, **kwargs).split([p.numel() for p in lying])
    return nest._like([t.reshape(p.shape).permute([o.index(d) for d in range(len(o))]) for t, p, o in zip(items, lying, order)])


_HANDLERS = {
    "dropout": _dropout,
    **dict.fromkeys("softmax log_softmax cumsum cumprod glu normalize argsort sort".split(), _along(1, 2, ("dim",))),
    **dict.fromkeys("sum mean amax amin max min argmax argmin prod norm var std logsumexp any all".split(), _reduction),
    **dict.fromkeys("transpose swapaxes flatten".split(), _along(1, 3, ("dim0", "dim1", "start_dim", "end_dim"))), "unflatten": _along(1, 2, ("dim",)),
    **dict.fromkeys(("unsqueeze",), _along(1, 2, ("dim",), 1)), **dict.fromkeys("squeeze select narrow".split(), _along(1, 2, ("dim",))),
    **dict.fromkeys("chunk split".split(), _along(2, 3, ("dim",))), "cat": _along(1, 2, ("dim",)), "view": _reshape, "reshape": _reshape, "permute": _permute,
}


# -- making them ------------------------------------------------------------------------------------------------------------------------

def _check(parts, layout):
    if any(p.dim() != parts[0].dim() for p in parts):
        raise RuntimeError("All Tensors given to nested_tensor must have the same dimension. Found dimension "
                           f"{parts[0].dim()} for Tensor at index 0 and another at a later index.")
    if layout is jagged and any(p.shape[1:] != parts[0].shape[1:] for p in parts):
        raise RuntimeError("Cannot represent given tensor list as a nested tensor with the jagged layout. Note that the jagged layout only represents shapes "
                           "of the form (B, *, D_0, D_1, ..., D_N) with only * allowed to be ragged.")


def nested_tensor(tensor_list, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """A nested tensor with copies of tensors, or of lists of numbers; a leaf.

    Example::

        >>> x = clnn.nested.nested_tensor([clnn.ones(2), clnn.zeros(3)])
        >>> x.to_padded_tensor(-1.0)
        tensor([[ 1.,  1., -1.],
                [ 0.,  0.,  0.]])
    """
    parts = [(t.detach().clone() if isinstance(t, Tensor) else clnn.tensor(t)).to(dtype=dtype, device=device) for t in tensor_list]
    _check(parts, layout)
    return NestedTensor(parts, layout or strided).requires_grad_(requires_grad)


def as_nested_tensor(ts, dtype=None, device=None, layout=None):
    """A nested tensor of tensors, part of their graph; of one dense tensor, its items along the first dimension.

    Example:
        >>> t = clnn.nested.as_nested_tensor([clnn.ones(1), clnn.ones(2)])
        >>> t.size(0)
        2
    """
    if isinstance(ts, NestedTensor):
        return NestedTensor(ts.parts, layout or ts.layout).to(dtype=dtype, device=device)
    parts = [t.to(dtype=dtype, device=device) for t in (ts.unbind(0) if isinstance(ts, Tensor) else ts)]
    _check(parts, layout)
    made = NestedTensor(parts, layout or strided)
    made._joins = clnn.is_grad_enabled() and any(p.requires_grad for p in parts)
    return made


def to_padded_tensor(input, padding, output_size=None):
    """The nested tensor as a dense one, items filled up with ``padding``.

    Example:
        >>> t = clnn.nested.nested_tensor([clnn.ones(1), clnn.ones(2)])
        >>> clnn.nested.to_padded_tensor(t, 0.0)
        tensor([[1., 0.],
                [1., 1.]])
    """
    return input.to_padded_tensor(padding, output_size)


def nested_tensor_from_jagged(values, offsets=None, lengths=None, jagged_dim=None, min_seqlen=None, max_seqlen=None):
    """A jagged tensor from its items one after the other, and where each begins (``offsets``, with the end) or how long it is (``lengths``).

    Example:
        >>> t = clnn.nested.nested_tensor_from_jagged(clnn.arange(3.0), clnn.tensor([0, 1, 3]))
        >>> [x.tolist() for x in t.unbind()]
        [[0.0], [1.0, 2.0]]
    """
    if offsets is None and lengths is None:
        raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is required.")
    if jagged_dim not in (None, 1):
        raise NotImplementedError("nested_tensor_from_jagged: items differ in their first dimension, jagged_dim=1")
    sizes = None if lengths is None else lengths.tolist()
    starts = offsets.tolist() if offsets is not None else [0, *itertools.accumulate(sizes)]
    sizes = sizes or [b - a for a, b in zip(starts, starts[1:])]
    t = NestedTensor([values.narrow(0, start, n) for start, n in zip(starts, sizes)], jagged)
    t._given = values if sum(sizes) == values.shape[0] else None
    return t


def narrow(tensor, dim, start, length, layout=strided):
    """A jagged tensor of parts of the rows of a dense one: ``length[i]`` elements from ``start[i]`` along dimension 1.

    Example:
        >>> t = clnn.nested.narrow(clnn.arange(6).reshape(2, 3), 1, clnn.tensor([0, 1]), clnn.tensor([1, 2]), layout=clnn.jagged)
        >>> [x.tolist() for x in t.unbind()]
        [[0], [4, 5]]
    """
    if dim != 1:
        raise RuntimeError(f"jagged layout only supports dim=1, got {dim}")
    rows = len(tensor)
    starts, lengths = ([v] * rows if isinstance(v, int) else v.tolist() for v in (start, length))
    return NestedTensor([tensor[i].narrow(0, s, n) for i, (s, n) in enumerate(zip(starts, lengths))], layout)


def masked_select(tensor, mask):
    """A jagged tensor of the elements of each row where ``mask`` is true.

    Example:
        >>> t = clnn.nested.masked_select(clnn.tensor([[1, 2], [3, 4]]), clnn.tensor([[True, False], [True, True]]))
        >>> [x.tolist() for x in t.unbind()]
        [[1], [3, 4]]
    """
    mask = mask.expand(tensor.shape)
    return NestedTensor([row.masked_select(m) for row, m in zip(tensor, mask)], jagged)
