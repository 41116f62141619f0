"""Adam for sparse gradients."""

from clnn._tensor.grad_mode import no_grad
from clnn.optim._rule import check_betas, check_common, number, zeros_like
from clnn.optim._sparse import add_rows, rows_at
from clnn.optim.optimizer import Optimizer, run_closure


class SparseAdam(Optimizer):
    r"""Adam that moves only the rows that a gradient has, and their running means ("lazy" Adam).

    For the places of the sparse gradient :math:`g`: :math:`m \leftarrow \beta_1 m + (1-\beta_1) g`,
    :math:`v \leftarrow \beta_2 v + (1-\beta_2) g^2` and
    :math:`p \leftarrow p - \mathrm{lr}\, \frac{\sqrt{1-\beta_2^t}}{1-\beta_1^t}\, \frac{m}{\sqrt v + \epsilon}`.

    Args:
        params: dense tensors, `(name, tensor)` pairs, or group dicts.
        lr: learning rate. betas: decay of the running means. eps: added to the denominator. maximize: climb instead of descend.

    Raises:
        ValueError: an option is out of its range, or a parameter is sparse. RuntimeError: in `step`, when a gradient is dense.

    Example::

        >>> table = nn.Embedding(10, 3, sparse=True)
        >>> opt = clnn.optim.SparseAdam(table.parameters(), lr=0.01)
        >>> table(clnn.tensor([1, 4])).sum().backward()
        >>> opt.step()
    """

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, maximize=False):
        check_common(lr)
        if not 0.0 < float(lr):
            raise ValueError(f"Invalid learning rate: {lr}")
        if not 0.0 < eps:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, maximize=maximize))
        sparse = [[i, j] for i, group in enumerate(self.param_groups) for j, p in enumerate(group["params"]) if p.is_sparse]
        if sparse:
            raise ValueError(f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors")
        numbers = [[i, j] for i, group in enumerate(self.param_groups) for j, p in enumerate(group["params"]) if p.dtype.is_complex]
        if numbers:
            raise ValueError(f"Complex params at indices {numbers}: SparseAdam does not support complex parameters")

    def load_state_dict(self, state_dict):
        """Continue from a state; its steps stay plain numbers, as PyTorch's are."""
        super().load_state_dict(state_dict)
        for state in self.state.values():
            if "step" in state:
                state["step"] = int(state["step"])

    def step(self, closure=None):
        """Update the rows of every parameter that its gradient has; returns the closure's loss."""
        loss = run_closure(closure)
        with no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    if not p.grad.is_sparse:
                        raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
                    self._update(p, p.grad, group)
        return loss

    def _update(self, p, g, group):
        state, (beta1, beta2) = self.state[p], map(number, group["betas"])
        if not state:
            state.update(step=0, exp_avg=zeros_like(p), exp_avg_sq=zeros_like(p))
        state["step"] = int(state["step"]) + 1
        g = (-g if group["maximize"] else g).coalesce()
        if not g._nnz():
            return
        values = g._values()
        mean, square = rows_at(state["exp_avg"], g), rows_at(state["exp_avg_sq"], g)
        mean_step, square_step = (values - mean) * (1 - beta1), (values * values - square) * (1 - beta2)
        add_rows(state["exp_avg"], g.like(mean_step))
        add_rows(state["exp_avg_sq"], g.like(square_step))
        size = number(group["lr"]) * (1 - beta2 ** state["step"]) ** 0.5 / (1 - beta1 ** state["step"])
        add_rows(p, g.like((mean + mean_step) / ((square + square_step).sqrt() + group["eps"])), -size)
