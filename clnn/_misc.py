"""Functions of the top-level namespace that are neither operators nor factories: questions, switches, windows and small helpers."""
from __future__ import annotations

import warnings

import numpy as np

from ._tensor.interop import from_array, from_numpy
from ._tensor.return_types import named
from ._tensor.tensor import Tensor
from ._tensor.device import resolve
from .core import dtype as dt
from .core.config import config
from .core.shape import wrap_dim
from .core.warn import warn
from .graph.op import REGISTRY
from .ops import creation
from .ops import random as _random
from .ops.activation import IN_PLACE as _IN_PLACE
from .ops.extras import empty_strided  # noqa: F401
from .storage import UntypedStorage

# -- questions ----------------------------------------------------------------------------------------------------------------------


def is_signed(input):
    """True when the dtype can hold negative numbers."""
    return input.dtype.is_signed


def is_inference(input):
    """True for a tensor made in inference mode."""
    return input.is_inference()


def is_same_size(input, other):
    """True when the shapes are equal."""
    return input.shape == other.shape


def is_conj(input):
    """Always False: conjugates are computed at once."""
    return False


is_neg = is_distributed = is_conj


def is_storage(obj):
    """True for the storage behind a tensor."""
    return isinstance(obj, UntypedStorage)


def get_device(input):
    """The device index, -1 on a CPU."""
    return input.get_device()


def typename(obj):
    """The qualified name of an object's type."""
    if isinstance(obj, Tensor):
        return obj.type()
    cls = obj if isinstance(obj, type) else type(obj)
    return f"{cls.__module__}.{cls.__qualname__}" if cls.__module__ not in ("builtins", None) else cls.__qualname__


# -- switches: accepted where the answer is fixed -------------------------------------------------------------------------------------
def set_float32_matmul_precision(precision):
    """How exactly products of float32 matrices are computed.

    ``"highest"`` (the default): in float32. ``"high"`` and ``"medium"``: on NVIDIA GPUs of compute capability 8.0 and newer the operands may be rounded to
    TF32 (10 bits of mantissa; sums stay float32), which runs on tensor cores; elsewhere nothing changes. Convolutions are not affected. The same switch as
    ``clnn.backends.cuda.matmul.allow_tf32``. Products and convolutions of float16 and bfloat16 use tensor cores by themselves, as they lose nothing there;
    ``CLNN_TENSOR_CORES=0`` in the environment switches all of it off.

    A device is asked once per driver whether such products come out right, and the plain kernels serve it where they do not. The kernels were checked by
    assembling them and by running them with the instruction spelt out on other devices; they have not run on a tensor core yet.

    Args:
        precision: ``"highest"``, ``"high"`` or ``"medium"``; anything else changes nothing and gives a warning.

    Example::

        >>> clnn.set_float32_matmul_precision("high")
        >>> clnn.get_float32_matmul_precision()
        'high'
        >>> clnn.set_float32_matmul_precision("highest")
    """
    if precision not in ("highest", "high", "medium"):
        warnings.warn(f"{precision} is not one of 'highest', 'high', or 'medium'; the call has no effect", stacklevel=2)
        return
    config.matmul_precision = precision


def get_float32_matmul_precision():
    """What :func:`set_float32_matmul_precision` was given."""
    return config.matmul_precision


def are_deterministic_algorithms_enabled():
    """True: every clnn kernel gives equal bits in two runs."""
    return True


def is_deterministic_algorithms_warn_only_enabled():
    """False: nothing warns, as every kernel is deterministic."""
    return False


def set_deterministic_debug_mode(debug_mode):
    """Accepted: every clnn kernel is deterministic."""


def get_deterministic_debug_mode():
    """0."""
    return 0


def set_flush_denormal(mode):
    """False: drivers decide how subnormal numbers are treated."""
    return False


def set_warn_always(b):
    """Accepted: Python's warning filters decide."""


def set_num_interop_threads(n):
    """Accepted: the OpenCL driver decides."""


def get_num_interop_threads():
    """1."""
    return 1


def set_default_tensor_type(t):
    """Set the default float dtype by PyTorch's type name (``'clnn.DoubleTensor'``) or constructor."""
    name = t if isinstance(t, str) else getattr(t, "__name__", str(t))
    for key, row in dict(Double="float64", Float="float32", Half="float16", BFloat16="bfloat16").items():
        if name.endswith(key + "Tensor"):
            dt.set_float_default(dt.from_name(row))
            return
    raise TypeError(f"invalid type object: {t}")


def set_anomaly_enabled(mode, check_nan=True):
    """Switch anomaly detection on or off; see ``clnn.autograd.detect_anomaly``."""
    from .autograd.anomaly_mode import set_detect_anomaly
    set_detect_anomaly(mode, check_nan)


def _autocast_of(device_type, kind):
    """The older names of the autocast functions, which have the device in their name."""
    def enabled():
        from .amp.autocast_mode import is_autocast_enabled
        return is_autocast_enabled(device_type)

    def get_dtype():
        from .amp.autocast_mode import get_autocast_dtype
        return get_autocast_dtype(device_type)

    def set_dtype(dtype):
        from .amp.autocast_mode import set_autocast_dtype
        set_autocast_dtype(device_type, dtype)

    for fn, name, doc in ((enabled, "is_autocast_cpu_enabled", "Whether autocast is on for the CPU."),
                          (get_dtype, f"get_autocast_{kind}_dtype", "The dtype that autocast computes in."),
                          (set_dtype, f"set_autocast_{kind}_dtype", "Choose the dtype that autocast computes in.")):
        fn.__name__, fn.__doc__ = name, doc
    return enabled, get_dtype, set_dtype


_, get_autocast_gpu_dtype, set_autocast_gpu_dtype = _autocast_of("cuda", "gpu")
is_autocast_cpu_enabled, get_autocast_cpu_dtype, set_autocast_cpu_dtype = _autocast_of("cpu", "cpu")


def adjoint(input):
    """Matrices with their last two dimensions exchanged: all numbers are real."""
    return input.mH


# -- factories -------------------------------------------------------------------------------------------------------------------------


def range(start, end=None, step=1, **kwargs):       # noqa: A001
    """``start, start + step, ...`` up to and including ``end`` (deprecated in PyTorch; use ``arange``)."""
    warn("torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with Python's range builtin. Instead, use "
         "torch.arange, which produces values in [start, end).")
    if end is None:
        start, end = 0, start
    return creation.arange(start, end + step / 2, step, dtype=kwargs.pop("dtype", None) or dt._default_float, **kwargs)


def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False):
    """A 1-d tensor with a copy of the elements in a Python buffer."""
    return creation._done(from_array(np.frombuffer(buffer, dtype.np, count, offset), resolve(None)), requires_grad)


def _window(name, fn, doc):
    def window(window_length, periodic=True, *args, dtype=None, layout=None, device=None, requires_grad=False, **kw):
        n = window_length + 1 if periodic and window_length > 1 else window_length
        values = fn(n, *args, **kw)[:window_length]
        return creation._done(from_array(np.asarray(values, np.float64), resolve(device), dt.as_dtype(dtype) or dt._default_float), requires_grad)
    window.__name__, window.__doc__ = name, doc
    return window


def _cosine(a, b=None):
    def fn(n, alpha=a, beta=None):
        beta = 1 - alpha if beta is None and b is None else b if beta is None else beta
        return alpha - beta * np.cos(2 * np.pi * np.arange(n) / max(1, n - 1)) if n > 1 else np.ones(n)
    return fn


hann_window = _window("hann_window", _cosine(0.5), "Hann window: ``0.5 - 0.5 cos(2 pi n / N)``.")
hamming_window = _window("hamming_window", _cosine(0.54, 0.46), "Hamming window: ``alpha - beta cos(2 pi n / N)``.")
bartlett_window = _window("bartlett_window", np.bartlett, "Bartlett (triangular) window.")
blackman_window = _window("blackman_window", np.blackman, "Blackman window.")
kaiser_window = _window("kaiser_window", lambda n, beta=12.0: np.kaiser(n, beta), "Kaiser window of shape ``beta``.")


def vander(x, N=None, increasing=False):
    """Vandermonde matrix: powers of the elements of ``x`` as columns."""
    n = x.shape[-1] if N is None else N
    powers = creation.arange(n, device=x.device) if increasing else creation.arange(n - 1, -1, -1, device=x.device)
    return x.unsqueeze(-1) ** powers


def gradient(input, *, spacing=1, dim=None, edge_order=1):
    """Second-order estimates of the derivative along dimensions, as a tuple.

    Args:
        spacing: the distance of neighbours, a number for all dimensions or one for each; or, for each dimension, a 1-d tensor of coordinates.
        dim: one dimension, or several; all of them by default.
        edge_order: order of the estimates at the two ends, 1 or 2.
    """
    dims = (dim,) if isinstance(dim, int) else tuple(dim) if dim is not None else tuple(_range(input.ndim))
    steps = spacing if isinstance(spacing, (list, tuple)) else [1 if spacing is None else spacing] * len(dims)
    if len(steps) != len(dims):
        raise RuntimeError("gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have the same length, but got a spacing "
                           f"argument of length {len(steps)} and a dim argument of length {len(dims)}.")
    if edge_order not in (1, 2):
        raise RuntimeError("gradient only supports edge_order=1 and edge_order=2.")
    for d in dims:
        if sum([wrap_dim(o, input.ndim) == wrap_dim(d, input.ndim) for o in dims]) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
        if input.shape[d] < edge_order + 1:
            raise RuntimeError("gradient expected each dimension size to be at least edge_order+1")
    x = input if input.dtype.differentiable else input.float()
    return tuple(_gradient(x, d, h, edge_order) for d, h in zip(dims, steps))


def _gradient(x, d, h, edge_order):
    """One dimension of :func:`gradient`: finite differences with distances ``l`` to the left and ``r`` to the right."""
    n = x.shape[d]
    at = [1] * x.ndim
    at[d] = -1
    gaps = h.diff() if isinstance(h, Tensor) and h.ndim else creation.full((n - 1,), h if isinstance(h, complex) else float(h), dtype=x.dtype, device=x.device)
    gaps = gaps.to(x.dtype).reshape(at)
    f = [x.narrow(d, k, n - 2) for k in _range(3)]
    l, r = gaps.narrow(d, 0, n - 2), gaps.narrow(d, 1, n - 2)           # noqa: E741
    inner = (f[2] * l * l + f[1] * (r * r - l * l) - f[0] * r * r) / (l * r * (l + r))
    ends = []
    for i, j, sign in ((0, 1, 1), (n - 1, n - 2, -1)):                  # each end, its neighbour, and which way it looks
        a = gaps.narrow(d, min(i, n - 2), 1)
        u, v = x.narrow(d, i, 1), x.narrow(d, j, 1)
        if edge_order == 1:
            ends.append((v - u) * sign / a)
        else:
            b, w = gaps.narrow(d, min(i, n - 3) if sign < 0 else 1, 1), x.narrow(d, j + sign, 1)
            ends.append(sign * (v * (a + b) / (a * b) - u * (2 * a + b) / (a * (a + b)) - w * a / (b * (a + b))))
    return REGISTRY["cat"].fn([ends[0], inner, ends[1]], d)


_range = __builtins__["range"] if isinstance(__builtins__, dict) else __builtins__.range


# -- function forms of methods ----------------------------------------------------------------------------------------------------------


def detach(input):
    """The same memory without history."""
    return input.detach()


def detach_(input):
    """Take a tensor off the tape in place."""
    return input.detach_()


def zero_(input):
    """Overwrite with zeros."""
    return input.zero_()


def renorm(input, p, dim, maxnorm):
    """Sub-tensors along ``dim`` scaled down to a p-norm of at most ``maxnorm``."""
    return input.renorm(p, dim, maxnorm)


def resize_as_(input, other):
    """Change the shape of ``input`` to that of ``other``."""
    return input.resize_as_(other)


def to_dlpack(input):
    """A DLPack capsule with a host copy of the values."""
    return input.__dlpack__()


def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled=True):
    """``nn.functional.batch_norm`` in the order of arguments of the top-level function."""
    return REGISTRY["batch_norm"].fn(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled=True):
    """``nn.functional.instance_norm`` in the order of arguments of the top-level function."""
    return REGISTRY["instance_norm"].fn(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    """``nn.functional.embedding`` in the order of arguments of the top-level function; a ``padding_idx`` below 0 is none."""
    return REGISTRY["embedding"].fn(indices, weight, padding_idx if padding_idx >= 0 else None, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)


def dropout(input, p, train):
    """``nn.functional.dropout`` in the order of arguments of the top-level function."""
    return _random.dropout(input, p, train)


def dropout_(input, p, train):
    """In-place :func:`dropout`."""
    return _random.dropout(input, p, train, True)


def alpha_dropout(input, p, train):
    """``nn.functional.alpha_dropout`` in the order of arguments of the top-level function."""
    return _random.alpha_dropout(input, p, train)


def feature_dropout(input, p, train):
    """Dropout of whole channels."""
    return _random.feature_dropout(input, p, train)


def nuclear_norm(input, dim=None, keepdim=False):
    """The sum of the singular values."""
    return input.norm("nuc", dim=dim, keepdim=keepdim) if dim is not None else input.norm("nuc")


def frobenius_norm(input, dim=None, keepdim=False):
    """The square root of the sum of squares."""
    return (input * input).sum(dim, keepdim).sqrt()


for _name in ("relu_", "selu_", "celu_", "rrelu_", "threshold_"):
    globals()[_name] = _IN_PLACE[_name]


def feature_alpha_dropout(input, p, train):
    """``nn.functional.feature_alpha_dropout`` in the order of arguments of the top-level function."""
    return _random.feature_alpha_dropout(input, p, train)


def alpha_dropout_(input, p, train):
    """In-place :func:`alpha_dropout`."""
    return _random.alpha_dropout(input, p, train, True)


def feature_dropout_(input, p, train):
    """In-place :func:`feature_dropout`."""
    return _random.feature_dropout(input, p, train, True)


def feature_alpha_dropout_(input, p, train):
    """In-place :func:`feature_alpha_dropout`."""
    return _random.feature_alpha_dropout(input, p, train, True)


def as_strided_(input, size, stride, storage_offset=None):
    """Give ``input`` another shape, strides and offset on its memory."""
    return input.as_strided_(size, stride, storage_offset)


def _recurrent_function(mode, doc, cell=False):
    def layer(*args):
        from .nn.modules.rnn import run_cell, run_layer
        return (run_cell if cell else run_layer)(mode, *args)
    layer.__name__ = {"LSTM": "lstm", "GRU": "gru", "RNN_TANH": "rnn_tanh", "RNN_RELU": "rnn_relu"}[mode] + "_cell" * cell
    layer.__doc__ = doc
    return layer


_LAYER = ("What :class:`clnn.nn.{}` computes: ``(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)``, or for packed "
          "sequences ``(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)``.")
_CELL = "What :class:`clnn.nn.{}` computes: ``(input, hx, w_ih, w_hh, b_ih=None, b_hh=None)``."
lstm, gru = _recurrent_function("LSTM", _LAYER.format("LSTM")), _recurrent_function("GRU", _LAYER.format("GRU"))
rnn_tanh, rnn_relu = _recurrent_function("RNN_TANH", _LAYER.format("RNN")), _recurrent_function("RNN_RELU", _LAYER.format("RNN"))
lstm_cell, gru_cell = _recurrent_function("LSTM", _CELL.format("LSTMCell"), True), _recurrent_function("GRU", _CELL.format("GRUCell"), True)
rnn_tanh_cell = _recurrent_function("RNN_TANH", _CELL.format("RNNCell"), True)
rnn_relu_cell = _recurrent_function("RNN_RELU", _CELL.format("RNNCell"), True)


def empty_permuted(size, physical_layout, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """Uninitialised memory of shape ``size`` that is dense in the order of dimensions ``physical_layout``, outermost first."""
    if sorted(physical_layout) != list(_range(len(size))):
        raise RuntimeError(f"Duplicate dim not allowed, or wrong number of dimensions: size={list(size)}, physical_layout={list(physical_layout)}")
    t = creation.empty([size[d] for d in physical_layout], dtype=dtype, device=device)
    return creation._done(t.permute(*(list(physical_layout).index(d) for d in _range(len(size)))), requires_grad)


def cond(pred, true_fn, false_fn, operands=()):
    """``true_fn(*operands)`` if ``pred`` else ``false_fn(*operands)``."""
    return (true_fn if pred else false_fn)(*operands)


def is_warn_always_enabled():
    """False: Python's warning filters decide."""
    return False


def get_device_module(device=None):
    """The module of functions for a kind of device: ``clnn.cuda`` for GPUs, else ``clnn.cpu``."""
    import clnn
    kind = clnn.device(device).type if device is not None else "gpu" if clnn.cuda.is_available() else "cpu"
    return clnn.cuda if kind == "gpu" else clnn.cpu


def sym_int(a):
    """``int(a)``."""
    return int(a)


def sym_float(a):
    """``float(a)``."""
    return float(a)


def sym_max(a, b):
    """``max(a, b)``."""
    return max(a, b)


def sym_min(a, b):
    """``min(a, b)``."""
    return min(a, b)


def sym_not(a):
    """``not a``."""
    return not a


def histogramdd(input, bins, *, range=None, weight=None, density=False):  # noqa: A002
    """Histogram of points (rows of ``input``) in several dimensions, and the edges of the bins (on the host).

    Args:
        input: shape (N, D).
        bins: one number, D numbers, or D 1-d tensors of edges.
        range: lower and upper ends of each dimension, 2 D numbers.
    """
    if not isinstance(bins, int) and len(bins) != input.shape[-1]:
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    points = np.asarray(input.detach().numpy()).reshape(-1, input.shape[-1])
    edges = bins if isinstance(bins, int) else [b.numpy() if isinstance(b, Tensor) else b for b in bins]
    limits = None if range is None else np.reshape(range, (-1, 2))
    with np.errstate(all="ignore"):
        counts, ends = np.histogramdd(points, edges, limits, weights=None if weight is None else weight.numpy().reshape(-1), density=density)
    device = input._storage.device
    return named("histogramdd", "hist", "bin_edges")(from_array(counts, device, input.dtype),
                                                     tuple(from_array(np.asarray(e), device, input.dtype) for e in ends))


# -- what clnn has not ------------------------------------------------------------------------------------------------------------------------


class Absent(AttributeError, NotImplementedError):
    """A name of PyTorch that clnn does not have, with the reason."""


_FAMILIES = {
    "sparse tensors of blocks": "sparse_bsr sparse_bsc sparse_bsr_tensor sparse_bsc_tensor to_sparse_bsr to_sparse_bsc",
    "these products of sparse tensors": "hsmm saddmm resize_as_sparse_",
    "quantised dtypes": "qscheme per_tensor_affine per_channel_affine per_tensor_symmetric "
                        "per_channel_symmetric quantize_per_tensor quantize_per_channel quantize_per_tensor_dynamic dequantize int_repr q_scale "
                        "q_zero_point q_per_channel_scales q_per_channel_zero_points q_per_channel_axis quantization",
    "nested tensors": "nested jagged to_padded_tensor",
    "masked tensors": "masked",
    "graphs of Python programs": "export package",
}
_REASONS = {name: family for family, names in _FAMILIES.items() for name in names.split()}


def reason(name):
    """What of PyTorch a name belongs to that clnn does not implement, or None."""
    return _REASONS.get(name)


def _absent(owner, name):
    """The error of an attribute that does not exist."""
    family = reason(name)
    if family is not None:
        return Absent(f"{owner} has no attribute {name!r}: clnn does not implement {family}")
    return AttributeError(f"{owner} has no attribute {name!r}")


def _missing(self, name):
    raise _absent(f"{type(self).__name__!r} object", name)


Tensor.__getattr__ = _missing


def public():
    """The names that the package re-exports."""
    import types
    return {k: v for k, v in globals().items() if not k.startswith("_") and isinstance(v, types.FunctionType)
            and k not in ("public", "reason", "from_array", "from_numpy", "resolve")}


__all__ = ["from_numpy"]
