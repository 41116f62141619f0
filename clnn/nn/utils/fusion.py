"""Folding a batch normalisation in evaluation mode into the layer before it."""
import copy

import clnn
from clnn.nn.parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _fused(weight, bias, mean, var, eps, gamma, beta, channel_shape):
    """``gamma (W x + b - mean) / sqrt(var + eps) + beta`` as a new weight and bias."""
    bias = clnn.zeros_like(mean) if bias is None else bias
    gamma = clnn.ones_like(mean) if gamma is None else gamma
    beta = clnn.zeros_like(mean) if beta is None else beta
    scale = gamma * clnn.rsqrt(var + eps)
    new_weight = (weight * scale.reshape(channel_shape)).to(weight.dtype)
    new_bias = ((bias - mean) * scale + beta).to(bias.dtype)
    return Parameter(new_weight.detach(), weight.requires_grad), Parameter(new_bias.detach(), bias.requires_grad or weight.requires_grad)


def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, transpose=False):
    """Weight and bias of the convolution that equals a convolution followed by the normalisation.

    Example:
        >>> w, b = clnn.nn.utils.fuse_conv_bn_weights(clnn.ones(1, 1, 1, 1), None, clnn.zeros(1), clnn.ones(1), 0.0, clnn.tensor([2.0]), clnn.tensor([1.0]))
        >>> w.item(), b.item()
        (2.0, 1.0)
    """
    channel = 1 if transpose else 0
    shape = [-1 if d == channel else 1 for d in range(conv_w.dim())]
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape)


def fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b):
    """Weight and bias of the linear layer that equals a linear layer followed by the normalisation.

    Example:
        >>> w, b = clnn.nn.utils.fuse_linear_bn_weights(clnn.ones(1, 1), None, clnn.zeros(1), clnn.ones(1), 0.0, clnn.tensor([2.0]), clnn.tensor([1.0]))
        >>> w.item(), b.item()
        (2.0, 1.0)
    """
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, [-1, 1])


def fuse_conv_bn_eval(conv, bn, transpose=False):
    """A copy of *conv* that does the work of both layers; both must be in evaluation mode.

    Example::

        >>> conv, bn = nn.Conv2d(3, 4, 3).eval(), nn.BatchNorm2d(4).eval()
        >>> nn.utils.fuse_conv_bn_eval(conv, bn)
        Conv2d(3, 4, kernel_size=(3, 3), stride=(1, 1))
    """
    if conv.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn must have running_mean and running_var")
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight,
                                                    bn.bias, transpose)
    return fused


def fuse_linear_bn_eval(linear, bn):
    """A copy of *linear* that does the work of both layers; both must be in evaluation mode.

    Example::

        >>> nn.utils.fuse_linear_bn_eval(nn.Linear(3, 4).eval(), nn.BatchNorm1d(4).eval())
        Linear(in_features=3, out_features=4, bias=True)
    """
    if linear.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight,
                                                      bn.bias)
    return fused
