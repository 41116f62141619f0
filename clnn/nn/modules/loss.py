"""Loss functions. x is the input (what the model says), y the target; the result is a scalar unless ``reduction="none"``."""
import math
from typing import NamedTuple

from clnn.core.warn import warn
from clnn.nn import functional as F

from ._declare import declare
from .distance import PairwiseDistance
from .linear import Linear
from .module import Module

__all__ = ["L1Loss", "NLLLoss", "NLLLoss2d", "PoissonNLLLoss", "GaussianNLLLoss", "KLDivLoss", "MSELoss", "BCELoss", "BCEWithLogitsLoss",
           "HingeEmbeddingLoss", "MultiLabelMarginLoss", "SmoothL1Loss", "HuberLoss", "SoftMarginLoss", "CrossEntropyLoss",
           "MultiLabelSoftMarginLoss", "CosineEmbeddingLoss", "MarginRankingLoss", "MultiMarginLoss", "TripletMarginLoss",
           "TripletMarginWithDistanceLoss", "CTCLoss", "LinearCrossEntropyLoss", "LinearCrossEntropyOptions"]


class _Loss(Module):
    """Common part: ``reduction`` is ``"mean"``, ``"sum"`` or ``"none"``; ``size_average`` and ``reduce`` are its old spelling."""

    _no_repr = True
    _tensors = ()  # fields that are buffers: they move with the module

    def __init__(self, size_average=None, reduce=None, reduction="mean", **tensors):
        super().__init__()      # for losses of programs' own: those here are declared
        self.__dict__.update(tensors, size_average=size_average, reduce=reduce, reduction=reduction)
        self._post_init()

    def _post_init(self):
        own = self.__dict__
        size_average, reduce = own.pop("size_average", None), own.pop("reduce", None)
        if size_average is not None or reduce is not None:
            mean, whole = size_average is None or size_average, reduce is None or reduce
            self.reduction = ("mean" if mean else "sum") if whole else "none"
            warn(f"size_average and reduce args will be deprecated, please use reduction='{self.reduction}' instead.")
        for name in self._tensors:
            self.register_buffer(name, own.pop(name))


class _WeightedLoss(_Loss):
    _tensors = ("weight",)

    def __init__(self, weight=None, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction, weight=weight)


@declare
class L1Loss(_Loss):
    """``mean |x - y|``.

    Example::

        >>> nn.L1Loss()(clnn.tensor([1., 3.]), clnn.tensor([1., 1.]))
        tensor(1.)
    """

    size_average: bool = None
    reduce: bool = None
    reduction: str = "mean"

    def forward(self, input, target):
        return F.l1_loss(input, target, reduction=self.reduction)


@declare
class NLLLoss(_WeightedLoss):
    """``-w[y] x[y]`` for log-probabilities x ``(N, C, *)`` or ``(C)`` and classes y ``(N, *)`` or ``()``.

    The mean divides by the sum of the weights used; targets equal to *ignore_index* do not count.

    Example::

        >>> nn.NLLLoss()(clnn.tensor([[-1., -2.], [-3., -4.]]), clnn.tensor([0, 1]))
        tensor(2.5000)
    """

    weight: object = None
    size_average: bool = None
    ignore_index: int = -100
    reduce: bool = None
    reduction: str = "mean"

    def forward(self, input, target):
        return F.nll_loss(input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class NLLLoss2d(NLLLoss):
    """Old name of :class:`NLLLoss`."""

    def __init__(self, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
        warn("`NLLLoss2d` has been deprecated. Please use `NLLLoss` instead as a drop-in replacement and see https://pytorch.org/docs/main/nn.html#torch.nn.NLLLoss "
             "for more details.", FutureWarning)
        super().__init__(weight, size_average, ignore_index, reduce, reduction)


@declare
class PoissonNLLLoss(_Loss):
    """``exp(x) - y x`` (or ``x - y log(x + eps)`` with ``log_input=False``), plus Stirling's term for ``y > 1`` with ``full=True``.

    Example::

        >>> nn.PoissonNLLLoss()(clnn.zeros(2), clnn.ones(2))
        tensor(1.)
    """

    log_input: bool = True
    full: bool = False
    size_average: bool = None
    eps: float = 1e-8
    reduce: bool = None
    reduction: str = "mean"

    def forward(self, log_input, target):
        return F.poisson_nll_loss(log_input, target, log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction)


@declare
class GaussianNLLLoss(_Loss):
    """``(log max(var, eps) + (x - y)^2 / max(var, eps)) / 2``, plus ``log(2 pi) / 2`` with ``full=True``.

    Source: Nix, Weigend, Estimating the mean and variance of the target probability distribution, 1994.

    Example::

        >>> nn.GaussianNLLLoss()(clnn.zeros(2), clnn.ones(2), clnn.ones(2))
        tensor(0.5000)
    """

    _keyword_only = True
    full: bool = False
    eps: float = 1e-6
    reduction: str = "mean"

    def forward(self, input, target, var):
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


@declare
class KLDivLoss(_Loss):
    """``y (log y - x)`` for log-probabilities x; y too is a logarithm with ``log_target=True``. ``"batchmean"`` divides by N.

    Example::

        >>> nn.KLDivLoss(reduction='sum')(clnn.tensor([0.25, 0.75]).log(), clnn.tensor([0.5, 0.5]))
        tensor(0.1438)
    """

    size_average: bool = None
    reduce: bool = None
    reduction: str = "mean"
    log_target: bool = False

    def forward(self, input, target):
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


@declare
class MSELoss(_Loss):
    """``mean (x - y)^2``.

    Example::

        >>> nn.MSELoss()(clnn.tensor([1., 3.]), clnn.tensor([1., 1.]))
        tensor(2.)
    """

    size_average: bool = None
    reduce: bool = None
    reduction: str = "mean"

    def forward(self, input, target):
        return F.mse_loss(input, target, reduction=self.reduction)


@declare
class BCELoss(_WeightedLoss):
    """``-w (y log x + (1 - y) log(1 - x))`` for probabilities x; the logarithms are not below -100.

    Example::

        >>> nn.BCELoss()(clnn.tensor([0.5, 0.5]), clnn.tensor([1., 0.]))
        tensor(0.6931)
    """

    weight: object = None
    size_average: bool = None
    reduce: bool = None
    reduction: str = "mean"

    def forward(self, input, target):
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


@declare
class BCEWithLogitsLoss(_Loss):
    """:class:`BCELoss` of ``sigmoid(x)``, computed without overflow; *pos_weight* scales the terms with ``y = 1``.

    Example::

        >>> nn.BCEWithLogitsLoss()(clnn.zeros(2), clnn.ones(2))
        tensor(0.6931)
    """

    _tensors = ("weight", "pos_weight")
    weight: object = None
    size_average: bool = None
    reduce: bool = None
    reduction: str = "mean"
    pos_weight: object = None

    def forward(self, input, target):
        return F.binary_cross_entropy_with_logits(input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction)


@declare
class HingeEmbeddingLoss(_Loss):
    """``x`` where ``y = 1``, ``max(0, margin - x)`` where ``y = -1``.

    Example::

        >>> nn.HingeEmbeddingLoss()(clnn.tensor([0.5, 0.2]), clnn.tensor([1., -1.]))
        tensor(0.6500)
    """

    margin: float = 1.0
    size_average: bool = None
    reduce: bool = None
    reduction: str = "mean"

    def forward(self, input, target):
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


@declare
class MultiLabelMarginLoss(_Loss):
    """``sum_ij max(0, 1 - (x[y_j] - x[i])) / C`` over the labels ``y_j`` (until the first -1) and the other classes i.

    Example::

        >>> nn.MultiLabelMarginLoss()(clnn.tensor([[0.1, 0.2, 0.4, 0.8]]), clnn.tensor([[3, 0, -1, 1]]))
        tensor(0.8500)
    """

    size_average: bool = None
    reduce: bool = None
    reduction: str = "mean"

    def forward(self, input, target):
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


@declare
class SmoothL1Loss(_Loss):
    """``(x - y)^2 / (2 beta)`` where ``|x - y| < beta``, else ``|x - y| - beta / 2``. Source: Girshick, 2015 (arXiv:1504.08083).

    Example::

        >>> nn.SmoothL1Loss()(clnn.tensor([0., 3.]), clnn.tensor([1., 1.]))
        tensor(1.)
    """

    size_average: bool = None
    reduce: bool = None
    reduction: str = "mean"
    beta: float = 1.0

    def forward(self, input, target):
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


@declare
class HuberLoss(_Loss):
    """``(x - y)^2 / 2`` where ``|x - y| <= delta``, else ``delta (|x - y| - delta / 2)``.

    Example::

        >>> nn.HuberLoss()(clnn.tensor([0., 3.]), clnn.tensor([1., 1.]))
        tensor(1.)
    """

    reduction: str = "mean"
    delta: float = 1.0

    def _post_init(self):
        super()._post_init()
        if not isinstance(self.delta, (int, float)):
            raise TypeError(f"delta must be a float or int, got: {type(self.delta)}")

    def forward(self, input, target):
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


@declare
class SoftMarginLoss(_Loss):
    """``log(1 + exp(-y x))`` for ``y`` of 1 or -1.

    Example::

        >>> nn.SoftMarginLoss()(clnn.zeros(2), clnn.ones(2))
        tensor(0.6931)
    """

    size_average: bool = None
    reduce: bool = None
    reduction: str = "mean"

    def forward(self, input, target):
        return F.soft_margin_loss(input, target, reduction=self.reduction)


@declare
class CrossEntropyLoss(_WeightedLoss):
    """``-w[y] log softmax(x)[y]`` for logits x ``(N, C, *)`` or ``(C)``.

    Args:
        weight: weight w of each class ``(C)``. Default: ones.
        ignore_index: a target that does not count. Default: -100.
        reduction: the mean divides by the sum of the weights used. Default: ``"mean"``.
        label_smoothing: share of the target's probability that is spread over all classes. Default: 0.

    Shape:
        target ``(N, *)`` or ``()`` with class numbers, or probabilities shaped like x.

    Example::

        >>> nn.CrossEntropyLoss()(clnn.zeros(1, 4), clnn.tensor([2]))
        tensor(1.3863)
    """

    weight: object = None
    size_average: bool = None
    ignore_index: int = -100
    reduce: bool = None
    reduction: str = "mean"
    label_smoothing: float = 0.0

    def forward(self, input, target):
        return F.cross_entropy(input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction,
                               label_smoothing=self.label_smoothing)


@declare
class MultiLabelSoftMarginLoss(_WeightedLoss):
    """Mean over the classes of the binary cross entropy of logits x ``(N, C)`` and labels y of 0 and 1.

    Example::

        >>> nn.MultiLabelSoftMarginLoss()(clnn.zeros(1, 2), clnn.ones(1, 2))
        tensor(0.6931)
    """

    weight: object = None
    size_average: bool = None
    reduce: bool = None
    reduction: str = "mean"

    def forward(self, input, target):
        return F.multilabel_soft_margin_loss(input, target, weight=self.weight, reduction=self.reduction)


@declare
class CosineEmbeddingLoss(_Loss):
    """``1 - cos(x1, x2)`` where ``y = 1``, ``max(0, cos(x1, x2) - margin)`` where ``y = -1``.

    Example::

        >>> nn.CosineEmbeddingLoss()(clnn.tensor([[1., 0.]]), clnn.tensor([[0., 1.]]), clnn.tensor([1.]))
        tensor(1.)
    """

    margin: float = 0.0
    size_average: bool = None
    reduce: bool = None
    reduction: str = "mean"

    def forward(self, input1, input2, target):
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


@declare
class MarginRankingLoss(_Loss):
    """``max(0, -y (x1 - x2) + margin)``: y = 1 wants x1 to rank higher, y = -1 x2.

    Example::

        >>> nn.MarginRankingLoss()(clnn.tensor([1., 2.]), clnn.tensor([3., 1.]), clnn.tensor([1., 1.]))
        tensor(1.)
    """

    margin: float = 0.0
    size_average: bool = None
    reduce: bool = None
    reduction: str = "mean"

    def forward(self, input1, input2, target):
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


@declare
class MultiMarginLoss(_WeightedLoss):
    """``sum_i max(0, margin - x[y] + x[i])^p / C`` over the classes ``i != y``.

    Example::

        >>> nn.MultiMarginLoss()(clnn.tensor([[0.1, 0.2, 0.4, 0.8]]), clnn.tensor([3]))
        tensor(0.3250)
    """

    p: int = 1
    margin: float = 1.0
    weight: object = None
    size_average: bool = None
    reduce: bool = None
    reduction: str = "mean"

    def _post_init(self):
        super()._post_init()
        if self.p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if self.weight is not None and self.weight.dim() != 1:
            raise ValueError(f"MultiMarginLoss: expected weight to be None or 1D tensor, got {self.weight.dim()}D instead")

    def forward(self, input, target):
        return F.multi_margin_loss(input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction)


@declare
class TripletMarginLoss(_Loss):
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)`` with the p-norm distance d of rows.

    Source: Balntas et al., Learning shallow convolutional feature descriptors with triplet losses, 2016.

    Example::

        >>> nn.TripletMarginLoss()(clnn.zeros(1, 2), clnn.zeros(1, 2), clnn.tensor([[0.5, 0.]]))
        tensor(0.5000)
    """

    margin: float = 1.0
    p: float = 2.0
    eps: float = 1e-6
    swap: bool = False
    size_average: bool = None
    reduce: bool = None
    reduction: str = "mean"

    def _post_init(self):
        super()._post_init()
        if self.margin <= 0:
            raise ValueError(f"TripletMarginLoss: expected margin to be greater than 0, got {self.margin} instead")

    def forward(self, anchor, positive, negative):
        return F.triplet_margin_loss(anchor, positive, negative, margin=self.margin, p=self.p, eps=self.eps, swap=self.swap,
                                     reduction=self.reduction)


@declare
class TripletMarginWithDistanceLoss(_Loss):
    """:class:`TripletMarginLoss` with any distance function; the 2-norm by default.

    Example::

        >>> nn.TripletMarginWithDistanceLoss()(clnn.zeros(1, 2), clnn.zeros(1, 2), clnn.tensor([[0.5, 0.]]))
        tensor(0.5000)
    """

    _keyword_only = True
    distance_function: object = None
    margin: float = 1.0
    swap: bool = False
    reduction: str = "mean"

    def _post_init(self):
        super()._post_init()
        if self.margin <= 0:
            raise ValueError(f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {self.margin} instead")
        if self.distance_function is None:
            self.__dict__.pop("distance_function")
            self.distance_function = PairwiseDistance()

    def forward(self, anchor, positive, negative):
        return F.triplet_margin_with_distance_loss(anchor, positive, negative, distance_function=self.distance_function,
                                                   margin=self.margin, swap=self.swap, reduction=self.reduction)


@declare
class CTCLoss(_Loss):
    """``-log p(y | x)`` summed over all alignments of the label sequence y with the log-probabilities x.

    Args:
        blank: class number of the blank. Default: 0.
        reduction: the mean divides each loss by its target length first. Default: ``"mean"``.
        zero_infinity: set losses of targets that are too long for their input to zero. Default: ``False``.

    Shape:
        log_probs ``(T, N, C)`` or ``(T, C)``; targets ``(N, S)`` or all joined ``(sum of lengths)``; input_lengths and
        target_lengths ``(N)``.

    Source: Graves et al., Connectionist Temporal Classification, ICML 2006.

    Example::

        >>> nn.CTCLoss()(clnn.zeros(3, 1, 2).log_softmax(2), clnn.tensor([[1]]), clnn.tensor([3]), clnn.tensor([1]))
        tensor(0.2877)
    """

    blank: int = 0
    reduction: str = "mean"
    zero_infinity: bool = False

    def forward(self, log_probs, targets, input_lengths, target_lengths):
        return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity)


class LinearCrossEntropyOptions(NamedTuple):
    """How PyTorch's :class:`LinearCrossEntropyLoss` saves memory: accepted, as clnn computes the logits as a whole.

    Example::

        >>> nn.LinearCrossEntropyOptions(batch_chunk_size=64).batch_chunk_size
        64
    """

    allow_retain_graph: bool = False
    batch_chunk_size: object = None
    chunking_method: object = "auto"
    acc_policy: str = "auto"
    acc_dtype: object = None


class LinearCrossEntropyLoss(Module):
    """A linear layer to logits and their :class:`CrossEntropyLoss` in one module.

    Args:
        in_features: size of each sample. num_classes: number of classes C.
        out_features: further dimensions ``(d1, ..., dK)`` of the logits ``(N, C, d1, ..., dK)``. Default: none.
        bias: whether the linear layer has a bias. Default: ``False``.
        weight, reduction, ignore_index, label_smoothing: as for :class:`CrossEntropyLoss`.
        options: accepted.

    Shape:
        x ``(N, in_features)`` or ``(in_features)``, target as for :class:`CrossEntropyLoss`.

    Example::

        >>> loss = nn.LinearCrossEntropyLoss(3, 4)
        >>> loss(clnn.zeros(2, 3), clnn.tensor([1, 0]))
        tensor(1.3863, grad_fn=<NllLossBackward0>)
    """

    def __init__(self, in_features, num_classes, *, out_features=(), bias=False, device=None, dtype=None, reduction="mean", weight=None, ignore_index=None,
                 label_smoothing=0.0, options=None):
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__()
        self.register_buffer("weight", weight)
        self.num_classes, self.out_features, self.reduction = num_classes, tuple(out_features), reduction
        self.ignore_index, self.label_smoothing, self.options = ignore_index, label_smoothing, options
        self.linear = Linear(in_features, math.prod(out_features, start=num_classes), bias=bias, device=device, dtype=dtype)

    def forward(self, input, target):
        shape, bias = (self.num_classes, *self.out_features), self.linear.bias
        return F.linear_cross_entropy(input, self.linear.weight.reshape(*shape, self.linear.in_features), target,
                                      linear_bias=bias if bias is None else bias.reshape(shape), weight=self.weight, reduction=self.reduction,
                                      ignore_index=self.ignore_index, label_smoothing=self.label_smoothing, options=self.options)

    def extra_repr(self):
        return (f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
                f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
                f"label_smoothing={self.label_smoothing}, options={self.options}")
