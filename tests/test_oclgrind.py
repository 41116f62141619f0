"""Every kernel template under Oclgrind, which reports accesses out of bounds and data races: see kernel_sweep.py.

The simulator always leaves with status 0, so its log is read. It does not depend on the tested driver, so of two passes the one on PoCL, whose builds
take longest, leaves it to the other.
"""
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FAULT = re.compile(r"^(?:Invalid |Read-write data race|Write-write data race|.*data race|.*divergence|Unaligned|.*index out of range)", re.M | re.I)
# Launched for sizes or devices that the simulator does not reach in reasonable time.
NOT_REACHED = {"profiler/multiply_add", "matmul/panels"}

pytestmark = [
    pytest.mark.skipif(shutil.which("oclgrind") is None, reason="oclgrind is not installed (apt-get install oclgrind)"),
    pytest.mark.skipif(os.environ.get("CLNN_DEVICE") == "pocl", reason="does not depend on the driver: runs without CLNN_DEVICE or with CLNN_DEVICE=intel"),
]


def start(command, log):
    """A process under the simulator."""
    env = {**os.environ, "CLNN_DEVICE": "oclgrind", "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(["oclgrind", "--data-races", "--max-errors", "50", "--local-mem-size", "262144", "--log", str(log), sys.executable, *map(str, command)],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, cwd=ROOT)


def end(child, log, timeout=120):
    """Wait for it; returns (exit status, what it printed, text of the simulator's log)."""
    try:
        out, errors = child.communicate(timeout=timeout)
    finally:
        child.kill()
    return child.returncode, out + errors[-2000:], log.read_text() if log.is_file() else ""


def run_kernel(body, log):
    code = ("import numpy as np\nfrom clnn.runtime.device import get_device\nfrom clnn.runtime.launch import launch\n"
            "d = get_device('oclgrind')\nb = d.alloc(64)\nd.write(b, np.zeros(16, np.float32))\n"
            f"k = d.kernel_from_source('__kernel void k(__global float* x) {{ int i = get_global_id(0); {body} }}', 'k')\n"
            "launch(d, k, (16,), (16,), b)\nd.read(b, 64)")
    return end(start(["-c", code], log), log)


@pytest.mark.parametrize("body, found", [("x[i] = i;", False), ("x[i + 100000] = i;", True), ("x[0] = i;", True)], ids=["right", "outside", "race"])
def test_the_simulator_reports_what_it_should(body, found, tmp_path):
    status, printed, text = run_kernel(body, tmp_path / "log")
    assert status == 0, printed
    assert bool(FAULT.search(text)) == found, text


def test_every_template_is_clean(tmp_path):
    """All operators, once with the kernels for GPUs and once with those for PoCL: no fault, and no template that was never launched."""
    kinds, launched = ("gpu", "pocl"), set()
    running = [start(["tests/kernel_sweep.py", "--as", kind, "--samples", "1", "--json", tmp_path / kind], tmp_path / f"{kind}.log") for kind in kinds]
    for kind, child in zip(kinds, running):
        status, printed, text = end(child, tmp_path / f"{kind}.log", 1500)
        fault = FAULT.search(text)
        assert fault is None, f"{kind}: {text[fault.start():fault.start() + 1500]}"
        assert status == 0, f"{kind}: {[line for line in printed.splitlines() if line.startswith('FAILED')]} {printed[-3000:]}"
        launched |= set(json.loads((tmp_path / kind).read_text()))
    templates = {p.relative_to(ROOT / "kernels").as_posix().removesuffix(".cl.mako") for p in (ROOT / "kernels").rglob("*.cl.mako")
                 if "__kernel" in p.read_text() and p.parent.name != "common"}
    assert not templates - launched - NOT_REACHED, f"give these a call in tests/kernel_sweep.py: {sorted(templates - launched - NOT_REACHED)}"
