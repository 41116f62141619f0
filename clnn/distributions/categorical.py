"""The categorical distribution."""
import clnn
from clnn._tensor.splice import spliced

from . import constraints
from ._binary import one_of
from .distribution import Distribution
from .utils import lazy_property, logits_to_probs, probs_to_logits


@spliced
def _picked(value, logits):
    value, log = clnn.broadcast_tensors(value.unsqueeze(-1), logits)
    return log.gather(-1, value[..., :1]).squeeze(-1)


@spliced
def _entropy(logits, probs):
    return -(logits.clamp(min=clnn.finfo(logits.dtype).min) * probs).sum(-1)


class Categorical(Distribution):
    """Indices ``0 .. K - 1`` with the given probabilities.

    Args:
        probs: not negative, shape (*batch, K); rows are divided by their sum.
        logits: unnormalised log-probabilities, shape (*batch, K); given instead of ``probs``.

    Example:
        >>> d = clnn.distributions.Categorical(clnn.tensor([0.25, 0.75]))
        >>> d.sample().shape, d.log_prob(clnn.tensor(1)).exp()
        (clnn.Size([]), tensor(0.7500))
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        name = one_of(probs, logits)
        self._param = probs if name == "probs" else logits
        if self._param.dim() < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if name == "probs":
            self.probs = self._param = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = self._param = clnn.log_softmax(logits if logits.is_floating_point() else logits.to(clnn.get_default_dtype()), -1)
        self._num_events = self._param.shape[-1]
        super().__init__(self._param.shape[:-1], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        full = clnn.Size(batch_shape) + (self._num_events,)
        known = {n: self.__dict__[n].expand(full) for n in ("probs", "logits") if n in self.__dict__}
        return self._expanded(Categorical, batch_shape, _instance, _param=self._param.expand(full), _num_events=self._num_events, **known)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self):
        """Normalised log-probabilities."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self):
        """Probabilities."""
        return logits_to_probs(self.logits)

    @property
    def param_shape(self):
        """Shape of the parameter."""
        return self._param.size()

    @property
    def mean(self):
        return clnn.full(self._extended_shape(), float("nan"), dtype=self.probs.dtype, device=self.probs.device)

    variance = mean
    mode = property(lambda self: self.probs.argmax(-1))

    def sample(self, sample_shape=()):
        with clnn.no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            draws = clnn.multinomial(rows, clnn.Size(sample_shape).numel(), True)
            return draws.t().reshape(self._extended_shape(sample_shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return _picked(value.long(), self.logits)

    def entropy(self):
        return _entropy(self.logits, self.probs)

    def enumerate_support(self, expand=True):
        values = clnn.arange(self._num_events, dtype=clnn.int64, device=self._param.device).reshape((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + tuple(self._batch_shape)) if expand else values
