"""The Airy function Ai on the host, in doubles.

``y'' = x y`` gives the Taylor series about any point from the value and the slope there. Both are known far to the right by the asymptotic expansion (DLMF
9.7.5 and 9.7.6); steps to the left, in which Ai grows and errors do not, give them at a row of points. Further out the expansions serve (9.7.9).
"""
from __future__ import annotations

import functools
import math

import numpy as np

_LEFT, _RIGHT, _STEP, _TERMS = -25.0, 12.0, 0.25, 20


@functools.cache
def _expansion():
    """The coefficients u and v of the asymptotic expansions of Ai and its slope."""
    u = [1.0]
    for k in range(1, 16):
        u.append(u[-1] * (6 * k - 5) * (6 * k - 3) * (6 * k - 1) / (216 * k * (2 * k - 1)))
    return np.array(u), np.array([c * (6 * k + 1) / (1 - 6 * k) for k, c in enumerate(u)])


def _decaying(x, coefficients):
    z = 2 / 3 * x * np.sqrt(x)
    return np.exp(-z) / (2 * math.sqrt(math.pi)) * np.polynomial.polynomial.polyval(-1 / z, coefficients)


def _waving(x):
    z, u = 2 / 3 * np.abs(x) ** 1.5, _expansion()[0]
    square = -1 / (z * z)
    even, odd = (np.polynomial.polynomial.polyval(square, u[i::2]) for i in (0, 1))
    return (np.cos(z - math.pi / 4) * even + np.sin(z - math.pi / 4) * odd / z) / (math.sqrt(math.pi) * np.abs(x) ** 0.25)


def _series(at, value, slope):
    """Taylor coefficients about ``at``."""
    c = [value, slope, at * value / 2]
    for n in range(1, _TERMS):
        c.append((at * c[n] + c[n - 1]) / ((n + 1) * (n + 2)))
    return c


@functools.cache
def _table():
    """Taylor coefficients about the points from right to left, one row each."""
    u, v = _expansion()
    x = _RIGHT
    value, slope = _decaying(x, u) / x ** 0.25, -_decaying(x, v) * x ** 0.25
    rows = []
    while x >= _LEFT:
        rows.append(_series(x, value, slope))
        polynomial = np.polynomial.Polynomial(rows[-1])
        value, slope, x = polynomial(-_STEP), polynomial.deriv()(-_STEP), x - _STEP
    return np.array(rows)


def airy_ai(x):
    """Ai of an array; NaN at the infinities, as in PyTorch."""
    out = np.full(x.shape, math.nan)
    near = (x > _LEFT) & (x < _RIGHT)
    row = np.rint((_RIGHT - x[near]) / _STEP).astype(np.int64)
    c, h = _table()[row], x[near] - (_RIGHT - row * _STEP)
    value = c[:, -1]
    for n in range(c.shape[1] - 2, -1, -1):
        value = value * h + c[:, n]
    out[near] = value
    right, left = (x >= _RIGHT) & np.isfinite(x), (x <= _LEFT) & np.isfinite(x)
    out[right] = _decaying(x[right], _expansion()[0]) / x[right] ** 0.25
    out[left] = _waving(x[left])
    return out
