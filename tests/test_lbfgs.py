"""The two-loop recursion of L-BFGS in one launch: as from NumPy, as in some launches for each pair, and over states that are loaded."""
import copy

import numpy as np
import pytest

import clnn
from clnn.optim._history import History
from clnn.optim.lbfgs import _Run
from clnn.testing import cases

DTYPES = [d for d in (clnn.float32, clnn.float64) if d in cases.usable_rows()]


def pairs(count, n, seed=0):
    rng = np.random.default_rng(seed)
    steps = rng.standard_normal((count, n))
    return steps + 0.1 * rng.standard_normal((count, n)), steps


def recursion(q, ys, ss, scale):
    q, alphas = q.astype(np.float64), []
    for y, s in zip(ys[::-1], ss[::-1]):
        alphas.append(s @ q / (y @ s))
        q = q - alphas[-1] * y
    q = q * scale
    for y, s, a in zip(ys, ss, alphas[::-1]):
        q = q + s * (a - y @ q / (y @ s))
    return q


def history_of(ys, ss, most, dtype):
    history = History([], [], [])
    for y, s in zip(ys, ss):
        history.append(clnn.tensor(y, dtype=dtype), clnn.tensor(s, dtype=dtype), 1.0 / float(y @ s), most)
    return history


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n", [1, 15, 64, 1000])
@pytest.mark.parametrize("count,most", [(1, 5), (5, 5), (12, 5), (21, 100)])
def test_recursion(dtype, n, count, most):
    ys, ss = pairs(count, n)
    history, q = history_of(ys, ss, most, dtype), np.random.default_rng(1).standard_normal(n)
    kept = slice(-most, None)
    assert len(history.dirs) == len(history.ro) == min(count, most)
    for views, rows in ((history.dirs, ys[kept]), (history.steps, ss[kept])):
        np.testing.assert_allclose(np.stack([v.numpy() for v in views]), rows, rtol=1e-6)
    got, want = history.apply(clnn.tensor(q, dtype=dtype) * 1, 0.5).numpy(), recursion(q, ys[kept], ss[kept], 0.5)
    np.testing.assert_allclose(got, want, rtol=0, atol=(1e-12 if dtype is clnn.float64 else 3e-5) * np.abs(want).max())
    run = object.__new__(_Run)
    run.history = history
    np.testing.assert_allclose(run._in_parts(clnn.tensor(q, dtype=dtype) * 1, 0.5).numpy(), got, rtol=0, atol=3e-5 * np.abs(want).max())


def test_long_vectors_have_their_own_memory(monkeypatch):
    """Rows of one matrix might be more than a buffer can hold."""
    monkeypatch.setattr("clnn.optim._history._MOST", 10)
    ys, ss = pairs(4, 11)
    history = history_of(ys, ss, 3, clnn.float32)
    assert history.rows is None and [v.tolist() for v in history.dirs] == [clnn.tensor(y, dtype=clnn.float32).tolist() for y in ys[1:]]
    p = clnn.nn.Parameter(clnn.linspace(-1, 2, 11))
    opt = clnn.optim.LBFGS([p], lr=0.3, history_size=3)

    def closure():
        opt.zero_grad()
        loss = (p ** 4).sum() - p.sum()
        loss.backward()
        return loss
    before = closure().item()
    opt.step(closure)
    opt.load_state_dict(opt.state_dict())
    opt.step(closure)
    assert closure().item() < before - 1 and opt._history.rows is None


def test_work_items_that_share_a_vector(monkeypatch):
    ys, ss = pairs(7, 700)
    history, q = history_of(ys, ss, 5, clnn.float32), np.random.default_rng(1).standard_normal(700)
    monkeypatch.setattr(history.dirs[0]._storage.device, "is_cpu", False)
    want = recursion(q, ys[-5:], ss[-5:], 2.0)
    np.testing.assert_allclose(history.apply(clnn.tensor(q, dtype=clnn.float32) * 1, 2.0).numpy(), want, rtol=0, atol=3e-5 * np.abs(want).max())


@pytest.mark.parametrize("again", [lambda opt: opt.load_state_dict(copy.deepcopy(opt.state_dict())), lambda opt: opt.load_state_dict(opt.state_dict()),
                                   lambda opt: setattr(opt, "_history", None)])
def test_states_that_are_loaded_on_the_way(again):
    ends = []
    for change in (lambda opt: None, again):
        p = clnn.nn.Parameter(clnn.linspace(-1, 2, 9))
        opt = clnn.optim.LBFGS([p], lr=0.3, max_iter=4, history_size=3)

        def closure():
            opt.zero_grad()
            loss = (p ** 4).sum() + (p[1:] - p[:-1]).pow(2).sum() - p.sum()
            loss.backward()
            return loss
        for _ in range(4):
            opt.step(closure)
            change(opt)
        ends.append(p.tolist())
    assert ends[0] == ends[1]
