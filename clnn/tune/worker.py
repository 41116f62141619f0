"""Measures candidates in a process of its own, so that one that crashes or hangs takes nothing else with it.

Reads a JSON line ``{"op", "problem", "params"}`` from standard input, answers one: ``{"ms": ..., "key": class of the problem or null}`` or ``{"error": ...}``.
"""
from __future__ import annotations

import json
import sys
import time

REPEATS = 7


def measure(device, run, limit=0.5):
    """Milliseconds of one run, after a warm-up: the best of a few, as whatever else the machine does only adds to it."""
    run()
    device.synchronize()
    times, start = [], time.perf_counter()
    while len(times) < REPEATS and (len(times) < 3 or time.perf_counter() - start < limit):
        t = time.perf_counter()
        run()
        device.synchronize()
        times.append(time.perf_counter() - t)
    return min(times) * 1e3


def main(device_name):
    from .._tensor.device import resolve, set_default_device
    from ..runtime import params
    from .spaces import SPACES
    set_default_device(device_name)
    device, prepared = resolve(None), {}
    print(json.dumps({"device": device.name, "flavour": device.flavour, "vendor": device.vendor}), flush=True)
    for line in sys.stdin:
        job = json.loads(line)
        space, problem = SPACES[job["op"]], tuple(job["problem"])
        try:
            if prepared.get("at") != (job["op"], problem):
                prepared = {"at": (job["op"], problem), "pair": space.prepare(device, problem)}
            run, check = prepared["pair"]
            if job["params"] is None:
                params.changed()
                ms, right = measure(device, run), check()
            else:
                with params.forced(job["op"], job["params"]):
                    ms, right = measure(device, run), check()
            answer = {"ms": ms, "key": params.asked.get(job["op"])} if right else {"error": "wrong result"}
        except Exception as exc:
            answer = {"error": f"{type(exc).__name__}: {exc}"[:500]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
