"""Adaptive softmax: a softmax over many classes that spends little on the rare ones."""
from collections import namedtuple

import clnn
from clnn.nn import functional as F

from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Split the classes, ordered by falling frequency, into a head and clusters; each cluster is one class of the head.

    Args:
        in_features: size of the input rows.
        n_classes: number of classes.
        cutoffs: first class of each cluster, rising.
        div_value: each cluster projects its input to a size smaller by this factor than the one before. Default: 4.
        head_bias: whether the head has a bias. Default: ``False``.

    Shape:
        input ``(N, in_features)`` or ``(in_features)``, target ``(N)`` or ``()``; returns ``output`` (the log-probability of each
        target) and ``loss`` (minus their mean).

    Source: Grave et al., Efficient softmax approximation for GPUs, 2016 (arXiv:1609.04309).

    Example::

        >>> nn.AdaptiveLogSoftmaxWithLoss(16, 100, [10, 50])(clnn.randn(5, 16), clnn.arange(5)).output.shape
        clnn.Size([5])
    """

    def __init__(self, in_features, n_classes, cutoffs, div_value=4.0, head_bias=False, device=None, dtype=None):
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if cutoffs != sorted(cutoffs) or min(cutoffs) <= 0 or max(cutoffs) > n_classes - 1 or len(set(cutoffs)) != len(cutoffs) \
                or any(int(c) != c for c in cutoffs):
            raise ValueError("cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value "
                             "is between 1 and n_classes-1")
        factory = {"device": device, "dtype": dtype}
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = cutoffs + [n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, **factory)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            hidden = int(in_features // div_value ** (i + 1))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(Sequential(Linear(in_features, hidden, bias=False, **factory), Linear(hidden, size, bias=False, **factory)))

    def reset_parameters(self):
        """Draw all weights anew."""
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input_, target_):
        batched = target_.dim() == 1
        if target_.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if batched and input_.shape[0] != target_.shape[0]:
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if input_.dim() != target_.dim() + 1:
            raise RuntimeError(f"{target_.dim()}D target tensor expects {target_.dim() + 1}D input tensors, but found inputs with "
                               f"size {input_.size()}")
        x = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        if target.numel() and (int(target.min()) < 0 or int(target.max()) >= self.n_classes):
            raise RuntimeError(f"Target values should be in [0, {self.n_classes - 1}], but values in range [{int(target.min())}, "
                               f"{int(target.max())}] were found. ")
        output = self._log_prob_of(x, target)
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _log_prob_of(self, x, target):
        """log p(target) of each row: the head's class, plus the place within its cluster."""
        head = F.log_softmax(self.head(x), dim=1)
        in_cluster = clnn.zeros_like(target)
        extra = clnn.zeros(target.shape, dtype=head.dtype, device=head.device)
        for i, cluster in enumerate(self.tail):
            low, high = self.cutoffs[i], self.cutoffs[i + 1]
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            local = F.log_softmax(cluster(x.index_select(0, rows)), dim=1)
            picked = local.gather(1, (target.index_select(0, rows) - low).unsqueeze(1)).squeeze(1)
            extra = extra.index_copy(0, rows, picked)
            in_cluster = in_cluster.index_fill(0, rows, self.shortlist_size + i)
        head_class = clnn.where(target < self.shortlist_size, target, in_cluster)
        return head.gather(1, head_class.unsqueeze(1)).squeeze(1) + extra

    def log_prob(self, input):
        """Log-probabilities of all classes: ``(N, n_classes)``."""
        return self._full_log_prob(input, self.head(input))

    def _full_log_prob(self, input, head_output):
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, :self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            place = self.shortlist_size + i
            parts.append(F.log_softmax(cluster(input), dim=1) + head[:, place:place + 1])
        return clnn.cat(parts, dim=1)

    def predict(self, input):
        """The most probable class of each row, without the clusters where the head already decides."""
        head_output = self.head(input)
        best = head_output.argmax(dim=1)
        rows = (best >= self.shortlist_size).nonzero().squeeze(1)
        if rows.numel() == 0:
            return best
        log_prob = self._full_log_prob(input.index_select(0, rows), head_output.index_select(0, rows))
        return best.index_copy(0, rows, log_prob.argmax(dim=1))
