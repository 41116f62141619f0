"""What PyTorch keeps of the loader under ``torch.utils.data._utils``: programs import ``collate`` and ``worker`` from there."""
from clnn.utils.data import _pinning as pin_memory
from clnn.utils.data._utils import collate, worker

__all__ = ["collate", "pin_memory", "worker"]
