"""Saving and loading checkpoints: PyTorch's zip format and safetensors.

`clnn.load` never runs code of a file: it understands tensors and plain containers, modules whose classes the program has imported
(`weights_only=False`), and refuses everything else but what the program vouched for.
"""

import contextlib
import io
import os
import re
from typing import Any

from clnn._serialization.allowed import refused_globals, trust
from clnn._serialization.files import SerializationError, atomic_write, is_path
from clnn._serialization.safetensors import INDEX_SUFFIX, load_safetensors, load_shards, save_safetensors
from clnn._serialization.settings import (LoadEndianness, get_crc32_options, get_default_load_endianness, get_default_mmap_options,  # noqa: F401
                                          location_tag, set_crc32_options, set_default_load_endianness, set_default_mmap_options, skip_data)
from clnn._serialization.unpickle import trusted
from clnn._serialization.zipread import check_format, resolve_location
from clnn._serialization.zipwrite import write_zip

__all__ = ["save", "load", "save_safetensors", "load_safetensors", "SerializationError"]
DEFAULT_PROTOCOL = 2              # of pickles, as `save` takes it
MAP_LOCATION = Any                # what `map_location` may be, for annotations


class SourceChangeWarning(Warning):
    """Programs filter it: PyTorch warns with it when the code of a saved module's class has changed. Nothing warns here."""


def save(obj, f, pickle_module=None, pickle_protocol=2, _use_new_zipfile_serialization=True):
    """Write an object to a file in the format of `torch.save`, so that PyTorch can read it too.

    Args:
        obj: tensors, parameters, numbers, text, bytes, None, dtypes, devices, sizes, NumPy's numbers and arrays, and dicts, lists,
            tuples and sets of them. Objects of other classes are written, too, with a warning: `clnn.load` wants them
            named by :func:`add_safe_globals`.
        f: file name, or a binary file open for writing. A name that ends in `.safetensors` writes that format (a flat dict of
            tensors). A file of that name is replaced only when the new one is complete.
        pickle_module, pickle_protocol: accepted as in PyTorch.
        _use_new_zipfile_serialization: False writes PyTorch's format before version 1.6.

    Tensors that share memory share it again after loading; views and strides are kept.

    Raises:
        SerializationError: `obj` holds a function, a module or what cannot be pickled; the message names the place.

    Example::

        >>> import io
        >>> file = io.BytesIO()  # or a name, such as "checkpoint.pt"
        >>> clnn.save({"weight": clnn.ones(2), "epoch": 3}, file)
        >>> _ = file.seek(0)
        >>> clnn.load(file)
        {'weight': tensor([1., 1.]), 'epoch': 3}
    """
    if not is_path(f):
        if not hasattr(f, "write"):
            raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
        _write(obj, f, "archive", _use_new_zipfile_serialization)
        return
    name = os.fsdecode(f)
    if name.endswith((".safetensors", INDEX_SUFFIX)):
        save_safetensors(obj, name)
        return
    root = re.sub(r"[^\w.-]", "_", os.path.basename(name).rpartition(".")[0] or os.path.basename(name)) or "archive"
    with atomic_write(name) as file:
        _write(obj, file, root, _use_new_zipfile_serialization)


def _write(obj, file, root, zipped):
    if zipped:
        return write_zip(obj, file, root)
    from clnn._serialization.sequence import write_sequence
    return write_sequence(obj, file)


def load(f, map_location=None, pickle_module=None, *, weights_only=None, mmap=None, **pickle_load_args):
    """Read what `clnn.save` or `torch.save` wrote, a `.safetensors` file, or the index of a
    sharded checkpoint (`.safetensors.index.json`, `.bin.index.json`).

    Args:
        f: file name, or a binary file open for reading.
        map_location: where tensors go: a device or its name, a dict from saved to wanted names, or a function
            `(storage, saved name) -> device name or None`. The default device if None.
        weights_only: False also takes whole modules, optimizers, data sets and distributions whose classes the program has imported: their attributes are set,
            nothing of the file is run.
            Else, and for all other objects, loading is restricted to tensors, plain containers and what :func:`add_safe_globals` names.
        pickle_module, mmap: accepted and without effect.

    Raises:
        SerializationError: the file is damaged, has another format, or refers to classes and functions.
        FileNotFoundError: there is no such file.

    Example::

        >>> import io
        >>> file = io.BytesIO()
        >>> clnn.save(clnn.arange(3), file)
        >>> _ = file.seek(0)
        >>> clnn.load(file, map_location=clnn.get_default_device())
        tensor([0, 1, 2])
    """
    if not is_path(f):
        if not hasattr(f, "read"):
            raise AttributeError(f"'{type(f).__name__}' object has no attribute 'read': load takes a file name or a file open for reading")
        if mmap:
            raise ValueError("f must be a file path in order to use the mmap argument")
        if not (hasattr(f, "seek") and (not hasattr(f, "seekable") or f.seekable())):
            f = io.BytesIO(f.read())
        return _load_zip(f, map_location, "the file", weights_only is False)
    name = os.fsdecode(f)
    if name.endswith((".safetensors", INDEX_SUFFIX)):
        return load_safetensors(name, resolve_location(map_location, "cpu"))
    if name.endswith(".bin.index.json"):
        return load_shards(name, lambda shard: load(shard, map_location))[0]
    with open(name, "rb") as file:
        return _load_zip(file, map_location, name, weights_only is False)


def _load_zip(file, map_location, name, modules):
    start = file.tell()
    head = file.read(262)
    file.seek(start)
    if not isinstance(head, bytes):
        raise TypeError("load: the file is open in text mode; open it with 'rb'")
    if start:  # an object in the middle of a stream: zip offsets count from its own beginning
        file = io.BytesIO(file.read())
    if head[8:9] == b"{" and head[:4] != b"PK\x03\x04":  # safetensors under another name
        return load_safetensors(file, resolve_location(map_location, "cpu"))
    reader = check_format(head, head[257:262], name)
    return reader(file, map_location, name, modules).read()


def default_restore_location(storage, location):
    """For functions given as ``map_location``: where to put what was saved on ``location``, a name such as ``"cuda:0"``."""
    return location


def add_safe_globals(safe_globals):
    """Let :func:`load` make objects of these classes, and call these functions, where a file names them.

    Their code runs with what the file holds: vouch for what you know only.

    Args:
        safe_globals: classes and functions, or pairs of one and the full name that files have for it.

    Example::

        >>> import argparse, io
        >>> file = io.BytesIO()
        >>> with clnn.serialization.safe_globals([argparse.Namespace]):
        ...     clnn.save({"options": argparse.Namespace(depth=3), "w": clnn.ones(2)}, file)
        ...     _ = file.seek(0)
        ...     clnn.load(file)
        {'options': Namespace(depth=3), 'w': tensor([1., 1.])}
    """
    trust(safe_globals)


def get_safe_globals():
    """What :func:`add_safe_globals` was given."""
    return list({id(kind): kind for kind in trusted.values()}.values())


def get_unsafe_globals_in_checkpoint(f):
    """The full names of classes and functions in a file that :func:`load` would refuse.

    Example:
        >>> import argparse, io
        >>> file = io.BytesIO()
        >>> with clnn.serialization.safe_globals([argparse.Namespace]):
        ...     clnn.save(argparse.Namespace(depth=3), file)
        >>> clnn.serialization.get_unsafe_globals_in_checkpoint(file)
        ['argparse.Namespace']
    """
    return refused_globals(f)


def clear_safe_globals():
    """Trust nothing any more."""
    trusted.clear()


@contextlib.contextmanager
def safe_globals(safe_globals):
    """:func:`add_safe_globals` for the length of a block.

    Example:
        >>> import datetime
        >>> with clnn.serialization.safe_globals([datetime.date]):
        ...     print(len(clnn.serialization.get_safe_globals()))
        1
    """
    before = dict(trusted)
    trust(safe_globals)
    try:
        yield
    finally:
        trusted.clear()
        trusted.update(before)


def _is_zipfile(f) -> bool:
    """Whether a zip archive begins where the open file is; it stays there."""
    start = f.tell()
    head = f.read(4)
    f.seek(start)
    return head == b"PK\x03\x04"


def _maybe_decode_ascii(text) -> str:
    """Text, of keys that were bytes."""
    return text.decode("ascii") if isinstance(text, bytes) else text


def normalize_storage_type(storage_type):
    """The class of that name in the package itself."""
    import clnn
    return getattr(clnn, storage_type.__name__)
