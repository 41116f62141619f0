"""Sliding windows as columns, and back."""
from clnn.nn import functional as F

from ._declare import declare
from .module import Module

__all__ = ["Fold", "Unfold"]


@declare
class Fold(Module):
    """Sum columns ``(N, C * prod(kernel_size), L)`` into the windows of an ``(N, C, *output_size)`` output: the adjoint of
    :class:`Unfold`.

    Example::

        >>> nn.Fold((4, 5), kernel_size=(2, 2))(clnn.randn(1, 12, 12)).shape
        clnn.Size([1, 3, 4, 5])
    """

    output_size: tuple
    kernel_size: tuple
    dilation: tuple = 1
    padding: tuple = 0
    stride: tuple = 1

    def forward(self, input):
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)


@declare
class Unfold(Module):
    """Copy every window of an ``(N, C, H, W)`` input to a column of an ``(N, C * prod(kernel_size), L)`` output.

    Example::

        >>> nn.Unfold(kernel_size=(2, 3))(clnn.randn(2, 5, 3, 4)).shape
        clnn.Size([2, 30, 4])
    """

    kernel_size: tuple
    dilation: tuple = 1
    padding: tuple = 0
    stride: tuple = 1

    def forward(self, input):
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)
