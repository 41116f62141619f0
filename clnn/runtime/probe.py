"""Proves OpenCL devices by building and running a small kernel on each. Run as a script, in a process that may crash or hang.

It prints one JSON object per line: ``platform``, then per device ``begin`` and ``end``; ``broken`` where pyopencl cannot be imported. The parent blames
the device that began and did not end. Last of all come two questions that do not decide whether a device is used (see ``direct.py``): whether the memory of a
processor's driver is this process's, and whether what PoCL has built for its device in the calling thread, or Intel's runtime, can be called without it. Where
that is so, the device's key with ``|near`` or ``|direct`` ends, too. Arguments: the path of ``machine_code.py``, and keys of devices to leave out. It imports
nothing of clnn, so that it starts fast and alone.
"""
import json
import os
import sys
import warnings

SOURCE = """
__kernel void probe(__global const float* x, __global float* y, const long n) {
    long i = get_global_id(0);
    if (i < n) y[i] = exp(x[i]) * 0.0f + x[i] * 2.0f + 1.0f;
}"""


def device_key(platform, device, ordinal):
    """What a verdict is remembered by: a new driver version is a new device."""
    return "|".join([platform.name.strip(), platform.version.strip(), device.name.strip(), device.driver_version.strip(), str(ordinal)])


def say(**what):
    print(json.dumps(what), flush=True)


def run(cl, np, device):
    """Raise unless the device computes a small kernel correctly."""
    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    n = 100
    x = np.arange(n, dtype=np.float32) / n
    y = np.zeros(n, np.float32)
    src = cl.Buffer(context, cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR, hostbuf=x)
    dst = cl.Buffer(context, cl.mem_flags.READ_WRITE, size=x.nbytes)
    kernel = cl.Kernel(cl.Program(context, SOURCE).build(cache_dir=False), "probe")
    kernel.set_arg(0, src)
    kernel.set_arg(1, dst)
    kernel.set_arg(2, np.int64(n))
    cl.enqueue_nd_range_kernel(queue, kernel, (128,), None)
    cl.enqueue_copy(queue, y, dst, is_blocking=True)
    if not np.allclose(y, x * 2 + 1, rtol=1e-6):
        raise RuntimeError(f"wrong result: {y[:4].tolist()} where {(x[:4] * 2 + 1).tolist()} was expected")


def memory_is_near(cl, np, device, _):
    """Whether what a kernel reads and writes is what this process sees where the driver once mapped its buffers."""
    import ctypes
    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    kernel = cl.Kernel(cl.Program(context, SOURCE).build(cache_dir=False), "probe")
    for n in (4, 1 << 18):
        x = np.arange(n, dtype=np.float32) / n
        buffers = [cl.Buffer(context, cl.mem_flags.READ_WRITE, size=x.nbytes) for _ in range(2)]
        for b in buffers:
            cl.enqueue_fill_buffer(queue, b, np.float32(7), 0, x.nbytes)
        where = []
        for b in buffers:
            memory, _ = cl.enqueue_map_buffer(queue, b, cl.map_flags.READ, 0, (1,), np.uint8)
            where.append(memory.ctypes.data)
            memory.base.release(queue).wait()
        for turn in range(2):
            given = x + turn
            ctypes.memmove(where[0], given.ctypes.data, x.nbytes)
            kernel.set_args(*buffers, np.int64(n))
            cl.enqueue_nd_range_kernel(queue, kernel, (n,), None)
            queue.finish()
            seen = np.frombuffer(ctypes.string_at(where[1], x.nbytes), np.float32)
            if not np.allclose(seen, given * 2 + 1, rtol=1e-6):
                return False
    return True


IDS = """
__kernel void probe_direct(__global const float* x, const long n, const float f, __global long* y) {
    __local long a[1024], b[32];
    long i = get_global_id(0) + get_global_size(0) * get_global_id(1), k = get_local_id(0) + get_local_size(0) * get_local_id(1);
    long last = get_local_size(0) * get_local_size(1) - 1;
    a[32 * k] = i;
    b[last - k] = 2 * i;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (i < n) {
        __global long* at = y + 12 * i;
        at[0] = (long)(exp(x[i] / 64) * f);     at[1] = get_work_dim();       at[2] = get_num_groups(0);   at[3] = get_num_groups(1);
        at[4] = get_local_size(0);     at[5] = get_local_size(1);    at[6] = get_group_id(0);     at[7] = get_group_id(1);
        at[8] = get_global_offset(0);  at[9] = get_global_size(0);   at[10] = get_num_groups(2);  at[11] = a[32 * (last - k)] + b[k];
    }
}"""


def driven(cl, np, device, local):
    """(what the driver computes, the address of that, the function for another result, memory of the arguments, program), for 2 by 3 groups."""
    context, n = cl.Context([device]), 6 * local[0] * local[1] - 8
    queue = cl.CommandQueue(context)
    x, y = np.arange(n, dtype=np.float32), np.zeros(12 * n, np.int64)
    src = cl.Buffer(context, cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR, hostbuf=x)
    dst = cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=y)
    program = cl.Program(context, IDS).build(cache_dir=False)
    kernel = cl.Kernel(program, "probe_direct")
    kernel.set_args(src, np.int64(n), np.float32(3), dst)
    cl.enqueue_nd_range_kernel(queue, kernel, (2 * local[0], 3 * local[1]), local)
    cl.enqueue_copy(queue, y, dst, is_blocking=True)
    kept = [cl.enqueue_map_buffer(queue, b, cl.map_flags.READ, 0, (1,), np.uint8)[0] for b in (src, dst)]
    return y, [k.ctypes.data for k in kept], program, (kept, src, dst)


def same(np, y, other, where):
    """Whether the driver's results, which are seen ``where`` it mapped them, are those of the call."""
    import ctypes
    return y.any() and np.array_equal(y, other) and np.ctypeslib.as_array((ctypes.c_int64 * y.size).from_address(where)).tolist() == y.tolist()


def called_directly(cl, np, device, _):
    """Whether the function that PoCL made of a kernel does the same when it is called as ``_native/direct.c`` does."""
    import ctypes
    import re
    import struct
    y, where, _, kept = driven(cl, np, device, (4, 2))
    path = re.search(r"/\S.*/probe_direct/4-2-1-goffs0\S*/probe_direct\.so$", open("/proc/self/maps").read(), re.M).group()
    group = ctypes.CDLL(path)["_pocl_kernel_probe_direct_workgroup"]
    group.argtypes, group.restype = [ctypes.c_char_p] * 2 + [ctypes.c_size_t] * 3, None
    other = np.zeros(y.size, np.int64)
    values = [ctypes.create_string_buffer(struct.pack(*v), 64) for v in (("Q", where[0]), ("q", y.size // 12), ("f", 3), ("Q", other.ctypes.data))]
    arrays = [ctypes.create_string_buffer(8192 + 128) for _ in range(2)]            # in local memory: their pointers follow the arguments
    values += [ctypes.create_string_buffer(struct.pack("Q", -(-ctypes.addressof(a) // 128) * 128)) for a in arrays]
    args = struct.pack("6Q", *map(ctypes.addressof, values))
    printed = ctypes.create_string_buffer(4)
    told = struct.pack("10QQII128x", 2, 3, 1, 0, 0, 0, 4, 2, 1, 0, ctypes.addressof(printed), 0, 2)
    for gy in range(3):
        for gx in range(2):
            group(args, told, gx, gy, 0)
    return same(np, y, other, where[1])


def called_packed(cl, np, device, code):
    """The same of the functions in a binary of Intel's runtime: one for any group, and one for those that fill whole vectors."""
    import ctypes
    import re
    import runpy
    import struct
    for local in ((4, 2), (16, 2)):
        y, where, program, kept = driven(cl, np, device, local)
        memory, functions = runpy.run_path(code)["load"](program.get_info(cl.program_info.BINARIES)[0])
        wide = [name for name in functions if re.fullmatch(r"_ZGV[a-z]N\d+[a-z0-9]*_probe_direct", name)]
        group = ctypes.CFUNCTYPE(None, *[ctypes.c_char_p] * 3)(functions[wide[0] if wide and local[0] == 16 else "probe_direct"])
        other = np.zeros(y.size, np.int64)
        given = struct.pack("Qqf4xQ", where[0], y.size // 12, 3, other.ctypes.data)
        sizes = (2 * local[0], 3 * local[1], 1, *local, 1, *local, 1, 2, 3, 1)
        args = given + struct.pack("4Q12Q2Q12Q128x", 2, 0, 0, 0, *sizes, 0, 0, *sizes)
        for gy in range(3):
            for gx in range(2):
                group(args, struct.pack("8Q", gx, gy, *[0] * 6), bytes(128))
        if not same(np, y, other, where[1]):
            return False
    return True


def main(code, skip):
    warnings.simplefilter("ignore")
    try:
        import numpy as np
        import pyopencl as cl
    except Exception as exc:                # no driver is to blame
        say(event="broken", problem=f"{type(exc).__name__}: {exc}"[:400])
        os._exit(1)
    processors, companions, packed = [], [], []
    for platform in cl.get_platforms():
        try:
            devices = platform.get_devices()
        except cl.Error:
            devices = []
        say(event="platform", name=platform.name, version=platform.version, devices=len(devices))
        for ordinal, device in enumerate(devices):
            key = device_key(platform, device, ordinal)
            if key in skip:
                continue
            if "POCL_DEVICES" in os.environ and device.name.startswith(("basic", "cpu-minimal")):
                companions.append((key, device))
            say(event="begin", key=key)
            try:
                run(cl, np, device)
                say(event="end", key=key, problem="")
                if device.type & cl.device_type.CPU:
                    processors.append((key, device))
                    if platform.name.startswith("Intel") and sys.platform == "linux":
                        packed.append((key, device))
            except Exception as exc:
                say(event="end", key=key, problem=f"{type(exc).__name__}: {exc}"[:800])
    say(event="done")
    for name, works, asked in (("near", memory_is_near, processors), ("direct", called_directly, companions), ("direct", called_packed, packed)):
        for key, device in asked:
            if works(cl, np, device, code):
                say(event="end", key=f"{key}|{name}", problem="")
    sys.stdout.flush()
    os._exit(0)  # some drivers crash while they unload; the verdicts are out already


if __name__ == "__main__":
    main(sys.argv[1], set(sys.argv[2:]))
