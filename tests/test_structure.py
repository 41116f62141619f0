"""Structures of pending nodes that are launched again: what tells them apart, and that nothing of an earlier launch is kept."""
import gc
import random

import numpy as np
import pytest

import clnn
from clnn.graph import fuse, structure

SIZES = [(3, 5), (64, 80)]          # of few elements, and of enough that memory of dying operands is written over


def _operands(rng, shape):
    """(tensor, array) pairs: dense ones, a row and an element that are broadcast, a transposed one, and parts of one buffer."""
    arrays = [rng.standard_normal(shape).astype(np.float32) for _ in range(3)]
    pairs = [(clnn.tensor(a), a) for a in arrays]
    row, turned = rng.standard_normal(shape[1]).astype(np.float32), rng.standard_normal(shape[::-1]).astype(np.float32)
    pairs += [(clnn.tensor(row), row), (clnn.tensor(row)[2], row[2]), (clnn.tensor(turned).t(), turned.T)]
    both = rng.standard_normal((2, *shape)).astype(np.float32)
    parts = clnn.tensor(both)
    return [*pairs, (parts[0], both[0]), (parts[1], both[1]), (parts[0], both[0])]


def _program(choose, pairs, kept):
    """One random chain over ``pairs``; whatever it computes on the way may end in ``kept``. The same numbers of ``choose`` give the same chain."""
    pool = list(pairs)
    for _ in range(choose.randint(2, 7)):
        (a, want_a), (b, want_b) = choose.choice(pool), choose.choice(pool)
        kind, number = choose.randrange(6), choose.choice([2, 0.5, -3])
        if kind == 0:
            got = a + b, want_a + want_b
        elif kind == 1:
            got = a - b, want_a - want_b
        elif kind == 2:
            got = a * number, (want_a * np.float32(number)).astype(np.float32)
        elif kind == 3:
            got = number - a, (np.float32(number) - want_a).astype(np.float32)
        elif kind == 4:
            got = a.abs().maximum(b), np.maximum(np.abs(want_a), want_b)
        else:
            got = a.neg(), -want_a
        pool.append(got)
        if choose.random() < 0.3:
            kept.append(got)
    last = pool[-1]
    del pool
    return last


def _same(pair):
    got, want = pair
    return np.array_equal(got.numpy(), np.broadcast_to(want, tuple(got.shape)))


@pytest.mark.parametrize("shape", SIZES)
def test_random_chains_again_and_again(shape):
    rng = np.random.default_rng(0)
    for seed in range(40):
        for _ in range(3):
            pairs, choose, kept = _operands(rng, shape), random.Random(seed), []
            last = _program(choose, pairs, kept)
            assert _same(last), seed
            assert all([_same(pair) for pair in kept]), seed
            assert all([_same(pair) for pair in pairs]), seed


@pytest.mark.parametrize("shape", SIZES)
def test_the_same_chain_over_equal_and_other_operands(shape):
    """Which operands are one tells structures apart."""
    rng = np.random.default_rng(1)
    a, b, c = [rng.standard_normal(shape).astype(np.float32) for _ in range(3)]
    x, y, z = map(clnn.tensor, (a, b, c))
    for _ in range(2):
        for (p, u), (q, v), (r, w) in [((x, a), (y, b), (z, c)), ((x, a), (x, a), (z, c)), ((x, a), (y, b), (x, a)), ((x, a), (y, b), (y, b)),
                                       ((x, a), (x, a), (x, a))]:
            assert np.array_equal(((p - q) * r - q).numpy(), (u - v) * w - v)
            assert np.array_equal((p + q).numpy(), u + v)
            h = p - q
            assert np.array_equal((h * h + r).numpy(), (u - v) * (u - v) + w)
            assert np.array_equal(h.numpy(), u - v)


def test_a_structure_is_worked_out_once(monkeypatch):
    x, y = clnn.ones(6), clnn.arange(6.)
    x._storage.buffer(), y._storage.buffer()
    made = []
    monkeypatch.setattr(fuse, "_Launch", lambda *args, plain=fuse._Launch: made.append(args) or plain(*args))
    for k in range(4):
        assert ((x * 17.25 + y) * (k + 0.5)).tolist() == [(17.25 + i) * (k + 0.5) for i in range(6)]
    assert len(made) == 1
    kept = x * 17.25 + y
    assert (kept * 0.5).tolist() == [(17.25 + i) * 0.5 for i in range(6)] and kept.tolist() == [17.25 + i for i in range(6)]
    assert len(made) == 2                                       # with a value that is kept, too


def test_keys_hold_no_memory():
    x, y = clnn.ones(6), clnn.ones(6)
    before = x._storage.device.memory.stats()["active_buffers"]
    for k in range(3):
        z = (x + 1.0) * y - 0.25
        assert z.tolist() == [1.75] * 6
        key, reads, numbers, nodes = structure.told(((x + 1.0) * y - 0.25)._storage.node)
        assert len(reads) == 2 and numbers == [1.0, 0.25] and len(nodes) == 3 and not any(isinstance(k, type(reads[0][0])) for k in key)
    del key, reads, numbers, nodes, z, x, y
    gc.collect()
    assert clnn.ones(1)._storage.device.memory.stats()["active_buffers"] <= before


@pytest.mark.parametrize("shape", SIZES)
def test_reductions_of_chains(shape):
    """A chain whose value nobody keeps is reduced as it is computed, else it is computed once."""
    rng = np.random.default_rng(2)
    a, b = rng.integers(-4, 5, shape).astype(np.float32), rng.integers(-4, 5, shape).astype(np.float32)
    x, y = clnn.tensor(a), clnn.tensor(b)
    for _ in range(3):
        assert (x * y - x).sum().item() == (a * b - a).sum()
        assert np.array_equal((x * x - x).sum(0).numpy(), (a * a - a).sum(0))
        h = x - y
        assert np.array_equal((h * 2 - y).amax(1).numpy(), ((a - b) * 2 - b).max(1))
        total = (h * h).sum()
        assert np.array_equal(h.numpy(), a - b) and total.item() == ((a - b) ** 2).sum()
        long = h
        for _ in range(12):
            long = long + y - x
        assert long.sum().item() == (a - b + 12 * (b - a)).sum() and np.array_equal(h.numpy(), a - b)


def test_pending_reductions_hold_little_memory():
    """Values that a program puts aside unread do not keep what they are computed from."""
    stats = clnn.ones(1)._storage.device.memory.stats
    clnn.synchronize()
    before = stats()["allocated"]
    losses = [((clnn.full((1 << 13,), float(k)) - 1) ** 2).mean() for k in range(3)]
    for k in range(3, 200):
        x = clnn.tensor(np.full(1 << 13, k, np.float32))
        losses.append(((x - 1) ** 2).mean())
    assert stats()["allocated"] - before < 60 << 15
    assert [v.item() for v in losses] == [(k - 1.0) ** 2 for k in range(200)]
