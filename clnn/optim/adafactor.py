"""Adafactor."""

from clnn.optim._counters import advance, count_of, counter
from clnn.optim._rule import PerParameterOptimizer, check_size, number, zeros_like


class Adafactor(PerParameterOptimizer):
    r"""Adam-like steps that keep, of a matrix's squared gradients, only the means of rows and of columns.

    The second moment of a matrix is estimated as :math:`\hat v = R\,C / \mathrm{mean}(R)` from the running row means :math:`R` and column
    means :math:`C` of :math:`g^2`, which decay with :math:`1 - t^{\gamma}`. The update :math:`u = g/\sqrt{\hat v}` is scaled down to a root
    mean square of at most :math:`d` and then by :math:`\max(\epsilon_2, \mathrm{RMS}(p))\,\min(\mathrm{lr}, 1/\sqrt t)`.

    Args:
        params: tensors, `(name, tensor)` pairs, or group dicts. lr: largest relative step.
        beta2_decay: :math:`\gamma`, not positive. eps: :math:`(\epsilon_1, \epsilon_2)`; the dtype's precision if :math:`\epsilon_1` is None.
        d: clipping threshold. weight_decay: decoupled weight decay. maximize: climb. foreach: accepted as in PyTorch.

    Source: Shazeer and Stern, "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost", 2018.

    Example:
        >>> w = clnn.tensor([[1.0, -2.0]], requires_grad=True)
        >>> optimizer = clnn.optim.Adafactor([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([[ 0.8419, -1.8419]], requires_grad=True)
    """

    def __init__(self, params, lr=1e-2, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0, weight_decay=0.0, *, foreach=None, maximize=False):
        check_size(lr)
        for good, text, value in ((number(lr) >= 0, "Learning rate should be >= 0", lr), (beta2_decay <= 0, "beta2_decay should be <= 0", beta2_decay),
                                  (eps[0] is None or eps[0] >= 0, "epsilon1 should be >= 0", eps[0]), (eps[1] >= 0, "epsilon2 should be >= 0", eps[1]),
                                  (d >= 1, "Clipping threshold d should be >= 1", d), (weight_decay >= 0, "weight_decay should be >= 0", weight_decay)):
            if not good:
                raise ValueError(f"{text} but is: {value}")
        super().__init__(params, dict(lr=lr, beta2_decay=beta2_decay, eps=eps, d=d, weight_decay=weight_decay, foreach=foreach, maximize=maximize))

    def _start(self, p, g):
        state = self.state[p]
        if not state:
            state["step"] = counter(0.0)
            if g.dim() > 1:
                state["row_var"], state["col_var"] = zeros_like(g[..., :1]), zeros_like(g[..., :1, :])
            else:
                state["variance"] = zeros_like(g)
        return state

    counts = True

    def update(self, p, g, group):
        """One step of one parameter."""
        import clnn
        state = self._start(p, g)
        step = count_of(state, "step") + 1
        advance([state], {"step": step})
        if group["maximize"]:
            g = -g
        lr, gain = number(group["lr"]), step ** group["beta2_decay"]
        eps1, eps2 = group["eps"]
        eps1 = clnn.finfo(p.dtype).eps if eps1 is None else eps1
        size = _rms(p).clamp(min=eps2) * min(lr, step ** -0.5)  # stays on the device: no value is read back
        if group["weight_decay"]:
            p.mul_(1 - lr * group["weight_decay"])
        square = g * g
        if g.dim() > 1:
            row, col = state["row_var"], state["col_var"]
            row.add_((square.mean(-1, keepdim=True) - row) * gain)
            col.add_((square.mean(-2, keepdim=True) - col) * gain)
            variance = row * col / row.mean(-2, keepdim=True).clamp(min=eps1)
        else:
            variance = state["variance"].add_((square - state["variance"]) * gain)
        update = g * variance.clamp(min=eps1 * eps1).rsqrt()
        p.sub_((update * (size / (_rms(update) / group["d"]).clamp(min=1.0))).to(p.dtype))


def _rms(t):
    return (t.float() * t.float()).mean().sqrt()
