"""Discrete Fourier transforms: one dimension at a time, any length.

Lengths made of the factors 2, 3, 5, 7, 11 and 13 go through one kernel (``kernels/fourier/rows``); what does not fit its local memory is cut in two,
n = n1 * n2, with turns between both steps (Gentleman & Sande, 1966). Other lengths become a convolution of a length that has those factors
(Bluestein, 1970). All tables are computed in double on the host.
"""
from __future__ import annotations

import functools
import math

import numpy as np

from .._tensor.declare import kernel
from .._tensor.dispatch import run
from .._tensor.interop import from_array
from .._tensor.tensor import empty, make_view
from ..core import dtype as dt
from ..core.shape import Size, extents
from ..graph.op import REGISTRY
from .creation import shared
from .selection import cast

FACTORS = (8, 4, 2, 3, 5, 7, 11, 13)
SINGLE_BYTES = 32 << 10         # of a row, so that what fourier/single keeps of it stays in the second cache
LANES_BYTES = 256 << 10         # of local memory per work-item on CPUs: it should stay in the second cache
GROUP_BYTES = 32 << 10          # of local memory per work-group on other devices,
SHARE_BYTES = 16 << 10          # and up to which it has more than one sequence


# -- lengths --------------------------------------------------------------------------------------------------------------------------
@functools.lru_cache(maxsize=None)
def radices(n):
    """The factors of ``n`` in the order of the passes; None where another prime divides it."""
    found = []
    for f in FACTORS:
        while n % f == 0:
            found.append(f)
            n //= f
    return tuple(found) if n == 1 else None


@functools.lru_cache(maxsize=None)
def wide_radices(n):
    """The factors of ``n`` in the order of the passes of ``fourier/single``: 16 where that saves one."""
    sixteen = n // 16 if n % 16 == 0 else n
    found, less = radices(n), (16, *(radices(sixteen) or ()))
    return less if found and sixteen != n and len(less) < len(found) else found


@functools.lru_cache(maxsize=None)
def smooth_from(n):
    """The least length of factors 2, 3 and 5, from ``n`` on."""
    best = 1 << (n - 1).bit_length()
    five = 1
    while five < best:
        three = five
        while three < best:
            two = three << max(0, (-(-n // three) - 1).bit_length())
            best = min(best, two)
            three *= 3
        five *= 5
    return best


@functools.lru_cache(maxsize=None)
def cut(n, limit):
    """(n1, n2) with n1 * n2 = n, both of at most ``limit`` if that can be, as equal as can be."""
    divisors = [d for d in range(2, min(limit, n - 1) + 1) if n % d == 0]
    if not divisors:
        return n, 1
    return min(((d, n // d) for d in divisors), key=lambda c: (c[1] > limit, abs(math.log(c[0] / c[1]))))


@functools.lru_cache(maxsize=64)
def _table(device, row, key):
    """A constant table on a device: ``("roots", n)``, ``("turns", n1, n2)``, or the chirp of Bluestein's algorithm and its transform."""
    kind, n, *more = key
    if kind == "roots":
        angle = np.arange(n) / n
    elif kind == "lanes":
        rows, lanes, step = more                                       # exp(-2 pi i (step j + l or, without step, j l) / n), vectors of ``lanes``
        j, l = np.arange(rows)[:, None], np.arange(lanes)[None, :]
        angle = (j * step + l if step else j * l) / n
    elif kind == "turns":
        n2, = more
        angle = (np.arange(n)[:, None] * np.arange(n2)[None, :]) / (n * n2)
    else:
        angle = (np.arange(n, dtype=np.int64) ** 2 % (2 * n)) / (2 * n)
    values = np.exp(-2j * np.pi * angle)
    if kind == "chirps":
        return from_array(np.concatenate([values, _chirp_transform(values, *more)]).astype(row.np), device)
    if kind == "lanes":
        return from_array(np.stack([values.real, values.imag], 1).astype(row.to_real().np), device)
    if kind == "chirp transform":
        values = _chirp_transform(values, *more)
    return from_array(values.astype(row.np), device)


def _chirp_transform(chirp, m):
    """The transform of length ``m`` of what numbers times ``chirp`` are convolved with."""
    n, wave = len(chirp), np.zeros(m, np.complex128)
    wave[:n] = chirp.conj()
    wave[m - n + 1:] = chirp.conj()[1:][::-1]
    return np.fft.fft(wave)


# -- one launch -------------------------------------------------------------------------------------------------------------------------
class Walk:
    """Where sequence t = (o * A + a) * I + i starts, and the step between its elements: (o, a, i, step) in x and in y."""

    __slots__ = ("count", "A", "I", "x", "y")

    def __init__(self, count, A, I, x, y):                                     # noqa: E741
        self.count, self.A, self.I, self.x, self.y = count, A, I, x, y


def chirp_of(n, device, row):
    """The length of the convolution that a transform of length ``n`` is within one launch; 0 where it is none."""
    m = 0 if radices(n) else smooth_from(2 * n - 1)
    if device.is_cpu:
        return m if m <= limit_of(device, row) * (1 + (row is dt.complex64)) else 0       # twice as long ones in half as many lanes
    two = 1 << (2 * n - 2).bit_length()
    m = two if m and two * 5 <= m * 6 else m                # fewer passes
    return m if m <= _held(device.local_mem, row) else 0


def _held(local, row):
    """Places of sequences that so many bytes of a work-group's local memory hold."""
    return (local - 1024) * 32 // (33 * 4 * row.to_real().itemsize)


def limit_of(device, row):
    """The longest transform of one launch."""
    size = row.to_real().itemsize
    if device.is_cpu:
        return min(LANES_BYTES, device.local_mem) // (4 * 64)
    return min(GROUP_BYTES // (4 * size), _held(device.local_mem, row))


def _launch(x, y, n, walk, form, scale, back, turns=None, span=1, chirp=0):
    device, row = x._storage.device, (x if x.dtype.is_complex else y).dtype
    part = row.to_real()
    W, C, local, runs, size, spans, half = 1, 1, 1, 1, chirp or n, False, form != "complex" and n % 2 == 0 and n > 2 and not chirp
    if device.is_cpu:
        W = 64 // part.itemsize >> (chirp > limit_of(device, row))
        gs, ls = (-(-walk.count // W),), (1,)
        spans = walk.I >= W and walk.I % W != 0 and walk.x[2] == walk.y[2] == 1 and (turns is None or span == 1)
        if spans:
            rows, blocks = walk.count // walk.I, -(-walk.I // W)
            runs = max(1, min(blocks // 2, -(-8 * device.compute_units // rows)))       # of two blocks at least, the last of which may overlap the other
            gs = (rows * runs,)
    else:
        size = n // 2 if half else size
        most = SHARE_BYTES // (4 * part.itemsize) if walk.x[2] != 1 else limit_of(device, row)      # what lies side by side is read in longer runs
        C = max(1, min(8, most // size, walk.count, device.max_work_group))
        C = 1 << (C.bit_length() - 1)
        local = max(C, min(1 << (device.max_work_group.bit_length() - 1), max(16, min(256, 1 << max(0, (size * C // 8 - 1)).bit_length()))))
        gs, ls = (-(-walk.count // C) * local,), (local,)
    whole = W > 1 and (walk.I % W == 0 or spans)
    turn = "none" if turns is None or chirp else "lanes" if whole and span == 1 else "one" if whole and span % W == 0 else "any"
    params = dict(T=part, N=n, RADICES=radices(n // 2 if half else size), CHIRP=chirp, FORM=form, HALF=half, W=W, C=C, SPANS=spans,
                  VIN=whole and walk.x[2] == 1, VOUT=whole and walk.y[2] == 1, RIN=W > 1 and walk.x[3] == 1, ROUT=W > 1 and walk.y[3] == 1, TURN=turn)
    roots = _table(device, row, ("roots", chirp or n))
    if chirp:
        turns, scale = _table(device, row, ("chirps", n, chirp)), scale / chirp
    run(device, "fourier/rows", params, gs, ls, x, y, roots, roots if turns is None else turns, walk.count, walk.A, walk.I, *walk.x, *walk.y, span,
        part.number(scale), int(back), runs)


def _single(x, shape, n, form, scale, back=False):
    """The transform of rows of ``n`` numbers, one after another, as a result of this shape; None where they do not suit ``fourier/single``."""
    device, real = x._storage.device, form != "complex"
    M = n // 2 if real else n
    W = 64 // x.dtype.to_real().itemsize
    W = W // 2 if M % (W * W) else W
    if not device.is_cpu or M % (W * W) or W < 8 or n > SINGLE_BYTES // x.dtype.to_real().itemsize or n % (1 + real) or wide_radices(M // W) is None:
        return None
    row = dt.complex_of(x.dtype)
    part, rows = row.to_real(), x._numel // x.shape[-1]
    y = empty(Size(shape), part if form == "real_out" else row, device)
    run_of = max(1, min(-(-rows // (4 * device.compute_units)), 8192 // n))
    turns = _table(device, row, ("lanes", M, M // W, W, 0))
    run(device, "fourier/single", dict(T=part, M=M, W=W, RADICES=wide_radices(M // W), FORM=form, BACK=back and not real), (-(-rows // run_of),), (1,),
        x, y, _table(device, row, ("roots", M // W)), turns, _table(device, row, ("lanes", n, M // 2 // W, W, W)) if real else turns, rows, run_of,
        part.number(scale))
    return y


# -- one dimension ----------------------------------------------------------------------------------------------------------------------
def _complex(x, dim, back, scale):
    """The transform of contiguous complex ``x`` along ``dim``."""
    device, row = x._storage.device, x.dtype
    outer, n, inner = extents(x.shape, dim)
    if x._numel == 0 or n == 1:
        return x * scale
    limit, chirp = limit_of(device, row), chirp_of(n, device, row)
    if radices(n) is None and not chirp:
        return _bluestein(x, dim, back, scale)
    y = _single(x, x.shape, n, "complex", scale, back) if inner == 1 else None
    if y is not None:
        return y
    y = empty(x.shape, row, device)
    lonely = device.is_cpu and n >= 64 and outer * inner < 64 // row.to_real().itemsize
    if chirp or n <= limit and not lonely or cut(n, limit)[1] == 1:
        place = (n * inner, 0, 1, inner) if inner > 1 else (0, 0, n, 1)
        _launch(x, y, n, Walk(outer * inner, 1, inner if inner > 1 else outer, place, place), "complex", scale, back, chirp=chirp)
        return y
    n1, n2 = cut(n, limit)
    z = empty(x.shape, row, device)                           # as (outer, n1, n2, inner)
    place = (n * inner, 0, 1, n2 * inner)
    _launch(x, z, n1, Walk(outer * n2 * inner, 1, n2 * inner, place, place), "complex", scale, back, _table(device, row, ("turns", n1, n2)), inner)
    if n2 > limit:
        r = _complex(make_view(z, (outer, n1, n2, inner), (n * inner, n2 * inner, inner, 1), 0), 2, back, 1.0)
        return REGISTRY["_contiguous"].fn(r.transpose(1, 2)).reshape(x.shape)
    if inner > 1:
        walk = Walk(outer * n1 * inner, n1, inner, (n * inner, n2 * inner, 1, inner), (n * inner, inner, 1, n1 * inner))
    else:
        walk = Walk(outer * n1, 1, n1, (n, 0, n2, 1), (n, 0, 1, n1))
    _launch(z, y, n2, walk, "complex", 1.0, back)
    return y


def _bluestein(x, dim, back, scale):
    """With jk = (j^2 + k^2 - (k - j)^2) / 2 a transform is a convolution with a chirp: done by transforms of a convenient length."""
    device, row, n = x._storage.device, x.dtype, x.shape[dim]
    m = smooth_from(2 * n - 1)
    shape = (-1, *[1] * (len(x.shape) - dim - 1))
    chirp, wave = _table(device, row, ("chirp", n)).reshape(shape), _table(device, row, ("chirp transform", n, m)).reshape(shape)
    x = x.conj() if back else x
    pad = [0, 0] * (len(x.shape) - dim - 1) + [0, m - n]
    a = REGISTRY["constant_pad_nd"].fn(x * chirp, pad)
    a = _complex(a.contiguous(), dim, False, 1.0) * wave
    r = _complex(a.contiguous(), dim, True, scale / m).narrow(dim, 0, n) * chirp
    return r.conj() if back else r


def _pairs(x, shape, back, full=False):
    """The step between the transform of pairs and that of the reals that they are, along the last dimension: a result of this shape."""
    device, row = x._storage.device, x.dtype
    m = x.shape[-1] - back
    W = 64 // row.to_real().itemsize if device.is_cpu else 1
    y, run_of = empty(Size(shape), row, device), 2048 if device.is_cpu else 1
    rows = x._numel // (m + back)
    run(device, "fourier/pairs", dict(T=row.to_real(), W=W, RUN=run_of, BACK=back, FULL=full), (-(-(m // 2 + 1) // run_of), rows),
        (1, 1) if device.is_cpu else None, x, y, _table(device, row, ("roots", 2 * m)), m, rows)
    return y


def _as_pairs(n, inner, device, row):
    """Whether ``n`` real numbers that do not fit one launch are done as half as many pairs."""
    return n % 2 == 0 and inner == 1 and radices(n) is not None and n > limit_of(device, row)


def _half(x, dim, scale, full):
    """The first n // 2 + 1 results of the forward transform of real ``x``, or all n."""
    outer, n, inner = extents(x.shape, dim)
    device, row = x._storage.device, dt.complex_of(x.dtype)
    h = n if full else n // 2 + 1
    shape = Size((*x.shape[:dim], h, *x.shape[dim + 1:]))
    if 0 in shape:
        return empty(shape, row, device)
    y = _single(x, shape, n, "real_full" if full else "real_in", scale) if inner == 1 else None
    if y is not None:
        return y
    if _as_pairs(n, inner, device, row):
        x = (x.clone() if x._offset % 2 else x).reshape(outer, n // 2, 2)
        return _pairs(_complex(REGISTRY["view_as_complex"].fn(x), 1, False, scale), shape, False, full)
    chirp = chirp_of(n, device, row)
    if n == 1 or not chirp and (radices(n) is None or n > limit_of(device, row)):
        r = _complex(cast(x, row), dim, False, scale)
        r = r if full else r.narrow(dim, 0, h).contiguous()
        for place in {0, n // 2} if n % 2 == 0 else (0,):              # real, whatever was rounded: angles tell +0 from -0
            REGISTRY["_fill_into"].fn(REGISTRY["view_as_real"].fn(r.narrow(dim, place, 1)).narrow(-1, 1, 1), 0.0)
        return r
    y = empty(shape, row, device)
    places = [(k * inner, 0, 1, inner) if inner > 1 else (0, 0, k, 1) for k in (n, h)]
    _launch(x, y, n, Walk(outer * inner, 1, inner if inner > 1 else outer, *places), "real_full" if full else "real_in", scale, False, chirp=chirp)
    return y


def _from_half(x, dim, n, scale):
    """The real backward transform of length ``n`` of the first n // 2 + 1 of conjugate symmetric numbers."""
    outer, h, inner = extents(x.shape, dim)
    device, row = x._storage.device, x.dtype
    shape = Size((*x.shape[:dim], n, *x.shape[dim + 1:]))
    if 0 in shape:
        return empty(shape, row.to_real(), device)
    y = _single(x, shape, n, "real_out", scale) if inner == 1 else None
    if y is not None:
        return y
    if _as_pairs(n, inner, device, row):
        return REGISTRY["view_as_real"].fn(_complex(_pairs(x, (outer, n // 2), True), 1, True, scale)).reshape(shape)
    chirp = chirp_of(n, device, row)
    if n == 1 or not chirp and (radices(n) is None or n > limit_of(device, row)):
        rest = x.narrow(dim, 1, n - h).flip(dim).conj() if n > h else x.narrow(dim, 0, 0)
        return _complex(REGISTRY["cat"].fn([x, rest], dim).contiguous(), dim, True, scale).real.contiguous()
    y = empty(shape, row.to_real(), device)
    places = [(k * inner, 0, 1, inner) if inner > 1 else (0, 0, k, 1) for k in (h, n)]
    _launch(x, y, n, Walk(outer * inner, 1, inner if inner > 1 else outer, *places), "real_out", scale, True, chirp=chirp)
    return y


# -- operators --------------------------------------------------------------------------------------------------------------------------
def _weights(g, dim, n, middle):
    """``g`` with all but its first and, of an even length ``n``, last place along ``dim`` multiplied by ``middle``: those stand for two places each."""
    h, device, row = g.shape[dim], g._storage.device, g.dtype.to_real()

    def weights():
        w = np.full(h, middle)
        w[0] = 1.0
        if n % 2 == 0:
            w[h - 1] = 1.0
        return from_array(w, device, row)
    return g * shared(device, ("spectrum", h, n % 2, middle, row), weights).reshape(-1, *[1] * (len(g.shape) - dim - 1))


@kernel("_fft_c2c", complex=True, method=False, repeat=True, vjp=dict(input=lambda g, dim, back, scale: fft_c2c(g, dim, not back, scale)))
def fft_c2c(input, dim, back, scale):
    """The complex transform along ``dim`` (not negative), times ``scale``."""
    return _complex(input.contiguous(), dim, back, scale)


def _r2c_gradient(g, input_shape, dim, scale, onesided):
    n = input_shape[dim]
    return fft_c2r(_weights(g, dim, n, 0.5), dim, n, scale) if onesided else fft_c2c(g, dim, True, scale).real


@kernel("_fft_r2c", method=False, repeat=True, vjp=dict(input=_r2c_gradient))
def fft_r2c(input, dim, scale, onesided=True):
    """The forward transform of real numbers: its first n // 2 + 1 results, or all n."""
    return _half(input.contiguous(), dim, scale, not onesided)


@kernel("_fft_c2r", complex=True, method=False, repeat=True, vjp=dict(input=lambda g, dim, n, scale: _weights(fft_r2c(g, dim, scale), dim, n, 2.0)))
def fft_c2r(input, dim, n, scale):
    """The backward transform of conjugate symmetric numbers, given their first n // 2 + 1: n real ones."""
    return _from_half(input.contiguous(), dim, n, scale)


fft_c2c.op.grad_name, fft_r2c.op.grad_name, fft_c2r.op.grad_name = "FftC2CBackward0", "FftR2CBackward0", "FftC2RBackward0"
