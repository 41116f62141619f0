"""Programs as graphs of operators, with their parameters as inputs: ``clnn.export.export(module, args)``."""
from __future__ import annotations

import contextlib
import copy
import enum
import hashlib
import inspect
import re
from collections import namedtuple

from clnn._dynamo_exc import UserError, UserErrorType
from clnn._export_shapes import AdditionalInputs, Dim, ShapesCollection, _DimHint, int_oo
from clnn._programs import spec_of
from clnn._tensor.grad_mode import no_grad
from clnn._tensor.tensor import Tensor
from clnn._unlifted import ExportedModule, detached_from
from clnn.fx._by_operator import _without_memory
from clnn.nn.modules.module import Module
from clnn.nn.utils.stateless import functional_call
from clnn.random import fork_rng
from clnn.utils._pytree import keystr, register_dataclass, tree_flatten, tree_leaves_with_path, tree_unflatten  # noqa: F401

__all__ = ["AdditionalInputs", "Dim", "ExportGraphSignature", "ExportedProgram", "InputKind", "InputSpec", "OutputKind", "OutputSpec", "ShapesCollection",
           "TensorArgument", "default_decompositions", "dims", "export", "load", "save", "unflatten"]

__path__ = []           # programs import torch.export.graph_signature
InputKind = enum.Enum("InputKind", "USER_INPUT PARAMETER BUFFER CONSTANT_TENSOR CUSTOM_OBJ TOKEN")
OutputKind = enum.Enum("OutputKind", "USER_OUTPUT LOSS_OUTPUT BUFFER_MUTATION PARAMETER_MUTATION GRADIENT_TO_PARAMETER GRADIENT_TO_USER_INPUT")
TensorArgument = namedtuple("TensorArgument", "name")
ConstantArgument = namedtuple("ConstantArgument", "name value")
CallSpec = namedtuple("CallSpec", "in_spec out_spec")


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
    """Which inputs of the graph are parameters, buffers, constants and a program's own; the names of its outputs, and other values that it returns."""

    def __init__(self, parameters, buffers, user_inputs, user_outputs, passing=(), constants=None):
        self.inputs_to_parameters, self.inputs_to_buffers = parameters, buffers
        self.parameters, self.buffers = tuple(parameters.values()), tuple(buffers.values())
        self._given = [v if isinstance(v, (TensorArgument, ConstantArgument)) else TensorArgument(v) for v in user_outputs]
        self.user_inputs, self.user_outputs = tuple(user_inputs), tuple(a.value if isinstance(a, ConstantArgument) else a.name for a in self._given)
        # what is written stays an operator of the graph
        self.inputs_to_lifted_tensor_constants, self.inputs_to_lifted_custom_objs = dict(constants or {}), {}
        self.buffers_to_mutate, self.parameters_to_mutate, self.user_inputs_to_mutate = {}, {}, {}
        self.lifted_tensor_constants = tuple(self.inputs_to_lifted_tensor_constants.values())
        self.lifted_custom_objs = self.input_tokens = self.output_tokens = ()
        self.non_persistent_buffers = tuple(n for n in self.buffers if n in passing)
        self.backward_signature = self.assertion_dep_token = None

    @property
    def input_specs(self):
        """An :class:`InputSpec` for each input of the graph, in order."""
        return [*(InputSpec(InputKind.PARAMETER, TensorArgument(n), t) for n, t in self.inputs_to_parameters.items()),
                *(InputSpec(InputKind.BUFFER, TensorArgument(n), t, t not in self.non_persistent_buffers) for n, t in self.inputs_to_buffers.items()),
                *(InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(n), t) for n, t in self.inputs_to_lifted_tensor_constants.items()),
                *(InputSpec(InputKind.USER_INPUT, TensorArgument(n), None) for n in self.user_inputs)]

    @property
    def output_specs(self):
        """An :class:`OutputSpec` for each output of the graph, in order."""
        return [OutputSpec(OutputKind.USER_OUTPUT, a, None) for a in self._given]

    def __str__(self):
        return "\n".join(["", "# inputs", *map(str, self.input_specs), "", "# outputs", *map(str, self.output_specs), ""])


class _Symbol(str):
    """The name of a size that may differ."""

    __slots__ = ()
    __repr__ = str.__str__


class ValueRanges(namedtuple("ValueRanges", "lower upper")):
    """Least and largest value of a size."""

    __slots__ = ()

    def __repr__(self):
        return f"VR[{self.lower}, {self.upper}]"


class ExportedProgram:
    """What :func:`export` gives."""

    dialect = "TRAINING"

    def __init__(self, module, graph_module, signature, example_inputs, call_spec, sizes=None):
        self._module, self.graph_module, self.graph_signature = module, graph_module, signature
        self.example_inputs, self.call_spec = example_inputs, call_spec
        self._sizes = sizes or {}                               # (number of a leaf, dimension) -> Free
        self._dynamic, self._fixed = bool(self._sizes), detached_from(module) if self._sizes else module
        self._told = None

    graph = property(lambda self: self.graph_module.graph)

    @property
    def constants(self):
        """Tensors that are no part of the state: attributes of modules, then buffers that are not persistent."""
        signature, buffers = self.graph_signature, dict(self._module.named_buffers())
        return {**{n: self._constants[n] for n in signature.lifted_tensor_constants}, **{n: buffers[n] for n in signature.non_persistent_buffers}}

    tensor_constants = property(lambda self: self.constants)
    _constants: dict = {}

    @property
    def state_dict(self):
        """Parameters, then buffers."""
        state = self._module.state_dict(keep_vars=True)
        return {n: state[n] for n in (*dict(self._module.named_parameters()), *state) if n in state}

    @property
    def range_constraints(self):
        """Least and largest size of each that may differ, by the names that PyTorch gives them."""
        found = {}
        for size in self._sizes.values():
            found.setdefault(size.name, size)
        return {_Symbol(size.symbol): ValueRanges(size.least, size.most) for size in found.values()}

    @property
    def module_call_graph(self):
        """An entry for the program and each of its modules that compute something."""
        entry = namedtuple("ModuleCallEntry", "fqn signature")
        return [entry(name, None) for name, _ in self._module.named_modules()]

    def module(self, check_guards=True):
        """A module that computes the program, with the parameters of the one that was exported, under their names."""
        return ExportedModule(self)

    def parameters(self):
        return self._module.parameters()

    def named_parameters(self):
        return self._module.named_parameters()

    def buffers(self):
        return self._module.buffers()

    def named_buffers(self):
        return self._module.named_buffers()

    def run_decompositions(self, decomp_table=None, decompose_custom_triton_ops=False):
        """The program in operators of the lowest level."""
        if self.example_inputs is None:
            return self
        return _traced_program(self._fixed, *self.example_inputs, self._sizes, False)

    def __call__(self, *args, **kwargs):
        raise RuntimeError("Unable to call ExportedProgram directly. You should use `exported_program.module()` instead.")

    def __str__(self):
        code, signature = (text.replace("\n", "\n    ") for text in (self.graph_module.print_readable(print_output=False), str(self.graph_signature)))
        return f"ExportedProgram:\n    {code}\nGraph signature: {signature}\nRange constraints: {self.range_constraints}\n"

    __repr__ = __str__

    # -- for the module behind it ------------------------------------------------------------------------------------------------
    def _held(self):
        """(input of the graph, dotted name of the tensor that it is)."""
        signature = self.graph_signature
        return [*signature.inputs_to_parameters.items(), *signature.inputs_to_buffers.items(), *signature.inputs_to_lifted_tensor_constants.items()]

    def _state(self):
        """Those tensors by name."""
        return {**dict(self._module.named_parameters()), **dict(self._module.named_buffers()), **self._constants}

    def _names_of_arguments(self):
        args, kwargs = self.example_inputs
        places = _names_by_place(self._module, args)
        return [*places, *kwargs]

    def _guards(self):
        """The rows of :class:`~clnn._unlifted.GuardsFn`."""
        args, kwargs = self.example_inputs
        rows, seen = [], {}
        for place, (source, value) in enumerate(_sources(self._module, args, kwargs)):
            if not isinstance(value, Tensor):
                rows += [[source, place, None, "==", value]] if type(value) in (int, float, str, bool) else []
            for dim, n in enumerate(value.shape) if isinstance(value, Tensor) else ():
                size = self._sizes.get((place, dim))
                if size is None:
                    rows.append([source, place, dim, "==", n])
                elif size.name in seen:
                    rows.append([source, place, dim, "==", seen[size.name]])
                else:
                    seen[size.name] = [source, place, dim]
                    rows += [[source, place, dim, ">=", size.least]] if size.least > 0 else []
                    rows += [[source, place, dim, "<=", size.most]] if size.most is not int_oo else []
        return rows

    def _moves(self, leaves):
        """Whether these inputs have sizes that the graph is not of."""
        if not self._dynamic:
            return False
        known = tree_flatten(self.example_inputs)[0]
        return any(isinstance(got, Tensor) and isinstance(k, Tensor) and got.shape != k.shape for got, k in zip(leaves, known))

    def _elsewhere(self, module, args, kwargs):
        module._guards_fn(*tree_flatten((args, kwargs))[0])
        state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        return functional_call(self._fixed, state, args, kwargs)


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
    if not isinstance(mod, Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise UserError(UserErrorType.INVALID_INPUT, f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}")
    if isinstance(dynamic_shapes, (ShapesCollection, AdditionalInputs)):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(mod, args, kwargs)
    kwargs = kwargs or {}
    _check_shapes(mod, args, kwargs, dynamic_shapes)
    return _traced_program(mod, args, kwargs, _free_sizes(mod, args, kwargs, dynamic_shapes), True)


def _check_shapes(mod, args, kwargs, shapes):
    """Refuse shapes for other arguments than there are."""
    if not shapes:
        return
    try:
        names = list(inspect.signature(mod.forward).bind(*args, **kwargs).arguments)
    except TypeError:                                           # the call itself says what is wrong
        return
    what = None
    if isinstance(shapes, dict) and sorted(shapes) != sorted(names):
        what = (f"When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg names {names} of `inputs`, but here they are {list(shapes)}. "
                "Alternatively, you could also ignore arg names entirely and specify `dynamic_shapes` as a list/tuple matching `inputs`.")
    elif isinstance(shapes, (list, tuple)) and len(shapes) != len(names):
        what = (f"Detected mismatch between the structure of `inputs` and `dynamic_shapes`: `inputs` has {len(names)} elements, but `dynamic_shapes` has "
                f"{len(shapes)} elements")
    if what is not None:
        raise UserError(UserErrorType.INVALID_INPUT, what, "dynamic_shapes_validation")


def _traced_program(mod, args, kwargs, sizes, composites):
    """The program of ``mod(*args, **kwargs)``; ``composites``: of operators above autograd."""
    from clnn.fx._by_operator import traced
    parameters, buffers = dict(mod.named_parameters()), dict(mod.named_buffers())
    names, state = [*parameters, *buffers], [*parameters.values(), *buffers.values()]
    inputs, (leaves, spec), made, constants = _input_names(mod, args, kwargs), tree_flatten((args, kwargs)), [], {}

    def program(*values):
        given, named = tree_unflatten(list(values[len(state):]), spec)
        flat, result = tree_flatten(functional_call(mod, dict(zip(names, values)), given, named))
        made.append(result)
        return tuple(flat)
    holders = [("p_" if i < len(parameters) else "b_") + n.replace(".", "_") for i, n in enumerate(names)]
    with _as_it_was([*buffers.values(), *leaves]):
        graph_module = traced(program, [*state, *leaves], [*holders, *inputs], lines=True, composites=composites, constants=constants,
                              modules={id(m): path for path, m in mod.named_modules()})
    lifted = _lifted(graph_module, constants, mod, len(state))
    given = graph_module.graph.output_node().args[0]
    outputs = [TensorArgument(v.name) if hasattr(v, "op") else ConstantArgument("", v) for v in given]
    placed = [n.name for n in graph_module.graph.nodes if n.op == "placeholder"][len(state) + len(lifted):]
    signature = ExportGraphSignature(dict(zip(holders, parameters)), dict(zip(holders[len(parameters):], buffers)), placed, outputs,
                                     set(buffers) - set(mod.state_dict()), {holder: target for holder, (target, _) in lifted.items()})
    made_program = ExportedProgram(mod, graph_module, signature, (args, kwargs), CallSpec(spec, made[0]), sizes)
    made_program._constants = dict(lifted.values())
    return made_program


def _lifted(graph_module, constants, mod, before):
    """Make inputs of the graph's constants, behind the first ``before``. Returns name of the input -> (dotted name, tensor)."""
    known = {id(t): f"{path}.{name}" if path else name for path, m in mod.named_modules() for name, t in vars(m).items() if isinstance(t, Tensor)}
    graph, found = graph_module.graph, {}
    place = next((n for n in graph.nodes[before:]))
    for node in graph.find_nodes(op="get_attr"):
        if node.target not in graph_module._buffers:            # a branch
            continue
        target = known.get(id(constants.get(node.target)))
        unnamed = sum(t.startswith("lifted_tensor_") for t, _ in found.values())
        target = target or f"lifted_tensor_{unnamed}"
        with graph.inserting_before(place):
            holder = graph.placeholder("c_" + target.replace(".", "_"))
        holder.meta = dict(node.meta)
        node.replace_all_uses_with(holder)
        graph.erase_node(node)
        value = getattr(graph_module, node.target)
        found[holder.name] = target, value
        graph_module._buffers.pop(node.target, None)
        if holder.meta.get("val") is None:
            holder.meta["val"] = _without_memory(value)
    if found:
        graph_module.recompile()
    return found


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


def dims(*names, min=None, max=None):           # noqa: A002
    """Several :class:`Dim`, of the same bounds.

    Example:
        >>> [dim.__name__ for dim in clnn.export.dims("batch", "length", max=64)]
        ['batch', 'length']
    """
    return tuple(Dim(name, min=min, max=max) for name in names)


def default_decompositions():
    """The table that :meth:`ExportedProgram.run_decompositions` takes: empty, as graphs hold operators of the lowest level."""
    return {}


def _names_by_place(mod, args):
    """A name for each argument by place: those of the parameters of ``forward``, numbered where one takes several."""
    names = []
    places = list(inspect.signature(mod.forward).parameters.values())
    for i in range(len(args)):
        place = places[min(i, len(places) - 1)] if places else None
        variadic = place is not None and place.kind is place.VAR_POSITIONAL
        names.append("input" if place is None else f"{place.name}_{i - len(places) + 1 if i >= len(places) else 0}" if variadic else place.name)
    return names


def _sources(mod, args, kwargs):
    """(where it comes from, value) for all values among the arguments."""
    named = [*zip(_names_by_place(mod, args), args), *kwargs.items()]
    return [(name + keystr(path), leaf) for name, value in named for path, leaf in tree_leaves_with_path(value)]


def _input_names(mod, args, kwargs):
    """Names for all values among the arguments, after the parameters of ``forward`` and the keys on the way."""
    return ["_".join(part for part in re.split(r"\W+", source) if part) for source, _ in _sources(mod, args, kwargs)]


Free = namedtuple("Free", "name least most symbol")


def _free_sizes(mod, args, kwargs, shapes):
    """(number of a leaf, dimension) -> :class:`Free`, for sizes that may differ as ``dynamic_shapes`` has it; equal sizes without a name share one."""
    found, values, count = {}, [*args, *kwargs.values()], 0
    places, by_name = [*_names_by_place(mod, args), *kwargs], isinstance(shapes, dict)
    sources = [source for source, _ in _sources(mod, args, kwargs)]
    for i, value in enumerate(values if shapes else ()):
        spec = (shapes.get(places[i]) if by_name else shapes[i] if i < len(shapes) else None) if i < len(places) else None
        specs = [spec] if isinstance(value, Tensor) else tree_flatten(spec, is_leaf=lambda v: isinstance(v, dict) and all(type(k) is int for k in v))[0]
        leaves = tree_flatten(value)[0]
        for k, (leaf, dims) in enumerate(zip(leaves, specs)):
            for d, dim in dims.items() if isinstance(dims, dict) else enumerate(dims or ()):
                size = _free(dim, leaf, d, sources[count + k])
                if size is not None:
                    found[count + k, d] = size
        count += len(leaves)
    return found


def _free(dim, leaf, d, source):
    symbol = f"s{int(hashlib.sha256(f'L[{source!r}].size()[{d}]'.encode()).hexdigest(), 16) % 100}"
    if isinstance(dim, _DimHint):
        if dim.type == "STATIC" or dim.type == "AUTO" and leaf.shape[d] < 2:
            return None
        return Free(f"size {leaf.shape[d]}", 2 if dim.min is None else dim.min, int_oo if dim.max is None else dim.max, symbol)
    return Free(dim.__name__, dim.min, dim.max, symbol) if isinstance(dim, Dim) else None


class _Stored(ExportedProgram):
    """A program that was read from a file."""

    def __init__(self, module):
        told = module._told
        outputs = [TensorArgument(v) if known else ConstantArgument("", v) for known, v in told["outputs"]]
        signature = ExportGraphSignature(*told["signature"][:3], outputs, *told["signature"][3:])
        super().__init__(module, module.graph_module({}), signature, None, CallSpec(*map(spec_of, told["specs"])))
        self._constants, self._dynamic = module._constants, bool(told["sizes"])
        self._sizes = {(i, d): Free(*rest) for i, d, *rest in told["sizes"]}

    def _names_of_arguments(self):
        return self._module._told["arguments"]

    def _guards(self):
        return self._module._told["guards"]

    def _moves(self, leaves):
        return self._dynamic and self._module._other(leaves)

    def _elsewhere(self, module, args, kwargs):
        leaves = tree_flatten((args, kwargs))[0]
        module._guards_fn(*leaves)
        state = {**dict(module.named_parameters()), **dict(module.named_buffers()), **self._constants}
        return tree_unflatten(self._module._computed(state, leaves), self.call_spec.out_spec)


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
    names = {at: size.name for at, size in ep._sizes.items()}
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
