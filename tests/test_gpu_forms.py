"""Kernels in their forms for GPUs, on a device that is treated as one."""
import numpy as np
import pytest

import clnn

R = np.random.default_rng(6)


@pytest.fixture
def as_gpu(monkeypatch):
    """The device, treated as a GPU that is full with a few elements; gives the forms that were launched."""
    from clnn._tensor import repeat
    from clnn.core import symbols
    from clnn.graph import akin, fuse, several
    device, forms, plain = clnn.get_default_device().physical, [], fuse.kernel_for
    if device.max_work_group < several.GROUP:
        pytest.skip("small work-groups only")
    for name in ("is_cpu", "loops", "vectors"):
        monkeypatch.setattr(device, name, False)
    for owner, name, value in ((repeat, "on", False), (fuse, "_known", {}), (fuse, "_launches", {}), (fuse, "_kernels", {}), (several, "LARGE", 1),
                               (several, "TURNED", 1), (akin, "_strided", {}),
                               (fuse, "kernel_for", lambda device, program: symbols.tracing is None and forms.append(program.form) or plain(device, program))):
        monkeypatch.setattr(owner, name, value)
    return forms


def test_several_elements_of_a_work_item(as_gpu):
    def check(form, got, want):
        np.testing.assert_array_equal(got.numpy(), want)
        assert as_gpu and as_gpu[-1].startswith(form), as_gpu
    for n in (7, 1024, 5001):
        a = R.standard_normal(n).astype(np.float32)
        check("linear-several", clnn.tensor(a) * 2 + 1, a * 2 + 1)
        check("linear-several", clnn.tensor(a).half() * 2, a.astype(np.float16) * np.float16(2))
        check("linear-several", clnn.tensor(a > 0) & clnn.tensor(a < 1), (a > 0) & (a < 1))
    for shape in ((5, 1000), (40, 100), (100, 64), (3, 4200), (50, 17), (4, 5, 300), (3, 7, 49), (2, 3, 70, 41)):
        a, b = R.standard_normal(shape).astype(np.float32), R.standard_normal((shape[-2], 1)).astype(np.float32)
        c = R.standard_normal(shape[-1]).astype(np.float32)
        check("rows-several", clnn.tensor(a) + clnn.tensor(c), a + c)
        check("rows-several", clnn.tensor(a) * clnn.tensor(b), a * b)


@pytest.mark.share(2)
@pytest.mark.parametrize("n", [1024, 4096, 8191, 20000])
def test_neighbours_that_a_work_item_of_a_gpu_reads_together(as_gpu, n):
    """16-bit and 8-bit operands, alone and with wider ones, from their buffer's start on or not; functions that branch."""
    a, b = R.standard_normal(n).astype(np.float32), R.integers(0, 250, n).astype(np.uint8)
    h, x, y = a.astype(np.float16), clnn.tensor(a), clnn.tensor(b)
    half = x.half()
    for got, want in ((half + half, h + h), (x > 0.5, a > 0.5), (half.float() / x, h.astype(np.float32) / a), (y + y, b + b), (half[1:] * 2, h[1:] * 2),
                      (y.float() + x, b + a), (y.long() * 3, b.astype(np.int64) * 3), (half * y, h * b), (x[3:].half(), h[3:]), ((half + 1)[:-1], (h + 1)[:-1]),
                      (half * half[:1], h * h[0]), (clnn.where(y > 9, x, half), np.where(b > 9, a, h))):
        np.testing.assert_array_equal(got.numpy(), want)
        assert as_gpu[-1] == "linear-several", as_gpu
    for f, want in ((clnn.sin, np.sin), (clnn.sqrt, np.sqrt), (clnn.atan, np.arctan), (clnn.rsqrt, lambda a: 1 / np.sqrt(a))):
        np.testing.assert_allclose(f(x.abs() * 60000).numpy(), want((np.abs(a) * np.float32(60000)).astype(np.float64)), rtol=1e-5, atol=1e-6)
        assert as_gpu[-1] == "linear-several", as_gpu


@pytest.mark.share(2)
@pytest.mark.parametrize("shape", [(5, 1000), (3, 4200), (40, 101), (7, 2049), (2, 3, 4096), (100, 64)], ids=str)
def test_neighbours_of_rows_that_a_work_item_of_a_gpu_reads_together(as_gpu, shape):
    a, b = (R.standard_normal(s).astype(np.float16) for s in (shape, shape[-1:]))
    c = R.integers(0, 2, (*shape[:-1], 1)).astype(bool)
    x, y, z = clnn.tensor(a), clnn.tensor(b), clnn.tensor(c)
    for got, want in ((x + y, a + b), (x * z, a * c), (x[..., 4:] * y[4:], a[..., 4:] * b[4:]), (x[..., 1:] + y[:-1], a[..., 1:] + b[:-1]),
                      (x[1:] + y, a[1:] + b), (x.float() * y > 0, a.astype(np.float32) * b > 0), (x[..., :-3] * 2, a[..., :-3] * 2)):
        np.testing.assert_array_equal(got.numpy(), want)
        assert as_gpu[-1].startswith(("rows-several", "linear-several")), as_gpu


@pytest.mark.parametrize("n", [1024, 5001, 9000])
def test_random_numbers_of_a_block_that_a_work_item_of_a_gpu_draws(as_gpu, monkeypatch, n):
    """The same numbers as of a kernel that walks once per element; also behind an offset."""
    from clnn.graph import several
    from clnn.ops import _sequence
    monkeypatch.setattr(_sequence, "followed", lambda device: False)

    def drawn():
        clnn.manual_seed(3)
        x, y = clnn.ones(n), clnn.zeros(n + 3)
        y[3:].normal_()
        kinds = [clnn.randn(n), clnn.rand(n, dtype=clnn.float16), clnn.randint(0, 1000, (n,)), clnn.randint(0, 1 << 40, (n,)), y, clnn.rand(n) + x,
                 clnn.nn.functional.dropout(x, 0.3), clnn.nn.functional.dropout(x.half(), 0.3), clnn.empty(n).exponential_(), clnn.empty(n).log_normal_(),
                 clnn.empty(n).cauchy_(), clnn.bernoulli(x * 0.5), clnn.randn(n) + clnn.rand(n), clnn.empty(n).geometric_(0.1)]
        kinds += [clnn.rand(n, dtype=clnn.float64), clnn.randn(n, dtype=clnn.float64)] if clnn.get_default_device().physical.has_fp64 else []
        return [t.numpy() for t in kinds]
    got = drawn()
    assert as_gpu.count("linear-several") >= 14, as_gpu
    monkeypatch.setattr(several, "LARGE", 1 << 40)
    for k, (one, other) in enumerate(zip(got, drawn())):
        np.testing.assert_array_equal(one, other, err_msg=str(k))


@pytest.mark.parametrize("name", ["float32", "float16", "bool", "float64", "complex64"])
def test_turned_operands_of_a_gpu(as_gpu, name):
    for shape, order in (((64, 64), (1, 0)), ((33, 65), (1, 0)), ((16, 100), (1, 0)), ((2, 20, 9, 8), (0, 2, 3, 1)), ((3, 5, 37, 70), (0, 1, 3, 2)),
                         ((5, 37, 20, 33), (2, 0, 3, 1))):
        a = (R.standard_normal(shape) * 4).round().astype(name)
        as_gpu.clear()
        np.testing.assert_array_equal(clnn.tensor(a).permute(*order).contiguous().numpy(), a.transpose(order))
        if name == "float32":
            b, c = (R.standard_normal([shape[i] for i in order]).astype(name) for _ in range(2))
            np.testing.assert_array_equal((clnn.tensor(a).permute(*order) * clnn.tensor(b) + clnn.tensor(c[..., :1])).numpy(), a.transpose(order) * b + c[..., :1])
            assert as_gpu == ["turned-several"] * 2


@pytest.mark.share(2)
@pytest.mark.parametrize("size", [1024, 256, 64])
def test_rows_that_work_items_of_a_gpu_share(as_gpu, monkeypatch, size):
    """Softmax, cross-entropy and normalisations, with gradients, of rows that work-items keep and of longer ones."""
    torch = pytest.importorskip("torch")
    device = clnn.get_default_device().physical
    monkeypatch.setattr(device, "max_work_group", min(size, device.max_work_group))

    def run(lib, make, arrays):
        leaves = [lib.tensor(a) if a.dtype.kind == "i" else lib.tensor(a, requires_grad=True) for a in arrays]
        y = make(lib.nn.functional, *leaves)
        (y * y).sum().backward()
        return [t.detach().numpy() for t in (y, *[t.grad for t in leaves if t.requires_grad])]
    for rows, n in ((30, 10), (70, 100), (301, 33), (2100, 9), (2, 777), (2, 5000), (1, 9000)):
        x, w, b = (R.standard_normal(s).astype(np.float32) for s in ((rows, n), n, n))
        places = R.integers(0, n, rows)
        for make, arrays in ((lambda F, x: F.softmax(x, -1), (x,)), (lambda F, x: F.log_softmax(x, -1), (x,)), (lambda F, x, y: F.cross_entropy(x, y), (x, places)),
                             (lambda F, x, y, w: F.cross_entropy(x, y, w.detach().abs(), label_smoothing=0.1, reduction="none") * w.mean(), (x, places, w)),
                             (lambda F, x, w, b: F.layer_norm(x, (n,), w, b), (x, w, b)), (lambda F, x, w: F.rms_norm(x, (n,), w), (x, w)),
                             (lambda F, x: F.batch_norm(x.view(1, rows, n), None, None, training=True), (x,))):
            for got, want in zip(run(clnn, make, arrays), run(torch, make, arrays)):
                np.testing.assert_allclose(got, want, 2e-4, 2e-5 * max(1, np.abs(want).max()))


@pytest.mark.parametrize("shape, dim", [((4096, 300), 0), ((3, 5000, 7), 1), ((1, 200000), 1), ((70000,), 0), ((9, 100), 1)], ids=str)
def test_places_of_extremes_of_a_gpu(as_gpu, shape, dim):
    """Columns and rows in as many parts as fill all units; of equal ones the first, and NaN before all."""
    a = R.integers(-50, 50, shape).astype(np.float32)
    x = clnn.tensor(a)
    values, places = x.max(dim)
    np.testing.assert_array_equal(values.numpy(), a.max(dim))
    np.testing.assert_array_equal(places.numpy(), a.argmax(dim))
    np.testing.assert_array_equal(x.argmin(dim).numpy(), a.argmin(dim))
    a.reshape(-1)[a.size // 3] = np.nan
    np.testing.assert_array_equal(clnn.tensor(a).argmax(dim).numpy(), a.argmax(dim))


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8"])
@pytest.mark.parametrize("units", [1, 1 << 20], ids=["full", "idle"])
def test_reads_and_rows_side_by_side_of_a_gpu(monkeypatch, units, dtype):
    """Elements that lie 16 bytes at a time or not, of work-items with one or several of them."""
    from clnn._tensor import repeat
    device = clnn.get_default_device().physical
    for owner, name, value in ((repeat, "on", False), (device, "is_cpu", False), (device, "compute_units", units)):
        monkeypatch.setattr(owner, name, value)
    for shape, d, n in (((50, 512), 0, 37), ((33, 40), 0, 700), ((7, 19, 36), 1, 50), ((9, 5), 0, 2100), ((300,), 0, 9000), ((4, 5, 1030), 1, 9)):
        a, i = R.integers(0, 200, shape).astype(dtype), R.integers(0, shape[d] - 1, n)
        x, j = clnn.tensor(a), clnn.tensor(i)
        np.testing.assert_array_equal(x.index_select(d, j).numpy(), np.take(a, i, d))
        np.testing.assert_array_equal(x[..., 1:].index_select(d, j).numpy(), np.take(a[..., 1:], i, d))
        g = R.integers(0, shape[d], (*shape[:d], n, *shape[d + 1:]))
        np.testing.assert_array_equal(x.gather(d, clnn.tensor(g)).numpy(), np.take_along_axis(a, g, d))
    for shapes, d in (([(5, 1000), (5, 24)], 1), ([(250, 16), (250, 8), (250, 12)], 1), ([(300, 256), (20, 256)], 0),
                      ([(7, 5, 80), (7, 9, 80)], 1), ([(200, 33), (200, 31)], 1), ([(1000,)] * 9, 0)):
        arrays = [R.integers(0, 200, s).astype(dtype) for s in shapes]
        for cut in (0, 1, 2):
            parts = [a[(slice(cut, None),) if d == 0 else (slice(None), slice(cut, None))] for a in arrays]
            tensors = [clnn.tensor(a)[(slice(cut, None),) if d == 0 else (slice(None), slice(cut, None))] for a in arrays]
            np.testing.assert_array_equal(clnn.cat(tensors, d).numpy(), np.concatenate(parts, d))


@pytest.mark.share(2)
@pytest.mark.parametrize("kind, parameters", [("SGD", 1024), ("AdamW", 4352)])
def test_optimizers_in_few_launches_on_gpus(monkeypatch, kind, parameters):
    """Sizes around the elements of a work-item and of a group; more tensors than a launch takes."""
    from clnn.graph import multi
    torch = pytest.importorskip("torch")
    device = clnn.get_default_device().physical
    for name, value in dict(is_cpu=False, max_parameter=min(parameters, device.max_parameter)).items():
        monkeypatch.setattr(device, name, value)
    for name in ("_kernels", "_prepared"):
        monkeypatch.setattr(multi, name, {})
    rng, results = np.random.default_rng(0), []
    values = [rng.standard_normal(n).astype(np.float32) for n in (769, 4096, 9000, 2, 768, *range(1, 31))]
    for lib in (clnn, torch):
        params = [lib.nn.Parameter(lib.tensor(v)) for v in values]
        opt = getattr(lib.optim, kind)(params, lr=0.1)
        for _ in range(2):
            for p, v in zip(params, values):
                p.grad = lib.tensor(v[::-1].copy())
            opt.step()
        results.append([p.detach().numpy() for p in params])
    for got, want in zip(*results):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    sizes = sorted(len(key[-1]) for key in multi._prepared)
    assert sizes == ([3, 16, 16] if kind == "SGD" else [3, 32] if device.max_parameter >= 2432 else [3, 8, 8, 8, 8])
