"""Functions in a driver's binary, and launches that call them (Intel's CPU runtime has such)."""
import struct

import numpy as np
import pytest

from clnn.core import native
from clnn.runtime import direct, launch, machine_code
from clnn.runtime.device import default_device

SOURCE = """
__kernel void mixed(const char c, __global float* y, const short s, const float8 v, const int i, const long16 w, const uchar4 u, const float f, const double2 d) {
    const long k = get_global_id(0) + get_global_size(0) * (get_global_id(1) + get_global_size(1) * get_global_id(2));
    y[k] += exp(k * 0.01f) + c + 10.0f * s + v.s7 + 100.0f * i + w.sf + u.w + f + (float)d.y + 1000.0f * get_group_id(1) + 10000.0f * get_local_id(0);
}

__kernel void turned(__global float* y, const long n) {
    __local float rows[32 * 5];
    const long k = get_local_id(0), l = get_local_id(1), at = get_global_id(0) + get_global_size(0) * get_global_id(1);
    rows[k + get_local_size(0) * l] = y[at];
    barrier(CLK_LOCAL_MEM_FENCE);
    const float mine = rows[get_local_size(0) - 1 - k + get_local_size(0) * (get_local_size(1) - 1 - l)];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (at < n) y[at] = mine * 0.5f + get_num_groups(0);
}

typedef struct { char a; float b; } Pair;
__kernel void paired(__global float* y, const char c, const Pair p) { y[get_global_id(0)] += p.b + c; }
"""


@pytest.fixture
def device():
    device = default_device()
    device.queue                            # opened
    if not device.calls_kernels:
        pytest.skip("kernels of this driver cannot be called")
    return device


def results(device, name, sizes, args, monkeypatch, times=12):
    """What ``times`` launches leave, by calls and by the driver; how often kernels were called."""
    found, count = [], int(np.prod(sizes[0]))
    for driver in (False, True):
        ways, called = [], direct.called
        kernel = device.kernel_from_source(SOURCE + f"// {driver}", name)
        buf = device.alloc(4 * count)
        device.write(buf, np.arange(count, dtype=np.float32))
        with monkeypatch.context() as patch:
            patch.setattr(device.record, "direct", not driver)
            patch.setattr(direct, "called", lambda *given: ways.append(called(*given)) or ways[-1])
            for turn in range(times):
                launch.launch(device, kernel, *sizes, *[buf if a is launch.BUFFER else a for a in args])
                if turn < 3:
                    device.synchronize()
        found.append(device.read(buf, 4 * count).tobytes())
        assert not driver or not any(ways)
    return found, ways


MIXED = [b"\3", launch.BUFFER, struct.pack("h", -4), np.arange(8, dtype=np.float32).tobytes(), struct.pack("i", -7), np.arange(16).tobytes(), bytes(range(4)),
         0.75, np.array([1.0, 2.5]).tobytes()]


@pytest.mark.parametrize("sizes", [((8,), (8,)), ((48,), (16,)), ((7, 3), (7, 1)), ((32, 6, 2), (16, 3, 1)), ((5, 4, 2), (1, 2, 2)), ((48,), None)], ids=str)
def test_arguments_of_all_sizes(device, sizes, monkeypatch):
    if not device.has_fp64:
        pytest.skip("no double")
    (called, driven), _ = results(device, "mixed", sizes, MIXED, monkeypatch)
    assert called == driven


@pytest.mark.parametrize("sizes", [((8,), (8,)), ((64,), (32,)), ((27, 10), (9, 5)), ((32, 4), (16, 2)), ((3, 4), (3, 4)), ((34,), (17,))], ids=str)
def test_groups_with_barriers(device, sizes, monkeypatch):
    """In whole vectors, and in groups that do not fill them."""
    sizes = tuple(s if len(s) == 2 else (*s, 1) for s in sizes)
    (called, driven), _ = results(device, "turned", sizes, [launch.BUFFER, int(np.prod(sizes[0])) - 1], monkeypatch)
    assert called == driven


def test_structs_go_through_the_driver(device, monkeypatch):
    """Nobody knows where they begin among packed arguments."""
    (called, driven), ways = results(device, "paired", ((8,), (8,)), [launch.BUFFER, b"\2", struct.pack("b3xf", 1, 2.5)], monkeypatch)
    assert called == driven
    assert device.marks_kernels or not any(ways)


@pytest.fixture
def binary(device):
    import pyopencl as cl
    if device.marks_kernels:
        pytest.skip("libraries are loaded by the system")
    kernel = device.kernel_from_source(SOURCE, "turned").bind()
    return kernel.program.cl.get_info(cl.program_info.BINARIES)[0]


def test_functions_of_a_binary(binary):
    _, functions = machine_code.load(binary)
    assert {"mixed", "turned", "paired"} <= set(functions)


def test_binaries_of_other_kinds_are_refused(binary):
    """Cut off anywhere, of another format, with words that mean nothing: never a crash."""
    for wrong in (b"", b"\x7fELF", bytes(200), binary[:64], *[binary[:len(binary) * k // 13] for k in range(1, 13)]):
        with pytest.raises(machine_code.Refused):
            machine_code.load(wrong)
    rng = np.random.default_rng(0)
    head = binary.index(b".ocl.obj")
    for _ in range(200):
        torn = bytearray(binary)
        for at in rng.integers(0, len(torn), 30):
            torn[at] = int(rng.integers(256))
        torn[head:head + 8] = b".ocl.obj"
        try:
            machine_code.load(bytes(torn))          # not called
        except machine_code.Refused:
            pass


def test_what_code_may_mention():
    assert machine_code.elsewhere("memcpy")
    with pytest.raises(machine_code.Refused, match="the function system"):
        machine_code.elsewhere("system")


pytestmark = pytest.mark.skipif(native.built is None, reason="without the C forms")


def test_lengths_that_change_go_to_the_driver(device):
    """Nobody knows where arguments stand whose sizes are not those of the first call: the driver says what is wrong with them."""
    from clnn.core.errors import LaunchError
    if device.marks_kernels:
        pytest.skip("PoCL's functions take what they need of an argument")
    kernel, buf = device.kernel_from_source("__kernel void many(const int a, __global float* y) { y[get_global_id(0)] += a; }", "many"), device.alloc(32)
    device.write(buf, np.zeros(8, np.float32))
    for turn in range(6):
        launch.launch(device, kernel, (8,), (8,), struct.pack("i", 2), buf)
        device.synchronize()
    with pytest.raises(LaunchError):
        launch.launch(device, kernel, (8,), (8,), 2, buf)
    launch.launch(device, kernel, (8,), (8,), struct.pack("i", 2), buf)
    assert (device.read(buf, 32).view(np.float32) >= 14).all()
    with pytest.raises(ValueError):
        native.built.Direct(device, 1, (1,), (1,), (b"1" * 12,), True, 0, 0)
