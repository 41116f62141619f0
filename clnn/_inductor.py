"""Switches of ``torch._inductor`` that programs set; see :mod:`clnn._dynamo`."""
from ._dynamo import _switches

__path__ = []
config = _switches("_inductor.config")
