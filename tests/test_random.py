"""Random numbers: the bits of the stream, distributions, generators, and dropout that repeats its mask."""
import copy
import math
import pickle

import numpy as np
import pytest

import clnn
from clnn.core import rng
from clnn.core.config import config

N = 40000


@pytest.fixture
def philox():
    before, config.random = config.random, "philox"
    yield
    config.random = before


def draws(seed, count):
    return rng.philox(seed, 0, -(-count // 4)).reshape(-1)[:count]


def test_philox_reference_values():
    """Known answers of Philox4x32-10 from the authors' test vectors, counter and key zero and all ones."""
    assert [hex(v) for v in rng.philox(0, 0, 1)[0]] == ["0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"]


def test_device_bits_are_the_host_bits(philox):
    clnn.manual_seed(123)
    u = clnn.rand(10007).numpy()
    assert (u == (draws(123, 10007) >> 8) * np.float32(2.0 ** -24)).all()
    clnn.manual_seed(5)
    z = clnn.randn(1000, dtype=clnn.float64).numpy() if clnn.get_default_device().physical.has_fp64 else None
    if z is not None:
        w = rng.philox(5, 0, 500).view(np.uint64)
        radius = np.sqrt(-2 * np.log(((w[:, 0] >> np.uint64(11)).astype(float) + 0.5) * 2.0 ** -53))
        angle = w[:, 1].astype(float) * (2 * np.pi / 2 ** 64)
        assert np.allclose(z, np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).reshape(-1), atol=1e-9)


def test_doubles_are_refused_in_words_where_there_are_none(device):
    if device.has_fp64:
        pytest.skip("this device has fp64")
    for draw in (clnn.rand, clnn.randn):
        with pytest.raises(TypeError, match="float64 is not supported"):
            draw(3, dtype=clnn.float64)


def test_normal_bits_are_the_same_everywhere(philox):
    """A fingerprint of float32 normal numbers: whatever driver runs this must find the same."""
    clnn.manual_seed(123)
    x = clnn.randn(100003).numpy().view(np.uint32)
    assert (int(np.bitwise_xor.reduce(x)), int(x.sum(dtype=np.uint64))) == (1300281046, 213003353161614)


def test_successive_draws_do_not_overlap_and_shapes_do_not_matter():
    clnn.manual_seed(0)
    a, b = clnn.rand(8), clnn.rand(8)
    clnn.manual_seed(0)
    both = clnn.rand(2, 8)
    assert clnn.equal(both, clnn.stack([a, b])) and not clnn.equal(a, b)


@pytest.mark.parametrize("draw, mean, std", [
    (lambda: clnn.rand(N), 0.5, 12 ** -0.5), (lambda: clnn.randn(N), 0, 1), (lambda: clnn.empty(N).uniform_(-2, 4), 1, 6 / 12 ** 0.5),
    (lambda: clnn.empty(N).normal_(3, 0.5), 3, 0.5), (lambda: clnn.empty(N).exponential_(2.0), 0.5, 0.5),
    (lambda: clnn.empty(N).geometric_(0.25), 4, math.sqrt(0.75) / 0.25), (lambda: clnn.empty(N).log_normal_(0.0, 0.5), math.exp(0.125), 0.604),
    (lambda: clnn.empty(N).bernoulli_(0.3), 0.3, 0.458), (lambda: clnn.bernoulli(clnn.full((N,), 0.8)), 0.8, 0.4),
    (lambda: clnn.randint(-3, 7, (N,)).float(), 1.5, 2.872), (lambda: clnn.empty(N, dtype=clnn.uint8).random_().float(), 127.5, 73.9),
    (lambda: clnn.poisson(clnn.full((N,), 4.0)), 4, 2), (lambda: clnn.normal(clnn.full((N,), 2.0), clnn.full((N,), 3.0)), 2, 3),
    (lambda: clnn.rand(N, dtype=clnn.float16).float(), 0.5, 12 ** -0.5), (lambda: clnn.randn(N, dtype=clnn.bfloat16).float(), 0, 1),
    (lambda: clnn.normal(1.0, 2.0, (N,)), 1, 2)], ids=range(16))
def test_moments(draw, mean, std):
    clnn.manual_seed(1)
    x = draw().numpy().astype(np.float64)
    assert abs(x.mean() - mean) < 5 * std / math.sqrt(N) and abs(x.std() / std - 1) < 0.03


def test_distributions_by_quantiles():
    clnn.manual_seed(2)
    q = np.array([0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99])
    z = np.quantile(clnn.randn(N).numpy(), q)
    assert np.allclose(z, [-2.326, -1.2816, -0.6745, 0, 0.6745, 1.2816, 2.326], atol=0.05)
    c = np.quantile(clnn.empty(N).cauchy_(1.0, 2.0).numpy(), q[2:5])
    assert np.allclose(c, [-1, 1, 3], atol=0.1)
    x = clnn.rand(N, dtype=clnn.float16)
    assert float(x.max()) < 1 and float(x.min()) >= 0
    assert float(clnn.rand(N, dtype=clnn.bfloat16).max()) < 1


def test_integers():
    clnn.manual_seed(3)
    x = clnn.randint(5, (N,)).numpy()
    assert x.dtype == np.int64 and set(x) == {0, 1, 2, 3, 4} and np.bincount(x).min() > N / 5 * 0.9
    assert clnn.randint(0, 9, (3,), dtype=clnn.int32).dtype is clnn.int32
    wide = clnn.randint(-2 ** 62, 2 ** 62, (1000,)).numpy()
    assert wide.min() < -2 ** 61 and wide.max() > 2 ** 61
    assert set(clnn.empty(100, dtype=clnn.bool).random_().tolist()) == {True, False}
    assert sorted(clnn.randperm(100).tolist()) == list(range(100)) and clnn.randperm(100).tolist() != list(range(100))
    assert clnn.empty(4).random_(7, 8).tolist() == [7.0] * 4 and clnn.randint_like(clnn.zeros(3), 1).tolist() == [0.0] * 3
    assert clnn.rand_like(clnn.zeros(2, 3)).shape == (2, 3) and clnn.randn_like(clnn.zeros(2), dtype=clnn.float16).dtype is clnn.float16


def test_multinomial_by_rows():
    weights = np.zeros((50, 3000), np.float32)
    weights[:, 7::100] = np.arange(1, 31)
    for replacement, count in ((False, 1), (False, 30), (True, 40)):
        got = clnn.tensor(weights).multinomial(count, replacement).numpy()
        assert got.shape == (50, count) and (got % 100 == 7).all()
        assert replacement or all(len(set(row)) == count for row in got.tolist())
    several = clnn.tensor(weights).double().multinomial(4000, True).numpy()
    assert abs(np.mean(several // 100 + 1) - 61 / 3) < 0.1           # the mean of 1..30 by these weights
    with pytest.raises(RuntimeError, match="inf"):
        clnn.tensor([1.0, float("nan")]).multinomial(1)


def test_multinomial():
    clnn.manual_seed(4)
    p = clnn.tensor([[0.1, 0.0, 0.9], [0.5, 0.5, 0.0]])
    x = p.multinomial(4000, True).numpy()
    assert x.shape == (2, 4000) and abs((x[0] == 2).mean() - 0.9) < 0.02 and set(x[1]) == {0, 1}
    assert sorted(clnn.multinomial(clnn.ones(5), 5).tolist()) == [0, 1, 2, 3, 4]
    first = [clnn.multinomial(clnn.tensor([1.0, 3.0]), 2).tolist()[0] for _ in range(400)]
    assert abs(np.mean(first) - 0.75) < 0.08
    with pytest.raises(RuntimeError, match="cannot sample n_sample > prob_dist"):
        clnn.multinomial(clnn.ones(2), 3)
    with pytest.raises(RuntimeError, match="inf.*nan.*element < 0"):
        clnn.multinomial(-clnn.ones(2), 1)
    with pytest.raises(RuntimeError, match="inf"):
        clnn.multinomial(-clnn.ones(5000), 1)
    with pytest.raises(RuntimeError, match="sum of probabilities"):
        clnn.multinomial(clnn.zeros(2), 1)


@pytest.mark.parametrize("call, text", [
    (lambda: clnn.empty(2).uniform_(2, 1), "uniform_ expects to return a"), (lambda: clnn.empty(2).normal_(0, -1), "normal expects std >= 0.0"),
    (lambda: clnn.empty(2).bernoulli_(2.0), "bernoulli_ expects p to be in"), (lambda: clnn.randint(3, 3, (2,)), "random_ expects 'from' to be less"),
    (lambda: clnn.empty(2).exponential_(0.0), "exponential_ expects lambda > 0"), (lambda: clnn.empty(2).geometric_(1.5), "geometric_ expects p"),
    (lambda: clnn.randn(2, dtype=clnn.int64), "not implemented for"), (lambda: clnn.empty(2, requires_grad=True).normal_(), "leaf Variable")])
def test_errors(call, text):
    with pytest.raises(RuntimeError, match=text):
        call()


# -- generators ---------------------------------------------------------------------------------------------------------------------
def test_generators():
    g = clnn.Generator().manual_seed(7)
    a = clnn.rand(5, generator=g)
    state = g.get_state()
    b = clnn.randn(5, generator=g)
    assert state.dtype is clnn.uint8 and g.initial_seed() == 7
    assert clnn.equal(clnn.randn(5, generator=g.set_state(state)), b) and clnn.equal(clnn.rand(5, generator=g.manual_seed(7)), a)
    again = pickle.loads(pickle.dumps(g))
    assert clnn.equal(clnn.rand(3, generator=again), clnn.rand(3, generator=g))
    assert clnn.equal(clnn.rand(3, generator=copy.deepcopy(g)), clnn.rand(3, generator=g))
    assert g.seed() == g.initial_seed() and str(g.device) == "cpu"
    clnn.manual_seed(1)
    clnn.rand(4, generator=g)
    x = clnn.rand(4)
    clnn.manual_seed(1)
    assert clnn.equal(x, clnn.rand(4)), "a generator of its own leaves the default one alone"
    with pytest.raises(RuntimeError, match="of size 5056 but found the input RNG state size to be 3"):
        g.set_state(clnn.zeros(3, dtype=clnn.uint8))


def test_rng_state_and_fork():
    clnn.manual_seed(11)
    assert clnn.initial_seed() == 11
    state = clnn.get_rng_state()
    a = clnn.rand(3)
    clnn.set_rng_state(state)
    with clnn.random.fork_rng():
        clnn.rand(100)
    assert clnn.equal(clnn.rand(3), a)
    assert clnn.seed() == clnn.initial_seed()
    assert clnn.manual_seed(-1).initial_seed() == 2 ** 64 - 1 and clnn.rand(2).shape == (2,)


# -- dropout ------------------------------------------------------------------------------------------------------------------------
def test_dropout_repeats_its_mask_in_backward():
    from clnn.ops.dropout import dropout
    x = clnn.ones(300, 401, requires_grad=True)
    y = dropout(x, 0.3, True)
    y.sum().backward()
    assert clnn.equal(y, x.grad) and set(np.unique(y.detach().numpy()).round(4)) == {0.0, np.float32(1 / 0.7).round(4)}
    assert abs(y.mean().item() - 1) < 0.02
    g, = clnn.autograd.grad((dropout(x, 0.5, True) ** 2).sum(), x, create_graph=True)
    h, = clnn.autograd.grad(g.sum(), x)
    assert set(np.unique(h.numpy())) == {0.0, 8.0}
    t = clnn.ones(8, 6, requires_grad=True)
    z = dropout(t.t(), 0.5, True)
    z.sum().backward()
    assert clnn.equal(t.grad.t(), z), "the mask follows element numbers of the result, not of memory"


def test_dropout_family():
    from clnn.ops import dropout as R
    x = clnn.randn(2000, 50)
    assert R.dropout(x, 0.5, False) is x and R.dropout(x, 0.0) is x and float(R.dropout(x, 1.0).abs().max()) == 0
    y = R.alpha_dropout(x, 0.2, True)
    assert abs(y.mean().item()) < 0.02 and abs(y.std().item() - 1) < 0.02
    c = R.feature_dropout(clnn.ones(64, 32, 5, 5), 0.25).numpy().reshape(64 * 32, 25)
    assert (c == c[:, :1]).all() and abs((c[:, 0] == 0).mean() - 0.25) < 0.05
    a = R.feature_alpha_dropout(clnn.ones(4, 8, 3), 0.5, True).numpy().reshape(32, 3)
    assert (a == a[:, :1]).all()
    z = clnn.ones(100)
    assert R.dropout(z, 0.5, True, True) is z and set(z.tolist()) == {0.0, 2.0}
    with pytest.raises(ValueError, match="between 0 and 1, but got 1.5"):
        R.dropout(x, 1.5)


def test_draws_fuse():
    """A dropout between elementwise operators stays one pending expression."""
    from clnn.ops.dropout import dropout
    y = dropout(clnn.ones(100) * 2, 0.5, True) + 1
    assert y._storage.node is not None and set(y.tolist()) == {1.0, 5.0}


def test_draws_of_vectors_are_the_host_bits(philox):
    """Kernels that draw a step of elements at once find the same numbers as those that draw one by one."""
    from clnn.ops.dropout import dropout
    w = draws(9, 40 * 256)
    clnn.manual_seed(9)
    x, row = clnn.ones(40, 256), clnn.ones(256)
    assert (dropout(x + row, 0.25).numpy().reshape(-1) == np.where(w < 0.75 * 2 ** 32, np.float32(2 / 0.75), 0)).all(), "rows"
    clnn.manual_seed(9)
    assert (clnn.empty(40 * 256).bernoulli_(0.5).numpy() == (w < 2 ** 31)).all()
    clnn.manual_seed(9)
    assert (clnn.randint(3, 10, (40 * 256,)).numpy() == 3 + (w.astype(np.uint64) * np.uint64(7) >> np.uint64(32)).astype(np.int64)).all()
    clnn.manual_seed(9)
    u = (clnn.rand(40 * 256 - 3) + 1).numpy()
    assert (u == ((w[:-3] >> 8) * np.float32(2.0 ** -24)).astype(np.float32) + np.float32(1)).all(), "the rest of a step"
