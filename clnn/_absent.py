"""Names of PyTorch that clnn does not have, and the error that says why."""
from __future__ import annotations

from ._tensor.tensor import Tensor


class Absent(AttributeError, NotImplementedError):
    """A name of PyTorch that clnn does not have, with the reason."""


_FAMILIES = {
    "sparse tensors of blocks": "sparse_bsr_tensor sparse_bsc_tensor to_sparse_bsr to_sparse_bsc",
    "these products of sparse tensors": "hsmm resize_as_sparse_",
    "nested tensors": "to_padded_tensor",
    "graphs of Python programs": "package",
}
_REASONS = {name: family for family, names in _FAMILIES.items() for name in names.split()}


def reason(name):
    """What of PyTorch a name belongs to that clnn does not implement, or None."""
    return _REASONS.get(name)


def absent(owner, name):
    """The error of an attribute that does not exist."""
    family = reason(name)
    if family is not None:
        return Absent(f"{owner} has no attribute {name!r}: clnn does not implement {family}")
    return AttributeError(f"{owner} has no attribute {name!r}")


def _missing(self, name):
    raise absent(f"{type(self).__name__!r} object", name)


Tensor.__getattr__ = _missing


def _of_quantised(name):
    """A method that quantised tensors have, of all others."""
    def method(self):
        raise NotImplementedError(f"Could not run 'aten::{name}' with arguments from the '{'CUDA' if self.is_cuda else 'CPU'}' backend: "
                                  "only quantised tensors have it")
    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Of quantised tensors, see :func:`clnn.{name}`." if name != "qscheme" else "The scheme of a quantised tensor, as ``clnn.per_tensor_affine``."
    return method


for _name in "int_repr qscheme q_scale q_zero_point q_per_channel_scales q_per_channel_zero_points q_per_channel_axis".split():
    setattr(Tensor, _name, _of_quantised(_name))


def _dequantize(self):
    """The numbers as float32: what is not quantised is converted."""
    return self.float()


_dequantize.__name__ = _dequantize.__qualname__ = "dequantize"
Tensor.dequantize = _dequantize


def _removed(name, new):
    """A function that PyTorch keeps to say what has taken its place."""
    def function(*args, **kwargs):
        raise RuntimeError(f"This function was deprecated since version 1.9 and is now removed. `torch.{name}` is deprecated in favor of `torch.linalg.{new}`.")
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Removed from PyTorch: :func:`clnn.linalg.{new}` has taken its place; raises RuntimeError."
    return function


eig, symeig, solve, lstsq = [_removed(*pair) for pair in dict(eig="eig", symeig="eigh", solve="solve", lstsq="lstsq").items()]
matrix_rank = _removed("matrix_rank", "matrix_rank")
Tensor.eig, Tensor.symeig, Tensor.solve, Tensor.lstsq = eig, symeig, solve, lstsq
