"""Structures of trees as text, in PyTorch's form (protocol 1), so that either library reads what the other wrote."""
from __future__ import annotations

import importlib
import json
from collections import OrderedDict, defaultdict, deque, namedtuple

from ..core.shape import Size
from . import _pytree as tree

_names = {dict: "builtins.dict", list: "builtins.list", tuple: "builtins.tuple", OrderedDict: "collections.OrderedDict",
          defaultdict: "collections.defaultdict", deque: "collections.deque", namedtuple: "collections.namedtuple", Size: "torch.Size"}
_contexts = {}              # class -> functions from its context to what JSON can hold, and back
_tuples = {}                # class of named tuples -> its name in files


def name_class(cls, name, to_dumpable, from_dumpable):
    """Remember how a registered class is written."""
    if name is not None:
        _names[cls], _contexts[cls] = name, (to_dumpable or json.dumps, from_dumpable or json.loads)


def _register_namedtuple(cls, *, serialized_type_name):
    """Let structures with this class of named tuples be written, under a name.

    Example:
        >>> from collections import namedtuple
        >>> clnn.utils._pytree._register_namedtuple(namedtuple("Pair", "a b"), serialized_type_name="example.Pair")
    """
    _tuples[cls] = serialized_type_name


def _to_json(spec):
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    cls, context = spec.type, spec.context
    if cls not in _names:
        raise NotImplementedError(f"No registered serialization name for {cls} found. Please update your _register_pytree_node call with a "
                                  "`serialized_type_name` kwarg.")
    if cls is namedtuple:
        if context not in _tuples:
            raise NotImplementedError(f"Can't serialize TreeSpec of namedtuple class {context} because we didn't register a serializated_type_name. Please "
                                      "register using `_register_namedtuple`.")
        context = _tuples[context]
    elif cls is defaultdict:
        made, keys = context
        context = {"default_factory_module": made.__module__, "default_factory_name": made.__qualname__, "dict_context": keys}
    else:
        try:
            context = _contexts.get(cls, (json.dumps,))[0](context)
        except TypeError as exc:
            raise TypeError("Unable to serialize context. Please make the context json dump-able, or register a custom serializer using "
                            "_register_pytree_node.") from exc
    return {"type": _names[cls], "context": context, "children_spec": [_to_json(child) for child in spec.children_specs]}


def _from_json(made):
    if made["type"] is None:
        return tree.LEAF
    classes = {name: cls for cls, name in _names.items()}
    if made["type"] not in classes:
        raise NotImplementedError(f"Deserializing {made['type']} in pytree is not registered.")
    cls, context, children = classes[made["type"]], made["context"], tuple(map(_from_json, made["children_spec"]))
    if cls is namedtuple:
        kinds = {name: kind for kind, name in _tuples.items()}
        if context not in kinds:
            raise NotImplementedError(f"Can't deserialize TreeSpec of namedtuple class {context} because we couldn't find a serializated name.")
        kind = kinds[context]
        return tree.TreeSpec(kind, *_as_made(kind(*range(len(children))), children))
    if cls is defaultdict:
        factory = getattr(importlib.import_module(context["default_factory_module"]), context["default_factory_name"])
        return tree.TreeSpec(cls, [factory, context["dict_context"]], children)
    context = _contexts.get(cls, (None, json.loads))[1](context)
    if cls in (dict, OrderedDict):
        return tree.TreeSpec(cls, *_as_made(cls.fromkeys(context), children))
    return tree.TreeSpec(cls, context, children)


def _as_made(example, children):
    """(what a structure keeps beside its children, the children) of an object like those that were taken apart."""
    return tree.tree_flatten(example)[1].keys, children


def treespec_dumps(treespec, protocol=None):
    """A structure as a line of JSON.

    Example:
        >>> text = clnn.utils._pytree.treespec_dumps(clnn.utils._pytree.tree_structure([1, 2]))
        >>> clnn.utils._pytree.treespec_loads(text).num_leaves
        2
    """
    if not isinstance(treespec, tree.TreeSpec):
        raise TypeError(f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}.")
    if protocol not in (None, 1):
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return json.dumps((1, _to_json(treespec)))


def treespec_loads(serialized):
    """The structure that :func:`treespec_dumps` wrote, ours or PyTorch's."""
    protocol, made = json.loads(serialized)
    if protocol != 1:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return _from_json(made)
