"""Mixed precision: `autocast` and `GradScaler` (PyTorch's `torch.amp`)."""

from clnn.amp.autocast_mode import (autocast, clear_autocast_cache, custom_bwd, custom_fwd, get_autocast_dtype, is_autocast_available,
                                    is_autocast_cache_enabled, is_autocast_enabled, set_autocast_cache_enabled, set_autocast_dtype, set_autocast_enabled)
from clnn.amp.grad_scaler import GradScaler

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available", "GradScaler"]
