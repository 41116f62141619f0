"""Which pipes a pipe reads from."""

from clnn.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ["traverse", "traverse_dps"]


def _inside(value, found, depth=3):
    """The pipes in a value, also those in containers and in what several pipes share."""
    if isinstance(value, (IterDataPipe, MapDataPipe)):
        found.append(value)
    elif depth and isinstance(value, (list, tuple, set)):
        for part in value:
            _inside(part, found, depth - 1)
    elif depth and isinstance(value, dict):
        _inside(list(value.values()), found, depth)
    elif depth and hasattr(value, "datapipe"):
        _inside(value.datapipe, found, depth - 1)
    return found


def traverse_dps(datapipe):
    """A dict from a pipe's ``id`` to the pipe and such a dict of those that it reads from."""
    if not isinstance(datapipe, (IterDataPipe, MapDataPipe)):
        raise RuntimeError(f"Expected `IterDataPipe` or `MapDataPipe`, but {type(datapipe)} is found")
    below = {}
    for pipe in _inside(list(datapipe.__dict__.values()), []):
        below.update(traverse_dps(pipe))
    return {id(datapipe): (datapipe, below)}


def traverse(datapipe, only_datapipe=None):
    """:func:`traverse_dps` under its older name."""
    return traverse_dps(datapipe)
