"""The tuner: searches kernel parameters on a device and keeps what was measured to be right and fastest."""
from .search import tune  # noqa: F401
