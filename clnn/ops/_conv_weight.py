"""Launching the weight gradients of convolutions: sums over all pixels of output gradients times the elements that each tap met there."""
from __future__ import annotations

from math import prod

import numpy as np

from ..runtime.launch import launch
from . import _gemm, _gemm_words
from ._conv import Winograd, _plan
from ._conv_depthwise import Depthwise, DepthwiseItemsWeight
from ._conv_gpu import DirectWeight
from ._conv_grid import Grid, Shape, _input_grid, _padded_grid, _table, _words8, _words16
from ._conv_planes import PlanesWeight
from ._gemm import Problem


class PointwiseWeight:
    """Weight gradient of a 1 x 1 kernel: dW = sum over n of dY[n] @ X[n].T, straight from the images."""

    def __init__(self, device, T, s: Shape):
        P = prod(s.I)
        self.plan = _gemm.Plan(device, Problem(T, T, T, s.O, s.C, P, (P, 1), (1, P), s.C, (s.N, 1), ((s.O * P, s.C * P, 0), (0, 0, 0)),
                                               1.0, 0.0, "", "", add_batch=True, lanes=device.lanes(T.acc)))

    @staticmethod
    def suits(s: Shape, T) -> bool:
        """One tap per pixel, and few enough weights that a sum per image costs little."""
        return (s.taps == s.groups == 1 and s.s == (1, 1, 1) and not any(map(sum, s.p)) and s.N * s.O * s.C <= 1 << 20
                and prod(s.I) >= 128 and T.c == T.acc)

    def run(self, x, x_off, dy, dy_off, dw, dw_off):
        self.plan.run(dy, dy_off, x, x_off, dw, dw_off)


def _backward_weight(device, T, s: Shape):
    if not device.is_cpu:
        return (DepthwiseItemsWeight if DepthwiseItemsWeight.suits(device, s) else DirectWeight)(device, T, s)
    rows = DepthwiseWeight.suits(device, T, s)
    kinds = ((PlanesWeight, PlanesWeight.beats(device, T, s, rows) and PlanesWeight.suits(device, T, s)), (DepthwiseWeight, rows),
             (PointwiseWeight, PointwiseWeight.suits(s, T)), (WinogradWeight, WinogradWeight.suits(device, T, s)), (TiledWeight, TiledWeight.suits(device, s)))
    return next((kind for kind, suits in kinds if suits), BackwardWeight)(device, T, s)


class DepthwiseWeight:
    """Weight gradient of a depthwise kernel, straight from the image and in one launch."""

    def __init__(self, device, T, s: Shape):
        self.device, W = device, 8 if T.acc == "double" else 16
        slab = Depthwise.slab(device, T)
        pitch, band = Depthwise.fit(slab, s.Y[1:], s.k[1:], s.s[1:], s.d[1:])
        self.kernel = device.kernel("conv/depthwise_gradient", T=T, W=W, KH=s.k[1], KW=s.k[2], STRIDE=s.s[2], SLAB=slab)
        self.words = (_words16(*s.I[1:], *s.Y[1:], 0, 0, s.s[1], *[p[0] for p in s.p[1:]], *s.d[1:], band, pitch), _words8(s.O, s.Og, s.N))
        self.gs = (s.O,)

    @staticmethod
    def suits(device, T, s: Shape) -> bool:
        """As forward; few enough taps to keep a vector of sums each, and channels for all units."""
        return Depthwise.suits(device, T, s, "", s.Y[1:], s.s[1:]) and s.taps <= 25 and s.O >= 2 * device.compute_units

    def run(self, x, x_off, dy, dy_off, dw, dw_off):
        launch(self.device, self.kernel, self.gs, (1,), x, x_off, dy, dy_off, dw, dw_off, *self.words)


class WinogradWeight:
    """Weight gradient of a 3 x 3 kernel of stride 1 with fewer multiplications, where the sizes pay for the transforms."""

    def __init__(self, device, T, s: Shape):
        self.device = device
        TH, TW = -(-s.Y[1] // 2), -(-s.Y[2] // 2)
        NV = next(n for n in (2, 3, 4) if n * 16 >= s.Cg or n == 4)
        tiles, panels, pitch_x, pitch_y = s.N * TH * TW, -(-s.Cg // (NV * 16)), -(-s.Cg // 16) * 16, -(-s.Og // 16) * 16
        splits = max(1, min(-(-2 * device.compute_units // (panels * s.groups)), tiles // 128))
        share = -(-tiles // (splits * 64)) * 64
        splits, pitch = -(-tiles // share), panels * NV * 16
        self.turn = device.kernel("conv/channels")
        pads = (s.p[1][0], s.p[2][0])
        self.sides = [((pitch // 16, s.N, s.groups), _words16(s.N, channels, *size, *room, *before, pitch, s.groups), s.groups * s.N * prod(room) * pitch * 4)
                      for channels, size, room, before, pitch in ((s.Cg, s.I[1:], (2 * TH + 2, 2 * TW + 2), pads, pitch_x),
                                                                  (s.Og, s.Y[1:], (2 * TH, 2 * TW), (0, 0), pitch_y))]
        MR = {2: 12, 3: 8, 4: 6}[NV] if device.wide else 8
        self.kernel = device.kernel("conv/winograd_gradient", NV=NV, MR=MR, TILES=64)
        self.gs = (panels, 1, s.groups * splits)
        self.scratch, self.nbytes = panels * s.groups * splits * 16 * 64 * (NV * 16 + 48) * 4, splits * s.groups * 16 * s.Og * pitch * 4
        self.words = _words16(s.Og, tiles, TH, TW, pitch_x, pitch_y, pitch, s.groups, share, s.N)
        self.sum = device.kernel("conv/winograd_gradient_sum")
        self.sum_gs, self.sum_words = (-(-s.Cg // 16), s.Og, s.groups), _words8(s.Og, s.Cg, pitch, splits)

    @staticmethod
    def suits(device, T, s: Shape) -> bool:
        """Is it valid, and are there enough channels and tiles to pay for the transforms?"""
        tiles = s.N * -(-s.Y[1] // 2) * -(-s.Y[2] // 2)
        return Winograd.possible(device, T, s) and s.Cg >= 32 and s.Og >= 32 and tiles >= 64 and s.O * s.Cg <= 1 << 22    # 64 bytes of sums each

    def _turned(self, side, image, offset):
        gs, words, nbytes = side
        buf = self.device.alloc(nbytes)
        launch(self.device, self.turn, gs, (1, 1, 1), image, offset, buf, 0, words)
        return buf, 0

    def run(self, x, x_off, dy, dy_off, dw, dw_off):
        image, gradient = self._turned(self.sides[0], x, x_off), self._turned(self.sides[1], dy, dy_off)
        part = self.device.alloc(self.nbytes)
        launch(self.device, self.kernel, self.gs, (1, 1, 1), *image, *gradient, part, 0, self.device.alloc(self.scratch), self.words)
        launch(self.device, self.sum, self.sum_gs, (1, 1, 1), part, 0, dw, dw_off, self.sum_words)


class TiledWeight:
    """Weight gradient on CPUs: the grid of the input against the output gradient as it lies, without steps over the zeros around images."""

    def __init__(self, device, T, s: Shape):
        self.device, W = device, device.lanes(T.acc)
        words = _gemm_words.suits_weight(device, T, s.Og, s.Cg * s.taps, s.N, prod(s.Y))
        self.grid, where = _padded_grid(device, T, s, words="images" if words else "")
        N = self.grid.N                                         # pairs of images make words
        M, size = s.Cg * s.taps, T.acc_dtype.itemsize
        self.table = _table(device, (np.arange(s.Cg)[:, None] * self.grid.CS + np.array(where)[None, :]).reshape(-1))
        tiles = {1: 12, 2: 12, 3: 8, 4: 6} if device.wide else {1: 8, 2: 6, 3: 4}    # rows by vectors
        NV = min(reversed(tiles), key=lambda n: -(-s.Og // (n * W)) * n * (1 if n > 2 else 1.03 if n > 1 else 1.2))
        MR = min(tiles[NV], M)
        if M <= 48:                                             # few rows: a tile that divides them
            MR = min(range(max(1, MR * 2 // 3), MR + 1), key=lambda m: (-(-M // m) * (m + 1), -m))
        panels, rows = -(-s.Og // (NV * W)), s.Y[0] * s.Y[1]
        room = min(512, device.local_mem * 3 // 4 // (NV * W * size) - W)
        self.direct = N * rows * s.Y[2] <= room
        splits, share, block, MB = self._parts(device, s, N, M, panels, room)
        pitch = panels * NV * W
        self.nbytes = splits * s.groups * M * pitch * size
        self.kernel = device.kernel("conv/gradient", T=T, W=W, NV=NV, MR=MR, KB=max(room, s.Y[2]), ROWS=max(room, 1), DIRECT=self.direct,
                                    USE=_gemm_words.spelling(device) if words else "")
        self.gs = (panels, -(-M // MB), s.groups * splits)
        D, H, Wd = self.grid.dims
        self.words = (_words16(M, s.Og, N, rows, s.Y[2], s.Y[1], self.grid.P, H * Wd * s.s[0], Wd * s.s[1], MB, share, block, s.Cg * self.grid.CS, s.s[2]),
                      _words8(s.O * prod(s.Y), pitch, s.groups))
        self.sum = device.kernel("conv/gradient_sum", T=T, W=W)
        self.sum_gs, self.sum_words = (-(-M // W), -(-s.Og // W), s.groups), _words8(M, s.Og, pitch, splits)

    def _parts(self, device, s, N, M, panels, room):
        """(splits of the rows of pixels, rows of each, rows per pass, rows of the product per work-item): work for all units."""
        rows, wanted = N * s.Y[0] * s.Y[1], -(-2 * device.compute_units // (panels * s.groups))
        if self.direct:
            return 1, rows, rows, -(-M // (min(wanted, -(-M // 96)) * 48)) * 48
        block = max(1, room // s.Y[2])
        splits = max(1, min(wanted, rows // block))
        share = -(-rows // splits)
        return -(-rows // share), share, -(-share // -(-share // block)), M

    @staticmethod
    def suits(device, s: Shape) -> bool:
        """Rows of the output that fit a block, lanes of which few are idle, and more than a handful of pixels where no zeros lie between them."""
        pixels = s.N * prod(s.Y)
        dense = pixels <= 32 and prod(s.k) * prod(s.Y) <= prod(s.I)
        return s.Y[2] <= 256 and (s.Og >= 4 or s.groups == 1) and device.local_mem >= 1 << 17 and not dense

    def run(self, x, x_off, dy, dy_off, dw, dw_off):
        image = self.grid.fill(x, x_off)
        if self.direct:
            launch(self.device, self.kernel, self.gs, (1, 1, 1), *image, dy, dy_off, dw, dw_off, self.table, *self.words)
            return
        part = self.device.alloc(self.nbytes)
        launch(self.device, self.kernel, self.gs, (1, 1, 1), *image, dy, dy_off, part, 0, self.table, *self.words)
        launch(self.device, self.sum, self.sum_gs, (1, 1, 1), part, 0, dw, dw_off, self.sum_words)


class BackwardWeight:
    def __init__(self, device, T, s: Shape):
        self.x_grid, where = _input_grid(device, T, s, False)
        g = self.x_grid
        self.y_grid = Grid(device, T, s.N, s.O, s.Y, (0, 0, 0), (1, 1, 1), g.dims, [[(0, 0)]] * 3, False)
        columns = (np.arange(s.Cg)[:, None] * g.CS + np.array(where)[None, :]).reshape(-1)
        self.columns = _table(device, columns)
        K, n, acc = s.N * g.P, s.Cg * s.taps, T.acc_dtype
        row = self.y_grid.CS
        steps = (s.Og * row, s.Cg * g.CS, s.Og * n)
        # Packing transposes the columns: with few output channels to share a panel, those are the smaller operand.
        self.turned = s.groups == 1 and s.Og <= 128 and n > s.Og
        lanes = device.lanes(acc.c)
        if self.turned:
            problem = Problem(acc, acc, T, n, s.Og, K, (0, 1), (1, row), 1, (1, 1), ((0, 0, 0), (0, 0, 0)), 1.0, 0.0, "", "", "a", n, lanes=lanes)
        else:
            problem = Problem(acc, acc, T, s.Og, n, K, (row, 1), (1, 0), n, (1, s.groups), ((0, 0, 0), steps), 1.0, 0.0, "", "", "b", lanes=lanes)
        self.plan = _gemm.Plan(device, problem)

    def run(self, x, x_off, dy, dy_off, dw, dw_off):
        image, gradient = self.x_grid.fill(x, x_off), self.y_grid.fill(dy, dy_off)
        first, second = (image, gradient) if self.turned else (gradient, image)
        self.plan.run(*first, *second, dw, dw_off, None, 0, self.columns)


def conv_backward_weight(device, dtype, x, x_off, dy, dy_off, dw, dw_off, x_shape, w_shape, stride, padding, dilation, groups=1):
    """Enqueue the gradient of the weights, of shape (O, C // groups, *kernel); False where the batch is too large for one launch."""
    if 0 in x_shape or 0 in w_shape or device.kind == "meta":
        return True
    plan = _plan(_backward_weight, device, dtype, x_shape, w_shape, stride, padding, dilation, groups)
    if plan is not None:
        plan.run(x, x_off, dy, dy_off, dw, dw_off)
    return plan is not None
