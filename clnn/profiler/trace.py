"""Chrome trace files: host ranges and device launches on one clock."""
from __future__ import annotations

import gzip
import json
import os

_CATEGORIES = {"op": "cpu_op", "fused": "fused", "foreach": "cpu_op", "backward": "backward", "module": "module", "range": "user_annotation",
               "copy": "copy"}


def write(path, collector, metadata=None) -> None:
    """Write what ``collector`` holds to ``path`` (compressed when it ends in ``.gz``)."""
    text = json.dumps({"schemaVersion": 1, "displayTimeUnit": "ms", "traceName": os.fspath(path), **(metadata or {}),
                       "traceEvents": list(_entries(collector))})
    opener = gzip.open if os.fspath(path).endswith(".gz") else open
    with opener(path, "wt", encoding="utf-8") as f:
        f.write(text)


def _entries(c):
    pid, zero = os.getpid(), c.started
    yield {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": "host"}}
    threads = {}
    for e in c.events:
        tid = threads.setdefault(e.thread, len(threads) + 1)
        args = {"module": e.module} if e.module else {}
        for name in ("shapes", "stack", "flops", "bytes"):
            if getattr(e, name):
                args[name] = getattr(e, name)
        if e.parts:
            args["operators"] = list(e.parts)
        yield {"ph": "X", "cat": _CATEGORIES[e.kind], "name": e.name, "pid": pid, "tid": tid, "ts": (e.start - zero) / 1e3,
               "dur": e.host_ns / 1e3, "args": args}
    for tid in threads.values():
        yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": f"thread {tid}"}}
    for at, used in c.memory_points:
        yield {"ph": "C", "name": "memory", "pid": pid, "ts": (at - zero) / 1e3, "args": {"bytes": used}}
    devices = {}
    for number, x in enumerate(c.launches, 1):
        if x.start is None:
            continue
        if x.device not in devices:
            devices[x.device] = f"device {len(devices)}"
            yield {"ph": "M", "name": "process_name", "pid": devices[x.device], "args": {"name": f"{x.device} {x.device.name}"}}
        yield from _launch(x, number, pid, devices[x.device], threads, zero)


def _launch(x, number, pid, device, threads, zero):
    """A launch on the device's row, and the arrow from the host call that enqueued it."""
    args = {"operator": x.operator, "module": x.module, "bytes (estimated)": x.bytes}
    if x.sizes:
        args["global size"], args["local size"] = (list(s) if s is not None else None for s in x.sizes)
    if x.duration_ns:
        args["GB/s"] = round(x.bytes / x.duration_ns, 3)
        if x.flops:
            args["GFLOP/s"] = round(x.flops / x.duration_ns, 3)
    copy = x.kernel.startswith("Mem")
    start = (x.start - zero) / 1e3
    label = x.kernel if copy or not x.operator else f"{x.kernel} [{x.operator}]"
    yield {"ph": "X", "cat": "gpu_memcpy" if copy else "kernel", "name": label, "pid": device, "tid": "queue", "ts": start,
           "dur": x.duration_ns / 1e3, "args": args}
    if x.parent is not None and x.parent.thread in threads:
        tid = threads[x.parent.thread]
        yield {"ph": "s", "id": number, "cat": "launch", "name": "launch", "pid": pid, "tid": tid, "ts": (x.queued - zero) / 1e3}
        yield {"ph": "f", "bp": "e", "id": number, "cat": "launch", "name": "launch", "pid": device, "tid": "queue", "ts": start}


def stacks(path, events, metric) -> None:
    """Write collapsed stacks with a weight in microseconds, as flame graph tools read them."""
    sums = {}
    for e in events:
        if e.stack and e.kind != "module":
            line = ";".join(s.replace(";", ",") for s in reversed([e.name, *e.stack]))
            sums[line] = sums.get(line, 0) + int(getattr(e, metric))
    with open(path, "w", encoding="utf-8") as f:
        for line, value in sums.items():
            if value > 0:
                f.write(f"{line} {value}\n")
