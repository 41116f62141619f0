"""Interleaved timing: contenders take turns, so that what disturbs the machine disturbs all of them alike."""
from __future__ import annotations

import gc
import statistics
import time
from dataclasses import dataclass, field


@dataclass
class Contender:
    """One way to do the work: ``run`` starts it, ``wait`` ends when it is done."""

    name: str
    run: object
    wait: object = None


@dataclass
class Case:
    """One line of the table: equal work for all contenders.

    ``amount`` is the work of one call in ``unit``'s numerator (bytes for GB/s, operations for GFLOP/s); for the units ms and us it is the number of things done
    per call, and less is better. ``bound`` names the limit that the work is held against: ``copy``, ``fma`` or nothing.
    """

    name: str
    unit: str
    amount: float
    contenders: list
    bound: str = ""
    note: str = ""
    limit_amount: float = 0.0      # work of one call of the contender "limit", where it differs


@dataclass
class Result:
    """Seconds per call of each contender: the best round and the median one."""

    case: Case
    best: dict = field(default_factory=dict)
    median: dict = field(default_factory=dict)

    def rate(self, name, table=None):
        seconds = (table or self.best).get(name)
        if seconds is None:
            return None
        case = self.case
        if name == "limit" and case.limit_amount:
            return case.limit_amount / seconds / 1e9
        if case.unit in ("ms", "us"):
            return seconds / case.amount * (1e3 if case.unit == "ms" else 1e6)
        return case.amount / seconds / 1e9

    def ratio(self, other):
        """How many times as fast as ``other`` clnn is, from best rounds."""
        if "clnn" not in self.best or other not in self.best:
            return None
        return self.best[other] / self.best["clnn"]

    def as_dict(self):
        return dict(name=self.case.name, unit=self.case.unit, amount=self.case.amount, bound=self.case.bound, note=self.case.note,
                    best_seconds=self.best, median_seconds=self.median, rates={n: self.rate(n) for n in self.best})


PAUSE = 0.15        # seconds before each turn: the worker threads of the contender before spin for a while (OpenBLAS: more than 50 ms)


def _once(contender, calls, pause=None):
    time.sleep(PAUSE if pause is None else pause)
    start = time.perf_counter()
    for _ in range(calls):
        contender.run()
    if contender.wait is not None:
        contender.wait()
    return (time.perf_counter() - start) / calls


def _per_call(contender, warm_up):
    """Seconds of a call once kernels are built, caches filled and repeats recorded: the first calls of a short one take a hundred times as long as it."""
    start, done = time.perf_counter(), 0
    while done < 3 or done < 30 and time.perf_counter() - start < warm_up:
        _once(contender, 1, 0)
        done += 1
    calls, each = 1, _once(contender, 1, 0)
    while calls * each < 0.002 and calls < 1000:
        calls *= 4
        each = _once(contender, calls, 0)
    return each


def measure(case: Case, seconds: float = 0.6, rounds: int = 7) -> Result:
    """Time every contender ``rounds`` times in turn, each turn about ``seconds / rounds`` long; a contender that fails is left out."""
    result, ready = Result(case), []
    for contender in case.contenders:
        try:
            ready.append((contender, max(1, min(10000, int(seconds / rounds / max(_per_call(contender, min(0.2, seconds)), 1e-7))))))
        except Exception as exc:
            case.note = f"{contender.name}: {type(exc).__name__}: {str(exc).splitlines()[0][:80]}"
    times = {c.name: [] for c, _ in ready}
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for contender, calls in ready:
                times[contender.name].append(_once(contender, calls))
    finally:
        gc.enable()
    for name, found in times.items():
        result.best[name], result.median[name] = min(found), statistics.median(found)
    return result
