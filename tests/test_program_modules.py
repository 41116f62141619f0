"""A program's own modules whose forward methods only call layers and functions of tensors are one entry of the tape; what more they do is always done."""
import copy
import math
import os
import subprocess
import sys

import numpy as np
import pytest

import clnn
import clnn as torch
from clnn import nn
from clnn._tensor import splice
from clnn.nn import functional as F
from clnn.nn.modules import _forward

CALLS = 6
SCALE = 2.0


@pytest.fixture(autouse=True)
def counted(monkeypatch):
    """The number of calls that were spliced, those inside of others not counted."""
    real, count = splice._again, []
    monkeypatch.setattr(splice, "_again", lambda *args: count.append(1) or real(*args))
    clnn.manual_seed(0)
    return count


def data(*shape, seed=0):
    clnn.synchronize()
    return clnn.tensor(np.random.default_rng(seed).standard_normal(shape).astype("f"))


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.drop, self.scale = nn.Linear(4, 6), nn.Linear(6, 4), nn.Dropout(0.3), 0.5

    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = torch.tanh(self.drop(x)) * self.scale + math.pi
        return self.fc2(x)


class Image(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.fc = nn.Conv2d(1, 3, 3), nn.GroupNorm(1, 3), nn.Linear(12, 4)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv(x.view(-1, 1, 6, 6)))), 2)
        return F.log_softmax(self.fc(x.view(x.size(0), -1)), dim=1)


class Loop(nn.Module):
    """Lists of layers, own parameters and buffers, a residual in place, branches on what is no tensor, several results."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.named = nn.ModuleDict({"a": nn.Tanh(), "b": nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True))})
        self.gain, self.table, self.first = nn.Parameter(torch.ones(4) * 1.5), torch.arange(4.0), None
        self.register_buffer("shift", torch.ones(4))

    def body(self, x, layer):
        y = layer(x)
        y += x
        return y

    def forward(self, x, mask=None, twice=False):
        for i, layer in enumerate(self.layers):
            x = self.body(x, layer) if i % 2 == 0 else self.named["a"](x)
        if mask is not None:
            x = x.masked_fill(mask, 0.0)
        if self.training and self.first is None:
            x = x * 2
        x = self.named["b"](x) * self.gain + self.shift * SCALE + self.table
        return (x, x.sum(1)) if twice else x


class Sampler(nn.Module):
    """What draws random numbers."""

    def __init__(self):
        super().__init__()
        self.mean, self.spread, self.out = nn.Linear(4, 3), nn.Linear(4, 3), nn.Linear(3, 4)

    def sample(self, mean, log_var):
        return mean + torch.randn_like(mean) * torch.exp(0.5 * log_var)

    def forward(self, x):
        mean, spread = self.mean(x), self.spread(x)
        return torch.sigmoid(self.out(self.sample(mean, spread))), mean, spread


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.rnn, self.out = nn.Embedding(7, 4), nn.GRU(4, 5, batch_first=True), nn.Linear(5, 4)

    def forward(self, x):
        y, h = self.rnn(self.table(x))
        return self.out(torch.cat([y[:, -1], h[0]], 0))


def local():
    """A class in a function, whose names are those of the function."""
    f, gain = nn.functional, 3.0

    class Local(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x):
            return f.silu(self.fc(x)) * gain
    return Local()


MODULES = {"plain": (Plain, lambda i: (data(3, 4, seed=i),)), "image": (Image, lambda i: (data(2, 36, seed=i),)), "loop": (Loop, lambda i: (data(3, 4, seed=i),)),
           "masked": (Loop, lambda i: (data(3, 4, seed=i), data(3, 4, seed=i + 50) > 0, True)), "sampler": (Sampler, lambda i: (data(5, 4, seed=i),)),
           "words": (Words, lambda i: (clnn.tensor(np.random.default_rng(i).integers(0, 7, (2, 3))),)),
           "local": (local, lambda i: (data(3, 4, seed=i),)),
           "nested": (lambda: nn.Sequential(Plain(), Loop(), Plain()), lambda i: (data(3, 4, seed=i),))}


def learned(name):
    make, inputs = MODULES[name]
    clnn.manual_seed(1)
    model, found = make(), []
    optimizer = clnn.optim.SGD(model.parameters(), lr=0.01)
    for i in range(2 * CALLS):
        model.train(i < CALLS)
        given = [t.requires_grad_() if t.dtype.is_floating_point else t for t in inputs(i) if isinstance(t, clnn.Tensor)]
        out = model(*given, *[v for v in inputs(i) if not isinstance(v, clnn.Tensor)])
        outs = out if isinstance(out, tuple) else (out,)
        optimizer.zero_grad()
        sum([(o * o).sum() for o in outs]).backward()
        found += [v.detach().numpy().copy() for v in (*outs, *[t.grad for t in given], *[p.grad for p in model.parameters()]) if v is not None]
        optimizer.step()
    return found


@pytest.mark.parametrize("name", MODULES)
def test_results_and_gradients(name, counted, monkeypatch):
    got = learned(name)
    assert len(counted) >= 2
    monkeypatch.setattr(splice.Spliced, "call", lambda self, body, *_: body())
    for g, w in zip(got, learned(name), strict=True):
        np.testing.assert_allclose(g, w, rtol=2e-4, atol=2e-5)


def test_attributes_are_looked_at_in_each_call(monkeypatch):
    """Values, layers, parameters, functions and constants that a program changes."""
    model, x = Plain().eval(), data(3, 4)
    for _ in range(CALLS):
        model(x)

    def now():
        return model.fc2(torch.tanh(F.relu(model.fc1(x))) * model.scale + math.pi)
    for change in (lambda: setattr(model, "scale", 3.0), lambda: setattr(model, "scale", torch.tensor([2.0])), lambda: model.fc2.weight.data.mul_(2),
                   lambda: setattr(model, "fc1", nn.Linear(4, 6, bias=False)), lambda: model.fc1.requires_grad_(False),
                   lambda: setattr(model, "fc1", nn.Sequential(nn.Linear(4, 6), nn.Tanh()))):
        change()
        for _ in range(CALLS):
            assert clnn.allclose(model(x), now(), atol=1e-5)
    many = Loop()
    for _ in range(CALLS):
        before = many(x)
    monkeypatch.setitem(globals(), "SCALE", 5.0)
    assert clnn.allclose(many(x), before + 3.0, atol=1e-5)
    monkeypatch.setattr(Plain, "forward", lambda self, x: x * 7)
    assert (model(x) == x * 7).all()


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.calls = nn.Linear(4, 4), 0

    def forward(self, x):
        self.calls += 1
        return self.fc(x)


class Prints(Plain):
    def forward(self, x):
        print(x.shape)
        return super().forward(x)


class Collects(Plain):
    def forward(self, x):
        LOG.append(x.shape[0])
        return self.fc1(x)


class Branches(Plain):
    def forward(self, x):
        return self.fc1(x) if x.sum() > 0 else self.fc1(x) * 0


class Writes(Plain):
    def forward(self, x):
        x += 1
        return self.fc1(x)


class Remembers(Plain):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        self.seen.add_(1)
        return self.fc1(x)


class Asks(Plain):
    def forward(self, x):
        return self.fc1(x) * float(x.abs().max())


LOG = []


def test_what_a_method_does_besides_is_done(capsys):
    x = data(3, 4)
    counts, prints, collects, branches, writes, remembers, asks = Counts(), Prints(), Collects(), Branches(), Writes(), Remembers(), Asks()
    for i in range(CALLS):
        counts(x), prints(x), collects(x), remembers(x)
        y = data(3, 4, seed=i)
        want = branches.fc1(y) * float(y.sum() > 0)
        assert clnn.allclose(branches(y), want) and clnn.allclose(asks(y), asks.fc1(y) * float(y.abs().max()))
        kept = y.clone()
        assert clnn.allclose(writes(y), writes.fc1(kept + 1)) and (y == kept + 1).all()
    assert counts.calls == CALLS and LOG == [3] * CALLS and remembers.seen == CALLS and capsys.readouterr().out.count("Size([3, 4])") == CALLS


@pytest.mark.parametrize("cls", [Counts, Prints, Collects])
def test_such_methods_are_not_taken(cls):
    assert _forward.form_of(cls) is None and _forward.form_of(Plain) is not None


def test_hooks_and_copies(counted):
    model, x, seen = Plain().eval(), data(3, 4), []
    for _ in range(CALLS):
        want = model(x)
    twin = copy.deepcopy(model)
    assert clnn.allclose(twin(x), want)
    inner = model.fc1.register_forward_hook(lambda *_: seen.append("inner"))
    outer = model.register_forward_pre_hook(lambda *_: seen.append("outer"))
    model(x)
    assert seen == ["outer", "inner"]
    inner.remove()
    outer.remove()
    model.forward = lambda v: v
    assert model(x) is x


def test_methods_that_a_program_replaces_are_called(monkeypatch):
    """Of all layers, also after calls that are repeated: others in place of ``Module.__call__``, of a layer's ``forward``, and ``__call__`` of classes of its own."""
    class Outer(nn.Module):
        def __init__(self, *layers):
            super().__init__()
            self.inner = nn.Sequential(*layers)

        def forward(self, x):
            return self.inner(x)

    class Own(nn.Sequential):
        def __call__(self, x):
            seen.append("own")
            return super().__call__(x)
    model, x, seen = Outer(nn.Linear(4, 4), nn.ReLU(), nn.Sequential(nn.Linear(4, 4), nn.Tanh()), nn.BatchNorm1d(4)), data(3, 4), []
    own, attention = Outer(nn.ReLU(), Own(nn.Linear(4, 4), nn.Tanh())), nn.TransformerEncoderLayer(4, 2, 4, 0.0)
    for _ in range(CALLS):
        model(x), model.inner(x), own(x), attention(x)
    assert seen == ["own"] * CALLS
    call, forward = nn.Module.__call__, nn.Linear.forward
    for _ in range(CALLS):
        with monkeypatch.context() as patch:
            patch.setattr(nn.Module, "__call__", lambda self, *args, **kwargs: (seen.append(type(self).__name__), call(self, *args, **kwargs))[1])
            seen.clear(), model(x)
            assert seen == ["Outer", "Sequential", "Linear", "ReLU", "Sequential", "Linear", "Tanh", "BatchNorm1d"]
            seen.clear(), attention(x)
            assert seen.count("Linear") == 2 and seen.count("LayerNorm") == 2
        with monkeypatch.context() as patch:
            patch.setattr(nn.Linear, "forward", lambda self, x: seen.append("forward") or forward(self, x) + 1)
            for module in (model, model.inner):
                seen.clear(), module(x)
                assert seen == ["forward"] * 2


def test_a_parameter_that_is_not_used_has_no_gradient(counted):
    class Partly(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.unused, self.loose = nn.Linear(4, 4), nn.Linear(4, 4), nn.Parameter(torch.ones(3))

        def forward(self, x):
            return self.used(x).relu()

    model = Partly()
    for i in range(CALLS):
        model(data(3, 4, seed=i)).sum().backward()
    assert model.unused.weight.grad is None and model.loose.grad is None and model.used.weight.grad is not None and len(counted) >= 2


def test_second_gradients(counted):
    model = Plain().eval()
    for i in range(CALLS):
        x = data(3, 4, seed=i).requires_grad_()
        g, = torch.autograd.grad(model(x).square().sum(), x, create_graph=True)
        g.square().sum().backward()
        want = x.detach().clone().requires_grad_()
        h, = torch.autograd.grad(model.fc2(torch.tanh(F.relu(model.fc1(want))) * 0.5 + math.pi).square().sum(), want, create_graph=True)
        h.square().sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), want.grad.numpy(), rtol=1e-4, atol=1e-5)
    assert len(counted) >= 2


def test_nothing_is_repeated_where_that_is_asked_for():
    code = ("import clnn; from clnn import nn; from clnn._tensor import splice, repeat; m = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 2)); "
            "splice._again = repeat.Recipe.run = None; [m(clnn.ones(1, 2)).sum().backward() for _ in range(5)]; print(m[0].weight.grad.shape)")
    got = subprocess.run([sys.executable, "-c", code], env={**os.environ, "CLNN_REPEAT": "0"}, capture_output=True, text=True, timeout=120)
    assert "Size([2, 2])" in got.stdout, got.stderr
