"""Resizing of images and volumes."""
from clnn.nn import functional as F

from ._chain import known
from .module import Module

__all__ = ["Upsample", "UpsamplingNearest2d", "UpsamplingBilinear2d"]


@known(settings="size scale_factor mode align_corners recompute_scale_factor")
class Upsample(Module):
    """Resize the spatial dimensions of an ``(N, C, *)`` input.

    Args:
        size: output size, an int or a tuple. Give this or *scale_factor*.
        scale_factor: factor of the sizes, a number or a tuple.
        mode: ``"nearest"``, ``"linear"`` (1-d), ``"bilinear"`` or ``"bicubic"`` (2-d), ``"trilinear"`` (3-d). Default: ``"nearest"``.
        align_corners: let the corner elements of input and output coincide. Default: ``False``.
        recompute_scale_factor: use the ratio of the sizes instead of the given factor. Default: ``False``.

    Example::

        >>> nn.Upsample(scale_factor=2)(clnn.ones(1, 1, 2, 2)).shape
        clnn.Size([1, 1, 4, 4])
    """

    def __init__(self, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None):
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        if isinstance(scale_factor, tuple):
            self.scale_factor = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input):
        return F.interpolate(input, self.size, self.scale_factor, self.mode, self.align_corners,
                             recompute_scale_factor=self.recompute_scale_factor)

    def extra_repr(self):
        name = "size" if self.scale_factor is None else "scale_factor"
        return f"{name}={getattr(self, name)!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """:class:`Upsample` of ``(N, C, H, W)`` with mode ``"nearest"``.

    Example::

        >>> nn.UpsamplingNearest2d(scale_factor=2)(clnn.ones(1, 1, 2, 2)).shape
        clnn.Size([1, 1, 4, 4])
    """

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """:class:`Upsample` of ``(N, C, H, W)`` with mode ``"bilinear"`` and aligned corners.

    Example::

        >>> nn.UpsamplingBilinear2d(size=(3, 5))(clnn.ones(1, 1, 2, 2)).shape
        clnn.Size([1, 1, 3, 5])
    """

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
