"""Attention by the instructions of four warps together (wgmma) of NVIDIA's compute capability 9.0: when it is used, and its proof.

The kernel takes what :mod:`._attention_gpu` gives to tensor cores, where heads have 64 or 128 elements.
"""
from __future__ import annotations

from ..core import dtype as dt
from ..core.config import config
from . import _gemm_warpgroup, _proof
from ._attention import _plans

KINDS = (dt.float16, dt.bfloat16)
HEADS = (64, 128)
FEWEST = 64                     # queries: a warpgroup has as many
# By the longer head, the quicker first; the proof takes the first that is right. Forward: warpgroups, keys of a block, slots of local memory, whether queries
# stay there. Gradients: warpgroups, keys or queries of a block, slots.
FORMS = {64: ((2, 64, 2, True), (1, 64, 2, True), (1, 64, 1, True)), 128: ((1, 64, 2, False), (2, 64, 2, True), (1, 64, 1, True))}
QUERY = {64: ((1, 64, 2), (1, 64, 1)), 128: ((1, 64, 1),)}
KEYS = {64: ((1, 64, 1), (1, 64, 2), (1, 32, 2)), 128: ((1, 64, 1), (1, 32, 2))}
TEMPLATES = tuple(f"attention/{name}" for name in ("warpgroup", "warpgroup_query", "warpgroup_keys", "lines", "fragments", "scores"))
_known: dict = {}               # (device, name of a dtype, E, EV) -> the places in the three tables of what is right; () where nothing is


def serves(device, T, L, S, E, EV) -> bool:
    """Whether these kernels take a call, forward and backward."""
    return E in HEADS and EV in HEADS and min(L, S) >= FEWEST and _gemm_warpgroup.able(device) and device.max_work_group >= 256 and bool(_places(device, T, E, EV))


def rows(device, T, E, EV):
    """Rows of FORMS, QUERY and KEYS for a call that these kernels take."""
    return [table[max(E, EV)][i] for table, i in zip((FORMS, QUERY, KEYS), _places(device, T, E, EV))]


def _places(device, T, E, EV):
    """The places of the rows that compute attention of such heads rightly on ``device``, which is asked once per driver."""
    if config.tensor_cores == "emulate":
        return 0, 0, 0
    key = device, T.name, E, EV
    if key not in _known:
        if config.tensor_cores == "trust":              # the process of another proof
            return ()
        found = _proof.verdict(device, "_attention_warpgroup", [T.name], TEMPLATES, f"{T.name} {E} {EV} {FORMS} {QUERY} {KEYS}")
        _known[key] = tuple(found["choices"].get(T.name, ())) if found["kinds"] else ()
    return _known[key]


def main(part: str) -> None:
    """In the process of its own: say of a dtype and the lengths of heads whether their attention comes out right, and by which rows."""
    from ..runtime.device import default_device
    name, E, EV = part.split()[:3]
    heads = int(E), int(EV)
    key = default_device(), name, *heads
    _proof.tell([T for T in KINDS if T.name == name], lambda device, T: _first_right(device, T, key), lambda T: _known[key])


def _first_right(device, T, key):
    """"" once rows are found whose results and gradients are right; they are in ``_known`` then. Else what was wrong last."""
    heads, problem, sizes = key[2:], "", [len(table[max(key[2:])]) for table in (FORMS, QUERY, KEYS)]
    (B, H, L, S), causal = CHECKED[heads]
    places = [0, 0, 0]
    while all(i < n for i, n in zip(places, sizes)):
        _known[key] = tuple(places)
        _plans.clear()
        try:
            problem = check(device, T, (((B, H, L, S, *heads), causal),))
        except Exception as exc:                        # a kernel that does not build
            problem = f"{type(exc).__name__}: {exc}"[:800]
        if not problem:
            return ""
        at = 1 if "of queries" in problem or "warpgroup_query" in problem else 2 if "gradient of" in problem or "warpgroup_keys" in problem else 0
        places[at] += 1
    return problem


# By the lengths of heads: (B, H, L, S), causal.
CHECKED = {(64, 64): ((2, 4, 300, 300), True), (128, 128): ((1, 2, 90, 200), False), (128, 64): ((1, 2, 130, 130), True), (64, 128): ((1, 1, 130, 500), False)}


def check(device, T, shapes) -> str:
    """What is wrong with attention of dtype ``T``, or "". ``shapes``: of ((B, H, L, S, E, EV), causal)."""
    from ._attention_gpu import wrong
    for (B, H, L, S, E, EV), causal in shapes:
        problem = wrong(device, T, (B, H, L, S, E, EV), causal) if serves(device, T, L, S, E, EV) else f"attention of {E} and {EV} goes elsewhere"
        if problem:
            return problem
    return ""
