"""Matrix products: mm, bmm, matmul with full broadcasting, linear and the add-products."""
from __future__ import annotations

import functools
import math

import numpy as np

from .._tensor.declare import composite, kernel
from .._tensor.grad_mode import state
from .._tensor.inplace import type_name
from .._tensor.refusals import spoken
from .._tensor.repeat import repeated
from .._tensor.splice import spliced
from .._tensor.tensor import Tensor, empty, make
from ..core import dtype as dt
from ..core.shape import Size, broadcast_shapes, broadcast_strides, collapse
from ..graph.node import Storage
from ..graph.op import REGISTRY
from . import creation
from ._gemm import gemm
from .arithmetic import lasting, whole_factor


def _check(name, a, b):
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        raise TypeError(f"{name}(): both operands must be Tensors, got {type(a).__name__} and {type(b).__name__}")
    if a._storage.device is not b._storage.device:
        raise RuntimeError(f"Expected all tensors to be on the same device, but found at least two devices, {a.device} and {b.device}! ({name})")
    if a.dtype is not b.dtype and state.autocast is None:           # autocast brings both to one dtype
        raise RuntimeError(_unlike(name, a, b))
    if a.dtype is dt.bool_:
        raise NotImplementedError(f'"{name}" not implemented for \'Bool\'')


def _unlike(name, a, b):
    """What PyTorch says of operands of two dtypes: the words of the product that would do the work."""
    if name == "bmm" or name == "matmul" and len(b.shape) > 2:
        return f"expected scalar type {type_name(a.dtype)} but found {type_name(b.dtype)} ({name})"
    if name == "linear":
        return f"mat1 and mat2 must have the same dtype, but got {type_name(a.dtype)} and {type_name(b.dtype)} (linear)"
    return f"expected m1 and m2 to have the same dtype, but got: {spoken(a.dtype)} != {spoken(b.dtype)} ({name})"


def _misfit(name, a, b):
    """The error of shapes whose inner sizes differ, in PyTorch's words: those of the product that would do the work."""
    a, b = tuple(a), tuple(b)
    rows = math.prod(a[:-1])
    if len(a) == len(b) == 1:
        text = f"inconsistent tensor size, expected tensor [{a[0]}] and src [{b[0]}] to have the same number of elements, but got {a[0]} and {b[0]} elements respectively"
    elif len(b) == 1:
        text = f"size mismatch, got input ({rows}), mat ({rows}x{a[-1]}), vec ({b[0]})"
    elif len(b) == 2:
        text = f"mat1 and mat2 shapes cannot be multiplied ({rows}x{a[-1] if a else 0} and {b[0]}x{b[1]})"
    else:
        try:
            stack = math.prod(broadcast_shapes(a[:-2], b[:-2])) if name == "matmul" else a[0]
        except ValueError as exc:
            return RuntimeError(f"{exc} ({name}: a.shape={a}, b.shape={b})")
        text = (f"Expected size for first two dimensions of batch2 tensor to be: [{stack}, {a[-1]}] but got: "
                f"[{stack if name == 'matmul' else b[0]}, {b[-2]}].")
    return RuntimeError(f"{text} ({name}: a.shape={a}, b.shape={b})")


def product(a, b, bias=None, alpha=1.0, epilogue="", out_dtype=None):
    """``a @ b`` of matrices or stacks of them (broadcast), any strides, in one enqueue of the GEMM family."""
    if a.dtype.is_complex:
        return _complex_product(a, b)
    if len(a.shape) == 2 == len(b.shape) and a._numel and b._numel:
        return _product2d(a, b, bias, alpha, epilogue, out_dtype or a.dtype)
    M, K, N = a.shape[-2], a.shape[-1], b.shape[-1]
    lead = a.shape[:-2] if a.shape[:-2] == b.shape[:-2] else broadcast_shapes(tuple(a.shape[:-2]), tuple(b.shape[:-2]))
    device = a._storage.device
    out = empty(Size(tuple(lead) + (M, N)), out_dtype or a.dtype, device)
    if out._numel == 0:
        return out
    if K == 0:
        out = creation.filled(out.shape, 0, out.dtype, device)
        return out if bias is None else out + bias
    batch, steps = 1, (0, 0, 0)
    if lead:
        sizes, walks = collapse(tuple(lead), (broadcast_strides(tuple(a.shape[:-2]), a._strides[:-2], tuple(lead)),
                                              broadcast_strides(tuple(b.shape[:-2]), b._strides[:-2], tuple(lead)), out._strides[:-2]))
        if len(sizes) > 2:
            return product(a.expand(*lead, M, K).contiguous(), b.expand(*lead, K, N).contiguous(), bias, alpha, epilogue, out_dtype)
        batch, steps = (sizes[0], tuple(w[0] for w in walks)) if len(sizes) == 1 else (sizes, tuple(zip(*walks)))
    extra = None if bias is None else (bias._storage.buffer(), bias._offset)
    gemm(device, a.dtype, M, N, K, a._storage.buffer(), a._offset, a._strides[-2:], b._storage.buffer(), b._offset, b._strides[-2:],
         out._storage.buf, 0, N, batch, steps, alpha=alpha, bias=extra, epilogue=epilogue, out_dtype=out_dtype)
    return out


def _product2d(a, b, bias, alpha, epilogue, out_dtype, turned=False):
    """:func:`product` of two matrices that have elements, with the least host work; ``turned``: by the transpose of ``b``."""
    if 0 in a._strides and 1 not in a._strides:     # an expanded gradient: no index of it follows memory, which its rows would cost more than a copy
        a = a.contiguous()
    if 0 in b._strides and 1 not in b._strides:
        b = b.contiguous()
    M, K = a.shape
    N, b_strides = (b.shape[0], b._strides[::-1]) if turned else (b.shape[1], b._strides)
    device = a._storage.device
    nbytes = M * N * out_dtype.itemsize
    buf = device.alloc(nbytes)
    extra = None if bias is None else (bias._storage.buffer(), bias._offset)
    gemm(device, a.dtype if a.dtype is b.dtype else (a.dtype, b.dtype), M, N, K, a._storage.buffer(), a._offset, a._strides,
         b._storage.buffer(), b._offset, b_strides, buf, 0, N, alpha=alpha, bias=extra, epilogue=epilogue, out_dtype=out_dtype)
    return make(Storage(device, nbytes, buf), Size((M, N)), out_dtype, M * N)


def _complex_product(a, b):
    """:func:`product` of complex matrices as one of real ones: rows (re, im, re, im, ...) of ``a`` by ``b`` with each row (re, im, ...) followed by that of
    i times it, (-im, re, ...). What comes out are the complex numbers as they lie in memory."""
    M, K, N = a.shape[-2], a.shape[-1], b.shape[-1]
    view_as_real = REGISTRY["view_as_real"].fn
    left = view_as_real(a.contiguous()).reshape(*a.shape[:-2], M, 2 * K)
    right = view_as_real(REGISTRY["stack"].fn([b, b * 1j], -2)).reshape(*b.shape[:-2], 2 * K, 2 * N)
    r = product(left, right)
    shape = Size((*r.shape[:-1], N))
    return make(r._storage, shape, a.dtype, shape.numel())


def _mats(rng_shapes):
    def make():
        rng = np.random.default_rng(3)
        return [(tuple(rng.standard_normal(s).astype("float32") for s in shapes), {}) for shapes in rng_shapes]
    return make


def _right_grad(by, g, input, strides):
    """The gradient of the second operand, which lies in memory like it: the weight in ``x @ w.t()`` gets one in rows."""
    columns = strides == (1, input.shape[1]) and 1 not in (input.shape[1], g.shape[1])
    return by(g.mT, input).mT if columns else by(input.mT, g)


@functools.partial(repeated, mode="whole")
def _mm_grads(g, input, mat2, needs):
    return product(g, mat2.mT) if needs[0] else None, _right_grad(product, g, input, mat2._strides) if needs[1] else None


@functools.partial(repeated, mode="whole")
def _bmm_grads(g, input, mat2, needs):
    return product(g, mat2.mT) if needs[0] else None, product(input.mT, g) if needs[1] else None


@kernel("mm", complex=True, autocast="low", repeat=True, together=_mm_grads, numpy=np.matmul, samples=_mats([((3, 4), (4, 5)), ((1, 7), (7, 1)), ((33, 17), (17, 65))]),
        vjp=dict(input=lambda g, mat2: mm(g, mat2.t()), mat2=lambda g, input, mat2_strides: _right_grad(mm, g, input, mat2_strides)),
        errors=[((np.ones((2, 3), "f"), np.ones((4, 5), "f")), {}, RuntimeError,
                 "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5) (mm: a.shape=(2, 3), b.shape=(4, 5))")])
def mm(input, mat2):
    """Product of two matrices: ``(M, K) @ (K, N) -> (M, N)``."""
    _check("mm", input, mat2)
    if len(input.shape) != 2 or len(mat2.shape) != 2:
        raise RuntimeError(f"{'mat2' if len(input.shape) == 2 else 'self'} must be a matrix (mm: a.shape={tuple(input.shape)}, b.shape={tuple(mat2.shape)})")
    if input.shape[1] != mat2.shape[0]:
        raise _misfit("mm", input.shape, mat2.shape)
    return product(input, mat2)


@kernel("_bmm", complex=True, method=False, autocast="low", repeat=True, together=_bmm_grads,
        vjp=dict(input=lambda g, mat2: _bmm(g, mat2.transpose(-2, -1)), mat2=lambda g, input: _bmm(input.transpose(-2, -1), g)))
def _bmm(input, mat2):
    return product(input, mat2)


_bmm.op.grad_name = "BmmBackward0"


@kernel("_mv", complex=True, method=False, repeat=True, autocast="low",
        vjp=dict(input=lambda g, vec: g.unsqueeze(1) * vec, vec=lambda g, input: _mv(input.t(), g)))
def _mv(input, vec):
    r = product(input, vec.unsqueeze(1))
    return make(r._storage, Size((input.shape[0],)), r.dtype, input.shape[0])


_mv.op.grad_name = "MvBackward0"


def _in_float(input, mat2):
    return matmul(input.float(), mat2.float())


@kernel("_wide_product", method=False, repeat=True, decompose=_in_float,
        vjp=dict(input=lambda g, mat2: matmul(g.to(mat2.dtype), mat2.mT), mat2=lambda g, input: matmul(input.mT, g.to(input.dtype))))
def _wide_product(input, mat2):
    return product(input, mat2, out_dtype=dt.float32)


@kernel("_int_mm", method=False, repeat=True, errors=[
    ((np.ones((2, 3), "i1"), np.ones((4, 5), "i1")), {}, RuntimeError, "self.size(1) needs to match mat2.size(0) but got 3 and 4"),
    ((np.ones((2, 3), "f"), np.ones((3, 5), "i1")), {}, RuntimeError, "Expected self dtype to be int8 or uint8 but got Float")])
def _int_mm(input, mat2):
    """Product of a matrix of int8 or uint8 and one of int8, in int32."""
    for t, name in ((input, "self"), (mat2, "mat2")):
        if len(t.shape) != 2:
            raise RuntimeError(f"Expected {name} to be of dimension 2 but got {len(t.shape)}")
    if input.shape[1] != mat2.shape[0]:
        raise RuntimeError(f"self.size(1) needs to match mat2.size(0) but got {input.shape[1]} and {mat2.shape[0]}")
    if input.dtype not in (dt.int8, dt.uint8):
        raise RuntimeError(f"Expected self dtype to be int8 or uint8 but got {type_name(input.dtype)}")
    if mat2.dtype is not dt.int8:
        raise RuntimeError(f"Expected mat2 dtype to be of type int8 but got {type_name(mat2.dtype)}")
    return product(input, mat2, out_dtype=dt.int32)


@composite("bmm", repeat=True, complex=True, numpy=np.matmul, samples=_mats([((2, 3, 4), (2, 4, 5))]))
def bmm(input, mat2):
    """Products of two stacks of matrices: ``(B, M, K) @ (B, K, N) -> (B, M, N)``."""
    _check("bmm", input, mat2)
    for t, what in ((input, "batch1"), (mat2, "batch2")):
        if t.ndim != 3:
            raise RuntimeError(f"{what} must be a 3D tensor (bmm: a.shape={tuple(input.shape)}, b.shape={tuple(mat2.shape)})")
    if input.shape[0] != mat2.shape[0] or input.shape[2] != mat2.shape[1]:
        raise _misfit("bmm", input.shape, mat2.shape)
    return _bmm(input, mat2)


@spliced
def _product_of_rows(input, other):
    return mm(input.flatten(0, -2), other).reshape(*input.shape[:-1], other.shape[-1])


@composite("matmul", repeat=True, entry=_product_of_rows, complex=True, numpy=np.matmul,
           samples=_mats([((3,), (3,)), ((3, 4), (4,)), ((4,), (4, 5)), ((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)), ((2, 1, 3, 4), (5, 4, 2))]))
def matmul(input, other):
    """Product by NumPy's rules: vectors, matrices, and stacks of matrices that broadcast.

    Args:
        input: ``(K,)``, ``(M, K)`` or ``(*, M, K)``.
        other: ``(K,)``, ``(K, N)`` or ``(*, K, N)``.

    Raises:
        RuntimeError: the inner sizes differ or the stacks do not broadcast.
    """
    _check("matmul", input, other)
    na, nb = len(input.shape), len(other.shape)
    if na == 0 or nb == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {na}D and {nb}D")
    if na == 2 and nb == 2:
        return mm(input, other)
    if na == 2 and nb == 1 and input.shape[1] == other.shape[0]:
        return _mv(input, other)
    given = input.shape, other.shape
    if na == 1:
        input = input.unsqueeze(0)
    if nb == 1:
        other = other.unsqueeze(1)
    if input.shape[-1] != other.shape[-2]:
        raise _misfit("matmul", *given)
    if other.ndim == 2:
        r = _product_of_rows(input, other) if input.ndim > 2 else mm(input, other)
    else:
        try:
            broadcast_shapes(tuple(input.shape[:-2]), tuple(other.shape[:-2]))
        except ValueError as exc:
            raise RuntimeError(f"{exc} (matmul: a.shape={tuple(input.shape)}, b.shape={tuple(other.shape)})") from None
        r = _bmm(input, other)
    if na == 1:
        r = r.squeeze(-2)
    return r.squeeze(-1) if nb == 1 else r


@functools.partial(repeated, mode="whole")
def _linear_grads(g, input, weight, needs):
    return product(g, weight) if needs[0] else None, product(g.t(), input) if needs[1] else None, g.sum(0) if needs[2] else None


@kernel("_linear2d", complex=True, method=False, autocast="low", repeat=True, together=_linear_grads,
        vjp=dict(input=lambda g, weight: mm(g, weight), weight=lambda g, input: mm(g.t(), input), bias=lambda g: g.sum(0)))
def _linear2d(input, weight, bias):
    if weight.shape[0] == 0 or input.shape[0] == 0 or input.shape[1] == 0 or input.dtype.is_complex:
        r = product(input, weight.t())
        return r if bias is None else r + bias
    return _product2d(input, weight, None if bias is None else bias.contiguous(), 1.0, "", input.dtype, True)


_linear2d.op.grad_name = "AddmmBackward0"


@spliced
def _linear_of_rows(input, weight, bias):
    r = _linear2d(input.reshape(-1, input.shape[-1]), weight, bias).reshape(*input.shape[:-1], weight.shape[0])
    if bias is None and r._grad_fn is not None:
        r._grad_fn.label = "UnsafeViewBackward0"
    return r


@composite("linear", repeat=True, entry=_linear_of_rows, complex=True, method=False, torch="nn.functional.linear")
def linear(input, weight, bias=None):
    """``input @ weight.T + bias``.

    Args:
        input: ``(*, in_features)``.
        weight: ``(out_features, in_features)`` or ``(in_features,)``.
        bias: ``(out_features,)`` or None.

    Raises:
        RuntimeError: the feature sizes differ.
    """
    if len(input.shape) == 2 == len(weight.shape) and bias is not None and input.shape[1] == weight.shape[1] and bias.shape == weight.shape[:1] \
            and input.dtype is weight.dtype is bias.dtype and input._storage.device is weight._storage.device and input.dtype is not dt.bool_:
        return _linear2d(input, weight, bias)
    _check("linear" if bias is not None else "mm", input, weight)
    if not input.shape or not weight.shape:
        raise RuntimeError(f"both arguments to linear need to be at least 1D, but they are {input.ndim}D and {weight.ndim}D")
    if weight.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {weight.ndim}D (linear: weight.shape={tuple(weight.shape)})")
    if weight.ndim == 1:
        r = matmul(input, weight)
        return r if bias is None else r + bias
    if input.shape[-1] != weight.shape[-1]:
        raise _misfit("linear", input.shape, weight.shape[::-1])
    if bias is not None and bias.dtype is not weight.dtype and state.autocast is None:
        raise RuntimeError(f"self and mat2 must have the same dtype, but got {type_name(bias.dtype)} and {type_name(weight.dtype)} (bias and weight of linear)")
    if bias is not None and bias.shape and bias.shape[-1] not in (1, weight.shape[0]):
        raise RuntimeError(f"The expanded size of the tensor ({weight.shape[0]}) must match the existing size ({bias.shape[-1]}) at the last dimension "
                           f"(linear: weight.shape={tuple(weight.shape)}, bias.shape={tuple(bias.shape)})")
    if len(input.shape) == 2:
        r = _linear2d(input, weight, bias)
    else:
        r = _linear_of_rows(input, weight, bias)
    if bias is None and r._grad_fn is not None and len(input.shape) == 2:
        r._grad_fn.label = "MmBackward0"
    return r


@composite("mv", repeat=True, complex=True)
def mv(input, vec):
    """Matrix times vector."""
    if input.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {input.ndim}, {vec.ndim} (mv)")
    return matmul(input, vec)


def _once_rounded(input, a, b, beta, alpha):
    """The add-product of 16-bit floats, rounded once as in PyTorch; None where :func:`_combine` gives that, or an error, anyway."""
    if input.dtype is not a.dtype or a.dtype is not b.dtype or not a.dtype.round_trip or state.autocast is not None or a.shape[-1] != b.shape[-2] or beta == 0:
        return None
    return _combine(input.float(), _wide_product(a, b), beta, alpha).to(a.dtype)


def _combine(input, prod, beta, alpha, error=False):
    if alpha != 1:
        prod = lasting(prod * whole_factor("alpha", alpha, input, prod, error=error))
    if beta == 0:
        if not (input._rg and state.grad):
            return prod
        return prod + input.masked_fill(creation.filled(Size(()), 1, dt.bool_, input._storage.device), 0)      # its values are not read; its gradient is zero
    try:
        r = prod + (input if beta == 1 else lasting(input * whole_factor("beta", beta, input, prod, error=error)))
    except RuntimeError:
        _fitting(input, prod)
        raise
    if len(input.shape) >= len(prod.shape) and r.shape != prod.shape:
        _fitting(input, prod)
    return r


def _fitting(input, prod):
    """Raise where ``input`` is not of the product's shape, nor can be repeated to it."""
    if state.autocast is None:
        input.expand(prod.shape)


@composite("addmm", repeat="ready small", complex=True, inplace=True, old="beta alpha")
def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    """``beta * input + alpha * mat1 @ mat2``."""
    if mat1.ndim == 2 and mat2.ndim == 2 and beta == 1 and alpha == 1 and input.ndim == 1 and input.shape[0] == mat2.shape[1] \
            and mat1.shape[1] == mat2.shape[0] and input.dtype is mat1.dtype is mat2.dtype:
        return _linear2d(mat1, mat2.t(), input)
    once = _once_rounded(input, mat1, mat2, beta, alpha) if mat1.ndim == 2 and mat2.ndim == 2 else None
    return _combine(input, mm(mat1, mat2), beta, alpha) if once is None else once


@composite("addmv", repeat="ready small", complex=True, inplace=True, old="beta alpha")
def addmv(input, mat, vec, *, beta=1, alpha=1):
    """``beta * input + alpha * mat @ vec``."""
    return _combine(input, mv(mat, vec), beta, alpha)


@composite("baddbmm", repeat="ready small", complex=True, inplace=True, old="beta alpha")
def baddbmm(input, batch1, batch2, *, beta=1, alpha=1):
    """``beta * input + alpha * batch1 @ batch2`` for stacks of matrices."""
    once = _once_rounded(input, batch1, batch2, beta, alpha) if batch1.ndim == 3 == batch2.ndim and batch1.shape[0] == batch2.shape[0] else None
    return _combine(input, bmm(batch1, batch2), beta, alpha) if once is None else once


@composite("addbmm", repeat="ready small", complex=True, inplace=True, old="beta alpha")
def addbmm(input, batch1, batch2, *, beta=1, alpha=1):
    """``beta * input + alpha * (sum over the stack of batch1 @ batch2)``."""
    if len(batch1.shape) == 3 == len(batch2.shape) and batch1.shape[0] != batch2.shape[0]:
        raise RuntimeError(f"batch1 and batch2 must have same number of batches, got {batch1.shape[0]} and {batch2.shape[0]}")
    return _combine(input, bmm(batch1, batch2).sum(0, dtype=batch1.dtype), beta, alpha)


@composite("addr", repeat="ready small", complex=True, inplace=True, old="beta alpha")
def addr(input, vec1, vec2, *, beta=1, alpha=1):
    """``beta * input + alpha * outer(vec1, vec2)``."""
    for name, vec in (("vec1", vec1), ("vec2", vec2)):
        if len(vec.shape) != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {len(vec.shape)}-D")
    return _combine(input, vec1.unsqueeze(1) * vec2.unsqueeze(0), beta, alpha, True)
