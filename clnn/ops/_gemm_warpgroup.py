"""Matrix products by the instructions of four warps together (wgmma) of NVIDIA's compute capability 9.0: when they are used, and their proof.

A mma.sync, which all processors since 8.0 have, reaches six tenths of what these tensor cores can do; these instructions, which take their operands from
local memory, nearly all. See :mod:`clnn.runtime.retarget` for how they get past the compiler, and :mod:`clnn.ops._proof` for who says that they work.
"""
from __future__ import annotations

import numpy as np

from ..core import dtype as dt
from ..core.config import config
from ..runtime.params import parameters_for
from . import _proof

# Blocks by name: (warpgroups, columns, slots of local memory, relative speed of an element once the device is full).
BLOCKS = {"128x256": (2, 256, 4, 1.0), "128x128": (2, 128, 4, 1.2)}
KINDS = (dt.float16, dt.bfloat16, dt.float32, dt.int8)
_FULL = 0.5             # share of the compute units that need a block: fewer, smaller ones of the other kernel are faster
_LONG = 2048            # steps of K that a part has at least
_GAIN, _MOVED = 5.7e-6, 8 / 3000        # ns that a multiply-add of float32 takes less than by the other kernel; ns of an element that is turned,
_TURN = 6000                            # and of the launch for it
_known: dict = {}       # device -> names of the dtypes that it multiplies rightly


def plan(device, p, chunk):
    """(variant, parameters, global size, local size, words) of a product, or None where these instructions do not serve it."""
    if not p.aligned or not able(device):
        return None
    a, b = _ways(p, chunk)
    z = p.batch[0] * p.batch[1]
    name = _block(device, p, z) if a and b else None
    if name is None or p.tb.name not in kinds(device):
        return None
    WG, BN, STAGES, _ = BLOCKS[name]
    G = 128 * WG
    params = dict(WG=WG, BN=BN, STAGES=STAGES, AFAST=a, BFAST=b, PTX=config.tensor_cores != "emulate")
    return "matmul/warpgroup", params, (G * -(-p.M // (64 * WG)) * -(-p.N // BN), 1, z), (G, 1, 1), p.pack(0, 0, chunk)


def splits(device, p) -> int:
    """Parts of K of a single product, 0 where these instructions do not serve it. A second launch, which adds the parts, must be worth it."""
    if not p.aligned or not able(device) or not all(_ways(p, 0)) or p.tb.name not in kinds(device):
        return 0
    blocks = -(-p.M // 128) * -(-p.N // 128)
    parts = max(1, min(device.compute_units // blocks, p.K // _LONG))
    return parts if blocks * parts >= _FULL * device.compute_units else 0


def prepare(plan, p):
    """The problem with float operands that lie across K laid out along it first, as 32-bit elements must, where that pays; ``plan`` notes the passes."""
    if not (p.tf32 and p.aligned and p.ta is p.tb is dt.float32) or p.table or p.add_batch or p.K % 4 or not able(plan.device):
        return p
    b0, b1 = p.batch
    across = [(which, at, xs, X, ks) for which, at, (ks, xs), X in (("a", 0, p.a[::-1], p.M), ("b", 1, p.b, p.N)) if xs == 1 != ks]
    alone = [s0[at] == s1[at] == 0 for s0, s1 in (p.steps,) for at in (0, 1)]      # one matrix for all products
    cost = sum(p.K * X * (1 if alone[at] else b0 * b1) * _MOVED + _TURN for _, at, _, X, _ in across)
    if not across or p.M * p.N * p.K * b0 * b1 * _GAIN < cost:
        return p
    turned = p
    for which, at, _, X, _ in across:
        new = (0, 0) if alone[at] else (b1 * X * p.K, X * p.K)
        strides = {"a": (p.K, 1)} if which == "a" else {"b": (1, p.K)}
        turned = turned.replace(**strides, steps=tuple(s[:at] + (n,) + s[at + 1:] for s, n in zip(turned.steps, new)))
    if not all(_ways(turned, 0)) or "float32" not in kinds(plan.device):
        return p
    if not (splits(plan.device, turned) if p.batch == (1, 1) else _block(plan.device, turned, b0 * b1)):
        return p
    for which, at, _, X, ks in across:
        own, z = [s[at] for s in p.steps], 1 if alone[at] else b0 * b1
        plan.note(which, plan.device.kernel("matmul/turn"), (-(-X // 64) * 32, -(-p.K // 64) * 8, z), (p.K, X, ks), (b1, *own), p.K * X * z * 4, (32, 8, 1))
    return turned


def _block(device, p, z):
    """The block that takes the least time, or None where there are too few of any."""
    name = parameters_for(device, "gemm_warpgroup", f"{p.ta.name}/", p.M, p.N, p.K).get("BLOCK")
    if name in BLOCKS:
        return name
    best = None
    for name, (WG, BN, _, cost) in BLOCKS.items():
        blocks = -(-p.M // (64 * WG)) * -(-p.N // BN) * z
        time = -(-blocks // device.compute_units) * WG * BN * cost
        if blocks >= _FULL * device.compute_units and (best is None or time < best[0]):
            best = time, name
    return best and best[1]


def able(device) -> bool:
    """Whether these instructions belong to ``device``'s processor, and may be used."""
    allowed = config.tensor_cores == "emulate" or config.tensor_cores != "off" and device.flavour == "nvidia"
    return allowed and device.compute_capability == (9, 0)


def _ways(p, chunk):
    """How A and B lie, see :func:`_fast`."""
    return [_fast(ks, xs, p.K, X, p.tb, [s[at] for s in p.steps], chunk) for ks, xs, X, at in ((p.a[1], p.a[0], p.M, 0), (p.b[0], p.b[1], p.N, 1))]


def _fast(ks, xs, K, X, T, steps, chunk):
    """The index, "k" or "x", whose elements lie in rows of whole 16 bytes, or "" where neither does (or the instruction wants the other)."""
    lanes = 16 // T.itemsize

    def even(*sizes):
        return not any(n % lanes for n in sizes)
    if ks == 1 and even(xs, K, chunk, *steps):
        return "k"
    return "x" if xs == 1 and T.itemsize == 2 and even(ks, X, *steps) else ""


# ---- the proof -----------------------------------------------------------------------------------------------------------------

def kinds(device) -> frozenset:
    """Names of the dtypes whose products come out right on ``device``; asks it once per driver."""
    if config.tensor_cores in ("emulate", "trust"):
        return frozenset(T.name for T in KINDS)
    if device not in _known:
        _known[device] = frozenset(verdict(device)["kinds"])
    return _known[device]


def verdict(device) -> dict:
    """``kinds`` that are right and ``problems`` of the others, from disk or by asking."""
    return _proof.verdict(device, "_gemm_warpgroup", [T.name for T in KINDS], ("matmul/warpgroup", "matmul/fragments"))


def main() -> None:
    """In the process of its own: say of each dtype whether its products come out right."""
    _proof.tell(KINDS, check)


def check(device, T, blocks=None) -> str:
    """What is wrong with products of dtype ``T``, or "". The sums are exact in float, so nothing but equal bits is right."""
    from ..runtime.params import forced
    rng = np.random.default_rng(0)
    for block, fast in [(block, fast) for block in blocks or BLOCKS for fast in (("kk", "xx", "kx") if T.itemsize == 2 else ("kk",))]:
        M, N, K = 200, 328, 336
        a, b = rng.integers(-4, 5, (M, K)).astype(np.float32), rng.integers(-4, 5, (K, N)).astype(np.float32)
        want = (a.astype(np.float64) @ b).astype(dt.float32.np)
        if T is dt.float32:         # more bits than the instruction reads, whether it rounds or cuts
            b += np.sign(b) * rng.integers(0, 4, b.shape).astype(np.float32) / (1 << 13)
        with forced("gemm_warpgroup", {"BLOCK": block}):
            problem = _proof.difference(_product(device, T, a, b, fast), want.astype(np.int32) if T is dt.int8 else want)
        if problem:
            return f"a product with blocks of {block} and operands along {fast}: {problem}"
    return ""


def _product(device, T, a, b, fast):
    """a @ b in float or int, each operand laid out along K ("k") or across ("x")."""
    from ._gemm import Plan, Problem
    (M, K), N, out = a.shape, b.shape[1], dt.int32 if T is dt.int8 else dt.float32
    bufs = []
    for x in (a if fast[0] == "k" else a.T, b.T if fast[1] == "k" else b):
        x = np.ascontiguousarray(x).astype(T.np)
        bufs.append(device.alloc(x.nbytes))
        device.write(bufs[-1], x)
    made = Plan(device, Problem(T, T, out, M, N, K, (K, 1) if fast[0] == "k" else (1, M), (1, K) if fast[1] == "k" else (N, 1), N, (1, 1),
                                ((0, 0, 0), (0, 0, 0)), 1.0, 0.0, "", "", tf32=True, lanes=device.lanes(T.acc)))
    if made.kernel.name != "matmul_warpgroup":
        raise RuntimeError(f"not a product by warpgroups on {device.name}, but {made.kernel.name}")
    result = device.alloc(M * N * 4)
    made.run(bufs[0], 0, bufs[1], 0, result, 0)
    return device.read(result, M * N * 4).view(out.np).reshape(M, N)
