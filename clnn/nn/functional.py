"""Functions behind the layers: ``clnn.nn.functional``, with PyTorch's names, signatures and errors."""
from __future__ import annotations

from math import prod as _prod

from ..core.public import name_functions as _name_functions
from ..core.warn import warn as _warn
from .._tensor.override import twin_of as _twin_of
from ..graph.op import REGISTRY
from .. import ops as _ops
from ..ops import dropout as _dropout
from ..ops.activation import IN_PLACE as _IN_PLACE

_TABLE = """
    relu relu6 hardtanh leaky_relu hardsigmoid hardswish hardshrink softshrink threshold gelu silu mish softplus logsigmoid elu celu selu
    tanhshrink softsign prelu rrelu glu sigmoid tanh
    softmax log_softmax softmin gumbel_softmax
    cross_entropy linear_cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits kl_div
    hinge_embedding_loss margin_ranking_loss cosine_embedding_loss triplet_margin_loss triplet_margin_with_distance_loss multi_margin_loss
    multilabel_margin_loss multilabel_soft_margin_loss soft_margin_loss poisson_nll_loss gaussian_nll_loss ctc_loss
    layer_norm rms_norm batch_norm group_norm instance_norm local_response_norm normalize
    embedding embedding_bag one_hot
    max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d lp_pool1d lp_pool2d lp_pool3d fractional_max_pool2d fractional_max_pool3d
    max_unpool1d max_unpool2d max_unpool3d max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices
    adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices adaptive_max_pool3d_with_indices
    fractional_max_pool2d_with_indices fractional_max_pool3d_with_indices
    interpolate upsample upsample_nearest upsample_bilinear grid_sample affine_grid pixel_shuffle pixel_unshuffle channel_shuffle
    native_channel_shuffle fold pad
    dropout alpha_dropout dropout1d dropout2d dropout3d feature_alpha_dropout
    linear bilinear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d conv_tbc
    scaled_dot_product_attention multi_head_attention_forward grouped_mm
    cosine_similarity pairwise_distance pdist cdist
""".split()
# Names that mean something else as Tensor methods stand under a private name in the operator table.
_RENAMED = {"unfold": "_im2col"}


def _channel_dropout(name, dims):
    def fn(input, p=0.5, training=True, inplace=False):
        if input.ndim not in dims:
            if name == "dropout1d":
                raise RuntimeError(f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D input, input.shape={tuple(input.shape)}")
            _warn(f"{name}: Received a {input.ndim}-D input to {name}, which is deprecated and will result in an error in a future release. To retain the behavior "
                  f"and silence this warning, please use dropout instead. Note that {name} exists to provide channel-wise dropout on inputs with {dims[0] - 1} spatial "
                  f"dimensions, a channel dimension, and an optional batch dimension (i.e. {dims[0]}D or {dims[1]}D inputs).")
        if name == "dropout2d" and input.ndim == 3:                 # PyTorch's reading of it
            _warn("dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired - input is "
                  "interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a future release to interpret the input as one without a "
                  "batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise dropout behavior, please switch to using dropout1d instead.")
        elif input.ndim == dims[0] or name == "dropout3d" and input.ndim != dims[1]:             # no batch dimension
            return _dropout.feature_dropout(input.unsqueeze(0), p, training, inplace).squeeze(0)
        return _dropout.feature_dropout(input, p, training, inplace)
    fn.__name__, fn.__doc__ = name, f"Zero whole channels of ``(N, C, *)`` with probability ``p`` and scale the rest ({dims[1]} dimensions)."
    return fn


dropout, alpha_dropout, feature_alpha_dropout = _dropout.dropout, _dropout.alpha_dropout, _dropout.feature_alpha_dropout
dropout1d, dropout2d, dropout3d = _channel_dropout("dropout1d", (2, 3)), _channel_dropout("dropout2d", (3, 4)), _channel_dropout("dropout3d", (4, 5))
for _name in _TABLE:
    if _name in REGISTRY:
        globals()[_name] = REGISTRY[_name].fn
for _name, _entry in _RENAMED.items():
    if _entry in REGISTRY:
        globals()[_name] = REGISTRY[_entry].fn
        globals()[_name].__name__ = _name                          # what graphs call it
globals().update(_IN_PLACE)

for _name in """relu celu selu rrelu threshold softmax log_softmax layer_norm rms_norm group_norm kl_div ctc_loss cosine_embedding_loss hinge_embedding_loss
        margin_ranking_loss poisson_nll_loss triplet_margin_loss max_pool1d max_pool2d max_pool3d adaptive_max_pool1d""".split():
    globals()[_name] = _twin_of(globals()[_name], __name__)

_name_functions(globals(), __name__)
__all__ = [_name for _name in (*_TABLE, *_RENAMED, *_IN_PLACE) if _name in globals()]
del _name, _entry, _ops


# -- steps of attention that copies of PyTorch's code call ------------------------------------------------------------------------------

def _in_projection_packed(q, k, v, w, b=None):
    """The three projections by one weight ``(3 * E, E)``: a single product where ``q``, ``k`` and ``v`` are the same tensor."""
    size = q.shape[-1]
    if q is k is v:
        return linear(q, w, b).chunk(3, -1)                     # noqa: F821  (from the table)
    wide = (size, 2 * size) if k is v else (size, size, size)
    weights, biases = w.split(wide), [None] * len(wide) if b is None else b.split(wide)
    if k is v:
        return (linear(q, weights[0], biases[0]), *linear(k, weights[1], biases[1]).chunk(2, -1))      # noqa: F821
    return tuple(linear(x, weight, bias) for x, weight, bias in zip((q, k, v), weights, biases))         # noqa: F821


def _in_projection(q, k, v, w_q, w_k, w_v, b_q=None, b_k=None, b_v=None):
    """The three projections by weights of their own."""
    return linear(q, w_q, b_q), linear(k, w_k, b_k), linear(v, w_v, b_v)                               # noqa: F821


def _none_or_dtype(input):
    """The dtype of a tensor, None for None."""
    return None if input is None else input.dtype


def _canonical_mask(mask, mask_name, other_type, other_name, target_type, check_other=True):
    """A mask of bools as one of floats to add, -inf where it is True; AssertionError for masks of integers."""
    if mask is None:
        return None
    if not mask.is_floating_point() and str(mask.dtype).rpartition(".")[2] != "bool":
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        _warn(f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both instead.")
    if mask.is_floating_point():
        return mask
    return mask.new_zeros(mask.shape, dtype=target_type).masked_fill_(mask, float("-inf"))


def _get_softmax_dim(name, ndim, stacklevel):
    """The dimension that a softmax without ``dim`` takes, with the warning that it should be told."""
    _warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.")
    return 0 if ndim in (0, 1, 3) else 1


def _verify_batch_size(size):
    """ValueError where a batch has a single value per channel."""
    if size[0] * _prod(size[2:]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")


def __getattr__(name):
    """Copies of PyTorch's code import from here what asks whether a function is taken over; its module loads when they do."""
    if name in ("handle_torch_function", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"):
        from .. import overrides
        return getattr(overrides, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
