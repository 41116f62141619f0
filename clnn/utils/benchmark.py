"""Timing of statements that waits for the device, as in ``torch.utils.benchmark``."""
from __future__ import annotations

import statistics
import timeit
from dataclasses import dataclass, field

import clnn

__all__ = ["Timer", "Measurement", "Compare"]
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


def _unit(seconds):
    return next(((size, name) for size, name in _UNITS if seconds >= size), _UNITS[-1])


@dataclass
class Measurement:
    """Times of one statement: ``raw_times`` of blocks of ``number_per_run`` runs, ``times`` of a run, in seconds."""

    number_per_run: int
    raw_times: list
    stmt: str = ""
    setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    num_threads: int = 1
    metadata: dict = field(default_factory=dict)

    @property
    def times(self):
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def mean(self):
        return statistics.mean(self.times)

    @property
    def median(self):
        return statistics.median(self.times)

    @property
    def iqr(self):
        """The distance of the quartiles."""
        if len(self.raw_times) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.times, n=4)
        return high - low

    @property
    def title(self):
        return f"{self.label or self.stmt}{f': {self.sub_label}' if self.sub_label else ''}"

    def __repr__(self):
        size, unit = _unit(self.median)
        n = len(self.raw_times)
        lines = [f"<{type(self).__module__}.{type(self).__name__} object>", self.title, *([self.description] if self.description else [])]
        lines += [f"setup: {self.setup}"] if self.setup not in ("", "pass") else []
        lines += [f"  {'Median' if n > 1 else ''}{': ' if n > 1 else ''}{self.median / size:.2f} {unit}"]
        lines += [f"  IQR:    {self.iqr / size:.2f} {unit}"] if n > 1 else []
        lines += [f"  {n} measurement{'s' * (n > 1)}, {self.number_per_run} runs {'per measurement' if n > 1 else ''}, {self.num_threads} thread"]
        return "\n".join(lines)


class Timer:
    """Times a statement; each block of runs ends when the device has finished.

    Args:
        stmt, setup: Python text, run in ``globals``.
        label, sub_label, description: names that :class:`Compare` shows.
        num_threads: kept for the table; the OpenCL driver decides.

    Example::

        >>> Timer = clnn.utils.benchmark.Timer
        >>> Timer("x + x", globals={"x": clnn.ones(3)}).timeit(10).number_per_run
        10
    """

    def __init__(self, stmt="pass", setup="pass", global_setup="", timer=timeit.default_timer, globals=None, label=None, sub_label=None,
                 description=None, env=None, num_threads=1, language=None):
        def wait():
            clnn.synchronize()
            return timer()
        self._timer = timeit.Timer(stmt, setup, wait, {"torch": clnn, "clnn": clnn, **(globals or {})})
        self._about = dict(stmt=stmt, setup=setup, label=label, sub_label=sub_label, description=description, num_threads=num_threads)

    def _measure(self, number, times):
        return Measurement(number, times, **self._about)

    def timeit(self, number=1000000):
        """One block of ``number`` runs, after a few to warm up."""
        self._timer.timeit(max(number // 100, 2))
        return self._measure(number, [self._timer.timeit(number)])

    def blocked_autorange(self, callback=None, min_run_time=0.2):
        """Blocks of so many runs that a block takes some milliseconds, until they took ``min_run_time`` seconds together."""
        number, took = 1, self._timer.timeit(2)
        while (took := self._timer.timeit(number)) < min_run_time / 100 and number < 10 ** 9:
            number *= 2
        times = [took]
        while sum(times) < min_run_time:
            times.append(self._timer.timeit(number))
            if callback is not None:
                callback(number, times[-1])
        return self._measure(number, times)

    def adaptive_autorange(self, threshold=0.1, *, min_run_time=0.01, max_run_time=10.0, callback=None):
        """As :meth:`blocked_autorange`, until the quartiles lie within ``threshold`` of the median."""
        got = self.blocked_autorange(callback, min_run_time)
        while (len(got.times) < 4 or got.iqr > threshold * got.median) and sum(got.raw_times) < max_run_time:
            got.raw_times.append(self._timer.timeit(got.number_per_run))
        return got


class Compare:
    """A table of measurements: a row per ``sub_label``, a column per ``description``."""

    def __init__(self, results):
        self._results = list(results)

    def extend_results(self, results):
        """More measurements."""
        self._results += results

    def trim_significant_figures(self):
        """Accepted."""

    def colorize(self, rowwise=False):
        """Accepted."""

    def __str__(self):
        if not self._results:
            return ""
        size, unit = _unit(min(m.median for m in self._results))
        columns = list(dict.fromkeys(m.description or m.stmt for m in self._results))
        rows = list(dict.fromkeys((m.label or "", m.num_threads, m.sub_label or m.stmt) for m in self._results))
        cells = {((m.label or "", m.num_threads, m.sub_label or m.stmt), m.description or m.stmt): f"{m.median / size:.1f}" for m in self._results}
        first = max(len(r[2]) for r in rows)
        lines = [" " * first + "".join(f"  |  {c}" for c in columns)]
        lines += [r[2].ljust(first) + "".join(f"  |  {cells.get((r, c), ''):>{len(c)}}" for c in columns) for r in rows]
        return "\n".join([*dict.fromkeys(r[0] for r in rows if r[0]), *lines, f"Times are in {unit}."])

    def print(self):
        """Print the table."""
        print(self)
