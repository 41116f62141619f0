"""Several layers in one, for training: weights are rounded after they were scaled as batch normalisation will scale them."""
from __future__ import annotations

import clnn
from clnn import nn

from .. import intrinsic as nni
from .. import qat as nnqat
from ..qat.modules.conv import kind as rounding_conv
from ..qat.modules.linear import checked, rounding

__all__ = ["LinearReLU", "LinearBn1d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "ConvBn1d", "ConvBn2d", "ConvBn3d", "ConvBnReLU1d", "ConvBnReLU2d",
           "ConvBnReLU3d", "update_bn_stats", "freeze_bn_stats"]


class _WithBn:
    """What a layer followed by batch normalisation does, which is its member ``bn``."""

    def _attach(self, bn, freeze_bn, qconfig):
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig, self.freeze_bn = qconfig, freeze_bn if self.training else True
        self.bn, self.weight_fake_quant = bn, rounding(qconfig)
        self.reset_bn_parameters()
        if self.freeze_bn:
            self.freeze_bn_stats()
        else:
            self.update_bn_stats()

    def reset_running_stats(self):
        """Forget the statistics."""
        self.bn.reset_running_stats()

    def reset_bn_parameters(self):
        """Start batch normalisation anew."""
        self.bn.reset_running_stats()
        nn.init.uniform_(self.bn.weight)                        # as PyTorch does, whose random numbers a program's data follow
        nn.init.zeros_(self.bn.bias)

    def update_bn_stats(self):
        """Normalise by the batch and keep statistics from now on."""
        self.freeze_bn, self.bn.training = False, True
        return self

    def freeze_bn_stats(self):
        """Normalise by the statistics from now on, and leave them."""
        self.freeze_bn, self.bn.training = True, False
        return self

    def train(self, mode=True):
        """Frozen statistics stay so."""
        self.training = mode
        if not self.freeze_bn:
            for module in self.children():
                module.train(mode)
        return self

    def _scaled(self, compute):
        """Batch normalisation of ``compute`` of the weight, which is rounded as it will be scaled; the result is scaled back before."""
        factor = self.bn.weight / clnn.sqrt(self.bn.running_var + self.bn.eps)
        weight = self.weight_fake_quant(self.weight * factor.reshape(-1, *[1] * (self.weight.ndim - 1)))
        shape = (1, -1, *[1] * (self.weight.ndim - 2))
        result = compute(weight) / factor.reshape(shape)
        return self.bn(result if self.bias is None else result + self.bias.reshape(shape))

    def _take(self, mod):
        """The parameters and statistics of a float pair."""
        first, bn = mod[0], mod[1]
        self.weight, self.bias = first.weight, first.bias
        for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
            setattr(self.bn, name, getattr(bn, name))
        return self


class _ConvBn(_WithBn):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=None, padding_mode="zeros", eps=1e-05,
                 momentum=0.1, freeze_bn=False, qconfig=None):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        if bias:
            self.bias = nn.Parameter(clnn.empty(out_channels))
        self._attach(self._BN(out_channels, eps, momentum, True, True), freeze_bn, qconfig)

    def reset_bn_parameters(self):
        """Start batch normalisation and the bias anew."""
        super().reset_bn_parameters()
        if self.bias is not None:
            bound = (self.weight[0].numel() or 1) ** -0.5
            nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, input):
        result = self._scaled(lambda weight: self._conv_forward(input, weight, None))
        return result.relu() if self._relu else result

    def extra_repr(self):
        return self._PLAIN.extra_repr(self)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The layer of a float pair, with the same parameters."""
        conv, bn = checked(cls, mod, (cls._FLOAT_MODULE,)), mod[1]
        return cls(conv.in_channels, conv.out_channels, conv.kernel_size, conv.stride, conv.padding, conv.dilation, conv.groups, conv.bias is not None,
                   conv.padding_mode, bn.eps, bn.momentum, False, mod.qconfig)._take(mod)

    def to_float(self):
        """The convolution for inference, with batch normalisation in it."""
        conv = self._PLAIN(self.in_channels, self.out_channels, self.kernel_size, self.stride, self.padding, self.dilation, self.groups, self.bias is not None,
                           self.padding_mode)
        conv.weight, conv.bias = nn.Parameter(self.weight.detach()), None if self.bias is None else nn.Parameter(self.bias.detach())
        conv.weight, conv.bias = nn.utils.fusion.fuse_conv_bn_weights(conv.weight, conv.bias, self.bn.running_mean, self.bn.running_var, self.bn.eps,
                                                                      self.bn.weight, self.bn.bias)
        made = getattr(nni, f"ConvReLU{type(self).__name__[-2:]}")(conv, nn.ReLU()) if self._relu else conv
        return made.train(self.training)


def _conv_bn(dims, relu):
    name, size = f"ConvBn{'ReLU' * relu}{dims}d", (2, 2) + (5,) * dims
    text = f"""A convolution and batch normalisation{' and ReLU' * relu}, for training with rounding.

    Args:
        as of ``nn.Conv{dims}d`` and ``nn.BatchNorm{dims}d``. ``freeze_bn``: leave the statistics; ``qconfig``: its ``weight`` makes what rounds.

    Example::

        >>> layer = clnn.ao.nn.intrinsic.qat.{name}(2, 3, 3, qconfig=clnn.ao.quantization.default_qat_qconfig)
        >>> layer(clnn.randn{size}).shape
        clnn.Size({[2, 3] + [3] * dims})

    Source: Jacob et al., 2018 (arXiv:1712.05877).
    """
    plain = getattr(nn, f"Conv{dims}d")
    return type(name, (_ConvBn, plain, nni._FusedModule), {"_PLAIN": plain, "_BN": getattr(nn, f"BatchNorm{dims}d"), "_relu": relu, "_FLOAT_MODULE": getattr(nni, name),
                                         "_version": 2, "__doc__": text, "__module__": __name__})


ConvBn1d, ConvBn2d, ConvBn3d = (_conv_bn(d, False) for d in (1, 2, 3))
ConvBnReLU1d, ConvBnReLU2d, ConvBnReLU3d = (_conv_bn(d, True) for d in (1, 2, 3))


def _conv_relu(dims):
    def forward(self, input):
        return self._conv_forward(input, self.weight_fake_quant(self.weight), self.bias).relu()
    fused = getattr(nni, f"ConvReLU{dims}d")
    return rounding_conv(f"ConvReLU{dims}d", dims, (fused,), "and ReLU, ", (nni._FusedModule,), {"forward": forward, "__module__": __name__})


ConvReLU1d, ConvReLU2d, ConvReLU3d = map(_conv_relu, (1, 2, 3))


class LinearReLU(nnqat.Linear, nni._FusedModule):
    """A linear layer and ReLU, whose weight is rounded.

    Example::

        >>> layer = clnn.ao.nn.intrinsic.qat.LinearReLU(2, 3, qconfig=clnn.ao.quantization.default_qat_qconfig)
        >>> layer(clnn.ones(1, 2)).shape
        clnn.Size([1, 3])
    """

    _FLOAT_MODULE = nni.LinearReLU

    def __init__(self, in_features, out_features, bias=True, qconfig=None):
        super().__init__(in_features, out_features, bias, qconfig)

    def forward(self, input):
        return super().forward(input).relu()

    def to_float(self):
        """The float pair, with the same parameters."""
        return nni.LinearReLU(super().to_float(), nn.ReLU()).train(self.training)


class LinearBn1d(_WithBn, nn.Linear, nni._FusedModule):
    """A linear layer and batch normalisation, for training with rounding.

    Example::

        >>> layer = clnn.ao.nn.intrinsic.qat.LinearBn1d(2, 3, qconfig=clnn.ao.quantization.default_qat_qconfig)
        >>> layer(clnn.randn(4, 2)).shape
        clnn.Size([4, 3])
    """

    def __init__(self, in_features, out_features, bias=True, eps=1e-05, momentum=0.1, freeze_bn=False, qconfig=None):
        nn.Linear.__init__(self, in_features, out_features, bias)
        self._attach(nn.BatchNorm1d(out_features, eps, momentum, True, True), freeze_bn, qconfig)

    def forward(self, input):
        return self._scaled(lambda weight: nn.functional.linear(input, weight))

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The layer of a float pair, with the same parameters."""
        linear, bn = checked(cls, mod, (nni.LinearBn1d,)), mod[1]
        return cls(linear.in_features, linear.out_features, linear.bias is not None, bn.eps, bn.momentum, False, mod.qconfig)._take(mod)

    def to_float(self):
        """The linear layer for inference, with batch normalisation in it."""
        made = nn.Linear(self.in_features, self.out_features)
        made.weight, made.bias = nn.utils.fusion.fuse_linear_bn_weights(self.weight, self.bias, self.bn.running_mean, self.bn.running_var, self.bn.eps,
                                                                        self.bn.weight, self.bn.bias)
        return made.train(self.training)


def update_bn_stats(mod):
    """Have ``mod`` keep statistics, if it is a layer with batch normalisation: ``model.apply(update_bn_stats)``.

    Example::

        >>> _ = nn.ReLU().apply(clnn.ao.nn.intrinsic.qat.update_bn_stats)
    """
    if isinstance(mod, _WithBn):
        mod.update_bn_stats()


def freeze_bn_stats(mod):
    """Have ``mod`` leave its statistics, if it is a layer with batch normalisation: ``model.apply(freeze_bn_stats)``.

    Example::

        >>> _ = nn.ReLU().apply(clnn.ao.nn.intrinsic.qat.freeze_bn_stats)
    """
    if isinstance(mod, _WithBn):
        mod.freeze_bn_stats()
