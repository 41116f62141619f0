"""Batch normalisation."""
import clnn
from clnn._tensor.writing import write
from clnn.nn import functional as F
from clnn.nn import init
from clnn.nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter

from ._chain import KNOWN, InTraining, alone, known
from .lazy import LazyModuleMixin
from .module import Module

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm", "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d"]


class _NormBase(Module):
    """Parameters and running statistics of batch and instance normalisation."""

    _version = 2  # 2 added num_batches_tracked
    _module_repr_fields = "=num_features eps momentum affine bias! track_running_stats"
    _input_dims = None  # numbers of dimensions that forward accepts

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None, *,
                 bias=True):
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, Parameter(clnn.empty(num_features, device=device, dtype=dtype)) if wanted else None)
        self._register_statistics(lambda: clnn.zeros(num_features, device=device, dtype=dtype), device)
        self.reset_parameters()

    def _register_statistics(self, make, device):
        for name in ("running_mean", "running_var"):
            self.register_buffer(name, make() if self.track_running_stats else None)
        tracked = clnn.tensor(0, dtype=clnn.int64, device=device) if self.track_running_stats else None
        self.register_buffer("num_batches_tracked", tracked)

    def reset_running_stats(self):
        """Forget what was seen: mean 0, variance 1."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self):
        """Weight 1, bias 0, fresh statistics."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input):
        if input.dim() not in self._input_dims:
            raise ValueError(f"expected {' or '.join(f'{n}D' for n in self._input_dims)} input (got {input.dim()}D input)")

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
        version = local_metadata.get("version", None)
        key = prefix + "num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            own = self.num_batches_tracked
            state_dict[key] = own if own is not None and own.device.type != "meta" else clnn.tensor(0, dtype=clnn.int64)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class _BatchNorm(_NormBase):
    def _momentum_of_step(self):
        """The weight of this batch in the running statistics; counts the batch in training."""
        if not (self.training and self.track_running_stats):
            return 0.0 if self.momentum is None else self.momentum
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
        if self.momentum is None:  # a plain average over all batches
            return 1.0 / float(self.num_batches_tracked)
        return self.momentum

    def forward(self, input):
        if self.training and self.__class__ in KNOWN and input.__class__ is clnn.Tensor and _moves.takes(self):
            return alone(self, input)
        self._check_input_dim(input)
        momentum = self._momentum_of_step()
        use_batch = self.training or (self.running_mean is None and self.running_var is None)
        update = not self.training or self.track_running_stats
        return F.batch_norm(input, self.running_mean if update else None, self.running_var if update else None, self.weight, self.bias,
                            use_batch, momentum, self.eps)


class _Moves(InTraining):
    moves = 2

    def takes(self, module):
        return module.track_running_stats and module.momentum is not None and module.num_batches_tracked is not None \
            and module.running_mean is not None and module.running_var is not None

    def compute(self, module, input):
        module._check_input_dim(input)
        mean, var = module.running_mean._snapshot(), module.running_var._snapshot()
        return F.batch_norm(input, mean, var, module.weight, module.bias, True, module.momentum, module.eps), mean, var

    def keep(self, module, mean, var):
        write(module.running_mean, mean)
        write(module.running_var, var)
        module.num_batches_tracked.add_(1)


_moves = _Moves()


@known("weight bias running_mean running_var", "eps momentum track_running_stats", training=_moves)
class BatchNorm1d(_BatchNorm):
    """Batch normalisation of ``(N, C)`` or ``(N, C, L)`` inputs; see :class:`BatchNorm2d`.

    Example::

        >>> nn.BatchNorm1d(1)(clnn.tensor([[1.], [3.]])).detach()
        tensor([[-1.0000],
                [ 1.0000]])
    """

    _input_dims = (2, 3)


@known("weight bias running_mean running_var", "eps momentum track_running_stats", training=_moves)
class BatchNorm2d(_BatchNorm):
    """``y = (x - mean) / sqrt(var + eps) * weight + bias``, with mean and variance of each channel over the batch.

    In training the statistics are those of the batch (variance over the count), and the running statistics move by
    ``momentum`` towards them (variance over the count less one); in evaluation the running ones are used.

    Args:
        num_features: number of channels C.
        eps: added to the variance. Default: 1e-5.
        momentum: weight of the new batch; ``None`` averages over all batches. Default: 0.1.
        affine: whether weight and bias exist. Default: ``True``.
        bias: whether the bias exists. Default: ``True``.
        track_running_stats: whether running statistics exist; without them evaluation uses the batch too. Default: ``True``.

    Shape:
        input and output ``(N, C, H, W)``.

    Source: Ioffe, Szegedy, 2015 (arXiv:1502.03167).

    Example::

        >>> nn.BatchNorm2d(3)(clnn.randn(2, 3, 4, 4)).shape
        clnn.Size([2, 3, 4, 4])
    """

    _input_dims = (4,)


@known("weight bias running_mean running_var", "eps momentum track_running_stats", training=_moves)
class BatchNorm3d(_BatchNorm):
    """Batch normalisation of ``(N, C, D, H, W)`` inputs; see :class:`BatchNorm2d`.

    Example::

        >>> nn.BatchNorm3d(2)(clnn.randn(2, 2, 3, 3, 3)).shape
        clnn.Size([2, 2, 3, 3, 3])
    """

    _input_dims = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation of inputs with at least 2 dimensions; with one process it equals :class:`BatchNorm2d` and its kin.

    Example::

        >>> nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm2d(3))
        SyncBatchNorm(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    """

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, process_group=None, device=None,
                 dtype=None, *, bias=True):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input):
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None):
        """A copy of the tree in which every batch normalisation is a SyncBatchNorm with the same tensors."""
        result = module
        if isinstance(module, _BatchNorm) and not isinstance(module, SyncBatchNorm):
            result = cls(module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats, process_group,
                         bias=module.bias is not None)
            for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
                setattr(result, name, getattr(module, name))
            result.training = module.training
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result


class _LazyNormBase(LazyModuleMixin):
    """A normalisation without ``num_features``: the first input gives them."""

    def __init__(self, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None, *, bias=True):
        super().__init__(0, eps, momentum, False, False, device=device, dtype=dtype)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self._register_statistics(lambda: UninitializedBuffer(device=device, dtype=dtype), device)

    def reset_parameters(self):
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input):
        if not self.has_uninitialized_params():
            return
        self.num_features = self._channels_of(input)
        for tensor in (self.weight, self.bias, self.running_mean, self.running_var):
            if tensor is not None:
                tensor.materialize((self.num_features,))
        self.reset_parameters()

    def _channels_of(self, input):
        return input.shape[1]


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """A :class:`BatchNorm1d` that takes ``num_features`` from its first input.

    Example::

        >>> nn.LazyBatchNorm1d()(clnn.randn(4, 3)).shape
        clnn.Size([4, 3])
    """

    cls_to_become, _input_dims = BatchNorm1d, BatchNorm1d._input_dims


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """A :class:`BatchNorm2d` that takes ``num_features`` from its first input.

    Example::

        >>> nn.LazyBatchNorm2d()(clnn.randn(2, 3, 4, 4)).shape
        clnn.Size([2, 3, 4, 4])
    """

    cls_to_become, _input_dims = BatchNorm2d, BatchNorm2d._input_dims


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """A :class:`BatchNorm3d` that takes ``num_features`` from its first input.

    Example::

        >>> nn.LazyBatchNorm3d()(clnn.randn(2, 3, 2, 2, 2)).shape
        clnn.Size([2, 3, 2, 2, 2])
    """

    cls_to_become, _input_dims = BatchNorm3d, BatchNorm3d._input_dims
