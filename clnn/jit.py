"""PyTorch's ``jit`` names. clnn does not compile Python: the decorators give back what they get, and ``clnn.compile`` captures launches."""
from __future__ import annotations

import contextlib
import copy
import functools
import io
import os
import sys
import types
import typing
import warnings
from typing import Final  # noqa: F401

from ._jit_source import Calls, code_of, schema_of

__all__ = ["script", "trace", "ignore", "unused", "export", "is_scripting", "is_tracing", "script_method", "freeze", "fork", "wait", "save", "load",
           "annotate", "isinstance", "script_if_tracing", "optimize_for_inference", "interface", "Attribute"]

_isinstance = isinstance
__path__ = []           # programs import torch.jit.annotations


class _Given(type):
    """``isinstance`` is true of the class's own objects and of modules, or functions, that :func:`script` or :func:`trace` were given."""

    def __instancecheck__(cls, obj):
        given = getattr(obj, "__dict__", {}).get("_scripted") and _isinstance(obj, types.FunctionType) == (cls.__name__ == "ScriptFunction")
        return type.__instancecheck__(cls, obj) or bool(given)


def _noted(obj, inputs=None):
    from .nn import Module
    if _isinstance(obj, Module):
        from .nn.modules import module as modules
        modules.of_scripted.update(_OF_MODULES)
        for module in obj.modules():
            module.__dict__["_scripted"] = True
        if inputs is not None:
            obj.__dict__["_traced_with"] = inputs
    elif _isinstance(obj, types.FunctionType):
        obj._scripted, obj.name, obj.save = True, obj.__name__, functools.partial(_save_function, obj)
        _describe(obj)
        if inputs is not None:
            obj._traced_with = inputs
    return obj


def _describe(function):
    """Attributes that programs print: ``code``, ``graph`` and ``schema``."""
    code = functools.partial(code_of, function)
    try:
        function.code, function.schema = code(), schema_of(function)
    except (AttributeError, ValueError):
        return
    function.graph = function.inlined_graph = Calls(function, code)


def _save_function(function, f, **kwargs):
    save(function, f, **kwargs)


def _program(module):
    """The exported program of what :func:`trace` was given, or None."""
    from .export import export
    from .nn import Module
    inputs = module.__dict__.get("_traced_with")
    if inputs is None:
        return None
    if not _isinstance(module, Module):
        class Called(Module):
            forward = staticmethod(module)
        module = Called()
    return export(module, inputs)


def _graph(module):
    program = _program(module)
    return program.graph_module.graph if program is not None else Calls(module, functools.partial(_code, module))


def _code(module):
    program = _program(module)
    return program.graph_module.code if program is not None else code_of(type(module).forward)


_OF_MODULES = {"save": lambda module: functools.partial(save, module), "original_name": lambda module: type(module).__name__,
               "graph": _graph, "inlined_graph": _graph, "code": _code}


def script(obj=None, *args, **kwargs):
    """``obj`` itself: functions and modules run as Python.

    Example:
        >>> net = clnn.jit.script(nn.Linear(2, 1))
        >>> net(clnn.ones(1, 2)).shape
        clnn.Size([1, 1])
    """
    if obj is not None and not callable(obj):
        raise TypeError(f"{type(obj)} is a built-in class" if type(obj).__module__ == "builtins" else f"jit.script takes modules, functions and classes, got {type(obj)}")
    waiting = obj.has_uninitialized_params() if hasattr(obj, "has_uninitialized_params") else False
    if waiting:
        raise RuntimeError(f"'{type(obj).__module__}.{type(obj).__name__}' has uninitialized parameters. Did you forget to run a forward pass?")
    return _noted(obj) if obj is not None else script


def trace(func, example_inputs=None, **kwargs):
    """``func`` itself, called once with the example, as tracing does.

    Example:
        >>> net = clnn.jit.trace(nn.Linear(2, 1), clnn.ones(1, 2))
        >>> net(clnn.ones(1, 2)).shape
        clnn.Size([1, 1])
    """
    inputs = None
    if example_inputs is not None:
        inputs = tuple(example_inputs) if _isinstance(example_inputs, (tuple, list)) else (example_inputs,)
        func(*inputs)
    return _noted(func, inputs)


def _same(obj=None, *args, **kwargs):
    """The decorated function itself."""
    return obj if callable(obj) else _same


script_method = script_if_tracing = _script_if_tracing = _overload = _overload_method = ignore = unused = export = interface = _same


def freeze(mod, preserved_attrs=None, *args, **kwargs):
    """A copy of ``mod``, which was scripted or traced and is in eval mode: its parameters and buffers are plain tensors without gradients.

    Args:
        preserved_attrs: names of members that stay as they are; parameters among them stay parameters.

    Example:
        >>> net = clnn.jit.freeze(clnn.jit.script(nn.Linear(2, 1).eval()))
        >>> list(net.parameters()), net(clnn.ones(1, 2)).requires_grad
        ([], False)
    """
    if not _isinstance(mod, sys.modules[__name__].ScriptModule):            # made when it is first asked for
        raise RuntimeError("Freezing expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace to script your 'nn.Module'.")
    if mod.training:
        raise RuntimeError("Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module before freezing.")
    kept = set(preserved_attrs or ())
    tensors = {n: t for n, t in (*mod.named_parameters(), *mod.named_buffers()) if n not in kept}
    constants = {id(t): t.detach().clone() for t in tensors.values()}                   # also where a module has them by other ways
    inputs = mod.__dict__.get("_traced_with")
    frozen = copy.deepcopy(mod, {**constants, **({id(inputs): inputs} if inputs is not None else {})})
    for path, module in frozen.named_modules():
        for table in (module._parameters, module._buffers):
            for name in [n for n in table if (f"{path}.{n}" if path else n) in tensors]:
                module.__dict__[name] = table.pop(name)
    return frozen


def optimize_for_inference(mod, other_methods=None):
    """``mod`` in eval mode and frozen: clnn has no further steps."""
    return freeze(mod.eval(), preserved_attrs=other_methods)


def is_scripting() -> bool:
    """Always False."""
    return False


is_tracing = is_scripting


def fork(func, *args, **kwargs):
    """Call ``func`` now; the result waits in a Future."""
    from .futures import Future
    future = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future):
    """The result of :func:`fork`."""
    return future.wait()


def annotate(the_type, the_value):
    """``the_value``."""
    return the_value


class Attribute(typing.NamedTuple):
    """A value and its type, for attributes of a scripted module."""

    value: typing.Any
    type: typing.Any


def isinstance(obj, target_type) -> bool:
    """Python's ``isinstance``, also of types with parts, as ``List[int]``, and tuples of types."""
    if _isinstance(target_type, tuple):
        return any(isinstance(obj, t) for t in target_type)
    whole, parts = typing.get_origin(target_type), typing.get_args(target_type)
    if whole is None:
        return _isinstance(obj, target_type)
    if whole in (typing.Union, types.UnionType):
        return any(isinstance(obj, t) for t in parts)
    if not _isinstance(obj, whole):
        return False
    if whole is tuple and Ellipsis not in parts:
        return len(obj) == len(parts) and all(map(isinstance, obj, parts))
    if whole is dict:
        return all(isinstance(k, parts[0]) and isinstance(v, parts[1]) for k, v in obj.items())
    return all(isinstance(v, parts[0]) for v in obj)


def save(module, f, **kwargs):
    """Write what :func:`trace` was given as a program of operators, which :func:`load` reads. Another module is written as :func:`clnn.save` does, and read where
    the program has imported its class; of one that cannot be, the ``state_dict``.

    Sizes of the example may differ in later calls where they only scale or shift numbers of the program.

    Example:
        >>> import io
        >>> net, file = clnn.jit.trace(nn.ReLU(), clnn.ones(2)), io.BytesIO()
        >>> clnn.jit.save(net, file)
        >>> _ = file.seek(0)
        >>> clnn.jit.load(file)(clnn.tensor([-1., 2., 3.]))
        tensor([0., 2., 3.])
    """
    import clnn
    program = _program(module)
    if program is None:
        return _save_whole(module, f)
    from ._programs import write
    from .utils._pytree import tree_flatten
    names = {(i, d): f"size {n}" for i, v in enumerate(tree_flatten(list(program.example_inputs))[0]) if _isinstance(v, clnn.Tensor)
             for d, n in enumerate(v.shape)}
    return write(program, f, names, {at: n for at, n in names.items() if not at[1]}) and None


def _save_whole(module, f):
    import clnn
    target = io.BytesIO() if hasattr(f, "write") else f
    try:
        clnn.save(module, target)
    except clnn.SerializationError:
        warnings.warn("clnn.jit.save writes the state_dict of what was not traced; load it into the model's class", stacklevel=3)
        return clnn.save(module.state_dict(), f)
    if target is not f:
        f.write(target.getvalue())


def _read_whole(f, map_location):
    """The module of a file without a program, or None."""
    import clnn
    try:
        held = clnn.load(f, map_location=map_location, weights_only=False)
    except clnn.SerializationError:
        return None
    return held if _isinstance(held, clnn.nn.Module) else None


def load(f, map_location=None, **kwargs):
    """The module of a file that :func:`save` wrote. Raises RuntimeError for others: TorchScript files hold code."""
    from ._programs import read
    if _isinstance(f, (str, os.PathLike)) and not os.path.exists(f):
        raise ValueError(f"The provided filename {f} does not exist")
    start = f.tell() if hasattr(f, "seek") else None
    module = read(f, map_location)
    if module is None:
        if start is not None:
            f.seek(start)
        module = _read_whole(f, map_location)
    if module is None:
        raise RuntimeError("clnn.jit.load: TorchScript files hold compiled code, which clnn does not run; save the model's state_dict instead")
    return _noted(module)


def _get_trace_graph(f, args=(), kwargs=None, **options):
    """PyTorch's graph of the operators that ``f`` calls, for tools that count them.

    Raises:
        NotImplementedError: always; a ``TorchDispatchMode`` is told the operators.
    """
    raise NotImplementedError("clnn.jit._get_trace_graph: there are no graphs of TorchScript; a TorchDispatchMode is told the operators of a program, and torch.utils."
                              "flop_counter.FlopCounterMode counts them")


class TracerWarning(Warning):
    """A category that programs silence; never raised here."""


class ScriptWarning(Warning):
    """A category that programs silence; never raised here."""


class Error(RuntimeError):
    """PyTorch's exception of compiled code; never raised here."""


def trace_module(mod, inputs, *args, **kwargs):
    """``mod`` itself, whose methods are called once with their examples."""
    for name, given in inputs.items():
        given = tuple(given) if _isinstance(given, (tuple, list)) else (given,)
        getattr(mod, name)(*given)
        if name == "forward":
            mod.__dict__["_traced_with"] = given
    return _noted(mod)


def set_fusion_strategy(strategy):
    """Accepted: elementwise chains always fuse."""
    return strategy


enable_onednn_fusion = set_fusion_strategy


@contextlib.contextmanager
def optimized_execution(should_optimize):
    """A block that changes nothing."""
    yield


fuser = optimized_execution


class ScriptFunction(metaclass=_Given):
    """Functions that :func:`script` or :func:`trace` was given."""


def __getattr__(name):
    if name in ("ScriptModule", "RecursiveScriptModule", "TracedModule", "TopLevelTracedModule"):
        from .nn import Module

        def put(self, name, value):
            Module.__setattr__(self, name, value.value if type(value) is Attribute else value)
        made = _Given("ScriptModule", (Module,), {"__module__": __name__, "__setattr__": put,
                                                 "__doc__": "A module that :func:`script` or :func:`trace` was given, or a base class."})
        for key in ("ScriptModule", "RecursiveScriptModule", "TracedModule", "TopLevelTracedModule"):
            globals()[key] = made
        return made
    raise AttributeError(f"module 'clnn.jit' has no attribute {name!r}")
