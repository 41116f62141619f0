"""What distributions with a parameter given as probabilities or as logits share."""
import functools

import clnn

from .distribution import Distribution, Scalars
from .utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits, scalar_shape


def one_of(probs, logits):
    """ValueError unless exactly one of the two is given; returns its name."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
    return "logits" if probs is None else "probs"


class Binary(Scalars):
    """Numbers with a probability of success, given as ``probs`` or as log-odds ``logits``; the other one follows when it is read."""

    @functools.cached_property
    def _parameter_names(self):
        kept = Scalars._parameter_names.func(self)
        return tuple(n for n in kept if n not in ("probs", "logits")) + ("probs" if "probs" in kept else "logits",)

    @property
    def _param(self):
        return getattr(self, self._parameter_names[-1])

    def _start_binary(self, validate_args, probs, logits, **others):
        name = one_of(probs, logits)
        given = probs if name == "probs" else logits
        plain = scalar_shape(given, *others.values())
        *wide, value = broadcast_all(*others.values(), given)
        setattr(self, name, value)
        for key, other in zip(others, wide):
            setattr(self, key, other.type_as(value))   # counts may be integers
        self._parameter_names = (*others, name)
        Distribution.__init__(self, () if plain else value.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        attributes = {n: self.__dict__[n].expand(batch_shape) for n in (*self._parameter_names, "probs", "logits") if n in self.__dict__}
        return self._expanded(type(self), batch_shape, _instance, _parameter_names=self._parameter_names, **attributes)

    @lazy_property
    def logits(self):
        """Log-odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self):
        """Probabilities."""
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self):
        """Shape of the parameter."""
        return self._param.size()


def cross_entropy_of(logits, target):
    """Negative log-likelihood of 0/1 (or fractional) ``target``."""
    return clnn.nn.functional.binary_cross_entropy_with_logits(logits, target, reduction="none")
