"""What dense tensors answer about layouts, and how they become sparse: the work is done by ``clnn.sparse``."""
from __future__ import annotations

from .._tensor.tensor import Tensor
from ..core.layout import sparse_coo, sparse_csc, sparse_csr


def to_sparse(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
    """The elements that are not zero, as a sparse tensor.

    Args:
        sparse_dim: so many leading dimensions get places, the others are stored as dense blocks.
        layout: ``clnn.sparse_coo`` (the default), ``clnn.sparse_csr`` or ``clnn.sparse_csc``.

    Example:
        >>> clnn.tensor([[0., 2.], [0., 0.]]).to_sparse().indices()
        tensor([[0],
                [1]])
    """
    from ..sparse import _build
    return _build.to_sparse(self, sparse_dim, layout=layout, blocksize=blocksize, dense_dim=dense_dim)


def sparse_mask(self, mask):
    """The elements at the places of the sparse tensor ``mask``."""
    from ..sparse import _build
    return _build.sparse_mask(self, mask)


def _refused(name, kind):
    def method(self, *args, **kwargs):
        raise RuntimeError(f"{name} expected sparse {kind} layout but got Strided")
    method.__name__, method.__doc__ = name, "Of sparse tensors only."
    return method


for _kind, _names in {"coordinate tensor": "is_coalesced coalesce indices values _indices _values _nnz _coalesced_ sparse_resize_ sparse_resize_and_clear_",
                      "row compressed tensor": "crow_indices col_indices", "column compressed tensor": "ccol_indices row_indices"}.items():
    for _name in _names.split():
        setattr(Tensor, _name, _refused(_name, _kind))


def _smm(self, mat):
    """The product of a sparse tensor and a dense one as a sparse one, see :func:`clnn.smm`."""
    from .. import sparse
    return sparse.smm(self, mat)


def _sspaddmm(self, *args, beta=1, alpha=1):
    """``beta * self + alpha * mat1 @ mat2``, all but ``mat2`` sparse, see :func:`clnn.sspaddmm`."""
    from .. import sparse
    return sparse.sspaddmm(self, *args, beta=beta, alpha=alpha)


def _reinforce(self, reward):
    """What PyTorch had before distributions."""
    raise RuntimeError("reinforce() was removed.\nUse torch.distributions instead: m = Categorical(probs); action = m.sample(); "
                       "(-m.log_prob(action) * reward).backward()")


for _method in (_smm, _sspaddmm, _reinforce):
    _method.__name__ = _method.__qualname__ = _method.__name__[1:]
    setattr(Tensor, _method.__name__, _method)
Tensor.to_sparse, Tensor.sparse_mask = to_sparse, sparse_mask
Tensor.to_sparse_coo = lambda self: to_sparse(self)
Tensor.to_sparse_csr = lambda self, dense_dim=None: to_sparse(self, layout=sparse_csr)
Tensor.to_sparse_csc = lambda self, dense_dim=None: to_sparse(self, layout=sparse_csc)
Tensor.sparse_dim = lambda self: 0
Tensor.dense_dim = lambda self: len(self.shape)
Tensor.to_dense = lambda self, dtype=None, *, masked_grad=None: self if dtype is None else self.to(dtype)

__all__ = ["sparse_coo"]
