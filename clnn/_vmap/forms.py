"""Batched forms of operators, by name: what :class:`clnn._tensor.foreign.NoStrides` looks up for a batched tensor.

A form gets the samples of its level, the operands as they were given, and computes all samples with one call of the same operator (or a few of others).
Operators made of others need none. What has no form is differentiated and computed through its decomposition, or sample by sample.
"""
from __future__ import annotations

import functools
import inspect

from .._tensor import foreign
from .._tensor.dispatch import kind_of, promote
from .._tensor.grad_mode import enable_grad
from .._tensor.tensor import Tensor
from ..graph.op import REGISTRY
from .batched import BatchedTensor, NotBatched, deepest, stripped, wrap
from .levels import handled, here

FORMS: dict = {}


def fn(name):
    """The operator ``name``."""
    return REGISTRY[name].fn


class Samples:
    """All samples of one level: what a form asks for its operands."""

    __slots__ = ("level", "size", "randomness")

    def __init__(self, level, size):
        self.level, self.size = level, size
        self.randomness = next((how for number, _, how in here.maps if number == level), "different")

    def has(self, t):
        """Whether ``t`` differs between the samples."""
        return isinstance(t, BatchedTensor) and t.level == self.level

    def of(self, t):
        """The samples of ``t`` along its first dimension; ``t`` itself where they do not differ."""
        return t.part if isinstance(t, BatchedTensor) and t.level == self.level else t

    def all(self, t):
        """The samples of ``t`` along its first dimension, repeated where they do not differ; what is no tensor as it is."""
        return stripped(t, self.level, self.size) if isinstance(t, Tensor) else t

    def aligned(self, *values):
        """Operands to broadcast: the samples first, then as many dimensions in each as the widest has."""
        rank = max([t.ndim for t in values if isinstance(t, Tensor)])
        out = []
        for t in values:
            if self.has(t):
                missing = rank - t.ndim
                t = t.part if not missing else t.part.reshape(t.part.shape[0], *(1,) * missing, *t.shape)
            out.append(t)
        return out

    def wrapped(self, result):
        """A result of all samples as batched tensors."""
        if isinstance(result, Tensor):
            return result if self.has(result) else wrap(result, self.level)
        return _each(self.wrapped, result)


def form(name, outermost):
    """The batched form of the operator ``name``, or None: then the operator that called it is the one to ask, unless it is the outermost."""
    rule, op = FORMS.get(name), REGISTRY.get(name)
    if rule is not None and op is None:
        return functools.partial(_formed, name, rule)
    if rule is not None:
        return functools.partial(_formed_or_sampled, op, rule)
    if op is not None and op.kind == "elementwise" and not op.expr.uses_index:
        return functools.partial(_elementwise, op)
    if op is not None and op.decompose is not None:
        return functools.partial(_decomposed, op)
    return functools.partial(sample_by_sample, op.fn) if op is not None and outermost else None


def early(name, args, kwargs):
    """The result for batched operands of an operator that has a form of its own; else NotImplemented: then it computes as ever."""
    if not has_batched(args) and not (kwargs and has_batched(kwargs.values())):
        return NotImplemented
    rule, op = FORMS.get(name), REGISTRY[name]
    if rule is not None:
        return _formed(name, rule, *args, **kwargs)
    return NotImplemented if op.decompose is None else _decomposed(op, *args, **kwargs)


def has_batched(values) -> bool:
    """Whether one of the values, or of the lists among them, is batched."""
    for v in values:
        if v.__class__ is BatchedTensor or (v.__class__ is list or v.__class__ is tuple) and has_batched(v):
            return True
    return False


def ready():
    """Load the forms, for which ``import clnn`` need not wait, and have operators ask for them."""
    from . import layers, rules  # noqa: F401
    foreign.ask_early(early)


def samples_of(values):
    """The samples of the innermost level among ``values``."""
    level = deepest(values)
    return Samples(level, _size(values, level))


def _size(values, level):
    for v in values:
        if isinstance(v, BatchedTensor) and v.level == level:
            return v.part.shape[0]
        if v.__class__ is list or v.__class__ is tuple:
            size = _size(v, level)
            if size is not None:
                return size
    return None


def _formed(name, rule, *args, **kwargs):
    samples = samples_of((*args, *kwargs.values()))
    if not samples.size:
        return _of_none(samples, functools.partial(_formed, name, rule), args, kwargs)
    result = rule(samples, *_bound(name, args, kwargs)) if name in REGISTRY else rule(samples, *args, **kwargs)
    return result if result is NotImplemented else samples.wrapped(result)


def _formed_or_sampled(op, rule, *args, **kwargs):
    """By the form, or sample by sample: what has one was asked for it before, so that it is the operator itself that lacks strides."""
    result = _formed(op.name, rule, *args, **kwargs)
    return result if result is not NotImplemented else sample_by_sample(op.fn, *args, **kwargs)


@functools.lru_cache(maxsize=None)
def _signature(name):
    return inspect.signature(REGISTRY[name].fn)


@functools.lru_cache(maxsize=None)
def _defaults(name):
    """(name, default) of each parameter, and whether the operator takes any number of arguments: then of those that are given by name only."""
    parameters = _signature(name).parameters.values()
    several = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return tuple((p.name, p.default) for p in parameters if not several or p.kind is p.KEYWORD_ONLY), several


def _bound(name, args, kwargs):
    """The arguments by place, with defaults."""
    defaults, several = _defaults(name)
    if several and not kwargs:
        return (*args, *[d for _, d in defaults])
    if not several and (len(args) == len(defaults) or all(d is not inspect.Parameter.empty or n in kwargs for n, d in defaults[len(args):])) \
            and not kwargs.keys() - {n for n, _ in defaults[len(args):]}:
        return (*args, *[kwargs.get(n, d) for n, d in defaults[len(args):]])
    bound = _signature(name).bind(*args, **kwargs)
    bound.apply_defaults()
    return (*bound.args, *bound.kwargs.values())


def _elementwise(op, *args, **kwargs):
    """Operands broadcast with the samples first, promoted as those of one sample."""
    values = (*args, *kwargs.values())
    samples = samples_of(values)
    operands = samples.aligned(*values)
    kinds = tuple([kind_of(v) for v in values])
    compute = promote(op, kinds)[0]
    if promote(op, tuple([kind_of(v) for v in operands]))[0] is not compute:      # numbers of no dimension have one now
        operands = [v.to(compute) if isinstance(v, Tensor) else v for v in operands]
    return samples.wrapped(op.fn(*operands))


def _decomposed(op, *args, **kwargs):
    result = op.decompose(**dict(zip(op.params, _bound(op.name, args, kwargs))))
    if result.__class__ is tuple:
        return result[0] if op.public == 1 else result[:op.public]
    return result


def _of_none(samples, call, args, kwargs):
    """What ``call`` gives for no samples: what it gives for one of zeros, without that. Forms need not think of it."""
    one = Samples(samples.level, 1)

    def filled(v):
        return one.wrapped(fn("cat")([v.part, v.part.new_zeros((1, *v.part.shape[1:]))])) if samples.has(v) else _each(filled, v)

    def emptied(v):
        return samples.wrapped(v.part[:0]) if one.has(v) else _each(emptied, v)
    return emptied(call(*map(filled, args), **{k: filled(v) for k, v in kwargs.items()}))


def _each(change, value):
    """A list or tuple of changed items; anything else as it is."""
    if not (isinstance(value, (list, tuple)) and any([isinstance(v, (Tensor, list, tuple)) for v in value])):
        return value
    items = [change(v) for v in value]
    return type(value)(items) if type(value) in (list, tuple) else type(value)(*items)


def sample_by_sample(call, *args, **kwargs):
    """``call`` for one sample after the other, and the results side by side."""
    samples = samples_of((*args, *kwargs.values()))
    if not samples.size:
        return _of_none(samples, functools.partial(sample_by_sample, call), args, kwargs)
    results = []
    for i in handled(samples):
        results.append(call(*_sample(args, samples, i), **{k: _sample(v, samples, i) for k, v in kwargs.items()}))
    return samples.wrapped(_side_by_side(results))


def _sample(value, samples, i):
    if samples.has(value):
        return value.part.select(0, i)
    if value.__class__ is list or value.__class__ is tuple:
        return type(value)([_sample(v, samples, i) for v in value])
    return value


def _side_by_side(results):
    first = results[0]
    if isinstance(first, Tensor):
        return fn("stack")(results)
    if isinstance(first, (tuple, list)):
        items = [_side_by_side([r[k] for r in results]) for k in range(len(first))]
        return type(first)(items) if type(first) in (tuple, list) else type(first)(*items)
    return first


def by_samples(node, grads, needed):
    """The gradients that a node of the tape gives for batched ones: through the decomposition of its operator, or sample by sample."""
    op = getattr(node, "op", None)
    if getattr(op, "decompose", None) is not None and hasattr(node, "_through_decomposition"):
        try:
            with enable_grad():
                return [None if g is None else g.detach() for g in node._through_decomposition(grads, needed)]
        except NotBatched:
            pass
    samples, rows = samples_of(grads), []
    for i in range(samples.size):
        rows.append(node.apply(_sample(list(grads), samples, i), needed))
    return [None if column[0] is None else samples.wrapped(fn("stack")(list(column))) for column in zip(*rows)]
