"""Small modules around the library: versions, futures, counting operations, swapping, one module on several devices."""
import doctest
import importlib
import subprocess
import sys
import threading

import numpy as np
import pytest
from scenarios import assert_same

import clnn
from clnn import library, nn
from clnn.torch_version import TorchVersion
from clnn.utils.flop_counter import FlopCounterMode, register_flop_formula


def test_versions_compare_as_versions():
    theirs = pytest.importorskip("torch.torch_version").TorchVersion
    others = ["1.9", "1.10", "1.10.0", "1.10.1", "1.10.0a1", "1.10.0.post1", "1.10.0rc2", "1.10.0.dev3", "2", (1, 10), (1, 10, 1), "not a version", "1.10.0+cpu"]
    for own in ("1.10.0", "1.10.0+cpu", "1.10.0a0", "2.0.1"):
        for other in others:
            for test in ("__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__"):
                assert getattr(TorchVersion(own), test)(other) == getattr(theirs(own), test)(other), (own, test, other)
    assert isinstance(clnn.torch_version.__version__, str) and clnn.torch_version.__version__ == clnn.__version__


def test_futures():
    future = clnn.futures.Future()
    after = future.then(lambda f: f.wait() * 2).then(lambda f: f.value() + 1)
    failed = future.then(lambda f: 1 / 0)
    seen = []
    future.add_done_callback(lambda f: seen.append(f.value()))
    assert not future.done() and not after.done()
    with pytest.raises(RuntimeError, match="completed"):
        future.value()
    threading.Timer(0.01, future.set_result, [3]).start()
    assert after.wait() == 7 and seen == [3] and future.done()
    with pytest.raises(ZeroDivisionError):
        failed.wait()
    with pytest.raises(RuntimeError, match="already marked completed"):
        future.set_result(1)
    with pytest.raises(AssertionError, match="not an Exception"):
        clnn.futures.Future().set_exception("text")
    assert clnn.futures.wait_all([future, after]) == [3, 7]


def count(m, mode):
    net = m.nn.Sequential(m.nn.Conv2d(3, 4, 3), m.nn.Flatten(), m.nn.Linear(4 * 6 * 6, 5))
    x = m.ones(2, 3, 8, 8)
    with mode(display=False) as counter:
        net(x).sum().backward()
        m.bmm(m.ones(2, 3, 4), m.ones(2, 4, 5))
    return counter


def test_operations_are_counted():
    theirs = pytest.importorskip("torch.utils.flop_counter")
    import torch
    a, b = count(clnn, FlopCounterMode), count(torch, theirs.FlopCounterMode)
    assert a.get_total_flops() == b.get_total_flops()
    mine, other = a.get_flop_counts(), b.get_flop_counts()
    assert {name: {str(op): n for op, n in ops.items()} for name, ops in mine.items()} == {name: {str(op): n for op, n in ops.items()} for name, ops in other.items()}
    assert a.get_table(1).splitlines()[1:4] == ["-" * 29 + "  " + "-" * 7 + "  " + "-" * 9, "Global                         39.984K    100.00%",
                                                " - aten.convolution            15.552K     38.90%"]
    shapes = (2, 4, 5, 8), (2, 2, 7, 8), (2, 2, 7, 6)
    for name, args in dict(mm_flop=((2, 3), (3, 4)), baddbmm_flop=((1,), (2, 3, 4), (2, 4, 5)), conv_flop_count=([1, 3, 8, 8], [3, 4, 3, 3], [1, 4, 10, 10], True),
                           sdpa_flop_count=shapes, sdpa_backward_flop_count=((2, 4, 5, 6), *shapes), get_suffix_str=(12345,)).items():
        assert getattr(clnn.utils.flop_counter, name)(*args) == getattr(theirs, name)(*args)


def test_callbacks_at_the_end_of_a_backward_pass():
    for m in (clnn, pytest.importorskip("torch")):
        queue, seen = m.autograd.Variable._execution_engine.queue_callback, []
        x = m.ones(2, requires_grad=True)
        y = x * 2
        y.register_hook(lambda g: queue(lambda: seen.append(x.grad.tolist())))
        y.sum().backward()
        assert seen == [[2.0, 2.0]]
        with pytest.raises(RuntimeError, match="Final callbacks can only be installed during backward pass"):
            queue(print)


def test_statistics_become_events():
    from datetime import timedelta
    for m in (clnn, pytest.importorskip("torch")):
        monitor, seen = m.monitor, []
        handle = monitor.register_event_handler(seen.append)
        stat = monitor.Stat("s", [getattr(monitor.Aggregation, n) for n in ("SUM", "COUNT", "MEAN", "MAX", "MIN")], timedelta(hours=10), max_samples=3)
        for value in (1.0, 3, 2):
            assert set(stat.get().values()) == {0.0}
            stat.add(value)
        monitor.unregister_event_handler(handle)
        stat.add(5)
        assert stat.count == 0 and len(seen) == 1 and seen[0].name == "torch.monitor.Stat"
        assert seen[0].data == {"s.sum": 6.0, "s.count": 3.0, "s.mean": 2.0, "s.max": 3.0, "s.min": 1.0}
        with pytest.raises(TypeError):
            monitor.Stat("s", [], 1)


def test_exchange_between_devices():
    """``cuda.comm``, and the functions that old layers synchronise statistics with."""
    from clnn.nn import _exchange as comm
    place = clnn.ones(1).device
    a, b = clnn.ones(2, requires_grad=True), clnn.full((2,), 2.0, requires_grad=True)
    total, = comm.ReduceAddCoalesced.apply(place, 1, a, b)
    sent = comm.Broadcast.apply([place, place], total, a)
    assert len(sent) == 4 and total.tolist() == [3.0, 3.0]
    (comm.Gather.apply(place, 0, *sent) * 2).sum().backward()
    assert a.grad.tolist() == [8.0, 8.0] and b.grad.tolist() == [4.0, 4.0]
    assert [p.tolist() for p in comm.scatter(clnn.arange(4), [place, place], [1, 3])] == [[0], [1, 2, 3]]
    with pytest.raises(ValueError, match="input 1 has invalid size: got 3, but expected 2"):
        comm.reduce_add([a, clnn.ones(3)])


def test_custom_operators_are_counted():
    @library.custom_op("shop::triple", mutates_args=())
    def triple(x: clnn.Tensor) -> clnn.Tensor:
        return x * 3

    @register_flop_formula(clnn.ops.shop.triple)
    def formula(shape, *, out_shape):
        return shape.numel()
    with FlopCounterMode(display=False) as counter:
        triple(clnn.ones(2, 5))
    assert counter.get_total_flops() == 10 and {str(k) for k in counter.get_flop_counts()["Global"]} == {"shop.triple"}
    clnn._custom.forget("shop::triple")


def test_swapping():
    a, b = nn.Parameter(clnn.ones(2)), clnn.zeros(3, dtype=clnn.int64)
    b.tag = "b"
    holder = {"first": a, "second": b}
    clnn.utils.swap_tensors(a, b)
    assert type(holder["first"]) is clnn.Tensor and holder["first"].tolist() == [0, 0, 0] and holder["first"].tag == "b"
    assert type(holder["second"]) is nn.Parameter and holder["second"].requires_grad
    u, v = clnn.ones(2, requires_grad=True), clnn.full((2,), 2.0, requires_grad=True)
    (u * u).sum().backward()
    clnn.utils.swap_tensors(u, v)
    assert u.tolist() == [2.0, 2.0] and u.grad is None and v.grad.tolist() == [2.0, 2.0]
    (u * u).sum().backward()
    assert u.grad.tolist() == [4.0, 4.0]


def _parameters_in_place(lib):
    """What is still the same parameter after a conversion and a load, by the switches of ``__future__``."""
    switches, seen = lib.__future__, []
    for swap, overwrite in ((False, False), (True, False), (False, True)):
        switches.set_swap_module_params_on_conversion(swap), switches.set_overwrite_module_params_on_conversion(overwrite)
        try:
            net = lib.nn.Linear(2, 1)
            old = [net.weight, net.bias]
            net(lib.ones(1, 2)).sum().backward()
            net.to(lib.float64)
            seen += [[a is b for a, b in zip(old, net.parameters())], [p.dtype for p in net.parameters()], [p.grad is not None for p in old], net.weight.grad.dtype]
            for assign in (False, True):
                seen.append(str(net.load_state_dict({"weight": lib.ones(1, 2), "bias": lib.zeros(1)}, assign=assign)))
                seen += [[a is b for a, b in zip(old, net.parameters())], net.weight, net.weight.dtype]
        finally:
            switches.set_swap_module_params_on_conversion(False), switches.set_overwrite_module_params_on_conversion(False)
    return seen


def test_parameters_in_place():
    assert_same(_parameters_in_place)


def test_control_flow():
    from clnn._higher_order_ops import associative_scan, foreach_map, scan
    from clnn._higher_order_ops import map as each                  # PyTorch's own take seconds each to compile, so nothing is compared with them here
    x = clnn.arange(12.0).view(3, 4).requires_grad_()
    carry, rows = scan(lambda c, a: (c + a, c * a), clnn.zeros(3), x, dim=1)
    assert carry.tolist() == [6, 22, 38] and rows.tolist() == [[0, 0, 2, 9], [0, 20, 54, 105], [0, 72, 170, 297]]
    carry.sum().backward()
    assert x.grad.tolist() == [[1.0] * 4] * 3
    carry, rows = scan(lambda c, a: (c + a["x"], c * a["y"]), clnn.zeros(4), {"x": x, "y": x + 1}, reverse=True)
    assert carry.tolist() == [12, 15, 18, 21] and rows.shape == (3, 4) and rows[2].tolist() == [0] * 4 and rows[0, 0] == 12
    assert associative_scan(lambda a, b: a * b, x + 1, 1, reverse=True).equal((x + 1).flip(1).cumprod(1).flip(1))
    assert each(lambda a, k: a[0] * k + a[1], (x, x), clnn.tensor(2)).equal(x * 3) and len(foreach_map(clnn.add, [x, x], [x, x], alpha=2)) == 2
    for wrong in (lambda: each(lambda a: a, clnn.zeros(0, 2)), lambda: foreach_map(clnn.add, [x], [x, x]), lambda: scan(3, x, x), lambda: scan(each, x, [])):
        with pytest.raises(RuntimeError):
            wrong()


def test_one_module_on_several_devices():
    net = nn.Sequential(nn.Linear(2, 1, bias=False), nn.BatchNorm1d(1, affine=False)).eval()
    with clnn.no_grad():
        net[0].weight.fill_(1.0)
    places = [clnn.get_default_device()] * 2
    inputs, kwargs = nn.parallel.scatter_kwargs((clnn.arange(8.0).reshape(4, 2), 3), {"flag": True}, places)
    assert [t[0].shape[0] for t in inputs] == [2, 2] and [t[1] for t in inputs] == [3, 3] and kwargs == ({"flag": True},) * 2
    replicas = nn.parallel.replicate(net, places)
    assert replicas[0][0].weight is net[0].weight or replicas[0][0].weight.data_ptr() == net[0].weight.data_ptr()
    outs = nn.parallel.parallel_apply(replicas, [t[:1] for t in inputs])
    whole = nn.parallel.gather([{"y": o, "s": o.sum()} for o in outs], places[0])
    assert whole["y"].shape == (4, 1) and whole["s"].shape == (2,)
    whole["y"].sum().backward()
    expected = clnn.arange(8.0).reshape(4, 2).sum(0) / (1 + 1e-5) ** 0.5
    assert clnn.allclose(net[0].weight.grad[0], expected)
    with pytest.raises(AssertionError, match="number of modules"):
        nn.parallel.parallel_apply([net], [])


def test_the_environment_is_described():
    text = clnn.utils.collect_env.get_pretty_env_info()
    assert f"clnn version: {clnn.__version__}" in text and "Device" in text and "numpy==" in text
    assert clnn.utils.deterministic.fill_uninitialized_memory is True


@pytest.mark.parametrize("options", [{}, dict(scramble=True, seed=7), dict(scramble=True, seed=123456)], ids=str)
@pytest.mark.parametrize("dimension", [1, 5, 60, 1111])
def test_sobol_points_are_those_of_pytorch(dimension, options):
    torch = pytest.importorskip("torch")
    mine, theirs = clnn.quasirandom.SobolEngine(dimension, **options), torch.quasirandom.SobolEngine(dimension, **options)
    for step in (lambda e: e.draw(1), lambda e: e.draw(9), lambda e: e.fast_forward(5).draw(3), lambda e: e.draw_base2(1) if e.num_generated == 2 else e.draw(2),
                 lambda e: e.reset().draw_base2(4), lambda e: e.draw_base2(4)):
        assert step(mine).tolist() == step(theirs).tolist() and mine.num_generated == theirs.num_generated
    assert repr(mine) == repr(theirs)
    with pytest.raises(ValueError, match="power of 2"):
        mine.draw_base2(2)


def test_sobol_engine():
    with pytest.raises(ValueError, match="range of dimensionality"):
        clnn.quasirandom.SobolEngine(0)
    clnn.manual_seed(3)
    first = clnn.quasirandom.SobolEngine(2, scramble=True).draw(4)
    clnn.manual_seed(3)
    again, other = (clnn.quasirandom.SobolEngine(2, scramble=True).draw(4) for _ in range(2))
    assert first.equal(again) and not first.equal(other) and (first >= 0).all() and (first < 1).all()
    out = clnn.empty(1)
    assert clnn.quasirandom.SobolEngine(3).draw(2, out=out) is out and out.shape == (2, 3)
    assert clnn.quasirandom.SobolEngine(3).draw(2, dtype=clnn.float64).dtype is clnn.float64


@pytest.mark.parametrize("name", ["clnn.quasirandom", "clnn.torch_version", "clnn.futures", "clnn.utils", "clnn.utils.flop_counter", "clnn.nn.parallel",
                                  "clnn.__future__", "clnn._higher_order_ops", "clnn.compiler", "clnn.distributed.checkpoint_wrapper"])
def test_documentation(name):
    failed, tried = doctest.testmod(importlib.import_module(name), extraglobs={"clnn": clnn, "nn": nn})
    assert not failed and tried


def test_the_older_comparison_takes_numbers_and_other_dtypes():
    clnn.testing.assert_allclose(clnn.tensor([1.0, float("nan")]), [1.00005, float("nan")])
    clnn.testing.assert_allclose(clnn.ones(2), clnn.ones(2, dtype=clnn.int64))
    with pytest.raises(AssertionError):
        clnn.testing.assert_allclose(clnn.tensor([1.0]), [1.001])


def test_modules_that_are_computed_again_keep_their_names():
    torch = pytest.importorskip("torch")

    def said(t):
        w = importlib.import_module(f"{t.__name__}.distributed.algorithms._checkpoint.checkpoint_wrapper")
        net = t.nn.Sequential(t.nn.Linear(3, 2), t.nn.Sequential(t.nn.Tanh(), t.nn.Linear(2, 1)))
        t.nn.utils.vector_to_parameters(t.arange(11.0) / 5, net.parameters())
        w.apply_activation_checkpointing(net, check_fn=lambda m: isinstance(m, t.nn.Linear))
        x = t.ones(4, 3, requires_grad=True)
        net(x).sum().backward()
        again = w.checkpoint_wrapper(t.nn.Linear(2, 2), checkpoint_impl=w.CheckpointImpl.REENTRANT)
        again(input=t.ones(1, 2, requires_grad=True)).sum().backward()
        return (list(net.state_dict()), [n for n, _ in net[0].named_parameters()], repr(net), repr(net.load_state_dict(net.state_dict())),
                net[0].in_features, net[0].weight.grad.tolist(), x.grad.tolist(), again.weight.grad.tolist())

    mine, theirs = said(clnn), said(torch)
    assert mine[:5] == theirs[:5]
    for a, b in zip(mine[5:], theirs[5:]):
        clnn.testing.assert_close(clnn.tensor(a), clnn.tensor(b))


def test_names_that_documents_of_pytorch_use():
    """Modules and names that examples in PyTorch's documentation reach for."""
    masked, questions = importlib.import_module("clnn.masked._ops"), importlib.import_module("clnn._questions")
    assert masked.sum(clnn.ones(3), 0, mask=clnn.tensor([True, False, True])).item() == 2
    assert str(clnn.Tag.inplace) == "Tag.inplace" and repr(library.Library("names_test", "FRAGMENT")) == "Library(kind=FRAGMENT, ns=names_test, dispatch_key=)>"
    known = clnn.cpu.get_capabilities()
    assert {"cpu_name", "architecture", "num_logical_cores", "avx2", "avx512_f"} <= set(known) and type(known["avx2"]) is bool
    with questions.FakeTensorMode(allow_non_fake_inputs=True) as mode:
        assert clnn.nn.Linear(3, 4)(clnn.ones(2, 3)).is_meta
    assert mode.from_tensor(clnn.ones(2)).shape == (2,) and not clnn.ones(1).is_meta
    with clnn.backends.mkldnn.verbose(clnn.backends.mkldnn.VERBOSE_ON), clnn.backends.mkl.verbose(clnn.backends.mkl.VERBOSE_OFF):
        pass


@pytest.mark.parametrize("pair", [(np.ones(2), [1.0, 1.0]), (1.0, [1.0]), ([1.0, 1.0], np.ones(2)), ([1.0], 1.0)])
def test_assert_close_takes_two_of_a_kind(pair):
    a, b = (v if isinstance(v, (float, np.ndarray)) else clnn.tensor(v) for v in pair)
    with pytest.raises(TypeError, match="No comparison pair was able to handle inputs of type"):
        clnn.testing.assert_close(a, b)
    clnn.testing.assert_close([1.0, np.ones(1), clnn.ones(1)], (1.0, np.ones(1), clnn.ones(1)))


def test_the_gap_of_complex_numbers_is_told_as_pytorch_does():
    torch, said = pytest.importorskip("torch"), []
    for lib in (clnn, torch):
        with pytest.raises(AssertionError) as caught:
            lib.testing.assert_close(lib.tensor(1 + 1j), lib.tensor(1 - 1j))
        said.append(str(caught.value))
    assert said[0] == said[1]


def test_counting_leaves_operators_callable():
    """In a process of its own: nothing has asked for the operator before."""
    code = ("import clnn\nfrom clnn.utils.flop_counter import FlopCounterMode\nwith FlopCounterMode(display=False):\n    clnn.nn.Linear(2, 2)(clnn.ones(3, 2))\n"
            "print(clnn.ops.aten.addmm.default(clnn.ones(1), clnn.ones(1, 2), clnn.ones(2, 1)).tolist(), clnn.ops.aten.convolution)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["[[3.0]]", "aten.convolution"], done.stderr
