"""``data_ptr()``: device memory has no address on the host, a copy of it has one."""
from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

_copies: WeakKeyDictionary = WeakKeyDictionary()


def address(storage, start, stop):
    """Where byte ``start`` of a storage is in its copy on the host; the bytes up to ``stop`` are as on the device at this moment.

    The address stays as long as the storage does, so that it tells storages apart. Libraries that go below a tensor's interface read values through it;
    what they write there is not seen by the device.
    """
    device = storage.device
    if device.kind == "meta" or start >= stop:
        return 0
    copy = _copies.get(storage)
    if copy is None or copy.size < stop:
        copy = _copies[storage] = np.empty(storage.nbytes, np.uint8)
    if not device.records():                # what is being recorded has no values yet
        copy[start:stop] = device.read(storage.buffer(), stop - start, start)
    return copy.ctypes.data + start


__all__ = ["address"]
