"""Share of the multiply-add peak over sizes, as a picture: ``python -m benchmarks.roofline [--op gemm,conv2d,attention] [--out FILE.png]``.

The peak is measured in the same run, by independent multiply-adds in registers; the contenders take turns at each size. Needs matplotlib.
"""
from __future__ import annotations

import argparse
import sys

from .setup import DEVICE, array, contenders, multiply_add_limit, tensors, torch
from .timing import Case, measure


def gemm(n):
    a, b = array(n, n), array(n, n)
    (x, y), (t, u) = tensors(a, b)
    return 2.0 * n ** 3, contenders(lambda: x @ y, lambda: t @ u, lambda: a @ b)


def linear(n):
    """A layer of a training step: a batch of n rows through 512 x 512 weights."""
    from .products import TF, F
    (x, w), (t, u) = tensors(array(n, 512), array(512, 512))
    return 2.0 * n * 512 * 512, contenders(lambda: F.linear(x, w), lambda: TF.linear(t, u))


def conv2d(n):
    """3 x 3 kernels on 16 images of n x n, with channels that keep the work of a layer about equal, as in ResNet."""
    from .products import TF, F
    c = max(16, 3584 // n // 16 * 16)
    (x, w), (t, u) = tensors(array(16, c, n, n), array(c, c, 3, 3, scale=0.1))
    return 2.0 * 16 * c * c * 9 * n * n, contenders(lambda: F.conv2d(x, w, padding=1), lambda: TF.conv2d(t, u, padding=1))


def attention(n):
    from .products import TF, F
    mine, theirs = tensors(*[array(2, 8, n, 64) for _ in range(3)])
    return 4.0 * 16 * n * n * 64, contenders(lambda: F.scaled_dot_product_attention(*mine), lambda: TF.scaled_dot_product_attention(*theirs))


OPS = {"gemm": (gemm, (32, 64, 128, 256, 512, 1024, 2048)), "linear": (linear, (1, 4, 16, 64, 256, 1024)), "conv2d": (conv2d, (4, 7, 14, 28, 56)),
       "attention": (attention, (32, 64, 128, 256, 512, 1024))}


def shares(op, peak, seconds):
    """{contender: [(size, share of the peak), ...]} of an operator."""
    make, sizes = OPS[op]
    found = {}
    for n in sizes:
        flops, them = make(n)
        result = measure(Case(f"{op} {n}", "GFLOP/s", flops, them), seconds)
        for name in result.best:
            found.setdefault(name, []).append((n, result.rate(name) * 1e9 / peak))
        print(f"{op:10s} {n:5d}  " + "  ".join(f"{name} {100 * points[-1][1]:4.0f} %" for name, points in found.items()), flush=True)
    return found


def draw(table, path, title):
    """One panel per operator."""
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    figure, panels = plt.subplots(1, len(table), figsize=(5 * len(table), 4), squeeze=False)
    for axes, (op, found) in zip(panels[0], table.items()):
        for name, points in found.items():
            axes.plot(*zip(*[(n, 100 * share) for n, share in points]), marker="o", label=name)
        axes.set(title=op, xlabel="size", ylabel="% of the multiply-add peak", xscale="log", ylim=(0, None))
        axes.axhline(100, color="grey", linewidth=0.8)
        axes.grid(alpha=0.3)
        axes.legend()
    figure.suptitle(title)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.roofline", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--op", default="gemm,linear,conv2d,attention", help=f"comma-separated: {', '.join(OPS)}")
    parser.add_argument("--out", default="roofline.png")
    parser.add_argument("--seconds", type=float, default=0.5, help="time per contender and size")
    args = parser.parse_args(argv)
    limit, operations = multiply_add_limit()
    peak = operations / measure(Case("peak", "GFLOP/s", operations, [limit])).best["limit"]
    title = f"{DEVICE.name}: {peak / 1e9:.0f} GFLOP/s" + ("" if torch is None else f" (torch {torch.__version__})")
    print(title)
    draw({op: shares(op, peak, args.seconds) for op in args.op.split(",")}, args.out, title)
    return 0


if __name__ == "__main__":
    sys.exit(main())
