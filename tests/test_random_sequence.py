"""Random numbers in PyTorch's sequence: known answers, the state, and programs that print what PyTorch prints from the same seed."""
import copy
import pickle

import numpy as np
import pytest

import clnn
from clnn.core import native
from clnn.core.config import config
from clnn.core.twister import PACKED, Twister

try:
    import torch
except ImportError:
    torch = None

in_torch = pytest.mark.skipif(torch is None, reason="PyTorch is not installed")


@pytest.fixture(autouse=True)
def sequence():
    """On devices that draw otherwise by default, too."""
    before, config.random = config.random, "pytorch"
    yield
    config.random = before


def test_known_answers_of_the_generator():
    """The first and the 10000th word of seed 5489, as the C++ standard asks of std::mt19937."""
    w = Twister(5489)
    assert int(w.words(1)[0]) == 3499211612 and int(w.words(9999)[-1]) == 4123659995


def test_words_on_the_device_are_those_of_the_host():
    clnn.manual_seed(9)
    few, many, more = clnn.rand(3), clnn.rand(20000), clnn.rand(5)
    expected = (Twister(9).words(20008) & 0xFFFFFF) * 2.0 ** -24
    assert np.array_equal(np.concatenate([t.numpy() for t in (few, many, more)]), expected.astype(np.float32))


@pytest.mark.parametrize("n", (1, 600, 624, 9000, 300001))
def test_the_device_goes_on_where_the_host_stands_and_back(n):
    w = Twister(4)
    w.words(n)
    rest = w.words(7)
    clnn.manual_seed(4)
    clnn.empty(n).uniform_().sum().item()
    assert np.array_equal(clnn.rand(7).numpy(), ((rest & 0xFFFFFF) * 2.0 ** -24).astype(np.float32))


def test_nothing_is_drawn_for_no_elements():
    clnn.manual_seed(4)
    clnn.rand(20000)
    empty = clnn.rand(0), clnn.randn(0, 3), clnn.randint(5, (0,)), clnn.empty(0).bernoulli_(), clnn.empty(0).exponential_(), clnn.randperm(0)
    assert [t.numel() for t in empty] == [0] * 6
    assert np.array_equal(clnn.rand(2).numpy(), ((Twister(4).words(20002)[-2:] & 0xFFFFFF) * 2.0 ** -24).astype(np.float32))


def test_places_are_returned_to():
    clnn.manual_seed(2)
    clnn.randn(3)                               # leaves the second of a pair
    for draw in (lambda: clnn.randn(2), lambda: clnn.rand(50000), lambda: clnn.rand(200000), lambda: clnn.rand(200000), lambda: clnn.randn(3)):
        state, generator = clnn.get_rng_state(), clnn.Generator()
        with clnn.random.fork_rng():
            first = draw()
        again = draw()
        clnn.set_rng_state(state)
        assert clnn.equal(first, again) and clnn.equal(first, draw())
        generator.set_state(state)
        for other in (copy.deepcopy(generator.get_state()), state):
            assert len(other) == PACKED
        assert clnn.equal(clnn.rand(4, generator=pickle.loads(pickle.dumps(generator))), clnn.rand(4, generator=generator.clone_state()))


def test_numbers_of_the_note_on_modules():
    """What the passage on hooks prints after ``torch.manual_seed(1)``."""
    clnn.manual_seed(1)
    m = clnn.nn.Linear(3, 3)
    x = clnn.randn(2, 3, requires_grad=True)
    y = m(x)
    assert np.allclose(y.tolist(), [[-0.5059, -0.8158, 0.2390], [-0.0043, 0.4724, -0.1714]], atol=5e-5)
    y.sum().backward()
    assert np.allclose(x.grad.tolist(), [[0.4497, -0.5046, 0.3146]] * 2, atol=5e-5)


def test_numbers_as_counted_blocks_are_a_setting():
    config.random = "philox"
    clnn.manual_seed(0)
    a = clnn.rand(3)
    config.random = "pytorch"
    clnn.manual_seed(0)
    b = clnn.rand(3)
    assert not clnn.equal(a, b) and np.allclose(b.tolist(), [0.496257, 0.768222, 0.088477], atol=1e-6)


def test_normal_bits_are_the_same_everywhere():
    """A fingerprint of float32 normal numbers: whatever driver runs this must find the same."""
    clnn.manual_seed(123)
    x = clnn.randn(100003).numpy().view(np.uint32)
    assert (int(np.bitwise_xor.reduce(x)), int(x.sum(dtype=np.uint64))) == (3453880257, 213546201834819)


def _same(run, atol=0.0, rtol=0.0, seed=123):
    """``run(lib)``, a list of tensors, and what is drawn next agree."""
    found = []
    for lib in (clnn, torch):
        lib.manual_seed(seed)
        found.append([t.detach() for t in run(lib)] + [lib.rand(3)])
    for a, b in zip(*found):
        assert str(a.dtype).rpartition(".")[2] == str(b.dtype).rpartition(".")[2] and tuple(a.shape) == tuple(b.shape)
        a, b = (np.array(lib.view_as_real(t).tolist() if t.dtype.is_complex else t.tolist()) for lib, t in ((clnn, a), (torch, b)))
        np.testing.assert_allclose(a, b, rtol, atol)


FILLS = {
    "uniform_": ("uniform_", (-0.3, 0.7)), "normal_": ("normal_", (2, 3)), "bernoulli_": ("bernoulli_", (0.3,)), "exponential_": ("exponential_", (2.0,)),
    "geometric_": ("geometric_", (0.3,)), "log_normal_": ("log_normal_", (1, 2)), "cauchy_": ("cauchy_", (1, 2)), "random_": ("random_", ()),
    "below": ("random_", (1000,))}


@in_torch
@pytest.mark.parametrize("n", (0, 1, 15, 16, 17, 700, 9001))
@pytest.mark.parametrize("fill", FILLS)
def test_fills(fill, n, device):
    name, args = FILLS[fill]
    _same(lambda t: [getattr(t.empty(n), name)(*args)], 1e-6, 2e-5 if device.has_fp64 or fill != "cauchy_" else 1e-3)    # PyTorch takes the tangent in double
    if device.has_fp64:
        _same(lambda t: [getattr(t.empty(n, dtype=t.float64), name)(*args)], 1e-12, 1e-9)


@in_torch
@pytest.mark.parametrize("n", (1, 16, 17, 40, 9001))
@pytest.mark.parametrize("dtype", ("float16", "bfloat16"))
def test_sixteen_bits(dtype, n):
    eps = 2.0 ** (-10 if dtype == "float16" else -7)
    _same(lambda t: [t.rand(n, dtype=getattr(t, dtype)), t.empty(n, dtype=getattr(t, dtype)).random_()])
    _same(lambda t: [t.randn(n, dtype=getattr(t, dtype))], eps, eps)


@in_torch
@pytest.mark.parametrize("dtype", ("uint8", "int8", "int16", "int32", "int64", "bool"))
def test_whole_numbers(dtype):
    for n in (5, 9001):
        _same(lambda t, n=n: [t.empty(n, dtype=getattr(t, dtype)).random_()])
    if dtype == "int64":
        _same(lambda t: [t.randint(-5, 1 << 40, (9,)), t.randint(0, 1 << 28, (9001,)), t.randint(0, (1 << 28) - 1, (9,)),
                         t.empty(9001, dtype=t.int64).random_(-7, 1 << 50)])


def test_coins_in_the_order_of_memory():
    """As all others; and one probability for all elements is asked for each of them."""
    clnn.manual_seed(3)
    assert clnn.zeros(4, 3).t().bernoulli_(0.5).flatten().tolist() == [1, 1, 1, 0, 1, 0, 1, 1, 0, 0, 1, 0]
    clnn.manual_seed(3)
    assert clnn.zeros(4, 3).t().bernoulli_(clnn.tensor(0.5)).flatten().tolist() == [1, 1, 0, 0, 1, 1, 0, 1, 1, 1, 0, 0]


def test_normal_numbers_like_a_turned_tensor_are_drawn_as_in_its_memory():
    clnn.manual_seed(0)
    got = clnn.randn_like(clnn.empty(2, 6, 4).permute(1, 0, 2))
    clnn.manual_seed(0)
    assert clnn.equal(got, clnn.empty(2, 6, 4).permute(1, 0, 2).normal_()) and got.stride() == (4, 24, 1)
    np.testing.assert_allclose(got[0, 0].tolist(), [1.5409961, -0.2934289, -2.1787894, 0.5684313], rtol=1e-5)


@in_torch
def test_new_generators_have_one_seed():
    assert clnn.Generator().initial_seed() == torch.Generator().initial_seed() != clnn.initial_seed()
    assert clnn.rand(3, generator=clnn.Generator()).tolist() == torch.rand(3, generator=torch.Generator()).tolist()


@in_torch
@pytest.mark.parametrize("n", (0, 1, 2, 60, 257, 9001))
def test_random_orders(n):
    _same(lambda t: [t.randperm(n), t.randperm(n, dtype=t.int32), t.randperm(n, generator=t.Generator().manual_seed(5))])


@in_torch
def test_draws_by_weight():
    p = np.random.default_rng(0).random((5, 40), np.float32)
    p[:, 3] = 0
    for count, again in ((1, False), (1, True), (7, False), (300, True)):
        _same(lambda t, count=count, again=again: [t.multinomial(t.tensor(p), count, again), t.multinomial(t.tensor(p[0]), count, again)])
    _same(lambda t: [t.bernoulli(t.tensor(p)), t.bernoulli(t.full((9001,), 0.2))])


@in_torch
def test_numbers_lie_in_the_order_of_memory():
    _same(lambda t: [t.empty(20, 2)[:, 0].uniform_(), t.empty(4, 5).t().uniform_(), t.empty(40, 5, 6)[::2, :, ::3].permute(1, 2, 0).uniform_(),
                     t.rand(4, dtype=t.complex64)])
    _same(lambda t: [t.empty(20, 2)[:, 0].normal_(), t.empty(4, 5).t().normal_(), t.randn(50, dtype=t.complex64), t.normal(t.zeros(20), t.ones(20))], 2e-6)


@in_torch
def test_dropouts():
    def run(t):
        f, x = t.nn.functional, t.ones(4, 6, 5, requires_grad=True)
        y = [f.dropout(x, 0.3), f.dropout2d(x[None], 0.5), f.dropout1d(x, 0.5), f.alpha_dropout(x, 0.4, True), f.feature_alpha_dropout(x, 0.5, True),
             f.dropout(x.permute(2, 0, 1), 0.3), f.dropout(t.ones(9001), 0.1), f.rrelu(x - 1.5, training=True), f.gumbel_softmax(x[0]),
             f.scaled_dot_product_attention(x, x, x, dropout_p=0.4)]
        sum(part.sum() for part in y).backward()
        return [*y, x.grad]
    _same(run, 1e-5, 1e-5)


@in_torch
def test_initial_weights():
    def run(t):
        nn, w = t.nn, t.empty(30, 20)
        layers = [nn.Linear(7, 5), nn.Conv2d(3, 8, 3), nn.Embedding(11, 4), nn.LSTM(5, 6, 2), nn.MultiheadAttention(8, 2), nn.Bilinear(3, 4, 5), nn.GRUCell(3, 4),
                  nn.ConvTranspose2d(3, 4, 2), nn.EmbeddingBag(6, 3), nn.TransformerDecoderLayer(8, 2, 16), nn.Conv2d(0, 4, 1)]
        fills = [f(w).clone() for f in (nn.init.xavier_uniform_, nn.init.kaiming_normal_, nn.init.trunc_normal_)]
        wide, g = t.empty(2, 8), t.Generator().manual_seed(4)
        fills += [nn.init.orthogonal_(wide).clone(), nn.init.orthogonal_(t.empty(8, 2), generator=g), nn.init.orthogonal_(t.empty(2, 3, 2), generator=g)]
        return [*fills, nn.init.trunc_normal_(w, 0, 1, 1.5, 2.5).clone(), nn.init.sparse_(w, 0.3), *(p for m in layers for p in m.parameters())]
    _same(run, 2e-6, 2e-6)


@in_torch
def test_batches():
    def run(t):
        data, found = t.utils.data, []
        ds = data.TensorDataset(t.arange(50.0))
        for given in (dict(shuffle=True), dict(shuffle=True, generator=t.Generator().manual_seed(5)), dict(sampler=data.WeightedRandomSampler(range(1, 51), 30)),
                      dict(sampler=data.WeightedRandomSampler(range(1, 51), 30, False)), dict(sampler=data.SubsetRandomSampler(range(9))),
                      dict(sampler=data.RandomSampler(ds, True, 70)), dict(sampler=data.RandomSampler(ds, False, 70))):
            loader = data.DataLoader(ds, batch_size=7, **given)
            found += [batch[0] for _ in range(2) for batch in loader]
        parts = data.random_split(ds, [40, 10])
        return [*found, *(t.tensor(list(part.indices)) for part in parts), t.tensor(list(data.DistributedSampler(ds, 2, 1, seed=3)))]
    _same(run)


@in_torch
def test_samples_of_distributions():
    def run(t):
        d = t.distributions
        made = (d.Normal(0.0, 1.0), d.Uniform(0.0, 1.0), d.Bernoulli(t.tensor(0.3)), d.Categorical(t.tensor([0.1, 0.2, 0.7])), d.Exponential(2.0),
                d.Laplace(0.0, 1.0), d.Gumbel(0.0, 1.0), d.Geometric(t.tensor(0.3)), d.MultivariateNormal(t.zeros(3), t.eye(3)),
                d.OneHotCategorical(t.tensor([0.1, 0.9])), d.Weibull(1.0, 2.0),
                d.RelaxedOneHotCategorical(t.tensor(1.0), t.tensor([0.1, 0.9])))
        return [m.sample(shape) for m in made for shape in ((), (5,), (30,))]
    _same(run, 1e-5, 1e-5)


@in_torch
@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_samples_by_rejection(dtype, device):
    if dtype == "float64" and not device.has_fp64:
        pytest.skip("this device has no fp64")
    r = np.random.default_rng(0)
    shapes, rates = r.random(300) * 5, np.concatenate((r.random(150) * 8, r.random(150) * 60))
    counts, shares = r.integers(1, 200, 300), r.random(300)
    rates[3], shapes[5], counts[0], shares[1] = 0, 1e-3, 0, 1

    def run(t):
        a, b, c, d = (t.tensor(v, dtype=getattr(t, dtype)) for v in (shapes, rates, counts, shares))
        return [t.poisson(b), t.binomial(c, d), t._standard_gamma(a), t._sample_dirichlet(a.view(30, 10)), t.poisson(b.repeat(20)), t._standard_gamma(a.repeat(20))]
    _same(run, 0, 0 if dtype == "float32" else 1e-15)              # sums over rows are added up in another order


@in_torch
def test_samples_of_distributions_by_rejection():
    def run(t):
        d, number = t.distributions, t.tensor
        made = (d.Gamma(number(2.0), number(3.0)), d.Beta(number(0.5), number(2.0)), d.Dirichlet(number([0.5, 2.0, 3.0])), d.StudentT(number(4.0)),
                d.FisherSnedecor(number(3.0), number(4.0)), d.NegativeBinomial(number(5.0), number(0.4)), d.VonMises(number(0.0), number(2.0)))
        return [m.sample(shape) for m in made for shape in ((), (30,))]
    _same(run, 1e-5, 1e-5)


def test_checkpointed_layers_draw_the_same_again():
    from clnn.utils.checkpoint import checkpoint
    layer, found = clnn.nn.Dropout(0.5), []
    x = clnn.ones(600, 500, requires_grad=True)
    for how in (lambda y: checkpoint(layer, y, use_reentrant=False), layer):
        clnn.manual_seed(3)
        y = how(how(x))
        x.grad = None
        y.sum().backward()
        found.append((y.detach(), x.grad))
        assert clnn.equal(y.detach(), x.grad)
    assert clnn.equal(found[0][0], found[1][0])


@in_torch
def test_samples_of_a_map():
    """One draw for all samples, in their order; or one for each of them."""
    def run(t):
        F, x, found = t.nn.functional, t.ones(3, 20), []
        draws = (lambda x: x + t.randn(20), lambda x: t.randn_like(x) * x, F.dropout, lambda x: x.clone().exponential_(), lambda x: t.randint(9, (4,)) * x[:4],
                 lambda x: t.func.grad(lambda x: (F.dropout(x) * x).sum())(x), lambda x: x.clone().normal_(), lambda x: t.randperm(5))
        for how in ("different", "same"):
            found += [t.func.vmap(draw, randomness=how)(x) for draw in draws[:3] + draws[4:6]]
        found += [t.func.vmap(draw, randomness="different")(x) for draw in draws[3:]]
        for how in (("different", "different"), ("same", "different"), ("different", "same")):
            found.append(t.func.vmap(t.func.vmap(lambda x: x + t.rand(()), randomness=how[0]), randomness=how[1])(x))
        return found
    _same(run, 2e-6, 2e-6)


@in_torch
def test_tensors_for_tests():
    def run(t):
        make, rows = t.testing.make_tensor, (t.float32, t.float16, t.complex64, t.int8, t.uint8, t.int64, t.bool)
        found = [make((3, 4), dtype=row, device="cpu") for row in rows]
        found += [make(3, 4, dtype=row, device="cpu", low=-3, high=3, noncontiguous=True, exclude_zero=True) for row in rows[:5]]
        x = t.ones(3, requires_grad=True)
        t.autograd.gradgradcheck(lambda x: x.sin(), x, eps=1e-2, atol=1, rtol=1)
        return [*found, make(2, dtype=t.float32, device="cpu", low=t.finfo(t.float32).min, high=t.finfo(t.float32).max) / 1e38, t.rand(2)]
    _same(run, 1e-3, 1e-3)
    make = clnn.testing.make_tensor
    for how in (dict(low=float("nan")), dict(low=3, high=1), dict(noncontiguous=True, memory_format=clnn.contiguous_format)):
        with pytest.raises(ValueError):
            make(3, dtype=clnn.float32, **how)
    with pytest.raises(ValueError, match="uint8 only supports"):
        make(3, dtype=clnn.uint8, low=-5, high=-2)


@in_torch
def test_a_training_run_prints_the_same():
    def run(t):
        nn = t.nn
        model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Dropout(0.3), nn.TransformerEncoderLayer(64, 4, 32, 0.1, batch_first=True),
                              nn.Linear(64, 5))
        optimizer, losses = t.optim.SGD(model.parameters(), 0.1), []
        for _ in range(4):
            loss = nn.functional.cross_entropy(model(t.randn(16, 3, 20)).flatten(0, 1), t.randint(0, 5, (48,)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return losses
    _same(run, 1e-4, 1e-4)


@in_torch
@pytest.mark.parametrize("strides", ((192, 1, 24, 3), (192, 64, 8, 1), (192, 64, 1, 8)))
def test_tensors_alike_are_drawn_in_the_order_of_memory(strides):
    drawn = []
    for lib in (torch, clnn):
        x = lib.zeros(400).as_strided((2, 3, 8, 8), strides)
        lib.manual_seed(3)
        drawn.append([f(x) for f in (lib.randn_like, lib.rand_like, lambda t: lib.randn_like(t, memory_format=lib.channels_last), lib.randn_like)])
    for a, b in zip(*drawn):
        assert a.stride() == b.stride()
        assert np.allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)


@in_torch
def test_normal_numbers_of_a_size_scaled_by_a_tensor():
    for lib in (clnn, torch):
        lib.manual_seed(4)
        one, other = lib.normal(lib.tensor(1), lib.tensor(2.0, dtype=lib.float64), (2, 3)), lib.manual_seed(4) and lib.normal(1.0, 2.0, (2, 3))
        assert one.shape == (2, 3) and one.dtype is lib.float32 and one.tolist() == other.tolist()
        with pytest.raises(TypeError):
            lib.normal(0.0, lib.ones(2), size=(2,))


@pytest.mark.skipif(native.built is None, reason="without the C forms")
def test_words_and_their_numbers_are_the_same_in_c():
    """Bytes for bytes, and the state that both come to, in any order of draws."""
    plain, quick, rng = native.definitions["Words"](), native.built.Words(), np.random.default_rng(0)
    draws = {"words": lambda n: (n,), "uniforms": lambda n: (n, -0.1 * (n % 2), 1.0), "doubles": lambda n: (n,), "double": lambda n: (), "order": lambda n: (n,),
             "integers": lambda n: (int(rng.integers(1 << 63)), int(rng.integers(1, 1 << (63 if n % 2 else 32))), n, n % 2 == 1),
             "normals": lambda n: (n + 16, 0.5, 2.0 - n % 2), "pairs": lambda n: (n, 0.25 if n % 3 else None), "skip": lambda n: (n,)}
    for seed in (0, 5, (1 << 32) - 1):
        plain.seed(seed), quick.seed(seed)
        for _ in range(150):
            name, n = str(rng.choice(list(draws))), int(rng.choice([0, 1, 2, 3, 15, 17, 100, 623, 624, 625, 1500]))
            args = draws[name](n)
            assert getattr(plain, name)(*args) == getattr(quick, name)(*args), (name, args)
            assert plain.state() == quick.state()
        quick.restore(*plain.state())
    for wrong in (lambda: quick.restore(b"", 0), lambda: quick.restore(plain.state()[0], 625), lambda: quick.normals(3, 0.0, 1.0), lambda: quick.words(-1)):
        with pytest.raises(ValueError):
            wrong()


@pytest.mark.skipif(native.built is None, reason="without the C forms")
def test_numbers_by_rejection_are_the_same_in_c():
    rng, python, built = np.random.default_rng(0), native.definitions["rejected"], native.built.rejected
    plain, quick, spare = native.definitions["Words"](), native.built.Words(), None
    for n in (0, 1, 40, 300):
        rates, trials, shares = rng.gamma(0.5, 40, n), rng.integers(-1, 200, n).astype(float), rng.random(n) * 1.2 - 0.1
        rates[:2], shares[2:4] = (0, 1e-310)[:n], np.nan
        for kind, given in (("gamma", (rates,)), ("gamma_float", (rates,)), ("poisson", (rates,)), ("binomial", (trials, shares)), ("gamma", (shares[2:4],))):
            found = [form(kind, words, spare, *given) for form, words in ((python, plain), (built, quick))]
            assert found[0] == found[1], kind
            assert plain.state() == quick.state()
            spare = found[0][2]
    for wrong in (("beta", quick, None, shares), ("gamma", quick, None, shares, shares), ("binomial", quick, None, shares, shares[1:])):
        with pytest.raises(ValueError):
            built(*wrong)
    with pytest.raises(TypeError):
        built("gamma", quick, "x", shares)


@in_torch
def test_means_of_complex_numbers():
    """A mean is added to both parts, one that is a complex tensor to the number."""
    for draw in (lambda t: t.empty(5, dtype=t.complex64).normal_(-2, 0.5), lambda t: t.normal(3.0, 2.0, (2, 2), dtype=t.complex64),
                 lambda t: t.normal(t.tensor([1 + 2j, 0]), 0.5)):
        torch.manual_seed(3)
        clnn.manual_seed(3)
        np.testing.assert_allclose(draw(clnn).numpy(), draw(torch).numpy(), rtol=1e-5)
