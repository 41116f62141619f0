"""Blocks that are decorators too, of functions and of generators, as programs derive their own from ``torch.utils._contextlib``."""
from clnn._tensor.grad_mode import _Mode


class _DecoratorContextManager(_Mode):
    """A base class for blocks (``__enter__`` and ``__exit__``) that decorate functions; override ``clone`` where the constructor takes arguments.

    Example:
        >>> class loud(clnn.utils._contextlib._DecoratorContextManager):
        ...     def __enter__(self):
        ...         print("in")
        ...     def __exit__(self, *error):
        ...         print("out")
        >>> loud()(lambda: print("body"))()
        in
        body
        out
    """

    def __enter__(self):
        raise NotImplementedError

    def __exit__(self, exc_type, exc_value, traceback):
        raise NotImplementedError

    def clone(self):
        """A block like this one, for each call of a decorated function."""
        return self.__class__()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """One that decorates without being called: ``@loud``."""

    def __new__(cls, orig_func=None):
        return super().__new__(cls) if orig_func is None else cls()(orig_func)


def context_decorator(ctx, func):
    """``func`` in a block that ``ctx`` makes, or is."""
    maker = _DecoratorContextManager()
    maker.clone = ctx if callable(ctx) else lambda: ctx
    return maker(func)
