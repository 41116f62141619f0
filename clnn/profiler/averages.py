"""Sums over the events of a profile, and their tables."""
from __future__ import annotations

from ..core.errors import DeviceError
from ..runtime.timing import copy_bandwidth, peak_flops
from .ranges import DeviceType


def time_text(ns) -> str:
    """``time_text(1500) == '1.500us'``"""
    us = ns / 1e3
    if abs(us) >= 1e6:
        return f"{us / 1e6:.3f}s"
    return f"{us / 1e3:.3f}ms" if abs(us) >= 1e3 else f"{us:.3f}us"


def bytes_text(n) -> str:
    """``bytes_text(2048) == '2.00 KiB'``"""
    size = abs(n)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{'-' if n < 0 else ''}{size:.0f} B" if unit == "B" else f"{'-' if n < 0 else ''}{size:.2f} {unit}"
        size /= 1024


def rate_text(per_second, best=None) -> str:
    """A rate in giga-units, with its share of the best one."""
    text = f"{per_second / 1e9:.2f}"
    return text if not best else f"{text} ({100 * per_second / best:.0f}%)"


def percent(part, whole) -> str:
    return f"{100 * part / whole:.2f}%" if whole else "-"


class Row:
    """What several events or launches with one key add up to. Times in nanoseconds; microseconds in PyTorch's attributes."""

    def __init__(self, key, **labels):
        self.key = key
        self.count = self.host_ns = self.self_host_ns = self.device_ns = self.total_device_ns = 0
        self.memory = self.self_memory = self.bytes = self.flops = self.timed_bytes = self.timed_flops = self.flops_ns = 0
        self.forward_ns = self.backward_ns = 0
        self.__dict__.update(labels)

    @property
    def bandwidth(self):
        """Estimated bytes per second on the device, or 0."""
        return 1e9 * self.timed_bytes / self.device_ns if self.device_ns else 0.0

    @property
    def flop_rate(self):
        """Operations per second of the launches whose count is known, or 0."""
        return 1e9 * self.timed_flops / self.flops_ns if self.flops_ns else 0.0

    def add_launch(self, launch):
        ns = launch.duration_ns
        self.device_ns += ns
        self.bytes += launch.bytes
        if ns:
            self.timed_bytes += launch.bytes
        if launch.flops:
            self.flops += launch.flops
            if ns:
                self.timed_flops += launch.flops
                self.flops_ns += ns

    def add_event(self, event, nested):
        """``nested``: an open event of the same key contains this one, so it is no addition to the totals."""
        self.count += 1
        self.self_host_ns += event.self_host_ns
        self.self_memory += event.self_memory
        if not nested:
            self.host_ns += event.host_ns
            self.memory += event.memory
            self.total_device_ns += event.total_device_ns
        for launch in event.launches:
            self.add_launch(launch)

    name = property(lambda self: self.key)
    device_type = DeviceType.CPU
    cpu_time_total = property(lambda self: self.host_ns / 1e3)
    self_cpu_time_total = property(lambda self: self.self_host_ns / 1e3)
    cpu_time = property(lambda self: self.host_ns / 1e3 / max(1, self.count))
    device_time_total = cuda_time_total = property(lambda self: self.total_device_ns / 1e3)
    self_device_time_total = self_cuda_time_total = property(lambda self: self.device_ns / 1e3)
    device_time = cuda_time = property(lambda self: self.total_device_ns / 1e3 / max(1, self.count))
    device_memory_usage = cuda_memory_usage = property(lambda self: self.memory)
    self_device_memory_usage = self_cuda_memory_usage = property(lambda self: self.self_memory)
    cpu_memory_usage = self_cpu_memory_usage = property(lambda self: 0)

    def __getattr__(self, name):
        """``cpu_time_total_str`` and the like: the time with its unit."""
        if name.endswith("time_str") or name.endswith("time_total_str"):
            return time_text(getattr(self, name[:-4]) * 1e3)
        raise AttributeError(f"'Row' object has no attribute {name!r}")

    def __repr__(self):
        return f"<Row {self.key!r} count={self.count} host={time_text(self.host_ns)} device={time_text(self.device_ns)}>"


_SORTS = {"cpu_time": "cpu_time", "cpu_time_total": "host_ns", "self_cpu_time_total": "self_host_ns", "host_time_total": "host_ns",
          "device_time": "device_time", "device_time_total": "total_device_ns", "self_device_time_total": "device_ns",
          "cuda_time": "device_time", "cuda_time_total": "total_device_ns", "self_cuda_time_total": "device_ns",
          "device_memory_usage": "memory", "self_device_memory_usage": "self_memory", "cuda_memory_usage": "memory",
          "self_cuda_memory_usage": "self_memory", "cpu_memory_usage": "memory", "self_cpu_memory_usage": "self_memory",
          "count": "count", "flops": "flops", "bytes": "bytes", "bandwidth": "bandwidth", "key": "key", "name": "key"}


class Rows(list):
    """A list of rows (or events) with a table. ``view`` names the columns: operators, kernels or modules. Events know their ``profile``."""

    profile = None

    def __init__(self, rows=(), view="operators", devices=(), options=()):
        super().__init__(rows)
        self.view, self.devices, self.options = view, tuple(devices), frozenset(options)

    @property
    def self_cpu_time_total(self):
        return sum(r.self_cpu_time_total for r in self)

    def total_average(self):
        """One row that adds up all."""
        total = Row("Total")
        for r in self:
            for name in ("count", "host_ns", "self_host_ns", "device_ns", "total_device_ns", "bytes", "flops"):
                setattr(total, name, getattr(total, name) + getattr(r, name, 0))
        return total

    def _of_events(self, name):
        if self.profile is None:
            raise RuntimeError(f"{name}: these are sums; events() of the profile has it")
        return getattr(self.profile, name)

    def key_averages(self, *args, **kwargs):
        """Sums of the events per operator, as of the profile itself; so are the two that follow."""
        return self._of_events("key_averages")(*args, **kwargs)

    def export_chrome_trace(self, path):
        """Write the events for chrome://tracing."""
        return self._of_events("export_chrome_trace")(path)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Write collapsed stacks."""
        return self._of_events("export_stacks")(path, metric)

    def table(self, sort_by=None, row_limit=100, max_src_column_width=75, max_name_column_width=55, max_shapes_column_width=80,
              header=None, top_level_events_only=False):
        """The rows as text.

        Args:
            sort_by: ``"self_device_time_total"`` (default for kernels and modules), ``"cpu_time_total"``, ``"self_cpu_time_total"``,
                ``"device_time_total"``, ``"count"``, ``"flops"``, ``"bytes"``, ``"device_memory_usage"``...
            row_limit: at most this many rows; -1 for all.
            max_name_column_width: longer names are cut; None for no limit.
        """
        if sort_by is None and self.view != "operators":
            sort_by = "self_device_time_total"
        rows = [r if isinstance(r, Row) else _alone(r) for r in self] if self.view == "operators" else list(self)
        if sort_by is not None:
            if sort_by not in _SORTS:
                raise ValueError(f"table: unknown sort_by {sort_by!r}; known: {', '.join(sorted(_SORTS))}")
            rows.sort(key=lambda r: getattr(r, _SORTS[sort_by]), reverse=_SORTS[sort_by] != "key")
        columns = _COLUMNS[self.view](self, best_rates(self.devices))
        shown = rows if row_limit is None or row_limit < 0 else rows[:row_limit]
        cells = [[head for head, _ in columns], *[[_cut(get(r), max_name_column_width) for _, get in columns] for r in shown]]
        return _draw(cells, self._footer(), header)

    def _footer(self):
        lines = []
        if self.view == "operators":
            lines.append(f"Self host time total: {time_text(sum(r.self_host_ns for r in self))}")
        lines.append(f"Self device time total: {time_text(sum(r.device_ns for r in self))}")
        for device, (copy, flops) in best_rates(self.devices).items():
            if copy:
                lines.append(f"{device.name}: copies {copy / 1e9:.1f} GB/s, computes {flops / 1e9:.0f} GFLOP/s (float32, measured)")
        return lines

    def __str__(self):
        return self.table()

    def _repr_html_(self):
        return f"<pre>{self.table().replace('&', '&amp;').replace('<', '&lt;')}</pre>"


def best_rates(devices) -> dict:
    """device -> (copy bandwidth, peak) as measured; (0, 0) where it cannot be."""
    out = {}
    for device in devices:
        try:
            out[device] = copy_bandwidth(device), peak_flops(device)
        except DeviceError:
            out[device] = 0.0, 0.0
    return out


def _rates(rates):
    """Two columns: bandwidth and arithmetic against the (single) device's best."""
    copy, flops = next(iter(rates.values())) if len(rates) == 1 else (None, None)
    return [("GB/s (of copy)", lambda r: rate_text(r.bandwidth, copy) if r.timed_bytes else "-"),
            ("GFLOP/s (of peak)", lambda r: rate_text(r.flop_rate, flops) if r.timed_flops else "-")]


def _operator_columns(rows, rates):
    host, device = sum(r.self_host_ns for r in rows), sum(r.device_ns for r in rows)
    columns = [("Name", lambda r: r.key), ("Self host %", lambda r: percent(r.self_host_ns, host)),
               ("Self host", lambda r: time_text(r.self_host_ns)),
               ("Host total", lambda r: time_text(r.host_ns)), ("Host avg", lambda r: time_text(r.host_ns / max(1, r.count))),
               ("Self device", lambda r: time_text(r.device_ns)), ("Self device %", lambda r: percent(r.device_ns, device)),
               ("Device total", lambda r: time_text(r.total_device_ns))]
    if "memory" in rows.options:
        columns += [("Memory", lambda r: bytes_text(r.memory)), ("Self memory", lambda r: bytes_text(r.self_memory))]
    columns += [("Calls", lambda r: str(r.count)), *_rates(rates)]
    if "shapes" in rows.options:
        columns.append(("Input shapes", lambda r: str(r.input_shapes)))
    if "module" in rows.options:
        columns.append(("Module", lambda r: r.module))
    if "stack" in rows.options:
        columns.append(("Source", lambda r: r.stack[0] if r.stack else ""))
    return columns


def _kernel_columns(rows, rates):
    device = sum(r.device_ns for r in rows)
    return [("Kernel", lambda r: r.kernel), ("Operator", lambda r: r.operator), ("Module", lambda r: r.module),
            ("Device", lambda r: time_text(r.device_ns)), ("Share", lambda r: percent(r.device_ns, device)), ("Calls", lambda r: str(r.count)),
            ("Average", lambda r: time_text(r.device_ns / max(1, r.count))), ("Moved", lambda r: bytes_text(r.bytes)), *_rates(rates)]


def _module_columns(rows, rates):
    device = sum(r.device_ns for r in rows)
    return [("Module", lambda r: r.key or "(outside modules)"), ("Type", lambda r: r.type), ("Calls", lambda r: str(r.count)),
            ("Host total", lambda r: time_text(r.host_ns)), ("Forward", lambda r: time_text(r.forward_ns)),
            ("Backward", lambda r: time_text(r.backward_ns)), ("Device", lambda r: time_text(r.device_ns)),
            ("Share", lambda r: percent(r.device_ns, device)), *_rates(rates)]


_COLUMNS = {"operators": _operator_columns, "kernels": _kernel_columns, "modules": _module_columns}


def _cut(text, limit):
    return text if limit is None or len(text) <= limit else text[:max(1, limit - 3)] + "..."


def _draw(cells, footer, header):
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    rule = "  ".join("-" * w for w in widths)

    def line(row):
        return "  ".join(text.ljust(w) if i == 0 else text.rjust(w) for i, (text, w) in enumerate(zip(row, widths))).rstrip()
    out = [rule, line(cells[0]), rule, *map(line, cells[1:]), rule, *footer]
    return "\n".join(([header] if header else []) + out) + "\n"


def by_operator(events, shapes=False, stack=0, module=False) -> list:
    """Rows of host events, modules left out."""
    rows = {}
    for e in events:
        if e.kind == "module":
            continue
        key = (e.name, str(e.shapes) if shapes else "", str(e.stack[:stack]) if stack and e.stack else "", e.module if module else "")
        row = rows.get(key)
        if row is None:
            row = rows[key] = Row(e.name, input_shapes=e.shapes or [], stack=(e.stack or [])[:stack], module=e.module)
        row.add_event(e, _inside_same(e))
    return list(rows.values())


def _alone(event):
    """The row of one event."""
    row = Row(event.name, input_shapes=event.shapes or [], stack=event.stack or [], module=event.module)
    row.add_event(event, False)
    return row


def _inside_same(event):
    parent = event.parent
    while parent is not None:
        if parent.name == event.name:
            return True
        parent = parent.parent
    return False


def by_kernel(launches) -> list:
    """Rows of launches by kernel, operator and module."""
    rows = {}
    for x in launches:
        key = (x.kernel, x.operator, x.module)
        row = rows.get(key)
        if row is None:
            row = rows[key] = Row(x.kernel, kernel=x.kernel, operator=x.operator, module=x.module)
        row.count += 1
        row.add_launch(x)
    return list(rows.values())


def by_module(events, launches, types) -> list:
    """Rows of modules: host time of their calls and device time of what they recorded, forward and backward, without children's."""
    rows = {}

    def row_of(path):
        if path not in rows:
            rows[path] = Row(path, type=types.get(path, ""))
        return rows[path]
    for e in events:
        if e.kind == "module":
            row = row_of(e.name)
            row.count += 1
            row.host_ns += e.host_ns
            row.self_host_ns += e.self_host_ns
    for x in launches:
        row = row_of(x.module)
        row.add_launch(x)
        if "Backward" in x.operator:
            row.backward_ns += x.duration_ns
        else:
            row.forward_ns += x.duration_ns
    return list(rows.values())
