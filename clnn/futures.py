"""Values that another thread delivers, as in ``torch.futures``."""
from __future__ import annotations

import threading

__all__ = ["Future", "collect_all", "wait_all"]


class Future:
    """A value to come: :meth:`set_result` delivers it, :meth:`wait` waits for it, :meth:`then` goes on with it.

    Args:
        devices: accepted.

    Example::

        >>> future = clnn.futures.Future()
        >>> after = future.then(lambda f: f.value() + 1)
        >>> future.set_result(1)
        >>> after.wait()
        2
    """

    def __class_getitem__(cls, item):
        return cls

    def __init__(self, *, devices=None):
        self._ready, self._lock = threading.Event(), threading.Lock()
        self._value = self._error = None
        self._callbacks = []

    def done(self):
        """Whether the value or an error is there."""
        return self._ready.is_set()

    def wait(self):
        """The value, as soon as it is there; an error is raised."""
        self._ready.wait()
        return self._outcome()

    def value(self):
        """The value, which must be there."""
        if not self.done():
            raise RuntimeError("value() needs a completed Future: call wait() first")
        return self._outcome()

    def _outcome(self):
        if self._error is not None:
            raise self._error
        return self._value

    def then(self, callback):
        """A Future of ``callback(self)``, which is called when this one is done."""
        after = type(self)()

        def run(future):
            try:
                after.set_result(callback(future))
            except Exception as exc:
                after.set_exception(exc)
        self.add_done_callback(run)
        return after

    def add_done_callback(self, callback):
        """Call ``callback(self)`` when this is done; at once if it is."""
        with self._lock:
            if not self.done():
                self._callbacks.append(callback)
                return
        callback(self)

    def set_result(self, result):
        """Deliver the value. Raises RuntimeError the second time."""
        self._complete(result, None)

    def set_exception(self, result):
        """Deliver an error, which :meth:`wait` raises."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)

    def _complete(self, value, error):
        with self._lock:
            if self.done():
                raise RuntimeError("Future can only be set once: it is already marked completed")
            self._value, self._error = value, error
            self._ready.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)


def collect_all(futures):
    """A Future of the list of ``futures``, done when all of them are.

    Example::

        >>> a, b = clnn.futures.Future(), clnn.futures.Future()
        >>> both = clnn.futures.collect_all([a, b])
        >>> a.set_result(1); b.set_result(2)
        >>> [f.wait() for f in both.wait()]
        [1, 2]
    """
    futures, together, lock = list(futures), Future(), threading.Lock()
    waiting = [len(futures)]
    if not futures:
        together.set_result([])

    def one(_):
        with lock:
            waiting[0] -= 1
            last = not waiting[0]
        if last:
            together.set_result(futures)
    for f in futures:
        f.add_done_callback(one)
    return together


def wait_all(futures):
    """The values of all ``futures``; the first error is raised.

    Example:
        >>> f = clnn.futures.Future()
        >>> f.set_result(3)
        >>> clnn.futures.wait_all([f])
        [3]
    """
    return [f.wait() for f in collect_all(futures).wait()]
