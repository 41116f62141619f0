"""The sequence of random numbers that PyTorch draws on a processor: Mersenne Twister (Matsumoto & Nishimura, "Mersenne Twister: a 623-dimensionally
equidistributed uniform pseudo-random number generator", 1998).

A number depends on all before it, so where the sequence stands is a state of 624 words. The host advances it (``words``). Long draws are left to a device, which
has a state of its own; whoever drew last stands where the sequence does, and the other one follows when its turn comes.
"""
from __future__ import annotations

import math
import struct
import threading
from array import array

import numpy as np

from . import native
from .samplers import rejected
from .words import SIZE, Words

WIDE = 1 << 28                  # whole numbers below a bound from here on take 64 bits
_NEAR = 1 << 17                 # words that the host passes over sooner than it waits for a device
_SEED, _UNKNOWN = -1, -2         # in place of how many words the host has passed: the seed is to be taken, or the state read from the device
_MASK = (1 << 64) - 1
_NONE = np.empty(0, np.uint32)
_STATE = struct.Struct("<QiiQ4992s3dixxxxf?xxx")      # as PyTorch lays it out: seed, words left, 1, place, words in 64 bits each, and a spare normal number


class Mark:
    """A place in a sequence. Its state is taken when the next number is drawn, as most marks are left unused."""

    __slots__ = ("seed", "count", "spare", "state")

    def __init__(self, seed, count, spare):
        self.seed, self.count, self.spare, self.state = seed, count, spare, None


class _Drawn(threading.local):
    blocks = words = 0      # of all streams and sequences together, by this thread


drawn = _Drawn()


class Twister:
    """One sequence.

    ``count`` is how many words were drawn since it was seeded, ``there`` how many the device's ``mirror`` has passed; ``spare`` is the second of a pair of
    normal numbers whose first was asked for alone; ``short``: how many draws in a row were short ones of a device.
    """

    __slots__ = ("seed", "count", "spare", "mirror", "there", "lock", "_host", "short", "_here", "_mark")

    def __init__(self, seed):
        self.seed, self.count, self.spare, self.mirror, self.there = seed, 0, None, None, -1
        self.short = 0
        self.lock, self._host, self._here, self._mark = threading.RLock(), None, _SEED, None

    def restart(self, seed):
        """Begin the sequence of another seed."""
        with self.lock:
            self.settle()
            self.seed, self.count, self.spare, self.there, self._here = seed, 0, None, -1, _SEED

    @property
    def on_host(self):
        """Whether the host stands where the sequence does, or no device does."""
        return self._here == self.count or self.there != self.count

    def _at(self):
        """The host's words, at the place where the sequence stands."""
        host = self._host
        if host is None:
            host = self._host = Words()
        behind = self.count - self._here
        if self.there == self.count and (self._here == _UNKNOWN or behind > _NEAR):
            words = self.mirror.read()
            host.restore(words[:SIZE].tobytes(), int(words[SIZE]))
        elif behind:
            if self._here == _SEED:
                host.seed(self.seed & 0xFFFFFFFF)
                behind = self.count
            host.skip(behind)
        self._here = self.count
        return host

    def _take(self, n):
        """The host's words, of which ``n`` are about to be drawn. The caller holds the lock."""
        if self._mark is not None:
            self.settle()
        if self._here != self.count:
            self._at()
        self._here = self.count = self.count + n
        drawn.words += n
        return self._host

    def words(self, n):
        """The next ``n`` words of 32 bits."""
        if not n:
            return _NONE
        with self.lock:
            return np.frombuffer(self._take(n).words(n), np.uint32)

    def uniforms(self, n, low=0.0, high=1.0) -> bytes:
        """The next ``n`` words as uniform numbers of float32: from [0, 1) in steps of 2^-24, or these in another range."""
        with self.lock:
            return self._take(n).uniforms(n, low, high)

    def blocks(self, n, mean, std) -> bytes:
        """``n`` normal numbers of float32, 16 at least, as PyTorch draws many: in blocks of 16, the last of which ends with the last number and is drawn by itself."""
        with self.lock:
            return self._take(n + 16 * (n % 16 > 0)).normals(n, mean, std)

    def integers(self, low, span, n, wide) -> bytes:
        """``n`` whole numbers of int64 from ``low`` on, below ``low + span``; ``wide``: of two words each."""
        with self.lock:
            return self._take(n << wide).integers(low & _MASK, span & _MASK, n, wide)

    def order(self, n) -> bytes:
        """The numbers below ``n`` in random order, as int64 (Fisher & Yates)."""
        with self.lock:
            return self._take(max(0, n - 1)).order(n)

    def wide(self, n):
        """The next ``n`` numbers of 64 bits, of two words each, the upper one first."""
        return np.frombuffer(self.integers(0, 0, n, True), np.uint64)

    def doubles(self, n):
        """``n`` uniform numbers from [0, 1) in steps of 2^-53."""
        with self.lock:
            return np.frombuffer(self._take(2 * n).doubles(n), np.float64)

    def normals(self, n):
        """``n`` normal numbers (Box & Muller, 1958) as PyTorch draws a few: both of a pair are used, be it by the next call."""
        with self.lock:
            spare = self.spare
            new = n - (spare is not None)
            made, self.spare = self._take((new + 1) // 2 * 4 if n else 0).pairs(n, spare)
        return np.frombuffer(made, np.float64)

    def rejected(self, kind, *parameters):
        """A gamma, Poisson or binomial number for each element of ``parameters``, arrays of float64 that have one shape."""
        with self.lock:
            made, taken, self.spare = rejected(kind, self._take(0), self.spare, *parameters)
            self._here = self.count = self.count + taken
        drawn.words += taken
        return np.frombuffer(made).reshape(parameters[0].shape)

    def state(self):
        """(words of the state, place in them)."""
        with self.lock:
            words, place = self._at().state()
            return np.frombuffer(words, np.uint32), place

    # -- states -----------------------------------------------------------------------------------------------------------
    def mark(self):
        """What :meth:`back` takes to return to this place."""
        with self.lock:
            if self._mark is None or (self._mark.count, self._mark.spare) != (self.count, self.spare):
                self.settle()
                self._mark = Mark(self.seed, self.count, self.spare)
            return self._mark

    def settle(self):
        """Take the state of the last mark, before a number is drawn: on the device, where that stands there."""
        mark, self._mark = self._mark, None
        if mark is not None and mark.count:
            mark.state = self.mirror.copy() if self._here != self.count and self.there == self.count else self.state()

    def back(self, mark):
        with self.lock:
            if mark is self._mark and mark.count == self.count:
                self.spare = mark.spare
                return
            self.settle()
            self.seed, self.count, self.spare, self.there = mark.seed, mark.count, mark.spare, -1
            if mark.state is None:                              # no number was drawn before
                self._here = _SEED
            elif mark.state.__class__ is tuple:
                self._host, self._here = self._host or Words(), self.count
                self._host.restore(mark.state[0].tobytes(), mark.state[1])
            else:
                self.mirror, self.there, self._here = mark.state.copy(), self.count, _UNKNOWN

    def packed(self, note=0):
        """The state in PyTorch's 5056 bytes. ``note``: 64 bits of one's own, where PyTorch keeps none."""
        words, place = self.state()
        fresh = place == SIZE and not self.count
        number, = struct.unpack("<d", struct.pack("<Q", note))
        spare = self.spare
        return _STATE.pack(self.seed, 1 if fresh else SIZE + 1 - place, 1, 0 if fresh else place,
                           words.astype("<u8").tobytes(), number, spare or 0.0, 0.0, spare is not None, 0.0, False)

    @staticmethod
    def unpacked(raw):
        """(a Twister in a state that ``packed`` or PyTorch gave, note)."""
        seed, left, _, place, words, number, spare, _, has_spare, _, _ = _STATE.unpack(raw)
        made, mark = Twister(seed), Mark(seed, 1, spare if has_spare else None)
        mark.state = np.frombuffer(words, "<u8").astype(np.uint32), SIZE if left == 1 else place
        made.back(mark)
        return made, struct.unpack("<Q", struct.pack("<d", number))[0]


PACKED = _STATE.size


def integers(sequence, bound, n, wide=None):
    """``n`` whole numbers from 0 to ``bound`` exclusive (2^64 at most), as int64 or, from 2^63 on, as their bits."""
    return np.frombuffer(sequence.integers(0, bound, n, bound >= WIDE if wide is None else wide), np.int64)


def permutation(sequence, n):
    """The numbers below ``n`` in random order, as a list."""
    return array("q", sequence.order(n)).tolist()


def faults(weights) -> int:
    """What is wrong with weights of float32: 1 if one is no number, infinite or below 0, and 2 if a row has no sum above 0."""
    return int(not (weights.min() >= 0 and weights.max() < math.inf)) + 2 * int((weights.sum(-1) <= 0).any())


native.give(faults=faults)
faults = native.form("faults", faults)


def multinomial(sequence, weights, count, replacement):
    """``count`` places in each row of ``weights`` (N, C), drawn with these probabilities."""
    if weights.dtype == np.float32 and (replacement or count == 1):
        weights, rows = np.ascontiguousarray(weights), len(weights)
        with sequence.lock:
            return np.frombuffer(sequence._take(2 * (weights.size if count == 1 else rows * count)).picks(weights, rows, count), np.int64).reshape(rows, count)
    if replacement and count > 1:
        draws = sequence.doubles(len(weights) * count).reshape(-1, count)
        ends = weights.cumsum(1, dtype=weights.dtype)
        ends /= ends[:, -1:]
        ends[:, -1] = 1
        if ends.shape[1] * draws.size <= 1 << 16:               # counting the smaller ones takes less time than a search for each row
            return (ends[:, None] < draws[:, :, None]).sum(2)
        return np.stack([np.searchsorted(row, u) for row, u in zip(ends, draws)])
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = weights / (-np.log1p(-sequence.doubles(weights.size))).reshape(weights.shape).astype(weights.dtype)
    if count == 1:
        return shares.argmax(1)[:, None]
    np.negative(shares, out=shares)
    if 8 * count > shares.shape[1]:
        return shares.argsort(1, kind="stable")[:, :count]
    first = np.sort(shares.argpartition(count, 1)[:, :count], 1)       # of equals the first, as above
    return np.take_along_axis(first, np.take_along_axis(shares, first, 1).argsort(1, kind="stable"), 1)
