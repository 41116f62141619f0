"""Norms, distances and log-sum-exp."""
from __future__ import annotations

import math

import numpy as np

from .._tensor.declare import composite, kernel
from .._tensor.inplace import set_out, type_name
from .._tensor.repeat import repeated_rule
from ..core import dtype as dt
from .reductions import ROOT_SUM, count_of, dims_of, fold, widen
from .selection import where


def _power_sum(x, order, dims):
    """The norm in the accumulate type with the reduced dimensions kept."""
    if order == 1:
        return x.abs().sum(dims, True)
    if order == 0:
        return (x != 0).to(x.dtype).sum(dims, True)
    if order == math.inf:
        return x.abs().amax(dims, True)
    if order == -math.inf:
        return x.abs().amin(dims, True)
    return (x.abs() ** order).sum(dims, True) ** (1.0 / order)


@repeated_rule
def _norm_grad(g, input, order, dims, keepdim, result):
    """PyTorch's subgradients: zero where the norm is zero, shared evenly by equal extremes."""
    shape = input.shape
    g, norm = widen(g, shape, dims, keepdim), widen(result, shape, dims, keepdim)
    if order == 0:
        return input * 0
    if order == 1:
        return input.sign() * g
    if order == 2:
        return input * (where(norm == 0, 0.0, g) / where(norm == 0, 1.0, norm))
    if math.isinf(order):
        size = input.abs()
        mask = where(norm.isnan(), size.isnan(), size == norm).to(input.dtype)
        return input.sign() * (mask / mask.sum(dims or None, True) * g)
    if order < 2:
        scaled = where(input == 0, 0.0, input.sign() * input.abs() ** (order - 1))
    else:
        scaled = input * input.abs() ** (order - 2)
    return scaled * (where(norm == 0, 0.0, g) / where(norm == 0, 1.0, norm) ** (order - 1))


@kernel("_vector_norm", method=False, repeat="ready whole", vjp=dict(input=_norm_grad))
def _vector_norm(input, order, dims, keepdim):
    acc = input.dtype.acc_dtype
    x = input if input.dtype is acc else input.to(acc)
    if order == 2 and 0 not in input.shape:
        return fold(ROOT_SUM, x * x, dims, keepdim, acc, input.dtype)
    got = _power_sum(x, order, dims or None).to(input.dtype)
    if keepdim or not input.shape:
        return got
    return got.reshape([s for i, s in enumerate(input.shape) if i not in dims])


_vector_norm.op.grad_name = "LinalgVectorNormBackward0"


def _np_vector_norm(x, ord=2, dim=None, keepdim=False, dtype=None):
    axes = tuple(range(x.ndim)) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    rest = [i for i in range(x.ndim) if i not in [a % x.ndim for a in axes]]
    flat = np.transpose(x, rest + [a % x.ndim for a in axes]).reshape([x.shape[i] for i in rest] + [-1])
    got = np.linalg.norm(flat, ord, -1)
    return got.reshape([1 if i not in rest else s for i, s in enumerate(x.shape)]) if keepdim else got


def _samples():
    x = np.random.default_rng(0).standard_normal((3, 4, 5))
    return [((x,), {}), ((x, 1), {}), ((x, 3.5), dict(dim=1)), ((x, math.inf), dict(dim=(0, 2))), ((x, -math.inf), dict(dim=-1, keepdim=True)),
            ((x, 0), dict(dim=0)), ((x, 1.5), dict(dim=2)), ((x, 2), dict(dim=(1, 2), keepdim=True))]


def convertible(own, row, name="linalg.vector_norm"):
    """Raise where numbers of dtype ``own`` lose something in dtype ``row``."""
    told = type_name(row)
    if not row.differentiable:
        raise RuntimeError(f"{name}: dtype should be floating point or complex, but got {told}")
    if row.is_complex is not own.is_complex:
        kind = "complex" if own.is_complex else "real"
        raise RuntimeError(f"{name}: dtype should be {kind} for {kind} inputs, but got {told}")
    if dt.promote_types(own, row) is not row:
        raise RuntimeError(f"{name}: the dtype of the input ({type_name(own)}) should be convertible without narrowing to the specified dtype ({told})")


@composite("linalg_vector_norm", repeat="ready small", complex=True, method=False, numpy=_np_vector_norm, samples=_samples, torch="linalg.vector_norm", dtypes=dt.FLOATS,
           errors=[((np.arange(3),), {}, RuntimeError, "linalg.vector_norm: Expected a floating point or complex tensor as input. Got Long")])
def vector_norm(input, ord=2, dim=None, keepdim=False, *, dtype=None, out=None):
    """``(sum |x|^ord)^(1/ord)`` over ``dim``; ``inf`` and ``-inf`` are the extremes of ``|x|``, 0 counts what is not zero."""
    if input.dtype.category < dt.FLOAT:
        raise RuntimeError(f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {type_name(input.dtype)}")
    if isinstance(ord, str):
        raise TypeError("linalg_vector_norm(): argument 'ord' (position 2) must be Number, not str")
    if dtype is not None:
        convertible(input.dtype, dt.as_dtype(dtype))
        input = input.to(dtype)
    if input.dtype.is_complex:
        input = input.abs()
    dims = dims_of(dim, len(input.shape))
    if math.isinf(ord) or ord < 0:
        if input._numel == 0 and dim is None or count_of(input.shape, dims) == 0:
            empty = "an empty tensor " if dim is None else f"the dimension {next(d for d in dims if not input.shape[d])}"
            raise RuntimeError(f"linalg.vector_norm cannot compute the {ord} norm on {empty}because {'this dimension is empty and ' * (dim is not None)}"
                               "the operation does not have an identity")
    return set_out(out, _vector_norm(input, float(ord), dims, keepdim))


@composite("norm", repeat="ready small", complex=True, dtypes=dt.FLOATS)
def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """Vector norm of order ``p`` over ``dim`` (all elements by default); ``"fro"`` is 2, ``"nuc"`` the sum of singular values.

    Example:
        >>> clnn.tensor([3., 4.]).norm()
        tensor(5.)
    """
    if isinstance(out, dt.dtype):                               # the method has no ``out``: ``x.norm(2, 1, True, clnn.float64)``
        out, dtype = None, out
    if p == "nuc":
        from .matrix_norms import matrix_norm
        return set_out(out, matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim))
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"linalg.matrix_norm: Order {p} not supported.")
    return vector_norm(input, 2 if p == "fro" or p is None else p, dim, keepdim, dtype=dtype, out=out)


@composite("dist", repeat="ready small", complex=True, numpy=lambda a, b, p=2: np.linalg.norm((a - b).ravel(), p),
           samples=lambda: [((np.arange(4.0), np.ones(4)), {}), ((np.arange(4.0), np.ones(4), 1), {})], dtypes=dt.FLOATS)
def dist(input, other, p=2):
    """Norm of order ``p`` of the difference."""
    return vector_norm(input - other, p)


# -- log-sum-exp ----------------------------------------------------------------------------------------------------------------------
@repeated_rule
def _logsumexp_grad(g, input, dims, keepdim, result):
    norm_ = widen(result, input.shape, dims, keepdim)
    return widen(g, input.shape, dims, keepdim) * (input - norm_).exp()


@kernel("_logsumexp", method=False, repeat="ready whole", vjp=dict(input=_logsumexp_grad))
def _logsumexp(input, dims, keepdim):
    x = input.to(input.dtype.acc_dtype)
    if input._numel:
        top = x.amax(dims, True)
        top = where(top.isinf(), 0.0, top)
        got = (x - top).exp().sum(dims or None, True).log() + top
    else:
        got = x.sum(dims or None, True).log()
    got = got.to(input.dtype)
    return got if keepdim or not input.shape else got.reshape([s for i, s in enumerate(input.shape) if i not in dims])


_logsumexp.op.grad_name = "LogsumexpBackward0"


def _np_logsumexp(x, dim, keepdim=False):
    return np.logaddexp.reduce(x, axis=dim, keepdims=keepdim)


@composite("logsumexp", repeat="ready small", complex=True, numpy=_np_logsumexp, dtypes=dt.FLOATS,
           samples=lambda: [((np.random.default_rng(0).standard_normal((3, 4, 5)) * 50, d), k)
                            for d, k in ((0, {}), ((1, 2), {}), (-1, dict(keepdim=True)))])
def logsumexp(input, dim, keepdim=False, *, out=None):
    """``log(sum(exp(x)))`` over ``dim``, without overflow."""
    if input.dtype.is_complex:
        top = input.real.detach().amax(dim, True)
        top = where(top.isfinite(), top, 0.0)
        r = (input - top).exp().sum(dim, True).log() + top
        return set_out(out, r if keepdim else r.sum(dim))
    if not input.dtype.is_floating_point:
        input = input.to(dt.float_default())
    return set_out(out, _logsumexp(input, dims_of(dim, len(input.shape)), keepdim))
