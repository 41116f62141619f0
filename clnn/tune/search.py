"""The search: a coarse grid, then local steps around the best, within a budget; every candidate is checked before it may win."""
from __future__ import annotations

import itertools
import json
import random
import select
import subprocess
import sys
import time

from ..core.config import cache_dir
from ..runtime import params
from .spaces import SPACES

CANDIDATE_SECONDS = 30


class Worker:
    """The measuring process; started again after it crashed or was stopped for taking too long."""

    def __init__(self, device):
        self.device, self.process, self.about = device, None, None

    def start(self):
        self.process = subprocess.Popen([sys.executable, "-m", "clnn.tune.worker", self.device], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.about = self._answer(CANDIDATE_SECONDS * 4)
        if "device" not in self.about:
            raise RuntimeError(f"tune: the measuring process did not start on device {self.device!r}: {self.about.get('error')}")

    def _answer(self, seconds):
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        line = self.process.stdout.readline() if ready else ""
        if line:
            return json.loads(line)
        self.stop()
        return {"error": "crashed" if ready else f"took longer than {seconds} s"}

    def measure(self, op, problem, candidate):
        """Milliseconds of a candidate, or an error text."""
        if self.process is None:
            self.start()
        try:
            self.process.stdin.write(json.dumps({"op": op, "problem": list(problem), "params": candidate}) + "\n")
            self.process.stdin.flush()
        except OSError:
            self.stop()
            return {"error": "crashed"}
        return self._answer(CANDIDATE_SECONDS)

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def candidates(values, rng):
    """Every combination, in an order that sees each value early: a coarse grid first, then the rest at random."""
    names = list(values)
    coarse = [dict(zip(names, c)) for c in itertools.product(*(v[::2] for v in values.values()))]
    rest = [c for c in (dict(zip(names, c)) for c in itertools.product(*values.values())) if c not in coarse]
    rng.shuffle(rest)
    return coarse, rest


def neighbours(best, values):
    """Candidates one step away from ``best``."""
    for name, legal in values.items():
        at = legal.index(best[name])
        for to in (at - 1, at + 1):
            if 0 <= to < len(legal):
                yield {**best, name: legal[to]}


class State:
    """What was measured already, kept on disk so that an interrupted search goes on."""

    def __init__(self, device):
        self.path = cache_dir("tune") / f"search-{''.join(c if c.isalnum() else '-' for c in device)}.json"
        try:
            self.seen = json.loads(self.path.read_text())
        except (OSError, ValueError):
            self.seen = None
        if not isinstance(self.seen, dict):
            self.seen = {}

    def get(self, op, key, candidate):
        return self.seen.get(op, {}).get(key, {}).get(json.dumps(candidate, sort_keys=True))

    def put(self, op, key, candidate, answer):
        self.seen.setdefault(op, {}).setdefault(key, {})[json.dumps(candidate, sort_keys=True)] = answer

    def save(self):
        text = self.path.with_suffix(".part")
        text.write_text(json.dumps(self.seen))
        text.replace(self.path)


def confirmed(worker, space, problem, best) -> bool:
    """Does the winner also win when it and the launcher's rule take turns? A search over minutes sees the machine in many moods."""
    times = {"rule": [], "best": []}
    for _ in range(3):
        for name, candidate in (("rule", None), ("best", best)):
            times[name].append(worker.measure(space.name, problem, candidate).get("ms", float("inf")))
    return min(times["best"]) < 0.97 * min(times["rule"])


def tune_problem(worker, space, problem, seconds, state, progress):
    """The best row for one problem, or None when nothing beats the launcher's own rule by 3 %."""
    end = time.monotonic() + seconds
    base = worker.measure(space.name, problem, None)
    key = base.get("key")
    if key is None:                     # the launcher takes a variant that has nothing to tune (or failed)
        return None
    best, best_ms = None, base.get("ms", float("inf"))
    start_ms = best_ms
    coarse, rest = candidates(space.values, random.Random(0))
    queue, tried = list(coarse), set()
    while queue and time.monotonic() < end:
        candidate = queue.pop(0)
        mark = json.dumps(candidate, sort_keys=True)
        if mark in tried:
            continue
        tried.add(mark)
        answer = state.get(space.name, key, candidate) or worker.measure(space.name, problem, candidate)
        state.put(space.name, key, candidate, answer)
        progress(f"{space.name} {'x'.join(map(str, problem))}: {best_ms:.3f} ms (rule {start_ms:.3f})")
        if answer.get("ms", float("inf")) < best_ms * 0.97:
            best, best_ms = candidate, answer["ms"]
            queue[:0] = list(neighbours(best, space.values))
        if not queue:
            queue, rest = rest, []
    state.save()
    if best is None or not confirmed(worker, space, problem, best):
        return None
    about = worker.about
    return {"op": space.name, "place": about["device"], "key": key, "params": best, "ms": round(best_ms, 4), "rule_ms": round(start_ms, 4)}


def tune(device=None, ops=None, budget=600.0, shapes=None, progress=lambda text, share: None):
    """Search parameters and keep the winners in the user's file; returns the new rows.

    Args:
        device: a device name, None for the default device.
        ops: operator names (default: all in ``spaces``). budget: seconds in all.
        shapes: ``{op: [problem, ...]}`` instead of the built-in problems.
        progress: called with a text and the share of the work that is done.
    """
    from .._tensor.device import resolve
    target = resolve(device)
    name = "cl:%d:%d" % target.cl_index
    unknown = [op for op in ops or () if op not in SPACES]
    if unknown:
        raise ValueError(f"tune: no tunable operator {unknown[0]!r}; there are {', '.join(SPACES)}")
    jobs = [(SPACES[op], tuple(p)) for op in (ops or SPACES) for p in (shapes or {}).get(op, SPACES[op].problems)]
    worker, state, found = Worker(name), State(target.name), []
    start = time.monotonic()
    try:
        for n, (space, problem) in enumerate(jobs):
            left = budget - (time.monotonic() - start)
            if left <= 0:
                break
            row = tune_problem(worker, space, problem, left / (len(jobs) - n), state, lambda text, n=n: progress(text, n / len(jobs)))
            if row is not None:
                found.append(row)
                save_rows([row])
            progress(f"{space.name} {'x'.join(map(str, problem))} done", (n + 1) / len(jobs))
    finally:
        worker.stop()
        state.save()        # also what was measured of a problem that was interrupted
    return found


def save_rows(rows) -> None:
    """Add rows to the user's file."""
    path = params.user_file()
    old = params.read_rows(path) if path.exists() else []
    params.write_rows(path, params.merge(old, rows))
    params.changed()
