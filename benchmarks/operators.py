"""Single operators on tiny tensors: what a call costs the host, from Python to the enqueued launch. PyTorch computes at once, as clnn does when asked for the value."""
from __future__ import annotations

from itertools import chain

import numpy as np

import clnn

from .setup import RNG, array, contenders, torch
from .timing import Case

ELEMENTWISE = ("abs exp log1p sqrt sin tanh sigmoid neg sign floor round reciprocal square erf relu isnan logical_not").split()
TWO = "add sub mul div maximum minimum atan2 pow eq lt where_ copysign fmod".split()
REDUCTIONS = "sum mean amax argmax var std prod norm logsumexp any all cumsum median max sort topk_".split()


# Below: (name, function of the library and its tensors, operands) of each call. The operands: three of floats, the last one positive, two of numbers below 16.
def _operands():
    return array(16, 16), array(16, 16), np.abs(array(16, 16)) + 0.1, RNG.integers(0, 16, (16, 16)), RNG.integers(0, 16, 16)


def _by_name(x, y, p, at, row):
    special = {"where_": lambda lib, a, b: lib.where(a > b, a, b), "topk_": lambda lib, a: lib.topk(a, 3, -1),
               "pow": lambda lib, a, b: lib.pow(a.abs(), b)}
    for name in ELEMENTWISE:
        yield name, lambda lib, a, n=name: getattr(lib, n)(a), (p,)
    for name in TWO:
        yield name.rstrip("_"), special.get(name, lambda lib, a, b, n=name: getattr(lib, n)(a, b)), (x, y)
    for name in REDUCTIONS:
        dims = () if name == "norm" else (-1,)
        source = x > 0 if name in ("any", "all") else x
        yield name.rstrip("_") + "(-1)" * bool(dims), special.get(name, lambda lib, a, n=name, d=dims: getattr(a, n)(*d)), (source,)
    yield "sum", lambda lib, a: a.sum(), (x,)
    yield "mean", lambda lib, a: a.mean(), (x,)


def _products_and_layers(x, y, p, at, row):
    yield "a @ b", lambda lib, a, b: a @ b, (x, y)
    yield "a @ v", lambda lib, a, b: a @ b[0], (x, y)
    yield "bmm", lambda lib, a, b: lib.bmm(a, b), (array(4, 8, 8), array(4, 8, 8))
    yield "einsum", lambda lib, a, b: lib.einsum("ij,kj->ik", a, b), (x, y)
    yield "addmm", lambda lib, a, b: lib.addmm(a, a, b), (x, y)
    yield "outer", lambda lib, a: lib.outer(a[0], a[1]), (x,)
    yield "linear", lambda lib, a, b: lib.nn.functional.linear(a, b, a[0]), (x, y)
    for name in ("softmax", "log_softmax"):
        yield name, lambda lib, a, n=name: getattr(lib, n)(a, -1), (x,)
    for name in ("gelu", "silu", "softplus", "leaky_relu", "hardtanh", "normalize"):
        yield name, lambda lib, a, n=name: getattr(lib.nn.functional, n)(a), (x,)
    yield "layer_norm", lambda lib, a: lib.nn.functional.layer_norm(a, (16,), a[0], a[1]), (x,)
    yield "group_norm", lambda lib, a: lib.nn.functional.group_norm(a, 4), (x,)
    yield "batch_norm", lambda lib, a: lib.nn.functional.batch_norm(a, None, None, training=True), (x,)
    yield "conv2d", lambda lib, a, b: lib.nn.functional.conv2d(a, b, padding=1), (array(1, 4, 8, 8), array(4, 4, 3, 3))
    yield "max_pool2d", lambda lib, a: lib.nn.functional.max_pool2d(a, 2), (array(1, 4, 8, 8),)
    yield "cross_entropy", lambda lib, a, i: lib.nn.functional.cross_entropy(a, i), (x, row)
    yield "mse_loss", lambda lib, a, b: lib.nn.functional.mse_loss(a, b), (x, y)
    yield "embedding", lambda lib, a, i: lib.nn.functional.embedding(i, a), (x, row)
    yield "one_hot", lambda lib, i: lib.nn.functional.one_hot(i, 16), (row,)
    yield "pad", lambda lib, a: lib.nn.functional.pad(a, (1, 1)), (x,)
    yield "dropout", lambda lib, a: lib.nn.functional.dropout(a, 0.5), (x,)


def _indexing_and_moves(x, y, p, at, row):
    yield "x[i]", lambda lib, a, i: a[i], (x, row)
    yield "x[mask]", lambda lib, a: a[a > 0], (x,)
    yield "x[2:5].clone()", lambda lib, a: a[2:5].clone(), (x,)
    yield "x[0] = 1", lambda lib, a: a.__setitem__(0, 1.0), (x,)
    yield "x[i] = 1", lambda lib, a, i: a.__setitem__(i, 1.0), (x, row)
    yield "add_", lambda lib, a, b: a.add_(b), (x, y)
    yield "zero_", lambda lib, a: a.zero_(), (x,)
    yield "gather", lambda lib, a, i: a.gather(1, i), (x, at)
    yield "scatter", lambda lib, a, i: a.scatter(1, i, a), (x, at)
    yield "scatter_add", lambda lib, a, i: a.scatter_add(1, i, a), (x, at)
    yield "index_select", lambda lib, a, i: a.index_select(0, i), (x, row)
    yield "cat", lambda lib, a, b: lib.cat([a, b]), (x, y)
    yield "stack", lambda lib, a, b: lib.stack([a, b]), (x, y)
    yield "t().contiguous()", lambda lib, a: a.t().contiguous(), (x,)
    yield "flip", lambda lib, a: a.flip(0), (x,)
    yield "roll", lambda lib, a: a.roll(1, 0), (x,)
    yield "tril", lambda lib, a: a.tril(), (x,)
    yield "repeat", lambda lib, a: a.repeat(2, 2), (x,)
    yield "masked_fill", lambda lib, a: a.masked_fill(a > 0, 0.0), (x,)


def _others(x, y, p, at, row):
    yield "clamp", lambda lib, a: a.clamp(-1, 1), (x,)
    yield "lerp", lambda lib, a, b: lib.lerp(a, b, 0.5), (x, y)
    yield "float to int", lambda lib, a: a.long(), (x,)
    yield "zeros", lambda lib: lib.zeros(16, 16), ()
    yield "arange", lambda lib: lib.arange(16), ()
    yield "randn", lambda lib: lib.randn(16, 16), ()
    yield "tensor of a list", lambda lib: lib.tensor([1.0, 2.0, 3.0]), ()
    yield "bincount", lambda lib, i: lib.bincount(i), (row,)
    yield "unique", lambda lib, i: lib.unique(i), (row,)
    yield "searchsorted", lambda lib, a, b: lib.searchsorted(a, b), (np.sort(x), y)
    yield "cdist", lambda lib, a, b: lib.cdist(a, b), (x, y)
    yield "multinomial", lambda lib, a: lib.multinomial(a, 2), (p,)
    yield "linalg.inv", lambda lib, a: lib.linalg.inv(a), (x + 8 * np.eye(16, dtype=np.float32),)
    yield "fft", lambda lib, a: lib.fft.fft(a), (x,)
    yield "interpolate", lambda lib, a: lib.nn.functional.interpolate(a, scale_factor=2), (array(1, 4, 8, 8),)
    yield "sum().item()", lambda lib, a: a.sum().item(), (x,)
    yield "backward of a sum of squares", lambda lib, a: (lib.autograd.grad((a.requires_grad_() ** 2).sum(), a)[0]), (x,)


def operators():
    """Microseconds per call."""
    arrays = _operands()
    for name, call, operands in chain(*(calls(*arrays) for calls in (_by_name, _products_and_layers, _indexing_and_moves, _others))):
        mine = [clnn.tensor(a) for a in operands]
        theirs = [torch.tensor(a) for a in operands] if torch is not None else None
        yield Case(name, "us", 1, contenders(lambda call=call, a=mine: call(clnn, *a), theirs is not None and (lambda call=call, a=theirs: call(torch, *a)) or None))
