"""Passes run one after the other."""
from __future__ import annotations

import inspect
from functools import wraps
from queue import Queue

from clnn.fx.graph_module import GraphModule
from clnn.nn import Module

from .pass_base import PassResult

__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]


def pass_result_wrapper(fn):
    """A function of a graph module as a pass: one that returns None or a module has a :class:`PassResult` made of it."""
    if fn is None:
        return None

    @wraps(fn)
    def run(gm):
        result = fn(gm)
        if result is None:
            return PassResult(gm, True)
        if isinstance(result, PassResult):
            return result
        if isinstance(result, Module):
            return PassResult(result, True)
        raise TypeError(f"pass {fn} returned {type(result)}, where a GraphModule or PassResult was expected")
    if not inspect.isfunction(fn):
        run.__name__ = type(fn).__name__
    return run


def this_before_that_pass_constraint(this, that):
    """A rule for the order of two passes."""
    return lambda a, b: not (a == that and b == this)


def _topological_sort_passes(passes, constraints):
    """The passes in an order that fits all rules. Raises RuntimeError where there is none."""
    if not constraints:
        return passes
    edges = {p: [q for q in passes if q is not p and not all(rule(q, p) for rule in constraints)] for p in passes}
    missing = dict.fromkeys(passes, 0)
    for later in edges.values():
        for q in later:
            missing[q] += 1
    ready, order, seen = Queue(), [], {}
    for p in passes:
        if not missing[p]:
            ready.put(p)
    while not ready.empty():
        order.append(p := ready.get())
        seen[p] = True
        for q in edges[p]:
            missing[q] -= 1
            if not missing[q]:
                ready.put(q)
    stuck = [p for p in passes if missing[p]]
    if stuck:
        raise RuntimeError(f"Circular dependency detected within the following passes: {stuck}")
    return order


class PassManager:
    """Runs passes in an order that fits ``constraints``, up to ``steps`` times or until nothing changes.

    Example::

        >>> from clnn.fx.passes.infra.pass_manager import PassManager, pass_result_wrapper
        >>> def smooth(gm):
        ...     for node in gm.graph.find_nodes(op="call_function", target=clnn.relu):
        ...         node.target = clnn.sigmoid
        >>> PassManager([pass_result_wrapper(smooth)])(clnn.fx.symbolic_trace(lambda x: clnn.relu(x))).graph_module(clnn.zeros(1))
        tensor([0.5000])
    """

    def __init__(self, passes=None, constraints=None, steps=None, run_checks_after_each_pass=False, suppress_check_failures=False):
        self.passes, self.constraints, self.steps = list(passes or []), list(constraints or []), steps or 1
        self.run_checks_after_each_pass, self.suppress_check_failures = run_checks_after_each_pass, suppress_check_failures
        self._validated = False

    def add_pass(self, _pass):
        """One more pass."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint):
        """One more rule for the order."""
        self.constraints.append(constraint)
        self._validated = False

    def validate_constraints(self):
        """Raises RuntimeError where the passes stand in an order that a rule forbids."""
        if self._validated:
            return
        for rule in self.constraints:
            for i, a in enumerate(self.passes):
                for b in self.passes[i + 1:]:
                    if not rule(a, b):
                        raise RuntimeError(f"pass schedule constraint violated. Expected {a} before {b} but found {a} at index {i} and {b} at index "
                                           f"{self.passes.index(b)} in pass list.")
        self._validated = True

    def solve_constraints(self):
        """Put the passes into an order that fits the rules."""
        self.passes = _topological_sort_passes(self.passes, self.constraints)
        self._validated = True

    def add_checks(self, check):
        """``check(graph_module)`` is run before, and behind each pass where ``run_checks_after_each_pass`` says so."""
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.check = check

    def check(self, module):
        """Nothing by default."""

    def __call__(self, module):
        """Run the passes; gives a :class:`PassResult`."""
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        changed = False
        for _ in range(self.steps):
            modified = False
            for i, fn in enumerate(self.passes):
                name = fn.__name__ if inspect.isfunction(fn) else type(fn).__name__
                try:
                    result = fn(module)
                    if not isinstance(result, PassResult) and not hasattr(result, "graph_module"):
                        raise TypeError(f"The result of the pass {name} should be type PassResult.Please wrap it with pass_result_wrapper()")
                    module, modified = result.graph_module, modified or result.modified
                    if isinstance(module, GraphModule):
                        module.recompile()
                    if self.run_checks_after_each_pass:
                        self.check(module)
                except Exception as exc:
                    before = [p.__name__ if inspect.isfunction(p) else type(p).__name__ for p in self.passes[:i]]
                    raise Exception(f"An error occurred when running the '{name}' pass after the following passes: {before}") from exc          # noqa: TRY002
            changed = changed or modified
            if not modified:
                break
        return PassResult(module, changed)
