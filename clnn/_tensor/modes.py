"""Modes of ``__torch_dispatch__``: while one is entered, operators ask it instead of computing.

The question is written into the operators, in place, when a mode is entered, and taken out when the last one is left: no call asks for modes otherwise.
What the mode computes is recorded for gradients as anything else.
"""
from __future__ import annotations

import functools
import threading
from types import FunctionType

from ..core import native
from ..graph.op import REGISTRY
from . import override, repeat
from .grad_mode import no_grad
from .indexing import _part
from .rules import _alike
from .tensor import Tensor
from .writing import rebind, write
from .wrapped import _aten, _bound, changes, found, local

_FACTORIES = "arange empty empty_strided eye full linspace logspace ones rand randint randn randperm scalar_tensor zeros".split()
_SIZED = frozenset("empty ones rand randn zeros".split())        # their sizes may come one by one; operators of aten take a list
_LIKE = "empty_like full_like ones_like rand_like randint_like randn_like zeros_like".split()
_METHODS = dict(detach="detach", item="_local_scalar_dense", copy_="copy_", zero_="zero_", new_empty="new_empty", new_zeros="new_zeros", new_ones="new_ones",
                new_full="new_full")
_CASTS = dict(float="float32", double="float64", half="float16", bfloat16="bfloat16", long="int64", int="int32", short="int16", char="int8", byte="uint8",
              bool="bool")
_FILLS = dict.fromkeys("normal_ uniform_ exponential_ geometric_ cauchy_ log_normal_".split(), lambda args, kwargs: "default")     # with random numbers
_FILLS["random_"] = lambda args, kwargs: ("default", "to", "from")[min(len(args) - 1 + len(kwargs.keys() - {"generator"}), 2)]
_FILLS["bernoulli_"] = lambda args, kwargs: "Tensor" if isinstance((*args, kwargs.get("p"))[1], Tensor) else "float"
_DRAWS = dict(poisson=lambda args, kwargs: "default", normal=lambda args, kwargs: "_".join(
    ["Tensor" if isinstance(v, Tensor) else "float" for v in (*args, *[kwargs[k] for k in ("mean", "std") if k in kwargs], 1.0)[:2]]))
_lock = threading.Lock()
_entered, _recipes = [0], [True]
_undo: list = []
_shortcuts: list = []


def ask(func, args, kwargs, otherwise):
    """What the innermost mode makes of ``func``, with the mode left meanwhile; ``otherwise()`` where it answers NotImplemented."""
    modes = local.modes
    types = tuple([type(t) for t in found((*args, *kwargs.values()))])
    local.modes = modes[:-1]
    try:
        rule = func.rules.get(type(modes[-1]))
        got = rule(modes[-1], func, types, args, kwargs) if rule else modes[-1].__torch_dispatch__(func, types, args, kwargs)
        return otherwise() if got is NotImplemented else got
    finally:
        local.modes = modes


def push(mode):
    """Enter ``mode`` in this thread."""
    with _lock:
        if not _entered[0]:
            override.activate()                                 # so that its changes lie around these
            _install()
            repeat.on, _recipes[0] = False, repeat.on           # operators that are repeated from a recipe do not call those they are made of
        _entered[0] += 1
    local.modes = (*local.modes, mode)


def pop():
    """Leave the innermost mode."""
    local.modes = local.modes[:-1]
    with _lock:
        _entered[0] -= 1
        if not _entered[0]:
            repeat.on = _recipes[0]
            while _shortcuts:
                op, op.together = _shortcuts.pop()
            while _undo:
                fn, fn.__code__, fn.__defaults__, fn.__kwdefaults__ = _undo.pop()


def _put(fn, maker):
    """Have ``fn`` do what ``maker`` makes of the function that it was, and its method likewise."""
    for form in override.forms(fn):
        _put_one(form, maker)


def _put_one(fn, maker):
    if fn.__code__.co_filename == override.__file__ and isinstance(getattr(fn, "__wrapped__", None), FunctionType):
        fn = fn.__wrapped__                                     # inside of the question for __torch_function__
    inner = override.copied(fn)
    _undo.append((fn, fn.__code__, fn.__defaults__, fn.__kwdefaults__))
    fn.__code__, fn.__defaults__ = override._code(fn.__code__.co_freevars).replace(co_name=fn.__code__.co_name), None
    fn.__kwdefaults__ = {"_entry": maker(inner)}


def _install():
    from .. import _aten_calls as calls, _composites as composites
    from ..nn.modules import _chain, batchnorm
    from ..ops import multihead, splitting, views
    import clnn
    composites.places()                                         # reads signatures
    seen = set()
    for op in {id(op): op for op in REGISTRY.values()}.values():
        plain = getattr(op, "plain", None)
        if plain is None:
            continue
        if op.together is not None:                             # gradients by the operators that their rules are made of
            _shortcuts.append((op, op.together))
            op.together = None
        if op.kind != "composite":
            target = getattr(plain, "fast", plain)
            _put(target, functools.partial(_leaf, op))
        elif op.name in calls.EXPLICIT or op.name == "clone":
            _put(plain, functools.partial(_whole, op.name, calls.EXPLICIT.get(op.name, lambda args, kwargs: "default")))
        if op.inplace:
            for name in (op.name, *op.aliases):
                method = Tensor.__dict__.get(name + "_")
                if isinstance(method, FunctionType) and id(method) not in seen:
                    seen.add(id(method))
                    _put(method, functools.partial(_whole, op.name + "_", lambda args, kwargs, name=op.name: calls.overload_of(name, args[1:])))
    for name in (*_FACTORIES, *_LIKE):
        _put(getattr(clnn, name), functools.partial(_whole, name, _factory_overload(name)))
    _put(clnn.tensor, _lifted)
    _put(write, _written)
    for quick, left in ((rebind, False), (native.definitions["put"], False), (_alike, False), (_part, None)):
        _put(quick, functools.partial(_left, left))
    _put(multihead._heads, functools.partial(_instead, multihead.heads_by_steps))
    _put(_chain._together, functools.partial(_instead, _chain._one_by_one))
    _put(batchnorm._Moves.takes, functools.partial(_left, False))
    _put(views._seen_as, _viewed)
    _put(splitting._pieces, _cut)
    _put(REGISTRY["view"].plain, _view)
    _put(REGISTRY["unique"].plain, functools.partial(_unique, calls.distinct))
    _put(views._bitcast, _reinterpreted)
    for name, aten in _METHODS.items():
        if isinstance(Tensor.__dict__.get(name), FunctionType):
            _put(Tensor.__dict__[name], functools.partial(_whole, aten, lambda args, kwargs: "default"))
    for name, overload in _FILLS.items():
        _put(Tensor.__dict__[name], functools.partial(_whole, name, overload))
    for name, overload in _DRAWS.items():
        _put(getattr(clnn, name), functools.partial(_whole, name, overload))
    for name in ("to", *_CASTS):
        _put(Tensor.__dict__[name], functools.partial(_cast, name))
    composites.install(_put)


def _factory_overload(name):
    if name == "arange":
        return lambda args, kwargs: ("default", "start", "start_step")[max(0, min(len(args), 3) - 1)]
    if name == "randint":
        return lambda args, kwargs: "low" if len(args) > 2 or "low" in kwargs else "default"
    return lambda args, kwargs: "memory_format" if name == "empty" else "default"


def _lifted(inner):
    """The entry of ``tensor``, which makes one of a program's numbers."""
    def entry(args, kwargs):
        r = inner(*args, **kwargs)
        if local.modes and local.modes[-1].composites:
            return ask(_aten("detach_"), (ask(_aten("lift_fresh_copy"), (r,), {}, lambda: r),), {}, lambda: r)
        return ask(_aten("lift_fresh"), (r,), {}, lambda: r) if local.modes else r
    return entry


def _written(inner):
    """The entry of writes by what is no operator of its own: activations in place, indices, ``out=``."""
    def entry(args, kwargs):
        if not local.modes:
            return inner(*args, **kwargs)
        with no_grad():
            ask(_aten("copy_"), args, {}, lambda: inner(*args, **kwargs))
    return entry


def _left(answer, inner):
    """The entry of quick ways to write or to take a part, which leave it to the operators, by ``answer``, where somebody asks."""
    def entry(args, kwargs):
        return answer if local.modes else inner(*args, **kwargs)
    return entry


def _instead(steps, inner):
    """The entry of what is done at once, by ``steps`` that are operators' calls where somebody asks."""
    def entry(args, kwargs):
        return (steps if local.modes else inner)(*args, **kwargs)
    return entry


def _viewed(inner):
    """The entry of views in another shape, which are no operator's call where nobody asks."""
    def entry(args, kwargs):
        return ask(_aten("view"), (args[0], list(args[1])), {}, lambda: inner(*args, **kwargs)) if local.modes else inner(*args, **kwargs)
    return entry


def _cut(inner):
    """The entry of views that cover a dimension, each of which is an operator's call."""
    def cut(name, input, dim, sizes, stacked=False):
        at, out = 0, []
        for k, n in enumerate(sizes):
            func, where = (_aten("select", "int"), (dim, k)) if stacked else (_aten("slice", "Tensor"), (dim, at, at + n))
            out.append(ask(func, (input, *where), {}, lambda k=k: inner(name, input, dim, sizes, stacked)[k]))
            at += n
        return tuple(out)
    return lambda args, kwargs: cut(*args, **kwargs) if local.modes else inner(*args, **kwargs)


def _view(inner):
    """The entry of ``view``, whose sizes are told as they were given: -1 stays, so that a graph takes other batches."""
    def entry(args, kwargs):
        size = args[1] if len(args) == 2 and isinstance(args[1], (tuple, list)) else args[1:]
        if not local.modes or kwargs or not all(type(n) is int for n in size):
            return inner(*args, **kwargs)
        return ask(_aten("view"), (args[0], list(size)), {}, lambda: inner(*args, **kwargs))
    return entry


def _unique(told, inner):
    """The entry of ``unique``."""
    def entry(args, kwargs):
        if not local.modes:
            return inner(*args, **kwargs)
        name, given, wanted = told(*args, **kwargs)
        func = _aten(name)
        got = [r for r, asked in zip(ask(func, given, {}, lambda: func(*given)), wanted) if asked]
        return got[0] if len(got) == 1 else tuple(got)
    return entry


def _reinterpreted(inner):
    """The entry of views as another dtype."""
    def entry(args, kwargs):
        return ask(_aten("view", "dtype"), args, {}, lambda: inner(*args, **kwargs)) if local.modes else inner(*args, **kwargs)
    return entry


def _leaf(op, inner):
    """The entry of an operator that computes by itself."""
    from .._aten_calls import OWN, PARTS, call_for, steps_of, whole_of

    def entry(args, kwargs):
        if not local.modes:
            return inner(*args, **kwargs)
        out = kwargs.get("out")
        if op.kind == "elementwise" and len(args) == len(op.params) + 1:
            args, out = args[:-1], args[-1]
        values = _bound(op, args, kwargs)
        if op.name == "_basic_index":
            r = values[0]
            for name, overload, given in list(steps_of(values[1], r)) or [whole_of(values[1], r)]:
                r = ask(_aten(name, overload), (r, *given), {}, lambda: inner(*args, **kwargs))
            return r
        if op.name in OWN:
            r = op.decompose(*values)
            return r[0] if isinstance(r, tuple) else r
        if op.name in PARTS and (r := PARTS[op.name](*values)) is not None:
            return r
        func, its_args, its_kwargs = call_for(op, values)
        r = ask(func, its_args, its_kwargs, lambda: inner(*args, **kwargs))
        if op.public == 1 and isinstance(r, (tuple, list)) and r and not op.variadic:
            r = r[0]
        if out is not None:
            from .inplace import set_out
            return set_out(out, r)
        return r
    return entry


def _whole(name, overload, inner):
    """The entry of a function that one operator of aten stands for."""
    def entry(args, kwargs):
        if not local.modes:
            return inner(*args, **kwargs)
        out = kwargs.pop("out", None)
        if name in _SIZED and args and not isinstance(args[0], (tuple, list)):
            args = (list(args),)
        r = ask(_aten(name, overload(args, kwargs)), args, kwargs, lambda: inner(*args, **kwargs))
        if out is not None:
            from .inplace import set_out
            return set_out(out, r)
        return r
    return entry


def _cast(name, inner):
    """The entry of ``to`` and of the methods named after dtypes."""
    from ..core import dtype as dt

    def entry(args, kwargs):
        if not local.modes:
            return inner(*args, **kwargs)
        wanted = changes(args[0], args[1:] if name == "to" else (dt.from_name(_CASTS[name]),), kwargs)
        return args[0] if wanted is None else ask(_aten("_to_copy"), (args[0],), wanted, lambda: inner(*args, **kwargs))
    return entry
