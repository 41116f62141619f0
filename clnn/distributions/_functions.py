"""The transforms that are functions of their own: exponentials, powers, affine maps, simplices and triangular matrices."""
from __future__ import annotations

import math

import clnn

from . import constraints
from .transforms import Transform
from .utils import broadcast_all, sum_rightmost, tril_matrix_to_vec, vec_to_tril_matrix


class _Simple(Transform):
    """Functions without parameters: equal when of the same kind."""

    def __eq__(self, other):
        return type(other) is type(self)

    __hash__ = object.__hash__


class ExpTransform(_Simple):
    """``y = exp(x)``.

    Example:
        >>> f = clnn.distributions.ExpTransform()
        >>> y = f(clnn.tensor([0.0, 1.0]))
        >>> y, f.inv(y)
        (tensor([1.0000, 2.7183]), tensor([0.0000, 1.0000]))
    """

    domain, codomain, bijective, sign = constraints.real, constraints.positive, True, 1

    def _call(self, x):
        return x.exp()

    def _inverse(self, y):
        return y.log()

    def log_abs_det_jacobian(self, x, y):
        return x


class PowerTransform(Transform):
    """``y = x ** exponent`` of positive numbers.

    Example:
        >>> f = clnn.distributions.PowerTransform(clnn.tensor(2.0))
        >>> y = f(clnn.tensor([2.0, 3.0]))
        >>> y, f.inv(y)
        (tensor([4., 9.]), tensor([2., 3.]))
    """

    domain, codomain, bijective = constraints.positive, constraints.positive, True

    def __init__(self, exponent, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.exponent, = broadcast_all(exponent)

    def with_cache(self, cache_size=1):
        return self if self._cache_size == cache_size else PowerTransform(self.exponent, cache_size=cache_size)

    sign = property(lambda self: self.exponent.sign())

    def __eq__(self, other):
        return isinstance(other, PowerTransform) and bool(self.exponent.eq(other.exponent).all())

    __hash__ = object.__hash__

    def _call(self, x):
        return x.pow(self.exponent)

    def _inverse(self, y):
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x, y):
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape):
        return clnn.broadcast_shapes(shape, self.exponent.shape)

    inverse_shape = forward_shape


def _clipped_sigmoid(x):
    info = clnn.finfo(x.dtype)
    return clnn.sigmoid(x).clamp(min=info.tiny, max=1.0 - info.eps)


class SigmoidTransform(_Simple):
    """``y = 1 / (1 + exp(-x))`` and the logit.

    Example:
        >>> f = clnn.distributions.SigmoidTransform()
        >>> y = f(clnn.tensor([0.0, 1.0]))
        >>> y, f.inv(y)
        (tensor([0.5000, 0.7311]), tensor([0.0000, 1.0000]))
    """

    domain, codomain, bijective, sign = constraints.real, constraints.unit_interval, True, 1

    def _call(self, x):
        return _clipped_sigmoid(x)

    def _inverse(self, y):
        info = clnn.finfo(y.dtype)
        y = y.clamp(min=info.tiny, max=1.0 - info.eps)
        return y.log() - clnn.log1p(-y)

    def log_abs_det_jacobian(self, x, y):
        soft = clnn.nn.functional.softplus
        return -soft(-x) - soft(x)


class SoftplusTransform(_Simple):
    """``y = log(1 + exp(x))``.

    Example:
        >>> f = clnn.distributions.SoftplusTransform()
        >>> y = f(clnn.tensor([0.0, 1.0]))
        >>> y, f.inv(y)
        (tensor([0.6931, 1.3133]), tensor([0.0000, 1.0000]))
    """

    domain, codomain, bijective, sign = constraints.real, constraints.positive, True, 1

    def _call(self, x):
        return clnn.nn.functional.softplus(x)

    def _inverse(self, y):
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x, y):
        return -clnn.nn.functional.softplus(-x)


class TanhTransform(_Simple):
    """``y = tanh(x)``, with a Jacobian that does not lose digits where tanh is flat.

    Example:
        >>> f = clnn.distributions.TanhTransform()
        >>> y = f(clnn.tensor([0.0, 1.0]))
        >>> y, f.inv(y)
        (tensor([0.0000, 0.7616]), tensor([0., 1.]))
    """

    domain, codomain, bijective, sign = constraints.real, constraints.interval(-1.0, 1.0), True, 1

    def _call(self, x):
        return x.tanh()

    def _inverse(self, y):
        return clnn.atanh(y)

    def log_abs_det_jacobian(self, x, y):
        return 2.0 * (math.log(2.0) - x - clnn.nn.functional.softplus(-2.0 * x))


class AbsTransform(_Simple):
    """``y = |x|``; as inverse it takes the positive number.

    Example:
        >>> f = clnn.distributions.AbsTransform()
        >>> y = f(clnn.tensor([-1.0, 2.0]))
        >>> y, f.inv(y)
        (tensor([1., 2.]), tensor([1., 2.]))
    """

    domain, codomain = constraints.real, constraints.positive

    def _call(self, x):
        return x.abs()

    def _inverse(self, y):
        return y


class AffineTransform(Transform):
    """``y = loc + scale * x``.

    Args:
        event_dim: 0 for numbers, 1 for vectors, and so on.

    Example:
        >>> f = clnn.distributions.AffineTransform(1.0, 2.0)
        >>> y = f(clnn.tensor([0.0, 3.0]))
        >>> y, f.inv(y)
        (tensor([1., 7.]), tensor([0., 3.]))
    """

    bijective = True

    def __init__(self, loc, scale, event_dim=0, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    event_dim = property(lambda self: self._event_dim)

    def _region(self):
        return constraints.independent(constraints.real, self.event_dim) if self.event_dim else constraints.real

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        return self._region()

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        return self._region()

    def with_cache(self, cache_size=1):
        return self if self._cache_size == cache_size else AffineTransform(self.loc, self.scale, self.event_dim, cache_size=cache_size)

    def __eq__(self, other):
        def same(a, b):
            return a == b if not isinstance(a, clnn.Tensor) and not isinstance(b, clnn.Tensor) else bool((a == b).all())
        return isinstance(other, AffineTransform) and same(self.loc, other.loc) and same(self.scale, other.scale)

    __hash__ = object.__hash__

    @property
    def sign(self):
        if isinstance(self.scale, (int, float)):
            return (self.scale > 0) - (self.scale < 0)
        return self.scale.sign()

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        scale = clnn.full_like(x, math.log(abs(self.scale))) if isinstance(self.scale, (int, float)) else self.scale.abs().log()
        if self.event_dim:
            scale = scale.expand(clnn.broadcast_shapes(scale.shape, x.shape[x.dim() - self.event_dim:]))
            scale = sum_rightmost(scale, self.event_dim)
        return scale.expand(x.shape[:x.dim() - self.event_dim])

    def forward_shape(self, shape):
        return clnn.broadcast_shapes(shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ()))

    inverse_shape = forward_shape


class CorrCholeskyTransform(Transform):
    """Vectors of ``D (D - 1) / 2`` numbers to Cholesky factors of correlation matrices of size ``D``.

    Each number becomes a partial correlation by tanh; the rows of the factor follow by stick breaking of their squares.

    Example:
        >>> f = clnn.distributions.CorrCholeskyTransform()
        >>> y = f(clnn.tensor([0.5]))
        >>> y, f.inv(y)
        (tensor([[1.0000, 0.0000],
                [0.4621, 0.8868]]), tensor([0.5000]))
    """

    domain, codomain, bijective = constraints.real_vector, constraints.corr_cholesky, True

    def _call(self, x):
        eps = clnn.finfo(x.dtype).eps
        r = vec_to_tril_matrix(clnn.tanh(x).clamp(min=-1 + eps, max=1 - eps), diag=-1)
        rest = (1 - r * r).sqrt().cumprod(-1)
        r = r + clnn.eye(r.shape[-1], dtype=r.dtype, device=r.device)
        return r * clnn.nn.functional.pad(rest[..., :-1], [1, 0], value=1)

    def _inverse(self, y):
        rest = 1 - (y * y).cumsum(-1)
        rest = clnn.nn.functional.pad(rest[..., :-1], [1, 0], value=1)
        t = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(rest, diag=-1).sqrt()
        return (t.log1p() - t.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x, y, intermediates=None):
        rest = 1 - (y * y).cumsum(-1)
        stick = 0.5 * tril_matrix_to_vec(rest, diag=-2).log().sum(-1)
        tanh = -2 * (x + clnn.nn.functional.softplus(-2 * x) - math.log(2.0)).sum(-1)
        return stick + tanh

    def forward_shape(self, shape):
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        n = shape[-1]
        d = round((0.25 + 2 * n) ** 0.5 + 0.5)
        if d * (d - 1) // 2 != n:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return shape[:-1] + (d, d)

    def inverse_shape(self, shape):
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return shape[:-2] + (shape[-1] * (shape[-1] - 1) // 2,)


class SoftmaxTransform(_Simple):
    """Logits to probabilities; not one to one, so it has no Jacobian.

    Example:
        >>> f = clnn.distributions.SoftmaxTransform()
        >>> y = f(clnn.tensor([0.0, 1.0]))
        >>> y, f.inv(y)
        (tensor([0.2689, 0.7311]), tensor([-1.3133, -0.3133]))
    """

    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x):
        value = (x - x.amax(-1, True)).exp()
        return value / value.sum(-1, True)

    def _inverse(self, y):
        return y.log()

    def forward_shape(self, shape):
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(_Simple):
    """K - 1 real numbers to K probabilities: each breaks its share (a sigmoid) off what is left of the stick.

    Example:
        >>> f = clnn.distributions.StickBreakingTransform()
        >>> y = f(clnn.tensor([0.0, 1.0]))
        >>> y, f.inv(y)
        (tensor([0.3333, 0.4874, 0.1793]), tensor([0.0000, 1.0000]))
    """

    domain, codomain, bijective = constraints.real_vector, constraints.simplex, True

    @staticmethod
    def _offset(x, n):
        return clnn.arange(n, 0, -1, dtype=x.dtype, device=x.device).log()

    def _call(self, x):
        z = clnn.sigmoid(x - self._offset(x, x.shape[-1]))
        pad = clnn.nn.functional.pad
        return pad(z, [0, 1], value=1) * pad((1 - z).cumprod(-1), [1, 0], value=1)

    def _inverse(self, y):
        head = y[..., :-1]
        rest = (1 - head.cumsum(-1)).clamp(min=clnn.finfo(y.dtype).tiny)
        return head.log() - rest.log() + self._offset(y, head.shape[-1])

    def log_abs_det_jacobian(self, x, y):
        x = x - self._offset(x, x.shape[-1])
        return (-x + clnn.nn.functional.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape):
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape[:-1] + (shape[-1] + 1,)

    def inverse_shape(self, shape):
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape[:-1] + (shape[-1] - 1,)


class LowerCholeskyTransform(_Simple):
    """Square matrices to lower triangular ones with a positive diagonal (its exponential).

    Example:
        >>> f = clnn.distributions.LowerCholeskyTransform()
        >>> y = f(clnn.tensor([[0.0, 5.0], [1.0, 0.0]]))
        >>> y, f.inv(y)
        (tensor([[1., 0.],
                [1., 1.]]), tensor([[0., 0.],
                [1., 0.]]))
    """

    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky

    def _call(self, x):
        return x.tril(-1) + x.diagonal(0, -2, -1).exp().diag_embed()

    def _inverse(self, y):
        return y.tril(-1) + y.diagonal(0, -2, -1).log().diag_embed()


class PositiveDefiniteTransform(_Simple):
    """Square matrices to positive-definite ones: ``L L^T`` of :class:`LowerCholeskyTransform`.

    Example:
        >>> f = clnn.distributions.PositiveDefiniteTransform()
        >>> y = f(clnn.tensor([[0.0, 5.0], [1.0, 0.0]]))
        >>> y, f.inv(y)
        (tensor([[1., 1.],
                [1., 2.]]), tensor([[0., 0.],
                [1., 0.]]))
    """

    domain, codomain = constraints.independent(constraints.real, 2), constraints.positive_definite

    def _call(self, x):
        x = LowerCholeskyTransform()(x)
        return x @ x.mT

    def _inverse(self, y):
        return LowerCholeskyTransform().inv(clnn.linalg.cholesky(y))


class CumulativeDistributionTransform(Transform):
    """``y = F(x)`` with the distribution function of a given distribution.

    Example:
        >>> f = clnn.distributions.CumulativeDistributionTransform(clnn.distributions.Normal(0.0, 1.0))
        >>> y = f(clnn.tensor([0.0, 1.0]))
        >>> y, f.inv(y)
        (tensor([0.5000, 0.8413]), tensor([0.0000, 1.0000]))
    """

    codomain, bijective, sign = constraints.unit_interval, True, 1

    def __init__(self, distribution, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    domain = property(lambda self: self.distribution.support)

    def _call(self, x):
        return self.distribution.cdf(x)

    def _inverse(self, y):
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x, y):
        return self.distribution.log_prob(x)

    def with_cache(self, cache_size=1):
        return self if self._cache_size == cache_size else CumulativeDistributionTransform(self.distribution, cache_size=cache_size)
