"""``torch.utils.data.backward_compatibility``."""
from clnn.core.warn import warn


def worker_init_fn(worker_id):
    """Nothing: loaders shard pipes by themselves. Deprecated in PyTorch."""
    warn("Usage of backward_compatibility.worker_init_fn is deprecated as DataLoader automatically applies sharding in every worker")
