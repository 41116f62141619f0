"""Gradients of every sample, as private training reads them: under vmap each sample has the parameters to itself, and autograd keeps its gradients apart."""
import functools

from clnn.nn.modules.module import Module
from clnn.utils._pytree import tree_leaves, tree_map


def _batch_size(values, at):
    sizes = list(dict.fromkeys(v.shape[at] for v in tree_leaves(values) if hasattr(v, "dim") and v.dim() > at))
    if not sizes:
        raise RuntimeError("Unable to find a tensor in the passed args and kwargs. They may not be pytree-able and so ExpandedWeights cannot compute the "
                           "batch size from the inputs. Please specify it explicitly")
    if len(sizes) > 1:
        raise RuntimeError(f"When computing batch size, found at least one input with batch size {sizes[0]} and one with batch size {sizes[1]}. Please "
                           "specify it explicitly using the batch size kwarg in call_for_per_sample_grads")
    return sizes[0]


def _of_each_sample(weight, count, scale):
    """``count`` copies of ``weight`` in one memory; their gradients become its ``grad_sample``."""
    copies = weight.detach().expand(count, *weight.shape).requires_grad_()

    def keep(copies):
        found, copies.grad = copies.grad * scale if scale != 1 else copies.grad, None
        before = getattr(weight, "grad_sample", None)
        weight.grad_sample = found if before is None else before + found
    copies.register_post_accumulate_grad_hook(keep)
    return copies


def _check(module, batch_size, loss_reduction):
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}")
    if not isinstance(module, Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if not (batch_size is None or isinstance(batch_size, int)):
        raise RuntimeError(f"Batch size passed must be None or an integer, got {type(batch_size).__name__}")
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    if any(getattr(p, "grad_sample", None) is not None for p in module.parameters()):
        raise RuntimeError("gradients of samples are summed, which will be incorrect for several calls: set the grad_sample of all parameters to None before")


def call_for_per_sample_grads(module, *, batch_size=None, loss_reduction="sum", batch_first=True):
    """A function that calls ``module``; backward through its result sets ``grad_sample`` of the parameters, (N, *) each, and leaves ``grad`` alone.

    Args:
        module: treats the samples of a batch one by one (no batch normalisation in training).
        batch_size: N; None takes it from the tensors that are passed.
        loss_reduction: "mean" multiplies the gradients by N, as the loss divides by it.
        batch_first: the batch is dimension 0 of inputs and outputs, else 1.

    Example:
        >>> layer = nn.Linear(2, 1)
        >>> clnn.nn.utils._per_sample_grad.call_for_per_sample_grads(layer)(clnn.ones(3, 2)).sum().backward()
        >>> layer.weight.grad_sample.shape, layer.weight.grad
        (clnn.Size([3, 1, 2]), None)
    """
    _check(module, batch_size, loss_reduction)
    at = 0 if batch_first else 1

    @functools.wraps(module.forward)
    def wrapper(*args, **kwargs):
        from clnn.func import functional_call, vmap
        count = batch_size or _batch_size((args, kwargs), at)
        scale = count if loss_reduction == "mean" else 1
        weights = {name: _of_each_sample(p, count, scale) for name, p in module.named_parameters() if p.requires_grad}

        def tensors(fn, values):
            return tree_map(lambda v: fn(v) if hasattr(v, "dim") and v.dim() > at - 1 else v, values)

        def one(weights, args, kwargs):
            got = functional_call(module, weights, *tensors(lambda v: v.unsqueeze(at), (args, kwargs)))
            return tensors(lambda v: v.squeeze(at), got)
        places = tree_map(lambda v: at if hasattr(v, "dim") and v.dim() > at else None, (args, kwargs))
        return vmap(one, in_dims=(0, *places), out_dims=at, randomness="different")(weights, args, kwargs)
    return wrapper
