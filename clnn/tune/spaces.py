"""What can be tuned: per operator its parameters with legal values, its problems, and how one is run and checked."""
from __future__ import annotations

import numpy as np


class Space:
    """One tunable operator.

    Attributes:
        values: parameter -> legal values, coarse ones first.
        problems: problems to tune when no file names others.
    """

    name = ""
    values: dict = {}
    problems: tuple = ()

    def prepare(self, device, problem):
        """(run, check): ``run()`` enqueues the operator once; ``check()`` is True when its result is right."""
        raise NotImplementedError


def _operands(clnn, device, *shapes):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    return arrays, [clnn.tensor(a, device=device) for a in arrays]


class Gemm(Space):
    name = "gemm"
    values = {"MR": (4, 6, 8, 12, 24), "NV": (1, 2, 3, 4), "KB": (256, 384, 512, 768)}
    problems = ((256, 256, 256), (512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048), (64, 512, 784), (64, 512, 512), (512, 512, 64),
                (1024, 768, 256), (1024, 1024, 256), (1024, 256, 1024))

    def prepare(self, device, problem):
        import clnn
        M, N, K = problem
        (a, b), (x, y) = _operands(clnn, device, (M, K), (K, N))
        want = a.astype(np.float64) @ b
        out = []

        def run():
            out[:] = [clnn.mm(x, y)]
            out[0]._storage.buffer()
        return run, lambda: bool(np.allclose(out[0].numpy(), want, rtol=1e-3, atol=1e-3 * np.sqrt(K)))


class GemmTensor(Space):
    """Products of 16-bit matrices on tensor cores: the block of a work-group, by its name in :mod:`clnn.ops._gemm_tensor`, and the kernel."""
    name = "gemm_tensor"
    values = {"BLOCK": ("128x128", "128x64", "128x128/8", "64x128", "64x64", "32x32"), "KERNEL": ("pipeline", "tensor")}
    problems = ((512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (8192, 1024, 1024), (1024, 4096, 1024), (256, 4096, 4096))

    def prepare(self, device, problem):
        import clnn
        from ..ops._gemm_tensor import kinds
        if "float16" not in kinds(device):
            raise RuntimeError(f"{device.name} has no tensor cores that clnn can use")
        M, N, K = problem
        (a, b), tensors = _operands(clnn, device, (M, K), (K, N))
        x, y = (t.half() for t in tensors)
        rows = np.unique(np.linspace(0, M - 1, 16).astype(int))     # the whole product would take the host longer than the search
        want = a[rows].astype(np.float16).astype(np.float32) @ b.astype(np.float16).astype(np.float32)
        out = []

        def run():
            out[:] = [clnn.mm(x, y)]
            out[0]._storage.buffer()
        return run, lambda: bool(np.allclose(out[0].float().numpy()[rows], want, rtol=2e-3, atol=2e-3 * np.sqrt(K)))


class GemmWarpgroup(GemmTensor):
    """Products by the instructions of four warps together: the block, by its name in :mod:`clnn.ops._gemm_warpgroup`."""
    name = "gemm_warpgroup"
    values = {"BLOCK": ("128x256", "128x128")}
    problems = ((1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (8192, 1024, 1024), (1024, 4096, 1024))

    def prepare(self, device, problem):
        from ..ops._gemm_warpgroup import able
        if not able(device):
            raise RuntimeError(f"{device.name} has no such instructions")
        return super().prepare(device, problem)


class GemmGpu(Gemm):
    """Products on GPUs without them: the tile of a work-group by its name in :mod:`clnn.ops._gemm_gpu`, steps per block of K, parts of K (0: by rule)."""
    name = "gemm_gpu"
    values = {"TILE": ("128x128", "128x64", "64x64", "64x128", "64x32", "32x64", "32x32", "64x64/256", "16x64", "64x16", "16x16"), "BK": (16, 8, 32),
              "SPLIT": (0, 1, 2, 4, 8, 16)}
    problems = ((512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (64, 512, 784), (1024, 4096, 1024), (64, 64, 16384))

    def prepare(self, device, problem):
        if device.is_cpu:
            raise RuntimeError(f"{device.name} is a CPU: see gemm")
        return super().prepare(device, problem)


class Conv2d(Space):
    name = "conv2d"
    values = {"MR": (4, 6, 8, 12, 24), "NV": (1, 2, 3, 4)}
    problems = ((16, 64, 56, 56, 64, 3), (16, 128, 28, 28, 128, 3), (16, 256, 14, 14, 256, 3), (16, 512, 7, 7, 512, 3), (64, 32, 8, 8, 64, 3))

    def prepare(self, device, problem):
        import clnn
        import clnn.nn.functional as F
        n, c, h, w, o, k = problem
        (a, b), (x, y) = _operands(clnn, device, (n, c, h, w), (o, c, k, k))
        rows = [(0, 0), (n - 1, o - 1)]
        out = []

        def run():
            out[:] = [F.conv2d(x, y, padding=k // 2)]
            out[0]._storage.buffer()

        def check():
            got, p = out[0].numpy(), k // 2
            padded = np.pad(a.astype(np.float64), ((0, 0), (0, 0), (p, p), (p, p)))
            for i, j in rows:
                want = sum(padded[i, :, dy:dy + h, dx:dx + w].transpose(1, 2, 0) @ b[j, :, dy, dx].astype(np.float64)
                           for dy in range(k) for dx in range(k))
                if not np.allclose(got[i, j], want, rtol=1e-3, atol=1e-3 * np.sqrt(c * k * k)):
                    return False
            return True
        return run, check


class Attention(Space):
    name = "attention"
    values = {"BQ": (96, 24, 48), "KB": (512, 128, 256)}
    problems = ((4, 8, 512, 64), (4, 8, 256, 64), (8, 4, 128, 64), (1, 8, 1024, 64), (4, 8, 256, 128))

    def prepare(self, device, problem):
        import clnn
        import clnn.nn.functional as F
        b, h, n, e = problem
        (q, k, v), tensors = _operands(clnn, device, *[(b, h, n, e)] * 3)
        scores = (q[0, 0].astype(np.float64) @ k[0, 0].T) / np.sqrt(e)
        weights = np.exp(scores - scores.max(1, keepdims=True))
        want = weights / weights.sum(1, keepdims=True) @ v[0, 0]
        out = []

        def run():
            out[:] = [F.scaled_dot_product_attention(*tensors)]
            out[0]._storage.buffer()
        return run, lambda: bool(np.allclose(out[0][0, 0].numpy(), want, rtol=1e-3, atol=1e-4))


SPACES = {s.name: s for s in (Gemm(), GemmGpu(), GemmTensor(), GemmWarpgroup(), Conv2d(), Attention())}
