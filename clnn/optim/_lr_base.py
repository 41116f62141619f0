"""The base of the learning-rate schedules."""

import warnings

from clnn.optim._rule import number
from clnn.optim.optimizer import Optimizer
from clnn.runtime.capture import on_host


def set_lr(group, lr):
    """Write a learning rate; a tensor is filled in place, so that whoever shares it sees the change."""
    if hasattr(group["lr"], "fill_"):
        group["lr"].fill_(number(lr))
    else:
        group["lr"] = lr


def per_group(name, optimizer, value):
    """One value a group, from a list or a single value."""
    if isinstance(value, (list, tuple)):
        if len(value) != len(optimizer.param_groups):
            raise ValueError(f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, "
                             f"param_groups has {len(optimizer.param_groups)}.")
        return list(value)
    return [value] * len(optimizer.param_groups)


class _enable_get_lr_call:
    """A block in which ``get_lr`` is part of a step, as schedules of a program's own with a ``step`` say."""

    def __init__(self, o):
        self.o = o

    def __enter__(self):
        self.o._get_lr_called_within_step = True
        return self

    def __exit__(self, *exc):
        self.o._get_lr_called_within_step = False


def _warn_get_lr_called_within_step(lr_scheduler):
    """Warn of a call of ``get_lr`` outside of a step."""
    if not lr_scheduler._get_lr_called_within_step:
        warnings.warn("To get the last learning rate computed by the scheduler, please use `get_last_lr()`.", UserWarning, stacklevel=3)


class LRScheduler:
    """Base of the schedules.

    Args:
        optimizer: whose learning rates to change. last_epoch: number of the last finished epoch; -1 to begin.

    A subclass defines `next_lr(lr, base)`, the next learning rate of one group, or overrides `get_lr()` for all groups. Call `step()`
    once an epoch (or once a batch), after `optimizer.step()`.

    Example:
        >>> class Halves(clnn.optim.lr_scheduler.LRScheduler):
        ...     def get_lr(self):
        ...         return [group["lr"] * (0.5 if self.last_epoch else 1) for group in self.optimizer.param_groups]
        >>> optimizer = clnn.optim.SGD([clnn.zeros(1)], lr=1.0)
        >>> schedule = Halves(optimizer)
        >>> optimizer.step()
        >>> schedule.step()
        >>> schedule.get_last_lr()
        [0.5]
    """

    _is_initial = _get_lr_called_within_step = False

    def __init__(self, optimizer, last_epoch=-1):
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        vars(optimizer).setdefault("_opt_called", False)        # only steps from here on count for the warning of step()
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", number(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with last_epoch >= 0.\n"
                               "This typically happens when:\n1. You're trying to resume training from a checkpoint but haven't properly loaded the "
                               "optimizer state\n2. You're using last_epoch >= 0 for a fresh training run (not recommended)")
        self.base_lrs = [number(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._initial_step()

    def _initial_step(self):
        """Compute the learning rates of the first epoch."""
        self._step_count = 0
        self._is_initial = True
        self._get_lr_called_within_step = False
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self):
        """Everything but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict):
        """Restore what `state_dict()` returned; load the optimizer's state as well."""
        self.__dict__.update(state_dict)

    def get_last_lr(self):
        """The learning rates set by the last step, one a group."""
        return self._last_lr

    def next_lr(self, lr, base):
        """The learning rate of a group in epoch `last_epoch`, from its present and its initial one."""
        raise NotImplementedError(f"{type(self).__name__} has to define next_lr or get_lr")

    def get_lr(self):
        """The learning rates of epoch `last_epoch`, one a group, computed from the present ones."""
        _warn_get_lr_called_within_step(self)
        lrs = self._lrs()
        bases = [*self.base_lrs, *[None] * (len(lrs) - len(self.base_lrs))]     # groups may have come since; few schedules ask where they began
        return [self.next_lr(lr, base) for lr, base in zip(lrs, bases, strict=True)]

    def _lrs(self):
        return [number(group["lr"]) for group in self.optimizer.param_groups]

    def _seen_lrs(self):
        """What :meth:`get_last_lr` gives: rates that are tensors stay tensors."""
        return [lr.detach().clone() if hasattr(lr, "detach") else lr for lr in (group["lr"] for group in self.optimizer.param_groups)]

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "step" in vars(cls):
            cls.step = on_host(cls.step)

    @on_host
    def step(self, epoch=None):
        """Go to the next epoch, or to epoch `epoch`, and set the learning rates."""
        if self._step_count == 1 and not getattr(self.optimizer, "_opt_called", False):
            warnings.warn("Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you should call them in the "
                          "opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure to do this will result in PyTorch skipping the first "
                          "value of the learning rate schedule. See more details at "
                          "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate", UserWarning, stacklevel=3)
        self._step_count += 1
        if epoch is not None:
            warnings.warn("The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
                          "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed form is used "
                          "instead of the new chainable form, where available. Please open an issue if you are unable to replicate your use case: "
                          "https://github.com/pytorch/pytorch/issues/new/choose.", UserWarning, stacklevel=3)
        self._update_lr(epoch)

    def _update_lr(self, epoch=None):
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed = epoch is not None and hasattr(self, "_get_closed_form_lr")
        self._apply(self._get_closed_form_lr() if closed else self._ask_lr())

    def _ask_lr(self):
        """`get_lr()` with the flag that schedules written for PyTorch look at there."""
        with _enable_get_lr_call(self):
            return self.get_lr()

    def _apply(self, values):
        for group, lr in zip(self.optimizer.param_groups, values, strict=True):
            set_lr(group, lr)
        self._last_lr = self._seen_lrs()
