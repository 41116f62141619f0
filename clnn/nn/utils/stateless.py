"""Calling a module with other parameters and buffers than its own."""
import collections
import contextlib

from clnn._tensor.tensor import Tensor

__all__ = ["functional_call"]


def _tied_names(module):
    """For each name the set of names under which the same tensor is registered."""
    by_tensor = {}
    for members in (module.named_parameters(remove_duplicate=False), module.named_buffers(remove_duplicate=False)):
        for name, tensor in members:
            by_tensor.setdefault(tensor, set()).add(name)
    return {name: names for names in by_tensor.values() for name in names}


def _untie(module, tensors):
    """Give every name of a shared tensor the value that was given for one of them."""
    tied = _tied_names(module)
    complete = dict(tensors)
    for name, value in tensors.items():
        for other in tied.get(name, ()):
            if other in tensors and tensors[other] is not value:
                raise ValueError(f"functional_call got multiple values for keys {sorted(tied[name] & tensors.keys())}, which are tied. "
                                 "Consider using tie_weights=False")
            complete[other] = value
    return complete


@contextlib.contextmanager
def _reparametrize_module(module, parameters_and_buffers, *, tie_weights=False, strict=False, stack_weights=False):
    """Put the given tensors in place of the module's own for the time of the block."""
    tensors = _untie(module, parameters_and_buffers) if tie_weights else dict(parameters_and_buffers)
    own = dict([*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)])
    missing, unexpected = sorted(own.keys() - tensors.keys()), sorted(tensors.keys() - own.keys())
    if strict and (missing or unexpected):
        problems = [f"{kind} key(s): {', '.join(repr(key) for key in keys)}." for kind, keys in
                    (("Unexpected", unexpected), ("Missing", missing)) if keys]
        raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:\n\t" + "\n\t".join(problems))
    swapped = []
    try:
        for name, value in tensors.items():
            if not isinstance(value, Tensor):
                raise TypeError(f"{value} is not an instance of clnn.Tensor")
            if name in unexpected and not hasattr(module.get_submodule(name.rpartition(".")[0]), name.rpartition(".")[2]):
                continue  # without `strict` a name that no one has counts for nothing
            table, attribute = _place_of(module, name)
            swapped.append((name, table, attribute, table[attribute]))
            table[attribute] = value
        yield module
    finally:
        for name, table, attribute, original in reversed(swapped):
            if name in parameters_and_buffers:  # a value that the call replaced goes back to the caller
                parameters_and_buffers[name] = table[attribute]
            table[attribute] = original


def _place_of(module, name):
    """The table (parameters or buffers of a submodule) and the key that a dotted name means."""
    path, _, attribute = name.rpartition(".")
    owner = module.get_submodule(path)
    for table in (owner._parameters, owner._buffers):
        if attribute in table:
            return table, attribute
    if hasattr(owner, attribute):
        raise TypeError(f"{name}: {getattr(owner, attribute)} is not an instance of clnn.Tensor")
    raise AttributeError(f"{owner._get_name()} has no attribute `{attribute}`")


def _merge(dictionaries):
    merged = {}
    repeated = [name for name, times in collections.Counter(name for dictionary in dictionaries for name in dictionary).items() if times > 1]
    if repeated:
        raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    for dictionary in dictionaries:
        merged.update(dictionary)
    return merged


def functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """Call *module* as if its parameters and buffers were the given tensors.

    Args:
        module: the module; it is left unchanged, as long as its forward does not keep anything.
        parameters_and_buffers: dictionary from dotted names to tensors, or several of them; what is not named stays.
        args: positional arguments, a tuple (or the single argument).
        kwargs: keyword arguments.
        tie_weights: a tensor given for one name of a shared parameter counts for its other names too. Default: ``True``.
        strict: raise when names are missing or left over. Default: ``False``.

    Example::

        >>> fc = nn.Linear(2, 1, bias=False)
        >>> clnn.func.functional_call(fc, {"weight": clnn.ones(1, 2)}, clnn.tensor([[1., 2.]]))
        tensor([[3.]])
    """
    if not isinstance(parameters_and_buffers, dict):
        if not isinstance(parameters_and_buffers, (list, tuple)) or not all(isinstance(d, dict) for d in parameters_and_buffers):
            raise ValueError("Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
                             f"{type(parameters_and_buffers)}")
        parameters_and_buffers = _merge(parameters_and_buffers)
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights=tie_weights, strict=strict):
        return module(*args, **(kwargs or {}))
