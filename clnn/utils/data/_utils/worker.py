"""See ``clnn.utils.data._worker``."""
from clnn.utils.data._worker import WorkerInfo, _generate_state, get_worker_info

__all__ = ["WorkerInfo", "_generate_state", "get_worker_info"]
