"""The check of operators under ``vmap``: all samples at once give what one after the other gives, and the same gradients."""
from __future__ import annotations

import itertools

import numpy as np

import clnn

from . import cases
from .basics import NotApplicable, close, limits, two_parts

SAMPLES = 2
# What makes no sense for a tensor that stands for several samples, in PyTorch neither: results whose size or Python value depends on the data.
BY_VALUE = frozenset("allclose argwhere equal masked_select nonzero nonzero_static unique unique_consecutive bincount histc histogram".split())


@two_parts
def batched(op):
    """Two samples of every argument of the first call at once, and of the last argument of the last call alone, against a loop; then the gradients, and two
    gradients at once."""
    row = cases.native_row(op)
    calls = [c for c in cases.calls(op, row)[:6] if c.arrays()]
    found = []                                  # (result, what it shall be, name, scale of the limits)
    for call, alone in [(c, False) for c in calls[:1]] + [(c, True) for c in calls[-1:] if len(c.arrays()) > 1 or len(calls) > 1]:
        arrays = call.arrays()
        found += _pairs(op, call, arrays, (not alone,) * (len(arrays) - 1) + (True,))
    if not found:
        raise NotApplicable("no call with tensors")
    yield [t for got, want, *_ in found for t in (got, want)]
    for got, want, what, scale in found:
        assert got.dtype is want.dtype, f"{what}: dtype {got.dtype}, expected {want.dtype}"
        close(cases.values(got.detach()), cases.values(want.detach()), *limits(op, got.dtype, scale), what)


def _call(op, call, tensors):
    rest = iter(tensors)
    filled = call.map(lambda a: next(rest))
    return tuple(t for t in cases.flatten(cases.called(op.fn, filled.args, filled.kwargs, op.params)) if isinstance(t, clnn.Tensor))


def _sample(a, i):
    return a * a.dtype.type(1 - 0.05 * i) if a.dtype.kind == "f" else a


def _backward(outs, inputs, scale=1.0):
    roots = [o for o in outs if o.requires_grad]
    if not roots or not inputs:
        return []
    return clnn.autograd.grad(roots, inputs, [clnn.ones_like(o) * scale for o in roots], allow_unused=True, retain_graph=True)


def _pairs(op, call, arrays, chosen):
    """What the samples give at once, next to what they give one by one."""
    singles = []
    for i in range(SAMPLES):
        tensors = [cases.to_tensor(_sample(a, i) if on else a, cases.is_float(a)) for a, on in zip(arrays, chosen)]
        outs = _call(op, call, tensors)
        singles.append((outs, _backward(outs, [t for t in tensors if t.requires_grad])))
    packed = [cases.to_tensor(np.stack([_sample(a, i) for i in range(SAMPLES)]) if on else a, cases.is_float(a)) for a, on in zip(arrays, chosen)]
    outs = clnn.vmap(lambda *ts: _call(op, call, ts), tuple(0 if on else None for on in chosen), randomness="different")(*packed)
    yield from ((o[i], singles[i][0][k], f"{op.name}{call} of sample {i}", 2) for k, o in enumerate(outs) for i in range(SAMPLES))
    floats = [on for a, on in zip(arrays, chosen) if cases.is_float(a)]
    grads = _backward(outs, [t for t in packed if t.requires_grad]) if singles[0][1] else []
    for j, (g, on) in enumerate(zip(grads, floats)):
        for i in range(SAMPLES if on else 1):
            want = [s[1][j] for s in singles] if singles[0][1] else [None]
            if want[0] is not None and g is not None:
                yield g[i] if on else g, want[i] if on else sum(want), f"gradient of {op.name}{call}", 10
    yield from _two_at_once(op, call, arrays, [g is not None for g in singles[0][1]])


def _two_at_once(op, call, arrays, used):
    """The backward pass for two gradients of the outputs, the second twice the first."""
    tensors = [cases.to_tensor(a, cases.is_float(a)) for a in arrays]
    outs = _call(op, call, tensors)
    inputs = list(itertools.compress([t for t in tensors if t.requires_grad], used))
    if not inputs:
        return
    want = _backward(outs, inputs)
    got = clnn.vmap(lambda s: tuple(_backward(outs, inputs, s)))(clnn.tensor([1.0, 2.0], dtype=inputs[0].dtype))
    for g, w in zip(got, want):
        yield g[0], w, f"first of two gradients of {op.name}{call}", 10
        yield g[1], w * 2, f"second of two gradients of {op.name}{call}", 10
