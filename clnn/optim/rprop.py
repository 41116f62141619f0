"""Resilient backpropagation."""

from clnn._tensor.multi import as_element
from clnn.optim._functional import functional
from clnn.optim._rule import RuleOptimizer, check_common, check_option, full_like, number


def rprop_rule(p, g, prev, size, *, eta_minus, eta_plus, size_min, size_max, maximize):
    """One step: the step size grows while the gradient keeps its sign; where the sign flips, nothing moves this time."""
    if maximize:
        g = -g
    if size.dtype.itemsize == 2:
        eta_minus, eta_plus = as_element(eta_minus, size.dtype), as_element(eta_plus, size.dtype)
    agree = (g * prev).sign()
    grown, flipped = agree > 0, agree < 0
    size = size.where(~grown, size * eta_plus).where(~flipped, size * eta_minus).clamp(size_min, size_max)
    g = g.where(~flipped, g * 0.0)
    return p - g.sign() * size, g, size


class Rprop(RuleOptimizer):
    r"""Steps of adaptive size along the sign of the gradient.

    A parameter's step size is multiplied by :math:`\eta_+` while its gradient keeps its sign and by :math:`\eta_-` when it flips.

    Args:
        params, lr, maximize: as for `Adam`; `lr` is the first step size.
        etas: :math:`(\eta_-, \eta_+)`. step_sizes: smallest and largest step.
        capturable, foreach, differentiable: accepted as in PyTorch.

    Source: Riedmiller and Braun, "A direct adaptive method for faster backpropagation learning", 1993.

    Example:
        >>> w = clnn.tensor([[1.0, -2.0]], requires_grad=True)
        >>> optimizer = clnn.optim.Rprop([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([[ 0.9000, -1.9000]], requires_grad=True)
    """

    rule = staticmethod(rprop_rule)

    def __init__(self, params, lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50), *, capturable=False, foreach=None, maximize=False,
                 differentiable=False):
        check_common(lr)
        check_option(0.0 < etas[0] < 1.0 < etas[1], "eta values", f"{etas[0]}, {etas[1]}")
        super().__init__(params, dict(lr=lr, etas=etas, step_sizes=step_sizes, foreach=foreach, maximize=maximize,
                                      differentiable=differentiable, capturable=capturable))

    def slots(self, group):
        """The last gradient and the step sizes."""
        return ("prev", "step_size")

    def new_slot(self, name, p, group):
        """Step sizes start at the learning rate."""
        lr = number(group["lr"])
        return full_like(p, complex(lr, lr) if p.dtype.is_complex else lr) if name == "step_size" else super().new_slot(name, p, group)

    def plan(self, group, fresh, step):
        """The scalars and flags of step `step + 1`."""
        (minus, plus), (low, high) = group["etas"], group["step_sizes"]
        return dict(eta_minus=minus, eta_plus=plus, size_min=low, size_max=high), dict(maximize=group["maximize"]), dict(step=step + 1)


rprop = functional(Rprop, "prev step_size step", lambda params, grads, prevs, step_sizes, state_steps, foreach=None, capturable=False, maximize=False,
    differentiable=False, has_complex=False, *, step_size_min, step_size_max, etaminus, etaplus: None)
