"""Writing PyTorch's zip checkpoints: a pickle of plain containers beside one raw record per storage."""

import collections
import struct
import sys
import warnings
import zipfile

import numpy as np

from clnn._serialization import quantized
from clnn._serialization.allowed import STORAGE_OF, UNTYPED
from clnn._serialization.files import SerializationError
from clnn._serialization.objects import write_object
from clnn._tensor.handle import RESERVED
from clnn._tensor.interop import to_numpy
from clnn._tensor.tensor import Tensor
from clnn.core.layout import layout, strided

_ALIGNMENT = 64  # where the bytes of a storage begin in the file, so that they can be mapped into memory


def _attributes(tensor):
    """A program's own attributes of a tensor that are plain values; all others stay behind."""
    return {k: v for k, v in tensor._all.items() if k not in RESERVED and _plain(v)}


def _plain(value):
    if isinstance(value, (list, tuple)):
        return all(_plain(v) for v in value)
    if type(value) is dict:
        return all(_plain(v) for pair in value.items() for v in pair)
    return value is None or type(value) in (bool, int, float, str) or type(value) is Tensor and value.layout is strided and not _attributes(value)


class Pickler:
    """Writes a pickle (protocol 2) of tensors and plain containers, with PyTorch's names for their types.

    After `dump`, `storages` holds one one-dimensional tensor per stored block, in the order of its record's number.
    """

    def __init__(self):
        self.out = bytearray(b"\x80\x02")
        self.memo = {}  # id of an object, or the name of a global -> memo number
        self.next_number = 0
        self.keep = []  # objects whose ids are in the memo must not die
        self.storages = []
        self.keys = {}  # id of a storage -> (record number, dtype)
        self.reference_end = b"tQ"  # of a reference to a storage
        self.foreign = None  # the class of the first object that `clnn.load` will refuse
        self.path = []  # where in the object we are, for messages
        self.open_tuples = set()

    def dump(self, obj):
        """The pickle of `obj` as bytes."""
        self._save(obj)
        self.out += b"."
        return bytes(self.out)

    # ---- opcodes
    def _save(self, obj):
        if id(obj) in self.memo:
            self._get(self.memo[id(obj)])
            return
        kind = type(obj)
        writer = _WRITERS.get(kind) or self._writer_of(obj)
        if writer is not None:
            writer(self, obj)
        elif not write_object(self, obj):
            raise self._refusal(obj)

    def _writer_of(self, obj):
        import clnn
        if isinstance(obj, Tensor):
            if clnn.nn.parameter.is_lazy(obj):
                return Pickler._without_shape
            if obj.is_quantized:
                return quantized.write_tensor
            if obj.layout is not strided:
                return Pickler._parameter if "_is_param" in obj.__dict__ else Pickler._sparse
            return Pickler._parameter if isinstance(obj, clnn.nn.Parameter) else Pickler._tensor
        if isinstance(obj, clnn.Size):
            return Pickler._size
        if isinstance(obj, clnn.dtype):
            return Pickler._dtype
        if isinstance(obj, clnn.device):
            return Pickler._device
        if isinstance(obj, (np.ndarray, np.number, np.bool_)) and obj.dtype.kind in "biuf" and not isinstance(obj, float):
            return Pickler._array if isinstance(obj, np.ndarray) else Pickler._numpy_scalar
        if isinstance(obj, layout):
            return Pickler._layout
        if isinstance(obj, clnn.UntypedStorage):
            return Pickler._storage
        own = quantized.writer_of(obj)
        if own is not None:
            return own
        for base in (float, int, str):  # subclasses of numbers and text are stored as their base
            if isinstance(obj, base):
                return lambda pickler, x: pickler._save(base(x)) if base is not str else pickler._save(str.__str__(x))
        return None

    def _refusal(self, obj):
        where = "".join(f"[{k!r}]" for k in self.path) or "the object itself"
        hint = "save its state_dict() instead" if hasattr(obj, "state_dict") else "store plain values instead"
        return SerializationError(f"save: {where} is a {type(obj).__module__}.{type(obj).__qualname__}; checkpoints hold tensors, numbers, text "
                                  f"and plain containers only, so that loading one never runs code: {hint}")

    def _memoize(self, obj):
        self.keep.append(obj)
        self._memoize_key(id(obj))

    def _memoize_key(self, key):
        number = self.memo[key] = self.next_number
        self.next_number += 1
        self.out += b"q" + bytes((number,)) if number < 256 else b"r" + struct.pack("<I", number)

    def _get(self, number):
        self.out += b"h" + bytes((number,)) if number < 256 else b"j" + struct.pack("<I", number)

    def _global(self, module, name):
        key = (module, name)
        if key in self.memo:
            self._get(self.memo[key])
            return
        self.out += f"c{module}\n{name}\n".encode()
        self._memoize_key(key)

    def _none(self, obj):
        self.out += b"N"

    def _bool(self, obj):
        self.out += b"\x88" if obj else b"\x89"

    def _int(self, obj):
        if -2 ** 31 <= obj < 2 ** 31:
            self.out += b"K" + bytes((obj,)) if 0 <= obj < 256 else b"J" + struct.pack("<i", obj)
            return
        data = obj.to_bytes(obj.bit_length() // 8 + 1, "little", signed=True)
        self.out += b"\x8a" + bytes((len(data),)) + data if len(data) < 256 else b"\x8b" + struct.pack("<i", len(data)) + data

    def _float(self, obj):
        self.out += b"G" + struct.pack(">d", obj)

    def _str(self, obj):
        data = obj.encode("utf-8", "surrogatepass")
        self.out += b"X" + struct.pack("<I", len(data)) + data
        self._memoize(obj)

    def _bytes(self, obj):
        self._global("_codecs", "encode")
        self._str(obj.decode("latin1"))
        self._str("latin1")
        self.out += b"\x86R"
        self._memoize(obj)

    def _bytearray(self, obj):
        self._global("__builtin__", "bytearray")
        self._bytes(bytes(obj))
        self.out += b"\x85R"
        self._memoize(obj)

    def _complex(self, obj):
        self._global("__builtin__", "complex")
        self._float(obj.real)
        self._float(obj.imag)
        self.out += b"\x86R"

    def _tuple(self, obj):
        if id(obj) in self.open_tuples:
            raise SerializationError("save: a tuple contains itself")
        self.open_tuples.add(id(obj))
        self._plain_tuple(obj)
        self.open_tuples.discard(id(obj))
        self._memoize(obj)

    def _plain_tuple(self, items):
        self.out += b"("
        self._items(items)
        self.out += b"t"

    def _items(self, items):
        for i, item in enumerate(items):
            self.path.append(i)
            self._save(item)
            self.path.pop()

    def _list(self, obj):
        self.out += b"]"
        self._memoize(obj)
        self.out += b"("
        self._items(obj)
        self.out += b"e"

    def _pairs(self, obj):
        self.out += b"("
        for key, value in obj.items():
            self._save(key)
            self.path.append(key)
            self._save(value)
            self.path.pop()
        self.out += b"u"

    def _dict(self, obj):
        self.out += b"}"
        self._memoize(obj)
        self._pairs(obj)

    def _ordered_dict(self, obj):
        self._global("collections", "OrderedDict")
        self.out += b")R"
        self._memoize(obj)
        self._pairs(obj)
        metadata = getattr(obj, "_metadata", None)  # nn.Module.state_dict keeps format versions there
        if metadata is not None:
            self._save({"_metadata": metadata})
            self.out += b"b"

    def _counter(self, obj):
        self._global("collections", "Counter")
        self._save(dict(obj))
        self.out += b"\x85R"
        self._memoize(obj)

    def _default_dict(self, obj):
        factory = obj.default_factory
        if factory not in (None, dict, list, int, float, set):
            raise self._refusal(obj)
        self._global("collections", "defaultdict")
        if factory is None:
            self.out += b")R"
        else:
            self._global("__builtin__", factory.__name__)
            self.out += b"\x85R"
        self._memoize(obj)
        self._pairs(obj)

    def _set(self, obj):
        self._global("__builtin__", type(obj).__name__)
        self._save(list(obj))
        self.out += b"\x85R"
        self._memoize(obj)

    # ---- NumPy's values, as NumPy pickles them
    def _numpy_dtype(self, dtype):
        self._global("numpy", "dtype")
        self._plain_tuple((dtype.str[1:], False, True))
        self.out += b"R"
        self._plain_tuple((3, dtype.byteorder if dtype.itemsize == 1 else "<", None, None, None, -1, -1, 0))
        self.out += b"b"

    def _numpy_scalar(self, obj):
        self._global("numpy._core.multiarray", "scalar")
        self.out += b"("
        self._numpy_dtype(obj.dtype)
        self._bytes(np.asarray(obj, obj.dtype.newbyteorder("<")).tobytes())
        self.out += b"tR"
        self._memoize(obj)

    def _array(self, obj):
        self._global("numpy._core.multiarray", "_reconstruct")
        self.out += b"("
        self._global("numpy", "ndarray")
        self._plain_tuple((0,))
        self._bytes(b"b")
        self.out += b"tR"
        self._memoize(obj)
        self.out += b"("
        self._int(1)
        self._plain_tuple(obj.shape)
        self._numpy_dtype(obj.dtype)
        self._bool(False)
        self._bytes(obj.astype(obj.dtype.newbyteorder("<"), order="C").tobytes())
        self.out += b"tb"

    # ---- clnn's types
    def _size(self, obj):
        self._global("torch", "Size")
        self._plain_tuple(obj)
        self.out += b"\x85R"
        self._memoize(obj)

    def _dtype(self, obj):
        self._global("torch", str(obj).rpartition(".")[2])

    def _device(self, obj):
        """A GPU is written as PyTorch's 'cuda', which `clnn.load` reads as 'gpu' again."""
        kind = "cuda" if obj.type == "gpu" else obj.type
        self._global("torch", "device")
        self._plain_tuple((kind,) if obj.index is None else (kind, obj.index))
        self.out += b"R"

    def _tensor(self, obj):
        own = _attributes(obj)
        if own:
            self._global("torch._tensor", "_rebuild_from_type_v2")
            self.out += b"("
        self._recipe(obj, ("torch", "Tensor") if own else None)
        if own:
            self._save(own)
            self.out += b"t"
        self.out += b"R"
        self._memoize(obj)

    def _recipe(self, obj, kind_of=None):
        """The function that makes a tensor, the name ``kind_of``, and a tuple of the function's arguments."""
        if obj.device.type == "meta":
            self._global("torch._utils", "_rebuild_meta_tensor_no_storage")
            if kind_of:
                self._global(*kind_of)
            self.out += b"("
            self._dtype(obj.dtype)
            self._plain_tuple(tuple(obj.shape))
            self._plain_tuple(tuple(obj.stride()))
            self._bool(bool(obj.requires_grad))
            self.out += b"t"
            return
        storage_key, kind, numel = self._storage_of(obj)
        self._global("torch._utils", "_rebuild_tensor_v2" if kind else "_rebuild_tensor_v3")
        if kind_of:
            self._global(*kind_of)
        self.out += b"(("
        self._reference(storage_key, kind, numel)
        self._int(obj.storage_offset())
        self._plain_tuple(tuple(obj.shape))
        self._plain_tuple(tuple(obj.stride()))
        self._bool(bool(obj.requires_grad))
        self._global("collections", "OrderedDict")
        self.out += b")R"
        if kind is None:
            self._dtype(obj.dtype)
        self.out += b"t"

    def _reference(self, storage_key, kind, numel):
        """The rest of a reference to a storage, which began with a mark."""
        for text in ("storage", None, storage_key, "cpu"):
            if text is None:
                self._global(*("torch", kind) if kind else ("torch.storage", "UntypedStorage"))
            else:
                self._save(text)
        self._int(numel)
        self.out += self.reference_end

    def _storage(self, obj):
        from clnn.storage import TypedStorage
        storage_key, kind, numel = self._storage_of(obj._flat())
        self.out += b"("
        self._reference(storage_key, kind if isinstance(obj, TypedStorage) else None, numel)

    def _layout(self, obj):
        self._global("torch.serialization", "_get_layout")
        self._plain_tuple(("torch." + str(obj).rpartition(".")[2],))
        self.out += b"R"

    def _sparse(self, obj):
        self._global("torch._utils", "_rebuild_sparse_tensor")
        self.out += b"("
        self._layout(obj.layout)
        names = {"sparse_coo": ("_indices",), "sparse_csr": ("crow_indices", "col_indices"), "sparse_csc": ("ccol_indices", "row_indices")}
        parts = [getattr(obj, name)().contiguous() for name in names[str(obj.layout).rpartition(".")[2]]]
        flag = (obj.is_coalesced(),) if obj.is_sparse else ()
        self._plain_tuple((*parts, obj._values().contiguous(), obj.shape, *flag))
        self.out += b"tR"
        self._memoize(obj)

    def _parameter(self, obj):
        own = _attributes(obj)
        self._global("torch._utils", "_rebuild_parameter_with_state" if own else "_rebuild_parameter")
        self.out += b"("
        (self._tensor if obj.layout is strided else self._sparse)(obj.detach())
        self._bool(bool(obj.requires_grad))
        self._global("collections", "OrderedDict")
        self.out += b")R"
        if own:
            self._save(own)
        self.out += b"tR"
        self._memoize(obj)

    def _without_shape(self, obj):
        import clnn
        self._global("torch.nn.parameter", "UninitializedParameter" if isinstance(obj, clnn.nn.UninitializedParameter) else "UninitializedBuffer")
        self._plain_tuple((bool(obj.requires_grad),))
        self.out += b"R"
        self._memoize(obj)

    def _storage_of(self, tensor):
        """(record name, storage class name, number of elements) of a tensor's storage; views of one storage share it. Without a class: None, and bytes."""
        import clnn
        storage = tensor._storage
        name = str(tensor.dtype).rpartition(".")[2]
        if name not in STORAGE_OF and name not in UNTYPED:
            raise SerializationError(f"save: tensors of dtype {tensor.dtype} cannot be stored")
        if id(storage) not in self.keys:
            numel = storage.nbytes // tensor.element_size()
            self.keys[id(storage)] = (len(self.storages), name)
            self.keep.append(storage)
            with clnn.no_grad():
                self.storages.append(clnn.as_strided(tensor.detach(), (numel,), (1,), 0))
        number, first_name = self.keys[id(storage)]
        if first_name != name:
            raise SerializationError(f"save: two tensors see the same memory as {first_name} and as {name}; clone() one of them")
        stored = self.storages[number]
        return str(number), STORAGE_OF.get(name), stored.numel() if name in STORAGE_OF else stored.nbytes


_WRITERS = {type(None): Pickler._none, bool: Pickler._bool, int: Pickler._int, float: Pickler._float, str: Pickler._str, bytes: Pickler._bytes,
            bytearray: Pickler._bytearray, complex: Pickler._complex, tuple: Pickler._tuple, list: Pickler._list, dict: Pickler._dict,
            set: Pickler._set, frozenset: Pickler._set, collections.OrderedDict: Pickler._ordered_dict, collections.Counter: Pickler._counter,
            collections.defaultdict: Pickler._default_dict, Tensor: Pickler._tensor}


def write_zip(obj, file, root):
    """Write `obj` to the binary `file`; `root` is the folder's name inside the archive."""
    pickler = Pickler()
    data = pickler.dump(obj)
    warn_of(pickler)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        _add(archive, f"{root}/data.pkl", data)
        _add(archive, f"{root}/byteorder", sys.byteorder.encode())
        for i, tensor in enumerate(pickler.storages):
            array = to_numpy(tensor) if tensor.numel() else None
            _add(archive, f"{root}/data/{i}", b"" if array is None else memoryview(array.view("u1")))
        _add(archive, f"{root}/version", b"3\n")


def warn_of(pickler):
    """Say that a file will not be read here, where it will not."""
    if pickler.foreign:
        warnings.warn(f"save: the file holds a {pickler.foreign}; clnn.load, which runs no code of a file, will refuse it unless "
                      "serialization.add_safe_globals names the class; PyTorch reads it with weights_only=False", stacklevel=4)


def _add(archive, name, data):
    info = zipfile.ZipInfo(name)  # its fixed date makes equal objects give equal files
    info.file_size = len(data)
    zip64 = info.file_size * 1.05 > zipfile.ZIP64_LIMIT
    header = 30 + len(name.encode()) + 4 + (20 if zip64 else 0)
    pad = -(archive.fp.tell() + header) % _ALIGNMENT
    info.extra = b"FB" + struct.pack("<H", pad) + b"Z" * pad
    with archive.open(info, "w", force_zip64=zip64) as record:
        record.write(data)
