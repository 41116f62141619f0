"""Schedules that combine others, follow a metric, or move the momentum too. Public as members of `lr_scheduler`."""

import math
import types
from bisect import bisect_right

from clnn.optim._rule import number
from clnn.optim._lr_base import LRScheduler, per_group, set_lr
from clnn.optim.optimizer import Optimizer


class _Combined(LRScheduler):
    """What the two combinations share: checks and nested state."""

    def _check(self, schedulers, optimizer):
        name = type(self).__name__
        if len(schedulers) < 1:
            raise ValueError(f"{name} expects at least one scheduler{' to be chained' * (name == 'ChainedScheduler')}, but got no scheduler.")
        optimizer = optimizer if optimizer is not None else getattr(schedulers[0], "optimizer", None)
        for i, s in enumerate(schedulers):
            if not hasattr(s, "optimizer"):
                raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
            if isinstance(s, ReduceLROnPlateau):
                raise ValueError(f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be specified when calling "
                                 f"`step`, but got one at index {i} in the given schedulers sequence.")
            if s.optimizer is not optimizer:
                raise ValueError(f"{name} expects all schedulers to belong to the same optimizer, but got scheduler {type(s).__name__} at index {i} has "
                                 f"{s.optimizer}, which is different from {type(optimizer).__name__}.")
        return optimizer

    def state_dict(self):
        """Everything but the optimizer; `_schedulers` holds the states of the parts."""
        state = {key: value for key, value in self.__dict__.items() if key not in ("optimizer", "_schedulers")}
        state["_schedulers"] = [s.state_dict() for s in self._schedulers]
        return state

    def load_state_dict(self, state_dict):
        """Restore what `state_dict()` returned."""
        self.__dict__.update({key: value for key, value in state_dict.items() if key != "_schedulers"})
        for s, saved in zip(self._schedulers, state_dict["_schedulers"]):
            s.load_state_dict(saved)


class SequentialLR(_Combined):
    """One schedule after the other.

    Args:
        optimizer: the optimizer of all of them. schedulers: list of schedules.
        milestones: the epochs at which the second, third... begins, each at its own epoch 0.

    Example::

        >>> from clnn.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR
        >>> opt = clnn.optim.SGD([clnn.ones(2, requires_grad=True)], lr=1.0)
        >>> warmup = LinearLR(opt, 0.5, total_iters=5)
        >>> scheduler = SequentialLR(opt, [warmup, CosineAnnealingLR(opt, 95)], milestones=[5])
        >>> scheduler.get_last_lr()
        [0.5]
    """

    def __init__(self, optimizer, schedulers, milestones, last_epoch=-1):
        self._check(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError("Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone points, but got "
                             f"number of schedulers {len(schedulers)} and the number of milestones to be equal to {len(milestones)}")
        self._schedulers, self._milestones = schedulers, milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        for group in optimizer.param_groups:  # the parts have each set their first learning rate: begin anew
            set_lr(group, group["initial_lr"])
        _undo(self)
        current = schedulers[bisect_right(milestones, 0)]
        current._initial_step()
        self._last_lr = current.get_last_lr()

    def step(self):
        """Go to the next epoch."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        current = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            current._update_lr(0)
        else:
            current.step()
        self._last_lr = current.get_last_lr()


def _undo(scheduler):
    """Take back the step that schedules made when they were constructed."""
    if hasattr(scheduler, "_schedulers"):
        for part in scheduler._schedulers:
            _undo(part)
    elif hasattr(scheduler, "last_epoch"):
        scheduler.last_epoch -= 1


class ChainedScheduler(_Combined):
    """Several schedules at once: each step applies all of them.

    Args:
        schedulers: list of schedules of one optimizer. optimizer: that optimizer; taken from the first if None.

    Example:
        >>> optimizer = clnn.optim.SGD([clnn.zeros(1)], lr=1.0)
        >>> half, tenth = (clnn.optim.lr_scheduler.ExponentialLR(optimizer, gamma) for gamma in (0.5, 0.1))
        >>> schedule = clnn.optim.lr_scheduler.ChainedScheduler([half, tenth])
        >>> optimizer.step()
        >>> schedule.step()
        >>> schedule.get_last_lr()
        [0.05]
    """

    def __init__(self, schedulers, optimizer=None):
        self.optimizer = self._check(schedulers, optimizer)
        self._schedulers = schedulers
        self._last_lr = self._seen_lrs()

    def step(self):
        """Go to the next epoch."""
        for s in self._schedulers:
            s.step()
        self._last_lr = self._seen_lrs()


class ReduceLROnPlateau(LRScheduler):
    """Lower the learning rate when a metric has stopped improving.

    Args:
        optimizer: whose learning rates to change. mode: "min" if the metric should fall, "max" if it should rise.
        factor: what the learning rate is multiplied by. patience: epochs without improvement that are borne.
        threshold, threshold_mode: an improvement is a change by more than this, relative ("rel") or absolute ("abs").
        cooldown: epochs of rest after a drop. min_lr: lower bound, one or a list with one a group. eps: smaller drops are ignored.

    Example::

        >>> opt = clnn.optim.SGD([clnn.ones(2, requires_grad=True)], lr=1.0)
        >>> scheduler = clnn.optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.5, patience=1)
        >>> for validation_loss in (3.0, 2.0, 2.0, 2.0):
        ...     scheduler.step(validation_loss)
        >>> scheduler.get_last_lr()
        [0.5]
    """

    def __init__(self, optimizer, mode="min", factor=0.1, patience=10, threshold=1e-4, threshold_mode="rel", cooldown=0, min_lr=0, eps=1e-8):
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        if mode not in ("min", "max"):
            raise ValueError("mode " + mode + " is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError("threshold mode " + threshold_mode + " is unknown!")
        self.factor, self.optimizer = factor, optimizer
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.min_lrs = per_group("min_lr", optimizer, min_lr)
        self.patience, self.cooldown, self.eps, self.last_epoch = patience, cooldown, eps, 0
        self._last_lr = self._seen_lrs()
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self._reset()

    def _reset(self):
        """Forget the best value and the counts."""
        self.best, self.cooldown_counter, self.num_bad_epochs = self.mode_worse, 0, 0

    @property
    def in_cooldown(self):
        """Whether a rest after a drop is under way."""
        return self.cooldown_counter > 0

    def _is_better(self, a, best):
        """Whether the metric `a` improves on `best`."""
        sign = -1 if self.mode == "min" else 1
        if self.threshold_mode == "abs":
            return sign * a > sign * best + self.threshold
        return sign * a > sign * (best * (1.0 + sign * self.threshold))

    def is_better(self, a, best):
        """The name until PyTorch 2.12; subclasses may replace either."""
        return self._is_better(a, best)

    def step(self, metrics, epoch=None):
        """Take note of the metric of an epoch."""
        current = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.is_better(current, self.best):
            self.best, self.num_bad_epochs = current, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(self.last_epoch)
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._seen_lrs()

    def _reduce_lr(self, epoch):
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(f"The number of param groups in the `optimizer` ({len(groups)}) differs from when `ReduceLROnPlateau` was "
                                   f"initialized ({len(self.min_lrs)}); extend the `min_lrs` field")
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs):
            old = float(number(group["lr"]))
            new = max(old * self.factor, least)
            if old - new > self.eps:
                set_lr(group, new)


def _cycled_momentum(optimizer):
    """Whether the momentum is the first of `betas`; an error if the optimizer has neither."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
    return "betas" in optimizer.defaults


def _set_momentum(group, value, use_beta1):
    if use_beta1:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


class CyclicLR(LRScheduler):
    """Let the learning rate go up and down between two bounds, batch by batch, and the momentum against it.

    Args:
        optimizer, last_epoch: as for `LRScheduler`. base_lr, max_lr: bounds, one or a list with one a group.
        step_size_up, step_size_down: batches of the rise and of the fall (as long as the rise if None).
        mode: "triangular"; "triangular2" halves the height each cycle; "exp_range" scales it by `gamma ** iteration`.
        scale_fn, scale_mode: a function of the cycle ("cycle") or the batch ("iterations") in place of `mode`.
        cycle_momentum, base_momentum, max_momentum: move the momentum between these, opposite to the learning rate.

    Source: Smith, "Cyclical Learning Rates for Training Neural Networks", 2017.

    Example:
        >>> optimizer = clnn.optim.SGD([clnn.zeros(1)], lr=1.0)
        >>> schedule = clnn.optim.lr_scheduler.CyclicLR(optimizer, base_lr=0.1, max_lr=0.3, step_size_up=2)
        >>> for epoch in range(4):
        ...     optimizer.step()
        ...     schedule.step()
        ...     print(schedule.get_last_lr())
        [0.2]
        [0.3]
        [0.2]
        [0.1]
    """

    def __init__(self, optimizer, base_lr, max_lr, step_size_up=2000, step_size_down=None, mode="triangular", gamma=1.0, scale_fn=None,
                 scale_mode="cycle", cycle_momentum=True, base_momentum=0.8, max_momentum=0.9, last_epoch=-1):
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        base_lrs = per_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for group, lr in zip(optimizer.param_groups, base_lrs):
                set_lr(group, lr)
        self.max_lrs = per_group("max_lr", optimizer, max_lr)
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up) + float(down)
        self.step_ratio = step_size_up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode, self.gamma, self._scale_fn_custom = mode, gamma, scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._start_momentum(optimizer, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def _start_momentum(self, optimizer, base_momentum, max_momentum, last_epoch):
        self.use_beta1 = _cycled_momentum(optimizer)
        self.base_momentums = per_group("base_momentum", optimizer, base_momentum)
        self.max_momentums = per_group("max_momentum", optimizer, max_momentum)
        if last_epoch == -1:
            for group, low, high in zip(optimizer.param_groups, self.base_momentums, self.max_momentums):
                _set_momentum(group, high, self.use_beta1)
                group["max_momentum"], group["base_momentum"] = high, low

    def scale_fn(self, x):
        """The height of cycle (or batch) `x`."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        return 1.0 if self.mode == "triangular" else 1 / 2.0 ** (x - 1) if self.mode == "triangular2" else self.gamma ** x

    def get_lr(self):
        """The learning rates of batch `last_epoch`; sets the momentum as well."""
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True):
                _set_momentum(group, high - (high - low) * height * scale, self.use_beta1)
        return [low + (high - low) * height * scale for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self):
        """Everything but the optimizer; of a custom `scale_fn` only the attributes of a callable object can be stored."""
        state = super().state_dict()
        f = state.pop("_scale_fn_custom")
        state["_scale_fn_custom"] = None if f is None or isinstance(f, types.FunctionType) else dict(f.__dict__)
        return state

    def load_state_dict(self, state_dict):
        """Restore what `state_dict()` returned."""
        state = dict(state_dict)
        saved = state.pop("_scale_fn_custom", None)
        self.__dict__.update(state)
        if saved is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(saved)


class OneCycleLR(LRScheduler):
    """One rise and fall of the learning rate over the whole training, batch by batch, and the momentum against it.

    Args:
        optimizer, last_epoch: as for `LRScheduler`. max_lr: the peak, one or a list with one a group.
        total_steps, or epochs and steps_per_epoch: how many batches there will be.
        pct_start: share of the rise. anneal_strategy: "cos" or "linear".
        cycle_momentum, base_momentum, max_momentum: move the momentum between these, opposite to the learning rate.
        div_factor: the first learning rate is `max_lr / div_factor`. final_div_factor: the last is the first divided by this.
        three_phase: come down to the first learning rate as fast as it rose, and only then to the last.

    Source: Smith and Topin, "Super-Convergence: Very Fast Training of Neural Networks Using Large Learning Rates", 2018.

    Example:
        >>> optimizer = clnn.optim.SGD([clnn.zeros(1)], lr=1.0)
        >>> schedule = clnn.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=4)
        >>> for epoch in range(3):
        ...     optimizer.step()
        ...     schedule.step()
        ...     print(schedule.get_last_lr())
        [0.811745653949763]
        [0.28306099820869923]
        [4e-06]
    """

    def __init__(self, optimizer, max_lr, total_steps=None, epochs=None, steps_per_epoch=None, pct_start=0.3, anneal_strategy="cos",
                 cycle_momentum=True, base_momentum=0.85, max_momentum=0.95, div_factor=25.0, final_div_factor=1e4, three_phase=False,
                 last_epoch=-1):
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.total_steps = _count_steps(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        self._anneal_func_type = anneal_strategy
        max_lrs = per_group("max_lr", optimizer, max_lr)
        self.cycle_momentum = cycle_momentum
        if last_epoch == -1:
            for group, peak in zip(optimizer.param_groups, max_lrs):
                group["initial_lr"], group["max_lr"] = peak / div_factor, peak
                group["min_lr"] = group["initial_lr"] / final_div_factor
        if cycle_momentum:
            self.use_beta1 = _cycled_momentum(optimizer)
            if last_epoch == -1:
                bounds = zip(per_group("base_momentum", optimizer, base_momentum), per_group("max_momentum", optimizer, max_momentum))
                for group, (low, high) in zip(optimizer.param_groups, bounds):
                    _set_momentum(group, high, self.use_beta1)
                    group["max_momentum"], group["base_momentum"] = high, low
        super().__init__(optimizer, last_epoch)

    def _between(self, start, end, share):
        if self._anneal_func_type == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)

    def get_lr(self):
        """The learning rates of batch `last_epoch`; sets the momentum as well."""
        now = self.last_epoch
        if now > self.total_steps:
            raise ValueError(f"Tried to step {now} times. The specified number of total steps is {self.total_steps}")
        begin = 0.0
        for phase in self._schedule_phases[:-1]:
            if now <= phase["end_step"]:
                break
            begin = phase["end_step"]
        else:
            phase = self._schedule_phases[-1]
        share = (now - begin) / (phase["end_step"] - begin)
        lrs = []
        for group in self.optimizer.param_groups:
            lrs.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], share))
            if self.cycle_momentum:
                _set_momentum(group, self._between(group[phase["start_momentum"]], group[phase["end_momentum"]], share), self.use_beta1)
        return lrs


def _count_steps(total_steps, epochs, steps_per_epoch):
    if total_steps is None and (epochs is None or steps_per_epoch is None):
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    named = {"total_steps": total_steps} if total_steps is not None else {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
    for name, value in named.items():
        if value <= 0 or not isinstance(value, int):
            raise ValueError(f"Expected positive integer {name}, but got {value}")
    return total_steps if total_steps is not None else epochs * steps_per_epoch


def _phases(total, pct_start, three_phase):
    """The phases as dicts of their last step and the names of the bounds they run between."""
    rise = float(pct_start * total) - 1
    names = [("initial_lr", "max_lr", "max_momentum", "base_momentum"), ("max_lr", "initial_lr", "base_momentum", "max_momentum"),
             ("initial_lr", "min_lr", "max_momentum", "max_momentum")]
    ends = [rise, float(2 * pct_start * total) - 2, total - 1]
    if not three_phase:
        names, ends = [names[0], ("max_lr", "min_lr", "base_momentum", "max_momentum")], [rise, total - 1]
    return [dict(end_step=end, start_lr=a, end_lr=b, start_momentum=c, end_momentum=d) for end, (a, b, c, d) in zip(ends, names)]
