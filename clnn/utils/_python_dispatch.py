"""Modes below autograd, which clnn has not: the class can be derived from, entering one says what there is instead."""
from __future__ import annotations

__all__ = ["TorchDispatchMode", "is_traceable_wrapper_subclass"]


class TorchDispatchMode:
    """PyTorch's hook on its own operators.

    Raises:
        NotImplementedError: when a block is entered. ``clnn.overrides.TorchFunctionMode`` sees public functions instead.
    """

    def __init__(self, _dispatch_key=None):
        pass

    def __enter__(self):
        raise NotImplementedError(f"{type(self).__name__}: clnn has no __torch_dispatch__; a TorchFunctionMode sees every public function, and "
                                  "clnn.utils.flop_counter counts operations")

    def __exit__(self, *exc):
        pass


def is_traceable_wrapper_subclass(t) -> bool:
    """False: no tensor stands for others."""
    return False
