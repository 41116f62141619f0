"""Functional forms of modules."""
import clnn
from clnn.nn.utils.stateless import functional_call

__all__ = ["functional_call", "stack_module_state"]


def stack_module_state(models):
    """The parameters and buffers of equal modules, each name stacked along a new first dimension: (params, buffers).

    Example::

        >>> params, buffers = clnn.func.stack_module_state([clnn.nn.Linear(3, 2) for _ in range(4)])
        >>> params["weight"].shape
        clnn.Size([4, 2, 3])
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({model.training for model in models}) != 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if len({type(model) for model in models}) != 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stacked(members):
        columns = [dict(members(model)) for model in models]
        result = {}
        for name, first in columns[0].items():
            result[name] = clnn.stack([column[name].detach() for column in columns]).requires_grad_(first.requires_grad)
        return result

    return stacked(lambda m: m.named_parameters()), stacked(lambda m: m.named_buffers())
