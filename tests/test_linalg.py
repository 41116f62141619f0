"""Linear algebra beyond the derived tests, against PyTorch: factorisations, status-returning forms, tensor equations, gradients."""
import numpy as np
import pytest

import clnn
from clnn.ops import _lanes, _lapack

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def one_thread():
    """PyTorch's threads that factor matrices of a batch were seen to wait for each other for ever, late in long runs (inside MKL's ``sgetrf``)."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


R = np.random.default_rng(0)
A = R.standard_normal((2, 4, 4)).astype("float32")
S = (A @ A.swapaxes(-1, -2) + np.eye(4)).astype("float32")
B = R.standard_normal((2, 4, 2)).astype("float32")
WIDE, TALL = R.standard_normal((3, 5)).astype("float32"), R.standard_normal((5, 3)).astype("float32")
FP64 = clnn.get_default_device().physical.has_fp64
BROKEN = np.stack([np.eye(4), np.diag([1.0, 2, 0, 1])]).astype("float32")


def both(fn, *arrays, grad=True):
    """Results, and gradients of their weighted sum, by both libraries."""
    found = []
    for lib in (torch, clnn):
        args = [lib.tensor(a, requires_grad=grad) for a in arrays]
        out = fn(lib, *args)
        outs = list(out) if isinstance(out, (tuple, list)) else [out]
        if grad:
            total = sum((o * lib.arange(1.0, 1.0 + o.numel()).reshape(o.shape).cos()).sum() for o in outs if o.requires_grad)
            outs += lib.autograd.grad(total, args)
        found.append([o.detach().numpy() for o in outs])
    return found


def check(fn, *arrays, grad=True, rtol=2e-3, atol=2e-4):
    want, got = both(fn, *arrays, grad=grad)
    assert len(want) == len(got)
    for w, g in zip(want, got):
        assert g.shape == w.shape and g.dtype == w.dtype
        np.testing.assert_allclose(g, w, rtol=rtol, atol=atol)


DIFFERENTIABLE = {
    "lu_factor": lambda lib, a: lib.linalg.lu_factor(a).LU, "lu": lambda lib, a: tuple(lib.linalg.lu(a))[1:],
    "matrix_exp": lambda lib, a: lib.linalg.matrix_exp(a * 0.3), "inv_ex": lambda lib, a: lib.linalg.inv_ex(a).inverse,
    "cholesky_ex": lambda lib, a: lib.linalg.cholesky_ex(a @ a.mT + lib.eye(4)).L,
    "cholesky_inverse": lambda lib, a: lib.cholesky_inverse(lib.linalg.cholesky(a @ a.mT + lib.eye(4))),
    "tensorinv": lambda lib, a: lib.linalg.tensorinv(a[0].reshape(2, 2, 4), ind=2),
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_with_gradients(name):
    check(DIFFERENTIABLE[name], A)


HERMITIAN = np.concatenate([S, np.eye(4, dtype="float32")[None]])


def test_gradients_of_factors():
    check(lambda lib, a: lib.linalg.pinv(a), np.eye(3, dtype="float32"))            # no singular value is unique
    for a in (WIDE, TALL):
        check(lambda lib, a: lib.linalg.pinv(a), a)
    check(lambda lib, a: lib.linalg.pinv(a, hermitian=True), HERMITIAN)
    check(lambda lib, a: lib.cholesky_inverse(a), S)                                # a gradient of the triangle that is not read, too
    check(lambda lib, a: tuple(lib.linalg.qr(a)), WIDE)
    check(lambda lib, a: lib.linalg.qr(a, "complete").R, WIDE)
    check(lambda lib, a: lib.linalg.svd(a).S, WIDE)
    for lib in (torch, clnn):
        with pytest.raises(RuntimeError, match="not differentiable when mode='complete' and nrows > ncols"):
            lib.linalg.qr(lib.tensor(TALL, requires_grad=True), "complete").R.sum().backward()


def test_solvers():
    check(lambda lib, a, b: lib.linalg.solve_ex(a, b).result, A, B)
    check(lambda lib, a, b: lib.linalg.lu_solve(*lib.linalg.lu_factor(a), b), A, B)
    for left, adjoint in ((True, True), (False, False), (False, True)):
        check(lambda lib, a, b: lib.linalg.lu_solve(*lib.linalg.lu_factor(a), b if left else b.mT, left=left, adjoint=adjoint), A, B, grad=False)
    check(lambda lib, a, b: lib.lu_solve(b, *lib.linalg.lu_factor(a)), A, B, grad=False)
    check(lambda lib, a, b: lib.linalg.tensorsolve(a.reshape(2, 2, 4), b.reshape(2, 2)), A[0], A[1, 0])
    check(lambda lib, a, b: lib.triangular_solve(b, a, upper=False, transpose=True), A, B, grad=False)


@pytest.mark.parametrize("matrix", [A, WIDE, TALL, BROKEN], ids=["square", "wide", "tall", "singular"])
def test_lu(matrix):
    check(lambda lib, a: (*lib.linalg.lu(a), *lib.linalg.lu_factor_ex(a), *lib.lu_unpack(*lib.lu(a))), matrix, grad=False)


def test_status():
    check(lambda lib, a: (lib.linalg.inv_ex(a).info, lib.linalg.cholesky_ex(a).info, lib.linalg.cholesky_ex(-a).info), BROKEN, grad=False)
    for fn in (clnn.linalg.inv_ex, clnn.linalg.cholesky_ex, clnn.linalg.lu_factor_ex):
        with pytest.raises(RuntimeError, match=r"\(Batch element 1\)"):
            fn(clnn.tensor(BROKEN), check_errors=True)
    with pytest.raises(RuntimeError, match=r"U\[3,3\] is zero"):
        clnn.linalg.lu_factor(clnn.tensor(BROKEN))
    assert clnn.linalg.inv_ex(clnn.tensor(BROKEN)).inverse[1].isnan().all()


@pytest.mark.share(2)
@pytest.mark.parametrize("n", [19, 70, 140])          # vectors and a part; on a GPU the host's; in global memory, or the host's where columns are few
def test_larger_matrices(n):
    """Values and gradients, batches that broadcast, matrices that stand as columns, float64."""
    a = (R.standard_normal((2, n, n)) + n ** 0.5 * 3 * np.eye(n)).astype("float32")
    b = R.standard_normal((3, 1, n, 5)).astype("float32")
    check(lambda lib, a, b: (lib.linalg.solve(a, b), lib.linalg.solve(a[0], b.mT, left=False), lib.linalg.solve_triangular(a.mT, b[0], upper=False)), a, b)
    check(lambda lib, a: (lib.linalg.inv(a.mT), lib.linalg.slogdet(a).logabsdet, lib.linalg.lu(a).L), a.astype("float64") if FP64 else a)

    def factors(lib, a, b):
        L = lib.linalg.cholesky(a @ a.mT)
        return L, lib.cholesky_solve(b[:, 0], L[0]), lib.cholesky_inverse(L.mT, upper=True)
    check(factors, a, b)


def texts(lib, m):
    found, many = [], lib.tensor(m)
    calls = [lib.linalg.inv, lambda a: lib.linalg.solve(a, a), lib.linalg.cholesky, lib.linalg.lu_factor, lib.cholesky_inverse]
    calls += [lambda a, f=f: f(a, check_errors=True) for f in (lib.linalg.inv_ex, lib.linalg.cholesky_ex, lib.linalg.lu_factor_ex)]
    for call in calls + [lambda a: lib.linalg.solve_ex(a, a, check_errors=True)]:
        for a in (many, many[1]):
            with pytest.raises(RuntimeError) as caught:
                call(a)
            found.append((type(caught.value).__name__, isinstance(caught.value, lib.linalg.LinAlgError), str(caught.value)))
    return found


@pytest.mark.parametrize("n", [4, 130])
def test_singular_matrices(n):
    """Errors in PyTorch's words, and what needs none: zero determinants, triangles with a zero on the diagonal."""
    m = np.stack([np.eye(n), np.eye(n)]).astype("float32")
    m[1, 2, 2] = 0
    assert texts(clnn, m) == texts(torch, m)
    check(lambda lib, a: (lib.linalg.det(a), *lib.linalg.slogdet(a), lib.linalg.solve_ex(a, a).info), m, grad=False)
    assert not clnn.linalg.solve_triangular(clnn.tensor(m), clnn.tensor(m), upper=True)[1].isfinite().all()
    a = clnn.tensor(BROKEN, requires_grad=True)
    clnn.linalg.det(a).sum().backward()
    np.testing.assert_allclose(a.grad[1].numpy(), np.diag([0.0, 0, 2, 0]), atol=1e-5)          # right where PyTorch gives zeros


def test_one_triangle_is_read():
    full = S + np.triu(np.ones((4, 4), "float32"), 1)
    for upper in (False, True):
        check(lambda lib, a, upper=upper: (lib.linalg.cholesky(a, upper=upper), lib.linalg.cholesky_ex(a, upper=upper).L), full, grad=False)


def test_reflections():
    check(lambda lib, a: lib.geqrf(a), TALL, grad=False)
    check(lambda lib, a: lib.linalg.householder_product(*lib.geqrf(a)), TALL, grad=False)
    check(lambda lib, a: lib.ormqr(*lib.geqrf(a), lib.eye(5), transpose=True), TALL, grad=False)


def test_vander_and_gamma():
    check(lambda lib, a: lib.linalg.vander(a, N=3), TALL)
    check(lambda lib, a: lib.mvlgamma(a.abs() + 2, 3), TALL)
    check(lambda lib, a: a.abs().igamma(a.abs() + 0.3), TALL, grad=False)


def test_low_rank():
    clnn.manual_seed(0)
    low = TALL @ WIDE                                                # of rank 3
    U, S, V = clnn.svd_lowrank(clnn.tensor(low), q=3)
    np.testing.assert_allclose((U * S @ V.mT).numpy(), low, atol=1e-4)
    U, S, V = clnn.pca_lowrank(clnn.tensor(low), q=3)
    np.testing.assert_allclose(S.numpy(), np.linalg.svd(low - low.mean(0), compute_uv=False)[:3], rtol=1e-3, atol=1e-4)
    with pytest.raises(ValueError, match="non-negative integer"):
        clnn.pca_lowrank(clnn.tensor(low), q=9)


@pytest.mark.parametrize("size, numbers", [((5, 5), "complex"), ((2, 4, 4), "real")], ids=str)
def test_eigenvalues_of_general_matrices(size, numbers):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(3)
    a = rng.standard_normal(size) + (1j * rng.standard_normal(size) if numbers == "complex" else 0)
    ours, theirs = (lib.tensor(a.astype(np.complex64 if numbers == "complex" else np.float32), requires_grad=True) for lib in (clnn, torch))
    for x, lib in ((ours, clnn), (theirs, torch)):
        values, vectors = lib.linalg.eig(x)
        made = (vectors * values.exp().unsqueeze(-2)) @ lib.linalg.inv(vectors)        # exp(x): no vector's factor matters
        (made.abs().sum() + (values * values).real.sum()).backward()
    np.testing.assert_allclose(np.sort_complex(clnn.linalg.eigvals(ours).detach().numpy()), np.sort_complex(torch.linalg.eigvals(theirs).detach().numpy()),
                               rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=1e-3, atol=2e-3 * float(theirs.grad.abs().max()))


def test_what_is_absent_says_so():
    for name, family in (("sparse_bsr_tensor", "sparse"), ("hsmm", "sparse")):
        assert not hasattr(clnn, name)
        with pytest.raises(NotImplementedError, match=family):
            getattr(clnn, name)
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'to_sparse_bsr': clnn does not implement sparse"):
        clnn.ones(2).to_sparse_bsr()
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'nothing'"):
        clnn.ones(2).nothing


@pytest.mark.parametrize("name", ["svdvals", "eigvalsh"])
def test_values_without_vectors(name):
    """Values are found alone where nothing else is asked for, and with vectors for gradients: the same, also through functions of functions."""
    a = np.random.default_rng(0).standard_normal((2, 4, 4)).astype("f")
    a, fn = a + a.swapaxes(1, 2), getattr(clnn.linalg, name)
    alone, tracked = fn(clnn.tensor(a)), fn(clnn.tensor(a, requires_grad=True))
    np.testing.assert_allclose(alone.numpy(), tracked.detach().numpy(), atol=1e-5)
    slope = clnn.tensor(a, requires_grad=True)
    fn(slope).pow(3).sum().backward()
    got = clnn.func.grad(lambda x: fn(x).pow(3).sum())(clnn.tensor(a))
    np.testing.assert_allclose(got.numpy(), slope.grad.numpy(), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(clnn.func.jvp(fn, (clnn.tensor(a),), (clnn.tensor(a),))[1].numpy(), alone.numpy(), atol=1e-4)     # of degree one


@pytest.mark.parametrize("shape", [(100, 60), (60, 100), (90, 90), (2, 3, 40, 40), (70, 3)])
def test_lu_factors_of_larger_matrices(shape):
    """Beyond the kernel for small ones: the same row exchanges as LAPACK's."""
    a = np.random.default_rng(0).standard_normal(shape)
    ours, theirs = (t.linalg.lu_factor_ex(t.tensor(a)) for t in (clnn, torch))
    assert ours.pivots.tolist() == theirs.pivots.tolist() and ours.info.tolist() == theirs.info.tolist()
    np.testing.assert_allclose(ours.LU.numpy(), theirs.LU.numpy(), atol=1e-9)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int64"])
def test_least_squares_refuse_other_numbers(dtype):
    for t in (clnn, torch):
        a = t.ones(3, 2).to(getattr(t, dtype))
        with pytest.raises(RuntimeError, match="doesn't handle types other than float and double"):
            t.linalg.lstsq(a, a)


@pytest.mark.parametrize("shapes", [((4, 2), (4, 3)), ((2, 4, 2), (2, 4, 1)), ((2, 1, 4, 2), (1, 3, 4, 1)), ((3, 5), (3,)), ((2, 3, 3), (2, 3)), ((0, 3), (0, 2))])
@pytest.mark.parametrize("driver", [None, "gels", "gelsd"])
def test_least_squares_and_their_gradients(shapes, driver):
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s) for s in shapes)
    found = []
    for t in (clnn, torch):
        A, B = (t.tensor(v, requires_grad=True) for v in (a, b))
        got = t.linalg.lstsq(A, B, driver=driver)
        grads = t.autograd.grad((got.solution ** 2).sum(), (A, B)) if got.solution.numel() else ()
        found.append([v.detach().numpy() for v in (*got, *grads)] + [[got.solution.requires_grad, got.rank.requires_grad, got.singular_values.requires_grad]])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-8)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("shapes", [((40, 4), (40, 1)), ((3, 40, 5), (3, 40, 2)), ((2, 1, 90, 3), (1, 3, 90, 2)), ((100, 1), (100,))])
def test_least_squares_of_tall_matrices(shapes, dtype, monkeypatch):
    """A factor without exchanges comes first there; a column that follows from two others leaves the rank and the solution that PyTorch has."""
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(s).astype(dtype) for s in shapes)
    if dtype == "float32" and a.shape[-1] > 4:                 # of complex ones PyTorch gave a rank of 3
        a[..., 4] = a[..., 1] + a[..., 2]
    monkeypatch.setattr(_lanes, "_DTYPES", ())                 # of kernels: LAPACK is asked
    used, first = [], _lapack._triangle_of
    monkeypatch.setattr(_lapack, "_triangle_of", lambda *args: used.append(1) or first(*args))
    got, want = (t.linalg.lstsq(t.tensor(a), t.tensor(b)) for t in (clnn, torch))
    assert got.rank.tolist() == want.rank.tolist() and (used or _lapack.scipy() is None)
    np.testing.assert_allclose(got.solution.numpy(), want.solution.numpy(), atol=3e-6)


def _results(a, b, s):
    """What ``clnn`` makes of a matrix, right sides and a Hermitian positive-definite matrix on the host; vectors in products that no sign changes."""
    t, lib = clnn, clnn.linalg
    a, b, s = (t.tensor(v) for v in (a, b, s))
    m, n = a.shape[-2:]
    k = min(m, n)
    found = [*lib.lu_factor_ex(a), *lib.lu(a), *lib.qr(a), *lib.qr(a, "complete"), lib.qr(a, "r").R, *t.geqrf(a), lib.svdvals(a), lib.pinv(a), lib.lstsq(a, b).solution,
             t.ormqr(*t.geqrf(a), b, transpose=True), lib.lstsq(a, b, driver="gelsd").singular_values, lib.lstsq(a, b).rank, lib.matrix_rank(a)]
    for full in (False, True):
        U, S, Vh = lib.svd(a, full)
        found += [U[..., :k] * S.unsqueeze(-2) @ Vh[..., :k, :], U.mH @ U, Vh @ Vh.mH]
    if m >= n:
        found.append(lib.householder_product(*t.geqrf(a)))
    if m == n:
        L, LU, pivots = lib.cholesky(s), *lib.lu_factor(a)
        values, vectors = lib.eig(a)
        found += [lib.inv(a), lib.det(a / n ** 0.5), *lib.slogdet(a), lib.solve(a, b), L, t.cholesky_solve(b, L), t.cholesky_inverse(L), lib.eigvalsh(s), lib.eigh(s)[0],
                  lib.lu_solve(LU, pivots, b), lib.lu_solve(LU, pivots, b, adjoint=True), lib.lu_solve(LU, pivots, b.mT, left=False), lib.eigvals(a).abs().sort()[0],
                  lib.solve_triangular(a, b, upper=True), lib.solve_triangular(L.mH, b.mT, upper=True, left=False), vectors * values.unsqueeze(-2) @ lib.inv(vectors),
                  *lib.ldl_factor_ex(s - t.eye(n) * 2, hermitian=True), lib.ldl_solve(*lib.ldl_factor(s - t.eye(n) * 2), b)]
    return [v.detach().numpy() for v in found]


@pytest.mark.share(2)
@pytest.mark.parametrize("shape", [(70, 70), (2, 37, 50), (50, 37), (2, 2, 20, 20), (0, 3, 3), (2, 0, 3), (1, 1)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "complex64", "float64"])
def test_with_and_without_scipy(shape, dtype, monkeypatch):
    """LAPACK through SciPy and what stands in for it give the same results, signs and row exchanges."""
    if dtype == "float64" and not FP64:
        pytest.skip("the device has no float64")
    pytest.importorskip("scipy")
    rng = np.random.default_rng(0)
    monkeypatch.setattr(_lanes, "_DTYPES", ())

    def some(*shape):
        return (rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype == "complex64" else 0)).astype(dtype)
    a, b = some(*shape), some(*shape[:-1], 3)
    n = shape[-1]
    a[..., np.arange(min(shape[-2:])), np.arange(min(shape[-2:]))] += 3 * n ** 0.5
    s = some(*shape[:-2], n, n)
    s = (s @ s.conj().swapaxes(-1, -2) + 3 * np.eye(n)).astype(dtype)
    if dtype == "complex64":
        monkeypatch.setattr(_lapack, "_SMALL", {})
    first = _results(a, b, s)
    monkeypatch.setattr(_lapack, "scipy", lambda: None)
    for one, other in zip(first, _results(a, b, s), strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype
        scale = np.abs(one).max(initial=1e-3)
        np.testing.assert_allclose(one, other, atol=scale * (1e-9 if dtype == "float64" else 2e-4), rtol=0)


def test_without_scipy_there_is_numpy(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "scipy.linalg", None)          # an import of which fails
    _lapack.scipy.cache_clear()
    try:
        assert _lapack.scipy() is None
        np.testing.assert_allclose(np.abs(clnn.linalg.qr(clnn.tensor(np.eye(40, dtype="f") * 2)).R.numpy()), np.eye(40) * 2, atol=1e-5)
    finally:
        _lapack.scipy.cache_clear()


@pytest.mark.parametrize("name", ["svd", "svdvals", "eigvalsh", "eig"])
@pytest.mark.parametrize("n", [3, 60])
def test_values_that_are_not_finite(name, n):
    m = np.stack([np.eye(n), np.eye(n)]).astype("f")
    m[1, 1, 1] = np.nan
    for a in (m, m[1]):
        found = []
        for t in (clnn, torch):
            with pytest.raises(RuntimeError) as caught:
                getattr(t.linalg, name)(t.tensor(a))
            found.append((isinstance(caught.value, t.linalg.LinAlgError), str(caught.value)))
        assert found[0] == found[1]


def test_least_squares_of_low_rank():
    """``gels`` takes the rank for full, and says so; the others give the solution of least norm."""
    a = np.zeros((2, 3, 3), "f")
    a[:, 0, 0] = 1
    a[0] = np.eye(3)
    for driver in ("gelsy", "gelsd", "gelss"):
        ours, theirs = (tuple(t.linalg.lstsq(t.tensor(a), t.ones(2, 3, 1), driver=driver)) for t in (clnn, torch))
        for x, y in zip(ours, theirs):
            np.testing.assert_allclose(x.numpy(), y.numpy(), atol=1e-6)


@pytest.mark.share(2)
@pytest.mark.parametrize("n", [3, 4, 5, 15, 16, 17, 33, 100, 128, 129, 200, 255, 256, 257])
def test_factors_of_each_size(n):
    """Four columns at a time, what is left of them one by one, and from some size on in other memory."""
    a = R.standard_normal((2, n, n)).astype("f")
    s = a @ a.swapaxes(1, 2) / n + np.eye(n, dtype="f")
    A, S = clnn.tensor(a), clnn.tensor(s)
    P, L, U = clnn.linalg.lu(A)
    np.testing.assert_allclose((P @ L @ U).numpy(), a, atol=3e-5 * n ** 0.5)
    assert L.abs().max() <= 1 and not L.triu(1).any() and not U.tril(-1).any()
    sign, size = clnn.linalg.slogdet(A)
    np.testing.assert_allclose(size.numpy(), np.linalg.slogdet(a.astype("d"))[1], rtol=1e-3)
    assert sign.tolist() == np.linalg.slogdet(a)[0].tolist()
    np.testing.assert_allclose(clnn.linalg.cholesky(S).numpy(), np.linalg.cholesky(s.astype("d")), atol=3e-5)
    for columns in (1, 3, 40):
        b = R.standard_normal((2, n, columns)).astype("f")
        np.testing.assert_allclose(clnn.linalg.solve(S, clnn.tensor(b)).numpy(), np.linalg.solve(s.astype("d"), b), atol=1e-3)
        np.testing.assert_allclose(clnn.cholesky_solve(clnn.tensor(b), clnn.linalg.cholesky(S)).numpy(), np.linalg.solve(s.astype("d"), b), atol=1e-3)
        low = clnn.linalg.cholesky(S)
        np.testing.assert_allclose((low @ clnn.linalg.solve_triangular(low, clnn.tensor(b), upper=False)).numpy(), b, atol=1e-3)
    s[1, n // 2, n // 2] = -1
    assert clnn.linalg.cholesky_ex(clnn.tensor(s)).info.tolist() == [0, n // 2 + 1]
    a[0, :, n // 2] = 0
    assert clnn.linalg.lu_factor_ex(clnn.tensor(a)).info.tolist() == [n // 2 + 1, 0]


@pytest.mark.parametrize("n, columns", [(300, 1), (511, 3), (700, 16), (1024, 1), (1025, 1), (300, 17)])
def test_tall_triangles(n, columns):
    low = (np.tril(R.standard_normal((n, n))) / n + np.eye(n)).astype("f")
    b = R.standard_normal((n, columns)).astype("f")
    A, B = clnn.tensor(low), clnn.tensor(b)
    for t, a, upper in ((A, low, False), (A.mT, low.T, True), (clnn.tensor(low.T.copy()), low.T, True), (clnn.tensor(low.T.copy()).mT, low, False)):
        np.testing.assert_allclose(clnn.linalg.solve_triangular(t, B, upper=upper).numpy(), np.linalg.solve(a.astype("d"), b), atol=1e-4)
    np.testing.assert_allclose(clnn.cholesky_solve(B, A).numpy(), np.linalg.solve((low @ low.T).astype("d"), b), atol=1e-3)
    LU, pivots = clnn.linalg.lu_factor(A.flip(0))
    np.testing.assert_allclose(clnn.linalg.lu_solve(LU, pivots, B).numpy(), np.linalg.solve(low[::-1].astype("d"), b), atol=1e-3)
    np.testing.assert_allclose(clnn.linalg.lu_solve(LU, pivots, B, adjoint=True).numpy(), np.linalg.solve(low[::-1].T.astype("d"), b), atol=1e-3)


def _in_blocks(t, a, s, b):
    LU, pivots = t.linalg.lu_factor(a)
    low = t.linalg.cholesky(s)
    return {"LU": LU, "pivots": pivots, "wide": t.linalg.lu_factor(a[..., :140, :])[0], "long": t.linalg.lu_factor(a.mT[..., :140])[0], "P": t.linalg.lu(a)[0],
            "lower": low, "upper": t.linalg.cholesky(s.mT, upper=True), "inverse": t.linalg.inv(s), "of all": t.linalg.inv(a), "det": t.linalg.slogdet(a)[1],
            "solve": t.linalg.solve(s, b), "one for all": t.linalg.solve(s[0], b), "right": t.linalg.solve(s, b.mT, left=False),
            "adjoint": t.linalg.lu_solve(*t.linalg.lu_factor(s), b, adjoint=True), "down": t.linalg.solve_triangular(low, b, upper=False),
            "up": t.linalg.solve_triangular(low.mT, b, upper=True), "unit": t.linalg.solve_triangular(low / 9, b, upper=False, unitriangular=True),
            "both": t.cholesky_solve(b, low), "turned": t.cholesky_solve(b, low.mT, upper=True), "of factor": t.cholesky_inverse(low)}


@pytest.mark.parametrize("n, dtype", [(217, "f"), (141, "d")])
def test_matrices_in_blocks_of_columns(n, dtype):
    """The same numbers and strides as LAPACK's, from blocks of columns that two cores work on."""
    a = R.standard_normal((2, n, n)).astype(dtype)
    s = a @ a.swapaxes(1, 2) / n + np.eye(n, dtype=dtype)
    b = R.standard_normal((2, n, 150)).astype(dtype)
    ours, again, theirs = (_in_blocks(t, *(t.tensor(v) for v in (a, s, b))) for t in (clnn, clnn, torch))
    for name, x in ours.items():
        y = theirs[name]
        assert x.stride() == y.stride() and x.equal(again[name]), name
        np.testing.assert_allclose(x.numpy(), y.numpy(), atol=2e-3 * max(1, float(y.abs().max())) if name in ("LU", "long", "wide", "of all") else 1e-3, err_msg=name)


@pytest.mark.parametrize("shape", [(2, 67, 67), (131, 70), (70, 131)])
@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
def test_reflections_in_blocks(shape, mode):
    """LAPACK's signs and strides; nothing where there is nothing to reflect, and lengths whose squares are no numbers."""
    a = R.standard_normal(shape).astype("f")
    a[..., 3] = 0
    for ours, theirs in zip(clnn.linalg.qr(clnn.tensor(a), mode), torch.linalg.qr(torch.tensor(a), mode)):
        assert ours.shape == theirs.shape and ours.stride() == theirs.stride()
    ours, theirs = clnn.linalg.qr(clnn.tensor(a), mode), torch.linalg.qr(torch.tensor(a), mode)
    np.testing.assert_allclose(ours.R.numpy(), theirs.R.numpy(), atol=1e-3)
    if mode != "r":
        np.testing.assert_allclose((ours.Q @ ours.R).numpy(), a, atol=1e-4)
        np.testing.assert_allclose((ours.Q.mT @ ours.Q).numpy(), np.broadcast_to(np.eye(ours.Q.shape[-1]), ours.Q.mT.shape[:-1] + ours.Q.shape[-1:]), atol=1e-5)
    large = clnn.linalg.qr(clnn.tensor(a * np.float32(1e30)), mode).R
    np.testing.assert_allclose((large / 1e30).numpy(), theirs.R.numpy(), atol=1e-3)


def test_small_results_lie_as_in_pytorch():
    a = R.standard_normal((2, 5, 5)).astype("f") + 5 * np.eye(5, dtype="f")
    s = a[0] @ a[0].T
    calls = (lambda t, a, s: t.linalg.inv(a), lambda t, a, s: t.linalg.lu_factor(a), lambda t, a, s: t.linalg.lu(a), lambda t, a, s: t.linalg.solve(a, a),
             lambda t, a, s: t.linalg.solve(a, a, left=False), lambda t, a, s: t.linalg.solve(s, s[:, :1]), lambda t, a, s: t.linalg.cholesky(s),
             lambda t, a, s: t.linalg.cholesky(s, upper=True), lambda t, a, s: t.linalg.solve_triangular(a.mT, a, upper=True),
             lambda t, a, s: t.cholesky_solve(a, a), lambda t, a, s: t.cholesky_inverse(a), lambda t, a, s: t.linalg.tensorinv(s, 1),
             lambda t, a, s: t.linalg.lu_solve(*t.linalg.lu_factor(a), a, adjoint=True))
    for fn in calls:
        ours, theirs = (fn(t, t.tensor(a), t.tensor(s)) for t in (clnn, torch))
        for x, y in zip(*((v,) if not isinstance(v, tuple) else v for v in (ours, theirs))):
            assert x.stride() == y.stride()
            np.testing.assert_allclose(x.numpy(), y.numpy(), atol=1e-4)


def test_large_results_lie_as_in_pytorch():
    """Column by column, as LAPACK makes them, and equal where operands are transposed, parts or conjugates of others."""
    a = R.standard_normal((2, 150, 140)).astype("f")
    for fn in (lambda t, a: t.linalg.qr(a), lambda t, a: t.linalg.svd(a), lambda t, a: t.linalg.lu_factor(a)):
        for ours, theirs in zip(fn(clnn, clnn.tensor(a)), fn(torch, torch.tensor(a))):
            assert ours.stride() == theirs.stride()
    z = clnn.tensor((a[0, :140] + 1j * a[1, :140]).astype("complex64"))
    for fn in (lambda v: clnn.linalg.svdvals(v), lambda v: clnn.linalg.inv(v), lambda v: clnn.linalg.qr(v).R):
        np.testing.assert_allclose(fn(z.mH).numpy(), fn(clnn.tensor(z.numpy().conj().T.copy())).numpy(), atol=1e-3)
        np.testing.assert_allclose(fn(z[::2, 1::2]).numpy(), fn(clnn.tensor(z.numpy()[::2, 1::2].copy())).numpy(), atol=1e-3)


@pytest.mark.parametrize("name, at", [("eigh", 1), ("eig", 1), ("svd", 0), ("svd", 2)])
def test_losses_of_phases_are_refused(name, at):
    """The phases of complex vectors are arbitrary: a loss of them has no gradient, one of their sizes has PyTorch's."""
    torch = pytest.importorskip("torch")
    a = np.random.default_rng(0).standard_normal((2, 4, 4)).astype("float32")
    a = (a[0] + a[0].T + 1j * (a[1] - a[1].T)).astype("complex64")

    def outcomes(t):
        A = t.tensor(a, requires_grad=True)
        yield t.autograd.grad((getattr(t.linalg, name)(A)[at].abs() * t.arange(4.0)).sum(), A)[0].numpy()
        with pytest.raises(RuntimeError) as caught:
            t.autograd.grad(getattr(t.linalg, name)(A)[at].real.sum(), A)
        yield str(caught.value)
    (got, said), (want, heard) = outcomes(clnn), outcomes(torch)
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)
    assert said == heard
