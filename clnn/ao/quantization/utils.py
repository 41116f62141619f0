"""Small questions about schemes, dtypes and settings, which the other modules share."""
from __future__ import annotations

import warnings

import clnn

__all__ = ["activation_dtype", "activation_is_statically_quantized", "calculate_qmin_qmax", "check_min_max_valid", "get_combined_dict", "is_per_channel",
           "is_per_tensor", "validate_qmin_qmax", "weight_dtype", "weight_is_quantized", "MatchAllNode", "Pattern"]
Pattern = "Pattern"             # in PyTorch's hints: what fusing and the mappings match: a class, a function, or a tuple of these
_RANGES = {"qint32": (-2 ** 31, 2 ** 31 - 1), "int32": (-2 ** 31, 2 ** 31 - 1), "int16": (-2 ** 15, 2 ** 15 - 1), "uint16": (0, 2 ** 16 - 1),
           "quint4x2": (0, 15)}


class MatchAllNode:
    """Stands for anything in a pattern.

    Example::

        >>> clnn.ao.quantization.MatchAllNode.__name__
        'MatchAllNode'
    """


def get_combined_dict(default_dict, additional_dict):
    """A copy of the first with the entries of the second.

    Example::

        >>> clnn.ao.quantization.get_combined_dict({"a": 1}, {"b": 2})
        {'a': 1, 'b': 2}
    """
    return {**default_dict, **additional_dict}


def is_per_tensor(qscheme):
    """Whether one scale serves the whole tensor."""
    return qscheme in (clnn.per_tensor_affine, clnn.per_tensor_symmetric)


def is_per_channel(qscheme):
    """Whether each channel has a scale of its own."""
    return qscheme in (clnn.per_channel_affine, clnn.per_channel_affine_float_qparams, clnn.per_channel_symmetric)


def validate_qmin_qmax(quant_min, quant_max):
    """Refuse a range of integers without zero, or the wrong way round."""
    if not quant_min <= 0 <= quant_max:
        raise AssertionError("Used-specified quantization range must include 0.")
    if quant_min >= quant_max:
        raise AssertionError("qmin must be strictly less than qmax for user-specified quantization range.")


def calculate_qmin_qmax(quant_min, quant_max, has_customized_qrange, dtype, reduce_range):
    """The least and the greatest integer in use: those given, or all of the dtype; half of them where ``reduce_range`` asks for it.

    Example::

        >>> clnn.ao.quantization.utils.calculate_qmin_qmax(None, None, False, clnn.qint8, True)
        (-64, 63)
    """
    if has_customized_qrange:
        most = 2 ** 32 - 1 if dtype in (clnn.qint32, clnn.int32) else 2 ** 16 if dtype in (clnn.int16, clnn.uint16) else 256
        if not 0 < quant_max - quant_min + 1 <= most:
            raise AssertionError("quantization range should be positive and not exceed the maximum bit range (=256).")
        low, high = quant_min, quant_max
    elif dtype.name in _RANGES:
        return _RANGES[dtype.name]
    else:
        low, high = (-128, 127) if dtype in (clnn.qint8, clnn.int8) else (0, 255)
    return (low // 2, high // 2) if reduce_range else (low, high)


def check_min_max_valid(min_val, max_val):
    """Whether an observer has seen anything; refuses a least value above the greatest."""
    if min_val.numel() == 0 or max_val.numel() == 0:
        warnings.warn("must run observer before calling calculate_qparams. Returning default values.", stacklevel=3)
        return False
    if min_val.dim() == 0:
        low, high = min_val.item(), max_val.item()
        if low == float("inf") and high == float("-inf"):
            warnings.warn("must run observer before calling calculate_qparams. Returning default values.", stacklevel=3)
            return False
        fine = low <= high
    else:
        fine = bool((min_val <= max_val).all())
    if not fine:
        raise AssertionError(f"min {min_val} should be less than max {max_val}")
    return True


def weight_dtype(qconfig):
    """The dtype of a setting's weights."""
    return qconfig.weight().dtype


def activation_dtype(qconfig):
    """The dtype of a setting's activations."""
    return qconfig.activation().dtype


def activation_is_statically_quantized(qconfig):
    """Whether activations get a scale that is found before the model runs."""
    return activation_dtype(qconfig) in (clnn.quint8, clnn.qint8, clnn.qint32, clnn.float16) and not getattr(qconfig.activation(), "is_dynamic", False)


def weight_is_quantized(qconfig):
    """Whether weights become integers, or 16-bit floats."""
    return weight_dtype(qconfig) in (clnn.quint8, clnn.qint8, clnn.float16, clnn.quint4x2, clnn.uint8, clnn.int8, clnn.int16, clnn.int32)
