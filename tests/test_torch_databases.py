"""PyTorch's own lists of modules and optimizers, with the inputs that its tests use, run by both libraries."""
import collections
import warnings

import numpy as np
import pytest
from scenarios import torch

import clnn

modules = pytest.importorskip("torch.testing._internal.common_modules")
optimizers = pytest.importorskip("torch.testing._internal.common_optimizers")

_RANDOM = ("FractionalMaxPool", "Transformer", "MultiheadAttention", "RReLU", "Lazy", "LinearCrossEntropy")       # draw numbers, or take a thousand inputs
MODULES = [info for info in modules.module_db if not info.name.startswith(tuple("nn." + name for name in _RANDOM))]
OPTIMIZERS = [info for info in optimizers.optim_db if info.name not in ("SparseAdam", "LBFGS")]


def ours(value):
    """The same tensors, numbers and functions for clnn."""
    if isinstance(value, torch.Tensor):
        made = clnn.from_numpy(value.detach().numpy().copy())
        return made.requires_grad_() if value.requires_grad else made
    if isinstance(value, torch.dtype):
        return getattr(clnn, str(value)[6:])
    if isinstance(value, dict):
        return {k: ours(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(ours, value)) if not hasattr(value, "_fields") else value
    own = getattr(value, "__module__", None)
    return getattr(clnn.nn.functional, value.__name__) if callable(value) and own and own.startswith("torch.") else value


def copied(value):
    """Leaves with the values of ``value``'s tensors."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    return type(value)(map(copied, value)) if isinstance(value, (list, tuple)) else value


def tensors(value):
    """All tensors in a nest of tuples and lists."""
    if isinstance(value, (torch.Tensor, clnn.Tensor)):
        return [value]
    return [t for part in value for t in tensors(part)] if isinstance(value, (list, tuple)) else []


def same(want, got, what):
    assert (want is None) == (got is None), what
    if want is not None:
        assert (str(want.dtype)[6:], tuple(want.shape)) == (str(got.dtype).partition(".")[2], tuple(got.shape)), what
        np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=1e-3, atol=1e-4, err_msg=what)


def _forward(info, sample, training):
    given = sample.constructor_input
    pair = (info.module_cls(*given.args, **given.kwargs),
            getattr(clnn.nn, info.module_cls.__name__)(*ours(tuple(given.args)), **{k: ours(v) for k, v in given.kwargs.items() if k != "device"}))
    theirs, own = (model.train(training) for model in pair)
    assert repr(theirs) == repr(own) and list(theirs.state_dict()) == list(own.state_dict())
    own.load_state_dict({k: ours(v) for k, v in theirs.state_dict().items()})
    args, kwargs = copied(tuple(sample.forward_input.args)), sample.forward_input.kwargs
    own_args, own_kwargs = ours(args), ours(kwargs)
    want, got = theirs(*args, **kwargs), own(*own_args, **own_kwargs)
    return theirs, own, args, own_args, tensors(want), tensors(got)


@pytest.mark.share(2)
@pytest.mark.parametrize("info", MODULES, ids=lambda info: info.name[3:])
def test_modules(info):
    for training in (True, False) if info.train_and_eval_differ else (True,):
        samples = info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=True, training=training)
        for sample in [s for s in samples if s.forward_input is not None][:3]:
            theirs, own, args, own_args, want, got = _forward(info, sample, training)
            assert len(want) == len(got)
            for a, b in zip([*want, *theirs.buffers()], [*got, *own.buffers()]):
                same(a, b, sample.desc)
            if not want or not all(a.requires_grad for a in want):
                continue
            grads = [torch.cos(torch.arange(a.numel(), dtype=a.dtype)).reshape(a.shape) for a in want]
            torch.autograd.backward(want, grads)
            clnn.autograd.backward(got, ours(grads))
            pairs = [(a, b) for a, b in zip(tensors(args), tensors(own_args)) if a.is_leaf and (info.name != "nn.KLDivLoss" or a is args[0])]
            for a, b in [*zip(theirs.parameters(), own.parameters()), *pairs]:      # of targets that are 0 PyTorch's divergence has no slope
                same(a.grad, b.grad, f"gradient, {sample.desc}")


def _steps(lib, optimizer, params, kwargs, steps=4, state=None):
    chosen = getattr(lib.optim, optimizer)(params, **kwargs)
    if state is not None:
        chosen.load_state_dict(state)
    for step in range(steps):
        def closure():
            chosen.zero_grad()
            loss = sum(((p * (i + 1) * 0.5 - 0.1 * step) ** 2).sum() * 0.1 + p.sin().sum() * 0.3 for i, p in enumerate(params))
            loss.backward()
            return loss
        chosen.step(closure)
    return chosen


def _alike(a, b, what):
    if isinstance(a, torch.Tensor):
        same(a, b, what)
    elif isinstance(a, dict):
        assert list(a) == list(b), what
        for k in a:
            _alike(a[k], b[k], f"{what}.{k}")
    elif isinstance(a, (list, tuple)):
        assert (type(a), len(a)) == (type(b), len(b)), what
        for x, y in zip(a, b):
            _alike(x, y, what)
    else:
        assert type(a) is type(b) and (a == b or a == pytest.approx(b, rel=1e-5)), (what, a, b)


@pytest.mark.share(2)
@pytest.mark.parametrize("info", OPTIMIZERS, ids=lambda info: info.name)
def test_optimizers(info):
    shapes = ((5, 4), (3, 6)) if info.name == "Muon" else ((5, 4), (4,), (3, 2, 2), ())
    values = [np.random.default_rng(i).standard_normal(shape).astype(np.float32) for i, shape in enumerate(shapes)]
    for sample in info.optim_inputs_func(device="cpu", dtype=torch.float32):
        pair = []
        for lib, kwargs in ((torch, sample.kwargs), (clnn, ours(sample.kwargs))):
            params = [lib.nn.Parameter(lib.tensor(v)) for v in values]
            pair.append((params, _steps(lib, info.name, params, kwargs)))
        (params, theirs), (own_params, own) = pair
        for a, b in zip(params, own_params):
            same(a, b, sample.desc)
        _alike(theirs.state_dict(), own.state_dict(), sample.desc)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            state = ours(theirs.state_dict())
        fresh = [clnn.nn.Parameter(ours(p.detach())) for p in params]
        _steps(clnn, info.name, fresh, ours(sample.kwargs), 2, state)
        for a, b in zip(params, fresh):
            assert a.shape == tuple(b.shape) and bool(clnn.isfinite(b).all())


def test_lists_are_read():
    """Nothing above is skipped because a name was not found."""
    counts = collections.Counter(hasattr(clnn.nn, info.module_cls.__name__) for info in modules.module_db)
    assert set(counts) == {True} and all(hasattr(clnn.optim, info.name) for info in optimizers.optim_db)
