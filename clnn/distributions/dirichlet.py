"""The Dirichlet distribution."""
import clnn

from ..ops.gamma import dirichlet
from . import constraints
from .exp_family import ExponentialFamily


class Dirichlet(ExponentialFamily):
    """Probability vectors: gamma numbers of shape ``concentration`` divided by their sum along the last dimension.

    Args:
        concentration: positive, shape (*batch, K) with K categories.

    Example:
        >>> d = clnn.distributions.Dirichlet(clnn.tensor([1.0, 2.0, 3.0]))
        >>> d.log_prob(clnn.tensor([0.2, 0.3, 0.5])), d.mean
        (tensor(1.5041), tensor([0.1667, 0.3333, 0.5000]))
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration, validate_args=None):
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        full = clnn.Size(batch_shape) + self.event_shape
        return self._expanded(Dirichlet, batch_shape, _instance, self.event_shape, concentration=self.concentration.expand(full))

    @property
    def mean(self):
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self):
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, True)
        corner = (self.concentration < 1).all(-1, True)
        first = clnn.arange(mode.shape[-1], device=mode.device) == 0   # all corners are modes then
        return clnn.where(corner, first.to(mode.dtype), mode)

    @property
    def variance(self):
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape=()):
        return dirichlet(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        a = self.concentration
        return clnn.xlogy(a - 1.0, value).sum(-1) + clnn.lgamma(a.sum(-1)) - clnn.lgamma(a).sum(-1)

    def entropy(self):
        a, k = self.concentration, self.concentration.shape[-1]
        total = a.sum(-1)
        return clnn.lgamma(a).sum(-1) - clnn.lgamma(total) - (k - total) * clnn.digamma(total) - ((a - 1.0) * clnn.digamma(a)).sum(-1)

    @property
    def _natural_params(self):
        return (self.concentration,)

    def _log_normalizer(self, x):
        return x.lgamma().sum(-1) - clnn.lgamma(x.sum(-1))
