"""Entry points of the engine: ``backward`` and ``grad``."""
from __future__ import annotations

from typing import NamedTuple

from ..core.warn import first_time, warn
from ..graph.node import Storage, constants
from ..runtime.device import Device
from . import later, passes, tape
from .tensor import Tensor, edge, empty, make


_CYCLE = ("Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient which can cause a memory leak. "
          "We recommend using autograd.grad when creating the graph to avoid this. If you have to use this function, make sure to reset the .grad fields "
          "of your parameters to None after use to break the cycle and avoid the leak.")


class GradientEdge(NamedTuple):
    """Where the gradient of a tensor arrives: node and output number."""

    node: tape.Node
    output_nr: int
    ownership_token: object = None


def get_gradient_edge(tensor) -> GradientEdge:
    """The place on the tape of a tensor that requires a gradient; :func:`backward` and :func:`grad` take it in place of the tensor.

    Example:
        >>> x = clnn.ones(2, requires_grad=True)
        >>> edge = clnn.autograd.graph.get_gradient_edge(x)
        >>> clnn.autograd.grad((x * 3).sum(), edge)
        (tensor([3., 3.]),)
    """
    at = edge(tensor)
    if at is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    node = at[0].shown()
    node.__dict__.setdefault("shapes", {})[at[1]] = (tensor.shape, tensor.dtype, tensor._home)
    return GradientEdge(node, at[1])


def _as_tuple(x):
    if x.__class__ is Tensor:
        return (x,)
    if isinstance(x, (Tensor, GradientEdge)) or hasattr(x, "_bearer"):
        return (x,)
    return tuple(x)


def _seed(t, g, i, batched):
    """The gradient to start with: given, or ones for a scalar."""
    if isinstance(t, GradientEdge):
        shape, dtype, home = t.node.__dict__.get("shapes", {}).get(t.output_nr) or (None, None, None)
        if shape is None:
            return _given(g)
    else:
        shape, dtype, home = t.shape, t.dtype, t._home
    if g is None:
        if shape.numel() != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        if not dtype.is_floating_point:
            raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {dtype}")
        if t.__class__ is Tensor and home.__class__ is Device:
            return _one(home, dtype, shape)
        return (t.detach() if isinstance(t, Tensor) else empty((), dtype, home)).new_ones(shape)
    if _given(g).shape != shape:
        if batched:
            raise RuntimeError(f"If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. The sizes of the "
                               f"remaining dimensions are expected to match the shape of corresponding output, but a mismatch was detected: "
                               f"grad_output[{i}] has a shape of {g.shape[1:]} and output[{i}] has a shape of {shape}. If you only want some tensors in "
                               "`grad_output` to be considered batched, consider using vmap.")
        raise RuntimeError(f"Mismatch in shape: grad_output[{i}] has a shape of {g.shape} and output[{i}] has a shape of {shape}.")
    if g.dtype.is_complex != dtype.is_complex:
        raise RuntimeError(f"For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: grad_output[{i}] has a "
                           f"dtype of {g.dtype} and output[{i}] has a dtype of {dtype}.")
    return g


def _one(device, dtype, shape):
    """A one of its own storage, without a launch."""
    buf = constants.get(("one", dtype, device))
    if buf is None:
        if device.recording is not None:                        # its memory would be a part of the recording
            return empty((), dtype, device).new_ones(shape)
        buf = constants["one", dtype, device] = empty((), dtype, device).new_ones(())._storage.buffer()
    return make(Storage(device, dtype.itemsize, buf), shape, dtype, 1)


def _given(g):
    if not isinstance(g, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
    return g


def _place(t):
    """Where the gradient of ``t`` arrives; None where it needs none."""
    if isinstance(t, GradientEdge):
        return t.node, t.output_nr
    if not isinstance(t, Tensor) and not hasattr(t, "_bearer"):
        raise RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {type(t).__name__}")
    return edge(t._bearer)


def _roots(outputs, grads, batched=0):
    roots, seeds = [], []
    for i, (t, g) in enumerate(zip(outputs, grads)):
        at = _place(t)
        if at is None:
            raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn")
        roots.append(at)
        seed = _seed(t, g, i, batched)
        seeds.append(t._bared(seed) if isinstance(t, Tensor) else seed)
    return roots, seeds


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None):
    """Sum the gradients of ``tensors`` into the ``.grad`` of the leaves they depend on.

    Args:
        tensors: Tensor or sequence of them; those with more than one element need a gradient.
        grad_tensors: gradients of the same shapes, or None.
        retain_graph: keep what was saved, for another backward (default: ``create_graph``).
        create_graph: record the backward pass itself.
        grad_variables: the old name of ``grad_tensors``.
        inputs: accumulate only into these tensors; those that are no leaves retain their gradient.

    Example:
        >>> x = clnn.ones(2, requires_grad=True)
        >>> clnn.autograd.backward([(x * 3).sum(), (x * 4).sum()])
        >>> x.grad
        tensor([7., 7.])
    """
    if grad_variables is not None:
        warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning)
        if grad_tensors is not None:
            raise RuntimeError("`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only use `grad_tensors`.")
        grad_tensors = grad_variables
    tensors = _as_tuple(tensors)
    grads = _as_tuple(grad_tensors) if grad_tensors is not None else (None,) * len(tensors)
    if len(grads) != len(tensors):
        raise RuntimeError(f"got {len(tensors)} tensors and {len(grads)} gradients")
    roots, seeds = _roots(tensors, grads)
    if not roots:
        return
    keep = create_graph if retain_graph is None else retain_graph
    if create_graph and first_time("create_graph"):
        warn(_CYCLE)
    if inputs is None:
        if create_graph:
            tape.run(roots, seeds, keep, True)
        else:
            passes.run(roots, seeds, keep)
        return
    inputs = _as_tuple(inputs)
    if not inputs:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    places = [_place(t) for t in inputs]
    for t, at in zip(inputs, places):
        if at is None or at[0].__class__ is not tape.AccumulateGrad and not isinstance(t, GradientEdge):
            t.retain_grad()
    tape.run(roots, seeds, keep, create_graph, places)


_UNUSED = "The differentiated Tensor at index {} appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior."


def _target(t):
    at = _place(t)
    if at is None:
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    return at


def _all_at_once(outputs, grads, count, keep, create_graph, places):
    """The gradients for ``count`` gradients of the outputs, which lie along the first dimension of each."""
    from .._vmap.batched import stripped, wrap
    from .._vmap.levels import entered
    with entered(count) as level:
        roots, seeds = _roots(outputs, [g if g is None else wrap(g, level) for g in grads], count)
        got = tape.run(roots, seeds, keep, create_graph, places, accumulate=False)
        return [None if g is None else stripped(g, level, count) for g in got]


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True, allow_unused=None,
         is_grads_batched=False, materialize_grads=False):
    """Gradients of ``outputs`` with respect to ``inputs``, as a tuple; nothing is accumulated.

    Example:
        >>> x = clnn.tensor(3.0, requires_grad=True)
        >>> clnn.autograd.grad(x * x, x)
        (tensor(6.),)
    """
    if not only_inputs:
        warn("only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for other parts of the graph, please use "
             "torch.autograd.backward.", FutureWarning)
    outputs, inputs = _as_tuple(outputs), _as_tuple(inputs)
    grads = _as_tuple(grad_outputs) if grad_outputs is not None else (None,) * len(outputs)
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False.")
    if not inputs:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if not outputs and not (allow_unused or materialize_grads):
        raise RuntimeError(_UNUSED.format(0))
    if len(grads) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(grads)} gradients")
    keep = create_graph if retain_graph is None else retain_graph
    if not is_grads_batched:
        roots, seeds = _roots(outputs, grads)
        places = [_target(t) for t in inputs]
        got = tape.run(roots, seeds, keep, True, places, accumulate=False) if create_graph else passes.run(roots, seeds, keep, places)
    else:
        got = _all_at_once(outputs, grads, _given(grads[0]).shape[0], keep, create_graph, [_target(t) for t in inputs])
    allow = allow_unused if allow_unused is not None else materialize_grads
    for i, g in enumerate(got):
        if g is not None:
            got[i] = inputs[i]._dressed(g) if not isinstance(inputs[i], GradientEdge) else g
        else:
            if materialize_grads:
                if isinstance(inputs[i], GradientEdge):
                    raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
                got[i] = later.zeros_like(inputs[i], requires_grad=create_graph)
            elif not allow:
                raise RuntimeError(_UNUSED.format(i))
    return tuple(got)


later.backward = backward
