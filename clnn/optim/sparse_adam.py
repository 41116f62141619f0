"""SparseAdam, for gradients that clnn does not make."""

from clnn.optim._rule import check_betas
from clnn.optim.optimizer import Optimizer


class SparseAdam(Optimizer):
    """Adam for sparse gradients, which moves only the rows that a gradient has.

    clnn has no sparse tensors, so every gradient is dense and :meth:`step` raises, as PyTorch's does for dense gradients. The class is
    there for programs that choose their optimizer by name. :class:`Adam` takes the same arguments.

    Args:
        params: tensors, `(name, tensor)` pairs, or group dicts.
        lr: learning rate. betas: decay of the running means. eps: added to the denominator. maximize: climb instead of descend.

    Raises:
        ValueError: an option is out of its range. RuntimeError: in `step`, when a parameter has a (dense) gradient.

    Example::

        >>> opt = clnn.optim.SparseAdam([clnn.ones(2, requires_grad=True)])
        >>> opt.param_groups[0]["lr"]
        0.001
    """

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, maximize=False):
        if not 0.0 < float(lr):
            raise ValueError(f"Invalid learning rate: {lr}")
        if not 0.0 < eps:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, maximize=maximize))

    def step(self, closure=None):
        """Raise for dense gradients; parameters without a gradient stay what they are."""
        loss = closure() if closure is not None else None
        if any(p.grad is not None for group in self.param_groups for p in group["params"]):
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        return loss
