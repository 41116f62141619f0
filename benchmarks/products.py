"""Matrix products, convolutions and attention, held against the device's multiply-add peak."""
from __future__ import annotations

import numpy as np

import clnn

from .setup import DEVICE, array, contenders, tensors, torch
from .timing import Case

F = clnn.nn.functional
TF = torch.nn.functional if torch is not None else None
GPU = DEVICE.kind == "gpu"       # sizes that would keep a CPU busy for minutes


def gemm():
    """Squares, and the shapes of a training step: forward, gradient of the input, gradient of the weight."""
    large = [(n, n, n, how) for n in (4096, 8192) if GPU for how in ("", "bt")]
    for m, k, n, how in [(256, 256, 256, ""), (512, 512, 512, ""), (1024, 1024, 1024, ""), (2048, 2048, 2048, ""), (64, 784, 512, ""),
                         (64, 512, 512, "bt"), (512, 64, 512, "at"), (4096, 512, 2048, ""), (1024, 1024, 1, ""), *large]:
        a, b = array(k, m) if how == "at" else array(m, k), array(n, k) if how == "bt" else array(k, n)
        (x, y), (t, u) = tensors(a, b)
        if how == "at":
            a, x, t = a.T, x.t(), t.t() if torch is not None else None
        if how == "bt":
            b, y, u = b.T, y.t(), u.t() if torch is not None else None
        label = {"": "", "at": " (A transposed)", "bt": " (B transposed)"}[how]
        found = contenders(lambda x=x, y=y: x @ y, lambda t=t, u=u: t @ u, lambda a=a, b=b: a @ b)
        yield Case(f"matmul {m} x {k} x {n}{label}", "GFLOP/s", 2.0 * m * k * n, found, "fma")
    a, b = array(64, 128, 64), array(64, 64, 128)
    (x, y), (t, u) = tensors(a, b)
    yield Case("bmm 64 x (128 x 64 x 128)", "GFLOP/s", 2.0 * 64 * 128 * 64 * 128, contenders(lambda: x @ y, lambda: t @ u, lambda: np.matmul(a, b)), "fma")


def narrow():
    """Products and convolutions of narrow numbers: what mixed precision and quantised models are made of. The limit is that of float32."""
    def both(a, b, name, turned=False):
        """The operands for clnn and for PyTorch (or None)."""
        for lib, two in zip((clnn, torch), tensors(a, b)):
            x, y = ((v * 40 if name == "int8" else v).to(getattr(lib, name)) if lib is not None else None for v in two)
            yield (x, y.t() if turned else y) if lib is not None else None
    large = [(n, n, n, turned) for n in (4096, 8192) if GPU for turned in (False, True)]
    for m, k, n, turned in [(256, 256, 256, False), (1024, 1024, 1024, False), (64, 512, 512, True), (1024, 256, 1024, True), *large]:
        a, b = array(m, k), array(n, k) if turned else array(k, n)
        for name in ("bfloat16", "float16", "int8"):
            mine, theirs = both(a, b, name, turned)
            multiply = [lib and (lib._int_mm if name == "int8" else lib.matmul) for lib in (clnn, torch)]
            yield Case(f"matmul {m} x {k} x {n}{' (B transposed)' if turned else ''}, {name}", "GFLOP/s", 2.0 * m * k * n,
                       contenders(lambda f=multiply[0], p=mine: f(*p), lambda f=multiply[1], p=theirs: f(*p)), "fma")
    for c, size, out, k in [(64, 56, 64, 3), (256, 14, 256, 3), (256, 56, 64, 1)] + [(256, 56, 256, 3)] * GPU:
        mine, theirs = both(array(16, c, size, size), array(out, c, k, k, scale=0.1), "bfloat16")
        yield Case(f"conv2d 16 x {c} x {size}^2 -> {out}, {k} x {k}, bfloat16", "GFLOP/s", 2.0 * 16 * out * size * size * c * k * k,
                   contenders(lambda p=mine, k=k: F.conv2d(*p, padding=k // 2), lambda p=theirs, k=k: TF.conv2d(*p, padding=k // 2)), "fma")


def rounded():
    """Products and convolutions of float32 whose operands may be rounded to tf32: what ``set_float32_matmul_precision("high")`` allows on a GPU."""
    if not GPU:
        return
    for lib in filter(None, (clnn, torch)):
        lib.set_float32_matmul_precision("high")
    for n in (1024, 2048, 4096, 8192):
        for turned in (False, True):
            (x, y), (t, u) = tensors(array(n, n), array(n, n))
            if turned:
                y, u = y.t(), u.t() if torch is not None else None
            yield Case(f"matmul {n} x {n} x {n}{' (B transposed)' if turned else ''}, tf32", "GFLOP/s", 2.0 * n ** 3,
                       contenders(lambda: x @ y, lambda: t @ u), "fma")
    for lib in filter(None, (clnn, torch)):
        lib.set_float32_matmul_precision("highest")


def conv():
    """Layers of ResNets at batch 16, forward and with both gradients; strided layers of other networks; depthwise ones."""
    for n, c, size, out, k, stride, groups in [(16, 3, 224, 64, 7, 2, 1), (16, 64, 56, 64, 3, 1, 1), (16, 128, 28, 128, 3, 1, 1), (16, 64, 56, 128, 1, 2, 1),
                                               (16, 64, 56, 256, 1, 1, 1), (16, 256, 56, 64, 1, 1, 1), (16, 256, 14, 256, 3, 1, 1), (16, 512, 7, 512, 3, 1, 1),
                                               (16, 64, 56, 128, 3, 2, 1), (16, 256, 14, 512, 3, 2, 1), (64, 64, 32, 128, 4, 2, 1), (64, 256, 8, 512, 4, 2, 1),
                                               (32, 4, 84, 32, 8, 4, 1), (8, 3, 224, 64, 11, 4, 1), (64, 16, 32, 32, 3, 2, 1), (16, 64, 14, 64, 5, 1, 1),
                                               (16, 96, 56, 96, 3, 1, 96), (16, 96, 112, 96, 3, 2, 96), (16, 240, 14, 240, 5, 1, 240),
                                               (16, 960, 7, 960, 3, 1, 960), (64, 1, 28, 32, 3, 1, 1)]:
        a, w = array(n, c, size, size), array(out, c // groups, k, k, scale=0.1)
        (x, v), (t, u) = tensors(a, w)
        kind = dict(stride=stride, padding=k // 2, groups=groups)
        side = (size + 2 * (k // 2) - k) // stride + 1
        flops = 2.0 * n * out * side * side * (c // groups) * k * k
        label = f"{n} x {c} x {size}^2 -> {out}, {k} x {k}" + (f" / {stride}" if stride > 1 else "") + (" depthwise" if groups > 1 else "")
        found = contenders(lambda x=x, v=v, kind=kind: F.conv2d(x, v, **kind), lambda t=t, u=u, kind=kind: TF.conv2d(t, u, **kind))
        yield Case(f"conv2d {label}", "GFLOP/s", flops, found, "fma")
        if size != 28 and (n == 16 and stride == 1 or k == 4):
            (x, v), (t, u) = tensors(a, w, grad=True)

            def step(lib, x, v, kind):
                y = lib.conv2d(x, v, **kind)
                y.backward(y.detach())
                g = x.grad, v.grad
                x.grad = v.grad = None
                return g
            found = contenders(lambda x=x, v=v, kind=kind: step(F, x, v, kind), lambda t=t, u=u, kind=kind: step(TF, t, u, kind))
            yield Case(f"conv2d {label}, with gradients", "GFLOP/s", 3 * flops, found, "fma")


def attention():
    """Scaled dot-product attention, forward and with gradients."""
    for b, h, n, d, causal in [(4, 8, 256, 64, False), (4, 8, 512, 64, True), (1, 12, 1024, 64, True), (4, 8, 512, 40, False)] + [(8, 16, 2048, 64, True)] * GPU:
        q = [array(b, h, n, d) for _ in range(3)]
        mine, theirs = tensors(*q)
        flops = 4.0 * b * h * n * n * d * (0.5 if causal else 1)
        label = f"{b} x {h} x {n} x {d}{' causal' if causal else ''}"
        yield Case(f"attention {label}", "GFLOP/s", flops, contenders(lambda m=mine, c=causal: F.scaled_dot_product_attention(*m, is_causal=c),
                                                                     lambda m=theirs, c=causal: TF.scaled_dot_product_attention(*m, is_causal=c)), "fma")
        if n == 512:
            mine, theirs = tensors(*q, grad=True)

            def step(lib, qkv, causal):
                y = lib.scaled_dot_product_attention(*qkv, is_causal=causal)
                y.backward(y.detach())
                grads = [t.grad for t in qkv]
                for t in qkv:
                    t.grad = None
                return grads
            yield Case(f"attention {label}, with gradients", "GFLOP/s", 3.5 * flops, contenders(lambda m=mine, c=causal: step(F, m, c),
                                                                                              lambda m=theirs, c=causal: step(TF, m, c)), "fma")


def recurrent():
    """Layers over 30 steps with sizes that fill no vector, forward and with all gradients."""
    for kind, size, hidden, batch, gates in [("LSTM", 50, 100, 16, 4), ("LSTM", 64, 128, 32, 4), ("GRU", 50, 100, 16, 3), ("RNN", 40, 70, 16, 1)]:
        a = array(batch, 30, size)
        layers = [None if lib is None else getattr(lib.nn, kind)(size, hidden, batch_first=True) for lib in (clnn, torch)]
        (x,), (t,) = tensors(a, grad=True)

        def forward(lib, layer, x):
            with lib.no_grad():
                return layer(x)[0]

        def step(lib, layer, x):
            layer.zero_grad()
            x.grad = None
            y = layer(x)[0]
            y.backward(y.detach())
            return x.grad
        flops = 2.0 * 30 * batch * (size + hidden) * gates * hidden
        for f, label, factor in ((forward, "", 1), (step, ", with gradients", 3)):
            found = contenders(lambda f=f, x=x, m=layers[0]: f(clnn, m, x), layers[1] and (lambda f=f, t=t, m=layers[1]: f(torch, m, t)))
            yield Case(f"{kind} {size} -> {hidden}, batch {batch}{label}", "GFLOP/s", factor * flops, found, "fma")
