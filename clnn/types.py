"""Type names for annotations, as in ``torch.types``."""
from __future__ import annotations

import os
from typing import IO, Sequence, Union

from ._tensor.device import device
from ._tensor.tensor import Tensor
from .core.dtype import dtype
from .core.shape import Size
from .storage import UntypedStorage as Storage

Number = Union[int, float, bool]
Device = Union[device, str, int, None]
FileLike = Union[str, os.PathLike[str], IO[bytes]]
_int, _float, _bool, _dtype, _device, _size = int, float, bool, dtype, device, Union[Size, Sequence[int]]
__all__ = ["Number", "Device", "FileLike", "Storage", "Tensor", "Size"]
