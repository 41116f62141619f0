"""The half-normal distribution."""
import math


from ._half import Half
from .normal import Normal
from .transforms import AbsTransform


class HalfNormal(Half):
    """Absolute values of normal numbers of mean 0 and standard deviation ``scale``.

    Example:
        >>> d = clnn.distributions.HalfNormal(1.0)
        >>> d.log_prob(clnn.tensor(1.0)), d.mean
        (tensor(-0.7258), tensor(0.7979))
    """

    def __init__(self, scale, validate_args=None):
        super().__init__(Normal(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._get_checked_instance(HalfNormal, _instance))

    mean = property(lambda self: self.scale * math.sqrt(2 / math.pi))
    variance = property(lambda self: self.scale.pow(2) * (1 - 2 / math.pi))
