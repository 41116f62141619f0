"""Dropout: random zeros in training, the identity in evaluation."""
from clnn.nn import functional as F

from ._chain import InTraining, known
from .module import Module

__all__ = ["Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"]


class _DropoutNd(Module):
    _module_repr_fields = "p inplace"
    _function = None  # name of the function

    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input):
        return getattr(F, self._function)(input, self.p, self.training, self.inplace)


@known(settings="p training inplace")
class Dropout(_DropoutNd):
    """Set each element to zero with probability *p* and multiply the others by ``1 / (1 - p)``; only in training.

    Args:
        p: probability of a zero. Default: 0.5.
        inplace: overwrite the input. Default: ``False``.

    Source: Hinton et al., 2012 (arXiv:1207.0580).

    Example::

        >>> nn.Dropout(0.2).eval()(clnn.ones(2))
        tensor([1., 1.])
    """

    _function = "dropout"


@known(settings="inplace", training=InTraining())
class Dropout1d(_DropoutNd):
    """Dropout of whole channels of ``(N, C, L)`` or ``(C, L)`` inputs. Source: Tompson et al., 2014 (arXiv:1411.4280).

    Example::

        >>> nn.Dropout1d(0.5)(clnn.ones(2, 3, 4)).shape
        clnn.Size([2, 3, 4])
    """

    _function = "dropout1d"


@known(settings="inplace", training=InTraining())
class Dropout2d(_DropoutNd):
    """Dropout of whole channels of ``(N, C, H, W)`` inputs.

    Example::

        >>> nn.Dropout2d(0.5)(clnn.ones(2, 3, 4, 4)).shape
        clnn.Size([2, 3, 4, 4])
    """

    _function = "dropout2d"


@known(settings="inplace", training=InTraining())
class Dropout3d(_DropoutNd):
    """Dropout of whole channels of ``(N, C, D, H, W)`` or ``(C, D, H, W)`` inputs.

    Example::

        >>> nn.Dropout3d(0.5)(clnn.ones(2, 3, 4, 4, 4)).shape
        clnn.Size([2, 3, 4, 4, 4])
    """

    _function = "dropout3d"


class AlphaDropout(_DropoutNd):
    """Dropout to the limit value of :class:`SELU` that keeps mean and variance. Source: Klambauer et al., 2017 (arXiv:1706.02515).

    Example::

        >>> nn.AlphaDropout(0.2).eval()(clnn.ones(2))
        tensor([1., 1.])
    """

    _function = "alpha_dropout"

    def forward(self, input):
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """:class:`AlphaDropout` of whole channels of ``(N, C, *)`` inputs.

    Example::

        >>> nn.FeatureAlphaDropout(0.5)(clnn.ones(2, 3, 4)).shape
        clnn.Size([2, 3, 4])
    """

    _function = "feature_alpha_dropout"

    def forward(self, input):
        return F.feature_alpha_dropout(input, self.p, self.training)
