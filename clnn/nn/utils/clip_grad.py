"""Limiting gradients."""
import math
import warnings

import clnn
from clnn._tensor.multi import foreach_update, joint_norms
from clnn._tensor.tensor import Tensor

__all__ = ["clip_grad_norm_", "clip_grads_with_norm_", "get_total_norm", "clip_grad_value_", "clip_grad_norm"]


def _tensors(parameters):
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


def _grads(parameters):
    return [grad for p in _tensors(parameters) if (grad := p.grad) is not None]


def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The norm of all elements of several tensors, as if they were one vector: a 0-d tensor.

    Args:
        tensors: tensor or iterable of tensors.
        norm_type: p of the norm, or ``inf``. Default: 2.
        error_if_nonfinite: raise when the norm is infinite or NaN (waits for the device). Default: ``False``.

    Example::

        >>> nn.utils.get_total_norm([clnn.tensor([3.]), clnn.tensor([4.])])
        tensor(5.)
    """
    tensors = _tensors(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return clnn.tensor(0.0)
    device = tensors[0].device
    norms, rest = joint_norms(tensors, norm_type == math.inf) if norm_type in (2.0, math.inf) else (None, tensors)
    if rest:
        others = clnn.stack([t.detach().norm(norm_type).to(device) for t in rest])
        norms = others if norms is None else clnn.cat([norms, others])
    total = norms.norm(norm_type)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be clipped. "
                           "To disable this error and scale the gradients by the non-finite norm anyway, set "
                           "`error_if_nonfinite=False`")
    return total


def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """Multiply all gradients by ``min(1, max_norm / (total_norm + 1e-6))``, in place. Nothing is read back to the host.

    Example:
        >>> w = clnn.ones(2, requires_grad=True)
        >>> (w * clnn.tensor([3.0, 4.0])).sum().backward()
        >>> clnn.nn.utils.clip_grads_with_norm_([w], 1.0, clnn.tensor(5.0))
        >>> w.grad
        tensor([0.6000, 0.8000])
    """
    _scale(_grads(parameters), float(max_norm), total_norm)


def _scale(grads, max_norm, total):
    with clnn.no_grad():
        totals = {total._storage.device: total}                    # a copy on each device that has gradients
        for grad in grads:
            if grad._storage.device not in totals:
                totals[grad._storage.device] = total.to(grad.device)
        foreach_update(_clipped, [(grad, totals[grad._storage.device]) for grad in grads], dict(max_norm=max_norm), {})


def _clipped(grad, total, *, max_norm):
    return (grad * (max_norm / (total + 1e-6)).clamp(max=1.0),)


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scale all gradients, in place, so that their common norm is at most *max_norm*.

    Returns:
        The norm before scaling, a 0-d tensor.

    Example::

        >>> w = nn.Parameter(clnn.tensor([3., 4.])); w.grad = w.detach().clone()
        >>> nn.utils.clip_grad_norm_([w], 1.0)
        tensor(5.)
        >>> w.grad
        tensor([0.6000, 0.8000])
    """
    grads = _grads(parameters)
    total = get_total_norm(grads, norm_type, error_if_nonfinite, foreach)
    _scale(grads, float(max_norm), total)
    return total


def clip_grad_norm(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Deprecated name of :func:`clip_grad_norm_`."""
    warnings.warn("`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.", FutureWarning, stacklevel=2)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters, clip_value, foreach=None):
    """Limit every element of the gradients to ``[-clip_value, clip_value]``, in place.

    Example:
        >>> w = clnn.ones(2, requires_grad=True)
        >>> (w * clnn.tensor([3.0, -0.5])).sum().backward()
        >>> clnn.nn.utils.clip_grad_value_([w], 1.0)
        >>> w.grad
        tensor([ 1.0000, -0.5000])
    """
    clip_value = float(clip_value)
    with clnn.no_grad():
        foreach_update(_limited, [(grad, grad) for grad in _grads(parameters)], dict(low=-clip_value, high=clip_value), {})


def _limited(grad, _, *, low, high):
    return (grad.clamp(low, high),)
