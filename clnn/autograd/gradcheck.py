"""Comparing gradients with finite differences."""
from __future__ import annotations

import numpy as np

from .._tensor.backward import grad
from .._tensor.grad_mode import enable_grad
from .._tensor.interop import from_array, read
from .._tensor.tensor import Tensor
from ..graph.op import REGISTRY
from ..ops.creation import empty
from . import _gradcheck_rules as rules
from ._gradcheck_rules import GradcheckError

_OFTEN = """

NOTE: If your op relies on non-deterministic operations i.e., it is listed here:
https://pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html
this failure might be expected. Where it is, give ``nondet_tol`` what the results may differ by.
"""


def _outputs(got):
    got = got if isinstance(got, (tuple, list)) else (got,)
    return [REGISTRY["view_as_real"].fn(o) if o.dtype.is_complex else o for o in got if isinstance(o, Tensor) and o.dtype.differentiable]


def _real(array):
    """Complex numbers as pairs in one more dimension: real and imaginary parts are checked as variables of their own."""
    return array.view(array.real.dtype).reshape(*array.shape, 2) if array.dtype.kind == "c" else array


def _shown(matrix, like):
    return from_array(np.ascontiguousarray(matrix), like._storage.device)


def _numerical(fn, inputs, t, eps):
    """One matrix (elements of t, elements of output) per output, by central differences."""
    start = _real(read(t.detach())).astype(np.float64)
    flat = start.reshape(-1)
    handle = t.data                             # what was kept for backward stays valid

    def evaluate(values):
        new = values.reshape(start.shape)
        new = new.view(np.complex128).reshape(start.shape[:-1]) if t.dtype.is_complex else new
        handle._assign(from_array(new, t._storage.device, t.dtype))
        return [read(o.detach()).astype(np.float64).reshape(-1) for o in _outputs(fn(*inputs))]
    rows = []
    try:
        for i in range(flat.size):
            shifted = flat.copy()
            shifted[i] += eps
            up = evaluate(shifted)
            shifted[i] = flat[i] - eps
            down = evaluate(shifted)
            rows.append([(u - d) / (2 * eps) for u, d in zip(up, down)])
    finally:
        evaluate(flat)
    return [np.stack(column) for column in zip(*rows)] if rows else []


def _analytical(out, wanted):
    """One matrix (elements of input, elements of output) per input, a backward pass per output element."""
    columns = [[] for _ in wanted]
    flat = np.zeros(out.numel())
    for j in range(out.numel()):
        flat[:] = 0
        flat[j] = 1
        seed = from_array(flat.reshape(tuple(out.shape)), out._storage.device, out.dtype)
        for k, g in enumerate(grad(out, wanted, seed, retain_graph=True, allow_unused=True)):
            columns[k].append(np.zeros(_variables(wanted[k])) if g is None else _real(read(g.detach().to_dense())).astype(np.float64).reshape(-1))
    return [np.stack(c, 1) if c else np.zeros((_variables(w), 0)) for c, w in zip(columns, wanted)]


def _differentiable(got):
    return [o for o in (got if isinstance(got, (tuple, list)) else (got,)) if o.requires_grad]


def _variables(t):
    return t.numel() * (2 if t.dtype.is_complex else 1)


def gradcheck(func, inputs, *, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True, nondet_tol=0.0, check_undefined_grad=True,
              check_grad_dtypes=False, check_batched_grad=False, check_batched_forward_grad=False, check_forward_ad=False,
              check_backward_ad=True, fast_mode=False, masked=None):
    """Compare the gradients of ``func`` with central differences; True, or GradcheckError.

    Args:
        func: from tensors to a tensor or a tuple of them.
        inputs: tensor or sequence; those that require a gradient (best in float64) are checked.
        eps: step of the differences; ``atol``, ``rtol``: allowed error.
        nondet_tol: allowed difference between two backward passes.
        check_backward_ad, check_forward_ad: which of the derivatives are compared: products with vectors from the left, from the right.

    Example:
        >>> x = clnn.tensor([0.5, 2.0], dtype=clnn.float64, requires_grad=True)
        >>> clnn.autograd.gradcheck(lambda t: t * t, x)
        True
    """
    rules.check_flags(check_forward_ad, check_backward_ad, check_batched_grad, check_batched_forward_grad)
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    masked = bool(masked)
    try:
        rules.check_inputs(inputs)
        wanted = [t for t in inputs if isinstance(t, Tensor) and t.requires_grad]
        outs = _differentiable(func(*inputs))
        rules.check_outputs(outs)
        dense = rules.dense_form(func, inputs, masked)
        leaves = [t for t in dense[1] if isinstance(t, Tensor) and t.requires_grad]
        if check_backward_ad:
            _compare(*dense, leaves, eps, atol, rtol, nondet_tol)
        if check_forward_ad and outs:
            _compare_forward(*dense, leaves, eps, atol, rtol)
        if check_backward_ad and outs:
            for i, out in enumerate(outs if check_batched_grad else ()):
                rules.check_batched(out, i, wanted)
            rules.check_product(outs, wanted, masked)
            if check_undefined_grad:
                rules.check_undefined(func, inputs, wanted, _differentiable)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _compare(func, inputs, wanted, eps, atol, rtol, nondet_tol):
    outs = [o for o in _outputs(func(*inputs))]
    if not outs or not any(o.requires_grad for o in outs):
        if any((o != 0).any() for t in wanted for o in _numerical(func, inputs, t, eps)):
            raise GradcheckError("Numerical gradient for function expected to be zero")
        return
    analytical = [_analytical(o, wanted) if o.requires_grad else [np.zeros((_variables(w), o.numel())) for w in wanted] for o in outs]
    for o, first in zip(outs, analytical):
        if o.requires_grad:
            for a, b in zip(first, _analytical(o, wanted)):
                if not np.allclose(a, b, rtol=0, atol=nondet_tol, equal_nan=True):
                    raise GradcheckError("Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives "
                                         "different values, although analytical gradient matches numerical gradient."
                                         f"The tolerance for nondeterminism was {nondet_tol}." + _OFTEN)
    del outs
    for k, t in enumerate(wanted):
        for j, numerical in enumerate(_numerical(func, inputs, t, eps)):
            if not np.allclose(analytical[j][k], numerical, rtol=rtol, atol=atol, equal_nan=True):
                raise GradcheckError(f"Jacobian mismatch for output {j} with respect to input {k},\nnumerical:{_shown(numerical, t)}\n"
                                     f"analytical:{_shown(analytical[j][k], t)}\n")


def _forward(func, inputs, t):
    """One matrix (elements of ``t``, elements of output) per output, by forward-mode differentiation, a pass per element."""
    from . import forward_ad
    rows, count = [], _variables(t)
    for i in range(count):
        unit = np.zeros(count)
        unit[i] = 1
        unit = unit.view(np.complex128) if t.dtype.is_complex else unit
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(t, from_array(unit.reshape(tuple(t.shape)), t._storage.device, t.dtype))
            outs = _outputs(func(*[dual if x is t else x for x in inputs]))
            tangents = [forward_ad.unpack_dual(o).tangent for o in outs]
            rows.append([np.zeros(o.numel()) if g is None else read(g.detach()).astype(np.float64).reshape(-1) for o, g in zip(outs, tangents)])
    return [np.stack(column) for column in zip(*rows)] if rows else []


def _compare_forward(func, inputs, wanted, eps, atol, rtol):
    for k, t in enumerate(wanted):
        for j, (forward, numerical) in enumerate(zip(_forward(func, inputs, t), _numerical(func, inputs, t, eps))):
            if not np.allclose(forward, numerical, rtol=rtol, atol=atol, equal_nan=True):
                raise GradcheckError(f"Jacobian computed with forward mode mismatch for output {j} with respect to input {k},\nnumerical:{_shown(numerical, t)}\n"
                                     f"analytical:{_shown(forward, t)}\n")


def gradgradcheck(func, inputs, grad_outputs=None, *, eps=1e-6, atol=1e-5, rtol=1e-3, gen_non_contig_grad_outputs=False,
                  raise_exception=True, nondet_tol=0.0, check_undefined_grad=True, check_grad_dtypes=False, check_batched_grad=False,
                  check_fwd_over_rev=False, check_rev_over_rev=True, fast_mode=False, masked=False):
    """Compare second derivatives of ``func`` with central differences of the first; True, or GradcheckError.

    Example:
        >>> x = clnn.tensor([0.5, 1.5], dtype=clnn.float64, requires_grad=True)
        >>> clnn.autograd.gradgradcheck(lambda x: x ** 3, (x,))
        True
    """
    for given, name in ((True, None), (check_undefined_grad, "check_undefined_grad"), (check_batched_grad, "check_batched_grad")):
        if given and not check_rev_over_rev and (name or not check_fwd_over_rev):
            raise AssertionError(f"Setting {name}=True requires check_rev_over_rev to be True" if name else
                                 "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    if grad_outputs is None:
        grad_outputs = tuple(_seed(o, gen_non_contig_grad_outputs) for o in _differentiable(func(*inputs)))
    else:
        grad_outputs = tuple(grad_outputs) if isinstance(grad_outputs, (tuple, list)) else (grad_outputs,)
    count = len(grad_outputs)

    def first_derivative(*args):
        args, seeds = args[:-count], args[-count:]
        wanted = [t for t in args if isinstance(t, Tensor) and t.requires_grad]
        with enable_grad():
            got = grad(_differentiable(func(*args)), wanted, seeds, create_graph=True, allow_unused=True)
        return tuple(g for g in got if g is not None)
    return gradcheck(first_derivative, inputs + grad_outputs, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception, nondet_tol=nondet_tol,
                     check_undefined_grad=check_undefined_grad, check_batched_grad=check_batched_grad, check_forward_ad=check_fwd_over_rev,
                     check_backward_ad=check_rev_over_rev, masked=masked)


def _seed(out, apart):
    """A random gradient of ``out``, as make_tensor draws; ``apart``: with gaps in memory."""
    shape = (*out.shape[:-1], 2 * out.shape[-1]) if apart and out.shape else out.shape
    drawn = empty(shape, dtype=out.dtype, device=out.device).uniform_(-1, 1)
    return (drawn[..., ::2] if apart and out.shape else drawn).detach().requires_grad_()
