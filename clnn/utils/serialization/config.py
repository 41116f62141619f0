"""PyTorch's switches for reading and writing files, by the names of its configuration module.

They are kept, so that programs may set and ask them; checksums and byte order are the settings of ``clnn.serialization``.

Example:
    >>> from clnn.utils.serialization import config
    >>> with config.patch("load.mmap", True):
    ...     config.load.mmap
    True
    >>> config.save.storage_alignment
    64
"""
import contextlib

from ..._serialization import settings


class _Switches:
    def __init__(self, place, shared, **first):
        self.__dict__.update(first, _shared=shared, __name__=f"{__name__}.{place}")

    def __getattr__(self, name):
        try:
            return settings._kept[self.__dict__["_shared"][name]]
        except KeyError:
            raise AttributeError(f"{self.__name__}.{name} does not exist") from None

    def __setattr__(self, name, value):
        if name in self._shared:
            settings._kept[self._shared[name]] = value
        elif name in self.__dict__:
            self.__dict__[name] = value
        else:
            raise AttributeError(f"{self.__name__}.{name} does not exist")


load = _Switches("load", {"endianness": "endianness", "mmap_flags": "mmap"}, mmap=False, calculate_storage_offsets=False)
save = _Switches("save", {"compute_crc32": "crc32"}, use_pinned_memory_for_d2h=False, storage_alignment=64)


@contextlib.contextmanager
def patch(arg1=None, arg2=None, **changes):
    """Set switches for a block: ``patch("load.mmap", True)``, or a dict of such names and values."""
    changes = {**({arg1: arg2} if isinstance(arg1, str) else arg1 or {}), **changes}
    places = {name: ({"load": load, "save": save}[name.partition(".")[0]], name.partition(".")[2]) for name in changes}
    before = {name: getattr(*place) for name, place in places.items()}
    try:
        for name, place in places.items():
            setattr(*place, changes[name])
        yield
    finally:
        for name, place in places.items():
            setattr(*place, before[name])
