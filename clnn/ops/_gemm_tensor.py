"""Matrix products and convolutions on tensor cores: when they are used, with which blocks, and the proof that a device computes them rightly.

NVIDIA's OpenCL has no extension for these units, but its compiler takes the instruction as inline assembly. Whether it does, and whether the result is
right, is found out once per driver in a process of its own, and remembered on disk: a driver that refuses, crashes or errs costs the speed, never the program.
The kernels are ``matmul/pipeline`` for operands that can be copied 16 bytes at a time, ``matmul/tensor`` for any others, and ``conv/tensor``; on other
devices they are tested with the instruction spelt out.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core import dtype as dt
from ..core.config import config
from ..runtime.params import forced, parameters_for
from . import _gemm_warpgroup, _proof
from ._gemm_model import Tile, fastest
from ._proof import difference

# Blocks by name: (WX, WY, MT, NT, relative speed of an element once the device is full).
BLOCKS = {"128x128": (2, 2, 4, 8, 1.0), "128x128/8": (4, 2, 4, 4, 1.05), "128x64": (2, 2, 4, 4, 1.15), "64x128": (2, 2, 2, 8, 1.15),
          "64x64": (2, 2, 2, 4, 1.4), "32x32": (1, 1, 2, 4, 2.5)}
KINDS = (dt.float16, dt.bfloat16, dt.float32, dt.int8)
SMALLEST, SHORTEST = 64, 32         # pixels and twice the channels of a convolution, steps of K: below, most of a block would be padding
FEWEST = 16                         # rows and columns of a product
_MULTIPLY = 1 / (1230 * 1.9)        # ns of a multiply-add of 16 bits (NVIDIA H200: 617 TFLOP/s)
_LONGEST = 1 << 31                  # offsets inside a block are 32 bits
_known: dict = {}                   # device -> names of the ways (below) that its tensor cores multiply rightly


class Way(NamedTuple):
    """What is proved on its own: products of a dtype by a kernel."""
    name: str
    dtype: dt.dtype
    kernel: str


WAYS = tuple([Way(T.name, T, "tensor") for T in KINDS] + [Way(f"{T.name} in a pipeline", T, "pipeline") for T in KINDS])


def plan(device, p, chunk):
    """(variant, parameters, global size, local size, words) of a product on tensor cores, or None where they do not serve it."""
    if not _suits(p):
        return None
    found = _gemm_warpgroup.plan(device, p, chunk)
    if found is not None:
        return found
    if p.tb.name not in kinds(device):
        return None
    found = _choice(device, p, chunk, chunk or p.K, False)
    if found is None:
        return None
    kernel, name, loads, _, stages = found
    WX, WY, MT, NT, _ = BLOCKS[name]
    G = 32 * WX * WY
    params = dict(WX=WX, WY=WY, MT=MT, NT=NT, **loads, PTX=config.tensor_cores != "emulate")
    if kernel == "pipeline":
        params["STAGES"] = stages
    gs = (-(-p.N // (8 * NT * WX)) * G, -(-p.M // (16 * MT * WY)), p.batch[0] * p.batch[1])
    return f"matmul/{kernel}", params, gs, (G, 1, 1), p.pack(0, 0, chunk)


def narrow(variant, params):
    """(variant, parameters) of the kernel of the same geometry whose operands may begin anywhere."""
    if variant == "matmul/pipeline":
        return "matmul/tensor", {k: v for k, v in params.items() if k != "STAGES"} | dict(AWIDE=False, BWIDE=False)
    return variant, params | {name: False for name in ("WIDE", "AWIDE", "BWIDE") if name in params}


def splits(device, p) -> int:
    """Parts of K of a single product on tensor cores, 0 where they do not serve it."""
    if not _suits(p):
        return 0
    found = _gemm_warpgroup.splits(device, p)
    if found:
        return found
    found = p.tb.name in kinds(device) and _choice(device, p, 0, p.K, True)
    return found[3] if found else 0


def _choice(device, p, chunk, K, parted):
    """(kernel, name of its block, parameters of its loads, parts of K, blocks of K in local memory) of a product, or None where the device has room for no block."""
    tuned = parameters_for(device, "gemm_tensor", f"{p.ta.name}/", p.M, p.N, p.K)
    sides = ((p.a[1], p.a[0], p.M, p.ta, [s[0] for s in p.steps]), (p.b[0], p.b[1], p.N, p.tb, [s[1] for s in p.steps]))
    fasts = [copied_index(ks, xs, p.K, X, T, steps, chunk) for ks, xs, X, T, steps in sides]
    kernel, loads = "pipeline", dict(AFAST=fasts[0], BFAST=fasts[1])
    able = all(fasts) and tuned.get("KERNEL") != "tensor" and f"{p.tb.name} in a pipeline" in kinds(device)
    tiles = _tiles(device, p.tb, kernel, True) if able else {}
    if not tiles:
        (afast, awide), (bfast, bwide) = (fast_index(ks, xs, p.K, X, T, steps, chunk) for ks, xs, X, T, steps in sides)
        kernel, loads = "tensor", dict(AFAST=afast, BFAST=bfast, AWIDE=awide, BWIDE=bwide)
        tiles = _tiles(device, p.tb, kernel, awide and bwide)
    if tuned.get("BLOCK") in tiles:
        tiles = {tuned["BLOCK"]: tiles[tuned["BLOCK"]]}
    found = fastest(device.compute_units, tiles, p, K, parted)
    return found and (kernel, found[0], loads, found[1], tuned.get("STAGES", _stages(device, found[0])))


def _stages(device, name) -> int:
    """Blocks of K that ``matmul/pipeline`` keeps in local memory: as many as fit, up to 4."""
    WX, WY, MT, NT, _ = BLOCKS[name]
    return min(4, device.local_mem // (64 * (16 * MT * WY + 8 * NT * WX)))


def _tiles(device, T, kernel, wide) -> dict:
    """The blocks that ``kernel`` can use on ``device``, for the model of time."""
    found = {}
    for name, (WX, WY, MT, NT, cost) in BLOCKS.items():
        BM, BN, items = 16 * MT * WY, 8 * NT * WX, 32 * WX * WY
        room = 3 * 64 * (BM + BN) if kernel == "pipeline" else 2 * 4 * 16 * (BM + BN + 16)
        exchanged = 4 * items * (4 * MT + 2 * NT) if config.tensor_cores == "emulate" else 0
        if items > device.max_work_group or room + exchanged > device.local_mem or kernel == "tensor" and name == "128x128" and not wide:
            continue        # (narrow loads need more registers than that block's accumulators leave)
        groups = min(16, 65536 // (items * (4 * MT * NT + 8 * MT + 4 * NT + 40)))
        slow, wait = (1.25, 100) if kernel == "pipeline" else (2.3, 500)
        found[name] = Tile(BM, BN, items, groups, BM * BN * _MULTIPLY * cost * slow * T.itemsize / 2, wait * T.itemsize / 64)
    return found


def _suits(p) -> bool:
    if p.ta is not p.tb and (p.ta, p.tb) != (dt.uint8, dt.int8) or p.tb not in KINDS or p.table or p.tb is dt.float32 and not p.tf32:
        return False
    if p.tc not in ((dt.int32,) if p.tb is dt.int8 else (p.tb, dt.float32)):
        return False
    furthest = 256 * max(abs(s) for s in (*p.a, *p.b))
    return min(p.M, p.N) >= FEWEST and SHORTEST <= p.K < _LONGEST and furthest < _LONGEST


def fast_index(ks, xs, K, X, T, steps, chunk=0):
    """(the index, "k" or "x", that loads step through; whether they may be loads of 16 bytes where the operand itself is aligned to them)."""
    lanes = 16 // T.itemsize

    def even(*sizes):
        return not any(n % lanes for n in sizes)
    if ks == 1 and (xs != 1 or K >= X):
        return "k", even(xs, K, chunk, *steps)
    return "x", xs == 1 and even(ks, *steps) and X % 4 == 0


def copied_index(ks, xs, K, X, T, steps, chunk=0) -> str:
    """The index of unit stride of an operand that can be copied in pieces of 16 bytes along it, where the operand itself is aligned to them; else ""."""
    def even(*sizes):
        return not any(n % (16 // T.itemsize) for n in sizes)
    if ks == 1 and even(xs, chunk, *steps):
        return "k"
    return "x" if xs == 1 and T.itemsize > 1 and even(ks, *steps) else ""


# ---- the proof -----------------------------------------------------------------------------------------------------------------

def kinds(device) -> frozenset:
    """Names of the ways in which tensor cores of ``device`` multiply rightly (``float32``: as tf32); asks the device once per driver."""
    if config.tensor_cores in ("emulate", "trust"):
        return frozenset(way.name for way in WAYS)
    if config.tensor_cores == "off" or device.flavour != "nvidia" or (0, 0) < device.compute_capability < (8, 0):
        return frozenset()
    if device not in _known:
        _known[device] = frozenset(verdict(device)["kinds"])
    return _known[device]


def verdict(device) -> dict:
    """``kinds`` that are right and ``problems`` of the others, from disk or by asking."""
    return _proof.verdict(device, "_gemm_tensor", [way.name for way in WAYS], ("matmul/tensor", "matmul/pipeline", "matmul/fragments", "conv/tensor", "conv/parts"))


def main() -> None:
    """In the process of its own: say of each way whether its products come out right."""
    _proof.tell(WAYS, lambda device, way: check(device, way.dtype, (way.kernel,)))


# Kernel, whether A and B are transposed in memory.
_CASES = (("pipeline", False, True), ("tensor", False, False), ("tensor", True, True), ("pipeline", False, False), ("pipeline", True, False))


def check(device, T, kernels=("tensor", "pipeline"), blocks=("128x128", "64x64", "128x64", "64x128")) -> str:
    """What is wrong with products of dtype ``T`` on tensor cores, or "". The sums are exact, so nothing but equal bits is right."""
    M, N, K = 139, 75, 107      # fill neither blocks nor 16 bytes
    rng, most = np.random.default_rng(0), 128 if T is dt.int8 else 4
    a, b = rng.integers(-most, most, (M, K)).astype(np.float32), rng.integers(-most, most, (K, N)).astype(np.float32)
    if T is dt.float32:
        b *= 1 + rng.integers(0, 16, b.shape).astype(np.float32) / (1 << 13)     # more bits than tf32 has
    for i, (kernel, *turned) in enumerate(_CASES[:3] if T is dt.int8 else _CASES):
        if kernel not in kernels:
            continue
        TA, out = (T, dt.float32 if i % 2 else T) if T is not dt.int8 else (dt.uint8 if i % 2 else T, dt.int32)
        x, block = a + most if TA is dt.uint8 else a, blocks[i % len(blocks)]
        want = (x.astype(np.float64) @ (rounded(b) if T is dt.float32 else b)).astype(out.np)
        problem = difference(_product(device, TA, T, out, x, b, turned, kernel, block), want)
        if problem:
            return f"a product by matmul/{kernel} with blocks of {block}: {problem}"
    problem = difference(*_convolution(device, T)) if T.itemsize == 2 and "tensor" in kernels else ""
    return problem and f"a convolution: {problem}"


def rounded(x: np.ndarray) -> np.ndarray:
    """float32 values as tf32 holds them: 10 bits of mantissa, to nearest, ties away from zero."""
    return ((np.ascontiguousarray(x).view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xffffe000)).view(np.float32)


def _product(device, TA, T, out, a, b, turned, kernel, block):
    """a @ b by one kernel with blocks of one name, each operand transposed in memory where ``turned``, in rows that end with what is not to be read."""
    from ._gemm import Plan, Problem
    (M, K), N, bufs, strides = a.shape, b.shape[1], [], []
    for x, kind, turn in zip((a, b), (TA, T), turned):
        x = x.T if turn else x
        rows = np.full((len(x), -(-x.shape[1] // 16) * 16), 3, kind.np)
        rows[:, :x.shape[1]] = x
        bufs.append(device.alloc(rows.nbytes))
        device.write(bufs[-1], rows)
        strides.append((1, rows.shape[1]) if turn else (rows.shape[1], 1))
    with forced("gemm_tensor", {"BLOCK": block, "KERNEL": kernel}):
        made = Plan(device, Problem(TA, T, out, M, N, K, *strides, N, (1, 1), ((0, 0, 0), (0, 0, 0)), 1.0, 0.0, "", "", tf32=True, aligned=False,
                                    lanes=device.lanes(T.acc)))
    if made.kernel.name != f"matmul_{kernel}":
        raise RuntimeError(f"no block of {block} fits {device.name}")
    result = device.alloc(M * N * out.itemsize)
    made.run(bufs[0], 0, bufs[1], 0, result, 0)
    return device.read(result, M * N * out.itemsize).view(out.np).reshape(M, N)


def _convolution(device, T):
    """(result, what it should be) of convolutions and their gradients."""
    from ._conv_proof import results
    return results(device, T)
