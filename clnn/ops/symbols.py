"""Python's operator symbols on Tensor."""
from __future__ import annotations

import numpy as np

from .._tensor.interop import from_array
from .._tensor.override import answers, late
from .._tensor.tensor import Tensor
from ..core import dtype as dt
from ..core import native
from ..graph.op import REGISTRY


_NAMES = {"pow": ("pow", "__rpow__"), "truediv": ("div", "__rdiv__")}


def _both(symbol, fn, inplace=None, reflected=True, commutes=False, turned="", number_first=None):
    """``turned``: what the graph calls the operator with the number first; ``number_first``: what computes it then, given tensor and number."""
    number_first = number_first or (fn if commutes else lambda self, other: fn(other, self))     # self first: the graph shows the operands so
    @answers
    def forward(self, other):
        try:
            return fn(self, other)
        except TypeError:
            got = late(forward, (self, other))
            if got is not NotImplemented:
                return got
            if isinstance(other, np.ndarray) and other.dtype != object:
                return fn(*_as_arrays(symbol, self, from_array(other, self._storage.device)))
            if isinstance(other, Tensor) or isinstance(other, (int, float, complex)) and symbol != "matmul":
                raise
            return NotImplemented

    @answers
    def backward(self, other):
        try:
            if not turned:
                return number_first(self, other)
            r = fn(other, self)
            if r.__class__ is Tensor and r._grad_fn is not None:
                r._grad_fn.label = turned
            return r
        except TypeError:
            got = late(backward, (self, other))
            if got is not NotImplemented:
                return got
            if isinstance(other, np.ndarray) and other.dtype != object:
                return fn(*_as_arrays(symbol, from_array(other, self._storage.device), self))
            return NotImplemented
    forward = native.fronted_as(forward, fn)
    if number_first is fn and not turned:
        backward = native.fronted_as(backward, fn)
    names = _NAMES.get(symbol, (f"__{symbol}__", f"__r{symbol}__"))      # classes that take functions over know them by these
    for method, called in zip((forward, backward), names):
        method.__name__, method.__qualname__ = called, f"Tensor.{called}"
    forward.symbol = backward.symbol = True
    setattr(Tensor, f"__{symbol}__", forward)
    if reflected:
        setattr(Tensor, f"__r{symbol}__", backward)
    if inplace:
        method = getattr(Tensor, inplace)

        def changed(self, other):
            if other.__class__ is np.ndarray:
                return NotImplemented
            try:
                return method(self, other)
            except TypeError:
                if isinstance(other, (Tensor, int, float, complex, np.generic)):
                    raise
                return NotImplemented                           # the other side may know what to do
        changed = native.fronted_as(changed, method)
        changed.symbol = True
        setattr(Tensor, f"__i{symbol}__", changed)


def _as_arrays(symbol, a, b):
    """Tensors, one of an array, in the dtype that NumPy computes them in: in PyTorch it does, and a tensor is made of its result."""
    common = dt.promote_types(a.dtype, b.dtype)
    if dt.bfloat16 not in (a.dtype, b.dtype) and a._storage.device.has_fp64:
        common = dt.from_numpy(np.result_type(a.dtype.np, b.dtype.np))
        if symbol == "truediv" and common.category < dt.FLOAT:
            common = dt.float64
    return a.to(common), b.to(common)


def __invert__(self):
    if self.dtype.differentiable:
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return REGISTRY["bitwise_not"].fn(self)


def _install():
    fn = {name: op.fn for name, op in REGISTRY.items()}
    from .arithmetic import _fast_add, _fast_div, _fast_sub

    def sub_checked(a, b):
        if a.__class__ is bool or b.__class__ is bool or getattr(a, "dtype", None) is dt.bool_ or getattr(b, "dtype", None) is dt.bool_:
            return fn["sub"](a, b)                              # which says why not
        return _fast_sub(a, b)
    sub_checked = native.fronted_as(sub_checked, _fast_sub)     # which knows no kinds of truth values, as nobody subtracts them
    _both("add", _fast_add, "add_", commutes=True)
    _both("sub", sub_checked, "sub_", turned="RsubBackward1")
    _both("mul", fn["mul"].fast, "mul_", commutes=True)
    _both("truediv", _fast_div, "div_", number_first=lambda self, other: fn["reciprocal"](self) * other)      # rounded twice, as in PyTorch
    _both("floordiv", fn["floor_divide"].fast, "floor_divide_")
    _both("mod", fn["remainder"].fast, "remainder_")
    _both("pow", fn["pow"], "pow_")
    for symbol, name in dict(eq="eq", ne="ne", lt="lt", le="le", gt="gt", ge="ge").items():
        _both(symbol, fn[name].fast, reflected=False)
    for symbol, name in {"and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "bitwise_left_shift",
                         "rshift": "bitwise_right_shift"}.items():
        _both(symbol, fn[name].fast, name + "_")
    Tensor.__neg__ = native.fronted_as(lambda self: fn["neg"](self), fn["neg"])
    Tensor.__pos__ = Tensor.positive
    Tensor.__abs__ = native.fronted_as(lambda self: fn["abs"](self), fn["abs"])
    Tensor.__invert__ = __invert__
    Tensor.__round__ = lambda self, n=0: fn["round"](self, decimals=n or 0)
    if "matmul" in fn:
        _both("matmul", fn["matmul"])
    Tensor.__rdiv__ = Tensor.__rtruediv__


_install()
Tensor.__hash__ = (lambda self: id(self)) if native.built is None else native.built.hashing(Tensor)
