"""The sparse tensor: a pattern of places and a dense tensor of the values there.

Its history is that of its values. What an operator computes is computed on values, by operators of dense tensors, so gradients follow from theirs; the
gradient of a sparse tensor has its pattern. Whatever asks for strides or storage gets :class:`NoStrides`, which finds the sparse form of an operator.
"""
from __future__ import annotations

import math

from .._tensor import tape
from .._tensor.declare import view
from .._tensor.device import public
from .._tensor.foreign import Dressing, NoStrides, OfPart
from .._tensor.grad_mode import state
from .._tensor.tensor import edge
from ..core.layout import sparse_coo as COO, sparse_csc as CSC, sparse_csr as CSR
from ..core.shape import Size

LAYOUT_NAMES = {COO: "Sparse", CSR: "SparseCsr", CSC: "SparseCsc"}


@view("_sparse_values", method=False, vjp=dict(input=lambda g: g))
def _sparse_values(input):
    """The values that a sparse tensor is made of, as a tensor with a history of its own."""
    return tuple(input.shape), input._strides, input._offset


_sparse_values.op.grad_name = "SparseCooTensorWithDimsAndTensorsBackward0"


def _no_strides(self):
    raise NoStrides(self)


class SparseTensor(OfPart):
    """A tensor of which only some elements are stored. Made by ``clnn.sparse_coo_tensor``, ``clnn.sparse_csr_tensor`` and ``Tensor.to_sparse``."""

    __slots__ = ("pattern", "layout")

    _storage = _strides = _offset = property(_no_strides)
    _dense = False
    is_sparse = property(lambda self: self.layout is COO)
    is_sparse_csr = property(lambda self: self.layout is CSR)
    _home = property(lambda self: self.part._storage.device)
    device = property(lambda self: public(self._home))
    is_cuda = property(lambda self: self.part.is_cuda)
    is_cpu = property(lambda self: self.part.is_cpu)
    is_meta = property(lambda self: self.part.is_meta)
    _version = property(lambda self: self.part._version)
    _inference = property(lambda self: self.part._inference)

    def _own_form(self, name):
        from ._operators import FORMS
        return FORMS.get(name)

    def _backend(self):
        return LAYOUT_NAMES[self.layout] + ("CUDA" if self.is_cuda else "CPU")

    # -- making others ----------------------------------------------------------------------------------------------------------------
    @staticmethod
    def _make_subclass(cls, data, require_grad=False):
        return data._alias().requires_grad_(require_grad)

    def _alias(self):
        return make(self.pattern, self.part._alias(), self.layout, self.shape)

    def _snapshot(self):
        return make(self.pattern, self.part._snapshot(), self.layout, self.shape)

    def _settle(self):
        self.part._storage.buffer()

    def like(self, part):
        """The same places with other values."""
        return make(self.pattern, part, self.layout)

    def _become(self, value, name="copy"):
        """Take over pattern and values of ``value``: what in-place operators do."""
        if not isinstance(value, SparseTensor):
            raise RuntimeError(f"{name}_: the result is dense, which a sparse tensor cannot hold")
        if state.grad and self._rg and self.is_leaf:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        if value.layout is not self.layout:
            from ._build import to_layout
            value = to_layout(value, self.layout)
        if value.pattern is self.pattern and not value._rg and not self._rg:
            self.part._assign(value.part)                       # who holds values() sees it
        else:
            leaf, grad = self._rg and self.is_leaf, self.part._grad
            self.pattern, self.part = value.pattern, value.part
            self._shape, self._numel = value.shape, value._numel
            if leaf:                                            # a parameter stays one
                self._rg, self.part._grad = True, grad
        return self

    def _assign(self, value):
        self._become(value)

    # -- history: that of the values --------------------------------------------------------------------------------------------------
    def _node_before(self):
        return None if self.part.grad_fn is None else ToValues(self)

    def _node_behind(self, node):
        return FromValues(self, node)

    @property
    def _grad(self):
        values = self.part._grad
        if values is None:
            return None
        known = self.__dict__.get("_dressed_grad")
        if known is None or known.part is not values:
            known = self.__dict__["_dressed_grad"] = self._dressed(values)
        return known

    @_grad.setter
    def _grad(self, value):
        self.part._grad = None if value is None else on_pattern(value, self).part

    @property
    def _bearer(self):
        return self.part

    def _dressed(self, values):
        """The gradient of the values as one of this tensor."""
        return None if values is None else make(self.pattern, values, self.layout, self.shape)

    def retain_grad(self):
        self.part.retain_grad()

    def register_hook(self, hook):
        def on_values(g):
            new = hook(self._dressed(g))
            return None if new is None else on_pattern(new, self).part
        return self.part.register_hook(on_values)

    def detach(self):
        return self._alias()

    def detach_(self):
        self.part = self.part._alias()
        return self

    @property
    def data(self):
        return self._alias()

    @data.setter
    def data(self, value):
        rg = self._rg
        self.pattern, self.part, self.layout = value.pattern, value.part._alias(), value.layout
        self._shape, self._dtype, self._numel = value.shape, value.dtype, value._numel
        self._rg = rg

    # -- questions --------------------------------------------------------------------------------------------------------------------
    def is_coalesced(self):
        """Whether the elements are in order and each place occurs once, as far as is known."""
        self._expect("is_coalesced", COO)
        return self.pattern.ordered

    def _expect(self, name, *layouts):
        if self.layout not in layouts:
            kind = {COO: "coordinate tensor", CSR: "row compressed tensor", CSC: "column compressed tensor"}[layouts[0]]
            raise RuntimeError(f"{name} expected sparse {kind} layout but got {LAYOUT_NAMES[self.layout]}")

    def sparse_dim(self):
        return len(self.pattern.sizes)

    def dense_dim(self):
        return len(self.part.shape) - 1

    def _nnz(self):
        return self.pattern.nnz

    def stride(self, dim=None):
        if self.layout is not COO:
            raise RuntimeError(f"Sparse {self._kind()} tensors do not have strides")
        return (0,) * len(self.shape) if dim is None else 0

    def is_contiguous(self, memory_format=None):
        if self.layout is not COO:
            raise RuntimeError(f"Sparse {self._kind()} tensors do not have is_contiguous")
        return False

    def _kind(self):
        return str(self.layout).rpartition("_")[2].upper()

    def get_device(self):
        return self.part.get_device()

    def data_ptr(self):
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    def type(self, dtype=None, non_blocking=False):
        name = self.part.type()
        return name.replace("clnn.", "clnn.sparse.", 1) if dtype is None else self.like(self.part.type(dtype))

    # -- parts ------------------------------------------------------------------------------------------------------------------------
    def _indices(self):
        """Places (sparse dimensions, nnz), of a tensor that is coalesced or not."""
        self._expect("_indices", COO)
        return self._places()

    def _values(self):
        """Values (nnz, *), without history."""
        return self.part.detach()

    def indices(self):
        """Places (sparse dimensions, nnz) of a coalesced tensor."""
        self._expect("indices", COO)
        self._coalesced("indices")
        return self._places()

    def _places(self):
        from ._pattern import remember
        return remember(self.pattern.indices._snapshot(), self.pattern)

    def values(self):
        """Values (nnz, *), with history."""
        if self.layout is COO:
            self._coalesced("values")
        return self.part.view_as(self.part) if state.grad and self._rg else self.part.detach()

    def _coalesced(self, name):
        if not self.pattern.ordered:
            raise RuntimeError(f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first")

    def crow_indices(self):
        self._expect("crow_indices", CSR)
        return self.pattern.starts(0)

    def col_indices(self):
        self._expect("col_indices", CSR)
        return self.pattern.compressed[2] if self.pattern.compressed else self.pattern.indices[1]

    def ccol_indices(self):
        self._expect("ccol_indices", CSC)
        return self.pattern.starts(1)

    def row_indices(self):
        self._expect("row_indices", CSC)
        return self.pattern.compressed[2] if self.pattern.compressed else self.pattern.indices[0]

    # -- other values -----------------------------------------------------------------------------------------------------------------
    def to(self, *args, **kwargs):
        """Another dtype and/or device; the tensor itself if nothing changes."""
        args = [a.part if isinstance(a, SparseTensor) else a for a in args]
        part = self.part.to(*args, **kwargs)
        if part is self.part:
            return self
        home = part._storage.device
        pattern = self.pattern if home is self._home else self.pattern.moved(lambda t: t.to(public(home)))
        return make(pattern, part, self.layout, self.shape)

    def clone(self, *, memory_format=None):
        return self.like(self.part.clone())

    def zero_(self):
        """Forget all elements."""
        from ._build import nothing
        return self._become(nothing(self, self.dtype, self._home), "zero")

    def _coalesced_(self, value):
        """Say whether the places are in order and differ."""
        p = self.pattern
        self.pattern = type(p)(p.sizes, p.indices, bool(value))
        return self

    def sparse_resize_(self, size, sparse_dim, dense_dim):
        """Another shape for the same places and values; sizes of dense dimensions stay."""
        if len(size) != sparse_dim + dense_dim:
            raise RuntimeError(f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = {sparse_dim}, dense_dim = {dense_dim}")
        if self._nnz() and (sparse_dim, dense_dim) != (self.sparse_dim(), self.dense_dim()):
            raise RuntimeError(f"changing the number of sparse or dense dimensions (from {self.sparse_dim()}, {self.dense_dim()} to {sparse_dim}, {dense_dim}) "
                               "on a non-empty sparse tensor is not supported.")
        if self._nnz() and (tuple(size[sparse_dim:]) != tuple(self.shape[sparse_dim:]) or any(a < b for a, b in zip(size, self.shape))):
            raise RuntimeError(f"sparse_resize_: a tensor with elements can only grow in its sparse dimensions; got {list(self.shape)} to {list(size)}")
        if not self._nnz():
            return self.sparse_resize_and_clear_(size, sparse_dim, dense_dim)
        p = self.pattern
        return self._become(make(type(p)(size[:sparse_dim], p.indices, p.ordered), self.part))

    def sparse_resize_and_clear_(self, size, sparse_dim, dense_dim):
        """Another shape, without elements."""
        from ._build import nothing_of
        return self._become(nothing_of(size, sparse_dim, self.dtype, self._home), "sparse_resize")

    def item(self):
        if self._numel != 1:
            raise RuntimeError(f"a Tensor with {self._numel} elements cannot be converted to Scalar")
        return self.part.sum().item()

    def numpy(self, *, force=False):
        raise TypeError("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")

    def tolist(self):
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    # -- Python's protocols -----------------------------------------------------------------------------------------------------------
    def __getitem__(self, index):
        from ._places import getitem
        return getitem(self, index)

    def __setitem__(self, index, value):
        raise TypeError("Cannot assign to a sparse tensor")

    def __iter__(self):
        if not self.shape:
            raise TypeError("iteration over a 0-d tensor")
        return iter([self[i] for i in range(self.shape[0])])

    def __repr__(self, *, tensor_contents=None):
        from ._display import sparse_repr
        return sparse_repr(self)

    def __copy__(self):
        return self._alias().requires_grad_(self._rg)

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        if self._grad_fn is not None:
            raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.")
        new = memo[id(self)] = self._snapshot().requires_grad_(self._rg)
        if self._grad is not None:
            new._grad = self._grad._snapshot()
        new.__dict__.update({k: v for k, v in self.__dict__.items() if k in ("_is_param", "_is_buffer", "persistent")})
        return new

    def __reduce_ex__(self, protocol):
        packed = self.pattern.compressed
        return rebuild, (None if packed else self.pattern.indices, packed, self.part.detach(), tuple(self.shape), self.pattern.ordered, str(self.layout),
                         self._rg)


def _shortcut(name):
    def method(self, *args, **kwargs):
        return self.like(getattr(self.part, name)(*args, **kwargs))
    setattr(SparseTensor, name, method)


def _maker(name):
    def method(self, *args, **kwargs):
        return getattr(self.part, name)(*args, **kwargs)
    setattr(SparseTensor, name, method)


for _name in ("float", "double", "half", "bfloat16", "long", "int", "short", "char", "byte", "bool", "cfloat", "cdouble"):
    _shortcut(_name)
for _name in ("new_empty", "new_zeros", "new_ones", "new_full", "new_tensor", "new"):
    _maker(_name)


def make(pattern, part, kind=COO, shape=None) -> SparseTensor:
    """A sparse tensor of a pattern and its values (nnz, *dense dimensions)."""
    t = object.__new__(SparseTensor)
    t.pattern, t.part, t.layout = pattern, part, kind
    t._shape = Size(pattern.sizes + tuple(part.shape[1:])) if shape is None else shape
    t._dtype, t._numel = part.dtype, math.prod(t.shape)
    return t


def rebuild(indices, packed, part, shape, ordered, kind, requires_grad):
    """A sparse tensor from its pickled parts."""
    from ._pattern import Pattern
    pattern = Pattern(shape[:len(shape) - part.ndim + 1], indices, ordered, packed)
    return make(pattern, part, {str(k): k for k in LAYOUT_NAMES}[kind]).requires_grad_(requires_grad)


def on_pattern(g, t):
    """The gradient ``g``, dense or sparse, at the places of ``t``."""
    if isinstance(g, SparseTensor) and (g.pattern is t.pattern or g.layout is not COO):
        return g
    from ._build import sparse_mask
    return sparse_mask(g, t)


class ToValues(tape.Node):
    """Stands before the history of a sparse tensor's values: takes a gradient of the tensor, dense or sparse."""

    def __init__(self, t):
        super().__init__([edge(t.part)], 1)
        self.target = t.detach()

    def name(self):
        return self.edges[0][0].name()

    def apply(self, grads, needed):
        return [on_pattern(grads[0], self.target).part]


class FromValues(Dressing):
    """Stands behind the values of a sparse tensor that a custom function returned: hands that function a sparse gradient."""

    def __init__(self, t, node):
        super().__init__([(node, 0)], 1)
        self.dress = t.detach()._dressed

    def name(self):
        return self.edges[0][0].name()

    def apply(self, grads, needed):
        return [self.dress(grads[0])]
