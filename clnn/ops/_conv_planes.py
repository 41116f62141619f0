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
    parts = 1
    while parts < 2 * n:
        yield -(-n // parts)
        parts += 1 + parts // 16


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
        self.steps = steps
        for size in self._sizes(depth.result, row.result, steps):
            self._measure(*size)
            if self.area * sources + self.results <= room:
                self.size = size
                break
        if self.size:
            spans = [list(zip(*map(np.ndarray.tolist, self._spans(a, self.size[a])))) for a in (0, 1)]
            tiles = [self._tile(i * size[0], j * size[1], t, steps, *found, *met) for t in range(0, steps, size[2])
                     for i, found in enumerate(spans[0]) for j, met in enumerate(spans[1])]
            self.count = len(tiles)
            self.table = np.concatenate([np.array(tiles).reshape(-1), self.rows_of[0].reshape(-1), self.rows_of[1].reshape(-1)])

    @staticmethod
    def _sizes(depths, rows, steps):
        yield from ((z, rows, steps) for z in _pieces(depths))
        yield from ((1, y, steps) for y in _pieces(rows))
        yield from ((1, 1, t) for t in _pieces(steps))

    def _measure(self, depths, rows, steps):
        """Vectors that a tile takes, the overrun of the last steps of a row counted."""
        whole = -(-steps // self.P) * self.P
        self.pitch, self.wide = (steps - 1) * self.step + self.reach + 1, whole * len(self.phases)
        row = self.dims[2].source - self.first * self.step - self.low
        if steps == self.steps and self.pitch < row <= self.pitch * 5 // 4:     # whole rows are read as one run
            self.pitch = row
        self.area = self._spans(0, depths)[1].max() * self._spans(1, rows)[1].max() * self.pitch + (whole - steps) * self.step
        self.results = depths * rows * self.wide

    def _spans(self, a, size):
        """(first, places) of the source that each ``size`` results along dimension ``a`` meet."""
        _, count, first = self.rows_of[a].T
        other, starts = first + (count - 1) * self.dims[a].steps[1], np.arange(0, len(count), size)
        low = np.minimum.reduceat(np.where(count > 0, np.minimum(first, other), LARGEST), starts)
        high = np.maximum.reduceat(np.where(count > 0, np.maximum(first, other) + 1, 0), starts)
        return np.where(high > 0, low, 0), np.maximum(high - low, 0)

    def _tile(self, z, y, t, steps, *spans):
        depths, rows, cols = (min(size, n - at) for size, n, at in zip(self.size, (self.dims[0].result, self.dims[1].result, steps), (z, y, t)))
        col, each = self.dims[2], len(self.phases)
        begin = (self.first + t) * each - (0 if col.forward else col.before)            # the result of the first step
        low = max(begin, 0)
        source = (self.first + t) * self.step + self.low
        left = min(max(source, 0), col.source)
        return (z, depths, y, rows, -(-cols // self.P), low, min(begin + cols * each, col.result) - low, low - begin, *spans,
                left, max(0, min(source + self.pitch, col.source) - left), min(left - source, self.pitch), 0)


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
        sources = 1 if forward else s.Og
        return Tiles(dims, sources, room - sources * s.taps, P), P

    @classmethod
    def suits(cls, device, T, s: Shape, epilogue, forward) -> bool:
        epilogue = EPILOGUES.get(epilogue, epilogue)
        return (device.is_cpu and s.Cg == 1 and s.groups > 1 and s.k[2] <= 16 and s.s[2] <= 16 and (forward or s.Og <= 4) and (not epilogue or "VT" in epilogue)
                and max(s.C * prod(s.I), s.O * prod(s.Y), s.N * s.O) <= LARGEST and cls.tiles(device, T, s, forward)[0].size is not None)

    @staticmethod
    def beats(device, T, s: Shape, forward, rows) -> bool:
        """Is it the better one where ``rows`` in lanes suit, or not? Not for a long row alone, long ones of few taps, or with many idle lanes."""
        W, planes, size = device.lanes(T.acc), s.N * (s.O if forward else s.C), s.Y if forward else s.I
        blocks = -(-planes // W)
        if not rows:
            return 4 * planes >= W or not forward
        return (size[1] > 1 or size[2] <= 32) and planes >= 0.7 * blocks * W and (s.s[2] > 1 or size[2] <= 32 or s.taps > 9)

    def run(self, x, x_off, w, w_off, y, y_off, bias):
        b, b_off = bias if bias is not None else (y, 0)
        launch(self.device, self.kernel, self.gs, (1,), x, x_off, w, w_off, y, y_off, b, b_off, self.table, *self.words)


class PlanesWeight:
    """The gradient of the weight: a block of channels sums all images, or shares of them where blocks are few, which a second kernel adds up in their order."""

    def __init__(self, device, T, s: Shape):
        self.device, W = device, device.lanes(T.acc)
        tiles, P = Planes.tiles(device, T, s, True)
        (depth, row, col), units = tiles.dims, device.compute_units
        blocks = -(-s.O // W)
        self.shares = 1 if blocks >= 4 * units or blocks % units == 0 else min(-(-4 * units // blocks), s.N * tiles.count)
        acc = T.acc_dtype
        self.kernel = device.kernel("conv/planes_gradient", T=T, TO=acc if self.shares > 1 else T, W=W, P=P, KW=col.k, DILATION=col.dilation, STEP=tiles.step,
                                    SLAB=Planes.slab(device, T))
        self.gs, self.table = (blocks * self.shares,), _table(device, tiles.table)
        self.words = (_words16(s.N, s.O, s.Og, prod(s.I), prod(s.Y), row.source, col.source, row.result, col.result, tiles.count, tiles.pitch, tiles.wide, 0, 0,
                               self.shares, depth.result), _words8(depth.k, row.k, *depth.steps, *row.steps, tiles.area))
        self.count, self.nbytes = s.O * s.taps, self.shares * s.O * s.taps * acc.itemsize
        self.sum = device.kernel("conv/depthwise_gpu_sum", T=T) if self.shares > 1 else None

    @staticmethod
    def suits(device, T, s: Shape) -> bool:
        return Planes.suits(device, T, s, "", True)

    @staticmethod
    def beats(device, T, s: Shape, rows) -> bool:
        """As of :class:`Planes`, with channels for lanes."""
        W = device.lanes(T.acc)
        if not rows:
            return 4 * s.O >= W
        return (s.Y[1] > 1 or s.Y[2] <= 32) and s.O >= 0.7 * -(-s.O // W) * W and (s.s[2] > 1 or s.Y[2] <= 64 or s.taps > 9)

    def run(self, x, x_off, dy, dy_off, dw, dw_off):
        out, off = (dw, dw_off) if self.sum is None else (self.device.alloc(self.nbytes), 0)
        launch(self.device, self.kernel, self.gs, (1,), x, x_off, dy, dy_off, out, off, self.table, *self.words)
        if self.sum is not None:
            launch(self.device, self.sum, (self.count,), None, out, off, dw, dw_off, self.count, self.shares)
