"""Names of PyTorch that clnn does not have, and the error that says why."""
from __future__ import annotations

from ._tensor.tensor import Tensor


class Absent(AttributeError, NotImplementedError):
    """A name of PyTorch that clnn does not have, with the reason."""


_FAMILIES = {
    "sparse tensors of blocks": "sparse_bsr sparse_bsc sparse_bsr_tensor sparse_bsc_tensor to_sparse_bsr to_sparse_bsc",
    "these products of sparse tensors": "hsmm resize_as_sparse_",
    "quantised dtypes": "qscheme per_tensor_affine per_channel_affine per_tensor_symmetric "
                        "per_channel_symmetric quantize_per_tensor quantize_per_channel quantize_per_tensor_dynamic dequantize int_repr q_scale "
                        "q_zero_point q_per_channel_scales q_per_channel_zero_points q_per_channel_axis quantization",
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
