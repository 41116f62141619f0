"""Pipes that put samples together and take them apart."""

from collections import defaultdict

from clnn.utils.data.datapipes.datapipe import DataChunk, IterDataPipe, check_picklable, functional_datapipe


@functional_datapipe("batch")
class BatcherIterDataPipe(IterDataPipe):
    """``batch_size`` samples in a row as one."""

    def __init__(self, datapipe, batch_size, drop_last=False, wrapper_class=DataChunk):
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size, self.drop_last, self.wrapper_class = datapipe, batch_size, drop_last, wrapper_class

    def __iter__(self):
        batch = []
        for sample in self.datapipe:
            batch.append(sample)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self):
        return len(self.datapipe) // self.batch_size if self.drop_last else -(-len(self.datapipe) // self.batch_size)


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe):
    """The samples of batches; ``unbatch_level`` tells how deep, -1 as deep as they go."""

    def __init__(self, datapipe, unbatch_level=1):
        self.datapipe, self.unbatch_level = datapipe, unbatch_level

    def __iter__(self):
        for sample in self.datapipe:
            yield from self._dive(sample, self.unbatch_level)

    def _dive(self, sample, level):
        if level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        if level == 0 or level == -1 and not isinstance(sample, list):
            yield sample
        elif isinstance(sample, list):
            for part in sample:
                yield from self._dive(part, level if level == -1 else level - 1)
        else:
            raise IndexError(f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe")


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe):
    """Samples of which ``group_key_fn`` gives the same, in lists.

    Args:
        keep_key: give pairs of the key and the list.
        buffer_size: how many samples wait at most; then the largest group goes.
        group_size: how large a group gets.
        guaranteed_group_size: how large the groups are at least that go for want of room.
        drop_remaining: such groups that are smaller are dropped.
    """

    def __init__(self, datapipe, group_key_fn, *, keep_key=False, buffer_size=10000, group_size=None, guaranteed_group_size=None, drop_remaining=False):
        check_picklable(group_key_fn)
        if guaranteed_group_size is None and group_size is not None:
            if not 0 < group_size <= buffer_size:
                raise AssertionError("group_size must be > 0 and <= buffer_size")
            guaranteed_group_size = group_size
        if guaranteed_group_size is not None and not (group_size is not None and 0 < guaranteed_group_size <= group_size):
            raise AssertionError("guaranteed_group_size must be > 0 and <= group_size and group_size must be set")
        self.datapipe, self.group_key_fn, self.keep_key, self.buffer_size, self.group_size = datapipe, group_key_fn, keep_key, buffer_size, group_size
        self.guaranteed_group_size, self.drop_remaining, self.wrapper_class = guaranteed_group_size, drop_remaining, DataChunk

    def _given(self, key, group):
        group = self.wrapper_class(group)
        return (key, group) if self.keep_key else group

    def _makes_room(self, waiting):
        """The largest group, which has to go, and whether it is given."""
        key = max(waiting, key=lambda k: len(waiting[k]))
        group, least = waiting.pop(key), self.guaranteed_group_size
        if least is not None and len(group) < least and not self.drop_remaining:
            raise RuntimeError("Failed to group items", str(group))
        return key, group, least is None or len(group) >= least

    def __iter__(self):
        waiting, count = defaultdict(list), 0
        for sample in self.datapipe:
            key = self.group_key_fn(sample)
            waiting[key].append(sample)
            count += 1
            if self.group_size is not None and self.group_size == len(waiting[key]):
                count -= self.group_size
                yield self._given(key, waiting.pop(key))
            if count == self.buffer_size:
                key, group, given = self._makes_room(waiting)
                count -= len(group)
                if given:
                    yield self._given(key, group)
        for key, group in waiting.items():
            yield self._given(key, group)
