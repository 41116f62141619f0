"""Products on tensor cores: the kernel with its instruction spelt out against NumPy, when it is chosen, and the check that a device computes rightly."""
import types

import numpy as np
import pytest

import clnn
from clnn._tensor import repeat
from clnn.core import dtype as dt
from clnn.core.config import config
from clnn.ops import _attention, _attention_gpu, _attention_warpgroup, _conv, _conv_gpu, _gemm, _gemm_gpu, _gemm_model, _gemm_tensor, _gemm_warpgroup
from clnn.runtime import params, program, retarget
from clnn.runtime.device import default_device, list_devices

if not list_devices():
    pytest.skip("no OpenCL device", allow_module_level=True)
TOLERANCE = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 2e-6, "int8": 1e-12}


@pytest.fixture
def dev(monkeypatch):
    """The default device, treated as a GPU with tensor cores whose instruction is spelt out."""
    device = default_device()
    if not device.is_cpu:
        pytest.skip("what is spelt out here is a claim that a GPU's own proof decides")
    monkeypatch.setattr(device, "is_cpu", False)
    monkeypatch.setattr(device, "compute_capability", (8, 0))
    monkeypatch.setattr(config, "tensor_cores", "emulate")
    monkeypatch.setattr(_gemm, "_plans", {})
    monkeypatch.setattr(_gemm_gpu, "_THIN", 0)
    monkeypatch.setattr(_conv, "_plans", {})
    monkeypatch.setattr(_gemm_tensor, "SMALLEST", 1)
    monkeypatch.setattr(_gemm_tensor, "FEWEST", 1)
    monkeypatch.setattr(_gemm_tensor, "SHORTEST", 1)
    # One warp and few tiles: a driver for CPUs needs a second to build the instruction for each.
    monkeypatch.setattr(_gemm_tensor, "BLOCKS", {"16x16": (1, 1, 1, 2, 4.0), **_gemm_tensor.BLOCKS})
    monkeypatch.setattr(_conv_gpu, "BLOCKS", {"16x16": (1, 1, 1, 2, 4.0), **_conv_gpu.BLOCKS})
    with params.forced("gemm_tensor", {"BLOCK": "16x16", "KERNEL": "tensor"}), params.forced("conv_tensor", {"BLOCK": "16x16"}):
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


@pytest.mark.share(2)
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


@pytest.mark.share(2)
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


@pytest.mark.share(2)
def test_copies_with_what_comes_before_and_after(dev):
    with params.forced("gemm_tensor", {"BLOCK": "16x16"}):
        product(dev, dt.float16, 48, 32, 80, tb=True, batch=2, bias="n", kernel="pipeline")
        assert list(_gemm._plans.values())[-1].narrow[0] == "matmul/tensor"
        product(dev, dt.float16, 48, 32, 96, tb=True, at=3, kernel="pipeline")       # its plan is that of aligned operands; what runs is the other kernel


@pytest.mark.share(2, turn=1)
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


@pytest.mark.share(2)
@pytest.mark.parametrize("case", ["groups, uneven", "1x1", "1x1, many pixels", "stride 2", "taps that meet nothing"])
@pytest.mark.parametrize("how", ["mask", "places, split"])
@pytest.mark.parametrize("last", [False, True])
def test_convolutions(dev, monkeypatch, case, how, last):
    """Forward and both gradients, wide loads and single ones, whole sums and parts of them, against the loop over taps of the tests of convolutions."""
    import test_gemm_conv as others
    launched, plain, choose = [], type(dev).kernel, _conv_gpu._choose
    monkeypatch.setattr(dev, "kernel", lambda path, **params: launched.append(path) or plain(dev, path, **params), raising=False)
    if how != "mask":
        monkeypatch.setattr(_conv_gpu, "BITS", 0)
        monkeypatch.setattr(_conv_gpu, "_choose", lambda *args: (choose(*args)[0], 3))
    with params.forced("conv_tensor", {"BLOCK": "16x16", "LAST": last}):
        others.convolve(dev, dt.float16, *others.CONVS[case], bias=True, epilogue="relu")
    assert "conv/tensor" in launched and "conv/gpu" not in launched and ("conv/sum" in launched) == (how != "mask")
    assert ("conv/turn" in launched) == (last and case != "groups, uneven" and case != "stride 2")


def test_convolutions_of_several_warps(dev, monkeypatch):
    if dev.max_work_group < 128:
        pytest.skip("one warp to a group")
    import test_gemm_conv as others
    monkeypatch.setitem(_conv_gpu.BLOCKS, "warps", (2, 2, 2, 2, 1.0))
    with params.forced("conv_tensor", {"BLOCK": "warps"}):
        others.convolve(dev, dt.bfloat16, *others.CONVS["rows that meet few taps"])


# B, H, L, S, E, EV, query heads per key head; then: heads innermost, causal, mask, (warps, tiles of 16 queries)
ATTENTION = {"blocks": ((1, 2, 40, 150, 16, 24, 1), False, False, None, (2, 1)), "tall, causal": ((1, 1, 70, 70, 24, 16, 1), False, True, None, (1, 2)),
             "shared keys, heads inside": ((2, 4, 21, 33, 16, 16, 2), True, False, None, None), "bool": ((2, 2, 20, 20, 16, 16, 1), False, False, "bool", None),
             "added": ((2, 2, 20, 70, 16, 16, 1), True, False, "float", None), "keys": ((2, 1, 20, 20, 16, 8, 1), False, False, "keys", None)}


@pytest.fixture
def attention(dev, monkeypatch):
    """The names of the kernels that attention takes; as few warps as a test asks for."""
    launched, plain = [], type(dev).kernel
    monkeypatch.setattr(dev, "kernel", lambda path, **params: launched.append(path) or plain(dev, path, **params), raising=False)
    monkeypatch.setattr(_attention, "_plans", {})
    monkeypatch.setattr(repeat, "on", False)
    return launched


@pytest.mark.share(2)
@pytest.mark.parametrize("name", ATTENTION)
def test_attention(attention, dev, monkeypatch, name):
    """Results and gradients against PyTorch in double precision on the same 16-bit operands."""
    torch = pytest.importorskip("torch")
    (B, H, L, S, E, EV, groups), inner, causal, kind, warps = ATTENTION[name]
    dtype, rng = ("bfloat16", "float16")[len(name) % 2], np.random.default_rng(0)
    back = dev.flavour != "pocl" or name in ("blocks", "keys")      # which needs half a minute to build the instructions of each
    if warps:
        monkeypatch.setattr(_attention_gpu, "warps", lambda *_: warps)
    mask = {"bool": rng.random((B, 1, L, S)) > 0.4, "float": rng.standard_normal((L, S)), "keys": rng.random((B, 1, 1, S)) > 0.4}.get(kind)
    if kind == "bool":
        mask[:, :, 3] = False                                   # a query that sees nothing gives zeros
    arrays = [rng.standard_normal((B, n, h, e) if inner else (B, h, n, e)) for h, n, e in ((H, L, E), (H // groups, S, E), (H // groups, S, EV), (H, L, EV))]
    results = []
    for lib in (clnn, torch):
        leaves = [lib.tensor(a).to(getattr(lib, dtype)) for a in arrays]
        leaves = [(t if lib is clnn else t.double()).requires_grad_() for t in leaves]
        q, k, v, grad = (t.transpose(1, 2) if inner else t for t in leaves)
        m = None if mask is None else lib.tensor(mask) if mask.dtype == bool else lib.tensor(mask).to(getattr(lib, dtype)).to(q.dtype)
        out = lib.nn.functional.scaled_dot_product_attention(q, k, v, m, is_causal=causal, enable_gqa=groups > 1)
        if back:
            out.backward(grad.detach())
        results.append([t.detach().float().numpy() for t in (out, *[x.grad for x in leaves[:3] if back])])
    assert set(attention) >= ({"attention/tensor", "attention/tensor_query", "attention/tensor_keys"} if back else {"attention/tensor"})
    for got, want in zip(*results):
        assert np.abs(got - want).max() < (0.03 if dtype == "bfloat16" else 4e-3) * max(1.0, np.abs(want).max())


@pytest.mark.share(2)
def test_attention_keeps_what_is_not_finite_and_refuses_what_it_does_not_know(attention, dev):
    attend = clnn.nn.functional.scaled_dot_product_attention
    x = clnn.tensor(np.random.default_rng(1).standard_normal((1, 2, 20, 16)).astype("f")).half()
    bad = x.clone()
    bad[0, 0, 3, 0] = float("nan")
    lost = attend(bad, x, x).isnan()
    assert lost[0, 0, 3].all() and not lost[0, 0, :3].any() and not lost[0, 1].any() and attention.count("attention/tensor") == 1
    y = x.bfloat16()
    low = clnn.full((20, 20), clnn.finfo(clnn.bfloat16).min, dtype=clnn.bfloat16)   # no infinity: a query that sees nothing takes the mean of all
    assert np.abs((attend(y, y, y, low).float() - y.float().mean(2, True)).numpy()).max() < 4e-3 and attention.count("attention/tensor") == 2
    odd = clnn.tensor(np.random.default_rng(1).standard_normal((1, 2, 20, 20)).astype("f")).half()
    for q, k, v in ((odd[..., :16], x[:, :1].expand(1, 2, 20, 16), x), (x, x, x[..., 1:9])):    # rows that are not aligned are copied
        want = attend(q.float(), k.float(), v.float()).numpy()
        assert np.abs(attend(q, k, v).float().numpy() - want).max() < 4e-3
    assert attention.count("attention/tensor") == 4
    for q, kind in ((odd, {}), (x.float(), {}), (x[:, :, :3], {}), (x, dict(scale=-1.0))):
        attend(q, odd if q is odd else x.to(q.dtype), odd if q is odd else x.to(q.dtype), **kind).numpy()
    assert attention.count("attention/tensor") == 4


@pytest.mark.share(2, turn=1)
def test_the_check_of_attention_sees_wrong_values(attention, dev, monkeypatch):
    shapes = (((1, 2, 20, 40, 16, 16), True),)
    assert all(_attention_gpu.check(dev, T, shapes) == "" for T in _attention_gpu.KINDS)
    honest = _attention_gpu.forward
    monkeypatch.setattr(_attention_gpu, "forward", lambda how, q, k, v, *rest: honest(how, q, k, v.flip(2), *rest))
    assert "result is wrong" in _attention_gpu.check(dev, dt.float16, shapes)
    monkeypatch.setattr(_attention_gpu, "forward", lambda how, q, k, v, *rest: (honest(how, q, k, v, *rest)[0], honest(how, q, k.flip(3), v, *rest)[1]))
    assert "log of the sums is wrong" in _attention_gpu.check(dev, dt.float16, shapes)


def test_not_finite_values_stay(dev):
    a, b = clnn.eye(64), clnn.arange(64.0 * 64).reshape(64, 64).clone()
    a[0, 0], a[1, 1], a[2, 2] = float("nan"), float("inf"), 65504
    clnn.set_float32_matmul_precision("high")
    for dtype in (clnn.float16, clnn.float32):
        got = ((a.to(dtype) if dtype is clnn.float16 else a) @ b.to(dtype)).float().numpy()
        assert np.isnan(got[0]).all() and np.isinf(got[1, 1]) and np.isnan(got[1]).sum() == 0 and got[5, 7] == b[5, 7].item()


# ---- the instructions of four warps together ---------------------------------------------------------------------------------------

@pytest.fixture
def hopper(dev, monkeypatch):
    """The same with the processor that has instructions of four warps together, spelt out, and a block that a CPU can build in a moment."""
    if dev.max_work_group < 128:
        pytest.skip("no four warps")
    monkeypatch.setattr(dev, "compute_capability", (9, 0))
    monkeypatch.setattr(_gemm_warpgroup, "BLOCKS", {"64x64": (1, 64, 3, 1.0)})
    return dev


def by_warpgroups(dev, T, M, N, K, fast="kk", at=0, bias=False, tolerance=None):
    """One product, compared with NumPy; the name of its kernel."""
    rng, out = np.random.default_rng(M + N + K), dt.int32 if T is dt.int8 else T
    a, b, v = ((rng.standard_normal(s) * (30 if T is dt.int8 else 1)).astype(U.np) for s, U in (((M, K), T), ((K, N), T), ((N,), out)))
    seen = [(x.view(np.uint32) & np.uint32(0xffffe000)).view(np.float32) if T is dt.float32 else x.astype(np.float64) for x in (a, b)]
    want = seen[0].astype(np.float64) @ seen[1] + (v.astype(np.float64) if bias else 0)
    laid = [np.ascontiguousarray(x) for x in (a if fast[0] == "k" else a.T, b.T if fast[1] == "k" else b)]
    buf = dev.alloc(M * N * out.itemsize)
    config.matmul_precision = "high"
    _gemm.gemm(dev, T, M, N, K, put(dev, laid[0], at), at, (K, 1) if fast[0] == "k" else (1, M), put(dev, laid[1], at), at,
               (1, K) if fast[1] == "k" else (N, 1), buf, 0, N, bias=(put(dev, v), 0) if bias else None, out_dtype=out)
    got = dev.read(buf, M * N * out.itemsize).view(out.np).reshape(M, N)
    assert np.abs(got.astype(np.float64) - want).max() / np.abs(want).max() < (tolerance or TOLERANCE[T.name]), (T, M, N, K, fast)
    return [p for p in _gemm._plans.values() if p.problem.K == K][-1].kernel.name


@pytest.mark.share(2)
@pytest.mark.parametrize("T", _gemm_warpgroup.KINDS, ids=str)
def test_products_by_warpgroups(hopper, T):
    """One step and many, ends in the middle of a block, operands along K and across."""
    for fast in ("kk", "xx", "kx", "xk") if T.itemsize == 2 else ("kk",):
        assert by_warpgroups(hopper, T, 136, 72, 336, fast, bias=True) == "matmul_warpgroup"
    assert by_warpgroups(hopper, T, 64, 64, 64) == "matmul_warpgroup"
    assert by_warpgroups(hopper, T, 700, 72, 48) == "matmul_warpgroup"         # more rows of blocks than are numbered side by side


def test_floats_that_lie_across_are_turned(hopper, monkeypatch):
    """By a pass over each such operand, where the product is large enough; a matrix that all products share is turned once."""
    assert by_warpgroups(hopper, dt.float32, 72, 68, 80, "xx", tolerance=2e-3) == "matmul_tensor"
    monkeypatch.setattr(_gemm_warpgroup, "_GAIN", 1.0)
    _gemm._plans.clear()
    for fast in ("xx", "kx", "xk"):
        assert by_warpgroups(hopper, dt.float32, 136, 70, 84, fast, bias=True) == "matmul_warpgroup"
    clnn.set_float32_matmul_precision("high")
    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(-8, 9, shape).astype(np.float32) for shape in ((2, 2, 72, 68), (2, 2, 68, 100), (68, 100)))
    for y in (b, c):
        np.testing.assert_array_equal((clnn.tensor(a) @ clnn.tensor(y)).numpy(), a @ y)
    assert [row[1][2] for p in list(_gemm._plans.values())[-2:] for row in p.before["b"]] == [4, 1]


@pytest.mark.share(2)
@pytest.mark.parametrize("case", ((dt.float16, (1, 64, 2, False), (1, 64, 2), (1, 64, 2), (1, 2, 70, 130, 64, 64), True),
                                  (dt.bfloat16, (2, 64, 3, False), (2, 64, 1), (2, 64, 1), (1, 1, 150, 100, 64, 128), False),
                                  (dt.float16, (1, 64, 1, True), (1, 64, 1), (1, 32, 2), (1, 1, 70, 140, 128, 128), True),
                                  (dt.bfloat16, (1, 128, 2, True), (1, 128, 2), (2, 128, 2), (1, 1, 70, 300, 128, 64), False)), ids=("two slots", "three", "one", "long"))
def test_attention_by_warpgroups(hopper, attention, monkeypatch, case):
    """Blocks that end in the middle, causal ones and others, by each way of keeping tiles."""
    T, row, query, keys, shape, causal = case
    for name, found in (("FORMS", row), ("QUERY", query), ("KEYS", keys)):
        monkeypatch.setattr(_attention_warpgroup, name, {64: (found,), 128: (found,)})
    assert _attention_warpgroup.check(hopper, T, ((shape, causal),)) == ""
    assert [name for name in attention if "attention" in name] == ["attention/warpgroup", "attention/warpgroup_query", "attention/warpgroup_keys"]


@pytest.mark.share(2)
@pytest.mark.parametrize("kind", ("bool", "float"))
def test_masked_attention_by_warpgroups(hopper, attention, kind):
    """Heads inside of rows that share their keys; queries that see nothing; the same gradients as in double precision."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((1, n, h, 64)) for h, n in ((2, 66), (1, 70), (1, 70), (2, 66))]
    mask = rng.random((1, 1, 66, 70)) > 0.4 if kind == "bool" else rng.standard_normal((66, 70))
    if kind == "bool":
        mask[:, :, 3] = False
    results = []
    for T in (clnn.float16, clnn.float64):
        q, k, v, grad = (clnn.tensor(a).half().to(T).transpose(1, 2).detach().requires_grad_() for a in arrays)
        out = clnn.nn.functional.scaled_dot_product_attention(q, k, v, clnn.tensor(mask) if kind == "bool" else clnn.tensor(mask).to(T), enable_gqa=True)
        out.backward(grad.detach())
        results.append([t.detach().double().numpy() for t in (out, q.grad, k.grad, v.grad)])
    assert set(attention) >= {"attention/warpgroup", "attention/warpgroup_query", "attention/warpgroup_keys"}
    for got, want in zip(*results):
        assert np.abs(got - want).max() < 4e-3 * max(1.0, np.abs(want).max())


def test_attention_that_warpgroups_do_not_take(hopper, monkeypatch):
    def serves(L=64, S=64, E=128, EV=64):
        return _attention_warpgroup.serves(hopper, dt.float16, L, S, E, EV)
    assert serves() and not (serves(L=40) or serves(S=40) or serves(E=48) or serves(EV=72))      # few rows, or lines that are not whole
    honest = _attention_gpu.forward
    monkeypatch.setattr(_attention_gpu, "forward", lambda how, q, k, v, *rest: honest(how, q, k, v.flip(2), *rest))
    assert "result is wrong" in _attention_warpgroup.check(hopper, dt.float16, (((1, 1, 64, 70, 64, 64), False),))


def test_operands_that_warpgroups_do_not_take(hopper):
    assert by_warpgroups(hopper, dt.float16, 68, 72, 66) == "matmul_tensor"             # K is no multiple of 8
    assert by_warpgroups(hopper, dt.float32, 72, 72, 64, "kx", tolerance=2e-3) == "matmul_tensor"       # floats only along K; rounded, not cut
    assert by_warpgroups(hopper, dt.float16, 72, 72, 96, at=3) == "matmul_warpgroup"    # the plan for aligned operands, of which another one is made
    assert list(_gemm._plans.values())[-1].other.kernel.name == "matmul_tensor"


@pytest.mark.parametrize("T", (dt.float16, dt.float32), ids=str)
def test_the_check_of_warpgroups_sees_wrong_values(hopper, monkeypatch, T):
    assert _gemm_warpgroup.check(hopper, T) == ""
    honest = _gemm_warpgroup._product

    def one_bit_off(*args):
        got = honest(*args)
        got.reshape(-1).view("u4")[7] ^= 1
        return got
    monkeypatch.setattr(_gemm_warpgroup, "_product", one_bit_off)
    assert "1 of 65600 elements are wrong" in _gemm_warpgroup.check(hopper, T)


def test_comments_become_instructions(dev, monkeypatch):
    """The driver is given its own binary once more, with another target and without the marks."""
    source = '__kernel void f() { asm volatile("//sm_90a:wgmma.fence.sync.aligned;"); }'
    assert retarget.processor(source) == "sm_90a" and retarget.processor("// plain") == ""
    ptx = b".version 9.0\n.target sm_90, texmode_independent\n\t//sm_90a:wgmma.fence.sync.aligned;\n\t// a comment\n"
    want = b".version 9.0\n.target sm_90a, texmode_independent\n\twgmma.fence.sync.aligned;\n\t// a comment\n"
    assert retarget.retargeted(ptx, "sm_90a") == want
    read = []
    monkeypatch.setattr(dev, "flavour", "nvidia")
    monkeypatch.setattr(dev, "declares_builtins", False)
    monkeypatch.setattr(dev, "keeps_compilers", False)
    monkeypatch.setattr("pyopencl.Program.build", lambda self, *args, **kwargs: types.SimpleNamespace(get_info=lambda what: [ptx]))
    monkeypatch.setattr(program, "_read", lambda device, binary: read.append(binary))
    program._compile(dev, source)
    program._compile(dev, "__kernel void f() { }")
    assert read == [want]


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
    def block(M, N, units, limit=1024, wide=True, kernel="tensor"):
        problem = types.SimpleNamespace(M=M, N=N, K=512, tc=dt.float16, batch=(1, 1))
        found = _gemm_model.fastest(units, _gemm_tensor._tiles(Shape(units, limit), dt.float16, kernel, wide), problem, 512, False)
        return found and found[0]
    assert block(4096, 4096, 132) == block(4096, 4096, 132, kernel="pipeline") == "128x128"
    assert block(4096, 4096, 132, wide=False) != "128x128"          # its loads would leave too few registers
    assert block(512, 512, 100) in ("64x64", "32x32")
    assert block(4096, 4096, 100, limit=64) == "32x32"
    assert block(4096, 4096, 100, limit=16) is None


def test_warpgroups_fill_the_device(hopper, monkeypatch):
    monkeypatch.setattr(_gemm_warpgroup, "BLOCKS", {"128x256": (2, 256, 4, 1.0), "128x128": (2, 128, 4, 1.2)})
    monkeypatch.setattr(hopper, "compute_units", 132)

    def problem(M, N, K):
        return _gemm.Problem(dt.float16, dt.float16, dt.float16, M, N, K, (K, 1), (N, 1), N, (1, 1), ((0, 0, 0), (0, 0, 0)), 1.0, 0.0, "", "", lanes=16)
    assert _gemm_warpgroup._block(hopper, problem(4096, 4096, 4096), 1) == "128x256"
    assert _gemm_warpgroup._block(hopper, problem(1024, 1152, 1024), 1) == "128x128"
    assert _gemm_warpgroup._block(hopper, problem(512, 512, 4096), 1) is None       # too few of any
    assert _gemm_warpgroup._block(hopper, problem(512, 512, 4096), 8) == "128x128"
    assert _gemm_warpgroup.splits(hopper, problem(4096, 4096, 8192)) == 1           # enough blocks without
    assert _gemm_warpgroup.splits(hopper, problem(512, 512, 16384)) == 8
    assert _gemm_warpgroup.splits(hopper, problem(512, 512, 1024)) == 0             # too few, and too short to be split


# ---- the check ----------------------------------------------------------------------------------------------------------------------

@pytest.mark.share(3)
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
