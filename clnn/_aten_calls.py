"""Which call of PyTorch's ``aten`` an operator of clnn is: what modes and classes with ``__torch_dispatch__`` are told."""
from __future__ import annotations

import math

from ._tensor.tensor import Tensor
from .core.layout import contiguous_format
from .core.shape import broadcast_shapes
from .graph.op import REGISTRY


def _tensor(v):
    return isinstance(v, Tensor)


def _two(name, scalar="Tensor"):
    """An operator on two tensors, or a tensor and a number."""
    return lambda a, b: (name, "Tensor" if _tensor(b) else scalar, (a, b)) if _tensor(a) else (name, "Tensor", (b, a))


def _ordered(name, scalar="Scalar"):
    """The same where the order counts."""
    return lambda a, b: (name, "Tensor" if _tensor(b) and _tensor(a) else scalar, (a, b))


def _reduced(name, overload="dim_IntList", whole="default"):
    """A reduction over all dimensions, or over some."""
    def rule(input, dims, keepdim=False, *rest):
        if len(dims) == len(input.shape) and not keepdim and whole:
            return name, whole, (input,)
        return name, overload, (input, list(dims), *((True,) if keepdim else ()))
    return rule


def _spread(name):
    """Variance and deviation."""
    return lambda input, dims, keepdim, correction: (name, "correction", (input, list(dims)), {"correction": correction, **({"keepdim": True} if keepdim else {})})


def _along(name, overload="default"):
    return lambda input, dim, keepdim=False, *rest: (name, overload, (input, dim, *((True,) if keepdim else ())))


def _linear(input, weight, bias):
    turned = weight.t()
    return ("mm", "default", (input, turned)) if bias is None else ("addmm", "default", (bias, input, turned))


def _scan(name):
    return lambda input, dim, reverse=False: (name, "default", (input, dim)) if not reverse else None


def _power(a, b):
    return "pow", "Tensor_Tensor" if _tensor(a) and _tensor(b) else "Tensor_Scalar" if _tensor(a) else "Scalar", (a, b)


def _clamped(input, low, high):
    return "clamp", "Tensor" if _tensor(low) or _tensor(high) else "default", (input, low, high) if high is not None else (input, low)


def _rows(input, index, shape, first, count, wrap, what):
    return ("index", "Tensor", (input, [None] * first + [index])) if what == "index" and count == 1 else None


def _strided(input, size, strides, offset, home):
    return "as_strided", "default", (input, list(size), list(strides), *((offset,) if offset != input._offset else ()))


def _division(mode):
    return lambda a, b: ("div", "Tensor_mode", (a, b), {"rounding_mode": mode})


def _transform(name, length):
    """A transform along one dimension; ``length``: how many numbers its factor is of, given the values. Other factors keep clnn's own form."""
    def call(x, dim, *rest):
        scale, rest = (rest[1], rest[0]) if name != "_fft_r2c" else (rest[0], rest[1] if len(rest) > 1 else True)
        n = length(x, dim, rest)
        code = 0 if scale == 1 else next((i for i, factor in ((2, 1 / n), (1, n ** -0.5)) if math.isclose(scale, factor)), None)
        if code is None:
            return f"{name}_scaled", "default", (x, dim, rest, scale)
        return name, "default", (x, [dim], code, not rest if name == "_fft_c2c" else rest)
    return call


def _largest(x, window, out_shape):
    """Maxima of windows on planes; others keep clnn's own form."""
    if window.nd != 2 or window.adaptive:
        return None
    kernel, stride, padding, dilation = map(list, (window.kernel, window.stride, window.padding, window.dilation))
    up = any((n + 2 * p - d * (k - 1) - 1) // s + 1 != o for n, o, k, s, p, d in zip(x.shape[-2:], out_shape[-2:], kernel, stride, padding, dilation))
    rest = [padding, dilation, up]
    while rest and rest[-1] == [[0, 0], [1, 1], False][len(rest) - 1]:
        rest.pop()
    return "max_pool2d_with_indices", "default", (x, kernel, stride, *rest)


CALLS = {
    "_fft_c2c": _transform("_fft_c2c", lambda x, dim, back: x.shape[dim]), "_fft_r2c": _transform("_fft_r2c", lambda x, dim, onesided: x.shape[dim]),
    "_fft_c2r": _transform("_fft_c2r", lambda x, dim, n: n),
    "_add": _two("add"), "mul": _two("mul"), "_sub": lambda a, b: ("sub", "Tensor", (a, b)) if _tensor(a) else ("rsub", "Scalar", (b, a)),
    "true_divide": lambda a, b: ("div", "Tensor", (a, b)), "floor_divide": _division("floor"), "_floor_divide": _division("floor"),
    "_trunc_divide": _division("trunc"), "_pow": _power, "_square": lambda x: ("pow", "Tensor_Scalar", (x, 2)), "_cube": lambda x: ("pow", "Tensor_Scalar", (x, 3)),
    **{n: _ordered(n) for n in ("eq", "ne", "lt", "le", "gt", "ge", "remainder", "fmod", "bitwise_and", "bitwise_or", "bitwise_xor")},
    "_where": lambda c, a, b: ("where", "self", (c, a, b)),
    **{name: call for op, call in (("_clamp_both", _clamped), ("_clamp_min", lambda x, low: _clamped(x, low, None)),
                                   ("_clamp_max", lambda x, high: ("clamp", "default", (x, None, high)))) for name in (op, op + "_number")},
    "_gelu_tanh": lambda x: ("gelu", "default", (x,), {"approximate": "tanh"}),
    "_gelu": lambda x: ("gelu", "default", (x,)), "_clone": lambda x: ("clone", "default", (x,)),
    "contiguous": lambda x: ("clone", "default", (x,), {"memory_format": contiguous_format}),
    "_add_scaled": lambda a, b, s: ("add", "Tensor", (a, b), {"alpha": s}), "_sub_scaled": lambda a, b, s: ("sub", "Tensor", (a, b), {"alpha": s}),
    "_addcmul": lambda a, b, c, s: ("addcmul", "default", (a, b, c), {"value": s}), "_addcdiv": lambda a, b, c, s: ("addcdiv", "default", (a, b, c), {"value": s}),
    "_relu": lambda x: ("relu", "default", (x,)), "_relu_backward": lambda g, y: ("threshold_backward", "default", (g, y, 0)),
    "_leaky_relu": lambda x, s: ("leaky_relu", "default", (x, s)), "_elu": lambda x, a, s, i: ("elu", "default", (x, a, s, i)),
    "_elu_backward": lambda g, x, a, s, i: ("elu_backward", "default", (g, a, s, i, False, x)),
    "_hardtanh": lambda x, a, b: ("hardtanh", "default", (x, a, b)), "_silu": lambda x: ("silu", "default", (x,)),
    "_sum": _reduced("sum"), "_sum_all": _reduced("sum"), "_sum_long": _reduced("sum"), "_mean": _reduced("mean", "dim"), "_mean_all": _reduced("mean", "dim"),
    "_amax": _reduced("amax", "default", None), "_amin": _reduced("amin", "default", None), "_max_all": _reduced("max"), "_min_all": _reduced("min"),
    "_prod_all": _reduced("prod"), "_logsumexp": _reduced("logsumexp", "default", None), "_var": _spread("var"), "_std": _spread("std"),
    "_vector_norm": lambda x, order, dims, keep: ("linalg_vector_norm", "default", (x, order, list(dims), keep)),
    "_max_dim": _along("max", "dim"), "_min_dim": _along("min", "dim"), "_cumsum": _scan("cumsum"), "_cumprod": _scan("cumprod"),
    "_softmax": lambda x, dim: ("_softmax", "default", (x, dim, False)), "_log_softmax": lambda x, dim: ("_log_softmax", "default", (x, dim, False)),
    "_softmax_backward": lambda g, y, dim: ("_softmax_backward_data", "default", (g, y, dim, y.dtype)),
    "_log_softmax_backward": lambda g, y, dim: ("_log_softmax_backward_data", "default", (g, y, dim, y.dtype)),
    "_bmm": lambda a, b: ("bmm", "default", (a, b)), "_mv": lambda a, b: ("mv", "default", (a, b)), "_dot": lambda a, b: ("dot", "default", (a, b)),
    "_linear2d": _linear, "_expand": lambda x, size: ("expand", "default", (x, list(size))),
    "_reshape_view": lambda x, size, strides: ("view", "default", (x, list(size))), "_as_strided": _strided,
    "transpose": lambda x, a, b: ("transpose", "int", (x, a, b)),
    "swapaxes": lambda x, a, b: ("transpose", "int", (x, a, b)), "swapdims": lambda x, a, b: ("transpose", "int", (x, a, b)),
    "permute": lambda x, dims: ("permute", "default", (x, list(dims))), "_real": lambda x: ("real", "default", (x,)),
    "_squeeze": lambda x, dims, old: ("squeeze", "dim", (x, dims[0])) if len(dims) == 1 else ("squeeze", "dims", (x, list(dims))),
    "_cat": lambda tensors, dim, *rest: ("cat", "default", (list(tensors), dim) if dim else (list(tensors),)),
    "_stack": lambda tensors, dim, *rest: ("stack", "default", (list(tensors), dim) if dim else (list(tensors),)),
    "_embedding": lambda w, i, pad, *rest: ("embedding", "default", (w, i, pad) if pad is not None and pad >= 0 else (w, i)),
    "_gather": lambda x, dim, index, *rest: ("gather", "default", (x, dim, index)), "_index_rows": _rows,
    "_layer_norm": lambda x, shape, w, b, eps, rms: ("native_layer_norm", "default", (x, list(shape), w, b, eps)) if not rms else None,
    "_max_pool": _largest,
    "_batch_norm": lambda x, w, b, mean, var, momentum, eps: ("native_batch_norm", "default", (x, w, b, mean, var, True, momentum, eps)),
    "_fixed_norm": lambda x, mean, var, w, b, eps: ("native_batch_norm", "default", (x, w, b, mean, var, False, 0.1, eps)),
    "convolution": lambda x, w, b, stride, pad, dilation, groups: (
        "convolution", "default", (x, w, b, list(stride), list(pad), list(dilation), False, [0] * len(stride), groups)),
}


def _stacks(a, b):
    """Stacks of matrices that broadcast or have several dimensions, as PyTorch multiplies them: of one dimension."""
    if len(a.shape) == len(b.shape) == 3 and a.shape[0] == b.shape[0]:
        return None
    stack = broadcast_shapes(tuple(a.shape[:-2]), tuple(b.shape[:-2]))
    a, b = [t.expand(*stack, *t.shape[-2:]).reshape(math.prod(stack), *t.shape[-2:]) for t in (a, b)]
    return REGISTRY["_bmm"].fn(a, b).view(*stack, a.shape[1], b.shape[2])


OWN = frozenset(("_cross_entropy",))        # what PyTorch has no operator for: modes are asked for what it is made of
PARTS = {"_bmm": _stacks}                   # what PyTorch's operator takes some values of only: the result by others, or None where it takes them


def call_for(op, values):
    """(operator of aten, arguments, arguments by name) that clnn's ``op`` is for ``values``."""
    from ._custom import namespace
    rule = CALLS.get(op.name)
    got = rule(*values) if rule is not None else None
    if got is None:
        name, overload, args = op.name, "default", values
    else:
        name, overload, args = got[:3]
    return getattr(getattr(namespace("aten"), name), overload), args, got[3] if got is not None and len(got) > 3 else {}


def distinct(input, sorted=True, return_inverse=False, return_counts=False, dim=None):          # noqa: A002
    """Name and arguments of the operator that ``unique`` is, which always gives three tensors, and which of these are asked for."""
    name, which = ("_unique2", ()) if dim is None else ("unique_dim", (dim,))
    return name, (input, *which, sorted, return_inverse, return_counts), [True, return_inverse, return_counts]


def overload_of(name, args):
    """The overload of the in-place form of ``name`` that takes ``args`` after the tensor."""
    if name in ("add", "sub", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge", "remainder", "fmod", "bitwise_and", "bitwise_or", "bitwise_xor"):
        return "Tensor" if not args or _tensor(args[0]) or name in ("add", "sub", "mul", "div") else "Scalar"
    if name in ("fill", "masked_fill", "pow"):
        return "Tensor" if args and _tensor(args[-1]) else "Scalar"
    return "default"


def steps_of(spec, input):
    """A basic index as PyTorch takes it, one operator per int, slice or new dimension: (name, overload, arguments after the tensor)."""
    dim, sizes = 0, list(input.shape)
    for s in spec:
        if s is None:
            yield "unsqueeze", "default", (dim,)
            sizes.insert(dim, 1)
            dim += 1
        elif s.__class__ is tuple:
            start, step, length = s
            if start or step != 1 or length != sizes[dim]:
                yield "slice", "Tensor", (dim, start, min(start + (length - 1) * step + 1, sizes[dim]) if length else start, *((step,) if step != 1 else ()))
            sizes[dim] = length
            dim += 1
        else:
            yield "select", "int", (dim, s)
            del sizes[dim]


def whole_of(spec, input):
    """The operator of an index that leaves nothing out: a slice where that is all there is."""
    return ("slice", "Tensor", (0, 0, input.shape[0])) if len(spec) == 1 and input.shape else ("alias", "default", ())


def indexed(input, spec, shape):
    """The steps one after the other, by those who take operators over."""
    from ._tensor.wrapped import _recorded_step, formed
    r = input
    for name, overload, given in steps_of(spec, input):
        r = r.unsqueeze(given[0]) if name == "unsqueeze" else _recorded_step(name, overload, r, given)
    return r if r is not input else formed("_reshape_view", (input, input.shape, None), {})


def _cloned(input, *, memory_format=None):
    from ._tensor.wrapped import _recorded_as
    return _recorded_as("_clone", "clone", (input,), {} if memory_format is None else {"memory_format": memory_format})


def _contiguous(input, memory_format=None):
    return input if input.is_contiguous() else _cloned(input, memory_format=contiguous_format)


def _filled(target, value):
    from ._tensor.wrapped import _asked
    from .ops.creation import tensor
    from ._tensor.wrapped import _aten
    return _asked(_aten("fill_", "Tensor"), (target, value if _tensor(value) else tensor(value, dtype=target.dtype, device=target.device)), {})


def _reshaped(input, *shape):
    """A view where the memory allows it, else of a copy."""
    from ._tensor.wrapped import formed
    from .core.shape import infer_size
    shape = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
    size = infer_size(tuple(shape), input.numel())
    return formed("_reshape_view", (_contiguous(input), size, None), {})


WHOLE = {"clone": _cloned, "_contiguous": _contiguous, "_fill_into": _filled, "reshape": _reshaped}


def _default(args, kwargs):
    return "default"


def _by_second(tensor="Tensor", other="Scalar"):
    """The overload by whether the last argument by place is a tensor."""
    return lambda args, kwargs: tensor if _tensor(args[-1]) else other


# Operators made of others in clnn that are one in PyTorch: told as one where no gradient is recorded. Name -> function that gives the overload.
EXPLICIT = {
    **dict.fromkeys("""addbmm addcdiv addcmul addmm addmv addr argmax argmin argsort baddbmm binary_cross_entropy count_nonzero cummax cummin flip
                       gather index_copy index_select kthvalue logcumsumexp mse_loss multinomial nonzero roll smooth_l1_loss sort topk tril triu
                       huber_loss nan_to_num repeat bernoulli trace median mode cdist histc split_with_sizes unsafe_split_with_sizes lu_solve linalg_lu_solve
                       geqrf orgqr ormqr linalg_ldl_factor_ex matrix_exp aminmax stft istft""".split(), _default),
    **dict.fromkeys(("add", "sub"), lambda args, kwargs: "Tensor"), "lerp": _by_second(), "masked_fill": _by_second(),
    "split": lambda args, kwargs: "Tensor" if isinstance((*args, *kwargs.values())[1], int) else "sizes", "unbind": lambda args, kwargs: "int",
    **dict.fromkeys(("any", "all"), lambda args, kwargs: "default" if (*args, *kwargs.values())[1:2] in ((), (None,)) else
                    "dim" if isinstance((*args, *kwargs.values())[1], int) else "dims"),
    "isin": lambda args, kwargs: "_".join("Tensor" if _tensor(a) else "Scalar" for a in args[:2]), "unique_consecutive": _default,
    "searchsorted": lambda args, kwargs: "Tensor" if _tensor(args[-1]) else "Scalar", "bucketize": lambda args, kwargs: "Tensor" if _tensor(args[0]) else "Scalar",
    "histogram": lambda args, kwargs: "bins_tensor" if _tensor((*args[1:], *kwargs.values(), 0)[0]) else "bin_ct",
    "scatter": lambda args, kwargs: "src" if _tensor(args[-1]) else "value", "scatter_add": _default, "index_add": _default,
}
assert all(n in REGISTRY for n in (*CALLS, *EXPLICIT))
