"""Pipes that are streams."""

import copy
import warnings

from clnn.utils.data._worker import get_worker_info
from clnn.utils.data.collate import default_collate
from clnn.utils.data.datapipes._files import FileListerIterDataPipe as FileLister
from clnn.utils.data.datapipes._files import FileOpenerIterDataPipe as FileOpener
from clnn.utils.data.datapipes._files import StreamReaderIterDataPipe as StreamReader
from clnn.utils.data.datapipes._groups import BatcherIterDataPipe as Batcher
from clnn.utils.data.datapipes._groups import GrouperIterDataPipe as Grouper
from clnn.utils.data.datapipes._groups import UnBatcherIterDataPipe as UnBatcher
from clnn.utils.data.datapipes._splits import DemultiplexerIterDataPipe as Demultiplexer
from clnn.utils.data.datapipes._splits import ForkerIterDataPipe as Forker
from clnn.utils.data.datapipes.datapipe import IterDataPipe, Shuffling, check_picklable, functional_datapipe
from clnn.utils.data.sampler import SequentialSampler

__all__ = ["Batcher", "Collator", "Concater", "Demultiplexer", "FileLister", "FileOpener", "Filter", "Forker", "Grouper", "IterableWrapper", "Mapper",
           "Multiplexer", "Sampler", "ShardingFilter", "Shuffler", "StreamReader", "UnBatcher", "Zipper", "IterDataPipe"]


class IterableWrapperIterDataPipe(IterDataPipe):
    """The entries of an iterable (of a copy of it, unless ``deepcopy`` is False)."""

    def __init__(self, iterable, deepcopy=True):
        self.iterable, self.deepcopy = iterable, deepcopy

    def __iter__(self):
        source = self.iterable
        if self.deepcopy:
            try:
                source = copy.deepcopy(source)
            except TypeError:
                warnings.warn("The input iterable can not be deepcopied, please be aware of in-place modification would affect source data.", stacklevel=2)
        return iter(source)

    def __len__(self):
        return len(self.iterable)


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe):
    """``fn`` of each sample.

    Args:
        input_col: the place or places in a sample whose values ``fn`` gets; the whole sample if None.
        output_col: where the result goes: that of ``input_col`` if None, behind the last if -1.
    """

    def __init__(self, datapipe, fn, input_col=None, output_col=None):
        check_picklable(fn)
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = output_col[0]
        self.datapipe, self.fn, self.input_col, self.output_col = datapipe, fn, input_col, output_col

    def _apply(self, sample):
        if self.input_col is None:
            return self.fn(sample)
        several = isinstance(self.input_col, (list, tuple))
        result = self.fn(*[sample[c] for c in self.input_col]) if several else self.fn(sample[self.input_col])
        new = list(sample) if isinstance(sample, tuple) else copy.copy(sample)
        if self.output_col == -1:
            new.append(result)
        elif self.output_col is not None:
            new[self.output_col] = result
        else:
            new[self.input_col[0] if several else self.input_col] = result
            for c in sorted(self.input_col[1:], reverse=True) if several else ():
                del new[c]
        return tuple(new) if isinstance(sample, tuple) else new

    def __iter__(self):
        return (self._apply(sample) for sample in self.datapipe)

    def __len__(self):
        return len(self.datapipe)


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Batches of samples as samples of batches."""

    def __init__(self, datapipe, conversion=default_collate, collate_fn=None):
        super().__init__(datapipe, fn=conversion if collate_fn is None else collate_fn)


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe):
    """The samples that ``filter_fn`` is true of."""

    def __init__(self, datapipe, filter_fn, input_col=None):
        check_picklable(filter_fn)
        self.datapipe, self.filter_fn, self.input_col = datapipe, filter_fn, input_col

    def _takes(self, sample):
        if self.input_col is None:
            takes = self.filter_fn(sample)
        elif isinstance(self.input_col, (list, tuple)):
            takes = self.filter_fn(*[sample[c] for c in self.input_col])
        else:
            takes = self.filter_fn(sample[self.input_col])
        if not isinstance(takes, bool):
            raise ValueError("Boolean output is required for `filter_fn` of FilterIterDataPipe, got", type(takes))
        return takes

    def __iter__(self):
        return (sample for sample in self.datapipe if self._takes(sample))


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(Shuffling, IterDataPipe):
    """The samples in a random order, each drawn from ``buffer_size`` of them."""

    def __init__(self, datapipe, *, buffer_size=10000, unbatch_level=0):
        if buffer_size <= 0:
            raise AssertionError("buffer_size should be larger than 0")
        self.datapipe = datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level=unbatch_level)
        self.buffer_size = buffer_size
        self.start_unseeded()

    def reset(self):
        if self._enabled:
            self.seed()

    def __iter__(self):
        if not self._enabled:
            yield from self.datapipe
            return
        buffer = []
        for sample in self.datapipe:
            if len(buffer) < self.buffer_size:
                buffer.append(sample)
                continue
            i = self._rng.randint(0, len(buffer) - 1)
            drawn, buffer[i] = buffer[i], sample
            yield drawn
        while buffer:
            yield buffer.pop(self._rng.randint(0, len(buffer) - 1))

    def __len__(self):
        return len(self.datapipe)


class SamplerIterDataPipe(IterDataPipe):
    """What a sampler makes of a pipe."""

    def __init__(self, datapipe, sampler=SequentialSampler, sampler_args=None, sampler_kwargs=None):
        self.datapipe = datapipe
        self.sampler = sampler(*(sampler_args or ()), **{"data_source": datapipe, **(sampler_kwargs or {})})

    def __iter__(self):
        return iter(self.sampler)

    def __len__(self):
        return len(self.sampler)


@functional_datapipe("sharding_filter")
class ShardingFilterIterDataPipe(IterDataPipe):
    """The share of one worker: every n-th sample."""

    def __init__(self, source_datapipe, sharding_group_filter=None):
        self.source_datapipe, self.sharding_group_filter = source_datapipe, sharding_group_filter
        self.num_of_instances, self.instance_id = 1, 0

    def is_shardable(self):
        """Whether workers share the samples."""
        return True

    def apply_sharding(self, num_of_instances, instance_id, sharding_group=None):
        """Take the samples whose number is ``instance_id`` modulo ``num_of_instances``."""
        if instance_id >= num_of_instances:
            raise ValueError(f"instance_id({instance_id}) should be smaller than num_of_instances({num_of_instances})")
        self.num_of_instances, self.instance_id = num_of_instances, instance_id

    def _share(self):
        worker = get_worker_info()
        return (self.num_of_instances, self.instance_id) if worker is None or self.num_of_instances > 1 else (worker.num_workers, worker.id)

    def __iter__(self):
        count, number = self._share()
        return (sample for i, sample in enumerate(self.source_datapipe) if i % count == number)

    def __len__(self):
        count, number = self._share()
        n = len(self.source_datapipe)
        return n // count + (number < n % count)


class _Several(IterDataPipe):
    """What pipes of several others share."""

    def __init__(self, *datapipes):
        if not datapipes and not isinstance(self, MultiplexerIterDataPipe):
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes) and not isinstance(self, MultiplexerIterDataPipe):
            raise TypeError("Expected all inputs to be `IterDataPipe`")
        self.datapipes = datapipes


@functional_datapipe("concat")
class ConcaterIterDataPipe(_Several):
    """Pipes one after the other."""

    def __iter__(self):
        for pipe in self.datapipes:
            yield from pipe

    def __len__(self):
        return sum(len(pipe) for pipe in self.datapipes)


@functional_datapipe("zip")
class ZipperIterDataPipe(_Several):
    """The samples of several pipes in tuples, as far as the shortest goes."""

    def __iter__(self):
        return zip(*self.datapipes)

    def __len__(self):
        return min(len(pipe) for pipe in self.datapipes)


@functional_datapipe("mux")
class MultiplexerIterDataPipe(_Several):
    """A sample of each pipe in turn, as far as the shortest goes."""

    def __iter__(self):
        for row in zip(*self.datapipes):
            yield from row

    def __len__(self):
        return min(len(pipe) for pipe in self.datapipes) * len(self.datapipes)


IterableWrapper, Mapper, Collator, Filter = IterableWrapperIterDataPipe, MapperIterDataPipe, CollatorIterDataPipe, FilterIterDataPipe
Shuffler, Sampler, ShardingFilter = ShufflerIterDataPipe, SamplerIterDataPipe, ShardingFilterIterDataPipe
Concater, Zipper, Multiplexer = ConcaterIterDataPipe, ZipperIterDataPipe, MultiplexerIterDataPipe
