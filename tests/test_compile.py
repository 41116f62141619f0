"""clnn.compile: replays give what ordinary runs give."""
import warnings

import numpy as np
import pytest

import clnn
from clnn import nn
from clnn.core.config import config


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


@pytest.mark.share(2, both=True)
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
            if i == 6 and name != "SGD":                 # one counter is no longer what the recording took for all
                opt.state[next(model.parameters())]["step"] += 2
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


def test_random_numbers_advance(monkeypatch):
    monkeypatch.setattr(config, "random", "philox")           # what is compiled does not follow PyTorch's sequence
    f = clnn.compile(lambda x: nn.functional.dropout(x, 0.5))
    clnn.manual_seed(3)
    got = [f(clnn.ones(64)).numpy() for _ in range(6)]
    clnn.manual_seed(3)
    want = [nn.functional.dropout(clnn.ones(64), 0.5).numpy() for _ in range(6)]
    for a, b in zip(got, want):
        assert np.array_equal(a, b)


def test_numbers_do_not_depend_on_whether_a_call_is_recorded():
    f = clnn.compile(lambda x: nn.functional.dropout(x, 0.5) + clnn.rand(64))
    runs = []
    for _ in range(4):
        clnn.manual_seed(3)
        runs.append(np.stack([f(clnn.ones(64)).numpy() for _ in range(3)]))
    assert f._recordings and all(np.array_equal(run, runs[0]) for run in runs[1:])


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


def test_a_loss_of_several_parts_that_is_kept_does_not_stop_the_replays():
    model, calls = mlp(), []
    opt = clnn.optim.SGD(model.parameters(), lr=0.01)

    @clnn.compile
    def step(x):
        calls.append(1)
        opt.zero_grad()
        y = model(x)
        loss = y.square().mean() + 0.5 * y.abs().mean()
        loss.backward()
        opt.step()
        return loss
    for i in range(8):
        loss = step(data(4, 6, seed=i))                            # the last loss lives on during the next step
    assert len(calls) == 3 and float(loss) > 0


def test_results_that_wait_for_backward_get_recordings_of_their_own():
    model, calls = mlp(), []

    @clnn.compile
    def branch(x):
        calls.append(1)
        return model(x).tanh()

    def gradients(f, i):
        model.zero_grad()
        a, b, c = (f(data(4, 6, seed=10 * i + k)) for k in range(3))
        (a * b - c).sum().backward()
        return [p.grad.numpy() for p in model.parameters()]
    for i in range(6):
        expected = gradients(lambda x: model(x).tanh(), i)
        for got, want in zip(gradients(branch, i), expected):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)
    assert len(calls) == 5                                         # two ordinary runs and three recordings serve 18 calls


def test_a_step_that_limits_its_gradients():
    def run(compiled):
        model = mlp()
        opt = clnn.optim.Adam(model.parameters(), lr=0.05)

        def step(x):
            opt.zero_grad()
            model(x).square().sum().backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            opt.step()
            return norm
        step = clnn.compile(step) if compiled else step
        return [float(step(data(8, 6, seed=i))) for i in range(8)]
    np.testing.assert_allclose(run(True), run(False), rtol=1e-4)


def test_inputs_that_are_parts_of_a_data_set():
    rows, calls = data(12, 3), []

    @clnn.compile
    def f(x):
        calls.append(1)
        return (x * 2).sum(1)
    for i in range(12):
        at = 3 * (i % 4)
        np.testing.assert_allclose(f(rows[at:at + 3]).numpy(), 2 * rows.numpy()[at:at + 3].sum(1), rtol=1e-5)
    assert len(calls) == 6 and not f.fallbacks                     # two kinds: the part at the beginning needs no copy


@pytest.mark.parametrize("body", [lambda x: x.add_(1).sum(), lambda x: x], ids=["written", "returned"])
def test_a_part_of_other_memory_that_is_written_or_returned(body):
    f = clnn.compile(body)
    for _ in range(5):
        rows = clnn.zeros(4, 3)
        got, expected = f(rows[1:3]), body(clnn.zeros(4, 3)[1:3])
        assert got.tolist() == expected.tolist() and (got.dim() or rows.sum().item() == 6)
        if got.dim():
            got.fill_(2.0)
            assert rows.sum().item() == 12
    assert list(f.fallbacks.values()) == ["it writes to or returns an input that is a part of other memory"]


@pytest.mark.parametrize("keep", [False, True], ids=["new", "kept"])
def test_gradients_of_inputs(keep):
    calls = []

    @clnn.compile
    def attack(x):
        calls.append(1)
        (x * x).sum().backward()
        return x.detach() + 0.5 * x.grad.sign()
    x = data(3, 4).requires_grad_()
    for i in range(8):
        x = x if keep else data(3, 4, seed=i).requires_grad_()
        got, a = attack(x), x.detach().numpy()
        np.testing.assert_allclose(x.grad.numpy(), 2 * a * (i + 1 if keep else 1), rtol=1e-5)
        np.testing.assert_allclose(got.numpy(), a + 0.5 * np.sign(a), rtol=1e-5)
    assert len(calls) < 5


def test_a_backward_pass_that_goes_on_beyond_an_input():
    w = data(4, 4).requires_grad_()
    f = clnn.compile(lambda y: y.square().sum().backward())
    for _ in range(5):
        w.grad = None
        x = data(2, 4)
        f(x @ w)
        np.testing.assert_allclose(w.grad.numpy(), x.numpy().T @ (2 * (x.numpy() @ w.detach().numpy())), rtol=1e-4, atol=1e-5)


FACTOR = 1.0


def _by_argument(model, holder):
    run = clnn.compile(lambda m, x: m(x))
    return lambda x: run(model, x)


def _by_dict(model, holder):
    found = {"model": model}
    return clnn.compile(lambda x: found["model"](x))


def _by_method(model, holder):
    holder.model, holder.temperature = model, 1.0
    return clnn.compile(holder.step)


class Holder:
    steps = 0

    def step(self, x):
        return self.model(x) * self.heat()

    def heat(self):
        return self.temperature

    def count(self):                                               # nothing that a step reads
        self.steps += 1


@pytest.mark.parametrize("way", [_by_argument, _by_dict, _by_method])
def test_modules_that_a_function_finds_somewhere_keep_their_modes(way):
    model = nn.Sequential(nn.Linear(6, 64), nn.Dropout(0.5))
    f, x = way(model, Holder()), clnn.ones(4, 6)
    for training in (True, False, True):
        model.train(training)
        for _ in range(5):
            zeros = (f(x) == 0).sum().item()
        assert (zeros > 0) is training


def test_plain_values_that_change_are_noticed():
    global FACTOR
    model, holder = nn.Linear(2, 2), Holder()
    model.extra, local = 1.0, 1.0
    holder.model, holder.temperature = model, 1.0
    step = clnn.compile(holder.step)

    def body(x):
        return holder.step(x) * FACTOR * local * drop(x)
    drop = nn.Dropout(0.0)
    f, x = clnn.compile(body), data(3, 2)
    for i in range(12):
        if i == 4:
            FACTOR = 2.0
        if i == 6:
            local = 3.0                                            # a cell of the closure
        if i == 8:
            drop.p = 1.0
        holder.count()
        holder.temperature = 1.0 if i < 9 else 0.5
        np.testing.assert_allclose(step(x).detach().numpy(), holder.step(x).detach().numpy(), rtol=1e-6)
        if i == 10:
            drop.p, model.weight.data = 0.0, model.weight.data * 0.5
        np.testing.assert_allclose(f(x).detach().numpy(), body(x).detach().numpy(), rtol=1e-6)
    FACTOR = 1.0
    assert f._recordings and step._recordings


def test_tensors_that_are_replaced_between_calls():
    model = mlp()
    opt = clnn.optim.Adam(model.parameters(), lr=0.01)
    reference = mlp()
    other = clnn.optim.Adam(reference.parameters(), lr=0.01)
    step, mean = clnn.compile(opt.step), {"value": clnn.zeros(3)}

    @clnn.compile
    def average(y):
        mean["value"] = mean["value"] * 0.9 + y.detach().mean(0) * 0.1
        return mean["value"].sum()
    expected = np.zeros(3)
    for i in range(8):
        x, keep = data(4, 6, seed=i), []
        for m, o, run in ((model, opt, step), (reference, other, other.step)):
            o.zero_grad()
            m(x).square().sum().backward()
            keep.append(clnn.ones(50 + i))                         # memory of its own, so that gradients move
            run()
        y = model(x)
        np.testing.assert_allclose(y.detach().numpy(), reference(x).detach().numpy(), rtol=1e-5)
        expected = expected * 0.9 + y.detach().numpy().mean(0) * 0.1
        assert float(average(y)) == pytest.approx(expected.sum(), rel=1e-4, abs=1e-6)


def test_a_run_that_cannot_be_recorded_takes_place_once():
    w, total = data(4, 4).requires_grad_(), []

    @clnn.compile
    def f(y):
        total.append(1)
        return y, (y * float(y.detach().sum() * 0 + 2)).sum()
    for i in range(4):
        w.grad = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            given = data(2, 4) @ w
            same, out = f(given)
        out.backward()
        assert len(total) == i + 1 and same is given
        np.testing.assert_allclose(w.grad.numpy(), np.repeat(2 * data(2, 4).numpy().sum(0)[:, None], 4, 1), rtol=1e-4, atol=1e-5)


def test_hooks_of_modules_run_at_every_call():
    model, seen = mlp(), []
    f, x = clnn.compile(model), data(4, 6)
    for _ in range(4):
        f(x)
    handle = model[0].register_forward_hook(lambda module, args, out: seen.append(out))
    for _ in range(6):
        f(x)
    assert len(seen) == 6 and handle


SCHEDULES = clnn.optim.lr_scheduler
IN_STEP = {
    "StepLR": (dict(name="SGD", lr=0.1), lambda o: SCHEDULES.StepLR(o, 2, 0.5)),
    "SequentialLR": (dict(name="SGD", lr=0.1, momentum=0.9),
                     lambda o: SCHEDULES.SequentialLR(o, [SCHEDULES.ConstantLR(o, 0.1, 2), SCHEDULES.ExponentialLR(o, 0.8)], [3])),
    "RAdam": (dict(name="RAdam"), None),
    "Adafactor": (dict(name="Adafactor"), None),
    "decay": (dict(name="SGD", lr=0.1), lambda group: group.update(weight_decay=0.5)),
    "maximize": (dict(name="SGD", lr=0.1), lambda group: group.update(maximize=True)),
    "fewer": (dict(name="SGD", lr=0.1), lambda group: group["params"].pop()),
}


@pytest.mark.share(2, both=True)
@pytest.mark.parametrize("name", IN_STEP)
def test_what_steps_inside_and_options_that_change(name):
    def run(compiled):
        options, extra = IN_STEP[name]
        model = mlp()
        opt = getattr(clnn.optim, options["name"])(model.parameters(), **{k: v for k, v in options.items() if k != "name"})
        schedule = extra(opt) if name.endswith("LR") else None

        def step(x):
            opt.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            opt.step()
            if schedule is not None:
                schedule.step()
            return loss.detach()
        f, losses = clnn.compile(step) if compiled else step, []
        for i in range(10):
            if i == 6 and schedule is None and extra is not None:
                extra(opt.param_groups[0])
            losses.append(float(f(data(4, 6, seed=i))))
        return losses
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_allclose(run(True), run(False), rtol=1e-5)


def _branch(x):
    return x if x.sum() > 0 else -x


def _loop(x):
    while x.sum() < 100:
        x = x * 2
    return x


def _item(x):
    n = x.sum().item()
    return x if n > 0 else -x


def _inverted(x):
    return not x.sum()


def _printed(x):
    print(x)
    return x


def _said(x):
    print("here", x.shape)
    return x


def _close(x):
    return x if clnn.allclose(x, x) else x + 1


def _equal(x):
    return x if x.equal(x) else x + 1


def _listed(x):
    return x + len(x.tolist())


def _broken(x):
    clnn._dynamo.graph_break()
    return x


def _backward(x):
    x.sum().backward()
    return x


@pytest.mark.share(2)
@pytest.mark.parametrize("f, kind, words", [(_branch, "Unsupported", "Data-dependent branching"), (_loop, "Unsupported", "Data-dependent branching"),
                         (_item, "UserError", "zuf0 > 0.0"), (_inverted, "UserError", "Could not guard on data-dependent expression zuf0"),
                         (_printed, "Unsupported", "repr"), (_said, "Unsupported", "builtin operator `print` with argument types .'str', 'Size'"),
                         (_close, "Unsupported", "aten.allclose"), (_equal, "Unsupported", "aten.equal"), (_listed, "Unsupported", "tolist"),
                         (_broken, "Unsupported", "User-inserted graph break"), (_backward, "Unsupported", "backward")])
def test_fullgraph_refuses_what_depends_on_values(f, kind, words):
    compiled = clnn.compile(f, fullgraph=True)
    for _ in range(4):
        with pytest.raises(getattr(clnn._dynamo.exc, kind), match=words):
            compiled(clnn.ones(3))
    assert bool(clnn.ones(1)) and "1." in repr(clnn.ones(1)) and print() is None and clnn.equal(clnn.ones(1), clnn.ones(1))            # elsewhere a tensor is what it was


@pytest.mark.filterwarnings("ignore:clnn.compile")
def test_fullgraph_takes_what_does_not_branch_on_values():
    def f(x):
        y = x * x.sum().item() if x.shape[0] > 2 else x
        return y + clnn.zeros(int(x.sum())), x.max().item()
    compiled = clnn.compile(fullgraph=True)(f)
    for _ in range(4):
        y, most = compiled(clnn.ones(3))
        assert y.tolist() == [3, 3, 3] and type(most) is float


def test_fullgraph_with_a_backend_refuses_branches_on_values():
    def backend(graph, inputs):
        print("compiling", len(inputs))                                     # a backend is no part of the graph
        return graph
    assert clnn.compile(lambda x: x + 1, fullgraph=True, backend=backend)(clnn.ones(2)).tolist() == [2, 2]
    compiled = clnn.compile(_branch, fullgraph=True, backend=backend)
    with pytest.warns(UserWarning, match="no graph"), pytest.raises(clnn._dynamo.exc.Unsupported):
        compiled(clnn.ones(3))
