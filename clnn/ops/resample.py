"""Resampling of images and volumes: ``interpolate`` and its old names.

Every mode of ``interpolate`` is a weighted sum over a window along each axis. The windows are computed once on the host as a table per axis; the
gradient is the same kernel with the tables transposed, so it adds in a fixed order without atomics.
"""
from __future__ import annotations

import functools
import math

import numpy as np

from .._tensor.declare import composite, kernel
from .._tensor.dispatch import run
from .._tensor.formats import keeps_format, suggested
from .._tensor.inplace import type_name
from .._tensor.tensor import empty
from ..core import dtype as dt
from ..core.layout import channels_last, contiguous_format
from ..core.warn import warn
from ..graph.tasks import work_group
from ._scatter import width
from .creation import tensor
from .pooling import average_windows

UNROLLED = 4                # taps of an axis up to which the loop over them is unrolled
FUSED_TAPS = 16             # elements per output up to which all axes are done in one pass


# -- tables of windows --------------------------------------------------------------------------------------------------------------
class Table:
    """The windows of one axis: ``span`` (first element and number of elements of each output) and ``weights`` (outputs, taps) or None."""

    def __init__(self, size, span, weights):
        self.size, self.span, self.weights, self.transposed, self.copies = size, span, weights, None, {}

    @property
    def taps(self):
        return self.weights.shape[1] if self.weights is not None else 1

    def turned(self):
        """The table of the gradient: for each element the outputs that it takes part in, which are neighbours."""
        if self.transposed is None:
            start, count = self.span[:, 0], self.span[:, 1]
            weights = np.ones((len(count), 1)) if self.weights is None else self.weights
            outs = np.repeat(np.arange(len(count)), count)
            taps = np.arange(len(outs)) - np.repeat(np.cumsum(count) - count, count)
            back = _table(len(count), np.repeat(start, count) + taps, outs, weights[outs, taps], self.size)
            back.transposed = self
            self.transposed = back
        return self.transposed

    def on(self, device, dtype):
        """(span, weights) as tensors of a device."""
        got = self.copies.get((device, dtype))
        if got is None:
            span = tensor(self.span, dtype=dt.int32, device=device)
            weights = None if self.weights is None else tensor(self.weights, dtype=dtype, device=device)
            for t in (span, weights):
                if t is not None:
                    t._storage.buffer()
            got = self.copies[device, dtype] = span, weights
        return got

    @functools.cached_property
    def even(self):
        """(f, weight) where every output is the sum of the next f elements times one weight, (-f, weight) where f outputs each are one element times it;
        else None."""
        start, count = self.span[:, 0], self.span[:, 1]
        outs, taps = np.arange(len(count)), int(count[0])
        if not (count == taps).all():
            return None
        used = np.ones(1) if self.weights is None else self.weights[:, :taps]
        if (used != used.flat[0]).any() or not used.flat[0] > 0:
            return None
        if taps * len(count) == self.size and (start == outs * taps).all():
            return taps, float(used.flat[0])
        repeats = len(count) // self.size
        return (-repeats, float(used.flat[0])) if taps == 1 and repeats * self.size == len(count) and (start == outs // max(repeats, 1)).all() else None

    @functools.cached_property
    def rounded(self):
        """This table with weights of as many bits as 16-bit integers hold: what images of bytes are resampled with. Sums of them times bytes are exact
        in float32."""
        bits = next(b for b in range(23) if b == 22 or int(0.5 + self.weights.max() * 2 ** (b + 1)) >= 1 << 15)
        return Table(self.size, self.span, np.trunc(self.weights * 2.0 ** bits + np.where(self.weights < 0, -0.5, 0.5)) / 2.0 ** bits)


def _table(size, rows, elements, weights, count):
    """The Table of ``count`` outputs over ``size`` elements from triples (output, element, weight); equal pairs are added."""
    lo, hi = np.full(count, size), np.full(count, -1)
    np.minimum.at(lo, rows, elements)
    np.maximum.at(hi, rows, elements)
    number = np.maximum(hi - lo + 1, 0)
    full = np.zeros((count, max(1, int(number.max(initial=1)))))
    np.add.at(full, (rows, elements - lo[rows]), weights)
    return Table(size, np.stack([np.where(number > 0, lo, 0), number], 1).astype(np.int32), full)


def _places(size, count, align, scale, f, clip):
    """The source coordinate of each output, computed in the float type ``f`` as PyTorch does, so that roundings agree."""
    at = np.arange(count).astype(f)
    if align:
        return at * (f(size - 1) / f(count - 1) if count > 1 else f(0))
    got = _step(size, count, scale, f) * (at + f(0.5)) - f(0.5)
    return np.maximum(got, f(0)) if clip else got


def _step(size, count, scale, f):
    return f(1.0 / scale) if scale else f(size) / f(count)


def _cubic(x, a):
    """Keys' cubic convolution kernel at distance ``x``."""
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((x - 5) * x + 8) * x * a - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def _lanczos(x):
    """Lanczos' kernel with three lobes: the sinc under the sinc of three times its width."""
    return np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0)


_SMOOTH = {"smooth-linear": (1, lambda x: np.maximum(1 - np.abs(x), 0)), "smooth-cubic": (2, lambda x: _cubic(x, -0.5)), "smooth-lanczos": (3, _lanczos)}


@functools.lru_cache(maxsize=512)
def window_table(kind, size, count, align, scale, double):
    """The Table of one axis. ``kind``: nearest, nearest-exact, linear, cubic, area or one of _SMOOTH (antialiased)."""
    f = np.float64 if double else np.float32
    outs = np.arange(count)
    if kind in ("nearest", "nearest-exact"):
        at = _step(size, count, scale, np.float32) * (outs.astype(np.float32) + np.float32(0.5 if kind == "nearest-exact" else 0))
        index = np.minimum(np.floor(at).astype(np.int64), size - 1)
        return Table(size, np.stack([index, np.ones_like(index)], 1).astype(np.int32), None)
    if kind == "area":
        return _even_table(size, count)
    if kind.startswith("smooth"):
        return _smooth_table(kind, size, count, align, scale, f)
    at = _places(size, count, align, scale, f, kind == "linear")
    down = np.minimum(np.floor(at), size - 1)
    t = np.clip(at - down, 0, 1).astype(np.float64)
    steps = np.arange(2) if kind == "linear" else np.arange(-1, 3)
    weights = np.stack([1 - t, t], 1) if kind == "linear" else _cubic(t[:, None] - steps, -0.75)
    elements = np.clip(down[:, None].astype(np.int64) + steps, 0, size - 1)
    return _table(size, np.repeat(outs, len(steps)), elements.ravel(), weights.ravel(), count)


def _even_table(size, count):
    outs = np.arange(count)
    first, end = outs * size // count, -(-(outs + 1) * size // count)
    number = end - first
    rows = np.repeat(outs, number)
    elements = np.arange(len(rows)) - np.repeat(np.cumsum(number) - number, number) + first[rows]
    return _table(size, rows, elements, 1.0 / number[rows], count)


def _smooth_table(kind, size, count, align, scale, f):
    """Windows that grow with the reduction, so that no element is skipped (antialias)."""
    step = (f(size - 1) / f(count - 1) if count > 1 else f(0)) if align else _step(size, count, scale, f)
    lobes, window = _SMOOTH[kind]
    reach = f(lobes) * max(step, f(1))
    rows, elements, weights = [], [], []
    for o in range(count):
        centre = step * f(o + 0.5)
        first = max(int(centre - reach + f(0.5)), 0)
        index = np.arange(first, min(int(centre + reach + f(0.5)), size))
        x = (index - float(centre) + 0.5) / max(float(step), 1.0)
        w = window(x)
        rows.append(np.full(len(index), o))
        elements.append(index)
        weights.append(w / w.sum())
    return _table(size, np.concatenate(rows), np.concatenate(elements), np.concatenate(weights), count)


# -- the operator -------------------------------------------------------------------------------------------------------------------
@kernel("_resample", method=False, vjp=dict(input=lambda g, tables: _resample(g, tuple(t and t.turned() for t in tables))))
@keeps_format(1)
def _resample(input, tables):
    """``input`` with its last axes resampled by ``tables``, one per axis or None."""
    busy = [k for k, t in enumerate(tables) if t is not None]
    by_rows = _row_width(input, tables) > 1                     # then the last axis is a pass by itself anyway
    taps = math.prod(tables[k].taps for k in busy if not by_rows or k < len(tables) - 1)
    if taps <= FUSED_TAPS or len(busy) == 1 or by_rows and len(busy) == 2 and busy[1] == len(tables) - 1:
        return _pass(input, tables)
    x = input.to(input.dtype.acc_dtype)
    for k in sorted(busy, key=lambda k: len(tables[k].span) / tables[k].size):      # what makes it smaller first
        x = _pass(x, tuple(t if i == k else None for i, t in enumerate(tables)))
    return x.to(input.dtype)


def _row_width(input, tables):
    """Lanes of kernels/resample/rows.cl.mako for the last axis; 1: that form does not serve."""
    device, most = input._storage.device, 8 if input.dtype.acc == "double" else 16
    if not device.is_cpu or input.shape[-1] < 4 or all(t is None or t.weights is None for t in tables):
        return 1
    return min(most, 1 << input.shape[-1].bit_length() - 1)


def _by_rows(input, out, tables, sizes, outs, wide):
    """Launch the form that adds up rows first."""
    device, acc, last = input._storage.device, input.dtype.acc_dtype, tables[-1]
    rows, rank = out._numel // out.shape[-1], len(tables)
    lanes = 1 if last is None else 8 if acc is dt.float64 else 16
    names, args = "", []
    for a, t in zip("DHW"[3 - rank:], tables):
        if t is not None:
            span, weights = t.on(input.device, acc)
            names += a
            args += [span, weights, t.taps]
    chunk = max(1, min(8192 // max(sizes[-1], outs[-1]), -(-rows // (4 * device.compute_units))))
    chunk = -(-chunk // lanes) * lanes
    items = -(-rows // chunk)
    line = empty((items * (2 * sizes[-1] + outs[-1]) * lanes if last is not None else 1,), acc, device)
    run(device, "resample/rows", dict(T=input.dtype, AXES=names, W=wide, LANES=lanes), (items,), (1,), input.contiguous(), out, line,
        rows, chunk, *(1,) * (3 - rank), *sizes, *(1,) * (3 - rank), *outs, *args)
    return out


def _windows(tables):
    """(windows of each axis, what their sums are divided by, whether outputs are spread over windows instead) where all tables are even, else None."""
    even = [(1, 1.0) if t is None else t.even for t in tables]
    if None in even:
        return None
    factors, parts = [f for f, _ in even], round(1 / math.prod(w for _, w in even))
    spread = min(factors) < 0
    if parts < 1 or abs(parts * math.prod(w for _, w in even) - 1) > 1e-6 or spread and max(factors) > 1 or not -4 <= factors[-1] <= 4:
        return None
    return tuple(map(abs, factors)), parts, spread


def _pass(input, tables):
    rank, device = len(tables), input._storage.device
    sizes = tuple(input.shape[-rank:])
    outs = tuple(s if t is None else len(t.span) for s, t in zip(sizes, tables))
    out = empty((*input.shape[:-rank], *outs), input.dtype, device)
    if not out._numel:
        return out
    weighted = any(t is not None and t.weights is not None for t in tables)
    windows = _windows(tables) if weighted and device.is_cpu else None
    if windows is not None:
        average_windows(input.contiguous(), out, *windows)
        return out
    wide = _row_width(input, tables)
    if wide > 1:
        return _by_rows(input, out, tables, sizes, outs, wide)
    names, args, unrolled = "", [], []
    for a, t in zip("DHW"[3 - rank:], tables):
        if t is not None:
            span, weights = t.on(input.device, input.dtype.acc_dtype)
            names += a
            unrolled.append(t.taps if t.taps <= UNROLLED else 0)
            args += [span, weights, t.taps] if weighted else [span]
    count, rows = out.shape[-1], out._numel // out.shape[-1]
    loop = device.loops or device.is_cpu and not weighted
    chunk = max(1, min(4096 // count, -(-rows // (4 * device.compute_units))))
    repeats = -tables[-1].even[0] if loop and not weighted and tables[-1] is not None and tables[-1].even else 1
    local = (1,) if loop else work_group(device, count, rows)
    E = 4 if not device.is_cpu and out._numel >= device.compute_units * 8192 else 1
    params = dict(T=input.dtype if weighted else width(input.dtype), AXES=names, WEIGHTED=int(weighted), TAPS=tuple(unrolled), E=E,
                  ROW="uint" if rows < 2 ** 32 else "long", FORM="loop" if loop else "item", REPEAT=repeats if repeats in (2, 4, 8) and count >= 16 else 0)
    items = (-(-rows // chunk),) if loop else (count, -(-rows // (E * local[1])) * local[1])
    run(device, "resample/axes", params, items, local, input.contiguous(), out, rows, chunk, *(1,) * (3 - rank), *sizes, *(1,) * (3 - rank), *outs, *args)
    return out


_resample.op.grad_name = "UpsampleBackward0"

_RANKS = {"nearest": (1, 2, 3), "nearest-exact": (1, 2, 3), "area": (1, 2, 3), "linear": (1,), "bilinear": (2,), "bicubic": (2,), "trilinear": (3,), "lanczos": (2,)}
_KINDS = {"bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}
_BYTES = ("bilinear", "bicubic", "lanczos")     # modes that round between the axes of an image of bytes, and that can be antialiased


def _whole(size):
    if isinstance(size, (float, str)):
        raise TypeError(f"expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got a {type(size).__name__}: {size}")
    return int(size)


def _output_size(input, size, scale_factor, recompute, rank):
    """(output size, scale factors or None)."""
    if (size is None) == (scale_factor is None):
        raise ValueError("either size or scale_factor should be defined" if size is None else "only one of size or scale_factor should be defined")
    given = size if size is not None else scale_factor
    given = given if isinstance(given, (tuple, list)) else (given,) * rank
    if len(given) != rank:
        what, of, name, one = ("output", "output size of", "output size", "o") if size is not None else ("scale_factor", "scale_factor of shape", "scale_factor", "s")
        raise ValueError(f"Input and {what} must have the same number of spatial dimensions, but got input with spatial dimensions of "
                         f"{list(input.shape[2:])} and {of} {given}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and "
                         f"{name} in ({one}1, {one}2, ...,{one}K) format.")
    if size is not None:
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        return tuple(map(_whole, given)), None
    sizes = tuple(math.floor(float(s) * f) for s, f in zip(input.shape[2:], given))
    return sizes, None if recompute else tuple(float(v) for v in given)


def _check_mode(input, mode, align_corners, antialias):
    if mode not in _RANKS or not 3 <= input.ndim <= 5 or mode in ("bicubic", "lanczos") and input.ndim != 4:
        raise NotImplementedError(f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.ndim}D) for the modes: nearest | linear | bilinear | "
                                  f"bicubic | trilinear | lanczos | area | nearest-exact (got {mode})")
    if antialias and not (mode in _BYTES and input.ndim == 4):
        raise ValueError("Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input")
    if input.ndim - 2 not in _RANKS[mode]:
        needs = " or ".join(f"{r + 2}D" for r in _RANKS[mode])
        raise NotImplementedError(f"Got {input.ndim}D input, but {mode} mode needs {needs} input")
    if mode == "lanczos" and (align_corners or not antialias):
        raise ValueError("Lanczos mode does not support align_corners=True" if align_corners else "Lanczos mode requires antialias=True")


def _images(*shape):
    return np.random.default_rng(0).normal(0, 1, shape)


@composite("interpolate", splice=True, repeat=True, method=False, torch="nn.functional.interpolate", dtypes=dt.FLOATS, samples=lambda: [
    ((_images(2, 3, 5), 8), {}), ((_images(2, 3, 5, 4),), dict(scale_factor=(2.0, 1.5), mode="bilinear")),
    ((_images(2, 3, 5, 4), (3, 7)), dict(mode="bilinear", align_corners=True)), ((_images(1, 2, 6, 5), (9, 4)), dict(mode="bicubic")),
    ((_images(1, 2, 3, 4, 5), (4, 3, 7)), dict(mode="trilinear")), ((_images(1, 2, 5, 7), (3, 9)), dict(mode="area")),
    ((_images(1, 2, 9, 8), (4, 3)), dict(mode="bilinear", antialias=True)), ((_images(2, 1, 3, 9),), dict(scale_factor=2)),
    ((_images(1, 2, 6, 8),), dict(scale_factor=0.5, mode="bilinear")), ((_images(1, 2, 6, 9), (3, 3)), dict(mode="area"))], errors=[
        ((np.zeros((1, 1, 2, 2)),), {}, ValueError, "either size or scale_factor"),
        ((np.zeros((1, 1, 2)), 4), {"mode": "bilinear"}, NotImplementedError, "bilinear mode needs 4D input")])
def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None, antialias=False):
    """``input`` resampled to a size or by a factor along its spatial dimensions.

    Args:
        input: ``(N, C, L)``, ``(N, C, H, W)`` or ``(N, C, D, H, W)``.
        size: output size, a number or one per dimension; or ``scale_factor``, likewise.
        mode: ``nearest``, ``nearest-exact``, ``area``, ``linear`` (3-D input), ``bilinear``, ``bicubic`` (4-D), ``trilinear`` (5-D),
            ``lanczos`` (4-D, with antialias).
        align_corners: the centres of the corner elements stay in place; else the corners' outer edges do.
        recompute_scale_factor: use the ratio of the sizes instead of the factor given.
        antialias: windows that grow as the image shrinks (bilinear, bicubic, lanczos).

    Raises:
        ValueError: neither or both of size and scale_factor, or options that the mode does not have.
        NotImplementedError: a mode for another number of dimensions.

    Example:
        >>> clnn.nn.functional.interpolate(clnn.tensor([[[1.0, 2.0]]]), scale_factor=2)
        tensor([[[1., 1., 2., 2.]]])
    """
    if align_corners is not None and mode in ("nearest", "nearest-exact", "area"):
        raise ValueError("align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear")
    rank = input.ndim - 2
    sizes, scales = _output_size(input, size, scale_factor, recompute_scale_factor, rank)
    _check_mode(input, mode, align_corners, antialias)
    if min(sizes) <= 0 or 0 in input.shape[1:]:
        raise RuntimeError(f"Input and output sizes should be greater than 0, but got input {list(input.shape)} and output size {list(sizes)}")
    if input.dtype is dt.uint8 and not mode.startswith("nearest") and mode not in _BYTES:
        wide = interpolate(input.to(dt.float32), size, scale_factor, mode, align_corners, recompute_scale_factor, antialias)
        return wide.round().clamp(0, 255).to(dt.uint8)
    if not input.dtype.is_floating_point and input.dtype is not dt.uint8:
        raise NotImplementedError(f'"interpolate" not implemented for \'{type_name(input.dtype)}\'; it takes float tensors and uint8')
    kind = ("smooth-" if antialias else "") + _KINDS.get(mode, mode)
    double = input.dtype in (dt.float64, dt.uint8)
    if scales and mode == "nearest" and rank == 2 and (sum(sizes) <= 128 or input.shape[1] > 3 and suggested(input) is channels_last):
        # PyTorch's kernel of small images, or of many channels that lie together, reads each element as often where sizes stay or double
        scales = [None if o in (s, 2 * s) else f for s, o, f in zip(input.shape[2:], sizes, scales)]
    tables = [window_table(kind, s, o, bool(align_corners), scales[k] if scales else None, double)
              for k, (s, o) in enumerate(zip(input.shape[2:], sizes))]
    same = [t.size == len(t.span) and (scales is None or scales[k] in (1.0, None)) for k, t in enumerate(tables)]
    if all(same):
        format = suggested(input)
        return input.clone(memory_format=contiguous_format if format is None else format)
    tables = tuple(None if s else t for s, t in zip(same, tables))
    return _bytes(input, tables) if input.dtype is dt.uint8 and mode in _BYTES else _resample(input, tables)


def _bytes(input, tables):
    """An image of bytes, resampled along rows, rounded, and then along columns, as PyTorch does."""
    x = input.to(dt.float32)
    for one in ((None, tables[1]), (tables[0], None)):
        if one != (None, None):
            x = (_resample(x, tuple(t and t.rounded for t in one)) + 0.5).floor().clamp(0, 255)
    return x.to(dt.uint8)


@composite("upsample", method=False, torch="nn.functional.upsample")
def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """The old name of :func:`interpolate`."""
    warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.")
    return interpolate(input, size, scale_factor, mode, align_corners)


@composite("upsample_nearest", method=False, torch="nn.functional.upsample_nearest")
def upsample_nearest(input, size=None, scale_factor=None):
    """:func:`interpolate` with mode ``nearest`` under its old name."""
    warn("`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.")
    return interpolate(input, size, scale_factor, mode="nearest")


@composite("upsample_bilinear", method=False, torch="nn.functional.upsample_bilinear")
def upsample_bilinear(input, size=None, scale_factor=None):
    """:func:`interpolate` with mode ``bilinear`` and aligned corners under its old name."""
    warn("`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)
