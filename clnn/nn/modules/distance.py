"""Distances between rows."""
from clnn.nn import functional as F

from ._chain import parted
from ._declare import declare
from .module import Module

__all__ = ["PairwiseDistance", "CosineSimilarity"]


@declare
class PairwiseDistance(Module):
    """``||x1 - x2 + eps||_p`` of the rows of two ``(N, D)`` or ``(D)`` inputs; output ``(N)``, or ``(N, 1)`` with *keepdim*.

    Example::

        >>> nn.PairwiseDistance()(clnn.tensor([[3., 0.]]), clnn.tensor([[0., 4.]]))
        tensor([5.])
    """

    p: float = 2.0
    eps: float = 1e-6
    keepdim: bool = False
    _module_repr_fields = ""

    def forward(self, x1, x2):
        return F.pairwise_distance(x1, x2, self.p, self.eps, self.keepdim)


@declare
@parted(settings="dim eps")
class CosineSimilarity(Module):
    """``x1 . x2 / (max(||x1||, eps) max(||x2||, eps))`` along *dim*.

    Example::

        >>> nn.CosineSimilarity(dim=0)(clnn.tensor([1., 0.]), clnn.tensor([2., 0.]))
        tensor(1.)
    """

    dim: int = 1
    eps: float = 1e-8
    _module_repr_fields = ""

    def forward(self, x1, x2):
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
