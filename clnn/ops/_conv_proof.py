"""Convolutions by whose results a device shows that its tensor cores compute them rightly (see :mod:`._gemm_tensor`)."""
from __future__ import annotations

import numpy as np

from ._conv import conv_backward_input, conv_forward
from ._conv_weight import conv_backward_weight

# (input, weight, padding): steps and pixels that allow wide loads, and that do not.
CASES = (((2, 40, 8, 10), (72, 40, 3, 3), 1), ((2, 33, 9, 11), (70, 33, 3, 2), 0), ((3, 64, 8, 8), (64, 64, 1, 1), 0))


def results(device, T):
    """(what the device computes, what is right) of convolutions and both their gradients, one after the other. All sums are exact in float."""
    rng, got, want = np.random.default_rng(1), [], []
    for x_shape, w_shape, pad in CASES:
        x, w = rng.integers(-2, 3, x_shape), rng.integers(-2, 3, w_shape)
        padded = np.pad(x, [(0, 0), (0, 0), (pad, pad), (pad, pad)])
        H, W = (padded.shape[2 + a] - w_shape[2 + a] + 1 for a in (0, 1))
        y, dx, dw = np.zeros((x_shape[0], w_shape[0], H, W), int), np.zeros_like(padded), np.zeros_like(w)
        g = rng.integers(-2, 3, y.shape)
        for i, j in np.ndindex(*w_shape[2:]):
            at = (slice(None), slice(None), slice(i, i + H), slice(j, j + W))
            y += np.einsum("nchw,oc->nohw", padded[at], w[:, :, i, j])
            dx[at] += np.einsum("nohw,oc->nchw", g, w[:, :, i, j])
            dw[:, :, i, j] = np.einsum("nohw,nchw->oc", g, padded[at])
        right = y, dx[:, :, pad:pad + x_shape[2], pad:pad + x_shape[3]], dw
        X, V, G, *out = [_buffer(device, T, a) for a in (x, w, g, *[np.zeros(r.shape) for r in right])]
        rest = ((1, 1), (pad, pad), (1, 1), 1)
        conv_forward(device, T, X, 0, x_shape, V, 0, w_shape, out[0], 0, *rest)
        conv_backward_input(device, T, G, 0, V, 0, out[1], 0, x_shape, w_shape, *rest)
        conv_backward_weight(device, T, X, 0, G, 0, out[2], 0, x_shape, w_shape, *rest)
        got += [device.read(buf, r.size * T.itemsize).view(T.np) for buf, r in zip(out, right)]
        want += [r.astype(T.np).reshape(-1) for r in right]
    return np.concatenate(got), np.concatenate(want)


def _buffer(device, T, values):
    buf = device.alloc(values.size * T.itemsize)
    device.write(buf, np.ascontiguousarray(values.astype(T.np)))
    return buf
