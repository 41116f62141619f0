"""The Poisson distribution."""
import clnn

from . import constraints
from .distribution import Scalars
from .exp_family import ExponentialFamily


class Poisson(Scalars, ExponentialFamily):
    """Counts of events that happen at ``rate`` on average.

    Example:
        >>> d = clnn.distributions.Poisson(3.0)
        >>> d.log_prob(clnn.tensor(2.0)), d.mean
        (tensor(-1.4959), tensor(3.))
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate, validate_args=None):
        self._start(validate_args, rate=rate)

    mean = variance = property(lambda self: self.rate)
    mode = property(lambda self: self.rate.floor())

    def sample(self, sample_shape=()):
        with clnn.no_grad():
            return clnn.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        rate, value = clnn.broadcast_tensors(self.rate, self._checked(value))
        return clnn.xlogy(value, rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self):
        return (self.rate.log(),)

    def _log_normalizer(self, x):
        return x.exp()
