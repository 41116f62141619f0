"""The layers, one file per family."""
from . import (activation, adaptive, attention, batchnorm, container, conv, distance, dropout, flatten, fold, instancenorm, linear, loss,
               normalization, padding, pixelshuffle, pooling, rnn, sparse, transformer, upsampling)
from ._constants import give as _give
from .module import Module

_FAMILIES = (linear, conv, activation, attention, loss, container, pooling, batchnorm, instancenorm, normalization, dropout, padding,
             sparse, rnn, pixelshuffle, upsampling, distance, fold, adaptive, transformer, flatten)

__all__ = ["Module"]
for _family in _FAMILIES:
    for _name in _family.__all__:
        globals()[_name] = getattr(_family, _name)
        __all__.append(_name)
_give(globals())
del _family, _name
