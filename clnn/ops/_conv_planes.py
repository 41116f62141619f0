"""Depthwise convolutions on CPUs with as many planes at a time as a vector has lanes: short rows, and strides that rows in lanes do not suit."""
from __future__ import annotations

from math import gcd, prod

import numpy as np

from ..runtime.launch import launch
from ._conv_grid import LARGEST, Shape, _table, _words8, _words16
from ._gemm import EPILOGUES


class Along:
    """One dimension of a depthwise convolution, or of the gradient of its input: which places of the source an element of the result meets."""

    def __init__(self, s: Shape, a, forward):
        self.k, self.stride, self.dilation, self.before, self.forward = s.k[a], s.s[a], s.d[a], s.p[a][0], forward
        self.source, self.result = (s.I[a], s.Y[a]) if forward else (s.Y[a], s.I[a])
        common = gcd(self.stride, self.dilation)
        self.steps = (1, self.dilation) if forward else (self.stride // common, -self.dilation // common)    # of taps, of places

    def table(self):
        """(first tap, taps, place that the first one meets) for each element of the result: those that meet the source."""
        out, tap = np.arange(self.result)[:, None], np.arange(self.k)[None, :]
        if self.forward:
            place, meets = out * self.stride - self.before + tap * self.dilation, True
        else:
            place = out + self.before - tap * self.dilation
            place, meets = place // self.stride, place % self.stride == 0
        meets = meets & (place >= 0) & (place < self.source)
        first, count = meets.argmax(1), meets.sum(1)
        return np.stack([first, count, np.where(count > 0, np.take_along_axis(place, first[:, None], 1)[:, 0], 0)], 1)

    def taps(self):
        """(results of a step, each a tuple of (tap, place in the source), distance of steps in the source, first place of step 0)."""
        if self.forward:
            return (tuple((k, k * self.dilation) for k in range(self.k)),), self.stride, -self.before
        found = [[(k, (b - k * self.dilation) // self.stride) for k in range(self.k) if (b - k * self.dilation) % self.stride == 0] for b in range(self.stride)]
        low = min(e for taps in found for _, e in taps)
        return tuple(tuple((k, e - low) for k, e in taps) for taps in found), 1, low

    def steps_of_rows(self):
        """(first step, steps) of a row of the result."""
        if self.forward:
            return 0, self.result
        first = self.before // self.stride
        return first, (self.before + self.result - 1) // self.stride + 1 - first


def _pieces(n):
    """Sizes of the pieces into which ``n`` is divided evenly, from one on."""
    return dict.fromkeys(-(-n // parts) for parts in range(1, n + 1))


class Tiles:
    """How results are divided into tiles whose sources fit ``room`` vectors together with them; ``size`` is None where none do.

    ``table`` describes each tile and then the depths and rows, as the kernels read it; ``pitch`` and ``wide`` are vectors of a row of the source and of the result.
    """

    def __init__(self, dims, sources, room, P):
        self.dims, self.P, self.size = dims, P, None
        depth, row, col = dims
        self.rows_of = [depth.table(), row.table()]
        self.phases, self.step, self.low = col.taps()
        self.reach = max(e for taps in self.phases for _, e in taps)
        self.first, steps = col.steps_of_rows()
        for size in self._sizes(depth.result, row.result, steps):
            self._measure(*size)
            if self.area * sources + self.results <= room:
                self.size = size
                break
        if self.size:
            tiles = [self._tile(z, y, t, steps) for t in range(0, steps, size[2]) for z in range(0, depth.result, size[0])
                     for y in range(0, row.result, size[1])]
            self.count = len(tiles)
            self.table = np.concatenate([np.array(tiles).reshape(-1), self.rows_of[0].reshape(-1), self.rows_of[1].reshape(-1)])

    @staticmethod
    def _sizes(depths, rows, steps):
        yield from ((z, rows, steps) for z in _pieces(depths))
        yield from ((1, y, steps) for y in _pieces(rows))
        yield from ((1, 1, t) for t in _pieces(steps))

    def _measure(self, depths, rows, steps):
        """Vectors that a tile takes, the overrun of the last steps of a row counted."""
        counts = [max(self._span(a, n, size)[1] for n in range(0, self.dims[a].result, size)) for a, size in ((0, depths), (1, rows))]
        whole = -(-steps // self.P) * self.P
        self.pitch, self.wide = (steps - 1) * self.step + self.reach + 1, whole * len(self.phases)
        self.area = counts[0] * counts[1] * self.pitch + (whole - steps) * self.step
        self.results = depths * rows * self.wide

    def _span(self, a, first, count):
        """(first, places) of the source that some results meet along dimension ``a``."""
        taps = self.rows_of[a][first:first + count]
        taps = taps[taps[:, 1] > 0]
        if not len(taps):
            return 0, 0
        ends = taps[:, 2] + (taps[:, 1] - 1) * self.dims[a].steps[1]
        low = int(min(taps[:, 2].min(), ends.min()))
        return low, int(max(taps[:, 2].max(), ends.max())) + 1 - low

    def _tile(self, z, y, t, steps):
        depths, rows, cols = (min(size, n - at) for size, n, at in zip(self.size, (self.dims[0].result, self.dims[1].result, steps), (z, y, t)))
        col, each = self.dims[2], len(self.phases)
        begin = (self.first + t) * each - (0 if col.forward else col.before)            # the result of the first step
        low = max(begin, 0)
        source = (self.first + t) * self.step + self.low
        left = min(max(source, 0), col.source)
        return (z, depths, y, rows, -(-cols // self.P), low, min(begin + cols * each, col.result) - low, low - begin, *self._span(0, z, depths),
                *self._span(1, y, rows), left, max(0, min(source + self.pitch, col.source) - left), min(left - source, self.pitch), 0)


class Planes:
    """Forward, or the gradient of the input."""

    def __init__(self, device, T, s: Shape, forward, bias, epilogue):
        self.device = device
        W, (tiles, P) = device.lanes(T.acc), self.tiles(device, T, s, forward)
        mult, sources, O = (s.Og, 1, s.O) if forward else (1, s.Og, s.C)
        planes, (depth, row, col) = s.N * O, tiles.dims
        self.kernel = device.kernel("conv/planes", T=T, W=W, P=P, TAPS=tiles.phases, KW=col.k, STEP=tiles.step, SOURCES=sources, SLAB=self.slab(device, T), BIAS=bias,
                                    EPI=EPILOGUES.get(epilogue, epilogue))
        blocks = -(-planes // W)
        period = min(O // gcd(O, W), blocks)
        shares = max(1, min(-(-4 * device.compute_units // period), blocks // period * tiles.count))
        self.gs, self.table = (period * shares,), _table(device, tiles.table)
        self.words = (_words16(planes, O, mult, depth.source * row.source * col.source, depth.result * row.result * col.result, row.source, col.source, row.result,
                               col.result, tiles.count, tiles.pitch, tiles.wide, tiles.area, period, shares, depth.result),
                      _words8(depth.k, row.k, *depth.steps, *row.steps, tiles.area * sources))

    @staticmethod
    def slab(device, T) -> int:
        """Vectors of local memory."""
        return min(12288, device.local_mem * 3 // 4 // T.acc_dtype.itemsize) // device.lanes(T.acc)

    @classmethod
    def tiles(cls, device, T, s: Shape, forward):
        """(how results are divided, steps at a time)."""
        dims = [Along(s, a, forward) for a in range(3)]
        phases, step, _ = dims[2].taps()
        steps, registers = dims[2].steps_of_rows()[1], 16 if device.wide else 8
        taps, room = s.k[2], cls.slab(device, T)
        P = min(range(1, max(1, min(8, registers // len(phases))) + 1), key=lambda p: (-(-steps // p) * (p * taps + taps / 2 + p * step / 2 + 5), -p))
        weights = (1 if forward else s.Og) * s.taps
        return Tiles(dims, 1 if forward else s.Og, room - weights, P), P

    @classmethod
    def suits(cls, device, T, s: Shape, epilogue, forward) -> bool:
        epilogue = EPILOGUES.get(epilogue, epilogue)
        if not (device.is_cpu and s.Cg == 1 and s.groups > 1 and s.k[2] <= 16 and s.s[2] <= 16 and (forward or s.Og <= 4) and (not epilogue or "VT" in epilogue)
                and max(s.C * prod(s.I), s.O * prod(s.Y), s.N * s.O) <= LARGEST):
            return False
        return cls.tiles(device, T, s, forward)[0].size is not None

    def run(self, x, x_off, w, w_off, y, y_off, bias):
        b, b_off = bias if bias is not None else (y, 0)
        launch(self.device, self.kernel, self.gs, (1,), x, x_off, w, w_off, y, y_off, b, b_off, self.table, *self.words)
