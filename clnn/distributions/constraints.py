"""Regions of tensors: supports of distributions, and what their parameters must satisfy. Each has ``check(value)``."""
from __future__ import annotations

from numpy import errstate

import clnn

from .._tensor.interop import read
from .._vmap.forms import has_batched
from ..runtime import capture


class Constraint:
    """A region over which a variable is valid.

    Attributes:
        is_discrete: whether it holds whole numbers.
        event_dim: how many of the rightmost dimensions make up one event; ``check`` gives one truth value per event.

    Example:
        >>> clnn.distributions.constraints.positive.check(clnn.tensor([-1.0, 2.0]))
        tensor([False,  True])
    """

    is_discrete = False
    event_dim = 0

    def check(self, value):
        """A bool tensor: which events of ``value`` lie inside."""
        raise NotImplementedError

    def __repr__(self):
        return self.__class__.__name__.lstrip("_") + "()"


class _Dependent(Constraint):
    """A region that depends on other parameters; it can be read from an instance only."""

    def __init__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        self._is_discrete, self._event_dim = is_discrete, event_dim

    @property
    def is_discrete(self):
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return self._is_discrete

    @property
    def event_dim(self):
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return self._event_dim

    def __call__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        return _Dependent(is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
                          event_dim=self._event_dim if event_dim is NotImplemented else event_dim)

    def check(self, x):
        raise ValueError("Cannot determine validity of dependent constraint")


def satisfied(constraint, value):
    """Whether all of ``value`` lies inside. Reads from the device; few values are read as they are and compared on the host, which saves a launch.

    While :func:`clnn.compile` records, nothing may be read: the ordinary runs before have checked, a recording does not.
    """
    if capture.own() is not None:
        return True
    if has_batched([value]):
        return _of_all_samples(constraint.check(value))
    inner = constraint
    if value.dim() >= constraint.event_dim:
        while type(inner) is _IndependentConstraint:
            inner = inner.base_constraint
    if type(inner) in _ON_HOST and 0 < value.numel() <= 4096 and not any(isinstance(v, clnn.Tensor) for v in vars(inner).values()):
        with errstate(invalid="ignore", over="ignore"):                 # NumPy would warn of infinities, which are an answer here
            return bool(inner.check(read(value.detach())).all())
    return _of_all_samples(constraint.check(value))


def _of_all_samples(valid):
    """Whether all is True; under ``vmap`` that asks of no single sample, so it may be read."""
    valid = valid.all()
    while has_batched([valid]):
        valid = valid.part.all()
    return bool(valid)


def is_dependent(constraint):
    """Whether a constraint can be read from an instance only.

    Example:
        >>> clnn.distributions.constraints.is_dependent(clnn.distributions.constraints.real)
        False
    """
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property that gives the constraint of an instance and stands for a dependent one on the class."""

    def __init__(self, fn=None, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        super().__init__(fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn):
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


class _IndependentConstraint(Constraint):
    """``base`` with more dimensions that make up an event, all of which must be valid.

    Example:
        >>> clnn.distributions.constraints.independent(clnn.distributions.constraints.positive, 1).check(clnn.tensor([-1.0, 2.0]))
        tensor(False)
    """

    def __init__(self, base_constraint, reinterpreted_batch_ndims):
        if reinterpreted_batch_ndims < 0:
            raise AssertionError(f"reinterpreted_batch_ndims must be >= 0, got {reinterpreted_batch_ndims}")
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims

    @property
    def is_discrete(self):
        return self.base_constraint.is_discrete

    @property
    def event_dim(self):
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value):
        result = self.base_constraint.check(value)
        n = self.reinterpreted_batch_ndims
        if result.dim() < n:
            raise ValueError(f"Expected value.dim() >= {self.base_constraint.event_dim + n} but got {value.dim()}")
        return result.reshape(result.shape[:result.dim() - n] + (-1,)).all(-1)

    def __repr__(self):
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The region of the components of a mixture."""

    def __init__(self, base_constraint):
        self.base_constraint = base_constraint

    @property
    def is_discrete(self):
        return self.base_constraint.is_discrete

    @property
    def event_dim(self):
        return self.base_constraint.event_dim

    def check(self, value):
        at = value.dim() - self.event_dim
        return self.base_constraint.check(value.unsqueeze(at)).all(-1)

    def __repr__(self):
        return f"{self.__class__.__name__}({self.base_constraint!r})"


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value):
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    is_discrete, event_dim = True, 1

    def check(self, value):
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Bounded(Constraint):
    """Constraints with a lower and an upper bound, either of which may be absent."""

    lower_bound = upper_bound = None

    def __repr__(self):
        bounds = [f"{n}={getattr(self, n)}" for n in ("lower_bound", "upper_bound") if getattr(self, n) is not None]
        return f"{self.__class__.__name__.lstrip('_')}({', '.join(bounds)})"


class _IntegerInterval(_Bounded):
    """Whole numbers from ``lower_bound`` to ``upper_bound``.

    Example:
        >>> clnn.distributions.constraints.integer_interval(0, 2).check(clnn.tensor([1.0, 1.5, 3.0]))
        tensor([ True, False, False])
    """

    is_discrete = True

    def __init__(self, lower_bound, upper_bound):
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value):
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerLessThan(_Bounded):
    """Whole numbers up to ``upper_bound``."""

    is_discrete = True

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound

    def check(self, value):
        return (value % 1 == 0) & (value <= self.upper_bound)


class _IntegerGreaterThan(_Bounded):
    """Whole numbers from ``lower_bound`` on."""

    is_discrete = True

    def __init__(self, lower_bound):
        self.lower_bound = lower_bound

    def check(self, value):
        return (value % 1 == 0) & (value >= self.lower_bound)


class _Real(Constraint):
    def check(self, value):
        return value == value                                       # NaN only is not a real number


class _GreaterThan(_Bounded):
    """Numbers above ``lower_bound``.

    Example:
        >>> clnn.distributions.constraints.greater_than(1.0).check(clnn.tensor([1.0, 2.0]))
        tensor([False,  True])
    """

    def __init__(self, lower_bound):
        self.lower_bound = lower_bound

    def check(self, value):
        return self.lower_bound < value


class _GreaterThanEq(_GreaterThan):
    """Numbers from ``lower_bound`` on.

    Example:
        >>> clnn.distributions.constraints.greater_than_eq(1.0).check(clnn.tensor([1.0, 2.0]))
        tensor([True, True])
    """

    def check(self, value):
        return self.lower_bound <= value


class _LessThan(_Bounded):
    """Numbers below ``upper_bound``.

    Example:
        >>> clnn.distributions.constraints.less_than(1.0).check(clnn.tensor([1.0, 0.0]))
        tensor([False,  True])
    """

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound

    def check(self, value):
        return value < self.upper_bound


class _Interval(_Bounded):
    """Numbers from ``lower_bound`` to ``upper_bound``.

    Example:
        >>> clnn.distributions.constraints.interval(0.0, 1.0).check(clnn.tensor([1.0, 2.0]))
        tensor([ True, False])
    """

    def __init__(self, lower_bound, upper_bound):
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value):
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Interval):
    """Numbers from ``lower_bound`` up to, but without, ``upper_bound``.

    Example:
        >>> clnn.distributions.constraints.half_open_interval(0.0, 1.0).check(clnn.tensor([1.0, 0.0]))
        tensor([False,  True])
    """

    def check(self, value):
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value):
        return (value >= 0).all(-1) & (abs(value.sum(-1) - 1) < 1e-6)


class _Multinomial(Constraint):
    """Counts whose sum along the last dimension is at most ``upper_bound``.

    Example:
        >>> clnn.distributions.constraints.multinomial(3).check(clnn.tensor([[1.0, 2.0], [2.0, 2.0]]))
        tensor([ True, False])
    """

    is_discrete, event_dim = True, 1

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound

    def check(self, x):
        return (x >= 0).all(-1) & (x.sum(-1) <= self.upper_bound)


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value):
        return (value.tril() == value).flatten(-2).all(-1)


class _LowerCholesky(Constraint):
    event_dim = 2

    def check(self, value):
        return (value.tril() == value).flatten(-2).all(-1) & (value.diagonal(0, -2, -1) > 0).all(-1)


class _CorrCholesky(Constraint):
    event_dim = 2

    def check(self, value):
        tolerance = clnn.finfo(value.dtype).eps * value.shape[-1] * 10
        rows = value.detach().square().sum(-1).sqrt()
        return _LowerCholesky().check(value) & ((rows - 1).abs() <= tolerance).all(-1)


class _Square(Constraint):
    event_dim = 2

    def check(self, value):
        return clnn.full(value.shape[:-2], value.shape[-2] == value.shape[-1], dtype=clnn.bool, device=value.device)


class _Symmetric(_Square):
    def check(self, value):
        square = super().check(value)
        return clnn.isclose(value, value.mT, atol=1e-6).flatten(-2).all(-1) if value.shape[-2] == value.shape[-1] else square


class _PositiveSemidefinite(_Symmetric):
    def check(self, value):
        symmetric = super().check(value)
        return clnn.linalg.eigvalsh(value).ge(0).all(-1) if bool(symmetric.all()) else symmetric


class _PositiveDefinite(_Symmetric):
    def check(self, value):
        symmetric = super().check(value)
        return clnn.linalg.cholesky_ex(value).info.eq(0) if bool(symmetric.all()) else symmetric


class _Joined(Constraint):
    """Constraints for the parts of a tensor along ``dim``."""

    @property
    def is_discrete(self):
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self):
        return max(c.event_dim for c in self.cseq)

    def _reached(self, value):
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(f"dim {self.dim} out of range for value with {value.dim()} dimensions")


def members(given, kind, name, lengths=None):
    """``given`` as a list, each a ``kind``; and one of ``lengths`` for each."""
    given = list(given)
    if not all(isinstance(one, kind) for one in given):
        raise AssertionError(f"All elements of {name} must be {kind.__name__} instances")
    lengths = [1] * len(given) if lengths is None else list(lengths)
    if len(lengths) != len(given):
        raise AssertionError(f"lengths ({len(lengths)}) must match {'transforms' if name == 'tseq' else name} ({len(given)})")
    return given, lengths


class _Cat(_Joined):
    """Constraints of consecutive parts of a tensor along ``dim``, each ``lengths[i]`` long.

    Example:
        >>> clnn.distributions.constraints.cat([clnn.distributions.constraints.positive] * 2).check(clnn.tensor([1.0, -1.0]))
        tensor([ True, False])
    """

    def __init__(self, cseq, dim=0, lengths=None):
        (self.cseq, self.lengths), self.dim = members(cseq, Constraint, "cseq", lengths), dim

    def check(self, value):
        self._reached(value)
        starts = [sum(self.lengths[:i]) for i in range(len(self.lengths))]
        parts = [value.narrow(self.dim, start, length) for start, length in zip(starts, self.lengths)]
        return clnn.cat([c.check(v) for c, v in zip(self.cseq, parts)], self.dim)


class _Stack(_Joined):
    """One constraint for each slice of a tensor along ``dim``.

    Example:
        >>> clnn.distributions.constraints.stack([clnn.distributions.constraints.positive] * 2).check(clnn.tensor([1.0, -1.0]))
        tensor([ True, False])
    """

    def __init__(self, cseq, dim=0):
        (self.cseq, _), self.dim = members(cseq, Constraint, "cseq"), dim

    @property
    def event_dim(self):
        d = max(c.event_dim for c in self.cseq)
        return d + 1 if self.dim + d < 0 else d

    def check(self, value):
        self._reached(value)
        return clnn.stack([c.check(v) for c, v in zip(self.cseq, value.unbind(self.dim))], self.dim)


# constraints whose ``check`` takes NumPy arrays as well
_ON_HOST = frozenset((_Boolean, _IntegerInterval, _IntegerLessThan, _IntegerGreaterThan, _Real, _GreaterThan, _GreaterThanEq, _LessThan, _Interval,
                      _HalfOpenInterval, _Simplex))

dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack

__all__ = ["Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property", "greater_than",
           "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval", "is_dependent", "less_than", "lower_cholesky",
           "lower_triangular", "multinomial", "nonnegative", "nonnegative_integer", "one_hot", "positive", "positive_definite", "positive_integer",
           "positive_semidefinite", "real", "real_vector", "simplex", "square", "stack", "symmetric", "unit_interval"]
