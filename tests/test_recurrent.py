"""Recurrent layers whose sizes fill vectors (one launch for all steps) against PyTorch."""
import numpy as np
import pytest

import clnn
from clnn._tensor import repeat
from clnn.core import dtype as dt
from clnn.ops import _recurrent_gpu
from clnn.runtime.device import default_device

torch = pytest.importorskip("torch")


@pytest.mark.share(2)
@pytest.mark.parametrize("name, kind", [("LSTM", dict(bidirectional=True)), ("LSTM", dict(num_layers=2, bias=False)), ("GRU", dict(bidirectional=True)),
                                        ("RNN", dict(nonlinearity="relu")), ("RNN", dict(bidirectional=True))])
def test_layer_equals_torch(name, kind):
    compare(name, 32, **kind)


def compare(name, H, T=4, N=7, C=5, **kind):
    """Outputs, states and all gradients of a layer with those of PyTorch."""
    theirs = getattr(torch.nn, name)(C, H, **kind)
    ours = getattr(clnn.nn, name)(C, H, **kind)
    ours.load_state_dict({k: clnn.tensor(v.detach().numpy()) for k, v in theirs.state_dict().items()})
    rng = np.random.default_rng(0)
    x = rng.standard_normal((T, N, C)).astype(np.float32)
    g = rng.standard_normal((T, N, H * (2 if kind.get("bidirectional") else 1))).astype(np.float32)
    results = []
    for lib, layer in ((clnn, ours), (torch, theirs)):
        leaf = lib.tensor(x, requires_grad=True)
        y, state = layer(leaf)
        loss = (y * lib.tensor(g)).sum()
        for part in state if isinstance(state, tuple) else (state,):
            loss = loss + (part * part).sum()
        loss.backward()
        results.append([y.detach().numpy(), leaf.grad.numpy()] + [p.grad.numpy() for p in layer.parameters()])
    for got, want in zip(*results):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.fixture
def gpu(monkeypatch):
    """The default device, treated as a GPU; the kernels that it takes are listed."""
    device, taken = default_device(), []
    plain = type(device).kernel
    monkeypatch.setattr(device, "is_cpu", False)
    monkeypatch.setattr(repeat, "on", False)
    monkeypatch.setattr(device, "kernel", lambda path, **params: taken.append((path, params)) or plain(device, path, **params), raising=False)
    _recurrent_gpu._best.cache_clear()
    yield taken
    _recurrent_gpu._best.cache_clear()


# units of the device (few: several sequences to a group), registers for weights
@pytest.mark.share(3)
@pytest.mark.parametrize("name, H, units, holds, kind", [("LSTM", 9, 4, 32, dict(bidirectional=True)), ("LSTM", 100, 999, 128, {}),
                                                         ("GRU", 45, 4, 0, dict(num_layers=2)), ("GRU", 16, 999, 64, dict(bias=False)),
                                                         ("RNN", 70, 3, 16, dict(nonlinearity="relu")), ("RNN", 6, 999, 64, {})])
def test_all_steps_at_once_on_gpus(gpu, monkeypatch, name, H, units, holds, kind):
    device = default_device()
    monkeypatch.setattr(device, "compute_units", units)
    monkeypatch.setattr(_recurrent_gpu, "_HOLDS", {device.flavour: holds})
    monkeypatch.setattr(_recurrent_gpu, "_ITEMS", 64 if H < 40 else 256)
    compare(name, H, **kind)
    rows = [params["R"] for path, params in gpu if path in ("recurrent/sequence", "recurrent/sequence_backward")]
    assert len(rows) == 2 * (1 + len(kind.keys() & {"bidirectional", "num_layers"})) and (min(rows) > 1) == (units < 7)


@pytest.mark.share(2)
@pytest.mark.parametrize("kind, tolerance", [(clnn.float16, 4e-3), (clnn.bfloat16, 4e-2), (clnn.float64, 1e-10)], ids=str)
def test_dtypes_on_gpus(gpu, monkeypatch, kind, tolerance):
    if kind is clnn.float64 and not default_device().has_fp64:
        pytest.skip("no doubles")
    monkeypatch.setattr(default_device(), "compute_units", 99)
    theirs, ours = torch.nn.GRU(3, 10).double(), clnn.nn.GRU(3, 10).to(kind)
    ours.load_state_dict({k: clnn.tensor(v.detach().numpy()).to(kind) for k, v in theirs.state_dict().items()})
    x = np.random.default_rng(0).standard_normal((3, 4, 3))
    leaf, want = clnn.tensor(x, dtype=kind, requires_grad=True), torch.tensor(x, requires_grad=True)
    for layer, of in ((ours, leaf), (theirs, want)):
        layer(of)[0].sum().backward()
    assert "recurrent/sequence" in [path for path, _ in gpu]
    np.testing.assert_allclose(leaf.grad.double().numpy(), want.grad.numpy(), atol=tolerance)
    np.testing.assert_allclose(ours.weight_hh_l0.grad.double().numpy(), theirs.weight_hh_l0.grad.numpy(), atol=8 * tolerance)


@pytest.mark.share(2)
@pytest.mark.parametrize("name, units", [("LSTM", 99), ("GRU", 3), ("RNN", 2)])
def test_unequal_lengths_on_gpus(gpu, monkeypatch, name, units):
    monkeypatch.setattr(default_device(), "compute_units", units)
    monkeypatch.setattr(_recurrent_gpu, "_ITEMS", 64)
    results, lengths, x = [], [3, 1, 4, 4, 1], np.random.default_rng(0).standard_normal((4, 5, 3)).astype(np.float32)
    theirs, ours = (getattr(lib.nn, name)(3, 7, bidirectional=True) for lib in (torch, clnn))
    ours.load_state_dict({k: clnn.tensor(v.detach().numpy()) for k, v in theirs.state_dict().items()})
    for lib, layer in ((clnn, ours), (torch, theirs)):
        leaf = lib.tensor(x, requires_grad=True)
        first = [lib.tensor(x[:2].repeat(3, 2)[:, :, :7] + k, requires_grad=True) for k in range(2 if name == "LSTM" else 1)]
        y, last = layer(lib.nn.utils.rnn.pack_padded_sequence(leaf, lengths, enforce_sorted=False), tuple(first) if name == "LSTM" else first[0])
        last = last if name == "LSTM" else (last,)
        ((y.data ** 3).sum() + sum((k * k).sum() for k in last)).backward()
        results.append([t.detach().numpy() for t in (y.data, *last, leaf.grad, *[t.grad for t in (*first, *layer.parameters())])])
    for got, want in zip(*results):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    assert [path for path, params in gpu if params.get("PACKED")] == ["recurrent/sequence"] * 2 + ["recurrent/sequence_backward"] * 2


def test_steps_at_once_for_weights_that_caches_hold(gpu, monkeypatch):
    device = default_device()
    monkeypatch.setattr(device, "compute_units", 132)
    monkeypatch.setattr(device, "max_work_group", 256)

    def at_once(mode, N, H, back=False):
        return _recurrent_gpu.plan(device, dt.float32, mode, 30, N, H, back)
    assert all(at_once(mode, 32, 128, back).R == 1 for mode in ("lstm", "gru", "tanh", "relu") for back in (False, True))
    assert at_once("lstm", 2048, 64).R > 1 and at_once("lstm", 64, 1024) is at_once("gru", 64, 2048, True) is None
    monkeypatch.setattr(device, "is_cpu", True)
    assert at_once("lstm", 32, 128) is None


def test_weights_put_in_the_place_of_the_parameters():
    """Programs drop or swap weights by the list of them."""
    results = []
    for lib in (clnn, torch):
        lib.manual_seed(0)
        layer, x = lib.nn.GRU(3, 4, 2), lib.ones(2, 1, 3)
        plain = layer(x)[0]
        layer._flat_weights = [w * 0.5 for w in layer._flat_weights]
        halved = layer(x)[0]
        halved.sum().backward()
        layer._flat_weights = list(layer.parameters())
        results.append([t.detach().numpy() for t in (plain, halved, layer.weight_ih_l0.grad, layer(x)[0])])
    for got, want in zip(*results):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name, kind, lengths", [("LSTM", dict(bidirectional=True), [3, 7, 1, 7, 2, 5, 4]), ("GRU", dict(bidirectional=True, num_layers=2), [6, 6, 2, 1]),
                                                 ("RNN", dict(nonlinearity="relu", bias=False), [1, 1, 1]), ("RNN", dict(bidirectional=True), [4])])
def test_packed_sequences_equal_torch(name, kind, lengths):
    """Sequences of unequal lengths at once, with states given: outputs, last states and all gradients."""
    theirs, ours = (getattr(lib.nn, name)(5, 20, **kind) for lib in (torch, clnn))
    ours.load_state_dict({k: clnn.tensor(v.detach().numpy()) for k, v in theirs.state_dict().items()})
    rng, cells = np.random.default_rng(1), kind.get("num_layers", 1) * (2 if kind.get("bidirectional") else 1)
    x, first = (rng.standard_normal(shape).astype(np.float32) for shape in ((max(lengths), len(lengths), 5), (2, cells, len(lengths), 20)))
    results = []
    for lib, layer in ((clnn, ours), (torch, theirs)):
        leaves = [lib.tensor(v, requires_grad=True) for v in (x, *first[:2 if name == "LSTM" else 1])]
        packed = lib.nn.utils.rnn.pack_padded_sequence(leaves[0], lib.tensor(lengths), enforce_sorted=False)
        y, state = layer(packed, tuple(leaves[1:]) if name == "LSTM" else leaves[1])
        parts = state if isinstance(state, tuple) else (state,)
        sum([(part * part).sum() for part in (*parts, y.data * 2)]).backward()
        results.append([t.detach().numpy() for t in (y.data, *parts, *[v.grad for v in leaves], *[p.grad for p in layer.parameters()])])
    for got, want in zip(*results):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
