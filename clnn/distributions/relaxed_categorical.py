"""The relaxed one-hot categorical (Gumbel-softmax) distribution."""
import clnn

from . import constraints
from .categorical import Categorical
from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform
from .utils import clamp_probs


class ExpRelaxedCategorical(Distribution):
    """Logarithms of :class:`RelaxedOneHotCategorical`. Maddison et al., 2016; Jang et al., 2016.

    Example:
        >>> d = clnn.distributions.ExpRelaxedCategorical(clnn.tensor(0.5), probs=clnn.tensor([0.2, 0.8]))
        >>> clnn.allclose(d.rsample().exp().sum(), clnn.tensor(1.0))
        True
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self._categorical, self.temperature = Categorical(probs, logits), temperature
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(ExpRelaxedCategorical, batch_shape, _instance, self.event_shape, temperature=self.temperature,
                              _categorical=self._categorical.expand(batch_shape))

    param_shape = property(lambda self: self._categorical.param_shape)
    logits = property(lambda self: self._categorical.logits)
    probs = property(lambda self: self._categorical.probs)

    def rsample(self, sample_shape=()):
        u = clamp_probs(clnn.rand(self._extended_shape(sample_shape), dtype=self.logits.dtype, device=self.logits.device))
        scores = (self.logits - (-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(-1, keepdim=True)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        k = self._categorical._num_events
        logits, value = clnn.broadcast_tensors(self.logits, value)
        t = self.temperature
        norm = clnn.full_like(t, float(k)).lgamma() - t.log().mul(-(k - 1))
        score = logits - value.mul(t)
        return (score - score.logsumexp(-1, keepdim=True)).sum(-1) + norm


class RelaxedOneHotCategorical(TransformedDistribution):
    """Probability vectors that approach one-hot draws as ``temperature`` falls, with gradients to the probabilities.

    Example:
        >>> d = clnn.distributions.RelaxedOneHotCategorical(clnn.tensor(0.5), probs=clnn.tensor([0.2, 0.3, 0.5]))
        >>> clnn.allclose(d.rsample().sum(), clnn.tensor(1.0))
        True
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._get_checked_instance(RelaxedOneHotCategorical, _instance))

    temperature = property(lambda self: self.base_dist.temperature)
    logits = property(lambda self: self.base_dist.logits)
    probs = property(lambda self: self.base_dist.probs)
