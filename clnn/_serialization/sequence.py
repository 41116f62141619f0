"""PyTorch's format before version 1.6: pickles behind each other (what the file is, the object, the keys of its storages), then the storages' elements.

Old checkpoints have it, and programs ask for it with ``_use_new_zipfile_serialization=False``.
"""

import pickle
import struct
import sys

import numpy as np

from clnn._serialization.allowed import allowed_globals
from clnn._serialization.files import SerializationError
from clnn._serialization.unpickle import Machine
from clnn._serialization.zipread import MapLocationError, ZipReader, numpy_dtype
from clnn._serialization.zipwrite import Pickler, warn_of
from clnn._tensor.interop import to_numpy

MAGIC, _VERSION = 0x1950A86A20F9469CFC6C, 1001
_SIZES = {"short": 2, "int": 4, "long": 4}
_COUNT = struct.Struct("<q")                        # elements, before those of each storage


class SequenceReader(ZipReader):
    """Reads the object of one such file; arguments as for :class:`ZipReader`.

    The elements come last, and their dtypes stand in the object's pickle: it is read once for these, and once more when all is there.
    """

    def __init__(self, file, map_location, name, modules=False):
        self.file, self.name, self.map_location, self.modules = file, name, map_location, modules
        self.size = file.seek(0, 2)
        file.seek(0)
        self.swap, self.storages, self.blocks = False, {}, None
        self.table = allowed_globals(self._rebuild_tensor, self._rebuild_tensor_v3, self._rebuild_parameter)

    def read(self):
        """The stored object."""
        magic, version, system = [self._pickle() for _ in range(3)]
        if magic != MAGIC or version != _VERSION or type(system) is not dict:
            raise SerializationError(f"load: {self.name} is a pickle, but not a checkpoint")
        start = self.file.tell()
        self._pickle()
        self.swap = system.get("little_endian") is False
        self.blocks, found = {}, self.storages
        for key in self._pickle():
            self.blocks[key] = self._take(found.get(key))
        self.storages = {}
        end = self.file.tell()
        self.file.seek(start)
        result = self._pickle()
        self.file.seek(end)
        return result

    def _pickle(self):
        try:
            return Machine(self._find, self._storage, self._build).run(self.file)
        except MapLocationError as error:
            raise error.args[0] from None

    def _take(self, storage):
        """The bytes of the next storage, which the object's pickle described as ``storage``."""
        head = self.file.read(_COUNT.size)
        if storage is None or len(head) < _COUNT.size or _COUNT.unpack(head)[0] * numpy_dtype(storage.dtype_name).itemsize != storage.numel:
            raise SerializationError(f"load: {self.name} is damaged: a storage is not what the object says")
        data = self.file.read(storage.numel)
        if len(data) != storage.numel:
            raise SerializationError(f"load: {self.name} is cut off")
        return data

    def _storage(self, pid):
        if type(pid) is tuple and len(pid) == 4 and pid[0] == "module" and self.modules:
            return pid[1]                           # a class, with its source text
        if not (type(pid) is tuple and len(pid) == 6 and pid[5] is None):
            raise SerializationError("load: the file refers to something other than a storage, or to a part of one")
        return super()._storage(pid[:5])

    def _bytes(self, key, nbytes):
        if self.blocks is None:
            if nbytes > self.size:
                raise SerializationError(f"load: storage {key} of {self.name} has {nbytes} bytes, but the file is shorter")
            return bytes(nbytes)
        if key not in self.blocks:
            raise SerializationError(f"load: {self.name} lacks storage {key}")
        return self.blocks[key]


def write_sequence(obj, file):
    """Write ``obj`` to the binary ``file``."""
    pickler = Pickler()
    pickler.reference_end = b"NtQ"                  # a storage is no part of another
    data = pickler.dump(obj)
    warn_of(pickler)
    for part in (MAGIC, _VERSION, {"protocol_version": _VERSION, "little_endian": sys.byteorder == "little", "type_sizes": _SIZES}):
        pickle.dump(part, file, protocol=2)
    file.write(data)
    pickle.dump([str(i) for i in range(len(pickler.storages))], file, protocol=2)
    for tensor in pickler.storages:
        file.write(_COUNT.pack(tensor.numel()))
        if tensor.numel():
            file.write(np.ascontiguousarray(to_numpy(tensor)).view("u1").data)
