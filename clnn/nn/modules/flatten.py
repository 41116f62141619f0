"""Merging and splitting dimensions."""
from ._chain import known
from ._declare import declare
from .module import Module

__all__ = ["Flatten", "Unflatten"]


@known(settings="start_dim end_dim")
@declare
class Flatten(Module):
    """Merge the dimensions ``start_dim`` to ``end_dim`` into one; all but the first by default.

    Example::

        >>> nn.Flatten()(clnn.zeros(32, 1, 5, 5)).shape
        clnn.Size([32, 25])
    """

    start_dim: int = 1
    end_dim: int = -1

    def forward(self, input):
        return input.flatten(self.start_dim, self.end_dim)


@known(settings="dim unflattened_size")
class Unflatten(Module):
    """Split dimension *dim* into the sizes *unflattened_size*, one of which may be -1.

    Example::

        >>> nn.Unflatten(1, (2, 5))(clnn.zeros(3, 10)).shape
        clnn.Size([3, 2, 5])
    """

    _module_repr_fields = "dim unflattened_size"

    def __init__(self, dim, unflattened_size):
        super().__init__()
        if not isinstance(dim, (int, str)):
            raise TypeError("invalid argument type for dim parameter")
        if isinstance(dim, str):
            raise TypeError("named dimensions are not supported; give dim as an int")
        if not isinstance(unflattened_size, (tuple, list)):
            raise TypeError(f"unflattened_size must be a tuple of ints, but found type {type(unflattened_size).__name__}")
        for position, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise TypeError(f"unflattened_size must be tuple of ints, but found element of type {type(size).__name__} at pos "
                                f"{position}")
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input):
        return input.unflatten(self.dim, self.unflattened_size)
