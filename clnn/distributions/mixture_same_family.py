"""Mixtures of distributions of one family."""
import clnn

from . import constraints
from .categorical import Categorical
from .constraints import MixtureSameFamilyConstraint
from .distribution import Distribution


class MixtureSameFamily(Distribution):
    """A mixture: a component is drawn from a :class:`Categorical`, then a value from the component.

    Args:
        mixture_distribution: Categorical over K components, batch shape B.
        component_distribution: a distribution of batch shape B + (K,).

    Example:
        >>> D = clnn.distributions
        >>> gmm = D.MixtureSameFamily(D.Categorical(clnn.ones(5)), D.Normal(clnn.zeros(5), clnn.ones(5)))
        >>> gmm.log_prob(clnn.tensor(0.))
        tensor(-0.9189)
    """

    arg_constraints = {}
    has_rsample = False

    def __init__(self, mixture_distribution, component_distribution, validate_args=None):
        self._mixture_distribution, self._component_distribution = mixture_distribution, component_distribution
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of clnn.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution needs to be an instance of clnn.distributions.Distribution")
        mixed, parts = mixture_distribution.batch_shape, component_distribution.batch_shape[:-1]
        if any(a != 1 and b != 1 and a != b for a, b in zip(reversed(mixed), reversed(parts))):
            raise ValueError(f"`mixture_distribution.batch_shape` ({mixed}) is not compatible with `component_distribution.batch_shape`({parts})")
        k, have = mixture_distribution.logits.shape[-1], component_distribution.batch_shape[-1]
        if k != have:
            raise ValueError(f"`mixture_distribution component` ({k}) does not equal `component_distribution.batch_shape[-1]` ({have})")
        self._num_component = k
        event = component_distribution.event_shape
        self._event_ndims = len(event)
        super().__init__(parts, event, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        batch_shape = clnn.Size(batch_shape)
        return self._expanded(MixtureSameFamily, batch_shape, _instance, self._event_shape, _num_component=self._num_component,
                              _event_ndims=self._event_ndims, _mixture_distribution=self._mixture_distribution.expand(batch_shape),
                              _component_distribution=self._component_distribution.expand(batch_shape + (self._num_component,)))

    @constraints.dependent_property
    def support(self):
        return MixtureSameFamilyConstraint(self._component_distribution.support)

    mixture_distribution = property(lambda self: self._mixture_distribution)
    component_distribution = property(lambda self: self._component_distribution)

    def _padded_probs(self):
        """Weights that broadcast against events of the components."""
        probs = self.mixture_distribution.probs
        return probs.reshape(probs.shape + (1,) * self._event_ndims)

    @property
    def mean(self):
        return (self._padded_probs() * self.component_distribution.mean).sum(-1 - self._event_ndims)

    @property
    def variance(self):
        probs, dim = self._padded_probs(), -1 - self._event_ndims
        inside = (probs * self.component_distribution.variance).sum(dim)
        away = self.component_distribution.mean - self.mean.unsqueeze(dim)
        return inside + (probs * away.pow(2)).sum(dim)

    def cdf(self, x):
        cdf = self.component_distribution.cdf(self._pad(x))
        return (cdf * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, x):
        if self._validate_args:
            self._validate_sample(x)
        log_prob = self.component_distribution.log_prob(self._pad(x))
        return clnn.logsumexp(log_prob + clnn.log_softmax(self.mixture_distribution.logits, -1), -1)

    def sample(self, sample_shape=()):
        with clnn.no_grad():
            at = len(clnn.Size(sample_shape)) + len(self.batch_shape)
            chosen = self.mixture_distribution.sample(sample_shape)
            values = self.component_distribution.sample(sample_shape)
            chosen = chosen.reshape(chosen.shape + (1,) * (self._event_ndims + 1)).expand(values.shape[:at] + (1,) + self.event_shape)
            return values.gather(at, chosen).squeeze(at)

    def _pad(self, x):
        return x.unsqueeze(x.dim() - self._event_ndims)

    def __repr__(self):
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
