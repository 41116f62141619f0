"""Looking at and reaching into the recorded graph."""
from __future__ import annotations

import contextlib
from collections.abc import Iterable

from .._tensor.backward import GradientEdge, get_gradient_edge
from .._tensor.grad_mode import state
from .._tensor.handles import RemovableHandle
from .._tensor.interop import from_array, read
from .._tensor.tape import Node
from .._tensor.tensor import Tensor
from .._tensor.writing import bump

__all__ = ["GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "get_gradient_edge", "increment_version",
           "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks"]


def increment_version(tensor):
    """Tell autograd that the memory of ``tensor`` (or of each of several) was changed behind its back.

    Example:
        >>> x = clnn.ones(2)
        >>> clnn.autograd.graph.increment_version(x)
        >>> x._version
        1
    """
    several = [tensor] if isinstance(tensor, Tensor) else tensor
    if not isinstance(several, Iterable):
        raise RuntimeError("increment_version expect a Iterable[Tensor] as input")
    for t in several:
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
        if not all(map(callable, self.hooks)):
            raise TypeError(f"saved_tensors_hooks: incompatible function arguments: two callables are wanted, got {self.hooks[0]!r}, {self.hooks[1]!r}")
        self.before, state.saved_hooks = state.saved_hooks, (*state.saved_hooks, self.hooks)

    def __exit__(self, *exc):
        state.saved_hooks = self.before


def _as_it_was(kept):
    return kept


class allow_mutation_on_saved_tensors(saved_tensors_hooks):
    """Within the block, tensors that were kept for backward may be written in place: backward sees the values that they had.

    That costs a copy of what is written while it is kept, and nothing else.

    Example:
        >>> x = clnn.ones(2, requires_grad=True)
        >>> with clnn.autograd.graph.allow_mutation_on_saved_tensors():
        ...     y = x.clone()
        ...     z = (y ** 2).sum()
        ...     y = y.sin_()
        ...     z.backward()
        >>> x.grad
        tensor([2., 2.])
    """

    def __init__(self):
        super().__init__(lambda t: t._snapshot(), _as_it_was)

    def __enter__(self):
        if self.hooks[1] in [unpack for _, unpack in state.saved_hooks]:
            raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
        super().__enter__()
        return self

    def clear(self):
        """There is nothing to clear: each value goes with the graph that keeps it."""


_disabled: list = []


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message):
    """Within the block, entering :class:`saved_tensors_hooks` raises RuntimeError with this message; so does the block where some are at work.

    Example:
        >>> with clnn.autograd.graph.disable_saved_tensors_hooks("no hooks here"):
        ...     y = clnn.ones(2, requires_grad=True) * 2
    """
    if state.saved_hooks:
        raise RuntimeError(error_message)
    _disabled.append(error_message)
    try:
        yield
    finally:
        _disabled.pop()


class save_on_cpu(saved_tensors_hooks):
    """Within the block, what operators keep for backward is moved to host memory and comes back when it is needed.

    Example:
        >>> x = clnn.ones(2, requires_grad=True)
        >>> with clnn.autograd.graph.save_on_cpu():
        ...     y = (x * x).sum()
        >>> y.backward()
        >>> x.grad
        tensor([2., 2.])
    """

    def __init__(self, pin_memory=False, device_type="gpu"):
        super().__init__(lambda t: (t._storage.device, t.dtype, read(t.detach())), lambda kept: from_array(kept[2], kept[0], kept[1]))


class _MultiHandle(RemovableHandle):
    """Handles that are removed together."""

    def __init__(self, handles):
        self.handles = tuple(handles)

    def remove(self):
        for h in self.handles:
            h.remove()

    def __getstate__(self):
        return self.handles

    def __setstate__(self, state):
        self.handles = state


def register_multi_grad_hook(tensors, fn, *, mode="all"):
    """Call ``fn(gradients)`` once the gradients of all ``tensors`` are known, or with ``mode="any"`` ``fn(gradient)`` at the first one.

    Gradients are counted within one backward pass; those of tensors that it does not come by are None.

    Example:
        >>> a, b = clnn.ones(2, requires_grad=True), clnn.ones(2, requires_grad=True)
        >>> seen = []
        >>> handle = clnn.autograd.graph.register_multi_grad_hook((a, b), seen.append)
        >>> (a * 2).sum().backward()
        >>> seen
        [[tensor([2., 2.]), None]]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    tensors, key = list(tensors), object()
    nodes = [get_gradient_edge(t).node for t in tensors]

    def hook_of(i):
        def hook(g):
            task = state.task
            first = key not in task.notes
            if first:
                task.notes[key] = [sum(map(task.comes_by, nodes)), [None] * len(tensors)]
            if mode == "any":
                if first:
                    fn(g)
                return
            note = task.notes[key]
            note[0], note[1][i] = note[0] - 1, g
            if note[0] == 0:
                fn(note[1])
        return hook
    return _MultiHandle([t.register_hook(hook_of(i)) for i, t in enumerate(tensors)])
