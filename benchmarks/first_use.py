"""What a new user waits for: the import, and the first training step of the digits example with empty and with filled kernel caches."""
from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from .timing import Case, Contender

ROOT = Path(__file__).resolve().parent.parent
_STEP = """
import time, sys
start = time.perf_counter()
sys.path.insert(0, {root!r})
import clnn
from clnn import nn
net = nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64),
                    nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 10))
optimizer = clnn.optim.AdamW(net.parameters())
loss = nn.functional.cross_entropy(net(clnn.randn(64, 1, 8, 8)), clnn.randint(0, 10, (64,)))
loss.backward()
optimizer.step()
loss.item()
clnn.synchronize()
print(time.perf_counter() - start)
"""


def run(code, cache):
    """Seconds that ``code`` prints, in a process of its own with caches in this folder."""
    env = {**os.environ, "CLNN_CACHE_DIR": str(Path(cache, "clnn")), "POCL_CACHE_DIR": str(Path(cache, "pocl"))}
    for name in ("CLNN_POCL_CACHE", "PYTHONDONTWRITEBYTECODE"):
        env.pop(name, None)
    env["PYTHONPYCACHEPREFIX"] = str(Path(cache, "bytecode"))
    done = subprocess.run([sys.executable, "-c", code], env=env, cwd=cache, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return float(done.stdout.split()[-1])


def first_use():
    """Milliseconds with filled caches; the note has those with empty ones."""
    code = _STEP.format(root=str(ROOT))
    with tempfile.TemporaryDirectory() as cache:
        for name, text in (("import clnn", f"import time, sys; sys.path.insert(0, {str(ROOT)!r}); t = time.perf_counter(); import clnn; "
                                           "print(time.perf_counter() - t)"), ("first step of the digits CNN, with import and device", code)):
            cold = run(text, cache)
            yield Case(name, "ms", 1, [Contender("clnn", lambda text=text: run(text, cache))],
                       note=f"with empty caches {cold * 1e3:.0f} ms" if text is code else "")
