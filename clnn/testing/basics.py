"""What all derived checks share: limits, comparison of arrays, checks in two parts."""
from __future__ import annotations

import contextlib
import functools

import numpy as np

from . import cases


class NotApplicable(Exception):
    """The check says nothing about this operator."""


def two_parts(parts):
    """A check written as a generator: up to its ``yield`` of tensors it only starts work, after it it compares.

    The check runs both parts. Its ``start(op)`` runs the first and returns the second, for callers that start several checks before they finish one: the
    kernels of all are then built together.
    """
    def start(op):
        running = parts(op)
        tensors = next(running)
        with contextlib.suppress(Exception):            # reading the result raises it again, where the check may expect it
            cases.pending(tensors)
        return lambda: next(running, None)

    @functools.wraps(parts)
    def check(op):
        start(op)()
    check.start = start
    return check


# rtol, atol of a forward result by result dtype
LIMITS = {"float16": (2e-3, 2e-3), "bfloat16": (1.6e-2, 1.6e-2), "float32": (2e-5, 1e-5), "float64": (1e-7, 1e-8), "complex64": (2e-5, 1e-5),
          "complex128": (1e-7, 1e-8)}


def limits(op, row, scale=1.0):
    """(rtol, atol) for a result of dtype ``row``; the entry's ``tolerance`` (a pair, a number, or those by dtype name) may widen it."""
    rtol, atol = LIMITS.get(row.name, (0.0, 0.0))
    own = op.tolerance
    if isinstance(own, dict):
        own = own.get(row.name, own.get(row, own if {"rtol", "atol"} & set(own) else None))
    if isinstance(own, dict):
        own = (own.get("rtol", rtol), own.get("atol", atol))
    if isinstance(own, (int, float)):
        own = (own, own)
    if own:
        rtol, atol = max(rtol, own[0]), max(atol, own[1])
    return rtol * scale, atol * scale


def close(got, want, rtol, atol, what):
    """Compare two arrays; NaN equals NaN, infinities must agree."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f"{what}: shape {got.shape}, expected {want.shape}"
    if got.dtype == want.dtype and np.array_equal(got, want):
        return
    with np.errstate(all="ignore"):
        wide = np.complex128 if "c" in (got.dtype.kind, want.dtype.kind) else np.float64
        a, b = got.astype(wide), want.astype(wide)
        fine = (a == b) | (np.abs(a - b) <= atol + rtol * np.abs(b)) & np.isfinite(a) & np.isfinite(b) | (np.isnan(a) & np.isnan(b))
    if not fine.all():
        at = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(~fine)))
        raise AssertionError(f"{what}: {np.atleast_1d(a)[at]!r} instead of {np.atleast_1d(b)[at]!r} at {at}; {int((~fine).sum())} of {fine.size} "
                             f"differ, greatest difference {np.nanmax(np.where(fine, 0, np.abs(a - b))):.3g}")


def same_bits(got, want, what):
    close(got, want, 0.0, 0.0, what)
