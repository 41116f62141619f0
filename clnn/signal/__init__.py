"""Signal processing, as in ``torch.signal``: the window functions."""
from . import windows

__all__ = ["windows"]
