"""Switches of ``torch._dynamo`` and ``torch._inductor`` that programs set: accepted, as :func:`clnn.compile` records launches and has none of them."""
from __future__ import annotations

import collections
import contextlib
import sys
import types

from . import _dynamo_exc as exc
from .compiler import allow_in_graph, assume_constant_result, disable, is_compiling, list_backends, reset, set_stance  # noqa: F401


class _Config(types.ModuleType):
    """Switches that can be set and read back; False until set."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return False

    @contextlib.contextmanager
    def patch(self, *args, **values):
        """Set switches inside the block, or inside the decorated function: ``patch(name=value)``, ``patch("name", value)`` or ``patch({"name": value})``."""
        values = {**(args[0] if args and isinstance(args[0], dict) else dict([args]) if args else {}), **values}
        before = {key: vars(self).get(key, False) for key in values}
        vars(self).update(values)
        try:
            yield
        finally:
            vars(self).update(before)


def _switches(name, groups=""):
    """A module of switches, with groups of further ones, as in ``config.triton.unique_kernel_names = True``."""
    module = sys.modules[f"{__package__}.{name}"] = _Config(f"{__package__}.{name}", "Switches that are accepted.")
    for group in groups.split():
        setattr(module, group, _Config(f"{module.__name__}.{group}"))
    return module


def __getattr__(name):
    if name == "OptimizedModule":
        from ._compile import optimized_module
        return optimized_module()
    if name in ("eval_frame", "utils"):
        return sys.modules[__name__]
    if name == "testing":
        from . import _dynamo_testing
        return _dynamo_testing
    if name == "backends":
        from . import _aot
        return _aot
    raise AttributeError(f"module 'clnn._dynamo' has no attribute {name!r}")


counters = collections.defaultdict(collections.Counter)         # of a compiler's doings: none
disallow_in_graph = nonstrict_trace = allow_in_graph        # a recording holds launches, whoever makes them
__path__ = []           # programs import the submodule
config = _switches("_dynamo.config")
sys.modules[f"{__package__}._dynamo.exc"] = exc


def explain(f, *extra_args, **extra_kwargs):
    """A function that calls ``f`` and says that its launches make one recording, which nothing breaks."""
    def run(*args, **kwargs):
        f(*args, **kwargs)
        return types.SimpleNamespace(graph_count=1, graph_break_count=0, graphs=[], break_reasons=[], ops_per_graph=[], op_count=0, out_guards=[])
    return run(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else run


def optimize(backend="inductor", *, nopython=False, **options):
    """The decorator that :func:`clnn.compile` with this backend is."""
    from ._compile import compile
    return compile(backend=backend, fullgraph=nopython)


def graph_break(msg=None):
    """Nothing, as a recording holds what was launched, whatever the code between launches is; refused with ``fullgraph=True``."""
    from ._fullgraph import graph_break
    graph_break(msg)


def is_compile_supported(device_type) -> bool:
    """True: :func:`clnn.compile` records launches on any device."""
    return True


def mark_dynamic(t, index, *, hint_override=None, min=None, max=None, specialize_on=None):      # noqa: A002
    """Accepted: a recording is made for each shape that comes."""


maybe_mark_dynamic = mark_static = mark_dynamic


def mark_static_address(t, guard=False):
    """Accepted: memory that is written in place stays where a recording found it."""


def is_dynamo_supported() -> bool:
    """False: there is no compiler of Python."""
    return False


class TransformGetItemToIndex(contextlib.nullcontext):
    """A block that changes nothing: inside ``vmap`` a tensor of one element indexes as it is."""
