"""Weight normalisation by a forward pre-hook (the older form; see utils.parametrizations.weight_norm)."""
import warnings

import clnn
from clnn.core.config import config
from clnn.nn.parameter import Parameter, is_lazy

__all__ = ["WeightNorm", "weight_norm", "remove_weight_norm"]


def norm_except_dim(v, dim):
    """The 2-norm over all dimensions but *dim*, which keeps its size (-1: over all)."""
    if dim == -1:
        return (v * v).sum().sqrt()
    others = [d for d in range(v.dim()) if d != dim % v.dim()]
    return (v * v).sum(dim=others, keepdim=True).sqrt() if others else v.abs()


class WeightNorm:
    """The hook: sets ``weight = g v / ||v||`` before each call."""

    def __init__(self, name, dim):
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module):
        """The weight from its length g and direction v."""
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return v * (g / norm_except_dim(v, self.dim))

    @staticmethod
    def apply(module, name, dim):
        """Replace the parameter by its length and direction and register the hook."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
        hook = WeightNorm(name, dim)
        weight = getattr(module, name)
        if is_lazy(weight):
            raise ValueError("The module passed to `WeightNorm` can't have uninitialized parameters. Make sure to run the dummy "
                             "forward before applying weight normalization")
        del module._parameters[name]
        module.register_parameter(name + "_g", Parameter(norm_except_dim(weight, hook.dim).detach()))
        module.register_parameter(name + "_v", Parameter(weight.detach()))
        setattr(module, name, hook.compute_weight(module))
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module):
        """Make the present weight a parameter again."""
        with clnn.no_grad():
            weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"]
        del module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight))

    def __call__(self, module, inputs):
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module, name="weight", dim=0):
    """Split a parameter into length and direction: ``w = g v / ||v||``, trained apart as ``name_g`` and ``name_v``.

    Args:
        module: the layer, which is returned.
        name: its parameter. Default: ``"weight"``.
        dim: dimension that keeps a length for each index; ``None`` for one length. Default: 0.

    Source: Salimans, Kingma, 2016 (arXiv:1602.07868).

    Example::

        >>> nn.utils.weight_norm(nn.Linear(20, 40)).weight_g.shape
        clnn.Size([40, 1])
    """
    warnings.warn(f"`{config.spoken}.nn.utils.weight_norm` is deprecated in favor of `{config.spoken}.nn.utils.parametrizations.weight_norm`.", FutureWarning,
                  stacklevel=2)
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module, name="weight"):
    """Undo :func:`weight_norm`.

    Example:
        >>> layer = clnn.nn.utils.weight_norm(nn.Linear(2, 2))
        >>> sorted(name for name, _ in clnn.nn.utils.remove_weight_norm(layer).named_parameters())
        ['bias', 'weight']
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
