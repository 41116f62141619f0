"""``compile(fullgraph=True)``: Python whose way depends on values of tensors is refused, as PyTorch does, which has no one graph of it.

The methods by which a tensor becomes a Python value are other ones while such a function runs, so that calls elsewhere do not ask.
"""
from __future__ import annotations

import builtins
import dis
import functools
import os
import sys
import threading

import clnn

from ._dynamo_exc import Unsupported, UserError, UserErrorType
from ._tensor.tensor import Tensor
from .compiler import _here
from .core import dtype as dt
from .utils._pytree import tree_map

_FOLDER = os.path.dirname(__file__) + os.sep
_lock = threading.Lock()
_running = 0            # calls of such functions under way in all threads
_plain = {name: getattr(Tensor, name) for name in ("__bool__", "__repr__", "__float__", "__int__", "item", "backward", "tolist", "allclose", "equal")}


def _steps(frame):
    """The names of the instruction that a frame is at and of the two after it."""
    ops = [i.opname for i in dis.get_instructions(frame.f_code) if i.offset >= frame.f_lasti and i.opname not in ("CACHE", "NOP", "EXTENDED_ARG")]
    return (ops + ["", "", ""])[:3]


def _way(depth=2):
    """Whether the program's own code asks: ``"jump"``, ``"not"``, ``"call"`` (of ``bool``, ``all`` ...) or None; None also for an ``assert``."""
    frame = sys._getframe(depth)
    if not _here.full or frame.f_code.co_filename.startswith(_FOLDER):
        return None
    now, after, third = _steps(frame)
    if "JUMP" in now:
        return None if after in ("LOAD_ASSERTION_ERROR", "LOAD_COMMON_CONSTANT") else "jump"
    if now == "UNARY_NOT":
        return "not"
    if now == "TO_BOOL":                    # Python 3.13 has an instruction for it
        return "not" if after == "UNARY_NOT" else None if third in ("LOAD_ASSERTION_ERROR", "LOAD_COMMON_CONSTANT") else "jump"
    return "guard" if now.startswith("CALL") and "JUMP" in after else None


def _unsupported(what, explanation, hint):
    return Unsupported(f"{what}\n  Explanation: {explanation}\n  Hint: {hint}\n")


def _unguarded(expression, advice="Consider annotating your code using torch._check*(). "):
    return UserError(UserErrorType.ANTI_PATTERN, f"{advice}Could not guard on data-dependent expression {expression} (unhinted: {expression}).  "
                                                 "(Size-like symbols: none)")


def _bool(self):
    way = _way() if self._numel == 1 else None
    if way == "jump":
        raise _unsupported("Data-dependent branching", "Detected data-dependent branching (e.g. `if my_tensor.sum() > 0:`). Dynamo does not support tracing "
                           "dynamic control flow.", "Use `torch.cond` to express dynamic control flow.")
    if way is not None:
        raise _unguarded("Eq(u0, 1)") if way == "guard" else _unguarded("zuf0" if self.dtype.is_floating_point else "u0", "")
    return _plain["__bool__"](self)


def _no_text():
    return _unsupported("repr() on tensor", "Tensor repr requires actual runtime values which are not available during tracing.",
                        "It may be possible to write Dynamo tracing rules for this code.")


def _repr(self, **kwargs):
    frame = sys._getframe(1)
    if _here.full and not frame.f_code.co_filename.startswith(_FOLDER) and _steps(frame)[0].startswith("CALL"):
        raise _no_text()
    return _plain["__repr__"](self, **kwargs)


def _backward(self, *args, **kwargs):
    if _here.full:
        raise _unsupported("Unsupported Tensor.backward() call", "Dynamo currently does not support tracing `Tensor.backward()` when trace_autograd_ops is "
                           "off.", "Set torch._dynamo.trace_autograd_ops=True")
    return _plain["backward"](self, *args, **kwargs)


class _Condition(int):
    """What a comparison of a number gives that a graph knows at its run alone."""

    def __new__(cls, value, expression):
        self = int.__new__(cls, value)
        self.expression = expression
        return self

    def __bool__(self):
        if _way() is not None:
            raise _unguarded(self.expression)
        return int.__bool__(self)

    def __repr__(self):
        return repr(int.__bool__(self))


def _compared(base, name, sign):
    method = getattr(base, name)

    def compare(self, other):
        result = method(self, other)
        if result is NotImplemented or not _here.full or sys._getframe(1).f_code.co_filename.startswith(_FOLDER):
            return result
        symbol = "zuf0" if base is float else "u0"
        value = base(other)
        return _Condition(result, f"{sign}({symbol}, {value!r})" if sign in ("Eq", "Ne") else f"{symbol} {sign} {value!r}")
    return compare


def _kept(base, name):
    method = getattr(base, name)

    def compute(*args):
        result = method(*args)
        return _KINDS[type(result)](result) if type(result) in _KINDS else result
    return compute


def _kind(base):
    """Numbers of this kind that a graph knows at its run alone: they compute as any, and no branch may depend on them."""
    body = {name: _compared(base, name, sign) for name, sign in dict(__lt__="<", __le__="<=", __gt__=">", __ge__=">=", __eq__="Eq", __ne__="Ne").items()}
    body.update({f"__{name}__": _kept(base, f"__{name}__") for name in "add radd sub rsub mul rmul truediv rtruediv neg abs".split()})

    def truth(self):
        if _way() is not None:
            raise _unguarded("zuf0" if base is float else "u0")
        return base.__bool__(self)
    return type(base.__name__, (base,), {**body, "__bool__": truth, "__hash__": base.__hash__})


_KINDS = {kind: _kind(kind) for kind in (float, int)}


def _number(name):
    read = _plain[name]

    def number(self):
        value = read(self)
        known = not _here.full or sys._getframe(1).f_code.co_filename.startswith(_FOLDER)
        return value if known or type(value) not in _KINDS else _KINDS[type(value)](value)
    return number


def _asked():
    """Whether the program's own code calls, within such a function, what called this."""
    return _here.full and not sys._getframe(2).f_code.co_filename.startswith(_FOLDER)


def _tolist(self):
    if _asked() and self.dtype.category > dt.INT:
        raise _unsupported("Tensor.tolist() with non-integer tensor", "Dynamo currently does not support tracing `tolist()` on non-integer tensors.",
                           "Ensure the input tensor to `tolist()` is an integer type (e.g., int8, int16, int32, int64).")
    return _plain["tolist"](self)


def _print(*values, **kwargs):
    if _asked():
        if any(isinstance(v, Tensor) for v in values):
            raise _no_text()
        kinds = [type(v).__name__ for v in values]
        raise _unsupported("Failed to trace builtin operator", f"Dynamo does not know how to trace builtin operator `print` with argument types {kinds} "
                           f"(has_kwargs {bool(kwargs)})", f"Avoid calling builtin `print` with argument types {kinds}. Consider using an equivalent "
                           "alternative function/method to `print`.")
    return _FUNCTIONS[0][2](*values, **kwargs)


def _compares(name, method):
    def compare(*args, **kwargs):
        if _asked():
            raise _unsupported("Data dependent operator", f"Operator `aten.{name}.default` has a non-Tensor output whose value is dependent on the data of Tensor "
                               "inputs.", "Consider wrapping the operator into a PyTorch-understood custom operator (see "
                               "https://pytorch.org/tutorials/advanced/custom_ops_landing_page.html)")
        return method(*args, **kwargs)
    return functools.wraps(method)(compare)


_OTHER = {"__bool__": _bool, "__repr__": _repr, "item": _number("item"), "backward": _backward, "tolist": _tolist,
          **{name: _compares(name, _plain[name]) for name in ("allclose", "equal")}}
# The same in modules: (module, name, what it is, what it is while such a function runs).
_FUNCTIONS = [(builtins, "print", print, _print), *[(clnn, name, getattr(clnn, name), _compares(name, getattr(clnn, name))) for name in ("allclose", "equal")]]


def _change(step):
    global _running
    with _lock:
        before, _running = _running, _running + step
        if not before or not _running:
            for name, method in (_OTHER if _running else _plain).items():
                setattr(Tensor, name, method)
            for module, name, plain, other in _FUNCTIONS:
                if getattr(module, name) is (plain if _running else other):         # a program may have put its own there
                    setattr(module, name, other if _running else plain)


def _told(value):
    return value.__class__.__base__(value) if value.__class__ in (_KINDS[float], _KINDS[int]) else bool(value) if value.__class__ is _Condition else value


def refusing(fn):
    """``fn``, which raises where its way through Python depends on values of tensors."""
    @functools.wraps(fn) if hasattr(fn, "__name__") else lambda f: f
    def run(*args, **kwargs):
        _change(1)
        _here.full += 1
        try:
            result = fn(*args, **kwargs)
            return result if isinstance(result, Tensor) else tree_map(_told, result)
        finally:
            _here.full -= 1
            _change(-1)
    return run


def graph_break(msg=None):
    """Refuse a break that the program asks for."""
    if _here.full:
        raise _unsupported("Call to `torch._dynamo.graph_break()`", f"User-inserted graph break. Message: {msg}", "Remove the `torch._dynamo.graph_break()` call.")
