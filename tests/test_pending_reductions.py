"""Reductions of what is pending, made again and again: the same numbers, errors and gradients as the first time."""
import numpy as np
import pytest

import clnn
from clnn.core import native
from clnn.graph import reduce

TIMES = 6
rng = np.random.default_rng(0)
A, B = rng.standard_normal((2, 6, 7, 5)).astype(np.float32)
I, J = rng.integers(0, 4, (2, 30))

CALLS = {
    "sum": (lambda x: x.sum(), lambda x: x.sum()), "sum of rows": (lambda x: x.sum(-1), lambda x: x.sum(-1)),
    "by name": (lambda x: x.sum(dim=1, keepdim=True), lambda x: x.sum(1, keepdims=True)), "mean": (lambda x: x.mean(), lambda x: x.mean()),
    "means": (lambda x: x.mean((0, 2)), lambda x: x.mean((0, 2))), "largest": (lambda x: x.max(), lambda x: x.max()),
    "largest of columns": (lambda x: x.amax(0), lambda x: x.max(0)), "least by name": (lambda x: x.amin(dim=(1, 2)), lambda x: x.min((1, 2))),
    "wide": (lambda x: x.sum(0, dtype=clnn.float32), lambda x: x.sum(0)), "product": (lambda x: x.prod(1), lambda x: x.prod(1)),
    "norm": (lambda x: x.norm(), lambda x: np.sqrt((x * x).sum())), "any": (lambda x: (x > 1).any(), lambda x: (x > 1).any()),
    "all of rows": (lambda x: (x < 2).all(-1), lambda x: (x < 2).all(-1)), "count": (lambda x: (x > 0).sum(), lambda x: (x > 0).sum()),
    "counts": (lambda x: (x > 0).sum(dim=0), lambda x: (x > 0).sum(0)), "share": (lambda x: (x > 0).float().mean(), lambda x: (x > 0).mean()),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kept", [False, True], ids=["given up", "kept"])
def test_made_again(name, kept):
    call, reference = CALLS[name]
    a, b = clnn.tensor(A), clnn.tensor(B)
    for turn in range(TIMES):
        x = a * (turn + 1) - b
        got = call(x)
        want = reference(A * np.float32(turn + 1) - B)
        if not kept:
            del x
        assert np.allclose(got.numpy(), want, 1e-5, 1e-6), turn
        assert tuple(got.shape) == np.shape(want)
        if kept:
            assert np.allclose(x.numpy(), A * (turn + 1) - B, 1e-6, 1e-6)


@pytest.mark.parametrize("shape", [(3, 40000), (40000, 3), (1,), (5, 1), (2, 0, 3)], ids=str)
def test_of_any_size(shape):
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) % 17
    x = clnn.tensor(values)
    for _ in range(TIMES):
        assert (x * 2).sum().item() == values.sum() * 2
        assert np.array_equal((x * 2).sum(0).numpy(), values.sum(0) * 2)


def test_integers_and_doubles():
    i, j, d = clnn.tensor(I), clnn.tensor(J), clnn.tensor(I, dtype=clnn.float64)
    for _ in range(TIMES):
        assert (i * j).sum().item() == (I * J).sum() and (i * j).sum().dtype is clnn.int64
        assert (i == j).sum().item() == (I == J).sum()
        assert abs((d / 7).mean().item() - (I / 7).mean()) < 1e-14


def test_a_reduction_of_a_reduction():
    a = clnn.tensor(A)
    for _ in range(TIMES):
        assert np.isclose((a * 2).sum(1).mean().item(), (A * 2).sum(1).mean(), 1e-5)
        rows = (a + 1).sum(0)
        assert np.allclose((rows * rows).sum(-1).numpy(), ((A + 1).sum(0) ** 2).sum(-1), 1e-5)


def test_operands_that_change():
    """What was pending when it was recorded is reduced, whatever is written to its operands before it is read."""
    a = clnn.tensor(A)
    for turn in range(TIMES):
        before = a.numpy().copy()
        total = (a * 2).sum()
        a.add_(1)
        assert np.isclose(total.item(), (before * 2).sum(), 1e-4)


def test_views_of_what_is_pending():
    a = clnn.tensor(A)
    for _ in range(TIMES):
        x = a * 3
        assert np.allclose(x.view(6, 35).sum(1).numpy(), (A * 3).reshape(6, 35).sum(1), 1e-5, 1e-5)
        assert np.allclose(x.transpose(0, 1).sum(0).numpy(), (A * 3).transpose(1, 0, 2).sum(0), 1e-5, 1e-5)
        assert np.allclose((a * 3)[1].sum(0).numpy(), (A * 3)[1].sum(0), 1e-5, 1e-5)


def test_wrong_arguments_stay_wrong():
    a = clnn.tensor(A)
    for _ in range(TIMES):
        (a * 2).sum(1, True), (a * 2).sum(dim=1, keepdim=True), (a * 2).amax(1)
    for wrong in (lambda: (a * 2).sum(1, 1), lambda: (a * 2).sum(dim=1, keepdim=1)):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(IndexError):
        (a * 2).sum(3)
    with pytest.raises(IndexError):
        (a * 2).sum(dim=-4)


def test_dimensions_in_a_tuple_that_equal_known_ones():
    a = clnn.tensor(A)
    for _ in range(TIMES):
        (a * 2).sum((0, 1)), (a * 2).amax((0, 1)), (a * 2).mean(dim=(1, 2)), a.sum((0, 1))
    for wrong in (lambda: (a * 2).sum((0, 1.0)), lambda: (a * 2).amax((False, 1)), lambda: (a * 2).mean(dim=(True, 2)), lambda: a.sum((0, 1.0))):
        for _ in range(2):
            with pytest.raises(TypeError):
                wrong()
    for good in ((0, True), (np.int64(0), 1), (0, np.int64(1)), [0, np.int32(1)]):
        assert np.allclose((a * 2).sum(good).numpy(), (A * 2).sum((0, 1)), 1e-5, 1e-6)


def test_an_operand_by_name():
    a = clnn.tensor(A)
    for _ in range(TIMES):
        assert np.allclose(clnn.sum(input=a * 2).item(), (A * 2).sum(), 1e-4)
        assert np.allclose(clnn.amax(dim=1, input=a * 2).numpy(), (A * 2).max(1))
        assert np.allclose(clnn.mean(keepdim=True, input=a * 2, dim=0).numpy(), (A * 2).mean(0, keepdims=True), 1e-5, 1e-6)


def test_dimensions_of_numpy_and_nothing_to_reduce():
    a = clnn.tensor(A)
    for _ in range(TIMES):
        assert np.array_equal((a * 2).amax(np.int64(-1)).numpy(), (A * 2).max(-1)) and np.array_equal(a.amin(np.int32(0)).numpy(), A.min(0))
    with pytest.raises(RuntimeError, match="to be specified"):
        clnn.zeros(0).amax([])
    assert np.isnan(clnn.zeros(3, 0, dtype=clnn.complex64).mean(1).numpy().imag).all()


def test_gradients():
    w, b = clnn.tensor(A, requires_grad=True), clnn.tensor(B)
    for _ in range(TIMES):
        loss = ((w - b) ** 2).mean()
        assert loss.requires_grad and type(loss.grad_fn).__name__ == "MeanBackward0"
        loss.backward()
        assert np.allclose(w.grad.numpy(), 2 * (A - B) / A.size, 1e-5, 1e-7)
        w.grad = None
        with clnn.no_grad():
            assert not ((w - b) ** 2).mean().requires_grad
        assert (w * 2).sum(dim=0).requires_grad


def test_many_that_nobody_read():
    """The oldest are computed, the others stay pending; all have their values."""
    a = clnn.tensor(A)
    sums = [(a * k).sum() for k in range(3 * reduce.UNREAD)]
    assert sum(s._storage.node is not None for s in sums) <= reduce.UNREAD
    assert np.allclose([s.item() for s in sums], [A.sum() * k for k in range(3 * reduce.UNREAD)], 1e-4, 1e-4)


@pytest.mark.skipif(native.built is None, reason="without the C forms")
def test_known_ones_need_no_body(monkeypatch):
    a = clnn.tensor(A)
    for _ in range(TIMES):
        (a * 2).sum(1).numpy()
    monkeypatch.setattr(reduce.Call, "run", None)
    monkeypatch.setattr(reduce.Call, "__init__", None)
    assert np.allclose((a * 2).sum(1).numpy(), (A * 2).sum(1), 1e-5, 1e-6)


FACTORS = [0.5, -1.5, 0.0, 1.0, 2, 1, 1e30, float("inf"), True]


@pytest.mark.parametrize("kind", ["add", "sub", "lerp"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64"])
def test_factors_that_vary(kind, dtype):
    """One kind of call has any fraction for a factor; what PyTorch refuses stays refused."""
    torch = pytest.importorskip("torch")
    if dtype == "float64" and not clnn.get_default_device().physical.has_fp64:
        pytest.skip("no double")
    found = []
    for t in (clnn, torch):
        row, results = getattr(t, dtype), []
        a, b = t.tensor((A[0] * 3).tolist()).to(row), t.tensor((B[0] * 3).tolist()).to(row)
        for factor in FACTORS * 3:
            given = dict(weight=factor) if kind == "lerp" else dict(alpha=factor)
            try:
                x, y = getattr(t, kind)(a, b, **given), a.clone()
                getattr(y, kind + "_")(b, **given)
                results.append([np.array(x.tolist()), np.array(y.tolist()), str(x.dtype).split(".")[1]])
            except (RuntimeError, TypeError) as exc:
                results.append(type(exc).__name__)
        found.append(results)
    near = dict(rtol=2e-3, atol=1e-3) if dtype == "float16" else dict(rtol=1e-6, atol=1e-6)       # PyTorch rounds products, too, of what fills no vector
    for mine, theirs in zip(*found):
        if isinstance(theirs, str) or isinstance(mine, str):
            assert mine == theirs
        else:
            assert mine[2] == theirs[2] and all(np.allclose(m, h, **near, equal_nan=True) for m, h in zip(mine[:2], theirs))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", ["addcmul", "addcdiv"])
def test_factors_of_products(name, dtype):
    """PyTorch's bits, with any factor, the same operand twice, and in place."""
    torch = pytest.importorskip("torch")
    for value in (1, 0.001, 0.7, -2.5, 3):
        found = []
        for t in (clnn, torch):
            a, b, c = [t.tensor(v).to(getattr(t, dtype)) for v in (A[0], B[0], A[1])]
            y, z = a.clone(), a.clone()
            getattr(y, name + "_")(b, c, value=value)
            getattr(z, name + "_")(c, c, value=value)
            found.append([r.float().tolist() for r in (getattr(t, name)(a, b, c, value=value), getattr(t, name)(a, a, b, value=value), y, z)])
        assert found[0] == found[1], value


def test_gradients_of_products():
    torch = pytest.importorskip("torch")
    for name in ("addcmul", "addcdiv"):
        grads = []
        for t in (clnn, torch):
            a, b, c = [t.tensor(v.tolist(), requires_grad=True) for v in (A[0], B[0], A[1])]
            y = getattr(t, name)(a, b, c, value=0.3)
            assert type(y.grad_fn).__name__ == name.capitalize() + "Backward0"
            first = t.autograd.grad((y * y).sum(), (a, b, c), create_graph=True)
            (first[1] * first[2]).sum().backward()
            grads.append([g.tolist() for g in (*first, a.grad, b.grad, c.grad)])
        assert all(np.allclose(m, h, 1e-4, 1e-4) for m, h in zip(*grads))
