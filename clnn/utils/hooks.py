"""Handles of registered hooks, and the backward hooks of modules."""
import warnings

from clnn._tensor.handles import RemovableHandle
from clnn._tensor.tensor import Tensor
from clnn.core.warn import warn

__all__ = ["RemovableHandle", "BackwardHook", "unserializable_hook", "warn_if_has_hooks"]


def unserializable_hook(fn):
    """Mark a hook of a tensor as one that cannot be saved with it (a warning is given instead)."""
    fn.__clnn_unserializable__ = True
    return fn


def warn_if_has_hooks(tensor):
    """Warn about hooks of *tensor* that are lost when it is saved."""
    for hook in (getattr(tensor, "_backward_hooks", None) or {}).values():
        if not hasattr(hook, "__clnn_unserializable__"):
            warnings.warn(f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can "
                          "decorate the function with @clnn.utils.hooks.unserializable_hook to suppress this warning",
                          stacklevel=2)


def _gate_function():
    """The identity whose backward lets a callback look at, and replace, the gradients that pass (made on first use)."""
    global _Gate
    if _Gate is None:
        from clnn.autograd import Function

        class BackwardHookFunction(Function):  # the name is seen as the grad_fn of hooked modules
            @staticmethod
            def forward(ctx, callback, materialize, *tensors):
                ctx.callback = callback
                ctx.set_materialize_grads(materialize)
                outs = tuple(t.view_as(t) for t in tensors)
                ctx.mark_non_differentiable(*[out for out, t in zip(outs, tensors) if not t.requires_grad])
                return outs

            @staticmethod
            def backward(ctx, *grads):
                return (None, None, *ctx.callback(grads))

        _Gate = BackwardHookFunction
    return _Gate


_Gate = None


def _as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


class BackwardHook:
    """Runs the full backward hooks of one call of a module.

    Two gates (identity functions) enclose the call: one on its tensor inputs, one on its outputs. In backward the output
    gate runs the pre-hooks with ``grad_output``, the input gate runs the hooks with ``(grad_input, grad_output)``. When no
    input needs a gradient the hooks run at the output gate, with ``None`` for every input.
    """

    def __init__(self, module, user_hooks, user_pre_hooks):
        self.module, self.user_hooks, self.user_pre_hooks = module, user_hooks, user_pre_hooks
        self.grad_outputs = None
        self.n_inputs, self.input_index = -1, None
        self.n_outputs, self.output_index = -1, None

    def _gate(self, callback, args, materialize):
        """Pass the tensors among *args* through a gate; (args, their positions or None if nothing needs a gradient)."""
        import clnn

        index = [i for i, arg in enumerate(args) if isinstance(arg, Tensor)]
        if not clnn.is_grad_enabled() or not any(args[i].requires_grad for i in index):
            return args, None
        gated = _gate_function().apply(callback, materialize, *[args[i] for i in index])
        args = list(args)
        for i, value in zip(index, _as_tuple(gated)):
            args[i] = value
        return tuple(args), index

    @staticmethod
    def _spread(values, index, size):
        full = [None] * size
        for i, value in zip(index, values):
            full[i] = value
        return tuple(full)

    @staticmethod
    def _check(result, size, where):
        """What a hook returned: any sequence with one gradient for each entry (the notes' example returns a list)."""
        if len(result) != size:
            raise RuntimeError(f"Backward {where}, got {len(result)}, but expected {size}")
        return result

    def setup_input_hook(self, args):
        """Gate the positional inputs of the call."""
        gated, self.input_index = self._gate(self._on_input_grads, args, True)  # an input that was not used shows zeros
        self.n_inputs = len(args)
        return gated

    def setup_output_hook(self, result):
        """Gate the output (a tensor or a tuple with tensors) of the call."""
        is_tuple = isinstance(result, tuple)
        outputs = _as_tuple(result)
        self.n_outputs = len(outputs)
        gated, self.output_index = self._gate(self._on_output_grads, outputs, False)  # an output that was not used shows None
        if not is_tuple:
            return gated[0]
        return gated if type(result) is tuple else type(result)(*gated)  # named tuples keep their type

    def _on_output_grads(self, grads):
        grad_outputs = self._spread(grads, self.output_index, self.n_outputs)
        for hook in self.user_pre_hooks:
            changed = hook(self.module, grad_outputs)
            if changed is not None:
                grad_outputs = self._check(changed, self.n_outputs, "pre hook returned an invalid number of grad_output")
        self.grad_outputs = grad_outputs
        if self.input_index is None:
            warn("Full backward hook is firing when gradients are computed with respect to module outputs since no inputs require gradients. See "
                 "https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.register_full_backward_hook for more details.")
            self._run_hooks((None,) * max(self.n_inputs, 0), needs_none=True)
            self.grad_outputs = None
        return [grad_outputs[i] for i in self.output_index]

    def _on_input_grads(self, grads):
        if self.grad_outputs is None:  # the gradient came past the module's output, as in a double backward
            return grads
        result = self._run_hooks(self._spread(grads, self.input_index, self.n_inputs))
        self.grad_outputs = None
        return [result[i] for i in self.input_index]

    def _run_hooks(self, grad_inputs, needs_none=False):
        for hook in self.user_hooks:
            changed = hook(self.module, grad_inputs, self.grad_outputs)
            if changed is None:
                continue
            if not needs_none:
                grad_inputs = self._check(changed, self.n_inputs, "hook returned an invalid number of grad_input")
            elif not (isinstance(changed, tuple) and all(g is None for g in changed)):
                raise RuntimeError("Backward hook for Modules where no input requires gradient should always return None or "
                                   "None for all gradients.")
        return grad_inputs
