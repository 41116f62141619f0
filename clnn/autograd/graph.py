"""Looking at and reaching into the recorded graph."""
from __future__ import annotations

import contextlib
from typing import NamedTuple

from .._tensor.grad_mode import state
from .._tensor.interop import from_array, read
from .._tensor.tape import Node
from .._tensor.tensor import Tensor, bump, edge


class GradientEdge(NamedTuple):
    """Where the gradient of a tensor arrives: node and output number."""

    node: Node
    output_nr: int


def get_gradient_edge(tensor) -> GradientEdge:
    """The place on the tape of a tensor that requires a gradient."""
    at = edge(tensor)
    if at is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(*at)


def increment_version(tensor):
    """Tell autograd that the memory of ``tensor`` (or of each of several) was changed behind its back."""
    for t in [tensor] if isinstance(tensor, Tensor) else tensor:
        bump(t)


class saved_tensors_hooks:
    """Within the block, what operators keep for backward goes through ``pack_hook``, and through ``unpack_hook`` when it is needed.

    Example:
        >>> x = clnn.tensor([2.0], requires_grad=True)
        >>> with clnn.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(force=True), clnn.from_numpy):
        ...     y = x * x
        >>> y.backward()
        >>> x.grad
        tensor([4.])
    """

    def __init__(self, pack_hook, unpack_hook):
        self.hooks = pack_hook, unpack_hook

    def __enter__(self):
        if _disabled:
            raise RuntimeError(_disabled[-1])
        self.before, state.saved_hooks = state.saved_hooks, (*state.saved_hooks, self.hooks)

    def __exit__(self, *exc):
        state.saved_hooks = self.before


_disabled: list = []


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message):
    """Within the block, entering :class:`saved_tensors_hooks` raises RuntimeError with this message."""
    _disabled.append(error_message)
    try:
        yield
    finally:
        _disabled.pop()


class save_on_cpu(saved_tensors_hooks):
    """Within the block, what operators keep for backward is moved to host memory and comes back when it is needed."""

    def __init__(self, pin_memory=False, device_type="gpu"):
        super().__init__(lambda t: (t._storage.device, t.dtype, read(t.detach())), lambda kept: from_array(kept[2], kept[0], kept[1]))


class _Handles(tuple):
    """Handles that are removed together."""

    def remove(self):
        for h in self:
            h.remove()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()


def register_multi_grad_hook(tensors, fn, *, mode="all"):
    """Call ``fn(gradients)`` once the gradients of all ``tensors`` are known, or with ``mode="any"`` ``fn(gradient)`` at the first one.

    Gradients are counted within one backward pass; those that it does not reach must be left out of ``tensors``.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    tensors = list(tensors)
    have = [None] * len(tensors)

    def hook_of(i):
        def hook(g):
            first = all(h is None for h in have)
            have[i] = g
            if mode == "any":
                if first:
                    fn(g)
            elif all(h is not None for h in have):
                got, have[:] = list(have), [None] * len(have)
                fn(got)
        return hook
    return _Handles(t.register_hook(hook_of(i)) for i, t in enumerate(tensors))
