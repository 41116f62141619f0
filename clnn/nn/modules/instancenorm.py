"""Instance normalisation."""
import warnings

from clnn.nn import functional as F

from .batchnorm import _LazyNormBase, _NormBase

__all__ = ["InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d"]


class _InstanceNorm(_NormBase):
    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=False, track_running_stats=False, device=None, dtype=None, *,
                 bias=True):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        stale = [key for key in ("running_mean", "running_var") if prefix + key in state_dict]
        if local_metadata.get("version", None) is None and not self.track_running_stats and stale:
            names = " and ".join(f'"{key}"' for key in stale)
            error_msgs.append(f"Unexpected running stats buffer(s) {names} for {type(self).__name__} "
                              "with track_running_stats=False. The state dict was saved by a version in which instance normalisation "
                              "tracked statistics; delete these keys from it before loading.")
            for key in stale:
                state_dict.pop(prefix + key)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)

    def forward(self, input):
        self._check_input_dim(input)
        channels = input.dim() - (self._input_dims[1] - 1)  # position of C: 0 without a batch, else 1
        if input.size(channels) != self.num_features and self.affine:
            raise ValueError(f"expected input's size at dim={channels} to match num_features ({self.num_features}), but got: "
                             f"{input.size(channels)}.")
        if input.size(channels) != self.num_features and not self.affine:
            warnings.warn(f"input's size at dim={channels} does not match num_features. You can silence this warning by not passing in "
                          "num_features, which is not used because affine=False", stacklevel=2)
        x = input.unsqueeze(0) if channels == 0 else input
        out = F.instance_norm(x, self.running_mean, self.running_var, self.weight, self.bias,
                              self.training or not self.track_running_stats, 0.0 if self.momentum is None else self.momentum, self.eps)
        return out.squeeze(0) if channels == 0 else out


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of ``(N, C, L)`` or ``(C, L)`` inputs; see :class:`InstanceNorm2d`.

    Example::

        >>> nn.InstanceNorm1d(1)(clnn.tensor([[[1., 3.]]]))
        tensor([[[-1.0000,  1.0000]]])
    """

    _input_dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """``y = (x - mean) / sqrt(var + eps) * weight + bias`` with mean and variance of each channel of each sample.

    Args:
        num_features: number of channels C.
        eps: added to the variance. Default: 1e-5.
        momentum: weight of the new batch in the running statistics. Default: 0.1.
        affine: whether weight and bias exist. Default: ``False``.
        track_running_stats: whether evaluation uses running statistics. Default: ``False``.

    Shape:
        input and output ``(N, C, H, W)`` or ``(C, H, W)``.

    Source: Ulyanov et al., 2016 (arXiv:1607.08022).

    Example::

        >>> nn.InstanceNorm2d(3)(clnn.randn(2, 3, 4, 4)).shape
        clnn.Size([2, 3, 4, 4])
    """

    _input_dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of ``(N, C, D, H, W)`` or ``(C, D, H, W)`` inputs; see :class:`InstanceNorm2d`.

    Example::

        >>> nn.InstanceNorm3d(3)(clnn.randn(2, 3, 4, 4, 4)).shape
        clnn.Size([2, 3, 4, 4, 4])
    """

    _input_dims = (4, 5)


class _LazyInstanceNorm(_LazyNormBase):
    """Unlike the ordinary layers these have weights and running statistics by default, as in PyTorch."""

    def _channels_of(self, input):
        return input.shape[input.dim() - (self._input_dims[1] - 1)]


class LazyInstanceNorm1d(_LazyInstanceNorm, _InstanceNorm):
    """An :class:`InstanceNorm1d` that takes ``num_features`` from its first input.

    Example::

        >>> nn.LazyInstanceNorm1d()(clnn.randn(2, 3, 4)).shape
        clnn.Size([2, 3, 4])
    """

    cls_to_become, _input_dims = InstanceNorm1d, InstanceNorm1d._input_dims


class LazyInstanceNorm2d(_LazyInstanceNorm, _InstanceNorm):
    """An :class:`InstanceNorm2d` that takes ``num_features`` from its first input.

    Example::

        >>> nn.LazyInstanceNorm2d()(clnn.randn(2, 3, 4, 4)).shape
        clnn.Size([2, 3, 4, 4])
    """

    cls_to_become, _input_dims = InstanceNorm2d, InstanceNorm2d._input_dims


class LazyInstanceNorm3d(_LazyInstanceNorm, _InstanceNorm):
    """An :class:`InstanceNorm3d` that takes ``num_features`` from its first input.

    Example::

        >>> nn.LazyInstanceNorm3d()(clnn.randn(2, 3, 2, 2, 2)).shape
        clnn.Size([2, 3, 2, 2, 2])
    """

    cls_to_become, _input_dims = InstanceNorm3d, InstanceNorm3d._input_dims
