"""Launches without the driver, and memory of the device that is this process's: the same bits, in the same order."""
import threading

import numpy as np
import pytest

import clnn
from clnn.core import native
from clnn.core.config import config
from clnn.nn import functional as F
from clnn.runtime import direct, launch
from clnn.runtime.device import default_device

pytestmark = pytest.mark.skipif(native.built is None, reason="without the C forms")
AGAIN = 14                  # calls of a kind, the last of which go without the driver


@pytest.fixture
def device():
    device = default_device()
    device.queue                                        # opened
    return device


@pytest.fixture
def opened(device, monkeypatch):
    """A list of (name of a kernel, what opening it came to), which grows."""
    if not device.record.direct:
        pytest.skip("kernels of this driver cannot be called")
    found = []

    def noted(device, kernel, *args):
        result = called(device, kernel, *args)
        if result is not None:
            found.append((kernel.name, result))
        return result
    called = direct.called
    monkeypatch.setattr(direct, "called", noted)
    return found


def floats(*shape, seed=0):
    return clnn.tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


CALLS = {
    "a reduction": lambda x, i: x.sum(1), "a chain": lambda x, i: (x * 1.3125 + 1).tanh() - x, "rows": lambda x, i: x[i], "a product": lambda x, i: x @ x.t(),
    "a long product": lambda x, i: x.view(1, -1) @ x.view(-1, 1), "softmax": lambda x, i: x.softmax(-1), "a norm": lambda x, i: F.layer_norm(x, x.shape[1:]),
    "running sums": lambda x, i: x.cumsum(0), "order": lambda x, i: x.sort(1)[1], "a convolution": lambda x, i: F.conv1d(x[None], x[None, :, :3].expand(4, -1, -1)),
    "windows": lambda x, i: F.max_pool2d(x[None], 2), "places": lambda x, i: x.max(1)[1], "draws": lambda x, i: (clnn.manual_seed(3), F.dropout(x))[1],
    "a part of it": lambda x, i: clnn.zeros_like(x).index_add(0, i, x[:3]), "a solution": lambda x, i: clnn.linalg.solve(x[:11, :11], x[:11]),
}


@pytest.mark.parametrize("name", CALLS)
def test_bits_are_those_of_the_driver(name, opened):
    x, i, call = floats(11, 17), clnn.tensor([4, 0, 7]), CALLS[name]
    bits = [call(x, i).numpy().tobytes() for _ in range(AGAIN)]
    assert len(set(bits)) == 1
    x.mul_(-1.5)
    assert call(x, i).numpy().tobytes() != bits[0]
    clnn.synchronize()


SOURCE = """
__kernel void groups(__global float* x, const long turns) {
    __local float mine[16];
    long g = get_group_id(0) + get_num_groups(0) * (get_group_id(1) + get_num_groups(1) * get_group_id(2)), k = get_local_id(0);
    float v = g;
    for (long i = 0; i < turns; i++) v = v * 0.5f + 1.0f;
    mine[k] = v + k;
    barrier(CLK_LOCAL_MEM_FENCE);
    x[16 * g + k] += mine[15 - k] + 100.0f * get_group_id(0) + 1000.0f * get_group_id(1) + 10000.0f * get_group_id(2);
}"""


@pytest.mark.parametrize("counts", [(7, 5, 3), (1, 2, 1), (97,), (2, 11)])
@pytest.mark.parametrize("turns", [1, 60, 3000])
def test_threads_share_groups(opened, device, counts, turns):
    """Each group is run once in each launch, with local memory of its own, whoever runs it."""
    n = int(np.prod(counts))
    kernel, buf = device.kernel_from_source(SOURCE, "groups"), device.alloc(64 * n)
    device.write(buf, np.zeros(16 * n, np.float32))
    way = launch.Prepared(kernel, (16 * counts[0], *counts[1:]), (16, *(1 for _ in counts[1:])), [launch.BUFFER, turns])
    times = 300
    for turn in range(times):
        way.run(device, (0, buf))
        if turn < AGAIN:
            device.synchronize()                        # built, and loaded
    got = device.read(buf, 64 * n).view(np.float32).reshape(*reversed(counts), 16)
    v = np.arange(n, dtype=np.float64)
    v = v * 0.5 ** turns + 2 - 2 * 0.5 ** turns if turns < 1000 else v * 0 + 2
    want = v.reshape(*reversed(counts), 1) + np.arange(15, -1, -1)
    for axis, scale in enumerate((100.0, 1000.0, 10000.0)[:len(counts)]):
        want = want + scale * np.arange(counts[axis]).reshape(-1, *(1,) * (axis + 1))
    assert np.allclose(got, times * want, 1e-4)
    assert any(result and result.groups == n for _, result in opened)


def test_larger_calls(opened):
    """As above, of sizes that several threads share."""
    x, i = floats(260, 310), clnn.tensor([4, 0, 7])
    for name in set(CALLS) - {"a solution"}:
        bits = [CALLS[name](x, i).numpy().tobytes() for _ in range(AGAIN)]
        assert len(set(bits)) == 1, name


def test_kernels_are_called(opened):
    x, w = floats(13, 19), floats(19, 21, seed=1)
    for _ in range(400):                                # one that was built for the driver's threads runs there for a while
        (x @ w).sum().item()
        if any(result for _, result in opened):
            break
    assert any(result for _, result in opened), opened


def test_gradients_and_steps(opened):
    def run():
        clnn.manual_seed(1)
        net = clnn.nn.Sequential(clnn.nn.Linear(7, 9), clnn.nn.ReLU(), clnn.nn.LayerNorm(9), clnn.nn.Linear(9, 3))
        opt, x, y = clnn.optim.Adam(net.parameters(), 0.01), floats(5, 7), clnn.tensor([0, 1, 2, 0, 1])
        found = []
        for _ in range(AGAIN):
            opt.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            opt.step()
            found.append((loss.item(), [p.grad.norm().item() for p in net.parameters()]))
        return found
    first, second = run(), run()
    assert first == second


def test_steps_of_many_tensors_are_called(opened):
    """One launch updates several tensors and takes four buffers and more of each."""
    p = [clnn.nn.Parameter(floats(5, 3, seed=i)) for i in range(8)]
    opt = clnn.optim.Adam(p, 0.01)
    for _ in range(400):
        for t in p:
            t.grad = t.detach() * 2
        opt.step()
        p[0].sum().item()
        if any(result for name, result in opened if name == "multi"):
            return
    assert False, opened


def test_a_recorded_list(device):
    """Replays that call kernels give what those through the driver gave, with new inputs and random numbers."""
    def step(x):
        y = (x @ x.t()).softmax(-1) * clnn.rand(6, 6)
        return y.sum(0), y.cumsum(1)
    quick, inputs = clnn.compile(step), [floats(6, 8, seed=s) for s in range(12)]
    for x in inputs:
        clnn.manual_seed(5)
        got = [r.numpy().copy() for r in quick(x)]
        clnn.manual_seed(5)
        again = [r.numpy().copy() for r in quick(x)]
        assert all(np.array_equal(a, b) for a, b in zip(got, again))
        assert np.allclose(got[0].sum(), got[1][:, -1].sum(), 1e-5)


def test_buffers_that_were_given_up(opened):
    """What is known of a buffer's place ends with it: the driver gives its handle to another."""
    for turn in range(30):
        x = clnn.full((40 + turn, 5), float(turn))
        for _ in range(4):
            assert (x + 1).sum(1).tolist() == [5.0 * (turn + 1)] * (40 + turn)
        del x
        clnn.synchronize()
        clnn.cpu.empty_cache() if hasattr(clnn, "cpu") and hasattr(clnn.cpu, "empty_cache") else default_device().memory.empty_cache()


def test_local_memory_however_it_is_spelled_and_printing(opened, device):
    source = """
    #define SHARED(name) local float name[8]
    __kernel void turned(__global float* x) {
        SHARED(a); SHARED(b); SHARED(c);
        int k = get_local_id(0);
        a[k] = x[get_global_id(0)]; b[7 - k] = k; c[k] = 2 * k;
        barrier(CLK_LOCAL_MEM_FENCE);
        x[get_global_id(0)] = a[7 - k] + b[k] + c[7 - k];%s
    }"""
    for talk in ("", ' if (x[0] < -1e30f) printf("never");'):
        kernel, x = device.kernel_from_source(source % talk, "turned"), np.arange(16, dtype=np.float32)
        way, buf = launch.Prepared(kernel, (16,), (8,), [launch.BUFFER]), device.alloc(64)
        device.write(buf, x)
        for _ in range(400):
            way.run(device, (0, buf))
            device.synchronize()
            x = x.reshape(2, 8)[:, ::-1].reshape(-1) + np.tile(np.arange(7, -1, -1, dtype=np.float32) * 3, 2)
        assert np.array_equal(device.read(buf, 64).view(np.float32), x)
    assert [bool(way) for name, way in opened if name == "turned"] == [True, False]


def test_local_memory_beside_many_arguments(opened, device):
    """Arrays in local memory follow the arguments: there is room for them however many these are."""
    count, arrays = 62, 5
    body = [f"local long m{i}[4]; m{i}[k] = k + {i}; barrier(CLK_LOCAL_MEM_FENCE); sum += m{i}[3 - k];" for i in range(arrays)]
    source = f"""
    __kernel void many(__global long* x, {", ".join(f"const long a{i}" for i in range(count))}) {{
        int k = get_local_id(0);
        long sum = {" + ".join(f"a{i}" for i in range(count))};
        {" ".join(body)}
        x[get_global_id(0)] = sum;
    }}"""
    way = launch.Prepared(device.kernel_from_source(source, "many"), (8,), (4,), [launch.BUFFER, *[launch.NUMBER] * count])
    buf = device.alloc(64)
    for turn in range(AGAIN):
        way.run(device, (0, buf), tuple(range(turn, turn + count)))
        device.synchronize()
        want = sum(range(turn, turn + count)) + sum(range(arrays)) + arrays * np.array([3, 2, 1, 0] * 2)
        assert np.array_equal(device.read(buf, 64).view(np.int64), want)
    assert any(way for name, way in opened if name == "many")


def test_what_a_kernel_reports_is_raised():
    x, good = floats(9, 4), clnn.tensor([1, 2])
    for _ in range(AGAIN):
        x[good]
    with pytest.raises(IndexError, match="out of"):
        x[clnn.tensor([1, 9])].tolist()
    assert x[good].tolist() == x[1:3].tolist()


def test_small_numbers_are_not_flushed(opened):
    torch = pytest.importorskip("torch")
    x = clnn.tensor([1e-39, -3e-40, 1.0])
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot")
    try:
        for _ in range(AGAIN):
            y = (x * 1.0).clone().add(0.0)
            raw = y.view(clnn.int32).tolist()
            assert raw == x.view(clnn.int32).tolist()
    finally:
        torch.set_flush_denormal(False)


def test_order_of_reads_writes_and_long_launches():
    a = np.ones((600, 600))
    x = clnn.tensor(a, dtype=clnn.float32)
    for n in range(6):
        x = x @ x / 600 + n                             # by the driver's threads
        a = a @ a / 600 + n
        assert np.isclose(x[n, n].item(), a[n, n], 1e-4)                # each product doubles the error
        x[n, n] = clnn.tensor([float(n)])[0] + 0.5
        a[n, n] = n + 0.5
        assert x[n, n].item() == n + 0.5
        assert np.isclose(x[:2, :2].sum().item(), a[:2, :2].sum(), 1e-4)


def test_threads_at_once():
    failures = []

    def work(seed):
        try:
            x = floats(8, 8, seed=seed)
            want = (x @ x).sum(1).numpy()
            for _ in range(80):
                assert np.array_equal((x @ x).sum(1).numpy(), want)
                assert clnn.tensor([float(seed)]).item() == seed
        except BaseException as exc:
            failures.append(exc)
    threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures, failures


def test_without_a_verdict_nothing_is_called(opened, device, monkeypatch):
    monkeypatch.setattr(device.record, "direct", False)
    x = floats(23, 3)
    for _ in range(AGAIN):
        (x.sum(1) * 2).tolist()
    assert not any(result for _, result in opened)
    monkeypatch.setattr(device.record, "direct", True)
    monkeypatch.setattr(config, "direct", False)
    x = floats(24, 3)
    for _ in range(AGAIN):
        (x.sum(1) * 2).tolist()
    assert not any(result for _, result in opened)


def test_wrong_arguments():
    make = native.built.Direct
    for address, groups, local, args, locals in ((0, (1,), (1,), (), 0), (1, (1, 1, 1, 1), (1, 1, 1, 1), (), 0), (1, (1,), (1, 1), (), 0),
                                                 (1, (1,), (1,), (None,) * 257, 0), (1, (1,), (1,), (), -1)):
        with pytest.raises(ValueError):
            make(None, address, groups, local, args, False, locals, 0)
    with pytest.raises(TypeError):
        make(None, 1, (1,), (1,), (3,), False, 0, 0)
    made = make(None, 1, (1,), (1,), (None, b"12345678" * 40), False, 1, 64)
    made._set_arg_buf(0, b"1234")
    for position, value in ((2, b"1"), (-1, b"1"), (0, b"1" * 200)):
        with pytest.raises(ValueError):
            made._set_arg_buf(position, value)
