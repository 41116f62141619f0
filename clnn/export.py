"""Programs as graphs of operators, with their parameters as inputs: ``clnn.export.export(module, args)``."""
from __future__ import annotations

import contextlib
import copy
import enum
import inspect
from collections import namedtuple

from clnn._dynamo_exc import UserError, UserErrorType
from clnn._export_shapes import AdditionalInputs, Dim, ShapesCollection, _DimHint
from clnn._tensor.grad_mode import no_grad
from clnn._tensor.tensor import Tensor
from clnn.nn.modules.module import Module
from clnn.nn.utils.stateless import functional_call
from clnn.random import fork_rng
from clnn.utils._pytree import register_dataclass, tree_flatten, tree_unflatten  # noqa: F401

__all__ = ["AdditionalInputs", "Dim", "ExportGraphSignature", "ExportedProgram", "InputKind", "InputSpec", "OutputKind", "OutputSpec", "ShapesCollection",
           "TensorArgument", "default_decompositions", "export", "load", "save", "unflatten"]

__path__ = []           # programs import torch.export.graph_signature
InputKind = enum.Enum("InputKind", "USER_INPUT PARAMETER BUFFER CONSTANT_TENSOR CUSTOM_OBJ TOKEN")
OutputKind = enum.Enum("OutputKind", "USER_OUTPUT LOSS_OUTPUT BUFFER_MUTATION PARAMETER_MUTATION GRADIENT_TO_PARAMETER GRADIENT_TO_USER_INPUT")
TensorArgument = namedtuple("TensorArgument", "name")


def _line(spec):
    """What prints of an input or output: its name, kind, and what is known of where it comes from."""
    known = [("target", spec.target and repr(spec.target)), ("persistent", getattr(spec, "persistent", None))]
    return f"{spec.arg.name}: {spec.kind.name}" + "".join(f" {name}={value}" for name, value in known if value is not None)


class InputSpec(namedtuple("InputSpec", "kind arg target persistent", defaults=(None,))):
    """An input of an exported graph: ``kind``, ``arg`` (its name), ``target`` (that of the parameter or buffer) and whether a buffer is ``persistent``."""

    __slots__ = ()
    __str__ = _line


class OutputSpec(namedtuple("OutputSpec", "kind arg target")):
    """An output of an exported graph: ``kind``, ``arg`` (its name) and ``target``."""

    __slots__ = ()
    __str__ = _line


class ExportGraphSignature:
    """Which inputs of the graph are parameters, buffers and a program's own; the names of its outputs."""

    def __init__(self, parameters, buffers, user_inputs, user_outputs, passing=()):
        self.inputs_to_parameters, self.inputs_to_buffers = parameters, buffers
        self.parameters, self.buffers = tuple(parameters.values()), tuple(buffers.values())
        self.user_inputs, self.user_outputs = tuple(user_inputs), tuple(user_outputs)
        # constants of a module stay within its graph, and what is written stays an operator of it
        self.inputs_to_lifted_tensor_constants, self.inputs_to_lifted_custom_objs = {}, {}
        self.buffers_to_mutate, self.parameters_to_mutate, self.user_inputs_to_mutate = {}, {}, {}
        self.lifted_tensor_constants = self.lifted_custom_objs = self.input_tokens = self.output_tokens = ()
        self.non_persistent_buffers = tuple(n for n in self.buffers if n in passing)
        self.backward_signature = self.assertion_dep_token = None

    @property
    def input_specs(self):
        """An :class:`InputSpec` for each input of the graph, in order."""
        return [*(InputSpec(InputKind.PARAMETER, TensorArgument(n), t) for n, t in self.inputs_to_parameters.items()),
                *(InputSpec(InputKind.BUFFER, TensorArgument(n), t, t not in self.non_persistent_buffers) for n, t in self.inputs_to_buffers.items()),
                *(InputSpec(InputKind.USER_INPUT, TensorArgument(n), None) for n in self.user_inputs)]

    @property
    def output_specs(self):
        """An :class:`OutputSpec` for each output of the graph, in order."""
        return [OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(n), None) for n in self.user_outputs]

    def __str__(self):
        return "\n".join(["", "# inputs", *map(str, self.input_specs), "", "# outputs", *map(str, self.output_specs), ""])


class _Program(Module):
    """The exported program as a module: as it was traced, or, where sizes may differ, the module that it came from."""

    def __init__(self, program):
        super().__init__()
        self._program, self._original = [program], copy.deepcopy(program._module)

    def forward(self, *args, **kwargs):
        program = self._program[0]
        if program._dynamic or kwargs:
            return self._original(*args, **kwargs)
        state = {**dict(self._original.named_parameters()), **dict(self._original.named_buffers())}
        given = tree_flatten(list(args))[0]
        for name, got, example in zip(program.graph_signature.user_inputs, given, tree_flatten(list(program.example_inputs[0]))[0]):
            if isinstance(got, Tensor) and isinstance(example, Tensor) and got.shape != example.shape:
                at = next((f"{name}.size()[{d}] == {n}" for d, n in enumerate(example.shape) if got.shape[d:d + 1] != (n,)), f"{name}.dim() == {example.ndim}")
                raise AssertionError(f"Guard failed: {at} (its shape is {tuple(got.shape)}; give export() dynamic_shapes)")
        result = program.graph_module(*[state[n] for n in program._state_names], *given)
        if program._made_of is not None:
            return tree_unflatten(list(result), program._made_of)
        return result[0] if program._alone else result


class ExportedProgram:
    """What :func:`export` gives."""

    _made_of = None             # the tree of what the program returns, where a program's own class is in it

    def __init__(self, module, graph_module, signature, state_names, example_inputs, kind):
        self._module, self.graph_module, self.graph_signature, self._state_names = module, graph_module, signature, state_names
        self.example_inputs, (self._shapes, self._alone) = example_inputs, kind
        self._dynamic = self._shapes is not None

    dialect = "TRAINING"
    graph = property(lambda self: self.graph_module.graph)

    @property
    def constants(self):
        """Buffers that are not part of the state."""
        return {n: t for n, t in self._module.named_buffers() if n in self.graph_signature.non_persistent_buffers}

    tensor_constants = constants

    @property
    def state_dict(self):
        """Parameters, then buffers."""
        state = self._module.state_dict()
        return {n: state[n] for n in (*dict(self._module.named_parameters()), *state) if n in state}

    def module(self):
        """A module that computes the program, with parameters of its own."""
        return _Program(self)

    def parameters(self):
        return self._module.parameters()

    def named_parameters(self):
        return self._module.named_parameters()

    def buffers(self):
        return self._module.buffers()

    def named_buffers(self):
        return self._module.named_buffers()

    def run_decompositions(self, decomp_table=None):
        """The program itself: its operators are those of the lowest level."""
        return self

    def __call__(self, *args, **kwargs):
        raise RuntimeError("Unable to call ExportedProgram directly. You should use `exported_program.module()` instead.")

    def __str__(self):
        code, signature = (text.replace("\n", "\n    ") for text in (self.graph_module.print_readable(print_output=False), str(self.graph_signature)))
        return f"ExportedProgram:\n    {code}\nGraph signature: {signature}\nRange constraints: {{}}\n"


def export(mod, args, kwargs=None, *, dynamic_shapes=None, strict=False, preserve_module_call_signature=(), **ignored):
    """The graph of ``mod(*args, **kwargs)``: operators of ``clnn.ops.aten``, parameters and buffers as the first inputs.

    Args:
        mod: a module. args, kwargs: the inputs for which it is traced; the course of the program is fixed for them.
        dynamic_shapes: sizes that may differ; the program's ``module()`` is then the module as it was.

    Example::

        >>> program = clnn.export.export(clnn.nn.Linear(3, 2), (clnn.ones(1, 3),))
        >>> program.graph_signature.parameters, program.module()(clnn.ones(1, 3)).shape
        (('weight', 'bias'), clnn.Size([1, 2]))
    """
    from clnn.fx._by_operator import traced
    if not isinstance(mod, Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise UserError(UserErrorType.INVALID_INPUT, f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}")
    if isinstance(dynamic_shapes, (ShapesCollection, AdditionalInputs)):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(mod, args, kwargs)
    kwargs = kwargs or {}
    parameters, buffers = dict(mod.named_parameters()), dict(mod.named_buffers())
    names, state = [*parameters, *buffers], [*parameters.values(), *buffers.values()]
    inputs = _input_names(mod, args, kwargs)
    leaves, spec = tree_flatten(list(args))
    given, alone, made = len(leaves), [], []

    def program(*values):
        flat = values[len(state):]
        result = functional_call(mod, dict(zip(names, values)), tuple(tree_unflatten(list(flat[:given]), spec)), dict(zip(kwargs, flat[given:])))
        alone.append(isinstance(result, Tensor))
        if not all(isinstance(leaf, Tensor) or leaf is None or type(leaf) in (int, float, bool, str) for leaf in _inside(result)):
            result, outer = tree_flatten(result)                # a class that trees were told of: its parts are the outputs
            made.append(outer)
        return (result,) if alone[0] else tuple(result) if made else result
    holders = [("p_" if i < len(parameters) else "b_") + n.replace(".", "_") for i, n in enumerate(names)]
    with _as_it_was([*buffers.values(), *leaves, *kwargs.values()]):
        graph_module = traced(program, [*state, *leaves, *kwargs.values()], [*holders, *inputs], lines=True)
    outputs = [n.name for n in graph_module.graph.output_node().all_input_nodes]
    signature = ExportGraphSignature(dict(zip(holders, parameters)), dict(zip(holders[len(parameters):], buffers)), tuple(inputs), tuple(outputs),
                                     set(buffers) - set(mod.state_dict()))
    program = ExportedProgram(mod, graph_module, signature, names, (args, kwargs), (dynamic_shapes, alone[0]))
    program._made_of = made[0] if made else None
    return program


@contextlib.contextmanager
def _as_it_was(values):
    """What the block writes to tensors is undone, and the random numbers that it draws are drawn again: PyTorch traces without computing."""
    kept = [(t, t._version, t.detach().clone()) for t in values if isinstance(t, Tensor)]
    with fork_rng():
        yield
    with no_grad():
        for t, version, before in kept:
            if t._version != version:
                t.copy_(before)


def _inside(value):
    """What tuples, lists and dicts hold."""
    if type(value) in (tuple, list, dict):
        return [leaf for v in (value.values() if type(value) is dict else value) for leaf in _inside(v)]
    return [value]


def unflatten(module, flat_args_adapter=None):
    """The module that was exported, a copy with its own parameters and its children under their names.

    Raises NotImplementedError for a program that was read from a file, which has no classes for its children.

    Example::

        >>> net = clnn.nn.Sequential(clnn.nn.Linear(3, 2), clnn.nn.ReLU())
        >>> again = clnn.export.unflatten(clnn.export.export(net, (clnn.ones(1, 3),)))
        >>> again[0].weight is net[0].weight, clnn.equal(again(clnn.ones(1, 3)), net(clnn.ones(1, 3)))
        (False, True)
    """
    if isinstance(module, _Stored):
        raise NotImplementedError("export.unflatten: a program from a file has no classes for its children; module() computes it")
    if flat_args_adapter is not None:
        raise NotImplementedError("export.unflatten: the module takes arguments as it did before it was exported; flat_args_adapter is not used")
    return copy.deepcopy(module._module)


def default_decompositions():
    """The table that :meth:`ExportedProgram.run_decompositions` takes: empty, as graphs hold operators of the lowest level."""
    return {}


def _input_names(mod, args, kwargs):
    """Names for all values among the arguments, after the parameters of ``forward``."""
    names, places = [], [p.name for p in inspect.signature(mod.forward).parameters.values()]
    for i, a in enumerate(args):
        count = len(tree_flatten(a)[0])
        base = places[min(i, len(places) - 1)] if places else "input"
        names += [base] if count == 1 and base not in names else [f"{base}_{i + k}" for k in range(count)]
    return [*names, *kwargs]


class _Stored(ExportedProgram):
    """A program that was read from a file."""

    def __init__(self, module):
        told = module._told
        signature = ExportGraphSignature(*told["signature"])
        super().__init__(module, module.graph_module({}), signature, told["names"], None, (None, told["alone"]))

    def module(self):
        return copy.deepcopy(self._module)


def _named_sizes(program):
    """(number of an input, dimension) -> the name of a size that may differ, as ``dynamic_shapes`` has it; one name for equal sizes that have none."""
    args, kwargs = program.example_inputs
    shapes, found, values, count = program._shapes or {}, {}, [*args, *kwargs.values()], 0
    by_name = isinstance(shapes, dict)
    places = [*list(inspect.signature(program._module.forward).parameters)[:len(args)], *kwargs]
    for i, value in enumerate(values):
        spec = (shapes.get(places[i]) if by_name else shapes[i]) if i < len(places) else None
        specs = [spec] if isinstance(value, Tensor) else tree_flatten(spec, is_leaf=lambda v: isinstance(v, dict) and all(type(k) is int for k in v))[0]
        leaves = tree_flatten(value)[0]
        for leaf, dims in zip(leaves, specs):
            for d, dim in dims.items() if isinstance(dims, dict) else enumerate(dims or ()):
                hint = isinstance(dim, _DimHint)
                if isinstance(dim, Dim) or hint and dim.type != "STATIC":
                    found[count + leaves.index(leaf) if leaf is not value else count, d] = f"size {leaf.shape[d]}" if hint else dim.__name__
        count += len(leaves)
    return found


def save(ep, f, *, extra_files=None, opset_version=None, **ignored):
    """Write a program to a file: the operators of its graph by name, and its parameters. Programs that the module's Python code makes anew for each size are
    written with those sizes of ``dynamic_shapes`` that only scale or shift numbers of the graph.

    Raises NotImplementedError where a size that may differ changes the graph in other ways.

    Example::

        >>> import io
        >>> file = io.BytesIO()
        >>> clnn.export.save(clnn.export.export(clnn.nn.ReLU(), (clnn.ones(2),)), file)
        >>> _ = file.seek(0)
        >>> clnn.export.load(file).module()(clnn.tensor([-1., 2.]))
        tensor([0., 2.])
    """
    from ._programs import write
    if not isinstance(ep, ExportedProgram):
        raise TypeError(f"The 'ep' parameter must be an instance of 'ExportedProgram', got '{type(ep).__name__}' instead.")
    if isinstance(ep, _Stored):
        raise NotImplementedError("export.save: the program is from a file; copy that")
    names = _named_sizes(ep)
    missing = {n for n in names.values() if not n.startswith("size ")} - set(write(ep, f, names))
    if missing:
        raise NotImplementedError(f"export.save: the graph depends on {', '.join(sorted(missing))} in ways that clnn does not write; export it for one size")


def load(f, *, extra_files=None, expected_opset_version=None, **ignored):
    """The program of a file that :func:`save` wrote. Nothing in the file is run but operators by name.

    Raises RuntimeError for other files.
    """
    from ._programs import read
    module = read(f)
    if module is None:
        raise RuntimeError("export.load: the file holds no program that clnn wrote")
    return _Stored(module)
