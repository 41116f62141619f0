"""Operators that move more than they compute: bytes read and written per second, against a plain copy on the same driver and PyTorch.

The bytes are those that must move: each operand once, each result once. Kernels that read something twice reach less than a copy does.
"""
from __future__ import annotations

import functools

import numpy as np

import clnn

from .setup import RNG, array, contenders, copy_limit, torch
from .timing import Case

F = clnn.nn.functional
TF = torch.nn.functional if torch is not None else None
M = 1 << 20


@functools.lru_cache(maxsize=1)
def limit(elements):
    return copy_limit(elements)


def case(name, nbytes, make, *operands):
    """``make(library, functional, *tensors)`` for both libraries; operands are NumPy arrays."""
    mine = [clnn.tensor(a) for a in operands]
    theirs = [torch.tensor(a) for a in operands] if torch is not None else None
    n = max(nbytes, 1 << 20) // 8
    return Case(name, "GB/s", nbytes, contenders(lambda: make(clnn, F, *mine), theirs and (lambda: make(torch, TF, *theirs)), None, limit(n)), "copy",
                limit_amount=8 * n)


def with_gradient(name, nbytes, make, *operands):
    """The same with backward: gradients of the first operand and of all that are floats."""
    def leaves(library):
        found = []
        for a in operands:
            t = library.tensor(a)
            found.append(t.requires_grad_() if a.dtype.kind == "f" else t)
        return found

    def step(library, functional, tensors, seed):
        for t in tensors:
            t.grad = None
        make(library, functional, *tensors).backward(seed)
        return [t.grad for t in tensors if t.requires_grad]
    mine = leaves(clnn)
    grad = np.ones(tuple(make(clnn, F, *mine).shape), np.float32)
    run = [lambda: step(clnn, F, mine, seeds[0])]
    seeds = [clnn.tensor(grad)]
    if torch is not None:
        theirs = leaves(torch)
        seeds.append(torch.tensor(grad))
        run.append(lambda: step(torch, TF, theirs, seeds[1]))
    n = max(nbytes, 1 << 20) // 8
    return Case(name + ", with gradients", "GB/s", nbytes, contenders(*run, *[None] * (3 - len(run)), limit(n)), "copy", limit_amount=8 * n)


def indices(high, *shape):
    return RNG.integers(0, high, shape)


def reductions():
    """Few long rows, many short ones, columns."""
    for rows, cols, dim in ((1, 16 * M, 1), (64, M // 4, 1), (M // 4, 64, 1), (M, 16, 1), (4096, 4096, 0)):
        a, where = array(rows, cols), f"{rows} x {cols}, dim {dim}"
        for name in ("sum", "amax", "argmax"):
            yield case(f"{name} {where}", a.nbytes, lambda lib, f, x, n=name, d=dim: getattr(x, n)(dim=d), a)
    half = array(16 * M).astype(np.float16)
    yield case("sum of float16", half.nbytes, lambda lib, f, x: x.sum(), half)


def rows():
    """Softmax and normalisations."""
    for r, c in ((65536, 10), (65536, 64), (16384, 1000), (256, 50257)):
        a = array(r, c)
        yield case(f"softmax {r} x {c}", 2 * a.nbytes, lambda lib, f, x: f.softmax(x, -1), a)
        yield with_gradient(f"log_softmax {r} x {c}", 5 * a.nbytes, lambda lib, f, x: f.log_softmax(x, -1), a)
    for r, c in ((16384, 768), (1024, 256)):
        a = array(r, c)
        yield with_gradient(f"layer_norm {r} x {c}", 5 * a.nbytes, lambda lib, f, x, w, b: f.layer_norm(x, w.shape, w, b), a, array(c), array(c))
    for shape in ((16, 64, 56, 56), (64, 512, 4, 4)):
        a = array(*shape)
        yield with_gradient("batch_norm " + " x ".join(map(str, shape)), 6 * a.nbytes,
                            lambda lib, f, x, w, b: f.batch_norm(x, None, None, w, b, training=True), a, array(shape[1]), array(shape[1]))
    a = array(1024, 1000)
    yield with_gradient("cross_entropy 1024 x 1000", 3 * a.nbytes, lambda lib, f, x, y: f.cross_entropy(x, y), a, indices(1000, 1024))


def scans_and_sorts():
    for shape, dim in (((4 * M,), 0), ((4096, 1024), 1), ((4096, 1024), 0)):
        a = array(*shape)
        for name in ("cumsum", "cummax"):
            yield case(f"{name} {' x '.join(map(str, shape))}, dim {dim}", a.nbytes * (2 if name == "cumsum" else 4),
                       lambda lib, f, x, n=name, d=dim: tuple(getattr(x, n)(d)) if n == "cummax" else getattr(x, n)(d), a)
    for shape in ((M,), (1000, 1000), (65536, 16)):
        a, where = array(*shape), " x ".join(map(str, shape))
        yield case(f"sort {where}", 4 * a.nbytes, lambda lib, f, x: tuple(x.sort()), a)
        yield case(f"median {where}", a.nbytes, lambda lib, f, x: tuple(x.median(-1)), a)


def indexing():
    table, at = array(50000, 128), indices(50000, 65536)
    moved = 2 * 65536 * 128 * 4
    yield case("embedding 65536 of 50000 x 128", moved, lambda lib, f, w, i: f.embedding(i, w), table, at)
    yield with_gradient("embedding 65536 of 50000 x 128", 2 * moved + table.nbytes, lambda lib, f, w, i: f.embedding(i, w), table, at)
    a, place = array(4096, 1024), indices(1024, 4096, 1024)
    yield case("gather 4096 x 1024, dim 1", 4 * a.nbytes, lambda lib, f, x, i: x.gather(1, i), a, place)
    yield case("scatter_add 4096 x 1024, dim 1", 5 * a.nbytes, lambda lib, f, x, i: x.scatter_add(1, i, x), a, place)
    yield case("scatter_add of a million into 100000", 13 * M, lambda lib, f, x, i, s: x.scatter_add(0, i, s), array(100000), indices(100000, M), array(M))
    yield case("bincount of 4 million", 32 * M, lambda lib, f, i: lib.bincount(i, minlength=1000), indices(1000, 4 * M))
    yield case("masked_fill", 9 * 4 * M, lambda lib, f, x, m: x.masked_fill(m, 0.0), array(4 * M), RNG.random(4 * M) < 0.5)
    yield case("nonzero", 9 * 4 * M, lambda lib, f, m: m.nonzero(), RNG.random(4 * M) < 0.5)


def copies():
    image = array(16, 64, 56, 56)
    yield case("transpose 4096 x 4096", 128 * M, lambda lib, f, x: x.t().contiguous(), array(4096, 4096))
    yield case("NCHW to NHWC, 64 channels", 2 * image.nbytes, lambda lib, f, x: x.permute(0, 2, 3, 1).contiguous(), image)
    photo = array(16, 3, 224, 224)
    yield case("NCHW to NHWC, 3 channels", 2 * photo.nbytes, lambda lib, f, x: x.permute(0, 2, 3, 1).contiguous(), photo)
    heads = array(16, 512, 8, 64)
    yield case("heads of attention, 16 x 512 x 8 x 64", 2 * heads.nbytes, lambda lib, f, x: x.transpose(1, 2).contiguous(), heads)
    a = array(4096, 1024)
    yield case("cat of 2, dim 1", 4 * a.nbytes, lambda lib, f, x: lib.cat([x, x], 1), a)
    yield case("stack of 3, last dim", 24 * M, lambda lib, f, x: lib.stack([x, x, x], -1), array(M))
    yield case("tril 4096 x 4096", 128 * M, lambda lib, f, x: x.tril(), array(4096, 4096))
    big = array(16 * M)
    yield case("dropout", 2 * big.nbytes, lambda lib, f, x: f.dropout(x, 0.1), big)
    yield case("to float16", 6 * 16 * M, lambda lib, f, x: x.half(), big)
    yield case("float16 x * 2 + 1", 4 * 16 * M, lambda lib, f, x: x * 2 + 1, big.astype(np.float16))


def images():
    a = array(16, 64, 56, 56)
    yield with_gradient("max_pool2d 3, stride 2", 2 * a.nbytes + a.nbytes, lambda lib, f, x: f.max_pool2d(x, 3, 2, 1), a)
    yield with_gradient("avg_pool2d 2", 2 * a.nbytes + a.nbytes // 2, lambda lib, f, x: f.avg_pool2d(x, 2), a)
    yield with_gradient("adaptive_avg_pool2d 5 of 28", a.nbytes // 2, lambda lib, f, x: f.adaptive_avg_pool2d(x, 5), array(16, 64, 28, 28))
    yield with_gradient("interpolate 28 to 56, bilinear", 5 * a.nbytes // 2, lambda lib, f, x: f.interpolate(x, scale_factor=2, mode="bilinear"),
                        array(16, 64, 28, 28))


def memory():
    """All groups of this file."""
    for group in (reductions, rows, scans_and_sorts, indexing, copies, images):
        yield from group()
