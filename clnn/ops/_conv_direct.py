"""Dense convolutions on CPUs with output channels in the lanes: the image is read where it lies (see ``kernels/conv/direct``)."""
from __future__ import annotations

from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np

from ..runtime.launch import launch
from ._conv_grid import LARGEST, Shape, TooLarge, _live_taps, _padded_grid, _phases, _table, _words8, _words16
from ._gemm import EPILOGUES

_RUN = 48                   # pixels that are turned at once: a multiple of the rows of all tiles and of the lanes
_PANEL = 3 << 17            # bytes of weights that stay in a second cache beside the image
_TILES = {True: {1: 12, 2: 8, 3: 8, 4: 6}, False: {1: 8, 2: 6}}      # wide registers: vectors of a panel to pixels of a tile


class Image(NamedTuple):
    """Where the elements that are read lie: sizes, and steps from a channel and from an image to the next."""

    size: tuple
    plane: int
    image: int


class Part(NamedTuple):
    """The pixels of the output that the same taps meet: all of them, or one phase of a strided input gradient.

    ``taps``: list of ((steps along D, H, W from a pixel's place in the image), place in the weights); ``start``: first pixel's place in the output.
    """

    taps: list
    start: int
    counts: tuple


class Direct:
    """All parts of a convolution in one launch.

    Args:
        N, M, C, groups: images, output and input channels per group; ``image``: what is read, or ``grid`` laid out before; ``stride``: from a pixel's place to the next.
        weight: strides of the weight tensor (group, row, input channel).
        out: ((n, d, h, w strides), row stride, group stride).
    """

    def __init__(self, device, T, N, M, C, groups, image, stride, parts, weight, out, bias, epilogue, grid=None):
        self.device, self.grid = device, grid
        (size, plane, apart), W, vectors = image, device.lanes(T.acc), -(-M // device.lanes(T.acc))
        tiles = _TILES[device.wide]
        panels = -(-vectors // max(tiles))
        NV = -(-vectors // panels)
        NR, taps = NV * W, sum(len(part.taps) for part in parts)
        K, pixels = taps * C, sum(N * prod(part.counts) for part in parts)
        if max(N * apart + groups * C * plane, N * out[0][0], K * NR * panels * groups) > LARGEST:
            raise TooLarge
        block = -(-pixels * panels * groups // (8 * device.compute_units * _RUN)) * _RUN
        block = min(max(block, _RUN), 960)
        together = len({part.counts for part in parts}) == 1
        items = self._items(N, parts, block, together)
        steps = max(1, _PANEL // (C * NR * T.itemsize))
        masked = not self._all_inside(parts, size, stride)
        met = self._met(parts, size, stride) if masked else 0
        # Pixels of a tile then meet the same taps. Larger images lie so far apart, often by powers of two, that their lines push each other out of caches.
        images = self.images = N >= 8 and plane <= 256 and met * C >= 256 and met <= 0.8 * taps / len(parts)
        pair = not images and together and len(parts) > 1 and out[0][3] == 2 and all(b.start == a.start + 1 for a, b in zip(parts[::2], parts[1::2]))
        kept = (pair or any(len(part.taps) > steps for part in parts)) * (1 + pair)
        self.part = kept * groups * panels * len(items) * block * NR * T.itemsize
        self.table = _table(device, np.concatenate([self._steps(parts, C, plane, size), self._edges(parts, N), np.array(items).reshape(-1)]))
        self.kernel = device.kernel("conv/direct", T=T, W=W, NV=NV, MR=tiles[NV], RUN=_RUN, PAIR=pair, IMAGES=images, MASKED=masked,
                                    BIAS="m" if bias else "", EPI=EPILOGUES.get(epilogue, epilogue))
        self.gs = (len(items), panels, groups)
        step = out[0][3] if together or out[0][3] == 1 else 0
        self.words = (_words16(M, C, K, *size, plane, apart, block, steps, taps, len(parts)), _words16(*out[0], out[1], out[2], *stride, step))
        self.lanes = device.kernel("conv/lanes", T=T, W=W, NV=NV, NEAR=weight[1] == 1)
        self.places, count = self._places(parts, C, weight[2], W)
        each = max(1, min(16, count * panels * groups // (8 * device.compute_units)))
        self.lanes_gs = (max(1, -(-count // each)), panels, groups)
        self.lanes_words = _words8(K, M, panels, weight[0], weight[1], count, each, groups * weight[0])
        self.nbytes = max(groups * panels * K * NR * T.itemsize, 1)

    @staticmethod
    def possible(device, T, M, epilogue) -> bool:
        epilogue = EPILOGUES.get(epilogue, epilogue)
        return device.is_cpu and T.c == T.acc and T.is_floating_point and M >= device.lanes(T.acc) and (not epilogue or "VT" in epilogue)

    @staticmethod
    def suits(device, T, N, M, K, size, counts, stride, epilogue) -> bool:
        """Is it valid, and does it pay?

        Results are turned before they are written, which takes the time of some hundred steps where pixels lie apart (``stride``: of the output's
        pixels) and some ten where they follow each other; weights are turned for every call; lanes past the last channel idle. Where rows are long
        and steps follow them, the products whose lanes are pixels read faster.

        Args:
            M, K: output channels and steps of a pixel, per group; ``size``: of the image read; ``counts``: pixels of a part of the output.
        """
        W, least = device.lanes(T.acc), 96 if prod(size) > 2 * prod(counts) else 256         # the other way takes a copy of a strided image, too
        if not Direct.possible(device, T, M, epilogue) or 4 * M < 3 * (-(-M // W) * W) or N * prod(counts) < least or K < (48 if counts[2] <= 8 else 128):
            return False
        if stride[2] > 1:
            return stride[2] == 2 and K >= 200 and M >= 2 * W
        return M >= 2 * W or prod(size) <= 2048

    @staticmethod
    def _all_inside(parts, size, stride) -> bool:
        return all(e[a] >= 0 and (part.counts[a] - 1) * stride[a] + e[a] < size[a] for part in parts for e, _ in part.taps for a in range(3))

    @staticmethod
    def _met(parts, size, stride) -> float:
        """Taps that a pixel meets, in the mean."""
        met = pixels = 0
        for part in parts:
            found = np.ones((1, len(part.taps)), bool)
            for a in range(3):
                at = np.arange(part.counts[a])[:, None] * stride[a] + np.array([e[a] for e, _ in part.taps], np.int64)[None]
                found = (found[:, None] & ((at >= 0) & (at < size[a]))[None]).reshape(-1, len(part.taps))
            met, pixels = met + found.sum(), pixels + len(found)
        return met / pixels

    @staticmethod
    def _items(N, parts, block, together):
        """(first part, end, first pixel) of every work-item. Parts of the same pixels share lines of the output, and so an item."""
        if together:
            return [(0, len(parts), p) for p in range(0, N * prod(parts[0].counts), block)]
        return [(f, f + 1, p) for f, part in enumerate(parts) for p in range(0, N * prod(part.counts), block)]

    @staticmethod
    def _steps(parts, C, plane, size):
        """Per step, the place of its tap and channel, and per tap its steps along the dimensions."""
        taps = np.array([e for part in parts for e, _ in part.taps], np.int64).reshape(-1, 3)
        offsets = (taps[:, 0] * size[1] + taps[:, 1]) * size[2] + taps[:, 2]
        return np.concatenate([(offsets[:, None] + np.arange(C)[None] * plane).reshape(-1), taps.reshape(-1)])

    @staticmethod
    def _edges(parts, N):
        """What the kernel knows of each part."""
        rows, first = [], 0
        for part in parts:
            taps = np.array([e for e, _ in part.taps] or [(0, 0, 0)])
            ends = np.stack([taps.min(0), taps.max(0)], 1).reshape(-1)
            rows.append([first, first + len(part.taps), part.start, *part.counts, N * prod(part.counts), *ends])
            first += len(part.taps)
        return np.array(rows).reshape(-1)

    def _places(self, parts, C, channel_step, W):
        """The blocks of steps that are neighbours in the weights, with the numbers of all steps in the order of their places; and how many blocks."""
        places = np.array([place for part in parts for _, place in part.taps], np.int64)
        places = (places[:, None] + np.arange(C)[None] * channel_step).reshape(-1)
        order = np.argsort(places, kind="stable")
        places = places[order]
        runs = np.flatnonzero(np.diff(places, prepend=-2) != 1)
        ends = np.append(runs[1:], len(places))
        starts = np.concatenate([np.arange(a, b, W) for a, b in zip(runs, ends)]) if len(runs) else runs
        sizes = np.minimum(np.repeat(ends, -(-(ends - runs) // W)) - starts, W)
        return _table(self.device, np.concatenate([np.stack([places[starts], sizes, starts], 1).reshape(-1), order])), len(starts)

    def run(self, x, x_off, w, w_off, y, y_off, bias):
        if self.grid is not None:
            x, x_off = self.grid.fill(x, x_off)
        buf = self.device.alloc(self.nbytes)
        launch(self.device, self.lanes, self.lanes_gs, None, w, w_off, buf, 0, self.places, self.lanes_words)
        b, b_off = bias if bias is not None else (y, 0)
        part = self.device.alloc(self.part) if self.part else y
        launch(self.device, self.kernel, self.gs, (1, 1, 1), buf, 0, x, x_off, y, y_off, b, b_off, part, self.table, *self.words)


def _long_rows(pixels, channels, stride) -> bool:
    """Rows whose neighbours are read as they lie by the products whose lanes are pixels, the faster the fewer channels share a copy."""
    return stride == (1, 1, 1) and pixels > (32 if channels <= 32 else 64)


def suits_forward(device, T, s: Shape, epilogue) -> bool:
    """Whether a forward product takes the way of :class:`Direct`; single taps do where rows are short."""
    steps = s.Cg * prod(map(len, _live_taps(s)))
    return (not _long_rows(s.Y[2], s.Og, s.s) and (s.taps > 1 or s.Y[2] <= 8 and s.s != (1, 1, 1))
            and Direct.suits(device, T, s.N, s.Og, steps, s.I, s.Y, (1, 1, 1), epilogue))


def forward(device, T, s: Shape, bias, epilogue):
    """Few input channels are laid out between zeros first: to ask of every tap what it meets would take longer."""
    grid, image, before = None, Image(s.I, prod(s.I), s.C * prod(s.I)), tuple(p[0] for p in s.p)
    if any(map(any, s.p)) and s.Cg < 8:
        grid, _ = _padded_grid(device, T, s, False)
        image, before = Image(grid.dims, grid.CS, grid.P), (0, 0, 0)
    taps = [(tuple(k * step - b for k, step, b in zip(tap, s.d, before)), (tap[0] * s.k[1] + tap[1]) * s.k[2] + tap[2])
            for tap in product(*_live_taps(s))]
    row, (_, H, W) = prod(s.Y), s.Y
    return Direct(device, T, s.N, s.Og, s.Cg, s.groups, image, s.s, [Part(taps, 0, s.Y)], (s.Og * s.Cg * s.taps, s.Cg * s.taps, s.taps),
                  ((s.O * row, H * W, W, 1), row, s.Og * row), bias, epilogue, grid)


def _back_phases(s: Shape):
    return [_phases(s.I[a], s.k[a], s.s[a], s.p[a][0], s.d[a], s.Y[a]) for a in range(3)]


def suits_backward_input(device, T, s: Shape, epilogue) -> bool:
    """As :func:`suits_forward`; a stride makes phases of the input that are met by some of the taps each."""
    phases = _back_phases(s)
    parts = prod(map(len, phases))
    return (not _long_rows(s.I[2], s.Cg, s.s) and s.taps > parts
            and Direct.suits(device, T, s.N, s.Cg, s.Og * s.taps // parts, s.Y, [max(count for _, count, _ in dim) for dim in phases], s.s, epilogue))


def backward_input(device, T, s: Shape, bias, epilogue):
    row, (_, H, W) = prod(s.I), s.I
    parts = [Part([(tuple(e for _, e in tap), (tap[0][0] * s.k[1] + tap[1][0]) * s.k[2] + tap[2][0]) for tap in product(*[taps for _, _, taps in combo])],
                  (combo[0][0] * H + combo[1][0]) * W + combo[2][0], tuple(count for _, count, _ in combo)) for combo in product(*_back_phases(s))]
    return Direct(device, T, s.N, s.Cg, s.Og, s.groups, Image(s.Y, prod(s.Y), s.O * prod(s.Y)), (1, 1, 1), parts, (s.Og * s.Cg * s.taps, s.taps, s.Cg * s.taps),
                  ((s.C * row, s.s[0] * H * W, s.s[1] * W, s.s[2]), row, s.Cg * row), bias, epilogue)
