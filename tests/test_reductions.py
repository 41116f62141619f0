"""Reductions, scans and linear algebra against PyTorch, where the derived tests do not reach: long rows, ties, NaN, empty tensors, namedtuples."""
import math
import warnings

import numpy as np
import pytest

import clnn

torch = pytest.importorskip("torch")
R = np.random.default_rng(0)
F4 = np.float32
WHOLE = "max()|min()|amax()|amin((0, 1))|aminmax()|argmax()|argmin()|sum()|mean()|prod()|any()|all()|count_nonzero()|argmax(keepdim=True)".split("|")
DIMS = "max({d})|min({d})|max({d}, True)|argmax({d})|argmin({d}, True)|amax({d})|sum({d})|cummax({d})|cummin({d})|any({d})|all({d}, True)".split("|")


def run(lib, text, *arrays, grad=False):
    tensors = [lib.tensor(a, requires_grad=grad) if grad else (lib.from_numpy(a) if a.shape else lib.tensor(a)) for a in arrays]
    return tensors, eval(text, dict(zip("xyz", tensors), T=lib, L=lib.linalg, inf=math.inf))


def as_arrays(got):
    got = got if isinstance(got, tuple) else (got,)
    return [g.detach().numpy() if hasattr(g, "detach") else np.asarray(g) for g in got]


def check(text, *arrays, rtol=1e-5, atol=1e-6, later=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got, want = run(clnn, text, *arrays)[1], run(torch, text, *arrays)[1]
    if later is not None:
        for g, w in zip(got if isinstance(got, tuple) else (got,), as_arrays(want), strict=True):
            assert g.shape == w.shape and g.dtype.np == w.dtype, (text, g.shape, w.shape, g.dtype, w.dtype)
            later.close(g, w, rtol, atol, text)
        return
    for g, w in zip(as_arrays(got), as_arrays(want), strict=True):
        assert g.shape == w.shape and g.dtype == w.dtype, (text, g.shape, w.shape, g.dtype, w.dtype)
        np.testing.assert_allclose(g, w, rtol=rtol, atol=atol, err_msg=text)


SHAPES = [(3, 4), (5, 300), (300, 5), (2, 70000), (70000, 3), (4, 130, 17)]


@pytest.mark.share(2)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8, np.float16, np.bool_], ids=lambda d: d.__name__)
def test_shapes_and_dtypes(shape, dtype, later):
    if dtype is not np.float32 and max(shape) > 1000:
        pytest.skip("one dtype is enough for long rows")
    a = R.integers(0, 200, shape).astype(dtype) if np.dtype(dtype).kind in "ub" else (R.standard_normal(shape) * 5).astype(dtype)
    for text in WHOLE + [t.format(d=d) for t in DIMS for d in range(len(shape))]:
        if dtype == np.bool_ and "arg" in text or text.startswith(("prod", "mean", "sum")) and dtype in (np.float16, np.int64, np.bool_, np.uint8):
            continue
        if text in ("prod()", "mean()") or text.startswith("sum"):
            check("x." + text, a if text != "prod()" else np.abs(a) ** 0.01, rtol=1e-3, atol=1e-2, later=later)
        else:
            check("x." + text, a, later=later)


@pytest.mark.parametrize("n", [5, 20, 70])
def test_many_short_rows(n, later):
    """Rows that are finished many at a time give what they give alone, to the bit; 1003 leave a part of the last group over."""
    x = R.integers(-9, 9, (1003, n)).astype(F4) / 8
    x[1, 3], x[2, -1], x[3] = np.nan, np.inf, -np.inf
    for text in ("sum(1)", "amax(1)", "std(1)", "max(1)", "min(1, True)", "cumsum(1)", "softmax(1)"):
        check("x." + text, x, atol=1e-5, later=later)
    check("x.cummax(1)", np.nan_to_num(x), later=later)
    many, few = clnn.tensor(x), clnn.tensor(x[100:200])
    for text in ("sum", "amax", "mean"):
        np.testing.assert_array_equal(getattr(many, text)(1).numpy()[100:200], getattr(few, text)(1).numpy())


def test_ties_nan_and_infinities(later):
    a = R.standard_normal((5, 300)).astype(F4)
    a[1, 7] = a[1, 200] = np.nan
    a[2], a[3], a[4] = -np.inf, np.inf, 1.0
    for text in WHOLE[:7] + [t.format(d=d) for t in DIMS[:6] + DIMS[7:9] for d in (0, 1)]:
        check("x." + text, a)
    for text in ("logsumexp(1)", "logsumexp(0)", "norm(dim=1)", "norm(inf, 1)", "nansum()", "nanmean(1)", "logcumsumexp(1)", "sum(1)", "var(1)"):
        check("x." + text, a)
    for text in ("nansum(1, dtype=T.int64)", "any([], True)", "all(())", "double().norm(2, 1, True, T.float64)"):
        check("x." + text, np.where(np.isinf(a), 2, a), later=later)


@pytest.mark.parametrize("text", ["sum()", "sum(1)", "sum(0)", "mean(1)", "prod()", "prod(1)", "any()", "all()", "any(1)", "all(0)", "max(0)",
                                  "min(0)", "amax(0)", "argmax(0)", "var()", "std(1)", "norm()", "norm(1, 1)", "logsumexp(1)", "cumsum(0)",
                                  "cumprod(1)", "cummax(1)", "count_nonzero()", "diff()", "nansum()", "logcumsumexp(0)"])
def test_empty(text):
    check("x." + text, np.zeros((3, 0), F4))
    if "0)" not in text or "max" not in text and "min" not in text:
        check("x." + text.replace("1)", "0)"), np.zeros((0, 3), F4))


@pytest.mark.parametrize("text", ["sum()", "sum(0)", "max()", "max(0)", "argmax()", "argmin(0)", "var()", "std(0)", "mean(-1)", "prod(0)",
                                  "cumsum(0)", "cumprod(0)", "cummax(0)", "logsumexp(0)", "norm()", "any()", "amax()",
                                  "all(0, True)", "count_nonzero()"])
def test_zero_dimensional(text):
    check("x." + text, np.array(3.0, F4))


@pytest.mark.share(2)
@pytest.mark.parametrize("shape, d", [((2, 1500), 1), ((1500, 3), 0), ((1500, 40), 0), ((70000,), 0), ((3, 1025, 2), 1), ((300000,), 0)], ids=str)
def test_long_scans(shape, d, later):
    a = R.uniform(0.5, 1.5, shape)
    for text in ("cumsum", "cummax", "cummin", "logcumsumexp"):
        check(f"x.{text}({d})", a.astype(F4), rtol=1e-4, later=later)
    check(f"x.cumsum({d})", (a * 4).astype(np.int32), later=later)
    check(f"x.cumprod({d})", (a * 4).astype(np.int32), later=later)


on_cpus = pytest.mark.skipif(not clnn.get_default_device().physical.is_cpu, reason="GPUs add in other blocks where memory lies otherwise")


@on_cpus
def test_scans_are_the_same_for_every_layout():
    a = R.standard_normal((1500, 40)).astype(F4)
    x = clnn.from_numpy(a)
    assert clnn.equal(x.cumsum(0), clnn.from_numpy(a.T.copy()).t().cumsum(0))
    assert clnn.equal(x.cumsum(0)[:, 3], x[:, 3].cumsum(0))


@on_cpus
def test_scans_are_the_same_however_many_go_at_once():
    """A scan in one pass and one in parts give the same bits; the last of many columns are not lost."""
    a = R.standard_normal((1500, 1031)).astype(F4)
    x, y = clnn.from_numpy(a), clnn.from_numpy(a.T.copy())
    for reverse in (False, True):
        scan = clnn.ops.scans._cumsum
        assert clnn.equal(scan(x, 0, reverse)[:, 1010:], scan(x[:, 1010:], 0, reverse))
        assert clnn.equal(scan(y, 1, reverse)[1030:], scan(y[1030:], 1, reverse))
        assert clnn.equal(scan(x, 0, reverse).t(), scan(y, 1, reverse))
    for text in ("cummax(0)", "max(0)", "argmin(0)", "half().argmax(0)"):
        check("x." + text, a)


GRADIENTS = """norm()|norm(1, 1)|norm(3, 0)|norm(1.5)|norm(inf, 1)|norm(-inf, 1)|norm(dim=(0, 1), keepdim=True)|logsumexp(0)
logsumexp((0, 1))|cumsum(0)|cumsum(1)|cumprod(0)|cumprod(1)|cummax(0)[0]|cummin(1)[0]|logcumsumexp(1)|diff()|diff(2)|max()|min(1)[0]
max(0, True)[0]|amax()|amax(0)|amin((0, 1))|aminmax()[0]|aminmax(dim=1)[1]|prod()|prod(1)|var()|var(1)|std()|std(1, False)|nansum()|nanmean(1)
var(unbiased=False)|mean(0)|sum((0, 1))""".replace("\n", "|")


@pytest.mark.share(3)
@pytest.mark.parametrize("text", GRADIENTS.split("|"))
def test_first_and_second_derivatives(text):
    a = R.standard_normal((3, 5))
    a[1, 1] = 0
    if "std" in text:
        a[1] = 2.0
    if "am" in text:
        a[0] = a[1]
    results = []
    for lib in (clnn, torch):
        (x,), y = run(lib, "x." + text, a, grad=True)
        g, = lib.autograd.grad(y, x, lib.ones_like(y) * 1.5, create_graph=True)
        h, = lib.autograd.grad(g, x, lib.tensor(a[::-1].copy()), allow_unused=True) if g.requires_grad else (None,)
        h = np.zeros(a.shape) if h is None or lib is torch and h._is_zerotensor() else h.numpy()
        results.append((y.detach().numpy(), g.detach().numpy(), h, y.grad_fn.name()))
    for got, want in zip(*results):
        np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-9) if not isinstance(got, str) else None
    assert results[0][3] == results[1][3]


def test_results_have_names():
    x = clnn.tensor([[1.0, 5.0], [7.0, 2.0]])
    assert x.max(1).values.tolist() == [5.0, 7.0] and x.min(dim=0).indices.tolist() == [0, 1]
    lo, hi = x.aminmax()
    assert (lo.item(), hi.item()) == (1.0, 7.0) and x.cummax(1).values.tolist() == [[1.0, 5.0], [7.0, 7.0]]
    assert repr(x.max(1)) == repr(torch.tensor([[1.0, 5.0], [7.0, 2.0]]).max(1)).replace("torch", "clnn")
    assert clnn.max(x, clnn.tensor(3.0)).tolist() == [[3.0, 5.0], [7.0, 3.0]]
    out = (clnn.empty(0), clnn.empty(0, dtype=clnn.int64))
    clnn.max(x, 1, out=out)
    assert out[0].tolist() == [5.0, 7.0]


ERRORS = ["T.zeros(0).max()", "T.zeros(2, 0).max(1)", "T.zeros(0).argmax()", "T.zeros(2, 0).argmin(1)", "T.zeros(0).amax()", "T.zeros(2, 0).amin(1)",
          "T.zeros(0).aminmax()", "T.zeros(2).long().var()", "T.zeros(3).max(3)", "T.zeros(3).bool().argmax()", "T.zeros(2, 3).cumsum(2)",
          "T.zeros(2, 3).sum((0, 0))", "T.zeros(2).long().mean()", "T.zeros(3).long().norm()", "T.zeros(3).max(T.zeros(3), 1)",
          "T.allclose(T.zeros(2), T.zeros(2).double())", "T.dot(T.ones(3), T.ones(4))", "T.dot(T.ones(3, 1), T.ones(3))",
          "T.outer(T.ones(3, 1), T.ones(3))", "L.inv(T.ones(2, 3))", "L.inv(T.ones(3))", "L.inv(T.eye(2).half())",
          "L.inv(T.eye(2).int())", "L.det(T.ones(2, 3))", "T.trace(T.ones(3))",
          "T.einsum('ij,jk->ik', T.ones(2, 3), T.ones(4, 5))", "T.einsum('ij->k', T.ones(2, 3))", "T.einsum('ijk', T.ones(2, 3))",
          "T.einsum('i,j', T.ones(2))", "T.einsum('i1', T.ones(2, 3))", "T.einsum('ij->ii', T.ones(2, 3))",
          "T.tensordot(T.ones(2, 3), T.ones(4, 5), 1)", "L.cross(T.ones(2, 3), T.ones(2, 4))", "L.matrix_power(T.ones(2, 3), 2)",
          "T.inner(T.ones(2, 3), T.ones(4))", "L.qr(T.ones(3))",
          "L.matrix_norm(T.ones(3))", "L.multi_dot([T.ones(2)])", "L.norm(T.ones(2, 2, 2), 2)", "L.matrix_norm(T.ones(2, 2), 3)"]


@pytest.mark.parametrize("text", ERRORS)
def test_errors_have_pytorchs_type_and_text(text):
    found = []
    if "double" in text and not clnn.get_default_device().physical.has_fp64:
        pytest.skip("no doubles here")
    for lib in (clnn, torch):
        with pytest.raises(Exception) as info:
            run(lib, text)
        found.append((info.type, str(info.value).replace("torch.", "clnn.")))
    assert found[0][0] is found[1][0] and found[0][1][:50] == found[1][1][:50], found


# -- linear algebra -------------------------------------------------------------------------------------------------------------------
def rnd(*shape):
    return R.standard_normal(shape)


SPD = rnd(2, 3, 3)
SPD = SPD @ SPD.swapaxes(-1, -2) + np.eye(3)
A, W, M, V, U, T3 = rnd(2, 3, 3) + 2 * np.eye(3), rnd(4, 3), rnd(3, 4), rnd(3), rnd(3), rnd(2, 3, 4)
LINALG = [("L.inv(x)", A), ("L.det(x)", A), ("L.slogdet(x)[1]", A), ("L.solve(x, y)", A, rnd(2, 3, 2)), ("L.solve(x, y)", A[0], V),
          ("L.cholesky(x)", SPD), ("L.qr(x)[0]", W), ("L.qr(x)[1]", A), ("L.svdvals(x)", W), ("L.svd(x, full_matrices=False)[0].abs()", W),
          ("L.svd(x, full_matrices=False)[2].abs()", M), ("L.svd(x, full_matrices=False)[1]", T3), ("L.eigh(x)[0]", SPD), ("L.eigh(x)[1].abs()", SPD),
          ("L.pinv(x)", W), ("L.matrix_norm(x)", T3), ("L.matrix_norm(x, 'nuc')", T3), ("L.matrix_norm(x, 2)", T3), ("L.matrix_norm(x, 1)", T3),
          ("L.matrix_norm(x, -inf, keepdim=True)", T3), ("L.norm(x)", T3), ("L.norm(x, 2)", W), ("L.norm(x, dim=(0, 1))", W), ("L.cond(x)", A),
          ("L.matrix_rank(x)", np.array([[1.0, 2], [2, 4]])), ("L.lstsq(x, y)[0]", W, rnd(4, 2)), ("L.cross(x, y)", A, A[::-1].copy()),
          ("T.cross(x, y, dim=0)", V, U), ("L.multi_dot([x, y, x])", W, M), ("L.matrix_power(x, 3)", A), ("L.matrix_power(x, -2)", A),
          ("L.vecdot(x, y)", A, A + 1), ("T.dot(x, y)", V, U), ("T.outer(x, y)", V, U), ("T.inner(x, y)", W, M.T.copy()), ("T.kron(x, y)", W, M),
          ("T.tensordot(x, y, 1)", T3, rnd(4, 2)), ("T.tensordot(x, y, ([1, 2], [0, 1]))", T3, rnd(3, 4, 5)), ("T.chain_matmul(x, y)", W, M),
          ("T.cov(x)", W), ("T.corrcoef(x)", W), ("T.logdet(x)", SPD), ("x.inverse()", A), ("L.solve_triangular(x, y, upper=True)", A, rnd(2, 3, 2)),
          ("T.cholesky_solve(y, x)", np.linalg.cholesky(SPD), rnd(2, 3, 2)), ("x.norm('nuc')", W)]
EINSUM = [("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)), ("ii->i", (3, 3)), ("ii", (3, 3)),
          ("ij->", (2, 3)), ("i,j->ij", (2,), (3,)), ("...ij,...jk->...ik", (2, 3, 4), (4, 5)), ("bhqd,bhkd->bhqk", (2, 2, 3, 4), (2, 2, 5, 4)),
          ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)), ("ab,cb", (2, 3), (4, 3)), ("ijk,ijk->i", (2, 3, 4), (2, 3, 4)), ("ij,ij->ij", (2, 3), (1, 3)),
          ("ij,jk->k", (2, 3), (1, 4)), ("...->...", (2, 3)), ("b...d,bd->b...", (2, 3, 4), (2, 4)), ("ijij->ij", (2, 3, 2, 3)), ("->", ()),
          ("i,i,i->", (3,), (3,), (3,)), ("bn,anm,bm->ba", (2, 3), (5, 3, 4), (2, 4)), ("ki,kj->ij", (3, 2), (3, 4)), ("i,->i", (3,), ())]
LINALG += [(f"T.einsum('{eq}', {', '.join('xyz'[:len(ops)])})", *(rnd(*s) for s in ops)) for eq, *ops in EINSUM]


@pytest.mark.share(3)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", LINALG, ids=lambda c: c[0])
def test_linear_algebra(case):
    text, *arrays = case
    results = []
    for lib in (clnn, torch):
        tensors, y = run(lib, text, *[np.asarray(a) for a in arrays], grad=True)
        got = [y]
        if y.requires_grad:
            weight = lib.tensor(np.arange(1.0, y.numel() + 1).reshape(tuple(y.shape)))
            first = lib.autograd.grad((y * y * weight).sum(), tensors, create_graph=True)
            second = lib.autograd.grad(sum((g * g).sum() for g in first), tensors, allow_unused=True)
            got += [*first, *[h for h in second if h is not None]]
        results.append([g.detach().numpy() for g in got])
    for g, w in zip(*results, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-7)


def test_singular_matrices():
    S = clnn.tensor([[1.0, 2.0], [2.0, 4.0]], requires_grad=True)
    clnn.linalg.det(S).backward()
    assert np.allclose(S.grad.numpy(), [[4, -2], [-2, 1]], atol=1e-5)
    for call in (lambda: clnn.linalg.inv(clnn.zeros(2, 2)), lambda: clnn.linalg.cholesky(-clnn.eye(2)),
                 lambda: clnn.linalg.solve(clnn.zeros(2, 2), clnn.ones(2))):
        with pytest.raises(clnn.linalg.LinAlgError):
            call()


def test_factorisations_reproduce_their_input():
    a = clnn.from_numpy(T3)
    Q, Rm = clnn.linalg.qr(a)
    F = clnn.linalg.svd(a, full_matrices=False)
    assert clnn.allclose(Q @ Rm, a) and clnn.allclose(F.U * F.S.unsqueeze(-2) @ F.Vh, a)
    assert clnn.linalg.svd(a).U.shape == (2, 3, 3) and clnn.linalg.qr(a, "complete").R.shape == (2, 3, 4)
    L = clnn.linalg.eigh(clnn.from_numpy(SPD))
    assert clnn.allclose(L.eigenvectors * L.eigenvalues.unsqueeze(-2) @ L.eigenvectors.mT, clnn.from_numpy(SPD))


def test_meta_shapes():
    a = clnn.empty(2, 3, 3, device="meta")
    assert a.max(1).indices.shape == (2, 3) and a.cumsum(0).shape == a.shape and clnn.linalg.inv(a).shape == a.shape
    assert clnn.linalg.svd(a).S.shape == (2, 3) and a.var(0).shape == (3, 3) and clnn.einsum("bij->ji", a).shape == (3, 3)


def test_comparisons():
    x = clnn.tensor([1.0, math.nan, math.inf])
    assert clnn.isclose(x, x).tolist() == [True, False, True] and clnn.isclose(x, x, equal_nan=True).all()
    assert not clnn.allclose(x, x) and clnn.allclose(x, x, equal_nan=True) and not clnn.equal(x, x)
    assert clnn.equal(clnn.zeros(0), clnn.zeros(0)) and not clnn.equal(clnn.zeros(2), clnn.zeros(3))
    assert clnn.isclose(clnn.tensor([1, 100]), clnn.tensor([1, 101]), rtol=0.02).tolist() == [True, True]


@pytest.mark.parametrize("name, kwargs", [
    ("sum", {}), ("prod", dict(dim=1)), ("cumsum", dict(dim=1)), ("cumprod", dict(dim=0)), ("amax", dict(dim=(0,))), ("amin", dict(dim=1, keepdim=True)),
    ("argmax", dict(dim=1)), ("argmin", {}), ("mean", dict(dim=1)), ("median", dict(dim=1)), ("logsumexp", dict(dim=1)), ("norm", dict(ord=3.0, dim=1)),
    ("var", dict(dim=1)), ("std", dict(unbiased=False)), ("softmax", dict(dim=1)), ("log_softmax", dict(dim=1)), ("softmin", dict(dim=0)),
    ("normalize", dict(ord=2.0, dim=1))])
def test_masked(name, kwargs):
    x = np.random.default_rng(8).standard_normal((3, 5)).astype("f")
    mask = np.array([[1, 0, 1, 1, 0], [0, 0, 1, 0, 0], [1, 1, 1, 1, 1]], bool)
    if name in ("argmax", "argmin"):
        kwargs = {"dim": None, **kwargs}
    found = []
    for lib in (torch, clnn):
        a = lib.tensor(x, requires_grad=True)
        masked = __import__(lib.__name__ + ".masked", fromlist=["sum"])
        out = getattr(masked, name)(a, mask=lib.tensor(mask), **kwargs)
        found.append([out.detach().numpy()])
        if out.requires_grad:
            kept = out.masked_fill(~lib.tensor(mask), 0.0) if out.shape == a.shape else out
            found[-1].append(lib.autograd.grad((kept * lib.arange(1.0, 1.0 + out.numel()).reshape(out.shape)).sum(), a)[0].numpy())
    for want, got in zip(*found):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("text", ["(x.exp() * y).sum()", "x.exp().mean(-1)", "(x[:, :3].exp() + y[:3]).amax(0)"])
def test_long_functions_of_short_rows(text):
    """They are computed by a kernel of their own first."""
    check(text, R.normal(0, 1, (900, 10)).astype(F4), R.normal(0, 1, 10).astype(F4), rtol=1e-4)


@pytest.mark.parametrize("p", [1.0, 2.0, 2.5])
def test_distances_of_pairs(p):
    """More rows than a block has, and a rest of columns; rows that are alike."""
    for grad in (False, True):
        outs = []
        for lib in (clnn, torch):
            rng = np.random.default_rng(5)
            x, y = (lib.tensor(rng.normal(0, 1, (n, 7)).astype(F4), requires_grad=True) for n in (11, 38))
            z = lib.cat([y, y[:1]])
            for out in (lib.cdist(x, y, p, compute_mode="donot_use_mm_for_euclid_dist"), lib.cdist(x.expand(2, 11, 7), y[:5], p), lib.pdist(z, p)):
                outs.append(out)
                if grad:
                    outs += lib.autograd.grad((out * out.detach()).sum(), [x, y], allow_unused=True)
        half = len(outs) // 2
        for got, want in zip(outs[:half], outs[half:], strict=True):
            assert (got is None) == (want is None)
            if got is not None:
                np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.share(2)
@pytest.mark.parametrize("size, brief", [(256, False), (256, True), (64, True), (1, False)])
def test_groups_of_a_gpu(monkeypatch, size, brief):
    """Work-items that share an output, in rows and columns, in one part and in several."""
    from clnn._tensor import repeat
    from clnn.graph import reduce, reduce_groups
    device, teams, plain = clnn.get_default_device().physical, [], reduce._kernel
    for name, value in (("is_cpu", False), ("loops", False), ("vectors", False), ("max_work_group", min(size, device.max_work_group))):
        monkeypatch.setattr(device, name, value)
    for owner, name, value in ((repeat, "on", False), *[(reduce, name, {}) for name in ("_kernels", "_plans", "_fusions")],
                               (reduce, "_kernel", lambda device, call, group, geo, *more: teams.append(geo) or plain(device, call, group, geo, *more)),
                               *[(reduce_groups, name, value) for name, value in (("LONG", 64), ("AHEAD", 2), ("FEW", 2)) if brief]):
        monkeypatch.setattr(owner, name, value)
    rng = np.random.default_rng(0)
    for shape, dims in (((1, 40000), 1), ((70, 64), 1), ((300, 10), 1), ((9, 1000), 1), ((300, 40), 0), ((300, 5), 0), ((4, 50, 66), 1), ((4, 6, 49), (0, 2)),
                        ((5, 3, 300), (0, 2)), ((40, 30, 7), (0, 2)), ((6, 5, 4, 30), (0, 2)), ((600, 70), 0)):
        a = rng.standard_normal(shape).astype(np.float32)
        x = clnn.tensor(a)
        np.testing.assert_allclose((x * 2 - 1).sum(dims).numpy(), (a.astype(np.float64) * 2 - 1).sum(dims), 1e-5, 1e-3)
        np.testing.assert_array_equal(x.amax(dims).numpy(), a.max(dims))
        half = x.half()
        np.testing.assert_allclose(half.sum(dims).float().numpy(), half.numpy().astype(np.float64).sum(dims), 1e-3, 0.05)
        np.testing.assert_array_equal((x > 0).sum(dims).numpy(), (a > 0).sum(dims))
    assert size == 1 or any(geo.team for geo in teams) and any(geo.parts > 1 for geo in teams)
    assert size < 256 or brief or any(geo.kept == (70,) and geo.parts == 1 and geo.team[:2] == (8, 32) for geo in teams)     # no second launch


@pytest.fixture
def gpu(monkeypatch):
    """The default device, treated as a GPU with small work-groups."""
    from clnn._tensor import repeat
    device = clnn.get_default_device().physical
    for name, value in (("is_cpu", False), ("loops", False), ("vectors", False), ("max_work_group", min(64, device.max_work_group))):
        monkeypatch.setattr(device, name, value)
    monkeypatch.setattr(repeat, "on", False)
    return device


@pytest.mark.share(2)
@pytest.mark.parametrize("shape, d", [((70, 33), 1), ((700, 16), 0), ((5000,), 0)], ids=str)
def test_scans_of_a_gpu(gpu, monkeypatch, shape, d, later):
    """Several sequences in a group, one in tiles, and one in parts; both directions, ties and NaN."""
    from clnn.ops import _scan_group, scans
    used = []
    monkeypatch.setattr(_scan_group, "LOOPS", 1)
    monkeypatch.setattr(_scan_group, "PARTS", 4)
    monkeypatch.setattr(_scan_group, "run", lambda *args, plain=_scan_group.run: used.append(args[1]) or plain(*args))
    a = R.uniform(0.5, 1.5, shape).astype(F4)
    x, wide = clnn.tensor(a), a.astype(np.float64)
    later.close(scans._cumsum(x, d, True), np.flip(np.flip(wide, d).cumsum(d), d), 3e-6)
    if len(shape) == 2 and d:
        later.close(x.logcumsumexp(d), np.logaddexp.accumulate(wide, d), 3e-6)
        later.equal(clnn.tensor(a.astype(np.int32)).cumsum(d), a.astype(np.int64).cumsum(d))
    b = R.integers(-9, 9, shape).astype(F4)
    b.reshape(-1)[b.size // 2] = np.nan
    check(f"x.cummax({d})", b, later=later)
    assert len(used) in (2, 4, 6)           # three launches for few long sequences


@pytest.mark.share(2)
@pytest.mark.parametrize("shape", [(300, 16), (5, 500), (3, 1100)], ids=str)
def test_rows_of_a_gpu(gpu, shape):
    """Rows that work-items keep, as vectors where they are aligned, and longer ones that are read twice; extremes that leave nothing to divide by."""
    torch = pytest.importorskip("torch")
    a = (R.standard_normal(shape) * 3).astype(F4)
    a[0, ::2] = -np.inf
    a[1, 1] = np.nan if shape[0] % 2 else np.inf
    classes = R.integers(0, shape[1], shape[0])
    classes[:2] = 1
    for values, tolerance in ((clnn.tensor(a), 1e-5), (clnn.cat([clnn.zeros(1), clnn.tensor(a).reshape(-1)])[1:].reshape(shape), 1e-5), (clnn.tensor(a).half(), 2e-3)):
        t = torch.tensor(values.float().numpy())
        for name in ("softmax", "log_softmax"):
            got, want = getattr(clnn, name)(values, -1), getattr(torch, name)(t, -1)
            np.testing.assert_allclose(got.float().numpy(), want.numpy(), tolerance, tolerance)
        got = clnn.nn.functional.cross_entropy(values[2:], clnn.tensor(classes[2:])).item()
        want = torch.nn.functional.cross_entropy(t[2:], torch.tensor(classes[2:])).item()
        np.testing.assert_allclose(got, want, tolerance)
        np.testing.assert_allclose(values[2:].var(1).float().numpy(), t[2:].var(1).numpy(), 5 * tolerance)


@pytest.mark.share(2)
@pytest.mark.parametrize("shape, d", [((1100, 7), 0), ((4, 70, 3), 1), ((9, 500), 1), ((33000,), 0)], ids=str)
def test_places_of_a_gpu(gpu, shape, d, later):
    a = R.integers(-30, 30, shape).astype(F4)
    for name in ("argmax", "argmin"):
        later.equal(getattr(clnn.tensor(a), name)(d), getattr(np, name)(a, d))
    a.reshape(-1)[[a.size // 3, a.size // 2]] = np.nan
    later.equal(clnn.tensor(a).argmax(d), np.argmax(a, d))
    later.equal(clnn.tensor(a).half().max(d)[0].float(), a.max(d))


def test_batch_statistics_of_a_gpu(gpu):
    for shape in ((20, 33, 4, 3), (70, 5)):
        a = (R.standard_normal(shape) + 3).astype(F4)
        mean, var = clnn.zeros(shape[1]), clnn.ones(shape[1])
        dims = (0, *range(2, a.ndim))
        y = clnn.nn.functional.batch_norm(clnn.tensor(a), mean, var, training=True, momentum=1.0)
        np.testing.assert_allclose(mean.numpy(), a.astype(np.float64).mean(dims), 1e-5)
        np.testing.assert_allclose(var.numpy(), a.astype(np.float64).var(dims, ddof=1), 1e-4)
        np.testing.assert_allclose(y.numpy().mean(dims), 0, atol=1e-5)


@pytest.mark.parametrize("n", [8, 9, 40, 1100])
def test_places_in_rows_of_any_number(n):
    """As many rows for a work-item as are no power of two, and rows that are left over: each has its place."""
    rng = np.random.default_rng(n)
    for outer in (1, 17, 48, 50, 63, 113, 250, 1001):
        a = rng.standard_normal((outer, n)).astype(np.float32)
        x = clnn.tensor(a)
        np.testing.assert_array_equal(x.argmax(1).numpy(), a.argmax(1))
        values, at = x.min(1)
        np.testing.assert_array_equal(at.numpy(), a.argmin(1))
        np.testing.assert_array_equal(values.numpy(), a.min(1))
