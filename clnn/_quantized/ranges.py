"""The scale and the zero point with which integers cover a range of numbers, found on the host or, without waiting, on the device."""
from __future__ import annotations

import numpy as np

from ..core import dtype as dt
from ..graph.op import REGISTRY

SMALL = 6.1e-5              # integers cannot be told apart with a lesser scale: the range is widened


def choose_qparams(low, high, qmin, qmax, reduced=False):
    """(scale, zero point) with which integers ``qmin`` to ``qmax`` cover the numbers from ``low`` to ``high``, and zero exactly."""
    if not (np.isfinite(low) and np.isfinite(high)) or low > high:
        raise RuntimeError(f"In ChooseQuantizationParams, min should be less than or equal to max; got {low} and {high}")
    if reduced:
        qmin, qmax = int(qmin / 2), qmax // 2
    low, high, small = float(np.float32(min(low, 0.0))), float(np.float32(max(high, 0.0))), float(np.float32(SMALL))
    scale = (high - low) / (qmax - qmin)
    with np.errstate(divide="ignore"):
        if np.float32(scale) == 0 or np.isinf(np.float32(1) / np.float32(scale)):
            scale = 0.1
    if scale < small:
        low, high, scale = float(np.float32(low * small / scale)), float(np.float32(high * small / scale)), small
    nearer_low = abs(qmin) - abs(low / scale) < abs(qmax) - abs(high / scale)
    first = qmin - low / scale if nearer_low else qmax - high / scale
    return scale, int(min(max(float(np.rint(first)), qmin), qmax))


def range_of(x, qmin, qmax, reduced):
    """(scale, zero point) for the elements of ``x``. Waits for the device."""
    if not x.numel():
        return 1.0, 0
    low, high = x.aminmax()
    return choose_qparams(low.item(), high.item(), qmin, qmax, reduced)


def covering(low, high, quant_min, quant_max, symmetric=False):
    """:func:`choose_qparams` of tensors, as tensors of float32 and int32; where the range lies on both sides of zero, ``symmetric`` makes the zero point the
    middle. PyTorch's operators choose so; its observers differ in the last of the integers and in the least scale."""
    where, largest = REGISTRY["where"].fn, REGISTRY["maximum"].fn
    low, high = low.detach().clamp(max=0).reshape(-1), high.detach().clamp(min=0).reshape(-1)
    both = (low < 0) & (high > 0)
    if symmetric:
        least, most = -((quant_max - quant_min) // 2 + 1), (quant_max - quant_min) // 2
        side = largest((low / least).abs(), (high / most).abs())
        low, high = where(both, side * least, low), where(both, side * most, high)
    if low._home.has_fp64:
        low, high = low.to(dt.float64), high.to(dt.float64)
    scale = (high - low) / (quant_max - quant_min)
    single = scale.to(dt.float32)
    scale = where((single == 0) | single.reciprocal().isinf(), 0.1, scale)
    widen = where(scale < SMALL, SMALL / scale, 1.0)
    low, high, scale = low * widen, high * widen, scale.clamp(min=SMALL)
    below, above = low / scale, high / scale
    zero = where(abs(quant_min) - below.abs() < abs(quant_max) - above.abs(), quant_min - below, quant_max - above)
    if symmetric:
        zero = where(both, (quant_min + quant_max) / 2, zero)
    return scale.to(dt.float32), zero.clamp(quant_min, quant_max).round().to(dt.int32)
