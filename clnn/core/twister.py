"""The sequence of random numbers that PyTorch draws on a processor: Mersenne Twister (Matsumoto & Nishimura, "Mersenne Twister: a 623-dimensionally
equidistributed uniform pseudo-random number generator", 1998).

A number depends on all before it, so where the sequence stands is a state of 624 words. NumPy advances it on the host. Long draws are left to a device, which
has a state of its own; whoever drew last stands where the sequence does, and the other one follows when its turn comes.
"""
from __future__ import annotations

import math
import struct
import threading

import numpy as np

SIZE = 624                      # words of the state
WIDE = 1 << 28                  # whole numbers below a bound from here on take 64 bits
_NEAR = 1 << 17                 # words that the host passes over sooner than it waits for a device
_FEW = 32                       # numbers that are sooner made one by one
_SOME = 256                     # numbers from [0, 1) up to which all that the state has are made at once
_LOW24, _STEP24 = np.uint32(0xFFFFFF), np.float32(2.0 ** -24)
_SEED, _UNKNOWN = -1, -2         # in place of how many words the host has passed: the seed is to be taken, or the state read from the device
_NONE = np.empty(0, np.uint32)
_LOW53 = np.uint64((1 << 53) - 1)
_HIGH = np.uint64(32)
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

    __slots__ = ("seed", "count", "spare", "mirror", "there", "lock", "_host", "short", "_here", "_rest", "_mark", "_units")

    def __init__(self, seed):
        self.seed, self.count, self.spare, self.mirror, self.there = seed, 0, None, None, -1
        self.short = 0
        self.lock, self._host, self._here, self._mark = threading.RLock(), None, _SEED, None
        self._rest = _NONE                      # what is left of the state's words
        self._units = None                      # these, from some time on, as numbers from [0, 1)

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
        """NumPy's generator, of whose state the words ``_rest`` are to come."""
        host = self._host
        if host is None:
            host = self._host = np.random.RandomState(0)
        behind = self.count - self._here
        if self.there == self.count and (self._here == _UNKNOWN or behind > _NEAR):
            words = self.mirror.read()
            self._return(words[:SIZE], int(words[SIZE]))
        elif behind:
            if self._here == _SEED:
                host.seed(self.seed & 0xFFFFFFFF)
                self._here, self._rest, self._units, behind = 0, _NONE, None, self.count
            while behind > 0:
                self._next(min(behind, 1 << 20))
                behind -= 1 << 20
        return host

    def _return(self, words, place):
        self._host.set_state(("MT19937", words, place))
        self._units = None
        self._rest, self._here = self._host.randint(0, 1 << 32, SIZE - place, np.uint32) if place < SIZE else _NONE, self.count

    def _next(self, n):
        """``n`` words, of as many whole states as that takes."""
        rest = self._rest
        if n > len(rest):
            more = self._host.randint(0, 1 << 32, -(-(n - len(rest)) // SIZE) * SIZE, np.uint32)
            rest, self._units = np.concatenate((rest, more)) if len(rest) else more, None
        self._rest = rest[n:].copy() if n > SIZE else rest[n:]          # not a view that keeps many words
        self._here += n
        return rest[:n]

    def words(self, n):
        """The next ``n`` words of 32 bits."""
        if not n:
            return _NONE
        with self.lock:
            if self._mark is not None:
                self.settle()
            if self._here != self.count:
                self._at()
            got = self._next(n)
            self.count = self._here
        drawn.words += n
        return got

    def units(self, n):
        """The next ``n`` words as uniform numbers from [0, 1) in steps of 2^-24, float32."""
        with self.lock:
            words = self.words(n)
            if n > _SOME:
                return (words & _LOW24).astype(np.float32) * _STEP24
            left, units = len(self._rest), self._units
            if units is None or len(units) < left + n:
                units = self._units = (np.concatenate((words, self._rest)) & _LOW24).astype(np.float32) * _STEP24
            end = len(units) - left
            return units[end - n:end]

    def wide(self, n):
        """The next ``n`` numbers of 64 bits, of two words each, the upper one first."""
        pairs = self.words(2 * n).astype(np.uint64).reshape(n, 2)
        return (pairs[:, 0] << _HIGH) | pairs[:, 1]

    def doubles(self, n):
        """``n`` uniform numbers from [0, 1) in steps of 2^-53."""
        return (self.wide(n) & _LOW53) * 2.0 ** -53

    def normals(self, n):
        """``n`` normal numbers (Box & Muller, 1958) as PyTorch draws a few: both of a pair are used, be it by the next call."""
        with self.lock:
            got = [] if self.spare is None or not n else [self.spare]
            if got:
                self.spare = None
            count = (n - len(got) + 1) // 2 * 2
            if n < _FEW:
                words = self.words(2 * count).tolist()
                u = [((high & 0x1FFFFF) << 32 | low) * 2.0 ** -53 for high, low in zip(words[::2], words[1::2])]
                for turn, share in zip(u[::2], u[1::2]):
                    radius, angle = math.sqrt(-2.0 * math.log1p(-share)), 2.0 * math.pi * turn
                    got += radius * math.cos(angle), radius * math.sin(angle)
                got = np.array(got)
            else:
                u = self.doubles(count)
                radius, angle = np.sqrt(-2.0 * np.log1p(-u[1::2])), 2.0 * math.pi * u[::2]
                got = np.concatenate((got, np.stack((radius * np.cos(angle), radius * np.sin(angle)), 1).reshape(-1)))
            if len(got) > n:
                self.spare = float(got[n])
        return got[:n]

    def double(self):
        """One uniform number, for what draws until it has enough."""
        high, low = self.words(2).tolist()
        return ((high & 0x1FFFFF) << 32 | low) * 2.0 ** -53

    def normal(self):
        """One normal number."""
        spare = self.spare
        if spare is not None:
            self.spare = None
            return spare
        turn = 2.0 * math.pi * self.double()
        radius = math.sqrt(-2.0 * math.log1p(-self.double()))
        self.spare = radius * math.sin(turn)
        return radius * math.cos(turn)

    def state(self):
        """(words of the state as uint32, place in them)."""
        with self.lock:
            words = self._at().get_state()[1]
            return words, SIZE - len(self._rest)

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
                self._host = self._host or np.random.RandomState(0)
                self._return(*mark.state)
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
    if bound >= WIDE if wide is None else wide:
        got = sequence.wide(n)
        return (got if bound == 1 << 64 else got % np.uint64(bound)).view(np.int64)
    return (sequence.words(n) % np.uint32(bound)).astype(np.int64)


def permutation(sequence, n):
    """The numbers below ``n`` in random order, as a list (Fisher & Yates)."""
    order = list(range(n))
    if n <= _FEW:
        for i, word in enumerate(sequence.words(max(0, n - 1)).tolist()):
            j = i + word % (n - i)
            order[i], order[j] = order[j], order[i]
        return order
    for i, j in enumerate((np.arange(n - 1) + sequence.words(n - 1) % np.arange(n, 1, -1, np.uint32)).tolist() if n > 1 else ()):
        order[i], order[j] = order[j], order[i]
    return order


def multinomial(sequence, weights, count, replacement):
    """``count`` places in each row of ``weights`` (N, C), drawn with these probabilities."""
    if replacement and count > 1:
        draws = sequence.doubles(len(weights) * count).reshape(-1, count)
        ends = weights.cumsum(1, dtype=weights.dtype)
        ends /= ends[:, -1:]
        ends[:, -1] = 1
        return np.stack([np.searchsorted(row, u) for row, u in zip(ends, draws)])
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = weights / (-np.log1p(-sequence.doubles(weights.size))).reshape(weights.shape).astype(weights.dtype)
    return shares.argmax(1)[:, None] if count == 1 else (-shares).argsort(1, kind="stable")[:, :count]
