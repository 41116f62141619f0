"""Products on tensor cores: the kernel with its instruction spelt out against NumPy, when it is chosen, and the proof that a device computes rightly."""
import types

import numpy as np
import pytest

import clnn
from clnn.core import dtype as dt
from clnn.core.config import config
from clnn.ops import _conv, _gemm, _gemm_gpu, _gemm_model, _gemm_tensor, _proof
from clnn.runtime import params
from clnn.runtime.device import default_device, list_devices

if not list_devices():
    pytest.skip("no OpenCL device", allow_module_level=True)
TOLERANCE = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 2e-6}


@pytest.fixture
def dev(monkeypatch):
    """The default device, treated as a GPU with tensor cores whose instruction is spelt out."""
    device = default_device()
    monkeypatch.setattr(device, "is_cpu", False)
    monkeypatch.setattr(config, "tensor_cores", "emulate")
    monkeypatch.setattr(_gemm, "_plans", {})
    monkeypatch.setattr(_gemm_gpu, "_THIN", 0)
    monkeypatch.setattr(_conv, "_plans", {})
    monkeypatch.setattr(_gemm_tensor, "SMALLEST", 1)
    monkeypatch.setattr(_gemm_tensor, "FEWEST", 1)
    monkeypatch.setattr(_gemm_tensor, "SHORTEST", 1)
    # One warp and few tiles: a driver for CPUs needs a second to build the instruction for each.
    monkeypatch.setattr(_gemm_tensor, "BLOCKS", {"16x16": (1, 1, 1, 2, 4.0), **_gemm_tensor.BLOCKS})
    with params.forced("gemm_tensor", {"BLOCK": "16x16", "KERNEL": "tensor"}):
        yield device


def put(dev, array, at=0):
    buf = dev.alloc(array.nbytes + at * array.itemsize)
    dev.write(buf, array, at * array.itemsize)
    return buf


def product(dev, T, M, N, K, ta=False, tb=False, batch=1, at=0, out=None, bias="", epilogue="", alpha=1.0, beta=0.0, mixed=None, kernel="tensor"):
    """One product, compared with NumPy on operands as the tensor cores see them."""
    TA, out = mixed or T, out or (dt.int32 if T is dt.int8 else T)
    rng = np.random.default_rng(M + N + K)

    def values(kind, *shape):
        return rng.standard_normal(shape).astype(kind.np) if kind.is_floating_point else rng.integers(-128 * kind.is_signed, 128, shape).astype(kind.np)
    a, b = values(TA, batch, *((K, M) if ta else (M, K))), values(T, batch, *((N, K) if tb else (K, N)))
    c, v = values(out, batch, M, N), values(out, N if bias == "n" else M)
    seen = [_gemm_tensor.rounded(x) if T is dt.float32 else x for x in (a, b)]
    A, B = (np.swapaxes(x.astype(np.float64), 1, 2) if t else x.astype(np.float64) for x, t in zip(seen, (ta, tb)))
    want = alpha * (A @ B) + beta * c.astype(np.float64)
    want = want + (v.astype(np.float64) if bias == "n" else v.astype(np.float64)[:, None] if bias else 0)
    want = np.maximum(want, 0) if epilogue == "relu" else np.tanh(want) if epilogue else want
    buf = put(dev, c, at)
    config.matmul_precision = "high"
    _gemm.gemm(dev, (TA, T), M, N, K, put(dev, a, at), at, (1, M) if ta else (K, 1), put(dev, b, at), at, (1, K) if tb else (N, 1), buf, at, N, batch,
               (M * K, K * N, M * N), alpha, beta, (put(dev, v, at), at) if bias else None, bias or "n", epilogue, out)
    assert [p for p in _gemm._plans.values() if p.problem.K == K][-1].kernel.name == f"matmul_{kernel}"
    got = dev.read(buf, c.nbytes, at * out.itemsize).view(out.np).reshape(c.shape)
    if not out.is_floating_point:
        return np.testing.assert_array_equal(got, want)
    scale = max(1.0, np.abs(want).max())
    assert np.abs(got.astype(np.float64) - want).max() / scale < TOLERANCE[out.name], (T, M, N, K, ta, tb)


@pytest.mark.share(2, both=True)
@pytest.mark.parametrize("T", _gemm_tensor.KINDS, ids=str)
def test_layouts(dev, T):
    """Whole vectors and single elements, along K or across, blocks that are full, ragged or nearly empty."""
    K = 144 if T is dt.int8 else 72
    for turned in (False, True) if T is not dt.bfloat16 else (True,):
        for size, at in (((64, 48, K), 0), ((33, 35, 45), 3), ((64, 48, K), 3)):
            product(dev, T, *size, turned, turned, at=at)
    product(dev, T, 2, 300, 7)
    product(dev, T, 16, 16, 1)


@pytest.mark.parametrize("options", [dict(batch=3), dict(bias="m", epilogue="tanh(v)"), dict(bias="n", epilogue="relu"),
                                     dict(alpha=0.5, beta=2.0), dict(out=dt.float32)], ids=str)
def test_options(dev, options):
    product(dev, dt.float16, 40, 45, 40, tb=True, **options)


def test_bytes(dev):
    """Signed and unsigned rows by signed columns, with what comes after; whatever else is wanted of bytes is no work for tensor cores."""
    for mixed in (None, dt.uint8):
        product(dev, dt.int8, 33, 45, 70, mixed=mixed, bias="m", alpha=3, beta=2)
        product(dev, dt.int8, 48, 64, 96, True, mixed=mixed, batch=2)
    a = clnn.tensor(np.arange(-80, 80, dtype=np.int8).reshape(8, 20))
    got = clnn._int_mm(a.to(clnn.uint8), a.t())
    assert list(_gemm._plans.values())[-1].kernel.name == "matmul_tensor"
    assert np.array_equal(got.numpy(), (a.numpy().astype(np.uint8).astype(int) @ a.numpy().T.astype(int)))
    a @ a.t()
    assert list(_gemm._plans.values())[-1].kernel.name == "matmul_gpu"


def test_several_warps(dev, monkeypatch):
    if dev.max_work_group < 128:
        pytest.skip("one warp to a group")
    monkeypatch.setitem(_gemm_tensor.BLOCKS, "warps", (2, 2, 2, 2, 1.0))
    with params.forced("gemm_tensor", {"BLOCK": "warps", "KERNEL": "tensor"}):
        for turned in (False, True):
            product(dev, dt.bfloat16, 72, 40, 80, turned, turned)


@pytest.mark.share(2, both=True)
@pytest.mark.parametrize("T, block, layouts", [(dt.float16, "16x16", "kx xk"), (dt.float32, "16x16", "kx xk"), (dt.int8, "16x16", "kk"), (dt.bfloat16, "16x16", "kk"),
                                               (dt.float16, "warps", "xx"), (dt.float32, "warps", "kx"), (dt.float16, "wide", "xx")], ids=str)
def test_copies_of_16_bytes(dev, monkeypatch, T, block, layouts):
    """Both layouts of each operand in every pattern of places; rows and steps that fill no block."""
    if block == "warps" and dev.max_work_group < 128:
        pytest.skip("one warp to a group")
    if block == "wide" and dev.flavour == "intel-cpu":
        pytest.skip("left to drivers that build it faster")
    monkeypatch.setitem(_gemm_tensor.BLOCKS, "warps", (2, 2, 2, 2, 1.0))
    monkeypatch.setitem(_gemm_tensor.BLOCKS, "wide", (1, 1, 1, 4, 1.0))
    with params.forced("gemm_tensor", {"BLOCK": block}):
        for a, b in layouts.split():
            product(dev, T, 80, 48, 144 if T.itemsize == 1 else 72, a == "x", b == "k", kernel="pipeline")


def test_copies_with_what_comes_before_and_after(dev):
    with params.forced("gemm_tensor", {"BLOCK": "16x16"}):
        product(dev, dt.float16, 48, 32, 80, tb=True, batch=2, bias="n", kernel="pipeline")
        assert list(_gemm._plans.values())[-1].narrow[0] == "matmul/tensor"
        product(dev, dt.float16, 48, 32, 96, tb=True, at=3, kernel="pipeline")       # its plan is that of aligned operands; what runs is the other kernel


def test_runs_of_k(dev, monkeypatch):
    monkeypatch.setattr(_gemm_model, "LAUNCH", 0)       # as if all of it were free
    monkeypatch.setattr(_gemm_model, "ROUND", 0)
    monkeypatch.setattr(dev, "compute_units", 132)
    product(dev, dt.bfloat16, 40, 48, 1040, tb=True, bias="n")
    assert list(_gemm._plans.values())[-1].splits > 1
    with params.forced("gemm_tensor", {"BLOCK": "16x16"}):
        product(dev, dt.bfloat16, 40, 48, 1056, tb=True, bias="n", kernel="pipeline")
    assert list(_gemm._plans.values())[-1].splits > 1


@pytest.mark.parametrize("strides", [((0, 1), (0, 1)), ((160, 2), (3, 160))], ids=str)
def test_any_strides(dev, strides):
    pool = np.random.default_rng(0).standard_normal(20000).astype(np.float16)
    M, N, K = 40, 36, 34
    A, B = (np.lib.stride_tricks.as_strided(pool, shape, [2 * s for s in st]).astype(float) for shape, st in zip(((M, K), (K, N)), strides))
    source, buf = put(dev, pool), dev.alloc(M * N * 4)
    _gemm.gemm(dev, dt.float16, M, N, K, source, 0, strides[0], source, 0, strides[1], buf, 0, N, out_dtype=dt.float32)
    got = dev.read(buf, M * N * 4).view("f").reshape(M, N)
    assert np.abs(got - A @ B).max() < 1e-4


@pytest.mark.parametrize("case", ["groups, uneven", "1x1"])
def test_convolutions(dev, case):
    """Forward and both gradients, whole vectors of weights and single ones, against the loop over taps of the tests of convolutions."""
    import test_gemm_conv as others
    launched, plain = [], type(dev).kernel
    dev.kernel = lambda path, **params: launched.append(path) or plain(dev, path, **params)
    try:
        others.convolve(dev, dt.float16, *others.CONVS[case], bias=True, epilogue="relu")
    finally:
        del dev.kernel
    assert "conv/tensor" in launched and "conv/gpu" not in launched


def test_not_finite_values_stay(dev):
    a, b = clnn.eye(64), clnn.arange(64.0 * 64).reshape(64, 64).clone()
    a[0, 0], a[1, 1], a[2, 2] = float("nan"), float("inf"), 65504
    clnn.set_float32_matmul_precision("high")
    for dtype in (clnn.float16, clnn.float32):
        got = ((a.to(dtype) if dtype is clnn.float16 else a) @ b.to(dtype)).float().numpy()
        assert np.isnan(got[0]).all() and np.isinf(got[1, 1]) and np.isnan(got[1]).sum() == 0 and got[5, 7] == b[5, 7].item()


# ---- when they are used ----------------------------------------------------------------------------------------------------------

def test_the_precision_changes_the_plan(dev):
    a, b = clnn.rand(64, 64), clnn.rand(64, 64)

    def kernel():
        a @ b
        return list(_gemm._plans.values())[-1].kernel.name
    exact = (a @ b).numpy()
    assert kernel() == "matmul_gpu"
    clnn.set_float32_matmul_precision("high")
    assert kernel() == "matmul_tensor" and clnn.backends.cuda.matmul.allow_tf32 and clnn.backends.cuda.matmul.fp32_precision == "tf32"
    error = np.abs((a @ b).numpy() - exact).max()
    assert 0 < error < 1e-2
    clnn.backends.cuda.matmul.allow_tf32 = False
    assert clnn.get_float32_matmul_precision() == "highest"
    assert np.array_equal((a @ b).numpy(), exact)
    clnn.backends.cuda.matmul.allow_tf32 = True
    assert clnn.get_float32_matmul_precision() == "high"
    with pytest.warns(UserWarning, match="not one of"):
        clnn.set_float32_matmul_precision("low")
    with pytest.raises(RuntimeError, match="expects a bool"):
        clnn.backends.cuda.matmul.allow_tf32 = 1


def test_small_products_and_other_devices_stay_plain(dev, monkeypatch):
    monkeypatch.setattr(_gemm_tensor, "FEWEST", 16)
    a = clnn.rand(15, 64).half()
    a @ a.t()
    assert list(_gemm._plans.values())[-1].kernel.name == "matmul_gpu"
    monkeypatch.setattr(config, "tensor_cores", "auto")
    assert _gemm_tensor.kinds(dev) == frozenset() or dev.flavour == "nvidia"


class Shape:
    """What a choice of blocks looks at."""
    name = flavour = vendor = "shape"
    local_mem, registers = 49152, 0

    def __init__(self, units, limit):
        self.compute_units, self.max_work_group = units, limit


def test_blocks_fill_the_device():
    def block(M, N, units, limit=1024, wide=True):
        device = Shape(units, limit)
        return _gemm_tensor._block(device, types.SimpleNamespace(M=M, N=N, K=512, ta=dt.float16), 1, wide)
    assert block(4096, 4096, 100) == "128x128"
    assert block(4096, 4096, 100, wide=False) == "128x128/8"
    assert block(512, 512, 100) == "64x64"
    assert block(4096, 4096, 100, limit=64) == "32x32"
    assert block(4096, 4096, 100, limit=16) is None


# ---- the proof -------------------------------------------------------------------------------------------------------------------

@pytest.fixture
def claims(monkeypatch, tmp_path):
    """A device that says it is NVIDIA's and has no verdict yet; its driver does not know the instruction."""
    device = default_device()
    monkeypatch.setattr(device, "flavour", "nvidia")
    monkeypatch.setattr(device, "is_cpu", False)
    monkeypatch.setattr(config, "tensor_cores", "auto")
    monkeypatch.setattr(_gemm, "_plans", {})
    monkeypatch.setattr(_gemm_gpu, "_THIN", 0)
    monkeypatch.setattr(_gemm_tensor, "_known", {})
    monkeypatch.setattr(_proof, "cache_dir", lambda *parts: tmp_path)
    return device


def test_a_driver_without_the_instruction_computes_plainly(claims, monkeypatch):
    a = np.random.default_rng(0).standard_normal((64, 64)).astype("f")
    x = clnn.tensor(a).half()
    assert np.abs((x @ x.t()).float().numpy() - a @ a.T).max() < 0.2
    assert list(_gemm._plans.values())[-1].kernel.name == "matmul_gpu"
    assert _gemm_tensor._known[claims] == frozenset()

    def fail(*args):
        raise AssertionError("asked again")
    monkeypatch.setattr(_proof, "_ask", fail)
    _gemm_tensor._known.clear()
    assert _gemm_tensor.kinds(claims) == frozenset()        # what is on disk is not asked again


@pytest.mark.parametrize("printed, found", [('{"kind": "float16", "problem": ""}\nnoise\n{"kind": "bfloat16", "problem": "7 elements are wrong"}\n', {"float16"}),
                                            ("", set()), ("[]\nnull\n", set())], ids=["one is right", "crashed", "noise"])
def test_what_the_process_prints_decides(claims, monkeypatch, printed, found):
    from clnn.doctor import _tensor_cores
    monkeypatch.setattr(_proof.subprocess, "run", lambda *args, **kwargs: types.SimpleNamespace(stdout=printed))
    assert _gemm_tensor.kinds(claims) == found
    monkeypatch.setattr(claims, "compute_capability", (9, 0))
    report = _tensor_cores(claims)
    assert ("float16" in report[0]) == bool(found) and len(report) == 1 + len(_gemm_tensor.WAYS) - len(found)


def test_a_process_that_cannot_start_or_hangs_is_no_error(claims, monkeypatch):
    for exc in (OSError("no process"), _proof.subprocess.TimeoutExpired("python", 1, b'{"kind": "float16", "problem": ""}\n')):
        def run(*args, exc=exc, **kwargs):
            raise exc
        monkeypatch.setattr(_proof.subprocess, "run", run)
        found = _proof._ask(claims, "_gemm_tensor", [way.name for way in _gemm_tensor.WAYS])
        assert set(found["kinds"]) == ({"float16"} if isinstance(exc, _proof.subprocess.TimeoutExpired) else set())


def test_old_hardware_and_the_switch_are_not_asked(claims, monkeypatch):
    monkeypatch.setattr(_proof, "_ask", None)
    monkeypatch.setattr(claims, "compute_capability", (7, 5))
    assert _gemm_tensor.kinds(claims) == frozenset()
    monkeypatch.setattr(claims, "compute_capability", (9, 0))
    monkeypatch.setattr(config, "tensor_cores", "off")
    assert _gemm_tensor.kinds(claims) == frozenset()


@pytest.mark.parametrize("T", [dt.float16, dt.float32, dt.int8], ids=str)
def test_the_check_sees_wrong_values(dev, monkeypatch, T):
    blocks = ("16x16",)
    assert _gemm_tensor.check(dev, T, blocks=blocks) == ""
    honest = _gemm_tensor._product

    def one_bit_off(*args):
        got = honest(*args)
        got.reshape(-1).view(f"u{got.itemsize}")[7] ^= 1
        return got
    monkeypatch.setattr(_gemm_tensor, "_product", one_bit_off)
    for kernel in ("tensor", "pipeline"):
        assert f"matmul/{kernel} with blocks of 16x16: 1 of 10425 elements are wrong" in _gemm_tensor.check(dev, T, (kernel,), blocks)


def test_a_kernel_that_errs_leaves_the_other(dev, monkeypatch):
    monkeypatch.setattr(_gemm_tensor, "kinds", lambda device: frozenset({"bfloat16"}))
    with params.forced("gemm_tensor", {"BLOCK": "16x16"}):
        product(dev, dt.bfloat16, 48, 32, 96, tb=True, kernel="tensor")


def test_tf32_rounds_ties_away():
    x = np.array([1, 1 + 2.0**-11, -1 - 2.0**-11, 1 + 2.0**-12, 3 * (1 + 2.0**-11)], np.float32)
    assert _gemm_tensor.rounded(x).tolist() == [1, 1 + 2.0**-10, -1 - 2.0**-10, 1, 3 + 2.0**-9]
