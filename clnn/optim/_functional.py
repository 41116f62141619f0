"""Optimizers as functions of lists: parameters, gradients and state are given with each call (`torch.optim.adam.adam` and its kin)."""

import functools
import importlib
import inspect

from clnn._tensor.grad_mode import is_grad_enabled, set_grad_enabled
from clnn._tensor.multi import foreach_update
from clnn._tensor.tensor import Tensor
from clnn.optim._rule import RuleOptimizer, parts

# Options that a group of an optimizer holds as a pair.
_PAIRS = {"betas": ("beta1", "beta2"), "etas": ("etaminus", "etaplus"), "step_sizes": ("step_size_min", "step_size_max")}


def functional(kind, states, declared, **fixed):
    """The function of the algorithm of the class `kind`; the lists after the gradients are the states with the names in `states`, in order.

    `declared` is a function that has the parameters and no body; `fixed` are options that its callers do not give.
    """
    states, signature = states.split(), inspect.signature(declared)
    declared.__name__ = declared.__qualname__ = kind.__name__.lower()

    @functools.wraps(declared)
    def function(*args, **kwargs):
        declared(*args, **kwargs)                               # whose errors name the function
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        params, grads, *rest = bound.arguments.values()
        lists, group = dict(zip(states, rest)), {**fixed, **dict(zip(list(signature.parameters)[2 + len(states):], rest[len(states):]))}
        if not all(isinstance(t, Tensor) for t in lists.get("step", ())):
            raise RuntimeError("API has changed, `state_steps` argument must contain a list of singleton tensors")
        for pair, names in _PAIRS.items():
            if names[0] in group:
                group[pair] = tuple(group[n] for n in names)
        with set_grad_enabled(is_grad_enabled() and bool(group.get("differentiable", False))):
            _step(kind, params, grads, lists, group)
    function.__doc__ = f"One step of `{kind.__name__}` for lists of parameters, gradients and state, in place."
    return function


def _step(kind, params, grads, lists, group):
    optimizer = object.__new__(kind)                            # for the rules of the algorithm, which ask a group only
    optimizer.state = {}
    names, batches = optimizer.slots(group), {}
    for i, (p, g) in enumerate(zip(params, grads)):
        if g.is_sparse:
            held = optimizer.state[p] = {n: values[i] for n, values in lists.items() if i < len(values) and values[i] is not None}
            optimizer.sparse_step(p, g, group)
            for n, value in held.items():
                _put(lists[n], i, value)
            continue
        fresh = [n for n in names if lists[n][i] is None]       # SGD's buffers before the first step
        for n in fresh:
            lists[n][i] = RuleOptimizer.new_slot(optimizer, n, p, group)
        batches.setdefault((bool(fresh), *[float(lists[n][i]) for n in kind.counters]), []).append(i)
    for (fresh, *values), places in batches.items():
        scalars, flags, advanced = optimizer.plan(group, fresh, **dict(zip(kind.counters, values)))
        rows = [(params[i], grads[i], *[lists[n][i] for n in names]) for i in places]
        foreach_update(kind.rule, [tuple(map(parts, row)) if row[0].dtype.is_complex else row for row in rows], scalars, flags)
        for n, value in advanced.items():
            for i in places:
                lists[n][i].detach().fill_(value)


def _put(values, i, value):
    """Leave a state in its list: counters are tensors that the caller keeps."""
    if isinstance(value, Tensor):
        values[i] = value
    else:
        values[i].fill_(value)


def __getattr__(name):
    """All functions, which stand beside their classes, are found here too."""
    module = "adam" if name == "adamw" else name
    if module in "adadelta adagrad adam adamax asgd nadam radam rmsprop rprop sgd".split():
        return getattr(importlib.import_module(f"clnn.optim.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
