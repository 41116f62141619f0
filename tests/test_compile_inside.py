"""clnn.compile: what recordings are made of, functions in functions, and their backward passes."""
import copy
import io
import pickle
import warnings

import numpy as np
import pytest
from test_compile import data, mlp

import clnn
from clnn import nn
from clnn.core.config import config


@pytest.mark.parametrize("known", [False, True])
def test_a_compiled_function_is_part_of_the_one_that_calls_it(known):
    def run(compile):
        model = compile(mlp())
        loss, opt = compile(lambda y: y.square().mean()), clnn.optim.SGD(model.parameters(), lr=0.1)

        @compile
        def step(x):
            opt.zero_grad()
            value = loss(model(x))
            value.backward()
            opt.step()
            return value
        for _ in range(4 * known):
            loss(model(data(4, 6))).backward()
        return [step(data(4, 6)).item() for _ in range(5)], model(data(4, 6)).tolist()
    assert flat(run(clnn.compile)) == pytest.approx(flat(run(lambda f: f)))


def flat(values):
    return [v for value in values for v in flat(value)] if isinstance(values, (list, tuple)) else [values]


def test_inputs_that_transfers_write():
    def bump(x):
        x.add_(1)
        return x
    f = clnn.compile(bump)
    for i in range(6):
        x = clnn.full((3,), float(i))
        assert f(x) is x and x.tolist() == [i + 1.0] * 3


@pytest.mark.parametrize("layers", [1, 2])
def test_gradients_from_outputs_that_are_saved(layers):
    """The outputs of a recurrent layer share their memory with what its backward pass reads."""
    def run(compile):
        clnn.manual_seed(0)
        layer = nn.LSTM(2, 3, layers)
        f, grads = compile(layer), []
        for i in range(6):
            layer.zero_grad()
            f(data(4, 2, 2, seed=i))[0].sum().backward()
            grads.append([p.grad.numpy() for p in layer.parameters()])
        return grads
    for ours, theirs in zip(run(clnn.compile), run(lambda f: f)):
        for a, b in zip(ours, theirs):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("to_none", [True, False])
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("every", [1, 2])
def test_gradients_that_a_compiled_function_leaves(every, inside, to_none):
    """Whether leaves have gradients before a call decides what it does; the program changes them between the calls."""
    def run(compile):
        model = mlp()
        opt = clnn.optim.SGD(model.parameters(), lr=0.1)

        def add(x):
            if inside:
                opt.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            return loss.detach()
        f, seen = compile(add), []
        for i in range(12):
            if i % every == 0:
                opt.zero_grad(set_to_none=to_none)
            seen.append(float(f(data(4, 6, seed=i))))
            if (i + 1) % every == 0:
                seen.append(float(nn.utils.clip_grad_norm_(model.parameters(), 0.5)))
                opt.step()
            seen.append(float(model[0].weight.grad.sum()))
        return seen, f
    (ours, f), (theirs, _) = run(clnn.compile), run(lambda f: f)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
    assert not f.fallbacks and 1 <= sum(map(len, f._recordings.values())) <= 2


def test_values_taken_before_a_call_stay():
    """Copies that share memory until it is written, and what is still to be computed, are of the time before the replay."""
    def run(compile):
        model, total, x, seen = mlp(), clnn.zeros(2), clnn.zeros(2), []
        opt = clnn.optim.SGD(model.parameters(), lr=0.1)

        def step(batch, x):
            opt.zero_grad()
            loss = model(batch).square().mean()
            loss.backward()
            opt.step()
            total.add_(loss.detach())
            x.add_(1)
            return loss.detach()
        f = compile(step)
        for i in range(7):
            w = model[0].weight
            seen += [w.detach().clone(), w.detach() * 2, total + 1, x * 1] + ([w.grad.clone()] if i else [])
            seen.append(f(data(4, 6, seed=i), x))
        return [t.numpy() for t in [*seen, x, total]]
    for a, b in zip(run(clnn.compile), run(lambda f: f)):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_inputs_that_get_other_memory():
    def swap(x, y):
        x.data = y * 2
        return x + 1
    f = clnn.compile(swap)
    for i in range(5):
        x, y = clnn.zeros(2), clnn.full((2,), float(i))
        assert f(x, y).tolist() == [2.0 * i + 1] * 2 and x.tolist() == [2.0 * i] * 2


def test_checkpoints_draw_the_same_numbers_again(monkeypatch):
    monkeypatch.setattr(config, "random", "philox")           # what is compiled does not follow PyTorch's sequence

    def run(compile):
        clnn.manual_seed(0)
        model = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Tanh(), nn.Linear(8, 2))
        f, grads = compile(lambda x: clnn.utils.checkpoint.checkpoint(model, x, use_reentrant=False)), []
        for i in range(6):
            x = data(4, 6, seed=i).requires_grad_()
            f(x).sum().backward()
            grads.append(x.grad.numpy())
        return grads, f
    (ours, f), (theirs, _) = run(clnn.compile), run(lambda f: f)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
    assert f._recordings and not f.fallbacks


def test_a_backward_pass_that_reads_values():
    """It cannot be recorded; calls go on without, and the first is done once where its inputs are in place."""
    seen = []

    class Square(clnn.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            seen.append(ctx.saved_tensors[0].sum().item())
            return 2 * ctx.saved_tensors[0] * g
    for first in (3, 5):                # at its recording, or at a replay of it on other inputs
        f = clnn.compile(lambda x: Square.apply(x).sum())
        inputs = [data(4, seed=i).requires_grad_() for i in range(8)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for i, x in enumerate(inputs):
                out = f(x)
                if i >= first - 1:
                    out.backward()
                    np.testing.assert_allclose(x.grad.numpy(), 2 * x.detach().numpy(), rtol=1e-6)
        assert list(f.fallbacks.values())[0].startswith("in its backward pass") and not f._recordings
        for i, x in enumerate(inputs):
            np.testing.assert_array_equal(x.detach().numpy(), data(4, seed=i).numpy())
    assert len(seen) == 6 + 4 + 1


def test_compiled_modules_are_copied_and_saved():
    model, file, x = clnn.compile(mlp()), io.BytesIO(), data(4, 6)
    want = [model(x).tolist() for _ in range(4)][-1]
    clnn.save(model, file)
    file.seek(0)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), clnn.load(file, weights_only=False)):
        assert type(other) is type(model) and len(other) == len(model._orig_mod) and other._orig_mod is not model._orig_mod
        assert [other(x).tolist() for _ in range(4)][-1] == want
