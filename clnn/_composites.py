"""Functions that PyTorch's exported programs keep whole: the operators of ``aten`` above autograd, which clnn makes of others.

A mode whose ``composites`` is true is told these instead of what they are made of.
"""
from __future__ import annotations

import ast
import functools
import inspect

from types import FunctionType

from ._tensor.tensor import Tensor
from ._tensor.wrapped import _aten, local
from .graph.op import REGISTRY

# Name and parameters in the order of aten; ":2" makes a list of two of a number; values after the last that differs from its default are left out.
_TABLE = """
linear                       input weight bias=None
conv1d                       input weight bias=None stride:1=1 padding:1=0 dilation:1=1 groups=1
conv2d                       input weight bias=None stride:2=1 padding:2=0 dilation:2=1 groups=1
conv3d                       input weight bias=None stride:3=1 padding:3=0 dilation:3=1 groups=1
conv_transpose1d             input weight bias=None stride:1=1 padding:1=0 output_padding:1=0 groups=1 dilation:1=1
conv_transpose2d.input       input weight bias=None stride:2=1 padding:2=0 output_padding:2=0 groups=1 dilation:2=1
conv_transpose3d.input       input weight bias=None stride:3=1 padding:3=0 output_padding:3=0 groups=1 dilation:3=1
batch_norm                   input weight bias running_mean running_var training momentum eps cudnn_enabled
instance_norm                input weight bias running_mean running_var use_input_stats momentum eps cudnn_enabled
layer_norm                   input normalized_shape:0 weight bias eps cudnn_enabled
group_norm                   input num_groups weight bias eps cudnn_enabled
rms_norm                     input normalized_shape:0 weight=None eps=None
max_pool1d                   input kernel_size:1 stride:1=() padding:1=0 dilation:1=1 ceil_mode=False
max_pool2d                   input kernel_size:2 stride:2=() padding:2=0 dilation:2=1 ceil_mode=False
max_pool3d                   input kernel_size:3 stride:3=() padding:3=0 dilation:3=1 ceil_mode=False
avg_pool1d                   input kernel_size:1 stride:1=() padding:1=0 ceil_mode=False count_include_pad=True
avg_pool2d                   input kernel_size:2 stride:2=() padding:2=0 ceil_mode=False count_include_pad=True divisor_override=None
avg_pool3d                   input kernel_size:3 stride:3=() padding:3=0 ceil_mode=False count_include_pad=True divisor_override=None
adaptive_avg_pool1d          input output_size:1
adaptive_avg_pool2d          input output_size:2
adaptive_avg_pool3d          input output_size:3
silu                         input
mish                         input
selu                         input
relu                         input
relu6                        input
hardswish                    input
hardsigmoid                  input
elu                          input alpha
celu                         input alpha=1.0
leaky_relu                   input negative_slope=0.01
hardtanh                     input min_val max_val
softplus                     input beta threshold
softshrink                   input lambd=0.5
hardshrink                   input lambd=0.5
threshold                    input threshold value
rrelu                        input lower=0.125 upper=0.3333333333333333 training=False
prelu                        input weight
glu                          input dim=-1
gelu                         input *approximate='none'
softmax.int                  input dim dtype=None
log_softmax.int              input dim dtype=None
mse_loss                     input target reduction=1
l1_loss                      input target reduction=1
smooth_l1_loss               input target reduction=1 beta=1.0
huber_loss                   input target reduction=1 delta=1.0
kl_div                       input target reduction=1 *log_target=False
binary_cross_entropy         input target weight=None reduction=1
binary_cross_entropy_with_logits  input target weight=None pos_weight=None reduction=1
matmul                       input other
outer                        input vec2
bilinear                     input1 input2 weight bias=None
cosine_similarity            x1 x2 dim=1 eps=1e-8
pixel_shuffle                input upscale_factor
pixel_unshuffle              input downscale_factor
one_hot                      tensor num_classes=-1
flatten.using_ints           input start_dim=0 end_dim=-1
unflatten.int                input dim sizes:0
chunk                        input chunks dim=0
pad                          input pad:0 mode='constant' value=None
scaled_dot_product_attention query key value attn_mask=None dropout_p=0.0 is_causal=False *scale=None *enable_gqa=False
narrow                       input dim start length
cat                          tensors:0 dim=0
stack                        tensors:0 dim=0
"""
_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}
_IN_PLACE = frozenset("silu mish selu relu relu6 hardswish hardsigmoid elu celu leaky_relu hardtanh threshold rrelu".split())


def _parsed(line):
    """(name, overload, [(parameter, length of a list or None, by name, default)]) of a line of the table."""
    name, *params = line.split()
    name, _, overload = name.partition(".")
    found = []
    for p in params:
        p, has, default = p.partition("=")
        p, listed, length = p.partition(":")
        default = ast.literal_eval(default) if has else _NONE
        length = int(length) if listed else None
        found.append((p.lstrip("*"), length, p.startswith("*"), _listed(default, length) if has and listed else default))
    return name, overload or "default", found


_NONE = object()


def _listed(value, length):
    """A list of numbers of what may be one number."""
    if value is None:
        return []
    return [value] * (length or 1) if isinstance(value, int) else list(value) if isinstance(value, (tuple, list)) else value


def _by_line(name, overload, params, values):
    """(name, overload, arguments, arguments by name) of a call with ``values`` by parameter; None where it is no such call."""
    if values.get("out") is not None or "dim" in values and values["dim"] is None or values.get("axis") is not None:
        return None
    if values.get("return_indices"):
        name += "_with_indices"
    if values.get("size_average") is not None or values.get("reduce") is not None or name in ("mse_loss", "l1_loss", "huber_loss") and values.get("weight") is not None:
        return None
    args, kwargs, kept = [], {}, 0
    for p, length, named, default in params:
        value = False if p == "cudnn_enabled" else values[p]
        value = _REDUCTIONS.get(value, value) if p == "reduction" else _listed(value, length) if length is not None else value
        if named:
            kwargs.update({p: value} if value != default else {})
            continue
        args.append(value)
        if default is _NONE or isinstance(value, Tensor) or value != default:
            kept = len(args)
    if isinstance(values.get("padding"), str):
        overload = "padding"
    if name in _IN_PLACE and values.get("inplace"):
        name += "_"
    return name, overload, tuple(args[:kept]), kwargs


def _dropped(name):
    def rule(values):
        return name + "_" * bool(values["inplace"]), "default", (values["input"], values["p"], values["training"]), {}
    return rule


def _looked_up(values):
    if values["max_norm"] is not None:
        return None
    pad, rest = values["padding_idx"], [values["scale_grad_by_freq"], values["sparse"]]
    pad = -1 if pad is None else pad if pad >= 0 else pad + values["weight"].shape[0]
    rest = [pad, *rest] if any(rest) else [pad] if pad != -1 else []
    return "embedding", "default", (values["weight"], values["input"], *rest), {}


def _classified(name, *last):
    """Losses of classes."""
    def rule(values):
        if values["size_average"] is not None or values["reduce"] is not None:
            return None
        given = [values["weight"], _REDUCTIONS.get(values["reduction"], values["reduction"]), values["ignore_index"], *[values[n] for n in last]]
        defaults = [None, 1, -100, 0.0]
        while given and not isinstance(given[-1], Tensor) and given[-1] == defaults[len(given) - 1]:
            given.pop()
        return name, "default", (values["input"], values["target"], *given), {}
    return rule


def _resized(values):
    mode, flat = values["mode"], values["input"].ndim - 2
    kind = {"nearest": "nearest", "nearest-exact": "nearest_exact", "linear": "linear", "bilinear": "bilinear", "bicubic": "bicubic", "trilinear": "trilinear"}.get(mode)
    if kind is None or values["antialias"] or values["recompute_scale_factor"]:
        return None
    size, scale = values["size"], values["scale_factor"]
    size = size if size is None else _listed(size, flat)
    scale = [float(s) for s in scale] if isinstance(scale, (tuple, list)) else scale if scale is None else [float(scale)] * flat
    aligned = () if mode.startswith("nearest") else (bool(values["align_corners"]),)
    return f"{'_' * (kind == 'nearest_exact')}upsample_{kind}{flat}d", "vec", (values["input"], size, *aligned, scale), {}


def _cut(values):
    size, dim = values["split_size_or_sections"], (values["dim"],) if values["dim"] else ()
    return ("split", "Tensor", (values["tensor"], size, *dim), {}) if isinstance(size, int) else ("split_with_sizes", "default", (values["tensor"], list(size), *dim), {})


def _reshaped(values):
    size = values["shape"]
    size = size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    return ("reshape", "default", (values["input"], list(size)), {}) if all(type(n) is int for n in size) else None


def _products(values):
    operands = values["operands"]
    operands = operands[0] if len(operands) == 1 and isinstance(operands[0], (tuple, list)) else operands
    return ("einsum", "default", (values["equation"], list(operands)), {}) if isinstance(values["equation"], str) else None


def _pooled_to(values):
    return "adaptive_max_pool2d", "default", (values["input"], _listed(values["output_size"], 2)), {}, None if values["return_indices"] else _first


def _first(result):
    return result[0]


def _reduced(name, overload):
    def rule(values):
        dim = values["dim"] if values["axis"] is None else values["axis"]
        if values["out"] is not None or isinstance(dim, bool):
            return None
        kwargs = {} if values["dtype"] is None else {"dtype": values["dtype"]}
        if dim is None:
            return None if values["keepdim"] else (name, "default", (values["input"],), kwargs)
        return name, overload, (values["input"], _listed(dim, 1), *((True,) if values["keepdim"] else ())), kwargs
    return rule


def _spread(name):
    def rule(values):
        dim, unbiased, keep = values["dim"], values["unbiased"], values["keepdim"]
        if isinstance(dim, bool) or values["correction"] is not None:
            return None
        if dim is None:
            return (name, "correction", (values["input"],), {}) if unbiased is None and not keep else None
        rest = [unbiased is not False, keep]
        return name, "dim", (values["input"], _listed(dim, 1), *(rest if keep else rest[:1] if unbiased is False else ())), {}
    return rule


def _squeezed(values):
    return ("squeeze", "default", (values["input"],), {}) if values["dim"] is None and not values["more"] else None


def _moved(values):
    return ("movedim", "int" if isinstance(values["source"], int) else "intlist", (values["input"], values["source"], values["destination"]), {})


def _converted(name):
    """Conversions of the dtype alone."""
    from ._tensor import modes
    from ._tensor.wrapped import changes
    from .core import dtype as dt

    def rule(values):
        wanted = changes(values["self"], values["args"] if name == "to" else (dt.from_name(modes._CASTS[name]),), values.get("kwargs", {}))
        return ("to", "dtype", (values["self"], wanted["dtype"]), {}) if wanted and list(wanted) == ["dtype"] and not values.get("kwargs") else None
    return rule


def _like(name):
    return lambda values: (name, "default", (values["self"], values["other"]), {})


def _whole(values):
    return ("contiguous", "default", (values["input"],), {}) if values.get("memory_format") is None else None


def _run(values):
    """A recurrent layer on a batch of sequences of one length; its states are zeros where none are given."""
    import clnn
    from .nn.utils.rnn import PackedSequence
    layer, x, state = values["self"], values["input"], values["hx"]
    if isinstance(x, PackedSequence) or x.ndim != 3 or layer.proj_size:
        return None
    parts = 2 if layer.mode == "LSTM" else 1
    if state is None:
        shape = (layer.num_layers * (2 if layer.bidirectional else 1), x.shape[not layer.batch_first], layer.hidden_size)
        zeros = [clnn.zeros(shape, dtype=x.dtype, device=x.device) for _ in range(parts)]
    else:
        zeros = list(state) if parts == 2 else [state]
    name = {"LSTM": "lstm", "GRU": "gru", "RNN_TANH": "rnn_tanh", "RNN_RELU": "rnn_relu"}[layer.mode]
    return name, "input", (x, zeros if parts == 2 else zeros[0], list(layer._flat_weights), layer.bias, layer.num_layers, float(layer.dropout), layer.training,
                           layer.bidirectional, layer.batch_first), {}


def _paired(result):
    return result[0], result[1] if len(result) == 2 else tuple(result[1:])


def _forms(name):
    """The operator, and the function of its own that ``nn.functional`` may have."""
    from .nn import functional
    plain, other = REGISTRY[name].plain, vars(functional).get(name)
    return [plain, other] if isinstance(other, FunctionType) and other is not plain and other is not REGISTRY[name].fn else [plain]


def _places():
    """(function, its rule, what its caller gets of the operator's result)."""
    import clnn
    from .nn.modules.rnn import RNNBase
    from .ops import dropout as dropouts
    same = lambda r: r                                                                     # noqa: E731
    for line in _TABLE.strip().splitlines():
        name, overload, params = _parsed(line)
        for fn in _forms(name):
            yield fn, functools.partial(_by_line, name, overload, params), same
    yield REGISTRY["logsigmoid"].plain, lambda values: ("log_sigmoid", "default", (values["input"],), {}), same
    for name, rule in dict(embedding=_looked_up, cross_entropy=_classified("cross_entropy_loss", "label_smoothing"), nll_loss=_classified("nll_loss_nd"),
                           interpolate=_resized, split=_cut, reshape=_reshaped, einsum=_products, adaptive_max_pool2d=_pooled_to,
                           sum=_reduced("sum", "dim_IntList"), mean=_reduced("mean", "dim"), var=_spread("var"), std=_spread("std"), squeeze=_squeezed,
                           movedim=_moved).items():
        for fn in _forms(name):
            yield fn, rule, same
    for name in ("dropout", "alpha_dropout", "feature_alpha_dropout"):
        yield getattr(dropouts, name), _dropped(name), same
    for name in ("to", "float", "double", "half", "bfloat16", "long", "int", "short", "char", "byte", "bool"):
        yield clnn.Tensor.__dict__[name], _converted(name), same
    for name in ("type_as", "expand_as"):
        yield clnn.Tensor.__dict__[name], _like(name), same
    yield clnn.Tensor.__dict__["contiguous"], _whole, same
    yield RNNBase.forward, _run, _paired


@functools.lru_cache(None)
def places():
    """What :func:`_places` gives, with the functions' signatures as they were before anything was written into them."""
    return [(fn, inspect.signature(fn), rule, give) for fn, rule, give in _places()]


def install(put):
    """Let modes that want them be told of these functions; ``put(function, maker)`` writes the question into a function."""
    for fn, signature, rule, give in places():
        put(fn, functools.partial(_entry, signature, rule, give))


def _entry(signature, rule, give, inner):
    from ._tensor.modes import ask

    def entry(args, kwargs):
        modes = local.modes
        if not modes or not modes[-1].composites:
            return inner(*args, **kwargs)
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        told = rule(values=bound.arguments)
        if told is None:
            return inner(*args, **kwargs)
        name, overload, given, named, *pick = told
        give_back = pick[0] if pick and pick[0] is not None else give
        return give_back(ask(_aten(name, overload), given, named, lambda: inner(*args, **kwargs)))
    return entry
