"""Streams of random numbers, of two kinds from one seed.

On CPU devices numbers that a program asks for come in the sequence that PyTorch draws on a processor (``clnn.core.twister``), so that equal seeds give
the same data, weights and batches there and here. All others are counter-based: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
2011). That is a 64-bit seed and a 64-bit count of the 128-bit blocks used so far. Block ``b`` is a pure function of seed and ``b``, so element
``i`` of a draw depends on nothing but its number: every device gives the same bits, and a draw can be repeated instead of stored.
``philox`` is the same function for the host as ``kernels/common/random.cl.mako`` is for devices.
"""
from __future__ import annotations

import os
import threading
from threading import get_ident

import numpy as np

from . import symbols
from .twister import Twister, drawn

MASK = (1 << 64) - 1


class Stream:
    """A seed, the number of blocks used, and the sequence."""

    def __init__(self, seed=None):
        self.key, self.offset = _entropy() if seed is None else int(seed) & MASK, 0
        self.sequence = Twister(self.key)

    def restart(self, seed: int) -> None:
        self.key, self.offset = int(seed) & MASK, 0
        self.sequence.restart(self.key)

    def take(self, blocks: int):
        """Reserve ``blocks`` blocks: (seed, first block) as signed 64-bit numbers, as kernels take them."""
        symbols.plain_only("random numbers")
        first = self.offset
        self.offset = (first + blocks) & MASK
        drawn.blocks += blocks
        return signed(self.key), signed(first)

    def position(self):
        """What changes with each number that is drawn."""
        return self.key, self.offset, self.sequence.count

    def mark(self):
        """What :meth:`back` takes to return to this place."""
        return self.key, self.offset, self.sequence, self.sequence.mark()

    def back(self, mark) -> None:
        self.key, self.offset, self.sequence, place = mark
        self.sequence.back(place)

    def packed(self) -> bytes:
        """Seed and places in the layout of PyTorch's generator."""
        return self.sequence.packed(self.offset)

    def unpack(self, raw: bytes) -> None:
        self.sequence, self.offset = Twister.unpacked(raw)
        self.key = self.sequence.seed


def signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _entropy() -> int:
    return int.from_bytes(os.urandom(8), "little") >> 1


def _block(seed: int, block: int) -> tuple:
    """One block of four 32-bit numbers, in plain Python."""
    low = 0xFFFFFFFF
    c0, c1, c2, c3 = block & low, block >> 32, 0, 0
    k0, k1 = seed & low, (seed >> 32) & low
    for _ in range(10):
        p, q = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c1, c2, c3 = (q >> 32) ^ c1 ^ k0, q & low, (p >> 32) ^ c3 ^ k1, p & low
        k0, k1 = (k0 + 0x9E3779B9) & low, (k1 + 0xBB67AE85) & low
    return c0, c1, c2, c3


def philox(seed: int, first: int, count: int) -> np.ndarray:
    """Blocks ``first .. first + count - 1`` as a (count, 4) array of uint32."""
    if count <= 8:                                               # fewer than pay for a hundred calls of NumPy
        return np.array([_block(seed, (first + i) & MASK) for i in range(count)], np.uint32).reshape(count, 4)
    block = np.arange(count, dtype=np.uint64) + np.uint64(first & MASK)
    low = np.uint64(0xFFFFFFFF)
    c = [block & low, block >> np.uint64(32), np.zeros_like(block), np.zeros_like(block)]
    k0, k1 = seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF
    for _ in range(10):
        p, q = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(q >> np.uint64(32)) ^ c[1] ^ np.uint64(k0), q & low, (p >> np.uint64(32)) ^ c[3] ^ np.uint64(k1), p & low]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(c, 1).astype(np.uint32)


default = Stream()
of_threads = {}                 # streams of the threads that have their own


class _Here(threading.local):
    counted = 0                 # above 0 in compiled functions of this thread, whose numbers are counted blocks also where they run without a recording


here = _Here()


def current() -> Stream:
    """The stream of draws that name no generator."""
    return of_threads.get(get_ident(), default) if of_threads else default
