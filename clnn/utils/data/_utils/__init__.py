"""What PyTorch keeps of the loader under ``torch.utils.data._utils``: programs import ``collate`` and ``worker`` from there."""
from clnn._utils import ExceptionWrapper
from clnn.utils.data import _pinning as pin_memory
from clnn.utils.data._utils import collate, fetch, worker

MP_STATUS_CHECK_INTERVAL = 5.0
python_exit_status = False
HAS_NUMPY = True
__all__ = ["ExceptionWrapper", "collate", "fetch", "pin_memory", "worker"]
