"""Types for annotations of scripted functions, as in ``torch.jit.annotations``: a number or a list of as many numbers."""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: F401  (programs import these from here)


class _Broadcasting:
    """``BroadcastingList2[int]`` and the like: the annotation of a list."""

    def __getitem__(self, item):
        return List[item]


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = BroadcastingList4 = BroadcastingList5 = BroadcastingList6 = _Broadcasting()
