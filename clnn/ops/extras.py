"""Less common Tensor operators: number theory, Bessel, shape changes in place, and other rarely used names."""
from __future__ import annotations

import math

import numpy as np

from .._tensor.declare import composite, elementwise
from .._tensor.grad_mode import state
from .._tensor.inplace import apply_inplace, mark, put, refuse_leaf, region_node, set_out, type_name
from .._tensor.interop import from_array, read
from .._tensor.refusals import spoken
from .._tensor.return_types import named
from .._tensor.tensor import Tensor
from .._tensor.writing import bump
from ..core import dtype as dt
from ..core.limits import check_fits
from ..core.shape import Size, wrap_dim
from ..core.warn import warn
from ..graph.op import REGISTRY
from . import creation
from .selection import where

# -- number theory -----------------------------------------------------------------------------------------------------------------
gcd = elementwise("gcd", "input, other", dict(bool="(input | other)", int="clnn_gcd(input, other)", float="input"), numpy=np.gcd, dtypes=dt.INTS)


@composite("lcm", repeat="small", inplace=True, numpy=np.lcm)
def lcm(input, other):
    """Least common multiple of integers."""
    d = gcd(input, other)
    return where(d == 0, 0, (input // where(d == 0, 1, d) * other).abs())


@composite("ldexp", repeat="ready small", complex=True, inplace=True)
def ldexp(input, other):
    """``input * 2 ** other``."""
    if not isinstance(other, Tensor):
        raise TypeError(f"ldexp(): argument 'other' (position 2) must be Tensor, not {type(other).__name__}")
    if other.dtype.category < dt.FLOAT:
        other = other.to(input.dtype if input.dtype.is_floating_point else dt.float_default())
    return input * REGISTRY["exp2"].fn(other)


i0 = elementwise("i0", "input", "clnn_i0(input)", result="float", vjp=dict(input=lambda g, input: g * _i1(input)),
                 doc="Modified Bessel function of the first kind, order 0.")
_i1 = elementwise("_i1", "input", "(input == 0 ? (ACC)0 : clnn_i1(input))", result="float", method=False, inplace=False,
                  vjp=dict(input=lambda g, input, result: g * where(input.abs() > 0, i0(input) - result / where(input == 0, 1.0, input), 0.5)))
_i1.op.grad_name = "SpecialI1Backward0"

_entr = elementwise("_entr", "input", "(isnan(input) ? input : input > 0 ? -input * log(input) : input == 0 ? (ACC)0 : (ACC)-INFINITY)", result="float", method=False,
                    inplace=False, vjp=dict(input=lambda g, input: g * (-1 - input.log())))
_entr.op.grad_name = "SpecialEntrBackward0"
_frexp_exponent = elementwise("_frexp_exponent", "input", "clnn_exponent(input)", result=lambda common, kinds: (common, dt.int32), dtypes=dt.FLOATS, method=False,
                              inplace=False, gradcheck=False)
_frexp = elementwise("_frexp", "input", "clnn_mantissa(input)", dtypes=dt.FLOATS, method=False, inplace=False, gradcheck=False,
                     vjp=dict(input=lambda g, input: g / REGISTRY["exp2"].fn(_frexp_exponent(input).to(input.dtype))))
_frexp.op.grad_name = "FrexpBackward0"


@composite("frexp")
def frexp(input):
    """Mantissa of size in [0.5, 1) and exponent with ``input = mantissa * 2 ** exponent``; zeros, infinities and NaN are their own mantissas."""
    if not input.dtype.is_floating_point:
        raise RuntimeError("frexp() only supports floating-point dtypes")
    return named("frexp", "mantissa", "exponent")((_frexp(input), _frexp_exponent(input)))


# -- shape changes in place ---------------------------------------------------------------------------------------------------------
def _in_place_view(name):
    fn, further = REGISTRY[name].fn, 3 if name == "squeeze" else 1        # PyTorch counts these after the functions' own forms

    def method(self, *args, **kwargs):
        if state.grad:
            refuse_leaf(self)
        v = fn(self, *args, **kwargs)
        self._shape, self._strides, self._offset, self._dense, self._numel = v.shape, v._strides, v._offset, v._dense, v._numel
        if v._grad_fn is not None:
            node = v._grad_fn
            if node is not self._grad_fn and node.name()[-1:].isdigit():
                node.label = f"{node.name()[:-1]}{int(node.name()[-1]) + further}"
            self._grad_fn, self._out_nr = node, v._out_nr
        elif self._grad_fn is not None and self._base is not None:              # unrecorded, its history is that of its region
            node = region_node(self._base, self)
            if self._origin is not None:                                        # a write is refused in the name of what made it
                node.label = self._grad_fn.name()
            self._grad_fn, self._out_nr = node, 0
        bump(self)                                              # entries of the tape that keep this tensor keep another shape
        if self._base is not None:
            self._view_version = (self._ver or self._storage).version
        return self
    method.__name__, method.__doc__ = name + "_", f"In-place form of ``{name}``: this handle gets the new shape."
    setattr(Tensor, name + "_", method)


for _name in ("squeeze", "unsqueeze", "transpose", "t", "swapaxes", "swapdims", "as_strided"):
    _in_place_view(_name)


def fill_diagonal_(self, fill_value, wrap=False):
    """Write ``fill_value`` on the main diagonal."""
    if self.ndim < 2:
        raise RuntimeError("dimensions must larger than 1")
    if self.ndim > 2 and len(set(self.shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    if self.ndim == 2 and wrap and self.shape[0] > self.shape[1] + 1:
        rows, columns = self.shape
        for first in range(0, rows, columns + 1):                   # the next diagonal begins after an empty row
            fill_diagonal_(self[first:first + columns], fill_value)
        return self
    check_fits(fill_value, self.dtype)
    step, count = sum(self._strides), min(self.shape)
    if fill_value.__class__ not in (int, float) or not self.dtype.is_floating_point or self.__class__ is not Tensor or count == 0 \
            or not put(self, Size((count,)), (step,), self._offset, count, float(fill_value)):
        self.as_strided((count,), (step,), self._offset).fill_(fill_value)
    return self


def float_power_(self, exponent):
    """In-place form of :func:`clnn.float_power`, of tensors that can hold its result."""
    since = mark()
    r = REGISTRY["float_power"].fn(self, exponent)
    if r.dtype is not self.dtype:
        raise RuntimeError(f"the base given to float_power_ has dtype {type_name(self.dtype)} but the operation's result requires dtype {type_name(r.dtype)}")
    return apply_inplace(self, r, "float_power", since)


def renorm(self, p, dim, maxnorm, *, out=None):
    """Sub-tensors along ``dim`` scaled down to a p-norm of at most ``maxnorm``."""
    if self.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {self.ndim} dimensions")
    if not self.dtype.differentiable:
        raise RuntimeError(f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {type_name(self.dtype)}")
    if isinstance(p, complex):
        raise RuntimeError("renorm: p must be real-valued")
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    r = _renorm(self.contiguous(), p, wrap_dim(dim, self.ndim), maxnorm)
    if out is not None and out.dtype is not r.dtype:
        raise RuntimeError(f"Expected out tensor to have dtype {spoken(r.dtype)}, but got {spoken(out.dtype)} instead")
    return set_out(out, r, (self,))


@composite("_renorm", repeat="ready small", splice=True, complex=True, method=False)
def _renorm(input, p, dim, maxnorm):
    norm = input.norm(p, tuple(d for d in range(input.ndim) if d != dim % input.ndim), True)
    return where(norm > maxnorm, input * (maxnorm / (norm + 1e-7)), input)


def _renorm_in_place(self, p, dim, maxnorm):
    since = mark()
    return apply_inplace(self, renorm(self, p, dim, maxnorm), "renorm", since)


def _on_host(self, name, fn, *others):
    """Apply a Python function to each element (slow; kept for PyTorch's ``apply_`` and ``map_``)."""
    if not callable(fn):
        raise TypeError(f"{type(fn).__name__!r} object is not callable")
    if any([t._rg for t in (self, *others)]):
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
    for what, t in zip(("other",) if len(others) == 1 else ("x", "y"), others):
        if t.dtype is not self.dtype:
            raise TypeError(f"{name}: expected {self.type()} for '{what}' (got {t.type()})")
    arrays = [read(t.detach()) for t in (self, *[t.expand(self.shape) for t in others])]
    out = np.vectorize(fn, otypes=[arrays[0].dtype])(*arrays) if arrays[0].size else arrays[0]
    return apply_inplace(self, from_array(np.asarray(out), self._storage.device, self.dtype), "apply")


Tensor.fill_diagonal_ = fill_diagonal_
Tensor.renorm, Tensor.float_power_ = renorm, float_power_
Tensor.renorm_ = _renorm_in_place
Tensor.apply_ = lambda self, fn: _on_host(self, "apply_", fn)
Tensor.map_ = lambda self, other, fn: _on_host(self, "map_", fn, other)
Tensor.map2_ = lambda self, x, y, fn: _on_host(self, "map2_", fn, x, y)
Tensor._is_view = lambda self: self._base is not None
Tensor._is_all_true = lambda self: self.all()
Tensor._is_any_true = lambda self: self.any()
Tensor.is_same_size = lambda self, other: self.shape == other.shape
Tensor.is_nonzero = lambda self: bool(self)
Tensor.new = lambda self, *args, size=None, **kw: creation.legacy_new(args if size is None else (Size(size),), self.dtype, self._storage.device)
Tensor.new_empty_strided = lambda self, size, stride, dtype=None, device=None, **kw: empty_strided(size, stride, dtype=dtype or self.dtype,
                                                                                               device=device or self.device)
Tensor.narrow_copy = lambda self, dim, start, length: self.narrow(dim, start, length).clone()
Tensor.record_stream = lambda self, stream: None
Tensor.is_distributed = lambda self: False
Tensor.is_mps = Tensor.is_xpu = Tensor.is_xla = Tensor.is_vulkan = Tensor.is_sparse_csr = Tensor.is_mtia = Tensor.is_maia = Tensor.is_ipu = False


def _dim_order(self, ambiguity_check=False):
    """The dimensions from the outermost to the innermost one in memory; ``ambiguity_check`` refuses tensors that have several such orders."""
    strides = self._strides
    if not isinstance(ambiguity_check, (bool, list)):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    if ambiguity_check is True and len({st for st, n in zip(strides, self.shape) if n > 1 and st}) < self.ndim:
        raise RuntimeError("The tensor does not have unique dim order.")
    return tuple(sorted(range(self.ndim), key=lambda d: -strides[d]))


Tensor.dim_order = _dim_order
Tensor.name = None


def _resized(self, *sizes):
    """The leading elements in another shape of as many (deprecated in PyTorch; use ``reshape`` or ``resize_``)."""
    warn("non-inplace resize is deprecated")
    return _reshaped(self, sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes)


def _resized_as(self, other):
    """:func:`_resized` to the shape of ``other``."""
    warn("non-inplace resize_as is deprecated")
    return _reshaped(self, other.shape)


def _reshaped(tensor, sizes):
    if math.prod(sizes) != tensor._numel:
        raise RuntimeError(f"requested resize to {'x'.join(map(str, sizes))} ({math.prod(sizes)} elements in total), but the given tensor has a size of "
                           f"{'x'.join(map(str, tensor.shape))} ({tensor._numel} elements). autograd's resize can only change the shape of a given tensor, while "
                           "preserving the number of elements. ")
    return tensor.reshape(sizes)


def _module_load(self, other, assign=False):
    """What takes the place of ``self`` when ``other`` is loaded into a module that has it: ``other`` itself, or ``self`` with its values."""
    return other.detach() if assign else self.copy_(other).detach()


Tensor.resize, Tensor.resize_as = _resized, _resized_as
Tensor.module_load = _module_load


@creation.told
def empty_strided(size, stride, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """Uninitialised memory with given sizes and strides.

    Example:
        >>> clnn.empty_strided((2, 3), (1, 2)).stride()
        (1, 2)
    """
    n = 1 + sum((s - 1) * t for s, t in zip(size, stride)) if 0 not in tuple(size) else 0
    base = creation.empty(n, dtype=dtype, device=device)
    return creation._done(base.as_strided(tuple(size), tuple(stride), 0).detach(), requires_grad)
