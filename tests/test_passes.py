"""Backward passes that are repeated as lists of launches do all that walking the graph does. The values are compared for each operator by ``repeats``."""
import numpy as np
import pytest

import clnn
from clnn import nn
from clnn._tensor import passes, repeat
from clnn.nn import functional as F


@pytest.fixture(autouse=True)
def counted(monkeypatch):
    """The number of passes that were repeated."""
    passes._known.clear()
    passes._known.misses.clear()
    real, count = passes._again, []
    monkeypatch.setattr(passes, "_again", lambda *args: count.append(1) or real(*args))
    return count


def test_a_training_loop_repeats_its_pass_and_learns_the_same(counted, monkeypatch):
    def train():
        clnn.manual_seed(3)
        net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 3))
        opt = clnn.optim.SGD(net.parameters(), 0.1, momentum=0.9)
        losses = []
        for _ in range(10):                     # the graph is another one once its layers are spliced
            x, y = clnn.randn(5, 1, 8, 8), clnn.randint(0, 3, (5,))
            loss = F.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())            # kernels are built by now
        return losses, [p.detach().numpy() for p in net.parameters()]
    got = train()
    assert len(counted) >= 5
    monkeypatch.setattr(passes, "_told", lambda *args: None)
    want = train()
    np.testing.assert_allclose(got[0], want[0], rtol=1e-5)
    for g, w in zip(got[1], want[1]):
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-6)


def test_gradients_add_up_in_the_tensor_that_is_there(counted):
    x = clnn.ones(3, requires_grad=True)
    (x * 2).sum().backward()
    held, seen = x.grad, x.grad._version
    for n in range(2, 9):
        (x * 2).sum().backward()
        assert x.grad is held and x.grad._version > seen and x.grad.tolist() == [2.0 * n] * 3
        seen = x.grad._version
    assert counted


def test_gradients_of_one_value_are_not_one_memory(counted):
    for _ in range(5):
        x, y, w = (clnn.ones(4, requires_grad=True) for _ in range(3))
        (x + y + w * 1).sum().backward()
        x.grad.mul_(5)
        y.grad[1] = 7
        assert (x.grad.tolist(), y.grad.tolist(), w.grad.tolist()) == ([5] * 4, [1, 7, 1, 1], [1] * 4)
    assert counted


def test_a_graph_is_used_up(counted):
    for n in range(6):
        x = clnn.full((3,), n + 1.0, requires_grad=True)
        y = (x * x).sum()
        y.backward(retain_graph=True)
        y.backward()
        assert x.grad.tolist() == [4.0 * (n + 1)] * 3
        with pytest.raises(RuntimeError, match="a second time"):
            y.backward()
    assert counted


def test_a_saved_value_that_was_overwritten_is_refused(counted):
    for n in range(7):
        x = clnn.ones(3, requires_grad=True)
        h = x.exp()
        y = (h * h).sum()
        if n > 4:
            h.detach().mul_(2)
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                y.backward()
        else:
            y.backward()
            assert x.grad.sum().item() > 1
    assert counted


def test_hooks_and_retained_gradients_are_seen_each_time(counted):
    seen = []
    for n in range(6):
        x = clnn.ones(3, requires_grad=True)
        h = x * 2
        if n % 2:
            h.register_hook(lambda g: seen.append(g.tolist()) or g * 3)
        if n == 4:
            h.retain_grad()
        (h * 5).sum().backward()
        assert x.grad.tolist() == [30.0 if n % 2 else 10.0] * 3
        assert n != 4 or h.grad.tolist() == [5.0] * 3
    assert seen == [[5.0] * 3] * 3


def test_after_accumulation_hooks_are_called_each_time(counted):
    calls, x = [], clnn.ones(3, requires_grad=True)
    for _ in range(6):
        (x * 2).sum().backward()
        clnn.synchronize()                      # kernels are built by now
    x.register_post_accumulate_grad_hook(lambda p: calls.append(p.grad.tolist()))
    for n in range(7, 10):
        (x * 2).sum().backward()
    assert calls == [[2.0 * n] * 3 for n in range(7, 10)] and counted


@pytest.mark.parametrize("attribute", [(2.0, 3.0), (0.0, -0.0), (1, 1.5)])
def test_attributes_tell_graphs_apart(counted, attribute):
    for n in range(12):
        a = attribute[n % 2]
        x = clnn.ones(3, requires_grad=True)
        clnn.add(x * x, x, alpha=a).sum().backward()
        assert x.grad.tolist() == [2.0 + a] * 3
        x.grad = None
        (x * a).sum().backward()
        assert np.array_equal(np.signbit(x.grad.numpy()), np.signbit(np.full(3, float(a))))
    assert counted


def test_gradients_of_inputs_and_what_a_program_asks_for(counted):
    for n in range(6):
        x, w = clnn.full((2, 3), n + 1.0, requires_grad=True), clnn.full((3,), 2.0, requires_grad=True)
        y = (x * w).pow(2).sum()
        gx, = clnn.autograd.grad(y, [x], retain_graph=True)
        gw, none = clnn.autograd.grad(y, [w, clnn.ones(1, requires_grad=True)], allow_unused=True)
        assert none is None and gx.tolist() == [[8.0 * (n + 1)] * 3] * 2 and gw.tolist() == [8.0 * (n + 1) ** 2] * 3
        assert x.grad is None
    assert counted


def test_values_that_wait_are_computed_as_before(counted):
    for n in range(6):
        x = clnn.full((4,), float(n), requires_grad=True)
        h = (x + 1).sin()
        loss = (h * 2).mean()
        loss.backward()
        np.testing.assert_allclose(h.detach().numpy(), np.sin(n + 1.0) * np.ones(4), rtol=1e-6)
        np.testing.assert_allclose(loss.item(), 2 * np.sin(n + 1.0), rtol=1e-6)
        np.testing.assert_allclose(x.grad.numpy(), np.full(4, np.cos(n + 1.0) / 2), rtol=1e-5, atol=1e-7)
    assert counted


def test_programs_of_ever_new_graphs_are_looked_at_seldom():
    for n in range(100):
        x = clnn.ones(2, requires_grad=True)
        (x * (n + 0.5)).sum().backward()
        assert x.grad.tolist() == [n + 0.5] * 2
    assert max(passes._known.misses.values()) >= passes._MISSES and len(passes._known.met) < 60


def test_larger_passes_are_walked(monkeypatch, counted):
    monkeypatch.setattr(passes, "_BYTES", 1 << 10)
    w = clnn.randn(20, 20, requires_grad=True)
    for _ in range(5):
        w.grad = None
        (w @ w).tanh().sum().backward()
    assert not counted


def test_a_cell_step_has_the_gradients_of_its_operators():
    for cell, parts in ((nn.GRUCell(3, 5), 1), (nn.LSTMCell(3, 5), 2)):
        cell = cell.double() if clnn.get_default_device().physical.has_fp64 else cell
        dtype = cell.weight_ih.dtype
        x, h, c = (clnn.randn(4, n, dtype=dtype, requires_grad=True) for n in (3, 5, 5))
        for bias in (True, False):
            if not bias:
                cell.bias_ih = cell.bias_hh = None
            leaves = [x, h, *([c] if parts == 2 else []), *cell.parameters()]
            outs = cell(x, h) if parts == 1 else cell(x, (h, c))
            outs = outs if isinstance(outs, tuple) else (outs,)
            got = clnn.autograd.grad([(o * o).sum() for o in outs], leaves, retain_graph=True)
            again = clnn.autograd.grad([(o * o).sum() for o in outs], leaves, create_graph=True)       # through its decomposition
            for a, b in zip(got, again):
                assert clnn.allclose(a, b, rtol=1e-4, atol=1e-6)


def test_random_numbers_advance(counted, monkeypatch):
    def train():
        clnn.manual_seed(5)
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
        head = nn.Sequential(nn.Dropout(0.3), nn.Linear(8, 3), nn.AlphaDropout(0.2), nn.RReLU())
        opt = clnn.optim.SGD([*layer.parameters(), *head.parameters()], 1e-2)
        x, y, losses = clnn.randn(8, 6, 8), clnn.randint(0, 3, (8,)), []
        for _ in range(14):
            loss = F.cross_entropy(head(layer(x).mean(1)), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        return losses
    got = train()
    assert len(counted) >= 5 and len(set(got)) == len(got)
    monkeypatch.setattr(passes, "_told", lambda *args: None)
    np.testing.assert_allclose(got, train(), rtol=1e-5)


def test_what_else_follows_from_a_place_in_the_stream_is_not_repeated():
    class Launch:
        kernel = where = None

        def __init__(self, *args):
            self.args = args

    def recipe(*args):
        r = repeat.Recipe()
        r.sizes, r.results, r.launches = [4], [], [(Launch(*args), None, [0])]
        return r
    assert repeat.alike(recipe(repeat.NUMBER, 5), recipe(repeat.NUMBER, 5)) and not repeat.alike(recipe(repeat.NUMBER, 5), recipe(repeat.NUMBER, 6))


@pytest.mark.parametrize("name", ["scaled", "divided", "plus", "cat", "stack", "sum", "dropout", "relu", "alpha", "beta", "tril"])
def test_which_graphs_serve_twice(name):
    """Without retain_graph a graph serves again only where PyTorch's does, in passes that are walked and in repeated ones."""
    torch = pytest.importorskip("torch")

    def again(m):
        made = dict(scaled=lambda x: 2 * x, divided=lambda x: x / 2, plus=lambda x: x + 1, cat=lambda x: m.cat([x, x]), stack=lambda x: m.stack([x, x]),
                    sum=lambda x: x.sum(), dropout=lambda x: m.nn.functional.dropout(x, 0.5), relu=lambda x: x.relu(),
                    alpha=lambda x: m.add(x, x, alpha=2), beta=lambda x: m.addmv(x, m.ones(3, 3), m.ones(3), beta=2), tril=lambda x: x.expand(3, 3).tril())[name]
        found = []
        for _ in range(4):
            y = made(m.ones(3, requires_grad=True)).sum()
            y.backward()
            try:
                y.backward()
                found.append(True)
            except RuntimeError as e:
                found.append("a second time" not in str(e))
        return found
    assert again(clnn) == again(torch)
