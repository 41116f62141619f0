"""Runs of layers that compute from their input and parameters alone, as one entry of the tape where they have few elements."""
from itertools import islice

from clnn._tensor import splice
from clnn._tensor.tensor import Tensor
from clnn.ops.random import in_sequence

from ._hooks import hooked

__all__ = ["KNOWN", "in_order", "known"]

KNOWN = {}          # class -> (names of its parameters and buffers, names of the attributes that its result depends on, what it does in training)
RUNS = set()        # forward methods that are :func:`in_order` of the module's children
_spliced = splice.Spliced()
_shapes = {}        # kind of run -> shapes of what its layers draw
_MOST = 1024        # kinds that are remembered


class InTraining:
    """What a layer does in training besides computing its result.

    ``draws``: whether it takes a tensor that :meth:`draw` gives from the sequence of random numbers. ``moves``: how many new values of its buffers
    :meth:`compute` gives behind the result, which :meth:`keep` puts where they belong.
    """

    draws, moves = False, 0

    def takes(self, module) -> bool:
        """Whether a run may have the module as it is set."""
        return False

    def draw(self, module, shape, device):
        raise NotImplementedError

    def compute(self, module, input, *drawn):
        """The result, or (result, new values of buffers)."""
        raise NotImplementedError

    def keep(self, module, *values):
        raise NotImplementedError


def known(tensors="", settings="", training=None):
    """Class decorator: the layer draws no random numbers, keeps no state and reads no values, or only as ``training`` says, an :class:`InTraining`. Classes
    derived from it may, and are not meant."""
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
    key, operands, training, draws = [], [input], False, False
    for module in run:
        own = module.__dict__
        tensors, settings, acts = KNOWN[module.__class__]
        key.append(module.__class__)
        if settings:
            key += [own[name] for name in settings]
        if acts is not None:
            key.append(own["training"])
            training, draws = training or own["training"], draws or own["training"] and acts.draws
        table = own["_parameters"]
        for name in tensors:
            operands.append(table[name] if name in table else getattr(module, name))        # a buffer, or what a program put in a parameter's place
    if not training:
        return _spliced.call(lambda: _one_by_one(run, input), operands, key)
    drawn = _drawn(run, input, operands, key) if draws else []
    if drawn is None:
        return _noted(run, input, operands, key)
    result = _spliced.call(lambda: _in_training(run, input, drawn), operands + drawn, key)
    return _kept(run, result) if result.__class__ is tuple else result


def _one_by_one(run, result):
    for module in run:
        result = module(result)
    return result


def _acting(run):
    """(module, what it does in training), of those that do something."""
    return [(module, KNOWN[module.__class__][2]) for module in run if KNOWN[module.__class__][2] is not None and module.training]


def _in_training(run, result, drawn):
    """The result, or (result, new values of all buffers)."""
    acting, drawn, moved = dict(_acting(run)), iter(drawn), []
    for module in run:
        acts = acting.get(module)
        if acts is None:
            result = module(result)
            continue
        result = acts.compute(module, result, *islice(drawn, int(acts.draws)))
        if acts.moves:
            result, *values = result
            moved += values
    return (result, *moved) if moved else result


def _kept(run, results):
    result, *values = results
    values = iter(values)
    for module, acts in _acting(run):
        if acts.moves:
            acts.keep(module, *islice(values, acts.moves))
    return result


def _kind(input, operands, key):
    return (input._strides, input.dtype, input._storage.device, *key, *[None if t is None else t.shape for t in operands])


def _drawn(run, input, operands, key):
    """What the layers draw, in their order; None where its shapes are not known, or the layers are to be called as they are."""
    if input.__class__ is not Tensor or not splice.usual() or not in_sequence(input):
        return None
    shapes = _shapes.get(_kind(input, operands, key))
    if shapes is None:
        return None
    device = input._storage.device
    return [acts.draw(module, shape, device) for (module, acts), shape in zip([at for at in _acting(run) if at[1].draws], shapes)]


def _noted(run, input, operands, key):
    """The result of the modules called as they are; the shapes that some draw are noted for the next run of this kind."""
    acting, shapes, result = dict(_acting(run)), [], input
    for module in run:
        if module in acting and acting[module].draws:
            plain = result.__class__ is Tensor and result._dense and result._drawn is None
            shapes.append(result.shape if plain else None)
        result = module(result)
    if input.__class__ is Tensor and None not in shapes and splice.usual() and in_sequence(input):
        if len(_shapes) > _MOST:
            _shapes.clear()
        _shapes[_kind(input, operands, key)] = shapes
    return result
