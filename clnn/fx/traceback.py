"""What the nodes of a graph that is being traced are told besides their operators: annotations of parts of the program."""
from __future__ import annotations

import contextlib
import copy
import functools
import traceback

__all__ = ["annotate", "annotate_fn", "format_stack", "get_current_meta", "has_preserved_node_meta", "preserve_node_meta", "set_current_meta",
           "set_stack_trace"]

current_meta: dict = {}
should_preserve_node_meta = False
_COPIED = ("custom", "nn_module_stack", "source_fn_stack", "stack_trace")


@contextlib.contextmanager
def annotate(annotation_dict):
    """In the block, nodes get these entries in ``node.meta["custom"]`` where :func:`preserve_node_meta` is on.

    Example::

        >>> from clnn.fx import traceback
        >>> def f(x):
        ...     with traceback.annotate({"stage": 1}):
        ...         return x.sin()
        >>> with traceback.preserve_node_meta():
        ...     graph = clnn.fx.symbolic_trace(f).graph
        >>> graph.find_nodes(op="call_method")[0].meta["custom"]
        {'stage': 1}
    """
    meta, before = current_meta, current_meta.get("custom")
    meta["custom"] = {**(before or {}), **dict(annotation_dict)}
    try:
        yield
    finally:
        if before is None:
            del meta["custom"]
        else:
            meta["custom"] = before


def annotate_fn(annotation_dict):
    """A decorator: :func:`annotate` for all of a function."""
    def decorator(func):
        @functools.wraps(func)
        def wrapper(*args, **kwargs):
            with annotate(annotation_dict):
                return func(*args, **kwargs)
        return wrapper
    return decorator


@contextlib.contextmanager
def preserve_node_meta(enable=True):
    """In the block, nodes that are traced get what is known of the present place in the program, or, with False, do not."""
    global should_preserve_node_meta, current_meta
    before = should_preserve_node_meta, current_meta.copy()
    should_preserve_node_meta = enable
    try:
        yield
    finally:
        should_preserve_node_meta, current_meta = before


def has_preserved_node_meta() -> bool:
    """Whether nodes get it."""
    return should_preserve_node_meta


def get_current_meta() -> dict:
    """What nodes get."""
    return current_meta


@contextlib.contextmanager
def set_current_meta(node, pass_name=""):
    """In the block, nodes get what ``node`` has: those that replace it in a pass."""
    global current_meta
    before = current_meta
    if should_preserve_node_meta and node.meta:
        current_meta = node.meta.copy()
    try:
        yield
    finally:
        current_meta = before


def set_stack_trace(stack):
    """Let nodes have this stack, a list of texts; an empty one for none."""
    if should_preserve_node_meta:
        current_meta.pop("stack_trace", None)
        if stack:
            current_meta["stack_trace"] = "".join(stack)


def format_stack() -> list:
    """The stack that nodes get, or that of the program."""
    return [current_meta.get("stack_trace", "")] if should_preserve_node_meta else traceback.format_list(traceback.extract_stack()[:-1])


def tell(node):
    """Give ``node``, which was just traced, what is known."""
    if should_preserve_node_meta:
        node.meta.update({name: copy.copy(current_meta[name]) for name in _COPIED if name in current_meta})
    return node
