"""Parameters and buffers that are computed from others: ``module.weight`` becomes ``f(module.parametrizations.weight.original)``."""
import collections.abc
import contextlib
import copy

import clnn
from clnn._tensor.tensor import Tensor
from clnn.nn.modules.container import ModuleDict, ModuleList
from clnn.nn.parameter import Parameter

__all__ = ["cached", "ParametrizationList", "register_parametrization", "is_parametrized", "remove_parametrizations",
           "type_before_parametrizations", "transfer_parametrizations_and_params"]

_cache_depth = 0
_cache = {}


@contextlib.contextmanager
def cached():
    """Within the block each parametrized tensor is computed once and kept.

    Example::

        >>> with nn.utils.parametrize.cached():
        ...     pass  # output = model(inputs)
    """
    global _cache_depth
    _cache_depth += 1
    try:
        yield
    finally:
        _cache_depth -= 1
        if not _cache_depth:
            _cache.clear()


def _register(module, name, tensor):
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _set(tensor, value):
    """Make *tensor* hold *value*, whatever its shape."""
    tensor.data = value.detach().clone() if value is tensor else value.detach()


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, applied in order, and the original tensor or tensors they start from.

    Args:
        modules: the parametrizations; a ``right_inverse`` of theirs finds the originals.
        original: the parameter or buffer that is parametrized.
        unsafe: skip the checks that shape and dtype stay. Default: ``False``.
    """

    def __init__(self, modules, original, unsafe=False):
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        new = self._initial_value(original)
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            if dtype != new.dtype:
                raise ValueError("When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                                 f"original.dtype: {dtype}\nright_inverse(original).dtype: {new.dtype}")
            with clnn.no_grad():
                _set(original, new)
            _register(self, "original", original)
        else:
            self._register_originals(new, original)
        if not unsafe:
            self._check_result(shape, dtype)

    def _initial_value(self, original):
        with clnn.no_grad():
            new = original
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    try:
                        new = module.right_inverse(new)
                    except NotImplementedError:
                        pass
        if not isinstance(new, (Tensor, collections.abc.Sequence)):
            raise ValueError(f"'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got {type(new).__name__}")
        return new

    def _register_originals(self, values, original):
        for i, value in enumerate(values):
            if not isinstance(value, Tensor):
                raise ValueError("'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                                 f"Got element {i} of the sequence with type {type(value).__name__}.")
            if isinstance(original, Parameter):
                value = Parameter(value, original.requires_grad)
            value.requires_grad_(original.requires_grad)
            _register(self, f"original{i}", value)

    def _check_result(self, shape, dtype):
        result = self()
        if not isinstance(result, Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
        if result.dtype != dtype:
            raise ValueError("Registering a parametrization may not change the dtype of the tensor, unless `unsafe` flag is enabled.\n"
                             f"unparametrized dtype: {dtype}\nparametrized dtype: {result.dtype}")
        if result.shape != shape:
            raise ValueError("Registering a parametrization may not change the shape of the tensor, unless `unsafe` flag is enabled.\n"
                             f"unparametrized shape: {shape}\nparametrized shape: {result.shape}")

    def right_inverse(self, value):
        """Set the originals so that the result is *value*, by the ``right_inverse`` of each parametrization, last first."""
        with clnn.no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            if self.is_tensor:
                if not isinstance(value, Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
                if value.dtype != self.original.dtype:
                    raise ValueError(f"The tensor returned by `right_inverse` has dtype {value.dtype} while `original` has dtype "
                                     f"{self.original.dtype}")
                _set(self.original, value)
                return
            if not isinstance(value, collections.abc.Sequence):
                raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(value).__name__}.")
            if len(value) != self.ntensors:
                raise ValueError(f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a sequence of length "
                                 f"{len(value)}.")
            for i, part in enumerate(value):
                original = getattr(self, f"original{i}")
                if not isinstance(part, Tensor):
                    raise ValueError(f"`right_inverse` must return a sequence of tensors. Got element {i} of type {type(part).__name__}")
                if original.dtype != part.dtype:
                    raise ValueError(f"Tensor {i} returned by `right_inverse` has dtype {part.dtype} while `original{i}` has dtype "
                                     f"{original.dtype}")
                _set(original, part)

    def forward(self):
        """The parametrized tensor."""
        first, *rest = self._modules.values()
        x = first(self.original) if self.is_tensor else first(*(getattr(self, f"original{i}") for i in range(self.ntensors)))
        for module in rest:
            x = module(x)
        return x


def _inject_new_class(module):
    """Give *module* a class of its own, on which properties can be put."""
    cls = type(module)

    def __getstate__(self):
        raise RuntimeError("Serialization of parametrized modules is only supported through state_dict().")

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        # a class of its own: removing a parametrization from one must not touch the other
        own = {k: v for k, v in type(self).__dict__.items() if k not in ("__dict__", "__weakref__")}
        replica = memo[id(self)] = object.__new__(type(type(self).__name__, type(self).__bases__, own))
        replica.__dict__ = copy.deepcopy(self.__dict__, memo)
        return replica

    own = {"__getstate__": __getstate__}
    if not hasattr(cls, "__deepcopy__"):
        own["__deepcopy__"] = __deepcopy__
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), own)


def _inject_property(module, tensor_name):
    def get(self):
        if not _cache_depth:
            return self.parametrizations[tensor_name]()
        key = id(self), tensor_name
        if _cache.get(key) is None:
            _cache[key] = self.parametrizations[tensor_name]()
        return _cache[key]

    def set_original(self, value):
        self.parametrizations[tensor_name].right_inverse(value)

    setattr(type(module), tensor_name, property(get, set_original))


def _append(module, tensor_name, parametrization, unsafe):
    """One more parametrization on a tensor that has some."""
    if not unsafe:
        value = getattr(module, tensor_name)
        result = parametrization(value)
        if not isinstance(result, Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
        for what in ("dtype", "shape"):
            if getattr(result, what) != getattr(value, what):
                raise ValueError(f"Registering a parametrization may not change the {what} of the tensor, unless the `unsafe` flag is "
                                 f"enabled.\nmodule.{tensor_name}.{what}: {getattr(value, what)}\n"
                                 f"parametrization(module.{tensor_name}).{what}: {getattr(result, what)}")
        if hasattr(parametrization, "right_inverse"):
            _check_inverse(parametrization, value)
    parametrizations = module.parametrizations[tensor_name]
    parametrizations.append(parametrization)
    parametrizations.unsafe |= unsafe


def _check_inverse(parametrization, value):
    try:
        inverse = parametrization.right_inverse(value)
    except NotImplementedError:
        return
    if not isinstance(inverse, Tensor):
        raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(inverse).__name__}")
    if inverse.dtype != value.dtype:
        raise ValueError("parametrization.right_inverse must return a tensor with the same dtype as module."
                         f"{value.dtype}, got {inverse.dtype}")


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """Compute a parameter or buffer of *module* by another module from now on.

    ``module.<tensor_name>`` becomes a property; what is trained is ``module.parametrizations.<tensor_name>.original`` (or
    ``original0``, ``original1``, ... when ``right_inverse`` returns several tensors). Assigning to the property calls ``right_inverse``.

    Args:
        module: the module, which is returned. Its class is replaced by a subclass of its own.
        tensor_name: name of the parameter, buffer or parametrized tensor.
        parametrization: module whose forward takes the original and returns the tensor.
        unsafe: allow it to change shape or dtype. Default: ``False``.

    Raises:
        ValueError: no such tensor, or the shape or dtype changes.

    Example::

        >>> class Symmetric(nn.Module):
        ...     def forward(self, X):
        ...         return X.triu() + X.triu(1).t()
        >>> m = nn.utils.parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
        >>> bool((m.weight == m.weight.t()).all())
        True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        _append(module, tensor_name, parametrization, unsafe)
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        parametrizations = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _inject_new_class(module)
            module.parametrizations = ModuleDict()
        _inject_property(module, tensor_name)
        module.parametrizations[tensor_name] = parametrizations
    else:
        raise ValueError(f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'")
    return module


def is_parametrized(module, tensor_name=None):
    """Whether the module (or the tensor, if named) has parametrizations.

    Example::

        >>> nn.utils.parametrize.is_parametrized(nn.Linear(2, 2))
        False
    """
    parametrizations = getattr(module, "parametrizations", None)
    if parametrizations is None or not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    """Make a parametrized tensor an ordinary one again.

    Args:
        leave_parametrized: keep its present value; ``False`` goes back to the original. Default: ``True``.

    Example:
        >>> layer = clnn.nn.utils.parametrizations.weight_norm(nn.Linear(2, 1))
        >>> _ = clnn.nn.utils.parametrize.remove_parametrizations(layer, "weight")
        >>> clnn.nn.utils.parametrize.is_parametrized(layer)
        False
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations = module.parametrizations[tensor_name]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            with clnn.no_grad():
                _set(original, getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value.detach()) if value.requires_grad else value
    else:
        raise ValueError("Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a sequence "
                         "of tensors.")
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module):
    """The class the module had before its first parametrization.

    Example:
        >>> layer = clnn.nn.utils.parametrizations.weight_norm(nn.Linear(2, 1))
        >>> clnn.nn.utils.parametrize.type_before_parametrizations(layer).__name__
        'Linear'
    """
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module, to_module, tensor_name=None):
    """Copy the parametrizations of *from_module* (of one tensor, or all) and their originals to *to_module*, which is returned."""
    if not is_parametrized(from_module):
        return to_module
    if tensor_name is not None and not is_parametrized(from_module, tensor_name):
        raise AssertionError(f"{tensor_name} is not parametrized in {from_module}")
    for name in list(from_module.parametrizations) if tensor_name is None else [tensor_name]:
        source = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(source.original.detach().clone()))
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        target = to_module.parametrizations[name]
        for key in ["original"] if source.is_tensor else [f"original{i}" for i in range(source.ntensors)]:
            if hasattr(target, key):
                setattr(target, key, getattr(source, key))
    return to_module
