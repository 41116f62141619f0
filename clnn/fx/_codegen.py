"""How the functions of graphs take their arguments and give their results."""
from __future__ import annotations

from typing import NamedTuple, Optional

from clnn.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from ._pytree import tree_flatten_spec


class CodeGen:
    """Placeholders are the arguments, the output is the result."""

    def process_inputs(self, *args):
        """The values of the placeholders."""
        return args

    def process_outputs(self, outputs):
        """What the function returns."""
        return outputs


class _PyTreeInfo(NamedTuple):
    """Names of arguments, their structure (of arguments by place and by name) and that of the result."""

    orig_args: list
    in_spec: TreeSpec
    out_spec: Optional[TreeSpec]


class _PyTreeCodeGen(CodeGen):
    """Placeholders are the leaves of the arguments, the output the leaves of the result."""

    def __init__(self, pytree_info):
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs):
        return tree_flatten(inputs)[0]

    def process_outputs(self, out):
        spec = self.pytree_info.out_spec
        return out if spec is None else tree_unflatten(out if isinstance(out, (list, tuple)) else [out], spec)

    def opening(self, leaves):
        """The line that takes the arguments apart into ``leaves``."""
        info = self.pytree_info
        args, kwargs = info.in_spec.children if self._by_name() else (info.in_spec, None)
        count = len(args.children)
        places = ", ".join(info.orig_args[:count])
        named = ", ".join(f"'{k}':{name}" for k, name in zip(kwargs.keys, info.orig_args[count:])) if kwargs is not None else ""
        given = f"([{places}], {{{named}}})" if kwargs is not None else f"[{places}]"
        return f"{''.join(name + ', ' for name in leaves)[:-1]} = fx_pytree.tree_flatten_spec({given}, self._in_spec)"

    def _by_name(self):
        spec = self.pytree_info.in_spec
        return spec.kind is tuple and len(spec.children) == 2 and spec.children[0].kind is tuple and spec.children[1].kind is dict


__all__ = ["CodeGen", "tree_flatten_spec"]
