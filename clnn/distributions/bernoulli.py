"""The Bernoulli distribution."""
import math

import clnn

from . import constraints
from ._binary import Binary, cross_entropy_of
from .exp_family import ExponentialFamily


class Bernoulli(Binary, ExponentialFamily):
    """1 with probability ``probs`` (or log-odds ``logits``), else 0.

    Example:
        >>> clnn.distributions.Bernoulli(0.3).log_prob(clnn.tensor(1.)).exp()
        tensor(0.3000)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._start_binary(validate_args, probs, logits)

    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))

    @property
    def mode(self):
        mode = (self.probs >= 0.5).to(self.probs.dtype)
        return clnn.where(self.probs == 0.5, math.nan, mode)

    def sample(self, sample_shape=()):
        with clnn.no_grad():
            return clnn.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        value = self._checked(value)            # before logits are there, which an error would list
        logits, value = clnn.broadcast_tensors(self.logits, value)
        return -cross_entropy_of(logits, value)

    def entropy(self):
        return cross_entropy_of(self.logits, self.probs)

    def enumerate_support(self, expand=True):
        values = clnn.arange(2, dtype=self._param.dtype, device=self._param.device).reshape((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + tuple(self._batch_shape)) if expand else values

    _mean_carrier_measure = 0

    @property
    def _natural_params(self):
        return (clnn.logit(self.probs),)

    def _log_normalizer(self, x):
        return clnn.log1p(clnn.exp(x))
