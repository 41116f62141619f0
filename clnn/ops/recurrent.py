"""A whole recurrent layer as one operator: one launch for all steps on CPUs, and on GPUs (`_recurrent_gpu`) unless one product and one cell kernel per step are faster.

The input part of the gates comes in ready for all steps. Backward walks the steps in reverse; the gradients of the weights are one product over
all steps at the end. Hochreiter & Schmidhuber, "Long short-term memory", 1997; Cho et al., 2014 (GRU).
"""
from __future__ import annotations

import functools
import itertools

import numpy as np

from .._tensor.declare import kernel
from .._tensor.dispatch import plain, run
from .._tensor.grad_mode import state
from .._tensor.repeat import repeated
from .._tensor.tensor import empty, make_view
from ..core import dtype as dt
from ..core.shape import Size, contiguous_strides
from ..graph.op import REGISTRY
from . import _recurrent_gpu
from ._attention import padded
from ._conv import _words8
from ._gemm import gemm
from .creation import filled, tensor
from .matmul import _linear2d, mm, product


def _composed_cell(x, u, h, c, mode):
    """One step from the input part ``x`` and the hidden part ``u`` of the gates, of differentiable operators: (h, c)."""
    if mode == "lstm":
        i, f, g, o = (x + u).chunk(4, -1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c
    if mode == "gru":
        (xr, xz, xn), (ur, uz, un) = x.chunk(3, -1), u.chunk(3, -1)
        z = (xz + uz).sigmoid()
        n = (xn + (xr + ur).sigmoid() * un).tanh()
        return n + z * (h - n), c
    return (x + u).tanh() if mode == "tanh" else (x + u).relu(), c


def _cell_alone(gates, hidden, before, mode):
    return _composed_cell(gates, hidden, before, before, mode)


def cell(gates, hidden, before, mode):
    """One step of a cell: (h, c) for lstm, (h, None) for gru.

    Args:
        gates, hidden: input and hidden part of the gates, (*, K*H), with their biases.
        before: what passes by the weights, (*, H): c of lstm, h of gru.
    """
    shape, dtype = gates.shape, gates.dtype
    fits = shape == hidden.shape and before.shape[:-1] == shape[:-1] and hidden.dtype is dtype is before.dtype and dtype.is_floating_point
    return _cell(gates, hidden, before, mode) if fits and gates._numel else _cell_alone(gates, hidden, before, mode)


@repeated
def _cell_grad(g, before, mode, h, c, act):
    return _gate_grads(g, before, mode, h, c, act)


def _gate_grads(g, before, mode, h, c, act):
    """The gradients of the input part and the hidden part of the gates, and of what passes by the weights."""
    H, device, dtype, lstm = h.shape[-1], h._storage.device, h.dtype, mode == "lstm"
    shape = (*h.shape[:-1], (4 if lstm else 3 if mode == "gru" else 1) * H)
    gh = (filled(h.shape, 0, dtype, device) if g[0] is None else g[0]).contiguous()
    gc = g[1].contiguous() if lstm and g[1] is not None else None
    dgates, dbefore = empty(shape, dtype, device), empty(h.shape, dtype, device)
    dhidden = dgates if lstm else empty(shape, dtype, device)
    before, rows = before.contiguous(), h._numel // H
    form, gs, ls = _shape_of(device, rows, H)
    run(device, "recurrent/backward", dict(T=dtype, MODE=mode, ONE=1, GC=int(gc is not None), **form), gs, ls, act, h, before, before,
        c if lstm else h, gh, dbefore, gh if gc is None else gc, dbefore, dgates, dhidden, rows, H)
    return dgates, dhidden, dbefore


@kernel("_cell", method=False, repeat=True, outputs=("h", "c", "act"), public=2, decompose=_cell_alone, vjp={"gates, hidden, before": _cell_grad})
def _cell(gates, hidden, before, mode):
    return _gated(gates, hidden, before, mode)


def _gated(gates, hidden, before, mode):
    """(h, c or None, what the gradients need)."""
    H, device, dtype, lstm = before.shape[-1], gates._storage.device, gates.dtype, mode == "lstm"
    h, act = empty(before.shape, dtype, device), empty((*before.shape[:-1], 4 * H), dtype, device)
    c = empty(before.shape, dtype, device) if lstm else None
    before, rows = before.contiguous(), h._numel // H
    form, gs, ls = _shape_of(device, rows, H)
    run(device, "recurrent/forward", dict(T=dtype, MODE=mode, **form), gs, ls, gates.contiguous(), act, hidden.contiguous(), before, before,
        h, c if lstm else h, rows, H)
    return h, c, act


def _step_alone(input, hx, before, weight_ih, weight_hh, bias_ih, bias_hh, mode):
    gates, hidden = _linear2d(input, weight_ih, bias_ih), _linear2d(hx, weight_hh, bias_hh)
    return _composed_cell(gates, hidden, hx, hx if before is None else before, mode)


@functools.partial(repeated, mode="whole")
def _step_grads(g, input, hx, before, weight_ih, weight_hh, mode, needs, h, c, act):
    dgates, dhidden, dbefore = _gate_grads(g, hx if before is None else before, mode, h, c, act)
    dhx = product(dhidden, weight_hh) if needs[1] else None
    return (product(dgates, weight_ih) if needs[0] else None, dhx if dhx is None or before is not None else dhx + dbefore,
            dbefore if before is not None else None, product(dgates.t(), input) if needs[3] else None, product(dhidden.t(), hx) if needs[4] else None,
            dgates.sum(0) if needs[5] else None, dhidden.sum(0) if needs[6] else None)


@kernel("_cell_step", method=False, repeat="whole", outputs=("h", "c", "act"), public=2, decompose=_step_alone,
        vjp={"input, hx, before, weight_ih, weight_hh, bias_ih, bias_hh": _step_grads})
def _cell_step(input, hx, before, weight_ih, weight_hh, bias_ih, bias_hh, mode):
    """A whole step of a cell as one entry of the tape: (h, c). ``before`` is c of lstm, None for gru, whose h passes by the weights."""
    return _gated(_linear2d(input, weight_ih, bias_ih), _linear2d(hx, weight_hh, bias_hh), hx if before is None else before, mode)


def step(input, hx, before, weight_ih, weight_hh, bias_ih, bias_hh, mode):
    """One step of a cell from (N, features) to (h, c), or None where the operands are not alike: then it is made of operators."""
    dtype, device = input.dtype, input._home
    for t in (input, hx, before, weight_ih, weight_hh, bias_ih, bias_hh):
        if t is not None and (t.__class__ not in plain or t.dtype is not dtype or t._storage.device is not device or t._numel == 0):
            return None
    if len(input.shape) != 2 or not dtype.is_floating_point or state.autocast is not None:
        return None
    return _cell_step(input, hx, before, weight_ih, weight_hh, bias_ih, bias_hh, mode)


def _decompose(gates, h0, c0, weight, bias, mode, reverse):
    h, c, outs = h0, c0, []
    steps = gates.unbind(0)
    for x in reversed(steps) if reverse else steps:
        h, c = _composed_cell(x, _linear2d(h, weight, bias), h, c, mode)
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


def _grad(g, gates, h0, c0, weight, bias, mode, reverse, act, cells, kept):
    return _recurrent_backward(g[0], g[1], h0, c0, weight, bias, mode, reverse, kept, act, cells)


@kernel("_recurrent", method=False, repeat="whole", outputs=("y", "c", "act", "cells", "kept"), public=2, decompose=_decompose, autocast="low",
        vjp={"gates, h0, c0, weight, bias": _grad})
def _recurrent(gates, h0, c0, weight, bias, mode, reverse):
    """``gates`` (T, N, K*H): input part with its biases; ``h0``, ``c0`` (N, H); ``weight`` (K*H, H); ``bias`` (K*H,) or None (gru).

    Returns the outputs of all steps (T, N, H) and the last cell state (lstm).
    """
    T, N, KH = gates.shape
    H, device, dtype = weight.shape[1], gates._storage.device, gates.dtype
    lstm, gru = mode == "lstm", mode == "gru"
    gates, h0 = gates.contiguous(), h0.contiguous()
    c0 = c0.contiguous() if lstm else h0
    bias = None if bias is None else bias.contiguous()
    y = empty(Size((T, N, H)), dtype, device)
    cells = empty(Size((T, N, H)), dtype, device) if lstm else y
    act = empty(Size((T, N, 4 * H if gru or lstm else 0)), dtype, device)
    operands = (gates, h0, c0, weight, bias, mode, reverse, y, cells, act)
    walk = _recurrent_gpu.plan(device, dtype, mode, T, N, H)
    if walk is not None:
        _recurrent_gpu.forward(walk, *operands)
    else:
        (_layer if _whole(device, dtype, T, N, H) else _steps)(*operands)
    kept = y._snapshot()                    # programs write over the outputs, as nn.ReLU(inplace=True) does
    return y, _slice(cells, 0 if reverse else T - 1) if lstm else None, act, cells if lstm else kept, kept


def _whole(device, dtype, T, N, H):
    """Can a CPU take the sequences through time in one launch?"""
    return device.is_cpu and dtype is dt.float32 and T * N * H > 0


def _width(vectors):
    """Vectors of a register tile: a divisor of those of a row."""
    return next(n for n in (4, 3, 2, 1) if not vectors % n)


def _rows(device, N, NV):
    """(sequences per work-item, rows of a register tile): a share for each unit, of whole tiles where possible."""
    share = -(-N // max(device.compute_units, -(-N // 48)))
    most = {1: 12, 2: 8, 3: 8}.get(NV, 6 if device.wide else 8)
    return share, min((m for m in range(1, most + 1)), key=lambda m: -(-share // m) * (m + 1.5))


def _layer(gates, h0, c0, weight, bias, mode, reverse, y, cells, act, T=0, packed=()):
    """Forward of all steps in one launch. ``packed``: of ``T`` steps that have rows of a packed sequence, where each begins, and the last states."""
    (N, H), KH, device = h0.shape, weight.shape[0], gates._storage.device
    weight = weight.contiguous()
    units, vectors = KH // H, -(-H // 16)
    NV = units if units > 1 else _width(vectors)
    wt = empty(Size((vectors * 16 * units * H,)), weight.dtype, device)
    run(device, "matmul/columns", dict(NK=NV), (vectors if units > 1 else vectors // NV, 1), (1, 1), weight, wt,
        _words8(KH, H, 1, 0, 0, H, 16 if units > 1 else 16 * NV, H if units > 1 else 16))
    share, MR = _rows(device, N, NV)
    run(device, "recurrent/layer", dict(MODE=mode, NV=NV, MR=MR, BIAS=bias is not None, TAIL=H % 16 > 0, PACKED=bool(packed)), (-(-N // share),), (1,),
        gates, wt, h0 if bias is None else bias, h0, c0, y, cells, act, *packed, _words8(T or gates.shape[0], N, H, share, int(reverse)))


def _steps(gates, h0, c0, weight, bias, mode, reverse, y, cells, act):
    """Forward step by step: a product and a cell kernel each."""
    T, N, KH = gates.shape
    H, device, dtype = weight.shape[1], gates._storage.device, gates.dtype
    flat = weight.t().contiguous()
    for t in (gates, h0, c0, flat) + (() if bias is None else (bias,)):
        t._storage.buffer()
    hidden = empty(Size((N, KH)), dtype, device)._storage.buf
    form, gs, ls = _shape_of(device, N, H)
    h, c = (h0._storage.buf, h0._offset), (c0._storage.buf, c0._offset)
    for step in range(T - 1, -1, -1) if reverse else range(T):
        gemm(device, dtype, N, KH, H, *h, (H, 1), flat._storage.buf, 0, (KH, 1), hidden, 0, KH,
             bias=None if bias is None else (bias._storage.buf, bias._offset))
        pre = (gates._storage.buf, gates._offset + step * N * KH)
        out, cell = _at(y, step), _at(cells, step)
        run(device, "recurrent/forward", dict(T=dtype, MODE=mode, **form), gs, ls, *pre, *_at(act, step), hidden, 0, *h, *c, *out, *cell, N, H)
        h, c = out, cell


def _slice(t, step):
    shape = Size(t.shape[1:])
    v = make_view(t, shape, contiguous_strides(shape), step * t.shape[1] * t.shape[2])
    return v._snapshot()


def _before(first, y, reverse):
    """The state before each step: ``first``, then the outputs of the steps that came earlier."""
    first = first.unsqueeze(0)
    cat = REGISTRY["cat"].fn
    return cat([y[1:], first], 0) if reverse else cat([first, y[:-1]], 0)


@kernel("_recurrent_backward", method=False, repeat="whole", outputs=("dgates", "dh0", "dc0", "dweight", "dbias"), public=5)
def _recurrent_backward(dy, dc, h0, c0, weight, bias, mode, reverse, y, act, cells):
    """Gradients of everything that :func:`_recurrent` reads."""
    T, N, H = y.shape
    KH, device, dtype = weight.shape[0], y._storage.device, y.dtype
    lstm, gru = mode == "lstm", mode == "gru"
    dy = (filled(y.shape, 0, dtype, device) if dy is None else dy).contiguous()
    h0, weight = h0.contiguous(), weight.contiguous()
    c0 = c0.contiguous() if lstm else h0
    dgates = empty(Size((T, N, KH)), dtype, device)
    dhidden = empty(Size((T, N, KH)), dtype, device) if gru else dgates
    walk = _recurrent_gpu.plan(device, dtype, mode, T, N, H, back=True)
    if walk is not None:
        dh, carry = empty(h0.shape, dtype, device), empty(h0.shape, dtype, device) if lstm else None
        dlast = dc.contiguous() if lstm and dc is not None else None
        _recurrent_gpu.backward(walk, dy, dlast, h0, c0, weight, mode, reverse, y, act, cells, dgates, dhidden, dh, carry)
    else:
        dh, carry = _walked_back(dy, dc, h0, c0, weight, mode, reverse, y, act, cells, dgates, dhidden)
    flat = dhidden.reshape(T * N, KH)
    dweight = mm(flat.t(), _before(h0, y, reverse).reshape(T * N, H))
    dbias = flat.sum(0) if bias is not None else None
    return dgates, dh, carry if lstm else None, dweight, dbias


def _walked_back(dy, dc, h0, c0, weight, mode, reverse, y, act, cells, dgates, dhidden):
    """(gradient of h0, of c0) on CPUs and step by step; the other gradients are written."""
    (T, N, H), device, dtype = y.shape, y._storage.device, y.dtype
    zeros = filled(Size((N, H)), 0, dtype, device)
    carry = ((dc if dc is not None else zeros) + 0 if mode == "lstm" else zeros + 0).contiguous()
    dh = zeros + 0
    for t in (dy, h0, c0, weight, carry, dh):
        t._storage.buffer()
    if _whole(device, dtype, T, N, H):
        _layer_back(dy, h0, c0, weight, mode, reverse, y, act, cells, dgates, dhidden, dh, carry, T)
    else:
        _steps_backward(dy, h0, c0, weight, mode, reverse, y, act, cells, dgates, dhidden, dh, carry)
    return dh, carry


def _layer_back(dy, h0, c0, weight, mode, reverse, y, act, cells, dgates, dhidden, dh, carry, T, packed=()):
    """Backward of all steps in one launch; ``packed``: where each step of a packed sequence begins, and memory for the states before its rows."""
    (N, H), device, NV = h0.shape, y._storage.device, _width(-(-weight.shape[1] // 16))
    share, MR = _rows(device, N, NV)
    whole = padded(weight.reshape(1, 1, *weight.shape))
    run(device, "recurrent/layer_backward", dict(MODE=mode, NV=NV, MR=MR, TAIL=H % 16 > 0, PACKED=bool(packed)), (-(-N // share),), (1,), act, y, h0, c0, cells,
        dy, whole, dgates, dhidden, dh, carry, *packed, _words8(T, N, H, share, int(reverse)))


def _steps_backward(dy, h0, c0, weight, mode, reverse, y, act, cells, dgates, dhidden, dh, carry):
    """Backward step by step; ``dh`` and ``carry`` (fresh memory) hold the gradients of the state on the way."""
    T, N, H = y.shape
    KH, device, dtype = weight.shape[0], y._storage.device, y.dtype
    form, gs, ls = _shape_of(device, N, H)
    order = range(T) if reverse else range(T - 1, -1, -1)
    first = T - 1 if reverse else 0
    for step in order:
        earlier = step + 1 if reverse else step - 1
        h = (h0._storage.buf, h0._offset) if step == first else _at(y, earlier)
        c = (c0._storage.buf, c0._offset) if step == first else _at(cells, earlier)
        back = (carry._storage.buf, carry._offset)
        run(device, "recurrent/backward", dict(T=dtype, MODE=mode, ONE=0, GC=1, **form), gs, ls, *_at(act, step), *_at(y, step), *h, *c,
            *_at(cells, step), dy._storage.buf, dy._offset + step * N * H, dh._storage.buf, 0, *back, *back, *_at(dgates, step), *_at(dhidden, step), N, H)
        gemm(device, dtype, N, H, KH, *_at(dhidden, step), (KH, 1), weight._storage.buf, weight._offset, (H, 1), dh._storage.buf, 0, H,
             beta=1.0 if mode == "gru" else 0.0)


def packed(gates, h0, c0, weight, bias, sizes, mode, reverse):
    """(outputs of all rows, last h, last c or None) of sequences of unequal lengths at once, or None where they go step by step.

    Args:
        gates: (R, K*H), the rows of a packed sequence; ``sizes``: how many of them each step has.
    """
    given = [t for t in (gates, h0, c0, weight, bias) if t is not None]
    dtype, device = gates.dtype, gates._storage.device
    if any(t.__class__ not in plain or t.dtype is not dtype or t._storage.device is not device for t in given) or state.autocast is not None:
        return None
    N, H = h0.shape
    if not _whole(device, dtype, len(sizes), N, H) and any([_recurrent_gpu.plan(device, dtype, mode, len(sizes), N, H, back) is None for back in (False, True)]):
        return None
    return _recurrent_packed(gates, h0, c0, weight, bias, mode, reverse, tuple(sizes))


def _packed_alone(gates, h0, c0, weight, bias, mode, reverse, sizes):
    h, c, outs, cat = h0, c0, [None] * len(sizes), REGISTRY["cat"].fn
    parts = gates.split(list(sizes))
    for t in range(len(sizes) - 1, -1, -1) if reverse else range(len(sizes)):
        n = sizes[t]
        outs[t], new = _composed_cell(parts[t], _linear2d(h[:n], weight, bias), h[:n], None if c is None else c[:n], mode)
        h, c = cat([outs[t], h[n:]]), None if c is None else cat([new, c[n:]])
    return cat(outs), h, c


def _numbers(values, device):
    return tensor(np.asarray(values, np.int64), device=device)


def _packed_grad(g, gates, h0, c0, weight, bias, mode, reverse, sizes, act, cells, kept, starts):
    return _packed_backward(*g[:3], h0, c0, weight, bias, mode, reverse, sizes, kept, act, cells, starts)


@kernel("_recurrent_packed", method=False, outputs=("y", "hn", "cn", "act", "cells", "kept", "starts"), public=3, decompose=_packed_alone,
        vjp={"gates, h0, c0, weight, bias": _packed_grad})
def _recurrent_packed(gates, h0, c0, weight, bias, mode, reverse, sizes):
    """As :func:`_recurrent` for the rows of a packed sequence; also returns the last states."""
    (N, H), R, device, dtype, lstm = h0.shape, gates.shape[0], gates._storage.device, gates.dtype, mode == "lstm"
    gates, h0 = gates.contiguous(), h0.contiguous()
    c0, bias = c0.contiguous() if lstm else h0, None if bias is None else bias.contiguous()
    y, hn, cn = empty(Size((R, H)), dtype, device), empty(h0.shape, dtype, device), empty(h0.shape, dtype, device) if lstm else None
    cells, act = empty(y.shape, dtype, device) if lstm else y, empty(Size((R, 4 * H if lstm or mode == "gru" else 0)), dtype, device)
    starts = _numbers([0, *itertools.accumulate(sizes)], gates.device)
    last = (starts, hn, cn if lstm else hn)
    if _whole(device, dtype, len(sizes), N, H):
        _layer(gates, h0, c0, weight, bias, mode, reverse, y, cells, act, len(sizes), last)
    else:
        walk = _recurrent_gpu.plan(device, dtype, mode, len(sizes), N, H)
        _recurrent_gpu.forward(walk, gates, h0, c0, weight, bias, mode, reverse, y, cells, act, last)
    kept = y._snapshot()
    return y, hn, cn, act, cells if lstm else kept, kept, starts


@kernel("_packed_backward", method=False, outputs=("dgates", "dh0", "dc0", "dweight", "dbias"), public=5)
def _packed_backward(dy, dhn, dcn, h0, c0, weight, bias, mode, reverse, sizes, y, act, cells, starts):
    """Gradients of everything that :func:`_recurrent_packed` reads."""
    (R, H), (N, _), KH, device, dtype, lstm = y.shape, h0.shape, weight.shape[0], y._storage.device, y.dtype, mode == "lstm"
    dy, dhn = ((filled(t.shape, 0, dtype, device) if g is None else g).contiguous() for g, t in ((dy, y), (dhn, h0)))
    h0, weight = h0.contiguous(), weight.contiguous()
    dgates = empty(Size((R, KH)), dtype, device)
    dhidden = empty(dgates.shape, dtype, device) if mode == "gru" else dgates
    if _whole(device, dtype, len(sizes), N, H):
        earlier, carry = empty(y.shape, dtype, device), (filled(h0.shape, 0, dtype, device) if dcn is None else dcn + 0).contiguous()
        dh = (dhn + 0).contiguous()
        _layer_back(dy, h0, c0.contiguous() if lstm else h0, weight, mode, reverse, y, act, cells, dgates, dhidden, dh, carry, len(sizes),
                    (starts, earlier))
        return dgates, dh, carry if lstm else None, mm(dhidden.t(), earlier), dhidden.sum(0) if bias is not None else None
    walk, dh, dc = _recurrent_gpu.plan(device, dtype, mode, len(sizes), N, H, back=True), empty(h0.shape, dtype, device), empty(h0.shape, dtype, device) if lstm else None
    _recurrent_gpu.backward(walk, dy, dcn.contiguous() if lstm and dcn is not None else None, h0, c0.contiguous() if lstm else h0, weight, mode, reverse, y, act, cells,
                            dgates, dhidden, dh, dc, (starts, dhn))
    # The state before each row: one of h0, or an output of the step before it.
    starts = [0, *itertools.accumulate(sizes)]
    rows = [np.arange(n) if not 0 <= (before := t + 1 if reverse else t - 1) < len(sizes) else
            np.where(np.arange(n) < sizes[before], N + starts[before] + np.arange(n), np.arange(n)) for t, n in enumerate(sizes)]
    earlier = REGISTRY["cat"].fn([h0, y]).index_select(0, _numbers(np.concatenate(rows), y.device))
    return dgates, dh, dc, mm(dhidden.t(), earlier), dhidden.sum(0) if bias is not None else None
