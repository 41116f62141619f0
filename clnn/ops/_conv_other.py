"""Convolutions of numbers that have no kernels of their own: complex ones as real ones of their parts, integers as products of windows.

Weights come as convolutions take them, (O, C // groups, *kernel), and as transposed ones do, (C, O // groups, *kernel).
"""
from __future__ import annotations

import itertools
import math

from ..graph.op import REGISTRY
from .complexes import complex_
from .joining import cat
from .matmul import matmul
from .padding import pad


def _reduced(parts, groups, outputs):
    """The complex result of the parts of both factors: ``parts`` is (2 N, groups, 2, O // groups, *), real parts first."""
    n = parts.shape[0] // 2
    parts = parts.reshape(2, n, groups, 2, outputs // groups, *parts.shape[2:])
    (rr, ri), (ir, ii) = ([half.select(2, k).flatten(1, 2) for k in (0, 1)] for half in (parts[0], parts[1]))
    return complex_(rr - ii, ri + ir)


def complex_conv(op, input, weight, bias, groups, transposed):
    """``op(input, weight)`` of complex numbers: one real convolution of both parts of the input, as a batch, with both parts of the weight, as outputs."""
    if transposed:
        outputs, both = weight.shape[1] * groups, cat([weight.real, weight.imag], 1)
    else:
        outputs = weight.shape[0]
        by_group = weight.reshape(groups, outputs // groups, *weight.shape[1:])
        both = cat([by_group.real, by_group.imag], 1).flatten(0, 1)
    r = _reduced(op(cat([input.real, input.imag], 0), both), groups, outputs)
    return r if bias is None else r + bias.reshape(-1, *[1] * (r.ndim - 2))


def _outer_first(values):
    """Amounts per dimension and side in the order of ``pad``, which is last dimension first."""
    return [v for before, after in reversed(values) for v in (before, after)]


def integer_conv(input, weight, bias, stride, padding, dilation, groups):
    """A convolution of integers: every window as a row of a matrix, which is multiplied by the weight; sums wrap around as integers do."""
    sides = [p if isinstance(p, tuple) else (p, p) for p in padding]
    x = pad(input, _outer_first(sides)).contiguous()
    n, kernel = len(stride), tuple(weight.shape[2:])
    steps = x.stride()
    places = [(x.shape[2 + d] - dilation[d] * (kernel[d] - 1) - 1) // stride[d] + 1 for d in range(n)]
    batch, channels, outputs = x.shape[0], x.shape[1] // groups, weight.shape[0]
    windows = x.as_strided((batch, groups, *places, channels, *kernel),
                           (steps[0], steps[1] * channels, *[steps[2 + d] * stride[d] for d in range(n)], steps[1],
                            *[steps[2 + d] * dilation[d] for d in range(n)]), x.storage_offset())
    taps = channels * math.prod(kernel)
    rows = windows.reshape(batch, groups, math.prod(places), taps)
    r = matmul(weight.reshape(groups, outputs // groups, taps), rows.mT).reshape(batch, outputs, *places)
    return r if bias is None else r + bias.reshape(-1, *[1] * n)


def integer_conv_transposed(input, weight, bias, stride, padding, extra, dilation, groups):
    """A transposed convolution of integers: the input with zeros between its elements, convolved with the weight turned round."""
    n, kernel = len(stride), tuple(weight.shape[2:])
    spread = input.new_zeros((*input.shape[:2], *[(s - 1) * step + 1 for s, step in zip(input.shape[2:], stride)]))
    spread[(slice(None), slice(None), *[slice(None, None, step) for step in stride])] = input
    reach = [d * (k - 1) - p for d, k, p in zip(dilation, kernel, padding)]
    spread = pad(spread, _outer_first([(r, r + o) for r, o in zip(reach, extra)]))
    turned = weight.flip(*range(2, 2 + n)).reshape(groups, -1, *weight.shape[1:]).transpose(1, 2).flatten(0, 1)
    return integer_conv(spread, turned, bias, (1,) * n, (0,) * n, dilation, groups)


def integer_avg_pool(input, kernel, stride, padding, ceil_mode, padded, divisor):
    """Means of windows of int64, rounded towards zero, from exact sums; as PyTorch's mean pooling of int64."""
    n = len(kernel)
    lead, sizes = tuple(input.shape[:-n]), tuple(input.shape[-n:])
    counts = [-(-(s + 2 * p - k) // t) + 1 if ceil_mode else (s + 2 * p - k) // t + 1 for s, k, t, p in zip(sizes, kernel, stride, padding)]
    counts = [c - 1 if ceil_mode and (c - 1) * t >= s + p else c for c, s, t, p in zip(counts, sizes, stride, padding)]
    ends = [max(0, (c - 1) * t + k - s - p) for c, s, k, t, p in zip(counts, sizes, kernel, stride, padding)]
    x = pad(input.reshape(-1, 1, *sizes), _outer_first(list(zip(padding, ends))))
    sums = 0
    for place in itertools.product(*map(range, kernel)):
        sums = sums + x[(slice(None), slice(None), *[slice(o, o + (c - 1) * t + 1, t) for o, c, t in zip(place, counts, stride)])]
    divisors = divisor or _window_counts(input, sizes, kernel, stride, padding, counts, padded)
    return REGISTRY["div"].fn(sums, divisors, rounding_mode="trunc").reshape(*lead, *counts)


def _window_counts(like, sizes, kernel, stride, padding, counts, padded):
    """How many elements each window has, as a tensor that broadcasts: those of the padding too when ``padded``."""
    total = like.new_ones(())
    for d, (s, k, t, p, c) in enumerate(zip(sizes, kernel, stride, padding, counts)):
        low, high = (-p, s + p) if padded else (0, s)
        row = [max(0, min(o * t - p + k, high) - max(o * t - p, low)) for o in range(c)]
        total = total * like.new_tensor(row).reshape(-1, *[1] * (len(sizes) - 1 - d))
    return total
