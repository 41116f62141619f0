"""The geometric distribution."""
import clnn

from . import constraints
from ._binary import Binary, cross_entropy_of


class Geometric(Binary):
    """Failures before the first success of probability ``probs`` (or log-odds ``logits``).

    Example:
        >>> d = clnn.distributions.Geometric(probs=clnn.tensor(0.5))
        >>> d.log_prob(clnn.tensor(2.0)), d.mean
        (tensor(-2.0794), tensor(1.))
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._start_binary(validate_args, probs, logits)
        if self._validate_args and probs is not None and not constraints.satisfied(constraints.positive, self.probs):
            raise ValueError(f"Expected parameter probs ({type(self.probs).__name__} of shape {tuple(self.probs.shape)}) of distribution {self!r} "
                             f"to be positive but found invalid values:\n{self.probs}")

    mean = property(lambda self: 1.0 / self.probs - 1.0)
    mode = property(lambda self: clnn.zeros_like(self.probs))
    variance = property(lambda self: (1.0 / self.probs - 1.0) / self.probs)

    def sample(self, sample_shape=()):
        with clnn.no_grad():
            return (self._uniform(sample_shape).log() / clnn.log1p(-self.probs)).floor()

    def log_prob(self, value):
        value, probs = clnn.broadcast_tensors(self._checked(value), self.probs)
        probs = clnn.where((probs == 1) & (value == 0), 0.0, probs)
        return value * clnn.log1p(-probs) + self.probs.log()

    def entropy(self):
        return cross_entropy_of(self.logits, self.probs) / self.probs
