"""Launching convolutions: forward, input gradient and weight gradient of 1 to 3 spatial dimensions, on raw contiguous buffers.

All three are matrix products whose patches are never stored. On CPUs (GPUs: see :mod:`._conv_gpu`) the input is laid out once on a padded *grid*
(channels outermost, one plane per phase of the stride), where the element that a tap meets at a pixel lies at ``table[step] + offset(pixel)``:

* forward: rows = output channels, columns = pixels, steps = (channel, tap);
* input gradient: the same product on the grid of the output gradient, once per phase of the stride, with the taps that meet it;
* weight gradient (in :mod:`._conv_weight`): output channels x (channel, tap), steps = pixels.

Strides and short rows go another way, from the image as it lies: :mod:`._conv_direct`; one channel per group: :mod:`._conv_planes`, :mod:`._conv_depthwise`.
"""
from __future__ import annotations

import struct
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np

from ..core import symbols
from ..core.config import config
from ..runtime.launch import launch
from ..runtime.params import on_change, parameters_for
from . import _conv_direct, _conv_gpu, _gemm_words
from ._conv_depthwise import Depthwise, DepthwiseItems
from ._conv_grid import Grid, Reach, Shape, TooLarge, _input_grid, _live_taps, _phases, _table, _words8, _words16, output_size
from ._conv_planes import Planes
from ._gemm import EPILOGUES, SMALL, adding, cpu_rows, cpu_tile, even_steps, small_tile, tuned_tile

_plans: dict = symbols.kept()
on_change(_plans.clear)


def most_steps(device, nbytes: int) -> int:
    """Steps of K whose panel of ``nbytes`` per step fits local memory."""
    return max(16, min(768 if device.wide else 512, device.local_mem * 3 // 4 // nbytes // 16 * 16))


def out_dtype(device, T, K):
    """What a product of K steps writes: T, unless partial sums pass through the result and must not be rounded to 16 bits."""
    return T.acc_dtype if T.c != T.acc and K > most_steps(device, 256) else T


class Narrow:
    """The copy of a wide result into its 16-bit place."""

    def __init__(self, device, T, count):
        self.device, self.nbytes = device, count * T.acc_dtype.itemsize
        self.kernel, self.gs, self.ls, dims = adding(device, T, 1, count, 1, (count, 1))
        self.words = dims, struct.pack("<f", 1.0), struct.pack("<f", 0.0)

    def wide(self):
        return self.device.alloc(self.nbytes)

    def finish(self, wide, y, y_off):
        launch(self.device, self.kernel, self.gs, self.ls, wide, 0, y, y_off, y, 0, *self.words)


class Phase(NamedTuple):
    """The product of one phase of a strided input gradient, or the whole of any other convolution.

    ``taps``: list of (grid offset, weight offset); ``start``: where its first pixel lies in the output; ``counts``: its pixels per dimension.
    """

    taps: list
    start: int
    counts: tuple
    reach: Reach | None = None


class Taps:
    """Products over a grid, one per phase: weights gathered by the offsets of the taps, pixels written from the start of the phase on.

    Args:
        M, channels: rows and input channels per group; ``phases``: which one launch computes; see :meth:`meet`.
        weight: strides of the weight tensor (group, row, input channel).
        out: ((n, d, h, w strides), row stride, group stride).
        words: the grid is one of words of two channels.
    """

    def __init__(self, device, T, grid, M, channels, groups, phases, weight, out, bias, epilogue, steps=0, words=""):
        self.device, self.groups, self.words_use = device, groups, _gemm_words.spelling(device) if words else ""
        each = 2 if words else 1
        channels //= each
        counts = phases[0].counts
        self.pixels = grid.N * prod(counts)
        K = [channels * len(phase.taps) for phase in phases]
        self.small = M * sum(K) * self.pixels * groups <= SMALL
        epilogue = EPILOGUES.get(epilogue, epilogue)
        few = not words and self._are_few(M, sum(K) / len(K), grid, counts, epilogue)
        axis = None if few else self._axis(phases)
        index, self.furthest = self._tables(phases, channels, each * weight[2], grid, axis)
        total, size = sum(K), T.acc_dtype.itemsize
        self.gather = None
        if T.c != T.acc or weight[:2] != (M * total, total) or not np.array_equal(index, np.arange(total)):
            size_of = -(-total // 256), -(-M // 8), groups
            self.gather = (device.kernel("conv/weights", T=T, BLOCK=True, WORDS=bool(words)), size_of, _table(device, index),
                           _words8(total, M, 0, weight[0], weight[1], weight[2]), max(groups * M * total * size, 1))
        strides, rcs, group_out = out
        D, H, Wd = grid.dims
        head = (M, total, self.pixels, *counts, grid.P, H * Wd, Wd)
        self.y = _words8(*strides, rcs, group_out)
        limit = grid.N * grid.P - (groups - 1) * channels * grid.CS
        tail = (M * total, channels * grid.CS, limit)
        common = dict(TC=T, BIAS="m" if bias else "", EPI=epilogue)
        if few:
            self._few(T, M, head, tail, common, steps or total, len(phases))
        else:
            self._cpu(T, M, max(K), head, tail, common, steps or total, axis, grid.plain, len(phases))

    @staticmethod
    def meet(phases) -> bool:
        """Can one launch compute all of ``phases``? Their pixels must be the same places of the grid."""
        return len({phase.counts for phase in phases}) == 1

    def _axis(self, phases):
        """The dimension along which steps that meet no image are left out, where that pays."""
        return next((p.reach.axis for p in phases if p.reach and p.reach.pays(self.pixels, self.small)), None)

    def _tables(self, phases, channels, channel_step, grid, axis):
        """Upload what is known of steps and phases; gives the places of the weights, and the furthest step in the grid."""
        index, koff, reaches, ends, begin = [], [], [], [], 0
        for phase in phases:
            reach = phase.reach if axis is not None and phase.reach and phase.reach.axis == axis else None
            blocks = len(reach.first) if reach else 1           # taps of one depth (or row) and all channels follow each other
            each, K = len(phase.taps) // blocks, channels * len(phase.taps)
            b, c, t = np.unravel_index(np.arange(K), (blocks, channels, max(each, 1)))
            offsets, places = np.array(phase.taps or [(0, 0)], np.int64)[b * each + t].T
            koff.append(c * grid.CS + offsets)
            index.append(c * channel_step + places)
            if axis is not None:
                reaches.append(begin + (reach.steps(K // blocks) if reach else np.tile((0, K), phase.counts[axis])))
            ends.append((begin, begin + K, phase.start, *phase.counts))
            begin += K
        koff = np.concatenate(koff)
        self.koff = _table(self.device, np.concatenate([koff, *reaches, *ends]))
        return np.concatenate(index), int(koff.max(initial=0))

    def _are_few(self, M, K, grid, counts, epilogue) -> bool:
        """Few output channels, on a grid whose places that are no pixels cost less than copies of the pixels would.

        Costs are in rows by steps: copying a step costs some 8 rows, storing a row some 30 steps, a step read in place a tenth more.
        """
        if self.small or M > 32 or grid.plain or self.pixels < 16 or epilogue and "VT" not in epilogue:
            return False
        if any(count > size for count, size in zip(counts, grid.dims)):     # pixels past the grid's rows, where those of the next image begin
            return False
        waste = grid.P / prod(counts)
        return waste * M * (1.1 * K + 30) < K * (M + 8) + 30 * M

    def _few(self, T, M, head, tail, common, steps, phases):
        device = self.device
        W, wide = device.lanes(T.acc), device.wide
        common["TC"] = out_dtype(device, T, steps)
        positions = head[2] // prod(head[3:6]) * head[6]
        MR = -(-M // -(-M // (8 if wide else 6)))
        NV = (4 if M <= 6 else 3 if positions >= 4096 else 2) if wide else 3 if MR <= 4 else 2    # the grid has room for 64 elements past its end
        panels = -(-positions // (NV * W))
        share = max(1, panels // (16 * device.compute_units))
        self.kernel = device.kernel("conv/few", TB=T, W=W, NV=NV, MR=MR, **common)
        self.gs, self.ls = (-(-panels // share), 1, self.groups), (1, 1, 1)
        self.words = _words16(*head[:2], positions, *head[3:], share, *tail, 0, 0, phases)

    def _cpu(self, T, M, K, head, tail, common, steps, axis, plain, phases):
        device = self.device
        W = device.lanes(T.acc)
        MR, NV = small_tile(M) if self.small else cpu_tile(device, M, self.pixels, W)
        row = parameters_for(device, "conv2d", f"{T.name}/", M, self.pixels, K)
        if row:
            MR, NV = tuned_tile(row, M, MR, NV)
        KB = most_steps(device, NV * W * T.acc_dtype.itemsize)
        panels = -(-self.pixels // (NV * W))
        MB = cpu_rows(M, panels * self.groups, MR, device.compute_units, 6)
        common["TC"] = out_dtype(device, T, steps)
        self.kernel = device.kernel("conv/cpu", TB=T, W=W, NV=NV, MR=MR, KB=KB, GUARD=plain, REACH=axis, USE=self.words_use, **common)
        self.gs, self.ls = (panels, -(-M // MB), self.groups), (1, 1, 1)
        self.words = _words16(*head, MB, *tail, even_steps(K, KB), self.furthest, phases)

    def weights(self, w, w_off):
        if self.gather is None:
            return w, w_off
        kernel, gs, index, words, nbytes = self.gather
        buf = self.device.alloc(nbytes)
        launch(self.device, kernel, gs, None, w, w_off, buf, 0, index, words)
        return buf, 0

    def run(self, weights, grid, y, y_off, bias):
        b, b_off = bias if bias is not None else (y, 0)
        launch(self.device, self.kernel, self.gs, self.ls, *weights, *grid, y, y_off, b, b_off, self.koff, self.words, self.y)


class Winograd:
    """A 3 x 3 product of stride 1 with fewer multiplications; takes the place of :class:`Taps` where the sizes pay for it."""

    def __init__(self, device, T, grid, s, M, C, weight, flip, size, bias, epilogue):
        self.device, self.groups = device, s.groups
        tiles = [-(-n // 2) for n in size[1:]]
        count = s.N * prod(tiles)
        # Few registers come with small second caches, too: smaller panels keep their transforms there.
        W, MR, NV = (16, 6, 4) if device.wide else (8, 4, 3)
        NR = NV * W
        slots = min(-(-count // NR), 2 * device.compute_units)
        blocks = max(1, min(-(-device.compute_units // (slots * s.groups)), M // 32))      # each transforms the inputs again
        MB = M if blocks == 1 else -(-(-(-M // blocks)) // MR) * MR
        while 0 < M % MB < MR:                                                          # the last block needs a whole tile of rows
            MB += MR
        blocks = -(-M // MB)
        self.gs = (slots, blocks, s.groups)
        self.nbytes = slots * blocks * s.groups * 16 * (NR * (C + MB) + 32) * 4
        self.kernel = device.kernel("conv/winograd", W=W, NV=NV, MR=MR, BIAS="m" if bias else "", EPI=EPILOGUES.get(epilogue, epilogue))
        self.weigh = device.kernel("conv/winograd_weights")
        row = prod(size)
        self.words = _words16(M, C, count, *tiles, *size[1:], grid.P, grid.dims[2], grid.CS, MB)
        self.y = _words8(s.groups * M * row, size[2], row, M * row)
        self.weight_words, self.weight_bytes = _words8(C, M, *weight, flip), s.groups * 16 * M * C * 4
        self.weight_gs = (C, M, s.groups)

    @staticmethod
    def suits(device, T, s, M, C, size, epilogue) -> bool:
        """Is it valid, and are there enough channels and tiles to pay for the transforms?"""
        epilogue = EPILOGUES.get(epilogue, epilogue)
        tiles = s.N * -(-size[1] // 2) * -(-size[2] // 2)
        return Winograd.possible(device, T, s) and C >= 32 and M >= 32 and tiles >= 48 and (not epilogue or "VT" in epilogue)

    @staticmethod
    def suits_back(device, T, s, epilogue) -> bool:
        """As :meth:`suits`, for the gradient of the input."""
        return Winograd.suits(device, T, s, s.Cg, s.Og, s.I, epilogue) and all(p[0] <= 2 for p in s.p)

    @staticmethod
    def possible(device, T, s) -> bool:
        return device.is_cpu and T.name == "float32" and s.k == (1, 3, 3) and s.s == s.d == (1, 1, 1) and s.Y[0] == s.I[0] == 1

    @staticmethod
    def counts(size):
        """Positions of the grid that whole tiles read."""
        return (size[0], size[1] + size[1] % 2, size[2] + size[2] % 2)

    def weights(self, w, w_off):
        buf = self.device.alloc(self.weight_bytes)
        launch(self.device, self.weigh, self.weight_gs, None, w, w_off, buf, 0, self.weight_words)
        return buf, 0

    def run(self, weights, grid, y, y_off, bias):
        b, b_off = bias if bias is not None else (y, 0)
        scratch = self.device.alloc(self.nbytes)
        launch(self.device, self.kernel, self.gs, (1, 1, 1), *weights, *grid, y, y_off, b, b_off, scratch, self.words, self.y)


# ---- plans -------------------------------------------------------------------------------------------------------------------

def _forward(device, T, s: Shape, bias, epilogue):
    if DepthwiseItems.suits(device, s, epilogue, True):
        return DepthwiseItems(device, T, s, True, bias, epilogue)
    rows = Depthwise.suits(device, T, s, epilogue, s.Y[1:], s.s[1:])
    if Planes.beats(device, T, s, True, rows) and Planes.suits(device, T, s, epilogue, True):
        return Planes(device, T, s, True, bias, epilogue)
    if rows:
        before = [p[0] for p in s.p[1:]]
        return Depthwise(device, T, s.N, s.O, s.Og, s.I[1:], s.Y[1:], s.k[1:], s.s[1:], before, s.d[1:], 0, bias, epilogue)
    if not device.is_cpu:
        return _conv_gpu.forward(device, T, s, bias, epilogue)
    if not Winograd.suits(device, T, s, s.Og, s.Cg, s.Y, epilogue) and _conv_direct.suits_forward(device, T, s, epilogue):
        return _conv_direct.forward(device, T, s, bias, epilogue)
    return Forward(device, T, s, bias, epilogue)


def _backward_input(device, T, s: Shape, bias, epilogue):
    if DepthwiseItems.suits(device, s, epilogue, False):
        return DepthwiseItems(device, T, s, False, bias, epilogue)
    rows = s.Og == 1 and s.s == (1, 1, 1) and Depthwise.suits(device, T, s, epilogue, s.I[1:], (1, 1))
    if Planes.beats(device, T, s, False, rows) and Planes.suits(device, T, s, epilogue, False):
        return Planes(device, T, s, False, bias, epilogue)
    if rows:
        before = [d * (k - 1) - p[0] for d, k, p in zip(s.d[1:], s.k[1:], s.p[1:])]
        return Depthwise(device, T, s.N, s.C, 1, s.Y[1:], s.I[1:], s.k[1:], (1, 1), before, s.d[1:], 1, bias, epilogue)
    if not device.is_cpu:
        return _conv_gpu.backward_input(device, T, s, bias, epilogue)
    if not Winograd.suits_back(device, T, s, epilogue) and _conv_direct.suits_backward_input(device, T, s, epilogue):
        return _conv_direct.backward_input(device, T, s, bias, epilogue)
    return BackwardInput(device, T, s, bias, epilogue)


class Forward:
    def __init__(self, device, T, s: Shape, bias, epilogue):
        self.narrow = None
        row, (_, H, W) = prod(s.Y), s.Y
        if Winograd.suits(device, T, s, s.Og, s.Cg, s.Y, epilogue):
            self.grid, _ = _input_grid(device, T, s, False, Winograd.counts(s.Y))
            self.taps = Winograd(device, T, self.grid, s, s.Og, s.Cg, (s.Og * s.Cg * 9, s.Cg * 9, 9), 0, s.Y, bias, epilogue)
            return
        live = _live_taps(s)
        words = "channels" if _gemm_words.suits_conv(device, T, s.Og, s.Cg, s.N * row) else ""
        steps = s.Cg * s.taps // (2 if words else 1)
        self.grid, where = _input_grid(device, T, s, live=live, words=words)
        taps = [(offset, (d * s.k[1] + h) * s.k[2] + w) for offset, (d, h, w) in zip(where, product(*live))]
        reach = Reach.of([[k * s.d[a] - s.p[a][0] for k in live[a]] for a in range(3)], s.s, s.I, s.Y)
        self.taps = Taps(device, T, self.grid, s.Og, s.Cg, s.groups, [Phase(taps, 0, s.Y, reach)], (s.Og * s.Cg * s.taps, s.Cg * s.taps, s.taps),
                         ((s.O * row, H * W, W, 1), row, s.Og * row), bias, epilogue, steps, words)
        if out_dtype(device, T, steps) is not T:
            self.narrow = Narrow(device, T, s.N * s.O * row)

    def run(self, x, x_off, w, w_off, y, y_off, bias):
        if self.narrow is None:
            self.taps.run(self.taps.weights(w, w_off), self.grid.fill(x, x_off), y, y_off, bias)
            return
        wide = self.narrow.wide()
        self.taps.run(self.taps.weights(w, w_off), self.grid.fill(x, x_off), wide, 0, bias)
        self.narrow.finish(wide, y, y_off)


class Fill:
    """What phases of the input that no tap meets are left with, written to all of it."""

    def __init__(self, device, TC, TB, N, C, row, bias, epilogue):
        self.device, self.words = device, _words8(C, row)
        self.kernel = device.kernel("conv/fill", TC=TC, TB=TB, BIAS="m" if bias else "", EPI=EPILOGUES.get(epilogue, epilogue))
        self.gs = (-(-row // 4096), N * C)

    def run(self, y, y_off, bias):
        launch(self.device, self.kernel, self.gs, (1, 1), y, y_off, *(bias if bias is not None else (y, 0)), self.words)


class BackwardInput:
    def __init__(self, device, T, s: Shape, bias, epilogue):
        self.narrow = self.empty = None
        if Winograd.suits_back(device, T, s, epilogue):
            taps = [[(0, k) for k in range(n)] for n in s.k]
            self.grid = Grid(device, T, s.N, s.O, s.Y, (0, 2 - s.p[1][0], 2 - s.p[2][0]), (1, 1, 1), Winograd.counts(s.I), taps, False)
            self.parts = [Winograd(device, T, self.grid, s, s.Cg, s.Og, (s.Og * s.Cg * 9, 9, s.Cg * 9), 1, s.I, bias, epilogue)]
            return
        phases = [_phases(s.I[a], s.k[a], s.s[a], s.p[a][0], s.d[a], s.Y[a]) for a in range(3)]
        lowest = [min(min((e for _, e in taps), default=0) for _, _, taps in dim) for dim in phases]
        reads = [[(0, max(e - low + count for _, count, taps in dim for _, e in taps or [(0, low)]))] for dim, low in zip(phases, lowest)]
        # One grid serves all phases: it must reach as far as the furthest tap of any of them.
        row, (_, H, W) = prod(s.I), s.I
        words = "channels" if _gemm_words.suits_conv(device, T, s.Cg, s.Og, s.N * row) else ""
        self.grid = Grid(device, T, s.N, s.O, s.Y, tuple(-low for low in lowest), (1, 1, 1), (0, 0, 0), reads, words=words)
        found, steps = [], s.Og * s.taps // (2 if words else 1)     # one answer for all phases, so that they write one buffer
        for combo in product(*phases):
            first, counts = [c[0] for c in combo], tuple(c[1] for c in combo)
            taps = [(self.grid.offset((0, 0, 0), tuple(e - low for (_, e), low in zip(tap, lowest))),
                     (tap[0][0] * s.k[1] + tap[1][0]) * s.k[2] + tap[2][0]) for tap in product(*[c[2] for c in combo])]
            if not taps:
                self.empty = Fill(device, out_dtype(device, T, steps), T, s.N, s.C, row, bias, epilogue)
                continue
            reach = Reach.of([[e for _, e in tap] for tap in (c[2] for c in combo)], (1, 1, 1), s.Y, counts)
            found.append(Phase(taps, (first[0] * H + first[1]) * W + first[2], counts, reach))
        together = [found] if Taps.meet(found) else [[phase] for phase in found]
        self.parts = [Taps(device, T, self.grid, s.Cg, s.Og, s.groups, some, (s.Og * s.Cg * s.taps, s.taps, s.Cg * s.taps),
                           ((s.C * row, s.s[0] * H * W, s.s[1] * W, s.s[2]), row, s.Cg * row), bias, epilogue, steps, words) for some in together]
        if out_dtype(device, T, steps) is not T:
            self.narrow = Narrow(device, T, s.N * s.C * row)

    def run(self, dy, dy_off, w, w_off, dx, dx_off, bias):
        grid = self.grid.fill(dy, dy_off)
        out, off = (dx, dx_off) if self.narrow is None else (self.narrow.wide(), 0)
        if self.empty is not None:
            self.empty.run(out, off, bias)
        for part in self.parts:
            part.run(part.weights(w, w_off), grid, out, off, bias)
        if self.narrow is not None:
            self.narrow.finish(out, dx, dx_off)


# ---- the entries ---------------------------------------------------------------------------------------------------------------

def _plan(cls, device, dtype, x_shape, w_shape, stride, padding, dilation, groups, *rest):
    key = (cls, device, dtype, x_shape, w_shape, stride, padding, dilation, groups, config.tensor_cores, *rest)
    plan = _plans.get(key)
    if plan is None:
        if len(_plans) > 2048:
            _plans.clear()
        shape = Shape(x_shape, w_shape, stride, padding, dilation, groups)
        try:
            plan = _plans[key] = cls(device, dtype, shape, *rest)
        except TooLarge:
            if shape.N == 1:
                raise
            return None
    return plan


def _halves(x_shape):
    """(images before, shape) of both halves of a batch."""
    half = x_shape[0] // 2
    return (0, (half, *x_shape[1:])), (half, (x_shape[0] - half, *x_shape[1:]))


def conv_forward(device, dtype, x, x_off, x_shape, w, w_off, w_shape, y, y_off, stride, padding, dilation, groups=1, bias=None, epilogue=""):
    """Enqueue y = epilogue(conv(x, w) + bias), in parts where the batch is too large for one launch.

    Args:
        x_shape: (N, C, *spatial); ``w_shape``: (O, C // groups, *kernel), both contiguous; 1 to 3 spatial dimensions.
        stride, padding, dilation: tuples, one entry per spatial dimension; a padding may be a (before, after) pair.
        bias: (buffer, offset) of O values, or None; ``epilogue`` as in :func:`clnn.ops._gemm.gemm`.
    """
    if 0 in x_shape or 0 in w_shape or device.kind == "meta":
        return
    plan = _plan(_forward, device, dtype, x_shape, w_shape, stride, padding, dilation, groups, bias is not None, epilogue)
    if plan is not None:
        plan.run(x, x_off, w, w_off, y, y_off, bias)
        return
    image, result = prod(x_shape[1:]), w_shape[0] * prod(output_size(x_shape[2:], w_shape[2:], stride, padding, dilation))
    for n, part in _halves(x_shape):
        conv_forward(device, dtype, x, x_off + n * image, part, w, w_off, w_shape, y, y_off + n * result, stride, padding, dilation, groups, bias, epilogue)


def conv_backward_input(device, dtype, dy, dy_off, w, w_off, dx, dx_off, x_shape, w_shape, stride, padding, dilation, groups=1,
                        bias=None, epilogue=""):
    """Enqueue the gradient of ``x`` (also the forward pass of a transposed convolution, whose bias has C values)."""
    if 0 in x_shape or 0 in w_shape or device.kind == "meta":
        return
    plan = _plan(_backward_input, device, dtype, x_shape, w_shape, stride, padding, dilation, groups, bias is not None, epilogue)
    if plan is not None:
        plan.run(dy, dy_off, w, w_off, dx, dx_off, bias)
        return
    image, result = prod(x_shape[1:]), w_shape[0] * prod(output_size(x_shape[2:], w_shape[2:], stride, padding, dilation))
    for n, part in _halves(x_shape):
        conv_backward_input(device, dtype, dy, dy_off + n * result, w, w_off, dx, dx_off + n * image, part, w_shape, stride, padding, dilation, groups,
                            bias, epilogue)
