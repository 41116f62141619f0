"""Programs as graphs, compared with PyTorch's."""
import contextlib
import copy
import doctest
import functools
import importlib
import math
import operator
import pickle
from collections import OrderedDict
from typing import Optional

import numpy as np
import pytest

import clnn
from clnn import fx, nn


def model_class(m):
    class Model(m.nn.Module):
        def __init__(self):
            super().__init__()
            self.param = m.nn.Parameter(m.ones(3, 4))
            self.seq = m.nn.Sequential(m.nn.Linear(4, 4), m.nn.ReLU())
            self.register_buffer("scale", m.full((4,), 2.0))

        def forward(self, x: m.Tensor, y: int = 2, *, flag=None) -> dict:
            a = self.seq(x + self.param) * self.scale
            b = m.cat([a, a], dim=1)[:, 1:3]
            first, second = b.split(1, dim=1)
            c = -b @ b.t() - y / 2
            d = m.nn.functional.relu(c, inplace=False)
            return {"d": (d, y), "size": a.size(0), "shape": a.shape[0] + 1, "parts": first + second}
    return Model


def modules():
    torch = pytest.importorskip("torch")
    importlib.import_module("torch.fx")
    return clnn, torch


def test_graphs_and_code():
    texts = []
    for m in modules():
        traced = m.fx.symbolic_trace(model_class(m)())
        lines = [str(traced.graph), traced.code]
        lines += [f"{n.op} {n.name} {n.args} {n.kwargs} {list(n.users)}" for n in traced.graph.nodes if n.name != "relu"]
        texts.append("\n".join(lines).replace("torch.", "clnn.").replace("clnn.nn.functional.relu", "clnn.relu"))
        texts[-1] += m.fx.symbolic_trace(annotated(m)).code.replace("torch.", "clnn.")
    assert texts[0] == texts[1]


def annotated(m):
    def f(x: m.Tensor, k: float = 1.0) -> m.Tensor:
        return x * k
    return f


def half(x, n):
    return x / n


def optional(x, y=None, flag=True, n: Optional[int] = 3, d=None, *rest, w: "int" = 3, **more):
    if flag and y is None:
        x = half(x, n)
    return x + math.floor(n) + d - 1 - -1, rest[0], more["k"], w


def test_functions_that_stay_calls_and_arguments_with_values():
    """Wrapped functions stay calls when the text is traced again; arguments with values are checked by the graph."""
    texts = []
    for m in modules():
        with pytest.raises(NotImplementedError, match="top level"):
            m.fx.wrap("half")
        wrapped = m.fx._symbolic_trace._wrapped_fns_to_patch
        wrapped[id(globals()), "half"] = globals()
        traced = m.fx.symbolic_trace(optional, concrete_args={"y": None, "flag": True})
        texts.append(traced.code)
        simple = m.fx.symbolic_trace(lambda x: half(x, 2) + m.ops.aten.relu.default(x))
        texts[-1] += m.fx.symbolic_trace(simple).code + str(simple.graph)
        del wrapped[id(globals()), "half"]
        node = list(m.fx.symbolic_trace(lambda x: m.cat([x, x])).graph.nodes)[1]
        with pytest.raises(TypeError, match="immutable_list.*does not support mutation"):
            node.args[0].append(1)
        with pytest.raises(AssertionError, match="specialized to have value True but got"):
            traced(m.ones(2), None, False)
        properties = importlib.import_module(f"{m.__name__}.fx.passes.shape_prop")
        shown = m.fx.symbolic_trace(lambda x: x.sum(0))
        properties.ShapeProp(shown).propagate(m.ones(2, 3, 4, 5))
        texts[-1] += str([n.meta["tensor_meta"].memory_format for n in shown.graph.nodes])
        with pytest.raises(RuntimeError, match="ShapeProp error for: node=%sum_1"):
            properties.ShapeProp(shown).propagate("a")
        rewritten = m.fx.symbolic_trace(lambda x, y: (m.cat([x, y]).sum().exp(), m.cat([y, x]).sum()))
        m.fx.replace_pattern(rewritten, lambda a, b: m.cat([a, b]).sum(), lambda a, b: m.stack([a, b]))
        texts[-1] = (texts[-1] + rewritten.code).replace("clnn.", "torch.")
    assert texts[0] == texts[1]


def test_a_traced_module_computes_the_same():
    model = model_class(clnn)()
    traced = fx.symbolic_trace(model)
    x = clnn.arange(12.0).reshape(3, 4)
    for again in (traced, copy.deepcopy(traced), fx.Transformer(traced).transform()):
        expected, got = model(x, 3), again(x, 3)
        assert got["d"][0].equal(expected["d"][0]) and got["size"] == 3 and got["shape"] == 4 and got["parts"].equal(expected["parts"])
    simple = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    assert pickle.loads(pickle.dumps(fx.symbolic_trace(simple)))(x).equal(simple(x))
    assert fx.Interpreter(traced).run(x)["d"][0].equal(model(x)["d"][0])
    assert {n for n, _ in traced.named_parameters()} == {n for n, _ in model.named_parameters()} and "scale" in dict(traced.named_buffers())
    traced(x)["d"][0].sum().backward()
    assert model.param.grad is not None and traced.param is model.param


def test_changing_a_graph():
    traced = fx.symbolic_trace(lambda x: clnn.add(clnn.relu(x), 1))
    graph = traced.graph
    for node in graph.find_nodes(op="call_function", target=clnn.relu):
        with graph.inserting_after(node):
            new = graph.call_function(operator.neg, (node,))
        node.replace_all_uses_with(new, lambda user: user is not new)
    graph.lint()
    traced.recompile()
    assert traced(clnn.tensor([2.0, -1.0])).tolist() == [-1.0, 1.0]
    neg, = graph.find_nodes(op="call_function", target=operator.neg)
    with pytest.raises(RuntimeError, match="still had 1 users"):
        graph.erase_node(neg)
    neg.replace_all_uses_with(neg.args[0])
    assert graph.eliminate_dead_code() and not graph.eliminate_dead_code() and neg not in graph.nodes
    traced.recompile()
    assert traced(clnn.tensor([2.0])).tolist() == [3.0] and [n.name for n in graph.nodes] == ["x", "relu", "add", "output"]
    graph.nodes[1].prepend(graph.nodes[2])
    with pytest.raises(RuntimeError, match="before it has been defined"):
        graph.lint()


def test_patterns():
    traced = fx.symbolic_trace(lambda x, y: clnn.relu(x @ y) + clnn.relu(y @ x).sum())
    found = fx.replace_pattern(traced, lambda a, b: clnn.relu(a @ b), lambda a, b: clnn.sigmoid(b @ a))
    x, y = clnn.ones(2, 2), clnn.full((2, 2), 0.5)
    assert len(found) == 2 and traced(x, y).allclose(clnn.sigmoid(y @ x) + clnn.sigmoid(x @ y).sum())


REWRITES = [                # a program, a pattern, a replacement, settings; each gets the package
    (lambda m, x, y: m.relu(m.relu(m.relu(x + 1) + 1) + 1), lambda m, a: m.relu(a + 1), lambda m, a: m.sigmoid(a) * 2, {}),
    (lambda m, x, y: (lambda s: (m.sin(s), m.cos(s)))(x + y), lambda m, a, b: (lambda s: (m.sin(s), m.cos(s)))(a + b), lambda m, a, b: (a * b, a - b), {}),
    (lambda m, x, y: m.max(m.add(m.neg(x), y) + m.add(m.neg(y), x), m.neg(x)), lambda m, a, b: m.add(m.neg(a), b), lambda m, a, b: b - a, {}),
    (lambda m, x, y: m.clamp(x, 0, 6) + m.clamp(x, min=0, max=6) + m.clamp(y, 1, 2), lambda m, a: m.clamp(a, 3, 4), lambda m, a: a.relu(), dict(
        ignore_literals=True, match_filters=[lambda match, graph, pattern: len(match.nodes_map) == 2])),
    (lambda m, x, y: m.add(x, 3) + m.add(x, x) + m.add(y, y), lambda m, a, b: m.add(a, b), lambda m, a, b: m.sub(b, a), {}),
    (lambda m, x, y: m.relu(x) + y, lambda m, a: m.relu(a), lambda m, a: a, {}),
    (lambda m, x, y: m.relu(x @ y), lambda m, a, b: m.relu(a @ b), lambda m, a: a, {}),
    (lambda m, x, y: m.relu(x) + y, lambda m, a, b: m.relu(a), lambda m, a, b: a, {}),
]


def _with(m, f):
    return (lambda a: f(m, a)) if f.__code__.co_argcount == 2 else (lambda a, b: f(m, a, b))


@pytest.mark.parametrize("program, pattern, replacement, settings", REWRITES)
def test_rewriting_as_torch(program, pattern, replacement, settings):
    texts = []
    for m in (pytest.importorskip("torch"), clnn):
        traced, *others = [m.fx.symbolic_trace(_with(m, f)) for f in (program, pattern, replacement)]
        try:
            done = m.fx.subgraph_rewriter.replace_pattern_with_filters(traced, *others, **settings)
            texts.append(traced.code + str([(d.anchor, d.nodes_map, d.replacements) for d in done]))
        except (AssertionError, KeyError) as error:
            texts.append(repr(error))
    assert texts[1].replace("clnn.", "torch.") == texts[0]


def test_members_of_a_replacement_come_along():
    class Scaled(clnn.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.factor = clnn.nn.Linear(2, 2), clnn.nn.Parameter(clnn.tensor(3.0))

        def forward(self, a):
            return self.layer(a) * self.factor
    new, x = Scaled(), clnn.ones(1, 2)
    traced = fx.symbolic_trace(clnn.nn.Sequential(clnn.nn.ReLU(), clnn.nn.Tanh()))
    with pytest.raises(AssertionError, match="Must provide either"):
        fx.subgraph_rewriter.replace_pattern_with_filters(traced, lambda a: clnn.relu(a))
    traced = fx.symbolic_trace(lambda a: clnn.tanh(a * 2))
    fx.replace_pattern(traced, lambda a: clnn.tanh(a * 2), new)
    assert traced(x).tolist() == new(x).tolist() and traced.layer is not new.layer and list(dict(traced.named_parameters())) == [
        "factor", "layer.weight", "layer.bias"]


def test_what_cannot_be_traced():
    def loop(x):
        for v in x:
            x = x + v
        return x
    for m in modules():
        for fn, error in ((lambda x: 1 if x.sum() > 0 else 2, m.fx.proxy.TraceError), (loop, m.fx.proxy.TraceError), (lambda x: len(x), RuntimeError)):
            with pytest.raises(error):
                m.fx.symbolic_trace(fn)
    assert clnn.nn.Module.__call__.__name__ != "module_call" and clnn.ones(1).add(1).item() == 2


def test_own_tracers_and_wrapped_functions():
    class Whole(fx.Tracer):
        def is_leaf_module(self, m, name):
            return isinstance(m, nn.Sequential) or super().is_leaf_module(m, name)
    model = model_class(clnn)()
    tracer = Whole()
    graph = tracer.trace(model, concrete_args={"flag": True})
    assert [n.target for n in graph.nodes if n.op == "call_module"] == ["seq"]
    assert fx.GraphModule(model, graph)(clnn.ones(3, 4), flag_1=True)["size"] == 3
    inside = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU(), nn.Tanh()))
    assert [n.target for n in Whole().trace(inside).nodes if n.op == "call_module"] == ["0", "1"]
    assert [n.target for n in fx.symbolic_trace(lambda x: math.floor(x.size(0) / 2)).graph.nodes][-2] is math.floor

    class Kinds(fx.Tracer):
        def create_proxy(self, kind, *args, **kwargs):
            kinds.append(kind)
            return super().create_proxy(kind, *args, **kwargs)
    kinds = []
    graph = Kinds().trace(lambda x: (clnn._assert(x.shape[0] == 2, "two rows"), OrderedDict(twice=x * 2))[1])
    assert kinds[0] == "placeholder" and fx.GraphModule(nn.Module(), graph)(clnn.ones(2))["twice"].tolist() == [2, 2]
    with pytest.raises(AssertionError, match="two rows"):
        fx.GraphModule(nn.Module(), graph)(clnn.ones(3))
    constant = clnn.tensor([1.0, 2.0])
    traced = fx.symbolic_trace(lambda x: x + constant)
    assert traced(clnn.ones(2)).tolist() == [2.0, 3.0] and traced._tensor_constant0 is constant


def test_a_graph_made_by_hand():
    graph = fx.Graph()
    x = graph.placeholder("input")
    attribute = graph.get_attr("weight")
    out = graph.call_method("mul", (graph.call_module("act", (x,)), attribute))
    graph.output((out, [1.5, None, slice(0, 2)], clnn.float32))
    module = fx.GraphModule({"weight": nn.Parameter(clnn.full((1,), 3.0)), "act": nn.ReLU()}, graph)
    value, rest, dtype = module(clnn.tensor([-1.0, 2.0]))
    assert value.tolist() == [0.0, 6.0] and rest == [1.5, None, slice(0, 2)] and dtype is clnn.float32
    assert module.add_submodule("more.inner", nn.Identity()) and module.delete_submodule("more.inner") and not module.delete_submodule("no.such")
    module.add_submodule("unused", nn.Identity())
    module.delete_all_unused_submodules()
    assert not hasattr(module, "unused") and hasattr(module, "act")
    np.testing.assert_equal(len(graph.nodes), 5)


def test_models_for_inference():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c, self.n = nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Conv2d(2, 2, 1), nn.BatchNorm2d(2, track_running_stats=False)
            self.net = nn.Sequential(nn.Conv2d(2, 2, 1), nn.BatchNorm2d(2), nn.Dropout())

        def forward(self, x):
            x = self.b(self.a(x))
            return self.net(self.n(self.c(x)) + x)

    optimization = importlib.import_module("clnn.fx._optimization")
    model, x = Twice().eval(), clnn.randn(2, 1, 4, 4)
    for norm in (model.b, model.net[1]):
        norm.running_mean.uniform_()
        norm.running_var.uniform_(1, 2)
        nn.init.uniform_(norm.weight)
    fused = optimization.fuse(model)
    assert [n.target for n in fused.graph.nodes if n.op == "call_module"] == ["a", "c", "n", "net.0", "net.2"] and clnn.allclose(fused(x), model(x), atol=1e-5)
    assert isinstance(model.b, nn.BatchNorm2d) and "net.2" not in [n.target for n in optimization.remove_dropout(fused).graph.nodes]


@pytest.mark.parametrize("name", ["clnn.fx", "clnn.fx.graph", "clnn.fx._symbolic_trace", "clnn.fx.interpreter", "clnn.fx.subgraph_rewriter", "clnn.fx.passes.shape_prop",
                                  "clnn.fx._optimization", "clnn.fx._pytree", "clnn.fx.passes.split_module", "clnn.fx.passes.infra.pass_base",
                                  "clnn.fx.passes.infra.pass_manager", "clnn.fx.passes.infra.partitioner", "clnn.fx.passes.operator_support",
                                  "clnn.fx.passes.fake_tensor_prop", "clnn.fx.passes.dialect.common.cse_pass"])
def test_documentation(name):
    failed, tried = doctest.testmod(importlib.import_module(name), extraglobs={"clnn": clnn})
    assert not failed and tried


def test_unfold_has_its_public_name():
    graph = fx.symbolic_trace(lambda x: nn.functional.unfold(x, 2)).graph
    assert [n.name for n in graph.nodes][1] == "unfold" and "nn.functional.unfold(x" in graph.python_code("self").src


class Pair(metaclass=fx.ProxyableClassMeta):
    def __init__(self, left, right):
        self.left, self.right = left, right

    def add(self, other):
        return Pair(self.left + other.left, self.right + other.right)


def test_classes_made_of_stand_ins_are_one_step():
    traced = fx.symbolic_trace(lambda x, y: x.add(Pair(y, y)))
    assert [n.op for n in traced.graph.nodes] == ["placeholder", "placeholder", "call_function", "call_method", "output"]
    got = traced(Pair(clnn.ones(1), 2), clnn.ones(1))
    assert got.left.tolist() == [2.0] and got.right.tolist() == [3.0]


def cut_and_fused(lib):
    """What passes make of a module: split, fused, rewritten, with equal computations done once; as code and values."""
    passes = importlib.import_module(f"{lib.__name__}.fx.passes.infra.pass_manager")
    base = importlib.import_module(f"{lib.__name__}.fx.passes.infra.pass_base")
    fusing = importlib.import_module(f"{lib.__name__}.fx.passes.infra.partitioner")
    support = importlib.import_module(f"{lib.__name__}.fx.passes.operator_support")
    split_module = importlib.import_module(f"{lib.__name__}.fx.passes.split_module").split_module
    once = importlib.import_module(f"{lib.__name__}.fx.passes.dialect.common.cse_pass").CSEPass

    class Net(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.sub, self.w = lib.nn.Identity(), lib.nn.Sequential(lib.nn.ReLU(), lib.nn.Tanh()), lib.nn.Parameter(lib.ones(3))

        def forward(self, x, y=None):
            a = lib.relu(self.first(x + self.w)) * 2
            return self.sub(a.clamp(min=0.5)) + a.cos() + a.cos(), a

    class Turn(base.PassBase):
        def call(self, gm):
            for node in gm.graph.find_nodes(op="call_function", target=lib.relu):
                node.target = lib.sigmoid
            return base.PassResult(gm, True)

    trace, x = lib.fx.symbolic_trace, lib.tensor([-2.0, 1.0, 3.0])
    halves = split_module(trace(Net()), Net(), lambda n: n.name in ("sub_0", "sub_1", "add_1") or 2 * (n.name == "add_2"))
    turned = passes.PassManager(passes=[Turn()], run_checks_after_each_pass=True)(trace(Net()))
    some = support.create_op_support(lambda modules, n: n.op in ("call_module", "call_function"))
    fuse = fusing.CapabilityBasedPartitioner(trace(Net()), support.chain(some, support.OpSupports.decline_if_node_in_names({"add_2"})))
    groups = [(p.id, sorted(n.name for n in p.nodes)) for p in fuse.propose_partitions()]
    fused = fuse.partition_and_fuse()
    modules = [halves, *[m for _, m in halves.named_children()], turned.graph_module, fused, *[getattr(fused, f"fused_{i}") for i in range(len(groups))],
               once()(trace(Net())).graph_module]
    found = passes._topological_sort_passes([1, 2, 3], [passes.this_before_that_pass_constraint(3, 1)])
    return [str(groups), str(found), *[m.code for m in modules]], [m(x)[0].tolist() for m in (halves, turned.graph_module, fused)]


def test_passes_make_what_pytorchs_make():
    torch = pytest.importorskip("torch")
    (mine, values), (theirs, expected) = cut_and_fused(clnn), cut_and_fused(torch)
    assert [code.replace("clnn.", "torch.") for code in mine] == theirs
    np.testing.assert_allclose(values, expected, rtol=1e-5)


def test_parts_that_need_one_another_are_refused():
    traced = clnn.fx.symbolic_trace(lambda x: (x + 1).relu() * 2)
    from clnn.fx.passes.split_module import split_module
    with pytest.raises(RuntimeError, match="cycle exists"):
        split_module(traced, traced, lambda n: int(n.name == "relu"))


@pytest.mark.filterwarnings("ignore:Was not able")
def test_modules_become_packages(tmp_path, monkeypatch):
    from clnn.fx.passes.infra.partitioner import CapabilityBasedPartitioner
    from clnn.fx.passes.operator_support import create_op_support
    net = nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Sigmoid())
    fused = CapabilityBasedPartitioner(clnn.fx.symbolic_trace(net), create_op_support(lambda modules, n: n.target in ("1", "2")), True).partition_and_fuse()
    fused.to_folder(tmp_path / "written_net", "Net")
    monkeypatch.syspath_prepend(str(tmp_path))
    again, x = importlib.import_module("written_net").Net(), clnn.randn(2, 3)
    assert clnn.equal(again(x), net(x)) and [n for n, _ in again.named_parameters()] == ["0.weight", "0.bias"]


def inserted(lib):
    """The orders of nodes, what becomes of tensors that are attributes, and a tracer that does what PyTorch's does in its own words."""
    found = []
    for place in (lambda g, n: g.inserting_after(n["relu"]), lambda g, n: g.inserting_before(n["add"]), lambda g, n: g.inserting_before(),
                  lambda g, n: g.inserting_after()):
        for block in (True, False):
            graph = lib.fx.symbolic_trace(lambda x: lib.relu(x) + 1).graph
            nodes = {n.name: n for n in graph.nodes}
            with place(graph, nodes) if block else contextlib.nullcontext(place(graph, nodes)):
                for name in "abc"[:3 if block else 1]:
                    graph.create_node("call_function", lib.neg, (nodes["x"],), name=name)
            graph.create_node("call_function", lib.neg, (nodes["x"],), name="z")
            found.append([n.name for n in graph.nodes])
    with pytest.raises(AssertionError, match="Node to insert after is not in graph"):
        graph.inserting_after(next(iter(lib.fx.Graph().nodes), None) or lib.fx.Graph().placeholder("x"))

    class Net(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.k, self.sub = lib.tensor(2.0), lib.nn.Sequential(lib.nn.Linear(2, 2))
            self.sub.w = lib.ones(2)

        def forward(self, x):
            return self.sub(x) * self.k + self.sub.w + lib.ones(1)
    st = lib.fx._symbolic_trace

    class Tracer(lib.fx.Tracer):
        @st.compatibility(is_backward_compatible=True)
        def trace(self, root, concrete_args=None):
            self.root, self.tensor_attrs = root, {root.k: "k"}
            self.submodule_paths, self.graph = {m: n for n, m in root.named_modules()}, lib.fx.Graph(tracer_cls=type(self))
            assert isinstance(type(root).forward, st.FunctionType)
            fn, args = self.create_args_for_root(type(root).forward, True, concrete_args)

            def call(module, *args, **kwargs):
                return self.call_module(module, functools.partial(st._orig_module_call, module), args, kwargs)
            with st._Patcher() as patcher:
                patcher.patch_method(lib.nn.Module, "__getattr__", lambda m, name: self.getattr(name, st._orig_module_getattr(m, name), {}), deduplicate=False)
                patcher.patch_method(lib.nn.Module, "__call__", call, deduplicate=False)
                st._patch_wrapped_functions(patcher)
                st._autowrap_check(patcher, fn.__globals__, self._autowrap_function_ids)
                self.create_node("output", "output", (self.create_arg(fn(*args)),), {}, type_expr=fn.__annotations__.get("return"))
            return self.graph
    return [*found, str(lib.fx.symbolic_trace(Net()).graph), str(Tracer().trace(Net()))]


def test_places_of_nodes_and_tracers():
    assert inserted(clnn) == inserted(pytest.importorskip("torch"))


def copied(lib):
    """Graph modules of a class of their own, whose constructor starts from an empty graph, and copies of modules that hold more than the graph names."""
    class Times(lib.fx.GraphModule):
        def __init__(self, n):
            self.n = n
            super().__init__(self, lib.fx.Graph())
            self.graph.output((lib.fx.Proxy(self.graph.placeholder("x")) * n).node)
            self.recompile()
            self.more = "more"

    times, found = Times(3), []
    for c in (times, copy.copy(times), copy.deepcopy(times), pickle.loads(pickle.dumps(times))):
        found.append([[k.__name__ for k in type(c).__mro__][:3], c(lib.ones(2)).tolist(), c.meta, c.graph is times.graph, hasattr(c, "more")])
    traced = lib.fx.symbolic_trace(lib.nn.Sequential(lib.nn.Linear(2, 2)))
    traced.unused, traced.meta["k"], traced.note = lib.nn.Linear(1, 1), [1], "n"
    traced.register_buffer("q", lib.zeros(1))
    for c in (copy.copy(traced), copy.deepcopy(traced), pickle.loads(pickle.dumps(traced)), lib.fx.Transformer(traced).transform(),
              lib.fx.GraphModule(traced.eval(), traced.graph)):
        found.append([type(c).__name__, list(c.state_dict()), c.meta, c.graph is traced.graph, hasattr(c, "note"), c.training])
    graph = lib.fx.Graph()
    graph.output(graph.call_module("lin", (graph.placeholder("x"),)))
    for root in (3, {}):
        with pytest.raises(RuntimeError) as caught:
            lib.fx.GraphModule(root, graph)
        found.append(str(caught.value))
    return found


def test_copies_of_graph_modules():
    assert copied(clnn) == copied(pytest.importorskip("torch"))


def test_functions_of_layers_have_pytorchs_names():
    def code(lib):
        F = lib.nn.functional
        return lib.fx.symbolic_trace(lambda x, w: (F.linear(x, w), F.conv2d(x, w), F.pad(x, (1, 1)), F.gelu(x), F.interpolate(x, 2), F.relu(x),
                                                   lib.relu(x), F.leaky_relu(x), lib.einsum("i,i", x, x), F.avg_pool2d(x, 2), F.normalize(x))).code
    torch = pytest.importorskip("torch")
    assert code(clnn).replace("clnn.", "torch.") == code(torch)
    assert clnn.overrides.resolve_name(clnn.nn.functional.conv2d) == "clnn.nn.functional.conv2d"


def test_checks_are_no_dead_code():
    """What tracing asks of arguments that were given is asked after the graph was cleaned as well."""
    def fn(x, flag):
        return x * 2 if flag else x

    traced = fx.symbolic_trace(fn, concrete_args={"flag": True})
    traced.graph.eliminate_dead_code()
    traced.recompile()
    assert traced(clnn.ones(1), True).item() == 2
    with pytest.raises(AssertionError, match="flag has been specialized"):
        traced(clnn.ones(1), False)


def test_draws_are_no_dead_code():
    """They move the generator, so that a program draws the same numbers after its graph was cleaned."""
    def fn(x):
        clnn.rand_like(x)
        return clnn.bernoulli(x)

    traced = fx.symbolic_trace(fn)
    assert not traced.graph.eliminate_dead_code()
    assert [n.name for n in traced.graph.nodes] == ["x", "rand_like", "bernoulli", "output"]


def test_modules_of_a_local_tracer_are_pickled():
    """Nobody could look up its class when they are read."""
    class Local(fx.Tracer):
        pass
    net = clnn.nn.Sequential(clnn.nn.Linear(2, 2), clnn.nn.ReLU())
    traced = fx.GraphModule(net, Local().trace(net))
    again = pickle.loads(pickle.dumps(traced))
    assert again.code == traced.code and again.graph._tracer_cls is fx.Tracer
    x = clnn.ones(3, 2)
    assert clnn.equal(again(x), net(x))


def test_arguments_by_the_names_that_functions_declare():
    torch = pytest.importorskip("torch")

    def pairs(t):
        F, found = t.nn.functional, []

        class Net(t.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = t.nn.Linear(2, 2)

            def forward(self, x):
                return F.relu(self.linear(x)).view(-1)
        traced = t.fx.symbolic_trace(Net())
        for only in (False, True):
            for target, args in ((t.relu, (1,)), (F.relu, (1,)), (F.linear, (1, 2)), (t.cat, ([1],)), (t.softmax, (1, 2)), (F.max_pool2d, (1, 2)), (len, (1,)),
                                 (t.mm, (1,))):
                try:
                    found.append(t.fx.operator_schemas.normalize_function(target, args, normalize_to_only_use_kwargs=only))
                except (RuntimeError, TypeError):
                    found.append(None)
            found += [(n.name, str(n.normalized_arguments(traced, normalize_to_only_use_kwargs=only))) for n in traced.graph.nodes]
        return found
    assert pairs(clnn) == pairs(torch)
