"""Runs of layers that compute from their input and parameters alone, as one entry of the tape where they have few elements."""
from clnn._tensor.splice import Spliced

from ._hooks import hooked

__all__ = ["KNOWN", "in_order"]

KNOWN = {}          # class -> (names of its parameters and buffers, names of the attributes that its result depends on, whether that holds in evaluation only)
_spliced = Spliced()


def known(tensors="", settings="", resting=False):
    """Class decorator: the layer draws no random numbers, keeps no state and reads no values, in evaluation at least (``resting``). Classes derived from it
    may, and are not meant."""
    def decorate(cls):
        KNOWN[cls] = tuple(tensors.split()), tuple(settings.split()), resting
        return cls
    return decorate


def in_order(modules, input):
    """Call ``modules`` one after the other, each on the output of the one before."""
    run = []
    for module in modules:
        own, of_class = module.__dict__, KNOWN.get(module.__class__)
        if of_class is not None and not (of_class[2] and own["training"] or "forward" in own or own.get("inplace") and not run) \
                and not (module._maybe_hooked and hooked(module)):
            run.append(module)
            continue
        if run:
            input, run = _together(run, input), []
        input = module(input)
    return _together(run, input) if run else input


def _together(run, input):
    if len(run) == 1:
        return run[0](input)
    key, operands = [], [input]
    for module in run:
        own = module.__dict__
        tensors, settings, _ = KNOWN[module.__class__]
        key.append(module.__class__)
        if settings:
            key += [own[name] for name in settings]
        table = own["_parameters"]
        for name in tensors:
            operands.append(table[name] if name in table else getattr(module, name))        # a buffer, or what a program put in a parameter's place

    def one_by_one():
        result = input
        for module in run:
            result = module(result)
        return result
    return _spliced.call(one_by_one, operands, key)
