"""Adagrad."""

from clnn.optim._counters import advance, count_of
from clnn.optim._functional import functional
from clnn.optim._moments import plus, plus_product, plus_quotient
from clnn.optim._rule import RuleOptimizer, check_common, check_option, full_like, hyper, number
from clnn.optim._sparse import add_rows, rows_at


def adagrad_rule(p, g, total, *, down, eps, weight_decay, maximize, decay):
    """One step."""
    if maximize:
        g = -g
    if decay:
        g = plus(g, p, weight_decay)
    total = plus_product(total, g, g, 1)
    return plus_quotient(p, g, total.sqrt() + eps, down), total


class Adagrad(RuleOptimizer):
    r"""Steps divided by the root of the sum of all squared gradients.

    :math:`s \leftarrow s + g^2`, :math:`p \leftarrow p - \frac{\mathrm{lr}}{1+(t-1)\eta}\; g / (\sqrt s + \epsilon)`.

    Args:
        params, lr, eps, weight_decay, maximize: as for `Adam`. lr_decay: :math:`\eta`.
        initial_accumulator_value: first value of :math:`s`.
        foreach, differentiable, fused: accepted as in PyTorch.

    Source: Duchi, Hazan and Singer, "Adaptive Subgradient Methods", 2011.

    Example:
        >>> w = clnn.tensor([[1.0, -2.0]], requires_grad=True)
        >>> optimizer = clnn.optim.Adagrad([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([[ 0.9000, -1.9000]], requires_grad=True)
    """

    rule = staticmethod(adagrad_rule)

    def __init__(self, params, lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10, foreach=None, *, maximize=False,
                 differentiable=False, fused=None):
        check_common(lr, eps, weight_decay)
        check_option(lr_decay >= 0.0, "lr_decay value", lr_decay)
        check_option(initial_accumulator_value >= 0.0, "initial_accumulator_value value", initial_accumulator_value)
        super().__init__(params, dict(lr=lr, lr_decay=lr_decay, eps=eps, weight_decay=weight_decay,
                                      initial_accumulator_value=initial_accumulator_value, foreach=foreach, maximize=maximize,
                                      differentiable=differentiable, fused=fused))
        for group in self.param_groups:
            for p in group["params"]:
                self.ensure_state(p, group)

    def share_memory(self):
        """Move the sums to memory that other processes see."""
        for state in self.state.values():
            state["sum"].share_memory_()

    def slots(self, group):
        """The sum of squares."""
        return ("sum",)

    def new_slot(self, name, p, group):
        """The sum starts at `initial_accumulator_value`."""
        start = group["initial_accumulator_value"]
        return full_like(p, complex(start, start) if p.dtype.is_complex else start)

    def sparse_step(self, p, g, group):
        """A step that moves the rows of `g` only."""
        if number(group["weight_decay"]) != 0:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        state, fresh = self.ensure_state(p, group)
        scalars, _, advanced = self.plan(group, fresh, count_of(state, "step"))
        g = (-g if group["maximize"] else g).coalesce()
        values = g._values()
        add_rows(state["sum"], g.like(values * values))
        add_rows(p, g.like(values / (rows_at(state["sum"], g).sqrt() + scalars["eps"])), scalars["down"])
        advance([state], advanced)

    def plan(self, group, fresh, step):
        """The scalars and flags of step `step + 1`."""
        step += 1
        decay = hyper(group["weight_decay"])
        scalars = dict(down=-hyper(group["lr"]) / (1 + (step - 1) * group["lr_decay"]), eps=group["eps"], weight_decay=decay)
        return scalars, dict(maximize=group["maximize"], decay=decay != 0), dict(step=step)


adagrad = functional(Adagrad, "sum step", lambda params, grads, state_sums, state_steps, fused=None, grad_scale=None, found_inf=None, has_sparse_grad=False,
    foreach=None, differentiable=False, has_complex=False, *, lr, weight_decay, lr_decay, eps, maximize: None)
