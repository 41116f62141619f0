"""Kernels that keep tiles in vector registers, laid out for other processors than the one that runs the tests: the same numbers from any layout."""
import math

import numpy as np
import pytest

import clnn
from clnn._tensor import repeat
from clnn.nn import functional as F
from clnn.runtime import drivers, params

SIZES = {"SSE": 256, "AVX2": 512, "AVX-512": 2048}      # bytes of all registers


def draw(*shape):
    return np.random.default_rng(math.prod(shape)).standard_normal(shape).astype(np.float32)


@pytest.fixture(params=SIZES.values(), ids=SIZES)
def layout(request, device, monkeypatch):
    """The device with the registers of another processor; nothing that was planned or built for its own is used."""
    if not device.is_cpu:
        pytest.skip("GPUs choose tiles by other limits")
    if request.param == device.registers:
        pytest.skip("all other tests are about this layout")
    monkeypatch.setattr(device, "registers", request.param)
    monkeypatch.setattr(device, "_kernels", {})
    monkeypatch.setattr(device, "_programs", {})
    monkeypatch.setattr(repeat, "on", False)
    params.changed()
    yield request.param
    params.changed()


@pytest.mark.parametrize("M, N, K", [(37, 70, 90), (12, 40, 200)])
@pytest.mark.parametrize("turned", [False, True], ids=["rows", "columns"])
def test_products(layout, M, N, K, turned):
    a, b = draw(M, K), draw(K, N)
    right = clnn.tensor(b.T.copy()).t() if turned else clnn.tensor(b)
    np.testing.assert_allclose((clnn.tensor(a) @ right).numpy(), a @ b, rtol=2e-5, atol=2e-5)


def convolution(x, w):
    """3 x 3 with padding 1, in float64 from the definition."""
    wide = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    H, W = x.shape[2:]
    return sum(np.einsum("nchw,oc->nohw", wide[:, :, i:i + H, j:j + W], w[:, :, i, j].astype(np.float64)) for i in range(3) for j in range(3))


@pytest.mark.share(2)
@pytest.mark.parametrize("O", [48, 5], ids=["Winograd", "few channels"])
def test_convolutions(layout, O):
    x, w, g = draw(2, 36, 12, 14), draw(O, 36, 3, 3), draw(2, O, 12, 14)
    image, weight = clnn.tensor(x, requires_grad=True), clnn.tensor(w, requires_grad=True)
    y = F.conv2d(image, weight, padding=1)
    y.backward(clnn.tensor(g))
    np.testing.assert_allclose(y.detach().numpy(), convolution(x, w), atol=3e-4)
    np.testing.assert_allclose(image.grad.numpy(), convolution(g, w[:, :, ::-1, ::-1].transpose(1, 0, 2, 3)), atol=3e-4)
    wide = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    expected = np.stack([[np.einsum("nchw,nohw->oc", wide[:, :, i:i + 12, j:j + 14], g) for j in range(3)] for i in range(3)]).transpose(2, 3, 0, 1)
    np.testing.assert_allclose(weight.grad.numpy(), expected, atol=1e-3)


@pytest.mark.share(2)
@pytest.mark.parametrize("causal", [False, True])
def test_attention(layout, causal):
    q, k, v, g = (draw(1, 2, n, 32) for n in (40, 41, 41, 40))
    if causal:
        k, v = k[:, :, :40], v[:, :, :40]
    tensors = [clnn.tensor(np.ascontiguousarray(t), requires_grad=True) for t in (q, k, v)]
    y = F.scaled_dot_product_attention(*tensors, is_causal=causal)
    y.backward(clnn.tensor(g))
    score = q.astype(np.float64) @ k.transpose(0, 1, 3, 2) / math.sqrt(32)
    if causal:
        score = np.where(np.tri(40, dtype=bool), score, -np.inf)
    p = np.exp(score - score.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    d = g @ v.transpose(0, 1, 3, 2)
    d = p * (d - (d * p).sum(-1, keepdims=True)) / math.sqrt(32)
    expected = (p @ v, d @ k, d.transpose(0, 1, 3, 2) @ q, p.transpose(0, 1, 3, 2) @ g)
    for got, want in zip((y.detach(), *(t.grad for t in tensors)), expected):
        np.testing.assert_allclose(got.numpy(), want, atol=2e-5)


def test_recurrent_layers(layout):
    """Sequences share nothing, so each alone (through another tile) gives what all give."""
    clnn.manual_seed(0)
    net, x = clnn.nn.LSTM(8, 32), clnn.tensor(draw(3, 14, 8))
    y = net(x)[0]
    (y * y).sum().backward()
    together = [p.grad.numpy() for p in net.parameters()]
    net.zero_grad()
    for n in range(14):
        one = net(x[:, n:n + 1])[0]
        np.testing.assert_allclose(one.detach().numpy(), y[:, n:n + 1].detach().numpy(), atol=1e-6)
        (one * one).sum().backward()
    for p, expected in zip(net.parameters(), together):
        np.testing.assert_allclose(p.grad.numpy(), expected, atol=2e-5)


@pytest.mark.share(2)
def test_factors_in_blocks(layout):
    a, b = draw(220, 220), draw(220, 130)
    s = a @ a.T / 220 + np.eye(220, dtype=np.float32)
    S, B = clnn.tensor(s), clnn.tensor(b)
    P, L, U = clnn.linalg.lu(clnn.tensor(a))
    np.testing.assert_allclose((P @ L @ U).numpy(), a, atol=1e-4)
    np.testing.assert_allclose(clnn.linalg.cholesky(S).numpy(), np.linalg.cholesky(s.astype("d")), atol=1e-4)
    np.testing.assert_allclose(clnn.linalg.solve(S, B).numpy(), np.linalg.solve(s.astype("d"), b), atol=1e-3)
    Q, upper = clnn.linalg.qr(clnn.tensor(b))
    np.testing.assert_allclose((Q @ upper).numpy(), b, atol=1e-4)
    np.testing.assert_allclose((Q.T @ Q).numpy(), np.eye(130), atol=1e-5)


def test_registers_are_told_from_what_the_processor_says(monkeypatch):
    class Driver:
        native_vector_width_float = 8
    for flags, machine, expected in (({"sse2", "avx2", "avx512f"}, "x86_64", 2048), ({"sse2", "avx2"}, "x86_64", 512), ({"sse2"}, "AMD64", 256),
                                     ({"asimd"}, "aarch64", 512), ((), "x86_64", 512)):
        monkeypatch.setattr(drivers, "host_flags", lambda: frozenset(flags))
        monkeypatch.setattr(drivers, "machine", lambda: machine)
        assert drivers.vector_registers(Driver) == expected


def test_tuned_rows_of_an_architecture_stay_there(device, monkeypatch):
    if not device.is_cpu:
        pytest.skip("names of GPUs say enough")
    monkeypatch.setattr(device, "registers", 512)
    assert params.places(device)[:3] == (device.name, f"{device.flavour}/512", device.flavour)
    shipped = [r for path in params.shipped_files() for r in params.read_rows(path)]
    assert shipped and all(r["place"].endswith("/2048") for r in shipped if r["place"].startswith(("intel-cpu", "pocl")))
