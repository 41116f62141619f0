"""Questions and switches around :func:`clnn.compile`, as in ``torch.compiler``."""
from __future__ import annotations

from .runtime import capture


def is_compiling() -> bool:
    """True while a recording is being made."""
    return capture.active is not None


is_dynamo_compiling = is_compiling


def disable(fn=None, recursive=True):
    """Mark a function as not to be recorded; called inside a recorded function it runs as part of it."""
    return (lambda f: f) if fn is None else fn


def reset():
    """Accepted: every compiled function owns its recordings; drop the function to drop them."""


def allow_in_graph(fn):
    """Accepted: every operator can be recorded."""
    return fn
