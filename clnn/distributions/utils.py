"""Helpers of the distributions: common shapes, probabilities and logits, properties that are computed once."""
from __future__ import annotations

import clnn

euler_constant = 0.57721566490153286060


def broadcast_all(*values):
    """Numbers and tensors as tensors of one shape; numbers take the dtype and device of the tensors, else the default float dtype.

    Example:
        >>> clnn.distributions.utils.broadcast_all(clnn.tensor([1.0, 2.0]), 3.0)
        (tensor([1., 2.]), tensor([3., 3.]))
    """
    if not all(isinstance(v, clnn.Tensor) or isinstance(v, (int, float, bool)) for v in values):
        raise ValueError("Input arguments must all be instances of Number, clnn.Tensor or objects implementing __torch_function__.")
    like = next((v for v in values if isinstance(v, clnn.Tensor)), None)
    options = dict(dtype=clnn.get_default_dtype()) if like is None else dict(dtype=like.dtype, device=like.device)
    return clnn.broadcast_tensors(*[v if isinstance(v, clnn.Tensor) else clnn.tensor(v, **options) for v in values])


def scalar_shape(*values):
    """True when all parameters are plain numbers, whose distribution has the batch shape ()."""
    return all(isinstance(v, (int, float, bool)) for v in values)


def clamp_probs(probs):
    """Probabilities kept away from 0 and 1 by the machine epsilon.

    Example:
        >>> clnn.distributions.utils.clamp_probs(clnn.tensor([0.5, 0.25]))
        tensor([0.5000, 0.2500])
    """
    eps = clnn.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits, is_binary=False):
    """Probabilities from log-odds (binary) or from unnormalised log-probabilities in the last dimension.

    Example:
        >>> clnn.distributions.utils.logits_to_probs(clnn.tensor([0.0, 0.0]))
        tensor([0.5000, 0.5000])
    """
    return clnn.sigmoid(logits) if is_binary else clnn.softmax(logits, -1)


def probs_to_logits(probs, is_binary=False):
    """The inverse of :func:`logits_to_probs`.

    Example:
        >>> clnn.distributions.utils.probs_to_logits(clnn.tensor([0.5, 0.5]))
        tensor([-0.6931, -0.6931])
    """
    safe = clamp_probs(probs)
    return clnn.log(safe) - clnn.log1p(-safe) if is_binary else clnn.log(safe)


class lazy_property:
    """A property that is computed when first read and then kept as an attribute."""

    def __init__(self, wrapped):
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__
        self.__name__ = wrapped.__name__

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        with clnn.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def vec_to_tril_matrix(vec, diag=0):
    """Lower triangular matrices whose elements, row by row, are the last dimension of ``vec``.

    Example:
        >>> clnn.distributions.utils.vec_to_tril_matrix(clnn.tensor([1, 2, 3]))
        tensor([[1, 0],
                [2, 3]])
    """
    count = vec.shape[-1]
    n = round(((1 + 8 * count) ** 0.5 - 1) / 2) - diag
    rows, columns = clnn.tril_indices(n, n, diag, device=vec.device)
    flat = clnn.zeros(*vec.shape[:-1], n * n, dtype=vec.dtype, device=vec.device)
    return flat.index_copy(-1, rows * n + columns, vec).reshape(*vec.shape[:-1], n, n)


def tril_matrix_to_vec(mat, diag=0):
    """The elements of lower triangles, row by row.

    Example:
        >>> clnn.distributions.utils.tril_matrix_to_vec(clnn.tensor([[1, 0], [2, 3]]))
        tensor([1, 2, 3])
    """
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = clnn.tril_indices(n, n, diag, device=mat.device)
    return mat.flatten(-2).index_select(-1, rows * n + columns)


def sum_rightmost(value, dim):
    """Sum over the last ``dim`` dimensions."""
    return value if dim == 0 else value.reshape(value.shape[:value.dim() - dim] + (-1,)).sum(-1)


_sum_rightmost = sum_rightmost


def _standard_normal(shape, dtype, device):
    """Standard normal numbers; distributions outside of this package draw them by this name."""
    return clnn.randn(shape, dtype=dtype, device=device)
