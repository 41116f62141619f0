"""Which modules are at work: what a hook or a mode asks to tell where it was called from."""

import weakref

from clnn._tensor import tape
from clnn._tensor.grad_mode import state
from clnn._tensor.tensor import Tensor
from clnn.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from clnn.utils._pytree import tree_leaves

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """Keeps in ``parents`` the names of the modules whose forward or backward pass is running, and ``"Global"``, while its block lasts.

    Example:
        >>> from clnn.utils.module_tracker import ModuleTracker
        >>> net, tracker = clnn.nn.Sequential(clnn.nn.ReLU()), ModuleTracker()
        >>> handle = net[0].register_forward_pre_hook(lambda *call: print(sorted(tracker.parents)))
        >>> with tracker:
        ...     _ = net(clnn.ones(2))
        ['Global', 'Sequential', 'Sequential.0']
    """

    def __init__(self):
        self.parents, self._ends = {"Global"}, False
        self._names, self._handles = weakref.WeakKeyDictionary(), []

    @property
    def is_bw(self):
        """Whether a backward pass is running."""
        return state.task is not None

    def _name(self, module):
        if module not in self._names:
            self._names[module] = top = type(module).__name__
            for name, part in module.named_modules():
                if name and part not in self._names:
                    self._names[part] = f"{top}.{name}"
        return self._names[module]

    def _arrive(self, name, backward):
        def hook(*gradients):
            if not backward:
                self.parents.discard(name)
                return
            if not self._ends:                                  # a module whose arguments ask for no gradients is left when the pass is over
                self._ends = True
                tape.at_end(self._end)
            self.parents.add(name)
        return hook

    def _end(self):
        self.parents, self._ends = {"Global"}, False

    def _watch(self, values, hook):
        from clnn.autograd.graph import register_multi_grad_hook
        tensors = [t for t in tree_leaves(values) if isinstance(t, Tensor) and t.requires_grad]
        if tensors:
            self._handles.append(register_multi_grad_hook(tensors, hook))

    def _before(self, module, args):
        name = self._name(module)
        self.parents.add(name)
        self._watch(args, self._arrive(name, False))

    def _after(self, module, args, result):
        name = self._name(module)
        self.parents.discard(name)
        self._watch(result, self._arrive(name, True))

    def __enter__(self):
        self._handles = [register_module_forward_pre_hook(self._before), register_module_forward_hook(self._after, always_call=True)]
        return self

    def __exit__(self, *error):
        for handle in self._handles:
            handle.remove()
        self._handles, self.parents = [], {"Global"}
