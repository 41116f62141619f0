"""``clnn.linalg``: linear algebra under PyTorch's names. Most of what needs a factorisation runs on the host (see ``clnn.ops.linalg``)."""
from __future__ import annotations

from .core.errors import LinAlgError
from .ops.factorisations import (cholesky_ex, eig, eigvals, householder_product, inv_ex, lu, lu_factor, lu_factor_ex, lu_solve, matrix_exp, solve_ex, tensorinv,
                                 tensorsolve, vander)
from .ops.linalg import cholesky, cond, det, eigh, eigvalsh, inv, lstsq, matrix_norm, matrix_rank, pinv, qr, slogdet, solve, solve_triangular, svd, svdvals
from .ops.linalg import linalg_norm as norm
from .ops.matmul import matmul
from .ops.norms import vector_norm
from .ops.products import linalg_cross as cross
from .ops.products import matrix_power, multi_dot
from .ops.symmetric import ldl_factor, ldl_factor_ex, ldl_solve


def vecdot(x, y, *, dim=-1):
    """Sums of products along ``dim``."""
    return (x.conj() * y).sum(dim)


def diagonal(A, *, offset=0, dim1=-2, dim2=-1):
    """Diagonals of matrices."""
    return A.diagonal(offset, dim1, dim2)


__all__ = ["LinAlgError", "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "householder_product", "inv",
           "inv_ex", "ldl_factor", "ldl_factor_ex", "ldl_solve", "lstsq", "lu", "lu_factor", "lu_factor_ex", "lu_solve", "matmul", "matrix_exp",
           "matrix_norm", "matrix_power", "matrix_rank", "multi_dot", "norm", "pinv", "qr", "slogdet", "solve", "solve_ex", "solve_triangular",
           "svd", "svdvals", "tensorinv", "tensorsolve", "vander", "vecdot", "vector_norm"]
