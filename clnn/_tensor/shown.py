"""What ``grad_fn`` shows of operators made of others, where PyTorch has one operator: the name of the whole, not of its last part."""
from __future__ import annotations

import functools

from .grad_mode import state
from .tensor import Tensor
from .underived import NAMES, enter

_WHOLE = set("""masked_scatter masked_select index_add index_copy index_reduce index_select index_put scatter_add scatter_reduce put take
    glu repeat roll tril triu trace addmm addmv addr addbmm baddbmm addcmul addcdiv nan_to_num dist pixel_shuffle pixel_unshuffle channel_shuffle
    slice_scatter select_scatter diagonal_scatter block_diag embedding_bag segment_reduce cdist ldexp select diag_embed rot90 kthvalue var_mean std_mean
    as_strided_scatter mvlgamma narrow_copy angle logaddexp2 vdot polygamma unsafe_split sgn renorm cholesky
    lu_unpack linalg_lu linalg_lu_solve linalg_inv_ex linalg_solve_ex linalg_cholesky_ex ormqr pdist native_group_norm poisson""".split())
_UPSAMPLE = {"nearest": "UpsampleNearest{0}D", "nearest-exact": "UpsampleNearestExact{0}D", "linear": "UpsampleLinear1D", "bilinear": "UpsampleBilinear2D",
             "trilinear": "UpsampleTrilinear3D", "bicubic": "UpsampleBicubic2D", "lanczos": "UpsampleLanczos2D", "area": "AdaptiveAvgPool{0}D"}


def _interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None, antialias=False, **_):
    return _UPSAMPLE[mode].format(input.ndim - 2) + ("Aa" if antialias else "")


def _by_number(name, at, key):
    """Of operators whose second form takes a tensor where the first takes a number."""
    return lambda *args, **kw: (name, int(isinstance(args[at] if len(args) > at else kw.get(key), Tensor)))


def _scatter(input, dim, index, src=None, reduce=None, **kw):
    return "Scatter", 0 if isinstance(src, Tensor) else 1


def _cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0):
    if label_smoothing:
        return "Add"
    if target.dtype.differentiable:
        return ("Div", 1) if reduction == "mean" else "Neg"
    return _nll(input, target, reduction=reduction)


def _nll(input, target, *_, reduction="mean", **kw):
    return None if input.ndim < 3 else "NllLoss2D" if input.ndim == 4 or reduction != "none" else "View"


def _trapezoid(y, x=None, *, dx=None, dim=-1):
    return ("Mul" if x is None else "Div"), 1


def _cumulative_trapezoid(y, x=None, *, dx=None, dim=-1):
    return None if x is None else ("Div", 1)


def _rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    return "RreluWithNoise"


def _grid_sample(input, *_, **kw):
    return f"GridSampler{input.ndim - 2}D"


def _diag(input, diagonal=0):
    return "DiagonalBackward0_copy" if input.ndim == 2 else None


def _raised(*tensors):
    return "Unsqueeze" if len(tensors) == 1 and isinstance(tensors[0], Tensor) and 0 < tensors[0].ndim else None


def _repeat_interleave(input, repeats=None, dim=None, **_):
    return "IndexSelect" if isinstance(repeats, Tensor) else "View"


def _matmul(input, other, **_):
    a, b = input, other
    if len(a.shape) == 2 == len(b.shape):
        return "Mm"
    low, high = sorted((a.ndim, b.ndim))
    if high == 1:
        return "Dot"
    return ("Mv" if a.ndim == 2 else ("Squeeze", 4)) if high == 2 else "UnsafeView" if a.ndim >= b.ndim or low != 2 else "Clone"


def _squeeze(input, dim=None, **_):
    return "Squeeze", 0 if dim is None else 1 if isinstance(dim, int) else 2


def _pow(input, exponent, **_):
    return "Pow", 0 if not isinstance(exponent, Tensor) else 1 if isinstance(input, Tensor) else 2


def _pad(input, pad, mode="constant", value=None, **_):
    return {"reflect": f"ReflectionPad{len(pad) // 2}D", "replicate": f"ReplicationPad{len(pad) // 2}D"}.get(mode, "ConstantPadNd")


def _median(input, dim=None, keepdim=False, **_):
    return "Median", 0 if dim is None else 1


def _nanmedian(input, dim=None, keepdim=False, **_):
    return "Nanmedian", 0 if dim is None else 1


def _clamp(input, min=None, max=None, **_):
    return "Clamp", 0 if isinstance(min, Tensor) or isinstance(max, Tensor) else 1


def _clamp_one(name):
    return lambda input, bound=None, **kw: (name, 1 if isinstance(bound, Tensor) or any(isinstance(v, Tensor) for v in kw.values()) else 0)


def _rsub(input, other, **_):
    return "Rsub", 0 if isinstance(other, Tensor) else 1


def _round(input, *, decimals=None, **_):
    return "Round", 0 if decimals is None else 1


def _adaptive(input, output_size, **_):
    return ("AdaptiveAvgPool2D", 0) if output_size not in (1, (1, 1), [1, 1]) else ("Mean", 1)


def _adaptive3d(input, output_size, **_):
    return ("AdaptiveAvgPool3D", 0) if output_size not in (1, (1, 1, 1), [1, 1, 1]) else ("Mean", 1)


def _einsum(equation, *operands):
    """A sum over what the last operand shares ends in a view, an outer product in the product itself."""
    terms, _, result = equation.partition("->") if isinstance(equation, str) else ("", "", "")
    *before, last = terms.split(",")
    if not before:
        return None
    return "View" if any(c.isalpha() and c not in result and any(c in t for t in before) for c in last) else "Mul"


_BY_CALL = {"pad": _pad, "median": _median, "nanmedian": _nanmedian, "clamp": _clamp, "clamp_min": _clamp_one("ClampMin"), "clamp_max": _clamp_one("ClampMax"),
            "rsub": _rsub, "round": _round, "adaptive_avg_pool2d": _adaptive, "interpolate": _interpolate, "matmul": _matmul, "squeeze": _squeeze, "pow": _pow,
            "einsum": _einsum, "masked_fill": _by_number("MaskedFill", 2, "value"), "index_fill": _by_number("IndexFill", 3, "value"),
            "lerp": _by_number("Lerp", 2, "weight"), "scatter": _scatter, "cross_entropy": _cross_entropy, "nll_loss": _nll, "trapezoid": _trapezoid,
            "cumulative_trapezoid": _cumulative_trapezoid, "rrelu": _rrelu, "grid_sample": _grid_sample, "diag": _diag, "atleast_2d": _raised, "atleast_3d": _raised,
            "repeat_interleave": _repeat_interleave, "adaptive_avg_pool3d": _adaptive3d}
_OTHERS = {"matrix_exp": "LinalgMatrixExp", "affine_grid": "AffineGridGenerator", "cross": "LinalgCross", "linalg_cross": "LinalgCross", "rms_norm": "Mul",
           "linalg_solve": "LinalgSolveEx", "adaptive_max_pool2d": "AdaptiveMaxPool2D", "adaptive_max_pool3d": "AdaptiveMaxPool3D",
           "avg_pool3d": "AvgPool3D", "orgqr": "LinalgHouseholderProduct", "triangular_solve": "TriangularSolve", "lu_solve": "LinalgLuSolve",
           "linalg_cholesky": "LinalgCholeskyEx", "combinations": "Stack",
           "pairwise_distance": "NormBackward1", "quantile": "SqueezeBackward4", "nanquantile": "SqueezeBackward4", "linalg_vecdot": "Vdot",
           "fake_quantize_per_tensor_affine": "FakeQuantizePerTensorAffineCachemask",
           "fake_quantize_per_channel_affine": "FakeQuantizePerChannelAffineCachemask", "max_pool3d": "MaxPool3DWithIndices",
           "max_unpool2d": "MaxUnpool2D", "max_unpool3d": "MaxUnpool3D",
           "fractional_max_pool2d": "FractionalMaxPool2D", "fractional_max_pool3d": "FractionalMaxPool3D", "instance_norm": "View", "kron": "UnsafeView",
           **dict.fromkeys(("avg_pool1d", "max_pool1d", "max_unpool1d", "adaptive_avg_pool1d", "adaptive_max_pool1d"), "SqueezeBackward1")}


def _rule(name):
    """The name, or a function of the arguments that gives it (or None); None where the last part is what PyTorch shows, too."""
    known = _OTHERS.get(name) or ("".join(part.capitalize() for part in name.split("_")) if name in _WHOLE else None)
    return _BY_CALL.get(name) if known is None else known if "Backward" in known else f"{known}Backward0"


@functools.lru_cache(maxsize=None)
def _text(got):
    name, number = got if isinstance(got, tuple) else (got, 0)
    return name if "Backward" in name else f"{name}Backward{number}"


def _refusing(name, body):
    @functools.wraps(body)
    def call(*args, **kwargs):
        result = body(*args, **kwargs)
        if state.grad:
            enter(name, result, args, kwargs)
        return result
    return call


def labelled(name, body):
    """``body``, whose results show the operator's name in their ``grad_fn``."""
    rule = _rule(name)
    if rule is None:
        return body if name not in NAMES else _refusing(name, body)

    @functools.wraps(body)
    def call(*args, **kwargs):
        result = body(*args, **kwargs)
        for r in result if isinstance(result, tuple) else (result,):
            if r.__class__ is not Tensor or not r._rg:
                continue
            node = r._grad_fn
            for a in args:
                if getattr(a, "_grad_fn", None) is node:
                    break                                       # an argument, handed out as it is
            else:
                got = rule if rule.__class__ is str else rule(*args, **kwargs)
                if got is not None and hasattr(node, "label"):
                    node.label = got if got is rule else _text(got)
        return result
    return call
