"""Types and decorators for scripted functions that programs import from ``torch._jit_internal``."""
from __future__ import annotations

from typing import Any, Callable, Dict, Final, List, Optional, Tuple, Union  # noqa: F401

from ._jit_annotations import (  # noqa: F401
    BroadcastingList1, BroadcastingList2, BroadcastingList3, BroadcastingList4, BroadcastingList5, BroadcastingList6)
from .futures import Future  # noqa: F401
from .jit import export, ignore, is_scripting, unused  # noqa: F401


def boolean_dispatch(arg_name, arg_index, default, if_true, if_false, module_name, func_name):
    """A function that calls ``if_true`` or ``if_false`` by the argument of that name or place."""
    def fn(*args, **kwargs):
        chosen = kwargs[arg_name] if arg_name in kwargs else args[arg_index] if arg_index < len(args) else default
        return (if_true if chosen else if_false)(*args, **kwargs)
    fn.__doc__ = if_true.__doc__ or if_false.__doc__
    if func_name is not None:
        fn.__name__ = func_name
    if module_name is not None:
        fn.__module__ = module_name
    return fn


def _same(fn):
    return fn


_overload = _overload_method = weak_script = weak_module = weak_script_method = _copy_to_script_wrapper = _same
