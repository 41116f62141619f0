"""Builds programs, and fills PoCL's cache of kernels by running one work-group of each on zeros, for a process that will need them soon.

Run as a script with the platform's name, in a process that may crash or hang. It reads one JSON object per line: ``{"build": number, "source", "options",
"device", "binary"}``, which is answered by the number when the program was built and its binary written to that file, unless it is null; and ``{"run":
[[number, kernel, global size, local size, arguments], ...]}``. The last kernels come first, as the other process begins with the first. An argument is
None, a hexadecimal string of its bytes, or the size of a buffer. It imports nothing of clnn.
"""
import ctypes
import json
import os
import queue
import signal
import sys
import threading
import warnings

IDLE = 20.0         # seconds without work after which it ends
PATIENCE = 10       # seconds that a kernel may take, to build and to run
SMALL_GRID = 65535  # work-items in a dimension, from which on PoCL makes another form of a kernel


def read(messages):
    for line in sys.stdin.buffer:
        messages.put(json.loads(line))
    os._exit(0)


class Worker:
    def __init__(self):
        import numpy as np
        import pyopencl as cl
        self.cl, self.np = cl, np
        platform = next(p for p in cl.get_platforms() if p.name.strip() == sys.argv[1])
        devices = platform.get_devices()
        self.context = cl.Context(devices)
        self.queues = {d.name.strip(): cl.CommandQueue(self.context, d) for d in devices}
        self.programs = {}

    def build(self, build, source, options, device, binary):
        queue = self.queues[device]
        try:
            program = self.cl.Program(self.context, source).build(options, devices=[queue.device], cache_dir=False)
            self.programs[build] = program, queue
            if binary is not None:
                with open(binary + ".part", "wb") as file:
                    file.write(program.get_info(self.cl.program_info.BINARIES)[0])
                os.replace(binary + ".part", binary)
        except (self.cl.Error, OSError):
            pass        # the other process will tell why
        print(build, flush=True)

    def run(self, build, name, size, local, args):
        if build not in self.programs:
            return
        program, queue = self.programs[build]
        kernel, kept = self.cl.Kernel(program, name), []
        for i, a in enumerate(args):
            kernel.set_arg(i, self.zeros(a, kept) if isinstance(a, int) else bytes.fromhex(a) if a is not None else None)
        small = list(local)
        if max(size) >= SMALL_GRID:
            k = size.index(max(size))
            small[k] = -(-SMALL_GRID // local[k]) * local[k]
        self.cl.enqueue_nd_range_kernel(queue, kernel, small, local)
        queue.finish()

    def zeros(self, nbytes, kept):
        flags, memory = self.cl.mem_flags, self.np.zeros(nbytes, self.np.uint8)     # pages that nobody touches take no memory
        kept.append(self.cl.Buffer(self.context, flags.READ_WRITE | flags.USE_HOST_PTR, hostbuf=memory))
        return kept[-1]


def main():
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGINT, signal.SIG_IGN)    # meant for the other process
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)      # PR_SET_PDEATHSIG: it ends with the process that it works for
    messages, waiting = queue.Queue(), []
    threading.Thread(target=read, args=(messages,), daemon=True).start()
    worker = Worker()
    while True:
        try:
            message = messages.get(timeout=0.0 if waiting else IDLE)
        except queue.Empty:
            if not waiting:
                os._exit(0)
            signal.alarm(PATIENCE)
            worker.run(*waiting.pop())
            signal.alarm(0)
            continue
        if "build" in message:
            worker.build(**message)
        else:
            waiting += message["run"]


if __name__ == "__main__":
    main()
