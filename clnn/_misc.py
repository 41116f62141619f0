"""Functions of the top-level namespace that are neither operators nor factories: questions and switches."""
from __future__ import annotations

import warnings

from ._tensor.tensor import Tensor
from .core import dtype as dt
from .core import warn
from .core.config import config
from .ops.creation import deterministic as _deterministic
from .storage import UntypedStorage


def is_signed(input):
    """True when the dtype can hold negative numbers.

    Example:
        >>> clnn.is_signed(clnn.ones(2, dtype=clnn.uint8))
        False
    """
    return input.dtype.is_signed


def compiled_with_cxx11_abi() -> bool:
    """True: extensions of PyTorch are not loaded, whatever they were built for.

    Example:
        >>> clnn.compiled_with_cxx11_abi()
        True
    """
    return True


def is_inference(input):
    """True for a tensor made in inference mode.

    Example:
        >>> clnn.is_inference(clnn.ones(2))
        False
    """
    return input.is_inference()


def is_same_size(input, other):
    """True when the shapes are equal.

    Example:
        >>> clnn.is_same_size(clnn.ones(2), clnn.ones(2, 1))
        False
    """
    return input.shape == other.shape


def _question(name):
    def ask(input):
        if not isinstance(input, Tensor):
            raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
        return getattr(input, name)()
    ask.__name__ = ask.__qualname__ = name
    ask.__doc__ = f"What :meth:`Tensor.{name}` says of ``input``."
    return ask


is_conj, is_neg, is_distributed = map(_question, ("is_conj", "is_neg", "is_distributed"))


def is_storage(obj):
    """True for the storage behind a tensor.

    Example:
        >>> clnn.is_storage(clnn.ones(2).untyped_storage())
        True
    """
    return isinstance(obj, UntypedStorage)


def get_device(input):
    """The device index, -1 on a CPU."""
    return input.get_device()


def typename(obj):
    """The qualified name of an object's type.

    Example:
        >>> clnn.typename(clnn.ones(2, dtype=clnn.int64))
        'clnn.LongTensor'
    """
    if isinstance(obj, Tensor):
        return obj.type()
    cls = obj if isinstance(obj, type) else type(obj)
    return f"{cls.__module__}.{cls.__qualname__}" if cls.__module__ not in ("builtins", None) else cls.__qualname__


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




def use_deterministic_algorithms(mode, *, warn_only=False):
    """Every clnn kernel is deterministic; this fills the memory of :func:`empty` (see ``utils.deterministic``)."""
    if not isinstance(mode, bool) or not isinstance(warn_only, bool):
        name, value = ("mode", mode) if not isinstance(mode, bool) else ("warn_only", warn_only)
        raise TypeError(f"_set_deterministic_algorithms(): argument '{name}'{' (position 1)' if name == 'mode' else ''} must be bool, not {type(value).__name__}")
    _deterministic[:] = mode, warn_only


def are_deterministic_algorithms_enabled():
    """Whether :func:`use_deterministic_algorithms` was asked for."""
    return _deterministic[0]


def is_deterministic_algorithms_warn_only_enabled():
    """The ``warn_only`` of :func:`use_deterministic_algorithms`; nothing warns, as every kernel is deterministic."""
    return _deterministic[1]


_DEBUG_MODES = {"default": 0, "warn": 1, "error": 2}


def set_deterministic_debug_mode(debug_mode):
    """:func:`use_deterministic_algorithms` by number or name: ``"default"`` (0), ``"warn"`` (1), ``"error"`` (2)."""
    if not isinstance(debug_mode, (str, int)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    number = _DEBUG_MODES.get(debug_mode) if isinstance(debug_mode, str) else debug_mode
    if number not in (0, 1, 2):
        legal = "one of `default`, `warn`, `error`" if isinstance(debug_mode, str) else "0, 1, or 2"
        raise RuntimeError(f"invalid value of debug_mode, expected {legal}, but got {debug_mode}")
    _deterministic[:] = number > 0, number == 1


def get_deterministic_debug_mode():
    """What :func:`set_deterministic_debug_mode` was given, as a number: 0, 1 or 2."""
    return _deterministic[0] * (2 - _deterministic[1])


def set_flush_denormal(mode):
    """False: drivers decide how subnormal numbers are treated."""
    if not isinstance(mode, bool):
        raise RuntimeError(f"flush_denormal expects a bool, but got {type(mode).__name__}")
    return False


def set_warn_always(b):
    """Whether functions that say once that they are deprecated say it each time."""
    if not isinstance(b, bool):
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    warn.always = b


def set_num_interop_threads(n):
    """Accepted: the OpenCL driver decides."""
    if not isinstance(n, int):
        raise RuntimeError(f"set_num_interop_threads expects an int, but got {type(n).__name__}")
    if n <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")


def get_num_interop_threads():
    """1."""
    return 1


def set_default_tensor_type(t):
    """Set the default float dtype by PyTorch's type name (``'clnn.DoubleTensor'``) or constructor."""
    warn.warn("torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and torch.set_default_device() as alternatives.")
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


def is_warn_always_enabled():
    """Whether functions that say once that they are deprecated say it each time."""
    return warn.always


def get_device_module(device=None):
    """The module of functions for a kind of device: ``clnn.cuda`` for GPUs, else ``clnn.cpu``.

    Example:
        >>> clnn.get_device_module("cpu") is clnn.cpu
        True
    """
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
