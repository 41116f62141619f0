"""Complex numbers: making and taking them apart. Real and imaginary parts are views; conjugates are computed at once, with a mark."""
from __future__ import annotations

import math
import weakref

import numpy as np

from .._tensor.declare import composite, elementwise, view
from .._tensor.inplace import type_name
from .._tensor.tensor import Tensor
from ..core import dtype as dt
from . import creation
from .selection import where


def _samples(*shape, seed=0):
    r = np.random.default_rng(seed)
    return np.asarray(r.standard_normal(shape) + 1j * r.standard_normal(shape), np.complex64)


# -- views ------------------------------------------------------------------------------------------------------------------------
def _part(input, at):
    return input.shape, tuple([2 * s for s in input._strides]), 2 * input._offset + at, input.dtype.to_real()


@view("_real", method=False, vjp=dict(input=lambda g: g))
def _real(input):
    return _part(input, 0)


@view("_imag", method=False, vjp=dict(input=lambda g: g * 1j))
def _imag(input):
    return _part(input, 1)


_real.op.grad_name, _imag.op.grad_name = "SelectBackward0", "SelectBackward0"


@view("view_as_real", numpy=lambda x: np.stack([x.real, x.imag], -1), vjp=dict(input=lambda g: view_as_complex(g.contiguous())),
      samples=lambda: [((_samples(3, 4),), {}), ((_samples(),), {})],
      errors=[((np.ones(3),), {}, RuntimeError, "view_as_real is only supported for complex tensors")])
def view_as_real(input):
    """The parts of complex numbers as a last dimension of size 2, on the same memory.

    Example:
        >>> clnn.view_as_real(clnn.tensor([1 + 2j]))
        tensor([[1., 2.]])
    """
    if not input.dtype.is_complex:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    shape, strides, offset, row = _part(input, 0)
    return (*shape, 2), (*strides, 1), offset, row


@view("view_as_complex", complex=False, dtypes=(dt.float32, dt.float64), numpy=lambda x: x[..., 0] + 1j * x[..., 1], vjp=dict(input=lambda g: view_as_real(g)),
      samples=lambda: [((_samples(3, 2).real,), {})],
      errors=[((np.ones((2, 3), "f"),), {}, RuntimeError, "Tensor must have a last dimension of size 2"),
              ((np.ones((2, 2), "i"),), {}, RuntimeError, "view_as_complex is only supported for")])
def view_as_complex(input):
    """Pairs along the last dimension, of size 2 and stride 1, as complex numbers on the same memory: the inverse of :func:`view_as_real`.

    Raises:
        RuntimeError: the dtype is not float32 or float64, or the pairs do not lie as complex numbers do.
    """
    if input.dtype not in (dt.float32, dt.float64):
        raise RuntimeError(f"view_as_complex is only supported for float and double tensors, but got a tensor of scalar type: {type_name(input.dtype)}")
    if not input.shape:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if input.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if input._strides[-1] != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(s % 2 for s, n in zip(input._strides[:-1], input.shape)):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if input._offset % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    return tuple(input.shape[:-1]), tuple([s // 2 for s in input._strides[:-1]]), input._offset // 2, dt.noticed(dt.complex_of(input.dtype))


@composite("real", complex=True, method=False, numpy=np.real)
def real(input):
    """The real parts, as a view; a real tensor itself."""
    return _real(input) if input.dtype.is_complex else input


@composite("imag", complex=True, method=False, numpy=np.imag, dtypes=dt.COMPLEXES, samples=lambda: [((_samples(3, 4),), {})],
           errors=[((np.ones(3),), {}, RuntimeError, "imag is not implemented for tensors with non-complex dtypes.")])
def imag(input):
    """The imaginary parts, as a view."""
    if not input.dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return _imag(input)


Tensor.real = property(real, lambda self, value: real(self).copy_(value))
Tensor.imag = property(imag, lambda self, value: imag(self).copy_(value))


# -- conjugates ---------------------------------------------------------------------------------------------------------------------
_conj = elementwise("_conj", "input", "input", dtypes=dt.COMPLEXES, complex="c_conj(input)", method=False, inplace=False, vjp=dict(input=lambda g: g.conj()))
_conj.op.grad_name = "ConjBackward0"


_conjugates = weakref.WeakSet()         # the memory of results of ``conj``, which PyTorch would have as views of their operands


@composite("conj", complex=True, numpy=np.conj)
def conj(input):
    """The complex conjugate, computed at once; a real tensor itself."""
    if not input.dtype.is_complex:
        return input
    r = _conj(input)
    if r.__class__ is Tensor and not is_conj(input):
        _conjugates.add(r._storage)
    return r


def _of_conjugate(t):
    return isinstance(t, Tensor) and getattr(t, "_storage", None) in _conjugates


def is_conj(self):
    """Whether this is what ``conj`` gave, or a view of it: PyTorch has such tensors as views with a mark, here they are computed at once."""
    return self.dtype.is_complex and _of_conjugate(self)


def is_neg(self):
    """Whether this is the imaginary part of what ``conj`` gave: in PyTorch a view with a mark, here computed at once."""
    return not self.dtype.is_complex and self._offset % 2 == 1 and _of_conjugate(self)


Tensor.is_conj, Tensor.is_neg = is_conj, is_neg
conj_physical = composite("conj_physical", complex=True, inplace=True, numpy=np.conj)(lambda input: _conj(input) if input.dtype.is_complex else input)
resolve_conj = composite("resolve_conj", complex=True)(lambda input: input.clone() if is_conj(input) else input)
resolve_neg = composite("resolve_neg", complex=True)(lambda input: input.clone() if is_neg(input) else input)


@composite("adjoint", complex=True, numpy=lambda x: np.conj(np.swapaxes(x, -2, -1)))
def adjoint(input):
    """The conjugate transpose of matrices."""
    if len(input.shape) < 2:
        if input.shape:
            raise RuntimeError("tensor.adjoint() is only supported on matrices or batches of matrices. Got 1-D tensor.")
        return conj(input)
    return conj(input.transpose(-2, -1))


def _conjugate_transpose(self):
    if len(self.shape) not in (0, 2):
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {len(self.shape)}-D tensor. For batches of matrices, consider using "
                           "tensor.mH")
    return conj(self.t())


Tensor.H = property(_conjugate_transpose)


def _matrices_adjoint(self):
    if len(self.shape) < 2:
        raise RuntimeError(f"tensor.mH is only supported on matrices or batches of matrices. Got {len(self.shape)}-D tensor.")
    return adjoint(self)


Tensor.mH = property(_matrices_adjoint)


# -- from parts and back ------------------------------------------------------------------------------------------------------------
def _to_complex(common, kinds):
    first, second = (type_name(dt.ALL[k // 3]) for k in kinds)
    if any(not dt.ALL[k // 3].is_floating_point for k in kinds):
        raise RuntimeError(f"Expected both inputs to be Half, Float or Double tensors but got {first} and {second}")
    if first != second:
        raise RuntimeError(f"Expected object of scalar type {first} but got scalar type {second} for second argument")
    return common, dt.complex_of(common)


_REAL = (dt.float32, dt.float64)
def _parts_joined(real, imag):
    """For tests: not ``real + 1j * imag``, which is NaN where a part is infinite."""
    out = np.empty(np.broadcast_shapes(np.shape(real), np.shape(imag)), np.result_type(real, imag, np.complex64))
    out.real, out.imag = real, imag
    return out


complex_ = elementwise("complex", "real, imag", "((ACC2)(real, imag))", result=_to_complex, dtypes=_REAL, holomorphic=False, method=False, inplace=False,
                       vjp=dict(real=lambda g: g.real, imag=lambda g: g.imag), numpy=_parts_joined,
                       samples=lambda: [((_samples(3, 4).real, _samples(3, 4).imag), {}), ((_samples(3, 4).real, _samples(4).imag), {})],
                       doc="``real + i imag`` of two tensors of one float dtype.")


def _around(name, angle, along):
    """A rule of :func:`polar`: the part of the gradient along the number, or across it."""
    c, s = angle.cos(), angle.sin()
    return name.real * c + name.imag * s if along else name.imag * c - name.real * s


polar = elementwise("polar", "abs, angle", "c_polar(abs, angle)", result=_to_complex, dtypes=_REAL, holomorphic=False, method=False, inplace=False,
                    vjp=dict(abs=lambda g, angle: _around(g, angle, True), angle=lambda g, abs, angle: abs * _around(g, angle, False)),
                    numpy=lambda abs, angle: abs * np.exp(1j * angle),
                    samples=lambda: [((np.abs(_samples(3, 4)), 3 * _samples(3, 4).imag), {}), ((np.abs(_samples(4)), 3 * _samples(3, 4).imag), {})],
                    doc="Numbers of size ``abs`` at ``angle`` (radians) from the real axis: ``abs (cos(angle) + i sin(angle))``.")


_angle = elementwise("_angle", "input", "input", complex=("c_angle(input)", "real"), dtypes=dt.COMPLEXES, method=False, inplace=False,
                     vjp=dict(input=lambda g, input: where(input == 0, 0.0, input * 1j * (g / (input * input.conj()).real))))
_angle_real = elementwise("_angle_real", "input", "(isnan(input) ? input : input < 0 ? (ACC)3.14159265358979324f : (ACC)0)", dtypes=dt.FLOATS, method=False,
                          inplace=False, vjp=dict(input=lambda g: g * 0))
_angle.op.grad_name = _angle_real.op.grad_name = "AngleBackward0"


@composite("angle", complex=True, numpy=np.angle)
def angle(input):
    """The angle from the positive real axis, in radians: pi for negative real numbers."""
    if input.dtype.is_complex:
        return _angle(input)
    if input.dtype.is_floating_point:
        return _angle_real(input)
    return where(input < 0, math.pi, 0.0)


@composite("isreal", complex=True, numpy=np.isreal)
def isreal(input):
    """True where the imaginary part is zero."""
    return imag(input) == 0 if input.dtype.is_complex else creation.ones_like(input, dtype=dt.bool_)
