"""Adadelta."""

from clnn.optim._functional import functional
from clnn.optim._moments import plus, plus_product
from clnn.optim._rule import RuleOptimizer, check_common, check_option, hyper


def adadelta_rule(p, g, square, delta, *, down, rho, gain, eps, weight_decay, maximize, decay):
    """One step."""
    if maximize:
        g = -g
    if decay:
        g = plus(g, p, weight_decay)
    square = plus_product(square * rho, g, g, gain)
    move = (delta + eps).sqrt() / (square + eps).sqrt() * g
    return plus(p, move, down), square, plus_product(delta * rho, move, move, gain)


class Adadelta(RuleOptimizer):
    r"""Steps scaled by the ratio of the running sizes of past steps and of gradients.

    :math:`v \leftarrow \rho v + (1-\rho) g^2`, :math:`\Delta = \sqrt{u+\epsilon}\,/\sqrt{v+\epsilon}\; g`,
    :math:`u \leftarrow \rho u + (1-\rho)\Delta^2`, :math:`p \leftarrow p - \mathrm{lr}\,\Delta`.

    Args:
        params, lr, eps, weight_decay, maximize: as for `Adam`. rho: :math:`\rho`, in [0, 1].
        foreach, capturable, differentiable: accepted as in PyTorch.

    Source: Zeiler, "ADADELTA: An Adaptive Learning Rate Method", 2012.

    Example:
        >>> w = clnn.tensor([[1.0, -2.0]], requires_grad=True)
        >>> optimizer = clnn.optim.Adadelta([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([[ 0.9997, -1.9997]], requires_grad=True)
    """

    rule = staticmethod(adadelta_rule)

    def __init__(self, params, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0, foreach=None, *, capturable=False, maximize=False,
                 differentiable=False):
        check_common(lr, eps, weight_decay)
        check_option(0.0 <= rho <= 1.0, "rho value", rho)
        super().__init__(params, dict(lr=lr, rho=rho, eps=eps, weight_decay=weight_decay, maximize=maximize, capturable=capturable,
                                      foreach=foreach, differentiable=differentiable))

    def slots(self, group):
        """Running squares of gradients and of steps."""
        return ("square_avg", "acc_delta")

    def plan(self, group, fresh, step):
        """The scalars and flags of step `step + 1`."""
        decay, rho = hyper(group["weight_decay"]), group["rho"]
        scalars = dict(down=-hyper(group["lr"]), rho=rho, gain=1 - rho, eps=group["eps"], weight_decay=decay)
        return scalars, dict(maximize=group["maximize"], decay=decay != 0), dict(step=step + 1)


adadelta = functional(Adadelta, "square_avg acc_delta step", lambda params, grads, square_avgs, acc_deltas, state_steps, capturable=False, foreach=None,
    differentiable=False, has_complex=False, *, lr, rho, eps, weight_decay, maximize: None)
