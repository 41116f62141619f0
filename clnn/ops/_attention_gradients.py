"""Gradients of attention on GPUs without tensor cores: one launch per block of keys for theirs and those of the scores, from which products make those of queries.

The scores' are the only memory that grows with the square of a length; keys are taken in as many parts as keep them within a share of the device's memory.
"""
from __future__ import annotations

from .._tensor.tensor import empty
from ..core import dtype as dt
from ..core.errors import KernelBuildError
from ..core.shape import Size
from ..runtime.launch import _pack_float, launch
from . import _attention_gpu as _gpu
from ._attention import buffers, extras, heads_inside, kind, like, plan
from ._conv import _words8, _words16
from ._gemm import gemm

# Work-items along queries and keys, and the tile of each, by the longest head: from large blocks to small ones.
TILES = {32: ((8, 16, 4, 8), (8, 8, 4, 4)), 64: ((16, 8, 8, 4), (8, 16, 4, 4), (8, 8, 4, 4)), 128: ((16, 8, 4, 4), (8, 16, 2, 2), (8, 8, 2, 1))}
BLOCK = 64                      # a multiple of the queries and keys of all blocks
MOST_LOCAL = 96 << 10            # bytes that a kernel may have on NVIDIA's GPUs since 8.0: their driver reports less, and refuses what is too much when it builds
_SHARE = 64                     # of the device's memory is for gradients of scores
_PARTS, _WORTH, _SHORTEST = 8, 1 << 31, 256     # causal: at most so many products of blocks of queries, from so many multiply-adds and for so many queries on
_refused: set = set()           # (device, tile) that its driver did not build


def tiles(device, S, width, z):
    """The rows of TILES that fit the device, best first: blocks of few keys where large ones would not fill it."""
    width = next(n for n in TILES if width <= n)
    rows, blocks = TILES[width], z * -(-S // BLOCK)
    most = max(device.local_mem, MOST_LOCAL) if device.flavour == "nvidia" and device.compute_capability >= (8, 0) else device.local_mem
    fit = [t for t in rows if t[0] * t[1] <= device.max_work_group and local_memory(t, width) <= most and (device, t) not in _refused]
    small = [t for t in fit if t[1] * t[2] < BLOCK]
    return small if small and (S <= 32 or blocks < 2 * device.compute_units) else fit


def local_memory(tile, width):
    LX, LY, TM, TN = tile
    return 4 * (2 * LY * TM * width + LX * TN * width + LX * TN * LY * TM)


def serves(query, value):
    """Whether there is a tile for what :func:`._attention_gpu.form` found to be computed in float."""
    return bool(tiles(query._storage.device, value.shape[2], max(query.shape[3], value.shape[3]), query.shape[0] * query.shape[1]))


def _kernel(device, S, width, z, params):
    """(kernel, tile): the first that the driver builds."""
    for tile in tiles(device, S, width, z):
        try:
            return device.kernel("attention/gpu_keys", **params, **dict(zip(("LX", "LY", "TM", "TN"), tile))), tile
        except KernelBuildError:
            if local_memory(tile, width) <= device.local_mem:
                raise
            _refused.add((device, tile))
    raise RuntimeError("scaled_dot_product_attention: no kernel for its gradients")


def _plan(tensors, dk, dv, mask, causal, drop, scale, groups, T):
    """Kernel, size of its groups, keys of a launch, words of sizes but for the keys of a launch, words of strides, queries of a product."""
    query, key, value, grad = tensors
    device, (B, H, L, E), (S, EV) = query._storage.device, query.shape, value.shape[2:]
    kernel, (LX, LY, TM, TN) = _kernel(device, S, max(E, EV), B * H, dict(T=T, E=E, EV=EV, MASK=mask, CAUSAL=int(causal), DROP=int(drop)))
    G, BK = LX * LY, LY * TM
    pitch = -(-L // BLOCK) * BLOCK
    room = min(device.max_alloc, device.global_mem // _SHARE) // (4 * B * H * pitch)
    chunk = min(-(-S // BK) * BK, max(room, 4 * BLOCK) // BLOCK * BLOCK)
    parts = max(1, min(_PARTS, L // _SHORTEST)) if causal and B * H * L * S * E >= _WORTH else 1
    rows = -(-L // (parts * BLOCK)) * BLOCK
    strides = _words16(*query._strides[:3], *key._strides[:3], *value._strides[:3], *grad._strides[:3]), _words8(*dk, *dv), _pack_float(scale)
    return kernel, G, BK, chunk, pitch, rows, strides


def backward(grad, query, key, value, out, lse, mask, drop, causal, scale, groups):
    """(dquery, dkey, dvalue) in float32; the last two per query head."""
    delta = _gpu.rows_of(grad, out)
    grad, query, key, value = (_gpu.aligned(t) for t in (grad, query, key, value))
    key = key.contiguous() if groups > 1 else key
    device, T, (B, H, L, E), (S, EV) = query._storage.device, query.dtype, query.shape, value.shape[2:]
    dq = empty(Size((B, H, L, E)), dt.float32, device) if groups > 1 or not heads_inside(query) else like(query, (B, H, L, E))
    dk, dv = like(key, (B, H, S, E)), like(value, (B, H, S, EV))
    kernel, G, BK, chunk, pitch, rows, strides = plan(_plan, (query, key, value, grad), dk._strides[:3], dv._strides[:3], kind(mask), causal, bool(drop), scale,
                                                      groups, T)
    operands, results = buffers(query, key, value, grad, lse, delta), buffers(dk, dv)
    for first in range(0, S, chunk):
        end = min(S, first + chunk)
        blocks = -(-(end - first) // BK)
        ds = empty(Size((B * H, blocks * BK, pitch)), dt.float32, device)
        launch(device, kernel, (B * H * G, blocks), (G, 1), *operands, *results, *buffers(ds), _words8(L, S, H, groups, first, end, pitch, rows), *strides,
               *extras(mask, drop))
        _queries(ds, key, dq, first, end, rows if causal else L, causal, groups)
    return dq, dk, dv


def _queries(ds, key, dq, first, end, rows, causal, groups):
    """dq (+)= ds.T @ key over the keys from ``first`` to ``end``, for ``rows`` queries at a time; causal: the first of them see few keys."""
    device, (B, H, L, E), (pitch, each) = key._storage.device, dq.shape, (ds.shape[2], ds.shape[1] * ds.shape[2])
    batch = (B * H // groups, groups) if groups > 1 else (B, H)
    own = ((groups * L * E, L * E), (key.shape[2] * E, 0)) if groups > 1 else (dq._strides[:2], key._strides[:2])
    steps = tuple(zip((batch[1] * each, each), own[1], own[0]))
    for at in range(0, L, rows):
        K = (min(end, at + rows) if causal else end) - first
        if K > 0:
            gemm(device, (dt.float32, key.dtype), min(rows, L - at), E, K, ds._storage.buffer(), ds._offset + at, (1, pitch),
                 key._storage.buffer(), key._offset + first * key._strides[2], (key._strides[2], 1),
                 dq._storage.buffer(), dq._offset + at * dq._strides[2], dq._strides[2], batch, steps, beta=1.0 if first else 0.0, out_dtype=dt.float32)
