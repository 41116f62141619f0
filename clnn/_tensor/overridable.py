"""Which public functions other classes may take over (``__torch_function__``), and what they are told the function is."""
from __future__ import annotations

from types import FunctionType

from .tensor import Tensor

# Symbols of which PyTorch says that it is the method of this name; those missing here go under their own.
SYMBOLS = {f"__{symbol}__": name for symbol, name in dict(
    add="add", radd="add", iadd="add_", sub="sub", isub="sub_", mul="mul", rmul="mul", imul="mul_", truediv="div", itruediv="div_", mod="remainder",
    matmul="matmul", ne="ne", lt="lt", le="le", gt="gt", ge="ge", neg="neg", pos="positive", abs="abs").items()}

# Members of Tensor that are never handed over.
FIXED = frozenset("""__new__ __init__ __dict__ __init_subclass__ __getattr__ __setstate__ __hash__ __iter__ __copy__ __torch_function__ as_subclass""".split())

# Functions without tensors among their arguments, or that look at nothing of them but the values: only modes are asked.
FACTORIES = frozenset("""arange as_tensor asarray bartlett_window blackman_window empty empty_permuted empty_strided eye frombuffer full hamming_window
    hann_window kaiser_window linspace logspace ones rand randint randn randperm range scalar_tensor tensor tril_indices triu_indices zeros
    fftfreq rfftfreq""".split())

# Switches and questions about no tensor.
SETTINGS = frozenset("""are_deterministic_algorithms_enabled autocast_decrement_nesting autocast_increment_nesting broadcast_shapes can_cast
    clear_autocast_cache compile cond devices empty_cache fork_rng from_dlpack from_numpy inference_mode initial_seed is_autocast_cache_enabled
    is_autocast_cpu_enabled is_autocast_enabled is_anomaly_enabled is_anomaly_check_nan_enabled is_deterministic_algorithms_warn_only_enabled
    is_grad_enabled is_inference_mode_enabled is_storage is_tensor is_warn_always_enabled load manual_seed memory_allocated memory_stats printoptions
    promote_types reset_peak_memory_stats save seed summary sym_float sym_int sym_max sym_min sym_not synchronize typename
    use_deterministic_algorithms vmap""".split())


def namespaces():
    """(module or class, its public functions by name)."""
    import clnn
    from clnn import autograd, fft, linalg, special
    from clnn.nn import functional
    for owner in (clnn, functional, linalg, fft, special):
        public = getattr(owner, "__all__", vars(owner))                 # else a module's helpers count as its functions
        names = {n: f for n, f in vars(owner).items() if isinstance(f, FunctionType) and not n.startswith("_") and not is_setting(n)
                 and n in public and (f.__module__ or "").startswith("clnn")}
        yield owner, names
    yield autograd, {"backward": autograd.backward, "grad": autograd.grad}
    yield Tensor, {n: f for n, f in vars(Tensor).items() if n not in FIXED and (not n.startswith("_") or n.startswith("__")) and _own(f)}


def _own(f):
    """Whether a member of Tensor is a method or property of clnn's, not one that a program put there."""
    f = f.fget if type(f) is property else f
    return isinstance(f, FunctionType) and f.__globals__.get("__name__", "").startswith("clnn")


def is_setting(name):
    """Whether a name of the package is a function that has nothing to do with tensors."""
    return name in SETTINGS or name != "get_device" and name.startswith(("set_", "get_"))


def functions():
    """(function, what the classes are told, whether its arguments are asked), each function once."""
    from .override import as_subclass
    seen = {id(as_subclass)}                    # fixed under any name that a program gives it
    for owner, names in namespaces():
        for name, f in names.items():
            for fn, func in _parts(owner, name, f):
                if id(fn) not in seen and isinstance(fn, FunctionType):
                    seen.add(id(fn))
                    if fn.__name__ == "<lambda>":
                        fn.__name__ = name
                    yield fn, func, owner is Tensor or name not in FACTORIES


def _parts(owner, name, f):
    if type(f) is property:
        return [(f.fget, f.__get__)] + [(f.fset, f.__set__)] * (f.fset is not None) + [(f.fdel, f.__delete__)] * (f.fdel is not None)
    if owner is Tensor and name in SYMBOLS:
        return [(f, getattr(Tensor, SYMBOLS[name]))]
    return [(f, f)]


__all__ = ["functions", "namespaces"]
