"""Functions taken over by classes and modes (``__torch_function__``), as in ``torch.overrides``.

A class with a classmethod ``__torch_function__(cls, func, types, args=(), kwargs=None)`` is asked what public functions give for its instances, whether or
not it is a subclass of Tensor. A :class:`TorchFunctionMode` is asked for every call in its block. ``shape`` and ``dtype`` of plain tensors are not handed
to modes, nor are the questions that are class attributes (``is_sparse``, ``layout``).
"""
from __future__ import annotations

import functools
import inspect

from ._tensor import override as _override
from ._tensor.overridable import FACTORIES, FIXED, is_setting, namespaces
from ._tensor.override import local as _local
from ._tensor.override import overloaded as _overloaded
from ._tensor.tensor import Tensor
from .core.config import config

__all__ = ["BaseTorchFunctionMode", "TorchFunctionMode", "enable_reentrant_dispatch", "get_default_nowrap_functions", "get_ignored_functions",
           "get_overridable_functions", "get_testing_overrides", "handle_torch_function", "has_torch_function", "has_torch_function_unary",
           "has_torch_function_variadic", "is_tensor_like", "is_tensor_method_or_property", "redispatch_function", "redispatch_torch_function", "resolve_name",
           "wrap_torch_function"]

_override.activate()            # who imports this module means to take something over


def has_torch_function(relevant_args) -> bool:
    """Whether a call with these arguments is to be handed over: one of them has ``__torch_function__``, or a mode is active.

    Example:
        >>> clnn.overrides.has_torch_function((clnn.ones(1), 2))
        False
    """
    return not _override.passing() and _override.asked(tuple(relevant_args))


def has_torch_function_unary(obj) -> bool:
    """:func:`has_torch_function` for one argument."""
    return not _override.passing() and _override.asked((obj,))


def has_torch_function_variadic(*relevant_args) -> bool:
    """:func:`has_torch_function`, the arguments one by one."""
    return not _override.passing() and _override.asked(relevant_args)


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """What the mode or the first class that answers gives for ``public_api(*args, **kwargs)``.

    Args:
        public_api: the function that is called, as programs name it.
        relevant_args: those of its arguments that are asked.

    Raises:
        TypeError: all of them return NotImplemented.

    Example::

        >>> def double(x):
        ...     if clnn.overrides.has_torch_function_unary(x):
        ...         return clnn.overrides.handle_torch_function(double, (x,), x)
        ...     return x * 2
        >>> double(clnn.ones(1))
        tensor([2.])
    """
    return _override.hand_over(public_api, args, kwargs, _get_overloaded_args(relevant_args), True)


redispatch_torch_function = handle_torch_function


def redispatch_function(func, types, args, kwargs):
    """``func(*args, **kwargs)`` as if nobody took ``func`` over, for use in ``__torch_function__``: what a program's own function calls is handed over again.

    Example::

        >>> class Loud(clnn.overrides.TorchFunctionMode):
        ...     def __torch_function__(self, func, types, args=(), kwargs=None):
        ...         print(func.__name__)
        ...         with self:
        ...             return clnn.overrides.redispatch_function(func, types, args, kwargs)
        >>> def double(x):
        ...     if clnn.overrides.has_torch_function((x,)):
        ...         return clnn.overrides.handle_torch_function(double, (x,), x)
        ...     return x.exp()
        >>> x = clnn.zeros(1)
        >>> with Loud():
        ...     x = double(x)
        double
        exp
    """
    return _override.redispatched(func, args, kwargs or {})


def _get_overloaded_args(relevant_args, get_type_fn=None):
    """The arguments to ask: one of each class, subclasses before their bases."""
    return [] if _local.off else _overloaded(tuple(relevant_args))


def wrap_torch_function(dispatcher):
    """Let a function be taken over (decorator): ``dispatcher`` gets its arguments and returns those to ask."""
    def decorate(func):
        @functools.wraps(func)
        def wrapped(*args, **kwargs):
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)
        return wrapped
    return decorate


# -- which functions ----------------------------------------------------------------------------------------------------------------

@functools.lru_cache(None)
def _tables():
    """({owner: overridable functions}, ignored functions, {function: name})."""
    import clnn
    from clnn import functional as whole
    from clnn.nn import functional
    found, ignored, names = {}, set(), {}
    for owner, members in namespaces():
        place = ".".join([config.spoken, *(["Tensor"] if owner is Tensor else owner.__name__.split(".")[1:])])
        chosen = found.setdefault(owner, [])
        for name, f in members.items():
            if owner is not Tensor and name in FACTORIES:
                ignored.add(f)
                names.setdefault(f, f"{place}.{name}")
                continue
            for func, label in ((f.__get__, f"{name}.__get__"), (f.__set__, f"{name}.__set__")) if type(f) is property else ((f, name),):
                chosen.append(func)
                space, _, rest = label.partition("_")
                names.setdefault(func, f"{place}.{space}.{rest}" if owner is clnn and space in ("linalg", "special") else f"{place}.{label}")
                if owner is functional and name not in ("sigmoid", "tanh"):              # PyTorch's name of what the package has at its top level, too
                    names[func] = f"{place}.{label}"
    names.update({getattr(whole, name): f"{config.spoken}.functional.{name}" for name in whole._NAMES if getattr(whole, name) in names})
    for name in ("shape", "dtype"):
        func = getattr(Tensor, name).__get__
        found[Tensor].append(func)
        names[func] = f"{config.spoken}.Tensor.{name}.__get__"
    ignored.update(f for n, f in vars(clnn).items() if inspect.isfunction(f) and not n.startswith("_") and is_setting(n))
    ignored.update(vars(Tensor)[n] for n in FIXED if n in vars(Tensor))
    return found, ignored, names


def get_overridable_functions():
    """The functions that classes may take over: ``{module or class: [functions]}``."""
    return {owner: list(functions) for owner, functions in _tables()[0].items()}


def get_ignored_functions():
    """Functions that are never handed to a class; modes get those that make tensors."""
    return set(_tables()[1])


def get_testing_overrides():
    """For each overridable function, one of the same signature that returns -1.

    Example:
        >>> import inspect
        >>> inspect.signature(clnn.overrides.get_testing_overrides()[clnn.relu])
        <Signature (input, inplace=False)>
    """
    def stand_in(func):
        def dummy(*args, **kwargs):
            return -1
        try:
            dummy.__signature__ = inspect.signature(func)
        except (TypeError, ValueError):
            pass
        return dummy
    return {func: stand_in(func) for functions in _tables()[0].values() for func in functions}


def resolve_name(f):
    """The dotted name of a function that can be taken over, else None.

    Example::

        >>> clnn.overrides.resolve_name(clnn.Tensor.shape.__get__)
        'clnn.Tensor.shape.__get__'
    """
    if isinstance(f, str):
        return f
    try:
        return _tables()[2].get(f)
    except TypeError:
        return None


def is_tensor_method_or_property(func) -> bool:
    """Whether ``func`` is a member of ``Tensor``, as a class is told of it.

    Example:
        >>> clnn.overrides.is_tensor_method_or_property(clnn.Tensor.add)
        True
    """
    return func in _members() or getattr(func, "__name__", None) in ("__get__", "__set__", "__delete__")


@functools.lru_cache(None)
def _members():
    return frozenset(f for f in vars(Tensor).values() if inspect.isfunction(f))


def is_tensor_like(inp) -> bool:
    """Whether ``inp`` is a tensor or has ``__torch_function__``.

    Example:
        >>> clnn.overrides.is_tensor_like(clnn.ones(1)), clnn.overrides.is_tensor_like([1.0])
        (True, False)
    """
    return isinstance(inp, Tensor) or hasattr(inp, "__torch_function__")


def get_default_nowrap_functions():
    """Functions whose results ``Tensor.__torch_function__`` does not make instances of the subclass."""
    return set(_override._kept())


# -- modes --------------------------------------------------------------------------------------------------------------------------

class TorchFunctionMode:
    """A block in which every call of a public function is handed to ``__torch_function__`` of the mode, the innermost one first.

    Within it the mode is off, so that it may call the function itself.

    Example::

        >>> class Count(clnn.overrides.TorchFunctionMode):
        ...     calls = 0
        ...     def __torch_function__(self, func, types, args=(), kwargs=None):
        ...         self.calls += 1
        ...         return func(*args, **(kwargs or {}))
        >>> with Count() as count:
        ...     y = clnn.ones(2) + 1
        >>> count.calls
        2
    """

    def __init__(self):
        pass

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError

    def __enter__(self):
        _override.activate()
        _push_mode(self)
        return self

    def __exit__(self, exc_type, exc, trace):
        _pop_mode()

    @classmethod
    def push(cls, *args, **kwargs):
        """An instance; ``with`` enters it."""
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def _push_mode(mode):
    _local.modes = (*_local.modes, mode)


def _pop_mode():
    *rest, last = _local.modes
    _local.modes = tuple(rest)
    return last


def _get_current_function_mode():
    return _local.modes[-1] if _local.modes else None


def _get_current_function_mode_stack():
    return list(_local.modes)


class enable_reentrant_dispatch:
    """A block within ``__torch_function__`` in which classes and modes are asked again."""

    def __enter__(self):
        self.before, _local.off = _local.off, 0

    def __exit__(self, *exc):
        _local.off = self.before
