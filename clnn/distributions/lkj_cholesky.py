"""The LKJ distribution of correlation matrices."""
import math

import clnn

from . import constraints
from .beta import Beta
from .distribution import Distribution
from .utils import broadcast_all, scalar_shape


class LKJCholesky(Distribution):
    """Lower Cholesky factors of correlation matrices ``M`` of size ``dim`` with a density proportional to ``det(M)^(concentration - 1)``.

    Samples are made row by row ("onion" method). Lewandowski, Kurowicka & Joe, 2009.

    Example:
        >>> d = clnn.distributions.LKJCholesky(3, 1.5)
        >>> f = d.sample()
        >>> clnn.allclose((f @ f.T).diagonal(), clnn.ones(3))
        True
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim, concentration=1.0, validate_args=None):
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        plain = scalar_shape(concentration)
        self.concentration, = broadcast_all(concentration)
        offset = clnn.arange(dim - 1, dtype=self.concentration.dtype, device=self.concentration.device)
        offset = clnn.cat([offset.new_zeros((1,)), offset])
        marginal = self.concentration.unsqueeze(-1) + 0.5 * (dim - 2)
        self._beta = Beta(offset + 0.5, marginal - 0.5 * offset)
        super().__init__(() if plain else self.concentration.shape, (dim, dim), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        batch_shape = clnn.Size(batch_shape)
        return self._expanded(LKJCholesky, batch_shape, _instance, self.event_shape, dim=self.dim,
                              concentration=self.concentration.expand(batch_shape), _beta=self._beta.expand(batch_shape + (self.dim,)))

    def sample(self, sample_shape=()):
        with clnn.no_grad():
            y = self._beta.sample(sample_shape).unsqueeze(-1)
            u = clnn.randn(self._extended_shape(sample_shape), dtype=y.dtype, device=y.device).tril(-1)
            direction = u / u.square().sum(-1, True).sqrt()
            direction = clnn.where(clnn.arange(self.dim, device=y.device).reshape(-1, 1) == 0, 0.0, direction)
            w = y.sqrt() * direction
            tiny = clnn.finfo(w.dtype).tiny
            return w + (1 - w.square().sum(-1)).clamp(min=tiny).sqrt().diag_embed()

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        diagonal = value.diagonal(0, -2, -1)[..., 1:]
        order = clnn.arange(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        density = (order * diagonal.log()).sum(-1)
        less = self.dim - 1
        alpha = self.concentration + 0.5 * less
        denominator = clnn.lgamma(alpha) * less
        numerator = clnn.special.multigammaln(alpha - 0.5, less)
        return density - (0.5 * less * math.log(math.pi) + numerator - denominator)
