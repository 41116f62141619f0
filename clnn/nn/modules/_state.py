"""state_dict and load_state_dict of modules."""
import itertools
import warnings
import weakref
from collections import OrderedDict, namedtuple

import clnn
from clnn.__future__ import _flags
from clnn._tensor.tensor import Tensor
from clnn.core.config import config
from clnn.nn.parameter import Parameter, is_lazy
from clnn.utils import swap_tensors

from ._hooks import _register

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What load_state_dict could not match."""

    __slots__ = ()

    def __repr__(self):
        return super().__repr__() if self.missing_keys or self.unexpected_keys else "<All keys matched successfully>"

    __str__ = __repr__


class StateMixin:
    """The saving and loading part of :class:`Module`."""

    _version = 1  # written to the metadata; raised by layers whose saved form changed

    # -- extra state ----------------------------------------------------------------------------------------------------
    def get_extra_state(self):
        """Anything else to save in the state dict (override together with :meth:`set_extra_state`)."""
        raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be called.")

    def set_extra_state(self, state):
        """Receive what :meth:`get_extra_state` returned when the state dict was made."""
        raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be called.")

    def _module_has_extra(self, method):
        return getattr(type(self), method) is not getattr(StateMixin, method)

    # -- hooks ----------------------------------------------------------------------------------------------------------
    def register_state_dict_post_hook(self, hook):
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after the module's part was written (in-place changes)."""
        hook._from_public_api = True
        return _register(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook):
        """Call ``hook(module, prefix, keep_vars)`` before the module's part of a state dict is written."""
        return _register(self._state_dict_pre_hooks, hook)

    def _register_state_dict_hook(self, hook):
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError("Cannot register the same function as the state dict post hook that was previously registered via "
                               "register_state_dict_post_hook")
        return _register(self._state_dict_hooks, hook)

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        wrapped = _WithModule(hook, self) if with_module else hook
        return _register(self._load_state_dict_pre_hooks, wrapped)

    def register_load_state_dict_pre_hook(self, hook):
        """Call ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)`` before loading."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook):
        """Call ``hook(module, incompatible_keys)`` after the module was loaded; it may change the two lists in place."""
        return _register(self._load_state_dict_post_hooks, hook)

    # -- saving ---------------------------------------------------------------------------------------------------------
    def _module_persistent_state(self):
        """(name, tensor) of what is saved: parameters, then persistent buffers."""
        skipped = self._non_persistent_buffers_set
        buffers = ((name, value) for name, value in self._buffers.items() if name not in skipped)
        return [(name, value) for name, value in itertools.chain(self._parameters.items(), buffers) if value is not None]

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        """Write the module's own tensors (not those of its children)."""
        for name, value in self._module_persistent_state():
            destination[prefix + name] = value if keep_vars else value.detach()
        if self._module_has_extra("get_extra_state"):
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
        """An ordered dictionary from names to the parameters and persistent buffers of the whole tree.

        Args:
            destination: dictionary to write into instead of a new one.
            prefix: put before each name. Default: ``""``.
            keep_vars: give the parameters themselves instead of detached tensors. Default: ``False``.

        Example::

            >>> list(nn.Linear(2, 1).state_dict())
            ['weight', 'bias']
        """
        if args:  # the old positional form
            warnings.warn("Positional args are being deprecated, use kwargs instead.", FutureWarning, stacklevel=2)
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, local_metadata)
            if getattr(hook, "_from_public_api", False):
                if result is not None:
                    raise RuntimeError("state_dict post-hook must return None")
            elif result is not None:
                destination = result
        return destination

    # -- loading --------------------------------------------------------------------------------------------------------
    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Copy a state dict into the tensors of the tree.

        Args:
            state_dict: mapping from names to tensors.
            strict: raise when names are missing or left over. Default: ``True``.
            assign: put the given tensors in place of the module's own, instead of copying into them. Default: ``False``.

        Returns:
            A named tuple with the lists ``missing_keys`` and ``unexpected_keys``.

        Raises:
            RuntimeError: names (with ``strict``) or shapes do not match; the message lists all of them.
        """
        if not hasattr(state_dict, "items") or not hasattr(state_dict, "keys"):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing, unexpected, errors = [], [], []
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)
        if metadata is not None:
            state_dict._metadata = metadata
        _load_tree(self, state_dict, "", metadata, assign, missing, unexpected, errors)
        if strict:
            for kind, keys in (("Unexpected", unexpected), ("Missing", missing)):
                if keys:
                    errors.insert(0, f"{kind} key(s) in state_dict: " + ", ".join(f'"{key}"' for key in keys) + ". ")
        if errors:
            raise RuntimeError("Error(s) in loading state_dict for {}:\n\t{}".format(type(self).__name__, "\n\t".join(errors)))
        return _IncompatibleKeys(missing, unexpected)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        """Load the module's own tensors; problems are added to the three lists."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        local = dict(self._module_persistent_state())
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, value in local.items():
            key = prefix + name
            if key in state_dict:
                self._module_load_one(name, value, key, state_dict[key], assign, error_msgs)
            elif strict:
                missing_keys.append(key)
        extra_key = prefix + _EXTRA_STATE_KEY_SUFFIX
        if self._module_has_extra("set_extra_state"):
            if extra_key in state_dict:
                self.set_extra_state(state_dict[extra_key])
            elif strict:
                missing_keys.append(extra_key)
        elif strict and extra_key in state_dict:
            unexpected_keys.append(extra_key)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra_key:
                    head, dot, _ = key[len(prefix):].partition(".")
                    if head not in (self._modules if dot else local):
                        unexpected_keys.append(key)

    def _module_load_one(self, name, value, key, given, assign, error_msgs):
        """Copy *given* into the parameter or buffer *value*, or put it in its place."""
        if not isinstance(given, Tensor):
            error_msgs.append(f'While copying the parameter named "{key}", expected {config.spoken}.Tensor or Tensor-like object from '
                              f"checkpoint but received {type(given)}")
            return
        lazy = is_lazy(value)
        if not lazy and value.dim() == 0 and given.shape == (1,):
            given = given[0]  # very old files store scalars as one element
        if not lazy and given.shape != value.shape:
            error_msgs.append(f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, the shape in "
                              f"current model is {value.shape}.")
            return
        if lazy and not is_lazy(given):
            with clnn.no_grad():
                value.materialize(given.shape)
        if not lazy and not assign and value.is_meta and not given.is_meta:
            warnings.warn(f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current model, which "
                          "is a no-op. (Did you mean to pass `assign=True`?)", stacklevel=2)
        try:
            with clnn.no_grad():
                if _flags["swap"]:
                    _swap_loaded(value, given, assign)
                elif assign:
                    self._module_assign_loaded(name, value, given)
                elif not is_lazy(given):
                    value.copy_(given)
        except Exception as error:
            action = "swapping" if _flags["swap"] else "copying"
            error_msgs.append(f'While {action} the parameter named "{key}", whose dimensions in the model are {value.size()} and '
                              f"whose dimensions in the checkpoint are {given.size()}, an exception occurred : {error.args}.")

    def _module_assign_loaded(self, name, value, given):
        if isinstance(value, Parameter):
            if isinstance(given, Parameter):
                given.requires_grad_(value.requires_grad)
            else:
                given = Parameter(given, requires_grad=value.requires_grad)
        setattr(self, name, given)


def _swap_loaded(value, given, assign):
    """Exchange *value* with what its class makes of *given*."""
    fresh = value.module_load(given, assign=assign)
    if fresh is value or fresh is given:
        raise RuntimeError("module_load returned one of self or other, please .detach() the result if returning one of the inputs in module_load")
    if isinstance(value, Parameter):
        fresh = fresh.requires_grad_(value.requires_grad) if isinstance(fresh, Parameter) else Parameter(fresh, value.requires_grad)
    swap_tensors(value, fresh)


class _WithModule:
    """A load pre-hook that gets the module as its first argument. It does not keep the module, which holds the hook, alive."""

    def __init__(self, hook, module):
        self.hook, self.module = hook, weakref.ref(module)

    def __call__(self, *args):
        return self.hook(self.module(), *args)

    def __getstate__(self):
        return self.hook, self.module()

    def __setstate__(self, state):
        self.__init__(*state)


def _load_tree(module, state_dict, prefix, metadata, assign, missing, unexpected, errors):
    local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
    if assign:
        local_metadata["assign_to_params_buffers"] = assign
    module._load_from_state_dict(state_dict, prefix, local_metadata, True, missing, unexpected, errors)
    for name, child in module._modules.items():
        if child is not None:
            child_prefix = prefix + name + "."
            part = {key: value for key, value in state_dict.items() if key.startswith(child_prefix)}
            _load_tree(child, part, child_prefix, metadata, assign, missing, unexpected, errors)
    incompatible = _IncompatibleKeys(missing, unexpected)
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, incompatible) is not None:
            raise AssertionError("Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new "
                                 "values, if incompatible_keys need to be modified, it should be done inplace.")
