"""Memory formats of convolution weights."""

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(module, kinds, memory_format):
    from clnn.nn.modules import conv

    kinds = tuple(getattr(conv, name) for name in kinds)
    for layer in module.modules():
        if isinstance(layer, kinds):
            layer.weight.data = layer.weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module, memory_format):
    """Give the weights of all 2-d convolutions of the tree another memory format."""
    return _convert(module, ("Conv2d", "ConvTranspose2d"), memory_format)


def convert_conv3d_weight_memory_format(module, memory_format):
    """Give the weights of all 3-d convolutions of the tree another memory format."""
    return _convert(module, ("Conv3d", "ConvTranspose3d"), memory_format)
