"""PyTorch's names for the parts of :mod:`clnn._tensor.display`: libraries that print tensors of their own use them."""
from __future__ import annotations

from ._tensor.display import OPTIONS as PRINT_OPTS, _joined, contents as _tensor_str, printoptions, set_printoptions, tensor_repr as _str_intern

__all__ = ["PRINT_OPTS", "_add_suffixes", "_str", "_str_intern", "_tensor_str", "printoptions", "set_printoptions"]


def _str(self, *, tensor_contents=None):
    """The text of a tensor, as ``Tensor.__repr__`` has it before a class changes it."""
    return _str_intern(self, tensor_contents)


def _add_suffixes(tensor_str, suffixes, indent, force_newline):
    """A text with what follows it, in lines of the set length."""
    if force_newline and suffixes:
        return f"{tensor_str},\n{' ' * indent}{', '.join(suffixes)})"
    return _joined(tensor_str, suffixes, indent)
