"""The safetensors format: a JSON header, then the raw bytes of each tensor. Single files and sharded sets."""

import json
import math
import os
import re
import struct

import numpy as np

from clnn._serialization.files import SerializationError, atomic_write, is_path
from clnn._serialization.zipread import numpy_dtype
from clnn._tensor.interop import to_numpy
from clnn._tensor.tensor import Tensor

_CODES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32", "I16": "int16",
          "I8": "int8", "U8": "uint8", "BOOL": "bool", "C64": "complex64", "U16": "uint16", "U32": "uint32", "U64": "uint64"}
_CODE_OF = {name: code for code, name in _CODES.items()}
_MAX_HEADER = 100_000_000  # the format's own limit
INDEX_SUFFIX = ".safetensors.index.json"


def save_safetensors(tensors, path, metadata=None, max_shard_size=None):
    """Write a flat dict of tensors as .safetensors.

    Args:
        tensors: `{name: tensor}`. Tensors that share memory are written separately.
        path: file name, or an open binary file. A name that ends in `.safetensors.index.json` writes a sharded set.
        metadata: dict of str to str, kept in the file.
        max_shard_size: split into files of at most this many bytes (a number, or text such as "5GB") beside an index file.

    Example::

        >>> import io
        >>> file = io.BytesIO()  # or a name, such as "model.safetensors"
        >>> clnn.serialization.save_safetensors({"weight": clnn.ones(2)}, file, metadata={"epoch": "3"})
        >>> clnn.serialization.load_safetensors(file, return_metadata=True)
        ({'weight': tensor([1., 1.])}, {'epoch': '3'})
    """
    _check_input(tensors, metadata)
    if is_path(path) and (max_shard_size is not None or os.fsdecode(path).endswith(INDEX_SUFFIX)):
        _save_shards(tensors, os.fsdecode(path), metadata, _bytes_of(max_shard_size or "5GB"))
    elif is_path(path):
        with atomic_write(path) as file:
            _write(file, tensors, metadata)
    else:
        _write(path, tensors, metadata)


def _check_input(tensors, metadata):
    if not isinstance(tensors, dict):
        raise SerializationError(f"save_safetensors: expected a dict of tensors, got {type(tensors).__name__}")
    for name, t in tensors.items():
        if not isinstance(name, str) or name == "__metadata__":
            raise SerializationError(f"save_safetensors: {name!r} cannot be the name of a tensor")
        if not isinstance(t, Tensor):
            raise SerializationError(f"save_safetensors: the format holds a flat dict of tensors only; {name!r} is a {type(t).__name__}")
    for key, value in (metadata or {}).items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise SerializationError(f"save_safetensors: metadata maps text to text; got {key!r}: {value!r}")


def _write(file, tensors, metadata):
    header, offset = ({"__metadata__": dict(metadata)} if metadata else {}), 0
    order = sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0]))  # wide elements first keeps all aligned
    for name, t in order:
        code = _CODE_OF.get(str(t.dtype).rpartition(".")[2])
        if code is None:
            raise SerializationError(f"save_safetensors: {name!r} has dtype {t.dtype}, which cannot be stored")
        end = offset + t.numel() * t.element_size()
        header[name] = {"dtype": code, "shape": list(t.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    file.write(struct.pack("<Q", len(text)) + text)
    for _, t in order:
        if t.numel():
            array = np.ascontiguousarray(to_numpy(t.detach())).reshape(-1)
            file.write(memoryview(array.view(np.uint8)))


def _bytes_of(size):
    if isinstance(size, int):
        return size
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?", size.strip(), re.IGNORECASE)
    if not match:
        raise ValueError(f"save_safetensors: max_shard_size {size!r} is neither a number of bytes nor like '5GB'")
    step = 1024 if match[3] else 1000
    return int(float(match[1]) * step ** " KMGT".index(match[2].upper() or " "))


def _save_shards(tensors, path, metadata, limit):
    stem = path[:-len(INDEX_SUFFIX)] if path.endswith(INDEX_SUFFIX) else path.removesuffix(".safetensors")
    shards, room = [{}], limit
    for name, t in tensors.items():
        size = t.numel() * t.element_size()
        if shards[-1] and size > room:
            shards.append({})
            room = limit
        shards[-1][name] = t
        room -= size
    weight_map = {}
    for i, shard in enumerate(shards):
        file_name = f"{stem}-{i + 1:05d}-of-{len(shards):05d}.safetensors"
        with atomic_write(file_name) as file:
            _write(file, shard, metadata)
        weight_map.update((name, os.path.basename(file_name)) for name in shard)
    total = sum(t.numel() * t.element_size() for t in tensors.values())
    with atomic_write(stem + INDEX_SUFFIX) as file:  # last: the index never names a file that is not there
        file.write(json.dumps({"metadata": {"total_size": total}, "weight_map": weight_map}, indent=2, sort_keys=True).encode() + b"\n")


def load_safetensors(path, device=None, return_metadata=False):
    """Read a .safetensors file, or a sharded set by its `.safetensors.index.json`, into a dict of tensors.

    Args:
        path: file name, or an open binary file. device: where the tensors go; the default device if None.
        return_metadata: return `(tensors, metadata)`.

    Raises:
        SerializationError: the file is damaged, cut off, or names files outside its folder.
    """
    if is_path(path) and os.fsdecode(path).endswith(".json"):
        tensors, metadata = _load_shards(os.fsdecode(path), device)
    elif is_path(path):
        with open(path, "rb") as file:
            tensors, metadata = _read(file, device, os.fsdecode(path))
    else:
        tensors, metadata = _read(path, device, "the file")
    return (tensors, metadata) if return_metadata else tensors


def _load_shards(path, device):
    def read(shard):
        with open(shard, "rb") as file:
            return _read(file, device, os.path.basename(shard))[0]
    return load_shards(path, read)


def load_shards(path, read):
    """Read a sharded checkpoint by its index file; `read(path)` gives the dict of one shard. Returns (tensors, metadata)."""
    try:
        with open(path, encoding="utf-8") as file:
            index = json.load(file)
        weight_map = dict(index["weight_map"])
        names = sorted(set(weight_map.values()))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise SerializationError(f"load: {path} is not the index of a sharded checkpoint ({error})") from error
    tensors = {}
    for name in names:
        if not isinstance(name, str) or os.path.basename(name) != name or name in ("", ".", ".."):
            raise SerializationError(f"load: {path} names {name!r}, which is not a file of its own folder")
        shard = read(os.path.join(os.path.dirname(path), name))
        tensors.update((key, t) for key, t in shard.items() if weight_map.get(key) == name)
    missing = sorted(set(weight_map) - set(tensors))
    if missing:
        raise SerializationError(f"load: tensors that {path} lists are in no shard: {', '.join(missing[:5])}")
    return {key: tensors[key] for key in weight_map}, index.get("metadata") or {}


def _no_duplicates(pairs):
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("a name comes twice")
    return out


def _read_header(file, name):
    """(header dict, position of the data, number of data bytes)."""
    file.seek(0, os.SEEK_END)
    total = file.tell()
    file.seek(0)
    head = file.read(8)
    length = struct.unpack("<Q", head)[0] if len(head) == 8 else 0
    if not 2 <= length <= min(_MAX_HEADER, total - 8):
        raise SerializationError(f"load: {name} is not a safetensors file or is cut off (header of {length} bytes in a file of {total})")
    try:
        header = json.loads(file.read(length).decode("utf-8"), object_pairs_hook=_no_duplicates)
        if not isinstance(header, dict):
            raise ValueError("it is not a dict")
    except (ValueError, RecursionError) as error:
        raise SerializationError(f"load: the header of {name} is damaged ({error})") from error
    return header, 8 + length, total - 8 - length


def _entries(header, data_bytes, name):
    """Checked (tensor name, dtype name, shape, begin, end), in file order; together they must cover the data exactly."""
    out = []
    for key, entry in header.items():
        try:
            code, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
            whole = isinstance(shape, list) and all(type(n) is int and n >= 0 for n in (*shape, begin, end))
        except (KeyError, TypeError, ValueError) as error:
            raise SerializationError(f"load: the header of {name} describes {key!r} wrongly") from error
        if code not in _CODES:
            raise SerializationError(f"load: {key!r} of {name} has dtype {code}, which clnn does not have")
        if not whole or end - begin != math.prod(shape) * numpy_dtype(_CODES[code]).itemsize:
            raise SerializationError(f"load: {key!r} of {name} has shape {shape} and bytes {begin}..{end}, which do not fit")
        out.append((key, _CODES[code], shape, begin, end))
    position = 0
    for key, _, _, begin, end in sorted(out, key=lambda e: (e[3], e[4])):
        if begin != position:
            raise SerializationError(f"load: {key!r} of {name} begins at byte {begin}, expected {position}")
        position = end
    if position != data_bytes:
        raise SerializationError(f"load: {name} holds {data_bytes} bytes of data, its header describes {position}: it is damaged or cut off")
    return out


def _read(file, device, name):
    import clnn
    header, start, data_bytes = _read_header(file, name)
    metadata = header.pop("__metadata__", None) or {}
    tensors = {}
    for key, dtype_name, shape, begin, end in _entries(header, data_bytes, name):
        file.seek(start + begin)
        data = file.read(end - begin)
        if len(data) != end - begin:
            raise SerializationError(f"load: {name} is cut off")
        tensors[key] = clnn.tensor(np.frombuffer(data, numpy_dtype(dtype_name)).reshape(shape), device=device)
    return tensors, metadata
