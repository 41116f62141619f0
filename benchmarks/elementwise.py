"""Host cost of recording and launching; bandwidth of elementwise chains and reductions."""
from __future__ import annotations

import numpy as np

import clnn
from clnn.runtime.launch import launch

from .setup import DEVICE, array, contenders, copy_limit, ours, realise, tensors, theirs, torch
from .timing import Case, Contender

N = 16 * 1024 * 1024


def host():
    """Python's part: recording one lazy operator, one cached launch, one whole eager operator."""
    x = clnn.tensor(array(16))
    t = torch.tensor(array(16)) if torch is not None else None
    yield Case("record one operator", "us", 1, contenders(lambda: None, (lambda: t + 1.0) if torch is not None else None, None)[1:] + [
        Contender("clnn", lambda: x + 1.0)], note="PyTorch computes it")
    chain = [x]

    def record_chain():
        y = x
        for _ in range(20):
            y = y * 1.0001
        chain[0] = y
    yield Case("record a chain of 20 and launch it", "us", 20, contenders(lambda: (record_chain(), chain[0])[1]))
    kernel = DEVICE.kernel_from_source("__kernel void four(__global float* a, __global float* b, const long n, const float s) "
                                       "{ long i = get_global_id(0); if (i < n) b[i] = a[i] * s; }", "four")
    buffers = [DEVICE.alloc(64) for _ in range(4)]
    turn = [0]

    def one():
        turn[0] ^= 2
        launch(DEVICE, kernel, (16,), (16,), buffers[turn[0]], buffers[turn[0] + 1], 16, 2.0)
    yield Case("one cached launch, 4 arguments", "us", 1, [Contender("clnn", one, DEVICE.synchronize)])

    def operator():
        realise(x + 1.0)
    yield Case("one operator, recorded and launched", "us", 1, [Contender("clnn", operator, clnn.synchronize)]
               + ([theirs(lambda: t + 1.0)] if torch is not None else []))

    def round_trip():
        (x + 1.0).numpy()
    yield Case("operator and reading 16 values", "us", 1, [Contender("clnn", round_trip)]
               + ([theirs(lambda: (t + 1.0).cpu().numpy())] if torch is not None else []))


def chain8(x):
    return ((((x * 1.5 + 0.25) * x - 1.0) * 0.5 + x) * 0.125).abs()


def elementwise():
    """Chains on 16M floats: one read and one write of the memory, however many operators."""
    a = array(N)
    (x,), (t,) = tensors(a)
    limit = copy_limit(N)
    yield Case("copy (x * 1)", "GB/s", 8 * N, contenders(lambda: x * 1.0, lambda: t * 1.0, lambda: a * np.float32(1), limit), "copy")
    yield Case("chain of 8 operators", "GB/s", 8 * N, contenders(lambda: chain8(x), lambda: chain8(t), lambda: np.abs(
        ((((a * np.float32(1.5) + np.float32(0.25)) * a - 1) * np.float32(0.5) + a) * np.float32(0.125))), limit), "copy")
    b = array(N)
    (y,), (u,) = tensors(b)
    yield Case("add two tensors", "GB/s", 12 * N, contenders(lambda: x + y, lambda: t + u, lambda: a + b), "")
    gelu = clnn.nn.functional.gelu
    yield Case("gelu", "GB/s", 8 * N, contenders(lambda: gelu(x), (lambda: torch.nn.functional.gelu(t)) if torch is not None else None, None, limit), "copy")
    for name in ("exp", "tanh", "sigmoid", "sin", "erf"):
        yield Case(name, "GB/s", 8 * N, contenders(lambda f=getattr(clnn, name): f(x), (lambda f=getattr(torch, name): f(t)) if torch is not None else None,
                                                   (lambda f=getattr(np, name): f(a)) if hasattr(np, name) else None, limit), "copy")
    half = x.half()
    thalf = t.half() if torch is not None else None
    yield Case("float16 x * 2 + 1", "GB/s", 4 * N, contenders(lambda: half * 2 + 1, lambda: thalf * 2 + 1, None, limit), "")
    bias = clnn.tensor(array(1024))
    tb = torch.tensor(array(1024)) if torch is not None else None
    m, tm = x.view(-1, 1024), t.view(-1, 1024) if torch is not None else None
    yield Case("bias and relu (16384 x 1024)", "GB/s", 8 * N, contenders(lambda: clnn.relu(m + bias), lambda: torch.relu(tm + tb), None, limit), "copy")
    yield Case("transpose copy (4096 x 4096)", "GB/s", 8 * N, contenders(lambda: x.view(4096, 4096).t().contiguous(), lambda: t.view(4096, 4096).t().contiguous(),
                                                                         lambda: np.ascontiguousarray(a.reshape(4096, 4096).T), limit), "copy")


def reductions():
    """Sums over all, rows and columns; softmax and layer norm over rows."""
    a = array(N)
    (x,), (t,) = tensors(a)
    limit = copy_limit(N // 2)
    for rows, cols in ((1, N), (4096, 4096), (N // 64, 64)):
        m, tm, am = x.view(rows, cols), t.view(rows, cols) if torch is not None else None, a.reshape(rows, cols)
        yield Case(f"sum of rows {rows} x {cols}", "GB/s", 4 * N, contenders(lambda m=m: m.sum(1), lambda m=tm: m.sum(1), lambda m=am: m.sum(1), limit), "copy")
    m, tm, am = x.view(4096, 4096), t.view(4096, 4096) if torch is not None else None, a.reshape(4096, 4096)
    yield Case("sum of columns 4096 x 4096", "GB/s", 4 * N, contenders(lambda: m.sum(0), lambda: tm.sum(0), lambda: am.sum(0), limit), "copy")
    yield Case("variance of rows 4096 x 4096", "GB/s", 4 * N, contenders(lambda: m.var(1), lambda: tm.var(1), lambda: am.var(1)), "")
    yield Case("max and its place in rows", "GB/s", 4 * N, contenders(lambda: m.max(1)[0], lambda: tm.max(1)[0], lambda: am.max(1)), "")
    F, TF = clnn.nn.functional, torch.nn.functional if torch is not None else None
    full = copy_limit(N)
    for rows, cols in ((4096, 4096), (N // 256, 256)):
        m, tm = x.view(rows, cols), t.view(rows, cols) if torch is not None else None
        yield Case(f"softmax {rows} x {cols}", "GB/s", 8 * N, contenders(lambda m=m: F.softmax(m, -1), lambda m=tm: TF.softmax(m, -1), None, full), "copy")
        w, b = clnn.ones(cols), clnn.zeros(cols)
        tw, tb = (torch.ones(cols), torch.zeros(cols)) if torch is not None else (None, None)
        yield Case(f"layer_norm {rows} x {cols}", "GB/s", 8 * N, contenders(lambda m=m, w=w, b=b: F.layer_norm(m, (m.shape[1],), w, b),
                                                                           lambda m=tm, w=tw, b=tb: TF.layer_norm(m, (m.shape[1],), w, b), None, full), "copy")
    yield Case("cumsum of rows 4096 x 4096", "GB/s", 8 * N, contenders(lambda: x.view(4096, 4096).cumsum(1), lambda: t.view(4096, 4096).cumsum(1),
                                                                      lambda: am.cumsum(1), full), "copy")
    small = array(1 << 20)
    (s,), (ts,) = tensors(small)
    yield Case("sort a million floats", "ms", 1, contenders(lambda: s.sort()[0], lambda: ts.sort()[0], lambda: np.sort(small)))


assert ours
