"""Which operators autocast runs in which precision, and the wrapper that does it.

The lists are PyTorch's, by the device type given to ``autocast``: its CPU list is short, as CPU kernels sum 16-bit values in float32 anyway.
An operator that is in no list runs in the dtype of its inputs. Kernels marked ``autocast="low"`` in their entry cast their inputs themselves.
"""
from __future__ import annotations

import functools

from ..core import native
from ..core.dtype import float32, float64
from .grad_mode import state
from .tensor import Tensor

_BOTH = """binary_cross_entropy_with_logits cosine_embedding_loss cross_entropy ctc_loss hinge_embedding_loss huber_loss kl_div l1_loss
    margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss nll_loss poisson_nll_loss smooth_l1_loss soft_margin_loss
    triplet_margin_loss cdist pdist prod"""
_LOW = "addmm addbmm baddbmm prelu scaled_dot_product_attention"

# rule -> operator names
CPU = {
    "low": _LOW,
    "own": "mv bilinear",
    "float32": _BOTH + """ binary_cross_entropy trace grid_sample quantile nanquantile avg_pool3d max_pool3d adaptive_avg_pool3d adaptive_max_pool3d
        inverse det logdet slogdet cholesky linalg_cholesky linalg_solve linalg_svd linalg_eigh linalg_lstsq linalg_matrix_rank linalg_cond linalg_qr linalg_svdvals
        polar fractional_max_pool2d fractional_max_pool3d fractional_max_pool2d_with_indices fractional_max_pool3d_with_indices max_unpool1d max_unpool2d
        max_unpool3d max_pool3d_with_indices adaptive_max_pool3d_with_indices view_as_complex cholesky_inverse cholesky_solve lu_solve lu qr svd orgqr ormqr
        geqrf triangular_solve pinverse linalg_eig linalg_eigvals linalg_eigvalsh linalg_inv_ex linalg_cholesky_ex linalg_householder_product
        linalg_tensorinv linalg_tensorsolve fake_quantize_per_tensor_affine""",
    "edges": "_mode_pad",
}
GPU = {
    "low": _LOW + " mv addmv addr chain_matmul linalg_multi_dot",
    "float32": _BOTH + """ acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow softplus layer_norm group_norm norm
        linalg_vector_norm linalg_matrix_norm dist renorm logsumexp interpolate softmax log_softmax cumprod cumsum sum softmin
        cosine_similarity""",
    "promote": "addcdiv addcmul atan2 bilinear cross dot vdot grid_sample index_put tensordot scatter_add",
    "banned": "binary_cross_entropy",
}


def _is_float(t):
    return isinstance(t, Tensor) and t.dtype.is_floating_point and t.dtype is not float64


def cast_floats(value, policy, target):
    """``value`` (a tensor, or nested lists of them) with its floats of up to 32 bits in dtype ``target``."""
    if _is_float(value):
        return value if value.dtype is target else policy.cast(value, target)
    if value.__class__ in (list, tuple):
        return value.__class__(cast_floats(v, policy, target) for v in value)
    return value


def _tensors(values):
    for v in values:
        if isinstance(v, Tensor):
            yield v
        elif v.__class__ in (list, tuple):
            yield from _tensors(v)


def _target(rule, op, policy, args, kwargs):
    """The dtype that the inputs are cast to, or None to leave them."""
    if rule == "low":
        return policy.low
    if rule == "own":                                           # made of operators that a list names, which PyTorch's kernel is not
        return None
    if rule == "float32":
        return None if kwargs.get("dtype") is not None else float32      # a dtype that was asked for wins
    if rule == "edges":
        return float32 if args[1] == "replicate" or args[1] == "reflect" and args[-1] < 3 else None
    if rule == "banned":
        raise RuntimeError(f"{op.name} and its module are unsafe to autocast: their input lies in [0, 1], where 16 bits do not reach the ends. "
                           "Use binary_cross_entropy_with_logits or BCEWithLogitsLoss, which take the values before the sigmoid.")
    floats = {t.dtype for t in _tensors((*args, *kwargs.values())) if _is_float(t)}
    return float32 if float32 in floats else None


def _by_name(lists):
    return {name: rule for rule, names in lists.items() for name in names.split()}


_RULES = {"cpu": _by_name(CPU), "gpu": _by_name(GPU)}


def with_autocast(op, fn):
    """``fn`` as autocast wants it, when a list names it: inputs cast, and autocast off for the operators that it is made of."""
    rules = {kind: table[op.name] for kind, table in _RULES.items() if op.name in table}
    if not rules:
        return fn

    @functools.wraps(fn)
    def call(*args, **kwargs):
        policy = state.autocast
        if policy is None or policy.kind not in rules:
            return fn(*args, **kwargs)
        target = _target(rules[policy.kind], op, policy, args, kwargs)
        if target is not None:
            args = tuple([cast_floats(a, policy, target) for a in args])
            kwargs = {k: cast_floats(v, policy, target) for k, v in kwargs.items()}
        state.autocast = None
        try:
            return fn(*args, **kwargs)
        finally:
            state.autocast = policy
    return native.fronted_as(call, fn)
