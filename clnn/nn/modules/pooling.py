"""Pooling. Shapes: ``(N, C, *)`` or ``(C, *)``, where ``*`` are the 1, 2 or 3 spatial dimensions that the class name tells."""
from clnn.nn import functional as F

from ._chain import known
from ._declare import declare
from .module import Module
from .utils import _ntuple

__all__ = ["MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d",
           "FractionalMaxPool2d", "FractionalMaxPool3d", "LPPool1d", "LPPool2d", "LPPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
           "AdaptiveMaxPool3d", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d"]


class _MaxPoolNd(Module):
    _module_repr_fields = "kernel_size stride padding dilation ceil_mode"
    _nd = None

    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input):
        return getattr(F, f"max_pool{self._nd}d")(input, self.kernel_size, self.stride, self.padding, self.dilation,
                                                  ceil_mode=self.ceil_mode, return_indices=self.return_indices)


@known(settings="kernel_size stride padding dilation return_indices ceil_mode")
class MaxPool1d(_MaxPoolNd):
    """Maximum over windows of one dimension; arguments as in :class:`MaxPool2d`.

    Example::

        >>> nn.MaxPool1d(2)(clnn.tensor([[1., 3., 2., 0.]]))
        tensor([[3., 2.]])
    """

    _nd = 1


@known(settings="kernel_size stride padding dilation return_indices ceil_mode")
class MaxPool2d(_MaxPoolNd):
    """Maximum over windows.

    Each output size is ``(size + 2 padding - dilation (kernel_size - 1) - 1) // stride + 1`` (rounded up with ``ceil_mode``).

    Args:
        kernel_size: size of the window, an int or a tuple as all sizes here.
        stride: step of the window. Default: ``kernel_size``.
        padding: elements of minus infinity added on both sides, at most half the window. Default: 0.
        dilation: distance between the window's elements. Default: 1.
        return_indices: also return the flat positions of the maxima, for :class:`MaxUnpool2d`. Default: ``False``.
        ceil_mode: also use windows that stand out at the end. Default: ``False``.

    Example::

        >>> nn.MaxPool2d(3, stride=2)(clnn.randn(20, 16, 50, 32)).shape
        clnn.Size([20, 16, 24, 15])
    """

    _nd = 2


@known(settings="kernel_size stride padding dilation return_indices ceil_mode")
class MaxPool3d(_MaxPoolNd):
    """Maximum over windows of three dimensions; arguments as in :class:`MaxPool2d`.

    Example::

        >>> nn.MaxPool3d(2)(clnn.randn(1, 2, 4, 4, 4)).shape
        clnn.Size([1, 2, 2, 2, 2])
    """

    _nd = 3


class _MaxUnpoolNd(Module):
    _module_repr_fields = "kernel_size stride padding"
    _nd = None

    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        each = _ntuple(self._nd)
        self.kernel_size = each(kernel_size)
        self.stride = each(stride if stride is not None else kernel_size)
        self.padding = each(padding)

    def forward(self, input, indices, output_size=None):
        return getattr(F, f"max_unpool{self._nd}d")(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(_MaxUnpoolNd):
    """Undo :class:`MaxPool1d`: put each value back to the position its index tells, with zeros elsewhere.

    Example::

        >>> nn.MaxUnpool1d(2)(clnn.tensor([[3., 2.]]), clnn.tensor([[1, 2]]))
        tensor([[0., 3., 2., 0.]])
    """

    _nd = 1


class MaxUnpool2d(_MaxUnpoolNd):
    """Undo :class:`MaxPool2d`: put each value back to the position its index tells, with zeros elsewhere.

    ``forward(input, indices, output_size=None)``; give the size when pooling could have come from more than one.

    Example::

        >>> nn.MaxUnpool2d(2)(clnn.tensor([[[5.]]]), clnn.tensor([[[3]]]))
        tensor([[[0., 0.],
                 [0., 5.]]])
    """

    _nd = 2


class MaxUnpool3d(_MaxUnpoolNd):
    """Undo :class:`MaxPool3d`: put each value back to the position its index tells, with zeros elsewhere.

    Example::

        >>> nn.MaxUnpool3d(2)(*nn.MaxPool3d(2, return_indices=True)(clnn.randn(1, 2, 4, 4, 4))).shape
        clnn.Size([1, 2, 4, 4, 4])
    """

    _nd = 3


class _AvgPoolNd(Module):
    _module_repr_fields = "kernel_size stride padding"
    _nd = None

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input):
        return getattr(F, f"avg_pool{self._nd}d")(input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
                                                  self.count_include_pad, self.divisor_override)


@known(settings="kernel_size stride padding ceil_mode count_include_pad")
class AvgPool1d(_AvgPoolNd):
    """Mean over windows of one dimension; arguments as in :class:`AvgPool2d`.

    Example::

        >>> nn.AvgPool1d(2)(clnn.tensor([[1., 3., 2., 0.]]))
        tensor([[2., 1.]])
    """

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
        Module.__init__(self)
        single = _ntuple(1)
        self.kernel_size = single(kernel_size)
        self.stride = single(stride if stride is not None else kernel_size)
        self.padding = single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input):
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


@known(settings="kernel_size stride padding ceil_mode count_include_pad divisor_override")
class AvgPool2d(_AvgPoolNd):
    """Mean over windows.

    Args:
        kernel_size: size of the window, an int or a tuple as all sizes here.
        stride: step of the window. Default: ``kernel_size``.
        padding: zeros added on both sides. Default: 0.
        ceil_mode: also use windows that stand out at the end. Default: ``False``.
        count_include_pad: count the padding in the divisor. Default: ``True``.
        divisor_override: divide by this instead of the number of elements. Default: ``None``.

    Example::

        >>> nn.AvgPool2d(2)(clnn.ones(1, 1, 4, 4))
        tensor([[[[1., 1.],
                  [1., 1.]]]])
    """

    _nd = 2


@known(settings="kernel_size stride padding ceil_mode count_include_pad divisor_override")
class AvgPool3d(_AvgPoolNd):
    """Mean over windows of three dimensions; arguments as in :class:`AvgPool2d`.

    Example::

        >>> nn.AvgPool3d(2)(clnn.randn(1, 2, 4, 4, 4)).shape
        clnn.Size([1, 2, 2, 2, 2])
    """

    _nd = 3


class _FractionalMaxPoolNd(Module):
    _nd = None

    def __init__(self, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        super().__init__()
        each = _ntuple(self._nd)
        self.kernel_size = each(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = each(output_size) if output_size is not None else None
        self.output_ratio = each(output_ratio) if output_ratio is not None else None
        if output_size is None and output_ratio is None:
            raise ValueError(f"FractionalMaxPool{self._nd}d requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input):
        return getattr(F, f"fractional_max_pool{self._nd}d")(input, self.kernel_size, self.output_size, self.output_ratio,
                                                             self.return_indices, _random_samples=self._random_samples)


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Maximum over windows at random steps, so that any output size (or share of the input's) can be had.

    Source: Graham, 2014 (arXiv:1412.6071).

    Example::

        >>> nn.FractionalMaxPool2d(2, output_size=3)(clnn.randn(1, 2, 7, 7)).shape
        clnn.Size([1, 2, 3, 3])
    """

    _nd = 2


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """:class:`FractionalMaxPool2d` over three dimensions.

    Example::

        >>> nn.FractionalMaxPool3d(2, output_ratio=0.5)(clnn.randn(1, 2, 6, 6, 6)).shape
        clnn.Size([1, 2, 3, 3, 3])
    """

    _nd = 3


class _LPPoolNd(Module):
    _module_repr_fields = "norm_type kernel_size stride ceil_mode"
    _nd = None

    def __init__(self, norm_type, kernel_size, stride=None, ceil_mode=False):
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input):
        return getattr(F, f"lp_pool{self._nd}d")(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool1d(_LPPoolNd):
    """``(sum of x^p over the window)^(1/p)`` with ``p = norm_type``.

    Example::

        >>> nn.LPPool1d(2, 2)(clnn.tensor([[3., 4.]]))
        tensor([[5.]])
    """

    _nd = 1


class LPPool2d(_LPPoolNd):
    """``(sum of x^p over the window)^(1/p)`` with ``p = norm_type``.

    Example::

        >>> nn.LPPool2d(2, 2)(clnn.ones(1, 1, 2, 2))
        tensor([[[[2.]]]])
    """

    _nd = 2


class LPPool3d(_LPPoolNd):
    """``(sum of x^p over the window)^(1/p)`` with ``p = norm_type``.

    Example::

        >>> nn.LPPool3d(2, 2)(clnn.randn(1, 2, 4, 4, 4)).shape
        clnn.Size([1, 2, 2, 2, 2])
    """

    _nd = 3


@declare
class _AdaptiveMaxPoolNd(Module):
    output_size: tuple
    return_indices: bool = False
    _module_repr_fields = "output_size"
    _nd = None

    def forward(self, input):
        return getattr(F, f"adaptive_max_pool{self._nd}d")(input, self.output_size, self.return_indices)


@known(settings="output_size return_indices")
class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Maximum over windows chosen so that the output has the wanted length.

    Example::

        >>> nn.AdaptiveMaxPool1d(2)(clnn.tensor([[1., 3., 2.]]))
        tensor([[3., 3.]])
    """

    _nd = 1


@known(settings="output_size return_indices")
class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Maximum over windows chosen so that the output has the wanted size (an int, or a tuple where ``None`` keeps a size).

    Example::

        >>> nn.AdaptiveMaxPool2d((5, None))(clnn.randn(1, 64, 8, 9)).shape
        clnn.Size([1, 64, 5, 9])
    """

    _nd = 2


@known(settings="output_size return_indices")
class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Maximum over windows chosen so that the output has the wanted size.

    Example::

        >>> nn.AdaptiveMaxPool3d(2)(clnn.randn(1, 2, 5, 6, 7)).shape
        clnn.Size([1, 2, 2, 2, 2])
    """

    _nd = 3


@declare
class _AdaptiveAvgPoolNd(Module):
    output_size: tuple
    _nd = None

    def forward(self, input):
        return getattr(F, f"adaptive_avg_pool{self._nd}d")(input, self.output_size)


@known(settings="output_size")
class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Mean over windows chosen so that the output has the wanted length.

    Example::

        >>> nn.AdaptiveAvgPool1d(2)(clnn.tensor([[1., 3., 2.]]))
        tensor([[2.0000, 2.5000]])
    """

    _nd = 1


@known(settings="output_size")
class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Mean over windows chosen so that the output has the wanted size (an int, or a tuple where ``None`` keeps a size).

    Example::

        >>> nn.AdaptiveAvgPool2d((5, None))(clnn.randn(1, 64, 8, 9)).shape
        clnn.Size([1, 64, 5, 9])
    """

    _nd = 2


@known(settings="output_size")
class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Mean over windows chosen so that the output has the wanted size.

    Example::

        >>> nn.AdaptiveAvgPool3d(2)(clnn.randn(1, 2, 5, 6, 7)).shape
        clnn.Size([1, 2, 2, 2, 2])
    """

    _nd = 3
