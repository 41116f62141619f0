"""How many calls of a module a second a server could answer."""
from __future__ import annotations

import random
import threading
import time
from types import SimpleNamespace


def format_time(time_us=None, time_ms=None, time_s=None) -> str:
    """A time, given in one of three units, as text.

    Example:
        >>> clnn.utils.throughput_benchmark.format_time(time_ms=1500)
        '1.500s'
    """
    given = [t * scale for t, scale in ((time_us, 1.0), (time_ms, 1e3), (time_s, 1e6)) if t is not None]
    if len(given) != 1:
        raise AssertionError("Expected only one of time_us, time_ms, time_s is given.")
    scale, unit = (1e6, "s") if given[0] >= 1e6 else (1e3, "ms") if given[0] >= 1e3 else (1, "us")
    return f"{given[0] / scale:.3f}{unit}"


class ExecutionStats:
    """What :meth:`ThroughputBenchmark.benchmark` found: ``num_iters`` calls that took ``latency_avg_ms`` each."""

    def __init__(self, num_iters, latency_avg_ms, benchmark_config):
        self.num_iters, self.latency_avg_ms, self.benchmark_config = num_iters, latency_avg_ms, benchmark_config

    @property
    def total_time_seconds(self):
        return self.num_iters * (self.latency_avg_ms / 1000.0) / self.benchmark_config.num_calling_threads

    @property
    def iters_per_second(self):
        """Calls a second of all threads together."""
        return self.num_iters / self.total_time_seconds

    def __str__(self):
        return "\n".join([f"Average latency per example: {format_time(time_ms=self.latency_avg_ms)}", f"Total number of iterations: {self.num_iters}",
                          f"Total number of iterations per second (across all threads): {self.iters_per_second:.2f}",
                          f"Total time: {format_time(time_s=self.total_time_seconds)}"])


class ThroughputBenchmark:
    """Calls a module from several threads, as a server does, with inputs picked at random from those given. A call ends when its device is done.

    Example:
        >>> bench = clnn.utils.ThroughputBenchmark(clnn.nn.Linear(2, 1))
        >>> bench.add_input(clnn.ones(4, 2))
        >>> bench.benchmark(num_calling_threads=2, num_warmup_iters=1, num_iters=6).num_iters
        6
    """

    def __init__(self, module):
        self._module, self._inputs = module, []

    def add_input(self, *args, **kwargs):
        """Keep the arguments of a call."""
        self._inputs.append((args, kwargs))

    def run_once(self, *args, **kwargs):
        """What the module gives for these arguments."""
        return self._module(*args, **kwargs)

    def _call(self, choose):
        import clnn
        args, kwargs = choose.choice(self._inputs)
        self._module(*args, **kwargs)
        clnn.synchronize()

    def benchmark(self, num_calling_threads=1, num_warmup_iters=10, num_iters=100, profiler_output_path=""):
        """Time ``num_iters`` calls, which the threads share, after ``num_warmup_iters`` by each of them.

        Args:
            profiler_output_path: a file for the trace of the profiler; empty for none.
        """
        if not self._inputs:
            raise RuntimeError("Please provide benchmark inputs.Did you forget to call add_input()? ")
        config = SimpleNamespace(num_calling_threads=num_calling_threads, num_warmup_iters=num_warmup_iters, num_iters=num_iters,
                                 profiler_output_path=profiler_output_path)
        run = _Run(self._call, config)
        if not profiler_output_path:
            return run.stats()
        import clnn
        with clnn.profiler.profile() as trace:
            stats = run.stats()
        trace.export_chrome_trace(profiler_output_path)
        return stats


class _Run:
    """The threads of one benchmark."""

    def __init__(self, call, config):
        self.call, self.config, self.left, self.lock = call, config, config.num_iters, threading.Lock()
        self.ready, self.errors = threading.Barrier(config.num_calling_threads), []
        self.spent = [0.0] * config.num_calling_threads

    def thread(self, number):
        choose = random.Random(number)
        try:
            for _ in range(self.config.num_warmup_iters):
                self.call(choose)
            self.ready.wait()
            began = time.perf_counter()
            while self._another():
                self.call(choose)
            self.spent[number] = time.perf_counter() - began
        except Exception as error:
            self.errors.append(error)
            self.ready.abort()

    def _another(self):
        with self.lock:
            self.left -= 1
            return self.left >= 0

    def stats(self):
        threads = [threading.Thread(target=self.thread, args=(i,)) for i in range(self.config.num_calling_threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.errors:
            raise self.errors[0]
        return ExecutionStats(self.config.num_iters, sum(self.spent) * 1000 / self.config.num_iters, self.config)
