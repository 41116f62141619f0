"""Backward passes across processes: as in a PyTorch that was built without them."""
from __future__ import annotations

__all__ = ["context", "is_available"]


def is_available() -> bool:
    """False: there are no backward passes across processes."""
    return False


class context:                                                      # noqa: N801
    """The region of a backward pass across processes: there is none."""

    def __enter__(self):
        raise RuntimeError("there is no distributed autograd here: torch.distributed.autograd.is_available() tells")

    def __exit__(self, *exc):
        return False
