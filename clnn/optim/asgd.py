"""Averaged stochastic gradient descent."""

from clnn.optim._counters import counter
from clnn.optim._functional import functional
from clnn.optim._moments import plus
from clnn.optim._rule import RuleOptimizer, check_common, number


def asgd_rule(p, g, ax, *, down, shrink, weight_decay, mu, maximize, decay, average):
    """One step; before averaging starts, the average is the parameter itself."""
    if maximize:
        g = -g
    if decay:
        g = plus(g, p, weight_decay)
    p = plus(p * shrink, g, down)
    return p, ax + (p - ax) * mu if average else p


class ASGD(RuleOptimizer):
    r"""Gradient descent that also keeps the average of its iterates, in the state entry `ax`.

    :math:`\eta_t = \mathrm{lr} / (1 + \lambda\,\mathrm{lr}\, t)^\alpha`, :math:`p \leftarrow (1-\lambda\eta) p - \eta g`, and the average
    moves by :math:`\mu = 1/\max(1, t - t_0)`.

    Args:
        params, lr, weight_decay, maximize: as for `Adam`. lambd: :math:`\lambda`. alpha: :math:`\alpha`.
        t0: step at which averaging starts.
        foreach, differentiable, capturable: accepted as in PyTorch.

    Source: Polyak and Juditsky, "Acceleration of stochastic approximation by averaging", 1992.

    Example:
        >>> w = clnn.tensor([[1.0, -2.0]], requires_grad=True)
        >>> optimizer = clnn.optim.ASGD([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([[ 0.8000, -1.6000]], requires_grad=True)
    """

    rule = staticmethod(asgd_rule)
    counters = {"step": 0.0, "eta": 0.0, "mu": 1.0}

    def __init__(self, params, lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0, foreach=None, maximize=False, differentiable=False,
                 capturable=False):
        check_common(lr, weight_decay=weight_decay)
        super().__init__(params, dict(lr=lr, lambd=lambd, alpha=alpha, t0=t0, weight_decay=weight_decay, foreach=foreach, maximize=maximize,
                                      differentiable=differentiable, capturable=capturable))

    def ensure_state(self, p, group):
        """As in the base; `eta` starts at the learning rate of the group."""
        if "eta" not in self.state[p]:
            self.state[p].update(step=counter(0.0), eta=counter(number(group["lr"])), mu=counter(1.0))
        return super().ensure_state(p, group)

    def slots(self, group):
        """The average."""
        return ("ax",)

    def plan(self, group, fresh, step, eta, mu):
        """The scalars of step `step + 1`, and eta and mu of the one after it."""
        step += 1
        lr, lambd, decay = number(group["lr"]), group["lambd"], number(group["weight_decay"])
        scalars = dict(down=-eta, shrink=1 - lambd * eta, weight_decay=decay, mu=mu)
        flags = dict(maximize=group["maximize"], decay=decay != 0, average=mu != 1)
        return scalars, flags, dict(step=step, eta=lr / (1 + lambd * lr * step) ** group["alpha"], mu=1 / max(1.0, step - group["t0"]))


asgd = functional(ASGD, "ax mu eta step", lambda params, grads, axs, mus, etas, state_steps, foreach=None, maximize=False, differentiable=False, capturable=False,
    has_complex=False, *, lambd, lr, t0, alpha, weight_decay: None)
