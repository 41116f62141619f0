"""One-hot categorical distributions."""
import clnn

from . import constraints
from .categorical import Categorical
from .distribution import Distribution


class OneHotCategorical(Distribution):
    """A :class:`Categorical` whose samples are one-hot vectors.

    Example:
        >>> d = clnn.distributions.OneHotCategorical(probs=clnn.tensor([0.2, 0.8]))
        >>> d.log_prob(clnn.tensor([0.0, 1.0])), d.mean
        (tensor(-0.2231), tensor([0.2000, 0.8000]))
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(type(self), batch_shape, _instance, self.event_shape, _categorical=self._categorical.expand(batch_shape))

    _param = property(lambda self: self._categorical._param)
    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    mean = property(lambda self: self._categorical.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))
    param_shape = property(lambda self: self._categorical.param_shape)

    @property
    def mode(self):
        return clnn.nn.functional.one_hot(self.probs.argmax(-1), self.probs.shape[-1]).to(self.probs.dtype)

    def sample(self, sample_shape=()):
        drawn = self._categorical.sample(sample_shape)
        return clnn.nn.functional.one_hot(drawn, self._categorical._num_events).to(self.probs.dtype)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self):
        return self._categorical.entropy()

    def enumerate_support(self, expand=True):
        n = self.event_shape[0]
        values = clnn.eye(n, dtype=self._param.dtype, device=self._param.device).reshape((n,) + (1,) * len(self.batch_shape) + (n,))
        return values.expand((n,) + tuple(self.batch_shape) + (n,)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """:class:`OneHotCategorical` whose draws pass gradients on to the probabilities as they are. Bengio et al., 2013.

    Example:
        >>> p = clnn.tensor([0.2, 0.8], requires_grad=True)
        >>> d = clnn.distributions.OneHotCategoricalStraightThrough(probs=p)
        >>> d.rsample().sum().backward()
        >>> p.grad.shape
        clnn.Size([2])
    """

    has_rsample = True

    def rsample(self, sample_shape=()):
        drawn, probs = self.sample(sample_shape), self.probs
        return drawn + (probs - probs.detach())
