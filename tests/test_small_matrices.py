"""Many small matrices, which the device works on side by side (``clnn/ops/_lanes.py``), against PyTorch and against LAPACK in double precision."""
import numpy as np
import pytest

import clnn
from clnn.ops import _lanes, _lapack

torch = pytest.importorskip("torch")

CPU = clnn.get_default_device().physical.is_cpu
FP64 = clnn.get_default_device().physical.has_fp64
DTYPES = ["float32", pytest.param("float64", marks=pytest.mark.skipif(not FP64, reason="the device has no float64"))]
SHAPES = [(35, 3, 3), (2, 9, 8, 8), (33, 5, 3), (5, 3, 7), (4, 4), (3, 1, 1), (3, 2, 1), (2, 1, 4), *([(9, 31, 32), (5, 200, 5)] if CPU else [])]


@pytest.fixture
def no_host(monkeypatch):
    """LAPACK is not asked."""
    def call(name, *args):
        raise AssertionError(f"{name} ran on the host")
    monkeypatch.setattr(_lapack, "call", call)


def some(*shape, dtype="float32"):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def close(ours, theirs, eps):
    theirs = theirs.numpy() if isinstance(theirs, torch.Tensor) else theirs
    assert tuple(ours.shape) == theirs.shape
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=0, atol=20 * eps * np.abs(theirs).max(initial=1))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_reflections(shape, dtype, no_host):
    """Signs of Q and R are those of LAPACK, as are the packed reflections."""
    a, eps = some(*shape, dtype=dtype), np.finfo(dtype).eps * max(shape[-2:])
    for mode in ("reduced", "complete", "r"):
        if mode != "complete" or shape[-2] < 100:
            for ours, theirs in zip(clnn.linalg.qr(clnn.tensor(a), mode), torch.linalg.qr(torch.tensor(a), mode), strict=True):
                close(ours, theirs, eps)
    for ours, theirs in zip(clnn.geqrf(clnn.tensor(a)), torch.geqrf(torch.tensor(a)), strict=True):
        close(ours, theirs, eps)
    turned = clnn.linalg.qr(clnn.tensor(np.ascontiguousarray(a.swapaxes(-1, -2))).mT).R
    assert np.array_equal(turned.numpy(), clnn.linalg.qr(clnn.tensor(a)).R.numpy())


@pytest.mark.parametrize("scale", [1e-38, 1e-25, 1e25, 3e37])
def test_reflections_of_any_size(scale, no_host):
    """Squares of the elements would be zero or infinite; a matrix of zeros, one with NaN and one that is triangular lie beside them."""
    a = (some(20, 4, 3) * scale).astype("float32")
    a[3], a[4], a[5, 1, 1] = 0, np.eye(4, 3), np.nan
    (Q, R), (q, r) = (t.linalg.qr(t.tensor(a)) for t in (clnn, torch))
    np.testing.assert_allclose(Q.numpy(), q.numpy(), atol=3e-6)
    np.testing.assert_allclose(R.numpy() / scale, r.numpy() / scale, atol=3e-6 if scale > 1e-30 else 3e-5)


def _kinds(m, n, symmetric):
    """Matrices of many spectra: random, graded, of rank one, of equal and of close values, zero."""
    rng, k = np.random.default_rng(m * n), min(m, n)
    Q, P = (np.linalg.qr(rng.standard_normal((40, size, size)))[0][..., :k] for size in (m, n))
    P = Q if symmetric else P
    spectra = [rng.standard_normal((40, k)), 10.0 ** -np.arange(k) * np.ones((40, 1)), np.eye(k)[:1], np.ones((1, k)), 1 + 1e-6 * rng.standard_normal((40, k))]
    found = [(Q * np.broadcast_to(s, (40, k))[:, None]) @ P.swapaxes(1, 2) for s in spectra]
    return np.concatenate([*found, np.zeros((1, m, n)), np.eye(m, n)[None] * 3, np.ones((1, m, n))])


@pytest.mark.parametrize("n", [1, 2, 3, 8, 16, *([32] if CPU else [])])
@pytest.mark.parametrize("dtype", DTYPES)
def test_eigenvalues(n, dtype, no_host):
    a = _kinds(n, n, True).astype(dtype)
    a += np.triu(np.ones((n, n), dtype), 1)                     # not read
    for scale in (1, 1e-30, 1e30):
        x = (a * scale).astype(dtype)
        want = np.linalg.eigvalsh(x.astype("float64"))
        for got in (clnn.linalg.eigvalsh(clnn.tensor(x)), clnn.linalg.eigvalsh(clnn.tensor(x).mT, "U")):
            assert (np.diff(got.numpy()) >= 0).all()
            assert (np.abs(got.numpy() - want) <= (4 + n) * np.finfo(dtype).eps * np.abs(want).max(-1, keepdims=True)).all()


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 3), (3, 5), (16, 8), (16, 16), *([(32, 32), (3, 300)] if CPU else [])], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_singular_values(shape, dtype, no_host):
    a = _kinds(*shape, False).astype(dtype)
    for scale in (1, 1e-30, 1e30):
        x = (a * scale).astype(dtype)
        want, got = np.linalg.svd(x.astype("float64"), compute_uv=False), clnn.linalg.svdvals(clnn.tensor(x)).numpy()
        assert (np.diff(got) <= 0).all() and (got >= 0).all()
        most = 6 + min(shape) / 4 if dtype == "float32" else 50                     # which LAPACK errs by of close values
        assert (np.abs(got - want) <= most * np.finfo(dtype).eps * np.abs(want).max(-1, keepdims=True)).all()


def test_numbers_from_singular_values(no_host):
    a = some(40, 4, 4)
    a[7] = a[7, :, :1] * a[7, :1]
    for name, args in (("matrix_rank", ()), ("matrix_norm", ("nuc",)), ("matrix_norm", (2,))):
        np.testing.assert_allclose(getattr(clnn.linalg, name)(clnn.tensor(a), *args).numpy(), getattr(torch.linalg, name)(torch.tensor(a), *args).numpy(), rtol=1e-5)
    np.testing.assert_allclose(clnn.linalg.cond(clnn.tensor(a[:7])).numpy(), torch.linalg.cond(torch.tensor(a[:7]).double()).numpy(), rtol=1e-3)


def test_values_of_what_is_not_finite():
    """The error names the first of many matrices."""
    a = some(40, 3, 3)
    a[21, 2, 0], a[30, 1, 1] = np.nan, np.nan
    for name in ("svdvals", "eigvalsh"):
        texts = []
        for t in (clnn, torch):
            with pytest.raises(t.linalg.LinAlgError) as caught:
                getattr(t.linalg, name)(t.tensor(a))
            texts.append(str(caught.value))
        assert texts[0] == texts[1] and "(Batch element 21)" in texts[0]


EQUATIONS = [((35, 3, 3), (35, 3, 3)), ((33, 5, 3), (33, 5, 1)), ((9, 3, 5), (9, 3, 2)), ((1, 4, 3), (9, 4, 2)), ((9, 4, 3), (1, 4, 2)), ((2, 3, 5, 4), (2, 3, 5)),
             ((20, 4, 4), (20, 4, 90)), ((7, 8, 3), (7, 8, 300)), *([((90, 60), (90, 2)), ((2, 60, 60), (2, 60, 50)), ((60, 90), (60, 3)), ((1, 60, 60), (2, 60, 3)),
                                                                  ((300, 250), (300, 3))] if CPU else [])]


@pytest.mark.parametrize("shapes", EQUATIONS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_least_squares(shapes, dtype, no_host):
    a, b = (some(*s, dtype=dtype) for s in shapes)
    k = min(a.shape[-2:])
    a[..., np.arange(k), np.arange(k)] += 3 * np.sqrt(k)
    for driver in (None, "gels"):
        lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2] if len(b.shape) == len(a.shape) else a.shape[:-2])
        right = np.broadcast_to(b, lead + b.shape[len(lead):] if len(b.shape) == len(a.shape) else b.shape)
        want = torch.linalg.lstsq(torch.tensor(np.broadcast_to(a, lead + a.shape[-2:]).copy()), torch.tensor(right.copy()), driver=driver)
        got = clnn.linalg.lstsq(clnn.tensor(a), clnn.tensor(b), driver=driver)
        close(got.solution, want.solution, np.finfo(dtype).eps * k)
        close(got.residuals, want.residuals, np.finfo(dtype).eps * k)
        assert got.rank.numel() == 0 if driver else (got.rank == k).all()


@pytest.mark.parametrize("shape", [(35, 4, 3), (2, 9, 3, 4), (9, 3, 3), *([(100, 60), (2, 60, 100), (60, 60)] if CPU else [])], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_inverses_of_full_rank(shape, dtype, no_host):
    a, k = some(*shape, dtype=dtype), min(shape[-2:])
    a[..., np.arange(k), np.arange(k)] += 3 * np.sqrt(k)
    for rcond in (None, 1e-4):
        close(clnn.linalg.pinv(clnn.tensor(a), rcond), torch.linalg.pinv(torch.tensor(a), rtol=rcond), np.finfo(dtype).eps * k)


@pytest.mark.parametrize("shape", [(35, 4, 3), (35, 3, 4), (9, 3, 3), *([(100, 60), (60, 100)] if CPU else [])], ids=str)
def test_least_squares_of_lower_rank(shape):
    """Of a batch with one matrix of lower rank LAPACK finds the ranks and the solution of least norm."""
    a, b = some(*shape), some(*shape[:-1], 2)
    last = a.reshape(-1, *shape[-2:])[-1]
    if shape[-2] >= shape[-1]:
        last[:, 2] = last[:, 1] - last[:, 0]
    else:
        last[2] = last[1] - last[0]
    wanted = [np.linalg.lstsq(x, y, 1e-5) for x, y in zip(a.reshape(-1, *shape[-2:]), b.reshape(-1, *b.shape[-2:]))]
    got = clnn.linalg.lstsq(clnn.tensor(a), clnn.tensor(b))
    assert got.rank.flatten().tolist() == [w[2] for w in wanted] and wanted[-1][2] == min(shape[-2:]) - 1
    want = np.stack([w[0] for w in wanted]).reshape(got.solution.shape)
    np.testing.assert_allclose(got.solution.numpy(), want, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(clnn.linalg.pinv(clnn.tensor(a), rtol=1e-5).numpy(), np.linalg.pinv(a, 1e-5), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(clnn.linalg.pinv(clnn.tensor(a), 0.3).numpy(), np.linalg.pinv(a, 0.3), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("shape", [(35, 3, 3), (2, 9, 8, 8), (17, 5, 3), (33, 3, 7), (8, 16, 16), (9, 1, 1)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_elimination(shape, dtype, monkeypatch):
    """LU, pivots and status, and what follows for square matrices; as one after another does, but for the last bits."""
    a, eps = some(*shape, dtype=dtype), np.finfo(dtype).eps * 40 * max(shape[-2:])
    k = min(shape[-2:])
    a[1, ..., k // 2] = a[0, ..., 0, 0] = 0
    for ours, theirs in zip(clnn.linalg.lu_factor_ex(clnn.tensor(a)), torch.linalg.lu_factor_ex(torch.tensor(a)), strict=True):
        close(ours, theirs, eps)
    if shape[-1] != shape[-2]:
        return
    close(clnn.linalg.inv_ex(clnn.tensor(a)).info, torch.linalg.inv_ex(torch.tensor(a)).info, eps)
    close(clnn.linalg.det(clnn.tensor(a) * 0.2), torch.linalg.det(torch.tensor(a) * 0.2), eps)
    for ours, theirs in zip(clnn.linalg.slogdet(clnn.tensor(a)), torch.linalg.slogdet(torch.tensor(a))):
        close(ours, theirs, eps)
    a = a + np.eye(k, dtype=dtype) * (3 * k ** 0.5)
    for width in (None, 1, k, 90):
        b = some(*(shape if width == k else shape[:-1] if width is None else (*shape[:-1], width)), dtype=dtype)
        close(clnn.linalg.solve(clnn.tensor(a), clnn.tensor(b)), torch.linalg.solve(torch.tensor(a), torch.tensor(b)), eps)
        close(clnn.linalg.solve(clnn.tensor(a).mT, clnn.tensor(b)), torch.linalg.solve(torch.tensor(a).mT, torch.tensor(b)), eps)
    close(clnn.linalg.inv(clnn.tensor(a)), torch.linalg.inv(torch.tensor(a)), eps)
    many = [clnn.linalg.lu_factor(clnn.tensor(a)).pivots.numpy(), clnn.linalg.solve(clnn.tensor(a), clnn.ones(k, 2, dtype=getattr(clnn, dtype))).numpy()]
    monkeypatch.setattr(_lanes, "_DTYPES", ())
    alone = [clnn.linalg.lu_factor(clnn.tensor(a)).pivots.numpy(), clnn.linalg.solve(clnn.tensor(a), clnn.ones(k, 2, dtype=getattr(clnn, dtype))).numpy()]
    assert np.array_equal(many[0], alone[0])
    np.testing.assert_allclose(many[1], alone[1], rtol=1e-3)


def test_elimination_of_what_is_singular_or_no_number(monkeypatch):
    a = np.stack([np.eye(3, dtype="float32")] * 20)
    a[4, 1, 1], a[5], a[6, 0, 0], a[7, 2, 0] = 0, np.nan, np.nan, np.nan
    for name in ("inv", "lu_factor", "solve"):
        texts = []
        for t in (clnn, torch):
            with pytest.raises(RuntimeError) as caught:
                getattr(t.linalg, name)(t.tensor(a), *([t.ones(20, 3, 1)] if name == "solve" else []))
            texts.append(str(caught.value))
        assert texts[0] == texts[1] and "(Batch element 4)" in texts[0]
    for known in (_lanes._DTYPES, ()):
        monkeypatch.setattr(_lanes, "_DTYPES", known)
        for ours, theirs in zip(clnn.linalg.lu_factor_ex(clnn.tensor(a)), torch.linalg.lu_factor_ex(torch.tensor(a))):
            np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    np.testing.assert_array_equal(clnn.linalg.det(clnn.tensor(a)).numpy(), torch.linalg.det(torch.tensor(a)).numpy())


def test_equal_bits_and_gradients():
    a, b = some(20, 5, 3), some(20, 5, 2)
    for fn in (lambda t, x, y: t.linalg.qr(x).Q, lambda t, x, y: t.linalg.svdvals(x), lambda t, x, y: t.linalg.eigvalsh(x.mT @ x),
               lambda t, x, y: t.linalg.lstsq(x, y).solution):
        x, y = clnn.tensor(a), clnn.tensor(b)
        assert np.array_equal(fn(clnn, x, y).numpy(), fn(clnn, x, y).numpy())
        grads = []
        for t in (clnn, torch):
            x = t.tensor(a, requires_grad=True)
            grads.append(t.autograd.grad(fn(t, x, t.tensor(b)).pow(3).sum(), x)[0].numpy())
        np.testing.assert_allclose(*grads, rtol=2e-3, atol=2e-3 * np.abs(grads[1]).max())


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_matrices_of_middle_size_of_a_gpu(monkeypatch, dtype):
    """A work-group to each: reflections, eigenvalues and singular values, of graded, singular, very small and empty numbers, too; NaN goes to the host."""
    from clnn._tensor import repeat
    from clnn.ops import _groups
    monkeypatch.setattr(repeat, "on", False)
    device = clnn.get_default_device().physical
    if dtype == "float64" and not device.has_fp64:
        pytest.skip("no doubles here")
    monkeypatch.setattr(device, "is_cpu", False)
    eps, rng = np.finfo(dtype).eps, np.random.default_rng(2)
    for m, n in ((17, 17), (32, 32), (40, 23), (11, 30), (33, 33)):
        a = rng.standard_normal((9, m, n)).astype(dtype)
        a[1], a[2], a[3, :, 3] = 0, 1, a[3, :, 3] * 1e-20
        a[4] = np.diag(np.logspace(0, -6, max(m, n)))[:m, :n]
        a[5] *= 1e-25
        x, size = clnn.tensor(a), np.abs(a).max((1, 2))
        if device.local_mem < 60 << 10 and (m, n, dtype) == (33, 33, "float64"):
            continue                                # two such matrices of doubles are more than many GPUs have
        assert _groups.suits(x, min(m, n)) and _groups.suits_either(x)
        want = np.linalg.svd(a.astype("f8"), compute_uv=False)
        assert (np.abs(_groups.singular_values(x).numpy() - want).max(1) <= 20 * eps * want.max(1)).all()
        for mode in ("reduced", "complete", "r"):
            Q, R = (t.numpy() for t in _groups.qr(x, mode))
            np.testing.assert_allclose(R, np.linalg.qr(a.astype("f8"), mode if mode == "complete" else "reduced")[1], atol=1e5 * eps)
            if mode != "r":
                assert np.abs(Q.swapaxes(1, 2) @ Q - np.eye(Q.shape[2])).max() < 40 * eps
                assert (np.abs(Q @ R - a).max((1, 2)) <= 40 * eps * size).all()
        if m == n:
            both = a + a.swapaxes(1, 2)
            want = np.linalg.eigvalsh(both.astype("f8"))
            for uplo in "LU":
                got = _groups.eigenvalues(clnn.tensor(np.tril(both) if uplo == "L" else np.triu(both)), uplo).numpy()
                assert (np.abs(got - want).max(1) <= 40 * eps * np.abs(want).max(1)).all()
    a[7, 2, 3] = np.nan
    assert _groups.singular_values(clnn.tensor(a)) is None and _groups.eigenvalues(clnn.tensor(a), "U") is None
