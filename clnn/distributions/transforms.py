"""Invertible transforms of tensors with the logarithm of their Jacobian's determinant."""
from __future__ import annotations

import clnn

from . import constraints
from .utils import sum_rightmost


class Transform:
    """A map ``y = f(x)`` with an inverse, so that densities can be carried over.

    Subclasses define ``_call``, ``_inverse`` and ``log_abs_det_jacobian``, and the attributes ``domain``, ``codomain`` (constraints),
    ``bijective`` and, for increasing or decreasing functions of one variable, ``sign`` (1 or -1).

    Args:
        cache_size: 1 keeps the last pair (x, y), so that ``inv(f(x))`` is ``x`` itself; 0 keeps none.

    Example:
        >>> x = clnn.tensor([0.0, 1.0])
        >>> f = clnn.distributions.ExpTransform()
        >>> f(x), f.inv(f(x)), f.log_abs_det_jacobian(x, f(x))
        (tensor([1.0000, 2.7183]), tensor([0.0000, 1.0000]), tensor([0., 1.]))
    """

    bijective = False
    domain: constraints.Constraint
    codomain: constraints.Constraint

    def __init__(self, cache_size=0):
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size, self._inv, self._cached_x_y = cache_size, None, (None, None)
        super().__init__()

    def __getstate__(self):
        state = self.__dict__.copy()
        state["_inv"] = None
        return state

    @property
    def event_dim(self):
        """Number of dimensions that are transformed together."""
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self):
        """The inverse transform; ``t.inv.inv is t``."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv

    @property
    def sign(self):
        """1 where the function increases, -1 where it decreases."""
        raise NotImplementedError

    def with_cache(self, cache_size=1):
        """The same transform with or without a cache."""
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other):
        return self is other

    __hash__ = object.__hash__

    def __call__(self, x):
        if self._cache_size == 0:
            return self._call(x)
        old, y = self._cached_x_y
        if x is old:
            return y
        y = self._call(x)
        self._cached_x_y = x, y
        return y

    def _inv_call(self, y):
        if self._cache_size == 0:
            return self._inverse(y)
        x, old = self._cached_x_y
        if y is old:
            return x
        x = self._inverse(y)
        self._cached_x_y = x, y
        return x

    def _call(self, x):
        raise NotImplementedError

    def _inverse(self, y):
        raise NotImplementedError

    def log_abs_det_jacobian(self, x, y):
        """``log |det dy/dx|`` for an input ``x`` and its output ``y``."""
        raise NotImplementedError

    def __repr__(self):
        return self.__class__.__name__ + "()"

    def forward_shape(self, shape):
        """Shape of the output for an input of ``shape``."""
        return shape

    def inverse_shape(self, shape):
        """Shape of the input for an output of ``shape``."""
        return shape


class _InverseTransform(Transform):
    """A transform the other way round."""

    def __init__(self, transform):
        super().__init__(cache_size=transform._cache_size)
        self._inv = transform

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        return self._inv.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        return self._inv.domain

    bijective = property(lambda self: self._inv.bijective)
    sign = property(lambda self: self._inv.sign)
    inv = property(lambda self: self._inv)

    def with_cache(self, cache_size=1):
        return self.inv.with_cache(cache_size).inv

    def __eq__(self, other):
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    __hash__ = object.__hash__

    def __repr__(self):
        return f"{self.__class__.__name__}({self._inv!r})"

    def __call__(self, x):
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x, y):
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape):
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape):
        return self._inv.forward_shape(shape)


class ComposeTransform(Transform):
    """Several transforms, applied from the first to the last.

    Example:
        >>> f = clnn.distributions.ComposeTransform([clnn.distributions.ExpTransform(), clnn.distributions.AffineTransform(1.0, 2.0)])
        >>> y = f(clnn.tensor([0.0, 1.0]))
        >>> y, f.inv(y)
        (tensor([3.0000, 6.4366]), tensor([0.0000, 1.0000]))
    """

    def __init__(self, parts, cache_size=0):
        self.parts = [p.with_cache(cache_size) for p in parts] if cache_size else list(parts)
        super().__init__(cache_size=cache_size)

    def __eq__(self, other):
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = object.__hash__

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        if not self.parts:
            return constraints.real
        domain, dim = self.parts[0].domain, self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            dim = max(dim + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        return constraints.independent(domain, dim - domain.event_dim) if dim > domain.event_dim else domain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        if not self.parts:
            return constraints.real
        codomain, dim = self.parts[-1].codomain, self.parts[0].domain.event_dim
        for part in self.parts:
            dim = max(dim + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        return constraints.independent(codomain, dim - codomain.event_dim) if dim > codomain.event_dim else codomain

    bijective = property(lambda self: all(p.bijective for p in self.parts))

    @property
    def sign(self):
        sign = 1
        for p in self.parts:
            sign = sign * p.sign
        return sign

    @property
    def inv(self):
        if self._inv is None:
            self._inv = ComposeTransform([p.inv for p in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def with_cache(self, cache_size=1):
        return self if self._cache_size == cache_size else ComposeTransform(self.parts, cache_size=cache_size)

    def __call__(self, x):
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x, y):
        if not self.parts:
            return clnn.zeros_like(x)
        values = [x]
        for part in self.parts[:-1]:
            values.append(part(values[-1]))
        values.append(y)
        total, event_dim = 0, self.domain.event_dim
        for part, a, b in zip(self.parts, values[:-1], values[1:]):
            total = total + sum_rightmost(part.log_abs_det_jacobian(a, b), event_dim - part.domain.event_dim)
            event_dim += part.codomain.event_dim - part.domain.event_dim
        return total

    def forward_shape(self, shape):
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape):
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self):
        return self.__class__.__name__ + "(\n    " + ",\n    ".join(p.__repr__() for p in self.parts) + "\n)"


class IndependentTransform(Transform):
    """``base_transform`` with more dimensions, from the right, that count as one event.

    Example:
        >>> f = clnn.distributions.IndependentTransform(clnn.distributions.ExpTransform(), 1)
        >>> x = clnn.tensor([0.0, 1.0])
        >>> f.log_abs_det_jacobian(x, f(x))
        tensor(1.)
    """

    def __init__(self, base_transform, reinterpreted_batch_ndims, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def with_cache(self, cache_size=1):
        return self if self._cache_size == cache_size else IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size)

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    bijective = property(lambda self: self.base_transform.bijective)
    sign = property(lambda self: self.base_transform.sign)

    def _call(self, x):
        if x.dim() < self.domain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform(x)

    def _inverse(self, y):
        if y.dim() < self.codomain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x, y):
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape):
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape):
        return self.base_transform.inverse_shape(shape)

    def __repr__(self):
        return f"{self.__class__.__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class ReshapeTransform(Transform):
    """Events of ``in_shape`` read as events of ``out_shape`` with as many elements.

    Example:
        >>> f = clnn.distributions.ReshapeTransform((4,), (2, 2))
        >>> y = f(clnn.arange(4.0))
        >>> y, f.inv(y)
        (tensor([[0., 1.],
                [2., 3.]]), tensor([0., 1., 2., 3.]))
    """

    bijective = True

    def __init__(self, in_shape, out_shape, cache_size=0):
        self.in_shape, self.out_shape = clnn.Size(in_shape), clnn.Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property
    def domain(self):
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self):
        return constraints.independent(constraints.real, len(self.out_shape))

    def with_cache(self, cache_size=1):
        return self if self._cache_size == cache_size else ReshapeTransform(self.in_shape, self.out_shape, cache_size=cache_size)

    def _call(self, x):
        return x.reshape(x.shape[:x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y):
        return y.reshape(y.shape[:y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x, y):
        return clnn.zeros(x.shape[:x.dim() - len(self.in_shape)], dtype=x.dtype, device=x.device)

    @staticmethod
    def _swap(shape, old, new):
        if len(shape) < len(old):
            raise ValueError("Too few dimensions on input")
        cut = len(shape) - len(old)
        if tuple(shape[cut:]) != tuple(old):
            raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {old}")
        return shape[:cut] + new

    def forward_shape(self, shape):
        return self._swap(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape):
        return self._swap(shape, self.out_shape, self.in_shape)


def _check_parts(t, name, dim, count, what):
    if not -t.dim() <= dim < t.dim():
        raise AssertionError(f"dim {dim} out of range for tensor with {t.dim()} dimensions")
    if t.size(dim) != count:
        raise AssertionError(f"{name}.size({dim}) = {t.size(dim)} must equal {what} {count}")


class CatTransform(Transform):
    """Transforms for consecutive parts of a tensor along ``dim``, each ``lengths[i]`` long.

    Example:
        >>> f = clnn.distributions.CatTransform([clnn.distributions.ExpTransform(), clnn.distributions.AffineTransform(1.0, 2.0)], lengths=[1, 1])
        >>> y = f(clnn.tensor([0.0, 1.0]))
        >>> y, f.inv(y)
        (tensor([1., 3.]), tensor([0., 1.]))
    """

    def __init__(self, tseq, dim=0, lengths=None, cache_size=0):
        super().__init__(cache_size=cache_size)
        tseq, self.lengths = constraints.members(tseq, Transform, "tseq", lengths)
        self.transforms, self.dim = [t.with_cache(cache_size) for t in tseq] if cache_size else tseq, dim

    event_dim = property(lambda self: max(t.event_dim for t in self.transforms))
    length = property(lambda self: sum(self.lengths))
    bijective = property(lambda self: all(t.bijective for t in self.transforms))

    def with_cache(self, cache_size=1):
        return self if self._cache_size == cache_size else CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _split(self, x, name):
        _check_parts(x, name, self.dim, self.length, "length")
        return x.split(self.lengths, self.dim)

    def _call(self, x):
        return clnn.cat([t(part) for t, part in zip(self.transforms, self._split(x, "x"))], self.dim)

    def _inverse(self, y):
        return clnn.cat([t.inv(part) for t, part in zip(self.transforms, self._split(y, "y"))], self.dim)

    def log_abs_det_jacobian(self, x, y):
        parts = []
        for t, a, b in zip(self.transforms, self._split(x, "x"), self._split(y, "y")):
            parts.append(sum_rightmost(t.log_abs_det_jacobian(a, b), self.event_dim - t.event_dim))
        dim = self.dim if self.dim < 0 else self.dim - x.dim()
        dim += self.event_dim
        return clnn.cat(parts, dim) if dim < 0 else sum(parts)

    @constraints.dependent_property
    def domain(self):
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self):
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(Transform):
    """One transform for each slice of a tensor along ``dim``.

    Example:
        >>> f = clnn.distributions.StackTransform([clnn.distributions.ExpTransform(), clnn.distributions.AffineTransform(1.0, 2.0)])
        >>> y = f(clnn.tensor([0.0, 1.0]))
        >>> y, f.inv(y)
        (tensor([1., 3.]), tensor([0., 1.]))
    """

    def __init__(self, tseq, dim=0, cache_size=0):
        super().__init__(cache_size=cache_size)
        tseq, _ = constraints.members(tseq, Transform, "tseq")
        self.transforms, self.dim = [t.with_cache(cache_size) for t in tseq] if cache_size else tseq, dim

    def _slices(self, t, name):
        _check_parts(t, name, self.dim, len(self.transforms), "len(transforms)")
        return t.unbind(self.dim)

    bijective = property(lambda self: all(t.bijective for t in self.transforms))

    def with_cache(self, cache_size=1):
        return self if self._cache_size == cache_size else StackTransform(self.transforms, self.dim, cache_size)

    def _call(self, x):
        return clnn.stack([t(part) for t, part in zip(self.transforms, self._slices(x, "x"))], self.dim)

    def _inverse(self, y):
        return clnn.stack([t.inv(part) for t, part in zip(self.transforms, self._slices(y, "y"))], self.dim)

    def log_abs_det_jacobian(self, x, y):
        triples = zip(self.transforms, self._slices(x, "x"), self._slices(y, "y"))
        return clnn.stack([t.log_abs_det_jacobian(a, b) for t, a, b in triples], self.dim)

    @constraints.dependent_property
    def domain(self):
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self):
        return constraints.stack([t.codomain for t in self.transforms], self.dim)


identity_transform = ComposeTransform([])

from ._functions import (AbsTransform, AffineTransform, CorrCholeskyTransform, CumulativeDistributionTransform, ExpTransform,  # noqa: E402
                         LowerCholeskyTransform, PositiveDefiniteTransform, PowerTransform, SigmoidTransform, SoftmaxTransform, SoftplusTransform,
                         StickBreakingTransform, TanhTransform, _clipped_sigmoid)  # noqa: F401

__all__ = ["AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform", "CumulativeDistributionTransform",
           "ExpTransform", "IndependentTransform", "LowerCholeskyTransform", "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform",
           "SigmoidTransform", "SoftplusTransform", "TanhTransform", "SoftmaxTransform", "StackTransform", "StickBreakingTransform", "Transform",
           "identity_transform"]

for _name in __all__[:-1]:
    globals()[_name].__module__ = __name__              # where files and messages look for it
