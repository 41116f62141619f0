"""Exported programs as files: operators by name, their arguments as JSON, tensors beside them. Reading a file runs nothing that it holds.

Sizes that may differ stand as numbers in a graph of one example. The program is traced again with other sizes, and the numbers that follow them are kept
as what they are: linear in the sizes, which a last trace with all of them changed confirms.
"""
from __future__ import annotations

import json
import operator
from collections import OrderedDict

import clnn
from clnn._tensor.tensor import Tensor
from clnn.nn.modules.module import Module
from clnn.utils._pytree import LEAF, TreeSpec, tree_flatten, tree_map, tree_unflatten

from .fx.graph import Graph
from .fx.graph_module import GraphModule
from .fx.node import Node

_KIND = "clnn program 2"
_KINDS = {"tuple": tuple, "list": list, "dict": dict, "OrderedDict": OrderedDict}


class _Differs(Exception):
    """Two traces are of different programs."""


def _encoded(value):
    """A value among the arguments of nodes, for JSON: a dictionary of one entry says its kind."""
    if isinstance(value, (clnn.dtype, clnn.layout, clnn.memory_format)):
        return {"name": str(value).rpartition(".")[2]}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Node):
        return {"node": value.name}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, (tuple, list)):
        parts = [_encoded(v) for v in value]
        return {"tuple": parts} if isinstance(value, tuple) else parts
    if isinstance(value, dict):
        return {"dict": [[k, _encoded(v)] for k, v in value.items()]}
    if isinstance(value, clnn.device):
        return {"device": None if value == clnn.get_default_device() else str(value)}
    raise NotImplementedError(f"export.save: clnn does not write values of type {type(value).__name__}")


def _decoded(value, nodes, moved):
    if isinstance(value, list):
        return [_decoded(v, nodes, moved) for v in value]
    if not isinstance(value, dict):
        return value
    (kind, held), = value.items()
    if kind == "node":
        return nodes[held]
    if kind == "size":
        return held[0] + sum(slope * moved.get(name, 0) for name, slope in held[1].items())
    if kind == "dict":
        return {k: _decoded(v, nodes, moved) for k, v in held}
    if kind == "tuple":
        return tuple(_decoded(v, nodes, moved) for v in held)
    if kind == "device":
        return clnn.device(held) if held else clnn.get_default_device()
    if kind == "complex":
        return complex(*held)
    found = getattr(clnn, held)
    if not isinstance(found, (clnn.dtype, clnn.layout, clnn.memory_format)):
        raise ValueError(f"export.load: {held!r} is no dtype, layout or memory format")
    return found


def _told_spec(spec):
    """A structure for JSON."""
    if spec.is_leaf():
        return None
    if spec.kind not in _KINDS.values():
        raise NotImplementedError(f"export.save: clnn does not write values of type {spec.kind.__name__}")
    return [spec.kind.__name__, list(spec.keys) if issubclass(spec.kind, dict) else None, [_told_spec(c) for c in spec.children]]


def spec_of(told):
    """The structure that :func:`_told_spec` told."""
    if told is None:
        return LEAF
    kind, keys, children = told
    return TreeSpec(_KINDS[kind], tuple(keys) if keys is not None else None, tuple(map(spec_of, children)))


def _lines(graph):
    """The nodes of a graph, for JSON."""
    if any(n.op == "get_attr" for n in graph.nodes):
        raise NotImplementedError("export.save: clnn does not write programs with branches of torch.cond")
    return [[n.op, n.name, "getitem" if n.target is operator.getitem else str(n.target), _encoded(list(n.args)), _encoded(n.kwargs)] for n in graph.nodes]


def _graph_module(lines, constants, moved):
    """The graph of a file for sizes that differ by ``moved`` from those of its example."""
    graph, nodes = Graph(), {}
    for op, name, target, args, kwargs in lines:
        if op == "call_function":
            target = operator.getitem if target == "getitem" else operator.attrgetter(_operator_name(target))(clnn.ops)
        nodes[name] = graph.create_node(op, target, tuple(_decoded(args, nodes, moved)), _decoded(kwargs, nodes, moved), name)
    return GraphModule(constants, graph)


def _operator_name(text):
    if text.count(".") != 2 or not all(part.isidentifier() and not part.startswith("__") for part in text.split(".")):
        raise ValueError(f"export.load: {text!r} names no operator")
    return text


def _fitted(value, others):
    """``value`` with its numbers as functions of sizes; ``others`` has (name of a size, how much it grew, the value then)."""
    if any(type(v) is not type(value) for _, _, v in others):
        raise _Differs
    if type(value) is int:
        slopes = {name: (v - value) / step for name, step, v in others if v != value}
        if any(slope != int(slope) for slope in slopes.values()):
            raise _Differs
        return {"size": [value, {name: int(slope) for name, slope in slopes.items()}]} if slopes else value
    if isinstance(value, (list, dict)) and any(len(v) != len(value) for _, _, v in others):
        raise _Differs
    if isinstance(value, list):
        return [_fitted(v, [(n, s, other[i]) for n, s, other in others]) for i, v in enumerate(value)]
    if isinstance(value, dict):
        if any(list(v) != list(value) for _, _, v in others):
            raise _Differs
        return {k: _fitted(v, [(n, s, other[k]) for n, s, other in others]) for k, v in value.items()}
    if any(v != value and v == v for _, _, v in others):
        raise _Differs
    return value


def _at(value, moved):
    """What :func:`_fitted` made, as plain numbers again."""
    if isinstance(value, list):
        return [_at(v, moved) for v in value]
    if isinstance(value, dict):
        return _decoded(value, {}, moved) if list(value) == ["size"] else {k: _at(v, moved) for k, v in value.items()}
    return value


def _grown(tensor, dims):
    """``tensor`` with more elements along some dimensions: the first ones again."""
    for dim, more in dims.items():
        tensor = clnn.cat([tensor] + [tensor.narrow(dim, 0, 1)] * more, dim)
    return tensor


def _free(program, names):
    """(the lines of the program with its sizes, the names of the sizes that may differ); ``names``: (number of an input, dimension) -> name."""
    base = _lines(program.graph)

    def again(steps):
        grown = iter([_grown(v, {d: steps[n] for (j, d), n in names.items() if j == i and n in steps}) if isinstance(v, Tensor) else v
                      for i, v in enumerate(tree_flatten(program.example_inputs)[0])])
        args, kwargs = tree_map(lambda v: next(grown), program.example_inputs)
        with clnn.no_grad():
            return _lines(clnn.export.export(program._fixed, tuple(args), kwargs).graph)
    kept, others = [], []
    for name in dict.fromkeys(names.values()):
        try:
            others.append((name, 1, again({name: 1})))
            _fitted(base, others)
            kept.append(name)
        except Exception:                                        # the program is for this size alone
            others = others[:len(kept)]
    fitted = _fitted(base, others)
    try:
        if kept and _at(fitted, dict.fromkeys(kept, 2)) == again(dict.fromkeys(kept, 2)):
            return fitted, kept
    except Exception:                                            # sizes that do not go together, or not linearly
        pass
    return base, []


def write(program, f, *choices):
    """Write an exported program; ``choices`` are sizes that may differ, as :func:`_free` takes them; the first that do are kept. Returns their names."""
    for names in choices:
        lines, free = _free(program, names)
        if free:
            break
    signature, sizes = program.graph_signature, {**{at: (n, 0, -1, n) for at, n in names.items()}, **program._sizes}
    module, inputs = program._module, tree_flatten(program.example_inputs)[0]
    outputs = [[hasattr(v, "op"), v.name if hasattr(v, "op") else _encoded(v)] for v in program.graph.output_node().args[0]]
    text = json.dumps({
        "lines": lines, "names": [target for _, target in program._held()], "specs": [_told_spec(spec) for spec in program.call_spec],
        "arguments": program._names_of_arguments(), "guards": [row for row in program._guards() if type(row[-1]) in (int, list)], "outputs": outputs,
        "sizes": [[i, d, *(_encoded(v) if v != float("inf") else -1 for v in sizes[i, d])] for (i, d), n in names.items() if n in free],
        "shapes": [list(v.shape) if isinstance(v, Tensor) else None for v in inputs],
        "signature": [signature.inputs_to_parameters, signature.inputs_to_buffers, signature.user_inputs, signature.non_persistent_buffers,
                      signature.inputs_to_lifted_tensor_constants],
        "parameters": [n for n, _ in module.named_parameters()], "kept": list(module.state_dict())})
    state = {n: t.detach() for n, t in (*module.named_parameters(), *module.named_buffers())}
    clnn.save({"kind": _KIND, "text": text, "state": state, "constants": program._constants}, f)
    return free


class StoredProgram(Module):
    """A program from a file as a module, with the parameters and buffers that it was written with."""

    def __init__(self, held, told):
        super().__init__()
        self._told, self._constants, self._made = told, held["constants"], {}
        for name, tensor in held["state"].items():
            GraphModule._take(self, name, clnn.nn.Parameter(tensor, tensor.is_floating_point()) if name in told["parameters"] else tensor)
            if name not in told["parameters"] and name not in told["kept"]:
                owner, _, last = name.rpartition(".")
                self.get_submodule(owner)._non_persistent_buffers_set.add(last)

    def graph_module(self, moved):
        """The graph for sizes that differ by ``moved`` from those of the example."""
        key = tuple(moved.items())
        if key not in self._made:
            self._made[key] = _graph_module(self._told["lines"], {}, moved)
        return self._made[key]

    def _other(self, leaves):
        """Whether the leaves have other sizes than the example."""
        return any(shape is not None and list(v.shape) != shape for v, shape in zip(leaves, self._told["shapes"]))

    def _moved(self, given):
        """How much each size that may differ does. Raises AssertionError where another one does."""
        sizes, moved = {(i, d): n for i, d, n, *_ in self._told["sizes"]}, {}
        for i, (value, shape) in enumerate(zip(given, self._told["shapes"])):
            if shape is None:
                continue
            if len(value.shape) != len(shape):
                raise AssertionError(f"Guard failed: input {i} has {len(shape)} dimensions, got shape {tuple(value.shape)}")
            for d, (size, known) in enumerate(zip(value.shape, shape)):
                name = sizes.get((i, d))
                if size - known != (moved.setdefault(name, size - known) if name else 0):
                    raise AssertionError(f"Guard failed: size {d} of input {i} is {known} where the program was exported, got shape {tuple(value.shape)}")
        return moved

    def _computed(self, state, leaves):
        """The leaves of the result."""
        return self.graph_module(self._moved(leaves))(*[state[n] for n in self._told["names"]], *leaves)

    def forward(self, *args, **kwargs):
        told, names = self._told, self._told["arguments"]
        given = tree_flatten((args, {name: kwargs[name] for name in names if name in kwargs}))[0]
        if len(given) != len(told["shapes"]):
            raise TypeError(f"the program takes {len(told['shapes'])} inputs, got {len(given)}")
        state = {**dict(self.named_parameters()), **dict(self.named_buffers()), **self._constants}
        return tree_unflatten(self._computed(state, given), spec_of(told["specs"][1]))


def read(f, map_location=None):
    """The module of a file that :func:`write` wrote, or None where it is another file."""
    try:
        held = clnn.load(f, map_location=map_location, weights_only=True)
    except Exception as exc:
        if isinstance(exc, OSError):
            raise
        return None
    if not isinstance(held, dict) or held.get("kind") != _KIND:
        return None
    return StoredProgram(held, json.loads(held["text"]))
