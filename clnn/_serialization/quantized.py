"""Quantised tensors and packed weights in PyTorch's files. Packed weights are what PyTorch calls script objects: a class's name and a state of plain data."""

from clnn._serialization.files import SerializationError

STORAGES = {"QInt8Storage": "int8", "QUInt8Storage": "uint8", "QInt32Storage": "int32"}     # PyTorch's storage classes -> dtypes of the integers
SCHEMES = ("per_tensor_affine", "per_channel_affine", "per_channel_affine_float_qparams")
_CLASSES = {"LinearPackedParams": "quantized.LinearPackedParamsBase", "LinearPackedHalf": "quantized.LinearPackedParamsBase",
            "CellParams": "rnn.CellParamsBase"}


# -- writing --------------------------------------------------------------------------------------------------------------------------
def write_tensor(pickler, obj):
    """A quantised tensor: its integers, and what they mean."""
    key, kind, numel = pickler._storage_of(obj.part)
    pickler._global("torch._utils", "_rebuild_qtensor")
    pickler.out += b"(("
    pickler._save("storage")
    pickler._global("torch", {"CharStorage": "QInt8Storage", "ByteStorage": "QUInt8Storage", "IntStorage": "QInt32Storage"}[kind])
    pickler._save(key)
    pickler._save("cpu")
    pickler._int(numel)
    pickler.out += pickler.reference_end
    pickler._int(obj.part.storage_offset())
    pickler._plain_tuple(tuple(obj.shape))
    pickler._plain_tuple(tuple(obj.part.stride()))
    q = obj.quantizer
    pickler._plain_tuple((q.scheme, q.scale, q.zero_point) if hasattr(q, "scale") else (q.scheme, q.scales, q.zero_points, q.axis))
    pickler._bool(False)
    pickler._global("collections", "OrderedDict")
    pickler.out += b")RtR"
    pickler._memoize(obj)


def write_scheme(pickler, obj):
    """The name of a scheme."""
    pickler._global("torch", str(obj).rpartition(".")[2])


def write_packed(pickler, obj):
    """Packed weights, as PyTorch writes its own."""
    pickler._global("torch", "ScriptObject")
    pickler.out += b")\x81"
    pickler._memoize(obj)
    name = type(obj).__name__
    if name == "CellParams":
        half = type(obj.packed_ih).__name__ == "LinearPackedHalf"
        both = [obj.packed_ih, obj.packed_hh]
        biases = [] if half else [b for b in (p.unpack()[1] for p in both) if b is not None]
        state = ("quantized_fp16" if half else "quantized_dynamic", biases, [], [] if half else [int(obj.reduce_range)], both)
    else:
        state = obj.unpack()
    pickler._plain_tuple((state, "__torch__.torch.classes." + _CLASSES[name]))
    pickler.out += b"b"


def writer_of(obj):
    """The function that writes ``obj``, for what this file knows; else None."""
    kind = type(obj)
    if kind.__name__ == "qscheme":
        return write_scheme
    return write_packed if kind.__module__.startswith("clnn._quantized.") and kind.__name__ in _CLASSES else None


# -- reading --------------------------------------------------------------------------------------------------------------------------
class ScriptObject:
    """What a file calls so, until its state tells which packed weights it is."""


def rebuild_tensor(reader):
    """The function that makes a quantised tensor of what a file holds."""
    def rebuild(storage, offset, size, stride, parameters, requires_grad, hooks=None):
        import clnn
        from clnn._quantized.schemes import INTEGERS, PerChannel, PerTensor
        from clnn._quantized.tensor import make
        part = reader(storage, offset, size, stride, False)
        dtype = {row: q for q, row in INTEGERS.items()}.get(part.dtype)
        scheme, *rest = parameters
        if dtype is None or type(parameters) is not tuple:
            raise TypeError("a quantised tensor of other parts")
        if scheme == clnn.per_tensor_affine:
            scale, zero_point = rest
            return make(part, dtype, PerTensor(float(scale), int(zero_point)))
        scales, zero_points, axis = rest
        if type(scales) is not clnn.Tensor or type(zero_points) is not clnn.Tensor or scales.shape != zero_points.shape != (size[axis],):
            raise SerializationError("load: the scales of a quantised tensor do not fit it")
        return make(part, dtype, PerChannel(scales, zero_points, int(axis), zero_points.dtype.is_floating_point))
    return rebuild


def set_state(obj, state):
    """Make of a script object the packed weights that its state tells."""
    import clnn
    from clnn._quantized.products import LinearPackedHalf, LinearPackedParams
    from clnn._quantized.recurrent import CellParams
    parts, name = state
    kind = str(name).rpartition(".")[2]
    if kind == "LinearPackedParamsBase" and isinstance(parts, tuple) and isinstance(parts[0], clnn.Tensor):
        obj.__class__ = LinearPackedParams if parts[0].is_quantized else LinearPackedHalf
        obj.__init__(parts[0], parts[1])
    elif kind == "CellParamsBase" and isinstance(parts, tuple) and len(parts) == 5 and all(isinstance(p, (LinearPackedParams, LinearPackedHalf)) for p in parts[4]):
        obj.__class__ = CellParams
        obj.__init__(*parts[4], bool(parts[3] and parts[3][0]))
    else:
        raise SerializationError(f"load: the file holds a {name}, which clnn does not have")
    return obj
