"""Hooks of modules: registration, the global hooks, and the call that runs them."""
import contextlib
import threading
import warnings
from collections import OrderedDict

import clnn
from clnn._tensor.tensor import Tensor
from clnn.core.warn import warn
from clnn.utils.hooks import BackwardHook, RemovableHandle

_global_buffer_registration_hooks = OrderedDict()
_global_module_registration_hooks = OrderedDict()
_global_parameter_registration_hooks = OrderedDict()
_global_backward_pre_hooks = OrderedDict()
_global_backward_hooks = OrderedDict()
_global_forward_pre_hooks = OrderedDict()
_global_forward_hooks = OrderedDict()
_global_forward_hooks_always_called = OrderedDict()
_global_forward_hooks_with_kwargs = OrderedDict()
_global_is_full_backward_hook = None


changes = [0]                       # how often what modules keep was set: recordings look at modules again only when it grew
_watches, _watching = [], threading.Lock()      # (thread, what :func:`called` found so far) of each that is under way


@contextlib.contextmanager
def called():
    """The modules that this thread calls meanwhile, by their ids."""
    found, me = {}, threading.get_ident()
    with _watching:
        _watches.append((me, found))
        HookMixin._maybe_hooked = True
    try:
        yield found
    finally:
        with _watching:
            _watches[:] = [watch for watch in _watches if watch[1] is not found]
            HookMixin._maybe_hooked = bool(_watches or _global_forward_pre_hooks or _global_forward_hooks or _global_backward_pre_hooks
                                           or _global_backward_hooks)


def hooked(module):
    """Whether a call of *module* does more than its :meth:`forward`, of one that may."""
    own = module.__dict__
    return bool(_watches or _global_forward_pre_hooks or _global_forward_hooks or _global_backward_pre_hooks or _global_backward_hooks
                or own["_forward_pre_hooks"] or own["_forward_hooks"] or own["_backward_pre_hooks"] or own["_backward_hooks"] or module._compiled_call_impl)


def _register(hooks, hook, *flags, prepend=False):
    """Store *hook*; each flag dictionary also gets its id. Returns the handle."""
    handle = RemovableHandle(hooks, extra_dict=list(flags))
    hooks[handle.id] = hook
    for flag in flags:
        flag[handle.id] = True
    if prepend:
        for table in (hooks, *flags):
            table.move_to_end(handle.id, last=False)
    return handle


def _register_global_call_hook(hooks, hook, *flags):
    HookMixin._maybe_hooked = True  # from now on every module's call looks at the tables
    return _register(hooks, hook, *flags)


def register_module_buffer_registration_hook(hook):
    """Call ``hook(module, name, buffer)`` at every ``register_buffer``; a returned tensor replaces the buffer."""
    return _register(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook):
    """Call ``hook(module, name, submodule)`` at every ``register_module``; a returned module replaces the submodule."""
    return _register(_global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook):
    """Call ``hook(module, name, param)`` at every ``register_parameter``; a returned parameter replaces it.

    Example:
        >>> handle = nn.modules.module.register_module_parameter_registration_hook(lambda module, name, param: print(name))
        >>> layer = nn.Linear(1, 1)
        weight
        bias
        >>> handle.remove()
    """
    return _register(_global_parameter_registration_hooks, hook)


def register_module_forward_pre_hook(hook):
    """Call ``hook(module, args)`` before every forward of every module, ahead of the module's own pre-hooks.

    Example:
        >>> handle = nn.modules.module.register_module_forward_pre_hook(lambda module, args: print(type(module).__name__))
        >>> y = nn.ReLU()(clnn.ones(1))
        ReLU
        >>> handle.remove()
    """
    return _register_global_call_hook(_global_forward_pre_hooks, hook)


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """Call ``hook(module, args, output)`` after every forward of every module, ahead of the module's own hooks.

    Example:
        >>> handle = nn.modules.module.register_module_forward_hook(lambda module, args, output: print(type(module).__name__))
        >>> y = nn.ReLU()(clnn.ones(1))
        ReLU
        >>> handle.remove()
    """
    flags = [_global_forward_hooks_with_kwargs] * with_kwargs + [_global_forward_hooks_always_called] * always_call
    return _register_global_call_hook(_global_forward_hooks, hook, *flags)


def _set_global_backward_kind(full):
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is (not full):
        raise RuntimeError("Cannot use both regular backward hooks and full backward hooks as a global Module hook. "
                           "Please use only one of them.")
    _global_is_full_backward_hook = full


def register_module_backward_hook(hook):
    """Old form of :func:`register_module_full_backward_hook`: sees the gradients of the output's last function only."""
    _set_global_backward_kind(False)
    return _register_global_call_hook(_global_backward_hooks, hook)


def register_module_full_backward_pre_hook(hook):
    """Call ``hook(module, grad_output)`` before the gradients of any module's inputs are computed."""
    return _register_global_call_hook(_global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook):
    """Call ``hook(module, grad_input, grad_output)`` when the gradients of any module's inputs were computed.

    Example:
        >>> handle = nn.modules.module.register_module_full_backward_hook(lambda module, grad_input, grad_output: print(grad_output))
        >>> nn.ReLU()(clnn.ones(1, requires_grad=True)).sum().backward()
        (tensor([1.]),)
        >>> handle.remove()
    """
    _set_global_backward_kind(True)
    return _register_global_call_hook(_global_backward_hooks, hook)


def _first_tensor(value):
    """The first tensor inside nested lists, tuples and dictionaries, or None."""
    while not isinstance(value, Tensor):
        if isinstance(value, dict):
            value = next((v for v in value.values() if isinstance(v, Tensor)), None)
        elif isinstance(value, (tuple, list)) and value:
            value = value[0]
        else:
            return None
        if value is None:
            return None
    return value


class HookMixin:
    """The hook part of :class:`Module`."""

    # Sticky: set on the instance (or, by a global hook, here) at the first registration. A call tests only this flag.
    _maybe_hooked = False
    _compiled_call_impl = None

    def _module_init_hooks(self):
        put = self.__dict__.__setitem__
        for name in ("_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_hooks_with_kwargs",
                     "_forward_hooks_always_called", "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_state_dict_hooks",
                     "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks"):
            put(name, OrderedDict())
        put("_is_full_backward_hook", None)

    # -- registration ---------------------------------------------------------------------------------------------------
    def _module_add_call_hook(self, hooks, hook, *flags, prepend=False):
        changes[0] += 1
        self.__dict__["_maybe_hooked"] = True
        return _register(hooks, hook, *flags, prepend=prepend)

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """Call ``hook(module, args)`` before :meth:`forward`; a returned value replaces the positional arguments.

        Args:
            hook: the function.
            prepend: run it before the hooks that are already there. Default: ``False``.
            with_kwargs: call ``hook(module, args, kwargs)``, which may return ``(args, kwargs)``. Default: ``False``.

        Returns:
            A handle; ``handle.remove()`` takes the hook out.
        """
        flags = [self._forward_pre_hooks_with_kwargs] * with_kwargs
        return self._module_add_call_hook(self._forward_pre_hooks, hook, *flags, prepend=prepend)

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """Call ``hook(module, args, output)`` after :meth:`forward`; a returned value replaces the output.

        Args:
            hook: the function.
            prepend: run it before the hooks that are already there. Default: ``False``.
            with_kwargs: call ``hook(module, args, kwargs, output)``. Default: ``False``.
            always_call: run it even when the call raises (its output is then ``None``). Default: ``False``.

        Returns:
            A handle; ``handle.remove()`` takes the hook out.

        Example::

            >>> m = nn.ReLU()
            >>> h = m.register_forward_hook(lambda mod, args, out: out + 1)
            >>> m(clnn.tensor([-1., 2.]))
            tensor([1., 3.])
        """
        flags = [self._forward_hooks_with_kwargs] * with_kwargs + [self._forward_hooks_always_called] * always_call
        return self._module_add_call_hook(self._forward_hooks, hook, *flags, prepend=prepend)

    def register_backward_hook(self, hook):
        """Old form of :meth:`register_full_backward_hook`: it sees the gradients of the output's last function only."""
        self._module_set_backward_kind(False)
        return self._module_add_call_hook(self._backward_hooks, hook)

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """Call ``hook(module, grad_output)`` in backward, before the inputs' gradients; a returned value replaces grad_output."""
        return self._module_add_call_hook(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(self, hook, prepend=False):
        """Call ``hook(module, grad_input, grad_output)`` in backward; a returned tuple replaces ``grad_input``.

        ``grad_input`` has an entry for each positional argument and ``grad_output`` for each output; ``None`` stands for
        what is no tensor or needs no gradient. In-place changes of inputs or outputs are not allowed with this hook.
        """
        self._module_set_backward_kind(True)
        return self._module_add_call_hook(self._backward_hooks, hook, prepend=prepend)

    def _module_set_backward_kind(self, full):
        if self._is_full_backward_hook is (not full):
            raise RuntimeError("Cannot use both regular backward hooks and full backward hooks on a single Module. "
                               "Please use only one of them.")
        self._is_full_backward_hook = full

    # -- the call -------------------------------------------------------------------------------------------------------
    _module_as_one = None          # of a program's own classes: what may call forward in fewer steps

    def __call__(self, *args, **kwargs):
        if not (self._maybe_hooked and hooked(self)):
            as_one = self._module_as_one
            return self.forward(*args, **kwargs) if as_one is None else as_one(args, kwargs)
        for thread, found in _watches:
            if thread == threading.get_ident():
                found[id(self)] = self
        return (self._compiled_call_impl or self._call_impl)(*args, **kwargs)

    def compile(self, *args, **kwargs):
        """Let calls of this module, hooks included, run as :func:`clnn.compile` would run them; the arguments are passed on to it.

        Example::

            >>> m = nn.Linear(2, 1)
            >>> m.compile()
            >>> m(clnn.ones(3, 2)).shape
            clnn.Size([3, 1])
        """
        self.__dict__["_compiled_call_impl"] = clnn.compile(self._call_impl, *args, **kwargs)
        self.__dict__["_maybe_hooked"] = True

    def _call_impl(self, *args, **kwargs):
        done, reached = set(), [None]
        try:
            return self._module_call_with_hooks(args, kwargs, done, reached)
        except Exception:
            self._module_run_missed_always_hooks(args, kwargs, done, reached[0])
            raise

    def _module_call_with_hooks(self, args, kwargs, done, reached):
        """``done`` collects the always-called hooks that ran, ``reached`` holds the newest output, for the case that something raises."""
        args, kwargs = self._module_run_forward_pre_hooks(args, kwargs)
        full, legacy = self._get_backward_hooks()
        pre = self._get_backward_pre_hooks()
        guard = BackwardHook(self, full, pre) if full or pre else None
        if guard is not None:
            args = guard.setup_input_hook(args)
        result = reached[0] = self.forward(*args, **kwargs)
        for hook_id, hook, with_kwargs, always in self._module_iter_forward_hooks():
            if always:
                done.add(hook_id)
            changed = hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)
            if changed is not None:
                result = reached[0] = changed
        if guard is not None:
            if not isinstance(result, (Tensor, tuple)):
                warnings.warn("For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but "
                              f"received {type(result)}", stacklevel=3)
            result = guard.setup_output_hook(result)
        if legacy:
            self._module_attach_legacy_backward_hooks(legacy, args, result)
        return result

    def _module_run_forward_pre_hooks(self, args, kwargs):
        hooks = [(None, hook) for hook in _global_forward_pre_hooks.values()]
        for hook_id, hook in (*hooks, *self._forward_pre_hooks.items()):
            if hook_id in self._forward_pre_hooks_with_kwargs:
                changed = hook(self, args, kwargs)
                if changed is None:
                    continue
                if not (isinstance(changed, tuple) and len(changed) == 2):
                    raise RuntimeError("forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got "
                                       f"{changed}.")
                args, kwargs = changed
            else:
                changed = hook(self, args)
                if changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)
        return args, kwargs

    def _module_iter_forward_hooks(self):
        """(id, hook, with_kwargs, always_call) of the global hooks, then of the module's own."""
        for i, hook in list(_global_forward_hooks.items()):
            yield i, hook, i in _global_forward_hooks_with_kwargs, i in _global_forward_hooks_always_called
        for i, hook in list(self._forward_hooks.items()):
            yield i, hook, i in self._forward_hooks_with_kwargs, i in self._forward_hooks_always_called

    def _module_run_missed_always_hooks(self, args, kwargs, done, result):
        for hook_id, hook, with_kwargs, always in self._module_iter_forward_hooks():
            if not always or hook_id in done:
                continue
            try:  # the first error is the one to report
                _ = hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)
            except Exception as error:
                kind = "global module forward hook" if hook_id in _global_forward_hooks else "module forward hook"
                warnings.warn(f"{kind} with ``always_call=True`` raised an exception that was silenced as another error was "
                              f"raised in forward: {error}", stacklevel=3)

    def _get_backward_hooks(self):
        """Backward hooks as (full, legacy), global ones first."""
        full, legacy = [], []
        (full if _global_is_full_backward_hook else legacy).extend(_global_backward_hooks.values())
        (full if self._is_full_backward_hook else legacy).extend(self._backward_hooks.values())
        return full, legacy

    def _get_backward_pre_hooks(self):
        return [*_global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]

    def _module_attach_legacy_backward_hooks(self, hooks, args, result):
        tensor = _first_tensor(result)
        grad_fn = tensor.grad_fn if tensor is not None else None
        if grad_fn is None:
            return
        for hook in hooks:
            grad_fn.register_hook(lambda grad_in, grad_out, hook=hook: hook(self, grad_in, grad_out))
        missing = _missed(args, (result,) if isinstance(result, Tensor) else result, grad_fn)
        if missing:
            warn(f"Using {missing[0]} is deprecated and will be removed in future versions. This hook will be missing {missing[1]}", FutureWarning)


def _missed(args, results, grad_fn):
    """(in which case, what) a hook of the old form does not see; None where it sees all."""
    please = "Please use register_full_backward_hook to get the documented behavior."
    for values, takes, side in ((results, "does not return a", "output"), (args, "does not take as input a", "input")):
        if not (isinstance(values, tuple) and all([isinstance(v, Tensor) for v in values])):
            return f"non-full backward hooks on a Module that {takes} single Tensor or a tuple of Tensors", f"some of the grad_{side}. {please}"
    nodes = {r.grad_fn for r in results} - {None}
    if not nodes or len(nodes) == 1 and grad_fn not in nodes:
        return "a non-full backward hook when outputs are nested in python data structure", "some grad_output."
    if len(nodes) > 1:
        return "a non-full backward hook when outputs are generated by different autograd Nodes", f"some grad_output. {please}"
    if {a.grad_fn for a in args} - {None} != {n[0] for n in grad_fn.next_functions}:
        return "a non-full backward hook when the forward contains multiple autograd Nodes", f"some grad_input. {please}"
    return None
