"""Samples that become a batch: pending computations of one kind take one launch, rows of one tensor another, values of the host are sent together."""
import numpy as np
import pytest

import clnn
from clnn import nn
from clnn.core.config import config
from clnn.graph import together
from clnn.nn.utils import rnn

try:
    import torch
except ImportError:
    torch = None

rand = np.random.default_rng(0)
IMAGES = rand.random((9, 3, 4, 5)).astype(np.float32)
BYTES = (rand.random((9, 4, 5, 3)) * 255).astype(np.uint8)




SAMPLES = {
    "scaled": lambda i, x: (x - 0.1307) / 0.3081,
    "by a number of its own": lambda i, x: x * (0.5 + i) - 0.0,
    "with a shared tensor": lambda i, x: (x - MEAN()) / MEAN(),
    "with a fresh tensor": lambda i, x: (x - clnn.tensor([0.1, 0.2, 0.3]).view(-1, 1, 1)) * 2,
    "with another sample": lambda i, x: x + clnn.from_numpy(IMAGES[(i + 3) % 9]),
    "used twice": lambda i, x: (x + 1) * (x + 1),
    "permuted": lambda i, x: x.permute(2, 0, 1) * 2,
    "part of it": lambda i, x: x[:, 1:3, ::2] + 1,
    "seen otherwise": lambda i, x: (x.flatten() + 1).unsqueeze(0) * 3,
    "of two kinds": lambda i, x: x + 1 if i % 2 else x * 2,
    "compared": lambda i, x: clnn.where(x > 0.5, x, -x),
    "cast": lambda i, x: (x * 10).to(clnn.int32),
    "in place": lambda i, x: x.clone().sub_(0.5).div_(2.0),
    "with whole numbers": lambda i, x: (x * 7).long() + (i + 1),
}


def MEAN():
    return MEANS.setdefault(clnn.get_default_device(), clnn.tensor([0.5, 0.6, 0.7]).view(-1, 1, 1) * 1)


MEANS = {}
SOURCES = {
    "arrays": lambda i: clnn.from_numpy(IMAGES[i]),
    "copies": lambda i: clnn.tensor(IMAGES[i]),
    "rows": lambda i: WHOLE()[(i * 5) % 9],
    "their own": lambda i: WHOLE()[i].contiguous() * 1 + 0,
    "bytes": lambda i: clnn.from_numpy(BYTES[i]).permute(2, 0, 1).float().div(255),
}


def WHOLE():
    whole = clnn.tensor(IMAGES) * 1
    whole.sum().item()
    return whole


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("sample", SAMPLES)
def test_a_batch_of_pending_samples_is_what_they_are(source, sample):
    def batch(join):
        samples = [SAMPLES[sample](i, SOURCES[source](i)) for i in range(9)]
        return join(samples), samples

    joined, samples = batch(clnn.stack)
    expected = np.stack([s.numpy() for s in samples])
    assert joined.dtype is samples[0].dtype and np.array_equal(joined.numpy(), expected)
    assert np.array_equal(batch(clnn.cat)[0].numpy(), np.concatenate(list(expected)))
    assert np.array_equal((batch(clnn.stack)[0] * 2).sum().numpy(), (joined * 2).sum().numpy())


def test_one_launch_serves_samples_of_one_kind(monkeypatch):
    found = []
    stacked = together.stacked
    monkeypatch.setattr(together, "stacked", lambda *args: found.append(stacked(*args)) or found[-1])
    samples = [(clnn.from_numpy(IMAGES[i]) - 0.5) / 0.25 for i in range(9)]
    batch = clnn.stack(samples)
    assert found[0] is not None and batch._storage.node is not None and all(s._storage.node is not None for s in samples)
    mixed = [samples[0] + 1, samples[1] * 2, samples[2] + 1, clnn.tensor(IMAGES[3]), samples[4] * 2, samples[5] + 1, samples[6].flip(0), samples[7] + 1]
    batch = clnn.stack(mixed)
    assert len(found) == 2 and found[1].shape[0] == 4 and batch._storage.node is None       # the four of a kind
    assert np.array_equal(batch.numpy(), np.stack([t.numpy() for t in mixed]))


def test_a_pending_operator_reads_what_an_array_held():
    array = np.arange(4, dtype=np.float32)
    x = clnn.from_numpy(array)
    before, more = x + 1, x * 2
    array[:] = 9
    after = x + 1
    assert before.tolist() == [1, 2, 3, 4] and more.tolist() == [0, 2, 4, 6] and after.tolist() == [10] * 4
    x.add_(1)
    assert array.tolist() == [10] * 4 and x.tolist() == [10] * 4


def test_values_of_the_host_are_sent_once(monkeypatch):
    x, sent = clnn.tensor([1.0, 2.0, 3.0]), []
    device = x._storage.device
    send = device.send
    monkeypatch.setattr(device, "send", lambda values: sent.append(values) or send(values))
    a, b = x + 1, x.exp()
    assert not sent
    a.sum().item(), b.sum().item(), (x * 2).sum().item()
    assert len(sent) == 1
    x.add_(1)
    assert x.tolist() == [2, 3, 4] and a.tolist() == [2, 3, 4]


ROWS = {
    "shuffled": ([3, 0, 7, 7, 2], lambda x, i: x[i]),
    "one after the other": ([2, 3, 4, 5], lambda x, i: x[i]),
    "every other": ([0, 2, 4, 6], lambda x, i: x[i]),
    "backwards": ([6, 4, 2, 0], lambda x, i: x[i]),
    "the same": ([5, 5, 5, 5], lambda x, i: x[i]),
    "windows": ([3, 0, 5, 1], lambda x, i: x[i:i + 2]),
    "windows in the middle of rows": ([3, 0, 5, 1], lambda x, i: x.view(-1)[i:i + x.shape[1] + 2]),
    "parts of rows": ([3, 0, 5, 1], lambda x, i: x[i, 1:]),
    "columns": ([3, 0, 2, 1], lambda x, i: x[:, i]),
    "elements": ([3, 0, 5, 1], lambda x, i: x[i, 1]),
}


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
@pytest.mark.parametrize("dtype, width", [("float32", 5), ("float32", 48), ("uint8", 33), ("int64", 5), ("float16", 24), ("bool", 5)])
@pytest.mark.parametrize("rows", ROWS)
def test_rows_of_one_tensor(rows, dtype, width, kind, monkeypatch):
    monkeypatch.setattr(clnn.get_default_device().physical, "is_cpu", kind == "cpu")
    places, take = ROWS[rows]
    array = (rand.random((8, width)) * 3).astype(dtype)
    x = clnn.tensor(array).clone()
    x._storage.buffer()
    expected = np.stack([take(clnn.tensor(array), i).numpy() for i in places])
    for _ in range(2):
        got = clnn.stack([take(x, i) for i in places])
        assert got.dtype is x.dtype and np.array_equal(got.numpy(), expected)
        assert np.array_equal(got.logical_not().numpy(), np.logical_not(expected))
    if expected.ndim > 1:
        assert np.array_equal(clnn.cat([take(x, i) for i in places]).numpy(), np.concatenate(list(expected)))
    got = clnn.stack([take(x, i) for i in places])
    x.zero_()
    assert np.array_equal(got.numpy(), expected)


def test_gradients_reach_rows_and_samples():
    x = clnn.arange(12.0).view(4, 3).requires_grad_()
    clnn.stack([x[i] for i in (2, 0, 2, 1)]).sum().backward()
    assert x.grad.tolist() == [[1] * 3, [1] * 3, [2] * 3, [0] * 3]
    samples = [clnn.tensor([float(i)], requires_grad=True) for i in range(5)]
    clnn.stack([s * 3 for s in samples]).sum().backward()
    assert [s.grad.item() for s in samples] == [3] * 5


def test_a_loader_gives_what_samples_are():
    class Samples(clnn.utils.data.Dataset):
        def __len__(self):
            return 9

        def __getitem__(self, i):
            return {"image": (clnn.from_numpy(BYTES[i]).permute(2, 0, 1).float() / 255 - 0.5) / 0.5, "row": WEIGHT[i] * 2, "label": i}

    WEIGHT = clnn.tensor(IMAGES).flatten(1) * 1
    for batch in clnn.utils.data.DataLoader(Samples(), batch_size=5, shuffle=True):
        numbers = batch["label"].tolist()
        assert np.allclose(batch["image"].numpy(), (BYTES[numbers].transpose(0, 3, 1, 2) / np.float32(255) - 0.5) / 0.5, atol=1e-6)
        assert np.array_equal(batch["row"].numpy(), IMAGES[numbers].reshape(len(numbers), -1) * 2)


# -- sequences of different lengths -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("first", [True, False])
def test_padding(side, first):
    lengths = [3, 1, 5, 2]
    arrays = [rand.random((n, 2)).astype(np.float32) for n in lengths]
    for tensors in ([clnn.tensor(a) for a in arrays], [clnn.tensor(a) * 1 for a in arrays], [clnn.tensor(a).requires_grad_() for a in arrays]):
        got = rnn.pad_sequence(tensors, first, -1.0, side)
        expected = np.full((4, 5, 2), -1, np.float32)
        for row, a in zip(expected, arrays):
            row[:len(a)] = a
            if side == "left":
                row[:] = np.roll(row, 5 - len(a), 0)
        assert np.array_equal(got.detach().numpy(), expected if first else expected.transpose(1, 0, 2))
    (got * clnn.arange(1.0, 5).view((4, 1, 1) if first else (1, 4, 1))).sum().backward()
    assert [t.grad.unique().tolist() for t in tensors] == [[1], [2], [3], [4]]
    with pytest.raises(RuntimeError, match="trailing sizes"):
        rnn.pad_sequence([clnn.zeros(2, 3), clnn.zeros(1, 4)])


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("lengths", [[4, 3, 1], [1, 4, 3], [2, 2, 2]])
def test_packing_there_and_back(first, lengths):
    x = clnn.arange(3 * 4 * 2.0).view(3, 4, 2)
    packed = rnn.pack_padded_sequence(x if first else x.transpose(0, 1), lengths, first, enforce_sorted=False)
    assert packed.batch_sizes.tolist() == [sum(n > t for n in lengths) for t in range(max(lengths))]
    back, sizes = rnn.pad_packed_sequence(packed, first, -1.0, 6)
    assert sizes.tolist() == lengths
    for row, given, n in zip(back if first else back.transpose(0, 1), x, lengths):
        assert clnn.equal(row[:n], given[:n]) and (row[n:] == -1).all()
    beyond = rnn.pack_padded_sequence(x, [5, 1, 1], True)                # as in PyTorch: steps that are not there are none
    assert beyond.data.shape[0] == 6 and beyond.batch_sizes.tolist() == [3, 1, 1, 1, 1]


# -- random numbers ---------------------------------------------------------------------------------------------------------------------------
@pytest.fixture
def sequence():
    before, config.random = config.random, "pytorch"
    yield
    config.random = before


def test_few_numbers_after_many_are_the_same_wherever_they_are_drawn(sequence):
    def draws(few):
        clnn.manual_seed(3)
        out = [clnn.rand(20000)]
        for _ in range(12):
            out += [clnn.rand(n) for n in few] + [clnn.randint(9, (3,)).float(), clnn.rand(2, dtype=clnn.float64).float()]
        return np.concatenate([t.numpy() for t in out + [clnn.rand(20000), clnn.rand(1)]])

    words = clnn.core.twister.Twister(3).words(20000)
    got = draws([1, 2])
    assert np.array_equal(got[:20000], ((words & 0xFFFFFF) * 2.0 ** -24).astype(np.float32)) and np.array_equal(got, draws([1, 2]))
    assert np.array_equal(draws([3]), got)                       # three at once, or one and two


@pytest.mark.skipif(torch is None, reason="PyTorch is not installed")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_weights_begin_with_pytorchs_bits(sequence, dtype):
    for n in (1, 5, 100, 9000):
        for low, high in ((-1, 2), (-0.0321, 0.0321), (3, 3.5)):
            torch.manual_seed(n), clnn.manual_seed(n)
            expected = torch.empty(n, dtype=getattr(torch, dtype)).uniform_(low, high).numpy()
            assert np.array_equal(clnn.empty(n, dtype=getattr(clnn, dtype)).uniform_(low, high).numpy(), expected)
    torch.manual_seed(0), clnn.manual_seed(0)
    ours, theirs = [n.Sequential(n.Linear(20, 30), n.Conv2d(3, 8, 3), n.LSTM(4, 5)) for n in (nn, torch.nn)]
    assert all(np.array_equal(a.detach().numpy(), b.detach().numpy()) for a, b in zip(ours.parameters(), theirs.parameters()))
