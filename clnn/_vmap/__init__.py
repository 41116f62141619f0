"""``vmap``: a function of one sample applied to a batch of them, by tensors that stand for one sample and hold them all.

``mapping`` has the function, ``batched`` the tensor, ``levels`` what maps are under way; ``forms`` and ``rules`` how operators compute all samples at once.
"""
from __future__ import annotations

from .mapping import vmap

__all__ = ["vmap"]
