"""What all benchmark files share: the device under test, the optional peers, and the device's own limits."""
from __future__ import annotations

import os
import time

import numpy as np

import clnn
from clnn.core import dtype as dt
from clnn.runtime.launch import launch

from . import timing
from .timing import Contender

try:
    import torch
    torch.set_num_threads(os.cpu_count() or 1)
except ImportError:
    torch = None

DEVICE = clnn.get_default_device().physical
RNG = np.random.default_rng(0)
SAME_GPU = torch is not None and DEVICE.kind == "gpu" and torch.cuda.is_available()     # PyTorch, and the vendor's libraries with it, work on a GPU, too
if SAME_GPU:
    torch.set_default_device("cuda")
    torch.backends.cudnn.allow_tf32 = False     # as in products: float32 is float32
if DEVICE.kind == "gpu":
    timing.PAUSE = 0.0                          # no worker threads spin
PEERS = {"numpy", "torch", "limit", "clnn"}            # which contenders to run; the command line may take some out


def array(*shape, scale=1.0):
    return (RNG.standard_normal(shape, dtype=np.float32) * scale).astype(np.float32)


def realise(value):
    """Have lazy results computed (enqueued), without waiting."""
    if isinstance(value, clnn.Tensor):
        value._storage.buffer()
    elif isinstance(value, (list, tuple)):
        for v in value:
            realise(v)
    return value


def ours(fn, name="clnn"):
    """clnn as a contender: ``fn`` returns what must be computed."""
    return Contender(name, lambda: realise(fn()), clnn.synchronize)


def theirs(fn):
    """PyTorch as a contender."""
    return Contender("torch", fn, torch.cuda.synchronize if SAME_GPU else None)


def contenders(clnn_fn, torch_fn=None, numpy_fn=None, *more):
    """The usual list: clnn, PyTorch and NumPy where they are installed and asked for."""
    out = [ours(clnn_fn)]
    if torch is not None and torch_fn is not None and "torch" in PEERS:
        out.append(theirs(torch_fn))
    if numpy_fn is not None and "numpy" in PEERS:
        out.append(Contender("numpy", numpy_fn))
    return out + [m for m in more if m is not None and m.name in PEERS]


def tensors(*arrays, grad=False):
    """(clnn tensors, torch tensors) of the same values."""
    mine = [clnn.tensor(a, requires_grad=grad and a.dtype.kind == "f") for a in arrays]
    theirs = [torch.tensor(a, requires_grad=grad and a.dtype.kind == "f") for a in arrays] if torch is not None else [None] * len(arrays)
    return mine, theirs


# -- the device's limits ------------------------------------------------------------------------------------------------------------

_COPY = """
__kernel void plain_copy(__global const float* restrict x, __global float* restrict y, const long n) {
    const long i = get_global_id(0);
    if (i < n) y[i] = x[i];
}
__kernel void vector_copy(__global const float* restrict x, __global float* restrict y, const long n) {
    const long first = (long)get_global_id(0) * 1024;
    for (long i = first; i < first + 1024; i++) vstore16(vload16(i, x), i, y);
}"""


def copy_limit(n):
    """A copy kernel over n floats: what a stream of reads and writes can reach. Of two forms the one that is faster here: an element per work-item
    (which some CPU drivers guard by masked stores), or runs of vectors."""
    source, target = DEVICE.alloc(4 * n), DEVICE.alloc(4 * n)
    DEVICE.write(source, array(n))
    forms = [("plain_copy", (n,), (256,))] + ([("vector_copy", (n // 16384,), (1,))] if DEVICE.is_cpu and n >= 1 << 20 and not n % 16384 else [])
    found = []
    for name, *sizes in forms:
        kernel = DEVICE.kernel_from_source(_COPY, name)
        run = Contender("limit", lambda kernel=kernel, sizes=sizes: launch(DEVICE, kernel, *sizes, source, target, n), DEVICE.synchronize)
        found.append((_seconds(run), len(found), run))
    return min(found)[-1]


def _seconds(contender):
    """The shortest of a few calls."""
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        contender.run()
        contender.wait()
        best = min(best, time.perf_counter() - start)
    return best


def multiply_add_limit():
    """(contender, operations per call): independent fused multiply-adds in registers."""
    width = DEVICE.lanes("float") if DEVICE.is_cpu else 4
    kernel = DEVICE.kernel("profiler/multiply_add", WIDTH=width)
    items, steps = max(256, 64 * DEVICE.compute_units), 20000 if DEVICE.is_cpu else 2000
    if not DEVICE.is_cpu:
        items = 2048 * DEVICE.compute_units
    out = DEVICE.alloc(4 * items)
    run = Contender("limit", lambda: launch(DEVICE, kernel, (items,), (1 if DEVICE.flavour == "pocl" else 64,), items, steps, 0.5, out), DEVICE.synchronize)
    return run, items * steps * 8 * width * 2


assert dt
