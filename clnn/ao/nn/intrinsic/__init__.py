"""Several layers in one, as ``fuse_modules`` makes them: each is a ``Sequential`` that a conversion takes as a whole."""
from __future__ import annotations

import importlib

from clnn import nn
from clnn.nn.utils.parametrize import type_before_parametrizations

_LAYERS = ["ConvBn1d", "ConvBn2d", "ConvBn3d", "ConvBnReLU1d", "ConvBnReLU2d", "ConvBnReLU3d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearReLU", "BNReLU2d",
           "BNReLU3d", "LinearBn1d", "LinearLeakyReLU", "LinearTanh", "ConvAdd2d", "ConvAddReLU2d"]
__all__ = [*_LAYERS, "qat", "quantized"]


class _FusedModule(nn.Sequential):
    """What all of them are: conversions do not look inside."""


def _fused(name, *kinds):
    """A class for these layers in a row."""
    def __init__(self, *modules):
        found = tuple(type_before_parametrizations(m) for m in modules)
        if len(found) != len(kinds) or not all(issubclass(a, b) for a, b in zip(found, kinds)):
            raise AssertionError(f"Incorrect types for input modules: {', '.join(map(str, modules))}")
        nn.Sequential.__init__(self, *modules)
    made = {nn.Conv1d: "nn.Conv1d(1, 2, 3)", nn.Conv2d: "nn.Conv2d(1, 2, 3)", nn.Conv3d: "nn.Conv3d(1, 2, 3)", nn.Linear: "nn.Linear(1, 2)", nn.ReLU: "nn.ReLU()",
            nn.LeakyReLU: "nn.LeakyReLU()", nn.Tanh: "nn.Tanh()", nn.BatchNorm1d: "nn.BatchNorm1d(2)", nn.BatchNorm2d: "nn.BatchNorm2d(2)",
            nn.BatchNorm3d: "nn.BatchNorm3d(2)"}
    text = f"""{' and '.join(k.__name__ for k in kinds)} as one.

    Example::

        >>> len(clnn.ao.nn.intrinsic.{name}({', '.join(made[k] for k in kinds)}))
        {len(kinds)}
    """
    return type(name, (_FusedModule,), {"__init__": __init__, "__doc__": text, "__module__": __name__})


for _d in "123":
    _conv, _bn = getattr(nn, f"Conv{_d}d"), getattr(nn, f"BatchNorm{_d}d")
    globals().update({f"ConvBn{_d}d": _fused(f"ConvBn{_d}d", _conv, _bn), f"ConvBnReLU{_d}d": _fused(f"ConvBnReLU{_d}d", _conv, _bn, nn.ReLU),
                      f"ConvReLU{_d}d": _fused(f"ConvReLU{_d}d", _conv, nn.ReLU)})
BNReLU2d, BNReLU3d = _fused("BNReLU2d", nn.BatchNorm2d, nn.ReLU), _fused("BNReLU3d", nn.BatchNorm3d, nn.ReLU)
LinearReLU, LinearBn1d = _fused("LinearReLU", nn.Linear, nn.ReLU), _fused("LinearBn1d", nn.Linear, nn.BatchNorm1d)
LinearLeakyReLU, LinearTanh = _fused("LinearLeakyReLU", nn.Linear, nn.LeakyReLU), _fused("LinearTanh", nn.Linear, nn.Tanh)


class ConvAdd2d(_FusedModule):
    """A convolution to whose result another tensor is added.

    Example::

        >>> layer = clnn.ao.nn.intrinsic.ConvAdd2d(nn.Conv2d(1, 2, 1), clnn.add)
        >>> layer(clnn.ones(1, 1, 2, 2), clnn.ones(1, 2, 2, 2)).shape
        clnn.Size([1, 2, 2, 2])
    """

    def __init__(self, conv, add):
        super().__init__(conv)
        self.add = add

    def forward(self, x1, x2):
        return self.add(self[0](x1), x2)


class ConvAddReLU2d(_FusedModule):
    """:class:`ConvAdd2d` and ReLU.

    Example::

        >>> layer = clnn.ao.nn.intrinsic.ConvAddReLU2d(nn.Conv2d(1, 2, 1), clnn.add, nn.ReLU())
        >>> layer(clnn.ones(1, 1, 2, 2), clnn.ones(1, 2, 2, 2)).shape
        clnn.Size([1, 2, 2, 2])
    """

    def __init__(self, conv, add, relu):
        super().__init__(conv)
        self.add, self.relu = add, relu

    def forward(self, x1, x2):
        return self.relu(self.add(self[0](x1), x2))


def __getattr__(name):
    if name in ("qat", "quantized"):
        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
