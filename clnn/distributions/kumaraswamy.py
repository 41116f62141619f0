"""The Kumaraswamy distribution."""
import clnn

from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant


def _moment(a, b, n):
    """The n-th moment: ``b B(1 + n / a, b)``."""
    first = 1 + n / a
    return clnn.exp(b.log() + clnn.lgamma(first) + clnn.lgamma(b) - clnn.lgamma(first + b))


class Kumaraswamy(TransformedDistribution):
    """Numbers between 0 and 1 with the distribution function ``1 - (1 - x^a)^b``: ``concentration1`` and ``concentration0``.

    Example:
        >>> d = clnn.distributions.Kumaraswamy(2.0, 3.0)
        >>> d.log_prob(clnn.tensor(0.5)), d.mean
        (tensor(0.5232), tensor(0.4571))
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1, concentration0, validate_args=None):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(clnn.full_like(self.concentration0, 0), clnn.full_like(self.concentration0, 1), validate_args=validate_args)
        transforms = [PowerTransform(exponent=self.concentration0.reciprocal()), AffineTransform(loc=1.0, scale=-1.0),
                      PowerTransform(exponent=self.concentration1.reciprocal())]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Kumaraswamy, _instance)
        new.concentration1, new.concentration0 = self.concentration1.expand(batch_shape), self.concentration0.expand(batch_shape)
        return super().expand(batch_shape, new)

    mean = property(lambda self: _moment(self.concentration1, self.concentration0, 1))
    variance = property(lambda self: _moment(self.concentration1, self.concentration0, 2) - self.mean.pow(2))

    @property
    def mode(self):
        a, b = self.concentration1, self.concentration0
        inside = ((a - 1) / (a * b - 1)) ** a.reciprocal()
        return clnn.where((a < 1) | (b < 1), clnn.nan, inside)

    def entropy(self):
        t1, t0 = 1 - self.concentration1.reciprocal(), 1 - self.concentration0.reciprocal()
        harmonic = clnn.digamma(self.concentration0 + 1) + euler_constant
        return t0 + t1 * harmonic - self.concentration1.log() - self.concentration0.log()
