"""A whole recurrent layer as one operator: per time step one product with the hidden weights and one cell kernel.

The input part of the gates comes in ready for all steps. Backward walks the steps in reverse; the gradients of the weights are one product over
all steps at the end. Hochreiter & Schmidhuber, "Long short-term memory", 1997; Cho et al., 2014 (GRU).
"""
from __future__ import annotations

from .._tensor.declare import kernel
from .._tensor.dispatch import run
from .._tensor.tensor import empty, make_view
from ..core.shape import Size, contiguous_strides
from ..graph.op import REGISTRY
from ._gemm import gemm
from .creation import filled
from .matmul import _linear2d, mm


def _decompose(gates, h0, c0, weight, bias, mode, reverse):
    h, c, outs, cells = h0, c0, [], []
    steps = gates.unbind(0)
    for x in reversed(steps) if reverse else steps:
        u = _linear2d(h, weight, bias)
        if mode == "lstm":
            i, f, g, o = (x + u).chunk(4, -1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            cells.append(c)
        elif mode == "gru":
            (xr, xz, xn), (ur, uz, un) = x.chunk(3, -1), u.chunk(3, -1)
            z = (xz + uz).sigmoid()
            n = (xn + (xr + ur).sigmoid() * un).tanh()
            h = n + z * (h - n)
        else:
            h = (x + u).tanh() if mode == "tanh" else (x + u).relu()
        outs.append(h)
    y = REGISTRY["stack"].fn(outs[::-1] if reverse else outs)
    return (y, c) if mode == "lstm" else (y, None)


def _shape_of(device, rows, H):
    if device.loops:
        return dict(LOOP=1), (rows,), (1,)
    return dict(LOOP=0), (H, rows), (64 if H >= 64 else 16, 1)


def _at(t, step):
    """Step ``step`` of a dense (T, N, X) tensor, without the bookkeeping of a view operator."""
    n = t.shape[1] * t.shape[2]
    return t._storage.buf, step * n


def _grad(g, gates, h0, c0, weight, bias, mode, reverse, y, c, act, cells):
    return _recurrent_backward(g[0], g[1], h0, c0, weight, bias, mode, reverse, y, act, cells)


@kernel("_recurrent", method=False, outputs=("y", "c", "act", "cells"), public=2, decompose=_decompose, autocast="low",
        vjp={"gates, h0, c0, weight, bias": _grad})
def _recurrent(gates, h0, c0, weight, bias, mode, reverse):
    """``gates`` (T, N, K*H): input part with its biases; ``h0``, ``c0`` (N, H); ``weight`` (K*H, H); ``bias`` (K*H,) or None (gru).

    Returns the outputs of all steps (T, N, H) and the last cell state (lstm).
    """
    T, N, KH = gates.shape
    H, device, dtype = weight.shape[1], gates._storage.device, gates.dtype
    lstm, gru = mode == "lstm", mode == "gru"
    gates, h0, flat = gates.contiguous(), h0.contiguous(), weight.t().contiguous()
    for t in (gates, h0, flat):
        t._storage.buffer()
    y = empty(Size((T, N, H)), dtype, device)
    act = empty(Size((T, N, 4 * H if gru else KH)), dtype, device)
    cells = empty(Size((T, N, H)), dtype, device) if lstm else y
    hidden = empty(Size((N, KH)), dtype, device) if gru else act
    c0 = c0.contiguous() if lstm else h0
    c0._storage.buffer()
    if gru and bias is not None:
        bias = bias.contiguous()
        bias._storage.buffer()
    if not gru:
        device.copy(gates._storage.buf, act._storage.buf, gates._numel * dtype.itemsize, gates._offset * dtype.itemsize)
    form, gs, ls = _shape_of(device, N, H)
    h, c = (h0._storage.buf, h0._offset), (c0._storage.buf, c0._offset)
    for step in range(T - 1, -1, -1) if reverse else range(T):
        target = (hidden._storage.buf, 0) if gru else _at(act, step)
        gemm(device, dtype, N, KH, H, *h, (H, 1), flat._storage.buf, 0, (KH, 1), *target, KH, beta=0.0 if gru else 1.0,
             bias=None if not gru or bias is None else (bias._storage.buf, bias._offset))
        pre = (gates._storage.buf, gates._offset + step * N * KH)
        out, cell = _at(y, step), _at(cells, step)
        run(device, "recurrent/forward", dict(T=dtype, MODE=mode, **form), gs, ls, *pre, *_at(act, step), *target, *h, *c, *out, *cell, N, H)
        h, c = out, cell
    last = None
    if lstm:
        last = _slice(cells, 0 if reverse else T - 1)
    return y, last, act, cells


def _slice(t, step):
    shape = Size(t.shape[1:])
    v = make_view(t, shape, contiguous_strides(shape), step * t.shape[1] * t.shape[2])
    v._base, v._view_version = None, 0
    return v._snapshot()


def _before(first, y, reverse):
    """The state before each step: ``first``, then the outputs of the steps that came earlier."""
    first = first.unsqueeze(0)
    cat = REGISTRY["cat"].fn
    return cat([y[1:], first], 0) if reverse else cat([first, y[:-1]], 0)


@kernel("_recurrent_backward", method=False, outputs=("dgates", "dh0", "dc0", "dweight", "dbias"), public=5)
def _recurrent_backward(dy, dc, h0, c0, weight, bias, mode, reverse, y, act, cells):
    """Gradients of everything that :func:`_recurrent` reads."""
    T, N, H = y.shape
    KH, device, dtype = weight.shape[0], y._storage.device, y.dtype
    lstm, gru = mode == "lstm", mode == "gru"
    zeros = filled(Size((N, H)), 0, dtype, device)
    dy = (filled(y.shape, 0, dtype, device) if dy is None else dy).contiguous()
    h0, weight = h0.contiguous(), weight.contiguous()
    c0 = c0.contiguous() if lstm else h0
    carry = ((dc if dc is not None else zeros) + 0 if lstm else zeros + 0).contiguous()
    dh = zeros + 0
    for t in (dy, h0, c0, weight, carry, dh):
        t._storage.buffer()
    dgates = empty(Size((T, N, KH)), dtype, device)
    dhidden = empty(Size((T, N, KH)), dtype, device) if gru else dgates
    form, gs, ls = _shape_of(device, N, H)
    order = range(T) if reverse else range(T - 1, -1, -1)
    first = T - 1 if reverse else 0
    for step in order:
        earlier = step + 1 if reverse else step - 1
        h = (h0._storage.buf, h0._offset) if step == first else _at(y, earlier)
        c = (c0._storage.buf, c0._offset) if step == first else _at(cells, earlier)
        run(device, "recurrent/backward", dict(T=dtype, MODE=mode, **form), gs, ls, *_at(act, step), *_at(y, step), *h, *c, *_at(cells, step),
            dy._storage.buf, dy._offset + step * N * H, dh._storage.buf, 0, carry._storage.buf, carry._offset, *_at(dgates, step),
            *_at(dhidden, step), N, H)
        gemm(device, dtype, N, H, KH, *_at(dhidden, step), (KH, 1), weight._storage.buf, weight._offset, (H, 1), dh._storage.buf, 0, H,
             beta=1.0 if gru else 0.0)
    flat = dhidden.reshape(T * N, KH)
    dweight = mm(flat.t(), _before(h0, y, reverse).reshape(T * N, H))
    dbias = flat.sum(0) if bias is not None else None
    return dgates, dh, carry if lstm else None, dweight, dbias

