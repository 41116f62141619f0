"""Names under ``torch.ops.aten`` that clnn's operators do not have: what the same thing is here. Libraries keep tables of them."""
from __future__ import annotations

import clnn

from .graph.op import REGISTRY


def _to_copy(input, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, memory_format=None):
    return input.to(device=device, dtype=dtype, copy=True)


def alias(input):
    return input.view_as(input)


def slice(input, dim=0, start=None, end=None, step=1):          # noqa: A001
    index = [_slice(None)] * (dim % input.dim()) + [_slice(start, end, step)]
    return input[tuple(index)]


_slice = __builtins__["slice"] if isinstance(__builtins__, dict) else __builtins__.slice


def _pin_memory(input, device=None):
    return input.pin_memory()


def _unsafe_view(input, size):
    return input.view(size)


def _reshape_alias(input, size, stride):
    return input.as_strided(size, stride)


def _local_scalar_dense(input):
    return input.item()


def lift_fresh(input):
    return input


def lift_fresh_copy(input):
    return input.clone()


def index(input, indices):
    return input[tuple(_slice(None) if i is None else i for i in indices)]


def sym_size(input, dim=None):
    return input.size() if dim is None else input.size(dim)


def sym_stride(input, dim=None):
    return input.stride() if dim is None else input.stride(dim)


def sym_numel(input):
    return input.numel()


def _sparse_addmm(input, mat1, mat2, *, beta=1, alpha=1):
    return clnn.sparse.addmm(input, mat1, mat2, beta=beta, alpha=alpha)


def _sparse_mm_reduce_impl(input, other, reduce):
    return clnn.sparse.mm(input, other, reduce), input.values().new_empty(0)


def _unique2(input, sorted=True, return_inverse=False, return_counts=False):          # noqa: A002
    values, inverse, counts = clnn.unique(input, sorted, True, True)
    return values, inverse if return_inverse else inverse.new_empty(0), counts if return_counts else counts.new_empty(0)


def native_layer_norm(input, normalized_shape, weight, bias, eps):
    dims = tuple(range(-len(normalized_shape), 0))
    var, mean = clnn.var_mean(input, dims, correction=0, keepdim=True)
    return clnn.nn.functional.layer_norm(input, normalized_shape, weight, bias, eps), mean, (var + eps).rsqrt()


def im2col(input, kernel_size, dilation, padding, stride):
    return clnn.nn.functional.unfold(input, kernel_size, dilation, padding, stride)


def col2im(input, output_size, kernel_size, dilation, padding, stride):
    return clnn.nn.functional.fold(input, output_size, kernel_size, dilation, padding, stride)


_OTHER = {"_adaptive_avg_pool2d": "adaptive_avg_pool2d", "_adaptive_avg_pool3d": "adaptive_avg_pool3d"}


def find(name):
    """The function that PyTorch has as ``aten::name``; None when there is none."""
    own = globals().get(name)
    if getattr(own, "__module__", None) == __name__ and name != "find":
        return own
    if name in _OTHER:
        return REGISTRY[_OTHER[name]].fn
    public = getattr(clnn, name, None)
    return public if callable(public) and not isinstance(public, type) else None
