"""Runs of layers that compute from their input and parameters alone, as one entry of the tape where they have few elements."""
from itertools import islice

from clnn._tensor.splice import Spliced

from ._hooks import hooked

__all__ = ["KNOWN", "in_order", "known"]

KNOWN = {}          # class -> (names of its parameters and buffers, names of the attributes that its result depends on, what it does in training)
RUNS = set()        # forward methods that are :func:`in_order` of the module's children
_spliced = Spliced()


class InTraining:
    """What a layer does in training besides computing its result: ``moves`` is how many of its buffers get new values."""

    moves = 0

    def takes(self, module) -> bool:
        """Whether a run may have the module as it is set."""
        return False

    def compute(self, module, input):
        """(result, new values of the buffers)."""
        raise NotImplementedError

    def keep(self, module, *values):
        """Put the new values where they belong."""
        raise NotImplementedError


def known(tensors="", settings="", training=None):
    """Class decorator: the layer draws no random numbers but those that are ``drawn``, reads no values and keeps no state, in training only as ``training``
    says, an :class:`InTraining`. Classes derived from it may do more, and are not meant."""
    def decorate(cls):
        KNOWN[cls] = tuple(tensors.split()), tuple(settings.split()), training
        return cls
    return decorate


def in_order(modules, input):
    """Call ``modules`` one after the other, each on the output of the one before."""
    run = []
    for module in _flat(modules):
        own, of_class = module.__dict__, KNOWN.get(module.__class__)
        if of_class is not None and not ("forward" in own or own.get("inplace") and not run) and not (module._maybe_hooked and hooked(module)):
            training = of_class[2]
            if training is None or not own["training"] or training.takes(module) and not any([other is module for other in run]):
                run.append(module)
                continue
        if run:
            input, run = _together(run, input), []
        input = module(input)
    return _together(run, input) if run else input


def _flat(modules):
    """The modules, with the children of containers in their place."""
    for module in modules:
        kind = module.__class__
        if kind not in KNOWN and getattr(kind, "forward", None) in RUNS and "forward" not in module.__dict__ and not (module._maybe_hooked and hooked(module)):
            yield from _flat(module._modules.values())
        else:
            yield module


def _together(run, input):
    if len(run) == 1:
        return run[0](input)
    key, operands, moves = [], [input], False
    for module in run:
        own = module.__dict__
        tensors, settings, training = KNOWN[module.__class__]
        key.append(module.__class__)
        if settings:
            key += [own[name] for name in settings]
        if training is not None:
            key.append(own["training"])
            moves = moves or own["training"]
        table = own["_parameters"]
        for name in tensors:
            operands.append(table[name] if name in table else getattr(module, name))        # a buffer, or what a program put in a parameter's place
    if not moves:
        return _spliced.call(lambda: _one_by_one(run, input), operands, key)
    return _kept(run, *_spliced.call(lambda: _in_training(run, input), operands, key))


def _one_by_one(run, result):
    for module in run:
        result = module(result)
    return result


def _acting(run):
    """(module, what it does in training), of those that do something."""
    return [(module, KNOWN[module.__class__][2]) for module in run if KNOWN[module.__class__][2] is not None and module.training]


def _in_training(run, result):
    """(result, new values of all buffers)."""
    acting, moved = dict(_acting(run)), []
    for module in run:
        if module in acting:
            result, *values = acting[module].compute(module, result)
            moved += values
        else:
            result = module(result)
    return (result, *moved)


def _kept(run, result, *values):
    values = iter(values)
    for module, acts in _acting(run):
        acts.keep(module, *islice(values, acts.moves))
    return result
