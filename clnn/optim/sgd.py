"""Stochastic gradient descent."""

from clnn.optim._functional import functional
from clnn.optim._moments import plus
from clnn.optim._rule import RuleOptimizer, check_common, check_option, hyper, number
from clnn.optim._sparse import add_rows


def sgd_rule(p, g, buf=None, *, down, weight_decay, momentum, gain, maximize, decay, nesterov):
    """One step; `gain` is what a new gradient counts in the momentum buffer (1 in the very first step)."""
    if maximize:
        g = -g
    if decay:
        g = plus(g, p, weight_decay)
    if buf is None:
        return (plus(p, g, down),)
    buf = plus(buf * momentum, g, gain)
    return plus(p, plus(g, buf, momentum) if nesterov else buf, down), buf


class SGD(RuleOptimizer):
    r"""Stochastic gradient descent, optionally with (Nesterov) momentum.

    With gradient :math:`g`, weight decay :math:`\lambda`, momentum :math:`\mu` and dampening :math:`\tau`:
    :math:`g \leftarrow g + \lambda p`, :math:`b \leftarrow \mu b + (1-\tau) g` (the first step sets :math:`b = g`), and
    :math:`p \leftarrow p - \mathrm{lr}\, b`, or :math:`p \leftarrow p - \mathrm{lr}\,(g + \mu b)` with `nesterov`.

    Args:
        params: tensors, `(name, tensor)` pairs, or group dicts.
        lr: learning rate. momentum: :math:`\mu`. dampening: :math:`\tau`. weight_decay: :math:`\lambda`.
        nesterov: look ahead along the momentum; needs `momentum > 0` and `dampening == 0`.
        maximize: climb instead of descend. foreach, fused, differentiable: accepted as in PyTorch.

    Example::

        >>> w = clnn.ones(2, requires_grad=True)
        >>> opt = clnn.optim.SGD([w], lr=0.25, momentum=0.9)
        >>> (w * w).sum().backward()
        >>> opt.step()
        >>> w
        tensor([0.5000, 0.5000], requires_grad=True)

    Source: Sutskever et al., "On the importance of initialization and momentum in deep learning", 2013.
    """

    rule = staticmethod(sgd_rule)
    counters = {}

    def __init__(self, params, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, *, maximize=False,
                 foreach=None, differentiable=False, fused=None):
        check_common(lr, weight_decay=weight_decay)
        check_option(momentum >= 0.0, "momentum value", momentum)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, dict(lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay, nesterov=nesterov,
                                      maximize=maximize, foreach=foreach, differentiable=differentiable, fused=fused))

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in (("nesterov", False), ("maximize", False), ("foreach", None), ("differentiable", False), ("fused", None)):
                group.setdefault(name, value)

    def slots(self, group):
        """The momentum buffer, where there is momentum."""
        return ("momentum_buffer",) if group["momentum"] else ()

    def sparse_step(self, p, g, group):
        """A step that moves the rows of `g` only, or those of all gradients so far with momentum."""
        if number(group["weight_decay"]) != 0:
            raise RuntimeError("SGD: weight_decay is not compatible with sparse gradients")
        g = -g if group["maximize"] else g
        if group["momentum"]:
            state = self.state[p]
            buf = state.get("momentum_buffer")
            buf = g.detach().clone() if buf is None else (buf * group["momentum"]).add(g, alpha=1.0 - group["dampening"])
            state["momentum_buffer"] = buf = buf.coalesce() if buf.is_sparse else buf
            g = g + buf * group["momentum"] if group["nesterov"] else buf
        add_rows(p, g, -number(group["lr"]))

    def plan(self, group, fresh):
        """The scalars and flags of a step."""
        decay = hyper(group["weight_decay"])
        gain = 1.0 if fresh else 1.0 - group["dampening"]
        scalars = dict(down=-hyper(group["lr"]), weight_decay=decay, momentum=group["momentum"], gain=gain)
        return scalars, dict(maximize=group["maximize"], decay=decay != 0, nesterov=group["nesterov"]), {}


sgd = functional(SGD, "momentum_buffer", lambda params, d_p_list, momentum_buffer_list, has_sparse_grad=False, foreach=None, fused=None, grad_scale=None,
    found_inf=None, *, weight_decay, momentum, lr, dampening, nesterov, maximize: None)
