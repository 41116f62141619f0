"""Forward and backward passes as graphs before they run: ``functorch.compile``, ``torch._functorch.aot_autograd`` and backends made of them."""
from __future__ import annotations

import functools

from ._tensor.grad_mode import enable_grad, no_grad, state
from ._tensor.tensor import Tensor
from .autograd.function import Function
from .nn import Module
from .nn.utils.stateless import functional_call
from .utils._pytree import tree_flatten, tree_unflatten

__path__ = []


def make_boxed_func(f):
    """``f`` as a function of one list of arguments."""
    def boxed(args):
        return f(*args)
    boxed._boxed_call = True
    return boxed


def make_boxed_compiler(compiler):
    """A compiler whose results take one list of arguments."""
    @functools.wraps(compiler)
    def made(graph, example_inputs):
        return make_boxed_func(compiler(graph, example_inputs))
    return made


def nop(fx_g, _):
    """The compiler that leaves a graph as it is."""
    return make_boxed_func(fx_g.forward)


def print_compile(fx_g, _):
    """The compiler that prints the code of a graph and leaves it as it is."""
    print(fx_g.code)
    return fx_g


ts_compile = nop
memory_efficient_fusion = nop


def _run(compiled, args):
    got = compiled(list(args)) if getattr(compiled, "_boxed_call", False) else compiled(*args)
    return list(got) if isinstance(got, (tuple, list)) else [got]


def default_partition(joint, _joint_inputs=None, *, num_fwd_outputs):
    """(graph of the forward pass, that of the backward pass) of one graph with both: what backward needs is what forward returns besides its results."""
    from .fx import Graph, GraphModule
    from .fx.node import map_arg
    nodes, results = joint.graph.nodes, joint.graph.output_node().args[0]
    tangents = [n for n in nodes if n.op == "placeholder" and n.name.startswith("tangents")]
    later = dict.fromkeys(tangents)
    for node in nodes:
        if any(n in later for n in node.all_input_nodes) and node.op != "output":
            later[node] = None
    outputs, grads = list(results[:num_fwd_outputs]), list(results[num_fwd_outputs:])
    read = [i for n in nodes if n in later for i in n.all_input_nodes] + [g for g in grads if hasattr(g, "op")]
    saved = list(dict.fromkeys(n for n in read if n not in later and n.op != "get_attr"))
    parts = []
    for given, ends, mine in (([n for n in nodes if n.op == "placeholder" and n not in later], [*outputs, *saved], lambda n: n not in later),
                              ([*saved, *tangents], grads, lambda n: n in later)):
        graph, values = Graph(), {}
        for n in given:
            values[n] = graph.placeholder(n.name)
            values[n].meta = dict(n.meta)
        for n in nodes:
            if n.op != "output" and n not in values and (mine(n) or n.op == "get_attr"):
                values[n] = graph.node_copy(n, lambda m: values[m])
        graph.output(map_arg(tuple(ends), lambda m: values[m]))
        graph.eliminate_dead_code()
        parts.append(GraphModule(joint, graph))
    return (*parts, len(saved))


min_cut_rematerialization_partition = default_partition


class _Compiled:
    """A function of tensors, compiled at its first call of each kind."""

    def __init__(self, fn, fw_compiler, bw_compiler):
        self.fn, self.fw_compiler, self.bw_compiler, self.made = fn, fw_compiler, bw_compiler or fw_compiler, {}

    def __call__(self, *tensors):
        wants = state.grad and any(t._rg for t in tensors if isinstance(t, Tensor))
        key = wants, tuple([(tuple(t.shape), t.dtype, t._rg) if isinstance(t, Tensor) else t for t in tensors])
        if key not in self.made:
            self.made[key] = self._with_gradient(tensors) if wants else self._alone(tensors)
        return self.made[key](*tensors)

    def _alone(self, tensors):
        from .fx._by_operator import traced
        with no_grad():
            graph = traced(lambda *a: tuple(self.fn(*a)), tensors, [f"arg{i}_1" for i in range(len(tensors))])
            compiled = self.fw_compiler(graph, list(tensors))
        return lambda *given: _run(compiled, given)

    def _with_gradient(self, tensors):
        from .autograd import grad
        from .fx._by_operator import traced
        needed = [i for i, t in enumerate(tensors) if isinstance(t, Tensor) and t._rg]
        outs = self.fn(*tensors)
        moving = [k for k, o in enumerate(outs) if isinstance(o, Tensor) and o._rg]
        tangents, count = [outs[k].detach() for k in moving], len(tensors)

        def joint(*values):
            with enable_grad():
                got = self.fn(*values[:count])
                slopes = grad([got[k] for k in moving], [values[i] for i in needed], list(values[count:]), allow_unused=True)
            found = dict(zip(needed, slopes))
            return (*got, *[found.get(i) for i in range(count)])
        names = [*[f"primals_{i + 1}" for i in range(count)], *[f"tangents_{k + 1}" for k in range(len(tangents))]]
        both = traced(joint, [*tensors, *tangents], names)
        forward, backward, kept = default_partition(both, num_fwd_outputs=len(outs))
        plain = [t.detach() if isinstance(t, Tensor) else t for t in tensors]
        with no_grad():
            compiled = self.fw_compiler(forward, plain)
        held = {}

        class CompiledFunction(Function):
            @staticmethod
            def forward(ctx, *given):
                with no_grad():
                    got = _run(compiled, [t.detach() if isinstance(t, Tensor) else t for t in given])
                results = got[:len(outs)]
                ctx.kept = got[len(outs):]
                ctx.mark_non_differentiable(*[results[k] for k in range(len(outs)) if k not in moving and isinstance(results[k], Tensor)])
                return tuple(results)

            @staticmethod
            def backward(ctx, *slopes):
                given = [*ctx.kept, *[slopes[k] for k in moving]]
                with no_grad():
                    if "compiled" not in held:
                        held["compiled"] = self.bw_compiler(backward, given)
                    return tuple(_run(held["compiled"], given))
        return CompiledFunction.apply


def aot_function(fn, fw_compiler, bw_compiler=None, partition_fn=default_partition, decompositions=None, num_params_buffers=0, **ignored):
    """``fn`` as what ``fw_compiler`` makes of the graph of its forward pass, and ``bw_compiler`` of that of its backward pass.

    Args:
        fw_compiler, bw_compiler: functions of (graph module, example inputs) that return a function of the graph's inputs.

    Example::

        >>> from clnn._aot import aot_function, print_compile
        >>> double = aot_function(lambda x: x * 2, fw_compiler=print_compile)
        >>> double(clnn.ones(1))
        <BLANKLINE>
        <BLANKLINE>
        <BLANKLINE>
        def forward(self, arg0_1):
            mul = clnn.ops.aten.mul.Tensor(arg0_1, 2);  arg0_1 = None
            return (mul,)
        <BLANKLINE>
        tensor([2.])
    """
    made = {}

    @functools.wraps(fn)
    def run(*args, **kwargs):
        leaves, spec = tree_flatten((args, kwargs))
        known = made.get(str(spec))
        if known is None:
            shape = []

            def flat(*values):
                given, named = tree_unflatten(list(values), spec)
                got, structure = tree_flatten(fn(*given, **named))
                shape[:] = [structure]
                return got
            known = made[str(spec)] = _Compiled(flat, fw_compiler, bw_compiler), shape
        return tree_unflatten(list(known[0](*leaves)), known[1][0])
    return run


def aot_module(mod, *args, **kwargs):
    """A module as :func:`aot_function` makes its forward pass."""
    def call(state, args, kwargs):
        return functional_call(mod, state, args, kwargs)
    compiled = aot_function(call, *args, **kwargs)

    class AOTModule(Module):
        def __init__(self):
            super().__init__()
            self.orig_module = mod

        def forward(self, *args, **kwargs):
            return compiled({**dict(mod.named_parameters()), **dict(mod.named_buffers())}, args, kwargs)
    return AOTModule()


def aot_module_simplified(mod, args, fw_compiler, bw_compiler=None, **options):
    """The forward pass of a module for inputs like ``args``."""
    module = aot_module(mod, fw_compiler, bw_compiler)
    return lambda *given: module(*given)


def aot_autograd(**options):
    """A backend for :func:`clnn.compile` of compilers for both passes.

    Example::

        >>> from clnn._aot import aot_autograd, nop
        >>> clnn.compile(lambda x: x.sin() + 1, backend=aot_autograd(fw_compiler=nop))(clnn.zeros(1))
        tensor([1.])
    """
    def backend(graph, example_inputs):
        return aot_module_simplified(graph, example_inputs, options["fw_compiler"], options.get("bw_compiler"))
    return backend


aot_autograd.__qualname__ = "aot_autograd"
