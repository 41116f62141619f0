"""What the rules share: updates that round once, as PyTorch's operators do, which 16-bit weights show; and the moments of Adam and its relatives."""
from clnn._tensor.tensor import Tensor


def plus(a, b, factor):
    """``a + factor * b``; a factor that is a tensor may want its gradient."""
    return a + b * factor if isinstance(factor, Tensor) else a.add(b, alpha=factor)


def plus_product(a, b, c, factor):
    """``a + factor * b * c``."""
    return a + b * c * factor if isinstance(factor, Tensor) else a.addcmul(b, c, value=factor)


def plus_quotient(a, b, c, factor):
    """``a + factor * b / c``."""
    return a + b / c * factor if isinstance(factor, Tensor) else a.addcdiv(b, c, value=factor)


def towards(a, b, weight):
    """``a + weight * (b - a)``."""
    return a + (b - a) * weight if isinstance(weight, Tensor) else a.lerp(b, weight)


def moments(p, g, m, v, *, weight_decay, shrink, gain1, beta2, gain2, maximize, decay):
    """Weight decay, then the running means of the gradient and of its square; returns the new (p, g, m, v).

    `decay` is None, "coupled" (added to the gradient) or "decoupled" (the parameter shrinks).
    """
    if maximize:
        g = -g
    if decay == "decoupled":
        p = p * shrink
    elif decay == "coupled":
        g = plus(g, p, weight_decay)
    return p, g, towards(m, g, gain1), plus_product(v * beta2, g, g, gain2)


def decay_kind(group, weight_decay):
    """How a group decays its weights, as `moments` wants it."""
    return None if weight_decay == 0 else "decoupled" if group["decoupled_weight_decay"] else "coupled"
