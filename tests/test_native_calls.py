"""The C forms of whole calls (views, indices, elementwise operators, results in place, values read): each gives what its Python function does."""
import itertools

import numpy as np
import pytest

import clnn
from clnn._tensor import elementwise, seen
from clnn.core import native
from clnn.graph.op import REGISTRY

needs = pytest.mark.skipif(native.built is None, reason=f"the C forms are {native.state}")
R = np.random.default_rng(0)


def told(view, base):
    """All that there is to a view."""
    fn = view.grad_fn
    entry = None if fn is None else (fn.op, fn.name(), fn.values[1:], fn.metas, fn.versions, [e and (e[0].name(), e[1]) for e in fn.edges])
    return (view.__class__, view.shape, view.shape.__class__, view._strides, view._offset, view._numel, view._dense, view.dtype, view._storage is base._storage,
            view._base is (base if base._base is None else base._base), view._version, view._rg, view._origin, entry)


def tensors():
    x = clnn.tensor(R.standard_normal((3, 4, 5)).astype(np.float32))
    yield from (x, x.transpose(0, 2), x[1:, :, ::2], x[:, 1:2].expand(3, 4, 5), clnn.zeros(3, 0, 2), x.int(), clnn.nn.Parameter(x.clone()),
                (x * 2).requires_grad_().exp(), x.clone().requires_grad_()[:, 1:], clnn.tensor(2.0), clnn.ones(7))


PARTS = [0, -1, 2, slice(None), slice(1, 3), slice(None, None, 2), slice(-2, None), slice(3, 1), slice(10, 20), None, Ellipsis]
INDICES = [*PARTS, (), *itertools.product(PARTS, repeat=2), *[tuple(PARTS[i] for i in R.integers(0, len(PARTS), 3)) for _ in range(60)],
           *[tuple(PARTS[i] for i in R.integers(0, len(PARTS), 4)) for _ in range(40)]]


@needs
@pytest.mark.parametrize("grad", [True, False, None])
def test_basic_indices(grad):
    form, python = native.built.basic, native.definitions["basic"]
    for x in tensors():
        for index in INDICES:
            with clnn.set_grad_enabled(bool(grad)), clnn.inference_mode(grad is None):
                got, want = outcome(form, x, index), outcome(python, x, index)
            assert got.__class__ is want.__class__, (x.shape, index, got, want)
            if want.__class__ is clnn.Tensor:
                assert told(got, x) == told(want, x), (x.shape, index)
            else:
                assert got == want


def outcome(function, *args):
    try:
        return function(*args)
    except (IndexError, ValueError, RuntimeError) as exc:
        return type(exc).__name__, str(exc)


@needs
def test_places_of_regions():
    for x in tensors():
        for index in INDICES:
            got, want = outcome(native.built.place, x, index), outcome(native.definitions["place"], x, index)
            assert got == want and (want is None or got.__class__ is tuple), (x.shape, index)


def _indices():
    """Indices with tensors and masks among them."""
    r, wide, mask = clnn.tensor([0, 2, 1]), clnn.tensor([[0, 1], [1, 0]]), clnn.tensor([True, False, True])
    others = [r, wide, mask, r.int(), clnn.tensor(1), clnn.ones(3, 4, dtype=clnn.bool), slice(None), slice(0, 2), 1, Ellipsis, None, [0, 1]]
    return [*[(i,) for i in others], r, mask, *itertools.product(others, repeat=2), *itertools.product(others[:1] + others[6:10], repeat=3)]


@needs
@pytest.mark.parametrize("name", ["only_tensors", "beside_numbers", "basic", "place"])
def test_indices_with_tensors(name):
    form, python = getattr(native.built, name), native.definitions[name]

    def shown(got, x):
        if got.__class__ is tuple and got and got[0].__class__ is clnn.Tensor:
            return told(got[0], x), list(map(id, got[1]))
        return [id(t) for t in got] if got.__class__ is list else got if got.__class__ is not clnn.Tensor else told(got, x)
    for x in tensors():
        for index in _indices():
            got, want = outcome(form, x, index), outcome(python, x, index)
            assert shown(got, x) == shown(want, x), (x.shape, index, got, want)


VIEWS = [("transpose", (0, 1)), ("transpose", (-1, 0)), ("unsqueeze", (0,)), ("unsqueeze", (-1,)), ("reshape", (-1,)), ("reshape", (5, 12)), ("reshape", ((4, 15),)),
         ("view", (3, 20)), ("flatten", ()), ("flatten", (1,)), ("squeeze", ()), ("squeeze", (1,)), ("narrow", (1, 1, 2)), ("select", (0, -1)), ("diagonal", ()),
         ("diagonal", (1, 0, 2)), ("permute", (2, 0, 1)), ("expand", (3, 4, 5)), ("expand", (2, -1, -1, -1)), ("unfold", (1, 2, 1)), ("movedim", (0, 2)),
         ("movedim", ((0, 1), (-1, 0))), ("unflatten", (1, (2, 2))), ("swapaxes", (0, 1)), ("t", ())]


@pytest.mark.parametrize("grad", [True, False, None])
@pytest.mark.parametrize("name, args", VIEWS)
def test_views_are_recalled(name, args, grad, monkeypatch):
    """The third view of a kind is like the first, however it came to be."""
    for x in tensors():
        function = getattr(clnn.Tensor, name)
        with clnn.set_grad_enabled(bool(grad)), clnn.inference_mode(grad is None):
            first, *later = [outcome(function, x, *args) for _ in range(3)]
            with monkeypatch.context() as m:
                m.setattr("clnn._tensor.declare.recalled", native.definitions["recalled"] if "recalled" in native.definitions else seen.recalled)
                later.append(outcome(function, x, *args))
        for view in later:
            if first.__class__ is clnn.Tensor and first._storage is x._storage:
                assert told(view, x) == told(first, x), (x.shape, name)
            else:
                assert view.__class__ is first.__class__ and (first.__class__ is clnn.Tensor or view == first or view is x)


@needs
@pytest.mark.parametrize("name, operands", [("exp", 1), ("neg", 1), ("mul", 2), ("_add", 2), ("lt", 2), ("pow", 2)])
def test_swift_calls(name, operands, monkeypatch):
    op = REGISTRY[name]
    quick = elementwise.swift_binary(op) if operands == 2 else elementwise.swift_unary(op, {})
    with monkeypatch.context() as m:
        m.setattr(native, "built", None)
        known = {(x.dtype, not x.shape): (x.dtype, x.dtype) for x in tensors() if x.dtype is clnn.float32}
        plain = elementwise.swift_binary(op) if operands == 2 else elementwise.swift_unary(op, known)
    quick = quick if operands == 2 else native.built.swift(op, known, 1)
    seconds = [*tensors(), 2, 2.5, True, None, "x", 1j, np.float32(2)] if operands == 2 else [None]
    for x in [*tensors(), 3.0]:
        for other in seconds:
            args = (x, other) if operands == 2 else (x,)
            got, want = quick(*args), plain(*args)
            assert got.__class__ is want.__class__, (x, other)
            if want is not None:
                assert got.shape == want.shape and got.dtype is want.dtype and got._rg == want._rg and np.array_equal(
                    got.detach().numpy(), want.detach().numpy(), equal_nan=True)
                assert (got.grad_fn and got.grad_fn.name()) == (want.grad_fn and want.grad_fn.name())


@needs
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "uint8", "bool", "complex64"])
def test_values_read(dtype):
    dtype = getattr(clnn, dtype)
    if dtype is clnn.float64 and not clnn.ones(1)._storage.device.has_fp64:
        pytest.skip("no fp64")
    for t in (clnn.tensor([0, 1, 1, 0]).to(dtype), clnn.tensor([[5.0]]).to(dtype), clnn.arange(9).to(dtype) + 0):
        for x in (t[:1], t.reshape(-1)[-1], t[0] + t[0], (t * 1)[0]):
            for _ in range(3):                                  # the second look at a buffer is another way
                got, want = x.item(), native.definitions["item"](x)
                assert got == want and got.__class__ is want.__class__
    for wrong in (clnn.ones(2), clnn.ones(0)):
        assert outcome(native.built.item, wrong) == outcome(native.definitions["item"], wrong)


def _steps(x, y):
    """In-place operators and what they did, on all of a tensor and on parts of it."""
    view, before = x[1:], x + 1                                 # reads what is overwritten
    x.mul_(y)
    yield x, before
    x.add_(1).clamp_(-2, 2)
    copy = x.clone()
    x.neg_()
    yield x, copy, view
    view.mul_(2)
    x[0] = 3.0
    x[:, 1] = y[:, 0]
    yield x, copy, view, x.t()
    x.copy_(y)
    x.sub_(x)
    yield x, copy, view


@pytest.mark.parametrize("grad", [False, True])
def test_results_in_place(grad, monkeypatch):
    def run():
        x = clnn.arange(12.0).reshape(3, 4).requires_grad_(grad)
        x, y = x * 1, clnn.arange(12.0).reshape(3, 4) / 7
        return [(t.detach().numpy().copy(), t._version, t.grad_fn and t.grad_fn.name()) for _ in range(3) for group in _steps(x, y) for t in group]
    got = run()
    for path, name in (("inplace._replaced", "replaced"), ("inplace.refuse_overlap", "refuse_overlap"), ("indexing._place", "place"), ("indexing._basic", "basic")):
        monkeypatch.setattr(f"clnn._tensor.{path}", native.definitions.get(name))
    want = run()
    for (a, *one), (b, *other) in zip(got, want):
        assert np.array_equal(a, b) and one == other


def test_complex_tensors_elsewhere_change_nothing():
    """Calls are repeated although the program has complex tensors, and those of operators that take none are refused each time."""
    z = clnn.ones(3, dtype=clnn.complex64)
    x = clnn.tensor([3.0, 1.0, 2.0])
    for _ in range(5):
        assert clnn.sort(x)[0].tolist() == [1.0, 2.0, 3.0] and x.max(0)[1].item() == 0
        with pytest.raises((RuntimeError, NotImplementedError)):
            z.max(0)
