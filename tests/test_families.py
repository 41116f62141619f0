"""Recipes for sizes that were never met: traced numbers, what a family says against what its body does, and the results of both."""
import functools
import threading

import numpy as np
import pytest

import clnn
from clnn import nn
from clnn._tensor import repeat
from clnn._tensor.families import OfBody, traced
from clnn.core import families, shape, symbols, warn
from clnn.core import rng as streams
from clnn.nn import functional as F

rand = np.random.default_rng(0)


def tensor(*shape):
    return clnn.tensor(rand.standard_normal(shape).astype(np.float32))


WEIGHTS = {}


def weight(*shape):
    if shape not in WEIGHTS:
        WEIGHTS[shape] = tensor(*shape)
    return WEIGHTS[shape]


def places(n, most):
    return clnn.tensor(rand.integers(0, most, n))


class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(16, 24), nn.Linear(24, 16)

    def forward(self, x):
        N, L, E = x.shape
        return x + self.last(F.relu(self.first(x))).view(N, L, E)


def frozen(make):
    """One module, which records no gradients."""
    return functools.lru_cache(lambda: make().eval().requires_grad_(False))


layers = frozen(lambda: nn.Sequential(nn.Linear(12, 20), nn.GELU(), nn.Linear(20, 8)))
encoder = frozen(lambda: nn.TransformerEncoderLayer(16, 2, 32, batch_first=True))
own, recurrent = frozen(Own), frozen(lambda: nn.GRU(16, 8, batch_first=True))

# name: (the operands for a size, the function, the same in NumPy or None)
CALLS = {
    "cat": (lambda n: (tensor(4, n), tensor(4, 3)), lambda x, y: clnn.cat([x, y], 1), lambda x, y: np.concatenate([x, y], 1)),
    "cat of many": (lambda n: tuple(tensor(n, 2) for _ in range(6)), lambda *t: clnn.cat(t, 1), lambda *t: np.concatenate(t, 1)),
    "stack": (lambda n: (tensor(n), tensor(n)), lambda *t: clnn.stack(t, -1), lambda *t: np.stack(t, -1)),
    "softmax of rows": (lambda n: (tensor(3, n),), lambda x: F.softmax(x, -1), lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True)),
    "softmax of columns": (lambda n: (tensor(n, 5),), lambda x: F.softmax(x, 0), lambda x: np.exp(x) / np.exp(x).sum(0)),
    "matmul": (lambda n: (tensor(n, 24), tensor(24, n)), clnn.matmul, np.matmul),
    "products of a batch": (lambda n: (tensor(2, n, 16), tensor(2, 16, 9)), clnn.bmm, np.matmul),
    "linear": (lambda n: (tensor(2, n, 48),), lambda x: F.linear(x, weight(20, 48), weight(20)),
               lambda x: x @ weight(20, 48).numpy().T + weight(20).numpy()),
    "columns of a part": (lambda n: (tensor(n, 30),), lambda x: x[:, 3:19] @ weight(16, 8), lambda x: x[:, 3:19] @ weight(16, 8).numpy()),
    "attention": (lambda n: (tensor(1, 2, n, 16), tensor(1, 2, n, 16), tensor(1, 2, n, 16)),
                  lambda *t: F.scaled_dot_product_attention(*t, is_causal=True), None),
    "one query": (lambda n: (tensor(1, 2, 1, 16), tensor(1, 2, n, 16), tensor(1, 2, n, 16)), F.scaled_dot_product_attention, None),
    "layer norm": (lambda n: (tensor(n, 33),), lambda x: F.layer_norm(x, (33,)), lambda x: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)),
    "sum of rows": (lambda n: (tensor(n, 7),), lambda x: x.sum(1), lambda x: x.sum(1)),
    "mean": (lambda n: (tensor(n, 7),), lambda x: x.mean(0), lambda x: x.mean(0)),
    "argmax": (lambda n: (tensor(n, 6),), lambda x: x.argmax(0), lambda x: x.argmax(0)),
    "cumsum": (lambda n: (tensor(n, 3),), lambda x: x.cumsum(0), lambda x: x.cumsum(0)),
    "sort": (lambda n: (tensor(2, n),), lambda x: x.sort(-1)[0], lambda x: np.sort(x, -1)),
    "rows by index": (lambda n: (tensor(50, 6), places(n, 50)), lambda x, i: x[i], lambda x, i: x[i]),
    "of so many rows": (lambda n: (tensor(n, 600), places(12, n)), lambda x, i: x[i], lambda x, i: x[i]),
    "embedding": (lambda n: (places((2, n), 40),), lambda i: F.embedding(i, weight(40, 12)), lambda i: weight(40, 12).numpy()[i]),
    "pad": (lambda n: (tensor(2, n),), lambda x: F.pad(x, (1, 2)), lambda x: np.pad(x, ((0, 0), (1, 2)))),
    "repeat": (lambda n: (tensor(1, n, 8),), lambda x: x.repeat(2, 1, 1), lambda x: np.tile(x, (2, 1, 1))),
    "norm": (lambda n: (tensor(n, 5),), lambda x: x.norm(dim=-1), lambda x: np.sqrt((x * x).sum(-1))),
    "heads": (lambda n: (tensor(2, n, 24),), lambda x: x.view(2, -1, 3, 8).transpose(1, 2).contiguous(),
              lambda x: x.reshape(2, -1, 3, 8).transpose(0, 2, 1, 3)),
    "flip": (lambda n: (tensor(2, n, 6),), lambda x: x.flip(1), lambda x: x[:, ::-1]),
    "turned": (lambda n: (tensor(n, 6), tensor(6, n)), lambda x, y: clnn.maximum(x.t(), y) * y, lambda x, y: np.maximum(x.T, y) * y),
    "last row": (lambda n: (tensor(2, n, 6),), lambda x: x[:, -1] * 2, lambda x: x[:, -1] * 2),
    "max pool": (lambda n: (tensor(1, 3, n + 2),), lambda x: F.max_pool1d(x, 2), None),
    "cross entropy": (lambda n: (tensor(n, 9), places(n, 9)), F.cross_entropy, None),
    "layers": (lambda n: (tensor(2, n, 12),), lambda x: layers()(x), None),
    "encoder layer": (lambda n: (tensor(2, n, 16),), lambda x: encoder()(x), None),
    "a program's module": (lambda n: (tensor(2, n, 16),), lambda x: own()(x), None),
    "gated recurrent": (lambda n: (tensor(2, n, 16),), lambda x: recurrent()(x)[0], None),
    "distances": (lambda n: (tensor(n, 3), tensor(8, 3)), clnn.cdist, lambda x, y: np.sqrt(((x[:, None] - y[None]) ** 2).sum(-1))),
}
SIZES = [5, 9, 14, 17, 31, 33, 64, 71, 100, 127, 150, 201, 256, 300, 13, 47, 81, 1, 2, 3]


def computed(name, n):
    make, function, reference = CALLS[name]
    operands = make(n)
    got = function(*operands)
    values = got.numpy()                                        # now, or kernels would wait to be built
    if reference is not None:
        assert np.allclose(values, reference(*[t.numpy() for t in operands]), 1e-4, 1e-4), n
    return operands, got


@pytest.mark.parametrize("name", CALLS)
def test_families_say_what_bodies_do(name, monkeypatch):
    """Never trusted here, so that each call is observed, and compared with what the family says."""
    monkeypatch.setattr(families, "CHECKS", 1 << 60)
    said, check = [], families.Family.check

    def compare(self, variant, one, other, same):
        said.append(same(one, other))
        return check(self, variant, one, other, same)
    monkeypatch.setattr(families.Family, "check", compare)
    for n in SIZES + [n + 1000 for n in SIZES]:
        computed(name, n)
    if clnn.get_default_device().physical.is_cpu and repeat.on:
        assert said, "no call was one of a family"
    assert all(said)


@pytest.mark.parametrize("name", CALLS)
def test_results_of_sizes_that_were_never_met(name, monkeypatch):
    """With families and without: the same bits."""
    for n in (19, 23, 29, 37, 41, 43):                          # for the kernels to be built, and the family to be trusted
        computed(name, n)
    for n in (53, 59, 61, 67, 73, 79) * 3:                      # the second time it is kept, the third time it is known
        operands, got = computed(name, n)
        with monkeypatch.context() as m:
            m.setattr(repeat, "on", False)
            want = CALLS[name][1](*operands)
            assert got.shape == want.shape and np.array_equal(got.numpy(), want.numpy()), n


def test_a_family_serves_new_sizes(monkeypatch):
    if not repeat.on:
        pytest.skip("calls are not repeated")
    x = [tensor(n, 6) for n in range(3, 40)]
    for t in x[:20]:
        clnn.cumsum(t, 0)
    clnn.synchronize()
    observed = []
    monkeypatch.setattr(repeat, "observe", lambda *args: observed.append(args) or pytest.fail("observed"))
    for t in x[20:]:
        assert np.allclose(clnn.cumsum(t, 0).numpy(), t.numpy().cumsum(0), 1e-5, 1e-5)
    assert not observed


def test_numbers():
    with symbols.Trace([12, 5]) as trace:
        n, m = trace.inputs
        assert isinstance(n, int) and n.__class__ is int and n * m == 60 and -(-n // m) == 3 and divmod(n, m) == (2, 2) and 2 ** m == 32
        assert (n * 4 // 4) is n and n * 4 % 4 == 0 and n + 0 is n and (n << 1 | 1) == 25 and abs(-n) == 12 and (n - 1).bit_length() == 4
        assert n > m and not n < m and bool(n) and max(n, m) is n and sum([n, m]) == 17 and n / 8 == 1.5
        tiles, nothing = -(-n // 8), n % 4
        assert n >= 8 and shape.contiguous_strides((n, m, 3))[1:] == (3, 1)
        with pytest.raises(symbols.Refused):
            {n: 1}
        for plain in (int, float, str, range, lambda x: f"{x}", lambda x: [0, 1][x]):
            with pytest.raises(symbols.Refused):
                plain(n)
        assert symbols.larger(m, 8) == 8 and symbols.call(lambda a, b: (a, b), n, "b").value == (12, "b")
        make = trace.function(trace.text([(n, "x"), tiles, nothing, symbols.larger(m, 8), symbols.real(m)]))
    assert symbols.tracing is None and make(12, 5) == [(12, "x"), 2, 0, 8, 5.0]
    assert make(13, 5) is None and make(12, 6) is None and make(4, 5) is None


def test_choices_and_searches():
    calls = []

    @symbols.choice
    def side(n, name):
        calls.append(n)
        return "long" if n > 100 else "short"

    @symbols.computed
    def half(n):
        return n // 2
    assert side(7, "x") == "short" and half(9) == 4
    with symbols.Trace([150]) as trace:
        n, = trace.inputs
        assert side(n, "x") == "long" and half(n).value == 75 and side(3, "x") == "short"
        make = trace.function(trace.text((half(n), side(n, "x"))))
    assert make(300) == (150, "long") and make(99) is None


def test_a_trace_draws_no_random_numbers_and_warns_of_nothing(monkeypatch):
    """What a body must not do twice ends its trace, and leaves no mark."""
    device = clnn.get_default_device().physical

    def draws(x):
        streams.current().take(3)
        return clnn.empty(x.shape)

    def warns(x):
        warn.warn("twice")
        return clnn.empty(x.shape)
    for body in (draws, warns):
        place, family = streams.current().position(), families.Family([1])
        family.learn([4], traced, OfBody(body, (clnn.ones(4),)), ("", False, *(clnn.ones(4).shape, (1,), 0, clnn.float32, device)), [], 0, device, repeat._recipe)
        assert not family.variants and family.failures == 1 and streams.current().position() == place and device.recording is None


def test_another_thread_works_during_a_trace():
    """Its launches are its own."""
    device, results = clnn.get_default_device().physical, []

    def body(x):
        thread = threading.Thread(target=lambda: results.append((clnn.ones(5) * 3).sum().item()))
        thread.start()
        thread.join(0.2)                                        # it may wait for the trace to end
        started.append(thread)
        return clnn.empty(x.shape)
    started, family = [], families.Family([0, 0, 0])
    x = clnn.ones(6)
    family.learn([6, 1, 0], traced, OfBody(body, (x,)), ("", False, x.shape, (1,), 0, clnn.float32, device), [], 0, device, repeat._recipe)
    for thread in started:
        thread.join(30)
    assert results == [15.0] * len(started) and started and device.recording is None


class InPlace(nn.Module):
    def __init__(self, *layers):
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        x += 1
        return self.layers(x)


@clnn.no_grad()
@pytest.mark.parametrize("make", [lambda: InPlace(nn.Flatten()), lambda: InPlace(nn.ReLU(inplace=True), nn.Conv2d(2, 2, 1)),
                                  lambda: nn.Sequential(nn.Dropout(), nn.ReLU(True), nn.Conv2d(2, 2, 1))], ids=["own", "layer", "behind dropout"])
def test_a_trace_leaves_what_a_module_writes_in_place(make):
    """The body of a trace does what the module does, also to its argument; there the memory that it would write is not."""
    clnn.manual_seed(0)
    module = make().eval()
    for n in (2, 3, 4, 5, 3, 6):
        before = tensor(1, 2, n, n)
        given, other = before * 1, before * 1
        got = module(given)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(families, "find", lambda *a: (None, None))
            expected = module(other)
        assert got.equal(expected) and given.equal(other) and given._version == other._version
