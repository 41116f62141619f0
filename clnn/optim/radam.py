"""Rectified Adam."""

from clnn.optim._functional import functional
from clnn.optim._moments import decay_kind, moments
from clnn.optim._rule import RuleOptimizer, check_betas, check_common, hyper


def radam_rule(p, g, m, v, *, eps, correction1, lr, root, rectify, adaptive, **options):
    """One step; without `adaptive` the second moment is still too uncertain to divide by. `options` are those of `moments`."""
    p, g, m, v = moments(p, g, m, v, **options)
    move = m / correction1 * lr
    if adaptive:
        move = move * (root / (v.sqrt() + eps)) * rectify
    return p - move, m, v


class RAdam(RuleOptimizer):
    r"""Adam with a variance-rectified warm-up.

    With :math:`\rho_\infty = 2/(1-\beta_2) - 1` and :math:`\rho_t = \rho_\infty - 2 t \beta_2^t / (1-\beta_2^t)`, a step divides by
    :math:`\sqrt{\hat v}` only once :math:`\rho_t > 5`, scaled by
    :math:`\sqrt{\frac{(\rho_t-4)(\rho_t-2)\rho_\infty}{(\rho_\infty-4)(\rho_\infty-2)\rho_t}}`.

    Args:
        params, lr, betas, eps, weight_decay, maximize: as for `Adam`.
        decoupled_weight_decay: shrink the parameters as `AdamW` does.
        foreach, capturable, differentiable: accepted as in PyTorch.

    Source: Liu et al., "On the Variance of the Adaptive Learning Rate and Beyond", 2020.

    Example:
        >>> w = clnn.tensor([[1.0, -2.0]], requires_grad=True)
        >>> optimizer = clnn.optim.RAdam([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([[ 0.8000, -1.6000]], requires_grad=True)
    """

    rule = staticmethod(radam_rule)

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, decoupled_weight_decay=False, *, foreach=None,
                 maximize=False, capturable=False, differentiable=False):
        check_common(lr, eps, weight_decay)
        check_betas(betas)
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, maximize=maximize, foreach=foreach,
                                      capturable=capturable, decoupled_weight_decay=decoupled_weight_decay, differentiable=differentiable))

    def slots(self, group):
        """Both moments."""
        return ("exp_avg", "exp_avg_sq")

    def plan(self, group, fresh, step):
        """The scalars and flags of step `step + 1`."""
        step += 1
        lr, decay = hyper(group["lr"]), hyper(group["weight_decay"])
        beta1, beta2 = (hyper(b) for b in group["betas"])
        correction2 = 1 - beta2 ** step
        limit = 2 / (1 - beta2) - 1
        length = limit - 2 * step * beta2 ** step / correction2
        adaptive = length > 5.0
        rectify = ((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)) ** 0.5 if adaptive else 1.0
        scalars = dict(weight_decay=decay, shrink=1 - lr * decay, gain1=1 - beta1, beta2=beta2, gain2=1 - beta2, eps=group["eps"],
                       correction1=1 - beta1 ** step, lr=lr, rectify=rectify, root=correction2 ** 0.5)
        return scalars, dict(maximize=group["maximize"], decay=decay_kind(group, decay), adaptive=adaptive), dict(step=step)


radam = functional(RAdam, "exp_avg exp_avg_sq step", lambda params, grads, exp_avgs, exp_avg_sqs, state_steps, decoupled_weight_decay=False, foreach=None,
    differentiable=False, capturable=False, has_complex=False, maximize=False, *, beta1, beta2, lr, weight_decay, eps: None)
