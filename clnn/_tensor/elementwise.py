"""What a call of an elementwise operator does, by the number of its operands: the calls that most programs make, in few steps, and all others."""
from __future__ import annotations

import numpy as np

from ..core import dtype as dt
from ..core import native
from .dispatch import (_INTEGER, _promoted, broadcast, elementwise_call, plain, promote, record_briefly, record_elementwise, record_in_layout, record_laid,
                       record_pair)
from .foreign import NoStrides, without_kernels
from .grad_mode import state
from .inplace import set_out, type_name, within
from .override import answers, late
from .refusals import EXACT, TENSORS, in_words, same_dtype, takes_out
from .tensor import Tensor
from ..graph import fuse
from .worded import absent, looked, refuse


def taken_over(fn, args, kwargs=None):
    """While an error is handled: what an argument that takes functions over answers (see :func:`late`); else the error goes on."""
    got = late(fn, args, kwargs)
    if got is NotImplemented:
        refuse(fn.__name__, args, kwargs)
        raise                                                   # noqa: PLE0704
    return got


def _delivered(op, out, r, inputs):
    takes_out(op, inputs, {})
    if op.name in EXACT:
        same_dtype(op, out, r)
    within(out, r, inputs)
    return set_out(out, r, inputs)


def _wrong(op, *args):
    name = op.name.lstrip("_")
    refuse(op.name, args)
    if TENSORS.get(name) == 2 or not any(isinstance(a, (int, float, complex)) for a in args):
        at = next(i for i, a in enumerate(args) if not isinstance(a, Tensor))
        return TypeError(f"{name}(): argument '{op.params[at]}' (position {at + 1}) must be Tensor, not {type(args[at]).__name__}")
    return TypeError(f"{name}() received an invalid combination of arguments - got ({', '.join(type(a).__name__ for a in args)}), but expected "
                     f"({', '.join(op.params)}) with at least one Tensor")


def swift_unary(op, known):
    """What most calls come to, in few steps; None for all others. ``known``: {(dtype, whether it has no dimensions): (compute dtype, result dtype)}."""
    def swift(input):
        got = known.get((input.dtype, not input.shape)) if input.__class__ in plain else None
        if got is None:
            return None
        r = record_briefly(op.expr, got[0], got[1], input, None, 0) if input._dense else record_laid(op, got[0], got[1], (input,))
        if r is not None and input._rg and state.grad:
            op.attach(op, r, (input,))
        return r
    return swift if native.built is None else native.built.swift(op, known, 1)


def swift_binary(op):
    """The same for two operands, the first of which is no number."""
    number = op.number

    def swift(a, b):
        other = b.__class__
        if a.__class__ not in plain:
            return None
        if other is float or other is int:
            second, place = dt._default_float.index * 3 if other is float else _INTEGER, 1 if a._dense else 0
        elif other in plain and a._storage.device is b._storage.device:
            second, place = b.dtype.index * 3 + (2 if b.shape else 1), 2 if a._dense and b._dense and a.shape == b.shape else 0
        else:
            return None
        got = _promoted.get((number, (a.dtype.index * 3 + (2 if a.shape else 1), second)))
        if got is None:
            return None
        r = None
        if place:
            r = record_briefly(op.expr, got[0], got[1], a, b, place)
        elif other in plain:
            r = record_pair(op, got[0], got[1], a, b)
        if r is None and not place:
            r = record_laid(op, got[0], got[1], (a, b))
        if r is not None and state.grad and (a._rg or other in plain and b._rg):
            op.attach(op, r, (a, b))
        return r
    return swift if native.built is None else native.built.swift(op, _promoted, 2)


def copied(swift, target, source) -> bool:
    """Let ``target`` hold what ``source`` does, as :func:`overwritten`; ``swift`` records an operand as it is."""
    return False


copied = native.form("copied", copied)


def overwritten(swift, target, operands) -> bool:
    """Let ``target`` hold what ``swift`` records of it and ``operands``, where nobody keeps a history and nobody has to be told. False where it does not;
    nothing is done without the C form, as the plain way is as short."""
    return False


native.give(dtypes=vars(dt), integer=_INTEGER)
overwritten = native.form("overwritten", overwritten)


def refilled(target, values) -> bool:
    """Let ``target`` hold the one number of ``values`` everywhere, where nobody keeps a history of it. False, with nothing done, elsewhere: always without the C
    form, as the usual way is no longer then."""
    return False


native.give(full=fuse.FULL)
refilled = native.form("refilled", refilled)
native.know(dt.dtype)


def unary(op):
    known = {}
    expr, swift, look = op.expr, swift_unary(op, known), looked(op.name)
    dt.default_listeners.append(known.clear)

    @answers
    def call(input, *, out=None):
        if out is None:
            r = swift(input)
            if r is not None:
                return r
        elif look is not None:
            look((input,), {"out": out})
        try:
            got = known.get((input.dtype, not input.shape))
        except AttributeError:
            got = late(op.fn, (input,), {"out": out} if out is not None else None)
            if got is not NotImplemented:
                return got
            raise _wrong(op, input) from None
        if got is None:
            if not isinstance(input, Tensor):                   # an array has a dtype, too
                raise _wrong(op, input)
            if input.dtype.index < 0:
                r = without_kernels(op.name, (input,))
                return r if out is None else set_out(out, r)
            if input.dtype not in op.dtypes:
                raise unsupported(op, input.dtype)
            got = known[input.dtype, not input.shape] = promote(op, (input.dtype.index * 3 + (2 if input.shape else 1),))
        try:
            r = (record_elementwise if input._dense else record_in_layout)(expr, got[0], got[1], input.shape, input._numel, (input,))
        except NoStrides as refused:
            r = refused.instead(op.name, (input,), {})
            return r if out is None else set_out(out, r)
        if input._rg and state.grad:
            op.attach(op, r, (input,))
        return r if out is None else _delivered(op, out, r, (input,))
    call.swift = swift
    return native.front(call, swift=swift, operands=1)


def unsupported(op, dtype):
    if op.refusal and not dtype.is_complex:
        return RuntimeError(op.refusal)
    if said := in_words(op, dtype):
        return said
    text = f'"{op.name.lstrip("_")}" not implemented for \'{type_name(dtype)}\''           # programs look for ``not implemented for 'Half'``
    return NotImplementedError(text if dtype.is_complex else f'{text}; it takes {", ".join(d.name for d in op.dtypes)}')


def _number_kind(x):
    c = x.__class__
    if c is float:
        return dt._default_float.index * 3
    if c is int:
        return _INTEGER
    return dt.scalar_dtype(x).index * 3


def _plain_number(op, x, *args):
    """A NumPy scalar as a Python number; an instance of a subclass of a Python number stays what it is."""
    if isinstance(x, (np.number, np.bool_)):
        return x.item()
    if isinstance(x, (int, float, complex)):
        return x
    raise _wrong(op, *args)


def _from_number(x):
    from .device import resolve
    from .interop import from_array
    return from_array(np.asarray(x), resolve(None), dt.scalar_dtype(x))


_NUMBER_TYPES = frozenset((int, float, bool, complex))
_NUMBERS = (int, float, complex, np.number)
_OF_NUMBERS = frozenset(("_add", "_sub", "mul", "true_divide", "floor_divide", "_floor_divide", "_trunc_divide"))    # PyTorch takes two numbers here


def binary(op):
    expr, number, swift, (first_name, second_name) = op.expr, op.number, swift_binary(op), op.params

    @answers
    def call(a, b, out=None):
        if out is None:
            r = swift(a, b)
            if r is not None:
                return r
        try:
            if isinstance(b, Tensor):
                if isinstance(a, Tensor):
                    kinds = (a.dtype.index * 3 + (2 if a.shape else 1), b.dtype.index * 3 + (2 if b.shape else 1))
                    if a._storage.device is not b._storage.device:
                        r = elementwise_call(op, (a, b))
                        return r if out is None else set_out(out, r)
                    shape, numel = a.shape, a._numel
                    if b.shape != shape:
                        shape = broadcast(op.name, a, b)
                        numel = shape.numel()
                else:
                    if a.__class__ not in _NUMBER_TYPES:
                        a = _plain_number(op, a, a, b)
                    kinds = (_number_kind(a), b.dtype.index * 3 + (2 if b.shape else 1))
                    shape, numel = b.shape, b._numel
            else:
                if b.__class__ not in _NUMBER_TYPES:
                    b = _plain_number(op, b, a, b)
                kinds = (a.dtype.index * 3 + (2 if a.shape else 1), _number_kind(b))
                shape, numel = a.shape, a._numel
        except (AttributeError, TypeError) as exc:
            r = late(op.fn, (a, b), {"out": out} if out is not None else None)
            if r is not NotImplemented:
                return r
            if op.name in _OF_NUMBERS and isinstance(a, _NUMBERS) and isinstance(b, _NUMBERS):
                return call(_from_number(a), b, out)
            raise (exc if exc.__class__ is TypeError else _wrong(op, a, b)) from None
        except NoStrides as refused:
            r = refused.instead(op.name, (a, b), {})
            return r if out is None else set_out(out, r)
        got = _promoted.get((number, kinds))
        if got is None:
            if kinds[0] < 0 or kinds[1] < 0:
                r = without_kernels(op.name, (a, b))
                return r if out is None else set_out(out, r)
            got = promote(op, kinds)
        elif out is None and b.__class__ in plain and a.__class__ in _NUMBER_TYPES:
            r = record_laid(op, got[0], got[1], (a, b))
            if r is not None:
                if state.grad and b._rg:
                    op.attach(op, r, (a, b))
                return r
        flat = (a if isinstance(a, Tensor) and a.shape == shape else b)
        try:
            r = (record_elementwise if flat.__class__ in _NUMBER_TYPES or flat._dense else record_in_layout)(
                expr, got[0], got[1], shape, numel, (a, b))
        except NoStrides as refused:                            # a sparse tensor and a number
            r = refused.instead(op.name, (a, b), {})
            return r if out is None else set_out(out, r)
        if state.grad and ((isinstance(a, Tensor) and a._rg) or (isinstance(b, Tensor) and b._rg)):
            op.attach(op, r, (a, b))
        return r if out is None else _delivered(op, out, r, (a, b))
    names, look = {first_name: 0, second_name: 1}, looked(op.name)

    def named(*args, out=None, **kwargs):
        if out is not None and look is not None:
            look(args, {**kwargs, "out": out})
        if kwargs:
            full = list(args) + [absent] * (2 - len(args))
            for k, v in kwargs.items():
                if k not in names or names[k] < len(args):
                    raise TypeError(f"{op.name}() got an unexpected keyword argument {k!r}")
                full[names[k]] = v
            return call(full[0], full[1], out)
        try:
            return call(*args, out=out)
        except TypeError:                                       # of too few or too many, too
            refuse(op.name, args)
            raise
    call = native.front(call, swift=swift, operands=2)
    named.fast, named.swift = call, swift
    return native.front(named, swift=swift, operands=2)


def nary(op):
    names = op.params
    count, look = len(names), looked(op.name)

    @answers
    def call(*args, out=None, **kwargs):
        if out is not None and look is not None:
            look(args, {**kwargs, "out": out})
        if kwargs or len(args) != count:
            full = list(args)
            for n in names[len(args):]:
                if n in kwargs:
                    full.append(kwargs.pop(n))
                else:
                    raise TypeError(f"{op.name}() missing required argument: {n!r}")
            if kwargs or len(full) != count:
                raise TypeError(f"{op.name}() takes ({', '.join(names)}), got {len(args)} positional and {sorted(kwargs)}")
            args = tuple(full)
        try:
            for a in args:
                if isinstance(a, Tensor):
                    break
            else:
                raise _wrong(op, *args)
            r = elementwise_call(op, args)
        except (AttributeError, TypeError):
            return taken_over(op.fn, args, {"out": out} if out is not None else None)
        except NoStrides as refused:
            r = refused.instead(op.name, args, {})
        return r if out is None else _delivered(op, out, r, args)
    return call
