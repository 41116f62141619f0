"""The kinds of quantisation, as an enumeration."""
from __future__ import annotations

import enum

__all__ = ["QuantType"]


class QuantType(enum.IntEnum):
    """How a part of a model is quantised.

    Example::

        >>> clnn.ao.quantization.QuantType.STATIC.name
        'STATIC'
    """

    DYNAMIC = 0
    STATIC = 1
    QAT = 2
    WEIGHT_ONLY = 3
