"""Normalisation over a sample's own elements."""
import numbers

import clnn
from clnn.nn import functional as F
from clnn.nn import init
from clnn.nn.parameter import Parameter

from ._chain import known
from ._declare import declare
from .module import Module

__all__ = ["LocalResponseNorm", "CrossMapLRN2d", "LayerNorm", "GroupNorm", "RMSNorm"]


@declare
class LocalResponseNorm(Module):
    """``y_c = x_c / (k + alpha / size * sum of x^2 over size channels around c)^beta``.

    Shape:
        input and output ``(N, C, *)``.

    Source: Krizhevsky et al., ImageNet Classification with Deep Convolutional Neural Networks, 2012.

    Example::

        >>> nn.LocalResponseNorm(2)(clnn.randn(2, 5, 3, 3)).shape
        clnn.Size([2, 5, 3, 3])
    """

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1.0
    _module_repr_fields = "=size alpha beta k"

    def forward(self, input):
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)


class CrossMapLRN2d(LocalResponseNorm):
    """Old name of :class:`LocalResponseNorm` for ``(N, C, H, W)`` inputs.

    Example::

        >>> nn.CrossMapLRN2d(2)(clnn.randn(2, 5, 3, 3)).shape
        clnn.Size([2, 5, 3, 3])
    """

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1):
        super().__init__(size, alpha, beta, k)


class _Affine(Module):
    """The part that scales and shifts what was normalised."""

    def _add_parameters(self, shape, weight, bias, device, dtype):
        for name, wanted in (("weight", weight), ("bias", bias)):
            self.register_parameter(name, Parameter(clnn.empty(shape, device=device, dtype=dtype)) if wanted else None)
        self.reset_parameters()

    def reset_parameters(self):
        """Weight 1, bias 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


@known("weight bias", "normalized_shape eps")
class LayerNorm(_Affine):
    """``y = (x - mean) / sqrt(var + eps) * weight + bias``, with mean and variance over the last dimensions of each sample.

    Args:
        normalized_shape: sizes of those last dimensions (an int for one).
        eps: added to the variance. Default: 1e-5.
        elementwise_affine: whether weight and bias, of that shape, exist. Default: ``True``.
        bias: whether the bias exists. Default: ``True``.

    Shape:
        input and output ``(*, normalized_shape)``.

    Source: Ba et al., 2016 (arXiv:1607.06450).

    Example::

        >>> nn.LayerNorm(10)(clnn.randn(2, 5, 10)).shape
        clnn.Size([2, 5, 10])
    """

    _module_repr_fields = "=normalized_shape eps elementwise_affine bias!"

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True, device=None, dtype=None):
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, numbers.Integral) else tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._add_parameters(self.normalized_shape, elementwise_affine, elementwise_affine and bias, device, dtype)

    def forward(self, input):
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


@known("weight bias", "num_groups eps")
class GroupNorm(_Affine):
    """Normalise each of *num_groups* blocks of channels of each sample, then scale and shift each channel.

    Args:
        num_groups: number of blocks; it divides ``num_channels``.
        num_channels: number of channels C.
        eps: added to the variance. Default: 1e-5.
        affine: whether weight and bias, of shape (C), exist. Default: ``True``.
        bias: whether the bias exists. Default: ``True``.

    Shape:
        input and output ``(N, C, *)``.

    Source: Wu, He, 2018 (arXiv:1803.08494).

    Example::

        >>> nn.GroupNorm(3, 6)(clnn.randn(20, 6, 10, 10)).shape
        clnn.Size([20, 6, 10, 10])
    """

    _module_repr_fields = "=num_groups =num_channels eps affine bias!"

    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, device=None, dtype=None, *, bias=True):
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._add_parameters(num_channels, affine, affine and bias, device, dtype)

    def forward(self, input):
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)


@known("weight", "normalized_shape eps")
class RMSNorm(Module):
    """``y = x / sqrt(mean(x^2) + eps) * weight`` over the last dimensions.

    Args:
        normalized_shape: sizes of those last dimensions (an int for one).
        eps: added to the mean square; ``None`` takes the smallest step of the dtype. Default: ``None``.
        elementwise_affine: whether the weight exists. Default: ``True``.

    Source: Zhang, Sennrich, 2019 (arXiv:1910.07467).

    Example::

        >>> nn.RMSNorm(2)(clnn.tensor([3., 4.])).detach()
        tensor([0.8485, 1.1314])
    """

    _module_repr_fields = "=normalized_shape eps elementwise_affine"

    def __init__(self, normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None):
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, numbers.Integral) else tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        weight = Parameter(clnn.empty(self.normalized_shape, device=device, dtype=dtype)) if elementwise_affine else None
        self.register_parameter("weight", weight)
        self.reset_parameters()

    def reset_parameters(self):
        """Weight 1."""
        if self.elementwise_affine:
            init.ones_(self.weight)

    def forward(self, x):
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)
