"""Graphs of operators below autograd: ``make_fx`` and ``clnn.export``."""
import numpy as np
import pytest

import clnn
from clnn import nn
from clnn.fx._by_operator import make_fx


def model():
    clnn.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.BatchNorm1d(4), nn.Linear(4, 2)).eval()


def called(module):
    return [str(n.target) for n in module.graph.nodes if n.op == "call_function"]


def test_make_fx_writes_operators_of_aten():
    g = make_fx(lambda x: x.sin() + x.sum())(clnn.ones(2))
    assert called(g) == ["aten.sin.default", "aten.sum.default", "aten.add.Tensor"] and [n.name for n in g.graph.nodes][1:3] == ["sin", "sum_1"]
    assert "torch.ops.aten.add.Tensor(sin, sum_1)" in g.code.replace("clnn.ops", "torch.ops")
    np.testing.assert_allclose(g(clnn.tensor([1.0, 2.0])).numpy(), np.sin([1.0, 2.0]) + 3, rtol=1e-6)


def test_make_fx_keeps_constants_gradients_and_several_results():
    kept = clnn.tensor([1.0, 2.0])
    assert make_fx(lambda x: x * kept)(clnn.ones(2))(clnn.tensor([3.0, 4.0])).tolist() == [3.0, 8.0]
    slope = make_fx(lambda x: clnn.autograd.grad((x ** 3).sum(), x)[0])(clnn.ones(2, requires_grad=True))
    assert slope(clnn.tensor([2.0, 3.0])).tolist() == [12.0, 27.0]
    values, places = make_fx(lambda x: x.max(1))(clnn.ones(2, 2))(clnn.tensor([[1.0, 3.0], [5.0, 2.0]]))
    assert values.tolist() == [3.0, 5.0] and places.tolist() == [1, 0]


def test_exported_programs_compute_what_the_module_does():
    m, x = model(), clnn.tensor([[1.0, -2.0, 0.5], [0.1, 0.2, 0.3]])
    program = clnn.export.export(m, (x,))
    assert clnn.allclose(program.module()(x + 1), m(x + 1)) and "aten.addmm.default" in called(program.graph_module)
    signature = program.graph_signature
    assert signature.user_inputs == ("input",) and signature.inputs_to_parameters["p_3_bias"] == "3.bias" and signature.buffers[0] == "2.running_mean"
    with pytest.raises(RuntimeError, match="Unable to call ExportedProgram directly"):
        program(x)
    with pytest.raises(AssertionError, match="dynamic_shapes"):
        program.module()(clnn.ones(5, 3))
    free = clnn.export.export(m, (x,), dynamic_shapes={"input": {0: clnn.export.Dim("batch")}})
    assert free.module()(clnn.ones(5, 3)).shape == (5, 2)


def test_results_keep_their_structure():
    class Two(nn.Module):
        def forward(self, x, y, *, k):
            return x + y, {"a": x * k}

    x = clnn.tensor([1.0, 2.0])
    both, named = clnn.export.export(Two(), (x, x), {"k": x}).module()(x, x, k=x)
    assert both.tolist() == [2.0, 4.0] and named["a"].tolist() == [1.0, 4.0]


def test_what_cannot_be_exported_is_refused():
    with pytest.raises(ValueError, match="instance of `torch.nn.Module`"):
        clnn.export.export(lambda x: x, (clnn.ones(1),))
    with pytest.raises(TypeError, match="tuple of example positional inputs"):
        clnn.export.export(model(), [clnn.ones(1, 3)])
    with pytest.raises(NotImplementedError, match="does not write programs"):
        clnn.export.save(None, "x")
