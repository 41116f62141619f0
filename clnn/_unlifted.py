"""The module behind an exported program: its graph with parameters and buffers as attributes, under the names that they had."""
from __future__ import annotations

import copy

from clnn._tensor.tensor import Tensor
from clnn.nn.modules.module import Module
from clnn.utils._pytree import tree_flatten

from .fx.graph import Graph, _PyTreeCodeGen, _PyTreeInfo
from .fx.graph_module import GraphModule, _fetch


class GuardsFn(Module):
    """What an exported program asks of its inputs: rows (source of a value, its place among the leaves, dimension or None, relation, other side).

    The other side is a number, or (source, place, dimension) of the size that has to be equal.
    """

    def __init__(self, rows):
        super().__init__()
        self._rows = rows

    def forward(self, *leaves):
        """Raises AssertionError where an input is of another kind."""
        for source, place, dim, relation, other in self._rows:
            value, says = leaves[place] if dim is None else leaves[place].size()[dim], f"{source}.size()[{dim}]"
            if isinstance(other, (tuple, list)):
                fits, other = value == leaves[other[1]].size()[other[2]], f"{other[0]}.size()[{other[2]}]"
            else:
                fits = value == other if relation == "==" else value <= other if relation == "<=" else value >= other
            if not fits:
                raise AssertionError(f"Guard failed: {source if dim is None else says} {relation} {other!r}" if dim is None
                                     else f"Guard failed: {says} {relation} {other}")


def _refused(what):
    def refuse(self, *args):
        raise NotImplementedError(f"Calling {what}() is not supported yet.")
    return refuse


class ExportedModule(GraphModule):
    """What :meth:`ExportedProgram.module` gives. For sizes other than those of the graph, ``elsewhere(module, args, kwargs)`` computes."""

    def __init__(self, program):
        graph, holders = Graph(), {}
        signature, spec = program.graph_signature, program.call_spec
        for name, target in program._held():
            holders[name] = target
        lifted = [n for n in program.graph.nodes if n.op == "placeholder"]
        found = {n: graph.node_copy(n) for n in lifted if n.name not in holders}
        inputs = list(found.values())
        found.update({n: graph.create_node("get_attr", holders[n.name], name=holders[n.name].replace(".", "_")) for n in lifted if n.name in holders})
        rows, state = program._guards(), program._state()
        if rows is not None:
            graph.create_node("call_module", "_guards_fn", tuple(inputs), name="_guards_fn")
        graph.output(graph.graph_copy(program.graph, found))
        graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo(program._names_of_arguments(), spec.in_spec, spec.out_spec)))
        modules = {n.target: _fetch(program.graph_module, n.target) for n in graph.nodes if n.op in ("call_module", "get_attr") and n.target != "_guards_fn"
                   and n.target not in state}
        held = Module()
        for target, value in {**state, **modules, "_guards_fn": GuardsFn(rows or [])}.items():
            GraphModule._take(held, target, value)
        super().__init__(held, graph, "GraphModule")
        object.__setattr__(self, "_program", program)
        for target in (*signature.non_persistent_buffers, *signature.lifted_tensor_constants):
            owner, _, last = target.rpartition(".")
            owner = self.get_submodule(owner)
            if target in signature.lifted_tensor_constants:
                object.__setattr__(owner, last, owner._buffers.pop(last))
            else:
                owner._non_persistent_buffers_set.add(last)

    def __call__(self, *args, **kwargs):
        program = self._program
        given = self._leaves(args, kwargs)
        return program._elsewhere(self, args, kwargs) if program._moves(given) else super().__call__(*args, **kwargs)

    def _leaves(self, args, kwargs):
        """The leaves of the arguments. Raises ValueError for another structure than that of the export."""
        wanted = self._in_spec
        names = wanted.children[1].keys or []
        if sorted(kwargs) != sorted(names):
            raise ValueError(f"Ran into a kwarg keyword mismatch: Got the following keywords {list(kwargs)} but expected {list(names)}")
        leaves, spec = tree_flatten((args, {k: kwargs[k] for k in names}))
        if not _alike(spec, wanted):
            raise ValueError(f"Trying to flatten user inputs with exported input tree spec: \n{wanted}\nbut actually got inputs with tree spec of: \n{spec}.\n"
                             "Please check that the inputs have the same number and type of args and kwargs as the ones you used when tracing.")
        return leaves

    def __deepcopy__(self, memo):
        other = ExportedModule(self._program)
        for (name, mine), theirs in zip(self._tensors(), [t for _, t in other._tensors()]):
            owner, _, last = name.rpartition(".")
            place = other.get_submodule(owner)
            made = copy.deepcopy(mine, memo)
            (place._parameters if last in place._parameters else place._buffers if last in place._buffers else place.__dict__)[last] = made
        return other

    def _tensors(self):
        return [(target, _fetch(self, target)) for _, target in self._program._held()]

    train, eval = _refused("train"), _refused("eval")


def _alike(spec, wanted):
    """Whether two structures are the same; the order of a dictionary's keys does not count."""
    if spec == wanted:
        return True
    if spec.kind is not wanted.kind or len(spec.children) != len(wanted.children) or spec.is_leaf():
        return False
    if isinstance(spec.kind, type) and issubclass(spec.kind, dict) and sorted(map(str, spec.keys)) == sorted(map(str, wanted.keys)):
        by_key = dict(zip(spec.keys, spec.children))
        return all(_alike(by_key[k], c) for k, c in zip(wanted.keys, wanted.children))
    return spec.keys == wanted.keys and all(map(_alike, spec.children, wanted.children))


def detached_from(module):
    """A copy of a module with the same parameters and buffers, for what its ``forward`` does now; the module itself where it cannot be copied."""
    memo = {id(t): t for t in (*module.parameters(), *module.buffers())}
    for m in module.modules():
        memo.update({id(t): t for t in vars(m).values() if isinstance(t, Tensor)})
    try:
        return copy.deepcopy(module, memo)
    except Exception:
        return module
