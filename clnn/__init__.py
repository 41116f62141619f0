"""clnn: PyTorch's way of working (tensors, autograd, modules) on any OpenCL device.

Nothing here touches a driver: devices are found when the first tensor is made.
"""
from __future__ import annotations

import importlib as _importlib
import numbers as _numbers

from ._tensor import device as _device
from ._tensor import override as _override, wrapped as _wrapped
from ._tensor.device import META as _META  # noqa: F401
from ._tensor.display import get_printoptions, printoptions, set_printoptions  # noqa: F401
from ._tensor.device import device, devices, get_default_device, set_default_device, synchronize  # noqa: F401
from ._tensor.grad_mode import (enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad,  # noqa: F401
                                set_grad_enabled)
from ._tensor.interop import from_dlpack, from_numpy  # noqa: F401
from ._tensor.tensor import Tensor  # noqa: F401
from .core import dtype as _dtype_module
from .core.config import config as _config
from .core.dtype import dtype, float_default as get_default_dtype, promote_types, set_float_default as set_default_dtype  # noqa: F401
from .core.errors import *  # noqa: F401,F403
from .core.layout import channels_last, channels_last_3d, contiguous_format, layout, legacy_contiguous_format, memory_format, preserve_format, strided  # noqa: F401
from .core.layout import jagged, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr  # noqa: F401
from .core.layout import (per_channel_affine, per_channel_affine_float_qparams, per_channel_symmetric, per_tensor_affine, per_tensor_symmetric,  # noqa: F401
                          qscheme)
from .core.limits import finfo, iinfo  # noqa: F401
from .core.public import name_functions as _name_functions, name_methods as _name_methods
from .core.shape import Size  # noqa: F401
from .graph.op import REGISTRY as _REGISTRY
from . import ops as _ops  # noqa: F401
from . import _absent, _alias, _factories, _function_forms, _misc  # noqa: F401
from ._absent import eig, lstsq, matrix_rank, solve, symeig  # noqa: F401
from ._function_forms import celu_, relu_, rrelu_, selu_, threshold_  # noqa: F401
from ._typed import types_of as _types_of
from .ops.creation import (arange, as_tensor, empty, empty_like, eye, full, full_like, linspace, logspace,  # noqa: F401
                           ones, ones_like, scalar_tensor, tensor, zeros, zeros_like)
from .ops.extras import empty_strided  # noqa: F401
from .ops.random import normal, rand, rand_like, randint, randint_like, randn, randn_like, randperm  # noqa: F401
from .random import Generator, default_generator  # noqa: F401
from .storage import StorageBase, TypedStorage, UntypedStorage, from_file  # noqa: F401

for _row in _dtype_module.ALL + _dtype_module.NAMES_ONLY:
    globals()[_row.name.rstrip("_")] = _row
for _n in ("half", "double", "short", "long", "float", "int", "cfloat", "cdouble", "chalf"):              # PyTorch's dtype aliases, some of which hide builtins here
    globals()[_n] = _dtype_module.from_name(_n)
inf, nan, pi, e = __import__("math").inf, __import__("math").nan, __import__("math").pi, __import__("math").e
newaxis = None

for _part in (_misc, _factories, _function_forms):
    for _name, _fn in vars(_part).items():
        if not _name.startswith("_") and getattr(_fn, "__module__", None) == _part.__name__:
            globals().setdefault(_name, _fn)

for _name, _op in _REGISTRY.items():
    if not _name.startswith("_") and _name not in ("view", "contiguous", "copy", "embed_strided", "embedding_bag"):
        globals().setdefault(_name, _op.fn)
        if _op.inplace and hasattr(Tensor, _name + "_"):
            globals().setdefault(_name + "_", _override.function_of(getattr(Tensor, _name + "_")))


globals().update(_types_of(__name__))


def _assert(condition, message):
    """``assert condition, message``, as models written for PyTorch's tracer spell it."""
    if type(condition) is not Tensor and _override.asked((condition,)):         # a stand-in: the check becomes part of the graph
        return _override.hand_over(_assert, (condition, message), {}, [] if _override.local.off else _override.overloaded((condition,)))
    assert condition, message


def is_tensor(obj) -> "bool":
    """True for a clnn tensor.

    Example:
        >>> clnn.is_tensor([1, 2]), clnn.is_tensor(clnn.ones(2))
        (False, True)
    """
    return isinstance(obj, Tensor)


def is_floating_point(input):
    """True when the dtype of ``input`` is a float.

    Example:
        >>> clnn.is_floating_point(clnn.ones(2))
        True
    """
    try:
        return input.dtype.is_floating_point
    except AttributeError:
        raise TypeError(f"is_floating_point(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}") from None


def is_complex(input):
    """True when the dtype of ``input`` is complex.

    Example:
        >>> clnn.is_complex(clnn.ones(2))
        False
    """
    try:
        return input.dtype.is_complex
    except AttributeError:
        raise TypeError(f"is_complex(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}") from None


def is_nonzero(input):
    """The truth of a one-element tensor.

    Example:
        >>> clnn.is_nonzero(clnn.tensor([0.0]))
        False
    """
    return input.__bool__()


def numel(input):
    """Number of elements.

    Example:
        >>> clnn.numel(clnn.ones(2, 3))
        6
    """
    if not isinstance(input, Tensor):
        raise TypeError(f"numel(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    return input.numel()


def result_type(tensor, other):
    """The dtype that an arithmetic operator on ``tensor`` and ``other``, tensors or numbers, gives.

    Example:
        >>> clnn.result_type(clnn.ones(2, dtype=clnn.int32), 1.5)
        clnn.float32
    """
    kinds = Tensor, _numbers.Number
    if not isinstance(tensor, kinds) or not isinstance(other, kinds):
        raise TypeError(f"result_type(): expected tensors and numbers, got {type(tensor).__name__} and {type(other).__name__}")
    pairs = [(x.dtype, 2 if x.shape else 1) if isinstance(x, Tensor) else (_dtype_module.scalar_dtype(x), 0) for x in (tensor, other)]
    return _dtype_module.result_type(*pairs)


def can_cast(from_, to):
    """Whether PyTorch's rules allow a result of dtype ``from_`` to be written to ``to``.

    Example:
        >>> clnn.can_cast(clnn.int64, clnn.float32), clnn.can_cast(clnn.float32, clnn.int64)
        (True, False)
    """
    for place, (name, row) in enumerate((("from_", from_), ("to", to)), 1):
        if not isinstance(row, dtype):
            raise TypeError(f"can_cast(): argument '{name}' (position {place}) must be {_config.spoken}.dtype, not {type(row).__name__}")
    return from_.category <= to.category


def broadcast_shapes(*shapes):
    """The common shape of ``shapes``.

    Example:
        >>> clnn.broadcast_shapes((2, 1), (3,), (1, 1))
        clnn.Size([2, 3])
    """
    from .core.shape import broadcast_shapes as common
    from .core.shape import misfit, not_negative
    for s in shapes:
        if isinstance(s, str):
            raise TypeError("'<' not supported between instances of 'str' and 'int'")
        if not isinstance(s, (tuple, list, _numbers.Integral)):
            raise RuntimeError(f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got {s}")
    given = [tuple(s) if isinstance(s, (tuple, list)) else (s,) for s in shapes]
    not_negative(given)
    try:
        return Size(common(*given))
    except ValueError:
        raise RuntimeError(misfit(given)) from None


def memory_stats(device=None):
    """Memory of a device in bytes: allocated, reserved, peak; and counts."""
    return _device.resolve(device).memory.stats()


def memory_allocated(device=None):
    """Bytes in use by tensors."""
    return memory_stats(device)["allocated"]


def empty_cache(device=None):
    """Give unused pooled memory back to the driver."""
    _device.resolve(device).memory.empty_cache()


def reset_peak_memory_stats(device=None):
    """Start the peak statistics anew."""
    _device.resolve(device).memory.reset_peak()


def set_num_threads(n):
    """Accepted: the OpenCL driver decides."""
    if type(n).__name__ != "int":                                   # int is a dtype here
        raise RuntimeError(f"set_num_threads expects an int, but got {type(n).__name__}")
    if n <= 0:
        raise RuntimeError("set_num_threads expects a positive integer")


def get_num_threads():
    """Compute units of the default device."""
    return _device.resolve(None).compute_units


_LAZY = set("""__config__ __future__ _C _VF _custom_ops _dynamo _functorch _guards _higher_order_ops _inductor _jit_internal _logging _tensor_str _utils
                accelerator amp ao autograd backends compiler cpu cuda distributed distributions export fft func functional futures fx hub jit library linalg
                masked monitor mps mtia multiprocessing nested nn onnx optim overrides profiler quantization quasirandom random return_types serialization signal sparse
                special testing torch_version types utils version xpu""".split())
_PLACES = {                     # names that are read from a module when they are first used
    "_copies": """alias_copy as_strided_copy detach_copy diagonal_copy expand_copy permute_copy select_copy slice_copy split_copy split_with_sizes_copy squeeze_copy
        t_copy transpose_copy unbind_copy unfold_copy unsqueeze_copy view_copy view_as_complex_copy view_as_real_copy""",
    "_compile": "compile",
    "_classes": "classes",
    "compiler": "_disable_dynamo",
    "serialization": "save load",
    "_serialization.files": "SerializationError",
    "random": "manual_seed seed initial_seed get_rng_state set_rng_state Generator default_generator fork_rng thread_safe_generator",
    "amp": "autocast GradScaler is_autocast_enabled get_autocast_dtype set_autocast_enabled set_autocast_dtype clear_autocast_cache is_autocast_cache_enabled "
           "set_autocast_cache_enabled",
    "autograd.anomaly_mode": "is_anomaly_enabled is_anomaly_check_nan_enabled",
    "func": "vmap",
    "_quantized.making": """quantize_per_tensor quantize_per_channel quantize_per_tensor_dynamic dequantize int_repr q_scale q_zero_point
        q_per_channel_scales q_per_channel_zero_points q_per_channel_axis _empty_affine_quantized _empty_per_channel_affine_quantized
        _make_per_tensor_quantized_tensor _make_per_channel_quantized_tensor _choose_qparams_per_tensor""",
    "_quantized.public": "quantized_max_pool1d quantized_max_pool2d quantized_batch_norm fused_moving_avg_obs_fake_quant",
    "sparse._build": "sparse_coo_tensor sparse_csr_tensor sparse_csc_tensor sparse_compressed_tensor",
    "sparse": "smm spmm dsmm hspmm sspaddmm saddmm",
    "cuda": "Event Stream",
    "jit": "ScriptModule ScriptFunction",
    "futures": "Future",
    "storage": "Storage " + " ".join(kind + "Storage" for kind in "Float Double Half BFloat16 Long Int Short Char Byte Bool ComplexFloat ComplexDouble".split()),
    "_questions": """AggregationType AnyType AwaitType BoolType ClassType ComplexType DeviceObjType DictType EnumType FloatType FutureType InferredType IntType
        InterfaceType ListType NoneType NumberType OptionalType PyObjectType RRefType StreamObjType StringType SymBoolType SymIntType TensorType TupleType Type
        UnionType""",
    "_serialization.records": "PyTorchFileReader",
    "summary_": "summary",
    "_natives": "native_layer_norm native_batch_norm _native_batch_norm_legit native_group_norm native_dropout grid_sampler grid_sampler_2d grid_sampler_3d "
                "affine_grid_generator _softmax _log_softmax _safe_softmax _softmax_backward_data _log_softmax_backward_data norm_except_dim _weight_norm "
                "embedding_bag _int_mm hash_tensor _is_all_true _is_any_true sym_sum sym_ite sym_sqrt",
    "_private": "SymBool SymFloat SymInt Tag while_loop _assert_async _check _check_index _check_is_size _check_not_implemented _check_tensor_all "
                "_check_tensor_all_with _check_type "
                "_check_value _check_with _convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo _dirichlet_grad "
                "_sample_dirichlet _segment_reduce _shape_as_tensor "
                "_standard_gamma " + " ".join(f"_cast_{kind}" for kind in "Byte Char Double Float Half Int Long Short".split()),
}
_FROM = {name: place for place, names in _PLACES.items() for name in names.split()}
_name_functions(globals(), __name__)
_name_methods(Tensor, __name__)


for _kind in (Size, device, dtype, finfo, iinfo, layout, memory_format, qscheme):       # ``type(x.shape)`` shows where PyTorch has it
    _kind.__module__ = __name__


def __getattr__(name):
    if name == "__version__":
        return _alias.version()
    if name in _LAZY:
        try:
            return _importlib.import_module("." + name, __package__)
        except ModuleNotFoundError as exc:
            if exc.name != f"{__package__}.{name}":
                raise
            raise _absent.absent("module 'clnn'", name) from None
    if name in _FROM:
        value = globals()[name] = getattr(_importlib.import_module("." + _FROM[name], __package__), name)
        return value
    if name in ("torch", __name__):                         # programs spell torch.torch.Tensor now and then
        return _importlib.import_module(__name__)
    if name.startswith("_foreach_"):
        from ._foreach import find
        value = find(name)
        if value is not None:
            globals()[name] = value
            return value
    raise _absent.absent("module 'clnn'", name)


def __dir__():
    return sorted({*globals(), *_LAZY, *_FROM, "__version__"})
