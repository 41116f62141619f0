"""The base class of distributions."""
from __future__ import annotations

import functools
import warnings

import clnn

from . import constraints
from .utils import broadcast_all, lazy_property, scalar_shape


def _kind(value):
    return type(value).__name__.removeprefix("Batched")             # a sample of vmap is a Tensor to its program


class Distribution:
    """A probability distribution, or a batch of them.

    A sample has the shape ``sample_shape + batch_shape + event_shape``: independent draws, distributions of different parameters, and one event.
    Subclasses define ``arg_constraints`` (parameter name to constraint), ``support`` and what they can of ``rsample``, ``log_prob`` and so on.

    Args:
        batch_shape, event_shape: shapes.
        validate_args: check parameters and values, which reads them from the device; default as :meth:`set_default_validate_args` says (True).

    Raises:
        ValueError: a parameter does not satisfy its constraint.

    Example:
        >>> d = clnn.distributions.Normal(clnn.zeros(2), clnn.ones(2))
        >>> d.sample((3,)).shape
        clnn.Size([3, 2])
        >>> float(d.log_prob(clnn.zeros(2)).sum())
        -1.8379
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value):
        """Switch validation on or off for distributions made from now on."""
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def __init__(self, batch_shape=(), event_shape=(), validate_args=None):
        self._batch_shape, self._event_shape = clnn.Size(batch_shape), clnn.Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self):
        try:
            wanted = self.arg_constraints
        except NotImplementedError:
            warnings.warn(f"{self.__class__} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize the distribution "
                          "with `validate_args=False` to turn off validation.", stacklevel=3)
            return
        for name, constraint in wanted.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property):
                continue                                            # computed from a parameter that is checked
            value = getattr(self, name)
            if value.device.type == "meta":
                continue
            if not constraints.satisfied(constraint, value):
                raise ValueError(f"Expected parameter {name} ({_kind(value)} of shape {tuple(value.shape)}) of distribution {self!r} to "
                                 f"satisfy the constraint {constraint!r}, but found invalid values:\n{value}")

    def expand(self, batch_shape, _instance=None):
        """The same distribution(s) with the batch dimensions expanded to ``batch_shape``."""
        raise NotImplementedError

    @property
    def batch_shape(self):
        """Shape over which parameters are batched."""
        return self._batch_shape

    @property
    def event_shape(self):
        """Shape of one sample of one distribution."""
        return self._event_shape

    @property
    def arg_constraints(self):
        """Constraints that each argument must satisfy, by name."""
        raise NotImplementedError

    @property
    def support(self):
        """The constraint that samples satisfy."""
        raise NotImplementedError

    @property
    def mean(self):
        """Mean."""
        raise NotImplementedError

    @property
    def mode(self):
        """Mode."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self):
        """Variance."""
        raise NotImplementedError

    @property
    def stddev(self):
        """Standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape=()):
        """Draws without gradient, of shape ``sample_shape + batch_shape + event_shape``."""
        with clnn.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=()):
        """Draws through which gradients flow to the parameters."""
        raise NotImplementedError

    def sample_n(self, n):
        """``n`` draws (PyTorch's deprecated name for ``sample((n,))``)."""
        warnings.warn("`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", FutureWarning, stacklevel=2)
        return self.sample((n,))

    def log_prob(self, value):
        """Logarithm of the probability density or mass at ``value``."""
        raise NotImplementedError

    def cdf(self, value):
        """Probability of at most ``value``."""
        raise NotImplementedError

    def icdf(self, value):
        """Quantile: the inverse of :meth:`cdf`."""
        raise NotImplementedError

    def enumerate_support(self, expand=True):
        """All values of a discrete distribution along a new first dimension."""
        raise NotImplementedError

    def entropy(self):
        """Entropy in nats, batched."""
        raise NotImplementedError

    def perplexity(self):
        """``exp(entropy)``."""
        return clnn.exp(self.entropy())

    def _extended_shape(self, sample_shape=()):
        return clnn.Size(tuple(sample_shape) + tuple(self._batch_shape) + tuple(self._event_shape))

    def _validate_sample(self, value):
        """ValueError unless ``value`` fits the shapes and lies in the support."""
        if not isinstance(value, clnn.Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        event = len(self._event_shape)
        if tuple(value.shape[value.dim() - event:]) != tuple(self._event_shape):
            raise ValueError(f"The right-most size of value must match event_shape: {value.shape} vs {self._event_shape}.")
        have, want = value.shape, tuple(self._batch_shape) + tuple(self._event_shape)
        for i, j in zip(reversed(have), reversed(want)):
            if i != 1 and j != 1 and i != j:
                raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {have} vs {clnn.Size(want)}.")
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(f"{self.__class__} does not define `support` to enable sample validation. Please initialize the distribution with "
                          "`validate_args=False` to turn off validation.", stacklevel=3)
            return
        if not constraints.satisfied(support, value):
            raise ValueError(f"Expected value argument ({_kind(value)} of shape {tuple(value.shape)}) to be within the support ({support!r}) "
                             f"of the distribution {self!r}, but found invalid values:\n{value}")

    def _get_checked_instance(self, cls, _instance=None):
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError(f"Subclass {self.__class__.__name__} of {cls.__name__} that defines a custom __init__ method must also "
                                      "define a custom .expand() method.")
        return self.__new__(type(self)) if _instance is None else _instance

    def _expanded(self, cls, batch_shape, _instance, event_shape=(), **attributes):
        """A copy with other attributes, made without validation: the last step of every ``expand``."""
        new = self._get_checked_instance(cls, _instance)
        for name, value in attributes.items():
            setattr(new, name, value)
        Distribution.__init__(new, batch_shape, event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def __repr__(self):
        names = [k for k in self.arg_constraints if k in self.__dict__]
        values = ((k, self.__dict__[k]) for k in names)
        shown = ", ".join(f"{k}: {v if v.numel() == 1 else v.size()}" for k, v in values)
        return f"{self.__class__.__name__}({shown})"


class Scalars(Distribution):
    """Distributions of single numbers whose parameters are broadcast against each other."""

    def _start(self, validate_args, **parameters):
        """What ``__init__`` does: keeps the parameters, finds the batch shape and validates."""
        plain = scalar_shape(*parameters.values())
        for name, value in zip(parameters, broadcast_all(*parameters.values())):
            setattr(self, name, value)
        self._parameter_names = tuple(parameters)
        Distribution.__init__(self, () if plain else value.shape, validate_args=validate_args)

    @functools.cached_property
    def _parameter_names(self):
        """The names of the parameters, for instances that did not come from ``__init__``: from a file of PyTorch, or made by a program's ``expand``."""
        wanted = [vars(c).get("arg_constraints") for c in type(self).__mro__]
        return tuple(dict.fromkeys(n for named in wanted if isinstance(named, dict) for n in named if n in self.__dict__))

    def expand(self, batch_shape, _instance=None):
        attributes = {n: getattr(self, n).expand(batch_shape) for n in self._parameter_names}
        return self._expanded(type(self), batch_shape, _instance, _parameter_names=self._parameter_names, **attributes)

    def _checked(self, value):
        """``value``, validated."""
        if self._validate_args:
            self._validate_sample(value)
        return value

    def _noise(self, sample_shape, draw="normal_"):
        """Fresh random numbers in the shape of the draws, by the name of an in-place fill."""
        like = getattr(self, self._parameter_names[0])
        return getattr(clnn.empty(self._extended_shape(sample_shape), dtype=like.dtype, device=like.device), draw)()

    def _uniform(self, sample_shape):
        """Uniform numbers from the open interval (0, 1)."""
        u = self._noise(sample_shape, "uniform_")
        info = clnn.finfo(u.dtype)
        return u.clamp(min=info.tiny, max=1 - info.eps)
