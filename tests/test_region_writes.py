"""Writes to parts of a tensor by number or slice: random sequences of them do what NumPy does, and nothing that was read before changes."""
import numpy as np
import pytest

import clnn
from clnn.runtime import sharing
from clnn.runtime.device import default_device


def index_of(rng, shape):
    """A tuple of ints and slices for an array of that shape, one for each of its first dimensions."""
    parts = []
    for n in shape[:rng.integers(1, len(shape) + 1)]:
        if rng.random() < 0.5:
            parts.append(int(rng.integers(-n, n)))
        else:
            start = int(rng.integers(0, n))
            parts.append(slice(start, int(rng.integers(start, n)) + 1, int(rng.integers(1, 3))))
    return tuple(parts) if len(parts) > 1 or rng.random() < 0.5 else parts[0]


def write(rng, x, a):
    """The same change of a tensor and of an array."""
    if rng.random() < 0.3:
        x, a = x[1:], a[1:]
    if rng.random() < 0.3:
        x, a = x.transpose(0, 1), a.swapaxes(0, 1)
    at = index_of(rng, a.shape)
    shape, kind = np.shape(a[at]), rng.integers(6)
    if kind == 0:
        value = float(rng.integers(-9, 9))
        x[at], a[at] = value, value
    elif kind == 1:
        value = int(rng.integers(-9, 9))
        x[at], a[at] = value, value
    elif kind == 2:
        value = rng.integers(-9, 9, shape).astype(np.float32)
        x[at], a[at] = clnn.tensor(value), value
    elif kind == 3 and shape:
        value = rng.integers(-9, 9, shape).astype(np.float32)
        x[at].copy_(clnn.tensor(value) + 1)
        a[at] = value + 1
    elif kind == 4:
        x[at].zero_()
        a[at] = 0
    else:
        x[at] += 2
        a[at] += 2


@pytest.mark.parametrize("seed", range(12))
def test_as_numpy(seed):
    rng = np.random.default_rng(seed)
    a = rng.integers(-9, 9, (5, 4, 3)).astype(np.float32)
    x = clnn.tensor(a)
    kept = []
    for n in range(60):
        if rng.random() < 0.4:                              # what was read stays as it was, computed or not, sharing memory or not
            how = rng.integers(5)
            got = x * 2 if how == 0 else x.clone() if how == 1 else x.sum(1) if how == 2 else x[2] + 0.5 if how == 3 else x.detach().clone() * 1
            want = a * 2 if how == 0 else a.copy() if how == 1 else a.sum(1) if how == 2 else a[2] + 0.5 if how == 3 else a.copy()
            kept.append((got, want))
        before = x._version
        write(rng, x, a)
        assert x._version > before
        if rng.random() < 0.2:
            assert np.array_equal(x.numpy().copy(), a)
    assert np.array_equal(x.numpy(), a)
    for got, want in kept:
        assert np.array_equal(got.numpy(), want)


@pytest.mark.parametrize("dtype", [clnn.float32, clnn.float16, clnn.bfloat16, clnn.int64, clnn.int8, clnn.bool, clnn.float64])
def test_numbers_of_each_dtype(dtype):
    x = clnn.zeros(4, 6, dtype=dtype)
    for _ in range(3):
        x[1, 2], x[2, 1:3], x[3] = 1, True, 0
        x[0, ::2] = clnn.ones(3, dtype=dtype)
    assert x.long().tolist() == [[1, 0, 1, 0, 1, 0], [0, 0, 1, 0, 0, 0], [0, 1, 1, 0, 0, 0], [0] * 6]
    if dtype in (clnn.int8,):
        with pytest.raises(RuntimeError, match="without overflow"):
            x[0, 0] = 300
    if not dtype.is_floating_point:
        x[1, 1] = 1.75
        assert x[1, 1].item() == 1


def test_history_is_kept():
    w = clnn.ones(3, 3, requires_grad=True)
    x = w * 2
    y = x.square()
    x2 = x.clone()
    x2[0] = clnn.zeros(3)
    x2[1, 1] = 5.
    (x2.sum() + y.sum()).backward()
    assert w.grad.tolist() == [[8., 8., 8.], [10., 8., 10.], [10., 10., 10.]]
    x = w * 2
    y = x.square()
    x[2] = 0.
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    plain = clnn.zeros(2, 3)
    plain[1] = w[0] * 3
    plain[0, 0] = 1.
    assert plain.requires_grad and plain.tolist() == [[1., 0., 0.], [3., 3., 3.]]
    data = clnn.zeros(4)
    used = w[0, 0] * data
    data[1] = 2.
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        used.sum().backward()
    with pytest.raises(RuntimeError, match="leaf"):
        w[0] = 1.
    with clnn.no_grad():
        w[0] = 7.
    assert w[0].tolist() == [7., 7., 7.]


def test_aliases_see_it_and_copies_do_not():
    x = clnn.zeros(3, 4)
    view, flat, copy, same = x[1], x.view(-1), x.clone(), x.detach()
    for n in range(1, 6):
        x[1, 2] = n
        x[2] = clnn.full((4,), 0.5 * n)
        assert view.tolist() == [0, 0, n, 0] and flat[6].item() == n and same[2].tolist() == [0.5 * n] * 4 and not copy.any()
    x[0] = x[1]
    x[1:] = x[:2].clone()
    assert x.tolist() == [[0, 0, 5, 0]] * 3


def recurrence(t, kept):
    """Writes whose value is still to be computed from other parts of the same memory, some of them kept and read later."""
    x = t.arange(40.).view(8, 5) / 8
    for i in range(1, 8):
        x[i] = x[i - 1] * 0.5 + x[i]                    # just that region and another
        x[i, 2] = x[i - 1, 2] - x[i, 1]
        x[i, 1:4] = x[i, 0:3] * 2                       # overlaps: as it was before
        v = x[i - 1] + 1
        w = v * x[i]
        x[i] -= w
        x[0, i % 5] = v[0] + x[7, 4]
        x[7] = x[i]
        x[i - 1] = 3.                                   # read by v and w
        kept += [v, w, x[i] * x[i - 1], x.clone()[i]]
        x[i] += x[i]
        x[i] = x[i] + kept[-1]
        kept.append(x[2:4].sum() if i % 2 else x[i].clone())
    return [x, *kept]


def test_of_other_parts():
    """As NumPy does, where nothing is put off."""
    class arrays:
        arange = staticmethod(lambda n: np.arange(n, dtype=np.float32).view(Viewed))
    for got, want in zip(recurrence(clnn, []), recurrence(arrays, [])):
        assert np.array_equal(got.numpy(), want)


class Viewed(np.ndarray):
    view = lambda self, *shape: self.reshape(shape) if len(shape) > 1 else np.ndarray.view(self, *shape)
    clone = np.ndarray.copy


def test_in_recordings():
    buffer = clnn.zeros(4, 3)

    @clnn.compile
    def step(v):
        buffer[1] = v
        buffer[2, 0] = 4.
        buffer[3].zero_()
        return buffer.sum()
    for n in range(6):
        buffer[3] = 1.
        assert step(clnn.full((3,), float(n))).item() == 3 * n + 4
        assert buffer.tolist() == [[0, 0, 0], [n] * 3, [4, 0, 0], [0] * 3]


@pytest.mark.skipif(not sharing.able(default_device()), reason="this device's memory is its own")
def test_of_shared_memory():
    a = np.zeros((3, 4), np.float32)
    x = clnn.from_numpy(a)
    for n in range(5):
        x[1] = n + 1
        x[2, 1:3] = clnn.tensor([n, -n])
        assert a[1].tolist() == [n + 1] * 4 and a[2].tolist() == [0, n, -n, 0]
        a[0, 0] = n
        assert x[0, 0].item() == n


def test_errors():
    x = clnn.zeros(3, 4)
    for at in (3, -4, (0, 4), (0, 0, 0)):
        with pytest.raises(IndexError):
            x[at] = 1.
    with pytest.raises(RuntimeError):
        x[0] = clnn.zeros(3)
    with clnn.inference_mode():
        frozen = clnn.zeros(3, 2)
        frozen[0] = 1.
    with pytest.raises(RuntimeError, match="inference"):
        frozen[1] = 1.
    x[0:0] = 5.
    assert not x.any()


def same_error(call):
    """Both packages raise the same, in the same words."""
    raised = []
    for package in (clnn, pytest.importorskip("torch")):
        with pytest.raises(Exception) as info:
            call(package)
        raised.append((info.type, str(info.value)))
    assert raised[0] == raised[1]


def test_values_that_are_no_numbers():
    for value in (np.arange(2), [4, 5], (1,), None, "a", np.float32(1), np.bool_(True), np.complex64(1), type("Own", (), {})(), 1 << 70):
        for index in (1, [0, 2], slice(0, 1)):
            same_error(lambda t: t.zeros(3, 2).__setitem__(index, value))
    for data in ([1, [2]], [1., [2]], [[1], 2], [1, (2,)], [[1, 2], [3, [4]]], [[1], [2, 3]]):
        same_error(lambda t: t.tensor(data))
    same_error(lambda t: t.tensor(1.).chunk(2))
    same_error(lambda t: t.zeros(3).index_put_((t.tensor([0]),), 1))


def test_parts_of_itself():
    """What only looks like an overlap, where dimensions of size 1 have other strides, is none; NumPy's numbers are looked for as Python's are."""
    x = clnn.arange(3.).view(1, 3)
    x[0::1] = x[-1]
    x[0] = x
    assert x.tolist() == [[0., 1., 2.]] and x._version == 2
    x[:, 3:] = clnn.ones(1)
    assert x._version == 3
    assert np.int64(2) in x and np.float32(5) not in x
    y = clnn.ones(2, 3, requires_grad=True) * 1
    assert type(y[:].grad_fn).__name__ == "SliceBackward0" and type(y[:, :].grad_fn).__name__ == "AliasBackward0"
    assert type(clnn.zeros(2).copy_(y[0, :2]).grad_fn).__name__ == "CopyBackwards"


def random_index(rng, shape):
    """(an index for NumPy, the same of tensors) of one of the kinds that the host reads and writes itself where it can."""
    kind, d = rng.integers(4), int(rng.integers(len(shape)))
    if kind == 0:
        found = [rng.permutation(shape[d])[:max(1, shape[d] // 2)] - (rng.integers(2) and shape[d])]
        return (*[slice(None)] * d, *found), (*[slice(None)] * d, *map(clnn.tensor, found))
    if kind == 1:
        flat = rng.permutation(int(np.prod(shape)))[:3]
        found = np.unravel_index(flat, shape)
        return found, tuple(clnn.tensor(i) for i in found)
    if kind == 2:
        mask = rng.random(shape[:d + 1]) < 0.5
        return mask, clnn.tensor(mask)
    score = rng.standard_normal(shape).astype(np.float32)
    return score > 0, clnn.tensor(score) > 0                            # pending


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "uint8"])
def test_few_elements_by_index(dtype):
    rng = np.random.default_rng(5)
    for turn in range(150):
        shape = tuple(int(n) for n in rng.integers(1, 7, rng.integers(1, 4)))
        a = (rng.standard_normal(shape) * 3).astype(dtype)
        x = clnn.tensor(a)
        base, copy, later = x, x.clone(), x == 0
        whole, before = a, a.copy()
        if turn % 3 == 0 and shape[0] > 1:
            x, a = x[1:], a[1:]
        if turn % 4 == 0 and x.ndim > 1:
            x, a = x.transpose(0, 1), a.swapaxes(0, 1)
        at, index = random_index(rng, a.shape)
        want = a[at]
        got = x[index]
        assert tuple(got.shape) == want.shape and np.array_equal(got.numpy(), want)
        new = [np.asarray(want * 0 == 0).astype(dtype), np.array(1, dtype), True if dtype == "bool" else 2][turn % 3]
        a[at] = new
        x[index] = clnn.tensor(new) if isinstance(new, np.ndarray) else new
        assert np.array_equal(x.numpy(), a) and np.array_equal(base.numpy(), whole)
        assert np.array_equal(copy.numpy(), before) and np.array_equal(later.numpy(), before == 0)
        assert base._version == (want.size > 0) or want.size == 0


def test_few_elements_of_what_has_a_history():
    w, i, m = clnn.arange(6.).requires_grad_(), clnn.tensor([4, 1, 4]), clnn.tensor([True, False] * 3)
    (w[i].sum() + 2 * w[m].sum()).backward()
    assert w.grad.tolist() == [2, 1, 2, 0, 4, 0]
    with pytest.raises(RuntimeError, match="leaf"):
        w[m] = 0
    y = clnn.ones(6, requires_grad=True)
    x = clnn.arange(6.)
    z = y * x
    x[i] = -1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    with clnn.no_grad():
        w[m] = clnn.tensor(9.)
    assert w.tolist() == [9, 1, 9, 3, 9, 5]
    x = clnn.zeros(6)
    x[i] = y[:3] * 2
    x.sum().backward()
    assert y.grad.tolist() == [2, 2, 2, 0, 0, 0]


def test_few_elements_beyond_the_end():
    x = clnn.arange(6.).view(3, 2)
    for wrong in (clnn.tensor([0, 3]), clnn.tensor([-4])):
        with pytest.raises(IndexError):
            x[wrong].tolist()
        with pytest.raises(IndexError):
            x[wrong] = 0
            x.tolist()
    with pytest.raises(IndexError, match="mask"):
        x[clnn.tensor([True, False])]
