"""Readers of datasets by the names that PyTorch's loader has for them."""
from clnn.utils.data._worker import Fetcher

__all__ = ["_IterableDatasetFetcher", "_MapDatasetFetcher"]


class _BaseDatasetFetcher(Fetcher):
    _iterable = False

    def __init__(self, dataset, auto_collation, collate_fn, drop_last):
        super().__init__(dataset, self._iterable, auto_collation, collate_fn, drop_last)
        self.auto_collation, self.collate_fn = auto_collation, collate_fn


class _MapDatasetFetcher(_BaseDatasetFetcher):
    """Reads by index."""


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    """Reads a stream."""

    _iterable = True
