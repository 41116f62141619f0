"""Training steps of sizes that were never met: what families say of calls that record gradients and of whole backward passes, and the results of both."""
import numpy as np
import pytest

import clnn
from clnn import nn
from clnn._tensor import passes, repeat
from clnn.core import families
from clnn.core.config import config
from clnn.nn import functional as F

pytestmark = pytest.mark.skipif(not repeat.on or not clnn.get_default_device().physical.is_cpu, reason="calls are not repeated, or wait for kernels")
rand = np.random.default_rng(0)


class Graph(nn.Module):
    """Messages along edges, added up."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 3)

    def forward(self, x, s, d):
        h = clnn.relu(self.first(clnn.zeros(len(x), 6).index_add(0, d, x[s]) + x))
        return self.last(clnn.zeros(len(x), 8).index_add(0, d, h[s]) + h)


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.net, self.out = nn.Embedding(30, 8), nn.GRU(8, 16, batch_first=True), nn.Linear(16, 30)

    def forward(self, ids):
        return self.out(self.net(self.embed(ids))[0])


def values(*shape):
    return clnn.tensor(rand.standard_normal(shape).astype(np.float32))


def numbers(most, *shape):
    return clnn.tensor(rand.integers(0, most, shape))


# name: (a module, (module, size) -> a loss)
PROGRAMS = {
    "perceptron": (lambda: nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 4)),
                   lambda m, n: F.cross_entropy(m(values(n, 6)), numbers(4, n))),
    "statistics": (lambda: nn.Sequential(nn.Linear(5, 12), nn.BatchNorm1d(12), nn.GELU(), nn.Dropout(0.3), nn.Linear(12, 1)),
                   lambda m, n: F.mse_loss(m(values(n, 5)), values(n, 1))),
    "graph": (Graph, lambda m, n: F.cross_entropy(m(values(n, 6), numbers(n, 3 * n), numbers(n, 3 * n)), numbers(3, n))),
    "recurrent": (Words, lambda m, n: F.cross_entropy(m(numbers(30, 3, n)).flatten(0, 1), numbers(30, 3 * n))),
    "encoder": (lambda: nn.TransformerEncoderLayer(16, 2, 32, dropout=0.2, batch_first=True), lambda m, n: m(values(3, n, 16)).square().mean()),
    "dropped weights": (lambda: nn.MultiheadAttention(8, 2, dropout=0.3, batch_first=True),       # so many that they are dropped by counted blocks
                        lambda m, n: (lambda x: m(x, x, x, need_weights=False)[0])(values(64, n + 55, 8)).square().mean()),
}
SIZES = [17, 19, 23, 18, 29, 21, 22, 26, 27, 31, 25, 28]


def train(name, sizes, seed=1):
    clnn.manual_seed(seed)
    rng = np.random.default_rng(seed)
    global rand
    rand, (make, loss) = rng, PROGRAMS[name]
    module, out = make(), []
    opt = clnn.optim.SGD(module.parameters(), 0.05)
    for n in sizes:
        opt.zero_grad()
        got = loss(module, n)
        got.backward()
        out.append([got.item(), *[p.grad.numpy() for p in module.parameters()]])
        opt.step()
    return out


@pytest.mark.parametrize("name", PROGRAMS)
def test_families_say_what_steps_do(name, monkeypatch):
    """Never trusted here, so that each call and each pass is observed, and compared with what its family says."""
    monkeypatch.setattr(families, "CHECKS", 1 << 60)
    passes._known.clear()
    said, check = [], families.Family.check

    def compare(self, variant, one, other, same):
        said.append((type(one).__name__, check(self, variant, one, other, same)))
        return said[-1][1]
    monkeypatch.setattr(families.Family, "check", compare)
    train(name, SIZES + [n + 16 for n in SIZES])
    assert {"Template", "Recipe"} <= {kind for kind, _ in said} and all([right for _, right in said])


@pytest.mark.parametrize("name", PROGRAMS)
def test_steps_of_sizes_that_were_never_met(name, monkeypatch):
    """With families and without: the same bits."""
    train(name, SIZES)                                          # kernels are built
    sizes = [n + d for d in (0, 1, 2) for n in SIZES]
    passes._known.clear()
    passes._known.misses.clear()
    got = train(name, sizes, 7)
    monkeypatch.setattr(repeat, "on", False)
    want = train(name, sizes, 7)
    for n, one, other in zip(sizes, got, want):
        for a, b in zip(one, other):
            assert np.array_equal(a, b), (n, np.abs(np.asarray(a) - b).max())


def test_a_step_of_a_new_size_works_nothing_out(monkeypatch):
    sizes = list(range(20, 60))
    passes._known.clear()
    passes._known.misses.clear()
    train("perceptron", sizes)
    walked, observed, real = [], [], passes._walked
    monkeypatch.setattr(passes, "_walked", lambda *args: walked.append(1) or real(*args))
    observe = repeat.observe
    monkeypatch.setattr(repeat, "observe", lambda *args, **kwargs: observed.append(1) or observe(*args, **kwargs))
    train("perceptron", [n for n in range(30, 60)][::-1])
    assert len(walked) + len(observed) < 6


def test_another_seed_is_another_case():
    """Places in the stream of random numbers go on from call to call, under whatever seed: no mask comes twice."""
    layer, x = nn.MultiheadAttention(8, 2, dropout=0.5, batch_first=True), values(64, 72, 8)

    def masked():
        return layer(x, x, x, need_weights=False)[0].detach().numpy()
    first = []
    for seed in (11, 12, 11):
        clnn.manual_seed(seed)
        first.append([masked() for _ in range(6)])
        assert len({a.tobytes() for a in first[-1]}) == 6
    assert all(np.array_equal(a, b) for a, b in zip(first[0], first[2])) and not np.array_equal(first[0][0], first[1][0])


def test_the_first_places_of_a_stream():
    """They are small numbers, which are one object wherever they are used."""
    layer, x, seen = nn.TransformerEncoderLayer(8, 2, 8, dropout=0.3, batch_first=True), values(64, 72, 8), []
    for _ in range(5):
        clnn.manual_seed(11)
        y = layer(x)
        y.sum().backward()
        seen.append(y.detach().numpy())
    assert all([np.array_equal(a, seen[0]) for a in seen])


def test_layers_of_other_widths_are_another_family():
    """Parameters are no arguments of a run of layers: their sizes tell it from others, and do not vary."""
    passes._known.clear()
    told = []
    for width in (5, 7, 9, 11):
        net = nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Linear(width, 3), nn.Tanh())
        for n in range(12, 42):
            loss = net(values(n, 6)).square().mean()
            loss.backward()
            loss.item()                     # kernels that are still to be built would keep it from being learned
            if n > 31:
                template = getattr(net(values(n + 100, 6))._grad_fn, "template", None)
                told.append(template is not None and template.kin is not None)
    assert sum(told) >= 0.7 * len(told)


def test_masks_of_counted_blocks_differ(monkeypatch):
    """As on GPUs, where all dropout takes places of the stream."""
    monkeypatch.setattr(config, "random", "philox")
    clnn.manual_seed(3)
    clnn.rand(20000)
    net, x, seen = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 4)), clnn.ones(5, 8), set()
    for _ in range(12):
        y = net(x)
        y.sum().backward()
        seen.add(y.detach().numpy().tobytes())
    assert len(seen) == 12 and type(y._grad_fn).__name__ == "SplicedNode"
    place = clnn.get_rng_state()
    net.zero_grad()
    net(x).sum().backward()
    got = [p.grad.numpy().copy() for p in net.parameters()]
    clnn.set_rng_state(place)
    monkeypatch.setattr(repeat, "on", False)
    net.zero_grad()
    net(x).sum().backward()
    assert all([np.array_equal(a, p.grad.numpy()) for a, p in zip(got, net.parameters())])
