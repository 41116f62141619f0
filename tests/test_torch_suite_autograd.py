"""Behaviour of autograd and of memory that PyTorch's own tests ask for: threads that share a model, powers without end, counters that go on."""
import threading

import pytest
from scenarios import assert_same

import clnn


def test_threads_add_to_the_gradients_of_a_shared_model():
    model = clnn.nn.Sequential(clnn.nn.Linear(3, 4), clnn.nn.Tanh(), clnn.nn.Linear(4, 1))
    x = clnn.arange(6.0).reshape(2, 3)
    model(x).sum().backward()
    once = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()

    def work():
        for _ in range(20):
            model(x).sum().backward()
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for p, g in zip(model.parameters(), once):
        clnn.testing.assert_close(p.grad, 80 * g, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n", (4, 3, 2, 1, 2.5, -1))
def test_powers_are_differentiated_on_and_on(n):
    def run(t):
        x = t.tensor([2.0, 0.5], requires_grad=True)
        g, found = (x ** n).sum(), []
        for _ in range(4):
            g, = t.autograd.grad(g.sum(), x, create_graph=True)
            found.append((g.detach(), g.requires_grad))
        return found
    assert_same(run)


def test_versions_go_on_where_data_is_replaced():
    def run(t):
        w, x, y = t.ones(2, requires_grad=True), t.tensor([3.0, 4.0], requires_grad=True), t.ones(2)
        with t.no_grad():
            w.add_(1)
        out = (w * x).sum()
        w.data = w.data.clone()
        out.backward()
        y.set_(t.zeros(3))
        return x.grad, w.grad, w._version, y, y._version
    assert_same(run)


def test_what_is_changed_in_place_must_be_returned():
    def run(t):
        class Lost(t.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.mark_dirty(x.add_(1))
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return g
        return Lost.apply(t.ones(2, requires_grad=True) * 1)
    assert_same(run)


def test_switching_gradients_takes_a_bool():
    def run(t):
        before = t.is_grad_enabled()
        try:
            t.set_grad_enabled(None)
        except TypeError as error:
            return before, t.is_grad_enabled(), str(error)
    assert_same(run)


def test_memory_is_let_go_and_taken_again():
    """As programs do that shard their parameters."""
    def run(t):
        p = t.nn.Parameter(t.ones(4))
        memory = p.untyped_storage()
        size = memory.nbytes()
        memory.resize_(0)
        empty = memory.nbytes()
        memory.resize_(size)
        with t.no_grad():
            p.copy_(t.tensor([1.0, 2.0, 3.0, 4.0]))
        (p * p).sum().backward()
        return empty, p.untyped_storage().nbytes(), p.detach(), p.grad
    assert_same(run)


def test_tensors_that_grow_take_their_views_along():
    def run(t):
        x = t.ones(3)
        view, memory = x[:2], x.untyped_storage()
        x.resize_(6).fill_(5)
        last = t.ones(2, 3, 4, 5).resize_(2, 3, 4, 5, memory_format=t.channels_last)
        like = t.empty(0).resize_as_(last, memory_format=t.preserve_format)
        part = t.empty(0)
        part.set_(t.ones(2).untyped_storage(), 1, (3,))
        return view, len(memory), last.stride(), like.stride(), part.storage_offset(), part.shape
    assert_same(run)


def test_refused_changes_of_memory_and_state():
    def run(t):
        kept = t.nn.Module()
        kept.register_buffer("seen", t.tensor(1.0))
        kinds = []
        for call in (lambda: t.ones(2).set_(t.ones(2, dtype=t.int64)), lambda: kept.load_state_dict({"seen": t.ones(2)})):
            with pytest.raises(RuntimeError) as caught:
                call()
            kinds.append(str(caught.value).splitlines()[0])
        kept.load_state_dict({"seen": t.full((1,), 3.0)})
        return kinds, kept.seen
    assert_same(run)


def test_leaves_do_not_change_their_shape_in_place():
    def run(t):
        x, found = t.ones(2, 3, requires_grad=True), []
        for call in (lambda: x.t_(), lambda: x.unsqueeze_(0), lambda: x[0].unsqueeze_(0), lambda: (x * 1).unbind()[0].unsqueeze_(0)):
            with pytest.raises(RuntimeError) as caught:
                call()
            found.append((str(caught.value)[:50], list(x.shape)))
        y = x * 2
        z = y * y
        y.t_()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.sum().backward()
        view = (x * 3)[:, :1]
        with t.no_grad():
            view.squeeze_()
        view.sum().backward()
        with t.no_grad():
            x.t_()
        return found, y.detach(), y._version, list(x.shape), x._version
    assert_same(run)


def test_what_is_frozen_before_backward_gets_no_gradient():
    def run(t):
        x, w = t.ones(2, requires_grad=True), t.ones(2, requires_grad=True)
        for _ in range(4):                                      # passes of a kind are repeated
            w.requires_grad_()
            out = (x * w).sum()
            w.requires_grad_(False)
            out.backward()
        return x.grad, w.grad
    assert_same(run)
