"""Calls on small tensors, whose known kinds go shorter ways: they give what the first call did, and what is pending stays so."""
import numpy as np
import pytest

import clnn
from clnn.graph.reduce import UNREAD
from clnn.nn import functional as F

X = [[-2.0, -0.5, 0.0], [0.3, 1.5, float("nan")]]


def calls(x, y, mask):
    return [x.clamp(-1, 1), x.clamp(min=-0.5), x.clamp(max=y), clnn.lerp(x, y, 0.3), clnn.lerp(x, y, y), x.nan_to_num(), x.nan_to_num(nan=2.0),
            clnn.where(mask, x, y), clnn.where(mask, x, 1.0), clnn.where(mask, x, y[0]), x.masked_fill(mask, -3.0), x.square(), x.round(decimals=1),
            F.hardtanh(x), F.relu6(x), F.elu(x, alpha=0.5), F.selu(x), F.softplus(x), F.threshold(x, 0.1, 2.0), F.hardshrink(x)]


def shown(results):
    return [(str(r.tolist()), r.dtype, r.stride(), r.requires_grad, r.grad_fn and r.grad_fn.name()) for r in results]


def test_known_kinds_give_the_same():
    for rows in (X, [r[:1] for r in X]):
        for track in (False, True, False):
            x, y, mask = clnn.tensor(rows, requires_grad=track), clnn.tensor(rows).cos(), clnn.tensor(rows) > 0
            first = calls(x, y, mask)
            want, slopes = shown(first), track and gradients(first, x)
            for _ in range(3):
                again = calls(x, y, mask)
                assert all(r._storage.node is not None for r in again)              # still to be fused with what reads it
                assert shown(again) == want
                assert not track or gradients(again, x) == slopes


def gradients(results, x):
    slope, = clnn.autograd.grad(sum(r.nan_to_num().sum() for r in results), x, create_graph=True)
    return str(slope.tolist()), str(clnn.autograd.grad(slope.nan_to_num().sum(), x)[0].tolist())


def test_a_kind_is_told_by_all_that_matters():
    x = clnn.tensor([-0.0, 0.5, 2.0])
    for _ in range(4):
        assert x.clamp(0, 1).dtype is clnn.float32 and x.long().clamp(0, 1).dtype is clnn.int64
        assert str(F.threshold(x, 0.1, -0.0).tolist()) == "[-0.0, 0.5, 2.0]"
        assert str(F.threshold(x, 0.1, 0.0).tolist()) == "[0.0, 0.5, 2.0]"
        y = x.clone()
        assert F.hardtanh(y, inplace=True) is y and y.tolist() == [0.0, 0.5, 1.0]
        assert y.clamp_(0.25, 0.75) is y and y.tolist() == [0.25, 0.5, 0.75]
        out = clnn.empty(3)
        assert clnn.clamp(x, 0.25, 0.75, out=out) is out and out.tolist() == [0.25, 0.5, 0.75]
        assert x.masked_fill(x > 1, clnn.tensor(float(_))).tolist() == [0.0, 0.5, float(_)]
        with clnn.autocast("cpu"):
            assert x.clamp(-1, 1).dtype is clnn.float32


def test_constants_that_are_shared_are_nobodys_to_write():
    eye = clnn.eye(3)
    eye[0, 1] = 5.0
    eye.view(-1).mul_(2)
    assert eye.tolist() == [[2, 10, 0], [0, 2, 0], [0, 0, 2]] and clnn.eye(3).tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    stack = clnn.arange(12.0).reshape(2, 2, 3).transpose(1, 2).clone()
    for _ in range(3):
        lower = stack.tril()
        assert lower.stride() == (6, 2, 1) and lower.tolist() == [[[0, 0], [1, 4], [2, 5]], [[6, 0], [7, 10], [8, 11]]]


def test_layouts_of_results():
    x = clnn.arange(24.0).reshape(2, 3, 4)
    turned, other = x.transpose(1, 2), x.permute(2, 1, 0)
    for _ in range(2):
        assert (turned + 1).stride() == (1 + turned).stride() == turned.relu().stride() == turned.stride() == (12, 1, 4)
        assert (turned + x.reshape(2, 4, 3)).stride() == (12, 1, 4) and (x.reshape(2, 4, 3) + turned).stride() == (12, 3, 1)
        assert (other * other[:1]).stride() == (1, 4, 12) and (other[:1] * other).stride() == (1, 4, 12)
        assert clnn.where(turned > 3, turned, 0.0).tolist() == [[[v if v > 3 else 0.0 for v in row] for row in m] for m in turned.tolist()]
        assert (turned - x.reshape(2, 4, 3)).tolist()[0][1] == [1.0 - 3.0, 5.0 - 4.0, 9.0 - 5.0]


def test_reductions_of_pending_values_stay_pending():
    x, y = clnn.arange(12.0).reshape(3, 4), clnn.arange(12.0).reshape(3, 4) % 5
    for _ in range(4):
        total, rows, mean, least, some = (x * y).sum(), (x * y).sum(1), ((x - y) ** 2).mean(), (x - y).amin(0), (x > 10).any()
        assert all(r._storage.node is not None for r in (total, rows, mean, least))
        assert total.item() == 121 and rows.tolist() == [14, 36, 71] and least.tolist() == [0, 0, 0, 0] and some.item()
        assert clnn.allclose(mean, clnn.tensor(325 / 12))
    w = x.clone().requires_grad_()
    for _ in range(4):
        slope, = clnn.autograd.grad(((w * y) ** 2).sum(), w, create_graph=True)
        assert slope.tolist() == (2 * x * y * y).tolist()
        assert clnn.autograd.grad(slope.sum(), w)[0].tolist() == (2 * y * y).tolist()


def test_writes_at_numbers_leave_what_others_read():
    numbers, columns = clnn.tensor([0, 2, -1]), clnn.tensor([1, 1, 0])
    for _ in range(4):
        x = clnn.zeros(4, 3)
        before, pending = x.clone(), x + 1
        x[numbers] = clnn.arange(3.0)
        x[numbers, columns] = x[numbers, columns] + 5
        x.index_put_((numbers,), clnn.ones(3), accumulate=True)
        assert x.tolist() == [[1, 7, 3], [0, 0, 0], [1, 7, 3], [6, 2, 3]] and x._version == 3
        assert not before.any() and pending.tolist() == [[1.0] * 3] * 4
        with pytest.raises((IndexError, RuntimeError)):
            x[numbers] = clnn.ones(2, 3)


def test_numbers_beside_whole_dimensions():
    x = clnn.arange(24.0).reshape(2, 3, 4)
    i = clnn.tensor([2, 0])
    want = [[[8, 9, 10, 11], [0, 1, 2, 3]], [[20, 21, 22, 23], [12, 13, 14, 15]]]
    assert x[:, i].tolist() == x[:, i, :].tolist() == x[:, i, ...].tolist() == x[..., i, :].tolist() == want
    assert x[..., i].tolist() == x[:, :, i].tolist() == [[[r[2], r[0]] for r in m] for m in x.tolist()]
    assert x[:, i, i].tolist() == [[10, 0], [22, 12]]
    w = x.clone().requires_grad_()
    for _ in range(4):
        slope, = clnn.autograd.grad((w[:, i, i] ** 2).sum(), w, create_graph=True)
        assert slope.sum().item() == 2 * (10 + 22 + 12) and clnn.autograd.grad(slope.sum(), w)[0].sum().item() == 8


def test_calls_without_values_are_known_too():
    """On the meta device, in turn with a real one: the same shapes and dtypes each time."""
    calls = {"softplus": F.softplus, "hinge": lambda x: F.hinge_embedding_loss(x, x), "logsumexp": lambda x: clnn.logsumexp(x, 1), "tril": clnn.tril,
             "nan_to_num": clnn.nan_to_num, "where": lambda x: clnn.where(x > 0, x, 0.5), "cosine": lambda x: F.cosine_similarity(x, x),
             "clip": lambda x: x.clip(0, 1), "addcmul": lambda x: clnn.addcmul(x, x, x), "step": lambda x: F.threshold(x, 0.1, 0.0)}
    for name, call in calls.items():
        for i in range(4):
            for grad in (False, True):
                real, meta = (call(clnn.ones(3, 4, device=device).requires_grad_(grad)) for device in (None, "meta"))
                assert (real.shape, real.dtype, real.requires_grad, str(meta.device)) == (meta.shape, meta.dtype, meta.requires_grad, "meta"), name


def test_others_do_not_raise_what_a_pending_reduction_refuses():
    for x in (clnn.ones(64) * 2, clnn.ones(64)):                    # so that no launch waits for its kernel
        (x.sum().item(), F.binary_cross_entropy(clnn.full((60,), 0.5), clnn.ones(60)).item())
    bad = F.binary_cross_entropy(clnn.full((61,), 2.0), clnn.ones(61))       # a shape of its own: a call that is repeated raises itself
    kept = [(clnn.ones(64) * i).sum() for i in range(3 * UNREAD)]
    assert [k.item() for k in kept] == [64.0 * i for i in range(3 * UNREAD)]
    for _ in range(2):
        with pytest.raises(RuntimeError, match="between 0 and 1"):
            bad.item()


@pytest.mark.parametrize("dtype", [clnn.bool, clnn.float32, clnn.float64, clnn.int64, clnn.int32, clnn.uint8, clnn.float16])
@pytest.mark.parametrize("shape", [(7,), (1,), (3, 5), (2, 3, 4), (1, 6), (64, 64), (65, 64), (0, 3)])
def test_what_is_not_zero(shape, dtype, device):
    """Of few elements the host finds it where it can, and reads and writes there."""
    if dtype is clnn.float64 and not device.has_fp64:
        pytest.skip("no float64")
    rng = np.random.default_rng(len(shape))
    a = rng.integers(-1, 2, shape).astype("f")
    for k in range(3):
        a[..., :1] = (-0.0, np.nan if dtype.is_floating_point else 1, 2)[k]
        kept = np.ascontiguousarray(a.astype(dtype.np))
        x, seen = clnn.tensor(kept), np.argwhere(kept)
        for found in (x.nonzero(), clnn.argwhere(x), clnn.stack(clnn.where(x != 0), 1) if kept.size else x.nonzero()):
            assert found.dtype is clnn.int64 and found.tolist() == seen.tolist()
        assert not kept.size or x.nonzero().stride() == (1, max(1, len(seen))) or len(seen) < 2
        assert x.t().nonzero().tolist() == np.argwhere(kept.T).tolist() if len(shape) == 2 else True
        mask = x != 0
        assert np.array_equal(x.masked_select(mask).numpy(), kept[kept != 0], equal_nan=dtype.is_floating_point)
        written = clnn.zeros(shape)
        written[mask] = 3.5
        assert np.array_equal(written.numpy(), np.where(kept != 0, np.float32(3.5), np.float32(0)))
        rows = clnn.tensor([shape[0] - 1, 0, -1]) if shape[0] else clnn.tensor([0])[:0]
        for value in (2.0, clnn.ones(len(rows), *shape[1:])):
            written[rows] = value
            assert not len(rows) or (written[0] == float(written[0].max())).all() and np.array_equal(written[rows].numpy(), written.numpy()[rows.numpy()])


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "hardtanh", "relu6", "elu", "silu", "mish", "hardswish", "hardsigmoid", "selu", "celu"])
def test_activations_in_place(name):
    """They write where nobody keeps a history, and leave an entry on the tape where somebody does."""
    fn, short = getattr(F, name), getattr(F, name + "_", None)
    for turn in range(4):
        x = clnn.tensor([[-2.0, -0.5, 0.0], [0.3, 1.5, 7.0]]) + turn
        want, kept, same = fn(x), x.clone(), x.clone()
        forms = [lambda t: fn(t, inplace=True), *[short] * (short is not None), *[lambda t: getattr(t, name + "_")()] * hasattr(x, name + "_")]
        for form in forms:
            t, view = x.clone(), None
            view, before = t[0], t._version
            assert form(t) is t and t._version == before + 1
            assert t.tolist() == want.tolist() and view.tolist() == want[0].tolist() and kept.tolist() == x.tolist()
            w = same.clone().requires_grad_()
            form(w * 1).sum().backward()
            v = same.clone().requires_grad_()
            fn(v * 1).sum().backward()
            assert w.grad.tolist() == v.grad.tolist()
            with pytest.raises(RuntimeError, match="leaf Variable"):
                form(v)


def test_a_fraction_may_come_first():
    x = clnn.tensor([1, 2])
    for c in (0.5, 1.5, 0.5, -2.5, 0.5):
        assert clnn.rsub(x, c).tolist() == [c - 1, c - 2] and clnn.rsub(x.float(), c, alpha=2).tolist() == [c - 2, c - 4]


@pytest.mark.parametrize("value", (0.5, -100.0, 3))
def test_fractions_beside_integers_leave_their_digits(value):
    def masked(t):
        found = []
        for dtype in (t.int64, t.int32):
            x = t.tensor([2**24 + 1, -3, 2**31 - 1], dtype=dtype)
            written, by_tensor, view = x.clone(), x.clone(), x.clone()
            written[x < 0] = value
            by_tensor[x < 0] = t.tensor([value])[0]
            view[1:].masked_fill_(view[1:] < 0, value)
            found += [r.tolist() for r in (x.masked_fill(x < 0, value), x.masked_fill(x < 0, t.tensor(value)), written, by_tensor, view)]
        return found
    assert masked(clnn) == masked(pytest.importorskip("torch"))


def test_calls_that_were_met_last_are_told_apart():
    """The same objects again are known at once (recent.c): not where operands share memory, lie elsewhere, or are others that are equal in Python."""
    a, b = clnn.arange(6.0).reshape(2, 3).cos(), clnn.arange(6.0).reshape(2, 3).sin()
    big = clnn.arange(24.0).reshape(4, 6).cos()
    s, t = a @ a.t(), b @ b.t()
    square = {"ss": s @ s, "st": s @ t, "ts": t @ s}
    want = {k: v.tolist() for k, v in square.items()}
    cat = {"ab": [*a.tolist(), *b.tolist()], "aa": [*a.tolist(), *a.tolist()], "b": b.tolist()}
    for _ in range(5):
        assert (s @ s).tolist() == want["ss"] and (s @ t).tolist() == want["st"] and (t @ s).tolist() == want["ts"] and (t @ t).tolist() != want["ts"]
        assert clnn.cat((a, a)).tolist() == cat["aa"] and clnn.cat((a, b)).tolist() == cat["ab"] and clnn.cat([b]).tolist() == cat["b"]
        assert clnn.cat((a, b), 1).tolist() == [x + y for x, y in zip(a.tolist(), b.tolist())] and clnn.cat((a, b, a)).shape == (6, 3)
        for part in (big[:2, :3], big[1:3, :3], big[1:3, 2:5], big.t()[:3, :2].t()):
            np.testing.assert_allclose(part.amax(1).tolist(), part.cpu().numpy().max(1), rtol=1e-6)
        assert a.sum(1).shape == (2,) and a.sum(1, keepdim=True).shape == (2, 1) and a.double().sum(1).dtype is clnn.float64
        for track in (False, True):
            x = a.clone().requires_grad_(track)
            assert x.amax(0).requires_grad is track and x.amax(0).tolist() == a.cpu().numpy().max(0).tolist()
            with clnn.no_grad():
                assert not x.amax(0).requires_grad


def test_factories_that_are_called_again_give_tensors_of_their_own():
    for _ in range(3):
        a, b = clnn.zeros(2, 3), clnn.zeros(2, 3)
        a.add_(1)
        assert a.sum().item() == 6 and b.sum().item() == 0 and clnn.zeros(2, 3).sum().item() == 0
        e = clnn.eye(3)
        e[0, 1] = 5
        assert clnn.eye(3).sum().item() == 3 and e.sum().item() == 8
        line = clnn.linspace(0, 1, 5)
        line.mul_(2)
        line.numpy()[0] = 7
        clnn.linspace(0, 1, 5).numpy()[1] = 9
        assert clnn.linspace(0, 1, 5).tolist() == [0, 0.25, 0.5, 0.75, 1] and clnn.linspace(0, 1, 5, dtype=clnn.float64).dtype is clnn.float64
        assert [clnn.full((1,), v).dtype for v in (True, 1, 1.0)] == [clnn.bool, clnn.int64, clnn.float32] and repr(clnn.full((1,), -0.0)) == "tensor([-0.])"
        clnn.set_default_dtype(clnn.float64)
        assert clnn.zeros(1).dtype is clnn.arange(3.0).dtype is clnn.float64
        clnn.set_default_dtype(clnn.float32)
        assert clnn.zeros(1).dtype is clnn.arange(3.0).dtype is clnn.float32
        with clnn.device("meta"):
            assert clnn.zeros(2).device.type == clnn.arange(3).device.type == "meta"
        assert clnn.zeros(2).device.type != "meta" and clnn.zeros(2, requires_grad=True).requires_grad and not clnn.zeros(2).requires_grad
        with clnn.inference_mode():
            assert clnn.zeros(2).is_inference()
        assert not clnn.zeros(2).is_inference() and clnn.zeros_like(a).tolist() == a.new_zeros(2, 3).tolist() == [[0.0] * 3] * 2
        with pytest.raises(RuntimeError, match="negative dimension"):
            clnn.zeros(-1)
