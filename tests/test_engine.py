"""The engine: lazy fusion, value-semantic buffers, in-place writes through views, and what a launch list must keep right."""
import gc
import random

import numpy as np
import pytest

import clnn
from clnn._tensor.repeat import repeated
from clnn.graph import akin, fuse
from clnn.runtime import launch as launcher


class Launches:
    """Counts launches inside a ``with`` block."""

    def __enter__(self):
        self.count = 0
        self.before = launcher.recorders
        launcher.recorders = [self]
        return self

    def __call__(self, *args):
        self.count += 1

    def __exit__(self, *exc):
        launcher.recorders = self.before


def ready(*shape, seed=0):
    t = clnn.tensor(np.random.default_rng(seed).standard_normal(shape).astype("float32"))
    return t


def test_a_chain_is_one_launch():
    x = ready(1000)
    (x * 2).numpy()
    with Launches() as seen:
        y = ((x * 2 + 1).exp().log() - 1) / 2
        y = (y.abs() + 1).sqrt()
        y._storage.buffer()
    assert seen.count == 1
    np.testing.assert_allclose(y.numpy(), np.sqrt(np.abs(x.numpy()) + 1), rtol=2e-5)


def test_a_live_intermediate_is_written_by_the_same_launch():
    x = ready(64)
    with Launches() as seen:
        a = x + 1
        b = a * 2
        b.numpy()
        first = seen.count
        a.numpy()
    assert first == 1 and seen.count == 1
    np.testing.assert_allclose(a.numpy() * 2, b.numpy())


def test_a_reduction_takes_its_input_along():
    x, y = ready(50, 70), ready(50, 70, seed=1)
    with Launches() as seen:
        s = ((x - y) * (x - y)).sum(1)
        s.numpy()
    assert seen.count == 1
    np.testing.assert_allclose(s.numpy(), ((x.numpy() - y.numpy()) ** 2).sum(1), rtol=1e-5)


def test_new_sizes_compile_nothing():
    def f(n):
        x = clnn.ones(n)
        return (x * 3 + 2).tanh().numpy()
    f(10), f(1 << 18)                 # a few elements and many may have a form each
    before = len(fuse._kernels)
    for n in (11, 1000, 77777):
        f(n)
    assert len(fuse._kernels) == before


def test_a_new_scalar_compiles_nothing():
    x = ready(100)
    (x * 1.5).numpy()
    before = len(fuse._kernels)
    for s in (2.0, 3.0, 1e-3):
        (x * s).numpy()
    assert len(fuse._kernels) == before


def test_in_place_reuses_the_buffer():
    x = ready(10000)      # small ones are not worth the search
    x._storage.buffer()
    address = x._storage.buf.int_ptr
    x.mul_(2)
    x.add_(1)
    x.numpy()
    assert x._storage.buf.int_ptr == address


def test_memory_is_not_reused_under_pending_readers():
    """The one tensor that is computed reads all there is of ``x``, and so does another that nobody has asked for yet."""
    x = ready(10000)
    want = x.numpy().copy()
    doubled = x * 2
    one, other = doubled + 1, doubled * 3
    del x, doubled
    assert np.array_equal(one.numpy(), want * 2 + 1) and np.array_equal(other.numpy(), want * 2 * 3)


def test_clone_is_a_value():
    x = clnn.zeros(4)
    y = x.clone()
    x.add_(1)
    z = y[1:3]
    z.fill_(7)
    assert x.tolist() == [1, 1, 1, 1] and y.tolist() == [0, 7, 7, 0]


def test_pending_readers_see_the_old_value():
    x = clnn.zeros(6)
    x.numpy()
    y = x + 1
    x[2:4] = 9
    z = x * 1
    x.fill_(5)
    assert y.tolist() == [1] * 6 and z.tolist() == [0, 0, 9, 9, 0, 0] and x.tolist() == [5] * 6


def test_overlapping_copy():
    """Refused as in PyTorch; regions with gaps are computed before anything is written."""
    x = clnn.arange(8)
    with pytest.raises(RuntimeError, match="single memory location"):
        x[1:] = x[:-1]
    x[1:] = x[:-1].clone()
    assert x.tolist() == [0, 0, 1, 2, 3, 4, 5, 6]
    x[2::2] = x[:-2:2]
    assert x.tolist() == [0, 0, 0, 2, 1, 4, 3, 6]


def test_long_chains_keep_no_memory():
    def held_after(steps):
        x = y = clnn.ones(1000, requires_grad=True)
        for _ in range(steps):
            y = y * 1.0001
        y.sum().backward()
        assert x.grad is not None
        del y
        x.grad = None
        gc.collect()
        clnn.synchronize()
        return clnn.memory_stats()["active_buffers"]
    short = held_after(100)                             # first: what a long one kept would be there after it, too
    assert held_after(3000) <= short + 2


def test_shared_pending_input_survives_one_consumer():
    x = ready(128)
    t = x * 2
    u, v = t + 1, t + 2
    del t
    u.numpy()
    np.testing.assert_allclose(v.numpy(), x.numpy() * 2 + 2, rtol=1e-6)


def test_dead_values_never_run():
    x = ready(16)
    with Launches() as seen:
        y = x * 2
        del y
    assert seen.count == 0


def test_eager_mode_is_the_same():
    from clnn._tensor.dispatch import config
    x = ready(33, 5)

    def f():
        y = (x * 1.7 + 0.3).sin() * x.half().float()
        return ((y - y.mean(0)) ** 2).sum(1).numpy()
    lazy = f()
    config.eager = True
    try:
        eager = f()
    finally:
        config.eager = False
    assert np.array_equal(lazy, eager)


def test_version_counter_reports_an_overwritten_value():
    x = clnn.ones(3, requires_grad=True)
    y = x * 2
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_agree_with_torch(seed):
    """Views, in-place writes and reads in random order: aliasing must be PyTorch's."""
    torch = pytest.importorskip("torch")
    rng = random.Random(seed)
    base = np.random.default_rng(seed).standard_normal((4, 6)).astype("float32")
    pool = [(clnn.tensor(base), torch.tensor(base))]
    for _ in range(40):
        a, b = rng.choice(pool)
        kind = rng.randrange(9)
        if kind == 0:
            pool.append((a * 1.5, b * 1.5))
        elif kind == 1 and b.dim() == 2:
            pool.append((a.t(), b.t()))
        elif kind == 2 and b.dim() and b.shape[0] > 1:
            pool.append((a[1:], b[1:]))
        elif kind == 3 and b.dim() == 2:
            pool.append((a[:, 0], b[:, 0]))
        elif kind == 4:
            a.mul_(0.5), b.mul_(0.5)
        elif kind == 5:
            a.add_(1), b.add_(1)
        elif kind == 6:
            c, d = rng.choice(pool)
            if d.shape == b.shape:
                a.copy_(c), b.copy_(d.clone())
        elif kind == 7:
            pool.append((a.clone(), b.clone()))
        elif b.numel():
            a.detach().reshape(-1)[0] = 3.0
            b.detach().reshape(-1)[0] = 3.0
        if len(pool) > 12:
            pool.pop(0)
    for a, b in pool:
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5)


@pytest.mark.parametrize("seed", range(8))
def test_random_gradients_through_views_and_writes(seed):
    torch = pytest.importorskip("torch")
    base = np.random.default_rng(seed).uniform(0.5, 1.5, (4, 5)).astype("float32")

    def program(lib, r):
        x = lib.tensor(base, requires_grad=True)
        y = x * 1.0
        views = [y]
        for _ in range(8):
            v = r.choice(views)
            kind = r.randrange(6)
            if kind == 0:
                v.mul_(2.0)
            elif kind == 1:
                v.add_(x.sum() * 0.1)
            elif kind == 2 and v.dim() == 2:
                views.append(v[:, 1:3])
            elif kind == 3:
                views.append(v.t() if v.dim() == 2 else v)
            elif kind == 4 and v.dim() == 2:
                v[0] = v[-1] * 3
            else:
                views.append(v * v.mean())
        loss = sum((v * v).sum() for v in views[-2:])
        loss.backward()
        return x.grad.numpy()
    try:
        want = program(torch, random.Random(seed))
    except RuntimeError as exc:                          # a saved value was overwritten: so it must be reported here
        assert "inplace" in str(exc) or "in-place" in str(exc)
        with pytest.raises(RuntimeError, match="inplace|in-place"):
            program(clnn, random.Random(seed))
        return
    np.testing.assert_allclose(program(clnn, random.Random(seed)), want, rtol=2e-4)


def test_synchronize_launches_what_is_recorded():
    x = clnn.ones(5)
    y = x * 3
    y += 1
    z = y.exp()
    assert z._storage.node is not None
    clnn.synchronize()
    assert y._storage.node is None and z._storage.node is None
    clnn.synchronize(clnn.ones(1).device)
    assert y.tolist() == [4.0] * 5


def test_repeated_calls_give_fresh_results_of_their_own_operands():
    f = clnn.nn.functional
    arrays = [np.random.default_rng(k).standard_normal((6, 9)).astype("float32") for k in range(5)]
    tensors = [clnn.tensor(a) for a in arrays]
    for call, plain in ((lambda t: f.softmax(t, -1), lambda a: np.exp(a) / np.exp(a).sum(-1, keepdims=True)),
                        (lambda t: clnn.cat([t, tensors[0]]), lambda a: np.concatenate([a, arrays[0]])),      # two operands are one at first
                        (lambda t: clnn.cat([t, t * 2]), lambda a: np.concatenate([a, a * 2])),
                        (lambda t: t[:, 2:5].max(1)[0], lambda a: a[:, 2:5].max(1))):
        got = [call(t) for t in (*tensors, *tensors)]
        got[-1].add_(1)
        for k, g in enumerate(got):
            np.testing.assert_allclose(g.numpy(), plain(arrays[k % 5]) + (g is got[-1]), rtol=1e-5)
    for t, a in zip(tensors, arrays):
        np.testing.assert_array_equal(t.numpy(), a)


def test_repeated_calls_record_gradients_of_tensors_in_lists():
    a, b = ready(3, 4), ready(4, 2)
    for step in range(5):
        a.requires_grad_(step > 2)
        got = [clnn.einsum("ij,jk->ik", [a, b]), clnn.einsum("ij,jk->ik", (a, b))]
        assert [g.requires_grad for g in got] == [step > 2] * 2


def test_repeated_calls_tell_zeros_apart():
    x = clnn.ones(3)
    ends = [(1 / clnn.nn.functional.pad(x, (1, 0), value=v))[0].item() for v in (0.0, 0.0, 0.0, -0.0, 0.0)]
    assert ends == [float("inf")] * 3 + [float("-inf"), float("inf")]


def test_constants_around_rows_are_those_of_numpy():
    for shape, pads in (((3, 5), (1, 2)), ((40, 3, 60, 2), (0, 0, 0, 0, 1, 1)), ((33, 3, 60, 3), (0, 0, 2, 1)), ((2, 3, 40, 50), (20, 1, 0, 3)), ((9000,), (1, 3)),
                        ((0, 2), (1, 1))):
        x = np.arange(np.prod(shape), dtype="f").reshape(shape)
        pairs = [(0, 0)] * (len(shape) - len(pads) // 2) + [(pads[k], pads[k + 1]) for k in range(len(pads) - 2, -1, -2)]
        for values in (x, x > 2, x.astype("i8"), x.astype("c16")):
            for given in (clnn.tensor(values), clnn.tensor(np.ascontiguousarray(values.T)).permute(*range(len(shape) - 1, -1, -1)), clnn.tensor(values).clone()):
                np.testing.assert_array_equal(clnn.nn.functional.pad(given, pads, value=7).numpy(), np.pad(values, pairs, constant_values=7))


TIED = {
    "cosine": lambda f, x, y: f.cosine_similarity(x, y), "cosine of rows": lambda f, x, y: f.cosine_similarity(x[:1], y, dim=-1),
    "distance": lambda f, x, y: f.pairwise_distance(x, y, 1.5, keepdim=True), "normalize": lambda f, x, y: f.normalize(x * y, dim=0),
    "triplet": lambda f, x, y: f.triplet_margin_loss(x, y, x * 2, swap=True), "outer": lambda f, x, y: clnn.outer(x[0], y[1]),
    "deviation": lambda f, x, y: (x * y).std(0), "extremes": lambda f, x, y: x.max(1)[0] + y.amin(0)[:3], "norm": lambda f, x, y: (x * y).norm(3, 1),
    "gated": lambda f, x, y: f.glu(x * y), "products": lambda f, x, y: x.cumprod(1) + y.prod(1, keepdim=True),
    "fixed norm": lambda f, x, y: f.batch_norm(x, clnn.ones(4).double(), clnn.ones(4).double() * 2, y[0], y[1], False),
}


@pytest.mark.share(3)
@pytest.mark.parametrize("name", TIED)
def test_composites_as_one_entry_have_all_gradients(name):
    x, y = ready(3, 4).double(), ready(3, 4, seed=1).double()
    call, seen = TIED[name], []
    for values in (x, x + 2, 2 * x, x - 2):
        a, b = values.clone().requires_grad_(), y.clone().requires_grad_()
        r = call(clnn.nn.functional, a, b)
        r.sum().backward()
        seen.append((r.grad_fn.name(), b.grad is None))
        assert clnn.autograd.gradcheck(lambda a, b: call(clnn.nn.functional, a, b), (a.detach().requires_grad_(), b.detach().requires_grad_()))
    assert len(set(seen)) == 1
    assert clnn.autograd.gradgradcheck(lambda a, b: call(clnn.nn.functional, a, b), (a, b))
    plain = call(clnn.nn.functional, a.detach(), b.detach())
    assert not plain.requires_grad and clnn.equal(plain, call(clnn.nn.functional, a, b))


def test_calls_that_warn_are_not_repeated():
    x, y = clnn.randn(3, 4, requires_grad=True), clnn.rand(3, 4)
    for _ in range(4):
        with pytest.warns(UserWarning, match="batchmean"):
            clnn.nn.functional.kl_div(x, y)


def test_calls_that_wait_for_a_build_are_repeated_later():
    """A loop calls an operator many times before its kernels are built."""
    x, calls = ready(3, 5), []

    @repeated
    def body(t):
        calls.append(t)
        return clnn.cat([t, t])
    body(x).tolist()
    for _ in range(8):
        x._storage.device.waiting = True
        body(x)
    clnn.synchronize()
    for _ in range(4):
        last = len(calls)
        assert body(x).shape == (6, 5)
    assert len(calls) == last


def test_writes_are_repeated():
    """What writes rows into memory that exists has no results of its own."""
    for k in range(6):
        x = clnn.ones(3) * 1
        x[0] = float(k)
        index = clnn.tensor([2, 1])
        x[index] = float(k + 1)
        assert x.tolist() == [k, k + 1, k + 1]
    y, ones = clnn.zeros(6), clnn.ones(4)
    for k in range(6):
        y.index_add_(0, clnn.tensor([k, k, 5, 5]), ones)
    assert y.tolist() == [2, 2, 2, 2, 2, 14]


def test_repeated_calls_report_bad_indices():
    table = ready(4, 3)
    for bad in (False, False, False, True, False, True):
        if bad:
            with pytest.raises(IndexError, match="out of range"):
                clnn.nn.functional.embedding(clnn.tensor([0, 9]), table).tolist()
        else:
            got = clnn.nn.functional.embedding(clnn.tensor([0, 3]), table)
            assert got.shape == (2, 3) and got.tolist()[0] == table[0].tolist()


def test_gradients_lie_as_their_leaves():
    """A first gradient takes the memory order of its leaf, whatever order the rules left it in."""
    x = clnn.randn(1, 2, 3, 4).contiguous(memory_format=clnn.channels_last).requires_grad_()
    w = clnn.randn(1, 2, 3, 4)
    (x.contiguous() * w).sum().backward()
    assert x.grad.stride() == x.stride() and x.grad.tolist() == w.tolist()
    y = clnn.randn(3, 4).requires_grad_()
    (y.t() * clnn.ones(4, 3)).sum().backward()
    assert y.grad.stride() == (4, 1)


@pytest.mark.parametrize("words", [12, 30])
def test_kernels_have_no_more_parameters_than_a_device_takes(monkeypatch, words):
    """Some GPUs take 1024 bytes: what a long chain reads and writes would need more."""
    device = clnn.get_default_device().physical
    monkeypatch.setattr(device, "is_cpu", False)
    monkeypatch.setattr(device, "max_parameter", 8 * words)
    monkeypatch.setattr(fuse, "SURELY", 0)
    for owner, name in ((fuse, "_known"), (fuse, "_families"), (akin, "_strided")):     # structures that were judged by another limit
        monkeypatch.setattr(owner, name, {})
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((3, 4, 5)).astype(np.float32) for _ in range(9)]
    tensors, want = [clnn.tensor(a.transpose(2, 1, 0).copy()).permute(2, 1, 0) for a in arrays], np.zeros((3, 4, 5), np.float32)
    groups = []
    monkeypatch.setattr(fuse, "_Launch", lambda dev, group, *more, plain=fuse._Launch: groups.append(group) or plain(dev, group, *more))
    chain, kept = clnn.zeros(3, 4, 5), []
    for a, t in zip(arrays, tensors):
        chain, want = chain * 0.5 + t, want * np.float32(0.5) + a
        kept.append((chain, want))
    assert np.allclose((chain * chain).sum((0, 2)).numpy(), (want * want).sum((0, 2)), rtol=1e-5)
    into = clnn.empty(3, 5, 4).transpose(1, 2)
    into.copy_(chain - tensors[0])
    assert np.array_equal(into.numpy(), want - arrays[0])
    assert all(np.array_equal(t.numpy(), a) for t, a in kept)
    assert groups and max(len(g.leaves) for g in groups) <= words // 4


def test_new_sizes_of_a_structure_take_the_kernel_of_others(monkeypatch):
    """Sizes around what vectors and tasks take, of none and of several dimensions, with one element that serves all; nothing is written for them anew."""
    from clnn._tensor import repeat
    for owner, name, value in ((repeat, "on", False), (fuse, "_known", {}), (fuse, "_families", {})):
        monkeypatch.setattr(owner, name, value)
    rng, visits, visit = np.random.default_rng(0), [], fuse.Group.visit
    monkeypatch.setattr(fuse.Group, "visit", lambda self, node: visits.append(node.shape) or visit(self, node))
    for shape in ((), (1,), (7,), (3, 5), (4096,), (4095, 3), (1, 1), (2, 1, 9), (70000,), (5,), (15, 16, 17)):
        a, b = (rng.standard_normal(shape).astype(np.float32) for _ in range(2))
        x, y, one = clnn.tensor(a), clnn.tensor(b), clnn.tensor(0.5) * clnn.tensor([2.0])[0]
        one.item()
        for k in range(2):
            np.testing.assert_array_equal(((x + y) * one + 0.25 * k).numpy(), (a + b) + np.float32(0.25 * k))
        np.testing.assert_array_equal((x.t() if x.ndim == 2 else x).clamp(min=0).numpy(), np.maximum(a.T if a.ndim == 2 else a, 0))
    assert visits.count((4095, 3)) <= 1 and visits.count((5,)) == visits.count((15, 16, 17)) == visits.count((70000,)) == 0
