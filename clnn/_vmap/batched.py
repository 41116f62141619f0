"""The batched tensor: what a function under ``vmap`` sees of a tensor that holds all samples.

``part`` has the samples along its first dimension; the batched tensor shows the other dimensions. It has no memory of its own: an operator that asks for
it gets :class:`NoStrides` and finds the batched form, which computes all samples at once. Its history is that of ``part``.
"""
from __future__ import annotations

import sys

from .._tensor import foreign, tape
from .._tensor.device import public
from .._tensor.foreign import Dressing, NoStrides, OfPart
from .._tensor.override import _wrappers
from .._tensor.tensor import edge
from ..core.shape import Size
from ..core.warn import PACKAGE


class NotBatched(NoStrides):
    """Something asked a batched tensor for memory or values that only its samples have."""

    def __init__(self, tensor):
        super().__init__(tensor)
        self.args = ("vmap: this operation asks for the memory of a tensor that stands for one sample and holds all of them",)

    def by_samples(self, node, grads, needed):
        """The gradients that a node of the tape gives for batched ones, where its rule needs their memory."""
        from .forms import by_samples
        return by_samples(node, grads, needed)

    def of(self, name):
        self.operator = self.operator or name.lstrip("_")
        return self


class Refused(NotBatched):
    """A program asked a batched tensor for a number, on which its course may depend."""

    def __init__(self, tensor, text):
        super().__init__(tensor)
        self.args = (text,)


Refused.__name__ = "RuntimeError"           # what a program that prints it expects


class _Memory:
    """Stands for the storage of a batched tensor: it has a device, and nothing else to give."""

    __slots__ = ("tensor",)

    def __init__(self, tensor):
        self.tensor = tensor

    device = property(lambda self: self.tensor._home)
    version = property(lambda self: self.tensor.part._version)

    def __getattr__(self, name):
        raise NotBatched(self.tensor)


def _refused(self):
    raise NotBatched(self)


class BatchedTensor(OfPart):
    """A tensor that stands for one sample while it holds them all, in level ``level`` of nested maps. Made by ``clnn.vmap``."""

    __slots__ = ("level",)

    _storage = property(_Memory)
    _strides = property(_refused)
    _offset = 0
    _dense = False
    _ver = None
    _home = property(lambda self: self.part._home)
    _bearer = property(lambda self: self.part._bearer)
    _version = property(lambda self: self.part._version)
    _inference = property(lambda self: self.part._inference)
    device = property(lambda self: public(self._home))
    is_cuda = property(lambda self: self.part.is_cuda)
    is_cpu = property(lambda self: self.part.is_cpu)
    is_meta = property(lambda self: self.part.is_meta)

    def _own_form(self, name):
        from .forms import form
        return form(name, _outermost())

    # -- making others ----------------------------------------------------------------------------------------------------------------
    @staticmethod
    def _make_subclass(cls, data, require_grad=False):
        return data._alias().requires_grad_(require_grad)

    def requires_grad_(self, requires_grad=True):
        if not sys._getframe(1).f_code.co_filename.startswith(PACKAGE):
            raise RuntimeError("You are attempting to call Tensor.requires_grad_() (or perhaps using torch.autograd.functional.* APIs) inside of a function being "
                               "transformed by a functorch transform. This is unsupported, please attempt to use the functorch transforms (e.g. grad, vjp, "
                               "jacrev, jacfwd, hessian) or call requires_grad_() outside of a function being transformed instead.")
        return super().requires_grad_(requires_grad)

    def _alias(self):
        return wrap(self.part._alias(), self.level)

    def _snapshot(self):
        return wrap(self.part._snapshot(), self.level)

    def _settle(self):
        self.part._settle()

    def _become(self, value, name="copy"):
        """Take over the values of ``value``: what in-place operators do."""
        from .._tensor.inplace import apply_inplace
        apply_inplace(self.part, stripped(value, self.level, self.part.shape[0]), name)
        return self

    def _assign(self, value):
        self.part._assign(stripped(value, self.level, self.part.shape[0]))

    def _check_fits(self, target, name):
        """Whether in-place results like this one can be written into ``target``: it must hold a value for each sample, too."""
        if not set(levels_of(self)) <= set(levels_of(target)):
            raise RuntimeError(f"vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has more "
                               f"elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped over. ({name}_) Use "
                               "out-of-place operators instead; or make `self` of a tensor that is vmapped over, with new_zeros for example.")

    # -- history: that of all samples -------------------------------------------------------------------------------------------------
    def _node_before(self):
        return ToSamples(self) if self.part._rg else None

    def _node_behind(self, node):
        return FromSamples(self, node)

    @property
    def requires_grad(self):
        return self.part.requires_grad

    @requires_grad.setter
    def requires_grad(self, value):
        self.part.requires_grad = value

    is_leaf = property(lambda self: self.part.is_leaf)
    grad_fn = property(lambda self: None if self.part.grad_fn is None else ToSamples(self))

    @property
    def _grad(self):
        return None if self.part._grad is None else wrap(self.part._grad, self.level)

    @_grad.setter
    def _grad(self, value):
        self.part._grad = None if value is None else stripped(value, self.level, self.part.shape[0])

    def _dressed(self, g):
        """A gradient of all samples as one of this tensor."""
        return None if g is None else dressed(self.part._dressed(g), self.level)

    def _bared(self, g):
        """A gradient of this tensor as one of the tensor that bears its history."""
        return self.part._bared(stripped(g, self.level, self.part.shape[0]))

    def _edges_of(self, edges, values):
        """The edges of the node that gave this tensor: operands that are the same for all samples get the sum of their gradients."""
        out = []
        for e, v in zip(edges, values):
            missing = [] if e is None else [level for level in levels_of(self) if level not in levels_of(v)]
            out.append((Summed(e, missing), 0) if missing else e)
        return out

    def retain_grad(self):
        self.part.retain_grad()

    def register_hook(self, hook):
        def on_all(g):
            new = hook(None if g is None else dressed(g, self.level))
            return None if new is None else stripped(new, self.level, self.part.shape[0])
        return self.part.register_hook(on_all)

    def detach(self):
        return wrap(self.part.detach(), self.level)

    def detach_(self):
        self.part = self.part.detach()
        return self

    @property
    def data(self):
        return wrap(self.part.data, self.level)

    @data.setter
    def data(self, value):
        self.part.data = stripped(value, self.level, self.part.shape[0])
        self._shape, self._dtype, self._numel = value.shape, value.dtype, value._numel

    # -- questions --------------------------------------------------------------------------------------------------------------------
    def is_contiguous(self, memory_format=None):
        return self.part.is_contiguous()

    def stride(self, dim=None):
        strides = self.part.stride()[1:]
        return strides if dim is None else strides[dim]

    def storage_offset(self):
        return self.part.storage_offset()

    def get_device(self):
        return self.part.get_device()

    def data_ptr(self):
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    def item(self):
        raise Refused(self, "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, please try "
                         "to rewrite what you're doing with other operations. If error is occurring somewhere inside PyTorch internals, please file a bug report.")

    def __bool__(self):
        raise Refused(self, "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support that yet, "
                         "please file an issue at https://github.com/pytorch/pytorch/issues .")

    def __index__(self):
        self.item()

    def numpy(self, *, force=False):
        raise Refused(self, "vmap: a batched tensor has no NumPy array: only the result of the map has")

    def tolist(self):
        raise Refused(self, "vmap: It looks like you're calling .tolist() on a Tensor, whose values differ between the samples")

    # -- other dtypes and places ------------------------------------------------------------------------------------------------------
    def to(self, *args, **kwargs):
        """Another dtype and/or device; the tensor itself if nothing changes."""
        part = self.part.to(*[_behind(a) for a in args], **{k: _behind(v) for k, v in kwargs.items()})
        return self if part is self.part else wrap(part, self.level)

    def type(self, dtype=None, non_blocking=False):
        return self.part.type() if dtype is None else wrap(self.part.type(dtype), self.level)

    # -- Python's protocols -----------------------------------------------------------------------------------------------------------
    def __repr__(self, *, tensor_contents=None):
        inner = "\n".join("    " + line for line in repr(self.part).split("\n"))
        depth = next((i for i, (number, *_) in enumerate(foreign.here.maps, 1) if number == self.level), self.level)
        return f"BatchedTensor(lvl={depth}, bdim=0, value=\n{inner}\n)"

    __str__ = __format__ = lambda self, spec="": repr(self)

    def __deepcopy__(self, memo):
        return self._snapshot().requires_grad_(self._rg)

    def __reduce_ex__(self, protocol):
        raise RuntimeError("vmap: a batched tensor cannot be pickled: only the result of the map can")


def _behind(value):
    while isinstance(value, BatchedTensor):
        value = value.part
    return value


def _of_part(name):
    def method(self, *args, **kwargs):
        return wrap(getattr(self.part, name)(*args, **kwargs), self.level)
    setattr(BatchedTensor, name, method)


def _maker(name):
    """``new_zeros`` and its like give batched tensors, so that results of this map can be written into them."""
    def method(self, *size, **kwargs):
        size = kwargs.pop("size", size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size)
        return wrap(getattr(self.part, name)((self.part.shape[0], *size), **kwargs), self.level)
    setattr(BatchedTensor, name, method)


for _name in ("float", "double", "half", "bfloat16", "long", "int", "short", "char", "byte", "bool", "cfloat", "cdouble", "cpu", "cuda"):
    _of_part(_name)
for _name in ("new_empty", "new_zeros", "new_ones"):
    _maker(_name)
BatchedTensor.new_full = lambda self, size, fill_value, **kwargs: wrap(self.part.new_full((self.part.shape[0], *size), fill_value, **kwargs), self.level)
BatchedTensor.new_tensor = lambda self, *args, **kwargs: self.part.new_tensor(*args, **kwargs)


def wrap(part, level) -> BatchedTensor:
    """A batched tensor of the samples along the first dimension of ``part``."""
    t = object.__new__(BatchedTensor)
    t.part, t.level, t._dtype = part, level, part.dtype
    t._shape = Size(part.shape[1:])
    t._numel = t.shape.numel()
    return t


def stripped(t, level, size):
    """``t`` with the samples of ``level`` as its first dimension: repeated, without a copy, where it has none."""
    if isinstance(t, BatchedTensor):
        if t.level == level:
            return t.part
        if t.level > level:
            return wrap(stripped(t.part, level, size).movedim(0, 1), t.level)
    return t.unsqueeze(0).expand(size, *t.shape)


def dressed(g, level):
    """The inverse: the samples of ``level`` along the first dimension of ``g``, which may itself be batched, inside of it."""
    if isinstance(g, BatchedTensor) and g.level > level:
        return wrap(dressed(g.part.movedim(1, 0), level), g.level)
    return wrap(g, level)


def spread(t, levels):
    """``t`` as a batched tensor of all ``levels``, (number, size, ...) with the outermost first: what has its own value in every sample."""
    for level, size, _ in levels:
        t = _into(t, level, size)
    return t


def _into(t, level, size):
    if isinstance(t, BatchedTensor):
        if t.level == level:
            return t
        if t.level > level:
            return wrap(_into(t.part, level, size), t.level)
    return wrap(t.unsqueeze(0).expand(size, *t.shape), level)


def deepest(values, level=0):
    """The number of the innermost level among ``values`` and the lists in them; 0 where none is batched."""
    for v in values:
        if isinstance(v, BatchedTensor):
            level = max(level, v.level)
        elif v.__class__ is list or v.__class__ is tuple:
            level = deepest(v, level)
    return level


def levels_of(t):
    """(number, samples) of each level that ``t`` belongs to."""
    found = []
    while isinstance(t, BatchedTensor):
        found.append((t.level, t.part.shape[0]))
        t = t.part
    return found


def _outermost():
    """Whether the operator that asks is called by no other operator."""
    frame, depth = sys._getframe(2), 0
    while frame is not None and depth < 2:
        depth += frame.f_code in _wrappers and frame.f_code.co_name != "inplace"
        frame = frame.f_back
    return depth < 2


class ToSamples(tape.Node):
    """Stands before the history of a batched tensor's samples: takes a gradient of the tensor."""

    def __init__(self, t):
        super().__init__([edge(t.part)], 1)
        self.level, self.size = t.level, t.part.shape[0]

    def name(self):
        return self.edges[0][0].name()

    def apply(self, grads, needed):
        return [stripped(grads[0], self.level, self.size)]


class Summed(tape.Node):
    """Stands before the history of an operand that some samples share: takes a gradient of each and adds them up."""

    def __init__(self, edge, levels):
        super().__init__([edge], 1)
        self.levels = levels

    def name(self):
        return self.edges[0][0].name()

    def apply(self, grads, needed):
        g = grads[0]
        for level, size in self.levels:
            g = stripped(g, level, size).sum(0)
        return [g]


class FromSamples(Dressing):
    """Stands behind the samples of a batched tensor that a custom function returned: hands that function a batched gradient."""

    def __init__(self, t, node):
        super().__init__([(node, 0)], 1)
        self.level = t.level

    def name(self):
        return self.edges[0][0].name()

    def apply(self, grads, needed):
        return [dressed(grads[0], self.level)]
