"""The GEMM and convolution families on raw buffers, every variant against NumPy: odd sizes, strides, dtypes, epilogues, GPU-style kernels."""
import itertools
import os
import re
import sys

import numpy as np
import pytest

import clnn
from clnn._tensor import repeat
from clnn.core import dtype as dt
from clnn.ops import _conv, _conv_depthwise, _conv_gpu, _conv_grid, _conv_weight, _gemm, _gemm_gpu
from clnn.runtime import params
from clnn.runtime.device import default_device, list_devices

if not list_devices():
    pytest.skip("no OpenCL device", allow_module_level=True)
DEVICES = [default_device()] if os.environ.get("CLNN_DEVICE") else list_devices()[:2]
TOLERANCE = {"float64": 1e-13, "float32": 4e-6, "float16": 2e-3, "bfloat16": 1.6e-2}
PAD = 3  # elements before each operand: offsets must be honoured


@pytest.fixture(params=DEVICES, ids=lambda d: d.flavour)
def dev(request):
    return request.param


@pytest.fixture(params=[256, 64, 1])
def gpu(request, monkeypatch):
    """The default device, treated as a GPU whose work-groups are limited."""
    device = DEVICES[0]
    if request.param != 64 and not device.builds_in_parallel:
        pytest.skip("left to drivers that build faster: this one never takes these forms by itself")
    monkeypatch.setattr(device, "is_cpu", False)
    monkeypatch.setattr(device, "max_work_group", min(request.param, device.max_work_group))
    monkeypatch.setattr(_gemm, "_plans", {})
    monkeypatch.setattr(_conv, "_plans", {})
    monkeypatch.setattr(repeat, "on", False)
    return device


def put(dev, array):
    buf = dev.alloc(array.nbytes + PAD * array.itemsize)
    dev.write(buf, array, PAD * array.itemsize)
    return buf


def get(dev, buf, shape, T):
    n = int(np.prod(shape)) * T.itemsize
    return dev.read(buf, n, PAD * T.itemsize).view(T.np).reshape(shape)


def values(rng, T, *shape):
    if T.is_floating_point:
        return rng.standard_normal(shape).astype(T.np)
    return rng.integers(0 if not T.is_signed else -100, 100, shape).astype(T.np)


def close(got, want, T):
    if not T.is_floating_point:
        np.testing.assert_array_equal(got, want.astype(T.np))
        return
    scale = max(1.0, np.abs(want).max(initial=0))
    assert not np.isnan(got.astype(np.float64)).any()
    assert np.abs(got.astype(np.float64) - want).max(initial=0) / scale < TOLERANCE[T.name]


def product(dev, T, M, N, K, ta=False, tb=False, batch=1, bias="", epilogue="", alpha=1.0, beta=0.0, out=None):
    rng, out = np.random.default_rng(M + 7 * N + 13 * K), out or T
    lead = batch if isinstance(batch, tuple) else (batch,)
    a = values(rng, T, *lead, *((K, M) if ta else (M, K)))
    b = values(rng, T, *lead, *((N, K) if tb else (K, N)))
    c, v = values(rng, T, *lead, M, N).astype(out.np), values(rng, T, N if bias == "n" else M).astype(out.np)
    wide = np.float64 if T.is_floating_point else np.int64
    A, B = (np.swapaxes(x.astype(wide), -1, -2) if t else x.astype(wide) for x, t in ((a, ta), (b, tb)))
    want = alpha * (A @ B) + (beta * c.astype(wide) if beta else 0)
    want = want + (v.astype(wide) if bias == "n" else v.astype(wide)[:, None] if bias else 0)
    want = np.maximum(want, 0) if epilogue == "relu" else np.exp(want) if epilogue else want
    steps = (M * K, K * N, M * N)
    if isinstance(batch, tuple):
        steps = (tuple(batch[1] * s for s in steps), steps)
    buf = put(dev, c)
    _gemm.gemm(dev, T, M, N, K, put(dev, a), PAD, (1, M) if ta else (K, 1), put(dev, b), PAD, (1, K) if tb else (N, 1), buf, PAD, N, batch, steps,
               alpha, beta, (put(dev, v), PAD) if bias else None, bias or "n", epilogue, out)
    close(get(dev, buf, want.shape, out), want, out)


SIZES = [(1, 1, 1), (5, 7, 3), (33, 100, 70), (1, 300, 40), (300, 1, 40), (130, 10, 515), (10, 12, 5000), (100, 130, 600), (6, 5, 0), (1030, 40, 200), (515, 130, 140)]


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_layouts(dev, size):
    for ta, tb in itertools.product((False, True), repeat=2):
        product(dev, dt.float32, *size, ta, tb)


@pytest.mark.share(2)
@pytest.mark.parametrize("options", [dict(batch=3), dict(batch=(2, 3)), dict(bias="n"), dict(bias="m"), dict(bias="n", epilogue="relu"),
                                     dict(epilogue="exp(v)", alpha=0.1), dict(alpha=0.5, beta=2.0)], ids=str)
def test_options(dev, options):
    for size in ((33, 70, 45), (1, 5, 3000)):
        for tb in (False, True):
            product(dev, dt.float32, *size, tb=tb, **options)


@pytest.mark.parametrize("size", [(1, 1100, 530), (1, 40, 17000), (1, 600, 4200), (700, 1, 37), (3, 1, 17000)], ids=str)
def test_vectors(dev, size):
    """By rows and by columns of the matrix, split sums, lengths that fill no vector."""
    for tb in (False, True):
        product(dev, dt.float32, *size, tb=tb)


@pytest.mark.parametrize("size", [(3, 600, 70), (100, 3, 70), (100, 7, 200), (70, 12, 2100)], ids=str)
def test_few_rows_or_columns(dev, size):
    """Columns laid out as rows first, column-major operands turned, some rows at a time."""
    for ta, tb in itertools.product((False, True), repeat=2):
        product(dev, dt.float32, *size, ta, tb)
    product(dev, dt.float32, *size, True, bias="n", alpha=0.5, beta=2.0)
    product(dev, dt.float32, *size, batch=3)
    product(dev, dt.float16, *size)


@pytest.mark.parametrize("options", [dict(bias="n", epilogue="exp(v)", alpha=0.01), dict(bias="m", epilogue="relu", batch=3), dict(alpha=0.5, beta=2.0)], ids=str)
def test_options_of_vectors(dev, options):
    product(dev, dt.float32, 1, 700, 45, **options)
    product(dev, dt.float32, 700, 1, 45, **options)


def test_dtypes_of_vectors(dev):
    for T in (dt.float16, dt.int8):
        for size in ((1, 1100, 530), (700, 1, 37)):
            product(dev, T, *size, out=dt.int32 if T is dt.int8 else None)


def test_a_vector_does_not_spread_infinities(dev):
    """Lanes of a row's last vector that were read before are left out, not multiplied by 0."""
    a, x = np.ones((40, 37), "f"), np.ones(37, "f")
    a[3, 25] = x[30] = np.inf
    buf = put(dev, np.zeros(40, "f"))
    _gemm.gemm(dev, dt.float32, 40, 1, 37, put(dev, a), PAD, (37, 1), put(dev, x), PAD, (1, 1), buf, PAD, 1)
    np.testing.assert_array_equal(get(dev, buf, (40,), dt.float32), np.full(40, np.inf, "f"))


@pytest.mark.share(2)
@pytest.mark.parametrize("T", [dt.float64, dt.float16, dt.bfloat16, dt.int32, dt.int64, dt.int8, dt.uint8], ids=str)
def test_dtypes(dev, T):
    if T.needs_fp64 and not dev.has_fp64:
        pytest.skip("no fp64")
    for size in ((33, 70, 45), (100, 100, 1100)):
        for tb in (False, True):
            product(dev, T, *size, tb=tb, out=dt.int32 if T is dt.int8 else None)


def test_16_bit_sums_are_not_rounded_on_the_way(dev):
    for T in (dt.float16, dt.bfloat16):
        product(dev, T, 120, 100, 1100, batch=2)
        product(dev, T, 120, 100, 1100, out=dt.float32)


def test_16_bit_columns(dev):
    """A is widened as it lies, by columns; many panels of B have it laid out in panels after that."""
    product(dev, dt.float16, 130, 70, 150, ta=True)
    product(dev, dt.float16, 130, 600, 520, ta=True)
    product(dev, dt.float16, 30, 40, 0)         # nothing to widen


@pytest.mark.parametrize("strides", [((2, 300), (1, 90)), ((300, 2), (300, 3)), ((0, 1), (0, 1)), ((1, 0), (1, 0))], ids=str)
def test_any_strides(dev, strides):
    M, N, K = 37, 21, 29
    rng = np.random.default_rng(0)
    pool = rng.standard_normal(20000).astype("f")
    A, B = (np.lib.stride_tricks.as_strided(pool[PAD:], shape, [4 * s for s in st]) for shape, st in zip(((M, K), (K, N)), strides))
    source, buf = put(dev, pool[PAD:]), put(dev, np.full((M, N), np.nan, "f"))
    _gemm.gemm(dev, dt.float32, M, N, K, source, PAD, strides[0], source, PAD, strides[1], buf, PAD, N)
    close(get(dev, buf, (M, N), dt.float32), A.astype(float) @ B, dt.float32)


@pytest.mark.share(2)
def test_gpu_gemm(gpu):
    for size in SIZES:
        product(gpu, dt.float32, *size, True, False)
    product(gpu, dt.float32, 300, 290, 50)
    product(gpu, dt.float32, 33, 70, 45, False, True, batch=(2, 3), bias="n", epilogue="relu")
    product(gpu, dt.bfloat16, 33, 70, 45)
    product(gpu, dt.int8, 33, 70, 45, out=dt.int32)


@pytest.mark.share(2)
def test_gpu_gemm_in_wide_loads(gpu, monkeypatch):
    """Operands at multiples of 16 bytes, along K and across it; sizes that fill blocks, and that do not."""
    monkeypatch.setitem(globals(), "PAD", 16)
    for ta, tb in itertools.product((False, True), repeat=2):
        product(gpu, dt.float32, 300 if ta else 299, 292 if not tb else 291, 52, ta, tb)
    product(gpu, dt.float32, 40, 36, 64, True, True, batch=(2, 3), bias="m", alpha=0.5, beta=2.0)
    product(gpu, dt.bfloat16, 48, 72, 40, tb=True, bias="n", epilogue="exp(v)", alpha=0.1)
    product(gpu, dt.int8, 48, 64, 80, out=dt.int32)
    if gpu.has_fp64:
        product(gpu, dt.float64, 40, 34, 22, True, True)
    assert all(p.even for p in _gemm._plans.values())


@pytest.mark.parametrize("tile", [*_gemm_gpu.TILES, *_gemm_gpu.SINGLE])
def test_tiles_of_gpus(tile, monkeypatch):
    """Each by name, wider and higher ones, full and ragged, in wide loads and element by element, of a whole K and of parts."""
    device, single = DEVICES[0], tile in _gemm_gpu.SINGLE
    if device.max_work_group < 256:
        pytest.skip("smaller work-groups than it takes")
    monkeypatch.setattr(device, "is_cpu", False)
    monkeypatch.setattr(device, "max_work_group", 1 if single else device.max_work_group)
    monkeypatch.setattr(_gemm, "_plans", {})
    monkeypatch.setattr(repeat, "on", False)
    LX, LY = (_gemm_gpu.TILES | _gemm_gpu.SINGLE)[tile][:2]
    with params.forced("gemm_gpu", {"TILE": tile, "SPLIT": 3}):
        for pad, turned in ((4, False), (3, True)):
            monkeypatch.setitem(globals(), "PAD", pad)
            product(device, dt.float32, 132, 140, 100, turned, turned, bias="n")
    plans = list(_gemm._plans.values())
    assert all(p.kernel.name == "matmul_gpu" and p.splits == 3 and p.ls == (LX, LY, 1) for p in plans) and len(plans) == 2


def test_tiles_fill_the_device():
    """Large blocks where there are enough of them, smaller ones or parts of K where not, in whatever number of units."""
    def chosen(M, N, K, units, T=dt.float32, limit=1024):
        device = type("Model", (), dict(name="model", flavour="model", vendor="model", registers=0, compute_units=units, max_work_group=limit, local_mem=49152))()
        p = _gemm.Problem(T, T, T, M, N, K, (K, 1), (N, 1), N, (1, 1), ((0, 0, 0), (0, 0, 0)), 1.0, 0.0, "", "", lanes=8)
        row, _, parts = _gemm_gpu._choice(device, p, K, True)
        LX, LY, TM, TN = row[:4]
        return LY * TM, LX * TN, parts
    for units in (132, 60, 16):
        assert chosen(4096, 4096, 4096, units) == (128, 128, 1)
    assert chosen(2048, 2048, 2048, 132) == (128, 128, 1)
    for M, N, K in ((1024, 1024, 1024), (512, 512, 512), (64, 512, 784), (64, 64, 16384)):
        rows, columns, parts = chosen(M, N, K, 132)
        assert -(-M // rows) * -(-N // columns) * parts >= 132
    assert chosen(64, 64, 16384, 132)[2] > 8 and chosen(64, 64, 64, 132)[2] == 1
    assert chosen(4096, 4096, 4096, 132, dt.float64)[:2] < (128, 128)       # its sums would not fit registers
    assert chosen(4096, 4096, 4096, 132, limit=64)[:2] == (64, 64) and chosen(4096, 4096, 4096, 132, limit=8)[:2] == (4, 4)


def test_two_runs_are_equal(dev):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((64, 20000)).astype("f"), rng.standard_normal((20000, 64)).astype("f")
    A, B, results = put(dev, a), put(dev, b), []
    for _ in range(3):
        buf = put(dev, np.zeros((64, 64), "f"))
        _gemm.gemm(dev, dt.float32, 64, 64, 20000, A, PAD, (20000, 1), B, PAD, (64, 1), buf, PAD, 64)
        results.append(get(dev, buf, (64, 64), dt.float32).tobytes())
    assert results[0] == results[1] == results[2]


def test_mixed_compute_types_are_refused(dev):
    buf = dev.alloc(16)
    with pytest.raises(TypeError, match="not computed in one type"):
        _gemm.gemm(dev, dt.float32, 1, 1, 1, buf, 0, (1, 1), buf, 0, (1, 1), buf, 0, 1, out_dtype=dt.int32)


# ---- convolutions ----------------------------------------------------------------------------------------------------------------

def reference(x, w, g_of, stride, padding, dilation, groups):
    """(y, dx, dw) of a convolution by a loop over its taps; ``g_of(shape)`` makes the output gradient."""
    n = x.ndim - 2
    pads = [p if isinstance(p, tuple) else (p, p) for p in padding]
    xp = np.pad(x, [(0, 0), (0, 0)] + pads)
    out = _conv_grid.output_size(x.shape[2:], w.shape[2:], stride, padding, dilation)
    y, dxp, dw = np.zeros((x.shape[0], w.shape[0], *out)), np.zeros_like(xp), np.zeros_like(w)
    g = g_of(y.shape)
    cg, og = w.shape[1], w.shape[0] // groups
    for tap in itertools.product(*map(range, w.shape[2:])):
        window = (slice(None), slice(None)) + tuple(slice(t * d, t * d + (o - 1) * s + 1, s) for t, d, o, s in zip(tap, dilation, out, stride))
        for k in range(groups):
            c, o = slice(k * cg, (k + 1) * cg), slice(k * og, (k + 1) * og)
            at = (slice(None), c) + window[2:]
            y[:, o] += np.einsum("nc...,oc->no...", xp[at], w[(o, slice(None)) + tap])
            dxp[at] += np.einsum("no...,oc->nc...", g[:, o], w[(o, slice(None)) + tap])
            dw[(o, slice(None)) + tap] = np.tensordot(g[:, o], xp[at], ((0, *range(2, n + 2)),) * 2)
    inner = (slice(None), slice(None)) + tuple(slice(a, a + i) for (a, _), i in zip(pads, x.shape[2:]))
    return y, dxp[inner], dw, g


def convolve(dev, T, x_shape, w_shape, stride, padding, dilation, groups, bias=False, epilogue=""):
    rng = np.random.default_rng(sum(x_shape) + sum(w_shape))
    x, w, b = values(rng, T, *x_shape), values(rng, T, *w_shape), values(rng, T, w_shape[0])
    box = []

    def g_of(shape):
        box.append(values(rng, T, *shape))
        return box[0].astype(float)
    y, dx, dw, _ = reference(x.astype(float), w.astype(float), g_of, stride, padding, dilation, groups)
    if bias:
        y = y + b.astype(float).reshape(-1, *[1] * (x.ndim - 2))
    y = np.maximum(y, 0) if epilogue else y
    X, W, G = put(dev, x), put(dev, w), put(dev, box[0])
    geometry = (stride, padding, dilation, groups)

    def empty(shape):
        return put(dev, np.full(shape, np.nan, T.np))
    out = empty(y.shape)
    _conv.conv_forward(dev, T, X, PAD, x_shape, W, PAD, w_shape, out, PAD, *geometry, (put(dev, b), PAD) if bias else None, epilogue)
    close(get(dev, out, y.shape, T), y, T)
    out = empty(x_shape)
    _conv.conv_backward_input(dev, T, G, PAD, W, PAD, out, PAD, x_shape, w_shape, *geometry)
    close(get(dev, out, x_shape, T), dx, T)
    out = empty(w_shape)
    _conv_weight.conv_backward_weight(dev, T, X, PAD, G, PAD, out, PAD, x_shape, w_shape, *geometry)
    close(get(dev, out, w_shape, T), dw, T)


CONVS = {
    "3x3": ((2, 3, 9, 11), (8, 3, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    "1x1 of one pixel": ((1, 1, 1, 1), (1, 1, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    "stride 2": ((3, 4, 7, 7), (10, 4, 3, 3), (2, 2), (1, 1), (1, 1), 1),
    "groups, uneven": ((2, 6, 12, 10), (8, 3, 3, 2), (2, 1), (2, 0), (1, 2), 2),
    "many pixels": ((20, 3, 17, 17), (20, 3, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    "1d": ((2, 5, 20), (7, 5, 4), (3,), (2,), (2,), 1),
    "3d": ((2, 3, 5, 6, 7), (4, 3, 2, 3, 3), (1, 2, 1), (1, 1, 0), (1, 1, 1), 1),
    "7x7 stride 2": ((2, 3, 30, 30), (16, 3, 7, 7), (2, 2), (3, 3), (1, 1), 1),
    "1x1": ((4, 16, 14, 14), (24, 16, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    "1x1, small": ((3, 5, 6, 7), (9, 5, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    "1x1 stride 2": ((2, 16, 14, 14), (24, 16, 1, 1), (2, 2), (0, 0), (1, 1), 1),
    "padding over kernel": ((2, 3, 8, 8), (5, 3, 3, 3), (1, 1), (4, 4), (1, 1), 1),
    "stride over kernel": ((2, 3, 8, 8), (5, 3, 2, 2), (3, 3), (0, 0), (1, 1), 1),
    "uneven padding": ((2, 3, 8, 9), (5, 3, 2, 4), (1, 1), ((0, 1), (1, 2)), (1, 1), 1),
    "taps that meet nothing": ((3, 8, 4, 4), (20, 8, 3, 3), (1, 1), (4, 4), (4, 4), 1),
    "depths that meet few taps": ((2, 16, 8, 8, 8), (17, 16, 5, 5, 5), (1, 1, 1), (4, 4, 4), (2, 2, 2), 1),
    "rows that meet few taps": ((2, 16, 40, 32), (64, 8, 5, 1), (2, 1), (16, 0), (8, 1), 2),
    "short rows, stride 3": ((9, 8, 7, 7, 4), (24, 8, 2, 2, 2), (3, 3, 3), (1, 1, 1), (1, 1, 1), 1),
    "long rows, stride 3": ((5, 4, 6, 100), (9, 4, 3, 5), (3, 3), (1, 2), (1, 1), 1),
    "few pixels": ((2, 7, 12, 12), (150, 7, 5, 5), (3, 3), (2, 2), (2, 2), 1),
    "many steps": ((1, 90, 16, 16), (40, 90, 3, 3), (1, 1), (1, 1), (2, 2), 1),
    "1x1, many pixels": ((2, 32, 16, 14), (24, 32, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    "phases of many steps": ((2, 40, 13, 22), (300, 40, 4, 4), (2, 2), (1, 1), (1, 1), 1),
    "phases of few channels": ((3, 5, 24, 37), (16, 5, 5, 4), (2, 2), (2, 1), (1, 1), 1),
    "phases that differ": ((2, 34, 9, 21), (40, 34, 3, 3), (2, 2), (1, 1), (1, 1), 1),
    "phases of depths": ((2, 33, 6, 8, 6), (36, 33, 4, 3, 4), (2, 1, 2), (1, 1, 1), (1, 1, 1), 1),
}
WINOGRAD = {
    "even": ((2, 32, 28, 28), (32, 32, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    "odd": ((16, 40, 7, 7), (33, 40, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    "valid": ((4, 32, 20, 19), (40, 32, 3, 3), (1, 1), (0, 0), (1, 1), 1),
    "groups": ((4, 64, 15, 33), (80, 32, 3, 3), (1, 1), (2, 2), (1, 1), 2),
    "padding 3": ((4, 32, 16, 16), (40, 32, 3, 3), (1, 1), (3, 1), (1, 1), 1),
    "two panels": ((2, 70, 21, 22), (50, 70, 3, 3), (1, 1), ((0, 1), (2, 1)), (1, 1), 1),
    "small images": ((16, 64, 4, 4), (64, 64, 3, 3), (1, 1), (1, 1), (1, 1), 1),
}
DEPTHWISE = {
    "3x3": ((2, 8, 28, 28), (8, 1, 3, 3), (1, 1), (1, 1), (1, 1), 8),
    "multiplier": ((2, 8, 9, 9), (16, 1, 3, 3), (1, 1), (1, 1), (1, 1), 8),
    "stride 2": ((2, 8, 19, 21), (8, 1, 3, 5), (2, 2), (1, 2), (1, 1), 8),
    "cropped gradient": ((2, 3, 6, 50), (3, 1, 1, 3), (1, 1), (0, 4), (1, 1), 3),
    "bands": ((1, 2, 60, 300), (2, 1, 5, 5), (1, 2), (2, 2), (2, 2), 2),
    "too wide for a band": ((1, 2, 6, 2500), (2, 1, 5, 5), (1, 1), (2, 2), (1, 1), 2),
}
DEPTHWISE_ITEMS = {     # more of the kernels for GPUs
    "1d": ((3, 4, 50), (8, 1, 7), (2,), (3,), (1,), 4),
    "3d": ((2, 3, 5, 6, 7), (6, 1, 3, 2, 3), (2, 1, 2), (1, 0, 1), (1, 2, 1), 3),
    "3d of planes": ((2, 2, 4, 9, 7), (2, 1, 1, 3, 3), (1, 1, 1), (0, 1, 1), (1, 1, 1), 2),
    "one channel": ((3, 1, 12, 11), (5, 1, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    "strides apart": ((2, 3, 13, 14), (3, 1, 4, 5), (3, 2), ((1, 2), (0, 2)), (1, 1), 3),
    "stride over kernel": ((2, 3, 11, 12), (6, 1, 2, 2), (3, 3), (1, 0), (1, 1), 3),
    "dilated, strided": ((2, 2, 19, 17), (2, 1, 3, 3), (2, 2), (3, 2), (3, 2), 2),
    "many taps": ((2, 2, 14, 13), (4, 1, 11, 10), (1, 1), (5, 4), (1, 1), 2),
    "many taps, strided": ((1, 2, 24, 25), (2, 1, 12, 9), (2, 3), (5, 4), (1, 1), 2),
    "many places": ((9, 2, 40, 41), (2, 1, 3, 3), (1, 1), (1, 1), (1, 1), 2),
    "padding over kernel": ((2, 2, 5, 5), (2, 1, 3, 3), (1, 1), (4, 5), (1, 1), 2),
}


@pytest.mark.parametrize("case", CONVS)
def test_conv(dev, case):
    convolve(dev, dt.float32, *CONVS[case])


@pytest.mark.parametrize("case", WINOGRAD)
def test_winograd(dev, case):
    convolve(dev, dt.float32, *WINOGRAD[case], bias=True, epilogue="relu" if case == "odd" else "")


@pytest.mark.parametrize("case", DEPTHWISE)
def test_depthwise(dev, case):
    if dev.flavour == "rusticl" and case == "too wide for a band":
        pytest.skip("llvmpipe ends the loops of a work-item after 65535 rounds in all, without a word")
    convolve(dev, dt.float32, *DEPTHWISE[case], bias=True, epilogue="relu" if case == "bands" else "")


@pytest.mark.share(2)
@pytest.mark.parametrize("T", [dt.float64, dt.float16, dt.bfloat16], ids=str)
def test_conv_dtypes(dev, T):
    if T.needs_fp64 and not dev.has_fp64:
        pytest.skip("no fp64")
    for case in (CONVS["groups, uneven"], CONVS["many steps"], CONVS["1x1, many pixels"], CONVS["phases of few channels"], DEPTHWISE["stride 2"]):
        convolve(dev, T, *case, bias=True, epilogue="relu")


@pytest.mark.parametrize("case", ["1x1 stride 2", "stride over kernel", "depths that meet few taps"])
def test_transposed_bias(dev, case):
    """A transposed convolution adds its bias where no tap meets an element, too."""
    x, w, *geometry = CONVS[case]
    rng = np.random.default_rng(1)
    b, v, box = rng.standard_normal(x[1]).astype("f"), rng.standard_normal(w).astype("f"), []

    def g_of(shape):
        box.append(rng.standard_normal(shape).astype("f"))
        return box[0].astype(float)
    dx = reference(np.zeros(x), v.astype(float), g_of, *geometry)[1] + b.reshape(-1, *[1] * (len(x) - 2))
    out = put(dev, np.full(x, np.nan, "f"))
    _conv.conv_backward_input(dev, dt.float32, put(dev, box[0]), PAD, put(dev, v), PAD, out, PAD, x, w, *geometry, (put(dev, b), PAD), "relu")
    close(get(dev, out, x, dt.float32), np.maximum(dx, 0), dt.float32)


def test_conv_epilogue_on_scalars(dev):
    x, w, rng = (2, 32, 28, 28), (32, 32, 3, 3), np.random.default_rng(0)
    a, b = rng.standard_normal(x).astype("f"), (0.1 * rng.standard_normal(w)).astype("f")
    y = reference(a.astype(float), b.astype(float), np.zeros, (1, 1), (1, 1), (1, 1), 1)[0]
    out = put(dev, np.full(y.shape, np.nan, "f"))
    _conv.conv_forward(dev, dt.float32, put(dev, a), PAD, x, put(dev, b), PAD, w, out, PAD, (1, 1), (1, 1), (1, 1), 1, None, "tanh(v)")
    close(get(dev, out, y.shape, dt.float32), np.tanh(y), dt.float32)


@pytest.mark.share(2)
def test_gpu_conv(gpu):
    for case in ("3x3", "stride 2", "groups, uneven", "1d", "3d", "1x1", "padding over kernel"):
        convolve(gpu, dt.float32, *CONVS[case], bias=True, epilogue="relu")
    convolve(gpu, dt.bfloat16, *CONVS["groups, uneven"])


@pytest.mark.share(2)
@pytest.mark.parametrize("gpu", [64], indirect=True)
@pytest.mark.parametrize("T", [dt.float32, dt.float64, dt.float16], ids=str)
def test_gpu_conv_in_parts(gpu, monkeypatch, T):
    """Steps split among groups, a part of them without any; taps too many for a mask, told by their places."""
    if T.needs_fp64 and not gpu.has_fp64:
        pytest.skip("no fp64")
    from clnn.runtime import launch
    choose, names = _conv_gpu._choose, []
    monkeypatch.setattr(_conv_gpu, "_choose", lambda *args: (choose(*args)[0], 3))
    monkeypatch.setattr(launch, "recorders", [lambda device, kernel, *rest: names.append(kernel.name)])
    for case, bits, laid_out in (("phases that differ", 31, 0), ("phases that differ", 31, 1 << 32), ("3d", 0, 1 << 32), ("1x1, many pixels", 31, 0)):
        monkeypatch.setattr(_conv_gpu, "BITS", bits)
        monkeypatch.setattr(_conv_gpu, "LAID_OUT", laid_out)        # weights in the order of steps, or as they lie
        monkeypatch.setattr(_conv, "_plans", {})
        names.clear()
        convolve(gpu, T, *CONVS[case], bias=True, epilogue="relu")
        assert ("conv_weights" in names) == (laid_out == 0)


@pytest.mark.parametrize("gpu", [64], indirect=True)
def test_gpu_conv_by_wide_loads(gpu, monkeypatch):
    """Operands at multiples of 16 bytes."""
    monkeypatch.setattr(sys.modules[__name__], "PAD", 8)
    for T, case in ((dt.float32, "1x1"), (dt.float16, "1x1")):
        convolve(gpu, T, *CONVS[case])


@pytest.mark.parametrize("gpu", [64], indirect=True)
def test_gpu_conv_is_a_product_where_it_can(gpu):
    """A 1 x 1 convolution of large images goes to the kernels of products, forward and for the input, and nothing runs before or after them."""
    from clnn.runtime import launch
    x, w = (2, 16, 32, 40), (24, 16, 1, 1)
    convolve(gpu, dt.float32, x, w, (1, 1), (0, 0), (1, 1), 1, bias=True, epilogue="relu")
    names, (X, W, Y) = [], (gpu.alloc(4 * np.prod(s)) for s in (x, w, (2, 24, 32, 40)))
    launch.recorders = [lambda device, kernel, *rest: names.append(kernel.name)]
    try:
        _conv.conv_forward(gpu, dt.float32, X, 0, x, W, 0, w, Y, 0, (1, 1), (0, 0), (1, 1), 1)
        _conv.conv_backward_input(gpu, dt.float32, Y, 0, W, 0, X, 0, x, w, (1, 1), (0, 0), (1, 1), 1)
    finally:
        launch.recorders = None
    assert names == ["matmul_gpu"] * 2


def test_splits_fill_units():
    """Few blocks with many steps are split, many are not, and a block never exceeds the device's groups."""
    class Units:
        compute_units, max_work_group, local_mem, name, flavour, vendor = 132, 1024, 49152, "units", "units", "units"

    def choice(M, pixels, K, limit=1024):
        Units.max_work_group = limit
        return _conv_gpu._choose(Units, _conv_gpu._blocks(Units, dt.float32, False), M, [pixels], [K], 1, M * pixels)
    (_, BM, BN, *_), splits = choice(512, 784, 4608)
    assert splits > 1 and -(-512 // BM) * -(-784 // BN) * splits >= 132
    assert choice(512, 100000, 4608)[1] == 1
    assert choice(64, 50176, 576)[0][1] == 64 and choice(64, 50176, 576, 64)[0][3] <= 64


@pytest.mark.share(2)
@pytest.mark.parametrize("case", [*DEPTHWISE, *DEPTHWISE_ITEMS])
def test_gpu_depthwise(gpu, case):
    x, w, *geometry = ({**DEPTHWISE, **DEPTHWISE_ITEMS})[case]
    convolve(gpu, dt.float32, x, w, *geometry, bias=True, epilogue="relu" if case == "stride 2" else "")
    assert {type(plan) for plan in _conv._plans.values()} == {_conv_depthwise.DepthwiseItems, _conv_depthwise.DepthwiseItemsWeight}


@pytest.mark.share(2)
def test_gpu_depthwise_rows(gpu, monkeypatch):
    """Several rows per work-item, as sizes that fill a GPU have them, in other dtypes; sums of a weight gradient in one share and in many."""
    for units in (0.01, 64):
        monkeypatch.setattr(gpu, "compute_units", units)
        _conv._plans.clear()
        for T in (dt.float32, dt.float16) + (dt.float64,) * gpu.has_fp64:
            for case in (DEPTHWISE["3x3"], DEPTHWISE["bands"], DEPTHWISE_ITEMS["strides apart"], DEPTHWISE_ITEMS["3d"], DEPTHWISE_ITEMS["many places"]):
                convolve(gpu, T, *case)


def test_sizes_of_factors_that_do_not_fit_are_told_as_in_pytorch():
    torch = pytest.importorskip("torch")
    for a, b in (((3,), (4,)), ((2, 3), (4,)), ((3,), (4, 5)), ((2, 2, 3), (4, 5)), ((2, 2, 3), (4,)), ((3,), (2, 4, 5)), ((2, 1, 2, 3), (3, 4, 5))):
        with pytest.raises(RuntimeError) as theirs:
            torch.ones(a) @ torch.ones(b)
        with pytest.raises(RuntimeError, match=re.escape(str(theirs.value))):
            clnn.ones(a) @ clnn.ones(b)
    with pytest.raises(TypeError, match="unsupported operand"):
        clnn.ones(2) @ 3


@pytest.mark.parametrize("size", [(3,), (4, 4), (2, 1, 2)], ids=str)
def test_one_window_that_covers_the_input(size):
    """Such a convolution, and the transposed one of a single element, is one product."""
    torch = pytest.importorskip("torch")
    rng, n = np.random.default_rng(0), len(size)
    arrays = [rng.standard_normal(s).astype(np.float32) for s in ((5, 6, *size), (7, 6, *size), (7,), (5, 7) + (1,) * n, (6,))]
    results = []
    for lib in (clnn, torch):
        x, w, b, z, c = leaves = [lib.tensor(a, requires_grad=True) for a in arrays]
        out = [getattr(lib.nn.functional, f"conv{n}d")(x, w, b), getattr(lib.nn.functional, f"conv_transpose{n}d")(z, w, c, stride=2)]
        sum(t.sin().sum() for t in out).backward()
        results.append([t.detach().numpy() for t in out] + [t.grad.numpy() for t in leaves])
    for got, want in zip(*results):
        np.testing.assert_allclose(got, want, 1e-4, 1e-5)


def test_add_products_of_16_bits_round_once():
    r = np.random.default_rng(8)
    for T in (clnn.bfloat16, clnn.float16):
        a, b, c = (clnn.tensor(r.standard_normal(s).astype(np.float32)).to(T).requires_grad_() for s in ((2, 12, 40), (2, 40, 9), (2, 12, 9)))
        exact = (0.75 * c.double() - 2.5 * (a.double() @ b.double())) if default_device().has_fp64 else 0.75 * c.float() - 2.5 * (a.float() @ b.float())
        for got, want in ((clnn.baddbmm(c, a, b, beta=0.75, alpha=-2.5), exact), (clnn.addmm(c[0], a[0], b[0], beta=0.75, alpha=-2.5), exact[0])):
            assert got.dtype is T and (got != want.to(T)).sum().item() <= 1          # a tie of halves, at most
            grads = [clnn.autograd.grad(y.square().sum(), (a, b, c), retain_graph=True) for y in (got.float(), want)]
            for x, y in zip(*grads):
                np.testing.assert_allclose(x.float().numpy(), y.float().numpy(), rtol=0.03, atol=3)     # of some hundreds


def test_transposed_convolution_of_nothing():
    """Padding may leave a transposed convolution no output: it is empty and its gradients are zero; less than nothing is refused."""
    x, w, b = (clnn.randn(*s, requires_grad=True) for s in ((2, 4, 2, 5), (4, 6, 1, 4), (6,)))
    y = clnn.nn.functional.conv_transpose2d(x, w, b, padding=(1, 0))
    assert tuple(y.shape) == (2, 6, 0, 8)
    y.sum().backward()
    assert all(t.grad.shape == t.shape and not t.grad.any() for t in (x, w, b))
    with pytest.raises(RuntimeError, match="negative size"):
        clnn.nn.functional.conv_transpose2d(x[:, :, :1], w, padding=(1, 0))


@pytest.mark.parametrize("kernel, padding, transposed", [(3, 1, False), (1, 0, False), (3, 1, True)])
def test_batches_with_more_elements_than_32_bits_count(kernel, padding, transposed, monkeypatch):
    """They are done in halves; here with a limit that a few images exceed."""
    rng = np.random.default_rng(3)
    x, w, b = (clnn.tensor(rng.standard_normal(s).astype(np.float32)) for s in ((5, 4, 9, 8), (4, 6, kernel, kernel) if transposed else (6, 4, kernel, kernel), (6,)))

    def passes():
        leaves = [t.detach().requires_grad_() for t in (x, w, b)]
        y = (clnn.nn.functional.conv_transpose2d if transposed else clnn.nn.functional.conv2d)(*leaves, padding=padding)
        (y * y).sum().backward()
        return [y.detach().numpy(), *[t.grad.numpy() for t in leaves]]
    monkeypatch.setattr(repeat, "on", False)                    # nothing is kept of these launches
    whole = passes()
    monkeypatch.setattr(repeat, "on", True)
    monkeypatch.setattr(_conv, "_plans", {})
    monkeypatch.setattr(_conv_grid, "LARGEST", 1400)
    for _ in range(3):
        for got, want in zip(passes(), whole, strict=True):
            assert np.allclose(got, want, 1e-4, 1e-4)
    assert len(_conv._plans) >= 3 and all(key[3][0] < 5 for key in _conv._plans)
    monkeypatch.setattr(_conv_grid, "LARGEST", 50)
    with pytest.raises(ValueError, match="split the batch"):
        clnn.nn.functional.conv2d(x[:, :, :, :7].clone(), clnn.ones(2, 4, 2, 2))


@pytest.mark.parametrize("M, N, K", [(1, 70, 300), (4, 33, 9), (70, 3, 33), (1, 1, 900), (2, 3, 1200)])
def test_thin_products_on_gpus(monkeypatch, M, N, K):
    """Up to four rows or columns are computed without blocks there, whatever lies side by side in memory."""
    device = clnn.get_default_device().physical
    if device.max_work_group < 256:
        pytest.skip("smaller work-groups than it takes")
    monkeypatch.setattr(device, "is_cpu", False)
    monkeypatch.setattr(_gemm, "_plans", {})
    rng = np.random.default_rng(M + N + K)
    a, b, bias = (rng.standard_normal(s).astype(np.float32) for s in ((M, K), (K, N), N))
    for turn_a, turn_b in ((False, False), (True, True)):
        A = clnn.tensor(a.T.copy()).t() if turn_a else clnn.tensor(a)
        B = clnn.tensor(b.T.copy()).t() if turn_b else clnn.tensor(b)
        got = clnn.addmm(clnn.tensor(bias), A, B, alpha=0.5).numpy()
        assert np.abs(got - (bias + 0.5 * (a.astype(np.float64) @ b))).max() < 1e-4
    assert {plan.kernel.name for plan in _gemm._plans.values()} == {"matmul_thin"}


def test_a_convolution_without_output_channels_is_refused():
    for groups in (1, 2):
        with pytest.raises(RuntimeError, match=rf"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size \[0, 4, 1, 1\]"):
            clnn.nn.functional.conv2d(clnn.ones(1, 4 * groups, 3, 3), clnn.ones(0, 4, 1, 1), groups=groups)
