"""Matrix products and convolutions on tensor cores: when they are used, with which blocks, and the proof that a device computes them rightly.

NVIDIA's OpenCL has no extension for these units, but its compiler takes the instruction as inline assembly. Whether it does, and whether the result is
right, is found out once per driver in a process of its own, and remembered on disk: a driver that refuses, crashes or errs costs the speed, never the program.
The kernels (``matmul/tensor``, ``conv/tensor``) are tested on other devices with the instruction spelt out.
"""
from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from ..core import dtype as dt
from ..core.config import config
from ..runtime.params import forced, lookup, size_class
from . import _gemm_warpgroup, _proof
from ._proof import difference

# Blocks by name: (WX, WY, MT, NT, relative speed of an element once the device is full).
BLOCKS = {"128x128": (2, 2, 4, 8, 1.0), "128x128/8": (4, 2, 4, 4, 1.05), "128x64": (2, 2, 4, 4, 1.15), "64x128": (2, 2, 2, 8, 1.15),
          "64x64": (2, 2, 2, 4, 1.4), "32x32": (1, 1, 2, 4, 2.5)}
KINDS = (dt.float16, dt.bfloat16, dt.float32, dt.int8)
SMALLEST, SHORTEST = 64, 32         # rows and columns, steps of K: below, most of a block would be padding
_LONGEST = 1 << 31                  # offsets inside a block are 32 bits
_known: dict = {}                   # device -> names of the dtypes that its tensor cores multiply


def plan(device, p, chunk):
    """(variant, parameters, global size, local size, words) of a product on tensor cores, or None where they do not serve it."""
    if not _suits(p):
        return None
    found = _gemm_warpgroup.plan(device, p, chunk)
    if found is not None:
        return found
    if p.tb.name not in kinds(device):
        return None
    z = p.batch[0] * p.batch[1]
    a, b = (fast_index(p.a[1], p.a[0], p.K, p.M, p.ta, [s[0] for s in p.steps], chunk),
            fast_index(p.b[0], p.b[1], p.K, p.N, p.tb, [s[1] for s in p.steps], chunk))
    name = _block(device, p, z, a[1] and b[1])
    if name is None:
        return None
    WX, WY, MT, NT, _ = BLOCKS[name]
    G = 32 * WX * WY
    params = dict(WX=WX, WY=WY, MT=MT, NT=NT, AFAST=a[0], BFAST=b[0], AWIDE=a[1], BWIDE=b[1], PTX=config.tensor_cores != "emulate")
    gs = (-(-p.N // (8 * NT * WX)) * G, -(-p.M // (16 * MT * WY)), z)
    return "matmul/tensor", params, gs, (G, 1, 1), p.pack(0, 0, chunk)


def splits(device, p) -> int:
    """Parts of K of a single product on tensor cores, 0 where they do not serve it."""
    if not _suits(p):
        return 0
    found = _gemm_warpgroup.splits(device, p)
    if found or p.tb.name not in kinds(device):
        return found
    tiles, units = -(-p.M // 64) * -(-p.N // 64), device.compute_units
    return max(1, min(-(-2 * units // tiles), p.K // 256)) if tiles < 2 * units else 1


def _suits(p) -> bool:
    if p.ta is not p.tb and (p.ta, p.tb) != (dt.uint8, dt.int8) or p.tb not in KINDS or p.table or p.tb is dt.float32 and not p.tf32:
        return False
    if p.tc not in ((dt.int32,) if p.tb is dt.int8 else (p.tb, dt.float32)):
        return False
    furthest = 256 * max(abs(s) for s in (*p.a, *p.b))
    return min(p.M, p.N) >= SMALLEST and SHORTEST <= p.K < _LONGEST and furthest < _LONGEST


def fast_index(ks, xs, K, X, T, steps, chunk=0):
    """(the index, "k" or "x", that loads step through; whether they may be loads of 16 bytes where the operand itself is aligned to them)."""
    lanes = 16 // T.itemsize

    def even(*sizes):
        return not any(n % lanes for n in sizes)
    if ks == 1 and (xs != 1 or K >= X):
        return "k", even(xs, K, chunk, *steps)
    return "x", xs == 1 and even(ks, *steps) and X % 4 == 0


def plan_conv(device, T, M, K, pixels, groups):
    """(parameters, global size, local size) of a convolution of 16-bit tensors with M output channels and K steps per group, or None."""
    if T.itemsize != 2 or not T.is_floating_point or min(2 * M, pixels) < SMALLEST or not SHORTEST <= K < 1 << 22 or T.name not in kinds(device):
        return None
    name = _block(device, SimpleNamespace(ta=T, M=M, N=pixels, K=K), groups, False)
    if name is None:
        return None
    WX, WY, MT, NT, _ = BLOCKS[name]
    G = 32 * WX * WY
    params = dict(WX=WX, WY=WY, MT=MT, NT=NT, AWIDE=K % 8 == 0, PTX=config.tensor_cores != "emulate")
    return params, (-(-pixels // (8 * NT * WX)) * G, -(-M // (16 * MT * WY)), groups), (G, 1, 1)


def _block(device, p, z, wide):
    """The block that takes the least time: rounds of blocks over the compute units, times the work of one."""
    tuned = lookup(device, "gemm_tensor", f"{p.ta.name}/{size_class(p.M, p.N, p.K)}") or {}
    best = None
    for name, (WX, WY, MT, NT, cost) in BLOCKS.items():
        BM, BN = 16 * MT * WY, 8 * NT * WX
        if 32 * WX * WY > device.max_work_group or 2 * 4 * 16 * (BM + BN + 16) > device.local_mem:
            continue
        if tuned.get("BLOCK") == name:
            return name
        if name == "128x128" and not wide:      # narrow loads need more registers than its accumulators leave
            continue
        rounds = -(-(-(-p.M // BM) * -(-p.N // BN) * z) // device.compute_units)
        if best is None or rounds * BM * BN * cost < best[0]:
            best = rounds * BM * BN * cost, name
    return best and best[1]


# ---- the proof -----------------------------------------------------------------------------------------------------------------

def kinds(device) -> frozenset:
    """Names of the dtypes that tensor cores of ``device`` multiply rightly (``float32``: as tf32); asks the device once per driver."""
    if config.tensor_cores in ("emulate", "trust"):
        return frozenset(T.name for T in KINDS)
    if config.tensor_cores == "off" or device.flavour != "nvidia" or (0, 0) < device.compute_capability < (8, 0):
        return frozenset()
    if device not in _known:
        _known[device] = frozenset(verdict(device)["kinds"])
    return _known[device]


def verdict(device) -> dict:
    """``kinds`` that are right and ``problems`` of the others, from disk or by asking."""
    return _proof.verdict(device, "_gemm_tensor", [T.name for T in KINDS], ("matmul/tensor", "matmul/fragments", "conv/tensor"))


def main() -> None:
    """In the process of its own: say of each dtype whether its products come out right."""
    _proof.tell(KINDS, check)


def check(device, T, blocks=("64x64", "128x128")) -> str:
    """What is wrong with products of dtype ``T`` on tensor cores, or "". The sums are exact, so nothing but equal bits is right."""
    M, N, K = 144, 80, 112 if T is dt.int8 else 56          # multiples of 16 bytes that fill no block
    rng, most = np.random.default_rng(0), 128 if T is dt.int8 else 4
    a, b = rng.integers(-most, most, (M, K)).astype(np.float32), rng.integers(-most, most, (K, N)).astype(np.float32)
    if T is dt.float32:
        b *= 1 + rng.integers(0, 16, b.shape).astype(np.float32) / (1 << 13)     # more bits than tf32 has
    for block, turned in zip(blocks, (False, True)):
        TA, out = (T, dt.float32 if turned else T) if T is not dt.int8 else (dt.uint8 if turned else T, dt.int32)
        x = a + most if TA is dt.uint8 else a
        want = (x.astype(np.float64) @ (rounded(b) if T is dt.float32 else b)).astype(out.np)
        problem = difference(_product(device, TA, T, out, x.T if turned else x, b.T if turned else b, turned, block), want)
        if problem:
            return f"a product with blocks of {block}: {problem}"
    problem = difference(*_convolution(device, T)) if T.itemsize == 2 else ""
    return problem and f"a convolution: {problem}"


def rounded(x: np.ndarray) -> np.ndarray:
    """float32 values as tf32 holds them: 10 bits of mantissa, to nearest, ties away from zero."""
    return ((np.ascontiguousarray(x).view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xffffe000)).view(np.float32)


def _product(device, TA, T, out, a, b, turned, block):
    """a @ b with blocks of one name, each operand transposed in memory where ``turned``."""
    from ._gemm import Plan, Problem
    (M, K), N = a.T.shape if turned else a.shape, b.shape[0 if turned else 1]
    bufs = []
    for x, kind in ((a, TA), (b, T)):
        x = np.ascontiguousarray(x).astype(kind.np)
        bufs.append(device.alloc(x.nbytes))
        device.write(bufs[-1], x)
    with forced("gemm_tensor", {"BLOCK": block}):
        made = Plan(device, Problem(TA, T, out, M, N, K, (1, M) if turned else (K, 1), (1, K) if turned else (N, 1), N, (1, 1),
                                    ((0, 0, 0), (0, 0, 0)), 1.0, 0.0, "", "", tf32=True, aligned=False, lanes=device.lanes(T.acc)))
    if made.kernel.name != "matmul_tensor":
        raise RuntimeError(f"no block of {block} fits {device.name}")
    result = device.alloc(M * N * out.itemsize)
    made.run(bufs[0], 0, bufs[1], 0, result, 0)
    return device.read(result, M * N * out.itemsize).view(out.np).reshape(M, N)


def _convolution(device, T):
    """(result, what it should be) of a convolution."""
    from ._conv import conv_forward
    rng = np.random.default_rng(1)
    x, w = rng.integers(-2, 3, (2, 16, 9, 10)), rng.integers(-2, 3, (72, 16, 3, 3))
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
    want = sum(np.einsum("nchw,oc->nohw", padded[:, :, i:i + 9, j:j + 10], w[:, :, i, j]) for i in range(3) for j in range(3)).astype(T.np)
    bufs = [device.alloc(v.size * T.itemsize) for v in (x, w, want)]
    for buf, v in zip(bufs, (x, w)):
        device.write(buf, v.astype(T.np))
    conv_forward(device, T, bufs[0], 0, x.shape, bufs[1], 0, w.shape, bufs[2], 0, (1, 1), (1, 1), (1, 1), 1)
    return device.read(bufs[2], want.nbytes).view(T.np).reshape(want.shape), want
