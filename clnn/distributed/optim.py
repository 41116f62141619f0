"""Optimizers whose state would be divided among processes: with one process, an ordinary optimizer."""
from __future__ import annotations

from clnn.optim import Optimizer

from ._several import _divided

__all__ = ["DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]

DistributedOptimizer, PostLocalSGDOptimizer = map(_divided, ("DistributedOptimizer", "PostLocalSGDOptimizer"))


class ZeroRedundancyOptimizer(Optimizer):
    """``optimizer_class(params, **defaults)``: this process is the only one, so it keeps all of the state.

    Args:
        params: parameters or groups of them.
        optimizer_class: a class of ``clnn.optim``.
        process_group, parameters_as_bucket_view, overlap_with_ddp: accepted.

    Example::

        >>> w = clnn.nn.Parameter(clnn.ones(2))
        >>> from clnn.distributed.optim import ZeroRedundancyOptimizer
        >>> optimizer = ZeroRedundancyOptimizer([w], clnn.optim.SGD, lr=0.5)
        >>> w.sum().backward()
        >>> optimizer.step()
        >>> w.tolist()
        [0.5, 0.5]
    """

    def __init__(self, params, optimizer_class, process_group=None, parameters_as_bucket_view=False, overlap_with_ddp=False, **defaults):
        params = list(params)
        super().__init__(params, defaults)
        self.optim = optimizer_class(params, **defaults)
        self._share()

    def _share(self):
        self.state, self.param_groups = self.optim.state, self.optim.param_groups

    def step(self, closure=None, **kwargs):
        """A step of the optimizer."""
        return self.optim.step(closure, **kwargs) if closure is not None else self.optim.step(**kwargs)

    def add_param_group(self, param_group):
        """Add a group."""
        if not hasattr(self, "optim"):
            return super().add_param_group(param_group)
        self.optim.add_param_group(param_group)
        self._share()

    def consolidate_state_dict(self, to=0):
        """Accepted: all of the state is here."""

    def state_dict(self):
        """The optimizer's."""
        return self.optim.state_dict()

    def load_state_dict(self, state_dict):
        """Load the optimizer's."""
        self.optim.load_state_dict(state_dict)
        self._share()
