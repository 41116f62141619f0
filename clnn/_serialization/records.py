"""The entries of a PyTorch file, for programs that read them one by one."""
from __future__ import annotations

import zipfile

import numpy as np


class PyTorchFileReader:
    """The named records of a ``.pt`` file (a zip archive whose entries lie in one folder).

    Args:
        file: name, or an open binary file.

    Example::

        >>> import io
        >>> file = io.BytesIO()
        >>> clnn.save(clnn.ones(2), file)
        >>> clnn.PyTorchFileReader(file).has_record("data.pkl")
        True
    """

    def __init__(self, file):
        self._file = zipfile.ZipFile(file)
        self._folder = self._file.namelist()[0].partition("/")[0] + "/"

    def get_all_records(self):
        """Their names."""
        return [name.removeprefix(self._folder) for name in self._file.namelist()]

    def has_record(self, name):
        """Whether there is one of that name."""
        return name in self.get_all_records()

    def get_record(self, name):
        """Its bytes."""
        return self._file.read(self._folder + name)

    def get_storage_from_record(self, name, numel, dtype):
        """A record as a vector of ``numel`` elements."""
        from clnn.ops.creation import tensor
        return tensor(np.frombuffer(self.get_record(name), np.uint8)).view(dtype)[:numel]


__all__ = ["PyTorchFileReader"]
