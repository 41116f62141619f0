"""Trees of arguments taken apart by a structure that is known, as generated code does: ``fx_pytree.tree_flatten_spec``."""
from __future__ import annotations

from clnn.utils._pytree import PyTree, TreeSpec, _parts

__all__ = ["tree_flatten_spec"]


def tree_flatten_spec(pytree: PyTree, spec: TreeSpec, exact_structural_match=False) -> list:
    """The leaves of ``pytree`` by ``spec``, where lists and tuples may stand for one another.

    Example:
        >>> from clnn.fx._pytree import tree_flatten_spec
        >>> from clnn.utils._pytree import tree_flatten
        >>> tree_flatten_spec([{"b": 1, "a": 2}, 3], tree_flatten(({"a": 0, "b": 0}, 0))[1])
        [2, 1, 3]
    """
    if spec.is_leaf():
        return [pytree]
    if spec.kind in (list, tuple) and isinstance(pytree, (list, tuple)):
        children = list(pytree)
    elif isinstance(pytree, dict):
        children = [pytree[key] for key in spec.keys]
    else:
        children = _parts(pytree)[2]
    return [leaf for child, s in zip(children, spec.children) for leaf in tree_flatten_spec(child, s, exact_structural_match)]
