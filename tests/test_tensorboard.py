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



def test_arguments_are_those_of_pytorch(tmp_path):
    from clnn.utils.tensorboard import SummaryWriter
    from tensorboardX.proto.plugin_hparams_pb2 import HParamsPluginData
    with SummaryWriter(str(tmp_path), max_queue=3) as writer:
        writer.add_scalar("old", clnn.tensor([2.5]), 1)
        writer.add_scalar("new", 0.5, 2, new_style=True, double_precision=True)
        writer.add_scalars("a/b", {"c": 1.0})
        writer.add_tensor("t", clnn.arange(6).reshape(2, 3))
        writer.add_audio("sound", clnn.linspace(-1, 1, 50).reshape(1, 50), sample_rate=100)
        writer.add_hparams({"lr": 0.1, "n": clnn.tensor(2)}, {"loss": 0.5}, {"lr": [0.1, 0.2]}, run_name="one", global_step=4)
        assert writer.max_queue == 3
        for wrong in (lambda: writer.add_scalar("two", clnn.ones(2)), lambda: writer.add_audio("two", clnn.ones(2, 5))):
            with pytest.raises(AssertionError, match="0 dimensions|1 dimensional"):
                wrong()
        with pytest.raises(TypeError, match="hparam_domain_discrete"):
            writer.add_hparams({"lr": 0.1}, {}, {"other": [1]})
    values = {v.tag: (e.step, v) for e in events(tmp_path) for v in e.summary.value}
    assert values["old"][1].simple_value == 2.5 and list(values["new"][1].tensor.double_val) == [0.5]
    assert list(values["t"][1].tensor.int64_val) == list(range(6)) and [d.size for d in values["t"][1].tensor.tensor_shape.dim] == [2, 3]
    assert values["sound"][1].audio.length_frames == 50 and values["loss"][0] == 4
    assert (tmp_path / "a_b_c").is_dir() and (tmp_path / "one").is_dir()
    experiment = HParamsPluginData.FromString(values["_hparams_/experiment"][1].metadata.plugin_data.content).experiment
    assert {i.name: list(i.domain_discrete) for i in experiment.hparam_infos} == {"lr": [0.1, 0.2], "n": []}
