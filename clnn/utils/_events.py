"""TensorBoard's event files: records with checksums of messages in the protocol buffers' encoding, written without either package."""
from __future__ import annotations

import itertools
import os
import socket
import struct
import time
import zlib

import numpy as np

_numbers = itertools.count()


def _varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def field(number, value):
    """One field of a message: an int, a float (a double there), a NumPy float32 (a float), text, bytes (also a message's), or an array, packed."""
    if isinstance(value, np.float32):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, float):
        return _varint(number << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, (int, np.integer)):
        return _varint(number << 3) + _varint(int(value))
    data = value.encode() if isinstance(value, str) else value.tobytes() if isinstance(value, np.ndarray) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def message(**fields):
    """A message of fields by ``_number=value``; None is left out, a list repeats a field."""
    out = b""
    for name, value in fields.items():
        for one in value if isinstance(value, list) else [value]:
            out += b"" if one is None else field(int(name[1:]), one)
    return out


def tensor_of_bytes(data, shape=(1,)):
    """A TensorProto of one text or message."""
    return message(_1=7, _2=message(_2=[message(_1=n) for n in shape]), _8=data)


def tensor_of_floats(array):
    """A TensorProto of float32 numbers."""
    return message(_1=1, _2=message(_2=[message(_1=n) for n in array.shape]), _5=np.ascontiguousarray(array, "<f4"))


def metadata(plugin, content=b""):
    """A SummaryMetadata: the plugin that shows the value."""
    return message(_1=message(_1=plugin, _2=content))


def png(pixels):
    """The bytes of an image file of ``(height, width, channels)`` bytes; 1, 3 or 4 channels."""
    height, width, channels = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], 1)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 2: 4, 3: 2, 4: 6}[channels], 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows.tobytes())) + chunk(b"IEND", b"")


def _crc_table():
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        table.append(n)
    return table


_CRC = _crc_table()


def _masked_crc(data):
    """CRC-32C, rotated and shifted by a constant, as records want it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", (crc >> 15 | crc << 17) + 0xA282EAD8 & 0xFFFFFFFF)


class FileWriter:
    """Writes one event file into ``log_dir``.

    Args:
        max_queue, flush_secs: the file is flushed after so many events or seconds.
        filename_suffix: the end of the file's name.
    """

    def __init__(self, log_dir, max_queue=10, flush_secs=120, filename_suffix=""):
        self._log_dir, self._limits = str(log_dir), (max_queue, flush_secs)
        os.makedirs(self._log_dir, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.{next(_numbers)}{filename_suffix}"
        self.path = os.path.join(self._log_dir, name)
        self._file, self._waiting, self._flushed = None, 0, time.time()
        self.reopen()
        self._write(message(_1=time.time(), _3="brain.Event:2"))
        self.flush()

    def get_logdir(self):
        """The folder."""
        return self._log_dir

    def _write(self, event):
        head = struct.pack("<Q", len(event))
        self._file.write(head + _masked_crc(head) + event + _masked_crc(event))
        self._waiting += 1
        if self._waiting >= self._limits[0] or time.time() - self._flushed > self._limits[1]:
            self.flush()

    def add_summary(self, summary, global_step=None, walltime=None):
        """Append an event with these bytes of a Summary."""
        self._write(message(_1=time.time() if walltime is None else float(walltime), _2=None if global_step is None else int(global_step), _5=summary))

    def add_graph(self, graph, walltime=None):
        """Append an event with these bytes of a GraphDef."""
        self._write(message(_1=time.time() if walltime is None else float(walltime), _4=graph))

    def flush(self):
        """Hand everything to the system."""
        self._file.flush()
        self._waiting, self._flushed = 0, time.time()

    def close(self):
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def reopen(self):
        """Go on with the file after ``close``."""
        if self._file is None:
            self._file = open(self.path, "ab")
