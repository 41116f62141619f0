"""Memory of training loops whose shapes are new in nearly every step: ``python -m benchmarks.held [--steps 800]``.

Each line is a process of its own: what it holds at the end (MiB), and of that what clnn's pool of buffers holds, beside the most that was in use at once.
"""
from __future__ import annotations

import argparse
import importlib
import random
import subprocess
import sys

PACKAGES, KINDS = ("clnn", "torch"), ("transformer", "images")


def losses(lib, kind):
    """A model's parameters and a function that gives the loss of the next batch."""
    nn, F = lib.nn, lib.nn.functional
    if kind == "transformer":
        net = nn.Sequential(nn.Embedding(500, 64), nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 2), nn.Linear(64, 500))

        def loss():
            size = random.randint(1, 17), random.randint(5, 120)
            words, wanted = lib.randint(0, 500, size), lib.randint(0, 500, size)
            return F.cross_entropy(net(words).flatten(0, 1), wanted.flatten())
    else:
        net = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
                            nn.Flatten(), nn.Linear(32, 10))

        def loss():
            count, height, width = random.randint(1, 9), random.randint(16, 160), random.randint(16, 160)
            return F.cross_entropy(net(lib.randn(count, 3, height, width)), lib.randint(0, 10, (count,)))
    return net.parameters(), loss


def run(package, kind, steps):
    """Train, and print a line."""
    lib = importlib.import_module(package)
    random.seed(0)
    lib.manual_seed(0)
    params, loss = losses(lib, kind)
    optimizer = lib.optim.AdamW(params)
    for _ in range(steps):
        value = loss()
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        value.item()
    with open("/proc/self/status") as file:
        resident = next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024
    held = ""
    if package == "clnn":
        stats = lib.get_default_device().physical.memory.stats()
        held = f"{stats['reserved'] / 2 ** 20:10.0f}{stats['peak_allocated'] / 2 ** 20:10.0f}"
    print(f"{kind:16s}{package:8s}{resident:10.0f}{held}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--one", nargs=2, metavar=("PACKAGE", "KIND"), help="only this, in this process")
    args = parser.parse_args()
    if args.one:
        return run(*args.one, args.steps)
    print(f"{'':16s}{'':8s}{'resident':>10s}{'pool':>10s}{'in use':>10s}", flush=True)
    for kind in KINDS:
        for package in PACKAGES:
            subprocess.run([sys.executable, "-m", "benchmarks.held", "--steps", str(args.steps), "--one", package, kind], check=package == "clnn")
    return 0


if __name__ == "__main__":
    sys.exit(main())
