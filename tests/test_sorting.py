"""Sorting and order statistics against PyTorch: order with NaN and ties, all dtypes, gradients, every algorithm."""
import itertools

import numpy as np
import pytest
from scenarios import assert_same

import clnn
from clnn._tensor import repeat
from clnn.ops import _scatter, _shuffle, _tiles

torch = pytest.importorskip("torch")


def floats(*shape, seed=0, nan=0.0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape).astype(np.float32)
    x[rng.random(shape) < nan] = np.nan
    return x


def pair(array):
    return clnn.tensor(array), torch.tensor(array)


def same(got, want):
    assert tuple(got.shape) == tuple(want.shape)
    np.testing.assert_array_equal(got.detach().numpy().astype(np.float64), want.detach().to(torch.float64).numpy())      # not every device has doubles


def sorted_like(got, want):
    same(got[0], want[0])
    same(got[1], want[1])


SHAPES = [((7,), 0), ((1,), 0), ((0,), 0), ((), 0), ((3, 33), -1), ((3, 100), 1), ((100, 3), 0), ((2, 60, 3), 1), ((2, 3000), -1)]


@pytest.mark.parametrize("shape, dim", SHAPES, ids=str)
@pytest.mark.parametrize("descending", [False, True])
def test_sort(shape, dim, descending):
    x, y = pair(np.round(floats(*shape) * 3) if shape and shape[-1] < 3000 else floats(*shape))      # rounded: many ties
    sorted_like(x.sort(dim, descending), torch.sort(y, dim=dim, descending=descending, stable=True))
    same(x.argsort(dim, descending), torch.argsort(y, dim=dim, descending=descending, stable=True))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("size", [20, 140])
def test_sort_special_values(descending, size):
    x = floats(2, size, nan=0.2)
    x[0, :5] = [np.inf, -np.inf, -0.0, 0.0, -np.nan]
    a, b = pair(x)
    sorted_like(a.sort(1, descending), torch.sort(b, dim=1, descending=descending, stable=True))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int8", "uint8", "int16", "int32", "int64", "bool"])
def test_sort_dtypes(dtype, later):
    x = np.random.default_rng(0).integers(-100, 100, (2, 140))
    for array in (x, x[:, :30], x * 10 ** 12 if dtype == "int64" else x):
        a, b = (L.tensor(array).to(getattr(L, dtype)) for L in (clnn, torch))
        for descending in (False, True):
            for got, want in zip(a.sort(descending=descending), torch.sort(b, descending=descending, stable=True)):
                later.equal(got.to(clnn.float64), want.to(torch.float64).numpy())


def test_sort_of_long_rows_in_chunks():
    rng = np.random.default_rng(1)
    signed = np.where(np.arange(20000) % 5 == 0, -0.0, floats(20000, nan=0.1)).astype(np.float32)
    signed[::7] = 0.0
    for array in (floats(50000), signed, rng.integers(-9, 9, 40000), rng.integers(-2 ** 63, 2 ** 63 - 1, 20000), 1024 * rng.integers(0, 2 ** 40, 20000),
                  np.full(17000, 3), floats(40000).astype(np.float64), rng.integers(-9, 9, (2, 17000))):
        a, b = pair(array)
        got = a.sort()
        sorted_like(got, torch.sort(b, stable=True))
        if array is signed:
            known = array.size - np.isnan(array).sum()
            np.testing.assert_array_equal(np.signbit(got[0].numpy()[:known]), np.signbit(torch.sort(b, stable=True)[0].numpy()[:known]))
            sorted_like(a.sort(descending=True), torch.sort(b, descending=True, stable=True))


@pytest.mark.share(2, turn=1)
def test_gpu_forms(monkeypatch):
    """The work-group forms, run by a CPU driver: bitonic rows, many small chunks, top-k by rounds."""
    device = clnn.zeros(1)._storage.device
    monkeypatch.setattr(device, "is_cpu", False)
    for array in (floats(3, 70, nan=0.1), np.round(floats(2, 300)), floats(2, 5000), np.arange(6)[None] % 3):
        a, b = pair(array)
        sorted_like(a.sort(), torch.sort(b, stable=True))
        sorted_like(a.sort(descending=True), torch.sort(b, descending=True, stable=True))
        same(a.topk(1).values, b.topk(1).values)
    a, b = pair(floats(3, 500, nan=0.1))
    same(a.topk(7).values, b.topk(7).values)                 # the positions of equal NaN are PyTorch's own
    same(a.gather(1, a.topk(7).indices), b.topk(7).values)
    same(a.reshape(-1).nonzero(), b.reshape(-1).nonzero())


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_tiles_of_gpus(monkeypatch, dtype):
    """Small work-groups: rows in one tile, in tiles whose counts work-groups add up themselves, and in many; first elements of parts; runs; medians."""
    device = clnn.zeros(1)._storage.device
    for where, name, value in ((device, "is_cpu", False), (device, "max_work_group", 16), (repeat, "on", False), (_tiles, "_SIZES", (4,)), (_tiles, "NETWORK", 10)):
        monkeypatch.setattr(where, name, value)
    array = floats(2, 4300, nan=0.1) if dtype == "float32" else np.random.default_rng(3).integers(-100, 100, (2, 4300)) << 20
    for columns, descending in ((60, False), (700, False), (4300, True)):
        a, b = pair(array[:, :columns].copy())
        sorted_like(a.sort(descending=descending), torch.sort(b, descending=descending, stable=True))
    sorted_like(a.topk(7), [t[:, :7] for t in torch.sort(b, descending=True, stable=True)])
    a, b = pair(array[:, :700].copy())
    same(a.kthvalue(9, 1).values, b.kthvalue(9, 1).values)
    same(a.median(1).values, b.median(1).values)
    same(a.nanmedian(1).values, b.nanmedian(1).values)
    a, b = pair(array)
    if dtype == "int64":
        for got, want in zip(a.unique(return_inverse=True, return_counts=True), b.unique(return_inverse=True, return_counts=True)):
            same(got, want)
    same(a.nonzero(), b.nonzero())
    same(a[a > 3], b[b > 3])


@pytest.mark.share(2)
@pytest.mark.parametrize("N, D", [(100, 16), (900, 5000), (4200, 300)])
def test_rows_of_destinations_agree_to_the_bit(monkeypatch, N, D):
    """Sorted in local memory, or where the rows are too long for that, by passes over all of them."""
    index, src, results = np.random.default_rng(2).integers(0, D, (3, N)), floats(3, N), []
    for force in ("cpu", "gpu"):
        monkeypatch.setattr(_scatter, "force", force)
        x, i, s = clnn.zeros(3, D), clnn.tensor(index), clnn.tensor(src)
        results.append([t.numpy().tobytes() for t in (x.scatter_add(1, i, s), x.scatter_reduce(1, i, s, "amax"), x.scatter(1, i, s))])
    assert results[0] == results[1]
    wrong = np.full((3, N), D)
    wrong[:, ::2] = D - 1
    with pytest.raises(RuntimeError):
        clnn.zeros(3, D).scatter_add(1, clnn.tensor(wrong), clnn.tensor(src)).tolist()


def test_random_orders_of_gpus(monkeypatch):
    device = clnn.zeros(1)._storage.device
    monkeypatch.setattr(device, "is_cpu", False)
    clnn.manual_seed(3)
    orders = clnn.randperm(3000), clnn.randperm(3000)
    clnn.manual_seed(3)
    same(clnn.randperm(3000), torch.from_numpy(orders[0].numpy()))
    assert (orders[0] != orders[1]).sum() > 2900 and all([sorted(o.tolist()) == list(range(3000)) for o in orders])
    rng, places = np.random.default_rng(0), np.zeros(3)
    for _ in range(200):                                        # of three equal keys any may come first
        draws = np.concatenate([rng.integers(0, 2 ** 30, 2), [-5, -5, -5]]).astype(np.int32)
        places[_shuffle.order_of(clnn.tensor(draws)).tolist()[0] - 2] += 1
    assert places.min() > 40


@pytest.mark.parametrize("k, shape, dim", [
    (1, (5, 40), -1), (3, (5, 40), 1), (4, (40, 5), 0), (30, (2, 40), 1), (0, (2, 5), 1), (200, (2, 1000), 1), (1, (), 0)], ids=str)
@pytest.mark.parametrize("largest", [True, False])
def test_topk(k, shape, dim, largest):
    a, b = pair(floats(*shape))
    sorted_like(a.topk(k, dim, largest), b.topk(k, dim, largest))


@pytest.mark.parametrize("k, shape", [(3, (70000,)), (500, (70001,)), (130, (3, 1000)), (5, (20, 3000)), (2, (600, 8)), (5, (515, 40))], ids=str)
@pytest.mark.parametrize("largest", [True, False])
def test_topk_of_long_rows_and_of_many(k, shape, largest):
    """In chunks, and by the last element; ties go to the lower position, as a stable sort has them."""
    for array in (floats(*shape), np.random.default_rng(2).integers(0, 50, shape)):
        a, b = pair(array)
        want = torch.sort(b, descending=largest, stable=True)
        sorted_like(a.topk(k, largest=largest), [t[..., :k] for t in want])


def test_topk_nan_and_error():
    a, b = pair(floats(3, 50, nan=0.1))
    same(a.topk(8).values, b.topk(8).values)
    same(a.topk(8, largest=False).values, b.topk(8, largest=False).values)
    with pytest.raises(RuntimeError, match="selected index k out of range"):
        a.topk(51)


PICKS = {
    "kthvalue": lambda x: x.kthvalue(2), "kthvalue keepdim": lambda x: x.kthvalue(3, 0, True), "median": lambda x: x.median(),
    "median dim": lambda x: x.median(1),
    "median keepdim": lambda x: x.median(0, keepdim=True), "nanmedian": lambda x: x.nanmedian(), "nanmedian dim": lambda x: x.nanmedian(1),
    "msort": lambda x: x.msort(),
}


@pytest.mark.parametrize("name", PICKS)
@pytest.mark.parametrize("nan", [0.0, 0.15])
def test_picks(name, nan):
    a, b = pair(floats(6, 9, nan=nan))
    got, want = PICKS[name](a), PICKS[name](b)
    if isinstance(want, torch.Tensor):
        return same(got, want)
    same(got[0], want[0])
    if not nan:
        same(got[1], want[1])


def test_mode():
    a, b = pair(np.random.default_rng(0).integers(0, 4, (5, 12)))
    sorted_like(a.mode(), b.mode())
    sorted_like(a.mode(0, True), b.mode(0, True))
    same(a.to(clnn.float32).mode(1).values, b.to(torch.float32).mode(1).values)


@pytest.mark.parametrize("how", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("nan", [0.0, 0.1])
def test_quantile(how, nan):
    a, b = pair(floats(4, 9, nan=nan))
    for name in ("quantile", "nanquantile"):
        for args, kwargs in [((0.3,), {}), ((0.5, 1), {}), ((0.7, 0, True), {}), (([0.0, 0.25, 1.0], 1), {}), (([0.1, 0.2],), dict(keepdim=True))]:
            q = args[0]
            got, want = (getattr(t, name)(L.tensor(q) if isinstance(q, list) else q, *args[1:], interpolation=how, **kwargs)
                         for L, t in ((clnn, a), (torch, b)))
            assert tuple(got.shape) == tuple(want.shape)
            np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5, atol=1e-6)


GRADS = {"sort": lambda x: x.sort(0)[0], "topk": lambda x: x.topk(3)[0], "kthvalue": lambda x: x.kthvalue(2)[0], "median": lambda x: x.median(),
    "msort": lambda x: x.msort(),
         "median dim": lambda x: x.median(0).values, "mode": lambda x: x.mode(1)[0], "quantile": lambda x: x.quantile(0.4, 1),
    "nanmedian": lambda x: x.nanmedian(1, True)[0]}


@pytest.mark.parametrize("name", GRADS)
def test_gradients(name):
    a, b = pair(floats(5, 8))
    for L, t in ((clnn, a), (torch, b)):
        t.requires_grad_()
        out = GRADS[name](t)
        (out * L.arange(1, out.numel() + 1).reshape(out.shape)).sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-5, atol=1e-6)


def test_named_results():
    r = clnn.tensor([2.0, 1.0]).sort()
    values, indices = r
    assert values is r.values and indices is r.indices and r[0] is values and isinstance(r, tuple)
    assert isinstance(r, clnn.return_types.sort)
    assert repr(r).startswith("clnn.return_types.sort(\nvalues=") and ",\nindices=" in repr(r)
    v, i = clnn.zeros(0), clnn.zeros(0, dtype=clnn.int64)
    r = clnn.sort(clnn.tensor([2.0, 1.0]), out=(v, i))
    assert r.values is v and type(r) is clnn.return_types.sort_out and repr(r).startswith("clnn.return_types.sort_out(")
    r = clnn.aminmax(clnn.tensor([2.0, 1.0]), out=(clnn.zeros(0), clnn.zeros(0)))
    assert (r.min.item(), r.max.item()) == (1, 2) and not isinstance(r, clnn.return_types.aminmax)
    assert v.tolist() == [1, 2] and i.tolist() == [1, 0]


def test_unique_slices_in_the_order_of_the_other_dimensions():
    x = np.array([[[1, 0], [0, 1]], [[0, 1], [1, 0]], [[0, 0], [0, 1]]])               # (3, 2, 2): the slices along the last one differ in [0, 0]
    values, inverse = clnn.unique(clnn.tensor(x), return_inverse=True, dim=-1)
    want, places = np.unique(np.moveaxis(x, -1, 0).reshape(2, -1), axis=0, return_inverse=True)
    assert np.moveaxis(values.numpy(), -1, 0).reshape(2, -1).tolist() == want.tolist() and inverse.tolist() == places.ravel().tolist()
    y = np.random.default_rng(0).integers(0, 2, (3, 4, 6))
    got = clnn.unique(clnn.tensor(y), dim=-1).numpy()
    assert np.moveaxis(got, -1, 0).reshape(got.shape[-1], -1).tolist() == np.unique(np.moveaxis(y, -1, 0).reshape(6, -1), axis=0).tolist()


@pytest.mark.parametrize("dtype", ["int64", "float32", "float16", "uint8", "bool"])
@pytest.mark.parametrize("n", [1, 300, 5000, 20001])
def test_runs_of_equal_elements(n, dtype):
    """Read by the host where they are few, else found by the device, whose chunks begin inside of runs."""
    array = np.repeat(np.arange(n) * 7 % 41, 3)[:n].astype(dtype)
    if dtype == "float32":
        array[1::97], array[5:9] = -0.0, np.nan
    x, y = pair(array)
    for name in ("unique", "unique_consecutive"):
        for inverse in (False, True):
            if inverse and name == "unique" and dtype == "float32":              # PyTorch gives all NaN one place or several
                continue
            for counts in (False, True):
                got, want = (getattr(lib, name)(t, return_inverse=inverse, return_counts=counts) for lib, t in ((clnn, x), (torch, y)))
                for a, b in zip(got, want) if inverse or counts else ((got, want),):
                    assert str(a.dtype).split(".")[-1] == str(b.dtype).split(".")[-1]
                    same(a, b)


def test_places_of_triangles_without_masks():
    """Rows that hold nothing of the triangle, or all of it, and matrices without rows or columns."""
    for rows, columns in itertools.product(range(4), range(4)):
        for offset in range(-5, 6):
            for name in ("tril_indices", "triu_indices"):
                got = getattr(clnn, name)(rows, columns, offset, dtype=clnn.int32)
                np.testing.assert_array_equal(got.numpy(), np.stack(getattr(np, name)(rows, offset, columns)))


def test_runs_are_found_in_few_launches():
    from test_engine import Launches
    x = clnn.tensor(np.arange(40000) // 3)
    with Launches() as seen:
        clnn.unique_consecutive(x, return_counts=True)
    assert seen.count <= 4 + 1                                                    # count, add up, find, lengths; 3 more before


def test_quantiles_of_ties_and_of_infinities():
    def run(t):
        ties, endless = t.tensor([[1.0, 1.0, 2.0], [3.0, 1.0, 3.0]], requires_grad=True), t.tensor([[float("inf")] * 2 + [-float("inf")], [1.0, 2.0, float("inf")]])
        q = t.tensor([0.3, 0.5])
        (ties.quantile(q, 1) + ties.nanquantile(q, 1)).sum().backward()
        return ties.grad, str(endless.quantile(q, 1).tolist()), str(endless.nanquantile(0.5, 1).tolist())
    assert_same(run)


REFUSED = {
    "quantile of a number": lambda t: t.tensor(3.0).quantile(0.5, 1), "nanquantile": lambda t: t.ones(2, dtype=t.int64).nanquantile(0.5),
    "product of a number": lambda t: t.tensor(3.0).prod(1), "kthvalue of nothing": lambda t: t.ones(2, 0).kthvalue(1),
    "slices of a number": lambda t: t.tensor(3.0).unique(dim=0),
    "slices of nothing": lambda t: t.zeros(3, 0).unique(dim=0), "no bins": lambda t: t.ones(2).histogram(0), "no bins to count in": lambda t: t.ones(2).histc(0),
    "endless bins": lambda t: t.tensor([1.0, float("inf")]).histogram(3), "bins backwards": lambda t: t.ones(2).histogram(3, range=(2.0, 1.0)),
    "endless counts": lambda t: t.tensor([1.0, float("inf")]).histc(3), "endless planes": lambda t: t.histogramdd(t.tensor([[1.0, float("nan")]]), 2),
    "reduction": lambda t: t.ones(2).index_reduce(0, t.tensor([0]), t.ones(1), "sum"), "close to a number": lambda t: t.isclose(t.ones(2), 1.0),
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_refusals(call):
    assert_same(call)


def test_all_of_the_greatest_differences_get_the_gradient():
    def run(t):
        x, y = t.tensor([[0.0, 1.0], [2.0, 3.0], [0.0, 1.0]], requires_grad=True), t.tensor([[0.0, 1.0], [1.0, 5.0]], requires_grad=True)
        t.cdist(x, y, p=float("inf")).sum().backward()
        return x.grad, y.grad, t.autograd.grad(t.nn.functional.pdist(x, p=float("inf")).sum(), x)
    assert_same(run)
