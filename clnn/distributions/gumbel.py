"""The Gumbel distribution."""
import math

import clnn

from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant, scalar_shape


class Gumbel(TransformedDistribution):
    """Limits of maxima: ``loc - scale log(-log u)`` of uniform ``u``.

    Example:
        >>> d = clnn.distributions.Gumbel(0.0, 1.0)
        >>> d.log_prob(clnn.tensor(0.0)), d.mean
        (tensor(-1.), tensor(0.5772))
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc, scale, validate_args=None):
        plain = scalar_shape(loc, scale)
        self.loc, self.scale = broadcast_all(loc, scale)
        info = clnn.finfo(self.loc.dtype)
        low, high = (info.tiny, 1 - info.eps) if plain else (clnn.full_like(self.loc, info.tiny), clnn.full_like(self.loc, 1 - info.eps))
        transforms = [ExpTransform().inv, AffineTransform(loc=0, scale=-clnn.ones_like(self.scale)), ExpTransform().inv,
                      AffineTransform(loc=self.loc, scale=-self.scale)]
        super().__init__(Uniform(low, high, validate_args=validate_args), transforms, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Gumbel, _instance)
        new.loc, new.scale = self.loc.expand(batch_shape), self.scale.expand(batch_shape)
        return super().expand(batch_shape, new)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return y - y.exp() - self.scale.log()

    mean = property(lambda self: self.loc + self.scale * euler_constant)
    mode = property(lambda self: self.loc)
    stddev = property(lambda self: math.pi / math.sqrt(6) * self.scale)
    variance = property(lambda self: self.stddev.pow(2))

    def entropy(self):
        return self.scale.log() + (1 + euler_constant)
