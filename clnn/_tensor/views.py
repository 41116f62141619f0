"""Views and the history of their base: an in-place write to one of them is seen by all."""
from __future__ import annotations

import re
import weakref

from .tape import move_retained


def watch(base, view) -> None:
    """Let ``base``, which has no history yet, find ``view`` when a write gives it one (see :func:`wake`)."""
    known = base._views
    if known is None:
        known = base._views = [8]
    known.append(weakref.ref(view))
    if len(known) > known[0]:                                    # the first item is the length at which to look for what is gone
        known[1:] = [r for r in known[1:] if r() is not None]
        known[0] = 2 * len(known) + 8


def wake(base) -> None:
    """After a write that gave ``base`` a history: its views, until now without one, have one too."""
    known, base._views = base._views, None
    for ref in (known or ())[1:]:
        view = ref()
        if view is not None and view._base is base:
            view._rg = True
            if view._origin is None:
                refresh(view)


def follow(base) -> None:
    """A leaf was told whether it requires a gradient: views from before then say the same, and are leaves beside it."""
    for ref in base._views[1:]:
        view = ref()
        if view is not None and view._base is base and view._grad_fn is None:
            view._rg = base._rg


def refresh(view) -> None:
    """After an in-place write to its base, a view's history is 'this region of the base's new history'."""
    base = view._base
    if not base._rg:
        return
    now = (base._ver or base._storage).version
    if view._origin is not None and view._view_version != now:
        refuse(view, "its base or another view of its base has been")
    if view._view_version != now and base._grad_fn is not None and base._rewritten > view._view_version:
        from .inplace import region_node
        before = view._grad_fn, view._out_nr
        view._grad_fn, view._out_nr, view._rg = region_node(base, view), 0, True
        view._view_version = now
        if view._retain:
            move_retained(view, *before)
    view._view_version = now


_AMBIGUOUS = ("Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and the inplace "
              "either both inside the {} block (if you don't want the inplace to be tracked) or both outside (if you want the inplace to be tracked).")
_MODES = {"no_grad": ("no_grad", "with grad mode enabled"), "inference": ("inference", "in normal mode")}
_REASONS = {
    "multiple": "This view is the output of a function that returns multiple views. Such functions do not allow the output views to be modified inplace. "
                "You should replace the inplace operation by an out-of-place one.",
    "no_grad": _AMBIGUOUS.format("no_grad"),
    "inference": _AMBIGUOUS.format("inference_mode"),
    "function": "This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic to handle view+inplace "
                "would override the custom backward associated with the custom Function, leading to incorrect gradients. This behavior is forbidden. "
                "You can fix this by cloning the output of the custom Function."}


def refuse(view, changed="is being"):
    """Raise for a write that would have to change the history of ``view``, which has none that could be changed."""
    node, origin = view._grad_fn, view._origin
    what = "A view" if node is None else f"Output {view._out_nr} of {re.sub('Backward[0-9]*$', '', node.name())} is a view"
    if node is None or origin in _MODES:
        mode, writing = _MODES.get(origin, _MODES["no_grad"])
        what += f"{' of a view which' if node is not None else ''} was created in {mode} mode and {changed} modified inplace {writing}."
    else:
        what += f" and {changed} modified inplace."
    raise RuntimeError(f"{what} {_REASONS[origin]}")
