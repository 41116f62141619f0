"""The linear layer that rounds its weight."""
from __future__ import annotations

from clnn import nn

from ... import intrinsic as nni

__all__ = ["Linear"]


def rounding(qconfig, device=None, dtype=None):
    """What rounds the weight, of a setting; refuses layers without one."""
    if not qconfig:
        raise AssertionError("qconfig must be provided for QAT module")
    kwargs = {k: v for k, v in (("device", device), ("dtype", dtype)) if v is not None}
    try:
        return qconfig.weight(factory_kwargs=kwargs) if kwargs else qconfig.weight()
    except TypeError:
        return qconfig.weight()


def checked(cls, mod, kinds):
    """The float layer of ``mod``, which may be fused with another; refuses other classes and layers without a setting."""
    if type(mod) not in kinds:
        raise AssertionError(f"qat.{cls.__name__}.from_float only works for {[k.__name__ for k in kinds]}, got {type(mod).__name__}")
    if not getattr(mod, "qconfig", None):
        raise AssertionError("Input float module must have a valid qconfig")
    return mod[0] if isinstance(mod, nni._FusedModule) else mod


class Linear(nn.Linear):
    """``nn.Linear`` whose weight is rounded by ``weight_fake_quant``.

    Args:
        in_features, out_features, bias: as of ``nn.Linear``.
        qconfig: its ``weight`` makes what rounds.

    Example::

        >>> clnn.ao.nn.qat.Linear(2, 3, qconfig=clnn.ao.quantization.default_qat_qconfig)(clnn.ones(1, 2)).shape
        clnn.Size([1, 3])
    """

    _FLOAT_MODULE = nn.Linear

    def __init__(self, in_features, out_features, bias=True, qconfig=None, device=None, dtype=None):
        super().__init__(in_features, out_features, bias, device=device, dtype=dtype)
        self.qconfig = qconfig
        self.weight_fake_quant = rounding(qconfig, device, dtype)

    def forward(self, input):
        return nn.functional.linear(input, self.weight_fake_quant(self.weight), self.bias)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The layer of a float one, with the same parameters."""
        qconfig, inner = getattr(mod, "qconfig", None), checked(cls, mod, (nn.Linear, nn.modules.linear.NonDynamicallyQuantizableLinear, nni.LinearReLU))
        made = cls(inner.in_features, inner.out_features, bias=inner.bias is not None, qconfig=qconfig)
        made.weight, made.bias = inner.weight, inner.bias
        return made

    def to_float(self):
        """The float layer, with the same parameters."""
        made = nn.Linear(self.in_features, self.out_features, self.bias is not None)
        made.weight, made.bias = nn.Parameter(self.weight.detach()), None if self.bias is None else nn.Parameter(self.bias.detach())
        return made.train(self.training)
