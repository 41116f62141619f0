"""PyTorch's place of :class:`Variable` in old programs."""
from . import Variable

__all__ = ["Variable"]
