"""The logistic normal distribution."""
from . import constraints
from .independent import Independent
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import StickBreakingTransform


class LogisticNormal(TransformedDistribution):
    """Probability vectors of K categories: K - 1 normal numbers mapped by stick breaking.

    Example:
        >>> d = clnn.distributions.LogisticNormal(clnn.zeros(2), clnn.ones(2))
        >>> d.event_shape, clnn.allclose(d.sample().sum(), clnn.tensor(1.0))
        (clnn.Size([3]), True)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        base = Normal(loc, scale, validate_args=validate_args)
        base = base.expand([1]) if not base.batch_shape else base
        super().__init__(Independent(base, 1), StickBreakingTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._get_checked_instance(LogisticNormal, _instance))

    loc = property(lambda self: self.base_dist.base_dist.loc)
    scale = property(lambda self: self.base_dist.base_dist.scale)
