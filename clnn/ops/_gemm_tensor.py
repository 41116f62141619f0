"""Matrix products and convolutions on tensor cores: when they are used, with which blocks, and the proof that a device computes them rightly.

NVIDIA's OpenCL has no extension for these units, but its compiler takes the instruction as inline assembly. Whether it does, and whether the result is
right, is found out once per driver in a process of its own, and remembered on disk: a driver that refuses, crashes or errs costs the speed, never the program.
The kernels (``matmul/tensor``, ``conv/tensor``) were checked by assembling them and, on other devices, with the instruction spelt out; they have not run
on a tensor core yet.
"""
from __future__ import annotations

import numpy as np

from ..core import dtype as dt
from ..core.config import config
from ..runtime.params import forced, lookup, size_class
from . import _proof
from ._proof import difference

# Blocks by name: (WX, WY, MT, NT, relative speed of an element once the device is full).
BLOCKS = {"128x128": (2, 2, 4, 8, 1.0), "128x128/8": (4, 2, 4, 4, 1.05), "128x64": (2, 2, 4, 4, 1.15), "64x128": (2, 2, 2, 8, 1.15),
          "64x64": (2, 2, 2, 4, 1.4), "32x32": (1, 1, 2, 4, 2.5)}
KINDS = (dt.float16, dt.bfloat16, dt.float32)
SMALLEST, SHORTEST = 64, 32         # rows and columns, steps of K: below, most of a block would be padding
_LONGEST = 1 << 31                  # offsets inside a block are 32 bits
_known: dict = {}                   # device -> names of the dtypes that its tensor cores multiply


def plan(device, p, chunk):
    """(variant, parameters, global size, local size, words) of a product on tensor cores, or None where they do not serve it."""
    if not _suits(p) or p.ta.name not in kinds(device):
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


def _suits(p) -> bool:
    if p.ta is not p.tb or p.ta not in KINDS or p.tc not in (p.ta, dt.float32) or p.table or p.ta is dt.float32 and not p.tf32:
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
    return _proof.verdict(device, "_gemm_tensor", [T.name for T in KINDS], ("matmul/tensor", "matmul/fragments", "conv/tensor", "conv/parts"))


def main() -> None:
    """In the process of its own: say of each dtype whether its products come out right."""
    _proof.tell(KINDS, check)


def check(device, T, blocks=("64x64", "128x128")) -> str:
    """What is wrong with products of dtype ``T`` on tensor cores, or "". The sums are exact in float, so nothing but equal bits is right."""
    M, N, K = 136, 72, 56
    rng = np.random.default_rng(0)
    a, b = rng.integers(-4, 5, (M, K)).astype(np.float32), rng.integers(-4, 5, (K, N)).astype(np.float32)
    if T is dt.float32:
        b *= 1 + rng.integers(0, 16, b.shape).astype(np.float32) / (1 << 13)     # more bits than tf32 has
    for block, turned in zip(blocks, (False, True)):
        out = dt.float32 if turned else T
        want = (a.astype(np.float64) @ (rounded(b) if T is dt.float32 else b)).astype(out.np)
        problem = difference(_product(device, T, out, a.T if turned else a, b.T if turned else b, turned, block), want)
        if problem:
            return f"a product with blocks of {block}: {problem}"
    problem = difference(*_convolution(device, T)) if T.itemsize == 2 else ""
    return problem and f"a convolution: {problem}"


def rounded(x: np.ndarray) -> np.ndarray:
    """float32 values as tf32 holds them: 10 bits of mantissa, to nearest, ties away from zero."""
    return ((np.ascontiguousarray(x).view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xffffe000)).view(np.float32)


def _product(device, T, out, a, b, turned, block):
    """a @ b with blocks of one name, each operand transposed in memory where ``turned``."""
    from ._gemm import Plan, Problem
    (M, K), N = a.T.shape if turned else a.shape, b.shape[0 if turned else 1]
    bufs = []
    for x in (a, b):
        x = np.ascontiguousarray(x).astype(T.np)
        bufs.append(device.alloc(x.nbytes))
        device.write(bufs[-1], x)
    with forced("gemm_tensor", {"BLOCK": block}):
        made = Plan(device, Problem(T, T, out, M, N, K, (1, M) if turned else (K, 1), (1, K) if turned else (N, 1), N, (1, 1),
                                    ((0, 0, 0), (0, 0, 0)), 1.0, 0.0, "", "", tf32=True, lanes=device.lanes(T.acc)))
    if made.kernel.name != "matmul_tensor":
        raise RuntimeError(f"no block of {block} fits {device.name}")
    result = device.alloc(M * N * out.itemsize)
    made.run(bufs[0], 0, bufs[1], 0, result, 0)
    return device.read(result, M * N * out.itemsize).view(out.np).reshape(M, N)


def _convolution(device, T):
    """(result, what it should be) of convolutions and their gradients."""
    from ._conv_proof import results
    return results(device, T)
