"""Blocks without modes."""
from clnn.utils._python_dispatch import _disable_current_modes as no_dispatch

__all__ = ["all_same_mode", "no_dispatch"]


def all_same_mode(modes):
    """Whether all are one and the same."""
    return all(m is modes[0] for m in modes)
