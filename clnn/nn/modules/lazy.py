"""Layers that learn their input size at the first call."""
from clnn.nn.parameter import is_lazy

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin:
    """Base of lazy layers, listed before the layer's ordinary base class.

    Until the first call the parameters are :class:`UninitializedParameter`; the call runs :meth:`initialize_parameters`
    with its input and turns the module into an instance of ``cls_to_become``. Move a lazy module to its device before that
    call, and make the optimizer after it.
    """

    cls_to_become = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        for name, value in self._module_persistent_state():
            destination[prefix + name] = value if keep_vars or is_lazy(value) else value.detach()

    def _lazy_load_hook(self, state_dict, prefix, *rest):
        for name, value in self._module_persistent_state():
            given = state_dict.get(prefix + name)
            if is_lazy(value) and given is not None and not is_lazy(given):
                value.materialize(given.shape)

    def initialize_parameters(self, *args, **kwargs):
        """Materialize the parameters for these arguments of the call (each lazy layer has its own)."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self):
        """Whether a parameter or buffer still has no shape."""
        return any(is_lazy(value) for table in (self._parameters, self._buffers) for value in table.values())

    def _infer_parameters(self, module, args, kwargs=None):
        self.initialize_parameters(*args, **(kwargs or {}))
        if self.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        self._initialize_hook.remove()
        self._load_hook.remove()
        del self._initialize_hook, self._load_hook
        if self.cls_to_become is not None:
            self.__class__ = self.cls_to_become
