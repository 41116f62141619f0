"""DataLoader: batches from a dataset, read in the background if asked for."""

import itertools
import math
import multiprocessing
import os
import queue
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from clnn.utils.data import _worker, graph_settings
from clnn.utils.data._worker import get_worker_info  # noqa: F401
from clnn.utils.data.collate import default_collate, default_convert, from_wire
from clnn.utils.data.datapipes.datapipe import IterDataPipe
from clnn.utils.data.dataset import IterableDataset
from clnn.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, draw_seed

T, T_co = TypeVar("T"), TypeVar("T_co", covariant=True)
_collate_fn_t = Callable[[list], Any]
_worker_init_fn_t = Callable[[int], None]
_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class _DatasetKind:
    """Whether a dataset is read by index or as a stream."""

    Map, Iterable = 0, 1


class _Endless(Sampler):
    """The sampler of a stream: there are no indices to choose."""

    def __iter__(self):
        return itertools.repeat(None)


class DataLoader:
    """Iterates over a dataset in batches.

    Args:
        dataset: a map-style `Dataset` (anything with `__getitem__` and `__len__`) or an `IterableDataset`.
        batch_size: samples a batch; None gives single samples.
        shuffle: read in a new random order in each pass.
        sampler, batch_sampler: give the order of indices, or of whole batches; each excludes the options it replaces.
        num_workers: workers that read ahead; 0 reads in the calling thread.
        collate_fn: makes a batch from a list of samples; `default_collate` unless given.
        drop_last: leave out a last batch that is not full.
        timeout: seconds to wait for a batch from the workers; 0 waits without limit.
        worker_init_fn: called with the worker's id at its start.
        multiprocessing_context: None or "thread" for worker threads, "spawn" for worker processes.
        generator: source of randomness for shuffling and worker seeds.
        prefetch_factor: batches each worker reads ahead (2).
        persistent_workers: keep the workers between passes.
        in_order: hand batches out in the sampler's order rather than as they come.
        pin_memory, pin_memory_device: accepted and without effect.

    Worker threads suit datasets that read files, decode images or use NumPy, which release Python's lock; they share the process
    and its device, and each gets a shallow copy of the dataset. Each draws random numbers from streams of its own, clnn's and those of the functions of the modules
    `random` and `numpy.random`, seeded as PyTorch seeds worker processes. Use "spawn" for datasets in pure Python or with state that threads cannot share (say
    one open file). A forked worker would hang in some OpenCL drivers, so "fork" gives worker threads, with a warning.

    Example::

        >>> data = clnn.utils.data.TensorDataset(clnn.arange(10.0), clnn.arange(10))
        >>> for x, y in clnn.utils.data.DataLoader(data, batch_size=4, shuffle=True):
        ...     print(x.shape, y.shape)
        clnn.Size([4]) clnn.Size([4])
        clnn.Size([4]) clnn.Size([4])
        clnn.Size([2]) clnn.Size([2])
    """

    def __init__(self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0, collate_fn=None,
                 pin_memory=False, drop_last=False, timeout=0, worker_init_fn=None, multiprocessing_context=None, generator=None, *,
                 prefetch_factor=None, persistent_workers=False, pin_memory_device="", in_order=True):
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers, multiprocessing_context)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers > 0 and prefetch_factor is None else prefetch_factor
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.timeout, self.worker_init_fn, self.in_order = timeout, worker_init_fn, in_order
        self.multiprocessing_context = None if _forks(multiprocessing_context) else multiprocessing_context
        self._dataset_kind = _DatasetKind.Iterable if isinstance(dataset, IterableDataset) else _DatasetKind.Map
        if isinstance(dataset, IterDataPipe):
            self.dataset = graph_settings.apply_shuffle_settings(dataset, shuffle=shuffle)
            shuffle = None
        if self._iterable:
            _check_stream(shuffle, sampler, batch_sampler)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            sampler = self._make_sampler(dataset, shuffle, generator)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size, self.drop_last, self.sampler, self.batch_sampler = batch_size, drop_last, sampler, batch_sampler
        self.generator = generator
        self.collate_fn = collate_fn or (default_collate if batch_sampler is not None else default_convert)
        self.persistent_workers = persistent_workers
        self._iterator = self._IterableDataset_len_called = None         # the latter: the length of a stream, once it was asked for
        self._ready = True

    def _make_sampler(self, dataset, shuffle, generator):
        if self._iterable:
            return _Endless()
        return RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)

    def __setattr__(self, name, value):
        if name in _FIXED and self.__dict__.get("_ready"):
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    def __class_getitem__(cls, item):
        return cls

    @property
    def _iterable(self):
        return self._dataset_kind == _DatasetKind.Iterable

    @property
    def _auto_collation(self):
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        return self.batch_sampler if self.batch_sampler is not None else self.sampler

    def _get_iterator(self):
        if isinstance(self.dataset, IterDataPipe):
            graph_settings.apply_random_seed(self.dataset, self.generator)      # the same order in all workers, which share out the samples behind it
        return _SingleProcessDataLoaderIter(self) if self.num_workers == 0 else _MultiProcessingDataLoaderIter(self)

    def __iter__(self):
        if not self.persistent_workers or self.num_workers == 0:
            return self._get_iterator()
        if self._iterator is None or self._iterator.closed:
            self._iterator = self._get_iterator()
        else:
            self._iterator.restart(self)
        return self._iterator

    def __len__(self):
        if not self._iterable:
            return len(self._index_sampler)
        n = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is None:
            return n
        return n // self.batch_size if self.drop_last else math.ceil(n / self.batch_size)


def _check_workers(num_workers, timeout, prefetch_factor, persistent_workers, context):
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if prefetch_factor is not None and num_workers == 0:
        raise ValueError("prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable multiprocessing, otherwise "
                         "set prefetch_factor to None.")
    if prefetch_factor is not None and prefetch_factor < 1:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or num_workers
    if num_workers > cores:
        warnings.warn(f"This DataLoader will create {num_workers} worker processes in total. Our suggested max number of worker in current system is {cores}, "
                      "which is smaller than what this DataLoader is going to create. Please be aware that excessive worker creation might get DataLoader "
                      "running slow or even freeze, lower the worker number to avoid potential slowness/freeze if necessary.", UserWarning, stacklevel=3)
    if context is None or context == "thread":
        return
    if num_workers == 0:
        raise ValueError(f"multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got num_workers={num_workers}")
    if isinstance(context, str):
        methods = [m for m in ("fork", "spawn", "forkserver") if m in multiprocessing.get_all_start_methods()]
        if context not in (*methods, "thread"):
            raise ValueError(f"multiprocessing_context option should specify a valid start method in {methods}, but got multiprocessing_context={context!r}")
    elif not hasattr(context, "get_start_method"):
        raise TypeError("multiprocessing_context option should be a valid context object or a string specifying the start method, but got "
                        f"multiprocessing_context={context}")
    if _forks(context):
        warnings.warn("DataLoader: forked worker processes hang in some OpenCL drivers; worker threads read the data instead", stacklevel=3)


def _forks(context):
    """Whether a multiprocessing context, given by name, as an object or as the module, is any other than spawn."""
    return context not in (None, "thread") and (context if isinstance(context, str) else context.get_start_method()) != "spawn"


def _check_stream(shuffle, sampler, batch_sampler):
    if shuffle:
        raise ValueError(f"DataLoader with IterableDataset: expected unspecified shuffle option, but got shuffle={shuffle}")
    if sampler is not None:
        raise ValueError(f"DataLoader with IterableDataset: expected unspecified sampler option, but got sampler={sampler}")
    if batch_sampler is not None:
        raise ValueError(f"DataLoader with IterableDataset: expected unspecified batch_sampler option, but got batch_sampler={batch_sampler}")


class _BaseDataLoaderIter:
    """What both kinds of iteration share: counting, and a warning when a stream is longer than it said.

    Of a loader, which may be a program's own, they ask ``dataset``, ``_dataset_kind``, ``_auto_collation``, ``_index_sampler``, ``collate_fn``, ``drop_last``.
    """

    def __init__(self, loader):
        self._loader_len = getattr(loader, "_IterableDataset_len_called", None)
        self._yielded = 0
        self._dataset, self._dataset_kind, self._index_sampler = loader.dataset, loader._dataset_kind, loader._index_sampler
        self._iterable = self._dataset_kind == _DatasetKind.Iterable
        self._base_seed = draw_seed(getattr(loader, "generator", None))     # without workers, too, so that what is drawn later does not depend on them

    def __iter__(self):
        return self

    def __len__(self):
        return len(self._index_sampler)

    def __next__(self):
        batch = self._next()
        self._yielded += 1
        if self._loader_len is not None and self._yielded > self._loader_len:
            warnings.warn(f"Length of IterableDataset {self._dataset} was reported to be {self._loader_len} (when accessing len(dataloader)), but "
                          f"{self._yielded} samples have been fetched. With several workers, use get_worker_info() to give each its share")
        return batch


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Reads in the calling thread."""

    def __init__(self, loader):
        super().__init__(loader)
        self._order = iter(loader._index_sampler)
        self._fetcher = _worker.Fetcher(loader.dataset, self._iterable, loader._auto_collation, loader.collate_fn, loader.drop_last)

    def _next(self):
        return self._fetcher.fetch(next(self._order))


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Reads ahead in worker threads or spawned processes and puts the batches back into order."""

    def __new__(cls, loader):
        if not _forks(loader.multiprocessing_context):
            return super().__new__(cls)
        warnings.warn("worker processes cannot be forked, because some OpenCL drivers hang in them; the data is read in the calling thread instead")
        return _SingleProcessDataLoaderIter(loader)

    def __init__(self, loader):
        self.closed = True  # until the workers run: __del__ must work after a failed start
        super().__init__(loader)
        self._processes = loader.multiprocessing_context not in (None, "thread")
        self._n = loader.num_workers
        self._timeout, self._in_order, self._persistent = loader.timeout, loader.in_order, loader.persistent_workers
        self._ahead = loader.prefetch_factor * self._n
        job = _worker.Job(loader.dataset, self._iterable, loader._auto_collation, loader.collate_fn, loader.drop_last,
                          loader.worker_init_fn, self._n)
        self._start(job, self._base_seed, loader.multiprocessing_context)
        self._begin(loader)

    def _start(self, job, seed, context):
        if self._processes:
            context = multiprocessing.get_context(context) if isinstance(context, str) else context
            make_queue, event, make, main = context.Queue, context.Event(), context.Process, _worker.process_main
        else:
            make_queue, event, make, main = queue.Queue, threading.Event(), threading.Thread, _worker.thread_main
        self._stop = event
        self._results = make_queue()
        self._orders = [make_queue() for _ in range(self._n)]
        self._team = []
        self.closed = False
        for i in range(self._n):
            worker = make(target=main, args=(job, i, seed + i, self._orders[i], self._results, event), daemon=True)
            worker.start()
            self._team.append(worker)

    def _begin(self, loader):
        self._order = iter(loader._index_sampler)
        self._sent = self._next_number = self._yielded = 0
        self._pending = {}  # number -> worker that has it
        self._done = {}  # results that came before their turn
        self._live = set(range(self._n))
        self._turn = 0
        for _ in range(self._ahead):
            self._send()

    def restart(self, loader):
        """Begin a new pass with the same workers."""
        while self._pending:  # batches of a pass that was broken off
            number, _, _ = self._receive()
            self._pending.pop(number, None)
        for i in range(self._n):
            self._orders[i].put((-1 - i, _worker.Restart()))
        for _ in range(self._n):
            _, _, result = self._receive()
            if isinstance(result, _worker.WorkerError):
                self.close()
                result.reraise()
        self._begin(loader)

    def _send(self):
        """Hand the next index to the next live worker, in turn."""
        if not self._live:
            return
        try:
            index = next(self._order)
        except StopIteration:
            return
        while self._turn % self._n not in self._live:
            self._turn += 1
        worker = self._turn % self._n
        self._turn += 1
        self._pending[self._sent] = worker
        self._orders[worker].put((self._sent, index))
        self._sent += 1

    def _receive(self):
        """The next result of any worker; watches the time limit and whether the workers still live."""
        limit = time.monotonic() + self._timeout if self._timeout else None
        while True:
            wait = 5.0 if limit is None else max(0.0, min(5.0, limit - time.monotonic()))
            try:
                return self._results.get(timeout=wait)
            except queue.Empty:
                dead = [w.name for i, w in enumerate(self._team) if i in self._live and not w.is_alive()]
                if dead:
                    self.close()
                    raise RuntimeError(f"DataLoader worker ({', '.join(dead)}) exited unexpectedly; with processes, check that the script "
                                       "guards its main part by `if __name__ == '__main__':`") from None
                if limit is not None and time.monotonic() >= limit:
                    self.close()
                    raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds") from None

    def _next(self):
        if self.closed:
            raise StopIteration
        while True:
            number = self._next_number if self._in_order else next(iter(self._done), None)
            if number in self._done:
                result = self._done.pop(number)
                self._next_number += 1
                if isinstance(result, _worker.EndOfStream):
                    continue
                self._send()
                if isinstance(result, _worker.WorkerError):
                    result.reraise()                            # the next batches are still to be had
                return from_wire(result) if self._processes else result
            if not self._pending:
                if not self._persistent:
                    self.close()
                raise StopIteration
            self._take()

    def _take(self):
        number, worker, result = self._receive()
        self._pending.pop(number, None)
        if isinstance(result, _worker.EndOfStream):
            if worker in self._live:
                self._live.discard(worker)
                if not self._persistent:
                    self._orders[worker].put(None)
            self._send()  # its share of the reading ahead goes to the others
        self._done[number] = result

    def close(self):
        """Stop the workers; used up and broken off iterations do it by themselves."""
        if self.closed:
            return
        self.closed = True
        self._stop.set()
        for orders in self._orders:
            orders.put(None)
        if not self._processes:
            return  # threads end by themselves; waiting would block on a slow read
        while True:  # empty the pipe, or a worker cannot finish its last send
            try:
                self._results.get_nowait()
            except (queue.Empty, OSError, EOFError):
                break
        for worker in self._team:
            worker.join(2.0)
            if worker.is_alive():
                worker.terminate()
        for q in (*self._orders, self._results):
            q.cancel_join_thread()
            q.close()

    def __del__(self):
        try:
            self.close()
        except Exception:  # at interpreter exit parts of it may be gone
            pass
