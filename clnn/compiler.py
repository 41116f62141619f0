"""Questions and switches around :func:`clnn.compile`, as in ``torch.compiler``."""
from __future__ import annotations

from .runtime import capture


def is_compiling() -> bool:
    """True while a recording is being made."""
    return capture.active is not None


is_dynamo_compiling = is_compiling


def disable(fn=None, recursive=True, *, reason=None):
    """Mark a function as not to be recorded; called inside a recorded function it runs as part of it."""
    return (lambda f: f) if fn is None else fn


def reset():
    """Accepted: every compiled function owns its recordings; drop the function to drop them."""


def allow_in_graph(fn):
    """Accepted: every operator can be recorded."""
    return fn


assume_constant_result = allow_in_graph


def is_exporting() -> bool:
    """False."""
    return False


def cudagraph_mark_step_begin() -> None:
    """Accepted: recordings own their memory."""


def list_backends(exclude_tags=()):
    """What ``clnn.compile`` calls its way of working."""
    return ["replay"]


class set_stance:
    """Accepted, also as a ``with`` block or a decorator."""

    def __init__(self, stance="default", **kwargs):
        self.stance = stance

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        pass

    def __call__(self, fn):
        return fn
