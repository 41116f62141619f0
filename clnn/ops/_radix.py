"""Launching sorts: rows of numbers into (sorted values, indices), and exclusive sums of counts.

CPU drivers: a work-item sorts whole rows; a few long rows are cut into chunks that work-items share. GPUs: ``_tiles``. All forms are stable and give the same
result.
"""
from __future__ import annotations

from .._tensor.dispatch import run
from .._tensor.tensor import empty
from ..core import dtype as dt
from . import _tiles
from ._tiles import key_dtype

_SORTED = 64               # rows up to this are sorted to find one element of them
_FEW = 128                 # rows up to this are sorted without passes over bytes (kernels/sorting/rows.cl.mako)
_LANES = 64, 512           # rows up to this, so many of them, are sorted in the lanes of vectors (kernels/sorting/lanes.cl.mako)
_LONG_ROW = 16384          # on CPUs: rows longer than this are shared by work-items when there are fewer rows than units
_FEW_TOP = 128
_DIGIT = 11                # bits per pass over a long row on CPUs (kernels/sorting/long.cl.mako)


def sort_rows(x, rows, length, descending=False):
    """Sort each of ``rows`` rows of contiguous ``x``: (values, int64 indices) in the shape of ``x``. Stable."""
    device = x._storage.device
    values, indices = empty(x.shape, x.dtype, device), empty(x.shape, dt.int64, device)
    if x._numel == 0:
        return values, indices
    if device.is_cpu:
        (_sort_each if length <= _LONG_ROW or rows >= 2 * device.compute_units else _sort_long)(device, x, rows, length, descending, values, indices)
        return values, indices
    _tiles.sort_rows(device, x, rows, length, descending, values, indices)
    return values, indices


def _sort_each(device, x, rows, length, descending, values, indices):
    """A work-item per row at a time, or eight short rows."""
    if in_lanes(x, rows, length):
        _sort_lanes(device, x, rows, length, values, indices, "sort", descending, length)
        return
    items = min(rows, 4 * device.compute_units)
    params = dict(T=x.dtype, DESC=descending)
    if length <= _FEW:
        run(device, "sorting/rows:sort_few", dict(params, FEW=_FEW), (items,), (1,), x, values, indices, rows, length, items)
        return
    wide = key_dtype(x.dtype) if x.dtype.is_floating_point else dt.int64
    keys, places = empty((items * 2 * length,), wide, device), empty((items * 2 * length,), dt.int32, device)
    run(device, "sorting/rows:sort_rows", dict(params, FEW=0), (items,), (1,), x, values, indices, keys, places, rows, length, items)


def picks(x, rows, length):
    """True where `select_rows` finds an element sooner than a sort of the rows."""
    return x._storage.device.is_cpu and x._numel > 0 and (_SORTED < length < 2 ** 31 or in_lanes(x, rows, length))


def in_lanes(x, rows, length):
    """True where many short rows are sorted in the lanes of vectors."""
    return x._storage.device.is_cpu and length <= _LANES[0] and rows >= _LANES[1] and x.dtype.itemsize <= 4


def _sort_lanes(device, x, rows, length, values, indices, what, descending=False, place=0):
    chunk = -(-rows // (8 * device.compute_units)) + 7 & ~7
    run(device, "sorting/lanes", dict(T=x.dtype, DESC=descending, N=max(8, 1 << (length - 1).bit_length()), WHAT=what), (-(-rows // chunk),), (1,),
        x, values, indices, rows, length, place, chunk)


def _sort_long(device, x, rows, length, descending, values, indices):
    """A few work-items share a row. How many passes it takes is seen on the device: those that are not needed do nothing."""
    chunk = -(-length // max(1, 2 * device.compute_units // rows)) + 63 & ~63
    chunks, wide = -(-length // chunk), x.dtype.itemsize == 8
    keys, keys2 = (empty((rows * length,), dt.int64, device) for _ in "ab")
    places, places2 = (empty((rows * length if wide else 1,), dt.int32, device) for _ in "ab")
    spread, table = empty((rows * chunks * 3,), key_dtype(x.dtype), device), empty((rows * chunks << _DIGIT,), dt.int32, device)
    params, geometry, tail = dict(T=x.dtype, DESC=descending), ((chunks, rows), (1, 1)), (length, chunk, chunks)
    run(device, "sorting/long:long_range", params, *geometry, x, spread, *tail)
    old, new = (keys, places), (keys2, places2)
    for number in range(-(-8 * x.dtype.itemsize // _DIGIT)):
        run(device, "sorting/long:long_count", params, *geometry, x, old[0], spread, table, *tail, number)
        run(device, "sorting/long:long_move", params, *geometry, x, *old, *new, spread, table, *tail, number)
        old, new = new, old
    run(device, "sorting/long:long_emit", params, *geometry, x, keys, places, keys2, places2, spread, values, indices, *tail)


def top_rows(x, rows, length, k, largest):
    """The ``k`` first elements of each sorted row and their positions, (rows, k) each; on CPUs only.

    Many short rows are sorted. A few rows are cut into chunks, whose first ``k`` are sorted together. Up to ``_FEW_TOP`` elements are kept in order
    while the row passes by; more are found by the last one of them.
    """
    device = x._storage.device
    if in_lanes(x, rows, length):
        values, indices = empty((rows, k), x.dtype, device), empty((rows, k), dt.int64, device)
        _sort_lanes(device, x, rows, length, values, indices, "sort", largest, k)
        return values, indices
    units = 2 * device.compute_units
    chunks = max(1, min(units // rows, length // max(_LONG_ROW, 8 * k)))
    chunk, items, few = length // chunks, min(rows * chunks, 2 * units), k <= _FEW_TOP
    values, indices = empty((rows, chunks * k), x.dtype, device), empty((rows, chunks * k), dt.int64, device)
    keys = empty((items * (k if few else length - (chunks - 1) * chunk),), key_dtype(x.dtype), device)
    if few:
        run(device, "sorting/topk", dict(T=x.dtype, DESC=largest), (items,), (1,), x, values, indices, keys,
            empty((items * k,), dt.int32, device), rows, length, k, items, chunk, chunks)
        if chunks == 1:
            return values, indices
    else:
        run(device, "sorting/select:select_top", dict(T=x.dtype, DESC=largest, WHAT="top"), (items,), (1,), x, values, indices, keys, rows, length, k,
            items, chunk, chunks)
    values, places = sort_rows(values, rows, chunks * k, largest)
    return values[:, :k], indices.gather(1, places[:, :k])


def select_rows(x, rows, length, what):
    """The element at place ``what`` (a number, ``median`` or ``nanmedian``) of each sorted row and its position, (rows,) each; on CPUs only."""
    device = x._storage.device
    values, indices = empty((rows,), x.dtype, device), empty((rows,), dt.int64, device)
    number = isinstance(what, int)
    kind, place = "place" if number or not x.dtype.is_floating_point else what, what if number else (length - 1) // 2
    if in_lanes(x, rows, length):
        _sort_lanes(device, x, rows, length, values, indices, kind, False, place)
    else:
        items = min(rows, 4 * device.compute_units)
        run(device, "sorting/select", dict(T=x.dtype, DESC=False, WHAT=kind), (items,), (1,), x, values, indices,
            empty((items * length,), key_dtype(x.dtype), device), rows, length, place, items)
    return values, indices
