"""``Tensor.grad``, and the dtype that it has."""
from __future__ import annotations

import warnings

from ..core import dtype as dt
from ..core.warn import warn
from .handle import Handle

_NAMES = {dt.float16: ("Half", "c10::Half"), dt.bfloat16: ("BFloat16", "c10::BFloat16"), dt.float32: ("Float", "float"), dt.float64: ("Double", "double"),
          dt.complex64: ("ComplexFloat", "c10::complex<float>"), dt.complex128: ("ComplexDouble", "c10::complex<double>")}


def _name(dtype, of_tensor=False):
    """As PyTorch's messages call it: what may come by one name, a tensor's by the other."""
    return _NAMES.get(dtype, (dtype.name, dtype.name))[of_tensor]


def _takes(tensor):
    return tensor._all.get("_grad_dtype", tensor.dtype)


def _get(self):
    if self._grad is None and self._grad_fn is not None and not self._retain:
        warnings.warn("The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
                      "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf "
                      "Tensor, use .retain_grad() on the non-leaf Tensor.", UserWarning, stacklevel=2)
    return self._grad


def _set(self, value):
    if value is not None:
        if not isinstance(value, Handle):
            raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}")
        if value is self:
            raise RuntimeError("can't assign Variable as its own grad")
        if value.shape != self.shape:
            raise RuntimeError(f"attempting to assign a gradient of size '{list(value.shape)}' to a tensor of size '{list(self.shape)}'. Please ensure that the "
                               "gradient and the tensor are the same size")
        takes = _takes(self)
        if value.dtype is not takes is not None:
            raise RuntimeError(f"attempting to assign a gradient with dtype '{_name(value.dtype, True)}' to a tensor with grad_dtype '{_name(takes)}'. The gradient "
                               "must match the tensor's grad_dtype (defaults to the tensor's dtype). You can set the tensor's grad_dtype attribute with a specific "
                               "dtype, or None to allow any dtype. Set grad_dtype with caution. Diverging the dtypes of a tensor and its gradient may break downstream "
                               "systems that assume they match.")
        if value._home is not self._home:
            raise RuntimeError(f"assigned grad has data located on a different device: got {value.device}, expected {self.device}")
    self._grad = value


def _delete(self):
    self._grad = None


grad = property(_get, _set, _delete)


def _get_dtype(self):
    if self._grad_fn is not None:
        raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
    return _takes(self)


def _set_dtype(self, value):
    if self._grad_fn is not None:
        raise RuntimeError("grad_dtype can only be set on leaf tensors.")
    if not isinstance(value, dt.dtype | None):
        raise RuntimeError(f"grad_dtype must be a torch.dtype or None, but got {type(value).__name__}")
    if self._grad is not None and value is not None and self._grad.dtype is not value:
        raise RuntimeError(f"Cannot set grad_dtype to '{_name(value)}' because there is already a gradient with dtype '{_name(self._grad.dtype, True)}'. Please "
                           "clear the gradient (.grad = None) before changing grad_dtype, or ensure the new grad_dtype matches the existing gradient's dtype.")
    self._grad_dtype = value
    self._hook_table()["first"] = lambda g: g if value is None or g.dtype is value else g.to(value)     # before the program's hooks


grad_dtype = property(_get_dtype, _set_dtype, doc="""The dtype of ``grad`` of a leaf: gradients that arrive are cast to it, None takes any.

Example:
    >>> x = clnn.ones(2, dtype=clnn.bfloat16, requires_grad=True)
    >>> x.grad_dtype = clnn.float32
    >>> (x * 3).sum().backward()
    >>> x.grad
    tensor([3., 3.])
""")


def _get_volatile(self):
    warn("volatile was removed (Variable.volatile is always False)")
    return False


def _set_volatile(self, value):
    warn("volatile was removed and now has no effect. Use `with torch.no_grad():` instead.")


volatile = property(_get_volatile, _set_volatile)
