"""Batch dimensions turned into event dimensions."""
import clnn

from . import constraints
from .distribution import Distribution
from .utils import sum_rightmost


class Independent(Distribution):
    """A distribution some of whose batch dimensions, from the right, count as parts of one event: log-probabilities are summed over them.

    Example:
        >>> d = clnn.distributions.Independent(clnn.distributions.Normal(clnn.zeros(3), clnn.ones(3)), 1)
        >>> d.batch_shape, d.event_shape
        (clnn.Size([]), clnn.Size([3]))
    """

    arg_constraints = {}

    def __init__(self, base_distribution, reinterpreted_batch_ndims, validate_args=None):
        n = reinterpreted_batch_ndims
        if n > len(base_distribution.batch_shape):
            raise ValueError("Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), "
                             f"actual {n} vs {len(base_distribution.batch_shape)}")
        shape = base_distribution.batch_shape + base_distribution.event_shape
        cut = len(base_distribution.batch_shape) - n
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, n
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        batch_shape = clnn.Size(batch_shape)
        base = self.base_dist.expand(batch_shape + self.event_shape[:self.reinterpreted_batch_ndims])
        return self._expanded(Independent, batch_shape, _instance, self.event_shape, base_dist=base,
                              reinterpreted_batch_ndims=self.reinterpreted_batch_ndims)

    has_rsample = property(lambda self: self.base_dist.has_rsample)
    mean = property(lambda self: self.base_dist.mean)
    mode = property(lambda self: self.base_dist.mode)
    variance = property(lambda self: self.base_dist.variance)

    @property
    def has_enumerate_support(self):
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self):
        inner = self.base_dist.support
        return constraints.independent(inner, self.reinterpreted_batch_ndims) if self.reinterpreted_batch_ndims else inner

    def sample(self, sample_shape=()):
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape=()):
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value):
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self):
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand=True):
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand)

    def __repr__(self):
        return f"{self.__class__.__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"
