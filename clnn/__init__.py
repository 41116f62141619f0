"""clnn: PyTorch's way of working on any OpenCL device."""
from .core.dtype import (bfloat16, bool_, dtype, float16, float32, float64, int8, int16, int32, int64, promote_types, uint8)  # noqa: F401
from .core.shape import Size  # noqa: F401
from ._tensor.tensor import Tensor  # noqa: F401
from . import ops as _ops  # noqa: F401
