"""Questions of ``torch.overrides``: tensors of other classes are not asked to take functions over (``__torch_function__``)."""
from ._tensor.tensor import Tensor

__all__ = ["has_torch_function", "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like", "is_tensor_method_or_property"]


def has_torch_function(relevant_args) -> bool:
    """False."""
    return False


has_torch_function_unary = has_torch_function


def has_torch_function_variadic(*relevant_args) -> bool:
    """False."""
    return False


def is_tensor_like(inp) -> bool:
    """Whether ``inp`` is a tensor."""
    return isinstance(inp, Tensor)


def is_tensor_method_or_property(func) -> bool:
    """Whether ``func`` is a member of ``Tensor``."""
    return func in vars(Tensor).values() or getattr(func, "__name__", None) == "__get__"
