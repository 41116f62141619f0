"""The older names of what the module ``library`` holds, as in ``torch._custom_ops``."""
from . import library

custom_op, get_ctx, impl, register_fake = library.custom_op, library.get_ctx, library.impl, library.register_fake

impl_abstract = register_fake

__all__ = ["custom_op", "get_ctx", "impl", "impl_abstract"]
