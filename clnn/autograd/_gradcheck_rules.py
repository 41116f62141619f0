"""What :func:`clnn.autograd.gradcheck` asks of a function besides its numbers."""
from __future__ import annotations

import warnings

from .._tensor.backward import grad
from .._tensor.tensor import Tensor
from ..core.layout import strided
from ..ops.creation import zeros_like
from ..ops.random import randn_like
from .function import Function

BATCHED = """gradcheck or gradgradcheck failed while testing batched gradient computation.
This means that a backward pass for several gradients of the outputs at once, by vmap, does not give what one pass for each gives. Where the function is
not meant for that, leave ``check_batched_grad`` False.
"""
NOTES = 'Please look at "Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"'
COMPATIBILITY = ("Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it may break existing callers of this "
                 'function. If this is true for you, you can call this function with "check_undefined_grad=False" to disable the feature')


class GradcheckError(RuntimeError):
    """Raised when an analytical gradient is wrong."""


class _Undefined(Function):
    """Its input, to which no gradient goes back."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return None


def check_flags(forward, backward, batched, batched_forward):
    if not (forward or backward):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if batched and not backward:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if batched_forward and not forward:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")


def check_inputs(inputs):
    """Raise where differences can't be taken, warn where they are too coarse."""
    some = False
    for i, t in enumerate(inputs):
        if not isinstance(t, Tensor) or not t.requires_grad:
            continue
        some = True
        if t.dtype.itemsize < (16 if t.dtype.is_complex else 8):
            warnings.warn(f"Input #{i} requires gradient and is not a double precision floating point or complex. This check will likely fail if all the "
                          "inputs are not of double precision floating point or complex. ", UserWarning, stacklevel=4)
        content = t if t.layout is strided else t._values() if t.is_sparse else t.values()
        if any(step <= 0 and n > 1 for step, n in zip(content.stride(), content.shape)):
            raise RuntimeError(f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are non-overlapping to be able to "
                               "compute the numerical gradients correctly. You should call .contiguous on the input before passing it to gradcheck.")
    if not some:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True.")


def dense_form(func, inputs, masked):
    """``func`` and ``inputs`` with dense tensors in place of sparse ones: what they hold for all elements, or ``masked`` for those that they specify."""
    if all(t.layout is strided for t in inputs if isinstance(t, Tensor)):
        return func, inputs
    from .. import sparse_coo_tensor
    dense, back = list(inputs), {}
    for i, t in enumerate(inputs):
        if not isinstance(t, Tensor) or t.layout is strided:
            continue
        if masked and t.is_sparse:
            dense[i] = t._values().detach().clone()
            back[i] = lambda values, t=t: sparse_coo_tensor(t._indices(), values, t.shape, is_coalesced=t.is_coalesced())
        else:
            dense[i] = t.detach().to_dense()
            back[i] = lambda full, t=t: full.to_sparse(t.sparse_dim()) if t.is_sparse else full.to_sparse(layout=t.layout)
        dense[i].requires_grad_(t.requires_grad)
    return (lambda *args: func(*[back[i](a) if i in back else a for i, a in enumerate(args)])), tuple(dense)


def check_outputs(outputs):
    if any(t.layout is not strided for t in outputs):
        raise ValueError("Sparse output is not supported at gradcheck yet. Please call to_dense(masked_grad=...) on the output of fn for gradcheck.")


def check_product(outputs, wanted, masked):
    """Gradients of zero have to give zeros, of the input's layout."""
    for g, t in zip(grad(outputs, wanted, [zeros_like(o) for o in outputs], allow_unused=True), wanted):
        if g is None:
            continue
        if g.layout is not strided:
            if g.layout is not t.layout:
                raise GradcheckError(f"grad is incorrect layout ({g.layout} is not {t.layout})")
            kind = str(g.layout).partition(".")[2].replace("_coo", "")
            for name in ("sparse_dim", "dense_dim"):
                have, want = getattr(g, name)(), getattr(t, name)()
                if have != want:
                    raise GradcheckError(f"grad is {kind} tensor, but has incorrect {name} {have}, expected {want}")
            g = g.to_dense()
        if not (g.allclose(zeros_like(g)) if masked else (g == 0).all()):
            raise GradcheckError("backward not multiplied by grad_output")


def check_undefined(func, inputs, wanted, differentiable):
    """Gradients of outputs that are missing count as zeros, all at once and one after another."""
    outs = differentiable(func(*inputs))
    groups = [[_Undefined.apply(o) for o in outs]]
    for i in range(len(outs) if len(outs) > 1 else 0):
        groups.append([_Undefined.apply(o) if i == k else o for k, o in enumerate(differentiable(func(*inputs)))])
    for outs in groups:
        try:
            got = grad(outs, wanted, [zeros_like(o) for o in outs], allow_unused=True)
        except RuntimeError as error:
            warnings.warn(COMPATIBILITY, UserWarning, stacklevel=4)
            raise GradcheckError("Expected backward function to handle undefined output grads. " + NOTES) from error
        if any(g is not None and not bool((g.to_dense() == 0).all() if g.layout is not strided else (g == 0).all()) for g in got):
            warnings.warn(COMPATIBILITY, UserWarning, stacklevel=4)
            raise GradcheckError("Expected all input grads to be undefined or zero when all output grads are undefined or zero. " + NOTES)


def check_batched(output, index, wanted):
    """One pass for two gradients of ``output`` against two passes."""
    from .._vmap.mapping import vmap
    from ..ops.joining import stack

    def pulled(v):
        got = grad(output, wanted, v, retain_graph=True, allow_unused=True)
        return tuple(zeros_like(t) if g is None else g for g, t in zip(got, wanted))
    seeds = [randn_like(output) for _ in range(2)]
    expected = [stack(shards) for shards in zip(*map(pulled, seeds))]
    try:
        got = vmap(pulled)(stack(seeds))
    except RuntimeError as error:
        raise GradcheckError(f"While computing batched gradients, got: {error}\n\n{BATCHED}") from error
    for k, (have, want) in enumerate(zip(got, expected)):
        if not have.allclose(want):
            raise GradcheckError(f"\nFor output {index} and input {k}:\n\n{BATCHED}\nGot:\n{have}\n\nExpected:\n{want}")
