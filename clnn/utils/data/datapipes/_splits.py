"""One stream read by several pipes, which go at their own pace."""

from collections import deque

from clnn.utils.data.datapipes.datapipe import IterDataPipe, check_picklable, functional_datapipe


class _Source:
    """The stream, and what each of its readers has still to come."""

    def __init__(self, datapipe, count, buffer_size, name):
        self.datapipe, self.buffer_size, self.name = datapipe, buffer_size, name
        self.waiting, self.stream, self.begun = [deque() for _ in range(count)], None, set()

    def begin(self, reader):
        """A reader's new pass: of all of them, if it had begun this one."""
        if self.stream is None or reader in self.begun:
            self.stream, self.begun = iter(self.datapipe), set()
            for queue in self.waiting:
                queue.clear()
        self.begun.add(reader)

    def read(self, reader):
        queue = self.waiting[reader]
        while not queue:
            try:
                sample = next(self.stream)
            except StopIteration:
                return
            for i in self.readers_of(sample):
                self.waiting[i].append(sample)
            if self.buffer_size >= 0 and self.full():
                raise BufferError(f"{self.name} buffer overflow,buffer size {self.buffer_size} is insufficient.")
        yield queue.popleft()

    def readers_of(self, sample):
        return range(len(self.waiting))

    def full(self):
        return max(map(len, self.waiting)) > self.buffer_size + 1


class _Sorted(_Source):
    """A stream each sample of which goes to one reader."""

    def __init__(self, datapipe, count, buffer_size, name, classify, drop_none):
        super().__init__(datapipe, count, buffer_size, name)
        self.classify, self.drop_none = classify, drop_none

    def readers_of(self, sample):
        to = self.classify(sample)
        if to is None and self.drop_none:
            return ()
        if to is None or not 0 <= to < len(self.waiting):
            raise ValueError(f"Output of the classification fn should be between 0 and {len(self.waiting) - 1}. {to} is returned.")
        return (to,)

    def full(self):
        return sum(map(len, self.waiting)) > self.buffer_size + 1


class _ChildDataPipe(IterDataPipe):
    """One of the readers."""

    def __init__(self, source, number):
        self.source, self.number = source, number

    def __iter__(self):
        self.source.begin(self.number)
        while True:
            got = list(self.source.read(self.number))
            if not got:
                return
            yield got[0]


class _Fork(_ChildDataPipe):
    def __len__(self):
        return len(self.source.datapipe)


def _checked(num_instances):
    if num_instances < 1:
        raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")


@functional_datapipe("fork")
class ForkerIterDataPipe(IterDataPipe):
    """A list of ``num_instances`` pipes with the same samples each; one may be ``buffer_size`` ahead of another (any number if -1)."""

    def __new__(cls, datapipe, num_instances, buffer_size=1000, copy=None):
        _checked(num_instances)
        if num_instances == 1:
            return [datapipe]
        source = _Source(datapipe, num_instances, buffer_size, "ForkerIterDataPipe")
        return [_Fork(source, i) for i in range(num_instances)]


@functional_datapipe("demux")
class DemultiplexerIterDataPipe(IterDataPipe):
    """A list of ``num_instances`` pipes; ``classifier_fn`` gives the number of the one that a sample goes to (None: to none, with ``drop_none``)."""

    def __new__(cls, datapipe, num_instances, classifier_fn, drop_none=False, buffer_size=1000):
        _checked(num_instances)
        check_picklable(classifier_fn)
        source = _Sorted(datapipe, num_instances, buffer_size, "DemultiplexerIterDataPipe", classifier_fn, drop_none)
        return [_ChildDataPipe(source, i) for i in range(num_instances)]
