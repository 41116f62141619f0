"""The closed list of names that a checkpoint may use, and what each stands for here."""

import builtins
import collections
import functools
import math
import pickletools
import zipfile

import numpy as np

from clnn._serialization import quantized
from clnn._serialization.files import SerializationError
from clnn._serialization.unpickle import Callable, trusted, trusts
from clnn._serialization.whole import written_name
from clnn._tensor.handle import RESERVED

STORAGES = {"FloatStorage": "float32", "DoubleStorage": "float64", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
            "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8",
            "BoolStorage": "bool", "ComplexFloatStorage": "complex64", "ComplexDoubleStorage": "complex128"}  # PyTorch's storage classes -> dtype names
STORAGE_OF = {dtype: name for name, dtype in STORAGES.items()}
UNTYPED = frozenset(("uint16", "uint32", "uint64"))  # dtypes without a storage class: their bytes are stored, and the dtype beside them
_DTYPE_NAMES = frozenset(STORAGES.values()) | UNTYPED | {"qint8", "quint8", "qint32"}
_ELSEWHERE = frozenset("complex32 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz quint4x2 quint2x4".split())  # dtypes of PyTorch that clnn has not
_DEVICES = {"cpu": "cpu", "meta": "meta", **dict.fromkeys(("gpu", "cuda", "hip", "xpu", "mps", "opencl"), "gpu")}
_FACTORIES = {"dict": dict, "list": list, "int": int, "float": float, "set": set}


class StorageType:
    """What a storage class stands for: the dtype of a storage's elements (None: untyped bytes)."""

    def __init__(self, dtype_name):
        self.dtype_name = dtype_name


class TensorType:
    """A tensor class as an argument of a rebuild function."""


class ArrayType:
    """``numpy.ndarray`` as an argument of NumPy's rebuild function."""


def allowed_globals(rebuild_tensor, rebuild_tensor_v3, rebuild_parameter):
    """The table `{"module.name": object}`; the arguments are the reader's own functions that make tensors."""
    table = {"torch." + name: StorageType(dtype) for name, dtype in STORAGES.items()}
    table.update({"torch." + name: StorageType(dtype) for name, dtype in quantized.STORAGES.items()})
    table["numpy.ndarray"] = ArrayType()
    table.update({"torch.storage.UntypedStorage": StorageType(None), "torch.Tensor": TensorType(), "torch.nn.parameter.Parameter": TensorType()})
    functions = {
        "collections.OrderedDict": _ordered_dict, "collections.Counter": _counter, "collections.defaultdict": _default_dict,
        "builtins.set": _make_set, "builtins.frozenset": _make_frozenset, "builtins.bytearray": _bytearray, "builtins.bytes": _no_bytes, "builtins.complex": _complex,
        "_codecs.encode": _encode, "torch.Size": _size, "torch.device": _device,
        "torch._utils._rebuild_tensor_v2": rebuild_tensor, "torch._utils._rebuild_tensor_v3": rebuild_tensor_v3,
        "torch._utils._rebuild_parameter": rebuild_parameter, "torch._utils._rebuild_parameter_with_state": rebuild_parameter,
        "torch._utils._rebuild_qtensor": quantized.rebuild_tensor(rebuild_tensor),
        "torch._tensor._rebuild_from_type_v2": _rebuild_from_type,
        "torch._utils._rebuild_meta_tensor_no_storage": _rebuild_meta,
        "torch._utils._rebuild_sparse_tensor": _rebuild_sparse_tensor, "torch.serialization._get_layout": _layout,
        "numpy.core.multiarray.scalar": _numpy_scalar, "numpy._core.multiarray.scalar": _numpy_scalar, "numpy.dtype": NumpyDtype,
        "numpy.core.multiarray._reconstruct": _numpy_array, "numpy._core.multiarray._reconstruct": _numpy_array,
    }
    functions.update((f"torch.nn.parameter.{name}", functools.partial(_without_shape, name)) for name in ("UninitializedParameter", "UninitializedBuffer"))
    table.update((name, Callable(name, function)) for name, function in functions.items())
    table["torch.ScriptObject"] = Callable("torch.ScriptObject", None, quantized.ScriptObject)
    return table


def trust(objects):
    """Let files name these classes and functions: an object, or a pair of an object and the name that files have for it."""
    for item in objects:
        if isinstance(item, tuple):
            trusted[item[1]] = item[0]
            continue
        for module in (item.__module__, written_name(item)):           # files have PyTorch's names for this library's
            trusted[f"{module}.{item.__qualname__}"] = item


def _vouched(own):
    return Callable(own.__qualname__, own, functools.partial(own.__new__, own), own) if isinstance(own, type) else Callable(own.__qualname__, own)


def member(owner, name):
    """How pickles of protocol 2 name a class within a class."""
    found = getattr(owner, _expect(name, str), None) if trusts(owner) else None
    if found is None or not trusts(found):
        raise SerializationError(f"load: the file refers to {name!r} of {owner}, which the program did not vouch for")
    return _vouched(found)


def set_state(obj, state):
    """What a standard unpickler does with the state of an object, for instances of trusted classes."""
    if hasattr(obj, "__setstate__"):
        obj.__setstate__(state)
        return obj
    state, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    if state:
        obj.__dict__.update(state)
    for key, value in (slots or {}).items():
        setattr(obj, key, value)
    return obj


def find_global(table, module, name):
    """Resolve one name of a pickle, or raise an error that says what to do about it."""
    if module == "__builtin__":
        module = "builtins"
    found = table.get(f"{module}.{name}")
    if found is not None:
        return found
    if module == "builtins" and name in _FACTORIES:
        return Callable(name, _FACTORIES[name]) if name == "set" else _Factory(_FACTORIES[name])
    if (own := trusted.get(f"{module}.{name}")) is not None:
        return _vouched(own)
    if (module, name) == ("builtins", "getattr") and trusted:
        return Callable(name, member)
    if module == "torch" and (name in _DTYPE_NAMES or name in quantized.SCHEMES):
        return dtype_of(name)
    if module == "torch" and (name in _ELSEWHERE or name.endswith("Storage")):
        raise SerializationError(f"load: the file holds data of type torch.{name}, which clnn does not have; convert it in PyTorch before saving")
    raise SerializationError(
        f"load: Weights only load failed. The file refers to {module}.{name}. clnn.load reads tensors and plain containers only and never imports or runs code of a "
        "file. If it holds a whole module, optimizer or data set, weights_only=False reads it once the program has imported its classes, or save its state_dict(); "
        "vouch for other classes with clnn.serialization.add_safe_globals, if you trust their code and the file")


class _Factory:
    """A type that may only serve as the factory of a defaultdict."""

    def __init__(self, kind):
        self.kind = kind


def dtype_of(name):
    """The clnn dtype, or scheme, called `name`."""
    import clnn
    return getattr(clnn, name)


def _ordered_dict(items=()):
    return collections.OrderedDict(_expect(items, list, tuple))


def _counter(items=()):
    return collections.Counter(_expect(items, dict, tuple))


def _default_dict(factory=None):
    if type(factory) is Callable and factory.name == "builtins.set":
        return collections.defaultdict(set)
    if isinstance(factory, type) and factory in _FACTORIES.values():
        return collections.defaultdict(factory)
    return collections.defaultdict(None if factory is None else _expect(factory, _Factory).kind)


def _make_set(items=()):
    return set(_expect(items, list, tuple))


def _make_frozenset(items=()):
    return frozenset(_expect(items, list, tuple))


def _bytearray(data=b"", encoding=None):
    return bytearray(data, encoding) if type(data) is str and encoding in ("latin-1", "latin1") else bytearray(_expect(data, bytes, list))


def _no_bytes():
    """How Python writes ``b""`` for protocol 2."""
    return b""


def _complex(real=0.0, imag=0.0):
    return builtins.complex(_expect(real, float, int), _expect(imag, float, int))


def _encode(text, encoding="latin1"):
    if encoding not in ("latin1", "latin-1"):
        raise TypeError(f"bytes stored with the encoding {encoding!r}")
    return _expect(text, str).encode("latin1")


def _size(sizes=()):
    import clnn
    return clnn.Size(_expect(sizes, tuple, list))


def _device(kind, index=None):
    import clnn
    name, _, number = _expect(kind, str).partition(":")
    name = _DEVICES.get(name)
    if name is None or (number and not number.isdecimal()):
        raise SerializationError(f"load: the file names the device {kind!r}, which clnn does not know")
    index = int(number) if number else index
    return clnn.device(name if index is None else f"{name}:{_expect(index, int)}")


def _rebuild_from_type(function, kind, arguments, state):
    """A tensor with a program's own attributes."""
    _expect(kind, TensorType)
    return with_attributes(_expect(function, Callable).function(*_expect(arguments, tuple)), state)


def with_attributes(tensor, state):
    """``tensor`` with the attributes of ``state``, but for names that the tape has uses for."""
    if type(state) is dict:
        tensor._all.update({k: v for k, v in state.items() if type(k) is str and k not in RESERVED})
    return tensor


def _without_shape(kind, requires_grad, *place):
    import clnn
    return getattr(clnn.nn, kind)(requires_grad, *place)


def _layout(name):
    import clnn
    known = {"torch." + k: getattr(clnn, k) for k in ("strided", "sparse_coo", "sparse_csr", "sparse_csc")}
    if _expect(name, str) not in known:
        raise SerializationError(f"load: the file holds a tensor of layout {name}, which clnn does not have; convert it in PyTorch before saving")
    return known[name]


def _rebuild_meta(dtype, size, stride, requires_grad):
    """A tensor without memory."""
    import clnn
    size, stride = _expect(size, tuple), _expect(stride, tuple)
    if not isinstance(dtype, clnn.dtype) or len(size) != len(stride) or not all(type(n) is int and n >= 0 for n in (*size, *stride)):
        raise TypeError("a tensor without memory of an impossible geometry")
    return clnn.empty_strided(size, stride, dtype=dtype, device="meta").requires_grad_(requires_grad is True)


def _rebuild_sparse_tensor(kind, data):
    """A sparse tensor from its parts, which must fit: ``(indices, values, size[, is_coalesced])``, or two index tensors of a compressed layout."""
    import clnn
    parts = _expect(data, tuple)
    places = 1 if kind == clnn.sparse_coo else 2
    if kind == clnn.strided or len(parts) not in ((3, 4) if places == 1 else (4,)) or any(type(t) is not clnn.Tensor for t in parts[:places + 1]):
        raise TypeError("a sparse tensor of other parts")
    try:
        if places == 1:
            flag = parts[3] if len(parts) == 4 else None
            return clnn.sparse_coo_tensor(*parts[:3], check_invariants=True, is_coalesced=flag if type(flag) is bool else None)
        return clnn.sparse_compressed_tensor(*parts, layout=kind, check_invariants=True)
    except (RuntimeError, IndexError) as error:
        raise SerializationError(f"load: a sparse tensor of the file does not fit together ({error})") from error


class NumpyDtype:
    """The dtype of a stored NumPy scalar, until its byte order is known."""

    def __init__(self, code, align=False, copy=True):
        self.dtype = np.dtype(_expect(code, str))
        if self.dtype.kind not in "biuf":
            raise TypeError(f"a NumPy value of dtype {self.dtype}")

    def set_state(self, state):
        """Apply the byte order of the pickled state tuple."""
        order = _expect(state, tuple)[1]
        self.dtype = self.dtype.newbyteorder(order if order in ("<", ">") else "=")
        return self


def _numpy_scalar(dtype, data):
    dtype = _expect(dtype, NumpyDtype).dtype
    return np.frombuffer(_expect(data, bytes), dtype, count=1).astype(dtype.newbyteorder("="))[0]


def _numpy_array(kind, shape, code):
    """An empty array, whose contents :func:`fill_array` sets."""
    _expect(kind, ArrayType)
    return np.empty(0, np.uint8)


def fill_array(array, state):
    """Give an empty array the shape, dtype and bytes of a pickled state tuple."""
    _, shape, dtype, fortran, data = _expect(state, tuple)
    dtype, shape = _expect(dtype, NumpyDtype).dtype, tuple(_expect(n, int) for n in _expect(shape, tuple))
    if array.size or min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(_expect(data, bytes)):
        raise TypeError(f"a NumPy array of shape {shape} and {dtype} from {len(data)} bytes")
    array.__setstate__((1, shape, dtype, bool(fortran), data))
    return array


def _expect(value, *types):
    if type(value) not in types:
        raise TypeError(f"expected {' or '.join(t.__name__ for t in types)}, found {type(value).__name__}")
    return value


def refused_globals(file):
    """The names in a zip file's pickle that are not allowed, in order; nothing is loaded."""
    if not zipfile.is_zipfile(file):
        raise ValueError("Expected input to be a checkpoint returned by clnn.save or torch.save")
    with zipfile.ZipFile(file) as archive:
        name = next((n for n in archive.namelist() if n.endswith("data.pkl")), None)
        if name is None:
            raise SerializationError("load: the file is not a checkpoint")
        data = archive.read(name)
    table, found, texts = allowed_globals(None, None, None), [], []
    for opcode, argument, _ in pickletools.genops(data):
        if isinstance(argument, str) and opcode.name != "GLOBAL":
            texts.append(argument)
        if opcode.name in ("GLOBAL", "STACK_GLOBAL"):
            module, _, name = argument.partition(" ") if opcode.name == "GLOBAL" else (texts[-2], "", texts[-1])
            try:
                find_global(table, module, name)
            except SerializationError:
                found.append(f"{module}.{name}")
    return list(dict.fromkeys(found))
