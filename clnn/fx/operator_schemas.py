"""Arguments of calls in graphs, by the names and with the defaults that the functions declare."""
from __future__ import annotations

import inspect
from typing import NamedTuple

from clnn._schemas import MISSING, _literal
from clnn._tensor import worded
from clnn._tensor.spelt import _functions
from clnn._tensor.tensor import Tensor

__all__ = ["ArgsKwargsPair", "normalize_function", "normalize_module"]


class ArgsKwargsPair(NamedTuple):
    """What :func:`normalize_function` gives: values by position and by name."""

    args: tuple
    kwargs: dict


def _pair(names, defaults, args, kwargs, only_kwargs):
    """The call in order, each further argument by name; None where it does not fit."""
    if len(args) > len(names) or any([k not in names[len(args):] for k in kwargs]):
        return None
    values = dict(zip(names, args), **kwargs)
    if any([n not in values and defaults[n] is MISSING for n in names]):
        return None
    given = 0 if only_kwargs else len(args)
    return ArgsKwargsPair(tuple(args[:given]), {n: values.get(n, defaults[n]) for n in names[given:]})


def _of_signature(fn, args, kwargs, only_kwargs):
    parameters = inspect.signature(inspect.unwrap(fn)).parameters
    if any([p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) for p in parameters.values()]):
        return None
    defaults = {n: MISSING if p.default is p.empty else p.default for n, p in parameters.items()}
    return _pair(list(defaults), defaults, args, kwargs, only_kwargs)


def _suits(form, types):
    """Whether tensors are where the form has them."""
    return all([p.kind == "Tensors" or (p.kind == "Tensor") is (isinstance(t, type) and issubclass(t, Tensor)) for p, t in zip(form, types)])


def normalize_function(target, args, kwargs=None, arg_types=None, kwarg_types=None, normalize_to_only_use_kwargs=False):
    """The arguments of a call of ``target``, with defaults filled in, those that were given by position in their places unless all are wanted by name.

    Returns None where the function's signature is not known, or does not fit. Raises RuntimeError where several of its forms fit and ``arg_types`` do not tell.

    Example::

        >>> from clnn.fx.operator_schemas import normalize_function
        >>> normalize_function(clnn.cat, ([1, 2],), normalize_to_only_use_kwargs=True).kwargs
        {'tensors': [1, 2], 'dim': 0}
    """
    kwargs = kwargs or {}
    try:
        told = _functions().get(target)
    except TypeError:
        return None
    if told is not None and not getattr(target, "__module__", "").endswith("clnn"):
        first, others, _ = told
        return _pair([*first, *others], {**dict.fromkeys(first, MISSING), **others}, args, kwargs, normalize_to_only_use_kwargs)
    name = getattr(target, "__name__", "")
    forms = worded.forms(name, False) if getattr(target, "__module__", "").partition(".")[0] == "clnn" else ()
    if not forms:
        return _of_signature(target, args, kwargs, normalize_to_only_use_kwargs) if inspect.isfunction(target) else None
    fitting = []
    for form in forms:
        form = [p for p in form if p.name != "out"]
        defaults = {p.name: MISSING if p.default is None else _literal(p.default) for p in form}
        got = _pair(list(defaults), defaults, args, kwargs, normalize_to_only_use_kwargs)
        if got is not None and (arg_types is None or _suits(form, arg_types)):
            fitting.append(got)
    if len(fitting) > 1:
        raise RuntimeError(f"Tried to normalize arguments to {name} but the schema match was ambiguous! Please provide argument types to the "
                           f"normalize_arguments() call. Available schemas:\n" + "\n".join(map(worded._text, forms)))
    return fitting[0] if fitting else None


def normalize_module(root, target, args, kwargs=None, normalize_to_only_use_kwargs=False):
    """The same for a call of the submodule ``target`` of ``root``, where it is one of ``clnn.nn``; else None."""
    from clnn import nn
    module = root.get_submodule(target)
    if getattr(nn, type(module).__name__, None) is not type(module):
        return None
    got = _of_signature(type(module).forward, (None, *args), kwargs or {}, normalize_to_only_use_kwargs)
    if got is None:
        return None
    return ArgsKwargsPair(got.args[1:], {k: v for k, v in got.kwargs.items() if k != "self"})
