"""The base class of exponential families."""
from __future__ import annotations

import clnn

from .distribution import Distribution


class ExponentialFamily(Distribution):
    """Densities ``exp(<t(x), theta> - F(theta) + k(x))``: subclasses name the natural parameters and the log normaliser.

    The entropy follows from ``F`` by differentiation: ``F(theta) - <theta, grad F(theta)> - E[k(x)]``.

    Example:
        >>> isinstance(clnn.distributions.Normal(0.0, 1.0), clnn.distributions.ExponentialFamily)
        True
    """

    @property
    def _natural_params(self):
        raise NotImplementedError

    def _log_normalizer(self, *natural_params):
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self):
        raise NotImplementedError

    def entropy(self):
        parameters = [p.detach().requires_grad_() for p in self._natural_params]
        with clnn.enable_grad():
            normalizer = self._log_normalizer(*parameters)
            gradients = clnn.autograd.grad(normalizer.sum(), parameters, create_graph=True)
        result = normalizer - self._mean_carrier_measure
        for p, g in zip(parameters, gradients):
            result = result - (p * g).reshape(self._batch_shape + (-1,)).sum(-1)
        return result
