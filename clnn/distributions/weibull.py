"""The Weibull distribution."""
import clnn

from . import constraints
from .exponential import Exponential
from .gumbel import euler_constant
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .utils import broadcast_all


class Weibull(TransformedDistribution):
    """``scale * e^(1 / concentration)`` of standard exponential ``e``: life times whose hazard is a power of the age.

    Example:
        >>> d = clnn.distributions.Weibull(1.0, 2.0)
        >>> d.log_prob(clnn.tensor(1.0)), d.mean
        (tensor(-0.3069), tensor(0.8862))
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale, concentration, validate_args=None):
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(clnn.ones_like(self.scale), validate_args=validate_args)
        transforms = [PowerTransform(exponent=self.concentration_reciprocal), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Weibull, _instance)
        new.scale, new.concentration = self.scale.expand(batch_shape), self.concentration.expand(batch_shape)
        new.concentration_reciprocal = new.concentration.reciprocal()
        base = self.base_dist.expand(batch_shape)
        transforms = [PowerTransform(exponent=new.concentration_reciprocal), AffineTransform(loc=0, scale=new.scale)]
        return self._expanded(Weibull, batch_shape, new, base_dist=base, transforms=transforms)

    mean = property(lambda self: self.scale * clnn.exp(clnn.lgamma(1 + self.concentration_reciprocal)))

    @property
    def mode(self):
        k = self.concentration
        return self.scale * ((k - 1) / k) ** k.reciprocal()

    @property
    def variance(self):
        r = self.concentration_reciprocal
        return self.scale.pow(2) * (clnn.exp(clnn.lgamma(1 + 2 * r)) - clnn.exp(2 * clnn.lgamma(1 + r)))

    def entropy(self):
        r = self.concentration_reciprocal
        return euler_constant * (1 - r) + clnn.log(self.scale * r) + 1
