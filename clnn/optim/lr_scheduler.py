"""Learning-rate schedules: how an optimizer's learning rates change from epoch to epoch.

Most are written as a recursion `lr -> next lr`, so that several of them can act on one optimizer.
"""

import math
import types
from bisect import bisect_right
from collections import Counter

from clnn.optim._lr_base import LRScheduler, _enable_get_lr_call, _warn_get_lr_called_within_step  # noqa: F401
from clnn.optim._schedules import ChainedScheduler, CyclicLR, OneCycleLR, ReduceLROnPlateau, SequentialLR

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use `scheduler.step()` to step the "
    "scheduler. During the deprecation, if epoch is different from None, the closed form is used instead of the new chainable form, where available. "
    "Please open an issue if you are unable to replicate your use case: https://github.com/pytorch/pytorch/issues/new/choose.")
__all__ = ["LRScheduler", "LambdaLR", "MultiplicativeLR", "StepLR", "MultiStepLR", "ConstantLR", "LinearLR", "ExponentialLR", "PolynomialLR",
           "CosineAnnealingLR", "SequentialLR", "ChainedScheduler", "ReduceLROnPlateau", "CyclicLR", "OneCycleLR",
           "CosineAnnealingWarmRestarts"]

for _kind in (LRScheduler, ChainedScheduler, CyclicLR, OneCycleLR, ReduceLROnPlateau, SequentialLR):
    _kind.__module__ = __name__

class _LRScheduler(LRScheduler):
    """The name of the base before PyTorch 2.0, from which much code still derives."""


class _Closed(LRScheduler):
    """A schedule that also has a formula for any epoch: `closed(base)`."""

    def _get_closed_form_lr(self):
        return [self.closed(base) for base in self.base_lrs]


class _Lambdas(LRScheduler):
    """What the two schedules by user functions share."""

    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        if isinstance(lr_lambda, (list, tuple)):
            if len(lr_lambda) != len(optimizer.param_groups):
                raise ValueError(f"Expected {len(optimizer.param_groups)} lr_lambdas, but got {len(lr_lambda)}")
            self.lr_lambdas = list(lr_lambda)
        else:
            if not callable(lr_lambda):
                raise TypeError(f"lr_lambda should be a function, but got {type(lr_lambda).__name__}")
            self.lr_lambdas = [lr_lambda] * len(optimizer.param_groups)
        super().__init__(optimizer, last_epoch)

    def state_dict(self):
        """Everything but the optimizer; of the functions only the attributes of callable objects can be stored."""
        state = {key: value for key, value in self.__dict__.items() if key not in ("optimizer", "lr_lambdas")}
        state["lr_lambdas"] = [None if isinstance(f, types.FunctionType) else dict(f.__dict__) for f in self.lr_lambdas]
        return state

    def load_state_dict(self, state_dict):
        """Restore what `state_dict()` returned."""
        self.__dict__.update({key: value for key, value in state_dict.items() if key != "lr_lambdas"})
        for f, saved in zip(self.lr_lambdas, state_dict["lr_lambdas"]):
            if saved is not None:
                f.__dict__.update(saved)


class LambdaLR(_Lambdas):
    """`lr = initial lr * lr_lambda(epoch)`.

    Args:
        optimizer, last_epoch: as for `LRScheduler`. lr_lambda: a function of the epoch, or a list with one a group.

    Example::

        >>> opt = clnn.optim.SGD([clnn.ones(2, requires_grad=True)], lr=1.0)
        >>> scheduler = clnn.optim.lr_scheduler.LambdaLR(opt, lambda epoch: 0.5 ** epoch)
        >>> opt.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.5]
    """

    def get_lr(self):
        """The learning rates of epoch `last_epoch`."""
        return [base * f(self.last_epoch) for f, base in zip(self.lr_lambdas, self.base_lrs, strict=True)]


class MultiplicativeLR(_Lambdas):
    """Multiply the learning rate by `lr_lambda(epoch)` in each epoch after the first.

    Args:
        optimizer, last_epoch: as for `LRScheduler`. lr_lambda: a function of the epoch, or a list with one a group.

    Example:
        >>> optimizer = clnn.optim.SGD([clnn.zeros(1)], lr=1.0)
        >>> schedule = clnn.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
        >>> for epoch in range(2):
        ...     optimizer.step()
        ...     schedule.step()
        ...     print(schedule.get_last_lr())
        [0.5]
        [0.25]
    """

    def get_lr(self):
        """The learning rates of epoch `last_epoch`."""
        if self._is_initial:
            return self._lrs()
        return [lr * f(self.last_epoch) for f, lr in zip(self.lr_lambdas, self._lrs(), strict=True)]


class StepLR(_Closed):
    """Multiply the learning rate by `gamma` every `step_size` epochs.

    Args:
        optimizer, last_epoch: as for `LRScheduler`. step_size: epochs between drops. gamma: factor of a drop.

    Example:
        >>> optimizer = clnn.optim.SGD([clnn.zeros(1)], lr=1.0)
        >>> schedule = clnn.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.1)
        >>> for epoch in range(3):
        ...     optimizer.step()
        ...     schedule.step()
        ...     print(schedule.get_last_lr())
        [1.0]
        [0.1]
        [0.1]
    """

    def __init__(self, optimizer, step_size, gamma=0.1, last_epoch=-1):
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def next_lr(self, lr, base):
        """The drop happens at multiples of `step_size`."""
        return lr if self.last_epoch == 0 or self.last_epoch % self.step_size else lr * self.gamma

    def closed(self, base):
        """The learning rate of epoch `last_epoch` from the initial one."""
        return base * self.gamma ** (self.last_epoch // self.step_size)


class MultiStepLR(_Closed):
    """Multiply the learning rate by `gamma` at the given epochs.

    Args:
        optimizer, last_epoch: as for `LRScheduler`. milestones: epochs of the drops. gamma: factor of a drop.

    Example:
        >>> optimizer = clnn.optim.SGD([clnn.zeros(1)], lr=1.0)
        >>> schedule = clnn.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[2], gamma=0.1)
        >>> for epoch in range(3):
        ...     optimizer.step()
        ...     schedule.step()
        ...     print(schedule.get_last_lr())
        [1.0]
        [0.1]
        [0.1]
    """

    def __init__(self, optimizer, milestones, gamma=0.1, last_epoch=-1):
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def next_lr(self, lr, base):
        """A milestone that is listed twice counts twice."""
        return lr * self.gamma ** self.milestones[self.last_epoch] if self.last_epoch in self.milestones else lr

    def closed(self, base):
        """The learning rate of epoch `last_epoch` from the initial one."""
        return base * self.gamma ** bisect_right(sorted(self.milestones.elements()), self.last_epoch)


class ConstantLR(_Closed):
    """Scale the learning rate by `factor` for the first `total_iters` epochs.

    Args:
        optimizer, last_epoch: as for `LRScheduler`. factor: between 0 and 1. total_iters: epochs it lasts.

    Example:
        >>> optimizer = clnn.optim.SGD([clnn.zeros(1)], lr=1.0)
        >>> schedule = clnn.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
        >>> for epoch in range(3):
        ...     optimizer.step()
        ...     schedule.step()
        ...     print(schedule.get_last_lr())
        [0.5]
        [1.0]
        [1.0]
    """

    def __init__(self, optimizer, factor=1.0 / 3, total_iters=5, last_epoch=-1):
        if not 0 <= factor <= 1.0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def next_lr(self, lr, base):
        """The factor comes in epoch 0 and goes in epoch `total_iters`."""
        if self.last_epoch == 0:
            return lr * self.factor
        return lr * (1.0 / self.factor) if self.last_epoch == self.total_iters else lr

    def closed(self, base):
        """The learning rate of epoch `last_epoch` from the initial one."""
        return base * (self.factor + (self.last_epoch >= self.total_iters) * (1 - self.factor))


class LinearLR(_Closed):
    """Let a factor of the learning rate run from `start_factor` to `end_factor` in `total_iters` epochs.

    Args:
        optimizer, last_epoch: as for `LRScheduler`. start_factor: in (0, 1]. end_factor: in [0, 1]. total_iters: epochs it takes.

    Example:
        >>> optimizer = clnn.optim.SGD([clnn.zeros(1)], lr=1.0)
        >>> schedule = clnn.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2)
        >>> for epoch in range(2):
        ...     optimizer.step()
        ...     schedule.step()
        ...     print(schedule.get_last_lr())
        [0.75]
        [1.0]
    """

    def __init__(self, optimizer, start_factor=1.0 / 3, end_factor=1.0, total_iters=5, last_epoch=-1):
        if not 0 < start_factor <= 1.0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if not 0 <= end_factor <= 1.0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def next_lr(self, lr, base):
        """The ratio of this epoch's factor to the last one's."""
        if self.last_epoch == 0:
            return lr * self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return lr
        rise = self.end_factor - self.start_factor
        return lr * (1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise))

    def closed(self, base):
        """The learning rate of epoch `last_epoch` from the initial one."""
        done = min(self.total_iters, self.last_epoch) / self.total_iters
        return base * (self.start_factor + (self.end_factor - self.start_factor) * done)


class ExponentialLR(_Closed):
    """Multiply the learning rate by `gamma` in each epoch.

    Args:
        optimizer, last_epoch: as for `LRScheduler`. gamma: the factor.

    Example:
        >>> optimizer = clnn.optim.SGD([clnn.zeros(1)], lr=1.0)
        >>> schedule = clnn.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> for epoch in range(2):
        ...     optimizer.step()
        ...     schedule.step()
        ...     print(schedule.get_last_lr())
        [0.5]
        [0.25]
    """

    def __init__(self, optimizer, gamma, last_epoch=-1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def next_lr(self, lr, base):
        """One more factor, except in the first epoch."""
        return lr if self._is_initial else lr * self.gamma

    def closed(self, base):
        """The learning rate of epoch `last_epoch` from the initial one."""
        return base * self.gamma ** self.last_epoch


class PolynomialLR(_Closed):
    r"""`lr = initial lr * (1 - epoch / total_iters) ** power`, and 0 after `total_iters` epochs.

    Args:
        optimizer, last_epoch: as for `LRScheduler`. total_iters: epochs until 0. power: the exponent.

    Example:
        >>> optimizer = clnn.optim.SGD([clnn.zeros(1)], lr=1.0)
        >>> schedule = clnn.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4)
        >>> for epoch in range(2):
        ...     optimizer.step()
        ...     schedule.step()
        ...     print(schedule.get_last_lr())
        [0.75]
        [0.5]
    """

    def __init__(self, optimizer, total_iters=5, power=1.0, last_epoch=-1):
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def next_lr(self, lr, base):
        """The ratio of this epoch's factor to the last one's."""
        if self._is_initial or self.last_epoch > self.total_iters:
            return lr
        now, before = 1.0 - self.last_epoch / self.total_iters, 1.0 - (self.last_epoch - 1) / self.total_iters
        return lr * (now / before) ** self.power

    def closed(self, base):
        """The learning rate of epoch `last_epoch` from the initial one."""
        return base * (1.0 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power


class CosineAnnealingLR(_Closed):
    r"""Half a cosine from the initial learning rate to `eta_min` in `T_max` epochs, and back again.

    :math:`\eta_t = \eta_{min} + \frac12 (\eta_0 - \eta_{min}) (1 + \cos(\pi t / T_{max}))`.

    Args:
        optimizer, last_epoch: as for `LRScheduler`. T_max: epochs of half a period. eta_min: smallest learning rate.

    Source: Loshchilov and Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts", 2017 (without the restarts).

    Example:
        >>> optimizer = clnn.optim.SGD([clnn.zeros(1)], lr=1.0)
        >>> schedule = clnn.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
        >>> for epoch in range(2):
        ...     optimizer.step()
        ...     schedule.step()
        ...     print(schedule.get_last_lr())
        [0.5]
        [0.0]
    """

    def __init__(self, optimizer, T_max, eta_min=0.0, last_epoch=-1):
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def next_lr(self, lr, base):
        """The recursion, restarted where its denominator vanishes."""
        t, period = self.last_epoch, self.T_max
        if self._is_initial:
            return lr
        if self._step_count == 1 and t > 0:
            return self.closed(base)
        if (t - 1 - period) % (2 * period) == 0:
            return lr + (base - self.eta_min) * (1 - math.cos(math.pi / period)) / 2
        ratio = (1 + math.cos(math.pi * t / period)) / (1 + math.cos(math.pi * (t - 1) / period))
        return ratio * (lr - self.eta_min) + self.eta_min

    def closed(self, base):
        """The learning rate of epoch `last_epoch` from the initial one."""
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2


class CosineAnnealingWarmRestarts(LRScheduler):
    r"""Half a cosine down to `eta_min`, again and again, each `T_mult` times as long as the one before.

    Args:
        optimizer, last_epoch: as for `LRScheduler`. T_0: epochs of the first descent. T_mult: growth, a whole number.
        eta_min: smallest learning rate.

    `step` also takes a fractional epoch, for steps within an epoch.

    Source: Loshchilov and Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts", 2017.

    Example:
        >>> optimizer = clnn.optim.SGD([clnn.zeros(1)], lr=1.0)
        >>> schedule = clnn.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
        >>> for epoch in range(3):
        ...     optimizer.step()
        ...     schedule.step()
        ...     print(schedule.get_last_lr())
        [0.5]
        [1.0]
        [0.5]
    """

    def __init__(self, optimizer, T_0, T_mult=1, eta_min=0.0, last_epoch=-1):
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0, self.T_i, self.T_mult, self.eta_min, self.T_cur = T_0, T_0, T_mult, eta_min, last_epoch
        super().__init__(optimizer, last_epoch)

    def next_lr(self, lr, base):
        """The learning rate at position `T_cur` of a descent of `T_i` epochs."""
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2

    def step(self, epoch=None):
        """Go to the next epoch, or to `epoch`, which may be fractional."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        else:
            self._find(epoch)
        self.last_epoch = math.floor(epoch)
        self._apply(self._ask_lr())

    def _find(self, epoch):
        """Set the descent that `epoch` falls into and the position in it."""
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult ** n - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult ** n
