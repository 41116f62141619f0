"""Parameters as one vector."""
import clnn
from clnn._tensor.tensor import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def _same_device(parameters):
    parameters = list(parameters)
    if len({p.device for p in parameters}) > 1:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")
    return parameters


def _check_param_device(param, old_param_device):
    """The number of the GPU that ``param`` is on, -1 for none; TypeError where this is not that of the parameters before."""
    here = param.get_device() if param.is_cuda else -1
    if old_param_device is not None and here != old_param_device:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")
    return here


def parameters_to_vector(parameters):
    """All elements of the parameters, one after the other.

    Example::

        >>> nn.utils.parameters_to_vector(nn.Linear(3, 2).parameters()).shape
        clnn.Size([8])
    """
    return clnn.cat([p.reshape(-1) for p in _same_device(parameters)])


def vector_to_parameters(vec, parameters):
    """Set the parameters to the parts of *vec*, the reverse of :func:`parameters_to_vector`.

    Example:
        >>> layer = nn.Linear(2, 1)
        >>> clnn.nn.utils.vector_to_parameters(clnn.tensor([1.0, 2.0, 3.0]), layer.parameters())
        >>> layer.weight.tolist(), layer.bias.tolist()
        ([[1.0, 2.0]], [3.0])
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected Tensor, but got: {type(vec).__name__}")
    start = 0
    for p in _same_device(parameters):
        end = start + p.numel()
        p.data = vec[start:end].view_as(p).data
        start = end
