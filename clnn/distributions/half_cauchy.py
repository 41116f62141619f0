"""The half-Cauchy distribution."""
import math

import clnn

from ._half import Half
from .cauchy import Cauchy
from .transforms import AbsTransform


class HalfCauchy(Half):
    """Absolute values of Cauchy numbers of the given ``scale``.

    Example:
        >>> d = clnn.distributions.HalfCauchy(1.0)
        >>> d.log_prob(clnn.tensor(1.0)), d.entropy()
        (tensor(-1.1447), tensor(1.8379))
    """

    def __init__(self, scale, validate_args=None):
        super().__init__(Cauchy(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._get_checked_instance(HalfCauchy, _instance))

    mean = property(lambda self: clnn.full_like(self.scale, math.inf))
    variance = property(lambda self: self.base_dist.variance)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        value = clnn.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        return clnn.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)
