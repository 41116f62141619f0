"""Timing of statements that waits for the device, as in ``torch.utils.benchmark``."""
from __future__ import annotations

import itertools
import math
import statistics
import textwrap
import timeit
from dataclasses import dataclass, field, fields

import clnn

__all__ = ["TaskSpec", "Timer", "timer", "Measurement", "Compare", "select_unit", "unit_to_english", "trim_sigfig", "ordered_unique"]
_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}


def select_unit(t):
    """The unit that shows ``t`` seconds with few digits, and how many seconds it has."""
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(int(math.log10(t) // 3) if t > 0 else 0, "s")
    return unit, _UNITS[unit]


def unit_to_english(u):
    """``"us"`` in words."""
    return {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}[u]


def trim_sigfig(x, n):
    """``x`` with ``n`` significant figures."""
    if not x:
        return 0.0
    magnitude = math.ceil(math.log10(abs(x)))
    scale = 10.0 ** (magnitude - n)
    return float(round(x / scale) * scale)


def ordered_unique(elements):
    """Each element once, in the order of the first."""
    return list(dict.fromkeys(elements))


@dataclass(frozen=True)
class TaskSpec:
    """What a :class:`Timer` was told to time."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self):
        """A line that names it: the label, or the statement."""
        more = f": {self.sub_label}" if self.sub_label else ""
        if self.label is not None or "\n" not in self.stmt:
            return (self.stmt if self.label is None else self.label) + more
        return f"stmt:{f' ({self.sub_label})' if self.sub_label else ''}\n{textwrap.indent(self.stmt, '  ')}"

    def setup_str(self):
        """The setup as a line, or a block."""
        if self.setup in ("", "pass"):
            return ""
        return f"setup:\n{textwrap.indent(self.setup, '  ')}" if "\n" in self.setup else f"setup: {self.setup}"

    def summarize(self):
        """Title, description and setup."""
        return "\n".join(f"{part}\n" if "\n" in part else part for part in (self.title, self.description or "", self.setup_str()) if part)


@dataclass(repr=False)
class Measurement:
    """Times of one statement: ``raw_times`` of blocks of ``number_per_run`` runs, ``times`` of a run, in seconds. Has the fields of its ``task_spec``, too."""

    number_per_run: int
    raw_times: list
    task_spec: TaskSpec
    metadata: dict | None = field(default=None)

    def __getattr__(self, name):
        if name in _SPEC:
            return getattr(self.task_spec, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def times(self):
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def mean(self):
        return statistics.mean(self.times)

    @property
    def median(self):
        return statistics.median(self.times)

    def _quartiles(self):
        times = self.times
        low, _, high = statistics.quantiles(times, n=4, method="inclusive") if len(times) > 1 else times * 3
        return low, high

    @property
    def iqr(self):
        """The distance of the quartiles."""
        low, high = self._quartiles()
        return high - low

    @property
    def significant_figures(self):
        """About how many figures of the median mean something, from how the middle half of the times scatters."""
        times = sorted(self.times)
        middle = times[len(times) // 4:math.ceil(3 * len(times) / 4)]
        width = max(1.645 * statistics.pstdev(middle) / math.sqrt(len(middle)), 25e-9)
        return min(max(math.floor(math.log10(self.median / width)), 1), 4)

    def meets_confidence(self, threshold=0.1):
        """Whether the quartiles lie within this share of the median."""
        return self.iqr / self.median < threshold

    @property
    def has_warnings(self):
        return not self.meets_confidence()

    @property
    def title(self):
        return self.task_spec.title

    @property
    def as_row_name(self):
        return self.sub_label or self.stmt or "[Unknown]"

    def _warning(self):
        what = "This suggests significant environmental influence." if not self.meets_confidence(0.25) else "This could indicate system fluctuation."
        return [f"  WARNING: Interquartile range is {100 * self.iqr / self.median:.1f}% of the median measurement.", f"           {what}"]

    def __repr__(self):
        unit, size = select_unit(self.median)
        n, (low, high), many = len(self.raw_times), self._quartiles(), self.num_threads > 1
        lines = [object.__repr__(self), self.task_spec.summarize(), f"  {'Median: ' if n > 1 else ''}{self.median / size:.2f} {unit}"]
        if n >= 4:
            lines.append(f"  IQR:    {(high - low) / size:.2f} {unit} ({low / size:.2f} to {high / size:.2f})")
        lines.append(f"  {n} measurement{'s' * (n > 1)}, {self.number_per_run} runs {'per measurement,' if n > 1 else ','} {self.num_threads} thread{'s' * many}")
        return "\n".join(lines + (self._warning() if self.has_warnings else []))

    @staticmethod
    def merge(measurements):
        """One measurement per :class:`TaskSpec`, with all times of a run."""
        groups = {}
        for m in measurements:
            groups.setdefault(m.task_spec, []).append(m)
        return [Measurement(1, list(itertools.chain(*[m.times for m in group])), spec) for spec, group in groups.items()]


_SPEC = frozenset(f.name for f in fields(TaskSpec))


def timer():
    """Seconds on a clock, read once the device has finished."""
    clnn.synchronize()
    return timeit.default_timer()


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

    def __init__(self, stmt="pass", setup="pass", global_setup="", timer=timer, globals=None, label=None, sub_label=None,
                 description=None, env=None, num_threads=1, language=None):
        def wait():
            clnn.synchronize()
            return timer()
        self._timer = timeit.Timer(stmt, setup, wait, {"torch": clnn, "clnn": clnn, **(globals or {})})
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)

    def _measure(self, number, times):
        return Measurement(number, times, self._task_spec)

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
        self._results, self._trim = list(results), False

    def extend_results(self, results):
        """More measurements."""
        self._results += results

    def trim_significant_figures(self):
        """Show no more figures than mean something."""
        self._trim = True

    def colorize(self, rowwise=False):
        """Accepted."""

    def highlight_warnings(self):
        """Accepted."""

    def _text(self, m, size):
        if not self._trim:
            return f"{m.median / size:.1f}"
        shown = trim_sigfig(m.median / size, m.significant_figures)
        return f"{shown:.{max(0, m.significant_figures - math.ceil(math.log10(shown)))}f}"

    def __str__(self):
        if not self._results:
            return ""
        unit, size = select_unit(min(m.median for m in self._results))
        columns = list(dict.fromkeys(m.description or m.stmt for m in self._results))
        rows = list(dict.fromkeys((m.label or "", m.num_threads, m.sub_label or m.stmt) for m in self._results))
        cells = {((m.label or "", m.num_threads, m.sub_label or m.stmt), m.description or m.stmt): self._text(m, size) for m in self._results}
        first = max(len(r[2]) for r in rows)
        lines = [" " * first + "".join(f"  |  {c}" for c in columns)]
        lines += [r[2].ljust(first) + "".join(f"  |  {cells.get((r, c), ''):>{len(c)}}" for c in columns) for r in rows]
        return "\n".join([*dict.fromkeys(r[0] for r in rows if r[0]), *lines, f"Times are in {unit}."])

    def print(self):
        """Print the table."""
        print(self)
