"""Behaviour of autograd and of memory that PyTorch's own tests ask for: threads that share a model, powers without end, counters that go on."""
import threading

import pytest
from scenarios import assert_same, outcome, torch

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


SPECIAL = (0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 1e-30, 1e30, float("inf"), float("-inf"), float("nan"))


@pytest.mark.parametrize("name", ("maximum", "minimum", "fmax", "atan2", "hypot", "div", "logaddexp", "logaddexp2", "xlogy", "pow"))
def test_gradients_at_special_values(name):
    def run(t):
        x, y = (t.tensor(v, requires_grad=True) for v in zip(*[(a, b) for a in SPECIAL for b in SPECIAL]))
        z = getattr(t, name)(x, y)
        return [[str(float(f"{v:.3g}")) for v in g.tolist()] for g in t.autograd.grad(z, (x, y), t.ones_like(z))]
    ours, theirs = outcome(run, clnn), outcome(run, torch)
    for mine, other in zip(ours, theirs):
        for a, b in zip(map(float, mine), map(float, other)):
            assert a == pytest.approx(b, rel=1e-2, nan_ok=True)


def test_gradients_where_nothing_is_defined():
    def run(t):
        F, values = t.nn.functional, t.tensor([0.0, 0.5, -1.0, 3.0, float("nan")])
        rows = t.tensor([[0.0, 0.0], [3.0, 4.0]], requires_grad=True)
        zero = t.zeros(3, requires_grad=True)
        found = [t.autograd.grad(rows.renorm(2, 0, 1.0).sum(), rows)[0],
                 t.autograd.grad(t.special.xlog1py(zero, t.tensor([1.0, -1.0, -2.0])).sum(), zero)[0]]
        for call in (t.logit, lambda x: F.smooth_l1_loss(x, t.zeros(5), reduction="none"), lambda x: F.huber_loss(x, t.zeros(5), reduction="none")):
            x = values.clone().requires_grad_()
            y = call(x)
            found.append([str(round(v, 3)) for v in t.autograd.grad(y, x, t.ones(5))[0].tolist()])
        return found
    assert_same(run)


def test_gradients_of_expanded_tensors():
    def run(t):
        x, found = t.tensor([[1.0, 2.0, 4.0], [3.0, 5.0, 8.0]], requires_grad=True), []
        for call in (t.diff, lambda y: t.diff(y, dim=0), t.trapezoid, lambda y: t.cumulative_trapezoid(y, dim=1), lambda y: y.as_strided((2, 2), (1, 1)),
                     lambda y: t.diff(y.unfold(2, 2, 1), dim=2)):
            y = call(x.expand(2, 2, 3))
            found.append(t.autograd.grad((y * t.arange(1.0, y.numel() + 1).reshape(y.shape)).sum(), x)[0])
        return found
    assert_same(run)


def test_numbers_under_vmap():
    def run(t):
        x = t.tensor([-0.5, 0.25, 2.0])
        return [t.func.vmap(t.func.grad(lambda z, name=name: getattr(z, name)() * z))(x) for name in ("min", "max", "sum", "mean", "amin")], \
            t.func.vmap(lambda z: z.movedim(0, -1))(x), t.tensor(3.0).movedim(0, -1)
    assert_same(run)


OVER = {
    "recurrent": lambda t, x: [t.nn.functional.relu_(_fixed(t, t.nn.GRU(3, 4))(x)[0])],
    "stable softmax": lambda t, x: [x.sub_(x.max(-1, keepdim=True)[0]).exp()],
    "smallest": lambda t, x: [x.min(1)[0], x.mul_(2)],
    "cumulative": lambda t, x: [x.cummax(0)[0]],
}


def _fixed(t, model):
    with t.no_grad():
        for i, p in enumerate(model.parameters()):
            p.copy_(((t.arange(p.numel(), dtype=t.float32) * 0.37 + i) % 1 - 0.5).reshape(p.shape))
    return model


@pytest.mark.parametrize("name", OVER)
def test_what_may_be_written_over_before_backward(name):
    def run(t):
        leaf = (t.arange(30.0) * 0.7 % 1.9).reshape(2, 5, 3).requires_grad_()
        outs = OVER[name](t, leaf * 1)
        sum((out * out).sum() for out in outs).backward()
        return leaf.grad
    assert_same(run)
