"""Layers in a row that become one: what a quantised model computes in one step."""
from __future__ import annotations

import copy

from clnn import nn
from clnn.nn.utils.parametrize import type_before_parametrizations

from .fuser_method_mappings import get_fuser_method

__all__ = ["fuse_known_modules", "fuse_modules", "fuse_modules_qat"]


def fuse_known_modules(mod_list, is_qat, additional_fuser_method_mapping=None):
    """The layers of a list as one, followed by identities; hooks before the first and after the last are kept."""
    method = get_fuser_method(tuple(type_before_parametrizations(m) for m in mod_list), additional_fuser_method_mapping)
    fused = method(is_qat, *mod_list)
    for hook in mod_list[0]._forward_pre_hooks.values():
        fused.register_forward_pre_hook(hook)
    mod_list[0]._forward_pre_hooks.clear()
    for hook in mod_list[-1]._forward_hooks.values():
        fused.register_forward_hook(hook)
    mod_list[-1]._forward_hooks.clear()
    rest = [nn.Identity() for _ in mod_list[1:]]
    for identity in rest:
        identity.training = mod_list[0].training
    return [fused, *rest]


def _place(model, path):
    """(module that holds it, name in it) of a dotted path."""
    parent, _, name = path.rpartition(".")
    return model.get_submodule(parent), name


def _fuse(model, names, is_qat, fuser_func, custom):
    places = [_place(model, path) for path in names]
    fused = fuser_func([owner._modules[name] if name in owner._modules else getattr(owner, name) for owner, name in places], is_qat,
                       custom.get("additional_fuser_method_mapping", {}))
    for (owner, name), module in zip(places, fused):
        setattr(owner, name, module)


def _fused(model, modules_to_fuse, is_qat, inplace, fuser_func, custom):
    model = model if inplace else copy.deepcopy(model)
    lists = [modules_to_fuse] if all(isinstance(item, str) for item in modules_to_fuse) else modules_to_fuse
    for names in lists:
        _fuse(model, names, is_qat, fuser_func, custom or {})
    return model


def fuse_modules(model, modules_to_fuse, inplace=False, fuser_func=fuse_known_modules, fuse_custom_config_dict=None):
    """Make one layer of several in a row, for inference: convolution, batch normalisation and ReLU, linear layer and ReLU, batch normalisation and ReLU.

    Args:
        modules_to_fuse: a list of names, or a list of such lists. The first module becomes the whole, the others identities.
        inplace: change the model itself.

    Example::

        >>> net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU()).eval()
        >>> clnn.ao.quantization.fuse_modules(net, ["0", "1", "2"])
        Sequential(
          (0): ConvReLU2d(
            (0): Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1))
            (1): ReLU()
          )
          (1): Identity()
          (2): Identity()
        )
    """
    return _fused(model, modules_to_fuse, False, inplace, fuser_func, fuse_custom_config_dict)


def fuse_modules_qat(model, modules_to_fuse, inplace=False, fuser_func=fuse_known_modules, fuse_custom_config_dict=None):
    """:func:`fuse_modules` for training with rounding: batch normalisation stays a layer of its own inside.

    Example::

        >>> net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)).train()
        >>> type(clnn.ao.quantization.fuse_modules_qat(net, ["0", "1"])[0]).__name__
        'ConvBn2d'
    """
    return _fused(model, modules_to_fuse, True, inplace, fuser_func, fuse_custom_config_dict)
