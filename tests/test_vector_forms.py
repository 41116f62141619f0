"""Kernels with several forms: sizes around vector widths and segments, where the forms that the derived tests do not reach begin."""
import itertools

import ml_dtypes
import numpy as np
import pytest
from ahead import Ahead

import clnn
from clnn.graph.op import REGISTRY

R = np.random.default_rng(5)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_all_16_bit_patterns_through_a_fused_chain(name):
    kind = np.float16 if name == "float16" else ml_dtypes.bfloat16
    bits = np.arange(65536, dtype=np.uint16)
    x = clnn.from_numpy(bits.view(np.int16)).view(getattr(clnn, name))
    with np.errstate(all="ignore"):
        values = bits.view(kind).astype(np.float32)
        want = ((values * 2).astype(kind).astype(np.float32) + 1).astype(kind).astype(np.float32)
    np.testing.assert_array_equal((x * 2 + 1).float().numpy(), want)
    np.testing.assert_array_equal(x.float().numpy(), values)


@pytest.mark.parametrize("n", [15, 4096, 20011])
def test_truths_in_vectors(n, later):
    a, b = R.random(n) > 0.5, R.random(n) > 0.5
    x, y = clnn.tensor(a), clnn.tensor(b)
    for symbol in (np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.logical_and, np.logical_or, np.logical_xor):
        later.equal(getattr(clnn, symbol.__name__)(x, y), symbol(a, b))
    later.equal(~x & y, ~a & b)
    later.equal(x.logical_not() | (x ^ True), ~a)
    later.equal(x & (y.int() > 0), a & b)
    i, j = R.integers(-9000, 9000, (2, n)).astype(np.int32)
    later.equal((clnn.tensor(i) & clnn.tensor(j)) | (clnn.tensor(i) ^ ~clnn.tensor(j)), (i & j) | (i ^ ~j))


def test_truths_have_a_vector_form(monkeypatch):
    from clnn.graph import vectors
    seen, linear = [], vectors.linear
    monkeypatch.setattr(vectors, "linear", lambda *a: seen.append(linear(*a)) or seen[-1])
    x = clnn.tensor(R.random(5003) > 0.5)
    ((x & x) ^ ~(x | ~x) ^ x)._storage.buffer()
    assert None not in seen


@pytest.mark.parametrize("inner", [16, 23, 64, 100])
def test_short_rows_of_a_strided_walk(inner, later):
    a, b = R.standard_normal((40, 7, inner)).astype(np.float32), R.standard_normal(inner).astype(np.float32)
    x = clnn.tensor(a)
    later.equal(x.transpose(0, 1).contiguous(), a.swapaxes(0, 1))
    later.equal(x[:, 1:5] * 2 + clnn.tensor(b), a[:, 1:5] * 2 + b)
    later.equal((x.half()[:, 1:5] * 2).float(), (a.astype(np.float16) * 2)[:, 1:5].astype(np.float32))


@pytest.mark.share(3)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "float16", "uint8"])
@pytest.mark.parametrize("shape", [(16, 32), (33, 100), (64, 512), (129, 530), (3, 40, 70)], ids=str)
def test_turned_operands(device, shape, dtype, later):
    if dtype == "float64" and not device.has_fp64:
        pytest.skip("no doubles here")
    a, b = (R.integers(0, 90, s).astype(dtype) for s in (shape, shape[:-2] + shape[:-3:-1]))
    x, y = clnn.tensor(a), clnn.tensor(b)
    later.equal(x.mT.contiguous(), a.swapaxes(-1, -2))
    later.equal((x.mT * 2 + y).contiguous(), a.swapaxes(-1, -2) * 2 + b)
    later.equal(y + x.mT[..., :1, :], b + a.swapaxes(-1, -2)[..., :1, :])
    later.equal((x[..., 3:].mT + x[..., :-3].mT).float(), (a[..., 3:] + a[..., :-3]).swapaxes(-1, -2).astype("float32"))
    if len(shape) == 3:
        for order in ((2, 1, 0), (1, 2, 0), (2, 0, 1)):
            later.equal(x.permute(order).contiguous(), a.transpose(order))


@pytest.mark.share(3)
@pytest.mark.parametrize("dtype", ["float32", "int64", "float16", "uint8", "bool"])
@pytest.mark.parametrize("shape, order", [
    ((50, 70, 3), (1, 0, 2)), ((3, 40, 45, 5), (0, 2, 1, 3)), ((33, 2, 70, 4), (2, 0, 1, 3)), ((9, 10, 11, 12), (2, 1, 0, 3))], ids=str)
def test_runs_of_a_few_elements(shape, order, dtype, later):
    a = R.integers(0, 90, shape).astype(dtype)
    b, x = a.transpose(order), clnn.tensor(a).permute(order)
    later.equal(x.contiguous(), b)
    later.equal(x.float() * 2 + clnn.tensor(b[:1].astype("float32")), b.astype("float32") * 2 + b[:1])
    later.equal(x > x[..., :1], b > b[..., :1])
    later.equal(x[..., 1:].flip(-1) == x[..., :-1], b[..., :0:-1] == b[..., :-1])
    wide = clnn.zeros([2 * s for s in x.shape], dtype=x.dtype)
    wide[tuple(slice(None, None, 2) for _ in order)] = x
    later.equal(wide[tuple(slice(None, None, 2) for _ in order)], b)


@pytest.mark.parametrize("dtype", ["float32", "int64", "float16", "uint8", "bool"])
def test_small_steps_and_backwards(dtype):
    a = R.integers(0, 90, (5, 41, 167)).astype(dtype)
    x = clnn.tensor(a)
    np.testing.assert_array_equal(x.flip(-1).numpy(), a[..., ::-1])
    for step in (2, 3, 4):
        np.testing.assert_array_equal(x[:, ::2, 1::step].contiguous().numpy(), a[:, ::2, 1::step])
    np.testing.assert_array_equal((x[..., 1::2].flip(-1).float() + x[..., :83]).numpy(), a[..., 1::2][..., ::-1].astype("float32") + a[..., :83])
    x[..., ::2] = x[..., :84].flip(1)
    a[..., ::2] = a[..., :84][:, ::-1].copy()
    np.testing.assert_array_equal(x.numpy(), a)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_rows_in_larger_tensors_side_by_side(dim):
    a = R.standard_normal((6, 70, 50)).astype(np.float32)
    x, n = clnn.tensor(a), a.shape[dim]
    pieces = [(1, n // 2), (0, n - 1)]
    got = clnn.cat([x.narrow(dim, *p) for p in pieces], dim)
    np.testing.assert_array_equal(got.numpy(), np.concatenate([a.take(range(i, i + m), dim) for i, m in pieces], dim))
    np.testing.assert_array_equal(x[:, 1:, 3:].roll((5, -2), (dim, 1)).numpy(), np.roll(a[:, 1:, 3:], (5, -2), (dim, 1)))


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_softmax_of_tall_columns(name):
    a, g = (R.standard_normal((2, 8200, 3)) for _ in range(2))
    x = clnn.tensor(a).to(getattr(clnn, name)).requires_grad_()
    a = x.detach().double().numpy()
    e = np.exp(a - a.max(1, keepdims=True))
    want = e / e.sum(1, keepdims=True)
    tolerance = dict(rtol=2e-5, atol=1e-8) if name == "float32" else dict(rtol=2e-2, atol=1e-5)
    for log, y in ((False, want), (True, np.log(want))):
        got = (clnn.log_softmax if log else clnn.softmax)(x, 1)
        assert got.dtype is x.dtype
        np.testing.assert_allclose(got.detach().double().numpy(), y, **tolerance)
        grad, = clnn.autograd.grad(got, x, clnn.tensor(g).to(x.dtype))
        target = g - want * g.sum(1, keepdims=True) if log else want * (g - (g * want).sum(1, keepdims=True))
        np.testing.assert_allclose(grad.double().numpy(), target, rtol=tolerance["rtol"], atol=tolerance["rtol"] * np.abs(target).max())


def test_runs_report_errors_and_count_elements():
    a = R.integers(1, 9, (60, 30, 3))
    x = clnn.tensor(a).transpose(0, 1)
    np.testing.assert_array_equal((x // x[:1]).numpy(), a.swapaxes(0, 1) // a.swapaxes(0, 1)[:1])
    clnn.synchronize()
    with pytest.raises(RuntimeError, match="division or modulo by zero"):
        (x // (x - x)).sum().item()
    kept = []
    part = clnn.tensor(a).float()[:, ::2].transpose(0, 1)       # with gaps: numbers are counted as elements are, else as they lie in memory
    for t in (part, part.contiguous(), part.transpose(0, 1).contiguous().transpose(0, 1)):
        clnn.manual_seed(1)
        kept.append(clnn.nn.functional.dropout(t, 0.5))
    np.testing.assert_array_equal(kept[0].numpy(), kept[1].numpy())
    np.testing.assert_array_equal(kept[1].numpy().ravel() != 0, kept[2].transpose(0, 1).numpy().ravel() != 0)


@pytest.mark.parametrize("n", [0, 5000])
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_large_arguments_among_small_ones(name, n):
    a = R.uniform(-9, 9, 8000).astype(np.float32)
    a[n:n + 20] = [1e5, -3e7, 1e20, 3e38, 40000, np.inf, -np.inf, np.nan, -0.0, 0.0] * 2
    with np.errstate(invalid="ignore"):
        want = getattr(np, name)(a.astype(np.float64))
    got = getattr(clnn.tensor(a), name)()
    np.testing.assert_allclose(got.numpy(), want, 2e-6, 2e-7)
    np.testing.assert_array_equal(got[n:n + 20].numpy(), getattr(clnn.tensor(a[n:n + 20]), name)().numpy())    # vectors and single elements agree


@pytest.mark.parametrize("n", [1, 15, 16, 17, 63, 64, 65, 130, 40000])
def test_row_reductions_around_the_lanes(n, later):
    a = R.integers(-9, 9, (5, n)).astype(np.float32)
    x = clnn.tensor(a)
    later.equal(x.sum(1), a.sum(1))
    later.equal(x.amax(1), a.max(1))
    later.equal(x.argmax(1), a.argmax(1))
    later.equal((x * 2 - 1).sum(1), (a * 2 - 1).sum(1))
    later.equal(x.t().contiguous().argmin(0), a.argmin(1))
    later.equal(x.cumsum(1), a.cumsum(1))
    later.equal(x.cummax(1).values, np.maximum.accumulate(a, 1))


@pytest.mark.parametrize("n", [1, 40, 64, 65, 300])
def test_order_of_rows(n):
    a = R.integers(0, 20, (6, n)).astype(np.float32)
    if n > 1:
        a[1, n // 2] = np.nan
    x, order = clnn.tensor(a), np.argsort(a, 1, kind="stable")
    np.testing.assert_array_equal(x.sort(1).indices.numpy(), order)
    k = (n + 1) // 2
    values, at = x.kthvalue(k, 1)
    np.testing.assert_array_equal(at.numpy(), order[:, k - 1])
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(a, order, 1)[:, k - 1])
    want = [np.nan if np.isnan(r).any() else np.sort(r)[(n - 1) // 2] for r in a]
    np.testing.assert_array_equal(x.median(1).values.numpy(), np.float32(want))


@pytest.mark.parametrize("n", [13, 20])
def test_order_of_many_rows(n):
    a = R.integers(-9, 9, (517, n)).astype(np.float32)
    a[R.random(a.shape) < 0.02], a[R.random(a.shape) < 0.1] = np.nan, -0.0
    x, order = clnn.tensor(a), np.argsort(a, 1, kind="stable")
    ordered = np.take_along_axis(a, order, 1)
    values, at = x.sort(1)
    np.testing.assert_array_equal(at.numpy(), order)
    np.testing.assert_array_equal(values.numpy().view(np.uint32), ordered.view(np.uint32))
    if n == 13:
        np.testing.assert_array_equal(x.kthvalue(5, 1).indices.numpy(), order[:, 4])
        values, at = x.median(1)
        np.testing.assert_array_equal(values.numpy(), np.where(np.isnan(a).any(1), np.nan, ordered[:, 6]))
        np.testing.assert_array_equal(np.take_along_axis(a, at.numpy()[:, None], 1)[:, 0], values.numpy())


def test_writes_and_reads_by_index_of_vectors():
    n, size = 5000, 700
    at, a = R.integers(0, size, n), R.standard_normal(n).astype(np.float32)
    want = np.zeros(size, np.float32)
    for i, v in zip(at, a):
        want[i] += v                                             # in the order of the source, bit by bit
    index = clnn.tensor(at)
    np.testing.assert_array_equal(clnn.zeros(size).scatter_add(0, index, clnn.tensor(a)).numpy(), want)
    np.testing.assert_array_equal(clnn.bincount(index, minlength=size).numpy(), np.bincount(at, minlength=size))
    far = np.append(at, [2 * 4096, 4095])                        # beyond what is counted before the greatest is known
    np.testing.assert_array_equal(clnn.tensor(far).bincount().numpy(), np.bincount(far))
    with pytest.raises(RuntimeError, match="non-negative"):
        clnn.tensor(np.append(at, [-1])).bincount()
    np.testing.assert_array_equal(clnn.tensor(want)[index].numpy(), want[at])
    at[n // 2] = size
    with pytest.raises(RuntimeError, match="out of bounds"):
        clnn.tensor(want).gather(0, clnn.tensor(at)).numpy()


def test_float_to_int64_keeps_all_bits():
    a = np.concatenate([R.standard_normal(4000) * 10.0 ** R.integers(0, 19, 4000), [2 ** 31, -2 ** 31, 2 ** 32, -2 ** 62, 2 ** 62, -0.5, 0.0]]).astype(np.float32)
    a = a[np.abs(a) < 2.0 ** 63]
    np.testing.assert_array_equal(clnn.tensor(a).long().numpy(), a.astype(np.int64))


@pytest.mark.parametrize("n", [1, 7, 40, 300])
def test_reversed_rows(n, later):
    a = R.standard_normal((5, n)).astype(np.float32)
    x = clnn.tensor(a)
    later.equal(x.flip(1), a[:, ::-1])
    later.equal(x.flip(1) * 2 + x, a[:, ::-1] * 2 + a)
    later.equal(x.flip(0, 1).t().contiguous(), a[::-1, ::-1].T)
    square = clnn.tensor(R.standard_normal((n, 5)).astype(np.float32))
    later.equal(square.t() + x.flip(1), square.numpy().T + a[:, ::-1])
    later.close(x.flip(1).sum(1), a.sum(1), 1e-5, 1e-5)
    later.equal(x.flip(1) > 0, a[:, ::-1] > 0)


@pytest.mark.parametrize("shape", [(3000, 4), (40, 67, 3)], ids=str)
def test_few_columns(shape, later):
    """Rows of few elements one below the other: sums, extremes with places, running sums and products, and the same with gaps between rows."""
    dim = len(shape) - 2
    a = R.integers(-9, 9, shape).astype(np.float32)
    x, wide = clnn.tensor(a), clnn.tensor(np.concatenate([a, a], -1))[..., :shape[-1]]
    for y in (x, wide):
        later.equal((y * 2).sum(dim), (a * 2).sum(dim))
    a.reshape(-1)[[5, 100, 9000 % a.size]] = np.nan
    values, places = clnn.tensor(a).max(dim)
    later.equal(values, a.max(dim))
    later.equal(places, a.argmax(dim))
    a = R.integers(-9, 9, shape).astype(np.float32)
    later.equal(clnn.tensor(a).cumsum(dim), a.cumsum(dim))
    later.equal(clnn.ops.scans._cumsum(clnn.tensor(a), dim, True), np.flip(np.flip(a, dim).cumsum(dim), dim))


@pytest.mark.parametrize("n", [3, 8])
def test_running_sums_of_very_short_rows(n):
    a = R.integers(-9, 9, (1501, n)).astype(np.float32)
    np.testing.assert_array_equal(clnn.tensor(a).cumsum(1).numpy(), a.cumsum(1))
    np.testing.assert_array_equal(clnn.ops.scans._cumsum(clnn.tensor(a), 1, True).numpy(), a[:, ::-1].cumsum(1)[:, ::-1])


def test_columns_side_by_side():
    a = R.integers(-99, 99, (3, 1801)).astype(np.float32)
    x = clnn.tensor(a)
    np.testing.assert_array_equal(clnn.stack([x[0], x[1], x[2]], -1).numpy(), a.T)
    np.testing.assert_array_equal(clnn.cat([x[2, 7:].unsqueeze(1), x[0, 7:].unsqueeze(1), x[1, 7:].unsqueeze(1)], 1).numpy(), a[[2, 0, 1], 7:].T)


def test_blocks_as_columns_in_rows_of_vectors():
    torch = pytest.importorskip("torch")
    a = R.integers(-9, 9, (2, 3, 9, 70)).astype(np.float32)
    for options in (dict(kernel_size=3, padding=1), dict(kernel_size=(2, 3), padding=(0, 2), dilation=2), dict(kernel_size=3, stride=2, padding=1)):
        columns = torch.nn.functional.unfold(torch.tensor(a), **options)
        mine = clnn.nn.functional.unfold(clnn.tensor(a), **options)
        np.testing.assert_array_equal(mine.numpy(), columns.numpy())
        np.testing.assert_array_equal(clnn.nn.functional.fold(mine, (9, 70), **options).numpy(), torch.nn.functional.fold(columns, (9, 70), **options).numpy())


@pytest.mark.share(3)
@pytest.mark.parametrize("dtype", ["float32", "int64", "float16", "uint8"])
@pytest.mark.parametrize("shape", [(2, 3, 1801), (5, 2, 60), (3, 7, 40, 33), (1, 15, 700), (70, 3, 32)], ids=str)
def test_columns_apart_and_side_by_side(shape, dtype, later):
    """Channels first and channels last, with operands of both kinds, one row for all and one element per row."""
    a = R.integers(0, 90, shape).astype(dtype)
    last = np.ascontiguousarray(np.moveaxis(a, 1, -1))
    x, y = clnn.tensor(a), clnn.tensor(last)
    later.equal(x.movedim(1, -1).contiguous(), last)
    later.equal(y.movedim(-1, 1).contiguous(), a)
    row, column = R.integers(0, 9, shape[1]).astype(dtype), R.integers(0, 9, (*last.shape[:-1], 1)).astype(dtype)
    got = (x.movedim(1, -1) + y * clnn.tensor(row) + clnn.tensor(column)).contiguous()
    later.equal(got, last + last * row + column)
    later.equal((y.movedim(-1, 1).float() * 0.5 + x).contiguous(), a.astype(np.float32) * 0.5 + a)
    later.equal((y[..., :2].movedim(-1, 1) + x[:, :2]).contiguous(), a[:, :2] + a[:, :2])


@pytest.mark.parametrize("count", [3, 10])
def test_rows_of_a_few_elements(count):
    """A row for all, an element per row and whole arrays, in one kernel and into memory that is written over."""
    a, b, c = (R.integers(-9, 9, s).astype(np.float32) for s in ((2003, count), count, (2003, 1)))
    x, y, z = clnn.tensor(a), clnn.tensor(b), clnn.tensor(c)
    np.testing.assert_array_equal(((x + y) * z + 3).numpy(), (a + b) * c + 3)
    np.testing.assert_array_equal(((x + y) * z + 3).half().float().numpy(), (a + b) * c + 3)
    x += 1
    x._storage.buffer()
    x -= y
    np.testing.assert_array_equal(x.numpy(), a + 1 - b)


def _choosing():
    """Operators whose text for floats chooses between values."""
    for name, op in REGISTRY.items():
        text = getattr(op.expr, "text", None)
        text = text["float"] if isinstance(text, dict) else text
        if text and "?" in text and not (op.expr.uses_index or op.expr.longs) and clnn.float32 in op.dtypes:
            yield name


def _choices(name, dtype):
    op, kind = REGISTRY[name], getattr(clnn, dtype)
    n, special = 4500, [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -3.0, 3.0, 6.0]
    first = [np.concatenate([np.roll(special, k), R.standard_normal(n - 9) * 4]).astype(np.float32) for k in range(2)]
    rest = [0.5, 2.0, 1.5, 0.25][:max(len(op.params) - 2, 0)]
    operands = [clnn.tensor(a).to(kind) for a in first[:len(op.params)]]
    if name == "_where":
        operands[0] = operands[0] > 0
    whole = op.fn(*operands, *rest).float()
    parts = [op.fn(*[t[a:a + 1500].clone() for t in operands], *rest).float() for a in range(0, n, 1500)]
    for t in (whole, *parts):
        t._storage.buffer()
    return lambda: np.testing.assert_array_equal(whole.numpy(), np.concatenate([t.numpy() for t in parts]))


AHEAD = Ahead(_choices)


@pytest.mark.share(3)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", sorted(set(_choosing())))
def test_choices_of_whole_vectors_are_those_of_numbers(name, dtype, request):
    AHEAD.finish(request)


def test_long_integers_become_floats_rounded_once(device):
    ends = np.array([0, 1, -1, 2**24 + 1, 2**31, -2**31 - 1, 2**53 + 1, 2**54 + 2**30 + 1, 2**55 - 2**30 - 1, 2**63 - 1, -2**63, 1 - 2**63])
    a = np.concatenate([ends, -ends[1:9], R.integers(-2**63, 2**63 - 1, 5000) >> R.integers(0, 63, 5000)])
    x = clnn.tensor(a)
    np.testing.assert_array_equal(x.float().numpy(), a.astype(np.float32))
    if not device.has_fp64:
        return
    np.testing.assert_array_equal(x.double().numpy(), a.astype(np.float64))
    b = np.concatenate([[0.5, -0.5, 1.5, -1.5, 2.0**31, -2.0**32 - 1, 2.0**62 + 2.0**31, -2.0**63], R.standard_normal(5000) * 2.0 ** R.integers(-3, 61, 5000)])
    np.testing.assert_array_equal(clnn.tensor(b).long().numpy(), b.astype(np.int64))


@pytest.mark.share(3)
@pytest.mark.parametrize("shape, dtype", [*itertools.product([(300, 16), (40, 17), (600, 100), (3, 5000)], ["float32", "int64"]),
                                          *itertools.product([(40, 17), (3, 5000)], ["int32", "float64", "bfloat16"])], ids=str)
def test_reductions_of_comparisons(device, shape, dtype, later):
    if dtype == "float64" and not device.has_fp64:
        pytest.skip("no doubles here")
    a = R.integers(-3, 4, shape)
    a[a.shape[0] // 2] = 1
    x = clnn.tensor(a).to(getattr(clnn, dtype))
    for dim in (0, 1):
        later.equal((x > 0).sum(dim), (a > 0).sum(dim))
        later.equal((x == 1).all(dim), (a == 1).all(dim))
        later.equal((x > 2).any(dim), (a > 2).any(dim))
        later.equal(x.any(dim), a.any(dim))
        later.equal((x <= 0).float().sum(dim), (a <= 0).sum(dim))
        later.equal(((x != 0) & (x < 2)).sum(dim), ((a != 0) & (a < 2)).sum(dim))
    assert (x.to(clnn.uint8) > 100).sum().item() == (a < 0).sum()
    if x.is_floating_point():
        x[1, 3] = float("nan")
        assert x.isnan().any(1).tolist() == [i == 1 for i in range(len(a))] and x.isnan().sum().item() == 1


@pytest.mark.parametrize("shape, order", [
    ((3, 2, 5, 40, 32), (1, 3, 0, 2, 4)), ((4, 90, 16), (1, 0, 2)), ((90, 4, 20), (1, 0, 2)), ((3, 4, 5, 6, 17), (3, 1, 2, 0, 4))], ids=str)
def test_rows_that_change_places(shape, order, later):
    """Both orders in which such rows are walked, whole and in part, with operands that are repeated."""
    a, row = R.standard_normal(shape).astype(np.float32), R.standard_normal(shape[-1]).astype(np.float32)
    x, b = clnn.tensor(a), a.transpose(order)
    later.equal(x.permute(order).contiguous(), b)
    later.equal(x.permute(order)[1:] * clnn.tensor(row), b[1:] * row)
    later.equal((x.permute(order) + clnn.tensor(b[..., :1].copy())).contiguous(), b + b[..., :1])
    later.equal(clnn.zeros(b.shape)[:, 1:].copy_(x.permute(order)[:, 1:]), b[:, 1:])


@pytest.mark.parametrize("rows, channels", [(3, 1000), (70, 1037), (5, 2048)])
def test_statistics_of_many_channels(rows, channels):
    a = R.standard_normal((rows, channels)).astype(np.float32) + 3
    mean, var = clnn.zeros(channels), clnn.ones(channels)
    got = clnn.nn.functional.batch_norm(clnn.tensor(a), mean, var, training=True)
    np.testing.assert_allclose(got.numpy(), (a - a.mean(0)) / np.sqrt(a.var(0) + 1e-5), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(mean.numpy(), 0.1 * a.mean(0), rtol=1e-5)
    np.testing.assert_allclose(var.numpy(), 0.9 + 0.1 * a.var(0, ddof=1), rtol=1e-5)


def test_integers_beside_fractions_in_a_choice():
    """An expression for floats on integers has no vector form: its literals would be operands of another type."""
    from clnn._tensor.declare import elementwise
    op = elementwise("fraction_of_a_choice", "a, b", "(b > -3 ? a / 6.0f : (ACC)0)", method=False, inplace=False, gradcheck=False)
    try:
        a, b = (R.integers(-20, 20, 5003).astype(np.int32) for _ in range(2))
        np.testing.assert_array_equal(op(clnn.tensor(a), clnn.tensor(b)).numpy(), np.where(b > -3, (a / np.float32(6)).astype(np.int32), 0))
    finally:
        del REGISTRY["fraction_of_a_choice"]


@pytest.mark.parametrize("step", [2, 4, 22, 23, 34, 234])
def test_elements_far_apart_are_not_taken_for_near_ones(step):
    a = np.random.default_rng(step).random((20000, step)).astype(np.float32)
    x = clnn.from_numpy(a.copy())
    assert np.array_equal((x[:, 0] * 2 + x[:, 1]).numpy(), a[:, 0] * 2 + a[:, 1])
    assert np.array_equal((x.t() * 1.5).numpy(), a.T * np.float32(1.5))
