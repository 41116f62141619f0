"""Complex numbers beyond what the derived checks of ``test_ops.py`` prove: views and writes through them, programs, optimizers, files, refusals."""
import cmath
import copy
import io
import pickle

import numpy as np
import pytest

import clnn
from clnn import nn
from clnn.testing import cases

RNG = np.random.default_rng(0)
FP64 = clnn.float64 in cases.usable_rows()


def numbers(*shape):
    return (RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)).astype(np.complex64)


def both(fn, *arrays, rtol=1e-4):
    """``fn(module, *tensors)`` in clnn and PyTorch: results and the gradients of a weighted sum agree."""
    torch = pytest.importorskip("torch")
    results = []
    for module in (clnn, torch):
        leaves = [module.tensor(a, requires_grad=True) if a.dtype.kind in "fc" else module.tensor(a) for a in arrays]
        out = fn(module, *leaves)
        weight = np.linspace(-1, 1, int(np.prod(out.shape)), dtype=np.float32).reshape(tuple(out.shape))
        loss = (out * module.tensor(weight * (1 - 0.5j) if out.is_complex() else weight)).real.sum()
        loss.backward()
        results.append([out.detach(), *[t.grad for t in leaves if t.requires_grad]])
    for mine, theirs in zip(*results):
        theirs = theirs.resolve_conj().numpy()
        assert mine.dtype.np == theirs.dtype
        np.testing.assert_allclose(mine.numpy(), theirs, rtol=rtol, atol=rtol * max(1e-3, float(np.abs(theirs).max())))


# -- making and showing ---------------------------------------------------------------------------------------------------------------
def test_creation_and_promotion():
    assert clnn.tensor([1 + 2j]).dtype is clnn.complex64 and clnn.tensor(1j).item() == 1j
    assert clnn.zeros(2, dtype=clnn.cfloat).tolist() == [0j, 0j] and clnn.full((2,), 1j).tolist() == [1j, 1j]
    assert (clnn.ones(2) * 1j).dtype is clnn.complex64 and (clnn.ones(2, dtype=clnn.int64) + 1j).dtype is clnn.complex64
    assert clnn.promote_types(clnn.complex64, clnn.float64) is clnn.complex128 and clnn.result_type(clnn.ones(1), 1j) is clnn.complex64
    assert clnn.complex64.is_complex and not clnn.complex64.is_floating_point and clnn.is_complex(clnn.tensor(1j)) and clnn.complex64.to_real() is clnn.float32
    assert complex(clnn.tensor(2 - 1j)) == 2 - 1j and float(clnn.tensor(2 + 0j)) == 2.0 and bool(clnn.tensor(1j))
    z = clnn.randn(5000, dtype=clnn.complex64)
    assert abs(z.abs().square().mean().item() - 1) < 0.1 and abs(z.real.mean().item()) < 0.1


def test_printing():
    torch = pytest.importorskip("torch")
    for values in ([1 + 2j, 3 - 4j, 0], [1.5 + 2e-9j, 1e10j], [[1j, -2.25], [float("nan"), -1j]], 2j):
        assert repr(clnn.tensor(values)) == repr(torch.tensor(values))


def test_errors():
    for fn, kind, text in ((lambda: clnn.zeros(2).add_(1j), RuntimeError, "result type ComplexFloat can't be cast"),
                           (lambda: clnn.zeros(2).fill_(1j), RuntimeError, "cannot be converted"),
                           (lambda: float(clnn.tensor(1j)), RuntimeError, "cannot be converted"),
                           (lambda: clnn.tensor(1j, dtype=clnn.float32), TypeError, "must be real number"),
                           (lambda: clnn.tensor([1j]) < 1, NotImplementedError, "not implemented for 'ComplexFloat'"),
                           (lambda: nn.functional.softmax(clnn.tensor([1j]), 0), NotImplementedError, "not implemented for 'ComplexFloat'"),
                           (lambda: nn.LayerNorm(2)(clnn.tensor([1j, 2])), NotImplementedError, "not implemented for 'ComplexFloat'"),
                           (lambda: clnn.tensor([1j]).sort(), RuntimeError, "Sort does not support complex dtypes"),
                           (lambda: clnn.tensor(1j, requires_grad=True).backward(), RuntimeError, "only for real scalar outputs")):
        with pytest.raises(kind, match=text):
            fn()
    with pytest.warns(UserWarning, match="discards the imaginary part"):
        assert clnn.tensor([1 + 2j]).to(clnn.float32).tolist() == [1.0]


# -- parts are views --------------------------------------------------------------------------------------------------------------------
def test_parts_share_memory():
    z = clnn.tensor([1 + 2j, 3 - 4j])
    z.real[0] = 7
    z.imag = clnn.tensor([0.5, 0.25])
    assert z.tolist() == [7 + 0.5j, 3 + 0.25j] and z.real.data_ptr() == z.data_ptr()
    pairs = clnn.view_as_real(z)
    pairs[1] *= 2
    assert z.tolist() == [7 + 0.5j, 6 + 0.5j] and clnn.equal(clnn.view_as_complex(pairs), z)
    x = clnn.arange(4.0)
    clnn.view_as_complex(x.view(2, 2)).mul_(1j)
    assert x.tolist() == [-1.0, 0.0, -3.0, 2.0] and x.view(clnn.complex64).tolist() == [-1, -3 + 2j] and z.view(clnn.float32).shape == (4,)


def test_writes_through_parts_have_gradients():
    def in_place(m, a):
        b = a * 1
        b.real.mul_(3)
        b.imag = b.real * 2
        b[0] = 1j
        b[1, 1] *= 2
        return b

    def through_pairs(m, a):
        b = a * 1
        c = m.view_as_complex(b)
        c *= 2j
        c[0] = 1
        return b
    both(in_place, numbers(4, 5))
    both(through_pairs, RNG.standard_normal((4, 5, 2)).astype("f"))


def test_indexed_writes():
    def write(m, a):
        b = a * 1
        b[m.tensor([0, 1])] = 2j
        b[:, 1] = b[:, 0] * 1j
        b[b.abs() > 2] = 0
        b[m.tensor([3]), m.tensor([2])] = a[0, 0]
        return m.cat([b, b[m.tensor([1, 1])].real])
    both(write, numbers(4, 5))


@pytest.mark.skipif(not FP64, reason="needs fp64")
def test_gradcheck():
    x = clnn.tensor(numbers(3).astype(np.complex128), requires_grad=True)
    assert clnn.autograd.gradcheck(lambda a: (a.exp() * a.abs()).sum(), x) and clnn.autograd.gradcheck(lambda a: a.tanh() / a.conj(), x)
    assert clnn.autograd.gradgradcheck(lambda a: (a * a.conj()).real.sum(), x)


@pytest.mark.parametrize("name", ["mul", "div", "sqrt", "abs", "exp", "log", "tanh"])
def test_extreme_values(name):
    """Nothing overflows or vanishes on the way to a result that can be shown."""
    z = np.array([1e30 + 2e30j, 3e-30 - 4e-30j, 1e-5 + 88.0j, 88.5 + 1e-3j, -50 + 1j, 1 + 1e-6j, 1e30, -1e-30j, 0], np.complex64)
    with np.errstate(all="ignore"):
        wide = z.astype(np.complex128)
        want = dict(mul=lambda: wide * (0.5 - 2j), div=lambda: np.divide(1, wide, out=np.full_like(wide, np.nan), where=wide != 0), sqrt=lambda: np.sqrt(wide),
                    abs=lambda: np.abs(wide), exp=lambda: np.exp(wide), log=lambda: np.log(wide), tanh=lambda: np.tanh(wide))[name]()
        shown = np.isfinite(want) & (np.abs(want) < 1e38)
    t = clnn.tensor(z)
    got = (t * (0.5 - 2j) if name == "mul" else 1 / t if name == "div" else getattr(t, name)()).numpy()
    np.testing.assert_allclose(got[shown], want[shown], rtol=1e-5)


# -- programs ---------------------------------------------------------------------------------------------------------------------------
def test_rotary_embedding():
    """The rotary embedding of Llama's reference code."""
    def rotate(m, q):
        freqs = 1.0 / (10000.0 ** (m.arange(0, 8, 2)[:4].float() / 8))
        freqs = m.outer(m.arange(6), freqs).float()
        turns = m.polar(m.ones_like(freqs), freqs)
        x = m.view_as_complex(q.float().reshape(*q.shape[:-1], -1, 2))
        return m.view_as_real(x * turns.view(1, 6, 1, 4)).flatten(3).type_as(q)
    both(rotate, RNG.standard_normal((2, 6, 3, 8)).astype("f"))


def test_products():
    both(lambda m, a, w: m.einsum("bixy,ioxy->boxy", a, w), numbers(2, 3, 4, 5), numbers(3, 2, 4, 5))
    both(lambda m, a, w, b: m.nn.functional.linear(a, w, b), numbers(2, 4, 5), numbers(3, 5), numbers(3))
    both(lambda m, a: a @ a.mH, numbers(2, 3, 4))
    both(lambda m, a: m.frobenius_norm(a, (-2, -1)), numbers(2, 3, 4))


@pytest.mark.parametrize("name, options", [("SGD", dict(lr=0.01, momentum=0.9)), ("Adam", dict(lr=0.1)), ("AdamW", dict(lr=0.1, amsgrad=True))])
def test_optimizers(name, options):
    torch = pytest.importorskip("torch")
    start, ends = numbers(4), []
    for module in (clnn, torch):
        p = module.nn.Parameter(module.tensor(start))
        optimizer = getattr(module.optim, name)([p], **options)
        for _ in range(3):
            optimizer.zero_grad()
            ((p * p - 1j).abs() ** 2).sum().backward()
            optimizer.step()
        ends.append(p.detach().numpy())
    np.testing.assert_allclose(*ends, atol=1e-5)


@pytest.mark.parametrize("name", ["sqrt", "sin", "cosh", "tanh", "atan", "asinh"])
def test_parts_without_bounds(name):
    torch = pytest.importorskip("torch")
    inf, nan = float("inf"), float("nan")
    values = [complex(*z) for z in ((inf, 1), (-inf, 1), (0, inf), (0, -inf), (nan, 0), (1, inf), (inf, 0), (0, 1e30 if name != "sin" else 1))]
    want = [getattr(torch.tensor(z, dtype=torch.complex64), name)().item() for z in values]             # one by one: vectors of PyTorch differ from these
    got = getattr(clnn.tensor(values, dtype=clnn.complex64), name)().tolist()
    for z, a, b in zip(values, got, want):
        if not (cmath.isnan(z) and name in ("atan", "asinh")):
            np.testing.assert_allclose([a.real, a.imag], [b.real, b.imag], rtol=1e-5, atol=1e-20, err_msg=str(z))


def test_what_counts_as_a_conjugate():
    torch = pytest.importorskip("torch")

    def marks(t):
        x = t.tensor([[1 + 2j, 3j]])
        y = x.conj()
        made = [y, y[0], y.t(), y.detach(), y.contiguous(), y.conj(), y.clone(), y * 1, y.resolve_conj(), x.mH,
                x.adjoint(), x, t.ones(2).conj(), x.conj_physical(), y.imag, y.real]
        return [(r.is_conj(), r.is_neg()) for r in made] + [t.is_conj(y), t.is_neg(y.imag), y.imag.resolve_neg().is_neg(), t.view_as_real(y.resolve_conj()).tolist()]
    assert marks(clnn) == marks(torch)


# -- files ------------------------------------------------------------------------------------------------------------------------------
def test_files(tmp_path):
    state = dict(w=clnn.tensor(numbers(2, 3)).t(), n=2 + 3j)
    clnn.save(state, tmp_path / "state.pt")
    back = clnn.load(tmp_path / "state.pt")
    assert clnn.equal(back["w"], state["w"]) and back["n"] == 2 + 3j
    clnn.serialization.save_safetensors(dict(w=state["w"]), tmp_path / "w.safetensors")
    assert clnn.equal(clnn.serialization.load_safetensors(tmp_path / "w.safetensors")["w"], state["w"])
    p = nn.Parameter(state["w"].clone())
    assert clnn.equal(copy.deepcopy(p), p) and clnn.equal(pickle.loads(pickle.dumps(p)), p)
    torch = pytest.importorskip("torch")
    assert np.array_equal(torch.load(tmp_path / "state.pt")["w"].numpy(), state["w"].numpy())
    stream = io.BytesIO()
    torch.save(dict(w=torch.tensor([1j]), dtype=torch.complex64), stream)
    stream.seek(0)
    loaded = clnn.load(stream)
    assert loaded["w"].tolist() == [1j] and loaded["dtype"] is clnn.complex64
