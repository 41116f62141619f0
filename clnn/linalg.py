"""``clnn.linalg``: linear algebra under PyTorch's names. What needs a factorisation runs on the host (see ``clnn.ops.linalg``)."""
from __future__ import annotations

from .core.errors import LinAlgError
from .ops.linalg import cholesky, cond, det, eigh, eigvalsh, inv, lstsq, matrix_norm, matrix_rank, pinv, qr, slogdet, solve, solve_triangular, svd, svdvals
from .ops.linalg import linalg_norm as norm
from .ops.matmul import matmul
from .ops.norms import vector_norm
from .ops.products import linalg_cross as cross
from .ops.products import matrix_power, multi_dot


def vecdot(x, y, *, dim=-1):
    """Sums of products along ``dim``."""
    return (x * y).sum(dim)


def diagonal(A, *, offset=0, dim1=-2, dim2=-1):
    """Diagonals of matrices."""
    return A.diagonal(offset, dim1, dim2)


def inv_ex(A, *, check_errors=False):
    """Inverse and a status of 0. Raises where it fails."""
    from ._tensor.return_types import named
    from .ops.creation import zeros
    import clnn
    return named("linalg_inv_ex", "inverse", "info")(inv(A), zeros(tuple(A.shape[:-2]), dtype=clnn.int32, device=A.device))


__all__ = ["LinAlgError", "cholesky", "cond", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "inv_ex", "lstsq", "matmul", "matrix_norm",
           "matrix_power", "matrix_rank", "multi_dot", "norm", "pinv", "qr", "slogdet", "solve", "solve_triangular", "svd", "svdvals", "vecdot",
           "vector_norm"]
