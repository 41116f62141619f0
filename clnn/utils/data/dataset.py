"""Datasets: what a `DataLoader` reads samples from."""

import bisect
import math
import warnings
from collections import abc
from itertools import accumulate


class Dataset:
    """A map-style dataset: a subclass defines `__getitem__(index)` and, for most samplers, `__len__`.

    A subclass may also define `__getitems__(indices)`, which returns the samples of a whole batch in one call.

    Example::

        >>> class Squares(clnn.utils.data.Dataset):
        ...     def __len__(self):
        ...         return 10
        ...     def __getitem__(self, i):
        ...         return float(i), float(i * i)
        >>> Squares()[3]
        (3.0, 9.0)
    """

    def __getitem__(self, index):
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other):
        return ConcatDataset([self, other])

    def __class_getitem__(cls, item):
        return cls


class IterableDataset(Dataset, abc.Iterable):
    """A dataset that is a stream: a subclass defines `__iter__`.

    With several workers every worker iterates over its own copy; use `get_worker_info()` in `__iter__` to give each its share.

    Example:
        >>> class Count(clnn.utils.data.IterableDataset):
        ...     def __iter__(self):
        ...         return iter(range(4))
        >>> list(clnn.utils.data.DataLoader(Count(), batch_size=2))
        [tensor([0, 1]), tensor([2, 3])]
    """

    def __add__(self, other):
        return ChainDataset([self, other])


class TensorBatch:
    """Samples of a `TensorDataset` gathered by one indexing operation per tensor.

    It is a sequence of sample tuples for any collate function; `default_collate` takes the gathered tensors as they are.
    """

    def __init__(self, tensors, size):
        self.tensors = tensors
        self._size = size

    def __len__(self):
        return self._size

    def __getitem__(self, i):
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(self._size))]
        if not -self._size <= i < self._size:
            raise IndexError(f"batch index {i} is out of range for {self._size} samples")
        return tuple(t[i] for t in self.tensors)

    def __iter__(self):
        return (self[i] for i in range(self._size))


class TensorDataset(Dataset):
    """Samples are the rows of one or more tensors: `ds[i] == (tensors[0][i], tensors[1][i], ...)`.

    Args:
        *tensors: tensors whose first sizes are equal.

    Batches of a `DataLoader` are gathered on the tensors' device, without going through single samples.

    Example:
        >>> d = clnn.utils.data.TensorDataset(clnn.arange(4), clnn.arange(4) * 10)
        >>> len(d), d[2]
        (4, (tensor(2), tensor(20)))
    """

    def __init__(self, *tensors):
        if not tensors:
            raise ValueError("TensorDataset: at least one tensor is needed")
        sizes = [t.shape[0] for t in tensors]
        if any(n != sizes[0] for n in sizes):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(t[index] for t in self.tensors)

    def __getitems__(self, indices):
        indices = list(indices)
        n = len(indices)
        first = indices[0] if n else 0
        if first >= 0 and indices == list(range(first, first + n)) and first + n <= len(self):
            return TensorBatch(tuple(t[first:first + n].clone() for t in self.tensors), n)  # clone: a batch is never a view of the data
        return TensorBatch(self._gather(indices), n)

    def _gather(self, indices):
        import clnn
        size = len(self)
        for i in indices:
            if not -size <= i < size:
                raise IndexError(f"index {i} is out of range for {size} samples")
        rows = [i % size for i in indices]
        by_device = {}
        out = []
        for t in self.tensors:
            where = str(t.device)
            if where not in by_device:
                by_device[where] = clnn.tensor(rows, dtype=clnn.int64, device=t.device)
            out.append(t.index_select(0, by_device[where]))
        return tuple(out)

    def __len__(self):
        return self.tensors[0].shape[0]


class StackDataset(Dataset):
    """Several datasets of equal length side by side: samples are tuples (positional) or dicts (named).

    Args:
        *args: datasets, for tuple samples. **kwargs: named datasets, for dict samples. Not both.

    Example:
        >>> clnn.utils.data.StackDataset(x=[1, 2], y=[3, 4])[1]
        {'x': 2, 'y': 4}
    """

    def __init__(self, *args, **kwargs):
        if args and kwargs:
            raise ValueError("Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like input/output, but both types are given.")
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets = kwargs or args
        parts = list(kwargs.values() if kwargs else args)
        self._length = len(parts[0])
        if any(len(d) != self._length for d in parts):
            raise ValueError("Size mismatch between datasets")

    def __getitem__(self, index):
        if isinstance(self.datasets, dict):
            return {name: d[index] for name, d in self.datasets.items()}
        return tuple(d[index] for d in self.datasets)

    def __getitems__(self, indices):
        if isinstance(self.datasets, dict):
            columns = {name: _rows(d, indices) for name, d in self.datasets.items()}
            return [{name: column[i] for name, column in columns.items()} for i in range(len(indices))]
        columns = [_rows(d, indices) for d in self.datasets]
        return [tuple(column[i] for column in columns) for i in range(len(indices))]

    def __len__(self):
        return self._length


def _rows(dataset, indices):
    """The samples at `indices`, by the batch method where the dataset has one."""
    if callable(getattr(dataset, "__getitems__", None)):
        rows = dataset.__getitems__(indices)
        if len(rows) != len(indices):
            raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(rows)}")
        return rows
    return [dataset[i] for i in indices]


class ConcatDataset(Dataset):
    """Datasets one after the other.

    Args:
        datasets: iterable of map-style datasets.

    Example:
        >>> d = clnn.utils.data.ConcatDataset([[1, 2], [3]])
        >>> len(d), d[2]
        (3, 3)
    """

    @staticmethod
    def cumsum(sequence):
        """The numbers of samples up to the end of each dataset."""
        return list(accumulate(len(d) for d in sequence))

    def __init__(self, datasets):
        super().__init__()
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        for d in self.datasets:
            if isinstance(d, IterableDataset):
                raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    @property
    def cummulative_sizes(self):
        warnings.warn("`cummulative_sizes` attribute is renamed to `cumulative_sizes`", FutureWarning, stacklevel=2)
        return self.cumulative_sizes

    def __len__(self):
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx):
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx += len(self)
        part = bisect.bisect_right(self.cumulative_sizes, idx)
        start = self.cumulative_sizes[part - 1] if part else 0
        return self.datasets[part][idx - start]


class ChainDataset(IterableDataset):
    """Iterable datasets one after the other.

    Args:
        datasets: iterable of `IterableDataset`s.

    Example:
        >>> class Count(clnn.utils.data.IterableDataset):
        ...     def __iter__(self):
        ...         return iter(range(2))
        >>> list(clnn.utils.data.ChainDataset([Count(), Count()]))
        [0, 1, 0, 1]
    """

    def __init__(self, datasets):
        super().__init__()
        self.datasets = datasets

    def _checked(self):
        for d in self.datasets:
            if not isinstance(d, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield d

    def __iter__(self):
        for d in self._checked():
            yield from d

    def __len__(self):
        return sum(len(d) for d in self._checked())


class Subset(Dataset):
    """The samples of `dataset` at `indices`.

    Args:
        dataset: a map-style dataset. indices: sequence of positions in it.

    Example:
        >>> list(clnn.utils.data.Subset(["a", "b", "c"], [2, 0]))
        ['c', 'a']
    """

    def __init__(self, dataset, indices):
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, idx):
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices):
        chosen = [self.indices[i] for i in indices]
        if callable(getattr(self.dataset, "__getitems__", None)):
            return self.dataset.__getitems__(chosen)
        return [self.dataset[i] for i in chosen]

    def __len__(self):
        return len(self.indices)


def random_split(dataset, lengths, generator=None):
    """Split a dataset at random into parts that do not overlap.

    Args:
        dataset: a map-style dataset.
        lengths: sizes of the parts, or fractions that sum to 1; samples left over by rounding go to the parts in turn.
        generator: source of randomness; the default one if None.

    Returns:
        list of `Subset`.

    Example::

        >>> train, test = clnn.utils.data.random_split(range(10), [0.8, 0.2])
        >>> len(train), len(test)
        (8, 2)
    """
    from clnn.utils.data.sampler import permutation
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        for i, fraction in enumerate(lengths):
            if not 0 <= fraction <= 1:
                raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        sizes = [math.floor(len(dataset) * fraction) for fraction in lengths]
        for i in range(len(dataset) - sum(sizes)):
            sizes[i % len(sizes)] += 1
        for i, size in enumerate(sizes):
            if size == 0:
                warnings.warn(f"Length of split at index {i} is 0. This might result in an empty dataset.")
        lengths = sizes
    if sum(lengths) != len(dataset):
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = permutation(len(dataset), generator)
    ends = list(accumulate(lengths))
    return [Subset(dataset, order[end - size:end]) for end, size in zip(ends, lengths)]
