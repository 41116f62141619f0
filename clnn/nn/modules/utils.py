"""Small helpers for constructor arguments and state dictionaries."""
import collections
from itertools import repeat

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _ntuple(n, name="parse"):
    """A function that repeats a single value *n* times and passes an iterable on as a tuple."""
    def parse(value):
        if isinstance(value, collections.abc.Iterable):
            return tuple(value)
        return tuple(repeat(value, n))

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(values, n):
    """Each value n times, last first: per-dimension padding in the order that ``F.pad`` wants."""
    return tuple(value for value in reversed(values) for _ in range(n))


def _list_with_default(out_size, defaults):
    """Fill the ``None`` entries of an output size from the input's trailing sizes."""
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    return [v if v is not None else d for v, d in zip(out_size, defaults[-len(out_size):])]


def consume_prefix_in_state_dict_if_present(state_dict, prefix):
    """Strip *prefix* from the keys (and the metadata keys) of a state dict, in place.

    Useful for a checkpoint that was saved from a wrapper: ``consume_prefix_in_state_dict_if_present(sd, "module.")``.

    Example:
        >>> state = {"module.weight": 1}
        >>> nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
        >>> state
        {'weight': 1}
    """
    for key in list(state_dict.keys()):
        if key.startswith(prefix):
            state_dict[key[len(prefix):]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is None:
        return
    for key in list(metadata.keys()):
        if not key:
            continue
        if key == prefix.removesuffix("."):
            metadata[""] = metadata.pop(key)
        elif key.startswith(prefix):
            metadata[key[len(prefix):]] = metadata.pop(key)
