"""``torch.utils.tensorboard``: the writer of the package tensorboardX, which gets arrays for clnn's tensors."""
from __future__ import annotations

import functools
import io
import os
import time
import wave

import numpy as np

from .. import bfloat16
from .._tensor.tensor import Tensor
from ..export import export
from ._pytree import tree_map

try:
    import tensorboardX
    from tensorboardX import FileWriter
    from tensorboardX.proto.event_pb2 import Event
    from tensorboardX.proto.graph_pb2 import GraphDef
    from tensorboardX.proto.plugin_hparams_pb2 import HParamsPluginData
    from tensorboardX.proto.summary_pb2 import Summary, SummaryMetadata
    from tensorboardX.proto.tensor_pb2 import TensorProto
    from tensorboardX.proto.tensor_shape_pb2 import TensorShapeProto
    from tensorboardX.proto.versions_pb2 import VersionDef
    from tensorboardX.summary import hparams
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


# The type and the field of a message with the values of an array.
_FIELDS = dict(float32=("DT_FLOAT", "float_val"), float64=("DT_DOUBLE", "double_val"), int8=("DT_INT8", "int_val"), uint8=("DT_UINT8", "int_val"),
               int16=("DT_INT16", "int_val"), int32=("DT_INT32", "int_val"), int64=("DT_INT64", "int64_val"))


def _message(array):
    if array.dtype.name not in _FIELDS:
        raise ValueError(f"add_tensor: unsupported tensor dtype {array.dtype}")
    dtype, field = _FIELDS[array.dtype.name]
    return TensorProto(dtype=dtype, tensor_shape=TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in array.shape]), **{field: array.ravel().tolist()})


def _summary(tag, plugin, message):
    return Summary(value=[Summary.Value(tag=tag, tensor=message, metadata=SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=plugin)))])


def _scalar(tag, value, new_style=False, double_precision=False):
    value = np.asarray(_array(value)).squeeze()
    if value.ndim:
        raise AssertionError(f"Tensor should contain one element (0 dimensions). Was given size: {value.size} and {value.ndim} dimensions.")
    if not new_style:
        return Summary(value=[Summary.Value(tag=tag, simple_value=float(value))])
    kind = ("DT_DOUBLE", "double_val") if double_precision else ("DT_FLOAT", "float_val")
    return _summary(tag, "scalars", TensorProto(dtype=kind[0], **{kind[1]: [float(value)]}))


def _sound(tag, sound, rate):
    if np.abs(sound).max() > 1:
        print("warning: audio amplitude out of range, auto clipped.")
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes((sound.clip(-1, 1) * np.iinfo("<i2").max).astype("<i2").tobytes())
    audio = Summary.Audio(sample_rate=rate, num_channels=1, length_frames=len(sound), encoded_audio_string=file.getvalue(), content_type="audio/wav")
    return Summary(value=[Summary.Value(tag=tag, audio=audio)])


def _offer(experiment, choices, given):
    """Write into the summary of an experiment which values each of its settings may have."""
    for name, values in choices.items():
        if name not in given or not isinstance(values, list) or not all(isinstance(v, type(given[name])) for v in values):
            raise TypeError(f"parameter: hparam_domain_discrete[{name}] should be a list of same type as hparam_dict[{name}].")
    plugin = experiment.value[0].metadata.plugin_data
    data = HParamsPluginData.FromString(plugin.content)
    for info in data.experiment.hparam_infos:
        info.domain_discrete.extend(choices.get(info.name, []))
    plugin.content = data.SerializeToString()


class SummaryWriter(tensorboardX.SummaryWriter):
    """Writes values into event files, which TensorBoard shows: ``tensorboard --logdir runs``.

    Args:
        log_dir: the folder; ``runs/<date>_<host>`` and ``comment`` if None.
        purge_step, max_queue, flush_secs, filename_suffix: as ``tensorboardX.SummaryWriter`` takes them.

    The methods ``add_histogram``, ``add_image``, ... are those of the package, and take tensors on any device.

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
        self.max_queue, self.flush_secs, self.filename_suffix = max_queue, flush_secs, filename_suffix

    def get_logdir(self):
        """The folder of the event files."""
        return self.logdir

    def add_scalar(self, tag, scalar_value, global_step=None, walltime=None, new_style=False, double_precision=False):
        """A number; ``new_style`` writes it as a tensor, with ``double_precision`` as a double."""
        self._get_file_writer().add_summary(_scalar(tag, scalar_value, new_style, double_precision), global_step, walltime)

    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None):
        """Numbers to be shown in one picture: each has a folder of its own, ``<main_tag>_<tag>``."""
        folder = os.path.join(str(self._get_file_writer().get_logdir()), main_tag.replace("/", "_"))
        for tag, value in tag_scalar_dict.items():
            name = f"{folder}_{tag}"
            if name not in self.all_writers:
                self.all_writers[name] = FileWriter(name, self.max_queue, self.flush_secs, self.filename_suffix)
            self.all_writers[name].add_summary(_scalar(main_tag, value), global_step, walltime)

    def add_tensor(self, tag, tensor, global_step=None, walltime=None):
        """All values of a tensor."""
        self._get_file_writer().add_summary(_summary(tag, "tensor", _message(np.asarray(_array(tensor)))), global_step, walltime)

    def add_audio(self, tag, snd_tensor, global_step=None, sample_rate=44100, walltime=None):
        """Sound of one channel, shape (1, L) or (L), between -1 and 1."""
        sound = np.asarray(_array(snd_tensor)).squeeze()
        if sound.ndim != 1:
            raise AssertionError("input tensor should be 1 dimensional.")
        self._get_file_writer().add_summary(_sound(tag, sound, sample_rate), global_step, walltime)

    def add_hparams(self, hparam_dict, metric_dict, hparam_domain_discrete=None, run_name=None, global_step=None):
        """Settings and what came of them, in a run of its own, called ``run_name`` (the time if None)."""
        if type(hparam_dict) is not dict or type(metric_dict) is not dict:
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        values = {name: v.item() if isinstance(v, Tensor) else v for name, v in hparam_dict.items()}
        summaries = hparams(values, metric_dict)
        _offer(summaries[0], hparam_domain_discrete or {}, values)
        with SummaryWriter(os.path.join(str(self._get_file_writer().get_logdir()), run_name or str(time.time()))) as run:
            for summary in summaries:
                run.file_writer.add_summary(summary, global_step)
            for name, value in metric_dict.items():
                run.add_scalar(name, value, global_step)

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
