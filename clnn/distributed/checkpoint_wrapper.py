"""Modules that are computed again in backward: ``torch.distributed.algorithms._checkpoint.checkpoint_wrapper``, which works in one process, too."""
from __future__ import annotations

import enum
from functools import partial

from clnn import nn
from clnn.autograd.graph import save_on_cpu
from clnn.utils.checkpoint import checkpoint

_CHECKPOINT_WRAPPED_MODULE = "_checkpoint_wrapped_module"
_CHECKPOINT_PREFIX = _CHECKPOINT_WRAPPED_MODULE + "."


class CheckpointImpl(enum.Enum):
    """Which of the two ways of :func:`clnn.utils.checkpoint.checkpoint`."""

    REENTRANT = enum.auto()
    NO_REENTRANT = enum.auto()


class ActivationWrapper(nn.Module):
    """A module around another whose attributes, names of parameters and keys in ``state_dict()`` are those of the inner one."""

    def __init__(self, module):
        super().__init__()
        self._checkpoint_wrapped_module = module
        self.register_state_dict_post_hook(self._shorten)
        self.register_load_state_dict_pre_hook(self._lengthen)

    def forward(self, *args, **kwargs):
        raise ValueError("Subclasses should implement forward().")

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._checkpoint_wrapped_module, name)

    def __getitem__(self, key):
        return self._checkpoint_wrapped_module[key]

    def named_parameters(self, *args, **kwargs):
        """As of any module, without the name of the inner one."""
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(_CHECKPOINT_PREFIX, ""), parameter

    @staticmethod
    def _shorten(module, state_dict, prefix, *args):
        for key in [k for k in state_dict if k.startswith(prefix + _CHECKPOINT_PREFIX)]:
            state_dict[prefix + key[len(prefix + _CHECKPOINT_PREFIX):]] = state_dict.pop(key)

    @staticmethod
    def _lengthen(module, state_dict, prefix, *args):
        for key in [k for k in state_dict if k.startswith(prefix)]:
            state_dict[prefix + _CHECKPOINT_PREFIX + key[len(prefix):]] = state_dict.pop(key)


class CheckpointWrapper(ActivationWrapper):
    """``forward`` goes through ``checkpoint_fn``, by default :func:`clnn.utils.checkpoint.checkpoint`."""

    def __init__(self, mod, checkpoint_impl=CheckpointImpl.NO_REENTRANT, checkpoint_fn=None, **checkpoint_fn_kwargs):
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        default = partial(checkpoint, use_reentrant=checkpoint_impl is CheckpointImpl.REENTRANT)
        self.checkpoint_fn = partial(checkpoint_fn or default, **checkpoint_fn_kwargs)

    def forward(self, *args, **kwargs):
        inner = self._checkpoint_wrapped_module
        if kwargs and self.checkpoint_impl is CheckpointImpl.REENTRANT:         # which takes positional arguments alone
            n, names = len(args), tuple(kwargs)
            return self.checkpoint_fn(lambda *values: inner(*values[:n], **dict(zip(names, values[n:]))), *args, *kwargs.values())
        return self.checkpoint_fn(inner, *args, **kwargs)


class OffloadWrapper(ActivationWrapper):
    """What backward needs of ``forward`` is kept on the CPU."""

    def forward(self, *args, **kwargs):
        with save_on_cpu(pin_memory=True):
            return self._checkpoint_wrapped_module(*args, **kwargs)


def checkpoint_wrapper(module, checkpoint_impl=CheckpointImpl.NO_REENTRANT, checkpoint_fn=None, **checkpoint_fn_kwargs):
    """``module``, computed again in backward instead of keeping what it computes.

    Example:
        >>> from clnn.distributed.checkpoint_wrapper import checkpoint_wrapper
        >>> list(checkpoint_wrapper(nn.Linear(2, 2)).state_dict())
        ['weight', 'bias']
    """
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def offload_wrapper(module):
    """``module``, with what its backward needs kept on the CPU."""
    return OffloadWrapper(module)


def apply_activation_checkpointing(model, checkpoint_wrapper_fn=checkpoint_wrapper, check_fn=lambda module: True, auto_wrap_policy=None):
    """Wrap, in place, the modules below ``model`` for which ``check_fn(module)`` is true, inner ones first.

    Raises:
        NotImplementedError: for ``auto_wrap_policy``, which belongs to training in several processes.
    """
    if auto_wrap_policy is not None:
        raise NotImplementedError("apply_activation_checkpointing: auto_wrap_policy is not supported; give check_fn")
    for name, child in model.named_children():
        apply_activation_checkpointing(child, checkpoint_wrapper_fn, check_fn)
        if check_fn(child):
            setattr(model, name, checkpoint_wrapper_fn(child))
