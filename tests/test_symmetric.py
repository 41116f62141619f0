"""Indefinite symmetric matrices, a few extreme eigenvalues, gradients of LU factors of any shape, and complex forms of logaddexp and its like."""
import numpy as np
import pytest
from scenarios import torch

import clnn

R = np.random.default_rng(0)
FP64 = clnn.get_default_device().physical.has_fp64
WIDE = np.complex128 if FP64 else np.complex64


def _matrix(n, kind, batch=()):
    a = R.standard_normal((*batch, n, n)) + (1j * R.standard_normal((*batch, n, n)) if kind != "real" else 0)
    a = a + (a.conj() if kind == "hermitian" else a).swapaxes(-1, -2)
    a[..., :1, :1] = 0                                            # asks for a block of two
    return a.astype(WIDE if kind != "real" else WIDE(0).real.dtype)


@pytest.mark.parametrize("kind", ["real", "complex", "hermitian"])
@pytest.mark.parametrize("n, batch", [(0, ()), (1, ()), (5, (2,)), (20, ())])
def test_ldl(n, batch, kind):
    a, tol = _matrix(n, kind, batch), 1e-8 if FP64 else 2e-3
    b, flag = R.standard_normal((*batch, n, 2)).astype(a.dtype), kind == "hermitian"
    if n == 1:
        a = a + 1
    mine, theirs = (lib.linalg.ldl_factor_ex(lib.tensor(a), hermitian=flag) for lib in (clnn, torch))
    assert np.array_equal(mine.pivots.numpy(), theirs.pivots.numpy()) and not mine.info.any()
    np.testing.assert_allclose(mine.LD.numpy(), theirs.LD.numpy(), rtol=tol, atol=tol * 10)
    x = clnn.linalg.ldl_solve(*clnn.linalg.ldl_factor(clnn.tensor(a), hermitian=flag), clnn.tensor(b), hermitian=flag)
    np.testing.assert_allclose(a @ x.numpy(), b, rtol=tol, atol=tol * 100)


def test_ldl_of_a_singular_matrix():
    mine, theirs = (lib.linalg.ldl_factor_ex(lib.zeros(3, 3)) for lib in (clnn, torch))
    assert mine.info.item() == theirs.info.item() == 1 and mine.pivots.tolist() == theirs.pivots.tolist()
    for lib in (clnn, torch):
        with pytest.raises(RuntimeError, match="ldl_factor"):
            lib.linalg.ldl_factor(lib.zeros(3, 3))


@pytest.mark.parametrize("options", [dict(k=3), dict(k=2, largest=False), dict(k=2, B=True), dict(k=1, niter=40)], ids=str)
def test_lobpcg(options):
    spectrum = np.arange(1.0, 16.0) ** 1.5
    q = np.linalg.qr(R.standard_normal((15, 15)))[0]
    a, b = (q * spectrum) @ q.T, np.diag(np.linspace(1, 2, 15))
    found = []
    for lib in (clnn, torch):
        lib.manual_seed(0)
        given = {**options, **({"B": lib.tensor(b.astype("float32"))} if "B" in options else {})}
        E, X = lib.lobpcg(lib.tensor(a.astype("float32")), **given)
        found.append((E.numpy(), np.abs(X.numpy())))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-3)
    np.testing.assert_allclose(found[0][1], found[1][1], atol=2e-2)
    with pytest.raises(ValueError, match="3 x the number of requested eigenpairs"):
        clnn.lobpcg(clnn.eye(5), k=2)


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (2, 4, 3)], ids=str)
@pytest.mark.parametrize("kind", ["real", "complex"])
def test_gradients_of_lu_factors(shape, kind):
    a = (R.standard_normal(shape) + (1j * R.standard_normal(shape) if kind == "complex" else 0)).astype(np.complex64 if kind == "complex" else np.float32)
    found = []
    for lib in (clnn, torch):
        x = lib.tensor(a, requires_grad=True)
        _, L, U = lib.linalg.lu(x)
        total = sum((t * lib.arange(1.0, 1.0 + t.numel()).reshape(t.shape).cos()).sum() for t in (L, U, lib.linalg.lu_factor(x).LU))
        (total.real if total.is_complex() else total).backward()
        found.append((L.detach().numpy(), x.grad.resolve_conj().numpy()))
    for mine, theirs in zip(*found):
        np.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=1e-3 * np.abs(theirs).max())


def test_eigenvectors_times_a_phase():
    z = R.standard_normal((3, 3)) + 1j * R.standard_normal((3, 3))
    for lib in (clnn, torch):
        x = lib.tensor(z.astype(np.complex64), requires_grad=True)
        with pytest.raises(RuntimeError, match="specified up to multiplication"):
            lib.linalg.eig(x)[1].real.sum().backward()


Z = (R.standard_normal((4, 4)) + 1j * R.standard_normal((4, 4))).astype(np.complex64)
COMPLEX = {
    "logaddexp": lambda t, x: t.logaddexp(x, 3 * x.mT), "logcumsumexp": lambda t, x: t.logcumsumexp(x, 0), "rows": lambda t, x: x.logcumsumexp(1),
    "silu": lambda t, x: t.nn.functional.silu(x), "softsign": lambda t, x: t.nn.functional.softsign(x),
    "tanhshrink": lambda t, x: t.nn.functional.tanhshrink(x), "rms_norm": lambda t, x: t.nn.functional.rms_norm(x, (4,), x[0]),
}


@pytest.mark.parametrize("name", COMPLEX)
def test_complex(name):
    mine, theirs = COMPLEX[name](clnn, clnn.tensor(Z)), COMPLEX[name](torch, torch.tensor(Z)).resolve_conj()
    np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=2e-5, atol=2e-5)
    if FP64:
        x = clnn.tensor(Z[:2, :2] if name != "rms_norm" else Z, dtype=clnn.complex128, requires_grad=True)
        assert clnn.autograd.gradcheck(lambda v: COMPLEX[name](clnn, v), (x,))


def test_logaddexp_of_complex_infinities():
    inf = float("inf")
    points = np.array([complex(a, b) for a in (0.0, -inf, inf, 1.0) for b in (0.0, 1.0)], np.complex64)
    a, b = (p.ravel() for p in np.meshgrid(points, points))
    mine, theirs = clnn.logaddexp(clnn.tensor(a), clnn.tensor(b)).numpy(), torch.logaddexp(torch.tensor(a), torch.tensor(b)).numpy()
    for part in ("real", "imag"):
        np.testing.assert_allclose(getattr(mine, part), getattr(theirs, part), rtol=1e-5, atol=1e-6)


def test_matrix_exp_in_16_bits():
    x = (R.standard_normal((2, 3, 3)) * 0.2).astype(np.float32)
    for name, tol in (("float16", 2e-3), ("bfloat16", 2e-2)):
        mine, theirs = clnn.tensor(x).to(getattr(clnn, name)).matrix_exp(), torch.tensor(x).matrix_exp()
        assert mine.dtype is getattr(clnn, name)
        np.testing.assert_allclose(mine.float().numpy(), theirs.numpy(), rtol=tol, atol=tol)
