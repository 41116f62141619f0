"""What ``grad_fn`` shows of operators made of others, where PyTorch has one operator: the name of the whole, not of its last part."""
from __future__ import annotations

import functools

from .tensor import Tensor

_WHOLE = set("""masked_fill masked_scatter masked_select index_add index_copy index_fill index_reduce index_select index_put scatter scatter_add scatter_reduce put take
    glu repeat roll tril triu trace addmm addmv addr addbmm baddbmm addcmul addcdiv lerp nan_to_num dist pixel_shuffle pixel_unshuffle channel_shuffle
    slice_scatter select_scatter diagonal_scatter block_diag embedding_bag segment_reduce cdist ldexp select diag_embed rot90 kthvalue var_mean std_mean
    as_strided_scatter mvlgamma narrow_copy angle logaddexp2 vdot polygamma unsafe_split sgn""".split())
_UPSAMPLE = {"nearest": "UpsampleNearest{0}D", "nearest-exact": "UpsampleNearestExact{0}D", "linear": "UpsampleLinear1D", "bilinear": "UpsampleBilinear2D",
             "trilinear": "UpsampleTrilinear3D", "bicubic": "UpsampleBicubic2D", "lanczos": "UpsampleLanczos2D", "area": "AdaptiveAvgPool{0}D"}


def _interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None, antialias=False, **_):
    return _UPSAMPLE[mode].format(input.ndim - 2) + ("Aa" if antialias else "")


def _matmul(input, other, **_):
    a, b = input, other
    if len(a.shape) == 2 == len(b.shape):
        return "Mm"
    low, high = sorted((a.ndim, b.ndim))
    if high == 1:
        return "Dot"
    return ("Mv" if a.ndim == 2 else "Squeeze") if high == 2 else "UnsafeView" if a.ndim >= b.ndim or low != 2 else "Clone"


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


def _round(input, *, decimals=0, **_):
    return "Round", 1 if decimals else 0


def _adaptive(input, output_size, **_):
    return ("AdaptiveAvgPool2D", 0) if output_size not in (1, (1, 1), [1, 1]) else ("Mean", 1)


def _einsum(equation, *operands):
    """A sum over what the last operand shares ends in a view, an outer product in the product itself."""
    terms, _, result = equation.partition("->") if isinstance(equation, str) else ("", "", "")
    *before, last = terms.split(",")
    if not before:
        return None
    return "View" if any(c.isalpha() and c not in result and any(c in t for t in before) for c in last) else "Mul"


_BY_CALL = {"pad": _pad, "median": _median, "nanmedian": _nanmedian, "clamp": _clamp, "clamp_min": _clamp_one("ClampMin"), "clamp_max": _clamp_one("ClampMax"),
            "rsub": _rsub, "round": _round, "adaptive_avg_pool2d": _adaptive, "interpolate": _interpolate, "matmul": _matmul, "squeeze": _squeeze, "pow": _pow,
            "einsum": _einsum}
_OTHERS = {"matrix_exp": "LinalgMatrixExp", "affine_grid": "AffineGridGenerator", "cross": "LinalgCross", "linalg_cross": "LinalgCross", "rms_norm": "Mul",
           "linalg_solve": "LinalgSolveEx", "adaptive_max_pool2d": "AdaptiveMaxPool2D", "adaptive_max_pool3d": "AdaptiveMaxPool3D",
           "adaptive_avg_pool3d": "AdaptiveAvgPool3D", "max_pool3d": "MaxPool3DWithIndices", "max_unpool2d": "MaxUnpool2D", "max_unpool3d": "MaxUnpool3D",
           "fractional_max_pool2d": "FractionalMaxPool2D", "fractional_max_pool3d": "FractionalMaxPool3D", "instance_norm": "View", "kron": "UnsafeView",
           **dict.fromkeys(("avg_pool1d", "max_pool1d", "max_unpool1d", "adaptive_avg_pool1d", "adaptive_max_pool1d"), "SqueezeBackward1")}


def _rule(name):
    """The name, or a function of the arguments that gives it (or None); None where the last part is what PyTorch shows, too."""
    known = _OTHERS.get(name) or ("".join(part.capitalize() for part in name.split("_")) if name in _WHOLE else None)
    return _BY_CALL.get(name) if known is None else known if "Backward" in known else f"{known}Backward0"


@functools.lru_cache(maxsize=None)
def _text(got):
    name, number = got if isinstance(got, tuple) else (got, 0)
    return f"{name}Backward{number}"


def labelled(name, body):
    """``body``, whose results show the operator's name in their ``grad_fn``."""
    rule = _rule(name)
    if rule is None:
        return body

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
