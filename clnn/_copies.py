"""Functions that view a tensor, as copies: ``clnn.<name>_copy(...)`` is ``clnn.<name>(...)`` with memory of its own. All of them pass gradients on."""
from __future__ import annotations

from ._tensor.inplace import set_out
from ._tensor.refusals import same_dtype
from ._tensor.tensor import Tensor

NAMES = ("alias as_strided detach diagonal expand permute select slice split split_with_sizes squeeze t transpose unbind unfold unsqueeze view "
         "view_as_complex view_as_real")


def _slice(input, dim=0, start=None, end=None, step=1):
    return input[(slice(None),) * (dim % len(input.shape)) + (slice(start, end, step),)]


_OWN = dict(alias=lambda input: input, detach=lambda input: input, slice=_slice, view_as_complex=None, view_as_real=None)


def _copy(view):
    name, copy = view.grad_fn.name() if view._rg and view._grad_fn is not None else "", view.clone().contiguous()
    if copy._rg and hasattr(copy._grad_fn, "label"):
        copy._grad_fn.label = f"{name or 'AliasBackward0'}_copy"
    return copy


def _copying(name):
    def call(input, *args, out=None, **kwargs):
        from .graph.op import REGISTRY
        view = _OWN.get(name) or (REGISTRY[name].fn if name in _OWN else getattr(Tensor, name))
        got = view(input, *args, **kwargs)
        if isinstance(got, (tuple, list)):
            got = tuple([_copy(t) for t in got])
        else:
            got = _copy(got)
        if out is None:
            return got
        same_dtype(call, out, got)
        return set_out(out, got)
    call.__name__ = call.__qualname__ = call.name = f"{name}_copy"
    call.__doc__ = f"A copy of what :func:`clnn.{name}` gives."
    return call


globals().update({f"{name}_copy": _copying(name) for name in NAMES.split()})
