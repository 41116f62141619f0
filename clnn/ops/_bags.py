"""Launches of bags of rows: sums, means and maxima of rows of a table, and their gradients, without the rows in between."""
from __future__ import annotations

from .._tensor.dispatch import run
from .._tensor.tensor import empty
from ..core import dtype as dt
from . import _scatter


def _spans(input, offsets, include_last):
    """(number of bags, the argument ``each`` of kernels/indexing/bag)."""
    if offsets is None:
        return input.shape
    count = offsets.shape[0]
    return count - 1 if include_last else count, count


def _arguments(weight, input, offsets, bags, each, padding):
    device, rows = weight._storage.device, weight.shape[0]
    _scatter.check_rows("embedding", 0, rows, input._numel)
    err = _scatter.code(device, "embedding_bag", 0, rows, f"an index takes value {{value}} which is not in the valid range [0, {rows})")
    order = _scatter.code(device, "embedding_bag", 0, input._numel,
                          "offsets have to begin with 0 and to rise up to at most the length of the input, but got {value}")
    index = input.contiguous()
    starts = index if offsets is None else offsets.to(index.dtype).contiguous()
    return index, starts, rows, weight.shape[1], bags, input._numel, each, padding, device.error_buffer, err, order


def forward(weight, input, offsets, scales, padding, mode, include_last):
    """(bags, what the gradient needs of them): numbers of rows for maxima, one over the counts for means."""
    device, acc, width = weight._storage.device, weight.dtype.acc_dtype, weight.shape[1]
    bags, each = _spans(input, offsets, include_last)
    out = empty((bags, width), weight.dtype, device)
    kept = empty(dict(max=(bags, width), mean=(bags,), sum=(0,))[mode], dt.int32 if mode == "max" else acc, device)
    if not out._numel:
        return out, kept
    rows, w, block, chunk = device.is_cpu, 1, 1, 1
    if rows:
        most = 8 if acc is dt.float64 else 16
        w = min(most, 1 << width.bit_length() - 1)
        block = min(8, 1 << (width // w).bit_length() - 1)
        chunk = max(1, min(-(-bags // (4 * device.compute_units)), 65536 * bags // (width * max(1, input._numel))))
    gs, ls = ((-(-bags // chunk),), (1,)) if rows else ((width, bags), (_scatter.local_of(width, device), 1))
    params = dict(T=weight.dtype, TI=input.dtype, MODE=mode, EVEN=offsets is None, SCALED=scales is not None, FORM="rows" if rows else "item", W=w, BLOCK=block)
    table = weight.contiguous()
    run(device, "indexing/bags", params, gs, ls, table, table if scales is None else scales.contiguous(), out, kept, chunk,
        *_arguments(weight, input, offsets, bags, each, padding))
    return out, kept


def table_gradient(g, weight, input, offsets, scales, share, padding, include_last):
    """The gradient of sums (``share``: of means) by the table, on CPUs."""
    device, (rows, width) = weight._storage.device, weight.shape
    bags, each = _spans(input, offsets, include_last)
    out = empty((rows, width), weight.dtype.acc_dtype, device)
    if out._numel:
        own = -(-rows // min(rows, 2 * device.compute_units))
        params = dict(T=weight.dtype, TI=input.dtype, EVEN=offsets is None, SCALED=scales is not None, SHARED=share is not None)
        g = g.contiguous()
        run(device, "indexing/bags_backward", params, (1, -(-rows // own)), (1, 1), g, g if scales is None else scales.contiguous(),
            out if share is None else share, out, own, *_arguments(weight, input, offsets, bags, each, padding))
    return out.to(weight.dtype)


def scale_gradient(g, weight, input, offsets, scales, padding, include_last):
    """The gradient of sums by what scales their rows."""
    device = weight._storage.device
    bags, each = _spans(input, offsets, include_last)
    out = empty(input.shape, scales.dtype, device)
    if out._numel:
        chunk = -(-bags // (4 * device.compute_units)) if device.is_cpu else 1
        run(device, "indexing/bags_scales", dict(T=weight.dtype, TI=input.dtype, EVEN=offsets is None), (-(-bags // chunk),), (1 if device.is_cpu else 64,),
            g.contiguous(), weight.contiguous(), out, chunk, *_arguments(weight, input, offsets, bags, each, padding))
    return out
