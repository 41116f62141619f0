"""Trading time for memory: parts of a model whose intermediate results are computed again in backward instead of being kept.

Chen et al., "Training deep nets with sublinear memory cost", 2016.
"""
from __future__ import annotations

import contextlib
import enum
import warnings

import clnn
from clnn._tensor import tape
from clnn._tensor.grad_mode import state
from clnn._tensor.tensor import Tensor, edge
from clnn.core import rng
from clnn.core.warn import warn

__all__ = ["checkpoint", "checkpoint_sequential", "CheckpointError", "noop_context_fn", "set_checkpoint_early_stop",
           "set_checkpoint_debug_enabled", "CheckpointPolicy", "SelectiveCheckpointContext", "create_selective_checkpoint_contexts"]

_early_stop = None              # set_checkpoint_early_stop: overrides the argument of that name


class CheckpointError(RuntimeError):
    """The second computation of a checkpointed function did not repeat the first."""


class _Surroundings:
    """What a function's result may depend on besides its arguments: random numbers and autocast."""

    def __init__(self, preserve_rng_state):
        stream = rng.current()
        self.place, self.counted = stream.mark() if preserve_rng_state else None, rng.here.counted
        self.autocast = state.autocast

    @contextlib.contextmanager
    def again(self):
        """In the block they are as they were; afterwards as before the block."""
        before, state.autocast = state.autocast, self.autocast
        counted, rng.here.counted = rng.here.counted, self.counted
        try:
            with clnn.random.fork_rng(enabled=self.place is not None):
                if self.place is not None:
                    rng.current().back(self.place)
                yield
        finally:
            state.autocast, rng.here.counted = before, counted


_ADVICE = ("use_reentrant=False is recommended, but if you need to preserve the current default behavior, you can pass use_reentrant=True. Refer to docs for more "
           "details on the differences between the two variants.")


def checkpoint(function, *args, use_reentrant=None, context_fn=None, determinism_check="default", debug=False, early_stop=True,
               preserve_rng_state=True, **kwargs):
    """Call ``function(*args, **kwargs)`` without keeping what its backward pass needs; that is computed again then.

    Args:
        function: the part of the model; called a second time, it must do the same.
        use_reentrant: the older way: gradients reach only tensors among ``args`` and leaves that the function uses, and
            ``clnn.autograd.grad`` does not work through it. Default: ``True`` as in PyTorch, with a warning.
        context_fn: returns two context managers, for the first and the second computation.
        determinism_check: ``"default"`` compares shapes and dtypes of what both computations keep; ``"none"`` does not.
        debug: accepted with ``use_reentrant=False``; errors always name the tensors that differ.
        early_stop: end the second computation as soon as all that is needed is known. Default: ``True``.
        preserve_rng_state: draw the same random numbers (dropout) the second time. Default: ``True``.

    Raises:
        CheckpointError: in backward, when the second computation kept other tensors than the first.

    Example::

        >>> layer = nn.Linear(4, 4)
        >>> x = clnn.ones(2, 4, requires_grad=True)
        >>> clnn.utils.checkpoint.checkpoint(layer, x, use_reentrant=False).sum().backward()
        >>> x.grad.shape
        clnn.Size([2, 4])
    """
    if use_reentrant is None:
        warn(f"torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in PyTorch 2.9, calling checkpoint without "
             f"use_reentrant will raise an exception. {_ADVICE}")
        use_reentrant = True
    if use_reentrant:
        if kwargs or debug or context_fn not in (None, noop_context_fn):
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs) if kwargs else
                             "Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return _reentrant(function, args, preserve_rng_state)
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of ['default', 'none'], but got {determinism_check}")
    first, second = (context_fn or noop_context_fn)()
    if not state.grad:
        with first:
            return function(*args, **kwargs)
    frame = _Frame(function, args, kwargs, _Surroundings(preserve_rng_state), second, determinism_check,
                   early_stop if _early_stop is None else _early_stop)
    with first, _hooks(frame.pack, frame.unpack):
        return function(*args, **kwargs)


@contextlib.contextmanager
def _hooks(pack, unpack):
    """Saved tensors of the operators in the block go through the pair."""
    before = state.saved_hooks
    state.saved_hooks = (*before, (pack, unpack))
    try:
        yield
    finally:
        state.saved_hooks = before


class _Stop(Exception):
    """Everything that backward needs has been computed again."""


class _Frame:
    """One checkpointed call: it counts what would have been saved, and computes it again when the first piece is asked for."""

    def __init__(self, function, args, kwargs, surroundings, context, check, early_stop):
        self.function, self.args, self.kwargs = function, args, kwargs
        self.surroundings, self.context, self.check, self.early_stop = surroundings, context, check, early_stop
        self.metas = []         # what is compared of each saved tensor of the first computation
        self.again = None       # the saved tensors of the second one
        self.left = 0

    def pack(self, tensor):
        self.metas.append(_meta(tensor))
        return len(self.metas) - 1

    def unpack(self, number):
        if self.again is None or self.again[number] is None:
            self._recompute()
        got, self.again[number] = self.again[number], None      # each is held only until it is used
        self.left -= 1
        if not self.left:
            self.again = None
        return got

    def _recompute(self):
        self.again, keep_graph = [], state.grad
        before, state.grad = state.grad, True

        def pack(tensor):
            # Under create_graph the recomputed history stands for the first one.
            self.again.append(tensor if keep_graph else tensor.detach())
            if self.early_stop and len(self.again) == len(self.metas):
                raise _Stop
            return tensor
        try:
            with self.surroundings.again(), self.context, _hooks(pack, lambda t: t):
                self.function(*self.args, **self.kwargs)
        except _Stop:
            pass
        finally:
            state.grad = before
        self._compare()
        self.left = len(self.again)

    def _compare(self):
        if len(self.again) != len(self.metas):
            raise CheckpointError("clnn.utils.checkpoint: A different number of tensors was saved during the original forward and recomputation.\n"
                                  f"Number of tensors saved during forward: {len(self.metas)}\nNumber of tensors saved during recomputation: {len(self.again)}.\n")
        if self.check == "none":
            return
        different = [f"tensor at position {i}:\nsaved metadata: {was}\nrecomputed metadata: {_meta(t)}\n"
                     for i, (t, was) in enumerate(zip(self.again, self.metas)) if _meta(t) != was]
        if different:
            raise CheckpointError("clnn.utils.checkpoint: Recomputed values for the following tensors have different metadata than during the "
                                  f"forward pass.\n{''.join(different)}.\n")


def _meta(t):
    return {"shape": t.shape, "dtype": t.dtype, "device": t.device}


class _ReentrantNode(tape.Node):
    """The whole call as one tape entry; backward runs the function again and a backward pass of its own through it."""

    __slots__ = ("call", "inputs", "surroundings")

    def name(self):
        return "CheckpointFunctionBackward"

    def release(self):
        self.inputs = None

    def apply(self, grads, needed):
        if self.inputs is None:
            raise RuntimeError("checkpoint: backward through the same call a second time; specify retain_graph=True the first time")
        if state.task.execute is not None:                      # the pass below reaches every leaf, asked for or not
            raise RuntimeError("When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter to "
                               ".backward(). To resolve this error, you can either set use_reentrant=False, or call .backward() without passing the "
                               "`inputs` argument.")
        inputs = [t.detach().requires_grad_(t._rg) if isinstance(t, Tensor) else t for t in self.inputs]
        with clnn.enable_grad(), self.surroundings.again():
            outs = self.call(*inputs)
        outs = outs if isinstance(outs, (tuple, list)) else (outs,)
        pairs = [(o, g) for o, g in zip(outs, grads) if isinstance(o, Tensor) and o._rg and g is not None]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        clnn.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return [t._grad if isinstance(t, Tensor) else None for t in inputs]


class CheckpointFunction:
    """``CheckpointFunction.apply(run_function, preserve_rng_state, *args)``: the older way of :func:`checkpoint`, as libraries call it."""

    @staticmethod
    def apply(run_function, preserve_rng_state, *args):
        return _reentrant(run_function, args, preserve_rng_state)


def detach_variable(inputs):
    """The tensors of a tuple without their history, asking for gradients where they did; the rest as it is.

    Example:
        >>> x = clnn.ones(1, requires_grad=True) * 2
        >>> clnn.utils.checkpoint.detach_variable((x, 3))[0].is_leaf
        True
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(t.detach().requires_grad_(t.requires_grad) if isinstance(t, Tensor) else t for t in inputs)


def check_backward_validity(inputs):
    """Warn where no input of a reentrant checkpoint asks for a gradient."""
    if not any(t.requires_grad for t in inputs if isinstance(t, Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


def _reentrant(function, args, preserve_rng_state):
    surroundings = _Surroundings(preserve_rng_state)
    with clnn.no_grad():
        result = function(*args)
    if not state.grad:
        return result
    edges = [edge(a) if isinstance(a, Tensor) and a._rg else None for a in args]
    if not any(edges):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=3)
        return result
    outs = result if isinstance(result, (tuple, list)) else (result,)
    node = _ReentrantNode(edges, len(outs))
    node.call, node.inputs, node.surroundings = function, args, surroundings
    fresh = []
    for nr, o in enumerate(outs):
        if isinstance(o, Tensor) and o.dtype.differentiable:
            o = o._alias()
            o._grad_fn, o._out_nr, o._rg = node, nr, True
        fresh.append(o)
    return type(result)(fresh) if isinstance(result, (tuple, list)) else fresh[0]


def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs):
    """Run modules one after the other, in ``segments`` parts of which all but the last are checkpointed.

    Args:
        functions: an ``nn.Sequential`` or a list of functions of one argument.
        segments: number of parts.
        input: the argument of the first function.
        use_reentrant, preserve_rng_state: as for :func:`checkpoint`.

    Example::

        >>> model = nn.Sequential(*[nn.Linear(4, 4) for _ in range(4)])
        >>> clnn.utils.checkpoint.checkpoint_sequential(model, 2, clnn.ones(1, 4)).shape
        clnn.Size([1, 4])
    """
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if use_reentrant is None:
        warn("torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed explicitly. In version 2.9 we will raise an exception "
             f"if use_reentrant is not passed. {_ADVICE}")
        use_reentrant = True
    functions = list(functions.children()) if isinstance(functions, clnn.nn.Sequential) else list(functions)

    def run(part):
        def forward(x):
            for fn in part:
                x = fn(x)
            return x
        return forward
    size = max(1, len(functions) // segments)
    for start in range(0, size * (segments - 1), size):
        input = checkpoint(run(functions[start:start + size]), input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return run(functions[size * (segments - 1):])(input)


@contextlib.contextmanager
def set_checkpoint_early_stop(enable):
    """Context manager: whether second computations inside end early, whatever their calls say.

    Example::

        >>> with clnn.utils.checkpoint.set_checkpoint_early_stop(False):
        ...     y = clnn.utils.checkpoint.checkpoint(clnn.sin, clnn.zeros(1), use_reentrant=False)
        >>> y
        tensor([0.])
    """
    global _early_stop
    before, _early_stop = _early_stop, bool(enable)
    try:
        yield
    finally:
        _early_stop = before


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled):
    """Accepted: errors always name the tensors that differ."""
    yield


def get_device_states(*args):
    """(devices, states) of the generators of other devices than the CPU: none, as one generator serves all devices."""
    return [], []


def set_device_states(devices, states, *, device_type=None):
    """Nothing to restore: see :func:`get_device_states`."""


def noop_context_fn():
    """Two context managers that do nothing: the default of ``context_fn``."""
    return contextlib.nullcontext(), contextlib.nullcontext()


class CheckpointPolicy(enum.Enum):
    """What a policy of :func:`create_selective_checkpoint_contexts` may answer for an operator."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """What a policy is called with first: ``is_recompute`` tells the second computation from the first."""

    def __init__(self, *, is_recompute, op_output=None):
        self.is_recompute, self.op_output = is_recompute, op_output


def create_selective_checkpoint_contexts(policy_fn_or_list, allow_cache_entry_mutation=False):
    """Two context managers for ``context_fn`` of :func:`checkpoint`.

    PyTorch keeps the results of the operators that a policy names, to save time in backward. Here all are computed again: values and gradients are the same.

    Args:
        policy_fn_or_list: a list of operators to keep, or a function ``(context, op, *args, **kwargs) -> CheckpointPolicy``.
        allow_cache_entry_mutation: accepted.

    Example::

        >>> keep = lambda: clnn.utils.checkpoint.create_selective_checkpoint_contexts([clnn.ops.aten.mm.default])
        >>> x = clnn.ones(2, 2, requires_grad=True)
        >>> clnn.utils.checkpoint.checkpoint(lambda t: (t @ t).exp(), x, use_reentrant=False, context_fn=keep).shape
        clnn.Size([2, 2])
    """
    if not isinstance(policy_fn_or_list, list) and not callable(policy_fn_or_list):
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    return noop_context_fn()
