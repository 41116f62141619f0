"""Adam and its variant with decoupled weight decay."""

from clnn.optim._functional import functional
from clnn.optim._moments import decay_kind, moments, plus_quotient
from clnn.optim._rule import RuleOptimizer, check_betas, check_common, check_tensors, hyper


def adam_rule(p, g, m, v, vmax=None, *, down, root_correction2, eps, **options):
    """One step; `options` are those of `moments`."""
    p, g, m, v = moments(p, g, m, v, **options)
    if vmax is None:
        return plus_quotient(p, m, v.sqrt() / root_correction2 + eps, down), m, v
    vmax = vmax.maximum(v)
    return plus_quotient(p, m, vmax.sqrt() / root_correction2 + eps, down), m, v, vmax


class Adam(RuleOptimizer):
    r"""Adam: steps scaled by running estimates of the gradient's mean and square.

    :math:`m \leftarrow \beta_1 m + (1-\beta_1) g`, :math:`v \leftarrow \beta_2 v + (1-\beta_2) g^2`,
    :math:`p \leftarrow p - \mathrm{lr}\; \hat m / (\sqrt{\hat v} + \epsilon)` with
    :math:`\hat m = m/(1-\beta_1^t)` and :math:`\hat v = v/(1-\beta_2^t)`.

    Args:
        params: tensors, `(name, tensor)` pairs, or group dicts.
        lr: learning rate. betas: :math:`(\beta_1, \beta_2)`. eps: :math:`\epsilon`.
        weight_decay: L2 penalty, added to the gradient unless `decoupled_weight_decay`.
        amsgrad: divide by the largest :math:`\hat v` seen so far.
        maximize: climb instead of descend. decoupled_weight_decay: shrink the parameters as `AdamW` does.
        foreach, capturable, differentiable, fused: accepted as in PyTorch.

    Example::

        >>> w = clnn.ones(2, requires_grad=True)
        >>> opt = clnn.optim.Adam([w], lr=0.25)
        >>> (w * w).sum().backward()
        >>> opt.step()
        >>> w
        tensor([0.7500, 0.7500], requires_grad=True)

    Source: Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015; Reddi et al., 2018 (AMSGrad).
    """

    rule = staticmethod(adam_rule)

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, *, foreach=None, maximize=False,
                 capturable=False, differentiable=False, fused=None, decoupled_weight_decay=False):
        check_common(lr, eps, weight_decay)
        check_betas(betas)
        check_tensors(lr, betas, foreach, capturable)
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, amsgrad=amsgrad, maximize=maximize,
                                      foreach=foreach, capturable=capturable, differentiable=differentiable, fused=fused,
                                      decoupled_weight_decay=decoupled_weight_decay))

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in (("amsgrad", False), ("maximize", False), ("foreach", None), ("capturable", False), ("differentiable", False),
                                ("fused", None), ("decoupled_weight_decay", isinstance(self, AdamW))):
                group.setdefault(name, value)

    def slots(self, group):
        """Both moments, and the largest second moment for AMSGrad."""
        return ("exp_avg", "exp_avg_sq", "max_exp_avg_sq") if group["amsgrad"] else ("exp_avg", "exp_avg_sq")

    def plan(self, group, fresh, step):
        """The scalars and flags of step `step + 1`."""
        step += 1
        lr, decay = hyper(group["lr"]), hyper(group["weight_decay"])
        beta1, beta2 = (hyper(b) for b in group["betas"])
        scalars = dict(down=-lr / (1 - beta1 ** step), shrink=1 - lr * decay, weight_decay=decay, gain1=1 - beta1, beta2=beta2,
                       gain2=1 - beta2, root_correction2=(1 - beta2 ** step) ** 0.5, eps=group["eps"])
        return scalars, dict(maximize=group["maximize"], decay=decay_kind(group, decay)), dict(step=step)


class AdamW(Adam):
    r"""Adam with decoupled weight decay: :math:`p \leftarrow (1 - \mathrm{lr}\,\lambda)\, p` before the Adam step.

    Args:
        params, lr, betas, eps, amsgrad, maximize: as for `Adam`.
        weight_decay: :math:`\lambda`, 0.01 by default.
        foreach, capturable, differentiable, fused: accepted as in PyTorch.

    Example::

        >>> w = clnn.ones(2, requires_grad=True)
        >>> opt = clnn.optim.AdamW([w], lr=0.25, weight_decay=0.1)
        >>> (w * w).sum().backward()
        >>> opt.step()
        >>> w
        tensor([0.7250, 0.7250], requires_grad=True)

    Source: Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2019.
    """

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, *, maximize=False, foreach=None,
                 capturable=False, differentiable=False, fused=None):
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize, capturable=capturable,
                         differentiable=differentiable, fused=fused, decoupled_weight_decay=True)


AdamW.__module__ = "clnn.optim.adamw"                # PyTorch's place of it


adam = functional(Adam, "exp_avg exp_avg_sq max_exp_avg_sq step", lambda params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, foreach=None,
    capturable=False, differentiable=False, fused=None, grad_scale=None, found_inf=None, has_complex=False, decoupled_weight_decay=False, *, amsgrad, beta1, beta2,
    lr, weight_decay, eps, maximize: None)
adamw = functional(AdamW, "exp_avg exp_avg_sq max_exp_avg_sq step", lambda params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, foreach=None,
    capturable=False, differentiable=False, fused=None, grad_scale=None, found_inf=None, has_complex=False, *, amsgrad, beta1, beta2, lr, weight_decay, eps,
    maximize: None, decoupled_weight_decay=True)
