"""Names under ``torch.ops.aten`` that clnn's operators do not have: what the same thing is here. Libraries keep tables of them."""
from __future__ import annotations

import clnn

from . import _natives
from .graph.op import REGISTRY
from .ops import fourier


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


def unique_dim(input, dim, sorted=True, return_inverse=False, return_counts=False):          # noqa: A002
    values, inverse, counts = clnn.unique(input, sorted, True, True, dim)
    return values, inverse if return_inverse else inverse.new_empty(0), counts if return_counts else counts.new_empty(0)


def im2col(input, kernel_size, dilation, padding, stride):
    return clnn.nn.functional.unfold(input, kernel_size, dilation, padding, stride)


def col2im(input, output_size, kernel_size, dilation, padding, stride):
    return clnn.nn.functional.fold(input, output_size, kernel_size, dilation, padding, stride)


def threshold_backward(grad_output, input, threshold):
    return clnn.where(input <= threshold, 0, grad_output)


def native_dropout_backward(grad_output, mask, scale):
    return grad_output * mask * scale


def max_pool2d_with_indices_backward(grad_output, input, kernel_size, stride, padding, dilation, ceil_mode, indices):
    planes = input.new_zeros(input.shape).flatten(-2)
    return planes.scatter_add(-1, indices.flatten(-2), grad_output.flatten(-2)).reshape(input.shape)


def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    if transposed:
        kind = getattr(clnn.nn.functional, f"conv_transpose{input.dim() - 2}d")
        return kind(input, weight, bias, stride, padding, output_padding, groups, dilation)
    return REGISTRY["convolution"].fn(input, weight, bias, tuple(stride), tuple(padding), tuple(dilation), groups)


def _convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, benchmark, deterministic, cudnn_enabled, allow_tf32=True):
    return convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    return clnn.nn.functional.embedding(indices, weight, padding_idx if padding_idx >= 0 else None, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)


def log_sigmoid(input):
    return clnn.nn.functional.logsigmoid(input)


_OTHER = {"_adaptive_avg_pool2d": "adaptive_avg_pool2d", "_adaptive_avg_pool3d": "adaptive_avg_pool3d"}


_NORMS = ("backward", "ortho", "forward")        # no factor, 1 / sqrt(n), 1 / n, as the forward transforms name them


def _fft_r2c(input, dim, normalization, onesided):
    return (clnn.fft.rfftn if onesided else clnn.fft.fftn)(input, dim=dim, norm=_NORMS[normalization])


def _fft_c2c(input, dim, normalization, forward):
    return clnn.fft.fftn(input, dim=dim, norm=_NORMS[normalization]) if forward else clnn.fft.ifftn(input, dim=dim, norm=_NORMS[2 - normalization])


def _fft_c2r(input, dim, normalization, last_dim_size):
    return clnn.fft.irfftn(input, [*[input.shape[d] for d in dim[:-1]], last_dim_size], dim, _NORMS[2 - normalization])


def _fft_c2c_scaled(input, dim, back, scale):
    return fourier.fft_c2c(input, dim, back, scale)


def _fft_r2c_scaled(input, dim, onesided, scale):
    return fourier.fft_r2c(input, dim, scale, onesided)


def _fft_c2r_scaled(input, dim, n, scale):
    return fourier.fft_c2r(input, dim, n, scale)


def _aminmax(input):
    return input.aminmax()


def _logcumsumexp(input, dim):
    return input.logcumsumexp(dim)


def _stack(tensors, dim=0):
    return clnn.stack(tensors, dim)


def elu(input, alpha=1, scale=1, input_scale=1):
    return REGISTRY["_elu"].fn(input, alpha, scale, input_scale)


def elu_backward(grad_output, alpha, scale, input_scale, is_result, self_or_result):
    if not is_result:
        return REGISTRY["_elu_backward"].fn(grad_output, self_or_result, alpha, scale, input_scale)
    return grad_output * clnn.where(self_or_result > 0, scale, input_scale * (self_or_result + alpha * scale))


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    return clnn.nn.functional.layer_norm(input, normalized_shape, weight, bias, eps)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True):
    return clnn.nn.functional.group_norm(input, num_groups, weight, bias, eps)


# The parameters of losses after their tensors, as the native operators order them; ``reduction`` is a number there.
_LOSSES = dict(mse_loss="reduction", l1_loss="reduction", soft_margin_loss="reduction", kl_div="reduction", smooth_l1_loss="reduction beta",
               huber_loss="reduction delta", binary_cross_entropy="weight reduction", binary_cross_entropy_with_logits="weight pos_weight reduction",
               hinge_embedding_loss="margin reduction", cosine_embedding_loss="target margin reduction", margin_ranking_loss="target margin reduction",
               triplet_margin_loss="negative margin p eps swap reduction", poisson_nll_loss="log_input full eps reduction",
               nll_loss="weight reduction ignore_index", nll_loss_nd="weight reduction ignore_index", cross_entropy_loss="weight reduction ignore_index label_smoothing")


def _loss(name, order):
    def call(input, target, *args, **kwargs):
        fn = getattr(clnn.nn.functional, name.replace("entropy_loss", "entropy").removesuffix("_nd"))
        values = dict(zip(order, args)) | kwargs
        reduction = values.get("reduction", "mean")
        tensors = [values.pop(n) for n in ("target", "negative") if n in values]
        return fn(input, target, *tensors, **{**values, "reduction": reduction if isinstance(reduction, str) else ("none", "mean", "sum")[reduction]})
    call.__name__ = call.__qualname__ = name
    return call


globals().update({name: _loss(name, order.split()) for name, order in _LOSSES.items()})


def find(name):
    """The function that PyTorch has as ``aten::name``; None when there is none."""
    own = globals().get(name)
    if getattr(own, "__module__", None) == __name__ and name != "find":
        return own
    own = getattr(_natives, name, None)
    if getattr(own, "__module__", None) == _natives.__name__ and name != "_fn":
        return own
    if name in _OTHER:
        return REGISTRY[_OTHER[name]].fn
    if name in REGISTRY or hasattr(clnn.Tensor, name):
        return REGISTRY[name].fn if name in REGISTRY else getattr(clnn.Tensor, name)
    public = getattr(clnn, name, None)
    return public if callable(public) and not isinstance(public, type) else None
