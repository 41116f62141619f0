"""Graphs of operators below autograd: ``make_fx`` and ``clnn.export``."""
import copy
import dataclasses
import doctest
import importlib
import io
import math

import numpy as np
import pytest

import clnn
from clnn import library, nn
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
    bent = make_fx(lambda x: clnn.autograd.grad(clnn.nn.functional.elu(x).sum(), x)[0])(clnn.tensor([-1.0, 2.0], requires_grad=True))
    assert bent(clnn.tensor([3.0, -2.0])).tolist() == pytest.approx([1.0, math.exp(-2)]) and "elu_backward" in bent.code
    parts = make_fx(lambda x: clnn.unique(x, return_counts=True))(clnn.tensor([1, 1, 2]))
    assert [r.tolist() for r in parts(clnn.tensor([5, 4, 5, 1]))] == [[1, 4, 5], [1, 1, 2]] and "_unique2" in parts.code
    values, places = make_fx(lambda x: x.max(1))(clnn.ones(2, 2))(clnn.tensor([[1.0, 3.0], [5.0, 2.0]]))
    assert values.tolist() == [3.0, 5.0] and places.tolist() == [1, 0]


def writes(x):
    """Through a view, by an activation, a mask, an index and ``out=``: nobody uses what most of these give."""
    y = x + 1
    y.view(-1).add_(1)
    clnn.nn.functional.relu_(y)
    y[y > 3] = 7
    y[clnn.tensor([0])] = 4.0
    clnn.mul(y, 2, out=y)
    clnn.ops.testing_writes.fill(y[1:2], 9.0)
    return y


def test_make_fx_keeps_writes():
    library.custom_op("testing_writes::fill", lambda x, v: x.fill_(v) and None, mutates_args={"x"}, schema="(Tensor(a!) x, float v) -> ()")
    g, x = make_fx(writes)(clnn.ones(3)), [-5.0, 1.0, 4.0]
    assert g(clnn.tensor(x)).tolist() == writes(clnn.tensor(x)).tolist() == [8.0, 9.0, 14.0]
    assert not g.graph.eliminate_dead_code()


def test_make_fx_follows_writes_through_views():
    def f(a):
        b = a + 1
        b.view(-1).add_(1)
        b[:].mul_(2)
        b.reshape(b.shape)[0] += b.unflatten(0, (2, 1))[1, 0]
        return b, a.view(-1, 1), clnn.zeros(2)
    g, x = make_fx(f)(clnn.zeros(2)), clnn.tensor([3.0, 4.0])
    assert [t.tolist() for t in g(x)] == [t.tolist() for t in f(x)] == [[22.0, 12.0], [[3.0], [4.0]], [0.0, 0.0]]
    assert "aten.view.default(a_1, [-1, 1])" in g.code and "aten.zeros.default([2])" in g.code and "constant" not in g.code
    with pytest.raises(RuntimeError, match="trying to get value out of a tracing tensor"):
        make_fx(lambda x: x * x.sum().item())(x)


def test_exported_programs_compute_what_the_module_does():
    m, x = model(), clnn.tensor([[1.0, -2.0, 0.5], [0.1, 0.2, 0.3]])
    program = clnn.export.export(m, (x,))
    assert clnn.allclose(program.module()(x + 1), m(x + 1)) and called(program.graph_module)[-1] == "aten.linear.default"
    assert called(program.run_decompositions().graph_module)[-1] == "aten.addmm.default"
    signature = program.graph_signature
    assert signature.user_inputs == ("input",) and signature.inputs_to_parameters["p_3_bias"] == "3.bias" and signature.buffers[0] == "2.running_mean"
    with pytest.raises(RuntimeError, match="Unable to call ExportedProgram directly"):
        program(x)
    with pytest.raises(AssertionError, match=r"Guard failed: input.size\(\)\[0\] == 2"):
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
    with pytest.raises(clnn._dynamo.exc.UserError, match="tuple of example positional inputs"):
        clnn.export.export(model(), [clnn.ones(1, 3)])
    with pytest.raises(TypeError, match="must be an instance of 'ExportedProgram'"):
        clnn.export.save(None, "x")


class Sized(nn.Module):
    """Shapes of inputs as numbers, a buffer that is not kept, a dictionary as the result."""

    def __init__(self):
        super().__init__()
        self.inner, self.offset = nn.Linear(4, 3), nn.Buffer(clnn.ones(3))
        self.register_buffer("scale", clnn.full((3,), 2.0), persistent=False)

    def forward(self, x, y=None):
        z = (self.inner(x).relu() + self.offset) * self.scale
        z = z.view(x.size(0), -1) + clnn.zeros(x.size(0), 3, dtype=x.dtype) + clnn.arange(x.shape[0])[:, None]
        return {"z": z, "sum": z.sum()} if y is None else (z + y, z.sum())


def through_file(write, read, what):
    file = io.BytesIO()
    write(what, file)
    file.seek(0)
    return read(file)


@pytest.mark.parametrize("sizes", [None, {"x": {0: clnn.export.Dim("batch")}}, ({0: clnn.export.Dim.AUTO, 1: clnn.export.Dim.AUTO},)], ids=["fixed", "named", "auto"])
def test_programs_from_files(sizes):
    m, x, more = Sized(), clnn.randn(2, 4), clnn.randn(7, 4)
    program = through_file(clnn.export.save, clnn.export.load, clnn.export.export(m, (x,), dynamic_shapes=sizes))
    again = program.module()
    assert clnn.equal(again(x)["z"], m(x)["z"]) and list(program.state_dict) == ["inner.weight", "inner.bias", "offset"]
    assert list(again.state_dict()) == list(m.state_dict()) and again.inner.weight.requires_grad
    assert [s.kind.name for s in program.graph_signature.input_specs] == ["PARAMETER"] * 2 + ["BUFFER"] * 2 + ["USER_INPUT"]
    if sizes is None:
        with pytest.raises(AssertionError, match=r"Guard failed: x.size\(\)\[0\] == 2"):
            again(more)
    else:
        assert clnn.equal(again(more)["z"], m(more)["z"])
    with pytest.raises(AssertionError, match="Guard failed"):
        again(clnn.ones(2, 5))


def test_sizes_that_change_the_program_are_not_written():
    class Turns(nn.Module):
        def forward(self, x):
            for row in x:
                x = x + row
            return x

    program = clnn.export.export(Turns(), (clnn.ones(2, 3),), dynamic_shapes={"x": {0: clnn.export.Dim("n"), 1: clnn.export.Dim("m")}})
    with pytest.raises(NotImplementedError, match="depends on n in ways"):
        clnn.export.save(program, io.BytesIO())
    with pytest.raises(RuntimeError, match="holds no program"):
        through_file(clnn.save, clnn.export.load, {"kind": "another"})


def test_files_name_operators_only():
    from clnn._programs import _graph_module
    for name in ("aten.__class__.mro", "os.system", "a.b.c.d"):
        with pytest.raises(ValueError, match="names no operator"):
            _graph_module([["call_function", "x", name, [], {}]], {}, {})
    with pytest.raises(ValueError, match="no dtype"):
        _graph_module([["call_function", "x", "aten.add.Tensor", [{"name": "save"}], {}]], {}, {})


def test_traced_modules_from_files(tmp_path):
    net, x = clnn.jit.trace(nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.LazyLinear(2)), clnn.ones(1, 1, 5, 5)), clnn.randn(3, 1, 5, 5)
    net.save(tmp_path / "net.pt")
    again = clnn.jit.load(tmp_path / "net.pt")
    assert isinstance(again, clnn.jit.ScriptModule) and clnn.equal(again(x), net(x)) and net.original_name == "Sequential" and "aten.linear" in net.code
    double = clnn.jit.trace(lambda a, b: (a @ b).relu() * a.size(0), (clnn.ones(2, 3), clnn.ones(3, 4)))
    double.save(tmp_path / "f.pt")
    a, b = clnn.randn(5, 6), clnn.randn(6, 2)
    assert clnn.allclose(clnn.jit.load(tmp_path / "f.pt")(a, b), double(a, b)) and isinstance(double, clnn.jit.ScriptFunction)
    with pytest.raises(ValueError, match="does not exist"):
        clnn.jit.load(tmp_path / "none.pt")
    assert "F.relu" in clnn.jit.script(nn.ReLU()).code


@pytest.mark.parametrize("name", ["clnn.export", "clnn.jit"])
def test_documentation(name):
    failed, tried = doctest.testmod(importlib.import_module(name), extraglobs={"clnn": clnn, "nn": nn})
    assert not failed and tried


def test_signatures_print_as_pytorchs():
    def run(lib):
        class Net(lib.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = lib.nn.Parameter(lib.ones(3))
                self.register_buffer("gain", lib.ones(3))

            def forward(self, x):
                return lib.relu(x * self.weight + self.gain)
        return str(lib.export.export(Net(), (lib.ones(2, 3),)).graph_signature)
    assert run(clnn) == run(pytest.importorskip("torch"))


@dataclasses.dataclass
class Parts:
    first: clnn.Tensor
    rest: list


def test_programs_return_classes_that_trees_were_told_of():
    class Model(nn.Module):
        def forward(self, x):
            return Parts(first=x + 1, rest=[x * 2, (x * 3,)])

    clnn.export.register_dataclass(Parts)
    program = clnn.export.export(Model(), (clnn.ones(2),))
    got = program.module()(clnn.tensor([1.0, 2.0]))
    assert isinstance(got, Parts) and got.first.tolist() == [2.0, 3.0] and got.rest[1][0].tolist() == [3.0, 6.0]
    assert program.graph_module.code.strip().endswith("return (add, mul, mul_1)")
    assert isinstance(program.run_decompositions(clnn.export.default_decompositions()), clnn.export.ExportedProgram)


def test_sizes_that_may_differ_are_told_in_several_ways():
    x, dim = clnn.ones(3, 4), clnn.export.Dim("batch", min=1, max=9)
    shapes, more = clnn.export.ShapesCollection(), clnn.export.AdditionalInputs()
    shapes[x] = (dim, None)
    more.add((clnn.ones(5, 4),))
    assert shapes.dynamic_shapes(nn.ReLU(), (x,)) == {"input": (dim, None)} and len(shapes) == 1 and shapes[x] == (dim, None)
    assert more.dynamic_shapes(nn.ReLU(), (x,)) == {"input": (clnn.export.Dim.DYNAMIC, None)}
    for told in (shapes, more):
        program = clnn.export.export(nn.ReLU(), (x,), dynamic_shapes=told)
        assert program.module()(clnn.ones(7, 4)).shape == (7, 4)
    more.verify(program)
    assert [d.__name__ for d in (dim + 1, 2 * dim, dim - 1)] == ["batch + 1", "2*batch", "batch - 1"] and repr(dim) == "Dim('batch', min=1, max=9)"
    with pytest.raises(ValueError, match="not found in args"):
        shapes.dynamic_shapes(nn.ReLU(), (clnn.ones(1),))
    with pytest.raises(AssertionError, match="Cannot assign shape to non-tensor"):
        shapes[1] = (dim,)


def test_refused_arguments_are_told_by_dynamos_exception():
    from clnn._dynamo.exc import UserError, UserErrorType
    with pytest.raises(UserError, match="Expecting `args` to be a tuple") as caught:
        clnn.export.export(nn.ReLU(), clnn.ones(1))
    assert caught.value.error_type is UserErrorType.INVALID_INPUT and issubclass(UserError, RuntimeError)


def readable(lib):
    """An exported program, and what ``make_fx`` gives, as texts for readers and with what their nodes know."""
    class Scaled(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = lib.nn.Parameter(lib.ones(3))
            self.register_buffer("shift", lib.zeros(3, dtype=lib.float64), persistent=False)

        def forward(self, x, times=2):
            y = lib.relu(x * self.scale) + self.shift
            most, at = y.max(1)
            return y * times, most, at

    def turned(x):
        with traceback.annotate({"part": 1}):
            y = x.t().sin()
        return y + 1
    traceback = importlib.import_module(f"{lib.__name__}.fx.traceback")
    program = lib.export.export(Scaled(), (lib.ones(4, 3),))
    with traceback.preserve_node_meta():
        graph = importlib.import_module(f"{lib.__name__}.fx.experimental.proxy_tensor").make_fx(turned)(lib.ones(2, 3))
    values = [n.meta.get("val") for n in (*program.graph.nodes, *graph.graph.nodes)]
    known = [(tuple(v.shape), v.stride(), str(v.dtype)) if isinstance(v, lib.Tensor) else type(v).__name__ for v in values]
    kept = [tuple(n.meta["tensor_meta"])[:4] for n in graph.graph.nodes if "tensor_meta" in n.meta]
    symbolic = lib.fx.symbolic_trace(turned).print_readable(print_output=False)
    parts = [n.meta.get("custom") for n in graph.graph.nodes]
    return [str(parts), str(program), graph.print_readable(print_output=False), symbolic, str(known), str(kept)]


def test_programs_are_printed_with_shapes_and_lines():
    torch = pytest.importorskip("torch")
    mine, other = ([text.replace("clnn.", "torch.") for text in readable(lib)] for lib in (clnn, torch))
    assert mine == other
    assert 'add: "f64[4, 3]" = torch.ops.aten.add.Tensor(relu, b_shift)' in mine[1] and "code: most, at = y.max(1)" in mine[1]


def exported_net(lib):
    """A convolutional net's program: its graph, signature, and the module behind it."""
    class Net(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.bn = lib.nn.Conv2d(1, 2, 3, padding=1), lib.nn.BatchNorm2d(2)
            self.seq = lib.nn.Sequential(lib.nn.Linear(8, 4), lib.nn.ReLU(), lib.nn.Dropout(0.1))
            self.register_buffer("passing", lib.ones(1), persistent=False)
            self.const = lib.tensor(2.0)

        def forward(self, x, *, more=None):
            y = lib.nn.functional.max_pool2d(self.bn(self.conv(x)), 2)
            return {"y": self.seq(y.flatten(1)) * self.const, "z": (self.passing + more["a"], 3)}
    x = lib.arange(32.0).reshape(2, 1, 4, 4)
    program = lib.export.export(Net().eval(), (x,), {"more": {"a": lib.ones(2)}}, dynamic_shapes={"x": {0: lib.export.Dim("n", min=1, max=9)}, "more": {"a": None}})
    module, stacks = program.module(), [n.meta.get("nn_module_stack") for n in program.graph.nodes]
    messages = []
    for args, kwargs in (((x, x), {}), ((x,), {}), ((x[:1].expand(10, 1, 4, 4),), {"more": {"a": x}}), ((x,), {"more": {"b": x}}), ((x,), {"more": {"a": lib.ones(3)}})):
        try:
            module(*args, **kwargs)
        except (AssertionError, ValueError) as exc:
            messages.append(f"{type(exc).__name__} {exc}")
    code = module.code.replace("_guards_fn = self._guards_fn(x, more_a);  more_a = _guards_fn = None\n    ", "")
    return [str(program.graph), str(program.graph_signature), code, str(list(module.state_dict())), str([n for n, _ in module.named_modules()]),
            str(list(program.constants)), str(program.range_constraints), str(stacks).replace("clnn.nn", "torch.nn").replace("clnn.", "torch."), *messages]


def test_exported_programs_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    mine, other = ([text.replace("clnn.", "torch.") for text in exported_net(lib)] for lib in (clnn, torch))
    assert mine == other


def test_a_copy_of_a_program_serves():
    program = clnn.export.export(nn.Linear(2, 1), (clnn.ones(2, 2),), dynamic_shapes={"input": {0: clnn.export.Dim("n", min=1, max=9)}})
    assert copy.deepcopy(program).module()(clnn.ones(3, 2)).equal(program.module()(clnn.ones(3, 2)))


def test_layers_with_several_operators_go_into_files_with_free_sizes():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.pool, self.bn, self.lstm = nn.Conv1d(3, 4, 1), nn.MaxPool1d(2), nn.BatchNorm1d(4), nn.LSTM(4, 2, batch_first=True)

        def forward(self, x):
            return self.lstm(self.bn(self.pool(self.conv(x))).transpose(1, 2))[0]

    net = Net().eval()
    program = clnn.export.export(net, (clnn.randn(2, 3, 4),), dynamic_shapes=({0: clnn.export.Dim("batch", max=7)},))
    again, more = through_file(clnn.export.save, clnn.export.load, program), clnn.randn(5, 3, 4)
    assert clnn.equal(again.module()(more), net(more)) and clnn.equal(program.module()(more), net(more)) and program.module().conv.weight is net.conv.weight
    assert list(again.module().state_dict()) == list(net.state_dict()) and repr(again.range_constraints) == repr(program.range_constraints)
    with pytest.raises(AssertionError, match=r"x.size\(\)\[0\] <= 7"):
        again.module()(clnn.ones(8, 3, 4))


@pytest.mark.parametrize("f", [lambda x: x[0] + x[-1], lambda x: x.any(1) | x.all(), lambda x: x.unsqueeze(1) @ x[:, None, :, None],
                               lambda x: nn.functional.multi_head_attention_forward(
                                   x[:, None], x[:, None], x[:, None], 3, 1, clnn.ones(9, 3), None, None, None, False, 0.0, clnn.ones(3, 3), None)[0]])
def test_no_operator_hides_what_it_reads(f):
    x, other = clnn.tensor([[1.0, 2.0, 3.0], [0.0, 4.0, 1.0]]), clnn.tensor([[0.0, 0.0, 1.0], [2.0, 1.0, -1.0]])
    assert clnn.allclose(make_fx(f)(x)(other), f(other))


def test_statistics_of_training_move_in_exported_programs():
    net = nn.Sequential(nn.BatchNorm1d(2), nn.ReLU())
    program = clnn.export.export(net, (clnn.randn(2, 2),))
    assert net[0].running_mean.tolist() == [0.0, 0.0] and "constant" not in program.graph_module.code
    program.module()(clnn.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert clnn.allclose(net[0].running_mean, clnn.tensor([0.2, 0.3])) and net[0].num_batches_tracked.item() == 1


def branching(lib):
    class Net(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = lib.nn.Parameter(lib.tensor([1.0, 2.0]))

        def forward(self, x):
            y = x * 2
            return lib.cond(x.sum() > 0, lambda x: (x.sin() + y, x * 3), lambda x: (x.cos() * self.weight, x - 1), (x,))[0] + 1
    program = lib.export.export(Net(), (lib.ones(2),))
    module = program.module()
    return str([n.op for n in program.graph.nodes]), program.graph_module.true_graph_0.code.count("aten.sin.default"), [module(lib.tensor(v)).tolist() for v in (
        [1.0, 2.0], [-1.0, -3.0])], [Net()(lib.tensor(v)).tolist() for v in ([1.0, 2.0], [-1.0, -3.0])]


def test_programs_keep_both_branches():
    torch = pytest.importorskip("torch")
    mine, other = branching(clnn), branching(torch)
    assert mine[:2] == other[:2]
    np.testing.assert_allclose(mine[2:], other[2:], rtol=1e-6)
    with pytest.raises(RuntimeError, match="Expect both branches to be callable"):
        clnn.cond(clnn.tensor(True), 3, None, ())
    with pytest.raises(RuntimeError, match="single-element tensor"):
        clnn.cond(clnn.ones(2) > 0, lambda: 1, lambda: 2)


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "relu", "sqrt", "exp", "tan", "softmax"])
def test_graphs_of_gradients_hold_no_results(name):
    def slope(x, g):
        y = nn.functional.softmax(x, 1) if name == "softmax" else getattr(clnn, name)(x)
        return clnn.autograd.grad(y, x, g)[0]
    x, g = clnn.tensor([[0.5, 1.5]], requires_grad=True), clnn.ones(1, 2)
    graph, other = make_fx(slope)(x, g), clnn.tensor([[0.1, 0.7]], requires_grad=True)
    assert "constant" not in graph.code and clnn.allclose(graph(other, 3 * g), slope(other, 3 * g))


@pytest.mark.parametrize("shapes", ["{'x': {0: D}}", "({0: D},)", "{'x': None, 'z': None}", "[None, None, None]"])
def test_shapes_are_for_the_arguments(shapes):
    found = []
    for t in (clnn, pytest.importorskip("torch")):
        class Sum(t.nn.Module):
            def forward(self, x, y):
                return x + y
        with pytest.raises(Exception) as caught:
            t.export.export(Sum(), (t.ones(4, 2), t.ones(4, 2)), dynamic_shapes=eval(shapes, {"D": t.export.Dim("b")}))
        found.append((type(caught.value).__name__, str(caught.value).partition("\n\n")[0]))
    assert found[0] == found[1]
