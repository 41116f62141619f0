"""What runs inside a loader's workers: reading samples, collating, reporting errors."""

import contextlib
import copy
import multiprocessing
import queue
import random
import threading
import traceback

from clnn.core import rng
from clnn.utils.data import _draws
from clnn.utils.data.dataset import TensorBatch

_local = threading.local()


class WorkerInfo:
    """What `get_worker_info()` returns inside a worker: `id`, `num_workers`, `seed`, and `dataset` (this worker's copy)."""

    def __init__(self, id, num_workers, seed, dataset):  # noqa: A002 - PyTorch's names
        self.id, self.num_workers, self.seed, self.dataset = id, num_workers, seed, dataset

    def __repr__(self):
        return f"WorkerInfo(id={self.id}, num_workers={self.num_workers}, seed={self.seed}, dataset={self.dataset!r})"


def get_worker_info():
    """The current worker's `WorkerInfo`, or None outside a `DataLoader` worker.

    An `IterableDataset` uses it to give every worker its share of the stream.

    Example:
        >>> clnn.utils.data.get_worker_info() is None
        True
    """
    return getattr(_local, "info", None)


def _generate_state(base_seed, worker_id):
    """Four numbers that seed NumPy in a worker: those of NumPy's own ``SeedSequence``."""
    return _draws.seed_of(base_seed, worker_id).tolist()


class WorkerError:
    """An exception of a worker, with its traceback as text, on the way to the training loop."""

    def __init__(self, error, where):
        self.kind = type(error)
        self.where = where
        self.text = "".join(traceback.format_exception(type(error), error, error.__traceback__))

    def reraise(self):
        """Raise an exception of the same type whose message holds the worker's traceback."""
        message = f"Caught {self.kind.__name__} {self.where}.\nOriginal {self.text}"
        if self.kind is KeyError:
            message = _Plain(message)  # a KeyError shows the repr of its message: keep the line breaks readable
        try:
            error = self.kind(message)
        except Exception:  # a type whose constructor takes other arguments
            error = RuntimeError(message)
        raise error


class _Plain(str):
    def __repr__(self):
        return str(self)


class EndOfStream:
    """A worker's `IterableDataset` is exhausted."""


class Fetcher:
    """Reads one batch (or one sample) at a time.

    Args:
        dataset: the dataset. iterable: whether it is a stream. auto: whether to make batches.
        collate: the collate function. drop_last: leave out a last short batch of a stream.
    """

    def __init__(self, dataset, iterable, auto, collate, drop_last):
        self.dataset, self.iterable, self.auto, self.collate, self.drop_last = dataset, iterable, auto, collate, drop_last
        self._stream = iter(dataset) if iterable else None
        self._ended = False

    def fetch(self, index):
        """The batch at `index`: one index, or a list of them; for a stream only its length counts."""
        if self.iterable:
            return self.collate(self._next_of_stream(index))
        if not self.auto:
            return self.collate(self.dataset[index])
        if callable(getattr(self.dataset, "__getitems__", None)):
            rows = self.dataset.__getitems__(index)
            return self.collate(list(rows) if rows.__class__ is TensorBatch and not getattr(self.collate, "takes_rows", False) else rows)
        return self.collate([self.dataset[i] for i in index])

    def _next_of_stream(self, index):
        if self._ended:
            raise StopIteration
        if not self.auto:
            return next(self._stream)
        batch = []
        for _ in index:
            try:
                batch.append(next(self._stream))
            except StopIteration:
                self._ended = True
                break
        if not batch or (self.drop_last and len(batch) < len(index)):
            raise StopIteration
        return batch


class Job:
    """The fixed part of a worker's work order; it can be pickled when its members can.

    Args:
        dataset, iterable, auto, collate, drop_last: as for `Fetcher`.
        init: the user's `worker_init_fn`. num_workers: how many workers there are.
    """

    def __init__(self, dataset, iterable, auto, collate, drop_last, init, num_workers):
        self.dataset, self.iterable, self.auto, self.collate = dataset, iterable, auto, collate
        self.drop_last, self.init, self.num_workers = drop_last, init, num_workers


class Restart:
    """Asks a persistent worker to begin a new pass over its dataset."""


def work(job, worker_id, seed, orders, results, stop, pack):
    """A worker's main loop: take `(number, index)` from `orders`, put `(number, worker_id, result)` into `results`.

    `pack` prepares a batch for the way back. `None` as an order, or the event `stop`, ends the loop.
    """
    where = f"in DataLoader worker process {worker_id}"         # as programs know it; a thread does no less
    _local.info = WorkerInfo(worker_id, job.num_workers, seed, job.dataset)
    fetcher, broken = None, None
    try:
        if job.init is not None:
            job.init(worker_id)
        fetcher = Fetcher(job.dataset, job.iterable, job.auto, job.collate, job.drop_last)
    except Exception as error:
        broken = WorkerError(error, where)
    while not stop.is_set():
        try:
            order = orders.get(timeout=1.0)
        except queue.Empty:
            parent = multiprocessing.parent_process()
            if parent is not None and not parent.is_alive():
                break  # the training process was killed: do not stay behind
            continue
        if order is None:
            break
        number, index = order
        if isinstance(index, Restart):
            out, fetcher, broken = _restart(job, where, broken)
        elif broken is not None:
            out, broken = broken, None
        else:
            out = _fetch(fetcher, index, pack, where)
        results.put((number, worker_id, out))
        out = None
    _local.info = None


def _restart(job, where, broken):
    if broken is not None:
        return broken, None, None
    try:
        return Restart(), Fetcher(job.dataset, job.iterable, job.auto, job.collate, job.drop_last), None
    except Exception as error:
        return WorkerError(error, where), None, None


def _fetch(fetcher, index, pack, where):
    try:
        return pack(fetcher.fetch(index))
    except StopIteration as error:
        return EndOfStream() if fetcher.iterable else WorkerError(error, where)
    except Exception as error:
        return WorkerError(error, where)


def thread_main(job, worker_id, seed, orders, results, stop):
    """Entry of a worker thread. It works on a copy of the dataset, so that workers may set attributes of it, and draws from streams of its own."""
    from clnn.random import Generator
    from clnn.utils.data.datapipes.datapipe import IterDataPipe
    with contextlib.suppress(Exception):
        dataset = (copy.deepcopy if isinstance(job.dataset, IterDataPipe) else copy.copy)(job.dataset)       # the steps of a pipe have passes of their own
        job = Job(dataset, job.iterable, job.auto, job.collate, job.drop_last, job.init, job.num_workers)
    rng.of_threads[threading.get_ident()] = Generator().manual_seed(seed)
    _draws.begin(seed - worker_id, worker_id)
    try:
        work(job, worker_id, seed, orders, results, stop, lambda batch: batch)
    finally:
        _draws.end()
        del rng.of_threads[threading.get_ident()]


def process_main(job, worker_id, seed, orders, results, stop):
    """Entry of a worker process: seeds all generators, and sends tensors back as NumPy arrays."""
    import numpy as np
    from clnn.utils.data import collate
    random.seed(seed)
    np.random.seed(_draws.seed_of(seed - worker_id, worker_id))
    rng.default.restart(seed)
    if job.collate is collate.default_collate:
        job.collate = collate.host_collate
    work(job, worker_id, seed, orders, results, stop, collate.to_wire)
    results.close()
    results.join_thread()  # what was sent must reach the pipe before this process ends
