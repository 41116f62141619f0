"""Pooling over windows of one, two or three dimensions. Backward passes gather: each input looks up the windows it lies in, so the sums have
a fixed order and need no atomics.
"""
from __future__ import annotations

import math

import numpy as np

from .._tensor import formats
from .._tensor.declare import composite, kernel
from .._tensor.dispatch import run
from .._tensor.formats import keeps_format
from .._tensor.tensor import empty
from ..core import dtype as dt
from ..core.shape import Size, whole
from ..core.symbols import memo
from ..graph.tasks import work_group
from ..graph.op import REGISTRY
from . import random as _random
from ._conv_other import integer_avg_pool
from .creation import alert
from .loss import require_float
from .views import _reshape_view, arranged

_AXES = ("D", "H", "W")


def ntuple(value, n, what="value"):
    """``value`` as n ints; one number stands for all."""
    if not isinstance(value, (tuple, list)):
        return (whole(value),) * n
    value = tuple([whole(v) for v in value])
    if len(value) == 1:
        return value * n
    if len(value) != n:
        raise RuntimeError(f"{what} must either be a single int, or a tuple of {n} ints, got {value}")
    return value


class Window:
    """Kernel size, stride, padding and dilation of a pooling, padded to three axes; hashable, as it selects the built kernel."""

    __slots__ = ("nd", "kernel", "stride", "padding", "dilation", "adaptive")

    def __init__(self, nd, kernel, stride, padding, dilation, adaptive=False):
        self.nd, self.kernel, self.stride, self.padding, self.dilation, self.adaptive = nd, kernel, stride, padding, dilation, adaptive

    def params(self):
        def by_axis(values, fill):
            return _Axes(zip(_AXES, (fill,) * (3 - self.nd) + tuple(values)))
        return dict(K=by_axis(self.kernel, 1), S=by_axis(self.stride, 1), P=by_axis(self.padding, 0), L=by_axis(self.dilation, 1),
                    ADAPTIVE=int(self.adaptive))

    def inside(self, sizes, out):
        """By axis: whether every window lies inside the input, so that no bounds need to be checked."""
        mine = zip(_AXES[3 - self.nd:], sizes[3 - self.nd:], out[3 - self.nd:], self.kernel, self.stride, self.padding, self.dilation)
        return _Axes({"D": True, "H": True, **{a: p == 0 and (o - 1) * s + (k - 1) * d < n for a, n, o, k, s, p, d in mine}})


_made = memo(1024)(Window)        # one object per window: launches are planned once for each


class _Axes(dict):
    """A dict by axis that can be part of a kernel's key."""

    def __hash__(self):
        return hash(tuple(self.values()))


def _sizes(shape, nd):
    return (1,) * (3 - nd) + tuple(shape[len(shape) - nd:])


def _lanes(window, dtype, size, out, backward):
    """Lanes of a vector over the outputs of a row (``backward``: over its inputs) on CPUs; 1: rows are too short for vectors."""
    k, s, p, d = window.kernel[-1], window.stride[-1], window.padding[-1], window.dilation[-1]
    for width in (16, 8, 4, 2):
        if width == 16 and dtype.acc in ("double", "long"):
            continue
        if backward:
            first, last = 0, size // s - width
        else:
            beyond = max((k - 1) * d, s - 1 if s in (2, 4) else 0)
            first, last = -(-p // s), (size + p - beyond - (width - 1) * s - 1) // s
        if last >= first:
            return width
    return 1


def _least(window, size, out):
    """Elements of the last axis that the smallest window holds."""
    k, s, p = window.kernel[-1], window.stride[-1], window.padding[-1]
    if window.adaptive:
        return max(1, size // out)
    return min(min(o * s - p + k, size) - max(o * s - p, 0) for o in (0, out - 1))


def _form(device, path, window, dtype, size, out, backward):
    """(FORM, W) of a kernel, see kernels/pooling/max; ``size`` and ``out`` of the last axis."""
    far = window.adaptive or window.kernel[-1] > 32
    if not device.is_cpu:
        return "item", 1
    if backward and (far or window.stride[-1] > 4):
        return ("owner", 1) if path == "pooling/max_backward" else ("runs", 8)
    width, wide = 1 if far else _lanes(window, dtype, size, out, backward), 0
    if not backward and window.dilation[-1] == 1:
        wide = min(8 if dtype.acc in ("double", "long") else 16, 1 << _least(window, size, out).bit_length() - 1)
    if wide >= 4 and (width == 1 or wide > width and window.stride[-1] > 4):
        return "wide", wide
    return ("lanes", width) if width > 1 else ("lanes", 4) if device.loops and not far else ("item", 1)


_BUILT = 16         # largest window that a kernel is built for where bounds can be computed instead: inputs of ever new sizes share the rest


def _shared(window, in_sizes, out_sizes):
    """The window whose bounds a kernel computes, in place of one of many elements that divides the input into parts; others as they are."""
    n, sizes, out = window.nd, in_sizes[3 - window.nd:], out_sizes[3 - window.nd:]
    if max(window.kernel) <= _BUILT or any(window.padding) or any(d > 1 for d in window.dilation):
        return window
    if any(k * o != size or s != k and o > 1 for k, s, size, o in zip(window.kernel, window.stride, sizes, out)):
        return window
    return _made(n, (1,) * n, (1,) * n, (0,) * n, (1,) * n, True)


@memo(1024)
def _plan(device, path, window, dtype, in_sizes, out_sizes, count, backward, extra):
    """(parameters, global size, local size, rows or planes per work-item) of a launch over ``count`` elements."""
    window = _shared(window, in_sizes, out_sizes)
    inner = (in_sizes if backward else out_sizes)[-1]
    form, width = _form(device, path, window, dtype, in_sizes[-1], out_sizes[-1], backward)
    rows, work = count // inner, inner * math.prod(window.kernel)     # elements read for a row
    if form == "owner":
        rows, work = count // math.prod(in_sizes), math.prod(in_sizes)
    elif form == "runs":
        work = 4 * inner
    elif window.adaptive:
        work = inner * math.prod(in_sizes) // math.prod(out_sizes)
    chunk = max(1, min(16384 // max(1, work), -(-rows // (4 * device.compute_units))))
    gs, ls = ((-(-rows // chunk),), (1,)) if form != "item" else ((inner, rows), work_group(device, inner, rows))
    if form == "owner":
        gs, ls = (1, *gs), (1, 1)
    params = dict(T=dtype, FORM=form, W=width, INSIDE=window.inside(in_sizes, out_sizes), **window.params(), **dict(extra))
    if window.adaptive and all((i + 1) * (o + 1) < 2 ** 31 for i, o in zip(in_sizes, out_sizes)):
        params["ADAPTIVE"] = 2                                   # bounds of windows in 32 bits
    if params.get("DIVISOR") == 0 and not window.adaptive and all(params["INSIDE"].values()):
        params["DIVISOR"] = math.prod(window.kernel)             # all windows are whole: a constant
    return params, gs, ls, chunk


def _launch(path, window, inputs, outputs, in_shape, out_shape, extra=(), backward=False):
    """Launch a pooling template over the elements of the output, ``backward`` over those of the input; ``extra``: more parameters."""
    over = outputs[0]
    if not over._numel:
        return
    device, in_sizes, out_sizes = over._storage.device, _sizes(in_shape, window.nd), _sizes(out_shape, window.nd)
    params, gs, ls, chunk = _plan(device, path, window, over.dtype, in_sizes, out_sizes, over._numel, backward, extra)
    run(device, path, params, gs, ls, *inputs, *outputs, over._numel, *in_sizes, *out_sizes, chunk)


# -- max ----------------------------------------------------------------------------------------------------------------------------
@kernel("_max_pool", method=False, repeat=True, outputs=("out", "at"), vjp=dict(
    input=lambda g, input, window, at: _max_pool_backward(_first(g), at, window, input.shape)))
@keeps_format(1)
def _max_pool(input, window, out_shape):
    device = input._storage.device
    out, at = empty(out_shape, input.dtype, device), empty(out_shape, dt.int32, device)
    _launch("pooling/max", window, [input.contiguous()], [out, at], input.shape, out_shape)
    return out, at


def _first(g):
    return g[0] if isinstance(g, tuple) else g


@kernel("_max_pool_backward", method=False, repeat=True, vjp=dict(grad=lambda g, at, window: pick(g, at, window.nd)))
def _max_pool_backward(grad, at, window, shape):
    gx = empty(shape, grad.dtype, grad._storage.device)
    _launch("pooling/max_backward", window, [grad.contiguous(), at.contiguous()], [gx], shape, grad.shape, backward=True)
    return gx


def pick(x, at, nd):
    """The elements of ``x`` at the flat places ``at`` of each plane."""
    lead = tuple(x.shape[:x.ndim - nd])
    flat = x.reshape(lead + (-1,))
    return flat.gather(len(lead), at.to(dt.int64).reshape(lead + (-1,))).reshape(tuple(at.shape))


def _out_size(size, k, s, p, d, ceil_mode):
    out = (size + 2 * p - d * (k - 1) - 1 + (s - 1 if ceil_mode else 0)) // s + 1
    return out - 1 if ceil_mode and (out - 1) * s >= size + p else out


def _window(name, input, nd, kernel_size, stride, padding, dilation, ceil_mode):
    """(Window, output shape) with PyTorch's checks."""
    sizes = [tuple(v) if v.__class__ is list else v for v in (kernel_size, stride, padding, dilation)]
    try:
        return _window_of(name, input.shape, nd, *sizes, bool(ceil_mode))
    except TypeError:                                            # what cannot be hashed goes on to the checks
        return _window_of.__wrapped__(name, input.shape, nd, *sizes, bool(ceil_mode))


def _too_small(name, nd, shape, kernel_size, out):
    """What PyTorch says of windows that are larger than the input."""
    if name == "max_pool1d":
        return f"max_pool1d() Invalid computed output size: {out[0]}"
    if name == "avg_pool3d":
        sizes = [" ".join(f"{k}{axis}: {n}" for axis, n in zip("THW", s)) for k, s in (("", shape[-3:]), ("k", kernel_size))]
        return "input image ({}) smaller than kernel size ({})".format(*sizes)
    lead = (*shape[-nd - 1:-nd], 1) if nd == 1 else shape[-nd - 1:-nd]              # a row is a plane of one row there
    given, got = ("x".join(map(str, (*lead, *s))) for s in (shape[len(shape) - nd:], out))
    return f"Given input size: ({given}). Calculated output size: ({got}). Output size is too small"


@memo(1024)
def _window_of(name, shape, nd, kernel_size, stride, padding, dilation, ceil_mode):
    kernel_size = ntuple(kernel_size, nd, f"{name}: kernel_size")
    stride = kernel_size if stride is None or stride.__class__ in (tuple, list) and not stride else ntuple(stride, nd, f"{name}: stride")
    padding, dilation = ntuple(padding, nd, f"{name}: padding"), ntuple(dilation, nd, f"{name}: dilation")
    if len(shape) not in (nd + 1, nd + 2):
        wanted = f"{nd + 1}D or {nd + 2}D (batch mode) tensor"
        raise RuntimeError(f"{name}: Expected {wanted} with optional 0 dim batch size for input, but got:{list(shape)}" if nd == 1 else
                           f"{name}: non-empty {wanted} expected for input, but got {len(shape)}D: {list(shape)}")
    if any(s <= 0 for s in stride):
        raise RuntimeError("stride should not be zero" if 0 in stride else f"{name}: stride must be greater than zero, but got {stride}")
    if any(k <= 0 for k in kernel_size):
        raise RuntimeError(f"kernel size should be greater than zero, but got kernel_size={kernel_size} ({name})")
    if any(d <= 0 for d in dilation):
        given = " ".join(f"dilation{axis}: {d}" for axis, d in zip("THW"[3 - nd:], dilation))
        raise RuntimeError("max_pool1d() dilation must be greater than zero, but got " + str(dilation[0]) if nd == 1 else
                           f"dilation should be greater than zero, but got {given}")
    for k, p, d in zip(kernel_size, padding, dilation):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p} ({name})")
        if p > ((k - 1) * d + 1) // 2:
            raise RuntimeError(f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and dilation={d}")
    sizes = shape[len(shape) - nd:]
    out = tuple(_out_size(*a, ceil_mode) for a in zip(sizes, kernel_size, stride, padding, dilation))
    if any(o < 1 for o in out):
        raise RuntimeError(_too_small(name, nd, shape, kernel_size, out))
    return _made(nd, kernel_size, stride, padding, dilation), tuple(shape[:len(shape) - nd]) + out


def _max(nd, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices):
    window, shape = _window(f"max_pool{nd}d", input, nd, kernel_size, stride, padding, dilation, ceil_mode)
    out, at = _max_pool(input, window, shape)
    return (out, at.to(dt.int64)) if return_indices else out


def _max_samples(nd):
    def make():
        x = np.random.default_rng(nd).permutation(2 * 3 * 9 ** nd).reshape((2, 3) + (9,) * nd) / 7.0
        return [((x, 2), {}), ((x, 3), {"stride": 2, "padding": 1}), ((x, 3), {"stride": 1, "dilation": 2}), ((x, 2), {"ceil_mode": True}),
                ((x[0], 3), {"stride": 3, "padding": 1, "ceil_mode": True})]
    return make


def _declare_max(nd):
    name = f"max_pool{nd}d"

    def body(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        return _max(nd, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)
    body.__doc__ = f"""The largest element of each window of the last {nd} dimension(s), with NaN as the largest.

    Args:
        input: ``(N, C, *)`` or ``(C, *)`` with {nd} spatial dimension(s).
        kernel_size, stride, padding, dilation: one number or {nd}; the stride defaults to the kernel size.
        ceil_mode: round the output size up.
        return_indices: also give the flat place of each maximum in its plane.

    Raises:
        RuntimeError: wrong number of dimensions, or an output of size 0.
    """
    made = composite(name, method=False, torch=f"nn.functional.{name}", samples=_max_samples(nd),
                     errors=(((np.zeros((3,) * (nd + 3)), 2), {}, RuntimeError, "(batch mode) tensor"),))(body)

    def with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=True):
        """The pooled tensor and the flat place of each maximum in its plane."""
        return _max(nd, input, kernel_size, stride, padding, dilation, ceil_mode, True)
    composite(name + "_with_indices", method=False, torch=f"nn.functional.{name}_with_indices")(with_indices)
    return made


max_pool1d, max_pool2d, max_pool3d = _declare_max(1), _declare_max(2), _declare_max(3)
_max_pool.op.grad_name = "MaxPool2DWithIndicesBackward0"


# -- average ------------------------------------------------------------------------------------------------------------------------
def _options(padded, divisor, backward):
    return ("PADDED", int(padded)), ("DIVISOR", divisor or 0), ("BACKWARD", backward)


@kernel("_avg_pool", method=False, repeat=True, vjp=dict(
    input=lambda g, input, window, padded, divisor: _avg_pool_backward(g, window, padded, divisor, input.shape)))
@keeps_format(1, rank=lambda input, window, *rest: window.nd + 2)
def _avg_pool(input, window, out_shape, padded, divisor):
    out = empty(out_shape, input.dtype, input._storage.device)
    _launch("pooling/average", window, [input.contiguous()], [out], input.shape, out_shape, _options(padded, divisor, 0))
    return out


@kernel("_avg_pool_backward", method=False, repeat=True, vjp=dict(grad=lambda g, grad, window, padded, divisor: _avg_pool(g, window, grad.shape, padded, divisor)))
def _avg_pool_backward(grad, window, padded, divisor, shape):
    gx = empty(shape, grad.dtype, grad._storage.device)
    _launch("pooling/average", window, [grad.contiguous()], [gx], shape, grad.shape, _options(padded, divisor, 1), True)
    return gx


def average_windows(x, out, factors, divisor, spread):
    """Sums of neighbouring windows of ``factors`` elements, divided by an integer, into ``out``; ``spread``: every element as often as its window has places."""
    window = _made(len(factors), factors, factors, (0,) * len(factors), (1,) * len(factors))
    small, large = (x.shape, out.shape) if spread else (out.shape, x.shape)
    _launch("pooling/average", window, [x], [out], large, small, _options(False, divisor, int(spread)), spread)


_avg_pool.op.grad_name = "AvgPool2DBackward0"


def _avg(nd, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    name = f"avg_pool{nd}d"
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    if input.dtype is not dt.int64:
        require_float(name, input)
    window, shape = _window(name, input, nd, kernel_size, stride, padding, 1, ceil_mode)
    if input.dtype is dt.int64:
        return integer_avg_pool(input, window.kernel, window.stride, window.padding, ceil_mode, count_include_pad, divisor_override)
    return _avg_pool(input, window, shape, bool(count_include_pad), divisor_override)


def _avg_samples(nd):
    def make():
        x = np.random.default_rng(nd).normal(0, 1, (2, 3) + (9,) * nd)
        more = [((x, 2), {"divisor_override": 3})] if nd > 1 else []
        return [((x, 2), {}), ((x, 3), {"stride": 2, "padding": 1}),
                ((x, 3), {"stride": 2, "padding": 1, "count_include_pad": False, "ceil_mode": True}),
                *more]
    return make


def _declare_avg(nd):
    name = f"avg_pool{nd}d"
    if nd == 1:
        def body(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
            return _avg(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)
    else:
        def body(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
            return _avg(nd, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
    body.__doc__ = f"""The mean of each window of the last {nd} dimension(s).

    Args:
        input: ``(N, C, *)`` or ``(C, *)``.
        kernel_size, stride, padding: one number or {nd}.
        ceil_mode: round the output size up.
        count_include_pad: whether the zeros of the padding count as elements.
        divisor_override: divide by this number instead of the window's size (two and three dimensions).
    """
    return composite(name, method=False, torch=f"nn.functional.{name}", samples=_avg_samples(nd))(body)


avg_pool1d, avg_pool2d, avg_pool3d = _declare_avg(1), _declare_avg(2), _declare_avg(3)


# -- adaptive -----------------------------------------------------------------------------------------------------------------------
def _check_filled(name, shape, first):
    """Windows need elements: no dimension from ``first`` on is empty."""
    if name == "adaptive_avg_pool1d":                           # in PyTorch the other on a row
        name, shape = "adaptive_avg_pool2d", Size((*shape[:-1], 1, shape[-1]))
    for d in range(first, len(shape)):
        if not shape[d]:
            raise RuntimeError(f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {list(shape)} with dimension {d} "
                               "being empty")


def _adaptive_window(name, input, nd, output_size):
    """(Window, output shape): a plain window where the sizes divide, else windows whose bounds are computed per output."""
    if nd > 1 and isinstance(output_size, (tuple, list)) and input.ndim <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    if input.ndim not in (nd + 1, nd + 2):
        raise RuntimeError(f"{name}(): Expected {nd + 1}D or {nd + 2}D tensor, but got {list(input.shape)}")
    _check_filled(name, input.shape, 1 if "max" in name else input.ndim - nd)
    if output_size is None:
        raise TypeError(f"{name}(): argument 'output_size' (position 2) must be tuple of ints, not NoneType")
    sizes = tuple(input.shape[input.ndim - nd:])
    given = (output_size,) * nd if isinstance(output_size, (int, np.integer)) else tuple(output_size)
    if len(given) != nd and nd == 1:
        raise RuntimeError(f"{name}() argument 'output_size' should contain one int (got {len(given)})")
    if len(given) != nd:
        what = "(): internal error: output_size.size()" if "max" in name else ": output_size"
        raise RuntimeError(f"{name}{what} must be {nd}")
    out = tuple(s if o is None else whole(o) for s, o in zip(sizes, given))
    if any(o < 0 for o in out):
        raise RuntimeError(f"{name}: elements of output_size must be greater than or equal to 0 but received {out}")
    shape = tuple(input.shape[:input.ndim - nd]) + out
    if all(o and s % o == 0 for s, o in zip(sizes, out)):
        steps = tuple(s // o for s, o in zip(sizes, out))
        return _made(nd, steps, steps, (0,) * nd, (1,) * nd), shape
    return _made(nd, (1,) * nd, (1,) * nd, (0,) * nd, (1,) * nd, True), shape


def _adaptive_samples(nd):
    def make():
        x = np.random.default_rng(nd).permutation(2 * 3 * 7 ** nd).reshape((2, 3) + (7,) * nd) / 7.0
        return [((x, 1), {}), ((x, 3), {}), ((x, 7), {}), ((x[0], 9), {}), ((x[(..., *[slice(1)] * nd)], 4), {})]
    return make


def _declare_adaptive(nd):
    name = f"adaptive_avg_pool{nd}d"

    def average(input, output_size):
        require_float(name, input)
        if nd > 1 and output_size == 1 and input.ndim not in (nd + 1, nd + 2):      # PyTorch takes any number of dimensions here
            return input.mean(tuple(range(-nd, 0)), keepdim=True)
        window, shape = _adaptive_window(name, input, nd, output_size)
        sizes = tuple(input.shape[input.ndim - nd:])
        if window.kernel == sizes and input._numel and not window.adaptive:         # global: a row reduction
            out, format = input.mean(tuple(range(-nd, 0)), keepdim=True), formats.suggested(input)
            return out if format is None else _reshape_view(out, out.shape, formats.strides_of(format, out.shape))
        wide = input._storage.device.is_cpu and sizes[-1] >= 4 * shape[-1]
        if window.adaptive and 0 not in shape and not wide:        # windows of unequal sizes: weighted sums by a table per axis
            from .resample import _resample, window_table
            return _resample(input, tuple(None if s == o else window_table("area", s, o, False, None, False) for s, o in zip(sizes, shape[-nd:])))
        return _avg_pool(input, window, shape, False, None)
    average.__doc__ = (f"The mean over windows that divide the last {nd} dimension(s) into ``output_size`` parts (one number or {nd}; None keeps "
                       "a size). Output o of a dimension covers inputs ``floor(o N / O)`` to ``ceil((o + 1) N / O) - 1``.")
    avg = composite(name, repeat="ready small", method=False, torch=f"nn.functional.{name}", samples=_adaptive_samples(nd))(average)
    max_name = f"adaptive_max_pool{nd}d"

    def largest(input, output_size, return_indices=False):
        window, shape = _adaptive_window(max_name, input, nd, output_size)
        out, at = _max_pool(input, window, shape)
        return (out, at.to(dt.int64)) if return_indices else out
    largest.__doc__ = f"The largest element of windows as in :func:`adaptive_avg_pool{nd}d`; ``return_indices`` also gives their flat places."
    most = composite(max_name, repeat="small", method=False, torch=f"nn.functional.{max_name}", samples=_adaptive_samples(nd))(largest)

    def with_indices(input, output_size, return_indices=True):
        """The pooled tensor and the flat place of each maximum in its plane."""
        return most(input, output_size, True)
    composite(max_name + "_with_indices", method=False, torch=f"nn.functional.{max_name}_with_indices")(with_indices)
    return avg, most


(adaptive_avg_pool1d, adaptive_max_pool1d), (adaptive_avg_pool2d, adaptive_max_pool2d), (adaptive_avg_pool3d, adaptive_max_pool3d) = (
    _declare_adaptive(n) for n in (1, 2, 3))


# -- made of these ------------------------------------------------------------------------------------------------------------------
def _lp(nd, input, norm_type, kernel_size, stride, ceil_mode):
    if norm_type == float("inf"):
        return REGISTRY[f"max_pool{nd}d"].fn(input.abs(), kernel_size, stride, ceil_mode=ceil_mode)
    sizes = ntuple(kernel_size, nd)
    count = 1
    for k in sizes:
        count *= k
    out = _avg(nd, input.pow(norm_type), kernel_size, stride, 0, ceil_mode, True, None)
    return (out.sign() * out.abs().relu() * count).pow(1.0 / norm_type)


def _declare_lp(nd):
    def body(input, norm_type, kernel_size, stride=None, ceil_mode=False):
        return _lp(nd, input, norm_type, kernel_size, stride, ceil_mode)
    body.__doc__ = f"``(sum x^p)^(1/p)`` over each window of the last {nd} dimension(s), p being ``norm_type``."
    return composite(f"lp_pool{nd}d", repeat="ready small", splice=True, method=False, torch=f"nn.functional.lp_pool{nd}d",
                     samples=lambda: [((np.random.default_rng(0).random((2, 3) + (6,) * nd) + 0.1, 2.0, 2), {})])(body)


lp_pool1d, lp_pool2d, lp_pool3d = _declare_lp(1), _declare_lp(2), _declare_lp(3)


def _check_places(nd, rank, kind):
    if kind is not dt.int64:
        raise RuntimeError("elements in indices should be type int64" + (f" but got: {dt.SPOKEN[kind.name]}" if nd == 2 else ""))
    if rank not in (nd + 1, nd + 2):
        raise RuntimeError(f"Input to max_unpooling{nd}d should be a {nd + 1}d or {nd + 2}d Tensor, but got a tensor with {rank} dimensions.")


def _declare_unpool(nd):
    def body(input, indices, kernel_size, stride=None, padding=0, output_size=None):
        kernel_size = ntuple(kernel_size, nd)
        stride = kernel_size if stride is None else ntuple(stride, nd)
        padding = ntuple(padding, nd)
        _check_places(max(nd, 2), input.ndim + (nd == 1), indices.dtype)
        if input.shape != indices.shape:
            raise RuntimeError(f"Expected shape of indices to be same as that of the input tensor ({list(input.shape)}) but got indices tensor with "
                               f"shape: {list(indices.shape)}")
        sizes = input.shape[input.ndim - nd:]
        usual = tuple((n - 1) * s + k - 2 * p for n, k, s, p in zip(sizes, kernel_size, stride, padding))
        out = usual if output_size is None else tuple(output_size)[-nd:]
        for o, u, s in zip(out, usual, stride):
            if not u - s < o < u + s:
                raise ValueError(f"invalid output_size {tuple(out)} (dimensions must be between {tuple(u - s for u, s in zip(usual, stride))} and "
                                 f"{tuple(u + s for u, s in zip(usual, stride))})")
        lead = tuple(input.shape[:input.ndim - nd])
        volume = 1
        for o in out:
            volume *= o
        alert(f"max_unpooling{max(nd, 2)}d_forward_out")
        flat = input.new_zeros(lead + (volume,)).scatter(len(lead), indices.reshape(lead + (-1,)), input.reshape(lead + (-1,)))
        return arranged(flat.reshape(lead + tuple(out)), input)
    body.__doc__ = f"Inverse of :func:`max_pool{nd}d`: each value goes to the place its index names, zeros elsewhere."
    return composite(f"max_unpool{nd}d", method=False, torch=f"nn.functional.max_unpool{nd}d")(body)


max_unpool1d, max_unpool2d, max_unpool3d = _declare_unpool(1), _declare_unpool(2), _declare_unpool(3)


def _declare_fractional(nd):
    name = f"fractional_max_pool{nd}d"

    def both(input, kernel_size, output_size=None, output_ratio=None, return_indices=True, _random_samples=None):
        """The pooled tensor and the flat place of each maximum in its plane."""
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        sizes = tuple(input.shape[input.ndim - nd:])
        if output_size is None:
            ratio = output_ratio if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * nd
            output_size = tuple(int(s * r) for s, r in zip(sizes, ratio))
        out, kernel_size = ntuple(output_size, nd), ntuple(kernel_size, nd)
        for what, o, k, s in zip(("time", "height", "width")[3 - nd:], out, kernel_size, sizes):
            if o + k - 1 > s:
                raise RuntimeError(f"{name}(): pool {what} {k} too large relative to input {what} {s}")
        x = input if input.ndim == nd + 2 else input.unsqueeze(0)
        lead = tuple(x.shape[:2])
        u = _random_samples if _random_samples is not None else _random.rand(*lead, nd, dtype=input.dtype, device=input.device)
        u, place = u[:lead[0]], None
        for d in range(nd):                                      # torch draws one sample per axis, the last axis first
            axis = _fractional_axis(u[:, :, nd - 1 - d] if nd == 2 else u[:, :, d], sizes[d], out[d], kernel_size[d])
            shape = [*lead] + [1] * (2 * nd)
            shape[2 + d], shape[2 + nd + d] = out[d], kernel_size[d]
            axis = axis.reshape(shape)
            place = axis if place is None else place * sizes[d] + axis
        place = place.expand(lead + out + kernel_size).reshape(lead + out + (math.prod(kernel_size),))
        windows = x.reshape(lead + (math.prod(sizes),)).gather(2, place.reshape(lead + (math.prod(out + kernel_size),))).reshape(tuple(place.shape))
        best = windows.detach().argmax(-1, keepdim=True)
        y, at = windows.gather(-1, best).squeeze(-1), place.gather(-1, best).squeeze(-1)
        return (y, at) if input.ndim == nd + 2 else (y.squeeze(0), at.squeeze(0))

    def only(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        got = both(input, kernel_size, output_size, output_ratio, True, _random_samples)
        return got if return_indices else got[0]
    only.__doc__ = "Max pooling over windows whose places are drawn so that the output has ``output_size`` (Graham, 2014)."
    composite(name + "_with_indices", method=False, torch=f"nn.functional.{name}_with_indices")(both)
    return composite(name, method=False, torch=f"nn.functional.{name}")(only)


def _fractional_axis(u, size, out, k):
    """Input numbers (N, C, out, k) of the windows of one axis, from samples u (N, C)."""
    from .creation import arange
    u = u.reshape(tuple(u.shape) + (1,))
    if out > 1:
        alpha = (size - k) / (out - 1)
        i = arange(out, device=u.device).to(u.dtype)
        start = ((i + u) * alpha).trunc() - (u * alpha).trunc()
        start = start * (i < out - 1).to(u.dtype) + (i == out - 1).to(u.dtype) * (size - k)
    else:
        start = u * 0 + (size - k)
    return start.to(dt.int64).unsqueeze(-1) + arange(k, device=u.device)


fractional_max_pool2d, fractional_max_pool3d = _declare_fractional(2), _declare_fractional(3)
