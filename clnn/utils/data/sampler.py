"""Samplers: the order in which a `DataLoader` reads a map-style dataset."""

import itertools
import math

import numpy as np

import clnn
from clnn._tensor.device import holding, resolve
from clnn.core import rng, twister

_FEW = 1 << 14      # indices that are shuffled without a device


def sequence_of(generator=None):
    """The sequence of clnn's generator, or of `generator`: the source of all host-side randomness here."""
    return (rng.current() if generator is None else generator).sequence


def draw_seed(generator=None):
    """One 63-bit number."""
    return int(sequence_of(generator).wide(1)[0]) & (1 << 63) - 1


def permutation(n, generator=None):
    """The numbers below `n` in random order, as a list."""
    if n <= _FEW or not resolve(None).is_cpu:
        return twister.permutation(sequence_of(generator), n)
    return clnn.randperm(n, generator=generator).tolist()


class Sampler:
    """Base of all samplers: a subclass defines `__iter__`, giving indices or lists of indices, and usually `__len__`.

    Example:
        >>> class Backwards(clnn.utils.data.Sampler):
        ...     def __init__(self, source):
        ...         self.source = source
        ...     def __iter__(self):
        ...         return iter(range(len(self.source))[::-1])
        ...     def __len__(self):
        ...         return len(self.source)
        >>> list(clnn.utils.data.DataLoader([1, 2, 3], sampler=Backwards([1, 2, 3])))
        [tensor([3]), tensor([2]), tensor([1])]
    """

    def __init__(self, data_source=None):
        pass

    def __iter__(self):
        raise NotImplementedError(f"{type(self).__name__} has to define __iter__")

    def __class_getitem__(cls, item):
        return cls


class SequentialSampler(Sampler):
    """Indices in order.

    Args:
        data_source: anything with a length.

    Example:
        >>> list(clnn.utils.data.SequentialSampler(["a", "b", "c"]))
        [0, 1, 2]
    """

    def __init__(self, data_source):
        self.data_source = data_source

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)


class RandomSampler(Sampler):
    """Indices in random order.

    Args:
        data_source: anything with a length.
        replacement: draw each index independently, so that it may come more than once.
        num_samples: how many indices; all by default.
        generator: source of randomness.

    Example:
        >>> sorted(clnn.utils.data.RandomSampler(["a", "b", "c"]))
        [0, 1, 2]
    """

    def __init__(self, data_source, replacement=False, num_samples=None, generator=None):
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        if not isinstance(self.num_samples, int) or isinstance(self.num_samples, bool) or self.num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={self.num_samples!r}")

    @property
    def num_samples(self):
        """How many indices one pass gives."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self):
        n = len(self.data_source)
        if self.num_samples == 0 or n == 0:
            return
        source = rng.Stream(draw_seed()) if self.generator is None else self.generator
        if self.replacement:
            for start in range(0, self.num_samples, 32):
                yield from twister.integers(source.sequence, n, min(32, self.num_samples - start)).tolist()
            return
        for _ in range(self.num_samples // n):
            yield from permutation(n, source)
        yield from permutation(n, source)[:self.num_samples % n]

    def __len__(self):
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """The given indices in random order.

    Args:
        indices: sequence of indices. generator: source of randomness.

    Example:
        >>> sorted(clnn.utils.data.SubsetRandomSampler([5, 3]))
        [3, 5]
    """

    def __init__(self, indices, generator=None):
        self.indices = indices
        self.generator = generator

    def __iter__(self):
        for i in permutation(len(self.indices), self.generator):
            yield self.indices[i]

    def __len__(self):
        return len(self.indices)


def _numbers(weights):
    return np.asarray(weights.tolist() if hasattr(weights, "tolist") else list(weights), dtype=np.float64)


class WeightedRandomSampler(Sampler):
    """Indices drawn with the given (unnormalised) weights.

    Args:
        weights: sequence of non-negative weights, one an index.
        num_samples: how many indices. replacement: whether an index may come more than once.
        generator: source of randomness.

    Example:
        >>> list(clnn.utils.data.WeightedRandomSampler([0.0, 1.0], 3))
        [1, 1, 1]
    """

    def __init__(self, weights, num_samples, replacement=True, generator=None):
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={num_samples}")
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        weights = _numbers(weights)
        self.weights = clnn.tensor(weights, dtype=clnn.float64 if holding(None).has_fp64 else clnn.float32)
        if weights.ndim != 1:
            raise ValueError(f"weights should be a 1d sequence but given weights have shape {tuple(weights.shape)}")
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self):
        weights = _numbers(self.weights)
        total = weights.sum()
        if not (np.isfinite(total) and total > 0 and (weights >= 0).all()):
            raise RuntimeError("WeightedRandomSampler: weights must be finite, not negative, and not all zero")
        if not self.replacement and self.num_samples > len(weights):
            raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
        yield from twister.multinomial(sequence_of(self.generator), weights[None], self.num_samples, self.replacement)[0].tolist()

    def __len__(self):
        return self.num_samples


class BatchSampler(Sampler):
    """Groups the indices of another sampler into lists.

    Args:
        sampler: iterable of indices. batch_size: indices a list. drop_last: leave out a last list that is shorter.

    Example::

        >>> list(clnn.utils.data.BatchSampler(range(5), batch_size=2, drop_last=False))
        [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler, batch_size, drop_last):
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self):
        source = iter(self.sampler)
        while batch := list(itertools.islice(source, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self):
        if self.drop_last:
            return len(self.sampler) // self.batch_size
        return math.ceil(len(self.sampler) / self.batch_size)


class DistributedSampler(Sampler):
    """The share of a dataset that one of several training processes reads.

    Args:
        dataset: anything with a length. num_replicas, rank: number of processes and which one this is; those of the default process group
            where they are left out (ValueError if there is none).
        shuffle: permute all indices first, equally in all processes, by `seed` and the epoch given to `set_epoch`.
        seed: seed of the permutation. drop_last: drop samples instead of repeating some to make the shares equal.

    Example:
        >>> list(clnn.utils.data.DistributedSampler(["a", "b", "c", "d"], num_replicas=2, rank=1, shuffle=False))
        [1, 3]
    """

    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False):
        if num_replicas is None or rank is None:
            from clnn import distributed
            num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
            rank = distributed.get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.shuffle, self.seed, self.drop_last, self.epoch = shuffle, seed, drop_last, 0
        n = len(dataset)
        self.num_samples = n // num_replicas if drop_last and n % num_replicas else math.ceil(n / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self):
        n = len(self.dataset)
        order = permutation(n, rng.Stream(self.seed + self.epoch)) if self.shuffle else list(range(n))
        if not self.drop_last and order:
            order = list(itertools.islice(itertools.cycle(order), self.total_size))
        return iter(order[self.rank:self.total_size:self.num_replicas])

    def __len__(self):
        return self.num_samples

    def set_epoch(self, epoch):
        """Choose the permutation of the next pass; call it before each epoch."""
        self.epoch = epoch
