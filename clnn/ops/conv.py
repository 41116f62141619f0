"""Convolutions in one, two and three dimensions, transposed ones, and their gradients as operators of their own."""
from __future__ import annotations

from math import prod

import numpy as np

from .._tensor.declare import composite, kernel
from .._tensor.formats import keeps_format
from .._tensor.grad_mode import state
from .._tensor.inplace import type_name
from .._tensor.refusals import spoken
from .._tensor.tensor import Tensor, empty
from ..core import dtype as dt
from ..core.shape import Size, whole
from ..core.symbols import memo
from ._conv import conv_backward_input, conv_forward
from ._conv_grid import output_size
from ._conv_weight import conv_backward_weight
from . import _conv_other, creation
from .matmul import product
from .padding import pad


def _buffer(t):
    return t._storage.buffer(), t._offset


def _one_window(shape, weight_shape, padding, dilation, groups, dtype) -> bool:
    """Whether the window covers all of an input of ``shape``, so that a convolution is a product of matrices."""
    return (groups == 1 and shape[2:] == weight_shape[2:] and dtype.is_floating_point and all([p == (0, 0) if type(p) is tuple else p == 0 for p in padding])
            and all([k == 1 or d == 1 for k, d in zip(weight_shape[2:], dilation)]))


def _zeros(shape, like):
    return creation.filled(Size(shape), 0, like.dtype, like._storage.device)


@kernel("convolution", method=False, repeat=True, autocast="low", torch="",
        vjp=dict(input=lambda g, input, weight, stride, padding, dilation, groups:
                 conv_input_grad(g, weight, None, tuple(input.shape), stride, padding, dilation, groups),
                 weight=lambda g, input, weight, stride, padding, dilation, groups:
                 conv_weight_grad(g, input, tuple(weight.shape), stride, padding, dilation, groups),
                 bias=lambda g: g.sum((0, *range(2, g.ndim)))))
@keeps_format(2)
def convolution(input, weight, bias, stride, padding, dilation, groups):
    """``input`` (N, C, *spatial) with ``weight`` (O, C // groups, *kernel); all parameters as tuples, one entry per spatial dimension."""
    x, w = input.contiguous(), weight.contiguous()
    spatial = output_size(tuple(x.shape[2:]), tuple(w.shape[2:]), stride, padding, dilation)
    shape = Size((x.shape[0], w.shape[0], *spatial))
    if x._numel == 0 or w._numel == 0:
        return _zeros(shape, x)
    if _one_window(tuple(x.shape), tuple(w.shape), padding, dilation, groups, x.dtype):
        return product(x.reshape(x.shape[0], -1), w.reshape(w.shape[0], -1).mT, bias).reshape(shape)
    y = empty(shape, x.dtype, x._storage.device)
    extra = None if bias is None else _buffer(bias.contiguous())
    conv_forward(x._storage.device, x.dtype, *_buffer(x), tuple(x.shape), *_buffer(w), tuple(w.shape), y._storage.buf, 0, stride, padding,
                 dilation, groups, extra)
    return y


convolution.op.grad_name = "ConvolutionBackward0"


@kernel("conv_input_grad", method=False, repeat=True, autocast="low",
        vjp=dict(input=lambda g, weight, stride, padding, dilation, groups: convolution(g, weight, None, stride, padding, dilation, groups),
                 weight=lambda g, input, weight, stride, padding, dilation, groups:
                 conv_weight_grad(input, g, tuple(weight.shape), stride, padding, dilation, groups),
                 bias=lambda g: g.sum((0, *range(2, g.ndim)))))
@keeps_format(2)
def conv_input_grad(input, weight, bias, shape, stride, padding, dilation, groups):
    """The gradient of a convolution's input of ``shape``; also the forward pass of a transposed convolution."""
    dy, w = input.contiguous(), weight.contiguous()
    if 0 in dy.shape or 0 in w.shape or 0 in shape:
        return _zeros(shape, dy)
    if _one_window(tuple(shape), tuple(w.shape), padding, dilation, groups, dy.dtype):
        bias = None if bias is None else bias.unsqueeze(1).expand(shape[1], prod(shape[2:])).reshape(-1)
        return product(dy.reshape(shape[0], -1), w.reshape(w.shape[0], -1), bias).reshape(shape)
    dx = empty(Size(shape), dy.dtype, dy._storage.device)
    extra = None if bias is None else _buffer(bias.contiguous())
    conv_backward_input(dy._storage.device, dy.dtype, *_buffer(dy), *_buffer(w), dx._storage.buf, 0, tuple(shape), tuple(w.shape), stride,
                        padding, dilation, groups, extra)
    return dx


conv_input_grad.op.grad_name = "ConvolutionBackward0"


@kernel("conv_weight_grad", method=False, repeat=True,
        vjp=dict(grad=lambda g, input, stride, padding, dilation, groups: convolution(input, g, None, stride, padding, dilation, groups),
                 input=lambda g, grad, input, stride, padding, dilation, groups:
                 conv_input_grad(grad, g, None, tuple(input.shape), stride, padding, dilation, groups)))
def conv_weight_grad(grad, input, shape, stride, padding, dilation, groups):
    """The gradient of a convolution's weight of ``shape``."""
    dy, x = grad.contiguous(), input.contiguous()
    if 0 in dy.shape or 0 in x.shape or 0 in shape:
        return _zeros(shape, dy)
    if _one_window(tuple(x.shape), tuple(shape), padding, dilation, groups, dy.dtype):
        return product(dy.reshape(x.shape[0], -1).mT, x.reshape(x.shape[0], -1)).reshape(shape)
    dw = empty(Size(shape), dy.dtype, dy._storage.device)
    if not conv_backward_weight(dy._storage.device, dy.dtype, *_buffer(x), *_buffer(dy), dw._storage.buf, 0, tuple(x.shape), tuple(shape), stride, padding,
                                dilation, groups):
        half = x.shape[0] // 2
        first, second = (conv_weight_grad(dy[part], x[part], shape, stride, padding, dilation, groups) for part in (slice(half), slice(half, None)))
        return first + second
    return dw


def _per_dim(value, n, what):
    """One int per spatial dimension."""
    if isinstance(value, (tuple, list)):
        if len(value) == 1:
            value = tuple(value) * n
        if len(value) != n:
            raise RuntimeError(f"expected {what} to be a single integer value or a list of {n} values to match the convolution dimensions, "
                               f"but got {what}={list(value)}")
        return tuple(whole(v) for v in value)
    return (whole(value),) * n


def _batched(name, input, n):
    if input.ndim == n + 1:
        return input.unsqueeze(0), True
    if input.ndim != n + 2:
        raise RuntimeError(f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {name}, but got input of size: {list(input.shape)}")
    return input, False


def _same_padding(name, kernel_size, stride, dilation, padding):
    if padding == "valid":
        return (0,) * len(kernel_size)
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}', should be one of 'valid', 'same'")
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    total = [d * (k - 1) for k, d in zip(kernel_size, dilation)]
    return tuple(t // 2 if t % 2 == 0 else (t // 2, t - t // 2) for t in total)


def _check(name, input, weight, bias, n):
    for t, what in ((input, "input"), (weight, "weight")):
        if not isinstance(t, Tensor):
            raise TypeError(f"{name}(): argument '{what}' must be Tensor, not {type(t).__name__}")
    if weight.ndim != n + 2:
        raise RuntimeError(f"{name}: weight should have {n + 2} dimensions, got weight.shape={tuple(weight.shape)}")
    for t, what in ((bias, "bias"), (weight, "weight")):
        if t is not None and t.dtype is not input.dtype and state.autocast is None:
            raise RuntimeError(f"Input type ({spoken(input.dtype)}) and {what} type ({spoken(t.dtype)}) should be the same ({name})")
    if input._storage.device is not weight._storage.device:
        raise RuntimeError(f"Expected all tensors to be on the same device, but found at least two devices, {input.device} and {weight.device}! "
                           f"({name})")
    if input.dtype is dt.bool_ or "transpose" in name and input.dtype.category == dt.INT and input.dtype is not dt.int64:
        raise NotImplementedError(f'"{name}" not implemented for \'{type_name(input.dtype)}\'')


def _positive(name, stride, dilation, kernel_size):
    if any(s <= 0 for s in stride):
        raise RuntimeError(f"non-positive stride is not supported ({name}: stride={stride})")
    if any(d <= 0 for d in dilation):
        raise RuntimeError(f"dilation should be greater than zero ({name}: dilation={dilation})")
    if 0 in kernel_size:
        said = f": {' x '.join(map(str, kernel_size))} (TxHxW)" if len(kernel_size) == 3 else " kernel_height: {} kernel_width: {}".format(*(1, *kernel_size)[-2:])
        raise RuntimeError(f"kernel size should be greater than zero, but got{said}")


def _divided(weight_shape, groups):
    if weight_shape[0] < groups or weight_shape[0] % groups:
        what = f"at least {groups}" if weight_shape[0] < groups else f"divisible by {groups}"
        raise RuntimeError(f"Given groups={groups}, expected weight to be {what} at dimension 0, but got weight of size {list(weight_shape)} instead")


@memo(4096)
def _geometry(name, n, shape, weight_shape, bias_shape, stride, padding, dilation, groups):
    """(stride, padding, dilation) with one entry per spatial dimension of a batched input of ``shape``, checked."""
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    stride, dilation = _per_dim(stride, n, "stride"), _per_dim(dilation, n, "dilation")
    kernel_size = tuple(weight_shape[2:])
    _positive(name, stride, dilation, kernel_size)
    padding = _same_padding(name, kernel_size, stride, dilation, padding) if isinstance(padding, str) else _per_dim(padding, n, "padding")
    if any(p < 0 for p in padding if isinstance(p, int)):
        raise RuntimeError("negative padding is not supported")
    _divided(weight_shape, groups)
    if shape[1] != weight_shape[1] * groups:
        raise RuntimeError(f"Given groups={groups}, weight of size {list(weight_shape)}, expected input{list(shape)} to have "
                           f"{weight_shape[1] * groups} channels, but got {shape[1]} channels instead")
    if bias_shape is not None and tuple(bias_shape) != (weight_shape[0],):
        raise RuntimeError(f"Given weight of size {list(weight_shape)}, expected bias to be 1-dimensional with {weight_shape[0]} elements, but got "
                           f"bias of size {list(bias_shape)} instead")
    for s, k, p, d in zip(shape[2:], kernel_size, padding, dilation):
        if s + (sum(p) if isinstance(p, tuple) else 2 * p) < d * (k - 1) + 1:
            padded = " x ".join(str(s + (sum(p) if isinstance(p, tuple) else 2 * p)) for s, p in zip(shape[2:], padding))
            raise RuntimeError(f"Calculated padded input size per channel: ({padded}). Kernel size: ({' x '.join(map(str, kernel_size))}). "
                               "Kernel size can't be greater than actual input size")
    return stride, padding, dilation


def _hashable(value):
    return tuple(value) if isinstance(value, list) else value


def _conv(name, n, input, weight, bias, stride, padding, dilation, groups):
    _check(name, input, weight, bias, n)
    input, single = _batched(name, input, n)
    stride, padding, dilation = _geometry(name, n, input.shape, weight.shape, None if bias is None else bias.shape, _hashable(stride),
                                          _hashable(padding), _hashable(dilation), groups)
    if input.dtype.is_complex:
        r = _conv_other.complex_conv(lambda x, w: convolution(x, w, None, stride, padding, dilation, groups), input, weight, bias, groups, False)
    else:
        op = convolution if input.dtype.is_floating_point else _conv_other.integer_conv
        r = op(input, weight, bias, stride, padding, dilation, groups)
    return r.squeeze(0) if single else r


def _transposed(name, n, input, weight, bias, stride, padding, output_padding, groups, dilation):
    _check(name, input, weight, bias, n)
    input, single = _batched(name, input, n)
    if isinstance(padding, str):
        raise TypeError(f"{name}(): argument 'padding' (position 5) must be tuple of ints, not str")
    stride, dilation, padding = _per_dim(stride, n, "stride"), _per_dim(dilation, n, "dilation"), _per_dim(padding, n, "padding")
    extra = _per_dim(output_padding, n, "output_padding")
    _positive(name, stride, dilation, tuple(weight.shape[2:]))
    _divided(weight.shape, groups)
    if input.shape[1] != weight.shape[0]:
        raise RuntimeError(f"Given transposed=1, weight of size {list(weight.shape)}, expected input{list(input.shape)} to have {weight.shape[0]} "
                           f"channels, but got {input.shape[1]} channels instead")
    for o, s, d in zip(extra, stride, dilation):
        if o >= s and o >= d:
            rows = [((before,) + v if n == 1 else v, what) for v, what, before in ((extra, "output_padding", 0), (stride, "stride", 1), (dilation, "dilation", 1))]
            said = [f"{what}_{axis}: {k}" for v, what in rows for k, axis in zip(v, ("depth", "height", "width")[-len(v):])]
            raise RuntimeError(f"output padding must be smaller than either stride or dilation, but got {' '.join(said)}")
    # What a dilation allows beyond the stride: less is cut off at the end, and what then remains no element of the input reaches (zeros, and the bias).
    more = tuple(max(0, o - s + 1) for o, s in zip(extra, stride))
    beyond = tuple(max(0, m - p) for m, p in zip(more, padding))
    spatial = tuple((i - 1) * s - 2 * p + d * (k - 1) + o - b + 1
                    for i, k, s, p, o, d, b in zip(input.shape[2:], weight.shape[2:], stride, padding, extra, dilation, beyond))
    cut = tuple((p, p - min(p, m)) if m else p for p, m in zip(padding, more))
    if any(s < 0 for s in spatial):
        raise RuntimeError(f"{name}: the output would have the negative size {spatial}; got input.shape={tuple(input.shape)}")
    shape = (input.shape[0], weight.shape[1] * groups, *spatial)
    if 0 in spatial:                                            # nothing, with gradients of zero
        return input.new_zeros(shape) + (input.sum() + weight.sum() + (0 if bias is None else bias.sum()))
    if input.dtype.is_complex:
        r = _conv_other.complex_conv(lambda x, w: conv_input_grad(x, w, None, (x.shape[0], w.shape[1] * groups, *spatial), stride, cut, dilation, groups),
                                     input, weight, None if any(beyond) else bias, groups, True)
    elif input.dtype.is_floating_point:
        r = conv_input_grad(input, weight, None if any(beyond) else bias, shape, stride, cut, dilation, groups)
    else:
        r = _conv_other.integer_conv_transposed(input, weight, None if any(beyond) else bias, stride, padding,
                                                [o - b for o, b in zip(extra, beyond)], dilation, groups)
    if any(beyond):
        r = pad(r, [v for b in reversed(beyond) for v in (0, b)])
        r = r if bias is None else r + bias.reshape(-1, *[1] * n)
    return r.squeeze(0) if single else r


def _sample(n, transposed=False):
    def make():
        rng = np.random.default_rng(5)

        def f(*s):
            return rng.standard_normal(s).astype("float32")
        sp = (7, 6, 5)[:n]
        w = (4, 6) if transposed else (6, 4)
        out = [((f(2, 4, *sp), f(*w, *(3, 2, 3)[:n]), f(6)), {}),
               ((f(2, 4, *sp), f(*w, *(3, 2, 3)[:n])), dict(stride=2, padding=1)),
               ((f(2, 4, *sp), f(w[0], w[1] // 2, *(2,) * n) if not transposed else f(4, 3, *(2,) * n)), dict(groups=2, padding=1))]
        if transposed:                                           # a part of the output that the padding would have cut off
            out.append(((f(1, 2, *(4,) * n), f(2, 3, *(3,) * n), f(3)), dict(stride=2, padding=2, dilation=4, output_padding=3)))
        return out
    return make


_DOC = """{what} over {n} spatial dimension(s).

Args:
    input: ``(N, C, {dims})`` or ``(C, {dims})``.
    weight: ``({w}, {k})``.
    bias: ``(O,)`` or None.
    stride, padding, dilation: an int or one per dimension; ``padding`` may be ``'same'`` or ``'valid'``{only}.
    groups: blocks of channels that do not see each other.

Raises:
    RuntimeError: channels, groups or sizes do not fit; the text shows the shapes.
"""


def _declare(n):
    dims, k = ", ".join("DHW"[3 - n:]), ", ".join(f"k{c}" for c in "DHW"[3 - n:])

    def conv(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        return _conv(f"conv{n}d", n, input, weight, bias, stride, padding, dilation, groups)

    def transposed(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        return _transposed(f"conv_transpose{n}d", n, input, weight, bias, stride, padding, output_padding, groups, dilation)
    conv.__doc__ = _DOC.format(what="Convolution", n=n, dims=dims, w="O, C // groups", k=k, only="")
    transposed.__doc__ = _DOC.format(what="Transposed convolution", n=n, dims=dims, w="C, O // groups", k=k, only=" (not here)")
    return (composite(f"conv{n}d", repeat=True, complex=True, method=False, samples=_sample(n))(conv),
            composite(f"conv_transpose{n}d", repeat=True, complex=True, method=False, samples=_sample(n, True))(transposed))


conv1d, conv_transpose1d = _declare(1)
conv2d, conv_transpose2d = _declare(2)
conv3d, conv_transpose3d = _declare(3)
