"""LAPACK for batches of matrices on the host, through the wrappers of SciPy where that is installed, else with NumPy (``_lapack_numpy.py``).

A function takes arrays that it may overwrite, matrices best column by column as LAPACK has them, and gives arrays. SciPy is loaded when a matrix first asks for
it. NumPy, which computes in double precision, loops over a batch in less time, so that it is better for the small matrices of functions that it has.
"""
from __future__ import annotations

import contextlib
import functools
import math
import os

import numpy as np

from ..core.errors import LinAlgError
from . import _lapack_numpy as plain

# Rows or columns up to which NumPy is better, for one matrix and for batches, which it shares among the cores.
_SMALL = dict.fromkeys("inverse solve cholesky det slogdet".split(), (16, 16))
_SMALL |= dict.fromkeys("qr geqrf svd eig eigvals".split(), (32, 48)) | dict.fromkeys("svdvals eigh eigvalsh".split(), (32, 24))
_ALONE = 512            # rows or columns up to which OpenBLAS is slower with several threads, but for products and triangles, where it is from _FEW on
_FEW = 128
_NONE = 32              # up to here it uses none
_TALL = 8               # times as many rows as columns from which on least squares begin with a factor, whose columns need no exchanges
_PRODUCTS = frozenset("inverse solve lu_solve triangular cholesky_solve cholesky_inverse".split())

# Read when OpenBLAS is loaded: its threads wait awake for 2 to this many cycles, by default for 30 ms, in which they keep a CPU driver's workers from their cores.
_SLEEP = "OPENBLAS_THREAD_TIMEOUT"


@functools.lru_cache(maxsize=None)
def scipy():
    """SciPy's modules of LAPACK and BLAS routines; None where it is not installed."""
    own = _SLEEP not in os.environ
    if own:
        os.environ[_SLEEP] = "20"
    try:
        from scipy.linalg import blas, lapack
    except ImportError:
        return None
    finally:
        if own:
            del os.environ[_SLEEP]
    return lapack, blas


@functools.lru_cache(maxsize=None)
def _one_thread():
    """Makes contexts in which SciPy's BLAS keeps to the calling thread, as far as ``threadpoolctl`` is installed."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return contextlib.nullcontext
    found = ThreadpoolController().select(user_api="blas")
    own = [c.filepath for c in found.lib_controllers if "scipy.libs" in c.filepath]
    return functools.partial((found.select(filepath=own) if own else found).limit, limits=1)


def call(name, arrays, options=()):
    """What a function of this module, or its counterpart, makes of arrays: an array or a tuple."""
    most, own = (min if name == "lstsq" else max)(arrays[0].shape[-2:]), globals().get(name)
    small = _SMALL.get(name, (0, 0))[arrays[0].ndim > 2]
    with np.errstate(all="ignore"):
        if own is None or most <= small or arrays[0].dtype.char not in "fdFD" or not all([a.size for a in arrays]) or scipy() is None:
            return getattr(plain, name)(*arrays, *options)
        with _one_thread()() if _NONE < most <= (_FEW if name in _PRODUCTS else _ALONE) else contextlib.nullcontext():
            return own(*arrays, *options)


@functools.lru_cache(maxsize=None)
def _routine(name, kind):
    """A routine for a dtype; of two names the second is that of complex numbers."""
    real, _, other = name.partition("/")
    name = dict(f="s", d="d", F="c", D="z")[kind] + (other if other and kind in "FD" else real)
    return next(getattr(module, name) for module in scipy() if hasattr(module, name))


def _space(*sizes):
    """Elements of memory for blocks of 64 columns, and what products with reflections ask for besides (``TSIZE`` of xORMQR)."""
    return 64 * sum(sizes) + 4160


def _columns(a, fresh=False):
    """``a`` column by column, copied unless it lies so (``fresh``: in any case)."""
    turned = a.swapaxes(-1, -2)
    return (np.array(turned, order="C") if fresh or not turned.flags.c_contiguous else turned).swapaxes(-1, -2)


def _each(a):
    """The matrices of a batch that lies column by column: views."""
    turned = a.swapaxes(-1, -2)
    return [m.T for m in turned.reshape(math.prod(a.shape[:-2]), *turned.shape[-2:])]


def _rows(a):
    return list(a.reshape(math.prod(a.shape[:-1]), a.shape[-1]))


def _stack(matrices, lead):
    """A batch of matrices, column by column."""
    if len(matrices) == 1:
        return matrices[0].reshape(lead + matrices[0].shape, order="F") if lead else matrices[0]
    turned = np.empty((len(matrices), *matrices[0].shape[::-1]), matrices[0].dtype)
    for own, m in zip(turned, matrices):
        own[...] = m.T
    return turned.reshape(lead + turned.shape[1:]).swapaxes(-1, -2)


def _shared(own, lead):
    """The number of the matrix of a batch ``own`` for each of the batch ``lead`` that it is broadcast to."""
    return np.broadcast_to(np.arange(math.prod(own)).reshape(own), lead).reshape(-1).tolist()


def _spread(b, lead):
    """A batch that is broadcast to ``lead``, column by column, to be overwritten."""
    return _columns(b) if b.shape[:-2] == lead else _columns(np.broadcast_to(b, lead + b.shape[-2:]), True)


def _put(target, got):
    """What a routine made, which is where it is wanted unless it had to work in a copy."""
    if got is not target:
        target[...] = got


def _status(info, text, lead, kind=LinAlgError):
    """An error that names the first matrix that a routine failed for."""
    for i, code in enumerate(info):
        if code:
            raise kind(text.replace("%s", f"(Batch element {i}): " if lead else "").replace("%d", str(code)))


# -- LU -----------------------------------------------------------------------------------------------------------------------------------------
def lu(a, pivot=True):
    """L and U packed, row exchanges counted from 1, and 0 or the number of the first zero on the diagonal of U."""
    if not pivot:
        return plain.lu(a, pivot)
    a, getrf = _columns(a), _routine("getrf", a.dtype.char)
    lead = a.shape[:-2]
    pivots, info = np.empty((*lead, min(a.shape[-2:])), np.int32), np.empty(math.prod(lead), np.int32)
    for i, (m, exchanges) in enumerate(zip(_each(a), _rows(pivots))):
        got, exchanges[:], info[i] = getrf(m, overwrite_a=1)
        _put(m, got)
    return a, pivots + np.int32(1), info.reshape(lead)


def lu_solve(packed, pivots, b, adjoint=False):
    lead = np.broadcast_shapes(packed.shape[:-2], b.shape[:-2])
    x, getrs = _spread(b, lead), _routine("getrs", b.dtype.char)
    matrices, exchanges = _each(_columns(packed)), _rows(pivots - np.int32(1))
    for i, m in zip(_shared(packed.shape[:-2], lead), _each(x)):
        _put(m, getrs(matrices[i], exchanges[i], m, trans=2 * adjoint, overwrite_b=1)[0])
    return x


def solve(a, b):
    packed, pivots, info = lu(a)
    return lu_solve(packed, pivots, b), info


def inverse(a):
    packed, pivots, info = lu(a)
    getri = _routine("getri", a.dtype.char)
    for m, exchanges, bad in zip(_each(packed), _rows(pivots - np.int32(1)), info.reshape(-1)):
        _put(m, math.nan if bad else getri(m, exchanges, lwork=_space(len(m)), overwrite_lu=1)[0])
    return packed, info


def _diagonals(a):
    """The diagonals of U and by how many exchanges their products are the determinants."""
    packed, pivots, _ = lu(a)
    odd = (pivots != np.arange(1, pivots.shape[-1] + 1)).sum(-1) % 2
    return np.diagonal(packed, 0, -2, -1), (1 - 2 * odd).astype(a.real.dtype)


def det(a):
    diagonal, sign = _diagonals(a)
    return np.prod(diagonal, -1) * sign


def slogdet(a):
    diagonal, sign = _diagonals(a)
    return np.prod(np.sign(diagonal), -1) * sign, np.log(np.abs(diagonal)).sum(-1)


# -- triangles and Cholesky ---------------------------------------------------------------------------------------------------------------------
def triangular(a, b, upper, unit):
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    x, trsm, matrices = _spread(b, lead), _routine("trsm", a.dtype.char), _each(_columns(a))
    for i, m in zip(_shared(a.shape[:-2], lead), _each(x)):
        _put(m, trsm(1.0, matrices[i], m, lower=not upper, diag=unit, overwrite_b=1))
    return x


def cholesky(a):
    """The lower factor, and 0 or the order of the first leading minor that is not positive definite (where the factor is NaN)."""
    a, potrf = _columns(a), _routine("potrf", a.dtype.char)
    info = np.empty(math.prod(a.shape[:-2]), np.int32)
    for i, m in enumerate(_each(a)):
        got, info[i] = potrf(m, lower=1, overwrite_a=1)
        _put(m, math.nan if info[i] else got)
    return a, info.reshape(a.shape[:-2])


def cholesky_solve(factor, b, upper):
    lead = np.broadcast_shapes(factor.shape[:-2], b.shape[:-2])
    x, potrs, matrices = _spread(b, lead), _routine("potrs", b.dtype.char), _each(_columns(factor))
    for i, m in zip(_shared(factor.shape[:-2], lead), _each(x)):
        _put(m, potrs(matrices[i], m, lower=not upper, overwrite_b=1)[0])
    return x


def cholesky_inverse(factor, upper):
    """The lower triangle of the inverse; what stands above it is of no use."""
    if factor.dtype.kind == "c":                # of which xPOTRI takes diagonals for real
        return cholesky_solve(factor, np.broadcast_to(np.eye(factor.shape[-1], dtype=factor.dtype), factor.shape), upper)
    factor, potri = _columns(factor), _routine("potri", factor.dtype.char)
    for m in _each(factor):
        _put(m, potri(m, lower=not upper, overwrite_c=1)[0])
    return factor.swapaxes(-1, -2) if upper else factor


# -- reflections --------------------------------------------------------------------------------------------------------------------------------
def geqrf(a):
    a, routine = _columns(a), _routine("geqrf", a.dtype.char)
    m, n = a.shape[-2:]
    tau = np.empty((*a.shape[:-2], min(m, n)), a.dtype)
    for own, factors in zip(_each(a), _rows(tau)):
        got, factors[:] = routine(own, lwork=_space(m, n), overwrite_a=1)[:2]
        _put(own, got)
    return a, tau


def householder(a, tau):
    a, routine = _columns(a), _routine("orgqr/ungqr", a.dtype.char)
    for m, factors in zip(_each(a), _rows(np.ascontiguousarray(tau))):
        _put(m, routine(m, factors, lwork=_space(*m.shape), overwrite_a=1)[0])
    return a


def ormqr(a, tau, c, left, transpose):
    c, routine = _columns(c), _routine("ormqr/unmqr", a.dtype.char)
    turn = "N" if not transpose else "C" if a.dtype.kind == "c" else "T"
    for m, factors, own in zip(_each(_columns(a)), _rows(np.ascontiguousarray(tau)), _each(c)):
        _put(own, routine("L" if left else "R", turn, m[:, :len(factors)], factors, own, lwork=_space(*own.shape), overwrite_c=1)[0])
    return c


def qr(a, mode):
    packed, tau = geqrf(a)
    m, n = packed.shape[-2:]
    rows = m if mode == "complete" else min(m, n)
    r = _columns(packed[..., :rows, :], True)
    for j in range(min(n, rows)):
        r[..., j + 1:, j] = 0
    if mode == "r":
        return r
    if m > n and mode == "complete":
        wide = np.zeros((*packed.shape[:-2], m, m), packed.dtype).swapaxes(-1, -2)
        wide[..., :n] = packed
        return householder(wide, tau), r
    return householder(_columns(packed[..., :rows]), tau), r


# -- singular values and eigenvalues ------------------------------------------------------------------------------------------------------------
def _gesdd(a, vectors, full):
    """Per matrix (U, S, Vh); without ``vectors`` only S is of use."""
    plain.finite(a, plain.NO_SVD)
    kind, (m, n) = a.dtype.char, a.shape[-2:]
    room = int(_routine("gesdd_lwork", kind)(m, n, compute_uv=vectors, full_matrices=full)[0].real * (1 + 1e-6)) + 1
    found = [_routine("gesdd", kind)(each, compute_uv=vectors, full_matrices=full, lwork=room, overwrite_a=1) for each in _each(_columns(a))]
    _status([f[3] for f in found], plain.NO_SVD, a.shape[:-2])
    return found


def svd(a, full):
    found, lead = _gesdd(a, True, full), a.shape[:-2]
    return _stack([f[0] for f in found], lead), np.stack([f[1] for f in found]).reshape(*lead, -1), _stack([f[2] for f in found], lead)


def svdvals(a):
    return np.stack([f[1] for f in _gesdd(a, False, False)]).reshape(*a.shape[:-2], -1)


def _syevd(a, uplo, vectors):
    plain.finite(a, plain.NO_EIGH)
    a, routine, n = _columns(a), _routine("syevd/heevd", a.dtype.char), a.shape[-1]
    values, info = np.empty(a.shape[:-1], a.real.dtype), []
    room = (2 if a.dtype.kind == "f" else 1) * n * n * vectors + _space(n)
    for m, own in zip(_each(a), _rows(values)):
        own[:], got, code = routine(m, compute_v=vectors, lower=uplo.upper() == "L", lwork=room, overwrite_a=1)
        info.append(code)
        _put(m, got)
    _status(info, plain.NO_EIGH, a.shape[:-2])
    return values, a


def eigh(a, uplo):
    return _syevd(a, uplo, 1)


def eigvalsh(a, uplo):
    return _syevd(a, uplo, 0)[0]


def eig(a, vectors=True):
    plain.finite(a, plain.NO_EIG, RuntimeError)
    routine, lead, n = _routine("geev", a.dtype.char), a.shape[:-2], a.shape[-1]
    found = [routine(m, compute_vl=0, compute_vr=vectors, lwork=_space(n), overwrite_a=1) for m in _each(_columns(a))]
    _status([f[-1] for f in found], plain.NO_CONVERGENCE, lead)
    if a.dtype.kind == "c":
        values, right = [f[0] for f in found], [f[2] for f in found]
    else:
        values = [f[0] + 1j * f[1] for f in found]
        right = [_in_pairs(f[1], f[3]) for f in found] if vectors else []
    values = np.stack(values).reshape(*lead, n)
    return (values, _stack(right, lead)) if vectors else values


def eigvals(a):
    return eig(a, False)


def _in_pairs(imaginary, right):
    """Eigenvectors of a real matrix: two columns hold the real and imaginary part of those of a pair of values."""
    vectors = right.astype(np.result_type(right, np.complex64))
    first = np.flatnonzero(imaginary > 0)
    vectors[:, first] += 1j * right[:, first + 1]
    vectors[:, first + 1] = vectors[:, first].conj()
    return vectors


# -- least squares and indefinite matrices --------------------------------------------------------------------------------------------------------
def _triangle_of(a, b):
    """R of ``a`` = Q R, with ``b`` multiplied by the adjoint of Q in place: the same least squares from as many rows as columns."""
    kind, n, k = a.dtype.char, a.shape[1], b.shape[1]
    packed, tau = _routine("geqrf", kind)(a, lwork=_space(n), overwrite_a=1)[:2]
    turn = "C" if a.dtype.kind == "c" else "T"
    _put(b, _routine("ormqr/unmqr", kind)("L", turn, packed, tau, b, lwork=_space(k, n), overwrite_c=1)[0])
    return np.asfortranarray(np.triu(packed[:n]))


def lstsq(a, b, rcond, driver):
    """(solutions, ranks, singular values), the latter two zeros where a driver has none."""
    (m, n), k, lead, own = a.shape[-2:], b.shape[-1], np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[:-2]
    kind, real = a.dtype.char, a.real.dtype
    cond = float(np.finfo(real).eps) * max(m, n) if rcond is None else rcond
    routine, options = _routine(driver, kind), dict(lwork=_space(m, n, k), overwrite_a=1, overwrite_b=1)
    if driver == "gelsd":                       # (work, [rwork of complex numbers,] iwork, info)
        work, *more, _ = _routine("gelsd_lwork", kind)(m, n, k, cond)
        names = ("size_rwork", "size_iwork") if a.dtype.kind == "c" else ("size_iwork",)
        options |= dict(zip(names, [int(v) + 1 for v in more])) | dict(lwork=int(work.real * (1 + 1e-6)) + 1)
    x = np.zeros((*lead, k, max(m, n)), a.dtype).swapaxes(-1, -2)
    x[..., :m, :] = b
    ranks, values, info = np.zeros(math.prod(own), np.int64), np.zeros((math.prod(own), min(m, n)), real), []
    matrices, tall = _each(_columns(a)), driver == "gelsy" and m >= _TALL * n
    for i, right in zip(_shared(own, lead), _each(x)):
        left = matrices[i].copy(order="F")
        if tall:
            left, right = _triangle_of(left, right), right[:n]
            _, got, _, ranks[i], code = routine(left, right.copy(order="F"), np.zeros((n, 1), np.int32), cond, **options)
        elif driver == "gelsy":
            _, got, _, ranks[i], code = routine(left, right, np.zeros((n, 1), np.int32), cond, **options)
        elif driver == "gelsd":
            got, values[i], ranks[i], code = routine(left, right, cond=cond, **options)
        elif driver == "gelss":
            _, got, values[i], ranks[i], _, code = routine(left, right, cond=cond, **options)
        else:
            _, got, code = routine(left, right, **options)
            ranks[i] = min(m, n)
        _put(right, got)
        info.append(code)
    _status(info, plain.NO_LSTSQ, lead)
    return _columns(x[..., :n, :]), ranks.reshape(own), values.reshape(*own, -1)


def ldl(a, hermitian):
    """L and the blocks of D packed, row exchanges as LAPACK has them, and 0 or the number of the first zero block."""
    a, routine = _columns(a), _routine("sytrf/hetrf" if hermitian else "sytrf", a.dtype.char)
    lead, n = a.shape[:-2], a.shape[-1]
    pivots, info = np.empty((*lead, n), np.int32), np.empty(math.prod(lead), np.int32)
    for i, (m, exchanges) in enumerate(zip(_each(a), _rows(pivots))):
        got, exchanges[:], info[i] = routine(m, lower=1, lwork=_space(n), overwrite_a=1)
        _put(m, np.tril(got))
    return a, pivots, info.reshape(lead)


def ldl_solve(packed, pivots, b, hermitian):
    lead = np.broadcast_shapes(packed.shape[:-2], b.shape[:-2])
    x, routine = _spread(b, lead), _routine("sytrs/hetrs" if hermitian else "sytrs", b.dtype.char)
    matrices, exchanges = _each(_columns(packed)), _rows(np.ascontiguousarray(pivots))
    for i, m in zip(_shared(packed.shape[:-2], lead), _each(x)):
        _put(m, routine(matrices[i], exchanges[i], m, lower=1, overwrite_b=1)[0])
    return x
