"""Where the elements of a convolution's input lie: sizes, the padded grid on which taps are constant offsets, and which taps meet the image."""
from __future__ import annotations

import struct
from itertools import product
from math import prod

import numpy as np

from ..core import symbols
from ..runtime.launch import launch

_W16, _W8 = struct.Struct("<16q"), struct.Struct("<8q")
LARGEST = 2 ** 31 - 1       # kernels count the elements of a grid in 32 bits


class TooLarge(ValueError):
    """A grid has more elements than kernels can count."""

    def __init__(self):
        super().__init__("conv: the input has more elements than 32-bit offsets can address; split the batch")


def output_size(size, kernel, stride, padding, dilation):
    """Spatial output sizes: (I + pads - D * (K - 1) - 1) // S + 1 per dimension. ``padding`` holds numbers or (before, after) pairs."""
    return tuple((i + sum(_pair(p)) - d * (k - 1) - 1) // s + 1 for i, k, s, p, d in zip(size, kernel, stride, padding, dilation))


def _pair(p):
    return p if isinstance(p, tuple) else (p, p)


def _words16(*values):
    return symbols.call(_W16.pack, *values, *[0] * (16 - len(values)))


def _words8(*values):
    return symbols.call(_W8.pack, *values, *[0] * (8 - len(values)))


class Shape:
    """A convolution's sizes, brought to three spatial dimensions."""

    def __init__(self, x_shape, w_shape, stride, padding, dilation, groups):
        fill = 3 - (len(x_shape) - 2)
        self.N, self.C = x_shape[:2]
        self.O, self.groups = w_shape[0], groups
        self.I = (1,) * fill + tuple(x_shape[2:])
        self.k = (1,) * fill + tuple(w_shape[2:])
        self.s = (1,) * fill + tuple(stride)
        self.p = ((0, 0),) * fill + tuple(map(_pair, padding))
        self.d = (1,) * fill + tuple(dilation)
        self.Y = output_size(self.I, self.k, self.s, self.p, self.d)
        self.Cg, self.Og, self.taps = self.C // groups, self.O // groups, prod(self.k)


class Grid:
    """Where the elements of an (N, C, *size) image lie, so that taps are constant offsets.

    Args:
        size: the image; ``before``: zeros in front, per dimension; ``stride``: it is split into phases of this step.
        taps: per dimension, a list of (phase, shift) that are read at positions 0..count - 1.
        plain: an image that needs no zeros may be its own grid.
        words: "channels" or "images", two of which make one of words (see ``matmul/words``); "" where numbers stay alone.
    """

    def __init__(self, device, T, N, C, size, before, stride, counts, taps, plain=True, words=""):
        plane, image = prod(size), C * prod(size)
        apart_by = image if words == "images" else plane            # both numbers of a word
        if words == "images":
            N, image = N // 2, 2 * image
        elif words:
            C, plane = C // 2, 2 * plane
        self.device, self.T, self.N, self.C, self.words_of = device, T, N, C, words
        need = [count + max(shift for _, shift in t) for count, t in zip(counts, taps)]
        self.plain = (plain and T.c == T.acc and stride == (1, 1, 1) and before == (0, 0, 0) and all(n <= i for n, i in zip(need, size)))
        if self.plain:  # the image is its own grid
            self.dims, self.P, self.CS, self.phase, self.phases = size, C * prod(size), prod(size), 0, {(0, 0, 0): 0}
            self.kernel = None
            self._check()
            return
        if stride == (1, 1, 1):  # the zeros in front of a row also serve as those behind the row before it
            for a in (1, 2):
                need[a] = max(counts[a], min(need[a], before[a] + size[a]), need[a] - max(before[a], 0))
        self.dims, self.P = tuple(need), prod(need)
        found = list(dict.fromkeys(product(*[[f for f, _ in t] for t in taps])))
        self.phases = {f: i for i, f in enumerate(found)}
        apart = -(-N * self.P // 16) * 16
        apart += 0 if apart // 16 % 2 else 16                   # an odd number of lines: planes a power of two apart would share places in caches
        self.phase, self.CS = apart, len(found) * apart
        self._check()
        shift = [max(s for _, s in t) if n else max(b, 0) for t, n, b in zip(taps, counts, before)]
        slack = (shift[0] * need[1] + shift[1]) * need[2] + shift[2] + 64
        self.nbytes = (C * self.CS + slack) * T.acc_dtype.itemsize
        W, short = 8 if T.acc == "double" else 16, self._short(size, stride, len(found))
        self.kernel = device.kernel("conv/grid", T=T, TABLE=short, WORDS=bool(words), W=W, SW=stride[2] if stride[2] <= 2 else 0)
        self.table = _table(device, self._places(found, size, before, stride) if short else np.array(found, np.int32))
        images = max(1, min(N, 4096 // max(self.P, 1)))  # small planes are not worth a work-item each
        self.gs = (-(-N // images), C * len(found))
        self.words = (_words16(N, C, *size, *self.dims, len(found), slack), _words16(*stride, *before, image, plane, images, apart, apart_by))

    def _check(self):
        if max(self.C * self.CS, self.N * self.P) > LARGEST:
            raise TooLarge

    def _short(self, size, stride, phases) -> bool:
        """Rows too short to pay for a loop each, in planes that are no zeros for the most part and whose table is small."""
        inside = prod(-(-i // s) for i, s in zip(size, stride))
        return (stride[2] > 2 or size[2] <= 14 * stride[2]) and self.P <= 2 * inside and phases * self.P <= 1 << 14

    def _places(self, found, size, before, stride):
        """Per element of a plane of each phase: its place in the image, or -1 outside."""
        planes = []
        for phase in found:
            at, inside = 0, True
            for a in range(3):
                i = np.arange(self.dims[a]) * stride[a] + phase[a] - before[a]
                shape = [-1 if b == a else 1 for b in range(3)]
                at, inside = at * size[a] + i.reshape(shape), inside & ((i >= 0) & (i < size[a])).reshape(shape)
            planes.append(np.where(inside, at, -1))
        return np.stack(planes)

    def offset(self, phases, shifts) -> int:
        """Where a tap's plane starts, without its channel."""
        return self.phases[phases] * self.phase + (shifts[0] * self.dims[1] + shifts[1]) * self.dims[2] + shifts[2]

    def fill(self, x, x_off):
        """(buffer, offset) of the grid of image ``x``."""
        if self.kernel is None:
            return x, x_off
        buf = self.device.alloc(self.nbytes)
        launch(self.device, self.kernel, self.gs, (1, 1), x, x_off, buf, 0, self.table, *self.words)
        return buf, 0


def _table(device, array):
    """An int32 table in device memory; it must be addressable by the kernels' 32-bit offsets."""
    array = np.ascontiguousarray(array)
    if array.size and int(array.max()) > LARGEST:
        raise TooLarge
    buf = device.alloc(max(array.size, 1) * 4)
    device.write(buf, array.astype(np.int32))
    return buf


def _met(first, step, count, size) -> bool:
    """Is any of ``count`` places, ``step`` apart, inside an image of ``size``?"""
    start = max(0, -(first // step))
    return start < count and first + start * step < size


def _live_taps(s: Shape):
    """Per dimension, the taps that meet the image at all (one of them at least, so that there is a product)."""
    return [[k for k in range(s.k[a]) if _met(k * s.d[a] - s.p[a][0], s.s[a], s.Y[a], s.I[a])] or [0] for a in range(3)]


def _input_grid(device, T, s: Shape, plain=True, counts=None, live=None, words=""):
    """The grid of a forward pass, and where the taps start in it: all of them, or those of ``live`` per dimension."""
    live = live or [range(k) for k in s.k]
    lead = [taps[0] * d for taps, d in zip(live, s.d)]
    taps = [[((k * s.d[a] - lead[a]) % s.s[a], (k * s.d[a] - lead[a]) // s.s[a]) for k in live[a]] for a in range(3)]
    grid = Grid(device, T, s.N, s.C, s.I, tuple(p[0] - n for p, n in zip(s.p, lead)), s.s, counts or s.Y, taps, plain, words)
    where = [grid.offset(tuple(t[0] for t in tap), tuple(t[1] for t in tap)) for tap in product(*taps)]
    return grid, where


def _padded_grid(device, T, s: Shape, plain=True, words=""):
    """The image between zeros, not in phases, for kernels that step over it by the stride; and where the taps start in it."""
    reach = tuple((y - 1) * step + 1 for y, step in zip(s.Y, s.s))
    taps = [[(0, k * d) for k in range(n)] for n, d in zip(s.k, s.d)]
    grid = Grid(device, T, s.N, s.C, s.I, tuple(p[0] for p in s.p), (1, 1, 1), reach, taps, plain, words)
    return grid, [grid.offset((0, 0, 0), tuple(shift for _, shift in tap)) for tap in product(*taps)]


def _phases(size, kernel, stride, before, dilation, outputs):
    """Per phase of one dimension of the input: (first index, count, [(tap, output index - position)]) of the taps that meet an output at all."""
    found = []
    for a in range(stride):
        first = (a - before) % stride
        count = -(-(size - first) // stride)
        taps = [(k, (first + before - k * dilation) // stride) for k in range(kernel) if (first + before - k * dilation) % stride == 0]
        if count > 0:
            found.append((first, count, [(k, e) for k, e in taps if _met(e, 1, count, outputs)]))
    return found


class Reach:
    """Which taps of the outermost dimension meet the image, at each place of the output along it: only these are steps of a product there.

    Args:
        axis: the dimension; ``first``: per tap, the place in the image that it meets at output 0; ``step``: from one output to the next.
        size, count: places of the image and of the output; ``row``: pixels of one place.
    """

    def __init__(self, axis, first, step, size, count, row):
        self.axis, self.first, self.row = axis, first, row
        at = np.array(first)[None, :] + np.arange(count)[:, None] * step
        inside = (at >= 0) & (at < size)
        some = inside.any(1)
        self.low, self.high = np.where(some, inside.argmax(1), len(first)), np.where(some, len(first) - inside[:, ::-1].argmax(1), 0)

    @classmethod
    def of(cls, firsts, steps, sizes, counts):
        """For the outermost dimension of several taps, where the output has several places along it, too."""
        axis = next((a for a in (0, 1) if len(firsts[a]) > 1), None)
        if axis is None or counts[axis] == 1:
            return None
        return cls(axis, firsts[axis], steps[axis], sizes[axis], counts[axis], prod(counts[axis + 1:]))

    def pays(self, pixels, small) -> bool:
        """Are steps saved that cost more than another order of the weights?"""
        panel = 16 if small else 64
        count = min(pixels, 1 << 14) // panel * panel
        if not count:
            return False
        places = (np.arange(count) // self.row % len(self.low)).reshape(-1, panel)
        share = (self.high[places].max(1) - self.low[places].min(1)).clip(0).mean() / len(self.first)
        return share <= 0.85 and pixels * (1 - share) >= 64

    def steps(self, block):
        """(first, end) per place, in steps of a product whose blocks belong to one tap."""
        return (np.stack([self.low, self.high], 1) * block).reshape(-1)
