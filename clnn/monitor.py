"""Events that a program logs, and running statistics that become events, as in ``torch.monitor``.

Example::

    >>> from datetime import timedelta
    >>> seen = []
    >>> handle = clnn.monitor.register_event_handler(seen.append)
    >>> stat = clnn.monitor.Stat("loss", [clnn.monitor.Aggregation.MEAN, clnn.monitor.Aggregation.MAX], timedelta(hours=1), max_samples=2)
    >>> stat.add(1.0)
    >>> stat.add(3.0)
    >>> clnn.monitor.unregister_event_handler(handle)
    >>> sorted(seen[0].data.items())
    [('loss.max', 3.0), ('loss.mean', 2.0)]
"""
from __future__ import annotations

import datetime
import enum
import threading
import time

__all__ = ["Aggregation", "Event", "EventHandlerHandle", "STAT_EVENT", "Stat", "TensorboardEventHandler", "data_value_t", "log_event", "register_event_handler",
           "unregister_event_handler"]

STAT_EVENT = "torch.monitor.Stat"
_handlers: dict = {}
_lock = threading.RLock()


class Aggregation(enum.Enum):
    """What a :class:`Stat` makes of the values of a window."""

    VALUE, MEAN, COUNT, SUM, MAX, MIN = 0, 2, 3, 4, 5, 6

    def __str__(self):
        return f"Aggregation.{self.name}"


VALUE, MEAN, COUNT, SUM, MAX, MIN = Aggregation
_MAKE = {VALUE: lambda values: values[-1], MEAN: lambda values: sum(values) / len(values), COUNT: lambda values: float(len(values)), SUM: sum, MAX: max, MIN: min}


class data_value_t:
    """The kinds of values in the data of an event: texts, numbers and truth values."""


class Event:
    """What happened, when, and values by name.

    Args:
        name: of the kind of event.
        timestamp: a ``datetime``.
        data: texts and numbers by name.
    """

    def __init__(self, name, timestamp, data):
        if not isinstance(name, str) or not isinstance(timestamp, datetime.datetime):
            raise TypeError("__init__(): incompatible constructor arguments. The following argument types are supported:\n"
                            "    1. Event(name: str, timestamp: datetime.datetime, data: collections.abc.Mapping[str, data_value_t])")
        self.name, self.timestamp, self.data = name, timestamp, dict(data)


class EventHandlerHandle:
    """What :func:`register_event_handler` returns."""


def log_event(event) -> None:
    """Hand ``event`` to all handlers."""
    with _lock:
        for callback in list(_handlers.values()):
            callback(event)


def register_event_handler(callback):
    """Have ``callback`` called with every event; the handle that is returned takes it out again."""
    handle = EventHandlerHandle()
    _handlers[handle] = callback
    return handle


def unregister_event_handler(handler) -> None:
    """Take out what :func:`register_event_handler` put in."""
    _handlers.pop(handler, None)


class Stat:
    """A running statistic: values are added, and at the end of each window what ``aggregations`` make of them is logged as an event.

    Args:
        name: of the statistic. aggregations: a list of :class:`Aggregation`.
        window_size: a ``timedelta``. max_samples: with so many values a window is logged at once, and takes no more.
    """

    def __init__(self, name, aggregations, window_size, max_samples=2 ** 63 - 1):
        if not isinstance(window_size, datetime.timedelta):
            raise TypeError("__init__(): incompatible constructor arguments. The following argument types are supported:\n    1. Stat(name: str, aggregations: "
                            "collections.abc.Sequence[Aggregation], window_size: datetime.timedelta, max_samples: int = 9223372036854775807)")
        self.name, self._kinds, self._size, self._most = name, list(dict.fromkeys(aggregations)), window_size.total_seconds(), max_samples
        self._values, self._last, self._window, self._full = [], dict.fromkeys(self._kinds, 0.0), self._number(), False

    def _number(self):
        return time.time() // self._size if self._size else 0

    @property
    def count(self) -> int:
        """Values of the present window."""
        self._end(self._number() != self._window)
        return len(self._values)

    def add(self, v) -> None:
        """Add a value to the present window, unless that has had ``max_samples``."""
        with _lock:
            self._end(self._number() != self._window)
            if self._full:
                return
            self._values.append(float(v))
            if len(self._values) >= self._most:
                self._end(True)
                self._full = True

    def get(self) -> dict:
        """What the aggregations made of the last window that ended."""
        self._end(self._number() != self._window)
        return dict(self._last)

    def _end(self, over):
        if not over:
            return
        self._window, self._full, values = self._number(), False, self._values
        if values:
            self._values, self._last = [], {kind: _MAKE[kind](values) for kind in self._kinds}
            log_event(Event(STAT_EVENT, datetime.datetime.now(), {f"{self.name}.{kind.name.lower()}": v for kind, v in self._last.items()}))


class TensorboardEventHandler:
    """Writes the events of statistics to a ``SummaryWriter``, as scalars: ``register_event_handler(TensorboardEventHandler(writer))``."""

    def __init__(self, writer):
        self._writer = writer

    def __call__(self, event):
        if event.name == STAT_EVENT:
            for name, value in event.data.items():
                self._writer.add_scalar(name, value, walltime=event.timestamp.timestamp())
