"""Convolutions that round their weights."""
from __future__ import annotations

from clnn import nn

from ... import intrinsic as nni
from .linear import checked, rounding

__all__ = ["Conv1d", "Conv2d", "Conv3d"]


class _Rounding:
    """What convolutions that round do. Subclasses name the float class and the fused one that they are made of."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode="zeros", qconfig=None,
                 device=None, dtype=None):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device=device, dtype=dtype)
        self.qconfig = qconfig
        self.weight_fake_quant = rounding(qconfig, device, dtype)

    def forward(self, input):
        return self._conv_forward(input, self.weight_fake_quant(self.weight), self.bias)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The layer of a float one, with the same parameters."""
        qconfig, inner = getattr(mod, "qconfig", None), checked(cls, mod, cls._FLOAT_MODULES)
        made = cls(inner.in_channels, inner.out_channels, inner.kernel_size, inner.stride, inner.padding, inner.dilation, inner.groups, inner.bias is not None,
                   inner.padding_mode, qconfig=qconfig)
        made.weight, made.bias = inner.weight, inner.bias
        return made

    def to_float(self):
        """The float layer, with the same parameters."""
        made = self._PLAIN(self.in_channels, self.out_channels, self.kernel_size, self.stride, self.padding, self.dilation, self.groups, self.bias is not None,
                           self.padding_mode)
        made.weight, made.bias = nn.Parameter(self.weight.detach()), None if self.bias is None else nn.Parameter(self.bias.detach())
        return made.train(self.training)


def kind(name, dims, fused, after="", bases=(), members=None):
    """A class of convolutions that round."""
    plain, size = getattr(nn, f"Conv{dims}d"), (1, 2) + (5,) * dims
    text = f"""``nn.Conv{dims}d`` {after}whose weight is rounded by ``weight_fake_quant``.

    Args:
        as of ``nn.Conv{dims}d``, and ``qconfig``, whose ``weight`` makes what rounds.

    Example::

        >>> layer = clnn.ao.nn.{'intrinsic.' * bool(after)}qat.{name}(2, 3, 3, qconfig=clnn.ao.quantization.default_qat_qconfig)
        >>> layer(clnn.ones{size}).shape
        clnn.Size({[1, 3] + [3] * dims})
    """
    return type(name, (_Rounding, plain, *bases), {"_PLAIN": plain, "_FLOAT_MODULE": plain, "_FLOAT_MODULES": fused, "__doc__": text, "__module__": __name__,
                                           **(members or {})})


Conv1d, Conv2d, Conv3d = (kind(f"Conv{d}d", d, (getattr(nn, f"Conv{d}d"), getattr(nni, f"ConvReLU{d}d"))) for d in (1, 2, 3))
