"""The binomial distribution."""
import clnn

from . import constraints
from ._binary import Binary


class Binomial(Binary):
    """Successes in ``total_count`` independent trials of probability ``probs`` (or log-odds ``logits``).

    Example:
        >>> d = clnn.distributions.Binomial(4, probs=clnn.tensor(0.5))
        >>> d.log_prob(clnn.tensor(2.0)), d.mean
        (tensor(-0.9808), tensor(2.))
    """

    arg_constraints = {"total_count": constraints.nonnegative_integer, "probs": constraints.unit_interval, "logits": constraints.real}
    has_enumerate_support = True

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        self._start_binary(validate_args, probs, logits, total_count=total_count)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self.total_count)

    mean = property(lambda self: self.total_count * self.probs)
    mode = property(lambda self: ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count))
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        with clnn.no_grad():
            return clnn.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value):
        value, n = self._checked(value), self.total_count
        ways = clnn.lgamma(n + 1) - clnn.lgamma(value + 1) - clnn.lgamma(n - value + 1)
        # log(1 + exp(logits)) without overflow
        soft = self.logits.clamp(min=0) + clnn.log1p(clnn.exp(-self.logits.abs()))
        return ways + value * self.logits - n * soft

    def entropy(self):
        count = int(self.total_count.max())
        if not bool((self.total_count.min() == count)):
            raise NotImplementedError("Inhomogeneous total count not supported by `entropy`.")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(clnn.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand=True):
        count = int(self.total_count.max())
        if not bool((self.total_count.min() == count)):
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        values = clnn.arange(1 + count, dtype=self._param.dtype, device=self._param.device).reshape((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + tuple(self._batch_shape)) if expand else values
