"""Filling tensors with first values. Every function works in place, records no gradient and returns the tensor."""
import math
import warnings

import clnn
from clnn.ops.random import in_sequence

__all__ = ["calculate_gain", "uniform_", "normal_", "trunc_normal_", "constant_", "ones_", "zeros_", "eye_", "dirac_", "xavier_uniform_",
           "xavier_normal_", "kaiming_uniform_", "kaiming_normal_", "orthogonal_", "sparse_", "uniform", "normal", "constant", "eye",
           "dirac", "xavier_uniform", "xavier_normal", "kaiming_uniform", "kaiming_normal", "orthogonal", "sparse"]

_LINEAR = {"linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid"}
_GAINS = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}


def calculate_gain(nonlinearity, param=None):
    """The factor that keeps the variance through a non-linearity: 1 (linear, sigmoid), 5/3 (tanh), sqrt(2) (relu), 3/4 (selu),
    ``sqrt(2 / (1 + slope^2))`` (leaky_relu; *param* is the slope, 0.01 by default).

    Example::

        >>> nn.init.calculate_gain("leaky_relu", 0.2)
        1.3867504905630728
    """
    if nonlinearity in _LINEAR:
        return 1
    if nonlinearity in _GAINS:
        return _GAINS[nonlinearity]
    if nonlinearity == "leaky_relu":
        if param is None:
            slope = 0.01
        elif isinstance(param, (int, float)) and not isinstance(param, bool):
            slope = param
        else:
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def uniform_(tensor, a=0.0, b=1.0, generator=None):
    """Draw from the uniform distribution ``U(a, b)``.

    Example::

        >>> nn.init.uniform_(clnn.empty(3, 5)).shape
        clnn.Size([3, 5])
    """
    with clnn.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor, mean=0.0, std=1.0, generator=None):
    """Draw from the normal distribution ``N(mean, std^2)``.

    Example::

        >>> nn.init.normal_(clnn.empty(3, 5)).shape
        clnn.Size([3, 5])
    """
    with clnn.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """Draw from ``N(mean, std^2)`` restricted to ``[a, b]``: on CPUs numbers beyond are drawn again, as in PyTorch; elsewhere, where looking for them would
    wait for the device, by inverting the distribution function of a uniform draw.

    Args:
        a, b: the limits, as values (not in units of *std*).

    Example::

        >>> bool((nn.init.trunc_normal_(clnn.empty(9, 9)).abs() <= 2).all())
        True
    """
    def cdf(x):
        return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0

    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn("mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect.",
                      stacklevel=2)
    low, high = cdf((a - mean) / std), cdf((b - mean) / std)
    with clnn.no_grad():
        if in_sequence(tensor, generator):
            return _within(tensor, mean, std, a, b, generator, high - low)
        tensor.uniform_(2 * low - 1, 2 * high - 1, generator=generator)
        tensor.erfinv_()
        tensor.mul_(std * math.sqrt(2.0)).add_(mean)
        return tensor.clamp_(min=a, max=b)


def _within(tensor, mean, std, a, b, generator, share):
    """Numbers from ``N(mean, std^2)`` within ``[a, b]``, where that much of it lies: drawn from it, or, where few would do, from a box around its top."""
    if share > 0.3:
        low, high = tensor.new_tensor(a).item(), tensor.new_tensor(b).item()
        drawn = tensor.normal_(mean, std, generator=generator).clone()
        while (beyond := (drawn < low) | (drawn > high)).any():
            drawn = clnn.where(beyond, clnn.empty_like(tensor).normal_(mean, std, generator=generator), drawn)
        return tensor.copy_(drawn)
    top = ((max(a, min(mean, b)) - mean) / std) ** 2
    drawn, missing = tensor, None
    while missing is None or missing.any():
        tried = clnn.empty_like(tensor).uniform_(a, b, generator=generator)
        refused = clnn.empty_like(tensor).uniform_(generator=generator).log() > ((tried - mean) / std) ** 2 * -0.5 + 0.5 * top
        drawn = tried if missing is None else clnn.where(missing, tried, drawn)
        missing = refused if missing is None else missing & refused
    return tensor.copy_(drawn)


def constant_(tensor, val):
    """Set every element to *val*.

    Example::

        >>> nn.init.constant_(clnn.empty(2), 0.3)
        tensor([0.3000, 0.3000])
    """
    with clnn.no_grad():
        return tensor.fill_(val)


def ones_(tensor):
    """Set every element to 1.

    Example::

        >>> nn.init.ones_(clnn.empty(2))
        tensor([1., 1.])
    """
    return constant_(tensor, 1.0)


def zeros_(tensor):
    """Set every element to 0.

    Example::

        >>> nn.init.zeros_(clnn.empty(2))
        tensor([0., 0.])
    """
    return constant_(tensor, 0.0)


def eye_(tensor):
    """Set a matrix to the identity: a linear layer then passes its input on.

    Example::

        >>> nn.init.eye_(clnn.empty(2, 2))
        tensor([[1., 0.],
                [0., 1.]])
    """
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with clnn.no_grad():
        return tensor.copy_(clnn.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


def dirac_(tensor, groups=1):
    """Set a convolution weight (3 to 5 dimensions) so that the layer passes as many channels on as possible, in each group.

    Example::

        >>> nn.init.dirac_(clnn.empty(1, 1, 3))
        tensor([[[0., 1., 0.]]])
    """
    if tensor.ndimension() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.size(0) % groups:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = tensor.size(0) // groups
    centre = tuple(size // 2 for size in tensor.shape[2:])
    with clnn.no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, tensor.size(1))):
                tensor[(group * per_group + channel, channel, *centre)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor):
    """How many inputs feed an output and how many outputs an input feeds, of a weight (out, in, *kernel)."""
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    window = math.prod(tensor.shape[2:])
    return tensor.size(1) * window, tensor.size(0) * window


def _calculate_correct_fan(tensor, mode):
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


def xavier_uniform_(tensor, gain=1.0, generator=None):
    """Draw from ``U(-a, a)`` with ``a = gain sqrt(6 / (fan_in + fan_out))``. Source: Glorot, Bengio, AISTATS 2010.

    Example::

        >>> bool((nn.init.xavier_uniform_(clnn.empty(3, 3)).abs() <= 1).all())
        True
    """
    bound = gain * math.sqrt(6.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor, gain=1.0, generator=None):
    """Draw from ``N(0, s^2)`` with ``s = gain sqrt(2 / (fan_in + fan_out))``. Source: Glorot, Bengio, AISTATS 2010.

    Example::

        >>> nn.init.xavier_normal_(clnn.empty(3, 5)).shape
        clnn.Size([3, 5])
    """
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor))), generator)


def _kaiming_std(tensor, a, mode, nonlinearity):
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Draw from ``U(-b, b)`` with ``b = gain sqrt(3 / fan)``.

    Args:
        a: slope of the leaky relu that follows. Default: 0.
        mode: ``"fan_in"`` keeps the variance in forward, ``"fan_out"`` in backward. Default: ``"fan_in"``.
        nonlinearity: name for :func:`calculate_gain`. Default: ``"leaky_relu"``.

    Source: He et al., 2015 (arXiv:1502.01852).

    Example::

        >>> bool((nn.init.kaiming_uniform_(clnn.empty(3, 6)).abs() <= 1).all())
        True
    """
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Draw from ``N(0, s^2)`` with ``s = gain / sqrt(fan)``; arguments as in :func:`kaiming_uniform_`.

    Example::

        >>> nn.init.kaiming_normal_(clnn.empty(3, 5)).shape
        clnn.Size([3, 5])
    """
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor, gain=1, generator=None):
    """Fill with a (semi-)orthogonal matrix: rows, or columns, of the tensor flattened to (size 0, rest) are orthonormal.

    Source: Saxe et al., 2013 (arXiv:1312.6120).

    Example::

        >>> nn.init.orthogonal_(clnn.empty(3, 5)).shape
        clnn.Size([3, 5])
    """
    if tensor.ndimension() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    cols = tensor.numel() // rows
    with clnn.no_grad():
        flat = clnn.empty(rows, cols, dtype=tensor.dtype, device=tensor.device).normal_(0, 1, generator=generator)
        q, r = clnn.linalg.qr(flat.t() if rows < cols else flat)
        q = q * clnn.diagonal(r).sign()  # makes the result uniformly distributed
        if rows < cols:
            q = q.t()
        tensor.copy_(q.reshape(tensor.shape))
        return tensor.mul_(gain)


def sparse_(tensor, sparsity, std=0.01, generator=None):
    """Fill a matrix with ``N(0, std^2)`` and set a share *sparsity* of each column to zero. Source: Martens, ICML 2010.

    Example::

        >>> int((nn.init.sparse_(clnn.empty(10, 2), 0.3) == 0).sum())
        6
    """
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, cols = tensor.shape
    n_zeros = int(math.ceil(sparsity * rows))
    with clnn.no_grad():
        tensor.normal_(0, std, generator=generator)
        for col in range(cols):
            tensor[clnn.randperm(rows)[:n_zeros], col] = 0
    return tensor


_no_grad_uniform_, _no_grad_normal_, _no_grad_trunc_normal_, _no_grad_fill_, _no_grad_zero_ = uniform_, normal_, trunc_normal_, constant_, zeros_


def _deprecated(function):
    new, old = function.__name__, function.__name__[:-1]

    def alias(*args, **kwargs):
        warnings.warn(f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.", FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    alias.__name__ = alias.__qualname__ = old
    alias.__doc__ = f"Deprecated name of :func:`{new}`."
    return alias


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)
