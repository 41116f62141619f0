"""``clnn.ao.nn.intrinsic.quantized.dynamic``: several layers in one, of floats, with quantised weights."""
from __future__ import annotations

import clnn
from clnn._quantized import functions as quantized

from .. import intrinsic as nni
from ..quantized import dynamic as nnqd

__all__ = ["LinearReLU"]


class LinearReLU(nnqd.Linear):
    """``nnqd.Linear`` and ReLU.

    Example::

        >>> clnn.ao.nn.intrinsic.quantized.dynamic.LinearReLU(2, 3)(clnn.ones(1, 2)).shape
        clnn.Size([1, 3])
    """

    _FLOAT_MODULE = (nni.LinearReLU,)

    def forward(self, x):
        if self._packed_params.dtype is clnn.float16:
            return quantized.linear_relu_dynamic_fp16(x, self._packed())
        return quantized.linear_relu_dynamic(x, self._packed(), True)

    def _get_name(self):
        return "DynamicQuantizedLinearReLU"
