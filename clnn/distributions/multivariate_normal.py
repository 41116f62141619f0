"""The multivariate normal distribution."""
import math

import clnn

from . import constraints
from ._covariance import Covariance
from ._covariance import precision_to_tril as _precision_to_scale_tril  # noqa: F401  PyTorch's name


def _batch_mv(matrix, vector):
    """Products of batches of matrices and vectors."""
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def squared_distance(L, away):
    """Mahalanobis distances squared: ``|L^-1 x|^2`` for batches that broadcast against each other."""
    shape = clnn.broadcast_shapes(L.shape[:-1], away.shape)
    n = shape[-1]
    if L.numel() == n * n:                                          # one matrix: all vectors are columns of one right-hand side
        columns = away.expand(shape).reshape(-1, n).t()
        return clnn.linalg.solve_triangular(L.reshape(n, n), columns, upper=False).square().sum(0).reshape(shape[:-1])
    return clnn.linalg.solve_triangular(L.expand(shape + (n,)), away.expand(shape).unsqueeze(-1), upper=False).square().sum((-2, -1))


_batch_mahalanobis = squared_distance                               # PyTorch's name


class MultivariateNormal(Covariance):
    """Normal vectors of mean ``loc`` and a covariance given in one of three ways.

    Args:
        loc: shape (*batch, n).
        covariance_matrix, precision_matrix: positive-definite, shape (*batch, n, n).
        scale_tril: the lower triangular Cholesky factor of the covariance, shape (*batch, n, n).

    Example:
        >>> m = clnn.distributions.MultivariateNormal(clnn.zeros(2), clnn.eye(2))
        >>> m.log_prob(clnn.zeros(2))
        tensor(-1.8379)
    """

    arg_constraints = {"loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
                       "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, matrix = self._given(covariance_matrix=covariance_matrix, precision_matrix=precision_matrix, scale_tril=scale_tril)
        batch = clnn.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand(batch + (-1, -1)))
        self.loc = loc.expand(batch + (-1,))
        super().__init__(batch, loc.shape[-1:], validate_args=validate_args)
        self._factor(name, matrix)

    def expand(self, batch_shape, _instance=None):
        loc = clnn.Size(batch_shape) + self.event_shape
        return self._expanded(MultivariateNormal, batch_shape, _instance, self.event_shape, loc=self.loc.expand(loc),
                              **self._expanded_matrices(loc + self.event_shape))

    mean = mode = property(lambda self: self.loc)
    variance = property(lambda self: self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self._batch_shape + self._event_shape))

    def rsample(self, sample_shape=()):
        eps = clnn.randn(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, eps)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        distance = squared_distance(self._unbroadcasted_scale_tril, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - self._half_log_det()

    def entropy(self):
        value = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._half_log_det()
        return value if not self._batch_shape else value.expand(self._batch_shape)
