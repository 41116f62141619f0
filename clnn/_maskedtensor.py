"""``masked.MaskedTensor``: a tensor with a mask of the elements that count; operators keep both.

Its values are an ordinary tensor, so gradients follow; the class takes the public functions over. It is loaded when a program asks for it, as functions look
for such classes only once there is one.
"""
from __future__ import annotations

from . import masked
from ._tensor.override import all_switched_off
from ._tensor.tensor import Tensor
from .core import dtype as dt
from .core.warn import warn
from .graph.op import REGISTRY

# Functions that move, copy or select elements do the same to values and mask.
_MOVE = frozenset("""__getitem__ view reshape t transpose expand permute unsqueeze squeeze flatten ravel select narrow _contiguous split chunk unbind stack cat concat
                     swapaxes swapdims movedim flip roll contiguous clone detach expand_as view_as reshape_as hstack vstack repeat tile broadcast_to""".split())
_REDUCE = frozenset("sum mean prod amax amin argmax argmin var std".split())
_ALONG = frozenset("softmax log_softmax cumsum cumprod".split())
# Of two masked operands they ask for equal masks.
_EACH = frozenset("""add sub subtract mul multiply div divide true_divide floor_divide remainder fmod pow maximum minimum fmax fmin atan2 arctan2 hypot logaddexp
    logaddexp2 nextafter bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift eq ne lt le gt ge equal less greater not_equal less_equal
    greater_equal abs absolute acos arccos acosh asin asinh atan atanh arcsin arctan bitwise_not ceil clamp clip cos cosh deg2rad digamma erf erfc erfinv exp exp2
    expm1 floor frac lgamma log log10 log1p log2 logit i0 isnan isinf isfinite nan_to_num neg negative positive rad2deg reciprocal relu round rsqrt sgn sigmoid
    sign sin sinc sinh sqrt square tan tanh trunc fix angle xlogy signbit isposinf isneginf to float double half bfloat16 int long short bool type type_as
    ones_like empty_like full_like rand_like randn_like rsub __rsub__ __rdiv__ __rtruediv__ __rpow__ __rfloordiv__ __rmod__ __radd__ __rmul__ __and__ __or__
    __xor__ __rand__ __ror__ __rxor__ __invert__ __neg__ __pos__ __abs__ __add__ __sub__ __mul__ __truediv__ __floordiv__ __mod__ __pow__ __eq__ __ne__ __lt__
    __le__ __gt__ __ge__""".split())
_EACH = _EACH | {name + "_" for name in _EACH if not name.startswith("_")} | {f"__i{name}__" for name in "add sub mul truediv floordiv mod pow and or xor".split()}
# Questions, and what is done to the tensor itself.
_OWN = frozenset("""__get__ __set__ __delete__ size dim numel stride storage_offset is_contiguous element_size item __len__ __bool__ __float__ __int__ __index__
    requires_grad_ retain_grad register_hook backward is_floating_point is_complex ndimension nelement get_device data_ptr __hash__ is_tensor get_data get_mask
    to_tensor tolist numpy __repr__ __str__ __format__""".split())
_SAME = (Tensor.grad.__get__, Tensor.data.__get__)
_PROTOTYPE = ("The PyTorch API of MaskedTensors is in prototype stage and will change in the near future. Please open a Github issue for features requests and "
              "see our documentation on the torch.masked module for further information about the project.")


class MaskedTensor(Tensor):
    """Values ``data`` of which those count where ``mask`` is True.

    Example:
        >>> x = clnn.masked.masked_tensor(clnn.tensor([1., 2., 3.]), clnn.tensor([True, False, True]))
        >>> x, x.sum()
        (MaskedTensor(
          [  1.0000,       --,   3.0000]
        ), MaskedTensor(  4.0000, True))
    """

    def __new__(cls, data, mask, requires_grad=False):
        warn(_PROTOTYPE)
        return _checked(data, mask).requires_grad_(requires_grad) if requires_grad else _checked(data, mask)

    def __init__(self, *args, **kwargs):
        pass

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return _call(func, args, kwargs or {})

    def get_data(self):
        """The values, those that do not count among them."""
        return self.as_subclass(Tensor)

    def get_mask(self):
        """Which elements count."""
        return self._counts

    def to_tensor(self, value):
        """A plain tensor with ``value`` in place of what does not count."""
        data = self.get_data()
        return REGISTRY["where"].fn(self._counts, data, data.new_full((), value))

    def tolist(self):
        raise RuntimeError(".tolist() is not supported for tensor subclasses, got MaskedTensor")

    def numpy(self, *, force=False):
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def __repr__(self):
        data, mask = self.get_data().detach().numpy(), self._counts.numpy()
        if not data.ndim:
            return f"MaskedTensor({_number(data.item()) if mask else '--'}, {bool(mask)})"
        return f"MaskedTensor(\n  {_rows(data.tolist(), mask.tolist(), 2)}\n)"

    __str__ = __repr__

    def __format__(self, spec):
        return repr(self)


def _number(x):
    return f"{x:8.4f}" if isinstance(x, float) else str(x)


def _rows(values, counts, depth):
    if not values or not isinstance(values[0], list):
        return f"[{', '.join(_number(v) if c else '      --' for v, c in zip(values, counts))}]"
    inner = " " * (depth + 2)
    return "[\n" + ",\n".join(inner + _rows(v, c, depth + 2) for v, c in zip(values, counts)) + "\n" + " " * depth + "]"


def _checked(data, mask):
    if not isinstance(data, Tensor):
        raise TypeError("data must be a Tensor")
    if not isinstance(mask, Tensor):
        raise TypeError("mask must be a Tensor")
    if mask.dtype is not dt.bool_:
        raise TypeError("mask must have dtype bool.")
    if data.shape != mask.shape:
        raise ValueError("data.size() must equal mask.size()")
    return _made(data, mask)


def _made(data, mask):
    t = data.as_subclass(MaskedTensor)
    t._counts = mask
    return t


def _parts(values, mask):
    """``values`` with the data of masked tensors, or with their masks, in their place."""
    if isinstance(values, MaskedTensor):
        return values._counts if mask else values.get_data()
    if isinstance(values, (list, tuple)):
        return type(values)([_parts(v, mask) for v in values])
    return values


def _masks(values):
    found = []
    for v in values:
        if isinstance(v, MaskedTensor):
            found.append(v._counts)
        elif isinstance(v, (list, tuple)):
            found += _masks(v)
    return found


def _common(masks):
    for other in masks[1:]:
        if other is not masks[0] and not (other.shape == masks[0].shape and REGISTRY["equal"].fn(other, masks[0])):
            raise ValueError("Input masks must match. If you need support for this, please open an issue on Github.")
    return masks[0]


def _call(func, args, kwargs):
    """What a public function gives for masked tensors."""
    name = func.__name__
    if name in _OWN:
        with all_switched_off():
            got = func(*args, **kwargs)
        if name != "__get__" or not isinstance(got, Tensor):
            return got
        if func in _SAME:
            return _made(got, args[0]._counts)
        name = "t"                                                   # another view, as ``x.T``
    masks = _masks((*args, *kwargs.values()))
    plain = tuple(_parts(a, False) for a in args)
    named = {k: _parts(v, False) for k, v in kwargs.items()}
    if name in _MOVE:
        return _with(func(*plain, **named), func(*[_parts(a, True) for a in args], **kwargs))
    if name in _REDUCE or name == "all":
        return _reduced(name, plain, named, masks[0])
    if name in _ALONG:
        return _made(getattr(masked, name)(*plain, mask=masks[0], **named), masks[0])
    if name == "where" and len(args) == 3:
        sides = [a._counts if isinstance(a, MaskedTensor) else _common(masks) for a in args[1:]]
        return _made(func(*plain, **named), func(plain[0], *sides))
    if name in _EACH:
        got, mask = func(*plain, **named), _common(masks)
        if got is plain[0]:
            return args[0]
        return _made(got, mask if mask.shape == got.shape else mask.expand(got.shape)) if isinstance(got, Tensor) else got
    raise TypeError(f"no implementation found for '{name}' on types that implement __torch_function__: [{MaskedTensor!r}]")


def _with(data, mask):
    return type(data)(_with(d, m) for d, m in zip(data, mask)) if isinstance(data, (list, tuple)) else _made(data, mask)


def _reduced(name, args, kwargs, mask):
    data, dim = args[0], args[1] if len(args) > 1 else kwargs.get("dim")
    if name == "all":
        filled = REGISTRY["where"].fn(mask, data.to(dt.bool_), True)
        got = filled.all(*args[1:], **kwargs)
    else:
        got = getattr(masked, name)(*args, mask=mask, **kwargs)
    keep = kwargs.get("keepdim", False)
    counted = mask.any() if dim is None or dim == () else mask.any(dim, keepdim=keep)
    return _made(got, counted if counted.shape == got.shape else counted.reshape(got.shape))


def masked_tensor(data, mask, requires_grad=False):
    """A masked tensor with copies of ``data`` and ``mask``, and no history.

    Example:
        >>> clnn.masked.masked_tensor(clnn.tensor([1, 2]), clnn.tensor([False, True]))
        MaskedTensor(
          [      --, 2]
        )
    """
    warn(_PROTOTYPE)
    made = _checked(*[t.detach().clone() if isinstance(t, Tensor) else t for t in (data, mask)])
    return made.requires_grad_(True) if requires_grad else made


def as_masked_tensor(data, mask):
    """A masked tensor of ``data`` itself, with its history.

    Example:
        >>> x = clnn.tensor([1., 2.], requires_grad=True)
        >>> clnn.masked.as_masked_tensor(x, clnn.tensor([True, False])).sum().backward()
        >>> x.grad
        tensor([1., 0.])
    """
    warn(_PROTOTYPE)
    return _checked(data, mask)


def is_masked_tensor(obj) -> bool:
    """Whether ``obj`` is a masked tensor.

    Example:
        >>> clnn.masked.is_masked_tensor(clnn.ones(1))
        False
    """
    return isinstance(obj, MaskedTensor)


MaskedTensor.__module__ = "clnn.masked.maskedtensor.core"
