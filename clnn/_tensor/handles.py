"""The handle of a registered hook, of tensors, nodes and modules."""
import itertools
import weakref
from collections import OrderedDict


def _reference(table):
    """What gives ``table`` when called: a weak reference, but of dictionaries that can have none."""
    return (lambda: table) if type(table) is dict else weakref.ref(table)


class RemovableHandle:
    """What every ``register_*hook`` returns: ``remove()`` takes the hook out again.

    The handle is also a context manager that removes its hook at the end of the block. It refers weakly to the
    dictionary that holds the hook, where that can be, so a forgotten handle keeps nothing alive.

    Args:
        hooks_dict: dictionary the hook is stored in, under ``handle.id``.
        extra_dict: one dictionary, or a list of them, that carry a flag under the same id and are cleaned as well.
    """

    __module__ = "clnn.utils.hooks"
    _ids = itertools.count()
    next_id: int = 0  # kept readable for code that looks at it; the counter above decides

    def __init__(self, hooks_dict, *, extra_dict=None):
        self.id = RemovableHandle.next_id = next(RemovableHandle._ids)
        extra = [] if extra_dict is None else extra_dict if isinstance(extra_dict, list) else [extra_dict]
        self.hooks_dict_ref = _reference(hooks_dict)
        self.extra_dict_ref = tuple(_reference(d) for d in extra)

    def remove(self):
        """Remove the hook; does nothing when it is already gone."""
        for ref in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = ref()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self):
        return self.hooks_dict_ref(), self.id, tuple(ref() for ref in self.extra_dict_ref)

    def __setstate__(self, state):
        hooks, self.id, extra = state
        # a handle whose dictionary died still needs something to point at
        self.hooks_dict_ref = _reference(OrderedDict() if hooks is None else hooks)
        self.extra_dict_ref = tuple(_reference(OrderedDict() if d is None else d) for d in extra)
        # ids given later must not collide with the restored one
        RemovableHandle._ids = itertools.count(max(next(RemovableHandle._ids), self.id + 1))

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()
