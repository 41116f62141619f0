"""Names of PyTorch's private ``_functorch``: what containers of tensors ask about the samples of a :func:`clnn.vmap`, and how they take part in one."""
from __future__ import annotations

import functools
import sys
import types

from ._C import _functorch as _questions
from ._tensor.tensor import Tensor  # noqa: F401
from .utils._pytree import broadcast_prefix as _broadcast_to_and_flatten  # noqa: F401
from .utils._pytree import tree_flatten, tree_unflatten

is_batchedtensor, is_gradtrackingtensor = _questions.is_batchedtensor, _questions.is_gradtrackingtensor
is_functorch_wrapped_tensor, is_legacy_batchedtensor = _questions.is_functorch_wrapped_tensor, _questions.is_legacy_batchedtensor
get_unwrapped, maybe_get_level, maybe_get_bdim = _questions.get_unwrapped, _questions.maybe_get_level, _questions.maybe_get_bdim
__path__ = []           # programs import torch._functorch.vmap
__all__ = ["get_unwrapped", "is_batchedtensor", "is_functorch_wrapped_tensor", "is_gradtrackingtensor", "is_legacy_batchedtensor", "maybe_get_bdim",
           "maybe_get_level", "tree_flatten", "tree_unflatten"]


def _get_name(func):
    return getattr(func, "__name__", None) or repr(func)


def _add_batch_dim(tensor, dim, level):
    """``tensor`` as one that stands for a sample in ``level``, the samples lying along ``dim``."""
    from ._vmap.batched import wrap
    return wrap(tensor.movedim(dim, 0), level)


def _remove_batch_dim(tensor, level, size, dim):
    """All ``size`` samples of a tensor of ``level``, along ``dim``."""
    from ._vmap.batched import stripped
    return stripped(tensor, level, size).movedim(0, dim)


def _maybe_remove_batch_dim(name, output, level, size, dim):
    """:func:`_remove_batch_dim`; with ``dim=None`` a tensor of which all samples share one."""
    if not isinstance(output, Tensor):
        raise ValueError(f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(output)}. Did you mean to set out_dims= to None for output?")
    if dim is not None:
        return _remove_batch_dim(output, level, size, dim)
    if getattr(output, "level", None) == level:
        raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
    return output


# -- maps over what is no tensor: containers bring functions that take them apart, and put them in the places of PyTorch's ---------------------------------

class _Place(types.ModuleType):
    """This module: once a container's functions are set here, ``vmap`` hands arguments that it is one of to them."""

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name == "_unwrap_batched":
            import clnn
            from . import func, functorch
            made = _for_containers(func.vmap)
            for place in (clnn, func, functorch):
                place.vmap = made


def _knows_maps(value):
    return hasattr(value, "_add_batch_dim")


def _for_containers(vmap):
    @functools.wraps(vmap)
    def outer(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
        plain = vmap(func, in_dims, out_dims, randomness, chunk_size=chunk_size)

        @functools.wraps(func)
        def mapped(*args, **kwargs):
            if not any([_knows_maps(x) for x in tree_flatten(args, is_leaf=_knows_maps)[0]]):
                return plain(*args, **kwargs)
            from ._vmap import levels
            place = sys.modules[__name__]
            size, dims, leaves, spec = place._process_batched_inputs(in_dims, args, func)
            with levels.entered(size, randomness) as level:
                results = func(*place._create_batched_inputs(dims, leaves, level, spec), **kwargs)
                return place._unwrap_batched(results, out_dims, level, size, func)
        return mapped
    return outer


sys.modules[__name__].__class__ = _Place
