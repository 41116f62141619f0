"""``clnn.compile(backend=function)``: the function gets the graph, and what it returns runs."""
import importlib

import numpy as np
import pytest

import clnn
from clnn import nn


@pytest.fixture
def backend():
    """A backend that keeps what it was given and runs the graph as it is."""
    def run(graph, inputs):
        run.calls.append(([n.op for n in graph.graph.nodes], len(inputs)))
        return graph.forward
    run.calls = []
    return run


def test_the_backend_gets_the_graph_once_per_kind_of_call(backend):
    @clnn.compile(backend=backend)
    def f(a, b, scale=1.0):
        return {"sum": a + b * scale, "both": [a, b]}
    x, y = clnn.tensor([1.0, 2.0]), clnn.tensor([3.0, 4.0])
    for _ in range(2):
        out = f(x, y, scale=2.0)
        assert out["sum"].tolist() == [7.0, 10.0] and [t.tolist() for t in out["both"]] == [[1.0, 2.0], [3.0, 4.0]]
    assert backend.calls == [(["placeholder", "placeholder", "call_function", "call_function", "output"], 2)]
    assert f(clnn.ones(3), clnn.ones(3))["sum"].tolist() == [2.0, 2.0, 2.0] and len(backend.calls) == 2


def test_what_the_backend_returns_runs_in_place_of_the_program():
    def negated(graph, inputs):
        return lambda *args: tuple(-r for r in graph(*args))
    assert clnn.compile(lambda x: x * 2, backend=negated)(clnn.tensor([1.5])).tolist() == [-3.0]


def test_modules_keep_their_parameters_and_gradients(backend):
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    compiled, x = clnn.compile(net, backend=backend), clnn.ones(4, 2)
    assert clnn.equal(compiled(x), net(x))
    compiled(x).sum().backward()
    assert all(p.grad is not None for p in net.parameters()) and len(backend.calls) == 1
    assert list(compiled.state_dict()) == ["_orig_mod." + k for k in net.state_dict()]


def test_programs_without_a_graph_run_as_written(backend):
    def f(x):
        return x + 1 if x.sum() > 0 else x - 1
    with pytest.warns(UserWarning, match="has no graph"):
        assert clnn.compile(f, backend=backend)(clnn.ones(2)).tolist() == [2.0, 2.0]
    assert not backend.calls


def test_a_number_by_a_tensor_is_rounded_twice():
    x = clnn.tensor([3.0, 7.0, 11.0], requires_grad=True)
    y = 10 / x
    assert clnn.equal(y, x.reciprocal() * 10) and y.grad_fn.name() == "MulBackward0"
    y.sum().backward()
    assert clnn.allclose(x.grad, -10 / x.detach() ** 2)


def ahead_of_time(lib):
    """What compilers of forward and backward passes are given, and the gradients of what they make."""
    aot = importlib.import_module(f"{lib.__name__}._functorch.aot_autograd" if lib is not clnn else "clnn._aot")
    boxed, function = aot.make_boxed_func if lib is clnn else importlib.import_module("functorch.compile").make_boxed_func, aot.aot_function
    seen = []

    def compiler(kind):
        def compiled(graph, inputs):
            seen.append((kind, len(graph.graph.find_nodes(op="placeholder")) == len(inputs)))
            return boxed(graph.forward)
        return compiled
    w, x = lib.tensor([[1.0, -2.0], [0.5, 1.0]], requires_grad=True), lib.tensor([[1.0, 2.0]])
    f = function(lambda x, w, scale: {"y": (lib.tanh(x @ w) * scale).sum(), "z": [lib.relu(w)]}, compiler("forward"), compiler("backward"))
    got = f(x, w, 3)
    (got["y"] + got["z"][0].sum()).backward()
    with lib.no_grad():
        seen.append(f(x, w, 3)["y"].item())
    return seen, w.grad.tolist(), got["y"].item()


def test_passes_are_compiled_ahead_of_time_as_in_pytorch():
    torch = pytest.importorskip("torch")
    mine, other = ahead_of_time(clnn), ahead_of_time(torch)
    assert mine[0][:2] == other[0][:2] and mine[0][-1] == pytest.approx(other[0][-1], rel=1e-5)
    np.testing.assert_allclose(mine[1], other[1], rtol=1e-5)
    assert mine[2] == pytest.approx(other[2], rel=1e-5)


def test_backends_for_both_passes():
    from clnn._aot import aot_autograd, aot_module, nop
    from clnn._dynamo_testing import CompileCounter, EagerAndRecordGraphs, same
    net, x = nn.Sequential(nn.Linear(3, 2), nn.Tanh()), clnn.randn(4, 3)
    net(x).sum().backward()
    expected = [p.grad.clone() for p in net.parameters()]
    for run in (aot_module(net, nop, nop), clnn.compile(net, backend=aot_autograd(fw_compiler=nop))):
        net.zero_grad()
        run(x).sum().backward()
        assert same([p.grad for p in net.parameters()], expected)
    counter, keeper = CompileCounter(), EagerAndRecordGraphs()
    for backend in (counter, keeper):
        f = clnn.compile(lambda x: x.sin() + 1, backend=backend)
        assert clnn.equal(f(x), f(x))
    assert (counter.frame_count, counter.op_count, len(keeper.graphs)) == (1, 2, 1)
