"""Switches for what PyTorch may do differently one day, about how modules exchange the memory of their parameters."""
from __future__ import annotations

_flags = {"overwrite": False, "swap": False}


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether ``nn.Module.to`` and its kin put new parameters in place of the old ones. Default: the old ones get new values."""
    _flags["overwrite"] = value


def get_overwrite_module_params_on_conversion() -> bool:
    """The switch of :func:`set_overwrite_module_params_on_conversion`."""
    return _flags["overwrite"]


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether conversions and ``load_state_dict`` make new parameters and exchange them with the old ones by ``clnn.utils.swap_tensors``.

    What refers to a parameter (an optimizer) then sees the new one, whatever its class. With ``load_state_dict`` the new one comes from
    ``Tensor.module_load``, which a subclass may override by ``__torch_function__``.

    Example::

        >>> clnn.__future__.set_swap_module_params_on_conversion(True)
        >>> layer = nn.Linear(1, 1, bias=False)
        >>> weight = layer.weight
        >>> layer.double().weight is weight, weight.dtype
        (True, clnn.float64)
        >>> clnn.__future__.set_swap_module_params_on_conversion(False)
    """
    _flags["swap"] = value


def get_swap_module_params_on_conversion() -> bool:
    """The switch of :func:`set_swap_module_params_on_conversion`."""
    return _flags["swap"]
