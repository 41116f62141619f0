"""Convolutions and transposed convolutions. N batch, C channels, L length, D H W depth, height and width."""
import math

import clnn
from clnn.nn import functional as F
from clnn.nn import init
from clnn.nn.parameter import Parameter, UninitializedParameter

from ._chain import known
from .lazy import LazyModuleMixin
from .module import Module
from .utils import _ntuple, _reverse_repeat_tuple

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "LazyConv1d", "LazyConv2d",
           "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d"]

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """State, checks and repr of all convolutions; the sizes are tuples here."""

    _nd = None  # number of spatial dimensions

    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, dilation, transposed, output_padding, groups, bias,
                 padding_mode, device=None, dtype=None):
        super().__init__()
        self._check(in_channels, out_channels, stride, padding, groups, padding_mode)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._pad_amounts()
        self.weight = Parameter(clnn.empty(self._weight_shape(), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(clnn.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    @staticmethod
    def _check(in_channels, out_channels, stride, padding, groups, padding_mode):
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}")
            if padding == "same" and any(s != 1 for s in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(f"padding_mode must be one of {set(_PADDING_MODES)}, but got padding_mode='{padding_mode}'")

    def _weight_shape(self):
        first, second = (self.in_channels, self.out_channels) if self.transposed else (self.out_channels, self.in_channels)
        return (first, second // self.groups, *self.kernel_size)

    def _pad_amounts(self):
        """Amounts for F.pad, used by the padding modes other than zeros."""
        if not isinstance(self.padding, str):
            return _reverse_repeat_tuple(self.padding, 2)
        amounts = [0, 0] * len(self.kernel_size)
        if self.padding == "same":
            for i, (d, k) in enumerate(zip(reversed(self.dilation), reversed(self.kernel_size))):
                total = d * (k - 1)
                amounts[2 * i:2 * i + 2] = total // 2, total - total // 2
        return amounts

    def reset_parameters(self):
        """Draw weight and bias from ``U(-k, k)`` with ``k = 1 / sqrt(in_channels / groups * prod(kernel_size))``."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            bound = 1 / math.sqrt(fan_in) if fan_in else 0
            init.uniform_(self.bias, -bound, bound)

    def extra_repr(self):
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        for name, usual in (("padding", 0), ("dilation", 1), ("output_padding", 0)):
            value = getattr(self, name)
            if value != (usual,) * len(self.kernel_size):
                parts.append(f"{name}={value}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)

    def __setstate__(self, state):
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")


class _Conv(_ConvNd):
    """The constructor and forward of Conv1d to Conv3d."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
                 padding_mode="zeros", device=None, dtype=None):
        each = _ntuple(self._nd)
        super().__init__(in_channels, out_channels, each(kernel_size), each(stride),
                         padding if isinstance(padding, str) else each(padding), each(dilation), False, each(0), groups, bias,
                         padding_mode, device, dtype)

    def _conv_forward(self, input, weight, bias):
        conv = getattr(F, f"conv{self._nd}d")
        if self.padding_mode == "zeros":
            return conv(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)
        padded = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
        return conv(padded, weight, bias, self.stride, (0,) * self._nd, self.dilation, self.groups)

    def forward(self, input):
        return self._conv_forward(input, self.weight, self.bias)


@known("weight bias", "stride padding dilation groups padding_mode")
class Conv1d(_Conv):
    """Cross-correlation over one spatial dimension; arguments as in :class:`Conv2d`.

    Shape:
        input ``(N, C_in, L)`` or ``(C_in, L)``, output ``(N, C_out, L_out)``; weight ``(C_out, C_in / groups, K)``.

    Example::

        >>> nn.Conv1d(16, 33, 3, stride=2)(clnn.randn(20, 16, 50)).shape
        clnn.Size([20, 33, 24])
    """

    _nd = 1


@known("weight bias", "stride padding dilation groups padding_mode")
class Conv2d(_Conv):
    """Cross-correlation ``y[n, o] = b[o] + sum_c w[o, c] * x[n, c]`` over two spatial dimensions.

    Each output size is ``(size + 2 padding - dilation (kernel_size - 1) - 1) // stride + 1``.

    Args:
        in_channels, out_channels: channels of input and output.
        kernel_size: size of the window, an int or a tuple (H, W) as all sizes here.
        stride: step of the window. Default: 1.
        padding: elements added on both sides, or ``"valid"`` (none) or ``"same"`` (output as large as the input). Default: 0.
        dilation: distance between the window's elements. Default: 1.
        groups: number of blocks of channels that are convolved apart. Default: 1.
        bias: whether to add a learned value per output channel. Default: ``True``.
        padding_mode: ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``. Default: ``"zeros"``.

    Shape:
        input ``(N, C_in, H, W)`` or ``(C_in, H, W)``, output ``(N, C_out, H_out, W_out)``; weight
        ``(C_out, C_in / groups, K_h, K_w)``.

    Raises:
        ValueError: channels not divisible by groups, ``"same"`` with a stride, an unknown padding mode.

    Example::

        >>> nn.Conv2d(16, 33, 3, stride=2)(clnn.randn(2, 16, 50, 100)).shape
        clnn.Size([2, 33, 24, 49])
    """

    _nd = 2


@known("weight bias", "stride padding dilation groups padding_mode")
class Conv3d(_Conv):
    """Cross-correlation over three spatial dimensions; arguments as in :class:`Conv2d`.

    Shape:
        input ``(N, C_in, D, H, W)`` or ``(C_in, D, H, W)``, output ``(N, C_out, D_out, H_out, W_out)``.

    Example::

        >>> nn.Conv3d(4, 8, 3)(clnn.randn(2, 4, 5, 6, 7)).shape
        clnn.Size([2, 8, 3, 4, 5])
    """

    _nd = 3


class _ConvTransposeNd(_ConvNd):
    """The constructor and forward of the transposed convolutions."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1,
                 padding_mode="zeros", device=None, dtype=None):
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        each = _ntuple(self._nd)
        super().__init__(in_channels, out_channels, each(kernel_size), each(stride), each(padding), each(dilation), True,
                         each(output_padding), groups, bias, padding_mode, device, dtype)

    def _output_padding(self, input, output_size):
        """The output padding that makes the output as large as asked."""
        if output_size is None:
            return self.output_padding
        nd = self._nd
        if len(output_size) == input.dim():  # the full shape was given
            output_size = output_size[-nd:]
        if len(output_size) != nd:
            raise ValueError(f"ConvTranspose{nd}D: for {input.dim()}D input, output_size must have {nd} or {input.dim()} elements "
                             f"(got {len(output_size)})")
        low = [(n - 1) * s - 2 * p + d * (k - 1) + 1 for n, s, p, d, k
               in zip(input.shape[-nd:], self.stride, self.padding, self.dilation, self.kernel_size)]
        high = [n + s - 1 for n, s in zip(low, self.stride)]
        if any(not a <= size <= b for size, a, b in zip(output_size, low, high)):
            raise ValueError(f"requested an output size of {output_size}, but valid sizes range from {low} to {high} (for an input of "
                             f"{input.size()[2:]})")
        return tuple(size - a for size, a in zip(output_size, low))

    def forward(self, input, output_size=None):
        conv = getattr(F, f"conv_transpose{self._nd}d")
        return conv(input, self.weight, self.bias, self.stride, self.padding, self._output_padding(input, output_size), self.groups,
                    self.dilation)


@known("weight bias", "stride padding output_padding dilation groups padding_mode")
class ConvTranspose1d(_ConvTransposeNd):
    """Transposed convolution over one spatial dimension; arguments as in :class:`ConvTranspose2d`.

    Example::

        >>> nn.ConvTranspose1d(4, 8, 2, stride=2)(clnn.randn(1, 4, 5)).shape
        clnn.Size([1, 8, 10])
    """

    _nd = 1


@known("weight bias", "stride padding output_padding dilation groups padding_mode")
class ConvTranspose2d(_ConvTransposeNd):
    """The gradient of a :class:`Conv2d` with respect to its input, as a layer: it enlarges by ``stride``.

    Each output size is ``(size - 1) stride - 2 padding + dilation (kernel_size - 1) + output_padding + 1``.

    Args:
        in_channels, out_channels: channels of input and output.
        kernel_size: size of the window, an int or a tuple (H, W) as all sizes here.
        stride: factor of enlargement. Default: 1.
        padding: elements cut off on both sides. Default: 0.
        output_padding: elements added on one side, to choose between the sizes that the convolution maps to one. Default: 0.
        groups: number of blocks of channels. Default: 1.
        bias: whether to add a learned value per output channel. Default: ``True``.
        dilation: distance between the window's elements. Default: 1.

    Shape:
        input ``(N, C_in, H, W)`` or ``(C_in, H, W)``, output ``(N, C_out, H_out, W_out)``; weight
        ``(C_in, C_out / groups, K_h, K_w)``. ``forward(input, output_size)`` picks the output padding for a wanted size.

    Example::

        >>> nn.ConvTranspose2d(4, 8, 2, stride=2)(clnn.randn(1, 4, 5, 5)).shape
        clnn.Size([1, 8, 10, 10])
    """

    _nd = 2


@known("weight bias", "stride padding output_padding dilation groups padding_mode")
class ConvTranspose3d(_ConvTransposeNd):
    """Transposed convolution over three spatial dimensions; arguments as in :class:`ConvTranspose2d`.

    Example::

        >>> nn.ConvTranspose3d(4, 8, 2, stride=2)(clnn.randn(1, 4, 3, 3, 3)).shape
        clnn.Size([1, 8, 6, 6, 6])
    """

    _nd = 3


class _LazyConvXdMixin(LazyModuleMixin):
    """A convolution without ``in_channels``: the first input gives them."""

    def __init__(self, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode="zeros", device=None, dtype=None):
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype)
        self._wait_for_channels(out_channels, bias, device, dtype)

    def _wait_for_channels(self, out_channels, bias, device, dtype):
        self.out_channels = out_channels
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self):
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input, *args, **kwargs):
        if not self.has_uninitialized_params():
            return
        unbatched, batched = self._nd + 1, self._nd + 2
        if input.dim() not in (unbatched, batched):
            raise RuntimeError(f"Expected {unbatched}D (unbatched) or {batched}D (batched) input to {type(self).__name__}, but got input "
                               f"of size: {input.shape}")
        self.in_channels = input.shape[-self._nd - 1]
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        self.weight.materialize(self._weight_shape())
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()


class _LazyTransposed(_LazyConvXdMixin):
    """The same for transposed convolutions."""

    def __init__(self, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1, padding_mode="zeros", device=None,
                 dtype=None):
        LazyModuleMixin.__init__(self, 0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode, device, dtype)
        self._wait_for_channels(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConvXdMixin, Conv1d):
    """A :class:`Conv1d` that takes ``in_channels`` from its first input.

    Example::

        >>> nn.LazyConv1d(8, 3)(clnn.randn(1, 4, 5)).shape
        clnn.Size([1, 8, 3])
    """

    cls_to_become = Conv1d


class LazyConv2d(_LazyConvXdMixin, Conv2d):
    """A :class:`Conv2d` that takes ``in_channels`` from its first input.

    Example::

        >>> nn.LazyConv2d(8, 3)(clnn.randn(1, 4, 5, 5)).shape
        clnn.Size([1, 8, 3, 3])
    """

    cls_to_become = Conv2d


class LazyConv3d(_LazyConvXdMixin, Conv3d):
    """A :class:`Conv3d` that takes ``in_channels`` from its first input.

    Example::

        >>> nn.LazyConv3d(8, 3)(clnn.randn(1, 4, 5, 5, 5)).shape
        clnn.Size([1, 8, 3, 3, 3])
    """

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyTransposed, ConvTranspose1d):
    """A :class:`ConvTranspose1d` that takes ``in_channels`` from its first input.

    Example::

        >>> nn.LazyConvTranspose1d(8, 2, stride=2)(clnn.randn(1, 4, 5)).shape
        clnn.Size([1, 8, 10])
    """

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyTransposed, ConvTranspose2d):
    """A :class:`ConvTranspose2d` that takes ``in_channels`` from its first input.

    Example::

        >>> nn.LazyConvTranspose2d(8, 2, stride=2)(clnn.randn(1, 4, 5, 5)).shape
        clnn.Size([1, 8, 10, 10])
    """

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyTransposed, ConvTranspose3d):
    """A :class:`ConvTranspose3d` that takes ``in_channels`` from its first input.

    Example::

        >>> nn.LazyConvTranspose3d(8, 2, stride=2)(clnn.randn(1, 4, 3, 3, 3)).shape
        clnn.Size([1, 8, 6, 6, 6])
    """

    cls_to_become = ConvTranspose3d
