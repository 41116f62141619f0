"""Values that only the host has: they go to the device when an operator wants them, and are one with what it would have got at once."""
import threading

import clnn as torch
import numpy as np
import pytest
from clnn.graph.mirror import Unsent, told
from clnn.runtime.device import default_device
from clnn.runtime.sharing import able

shares = pytest.mark.skipif(not able(default_device()), reason="the device has memory of its own")


def _waits(t):
    return t._storage.__class__ is Unsent and told(t._storage) is not None


@pytest.fixture
def sends(monkeypatch):
    """The numbers of bytes that were sent to the device."""
    device, sent = default_device(), []
    send, write = device.send, device.write

    def sending(values):
        before = len(sent)
        buf = send(values)              # may or may not write
        sent[before:] = [len(values)]
        return buf
    monkeypatch.setattr(device, "send", sending)
    monkeypatch.setattr(device, "write", lambda buf, array, *rest: (sent.append(array.nbytes), write(buf, array, *rest))[1])
    return sent


def test_reading_sends_nothing(sends):
    t = torch.tensor([[1.5, 2.5], [3.5, -0.0]])
    assert t.tolist() == [[1.5, 2.5], [3.5, 0.0]] and t[1, 0].item() == 3.5 and repr(t[0]) == "tensor([1.5000, 2.5000])" and float(t[0, 0]) == 1.5
    assert np.array_equal(t.T.numpy(force=True), [[1.5, 3.5], [2.5, -0.0]])
    assert torch.tensor(3).item() == 3 and torch.tensor([True]).tolist() == [True] and torch.tensor(1 + 2j).item() == 1 + 2j
    assert torch.from_numpy(np.ones(3, "f"))[1:].tolist() == [1, 1] and torch.as_tensor([2.0]).item() == 2
    assert not sends
    assert (t + 1).tolist() == [[2.5, 3.5], [4.5, 1]] and sends == [16] and not _waits(t)


@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.bool, torch.uint8, torch.complex64), ids=str)
def test_samples_become_a_batch_on_the_host(sends, dtype):
    samples = [torch.tensor([[i, 2 - i, 3]], dtype=dtype) for i in range(5)]
    batch, row = torch.stack(samples), torch.cat([s[:, 1:] for s in samples] + [samples[0][:, :2]])
    assert _waits(batch) and batch.shape == (5, 1, 3) and batch.dtype is dtype and not sends
    assert batch.tolist() == [s.tolist() for s in samples]
    if dtype is not torch.bool:
        assert (batch + 0).tolist() == batch.tolist() and len(sends) == 1
    assert row.tolist() == [s.tolist()[0][1:] for s in samples] + [samples[0].tolist()[0][:2]]


def test_graphs_hold_what_makes_a_batch():
    from clnn.fx.experimental.proxy_tensor import make_fx
    graph = make_fx(lambda a, b: torch.cat([torch.stack([a, b]), torch.stack([b, a])]))(torch.tensor([1.0]), torch.tensor([2.0]))
    assert graph(torch.tensor([3.0]), torch.tensor([4.0])).tolist() == [[3], [4], [4], [3]]
    assert torch.func.vmap(lambda a: torch.stack([a, a]))(torch.tensor([1.0, 2.0])).tolist() == [[1, 1], [2, 2]]


def test_what_a_batch_cannot_be_made_of_on_the_host():
    a, b = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    for made in (torch.stack([a, b], 1), torch.stack([a, b[:]]), torch.stack([a, b + 0]), torch.cat([a, torch.tensor([3, 4])]), torch.cat([a, torch.empty(0), b])):
        assert made.sum().item() == 10
    a.requires_grad_()
    torch.stack([a, b]).pow(2).sum().backward()
    assert a.grad.tolist() == [2.0, 4.0]


@shares
def test_arrays_that_change_before_they_are_sent():
    array = np.arange(3, dtype=np.float32)
    t = torch.from_numpy(array)
    array[0] = 5
    batch = torch.stack([t, t])
    array[1] = 6
    assert batch.tolist() == [[5, 1, 2]] * 2 and t.tolist() == [5, 6, 2] and (t + 1).tolist() == [6, 7, 3]
    t.add_(1)
    assert array.tolist() == [6, 7, 3] and torch.stack([t]).tolist() == [[6, 7, 3]]


@shares
def test_writing_and_sharing():
    t = torch.tensor([1.0, 2.0, 3.0])
    view, flat = t[1:], t.numpy()
    flat[2] = 9
    view.mul_(2)
    assert t.tolist() == flat.tolist() == [1, 4, 18]
    u = torch.tensor([1.0, 2.0])
    copy, version = u.clone(), u._version
    u[0] = 7
    assert u.tolist() == [7, 2] and copy.tolist() == [1, 2] and u._version == version + 1
    u = torch.tensor([1.0, 2.0])
    u.copy_(torch.tensor([5.0, 6.0]))
    assert u.tolist() == [5, 6]


@pytest.mark.parametrize("value", (2.5, -0.0, float("inf"), float("nan"), 7, (1 << 60) + 1, True), ids=str)
def test_single_numbers_as_operands(value):
    number, x = torch.tensor(value), torch.tensor([1.5, -2.0, 0.0, 3.0])
    sent = torch.tensor(value)
    sent._storage.buffer()
    assert not _waits(sent)
    for fn in (torch.add, torch.mul, torch.maximum, torch.eq, torch.copysign, torch.div, torch.pow):
        a, b = fn(x, number), fn(x, sent)
        assert a.dtype is b.dtype and np.array_equal(a.numpy(), b.numpy(), equal_nan=True) and np.array_equal(np.signbit(a.numpy()), np.signbit(b.numpy()))


def test_a_recorded_step_goes_on_with_what_it_found():
    total = torch.tensor(0.0)

    @torch.compile
    def step(x):
        total.add_(x.sum())
        return total * torch.tensor(2.0)

    assert [step(torch.tensor([1.0, i])).item() for i in range(5)] == [2, 6, 12, 20, 30]


def test_threads_that_ask_at_once():
    for _ in range(20):
        t, seen = torch.arange(6.0).tolist(), []
        t = torch.tensor(t)
        threads = [threading.Thread(target=lambda: seen.append(t._storage.buffer())) for _ in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert all(buf is t._storage.buffer() for buf in seen) and t.tolist() == [0, 1, 2, 3, 4, 5]
