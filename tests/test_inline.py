"""Short launches in the calling thread: the same order and the same bits as those of the driver's threads."""
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import clnn
from clnn.runtime import inline, templates
from clnn.runtime.device import default_device


@pytest.fixture
def side():
    device = default_device()
    device.queue                                        # opened
    if device.inline is None:
        pytest.skip("this driver runs nothing in the calling thread")
    return device.inline


def count_inline(side, monkeypatch):
    """A list that grows by one with each launch in the calling thread, none of which seems long however busy the machine is."""
    seen = []
    plain = side.took
    monkeypatch.setattr(inline, "_CALM", 0)             # each is timed
    monkeypatch.setattr(side, "took", lambda cost, seconds: seen.append(seconds) or plain(cost, 0.0))
    return seen


def test_small_work_runs_here_and_large_work_does_not(side, monkeypatch):
    def chain(x):                                       # of no other test: nothing is known of its kernel, for no queue is it built
        return clnn.cosh(x * 1.21875) - x.abs() * 0.8125
    x, large = clnn.randn(100), clnn.randn(1 << 20)
    clnn.synchronize()
    seen = count_inline(side, monkeypatch)
    for _ in range(3):
        chain(x).tolist()
    assert len(seen) == 3 - side.calls                  # the driver has what is called afterwards once
    chain(large)[:3].tolist()
    assert len(seen) <= 4 - side.calls                  # the three values that are read, at most


@pytest.mark.parametrize("reads", [False, True], ids=["free", "read"])
def test_order_of_large_and_small_work(side, reads):
    rng = np.random.default_rng(3)
    a = rng.integers(-4, 5, (700, 700)).astype(np.float32)
    small = rng.integers(-4, 5, 64).astype(np.float32)
    X, s, x, t = clnn.tensor(a), clnn.tensor(small), a.copy(), small.copy()
    for n in range(12):
        X[n] += s.sum() % 7                              # large after small
        x[n] += t.sum() % 7
        X = clnn.remainder(X @ X.T, 7) if n % 3 == 0 else X + 1
        x = np.mod(x @ x.T, 7) if n % 3 == 0 else x + 1
        s = s + X[n, :64]                               # small after large
        t = t + x[n, :64]
        s[n] = X[n].amax()
        t[n] = x[n].max()
        if reads:
            assert s[n].item() == t[n]
    assert np.array_equal(s.numpy(), t) and np.array_equal(X.numpy(), x)


def test_bits_are_those_of_the_threads(side, monkeypatch):
    def results():
        clnn.manual_seed(5)
        x = clnn.randn(33, 17)
        y = clnn.softmax(x, 1) @ clnn.tanh(x).T
        return y.sum(0).numpy(), clnn.rand(7).numpy(), x.var().item()
    here = results()
    monkeypatch.setattr(side.device, "inline", None)
    there = results()
    assert all(np.array_equal(a, b) for a, b in zip(here, there))


def test_what_takes_long_goes_to_the_threads(side):
    cost = inline.Cost(side.limit)
    side.took(cost, 1.0)                                # the first run may have built something
    assert cost.skip == 0
    side.took(cost, side.limit / 2)
    side.took(cost, 1.0)                                # once: another process's fault
    assert cost.skip == 0
    side.took(cost, side.limit / 2)
    for _ in range(9):
        side.took(cost, 1.5 * side.limit)               # a little too long: soon tried again
    first = cost.skip
    assert first > 0
    side.took(cost, 1.0)
    side.took(cost, 1.0)
    assert cost.skip > 4 * first
    for _ in range(5000):
        side.took(cost, side.limit / 2)
    assert cost.penalty == inline.Cost(side.limit).penalty


def test_what_was_short_is_tried_again_soon(side):
    """Runs that take long all at once say more about the machine than about the kernel."""
    cost = inline.Cost(side.limit)
    for _ in range(5):
        side.took(cost, side.limit / 10)
    for _ in range(12):
        side.took(cost, 1.0)
        assert cost.skip <= 64
    assert cost.skip == 64
    for _ in range(8):
        side.took(cost, side.limit / 10)
    assert cost.penalty == inline.Cost(side.limit).penalty


def test_recorded_lists_run_here_or_there(side, monkeypatch):
    @clnn.compile
    def fn(x, y):
        return (x @ y).softmax(0), clnn.rand(3)
    x, y = clnn.randn(6, 6), clnn.randn(6, 6)
    expected = (x @ y).softmax(0).numpy()
    seen = count_inline(side, monkeypatch)
    for _ in range(4):
        fn(x, y)
    clnn.synchronize()
    seen.clear()
    assert np.array_equal(fn(x, y)[0].numpy(), expected) and len(seen) == 1
    with monkeypatch.context() as m:
        m.setattr(side.device, "inline", None)
        clnn.manual_seed(1)
        got, draw = fn(x, y)
        assert np.array_equal(got.numpy(), expected) and len(seen) == 1
    clnn.manual_seed(1)
    z = clnn.randn(6, 6)
    clnn.manual_seed(1)
    got, again = fn(x, z)
    assert np.array_equal(again.numpy(), draw.numpy())
    assert np.array_equal(got.numpy(), (x @ z).softmax(0).numpy())


@pytest.fixture(params=[5e-3, 1e-5], ids=["usual", "hasty"])
def switching(request):
    """How often Python changes between threads: rarely between two instructions, or nearly always."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(request.param)
    yield
    sys.setswitchinterval(before)


def run_in_threads(work, count=4):
    """Call ``work`` with each number below ``count`` at the same time; what one of them raised is raised here."""
    with ThreadPoolExecutor(count) as pool:
        for done in [pool.submit(work, seed) for seed in range(count)]:
            done.result()


def test_threads_of_the_program(side, switching):
    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(40):
            a = rng.integers(-9, 9, (rng.integers(2, 300), 8)).astype(np.float32)
            assert np.array_equal((clnn.tensor(a) + seed).sum(0).numpy(), (a + seed).sum(0))
    run_in_threads(work)


def test_threads_with_short_and_long_launches(side, switching):
    rng = np.random.default_rng(5)
    large = rng.integers(-3, 4, (300, 300)).astype(np.float32)

    def work(seed):
        x, total = clnn.tensor(large + seed), clnn.zeros(300)
        for n in range(12):
            y = (x @ x.T).sum(0)                                # by the driver's threads
            total = total + y[:300] * 0.5 + clnn.full((300,), float(n))     # here, where nothing runs there
        y = ((large + seed) @ (large + seed).T).sum(0)
        assert np.array_equal(total.numpy(), 6 * y + 66)
    run_in_threads(work)


def test_threads_that_train_and_replay(side, switching):
    def train(seed):
        weight = clnn.zeros(6, 3, requires_grad=True)
        x = clnn.arange(12.).view(2, 6) / 8 + seed
        step = clnn.compile(lambda w: (clnn.relu(x @ w + 1)).sum(0))
        for _ in range(10):
            loss = (step(weight) - seed).square().sum()
            loss.backward()
            with clnn.no_grad():
                weight -= 1 / 64 * weight.grad
                weight.grad = None
        return weight.tolist()
    expected = [train(seed) for seed in range(4)]
    for _ in range(2):
        found = {}
        run_in_threads(lambda seed: found.__setitem__(seed, train(seed)))
        assert [found[seed] for seed in range(4)] == expected


def test_threads_share_leaves_and_pending_values(side, switching):
    def work(seed):
        for t, w in zip(pending, weights):
            together.wait()
            grad, = clnn.autograd.grad((w * w).sum(), [w])      # none where two threads made entries of the tape for the same leaf
            together.wait()
            assert clnn.cat([t, t + 1]).tolist() == [2.5] * 8 + [3.5] * 8
            assert grad.tolist() == [2 * v for v in w.tolist()]
    together = threading.Barrier(4, timeout=20)
    for _ in range(4):
        weights = [clnn.arange(8.).requires_grad_() for _ in range(25)]
        pending = [clnn.full((8,), 1.25) * 2 for _ in range(25)]
        run_in_threads(work)


def test_threads_map_over_samples_while_others_draw(side, switching):
    def work(seed):
        generator = clnn.Generator().manual_seed(seed)
        for n in range(12):
            if seed % 2:
                assert clnn.vmap(lambda row: (row * seed).sum() + clnn.ones(2).sum())(rows).tolist() == [seed * 3 + 2, seed * 12 + 2]
                assert not clnn.compiler.is_compiling()
            else:
                clnn.rand(3)
                found[seed] = clnn.randn(3, generator=generator).tolist()
                compiled(rows)
    rows, found, compiled = clnn.arange(6.).view(2, 3), {}, clnn.compile(lambda x: x.cos() + 1)
    run_in_threads(work)
    for seed in (0, 2):
        generator = clnn.Generator().manual_seed(seed)
        assert [clnn.randn(3, generator=generator).tolist() for _ in range(12)][-1] == found[seed]


@pytest.mark.parametrize("on", ["0", "1"])
def test_the_switch(side, on):
    code = ("import os, clnn\nfrom clnn.runtime.device import default_device, list_devices\n"
            "assert clnn.ones(5).sum().item() == 5\n"
            "print(default_device().inline is not None, 'POCL_DEVICES' in os.environ, [d.name for d in list_devices()])")
    env = {k: v for k, v in os.environ.items() if k != "POCL_DEVICES"}
    done = subprocess.run([sys.executable, "-c", code], env={**env, "CLNN_INLINE": on}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    used, left, names = done.stdout.split(" ", 2)
    assert used == str(on == "1") and left == "False" and "basic-" not in names


def test_the_first_template_may_compute_in_double(tmp_path, monkeypatch):
    (tmp_path / "t.cl.mako").write_text('<%inherit file="/base.cl.mako"/>\n__kernel void k(__global double* x) { x[0] = 1; }\n')
    monkeypatch.setattr(templates, "folders", lambda: (tmp_path, templates.kernels_dir()))
    templates._base.cache_clear()
    found = []
    first = threading.Thread(target=lambda: found.append(templates.render("t", dict(USE_FP64=True))), daemon=True)
    first.start()
    first.join(20)
    assert found and "__kernel void k" in found[0]


def writes():
    """name -> function that changes the tensor ``t`` of eight numbers, by every way there is to a buffer."""
    pair = clnn.arange(8.) + 40

    @clnn.compile
    def replayed(t):
        t.mul_(2)
    table = {
        "add_": lambda t: t.add_(1), "element": lambda t: t.__setitem__(3, 7.5), "data": lambda t: t.data.mul_(3), "copy_": lambda t: t.copy_(pair),
        "fill_": lambda t: t.fill_(2.25), "zero_": lambda t: t.zero_(), "view": lambda t: t.view(2, 4)[1].add_(5), "set_": lambda t: t.set_(pair + 1),
        "index": lambda t: t.index_fill_(0, clnn.tensor([3]), 9.), "out": lambda t: clnn.add(pair, 1, out=t), "draw": lambda t: t.uniform_(),
        "replay": replayed, "array": lambda t: t.numpy().__setitem__(3, -1.5), "kept array": lambda t: t.numpy().__iadd__(1),
        "sort": lambda t: clnn.sort(-t, out=(t, clnn.empty(8, dtype=clnn.long)))}
    return table


@pytest.mark.parametrize("way", writes())
def test_reads_again_and_again_see_each_write(side, way):
    write, t = writes()[way], clnn.arange(8.) + 0.5
    for n in range(12):
        before = [t[i].item() for i in range(8)]
        assert before == [float(v) for v in t] == t.tolist()            # the later ones of these reads ask the device for nothing
        for _ in range(n % 4 + 1):
            write(t)                                                    # a buffer that is made anew may have the name of one that was read
        after = [t[i].item() for i in range(8)]
        assert after == (t * 1).tolist() == [t[i].item() for i in range(8)]


@pytest.mark.parametrize("end, code", [("", 0), ("raise RuntimeError('of the main thread')", 1)], ids=["usual", "error"])
def test_daemon_threads_at_the_end_of_the_process(end, code):
    program = ("import sys, threading, time, clnn\nready = threading.Event()\n"
               "def work():\n    x = clnn.randn(8, 64)\n    while True:\n        x = (x * 0.5).tanh() + clnn.randn(8, 64)\n        x.sum().item()\n        ready.set()\n"
               f"for _ in range(2): threading.Thread(target=work, daemon=True).start()\nready.wait()\ntime.sleep(0.05)\n{end}")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done.stderr


def test_a_kernel_that_is_built_for_this_thread_in_the_middle_of_a_call(tmp_path):
    """The launches of a repeated call that follow the one which waits for its kernel wait with it."""
    code = """if True:
        import clnn
        layer, inputs, first = clnn.nn.TransformerEncoderLayer(8, 2, 12, 0.0, batch_first=True), [clnn.randn(2, 5, 8) for _ in range(7)], {}
        for n in range(420):
            x = inputs[n % 7].clone().requires_grad_()
            y = layer(x)
            y.cos().sum().backward()
            got = y.detach().numpy().tobytes() + x.grad.numpy().tobytes()
            assert first.setdefault(n % 7, got) == got, n
    """
    env = {**os.environ, "CLNN_CACHE_DIR": str(tmp_path)}
    env.pop("POCL_CACHE_DIR", None)
    for inline_too in "01":                             # at first kernels are built for the driver's threads only, which leaves them on disk
        done = subprocess.run([sys.executable, "-c", code], env={**env, "CLNN_INLINE": inline_too}, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr[-2000:]


def test_the_end_of_a_process_waits_for_what_was_launched(tmp_path):
    """PoCL's threads may compile for it still, which crashes once the compiler's own tables are gone."""
    code = """if True:
        import atexit
        from clnn.runtime.device import default_device
        import clnn
        device = default_device()
        atexit.register(lambda: print(device.last.command_execution_status))         # runs after those of the device
        x = clnn.rand(700, 700)
        for n in range(8):
            x = x @ x / 700
            x._storage.buffer()
        device.flush()
    """
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "CLNN_CACHE_DIR": str(tmp_path)}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stdout.split() == ["0"], (done.returncode, done.stdout, done.stderr[-2000:])


def test_launches_of_a_known_kind_while_there_is_no_such_way(side, monkeypatch):
    """As while a profiler asks for times: what was learnt of the way before does not lead there."""
    x, at = clnn.arange(12.).view(3, 4), clnn.tensor([2, 0])
    weight = clnn.ones(4, requires_grad=True)

    def step():
        y = (x[at] * weight).cosh().sum(1)
        y.sum().backward()
        return y.tolist(), clnn.gather(x, 1, at.view(1, 2)).tolist()
    expected = [step() for _ in range(8)][-1]
    monkeypatch.setattr(side.device, "inline", None)
    assert [step() for _ in range(3)] == [expected] * 3


def test_waits_again_after_a_while(side, monkeypatch):
    """Launches that follow long ones go where these run, but a loop of short ones does not stay there for good."""
    waits = []
    monkeypatch.setattr(inline.Inline, "idle", lambda self: False)
    monkeypatch.setattr(inline.Inline, "_soon", lambda self: waits.append(1) is None and False)
    side.short, side.patience = False, 8
    assert not any([side.ready() for _ in range(7)]) and not waits
    side.ready()
    assert waits
