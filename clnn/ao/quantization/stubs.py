"""The two ends of a model that is to be quantised: stubs that observe, until a conversion puts others in their place."""
from __future__ import annotations

from ...nn import Module

__all__ = ["QuantStub", "DeQuantStub", "QuantWrapper"]


class _Stub(Module):
    def __init__(self, qconfig=None):
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x):
        return x


class QuantStub(_Stub):
    """Returns its input: the place at which a quantised model would leave floats.

    Args:
        qconfig: kept as an attribute when given.

    Example::

        >>> clnn.ao.quantization.QuantStub()(clnn.ones(2))
        tensor([1., 1.])
    """


class DeQuantStub(_Stub):
    """Returns its input: the place at which a quantised model would come back to floats.

    Example::

        >>> clnn.ao.quantization.DeQuantStub()(clnn.ones(2))
        tensor([1., 1.])
    """


class QuantWrapper(Module):
    """A module between the two stubs.

    Example::

        >>> clnn.ao.quantization.QuantWrapper(clnn.nn.ReLU())(clnn.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """

    def __init__(self, module):
        super().__init__()
        if getattr(module, "qconfig", None):
            self.qconfig = module.qconfig
        self.add_module("quant", QuantStub())
        self.add_module("dequant", DeQuantStub())
        self.add_module("module", module)
        self.train(module.training)

    def forward(self, X):
        return self.dequant(self.module(self.quant(X)))
