"""SummaryWriter: what is written for clnn's tensors comes back from the files."""
import struct

import pytest

import clnn

tensorboardX = pytest.importorskip("tensorboardX")


def events(folder):
    from tensorboardX.proto.event_pb2 import Event
    found = []
    for path in folder.rglob("events*"):
        data, at = path.read_bytes(), 0
        while at < len(data):
            n, = struct.unpack_from("<Q", data, at)
            found.append(Event.FromString(data[at + 12:at + 12 + n]))
            at += n + 16
    return found


def test_values_come_back(tmp_path):
    from clnn.utils.tensorboard import SummaryWriter
    x = clnn.arange(12.0).requires_grad_()
    with SummaryWriter(log_dir=str(tmp_path)) as writer:
        writer.add_scalar("loss", x.sum(), 3)
        writer.add_scalars("both", {"a": clnn.tensor(1.5), "b": 2.5}, 1)
        writer.add_histogram("weights", x.bfloat16(), 1)
        writer.add_image("picture", clnn.rand(3, 4, 5), 1)
        writer.add_hparams({"lr": 0.1}, {"accuracy": clnn.tensor(0.5)})
        writer.add_pr_curve("curve", clnn.tensor([0, 1, 1, 0]), clnn.rand(4), 1)
        writer.add_graph(clnn.nn.Sequential(clnn.nn.Linear(2, 3), clnn.nn.ReLU()), clnn.randn(1, 2))
        assert writer.get_logdir() == writer.log_dir == str(tmp_path)
    values = {v.tag: (e.step, v) for e in events(tmp_path) for v in e.summary.value}
    assert values["loss"][0] == 3 and values["loss"][1].simple_value == 66.0
    both = [v.simple_value for e in events(tmp_path) for v in e.summary.value if v.tag == "both"]      # a file for each of them
    assert sorted(both) == [1.5, 2.5]
    assert values["weights"][1].histo.num == 12 and values["weights"][1].histo.max == 11.0
    assert (values["picture"][1].image.width, values["picture"][1].image.height) == (5, 4)
    assert values["accuracy"][1].simple_value == 0.5 and "curve" in values
    from tensorboardX.proto.graph_pb2 import GraphDef
    graphs = [GraphDef.FromString(e.graph_def) for e in events(tmp_path) if e.graph_def]
    assert any("relu" in node.op for node in graphs[0].node)
