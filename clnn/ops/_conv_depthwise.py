"""Depthwise convolutions on GPUs: every output channel reads one input channel, straight from the image; and their gradients."""
from __future__ import annotations

from math import prod

from ..runtime.launch import launch
from ._conv_grid import LARGEST, Shape, _words8, _words16
from ._gemm import EPILOGUES

GROUP, TAPS, WIDEST = 256, 81, 64       # work-items of a group; taps of a plane that are unrolled together with several rows; of a row that are unrolled
CHUNK, KEPT = 8, 49                     # taps of a weight gradient: in local memory at a time; with a sum in registers each


def _group(device, most) -> int:
    """The largest power of two that the device allows, up to ``most``."""
    return 1 << (min(most, device.max_work_group).bit_length() - 1)


def magic(d) -> int:
    """What divides numbers below 2^31 by ``d``: n // d = (2 * n * factor >> 32) >> shift, the shift in the high half of the word."""
    shift = (d - 1).bit_length()
    return ((1 << 31 + shift) // d + 1) | shift << 32


def _flat(s: Shape) -> bool:
    return s.I[0] == s.Y[0] == s.k[0] == s.s[0] == 1 and s.p[0] == (0, 0)


class Depthwise:
    """One input channel per output channel, in two dimensions, straight from the image."""

    def __init__(self, device, T, N, O, mult, size, out, k, stride, before, dilation, flip, bias, epilogue):
        self.device = device
        W = 8 if T.acc == "double" else 16
        slab = self.slab(device, T)
        pitch, band = self.fit(slab, out, k, stride, dilation)
        rows = 1 if k[0] == 1 or stride[0] > 1 or dilation[0] > 1 or out[0] < 4 else 4 if k[0] * k[1] <= 9 and out[1] <= W else 2
        self.kernel = device.kernel("conv/depthwise", T=T, W=W, KH=k[0], KW=k[1], STRIDE=stride[1], ROWS=rows, SLAB=slab, BIAS=bias,
                                    EPI=EPILOGUES.get(epilogue, epilogue))
        self.words = (_words16(*size, *out, 0, 0, stride[0], *before, *dilation, band, pitch, flip), _words8(O, mult))
        self.gs = (N * O,)

    @staticmethod
    def slab(device, T) -> int:
        """Elements of local memory for the band."""
        return min(12288, device.local_mem * 3 // 4 // T.acc_dtype.itemsize // 16 * 16)

    @staticmethod
    def fit(slab, out, k, stride, dilation):
        """(row pitch, output rows) of a band that the local slab holds; no rows where not even one fits."""
        pitch = -(-(-(-out[1] // 16) * 16 * stride[1] + (k[1] - 1) * dilation[1]) // 16) * 16 + 16
        rows = (slab - 64) // pitch - (k[0] - 1) * dilation[0] - 1
        return pitch, min(out[0], rows // stride[0] + 1) if rows >= 0 else 0

    @classmethod
    def suits(cls, device, T, s, epilogue, out, stride) -> bool:
        epilogue = EPILOGUES.get(epilogue, epilogue)
        return (device.is_cpu and s.Cg == 1 and s.groups > 1 and s.I[0] == s.k[0] == s.Y[0] == 1 and stride[1] in (1, 2) and s.taps <= 81
                and (not epilogue or "VT" in epilogue) and cls.fit(cls.slab(device, T), out, s.k[1:], stride, s.d[1:])[1] > 0)

    def run(self, x, x_off, w, w_off, y, y_off, bias):
        b, b_off = bias if bias is not None else (y, 0)
        launch(self.device, self.kernel, self.gs, (1,), x, x_off, w, w_off, y, y_off, b, b_off, *self.words)


class DepthwiseItems:
    """Forward, or the gradient of the input: a work-item owns a few rows of one column, or as many columns as the stride of a gradient has."""

    def __init__(self, device, T, s: Shape, forward, bias, epilogue):
        self.device, G = device, _group(device, GROUP)
        I, Y, O = (s.I, s.Y, s.O) if forward else (s.Y, s.I, s.C)
        cols, loop = 1 if forward else s.s[2], s.k[1] * s.k[2] > TAPS
        rows = 1 if loop else self._rows(device, s, forward, Y, s.N * O, cols)
        self.kernel = device.kernel("conv/depthwise_gpu", T=T, G=G, FORWARD=forward, K=s.k, S=s.s, D=s.d, P=tuple(p[0] for p in s.p), FLAT=_flat(s), ROWS=rows,
                                    COLS=cols, LOOP=loop, MULT=s.Og if forward else 1, SOURCES=1 if forward else s.Og, BIAS=bias, EPI=EPILOGUES.get(epilogue, epilogue))
        across, down = -(-Y[2] // cols), -(-Y[1] // rows)
        items = O * Y[0] * down * across
        self.gs, self.ls = (-(-items // G) * G, s.N), (G, 1)
        self.words = _words16(*I, *Y, across, magic(across), down, magic(down), items, (s.C if forward else s.O) * prod(I), O * prod(Y))

    @staticmethod
    def _rows(device, s, forward, Y, planes, cols):
        """Rows of an item by the instructions that they take: several share what they read, but there must be items for all units."""
        step, best = 1 if forward else s.s[1], None
        for rows in range(step, 8 * step + 1, step):
            met = [(r * s.s[1] + t * s.d[1] if forward else (r + s.p[1][0] - t * s.d[1]) // step) for r in range(rows) for t in range(s.k[1])
                   if forward or (r + s.p[1][0] - t * s.d[1]) % step == 0]
            if rows > step and (rows * cols > 16 or rows * cols + s.k[1] * s.k[2] > 96):
                break
            items = planes * Y[0] * -(-Y[1] // rows) * -(-Y[2] // cols)
            cost = max(items, device.compute_units * 1024) * (110 + 2 * prod(s.k[1:]) + 3 * len(set(met)) * s.k[2] + len(met) * s.k[2] + 6 * rows * cols)
            best = min(best or (cost, rows), (cost, rows))
        return best[1]

    @staticmethod
    def suits(device, s: Shape, epilogue, forward) -> bool:
        epilogue = EPILOGUES.get(epilogue, epilogue)
        few = forward or s.Og <= WIDEST and s.s[1] * s.s[2] <= 16
        return (not device.is_cpu and s.Cg == 1 and s.k[2] <= WIDEST and few and (not epilogue or "VT" in epilogue)
                and max(s.C * prod(s.I), s.O * prod(s.Y)) <= LARGEST - GROUP)

    def run(self, x, x_off, w, w_off, y, y_off, bias):
        b, b_off = bias if bias is not None else (y, 0)
        launch(self.device, self.kernel, self.gs, self.ls, x, x_off, w, w_off, y, y_off, b, b_off, self.words)


class DepthwiseItemsWeight:
    """The gradient of the weight: groups sum shares of all places of one channel, whose sums a second kernel adds up in their order."""

    def __init__(self, device, T, s: Shape):
        self.device, G = device, _group(device, 128)
        block = next(n for n in range(s.k[1], 0, -1) if s.k[1] % n == 0 and (n == 1 or n * s.k[2] <= KEPT))
        rows = self._rows(s, block)
        down, groups = -(-s.Y[1] // rows), s.O * s.k[0] * (s.k[1] // block)
        places = s.N * s.Y[0] * down * s.Y[2]
        splits = max(1, min(8 * device.compute_units // groups, places // (4 * G)))
        share = -(-places // splits)
        self.splits = -(-places // share)
        acc = T.acc_dtype
        self.kernel = device.kernel("conv/depthwise_gpu_gradient", T=T, TO=acc if self.splits > 1 else T, G=G, SEGMENTS=min(G, 16), CHUNK=CHUNK, K=s.k, S=s.s, D=s.d,
                                    P=tuple(p[0] for p in s.p), FLAT=_flat(s), ROWS=rows, RAGGED=s.Y[1] % rows != 0, TROWS=block)
        self.gs, self.ls = (groups * G, self.splits), (G, 1)
        self.words = (_words16(*s.I, *s.Y, down, s.Og, s.O, places, share), _words8(G % s.Y[2], G // s.Y[2] % down, G // s.Y[2] // down))
        self.count, self.nbytes = s.O * s.taps, self.splits * s.O * s.taps * acc.itemsize
        self.sum = device.kernel("conv/depthwise_gpu_sum", T=T) if self.splits > 1 else None

    @staticmethod
    def _rows(s, block):
        """Rows of an item by the instructions per place."""
        costs = []
        for rows in range(1, min(4, s.Y[1]) + 1):
            read = len({r * s.s[1] + t * s.d[1] for r in range(rows) for t in range(block)})
            guarded = 2 if s.Y[1] % rows else 1
            costs.append((-(-s.Y[1] // rows) * (50 + 3 * read * s.k[2] + rows * (3 + guarded * block * s.k[2])), rows))
        return min(costs)[1]

    @staticmethod
    def suits(device, s: Shape) -> bool:
        return (not device.is_cpu and s.Cg == 1 and s.k[2] <= WIDEST and max(s.C * prod(s.I), s.O * prod(s.Y), s.N * prod(s.Y)) <= LARGEST // 2
                and s.O * s.taps <= LARGEST // GROUP)

    def run(self, x, x_off, dy, dy_off, dw, dw_off):
        if self.sum is None:
            launch(self.device, self.kernel, self.gs, self.ls, x, x_off, dy, dy_off, dw, dw_off, *self.words)
            return
        part = self.device.alloc(self.nbytes)
        launch(self.device, self.kernel, self.gs, self.ls, x, x_off, dy, dy_off, part, 0, *self.words)
        launch(self.device, self.sum, (self.count,), None, part, 0, dw, dw_off, self.count, self.splits)
