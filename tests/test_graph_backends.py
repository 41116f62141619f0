"""``clnn.compile(backend=function)``: the function gets the graph, and what it returns runs."""
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
