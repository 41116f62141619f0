"""Switches of ``torch._dynamo`` and ``torch._inductor`` that programs set: accepted, as :func:`clnn.compile` records launches and has none of them."""
from __future__ import annotations

import sys
import types

from .compiler import allow_in_graph, disable, is_compiling, reset  # noqa: F401


class _Config(types.ModuleType):
    """Switches that can be set and read back; False until set."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return False


def _switches(name):
    module = sys.modules[f"{__package__}.{name}"] = _Config(f"{__package__}.{name}", "Switches that are accepted.")
    return module


__path__ = []           # programs import the submodule
config = _switches("_dynamo.config")
