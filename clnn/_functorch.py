"""Names of PyTorch's private ``_functorch``: what containers of tensors ask about the samples of a :func:`clnn.vmap`, and how they take part in one."""
from __future__ import annotations

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
