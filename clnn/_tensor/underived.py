"""Results that PyTorch counts as part of the graph though it has no gradient for them: they require one, and a backward pass that meets them is refused."""
from __future__ import annotations

from . import tape
from .grad_mode import state
from .tensor import Tensor, edge

UNDERIVED = "torch::autograd::NotImplemented"
# By operator: the entry's name, and what PyTorch calls the operator when it refuses.
_NAMED = dict(unique_dim=("UniqueDimBackward0", "unique_dim"), unique=("Unique2Backward0", "_unique2"),
              unique_consecutive=("UniqueConsecutiveBackward0", "unique_consecutive"), geqrf=("GeqrfBackward0", "geqrf"))
_PLAIN = dict(histogram="histogram", binomial="binomial", bincount="bincount", linalg_ldl_factor="linalg_ldl_factor_ex", linalg_ldl_factor_ex="linalg_ldl_factor_ex",
              linalg_ldl_solve="linalg_ldl_solve", _sample_dirichlet="_sample_dirichlet")
NAMES = {**_NAMED, **_PLAIN}


def underived(name, *operands):
    """Gradient rules of an elementwise operator that has none."""
    def rule(g):
        raise RuntimeError(f"derivative for aten::{name} is not implemented")
    return dict.fromkeys(operands, rule)


class Underived(tape.Node):
    """The entry of an operator without a gradient."""

    def __init__(self, operands, outs, name):
        super().__init__([edge(t) if t._rg else None for t in operands], outs)
        self.known, self.called = (_NAMED[name][0], _NAMED[name][1]) if name in _NAMED else (UNDERIVED, _PLAIN[name])

    def name(self):
        return self.known

    def apply(self, grads, needed):
        if self.known is UNDERIVED:
            raise RuntimeError(f"derivative for aten::{self.called} is not implemented")
        raise NotImplementedError(f"the derivative for '{self.called}' is not implemented.")


def enter(name, result, args, kwargs):
    """Make the floating results of the operator ``name`` part of the graph."""
    operands = [a for a in (*args, *kwargs.values()) if isinstance(a, Tensor)]
    outs = [r for r in (result if isinstance(result, tuple) else (result,)) if r.__class__ is Tensor and r.dtype.differentiable]
    if state.grad and any([t._rg for t in operands]) and not any([r._rg for r in outs]):
        if name == "unique" and (args[4] if len(args) > 4 else kwargs.get("dim")) is not None:
            name = "unique_dim"
        node = Underived(operands, len(outs), name)
        for nr, r in enumerate(outs):
            r._grad_fn, r._out_nr, r._rg = node, nr, True


def is_underived(node) -> bool:
    return node is not None and (isinstance(node, Underived) or node.name() == UNDERIVED)
