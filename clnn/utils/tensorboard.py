"""``torch.utils.tensorboard``: the writer of the package tensorboardX, which needs no other."""
try:
    from tensorboardX import FileWriter, SummaryWriter
except ImportError as missing:
    raise ImportError("clnn.utils.tensorboard writes with the package tensorboardX: pip install tensorboardX") from missing

__all__ = ["FileWriter", "SummaryWriter"]
