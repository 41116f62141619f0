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
TEMPLATES = tuple(f"attention/{name}" for name in ("warpgroup", "warpgroup_query", "warpgroup_keys", "lines", "fragments", "scores"))
_known: dict = {}               # (device, name of a dtype, E, EV) -> whether such attention is right


def serves(device, T, L, S, E, EV) -> bool:
    """Whether these kernels take a call, forward and backward."""
    return E in HEADS and EV in HEADS and min(L, S) >= FEWEST and _gemm_warpgroup.able(device) and device.max_work_group >= 256 and proved(device, T, E, EV)


def proved(device, T, E, EV) -> bool:
    """Whether attention of these heads comes out right on ``device``; asks it once per driver."""
    if config.tensor_cores == "emulate":
        return True
    key = device, T.name, E, EV
    if key not in _known:
        if config.tensor_cores == "trust":              # the process of another proof
            return False
        _known[key] = bool(_proof.verdict(device, "_attention_warpgroup", [T.name], TEMPLATES, f"{T.name} {E} {EV}")["kinds"])
    return _known[key]


def main(part: str) -> None:
    """In the process of its own: say of a dtype and the lengths of heads whether their attention comes out right."""
    from ..runtime.device import default_device
    name, E, EV = part.split()
    heads = int(E), int(EV)
    _known[default_device(), name, *heads] = True
    _proof.tell([T for T in KINDS if T.name == name], lambda device, T: check(device, T, ((CHECKED[heads][0] + heads, CHECKED[heads][1]),)))


# By the lengths of heads: (B, H, L, S), causal.
CHECKED = {(64, 64): ((2, 4, 300, 300), True), (128, 128): ((1, 2, 90, 200), False), (128, 64): ((1, 2, 130, 130), True), (64, 128): ((1, 1, 64, 500), False)}


def check(device, T, shapes) -> str:
    """What is wrong with attention of dtype ``T``, or "". ``shapes``: of ((B, H, L, S, E, EV), causal)."""
    from ._attention_gpu import wrong
    for (B, H, L, S, E, EV), causal in shapes:
        problem = wrong(device, T, (B, H, L, S, E, EV), causal) if serves(device, T, L, S, E, EV) else f"attention of {E} and {EV} goes elsewhere"
        if problem:
            return problem
    return ""
