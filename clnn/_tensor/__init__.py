"""Floor 3: the Tensor handle, the autograd tape, grad modes, indexing, display and interop."""


def __getattr__(name):
    if name == "Tensor":                                        # where programs written for PyTorch import it from, too
        from .tensor import Tensor
        return Tensor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
