"""Questions and switches around :func:`clnn.compile`, as in ``torch.compiler``."""
from __future__ import annotations

import contextlib
import threading

from .core import rng
from .runtime import capture

_STANCES = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile", "eager_then_compile", "aot_eager_then_compile")
_now = {"stance": "default"}


class _Here(threading.local):
    # calls of compiled functions under way in this thread; whole: those that are, or show how to make, one recording; full: those with fullgraph=True
    inside = whole = full = 0


_here = _Here()


def is_compiling() -> bool:
    """True inside a function given to :func:`clnn.compile`: when it is recorded, and in the ordinary runs before that."""
    return capture.own() is not None or _here.inside > 0


@contextlib.contextmanager
def _inside(step=1, what="inside"):
    """The length of one call of a compiled function; of a part that is none, with ``step`` -1."""
    setattr(_here, what, getattr(_here, what) + step)
    rng.here.counted += step
    try:
        yield
    finally:
        setattr(_here, what, getattr(_here, what) - step)
        rng.here.counted -= step


is_dynamo_compiling = is_compiling


def disable(fn=None, recursive=True, *, reason=None):
    """Mark a function as not to be recorded; called inside a recorded function it runs as part of it."""
    return (lambda f: f) if fn is None else fn


_disable_dynamo = disable


def reset():
    """Accepted: every compiled function owns its recordings; drop the function to drop them."""


def allow_in_graph(fn):
    """Accepted: every operator can be recorded."""
    return fn


assume_constant_result = allow_in_graph


def compile(*args, **kwargs):
    """:func:`clnn.compile`."""
    from ._compile import compile as made
    return made(*args, **kwargs)


def nested_compile_region(fn=None, *, options=None, max_reuse_entries=8, reuse_hash_fn=None):
    """Accepted, also with arguments: a part that repeats costs a recording nothing extra to build."""
    return (lambda f: f) if fn is None else fn


def substitute_in_graph(original_fn, *, can_constant_fold_through=False, skip_signature_check=False):
    """Accepted: recordings see launches, whatever function made them."""
    return allow_in_graph


def wrap_numpy(fn):
    """A function of tensors from a function of NumPy arrays; gradients do not pass through it.

    Example:
        >>> @clnn.compiler.wrap_numpy
        ... def halves(x):
        ...     return x / 2
        >>> halves(clnn.ones(2))
        tensor([0.5000, 0.5000])
    """
    import functools

    import numpy as np

    from ._tensor.interop import from_numpy
    from ._tensor.tensor import Tensor
    from .utils._pytree import tree_map

    @functools.wraps(fn)
    def wrapped(*args, **kwargs):
        args, kwargs = tree_map(lambda v: v.numpy(force=True) if isinstance(v, Tensor) else v, (args, kwargs))
        return tree_map(lambda v: from_numpy(np.asarray(v)) if isinstance(v, (np.ndarray, np.generic)) else v, fn(*args, **kwargs))
    return wrapped


def set_enable_guard_collectives(enabled):
    """Accepted: there is one process. Returns the old value, False."""
    return False


def save_cache_artifacts():
    """None: built kernels are kept on disk by themselves."""


def load_cache_artifacts(serialized_artifacts):
    """None, as :func:`save_cache_artifacts`."""


def _every(guard_entries):
    return [True] * len(guard_entries)


keep_portable_guards_unsafe = keep_tensor_guards_unsafe = skip_guard_on_inbuilt_nn_modules_unsafe = skip_guard_on_all_nn_modules_unsafe = _every
skip_guard_on_globals_unsafe = skip_all_guards_unsafe = _every


def is_exporting() -> bool:
    """False."""
    return False


def cudagraph_mark_step_begin() -> None:
    """Accepted: recordings own their memory."""


def list_backends(exclude_tags=()):
    """Names that :func:`clnn.compile` takes: ``"replay"``, its way of working, and those that PyTorch lists, which stand for it."""
    return ["cudagraphs", "inductor", "openxla", "replay", "tvm"]


def set_default_backend(backend):
    """Accepted: recordings are what every backend is here. None stands for PyTorch's own default."""
    _now["backend"] = backend


def get_default_backend():
    """What :func:`set_default_backend` was given, ``"inductor"`` before that."""
    return _now.get("backend") or "inductor"


class set_stance(contextlib.ContextDecorator):
    """What calls of compiled functions do, from here on, inside a ``with`` block, or inside the decorated function.

    Args:
        stance: ``"default"``; ``"force_eager"``: run the function as written; ``"eager_on_recompile"``: run it as written for inputs of a kind that was
            not seen before; ``"fail_on_recompile"``: raise RuntimeError for those. The stances that compile later are the default here, as a recording is
            made at the third call anyway.

    Example:
        >>> @clnn.compile
        ... def compiled():
        ...     return clnn.compiler.is_compiling()
        >>> with clnn.compiler.set_stance("force_eager"):
        ...     compiled()
        False
    """

    def __init__(self, stance="default", *, skip_guard_eval_unsafe=False, force_backend=None):
        if stance not in _STANCES:
            raise RuntimeError(f"invalid torch.compile stance '{stance}'; expected one of {', '.join(_STANCES)}")
        self.stance, self.before, _now["stance"] = stance, _now["stance"], stance

    def __enter__(self):
        _now["stance"] = self.stance
        return self

    def __exit__(self, *exc):
        _now["stance"] = self.before

    def __call__(self, fn):
        _now["stance"] = self.before                            # a decorator changes nothing outside of its function
        return super().__call__(fn)
