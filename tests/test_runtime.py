"""The runtime floor: devices, memory, launches, programs, templates, the error word, forks. Runs on every CPU driver present."""
import gc
import io
import os
import re
import struct
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
from bare import DEVICES, kernel, upload

import clnn
from clnn.core import dtype as dt
from clnn.core.errors import DeviceError, KernelBuildError, LaunchError, OutOfMemoryError
from clnn.runtime import diskcache, drivers, icd, launch as launch_module, memory, program, templates
from clnn.runtime.device import default_device, get_device, list_devices
from clnn.runtime.launch import launch

ROOT = Path(__file__).resolve().parent.parent
if not list_devices():
    pytest.skip("no OpenCL device", allow_module_level=True)


@pytest.fixture(params=DEVICES, ids=lambda d: d.flavour)
def dev(request):
    return request.param


def python(code, **env):
    """Run code in a fresh interpreter; returns the finished process."""
    full = {**os.environ, "PYTHONPATH": str(ROOT), **env}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=full, timeout=120)


# ---- devices ---------------------------------------------------------------------------------------------------------------

def test_names_lead_to_the_same_object(dev):
    assert get_device(str(dev)) is dev and get_device(dev) is dev
    assert get_device("cl:%d:%d" % dev.cl_index) is dev
    assert get_device(dev.platform_name[:8].upper()).platform_name == dev.platform_name
    assert get_device(dev.flavour).flavour == dev.flavour
    assert get_device(None) is default_device()
    assert get_device(0) is list_devices()[0]


def test_unknown_device_lists_known_ones():
    with pytest.raises(DeviceError, match=r"no OpenCL device 'warp drive' here; there are\n  cpu:0"):
        get_device("warp drive")
    with pytest.raises(TypeError):
        get_device(1.5)


def test_a_missing_cpu_tells_what_to_install(monkeypatch):
    from clnn.runtime import device
    monkeypatch.setattr(device, "list_devices", lambda: [SimpleNamespace(kind="gpu", index=0, cl_index=(0, 0), name="g", platform_name="p")])
    monkeypatch.setattr(device, "_by_spec", {})
    for spec, told in (("cpu:1", True), ("gpu:3", False), (7, False)):
        with pytest.raises(DeviceError) as caught:
            get_device(spec)
        assert ("clnn[cpu]" in str(caught.value)) is told


def test_a_gpu_stands_in_for_a_cpu_without_a_driver(dev, monkeypatch):
    """What programs do with tensors on the CPU works on machines that have a GPU's driver alone."""
    from clnn.runtime import device
    gpu = device.Device(replace(dev.record, kind="gpu"), 0)
    for name, value in dict(_devices=[gpu], _default=None, _by_spec={}, _stood_in={}).items():
        monkeypatch.setattr(device, name, value)
    monkeypatch.setattr(clnn._tensor.device, "_public", {})
    monkeypatch.setattr(clnn._tensor.device, "_names", {})
    monkeypatch.setattr(device, "device_name", lambda: "")
    x = clnn.arange(6.0)
    with pytest.warns(UserWarning, match=r"no OpenCL driver serves the CPU.*clnn\[cpu\]"):
        y = x.cpu()
    assert x.is_cuda and y.is_cpu and str(y.device) == "cpu" and y.numpy().tolist() == (y + 1).cpu().sub(1).tolist() == x.tolist() == list(range(6))
    assert clnn.ones(2, device="cpu").cuda().device == x.device != y.device and y.cpu() is y
    file = io.BytesIO()
    clnn.save(x, file)
    file.seek(0)
    assert clnn.load(file, map_location="cpu").device == y.device
    monkeypatch.setattr(device, "_default", None)
    monkeypatch.setattr(device, "device_name", lambda: "cpu")
    with pytest.raises(DeviceError, match="CLNN_DEVICE=cpu: no OpenCL driver serves the CPU"):
        clnn.zeros(1)


@pytest.mark.parametrize("platform, vendor, kind, want", [
    ("rusticl", "AMD", "GPU", ("rusticl", "gpu")), ("rusticl", "Intel", "GPU", ("rusticl", "gpu")), ("rusticl", "Mesa/X.org", "CPU", ("rusticl", "cpu")),
    ("AMD Accelerated Parallel Processing", "Advanced Micro Devices, Inc.", "GPU", ("amd", "gpu")), ("NVIDIA CUDA", "NVIDIA Corporation", "GPU", ("nvidia", "gpu")),
    ("Intel(R) OpenCL Graphics", "Intel(R) Corporation", "GPU", ("intel-gpu", "gpu")), ("Portable Computing Language", "x", "GPU", ("other", "gpu"))])
def test_flavours_follow_the_driver(platform, vendor, kind, want):
    """Mesa's faults come with its compiler, whoever made the device."""
    import pyopencl as cl
    dev = SimpleNamespace(type=getattr(cl.device_type, kind), vendor=vendor, name="d", host_unified_memory=False)
    assert drivers.classify(SimpleNamespace(name=platform, vendor="v"), dev)[:2] == want


def test_cuda_means_gpu():
    if any(d.kind == "gpu" for d in list_devices()):
        assert get_device("cuda").kind == "gpu"
    else:
        with pytest.raises(DeviceError):
            get_device("cuda:0")


def test_simulators_are_never_default():
    assert all(d.flavour != "oclgrind" for d in list_devices()) or len(list_devices()) == 1


def test_limits(dev):
    assert dev.max_alloc <= dev.global_mem and dev.max_work_group >= 1 and dev.compute_units >= 1 and dev.local_mem > 0
    assert dev.is_cpu == (dev.flavour in ("pocl", "intel-cpu"))


def test_importing_touches_no_driver():
    done = python("import sys, clnn.runtime.device, clnn.runtime.launch, clnn.runtime.templates as t\n"
                  "assert 'pyopencl' not in sys.modules and 'mako' not in sys.modules")
    assert done.returncode == 0, done.stderr


def test_no_device_says_what_to_run(tmp_path):
    done = python("from clnn.runtime.device import default_device\ndefault_device()", OCL_ICD_VENDORS=str(tmp_path))
    if done.returncode == 0:
        pytest.skip("this loader finds drivers elsewhere")
    assert "DeviceError" in done.stderr and 'pip install "clnn[cpu]"' in done.stderr and "apt-get install pocl-opencl-icd" in done.stderr


def test_a_crashing_driver_is_blamed_once(monkeypatch):
    calls = []

    def fake(skip, folder=None):
        calls.append(tuple(skip))
        return ({"good": ""}, [], None, "") if skip else ({}, [], "bad", "ended with status -11")
    monkeypatch.setattr(drivers, "_run_probe", fake)
    monkeypatch.setattr(icd, "prepare", lambda exclude=(), only=None: None)
    table = drivers._probe_all()
    assert calls == [(), ("bad",)]
    assert table["verdicts"] == {"good": "", "bad": "its driver ended with status -11"} and not table["error"]


def test_a_driver_that_hangs_while_listed_is_left_out(monkeypatch):
    def fake(skip, folder=None):
        if folder == "only b":
            return {}, [], None, "did not answer within 60 s"
        return ({"good": ""}, [], None, "") if folder in ("without b", "only a") else ({}, [], None, "did not answer within 60 s")
    monkeypatch.setattr(drivers, "_run_probe", fake)
    monkeypatch.setattr(icd, "icd_files", lambda: {"a": "liba", "b": "libb"})
    monkeypatch.setattr(icd, "prepare", lambda exclude=(), only=None: f"only {only}" if only else "without b" if "b" in exclude else "all")
    table = drivers._probe_all()
    assert table["bad_icds"] == {"b": "did not answer within 60 s"} and table["verdicts"] == {"good": ""}


def test_a_broken_pyopencl_is_no_drivers_fault(tmp_path):
    """Nothing is remembered of it, so that all works once it is mended."""
    (tmp_path / "pyopencl.py").write_text("raise ImportError('built for another NumPy')")
    done = python("from clnn.runtime.device import default_device\ndefault_device()", CLNN_CACHE_DIR=str(tmp_path / "cache"),
                  PYTHONPATH=os.pathsep.join([str(tmp_path), str(ROOT)]))
    assert "pyopencl cannot be imported: ImportError: built for another NumPy" in done.stderr and "pip install --upgrade" in done.stderr
    assert "ended with status" not in done.stderr and not list((tmp_path / "cache").glob("probes/*.json"))


def test_probe_really_stops_a_hanging_process(monkeypatch, tmp_path):
    monkeypatch.setattr(drivers.config, "probe_timeout", 1.0)
    hang = "print('{\"event\": \"begin\", \"key\": \"slow\"}', flush=True)\nimport time\ntime.sleep(60)"
    monkeypatch.setattr(drivers.Path, "read_text", lambda self: hang)
    verdicts, platforms, begun, error = drivers._run_probe([])
    assert begun == "slow" and error == "did not answer within 1 s"


def test_doctor(capsys):
    from clnn import doctor
    assert doctor.main(["--cached"]) == 0
    text = capsys.readouterr().out
    assert "default" in text and "compute units" in text and list_devices()[0].name in text


# ---- memory ----------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("n", [0, 1, 1000, 1 << 19])
def test_write_read(dev, n):
    data = np.random.default_rng(0).integers(0, 255, n).astype(np.uint8)
    buf = upload(dev, data)
    copy = data.copy()
    data[:] = 0  # a write takes its copy before it returns
    assert np.array_equal(dev.read(buf, n), copy)
    if n > 100:
        assert np.array_equal(dev.read(buf, 50, 40), copy[40:90])


def test_write_takes_any_array(dev):
    a = np.arange(24, dtype=np.float32).reshape(4, 6)
    assert np.array_equal(dev.read(upload(dev, a.T), 96).view(np.float32), a.T.ravel())
    b = a.astype(ml_dtypes.bfloat16)
    assert np.array_equal(dev.read(upload(dev, b), 48).view(ml_dtypes.bfloat16), b.ravel())
    assert dev.read(upload(dev, np.array(7.0, np.float32)), 4).view(np.float32)[0] == 7


def test_copy_fill_and_transfer(dev):
    a = np.arange(100, dtype=np.float32)
    src, dst = upload(dev, a), dev.alloc(400)
    dev.fill(dst, struct.pack("<f", 2.5), 400)
    dev.copy(src, dst, 40, src_off=80, dst_off=40)
    want = np.full(100, 2.5, np.float32)
    want[10:20] = a[20:30]
    assert np.array_equal(dev.read(dst, 400).view(np.float32), want)
    for other in DEVICES:
        far = other.alloc(400)
        memory.transfer(dev, src, other, far, 400)
        assert np.array_equal(other.read(far, 400).view(np.float32), a)


def test_statistics_and_reuse(dev):
    dev.synchronize()
    before = memory.memory_stats(dev)["allocated"]
    buf = dev.alloc(1 << 20)
    memory.reset_peak(dev)
    assert memory.memory_stats(dev)["allocated"] >= before + (1 << 20)
    del buf
    stats = memory.memory_stats(dev)
    assert stats["allocated"] == before and stats["peak_allocated"] >= before + (1 << 20) and stats["held_buffers"] >= 1
    memory.empty_cache(dev)
    assert memory.memory_stats(dev)["held_buffers"] == 0


def test_ever_new_sizes_share_few_buffers(dev):
    memory.empty_cache(dev)
    held = memory.memory_stats(dev)["reserved"]
    for nbytes in range(100_000, 800_000, 2500):            # three octaves
        dev.alloc(nbytes)
    assert memory.memory_stats(dev)["reserved"] - held <= (13 if dev.is_cpu else 25) * 500_000
    memory.empty_cache(dev)


def test_too_large_is_refused_with_sizes(dev):
    with pytest.raises(OutOfMemoryError, match="limit for a single buffer is"):
        dev.alloc(dev.max_alloc * 2 + 4096)


def test_out_of_memory_frees_the_pool_and_tries_once_more(dev, monkeypatch):
    import pyopencl as cl
    dev.alloc(16)
    pool, real, calls = dev.memory, dev.memory._allocate, []

    def failing(nbytes):
        calls.append(nbytes)
        if len(calls) in fail_on:
            raise cl.MemoryError("no room")
        return real(nbytes)
    monkeypatch.setattr(pool, "_allocate", failing)
    fail_on = {1}
    assert dev.alloc(64) is not None and len(calls) == 2
    fail_on, calls = {1, 2}, []
    with pytest.raises(OutOfMemoryError, match="no room for 64 B; .* in use"):
        dev.alloc(64)


# ---- launches --------------------------------------------------------------------------------------------------------------

def test_scalars_and_offsets(dev):
    k = kernel(dev, "if (i < n) y[i] = x[i] * a + b;", params="IN(float,x), OUT(float,y), const long n, const float a, const int b")
    x, y = upload(dev, np.arange(100, dtype=np.float32)), upload(dev, np.zeros(100, np.float32))
    launch(dev, k, (37,), (16,), x, 3, y, 50, 37, 2.0, struct.pack("<i", -1))
    want = np.zeros(100, np.float32)
    want[50:87] = np.arange(3, 40) * 2 - 1
    assert np.array_equal(dev.read(y, 400).view(np.float32), want)
    launch(dev, k, (37,), (16,), x, 0, y, 0, 5, 0.0, struct.pack("<i", 9))  # remembered arguments are replaced
    assert dev.read(y, 400).view(np.float32)[:6].tolist() == [9, 9, 9, 9, 9, 0]


@pytest.mark.parametrize("local", [None, (1,), (8,), (1 << 16,)])  # the last is reduced to what the kernel allows
def test_local_sizes(dev, local):
    x = np.arange(1001, dtype=np.float32)
    k = kernel(dev, "if (i < n) y[i] = x[i] + 1;")
    y = dev.alloc(x.nbytes)
    launch(dev, k, (1001,), local, upload(dev, x), 0, y, 0, 1001)
    assert np.array_equal(dev.read(y, x.nbytes).view(np.float32), x + 1)


@pytest.mark.parametrize("local", [None, (4, 2, 1), (2, 1, 2)])
def test_too_many_groups_are_launched_in_parts(dev, monkeypatch, local):
    """As NVIDIA's drivers ask for, which take 65535 groups in the second and third dimension."""
    monkeypatch.setattr(dev, "is_cpu", False)
    monkeypatch.setattr(launch_module, "MOST_GROUPS", 3)
    launch_module.bind()
    monkeypatch.setattr(launch_module, "_enqueue", launch_module._enqueue_parts)
    code = "const int j = get_global_id(1), k = get_global_id(2); if (i < 7 && j < 17 && k < 5) y[(k * 17 + j) * 7 + i] = 100 * k + 10 * j + i;"
    k, y = kernel(dev, code, params="__global int* y"), upload(dev, np.zeros(595, np.int32))
    launch(dev, k, (7, 17, 5), local, y)
    assert np.array_equal(dev.read(y, 2380).view(np.int32).reshape(5, 17, 7), sum(np.ix_(range(0, 500, 100), range(0, 170, 10), range(7))))
    assert len(launch_module.sizes_of(dev, k, (7, 17, 5), local)[0].parts) > 1
    counting = kernel(dev, "y[i] = get_group_id(1);", params="__global int* y", name="counting")
    with pytest.raises(LaunchError, match="counting: counts its groups"):
        launch(dev, counting, (1, 9), (1, 1), y)
        dev.flush()


def test_a_kernel_does_not_keep_buffers_alive(dev):
    k = kernel(dev, "if (i < n) y[i] = x[i];")
    gc.collect()                # what earlier tests left in cycles must not go meanwhile
    before = memory.memory_stats(dev)["active_buffers"]
    launch(dev, k, (8,), (8,), dev.alloc(32), 0, dev.alloc(32), 0, 8)
    dev.flush()
    assert memory.memory_stats(dev)["active_buffers"] == before


def test_launch_errors_name_the_kernel(dev):
    k = kernel(dev, "if (i < n) y[i] = x[i];", name="culprit")
    buf = dev.alloc(64)
    with pytest.raises(LaunchError, match="culprit: takes 5 arguments, got 2"):
        launch(dev, k, (8,), None, buf, 0)
        dev.flush()             # a launch that waited for its kernel tells now
    with pytest.raises(LaunchError, match="culprit"):
        launch(dev, k, (8,), None, buf, 0, True, 0, 8)
    with pytest.raises(LaunchError, match="culprit: a work-group of"):
        launch(dev, k, (1 << 20, 2), (1 << 20, 2), buf, 0, buf, 0, 8)
    launch(dev, k, (8,), None, buf, 0, buf, 0, 8)  # and it still works
    assert launch(dev, k, (0,), None, buf, 0, buf, 0, 0) is None


def test_recorders_see_launches(dev, monkeypatch):
    seen = []
    monkeypatch.setattr(launch_module, "recorders", [lambda *call: seen.append(call)])
    k, buf = kernel(dev, "if (i < n) y[i] = x[i];"), dev.alloc(64)
    for _ in range(2):
        launch(dev, k, (10,), (8,), buf, 0, buf, 0, 10)
    assert len(seen) == 2       # while somebody listens nothing waits
    device, recorded, global_size, local_size, args, event = seen[1]
    assert device is dev and recorded is k and global_size == (16,) and local_size == (8,) and args[4] == 10


def test_threads_do_not_mix_arguments(dev):
    if dev.flavour == "oclgrind":
        pytest.skip("the simulator allows one thread")
    k = kernel(dev, "if (i < n) y[i] = x[i] + a;", params="IN(float,x), OUT(float,y), const long n, const float a")
    x, wrong = upload(dev, np.zeros(64, np.float32)), []

    def work(value):
        for _ in range(40):
            y = dev.alloc(256)
            launch(dev, k, (64,), (64,), x, 0, y, 0, 64, float(value))
            if not (dev.read(y, 256).view(np.float32) == value).all():
                wrong.append(value)
    threads = [threading.Thread(target=work, args=(v,)) for v in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


# ---- the error word --------------------------------------------------------------------------------------------------------

def test_error_word(dev):
    code = dev.error_code("gather", "index {value} is out of bounds for size 10", IndexError)
    assert code == dev.error_code("gather", "index {value} is out of bounds for size 10", IndexError)
    k = kernel(dev, f"if (i == 3) CLNN_FAIL(err, {code}, bad);", params="const long bad, __global int* err")
    other = kernel(dev, "if (i < n) y[i] = x[i];")
    for value in (-7, 1 << 40):
        with pytest.raises(IndexError, match=f"gather: index {value} is out of bounds for size 10"):
            launch(dev, k, (8,), (8,), value, dev.error_buffer)      # raises at once where it runs in the calling thread
            assert dev.err_dirty and (dev.inline is None or dev.last is not dev.inline.done)      # a machine that was busy a moment ago has it elsewhere
            dev.synchronize()
        dev.synchronize()  # reported once
    buf = dev.alloc(64)
    launch(dev, other, (8,), (8,), buf, 0, buf, 0, 8)
    assert not dev.err_dirty
    launch(dev, k, (2,), (2,), 5, dev.error_buffer)  # no work-item 3: nothing to report
    dev.read(buf, 4)


# ---- programs and templates ------------------------------------------------------------------------------------------------

def test_build_error_shows_the_lines(dev):
    source = "\n".join(f"/* filler {i} */" for i in range(40)) + "\n__kernel void broken(__global float* x) { x[0] = nowhere; }"
    with pytest.raises(KernelBuildError) as info:
        dev.kernel_from_source(source, "broken").bind()
    text = str(info.value)
    assert "broken: build failed on" in text and ">   41 | __kernel void broken" in text and "filler 36" in text and "filler 10 " not in text


def test_missing_template_and_parameter(dev, tmp_path, monkeypatch):
    with pytest.raises(KernelBuildError, match="no kernel template 'none/such'"):
        dev.kernel("none/such")
    (tmp_path / "t.cl.mako").write_text("## head\n__kernel void k(__global float* x) { x[0] = ${MISSING}; }\n")
    monkeypatch.setattr(templates, "folders", lambda: (tmp_path,))
    with pytest.raises(KernelBuildError, match=r"(?s)t: template does not render.*MISSING.*parameters: T=clnn.float32.*>    2 \| __kernel"):
        dev.kernel("t", T=dt.float32)


def test_doubles_are_refused_in_words_where_there_are_none(dev, monkeypatch):
    monkeypatch.setattr(dev, "has_fp64", False)
    for make in (lambda: templates.preamble(dev, True), lambda: templates.render("softmax/forward", dict(T=dt.float64), dev)):
        with pytest.raises(TypeError, match="float64 is not supported by .*; use float32"):
            make()
    assert "double" not in templates.preamble(dev, False, "clnn_log")


def test_template_kernels_are_cached_by_parameters(dev, tmp_path, monkeypatch):
    (tmp_path / "t.cl.mako").write_text('<%inherit file="/base.cl.mako"/>\n'
                                        "__kernel void first(OUT(${T.c}, y)) { PTR_OUT(${T.c}, y); ${T.store}(y, 0, ${T.one}); }\n"
                                        "__kernel void second(OUT(${T.c}, y)) { PTR_OUT(${T.c}, y); ${T.store}(y, 0, ${T.load}(y, 0) + 1); }\n")
    monkeypatch.setattr(templates, "folders", lambda: (tmp_path, templates.kernels_dir()))
    for row in dt.REAL:
        if row.needs_fp64 and not dev.has_fp64:
            continue
        y = upload(dev, np.zeros(2, row.np))
        assert dev.kernel("t", T=row) is dev.kernel("t", T=row)
        launch(dev, dev.kernel("t", T=row), (1,), (1,), y, 0)
        launch(dev, dev.kernel("t:second", T=row), (1,), (1,), y, 0)
        assert dev.read(y, 2 * row.itemsize).view(row.np)[0] == (True if row is dt.bool_ else 2), row


def test_unused_functions_are_left_out():
    small, full = templates.preamble(None, False, "load_float32"), templates.preamble(None, True)
    assert "clnn_f2bf" not in small and "clnn_erf" not in small and "load_float32" in small
    assert "store_float64" in full and "double" not in templates.preamble(None, False, "clnn_erf clnn_tanh store_float16 load_bfloat16")
    guarded = templates.preamble(None, False, "clnn_sin clnn_fmod")             # doubles stand behind the question whether the device has them
    assert "double" in guarded and "double" not in re.sub(r"#if[^\n]*cl_khr_fp64.*?\n#(?:else|endif)", "", guarded, flags=re.S)
    assert "clnn_expm1" in templates.preamble(None, False, "clnn_tanh") and "//@" not in full


def test_math_functions_build_everywhere(dev):
    text = templates.preamble(dev, dev.has_fp64)
    dev.kernel_from_source(text + "__kernel void all_functions(__global float* x) { x[0] = clnn_erf(x[0]); }", "all_functions")


def cached_run(dev, count=1):
    """Run ``count`` small kernels of a program's first use; their value is their number."""
    dev.loaded.clear()
    found = []
    for i in range(count):
        source = f"__kernel void cached(__global float* x) {{ x[get_global_id(0)] = {i}.0f; }}"
        k, buf = program.Kernel(program.Program(dev, source, "cached"), "cached"), dev.alloc(64)
        launch(dev, k, (16,), (16,), buf)
        found.append((buf, k))
    for i, (buf, _) in enumerate(found):
        assert (dev.read(buf, 64).view(np.float32) == i).all()
    return [k for _, k in found]


def test_damaged_cache_entries_are_built_again(dev, tmp_path, monkeypatch):
    if not dev.caches_binaries:
        pytest.skip("no binaries of this driver are kept")
    monkeypatch.setenv("CLNN_CACHE_DIR", str(tmp_path))
    cached_run(dev)
    entries, sealed = list(tmp_path.rglob("*.bin")), tmp_path / "sealed"        # the program, and where its kernels have marks what these are called in it
    diskcache.write(sealed, {}, b"nonsense")
    assert entries and not list(tmp_path.rglob(".part*"))
    for entry in entries:
        assert diskcache.read(entry)
        good = entry.read_bytes()
        for damage in (b"", good[:40], good[:-1] + b"?", sealed.read_bytes()):
            entry.write_bytes(damage)
            cached_run(dev)
            assert entry.read_bytes() != damage and diskcache.read(entry)
    stamps = [entry.stat().st_mtime_ns for entry in entries]
    cached_run(dev)
    assert [entry.stat().st_mtime_ns for entry in entries] == stamps            # good entries are used as they are


def test_the_oldest_cache_entries_go(tmp_path, monkeypatch):
    monkeypatch.setenv("CLNN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(diskcache, "_LIMIT", 250)
    for left in (["00", "11"], ["00", "11", "22", "33"]):    # the second time is soon after the first: nobody looks
        monkeypatch.setattr(diskcache, "_trimmed", False)
        for age, path in enumerate(diskcache.path_of(2 * digit) for digit in "0123"):
            os.utime(path if path.write_bytes(b"x" * 100) else None, (1e9 - age, 1e9 - age))
        diskcache._trim_once()
        assert sorted(p.stem for p in tmp_path.rglob("*.bin")) == left


def test_kernels_that_wait_are_built_together(dev, tmp_path, monkeypatch):
    monkeypatch.setenv("CLNN_CACHE_DIR", str(tmp_path))
    builds = []
    monkeypatch.setattr(program, "_compile", lambda p, d, compile=program._compile: builds.append(p) or compile(p, d))
    kernels = cached_run(dev, 3)
    assert len(builds) == 1 and not dev.waiting and len({id(k.program.cl) for k in kernels}) == 1
    if not dev.caches_binaries:
        return
    cached_run(dev, 3)
    assert len(builds) == 2 and len(list(tmp_path.rglob("*.bin"))) == 4     # one program and a name for each source, loaded once
    next(p for p in tmp_path.rglob("*.bin") if "program" not in diskcache.read(p)[0]).unlink()
    cached_run(dev, 3)                                                      # the common program is lost: built again


def test_sources_with_equal_names_share_a_text(dev):
    sources = ["#define N %d\n__constant int table[2] = {N, 1};\nstatic int twice(int x) { return table[0] * x; }\n"
               "__kernel __attribute__((reqd_work_group_size(1, 1, 1)))\nvoid k(__global int* y) { y[0] = twice(N); }" % n for n in (3, 5)]
    buffers = [dev.alloc(64) for _ in sources]
    for source, buf in zip(sources, buffers):
        launch(dev, dev.kernel_from_source(source, "k"), (1,), (1,), buf)
    assert [dev.read(buf, 4).view(np.int32)[0] for buf in buffers] == [9, 25]


def test_work_behind_a_waiting_kernel_keeps_its_order(dev, tmp_path, monkeypatch):
    monkeypatch.setenv("CLNN_CACHE_DIR", str(tmp_path))
    buf, other = dev.alloc(64), dev.alloc(64)
    text = "__kernel void k(__global float* x) { x[get_global_id(0)] = x[get_global_id(0)] * 2 + %d; }"
    dev.write(buf, np.ones(16, np.float32))
    ready = dev.kernel_from_source(text % 100, "k")
    launch(dev, ready, (16,), (16,), buf)
    dev.synchronize()
    dev.write(buf, np.ones(16, np.float32))
    launch(dev, dev.kernel_from_source(text % 101, "k"), (16,), (16,), buf)      # 103, when it is built
    assert dev.waiting
    launch(dev, ready, (16,), (16,), buf)                                        # 306
    dev.copy(buf, other, 64)
    dev.write(buf, np.full(16, 7, np.float32))
    dev.fill(other, np.float32(9).tobytes(), 4)
    assert dev.waiting
    assert dev.read(other, 64).view(np.float32).tolist() == [9] + [306] * 15 and not dev.waiting
    assert dev.read(buf, 64).view(np.float32)[0] == 7


@pytest.mark.parametrize("where", ("_compile", "Kernel.bind", "launch"))
def test_an_interrupt_leaves_what_waits(dev, tmp_path, monkeypatch, where):
    monkeypatch.setenv("CLNN_CACHE_DIR", str(tmp_path))
    text = "__kernel void k(__global float* x) { x[get_global_id(0)] = x[get_global_id(0)] * 3 + %d; }"
    buf, other = upload(dev, np.ones(16, np.float32)), upload(dev, np.zeros(16, np.float32))
    for n in (1, 2):
        launch(dev, dev.kernel_from_source(text % (n + 10 * len(where)), "k"), (16,), (16,), buf)
    dev.copy(buf, other, 64)
    assert dev.waiting
    with monkeypatch.context() as m:
        def interrupted(*args):
            raise KeyboardInterrupt
        if where == "launch":
            dev.backlog.entries.insert(1, (interrupted, ()))
        else:
            m.setattr(f"clnn.runtime.program.{where}", interrupted)
        with pytest.raises(KeyboardInterrupt):
            dev.synchronize()
    if where == "launch":
        assert dev.backlog.entries.pop(0) == (interrupted, ())
    assert dev.waiting
    n = 10 * len(where)
    assert dev.read(other, 64).view(np.float32).tolist() == [(3.0 + 1 + n) * 3 + 2 + n] * 16 and not dev.waiting


def test_an_interrupt_after_a_launch_waits_for_it(dev, monkeypatch):
    buf, finished = upload(dev, np.ones(16, np.float32)), []
    ready = dev.kernel_from_source("__kernel void k(__global float* x) { x[get_global_id(0)] = x[get_global_id(0)] * 5 + 1; }", "k")
    launch(dev, ready, (16,), (16,), buf)
    dev.synchronize()

    def interrupted(queue, *args, enqueue=launch_module._enqueue):
        finished.append(enqueue(queue, *args))
        raise KeyboardInterrupt
    monkeypatch.setattr("clnn.core.config.config.direct", False)
    monkeypatch.setattr(launch_module, "_enqueue", interrupted)
    with pytest.raises(KeyboardInterrupt):
        launch(dev, ready, (16,), (16,), buf)
    assert finished[0].command_execution_status == 0                # complete
    monkeypatch.undo()
    assert dev.read(buf, 64).view(np.float32).tolist() == [31.0] * 16


def test_a_faulty_kernel_names_itself_among_others(dev):
    buf = dev.alloc(64)
    for text in ("x[0] = 1;", "x[0] = nonsense_here;", "x[0] = 2;"):
        launch(dev, dev.kernel_from_source("__kernel void k(__global float* x) { %s }" % text, "k"), (1,), (1,), buf)
    with pytest.raises(KernelBuildError, match="nonsense_here") as info:
        dev.synchronize()
    assert "x[0] = 2" not in str(info.value)
    dev.synchronize()


def test_two_processes_share_the_caches(tmp_path):
    code = ("from clnn.runtime.device import *\nfrom clnn.runtime.launch import launch\nimport numpy as np\n"
            "for d in list_devices():\n"
            "    for i in range(4):\n"
            "        k = d.kernel_from_source('__kernel void k(__global float* x) { x[get_global_id(0)] = %d; }' % i, 'k')\n"
            "        b = d.alloc(64)\n        launch(d, k, (16,), (16,), b)\n        assert (d.read(b, 64).view(np.float32) == i).all()")
    env = {**os.environ, "PYTHONPATH": str(ROOT), "CLNN_CACHE_DIR": str(tmp_path), "POCL_CACHE_DIR": str(tmp_path / "pocl")}
    pair = [subprocess.Popen([sys.executable, "-c", code], env=env, stderr=subprocess.PIPE) for _ in range(2)]
    for child in pair:
        errors = child.communicate(timeout=120)[1]
        assert child.returncode == 0, errors.decode()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_gets_an_error_and_does_not_hang():
    code = ("import os, sys\nfrom clnn.runtime.device import *\nfrom clnn.runtime.launch import launch\nfrom clnn.core.errors import DeviceError\n"
            "d = default_device()\nb = d.alloc(64)\nk = d.kernel_from_source('__kernel void k(__global float* x) { x[0] = 1; }', 'k')\n"
            "launch(d, k, (1,), (1,), b)\nd.synchronize()\n"
            "pid = os.fork()\n"
            "if pid == 0:\n"
            "    for use in (lambda: d.alloc(4), lambda: d.read(b, 4), d.synchronize, lambda: launch(d, k, (1,), (1,), b), lambda: d.context,\n"
            "                lambda: d.kernel_from_source('__kernel void j() {}', 'j')):\n"
            "        try:\n            use()\n            os._exit(1)\n"
            "        except DeviceError as e:\n            if 'fork' not in str(e): os._exit(2)\n"
            "    os._exit(0)\n"
            "sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))")
    done = python(code)
    assert done.returncode == 0, (done.returncode, done.stderr)
