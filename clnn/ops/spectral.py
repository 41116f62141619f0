"""Short-time Fourier transforms: spectra of overlapping windows of a signal, and back."""
from __future__ import annotations

import math

import numpy as np

from .._tensor.declare import composite
from ..core import dtype as dt
from ..core.warn import warn
from ..graph.op import REGISTRY
from . import creation
from .complexes import complex_
from .fold import fold
from .fourier import fft_c2c, fft_c2r, fft_r2c
from .padding import constant_pad
from .selection import cast

_OWN_WINDOW = "To suppress this warning and use a rectangular window, explicitly set `window=torch.ones(n_fft, device=<device>)`."


def _window(name, x, n_fft, win_length, window):
    """The window in the middle of ``n_fft`` values; ones where none was given."""
    if window is None:
        window = creation.ones(win_length, dtype=x.dtype.to_real(), device=x._storage.device)
    if len(window.shape) != 1 or window.shape[0] != win_length:
        raise RuntimeError(f"{name}: expected a 1D window tensor of size equal to win_length={win_length}, but got window with size {list(window.shape)}")
    left = (n_fft - win_length) // 2
    return window if win_length == n_fft else constant_pad(window, [left, n_fft - win_length - left])


def _lengths(name, n_fft, hop_length, win_length, most=None):
    hop, win = n_fft // 4 if hop_length is None else hop_length, n_fft if win_length is None else win_length
    if n_fft <= 0 or most is not None and n_fft > most:
        raise RuntimeError(f"{name}: expected 0 < n_fft < {most}, but got n_fft={n_fft}")
    if hop <= 0:
        raise RuntimeError(f"{name}: expected hop_length > 0, but got hop_length={hop}")
    if not 0 < win <= n_fft:
        raise RuntimeError(f"{name}: expected 0 < win_length <= n_fft, but got win_length={win}")
    return hop, win


def _signal(n=40):
    return np.random.default_rng(0).standard_normal((2, n))


_HANN = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(16) / 16)


@composite("stft", repeat="ready small", complex=True, dtypes=(dt.float32, dt.float64), samples=lambda: [
    ((_signal(), 16), dict(hop_length=4, window=_HANN, return_complex=True)), ((_signal()[0], 16), dict(return_complex=False, normalized=True, onesided=False)),
    ((_signal(), 16), dict(hop_length=5, win_length=12, window=_HANN[:12], center=False, return_complex=True))],
    errors=[((np.ones(9, "f"), 4), {}, RuntimeError, "stft requires the return_complex parameter be given for real inputs"),
            ((np.ones(3, "f"), 4), dict(center=False, return_complex=True), RuntimeError, "expected 0 < n_fft < 3")])
def stft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect", normalized=False, onesided=None, return_complex=None,
         align_to_window=None):
    """Spectra of windows of a signal: ``X[f, t] = sum over k of window[k] input[t hop + k] exp(-2 pi i k f / n_fft)``.

    Args:
        input: signals, (L) or (B, L).
        n_fft: length of the transforms.
        hop_length: distance of windows (n_fft // 4).
        win_length: length of the window (n_fft), which is put in the middle of n_fft values.
        window: (win_length), ones by default.
        center: pad the signal by n_fft // 2 at both ends, as ``pad_mode`` says, so that window t is centred on element t hop.
        normalized: divide by the square root of n_fft.
        onesided: only the first n_fft // 2 + 1 frequencies (the default for real signals).
        return_complex: complex results (B, F, T); False: real ones (B, F, T, 2).

    Raises:
        RuntimeError: lengths that do not fit each other, a window of another length, ``return_complex`` not given for a real signal.

    Example:
        >>> clnn.stft(clnn.ones(32), 8, window=clnn.hann_window(8), return_complex=True).shape
        clnn.Size([5, 17])
    """
    window_complex = window is not None and window.dtype.is_complex
    if return_complex is None:
        if not input.dtype.is_complex and not window_complex:
            raise RuntimeError("stft requires the return_complex parameter be given for real inputs, and will further require that return_complex=True in a "
                               "future PyTorch release.")
        return_complex = True
    if window is None:
        warn("A window was not provided. A rectangular window will be applied,which is known to cause spectral leakage. Other windows such as torch.hann_window "
             "or torch.hamming_window are recommended to reduce spectral leakage." + _OWN_WINDOW)
    if not return_complex:
        warn("stft with return_complex=False is deprecated. In a future pytorch release, stft will return complex tensors for all inputs.")
    if len(input.shape) not in (1, 2):
        raise RuntimeError(f"stft: expected a 1D or 2D tensor, but got {len(input.shape)}D")
    x = input if len(input.shape) == 2 else input.unsqueeze(0)
    if center:
        half = n_fft // 2
        if pad_mode == "constant":
            x = constant_pad(x, [half, half])
        else:
            x = REGISTRY["pad"].fn(x.unsqueeze(0), (half, half), pad_mode).squeeze(0)
    hop, win = _lengths("stft", n_fft, hop_length, win_length, x.shape[-1])
    frames = x.unfold(-1, n_fft, hop) * _window("stft", x, n_fft, win, window)
    scale = 1.0 / math.sqrt(n_fft) if normalized else 1.0
    if onesided is None:
        onesided = not frames.dtype.is_complex
    if onesided and frames.dtype.is_complex:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    r = fft_r2c(frames, 2, scale) if onesided else fft_c2c(cast(frames, dt.complex_of(frames.dtype)), 2, False, scale)
    r = r.transpose(1, 2)
    r = r if len(input.shape) == 2 else r.squeeze(0)
    return r if return_complex else REGISTRY["view_as_real"].fn(r)


def _spectrum():
    z = np.fft.rfft(np.lib.stride_tricks.sliding_window_view(_signal(44), 16, axis=-1)[:, ::4]).astype(np.complex64)
    return np.swapaxes(z, 1, 2).copy()


def _overlapped(frames, n_fft, hop, length):
    """Windows (B, T, n_fft) added up where they lie: (B, length)."""
    if frames.dtype.is_complex:
        return complex_(_overlapped(frames.real, n_fft, hop, length), _overlapped(frames.imag, n_fft, hop, length))
    columns = frames.transpose(1, 2)
    return fold(columns, (1, length), (1, n_fft), stride=(1, hop)).reshape(columns.shape[0], length)


@composite("istft", complex=True, samples=lambda: [((_spectrum(), 16), dict(hop_length=4)), ((_spectrum()[0], 16), dict(hop_length=4, length=24)),
                                                    ((_spectrum(), 16), dict(hop_length=4, center=False, normalized=True))],
           errors=[((np.ones((5, 3), "f"), 8), {}, RuntimeError, "istft requires a complex-valued input tensor")])
def istft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False, onesided=None, length=None, return_complex=False):
    """The signal whose :func:`stft` comes closest to ``input`` (Griffin & Lim, 1984): windows added up, divided by the sum of their squares.

    Args:
        input: complex spectra, (F, T) or (B, F, T).
        length: elements of the signal; by default all that windows reach (without the padding of ``center``).
        return_complex: a complex signal, from all n_fft frequencies.

    Raises:
        RuntimeError: real input, a number of frequencies that does not fit ``n_fft``, or windows that leave gaps.

    Example:
        >>> w, x = clnn.hann_window(8), clnn.arange(16.)
        >>> bool(clnn.allclose(clnn.istft(clnn.stft(x, 8, window=w, return_complex=True), 8, window=w), x, atol=1e-4))
        True
    """
    if window is None:
        warn("A window was not provided. A rectangular window will be applied.Please provide the same window used by stft to make the inversion lossless."
             + _OWN_WINDOW)
    if not input.dtype.is_complex:
        raise RuntimeError("istft requires a complex-valued input tensor matching the output from stft with return_complex=True.")
    if len(input.shape) not in (2, 3):
        raise RuntimeError(f"istft: expected a tensor with 2 or 3 dimensions, but got {len(input.shape)}")
    x = input if len(input.shape) == 3 else input.unsqueeze(0)
    hop, win = _lengths("istft", n_fft, hop_length, win_length)
    onesided = x.shape[1] != n_fft if onesided is None else onesided
    if x.shape[1] != (n_fft // 2 + 1 if onesided else n_fft):
        raise RuntimeError(f"istft: expected the frequency dimension (3rd to the last) of the input tensor to match n_fft "
                           f"{'/ 2 + 1 when onesided=True' if onesided else 'when onesided=False'}, but got {x.shape[1]}")
    if return_complex and onesided:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    window = _window("istft", x, n_fft, win, window)
    x, scale = x.transpose(1, 2), 1.0 / math.sqrt(n_fft) if normalized else 1.0 / n_fft
    frames = fft_c2c(x, 2, True, scale) if return_complex else fft_c2r(x.narrow(2, 0, n_fft // 2 + 1), 2, n_fft, scale)
    count = frames.shape[1]
    reach = n_fft + hop * (count - 1)
    y = _overlapped(frames * window, n_fft, hop, reach)
    weight = _overlapped((window * window).expand(1, count, n_fft), n_fft, hop, reach)
    start = n_fft // 2 if center else 0
    end = reach - start if length is None else min(start + length, reach)
    y, weight = y[:, start:end], weight[:, start:end]
    if bool((weight.abs() < 1e-11).any()):
        raise RuntimeError(f"window overlap add min: 1, {weight.abs().min().item()}: the windows leave gaps of zeros (istft)")
    y = y / weight
    if length is not None and end - start < length:
        warn("The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. Please check your center and hop_length "
             "settings.")
        y = constant_pad(y, [0, length - (end - start)])
    return y if len(input.shape) == 3 else y.squeeze(0)
