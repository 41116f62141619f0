"""Indexing, joining, scattering, searching and padding against PyTorch: values, gradients, errors, determinism."""
import importlib
import warnings

import numpy as np
import pytest
from scenarios import assert_same

import clnn

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")
F, TF = None, torch.nn.functional


def rng(seed=0):
    return np.random.default_rng(seed)


def floats(*shape, seed=0):
    return rng(seed).standard_normal(shape)


def ints(high, *shape, seed=1):
    return rng(seed).integers(0, high, shape)


def to(lib, value):
    """Arrays become tensors of ``lib``, also inside lists and tuples; ("np", array) stays an array."""
    if isinstance(value, np.ndarray):
        return lib.tensor(value)
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(to(lib, v) for v in value)
    return value


def host(result):
    if isinstance(result, (tuple, list)):
        return [host(r) for r in result]
    return result.detach().numpy() if hasattr(result, "detach") else np.asarray(result)


def same(got, want, tol=1e-6):
    if isinstance(want, list):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            same(g, w, tol)
        return
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol)


def flat_outputs(result):
    return [r for r in (result if isinstance(result, (tuple, list)) else [result]) if getattr(r, "requires_grad", False)]


def compare(call, *arrays, grad=True, tol=1e-6, ordered=True):
    """``call(lib, *tensors)`` in both libraries: results, and gradients of float inputs."""
    def run(lib):
        tensors = []
        for a in arrays:
            t = to(lib, a)
            if grad and isinstance(a, np.ndarray) and a.dtype.kind == "f":
                t.requires_grad_()
            tensors.append(t)
        out = call(lib, *tensors)
        outs = flat_outputs(out)
        grads = []
        if outs:
            total = 0
            for i, o in enumerate(outs):
                w = lib.tensor(rng(9 + i).standard_normal(tuple(o.shape))) if o.dtype == lib.float64 else None
                total = total + (o * w).sum() if w is not None else total + o.sum()
            wanted = [t for t in tensors if getattr(t, "requires_grad", False)]
            total.backward()
            grads = [t.grad if t.grad is not None else lib.zeros(t.shape, dtype=t.dtype) for t in wanted]
        return host(out), host(grads)
    (got, got_grads), (want, want_grads) = run(clnn), run(torch)
    same(got, want, tol)
    same(got_grads, want_grads, max(tol, 1e-6))


# -- x[index] ---------------------------------------------------------------------------------------------------------------------------
A = np.array
BASIC = [np.s_[1], np.s_[-1], np.s_[1, 2], np.s_[1:], np.s_[:, 1:3], np.s_[..., 0], np.s_[0, ...], np.s_[::2], np.s_[1::2, ::3], np.s_[None],
         np.s_[:, None], np.s_[..., None], np.s_[1, None, 2:], np.s_[:0], np.s_[5:1], np.s_[-3:-1], np.s_[...], np.s_[:], np.s_[0, 1, 2],
         np.s_[None, 1, ..., None, 0], np.s_[True], np.s_[np.int64(1)], np.s_[:, -1:, 0]]
ADVANCED = [[0, 2], ([0, 2], [1, 1]), A([0, 2, 1]), A([[0, 1], [2, 0]]), A([-1, 0, -2]), (slice(None), A([2, 0])),
            (slice(None), slice(None), A([1, 1, 0])), (A([0, 1]), slice(None), A([1, 2])), (A([[0], [1]]), A([1, 2])),
            (slice(1, None), A([0, 3]), A([1, 2])), (1, A([0, 2])), (A([0, 2]), 1), (A([0, 1]), None), (None, A([0, 1])),
            (A([0, 1]), 1, A([0, 2])), (1, slice(None), A([0, 2])), (A(1), slice(None), A([0, 2])), A(1), (A(1), A(2)), (Ellipsis, A([3, 0])),
            ([], ), A([], np.int64), (A([0, 1]), slice(1, 3)), (slice(None, None, 2), A([0, 1])), (A([0, 1], np.int32),),
            (0, A([0, 1]), slice(None), None)]
MASKS = [floats(3, 4, 5) > 0, floats(3) > -5, (slice(None), floats(4) > 0), floats(3, 4) > 0, (slice(None), floats(4, 5) > 0),
         (floats(3) > -5, A([0, 1, 2])), (floats(3) > 9,),
         (A([True, False, True]), 0), (A([True, False, True]), slice(None), A([True] * 2 + [False] * 3)),
         [True, False, True], (Ellipsis, floats(5) > 0), False]


@pytest.mark.parametrize("index", BASIC + ADVANCED + MASKS, ids=str)
def test_getitem(index):
    compare(lambda lib, x: x[to(lib, index)], floats(3, 4, 5))


@pytest.mark.parametrize("index", BASIC + ADVANCED, ids=str)
def test_getitem_of_a_transposed_tensor(index):
    compare(lambda lib, x: x.permute(2, 0, 1).transpose(1, 2).transpose(0, 2)[to(lib, index)], floats(4, 5, 3)[:, :, :].transpose(2, 0, 1).copy())


@pytest.mark.parametrize("index", BASIC + ADVANCED[:-1] + MASKS, ids=str)
def test_setitem_number(index):
    def call(lib, x):
        y = x * 2
        y[to(lib, index)] = 7
        return y
    compare(call, floats(3, 4, 5))


@pytest.mark.parametrize("index", [i for i in BASIC + ADVANCED + MASKS], ids=str)
@pytest.mark.parametrize("grad", [True, False])
def test_setitem_tensor(index, grad):
    shape = tuple(torch.tensor(floats(3, 4, 5))[to(torch, index)].shape)
    places = torch.arange(60).reshape(3, 4, 5)[to(torch, index)].flatten()
    unique = len(places.unique()) == len(places)

    def call(lib, x, v):
        y = x * 2
        y[to(lib, index)] = v
        return y
    if unique:
        compare(call, floats(3, 4, 5), floats(*shape, seed=3), grad=grad)
    if shape:
        compare(call, floats(3, 4, 5), floats(*shape[-1:] if shape[-1] != 1 else (), seed=3), grad=grad)


def test_setitem_writes_through_views_and_spares_copies():
    x = clnn.zeros(4, 3)
    saved, view = x.clone(), x[1:3]
    x[clnn.tensor([1, 3])] = 5.0
    x[0] = clnn.tensor([1., 2., 3.])
    view[1][...] = 9
    assert view.tolist() == [[5, 5, 5], [9, 9, 9]]
    assert x.tolist() == [[1, 2, 3], [5, 5, 5], [9, 9, 9], [5, 5, 5]]
    assert saved.tolist() == [[0] * 3] * 4
    t = clnn.tensor([1, 2, 0])
    t[t] = t                                                         # index and value are the target itself
    assert t.tolist() == [0, 1, 2]


def test_setitem_dtypes():
    for value in (True, 3, 2.7, np.float64(1.5), np.int64(4), np.int8(-1)):
        x, y = clnn.zeros(3, 2, dtype=clnn.int32), torch.zeros(3, 2, dtype=torch.int32)
        x[1], x[[0, 2]] = value, value
        y[1], y[[0, 2]] = value, value
        assert x.tolist() == y.tolist()


ASSIGNED = {                                            # index and value of another dtype
    "part": (lambda t: (slice(0, 2), 1), lambda t: t.tensor([7, 8])), "place": (lambda t: t.tensor(1), lambda t: t.tensor([7, 8, 9])),
    "list": (lambda t: [0, 1], lambda t: t.tensor([7, 8, 9])), "one": (lambda t: [0, 1], lambda t: t.tensor(7)),
    "mask": (lambda t: t.ones(2, 3) > 0, lambda t: t.tensor(7)),
    "mask of rows": (lambda t: t.tensor([True, False]), lambda t: t.tensor([7, 8, 9])), "mask, one": (lambda t: t.tensor([True, False]), lambda t: t.tensor([7])),
    "imaginary": (lambda t: t.ones(2, 3) > 0, lambda t: t.tensor(1j)), "step": (lambda t: slice(0, 2, 0), lambda t: t.tensor(7)),
}


@pytest.mark.parametrize("index, value", ASSIGNED.values(), ids=ASSIGNED)
def test_values_of_another_dtype(index, value):
    def run(t):
        x = t.zeros(2, 3)
        x[index(t)] = value(t)
        return x
    assert_same(run)


@pytest.mark.parametrize("index, text", [
    (5, "index 5 is out of bounds for dimension 0 with size 3"), ((0, -5), "index -5 is out of bounds for dimension 1 with size 4"),
    ((0, 0, 0), "too many indices for tensor of dimension 2"), ([7], "index 7 is out of bounds for dimension 0 with size 3"),
    ((slice(None), np.array([4])), "index 4 is out of bounds for dimension 1 with size 4"), (1.5, "only integers, slices"),
    (np.array([True, False]), "The shape of the mask \\[2\\] at index 0 does not match the shape of the indexed tensor \\[3, 4\\] at index 0"),
    ((np.array([0, 1]), np.array([0, 1, 2])), "shape mismatch: indexing tensors could not be broadcast together with shapes \\[2\\], \\[3\\]"),
    (np.array([0.5]), "tensors used as indices must be long, int, byte or bool tensors")], ids=str)
def test_index_errors(index, text):
    with pytest.raises(IndexError, match=text):
        clnn.zeros(3, 4)[index]


def test_index_errors_of_other_kinds():
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
        clnn.tensor(1.0)[0]
    with pytest.raises(ValueError, match="step must be greater than zero"):
        clnn.zeros(3)[::-1]
    with pytest.raises(RuntimeError, match="shape mismatch: value tensor of shape \\[3\\] cannot be broadcast"):
        clnn.zeros(4)[[0, 1]] = clnn.zeros(3)


BAD = [("index", lambda x, i: x[i]), ("gather", lambda x, i: x.gather(0, i)), ("select", lambda x, i: x.index_select(0, i)),
       ("take", lambda x, i: x.take(i)), ("scatter", lambda x, i: x.scatter(0, i, 1.0)), ("add", lambda x, i: x.index_add(0, i, x[:2])),
       ("scatter_add", lambda x, i: x.scatter_add(0, i, x[:2])), ("put", lambda x, i: x.index_put((i,), x[:2])),
       ("two", lambda x, i: x.reshape(1, 3)[i * 0, i]), ("neg", lambda x, i: x.gather(0, i * 0 - 1))]


@pytest.mark.parametrize("name, call", BAD, ids=[b[0] for b in BAD])
def test_bad_indices_on_the_device_are_reported_and_harmless(name, call):
    i = clnn.tensor([1, 3]) + 0
    kind = RuntimeError if name in ("gather", "neg", "scatter", "scatter_add") else IndexError       # PyTorch's kinds
    with pytest.raises(kind, match="out of (bounds|range)"):
        call(clnn.zeros(3), i).numpy()
    assert clnn.ones(2).tolist() == [1, 1]


# -- reading and writing by index ---------------------------------------------------------------------------------------------------------
CALLS = {
    "index_select": (lambda L, x: x.index_select(1, L.tensor(A([2, 0, 2]))), floats(3, 4, 5)),
    "index_select wide": (lambda L, x: L.index_select(x, 0, L.tensor(A([2, 0, 2, 1]))), floats(3, 40)),
    "index_select int32": (lambda L, x: L.index_select(x, -1, L.tensor(A([2, 0], np.int32))), floats(3, 4)),
    "index_select 0-d": (lambda L, x: L.index_select(x, 0, L.tensor(A([0]))), floats()),
    "gather": (lambda L, x: x.gather(1, L.tensor(ints(4, 3, 6, 5))), floats(3, 4, 5)),
    "gather last": (lambda L, x: x.gather(2, L.tensor(ints(5, 2, 3, 7))), floats(3, 4, 5)),
    "gather 0-d": (lambda L, x: x.gather(0, L.tensor(A(0))), floats()),
    "take": (lambda L, x: L.take(x, L.tensor(A([[0, 5], [-1, 3]]))), floats(3, 4)),
    "take_along_dim": (lambda L, x: L.take_along_dim(x, L.tensor(ints(4, 1, 2)), dim=1), floats(3, 4)),
    "take_along_dim flat": (lambda L, x: L.take_along_dim(x, L.tensor(ints(12, 4))), floats(3, 4)),
    "scatter": (lambda L, x, s: x.scatter(1, L.tensor(A([[0, 2], [3, 1]])), s), floats(3, 4), floats(2, 2, seed=2)),
    "scatter value": (lambda L, x: x.scatter(1, L.tensor(A([[0], [2], [1]])), 2.5), floats(3, 4)),
    "scatter add": (lambda L, x: x.detach().scatter(0, L.tensor(ints(3, 5, 4)), 1.5, reduce="add"), floats(3, 4)),
    "scatter_add": (lambda L, x, s: x.scatter_add(0, L.tensor(ints(3, 7, 4)), s), floats(3, 4), floats(7, 4, seed=2)),
    "scatter_add last": (lambda L, x, s: x.scatter_add(-1, L.tensor(ints(4, 2, 9)), s), floats(3, 4), floats(2, 9, seed=2)),
    "scatter_add 1-d": (lambda L, x, s: x.scatter_add(0, L.tensor(ints(5, 300)), s), floats(5), floats(300, seed=2)),
    "index_add": (lambda L, x, s: x.index_add(1, L.tensor(A([2, 0, 2])), s, alpha=2), floats(3, 4), floats(3, 3, seed=2)),
    "index_copy": (lambda L, x, s: x.index_copy(0, L.tensor(A([2, 0])), s), floats(3, 4), floats(2, 4, seed=2)),
    "index_fill": (lambda L, x: x.index_fill(1, L.tensor(A([2, 0])), -1.0), floats(3, 4)),
    "index_fill tensor": (lambda L, x, v: x.index_fill(1, L.tensor(A([2, 0])), v), floats(3, 4), floats()),
    "index_put": (lambda L, x, v: x.index_put((L.tensor(A([0, 1])), L.tensor(A([1, 2]))), v), floats(3, 4), floats(2)),
    "index_put accumulate": (lambda L, x, v: x.index_put((L.tensor(A([0, 1, 0])),), v, accumulate=True), floats(3, 4), floats(3, 4)),
    "index_put mask": (lambda L, x, v: x.index_put((L.tensor(A([True, False, True])),), v, accumulate=True), floats(3, 4), floats(4)),
    "put": (lambda L, x, s: L.Tensor.put(x, L.tensor(A([1, 9])), s), floats(3, 4), floats(2)),
    "put accumulate": (lambda L, x, s: L.Tensor.put(x, L.tensor(A([1, 1])), s, accumulate=True), floats(3, 4), floats(2)),
    "masked_select": (lambda L, x: x.masked_select(L.tensor(floats(3, 4) > 0)), floats(3, 4)),
    "masked_select broadcast": (lambda L, x: L.masked_select(x, L.tensor(A([True, False, True, True]))), floats(3, 4)),
    "masked_scatter": (lambda L, x, s: x.masked_scatter(L.tensor(floats(3, 4) > 0), s), floats(3, 4), floats(12, seed=3)),
    "repeat_interleave": (lambda L, x: x.repeat_interleave(L.tensor(A([1, 0, 2])), 0), floats(3, 4)),
}
for op in ("sum", "prod", "mean", "amax", "amin"):
    for own in (True, False):
        CALLS[f"scatter_reduce {op} {own}"] = (
            lambda L, x, s, op=op, own=own: x.scatter_reduce(1, L.tensor(ints(4, 3, 9)), s, op, include_self=own), floats(3, 4), floats(3, 9, seed=2))
        if op != "sum":
            CALLS[f"index_reduce {op} {own}"] = (
                lambda L, x, s, op=op, own=own: L.Tensor.index_reduce(x.detach(), 0, L.tensor(ints(3, 6)), s.detach(), op, include_self=own),
                floats(3, 4), floats(6, 4, seed=2))


@pytest.mark.parametrize("name", CALLS)
def test_by_index(name):
    call, *arrays = CALLS[name]
    compare(call, *arrays)


@pytest.mark.parametrize("grad", [False, True])
def test_in_place_forms(grad):
    def call(lib, x, s):
        kept = x * 1
        y = kept.clone()
        i, w = lib.tensor(A([2, 0, 2])), lib.tensor(ints(3, 3, 4))
        y.index_add_(0, i, s, alpha=2).index_copy_(0, i[:2], s[:2]).index_fill_(1, i[:1], 3.0)
        y[1:].scatter_add_(0, w[:2] % 2, s[:2])
        y.scatter_(1, lib.tensor(A([[0, 1], [1, 2], [0, 3]])), s[:, :2].clone()).scatter_(0, w[:1], 5.0)
        y.index_put_((i, lib.tensor(A([0, 1, 0]))), s[:, 0], accumulate=True).index_put_((i[:2],), s[0])
        y.masked_fill_(y > 9, 1.0).scatter_reduce_(0, w, s, "amax")
        return y, kept
    compare(call, floats(3, 4), floats(3, 4, seed=2), grad=grad)


def test_product_gradient_with_zeros():
    x, s = floats(2, 3), floats(2, 5, seed=4)
    x[0, 1] = s[0, 0] = s[1, 3] = s[1, 4] = 0
    compare(lambda L, x, s: x.scatter_reduce(1, L.tensor(ints(3, 2, 5)), s, "prod"), x, s)


@pytest.mark.share(3, both=True)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8", "uint8", "int16", "int32", "int64", "bool"])
def test_dtypes(dtype, later):
    x, y = (getattr(L, "tensor")(ints(5, 6, 4)).to(getattr(L, dtype)) for L in (clnn, torch))
    i, j = (getattr(L, "tensor")(ints(6, 6, 4, seed=5)) for L in (clnn, torch))
    for call in (lambda t, i: t[i[:, 0]], lambda t, i: t.gather(0, i), lambda t, i: t.scatter(0, i[:1], t), lambda t, i: t.scatter_add(0, i, t),
                 lambda t, i: t.scatter_reduce(0, i, t, "amax"), lambda t, i: t.flip(0), lambda t, i: t[t != 0], lambda t, i: t.tril(),
                 lambda t, i: t.nonzero(), lambda t, i: t.index_add(0, i[:, 0], t)):
        got, want = call(x, i), call(y, j)
        assert got.dtype.name == str(want.dtype).split(".")[1]
        later.equal(got.to(clnn.float64), want.to(torch.float64).numpy())


# -- joining and rearranging ---------------------------------------------------------------------------------------------------------------
REARRANGE = {
    "cat": (lambda L, a, b: L.cat([a, b, a], 1), floats(2, 3), floats(2, 4)), "cat 0": (lambda L, a, b: L.cat((a, b)), floats(2, 3), floats(5, 3)),
    "cat lazy": (lambda L, a, b: L.cat([a * 2, b + 1, (a * b).exp()], -1), floats(2, 3), floats(2, 3)),
    "cat many": (lambda L, a: L.cat([a * i for i in range(21)], 0), floats(2, 3)), "cat empty": (lambda L, a: L.cat([L.zeros(0), a]), floats(2, 3)),
    "cat types": (lambda L, a, b: L.cat([a, b]), floats(2, 3), ints(4, 1, 3)),
    "cat strided": (lambda L, a: L.cat([a.t(), a.t()[:, :1]], 1), floats(2, 3)),
    "stack": (lambda L, a, b: L.stack([a, b, a]), floats(2, 3), floats(2, 3)), "stack last": (lambda L, a: L.stack([a, a * 2], -1), floats(2, 3)),
    "stack 0-d": (lambda L, a: L.stack([a, a, a * 3]), floats()), "hstack": (lambda L, a, b: L.hstack([a, b]), floats(2, 3), floats(2, 1)),
    "hstack 1-d": (lambda L, a: L.hstack([a, a]), floats(3)), "vstack": (lambda L, a: L.vstack((a, a)), floats(3)),
    "dstack": (lambda L, a: L.dstack((a, a)), floats(2, 3)), "column_stack": (lambda L, a, b: L.column_stack((a, b)), floats(2), floats(2, 3)),
    "split": (lambda L, a: a.split(2), floats(5, 3)), "split list": (lambda L, a: L.split(a, [1, 3, 1]), floats(5, 3)),
    "split dim": (lambda L, a: a.split(2, dim=-1)[0], floats(2, 3)),
    "split_with_sizes": (lambda L, a: a.split_with_sizes([2, 0, 1], 1), floats(2, 3)),
    "tensor_split": (lambda L, a: a.tensor_split(3), floats(7, 2)), "tensor_split at": (lambda L, a: L.tensor_split(a, (1, 4), 0), floats(7, 2)),
    "chunk": (lambda L, a: a.chunk(3, 0), floats(7, 2)), "unbind": (lambda L, a: a.unbind(1), floats(3, 2)),
    "hsplit": (lambda L, a: L.hsplit(a, 2), floats(3, 4)),
    "narrow": (lambda L, a: a.narrow(1, 1, 2), floats(3, 4)), "narrow neg": (lambda L, a: L.narrow(a, 0, -2, 1), floats(3, 4)),
    "select": (lambda L, a: a.select(1, -1), floats(3, 4)), "movedim": (lambda L, a: L.movedim(a, (0, 1), (-1, 0)), floats(2, 3, 4)),
    "moveaxis": (lambda L, a: a.moveaxis(2, 0), floats(2, 3, 4)), "repeat": (lambda L, a: a.repeat(2, 1, 3), floats(2, 3)),
    "tile": (lambda L, a: L.tile(a, (2,)), floats(2, 3)), "repeat_interleave": (lambda L, a: a.repeat_interleave(2, 1), floats(2, 3)),
    "repeat_interleave flat": (lambda L, a: L.repeat_interleave(a, 3), floats(2, 3)), "flip": (lambda L, a: a.flip(0, 2), floats(2, 3, 4)),
    "flip view": (lambda L, a: a[:, 1:].t().flip([0]) * 2, floats(4, 5)), "fliplr": (lambda L, a: L.fliplr(a), floats(2, 3)),
    "flipud": (lambda L, a: a.flipud(), floats(2, 3)), "roll": (lambda L, a: a.roll(2), floats(2, 3)),
    "roll dims": (lambda L, a: L.roll(a, (1, -1), (0, 1)), floats(2, 3)),
    "rot90": (lambda L, a: L.rot90(a), floats(2, 3)), "rot90 3": (lambda L, a: a.rot90(3, (1, 2)), floats(2, 3, 4)),
    "rot90 -2": (lambda L, a: L.rot90(a, -2), floats(2, 3)), "meshgrid": (lambda L, a, b: L.meshgrid(a, b, indexing="ij"), floats(2), floats(3)),
    "meshgrid xy": (lambda L, a, b: L.meshgrid([a, b], indexing="xy"), floats(2), floats(3)),
    "broadcast_tensors": (lambda L, a, b: L.broadcast_tensors(a, b), floats(2, 1), floats(3)), "atleast_1d": (lambda L, a: L.atleast_1d(a), floats()),
    "atleast_2d": (lambda L, a, b: L.atleast_2d(a, b), floats(), floats(3)), "atleast_3d": (lambda L, a: L.atleast_3d(a), floats(3)),
    "block_diag": (lambda L, a, b, c: L.block_diag(a, b, c), floats(2, 3), floats(1, 2), floats(2)),
    "cartesian_prod": (lambda L, a, b: L.cartesian_prod(a, b), floats(2), floats(3)), "combinations": (lambda L, a: L.combinations(a), floats(4)),
    "combinations with": (lambda L, a: L.combinations(a, with_replacement=True), floats(5)), "combinations 1": (lambda L, a: L.combinations(a, 1), floats(4)),
    "combinations of one": (lambda L, a: L.combinations(a), floats(1)), "combinations 3": (lambda L, a: L.combinations(a, 3, True), floats(4)),
    "select_scatter": (lambda L, a, s: L.select_scatter(a, s, 1, 0), floats(2, 3), floats(2)),
    "slice_scatter": (lambda L, a, s: L.slice_scatter(a, s, 1, 0, 3, 2), floats(2, 3), floats(2, 2)),
    "diagonal_scatter": (lambda L, a, s: L.diagonal_scatter(a, s, 1), floats(3, 3), floats(2)),
    "tril": (lambda L, a: a.tril(), floats(3, 4)), "tril batch": (lambda L, a: L.tril(a, -1), floats(2, 3, 3)),
    "triu": (lambda L, a: L.triu(a, 1), floats(2, 4, 3)),
    "triu strided": (lambda L, a: L.triu(a.transpose(0, 2)), floats(2, 4, 3)), "tril lazy": (lambda L, a: (a * 2).tril() + a, floats(5, 5)),
    "diag": (lambda L, a: a.diag(), floats(3)), "diag of": (lambda L, a: L.diag(a, -1), floats(3, 4)),
    "diag_embed": (lambda L, a: L.diag_embed(a, 1, 0, 2), floats(2, 3)),
    "diagflat": (lambda L, a: L.diagflat(a, -1), floats(2, 2)), "trace": (lambda L, a: a.trace(), floats(3, 4)),
    "tril_indices": (lambda L: L.tril_indices(3, 4, 1)), "triu_indices": (lambda L: L.triu_indices(3, 4, -1)),
}


@pytest.mark.parametrize("name", REARRANGE)
def test_rearrange(name):
    got = REARRANGE[name]
    call, arrays = (got[0], got[1:]) if isinstance(got, tuple) else (got, ())
    compare(call, *arrays)


def test_errors_of_joining():
    with pytest.raises(RuntimeError, match="Sizes of tensors must match except in dimension 0. Expected size 3 but got size 2 for tensor number 1"):
        clnn.cat([clnn.zeros(1, 3), clnn.zeros(1, 2)])
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size, but got \\[1, 3\\] at entry 0 and \\[1, 2\\] at entry 1"):
        clnn.stack([clnn.zeros(1, 3), clnn.zeros(1, 2)])
    for join in (clnn.stack, clnn.hstack):
        with pytest.raises(RuntimeError, match=f"{join.__name__} expects a non-empty TensorList"):
            join([])
    with pytest.raises(ValueError, match="expected a non-empty list of Tensors"):
        clnn.cat([])
    with pytest.raises(TypeError, match="must be tuple of Tensors, not Tensor"):
        clnn.cat(clnn.zeros(2))
    with pytest.raises(RuntimeError, match="zero-dimensional tensor"):
        clnn.cat([clnn.tensor(1.0)])
    with pytest.raises(RuntimeError, match="split_with_sizes expects split_sizes to sum exactly to 3"):
        clnn.zeros(3).split([1, 1])
    with pytest.raises(RuntimeError, match="exceeds dimension size"):
        clnn.zeros(3).narrow(0, 2, 2)


def test_sizes_that_are_tensors_stay_as_they_are():
    x, length = clnn.arange(6.0).view(2, 3), clnn.tensor(2)
    part = x.narrow(-1, clnn.tensor(1), length)
    assert (part * 2).tolist() == [[2, 4], [8, 10]] and type(part.shape[1]) is int and length.item() == 2


def test_views_write_through():
    x = clnn.zeros(4, 2)
    x.unbind(0)[1].add_(1)
    x.split(2)[1].mul_(0).add_(2)
    x.narrow(1, 0, 1).sub_(3)
    x.select(0, 0)[1] = 8
    assert x.tolist() == [[-3, 8], [-2, 1], [-1, 2], [-1, 2]]


# -- padding ----------------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("shape, pad, kwargs", [
    ((2, 3), (1, 2), {}), ((2, 3), (1, 2, 0, 3), dict(value=2.5)), ((2, 3, 4), (-1, 2, 1, -2), dict(value=1.0)), ((2, 3, 4), (0, 0, 0, 0, 1, 1), {}),
    ((2, 3, 4), (2, 1), dict(mode="reflect")), ((3, 4), (3, 2), dict(mode="reflect")), ((2, 3, 4, 5), (4, 1, 2, 3), dict(mode="reflect")),
    ((1, 2, 3, 4, 5), (4, 1, 2, 3, 1, 2), dict(mode="reflect")), ((2, 3, 4), (2, 7), dict(mode="replicate")),
    ((2, 3, 4, 5), (2, 7, 1, 0), dict(mode="replicate")), ((2, 3, 4), (4, 1), dict(mode="circular")),
    ((2, 3, 4, 5), (4, 1, 0, 3), dict(mode="circular")),
    ((2, 3, 4), (-1, 2), dict(mode="replicate")), ((2, 3, 4), (-1, 2), dict(mode="circular")),
    ((2, 3, 4, 5), (-1, 2, 1, 0), dict(mode="reflect"))], ids=str)
def test_pad(shape, pad, kwargs):
    from clnn.ops.padding import pad as clnn_pad
    compare(lambda L, x: (TF.pad if L is torch else clnn_pad)(x, pad, **kwargs), floats(*shape))


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_pad_long_rows(mode, monkeypatch):
    """A few long rows, of which a work-item does a piece: the ends fill one and more, or part of one."""
    monkeypatch.setattr(importlib.import_module("clnn.ops.padding"), "_SPAN", 16)
    x = np.arange(2 * 53, dtype=np.float32).reshape(1, 2, 53)
    for pad in ((3, 0), (0, 37), (40, 20)):
        got = clnn.nn.functional.pad(clnn.tensor(x), pad, mode=mode).numpy()
        np.testing.assert_array_equal(got, np.pad(x, ((0, 0), (0, 0), pad), dict(replicate="edge", circular="wrap").get(mode, mode)))


# -- searching --------------------------------------------------------------------------------------------------------------------------------
SEARCH = {
    "nonzero": lambda L: L.tensor(ints(2, 3, 4)).nonzero(), "nonzero tuple": lambda L: L.nonzero(L.tensor(ints(2, 3, 4)), as_tuple=True),
    "nonzero 0-d": lambda L: L.tensor(A(3)).nonzero(), "nonzero empty": lambda L: L.zeros(0, 3).nonzero(),
    "argwhere": lambda L: L.argwhere(L.tensor(ints(2, 5))),
    "nonzero long": lambda L: L.tensor(ints(3, 70000) == 0).nonzero(), "where": lambda L: L.where(L.tensor(ints(2, 3, 4) == 1)),
    "unique": lambda L: L.unique(L.tensor(ints(5, 4, 6))),
    "unique all": lambda L: L.unique(L.tensor(ints(5, 4, 6)), return_inverse=True, return_counts=True),
    "unique many": lambda L: L.unique(L.tensor(ints(5, 5000)), return_inverse=True, return_counts=True),
    "unique few floats": lambda L: L.unique(L.tensor(A([2.0, np.nan, 0.0, -0.0, np.nan])), return_inverse=True, return_counts=True),
    "unique dim": lambda L: L.unique(L.tensor(ints(2, 9, 3)), dim=0, return_inverse=True, return_counts=True),
    "unique dim 1": lambda L: L.unique(L.tensor(ints(2, 2, 9, 2)), dim=1, return_inverse=True, return_counts=True),
    "unique float": lambda L: L.unique(L.tensor(A([2.0, -0.0, 0.0, np.inf, 2.0]))), "unique empty": lambda L: L.unique(L.zeros(0)),
    "consecutive": lambda L: L.unique_consecutive(L.tensor(A([1, 1, 2, 2, 1, 3])), return_inverse=True, return_counts=True),
    "consecutive dim": lambda L: L.unique_consecutive(L.tensor(A([[1, 1], [1, 1], [2, 1]])), dim=0, return_counts=True),
    "searchsorted": lambda L: L.searchsorted(L.tensor(A([1., 3., 3., 7.])), L.tensor(A([[3., 6.], [0., np.nan]]))),
    "searchsorted right": lambda L: L.searchsorted(L.tensor(A([1, 3, 3, 7])), L.tensor(A([3, 8])), right=True, out_int32=True),
    "searchsorted rows": lambda L: L.searchsorted(L.tensor(A([[1, 3, 5], [2, 4, 6]])), L.tensor(A([[3, 4], [3, 7]])), side="right"),
    "searchsorted number": lambda L: L.searchsorted(L.tensor(A([1., 3., 5.])), 4.0),
    "searchsorted sorter": lambda L: L.searchsorted(L.tensor(A([3., 1., 5.])), L.tensor(A([2.0])), sorter=L.tensor(A([1, 0, 2]))),
    "bucketize": lambda L: L.bucketize(L.tensor(A([[3, 6, 9], [3, 6, 9]])), L.tensor(A([1, 3, 5, 7, 9]))),
    "bincount": lambda L: L.bincount(L.tensor(A([4, 3, 6, 3, 4]))), "bincount long": lambda L: L.tensor(ints(9, 3000)).bincount(minlength=20),
    "bincount many": lambda L: L.tensor(ints(9, 5000)).bincount(minlength=3),
    "bincount weights": lambda L: L.bincount(L.tensor(A([4, 3, 3])), L.tensor(A([0.5, 1.0, 2.0]))),
    "bincount empty": lambda L: L.bincount(L.tensor(A([], np.int64))),
    "histc": lambda L: L.histc(L.tensor(A([1., 2, 1, np.nan, 3, 4, 0])), 4, 0, 3),
    "histc auto": lambda L: L.histc(L.tensor(floats(1000).astype(np.float32)), 10),
    "histc on edges": lambda L: L.histc(L.arange(-20, 21) / 10, 40, -2, 2), "histogram on edges": lambda L: L.histogram(L.arange(-20, 21) / 10, 40, range=(-2., 2.)),
    "isin": lambda L: L.isin(L.tensor(ints(9, 3, 4)), L.tensor(A([1, 2, 8]))),
    "isin invert": lambda L: L.isin(L.tensor(ints(9, 3, 4)), 3, invert=True),
}


@pytest.mark.parametrize("name", SEARCH)
def test_search(name):
    compare(SEARCH[name])


def test_one_hot():
    from clnn.ops.searching import one_hot
    compare(lambda L, x: (one_hot if L is clnn else TF.one_hot)(x), ints(5, 2, 3))
    compare(lambda L, x: (one_hot if L is clnn else TF.one_hot)(x, 7), ints(5, 6))


# -- the algorithms for other devices, and equal bits ------------------------------------------------------------------------------------------
@pytest.fixture
def gpu_style(monkeypatch):
    from clnn.ops import _scatter
    monkeypatch.setattr(_scatter, "force", "gpu")


@pytest.mark.parametrize("name", [n for n in CALLS if "scatter" in n or "index_" in n or "put" in n])
def test_gpu_algorithms(gpu_style, name):
    call, *arrays = CALLS[name]
    compare(call, *arrays)


def test_algorithms_agree_to_the_bit(monkeypatch):
    from clnn.ops import _scatter
    index, src = ints(50, 5000), floats(5000, 3).astype(np.float32)
    results = []
    for force in ("cpu", "gpu"):
        monkeypatch.setattr(_scatter, "force", force)
        x = clnn.zeros(50, 3)
        i, s = clnn.tensor(index), clnn.tensor(src)
        wide = i.unsqueeze(1).expand(5000, 3)
        results.append([t.numpy().tobytes() for t in (x.index_add(0, i, s), x.scatter_add(0, wide, s), x.index_put((i,), s), x.scatter(0, wide, s))])
    assert results[0] == results[1]
    last = np.zeros((50, 3), np.float32)
    last[index] = src
    assert results[0][2] == last.tobytes()


@pytest.mark.parametrize("D, shape", [(50, (70001,)), (9000, (72001,)), (40, (9000, 20))], ids=str)
def test_many_elements_for_few_destinations(D, shape):
    """Folded in chunks on CPUs, the same bits every time."""
    rng = np.random.default_rng(3)
    index, src, start = rng.integers(0, D, shape[0]), np.round(rng.standard_normal(shape) * 20), np.round(rng.standard_normal((D, *shape[1:])) * 9)
    src[5], src[77] = np.nan, np.inf
    wide = np.broadcast_to(index.reshape(-1, *[1] * (len(shape) - 1)), shape).copy()
    for dtype in ("float32", "int64"):
        o, s = (np.nan_to_num(v, posinf=9).astype(dtype) if dtype == "int64" else v.astype(dtype) for v in (start, src))
        compare(lambda L, o, i, s: o.index_add(0, i, s), o, index, s, grad=False)
        compare(lambda L, o, i, s: o.scatter_reduce(0, i, s, "amax"), o, wide, s, grad=False)
        compare(lambda L, o, i, s: o.index_put((i - D,), s, True), o, index, s, grad=False)
    with pytest.raises(IndexError):
        clnn.zeros(5).index_add(0, clnn.full((70000,), 5), clnn.ones(70000)).numpy()


def test_double_gradient():
    def call(lib):
        x = lib.tensor(floats(4, 3), requires_grad=True)
        i = lib.tensor(A([0, 2, 0]))
        y = (x[i] ** 3).sum() + (x.gather(1, lib.tensor(A([[0, 0]]))) ** 2).sum() + (x[1:3, ::2] ** 3).sum() + (lib.cat([x, x[1:]]) ** 3).sum()
        y = y + (x.scatter_add(0, lib.tensor(ints(4, 5, 3)), lib.ones(5, 3, dtype=lib.float64)) ** 3).sum()
        g, = lib.autograd.grad(y, x, create_graph=True)
        return host(lib.autograd.grad((g ** 2).sum(), x)[0])
    same(call(clnn), call(torch), 1e-9)


def test_index_tensor_that_changes_is_noticed():
    x, i = clnn.ones(3, requires_grad=True), clnn.tensor([0, 1])
    y = x[i]
    i.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_meta():
    x = clnn.zeros(3, 4, device="meta")
    with warnings.catch_warnings():
        assert x[1:, [0, 2]].shape == (2, 2)
        assert clnn.cat([x, x]).shape == (6, 4)


@pytest.mark.parametrize("shape, rows", [((2, 7, 11), 5), ((300, 20), 400)], ids=str)
def test_gather_in_blocks_of_columns(monkeypatch, shape, rows):
    from clnn._tensor import repeat
    from clnn.ops import _scatter
    monkeypatch.setattr(repeat, "on", False)
    monkeypatch.setattr(_scatter, "_COLUMNS", 4)
    monkeypatch.setattr(_scatter, "_CACHE", 0)
    dim = len(shape) - 2
    a, i = floats(*shape), ints(shape[dim], *shape[:dim], rows, shape[-1])
    same(host(clnn.tensor(a).gather(dim, clnn.tensor(i))), host(torch.tensor(a).gather(dim, torch.tensor(i))))


def test_an_index_of_rank_0_selects_a_view():
    def call(L):
        x = L.arange(12.).reshape(3, 4).requires_grad_()
        y = x * 1
        y[L.tensor(1)].zero_()
        y[:, L.tensor(2, dtype=L.int32)].add_(3)
        y[np.array(2)].mul_(2)
        y[..., L.tensor(-1), None].neg_()
        y[L.tensor(0)] += 1
        y[L.tensor(2), 1:] *= y[L.tensor(2), :1] - 3
        (y * y).sum().backward()
        return y.detach(), x.grad, y[L.tensor(0)]._is_view(), y[L.tensor(True)]._is_view()
    (mine, gradient, *views), (theirs, wanted, *known) = call(clnn), call(torch)
    same(host(mine), host(theirs))
    same(host(gradient), host(wanted))
    assert views == known
    assert clnn.vmap(lambda r, i: r[i])(clnn.arange(6).reshape(2, 3), clnn.tensor([1, 2])).tolist() == [1, 5]
    with pytest.raises(IndexError, match="index 5 is out of bounds for dimension 0 with size 3"):
        clnn.zeros(3)[clnn.tensor(5)]


@pytest.mark.parametrize("force", ["cpu", "gpu"])
@pytest.mark.parametrize("write", ["y[i] = 1", "y.index_add_(0, i, v)", "y.index_copy_(0, i, v)", "y.index_fill_(0, i, 3)", "y[i, 1] = 2"])
def test_a_write_outside_leaves_what_is_inside(write, force, monkeypatch):
    from clnn.ops import _scatter
    monkeypatch.setattr(_scatter, "force", force)
    for rows in (2, 40000):                 # few, and so many that parts of them fold by themselves
        y, i, v = clnn.zeros(4, 3), clnn.full((rows,), 9), clnn.ones(rows, 3)
        with pytest.raises((IndexError, RuntimeError)):
            exec(write, dict(y=y, i=i, v=v))
            y.numpy()
        assert not y.numpy().any()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_sums_into_turned_tensors(dtype):
    """What sums are added to may lie in any order in memory, in dtypes that are added in float32, too."""
    rng = np.random.default_rng(0)
    x, y, index = rng.integers(-5, 6, (3, 7, 4)), rng.integers(-5, 6, (3, 4, 7)), rng.integers(0, 3, (3, 4, 7))
    a = clnn.tensor(x, dtype=getattr(clnn, dtype)).transpose(1, 2)
    b, i = clnn.tensor(y, dtype=a.dtype), clnn.tensor(index)
    turned = x.transpose(0, 2, 1)
    want = turned.copy()
    np.add.at(want, (index, *np.ix_(range(3), range(4), range(7))[1:]), y)
    np.testing.assert_array_equal(a.scatter_add(0, i, b).float().numpy(), want)
    want = turned.copy()
    np.add.at(want, [2, 0, 2], y)
    np.testing.assert_array_equal(a.index_add(0, clnn.tensor([2, 0, 2]), b).float().numpy(), want)
    np.testing.assert_array_equal(a.index_put((clnn.tensor([2, 0, 2]),), b, accumulate=True).float().numpy(), want)


@pytest.mark.parametrize("shape", [(2, 40, 33), (300, 70), (5, 16)])
def test_scattered_columns(shape):
    """Columns are worked on in memory of their own where there are enough of them; the same elements, and the same error."""
    rng = np.random.default_rng(0)
    x, src, index = rng.standard_normal(shape).astype("f"), rng.standard_normal(shape).astype("f"), rng.integers(0, shape[-2], shape)
    added, largest = x.copy(), x.copy()
    places = list(np.indices(shape))
    places[-2] = index
    np.add.at(added, tuple(places), src)
    np.maximum.at(largest, tuple(places), src)
    X, S, at = clnn.tensor(x), clnn.tensor(src), clnn.tensor(index)
    np.testing.assert_allclose(X.scatter_add(-2, at, S).numpy(), added, atol=1e-5)
    np.testing.assert_array_equal(X.scatter_reduce(-2, at, S, "amax").numpy(), largest)
    with pytest.raises(RuntimeError, match="out of bounds"):
        X.scatter_add(-2, at + shape[-2], S).sum().item()
