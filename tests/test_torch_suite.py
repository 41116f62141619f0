"""Behaviour that PyTorch's own tests ask for: pickles, refusals, empty batches, numbers that do not fit, workers' random numbers."""
import copy
import io
import pickle

import numpy as np
import pytest
from scenarios import assert_same, torch

import clnn


def _kind(lib, call):
    """The built-in kind of the error of a call, None without one."""
    try:
        call()
    except Exception as error:
        return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins")


def test_made_functions_have_names_that_pickles_find():
    """Functions are made from declarations, not written with ``def``: each public one has to be found again under its own name."""
    lost = []
    for place in ("", "nn.functional", "linalg", "fft", "special", "signal.windows", "nn.init", "func"):
        ours, theirs = clnn, torch
        for part in filter(None, place.split(".")):
            ours, theirs = getattr(ours, part), getattr(theirs, part)
        for name in dir(theirs):
            fn = getattr(ours, name, None)
            if name[0] == "_" or not callable(fn) or not callable(getattr(theirs, name)):
                continue
            try:
                pickle.dumps(getattr(theirs, name))
            except Exception:
                continue
            if place or "autocast" not in name and not name.startswith(("rnn_", "lstm", "gru")) and not name.endswith("_window"):
                try:
                    assert pickle.loads(pickle.dumps(fn)) is fn
                except (AttributeError, pickle.PicklingError, AssertionError):
                    lost.append(f"{place}.{name}")
    assert not lost


@pytest.mark.parametrize("make", (
    lambda t: t.nn.TransformerEncoderLayer(4, 2, 8, activation="relu"), lambda t: t.nn.TransformerEncoderLayer(4, 2, 8, activation=t.tanh),
    lambda t: t.nn.Transformer(4, 2, 1, 1, 8)), ids=("relu", "tanh", "whole"))
def test_modules_that_keep_functions_are_pickled(make):
    model = make(clnn).eval()
    again = pickle.loads(pickle.dumps(model))
    assert repr(again) == repr(model)
    for a, b in zip(model.parameters(), again.parameters()):
        assert clnn.equal(a, b)


def test_pickles_of_results_and_constants():
    def run(t):
        y = pickle.loads(pickle.dumps(t.ones(2, requires_grad=True) * 3))
        names = [pickle.loads(pickle.dumps(c)) is c and copy.deepcopy(c) is c for c in (t.channels_last, t.contiguous_format, t.strided, t.sparse_coo)]
        file = io.BytesIO()
        t.save([t.strided, t.sparse_coo], file)
        file.seek(0)
        back = t.load(file)
        return y, y.is_leaf, y.requires_grad, names, back[0] is t.strided, back[1] is t.sparse_coo
    assert_same(run)


def test_backward_of_nothing_and_of_wrong_things():
    def run(t):
        x = t.ones(2, requires_grad=True)
        checkpoint = t.utils.checkpoint.checkpoint

        class Wrong(t.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 1

            @staticmethod
            def backward(ctx, g):
                return 3.0
        calls = (lambda: t.autograd.backward([]), lambda: t.autograd.grad([], []), lambda: t.autograd.grad(x.sum(), 3), lambda: t.autograd.grad(3, x),
                 lambda: Wrong.apply(x).sum().backward(), lambda: t.autograd.grad(checkpoint(lambda y: y * x, x, use_reentrant=True).sum(), x),
                 lambda: checkpoint(lambda y: y * x, x, use_reentrant=True).sum().backward(inputs=[x]))
        return [_kind(t, call) for call in calls], x.grad
    assert_same(run)


class _Answers:
    """A class of a program that knows what to do with tensors on its left, and compares in its own way."""

    def __radd__(self, other):
        return "added"

    def __rpow__(self, other):
        return "power"

    def __eq__(self, other):
        return True


def test_operators_with_arrays_and_with_classes_of_their_own():
    def run(t):
        x, rows = t.tensor([1.0, 2.0]), t.tensor([[1.0, 2.0], [3.0, 4.0]])
        n, other = np.array([1.0, 3.0]), _Answers()
        changed = x
        changed += other
        return [x ** n, x ** n.astype(np.float32), x @ n, rows @ n.astype(np.float32), x + other, x ** other, changed, str((x @ n).dtype)[-7:]]
    assert_same(run)


@pytest.mark.share(2, turn=1)
def test_arrays_beside_tensors_are_computed_in_numpys_dtypes():
    def run(t):
        out = []
        for x in (t.tensor([1.0, 2.0]), t.tensor([1, 2], dtype=t.int32), t.tensor([1.0, 2.0], dtype=t.float16)):
            for n in (np.array([1, 3]), np.array(1.5), np.array([1.5, 2.5], np.float32), np.array([True, True])):
                out += [(r, str(r.dtype)) for r in (x + n, x - n, x * n, x / n, n / x, x ** n, x // n, x % n)]
        return out
    assert_same(run)


def test_parts_without_elements_get_gradients():
    def run(t):
        none, x, grid = t.zeros(0, requires_grad=True), t.ones(2, 2, requires_grad=True), t.zeros(1, 2, 2, 2, requires_grad=True)
        image, empty, weight = t.ones(1, 1, 2, 2, requires_grad=True), t.zeros(0, 2, requires_grad=True), t.ones(2, requires_grad=True)
        t.cat([x, none, x], 1).sum().backward()
        sampled = t.nn.functional.grid_sample(image, grid, mode="nearest", align_corners=False)
        first = t.autograd.grad(sampled.sum(), grid, create_graph=True)[0].detach()
        normed = t.nn.functional.group_norm(empty, 1, weight)
        powers = t.matrix_power(x, 0)
        return none.grad, x.grad, first, t.autograd.grad(normed.sum(), weight, create_graph=True)[0].detach(), t.autograd.grad(powers.sum(), x)
    assert_same(run)


EMPTY = {
    "attention": (lambda t: t.nn.MultiheadAttention(4, 2), lambda t, m: [m(*[t.zeros(*s)] * 3)[0] for s in ((0, 1, 4), (3, 0, 4))]),
    "encoder": (lambda t: t.nn.TransformerEncoderLayer(4, 2, 8, 0.0), lambda t, m: [m(t.zeros(*s)) for s in ((0, 1, 4), (3, 0, 4))]),
    "batch norm": (lambda t: t.nn.BatchNorm2d(3), lambda t, m: [m(t.zeros(0, 3, 2, 2))]),
    "the same empty batch twice": (lambda t: t.nn.GroupNorm(1, 3), lambda t, m: (lambda x: [m(x), m(x), m(x), t.tensor(float(x.requires_grad))])(t.zeros(0, 3, 2))),
    "recurrent": (lambda t: t.nn.LSTM(2, 3), lambda t, m: [m(t.zeros(3, 0, 2))[0]]),
    "no steps": (lambda t: t.nn.GRU(2, 3), lambda t, m: [m(t.zeros(0, 1, 2))[0]]),
}


@pytest.mark.parametrize("make, call", EMPTY.values(), ids=EMPTY)
def test_layers_take_empty_batches(make, call):
    def run(t):
        model = make(t)
        outs = call(t, model)
        sum(out.sum() for out in outs).backward()
        return outs, [(p.grad.shape, bool((p.grad == 0).all())) for p in model.parameters() if p.grad is not None]
    assert_same(run)


def test_numbers_that_a_dtype_cannot_hold():
    def run(t):
        def put(at, value):
            x = t.zeros(2, dtype=t.uint8)
            x[at] = value
            return x
        mask = t.tensor([True, False])
        calls = [lambda at=at, value=value: put(at, value) for at in (0, slice(None), [0], mask) for value in (300, -300, -1, 255)]
        calls += [lambda value=value: t.zeros(2, dtype=t.uint8).fill_(value) for value in (300, -1, 255)]
        calls += [lambda: t.zeros(2, dtype=t.int32).fill_(2 ** 40), lambda: t.zeros(2, dtype=t.float16).fill_(1e6), lambda: t.zeros(2).fill_(1e300),
                  lambda: t.zeros(2, dtype=t.int8).fill_(float("nan")), lambda: t.zeros(2, dtype=t.float16).masked_fill(mask, -1e9),
                  lambda: t.zeros(2).masked_fill_(mask, -1e9), lambda: t.zeros(2, dtype=t.float16).masked_fill(mask, float("-inf")),
                  lambda: t.zeros(2, dtype=t.int8).masked_fill(mask, 200)]
        return [_kind(t, call) or call() for call in calls]
    assert_same(run)


def test_resized_tensors_keep_their_memory():
    def run(t):
        x, part = t.arange(6.0), t.arange(6.0)[2:]
        x.resize_(2, 2)
        small = x.clone()
        x.resize_(6)
        part.resize_(2)
        first = part.clone()
        turned, grown = t.arange(6.0).reshape(2, 3).t(), t.arange(6.0)
        return [small, x, first, part.resize_(4), turned.resize_(6), turned.resize_(2, 2), grown.resize_(2, 4)[0], grown.shape, t.zeros(0).resize_(0, 3).shape]
    assert_same(run)


def test_refusals_of_losses_and_pooling():
    def run(t):
        F = t.nn.functional
        logits = t.ones(4, 2)
        calls = [lambda: F.cross_entropy(logits, t.ones(5, 2)), lambda: F.cross_entropy(logits, t.ones(4, 3)), lambda: F.cross_entropy(logits, t.zeros(4)),
                 lambda: t.nn.HuberLoss(delta=1j), lambda: F.max_pool2d(t.ones(3, 4), 2), lambda: F.max_pool1d(t.ones(3), 2)]
        texts = []
        for call, part in zip(calls, ("to match target batch_size (5)", "multi-target not supported", "Long", "delta must be a float or int",
                                      "non-empty 3D or 4D (batch mode) tensor expected for input", "Expected 2D or 3D (batch mode) tensor")):
            with pytest.raises(Exception, match=".*") as caught:
                call()
            texts.append((type(caught.value).__name__, part in str(caught.value)))
        return texts
    assert_same(run)


def test_packed_sequences_change_dtypes():
    def run(t):
        packed = t.nn.utils.rnn.pack_sequence([t.ones(2, 1), t.ones(1, 1)])
        return [str(getattr(packed, name)().data.dtype) for name in ("double", "half", "long", "int", "short", "char", "byte")], packed.is_pinned()
    assert_same(run)


class _Numbers(clnn.utils.data.Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, i):
        info = clnn.utils.data.get_worker_info()
        return clnn.initial_seed() - info.seed, int(clnn.randint(0, 1 << 30, ()))


def test_workers_draw_numbers_of_their_own():
    """Worker threads neither disturb the program's random numbers nor depend on which of them is faster."""
    def read(init=None):
        clnn.manual_seed(4)
        loader = clnn.utils.data.DataLoader(_Numbers(), 2, num_workers=2, worker_init_fn=init)
        return [[part.tolist() for part in batch] for batch in loader], clnn.rand(2).tolist()
    first, then = read()
    again, after = read()
    assert first == again and then == after and all(part[0] == [0, 0] for part in first)
    assert len({n for batch in first for n in batch[1]}) == 6
    seeded, after = read(lambda number: clnn.manual_seed(7))
    assert after == then                                                            # seeds of workers are theirs alone
    assert seeded[0][1] == seeded[1][1]
    assert clnn.thread_safe_generator() is None


def test_steps_of_sparse_adam_stay_numbers():
    def run(t):
        table = t.nn.Embedding(4, 2, sparse=True)
        first, then = (t.optim.SparseAdam(table.parameters()) for _ in range(2))
        table(t.tensor([1])).sum().backward()
        first.step()
        then.load_state_dict(copy.deepcopy(first.state_dict()))
        loaded = then.state_dict()["state"][0]["step"]
        then.step()
        return type(loaded).__name__, loaded, then.state_dict()["state"][0]["step"]
    assert_same(run)


def test_names_are_where_pytorch_has_them():
    from clnn.utils.data._utils.collate import collate, default_collate, default_collate_fn_map
    from clnn.utils.data._utils.worker import get_worker_info
    from clnn.nn.functional import handle_torch_function, has_torch_function, has_torch_function_unary, has_torch_function_variadic
    assert default_collate([1, 2]).tolist() == [1, 2] and get_worker_info() is None
    x = clnn.ones(1)
    assert clnn.autograd.variable.Variable is clnn.autograd.Variable
    assert callable(handle_torch_function) and not (has_torch_function((x,)) or has_torch_function_unary(x) or has_torch_function_variadic(x, x))
    assert issubclass(clnn.serialization.SourceChangeWarning, Warning) and not hasattr(clnn.nn.functional, "no_such_name")
    assert collate([1j, 2j], collate_fn_map={**default_collate_fn_map, complex: lambda batch, *, collate_fn_map: sum(batch)}) == 3j
