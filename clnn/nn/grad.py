"""Gradients of convolutions, for code that computes them by hand."""
import clnn
from clnn.nn import functional as F
from clnn.ops import conv

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def _direct(dims, stride, padding, dilation, groups, *tensors):
    """The parameters of the gradient's operator, one entry per dimension; None where only the graph of the convolution composes it."""
    if isinstance(padding, str) or any(t.is_complex() for t in tensors):
        return None
    return *(conv._per_dim(value, dims, what) for value, what in ((stride, "stride"), (padding, "padding"), (dilation, "dilation"))), groups


def _further(*tensors):
    """Whether gradients of the gradient are wanted."""
    return clnn.is_grad_enabled() and any(t.requires_grad for t in tensors)


def _input_gradient(name, convolution, dims):
    def gradient(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
        direct = _direct(dims, stride, padding, dilation, groups, weight, grad_output)
        if direct:
            return conv.conv_input_grad(grad_output, weight, None, tuple(input_size), *direct)
        further = _further(weight, grad_output)
        with clnn.enable_grad():
            x = clnn.zeros(input_size, dtype=weight.dtype, device=weight.device, requires_grad=True)
            y = convolution(x, weight if further else weight.detach(), None, stride, padding, dilation, groups)
        return clnn.autograd.grad(y, x, grad_output, create_graph=further)[0]
    gradient.__name__ = gradient.__qualname__ = name
    gradient.__doc__ = f"""Gradient of ``{convolution.__name__}`` with respect to its input.

    Args:
        input_size: shape of the input, ``(N, C, *)``.
        weight: ``(C_out, C / groups, *kernel)``. grad_output: gradient of the output.
        stride, padding, dilation, groups: those of the convolution.

    Example:
        >>> clnn.nn.grad.{name}((1, 1{", 2" * dims}), clnn.ones(1, 1{", 1" * dims}), clnn.ones(1, 1{", 2" * dims})).shape
        clnn.Size([1, 1{", 2" * dims}])
    """
    return gradient


def _weight_gradient(name, convolution, dims):
    def gradient(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
        direct = _direct(dims, stride, padding, dilation, groups, input, grad_output)
        if direct:
            return conv.conv_weight_grad(grad_output, input, tuple(weight_size), *direct)
        further = _further(input, grad_output)
        with clnn.enable_grad():
            w = clnn.zeros(weight_size, dtype=input.dtype, device=input.device, requires_grad=True)
            y = convolution(input if further else input.detach(), w, None, stride, padding, dilation, groups)
        return clnn.autograd.grad(y, w, grad_output, create_graph=further)[0]
    gradient.__name__ = gradient.__qualname__ = name
    gradient.__doc__ = f"""Gradient of ``{convolution.__name__}`` with respect to its weight.

    Args:
        input: ``(N, C, *)``.
        weight_size: shape of the weight, ``(C_out, C / groups, *kernel)``. grad_output: gradient of the output.
        stride, padding, dilation, groups: those of the convolution.

    Example:
        >>> clnn.nn.grad.{name}(clnn.ones(1, 1{", 2" * dims}), (1, 1{", 1" * dims}), clnn.ones(1, 1{", 2" * dims})).shape
        clnn.Size([1, 1{", 1" * dims}])
    """
    return gradient


conv1d_input, conv1d_weight = _input_gradient("conv1d_input", F.conv1d, 1), _weight_gradient("conv1d_weight", F.conv1d, 1)
conv2d_input, conv2d_weight = _input_gradient("conv2d_input", F.conv2d, 2), _weight_gradient("conv2d_weight", F.conv2d, 2)
conv3d_input, conv3d_weight = _input_gradient("conv3d_input", F.conv3d, 3), _weight_gradient("conv3d_weight", F.conv3d, 3)
