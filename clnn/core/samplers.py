"""Samples of distributions that are drawn by rejection, so that how many random numbers they take depends on these: in PyTorch's ways and sequence.

``draw`` gives one number by ``double()`` or ``normal()``.
"""
from __future__ import annotations

import math

import numpy as np

from . import native


_THIRD, _SQUEEZE = float(np.float32(1) / np.float32(3)), float(np.float32(0.0331))         # PyTorch's constants are numbers of float32


def gamma(draw, shape, real=float):
    """One number of the gamma distribution of rate 1 (Marsaglia & Tsang, "A simple method for generating gamma variables", 2000).

    ``real`` is the kind of numbers that ``shape`` is one of, in which a part of it is computed.
    """
    scale, shape, one = 1.0, real(shape), real(1)
    if math.isnan(shape):                                       # it would be rejected for ever
        return math.nan
    if shape < 1.0:
        if shape == 0.0:
            return 0.0
        scale, shape = (1.0 - draw.double()) ** float(one / shape), shape + one
    d = float(shape - real(_THIRD))
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = draw.normal()
        y = 1.0 + c * x
        if y <= 0.0:
            continue
        v, u, square = y * y * y, 1.0 - draw.double(), x * x
        if u < 1.0 - _SQUEEZE * square * square or math.log(u) < 0.5 * square + d * (1.0 - v + math.log(v)):
            return scale * d * v


def gamma_float(draw, shape):
    """The same for float32."""
    with np.errstate(over="ignore"):
        return gamma(draw, shape, np.float32)


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
    if math.isnan(share):
        return share
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


class _Draw:
    """One number after the other, and how many words they took."""

    def __init__(self, words, spare):
        self.words, self.spare, self.taken = words, spare, 0

    def double(self):
        self.taken += 2
        return self.words.double()

    def normal(self):
        self.taken += 4 * (self.spare is None)
        made, self.spare = self.words.pairs(1, self.spare)
        return np.frombuffer(made)[0].item()


_KINDS = dict(gamma=gamma, gamma_float=gamma_float, poisson=poisson, binomial=binomial)


def rejected(kind, words, spare, *parameters):
    """A number of that ``kind`` for each element of ``parameters``, arrays of float64.

    Returns (numbers of float64 as bytes, how many of ``words`` they took, the normal number that is left or None).
    """
    draw, sample = _Draw(words, spare), _KINDS[kind]
    made = np.array([sample(draw, *each) for each in zip(*[p.ravel().tolist() for p in parameters])], np.float64)
    return made.tobytes(), draw.taken, draw.spare


rejected = native.form("rejected", rejected)
