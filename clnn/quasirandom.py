"""Points that fill the unit cube evenly, as in ``torch.quasirandom``."""
from __future__ import annotations

import numpy as np

from . import _sobol
from ._tensor.device import resolve
from ._tensor.inplace import set_out
from ._tensor.interop import from_array
from .core import dtype as dt
from .core import rng
from .core.twister import Twister

__all__ = ["SobolEngine"]


class SobolEngine:
    """Sobol's sequence, plain or scrambled (Owen's method by random matrices and shifts, Matousek, 1998).

    The points are PyTorch's, number by number, also scrambled ones with a ``seed``. Without a seed, the scrambling follows ``clnn.manual_seed``.

    Args:
        dimension: 1 to 1111 (PyTorch's table reaches 21201).
        scramble: draw another sequence with the same properties.
        seed: of the scrambling.

    Example::

        >>> clnn.quasirandom.SobolEngine(dimension=2).draw(3)
        tensor([[0.0000, 0.0000],
                [0.5000, 0.5000],
                [0.7500, 0.2500]])
    """

    MAXBIT, MAXDIM = _sobol.MAXBIT, _sobol.MAXDIM

    def __init__(self, dimension, scramble=False, seed=None):
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self._directions, self._shift = _sobol.directions(dimension), np.zeros(dimension, np.int64)
        if scramble:
            self._scramble()
        self.num_generated, self._first = 0, dt._default_float.np          # the first point is kept in the dtype of this moment

    def _scramble(self):
        bits, sequence = self.MAXBIT, rng.current().sequence if self.seed is None else Twister(self.seed & rng.MASK)
        draws = sequence.words(self.dimension * bits * (bits + 1)).astype(np.int64) & 1
        shift, matrices = draws[:self.dimension * bits].reshape(-1, bits), draws[self.dimension * bits:].reshape(-1, bits, bits)
        self._shift = shift @ (1 << np.arange(bits, dtype=np.int64))
        lower = np.tril(matrices)
        lower[:, np.arange(bits), np.arange(bits)] = 1
        places = np.arange(bits - 1, -1, -1)
        digits = self._directions[:, :, None] >> places & 1                             # (dimension, number, binary place)
        self._directions = ((digits @ lower.transpose(0, 2, 1) & 1) << places).sum(-1)

    def _integers(self, first, count):
        """Points ``first`` .. as integers (count, dimension): sums modulo 2 of the direction numbers that the Gray code of the index names."""
        index = np.arange(first, first + count, dtype=np.int64)
        gray, points = index ^ index >> 1, np.broadcast_to(self._shift, (count, self.dimension)).copy()
        for j in range(int(index[-1]).bit_length() if count else 0):
            points ^= np.where(gray[:, None] >> j & 1, self._directions[:, j], 0)
        return points

    def draw(self, n=1, out=None, dtype=None):
        """The next ``n`` points ``(n, dimension)``."""
        row = dt.as_dtype(dtype) or dt._default_float
        values = self._integers(self.num_generated, n) / float(1 << self.MAXBIT)
        if not self.num_generated and n:
            values[0] = values[0].astype(self._first)
        points = from_array(values, resolve(None), row)
        self.num_generated += n
        return points if out is None else set_out(out, points)

    def draw_base2(self, m, out=None, dtype=None):
        """The next ``2 ** m`` points. Raises ValueError when the number of points so far would be no power of 2: they are balanced only then."""
        n, total = 2 ** m, self.num_generated + 2 ** m
        if total & total - 1:
            raise ValueError(f"The balance properties of Sobol' points require n to be a power of 2. {self.num_generated} points have been previously "
                             f"generated, then: n={self.num_generated}+2**{m}={total}. If you still want to do this, please use 'SobolEngine.draw()' instead.")
        return self.draw(n, out, dtype)

    def fast_forward(self, n):
        """Leave out ``n`` points; returns the engine."""
        self.num_generated += n
        return self

    def reset(self):
        """Start again at the first point; returns the engine."""
        self.num_generated = 0
        return self

    def __repr__(self):
        return f"{type(self).__name__}(dimension={self.dimension}{', scramble=True' if self.scramble else ''}" \
               + (f", seed={self.seed})" if self.seed is not None else ")")
