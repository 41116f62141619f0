"""The quantised tensor: a tensor of integers, which has the memory, and a quantizer. It has no history: rounded numbers have no gradient.

Whatever asks it for memory is left (:class:`NotQuantized`), and operators ask for its forms before they compute (:func:`early`).
"""
from __future__ import annotations

from .._tensor import display, foreign
from .._tensor.device import public
from .._tensor.foreign import NoStrides
from .._tensor.tensor import Tensor
from ..core import dtype as dt
from .schemes import INTEGERS, SPOKEN, PerChannel, PerTensor


_CALLED = dict(_add="add.out", _sub="sub.out", absolute="abs.out", linear="mm.out", matmul="mm.out", sum="sum.IntList_out", conv2d="_slow_conv2d_forward",
               softmax="_softmax.out", any="any.all_out", all="all.all_out", celu="elu.out", where="where.self", true_divide="div.out")
_OUT = frozenset("abs neg exp sqrt floor ceil round sin cos mul add mm bmm argmax argmin elu silu gather maximum minimum".split())


class NotQuantized(NoStrides):
    """An operator asked a quantised tensor for numbers that it does not have."""

    def of(self, name):
        if not self.operator:
            self.operator = _CALLED.get(name) or name.lstrip("_") + ".out" * (name in _OUT)
            self.args = (f"Could not run 'aten::{self.operator}' with arguments from the '{self.tensor._backend()}' backend. This could be because the "
                         "operator doesn't exist for this backend: clnn computes with quantised tensors what PyTorch does. Use dequantize() first.",)
        return self


def _no_memory(self):
    raise NotQuantized(self)


def _per_tensor_only(self):
    if not isinstance(self.quantizer, PerTensor):
        raise RuntimeError("Expected quantizer->qscheme() == kPerTensorAffine to be true, but got false.")
    return self.quantizer


def _per_channel_only(self):
    if not isinstance(self.quantizer, PerChannel):
        raise RuntimeError("Expected quantizer->qscheme() == kPerChannelAffine || quantizer->qscheme() == kPerChannelAffineFloatQParams to be true, but got false.")
    return self.quantizer


class QTensor(Tensor):
    """A quantised tensor. Made by ``clnn.quantize_per_tensor`` and its kind."""

    __slots__ = ("part", "quantizer")

    _storage = _strides = _offset = property(_no_memory)
    _dense = False
    is_quantized = True
    _home = property(lambda self: self.part._storage.device)
    device = property(lambda self: public(self._home))
    is_cuda = property(lambda self: self.part.is_cuda)
    is_cpu = property(lambda self: self.part.is_cpu)
    is_meta = property(lambda self: self.part.is_meta)
    _version = property(lambda self: self.part._version)
    _inference = property(lambda self: self.part._inference)

    # -- what operators ask -----------------------------------------------------------------------------------------------------------
    def _refusal(self):
        return NotQuantized(self)

    def _own_form(self, name):
        from .forms import FORMS
        return FORMS.get(name)

    def _backend(self):
        return "QuantizedCUDA" if self.is_cuda else "QuantizedCPU"

    def _check_fits(self, target, name):
        if not isinstance(target, QTensor):
            raise RuntimeError("Copying from quantized Tensor to non-quantized Tensor is not allowed, please use dequantize to get a float Tensor from a "
                               "quantized Tensor")

    # -- making others ----------------------------------------------------------------------------------------------------------------
    @staticmethod
    def _make_subclass(cls, data, require_grad=False):
        return data._alias()

    def like(self, part):
        """Other integers with the same meaning."""
        return make(part, self.dtype, self.quantizer)

    def _alias(self):
        return self.like(self.part._alias())

    detach = _alias
    data = property(_alias, lambda self, value: self._take(value))

    def detach_(self):
        return self

    def _snapshot(self):
        return self.like(self.part._snapshot())

    def _settle(self):
        self.part._storage.buffer()

    def _take(self, value):
        self.part, self.quantizer, self._shape, self._dtype, self._numel = value.part, value.quantizer, value.shape, value.dtype, value._numel

    def _become(self, value, name="copy"):
        """Hold the integers of ``value``, and its quantizer: what in-place operators do."""
        if value is not self:
            self.part.copy_(value.part)
            self.quantizer = value.quantizer
        return self

    _assign = _become

    def numbers(self, fused=False):
        """The numbers that the integers stand for."""
        return self.quantizer.numbers(self.part, fused)

    # -- what quantised tensors have --------------------------------------------------------------------------------------------------
    def dequantize(self):
        """The numbers, as float32."""
        return self.numbers()

    def int_repr(self):
        """A copy of the integers."""
        return self.part.clone()

    def qscheme(self):
        """``clnn.per_tensor_affine`` or another of its kind."""
        return self.quantizer.scheme

    def q_scale(self):
        """The scale, as a Python float."""
        return _per_tensor_only(self).scale

    def q_zero_point(self):
        """The zero point, as a Python int."""
        return _per_tensor_only(self).zero_point

    def q_per_channel_scales(self):
        """A scale for each channel."""
        return _per_channel_only(self).scales.clone()

    def q_per_channel_zero_points(self):
        """A zero point for each channel."""
        return _per_channel_only(self).zero_points.clone()

    def q_per_channel_axis(self):
        """The dimension of the channels."""
        return _per_channel_only(self).axis

    # -- questions --------------------------------------------------------------------------------------------------------------------
    def stride(self, dim=None):
        return self.part.stride(dim)

    def storage_offset(self):
        return self.part.storage_offset()

    def is_contiguous(self, memory_format=None):
        return self.part.is_contiguous() if memory_format is None else self.part.is_contiguous(memory_format=memory_format)

    def is_signed(self):
        raise RuntimeError("isSignedType not supported for quantized types")

    def get_device(self):
        return self.part.get_device()

    def data_ptr(self):
        return self.part.data_ptr()

    def untyped_storage(self):
        return self.part.untyped_storage()

    def is_set_to(self, other):
        return isinstance(other, QTensor) and self.part.is_set_to(other.part)

    def item(self):
        return self.dequantize().item()

    def tolist(self):
        raise RuntimeError("load_scalar: invalid type")

    def numpy(self, *, force=False):
        raise TypeError(f"Got unsupported ScalarType {SPOKEN[self.dtype]}")

    def type(self, dtype=None, non_blocking=False):
        if dtype is not None:
            return self.to(dtype)
        return f"{type(self).__module__.partition('.')[0]}.{'cuda.' if self.is_cuda else ''}quantized.{SPOKEN[self.dtype]}Tensor"

    # -- elsewhere --------------------------------------------------------------------------------------------------------------------
    def to(self, *args, **kwargs):
        """On another device, or in another order in memory; the tensor itself if nothing changes."""
        from .._tensor.wrapped import changes
        wanted = changes(self, [a.part if isinstance(a, QTensor) else a for a in args], {k: v for k, v in kwargs.items() if k != "memory_format"}) or {}
        if wanted.get("dtype", self.dtype) is not self.dtype:
            raise RuntimeError("Creation of quantized tensor requires quantized dtype like torch.quint8")
        options = {k: v for k, v in dict(device=wanted.get("device"), memory_format=kwargs.get("memory_format"), copy=kwargs.get("copy")).items() if v}
        part = self.part.to(**options)
        return self if part is self.part else make(part, self.dtype, self.quantizer.moved(lambda t: t.to(part.device)))

    def cpu(self, memory_format=None):
        return self.to("cpu")

    def cuda(self, device=None, non_blocking=False, memory_format=None):
        return self.to("cuda" if device is None else device)

    def clone(self, *, memory_format=None):
        return self.like(self.part.clone() if memory_format is None else self.part.clone(memory_format=memory_format))

    def contiguous(self, memory_format=None):
        part = self.part.contiguous() if memory_format is None else self.part.contiguous(memory_format=memory_format)
        return self if part is self.part else self.like(part)

    # -- Python's protocols -----------------------------------------------------------------------------------------------------------
    def __getitem__(self, index):
        from .forms import getitem
        return getitem(self, index)

    def __setitem__(self, index, value):
        from .forms import setitem
        setitem(self, index, value)

    def __iter__(self):
        if not self.shape:
            raise TypeError("iteration over a 0-d tensor")
        return iter([self[i] for i in range(self.shape[0])])

    def __repr__(self, *, tensor_contents=None):
        suffixes = [] if self.device.type == "cpu" else [f"device='{self.device}'"]
        suffixes += [f"size={tuple(self.shape)}", f"dtype={self.dtype}", *self.quantizer.shown()]
        text = "..." if self.is_meta else "[]" if not self._numel else display.contents(self.dequantize(), len("tensor("))
        text = display._joined("tensor(" + text, suffixes, len("tensor("))
        return f"Parameter containing:\n{text}" if "_is_param" in self._all else text

    __str__ = __repr__

    def __format__(self, spec):
        return format(self.item(), spec) if not self.shape else str(self)

    def __copy__(self):
        return self._alias()

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            new = memo[id(self)] = self._snapshot()
            new._all.update({k: v for k, v in self._all.items() if k in ("_is_param", "_is_buffer", "persistent")})
        return memo[id(self)]

    def __reduce_ex__(self, protocol):
        q = self.quantizer
        return rebuild, (self.part, self.dtype.name, (q.scale, q.zero_point) if isinstance(q, PerTensor) else (q.scales, q.zero_points, q.axis, q.floats))


def _no_conversion(self, *args, **kwargs):
    raise RuntimeError("Creation of quantized tensor requires quantized dtype like torch.quint8")


for _name in ("float", "double", "half", "bfloat16", "long", "int", "short", "char", "byte", "bool", "cfloat", "cdouble"):
    setattr(QTensor, _name, _no_conversion)


def make(part, dtype, quantizer) -> QTensor:
    """A quantised tensor of integers and what they mean."""
    t = object.__new__(QTensor)
    t.part, t.quantizer, t._shape, t._dtype, t._numel = part, quantizer, part.shape, dtype, part._numel
    if foreign.early is None or not _asked:
        _asked.append(True)
        foreign.ask_early(early, stands_in=False)
    return t


def rebuild(part, dtype, parameters):
    """A quantised tensor from its pickled parts."""
    return make(part, dt.from_name(dtype), PerTensor(*parameters) if len(parameters) == 2 else PerChannel(*parameters))


_asked: list = []


def first(values):
    """The first quantised tensor among ``values`` and the lists in them."""
    for v in values:
        if v.__class__ is QTensor:
            return v
        if v.__class__ is list or v.__class__ is tuple:
            found = first(v)
            if found is not None:
                return found
    return None


def early(name, args, kwargs):
    """What an operator gives for quantised tensors. Those that are made of others are left to them, unless they have a form of their own."""
    t = first(args)
    if t is None:
        t = first(kwargs.values()) if kwargs else None
        if t is None:
            return NotImplemented
    from .forms import COMPOSED, FORMS
    form = FORMS.get(name)
    if form is not None:
        return form(*args, **kwargs)
    if name in COMPOSED:
        return NotImplemented
    raise NotQuantized(t).of(name)


__all__ = ["INTEGERS", "QTensor", "make", "first"]
