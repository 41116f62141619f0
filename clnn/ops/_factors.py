"""What inverses, determinants, equations and factorisations are made of: kernels for most matrices, LAPACK on the host for the others.

Each gives a status per matrix, 0 where all went well, and does not wait for the device where it has a kernel.
"""
from __future__ import annotations

import numpy as np

from .._tensor.declare import kernel
from .._tensor.formats import with_strides
from .._tensor.grad_mode import state
from .._tensor.interop import from_array, read
from .._tensor.tensor import Tensor, empty
from ..core import dtype as dt
from ..core.errors import LinAlgError
from ..core.shape import Size, contiguous_strides
from . import _lanes, _lapack, _small
from .matmul import matmul


_TURNED = 1 << 14       # elements from which on the device turns matrices in less time
ILL_DEFINED = "quantity, so it is ill-defined."


def on_host(name, inputs, outputs, *options):
    """Results of a function of ``_lapack.py`` as tensors of given (shape, dtype); on the meta device only these."""
    device = inputs[0]._storage.device
    if device.kind == "meta":
        return tuple(empty(s, row, device) for s, row in outputs)
    try:
        got = _lapack.call(name, [_columns(t.detach()) for t in inputs], options)
    except np.linalg.LinAlgError as exc:
        raise LinAlgError(f"linalg: {exc}") from None
    return tuple(_tensor(a, Size(s), row, device) for a, (s, row) in zip(got if isinstance(got, tuple) else (got,), outputs))


def _columns(t):
    """Values in memory of their own, matrices column by column as LAPACK has them."""
    if len(t.shape) < 2:
        return read(t)
    turned = t.mT
    if turned.is_contiguous() or t._numel > _TURNED:
        return read(turned).swapaxes(-1, -2)
    return np.array(read(t).swapaxes(-1, -2), order="C").swapaxes(-1, -2)


def _tensor(a, shape, row, device):
    """An array as a tensor: matrices that lie column by column stay so, as in PyTorch."""
    if a.flags.c_contiguous or a.ndim < 2 or not a.swapaxes(-1, -2).flags.c_contiguous:
        return from_array(np.ascontiguousarray(a, row.np).reshape(shape), device, row)
    t = from_array(a.swapaxes(-1, -2), device, row)
    *outer, columns, rows = contiguous_strides(t.shape)
    t._shape = shape
    return with_strides(t, (*outer, rows, columns))


def raise_where(name, info, text, kind=LinAlgError):
    """An error that names the first matrix of a batch whose status is not 0; the status takes the place of ``%d`` in ``text``."""
    if info._storage.device.kind == "meta":
        return
    info = info._bearer
    status = read(info.detach())
    bad = np.flatnonzero(status)
    if len(bad):
        where_ = f"(Batch element {bad[0]}): " if len(info.shape) else ""
        raise kind(f"{name}: {where_}{text.replace('%d', str(status.reshape(-1)[bad[0]]))}")


SINGULAR = "The diagonal element %d is zero, the inversion could not be completed because the input matrix is singular."
UNSOLVED = "The solver failed because the input matrix is singular."
INDEFINITE = ("The factorization could not be completed because the input is not positive-definite (the leading minor of order %d is not "
              "positive-definite).")


def _wide(A, B):
    return tuple(np.broadcast_shapes(tuple(A.shape[:-2]), tuple(B.shape[:-2]))) + tuple(B.shape[-2:])


def _and_status(A, shape):
    return [(shape, A.dtype), (A.shape[:-2], dt.int32)]


# -- operators --------------------------------------------------------------------------------------------------------------------------------
@kernel("_inv_ex", method=False, complex=True, outputs=("inverse", "info"),
        vjp=dict(A=lambda g, inverse: -matmul(matmul(inverse.mH, g[0]), inverse.mH)))
def inv_ex(A):
    if _lanes.suits_lu(A):
        return _lanes.solve(A, None)
    if _small.suits(A):
        LU, pivots, info = _small.lu(A, True, True)
        return _small.lu_solve(LU, pivots, None), info
    return on_host("inverse", (A,), _and_status(A, A.shape))


inv_ex.op.grad_name = "LinalgInvExBackward0"


def inverse(A, name="linalg.inv"):
    """The inverse, or an error."""
    result, info = inv_ex(A)
    raise_where(name, info, SINGULAR)
    return result


def _solve_grad(g, A, result, needs):
    gb = solution(A.mH, g[0])
    return (-matmul(gb, result.mH) if needs[0] else None), gb


@kernel("_solve_ex", method=False, complex=True, outputs=("result", "info"), vjp={"A, B": _solve_grad})
def solve_ex(A, B):
    if _lanes.suits_lu(A, B):
        return _lanes.solve(A, B)
    if _small.suits(A, B):
        LU, pivots, info = _small.lu(A, True, True)
        return _small.lu_solve(LU, pivots, B), info
    return on_host("solve", (A, B), _and_status(A, _wide(A, B)))


solve_ex.op.grad_name = "LinalgSolveExBackward0"


def solution(A, B):
    """``X`` with ``A X = B``, or an error."""
    result, info = solve_ex(A, B)
    raise_where("torch.linalg.solve", info, UNSOLVED)
    return result


def _triangular_grad(g, A, result, upper, unit, needs):
    gb = solve_triangular(A.mT, g, not upper, unit)
    if not needs[0]:
        return None, gb
    ga = -matmul(gb, result.mT)
    return ga.triu(int(unit)) if upper else ga.tril(-int(unit)), gb


@kernel("_solve_triangular", method=False, complex=True, vjp={"A, B": _triangular_grad})
def solve_triangular(A, B, upper, unit):
    """``X`` with ``A X = B``; one triangle of ``A`` is read. Where it has a zero on its diagonal, the result is not finite."""
    if _small.suits(A, B, True):
        return _small.substitute(A, B, ((False, upper, unit),))
    return on_host("triangular", (A, B), [(_wide(A, B), A.dtype)], upper, unit)[0]


solve_triangular.op.grad_name = "LinalgSolveTriangularBackward0"


def _cholesky_grad(g, L, turned):
    half = 0.5 * matmul(L.mH, g[0])
    upper = L.mH
    left = solve_triangular(upper, half.tril() + half.tril(-1).mH, True, False)
    grad = solve_triangular(upper, left.mH, True, False)
    return grad if turned else grad.mH          # as in PyTorch the same for both halves, though it need not be Hermitian


@kernel("_cholesky_ex", method=False, complex=True, holomorphic=False, outputs=("L", "info"), vjp=dict(A=_cholesky_grad))
def cholesky_ex(A, turned):
    """The lower factor of ``A``, which is the conjugate transpose of what the caller was given where ``turned``."""
    if _small.suits(A):
        return _small.cholesky(A, turned)
    L, info = on_host("cholesky", (A,), _and_status(A, A.shape))
    return L.contiguous() if turned else L, info                # so that the caller's upper factor, too, lies column by column


cholesky_ex.op.grad_name = "LinalgCholeskyExBackward0"


def _cholesky_solve_grad(g, L, upper, result, needs):
    """As in PyTorch that of all of ``L``, of which one half is not read."""
    gb = cholesky_solve(g, L, upper)
    if not needs[1]:
        return gb, None
    common = matmul(gb, result.mH)
    common = common + common.mH
    return gb, -matmul(L, common) if upper else -matmul(common, L)


@kernel("_cholesky_solve", method=False, complex=True, holomorphic=False, vjp={"B, L": _cholesky_solve_grad})
def cholesky_solve(B, L, upper):
    if _small.suits(L, B, True):
        return _small.cholesky_solve(L, B, upper)
    return on_host("cholesky_solve", (L, B), [(_wide(L, B), B.dtype)], upper)[0]


cholesky_solve.op.grad_name = "CholeskySolveBackward0"


@kernel("_det", method=False, complex=True, vjp=dict(A=lambda g, A, result: _det_grad(g, A, result)))
def det(A):
    if _lanes.suits_lu(A):
        return _lanes.determinant(A)
    if _small.suits(A):
        return _small.determinant(*_small.lu(A, True, True)[:2])
    return on_host("det", (A,), [(A.shape[:-2], A.dtype)])[0]


det.op.grad_name = "LinalgDetBackward0"


def _cofactors(A, value):
    """d det(A) / dA: det(A) times the transposed inverse, where that exists."""
    found, info = inv_ex(A)
    return on_host("cofactors", (A,), [(A.shape, A.dtype)])[0] if read(info).any() else value * found.mT


def _det_grad(g, A, result):
    g, value = g.unsqueeze(-1).unsqueeze(-1), result.unsqueeze(-1).unsqueeze(-1)
    if not A._numel:
        return A * 0
    if not state.grad and not A.dtype.is_complex:
        return g * _cofactors(A, value)
    return g * value * inverse(A).mT


def _slogdet_grad(g, A, sign):
    """The real part of tr(A^-1 dA) moves the logarithm, its imaginary part turns a complex sign."""
    turn = (g[0] * sign.conj()).imag * 1j if g[0] is not None and sign.dtype.is_complex else None
    g = g[1] if turn is None else turn if g[1] is None else g[1] + turn
    return None if g is None else g.unsqueeze(-1).unsqueeze(-1) * inverse(A).mH


@kernel("_slogdet", method=False, complex=True, outputs=("sign", "logabsdet"), vjp=dict(A=_slogdet_grad))
def slogdet(A):
    if _lanes.suits_lu(A):
        return _lanes.determinant(A, True)
    if _small.suits(A):
        return _small.determinant(*_small.lu(A, True, True)[:2], True)
    return on_host("slogdet", (A,), [(A.shape[:-2], A.dtype), (A.shape[:-2], A.dtype.to_real())])


slogdet.op.grad_name = "LinalgSlogdetBackward0"


def lu(A, pivot):
    """L and U packed, row exchanges counted from 1, status."""
    if _lanes.suits_lu(A):
        return _lanes.lu(A, pivot)
    if _small.suits(A):
        return _small.lu(A, pivot)
    lead, k = tuple(A.shape[:-2]), min(A.shape[-2:])
    return on_host("lu", (A,), [(A.shape, A.dtype), (lead + (k,), dt.int32), (lead, dt.int32)], pivot)


def refuse_phase(turns, name, what, end):
    """Raise where a loss depends on the phases of complex vectors, which are arbitrary. ``turns``: its slopes along them, in the imaginary parts."""
    if turns.dtype.is_complex and turns._numel and turns.__class__ is Tensor and float(turns.detach().imag.abs().max()) > 1e-2:
        raise RuntimeError(f"{name}: The {what} in the complex case are specified up to multiplication by e^{{i phi}}. The specified loss function depends on this "
                           f"{end}")
