"""The lists and dictionaries among a node's arguments: who changes one in place would leave the nodes' users wrong."""
from __future__ import annotations

from clnn.utils._pytree import register_pytree_node


def _no_mutation(self, *args, **kwargs):
    raise TypeError(f"{type(self).__name__!r} object does not support mutation. If you are attempting to modify the kwargs or args of a torch.fx.Node object,\n"
                    "instead create a new copy of it and assign the copy to the node:\n\n    new_args = ...  # copy and mutate args\n    node.args = new_args")


class immutable_list(list):                                     # noqa: N801
    """A list that stays as it is."""

    __delitem__ = __iadd__ = __imul__ = __setitem__ = append = clear = extend = insert = pop = remove = reverse = sort = _no_mutation

    def __hash__(self):
        return hash(tuple(self))

    def __reduce__(self):
        return type(self), (tuple(self),)


class immutable_dict(dict):                                     # noqa: N801
    """A dictionary that stays as it is."""

    __delitem__ = __ior__ = __setitem__ = clear = pop = popitem = setdefault = update = _no_mutation

    def __hash__(self):
        return hash(frozenset(self.items()))

    def __reduce__(self):
        return type(self), (tuple(self.items()),)


register_pytree_node(immutable_list, lambda v: (list(v), None), lambda leaves, _: immutable_list(leaves))
register_pytree_node(immutable_dict, lambda v: (list(v.values()), list(v)), lambda leaves, keys: immutable_dict(zip(keys, leaves)))

__all__ = ["immutable_dict", "immutable_list"]
