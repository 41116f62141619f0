"""Pipes whose samples are asked for by index or key."""

import copy

from clnn.utils.data.datapipes.datapipe import DataChunk, IterDataPipe, MapDataPipe, Shuffling, check_picklable, functional_datapipe

__all__ = ["Batcher", "Concater", "Mapper", "SequenceWrapper", "Shuffler", "Zipper", "MapDataPipe"]


class SequenceWrapperMapDataPipe(MapDataPipe):
    """The entries of a sequence or mapping (of a copy of it, unless ``deepcopy`` is False)."""

    def __init__(self, sequence, deepcopy=True):
        self.sequence = copy.deepcopy(sequence) if deepcopy else sequence

    def __getitem__(self, index):
        return self.sequence[index]

    def __len__(self):
        return len(self.sequence)


def _same(data):
    return data


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe):
    """``fn`` of each sample."""

    def __init__(self, datapipe, fn=_same):
        check_picklable(fn)
        self.datapipe, self.fn = datapipe, fn

    def __getitem__(self, index):
        return self.fn(self.datapipe[index])

    def __len__(self):
        return len(self.datapipe)


@functional_datapipe("batch")
class BatcherMapDataPipe(MapDataPipe):
    """``batch_size`` samples in a row as one."""

    def __init__(self, datapipe, batch_size, drop_last=False, wrapper_class=DataChunk):
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size, self.drop_last, self.wrapper_class = datapipe, batch_size, drop_last, wrapper_class

    def __getitem__(self, index):
        first = index * self.batch_size
        last = first + self.batch_size
        if last > len(self.datapipe):
            if self.drop_last or first >= len(self.datapipe):
                raise IndexError(f"Index {index} is out of bound.")
            last = len(self.datapipe)
        return self.wrapper_class([self.datapipe[i] for i in range(first, last)])

    def __len__(self):
        return len(self.datapipe) // self.batch_size if self.drop_last else -(-len(self.datapipe) // self.batch_size)


class _Several(MapDataPipe):
    """A pipe made of others."""

    def __init__(self, *datapipes):
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(pipe, MapDataPipe) for pipe in datapipes):
            raise TypeError("Expected all inputs to be `MapDataPipe`")
        self.datapipes = datapipes


@functional_datapipe("concat")
class ConcaterMapDataPipe(_Several):
    """Pipes one after the other."""

    def __getitem__(self, index):
        offset = 0
        for pipe in self.datapipes:
            if index - offset < len(pipe):
                return pipe[index - offset]
            offset += len(pipe)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self):
        return sum(len(pipe) for pipe in self.datapipes)


@functional_datapipe("zip")
class ZipperMapDataPipe(_Several):
    """The samples of several pipes in tuples, as far as the shortest goes."""

    def __getitem__(self, index):
        row = []
        for pipe in self.datapipes:
            try:
                row.append(pipe[index])
            except IndexError as exc:
                raise IndexError(f"Index {index} is out of range for one of the input MapDataPipes {pipe}.") from exc
        return tuple(row)

    def __len__(self):
        return min(len(pipe) for pipe in self.datapipes)


class ShufflerIterDataPipe(Shuffling, IterDataPipe):
    """A stream of the samples of a pipe in a random order; ``indices`` are its keys (0, 1, ... if None)."""

    def __init__(self, datapipe, *, indices=None):
        self.datapipe, self.indices = datapipe, list(range(len(datapipe))) if indices is None else indices
        self.start_unseeded()

    def __iter__(self):
        order = list(self.indices)
        if self._enabled:
            self.seed()
            order = self._rng.sample(order, len(order))[::-1]
        return (self.datapipe[i] for i in order)

    def __len__(self):
        return len(self.datapipe)


MapDataPipe.register_datapipe_as_function("shuffle", ShufflerIterDataPipe)
Batcher, Concater, Mapper, Zipper = BatcherMapDataPipe, ConcaterMapDataPipe, MapperMapDataPipe, ZipperMapDataPipe
SequenceWrapper, Shuffler = SequenceWrapperMapDataPipe, ShufflerIterDataPipe
