"""Built programs and rendered templates on disk, and the lock between processes.

An entry is one file: magic, checksum, a table (JSON), a payload. A program's payload is the driver's binary; with PoCL, which has
a cache of its own, it is the text that finds the binary there. A source that was built together with others has a small entry that
names the common program and what its kernels are called in it. Entries are not synced: the checksum finds a torn file, and it is built again.
"""
from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
import tempfile
import threading
import time
import zlib
from pathlib import Path
from typing import NamedTuple

from ..core.config import cache_dir, config

MAGIC = b"clnn-bin3"
_LIMIT = 1 << 30  # bytes; beyond it the oldest entries go
_INTERVAL = 3600  # seconds between two looks at the whole folder, which may hold very many entries
_trimmed = False


class Stored(NamedTuple):
    """A program on disk."""

    digest: str
    payload: bytes
    path: Path


def digest_of(device, source: str) -> str:
    """What a source is called on disk for this device and driver."""
    key = "\0".join([source, " ".join(device.build_options), device.platform_name, device.platform_version, device.name,
                     device.driver_version, *["marked"] * device.marks_kernels])
    return hashlib.sha256(key.encode()).hexdigest()


def path_of(digest: str) -> Path:
    return cache_dir("kernels", digest[:2]) / (digest + ".bin")


def find(device, source: str) -> tuple[Stored, dict, Path] | None:
    """(the program that holds the source, the names of its kernels there, the source's own entry), or None."""
    if config.no_cache or not device.caches_binaries:
        return None
    digest = digest_of(device, source)
    path = path_of(digest)
    entry = read(path)
    if entry is None:
        return None
    table, payload = entry
    if "program" not in table:
        return Stored(digest, payload, path), {}, path
    shared = path_of(table["program"])
    entry = read(shared)
    if entry is None:
        discard(path)
        return None
    return Stored(table["program"], entry[1], shared), table["names"], path


def keep(device, built, source: str, programs) -> None:
    """Store what was built from ``source``; ``programs`` are the sources that it holds."""
    if config.no_cache or not device.caches_binaries:
        return
    import pyopencl as cl
    digest = digest_of(device, source)
    try:
        payload = source.encode() if device.driver_caches else built.get_info(cl.program_info.BINARIES)[0]
    except cl.Error:
        return
    device.loaded[digest] = built
    write(path_of(digest), {}, payload)
    for p in programs:
        if p.source != source:
            write(path_of(digest_of(device, p.source)), {"program": digest, "names": p.names}, b"")
    _trim_once()


def text(key: str, make) -> str:
    """``make()``, or what it once gave for the same ``key``, which holds all that it depends on."""
    if config.no_cache:
        return make()
    path = path_of(hashlib.sha256(key.encode()).hexdigest())
    entry = read(path)
    if entry is None:
        made = make()
        write(path, {}, made.encode())
        return made
    return entry[1].decode()


def read(path) -> tuple[dict, bytes] | None:
    """(table, payload), or None where there is none or it is damaged (a damaged file is removed, so it is built again)."""
    try:
        blob = path.read_bytes()
    except OSError:
        return None
    head = len(MAGIC) + 8
    if blob.startswith(MAGIC) and len(blob) > head:
        crc, size = struct.unpack("<II", blob[len(MAGIC):head])
        if zlib.crc32(blob[head:]) == crc:
            return json.loads(blob[head:head + size]), blob[head + size:]
    discard(path)
    return None


def write(path, table: dict, payload: bytes) -> None:
    """Whole or not at all, by a temporary name. A full disk only means that it is built again next time."""
    text = json.dumps(table).encode()
    body = text + payload
    with contextlib.suppress(OSError):
        handle, temp = tempfile.mkstemp(dir=path.parent, prefix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(MAGIC + struct.pack("<II", zlib.crc32(body), len(text)) + body)
            os.replace(temp, path)
        except BaseException:
            discard(temp)
            raise


def discard(path) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def _trim_once():
    """Keep the folder bounded: the first write of a process removes the entries that were written longest ago, unless another just did."""
    global _trimmed
    if _trimmed:
        return
    _trimmed = True
    root = cache_dir("kernels")
    stamp, found = root / "trimmed", []
    with contextlib.suppress(OSError):
        if 0 <= time.time() - stamp.stat().st_mtime < _INTERVAL:
            return
    with contextlib.suppress(OSError):
        stamp.touch()
        for folder in os.scandir(root):
            for entry in os.scandir(folder) if folder.is_dir() else ():
                if entry.name.endswith(".bin"):
                    with contextlib.suppress(OSError):
                        stat = entry.stat()
                        found.append((stat.st_mtime, stat.st_size, entry.path))
    excess = sum(size for _, size, _ in found) - _LIMIT
    for _, size, path in sorted(found):
        if excess <= 0:
            break
        discard(path)
        excess -= size


class FileLock:
    """An advisory lock between processes (and threads); it does nothing where the system has no ``fcntl``."""

    def __init__(self, name: str):
        self._name, self._file, self._depth = name, None, 0
        self._threads = threading.RLock()

    def __enter__(self):
        self._threads.acquire()
        self._depth += 1
        if self._depth == 1:
            try:
                import fcntl
                self._file = open(cache_dir() / self._name, "a")
                fcntl.flock(self._file, fcntl.LOCK_EX)
            except (ImportError, OSError):
                pass
        return self

    def __exit__(self, *exc):
        self._depth -= 1
        if self._depth == 0 and self._file is not None:
            self._file.close()  # closing releases the lock, also when the process dies
            self._file = None
        self._threads.release()
