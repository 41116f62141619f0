"""Rearranging channels and pixels."""
from clnn.nn import functional as F

from ._chain import known
from ._declare import declare
from .module import Module

__all__ = ["PixelShuffle", "PixelUnshuffle", "ChannelShuffle"]


@declare
@known(settings="upscale_factor")
class PixelShuffle(Module):
    """``(*, C r^2, H, W)`` to ``(*, C, H r, W r)`` with ``r = upscale_factor``. Source: Shi et al., 2016 (arXiv:1609.05158).

    Example::

        >>> nn.PixelShuffle(3)(clnn.randn(1, 9, 4, 4)).shape
        clnn.Size([1, 1, 12, 12])
    """

    upscale_factor: int

    def forward(self, input):
        return F.pixel_shuffle(input, self.upscale_factor)


@declare
@known(settings="downscale_factor")
class PixelUnshuffle(Module):
    """``(*, C, H r, W r)`` to ``(*, C r^2, H, W)`` with ``r = downscale_factor``: undoes :class:`PixelShuffle`.

    Example::

        >>> nn.PixelUnshuffle(3)(clnn.randn(1, 1, 12, 12)).shape
        clnn.Size([1, 9, 4, 4])
    """

    downscale_factor: int

    def forward(self, input):
        return F.pixel_unshuffle(input, self.downscale_factor)


@declare
@known(settings="groups")
class ChannelShuffle(Module):
    """Split the channels of ``(N, C, *)`` into *groups* and interleave them. Source: Zhang et al., 2017 (arXiv:1707.01083).

    Example::

        >>> nn.ChannelShuffle(2)(clnn.arange(4).reshape(1, 4, 1)).flatten()
        tensor([0, 2, 1, 3])
    """

    groups: int

    def forward(self, input):
        return F.channel_shuffle(input, self.groups)
