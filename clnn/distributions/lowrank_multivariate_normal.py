"""The multivariate normal distribution with a covariance of low rank plus a diagonal."""
import math

import clnn

from . import constraints
from .distribution import Distribution
from .multivariate_normal import _batch_mv, squared_distance
from .utils import lazy_property


def _capacitance_tril(W, D):
    """Cholesky factor of ``I + W^T D^-1 W``."""
    K = W.mT @ (W / D.unsqueeze(-1))
    return clnn.linalg.cholesky(K + clnn.eye(W.shape[-1], dtype=W.dtype, device=W.device))


def _low_rank_log_det(W, D, capacitance):
    """log det (W W^T + D), by the matrix determinant lemma."""
    return 2 * capacitance.diagonal(0, -2, -1).log().sum(-1) + D.log().sum(-1)


def _low_rank_distance(W, D, x, capacitance):
    """``x^T (W W^T + D)^-1 x``, by Woodbury's identity."""
    inner = _batch_mv(W.mT / D.unsqueeze(-2), x)
    return (x.pow(2) / D).sum(-1) - squared_distance(capacitance, inner)


class LowRankMultivariateNormal(Distribution):
    """Normal vectors with the covariance ``W W^T + diag(D)``: ``cov_factor`` W and ``cov_diag`` D.

    Args:
        loc: shape (*batch, n).
        cov_factor: shape (*batch, n, rank), rank being much smaller than n.
        cov_diag: positive, shape (*batch, n).

    Example:
        >>> d = clnn.distributions.LowRankMultivariateNormal(clnn.zeros(2), clnn.ones(2, 1), clnn.ones(2))
        >>> d.log_prob(clnn.zeros(2)), d.variance
        (tensor(-2.3872), tensor([2., 2.]))
    """

    arg_constraints = {"loc": constraints.real_vector, "cov_factor": constraints.independent(constraints.real, 2),
                       "cov_diag": constraints.independent(constraints.positive, 1)}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, cov_factor, cov_diag, validate_args=None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        n = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if tuple(cov_factor.shape[-2:-1]) != tuple(n):
            raise ValueError(f"cov_factor must be a batch of matrices with shape {n[0]} x m")
        if tuple(cov_diag.shape[-1:]) != tuple(n):
            raise ValueError(f"cov_diag must be a batch of vectors with shape {n}")
        try:
            full = clnn.broadcast_shapes(loc.shape, cov_diag.shape, cov_factor.shape[:-1])
        except RuntimeError as e:
            raise ValueError(f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}") from e
        self.loc, self.cov_diag, self.cov_factor = loc.expand(full), cov_diag.expand(full), cov_factor.expand(full + cov_factor.shape[-1:])
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        self._capacitance_tril = _capacitance_tril(cov_factor, cov_diag)
        super().__init__(full[:-1], n, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        full = clnn.Size(batch_shape) + self.event_shape
        names = ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril")
        return self._expanded(LowRankMultivariateNormal, batch_shape, _instance, self.event_shape, loc=self.loc.expand(full),
                              cov_diag=self.cov_diag.expand(full), cov_factor=self.cov_factor.expand(full + self.cov_factor.shape[-1:]),
                              **{n: getattr(self, n) for n in names})

    mean = mode = property(lambda self: self.loc)

    @lazy_property
    def variance(self):
        """Diagonal of the covariance."""
        return (self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag).expand(self._batch_shape + self._event_shape)

    @lazy_property
    def covariance_matrix(self):
        """``W W^T + diag(D)``."""
        W = self._unbroadcasted_cov_factor
        matrix = W @ W.mT + self._unbroadcasted_cov_diag.diag_embed()
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def scale_tril(self):
        """Cholesky factor of the covariance."""
        return clnn.linalg.cholesky(self.covariance_matrix)

    @lazy_property
    def precision_matrix(self):
        """Inverse of the covariance, by Woodbury's identity."""
        W, D = self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag
        A = clnn.linalg.solve_triangular(self._capacitance_tril, W.mT / D.unsqueeze(-2), upper=False)
        return (D.reciprocal().diag_embed() - A.mT @ A).expand(self._batch_shape + self._event_shape + self._event_shape)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        options = dict(dtype=self.loc.dtype, device=self.loc.device)
        low = clnn.randn(shape[:-1] + self.cov_factor.shape[-1:], **options)
        return self.loc + _batch_mv(self._unbroadcasted_cov_factor, low) + self._unbroadcasted_cov_diag.sqrt() * clnn.randn(shape, **options)

    def _log_det(self):
        return _low_rank_log_det(self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, self._capacitance_tril)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        distance = _low_rank_distance(self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, value - self.loc, self._capacitance_tril)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det() + distance)

    def entropy(self):
        value = 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._log_det())
        return value if not self._batch_shape else value.expand(self._batch_shape)
