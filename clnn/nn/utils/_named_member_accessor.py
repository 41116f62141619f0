"""Tensors of modules put in the place of others by name, whether parameters, buffers or attributes."""
from clnn._tensor.tensor import Tensor

_MISSING = object()


def swap_tensor(module, name, tensor, allow_missing=False):
    """Put ``tensor`` (None: nothing; with ``allow_missing`` the name goes when it is not there) under ``name`` and give what was there.

    Example:
        >>> layer = nn.Linear(1, 1, bias=False)
        >>> weight = clnn.nn.utils._named_member_accessor.swap_tensor(layer, "weight", clnn.ones(1, 1))
        >>> layer(clnn.ones(1)), isinstance(weight, nn.Parameter)
        (tensor([1.]), True)
    """
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if name == "":
        raise KeyError('tensor name can\'t be empty string ""')
    table = next((t for t in (module._parameters, module._buffers) if name in t), module.__dict__)
    before = table.get(name, _MISSING)
    if before is _MISSING:
        before = getattr(module, name, _MISSING)
    if before is _MISSING and not allow_missing:
        raise AttributeError(f"{type(module).__name__!r} object has no attribute {name!r}")
    if before is not _MISSING and before is not None and not isinstance(before, Tensor):
        raise TypeError(f"attribute `{name}`: {before} is not an instance of torch.Tensor")
    if tensor is _MISSING:
        table.pop(name, None)
    else:
        table[name] = tensor
    return before
