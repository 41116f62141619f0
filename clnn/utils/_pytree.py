"""Nested tuples, lists and dictionaries: taken apart into leaves and put together again."""
from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any, NamedTuple

from ..core.shape import Size


class _LEAF:
    """The kind of a leaf; a class, as copies and pickles of a class are that class."""


class TreeSpec:
    """The structure of a tree without its leaves."""

    __slots__ = ("kind", "keys", "children")

    def __init__(self, kind, keys, children):
        self.kind, self.keys, self.children = kind, keys, children

    type = property(lambda self: namedtuple if hasattr(self.kind, "_fields") else None if self.kind is _LEAF else self.kind)
    context = property(lambda self: self.kind if hasattr(self.kind, "_fields") else list(self.keys) if self._mapping() else self.keys)
    children_specs = property(lambda self: list(self.children))
    num_children = property(lambda self: len(self.children))
    num_leaves = property(lambda self: 1 if self.kind is _LEAF else sum(c.num_leaves for c in self.children))
    num_nodes = property(lambda self: 1 + sum(c.num_nodes for c in self.children))

    def _mapping(self):
        return self.kind in (dict, OrderedDict)

    def is_leaf(self):
        """Whether this is the structure of a leaf."""
        return self.kind is _LEAF

    def child(self, index):
        """The structure of one child."""
        return self.children[index]

    def unflatten(self, leaves):
        """The tree with these leaves."""
        return tree_unflatten(leaves, self)

    def flatten_up_to(self, tree):
        """What stands in a tree in the places of the leaves."""
        return _aligned(tree, self)

    def __hash__(self):
        return hash((id(self.kind), self.children))

    def __eq__(self, other):
        return isinstance(other, TreeSpec) and (self.kind, self.keys, self.children) == (other.kind, other.keys, other.children)

    def __repr__(self, indent=0):
        if self.kind is _LEAF:
            return "*"
        parts = (",\n" + " " * (indent + 2)).join([child.__repr__(indent + 2) for child in self.children])
        return f"TreeSpec({self.type.__name__}, {self.context}, [{parts}])"


def _namedtuple_flatten(d):
    return list(d), type(d)


def _namedtuple_unflatten(values, context):
    return context(*values)


class LeafSpec(TreeSpec):
    """The structure of a leaf."""

    __slots__ = ()

    def __init__(self):
        super().__init__(_LEAF, None, ())


LEAF = LeafSpec()
PyTreeSpec = TreeSpec
PyTree = Context = Any


def _dict_flatten(d):
    return list(d.values()), list(d)


def _dict_unflatten(values, context):
    return dict(zip(context, values))


def _dict_flatten_with_keys(d):
    return [(MappingKey(k), v) for k, v in d.items()], list(d)


def _list_flatten(d):
    return list(d), None


def _list_unflatten(values, context):
    return list(values)


def _list_flatten_with_keys(d):
    return [(SequenceKey(i), v) for i, v in enumerate(d)], None


_registered = {             # class -> (how it is taken apart, how it is put together, how it is taken apart with the steps to the parts)
    defaultdict: (lambda d: (list(d.values()), [d.default_factory, list(d)]), lambda parts, how: defaultdict(how[0], zip(how[1], parts)),
                  _dict_flatten_with_keys),
    deque: (lambda d: (list(d), d.maxlen), deque, _list_flatten_with_keys),
    Size: (_list_flatten, lambda parts, _: tuple(parts), _list_flatten_with_keys),
}


def register_pytree_node(cls, flatten_fn, unflatten_fn, *, serialized_type_name=None, to_dumpable_context=None, from_dumpable_context=None,
                         flatten_with_keys_fn=None):
    """Take objects of class ``cls`` apart in trees, which are leaves otherwise.

    Args:
        flatten_fn: of an object, its parts and whatever else it takes to make one.
        unflatten_fn: of parts and that, the object.
        flatten_with_keys_fn: as ``flatten_fn``, with pairs of a step (as :class:`GetAttrKey`) and a part.

    Raises:
        ValueError: the class is known already.

    Example:
        >>> class Pair:
        ...     def __init__(self, a, b):
        ...         self.a, self.b = a, b
        >>> clnn.utils._pytree.register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda parts, _: Pair(*parts))
        >>> clnn.utils._pytree.tree_leaves([Pair(1, [2]), 3])
        [1, 2, 3]
    """
    if cls in _registered or cls in (dict, OrderedDict, list, tuple):
        raise ValueError(f"{cls} is already registered as pytree node.")
    _registered[cls] = flatten_fn, unflatten_fn, flatten_with_keys_fn
    name_class(cls, serialized_type_name, to_dumpable_context, from_dumpable_context)
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)


def register_constant(cls):
    """Take objects of class ``cls`` as part of a tree's structure, which has no leaves for them; structures are equal where the objects are.

    Example:
        >>> class Setting(str): pass
        >>> clnn.utils._pytree.register_constant(Setting)
        >>> clnn.utils._pytree.tree_leaves([Setting("fast"), 3])
        [3]
    """
    for slot in ("__eq__", "__hash__"):
        if getattr(cls, slot) is (object.__eq__ if slot == "__eq__" else None):
            raise TypeError(f"register_constant(cls) expects `cls` to have a non-default `{slot}` implementation.")
    register_pytree_node(cls, lambda value: ([], value), lambda parts, value: value, flatten_with_keys_fn=lambda value: ([], value))


_register_pytree_node = register_pytree_node


def register_dataclass(cls, *, field_names=None, drop_field_names=None, serialized_type_name=None):
    """Take objects of a dataclass apart into their fields.

    Example:
        >>> import dataclasses
        >>> @dataclasses.dataclass
        ... class Point:
        ...     x: int
        ...     y: int
        >>> clnn.utils._pytree.register_dataclass(Point)
        >>> clnn.utils._pytree.tree_map(lambda v: v + 1, Point(1, 2))
        Point(x=2, y=3)
    """
    names = [f.name for f in dataclasses.fields(cls)] if field_names is None else list(field_names)
    names = [name for name in names if name not in (drop_field_names or ())]
    register_pytree_node(cls, lambda obj: ([getattr(obj, name) for name in names], None), lambda parts, _: cls(**dict(zip(names, parts))),
                         flatten_with_keys_fn=lambda obj: ([(GetAttrKey(name), getattr(obj, name)) for name in names], None))


def is_namedtuple_class(cls):
    """Whether objects of a class are named tuples."""
    return isinstance(cls, type) and issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple)


def is_namedtuple_instance(obj):
    """Whether an object is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj):
    """Whether an object, or a class, is one of named tuples."""
    return is_namedtuple_class(obj) or is_namedtuple_instance(obj)


def is_structseq_instance(obj):
    """Whether an object is one of the named sequences that Python makes of C structures, as ``time.localtime()`` gives."""
    return isinstance(obj, tuple) and type(obj).__bases__ == (tuple,) and all(
        isinstance(getattr(type(obj), name, None), int) for name in ("n_fields", "n_sequence_fields", "n_unnamed_fields"))


class NodeDef(NamedTuple):
    """How nodes of a class are taken apart and put together."""

    type: type
    flatten_fn: Any
    unflatten_fn: Any
    flatten_with_keys_fn: Any = None


SUPPORTED_NODES = {             # class -> NodeDef; named tuples go by the function that makes their classes
    dict: NodeDef(dict, _dict_flatten, _dict_unflatten, _dict_flatten_with_keys), list: NodeDef(list, _list_flatten, _list_unflatten, _list_flatten_with_keys),
    tuple: NodeDef(tuple, _list_flatten, lambda values, context: tuple(values), _list_flatten_with_keys),
    OrderedDict: NodeDef(OrderedDict, _dict_flatten, lambda values, context: OrderedDict(zip(context, values)), _dict_flatten_with_keys),
    namedtuple: NodeDef(namedtuple, _namedtuple_flatten, _namedtuple_unflatten),
    **{cls: NodeDef(cls, *fns) for cls, fns in _registered.items()}}


def _get_node_type(tree):
    """The class by which a node is in :data:`SUPPORTED_NODES`."""
    return namedtuple if isinstance(tree, tuple) and hasattr(tree, "_fields") else type(tree)


def _parts(value):
    """(kind, keys, children) of a node, or None of a leaf. What is not of one of these very classes is a leaf, but for named tuples."""
    kind = type(value)
    if kind is dict or kind is OrderedDict:
        return kind, tuple(value), list(value.values())
    if kind is list or kind is tuple or isinstance(value, tuple) and hasattr(kind, "_fields"):
        return kind, None, list(value)
    if kind in _registered:
        children, context = _registered[kind][0](value)
        return kind, context, list(children)
    return None


def tree_flatten(tree, is_leaf=None):
    """(list of leaves, structure); what ``is_leaf`` is true of is not taken apart."""
    parts = None if is_leaf is not None and is_leaf(tree) else _parts(tree)
    if parts is None:
        return [tree], LEAF
    leaves, specs = [], []
    for child in parts[2]:
        got, spec = tree_flatten(child, is_leaf)
        leaves += got
        specs.append(spec)
    return leaves, TreeSpec(parts[0], parts[1], tuple(specs))


def tree_unflatten(leaves, treespec):
    """The tree of a structure with these leaves."""
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a pytree that holds {treespec.num_leaves} items "
                         f"({treespec}).")
    return _build(iter(leaves), treespec)


def _build(leaves, spec):
    if spec.kind is _LEAF:
        return next(leaves)
    children = [_build(leaves, c) for c in spec.children]
    if spec.kind is namedtuple:
        return spec.keys(*children)
    if spec.kind in _registered:
        return _registered[spec.kind][1](children, spec.keys)
    if issubclass(spec.kind, dict):
        return spec.kind(zip(spec.keys, children))
    return spec.kind(*children) if hasattr(spec.kind, "_fields") else spec.kind(children)


_MAPPINGS = dict, OrderedDict, defaultdict           # may stand for one another


def _aligned(tree, spec):
    """What stands in ``tree`` in the places of the leaves of ``spec``: it may go deeper there."""
    if spec.kind is _LEAF:
        return [tree]
    parts, kind, mapping = _parts(tree), _get_node_type(tree), spec.kind in _MAPPINGS and type(tree) in _MAPPINGS
    if parts is None or kind is not spec.type and not mapping:
        raise ValueError(f"Node type mismatch; expected {spec.type!r}, but got {kind!r}.")
    if len(parts[2]) != len(spec.children):
        raise ValueError(f"Node arity mismatch; expected {len(spec.children)}, but got {len(parts[2])}.")
    keys = (spec.keys[1] if spec.kind is defaultdict else spec.keys) if mapping else ()
    missing, extra = set(keys) - set(tree if mapping else ()), set(tree if mapping else ()) - set(keys)
    if missing or extra:
        raise ValueError("Node keys mismatch" + (f"; missing key(s): {missing}" if missing else "") + (f"; extra key(s): {extra}" if extra else "") + ".")
    children = [tree[k] for k in keys] if mapping else parts[2]
    return [leaf for child, s in zip(children, spec.children) for leaf in _aligned(child, s)]


def tree_leaves(tree, is_leaf=None):
    """The leaves, left to right."""
    return tree_flatten(tree, is_leaf)[0]


def tree_map(func, tree, *rests, is_leaf=None):
    """``func`` of each leaf (and of what stands in its place in the trees of ``rests``), in the same structure."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return tree_unflatten([func(*row) for row in zip(leaves, *[_aligned(r, spec) for r in rests])], spec)


class SequenceKey(NamedTuple):
    """A step into a list or tuple."""

    idx: int

    def __str__(self):
        return f"[{self.idx!r}]"

    def get(self, sequence):
        return sequence[self.idx]


class MappingKey(NamedTuple):
    """A step into a dictionary."""

    key: object

    def __str__(self):
        return f"[{self.key!r}]"

    def get(self, mapping):
        return mapping[self.key]


class GetAttrKey(NamedTuple):
    """A step into a named tuple."""

    name: str

    def __str__(self):
        return f".{self.name}"

    def get(self, obj):
        return getattr(obj, self.name)


def _steps(tree, parts):
    """One key per child of a node."""
    kind, keys, children = parts
    if kind in _registered:
        return [step for step, _ in _registered[kind][2](tree)[0]] if _registered[kind][2] else [SequenceKey(i) for i in range(len(children))]
    if keys is not None:
        return [MappingKey(k) for k in keys]
    return [GetAttrKey(f) for f in kind._fields] if hasattr(kind, "_fields") else [SequenceKey(i) for i in range(len(children))]


def tree_leaves_with_path(tree, is_leaf=None):
    """``(path, leaf)`` of each leaf, the path being a tuple of keys."""
    parts = None if is_leaf is not None and is_leaf(tree) else _parts(tree)
    if parts is None:
        return [((), tree)]
    return [((step, *path), leaf) for step, child in zip(_steps(tree, parts), parts[2]) for path, leaf in tree_leaves_with_path(child, is_leaf)]


class _Star:
    def __repr__(self):
        return "*"


def treespec_pprint(treespec):
    """A structure as text, with stars in the place of leaves.

    Example:
        >>> from clnn.utils import _pytree
        >>> _pytree.treespec_pprint(_pytree.tree_flatten([1, {"a": 2}])[1])
        "[*, {'a': *}]"
    """
    return repr(tree_unflatten([_Star()] * treespec.num_leaves, treespec))


def tree_flatten_with_path(tree, is_leaf=None):
    """(list of ``(path, leaf)``, structure)."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func, tree, *rests, is_leaf=None):
    """``func(path, leaf, ...)`` of each leaf, in the same structure.

    Example:
        >>> clnn.utils._pytree.tree_map_with_path(lambda path, x: clnn.utils._pytree.keystr(path), {"a": [1, 2]})
        {'a': ["['a'][0]", "['a'][1]"]}
    """
    leaves, spec = tree_flatten_with_path(tree, is_leaf)
    return tree_unflatten([func(path, *row) for (path, *row) in zip(*zip(*leaves), *[_aligned(r, spec) for r in rests])] if leaves else [], spec)


def keystr(kp):
    """A path as text: ``['layers'][0].weight``."""
    return "".join(map(str, kp))


def key_get(obj, kp):
    """What a path leads to."""
    for key in kp:
        obj = key.get(obj)
    return obj


def tree_is_leaf(tree, is_leaf=None):
    """Whether this is a leaf and no node."""
    return is_leaf is not None and is_leaf(tree) or _parts(tree) is None


def tree_structure(tree, is_leaf=None):
    """The structure."""
    return tree_flatten(tree, is_leaf)[1]


tree_iter = tree_leaves


def tree_map_(func, tree, *rests, is_leaf=None):
    """Call ``func`` on each leaf; the tree itself."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def _only(types):
    return types if callable(types) and not isinstance(types, type) else lambda leaf: isinstance(leaf, types)


def tree_map_only(type_or_types_or_pred, func, tree, is_leaf=None):
    """``func`` of the leaves of a type (several, or those that a question is true of), the others as they are."""
    asked = _only(type_or_types_or_pred)
    return tree_map(lambda leaf: func(leaf) if asked(leaf) else leaf, tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred, func, tree, is_leaf=None):
    """Call ``func`` on the leaves of a type; the tree itself."""
    tree_map_only(type_or_types_or_pred, func, tree, is_leaf)
    return tree


def arg_tree_leaves(*args, **kwargs):
    """The leaves of the arguments of a call."""
    return tree_leaves((args, kwargs))


def tree_any(pred, tree, is_leaf=None):
    """Whether ``pred`` is true of a leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all(pred, tree, is_leaf=None):
    """Whether ``pred`` is true of all leaves."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any_only(type_or_types, pred, tree, is_leaf=None):
    """Whether ``pred`` is true of a leaf of the type."""
    return any(map(pred, filter(_only(type_or_types), tree_leaves(tree, is_leaf))))


def tree_all_only(type_or_types, pred, tree, is_leaf=None):
    """Whether ``pred`` is true of all leaves of the type."""
    return all(map(pred, filter(_only(type_or_types), tree_leaves(tree, is_leaf))))


def broadcast_prefix(prefix, spec):
    """One value of ``prefix`` per leaf of ``spec``; a leaf of the prefix serves all leaves below it. None when they do not fit."""
    if spec.kind is _LEAF:
        return [prefix]
    parts = _parts(prefix)
    if parts is None:
        return [prefix] * spec.num_leaves
    if parts[0] is not spec.kind and not (issubclass(parts[0], (tuple, list)) and issubclass(spec.kind, parts[0])):
        return None
    if parts[1] != spec.keys or len(parts[2]) != len(spec.children):
        return None
    out = []
    for child, inner in zip(parts[2], spec.children):
        got = broadcast_prefix(child, inner)
        if got is None:
            return None
        out += got
    return out


from ._treespecs import _register_namedtuple, name_class, treespec_dumps, treespec_loads  # noqa: E402,F401  (needs the classes above)
