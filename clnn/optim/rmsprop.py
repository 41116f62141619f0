"""RMSprop."""

from clnn.optim._functional import functional
from clnn.optim._moments import plus, plus_product, plus_quotient, towards
from clnn.optim._rule import RuleOptimizer, check_common, check_option, hyper


def rmsprop_rule(p, g, square, *more, down, alpha, gain, eps, weight_decay, momentum, maximize, decay, has_momentum, centered):
    """One step; `more` holds the momentum buffer and the running mean, as far as they are used."""
    if maximize:
        g = -g
    if decay:
        g = plus(g, p, weight_decay)
    square = plus_product(square * alpha, g, g, gain)
    out = [square]
    if centered:
        mean = towards(more[-1], g, gain)
        root = plus_product(square, mean, mean, -1).sqrt()
    else:
        root = square.sqrt()
    root = root + eps
    if has_momentum:
        move = plus_quotient(more[0] * momentum, g, root, 1)
        out.append(move)
        p = plus(p, move, down)
    else:
        p = plus_quotient(p, g, root, down)
    if centered:
        out.append(mean)
    return p, *out


class RMSprop(RuleOptimizer):
    r"""Steps divided by the root of a running mean of squared gradients.

    :math:`v \leftarrow \alpha v + (1-\alpha) g^2`, :math:`p \leftarrow p - \mathrm{lr}\; g/(\sqrt v + \epsilon)`; `centered` subtracts the
    squared running mean of :math:`g` from :math:`v`, and `momentum` accumulates the steps.

    Args:
        params, lr, eps, weight_decay, maximize: as for `Adam`. alpha: :math:`\alpha`. momentum: momentum factor.
        centered: divide by an estimate of the standard deviation.
        capturable, foreach, differentiable: accepted as in PyTorch.

    Source: Tieleman and Hinton, Coursera lecture 6.5, 2012; Graves, 2013 (centered).

    Example:
        >>> w = clnn.tensor([[1.0, -2.0]], requires_grad=True)
        >>> optimizer = clnn.optim.RMSprop([w], lr=0.01)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([[ 0.9000, -1.9000]], requires_grad=True)
    """

    rule = staticmethod(rmsprop_rule)

    def __init__(self, params, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False, capturable=False, foreach=None,
                 maximize=False, differentiable=False):
        check_common(lr, eps, weight_decay)
        check_option(momentum >= 0.0, "momentum value", momentum)
        check_option(alpha >= 0.0, "alpha value", alpha)
        super().__init__(params, dict(lr=lr, momentum=momentum, alpha=alpha, eps=eps, centered=centered, weight_decay=weight_decay,
                                      capturable=capturable, foreach=foreach, maximize=maximize, differentiable=differentiable))

    def slots(self, group):
        """The running square, the momentum buffer and the running mean, as far as they are used."""
        return ("square_avg",) + (("momentum_buffer",) if group["momentum"] > 0 else ()) + (("grad_avg",) if group["centered"] else ())

    def plan(self, group, fresh, step):
        """The scalars and flags of step `step + 1`."""
        decay, alpha = hyper(group["weight_decay"]), group["alpha"]
        scalars = dict(down=-hyper(group["lr"]), alpha=alpha, gain=1 - alpha, eps=group["eps"], weight_decay=decay, momentum=group["momentum"])
        flags = dict(maximize=group["maximize"], decay=decay != 0, has_momentum=group["momentum"] > 0, centered=group["centered"])
        return scalars, flags, dict(step=step + 1)


rmsprop = functional(RMSprop, "square_avg grad_avg momentum_buffer step", lambda params, grads, square_avgs, grad_avgs, momentum_buffer_list, state_steps,
    foreach=None, maximize=False, differentiable=False, capturable=False, has_complex=False, *, lr, alpha, eps, weight_decay, momentum, centered: None)
