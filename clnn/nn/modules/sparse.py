"""Tables of vectors that are looked up by index."""
import clnn
from clnn.nn import functional as F
from clnn.nn import init
from clnn.nn.parameter import Parameter

from ._chain import known
from .module import Module

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    """The weight of both layers: ``(num_embeddings, embedding_dim)``, drawn from N(0, 1), with an optional row of zeros."""

    def _init_table(self, num_embeddings, embedding_dim, padding_idx, weight, freeze, device, dtype):
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError("padding_idx must be within num_embeddings" if type(self) is EmbeddingBag else
                                     "Padding_idx must be within num_embeddings")
            padding_idx %= num_embeddings
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_idx
        if weight is None:
            self.weight = Parameter(clnn.empty((num_embeddings, embedding_dim), device=device, dtype=dtype), requires_grad=not freeze)
            self.reset_parameters()
            return
        if list(weight.shape) != [num_embeddings, embedding_dim]:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        self.weight = Parameter(weight, requires_grad=not freeze)

    def reset_parameters(self):
        """Draw the table anew; the row of ``padding_idx`` is zero."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self):
        if self.padding_idx is not None:
            with clnn.no_grad():
                self.weight[self.padding_idx].fill_(0)


@known("weight", "padding_idx max_norm norm_type scale_grad_by_freq sparse")
class Embedding(_Table):
    """Look up a row of the weight for each index.

    Args:
        num_embeddings: number of rows.
        embedding_dim: size E of each row.
        padding_idx: a row that starts as zeros and gets no gradient. Default: ``None``.
        max_norm: rows that are looked up are first scaled down, in place, to this norm. Default: ``None``.
        norm_type: p of that norm. Default: 2.
        scale_grad_by_freq: divide the gradient of a row by how often it was used in the batch. Default: ``False``.
        sparse: the gradient of the weight is a sparse tensor of the rows that were looked up, for :class:`clnn.optim.SparseAdam`,
            ``SGD`` or ``Adagrad``. Default: ``False``.

    Shape:
        input ``(*)`` of integers, output ``(*, E)``.

    Example::

        >>> nn.Embedding(10, 3)(clnn.tensor([[1, 2], [4, 3]])).shape
        clnn.Size([2, 2, 3])
    """

    def __init__(self, num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False,
                 sparse=False, _weight=None, _freeze=False, device=None, dtype=None):
        super().__init__()
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        self._init_table(num_embeddings, embedding_dim, padding_idx, _weight, _freeze, device, dtype)

    def forward(self, input):
        return F.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse)

    def extra_repr(self):
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        for name, usual in (("padding_idx", None), ("max_norm", None), ("norm_type", 2), ("scale_grad_by_freq", False), ("sparse", False)):
            if getattr(self, name) != usual:
                parts.append(f"{name}={getattr(self, name)}")
        return ", ".join(parts)

    @classmethod
    def from_pretrained(cls, embeddings, freeze=True, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False,
                        sparse=False):
        """A layer with the given ``(num_embeddings, E)`` table, which is not trained unless ``freeze=False``.

        Example::

            >>> nn.Embedding.from_pretrained(clnn.tensor([[1., 2.], [3., 4.]]))(clnn.tensor([1]))
            tensor([[3., 4.]])
        """
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, cols = embeddings.shape
        return cls(rows, cols, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, _weight=embeddings, _freeze=freeze)


class EmbeddingBag(_Table):
    """Sum, mean or maximum of the rows of each bag of indices, without the rows in between.

    Args:
        num_embeddings, embedding_dim, max_norm, norm_type, scale_grad_by_freq, sparse: as in :class:`Embedding`.
        mode: ``"sum"``, ``"mean"`` or ``"max"``. Default: ``"mean"``.
        include_last_offset: *offsets* has one more entry, the end of the last bag. Default: ``False``.
        padding_idx: a row that is left out of the bags. Default: ``None``.

    Shape:
        input ``(B, N)``: B bags of N indices; or ``(N)`` with *offsets* ``(B)``, the start of each bag. Output ``(B, E)``.
        *per_sample_weights*, shaped like the input, scale the rows (mode ``"sum"``).

    Example::

        >>> nn.EmbeddingBag(10, 3, mode="sum")(clnn.tensor([1, 2, 4, 5]), clnn.tensor([0, 2])).shape
        clnn.Size([2, 3])
    """

    def __init__(self, num_embeddings, embedding_dim, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, mode="mean", sparse=False,
                 _weight=None, include_last_offset=False, padding_idx=None, device=None, dtype=None):
        super().__init__()
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset
        self._init_table(num_embeddings, embedding_dim, padding_idx, _weight, False, device, dtype)

    def forward(self, input, offsets=None, per_sample_weights=None):
        return F.embedding_bag(input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode,
                               self.sparse, per_sample_weights, self.include_last_offset, self.padding_idx)

    def extra_repr(self):
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        for name, usual in (("max_norm", None), ("norm_type", 2), ("scale_grad_by_freq", False)):
            if getattr(self, name) != usual:
                parts.append(f"{name}={getattr(self, name)}")
        parts.append(f"mode={self.mode!r}")
        if self.padding_idx is not None:
            parts.append(f"padding_idx={self.padding_idx}")
        return ", ".join(parts)

    @classmethod
    def from_pretrained(cls, embeddings, freeze=True, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, mode="mean", sparse=False,
                        include_last_offset=False, padding_idx=None):
        """A layer with the given ``(num_embeddings, E)`` table, which is not trained unless ``freeze=False``."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, cols = embeddings.shape
        bag = cls(rows, cols, max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings, include_last_offset, padding_idx)
        bag.weight.requires_grad = not freeze
        return bag
