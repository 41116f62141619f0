"""clnn.compile: replays give what ordinary runs give."""
import warnings

import numpy as np
import pytest

import clnn
from clnn import nn


def data(*shape, seed=0):
    return clnn.tensor(np.random.default_rng(seed).standard_normal(shape).astype("float32"))


def mlp(seed=0):
    clnn.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))


def test_a_function_replays_on_new_inputs():
    f = clnn.compile(lambda a, b: (a * 2 + b).sum(1))
    for seed in range(6):
        a, b = data(4, 5, seed=seed), data(4, 5, seed=seed + 50)
        np.testing.assert_allclose(f(a, b).numpy(), (a.numpy() * 2 + b.numpy()).sum(1), rtol=1e-5)
    assert len(f._recordings) == 1


def test_earlier_outputs_stay():
    f = clnn.compile(lambda a: a + 1)
    outs = [f(clnn.full((3,), float(i))) for i in range(6)]
    assert [o.tolist()[0] for o in outs] == [1, 2, 3, 4, 5, 6]


def test_new_shapes_get_recordings_of_their_own():
    f = clnn.compile(lambda a: a.exp().sum())
    for n in (3, 3, 3, 3, 5, 5, 5, 5, 3):
        x = data(n)
        assert float(f(x)) == pytest.approx(float(np.exp(x.numpy()).sum()), rel=1e-5)
    assert len(f._recordings) == 2


@pytest.mark.parametrize("name,options", [("SGD", dict(lr=0.1, momentum=0.9)), ("Adam", dict(lr=0.01)), ("AdamW", dict(lr=0.01))])
def test_a_training_step(name, options):
    def run(compiled):
        model = mlp()
        opt = getattr(clnn.optim, name)(model.parameters(), **options)
        sched = clnn.optim.lr_scheduler.StepLR(opt, 3, 0.5)

        def step(x, y):
            opt.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            opt.step()
            return loss
        step = clnn.compile(step) if compiled else step
        losses = []
        for i in range(10):
            losses.append(float(step(data(8, 6, seed=i), data(8, 3, seed=i + 100))))
            sched.step()
        return losses, [p.detach().numpy() for p in model.parameters()]
    (a, p), (b, q) = run(False), run(True)
    assert a == b
    for x, y in zip(p, q):
        assert np.array_equal(x, y)


def test_a_module_trains_with_backward_outside():
    model, twin = mlp(), mlp()
    compiled = clnn.compile(model)
    o1, o2 = clnn.optim.SGD(model.parameters(), lr=0.1), clnn.optim.SGD(twin.parameters(), lr=0.1)
    for i in range(8):
        x = data(8, 6, seed=i)
        for m, o in ((compiled, o1), (twin, o2)):
            o.zero_grad()
            (m(x) ** 2).mean().backward()
            o.step()
    for p, q in zip(model.parameters(), twin.parameters()):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-6, atol=1e-7)


def test_random_numbers_advance():
    f = clnn.compile(lambda x: nn.functional.dropout(x, 0.5))
    clnn.manual_seed(3)
    got = [f(clnn.ones(64)).numpy() for _ in range(6)]
    clnn.manual_seed(3)
    want = [nn.functional.dropout(clnn.ones(64), 0.5).numpy() for _ in range(6)]
    for a, b in zip(got, want):
        assert np.array_equal(a, b)


def test_a_host_read_falls_back_with_the_reason():
    def f(x):
        return x * 2 if x.sum().item() > 0 else x
    g = clnn.compile(f)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for value in (1.0, 1.0, 1.0, -1.0, 1.0):
            x = clnn.full((3,), value)
            assert g(x).tolist() == f(x).tolist()
    assert any("host read" in str(w.message) for w in seen) and len(g.fallbacks) == 1


def test_replaced_parameters_are_followed():
    model = mlp()
    f = clnn.compile(lambda x: model(x))
    x = data(2, 6)
    with clnn.no_grad():
        for _ in range(4):
            f(x)
        for p in model.parameters():
            p.fill_(0.25)
        assert np.array_equal(f(x).numpy(), model(x).numpy())
        model.load_state_dict(mlp(5).state_dict())
        assert np.array_equal(f(x).numpy(), model(x).numpy())


def test_train_and_eval_are_recorded_apart():
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    compiled = clnn.compile(model)
    x = data(3, 4)
    with clnn.no_grad():
        for _ in range(4):
            compiled(x)
        compiled.eval()
        for _ in range(4):
            assert np.array_equal(compiled(x).numpy(), model(x).numpy())


def test_stances():
    from clnn.compiler import set_stance
    f = clnn.compile(lambda a: a + 1 if clnn.compiler.is_compiling() else a - 1)
    x, y = clnn.zeros(2), clnn.zeros(3)
    seen = [f(x)[0].item() for _ in range(4)]
    with set_stance("force_eager"):
        seen += [f(x)[0].item()]
    seen += [set_stance("force_eager")(f)(x)[0].item(), f(x)[0].item()]
    with set_stance("eager_on_recompile"):
        seen += [f(x)[0].item(), f(y)[0].item()]
    with set_stance("fail_on_recompile"), pytest.raises(RuntimeError, match="Detected recompile"):
        f(y)
    assert seen == [1, 1, 1, 1, -1, -1, 1, 1, -1] and f(y)[0].item() == 1 and not clnn.compiler.is_compiling()
    with pytest.raises(RuntimeError, match="invalid torch.compile stance"):
        set_stance("fast")


class Output(dict):
    """A dictionary whose entries are attributes, too."""

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        setattr(self, key, value)


class Cache:
    """An object that keeps tensors and grows when it is used."""

    def __init__(self):
        self.seen = []

    def add(self, x):
        self.seen.append(x)
        return sum(self.seen)


def test_results_and_arguments_of_own_classes():
    """Results keep their classes, their tensors are new at every call; a recording never goes on with the tensors of an object that came as an argument."""
    def step(x):
        cache, out = Cache(), Output()
        out["total"], out["cache"] = cache.add(x * 2), cache
        return out
    compiled = clnn.compile(step)
    got = [compiled(clnn.full((3,), float(i))) for i in range(5)]
    assert [type(g) for g in got] == [Output] * 5 and all(g.total is g["total"] for g in got)
    assert [g.total[0].item() for g in got] == [g.cache.seen[0][0].item() for g in got] == [0, 2, 4, 6, 8]
    cache, grow = Cache(), clnn.compile(lambda x, cache: cache.add(x))
    assert [grow(clnn.ones(2), cache)[0].item() for _ in range(5)] == [1, 2, 3, 4, 5] and len(cache.seen) == 5
    assert list(grow.fallbacks.values()) == ["an argument is an object that keeps tensors"]


def test_gradients_of_each_sample():
    """Detached parameters are views of variables, and no reason to compute as written."""
    model = clnn.nn.Linear(4, 3)
    params = {k: v.detach() for k, v in model.named_parameters()}

    def loss(p, x):
        return clnn.func.functional_call(model, p, (x,)).exp().sum()
    each = clnn.func.vmap(clnn.func.grad(loss), in_dims=(None, 0))
    compiled = clnn.compile(each)
    for seed in range(5):
        x = clnn.full((5, 4), float(seed)) * clnn.arange(4.0)
        got, want = compiled(params, x), each(params, x)
        assert all(clnn.equal(got[k], want[k]) for k in want)
    assert not compiled.fallbacks


@pytest.mark.parametrize("results", [
    lambda x: x * 2, lambda x: [x * 2] * 2, lambda x: (x * 2, x), lambda x: {"a": (y := x * 2), "b": y.view(-1), "c": y.t()}, lambda x: (x @ x, (x @ x).clone()),
    lambda x: (y := x + 1, y.sum(0), clnn.zeros(3)), lambda x: x.t()], ids=["one", "twice", "input", "views", "clone", "used", "transposed"])
def test_results_of_replays_stay(results):
    compiled = clnn.compile(results)
    inputs = [data(4, 4, seed=i) for i in range(6)]
    got = [compiled(x) for x in inputs]
    assert len(compiled._recordings) == 1
    for x, r in zip(inputs, got):
        want, r = results(x), [r] if isinstance(r, clnn.Tensor) else r
        want = [want] if isinstance(want, clnn.Tensor) else want
        for a, b in zip(*[v.values() if isinstance(v, dict) else v for v in (want, r)]):
            assert np.array_equal(a.numpy(), b.numpy())


def test_arguments_of_distributions_are_checked_before_the_recording():
    def update(logits, action):
        dist = clnn.distributions.Categorical(logits=logits)
        return dist.log_prob(action).sum() - dist.entropy().mean()
    f = clnn.compile(update)
    action = clnn.tensor([0, 2, 1, 1])
    for seed in range(6):
        logits = data(4, 3, seed=seed)
        assert float(f(logits, action)) == pytest.approx(float(update(logits, action)), rel=1e-5)
    assert len(f._recordings) == 1
    with pytest.raises(ValueError, match="within the support"):
        clnn.compile(update)(data(4, 3), clnn.tensor([0, 3, 1, 1]))
