"""Fourier transforms against NumPy and PyTorch: lengths, dimensions, norms, gradients, and programs that use them."""
import numpy as np
import pytest

import clnn
from clnn.testing import cases

from test_complex import both, numbers

RNG = np.random.default_rng(1)
FP64 = clnn.float64 in cases.usable_rows()


def reals(*shape):
    return RNG.standard_normal(shape).astype("f")


def near(got, want, tolerance=2e-6):
    got = got.numpy()
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * max(1e-3, float(np.abs(want).max(initial=0))))


# Single factors, several passes, primes (Bluestein), lengths in two steps of which one is a lonely row on CPUs.
@pytest.mark.share(2)
@pytest.mark.parametrize("n", [1, 2, 7, 17, 60, 97, 256, 384, 691, 1000, 1031])
def test_lengths(n):
    x = numbers(3, n)
    near(clnn.fft.fft(clnn.tensor(x)), np.fft.fft(x))
    near(clnn.fft.ifft(clnn.tensor(x)), np.fft.ifft(x))
    half = clnn.fft.rfft(clnn.tensor(x.real.copy()))
    near(half, np.fft.rfft(x.real))
    real = half.numpy()[:, [0, -1] if n % 2 == 0 else [0]].imag
    assert not real.any() and not np.signbit(real).any(), "an angle of pi, never -pi"
    near(clnn.fft.irfft(half, n=n), x.real)
    near(clnn.fft.fft(clnn.tensor(x.real.copy())), np.fft.fft(x.real))


@pytest.mark.share(2)
@pytest.mark.parametrize("n", [12, 34])
@pytest.mark.parametrize("inner", [16, 17, 33, 300])
def test_sequences_side_by_side(n, inner):
    """As many as fill vectors, and more: the last vectors of a work-item overlap, and work-items share long rows. 34 is a convolution."""
    x = numbers(2, n, inner)
    near(clnn.fft.fft(clnn.tensor(x), dim=1), np.fft.fft(x, axis=1))
    near(clnn.fft.ifft(clnn.tensor(x), dim=1), np.fft.ifft(x, axis=1))
    half = clnn.fft.rfft(clnn.tensor(x.real.copy()), dim=1)
    near(half, np.fft.rfft(x.real, axis=1))
    near(clnn.fft.irfft(half, n=n, dim=1), x.real)


def test_work_groups_that_share_sequences(monkeypatch):
    """As on GPUs: several work-items to a sequence, and convolutions of lengths with larger primes."""
    device = clnn.zeros(1)._storage.device
    monkeypatch.setattr(device, "is_cpu", False)
    for n in (12, 17, 34, 691, 1000, 2048):
        x = numbers(5, n)
        near(clnn.fft.fft(clnn.tensor(x)), np.fft.fft(x))
        near(clnn.fft.ifft(clnn.tensor(x)), np.fft.ifft(x))
        near(clnn.fft.rfft(clnn.tensor(x.real.copy())), np.fft.rfft(x.real))
        near(clnn.fft.irfft(clnn.tensor(x), n=n), np.fft.irfft(x, n=n))


def test_long_rows():
    """More than two steps, by a small limit; the last one in another order. Long rows of reals as pairs, from an odd place in memory, too."""
    from clnn.ops import fourier
    x = numbers(2, 360)
    limit = fourier.limit_of
    fourier.limit_of = lambda device, row: 8
    try:
        near(clnn.fft.fft(clnn.tensor(x)), np.fft.fft(x))
        near(clnn.fft.ifft(clnn.tensor(x.T.copy()), dim=0), np.fft.ifft(x.T, axis=0))
        half = clnn.fft.rfft(clnn.tensor(x.real.copy()))
        near(clnn.fft.irfft(half), x.real)
        assert not np.signbit(half.numpy()[:, [0, -1]].imag).any()
        near(clnn.fft.fft(clnn.tensor(x.real.copy())), np.fft.fft(x.real))
        near(clnn.fft.rfft(clnn.tensor(x[0].real.copy())[1:199]), np.fft.rfft(x[0].real[1:199]))
    finally:
        fourier.limit_of = limit


@pytest.mark.parametrize("shape, dim", [((20, 16), 0), ((2, 16, 33), 1), ((2, 3, 16), -1), ((16,), 0), ((0, 16), 1)])
def test_dimensions(shape, dim):
    x = numbers(*shape)
    want = np.fft.fft(x, axis=dim) if x.size else x
    near(clnn.fft.fft(clnn.tensor(x), dim=dim), want)
    near(clnn.fft.fft(clnn.tensor(x.T.copy()).permute(*reversed(range(len(shape)))), dim=dim), want)
    assert clnn.fft.rfft(clnn.tensor(x.real.copy()), dim=dim).shape[dim] == shape[dim] // 2 + 1


@pytest.mark.parametrize("dim", [0, 1])
def test_many_sequences(dim):
    """Whole vectors of sequences and a rest, side by side and as rows; real ones as half as many pairs."""
    x = numbers(*((37, 12), (12, 48))[1 - dim])
    t, r = clnn.tensor(x), clnn.tensor(x.real.copy())
    near(clnn.fft.fft(t, dim=dim), np.fft.fft(x, axis=dim))
    near(clnn.fft.fft(r, dim=dim), np.fft.fft(x.real, axis=dim))
    near(clnn.fft.rfft(r, dim=dim), np.fft.rfft(x.real, axis=dim))
    near(clnn.fft.irfft(t, n=12, dim=dim), np.fft.irfft(x, n=12, axis=dim))


@pytest.mark.skipif(not FP64, reason="needs fp64")
def test_double():
    x = numbers(3, 60).astype(np.complex128)
    got = clnn.fft.fft(clnn.tensor(x))
    assert got.dtype is clnn.complex128
    near(got, np.fft.fft(x), 1e-14)
    near(clnn.fft.irfft(clnn.fft.rfft(clnn.tensor(x.real.copy()))), x.real, 1e-14)
    near(clnn.fft.fft(clnn.tensor(np.tile(x.real, (6, 1)))), np.fft.fft(np.tile(x.real, (6, 1))), 1e-14)
    t = clnn.tensor(x[0, :6], requires_grad=True)
    assert clnn.autograd.gradcheck(lambda a: clnn.fft.irfft(clnn.fft.fft(a), n=7), t) and clnn.autograd.gradgradcheck(lambda a: clnn.fft.fft(a).abs(), t)


@pytest.mark.share(2)
@pytest.mark.parametrize("norm", [None, "forward", "ortho"])
def test_norms_and_gradients(norm):
    for name in ("fft", "ifft", "irfft", "hfft"):
        both(lambda m, a: getattr(m.fft, name)(a, n=7, dim=0, norm=norm), numbers(6, 3))       # noqa: B023
    for name in ("rfft", "ihfft", "fft", "ifft"):
        both(lambda m, a: getattr(m.fft, name)(a, n=7, dim=0, norm=norm), reals(6, 3))         # noqa: B023
    for name in ("fft2", "ifftn", "irfft2", "hfftn"):
        both(lambda m, a: getattr(m.fft, name)(a, s=(5, 9), dim=(0, 2), norm=norm), numbers(3, 2, 8))      # noqa: B023
    for name in ("rfft2", "ihfftn"):
        both(lambda m, a: getattr(m.fft, name)(a, norm=norm), reals(5, 7))                     # noqa: B023


def test_frequencies_and_order():
    np.testing.assert_allclose(clnn.fft.fftfreq(5, 0.5).numpy(), np.fft.fftfreq(5, 0.5).astype("f"))
    np.testing.assert_allclose(clnn.fft.rfftfreq(6).numpy(), np.fft.rfftfreq(6).astype("f"))
    x = np.arange(15).reshape(3, 5)
    for dim in (None, 1, (0, 1)):
        assert np.array_equal(clnn.fft.fftshift(clnn.tensor(x), dim).numpy(), np.fft.fftshift(x, dim))
        assert np.array_equal(clnn.fft.ifftshift(clnn.fft.fftshift(clnn.tensor(x), dim), dim).numpy(), x)


def test_errors():
    x = clnn.ones(3)
    for fn, text in ((lambda: clnn.fft.rfft(x * 1j), "expects a real input"), (lambda: clnn.fft.fft(x, n=0), "Invalid number of data points"),
                     (lambda: clnn.fft.fft(x, norm="no"), "Invalid normalization mode"), (lambda: clnn.fft.fftn(x, s=(2, 2)), "only has 1 dimensions"),
                     (lambda: clnn.fft.fft(x.half()), "Unsupported dtype"),
                     (lambda: clnn.istft(clnn.zeros(3, 2, dtype=clnn.cfloat), 4, window=clnn.zeros(4)), "window overlap add min")):
        with pytest.raises(RuntimeError, match=text):
            fn()
    with pytest.raises(IndexError, match="out of range"):
        clnn.fft.fft2(x)


# -- programs -----------------------------------------------------------------------------------------------------------------------------
def test_fourier_mixing():
    both(lambda m, a: m.fft.fft(m.fft.fft(a, dim=-1), dim=-2).real, reals(2, 6, 8))


def test_fourier_neural_operator():
    """A spectral convolution: the lowest frequencies times complex weights."""
    def layer(m, x, w):
        spectrum = m.fft.rfft2(x)
        out = m.zeros(2, 3, 8, 5, dtype=m.cfloat)
        out[:, :, :3, :3] = m.einsum("bixy,ioxy->boxy", spectrum[:, :, :3, :3], w)
        return m.fft.irfft2(out, s=(8, 8))
    both(layer, reals(2, 4, 8, 8), numbers(4, 3, 3, 3))


def test_long_convolution():
    """The convolution of state-space models, by transforms of twice the length."""
    both(lambda m, u, k: m.fft.irfft(m.fft.rfft(u, n=24) * m.fft.rfft(k, n=24), n=24)[..., :12], reals(2, 3, 12), reals(3, 12))


def test_spectral_loss():
    pytest.importorskip("torch")

    def loss(m, a, b):
        w = m.hann_window(16)
        return (m.stft(a, 16, window=w, return_complex=True).abs() - m.stft(b, 16, window=w, return_complex=True).abs()).abs().mean()
    both(loss, reals(2, 50), reals(2, 50))


def test_spectra_warn():
    with pytest.warns(UserWarning, match="window was not provided.*known to cause"):
        spectra = clnn.stft(clnn.ones(2, 64), 16, return_complex=True)
    with pytest.warns(UserWarning, match="window was not provided.*make the inversion lossless"):
        clnn.istft(spectra, 16)
    with pytest.warns(UserWarning, match="return_complex=False is deprecated"):
        clnn.stft(clnn.ones(2, 64), 16, window=clnn.hann_window(16), return_complex=False)


def test_signals_come_back():
    x, w = clnn.tensor(reals(2, 64)), clnn.hann_window(16)
    assert clnn.allclose(clnn.istft(clnn.stft(x, 16, 4, window=w, return_complex=True), 16, 4, window=w), x, atol=1e-5)


@pytest.mark.parametrize("normalization", [0, 1, 2])
def test_native_transforms(normalization):
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(0).standard_normal((3, 4, 5)).astype(np.float32)

    def transforms(lib):
        native, t = lib.ops.aten, lib.tensor(x)
        half = native._fft_r2c(t, [0, 2], normalization, True)
        return [half, native._fft_r2c(t, [1], normalization, False), native._fft_c2c(half, [1, 0], normalization, True),
                native._fft_c2c(half, [0], normalization, False), native._fft_c2r(half, [0, 2], normalization, 5)]
    for got, want in zip(transforms(clnn), transforms(torch)):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-4, atol=1e-4)
