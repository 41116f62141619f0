"""All steps of a recurrent layer on a GPU in one launch, and the choice between that and a product and a cell kernel per step.

A work-group takes some sequences through time alone and reads the hidden weights in every step: from registers what fits there, the rest from the
nearest cache that holds it. So one launch is for weights up to about a megabyte; the larger they are, the more does a product over all sequences save.
"""
from __future__ import annotations

import functools
import struct
from dataclasses import dataclass

from .._tensor.dispatch import run
from .._tensor.tensor import empty
from ..core.shape import Size

GATES = dict(lstm=4, gru=3)
ALWAYS = False          # one launch wherever it is possible
# Measured on NVIDIA's: seconds that a step costs beside its product, bytes per second of a unit's own cache and of the one behind (alone, with all units reading),
# products per second of a unit, multiplications and additions per second of a unit.
_STEP, _LAUNCHES, _NEAR, _FAR, _CROWDED, _SUMS, _PRODUCT = 0.8e-6, 22e-6, 180e9, 90e9, 45e9, 150e9, 180e9
_NEAR_BYTES = 160 << 10
_ITEMS, _TASKS, _TURNS = 256, 8, 8
_HOLDS = {"nvidia": 128, "amd": 112}        # registers of a work-item for weights; half as many where the driver is not known to have them


def _words4(*values):
    return struct.pack("<4q", *values, *[0] * (4 - len(values)))


@dataclass(frozen=True)
class Walk:
    """How a work-group multiplies R rows with the weights: the parameters of recurrent/walk, and what a step costs on a device with enough sequences."""
    R: int
    ITEMS: int
    VECTORS: int
    PARTS: int
    FOURS: int
    HELD: int
    AHEAD: int
    seconds: float

    def params(self):
        return {name: value for name, value in self.__dict__.items() if name != "seconds"}

    @property
    def rows(self):
        """Rows of the matrix with those that fill it up."""
        return 4 * self.PARTS * self.FOURS


def _cut(device, R, vectors, fours, items, size):
    """(parts, fours of a part) with the least to read and to add for a work-item, or None where local memory is too small."""
    best = None
    for each in range(1, fours + 1):
        parts = -(-fours // each)
        tasks = -(-vectors * parts // items)
        if tasks <= _TASKS and parts <= 16 and (vectors + each) * parts * R * 4 * size <= min(device.local_mem, 49152) - 1024:
            cost = tasks * (4 * each + R) + parts * R * vectors / items
            best = min(best or (cost, parts, each), (cost, parts, each))
    return best and best[1:]


def _walk(device, dtype, N, H, R, vectors, fours):
    items, size = min(_ITEMS, device.max_work_group), dtype.acc_dtype.itemsize
    cut = _cut(device, R, vectors, fours, items, size)
    if cut is None or R * H > _TURNS * items:
        return None
    parts, each = cut
    tasks = -(-vectors * parts // items)
    hold = max(0, _HOLDS.get(device.flavour, 64) - 10 * (R - 1))
    held = min(each, hold // (4 * size) // tasks)
    ahead = max(1, min(4 if not held else 2, each - held) * 4 // size)
    groups = -(-N // R)
    read = (each * tasks - held * tasks) * 16 * size * items
    rate = _NEAR if read <= _NEAR_BYTES else _FAR if 2 * groups <= device.compute_units else _CROWDED
    sums = R * tasks * each * 16 * items * (size // 4)
    return Walk(R, items, vectors, parts, each, held, ahead, -(-groups // device.compute_units) * (_STEP + max(read / rate, sums / _SUMS)))


def plan(device, dtype, mode, T, N, H, back=False):
    """The fastest way to take N sequences through T steps of a layer at once, None where single steps are faster."""
    if device.is_cpu or T * N * H == 0 or device.flavour == "rusticl" and device.kind == "cpu":   # llvmpipe's loops end after 65535 steps
        return None
    return _best(device, dtype, mode, N, H, back)


@functools.lru_cache(4096)
def _best(device, dtype, mode, N, H, back):
    gates = GATES.get(mode, 1)
    units = -(-H // 4)
    vectors, fours = (units, -(-gates * H // 4)) if back else (H if gates > 1 else units, units)
    walks = [w for R in (1, 2, 4, 8) if R < 2 * N and (w := _walk(device, dtype, N, H, R, vectors, fours)) is not None]
    best = min(walks, key=lambda w: w.seconds, default=None)
    if best is None or ALWAYS:
        return best
    products = _LAUNCHES + N * gates * H * H * (dtype.acc_dtype.itemsize // 4) / _PRODUCT / device.compute_units
    return best if best.seconds < products else None


def _turned(weight, walk, gates, back):
    device, H, dtype = weight._storage.device, weight.shape[1], weight.dtype
    out = empty(Size((walk.rows, 4 * walk.VECTORS)), dtype.acc_dtype, device)
    form = ((walk.VECTORS, walk.rows), (16, 4)) if back else ((walk.rows, walk.VECTORS), (64, 1))
    run(device, "recurrent/weights", dict(T=dtype, GATES=gates, BACK=int(back)), *form,
        weight, out, _words4(walk.VECTORS, walk.rows, H))
    return out


def _geometry(walk, N):
    return (-(-N // walk.R) * walk.ITEMS,), (walk.ITEMS,)


def forward(walk, gates, h0, c0, weight, bias, mode, reverse, y, cells, act, packed=None):
    """All steps; operands as in ``recurrent._recurrent``, contiguous. ``packed``: (first row of each step and the end, last h, last c) for unequal lengths."""
    H, N, device = weight.shape[1], h0.shape[0], gates._storage.device
    weight = weight.contiguous()
    wt = _turned(weight, walk, GATES.get(mode, 1), False)
    T, more = (packed[0].shape[0] - 1, packed) if packed else (gates.shape[0], ())
    run(device, "recurrent/sequence", dict(T=gates.dtype, MODE=mode, H=H, BIAS=int(bias is not None), PACKED=int(packed is not None), **walk.params()),
        *_geometry(walk, N), gates, wt, h0 if bias is None else bias, h0, c0, y, cells, act, *more, _words4(T, N, int(reverse)))


def backward(walk, dy, dlast, h0, c0, weight, mode, reverse, y, act, cells, dgates, dhidden, dh, dc, packed=None):
    """All steps, the last first; operands as in ``recurrent._recurrent_backward``, contiguous; ``dlast`` and ``dc`` are None but for lstm.
    ``packed``: (first row of each step and the end, gradient of the last h)."""
    (KH, H), N, device, dtype = weight.shape, h0.shape[0], y._storage.device, y.dtype
    fits = dtype is dtype.acc_dtype and (walk.rows, 4 * walk.VECTORS) == (KH, H) and weight._offset % 4 == 0
    w = weight if fits else _turned(weight, walk, KH // H, True)
    T, more = (packed[0].shape[0] - 1, packed) if packed else (y.shape[0], ())
    run(device, "recurrent/sequence_backward", dict(T=dtype, MODE=mode, H=H, LAST=int(dlast is not None), PACKED=int(packed is not None), **walk.params()),
        *_geometry(walk, N), act, y, h0, c0, cells, dy, dy if dlast is None else dlast, w, dgates, dhidden, dh, dh if dc is None else dc, *more,
        _words4(T, N, int(reverse)))
