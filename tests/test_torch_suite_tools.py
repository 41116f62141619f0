"""What PyTorch's own tests ask of the tools around modules: optimizers, schedules, data sets, files."""
import io

import pytest
from scenarios import assert_same, torch

import clnn


def _words(call):
    """What a call gives, or the kind and the words of its error."""
    try:
        return call()
    except Exception as error:
        return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"), str(error)


def _sgd(t, **options):
    return t.optim.SGD([t.nn.Parameter(t.ones(2))], lr=0.1, **options)


def _resumed(t):
    t.optim.lr_scheduler.StepLR(_sgd(t), 2, last_epoch=3)


CALLS = {
    "parameters in a set": lambda t: t.optim.SGD([{"params": {t.nn.Parameter(t.ones(2))}}], lr=0.1),
    "other groups": lambda t: _sgd(t).load_state_dict({"param_groups": [], "state": {}}),
    "schedule goes on": _resumed,
    "tensors of two lengths": lambda t: t.utils.data.TensorDataset(t.ones(2), t.ones(3)),
    "sets of two lengths": lambda t: t.utils.data.StackDataset([1], [1, 2]),
    "lists of two lengths": lambda t: t.utils.data.default_collate([[1], [2, 3]]),
    "streams in a row": lambda t: t.utils.data.ConcatDataset([t.utils.data.IterableDataset()]),
    "other sets in a row": lambda t: list(t.utils.data.ChainDataset([[1]])),
    "state_dict": lambda t: t.nn.ReLU().state_dict(more=3),
    "to_empty": lambda t: t.nn.ReLU().to_empty(),
    "written to a number": lambda t: t.save(t.ones(1), 3),
    "no folder": lambda t: t.save(t.ones(1), "/missing/folder/x.pt"),
}


@pytest.mark.parametrize("name", CALLS)
def test_refusals(name):
    assert_same(lambda t: _words(lambda: CALLS[name](t)))
    kinds = [_words(lambda t=t: CALLS[name](t)) for t in (torch, clnn)]
    assert kinds[0][1].replace("torch", "") == kinds[1][1].replace("clnn", "")


def test_step_hooks_that_return_something_else():
    for t in (torch, clnn):
        optimizer = _sgd(t)
        optimizer.register_step_pre_hook(lambda *args: 3)
        with pytest.raises(RuntimeError, match=r"<function SGD.step at .*> must return None or a tuple of \(new_args, new_kwargs\), but got 3\."):
            optimizer.step()


def test_lbfgs_takes_sparse_gradients():
    def run(t):
        p = t.nn.Parameter(t.ones(3, 2))
        p.grad = t.tensor([[0.0, 0], [1, 2], [0, 0]]).to_sparse()
        t.optim.LBFGS([p], lr=0.1).step(lambda: t.tensor(0.0))
        return p
    assert_same(run)


def test_old_names():
    for t in (torch, clnn):
        with pytest.warns(FutureWarning, match="cummulative_sizes"):
            assert t.utils.data.ConcatDataset([[1, 2], [3]]).cummulative_sizes == [2, 3]
        with pytest.warns(FutureWarning, match="sample_n"):
            assert t.distributions.Normal(0.0, 1.0).sample_n(2).shape == (2,)


@pytest.mark.parametrize("zipped", (True, False))
def test_tensors_without_memory_are_saved(zipped):
    for here, there in ((torch, clnn), (clnn, torch), (clnn, clnn)):
        file = io.BytesIO()
        here.save({"a": here.zeros(3, 2, device="meta").t(), "p": here.nn.Parameter(here.zeros(3, device="meta"))}, file, _use_new_zipfile_serialization=zipped)
        file.seek(0)
        got = there.load(file)
        assert got["a"].is_meta and got["a"].stride() == (1, 2) and got["a"].dtype is there.float32
        assert isinstance(got["p"], there.nn.Parameter) and got["p"].requires_grad and got["p"].shape == (3,)


TRANSFORMED = {
    "sizes in a list": lambda t, x: t.func.vmap(lambda a, b: a, in_dims=[0, 0])(x, x),
    "flag": lambda t, x: t.func.vmap(lambda a: a.requires_grad_())(x),
    "many dimensions": lambda t, x: t.func.vmap(lambda a: a.t())(t.ones(2, 2, 2, 2)),
    "vectors": lambda t, x: t.func.vmap(lambda a: a.mm(a))(x),
    "matrices": lambda t, x: t.addr(x, x, x),
    "number": lambda t, x: t.func.grad(t.mul, argnums=(0, "a"))(x[0, 0], x[0, 0]),
    "nothing given": lambda t, x: t.func.vjp(lambda: x)[0],
    "nothing returned": lambda t, x: t.func.vjp(lambda x: (), x),
    "none returned": lambda t, x: t.func.vjp(lambda x: None, x),
    "nothing for rows": lambda t, x: t.func.jacrev(lambda x: ())(x),
    "strictly": lambda t, x: t.func.jvp(lambda x: t.ones(1), (x,), (x,), strict=True),
    "strictly right": lambda t, x: t.func.jvp(lambda x: x * 2, (x,), (x,), strict=True),
    "as it is": lambda t, x: t.func.debug_unwrap(x),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_transformations(name):
    def run(t):
        x = t.arange(4.0).reshape(2, 2)
        return _words(lambda: TRANSFORMED[name](t, x)), x.requires_grad
    assert_same(run)


def test_other_tangents_and_removals_are_refused():
    for t in (torch, clnn):
        x = t.ones(2)
        with pytest.raises(RuntimeError, match="to have the same argspec as the primals"):
            t.func.linearize(t.sin, x)[1](x, x)
        with pytest.raises(RuntimeError, match="received invalid argument for remove=x"):
            t.func.functionalize(t.sin, remove="x")(x)
