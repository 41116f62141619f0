"""Products of bfloat16 and of int8 by instructions of x86 processors that multiply two or four pairs of numbers per lane and add the products.

AVX512-BF16 does twice the multiply-adds of float32, AVX512-VNNI four times as many of bytes. OpenCL C has no name for these instructions, so each driver
is given its own spelling, and has to prove it first (``_proof``). The kernels work on words of 32 bits along K (``matmul/words``, ``matmul/interleave``).
"""
from __future__ import annotations

import numpy as np

from ..core import dtype as dt
from ..core.config import config
from ..runtime.drivers import host_flags
from . import _proof
from ._proof import difference

FLAGS = {dt.bfloat16: "avx512_bf16", dt.int8: "avx512_vnni"}        # by the dtype of B
KINDS = tuple(FLAGS)
_SPELLING = {"pocl": "asm", "intel-cpu": "intrinsic"}
_CHUNK = 1024                       # words that a work-item of a pass over A writes, about
FEW = 8                             # rows that are better summed as they lie, by ``matmul/dot``
LEAST = 1 << 18                     # rows by channels by pixels of a convolution, below which its passes cost more than they save
_known: dict = {}                   # device -> names of the dtypes that it multiplies by words


def able(device) -> frozenset:
    """Names of the dtypes that the processor has an instruction for, of which its driver can be told."""
    spoken = device.is_cpu and device.wide and device.flavour in _SPELLING
    return frozenset(T.name for T, flag in FLAGS.items() if flag in host_flags()) if spoken else frozenset()


def kinds(device) -> frozenset:
    """Names of the dtypes whose words ``device`` multiplies rightly; asks its driver once where the processor has an instruction at all."""
    if not device.is_cpu or not device.wide or config.tensor_cores == "off":
        return frozenset()
    if config.tensor_cores in ("emulate", "trust"):
        return frozenset(T.name for T in KINDS)
    if device not in _known:
        _known[device] = able(device) and able(device) & frozenset(verdict(device)["kinds"])
    return _known[device]


def spelling(device) -> str:
    """How ``device``'s driver is told of the instructions (see ``matmul/pairs``)."""
    return "plain" if config.tensor_cores == "emulate" else _SPELLING.get(device.flavour, "plain")


def suits(device, p) -> bool:
    """Whether a product goes by words: of dtypes that have an instruction, and large enough that packing them pays."""
    if p.tb not in FLAGS or p.ta is not p.tb and (p.ta, p.tb) != (dt.uint8, dt.int8) or p.table or p.acc not in ("float", "int"):
        return False
    return p.M > FEW and p.N >= 16 and p.K >= 16 and p.M * p.N * p.K * p.batch[0] * p.batch[1] > 1 << 15 and p.tb.name in kinds(device)


def suits_conv(device, T, M, channels, pixels) -> bool:
    """Whether a convolution with M rows and ``channels`` of input per group goes by words of two channels."""
    return T is dt.bfloat16 and channels % 2 == 0 and M >= 16 and M * channels * pixels > LEAST and T.name in kinds(device)


def suits_weight(device, T, M, N, images, pixels) -> bool:
    """Whether the gradient of M x N weights goes by words of two images."""
    return T is dt.bfloat16 and images % 2 == 0 and M * N * images * pixels > LEAST and T.name in kinds(device)


def prepare(plan, p):
    """``p`` in words: K and the strides along it count words. Where A is not made of them as it lies, a pass that lays it out goes before the product."""
    G, (s0, s1), (b0, b1) = 4 // p.tb.itemsize, p.steps, p.batch
    K = -(-p.K // G)
    a, steps = (p.a[0], G), p.steps
    if p.a[1] != 1 or p.K % G or p.ta is dt.int8:
        own = (s0[0], s1[0])
        if own == (0, 0):       # one matrix for all products
            b0 = b1 = 1
        read = "cols" if p.a[0] == 1 and p.a[1] != 1 else "rows"
        each = max(1, _CHUNK // K) if read == "rows" else 16 * max(1, _CHUNK // (16 * K))
        kernel = plan.device.kernel("matmul/interleave", T=p.ta, W=16, CHUNK=_CHUNK, READ=read)
        plan.note("a", kernel, (-(-K // _CHUNK), -(-p.M // each), b0 * b1), (p.M, 0, p.K, *p.a, 0, 0, 0, 0, each), (b1, own[0], 0, 0, own[1]),
                  p.M * K * b0 * b1 * 4)
        a, flat = (K * G, G), 0 if own == (0, 0) else p.M * K * G
        steps = ((flat * b1, *s0[1:]), (flat, *s1[1:]))
    return p.replace(K=K, a=a, b=(p.b[0] * G, p.b[1]), steps=steps, tail=p.K - (K - 1) * G)


def plan(device, p, chunk, choose):
    """(variant, parameters, global size, local size, words) of a product in words; ``choose`` is :mod:`clnn.ops._gemm`'s choice of tile, rows and block."""
    G = 4 // p.tb.itemsize
    mode = "rows" if p.b[1] == 1 else "cols" if p.b[0] == G else "any"
    MR, NV, MB, KB, most = choose(device, p, chunk, mode)
    params = dict(W=16, NV=NV, MR=MR, KB=most, MODE=mode, USE=spelling(device))
    gs = (-(-p.N // (NV * 16)), -(-p.M // MB), p.batch[0] * p.batch[1])
    return "matmul/words", params, gs, (1, 1, 1), p.pack(MB, p.tail, chunk, KB)


# ---- the proof -----------------------------------------------------------------------------------------------------------------

def verdict(device) -> dict:
    """Those of ``able`` that are right as ``kinds``, and ``problems`` of the others, from disk or by asking."""
    return _proof.verdict(device, "_gemm_words", sorted(able(device)), ("matmul/words", "matmul/interleave", "matmul/pairs", "matmul/tile"))


def main() -> None:
    """In the process of its own: say of each dtype whether its products come out right."""
    _proof.tell([T for T in KINDS if FLAGS[T] in host_flags()], check)


def check(device, T) -> str:
    """What is wrong with products of dtype ``T`` in words, or "". The sums are exact, so nothing but equal bits is right."""
    from ._gemm import gemm
    M, N, K = 13, 83, 101
    rng = np.random.default_rng(0)
    low, high = (-128, 128) if T is dt.int8 else (-8, 9)
    out = dt.int32 if T is dt.int8 else dt.float32
    a, b = rng.integers(low, high, (M, K)), rng.integers(low, high, (K, N))
    for turned in (False, True):
        bufs = []
        for x in (a, b):
            x = np.ascontiguousarray(x.T if turned else x).astype(T.np)
            bufs.append(device.alloc(x.nbytes))
            device.write(bufs[-1], x)
        result = device.alloc(M * N * 4)
        gemm(device, T, M, N, K, bufs[0], 0, (1, M) if turned else (K, 1), bufs[1], 0, (1, K) if turned else (N, 1), result, 0, N, out_dtype=out)
        problem = difference(device.read(result, M * N * 4).view(out.np).reshape(M, N), (a @ b).astype(out.np))
        if problem:
            return problem
    return ""
