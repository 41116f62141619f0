"""Ready parametrizations: orthogonal matrices, weight normalisation, spectral normalisation."""
import math

import numpy as np

import clnn
from clnn.nn import functional as F
from clnn.nn.modules.module import Module

from . import parametrize
from .spectral_norm import output_dim
from .weight_norm import norm_except_dim

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

_MAPS = ("matrix_exp", "cayley", "householder")


def _is_orthogonal(q, eps=None):
    n, k = q.shape[-2:]
    eps = 10.0 * n * clnn.finfo(q.dtype).eps if eps is None else eps
    identity = clnn.eye(k, dtype=q.dtype, device=q.device)
    return bool((q.mT @ q - identity).abs().max() <= eps)


def _make_orthogonal(a):
    """The orthogonal factor of *a*, unique for a given *a* (the triangular factor gets a positive diagonal)."""
    q, r = clnn.linalg.qr(a)
    return q * clnn.diagonal(r, dim1=-2, dim2=-1).sign().unsqueeze(-2)


def _matrix_exp(a):
    """``exp(A)`` of square matrices: Taylor series of ``A / 2^s`` (norm at most 1/2), squared s times."""
    norm = float(a.detach().abs().sum(-1).max())
    squarings = max(0, math.frexp(norm)[1] + 1) if norm > 0 else 0
    scaled = a / 2.0**squarings
    identity = clnn.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    result = identity
    for k in range(14 if a.dtype == clnn.float64 else 8, 0, -1):  # Horner's scheme
        result = identity + scaled @ result / k
    for _ in range(squarings):
        result = result @ result
    return result


def _householder_product(v, tau):
    """The first k columns of H_1 ... H_k with ``H_i = I - tau_i v_i v_i^T``; v is ``(*, n, k)`` with an implied unit diagonal."""
    n, k = v.shape[-2:]
    q = clnn.eye(n, dtype=v.dtype, device=v.device)[:, :k]
    unit = clnn.eye(n, dtype=v.dtype, device=v.device)
    for i in range(k - 1, -1, -1):
        column = (v[..., i] + unit[i]).unsqueeze(-1)  # v is strictly lower triangular
        q = q - tau[..., i, None, None] * (column @ (column.mT @ q))
    return q


class _Orthogonal(Module):
    """See :func:`orthogonal`. With a base B the result is ``B Q``, with Q = I at the start."""

    def __init__(self, weight, orthogonal_map, *, use_trivialization=True):
        super().__init__()
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X):
        n, k = X.shape[-2:]
        wide = n < k
        if wide:
            X, n, k = X.mT, k, n
        Q = self._householder(X) if self.orthogonal_map == "householder" else self._from_skew(X, n, k)
        if hasattr(self, "base"):
            Q = self.base @ Q
        return Q.mT if wide else Q

    def _from_skew(self, X, n, k):
        """Map the skew-symmetric matrix ``A = L - L^T`` of the lower triangle L to an orthogonal one."""
        X = X.tril()
        if n != k:
            X = clnn.cat([X, X.new_zeros((*X.shape[:-1], n - k))], -1)
        A = X - X.mT
        if self.orthogonal_map == "matrix_exp":
            Q = _matrix_exp(A)
        else:
            identity = clnn.eye(n, dtype=A.dtype, device=A.device)
            Q = clnn.linalg.solve(identity - A * 0.5, identity + A * 0.5)
        return Q[..., :k] if n != k else Q

    @staticmethod
    def _householder(X):
        A = X.tril(-1)
        tau = 2.0 / (1 + (A * A).sum(-2))
        signs = clnn.diagonal(X, dim1=-2, dim2=-1).detach().trunc()
        return _householder_product(A, tau) * signs.unsqueeze(-2)

    def right_inverse(self, Q):
        with clnn.no_grad():
            if Q.shape != self.shape:
                raise ValueError(f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}.")
            n, k = Q.shape[-2:]
            wide = n < k
            M = Q.mT if wide else Q
            if not hasattr(self, "base"):
                if self.orthogonal_map != "householder":
                    raise NotImplementedError("It is not possible to assign to the matrix exponential or the Cayley parametrizations "
                                              "when use_trivialization=False.")
                A = _reflectors(M)
                return A.mT if wide else A
            n, k = M.shape[-2:]
            if n == k:
                base = M.clone() if _is_orthogonal(M) else _make_orthogonal(M)
            else:  # complete the basis; what is added does not matter
                base = _make_orthogonal(clnn.cat([M, clnn.randn((*M.shape[:-1], n - k), dtype=M.dtype, device=M.device)], -1))
            self.base = base
            start = clnn.eye(*Q.shape[-2:], dtype=Q.dtype, device=Q.device) * -1.0
            return start.expand(Q.shape).clone()


def _reflectors(M):
    """Householder vectors of a tall matrix below the diagonal, signs on it (by LAPACK on the host: runs on assignment only)."""
    values = M.detach().cpu().numpy()
    flat = values.reshape(-1, *values.shape[-2:])
    result = []
    for matrix in flat:
        h, tau = np.linalg.qr(matrix, mode="raw")
        packed = h.T.copy()
        diagonal = np.sign(np.diagonal(packed)) * np.where(tau == 0, -1, 1)
        np.fill_diagonal(packed, diagonal)
        result.append(packed)
    return clnn.tensor(np.stack(result).reshape(values.shape), dtype=M.dtype, device=M.device)


def orthogonal(module, name="weight", orthogonal_map=None, *, use_trivialization=True):
    """Keep a matrix (or batch of them) orthogonal: ``Q^T Q = I``, or ``Q Q^T = I`` for wide ones.

    Args:
        module: the layer, which is returned.
        name: its parameter with at least 2 dimensions. Default: ``"weight"``.
        orthogonal_map: ``"matrix_exp"`` (``exp(A)``, the default of square matrices), ``"cayley"``
            (``(I - A/2)^-1 (I + A/2)``) of a skew-symmetric A, or ``"householder"`` (a product of reflections, the default else).
        use_trivialization: start from the present matrix and learn a factor to it. Default: ``True``.

    Source: Lezcano-Casado, Trivializations for Gradient-Based Optimization on Manifolds, 2019 (arXiv:1909.09501).

    Example::

        >>> m = nn.utils.parametrizations.orthogonal(nn.Linear(20, 40))
        >>> bool((m.weight.T @ m.weight - clnn.eye(20)).abs().max() < 1e-4)
        True
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, clnn.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.shape[-2] == weight.shape[-1] else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}')
    orth = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, orth, unsafe=True)


class _WeightNorm(Module):
    def __init__(self, dim=0):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g, weight_v):
        return weight_v * (weight_g / norm_except_dim(weight_v, self.dim))

    def right_inverse(self, weight):
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module, name="weight", dim=0):
    """Split a parameter into length (``original0``) and direction (``original1``): ``w = g v / ||v||``.

    Args:
        module: the layer, which is returned.
        name: its parameter. Default: ``"weight"``.
        dim: dimension that keeps a length for each index; ``None`` for one length. Default: 0.

    Source: Salimans, Kingma, 2016 (arXiv:1602.07868).

    Example::

        >>> nn.utils.parametrizations.weight_norm(nn.Linear(20, 40)).parametrizations.weight.original0.shape
        clnn.Size([40, 1])
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def accept_old_names(state_dict, prefix, *rest):
        for old, new in (("_g", "original0"), ("_v", "original1")):
            if prefix + name + old in state_dict:
                state_dict[f"{prefix}parametrizations.{name}.{new}"] = state_dict.pop(prefix + name + old)

    module._register_load_state_dict_pre_hook(accept_old_names)
    return module


class _SpectralNorm(Module):
    def __init__(self, weight, n_power_iterations=1, dim=0, eps=1e-12):
        super().__init__()
        if dim >= weight.ndim or dim < -weight.ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{weight.ndim}, {weight.ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
        self.dim = dim if dim >= 0 else dim + weight.ndim
        self.eps = eps
        if weight.ndim > 1:
            self.n_power_iterations = n_power_iterations
            with clnn.no_grad():
                matrix = self._as_matrix(weight)
                for name, size in zip(("_u", "_v"), matrix.shape):
                    self.register_buffer(name, F.normalize(matrix.new_empty(size).normal_(0, 1), dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _as_matrix(self, weight):
        if self.dim != 0:
            weight = weight.permute(self.dim, *[d for d in range(weight.dim()) if d != self.dim])
        return weight.flatten(1)

    def _power_method(self, matrix, n):
        with clnn.no_grad():
            for _ in range(n):
                self._u.copy_(F.normalize(clnn.mv(matrix, self._v), dim=0, eps=self.eps))
                self._v.copy_(F.normalize(clnn.mv(matrix.mH, self._u), dim=0, eps=self.eps))

    def forward(self, weight):
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._as_matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()  # backward must not see later improvements
        return weight / (u.conj() * clnn.mv(matrix, v)).sum()

    def right_inverse(self, value):
        return value


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divide a parameter by its largest singular value, estimated by the power method in each training call.

    Args:
        module: the layer, which is returned.
        name: its parameter. Default: ``"weight"``.
        n_power_iterations: improvements per call. Default: 1.
        eps: smallest norm to divide by. Default: 1e-12.
        dim: dimension of the outputs; 1 for transposed convolutions, else 0.

    Source: Miyato et al., 2018 (arXiv:1802.05957).

    Example::

        >>> nn.utils.parametrizations.spectral_norm(nn.Linear(20, 40)).weight.shape
        clnn.Size([40, 20])
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, clnn.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    dim = output_dim(module) if dim is None else dim
    return parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
