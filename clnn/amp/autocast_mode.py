"""autocast: run matrix products and convolutions in 16 bits, and delicate operators in 32."""

import functools
import inspect

from clnn._tensor.grad_mode import state
from clnn.core.dtype import as_dtype, bfloat16, float16, float32
from clnn.core.warn import warn

_LOW = (bfloat16, float16)
_defaults = {"cpu": bfloat16, "gpu": float16}  # as in PyTorch
_ALIASES = {"cuda": "gpu", "opencl": "gpu", "cl": "gpu", "xpu": "gpu", "mps": "gpu"}


def _kind(device_type):
    """'cpu' or 'gpu' for the name of a device type."""
    if not isinstance(device_type, str):
        raise ValueError(f"autocast: expected device_type of type str, got {type(device_type).__name__}")
    kind = _ALIASES.get(device_type, device_type)
    if kind not in _defaults:
        raise RuntimeError(f"autocast: unknown device type {device_type!r}; use 'gpu' (or 'cuda') or 'cpu'")
    return kind


def _cuda_is_available():
    from clnn import cuda               # imports this package
    return cuda.is_available()


class CastPolicy:
    """What operators look at while autocast is on: the 16-bit dtype, and the casts of parameters already made.

    The lists in `clnn/_tensor/autocast.py` say of each operator whether its inputs are cast to `low` or to float32; `kind` chooses the list.
    """

    def __init__(self, low, cached, kind):
        self.low = low
        self.kind = kind
        self.cached = cached
        self._casts = {}  # id -> (tensor, version, cast); the tensor is kept so that its id stays taken

    def cast(self, t, target):
        """`t` in dtype `target`; a parameter is cast once as long as it does not change."""
        if not (self.cached and target is self.low and t.dtype is float32 and t.requires_grad and t.is_leaf) or t.is_inference():
            return t.to(target)
        key = (id(t), state.grad)
        known = self._casts.get(key)
        if known is None or known[1] != t._version:
            known = self._casts[key] = (t, t._version, t.to(target))
        return known[2]

    def clear(self):
        """Forget the casts."""
        self._casts.clear()


class autocast:
    """Context manager and decorator under which operators choose their precision.

    Matrix products and convolutions cast their float inputs to `dtype`; operators that need range or precision cast them to float32: losses,
    and on "gpu" exponentials, logarithms, sums, norms and softmax too; all others run in the dtype of their inputs.

    Args:
        device_type: "gpu" (or "cuda") or "cpu"; it chooses the default of `dtype` and the lists of
            operators, PyTorch's for that type. The casts act on tensors of all devices. Where there is no GPU, "cuda"
            turns autocast off with a warning, as in PyTorch, so that programs compute the same; "gpu" does not.
        dtype: float16 or bfloat16; float16 for "gpu" and bfloat16 for "cpu" if None.
        enabled: False turns autocast off inside. cache_enabled: cast a parameter once, not at every use.

    Example::

        >>> w = clnn.ones(2, 2, requires_grad=True)
        >>> with clnn.autocast("gpu", dtype=clnn.bfloat16):
        ...     y = clnn.ones(2, 2) @ w
        >>> y.dtype
        clnn.bfloat16
        >>> y.float().sum().backward()
        >>> w.grad.dtype
        clnn.float32
    """

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        self.device = _kind(device_type)
        self.fast_dtype = as_dtype(dtype) or _defaults[self.device]
        self._cache_enabled = True if cache_enabled is None else cache_enabled
        if enabled and device_type == "cuda" and not _cuda_is_available():
            warn("CUDA is not available or torch_xla is imported. Disabling autocast.")
            enabled = False
        if enabled and self.fast_dtype not in _LOW:
            name = self.device.upper()
            warn(f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n"
                 f"{name} Autocast only supports dtypes of {', '.join(map(str, _LOW))} currently.")
            enabled = False
        self._enabled = enabled
        self._outer = []

    def __enter__(self):
        outer = state.autocast
        self._outer.append(outer)
        if not self._enabled:
            state.autocast = None
        elif outer is None or (outer.low, outer.cached, outer.kind) != (self.fast_dtype, self._cache_enabled, self.device):
            state.autocast = CastPolicy(self.fast_dtype, self._cache_enabled, self.device)
        return self

    def __exit__(self, *exc):
        inner, state.autocast = state.autocast, self._outer.pop()
        if inner is not None and inner is not state.autocast:
            inner.clear()  # else the casts would keep their graphs alive
        return False

    def __call__(self, func):
        if inspect.isclass(func):
            raise TypeError("autocast decorates functions; decorate the methods of a class")

        @functools.wraps(func)
        def wrapper(*args, **kwargs):
            with self:
                return func(*args, **kwargs)
        return wrapper


def is_autocast_available(device_type):
    """Whether autocast knows this type of device.

    Example:
        >>> clnn.amp.is_autocast_available("cpu")
        True
    """
    return isinstance(device_type, str) and _ALIASES.get(device_type, device_type) in _defaults


def is_autocast_enabled(device_type=None):
    """Whether autocast of this type of device is on in this thread; of GPUs where none is named.

    Example:
        >>> with clnn.autocast("cpu"):
        ...     print(clnn.is_autocast_enabled("cpu"))
        True
    """
    policy = state.autocast
    return policy is not None and policy.kind == _kind("gpu" if device_type is None else device_type)


def get_autocast_dtype(device_type):
    """The 16-bit dtype in use, or the default for this type of device.

    Example:
        >>> clnn.get_autocast_dtype("cpu")
        clnn.bfloat16
    """
    kind = _kind(device_type)
    return state.autocast.low if is_autocast_enabled(kind) else _defaults[kind]


def set_autocast_dtype(device_type, dtype):
    """Set the default 16-bit dtype for a type of device."""
    _defaults[_kind(device_type)] = as_dtype(dtype)


def set_autocast_enabled(device_type, enabled=None):
    """Turn autocast on or off outside a `with` block."""
    device_type, enabled = ("gpu", device_type) if enabled is None else (device_type, enabled)
    state.autocast = CastPolicy(_defaults[_kind(device_type)], True, _kind(device_type)) if enabled else None


def is_autocast_cache_enabled():
    """Whether casts of parameters are kept for the length of an autocast block.

    Example:
        >>> clnn.is_autocast_cache_enabled()
        True
    """
    return state.autocast.cached if state.autocast is not None else True


def set_autocast_cache_enabled(enabled):
    """Keep the casts of parameters in this autocast block, or not."""
    if state.autocast is not None:
        state.autocast.cached = bool(enabled)


def clear_autocast_cache():
    """Forget the casts of parameters made so far."""
    if state.autocast is not None:
        state.autocast.clear()


def _cast_floats(value, dtype):
    from clnn._tensor.tensor import Tensor
    if isinstance(value, Tensor):
        return value.to(dtype) if value.is_floating_point() and value.dtype is not dtype and value.element_size() < 8 else value
    if isinstance(value, dict):
        return {k: _cast_floats(v, dtype) for k, v in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_cast_floats(v, dtype) for v in value)
    return value


def custom_fwd(fwd=None, *, device_type, cast_inputs=None):
    """Decorator for the `forward` of an autograd `Function`.

    Args:
        device_type: as for `autocast`. cast_inputs: a dtype; under autocast the float inputs are cast to it and `forward` runs with
            autocast off. None: `forward` runs under the caller's autocast.

    Example:
        >>> class Double(clnn.autograd.Function):
        ...     @staticmethod
        ...     @clnn.amp.custom_fwd(device_type="cpu", cast_inputs=clnn.float32)
        ...     def forward(ctx, x):
        ...         return x * 2
        ...     @staticmethod
        ...     @clnn.amp.custom_bwd(device_type="cpu")
        ...     def backward(ctx, g):
        ...         return g * 2
        >>> with clnn.autocast("cpu"):
        ...     print(Double.apply(clnn.ones(2, dtype=clnn.bfloat16)).dtype)
        clnn.float32
    """
    kind = _kind(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(ctx, *args, **kwargs):
        ctx._dtype = get_autocast_dtype(kind)
        ctx._fwd_used_autocast = is_autocast_enabled(kind)
        if cast_inputs is None or not ctx._fwd_used_autocast:
            return fwd(ctx, *args, **kwargs)
        ctx._fwd_used_autocast = False
        with autocast(kind, enabled=False):
            return fwd(ctx, *_cast_floats(args, cast_inputs), **_cast_floats(kwargs, cast_inputs))
    return decorated


def custom_bwd(bwd=None, *, device_type):
    """Decorator for the `backward` of an autograd `Function`: it runs with the autocast state its `forward` had."""
    kind = _kind(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(ctx, *args, **kwargs):
        with autocast(kind, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return bwd(ctx, *args, **kwargs)
    return decorated
