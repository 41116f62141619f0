"""Programs as graphs of operators, with their parameters as inputs: ``clnn.export.export(module, args)``."""
from __future__ import annotations

import copy
import inspect

from clnn._tensor.tensor import Tensor
from clnn.nn.modules.module import Module
from clnn.nn.utils.stateless import functional_call
from clnn.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["Dim", "ExportGraphSignature", "ExportedProgram", "export", "load", "save"]


class Dim:
    """A size that may differ between calls: ``Dim("batch", min=1)``."""

    AUTO = DYNAMIC = STATIC = None

    def __init__(self, name, *, min=None, max=None):
        self.__name__, self.min, self.max = name, min, max


Dim.AUTO, Dim.DYNAMIC, Dim.STATIC = Dim("AUTO"), Dim("DYNAMIC"), Dim("STATIC")


class ExportGraphSignature:
    """Which inputs of the graph are parameters, buffers and a program's own; the names of its outputs."""

    def __init__(self, parameters, buffers, user_inputs, user_outputs):
        self.inputs_to_parameters, self.inputs_to_buffers = parameters, buffers
        self.parameters, self.buffers = list(parameters.values()), list(buffers.values())
        self.user_inputs, self.user_outputs = user_inputs, user_outputs


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
        for got, example in zip(given, tree_flatten(list(program.example_inputs[0]))[0]):
            if isinstance(got, Tensor) and isinstance(example, Tensor) and got.shape != example.shape:
                raise AssertionError(f"Guard failed: the program was exported for an input of shape {tuple(example.shape)}, got {tuple(got.shape)}; "
                                     "give export() dynamic_shapes")
        result = program.graph_module(*[state[n] for n in program._state_names], *given)
        return result[0] if program._alone else result


class ExportedProgram:
    """What :func:`export` gives."""

    def __init__(self, module, graph_module, signature, state_names, example_inputs, kind):
        self._module, self.graph_module, self.graph_signature, self._state_names = module, graph_module, signature, state_names
        self.example_inputs, (self._dynamic, self._alone) = example_inputs, kind

    graph = property(lambda self: self.graph_module.graph)
    state_dict = property(lambda self: self._module.state_dict())

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
        return f"ExportedProgram:\n{self.graph_module.code}"


def export(mod, args, kwargs=None, *, dynamic_shapes=None, strict=False, preserve_module_call_signature=(), **ignored):
    """The graph of ``mod(*args, **kwargs)``: operators of ``clnn.ops.aten``, parameters and buffers as the first inputs.

    Args:
        mod: a module. args, kwargs: the inputs for which it is traced; the course of the program is fixed for them.
        dynamic_shapes: sizes that may differ; the program's ``module()`` is then the module as it was.

    Example::

        >>> program = clnn.export.export(clnn.nn.Linear(3, 2), (clnn.ones(1, 3),))
        >>> program.graph_signature.parameters, program.module()(clnn.ones(1, 3)).shape
        (['weight', 'bias'], clnn.Size([1, 2]))
    """
    from clnn.fx._by_operator import traced
    if not isinstance(mod, Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise TypeError(f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}")
    kwargs = kwargs or {}
    parameters, buffers = dict(mod.named_parameters()), dict(mod.named_buffers())
    names, state = [*parameters, *buffers], [*parameters.values(), *buffers.values()]
    inputs = _input_names(mod, args, kwargs)
    leaves, spec = tree_flatten(list(args))
    given, alone = len(leaves), []

    def program(*values):
        flat = values[len(state):]
        result = functional_call(mod, dict(zip(names, values)), tuple(tree_unflatten(list(flat[:given]), spec)), dict(zip(kwargs, flat[given:])))
        alone.append(isinstance(result, Tensor))
        return (result,) if alone[0] else result
    holders = [("p_" if i < len(parameters) else "b_") + n.replace(".", "_") for i, n in enumerate(names)]
    graph_module = traced(program, [*state, *leaves, *kwargs.values()], [*holders, *inputs])
    outputs = [n.name for n in graph_module.graph.output_node().all_input_nodes]
    signature = ExportGraphSignature(dict(zip(holders, parameters)), dict(zip(holders[len(parameters):], buffers)), tuple(inputs), tuple(outputs))
    return ExportedProgram(mod, graph_module, signature, names, (args, kwargs), (dynamic_shapes is not None, alone[0]))


def _input_names(mod, args, kwargs):
    """Names for all values among the arguments, after the parameters of ``forward``."""
    names, places = [], [p.name for p in inspect.signature(mod.forward).parameters.values()]
    for i, a in enumerate(args):
        count = len(tree_flatten(a)[0])
        base = places[min(i, len(places) - 1)] if places else "input"
        names += [base] if count == 1 and base not in names else [f"{base}_{i + k}" for k in range(count)]
    return [*names, *kwargs]


def save(ep, f, **ignored):
    """Not possible."""
    raise NotImplementedError("export.save: clnn does not write programs; save the module's state_dict")


def load(f, **ignored):
    """Not possible."""
    raise NotImplementedError("export.load: clnn does not read programs; load a state_dict into the module")
