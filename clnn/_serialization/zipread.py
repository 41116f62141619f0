"""Reading PyTorch's zip checkpoints."""

import collections
import math
import zipfile

import numpy as np

from clnn._serialization import quantized, whole
from clnn._serialization.allowed import NumpyDtype, StorageType, allowed_globals, fill_array, find_global, set_state, with_attributes
from clnn._serialization.files import EmptyFile, SerializationError
from clnn._serialization.unpickle import Machine, trusts
from clnn.core.dtype import from_name

_OLD_MAGIC = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19"  # how files of PyTorch before 1.6 begin


def numpy_dtype(name):
    """The NumPy dtype of a clnn dtype name; bfloat16 comes from ml_dtypes."""
    import ml_dtypes
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


class LoadedStorage:
    """One stored block of elements; the tensor over all of it is made on first use and shared by all views.

    Attributes:
        handle: what the program is given, where the file holds the storage itself.
    """

    def __init__(self, array, dtype_name, device):
        from clnn.storage import TypedStorage
        self.array, self.dtype_name, self.device = array, dtype_name, device
        self.numel = len(array)
        self._tensors = {}
        self.handle = TypedStorage._made_by(self._any, from_name(self.dtype_name))
        self.handle._loaded = self

    def _any(self):
        return next(iter(self._tensors.values())) if self._tensors else self.tensor(self.dtype_name)

    def tensor(self, dtype_name):
        """A one-dimensional tensor over the whole storage."""
        import clnn
        if not self._tensors:
            array = self.array.view(numpy_dtype(dtype_name))
            self._tensors[dtype_name] = clnn.tensor(array, device=self.device)
            self.array = None  # the bytes are on the device now
        if dtype_name not in self._tensors:
            raise SerializationError("load: one storage is used with two dtypes")
        return self._tensors[dtype_name]


class ZipReader:
    """Reads the object of one zip checkpoint.

    Args:
        file: seekable binary file. map_location: as for `clnn.load`. name: the file's name for messages. modules: whether it may hold whole modules.
    """

    def __init__(self, file, map_location, name, modules=False):
        self.name, self.map_location, self.modules = name, map_location, modules
        try:
            self.zip = zipfile.ZipFile(file)
            names = self.zip.namelist()
            if sum(info.compress_size for info in self.zip.infolist()) > file.seek(0, 2):
                raise ValueError("its records are longer than the file")  # they overlap, to fill the memory
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise SerializationError(f"load: {name} is damaged or cut off ({error})") from error
        roots = [n[:-len("data.pkl")] for n in names if n == "data.pkl" or n.endswith("/data.pkl")]
        if len(roots) != 1:
            raise SerializationError(f"load: {name} is a zip file but not a checkpoint (it has {len(roots)} records called data.pkl)")
        self.root = roots[0]
        if self.root + "constants.pkl" in names:
            raise SerializationError(f"load: {name} is a TorchScript archive, which holds a program; save the module's state_dict() instead")
        self.swap = self.root + "byteorder" in names and self._record("byteorder", 16) != b"little"
        self.storages = {}
        self.table = allowed_globals(self._rebuild_tensor, self._rebuild_tensor_v3, self._rebuild_parameter)

    def read(self):
        """The stored object."""
        machine = Machine(self._find, self._storage, self._build)
        with self.zip:
            try:
                return machine.run(self._record("data.pkl"))
            except MapLocationError as error:
                raise error.args[0] from None

    def _record(self, record, size=None):
        """The bytes of one record, which must not be compressed and, where `size` is given, not be longer."""
        try:
            info = self.zip.getinfo(self.root + record)
        except KeyError:
            raise SerializationError(f"load: {self.name} lacks the record {record}: it is damaged or was not written completely") from None
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise SerializationError(f"load: the record {record} of {self.name} is compressed, which checkpoints never are")
        if size is not None and info.file_size > size:
            raise SerializationError(f"load: the record {record} of {self.name} has {info.file_size} bytes, expected at most {size}")
        try:
            data = self.zip.read(info)
        except (zipfile.BadZipFile, OSError, ValueError, EOFError, RuntimeError, NotImplementedError) as error:
            raise SerializationError(f"load: the record {record} of {self.name} is damaged ({error})") from error
        if len(data) != info.file_size:
            raise SerializationError(f"load: the record {record} of {self.name} is cut off")
        return data

    # ---- what the pickle may do
    def _find(self, module, name):
        found = whole.find(module, name) if self.modules and f"{module}.{name}" not in self.table else None
        return find_global(self.table, module, name) if found is None else found

    def _storage(self, pid):
        if not (type(pid) is tuple and len(pid) == 5 and pid[0] == "storage" and type(pid[1]) is StorageType):
            raise SerializationError("load: the file refers to something other than a storage")
        _, kind, key, location, numel = pid
        if not (type(key) is str and key.isalnum() and type(location) is str and type(numel) is int and numel >= 0):
            raise SerializationError("load: a reference to a storage is malformed")
        dtype_name = kind.dtype_name or "uint8"
        if key not in self.storages:
            dtype = numpy_dtype(dtype_name)
            data = self._bytes(key, numel * dtype.itemsize)
            array = np.frombuffer(data, np.uint8)
            self.storages[key] = LoadedStorage(array, dtype_name, resolve_location(self.map_location, location))
            if self.swap and kind.dtype_name and dtype.itemsize > 1:
                self.storages[key].array = np.frombuffer(data, f"u{dtype.itemsize}").byteswap().view(np.uint8)
        storage = self.storages[key]
        if storage.dtype_name != dtype_name:
            raise SerializationError(f"load: storage {key} of {self.name} is used with two dtypes")
        return storage.handle

    def _bytes(self, key, nbytes):
        data = self._record("data/" + key)
        if len(data) != nbytes:
            raise SerializationError(f"load: storage {key} of {self.name} has {len(data)} bytes, expected {nbytes}")
        return data

    def _rebuild_tensor(self, storage, offset, size, stride, requires_grad, hooks=None, metadata=None):
        return self._tensor(storage, None, offset, size, stride, requires_grad)

    def _rebuild_tensor_v3(self, storage, offset, size, stride, requires_grad, hooks, dtype, metadata=None):
        return self._tensor(storage, str(dtype).rpartition(".")[2], offset, size, stride, requires_grad)

    def _tensor(self, storage, dtype_name, offset, size, stride, requires_grad):
        import clnn
        storage = getattr(storage, "_loaded", None)
        if type(storage) is not LoadedStorage:
            raise SerializationError("load: a tensor without a storage")
        dtype_name = dtype_name or storage.dtype_name
        size, stride = tuple(size), tuple(stride)
        if len(size) != len(stride) or not all(type(n) is int and n >= 0 for n in (offset, *size, *stride)):
            raise SerializationError(f"load: a tensor has impossible geometry: size {size}, stride {stride}, offset {offset}")
        base = storage.tensor(dtype_name)
        last = offset + sum((n - 1) * s for n, s in zip(size, stride))
        if math.prod(size) and last >= base.numel():
            raise SerializationError(f"load: a tensor of size {size}, stride {stride} and offset {offset} reaches beyond its storage "
                                     f"of {base.numel()} elements")
        with clnn.no_grad():
            t = clnn.as_strided(base, size, stride, offset).detach()
        return t.requires_grad_(True) if requires_grad is True else t

    def _rebuild_parameter(self, data, requires_grad, hooks=None, state=None):
        import clnn
        from clnn._tensor.tensor import Tensor
        if not isinstance(data, Tensor):
            raise SerializationError("load: a parameter without a tensor")
        return with_attributes(clnn.nn.Parameter(data, requires_grad=requires_grad is True), state)

    def _build(self, obj, state):
        """Only a state dict's `_metadata`, a NumPy dtype's byte order, an empty array's contents and what was vouched for may be set."""
        if type(obj) is collections.OrderedDict and type(state) is dict and set(state) <= {"_metadata"}:
            obj.__dict__.update(state)
            return obj
        if type(obj) is NumpyDtype:
            return obj.set_state(state)
        if type(obj) is np.ndarray:
            return fill_array(obj, state)
        if type(obj) is quantized.ScriptObject:
            return quantized.set_state(obj, state)
        if trusts(type(obj)) or self.modules and whole.is_whole(obj):
            return set_state(obj, state)
        raise SerializationError(f"load: the file sets attributes of a {type(obj).__name__}, which plain data never needs")


def resolve_location(map_location, location):
    """The device for a storage that was saved on `location`; None stands for the default device."""
    if map_location is None:
        return None
    if isinstance(map_location, dict):
        return map_location.get(location)
    if callable(map_location) and not isinstance(map_location, _device_types()):
        return _ask(map_location, location)
    return map_location


def _device_types():
    import clnn
    return (str, clnn.device)  # a clnn.device can be called, as a decorator


class MapLocationError(Exception):
    """Carries an error of the user's `map_location` function past the checks of the file."""


class _SavedStorage:
    """What a `map_location` function gets as its first argument; returning it unchanged means the default device."""

    device = None

    def cpu(self):
        return "cpu"

    def cuda(self, index=None):
        return "gpu" if index is None else f"gpu:{index}"


def _ask(function, location):
    storage = _SavedStorage()
    try:
        answer = function(storage, location)
    except Exception as error:
        raise MapLocationError(error) from error
    return None if answer is None or answer is storage else answer


def check_format(head, tail_of_tar, name):
    """The reader for a file that begins with ``head``; raises for what is no checkpoint, with the reason."""
    if head[:4] == b"PK\x03\x04":
        return ZipReader
    if head.startswith(_OLD_MAGIC):
        from clnn._serialization.sequence import SequenceReader
        return SequenceReader
    if head[:1] == b"\x80":
        raise SerializationError(f"load: {name} is a pickle, but not a checkpoint; save its content with torch.save(obj, path)")
    if not head:
        raise EmptyFile(f"load: {name} is empty")
    if tail_of_tar == b"ustar":
        raise SerializationError(f"load: {name} is a tar archive (a very old PyTorch format); load it in PyTorch and save it again")
    raise SerializationError(f"load: {name} is not a checkpoint (neither a zip archive nor .safetensors)")
