"""The derived check of complex numbers: an operator that takes them agrees with its references, every other one refuses them in words."""
from __future__ import annotations

import zlib

import numpy as np

from .._tensor.backward import grad as gradients
from .._tensor.tensor import Tensor
from ..core import dtype as dt
from . import cases
from .basics import NotApplicable, close, limits, two_parts
from .domains import RANDOM

REAL_PARTS = {"complex", "polar", "view_as_complex"}     # their arguments stay real


def _complex(call):
    """The call with complex numbers in place of floats: each takes another float of the array as its imaginary part."""
    def one(a):
        if a.dtype.kind == "c":
            return a.astype(np.complex64)
        if not cases.is_float(a):
            return a
        turned = np.roll(a.reshape(-1), 1).reshape(a.shape) if a.ndim else 0.5 * a
        return (a - 0.75j * turned).astype(np.complex64)
    return call.map(one)


def _calls(op):
    found = cases.calls(op, dt.float32)
    return [call if op.name in REAL_PARTS else _complex(call) for call in found[:1 if cases.builds_are_dear() else 2]]


@two_parts
def complex_numbers(op):
    """Values and gradients of complex numbers, or their refusal."""
    found = _calls(op)
    if not any(a.dtype.kind in "fc" for call in found for a in call.arrays()) or op.name.strip("_") in RANDOM:
        raise NotApplicable("no samples with floats")
    if not op.complex and op.name not in REAL_PARTS:
        _refused(op, found[0])
        yield []
        return
    jobs = []
    for i, call in enumerate(found):
        try:
            jobs.append(_run(op, call))
        except NotImplementedError:                              # some other setting, like a norm made of singular values
            if not i:
                raise
    yield [t for _, outs, _, _, got in jobs for t in (*outs, *got) if isinstance(t, Tensor)]
    torch_fn = cases.torch_function(op)
    for call, outs, leaves, seeds, got in jobs:
        _values(op, torch_fn, call, outs)
        if torch_fn is not None and leaves:
            _gradients(op, torch_fn, call, seeds, got)


def _refused(op, call):
    try:
        outs = cases.run(op, call)[0]
    except Exception as exc:
        assert cases.is_dtype_error(exc), f"{op.name}{call}: {type(exc).__name__}: {exc}"
    else:
        raise AssertionError(f"{op.name}{call}: complex numbers are not declared, but {outs} was computed")


def _run(op, call):
    rng = np.random.default_rng(zlib.crc32(op.name.encode()) + 2)
    outs, tensors = cases.run(op, call, requires_grad=True)
    leaves = [t for t in tensors if t.requires_grad]
    ends = [o for o in outs if isinstance(o, Tensor) and o.requires_grad]
    seeds = [rng.standard_normal(tuple(o.shape)).astype(o.dtype.np) for o in ends]
    seeds = [s * np.complex64(1 - 0.5j) if s.dtype.kind == "c" else s for s in seeds]
    if not leaves or not ends:
        return call, outs, [], [], []
    return call, outs, leaves, seeds, gradients(ends, leaves, [cases.to_tensor(s) for s in seeds], allow_unused=True)


def _values(op, torch_fn, call, outs):
    ran = cases.torch_run(torch_fn, call) if torch_fn is not None else None
    wide = call.map(lambda a: a.astype(np.complex128) if a.dtype.kind == "c" else a)
    wants = [("PyTorch", None if ran is None else ran[0]), ("NumPy", cases.numpy_result(op, wide))]
    for place, want in wants:
        for got, ref in zip(outs, want or ()):
            what = f"{op.name}{call} against {place}"
            got, ref = cases.values(got), cases.values(ref)
            assert (got.dtype.kind == "c") == (ref.dtype.kind == "c"), f"{what}: dtype {got.dtype}, expected {ref.dtype}"
            close(got, ref, *limits(op, dt.from_numpy(got.dtype), 2), what)


def _gradients(op, fn, call, seeds, got):
    import torch
    ran = cases.torch_run(fn, call, requires_grad=True)
    if ran is None:
        return
    outs = [o for o in ran[0] if isinstance(o, torch.Tensor) and o.requires_grad]
    assert len(outs) == len(seeds), f"{op.name}{call}: {len(seeds)} differentiable outputs, PyTorch has {len(outs)}"
    try:
        want = torch.autograd.grad(outs, [t for t in ran[1] if t.requires_grad], [cases.torch_tensor(s) for s in seeds], allow_unused=True)
    except (NotImplementedError, RuntimeError):                  # PyTorch has no gradient here
        return
    for i, (g, w) in enumerate(zip(got, want)):
        what = f"{op.name}{call}: gradient of input {i} against PyTorch's"
        if g is None or w is None:
            present = w if g is None else g
            assert present is None or not np.abs(cases.values(present)).any(), f"{what}: only one is None"
            continue
        g, w = cases.values(g), cases.values(w)
        assert (g.dtype.kind == "c") == (w.dtype.kind == "c"), f"{what}: dtype {g.dtype}, expected {w.dtype}"
        close(g, w, max(1e-3, limits(op, dt.complex64)[0]), max(1e-4, limits(op, dt.complex64)[1]) * max(1.0, float(np.abs(w).max(initial=0))), what)
