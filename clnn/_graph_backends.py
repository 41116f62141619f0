"""Backends of ``clnn.compile`` that are functions: they get the graph of the program and say what runs in its place, as in PyTorch."""
from __future__ import annotations

import functools
import warnings

from ._fullgraph import refusing
from .nn import Module
from .utils import _pytree as pytree
from ._tensor.tensor import Tensor


class Backed:
    """``target`` as ``backend(graph_module, example_inputs)`` makes it, once for each structure, shapes and dtypes of the arguments.

    The graph takes the tensors among the arguments and returns a tuple of tensors. What cannot be traced runs as written; a warning gives the reason.
    """

    def __init__(self, target, backend, fullgraph=False):
        self.target, self.backend, self._made = target, backend, {}
        self._written = refusing(target) if fullgraph else target
        if not isinstance(target, Module):
            functools.update_wrapper(self, target)

    def __get__(self, obj, cls=None):
        return self if obj is None else functools.partial(self, obj)

    def __call__(self, *args, **kwargs):
        leaves, spec = pytree.tree_flatten((args, kwargs))
        tensors = [x for x in leaves if isinstance(x, Tensor)]
        others = [None if isinstance(x, Tensor) else x for x in leaves]
        try:
            key = (str(spec), tuple([(tuple(t.shape), t.dtype, t.requires_grad) for t in tensors]), tuple(others), getattr(self.target, "training", None))
            made = self._made.get(key)
        except TypeError:                                       # an argument without a hash
            return self._written(*args, **kwargs)
        if made is None:
            made = self._made[key] = self._make(tensors, leaves, spec)
        compiled, structure = made
        return self._written(*args, **kwargs) if compiled is None else pytree.tree_unflatten(list(compiled(*tensors)), structure[0])

    def _make(self, tensors, leaves, spec):
        """(what the backend gives for these arguments, the structure of the result); (None, ()) where the program has no graph."""
        from .fx import GraphModule, Tracer
        structure, places = [], [i for i, x in enumerate(leaves) if isinstance(x, Tensor)]

        def flat(target, values):
            given = list(leaves)
            for place, value in zip(places, values):
                given[place] = value
            args, kwargs = pytree.tree_unflatten(given, spec)
            results, out = pytree.tree_flatten(target(*args, **kwargs))
            structure[:] = [out]
            return tuple(results)
        try:
            root = self._root(flat, len(tensors))
            graph = GraphModule(root, Tracer().trace(root)) if isinstance(root, Module) else GraphModule(Module(), Tracer().trace(root))
        except Exception as exc:        # whatever a program does with a stand-in for a tensor
            warnings.warn(f"clnn.compile: the function runs as written, as it has no graph: {type(exc).__name__}: {exc}", stacklevel=4)
            return None, ()
        try:
            return self.backend(graph, tensors), structure
        except Exception as exc:
            from ._dynamo_exc import BackendCompilerFailed
            name = getattr(self.backend, "__name__", repr(self.backend))
            raise BackendCompilerFailed(f"backend={name!r} raised:\n{type(exc).__name__}: {exc}") from exc

    def _root(self, flat, count):
        """What is traced: a function of ``count`` tensors, or the module with such a forward pass."""
        names = ", ".join(f"arg{i}" for i in range(count))
        target, scope = self.target, {"flat": flat}
        if not isinstance(target, Module):
            scope["target"] = target
            return eval(f"lambda {names}: flat(target, ({names}{',' if count else ''}))", scope)
        kind = type(target)
        scope["run"] = lambda self: functools.partial(kind.forward, self)
        forward = eval(f"lambda self{', ' if count else ''}{names}: flat(run(self), ({names}{',' if count else ''}))", scope)
        holder = Module.__new__(type(kind.__name__, (kind,), {"forward": forward}))
        holder.__dict__ = target.__dict__
        return holder
