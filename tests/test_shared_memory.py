"""Tensors and NumPy arrays that are one: what is written to the one is read from the other, whatever waits or runs meanwhile."""
import copy
import gc
import sys
import threading

import clnn as torch
import numpy as np
import pytest
from clnn.core.config import config
from clnn.graph.mirror import LARGEST, Mirrored
from clnn.runtime import sharing
from clnn.runtime.device import default_device

pytestmark = pytest.mark.skipif(not sharing.able(default_device()), reason="this device's memory is its own")

SIZES = [6, LARGEST // 4 + 6]           # what is compared, and what has one memory


def alike(t, array):
    assert np.array_equal(np.array(t.tolist(), array.dtype).ravel(), array.ravel())


@pytest.fixture(params=SIZES)
def array(request):
    return np.arange(request.param, dtype=np.float32)


def test_array_to_tensor(array):
    t = torch.from_numpy(array)
    np.add(array, 1, out=array)
    alike(t, array)
    array[2] = 40
    assert t[2].item() == 40 and t.sum().item() == pytest.approx(float(array.astype(np.float64).sum()), rel=1e-5)


def test_tensor_to_array(array):
    t = torch.from_numpy(array)
    for change in (lambda: t.add_(1), lambda: t.mul_(2), lambda: t[1:3].fill_(7), lambda: t.__setitem__(0, -1), lambda: t.copy_(torch.ones(len(array))),
                   lambda: t.zero_(), lambda: t.index_fill_(0, torch.tensor([1]), 3), lambda: t.uniform_(), lambda: t.clamp_(0.2, 0.4),
                   lambda: t.index_add_(0, torch.tensor([2]), torch.ones(1)), lambda: torch.add(t, 1, out=t)):
        change()
        alike(t, array)


def test_what_was_computed_before_keeps_its_values(array):
    t, before = torch.from_numpy(array), array.copy()
    waits, sums, copied = t * 2 + 1, t.sum(), t.clone()
    deep, other = copy.deepcopy(t), torch.zeros(len(array))
    other.copy_(t)
    array[:] = 0
    assert np.array_equal(waits.numpy(), before * 2 + 1) and sums.item() == pytest.approx(float(before.astype(np.float64).sum()), rel=1e-5)
    for kept in (copied, deep, other):
        assert np.array_equal(kept.numpy(), before)
    copied += 1
    assert not array.any() and not t.any()


@pytest.mark.parametrize("size", SIZES)
def test_numpy_of_a_result(size):
    t = torch.arange(size).float() + 1
    twin, seen = t.clone(), t.numpy()
    waits = t * 3
    seen[0] = 50
    t.add_(1)
    assert seen[0] == 51 and t[0].item() == 51 and twin[0].item() == 1 and waits[0].item() == 3
    again = t.numpy()
    again[1] = -4
    assert seen[1] == -4 and type(seen) is np.ndarray and seen.flags.writeable
    del t
    gc.collect()
    assert seen[0] == 51                    # the memory lives as long as the array


@pytest.mark.parametrize("size", SIZES)
def test_arrays_of_what_nobody_else_has(size):
    """They have the memory of a tensor that dies with the call, for as long as they live, but not where another still needs it."""
    t = torch.arange(size).float()
    for _ in range(4):
        first, second, third = (t + 1).numpy(), t.clone().numpy(), (t * 2).view(2, -1).t().numpy()
        more = [(t + k).numpy() for k in range(3)]
        first[0], second[0], third[0, 0] = 50, 60, 70
        assert (t[:2] == torch.tensor([0.0, 1.0])).all() and first[:2].tolist() == [50, 2] and second[:2].tolist() == [60, 1] and third.shape == (size // 2, 2)
        assert third[1, 0] == 2 and third[0, 1] == size // 2 * 2 and [m[1] for m in more] == [1, 2, 3] and first.flags.writeable
        kept = t + 5
        alias, part = kept.view(-1), kept.numpy()
        part[0] = -3
        assert kept[0].item() == -3 and alias[0].item() == -3
        last = kept.detach().numpy()
        last[1] = -4
        assert part[1] == -4 and kept[1].item() == -4
    gc.collect()
    assert first[1] == 2 and first[-1] == size


def test_arrays_of_other_kinds():
    for dtype, kind in ((torch.float16, np.float16), (torch.bool, np.bool_), (torch.int8, np.int8), (torch.complex64, np.complex64)):
        for _ in range(3):
            got = torch.ones(3, 2).to(dtype).numpy()
            assert got.dtype == kind and got.shape == (3, 2) and got.all()
    for value, shape in ((torch.ones(0, 3) + 1, (0, 3)), (torch.tensor(3.0) + 1, ())):
        assert value.numpy().shape == shape
    with pytest.raises(TypeError, match="BFloat16"):
        torch.ones(2).bfloat16().numpy()
    weight = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad"):
        (weight * 2).numpy()
    assert (weight * 2).numpy(force=True).tolist() == [2, 2]
    with torch.no_grad():
        assert (weight * 2).numpy().tolist() == [2, 2]


def test_strides_and_parts(array):
    table = array[:6].reshape(2, 3).copy() if len(array) < 100 else np.arange(2 * len(array), dtype=np.float32).reshape(2, -1)
    t = torch.from_numpy(table.T)
    assert t.shape == table.T.shape and t.stride() == (1, table.shape[1]) and not t.is_contiguous()
    t[1, 0] = 9
    assert table[0, 1] == 9
    middle = torch.from_numpy(table[:, 1:3])
    middle.mul_(2)
    assert table[0, 1] == 18 and table[0, 0] == 0
    back = middle.t().numpy()
    back[0, 1] = 77
    assert table[1, 1] == 77 and middle[1, 0].item() == 77


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
@pytest.mark.parametrize("size", SIZES)
def test_parameters_seen_by_arrays(optimizer, size):
    p, twin = (torch.nn.Parameter(torch.ones(size)) for _ in range(2))
    seen = p.detach().numpy()
    steps = [getattr(torch.optim, optimizer)([q], lr=0.1) for q in (p, twin)]
    for _ in range(3):
        for q, step in zip((p, twin), steps):
            step.zero_grad()
            (q ** 2).sum().backward()
            step.step()
        alike(twin.detach(), seen)
    grads = p.grad.numpy()
    (p * 2).sum().backward()
    assert grads[0] == pytest.approx(p.grad[0].item())
    seen[:] = 5
    assert (p.detach() == 5).all()


def test_training_on_an_array_that_changes(array):
    rows = array[:len(array) // 6 * 6].reshape(-1, 6) / len(array)
    net = torch.nn.Linear(6, 2)
    twin = copy.deepcopy(net)
    t = torch.from_numpy(rows)
    for step in range(4):
        rows[0] = step
        losses = [m(x).square().sum() for m, x in ((net, t), (twin, torch.tensor(rows)))]
        for loss in losses:
            loss.backward()
        rows[:] = rows[::-1].copy()         # when the gradients are there
        assert torch.equal(net.weight.grad, twin.weight.grad) and losses[0].item() == losses[1].item()


@pytest.mark.parametrize("size", SIZES)
def test_recorded_functions(size):
    held_by_function, given = np.ones(size, np.float32), np.zeros(size, np.float32)
    constant = torch.from_numpy(held_by_function)

    @torch.compile
    def f(x):
        return x * 2 + constant

    x = torch.from_numpy(given)
    for k in range(5):
        given[:], held_by_function[1] = k, k
        got = f(x)
        given[:] = -1
        assert got[0].item() == 2 * k + 1 and got[1].item() == 3 * k

    @torch.compile
    def advance(x):
        x += 1
        return x.sum()

    plain = torch.zeros(size)
    for k in range(4):
        advance(plain)
    given[:] = 0
    for k in range(4):
        advance(x)
        assert given[0] == k + 1


def test_arrays_that_are_gone_cost_nothing(array):
    t = torch.from_numpy(array.copy())
    (t * 2).tolist()
    assert not isinstance(t._storage, Mirrored) and not t._storage.pinned
    seen = t.numpy()
    del seen
    gc.collect()
    t.add_(1)
    t.tolist()
    assert not isinstance(t._storage, Mirrored) and not t._storage.pinned and not sharing.shared
    np.asarray(t)[0] = 12                   # the last thing that such an array saw still counts
    assert t[0].item() == 12


def test_an_array_of_a_tensor_whose_own_array_is_gone(array):
    t, other = torch.from_numpy(array.copy()), torch.from_numpy(array.copy())
    seen, part = t.numpy(), other.detach()[1:].numpy()
    t.detach().mul_(2)
    other.mul_(2)
    alike(t, seen)
    assert np.array_equal(seen, array * 2) and np.array_equal(part, array[1:] * 2)
    seen[0] = part[0] = 9
    assert t[0].item() == 9 == other[1].item()
    del seen, part
    gc.collect()
    t.add_(1), other.add_(1), t.tolist(), other.tolist()
    assert not isinstance(t._storage, Mirrored) and not isinstance(other._storage, Mirrored) and not sharing.shared


@pytest.mark.parametrize("grad", (False, True))
def test_threads_find_an_array_gone(grad):
    """Whichever looks first: the others go on with what it became."""
    before, failed = sys.getswitchinterval(), []
    sys.setswitchinterval(1e-6)

    def work(t, out):
        try:
            out.append((t + 1).tanh().sum())
        except Exception as error:
            failed.append(error)
    try:
        for n in range(150):
            values = np.arange(12, dtype=np.float32) * (0.01 * n)
            t, out = torch.from_numpy(values.copy()).requires_grad_(grad), []
            threads = [threading.Thread(target=work, args=(t, out)) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert not failed and [o.item() for o in out] == pytest.approx([float(np.tanh(values + 1).sum())] * 3, rel=1e-4)
    finally:
        sys.setswitchinterval(before)


def test_other_ways_in_and_out(array):
    for make in (torch.as_tensor, torch.asarray, torch.from_dlpack, lambda a: torch.as_tensor(a, dtype=torch.float32)):
        t = make(array)
        array[1] += 1
        assert t[1].item() == array[1]
    copies = [torch.tensor(array), torch.asarray(array, copy=True), torch.as_tensor(array, dtype=torch.float64), torch.from_numpy(array).double()]
    array[1] = -8
    assert all(t[1].item() != -8 for t in copies)
    data = bytearray(b"abcd")
    t = torch.frombuffer(data, dtype=torch.uint8)
    data[0] = 1
    t[1] = 2
    assert t.tolist() == [1, 2, 99, 100] and data[1] == 2
    fixed = np.frombuffer(b"abcd", np.uint8)
    torch.from_numpy(fixed).add_(1)
    assert fixed[0] == 97
    with pytest.raises(ValueError, match="negative"):
        torch.from_numpy(array[::-1])
    with pytest.raises(RuntimeError, match="not resizable"):
        torch.from_numpy(array).resize_(len(array) + 1)


def test_switched_off(monkeypatch, array):
    monkeypatch.setattr(config, "share_memory", False)
    t = torch.from_numpy(array)
    array[0] = 5
    seen = t.numpy()
    t += 1
    assert t[0].item() == 1 and seen[0] == 0


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int64", "float16", "float64", "complex64"])
def test_dtypes(dtype):
    if dtype == "float64" and not default_device().has_fp64:
        pytest.skip("no float64")
    array = np.array([0, 1, 1, 0]).astype(dtype)
    t = torch.from_numpy(array)
    t[0] = 1
    seen = t.numpy()
    assert seen.dtype == array.dtype and array[0] == 1 and seen[0] == 1
    array[1] = 0
    assert t.tolist() == [1, 0, 1, 0] and seen[1] == 0


def _train(rank, model, counts):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    torch.manual_seed(rank)
    for _ in range(60):
        x = torch.randn(16, 4)
        optimizer.zero_grad()
        (model(x) - x.sum(1, keepdim=True)).square().mean().backward()
        optimizer.step()
        counts[rank] += 1


def test_processes_train_one_model():
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    assert not model.weight.is_shared()
    model.share_memory()
    counts = torch.zeros(2, dtype=torch.int64).share_memory_()
    assert model.weight.is_shared() and counts.untyped_storage().is_shared()
    x = torch.randn(64, 4)
    before = (model(x) - x.sum(1, keepdim=True)).square().mean().item()
    torch.multiprocessing.spawn(_train, (model, counts), 2)
    assert counts.tolist() == [60, 60]
    assert (model(x) - x.sum(1, keepdim=True)).square().mean().item() < before / 100
    assert isinstance(copy.deepcopy(model).weight._storage, Mirrored) is False


@pytest.mark.parametrize("size", SIZES)
def test_files_that_are_memory(tmp_path, size):
    name = str(tmp_path / "numbers")
    a = torch.from_file(name, shared=True, size=size)
    b = torch.from_file(name, shared=True, size=size).view(2, -1)
    a.fill_(2)
    a[1] = 3
    b[1].mul_(2)
    expected = np.repeat(np.float32([2, 4]), size // 2)
    expected[1] = 3
    alike(a, expected)
    alike(b, np.fromfile(name, np.float32))
    bytes_of = torch.UntypedStorage.from_file(name, True, 4 * size)
    assert a.is_shared() and isinstance(bytes_of, torch.StorageBase) and a.add(1).untyped_storage().filename is None
    assert bytes_of.filename == a.untyped_storage().filename == name
    longer = torch.from_file(name, shared=True, size=size + 2)
    assert longer[1] == 3 and longer[-1] == 0
    with pytest.raises(RuntimeError, match=rf"> size <{4 * size + 8}> is smaller than the required mapping size <{4 * size + 12}>"):
        torch.from_file(name, size=size + 3)
    for shared, mode in ((True, "read-write"), (False, "read-only")):
        with pytest.raises(RuntimeError, match=rf"unable to open file <.*> in {mode} mode: No such file or directory \(2\)"):
            torch.from_file(str(tmp_path / "none" / "x"), shared=shared, size=1)


def test_recorded_state_that_arrays_see():
    p = torch.nn.Parameter(torch.ones(4))
    optimizer = torch.optim.SGD([p], lr=0.5)
    seen = p.detach().numpy()

    @torch.compile
    def step(x):
        optimizer.zero_grad(set_to_none=False)
        (p * x).sum().backward()
        optimizer.step()

    (p * 0).sum().backward()
    grads = None
    for k in range(5):
        step(torch.full((4,), 2.0))
        assert seen.tolist() == p.tolist() == [1.0 - (k + 1)] * 4
        if k == 2:
            seen = p.detach().numpy()       # kept while replays go on
            grads = p.grad.numpy()
    seen[:] = 10
    step(torch.full((4,), 4.0))
    assert seen.tolist() == [8.0] * 4 and grads.tolist() == [4.0] * 4
