"""L-BFGS."""

from clnn._tensor.grad_mode import no_grad, set_grad_enabled
from clnn._tensor.multi import foreach_update
from clnn.optim._history import History, scalar
from clnn.optim._rule import check_common, number, parts
from clnn.optim.optimizer import Optimizer


class LBFGS(Optimizer):
    r"""The limited-memory quasi-Newton method of Broyden, Fletcher, Goldfarb and Shanno.

    A step minimises along :math:`-H g`, where the inverse Hessian :math:`H` is built from the last `history_size` pairs of parameter and
    gradient differences.

    Args:
        params: one group of tensors.
        lr: step length (without a line search), or first trial of it.
        max_iter: iterations a `step`. max_eval: function evaluations a `step` (`max_iter * 5 // 4`).
        tolerance_grad: stop when the largest gradient entry is below. tolerance_change: stop when parameters or loss change less.
        history_size: pairs kept. line_search_fn: None or "strong_wolfe".

    `step` needs a closure that clears the gradients, computes the loss, calls `backward()` and returns the loss.

    Source: Nocedal and Wright, "Numerical Optimization", chapters 3 and 7.

    Example:
        >>> w = clnn.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = clnn.optim.LBFGS([w])
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = ((w - 3) ** 2).sum()
        ...     loss.backward()
        ...     return loss
        >>> _ = optimizer.step(closure)
        >>> w
        tensor([3.0000, 3.0000], requires_grad=True)
    """

    def __init__(self, params, lr=1, max_iter=20, max_eval=None, tolerance_grad=1e-7, tolerance_change=1e-9, history_size=100,
                 line_search_fn=None):
        check_common(lr)
        max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        super().__init__(params, dict(lr=lr, max_iter=max_iter, max_eval=max_eval, tolerance_grad=tolerance_grad,
                                      tolerance_change=tolerance_change, history_size=history_size, line_search_fn=line_search_fn))
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]
        self._history = None

    # ---- the parameters as one vector
    def _flat_grad(self):
        import clnn
        return clnn.cat([parts(clnn.zeros_like(p) if p.grad is None else p.grad.to_dense()).reshape(-1) for p in self._params])

    def _move(self, length, direction):
        start = 0
        for p in map(parts, self._params):
            p.add_(direction[start:start + p.numel()].reshape(p.shape), alpha=length)
            start += p.numel()

    def _snapshot(self):
        return [p.detach().clone() for p in self._params]

    def _restore(self, values):
        for p, value in zip(self._params, values):
            p.copy_(value)

    @no_grad()
    def step(self, closure):
        """Run up to `max_iter` iterations; returns the loss before the first."""
        group = self.param_groups[0]
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        def evaluate():
            with set_grad_enabled(True):
                return closure()

        first_loss = evaluate()
        run = _Run(self, group, state, evaluate, float(first_loss))
        run.minimise()
        run.save()
        return first_loss


class _Run:
    """One call of `LBFGS.step`: the iteration with its history of curvature pairs."""

    def __init__(self, optimizer, group, state, evaluate, loss):
        self.opt, self.group, self.state, self.evaluate, self.loss = optimizer, group, state, evaluate, loss
        self.evals = 1
        state["func_evals"] += 1
        self.grad = optimizer._flat_grad()
        self.d, self.t = state.get("d"), state.get("t")
        history = optimizer._history
        if history is None or history.dirs is not state.get("old_dirs"):        # none yet, or a state was loaded
            history = History(state.get("old_dirs") or [], state.get("old_stps") or [], state.get("ro") or [])
        self.history = history
        self.scale = number(state.get("H_diag", 1))
        self.prev_grad, self.prev_loss = state.get("prev_flat_grad"), state.get("prev_loss")
        if hasattr(self.t, "item"):
            self.t = self.t.item()

    def save(self):
        """Keep what the next call continues from."""
        if self.state["n_iter"] > 1:
            self.state.setdefault("al", [None] * self.group["history_size"])        # PyTorch's notes of one direction, which states list
        history = self.opt._history = self.history
        scale = self.scale if self.scale.__class__ is int else scalar(self.scale, self.grad)
        self.state.update(d=self.d, t=self.t, old_dirs=history.dirs, old_stps=history.steps, ro=history.ro, H_diag=scale,
                          prev_flat_grad=self.prev_grad, prev_loss=self.prev_loss)

    def minimise(self):
        group, state = self.group, self.state
        if _largest(self.grad) <= group["tolerance_grad"]:
            return
        for n in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            self._direction()
            self.prev_grad, self.prev_loss = self.grad.clone(), self.loss
            lr = number(group["lr"])
            self.t = min(1.0, 1.0 / _norm1(self.grad)) * lr if state["n_iter"] == 1 else lr
            slope = _dot(self.grad, self.d)
            if slope > -group["tolerance_change"]:
                return
            small = self._advance(n, slope)
            if n == group["max_iter"] or self.evals >= group["max_eval"] or small:
                return
            if _largest(self.d) * abs(self.t) <= group["tolerance_change"] or abs(self.loss - self.prev_loss) < group["tolerance_change"]:
                return

    def _direction(self):
        """Set `d` to minus the inverse Hessian times the gradient (the two-loop recursion)."""
        if self.state["n_iter"] == 1:
            self.d, self.history, self.scale = -self.grad, History([], [], []), 1
            return
        y, s = self.grad - self.prev_grad, self.d * self.t
        ys = _dot(y, s)
        if ys > 1e-10:  # otherwise the pair has no usable curvature
            self.history.append(y, s, 1.0 / ys, self.group["history_size"])
            self.scale = ys / _dot(y, y)
        scale, history = self.scale, self.history
        self.d = history.apply(-self.grad, scale) if history.rows is not None else self._in_parts(-self.grad, scale)

    def _in_parts(self, q, scale):
        """The same with some launches for each pair."""
        dirs, steps, ro = self.history.dirs, self.history.steps, self.history.numbers
        alphas = [0.0] * len(dirs)
        for i in reversed(range(len(dirs))):
            alphas[i] = _dot(steps[i], q) * ro[i]
            _add(q, dirs[i], -alphas[i])
        q = q * scale
        for i in range(len(dirs)):
            _add(q, steps[i], alphas[i] - _dot(dirs[i], q) * ro[i])
        return q

    def _advance(self, n, slope):
        """Move along `d`; returns whether the gradient there is small enough to stop."""
        group, search = self.group, self.group["line_search_fn"]
        if search is not None:
            if search != "strong_wolfe":
                raise RuntimeError("LBFGS: line_search_fn must be None or 'strong_wolfe'")
            start = self.opt._snapshot()

            def at(t):
                self.opt._move(t, self.d)
                loss = float(self.evaluate())
                grad = self.opt._flat_grad()
                self.opt._restore(start)
                return loss, grad
            # The search keeps its own tolerance, as in PyTorch: with tolerance_change=0 it would halve a bracket down to nothing.
            self.loss, self.grad, self.t, used = strong_wolfe(at, self.t, self.d, self.loss, self.grad, slope, max_ls=group["max_eval"] - self.evals)
            self.opt._move(self.t, self.d)
        else:
            self.opt._move(self.t, self.d)
            if n == group["max_iter"]:  # nobody would look at the loss there
                return False
            self.loss = float(self.evaluate())
            self.grad = self.opt._flat_grad()
            used = 1
        self.evals += used
        self.state["func_evals"] += used
        return _largest(self.grad) <= group["tolerance_grad"]


def _dot(a, b):
    return (a * b).sum().item()


def _add_rule(p, g, *, alpha):
    return (p + g * alpha,)


def _add(q, v, alpha):
    """q += alpha v, at once: left pending, the sums of the recursion would make a new, longer kernel for every term."""
    foreach_update(_add_rule, [(q, v)], {"alpha": alpha}, {})


def _largest(g):
    return g.abs().max().item()


def _norm1(g):
    return g.abs().sum().item()


def cubic_minimum(x1, f1, g1, x2, f2, g2, bounds=None):
    """Where the cubic with these values and slopes at `x1` and `x2` is smallest, within `bounds` (Nocedal and Wright, eq. 3.59)."""
    low, high = bounds if bounds is not None else (min(x1, x2), max(x1, x2))
    if x1 == x2:
        return (low + high) / 2.0
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1 ** 2 - g1 * g2
    if square < 0:
        return (low + high) / 2.0
    d2 = square ** 0.5
    if x1 > x2:
        x1, g1, x2, g2 = x2, g2, x1, g1
    below = g2 - g1 + 2 * d2
    if not below:               # a straight line
        return (low + high) / 2.0
    return min(max(x2 - (x2 - x1) * ((g2 + d2 - d1) / below), low), high)


class _Point:
    """A trial step length with the loss, gradient and slope found there."""

    __slots__ = ("t", "f", "g", "slope")

    def __init__(self, t, f, g, slope):
        self.t, self.f, self.g, self.slope = t, f, g, slope


def strong_wolfe(at, t, d, f, g, slope, c1=1e-4, c2=0.9, tolerance_change=1e-9, max_ls=25):
    """A step length along `d` that lowers the loss enough and flattens the slope (strong Wolfe conditions).

    Args:
        at: `t -> (loss, gradient)`. t: first trial. f, g, slope: loss, gradient and directional slope at 0.

    Returns:
        (loss, gradient, step length, evaluations of `at`).
    """
    start = _Point(0.0, f, g, slope)
    size = _largest(d)

    def probe(length):
        loss, grad = at(length)
        return _Point(length, loss, grad.clone(), _dot(grad, d))

    def too_high(p, reference):
        return p.f > f + c1 * p.t * slope or p.f >= reference.f

    here, evals, previous, tries = probe(t), 1, start, 0
    bracket = None
    while tries < max_ls:
        too_far = here.f > f + c1 * here.t * slope or (tries > 1 and here.f >= previous.f)
        if not too_far and abs(here.slope) <= -c2 * slope:
            return here.f, here.g, here.t, evals
        if too_far or here.slope >= 0:
            bracket = [previous, here]
            break
        nearest, farthest = here.t + 0.01 * (here.t - previous.t), here.t * 10
        length = cubic_minimum(previous.t, previous.f, previous.slope, here.t, here.f, here.slope, (nearest, farthest))
        previous, here = here, probe(length)
        evals += 1
        tries += 1
    if bracket is None:
        bracket = [start, here]
    return _zoom(bracket, probe, too_high, size, slope, c2, tolerance_change, max_ls - tries, evals)


def _zoom(bracket, probe, too_high, size, slope, c2, tolerance_change, tries, evals):
    """Shrink a bracket that holds an acceptable point until one is found."""
    low, high = (0, 1) if bracket[0].f <= bracket[1].f else (1, 0)
    stalled = False
    for _ in range(tries):
        left, right = sorted((bracket[0].t, bracket[1].t))
        if (right - left) * size < tolerance_change:
            break
        a, b = bracket
        length = cubic_minimum(a.t, a.f, a.slope, b.t, b.f, b.slope)
        margin = 0.1 * (right - left)  # a point too near an end twice in a row means no progress: step inwards
        if min(right - length, length - left) < margin:
            if stalled or length >= right or length <= left:
                length = right - margin if abs(length - right) < abs(length - left) else left + margin
                stalled = False
            else:
                stalled = True
        else:
            stalled = False
        here = probe(length)
        evals += 1
        if too_high(here, bracket[low]):
            bracket[high] = here
            low, high = (0, 1) if bracket[0].f <= bracket[1].f else (1, 0)
            continue
        if abs(here.slope) <= -c2 * slope:
            bracket[low] = here
            break
        if here.slope * (bracket[high].t - bracket[low].t) >= 0:
            bracket[high] = bracket[low]
        bracket[low] = here
    best = bracket[low]
    return best.f, best.g, best.t, evals
