"""The Wishart distribution."""
import math
import warnings

import clnn

from ..ops.gamma import standard_gamma
from . import constraints
from ._covariance import Covariance
from .exp_family import ExponentialFamily


class Wishart(Covariance, ExponentialFamily):
    """Positive-definite matrices ``X X^T`` of ``df`` normal vectors: Bartlett's decomposition.

    Args:
        df: degrees of freedom, above n - 1; a number or shape (*batch).
        covariance_matrix, precision_matrix, scale_tril: one of them, shape (*batch, n, n).

    Example:
        >>> d = clnn.distributions.Wishart(3.0, covariance_matrix=clnn.eye(2))
        >>> d.mean
        tensor([[3., 0.],
                [0., 3.]])
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    @property
    def arg_constraints(self):
        return {"covariance_matrix": constraints.positive_definite, "precision_matrix": constraints.positive_definite,
                "scale_tril": constraints.lower_cholesky, "df": constraints.greater_than(self.event_shape[-1] - 1)}

    def __init__(self, df, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        name, matrix = self._given(covariance_matrix=covariance_matrix, precision_matrix=precision_matrix, scale_tril=scale_tril)
        df = df if isinstance(df, clnn.Tensor) else clnn.tensor(float(df), dtype=matrix.dtype, device=matrix.device)
        batch, event = clnn.broadcast_shapes(df.shape, matrix.shape[:-2]), matrix.shape[-2:]
        if bool((df <= event[-1] - 1).any()):
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {event[-1] - 1}.")
        if (df < event[-1]).any():
            warnings.warn("Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.", stacklevel=2)
        setattr(self, name, matrix.expand(batch + (-1, -1)))
        self.df = df.expand(batch)
        super().__init__(batch, event, validate_args=validate_args)
        self._factor(name, matrix)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Wishart, batch_shape, _instance, self.event_shape, df=self.df.expand(batch_shape),
                              **self._expanded_matrices(clnn.Size(batch_shape) + self.event_shape))

    _df = property(lambda self: self.df.reshape(self._batch_shape + (1, 1)))
    mean = property(lambda self: self._df * self.covariance_matrix)

    @property
    def mode(self):
        factor = self._df - self.covariance_matrix.shape[-1] - 1
        return clnn.where(factor <= 0, math.nan, factor) * self.covariance_matrix

    @property
    def variance(self):
        V = self.covariance_matrix
        diagonal = V.diagonal(0, -2, -1)
        return self._df * (V.pow(2) + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def _bartlett_sampling(self, sample_shape):
        n, shape = self._event_shape[-1], clnn.Size(sample_shape) + self._batch_shape
        steps = clnn.arange(n, dtype=self.df.dtype, device=self.df.device)
        half = (0.5 * (self.df.unsqueeze(-1) - steps)).expand(shape + (n,))
        lower = (standard_gamma(half) / 0.5).sqrt().clamp(min=clnn.finfo(half.dtype).eps).diag_embed()
        rows, columns = clnn.tril_indices(n, n, offset=-1)
        lower[..., rows, columns] = clnn.randn(shape + (n * (n - 1) // 2,), dtype=half.dtype, device=half.device)
        root = self._unbroadcasted_scale_tril @ lower
        return root @ root.mT

    def rsample(self, sample_shape=(), max_try_correction=None):
        """Samples; as in PyTorch those that are found sound are drawn once more, up to ``max_try_correction`` times (10) until all of a draw are."""
        sample = self._bartlett_sampling(sample_shape)
        again = self._over_batch(self.support.check(sample))
        if again.any():
            warnings.warn("Singular sample detected.", stacklevel=2)
            for _ in range(10 if max_try_correction is None else max_try_correction):
                new, at = self._bartlett_sampling(again[again].shape), again.clone()      # backward reads where they went
                sample[at] = new
                again[at] = self._over_batch(~self.support.check(new))
                if not again.any():
                    break
        return sample

    def _over_batch(self, found):
        return found.amax([-1 - i for i in range(len(self._batch_shape))]) if self._batch_shape else found

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        nu, p = self.df, self._event_shape[-1]
        trace = clnn.cholesky_solve(value, self._unbroadcasted_scale_tril).diagonal(0, -2, -1).sum(-1)
        return (-nu * (p * math.log(2) / 2 + self._half_log_det()) - clnn.mvlgamma(nu / 2, p=p)
                + (nu - p - 1) / 2 * clnn.linalg.slogdet(value).logabsdet - trace / 2)

    @property
    def _natural_params(self):
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x, y):
        p = self._event_shape[-1]
        half = y + (p + 1) / 2
        return half * (p * math.log(2) - clnn.linalg.slogdet(-2 * x).logabsdet) + clnn.mvlgamma(half, p=p)

    def entropy(self):
        nu, p = self.df, self._event_shape[-1]
        psi = (nu.unsqueeze(-1) / 2 - 0.5 * clnn.arange(p, dtype=nu.dtype, device=nu.device)).digamma().sum(-1)
        return ((p + 1) * (p * math.log(2) / 2 + self._half_log_det()) + clnn.mvlgamma(nu / 2, p=p)
                - (nu - p - 1) / 2 * psi + nu * p / 2)
