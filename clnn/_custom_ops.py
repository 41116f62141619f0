"""The older names of :mod:`clnn.library`, as in ``torch._custom_ops``."""
from .library import custom_op, get_ctx, impl, register_fake

impl_abstract = register_fake

__all__ = ["custom_op", "get_ctx", "impl", "impl_abstract"]
