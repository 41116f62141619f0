"""Walks over graphs."""
from . import graph_drawer, operator_support, shape_prop, split_module, tools_common, utils

__all__ = ["graph_drawer", "operator_support", "shape_prop", "split_module", "tools_common", "utils"]
