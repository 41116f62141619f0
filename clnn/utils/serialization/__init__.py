"""PyTorch's place for the switches of ``save`` and ``load``."""
from . import config

__all__ = ["config"]
