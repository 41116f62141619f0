"""Names that PyTorch programs use to spread a model over devices."""
import contextlib

from .modules.module import Module

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]


class DataParallel(Module):
    """Wraps a module as PyTorch's class of this name does, so that programs and checkpoints with ``module.`` names work.

    Nothing is split: the module runs on its own device. ``device_ids``, ``output_device`` and ``dim`` are kept and ignored.

    Example::

        >>> list(nn.DataParallel(nn.Linear(2, 1, bias=False)).state_dict())
        ['module.weight']
    """

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        self.module = module
        self.device_ids = [] if device_ids is None else device_ids
        self.output_device = output_device
        self.dim = dim

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)


class DistributedDataParallel(DataParallel):
    """:class:`DataParallel` for programs that make a group of processes with ``clnn.distributed``: there is one, so nothing is exchanged.

    Example::

        >>> net = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
        >>> with net.no_sync():
        ...     net(clnn.ones(1, 2)).sum().backward()
    """

    def __init__(self, module, device_ids=None, output_device=None, dim=0, broadcast_buffers=True, **options):
        super().__init__(module, device_ids, output_device, dim)
        self.broadcast_buffers, self.require_backward_grad_sync = broadcast_buffers, True

    @contextlib.contextmanager
    def no_sync(self):
        """A block in which gradients are not exchanged: they never are."""
        yield


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """Call ``module`` on its own device.

    Example::

        >>> nn.parallel.data_parallel(nn.Flatten(), clnn.ones(1, 2, 2)).shape
        clnn.Size([1, 4])
    """
    return module(*(inputs if isinstance(inputs, tuple) else (inputs,)), **(module_kwargs or {}))
