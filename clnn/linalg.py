"""``clnn.linalg``: linear algebra under PyTorch's names. Most of what needs a factorisation runs on the host (see ``clnn.ops.linalg``)."""
from __future__ import annotations

from ._tensor.inplace import set_out as _set_out
from ._tensor.inplace import type_name as _type_name
from ._tensor.override import twin_of as _twin_of
from ._tensor.tensor import Tensor as _Tensor
from .core.errors import LinAlgError
from .core.public import name_functions as _name_functions
from .ops.factorisations import (cholesky_ex, eig, eigvals, householder_product, inv_ex, lu, lu_factor, lu_factor_ex, lu_solve, matrix_exp, solve_ex, tensorinv,
                                 tensorsolve, vander)
from .ops.linalg import cholesky, det, eigh, eigvalsh, inv, lstsq, matrix_rank, pinv, qr, slogdet, solve, solve_triangular, svd, svdvals
from .ops.matrix_norms import cond, linalg_norm as norm, matrix_norm
from .ops.matmul import matmul
from .ops.norms import vector_norm
from .ops.products import linalg_cross as cross
from .ops.products import matrix_power, multi_dot
from .ops.symmetric import ldl_factor, ldl_factor_ex, ldl_solve

# Others than those of these names at the top level, which have other parameters.
det, inv, pinv = _twin_of(det, __name__, "det"), _twin_of(inv, __name__, "inv"), _twin_of(pinv, __name__, "pinv")
householder_product = _twin_of(householder_product, __name__, "householder_product")


def vecdot(x, y, *, dim=-1, out=None):
    """Sums of products along ``dim``.

    Example:
        >>> clnn.linalg.vecdot(clnn.tensor([1.0, 2.0]), clnn.tensor([3.0, 4.0]))
        tensor(11.)
    """
    for t in (x, y):
        if not isinstance(t, _Tensor):
            raise TypeError(f"linalg_vecdot(): arguments must be Tensors, not {type(t).__name__}")
    if not (x.dtype.differentiable and y.dtype.differentiable):
        raise RuntimeError(f"linalg.vecdot: Expected a floating point or complex tensor as input. Got {_type_name(x.dtype)}")
    if x.dtype is not y.dtype:
        raise RuntimeError(f"linalg.vecdot: Expected x and y to have the same dtype, but found x of type {_type_name(x.dtype)} and y of type "
                           f"{_type_name(y.dtype)} instead")
    r = (x.conj() * y).sum(dim)
    if out is not None and out.dtype is not r.dtype:
        raise RuntimeError(f"linalg.vecdot: Expected out of dtype{_type_name(r.dtype)} but found {_type_name(out.dtype)}")
    return _set_out(out, r, (x, y))


def diagonal(A, *, offset=0, dim1=-2, dim2=-1):
    """Diagonals of matrices.

    Example:
        >>> clnn.linalg.diagonal(clnn.tensor([[1, 2], [3, 4]]))
        tensor([1, 4])
    """
    return A.diagonal(offset, dim1, dim2)


_name_functions(globals(), __name__)
__all__ = ["LinAlgError", "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "householder_product", "inv",
           "inv_ex", "ldl_factor", "ldl_factor_ex", "ldl_solve", "lstsq", "lu", "lu_factor", "lu_factor_ex", "lu_solve", "matmul", "matrix_exp",
           "matrix_norm", "matrix_power", "matrix_rank", "multi_dot", "norm", "pinv", "qr", "slogdet", "solve", "solve_ex", "solve_triangular",
           "svd", "svdvals", "tensorinv", "tensorsolve", "vander", "vecdot", "vector_norm"]
