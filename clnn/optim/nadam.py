"""Adam with Nesterov momentum."""

from clnn.optim._functional import functional
from clnn.optim._moments import decay_kind, moments, plus_quotient
from clnn.optim._rule import RuleOptimizer, check_betas, check_common, check_option, hyper


def nadam_rule(p, g, m, v, *, correction2, eps, grad_step, mean_step, **options):
    """One step; the look-ahead is split into a part along the gradient and a part along its mean. `options` are those of `moments`."""
    p, g, m, v = moments(p, g, m, v, **options)
    denom = (v / correction2).sqrt() + eps
    return plus_quotient(plus_quotient(p, g, denom, grad_step), m, denom, mean_step), m, v


class NAdam(RuleOptimizer):
    r"""Adam whose momentum looks one step ahead, with a momentum that grows along a schedule.

    With :math:`\mu_t = \beta_1 (1 - 0.5 \cdot 0.96^{t\psi})`:
    :math:`\hat m = \mu_{t+1} m / (1-\prod^{t+1}\mu) + (1-\mu_t) g / (1-\prod^{t}\mu)` and
    :math:`p \leftarrow p - \mathrm{lr}\,\hat m / (\sqrt{\hat v} + \epsilon)`.

    Args:
        params, lr, betas, eps, weight_decay, maximize: as for `Adam`.
        momentum_decay: :math:`\psi`. decoupled_weight_decay: shrink the parameters as `AdamW` does.
        foreach, capturable, differentiable: accepted as in PyTorch.

    Source: Dozat, "Incorporating Nesterov Momentum into Adam", 2016.

    Example:
        >>> w = clnn.tensor([[1.0, -2.0]], requires_grad=True)
        >>> optimizer = clnn.optim.NAdam([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([[ 0.8944, -1.8944]], requires_grad=True)
    """

    rule = staticmethod(nadam_rule)
    counters = {"step": 0.0, "mu_product": 1.0}

    def __init__(self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, momentum_decay=4e-3, decoupled_weight_decay=False, *,
                 foreach=None, maximize=False, capturable=False, differentiable=False):
        check_common(lr, eps, weight_decay)
        check_betas(betas)
        check_option(momentum_decay >= 0.0, "momentum_decay value", momentum_decay)
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay,
                                      decoupled_weight_decay=decoupled_weight_decay, maximize=maximize, foreach=foreach,
                                      capturable=capturable, differentiable=differentiable))

    def slots(self, group):
        """Both moments."""
        return ("exp_avg", "exp_avg_sq")

    def plan(self, group, fresh, step, mu_product):
        """The scalars and flags of step `step + 1`."""
        step += 1
        lr, decay = hyper(group["lr"]), hyper(group["weight_decay"])
        beta1, beta2 = (hyper(b) for b in group["betas"])
        mu, mu_next = (beta1 * (1.0 - 0.5 * 0.96 ** (t * group["momentum_decay"])) for t in (step, step + 1))
        mu_product *= mu
        scalars = dict(weight_decay=decay, shrink=1 - lr * decay, gain1=1 - beta1, beta2=beta2, gain2=1 - beta2,
                       correction2=1 - beta2 ** step, eps=group["eps"], grad_step=-lr * (1 - mu) / (1 - mu_product),
                       mean_step=-lr * mu_next / (1 - mu_product * mu_next))
        return scalars, dict(maximize=group["maximize"], decay=decay_kind(group, decay)), dict(step=step, mu_product=mu_product)


nadam = functional(NAdam, "exp_avg exp_avg_sq mu_product step", lambda params, grads, exp_avgs, exp_avg_sqs, mu_products, state_steps, decoupled_weight_decay=False,
    foreach=None, capturable=False, differentiable=False, has_complex=False, maximize=False, *, beta1, beta2, lr, weight_decay, momentum_decay, eps: None)
