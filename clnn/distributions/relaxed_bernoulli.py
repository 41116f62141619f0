"""The relaxed Bernoulli distribution."""
import clnn

from . import constraints
from ._binary import Binary
from .transformed_distribution import TransformedDistribution
from .transforms import SigmoidTransform
from .utils import clamp_probs


class LogitRelaxedBernoulli(Binary):
    """Logits of :class:`RelaxedBernoulli`. Maddison et al., "The Concrete Distribution", 2016.

    Example:
        >>> d = clnn.distributions.LogitRelaxedBernoulli(clnn.tensor(0.5), probs=clnn.tensor([0.3, 0.7]))
        >>> d.rsample().shape
        clnn.Size([2])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self.temperature = temperature
        self._start_binary(validate_args, probs, logits)

    def expand(self, batch_shape, _instance=None):
        new = super().expand(batch_shape, _instance)
        new.temperature = self.temperature
        return new

    def rsample(self, sample_shape=()):
        probs = clamp_probs(self.probs.expand(self._extended_shape(sample_shape)))
        u = clamp_probs(clnn.rand(probs.shape, dtype=probs.dtype, device=probs.device))
        return (u.log() - (-u).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value):
        logits, value = clnn.broadcast_tensors(self.logits, self._checked(value))
        diff = logits - value.mul(self.temperature)
        return self.temperature.log() + diff - 2 * diff.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """Numbers between 0 and 1 that approach Bernoulli draws as ``temperature`` falls, with gradients to the probabilities.

    Example:
        >>> d = clnn.distributions.RelaxedBernoulli(clnn.tensor(0.5), probs=clnn.tensor([0.3, 0.7]))
        >>> d.rsample().shape
        clnn.Size([2])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        super().__init__(LogitRelaxedBernoulli(temperature, probs, logits), SigmoidTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._get_checked_instance(RelaxedBernoulli, _instance))

    temperature = property(lambda self: self.base_dist.temperature)
    logits = property(lambda self: self.base_dist.logits)
    probs = property(lambda self: self.base_dist.probs)
