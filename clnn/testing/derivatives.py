"""The derived checks of first and second gradients."""
from __future__ import annotations

import zlib

import numpy as np

from .._tensor import repeat
from .._tensor.backward import backward
from .._tensor.backward import grad as gradients
from .._tensor.device import resolve
from .._tensor.tensor import Tensor
from ..core import dtype as dt
from . import cases
from .basics import NotApplicable, close, limits, two_parts
from .cases import to_tensor, values
from .domains import RANDOM


def _wide(device=None):
    return dt.float64 if resolve(device).has_fp64 else dt.float32


def _rng(op):
    return np.random.default_rng(zlib.crc32(op.name.encode()) + 1)


def _outputs_with_grad(op, call):
    outs, tensors = cases.run(op, call, requires_grad=True)
    leaves = [t for t in tensors if t.requires_grad]
    outs = [o for o in outs if isinstance(o, Tensor) and o.requires_grad]
    return outs, leaves


def _seeds(rng, outs):
    return [rng.standard_normal(tuple(o.shape)).astype(o.dtype.np) for o in outs]


def _differentiable(op):
    row = _wide() if not op.dtypes or _wide() in op.dtypes else dt.float32
    if op.name.strip("_") in RANDOM:
        raise NotApplicable("random")
    if op.dtypes and row not in op.dtypes or not cases.has_floats(op):
        raise NotApplicable("takes no floats")
    found = cases.calls(op, row)
    if not found:
        raise NotApplicable("no samples")
    return row, [_off_kinks(c) for c in found]


def _off_kinks(call):
    """Floats moved a little towards zero, each by another part, so that none sits where a function has a kink or two are equal: by more than the steps."""
    rng, part = np.random.default_rng(5), 0.001 if _wide() is dt.float64 else 0.02
    return call.map(lambda a: (a * (1 - 2 * part - 3 * part * rng.random(a.shape))).astype(a.dtype) if cases.is_float(a) else a)


@two_parts
def gradient(op):
    """The gradient against finite differences, and against PyTorch's."""
    row, found = _differentiable(op)
    rng, torch_fn, jobs = _rng(op), cases.torch_function(op), []
    for i, call in enumerate(found[:2] if cases.builds_are_dear() else found):
        outs, leaves = _outputs_with_grad(op, call)
        if not outs or not leaves:
            continue
        seeds = _seeds(rng, outs)
        got = gradients(outs, leaves, [to_tensor(s) for s in seeds], allow_unused=True)
        steps, near = None, []
        if op.gradcheck and i < 4:
            # an input without a gradient, like a class weight, is held fixed
            steps = _directions(call, rng, [g is None for g in got])
            near = [_float_outputs(op, _moved(call, steps, e)) for e in _steps(row)]
        jobs.append((call, seeds, leaves, got, steps, near))
    if not jobs:
        raise NotApplicable("not differentiable")
    yield [t for _, _, _, got, _, near in jobs for group in (got, *near) for t in group if t is not None]
    for call, seeds, leaves, got, steps, near in jobs:
        got = [np.zeros(tuple(t.shape)) if g is None else values(g) for g, t in zip(got, leaves)]
        for g, t in zip(got, leaves):
            assert g.shape == tuple(t.shape), f"{op.name}{call}: gradient of shape {g.shape} for an input of shape {tuple(t.shape)}"
        if near and len(near[0]) == len(seeds) and (row is dt.float64 or torch_fn is None):         # the steps that float32 needs go over kinks
            _compare_slopes(f"{op.name}{call}: directional derivative", got, steps, [_dot(o, seeds) for o in near], row, 2e-5, 3e-2)
        if torch_fn is not None:
            _torch_gradient(op, torch_fn, call, got, seeds, row)


@two_parts
def repeats(op):
    """Operators and backward passes that are repeated as lists of launches give what they give otherwise, for other values, too."""
    row, found = _differentiable(op)
    rng, call = _rng(op), found[0]
    outs, leaves = _outputs_with_grad(op, call)
    if not outs or not leaves:
        raise NotApplicable("not differentiable")
    seeds = _seeds(rng, outs)
    moved = _moved(call, _directions(call, rng, [False] * len(call.arrays())), 1e-3)
    yield _passes(op, call, seeds)
    for _ in range(3):                          # learn what the call and its pass do
        _read(_passes(op, call, seeds))
    got = _read(_passes(op, moved, seeds))
    before, repeat.on = repeat.on, False
    try:
        want = _read(_passes(op, moved, seeds))
    finally:
        repeat.on = before
    for g, w in zip(got, want, strict=True):
        close(g, w, *limits(op, dt.from_numpy(g.dtype), 4), f"{op.name}{call}: repeated")


def _passes(op, call, seeds):
    """The results and gradients of a call, those of leaves added up over two passes."""
    outs, leaves = _outputs_with_grad(op, call)
    given = [to_tensor(s) for s in seeds]
    found = [*outs, *gradients(outs, leaves, given, retain_graph=True, allow_unused=True)]
    backward(outs, given, retain_graph=True)
    backward(outs, given)
    return [t for t in (*found, *[t.grad for t in leaves]) if t is not None]


def _read(tensors):
    """Their values, by the same kernels as where other checks are started meanwhile."""
    cases.pending(tensors)
    return [values(t) for t in tensors]


def _steps(row, wide=1e-6, narrow=1e-3):
    eps = wide if row is dt.float64 else narrow
    return eps, -eps


def _dot(tensors, weights):
    return sum(float((values(t).astype(np.float64) * w).sum()) for t, w in zip(tensors, weights) if t is not None)


def _compare_slopes(what, slopes, steps, ends, row, rtol_wide, rtol_narrow, eps=None):
    """The slope along ``steps`` from gradients, and from the values at both ends."""
    high, low = ends
    eps, rtol = (eps or _steps(row))[0], rtol_wide if row is dt.float64 else rtol_narrow
    want = (high - low) / (2 * eps)
    have = sum(float((g.astype(np.float64) * s).sum()) for g, s in zip(slopes, steps))
    scale = max(1.0, abs(want), max((float(np.abs(g).max(initial=0)) for g in slopes), default=0.0))
    assert abs(have - want) <= rtol * scale * 5, f"{what} {have!r}, finite differences give {want!r}"


def _directions(call, rng, frozen):
    """A random direction for every float array of the call, zero for frozen ones."""
    found = [a for a in call.arrays() if cases.is_float(a)]
    return [rng.standard_normal(a.shape) * (not still) for a, still in zip(found, frozen)]


def _moved(call, steps, eps):
    left = iter(steps)
    return call.map(lambda a: (a + eps * next(left)).astype(a.dtype) if cases.is_float(a) else a)


def _float_outputs(op, call):
    return [o for o in cases.run(op, call)[0] if isinstance(o, Tensor) and o.dtype.is_floating_point]


def _torch_gradient(op, fn, call, got, seeds, row):
    import torch
    ran = cases.torch_run(fn, call, requires_grad=True, params=op.params)
    if ran is None:
        return
    outs = [o for o in ran[0] if isinstance(o, torch.Tensor) and o.requires_grad]
    leaves = [t for t in ran[1] if t.requires_grad]
    if len(outs) != len(seeds):
        assert not outs, f"{op.name}{call}: {len(seeds)} differentiable outputs, PyTorch has {len(outs)}"
        return
    try:
        want = torch.autograd.grad(outs, leaves, [cases.torch_tensor(s) for s in seeds], allow_unused=True)
    except NotImplementedError:                                  # PyTorch has no gradient here
        return
    rtol, atol = (1e-5, 1e-7) if row is dt.float64 else (1e-3, 1e-4)
    for i, (g, w) in enumerate(zip(got, want)):
        w = np.zeros_like(g) if w is None else values(w)
        close(g, w, max(rtol, limits(op, row)[0]), max(atol, limits(op, row)[1]), f"{op.name}{call}: gradient of input {i} against PyTorch's")


@two_parts
def double_gradient(op):
    """The gradient of the gradient against finite differences of the gradient."""
    row, found = _differentiable(op)
    if not op.gradcheck:
        raise NotApplicable("gradcheck=False")
    rng, jobs = _rng(op), []
    for call in found[:1 if cases.builds_are_dear() else 2]:
        outs, leaves = _outputs_with_grad(op, call)
        if not outs or not leaves:
            continue
        seeds = _seeds(rng, outs)
        inner = [rng.standard_normal(tuple(t.shape)) for t in leaves]
        first = gradients(outs, leaves, [to_tensor(s) for s in seeds], create_graph=True, allow_unused=True)
        kept = [(g, to_tensor(u.astype(row.np))) for g, u in zip(first, inner) if g is not None and g.requires_grad]
        second = [None] * len(leaves)
        if kept:
            try:
                second = gradients([g for g, _ in kept], leaves, [u for _, u in kept], allow_unused=True)
            except NotImplementedError as exc:
                raise NotApplicable(str(exc)) from None
        steps = _directions(call, rng, [g is None for g in first])
        near = []
        for e in _steps(row, 1e-5, 5e-4):
            outs_near, leaves_near = _outputs_with_grad(op, _moved(call, steps, e))
            near.append(gradients(outs_near, leaves_near, [to_tensor(s) for s in seeds], allow_unused=True))
        jobs.append((call, leaves, inner, second, steps, near))
    if not jobs:
        raise NotApplicable("not differentiable")
    yield [t for _, _, _, second, _, near in jobs for group in (second, *near) for t in group if t is not None]
    for call, leaves, inner, second, steps, near in jobs:
        second = [np.zeros(tuple(t.shape)) if g is None else values(g) for g, t in zip(second, leaves)]
        _compare_slopes(f"{op.name}{call}: second derivative", second, steps, [_dot(g, inner) for g in near], row, 1e-4, 1e-1,
                        _steps(row, 1e-5, 5e-4))
