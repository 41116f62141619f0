"""PyTorch's mark of what stays as it is; tracers of libraries put it on their methods, too."""
from __future__ import annotations


def compatibility(is_backward_compatible):
    """A decorator that changes nothing.

    Example:
        >>> from clnn.fx._compatibility import compatibility
        >>> compatibility(is_backward_compatible=True)(len)
        <built-in function len>
    """
    return lambda fn: fn
