"""Whole modules, optimizers, data sets and distributions in files, between both libraries."""
import argparse
import collections
import datetime
import functools
import io
import pathlib
import warnings

import numpy as np
import pytest
from scenarios import torch

import clnn
from clnn.serialization import SerializationError


def saved_by_torch(obj):
    file = io.BytesIO()
    torch.save(obj, file)
    file.seek(0)
    return file


def some_module(T):
    return T.nn.Sequential(T.nn.Linear(6, 8), T.nn.LayerNorm(8), T.nn.GELU(), T.nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True),
                           T.nn.ModuleDict({"a": T.nn.BatchNorm1d(3)})["a"], T.nn.LSTM(8, 4, batch_first=True))


def applied(module, x):
    return module(x)[0].detach().numpy()


class Scaled(clnn.nn.Module):
    def __init__(self, act):
        super().__init__()
        self.act, self.sizes, self.scale = act, [1, (2, 3)], clnn.nn.Parameter(clnn.ones(2))
        self.register_buffer("count", clnn.tensor(3), persistent=False)

    def forward(self, x):
        return self.act(x) * self.scale


def doubled(x, times=2):
    return x * times


def test_functions_that_modules_keep():
    own = Scaled(functools.partial(doubled, times=3))
    own.plain, own.kept = doubled, own.forward
    own.forward = functools.partial(own.forward)        # as libraries do that wrap a module's forward for a while
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clnn.save(own, file)
    file.seek(0)
    got = clnn.load(file, weights_only=False)
    assert got.plain is doubled and got.kept.__self__ is got and got(clnn.ones(2)).tolist() == [3, 3]
    file = io.BytesIO()
    own.other = own.extra_repr
    with pytest.warns(UserWarning, match="clnn.load, which runs no code of a file, will refuse it"):
        clnn.save(own, file)
    file.seek(0)
    assert clnn.load(saved_by_torch([doubled]), weights_only=False) == [doubled]
    for refused in (file, saved_by_torch([pytest.raises]), saved_by_torch(functools.partial(io.open, "x"))):
        with pytest.raises(SerializationError):
            clnn.load(refused, weights_only=False)
    with clnn.serialization.safe_globals([pytest.raises]):
        assert clnn.load(saved_by_torch([pytest.raises])) == [pytest.raises]


def test_whole_modules():
    file = io.BytesIO()
    module = some_module(clnn).eval()
    own = Scaled(clnn.nn.functional.silu)
    module[0].weight.data *= 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clnn.save({"module": module, "own": own, "again": own}, file)
    file.seek(0)
    with pytest.raises(SerializationError, match="weights_only=False reads it"):
        clnn.load(file)
    file.seek(0)
    got = clnn.load(file, weights_only=False)
    x = clnn.randn(2, 3, 6)
    assert np.array_equal(applied(got["module"], x), applied(module, x)) and not got["module"].training
    assert type(got["own"]) is Scaled and got["again"] is got["own"] and got["own"].sizes == [1, (2, 3)] and got["own"].count.item() == 3
    assert got["own"].act is clnn.nn.functional.silu and "count" not in got["own"].state_dict()
    assert isinstance(got["own"].scale, clnn.nn.Parameter) and got["own"](clnn.zeros(2)).requires_grad


def test_whole_modules_to_and_from_torch():
    x = np.random.default_rng(0).standard_normal((2, 3, 6)).astype(np.float32)
    module = some_module(torch).eval()
    got = clnn.load(saved_by_torch(module), weights_only=False)
    assert [type(m).__name__ for m in got] == [type(m).__name__ for m in module]
    np.testing.assert_allclose(applied(got, clnn.tensor(x)), applied(module, torch.tensor(x)), rtol=1e-4, atol=1e-5)
    file = io.BytesIO()
    clnn.save(got, file)
    file.seek(0)
    np.testing.assert_allclose(applied(torch.load(file, weights_only=False), torch.tensor(x)), applied(module, torch.tensor(x)), rtol=1e-4, atol=1e-5)


def whole_objects(T):
    """What checkpoints hold beside modules, and what a program asks of each."""
    D, data = T.distributions, T.utils.data
    model = T.nn.Linear(2, 1)
    optimizer = T.optim.Adam(model.parameters(), 0.1)
    model(T.ones(1, 2)).sum().backward()
    optimizer.step()
    c = D.constraints
    return {"model": model, "optimizer": optimizer, "schedule": T.optim.lr_scheduler.StepLR(optimizer, 2), "data": data.Subset(data.TensorDataset(T.arange(4)), [1, 3]),
            "supports": [c.real, c.positive, c.interval(0.0, 1.0), c.independent(c.real, 1)], "args": argparse.Namespace(lr=0.1, at=slice(1, None)),
            "kinds": [T.nn.ReLU, int, T.optim.SGD, functools.partial(T.nn.LayerNorm, eps=1e-6), T.relu, T.nn.functional.silu, collections.defaultdict(list)],
            "ways": [pathlib.PosixPath("/a/b"), datetime.datetime(2020, 1, 2), range(3)],
            "of": [D.Normal(T.zeros(2), 1.0), D.Chi2(T.ones(1)), D.Bernoulli(T.tensor([0.25])), D.TransformedDistribution(D.Normal(0.0, 1.0), [D.ExpTransform()])]}


def asked(T, got):
    T.manual_seed(0)
    optimizer, schedule = got["optimizer"], got["schedule"]
    assert schedule.optimizer is optimizer and optimizer.param_groups[0]["params"][0] is got["model"].weight
    before = got["model"].weight.tolist()
    got["model"](T.ones(1, 2)).sum().backward()
    optimizer.step()
    schedule.step()
    assert got["model"].weight.tolist() != before
    return [repr(optimizer), schedule.get_last_lr(), list(schedule.state_dict()), optimizer.state[got["model"].bias]["step"].item(),
            [got["data"][i][0].item() for i in range(2)],
            str(got["supports"]), [k is w for k, w in zip(got["kinds"], (T.nn.ReLU, int, T.optim.SGD))], got["kinds"][3]([2]).eps,
            [f(T.tensor([-1.0, 1.0])).tolist() for f in got["kinds"][4:6]], got["kinds"][6], got["args"], got["ways"],
            [[d.expand((3, 2)).sample().shape, round(d.log_prob(T.ones(2)).sum().item(), 4)] for d in got["of"]]]


def test_whole_objects_to_and_from_torch():
    wanted = asked(torch, whole_objects(torch))
    assert asked(clnn, clnn.load(saved_by_torch(whole_objects(torch)), weights_only=False)) == wanted
    for T in (clnn, torch):
        file = io.BytesIO()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            clnn.save(whole_objects(clnn), file)
        file.seek(0)
        assert asked(T, T.load(file, weights_only=False)) == wanted
