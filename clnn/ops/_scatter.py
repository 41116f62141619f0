"""Launching reads and writes by index, for raw (B, D, R) layouts: B outer items, D rows that indices choose from, R inner elements.

Writes fold colliding elements in the order of the source, whatever the driver: a work-item owns its destinations (CPUs), its columns, or a
run of equal indices after a stable sort (GPUs). On CPUs many elements for few destinations are folded in chunks, whose number depends on sizes
alone, and these in order. No float atomics, so two runs give equal bits.
"""
from __future__ import annotations

import functools
import struct

from .._tensor.dispatch import run
from .._tensor.repeat import repeated
from .._tensor.tensor import empty
from ..core import dtype as dt
from ..core import symbols
from ..core.shape import Size, view_strides
from . import _tiles
from .creation import filled

_WIDTH = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong", 16: "ulong2"}
_LONG = 1 << 16            # CPUs: elements from which on the source is cut into chunks
_COLUMNS = 128             # CPUs: columns whose elements are read by index together
_CACHE = 1 << 21           # bytes from which on that pays
_EACH = 4                  # GPUs: indices of a work-item
_codes: dict = {}
_TEXTS = dict.fromkeys(("index_add", "index_select", "embedding"), "index out of range in self")
force = None                # tests set "gpu" or "cpu" to run the other family's algorithm


# As in PyTorch, whose other operators raise IndexError; ``index_add_`` are matrices, which another of its loops adds up.
_RUNTIME_ERRORS = {"gather": None, "scatter": None, "index_add_": None, "embedding_bag": None,
                   "searchsorted": "torch.searchsorted(): sorter index out of range", "masked_scatter": "Number of elements of source < number of ones in mask"}


def code(device, op, dim, size, text=None):
    """The packed error code of an index out of range in ``op``."""
    if symbols.is_number(size):
        return symbols.call(code, device, op, dim, size, text)
    key = (op, dim, size, text)
    got = _codes.get(key)
    if got is None:
        if op in ("take", "put"):
            text = f"out of range: tried to access index {{value}} on a tensor of {size} elements."
        message = _RUNTIME_ERRORS.get(op) or text or _TEXTS.get(op) or f"index {{value}} is out of bounds for dimension {dim} with size {size}"
        got = _codes[key] = struct.pack("i", device.error_code(op, message, RuntimeError if op in _RUNTIME_ERRORS else IndexError))
    return got


def on_cpu(device):
    return device.is_cpu if force is None else force == "cpu"


def local_of(n, device):
    limit = device.max_work_group
    return min(256 if n >= 256 else 64 if n >= 64 else 16, limit)


def width(dtype):
    return _WIDTH[dtype.itemsize]


def wider(dtype, *counts):
    """(C type, elements of ``dtype`` in it): up to 16 bytes, which all of ``counts`` elements are multiples of."""
    size = next((n for n in (16, 8, 4, 2) if n > dtype.itemsize and not any(c * dtype.itemsize % n for c in counts)), dtype.itemsize)
    return _WIDTH[size], size // dtype.itemsize


def check_rows(op, dim, size, count):
    """Refuse on the host what no index can satisfy."""
    if size == 0 and count:
        kind = RuntimeError if op in _RUNTIME_ERRORS else IndexError
        if op == "take":
            raise kind("take(): tried to take from an empty tensor")
        raise kind(f"{op}: " + (_RUNTIME_ERRORS.get(op) or _TEXTS.get(op) or f"index is out of bounds for dimension {dim} with size 0"))


# -- reading ------------------------------------------------------------------------------------------------------------------------

def read_rows(x, index, out_shape, B, D, R, wrap, err, pitch=None):
    """out[b, n] = x[b, index[n]] for contiguous ``x`` and ``index``. Where B is 1, rows may lie ``pitch`` elements apart, overlapping or with gaps."""
    pitch = R if pitch is None else pitch
    device, N = x._storage.device, index._numel
    out = empty(out_shape, x.dtype, device)
    if out._numel == 0:
        return out
    if not device.is_cpu:
        U, per = wider(x.dtype, R, x._offset, pitch) if R >= 16 else (width(x.dtype), 1)
        params = dict(U=U, TI=index.dtype, WRAP=wrap, LOOP=False)
        return _by_columns(device, "indexing/select", params, (x, out), per, index, B, N, R // per, (D, N, R // per, 0, pitch // per), err, R >= 16)
    params = dict(U=width(x.dtype), TI=index.dtype, WRAP=wrap, LOOP=True, WIDE=False, E=1)
    chunk = max(1, 4096 // R, -(-N * B // (16 * device.compute_units)) if R < 4096 else 1)
    gs, ls = (-(-N // chunk), B), (1, 1)
    run(device, "indexing/select", params, gs, ls, x, index, out, D, N, R, chunk, pitch, device.error_buffer, err,
        touched=2 * out._numel * x.dtype.itemsize + N * index.dtype.itemsize)
    return out


def read_elements(x, index, B, D, N, R, wrap, err):
    """out[b, n, r] = x[b, index[b, n, r], r] for contiguous operands."""
    device = x._storage.device
    out = empty(index.shape, x.dtype, device)
    if out._numel == 0:
        return out
    params = dict(U=width(x.dtype), TI=index.dtype, WRAP=wrap, LOOP=device.is_cpu)
    if not device.is_cpu:
        return _by_columns(device, "indexing/gather", params, (x, out), 1, index, B, N, R, (B, D, N, R, 0, 0), err, R >= 32)
    # Of a block of columns, what all rows read stays in a cache.
    wide = _COLUMNS if R >= 2 * _COLUMNS and N * 8 >= D and D * R * x.dtype.itemsize >= _CACHE else R
    chunk = max(1, 16384 // wide)
    run(device, "indexing/gather", dict(WIDE=False, E=1, **params), (-(-B * N // chunk), -(-R // wide)), (1, 1), x, index, out, B, D, N, R, chunk, wide,
        device.error_buffer, err, touched=out._numel * (2 * x.dtype.itemsize + index.dtype.itemsize))
    return out


def _by_columns(device, path, params, operands, per, index, B, N, R, sizes, err, wide):
    """Launch a kernel of GPUs that reads by index: work-items side by side along R where ``wide``, each with E indices, which a GPU that is full reads together.

    ``operands``: (x, out), of which the kernel sees ``per`` elements as one; ``sizes``: the numbers that it takes.
    """
    x, out = operands
    E = _EACH if B * N * R >= device.compute_units * 2048 * _EACH else 1
    limit = min(256, device.max_work_group)
    if wide:
        across = min((w for w in (256, 128, 64, 32) if w <= limit), key=lambda w: (-(-R // w) * w, -w), default=limit)
        gs, ls = (R, -(-N // (E * (limit // across))) * (limit // across), B), (across, limit // across, 1)
    else:
        local = local_of(N * R, device)
        gs, ls = (-(-N * R // (E * local)) * local, B), (local, 1)
    run(device, path, dict(WIDE=wide, E=E, **params), gs, ls, x._storage, x._offset // per, index, out._storage, out._offset // per, *sizes,
        device.error_buffer, err, touched=out._numel * (2 * x.dtype.itemsize + index.dtype.itemsize))
    return out


# -- writing ------------------------------------------------------------------------------------------------------------------------

def walk(src, B, N, R):
    """``src`` and its strides as (B, N, R); a copy is made only if no strides fit."""
    strides = view_strides(src.shape, src._strides, (B, N, R))
    if strides is None:
        src = src.contiguous()
        strides = (N * R, R, 1)
    return src, strides


def write_rows(out, index, src, B, D, R, op, wrap, err, unique=False):
    """out[b, index[n]] = fold(that, src[b, n]) in the fresh dense ``out``. ``op``: add, mul, max, min or set (the last one wins)."""
    device, N = out._storage.device, index._numel
    if N == 0 or B * R == 0:
        return out
    src, (sb, sn, sr) = walk(src, B, N, R)
    tail = (sb, sn, sr, device.error_buffer, err)
    params = dict(TI=index.dtype, WRAP=wrap)
    if op == "set" and unique:
        _write(device, out, index, src, None, B, D, N, R, params, tail)
    elif on_cpu(device) and op != "set" and N * R >= _LONG and N >= 8 * D and out.dtype.c == out.dtype.acc and out.dtype is not dt.bool_:
        _in_parts(device, out, index, src, B, D, N, R, dict(T=out.dtype, OP=op, ONE=R == 1, **params), tail)
    elif on_cpu(device) or D >= 2 ** 31 or N >= 2 ** 31:
        want = max(1, (device.compute_units if R < 8 else 2 * device.compute_units) // B)
        own = -(-D // min(D, want))
        run(device, "indexing/scatter_rows", dict(T=out.dtype, OP=op, ONE=R == 1, **params), (-(-D // own), B), (1, 1),
            out, index, src, D, N, R, own, *tail)
    elif N <= 128:
        run(device, "indexing/scatter_columns", dict(T=out.dtype, OP=op, SHARED=True, **_FAR, **params), (R, B, 1), (local_of(R, device), 1, 1),
            out, index, src, D, N, R, 1, D, *tail)
    elif op == "set":
        win = filled(Size((D,)), 0, dt.int32, device)
        run(device, "indexing/winner", params, (N,), (local_of(N, device),), index, win, D, N, device.error_buffer, err)
        _write(device, out, index, src, win, B, D, N, R, params, tail)
    else:
        _by_sort(device, out, index, src, B, D, N, R, op, params, (sb, sn, sr), err)
    return out


def _by_sort(device, out, index, src, B, D, N, R, op, params, strides, err, apart=False):
    """Equal indices are brought together, and each run of them is folded; ``apart``: those of each b are its own."""
    rows, n = (B, B * N) if apart else (1, N)
    keys = empty((n,), dt.int32, device)
    run(device, "indexing/keys", params, (n,), (local_of(n, device),), index, keys, D, n, device.error_buffer, err)
    keys, order = _tiles.passes(keys, rows, N, False, D.bit_length())
    run(device, "indexing/segments", dict(T=out.dtype, OP=op, APART=apart), (R, N, B), (local_of(R, device) if R > 1 else 1, 1 if R > 1 else 64, 1),
        out, keys, order, src, D, N, R, *strides)


def _in_parts(device, out, index, src, B, D, N, R, params, tail):
    """Chunks of the source fold into copies of the destinations, where these are few enough to fill with less work than that saves."""
    chunk = -(-N // min(64, N // (4 * D)))
    chunks, n, per = -(-N // chunk), B * D * R, 4096
    parts = empty(((chunks - 1) * n,), out.dtype, device)
    run(device, "indexing/scatter_parts:scatter_parts", params, (chunks, B), (1, 1), out, parts, index, src, D, N, R, chunk, *tail)
    run(device, "indexing/scatter_parts:scatter_join", params, (-(-n // per),), (1,), out, parts, n, chunks, per)


def counts(index, D):
    """How often each of 0 .. D - 1 occurs in the contiguous vector ``index``, int64 (D,), and tensors with smallest and greatest elements, (n, 2).

    None where counts of parts of the vector would not be made in one pass, or would take more memory than it has.
    """
    device, N = index._storage.device, index._numel
    if not on_cpu(device) or not 0 < N < 2 ** 31:
        return None
    chunk = -(-N // (4 * device.compute_units))
    return None if D * -(-N // chunk) > max(N, 1 << 16) else _chunk_counts(index, D, chunk)


@functools.partial(repeated, mode="whole")
def _chunk_counts(index, D, chunk):
    device, N = index._storage.device, index._numel
    chunks = -(-N // chunk)
    parts, ends = empty((chunks, D + 1), dt.int32, device), empty((chunks, 2), dt.int64, device)
    run(device, "indexing/count", dict(TI=index.dtype), (chunks,), (1,), index, parts, ends, N, D, chunk)
    return parts[:, :D].sum(0), ends


def _write(device, out, index, src, win, B, D, N, R, params, tail):
    ls = (local_of(R, device), 1, 1) if R > 8 else (1, min(64, device.max_work_group), 1)
    run(device, "indexing/write_rows", dict(U=width(out.dtype), WIN=win is not None, **params), (R, N, B), ls, out, index, src,
        out if win is None else win, D, N, R, *tail)


_NEAR = 1 << 18             # bytes of columns that a work-item keeps in memory of its own
_FAR = dict(WIDE=1, ROWS=0)


def _near(out, B, D, N, R):
    """How many columns of how many rows are worked on in other memory than that of the result; None where that is not worth its copies."""
    T, units = out.dtype, out._storage.device.compute_units
    if T.c != T.acc or T is dt.bool_ or R < 16 or D > 4 * N:
        return None
    for wide in (64, 32, 16):
        rows = _NEAR // (T.itemsize * wide)
        if D <= rows and (wide == 16 or B * -(-R // wide) >= 4 * units):
            return dict(WIDE=wide, ROWS=rows)
    return None


def _in_tiles(device, out, index, src, B, D, N, op, wrap, strides, err):
    """Rows of destinations that are sorted in local memory; False where they are too long for that."""
    size = out.dtype.acc_dtype.itemsize
    fitting = [k for k in _tiles.sizes(device, dt.int32, size) if _tiles.group_of(device) * k >= N]
    if not fitting:
        return False
    local, each = _tiles.shape_of(_tiles.group_of(device), fitting, N)
    run(device, "indexing/scatter_tiles", dict(T=out.dtype, TI=index.dtype, OP=op, WRAP=wrap, FOURS=-(-max(1, (D - 1).bit_length()) // 4), LOCAL=local, K=each),
        (B * local,), (local,), out, index, src, D, N, *strides, device.error_buffer, err)
    return True


def write_elements(out, index, src, B, D, N, R, op, wrap, err, unique=False):
    """out[b, index[b, n, r], r] = fold(that, src[b, n, r]) in the fresh dense ``out``."""
    device = out._storage.device
    if B * N * R == 0:
        return out
    if B == 1 and R == 1:
        return write_rows(out, index, src, 1, D, 1, op, wrap, err, unique)
    columns, cpu = B * R, on_cpu(device)
    if not cpu and R == 1 and N > 32 and D < 2 ** 31 and N < 2 ** 31 and not (op == "set" and unique):
        src, (sb, sn, sr) = walk(src, B, N, R)
        if not _in_tiles(device, out, index, src, B, D, N, op, wrap, (sb, sn), err):
            _by_sort(device, out, index, src, B, D, N, 1, op, dict(TI=index.dtype, WRAP=wrap), (sb, sn, sr), err, True)
        return out
    if cpu or (columns >= 64 * device.compute_units and not (op == "set" and unique)) or B * D * R >= 2 ** 31:
        src, (sb, sn, sr) = walk(src, B, N, R)
        loop = device.loops or device.is_cpu
        wide = min(R, 16) if loop else 1                    # a cache line of each row: the columns' destinations then stay in cache
        items = B * -(-R // wide)
        own = D if not cpu or items >= device.compute_units else -(-D // min(D, -(-device.compute_units // items)))
        near = _near(out, B, D, N, R) if loop and own == D else None
        wide = near["WIDE"] if near else wide
        ls = (1, 1, 1) if loop or R < 16 else (local_of(R, device), 1, 1)
        run(device, "indexing/scatter_columns", dict(T=out.dtype, TI=index.dtype, OP=op, WRAP=wrap, SHARED=False, **near or _FAR),
            (-(-R // wide), B, -(-D // own)), ls, out, index, src, D, N, R, wide, own, sb, sn, sr, device.error_buffer, err)
        return out
    flat = empty((B * N * R,), dt.int64, device)
    run(device, "indexing/flat_index", dict(TI=index.dtype, WRAP=wrap), (N * R, B), (local_of(N * R, device), 1), index, flat, D, N, R,
        device.error_buffer, err)
    return write_rows(out, flat, src.contiguous(), 1, B * D * R, 1, op, False, err, unique)
