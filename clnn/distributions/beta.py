"""The beta distribution."""
import clnn

from . import constraints
from .dirichlet import Dirichlet
from .exp_family import ExponentialFamily
from .utils import broadcast_all, scalar_shape


class Beta(ExponentialFamily):
    """Numbers between 0 and 1 with a density proportional to ``x^(a - 1) (1 - x)^(b - 1)``: ``concentration1`` and ``concentration0``.

    Example:
        >>> d = clnn.distributions.Beta(2.0, 3.0)
        >>> d.log_prob(clnn.tensor(0.5)), d.mean
        (tensor(0.4055), tensor(0.4000))
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1, concentration0, validate_args=None):
        plain = scalar_shape(concentration1, concentration0)
        pair = clnn.stack(list(broadcast_all(concentration1, concentration0)), -1)
        self._dirichlet = Dirichlet(pair, validate_args=validate_args)
        super().__init__(() if plain else self._dirichlet.batch_shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Beta, batch_shape, _instance, _dirichlet=self._dirichlet.expand(batch_shape))

    concentration1 = property(lambda self: self._dirichlet.concentration[..., 0])
    concentration0 = property(lambda self: self._dirichlet.concentration[..., 1])
    mean = property(lambda self: self.concentration1 / (self.concentration1 + self.concentration0))
    mode = property(lambda self: self._dirichlet.mode[..., 0])

    @property
    def variance(self):
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape=()):
        return self._dirichlet.rsample(sample_shape)[..., 0]

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return self._dirichlet.log_prob(clnn.stack([value, 1.0 - value], -1))

    def entropy(self):
        return self._dirichlet.entropy()

    @property
    def _natural_params(self):
        return self.concentration1, self.concentration0

    def _log_normalizer(self, x, y):
        return clnn.lgamma(x) + clnn.lgamma(y) - clnn.lgamma(x + y)
