"""Parameters and buffers: the tensors a module registers when they are assigned to it."""

import functools

import clnn
from clnn._tensor.dispatch import plain
from clnn._tensor.interop import _PRIVATE
from clnn._tensor.tensor import Tensor
from clnn.core import native

__all__ = ["Parameter", "Buffer", "UninitializedParameter", "UninitializedBuffer", "is_lazy"]


class _MarkedMeta(type(Tensor)):
    """isinstance() also accepts instances of other Tensor subclasses that carry the mark of the class."""

    def __instancecheck__(cls, instance):
        if super().__instancecheck__(instance):
            return True
        return cls._mark is not None and isinstance(instance, Tensor) and cls._mark in getattr(instance, "__dict__", ())


_ParameterMeta = _MarkedMeta


def _rebuild_parameter(data, requires_grad, state):
    """Unpickle a Parameter."""
    param = Parameter(data, requires_grad)
    for name, value in (state or {}).items():
        setattr(param, name, value)
    return param


@native.know
class Parameter(Tensor, metaclass=_MarkedMeta):
    """A tensor that a :class:`Module` lists among its ``parameters()`` once it is assigned as an attribute.

    Args:
        data: the values (a Tensor); an empty tensor when left out. The parameter shares its memory.
        requires_grad: whether backward fills ``.grad``. Default: ``True``.

    Example::

        >>> w = nn.Parameter(clnn.ones(2))
        >>> w.requires_grad
        True
    """

    _mark = "_is_param"

    def __new__(cls, data=None, requires_grad=True, **state):
        if state:                   # programs copy a parameter by ``Parameter(data, **vars(old))``: in PyTorch there is nothing in it
            unknown = next((k for k in state if k not in _PRIVATE), None)
            if unknown is not None:
                raise TypeError(f"{cls.__name__}.__new__() got an unexpected keyword argument {unknown!r}")
        if data is None:
            data = clnn.empty(0)
        if type(data) is Tensor or type(data) is Parameter:
            return Tensor._make_subclass(cls, data, requires_grad)
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter: data must be a Tensor; got {type(data).__name__}. Wrap it with clnn.tensor(...) first")
        marked = type(data)._make_subclass(type(data), data, requires_grad)  # a Tensor subclass stays what it is and is marked instead
        marked._is_param = True
        return marked

    def __init__(self, *args, **kwargs):
        pass  # __new__ did everything; Tensor's own constructor must not run again

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        result = memo[id(self)] = type(self)(self.data.clone(), self.requires_grad)
        return result

    def __repr__(self):
        if type(self) is not Parameter:
            return f"Parameter containing:\nParameter({Tensor.__repr__(self)})"
        return "Parameter containing:\n" + repr(Tensor._make_subclass(Tensor, self, self.requires_grad))

    def __reduce_ex__(self, protocol):
        return _rebuild_parameter, (self.data, self.requires_grad, {k: v for k, v in self.__dict__.items() if k not in _PRIVATE})


plain.add(Parameter)                                            # computes as any tensor does


class Buffer(Tensor, metaclass=_MarkedMeta):
    """A tensor that a module registers as a buffer (saved and moved with it, not trained) when it is assigned.

    Args:
        data: the values (a Tensor); an empty tensor when left out.
        persistent: whether the buffer is part of ``state_dict()``. Default: ``True``.

    Example::

        >>> isinstance(nn.Buffer(clnn.zeros(2)), nn.Buffer)
        True
    """

    _mark = "_is_buffer"

    def __new__(cls, data=None, *, persistent=True):
        if data is None:
            data = clnn.empty(0)
        buffer = data.detach().requires_grad_(data.requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer


_LAZY_MESSAGE = ("Can't access the {what} of an uninitialized parameter or buffer. This error usually happens in `load_state_dict` when "
                 "trying to load an uninitialized parameter into an initialized one. Call `forward` to initialize the parameters "
                 "before accessing their attributes.")


class _Unready(RuntimeError, ValueError):
    """PyTorch raises the first for the shape itself, the second for functions, which ask for it here."""


_Unready.__name__ = _Unready.__qualname__ = "RuntimeError"             # what programs print
_Unready.__module__ = "builtins"


class UninitializedTensorMixin:
    """What both uninitialized kinds share: no shape yet, and `materialize` to give one. Using one otherwise raises ValueError."""

    def materialize(self, shape, device=None, dtype=None):
        """Turn this object, in place, into an ordinary parameter or buffer of *shape* with undefined values."""
        device = self.device if device is None else device
        dtype = self.dtype if dtype is None else dtype
        self.data = clnn.empty(shape, device=device, dtype=dtype)
        self.__class__ = self.cls_to_become

    def _no_shape(self):
        raise _Unready(_LAZY_MESSAGE.format(what="shape"))

    shape = property(_no_shape)

    def to(self, *args, device=None, dtype=None, **ignored):
        """Still nothing, on another device or of another dtype."""
        for value in args:
            if isinstance(value, (clnn.device, str)):
                device = value
            elif isinstance(value, clnn.dtype):
                dtype = value
        return self._elsewhere(self.device if device is None else device, self.dtype if dtype is None else dtype)

    def _elsewhere(self, device, dtype):
        return clnn.empty(0, device=device, dtype=dtype)        # what :meth:`Module.to` puts into ``data``

    data = property(lambda self: clnn.empty(0, device=self.device, dtype=self.dtype), Tensor.data.__set__)

    def share_memory_(self):
        raise RuntimeError("Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters "
                           "before calling `module.share_memory()`.")

    def __repr__(self):
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol):
        return type(self), (self.requires_grad, self.device, self.dtype)

    def __copy__(self):
        make, args = self.__reduce_ex__(2)
        return make(*args)

    def __hash__(self):
        return id(self)


def _lazy_tensor(cls, requires_grad, device, dtype):
    return Tensor._make_subclass(cls, clnn.empty(0, device=device, dtype=dtype), requires_grad)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is not known yet; lazy modules materialize it at their first call.

    Example::

        >>> nn.UninitializedParameter()
        <UninitializedParameter>
    """

    cls_to_become = Parameter
    _mark = None  # only real ones count

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        return _lazy_tensor(cls, requires_grad, device, dtype)

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        result = memo[id(self)] = type(self)(self.requires_grad, self.device, self.dtype)
        return result


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape is not known yet.

    Example::

        >>> nn.UninitializedBuffer()
        <UninitializedBuffer>
    """

    cls_to_become = Tensor

    def __new__(cls, requires_grad=False, device=None, dtype=None, persistent=True):
        buffer = _lazy_tensor(cls, requires_grad, device, dtype)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer

    def __init__(self, *args, **kwargs):
        pass

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        result = memo[id(self)] = self._elsewhere(self.device, self.dtype)
        return result

    def _elsewhere(self, device, dtype):
        return type(self)(self.requires_grad, device, dtype, self.persistent)   # :meth:`Module.to` puts the result itself in the buffer's place


_WITHOUT_SHAPE = frozenset("__hash__ copy_ is_complex is_floating_point half float double bfloat16 char short int long cuda cpu to get_device detach "
                           "requires_grad_ type share_memory_ detach_ __eq__ __ne__".split())


def _refusal(name):
    def refuse(self, *args, **kwargs):
        raise ValueError(f"Attempted to use an uninitialized parameter in Tensor.{name}. Call `forward` of its lazy module with a dummy batch, or "
                         "load its state dict, before using it.")
    refuse.__name__ = name
    return refuse


_SYMBOLS = frozenset(f"__{name}__" for name in """add radd iadd sub rsub isub mul rmul imul truediv rtruediv itruediv floordiv rfloordiv mod rmod pow rpow
    matmul rmatmul and or xor invert neg abs eq ne lt le gt ge len getitem setitem iter bool int float""".split())
for _name, _method in [(name, getattr(Tensor, name)) for name in dir(Tensor)]:
    _writes = _name.endswith("_") and not _name.startswith("_")
    if _name not in _WITHOUT_SHAPE and (hasattr(_method, "op") or _writes or _name in _SYMBOLS or _name in ("numel", "item", "tolist", "numpy")):
        setattr(UninitializedTensorMixin, _name, _refusal(_name))
for _name, _kind in zip("half float double bfloat16 char short int long".split(), "float16 float32 float64 bfloat16 int8 int16 int32 int64".split()):
    setattr(UninitializedTensorMixin, _name, functools.partialmethod(UninitializedTensorMixin.to, getattr(clnn, _kind)))
del _name, _method, _writes, _kind


def is_lazy(param):
    """Whether *param* still waits for its shape."""
    return isinstance(param, UninitializedTensorMixin)
