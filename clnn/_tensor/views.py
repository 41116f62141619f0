"""Views and the history of their base: an in-place write to one of them is seen by all."""
from __future__ import annotations

import weakref

from .tape import move_retained


def watch(base, view) -> None:
    """Let ``base``, which has no history yet, find ``view`` when a write gives it one (see :func:`wake`)."""
    known = base._all.get("_views")
    if known is None:
        known = base._views = [8]
    known.append(weakref.ref(view))
    if len(known) > known[0]:                                    # the first item is the length at which to look for what is gone
        known[1:] = [r for r in known[1:] if r() is not None]
        known[0] = 2 * len(known) + 8


def wake(base) -> None:
    """After a write that gave ``base`` a history: its views, until now without one, have one too."""
    for ref in base._all.pop("_views", (0,))[1:]:
        view = ref()
        if view is not None and view._base is base and view._view_version >= 0:
            view._rg = True
            refresh(view)


def refresh(view) -> None:
    """After an in-place write to its base, a view's history is 'this region of the base's new history'."""
    base = view._base
    if view._view_version < 0 or not base._rg:
        return
    now = (base._ver or base._storage).version
    if view._view_version != now and base._grad_fn is not None and base._all.get("_rewritten", -1) > view._view_version:
        from .inplace import region_node
        before = view._grad_fn, view._out_nr
        view._grad_fn, view._out_nr, view._rg = region_node(base, view), 0, True
        view._view_version = now
        if view._retain:
            move_retained(view, *before)
    view._view_version = now
