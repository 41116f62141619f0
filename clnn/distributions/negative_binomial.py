"""The negative binomial distribution."""
import clnn

from ..ops.gamma import standard_gamma
from . import constraints
from ._binary import Binary


class NegativeBinomial(Binary):
    """Successes of probability ``probs`` (or log-odds ``logits``) before ``total_count`` failures have happened.

    Example:
        >>> d = clnn.distributions.NegativeBinomial(3, probs=clnn.tensor(0.5))
        >>> d.log_prob(clnn.tensor(2.0)), d.mean
        (tensor(-1.6740), tensor(3.))
    """

    arg_constraints = {"total_count": constraints.greater_than_eq(0), "probs": constraints.half_open_interval(0.0, 1.0), "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, total_count, probs=None, logits=None, validate_args=None):
        self._start_binary(validate_args, probs, logits, total_count=total_count)

    mean = property(lambda self: self.total_count * clnn.exp(self.logits))
    mode = property(lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0))
    variance = property(lambda self: self.mean / clnn.sigmoid(-self.logits))

    def sample(self, sample_shape=()):
        with clnn.no_grad():
            rate = standard_gamma(self.total_count.expand(self._extended_shape(sample_shape))) * clnn.exp(self.logits)
            return clnn.poisson(rate)

    def log_prob(self, value):
        value, n = self._checked(value), self.total_count
        log = clnn.nn.functional.logsigmoid
        ways = clnn.lgamma(n + value) - clnn.lgamma(1.0 + value) - clnn.lgamma(n)
        ways = clnn.where(n + value == 0.0, 0.0, ways)
        return n * log(-self.logits) + value * log(self.logits) + ways
