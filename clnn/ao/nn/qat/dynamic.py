"""``clnn.ao.nn.qat.dynamic``: training for quantised weights."""
from __future__ import annotations

from . import modules

__all__ = ["Linear"]


class Linear(modules.Linear):
    """As ``clnn.ao.nn.qat.Linear``, for a layer that is to round its input as it comes.

    Example::

        >>> clnn.ao.nn.qat.dynamic.Linear(2, 3, qconfig=clnn.ao.quantization.default_dynamic_qat_qconfig)(clnn.ones(1, 2)).shape
        clnn.Size([1, 3])
    """
