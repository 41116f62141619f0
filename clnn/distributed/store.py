"""Key-value stores through which processes find each other: with one process, a dictionary."""
from __future__ import annotations

import datetime


class Store:
    """Text keys to bytes."""

    def __init__(self, *args, **kwargs):
        self._table, self.timeout = {}, datetime.timedelta(minutes=5)

    def set(self, key, value):
        """Set a value: text or bytes."""
        self._table[key] = value.encode() if isinstance(value, str) else bytes(value)

    def get(self, key):
        """The value as bytes.

        Raises:
            RuntimeError: it was never set.
        """
        self.wait([key])
        return self._table[key]

    def add(self, key, amount):
        """Add to a number, which begins at 0; the sum."""
        total = int(self._table.get(key, 0)) + amount
        self.set(key, str(total))
        return total

    def compare_set(self, key, expected_value, desired_value):
        """Set a value if it is the expected one; the value that is there then."""
        if key not in self._table and not expected_value or self._table.get(key) == expected_value.encode():
            self.set(key, desired_value)
        return self._table.get(key, expected_value.encode())

    def check(self, keys):
        """Whether all keys are there."""
        return all(key in self._table for key in keys)

    def wait(self, keys, timeout=None):
        """Return when all keys are there.

        Raises:
            RuntimeError: one is not.
        """
        for key in keys:
            if key not in self._table:
                raise RuntimeError(f"Store.get: the key {key!r} was not set, and there is no other process that could set it")

    def delete_key(self, key):
        """Remove a key; whether it was there."""
        return self._table.pop(key, None) is not None

    def num_keys(self):
        """How many keys there are."""
        return len(self._table)

    def set_timeout(self, timeout):
        """Accepted: nothing is waited for."""
        self.timeout = timeout


class HashStore(Store):
    """A store of one process."""


class FileStore(Store):
    """A store that other processes would reach through a file."""


class TCPStore(Store):
    """A store that other processes would reach through the network."""

    def __init__(self, host_name="localhost", port=0, *args, **kwargs):
        super().__init__()
        self.host, self.port = host_name, port


class PrefixStore(Store):
    """A part of another store: keys begin with a prefix there."""

    def __init__(self, prefix, store):
        super().__init__()
        self._prefix, self.underlying_store = prefix, store

    def set(self, key, value):
        self.underlying_store.set(f"{self._prefix}/{key}", value)

    def get(self, key):
        return self.underlying_store.get(f"{self._prefix}/{key}")

    def add(self, key, amount):
        return self.underlying_store.add(f"{self._prefix}/{key}", amount)

    def compare_set(self, key, expected_value, desired_value):
        return self.underlying_store.compare_set(f"{self._prefix}/{key}", expected_value, desired_value)

    def check(self, keys):
        return self.underlying_store.check([f"{self._prefix}/{key}" for key in keys])

    def wait(self, keys, timeout=None):
        self.underlying_store.wait([f"{self._prefix}/{key}" for key in keys])

    def delete_key(self, key):
        return self.underlying_store.delete_key(f"{self._prefix}/{key}")

    def num_keys(self):
        return self.underlying_store.num_keys()


__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "TCPStore"]
