"""Covariances and correlations."""
from __future__ import annotations

import numpy as np

from .._tensor.declare import composite
from .._tensor.inplace import type_name
from ..core import dtype as dt
from ..core.shape import whole
from ..core.warn import warn
from .complexes import complex_, real
from .linalg import _REAL
from .matmul import matmul


def _check_weights(w, what, integral, count):
    if len(w.shape) > 1:
        raise RuntimeError(f"cov(): expected {what} to have one or fewer dimensions but got {what} with {len(w.shape)} dimensions")
    if integral != (w.dtype.category == dt.INT):
        raise RuntimeError(f"cov(): expected {what} to have {'integral' if integral else 'floating point'} dtype but got {what} with {type_name(w.dtype)} dtype")
    if w._numel != count:
        raise RuntimeError(f"cov(): expected {what} to have the same numel as there are observations in the input but got {w._numel} != {count}")
    if count and w.min().item() < 0:
        raise RuntimeError(f"cov(): {what} cannot be negative")


@composite("cov", splice=True, repeat="ready small", complex=True, numpy=lambda x, correction=1: np.cov(x, ddof=correction),
           samples=lambda: [((np.random.default_rng(0).standard_normal(s),), {}) for s in ((3, 8), 8)], dtypes=_REAL)
def cov(input, *, correction=1, fweights=None, aweights=None):
    """Covariance matrix of variables in rows and observations in columns."""
    if len(input.shape) > 2:
        raise RuntimeError(f"cov(): expected input to have two or fewer dimensions but got an input with {len(input.shape)} dimensions")
    for w, what, integral in ((fweights, "fweights", True), (aweights, "aweights", False)):
        if w is not None:
            _check_weights(w, what, integral, input.shape[-1] if input.shape else 1)
    correction = whole(correction)
    x = input if input.dtype.differentiable else input.to(dt.float_default())
    x = x if len(x.shape) == 2 else x.reshape(1, -1)
    n = x.shape[1]
    if fweights is None and aweights is None and n <= correction:
        warn("cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.")
    if fweights is None and aweights is None:
        away = x - x.mean(1, True)
        got = matmul(away, away.mH) / max(n - correction, 0)
    else:
        row = x.dtype.to_real()
        w = fweights.to(row) if aweights is None else aweights if fweights is None else fweights * aweights
        total = w.sum()
        norm = total - correction if aweights is None else total - correction * (w * aweights).sum() / total
        away = x - (x * w).sum(1, True) / total
        got = matmul(away, (away * w).mH) / norm.clamp(min=0)
    return got.squeeze()


@composite("corrcoef", splice=True, repeat="ready small", complex=True, numpy=np.corrcoef,
           samples=lambda: [((np.random.default_rng(0).standard_normal((3, 8)),), {})], dtypes=_REAL)
def corrcoef(input):
    """Correlation coefficients of variables in rows."""
    if len(input.shape) > 2:
        raise RuntimeError(f"corrcoef(): expected input to have two or fewer dimensions but got an input with {len(input.shape)} dimensions")
    c = cov(input)
    if not c.shape:
        return c / c
    d = real(c.diagonal()).sqrt()
    r = c / d.unsqueeze(1) / d.unsqueeze(0)
    return complex_(r.real.clamp(-1, 1), r.imag.clamp(-1, 1)) if r.dtype.is_complex else r.clamp(-1, 1)
