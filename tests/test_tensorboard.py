"""The files of utils.tensorboard, read back by a small reader of records and messages; also by tensorboard's own, where that is installed."""
import struct
import zlib

import numpy as np
import pytest

import clnn
from clnn import nn
from clnn.utils import _events
from clnn.utils.tensorboard import SummaryWriter


def records(path):
    """The events of a file, whose checksums hold."""
    data, found = path.read_bytes(), []
    while data:
        size, = struct.unpack("<Q", data[:8])
        event, rest = data[12:12 + size], data[12 + size:]
        assert data[8:12] == _events._masked_crc(data[:8]) and rest[:4] == _events._masked_crc(event)
        found.append(event)
        data = rest[4:]
    return found


def fields(data):
    """``{number: [values]}`` of a message; nested ones stay bytes."""
    found, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value, shift = value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value
    while at < len(data):
        key = varint()
        if key & 7 == 0:
            value = varint()
        elif key & 7 == 2:
            size = varint()
            value, at = data[at:at + size], at + size
        else:
            size, code = (8, "<d") if key & 7 == 1 else (4, "<f")
            value, at = struct.unpack(code, data[at:at + size])[0], at + size
        found.setdefault(key >> 3, []).append(value)
    return found


def values(folder):
    """``{tag: (step, fields of the value)}`` of the one file in a folder."""
    path, = folder.glob("events.out.tfevents.*")
    events = [fields(event) for event in records(path)]
    assert events[0][3] == [b"brain.Event:2"]
    shown = [(event.get(2, [0])[0], fields(fields(event[5][0])[1][0])) for event in events[1:] if 5 in event]
    return {value[1][0].decode(): (step, value) for step, value in shown}


def test_checksums_are_those_of_the_format():
    assert struct.unpack("<I", _events._masked_crc(b"123456789"))[0] == (0xE3069283 >> 15 | 0xE3069283 << 17) + 0xA282EAD8 & 0xFFFFFFFF


def test_values_come_back(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", clnn.tensor(0.5), 3)
        writer.add_histogram("weights", clnn.tensor([0.0, 1.0, 1.0, -2.0]), 4, bins=[-2.0, -1.0, 0.0, 1.0, 2.0])
        writer.add_image("image", clnn.tensor([[[0.0, 1.0]], [[0.0, 0.5]], [[1.0, 0.0]]]), 5)
        writer.add_text("note", "*hi*")
        writer.add_scalars("both", {"a": 1, "b": clnn.tensor(2)}, 1)
        writer.add_hparams({"lr": 0.1, "name": "x"}, {"acc": 1.0}, run_name="run")
        writer.add_pr_curve("curve", [0, 1], [0.2, 0.8], num_thresholds=3)
    got = values(tmp_path)
    assert got["loss"] == (3, {1: [b"loss"], 2: [0.5]})
    step, value = got["weights"]
    histogram = fields(value[5][0])
    assert step == 4 and [histogram[i][0] for i in range(1, 6)] == [-2.0, 1.0, 4.0, 0.0, 6.0]
    assert np.frombuffer(histogram[6][0]).tolist() == [-2, -1, 0, 1, 2] and np.frombuffer(histogram[7][0]).tolist() == [0, 1, 0, 1, 2]
    image = fields(got["image"][1][4][0])
    assert [image[i][0] for i in (1, 2, 3)] == [1, 2, 3]
    pixels = image[4][0].split(b"IDAT")[1].split(b"IEND")[0]
    assert zlib.decompress(pixels[:-8]) == bytes([0, 0, 0, 255, 255, 127, 0])
    assert fields(got["note/text_summary"][1][8][0])[8] == [b"*hi*"]
    assert [values(tmp_path / f"both_{c}")["both"][1][2] for c in "ab"] == [[1.0], [2.0]]
    assert set(values(tmp_path / "run")) == {"_hparams_/experiment", "_hparams_/session_start_info", "_hparams_/session_end_info", "acc"}
    assert np.frombuffer(fields(got["curve"][1][8][0])[5][0], "f").reshape(6, 3)[:, 1].tolist() == [1, 0, 1, 0, 1, 1]


def test_values_that_cannot_be_written_are_refused(tmp_path):
    writer = SummaryWriter(tmp_path, flush_secs=0)
    for call, error, text in ((lambda: writer.add_scalar("x", clnn.ones(2)), AssertionError, "one value"),
                              (lambda: writer.add_scalar("x", "text"), NotImplementedError, "text"),
                              (lambda: writer.add_image("x", clnn.ones(2, 2)), AssertionError, "input_format: CHW"),
                              (lambda: writer.add_histogram("x", clnn.ones(0)), ValueError, "no element"),
                              (lambda: writer.add_hparams({"a": [1]}, {}), ValueError, "int, float, str, bool"),
                              (lambda: writer.add_video("x", clnn.ones(1)), NotImplementedError, "tensorboardX")):
        with pytest.raises(error, match=text):
            call()
    writer.close()


def test_tensorboard_reads_the_files(tmp_path):
    event_pb2 = pytest.importorskip("tensorboard.compat.proto.event_pb2")
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", 0.5, 3)
        writer.add_audio("sound", clnn.tensor([0.0, 0.5]), 1, 8000)
        writer.add_graph(nn.ReLU(), clnn.ones(2))
    path, = tmp_path.iterdir()
    events = [event_pb2.Event.FromString(raw) for raw in records(path)]
    assert (events[1].step, events[1].summary.value[0].simple_value) == (3, 0.5) and events[2].summary.value[0].audio.length_frames == 2
    assert b"relu" in events[3].graph_def
