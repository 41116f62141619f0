"""The chi-squared distribution."""
from . import constraints
from .gamma import Gamma


class Chi2(Gamma):
    """Sums of the squares of ``df`` independent standard normal numbers.

    Example:
        >>> d = clnn.distributions.Chi2(2.0)
        >>> d.log_prob(clnn.tensor(1.0)), d.mean
        (tensor(-1.1931), tensor(2.))
    """

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df, validate_args=None):
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._get_checked_instance(Chi2, _instance))

    @property
    def df(self):
        """Degrees of freedom."""
        return self.concentration * 2
