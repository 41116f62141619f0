"""Built kernels on disk, and the lock between processes that share it.

An entry is one file: magic, checksum, the list of variants it holds, the driver's binary. Most drivers finish compiling in the
build. PoCL compiles once more per kernel, local size and grid class at the first launch, so its entries are saved again after
each such launch; loaded whole they save 50 ms per kernel and process.
"""
from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
import tempfile
import threading
import zlib
from pathlib import Path

from ..core.config import cache_dir, config

MAGIC = b"clnn-bin2"
_LIMIT = 1 << 30  # bytes; beyond it the oldest entries go
_trimmed = False


def entry_path(device, source: str) -> Path | None:
    """Where the binary of a source is kept for this device and driver; None where nothing is kept."""
    if config.no_cache or not device.caches_binaries:
        return None
    key = "\0".join([source, " ".join(device.build_options), device.platform_name, device.platform_version, device.name,
                     device.driver_version])
    digest = hashlib.sha256(key.encode()).hexdigest()
    return cache_dir("kernels", digest[:2]) / (digest + ".bin")


def read(path) -> tuple[bytes, set] | None:
    """(binary, variants), or None where there is none or it is damaged (a damaged file is removed, so it is built again)."""
    if path is None:
        return None
    try:
        blob = path.read_bytes()
    except OSError:
        return None
    head = len(MAGIC) + 8
    if blob.startswith(MAGIC) and len(blob) > head:
        crc, size = struct.unpack("<II", blob[len(MAGIC):head])
        if zlib.crc32(blob[head:]) == crc:
            return blob[head + size:], set(json.loads(blob[head:head + size]))
    discard(path)
    return None


def write(path, binary: bytes, variants=()) -> None:
    """Whole or not at all: a temporary name, fsync, rename. A full disk only means that it is built again next time."""
    names = json.dumps(sorted(variants)).encode()
    body = names + binary
    with contextlib.suppress(OSError):
        handle, temp = tempfile.mkstemp(dir=path.parent, prefix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(MAGIC + struct.pack("<II", zlib.crc32(body), len(names)) + body)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temp, path)
        except BaseException:
            discard(temp)
            raise
        _trim_once()


def discard(path) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def _trim_once():
    """Keep the folder bounded: the first write of a process removes the entries that were written longest ago."""
    global _trimmed
    if _trimmed:
        return
    _trimmed = True
    found = []
    for path in cache_dir("kernels").rglob("*.bin"):
        with contextlib.suppress(OSError):
            stat = path.stat()
            found.append((stat.st_mtime, stat.st_size, path))
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
