"""Launching convolutions: forward, input gradient and weight gradient of 1 to 3 spatial dimensions, on raw contiguous buffers.

All three are matrix products whose patches are never stored. The input is laid out once on a padded *grid* (channels outermost,
one plane per phase of the stride), where the element that a tap meets at a pixel lies at ``table[step] + offset(pixel)``:

* forward: rows = output channels, columns = pixels, steps = (channel, tap);
* input gradient: the same product on the grid of the output gradient, once per phase of the stride, with the taps that meet it;
* weight gradient: rows = output channels, columns = (channel, tap), steps = all positions of the grid.
"""
from __future__ import annotations

import struct
from itertools import product
from math import prod

import numpy as np

from ..runtime.launch import launch
from . import _gemm
from ._gemm import EPILOGUES, Problem, cpu_rows, cpu_tile

_W16, _W8 = struct.Struct("<16q"), struct.Struct("<8q")
_plans: dict = {}


def output_size(size, kernel, stride, padding, dilation):
    """Spatial output sizes: (I + pads - D * (K - 1) - 1) // S + 1 per dimension. ``padding`` holds numbers or (before, after) pairs."""
    return tuple((i + sum(_pair(p)) - d * (k - 1) - 1) // s + 1 for i, k, s, p, d in zip(size, kernel, stride, padding, dilation))


def _pair(p):
    return p if isinstance(p, tuple) else (p, p)


def _words16(*values):
    return _W16.pack(*values, *[0] * (16 - len(values)))


def _words8(*values):
    return _W8.pack(*values, *[0] * (8 - len(values)))


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
    """

    def __init__(self, device, T, N, C, size, before, stride, counts, taps, plain=True):
        self.device, self.T, self.N, self.C = device, T, N, C
        need = [count + max(shift for _, shift in t) for count, t in zip(counts, taps)]
        self.plain = (plain and T.c == T.acc and stride == (1, 1, 1) and before == (0, 0, 0) and all(n <= i for n, i in zip(need, size)))
        if self.plain:  # the image is its own grid
            self.dims, self.P, self.CS, self.phases = size, C * prod(size), prod(size), {(0, 0, 0): 0}
            self.kernel = None
            return
        if stride == (1, 1, 1):  # the zeros in front of a row also serve as those behind the row before it
            for a in (1, 2):
                need[a] = max(counts[a], min(need[a], before[a] + size[a]), need[a] - max(before[a], 0))
        self.dims, self.P = tuple(need), prod(need)
        found = list(dict.fromkeys(product(*[[f for f, _ in t] for t in taps])))
        self.phases = {f: i for i, f in enumerate(found)}
        self.CS = len(found) * N * self.P
        shift = [max(s for _, s in t) if n else max(b, 0) for t, n, b in zip(taps, counts, before)]
        slack = (shift[0] * need[1] + shift[1]) * need[2] + shift[2] + 64
        self.nbytes = (C * self.CS + slack) * T.acc_dtype.itemsize
        W = 8 if T.acc == "double" else 16
        rows = device.is_cpu
        self.kernel = device.kernel("conv/grid", T=T, ROWS=rows, W=W, SW=1 if stride[2] == 1 else 0)
        self.table = _table(device, np.array(found, np.int32))
        self.gs = (N, C * len(found)) if rows else (self.P, N, C * len(found))
        self.ls = (1, 1) if rows else None
        self.words = (_words16(N, C, *size, *self.dims, len(found), slack), _words16(*stride, *before, C * prod(size), prod(size)))

    def offset(self, phases, shifts) -> int:
        """Where a tap's plane starts, without its channel."""
        return self.phases[phases] * self.N * self.P + (shifts[0] * self.dims[1] + shifts[1]) * self.dims[2] + shifts[2]

    def fill(self, x, x_off):
        """(buffer, offset) of the grid of image ``x``."""
        if self.kernel is None:
            return x, x_off
        buf = self.device.alloc(self.nbytes)
        launch(self.device, self.kernel, self.gs, self.ls, x, x_off, buf, 0, self.table, *self.words)
        return buf, 0


def _table(device, array):
    """An int32 table in device memory; it must be addressable by the kernels' 32-bit offsets."""
    array = np.ascontiguousarray(array)
    if array.size and int(array.max()) > 2**31 - 1:
        raise ValueError("conv: the input has more elements than 32-bit offsets can address; split the batch")
    buf = device.alloc(max(array.size, 1) * 4)
    device.write(buf, array.astype(np.int32))
    return buf


class Taps:
    """One product over a grid: weights gathered by ``index``, pixels of ``counts`` written with ``steps`` from ``start`` on.

    Args:
        M, steps_in: rows and input channels per group; ``taps``: list of (grid offset, weight offset).
        weight: strides of the weight tensor (group, row, input channel).
        out: (start, (n, d, h, w strides), row stride, group stride).
    """

    def __init__(self, device, T, grid, M, channels, groups, taps, weight, counts, out, bias, epilogue):
        self.device, self.groups = device, groups
        K = channels * len(taps)
        c, t = np.divmod(np.arange(K), max(len(taps), 1))
        offsets, places = np.array([t[0] for t in taps] or [0], np.int64), np.array([t[1] for t in taps] or [0], np.int64)
        koff, index = c * grid.CS + offsets[t], c * weight[2] + places[t]
        self.koff = _table(device, koff)
        size = T.acc_dtype.itemsize
        self.gather = None
        if T.c != T.acc or weight[:2] != (M * K, K) or not np.array_equal(index, np.arange(K)):
            self.gather = (device.kernel("conv/weights", T=T), (K, M, groups), _table(device, index), _words8(K, M, 0, weight[0], weight[1]),
                           max(groups * M * K * size, 1))
        self.start, strides, rcs, group_out = out
        D, H, Wd = grid.dims
        self.pixels = grid.N * prod(counts)
        head = (M, K, self.pixels, *counts, grid.P, H * Wd, Wd)
        self.y = _words8(*strides, rcs, group_out)
        limit = grid.N * grid.P - (groups - 1) * channels * grid.CS
        tail = (M * K, channels * grid.CS, limit)
        common = dict(TC=T, BIAS="m" if bias else "", EPI=EPILOGUES.get(epilogue, epilogue))
        make = self._cpu if device.is_cpu else self._gpu
        make(T, M, K, head, tail, common, grid.plain)

    def _cpu(self, T, M, K, head, tail, common, plain):
        device = self.device
        W = 8 if T.acc == "double" else 16
        MR, NV = cpu_tile(M, self.pixels, W)
        size = T.acc_dtype.itemsize
        most = device.local_mem * 3 // 4 // (NV * W * size) // 16 * 16
        KB = max(16, min(512, most))
        if T.c != T.acc and K > KB:  # partial sums must not be rounded to 16 bits: keep all steps in one block
            KB = -(-K // 64) * 64
            while NV > 1 and KB * NV * W * size > device.local_mem * 15 // 16:
                NV //= 2
        panels = -(-self.pixels // (NV * W))
        MB = cpu_rows(M, panels * self.groups, MR, device.compute_units, 6)
        self.kernel = device.kernel("conv/cpu", W=W, NV=NV, MR=MR, KB=KB, GUARD=plain, **common)
        self.gs, self.ls = (panels, -(-M // MB), self.groups), (1, 1, 1)
        self.words = _words16(*head, MB, *tail)

    def _gpu(self, T, M, K, head, tail, common, plain):
        device = self.device
        side = 16 if device.max_work_group >= 256 else 8 if device.max_work_group >= 64 else 1
        TM = 4 if M > 2 * side else 2
        size = T.acc_dtype.itemsize
        BK = 16
        while (BK * (side * (TM + 4) + 2) * size + side * 4 * 12) > min(device.local_mem, 16384):
            BK //= 2
        self.kernel = device.kernel("conv/gpu", LX=side, LY=side, TM=TM, TN=4, BK=BK, **common)
        self.gs = (-(-self.pixels // (side * 4)) * side, -(-M // (side * TM)) * side, self.groups)
        self.ls = (side, side, 1)
        self.words = _words16(*head, 0, *tail)

    def weights(self, w, w_off):
        if self.gather is None:
            return w, w_off
        kernel, gs, index, words, nbytes = self.gather
        buf = self.device.alloc(nbytes)
        launch(self.device, kernel, gs, None, w, w_off, buf, 0, index, words)
        return buf, 0

    def run(self, weights, grid, y, y_off, bias):
        b, b_off = bias if bias is not None else (y, 0)
        launch(self.device, self.kernel, self.gs, self.ls, *weights, *grid, y, y_off + self.start, b, b_off, self.koff, self.words, self.y)


# ---- plans -------------------------------------------------------------------------------------------------------------------

def _forward_taps(s: Shape, a: int):
    """Per tap of dimension ``a``: (phase, shift) in the grid of the input."""
    return [(k * s.d[a] % s.s[a], k * s.d[a] // s.s[a]) for k in range(s.k[a])]


def _input_grid(device, T, s: Shape, plain=True):
    taps = [_forward_taps(s, a) for a in range(3)]
    grid = Grid(device, T, s.N, s.C, s.I, tuple(p[0] for p in s.p), s.s, s.Y, taps, plain)
    where = [grid.offset(tuple(t[0] for t in tap), tuple(t[1] for t in tap)) for tap in product(*taps)]
    return grid, where


class Forward:
    def __init__(self, device, T, s: Shape, bias, epilogue):
        self.grid, where = _input_grid(device, T, s)
        taps = [(offset, i) for i, offset in enumerate(where)]
        row, (_, H, W) = prod(s.Y), s.Y
        self.taps = Taps(device, T, self.grid, s.Og, s.Cg, s.groups, taps, (s.Og * s.Cg * s.taps, s.Cg * s.taps, s.taps), s.Y,
                         (0, (s.O * row, H * W, W, 1), row, s.Og * row), bias, epilogue)

    def run(self, x, x_off, w, w_off, y, y_off, bias):
        self.taps.run(self.taps.weights(w, w_off), self.grid.fill(x, x_off), y, y_off, bias)


def _phases(size, kernel, stride, before, dilation):
    """Per phase of one dimension of the input: (first index, count, [(tap, output index - position)])."""
    found = []
    for a in range(stride):
        first = (a - before) % stride
        count = -(-(size - first) // stride)
        taps = [(k, (first + before - k * dilation) // stride) for k in range(kernel) if (first + before - k * dilation) % stride == 0]
        if count > 0:
            found.append((first, count, taps))
    return found


class BackwardInput:
    def __init__(self, device, T, s: Shape, bias, epilogue):
        phases = [_phases(s.I[a], s.k[a], s.s[a], s.p[a][0], s.d[a]) for a in range(3)]
        lowest = [min(min((e for _, e in taps), default=0) for _, _, taps in dim) for dim in phases]
        reads = [[(0, max(e - low + count for _, count, taps in dim for _, e in taps or [(0, low)]))] for dim, low in zip(phases, lowest)]
        # One grid serves all phases: it must reach as far as the furthest tap of any of them.
        self.grid = Grid(device, T, s.N, s.O, s.Y, tuple(-low for low in lowest), (1, 1, 1), (0, 0, 0), reads)
        row, (_, H, W) = prod(s.I), s.I
        weight = (s.Og * s.Cg * s.taps, s.taps, s.Cg * s.taps)
        self.parts = []
        for combo in product(*phases):
            first, counts = [c[0] for c in combo], tuple(c[1] for c in combo)
            taps = [(self.grid.offset((0, 0, 0), tuple(e - low for (_, e), low in zip(tap, lowest))),
                     (tap[0][0] * s.k[1] + tap[1][0]) * s.k[2] + tap[2][0]) for tap in product(*[c[2] for c in combo])]
            out = ((first[0] * H + first[1]) * W + first[2], (s.C * row, s.s[0] * H * W, s.s[1] * W, s.s[2]), row, s.Cg * row)
            self.parts.append(Taps(device, T, self.grid, s.Cg, s.Og, s.groups, taps, weight, counts, out, bias, epilogue))

    def run(self, dy, dy_off, w, w_off, dx, dx_off, bias):
        grid = self.grid.fill(dy, dy_off)
        for part in self.parts:
            part.run(part.weights(w, w_off), grid, dx, dx_off, bias)


class BackwardWeight:
    def __init__(self, device, T, s: Shape):
        self.x_grid, where = _input_grid(device, T, s, False)
        g = self.x_grid
        self.y_grid = Grid(device, T, s.N, s.O, s.Y, (0, 0, 0), (1, 1, 1), g.dims, [[(0, 0)]] * 3, False)
        columns = (np.arange(s.Cg)[:, None] * g.CS + np.array(where)[None, :]).reshape(-1)
        self.columns = _table(device, columns)
        K, n, acc = s.N * g.P, s.Cg * s.taps, T.acc_dtype
        problem = Problem(acc, acc, T, s.Og, n, K, (K, 1), (1, 0), n, (1, s.groups), ((0, 0, 0), (s.Og * K, s.Cg * g.CS, s.Og * n)),
                          1.0, 0.0, "", "", True)
        self.plan = _gemm.Plan(device, problem)

    def run(self, x, x_off, dy, dy_off, dw, dw_off):
        self.plan.run(*self.y_grid.fill(dy, dy_off), *self.x_grid.fill(x, x_off), dw, dw_off, None, 0, self.columns)


# ---- the entries ---------------------------------------------------------------------------------------------------------------

def _plan(cls, device, dtype, x_shape, w_shape, stride, padding, dilation, groups, *rest):
    key = (cls, device, dtype, x_shape, w_shape, stride, padding, dilation, groups, *rest)
    plan = _plans.get(key)
    if plan is None:
        if len(_plans) > 2048:
            _plans.clear()
        plan = _plans[key] = cls(device, dtype, Shape(x_shape, w_shape, stride, padding, dilation, groups), *rest)
    return plan


def conv_forward(device, dtype, x, x_off, x_shape, w, w_off, w_shape, y, y_off, stride, padding, dilation, groups=1, bias=None, epilogue=""):
    """Enqueue y = epilogue(conv(x, w) + bias).

    Args:
        x_shape: (N, C, *spatial); ``w_shape``: (O, C // groups, *kernel), both contiguous; 1 to 3 spatial dimensions.
        stride, padding, dilation: tuples, one entry per spatial dimension; a padding may be a (before, after) pair.
        bias: (buffer, offset) of O values, or None; ``epilogue`` as in :func:`clnn.ops._gemm.gemm`.
    """
    if 0 in x_shape or 0 in w_shape:
        return
    plan = _plan(Forward, device, dtype, x_shape, w_shape, stride, padding, dilation, groups, bias is not None, epilogue)
    plan.run(x, x_off, w, w_off, y, y_off, bias)


def conv_backward_input(device, dtype, dy, dy_off, w, w_off, dx, dx_off, x_shape, w_shape, stride, padding, dilation, groups=1,
                        bias=None, epilogue=""):
    """Enqueue the gradient of ``x`` (also the forward pass of a transposed convolution, whose bias has C values)."""
    if 0 in x_shape or 0 in w_shape:
        return
    plan = _plan(BackwardInput, device, dtype, x_shape, w_shape, stride, padding, dilation, groups, bias is not None, epilogue)
    plan.run(dy, dy_off, w, w_off, dx, dx_off, bias)


def conv_backward_weight(device, dtype, x, x_off, dy, dy_off, dw, dw_off, x_shape, w_shape, stride, padding, dilation, groups=1):
    """Enqueue the gradient of the weights, of shape (O, C // groups, *kernel)."""
    if 0 in x_shape or 0 in w_shape:
        return
    _plan(BackwardWeight, device, dtype, x_shape, w_shape, stride, padding, dilation, groups).run(x, x_off, dy, dy_off, dw, dw_off)
