"""``torch.utils.tensorboard``: the writer of the package tensorboardX, which gets arrays for clnn's tensors."""
from __future__ import annotations

import functools

from .. import bfloat16
from .._tensor.tensor import Tensor
from ..export import export
from ._pytree import tree_map

try:
    import tensorboardX
    from tensorboardX import FileWriter
    from tensorboardX.proto.event_pb2 import Event
    from tensorboardX.proto.graph_pb2 import GraphDef
    from tensorboardX.proto.versions_pb2 import VersionDef
except ImportError as missing:
    raise ImportError('clnn.utils.tensorboard writes with the package tensorboardX: pip install "clnn[tensorboard]"') from missing

__all__ = ["FileWriter", "SummaryWriter"]


def _array(x):
    if not isinstance(x, Tensor):
        return x
    x = x.detach()
    return (x.float() if x.dtype is bfloat16 else x).numpy()


def _of_arrays(method):
    """``method`` of the package's writer, for arguments with tensors."""
    @functools.wraps(method)
    def call(self, *args, **kwargs):
        return method(self, *tree_map(_array, args), **tree_map(_array, kwargs))
    return call


class SummaryWriter(tensorboardX.SummaryWriter):
    """Writes values into event files, which TensorBoard shows: ``tensorboard --logdir runs``.

    Args:
        log_dir: the folder; ``runs/<date>_<host>`` and ``comment`` if None.
        purge_step, max_queue, flush_secs, filename_suffix: as ``tensorboardX.SummaryWriter`` takes them.

    The methods ``add_scalar``, ``add_histogram``, ``add_image``, ... are those of the package, and take tensors on any device.

    Example:
        >>> import os, tempfile
        >>> from clnn.utils.tensorboard import SummaryWriter
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with SummaryWriter(folder) as writer:
        ...         writer.add_scalar("loss", clnn.tensor(0.5), 0)
        ...     print(len(os.listdir(folder)))
        1
    """

    def __init__(self, log_dir=None, comment="", purge_step=None, max_queue=10, flush_secs=120, filename_suffix=""):
        super().__init__(log_dir, comment, purge_step, max_queue, flush_secs, filename_suffix)
        self.log_dir = self.logdir

    def get_logdir(self):
        """The folder of the event files."""
        return self.logdir

    def add_graph(self, model, input_to_model=None, verbose=False, use_strict_trace=True):
        """The operators that ``model`` calls for ``input_to_model``, a tensor or a tuple of arguments."""
        inputs = tuple(input_to_model) if isinstance(input_to_model, (tuple, list)) else (input_to_model,)
        graph = GraphDef(versions=VersionDef(producer=22))
        for node in export(model, inputs).graph.nodes:
            op = "IO Node" if node.op in ("placeholder", "output") else str(node.target)
            graph.node.add(name=node.name, op=op, input=[n.name for n in node.all_input_nodes])
        if verbose:
            print(graph)
        self._get_file_writer().add_event(Event(graph_def=graph.SerializeToString()))


for _name, _method in vars(tensorboardX.SummaryWriter).items():
    if _name.startswith("add_") and _name not in vars(SummaryWriter):
        setattr(SummaryWriter, _name, _of_arrays(_method))
