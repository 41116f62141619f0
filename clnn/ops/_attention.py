"""Attention on CPUs in one launch forward and one backward: a work-item owns a block of queries (or keys) and goes from scores to results in
local memory (Dao et al., "FlashAttention", 2022, with the register tiles of the matrix products). Operands are read through their strides.
"""
from __future__ import annotations

from math import lcm

from .._tensor.tensor import empty, make_view
from .._tensor.writing import copy
from ..core import dtype as dt
from ..core import symbols
from ..core.shape import Size, is_contiguous
from ..runtime.launch import _pack_float, launch
from ..runtime.params import on_change, parameters_for
from ._conv import _words8, _words16

_ROWS = {1: 12, 2: 12, 3: 8, 4: 6}          # rows of a register tile by its vectors
_FEW_REGISTERS = dict.fromkeys(_ROWS, 8)    # the tile is computed in parts of four rows and a vector


class Form:
    """Tile sizes of a call, from its lengths and the device's local memory."""

    __slots__ = ("L", "S", "E", "EV", "NK", "panels", "z", "heads", "groups", "device")

    def __init__(self, query, key, value, groups):
        self.L, self.E = query.shape[2], key.shape[3]
        self.S, self.EV = value.shape[2:]
        self.device, self.heads, self.groups = query._storage.device, query.shape[1], groups
        self.z = query.shape[0] * self.heads
        self.NK = 1 if self.S <= 16 else 2 if self.S <= 32 else 4
        self.panels = -(-self.S // (self.NK * 16))

    @staticmethod
    def suits(query, key, value) -> bool:
        """Something to do, computed in float."""
        device = query._storage.device
        return device.is_cpu and query.dtype is not dt.float64 and query._numel * value._numel > 0 and device.local_mem >= 1 << 16

    def params(self, most, copies, mask, causal, drop):
        """Kernel parameters; ``most`` keys and ``copies`` score matrices in local memory; ``mask``: its dtype or None."""
        NE, NO = (next(n for n in (4, 3, 2, 1) if not -(-size // 16) % n) for size in (self.E, self.EV))
        KB = min(most, max(self.NK * 16, 1 << (self.S - 1).bit_length()))
        BQ = 96 if self.L > 5 else self.L
        while BQ > 24 and copies * BQ * (KB + 16) * 4 > self.device.local_mem * 7 // 8:
            BQ //= 2
        return dict(E=self.E, EV=self.EV, NK=self.NK, MK=self.rows(self.NK), NO=NO, MO=self.rows(NO), BQ=BQ, KB=KB, MASK=mask,
                    CAUSAL=int(causal), DROP=int(drop)), NE

    def rows(self, vectors):
        """Rows of a register tile; few queries (a step of generation has one) need no more than they are."""
        rows = (_ROWS if self.device.wide else _FEW_REGISTERS)[vectors]
        return min(rows, self.L) if self.L <= 5 else rows

    def queries(self, params, items):
        """Queries per block: even blocks, enough of them to occupy the device."""
        step = lcm(params["MK"], params["MO"]) if self.L > 24 else params["MK"]
        blocks = max(-(-self.L // params["BQ"]), min(-(-self.L // step), items))
        return min(params["BQ"], -(-(-(-self.L // blocks)) // step) * step)


def rows_of(t):
    """``t`` with unit stride in its last dimension (strides of the others do not matter), in float32."""
    t = t.to(dt.float32) if t.dtype is not dt.float32 else t
    return t if t._strides[3] == 1 or t.shape[3] == 1 else t.contiguous()


def padded(t):
    """``t`` with rows of whole vectors, the last one filled up by zeros."""
    B, heads, S, E = t.shape
    if not E % 16:
        return t
    device, P = t._storage.device, -(-E // 16) * 16
    y = empty(Size((B, heads, S, P)), dt.float32, device)
    each = max(1, min(4096 // P, -(-S * B * heads // (2 * device.compute_units))))
    launch(device, device.kernel("matmul/rows"), (-(-S // each), B * heads), (1, 1), *buffers(t, y), _words8(S, E, heads, *t._strides[:3], P, each))
    return y


def cut(t, size):
    """Rows without their padding."""
    return t if t.shape[3] == size else make_view(t, (*t.shape[:3], size), t._strides, 0)


def heads_inside(t):
    """Whether the heads of ``t`` (B, H, L, E) lie within its rows, as where one projection made them all."""
    return t.shape[1] > 1 and t._strides[1] < t._strides[2]


def dense(t, size, inside):
    """Rows without their padding, one behind the other, the heads ``inside`` of rows or around them: programs rely on the order of the query when they
    take heads and elements together."""
    B, H, L, _ = t.shape
    b, h, l, _ = t._strides
    r = copy(make_view(t, (B, L, H, size) if inside else (B, H, L, size), (b, l, h, 1) if inside else t._strides, 0))
    r._storage.buffer()
    if inside:
        r._shape, r._strides = Size((B, H, L, size)), (L * H * size, size, H * size, 1)
        r._dense = is_contiguous(r.shape, r._strides)
    return r


def like(t, shape, dtype=dt.float32):
    """Empty memory of ``shape`` (B, H, L, E) with heads innermost of the first three where ``t`` has them so."""
    B, H, L, E = shape
    device = t._storage.device
    if not heads_inside(t):
        return empty(Size(shape), dtype, device)
    r = empty(Size((B, L, H, E)), dtype, device)
    r._shape, r._strides = Size(shape), (L * H * E, E, H * E, E and 1)
    r._dense = is_contiguous(r.shape, r._strides)
    return r


class Pack:
    """The launch that puts keys or values in panels of vectors."""

    __slots__ = ("kernel", "gs", "words", "nbytes")

    def __init__(self, form, x):
        B, heads, S, E = x.shape
        b, h, s, _ = x._strides
        self.kernel = form.device.kernel("matmul/columns", NK=form.NK)
        self.gs, self.words = (form.panels, B * heads), _words8(S, E, heads, b, h, s, form.NK * 16, 16)
        self.nbytes = B * heads * form.panels * form.NK * 16 * E * 4

    def run(self, x):
        device = x._storage.device
        y = device.alloc(self.nbytes)
        launch(device, self.kernel, self.gs, (1, 1), x._storage.buffer(), x._offset, y, 0, self.words)
        return y


_plans: dict = symbols.kept()
on_change(_plans.clear)


def plan(make, tensors, *rest):
    """``make(tensors, *rest)``, once per shapes and strides: what a call needs beside its buffers."""
    key = (make, tensors[0]._storage.device, *[(t.shape, t._strides) for t in tensors], *rest)
    got = _plans.get(key)
    if got is None:
        if len(_plans) > 2048:
            _plans.clear()
        got = _plans[key] = make(tensors, *rest)
    return got


def buffers(*tensors):
    """Buffer and offset of each, as launch arguments."""
    out = []
    for t in tensors:
        out += (t._storage.buffer(), t._offset)
    return out


def kind(mask):
    return None if mask is None else mask.dtype


def extras(mask, drop):
    """Arguments of the mask (its four strides) and of dropout."""
    return ((*buffers(mask), *mask._strides) if mask is not None else ()) + (drop or ())


def _forward_plan(tensors, out_strides, mask, causal, drop, scale, groups):
    query, key, value = tensors
    f = Form(query, key, value, groups)
    params, _ = f.params(512, 1, mask, causal, drop)
    row = parameters_for(f.device, "attention", "", f.L, f.S, f.E) if f.L > 5 else None
    if row:
        KB = max(f.NK * 16, min(params["KB"], row.get("KB", 512)))
        fits = f.device.local_mem * 7 // 8 // (4 * (KB + 16))
        params.update(KB=KB, BQ=next(n for n in (row.get("BQ", 96), 48, 24) if n <= max(fits, 24)))
    if f.L <= 5 and not f.E % 16:                               # so few queries are not worth the packing of all keys
        params["NK"] = 0
    block = f.queries(params, -(-2 * f.device.compute_units // f.z))
    words = (_words8(f.L, f.S, f.heads, groups, block, f.panels), _words16(*query._strides[:3], *value._strides[:3], *out_strides, *key._strides[:3]),
             _pack_float(scale))
    return Pack(f, key) if params["NK"] else None, f.device.kernel("attention/forward", **params), (-(-f.L // block), f.z), words


def forward(query, key, value, mask, drop, causal, scale, groups):
    """(out, lse), both float32."""
    query, key, whole = rows_of(query), rows_of(key), padded(rows_of(value))
    size, value = value.shape[3], whole
    device = query._storage.device
    out = like(query, (*query.shape[:3], value.shape[3]))
    lse = empty(Size((query.shape[0] * query.shape[1], query.shape[2])), dt.float32, device)
    pack, kernel, gs, words = plan(_forward_plan, (query, key, value), out._strides[:3], kind(mask), causal, bool(drop), scale, groups)
    keys = (pack.run(key), 0) if pack is not None else buffers(key)
    launch(device, kernel, gs, (1, 1), *buffers(query), *keys, *buffers(value, out, lse), *words, *extras(mask, drop))
    return (out if out.shape[3] == size else dense(out, size, heads_inside(out))), lse


def _backward_plan(tensors, mask, causal, drop, scale, groups):
    grad, query, key, out, keys, values = tensors
    f = Form(query, keys, values, groups)
    params, NE = f.params(256, 2, mask, causal, drop)
    chunks = min(f.panels, -(-2 * f.device.compute_units // f.z))
    chunk = -(-f.panels // chunks) * f.NK * 16
    chunks = -(-f.S // chunk)
    words = _words8(f.L, f.S, f.heads, groups, f.queries(params, 1), f.panels, chunk, query._numel)
    kernel = f.device.kernel("attention/backward", **params, NE=NE, ME=f.rows(NE))
    t = (*query._strides[:3], *key._strides[:3], *out._strides[:3], *grad._strides[:3])
    return Pack(f, keys), Pack(f, values), kernel, chunks, (chunks, f.z), words, t, _pack_float(scale)


def backward(grad, query, key, value, out, lse, mask, drop, causal, scale, groups):
    """(dquery, dkey, dvalue) in float32; the last two per query head."""
    device, heads = query._storage.device, tuple(query.shape[:2])
    grad, query, keys, values, out = (rows_of(t) for t in (grad, query, key, value, out))
    tensors = grad, query, key, out = [padded(t) for t in (grad, query, keys, out)]
    pack_k, pack_v, kernel, chunks, gs, words, t, scale = plan(_backward_plan, (*tensors, keys, values), kind(mask), causal, bool(drop), scale, groups)
    dq = like(query, tuple(query.shape)) if chunks == 1 else empty(Size((chunks, *query.shape)), dt.float32, device)
    dk, dv = like(keys, (*heads, *key.shape[2:])), like(values, (*heads, values.shape[2], out.shape[3]))
    launch(device, kernel, gs, (1, 1), *buffers(query, key), pack_k.run(keys), 0, pack_v.run(values), 0, *buffers(out, grad, lse, dq, dk, dv),
           words, _words16(*t, *dq._strides[-4:-1]), _words16(*dk._strides[:3], *dv._strides[:3]), scale, *extras(mask, drop))
    dq = dq if chunks == 1 else dq.sum(0)
    return cut(dq, keys.shape[3]), cut(dk, keys.shape[3]), cut(dv, values.shape[3])
