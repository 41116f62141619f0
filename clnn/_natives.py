"""PyTorch's functions under its layers: ``native_layer_norm`` and its like, as graphs and older programs call them, with the statistics that they return."""
from __future__ import annotations

import math

from ._tensor.inplace import set_out, type_name
from ._tensor.override import method_of
from ._tensor.tensor import Tensor
from .core import dtype as dt
from .core.shape import wrap_dim
from .graph.op import REGISTRY
from .ops import _bags
from .ops.embedding import _bag_numbers


def _fn(name):
    return REGISTRY[name].fn


def native_layer_norm(input, normalized_shape, weight, bias, eps):
    """(layer_norm, mean, 1 / standard deviation) of ``input``; the statistics keep the normalised dimensions as 1.

    Example::

        >>> clnn.native_layer_norm(clnn.tensor([[0., 2.]]), (2,), None, None, 0.0)
        (tensor([[-1.,  1.]]), tensor([[1.]]), tensor([[1.]]))
    """
    dims = tuple(range(-len(normalized_shape), 0))
    var, mean = _fn("var_mean")(input.detach(), dims, correction=0, keepdim=True)
    return _fn("layer_norm")(input, normalized_shape, weight, bias, eps), mean, (var + eps).rsqrt()


def native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, *, out=None):
    """(batch_norm, mean, 1 / standard deviation of the batch per channel); the statistics are empty unless ``training``."""
    got = _fn("batch_norm")(input, running_mean, running_var, weight, bias, training, momentum, eps)
    if not training:
        return set_out(out, (got, input.new_empty(0), input.new_empty(0)))
    var, mean = _fn("var_mean")(input.detach().to(input.dtype.acc_dtype), (0, *range(2, input.ndim)), correction=0)
    kind = input.dtype if weight is None else weight.dtype
    return set_out(out, (got, mean.to(kind), (var + eps).rsqrt().to(kind)))


def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled=False):
    """Normalisation by the statistics of the batch, in training, or by the running ones; arguments in the order of ``aten``."""
    return _fn("batch_norm")(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled=False):
    """Normalisation of each sample's channels; arguments in the order of ``aten``."""
    return _fn("instance_norm")(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def _native_batch_norm_legit_no_training(input, weight, bias, running_mean, running_var, momentum, eps):
    return native_batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)


def max_pool2d_with_indices(input, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    """(the largest values of windows, their places in the planes)."""
    return _fn("max_pool2d")(input, kernel_size, stride or None, padding, dilation, ceil_mode, True)


def adaptive_max_pool2d(input, output_size):
    """(the largest values of windows that cover the planes, their places)."""
    return _fn("adaptive_max_pool2d")(input, output_size, True)


def _pooling(kind, dims):
    def pool(input, kernel_size, stride=(), *rest, **more):
        return _fn(name)(input, kernel_size, stride or None, *rest, **more)
    name = pool.__name__ = pool.__qualname__ = f"{kind}_pool{dims}d"
    return pool


def _upsample(mode, dims, own):
    def upsample(input, output_size, *rest):
        aligned, factors = rest if len(rest) == 2 else (None, rest[0] if rest else None)
        return _fn("interpolate")(input, output_size, factors if output_size is None else None, mode, aligned)
    upsample.__name__ = upsample.__qualname__ = own
    return upsample


globals().update({f"{kind}_pool{d}d": _pooling(kind, d) for kind in ("max", "avg") for d in (1, 2, 3)})
globals().update({name: _upsample(mode, int(name[-2]), name) for mode, names in {
    "nearest": "upsample_nearest1d upsample_nearest2d upsample_nearest3d", "linear": "upsample_linear1d", "bilinear": "upsample_bilinear2d",
    "nearest-exact": "_upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d", "bicubic": "upsample_bicubic2d",
    "trilinear": "upsample_trilinear3d"}.items() for name in names.split()})


def _native_batch_norm_legit(input, weight, bias, *rest):
    return native_batch_norm(input, weight, bias, *(rest if len(rest) == 5 else (None, None, *rest)))


def native_group_norm(input, weight, bias, N, C, HxW, group, eps):
    """(group_norm, mean, 1 / standard deviation) of ``input`` as (N, C, HxW); the statistics have the shape (N, group)."""
    var, mean = _fn("var_mean")(input.reshape(N, group, C // group * HxW), 2, correction=0)
    out = _fn("group_norm")(input.reshape(N, C, HxW), group, weight, bias, eps)
    return out.reshape(input.shape), mean, (var + eps).rsqrt()


def native_dropout(input, p, train):
    """(dropout, which elements were kept) of ``input``."""
    if not train or p == 0:
        return input.clone(), input.new_ones(input.shape, dtype=dt.bool_)
    from .ops.random import rand_like
    mask = rand_like(input, dtype=dt.float32) >= p
    return input * mask * (0.0 if p == 1 else 1 / (1 - p)), mask


def grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners):
    """``grid_sample`` with numbers for its modes: 0 bilinear, 1 nearest, 2 bicubic; 0 zeros, 1 border, 2 reflection."""
    return _fn("grid_sample")(input, grid, ("bilinear", "nearest", "bicubic")[interpolation_mode], ("zeros", "border", "reflection")[padding_mode],
                              bool(align_corners))


grid_sampler_2d = grid_sampler_3d = grid_sampler


def affine_grid_generator(theta, size, align_corners):
    """``affine_grid`` under its old name."""
    return _fn("affine_grid")(theta, size, bool(align_corners))


def _softmax(input, dim, half_to_float=False):
    return _fn("softmax")(input, dim, dt.float32 if half_to_float else None)


def _log_softmax(input, dim, half_to_float=False):
    return _fn("log_softmax")(input, dim, dt.float32 if half_to_float else None)


def _safe_softmax(input, dim, dtype=None):
    """softmax where rows of nothing but -inf give zeros."""
    empty = (input == -float("inf")).all(dim, keepdim=True)
    out = _fn("softmax")(_fn("where")(empty, 0.0, input), dim, dtype)          # not of -inf alone: its gradient would be NaN
    return _fn("where")(empty, 0.0, out)


def _backward_data(name):
    def backward(grad_output, output, dim, input_dtype):
        if grad_output.shape != output.shape:
            raise RuntimeError(f"{name}_data: grad_output and output differ in shape; got {tuple(grad_output.shape)} and {tuple(output.shape)}")
        at, shape = wrap_dim(dim, output.ndim), output.shape or (1,)        # the kernel takes neither -1 nor 0 dimensions
        return _fn(name)(grad_output.to(output.dtype).reshape(shape), output.reshape(shape), at).reshape(output.shape).to(input_dtype)
    backward.__name__ = f"{name}_data"
    return backward


_softmax_backward_data, _log_softmax_backward_data = _backward_data("_softmax_backward"), _backward_data("_log_softmax_backward")


def norm_except_dim(v, pow=2, dim=0):               # noqa: A002
    """The norm of ``v`` over all dimensions but ``dim``, which stays.

    Example::

        >>> clnn.norm_except_dim(clnn.tensor([[3., 4.], [0., 1.]]))
        tensor([[5.],
                [1.]])
    """
    if pow == 2:
        from .nn.utils.weight_norm import norm_except_dim
        return norm_except_dim(v, dim)
    if dim == -1:
        return v.norm(pow)
    dim %= v.ndim
    out = _fn("norm")(v, pow, tuple(d for d in range(v.ndim) if d != dim), True) if v.ndim > 1 else v.abs()
    return out


def _weight_norm(v, g, dim=0):
    return v * (g / norm_except_dim(v, 2, dim))


def _int_mm(input, mat2):
    """The product of a matrix of int8 or uint8 and one of int8, in int32."""
    return _fn("_int_mm")(input, mat2)


def hash_tensor(input, dim=(), *, keepdim=False, mode=0, out=None):
    """All elements, as the bits of float64 or int64, combined by exclusive or: a uint64 that differs where the data does.

    Args:
        dim: dimensions to combine; all by default.
        mode: 0, the only one.
    """
    if mode != 0:
        raise ValueError("Unknown hash_tensor mode")
    dims = sorted({d % max(1, input.ndim) for d in ((dim,) if isinstance(dim, int) else dim)} or range(input.ndim))
    if input.ndim and any(not input.shape[d] for d in dims):
        raise IndexError(f"hash_tensor: Expected reduction dim {dims[0]} to have non-zero size.")
    bits = input.to(dt.float64).view(dt.int64) if input.dtype.is_floating_point else input.to(dt.int64)
    if not input.ndim:
        return _hashed(out, bits.clone().view(dt.uint64))
    kept = [d for d in range(input.ndim) if d not in dims]
    rows = bits.permute((*kept, *dims)).reshape([input.shape[d] for d in kept] + [math.prod(input.shape[d] for d in dims)])
    while rows.shape[-1] > 1:                                   # halves on each other; the odd element stays
        n = rows.shape[-1] // 2
        low = rows[..., :n] ^ rows[..., n:2 * n]
        rows = _fn("cat")((low, rows[..., 2 * n:]), -1) if rows.shape[-1] % 2 else low
    got = rows[..., 0].contiguous().view(dt.uint64)
    return _hashed(out, got.reshape([1 if d in dims else n for d, n in enumerate(input.shape)]) if keepdim else got)


def _hashed(out, result):
    if out is not None and out.dtype is not dt.uint64:
        raise RuntimeError(f"Expected result to be of dtype uint64, but got {type_name(out.dtype)}")
    return set_out(out, result)


def _is_all_true(input):
    return input.all()


def _is_any_true(input):
    return input.any()


def sym_sum(args):
    """The sum of numbers or of sizes that a trace holds as symbols."""
    return sum(args)


def sym_ite(b, t, f):
    """``t`` if ``b`` else ``f``."""
    return t if b else f


def sym_sqrt(a):
    """The square root of a number."""
    import math
    return math.sqrt(a)


Tensor.hash_tensor = method_of(hash_tensor)


def embedding_bag(weight, indices, offsets, scale_grad_by_freq=False, mode=0, sparse=False, per_sample_weights=None, include_last_offset=False, padding_idx=None):
    """(the bags, the bag of each index, the sizes of bags, for ``mode=2`` the rows that gave the maxima): ``mode`` is 0 for sum, 1 for mean, 2 for max.

    Example::

        >>> clnn.embedding_bag(clnn.eye(2), clnn.tensor([0, 1]), clnn.tensor([0]))[0]
        tensor([[1., 1.]])
    """
    name = ("sum", "mean", "max")[mode]
    bags = _fn("embedding_bag")(indices, weight, offsets, None, 2, scale_grad_by_freq, name, sparse, per_sample_weights, include_last_offset, padding_idx)
    of, sizes, most = (t.to(indices.dtype) for t in _bags_described(weight.detach(), indices, offsets, name, include_last_offset, padding_idx))
    if mode == 0 and padding_idx is None and per_sample_weights is None and weight.dtype is not dt.float64:         # what PyTorch does not note there
        of = of[:0]
    return bags, of, sizes, most


def _bags_described(weight, indices, offsets, mode, include_last, padding):
    starts = (offsets[:-1] if include_last else offsets).to(dt.int64).contiguous()
    of = _bag_numbers(len(indices), starts, False)
    if mode == "sum":
        return of, offsets * 0, offsets * 0
    padding = -1 if padding is None else wrap_dim(padding, weight.shape[0])
    sizes = _fn("scatter_add")(starts * 0, 0, of, (indices != padding).to(dt.int64))
    if mode == "mean":
        return of, sizes, sizes
    kept = _bags.forward(weight, indices, starts, None, padding, mode, False)[1]
    return of, sizes, kept.clamp(min=0)
