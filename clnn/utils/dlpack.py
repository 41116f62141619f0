"""Exchange of tensors with other libraries by way of host memory, as in ``torch.utils.dlpack``."""
from .._tensor.interop import from_dlpack, to_dlpack  # noqa: F401

__all__ = ["from_dlpack", "to_dlpack"]
