"""Runs of layers that compute from their input and parameters alone, as one entry of the tape where they have few elements."""
from clnn._tensor.splice import Spliced

__all__ = ["KNOWN", "in_order"]

KNOWN = {}          # class -> (names of its parameters, names of the attributes that its result depends on)
_spliced = Spliced()


def known(parameters="", settings=""):
    """Class decorator: the layer draws no random numbers, keeps no state and reads no values. Classes derived from it may, and are not meant."""
    def decorate(cls):
        KNOWN[cls] = tuple(parameters.split()), tuple(settings.split())
        return cls
    return decorate


def in_order(modules, input):
    """Call ``modules`` one after the other, each on the output of the one before."""
    run = []
    for module in modules:
        own = module.__dict__
        if module.__class__ in KNOWN and not module._maybe_hooked and "forward" not in own and not (own.get("inplace") and not run):
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
        parameters, settings = KNOWN[module.__class__]
        key.append(module.__class__)
        if settings:
            key += [own[name] for name in settings]
        if parameters:
            table = own["_parameters"]
            operands += [table[name] for name in parameters]

    def one_by_one():
        result = input
        for module in run:
            result = module(result)
        return result
    return _spliced.call(one_by_one, operands, key)
