"""The four constructors of operators: ``elementwise``, ``view``, ``kernel``, ``composite``.

One call declares an operator completely; the function, the Tensor method, the in-place form, ``out=`` and the derived tests follow from
the entry. A gradient rule is a function whose *parameter names* say what it needs: ``g`` (the gradient of the output, a tuple if there are
several), names of inputs and attributes, ``<input>_shape`` and ``<input>_strides`` of an input that the rule serves, ``out`` (the result) or the name of a hidden
output, ``needs`` (flags). A rule may be a pair: the function, and the same gradient as one C expression over its (alike) arguments. Only what
the rules of inputs that require gradients name is kept for backward.
"""
from __future__ import annotations

import functools
import inspect

from ..core import dtype as dt
from ..core import native
from ..graph.node import Expr
from ..graph.op import REGISTRY, Op, register
from . import foreign
from .autocast import cast_floats, with_autocast
from .dispatch import config
from .entries import attach, attach_list
from .elementwise import binary, nary, overwritten, refilled, taken_over, unary, unsupported
from .explain import described
from .foreign import NoStrides
from .grad_mode import state
from .inplace import applied, apply_inplace, mark, overwriting, own_results, refuse_dtype, refuse_leaf, refuse_overlap, set_out, within
from .override import answers, late, method_of
from .refusals import BROADCAST, EXACT, MOVED, declared, guarded, in_old_order, of_tensors, castable, same_dtype, takes_out, widened
from .repeat import Missed, repeated, repeated_composite
from .rules import Rule, parameter_names
from .seen import note, recalled
from .shown import labelled
from .signatures import ASKED
from .splice import spliced
from .tensor import Tensor, make_view
from .thin import Thin
from .worded import FAILED, is_functional, looked, misfit, refuse


class Entry(Op):
    """An Op with what the driver precomputes from its declaration."""

    __slots__ = ("number", "position", "rules", "saves", "differentiable", "public", "rule", "variadic", "masks", "together", "plain", "attach")


_numbers = iter(range(1 << 30))


def _entry(name, kind, fn, params, *, vjp=None, together=None, outputs=("out",), public=None, variadic=False, **fields) -> Entry:
    op = Entry(name, kind, fn, tuple(params), **fields)
    op.number = next(_numbers)
    op.outputs = tuple(outputs)
    op.public = public or len(op.outputs)
    op.position = {n: i for i, n in enumerate(op.params)}
    op.variadic = variadic
    op.vjp = vjp or {}
    op.rules = [Rule(op, key, f) for key, f in op.vjp.items()]
    op.together = together and Rule(op, ", ".join(op.params[i] for r in op.rules for i in r.targets), together, op.rules)
    op.saves, op.differentiable = {}, set()
    for r in op.rules:
        for i in r.targets:
            op.saves.setdefault(i, set()).update(r.saves)
            op.differentiable.add(i)
    # Per differentiable parameter, what its gradient needs: one bit per parameter, then one per output.
    n = len(op.params)
    if op.complex and op.dtypes:
        op.dtypes += tuple([d for d in dt.COMPLEXES if d not in op.dtypes])
    op.masks = tuple([(i, sum({1 << (j if j >= 0 else n - 1 - j) for j in op.saves[i]})) for i in sorted(op.differentiable)])
    op.attach = attach
    declared(op)
    register(op)
    return op


def _finish(op, fn, method, inplace, method_name=None):
    """Publish the function and derive the Tensor method and in-place form."""
    op.plain = plain = fn                                       # below autocast
    fn = with_autocast(op, fn)
    for f in {plain, fn}:
        f.__name__ = f.__qualname__ = op.name
    fn.op = op
    op.fn, op.method, op.inplace = fn, bool(method), inplace
    op.doc = fn.__doc__ = described(op, op.doc or fn.__doc__)
    for name in (op.name, *op.aliases):
        if method:
            setattr(Tensor, method_name or name, method_of(fn))
        if inplace:
            of = plain if inplace is True else inplace.op.plain
            setattr(Tensor, name + "_", _inplace_form(op, plain, name, getattr(of, "swift", None)))  # writes in its own dtype, under autocast too
    return fn


def _apart(target, args):
    """Tensors without dimensions that are elements of ``target`` itself, as copies."""
    return tuple([a.clone() if isinstance(a, Tensor) and not a.shape and a._storage is target._storage else a for a in args])


def _inplace_form(op, fn, name, swift):
    filling = op.name == "fill"
    number, thin = op.name in ("fill", "masked_fill", "index_fill"), getattr(fn, "thin", None)       # number: these take a tensor's before they write

    @answers
    def inplace(self, *args, **kwargs):
        if swift is not None and not kwargs:
            if overwritten(swift, self, args):
                return self
        elif filling and not kwargs:
            if refilled(self, args):
                return self
        elif thin is not None and thin.overwritten(self, args, kwargs):
            return self
        if foreign.dispatched is not None:
            got = foreign.dispatched(fn, name, self, args, kwargs)
            if got is not NotImplemented:
                return got
        since = mark() if state.grad else None
        try:
            if args:
                if number:
                    args = _apart(self, args)
                refuse_overlap(self, args)
            if state.watched and since is not None:
                with overwriting(self):
                    return apply_inplace(self, fn(self, *args, **kwargs), name, since)
            if kwargs and kwargs.get("dtype", self.dtype) is not self.dtype:
                refuse_dtype(self, kwargs["dtype"])
            box = [applied(self, fn(self, *args, **kwargs))]
            return self if box[0] is None else apply_inplace(self, box.pop(), name, since)
        except (AttributeError, TypeError):
            return taken_over(inplace, (self, *args), kwargs)
        except RuntimeError:
            if state.grad and self._base is None:
                refuse_leaf(self)                               # what PyTorch looks at first
            raise
    inplace.__name__ = inplace.__qualname__ = name + "_"
    inplace.__doc__ = f"In-place form of :func:`clnn.{name}`."
    if swift is not None or filling:
        inplace = native.front(inplace, into=True, **({} if swift is None else {"swift": swift}))
    elif thin is not None:
        inplace = native.front(inplace, into=True, thin=thin.known, free=thin.free)
    return inplace


# -- elementwise ----------------------------------------------------------------------------------------------------------------

def _rule_promote(common, kinds):
    return common, common


def _rule_float(common, kinds):
    if common.category < dt.FLOAT:
        common = dt.float_default()
    return common, common


def _rule_compare(common, kinds):
    return common, dt.bool_


def _real_result(rule):
    """``rule``, with a real result for complex operands."""
    def call(common, kinds):
        return (common, common.to_real()) if common.is_complex else rule(common, kinds)
    return call


_RULES = {"promote": _rule_promote, "float": _rule_float, "compare": _rule_compare}


def elementwise(name, params, expr, *, result="promote", vjp=None, aliases=(), inplace=True, method=True, checked=None, failure=None, dtypes=dt.REAL,
                complex=None, doc="", **fields):
    """Declare an operator computed element by element.

    Args:
        name: operator name, PyTorch's.
        params: parameter names, comma-separated: tensors or numbers, broadcast against each other.
        expr: C expression over the parameters in OpenCL C (float literals with ``f``; ``ACC`` is the compute type; ``IDX`` the flat index),
            or a dict by category of the compute dtype: ``bool``, ``int``, ``float``.
        result: ``promote`` (common dtype), ``float`` (at least the default float), ``compare`` (bool), or a function
            ``(common, kinds) -> (compute dtype, result dtype)``.
        vjp: gradient rules by parameter name.
        complex: expression for complex operands, of type ``ACC2``, with functions ``c_<name>`` of ``common/complex.cl.mako``; a pair
            ``(expression, "real")`` when the result is real. Without it complex tensors are refused. The gradient rules serve both: of a complex
            differentiable function the driver conjugates what they need (see ``OpNode.apply``); ``holomorphic=False`` turns that off.
        checked: C condition that reports an error: ``failure``, as (exception, message), or a division by zero.
    """
    names = tuple(n.strip() for n in params.split(","))
    op = _entry(name, "elementwise", None, names, vjp=vjp, aliases=tuple(aliases), dtypes=tuple(dtypes), doc=doc, complex=complex is not None, **fields)
    op.rule = _RULES.get(result, result)
    if isinstance(complex, tuple):
        complex, op.rule = complex[0], _real_result(op.rule)
    op.rule = of_tensors(op, op.rule)
    op.expr = Expr(name, names, expr, checked, failure=failure, complex=complex)
    text = expr["int"] if isinstance(expr, dict) else expr
    if set(op.dtypes).issuperset(dt.INTS) and (result == "float" or "clnn_" not in text):         # functions of integers are those of signed ones
        op.dtypes += dt.UNSIGNED
    maker = {1: unary, 2: binary}.get(len(names), nary)
    return _finish(op, maker(op), method, inplace)


# -- kernels --------------------------------------------------------------------------------------------------------------------

_OTHER_NAMES = dict(axis="dim", keepdims="keepdim", x="input", a="input", x1="input", x2="other", axis0="dim0", axis1="dim1",
                    sections="indices_or_sections", indices="indices_or_sections", split_size="split_size_or_sections",
                    split_sizes="split_size_or_sections", tensor_indices_or_sections="indices_or_sections")


def common_names(kwargs, params):
    """``kwargs`` with other names that PyTorch takes, NumPy's and those of its overloads, replaced by the operator's; None when there are none."""
    if any((k in _OTHER_NAMES or k == "input") and k not in params for k in kwargs):
        names = {**_OTHER_NAMES, "input": params[0]}                # ``A`` of the linear algebra is ``input`` at the top level
        return {names.get(k, k) if k not in params else k: v for k, v in kwargs.items()}
    return None


def _refuse_complex(op, values):
    """Raise when a tensor among ``values`` (or in a list of them) is complex."""
    for v in values:
        if v.__class__ is list or v.__class__ is tuple:
            _refuse_complex(op, v)
        elif isinstance(v, Tensor):
            if v.dtype.is_complex:
                raise unsupported(op, v.dtype)


def _with_common_names(op, body, params, old=(), thin=None, seen=None):
    """``body``, taking ``out=`` as every operator does, and other names of its arguments."""
    exact, real_only, again, by_name = op.name in EXACT, not op.complex, getattr(body, "again", None), getattr(body, "by_name", None)
    own_out = "out" in params and not exact
    listed, look = bool(inspect.unwrap(body).__code__.co_flags & inspect.CO_VARARGS), looked(op.name, body, aliases=op.aliases)

    @answers
    def call(*args, **kwargs):
        missed = key = None
        if again is not None and not kwargs and foreign.early is None:
            missed = again(args)
            if missed.__class__ is not Missed:
                return missed
        elif by_name is not None and "out" not in kwargs and foreign.early is None:
            got = by_name((args, tuple(kwargs.items())))        # other names of arguments are never of a known kind
            if got.__class__ is not Missed:
                return got
        elif seen is not None:
            if not kwargs:
                key = recalled(seen, args)
                if key.__class__ is Tensor:
                    return key
        elif thin is not None:
            missed = thin(args, kwargs)
            if missed.__class__ is Tensor:
                return missed
        target = None
        try:
            if foreign.early is not None:
                got = foreign.early(op.name, args, kwargs)
                if got is not NotImplemented:
                    return got
            if look is not None:
                look(args, kwargs)
            if real_only and dt.complex_in_use:
                _refuse_complex(op, (*args, *[v for k, v in kwargs.items() if k != "out"]))
            if thin is not None and missed is not None:
                return thin.learn(missed, body, args, kwargs)
            if not kwargs:
                r = body(*args) if missed is None else body.learn(args, missed)
                if key is not None:
                    note(seen, key, args[0], r)
                first = r[0] if r.__class__ is tuple and r else r
                if first.__class__ is Tensor and first._base is not None and first._base is not args[0]:
                    own_results(r, args)
                return r
            if own_out and kwargs.get("out") is not None:
                takes_out(op, args, kwargs)
            if own_out and isinstance(kwargs.get("out"), Tensor):
                refuse_overlap(kwargs["out"], args)
            if listed:
                args = with_list(args, kwargs)
            if kwargs.get("out") is not None:
                args = widened(op, kwargs["out"], args)
            target = None if own_out else kwargs.pop("out", None)
            r = body(*args, **(common_names(kwargs, params) or kwargs))
        except (AttributeError, TypeError) as exc:
            got = late(op.fn, args, kwargs)
            if got is not NotImplemented:
                return got
            given = in_old_order(op, old, args) if old and exc.__class__ is not AttributeError else None
            if given is None:
                unlike(op, params, args, kwargs, exc)
                raise
            r, target = body(**given), kwargs.get("out")
        except NoStrides as refused:
            r = refused.instead(op.name, args, common_names(kwargs, params) or kwargs)
        except FAILED:
            if not old:
                misfit(op.name, args, common_names(kwargs, params) or kwargs)
            raise
        if target is None:
            own_results(r, (*args, *kwargs.values()))
            return r
        if r.__class__ is tuple and isinstance(target, Tensor):
            raise RuntimeError(f"{op.name} does not support the out kwarg when as_tuple is True")
        takes_out(op, args, kwargs)
        castable(op, target, r)
        if exact:
            same_dtype(op, target, r, (*args, *kwargs.values()))
            if op.name in MOVED:
                refuse_overlap(target, args, True)
        if op.name in BROADCAST:
            within(target, r, args)
        return set_out(target, r, args, name=op.name)
    call = functools.wraps(body)(call)
    call.thin = thin
    entry = {} if getattr(body, "rest", None) is None else {"known": body.known, "rest": body.rest}
    if again is not None:
        return native.front(call, again=again, named=by_name, **entry)
    if entry:
        return native.front(call, **entry)
    if seen is not None:
        return native.front(call, seen=seen)
    return call if thin is None else native.front(call, thin=thin.known, free=thin.free)


def with_list(args, kwargs):
    """``args`` and the sizes or dimensions that were given by name instead of one by one: ``flip(x, dims=(0, 1))``."""
    if not args and "input" in kwargs:
        args = (kwargs.pop("input"),)
    for name in ("dims", "size", "shape", "repeats"):
        if name in kwargs:
            args = (*args, kwargs.pop(name))
    return args


def unlike(op, params, args, kwargs, exc):
    """Raise TypeError in PyTorch's words when the call that failed with ``exc`` is not what the operator takes."""
    attribute = ASKED.get(op.name)
    if attribute and (not attribute.endswith("softmax") or is_functional()):
        for name, value in (*zip(params, args), *kwargs.items()):
            if name in _OPERANDS and not isinstance(value, Tensor) and not hasattr(value, attribute):
                raise AttributeError(f"'{type(value).__name__}' object has no attribute '{attribute}'") from None
    refuse(op.name, args, common_names(kwargs, params) or kwargs)
    if isinstance(exc, AttributeError):
        no_tensor(op.name, params, args, kwargs, exc)


def no_tensor(called, params, args, kwargs, exc):
    """Raise TypeError in PyTorch's words when the cause of the AttributeError ``exc`` is an argument, or an element of a list, that is no tensor."""
    for at, name in enumerate(params[:len(args)]):
        if name in ("tensors", "operands", "matrices") and (isinstance(args[at], (list, tuple)) or len(args) > at + 1):
            for i, t in enumerate(args[at] if isinstance(args[at], (list, tuple)) else args[at:]):
                if not isinstance(t, Tensor):
                    raise TypeError(f"expected Tensor as element {i} in argument {at}, but got {kind_name(t)}") from None
    for at, (name, value) in enumerate([*zip(params, args), *kwargs.items()]):
        first = at == 0 and name in ("input", "A")
        if not isinstance(value, Tensor) and (first or exc.obj is value and isinstance(value, _NO_TENSORS)):
            raise TypeError(f"{called}(): argument '{name if name != 'A' else 'input'}' (position {at + 1}) must be Tensor, "
                            f"not {type(value).__name__}") from None


def kind_name(value):
    """What PyTorch calls the type of ``value``."""
    kind = type(value)
    return f"numpy.{kind.__name__}" if kind.__module__ == "numpy" else kind.__name__


_OPERANDS = frozenset("input target input1 input2 a b".split())
_NO_TENSORS = int, float, complex, str, list, tuple, dict, type(None)


def _binder(body):
    """Turns a call's arguments into one value per parameter, in order."""
    sig = inspect.signature(body)
    params = tuple(sig.parameters)
    defaults = tuple(p.default for p in sig.parameters.values())
    total = len(params)
    rest = [None if inspect.Parameter.empty in defaults[n:] else defaults[n:] for n in range(total + 1)]       # of a call with n arguments

    def bind(args, kwargs):
        n = len(args)
        if not kwargs and n <= total and rest[n] is not None:
            return args + rest[n]
        try:
            if n > total:
                raise TypeError
            values = list(args)
            for i in range(n, total):
                v = kwargs.get(params[i], defaults[i]) if kwargs else defaults[i]
                if v is inspect.Parameter.empty:
                    raise TypeError
                values.append(v)
            if kwargs and any(k not in params[n:] for k in kwargs):
                raise TypeError
        except TypeError:
            plain = common_names(kwargs, params)
            if plain is not None:
                return bind(args, plain)
            sig.bind(*args, **kwargs)
            raise
        return tuple(values)
    bind.rest = rest
    return params, bind


def kernel(name=None, *, vjp=None, together=None, outputs=("out",), public=None, aliases=(), method=True, inplace=False, variadic=False, autocast="",
           repeat=False, **fields):
    """Declare an operator whose Python body allocates its outputs and launches templates (decorator).

    The body receives exactly the operator's parameters and runs without recording. With ``public`` smaller than the number of ``outputs``, the rest are
    hidden: kept for the gradient rules only. ``decompose`` gives the same result from differentiable operators; it serves ``create_graph``.
    ``variadic``: the first parameter is a list of tensors. ``repeat``: what the body launches follows from shapes, dtypes and attributes alone, so that
    it need not run each time (its modes: see :func:`repeated`). ``together``: all gradients at once, in the order of ``vjp``, with less work for the host
    than one rule after another; where they are all wanted and not differentiated themselves, for real numbers. What no wanted one needs is None.
    """
    def decorate(body):
        body = guarded(name or body.__name__, body, bool(repeat))
        body = repeated(body, repeat) if repeat else body
        params, bind = _binder(body)
        op = _entry(name or body.__name__, "kernel", body, params, vjp=vjp, together=together, outputs=outputs, public=public, aliases=tuple(aliases),
                    variadic=variadic, autocast=autocast, doc=body.__doc__ or "", **fields)
        return _finish(op, _kernel_call(op, body, params, bind, variadic), method, inplace)
    return decorate


def _kernel_call(op, body, params, bind, variadic):
    """The function of the operator: ``body`` with the arguments of a call, without recording, and the call on the tape."""
    single, real_only, total = op.public == 1, not op.complex, len(params)
    again, look = getattr(body, "again", None), looked(op.name, aliases=op.aliases)

    @answers
    def call(*args, **kwargs):
        missed = None
        if again is not None and not kwargs and len(args) == total and foreign.early is None and (not op.autocast or state.autocast is None):
            # what most calls are, in fewer steps
            missed = again(args)
            if missed.__class__ is not Missed:
                if state.grad:
                    if not variadic:
                        op.attach(op, missed, args)
                    elif _tracks(args, True):
                        attach_list(op, missed, args)
                return missed if missed.__class__ is not tuple else missed[0] if single else missed[:op.public]
        if foreign.early is not None:
            got = foreign.early(op.name, args, kwargs)
            if got is not NotImplemented:
                return got
        if look is not None:
            look(args, kwargs)
        target = kwargs.pop("out", None) if kwargs else None
        try:
            values = bind(args, kwargs)
        except TypeError:
            refuse(op.name, args, kwargs)
            raise
        if real_only and dt.complex_in_use:
            _refuse_complex(op, values)
        if op.autocast and state.autocast is not None:
            values = cast_floats(values, state.autocast, state.autocast.low)
        grad = state.grad
        if grad and not _tracks(values, variadic):
            grad = False
        prev, state.grad = state.grad, None
        try:
            r = body(*values) if missed is None else body.learn(values, missed)
        except (AttributeError, TypeError) as exc:
            state.grad = prev
            r = late(op.fn, args, kwargs)
            if r is not NotImplemented:
                return r
            unlike(op, params, args, kwargs, exc)
            raise
        except NoStrides as refused:
            state.grad, grad = prev, False
            r = refused.instead(op.name, args, kwargs)
        except FAILED:
            misfit(op.name, args, common_names(kwargs, params) or kwargs)
            raise
        finally:
            state.grad = prev
        if grad:
            (attach_list if variadic else op.attach)(op, r, values)
        if r.__class__ is tuple:
            r = r[0] if single else r[:op.public]
        if target is not None:
            takes_out(op, args, kwargs)
        if target is not None and op.name in EXACT:
            same_dtype(op, target, r)
        return r if target is None else set_out(target, r, values, name=op.name)
    call = functools.update_wrapper(call, body, updated=())
    return call if again is None else native.front(call, again=again, op=op, operands=total, shown=op.public, listed=variadic)


def _tracks(values, variadic):
    for v in values[0] if variadic else ():
        if isinstance(v, Tensor) and v._rg:
            return True
    for v in values:
        if isinstance(v, Tensor) and v._rg:
            return True
    return False


_tracks = native.form("tracks", _tracks)


# -- views ----------------------------------------------------------------------------------------------------------------------

def view(name=None, *, vjp=None, aliases=(), method=True, inplace=False, steady=False, **fields):
    """Declare a view (decorator): the body returns ``(shape, strides, offset)``, and the dtype where it is another one, over the storage of its first
    parameter, or None when the result must be a copy, or a Tensor to return as it is. Views take complex tensors. ``steady``: the result follows from the
    shape and strides of the operand and from attributes that are numbers or tuples of them, so that the body runs once for each kind of call."""
    def decorate(body):
        params, bind = _binder(body)
        op = _entry(name or body.__name__, "view", body, params, vjp=vjp, aliases=tuple(aliases), doc=body.__doc__ or "", **{"complex": True, **fields})
        known, look = {} if steady else None, looked(op.name, aliases=op.aliases)

        @answers
        def call(*args, **kwargs):
            key = None
            if steady and not kwargs:
                key = recalled(known, args)
                if key.__class__ is Tensor:
                    return key
            try:
                if foreign.early is not None:
                    got = foreign.early(op.name, args, kwargs)
                    if got is not NotImplemented:
                        return got
                if look is not None:
                    look(args, kwargs)
                values = bind(args, kwargs)
                base, got = values[0], body(*values)
                if got.__class__ is not tuple:
                    return got
                r = make_view(base, *got)
            except (AttributeError, TypeError) as exc:
                r = late(op.fn, args, kwargs)
                if r is NotImplemented:
                    unlike(op, params, args, kwargs, exc)
                    raise
                return r
            except NoStrides as refused:
                return refused.instead(op.name, args, kwargs)
            except FAILED:
                misfit(op.name, args, common_names(kwargs, params) or kwargs)
                raise
            if base._rg and state.grad:
                op.attach(op, r, values)
            if key is not None:
                note(known, key, base, r)
            return r
        call = functools.update_wrapper(call, body, updated=())
        return _finish(op, native.front(call, seen=known) if steady else call, method, inplace)
    return decorate


# -- composites -----------------------------------------------------------------------------------------------------------------

def composite(name=None, *, aliases=(), method=True, inplace=False, old="", repeat=False, splice=False, entry=None, thin=False, seen=False, **fields):
    """Declare an operator made of other operators (decorator); its gradient follows from theirs.

    ``inplace``: whether there is an in-place form; or the elementwise operator that it comes to with operands alone.
    ``old`` names the factors that PyTorch took by place before 1.5, in front of the operands that they scale: ``x.add_(alpha, other)``.
    ``repeat``: as for :func:`kernel`; calls that record gradients are repeated where they leave one entry on the tape. ``splice``: calls with few elements that
    record them are one entry of the tape (see ``clnn/_tensor/splice.py``); it asks for the same, and for one result. ``entry``: a function of the same
    parameters that is one entry, which most other calls that record come to. ``thin``: it mostly ends in one elementwise
    operator, which follows from dtypes and attributes alone (see ``clnn/_tensor/thin.py``); "free": whatever fractions these are. ``seen``: it mostly gives a
    view that follows from shape, strides and numbers (see ``clnn/_tensor/seen.py``).
    """
    def decorate(body):
        called = name or body.__name__
        if "<locals>" in body.__qualname__:                          # made for one of several ranks: Python's errors about arguments say this name
            body.__qualname__ = called
        body = labelled(called, guarded(called, body, bool(repeat or splice)))
        if splice:
            body = spliced(body, _binder(body)[1])
        body = repeated_composite(body, repeat, not splice) if repeat else body
        params = parameter_names(body)
        if entry is not None:
            body.known, body.rest = entry.known, _binder(body)[1].rest
        op = _entry(called, "composite", body, params, aliases=tuple(aliases), doc=body.__doc__ or "", **fields)
        return _finish(op, _with_common_names(op, body, params, old.split(), Thin(thin == "free") if thin else None, {} if seen else None), method, inplace)
    return decorate


__all__ = ["elementwise", "kernel", "view", "composite", "REGISTRY", "config"]
