"""The package ``functorch`` that comes with PyTorch: :mod:`clnn.func` under its older name, and modules as functions of their parameters."""
from __future__ import annotations

import copy
import functools

import clnn

from . import func as _func
from .core.warn import warn
from .func import functional_call as _call, stack_module_state
from .nn import Module

__all__ = ["FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd",
           "jacrev", "jvp", "make_functional", "make_functional_with_buffers", "stack_module_state", "vjp", "vmap"]


def _going(fn, new):
    """``fn``, which PyTorch has under another name by now and says so."""
    @functools.wraps(fn)
    def call(*args, **kwargs):
        warn(f"We've integrated functorch into PyTorch. As the final step of the integration, `functorch.{fn.__name__}` is deprecated as of PyTorch 2.0 and will be "
             f"deleted in a future version of PyTorch >= 2.3. Please use `{new}` instead; see the PyTorch 2.0 release notes and/or the `torch.func` migration guide "
             "for more details https://pytorch.org/docs/main/func.migrating.html", FutureWarning)
        return fn(*args, **kwargs)
    return call


functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp = (_going(getattr(_func, name), f"torch.func.{name}") for name in (
    "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "vjp"))
vmap = _going(_func.vmap, "torch.vmap")


class FunctionalModule(Module):
    """A module that is called with its parameters: ``f(params, *inputs)``. See :func:`make_functional`."""

    def __init__(self, stateless_model, param_names, buffer_names=None):
        super().__init__()
        self.stateless_model, self.param_names, self.buffer_names = stateless_model, param_names, buffer_names

    @classmethod
    def _create_from(cls, model, disable_autograd_tracking=False):
        model, with_buffers = copy.deepcopy(model), issubclass(cls, FunctionalModuleWithBuffers)
        named, buffers = dict(model.named_parameters()), dict(model.named_buffers())
        if disable_autograd_tracking:
            for p in named.values():
                p.requires_grad_(False)
        made = cls(model, tuple(named), tuple(buffers)) if with_buffers else cls(model, tuple(named))
        return (made, tuple(named.values()), *((tuple(buffers.values()),) if with_buffers else ()))

    def forward(self, params, *args, **kwargs):
        return _call(self.stateless_model, dict(zip(self.param_names, params)), args, kwargs)


class FunctionalModuleWithBuffers(FunctionalModule):
    """A module that is called with its parameters and buffers: ``f(params, buffers, *inputs)``."""

    def forward(self, params, buffers, *args, **kwargs):
        return _call(self.stateless_model, {**dict(zip(self.param_names, params)), **dict(zip(self.buffer_names, buffers))}, args, kwargs)


def make_functional(model, disable_autograd_tracking=False):
    """(function, parameters): ``function(parameters, *inputs)`` is ``model(*inputs)``.

    Example:
        >>> f, params = clnn.functorch.make_functional(nn.Linear(2, 1))
        >>> f([clnn.ones(1, 2), clnn.zeros(1)], clnn.ones(2))
        tensor([2.])
    """
    if next(model.buffers(), None) is not None:
        raise RuntimeError("make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead.")
    return FunctionalModule._create_from(model, disable_autograd_tracking)


def make_functional_with_buffers(model, disable_autograd_tracking=False):
    """(function, parameters, buffers): ``function(parameters, buffers, *inputs)`` is ``model(*inputs)``."""
    return FunctionalModuleWithBuffers._create_from(model, disable_autograd_tracking)


def combine_state_for_ensemble(models):
    """(function, parameters, buffers) of models of one class, the tensors of all stacked along a new first dimension for :func:`clnn.vmap`."""
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError("combine_state_for_ensemble: Expected all models to have the same training/eval mode.")
    if len({type(m) for m in models}) > 1:
        raise RuntimeError("combine_state_for_ensemble: Expected all models to be of the same class.")
    functions, params, buffers = zip(*map(FunctionalModuleWithBuffers._create_from, models))
    return functions[0], *(tuple(clnn.stack(column).detach() for column in zip(*lists)) for lists in (params, buffers))


make_functional, make_functional_with_buffers = (_going(fn, "torch.func.functional_call") for fn in (make_functional, make_functional_with_buffers))
combine_state_for_ensemble = _going(combine_state_for_ensemble, "torch.func.stack_module_state")
