"""PyTorch's switches for reading and writing files. None changes what is loaded here: they are kept, so that programs may set and ask them."""

import contextlib
import enum


class LoadEndianness(enum.Enum):
    """The byte order that files without a record of it have."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


_kept = {"endianness": None, "crc32": True, "mmap": 2}


def get_default_load_endianness():
    """The byte order assumed of files that do not tell theirs."""
    return _kept["endianness"]


def set_default_load_endianness(endianness):
    """Assume a byte order of files that do not tell theirs; those of clnn and of PyTorch since 2.1 do."""
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _kept["endianness"] = endianness


def get_crc32_options():
    """Whether files get checksums."""
    return _kept["crc32"]


def set_crc32_options(compute_crc32):
    """Ask for checksums; clnn always writes them."""
    _kept["crc32"] = compute_crc32


def get_default_mmap_options():
    """The flags of memory maps."""
    return _kept["mmap"]


class set_default_mmap_options(contextlib.ContextDecorator):
    """Set the flags of memory maps, for good or for a block; clnn copies files to the device instead."""

    def __init__(self, flags):
        if flags not in (1, 2):
            raise ValueError(f"Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got {flags}")
        self.before, _kept["mmap"] = _kept["mmap"], flags

    def __enter__(self):
        pass

    def __exit__(self, *error):
        _kept["mmap"] = self.before


class skip_data:
    """A block in which files need not hold the data of storages; clnn reads and writes them all the same.

    Args:
        materialize_fake_tensors: accepted as in PyTorch.
    """

    def __init__(self, materialize_fake_tensors=False):
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self):
        pass

    def __exit__(self, *error):
        pass


def location_tag(storage):
    """The name of the device of a storage as files have it."""
    return str(storage.device.type)
