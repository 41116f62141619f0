"""Adamax."""

from clnn.optim._functional import functional
from clnn.optim._moments import plus, plus_quotient, towards
from clnn.optim._rule import RuleOptimizer, check_betas, check_common, hyper


def adamax_rule(p, g, m, u, *, weight_decay, gain1, beta2, eps, down, maximize, decay):
    """One step."""
    if maximize:
        g = -g
    if decay:
        g = plus(g, p, weight_decay)
    m = towards(m, g, gain1)
    u = (u * beta2).maximum(g.abs() + eps)
    return plus_quotient(p, m, u, down), m, u


class Adamax(RuleOptimizer):
    r"""Adam with the infinity norm in place of the second moment.

    :math:`u \leftarrow \max(\beta_2 u,\ |g| + \epsilon)`, :math:`p \leftarrow p - \frac{\mathrm{lr}}{1-\beta_1^t}\, m / u`.

    Args:
        params, lr, betas, eps, weight_decay, maximize: as for `Adam`.
        foreach, differentiable, capturable: accepted as in PyTorch.

    Source: Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015, section 7.

    Example:
        >>> w = clnn.tensor([[1.0, -2.0]], requires_grad=True)
        >>> optimizer = clnn.optim.Adamax([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([[ 0.9000, -1.9000]], requires_grad=True)
    """

    rule = staticmethod(adamax_rule)

    def __init__(self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, foreach=None, *, maximize=False, differentiable=False,
                 capturable=False):
        check_common(lr, eps, weight_decay)
        check_betas(betas)
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, foreach=foreach, maximize=maximize,
                                      differentiable=differentiable, capturable=capturable))

    def slots(self, group):
        """The mean and the decaying maximum."""
        return ("exp_avg", "exp_inf")

    def plan(self, group, fresh, step):
        """The scalars and flags of step `step + 1`."""
        step += 1
        decay = hyper(group["weight_decay"])
        beta1, beta2 = (hyper(b) for b in group["betas"])
        scalars = dict(weight_decay=decay, gain1=1 - beta1, beta2=beta2, eps=group["eps"],
                       down=-hyper(group["lr"]) / (1 - beta1 ** step))
        return scalars, dict(maximize=group["maximize"], decay=decay != 0), dict(step=step)


adamax = functional(Adamax, "exp_avg exp_inf step", lambda params, grads, exp_avgs, exp_infs, state_steps, foreach=None, maximize=False, differentiable=False,
    capturable=False, has_complex=False, *, eps, beta1, beta2, lr, weight_decay: None)
