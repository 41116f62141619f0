"""Attention by the instructions of four warps together (wgmma) of NVIDIA's compute capability 9.0: when it is used, and its proof.

The kernel takes what :mod:`._attention_gpu` gives to tensor cores, where heads have 64 or 128 elements.
"""
from __future__ import annotations

from ..core import dtype as dt
from ..core.config import config
from . import _gemm_warpgroup, _proof

KINDS = (dt.float16, dt.bfloat16)
HEADS = (64, 128)
FEWEST = 64                     # queries: a warpgroup has as many
# By the longer head. Forward: warpgroups, keys of a block, slots of local memory, whether queries stay there. Gradients: warpgroups, keys or queries of a block, slots.
FORMS = {64: (2, 64, 2, False), 128: (1, 64, 1, True)}
QUERY, KEYS = {64: (1, 64, 2), 128: (1, 64, 1)}, {64: (1, 64, 2), 128: (1, 32, 2)}
_known: dict = {}               # device -> names of the dtypes whose attention is right


def serves(device, T, L, S, E, EV) -> bool:
    """Whether these kernels take a call, forward and backward."""
    return E in HEADS and EV in HEADS and min(L, S) >= FEWEST and _gemm_warpgroup.able(device) and device.max_work_group >= 256 and T.name in kinds(device)


def kinds(device) -> frozenset:
    """Names of the dtypes whose attention comes out right on ``device``; asks it once per driver."""
    if config.tensor_cores in ("emulate", "trust"):
        return frozenset(T.name for T in KINDS)
    if device not in _known:
        templates = tuple(f"attention/{name}" for name in ("warpgroup", "warpgroup_query", "warpgroup_keys", "lines", "fragments", "scores"))
        _known[device] = frozenset(_proof.verdict(device, "_attention_warpgroup", [T.name for T in KINDS], templates)["kinds"])
    return _known[device]


def main() -> None:
    """In the process of its own: say of each dtype whether its attention comes out right."""
    _proof.tell(KINDS, check)


CHECKED = (((2, 4, 300, 300, 64, 64), True), ((1, 2, 90, 200, 128, 128), False), ((1, 2, 130, 130, 128, 64), True), ((1, 1, 64, 500, 64, 128), False))


def check(device, T, shapes=CHECKED) -> str:
    """What is wrong with attention of dtype ``T``, or ""."""
    from ._attention_gpu import wrong
    for (B, H, L, S, E, EV), causal in shapes:
        problem = wrong(device, T, (B, H, L, S, E, EV), causal) if serves(device, T, L, S, E, EV) else f"attention of {E} and {EV} goes elsewhere"
        if problem:
            return problem
    return ""
