"""What Adam and its relatives share."""


def moments(p, g, m, v, *, weight_decay, shrink, gain1, beta2, gain2, maximize, decay):
    """Weight decay, then the running means of the gradient and of its square; returns the new (p, g, m, v).

    `decay` is None, "coupled" (added to the gradient) or "decoupled" (the parameter shrinks).
    """
    if maximize:
        g = -g
    if decay == "decoupled":
        p = p * shrink
    elif decay == "coupled":
        g = g + p * weight_decay
    return p, g, m + (g - m) * gain1, v * beta2 + g * g * gain2


def decay_kind(group, weight_decay):
    """How a group decays its weights, as `moments` wants it."""
    return None if weight_decay == 0 else "decoupled" if group["decoupled_weight_decay"] else "coupled"
