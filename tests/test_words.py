"""Products of bfloat16 and int8 in words: the kernels with the instruction spelt out and, where the processor has it, itself, against exact sums."""
import types

import numpy as np
import pytest
from scenarios import torch

import clnn
from clnn.core import dtype as dt
from clnn.core.config import config
from clnn.ops import _conv, _gemm, _gemm_words, _proof
from clnn.ops._conv_weight import TiledWeight
from clnn.runtime import assemble
from clnn.runtime.device import default_device, list_devices
from clnn.runtime.launch import launch

if not list_devices():
    pytest.skip("no OpenCL device", allow_module_level=True)
if not (default_device().is_cpu and default_device().wide):
    pytest.skip("words are for CPUs with vectors of 64 bytes", allow_module_level=True)


@pytest.fixture(params=["plain", "instruction"])
def dev(request, monkeypatch):
    """The default device, with the instruction spelt out or as it is."""
    device = default_device()
    monkeypatch.setattr(_gemm, "_plans", {})
    if request.param == "plain":
        monkeypatch.setattr(config, "tensor_cores", "emulate")
    elif len(_gemm_words.kinds(device)) < 2:
        pytest.skip("this processor or its driver has no such instruction")
    return device


def put(dev, array, at=0):
    buf = dev.alloc(array.nbytes + at * array.itemsize)
    dev.write(buf, array, at * array.itemsize)
    return buf


def product(dev, T, M, N, K, ta=False, tb=False, batch=1, at=0, out=None, bias="", epilogue="", alpha=1, beta=0, left=None):
    """One product of small integers, compared with NumPy to the bit where C holds the sums."""
    out, left = out or (dt.int32 if T is dt.int8 else dt.float32), left or T
    rng = np.random.default_rng(M + N + K)
    low, high = (-128, 128) if T is dt.int8 else (-8, 9)
    a = rng.integers(low if left is T else 0, high if left is T else 256, (batch, *((K, M) if ta else (M, K))))
    b = rng.integers(low, high, (batch, *((N, K) if tb else (K, N))))
    c, v = rng.integers(-9, 9, (batch, M, N)), rng.integers(-9, 9, N if bias == "n" else M)
    want = alpha * ((np.swapaxes(a, 1, 2) if ta else a) @ (np.swapaxes(b, 1, 2) if tb else b)) + beta * c
    want = want + (v if bias == "n" else v[:, None] if bias else 0)
    want = np.maximum(want, 0) if epilogue else want
    buf = put(dev, c.astype(out.np), at)
    _gemm.gemm(dev, T if left is T else (left, T), M, N, K, put(dev, a.astype(left.np), at), at, (1, M) if ta else (K, 1), put(dev, b.astype(T.np), at), at,
               (1, K) if tb else (N, 1), buf, at, N, batch, (M * K, K * N, M * N), alpha, beta, (put(dev, v.astype(out.np), at), at) if bias else None, bias or "n",
               epilogue, out)
    assert [p for p in _gemm._plans.values() if p.problem.K == K][-1].kernel.name == "matmul_words"
    got = dev.read(buf, c.size * out.itemsize, at * out.itemsize).view(out.np).reshape(c.shape)
    if out is dt.bfloat16:
        np.testing.assert_allclose(got.astype("f"), want, rtol=2 ** -8)
    else:
        assert _proof.difference(got, want.astype(out.np)) == ""


@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, False), (True, True)], ids=["ab", "abT", "aTb", "aTbT"])
@pytest.mark.parametrize("T", [dt.bfloat16, dt.int8], ids=lambda T: T.name)
def test_layouts_and_sizes_that_fill_no_word_or_tile(dev, T, turned):
    for M, N, K in ((13, 83, 101), (37, 64, 64), (9, 130, 70)):
        product(dev, T, M, N, K, *turned, at=1 if K == 101 else 0)


@pytest.mark.parametrize("T", [dt.bfloat16, dt.int8], ids=lambda T: T.name)
def test_blocks_splits_batches_and_what_comes_after(dev, T):
    product(dev, T, 12, 32, 9001)                       # split along K, the last word is not full
    product(dev, T, 130, 140, 4003, out=dt.bfloat16 if T is dt.bfloat16 else dt.int8, tb=True)
    product(dev, T, 21, 40, 66, batch=3, bias="n", epilogue="relu")
    product(dev, T, 21, 40, 63, ta=True, batch=2, bias="m", alpha=2, beta=3)
    if T is dt.int8:
        product(dev, T, 19, 77, 95, left=dt.uint8)


def test_strides_along_no_row_and_one_matrix_for_all(dev):
    rng = np.random.default_rng(0)
    a, b = rng.integers(-8, 9, (3, 40, 160)), rng.integers(-8, 9, (160, 90))
    x, y = clnn.tensor(a.astype("f")).bfloat16(), clnn.tensor(b.astype("f")).bfloat16()
    got = clnn.matmul(x[:, ::2, ::3], y[:54:, 1::2])
    assert [p.kernel.name for p in _gemm._plans.values()][-1] == "matmul_words"
    np.testing.assert_allclose(got.float().numpy(), a[:, ::2, ::3] @ b[:54, 1::2], rtol=2 ** -8)
    np.testing.assert_allclose((x @ y.expand(3, 160, 90)).float().numpy(), a @ b, rtol=2 ** -8)


def test_int_mm_is_exact_and_takes_what_pytorch_takes(dev):
    rng = np.random.default_rng(0)
    a, b = rng.integers(-128, 128, (40, 300)).astype("i1"), rng.integers(-128, 128, (300, 50)).astype("i1")
    for left in (a, a.view("u1")):
        got = clnn._int_mm(clnn.tensor(left), clnn.tensor(b))
        assert got.dtype is clnn.int32 and np.array_equal(got.numpy(), left.astype("i4") @ b.astype("i4"))
    if torch is not None and hasattr(torch, "_int_mm"):
        for x, y in ((a, b), (a[:0], b), (a[:, :0], b[:0]), (a[0], b), (a, b[1:]), (a.astype("f"), b), (a, b.astype("f"))):
            said = []
            for lib in (torch, clnn):
                try:
                    said.append(lib._int_mm(lib.tensor(x), lib.tensor(y)).numpy().tolist())
                except RuntimeError:
                    said.append("RuntimeError")
            assert said[0] == said[1]


def test_quantised_layers_multiply_bytes_with_equal_results(monkeypatch):
    def results():
        clnn.manual_seed(0)
        model = clnn.nn.Sequential(clnn.nn.Linear(70, 48), clnn.nn.ReLU(), clnn.nn.Linear(48, 33)).eval()
        quantised = clnn.ao.quantization.quantize_dynamic(model, {clnn.nn.Linear}, dtype=clnn.qint8)
        x = clnn.randn(3, 40, 70)
        out = quantised(x)
        return out.numpy(), model(x).detach().numpy(), {p.kernel.name for p in _gemm._plans.values()}
    seen = []
    for mode in ("emulate", "off"):
        monkeypatch.setattr(config, "tensor_cores", mode)
        monkeypatch.setattr(_gemm, "_plans", {})
        seen.append(results())
    assert "matmul_words" in seen[0][2] and "matmul_words" not in seen[1][2]
    np.testing.assert_allclose(seen[0][0], seen[1][0], rtol=1e-5, atol=1e-6)
    assert np.abs(seen[0][0] - seen[0][1]).max() < 0.05


@pytest.mark.share(2)
@pytest.mark.parametrize("x, w, stride, padding, dilation, groups", [
    ((2, 8, 12, 12), (16, 8, 3, 3), 1, 1, 1, 1), ((3, 6, 33, 31), (20, 6, 3, 3), 2, 1, 1, 1), ((2, 16, 19, 19), (32, 8, 3, 3), 1, 1, 1, 2),
    ((2, 32, 14, 14), (24, 32, 1, 1), 2, 0, 1, 1), ((2, 8, 30, 30), (16, 8, 5, 5), 3, 2, 2, 1), ((2, 64, 160), (16, 64, 3), 1, 1, 1, 1),
    ((2, 16, 6, 17, 18), (16, 16, 3, 3, 3), 1, 1, 1, 1), ((2, 512, 7, 7), (64, 512, 3, 3), 1, 1, 1, 1), ((40, 128, 4, 4), (16, 128, 3, 3), 2, 1, 1, 1)],
    ids=["plain", "stride 2", "groups", "1 x 1", "dilated", "1-d", "3-d", "long", "short rows"])
def test_convolutions_of_pairs_of_channels(dev, monkeypatch, x, w, stride, padding, dilation, groups):
    """Forward, both gradients and transposed, against the kernels of floats: small integers, whose sums only the result rounds."""
    monkeypatch.setattr(_gemm_words, "LEAST", 0)
    rng = np.random.default_rng(0)
    fn, turned = (getattr(clnn.nn.functional, f"{name}{len(x) - 2}d") for name in ("conv", "conv_transpose"))
    X, W, b = (clnn.tensor(rng.integers(-3, 4, s).astype("f")).bfloat16() for s in (x, w, (w[0],)))
    g = clnn.tensor(rng.integers(-3, 4, fn(X, W, None, stride, padding, dilation, groups).shape).astype("f")).bfloat16()
    found = []
    for mode in (config.tensor_cores, "off"):
        monkeypatch.setattr(config, "tensor_cores", mode)
        monkeypatch.setattr(_conv, "_plans", {})
        for t in (X, W):
            t.requires_grad_().grad = None
        y = fn(X, W, b, stride, padding, dilation, groups)
        y.backward(g)
        found.append([t.detach().float().numpy() for t in (y, X.grad, W.grad, turned(g, W, None, stride, padding, 0, groups, dilation))])
        used = {part.words_use for plan in _conv._plans.values() for part in getattr(plan, "parts", [getattr(plan, "taps", None)]) if hasattr(part, "words_use")}
        assert (used != {""}) == (mode != "off")
        assert any(plan.grid.words_of == "images" for plan in _conv._plans.values() if isinstance(plan, TiledWeight)) == (mode != "off" and x[0] % 2 == 0)
    for got, want in zip(*found):
        assert np.array_equal(got, want)


# ---- when they are used -------------------------------------------------------------------------------------------------------------

def test_a_processor_without_the_instructions_is_not_asked(monkeypatch):
    monkeypatch.setattr(_gemm_words, "_known", {})
    monkeypatch.setattr(_gemm_words, "host_flags", lambda: frozenset({"avx512f"}))
    monkeypatch.setattr(_gemm_words, "verdict", lambda device: pytest.fail("asked"))
    assert _gemm_words.kinds(default_device()) == frozenset()


def test_what_the_process_says_decides(monkeypatch, tmp_path):
    monkeypatch.setattr(_gemm_words, "_known", {})
    monkeypatch.setattr(_gemm_words, "host_flags", lambda: frozenset(_gemm_words.FLAGS.values()))
    monkeypatch.setattr(_proof, "cache_dir", lambda *parts: tmp_path)
    printed = '{"kind": "bfloat16", "problem": ""}\n{"kind": "int8", "problem": "7 elements are wrong"}\n'
    monkeypatch.setattr(_proof.subprocess, "run", lambda *args, **kwargs: types.SimpleNamespace(stdout=printed))
    assert _gemm_words.kinds(default_device()) == frozenset({"bfloat16"})
    monkeypatch.setattr(_gemm_words, "_known", {})
    monkeypatch.setattr(_proof.subprocess, "run", lambda *args, **kwargs: pytest.fail("asked again"))
    assert _gemm_words.kinds(default_device()) == frozenset({"bfloat16"})
    monkeypatch.setattr(config, "tensor_cores", "off")
    assert _gemm_words.kinds(default_device()) == frozenset()


def test_a_wrong_result_is_found(monkeypatch):
    """The proof has to fail where the instruction does something else."""
    monkeypatch.setattr(config, "tensor_cores", "emulate")
    monkeypatch.setattr(_gemm, "_plans", {})
    assert _gemm_words.check(default_device(), dt.int8) == ""
    monkeypatch.setattr(_gemm.Plan, "run", lambda self, A, a_off, B, b_off, C, c_off, *rest: self.device.write(C, np.zeros(13 * 83, "i4")))
    assert "elements are wrong" in _gemm_words.check(default_device(), dt.int8)


def test_types_of_templates_that_share_a_text_are_told_apart():
    """Two kernels with types of one name built together: neither is built again alone."""
    device, texts = default_device(), []
    for T in ("short", "char"):
        texts.append(f"typedef {T} part __attribute__((ext_vector_type(16)));\n__kernel void size_of_{T}(__global int* x) {{ x[0] = sizeof(part); }}\n")
    text, tables = assemble.combine(texts, device)
    for table, size in zip(tables, (32, 16)):
        (name,) = table.values()
        buf = put(device, np.zeros(1, np.int32))
        launch(device, device.kernel_from_source(text, name), (1,), (1,), buf)
        assert device.read(buf, 4).view(np.int32)[0] == size
