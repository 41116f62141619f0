"""Calling a module with other parameters and buffers than its own."""
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
            path, _, attribute = name.rpartition(".")
            try:
                owner = module.get_submodule(path)
            except AttributeError:
                owner = None
            table = next((t for t in (owner._parameters, owner._buffers) if attribute in t), None) if owner is not None else None
            if table is None:
                raise KeyError(name) if not hasattr(owner, attribute) else TypeError(f"{name} is no parameter or buffer")
            swapped.append((table, attribute, table[attribute]))
            table[attribute] = value
        yield module
    finally:
        for table, attribute, original in reversed(swapped):
            replaced = table[attribute]
            table[attribute] = original
            if isinstance(parameters_and_buffers, dict) and isinstance(replaced, Tensor):
                _hand_back(parameters_and_buffers, swapped, attribute, replaced)


def _hand_back(given, swapped, attribute, value):
    """A buffer that the call replaced (not changed in place) goes back to the caller's dictionary."""
    names = [name for name in given if name.rpartition(".")[2] == attribute]
    if len(names) == 1:
        given[names[0]] = value


def functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """Call *module* as if its parameters and buffers were the given tensors.

    Args:
        module: the module; it is left unchanged, as long as its forward does not keep anything.
        parameters_and_buffers: dictionary from dotted names to tensors; what is not named stays.
        args: positional arguments, a tuple (or the single argument).
        kwargs: keyword arguments.
        tie_weights: a tensor given for one name of a shared parameter counts for its other names too. Default: ``True``.
        strict: raise when names are missing or left over. Default: ``False``.

    Example::

        >>> fc = nn.Linear(2, 1, bias=False)
        >>> clnn.func.functional_call(fc, {"weight": clnn.ones(1, 2)}, clnn.tensor([[1., 2.]]))
        tensor([[3.]])
    """
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights=tie_weights, strict=strict):
        return module(*args, **(kwargs or {}))
