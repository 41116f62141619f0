"""Proves OpenCL devices by building and running a small kernel on each. Run as a script, in a process that may crash or hang.

It prints one JSON object per line: ``platform``, then per device ``begin`` and ``end``; ``broken`` where pyopencl cannot be imported. The parent blames
the device that began and did not end. Arguments: keys of devices to leave out. It imports nothing of clnn, so that it starts fast and alone.
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


def main(skip):
    warnings.simplefilter("ignore")
    try:
        import numpy as np
        import pyopencl as cl
    except Exception as exc:                # no driver is to blame
        say(event="broken", problem=f"{type(exc).__name__}: {exc}"[:400])
        os._exit(1)
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
            say(event="begin", key=key)
            try:
                run(cl, np, device)
                say(event="end", key=key, problem="")
            except Exception as exc:
                say(event="end", key=key, problem=f"{type(exc).__name__}: {exc}"[:800])
    say(event="done")
    sys.stdout.flush()
    os._exit(0)  # some drivers crash while they unload; the verdicts are out already


if __name__ == "__main__":
    main(set(sys.argv[1:]))
