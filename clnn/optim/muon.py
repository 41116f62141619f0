"""Muon."""

import math

from clnn.ops.matmul import addmm
from clnn.optim._rule import PerParameterOptimizer, check_option, check_size, number, zeros_like


class Muon(PerParameterOptimizer):
    r"""Momentum whose steps are made nearly orthogonal, for the weight matrices of hidden layers.

    :math:`b \leftarrow \mu b + (1-\mu) g`; the step is the Newton-Schulz approximation of :math:`U V^T` of :math:`b`'s singular value
    decomposition (of its Nesterov look-ahead with `nesterov`).

    Args:
        params: matrices only; use another optimizer for biases, embeddings and the output layer.
        lr: learning rate. weight_decay: decoupled weight decay. momentum: :math:`\mu`. nesterov: look ahead along the momentum.
        ns_coefficients, ns_steps, eps: polynomial, number and stabiliser of the Newton-Schulz iterations, which run in bfloat16.
        adjust_lr_fn: None or "original" scales the step by :math:`\sqrt{\max(1, rows/columns)}`; "match_rms_adamw" by
            :math:`0.2\sqrt{\max(rows, columns)}`.

    Source: Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024.

    Example:
        >>> w = clnn.tensor([[1.0, -2.0]], requires_grad=True)
        >>> optimizer = clnn.optim.Muon([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([[ 0.9589, -1.9177]], requires_grad=True)
    """

    def __init__(self, params, lr=1e-3, weight_decay=0.1, momentum=0.95, nesterov=True, ns_coefficients=(3.4445, -4.775, 2.0315), eps=1e-7,
                 ns_steps=5, adjust_lr_fn=None):
        check_size(lr)
        for text, value in (("Learning rate", lr), ("momentum", momentum), ("weight decay", weight_decay)):
            if number(value) < 0:
                raise ValueError(f"{text} should be >= 0 but is: {value}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        check_option(ns_steps < 100, "ns_steps (it should be below 100)", ns_steps)
        super().__init__(params, dict(lr=lr, weight_decay=weight_decay, momentum=momentum, nesterov=nesterov, ns_coefficients=ns_coefficients,
                                      eps=eps, ns_steps=ns_steps, adjust_lr_fn=adjust_lr_fn))
        for group in self.param_groups:
            for p in group["params"]:
                if p.dim() != 2:
                    raise ValueError(f"Muon only supports 2D parameters whereas we found a parameter with size: {p.size()}")

    def update(self, p, g, group):
        """One step of one parameter."""
        state, lr, mu = self.state[p], number(group["lr"]), group["momentum"]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = zeros_like(g)
        buf = state["momentum_buffer"]
        buf.lerp_(g, 1 - mu)
        update = orthogonalise(g.lerp(buf, mu) if group["nesterov"] else buf, group["ns_coefficients"], group["ns_steps"], group["eps"])
        rows, columns = p.shape
        scale = 0.2 * math.sqrt(max(rows, columns)) if group["adjust_lr_fn"] == "match_rms_adamw" else math.sqrt(max(1, rows / columns))
        p.copy_(p * (1 - lr * group["weight_decay"]) - update.to(p.dtype) * (lr * scale))


def orthogonalise(matrix, coefficients, steps, eps):
    """Push the singular values of `matrix` towards 1 by Newton-Schulz iterations x <- (a + b x x^T + c (x x^T)^2) x.

    Every intermediate is a bfloat16, as in PyTorch: its digits decide the steps that programs see.
    """
    a, b, c = coefficients
    x = matrix.bfloat16()
    tall = x.shape[0] > x.shape[1]
    if tall:
        x = x.t()  # the smaller Gram matrix
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.t()
        x = addmm(x, addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.t() if tall else x
