"""clnn.nn.functional against PyTorch: values, gradients, second gradients, dtypes, in-place forms, state and errors.

The operator table's samples give most cases; tests below add what samples cannot express.
"""
import re
import sys

import numpy as np
import pytest
from ahead import Ahead

import clnn
from clnn._tensor.backward import grad as gradients
from clnn.graph.op import REGISTRY
from clnn.nn import functional as F

torch = pytest.importorskip("torch")
TF = torch.nn.functional
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

RANDOM = {"rrelu", "gumbel_softmax", "fractional_max_pool2d", "fractional_max_pool3d"}
NO_GRADIENT_THERE = {"native_channel_shuffle"}
NAMES = [n for n in F.__all__ if n in REGISTRY and REGISTRY[n].samples and n not in RANDOM and hasattr(TF, n)]


def both(value, dtype):
    """A sample value for clnn and for torch; float arrays become leaves."""
    if not isinstance(value, np.ndarray):
        return value, value
    if value.dtype.kind != "f":
        return clnn.tensor(value), torch.tensor(value)
    value = value.astype(dtype)
    return clnn.tensor(value, requires_grad=True), torch.tensor(value, requires_grad=True)


def arguments(args, kwargs, dtype):
    pairs = [both(a, dtype) for a in args]
    named = {k: both(v, dtype) for k, v in kwargs.items()}
    return ([p[0] for p in pairs], {k: v[0] for k, v in named.items()}), ([p[1] for p in pairs], {k: v[1] for k, v in named.items()})


def leaves(args, kwargs):
    return [t for t in (*args, *kwargs.values()) if isinstance(t, (clnn.Tensor, torch.Tensor)) and t.requires_grad]


def close(got, want, tol, what=""):
    got, want = got.detach().numpy(), want.detach().clone().numpy()
    assert got.shape == want.shape and got.dtype == want.dtype, (what, got.shape, want.shape, got.dtype, want.dtype)
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol, err_msg=what)


def only_first(args, kwargs):
    """torch differentiates some functions by their first input only."""
    def stop(t):
        return t.detach() if isinstance(t, (clnn.Tensor, torch.Tensor)) else t
    return [args[0], *map(stop, args[1:])], {k: stop(v) for k, v in kwargs.items()}


def _value_and_gradients(name):
    tol, dtype, pairs = 5e-5, "float32", []
    for number, (args, kwargs) in enumerate(REGISTRY[name].samples()):
        mine, theirs = arguments(args, kwargs, dtype)
        try:
            want = getattr(TF, name)(*theirs[0], **theirs[1])
        except RuntimeError as exc:
            if not re.search("not differentiable|derivative", str(exc)):
                raise
            mine, theirs = only_first(*mine), only_first(*theirs)
            want = getattr(TF, name)(*theirs[0], **theirs[1])
        got = getattr(F, name)(*mine[0], **mine[1])
        pairs.append((got, want, tol, f"{name} sample {number}"))
        if want.requires_grad and name not in NO_GRADIENT_THERE:
            w = np.random.default_rng(0).normal(0, 1, tuple(want.shape)).astype(dtype)
            expected = torch.autograd.grad((want * torch.tensor(w)).sum(), leaves(*theirs), allow_unused=True)
            found = gradients((got * clnn.tensor(w)).sum(), leaves(*mine), allow_unused=True)
            pairs += [(a, b, 10 * tol, f"{name} sample {number} gradient") for a, b in zip(found, expected) if b is not None]
    for got, *_ in pairs:
        got._storage.buffer()
    return lambda: [close(*pair) for pair in pairs]


AHEAD = Ahead(_value_and_gradients, cases=8)


@pytest.mark.share(3)
@pytest.mark.parametrize("name", NAMES)
def test_value_and_gradients(name, request):
    """In float32; the derived checks of test_ops.py differentiate in float64, and twice."""
    AHEAD.finish(request)


@pytest.mark.parametrize("name", sorted(n[:-1] for n in F.__all__ if n.endswith("_")))
def test_in_place(name):
    x = np.linspace(-2, 2, 9).astype("f")
    extra = (0.1, 0.5) if name == "threshold" else ()
    a, b = clnn.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    mine, theirs = a * 2, b * 2
    before = mine
    got, want = getattr(F, name)(mine, *extra, inplace=True), getattr(TF, name)(theirs, *extra, inplace=True)
    assert got is before
    close(got, want, 1e-5)
    got.sum().backward()
    want.sum().backward()
    close(a.grad, b.grad, 1e-5)
    with pytest.raises(RuntimeError, match="leaf"):
        getattr(F, name)(a, *extra, inplace=True)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name, args", [("softmax", (1,)), ("log_softmax", (1,)), ("gelu", ()), ("layer_norm", ((40,),)), ("silu", ())])
def test_narrow_floats(name, args, dtype):
    x = np.random.default_rng(0).normal(0, 2, (6, 40)).astype("f")
    got = getattr(F, name)(clnn.tensor(x).to(getattr(clnn, dtype)), *args)
    want = getattr(TF, name)(torch.tensor(x).to(getattr(torch, dtype)), *args)
    assert str(got.dtype).split(".")[1] == dtype
    np.testing.assert_allclose(got.float().numpy(), want.float().numpy(), rtol=2e-2, atol=1e-2)


@pytest.mark.parametrize("shape, dim", [((3, 5, 70), 1), ((4, 300), 1), ((5, 9), 0), ((7,), 0), ((2, 3, 130), 1), ((65, 3), 1)])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_layouts(name, shape, dim):
    x = np.random.default_rng(1).normal(0, 3, shape).astype("f")
    x.flat[0] = -np.inf
    got, want = (getattr(m, name)(t(x), dim) for m, t in ((F, clnn.tensor), (TF, torch.tensor)))
    close(got, want, 1e-5)
    turned = getattr(F, name)(clnn.tensor(np.ascontiguousarray(x.T)).permute(*range(x.ndim)[::-1]), dim)
    close(turned, want, 1e-5)


def test_softmax_keeps_nan_in_its_row():
    x = np.zeros((3, 40), "f")
    x[1, 3] = np.nan
    got = F.softmax(clnn.tensor(x), 1).numpy()
    assert np.isnan(got[1]).all() and np.allclose(got[[0, 2]], 1 / 40)


@pytest.mark.share(2)
@pytest.mark.parametrize("shape", [(6, 5), (4, 300), (3, 5, 4, 3), (7,)])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted, smoothing, ignore", [(False, 0.0, -100), (True, 0.1, 2), (False, 0.2, 2), (True, 0.0, -100)])
def test_cross_entropy(shape, reduction, weighted, smoothing, ignore):
    rng = np.random.default_rng(3)
    classes = shape[1] if len(shape) > 1 else shape[0]
    x = rng.normal(0, 2, shape).astype("f")
    t = rng.integers(0, classes, shape[:1] * (len(shape) > 1) + shape[2:])
    w = rng.random(classes).astype("f")
    kw = dict(reduction=reduction, label_smoothing=smoothing, ignore_index=ignore)
    a, b = clnn.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    got = F.cross_entropy(a, clnn.tensor(t), weight=clnn.tensor(w) if weighted else None, **kw)
    want = TF.cross_entropy(b, torch.tensor(t), weight=torch.tensor(w) if weighted else None, **kw)
    close(got, want, 2e-5)
    (got * got).sum().backward()
    (want * want).sum().backward()
    close(a.grad, b.grad, 1e-4)


def test_cross_entropy_errors():
    x = clnn.zeros(3, 5)
    with pytest.raises(IndexError, match="Target 12 is out of bounds"):
        F.cross_entropy(x, clnn.tensor([0, 12, 1])).item()
    with pytest.raises(ValueError, match="batch_size"):
        F.cross_entropy(x, clnn.tensor([0, 1]))
    with pytest.raises(ValueError, match="reduction"):
        F.cross_entropy(x, clnn.tensor([0, 1, 2]), reduction="median")
    with pytest.raises(RuntimeError, match="expected target dtype to be Long or Byte, but got Float"):
        F.nll_loss(x, clnn.zeros(3))


def test_cross_entropy_of_ignored_positions_is_nan():
    assert np.isnan(F.cross_entropy(clnn.zeros(2, 3), clnn.tensor([1, 1]), ignore_index=1).item())


@pytest.mark.parametrize("name", ["batch_norm", "instance_norm"])
@pytest.mark.parametrize("shape", [(4, 3, 5, 5), (16, 3, 10)])
def test_running_statistics(name, shape):
    x = np.random.default_rng(4).normal(3, 2, shape).astype("f")
    mine, theirs = (clnn.zeros(3), clnn.ones(3)), (torch.zeros(3), torch.ones(3))
    for _ in range(2):
        got, want = (getattr(m, name)(t(x), *stats, None, None, True, 0.3) for m, t, stats in ((F, clnn.tensor, mine), (TF, torch.tensor, theirs)))
        close(got, want, 5e-5)
    for a, b in zip(mine, theirs):
        close(a, b, 2e-5)
    close(getattr(F, name)(clnn.tensor(x), *mine, None, None, False), getattr(TF, name)(torch.tensor(x), *theirs, None, None, False), 5e-5)


def test_batch_norm_of_large_means():
    x = (np.random.default_rng(5).normal(0, 1, (64, 2, 9)) + 1000).astype("f")
    close(F.batch_norm(clnn.tensor(x), None, None, training=True), TF.batch_norm(torch.tensor(x), None, None, training=True), 2e-3)


@pytest.mark.parametrize("shape, kind", [((3, 5, 6, 8), "float32"), ((20, 3, 9), "float32"), ((70, 2, 10, 12), "float32"), ((9, 2, 40, 64), "float32"),
                                         ((5, 3, 9, 4), "float16"), ((6, 2, 14), "float64"), ((2, 3, 150, 150), "float32")], ids=str)
def test_statistics_of_a_channel_in_one_launch(monkeypatch, shape, kind):
    """Channels whose numbers the work-items of a group keep, or read twice, as vectors or alone; the last are too long for one group."""
    from clnn._tensor import repeat
    from clnn.runtime import launch
    names, results, behind, device = [], [], [], clnn.get_default_device().physical
    for owner, name in ((device, "is_cpu"), (device, "loops"), (repeat, "on")):
        monkeypatch.setattr(owner, name, False)
    monkeypatch.setattr(launch, "recorders", [lambda device, kernel, *rest: names.append(kernel.name)])
    c, rng = shape[1], np.random.default_rng(0)
    arrays = [rng.standard_normal(s).astype(kind) + 3 for s in (shape, c, c)]
    up, tolerance = rng.standard_normal(shape).astype(kind), dict(float16=4e-3, float32=1e-4, float64=1e-12)[kind]
    monkeypatch.setattr(sys.modules["clnn.ops.normalization"], "_FEW", 0)
    for lib in (clnn, torch):
        leaves, twice = [lib.tensor(a).requires_grad_() for a in arrays], [lib.tensor(a).requires_grad_() for a in arrays]
        mean, var = lib.tensor(np.arange(c).astype(kind)), lib.tensor(np.ones(c, kind))
        y = lib.nn.functional.batch_norm(leaves[0], mean, var, *leaves[1:], True, 0.2, 1e-3)
        y.backward(lib.tensor(up))
        z = lib.relu(lib.nn.functional.batch_norm(twice[0] * 1, None, None, *twice[1:], True))
        z.detach().numpy()
        first, given = len(names), lib.tensor(up)
        z.backward(given)
        results.append([t.detach().numpy() for t in (y, mean, var, *[t.grad for t in (*leaves, *twice)])])
        behind = behind or names[first:]
    for got, want in zip(*results):
        np.testing.assert_allclose(got, want, tolerance, tolerance * max(1, np.abs(want).max()))
    whole = shape != (2, 3, 150, 150)
    assert names.count("channel") == names.count("channel_backward") == 2 * whole and ("combine" in names) != whole
    assert kind != "float32" or behind[:2] == (["channel_backward", "fused"] if whole else ["fused", "sums"])       # the relu's gradient is computed on the way


def test_pieces_of_a_turned_tensor_on_gpus(monkeypatch):
    """Gradients of all pieces, or of some, are joined in one launch, in the order of the memory that they are pieces of."""
    from clnn.runtime import launch
    names = []
    monkeypatch.setattr(clnn.get_default_device().physical, "is_cpu", False)
    monkeypatch.setattr(launch, "recorders", [lambda device, kernel, *rest: names.append(kernel.name)])
    a, b = (np.random.default_rng(0).standard_normal((4, 6, 3, 5, 8)).astype("f") for _ in range(2))
    for order, d in (((2, 0, 3, 1, 4), 0), ((0, 3, 2, 1, 4), 2), ((4, 3, 2, 1, 0), 2)):
        for some in ((0, 1, 2), (0, 2)):
            got = []
            for lib in (clnn, torch):
                x, up = lib.tensor(a).requires_grad_(), lib.tensor(b).permute(order).unbind(d)
                pieces, grads = (x * 1).permute(order).unbind(d), [g.clone() for g in up]
                [g.numpy() for g in grads]
                names.clear()
                lib.autograd.grad(x.permute(order).unbind(d), x, grads)[0].reshape(-1).numpy()
                assert lib is torch or d == 2 or names == ["cat"], names
                given, = lib.autograd.grad([pieces[k] * pieces[k] for k in some], x, [grads[k] for k in some], create_graph=True)
                twice, = lib.autograd.grad(given.sin().sum(), x)
                got.append((given.detach().numpy(), twice.numpy()))
            for mine, theirs in zip(*got):
                np.testing.assert_allclose(mine, theirs, 1e-4, 1e-5)


def test_batch_norm_mixed_dtypes():
    x = np.random.default_rng(6).normal(0, 1, (4, 3, 6)).astype("f")
    got = F.batch_norm(clnn.tensor(x).bfloat16(), None, None, clnn.ones(3), clnn.zeros(3), True)
    assert got.dtype is clnn.bfloat16
    np.testing.assert_allclose(got.float().numpy(), TF.batch_norm(torch.tensor(x), None, None, training=True).numpy(), rtol=3e-2, atol=3e-2)


@pytest.mark.parametrize("nd", [1, 2, 3])
def test_pooling_indices_and_unpooling(nd):
    x = np.random.default_rng(7).normal(0, 1, (2, 3) + (8, 6, 10)[-nd:]).astype("f")
    got = getattr(F, f"max_pool{nd}d")(clnn.tensor(x), 2, return_indices=True)
    want = getattr(TF, f"max_pool{nd}d")(torch.tensor(x), 2, return_indices=True)
    close(got[0], want[0], 0)
    close(got[1], want[1], 0)
    close(getattr(F, f"max_unpool{nd}d")(*got, 2), getattr(TF, f"max_unpool{nd}d")(*want, 2), 0)
    many = getattr(F, f"adaptive_max_pool{nd}d")(clnn.tensor(x), 3, return_indices=True)
    close(many[1], getattr(TF, f"adaptive_max_pool{nd}d")(torch.tensor(x), 3, return_indices=True)[1], 0)


@pytest.mark.parametrize("name, shape, args, kwargs", [
    ("adaptive_max_pool1d", (3, 2, 40), (3,), {}), ("adaptive_avg_pool1d", (3, 2, 40), (3,), {}), ("adaptive_max_pool2d", (2, 3, 11, 26), ((4, 3),), {}),
    ("adaptive_avg_pool2d", (2, 3, 11, 26), ((4, 3),), {}), ("adaptive_max_pool2d", (2, 3, 9, 70), (1,), {}),
    ("adaptive_max_pool2d", (3, 2, 32, 32), (1,), {}), ("max_pool2d", (3, 2, 24, 24), (12,), {}), ("adaptive_avg_pool2d", (2, 2, 32, 32), (4,), {}),
    ("max_pool1d", (3, 2, 90), (41, 5, 20), {"ceil_mode": True}), ("avg_pool1d", (3, 2, 90), (41, 5, 20), {"count_include_pad": False}),
    ("avg_pool2d", (2, 2, 9, 70), ((3, 40), (2, 7), (1, 20)), {}), ("avg_pool2d", (2, 2, 9, 70), (7,), {"ceil_mode": True})])
def test_pooling_over_wide_windows(name, shape, args, kwargs):
    """Many elements of a window at a time; ties and NaN come out where PyTorch has them."""
    x = np.random.default_rng(len(name)).integers(-9, 9, shape).astype("f")
    if "max" in name:
        x.reshape(-1)[[5, 7, 300 % x.size]] = np.nan
        kwargs = dict(kwargs, return_indices=True)
    a, b = clnn.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    got, want = getattr(F, name)(a, *args, **kwargs), getattr(TF, name)(b, *args, **kwargs)
    if "max" in name:
        close(got[1], want[1], 0)
        got, want = got[0], want[0]
    close(got, want, 1e-5)
    g = np.random.default_rng(1).normal(0, 1, want.shape).astype("f")
    got.backward(clnn.tensor(g))
    want.backward(torch.tensor(g))
    close(a.grad, b.grad, 1e-5)


def test_few_large_windows_fill_vectors():
    """With one output per row there is nothing beside it that a vector could hold, so elements of a window go there."""
    from clnn.ops import pooling
    device = clnn.get_default_device().physical
    for size, k, width in ((32, 32, 16), (24, 12, 8), (32, 8, 8)):
        window = pooling._made(2, (k, k), (k, k), (0, 0), (1, 1))
        got = pooling._form(device, "pooling/max", window, clnn.float32, size, size // k, False)
        assert got == (("wide", width) if device.is_cpu else ("item", 1))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("ragged", [False, True])
def test_embedding_bags(mode, ragged):
    """Rows of several vectors and a rest; empty bags, a row left out, scales."""
    rng = np.random.default_rng(9)
    rows, index, offsets = rng.normal(0, 1, (11, 45)).astype("f"), rng.integers(0, 11, (4, 6)), np.array([0, 3, 3, 20, 24])
    kwargs = [dict(mode=mode), dict(mode=mode, padding_idx=int(index[0, 0]))]
    if mode == "sum":
        kwargs.append(dict(mode=mode, padding_idx=2, per_sample_weights=rng.normal(0, 1, index.size if ragged else index.shape).astype("f")))
    for options in kwargs:
        def run(lib, leaf):
            table, scales = leaf(rows), options.get("per_sample_weights")
            more = dict(options, include_last_offset=True, offsets=lib.tensor(offsets)) if ragged else dict(options)
            if scales is not None:
                scales = more["per_sample_weights"] = leaf(scales)
            out = lib.nn.functional.embedding_bag(lib.tensor(index.reshape(-1) if ragged else index), table, **more)
            (out * out).sum().backward()
            return out, table.grad, *([] if scales is None else [scales.grad])
        for got, want in zip(run(clnn, lambda v: clnn.tensor(v, requires_grad=True)), run(torch, lambda v: torch.tensor(v, requires_grad=True))):
            close(got, want, 1e-5, str(options))


def test_embedding_bags_by_frequency():
    """As the rows that they are made of have it; PyTorch 2.13 takes the counts of other rows here."""
    index, grads = clnn.tensor([[1, 2, 1], [0, 1, 2]]), []
    for bags in (lambda w: F.embedding_bag(index, w, mode="sum", scale_grad_by_freq=True), lambda w: F.embedding(index, w, scale_grad_by_freq=True).sum(1)):
        table = clnn.ones(4, 3, requires_grad=True)
        (bags(table) * clnn.tensor([[1.], [10.]])).sum().backward()
        grads.append(table.grad)
    close(grads[0], torch.tensor(grads[1].numpy()), 1e-6)


def test_embedding_bags_check_their_offsets():
    with pytest.raises(RuntimeError, match="offsets have to begin with 0"):
        F.embedding_bag(clnn.tensor([1, 0]), clnn.ones(2, 3), clnn.tensor([0, 5])).tolist()


@pytest.mark.parametrize("size", [4, 5, 8])
def test_pooling_of_narrow_rows(size):
    """Two and four outputs to a row: vectors of as many lanes."""
    x = np.random.default_rng(size).permutation(6 * size * size).reshape(2, 3, size, size).astype("f")
    for name in ("max_pool2d", "avg_pool2d"):
        a, b = clnn.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
        got, want = getattr(F, name)(a, 2), getattr(TF, name)(b, 2)
        (got * got).sum().backward()
        (want * want).sum().backward()
        close(got, want, 1e-6)
        close(a.grad, b.grad, 1e-6)


def test_overlapping_max_pool_adds_gradients():
    x = np.zeros((1, 1, 5, 5), "f")
    x[0, 0, 2, 2] = 1
    a, b = clnn.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    F.max_pool2d(a, 3, 1).sum().backward()
    TF.max_pool2d(b, 3, 1).sum().backward()
    close(a.grad, b.grad, 0)


@pytest.mark.share(2)
@pytest.mark.parametrize("kernel, stride, padding, ceil", [(3, 2, 1, True), (2, 2, 0, False), (3, 1, 1, False), ((3, 5), (2, 4), (0, 2), False),
                                                           ((2, 8), (2, 7), 1, True), ((1, 2), (1, 3), 0, True)])
def test_pooling_of_wide_rows(kernel, stride, padding, ceil):
    """Rows long enough for vectors, with what is left at both ends, and ties."""
    x = np.random.default_rng(10).integers(-9, 9, (2, 3, 9, 71)).astype("f")
    for name, more in (("max_pool2d", {}), ("avg_pool2d", {}), ("avg_pool2d", dict(count_include_pad=False))):
        a, b = clnn.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
        got, want = (getattr(lib, name)(t, kernel, stride, padding, ceil_mode=ceil, **more) for lib, t in ((F, a), (TF, b)))
        close(got, want, 1e-5)
        g = np.random.default_rng(11).normal(0, 1, tuple(want.shape)).astype("f")
        got.backward(clnn.tensor(g))
        want.backward(torch.tensor(g))
        close(a.grad, b.grad, 1e-5)


def test_max_pool_of_nan_and_infinity():
    x = np.random.default_rng(8).normal(0, 1, (1, 1, 6, 6)).astype("f")
    x[0, 0, 2, 2], x[0, 0, 4:, 4:] = np.nan, -np.inf
    close(F.max_pool2d(clnn.tensor(x), 2), TF.max_pool2d(torch.tensor(x), 2), 0)


@pytest.mark.parametrize("nd", [2, 3])
def test_fractional_max_pool(nd):
    rng = np.random.default_rng(9)
    x, u = rng.normal(0, 1, (2, 3) + (9, 11, 13)[-nd:]).astype("f"), rng.random((2, 3, nd)).astype("f")
    got = getattr(F, f"fractional_max_pool{nd}d")(clnn.tensor(x), 2, 4, _random_samples=clnn.tensor(u), return_indices=True)
    want = getattr(TF, f"fractional_max_pool{nd}d")(torch.tensor(x), 2, 4, _random_samples=torch.tensor(u), return_indices=True)
    close(got[0], want[0], 0)
    close(got[1], want[1], 0)


def test_pooling_errors():
    x = clnn.zeros(1, 2, 4, 4)
    with pytest.raises(RuntimeError, match="at most half"):
        F.max_pool2d(x, 2, padding=2)
    with pytest.raises(RuntimeError, match="too small"):
        F.avg_pool2d(x, 5)
    with pytest.raises(RuntimeError, match="stride should not be zero"):
        F.max_pool2d(x, 2, stride=0)


def test_embedding_padding_frequency_and_norm():
    rng = np.random.default_rng(10)
    table, index = rng.normal(0, 1, (7, 5)).astype("f"), np.array([[1, 2, 6], [2, 0, 2]])
    for kw in (dict(padding_idx=2), dict(scale_grad_by_freq=True), dict(max_norm=1.0), dict(padding_idx=-1, max_norm=0.5, norm_type=1.0)):
        a, b = clnn.tensor(table), torch.tensor(table)
        a.requires_grad_()
        b.requires_grad_()
        got, want = F.embedding(clnn.tensor(index), a, **kw), TF.embedding(torch.tensor(index), b, **kw)
        close(got, want, 1e-5, str(kw))
        (got * got).sum().backward()
        (want * want).sum().backward()
        close(a.grad, b.grad, 1e-5, str(kw))
        close(a, b, 1e-5, str(kw))
    with pytest.raises(IndexError, match="out of range"):
        F.embedding(clnn.tensor([9]), clnn.zeros(3, 2)).numpy()


def test_gradients_are_the_same_in_every_run():
    def run():
        rng = np.random.default_rng(11)
        x = clnn.tensor(rng.normal(0, 1, (8, 4, 12, 12)).astype("f"), requires_grad=True)
        w = clnn.tensor(rng.normal(0, 1, 4).astype("f"), requires_grad=True)
        y = F.max_pool2d(F.relu(F.batch_norm(x, None, None, w, None, True)), 3, 2, 1)
        F.cross_entropy(y.flatten(1), clnn.tensor(rng.integers(0, 100, 8))).backward()
        return x.grad.numpy().tobytes(), w.grad.numpy().tobytes()
    assert run() == run()


def test_gumbel_softmax():
    clnn.manual_seed(0)
    x = clnn.zeros(2000, 4, requires_grad=True)
    soft, hard = F.gumbel_softmax(x, 0.5), F.gumbel_softmax(x, 0.5, hard=True)
    assert np.allclose(soft.sum(1).detach().numpy(), 1, atol=1e-5)
    assert set(np.unique(hard.detach().numpy().round(5))) == {0, 1} and abs(hard.detach().numpy().mean(0) - 0.25).max() < 0.05
    (hard * clnn.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    assert x.grad.abs().sum().item() > 0


def test_rrelu():
    x = clnn.full((1000,), -1.0)
    y = F.rrelu(x, 0.1, 0.3, training=True).numpy()
    assert -0.3 <= y.min() < -0.28 and -0.12 < y.max() <= -0.1
    assert np.allclose(F.rrelu(x, 0.1, 0.3).numpy(), -0.2)


@pytest.mark.parametrize("target_form", ["padded", "joined"])
def test_ctc_loss(target_form):
    rng = np.random.default_rng(12)
    x = rng.normal(0, 1, (12, 3, 5)).astype("f")
    labels, sizes = rng.integers(1, 5, (3, 4)), [4, 2, 3]
    labels[1, :2] = 3                                           # a repeat
    targets = labels if target_form == "padded" else np.concatenate([r[:n] for r, n in zip(labels, sizes)])
    a, b = clnn.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    got = F.ctc_loss(F.log_softmax(a, 2), clnn.tensor(targets), (12, 10, 3), tuple(sizes), zero_infinity=True)
    want = TF.ctc_loss(TF.log_softmax(b, 2), torch.tensor(targets), (12, 10, 3), tuple(sizes), zero_infinity=True)
    close(got, want, 1e-5)
    got.backward()
    want.backward()
    close(a.grad, b.grad, 1e-5)
    for lengths, sizes in (((12, 13, 3), sizes), ((12, 10, 3), (4, 2, 5))):      # on the device they are only known while the kernel runs
        with pytest.raises(RuntimeError, match="length 13 of a sample|length 5 of a sample|to have size 11 at dimension 0"):
            F.ctc_loss(F.log_softmax(a, 2), clnn.tensor(targets), clnn.tensor(lengths), clnn.tensor(sizes)).item()


def test_every_name_of_pytorch_exists():
    skip = {"assert_int_or_pair", "boolean_dispatch", "handle_torch_function", "has_torch_function", "has_torch_function_unary",
            "has_torch_function_variadic", "grouped_mm", "scaled_mm", "scaled_grouped_mm", "linear_cross_entropy"}
    import types
    theirs = {n for n in dir(TF) if not n.startswith("_") and n[0].islower()
              and isinstance(getattr(TF, n), (types.FunctionType, types.BuiltinFunctionType))} - skip
    assert sorted(n for n in theirs if not hasattr(F, n)) == []


@pytest.mark.parametrize("pool", ["max", "avg"])
def test_large_windows_of_ever_new_sizes_share_a_kernel(pool, monkeypatch):
    from clnn.runtime import program
    texts, start = set(), program.Program.__init__
    monkeypatch.setattr(program.Program, "__init__", lambda self, device, source, *rest: texts.add(source) or start(self, device, source, *rest))
    whole, parts = getattr(F, f"{pool}_pool1d"), getattr(F, f"adaptive_{pool}_pool2d")
    for n in range(34, 60):                                     # texts of every length, pooled as a whole; images in four parts
        x, y = clnn.randn(2, 3, n), clnn.randn(1, 2, 2 * n, 2 * n)
        lines = x.numpy().max(2) if pool == "max" else x.numpy().mean(2)
        assert np.allclose(whole(x, n).numpy()[..., 0], lines, atol=1e-6)
        tiles = y.numpy().reshape(2, 2, n, 2, n)
        assert np.allclose(parts(y, 2).numpy()[0], tiles.max((2, 4)) if pool == "max" else tiles.mean((2, 4)), atol=1e-6)
    assert len(texts) <= 6                                      # with random numbers; rows of other widths have other vectors
