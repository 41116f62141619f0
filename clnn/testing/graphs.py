"""The check of operators in graphs of the operators below: what is traced computes with its own inputs, also where clnn knows the call by then."""
from __future__ import annotations

import numpy as np

from .._tensor.tensor import Tensor
from ..fx._by_operator import make_fx
from . import cases
from .basics import NotApplicable, close, limits
from .batching import BY_VALUE
from .cases import flatten, to_tensor, values
from .domains import RANDOM


def traced(op):
    """The graph of a call that was made before, asked for other numbers, gives what the operator gives."""
    calls = [c for c in cases.calls(op, cases.native_row(op))[:2] if any(cases.is_float(a) for a in c.arrays())]
    if not calls or op.name in BY_VALUE or op.name.strip("_") in RANDOM:
        raise NotApplicable("no call whose result is known by its floats")
    for call in calls:
        def tensors_of(*leaves, call=call):
            left = iter(leaves)
            filled = call.map(lambda a: next(left))
            return tuple([t for t in flatten(op.fn(*filled.args, **filled.kwargs)) if isinstance(t, Tensor)])

        def fresh(scale, call=call):
            return [to_tensor((a * scale).astype(a.dtype) if cases.is_float(a) else np.copy(a)) for a in call.arrays()]
        for _ in range(3):
            tensors_of(*fresh(1))
        try:
            graph = make_fx(tensors_of)(*fresh(1))
        except RuntimeError as exc:
            if "tracing tensor" in str(exc):
                raise NotApplicable(f"looks at values: {exc}") from exc
            raise
        want, got = tensors_of(*fresh(0.9)), graph(*fresh(0.9))
        assert len(got) == len(want), f"{op.name}{call}: {len(got)} results, expected {len(want)}"
        for g, w in zip(got, want):
            close(values(g), values(w), *limits(op, w.dtype), f"{op.name}{call} traced")
