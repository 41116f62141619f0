"""Convolutions and their gradients on GPUs: products whose patches are gathered from the image as it lies, without a padded copy.

* forward: rows = output channels, columns = pixels, steps = (channel, tap);
* input gradient: the same on the image of output gradients, one launch for all phases of the stride, each with the taps that meet it;
* weight gradient: rows = output channels, columns = (channel, tap), steps = the pixels of all images.

An element is found at the sum of two places, its pixel's and its tap's, and both know whether they meet inside the image (see ``conv/parts``). Where
blocks are too few for the units, steps are split and the partial results added in a fixed order. No choice depends on timing.
"""
from __future__ import annotations

from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np

from ..core.config import config
from ..runtime.launch import launch
from ..runtime.params import lookup
from . import _conv_grid, _gemm, _gemm_tensor
from ._conv_grid import Shape, TooLarge, _live_taps, _phases, _table, _words8, _words16
from ._gemm import EPILOGUES, Problem

# Blocks: (LX, LY, TM, TN, relative time of a multiply-add), of gpu and of tensor kernels: (WX, WY, MT, NT, the same).
TILES = ((16, 16, 8, 8, 1.0), (8, 16, 8, 8, 1.02), (16, 8, 8, 8, 1.07), (8, 8, 8, 8, 1.09), (16, 4, 8, 8, 1.18), (16, 16, 4, 4, 1.35), (8, 8, 4, 4, 1.5),
         (16, 4, 4, 8, 1.5), (32, 2, 4, 4, 2.0), (1, 1, 4, 4, 9.0))
BLOCKS = {"128x128": (4, 2, 4, 4, 1.0), "64x128": (2, 2, 2, 8, 1.1), "128x64": (2, 2, 4, 4, 1.1), "64x64": (2, 2, 2, 4, 1.35), "32x64": (2, 1, 2, 4, 1.6),
          "32x32": (1, 1, 2, 4, 2.5)}
SPLITS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128)
LAID_OUT = 1 << 32  # multiply-adds from which on weights in the order of steps, 16 bytes at a time, save more than the launch that lays them out
BITS = 31           # tap rows of all dimensions that a mask can name


class Phase(NamedTuple):
    """Pixels of one phase of a strided input gradient, or all of them.

    ``places``: per dimension, where in the image each tap meets the first pixel; ``taps``: which taps those are; ``start``: that pixel in the output;
    ``counts``: pixels per dimension.
    """

    places: list
    taps: list
    start: int
    counts: tuple


# ---- what tells pixels and taps where they are ---------------------------------------------------------------------------------

def _check(phases) -> str:
    return "mask" if max(sum(map(len, phase.places)) for phase in phases) <= BITS else "places"


def _tap_infos(places, size, channels, check, last=0):
    """Infos of (channel, tap) in order, as ``conv/parts`` reads them; of (tap, 8 channels) in an image of ``last`` channels side by side."""
    index = np.meshgrid(*[np.arange(len(p)) for p in places], indexing="ij")
    z, y, x = (np.array(p, np.int64)[i].reshape(-1) for p, i in zip(places, index))
    plane, offsets = prod(size), (z * size[1] + y) * size[2] + x
    found = np.zeros((-(-channels // 8) if last else channels, len(offsets), 2 if check == "mask" else 4), np.int64)
    found[:, :, 0] = np.arange(len(found))[:, None] * (8 if last else plane) + offsets * max(last, 1)
    if check == "mask":
        i, j, k = (i.reshape(-1) for i in index)
        d, h = len(places[0]), len(places[0]) + len(places[1])
        found[:, :, 1] = (1 << i) | (1 << (d + j)) | (1 << (h + k))
    else:
        found[:, :, 1:] = np.stack([z, y, x], 1)
    return (found.swapaxes(0, 1) if last else found).reshape(-1, found.shape[2])


def _pixel_infos(places, counts, stride, size, check, each=1):
    """Per dimension, the infos of its positions, whose sum is that of a pixel; ``each``: elements from one place of the image to the next."""
    rows, below, found = (each * size[1] * size[2], each * size[2], each), 0, []
    for a in range(3):
        at = np.arange(counts[a]) * stride[a]
        one = np.zeros((counts[a], 2 if check == "mask" else 4), np.int64)
        one[:, 0] = at * rows[a]
        if check == "mask":
            inside = at[:, None] + np.array(places[a], np.int64).reshape(1, -1)
            one[:, 1] = (((inside >= 0) & (inside < size[a])) << (below + np.arange(len(places[a])))).sum(1)
            below += len(places[a])
        else:
            one[:, 1 + a] = at
        found.append(one)
    return found


class _Tables:
    """The table of a launch: arrays one after the other, each at a multiple of 16 bytes."""

    def __init__(self):
        self.parts, self.size = [], 0

    def add(self, values):
        """Append; says where, in ints."""
        values, at = np.asarray(values).reshape(-1), self.size
        self.parts += [values, np.zeros(-len(values) % 4, np.int64)]
        self.size += -(-len(values) // 4) * 4
        return at

    def upload(self, device):
        return _table(device, np.concatenate(self.parts))


# ---- choices -------------------------------------------------------------------------------------------------------------------

def _uses_tensor(device, T, M, N, K) -> bool:
    least = _gemm_tensor.SMALLEST
    return (T.itemsize == 2 and T.is_floating_point and min(2 * M, 2 * N) >= least and max(M, N) >= least and K >= _gemm_tensor.SHORTEST
            and T.name in _gemm_tensor.kinds(device))


def _blocks(device, T, tensor, turn=0):
    """[(parameters, rows, columns, work-items, multiply-adds per clock, clocks of passes before)] that the device can take.

    ``turn``: elements of an image that may be laid out with its channels side by side first.
    """
    most = min(device.local_mem, 40960)
    if tensor:
        return _tensor_blocks(device, T, turn)
    found, size = [], T.acc_dtype.itemsize
    for LX, LY, TM, TN, cost in TILES:
        BM, BN = LY * TM, LX * TN
        if LX * LY <= device.max_work_group and TM * TN * size <= 256 and 16 * (BM + BN + 8) * size + 24 * BN <= most:
            found.append((dict(LX=LX, LY=LY, TM=TM, TN=TN, BK=8), BM, BN, LX * LY, 128 / cost, 0))
    return found or [(dict(LX=1, LY=1, TM=2, TN=2, BK=8), 2, 2, 1, 1.0, 0)]


def _tensor_blocks(device, T, turn):
    """Without channels side by side each element is gathered alone for the rows of a block; with them, there are passes over image and weights first."""
    tuned, found = lookup(device, "conv_tensor", T.name) or {}, []
    forms = [last for last in (False, True) if (turn or not last) and (not turn or tuned.get("LAST", last) == last)]
    for name, (WX, WY, MT, NT, cost) in BLOCKS.items():
        BM, BN, items = 16 * MT * WY, 8 * NT * WX, 32 * WX * WY
        if tuned.get("BLOCK", name) == name and items <= device.max_work_group and 128 * (BM + BN + 8) + 24 * BN <= min(device.local_mem, 49152):
            found += [(dict(WX=WX, WY=WY, MT=MT, NT=NT, LAST=last, PTX=config.tensor_cores != "emulate"), BM, BN, items,
                       1 / (cost / 600 + (0 if last else 1 / (9.4 * BM))), turn * 4 / (12 * device.compute_units) + 10000 if last else 0) for last in forms]
    return found


def _choose(device, blocks, M, columns, steps, z, results):
    """(block, splits of K) that take the least time: rounds of blocks over the units, and the partial results' way through memory.

    ``columns``, ``steps``: of each phase; ``z``: groups; ``results``: elements of the output. Clocks are those of a unit that multiplies 128 (600 on tensor
    cores) at a time and moves 16 bytes; with few work-items on a unit, each waits for its own loads.
    """
    best, units, waits = None, device.compute_units, 128 if "MT" in blocks[0][0] else 48
    for block in blocks:
        _, BM, BN, items, rate, before = block
        most = max(1, 384 // items)           # at up to 168 registers
        for splits in SPLITS:
            if splits > 1 and (max(steps) < splits * 64 or results * splits > 1 << 27):
                break
            count = work = 0
            for N, K in zip(columns, steps):
                tiles = -(-M // BM) * -(-N // BN) * z * splits
                share = min(K, -(-(-(-K // splits)) // 32) * 32)
                count, work = count + tiles, work + tiles * (BM * BN * share / rate + 1200)
            each = count / units
            rounds = -(-count // units)
            busy = min(rounds, most) * items
            clocks = before + work / units * rounds / each * (busy + waits) / busy
            if splits > 1:
                clocks += results * (2 * splits + 1) * 4 / (16 * units) + 7000
            if best is None or clocks < best[0]:
                best = clocks, block, splits
    return best[1:]


# ---- the launches --------------------------------------------------------------------------------------------------------------

class _Gathered:
    """What all gathered products share: kernel, splits and the sum of partial results."""

    def __init__(self, device, T, role, M, columns, steps, groups, results, turn=0):
        self.device, self.T, self.role, self.groups, self.sizes = device, T, role, groups, (M, max(columns), len(steps))
        self.tensor = _uses_tensor(device, T, M, max(columns), max(steps))
        self.block, self.splits = _choose(device, _blocks(device, T, self.tensor, turn), M, columns, steps, groups, results)
        self.last, self.results = self.block[0].get("LAST", False), results

    def build(self, check, wide, inner, channels, bias="", epi="", **more):
        """The kernels. ``wide``: strides of both operands along whose neighbours loads may be wide; a channel of the output has ``inner`` elements after
        one another."""
        device, T, tensor, (M, columns, phases), (params, BM, BN, items, *_) = self.device, self.T, self.tensor, self.sizes, self.block
        most = 8 if tensor else min(4, 16 // T.itemsize)
        TC, ends = (T, dict(BIAS=bias, EPI=epi)) if self.splits == 1 else (T.acc_dtype, dict(BIAS="", EPI=""))
        WA, WB = (next(w for w in (8, 4, 2, 1) if w <= most and stride % w == 0) for stride in wide)
        self.variant = "conv/tensor" if tensor else "conv/gpu"
        self.params = dict(ROLE=self.role, CHECK=check, T=T, TC=TC, WA=WA, WB=WB, **params, **ends, **({} if tensor else dict(SPREAD=False) | more))
        self.kernel = device.kernel(self.variant, **self.params)
        self.ls = (items, 1, 1) if tensor else (params["LX"], params["LY"], 1)
        self.gs = (-(-columns // BN) * self.ls[0], -(-M // BM) * self.ls[1], phases * self.splits * self.groups)
        if self.splits > 1:
            W = 4 if self.results % 4 == inner % 4 == 0 and (not epi or "VT" in epi) else 1
            self.scratch = self.splits * self.results * T.acc_dtype.itemsize
            self.add = device.kernel("conv/sum", TC=T, BIAS=bias, EPI=epi, W=W)
            self.add_gs, self.add_words = (-(-self.results // W),), _words8(self.results, self.splits, inner, channels)

    def product(self, a, a_off, x, x_off, y, y_off, bias, table, *words):
        kernel, (b, b_off), WA, WB = self.kernel, bias or (y, 0), self.params["WA"], self.params["WB"]
        if a_off % WA or x_off % WB:
            kernel = self.device.kernel(self.variant, **self.params | dict(WA=1 if a_off % WA else WA, WB=1 if x_off % WB else WB))
        if self.splits == 1:
            launch(self.device, kernel, self.gs, self.ls, a, a_off, x, x_off, y, y_off, b, b_off, table, *words)
            return
        part = self.device.alloc(self.scratch)
        launch(self.device, kernel, self.gs, self.ls, a, a_off, x, x_off, part, 0, part, 0, table, *words)
        launch(self.device, self.add, self.add_gs, None, part, 0, y, y_off, b, b_off, self.add_words)


class Direct:
    """Forward pass or input gradient.

    Args:
        image: (N, channels per group, size); ``M``: rows per group; ``stride``: from pixel to pixel in the image.
        weight: strides of the weight tensor (group, row, channel); ``kernel``: its taps per dimension.
        out: (strides of n, d, h, w, row and group, all elements of a row of one image).
    """

    def __init__(self, device, T, image, groups, M, stride, phases, kernel, weight, out, bias, epilogue):
        self.device = device
        N, channels, size = image
        plane, check = prod(size), _check(phases)
        columns = [N * prod(phase.counts) for phase in phases]
        strides, row = out
        if max(N * groups * channels * plane, *columns) > _conv_grid.LARGEST:
            raise TooLarge
        steps, results = [channels * prod(map(len, phase.taps)) for phase in phases], N * groups * M * row
        self.body = _Gathered(device, T, "pixels", M, columns, steps, groups, results, N * groups * channels * plane if channels % 8 == 0 else 0)
        all_channels = groups * channels if self.body.last else 0
        tables, index, infos, records = _Tables(), [], [], []
        for phase in phases:
            infos.append(_tap_infos(phase.places, size, channels, check, all_channels))
            of = np.array([(d * kernel[1] + h) * kernel[2] + w for d, h, w in product(*phase.taps)], np.int64)
            each = np.arange(channels) * weight[2]
            index.append((of[:, None] + each if self.body.last else each[:, None] + of).reshape(-1))
        total = sum(steps)
        plain = len(phases) == 1 and weight[:2] == (M * total, total) and np.array_equal(index[0], np.arange(total))
        spread = not plain and not self.body.tensor and groups * M * sum(n * k for n, k in zip(columns, steps)) <= LAID_OUT
        if not plain:       # each phase's weights begin at a multiple of 16 bytes, whatever their type
            index = [np.concatenate([i, np.full(-len(i) % 8, -1)]) for i in index]
            infos = infos if self.body.last else [np.concatenate([t, np.zeros((-len(t) % 8, t.shape[1]), np.int64)]) for t in infos]
        K = sum(map(len, index))
        tables.add(np.concatenate(infos))
        for phase, begin, count in zip(phases, np.cumsum([0, *map(len, index)]), steps):
            where = [tables.add(one) for one in _pixel_infos(phase.places, phase.counts, stride, size, check, max(all_channels, 1))]
            records.append([begin, count, phase.start, *phase.counts, *where, 0, 0, 0])
        at, spots = tables.add(records), tables.add(np.concatenate(index)) if spread else 0
        self.table = tables.upload(device)
        self.gather = None if plain or spread else self._gathers(T, M, groups, np.concatenate(index), weight)
        more = dict(SPREAD=True) if spread else {}
        self.body.build(check, (1 if spread else K, 1), row, groups * M, "m" if bias else "", EPILOGUES.get(epilogue, epilogue), **more)
        of_group, of_row = weight[:2] if spread else (M * K, K)
        self.words = (_words16(M, of_row, 0, N, len(phases), self.body.splits, at, spots, 0, 0, of_group, channels * (1 if self.body.last else plane), *size,
                               groups * channels * plane), _words8(*strides, results))
        if self.body.last:
            self.turn = (device.kernel("conv/turn"), (-(-plane // 64) * 32, -(-all_channels // 64) * 8, N), _words8(all_channels, plane),
                         N * all_channels * plane * T.itemsize)

    def _gathers(self, T, M, groups, index, weight):
        K = len(index)
        return (self.device.kernel("conv/weights", T=T, BLOCK=False, WORDS=False), (K, M, groups), _table(self.device, index),
                _words8(K, M, 0, *weight), max(groups * M * K * T.itemsize, 1))

    def run(self, x, x_off, w, w_off, y, y_off, bias):
        if self.gather is not None:
            kernel, gs, index, words, nbytes = self.gather
            laid_out = self.device.alloc(nbytes)
            launch(self.device, kernel, gs, None, w, w_off, laid_out, 0, index, words)
            w, w_off = laid_out, 0
        if self.body.last:
            kernel, gs, words, nbytes = self.turn
            turned = self.device.alloc(nbytes)
            launch(self.device, kernel, gs, (32, 8, 1), x, x_off, turned, 0, words)
            x, x_off = turned, 0
        self.body.product(w, w_off, x, x_off, y, y_off, bias, self.table, *self.words)


class DirectWeight:
    """Weight gradient."""

    def __init__(self, device, T, s: Shape):
        size, P, n = prod(s.I), prod(s.Y), s.Cg * s.taps
        if max(s.N * s.C * size, s.N * s.O * P) > _conv_grid.LARGEST:
            raise TooLarge
        places = [[k * s.d[a] - s.p[a][0] for k in range(s.k[a])] for a in range(3)]
        check, tables = _check([Phase(places, places, 0, s.Y)]), _Tables()
        tables.add(_tap_infos(places, s.I, s.Cg, check))
        where = [tables.add(one) for one in _pixel_infos(places, s.Y, s.s, s.I, check)]
        at = tables.add([0, 0, 0, *s.Y, *where, 0, 0, 0])
        self.table = tables.upload(device)
        even = P if s.taps == 1 and s.I == s.Y and s.s == (1, 1, 1) and not any(map(sum, s.p)) else 1
        self.body = _Gathered(device, T, "taps", s.Og, [n], [s.N * P], s.groups, s.O * n)
        self.body.build(check, (P, even), 1 if n % 4 else 4, 1)
        self.words = (_words16(s.Og, P, n, s.N, 1, self.body.splits, at, s.O * P, 0, 0, s.Og * P, s.Cg * size, *s.I, s.C * size),
                      _words8(0, 0, 0, 0, n, s.Og * n, s.O * n))

    def run(self, x, x_off, dy, dy_off, dw, dw_off):
        self.body.product(dy, dy_off, x, x_off, dw, dw_off, None, self.table, *self.words)


class Pointwise:
    """A 1 x 1 convolution of stride 1, forward or its input gradient: the product of the weights with each image."""

    def __init__(self, device, T, s: Shape, turned, bias, epilogue):
        P, (M, K) = prod(s.I), (s.C, s.O) if turned else (s.O, s.C)
        self.plan = _gemm.Plan(device, Problem(T, T, T, M, P, K, (1, M) if turned else (K, 1), (P, 1), P, (1, s.N), ((0, 0, 0), (0, K * P, M * P)),
                                               1.0, 0.0, "m" if bias else "", EPILOGUES.get(epilogue, epilogue), lanes=device.lanes(T.acc)))

    @staticmethod
    def suits(device, T, s: Shape) -> bool:
        """Images that fill blocks of their own, in rows whose length allows wide loads."""
        P = prod(s.I)
        return (s.taps == s.groups == 1 and s.s == (1, 1, 1) and not any(map(sum, s.p)) and P % (16 // T.itemsize) == 0
                and (P >= 1024 or P % 128 == 0) and min(s.O, s.C) >= 16)

    def run(self, x, x_off, w, w_off, y, y_off, bias):
        self.plan.run(w, w_off, x, x_off, y, y_off, *(bias or ()))


def forward(device, T, s: Shape, bias, epilogue):
    if Pointwise.suits(device, T, s):
        return Pointwise(device, T, s, False, bias, epilogue)
    live, (_, H, W), row = _live_taps(s), s.Y, prod(s.Y)
    places = [[k * s.d[a] - s.p[a][0] for k in live[a]] for a in range(3)]
    return Direct(device, T, (s.N, s.Cg, s.I), s.groups, s.Og, s.s, [Phase(places, live, 0, s.Y)], s.k, (s.Og * s.Cg * s.taps, s.Cg * s.taps, s.taps),
                  ((s.O * row, H * W, W, 1, row, s.Og * row), row), bias, epilogue)


def backward_input(device, T, s: Shape, bias, epilogue):
    if Pointwise.suits(device, T, s):
        return Pointwise(device, T, s, True, bias, epilogue)
    (_, H, W), row, found = s.I, prod(s.I), []
    for combo in product(*[_phases(s.I[a], s.k[a], s.s[a], s.p[a][0], s.d[a], s.Y[a]) for a in range(3)]):
        first = [c[0] for c in combo]
        found.append(Phase([[e for _, e in c[2]] for c in combo], [[k for k, _ in c[2]] for c in combo], (first[0] * H + first[1]) * W + first[2],
                           tuple(c[1] for c in combo)))
    found.sort(key=lambda phase: -prod(map(len, phase.taps)))       # those of most steps first
    return Direct(device, T, (s.N, s.Og, s.Y), s.groups, s.Cg, (1, 1, 1), found, s.k, (s.Og * s.Cg * s.taps, s.taps, s.Cg * s.taps),
                  ((s.C * row, s.s[0] * H * W, s.s[1] * W, s.s[2], row, s.Cg * row), row), bias, epilogue)
