"""The multinomial distribution."""
import clnn

from . import constraints
from .binomial import Binomial
from .categorical import Categorical
from .distribution import Distribution


class Multinomial(Distribution):
    """Counts of each category in ``total_count`` draws.

    Args:
        total_count: an int, the same for the whole batch.
        probs, logits: as for :class:`Categorical`, shape (*batch, K).

    Example:
        >>> d = clnn.distributions.Multinomial(3, probs=clnn.tensor([0.5, 0.5]))
        >>> d.log_prob(clnn.tensor([1.0, 2.0])), d.mean
        (tensor(-0.9808), tensor([1.5000, 1.5000]))
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    total_count: int

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        full = clnn.Size(batch_shape) + self.event_shape
        return self._expanded(Multinomial, batch_shape, _instance, self.event_shape, total_count=self.total_count,
                              _categorical=self._categorical.expand(batch_shape), _binomial=self._binomial.expand(full))

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self):
        return constraints.multinomial(self.total_count)

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    param_shape = property(lambda self: self._categorical.param_shape)
    mean = property(lambda self: self.probs * self.total_count)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape=()):
        sample_shape = clnn.Size(sample_shape)
        drawn = self._categorical.sample(clnn.Size((self.total_count,)) + sample_shape)
        counts = clnn.nn.functional.one_hot(drawn, self._categorical._num_events).sum(0)
        return counts.to(self.probs.dtype)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = clnn.broadcast_tensors(self.logits, value)
        logits = clnn.where((value == 0) & (logits == -clnn.inf), 0.0, logits)
        return clnn.lgamma(value.sum(-1) + 1) - clnn.lgamma(value + 1).sum(-1) + (logits * value).sum(-1)

    def entropy(self):
        n = clnn.tensor(self.total_count, dtype=self.probs.dtype, device=self.probs.device)
        support = self._binomial.enumerate_support(expand=False)[1:]
        weight = (clnn.exp(self._binomial.log_prob(support)) * clnn.lgamma(support + 1)).sum((0, -1))
        return n * self._categorical.entropy() - clnn.lgamma(n + 1) + weight
