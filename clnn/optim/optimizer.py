"""The optimizer base: parameter groups, per-parameter state, hooks, and checkpoints in PyTorch's layout."""

import functools
import warnings
from collections import OrderedDict, defaultdict
from copy import deepcopy
from itertools import chain
from typing import Any, Dict, Iterable, Tuple, Union

from clnn._tensor.grad_mode import set_grad_enabled
from clnn._tensor.tensor import Tensor
from clnn.core.dtype import float32
from clnn.optim._counters import counter
from clnn.optim._shared import *  # noqa: F403
from clnn.optim._shared import _get_scalar_dtype  # noqa: F401
from clnn.utils.hooks import RemovableHandle


class _Required:
    def __repr__(self):
        return "<required parameter>"


required = _Required()  # default of an option that each group must give
ParamsT = _params_t = Union[Iterable[Tensor], Iterable[Dict[str, Any]], Iterable[Tuple[str, Tensor]]]


def _default_to_fused_or_foreach(params, differentiable, use_fused=False):
    """Whether an optimizer should take many tensors at once by itself: no, updates of one tensor fuse and are launched together."""
    return False, False


def _use_grad_for_differentiable(step):
    """Decorator of `step`: gradients are recorded inside only with the option `differentiable`."""
    @functools.wraps(step)
    def run(self, *args, **kwargs):
        with set_grad_enabled(bool(self.defaults.get("differentiable"))):
            return step(self, *args, **kwargs)
    return run


def _get_capturable_supported_devices(supports_xla=True):
    """Kinds of devices that keep an optimizer's counters: any."""
    return ["cpu", "cuda", "gpu"]


def _register(hooks, hook, prepend=False):
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


_global_pre_hooks = OrderedDict()
_global_post_hooks = OrderedDict()


def register_optimizer_step_pre_hook(hook):
    """Run `hook(optimizer, args, kwargs)` before each step of every optimizer; returns a handle with `remove()`.

    Example:
        >>> handle = clnn.optim.optimizer.register_optimizer_step_pre_hook(lambda optimizer, args, kwargs: print("step"))
        >>> clnn.optim.SGD([clnn.zeros(1)], lr=1.0).step()
        step
        >>> handle.remove()
    """
    return _register(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook):
    """Run `hook(optimizer, args, kwargs)` after each step of every optimizer; returns a handle with `remove()`.

    Example:
        >>> handle = clnn.optim.optimizer.register_optimizer_step_post_hook(lambda optimizer, args, kwargs: print("step"))
        >>> clnn.optim.SGD([clnn.zeros(1)], lr=1.0).step()
        step
        >>> handle.remove()
    """
    return _register(_global_post_hooks, hook)


def _hooked(step):
    """Wrap a `step` method with the step hooks. A `super().step()` inside it does not run them a second time."""

    @functools.wraps(step)
    def run(self, *args, **kwargs):
        own = self.__dict__
        if "_opt_called" in own:            # a learning-rate schedule looks on, and warns when it is stepped first
            self._opt_called = True
        if own.get("_stepping") or "_optimizer_step_pre_hooks" not in own:      # a wrapper that never called ``Optimizer.__init__`` has no hooks
            return step(self, *args, **kwargs)
        self._stepping = True
        try:
            args = (self, *args)  # hooks see, and may replace, all arguments of the call
            for hook in [*_global_pre_hooks.values(), *self._optimizer_step_pre_hooks.values()]:
                changed = hook(self, args, kwargs)
                if changed is not None:
                    if not (isinstance(changed, tuple) and len(changed) == 2):
                        raise RuntimeError(f"<function {type(self).__name__}.step at {hex(id(step))}> must return None or a tuple of (new_args, "
                                           f"new_kwargs), but got {changed}.")
                    args, kwargs = changed
            out = step(*args, **kwargs)
            for hook in [*self._optimizer_step_post_hooks.values(), *_global_post_hooks.values()]:
                hook(self, args, kwargs)
            return out
        finally:
            self._stepping = False

    run.hooked = True
    return run


_HOOK_TABLES = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks", "_optimizer_state_dict_pre_hooks",
                "_optimizer_state_dict_post_hooks", "_optimizer_load_state_dict_pre_hooks", "_optimizer_load_state_dict_post_hooks")


class Optimizer:
    """Base class of all optimizers.

    Args:
        params: iterable of tensors, of `(name, tensor)` pairs, or of dicts that each describe a group
            (`{"params": [...], "lr": 0.1}`).
        defaults: dict of option values used by groups that do not give their own.

    A subclass defines `step(closure=None)`; the step hooks are added to it by themselves.

    Example:
        >>> class Sign(clnn.optim.Optimizer):
        ...     def __init__(self, params, lr):
        ...         super().__init__(params, {"lr": lr})
        ...     @clnn.no_grad()
        ...     def step(self, closure=None):
        ...         for group in self.param_groups:
        ...             for p in group["params"]:
        ...                 p.sub_(p.grad.sign() * group["lr"])
        >>> w = clnn.tensor([1.0, -2.0], requires_grad=True)
        >>> (w * w).sum().backward()
        >>> Sign([w], lr=0.5).step()
        >>> w
        tensor([ 0.5000, -1.5000], requires_grad=True)
    """

    def __init__(self, params, defaults):
        self.defaults = defaults
        self._make_hook_tables()
        if isinstance(params, Tensor):
            raise TypeError(f"params argument given to the optimizer should be an iterable of Tensors or dicts, but got {params.type()}; pass a list, "
                            "e.g. [tensor]")
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)
        if any(group.get("fused") and group.get("foreach") for group in self.param_groups):
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
        if defaults.get("fused") and defaults.get("differentiable"):
            raise RuntimeError("`fused` does not support `differentiable`")

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        step = cls.__dict__.get("step")
        if step is not None and not getattr(step, "hooked", False):
            cls.step = _hooked(step)

    def _make_hook_tables(self):
        for name in _HOOK_TABLES:
            setattr(self, name, OrderedDict())

    # hooks are left out of pickles and copies: they are closures over the running program
    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state):
        self.__dict__.update(state)
        for name in _HOOK_TABLES:
            if name not in self.__dict__:
                setattr(self, name, OrderedDict())
        self.defaults.setdefault("differentiable", False)

    def __repr__(self):
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
            lines.append("")
        return "\n".join(lines[:-1]) + "\n)"

    def step(self, closure=None):
        """Update the parameters once. `closure` (optional) recomputes the loss and returns it."""
        raise NotImplementedError(f"{type(self).__name__} has to define step(closure=None)")

    @staticmethod
    def _group_tensors_by_device_and_dtype(tensorlistlist, with_indices=False):
        """Lists of tensors taken apart by the device and dtype of the first list's tensors: `{(device, dtype): (lists, places)}`."""
        groups = {}
        for i, first in enumerate(tensorlistlist[0]):
            lists, places = groups.setdefault((first.device, first.dtype), ([[] for _ in tensorlistlist], []))
            places.append(i)
            for group, tensors in zip(lists, tensorlistlist):
                if tensors:
                    group.append(tensors[i])
        return {key: (lists, places if with_indices else []) for key, (lists, places) in groups.items()}

    def zero_grad(self, set_to_none=True):
        """Forget the gradients of all parameters: `None` by default, else filled with zeros in place."""
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if set_to_none:
                    p.grad = None
                    continue
                if p.grad.grad_fn is not None:
                    p.grad = p.grad.detach()
                else:
                    p.grad.requires_grad_(False)
                p.grad.zero_()

    # ---- groups
    def add_param_group(self, param_group):
        """Add a group of parameters with options of its own, e.g. when layers are unfrozen during training.

        Args:
            param_group: dict with `params` (a tensor, a list of tensors, or of `(name, tensor)` pairs) and any options.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError("optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets will change "
                            "between runs. Please use a list instead.")
        params, names = _split_names(list(params))
        param_group["params"] = params
        if names is not None:
            param_group["param_names"] = names
        self._check_params(params)
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        ids = {id(p) for p in params}
        if len(ids) != len(params):
            warnings.warn("optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; see "
                          "github.com/pytorch/pytorch/issues/40967 for more information", stacklevel=3)
        if any(id(p) in ids for group in self.param_groups for p in group["params"]):
            raise ValueError("some parameters appear in more than one parameter group")
        if self.param_groups and ("param_names" in self.param_groups[0]) != ("param_names" in param_group):
            raise ValueError("all optimizer param groups should be with/without names. cannot add param group "
                             f"{'without' if 'param_names' in self.param_groups[0] else 'with'} names to the optimizer")
        self.param_groups.append(param_group)

    def _check_params(self, params):
        for p in params:
            if not isinstance(p, Tensor):
                from clnn import typename
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {typename(p)}")
            if not self.defaults.get("differentiable") and not (p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")

    @staticmethod
    def profile_hook_step(func):
        """``func``, a step, with the hooks around it."""
        return _hooked(func)

    # What steps that a program copied from PyTorch's optimizers call: here nothing depends on it.
    def _accelerator_graph_capture_health_check(self):
        """Accepted: recordings of ``clnn.compile`` keep the state of all optimizers."""

    _cuda_graph_capture_health_check = _optimizer_step_code = _accelerator_graph_capture_health_check

    # ---- checkpoints
    def _patch_step_function(self):
        """Accepted: profiles find the steps of all optimizers. Classes that wrap an optimizer call it."""

    def state_dict(self):
        """The state as `{"state": {index: {...}}, "param_groups": [...]}`; parameters are numbered in group order."""
        for hook in list(self._optimizer_state_dict_pre_hooks.values()):
            hook(self)
        index = {}
        groups = []
        for group in self.param_groups:
            packed = {k: v for k, v in group.items() if k != "params"}
            for p in group["params"]:
                index.setdefault(id(p), len(index))
            packed["params"] = [index[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {(index[id(k)] if isinstance(k, Tensor) else k): v for k, v in self.state.items()}
        out = {"state": state, "param_groups": groups}
        for hook in list(self._optimizer_state_dict_post_hooks.values()):
            changed = hook(self, out)
            if changed is not None:
                out = changed
        return out

    def load_state_dict(self, state_dict):
        """Restore what `state_dict()` returned, ours or PyTorch's. Tensors are moved to their parameter's device and dtype."""
        state_dict = state_dict.copy()
        for hook in list(self._optimizer_load_state_dict_pre_hooks.values()):
            changed = hook(self, state_dict)
            if changed is not None:
                state_dict = changed
        saved = deepcopy(state_dict["param_groups"])
        if len(saved) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        for i, (theirs, ours) in enumerate(zip(saved, self.param_groups)):
            if len(theirs["params"]) != len(ours["params"]):
                raise ValueError("loaded state dict contains a parameter group that doesn't match the size of optimizer's group: "
                                 f"group {i} has {len(theirs['params'])} parameters, expected {len(ours['params'])}")
        by_index = dict(zip(chain.from_iterable(g["params"] for g in saved), chain.from_iterable(g["params"] for g in self.param_groups)))
        counted = any("step" in vars(c) and c is not Optimizer and c.__module__.startswith("clnn.optim.") for c in type(self).__mro__)   # own steps, own kinds
        on_device = {i for g in saved if g.get("capturable") or g.get("fused") for i in g["params"]}
        state = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in by_index:
                state[by_index[key]] = _import(by_index[key], value, key not in on_device, counted=counted)
            else:
                state[key] = value
        groups = []
        for ours, theirs in zip(self.param_groups, saved):
            theirs["params"] = ours["params"]
            if "param_names" in ours and "param_names" not in theirs:
                theirs["param_names"] = ours["param_names"]
            groups.append(theirs)
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in list(self._optimizer_load_state_dict_post_hooks.values()):
            hook(self)

    # ---- hook registration
    def register_step_pre_hook(self, hook):
        """Run `hook(optimizer, args, kwargs)` before each step; it may return changed `(args, kwargs)`."""
        return _register(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook):
        """Run `hook(optimizer, args, kwargs)` after each step."""
        return _register(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook, prepend=False):
        """Run `hook(optimizer)` before `state_dict()` collects anything."""
        return _register(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook, prepend=False):
        """Run `hook(optimizer, state_dict)` on the result of `state_dict()`; it may return another dict."""
        return _register(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend=False):
        """Run `hook(optimizer, state_dict)` before loading; it gets a shallow copy and may return another dict."""
        return _register(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend=False):
        """Run `hook(optimizer)` after loading."""
        return _register(self._optimizer_load_state_dict_post_hooks, hook, prepend)


def run_closure(closure):
    """Call `closure` (may be None) with gradients on and return its loss."""
    if closure is None:
        return None
    with set_grad_enabled(True):
        return closure()


def _split_names(params):
    """Separate `(name, tensor)` pairs; returns (tensors, names or None)."""
    named = [isinstance(p, tuple) for p in params]
    if not any(named):
        return params, None
    if not all(named):
        raise ValueError("all optimizer params should be with/without names. Some param names are missing")
    return [p for _, p in params], [name for name, _ in params]


def _import(param, value, hosted, key=None, counted=True):
    """Make one loaded state value fit `param`: tensors take its device and dtype, but for `step`, which takes its device if not ``hosted``."""
    if isinstance(value, Tensor):
        if key == "step":
            return value if hosted else value.to(dtype=float32, device=param.device)
        if param.dtype.differentiable:
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)
    if isinstance(value, dict):
        return {k: _import(param, v, hosted, key=k, counted=counted) for k, v in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_import(param, v, hosted, key=key, counted=counted) for v in value)
    if counted and key in COUNTERS and isinstance(value, (int, float)) and not isinstance(value, bool):
        return counter(value)
    return value


COUNTERS = frozenset({"step", "mu_product", "eta", "mu"})  # state entries that were numbers in old checkpoints
