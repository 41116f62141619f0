"""Caches that PoCL's processes share or not, and the process that builds kernels ahead of the launches."""
import os
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from bare import DEVICES, upload

from clnn.core.config import cache_dir, config
from clnn.runtime import ahead, icd, launch, program

ROOT = Path(__file__).parents[1]
DEVICE = next((d for d in DEVICES if d.flavour in ("pocl", "intel-cpu")), None)
POCL = next((d for d in DEVICES if d.flavour == "pocl"), None)
needs_pocl = pytest.mark.skipif(POCL is None or DEVICE is not POCL or not icd.shares_pocl_cache() or not hasattr(os, "sched_getaffinity"), reason="needs PoCL 3")


def folder_of(version, folder):
    """A process that chose its cache folder of PoCL and keeps it until its input ends."""
    code = f"from clnn.runtime import icd\nimport os, sys\nicd.choose_pocl_cache({version!r})\nprint(os.environ['POCL_CACHE_DIR'], flush=True)\nsys.stdin.read()"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "POCL_CACHE_DIR": str(folder)}
    env.pop("CLNN_POCL_CACHE", None)
    return subprocess.Popen([sys.executable, "-c", code], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="folders are left alone elsewhere")
@pytest.mark.parametrize("version, shared", [("OpenCL 3.0 PoCL 3.1+debian  Linux", True), ("OpenCL 3.0 PoCL 6.0  Linux", False), ("something new", False)])
def test_a_cache_folder_is_shared_where_that_is_known_to_be_safe(version, shared, tmp_path):
    pair = [folder_of(version, tmp_path) for _ in range(2)]
    first, second = [child.stdout.readline().strip() for child in pair]
    for child in pair:
        child.communicate()
    assert Path(first).parent == Path(second).parent == tmp_path and Path(first).is_dir()
    assert (first == second) is shared


def sources(tag, count=4):
    return [f"__kernel void k(__global float* x, const long n, const float a) {{ long i = get_global_id(0); if (i < n) x[i] = a * {i} + {tag}; }}"
            for i in range(count)]


@pytest.fixture
def helper():
    found = ahead.Helper(DEVICE)
    assert found.start()
    yield found
    found.child.kill()
    found.child.wait()


@needs_pocl
def test_kernels_are_there_before_their_first_launch(helper):
    texts = sources(time.time_ns() % 10**6)
    programs = [program.Program(POCL, text, "test") for text in texts]
    program.build(POCL, programs, helper)
    kernels = [program.Kernel(p, "k") for p in programs]
    x = POCL.alloc(400)
    helper.run([(k, *launch.sizes_of(POCL, k, (100,), None), (x, 100, 2.0)) for k in kernels])
    cache, names = Path(os.environ["POCL_CACHE_DIR"]), [p.names.get("k", "k") for p in programs]
    begun = time.time()
    while left := [name for name in names if not any(f.stat().st_mtime > begun - 60 for f in cache.glob(f"*/*/{name}/*/{name}.so"))]:
        assert time.time() < begun + 60, left
        time.sleep(0.1)
    for i, (kernel, text) in enumerate(zip(kernels, texts)):
        launch.launch(POCL, kernel, (100,), None, x, 100, 2.0)
        assert (POCL.read(x, 400).view(np.float32) == np.float32(2.0 * i + int(text.split("+ ")[1].split(";")[0]))).all()


@needs_pocl
def test_a_helper_that_dies_is_not_asked_again(helper):
    text = f"__kernel void k(__global int* x) {{ *(__global int*)(x[0] + {time.time_ns() % 1000 + 8}L) = 1; }}"
    programs = [program.Program(POCL, t, "test") for t in [text, *sources(7)]]
    program.build(POCL, programs, helper)
    helper.run([(program.Kernel(programs[0], "k"), (1,), (1,), (POCL.alloc(16),))])
    assert helper.child.wait(60) != 0 and not helper.start()
    program.build(POCL, more := [program.Program(POCL, t, "test") for t in sources(time.time_ns() % 10**6)], helper)     # nobody answers
    assert all(p.cl is not None for p in more)


@pytest.mark.skipif(DEVICE is None or not sys.platform.startswith("linux"), reason="needs a CPU driver on Linux")
def test_a_program_in_a_fresh_cache_gets_a_helper(tmp_path):
    code = ("import clnn\nfrom clnn.runtime import ahead\nsent = []\nsend = ahead.Helper._send\n"
            "ahead.Helper._send = lambda self, **message: (sent.append(message), send(self, **message))\n"
            "x = clnn.arange(12.).reshape(3, 4)\n"
            "y = [x.softmax(1), x.cumsum(0), x.sort(descending=True)[0], x @ x.T, x.flip(0), clnn.cat([x, x]), x.argmax(1)]\n"
            "print([t.sum().item() for t in y], any('build' in m for m in sent), sum(len(m.get('run', ())) for m in sent) > 3)")
    env = {**os.environ, "PYTHONPATH": str(ROOT), "CLNN_CACHE_DIR": str(tmp_path), "POCL_CACHE_DIR": str(tmp_path / "pocl"), "CLNN_DEVICE": DEVICE.flavour.split("-")[0]}
    env.pop("CLNN_POCL_CACHE", None)
    said = [subprocess.run([sys.executable, "-c", code], env={**env, "CLNN_BUILD_AHEAD": on}, capture_output=True, text=True) for on in ("1", "0")]
    assert [s.returncode for s in said] == [0, 0], said[0].stderr + said[1].stderr
    with_helper, without = [s.stdout.strip() for s in said]
    assert with_helper.endswith("True True" if DEVICE is POCL else "True False") and without.endswith("False False")
    assert with_helper.split("]")[0] == without.split("]")[0]


@pytest.mark.skipif(DEVICE is None or DEVICE.flavour != "intel-cpu" or not sys.platform.startswith("linux"), reason="needs Intel's runtime")
def test_binaries_of_the_helper_are_taken(helper, monkeypatch):
    taken, take = [], ahead.Helper.take
    monkeypatch.setattr(ahead.Helper, "take", lambda *args: taken.append(take(*args)) or taken[-1])
    texts = sources(time.time_ns() % 10**6)
    programs = [program.Program(DEVICE, text, "test") for text in texts]
    program.build(DEVICE, programs, helper)
    assert [type(binary) for binary in taken] == [bytes]
    x = DEVICE.alloc(400)
    for i, (p, text) in enumerate(zip(programs, texts)):
        launch.launch(DEVICE, program.Kernel(p, "k"), (100,), None, x, 100, 2.0)
        assert (DEVICE.read(x, 400).view(np.float32) == np.float32(2.0 * i + int(text.split("+ ")[1].split(";")[0]))).all()
    assert not list(Path(cache_dir("kernels")).glob(f"ahead-{os.getpid()}-*"))


def test_other_drivers_and_settings_have_none(monkeypatch):
    for device in DEVICES:
        if device is not DEVICE and device is not POCL:
            assert ahead.helper_for(device) is None
    if DEVICE is not None:
        monkeypatch.setattr(config, "build_ahead", False)
        assert ahead.helper_for(DEVICE) is None


@pytest.mark.skipif(not DEVICES, reason="no OpenCL device")
def test_programs_are_built_by_several_threads_while_another_waits(monkeypatch):
    """As on GPUs, whose drivers build in parallel: here one at a time, as some drivers for CPUs crash otherwise."""
    dev = DEVICES[0]
    turn, compile_, built = threading.Lock(), program._compile, []

    def one_at_a_time(device, code):
        with turn:
            built.append(threading.get_ident())
            return compile_(device, code)
    monkeypatch.setattr(program, "_compile", one_at_a_time)
    monkeypatch.setattr(dev, "builds_in_parallel", True)
    monkeypatch.setattr(config, "no_cache", True)
    kernels = [dev.kernel_from_source(f"__kernel void plus{n}(__global float* x) {{ x[get_global_id(0)] += {n}; }}", f"plus{n}") for n in range(8)]
    x = upload(dev, np.zeros(4, np.float32))
    for k in kernels:
        launch.launch(dev, k, (4,), (4,), x)
    found = []
    reader = threading.Thread(target=lambda: found.append(dev.read(x, 16).view(np.float32).tolist()), daemon=True)
    reader.start()
    reader.join(120)
    assert found == [[28.0] * 4] and reader.ident not in built


def test_a_program_sees_its_warning_once_whatever_is_built_meanwhile():
    with warnings.catch_warnings(record=True) as got:
        warnings.simplefilter("default")
        before = list(warnings.filters)
        for _ in range(2):
            warnings.warn("said", stacklevel=1)
            with program._quiet():
                warnings.warn("of a driver", stacklevel=1)
    assert [str(w.message) for w in got] == ["said"] and before[0][0] == "default"
