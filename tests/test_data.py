"""Datasets, samplers and the DataLoader."""

import collections
import itertools
import multiprocessing
import random
import threading
import time

import numpy as np
import pytest

import clnn
from clnn.utils.data import (BatchSampler, ChainDataset, ConcatDataset, DataLoader, Dataset, DistributedSampler, IterableDataset, RandomSampler,
                             SequentialSampler, StackDataset, Subset, SubsetRandomSampler, TensorDataset, WeightedRandomSampler,
                             default_collate, default_convert, get_worker_info, random_split)


class Squares(Dataset):
    def __init__(self, n=10, bad=None):
        self.n, self.bad = n, bad

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if i == self.bad:
            raise KeyError("number seven")
        return np.float32(i), {"square": i * i, "name": str(i)}


class Stream(IterableDataset):
    def __init__(self, n=10):
        self.n = n

    def __iter__(self):
        info = get_worker_info()
        return iter(range(self.n) if info is None else range(info.id, self.n, info.num_workers))


class Sized(Stream):
    def __len__(self):
        return self.n


def tensors():
    return TensorDataset(clnn.arange(20.0).reshape(10, 2), clnn.arange(10))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("options", [{}, {"shuffle": True}, {"drop_last": True}, {"shuffle": True, "in_order": False}])
def test_batches_cover_the_dataset(workers, options):
    loader = DataLoader(tensors(), batch_size=4, num_workers=workers, **options)
    batches = list(loader)
    assert len(batches) == len(loader) == (2 if options.get("drop_last") else 3)
    order = [i for _, y in batches for i in y.tolist()]
    rows = [r for x, _ in batches for r in x.tolist()]
    assert rows == [[2.0 * i, 2.0 * i + 1] for i in order]
    if options.get("drop_last"):
        assert order == list(range(8))
    else:
        assert sorted(order) == list(range(10)) and (bool(options) or order == list(range(10)))


def test_a_batch_is_a_copy_of_the_data():
    data = tensors()
    x, _ = next(iter(DataLoader(data, batch_size=4)))
    x.zero_()
    assert data.tensors[0].tolist()[1] == [2.0, 3.0]


def test_shuffling_follows_the_seed():
    def order(**kw):
        return [i for _, y in DataLoader(tensors(), batch_size=3, shuffle=True, **kw) for i in y.tolist()]
    clnn.manual_seed(3)
    first, second = order(), order()
    clnn.manual_seed(3)
    assert order() == first and first != second
    assert order(generator=clnn.Generator().manual_seed(5)) == order(generator=clnn.Generator().manual_seed(5))


def test_samplers_and_options():
    data = tensors()
    assert [y.tolist() for _, y in DataLoader(data, batch_sampler=[[3, 1], [9]])] == [[3, 1], [9]]
    assert [y.item() for _, y in DataLoader(data, batch_size=None, sampler=[4, 2])] == [4, 2]
    assert list(SequentialSampler(range(3))) == [0, 1, 2]
    assert sorted(RandomSampler(range(5))) == list(range(5))
    repeated = list(RandomSampler(range(5), replacement=True, num_samples=40))
    assert len(repeated) == 40 and set(repeated) <= set(range(5))
    assert len(list(RandomSampler(range(5), num_samples=12))) == 12
    assert sorted(SubsetRandomSampler([7, 3, 5])) == [3, 5, 7]
    assert set(WeightedRandomSampler([0.0, 1.0, 0.0, 3.0], 50)) == {1, 3}
    assert sorted(WeightedRandomSampler([1.0, 1.0, 1.0], 3, replacement=False)) == [0, 1, 2]
    assert list(BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]] and len(BatchSampler(range(5), 2, False)) == 3
    shares = [list(DistributedSampler(range(10), 3, r)) for r in range(3)]
    assert [len(s) for s in shares] == [4, 4, 4] and set(sum(shares, [])) == set(range(10))


def test_option_errors():
    data = tensors()
    for bad in (dict(sampler=[0], shuffle=True), dict(batch_sampler=[[0]], batch_size=2), dict(batch_size=None, drop_last=True),
                dict(num_workers=-1), dict(timeout=-1), dict(prefetch_factor=2), dict(persistent_workers=True), dict(batch_size=0)):
        with pytest.raises(ValueError):
            DataLoader(data, **bad)
    for bad in (dict(shuffle=True), dict(sampler=[0]), dict(batch_sampler=[[0]])):
        with pytest.raises(ValueError):
            DataLoader(Stream(), **bad)
    with pytest.warns(UserWarning, match="worker threads"):
        assert len(list(DataLoader(data, num_workers=1, multiprocessing_context="fork"))) == len(data)
    with pytest.raises(ValueError, match="should not be set"):
        DataLoader(data).batch_size = 3
    with pytest.raises(ValueError):
        RandomSampler(range(3), num_samples=-1)
    with pytest.raises(AssertionError):
        TensorDataset(clnn.zeros(2), clnn.zeros(3))


def test_dataset_combinations():
    both = ConcatDataset([range(3), range(10, 12)])
    assert [both[i] for i in range(5)] == [0, 1, 2, 10, 11] and both[-1] == 11 and len(Squares(2) + Squares(3)) == 5
    assert list(ChainDataset([Stream(2), Stream(1)])) == [0, 1, 0] and list(Stream(1) + Stream(2)) == [0, 0, 1]
    assert StackDataset(range(2), range(5, 7))[1] == (1, 6) and StackDataset(a=range(2))[0] == {"a": 0}
    with pytest.raises(ValueError):
        StackDataset(range(2), range(3))
    subset = Subset(tensors(), [8, 2, 5])
    (x, y), = DataLoader(subset, batch_size=3)
    assert y.tolist() == [8, 2, 5] and x.tolist()[0] == [16.0, 17.0]
    parts = random_split(range(10), [0.45, 0.55])
    assert [len(p) for p in parts] == [5, 5] and sorted(i for p in parts for i in p) == list(range(10))
    assert [len(p) for p in random_split(range(4), [3, 1])] == [3, 1]
    with pytest.raises(ValueError):
        random_split(range(4), [3, 2])
    sample = tensors().__getitems__([3, -1])[1]
    assert sample[1].item() == 9
    with pytest.raises(IndexError):
        tensors().__getitems__([0, 10])


@pytest.mark.parametrize("made", [lambda i: (clnn.tensor(i),), lambda i: {"a": clnn.tensor(i)}, clnn.tensor, lambda i: [(k,) for k in i]])
def test_collate_functions_get_what_getitems_gave(made):
    class Rows(Squares):
        def __getitems__(self, indices):
            return made(indices)

    expected = made([0, 1])
    got = next(iter(DataLoader(Rows(), batch_size=2, collate_fn=lambda batch: batch)))
    assert type(got) is type(expected) and str(got) == str(expected)
    assert isinstance(next(iter(DataLoader(tensors(), batch_size=2, collate_fn=lambda batch: batch))), list)


def test_collate_equals_torch():
    torch = pytest.importorskip("torch")
    Point = collections.namedtuple("Point", "x y")
    for batch in ([1, 2], [1.5, 2.5], [True, False], ["a", "b"], [(1, "a"), (2, "b")], [[1, 2], [3, 4]], [{"k": 1.0}, {"k": 2.0}],
                  [Point(1, 2.0), Point(3, 4.0)], [np.float32(1), np.float32(2)], [np.ones((2, 3), np.float32)] * 2,
                  [{"a": [(1, 2), 3]}, {"a": [(4, 5), 6]}]):
        assert_same_tree(default_collate(batch), torch.utils.data.default_collate(batch))
    got = default_collate([clnn.ones(2), clnn.zeros(2)])
    assert got.tolist() == [[1.0, 1.0], [0.0, 0.0]]
    assert_same_tree(default_convert([np.arange(3), ("x", np.float32(2))]), torch.utils.data.default_convert([np.arange(3), ("x", np.float32(2))]))
    for bad in ([object()], [np.array(["a"])]):
        with pytest.raises(TypeError):
            default_collate(bad)
    for bad in ([np.zeros(2), np.zeros(3)], [[1, 2], [3]]):
        with pytest.raises(RuntimeError):
            default_collate(bad)


def assert_same_tree(ours, theirs):
    if isinstance(ours, clnn.Tensor):
        assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    elif isinstance(ours, dict):
        assert ours.keys() == theirs.keys() and type(ours) is type(theirs)
        for k in ours:
            assert_same_tree(ours[k], theirs[k])
    elif isinstance(ours, (list, tuple)):
        assert type(ours) is type(theirs) and len(ours) == len(theirs)
        for a, b in zip(ours, theirs):
            assert_same_tree(a, b)
    else:
        assert ours == theirs


@pytest.mark.parametrize("context", [None, "spawn"])
def test_workers(context):
    loader = DataLoader(Squares(), batch_size=3, num_workers=2, multiprocessing_context=context, persistent_workers=True)
    for _ in range(2):
        batches = list(loader)
        assert [x for b in batches for x in b[0].tolist()] == list(range(10))
        assert batches[1][1]["square"].tolist() == [9, 16, 25] and batches[3][1]["name"] == ["9"]
    half = iter(loader)
    next(half)
    assert len(list(loader)) == 4  # a pass that was broken off leaves nothing behind
    loader._iterator.close()
    with pytest.raises(KeyError, match="(?s)Caught KeyError in DataLoader worker.*number seven"):
        list(DataLoader(Squares(bad=7), batch_size=3, num_workers=2, multiprocessing_context=context))
    if context is None:
        stream = [b.tolist() for b in DataLoader(Stream(), batch_size=4, num_workers=2)]
        assert stream == [[0, 2, 4, 6], [1, 3, 5, 7], [8], [9]]


def test_iterable_dataset():
    assert [b.tolist() for b in DataLoader(Stream(), batch_size=4)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert len(list(DataLoader(Stream(), batch_size=4, drop_last=True))) == 2
    assert list(DataLoader(Stream(3), batch_size=None)) == [0, 1, 2]
    assert len(DataLoader(Sized(), batch_size=4)) == 3
    with pytest.raises(TypeError):
        len(DataLoader(Stream(), batch_size=4))

    class Doubling(Sized):
        def __iter__(self):
            return iter(range(2 * self.n))
    loader = DataLoader(Doubling(4), batch_size=None)
    assert len(loader) == 4
    with pytest.warns(UserWarning, match="Length of IterableDataset"):          # once the program has asked for it
        list(loader)


def test_worker_init_and_dataset_copies():
    seen = []

    def init(worker_id):
        info = get_worker_info()
        info.dataset.n = 2 + worker_id  # each worker has its own dataset object
        seen.append((worker_id, info.id, info.num_workers))

    class Plain(Stream):
        def __iter__(self):
            return iter(range(self.n))
    data = Plain()
    got = [b.tolist() for b in DataLoader(data, batch_size=8, num_workers=2, worker_init_fn=init)]
    assert sorted(seen) == [(0, 0, 2), (1, 1, 2)] and got == [[0, 1], [0, 1, 2]] and data.n == 10 and get_worker_info() is None


def test_timeout_and_threads_end():
    class Slow(Squares):
        def __getitem__(self, i):
            time.sleep(0.6)
            return i
    with pytest.raises(RuntimeError, match="timed out after 0.1"):
        list(DataLoader(Slow(2), num_workers=1, timeout=0.1))
    before = threading.active_count()
    iterator = iter(DataLoader(tensors(), num_workers=2))
    next(iterator)
    del iterator
    deadline = time.time() + 5
    while threading.active_count() > before and time.time() < deadline:
        time.sleep(0.05)
    assert threading.active_count() <= before


def test_errors_without_workers_pass_unchanged():
    with pytest.raises(KeyError, match="number seven"):
        list(DataLoader(Squares(bad=7), batch_size=3))


def test_rules_for_further_types():
    class Length:
        def __init__(self, n):
            self.n = n
    rules = clnn.utils.data.collate.default_collate_fn_map
    rules[Length] = lambda batch, *, collate_fn_map: sum(x.n for x in batch)
    try:
        assert [b[0] for b in DataLoader([(Length(i), 0) for i in range(4)], batch_size=2)] == [1, 5]
    finally:
        del rules[Length]
    doubled = clnn.utils.data.collate.collate([1, 2], collate_fn_map={int: lambda batch, *, collate_fn_map: [2 * x for x in batch]})
    assert doubled == [2, 4]


def test_loaders_of_a_programs_own():
    """What libraries that read through PyTorch's iterators give them: any object with these attributes."""
    from clnn.utils.data.dataloader import _BaseDataLoaderIter, _DatasetKind, _MultiProcessingDataLoaderIter, _SingleProcessDataLoaderIter

    class Loader:
        _dataset_kind, _auto_collation, drop_last, num_workers, timeout, multiprocessing_context = _DatasetKind.Iterable, False, False, 1, 0, multiprocessing
        dataset, _index_sampler, collate_fn = [1, 2], itertools.count(), staticmethod(lambda batch: batch)

    assert list(_SingleProcessDataLoaderIter(Loader())) == [1, 2]
    with pytest.warns(UserWarning, match="calling thread"):
        assert list(_MultiProcessingDataLoaderIter(Loader())) == [1, 2]
    assert isinstance(iter(DataLoader([1, 2])), _BaseDataLoaderIter)


def test_refusals_read_as_in_pytorch():
    torch = pytest.importorskip("torch")

    def said(m):
        u, found, three = m.utils.data, [], list(range(3))
        calls = [lambda: u.random_split(three, [2, 2]), lambda: u.random_split(three, [1.5, -0.5]), lambda: u.DataLoader(three, num_workers=-1),
                 lambda: u.DataLoader(three, timeout=-1), lambda: u.DataLoader(three, prefetch_factor=2), lambda: u.DataLoader(three, batch_size=0),
                 lambda: u.BatchSampler(three, 2, 1), lambda: u.WeightedRandomSampler([1.0], 0), lambda: u.WeightedRandomSampler([1.0], 1, 2),
                 lambda: u.WeightedRandomSampler([[1.0]], 1), lambda: u.RandomSampler(three, replacement=1), lambda: u.ConcatDataset([]),
                 lambda: u.ConcatDataset([three])[-4], lambda: u.StackDataset(), lambda: u.StackDataset(three, a=three), lambda: u.Dataset()[0]]
        for call in calls:
            with pytest.raises(Exception) as caught:
                call()
            found.append((type(caught.value).__name__, str(caught.value)))
        return found
    assert said(clnn) == said(torch)


def test_batches_of_mixed_numbers():
    torch = pytest.importorskip("torch")
    for batch in ([1, 2.5], [1.5, 2], [True, 2], [1, True], [1, "a"], [1.0, "1"], [np.ones(2), np.ones(3)], [None], [1, np.float64(0.5)], [1, None]):
        said = []
        for t in (clnn, torch):
            try:
                got = t.utils.data.default_collate(batch)
                said.append((str(got.dtype).rpartition(".")[2], got.tolist()))
            except (TypeError, RuntimeError) as error:
                said.append((type(error), str(error)))
        assert said[0] == said[1], batch


def test_sizes_of_joined_datasets_can_be_worked_out_otherwise():
    class Halved(clnn.utils.data.ConcatDataset):
        @staticmethod
        def cumsum(sequence):
            return [n // 2 for n in clnn.utils.data.ConcatDataset.cumsum(sequence)]

    assert clnn.utils.data.ConcatDataset.cumsum([[1, 2], [3]]) == [2, 3] and len(Halved([[1, 2], [3, 4]])) == 2


class Draws(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return get_worker_info().seed, random.random(), np.random.rand(), random.gauss(0, 1)


def test_workers_draw_from_generators_of_their_own():
    """Python's and NumPy's too, with the seeds of PyTorch's worker processes; the program's own go on as if there were none."""
    random.seed(1)
    np.random.seed(1)
    found = [[x.tolist() for x in batch] for batch in DataLoader(Draws(), 2, num_workers=2, generator=clnn.Generator().manual_seed(7))]
    for i, (seeds, first, second, third) in enumerate(found):
        base = seeds[0] - i
        python, numpy = random.Random(seeds[0]), np.random.RandomState(np.random.SeedSequence([i, base & 0xFFFFFFFF, base >> 32, 0]).generate_state(4))
        rows = [(python.random(), numpy.rand(), python.gauss(0, 1)) for _ in seeds]
        assert (first, second, third) == tuple(map(list, zip(*rows)))
    assert (random.random(), np.random.rand()) == (random.Random(1).random(), np.random.RandomState(1).rand())

    def init(worker):
        random.seed(worker)
        np.random.seed(worker)
    second = [batch[1][0].item() for batch in DataLoader(Draws(), 2, num_workers=2, worker_init_fn=init)]
    assert second == [random.Random(i).random() for i in range(2)]


def test_weights_of_a_sampler_are_a_tensor_that_may_be_replaced():
    sampler = WeightedRandomSampler([0.0, 1.0], 3)
    assert isinstance(sampler.weights, clnn.Tensor) and list(sampler) == [1, 1, 1]
    sampler.weights = clnn.tensor([1.0, 0.0])
    assert list(sampler) == [0, 0, 0]
