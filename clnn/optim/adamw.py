"""AdamW under the module name that PyTorch gives it."""

from clnn.optim.adam import AdamW, adamw

__all__ = ["AdamW", "adamw"]
