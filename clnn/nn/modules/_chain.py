"""Runs of layers that compute from their input and parameters alone, as one entry of the tape where they have few elements."""
from functools import partial
from itertools import islice

from clnn._tensor.splice import FEW, Spliced
from clnn._tensor.tensor import Tensor

from ._forward import PLAIN, form_of, small, told
from ._hooks import HookMixin, hooked

__all__ = ["CALL", "KNOWN", "InTraining", "alone", "as_one", "in_order", "known", "parted"]

KNOWN = {}          # class -> (names of parameters and buffers, names of attributes that its result depends on, what it does in training, its forward method)
PARTS = {}          # the same of layers that have others in them: (names of parameters, names of attributes)
RUNS = set()        # forward methods that are :func:`in_order` of the module's children
_ALL = ("*",)        # in place of the names of parameters
CALL = HookMixin.__call__            # programs put others in its place, and in that of forward methods: these see every layer then
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
        KNOWN[cls] = tuple(tensors.split()), tuple(settings.split()), training, cls.forward
        return cls
    return decorate


def parted(tensors="", settings=""):
    """Class decorator: the layer is as :func:`known` asks if those in it are."""
    def decorate(cls):
        PARTS[cls] = tuple(tensors.split()), tuple(settings.split()), None, getattr(cls, "forward", None)
        return cls
    return decorate


def as_one(module, forward, inputs, *about):
    """``forward()`` of a layer that is :func:`parted`: its result follows from the tensors ``inputs`` (None: missing), from ``about``, and from what the
    layers in it read."""
    operands, key = list(inputs), list(about)
    return _spliced.call(forward, operands, key) if module.__class__.__call__ is CALL and _told(module, operands, key) else forward()


def of_program(module, args, kwargs):
    """``module.forward(*args, **kwargs)`` of a program's own module, as one entry where it does no more than layers do (see ``_forward``)."""
    kind = module.__class__
    if form_of(kind) is None:
        kind._module_as_one = None
    elif "forward" not in module.__dict__ and kind.__call__ is CALL and small(module):
        operands, key = [], [len(args), *kwargs]
        for value in (*args, *kwargs.values()) if kwargs else args:
            kind = value.__class__
            if isinstance(value, Tensor):
                operands.append(value)
                key.append(Tensor)
                if kind is Tensor and value._numel > FEW:
                    break
            elif kind in PLAIN:
                key += (value if kind is not float or value else str(value), kind)
            else:
                break
        else:
            if operands and _told(module, operands, key):
                return _spliced.call(partial(module.forward, *args, **kwargs), operands, key)
    return module.forward(*args, **kwargs)


def _told(module, operands, key):
    """Whether all that the result of a module depends on could be added to ``operands`` and ``key``."""
    own, kind = module.__dict__, module.__class__
    of_class = KNOWN.get(kind) or PARTS.get(kind)
    if of_class is not None:
        if of_class[2] is not None and own["training"] or getattr(kind, "forward", None) is not of_class[3]:
            return False
        _describe(own, module, of_class, operands, key)
    elif kind.__call__ is not CALL:
        return False
    elif kind.forward in RUNS:
        key.append(kind)
    else:
        form = form_of(kind)
        if form is None or not told(module, form, operands, key):
            return False
    for child in own["_modules"].values():
        if child is None or "forward" in child.__dict__ or child._maybe_hooked and hooked(child) or not _told(child, operands, key):
            return False
    return True


def _describe(own, module, of_class, operands, key):
    """Add what the result of a layer depends on besides its input."""
    tensors, settings, training, _ = of_class
    key.append(module.__class__)
    if settings:
        key += [own[name] for name in settings]
    if training is not None:
        key.append(own["training"])
    table = own["_parameters"]
    if tensors == _ALL:
        key += table
        operands += table.values()
        return
    for name in tensors:
        operands.append(table[name] if name in table else getattr(module, name))        # a buffer, or what a program put in a parameter's place


def in_order(modules, input):
    """Call ``modules`` one after the other, each on the output of the one before."""
    run, about = [], []
    for module in _flat(modules):
        kind, own = module.__class__, module.__dict__
        of_class = KNOWN.get(kind)
        if of_class is not None and not ("forward" in own or own.get("inplace") and not run) and not (module._maybe_hooked and hooked(module)):
            training = of_class[2]
            if kind.forward is of_class[3] and (training is None or not own["training"] or training.takes(module) and not any([m is module for m in run])):
                run.append(module)
                about.append((own, of_class))
                continue
        if run:
            input, run, about = run[0](input) if len(run) == 1 else _together(run, about, input), [], []
        input = module(input)
    return input if not run else run[0](input) if len(run) == 1 else _together(run, about, input)


def _flat(modules):
    """The modules, with the children of containers in their place."""
    for module in modules:
        kind = module.__class__
        if kind not in KNOWN and getattr(kind, "forward", None) in RUNS and kind.__call__ is CALL and "forward" not in module.__dict__ \
                and not (module._maybe_hooked and hooked(module)):
            yield from _flat(module._modules.values())
        else:
            yield module


def alone(module, input):
    """The result of one layer that is :func:`known`, which calls this in place of what it would do itself."""
    return _together([module], [(module.__dict__, KNOWN[module.__class__])], input)


def _together(run, about, input):
    key, operands, moves = [], [input], False
    for module, (own, of_class) in zip(run, about):
        _describe(own, module, of_class, operands, key)
        moves = moves or of_class[2] is not None and own["training"]
    if not moves:
        return _spliced.call(partial(_one_by_one, run, about, input), operands, key)
    return _kept(run, *_spliced.call(partial(_in_training, run, input), operands, key))


def _one_by_one(run, about, result):
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
