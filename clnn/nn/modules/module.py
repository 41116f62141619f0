"""Module: the base class of all layers and models."""
from types import FunctionType

from clnn._tensor.tensor import Tensor
from clnn.core.config import config
from clnn.nn.parameter import Buffer, Parameter

from . import _hooks
from ._chain import of_program
from ._convert import ConvertMixin
from ._hooks import (HookMixin, _global_backward_hooks, _global_backward_pre_hooks, _global_buffer_registration_hooks, _global_forward_hooks,  # noqa: F401
                     _global_forward_hooks_always_called, _global_forward_hooks_with_kwargs, _global_forward_pre_hooks, _global_module_registration_hooks,
                     _global_parameter_registration_hooks, register_module_backward_hook, register_module_buffer_registration_hook,
                     register_module_forward_hook, register_module_forward_pre_hook, register_module_full_backward_hook,
                     register_module_full_backward_pre_hook, register_module_module_registration_hook,
                     register_module_parameter_registration_hook)
from ._html import module_html
from ._state import _EXTRA_STATE_KEY_SUFFIX, StateMixin, _IncompatibleKeys  # noqa: F401  (names that users import from here)

__all__ = ["Module", "register_module_backward_hook", "register_module_buffer_registration_hook", "register_module_forward_hook",
           "register_module_forward_pre_hook", "register_module_full_backward_hook", "register_module_full_backward_pre_hook",
           "register_module_module_registration_hook", "register_module_parameter_registration_hook"]


of_scripted: dict = {}      # attributes of modules that ``clnn.jit`` was given, by name: functions of the module


def _typename(value):
    """The full name of a value's type; of a plain tensor the name with its dtype."""
    if type(value).__name__ in ("Tensor", "Parameter") and isinstance(value, Tensor):
        return value.type()
    kind = type(value)
    root, dot, rest = kind.__module__.partition(".")
    return kind.__qualname__ if root == "builtins" else f"{config.spoken if root == 'clnn' else root}{dot}{rest}.{kind.__qualname__}"


def _addindent(s_, numSpaces=2):
    """Indent all lines but the first."""
    return s_.replace("\n", "\n" + " " * numSpaces)


def _apply_registration_hooks(hooks, module, name, value):
    for hook in hooks.values():
        changed = hook(module, name, value)
        value = value if changed is None else changed
    return value


def _forward_unimplemented(self, *args):
    """Compute the output; every subclass overrides it."""
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


class Module(HookMixin, StateMixin, ConvertMixin):
    """A part of a model: it holds parameters, buffers and other modules, and computes something in :meth:`forward`.

    A parameter or module that is assigned as an attribute is registered under that name, so it is found by
    :meth:`parameters`, :meth:`state_dict`, :meth:`to` and the others. Call the module itself, not ``forward``: hooks run then.

    Example::

        >>> class Net(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.fc = nn.Linear(4, 2)
        ...     def forward(self, x):
        ...         return self.fc(x).relu()
        >>> Net()(clnn.ones(3, 4)).shape
        clnn.Size([3, 2])
    """

    training: bool
    call_super_init = False  # True: pass the constructor's arguments on along the inheritance chain
    dump_patches = False
    _module_repr_fields = ""  # see extra_repr

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if cls.__module__.partition(".")[0] != "clnn":
            cls._module_as_one = of_program
            for name, value in list(vars(cls).items()):         # an operator as an attribute takes no self: PyTorch's are no Python functions
                if isinstance(value, FunctionType) and hasattr(value, "op"):
                    setattr(cls, name, staticmethod(value))

    def __init__(self, *args, **kwargs):
        if not self.call_super_init:
            if kwargs:
                raise TypeError(f"{type(self).__name__}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'")
            if args:
                raise TypeError(f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given")
        put = self.__dict__.__setitem__  # straight to the dictionary: __setattr__ needs the tables made here
        put("training", True)
        put("_parameters", {})
        put("_buffers", {})
        put("_non_persistent_buffers_set", set())
        self._module_init_hooks()
        put("_modules", {})
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    forward = _forward_unimplemented

    # -- registration ---------------------------------------------------------------------------------------------------
    def _module_check_name(self, kind, name, table):
        """The rules for a name under which a parameter, buffer or module is registered."""
        _hooks.changes[0] += 1
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {_typename(name)}")
        if "." in name:
            raise KeyError(f"{kind} name can't contain \".\"" + (f", got: {name}" if kind == "module" else ""))
        if name == "":
            raise KeyError(f"{kind} name can't be empty string \"\"")
        if name not in table and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")

    def register_buffer(self, name, tensor, persistent=True):
        """Add a buffer: a tensor that belongs to the state (it is moved and saved) but is not trained.

        Args:
            name: attribute name.
            tensor: the tensor, or ``None`` to reserve the name (it is then not saved).
            persistent: whether ``state_dict`` contains it. Default: ``True``.
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._module_check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"cannot assign '{_typename(tensor)}' object to buffer '{name}' ({config.spoken} Tensor or None required)")
        self._buffers[name] = _apply_registration_hooks(_hooks._global_buffer_registration_hooks, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name, param):
        """Add a parameter under *name*; ``None`` reserves the name."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._module_check_name("parameter", name, self._parameters)
        if param is None:
            self._parameters[name] = None
            return
        if not isinstance(param, Parameter):
            raise TypeError(f"cannot assign '{_typename(param)}' object to parameter '{name}' ({config.spoken}.nn.Parameter or None required)")
        if param.grad_fn is not None:
            raise ValueError(f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To "
                             f"express '{name}' as a function of another Tensor, compute the value in the forward() method.")
        self._parameters[name] = _apply_registration_hooks(_hooks._global_parameter_registration_hooks, self, name, param)

    def add_module(self, name, module):
        """Add a child module under *name*; ``None`` reserves the name."""
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{_typename(module)} is not a Module subclass")
        self._module_check_name("module", name, self._modules)
        self._modules[name] = _apply_registration_hooks(_hooks._global_module_registration_hooks, self, name, module)

    def register_module(self, name, module):
        """Same as :meth:`add_module`."""
        self.add_module(name, module)

    # -- access by path -------------------------------------------------------------------------------------------------
    def get_submodule(self, target):
        """The module at a dotted path such as ``"encoder.0.fc"``; the module itself for ``""``."""
        module = self
        for part in target.split(".") if target else ():
            if not hasattr(module, part):
                raise AttributeError(f"{type(module).__name__} has no attribute `{part}`")
            module = getattr(module, part)
            if not isinstance(module, Module):
                raise AttributeError(f"`{part}` is not an nn.Module")
        return module

    def set_submodule(self, target, module, strict=False):
        """Put *module* at a dotted path whose parent exists; ``strict`` asks that something is replaced."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{type(parent).__name__} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def _module_get_tensor(self, target, kind, is_kind):
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
        value = getattr(module, name)
        if not is_kind(module, name, value):
            raise AttributeError(f"`{name}` is not {kind}")
        return value

    def get_parameter(self, target):
        """The parameter at a dotted path; AttributeError when there is none."""
        return self._module_get_tensor(target, "an nn.Parameter", lambda module, name, value: isinstance(value, Parameter))

    def get_buffer(self, target):
        """The buffer at a dotted path; AttributeError when there is none."""
        return self._module_get_tensor(target, "a buffer", lambda module, name, value: name in module._buffers)

    # -- attributes -----------------------------------------------------------------------------------------------------
    def __getattr__(self, name):  # only called when the ordinary lookup failed
        own = self.__dict__
        if "_modules" in own:  # the table that is made last
            for values in (own["_parameters"], own["_modules"], own["_buffers"]):
                if name in values:
                    return values[name]
            if "_scripted" in own and name in of_scripted:
                return of_scripted[name](self)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def _module_forget(self, name, keep):
        """Drop *name* from every place but the table *keep*, as it is about to be assigned there."""
        own = self.__dict__
        own.pop(name, None)
        for table in ("_parameters", "_buffers", "_modules"):
            if table != keep:
                own[table].pop(name, None)
        if keep != "_buffers":
            own["_non_persistent_buffers_set"].discard(name)

    def _module_set_registered(self, table, name, value, kind, expected, store):
        """Assign to a table; a name that is registered already takes only its own kind or None."""
        if value is not None and not isinstance(value, kind):
            what = {"_parameters": "parameter", "_modules": "child module", "_buffers": "buffer"}[table]
            named = ", ".join(f"{config.spoken}.{name}" for name in expected.split())
            raise TypeError(f"cannot assign '{_typename(value)}' as {what} '{name}' ({named} or None expected)")
        store(name, value)

    def __setattr__(self, name, value):
        _hooks.changes[0] += 1
        own = self.__dict__
        params, modules, buffers = own.get("_parameters"), own.get("_modules"), own.get("_buffers")
        if isinstance(value, Tensor) and isinstance(value, Parameter):
            if params is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._module_forget(name, "_parameters")
            self.register_parameter(name, value)
        elif params is not None and name in params:
            self._module_set_registered("_parameters", name, value, Parameter, "nn.Parameter", self.register_parameter)
        elif isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._module_forget(name, "_modules")
            modules[name] = _apply_registration_hooks(_hooks._global_module_registration_hooks, self, name, value)
        elif modules is not None and name in modules:
            self._module_set_registered("_modules", name, value, Module, "nn.Module", modules.__setitem__)
        elif isinstance(value, Tensor) and isinstance(value, Buffer):
            if buffers is None:
                raise AttributeError("cannot assign buffer before Module.__init__() call")
            self._module_forget(name, "_buffers")
            self.register_buffer(name, value, value.persistent)
        elif buffers is not None and name in buffers:
            value_or_hooked = _apply_registration_hooks(_hooks._global_buffer_registration_hooks, self, name, value)
            self._module_set_registered("_buffers", name, value_or_hooked, Tensor, "nn.Buffer Tensor", buffers.__setitem__)
        else:
            object.__setattr__(self, name, value)

    def __delattr__(self, name):
        _hooks.changes[0] += 1
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                del table[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    _repr_html_ = module_html

    def __dir__(self):
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers}
        return sorted(name for name in names if name and not name[0].isdigit())

    def __getstate__(self):
        state = self.__dict__.copy()
        state.pop("_compiled_call_impl", None)  # recordings belong to this object and this process
        return state

    def __setstate__(self, state):
        # tables that the saving version did not have yet get their empty start
        defaults = Module.__new__(Module)
        Module.__init__(defaults)
        self.__dict__.update({**defaults.__dict__, **state})

    # -- traversal ------------------------------------------------------------------------------------------------------
    def _named_members(self, get_members, prefix="", recurse=True, remove_duplicate=True):
        seen = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for module_name, module in modules:
            for name, value in get_members(module):
                if value is None or value in seen:
                    continue
                if remove_duplicate:
                    seen.add(value)
                yield f"{module_name}.{name}" if module_name else name, value

    def parameters(self, recurse=True):
        """Iterate over the parameters, those of the children too unless ``recurse=False``; shared ones come once."""
        tree = {}
        if not (recurse and type(self).named_parameters is Module.named_parameters and _below(self, tree)):
            for _, param in self.named_parameters(recurse=recurse):
                yield param
            return
        seen = set()                                # without names, as training loops ask for them in every step
        for module in tree.values():
            for param in module._parameters.values():
                if param is not None and id(param) not in seen:
                    seen.add(id(param))
                    yield param

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        """Iterate over (dotted name, parameter)."""
        yield from self._named_members(lambda module: module._parameters.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True):
        """Iterate over the buffers, those of the children too unless ``recurse=False``."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        """Iterate over (dotted name, buffer)."""
        yield from self._named_members(lambda module: module._buffers.items(), prefix, recurse, remove_duplicate)

    def children(self):
        """Iterate over the direct child modules."""
        for _, module in self.named_children():
            yield module

    def named_children(self):
        """Iterate over (name, direct child module); a module that is there twice comes once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate=True):
        """Iterate over the module itself and all modules below it, parents first."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        """Iterate over (dotted name, module) of the whole tree; the module itself has the name ``""``."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    # -- display --------------------------------------------------------------------------------------------------------
    def _get_name(self):
        return type(self).__name__

    def extra_repr(self):
        """The text between the brackets of the module's own line.

        By default it comes from the class attribute ``_module_repr_fields``, attribute names separated by blanks: ``name`` shows
        ``name=value``; ``name?`` only when it is true; ``name!`` whether it is not ``None``; ``=name`` the bare value.
        """
        parts = []
        for field in self._module_repr_fields.split():
            name = field.strip("?!=")
            value = getattr(self, name)
            if field[-1] == "!":
                value = value is not None
            shown = repr(value) if isinstance(value, str) else str(value)             # NumPy's numbers as numbers
            if field[0] == "=":
                parts.append(shown)
            elif field[-1] != "?" or value:
                parts.append(f"{name}={shown}")
        return ", ".join(parts)

    def __repr__(self):
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): " + _addindent(repr(module)) for name, module in self._modules.items()]
        if len(lines) == 1 and not children:
            return f"{self._get_name()}({lines[0]})"
        body = "".join(f"\n  {line}" for line in lines + children)
        return f"{self._get_name()}({body}\n)" if body else f"{self._get_name()}()"


for _part in (HookMixin, StateMixin, ConvertMixin):              # their methods are the module's, whose name errors have
    for _name, _fn in vars(_part).items():
        if isinstance(_fn, FunctionType):
            _fn.__qualname__ = f"Module.{_name}"


def _below(module, tree):
    """Add a module and all below it to ``tree``, parents first; False where a class goes through its modules in its own way."""
    if id(module) in tree:
        return True
    if getattr(type(module), "named_modules", None) is not Module.named_modules:
        return False
    tree[id(module)] = module
    return all([child is None or _below(child, tree) for child in module._modules.values()])
