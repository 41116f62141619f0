"""Graphs of operators of ``aten``: what a function calls for given arguments, below autograd."""
from __future__ import annotations

import functools
import inspect
import linecache
import operator
import os
import sys

import clnn
from clnn._tensor.tensor import Tensor
from clnn.core.config import config
from clnn.nn.modules.module import Module
from clnn.ops import extras
from clnn.utils._python_dispatch import TorchDispatchMode
from clnn.utils._pytree import tree_flatten, tree_map, tree_unflatten

from .graph import Graph
from .graph_module import GraphModule
from .passes.shape_prop import describe
from .traceback import tell

_HERE = os.path.dirname(os.path.dirname(__file__)) + os.sep


def _modules_of_program(names):
    """The modules that are being run, from the outermost to the innermost, as PyTorch notes them; ``names``: id of a module -> its dotted name."""
    frame, found = sys._getframe(2), []
    while frame is not None:
        if frame.f_code.co_name == "forward" and frame.f_code.co_argcount:
            module = frame.f_locals.get(frame.f_code.co_varnames[0])
            if isinstance(module, Module) and id(module) in names and module not in found:
                found.append(module)
        frame = frame.f_back
    told = {}
    for module in reversed(found):
        path, kind = names[id(module)], type(module)
        place = kind.__module__.replace("clnn.", config.spoken + ".", 1) if kind.__module__.startswith("clnn.") else kind.__module__
        told["L__self__" + path] = (path, f"{place}.{kind.__qualname__}")
    return told


def _line_of_program():
    """The innermost line outside this package and graphs that is being run, as a traceback shows it, or None."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith((_HERE, "<f")):
        frame = frame.f_back
    if frame is None:
        return None
    name, number = frame.f_code.co_filename, frame.f_lineno
    return f'  File "{name}", line {number}, in {frame.f_code.co_name}\n    {linecache.getline(name, number).strip()}\n'


def _without_memory(value):
    """A tensor's shape, strides and dtype as a tensor on the meta device; of tuples and lists those of the items."""
    if isinstance(value, (tuple, list)):
        return type(value)(map(_without_memory, value)) if type(value) in (tuple, list) else tuple(map(_without_memory, value))
    if not isinstance(value, Tensor):
        return value
    return extras.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta") if value.layout is clnn.strided else None


def _place(t):
    """What tells a tensor's memory and how it lies there: gradient rules keep other handles on results."""
    return id(t._storage), t._version, t.storage_offset(), t.shape, t.stride() if t.layout is clnn.strided else None, t.dtype


class Recorder(TorchDispatchMode):
    """Writes each operator into a graph. Tensors that it has not seen become constants. With ``lines`` nodes know the line of the program they come from."""

    def __init__(self, lines=False, composites=False, modules=None):
        super().__init__()
        self.lines, self.composites, self.modules = lines, composites, modules
        self.graph, self.root, self.nodes, self.places = Graph(), Module(), {}, {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func._opname == "_local_scalar_dense" and id(args[0]) in self.nodes and self.nodes[id(args[0])][0].op != "get_attr":
            raise RuntimeError("It appears that you're trying to get value out of a tracing tensor with aten._local_scalar_dense.default - erroring out! It's likely "
                               "that this is caused by data-dependent control flow or similar.  It may be possible to trace this with dynamic shapes; try setting "
                               "tracing_mode='symbolic' in your make_fx call.")
        known = tree_map(self.node_of, (list(args), kwargs))
        result = func(*args, **kwargs)
        self.note(result, tell(self.graph.call_function(func, tuple(known[0]), known[1], name=func._opname)))
        return result

    def node_of(self, value):
        """The node of a tensor; anything else as it is."""
        if not isinstance(value, Tensor):
            return value
        found = self.nodes.get(id(value)) or self.places.get(_place(value))
        if found is None:
            name = f"_tensor_constant{len(self.root._buffers)}"
            self.root.register_buffer(name, value.detach())
            found = self.nodes[id(value)] = (self.graph.get_attr(name), value)
        return found[0]

    def note(self, result, node):
        """Remember which node a result is; kept alive, so that no other tensor takes its id."""
        node.meta["val"] = _without_memory(result)
        if self.lines and node.op == "call_function":
            node.stack_trace = _line_of_program()
            if self.modules is not None:
                node.meta["nn_module_stack"] = _modules_of_program(self.modules)
        if isinstance(result, Tensor):
            self.nodes[id(result)] = self.places[_place(result)] = (node, result)
            if not self.lines:
                node.meta["tensor_meta"] = describe(result) if node.meta["val"] is not None else None
        elif isinstance(result, (tuple, list)):
            for i, r in enumerate(result):
                if isinstance(r, Tensor):
                    self.note(r, self.graph.call_function(operator.getitem, (node, i)))


def traced(f, args, names, class_name="GraphModule", lines=False, composites=False, constants=None, modules=None):
    """The graph module of ``f(*args)``; ``names`` are those of the tensors among ``args``, in order. ``composites``: operators above autograd.

    ``constants`` gets which attribute of the result is which tensor of the program; ``modules`` gives names by id, for notes of what ran.
    """
    recorder = Recorder(lines, composites, modules)
    leaves, spec = tree_flatten(list(args))
    names = iter(names)
    seen = []
    for v in leaves:
        node = recorder.graph.placeholder(next(names))
        if lines and node.target not in recorder.graph._names.used:
            recorder.graph._names.used.add(node.target)         # exported programs name inputs like builtins, too
            node.name = node.target
        if isinstance(v, Tensor):
            v = v.detach().requires_grad_(v.requires_grad)
            recorder.note(v, node)
        else:
            node.meta["val"] = v
        seen.append(v)
    with recorder:
        result = f(*tree_unflatten(seen, spec))
    recorder.graph.output(tree_map(recorder.node_of, tuple(result) if isinstance(result, tuple) else result))          # names of results are not kept
    if not composites:                                          # exported programs keep what nobody uses, as PyTorch's
        recorder.graph.eliminate_dead_code()
    if constants is not None:
        constants.update({node.target: value for node, value in recorder.nodes.values() if node.op == "get_attr"})
    return GraphModule(recorder.root, recorder.graph, class_name)


def make_fx(f, decomposition_table=None, tracing_mode="real", **ignored):
    """A function that gives the graph of what ``f`` calls for its arguments, as operators of ``clnn.ops.aten``.

    Example::

        >>> from clnn.fx._by_operator import make_fx
        >>> print(make_fx(lambda x: x.sin() + 1)(clnn.zeros(2)).graph)
        graph():
            %x_1 : [num_users=1] = placeholder[target=x_1]
            %sin : [num_users=1] = call_function[target=clnn.ops.aten.sin.default](args = (%x_1,), kwargs = {})
            %add : [num_users=1] = call_function[target=clnn.ops.aten.add.Tensor](args = (%sin, 1), kwargs = {})
            return add
    """
    @functools.wraps(f)
    def run(*args):
        try:
            given = [p.name for p in inspect.signature(f).parameters.values() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
        except (TypeError, ValueError):
            given = []
        count = len(tree_flatten(list(args))[0])
        names = [f"{n}_1" for n in given] if len(given) == count else [f"arg{i}_1" for i in range(count)]
        return traced(f, args, names, getattr(f, "__name__", "GraphModule"))
    return run
