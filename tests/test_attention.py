"""Attention in one launch against PyTorch, and against the path of separate products."""
import types

import numpy as np
import pytest

import clnn
import clnn.nn.functional as F
from clnn._tensor import repeat
from clnn.ops import _attention, _attention_gpu, _attention_gradients, attention
from clnn.runtime.device import default_device

# B, H, L, S, E, Ev, query heads per key head, heads innermost, mask
CASES = {"blocks": (1, 2, 130, 90, 16, 16, 1, False, None), "causal": (2, 2, 50, 50, 32, 16, 1, True, "causal"),
         "causal-few-keys": (1, 1, 40, 20, 16, 16, 1, False, "causal"), "shared-keys": (2, 4, 21, 33, 16, 16, 2, True, None),
         "bool": (2, 2, 20, 20, 16, 16, 1, True, "bool"), "float": (2, 2, 20, 20, 16, 16, 1, False, "float"),
         "padding": (2, 2, 20, 20, 16, 16, 1, False, "keys"), "one-query": (2, 4, 1, 40, 16, 16, 2, False, None),
         "parts-of-vectors": (2, 4, 21, 40, 20, 9, 2, True, "bool"), "few-queries": (1, 2, 3, 40, 5, 33, 1, False, None)}


def inputs(b, h, n, s, e, ev, groups, inner, kind):
    """Query, key, value and gradient as arrays, and the mask."""
    rng = np.random.default_rng(0)

    def make(heads, length, size):
        return rng.standard_normal((b, length, heads, size) if inner else (b, heads, length, size)).astype(np.float32)
    arrays = [make(h, n, e), make(h // groups, s, e), make(h // groups, s, ev), make(h, n, ev)]
    masks = {"bool": rng.random((b, 1, n, s)) > 0.4, "float": rng.standard_normal((n, s)).astype(np.float32), "keys": rng.random((b, 1, 1, s)) > 0.4}
    if kind == "bool":
        masks["bool"][:, :, 3] = False                           # a query that sees nothing gives zeros
    return arrays, masks.get(kind)


def run(lib, f, arrays, mask, inner, **kind):
    """Output and gradients."""
    leaves = [lib.tensor(a, requires_grad=True) for a in arrays[:3]]
    q, k, v = (t.transpose(1, 2) if inner else t for t in leaves)
    grad = lib.tensor(arrays[3])
    out = f.scaled_dot_product_attention(q, k, v, None if mask is None else lib.tensor(mask), **kind)
    out.backward(grad.transpose(1, 2) if inner else grad)
    return [out.detach().numpy()] + [t.grad.numpy() for t in leaves]


@pytest.mark.share(2)
@pytest.mark.parametrize("name", CASES)
def test_equals_torch(name):
    torch = pytest.importorskip("torch")
    case = CASES[name]
    arrays, mask = inputs(*case)
    kind = dict(is_causal=case[8] == "causal", enable_gqa=case[6] > 1)
    got = run(clnn, F, arrays, mask, case[7], **kind)
    want = run(torch, torch.nn.functional, arrays, mask, case[7], **kind)
    for a, b in zip(got, want):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


# B, H, L, S, E, Ev, query heads per key head, heads innermost, mask; then (work-items along keys and queries, tile of each), fetching ahead
ON_GPUS = {"blocks": ((1, 2, 70, 90, 16, 24, 1, False, None), (8, 8, 4, 4), False), "causal, ahead": ((2, 1, 50, 50, 32, 16, 1, False, "causal"), (8, 8, 2, 2), True),
           "shared keys": ((2, 4, 21, 33, 20, 36, 2, True, None), (8, 8, 2, 4), True), "bool": ((2, 2, 20, 20, 64, 64, 1, True, "bool"), (16, 8, 2, 2), False),
           "float": ((2, 2, 20, 20, 16, 16, 1, False, "float"), (16, 8, 4, 4), False), "padding": ((2, 2, 20, 20, 16, 16, 1, False, "keys"), None, None)}


@pytest.fixture
def gpu(monkeypatch):
    """The default device, treated as a GPU; the kernels that it takes are listed."""
    device, taken = default_device(), []
    plain = type(device).kernel
    monkeypatch.setattr(device, "is_cpu", False)
    monkeypatch.setattr(_attention, "_plans", {})
    monkeypatch.setattr(repeat, "on", False)
    monkeypatch.setattr(device, "kernel", lambda path, **params: taken.append((path, params)) or plain(device, path, **params), raising=False)
    return taken


@pytest.mark.share(2)
@pytest.mark.parametrize("name", ON_GPUS)
def test_on_gpus(gpu, monkeypatch, name):
    torch = pytest.importorskip("torch")
    case, tiles, ahead = ON_GPUS[name]
    if tiles:
        monkeypatch.setattr(_attention_gpu, "tile", lambda *_: tiles)
        monkeypatch.setattr(default_device(), "compute_units", 1000 if ahead else 1)
        monkeypatch.setattr(_attention_gpu, "_AHEAD", 1)
        monkeypatch.setattr(_attention_gradients, "tiles", lambda *_: [tiles])
        monkeypatch.setattr(_attention_gradients, "_SHARE", 1 << 60 if ahead else 1)     # gradients of queries from parts of the keys, or from all at once
    arrays, mask = inputs(*case)
    kind = dict(is_causal=case[8] == "causal", enable_gqa=case[6] > 1)
    got, want = run(clnn, F, arrays, mask, case[7], **kind), run(torch, torch.nn.functional, arrays, mask, case[7], **kind)
    assert [p["AHEAD"] for path, p in gpu if path == "attention/gpu"] == [bool(ahead)] and any(path == "attention/gpu_keys" for path, _ in gpu)
    for a, b in zip(got, want):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


def test_on_gpus_nan_stays_in_its_row(gpu):
    q = clnn.tensor(np.random.default_rng(1).standard_normal((1, 2, 20, 16)).astype(np.float32))
    bad = q.clone()
    bad[0, 0, 3, 0], bad[0, 1, 5, 1] = float("nan"), float("inf")
    lost = F.scaled_dot_product_attention(bad, q, q).isnan()
    assert lost[0, 0, 3].all() and not lost[0, 0, :3].any() and lost[0, 1, 5].all() and not lost[0, 1, :5].any()
    assert gpu[-1][0] == "attention/gpu"


def test_dropout_on_gpus_equals_separate_products(gpu, monkeypatch):
    arrays, _ = inputs(1, 2, 20, 20, 16, 16, 1, False, None)

    def both():
        clnn.manual_seed(7)
        return run(clnn, F, arrays, None, False, dropout_p=0.3)
    monkeypatch.setattr(attention, "_numbered", lambda *_: False)
    got = both()
    assert any(path == "attention/gpu" and p["DROP"] for path, p in gpu)
    monkeypatch.setattr(_attention_gpu, "form", lambda *_: None)
    for a, b in zip(got, both()):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


def test_tiles_fill_the_device():
    def tile(L, width, z, **device):
        kind = dict(compute_units=132, max_work_group=1024, local_mem=49152, **device)
        return _attention_gpu.tile(types.SimpleNamespace(**kind), L, width, z)
    assert tile(512, 64, 64) == (16, 8, 8, 4) and tile(256, 64, 32) == (16, 16, 4, 4) and tile(256, 64, 8) == (16, 8, 4, 4)
    assert tile(20, 24, 999) == (8, 8, 4, 8) and tile(512, 128, 64) == (16, 8, 4, 2)
    for rows in _attention_gpu.TILES.items():
        assert all(_attention_gpu.local_memory(t, rows[0]) <= 49152 for t in rows[1])


def test_dropout_equals_separate_products(monkeypatch):
    arrays, _ = inputs(1, 2, 20, 20, 16, 16, 1, False, None)

    def both():
        clnn.manual_seed(7)
        return run(clnn, F, arrays, None, False, dropout_p=0.3)
    got = both()
    monkeypatch.setattr(_attention.Form, "suits", staticmethod(lambda *_: False))
    monkeypatch.setattr(repeat, "on", False)
    for a, b in zip(got, both()):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


def test_nan_and_low_precision():
    rng = np.random.default_rng(1)
    q = clnn.tensor(rng.standard_normal((1, 2, 20, 16)).astype(np.float32))
    bad = q.clone()
    bad[0, 0, 3, 0] = float("nan")
    lost = F.scaled_dot_product_attention(bad, q, q).isnan()
    assert lost[0, 0, 3].all() and not lost[0, 0, :3].any() and not lost[0, 1].any()
    low = F.scaled_dot_product_attention(*[q.to(clnn.bfloat16)] * 3)
    assert low.dtype is clnn.bfloat16
    np.testing.assert_allclose(low.float().numpy(), F.scaled_dot_product_attention(q, q, q).numpy(), atol=0.03)


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_masks_of_floats_go_with_all_dtypes(device, dtype, learned):
    """A row of -1e9 is no row of infinities, as it would be in 16 bits."""
    if dtype == "float64" and not device.has_fp64:
        pytest.skip("no fp64")
    r = np.random.default_rng(2)
    q, k, v = (clnn.tensor(r.standard_normal((1, 2, 9, 16))).to(getattr(clnn, dtype)) for _ in range(3))
    mask = r.standard_normal((9, 9)).astype("f")
    mask[3] = -1e9
    out = F.scaled_dot_product_attention(q.requires_grad_(), k, v, clnn.tensor(mask, requires_grad=learned))
    out.sum().backward()
    scores = (q.detach().double().numpy() @ k.double().numpy().swapaxes(-1, -2) / 4).astype("d" if dtype == "float64" else "f") + mask
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    right = weights / weights.sum(-1, keepdims=True) @ v.double().numpy()
    assert out.dtype is q.dtype and q.grad.isfinite().all()
    np.testing.assert_allclose(out.detach().double().numpy(), right, atol={"float16": 2e-3, "bfloat16": 2e-2, "float64": 1e-12}[dtype])
    with pytest.raises(RuntimeError, match="bool or float or to match query dtype"):
        F.scaled_dot_product_attention(q, k, v, clnn.zeros(9, 9, dtype=clnn.int32))


def test_unlike_heads():
    """Keys and values may have different numbers of heads; what does not divide or broadcast is a RuntimeError in PyTorch's words."""
    torch = pytest.importorskip("torch")
    r, results = np.random.default_rng(4), []
    q, k, v = (r.standard_normal((1, heads, 4, 8)).astype(np.float32) for heads in (4, 2, 4))
    for lib in (clnn, torch):
        attend, (a, b, c) = lib.nn.functional.scaled_dot_product_attention, map(lib.tensor, (q, k, v))
        results.append(attend(a, b, c, enable_gqa=True).numpy())
        for words, call in (("must match the size of tensor b", lambda: attend(a, b, c)), ("must divide", lambda: attend(a[:, :3], b, b, enable_gqa=True)),
                            (r"size of tensor a \(4\) must match the size of tensor b \(3\) at non-singleton dimension 3",
                             lambda: attend(a, a, a, attn_mask=lib.zeros(4, 3))),
                            ("at least 2 dim", lambda: attend(a[0, 0, 0], b, c)), ("between 0 and 1", lambda: attend(a, a, a, dropout_p=2.0))):
            with pytest.raises(RuntimeError, match=words):
                call()
    np.testing.assert_allclose(*results, atol=1e-5)


@pytest.mark.parametrize("turned", [True, False])
@pytest.mark.parametrize("size, dtype", [(8, "f"), (20, "f"), (32, "f"), (8, "d")])     # doubles go by matrix products, as all do on GPUs
def test_rows_lie_as_in_pytorch(size, dtype, turned, device):
    """Heads and elements can be taken together by ``view``, whatever the size of a head, also where calls are repeated."""
    if dtype == "d" and not device.has_fp64:
        pytest.skip("no doubles here")
    for i in range(4):
        x = np.random.default_rng(i).standard_normal((2, 7, 3, size)).astype(dtype)
        q = clnn.tensor(x).transpose(1, 2) if turned else clnn.tensor(x.swapaxes(1, 2).copy())
        y = F.scaled_dot_product_attention(q, q, q)
        assert y.stride() == ((21 * size, size, 3 * size, 1) if turned else (21 * size, 7 * size, size, 1))
        flat = y.transpose(1, 2).view(2, 7, 3 * size) if turned else y.view(2, 21 * size)
        s = x.swapaxes(1, 2)
        w = np.exp(s @ s.swapaxes(2, 3) / np.sqrt(size))
        want = w / w.sum(-1, keepdims=True) @ s
        np.testing.assert_allclose(flat.numpy().ravel(), (want.swapaxes(1, 2) if turned else want).ravel(), rtol=1e-4, atol=1e-5)
