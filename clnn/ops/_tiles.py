"""Sorts of devices that are no CPUs: work-groups sort tiles of a row in local memory; and sums along rows of counts.

A row that fits into a tile is sorted there, by a network or by four bits of its keys at a time. Longer rows take passes over eight bits, each of which counts the
digits of every tile, adds these up and moves the elements.
"""
from __future__ import annotations

from .._tensor.dispatch import run
from .._tensor.tensor import empty
from ..core import dtype as dt

_TILE = 1024
NETWORK = 256              # rows up to this are sorted by a network: fewer steps than a radix sort has, and none of its counts
_WHOLE = 64                # tiles per row up to which work-groups add up the counts by themselves, which saves a launch
_SIZES = 16, 8, 4          # elements per work-item: the first that makes tiles for every unit (kernels/sorting/rank.cl.mako)
FIRST = 64                 # so many elements of a row are found one after the other sooner than by a sort
_PART = 16                 # elements of a row that a work-item keeps while the first ones are found
_ALONE = 1 << 14           # numbers per row up to which one work-group adds them up


def key_dtype(dtype):
    """The dtype that holds sort keys of ``dtype`` (kernels read it as unsigned)."""
    return dt.int64 if dtype.itemsize == 8 else dt.int32


def group_of(device):
    return 1 << min(256, device.max_work_group).bit_length() - 1


def room(local, each, size):
    """Bytes of local memory of a tile of ``local * each`` keys of ``size`` bytes (kernels/sorting/rank.cl.mako and what surrounds it)."""
    return local * (each + 1) * size + max(44 * local, 2 * local * each) + 1024


def sizes(device, dtype, more=0):
    """What a work-item may have of a tile, greatest first: what leaves space for a second work-group on most devices, or what fits. ``more``: bytes that
    an element has beside its key."""
    local, size = group_of(device), max(4, dtype.itemsize)
    limit = min(device.local_mem, 49152 if more else 33000)
    return [k for k in _SIZES if room(local, k, size) + more * local * k <= limit] or [_SIZES[-1]][:not more]


def sort_rows(device, x, rows, length, descending, values, indices):
    """Each of ``rows`` rows of contiguous ``x`` into (values, int64 indices)."""
    local, params = group_of(device), dict(T=x.dtype, DESC=descending)
    fitting = sizes(device, x.dtype)
    if length <= min(NETWORK, 2 * local * fitting[0]):
        size = 1 << max(1, (length - 1).bit_length())
        local = max(1, min(local, size // 2))
        run(device, "sorting/bitonic", dict(params, SIZE=size), (rows * local,), (local,), x, values, indices, length)
    elif length <= local * fitting[0]:
        local, each = shape_of(local, fitting, length)
        run(device, "sorting/tile", dict(params, LOCAL=local, K=each), (rows * local,), (local,), x, values, indices, length)
    else:
        passes(x, rows, length, descending, 8 if x.dtype is dt.bool_ else 8 * x.dtype.itemsize, (values, indices))


def sort_rows_of(x, rows, length, descending):
    """New (values, int64 indices) of each of ``rows`` rows of contiguous ``x``."""
    device = x._storage.device
    values, indices = empty(x.shape, x.dtype, device), empty(x.shape, dt.int64, device)
    sort_rows(device, x, rows, length, descending, values, indices)
    return values, indices


def shape_of(local, fitting, length):
    """(work-items, elements of each) of the least tile for a row."""
    each = min([k for k in fitting if local * k >= length])
    while local > 32 and local // 2 * each >= length:
        local //= 2
    return local, each


def passes(x, rows, length, descending, bits, out=None, base=0):
    """Radix passes over the low ``bits`` bits of the keys less ``base``: into ``out``, (values, int64 indices), or new (keys, int32 places)."""
    device, wide = x._storage.device, key_dtype(x.dtype)
    local, fitting = group_of(device), sizes(device, x.dtype)
    each = next((k for k in fitting if rows * -(-length // (local * k)) >= device.compute_units), fitting[-1])
    tiles = -(-length // (local * each))
    whole, count = tiles <= _WHOLE, -(-bits // 8)
    params = dict(T=x.dtype, DESC=descending, LOCAL=local, K=each, WHOLE=whole)
    geometry, tail = ((tiles * local, rows), (local, 1)), (length, tiles)
    table, totals = empty((rows * tiles * 256,), dt.int32, device), empty((1 if whole else rows * 256,), dt.int32, device)
    pairs = [(empty((rows * length,), wide, device), empty((rows * length,), dt.int32, device)) for _ in range(min(2, count - (out is not None)))]
    old = x, totals                                            # the first pass reads no places
    for n in range(count):
        last = out is not None and n == count - 1
        now = dict(params, FIRST=n == 0, LAST=last)
        new = out if last else pairs[n % 2]
        run(device, "sorting/radix:radix_count", now, *geometry, old[0], table, *tail, 8 * n, base)
        if not whole:
            run(device, "sorting/scan:scan_rows", dict(LOCAL=local, TILE=_TILE), (rows * 256 * local,), (local,), table, totals, tiles)
        run(device, "sorting/radix:radix_move", now, *geometry, *old, *new, table, totals, x, *tail, 8 * n, base)
        old = new
    return old


def top_rows(x, rows, length, k, largest):
    """The ``k`` first elements of each sorted row and their positions, (rows, k) each: of parts of long rows, and then of these."""
    device, most = x._storage.device, group_of(x._storage.device) * _PART
    parts = -(-length // most)
    if k * 2 > length // parts:                                # work-groups too small for rounds
        return tuple([t.reshape((rows, length))[:, :k] for t in sort_rows_of(x, rows, length, largest)])
    share = -(-length // parts)
    local = min(most // _PART, max(64 if share > 128 else 32, 1 << (-(-share // _PART) - 1).bit_length()))
    values, indices = empty((rows, parts * k), x.dtype, device), empty((rows, parts * k), dt.int64, device)
    run(device, "sorting/first", dict(T=x.dtype, DESC=largest, LOCAL=local, K=-(-share // local)), (rows * parts * local,), (local,), x, values, indices,
        length, k, parts)
    if parts == 1:
        return values, indices
    values, places = top_rows(values, rows, parts * k, k, largest)
    return values, indices.gather(1, places)


def pick(values, places, rows, length, what):
    """The element at place ``what`` (a number, ``median`` or ``nanmedian``) of each sorted row and its former position, (rows,) each."""
    device, number = values._storage.device, isinstance(what, int)
    kind, at = "place" if number or not values.dtype.is_floating_point else what, what if number else (length - 1) // 2
    got = empty((rows,), values.dtype, device), empty((rows,), dt.int64, device)
    run(device, "sorting/pick", dict(T=values.dtype, WHAT=kind), (rows,), (min(64, group_of(device)),), values, places, *got, rows, length, at)
    return got


def scan(data, rows, n):
    """Exclusive sums along rows of int32 ``data``, in place (``data`` is fresh memory). Returns the rows' totals, a tensor (rows,)."""
    device = data._storage.device
    if device.is_cpu:
        local, tile = 1, max(_TILE, 1 << (n - 1).bit_length()) if n <= 1 << 16 else 1 << 14
    else:
        local, tile = group_of(device), _TILE
        if n <= _ALONE:
            totals = empty((rows,), dt.int32, device)
            run(device, "sorting/scan:scan_rows", dict(LOCAL=local, TILE=tile), (rows * local,), (local,), data, totals, n)
            return totals
    tiles = -(-n // tile)
    totals = empty((rows * tiles,), dt.int32, device)
    params = dict(LOCAL=local, TILE=tile)
    run(device, "sorting/scan:scan_tiles", params, (tiles * local, rows), (local, 1), data, totals, n)
    if tiles == 1:
        return totals
    whole = scan(totals, rows, tiles)
    run(device, "sorting/scan:scan_add", params, (n, rows), (256 if n >= 256 else 16, 1), data, totals, n, tiles)
    return whole
