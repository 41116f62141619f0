"""Samples of distributions that are drawn by rejection, so that how many random numbers they take depends on these: in PyTorch's ways and sequence.

``draw`` is a :class:`~clnn.core.twister.Twister`: its ``double()`` and ``normal()`` give one number each.
"""
from __future__ import annotations

import math


def gamma(draw, shape):
    """One number of the gamma distribution of rate 1 (Marsaglia & Tsang, "A simple method for generating gamma variables", 2000)."""
    scale = 1.0
    if shape < 1.0:
        if shape == 0.0:
            return 0.0
        scale, shape = (1.0 - draw.double()) ** (1.0 / shape), shape + 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = draw.normal()
        y = 1.0 + c * x
        if y <= 0.0:
            continue
        v, u = y * y * y, 1.0 - draw.double()
        if u < 1.0 - 0.0331 * x ** 4 or math.log(u) < 0.5 * x * x + d * (1.0 - v + math.log(v)):
            return scale * d * v


def poisson(draw, rate):
    """One number of the Poisson distribution: factors until their product is small, or transformed rejection (Hoermann, 1993)."""
    if rate == 0.0:
        return 0.0
    if rate < 10.0:
        least, count, product = math.exp(-rate), 0, draw.double()
        while product > least:
            count, product = count + 1, product * draw.double()
        return float(count)
    b = 0.931 + 2.53 * math.sqrt(rate)
    a, alpha, sure = -0.059 + 0.02483 * b, 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2.0)
    while True:
        u, v = draw.double() - 0.5, draw.double()
        us = 0.5 - abs(u)
        k = math.floor((2.0 * a / us + b) * u + rate + 0.43)
        if us >= 0.07 and v <= sure:
            return float(k)
        if k < 0 or us < 0.013 and v > us:
            continue
        if math.log(v) + math.log(alpha) - math.log(a / (us * us) + b) <= -rate + k * math.log(rate) - math.lgamma(k + 1):
            return float(k)


def binomial(draw, count, share):
    """How many of ``count`` trials succeed: gaps between successes, or transformed rejection (Hoermann, 1993)."""
    if count <= 0 or share <= 0.0:
        return 0.0
    if share >= 1.0:
        return float(count)
    if share > 0.5:
        return count - binomial(draw, count, 1.0 - share)
    if count * share >= 10.0:
        return _binomial_by_rejection(draw, count, share)
    passed, found = 0.0, 0
    while True:
        u = draw.double()
        passed += math.ceil(math.log(u) / math.log1p(-share)) if u else math.inf
        if passed > count:
            return float(found)
        found += 1


_TAIL = (0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211, 0.0138761288230707, 0.0118967099458917,
         0.0104112652619720, 0.00925546218271273, 0.00833056343336287)


def _tail(k):
    """What Stirling's approximation of log(k!) leaves."""
    if k <= 9:
        return _TAIL[int(k)]
    s = (k + 1) ** 2
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / s) / s) / (k + 1)


def _binomial_by_rejection(draw, n, p):
    spread = math.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * spread
    a, c, sure, r = -0.0873 + 0.0248 * b + 0.01 * p, n * p + 0.5, 0.92 - 4.2 / b, p / (1 - p)
    alpha, m = (2.83 + 5.1 / b) * spread, math.floor((n + 1) * p)
    while True:
        u, v = draw.double() - 0.5, draw.double()
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + c)
        if us >= 0.07 and v <= sure:
            return float(k)
        if k < 0 or k > n:
            continue
        bound = ((m + 0.5) * math.log((m + 1) / (r * (n - m + 1))) + (n + 1) * math.log((n - m + 1) / (n - k + 1))
                 + (k + 0.5) * math.log(r * (n - k + 1) / (k + 1)) + _tail(m) + _tail(n - m) - _tail(k) - _tail(n - k))
        if math.log(v * alpha / (a / (us * us) + b)) <= bound:
            return float(k)
