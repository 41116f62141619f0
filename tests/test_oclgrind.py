"""Every kernel template under Oclgrind, which reports accesses out of bounds and data races: see kernel_sweep.py.

The simulator always leaves with status 0, so its log is read. Runs with the PoCL pass only, as it does not depend on the tested driver.
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
    pytest.mark.skipif(os.environ.get("CLNN_DEVICE", "pocl") != "pocl", reason="runs once, with CLNN_DEVICE=pocl"),
]


def simulate(command, log, timeout=900):
    """Run under the simulator; returns (process, text of its log)."""
    env = {**os.environ, "CLNN_DEVICE": "oclgrind", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(["oclgrind", "--data-races", "--max-errors", "50", "--log", str(log), sys.executable, *map(str, command)],
                          capture_output=True, text=True, env=env, cwd=ROOT, timeout=timeout)
    return done, log.read_text() if log.is_file() else ""


def run_kernel(body, log):
    code = ("import numpy as np\nfrom clnn.runtime.device import get_device\nfrom clnn.runtime.launch import launch\n"
            "d = get_device('oclgrind')\nb = d.alloc(64)\nd.write(b, np.zeros(16, np.float32))\n"
            f"k = d.kernel_from_source('__kernel void k(__global float* x) {{ int i = get_global_id(0); {body} }}', 'k')\n"
            "launch(d, k, (16,), (16,), b)\nd.read(b, 64)")
    return simulate(["-c", code], log)


@pytest.mark.parametrize("body, found", [("x[i] = i;", False), ("x[i + 100000] = i;", True), ("x[0] = i;", True)], ids=["right", "outside", "race"])
def test_the_simulator_reports_what_it_should(body, found, tmp_path):
    done, text = run_kernel(body, tmp_path / "log")
    assert done.returncode == 0, done.stderr
    assert bool(FAULT.search(text)) == found, text


@pytest.fixture(scope="module")
def launched():
    return set()


@pytest.mark.skipif(os.environ.get("CLNN_OCLGRIND") != "1", reason="simulating every operator takes long: set CLNN_OCLGRIND=1 (without -n)")
@pytest.mark.parametrize("kind", ["gpu", "pocl"])
def test_all_operators(kind, launched, tmp_path):
    done, text = simulate(["tests/kernel_sweep.py", "--as", kind, "--samples", "1", "--json", tmp_path / "used.json"], tmp_path / "log", 1500)
    fault = FAULT.search(text)
    assert fault is None, f"{kind}: {text[fault.start():fault.start() + 1500]}"
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    launched |= set(json.loads((tmp_path / "used.json").read_text()))


def test_every_template_was_launched(launched):
    if not launched:
        pytest.skip("the sweeps did not run in this process")
    templates = {p.relative_to(ROOT / "kernels").as_posix().removesuffix(".cl.mako") for p in (ROOT / "kernels").rglob("*.cl.mako")
                 if "__kernel" in p.read_text() and p.parent.name != "common"}
    assert not templates - launched - NOT_REACHED, f"give these a call in tests/kernel_sweep.py: {sorted(templates - launched - NOT_REACHED)}"
