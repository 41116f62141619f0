"""Entry points of the engine: ``backward`` and ``grad``."""
from __future__ import annotations

from collections.abc import Iterable

from . import tape
from .tensor import Tensor, edge


def _as_tuple(x):
    return tuple(x) if isinstance(x, Iterable) and not isinstance(x, Tensor) else (x,)


def _seed(t, g):
    """The gradient to start with: given, or ones for a scalar."""
    if g is None:
        if t._numel != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        if not t.dtype.is_floating_point:
            raise RuntimeError(f"grad can be computed only for real scalar outputs but got {t.dtype}")
        return t.detach().new_ones(t.shape)
    if not isinstance(g, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
    if g.shape != t.shape:
        raise RuntimeError(f"Mismatch in shape: grad_output[0] has a shape of {g.shape} and output[0] has a shape of {t.shape}.")
    if g.dtype.is_complex != t.dtype.is_complex:
        raise RuntimeError(f"For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: grad_output[0] has a "
                           f"dtype of {g.dtype} and output[0] has a dtype of {t.dtype}.")
    return g


def _roots(outputs, grads):
    roots, seeds = [], []
    for i, (t, g) in enumerate(zip(outputs, grads)):
        at = edge(t)
        if at is None:
            raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn")
        roots.append(at)
        seeds.append(_seed(t, g))
    return roots, seeds


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, inputs=None):
    """Sum the gradients of ``tensors`` into the ``.grad`` of the leaves they depend on.

    Args:
        tensors: Tensor or sequence of them; those with more than one element need a gradient.
        grad_tensors: gradients of the same shapes, or None.
        retain_graph: keep what was saved, for another backward (default: ``create_graph``).
        create_graph: record the backward pass itself.
        inputs: accumulate only into these leaves.
    """
    tensors = _as_tuple(tensors)
    grads = _as_tuple(grad_tensors) if grad_tensors is not None else (None,) * len(tensors)
    if len(grads) != len(tensors):
        raise RuntimeError(f"got {len(tensors)} tensors and {len(grads)} gradients")
    roots, seeds = _roots(tensors, grads)
    keep = create_graph if retain_graph is None else retain_graph
    if inputs is None:
        tape.run(roots, seeds, keep, create_graph)
        return
    inputs = _as_tuple(inputs)
    if not inputs:
        raise RuntimeError("'inputs' argument to 'backward' cannot be empty.")
    got = tape.run(roots, seeds, keep, create_graph, [_target(t) for t in inputs], True, accumulate=False)
    for t, g in zip(inputs, got):
        tape._accumulate(t, t._dressed(g), create_graph)


def _target(t):
    at = edge(t._bearer)
    if at is None:
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    return at


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True, allow_unused=None,
         is_grads_batched=False, materialize_grads=False):
    """Gradients of ``outputs`` with respect to ``inputs``, as a tuple; nothing is accumulated.

    Example:
        >>> x = clnn.tensor(3.0, requires_grad=True)
        >>> clnn.autograd.grad(x * x, x)
        (tensor(6.),)
    """
    outputs, inputs = _as_tuple(outputs), _as_tuple(inputs)
    grads = _as_tuple(grad_outputs) if grad_outputs is not None else (None,) * len(outputs)
    if is_grads_batched:
        rows = [grad(outputs, inputs, [g[i] for g in grads], True, create_graph, allow_unused=allow_unused)
                for i in range(grads[0].shape[0])]
        import clnn
        return tuple(clnn.stack(col) for col in zip(*rows))
    if not outputs:
        return (None,) * len(inputs)
    roots, seeds = _roots(outputs, grads)
    keep = create_graph if retain_graph is None else retain_graph
    got = tape.run(roots, seeds, keep, create_graph, [_target(t) for t in inputs], accumulate=False)
    allow = allow_unused if allow_unused is not None else materialize_grads
    for i, g in enumerate(got):
        if g is not None:
            got[i] = inputs[i]._dressed(g)
        else:
            if materialize_grads:
                got[i] = inputs[i].new_zeros(inputs[i].shape)
            elif not allow:
                raise RuntimeError(f"The differentiated Tensor at index {i} appears to not have been used in the graph. Set allow_unused=True "
                                   "if this is the desired behavior.")
    return tuple(got)
