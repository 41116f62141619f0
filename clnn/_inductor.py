"""Switches of ``torch._inductor`` that programs set; see :mod:`clnn._dynamo`."""
from ._dynamo import _switches

__path__ = []
config = _switches("_inductor.config", "triton cpp cuda rocm xpu mtia halide trace cutlass lookup_table aot_inductor aot_inductor_mode test_configs")
