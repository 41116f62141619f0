"""Runs of layers and composites of few elements are one entry of the tape, and nothing else about them changes."""
import copy

import numpy as np
import pytest

import clnn
from clnn import nn
from clnn._tensor import splice
from clnn.nn import functional as F

CALLS = 5           # the first is made as it is, the second observed


@pytest.fixture(autouse=True)
def counted(monkeypatch):
    """The number of calls that were spliced."""
    real, count = splice._again, []
    monkeypatch.setattr(splice, "_again", lambda *args: count.append(1) or real(*args))
    return count


def without(monkeypatch):
    """From now on nothing is spliced, and random numbers start again."""
    monkeypatch.setattr(splice.Spliced, "call", lambda self, body, *_: body())
    clnn.manual_seed(0)


def data(*shape, seed=0):
    clnn.synchronize()          # all kernels are built: calls that wait for one say nothing about the next
    return clnn.tensor(np.random.default_rng(seed).standard_normal(shape).astype("f"))


@pytest.fixture(autouse=True)
def seeded():
    clnn.manual_seed(0)


def stack(*between):
    return nn.Sequential(nn.Linear(4, 6), *between, nn.Linear(6, 3))


LAYERS = {
    "relu": lambda: stack(nn.ReLU()), "inplace": lambda: stack(nn.ReLU(inplace=True)), "tanh": lambda: stack(nn.Tanh(), nn.Sigmoid()),
    "gelu": lambda: stack(nn.GELU("tanh"), nn.LayerNorm(6)), "softmax": lambda: stack(nn.LogSoftmax(dim=-1)), "prelu": lambda: stack(nn.PReLU()),
    "rms": lambda: stack(nn.RMSNorm(6), nn.SiLU(), nn.Identity()), "shape": lambda: stack(nn.Unflatten(1, (2, 3)), nn.ELU(0.5), nn.Flatten()),
    "frozen": lambda: stack(nn.Softplus()).requires_grad_(False), "nested": lambda: stack(nn.Sequential(nn.ReLU(), nn.Linear(6, 6), nn.Tanh())),
    "dropout": lambda: stack(nn.ReLU(), nn.Dropout(0.0), nn.Linear(6, 6), nn.Tanh()), "no bias": lambda: stack(nn.Linear(6, 6, bias=False), nn.LeakyReLU(0.3)),
    "masks": lambda: stack(nn.ReLU(), nn.Dropout(0.4), nn.Linear(6, 6), nn.Dropout(0.2, inplace=True)), "moments": lambda: stack(nn.BatchNorm1d(6), nn.ReLU()),
    "both": lambda: stack(nn.Dropout(0.5), nn.Sequential(nn.BatchNorm1d(6, affine=False), nn.Tanh(), nn.Sequential(nn.Dropout(0.1)))),
}


def learned(model, tracked=True):
    """Results and gradients of some calls."""
    found = []
    for i in range(CALLS):
        x = data(5, 4, seed=i).requires_grad_(tracked)
        model.zero_grad()
        y = model(x)
        if y.requires_grad:
            y.square().sum().backward()
        found.append([v.detach().numpy() for v in (y, x.grad, *[p.grad for p in model.parameters()], *model.buffers()) if v is not None])
    return found


@pytest.mark.parametrize("tracked", [True, False])
@pytest.mark.parametrize("name", LAYERS)
def test_layers_give_the_same(name, tracked, counted, monkeypatch):
    got = learned(LAYERS[name](), tracked)
    assert len(counted) >= 2 or name == "inplace"
    without(monkeypatch)
    want = learned(LAYERS[name](), tracked)
    for g, w in zip(got, want):
        assert len(g) == len(w)
        for a, b in zip(g, w):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


WHOLE = {
    "encoder": lambda **how: nn.TransformerEncoderLayer(8, 2, 12, **how), "a layer": lambda **how: nn.TransformerEncoderLayer(8, 2, 12, activation=nn.Tanh(), **how),
    "gelu first": lambda **how: nn.TransformerEncoderLayer(8, 2, 12, 0.2, "gelu", norm_first=True, **how),
    "decoder": lambda **how: nn.TransformerDecoderLayer(8, 2, 12, 0.3, **how), "attention": lambda **how: nn.MultiheadAttention(8, 2, 0.4, **how),
    "lstm": lambda **how: nn.LSTM(8, 8, 2, dropout=0.3, **how),
}


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("name", WHOLE)
def test_layers_made_of_others(name, batch_first, counted, monkeypatch):
    """They are one entry with the same values, gradients and random numbers, in training, in evaluation and with a mask."""
    def run():
        model, found = WHOLE[name](batch_first=batch_first), []
        for i in range(3 * CALLS):
            model.train(i < 2 * CALLS)
            x = data(5, 5, 8, seed=i).requires_grad_()
            mask = clnn.triu(clnn.ones(5, 5, dtype=clnn.bool), 1) if i % 2 else None
            y = {"decoder": lambda: model(x, x, tgt_mask=mask), "attention": lambda: model(x, x, x, attn_mask=mask)[0], "lstm": lambda: model(x)[0]}.get(
                name, lambda: model(x, src_mask=mask))()
            model.zero_grad()
            y.cos().sum().backward()
            found += [v.detach().numpy() for v in (y, x.grad, *[p.grad for p in model.parameters()])]
        return found
    got = run()
    assert len(counted) >= 2
    without(monkeypatch)
    for g, w in zip(got, run(), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-5)


def test_layers_in_others_are_heard_and_replaced(counted):
    """A hook on a layer inside, another layer in its place, or a function of the program's: the whole is called as it is."""
    model, seen, x = nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0), [], data(5, 3, 8)
    for _ in range(CALLS):
        want = model(x)
    with model.linear1.register_forward_hook(lambda *_: seen.append(1)):
        for _ in range(CALLS):
            assert clnn.allclose(model(x), want, atol=1e-5)
    assert len(seen) == CALLS
    model.linear2 = nn.Sequential(model.linear2, nn.Linear(8, 8))
    assert not clnn.allclose(model(x), want, atol=1e-3)
    noisy = nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, activation=lambda v: seen.append(2) or v.relu())
    for _ in range(CALLS):
        noisy(x)
    assert seen.count(2) == CALLS


def test_statistics_in_training(counted):
    """Runs in training move the buffers in place, those of a layer that occurs twice one after the other, and evaluation reads them."""
    norm = nn.BatchNorm1d(6)
    model, again = stack(norm, nn.ReLU(), norm), nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6))
    mean, count = norm.running_mean, norm.num_batches_tracked
    for i in range(CALLS):
        version = mean._version
        model(data(5, 4, seed=i))
        again(data(5, 4, seed=i))
        assert mean is norm.running_mean and mean._version == version + 2 and count.item() == 2 * i + 2 and again[1].num_batches_tracked.item() == i + 1
    assert len(counted) >= 2
    x, kept = data(5, 4), again[1].running_mean.clone()
    y = again.eval()(x)
    want = F.batch_norm(again[0](x), kept, again[1].running_var, again[1].weight, again[1].bias)
    np.testing.assert_allclose(y.detach().numpy(), want.detach().numpy(), rtol=1e-5, atol=1e-6)
    assert (again[1].running_mean == kept).all() and again[1].num_batches_tracked.item() == CALLS


def test_masks_in_training(counted):
    """Each call draws its own masks, two layers different ones, which backward takes again; evaluation and other probabilities are other runs."""
    model = nn.Sequential(nn.Identity(), nn.Dropout(0.5), nn.Identity(), nn.Dropout(0.5))
    seen = set()
    for i in range(2 * CALLS):
        x = clnn.ones(4, 50, requires_grad=True)
        y = model(x)
        y.sum().backward()
        assert (x.grad == y).all() and set(y.unique().tolist()) <= {0.0, 4.0} and 10 < (y == 0).sum() < 195
        seen.add(tuple(y.flatten().tolist()))
    assert len(seen) == 2 * CALLS and len(counted) >= CALLS
    model[1].p = model[3].p = 0.75
    assert set(model(clnn.ones(4, 50)).unique().tolist()) <= {0.0, 16.0}
    assert (model.eval()(clnn.ones(4, 50)) == 1).all()


@pytest.mark.parametrize("training", [True, False])
def test_layers_of_images(training, counted, monkeypatch):
    def run():
        model = nn.Sequential(nn.Conv2d(1, 4, 3, padding="same", padding_mode="reflect"), nn.ReLU(inplace=True), nn.BatchNorm2d(4), nn.MaxPool2d(2),
                              nn.Conv2d(4, 6, 3, stride=2, groups=2), nn.Dropout(0.5), nn.SiLU(), nn.AvgPool2d(2, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                              nn.Linear(6, 3)).train(training)
        found = []
        for i in range(CALLS):
            clnn.manual_seed(i)
            x = data(2, 1, 12, 12, seed=i).requires_grad_()
            model.zero_grad()
            y = model(x)
            y.square().sum().backward()
            with clnn.no_grad():
                found += [y, model(x), x.grad, *[p.grad for p in model.parameters()], *[b.clone() for b in model.buffers()]]
        return [t.detach().numpy() for t in found]
    got = run()
    assert len(counted) >= 2
    without(monkeypatch)
    for a, b in zip(got, run()):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_gradients_of_gradients(counted, monkeypatch):
    def penalty():
        model, found = stack(nn.Tanh(), nn.Linear(6, 6), nn.Softplus()), []
        for i in range(CALLS):
            x = data(5, 4, seed=i).requires_grad_()
            g, = clnn.autograd.grad(model(x).sum(), x, create_graph=True)
            model.zero_grad()
            (g.square().sum() + model(x).mean()).backward()
            found += [p.grad.numpy() for p in model.parameters()] + [x.grad.numpy()]
        return found
    got = penalty()
    assert counted
    without(monkeypatch)
    for a, b in zip(got, penalty()):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def third_order():
    model, found = stack(nn.Tanh(), nn.Linear(6, 6), nn.Softplus()), []
    for i in range(CALLS + 3):
        x = data(5, 4, seed=i).requires_grad_()
        d = model(x).sum()
        for _ in range(3):
            g, = clnn.autograd.grad(d, x, create_graph=True)
            d = (g * g.detach().sin()).sum()
        model.zero_grad()
        (d + g[:, 0].mean()).backward()
        found += [p.grad.numpy() for p in model.parameters() if p.grad is not None] + [x.grad.numpy(), g.detach().numpy()]
    return found


def penalised():
    """Two models, of which one is in the gradient of the other, and a result that goes two ways."""
    first, second, found = stack(nn.ReLU(), nn.Linear(6, 6), nn.Tanh()), nn.Linear(3, 4), []
    both = nn.Sequential(*first, second, nn.Sigmoid())
    for i in range(CALLS + 3):
        x = data(5, 4, seed=i).requires_grad_()
        h = first(x)
        y = both(x + second(h))
        g = clnn.autograd.grad([y.sum(), h.mean()], [x, first[0].weight], create_graph=True)
        for m in (first, both):
            m.zero_grad()
        (y.mean() + sum([(v.norm() - 1) ** 2 for v in g])).backward(retain_graph=True)
        y.sum().backward()
        found += [p.grad.numpy() for p in both.parameters()] + [x.grad.numpy()]
    return found


@pytest.mark.parametrize("program", [third_order, penalised])
def test_gradients_of_many_orders(program, counted, monkeypatch):
    got = program()
    assert len(counted) > CALLS
    without(monkeypatch)
    want = program()
    assert len(got) == len(want)
    for a, b in zip(got, want):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def after_some_calls(model, counted):
    for i in range(CALLS):
        y = model(data(5, 4, seed=i))
        assert not counted or y._grad_fn is not None
    assert counted
    return y


def test_a_program_sees_every_operator(counted):
    y = after_some_calls(stack(nn.ReLU(), nn.LayerNorm(6)), counted)
    names, node = [], y.grad_fn
    while node is not None:
        names.append(node.name())
        node = next((f for f, _ in node.next_functions if f is not None and "Accumulate" not in f.name()), None)
    assert names == ["AddmmBackward0", "NativeLayerNormBackward0", "ReluBackward0", "AddmmBackward0", "TBackward0"]


def test_hooks_on_what_a_program_found(counted):
    model = stack(nn.ReLU())
    y = after_some_calls(model, counted)
    seen = []
    relu = next(f for f, _ in y.grad_fn.next_functions if "Relu" in f.name())
    relu.register_hook(lambda gin, gout: seen.append(gout[0].shape))
    y.register_hook(lambda g: 2 * g)
    y.sum().backward()
    assert seen == [(5, 6)]
    assert model[1 + 1].bias.grad.tolist() == [10.0] * 3


def test_used_up_and_retained(counted):
    model = stack(nn.ReLU())
    y = after_some_calls(model, counted).sum()
    y.backward(retain_graph=True)
    before = model[0].weight.grad.clone()
    y.backward()
    assert clnn.allclose(model[0].weight.grad, 2 * before)
    with pytest.raises(RuntimeError, match="a second time"):
        y.backward()


@pytest.mark.parametrize("passes", [1, 4])
def test_used_up_by_repeated_passes(passes, counted):
    model = stack(nn.ReLU())
    for i in range(CALLS + passes):
        y = model(data(5, 4, seed=i))
        y.sum().backward()
    with pytest.raises(RuntimeError, match="a second time"):
        y.sum().backward()


def test_what_is_overwritten_is_noticed(counted):
    model = stack(nn.Tanh())
    y = after_some_calls(model, counted)
    with clnn.no_grad():
        model[2].weight.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    last = nn.Sequential(nn.Linear(4, 6), nn.Tanh())
    y = after_some_calls(last, counted)
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_hooks_of_layers_are_called(counted):
    model, seen = stack(nn.ReLU()), []
    after_some_calls(model, counted)
    handle = model[1].register_forward_hook(lambda m, args, out: seen.append(out.shape))
    model(data(5, 4))
    assert seen == [(5, 6)]
    handle.remove()
    before = len(counted)
    model(data(5, 4))
    assert len(counted) == before + 1
    with nn.modules.module.register_module_forward_pre_hook(lambda m, args: seen.append("all")):
        model(data(5, 4))
    assert seen[1:] == ["all"] * 4
    del seen[1:]
    model[0].register_full_backward_hook(lambda m, gin, gout: seen.append("back"))
    model(data(5, 4)).sum().backward()
    assert seen[1:] == ["back"]


def test_settings_classes_and_methods_tell_calls_apart(counted):
    model = stack(nn.LeakyReLU(0.1))
    x = data(5, 4)
    after_some_calls(model, counted)
    first = model(x)
    model[1].negative_slope = 0.9
    assert not clnn.equal(model(x), first)

    class Double(nn.Linear):
        def forward(self, input):
            return 2 * super().forward(input)
    model[2].__class__ = Double
    model[1].negative_slope = 0.1
    assert clnn.allclose(model(x), 2 * first)
    model[2].__class__ = nn.Linear
    model[1].forward = lambda input: input * 0
    assert clnn.allclose(model(x), model[2].bias.expand(5, 3))


def test_weights_that_a_program_computes(counted):
    model, scale = stack(nn.ReLU()), clnn.tensor(0.5, requires_grad=True)
    plain = model[0].weight.detach()
    del model[0].weight
    for i in range(CALLS):
        model[0].weight = plain * scale
        scale.grad = None
        y = model(data(5, 4, seed=i))
        y.sum().backward()
    assert counted and scale.grad is not None
    assert clnn.allclose(y, model[2](F.relu(F.linear(data(5, 4, seed=CALLS - 1), plain * 0.5, model[0].bias))))


def test_shared_layers_and_shared_memory(counted, monkeypatch):
    def run():
        layer = stack(nn.ReLU())
        layer[2] = nn.Linear(6, 4)
        model = nn.Sequential(*layer, *layer)
        x = data(5, 4).requires_grad_()
        for _ in range(CALLS):
            x.grad = None
            model.zero_grad()
            model(x).square().sum().backward()
        return [x.grad, *[p.grad for p in model.parameters()]]
    got = run()
    assert counted
    without(monkeypatch)
    for a, b in zip(got, run()):
        assert clnn.allclose(a, b, rtol=1e-5)


def test_modes(counted):
    model = stack(nn.ReLU())
    want = after_some_calls(model, counted)
    x = data(5, 4, seed=CALLS - 1)
    with clnn.no_grad():
        assert not any([model(x).requires_grad for _ in range(CALLS)])
    with clnn.inference_mode():
        got = [model(x) for _ in range(CALLS)][-1]
    assert got.is_inference() and clnn.equal(got, want)
    with clnn.autocast("cpu", dtype=clnn.bfloat16):
        assert model(x).dtype is clnn.bfloat16
    with clnn.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        model(x).sum().backward()
    assert clnn.equal(clnn.func.vmap(model)(x), want)
    assert clnn.allclose(copy.deepcopy(model)(x), want)
    made = got.clone()                       # not tracked: made in inference mode
    assert clnn.equal(made, want)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved"):
        with clnn.inference_mode():
            y = clnn.ones(5, 4)
        for _ in range(CALLS):
            model(y)


@pytest.mark.parametrize("name, args", [("mse_loss", {}), ("smooth_l1_loss", {"beta": 0.5}), ("huber_loss", {"delta": 2.0}), ("l1_loss", {"reduction": "sum"}),
                                        ("kl_div", {"reduction": "batchmean"}), ("binary_cross_entropy_with_logits", {}), ("soft_margin_loss", {}),
                                        ("cosine_similarity", {}), ("pairwise_distance", {})])
def test_composites(name, args, counted, monkeypatch):
    def run():
        found = []
        for i in range(CALLS):
            differs = i > 3 and name != "soft_margin_loss"              # whose target has no gradient
            x, y = data(5, 4, seed=i).requires_grad_(), data(5, 4, seed=i + 9).sigmoid().requires_grad_(differs)
            r = getattr(F, name)(x, y, **args)
            shown = r.grad_fn.name() if i == CALLS - 1 else ""
            g, = clnn.autograd.grad(r.sum(), x, create_graph=True)
            if g.requires_grad:
                g.square().sum().backward()
            found.append((shown, [v.detach().numpy() for v in (r, g, x.grad, y.grad) if v is not None]))
        return found
    got = run()
    without(monkeypatch)
    for (shown, a), (name, b) in zip(got, run()):
        assert shown == name and len(a) == len(b)
        for g, w in zip(a, b):
            np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-6)
