"""Runs every operator of the table once on small inputs, forward and backward, and reports which kernel templates were launched.

It is a script of its own so that a simulator can watch it: ``oclgrind --data-races python tests/kernel_sweep.py``. With ``--as pocl`` or ``--as gpu`` the
device pretends to be of that kind, so that one driver runs both families of kernels.
"""
import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import clnn  # noqa: E402
from clnn.ops import _shuffle  # noqa: E402
from clnn.testing import cases, checks  # noqa: E402

# Oclgrind 21.10 stops at an intrinsic that the compiler makes of these.
SIMULATOR_LACKS = ("gcd", "lcm")


def larger():
    """Calls at sizes that the samples of the table do not reach.

    They are the least that choose these kernels: the simulator takes a microsecond per access of a work-item, and kernels for CPUs access vectors.
    """
    rng, cpu = np.random.default_rng(0), clnn.get_default_device().physical.is_cpu

    def t(*shape):
        return clnn.tensor(rng.standard_normal(shape).astype("float32"), requires_grad=True)
    yield "matmul 70x40x66", lambda: t(70, 40) @ t(40, 66)
    yield "few rows by rows", lambda: t(8, 200) @ t(40, 200).t()
    yield "few sums of many products", lambda: t(3, 520).detach() @ t(520, 5).detach()
    yield "bmm", lambda: clnn.bmm(t(3, 20, 33), t(3, 33, 18))
    yield "matvec", lambda: t(300, 200) @ t(200) if cpu else t(150, 130) @ t(130)
    yield "vecmat", lambda: t(17) @ t(17, 600)
    yield "sum of 70000", lambda: t(70000).sum()
    yield "column sums", lambda: t(3000, 5).sum(0)
    yield "mean over the middle", lambda: t(4, 200, 6).mean(1)
    yield "softmax 900", lambda: clnn.softmax(t(3, 900), -1)
    yield "strided copy", lambda: (t(40, 50).t() * 2).contiguous()
    yield "sort of a long row", lambda: t(1, 17000 if cpu else 5000).detach().sort(1)[0]
    yield "sort of integers", lambda: clnn.tensor(rng.integers(-9, 999, (2, 200))).sort(1)[0]
    if not cpu:
        yield "sort of many tiles", lambda: of_many_tiles(t(1, 4500).detach())
        whole = clnn.tensor(rng.integers(0, 9, 4200))
        yield "equal numbers of 4200", lambda: whole.unique(return_inverse=True, return_counts=True)
        yield "elements of a mask", lambda: t(70, 70).detach()[t(70, 70).detach() > 0]
        yield "scatter_add into rows", lambda: t(2, 50).scatter_add(1, clnn.tensor(rng.integers(0, 50, (2, 100))), t(2, 100))
    yield "topk of 140", lambda: t(1, 600).topk(140)
    yield "turned runs", lambda: (t(40, 50, 3).transpose(0, 1) * 2).contiguous()
    yield "topk of many short rows", lambda: t(520, 12).topk(2)
    yield "sort many rows", lambda: t(515, 10).detach().sort(1)[0]
    yield "median of many rows", lambda: t(515, 10).detach().nanmedian(1)[0]
    yield "larger image", lambda: clnn.nn.functional.interpolate(t(1, 2, 9, 20), size=(10, 33), mode="bilinear")
    if not cpu:
        yield "many rows by number", lambda: t(40, 64).index_select(0, clnn.tensor(rng.integers(0, 40, 131)))
        yield "many elements by number", lambda: [t(*s).detach().gather(0, clnn.tensor(rng.integers(0, s[0], (9000 // s[1], s[1])))) for s in ((5, 64), (70, 3))]
        yield "wide and many rows side by side", lambda: [clnn.cat([t(*s), t(*s)], 1) for s in ((9, 2060), (300, 20))]
        yield "factors of middle size", lambda: [f(t(8, *s).detach()) for s in ((18, 18), (20, 17)) for f in (clnn.linalg.qr, clnn.linalg.svdvals)]
        yield "eigenvalues of middle size", lambda: clnn.linalg.eigvalsh(t(8, 17, 17).detach())
        yield "many pixels", lambda: [clnn.nn.functional.interpolate(t(1, 2, 31, 40), scale_factor=2, mode=m) for m in ("nearest", "bilinear")]
    yield "classes of 16 bits", lambda: clnn.nn.functional.cross_entropy(clnn.ones(3, 4).bfloat16(), clnn.tensor([0, 3, 1]))
    yield "sort 3000", lambda: t(2, 3000).sort(1)[0]
    yield "cumsum 5000", lambda: t(2, 5000).cumsum(1)
    if not cpu:
        yield "scans in parts", lambda: scans_in_parts(t(9000).detach(), t(1, 1300, 7).detach())
        yield "long rows", lambda: (clnn.softmax(t(1, 4500), -1), clnn.nn.functional.cross_entropy(t(2, 4300), clnn.tensor([3, 4299])), t(1, 4400).detach().var(1))
        yield "sums and places in columns", lambda: (t(1100, 7).detach().argmax(0), t(40, 40).detach().argmin(0), t(3, 300).detach().argmax(1),
                                                     t(40, 33).detach().cumsum(0), t(40, 33).detach().cummax(0)[1])
        yield "statistics of many images", lambda: clnn.nn.functional.batch_norm(t(20, 3), clnn.zeros(3), clnn.ones(3), training=True)
        yield "gradients behind a relu", lambda: behind_relu(t(4, 3, 8, 8), t(4, 3, 8, 8).detach())
        yield "statistics of long channels", lambda: [clnn.nn.functional.batch_norm(t(1, 1, n), None, None, training=True) for n in (17000, 33001)]
    yield "conv2d", lambda: clnn.nn.functional.conv2d(t(2, 8, *(14, 14) if cpu else (9, 9)), t(16, 8, 3, 3), t(16), padding=1)
    yield "conv2d strided groups", lambda: clnn.nn.functional.conv2d(t(2, 8, 9, 9), t(8, 4, 3, 3), None, stride=2, groups=2)
    if cpu:
        yield "conv2d by channels", lambda: by_channels(t(2, 17, 8, 10), t(18, 17, 4, 4), t(18))
        yield "conv2d for winograd", lambda: clnn.nn.functional.conv2d(t(2, 32, 10, 14), t(32, 32, 3, 3), None, padding=1)
    else:
        yield "conv2d of many channels", lambda: clnn.nn.functional.conv2d(t(1, 3, 9, 9), t(40, 3, 3, 3), None, padding=1)
        yield "conv2d in parts", lambda: in_parts(t(1, 8, 5, 5), t(9, 8, 3, 3), t(9))
    yield "conv2d transposed, with empty phases", lambda: clnn.nn.functional.conv_transpose2d(t(5, 3, 5, 4), t(3, 9, 1, 1), t(9), stride=3)
    if cpu:
        deep = dict(padding=(4, 0, 0), dilation=(2, 1, 1))
        yield "conv3d with depths that meet few taps", lambda: clnn.nn.functional.conv3d(t(1, 4, 8, 8, 8), t(34, 4, 5, 1, 1), t(34), **deep)
    yield "conv1d depthwise of many places", lambda: clnn.nn.functional.conv1d(t(2, 2, 600), t(2, 1, 3), None, padding=1, groups=2)
    yield "conv2d depthwise", lambda: clnn.nn.functional.conv2d(t(2, 4, 7, 7), t(4, 1, 3, 3), t(4), padding=1, groups=4)
    yield "conv2d depthwise by planes", lambda: clnn.nn.functional.conv2d(t(2, 18, 7, 9), t(18, 1, 3, 3), t(18), stride=3, padding=1, groups=18)
    yield "conv1d depthwise by planes, in tiles", lambda: clnn.nn.functional.conv1d(t(1, 14, 700), t(14, 1, 3), None, stride=3, groups=14)
    yield "matmul of halves", lambda: t(40, 64).half() @ t(64, 48).half()
    yield "matmul of turned floats", lambda: t(64, 40).t() @ t(48, 64).t()
    index = clnn.tensor(rng.integers(0, 50, 200))
    yield "index_add of 200", lambda: t(50, 3).index_add(0, index, t(200, 3))
    if cpu:
        yield "index_add of long rows", lambda: t(8, 1024).index_add(0, clnn.tensor(rng.integers(0, 8, 64)), t(64, 1024))
    yield "index_put of 200", lambda: t(50, 3).index_put((index,), t(200, 3))
    yield "index_copy of 200", lambda: clnn.zeros(50, 3).index_copy(0, index, t(200, 3).detach())
    yield "scatter_add of 200", lambda: t(50).scatter_add(0, index, t(200))
    yield "scatter of 200", lambda: t(50, 20).scatter(0, index.view(-1, 1).expand(200, 20), 2.0)
    yield "reflecting pad", lambda: clnn.nn.functional.pad(t(2, 3, 6, 7), (2, 1, 1, 3), mode="reflect")
    yield "batch_norm while training", lambda: clnn.nn.functional.batch_norm(t(4, 3, 8, 8), clnn.zeros(3), clnn.ones(3), t(3), t(3), training=True)
    yield "layer_norm", lambda: clnn.nn.functional.layer_norm(t(70, 40), (40,), t(40), t(40))
    for name in ("LSTM", "GRU", "RNN"):
        yield name, lambda name=name: getattr(clnn.nn, name)(6, 5)(t(4, 3, 6))[0]
        yield f"{name} of doubles", lambda name=name: getattr(clnn.nn, name)(6, 5).double()(t(4, 3, 6).double())[0]
        yield f"{name} of unequal lengths", lambda name=name: getattr(clnn.nn, name)(6, 5)(clnn.nn.utils.rnn.pack_padded_sequence(t(4, 3, 6), [4, 3, 1]))[0].data
    for name in ("LSTM", "GRU"):
        yield f"{name} cell", lambda name=name: getattr(clnn.nn, name + "Cell")(6, 5)(t(3, 6))
        yield f"{name} in whole vectors", lambda name=name: getattr(clnn.nn, name)(6, 16)(t(4, 3, 6))[0]
    for L, E, EV, causal in ((7, 16, 32, True), (30, 16, 32, False), (9, 20, 7, True), (2, 5, 5, False), (33, 8, 16, True)):
        yield f"attention in panels, {L} queries of {E}", lambda L=L, E=E, EV=EV, causal=causal: clnn.nn.functional.scaled_dot_product_attention(
            t(1, 2, L, E), t(1, 2, 40, E), t(1, 2, 40, EV), is_causal=causal)
    if cpu:
        rows = 64 * clnn.get_default_device().physical.compute_units + 3
        yield "places of largest in many short rows", lambda: t(rows, 5).detach().argmax(1)
        yield "sums of many short rows", lambda: t(515, 17).detach().sum(1)
        few = t(1371, 3).detach()
        yield "columns", lambda: (t(40, 33).cumsum(0), clnn.stack([t(1400).detach(), t(1400).detach(), t(1400).detach()], -1))
        yield "few columns", lambda: (few.argmax(0), few.sum(0), few.cumsum(0), few.cumsum(1), few.flip(0).cumsum(0), few * few[0] + few[:, :1])
        yield "draws of vectors", lambda: (clnn.rand(4133), clnn.randn(4133), clnn.rand(4133, dtype=clnn.float64), clnn.randint(0, 9, (4133,)))
        yield "blocks as columns", lambda: clnn.nn.functional.unfold(t(1, 2, 9, 70), 3, padding=1)
    yield "bags of rows", lambda: [clnn.nn.functional.embedding_bag(clnn.tensor(rng.integers(0, 9, (3, 4))), t(9, 21), mode=mode, per_sample_weights=scales)
                                   for mode, scales in (("sum", t(3, 4)), ("max", None))]
    if cpu:
        yield "pooling over wide windows", lambda: [getattr(clnn.nn.functional, f"adaptive_{kind}_pool1d")(t(2, 2, 14), 3) for kind in ("max", "avg")]
        yield "distances of many rows", lambda: (clnn.cdist(t(5, 3), t(35, 3), 2.0), clnn.pdist(t(19, 2), 2.0))
    for n in (5, 20):
        yield f"equations of order {n}", lambda n=n: clnn.linalg.solve(t(3, n, n), t(3, n, 18 if cpu else 3))
        yield f"factors of order {n}", lambda n=n: (clnn.linalg.inv(t(2, n, n)), clnn.linalg.slogdet(t(2, n, n)), clnn.linalg.det(t(n, n)),
                                                    clnn.linalg.cholesky(clnn.ones(2, n, n) + n * clnn.eye(n)), clnn.linalg.lu_factor(t(n, n + 2).detach()))
    thin = t(18, 5, 3).detach()
    yield "many small matrices", lambda: (*clnn.linalg.qr(thin, "complete"), *clnn.geqrf(thin), clnn.linalg.svdvals(thin.mT), clnn.linalg.eigvalsh(thin @ thin.mT),
                                          clnn.linalg.lstsq(thin, thin).solution, clnn.linalg.lstsq(thin.mT, thin.mT.contiguous()).solution)
    yield "elimination of many", lambda: (clnn.linalg.inv(t(18, 3, 3)), clnn.linalg.solve(t(18, 3, 3), t(18, 3, 2)), clnn.linalg.det(t(18, 3, 3)),
                                          *clnn.linalg.slogdet(t(9, 3, 3)), clnn.linalg.lu_factor(thin).LU)
    if cpu:
        yield "inverse of order 129", lambda: clnn.linalg.inv(t(129, 129).detach())
        yield "products by words", lambda: by_words(t(20, 35).detach() * 9, t(35, 70).detach() * 9, t(2, 2, 6, 6).detach(), t(16, 2, 3, 3).detach())
        yield "factors in blocks", lambda: in_blocks(t(70, 70).detach(), t(70, 21).detach())
    places = rng.integers(0, 9, (2, 40))
    for n in (1, 5, 16, 37):
        yield f"sparse matrix by {n} columns", lambda n=n: clnn.sparse_coo_tensor(places, t(40), (9, 9)) @ t(9, n)
    yield "places of 5000", lambda: t(50, 100).detach().nonzero()
    yield "median of 300", lambda: t(3, 300).median(1)
    yield "tenth of 300", lambda: t(3, 300).kthvalue(10, 1)
    yield "transform of a long row of reals", lambda: clnn.fft.irfft(clnn.fft.rfft(t(1, 1040)))
    yield "transforms of rows of prime length", lambda: (clnn.fft.fft(t(17, 17)), clnn.fft.irfft(clnn.fft.rfft(t(3, 17).detach()), n=17))
    yield "transforms of sequences side by side", lambda: (clnn.fft.fft(t(2, 12, 33), dim=1), clnn.fft.irfft(clnn.fft.rfft(t(12, 33).detach(), dim=0), dim=0))
    yield "transforms of rows", lambda: (clnn.fft.fft(t(17, 12)), clnn.fft.irfft(clnn.fft.rfft(t(17, 12).detach())))
    yield "transforms of rows that fill vectors", lambda: (clnn.fft.fft(t(3, 128)), clnn.fft.irfft(clnn.fft.rfft(t(3, 128).detach())))
    yield "conv2d with a tiled gradient", lambda: clnn.nn.functional.conv2d(t(2, 3, 14, 14), t(16, 3, 3, 3), t(16))
    yield "dropout", lambda: clnn.nn.functional.dropout(t(1000), 0.5)
    yield "normal", lambda: clnn.randn(1000)
    yield "permutation", lambda: clnn.randperm(1000)
    yield "order of random numbers, some of them equal", lambda: _shuffle.order_of(clnn.tensor(rng.integers(0, 40, 700).astype(np.int32)))
    yield "optimiser", optimisers
    yield "pairs of differences", pairs_of_differences
    yield "product in two runs of its steps", lambda: in_runs(t(8, 300), t(300, 12))
    for dtype, turned in (("float16", False), ("bfloat16", True), ("float32", True)):
        yield f"matmul on tensor cores, {dtype}", lambda dtype=dtype, turned=turned: on_tensor_cores(t(64, 72), t(72, 80), getattr(clnn, dtype), turned)


def of_many_tiles(x):
    """A sort whose counts are added up by a launch of their own."""
    from unittest import mock
    from clnn._tensor import repeat
    from clnn.ops import _tiles
    with mock.patch.object(_tiles, "_WHOLE", 1), mock.patch.object(repeat, "on", False):
        return x.sort(1)[1]


def in_runs(a, b):
    """A product whose steps are split, and the sum of its parts."""
    from clnn.runtime import params
    with params.forced("gemm_gpu", {"SPLIT": 2}):
        c = a.detach() @ b.detach()
        c.numpy()
    return c


def scans_in_parts(*sequences):
    """Scans of few long sequences, whose parts are scanned by themselves."""
    from unittest import mock
    from clnn.ops import _scan_group
    with mock.patch.multiple(_scan_group, LOOPS=1, PARTS=3):
        out = [f(x) for x in sequences for f in (lambda x: x.cumsum(x.ndim // 2), lambda x: clnn.ops.scans._cumsum(x, x.ndim // 2, True),
                                                 lambda x: x.cummax(x.ndim // 2)[1])]
        finish(out)
    return out


def behind_relu(x, gradient):
    """Statistics of a batch whose result is in memory, behind a relu, before the gradient comes."""
    from unittest import mock
    with mock.patch.object(sys.modules["clnn.ops.normalization"], "_FEW", 0):
        y = clnn.relu(clnn.nn.functional.batch_norm(x, None, None, training=True))
        y.detach().numpy()
        y.backward(gradient)
    return x.grad


def on_tensor_cores(a, b, dtype, turned):
    """Products by the kernels for tensor cores, with their instruction spelt out."""
    from clnn.core.config import config
    from clnn.runtime import params
    a, b = ((x.detach().t().contiguous().t() if turned else x.detach()).to(dtype) for x in (a, b))
    config.tensor_cores = "emulate"
    clnn.set_float32_matmul_precision("high")
    for kernel in ("pipeline", "tensor"):
        with params.forced("gemm_tensor", {"BLOCK": "32x32", "KERNEL": kernel}):
            params.changed()            # plans that were made for the other one
            c = a @ b
            c.float().numpy()
            if dtype is clnn.float16:
                clnn._int_mm(a.to(clnn.int8), b.to(clnn.int8).t().contiguous().t()).numpy()
    with params.forced("gemm_tensor", {"BLOCK": "32x32"}), params.forced("conv_tensor", {"BLOCK": "32x32", "LAST": turned}):
        if dtype is not clnn.float32:
            finish(clnn.nn.functional.conv2d(a.reshape(1, 32, 12, 12).requires_grad_(), b[:64, :32].reshape(64, 32, 1, 1).requires_grad_()))
            q, k = a.reshape(1, 2, 64, 36)[:, :, :20, :16], b.reshape(1, 1, 80, 72)[..., :24]
            q, k = q.detach().requires_grad_(), k.detach().requires_grad_()
            clnn.nn.functional.scaled_dot_product_attention(q, k[..., :16], k, is_causal=turned, enable_gqa=True).sum().backward()
            k.grad.float().numpy()
    by_warpgroups(a, b)
    clnn.set_float32_matmul_precision("highest")
    config.tensor_cores = "auto"
    return c


def by_warpgroups(a, b):
    """The product by Hopper's instructions, spelt out, in a block of one warpgroup."""
    from unittest import mock
    from clnn.ops import _gemm_warpgroup
    from clnn.runtime import params
    device = clnn.get_default_device().physical
    with mock.patch.object(device, "compute_capability", (9, 0)), mock.patch.object(_gemm_warpgroup, "BLOCKS", {"64x64": (1, 64, 3, 1.0)}), \
            params.forced("gemm_warpgroup", {"BLOCK": "64x64"}), mock.patch.object(_gemm_warpgroup, "_GAIN", 1.0):
        (a @ b).float().numpy()
        if b.itemsize == 2:
            q = b.reshape(1, 1, 90, 64)
            q = q.detach().requires_grad_()
            finish(clnn.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True))


def by_channels(x, w, b):
    """Convolutions and a gradient with output channels in the lanes: padded, with phases in pairs, and with nothing outside."""
    from unittest import mock
    from clnn.ops import _conv_direct
    with mock.patch.object(_conv_direct.Direct, "suits", lambda *args: True):
        finish(clnn.nn.functional.conv2d(x, w, b, stride=2, padding=1))
        finish(clnn.nn.functional.conv2d(x, w, b))
        finish(clnn.nn.functional.conv2d(x.detach().repeat(4, 3, 1, 1)[:, :48, :4, :4], w.detach().repeat(1, 3, 1, 1)[:, :48, :3, :3], padding=1))
    return x.grad


def in_parts(x, w, b):
    """A convolution and its gradients with their steps split."""
    from unittest import mock
    from clnn.ops import _conv_gpu
    choose = _conv_gpu._choose
    with mock.patch.object(_conv_gpu, "_choose", lambda *args: (choose(*args)[0], 3)):
        y = clnn.nn.functional.conv2d(x, w, b)
        finish(y)
    return y.detach()


def by_words(a, b, x, w):
    """Products and a convolution by the kernels for instructions that multiply words, with these spelt out."""
    from unittest import mock
    from clnn.core.config import config
    from clnn.ops import _gemm_words
    with mock.patch.object(clnn.get_default_device().physical, "registers", 2048), mock.patch.object(config, "tensor_cores", "emulate"), \
            mock.patch.object(_gemm_words, "LEAST", 0):
        out = [a.bfloat16() @ b.bfloat16(), a.t().bfloat16().contiguous().t() @ b.t().bfloat16().contiguous().t(), clnn._int_mm(a.to(clnn.int8), b.to(clnn.int8))]
        x, w = x.bfloat16().requires_grad_(), w.bfloat16().requires_grad_()
        y = clnn.nn.functional.conv2d(x, w, padding=1)
        y.backward(y.detach())
        finish([*out, x.grad, w.grad])
    return out


def in_blocks(a, b):
    """Factors and equations by the kernels for larger matrices."""
    from unittest import mock
    from clnn.ops import _small
    with mock.patch.multiple(_small, _WHOLE=50, _MANY=20, _REFLECTED=20):
        out = [*clnn.linalg.lu_factor(a), clnn.linalg.inv(a), clnn.linalg.solve(a, b), clnn.linalg.cholesky(a @ a.mT + clnn.eye(70)), *clnn.linalg.qr(b)]
        return out + [*clnn.linalg.qr(b.mT, "complete"), clnn.linalg.solve_triangular(a, b, upper=True)]


def pairs_of_differences():
    p = clnn.linspace(-1, 1, 21).requires_grad_()
    opt = clnn.optim.LBFGS([p], history_size=3)

    def closure():
        opt.zero_grad()
        loss = (p ** 4).sum() + p.sum()
        loss.backward()
        return loss
    opt.step(closure)


def optimisers():
    out = []
    for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad"):
        p = clnn.nn.Parameter(clnn.ones(40))
        opt = getattr(clnn.optim, name)([p], lr=0.1)
        for _ in range(2):
            opt.zero_grad()
            (p * p).sum().backward()
            opt.step()
        out.append(p.detach())
    return out


def finish(result):
    """Run backward from whatever can, and wait, so that every error is reported here."""
    outs = [o for o in cases.flatten(result) if isinstance(o, clnn.Tensor)]
    live = [o for o in outs if o.requires_grad]
    if live:
        clnn.autograd.backward(live, [clnn.ones_like(o) for o in live])
    for o in outs:
        o.detach().tolist()
    clnn.synchronize()


def sweep(only, limit, skipped=()):
    """Every operator's first samples in float32, then the larger calls; yields (name, seconds, error or None)."""
    jobs = []
    for op in cases.operators():
        row = cases.native_row(op)
        for call in cases.calls(op, row)[:limit]:
            def job(op=op, call=call):
                make = call.map(lambda a: cases.to_tensor(a, requires_grad=True))
                return cases.called(op.fn, make.args, make.kwargs, op.params)
            jobs.append((f"{op.name}{call}", job))
    jobs += larger()
    for name, job in jobs:
        if only and not any(o in name for o in only) or name.partition("(")[0] in skipped:
            continue
        print("sweep:", name, file=sys.stderr, flush=True)
        start, fault = time.perf_counter(), None
        try:
            finish(job())
        except Exception as exc:
            fault = None if isinstance(exc, NotImplementedError) else exc
        yield name, time.perf_counter() - start, fault


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--as", dest="kind", choices=["pocl", "gpu"], help="choose kernels as for such a device")
    parser.add_argument("--only", nargs="*", help="parts of operator names")
    parser.add_argument("--samples", type=int, default=2, help="samples per operator")
    parser.add_argument("--json", help="write the launched templates to this file")
    args = parser.parse_args()
    dev = clnn.get_default_device().physical
    skipped = SIMULATOR_LACKS if dev.flavour == "oclgrind" else ()
    if args.kind:
        dev.flavour, dev.is_cpu = ("pocl", True) if args.kind == "pocl" else ("other", False)
    used, plain = set(), type(dev).kernel

    def kernel(self, path, **params):
        used.add(path.partition(":")[0])
        return plain(self, path, **params)
    type(dev).kernel = kernel
    failed = 0
    for name, seconds, fault in sweep(args.only, args.samples, skipped):
        if fault is not None and not cases.is_dtype_error(fault):
            failed += 1
            print(f"FAILED {name}: {type(fault).__name__}: {str(fault)[:400]}")
    templates = {p.relative_to(ROOT / "kernels").as_posix().removesuffix(".cl.mako") for p in (ROOT / "kernels").rglob("*.cl.mako")
                 if "__kernel" in p.read_text() and p.parent.name != "common"}
    if args.json:
        Path(args.json).write_text(json.dumps(sorted(used)))
    print(f"{len(used & templates)} of {len(templates)} kernel templates launched; not launched: {sorted(templates - used)}")
    return 1 if failed else 0


if __name__ == "__main__":
    assert checks
    sys.exit(main())
