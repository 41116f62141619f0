"""Floor 3: the Tensor handle, the autograd tape, grad modes, indexing, display and interop."""
