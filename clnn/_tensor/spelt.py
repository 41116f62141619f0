"""How calls are told to classes that take functions over: those of functions that PyTorch writes in Python hand on all of their parameters by name."""
from __future__ import annotations

import functools
import inspect

from ..core.config import config

# Functions of nn.functional whose calls are handed over as they were made; PyTorch has them in C.
_AS_CALLED = frozenset("""hardshrink softshrink gelu softplus logsigmoid prelu one_hot avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d pixel_shuffle
    pixel_unshuffle channel_shuffle native_channel_shuffle linear bilinear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d conv_tbc
    scaled_dot_product_attention cosine_similarity pairwise_distance pdist cdist sigmoid tanh""".split())
_OWN = ("out", "cudnn_enable", "channels")                      # parameters that PyTorch's functions of these names do not have
# Where the parameters differ from those that a call is told with; and functions outside of nn.functional.
_TOLD = dict.fromkeys(("softmax", "log_softmax", "softmin"), lambda input, dim=None, _stacklevel=3, dtype=None: None)
_TOLD["normalize"] = lambda input, p=2.0, dim=1, eps=1e-12, out=None: None
_TOLD["l1_loss"] = lambda input, target, size_average=None, reduce=None, reduction="mean": None
_ELSEWHERE = dict(split=lambda tensor, split_size_or_sections, dim=0: None, tensordot=lambda a, b, dims=2, out=None: None,
                  norm=lambda input, p="fro", dim=None, keepdim=False, out=None, dtype=None: None,
                  cdist=lambda x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary": None,
                  unique=lambda input, sorted=True, return_inverse=False, return_counts=False, dim=None: None,
                  unique_consecutive=lambda input, return_inverse=False, return_counts=False, dim=None: None)
_METHODS = dict(split=lambda self, split_size, dim=0: None, norm=lambda self, p="fro", dim=None, keepdim=False, dtype=None: None,
                unique=lambda self, sorted=True, return_inverse=False, return_counts=False, dim=None: None,
                unique_consecutive=lambda self, return_inverse=False, return_counts=False, dim=None: None)


@functools.lru_cache(None)
def _functions():
    """{function: (parameters without a default, {others: their defaults}, other names that a call may have)}."""
    import clnn
    from clnn.nn import functional
    from .tensor import Tensor
    rows = [(getattr(functional, n), _TOLD.get(n)) for n in functional.__all__ if n not in _AS_CALLED and not n.endswith("_")]
    rows += [(getattr(clnn, n), told) for n, told in _ELSEWHERE.items()] + [(getattr(Tensor, n), told) for n, told in _METHODS.items()]
    found = {}
    for fn, told in rows:
        if inspect.isfunction(fn):
            parameters = inspect.signature(told or fn).parameters.values()
            first = tuple([p.name for p in parameters if p.default is p.empty])
            found[fn] = first, {p.name: p.default for p in parameters if p.default is not p.empty and (told or p.name not in _OWN)}, (*_OWN, "weight")
    return found


def spelt_out(fn, args, kwargs):
    """(arguments, named arguments) as a call of ``fn`` is told: those with defaults by name, all of them.

    Calls that do not fit stay what they are; the function itself says what is wrong.
    """
    try:
        first, others, own = _functions()[fn]
    except (KeyError, TypeError):
        return args, kwargs
    count, rest = len(first), kwargs
    if len(args) < count:
        if any([n not in kwargs for n in first[len(args):]]):
            return args, kwargs
        rest = {n: v for n, v in kwargs.items() if n not in first}
        args = (*args, *[kwargs[n] for n in first[len(args):]])
    by_place = dict(zip(others, args[count:]))
    named = {**others, **by_place, **rest}
    if len(args) > count + len(others) or any([n in by_place or n not in others and n not in own for n in rest]):
        return args, kwargs
    return args[:count], named


def in_python(fn):
    """The dotted name of a function that PyTorch has in Python, else None."""
    if fn not in _functions():
        return None
    spoken, name = config.spoken, fn.__name__
    if fn.__qualname__.startswith("Tensor."):
        return f"{spoken}._tensor.{name}"
    return f"{spoken}.functional.{name}" if name in _ELSEWHERE else f"{spoken}.nn.functional.{name}"


__all__ = ["in_python", "spelt_out"]
