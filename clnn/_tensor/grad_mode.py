"""Whether operators record a tape: ``no_grad``, ``enable_grad``, ``set_grad_enabled``, ``inference_mode``."""
from __future__ import annotations

import functools
import inspect
import threading
import warnings

from ..core.config import config
from ..graph import node


class _State(threading.local):
    grad = True           # whether operators are recorded; None within an operator's body, where views are nothing that a program sees
    inference = False
    claimed = False       # what ``is_grad_enabled`` says in inference mode, where nothing is recorded whatever blocks inside ask for
    anomaly_check = True
    autocast = None       # set by clnn.amp: an object with .low (dtype)
    pushing = False       # a walk over the tape that only serves to be differentiated (clnn.autograd.forward_ad)
    task = None           # the walk over the tape that is under way (clnn._tensor.tape.Task)
    watched = False       # whether entries of the tape are made with more than they need themselves: for anomaly mode or for saved_tensors_hooks
    overwritten = None    # the memory that an in-place operator is about to write: saved_tensors_hooks get its present value (clnn._tensor.inplace)
    _anomaly, _saved_hooks = False, ()

    @property
    def anomaly(self):
        return self._anomaly

    @anomaly.setter
    def anomaly(self, mode):
        self._anomaly, self.watched = mode, bool(mode or self._saved_hooks)

    @property
    def saved_hooks(self):
        """(pack, unpack) pairs of saved_tensors_hooks."""
        return self._saved_hooks

    @saved_hooks.setter
    def saved_hooks(self, hooks):
        self._saved_hooks, self.watched = hooks, bool(hooks or self._anomaly)


state = _State()


def is_grad_enabled() -> bool:
    """True while operators record what backward needs.

    Example:
        >>> with clnn.no_grad():
        ...     print(clnn.is_grad_enabled())
        False
    """
    return bool(state.grad) or state.inference and state.claimed


def _switch(wanted):
    """Record from now on, or not. What :func:`_back` needs to undo it."""
    before = state.grad, state.claimed
    if state.inference:
        state.claimed = wanted
    else:
        state.grad = wanted
    return before


def _back(before):
    state.grad, state.claimed = before


def is_inference_mode_enabled() -> bool:
    """Whether the code runs inside :class:`inference_mode`.

    Example:
        >>> with clnn.inference_mode():
        ...     print(clnn.is_inference_mode_enabled())
        True
    """
    return state.inference


class _Mode:
    """Context manager and decorator (also of generator functions) around a thread-local switch."""

    def __call__(self, fn):
        if inspect.isclass(fn):
            warnings.warn("Decorating classes is deprecated and will be disabled in future versions. You should only decorate functions or methods; "
                          "to keep what happens now, decorate the `__init__` method and nothing else.", FutureWarning, stacklevel=2)
            made = fn

            def fn(*args, **kwargs):
                return made(*args, **kwargs)
        if inspect.isgeneratorfunction(fn):
            @functools.wraps(fn)
            def generator(*args, **kwargs):
                gen = fn(*args, **kwargs)
                step, value = gen.send, None
                try:
                    while True:
                        with self.clone():
                            try:
                                item = step(value)
                            except StopIteration as stop:
                                return stop.value
                        try:
                            step, value = gen.send, (yield item)
                        except GeneratorExit:
                            raise
                        except BaseException as e:              # thrown in from outside: the function may catch it
                            step, value = gen.throw, e
                finally:
                    with self.clone():
                        gen.close()
            return generator

        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            with self.clone():
                return fn(*args, **kwargs)
        return wrapper

    def clone(self):
        return type(self)()


class no_grad(_Mode):
    """Operators inside record nothing for backward.

    Example:
        >>> x = clnn.ones(2, requires_grad=True)
        >>> with clnn.no_grad():
        ...     y = x * 2
        >>> y.requires_grad
        False
    """

    def __new__(cls, fn=None):
        self = super().__new__(cls)
        return self(fn) if fn is not None else self

    def __enter__(self):
        self.prev = _switch(False)

    def __exit__(self, *exc):
        _back(self.prev)


class enable_grad(no_grad):
    """Operators inside record for backward again, also within ``no_grad``.

    Example:
        >>> x = clnn.ones(2, requires_grad=True)
        >>> with clnn.no_grad():
        ...     with clnn.enable_grad():
        ...         y = x * 2
        >>> y.requires_grad
        True
    """

    def __enter__(self):
        self.prev = _switch(True)


class set_grad_enabled(_Mode):
    """Switch recording on or off, as a function or for the length of a ``with`` block.

    Example:
        >>> x = clnn.ones(2, requires_grad=True)
        >>> with clnn.set_grad_enabled(False):
        ...     y = x * 2
        >>> y.requires_grad
        False
    """

    def __init__(self, mode: bool):
        if mode.__class__ is not bool:
            raise TypeError(f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not {type(mode).__name__}")
        self.prev, self.mode = _switch(mode), mode

    def __call__(self, fn):
        _back(self.prev)
        return super().__call__(fn)

    def __enter__(self):
        _switch(self.mode)

    def __exit__(self, *exc):
        _back(self.prev)

    def clone(self):
        return type(self)(self.mode)

    def __repr__(self):
        return f"{config.spoken}.autograd.grad_mode.set_grad_enabled(mode={self.mode})"


class inference_mode(_Mode):
    """Like ``no_grad``; tensors made inside can never be part of a graph.

    Example:
        >>> x = clnn.ones(2, requires_grad=True)
        >>> with clnn.inference_mode():
        ...     y = x * 2
        >>> y.requires_grad, y.is_inference()
        (False, True)
    """

    def __new__(cls, mode=True):
        self = super().__new__(cls)
        if callable(mode):
            self.mode = True
            return self(mode)
        return self

    def __init__(self, mode=True):
        self.mode = mode

    def clone(self):
        return type(self)(self.mode)

    def __enter__(self):
        self.prev = state.grad, state.claimed, state.inference
        state.grad, state.claimed, state.inference = not self.mode, False, bool(self.mode)      # without inference mode gradients are recorded, as outside of all modes
        _count(self.mode)

    def __exit__(self, *exc):
        state.grad, state.claimed, state.inference = self.prev
        _count(-self.mode)


_inside, _lock = 0, threading.Lock()        # how many threads and blocks are in inference mode


def _count(change):
    global _inside
    with _lock:
        _inside += change
        node.births = _first_version if _inside else None


def _first_version():
    """Of storages: so low that no counting makes it a number of an ordinary one."""
    return -1 << 60 if state.inference else 0
