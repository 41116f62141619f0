"""Attention on GPUs in one launch forward: scores and weights of a block of queries never reach memory (Dao, "FlashAttention-2", 2023).

16-bit operands are multiplied on tensor cores where the device has proved that it does so rightly (:mod:`._proof`, a proof of these kernels alone).
All else that is computed in float goes by register tiles and local memory.
"""
from __future__ import annotations

import numpy as np

from .._tensor.dispatch import record_elementwise
from .._tensor.tensor import empty
from ..core import dtype as dt
from ..core.config import config
from ..core.shape import Size
from ..graph.op import REGISTRY
from ..runtime.launch import _pack_float, launch
from . import _attention_warpgroup, _gemm_tensor, _proof
from ._attention import buffers, extras, kind, like, plan
from ._conv import _words8, _words16

KINDS = (dt.float16, dt.bfloat16)
TEMPLATES = tuple(f"attention/{name}" for name in ("tensor", "tensor_query", "tensor_keys", "fragments", "scores"))
LONGEST = 128                   # elements of a head: the result of a block of queries stays in registers
FEWEST = 16                     # queries: below, most of a tile would be padding
KEYS = 64                       # of a block on tensor cores
# Work-items along keys and queries, and the tile of each, by the longest head: for many blocks of queries, for about one per unit, for few.
TILES = {32: ((8, 16, 4, 8), (8, 16, 4, 8), (8, 8, 4, 8)), 64: ((16, 8, 8, 4), (16, 16, 4, 4), (16, 8, 4, 4)), 128: ((16, 8, 4, 2),) * 3}
_AHEAD = 256                    # work-items of a group that has registers left for the next tile
_FAR = 1 << 24                  # offsets inside a tile are 32 bits
_known: dict = {}               # (device, name of a dtype) -> whether its attention on tensor cores is right


def form(query, key, value, mask, dropout_p, scale):
    """What serves a call: "tensor", a row of TILES, or None."""
    T, device, (B, H, L, E), (S, EV) = query.dtype, query._storage.device, query.shape, value.shape[2:]
    if device.is_cpu or T.acc != "float" or not T.is_floating_point or scale <= 0 or L < FEWEST or not query._numel * value._numel:
        return None
    if max(E, EV) > LONGEST or not (mask is None or mask.dtype.acc == "float" or mask.dtype is dt.bool_):
        return None
    if 8 * B * H * -(-L // 64) < device.compute_units and S > 1024:     # few queries of many keys: products divide the keys among units
        return None
    fits = device.max_work_group >= 128 and 16 * KEYS * ((E // 8 + 1 | 1) + (EV // 8 + 1 | 1)) <= device.local_mem
    if fits and T in KINDS and not (dropout_p or E % 8 or EV % 8) and (_attention_warpgroup.serves(device, T, L, S, E, EV) or proved(device, T)):
        return "tensor"
    return None if E % 4 or EV % 4 else tile(device, L, max(E, EV), B * H)


def tile(device, L, width, z):
    """The row of TILES that fills the device, of those that fit it."""
    width = next(n for n in TILES if width <= n)
    blocks, rows = z * -(-L // 64), TILES[width]
    first = 2 if L <= 32 or 3 * blocks <= 2 * device.compute_units else 1 if blocks < 2 * device.compute_units else 0
    return next((t for t in rows[first:] if t[0] * t[1] <= device.max_work_group and local_memory(t, width) <= device.local_mem), None)


def local_memory(tiles, width):
    LX, LY, TM, TN = tiles
    return 4 * (LY * TM * width + LX * TN * width + LY * TM * LX * TN)


def aligned(t):
    """``t`` itself where its rows can be read in vectors of 16 bytes, else a copy."""
    steps, lanes = [stride for stride, n in zip(t._strides[:3], t.shape) if n > 1], 16 // t.dtype.itemsize
    near = t._strides[3] == 1 and not (t._offset % lanes or any(s % lanes for s in steps)) and abs(t._strides[2]) < _FAR
    return t if near else t.contiguous()


def warps(device, L, E, EV, z, mask):
    """(warps of a group, tiles of 16 queries of each): large blocks read keys less often, but must fill the device."""
    if L <= 32:
        return -(-L // 16), 1
    large = max(E, EV) <= 64 and mask is None and z * -(-L // 128) >= 2 * device.compute_units
    return 4, 2 if large else 1


def _forward_plan(tensors, out_strides, mask, causal, drop, scale, groups, T, how, cores):
    query, key, value = tensors
    device, (B, H, L, E), (S, EV) = query._storage.device, query.shape, value.shape[2:]
    params = dict(T=T, E=E, EV=EV, MASK=mask, CAUSAL=int(causal))
    if how == "tensor" and _attention_warpgroup.serves(device, T, L, S, E, EV):
        WG, BK, STAGES, QL = _attention_warpgroup.rows(device, T, E, EV)[0]
        G, BQ = 128 * WG, 64 * WG
        kernel = device.kernel("attention/warpgroup", **params, WG=WG, BK=BK, STAGES=STAGES, QL=QL, PTX=cores != "emulate")
    elif how == "tensor":
        W, MT = warps(device, L, E, EV, B * H, mask)
        G, BQ = 32 * W, 16 * W * MT
        kernel = device.kernel("attention/tensor", **params, W=W, MT=MT, BK=min(KEYS, -(-S // 16) * 16), PTX=cores != "emulate")
    else:
        LX, LY, TM, TN = how
        G, BQ = LX * LY, LY * TM
        ahead = B * H * -(-L // BQ) <= device.compute_units         # a unit has one group, which must hide the memory's latency itself
        kernel = device.kernel("attention/gpu", **params, LX=LX, LY=LY, TM=TM, TN=TN, AHEAD=ahead and G >= _AHEAD, DROP=int(drop))
    blocks = -(-L // BQ)
    words = _words8(L, S, H, groups, blocks), _words16(*query._strides[:3], *key._strides[:3], *value._strides[:3], *out_strides), _pack_float(scale)
    return kernel, (B * H * G, blocks), (G, 1), words


def forward(how, query, key, value, mask, drop, causal, scale, groups):
    """(out in the dtype of the operands, lse in float32); ``how``: what :func:`form` gives."""
    query, key, value = (aligned(t) for t in (query, key, value))
    device = query._storage.device
    out = like(query, (*query.shape[:3], value.shape[3]), query.dtype)
    lse = empty(Size((query.shape[0] * query.shape[1], query.shape[2])), dt.float32, device)
    kernel, gs, ls, words = plan(_forward_plan, (query, key, value), out._strides[:3], kind(mask), causal, bool(drop), scale, groups, query.dtype, how,
                                 config.tensor_cores)
    launch(device, kernel, gs, ls, *buffers(query, key, value, out, lse), *words, *extras(mask, drop))
    return out, lse


def _backward_plan(tensors, dq, dk, dv, mask, causal, scale, groups, T, cores):
    query, key, value, grad = tensors
    device, (_, _, L, E), (S, EV) = query._storage.device, query.shape, value.shape[2:]
    params = dict(T=T, E=E, EV=EV, MASK=mask, CAUSAL=int(causal), PTX=cores != "emulate")
    if _attention_warpgroup.serves(device, T, L, S, E, EV):
        _, (W, BK, stages), (WK, BQ, slots) = _attention_warpgroup.rows(device, T, E, EV)
        of_query = device.kernel("attention/warpgroup_query", **params, WG=W, BK=BK, STAGES=stages)
        of_keys = device.kernel("attention/warpgroup_keys", **params, WG=WK, BQ=BQ, STAGES=slots)
        return _backward_launches(tensors, (of_query, 4 * W), (of_keys, 4 * WK), dq, dk, dv, scale, groups)
    W, WK, width = warps(device, L, E, EV, 0, mask)[0], warps(device, S, E, EV, 0, mask)[0], max(E, EV)
    most = 64 if width <= 64 else 32 if width <= 96 else 16         # queries of a block, by the registers that are left
    of_query = device.kernel("attention/tensor_query", **params, W=W, MT=1, BK=min(KEYS if width <= 64 else 32, -(-S // 16) * 16))
    of_keys = device.kernel("attention/tensor_keys", **params, W=WK, BQ=min(most, 32 * WK, -(-L // 16) * 16))
    return _backward_launches(tensors, (of_query, W), (of_keys, WK), dq, dk, dv, scale, groups)


def _backward_launches(tensors, of_query, of_keys, dq, dk, dv, scale, groups):
    """(kernel, global size, local size, words) of both, which are given with their warps; each has 16 rows."""
    query, key, value, grad = tensors
    ((of_query, W), (of_keys, WK)), (B, H, L, _), S = (of_query, of_keys), query.shape, value.shape[2]
    blocks, steps = -(-L // (16 * W)), (*query._strides[:3], *key._strides[:3], *value._strides[:3], *grad._strides[:3])
    words = _words8(L, S, H, groups, blocks)
    return (of_query, (B * H * 32 * W, blocks), (32 * W, 1), (words, _words16(*steps, *dq), _pack_float(scale))), \
        (of_keys, (B * H // groups * 32 * WK, -(-S // (16 * WK))), (32 * WK, 1), (words, _words16(*steps), _words8(*dk, *dv), _pack_float(scale)))


def rows_of(grad, out):
    """The sum over each row of ``grad * out`` in float32. The product is recorded in the order of the heads, however its operands lie, so that the sum takes it
    on the way."""
    return record_elementwise(REGISTRY["mul"].expr, dt.float32, dt.float32, grad.shape, grad._numel, (grad, out)).sum(-1).contiguous()


def backward(grad, query, key, value, out, lse, mask, causal, scale, groups):
    """(dquery, dkey, dvalue) in the dtype of the operands, on tensor cores."""
    delta = rows_of(grad, out)
    grad, query, key, value = (aligned(t) for t in (grad, query, key, value))
    device, T = query._storage.device, query.dtype
    results = dq, dk, dv = [like(t, tuple(t.shape), T) for t in (query, key, value)]
    of_query, of_keys = plan(_backward_plan, (query, key, value, grad), *[t._strides[:3] for t in results], kind(mask), causal, scale, groups, T,
                             config.tensor_cores)
    operands = buffers(query, key, value, grad, lse, delta)
    for (kernel, gs, ls, words), written in ((of_query, buffers(dq)), (of_keys, buffers(dk, dv))):
        launch(device, kernel, gs, ls, *operands, *written, *words, *extras(mask, None))
    return dq, dk, dv


# ---- the proof -----------------------------------------------------------------------------------------------------------------

def proved(device, T) -> bool:
    """Whether tensor cores of ``device`` compute attention of dtype ``T`` rightly; asks the device once per driver."""
    if config.tensor_cores in ("emulate", "trust"):
        return True
    if T.name not in _gemm_tensor.kinds(device):
        return False
    if (device, T.name) not in _known:
        _known[device, T.name] = bool(_proof.verdict(device, "_attention_gpu", [T.name], TEMPLATES, T.name)["kinds"])
    return _known[device, T.name]


def main(part: str) -> None:
    """In the process of its own: say of a dtype whether its attention comes out right."""
    _proof.tell([T for T in KINDS if T.name == part], check)


CHECKED = (((2, 4, 300, 300, 64, 64), True), ((1, 2, 40, 90, 128, 72), False), ((3, 100, 130, 200, 64, 64), False))    # B, H, L, S, E, EV; causal


def check(device, T, shapes=CHECKED) -> str:
    """What is wrong with attention of dtype ``T``, or "": values of few bits, so that no more than the weights are rounded."""
    return next(filter(None, (wrong(device, T, shape, causal) for shape, causal in shapes)), "")


def wrong(device, T, shape, causal) -> str:
    """What is wrong with one call, or ""."""
    arrays, got = _tried(device, T, shape, causal)
    for name, g, w in zip(("result", "log of the sums", "gradient of queries", "gradient of keys", "gradient of values"), got, reference(*arrays, causal)):
        error = np.abs(g - w).max()
        if not error < (0.02 if T is dt.bfloat16 else 0.003) * max(1.0, np.abs(w).max()):
            return f"attention of {shape}: the {name} is wrong by {error:g}"
    return ""


def _tried(device, T, shape, causal):
    """(query, key, value, gradient as arrays; result, lse and gradients) of a call."""
    B, H, L, S, E, EV = shape
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-4, 5, (B, H, *size)) / 4 for size in ((L, E), (S, E), (S, EV), (L, EV))]
    tensors = []
    for a in arrays:
        t = empty(Size(a.shape), T, device)
        device.write(t._storage.buffer(), a.astype(T.np))
        tensors.append(t)
    *operands, grad = tensors
    out, lse = forward("tensor", *operands, None, None, causal, E ** -0.5, 1)
    results = out, lse, *backward(grad, *operands, out, lse, None, causal, E ** -0.5, 1)
    got = [device.read(t._storage.buffer(), t._numel * t.dtype.itemsize).view(t.dtype.np).astype(np.float64).reshape(t.shape) for t in results]
    return arrays, got


def reference(q, k, v, grad, causal):
    """Result, log of the sums and gradients in NumPy."""
    scale = 1 / np.sqrt(q.shape[3])
    s = q @ k.swapaxes(2, 3) * scale
    if causal:
        s = np.where(np.arange(s.shape[3]) > np.arange(s.shape[2])[:, None], -np.inf, s)
    top = s.max(-1, keepdims=True)
    w = np.exp(s - top)
    total = w.sum(-1, keepdims=True)
    p = w / total
    out = p @ v
    ds = p * (grad @ v.swapaxes(2, 3) - (grad * out).sum(-1, keepdims=True)) * scale
    return out, (np.log(total) + top).reshape(-1, q.shape[2]), ds @ k, ds.swapaxes(2, 3) @ q, p.swapaxes(2, 3) @ grad
