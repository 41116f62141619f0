"""Names that PyTorch programs use to spread a model over devices."""
from .modules.module import Module

__all__ = ["DataParallel"]


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
