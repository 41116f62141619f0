"""The profiler, clnn.summary and the examples that show them."""
import gzip
import json
import runpy
import time
from pathlib import Path

import pytest

import clnn
from clnn import nn
from clnn.profiler import (ProfilerAction, ProfilerActivity, profile, record_function, schedule, supported_activities, tensorboard_trace_handler)

ROOT = Path(__file__).resolve().parent.parent


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64))
        self.head = nn.Linear(64, 4)

    def forward(self, x):
        return self.head(self.body(x).tanh())


@pytest.fixture(scope="module")
def step():
    clnn.manual_seed(0)
    net, x = Net(), clnn.randn(16, 32)
    optimizer = clnn.optim.AdamW(net.parameters())

    def run():
        optimizer.zero_grad()
        loss = net(x).exp().mean()
        loss.backward()
        optimizer.step()
        return loss.item()
    run()
    return run


@pytest.fixture(scope="module")
def prof(step):
    with profile(record_shapes=True, profile_memory=True, with_stack=True) as p:
        with record_function("train"):
            step()
    return p


# -- attribution ----------------------------------------------------------------------------------------------------------------

def test_operators_have_their_registry_names(prof):
    rows = {r.key: r for r in prof.key_averages()}
    assert rows["_linear2d"].count == 3 and rows["_linear2d"].self_device_time_total > 0
    assert rows["train"].count == 1 and rows["Optimizer.step#AdamW.step"].count == 1
    assert {"AddmmBackward0", "TanhBackward0", "mm", "exp"} <= rows.keys()
    assert rows["train"].cpu_time_total >= rows["_linear2d"].cpu_time_total > 0
    assert rows["train"].device_time_total > 0


def test_a_fused_kernel_names_its_operators_and_module(prof):
    by_operator = {x.operator: x for x in prof.launches()}
    assert any("exp" in name and "mean" in name for name in by_operator)
    relu = next(x for x in prof.launches() if "relu" in x.operator)
    assert relu.module == "Net.body.1" and relu.kernel == "fused" and relu.bytes == 2 * 16 * 64 * 4
    tanh = next(x for x in prof.launches() if "tanh" in x.operator.lower() and "Backward" not in x.operator)
    assert tanh.module == "Net"


def test_backward_kernels_belong_to_the_module_of_their_forward_call(prof):
    products = [x for x in prof.launches() if x.operator == "AddmmBackward0/mm"]
    assert {x.module for x in products} == {"Net.body.0", "Net.body.2", "Net.head"}
    relu = [x for x in prof.launches() if "ReluBackward0" in x.operator]
    assert relu and all(x.module == "Net.body.1" for x in relu)


def test_products_have_work_and_rates(prof):
    launch = max((x for x in prof.launches() if x.operator == "_linear2d" and x.module == "Net.body.2"), key=lambda x: x.flops or 0)
    assert launch.flops == 2 * 16 * 64 * 64
    row = next(r for r in prof.kernels() if r.operator == "_linear2d" and r.module == "Net.body.2" and r.flops)
    assert row.flop_rate > 0 and row.bandwidth > 0


def test_optimizer_update_is_one_row(prof):
    rows = [r for r in prof.kernels() if r.operator == "foreach_update"]
    assert len(rows) == 1 and rows[0].count == 1 and rows[0].module == ""


def test_module_rows(prof):
    rows = {r.key: r for r in prof.modules()}
    assert rows["Net.body.0"].type == "Linear" and rows["Net.body.0"].forward_ns > 0 and rows["Net.body.0"].backward_ns > 0
    assert rows["Net.body"].device_ns == 0 and rows["Net"].count == 1


def test_copies_are_seen(prof):
    assert any(x.kernel == "Memcpy DtoH" and x.bytes == 4 for x in prof.launches())
    assert any(e.name.startswith("copy to host") for e in prof.events())


def test_device_and_host_share_a_clock(prof):
    window, noted = prof._finished, prof._finished.started
    for x in prof.launches():
        assert x.start is not None and x.end >= x.start
        # not its own x.queued: the host notes that after the call, however long others had the core in between
        assert noted - 20e6 < x.start and x.end < window.stopped + 20e6
        noted = x.queued
    ends = [x.start for x in prof.launches()]
    assert ends == sorted(ends), "an in-order queue runs launches in order"


# -- events and tables -------------------------------------------------------------------------------------------------------------

def test_events_nest(prof):
    train = next(e for e in prof.events() if e.name == "train")
    linear = next(e for e in prof.events() if e.name == "_linear2d")
    parent = linear
    while parent.parent is not None:
        assert parent.parent.start <= parent.start and parent.end <= parent.parent.end
        parent = parent.parent
    assert parent is train
    assert linear.input_shapes[:2] == [[16, 32], [64, 32]] and any("test_profiler" in line for line in linear.stack)
    assert train.self_cpu_time_total < train.cpu_time_total


def test_tables(prof):
    assert prof.events().devices == (clnn.get_default_device().physical,), "a device that the program opened but did not use has no line"
    text = prof.key_averages().table(sort_by="self_device_time_total", row_limit=3)
    assert "Self device %" in text and "GFLOP/s (of peak)" in text and "Memory" in text and "computes" in text
    assert len([line for line in text.splitlines() if line and not line.startswith(("-", "Self", "Name"))]) == 4
    assert "Input shapes" in prof.key_averages(group_by_input_shape=True).table(row_limit=2)
    assert "Source" in prof.key_averages(group_by_stack_n=2).table(row_limit=2)
    assert "Net.body.0" in prof.key_averages(group_by_module=True).table(row_limit=-1)
    assert "AddmmBackward0/mm" in prof.kernels().table() and "Share" in prof.kernels().table()
    assert "Net.head" in prof.modules().table(header="modules")
    assert prof.kernels()._repr_html_().startswith("<pre>")
    with pytest.raises(ValueError, match="unknown sort_by"):
        prof.key_averages().table(sort_by="beauty")


def test_sorting(prof):
    times = [line.split()[0] for line in prof.key_averages().table(sort_by="count", row_limit=-1).splitlines()]
    assert len(times) > 5
    total = prof.total_average()
    assert total.device_ns == sum(r.device_ns for r in prof.key_averages())


def test_memory_of_operators():
    with profile(profile_memory=True) as p:
        a = clnn.ones(256, 256) @ clnn.ones(256, 256)
    rows = {r.key: r for r in p.key_averages()}
    assert rows["mm"].device_memory_usage >= 256 * 256 * 4
    del a


def test_shapes_group(step):
    a, b = clnn.ones(4, 4), clnn.ones(8, 8)
    with profile(record_shapes=True) as p:
        (a @ a, a @ a, b @ b)
    rows = [r for r in p.key_averages(group_by_input_shape=True) if r.key == "mm"]
    assert sorted((r.count, r.input_shapes) for r in rows) == [(1, [[8, 8], [8, 8]]), (2, [[4, 4], [4, 4]])]


# -- files ----------------------------------------------------------------------------------------------------------------------

def test_chrome_trace(prof, tmp_path):
    prof.add_metadata("note", "hello")
    prof.export_chrome_trace(tmp_path / "trace.json")
    data = json.loads((tmp_path / "trace.json").read_text())
    events = data["traceEvents"]
    kernels = [e for e in events if e.get("cat") == "kernel"]
    assert data["note"] == "hello" and len(kernels) == sum(not x.kernel.startswith("Mem") for x in prof.launches())
    assert {"operator", "module", "global size"} <= kernels[0]["args"].keys()
    train = next(e for e in events if e["name"] == "train")
    assert train["ph"] == "X" and train["cat"] == "user_annotation"
    assert all(train["ts"] - 20e3 <= k["ts"] <= train["ts"] + train["dur"] + 20e3 for k in kernels)
    starts, ends = ({e["id"] for e in events if e["ph"] == ph} for ph in "sf")
    assert starts == ends and starts
    assert any(e["ph"] == "C" for e in events)
    prof.export_chrome_trace(str(tmp_path / "trace.json.gz"))
    assert json.loads(gzip.open(tmp_path / "trace.json.gz").read())["traceEvents"]


def test_stacks(prof, tmp_path):
    prof.export_stacks(tmp_path / "stacks.txt", "self_cpu_time_total")
    lines = (tmp_path / "stacks.txt").read_text().splitlines()
    assert lines and all(line.rpartition(" ")[2].isdigit() for line in lines) and any("_linear2d" in line for line in lines)
    with pytest.raises(ValueError, match="metric"):
        prof.export_stacks(tmp_path / "stacks.txt", "beauty")


# -- schedule -------------------------------------------------------------------------------------------------------------------

def test_schedule_function():
    plan = schedule(skip_first=2, wait=1, warmup=1, active=2, repeat=2)
    A = ProfilerAction
    cycle = [A.NONE, A.WARMUP, A.RECORD, A.RECORD_AND_SAVE]
    assert [plan(i) for i in range(12)] == [A.NONE] * 2 + cycle * 2 + [A.NONE] * 2
    torch = pytest.importorskip("torch")
    other = torch.profiler.schedule(skip_first=2, wait=1, warmup=1, active=2, repeat=2)
    assert [plan(i).name for i in range(12)] == [other(i).name for i in range(12)]
    with pytest.raises(AssertionError, match="active"):
        schedule(wait=0, warmup=0, active=0)


def test_scheduled_profile(tmp_path):
    seen = []
    x = clnn.ones(8, 8)
    with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=2), on_trace_ready=lambda p: seen.append(
            (p.step_num, {e.name for e in p.events() if e.name.startswith("ProfilerStep")},
             sum(e.name == "mm" for e in p.events())))) as p:
        for _ in range(9):
            x @ x
            p.step()
    assert seen == [(4, {"ProfilerStep#2", "ProfilerStep#3"}, 2), (8, {"ProfilerStep#6", "ProfilerStep#7"}, 2)]


def test_trace_handler(tmp_path):
    with profile(on_trace_ready=tensorboard_trace_handler(str(tmp_path / "log"), "w", use_gzip=True)):
        clnn.ones(4).sum().item()
    file, = (tmp_path / "log").iterdir()
    assert file.name.startswith("w.") and file.name.endswith(".pt.trace.json.gz")


# -- life cycle -----------------------------------------------------------------------------------------------------------------

def test_nothing_stays_behind(step):
    from clnn._tensor import dispatch, elementwise, tape
    from clnn.graph import fuse, node
    from clnn.nn.modules import _hooks
    from clnn.runtime import launch
    from clnn.runtime.device import Device
    watched = [(dispatch, "record_elementwise"), (elementwise, "record_elementwise"), (elementwise, "record_briefly"),
               (node, "record"), (fuse, "run"), (fuse, "allocate"),
               (tape, "_step"), (Device, "read"), (Device, "_call"), (_hooks.HookMixin, "_maybe_hooked"), (clnn, "matmul"),
               (clnn.Tensor, "matmul"), (launch, "recorders")]
    before = [getattr(owner, name) for owner, name in watched]
    body = clnn.mm.__closure__[clnn.mm.__code__.co_freevars.index("body")].cell_contents
    queue = clnn.get_default_device().physical.queue
    with profile():
        assert dispatch.record_elementwise is not before[0] and clnn.get_default_device().physical.queue is not queue
        step()
    assert [getattr(owner, name) for owner, name in watched] == before
    assert clnn.mm.__closure__[clnn.mm.__code__.co_freevars.index("body")].cell_contents is body
    assert clnn.get_default_device().physical.queue is queue
    step()


def test_after_an_error_all_is_restored():
    from clnn.graph import fuse
    run = fuse.run
    net = Net()
    hooked = net._maybe_hooked                 # sticky once any global hook was registered in this process
    with pytest.raises(RuntimeError):
        with profile():
            net(clnn.ones(2, 3))
    assert fuse.run is run and net._maybe_hooked is hooked
    with profile() as p:
        net(clnn.ones(2, 32)).sum().item()
    assert "Net.body.0" in {r.key for r in p.modules()}


def test_profiles_do_not_nest():
    with profile():
        with pytest.raises(RuntimeError, match="another profile"):
            profile().start()


def test_results_need_a_recording():
    with pytest.raises(RuntimeError, match="nothing was recorded"):
        profile().key_averages()


def test_record_function_without_a_profile():
    @record_function("work")
    def work(x):
        return x + 1
    assert work(1) == 2
    with profile() as p:
        assert work(2) == 3 and work(3) == 4
    row = next(r for r in p.key_averages() if r.key == "work")
    assert row.count == 2


def test_activities():
    assert supported_activities() == {ProfilerActivity.CPU, ProfilerActivity.CUDA} and ProfilerActivity.XPU is ProfilerActivity.GPU
    with profile(activities=[ProfilerActivity.CPU]) as p:
        (clnn.ones(8, 8) @ clnn.ones(8, 8)).sum().item()
    assert any(r.key == "mm" for r in p.key_averages())


def test_sleep_is_host_time():
    with profile() as p:
        with record_function("sleep"):
            time.sleep(0.02)
    row = next(r for r in p.key_averages() if r.key == "sleep")
    assert row.cpu_time_total >= 19e3 and row.device_time_total == 0


def test_recomputed_modules_keep_their_place():
    from clnn.utils.checkpoint import checkpoint
    net, x = Net(), clnn.randn(4, 32)
    with profile() as p:
        checkpoint(net, x, use_reentrant=False).sum().backward()
        [q.grad.sum().item() for q in net.parameters()]
    rows = {r.key: r for r in p.modules()}
    assert rows["Net.body.0"].count == 2 and rows["Net.body.0"].backward_ns > 0


def test_replayed_launches_are_seen():
    from clnn.runtime.capture import Recording
    device = clnn.get_default_device().physical
    x = clnn.ones(32)
    x._storage.buffer()
    recording = Recording(device)
    with recording:
        y = x.exp() + 1
        y._storage.buffer()
    recording.finish()
    recording.replay()
    plain = y.tolist()
    with profile() as p:
        recording.replay()
    assert {(x.kernel, x.operator) for x in p.launches()} == {("fused", "(replayed)")}
    recording.replay()
    assert y.tolist() == plain


# -- rates of the device --------------------------------------------------------------------------------------------------------------

def test_measured_rates(device):
    from clnn.runtime.timing import copy_bandwidth, peak_flops
    if device.flavour == "oclgrind":
        pytest.skip("a simulator")
    assert 1e8 < copy_bandwidth(device) < 1e14 and 1e8 < peak_flops(device) < 1e16
    assert peak_flops(device) == peak_flops(device)


# -- summary --------------------------------------------------------------------------------------------------------------------------

def test_summary_counts():
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 16, 5))
    report = clnn.summary(net, (2, 3, 4, 4))
    conv, relu, flat, linear = report.layers[1:]
    assert conv.output_size == [(2, 8, 4, 4)] and conv.params == 216 and conv.mult_adds == 2 * 16 * 216
    assert (linear.params, linear.mult_adds, linear.output_bytes) == (645, 2 * 640, 40)
    assert report.total_params == report.trainable_params == 861 and report.total_mult_adds == conv.mult_adds + 1280
    assert report.input_bytes == 2 * 48 * 4 and report.param_bytes == 861 * 4 and relu.params == 0 and flat.output_size == [(2, 128)]


def test_summary_leaves_the_model_alone():
    net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)).train()
    net[0].eval()
    before, state = clnn.get_rng_state(), {k: v.clone() for k, v in net.state_dict().items()}
    clnn.summary(net, (3, 4), mode="train")
    assert net.training and not net[0].training and not net[0]._forward_hooks and clnn.equal(before, clnn.get_rng_state())
    assert all(clnn.equal(v, net.state_dict()[k]) for k, v in state.items())
    assert net[0].weight.grad is None


def test_summary_text_and_html():
    net = Net()
    text = str(clnn.summary(net, (2, 32)))
    assert "  body (Sequential)" in text and "    0 (Linear)" in text and "[2, 64]" in text and "2,112" in text
    shallow = str(clnn.summary(net, (32,), batch_dim=0, depth=1, col_names=("input_size", "num_params", "trainable", "dtype")))
    assert "[1, 32]" in shallow and "6,272" in shallow and "0 (Linear)" not in shallow
    page = clnn.summary(net)._repr_html_()
    assert page.startswith("<table") and "Parameters" in page
    assert "<details" in net._repr_html_() and "in_features=32" in net._repr_html_()


def test_summary_inputs():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.shared, self.unused = nn.Linear(3, 3), nn.Linear(2, 2)

        def forward(self, a, b=None):
            a = self.shared(self.shared(a))
            return {"sum": a if b is None else a + b}
    net = Two()
    report = clnn.summary(net, [(2, 3), (2, 3)])
    assert [x.repeated for x in report.layers if x.name == "shared"] == [False, True] and "(shared)" in str(report)
    assert "(not called)" in str(report)
    assert clnn.summary(net, input_data={"a": clnn.ones(1, 3), "b": clnn.ones(3)}).layers[0].output_size == [(1, 3)]
    assert clnn.summary(net, input_data=clnn.ones(1, 3), b=clnn.ones(3)).total_mult_adds == 18
    tokens = nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 2))
    assert clnn.summary(tokens, (2, 7), dtypes=[clnn.long]).layers[-1].output_size == [(2, 7, 2)]
    with pytest.raises(ValueError, match="unknown column"):
        clnn.summary(net, col_names=("colour",))
    with pytest.raises(ValueError, match="not both"):
        clnn.summary(net, (1, 3), input_data=clnn.ones(1, 3))


@pytest.mark.parametrize("name", ["profile_training", "model_summary"])
def test_examples(name, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", [name])
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    assert "Conv2d" in capsys.readouterr().out


def test_events_have_torchs_attributes(prof):
    row = prof.key_averages()[0]
    assert row.cpu_time_total_str.endswith("s") and row.self_cpu_time_total_str and row.device_time_str and row.device_type.name == "CPU"
    with pytest.raises(AttributeError, match="no attribute 'colour'"):
        row.colour
    event = prof.events()[0]
    assert event.name in prof.events().table(sort_by="cpu_time_total", row_limit=-1)
    assert event.time_range.elapsed_us() == pytest.approx(event.cpu_time_total, rel=1e-3, abs=0.1) and event.id == id(event)
    assert any(e.is_user_annotation for e in prof.events()) == any(e.kind == "range" for e in prof.events())


def test_earlier_work_is_not_counted():
    waiting = clnn.ones(7) * 3
    with profile() as p:
        y = clnn.ones(5).exp()
        clnn.synchronize()
    assert waiting._storage.node is None and y.shape == (5,)
    assert sum(r.count for r in p.kernels()) == 1


def test_the_older_profiler():
    x = clnn.ones(3)
    with clnn.autograd.profiler.profile(use_cpu=True) as watched:
        clnn.dot(x, x).item()
    with clnn.autograd.profiler.profile(False) as idle:
        clnn.dot(x, x).item()
    assert len(watched.key_averages()) > 0
    with pytest.raises(RuntimeError, match="nothing was recorded"):
        idle.key_averages()
