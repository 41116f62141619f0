"""Calls of functions in other processes: as in a PyTorch that was built without them."""
from __future__ import annotations

__all__ = ["is_available"]


def is_available() -> bool:
    """False: there are no remote calls."""
    return False
