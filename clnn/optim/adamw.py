"""AdamW under the module name that PyTorch gives it."""

from clnn.optim.adam import AdamW

__all__ = ["AdamW"]
