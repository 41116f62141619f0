"""Averaging the weights of a model over training: stochastic weight averaging and exponential moving averages."""

import itertools
import math
from copy import deepcopy

from clnn._tensor.grad_mode import no_grad
from clnn.nn.modules.module import Module
from clnn.optim._rule import number
from clnn.optim._lr_base import LRScheduler, per_group

__all__ = ["AveragedModel", "update_bn", "SWALR", "get_ema_multi_avg_fn", "get_swa_multi_avg_fn", "get_ema_avg_fn", "get_swa_avg_fn"]


def _check_decay(decay):
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_avg_fn(decay=0.999):
    """The averaging function `decay * average + (1 - decay) * new`, for one tensor.

    Example:
        >>> clnn.optim.swa_utils.get_ema_avg_fn(0.9)(clnn.zeros(1), clnn.ones(1), 1)
        tensor([0.1000])
    """
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param, current_param, num_averaged):
        return ema_param * decay + current_param * (1 - decay)
    return ema_update


def get_swa_avg_fn():
    """The averaging function of equal weights, for one tensor.

    Example:
        >>> clnn.optim.swa_utils.get_swa_avg_fn()(clnn.zeros(1), clnn.ones(1), 1)
        tensor([0.5000])
    """

    @no_grad()
    def swa_update(averaged_param, current_param, num_averaged):
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)
    return swa_update


def get_ema_multi_avg_fn(decay=0.999):
    """`decay * average + (1 - decay) * new`, in place for a list of tensors.

    Example:
        >>> a = [clnn.zeros(1)]
        >>> clnn.optim.swa_utils.get_ema_multi_avg_fn(0.9)(a, [clnn.ones(1)], 1)
        >>> a
        [tensor([0.1000])]
    """
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param_list, current_param_list, num_averaged):
        for average, new in zip(ema_param_list, current_param_list):
            average.copy_(average + (new - average) * (1 - decay) if average.dtype.differentiable else average * decay + new * (1 - decay))
    return ema_update


def get_swa_multi_avg_fn():
    """The average of equal weights, in place for a list of tensors.

    Example:
        >>> a = [clnn.zeros(1)]
        >>> clnn.optim.swa_utils.get_swa_multi_avg_fn()(a, [clnn.ones(1)], 1)
        >>> a
        [tensor([0.5000])]
    """

    @no_grad()
    def swa_update(averaged_param_list, current_param_list, num_averaged):
        count = float(number(num_averaged)) + 1
        for average, new in zip(averaged_param_list, current_param_list):
            average.copy_(average + (new - average) / count)
    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages over training.

    Args:
        model: the model to follow. device: where the copy lives.
        avg_fn: `(average, new, number of models averaged) -> average`, for one tensor.
        multi_avg_fn: the same in place, for lists of tensors. Without either, all models count the same.
        use_buffers: average the buffers too, instead of copying their last values.

    Example::

        >>> from clnn.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
        >>> model = clnn.nn.Linear(3, 2)
        >>> ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.999))
        >>> ema.update_parameters(model)  # after each step of the optimizer
        >>> ema(clnn.ones(1, 3)).shape
        clnn.Size([1, 2])

    Source: Izmailov et al., "Averaging Weights Leads to Wider Optima and Better Generalization", 2018.
    """

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        import clnn
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", clnn.tensor(0, dtype=clnn.int64, device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args, **kwargs):
        """The averaged model's output."""
        return self.module(*args, **kwargs)

    def _tensors(self, model):
        return list(itertools.chain(model.parameters(), model.buffers()) if self.use_buffers else model.parameters())

    def update_parameters(self, model):
        """Take the present parameters of `model` into the average."""
        averages, news = self._tensors(self.module), self._tensors(model)
        news = [new.detach().to(average.device) for average, new in zip(averages, news)]
        count = int(self.n_averaged.item())
        with no_grad():
            if count == 0:
                for average, new in zip(averages, news):
                    average.detach().copy_(new)
            elif self.multi_avg_fn is not None or self.avg_fn is None:
                (self.multi_avg_fn or get_swa_multi_avg_fn())([a.detach() for a in averages], news, self.n_averaged)
            else:
                for average, new in zip(averages, news):
                    average.detach().copy_(self.avg_fn(average.detach(), new, self.n_averaged.to(average.device)))
            if not self.use_buffers:
                for average, new in zip(self.module.buffers(), model.buffers()):
                    average.detach().copy_(new.detach().to(average.device))
            self.n_averaged.add_(1)


@no_grad()
def update_bn(loader, model, device=None):
    """Recompute the running statistics of all batch-norm layers by one pass over data.

    Args:
        loader: gives batches, or lists and tuples whose first entry is the batch. model: the model. device: where batches go first.

    Example:
        >>> net = nn.BatchNorm1d(1)
        >>> clnn.optim.swa_utils.update_bn([clnn.tensor([[1.0], [3.0]])], net)
        >>> net.running_mean
        tensor([2.])
    """
    from clnn.nn.modules.batchnorm import _BatchNorm
    momenta = {}
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.reset_running_stats()
            momenta[module] = module.momentum
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.momentum = None  # an average of equal weights
    for batch in loader:
        if isinstance(batch, (list, tuple)):
            batch = batch[0]
        model(batch.to(device) if device is not None else batch)
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Move the learning rate to `swa_lr` within `anneal_epochs`, and keep it there.

    Args:
        optimizer, last_epoch: as for `LRScheduler`. swa_lr: the final learning rate, one or a list with one a group.
        anneal_epochs: epochs of the transition. anneal_strategy: "cos" or "linear".

    Example:
        >>> optimizer = clnn.optim.SGD([clnn.zeros(1)], lr=1.0)
        >>> schedule = clnn.optim.swa_utils.SWALR(optimizer, swa_lr=0.5, anneal_epochs=1)
        >>> optimizer.step()
        >>> schedule.step()
        >>> schedule.get_last_lr()
        [0.5]
    """

    def __init__(self, optimizer, swa_lr, anneal_epochs=10, anneal_strategy="cos", last_epoch=-1):
        for group, lr in zip(optimizer.param_groups, per_group("swa_lr", optimizer, swa_lr)):
            group["swa_lr"] = lr
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, t):
        t = max(0, min(1, t))
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def get_lr(self):
        """The learning rates of epoch `last_epoch`: mixtures of where each group came from and `swa_lr`."""
        epochs = max(1, self.anneal_epochs)
        step = self._step_count - 1 if self.anneal_epochs else max(1, self._step_count - 1)
        before, now = self._share(max(0, min(1, (step - 1) / epochs))), self._share(max(0, min(1, step / epochs)))
        out = []
        for group, lr in zip(self.optimizer.param_groups, self._lrs()):
            start = group["swa_lr"] if before == 1 else (lr - before * group["swa_lr"]) / (1 - before)
            out.append(group["swa_lr"] * now + start * (1 - now))
        return out
