"""Transforms, many small matrices, batches of samples and L-BFGS: what scientific programs and data loaders call."""
from __future__ import annotations

import numpy as np

from .setup import RNG, array, contenders, tensors, torch
from .timing import Case


def _pair(name, unit, amount, call, *arrays):
    import clnn
    mine, others = tensors(*arrays)
    return Case(name, unit, amount, contenders(lambda: call(clnn, *mine), torch is not None and (lambda: call(torch, *others)) or None))


def _transforms():
    for shape in ((20, 32, 64, 64), (8, 32, 85, 85), (2, 8, 421, 421)):
        yield _pair(f"rfft2 {' x '.join(map(str, shape))}", "ms", 1, lambda lib, x: lib.fft.rfft2(x), array(*shape))
    for n in (1024, 1000, 997):
        yield _pair(f"rfft 256 x {n}", "us", 1, lambda lib, x: lib.fft.rfft(x), array(256, n))
    yield _pair("stft of 8 x 16000, windows of 400", "us", 1, lambda lib, x: lib.stft(x, 400, 160, window=lib.ones(400), return_complex=True), array(8, 16000))


def _matrices():
    for shape in ((2000, 3, 3), (200, 8, 8), (64, 32, 32), (512, 512)):
        a = array(*shape)
        square = a @ a.swapaxes(-1, -2) + np.eye(shape[-1], dtype=np.float32)
        for name in ("qr", "eigvalsh", "svdvals", "inv", "pinv", "det"):
            yield _pair(f"{name} {' x '.join(map(str, shape))}", "us", 1,
                        lambda lib, x, f=name: getattr(lib.linalg, f)(x), square)
        yield _pair(f"lstsq {' x '.join(map(str, shape))}", "us", 1, lambda lib, x: lib.linalg.lstsq(x, x)[0], square)


class _Samples:
    """A dataset whose samples are tensors made when they are asked for."""

    def __init__(self, lib, image, make):
        self.lib, self.image, self.make = lib, image, make

    def __len__(self):
        return 1024

    def __getitem__(self, i):
        return self.make(self.lib, self.image, i), i % 10


def _loop(loader):
    return lambda: [images for images, _ in loader]


def _batches():
    import clnn
    image = array(28, 28)
    whole = {lib: lib.tensor(array(1024, 28, 28)) * 1 for lib in (clnn, torch) if lib is not None}
    for name, make in (("tensor", lambda lib, a, i: lib.tensor(a)), ("from_numpy", lambda lib, a, i: lib.from_numpy(a)),
                       ("from_numpy, scaled", lambda lib, a, i: (lib.from_numpy(a) - 0.1307) / 0.3081),
                       ("rows of a tensor, scaled", lambda lib, a, i: (whole[lib][i * 7 % 1024] - 0.1307) / 0.3081)):
        loops = [_loop(lib.utils.data.DataLoader(_Samples(lib, image, make), batch_size=64)) for lib in (clnn, torch) if lib is not None]
        yield Case(f"1024 samples of 28 x 28 in batches of 64, {name}", "ms", 1, contenders(*loops))
    yield _pair("64 times 20 normal numbers and one of 10", "us", 1, lambda lib: [(lib.randn(20), lib.randint(10, (1,))) for _ in range(64)])
    samples = RNG.standard_normal((64, 3, 32, 32), dtype=np.float32)
    yield _pair("stack of 64 tensors 3 x 32 x 32", "us", 1, lambda lib, *s: lib.stack([t + 0 for t in s]), *samples)


def _minimiser(lib, matrix):
    p = lib.zeros(matrix.shape[1]).requires_grad_()
    opt = lib.optim.LBFGS([p], max_iter=20, history_size=50, tolerance_grad=0, tolerance_change=0)

    def closure():
        opt.zero_grad()
        loss = ((matrix @ p - 1) ** 2).mean() + (p ** 4).mean()
        loss.backward()
        return loss
    return lambda: opt.step(closure)


def _lbfgs():
    import clnn
    (a,), (b,) = tensors(array(256, 2000, scale=0.02))
    yield Case("L-BFGS, 20 iterations of 2000 parameters", "ms", 1, contenders(_minimiser(clnn, a), torch is not None and _minimiser(torch, b) or None))


def science():
    """Time per call."""
    for group in (_transforms, _matrices, _batches, _lbfgs):
        yield from group()
