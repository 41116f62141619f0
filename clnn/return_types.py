"""Result classes of operators that return several tensors, by operator name: ``clnn.return_types.sort``."""
from __future__ import annotations

from ._tensor.return_types import _made, named

for _name in ("sort", "topk", "kthvalue", "median", "nanmedian", "mode", "max", "min", "cummax", "cummin"):
    named(_name, "values", "indices")


def __getattr__(name):
    try:
        return _made[name]
    except KeyError:
        raise AttributeError(f"module 'clnn.return_types' has no attribute {name!r}") from None
