"""``torch.utils.tensorboard``: values of a training for TensorBoard to show. Writing them needs no other package."""
from __future__ import annotations

import datetime
import io
import os
import re
import socket
import time
import wave

import numpy as np

from ._events import FileWriter, message, metadata, png, tensor_of_bytes, tensor_of_floats

__all__ = ["FileWriter", "SummaryWriter"]


def _array(x):
    """A NumPy array of a tensor, a number, or a list of either."""
    if hasattr(x, "detach"):
        x = x.detach()
        return (x.float() if str(x.dtype).endswith("bfloat16") else x).cpu().numpy()
    if isinstance(x, (list, tuple)):
        return np.array([_array(v) for v in x])
    if isinstance(x, str):
        raise NotImplementedError(f"a value must be a tensor, an array or a number, got the text {x!r}")
    return np.asarray(x)


def _number(x):
    x = _array(x)
    if x.size != 1:
        raise AssertionError(f"a scalar should hold one value, got shape {tuple(x.shape)}")
    return float(x.reshape(-1)[0])


def _value(tag, **fields):
    """A Summary of one value."""
    return message(_1=message(_1=tag, **fields))


def _bins(kind):
    """Limits that grow by a tenth from 1e-12 on, on both sides of zero, or what ``numpy.histogram`` takes."""
    if kind != "tensorflow":
        return kind
    up = np.cumprod([1e-12] + [1.1] * 773)
    return np.concatenate([-up[::-1], [0.0], up])


def _histogram(values, bins, max_bins):
    values = _array(values).reshape(-1).astype(np.float64)
    if not values.size:
        raise ValueError("The input has no element.")
    counts, limits = np.histogram(values, bins=_bins(bins))
    if max_bins is not None and len(counts) > max_bins:
        step = len(counts) // max_bins
        starts = np.arange(0, len(counts), step)
        counts, limits = np.add.reduceat(counts, starts), np.append(limits[:-1][starts], limits[-1])
    used = np.flatnonzero(counts)
    if not used.size:
        raise ValueError("no value lies within the bins")
    first, last = used[0], used[-1] + 1                       # an empty bin before the first tells where that begins
    return (float(values.min()), float(values.max()), values.size, float(values.sum()), float(values @ values), limits[first:last + 1],
            np.concatenate([[0], counts[first:last]]))


def _grid(batch, columns=8):
    """Images ``(N, H, W, C)`` side by side."""
    n, height, width, channels = batch.shape
    columns = min(n, columns)
    rows = -(-n // columns)
    out = np.zeros((rows * columns, height, width, channels), batch.dtype)
    out[:n] = batch
    return out.reshape(rows, columns, height, width, channels).transpose(0, 2, 1, 3, 4).reshape(rows * height, columns * width, channels)


def _pixels(images, order):
    """Bytes ``(H, W, C)`` of one image or several, whose dimensions ``order`` names; floats go from 0 to 1."""
    images, order = _array(images), order.upper()
    if len(set(order)) != len(order) or len(order) != images.ndim:
        raise AssertionError(f"size of input tensor and input format are different. tensor shape: {images.shape}, input_format: {order}")
    if images.dtype != np.uint8:
        images = (images.astype(np.float32) * 255).clip(0, 255).astype(np.uint8)
    if len(order) == 2:
        images, order = images[..., None], order + "C"
    if len(order) == 4:
        images = _grid(images.transpose([order.index(c) for c in "NHWC"]))
    else:
        images = images.transpose([order.index(c) for c in "HWC"])
    return images.repeat(3, 2) if images.shape[2] == 1 else images


def _image(tag, pixels):
    height, width, channels = pixels.shape
    return _value(tag, _4=message(_1=height, _2=width, _3=channels, _4=png(np.ascontiguousarray(pixels))))


def _curve(labels, predictions, thresholds, weights):
    """True and false positives and negatives, precision and recall at thresholds from 0 to 1."""
    labels, predictions = _array(labels).reshape(-1).astype(np.float64), _array(predictions).reshape(-1).astype(np.float64)
    weights = np.ones_like(labels) if weights is None else _array(weights).reshape(-1)
    where = np.floor(predictions * (thresholds - 1)).astype(np.int64).clip(0, thresholds - 1)
    tp, fp = (np.bincount(where, w * weights, thresholds)[::-1].cumsum()[::-1] for w in (labels, 1 - labels))
    tn, fn = fp[0] - fp, tp[0] - tp
    return np.stack([tp, fp, tn, fn, tp / np.maximum(1e-7, tp + fp), tp / np.maximum(1e-7, tp + fn)])


def _hparam(value):
    """(the Value message, its kind) of a hyperparameter."""
    if hasattr(value, "item") and not isinstance(value, str):
        value = value.item()
    if isinstance(value, bool):
        return message(_4=value), 2
    if isinstance(value, (int, float)):
        return message(_2=float(value)), 3
    if not isinstance(value, str):
        raise ValueError(f"value should be one of int, float, str, bool, or a tensor, got {type(value).__name__}")
    return message(_3=value), 1


def _graph(model, inputs):
    """A GraphDef of the operators that a module calls for these inputs."""
    from ..export import export
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    nodes = []
    for node in export(model, inputs).graph.nodes:
        op = "IO Node" if node.op in ("placeholder", "output") else str(node.target)
        nodes.append(message(_1=node.name, _2=op, _3=[n.name for n in node.all_input_nodes]))
    return message(_1=nodes, _4=message(_1=22))


class SummaryWriter:
    """Writes values into event files, which TensorBoard shows: ``tensorboard --logdir runs``.

    Args:
        log_dir: the folder; ``runs/<date>_<host>`` and ``comment`` if None.
        purge_step: accepted. max_queue, flush_secs: the file is flushed after so many values or seconds.
        filename_suffix: the end of the files' names.

    In all methods ``tag`` names the value, ``global_step`` is the step that it belongs to and ``walltime`` its time in seconds, now if None.

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
        if not log_dir:
            log_dir = os.path.join("runs", f"{datetime.datetime.now():%b%d_%H-%M-%S}_{socket.gethostname()}{comment}")
        self.log_dir, self._options = str(log_dir), (max_queue, flush_secs, filename_suffix)
        self.file_writer, self.all_writers = None, None
        self._get_file_writer()

    def _get_file_writer(self):
        if self.file_writer is None:
            self.file_writer = FileWriter(self.log_dir, *self._options)
            self.all_writers = {self.log_dir: self.file_writer}
        return self.file_writer

    def _add(self, summary, global_step=None, walltime=None):
        self._get_file_writer().add_summary(summary, global_step, walltime)

    def get_logdir(self):
        """The folder."""
        return self.log_dir

    def add_scalar(self, tag, scalar_value, global_step=None, walltime=None, new_style=False, double_precision=False):
        """One number."""
        self._add(_value(tag, _2=np.float32(_number(scalar_value))), global_step, walltime)

    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None):
        """Numbers for one chart, each in a file of its own below the folder."""
        self._get_file_writer()
        for tag, value in tag_scalar_dict.items():
            folder = os.path.join(self.log_dir, f"{main_tag.replace('/', '_')}_{tag}")
            writer = self.all_writers.get(folder) or self.all_writers.setdefault(folder, FileWriter(folder, *self._options))
            writer.add_summary(_value(main_tag, _2=np.float32(_number(value))), global_step, walltime)

    def add_histogram(self, tag, values, global_step=None, bins="tensorflow", walltime=None, max_bins=None):
        """How values are distributed."""
        self.add_histogram_raw(tag, *_histogram(values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(self, tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts, global_step=None, walltime=None):
        """A distribution whose limits and counts the caller computed."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        numbers = (float(_array(n)) for n in (min, max, num, sum, sum_squares))
        histogram = message(**{f"_{i}": n for i, n in enumerate(numbers, 1)}, _6=_array(bucket_limits).astype("<f8"), _7=_array(bucket_counts).astype("<f8"))
        self._add(_value(tag, _5=histogram), global_step, walltime)

    def add_image(self, tag, img_tensor, global_step=None, walltime=None, dataformats="CHW"):
        """One image: bytes, or floats from 0 to 1; ``dataformats`` names its dimensions."""
        self._add(_image(tag, _pixels(img_tensor, dataformats)), global_step, walltime)

    def add_images(self, tag, img_tensor, global_step=None, walltime=None, dataformats="NCHW"):
        """Images side by side."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_figure(self, tag, figure, global_step=None, close=True, walltime=None):
        """A figure of matplotlib, or a list of them."""
        figures = figure if isinstance(figure, list) else [figure]
        shown = []
        for one in figures:
            one.canvas.draw()
            shown.append(np.asarray(one.canvas.buffer_rgba())[..., :3])
            if close:
                import matplotlib.pyplot as plt
                plt.close(one)
        self.add_image(tag, np.stack(shown), global_step, walltime, "NHWC")

    def add_audio(self, tag, snd_tensor, global_step=None, sample_rate=44100, walltime=None):
        """Samples from -1 to 1."""
        sound = _array(snd_tensor).squeeze()
        if sound.ndim != 1:
            raise AssertionError(f"input tensor should be 1 dimensional, got shape {sound.shape}")
        file = io.BytesIO()
        with wave.open(file, "wb") as out:
            out.setnchannels(1)
            out.setsampwidth(2)
            out.setframerate(int(sample_rate))
            out.writeframes((sound.clip(-1, 1) * 32767).astype("<i2").tobytes())
        audio = message(_1=np.float32(sample_rate), _2=1, _3=len(sound), _4=file.getvalue(), _5="audio/wav")
        self._add(_value(tag, _6=audio), global_step, walltime)

    def add_text(self, tag, text_string, global_step=None, walltime=None):
        """A text, as Markdown."""
        self._add(_value(f"{tag}/text_summary", _8=tensor_of_bytes(text_string), _9=metadata("text")), global_step, walltime)

    def add_pr_curve(self, tag, labels, predictions, global_step=None, num_thresholds=127, weights=None, walltime=None):
        """Precision against recall of predictions from 0 to 1, for labels 0 or 1."""
        curve = _curve(labels, predictions, min(num_thresholds, 127), weights)
        self.add_pr_curve_raw(tag, *curve, global_step, curve.shape[1], walltime=walltime)

    def add_pr_curve_raw(self, tag, true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts, precision, recall,
                         global_step=None, num_thresholds=127, weights=None, walltime=None):
        """A curve whose points the caller computed."""
        rows = [true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts, precision, recall]
        curve = np.stack([_array(row) for row in rows])
        self._add(_value(tag, _8=tensor_of_floats(curve), _9=metadata("pr_curves", message(_2=min(num_thresholds, 127)))), global_step, walltime)

    def add_hparams(self, hparam_dict, metric_dict, hparam_domain_discrete=None, run_name=None, global_step=None):
        """Hyperparameters of a run and what it reached, in a folder of its own."""
        if not isinstance(hparam_dict, dict) or not isinstance(metric_dict, dict):
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        given = {name: _hparam(value) for name, value in hparam_dict.items() if value is not None}
        domains = {name: message(_5=message(_1=[_hparam(v)[0] for v in values])) for name, values in (hparam_domain_discrete or {}).items()}
        experiment = message(_4=[message(_1=name, _4=kind) + domains.get(name, b"") for name, (_, kind) in given.items()],
                             _5=[message(_1=message(_2=name)) for name in metric_dict])
        start = message(_1=[message(_1=name, _2=value) for name, (value, _) in given.items()])
        with SummaryWriter(os.path.join(self.log_dir, run_name or str(time.time()))) as writer:
            for name, content in (("experiment", message(_2=experiment)), ("session_start_info", message(_3=start)), ("session_end_info", message(_4=message(_1=1)))):
                writer._add(_value(f"_hparams_/{name}", _9=metadata("hparams", content)), global_step)
            for name, value in metric_dict.items():
                writer.add_scalar(name, value, global_step)

    def add_graph(self, model, input_to_model=None, verbose=False, use_strict_trace=True):
        """The operators of a module for an example of its inputs."""
        self._get_file_writer().add_graph(_graph(model, input_to_model))

    def add_custom_scalars(self, layout):
        """Charts of several scalars: ``{category: {title: [kind, tags]}}``, the kind ``"Multiline"`` or ``"Margin"``."""
        categories = []
        for title, charts in layout.items():
            shown = []
            for name, (kind, tags) in charts.items():
                margin = message(_1=message(**{f"_{i}": tag for i, tag in enumerate(tags[:3], 1)})) if kind == "Margin" else None
                shown.append(message(_1=name, _2=message(_1=list(tags)) if kind != "Margin" else None, _3=margin))
            categories.append(message(_1=title, _2=shown))
        self._add(_value("custom_scalars__config__", _8=tensor_of_bytes(message(_2=categories), ()), _9=metadata("custom_scalars")))

    def add_custom_scalars_multilinechart(self, tags, category="default", title="untitled"):
        """A chart of several lines."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(self, tags, category="default", title="untitled"):
        """A line between two limits."""
        if len(tags) != 3:
            raise AssertionError(f"Expected 3 tags, got {len(tags)}.")
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_embedding(self, mat, metadata=None, label_img=None, global_step=None, tag="default", metadata_header=None):
        """Points ``(N, D)`` with labels and images ``(N, C, H, W)``, for the projector."""
        name = re.sub(r"[^-/\w.]", "_", tag)
        place = f"{0 if global_step is None else int(global_step):05d}/{name}"
        folder = os.path.join(self.log_dir, place)
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "tensors.tsv"), "w", encoding="utf8") as file:
            file.writelines("\t".join(map(str, row)) + "\n" for row in _array(mat).tolist())
        lines = ["embeddings {", f'tensor_name: "{tag}:{place[:5]}"', f'tensor_path: "{place}/tensors.tsv"']
        if metadata is not None:
            if len(metadata) != len(mat):
                raise AssertionError("#labels should equal with #data points")
            rows = ["\t".join(map(str, row)) for row in [metadata_header, *metadata]] if metadata_header else map(str, metadata)
            with open(os.path.join(folder, "metadata.tsv"), "w", encoding="utf8") as file:
                file.write("\n".join(rows) + "\n")
            lines.append(f'metadata_path: "{place}/metadata.tsv"')
        if label_img is not None:
            batch = _array(label_img).transpose(0, 2, 3, 1)
            pixels = _grid((batch if batch.dtype == np.uint8 else (batch * 255).clip(0, 255)).astype(np.uint8), int(np.ceil(len(batch) ** 0.5)))
            with open(os.path.join(folder, "sprite.png"), "wb") as file:
                file.write(png(pixels))
            lines += ["sprite {", f'image_path: "{place}/sprite.png"', f"single_image_dim: {batch.shape[2]}", f"single_image_dim: {batch.shape[1]}", "}"]
        with open(os.path.join(self.log_dir, "projector_config.pbtxt"), "a", encoding="utf8") as file:
            file.write("\n".join([*lines, "}"]) + "\n")

    def _other(self, *args, **kwargs):
        raise NotImplementedError("clnn.utils.tensorboard writes no videos, meshes and boxes; the package tensorboardX does")

    add_video = add_mesh = add_image_with_boxes = _other

    def flush(self):
        """Hand everything to the system."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self):
        """Close the files; a later value begins a new one."""
        for writer in (self.all_writers or {}).values():
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()
