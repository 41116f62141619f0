"""The update driver: an algorithm is a pure elementwise rule; this applies it to every parameter of a group.

A rule has the form `rule(p, g, *slots, **scalars, **flags) -> (new_p, *new_slots)`. It uses only elementwise Tensor
operations, so each result fuses into one kernel, and it never writes in place. `scalars` are Python floats that become
run-time kernel arguments (changing the learning rate compiles nothing); `flags` change the structure of the expression.
"""

from clnn._tensor.grad_mode import is_grad_enabled, set_grad_enabled
from clnn._tensor.multi import foreach_update, scalar_arguments
from clnn.core import native
from clnn.graph.op import REGISTRY
from clnn.runtime import capture
from clnn.optim._counters import advance, alike, count_of, counter, held, number_of
from clnn.optim.optimizer import Optimizer, run_closure


def _usual_rows(params, states, counters, names):
    """(values of the counters, rows, states) of the parameters that have a gradient, where all of them are dense and real, have all that a step needs, and count
    alike; None elsewhere: always without the C form."""
    return None


_usual_rows = native.form("usual_rows", _usual_rows)


class RuleOptimizer(Optimizer):
    """An optimizer given by a rule. A subclass sets or defines:

    - `rule`: the update rule (a staticmethod over a module-level function);
    - `counters`: `{state name: first value}`, numbers kept on the host;
    - `slots(group)`: the names of the state tensors that this group needs;
    - `new_slot(name, p, group)`: the first value of one (zeros by default);
    - `plan(group, fresh, **counters)`: returns `(scalars, flags, new counters)` for parameters with these counters.
      `fresh` tells that a slot was made in this very step.
    """

    rule = None
    counters = {"step": 0.0}

    def slots(self, group):
        """Names of the state tensors, in the order of the rule's arguments."""
        return ()

    def new_slot(self, name, p, group):
        """The first value of a state tensor."""
        return zeros_like(p)

    def plan(self, group, fresh, **counters):
        """Scalars, flags and advanced counters of one step."""
        raise NotImplementedError

    def step(self, closure=None):
        """Update every parameter that has a gradient.

        Args:
            closure: optional function that recomputes the loss (with gradients) and returns it; its value is returned.
        """
        loss = run_closure(closure)
        for group in self.param_groups:
            with set_grad_enabled(bool(group.get("differentiable", False))):
                self._step_group(group)
        return loss

    def ensure_state(self, p, group):
        """Make the missing counters and slots of `p`; returns (state, whether a slot was made)."""
        state = self.state[p]
        for name, first in self.counters.items():
            if name not in state:
                state[name] = counter(first)
        fresh = False
        for name in self.slots(group):
            if state.get(name) is None:
                state[name] = self.new_slot(name, p, group)
                fresh = True
        return state, fresh

    def _step_group(self, group):
        names, counters = self.slots(group), self.counters
        usual = _usual_rows(group["params"], self.state, tuple(counters), names)
        if usual is not None:
            self._update(group, False, *usual)
            return
        needed = (*counters, *names)
        batches = {}  # counters -> the parameters that share them, hence also scalars and flags
        for p in group["params"]:
            g = p.grad
            if g is None:
                continue
            if g.is_sparse:
                self.sparse_step(p, g, group)
                continue
            if not needed:
                batches.setdefault((False,), []).append((p, g, None))
                continue
            state, fresh = self.state[p], False
            for name in needed:
                if state.get(name) is None:
                    state, fresh = self.ensure_state(p, group)
                    break
            key = (fresh, *[held(state, name) for name in counters])
            batches.setdefault(key, []).append((p, g, state))
        for (fresh, *values), entries in batches.items():
            rows = [(p, g, *[state[name] for name in names]) for p, g, state in entries]
            self._update(group, fresh, values, rows, [state for *_, state in entries])

    def _update(self, group, fresh, values, rows, states):
        """One step of parameters that have equal counters, whose ``values`` are as :func:`held` gives them; ``rows``: (parameter, gradient, slots...)."""
        scalars, flags, advanced = self.plan(group, fresh, **dict(zip(self.counters, map(number_of, values))))
        first = rows[0][0]
        if any([row[0].dtype.is_complex for row in rows]):
            rows = [tuple(map(parts, row)) for row in rows]
        launches = []
        foreach_update(type(self).rule, rows, scalars, flags, launches)
        advance(states, advanced)
        recording = capture.own()
        if recording is not None:
            self._repeat_at_replay(recording, group, first, states, flags, launches)

    def _repeat_at_replay(self, recording, group, first_parameter, states, flags, launches):
        """Let every replay of the recorded launches use the hyperparameters and counters of its own step, as long as its parameters and flags are these."""
        counts, first_state = (len(self.param_groups), len(group["params"])), states[0]

        def now():
            counters = {name: count_of(first_state, name) for name in self.counters} if first_state is not None else {}
            return self.plan(group, False, **counters)

        def unchanged():
            groups = self.param_groups
            return any(g is group for g in groups) and (len(groups), len(group["params"])) == counts and now()[1] == flags \
                and (first_state is None or self.state.get(first_parameter) is first_state and alike(states, self.counters))

        def refresh():
            scalars, _, advanced = now()
            for plan, first, last in launches:
                for i, value in enumerate(scalar_arguments(plan, scalars)):
                    for call in range(first, last):
                        recording.set_scalar(call, i, value)
            advance(states, advanced)
        recording.checks.append(unchanged)
        recording.refreshers.append(refresh)

    def sparse_step(self, p, g, group):
        """One step of one parameter with the sparse gradient `g`, where the algorithm has one."""
        raise no_sparse_step(self)


class PerParameterOptimizer(Optimizer):
    """An optimizer whose update is not elementwise: a subclass defines `update(p, g, group)`, which changes `p` in place.

    `counts` tells that an update depends on how many there were, which a recording cannot repeat.
    """

    counts = False

    def step(self, closure=None):
        """Update every parameter that has a gradient; returns the closure's loss."""
        loss = run_closure(closure)
        recording = capture.own()
        if self.counts and recording is not None:
            recording.abandon(f"{type(self).__name__} works with the number of its step")
        with set_grad_enabled(False):
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        if p.dtype.is_complex:
                            raise RuntimeError(f"{type(self).__name__} does not support complex parameters")
                        if p.grad.is_sparse:
                            raise no_sparse_step(self)
                        self.update(p, p.grad, group)
        return loss

    def update(self, p, g, group):
        """One step of one parameter."""
        raise NotImplementedError


def parts(t):
    """Complex numbers as pairs of real ones, on the same memory: to an update they are two parameters each."""
    return REGISTRY["view_as_real"].fn(t) if t.dtype.is_complex else t


def no_sparse_step(optimizer):
    """The error of an algorithm that would have to move all rows of a parameter, not just those of a sparse gradient."""
    hint = ", please consider SparseAdam instead" if type(optimizer).__name__ in ("Adam", "AdamW") else ""
    return RuntimeError(f"{type(optimizer).__name__} does not support sparse gradients{hint}")


def zeros_like(p):
    """Zeros with the shape, dtype and device of `p`."""
    import clnn  # at call time: clnn imports this package
    return clnn.zeros_like(p)


def full_like(p, value):
    """`value` everywhere, with the shape, dtype and device of `p`."""
    import clnn
    return clnn.full_like(p, value)


def number(value):
    """A hyperparameter as a Python float; a 0-d tensor is accepted as in PyTorch."""
    return value.item() if hasattr(value, "item") else value


def hyper(value):
    """A hyperparameter as a Python float; the tensor itself where a differentiable step may be asked for its gradient."""
    return value if getattr(value, "requires_grad", False) and is_grad_enabled() else number(value)


def check_option(ok, what, value):
    """Raise the error of a hyperparameter that is out of its range."""
    if not ok:
        raise ValueError(f"Invalid {what}: {value}")


def check_size(lr):
    """Check that a learning rate that is a tensor is one number."""
    if hasattr(lr, "numel") and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")


def check_common(lr, eps=None, weight_decay=None):
    """Check the options that nearly all algorithms share."""
    check_size(lr)
    check_option(number(lr) >= 0.0, "learning rate", lr)
    if eps is not None:
        check_option(eps >= 0.0, "epsilon value", eps)
    if weight_decay is not None:
        check_option(number(weight_decay) >= 0.0, "weight_decay value", weight_decay)


def check_tensors(lr, betas, foreach, capturable):
    """Check Adam's options that are tensors: PyTorch takes them with few of its implementations, and a program should hear of that here too."""
    held = [hasattr(beta, "numel") for beta in betas]
    if hasattr(lr, "numel") and foreach and not capturable:
        raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
    if not all(held) and not all([isinstance(beta, float) for beta in betas]):
        raise ValueError("betas must be either both floats or both Tensors")
    for i, beta in enumerate(betas if any(held) else ()):
        if foreach and not capturable:
            raise ValueError(f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True")
        if beta.numel() != 1:
            raise ValueError(f"Tensor betas[{i}] must be 1-element")


def check_betas(betas):
    """Check a pair of decay rates, each in [0, 1)."""
    for i, beta in enumerate(betas):
        check_option(0.0 <= number(beta) < 1.0, f"beta parameter at index {i}", beta)
