"""Factories of the top-level namespace that are no operators: from buffers, windows, powers; and functions that read several dimensions on the host."""
from __future__ import annotations

import array
import builtins
import functools

import numpy as np

from ._tensor import foreign
from ._tensor.device import holding, resolve
from ._tensor.inplace import type_name
from ._tensor.interop import from_array, over, read
from ._tensor.repeat import repeated_composite
from ._tensor.return_types import named
from ._tensor.tensor import Tensor
from .core import dtype as dt
from .core.shape import whole, wrap_dim
from .core.warn import warn
from .graph.op import REGISTRY
from .ops import arithmetic, creation, histograms, joining


def _repeated(fn):
    """``fn``, whose launches follow from shapes, dtypes and numbers alone, so that they are repeated where nobody looks on (decorator)."""
    again = repeated_composite(fn, "ready small")

    @functools.wraps(fn)
    def call(*args, **kwargs):
        return again(*args, **kwargs) if foreign.early is None else fn(*args, **kwargs)
    return call


@creation.told
def range(start, end, step=1, **kwargs):       # noqa: A001
    """``start, start + step, ...`` up to and including ``end`` (deprecated in PyTorch; use ``arange``).

    Example:
        >>> clnn.range(1, 2, 0.5)
        tensor([1.0000, 1.5000, 2.0000])
    """
    warn("torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with Python's range builtin. Instead, use "
         "torch.arange, which produces values in [start, end).")
    if kwargs.get("dtype") is None and kwargs.get("out") is None:
        kwargs["dtype"] = dt._default_float
    whole = isinstance(end, int) and isinstance(step, int)
    return creation.arange(start, end + (1 if step > 0 else -1) if whole else end + step / 2, step, **kwargs)


def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False):
    """A 1-d tensor of the elements in a Python buffer: on its memory where that can be written and the device is a CPU, else a copy.

    Example:
        >>> clnn.frombuffer(bytearray([1, 2, 3]), dtype=clnn.uint8)
        tensor([1, 2, 3], dtype=clnn.uint8)
    """
    try:
        length, size = memoryview(buffer).nbytes, dtype.itemsize
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    if not length or not count:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueError(f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({length} bytes) minus 1")
    if count < 0 and (length - offset) % size:
        raise ValueError(f"buffer length ({length - offset} bytes) after offset ({offset} bytes) must be a multiple of element size ({size})")
    if offset + count * size > length:
        raise ValueError(f"requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) must not be greater than actual buffer length "
                         f"({length} bytes)")
    values, device = np.frombuffer(buffer, dtype.np, count, offset), holding(None)
    t = over(values, device)
    return creation._done(from_array(values, device) if t is None else t, requires_grad)


def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=None):
    """``obj`` as a tensor: a tensor of the right dtype and device as it is, an array of the dtype or a Python buffer with its memory (unless ``copy``),
    anything else copied.

    Example:
        >>> clnn.asarray([1, 2], dtype=clnn.float32)
        tensor([1., 2.])
    """
    buffer = isinstance(obj, (bytes, bytearray, memoryview, array.array))
    t = frombuffer(obj, dtype=dtype or dt._default_float).to(device=device) if buffer else creation.as_tensor(obj, dtype, device)
    alias = t is obj or isinstance(obj, np.ndarray) and (t._storage.mirrored or bool(t._storage.pinned)) or buffer
    if alias and copy:
        t = t.clone()
    elif not alias and copy is False:
        if isinstance(obj, Tensor) and t.dtype is not obj.dtype:
            raise ValueError(f"can't alias tensor with dtype '{type_name(obj.dtype)}' into dtype '{type_name(t.dtype)}'.")
        raise ValueError("can't alias arbitrary sequence into a tensor.")
    if requires_grad is None or requires_grad and t._rg:
        return t
    return creation._done(t.detach(), requires_grad)


def _window(name, fn, doc, shown):
    def window(window_length, periodic=True, *args, dtype=None, layout=None, device=None, requires_grad=False, **kw):
        row = dt.as_dtype(dtype) or dt._default_float
        if window_length < 0:
            raise RuntimeError(f"{name} requires non-negative window_length, got window_length={window_length}")
        if not row.is_floating_point:
            raise RuntimeError(f"{name} expects floating point dtypes, got: {row}")
        n = window_length + 1 if periodic and window_length > 1 else window_length
        values = fn(n, *args, **kw)[:window_length]
        return creation._done(from_array(np.asarray(values, np.float64), resolve(device), row), requires_grad)
    window.__name__, window.__doc__ = name, f"{doc}\n\nExample:\n    >>> clnn.{name}(5, periodic=False)\n    tensor({shown})"
    return creation.told(window)


def _cosine(a, b=None):
    def fn(n, alpha=a, beta=None):
        beta = 1 - alpha if beta is None and b is None else b if beta is None else beta
        return alpha - beta * np.cos(2 * np.pi * np.arange(n) / max(1, n - 1)) if n > 1 else np.ones(n)
    return fn


def _blackman(n):
    turn = 2 * np.pi * np.arange(n) / max(1, n - 1)
    return 0.08 * np.cos(2 * turn) - 0.5 * np.cos(turn) + 0.42 if n > 1 else np.ones(n)     # in this order the ends are 0


hann_window = _window("hann_window", _cosine(0.5), "Hann window: ``0.5 - 0.5 cos(2 pi n / N)``.", "[0.0000, 0.5000, 1.0000, 0.5000, 0.0000]")
hamming_window = _window("hamming_window", _cosine(0.54, 0.46), "Hamming window: ``alpha - beta cos(2 pi n / N)``.", "[0.0800, 0.5400, 1.0000, 0.5400, 0.0800]")
bartlett_window = _window("bartlett_window", np.bartlett, "Bartlett (triangular) window.", "[0.0000, 0.5000, 1.0000, 0.5000, 0.0000]")
blackman_window = _window("blackman_window", _blackman, "Blackman window: ``0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N)``.",
                          "[0.0000, 0.3400, 1.0000, 0.3400, 0.0000]")
kaiser_window = _window("kaiser_window", lambda n, beta=12.0: np.kaiser(n, beta), "Kaiser window ``I0(beta sqrt(1 - (2 n / N - 1)^2)) / I0(beta)``.",
                        "[5.2773e-05, 2.1567e-01, 1.0000e+00, 2.1567e-01, 5.2773e-05]")


@creation.told
@_repeated
def vander(x, N=None, increasing=False):
    """Vandermonde matrix: powers of the elements of ``x`` as columns.

    Example:
        >>> clnn.vander(clnn.tensor([1, 2, 3]))
        tensor([[1, 1, 1],
                [4, 2, 1],
                [9, 3, 1]])
    """
    if len(x.shape) != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    n = x.shape[-1] if N is None else whole(N)
    if n < 0:
        raise RuntimeError("N must be non-negative.")
    powers = joining.cat([x.new_ones((x.shape[0], 1)), x.unsqueeze(-1).expand(-1, n)], 1)[:, :n].cumprod(1)
    return powers if increasing else powers.flip(1)


@_repeated
def gradient(input, *, spacing=1, dim=None, edge_order=1):
    """Second-order estimates of the derivative along dimensions, as a tuple.

    Args:
        spacing: the distance of neighbours, a number for all dimensions or one for each; or, for each dimension, a 1-d tensor of coordinates.
        dim: one dimension, or several; all of them by default.
        edge_order: order of the estimates at the two ends, 1 or 2.

    Example:
        >>> clnn.gradient(clnn.tensor([1.0, 4.0, 9.0, 16.0]))
        (tensor([3., 4., 6., 7.]),)
    """
    if input.dtype is dt.bool_:
        raise RuntimeError("Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead.")
    if input.dtype is dt.uint8:
        raise RuntimeError("torch.gradient does not support uint8 input.")
    if isinstance(spacing, str) or isinstance(spacing, Tensor) and spacing.ndim:
        raise TypeError(f"gradient(): argument 'spacing' must be a number, or a list of numbers or tensors, not {type(spacing).__name__}")
    dims = (dim,) if isinstance(dim, int) else tuple(dim) if dim is not None else tuple(builtins.range(input.ndim))
    steps = spacing if isinstance(spacing, (list, tuple)) else [1 if spacing is None else spacing] * len(dims)
    if len(steps) != len(dims) and dim is None:
        raise RuntimeError(f"torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to 'self.dim() = {input.ndim}', since dim argument "
                           f"was not given, but got a list of length {len(steps)}")
    if len(steps) != len(dims):
        raise RuntimeError("torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have the same length, but got a spacing "
                           f"argument of length {len(steps)} and a dim argument of length {len(dims)}.")
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    for d in dims:
        if sum([wrap_dim(o, input.ndim) == wrap_dim(d, input.ndim) for o in dims]) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
        if input.shape[d] < edge_order + 1:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    x = input if input.dtype.differentiable else input.to(dt.float_default())
    return tuple(_gradient(x, d, h, edge_order) for d, h in zip(dims, steps))


def _gradient(x, d, h, edge_order):
    """One dimension of :func:`gradient`: finite differences with distances ``l`` to the left and ``r`` to the right."""
    n = x.shape[d]
    if not (isinstance(h, Tensor) and h.ndim):
        return _evenly(x, d, n, h if isinstance(h, complex) else float(h), edge_order)
    at = [1] * x.ndim
    at[d] = -1
    gaps = h.diff().to(x.dtype).reshape(at)
    f = [x.narrow(d, k, n - 2) for k in builtins.range(3)]
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


def _evenly(x, d, n, h, edge_order):
    """The same where all distances are ``h``: divided by numbers, so that a backward pass needs nothing of what it was computed from."""
    lasting = arithmetic.lasting
    inner = lasting((x.narrow(d, 2, n - 2) - x.narrow(d, 0, n - 2)) / (2 * h))
    ends = []
    for i, sign in ((0, 1), (n - 1, -1)):                               # each end, and which way it looks
        u, v = x.narrow(d, i, 1), x.narrow(d, i + sign, 1)
        if edge_order == 1:
            ends.append(lasting((v - u if sign > 0 else u - v) / h))
        else:
            ends.append(lasting((lasting(u * -1.5) + lasting(v * 2.0) - lasting(x.narrow(d, i + 2 * sign, 1) * 0.5)) / (sign * h)))
    return REGISTRY["cat"].fn([ends[0], inner, ends[1]], d)


def empty_permuted(size, physical_layout, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """Uninitialised memory of shape ``size`` that is dense in the order of dimensions ``physical_layout``, outermost first.

    Example:
        >>> clnn.empty_permuted((2, 3, 4), (0, 2, 1)).stride()
        (12, 1, 3)
    """
    if len(size) != len(physical_layout):
        raise RuntimeError("Number of dimensions in size does not match the length of the physical_layout; i.e. "
                           f"len(size) = {len(size)} is not equal to len(physical_layout) = {len(physical_layout)}")
    for at, d in enumerate(physical_layout):
        if not 0 <= d < len(size):
            raise RuntimeError(f"Dimension out of range (expected to be between 0 and {len(size) - 1}, but got {d} at index {at}).  NB: negative dims not "
                               "currently supported; file an issue if you want it.")
        if d in physical_layout[:at]:
            raise RuntimeError("Duplicate dim not allowed")
    t = creation.empty([size[d] for d in physical_layout], dtype=dtype, device=device)
    return creation._done(t.permute([list(physical_layout).index(d) for d in builtins.range(len(size))]), requires_grad)


def histogramdd(input, bins, *, range=None, weight=None, density=False):  # noqa: A002
    """Histogram of points (rows of ``input``) in several dimensions, and the edges of the bins (on the host).

    Args:
        input: shape (N, D).
        bins: one number, D numbers, or D 1-d tensors of edges.
        range: lower and upper ends of each dimension, 2 D numbers.

    Example:
        >>> hist, edges = clnn.histogramdd(clnn.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), bins=[2, 2])
        >>> hist
        tensor([[0., 1.],
                [1., 1.]])
    """
    if len(input.shape) < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    if range is not None and len(range) != 2 * input.shape[-1]:
        raise RuntimeError(f"torch.histogramdd: for a {input.shape[-1]}-dimensional histogram range should have {2 * input.shape[-1]} elements, but got "
                           f"{len(range)}")
    if not isinstance(bins, int) and len(bins) != input.shape[-1]:
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    points = np.asarray(read(input.detach())).reshape(-1, input.shape[-1])
    edges = bins if isinstance(bins, int) else [read(b.detach()) if isinstance(b, Tensor) else b for b in bins]
    limits = None if range is None else np.reshape(range, (-1, 2))
    if isinstance(bins, int) or not any([isinstance(b, Tensor) for b in bins]):
        for dim, ends in enumerate(limits if limits is not None else zip(points.min(0), points.max(0)) if len(points) else ()):
            histograms.bin_range(ends, dim)
    with np.errstate(all="ignore"):
        counts, ends = np.histogramdd(points, edges, limits, weights=None if weight is None else read(weight.detach()).reshape(-1), density=density)
    device = input._storage.device
    return named("histogramdd", "hist", "bin_edges")(from_array(counts, device, input.dtype),
                                                     tuple(from_array(np.asarray(e), device, input.dtype) for e in ends))
