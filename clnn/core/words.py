"""The words of a Mersenne Twister (see ``twister``) on the host, and the numbers that they become."""
import math

import numpy as np

from . import native

SIZE = 624                      # words of the state
_LOW24, _STEP24 = np.uint32(0xFFFFFF), np.float32(2.0 ** -24)
_LOW53, _HIGH = np.uint64((1 << 53) - 1), np.uint64(32)
_ONE, _MINUS_TWO, _TURN = np.float32(1), np.float32(-2), np.float32(2 * math.pi)


def _rounded(function, x):
    """Its values to the last bit of float32, as every library has them."""
    return function(x.astype(np.float64)).astype(np.float32)


class Words:
    """A state and what comes of it, as bytes in memory's order. The C form does the same; where few numbers are drawn, NumPy's calls are all it takes."""

    __slots__ = ("_host", "_rest")      # _rest: words of the state that were not given yet

    def __init__(self):
        self._host = np.random.RandomState(0)
        self._rest = np.empty(0, np.uint32)

    def seed(self, seed):
        """Begin anew."""
        self._host.seed(seed)
        self._rest = self._rest[:0]

    def restore(self, words: bytes, place):
        """Go on from the state ``words``, ``place`` of which were given."""
        self._host.set_state(("MT19937", np.frombuffer(words, np.uint32), place))
        self._rest = self._host.randint(0, 1 << 32, SIZE - place, np.uint32)

    def state(self):
        """(the state, how many of its words were given)."""
        return self._host.get_state()[1].tobytes(), SIZE - len(self._rest)

    def _next(self, n):
        """``n`` words, of as many whole states as that takes."""
        rest = self._rest
        if n > len(rest):
            more = self._host.randint(0, 1 << 32, -(-(n - len(rest)) // SIZE) * SIZE, np.uint32)
            rest = np.concatenate((rest, more)) if len(rest) else more
        self._rest = rest[n:].copy() if n > SIZE else rest[n:]          # not a view that keeps many words
        return rest[:n]

    def skip(self, n):
        """Pass over ``n`` words."""
        while n > 0:
            self._next(min(n, 1 << 20))
            n -= 1 << 20

    def words(self, n) -> bytes:
        """``n`` words of 32 bits."""
        return self._next(n).tobytes()

    def _units(self, n):
        return (self._next(n) & _LOW24).astype(np.float32) * _STEP24

    def uniforms(self, n, low, high) -> bytes:
        """``n`` numbers of float32 from [low, high), of a word each."""
        drawn = self._units(n)
        if low != 0 or high != 1:
            low, high = np.float32(low), np.float32(high)
            drawn = (drawn.astype(np.float64) * (high - low) + low).astype(np.float32)          # as one operation of float32 rounds
        return drawn.tobytes()

    def _wide(self, n):
        pairs = self._next(2 * n).astype(np.uint64).reshape(n, 2)
        return (pairs[:, 0] << _HIGH) | pairs[:, 1]

    def doubles(self, n) -> bytes:
        """``n`` numbers of float64 from [0, 1), of two words each, the upper one first."""
        return ((self._wide(n) & _LOW53) * 2.0 ** -53).tobytes()

    def double(self) -> float:
        """One of these."""
        high, low = self._next(2).tolist()
        return ((high & 0x1FFFFF) << 32 | low) * 2.0 ** -53

    def integers(self, low, span, n, wide) -> bytes:
        """``n`` numbers of int64 from ``low`` on, of two words each if ``wide``; a ``span`` of 0 stands for all that a word can tell."""
        drawn = self._wide(n) if wide else self._next(n).astype(np.uint64)
        return ((drawn % np.uint64(span) if span else drawn) + np.uint64(low)).tobytes()

    def order(self, n) -> bytes:
        """The numbers below ``n``, each exchanged with one that comes after it, or itself."""
        order = np.arange(n).tolist()
        for i, word in enumerate(self._next(max(0, n - 1)).tolist()):
            j = i + word % (n - i)
            order[i], order[j] = order[j], order[i]
        return np.array(order, np.int64).tobytes()

    def picks(self, weights, rows, count) -> bytes:
        """``count`` columns of each row of ``weights`` (float32), as int64: one is that whose weight is the largest part of an exponential number; several are
        where numbers from [0, 1) fall among the running sums."""
        weights = weights.reshape(rows, -1)
        draws = np.frombuffer(self.doubles(weights.size if count == 1 else rows * count))
        if count == 1:
            with np.errstate(divide="ignore", invalid="ignore"):
                return (weights / (-np.log1p(-draws)).reshape(weights.shape).astype(np.float32)).argmax(1).astype(np.int64).tobytes()
        ends = weights.cumsum(1, dtype=np.float32)
        ends /= ends[:, -1:]
        ends[:, -1] = 1
        return np.stack([np.searchsorted(row, u) for row, u in zip(ends, draws.reshape(-1, count))]).astype(np.int64).tobytes()

    def normals(self, n, mean, std) -> bytes:
        """``n`` normal numbers of float32: radius and angle of 8 pairs from 16 words; of a last block of fewer, the last 16 numbers from 16 words more."""
        drawn, whole = self._units(n + 16 * (n % 16 > 0)), n // 16 * 16
        blocks = np.concatenate((drawn[:whole], drawn[n:])).reshape(-1, 2, 8)
        radius, angle = np.sqrt(_rounded(np.log, _ONE - blocks[:, 0]) * _MINUS_TWO), blocks[:, 1] * _TURN
        made = np.stack((radius * _rounded(np.cos, angle), radius * _rounded(np.sin, angle)), 1).reshape(-1)
        if mean != 0 or std != 1:
            made = made * np.float32(std) + np.float32(mean)
        return (np.concatenate((made[:n - 16], made[whole:])) if n > whole else made).tobytes()

    def pairs(self, n, spare):
        """(``n`` normal numbers of float64, ``spare`` the first where there is one; the second of the last pair if it is left, or None)."""
        got = [] if spare is None or not n else [spare]
        while len(got) < n:
            angle, radius = 2.0 * math.pi * self.double(), math.sqrt(-2.0 * math.log1p(-self.double()))
            got += radius * math.cos(angle), radius * math.sin(angle)
        return np.array(got[:n]).tobytes(), got[n] if len(got) > n else None if n else spare


Words = native.form("Words", Words)
