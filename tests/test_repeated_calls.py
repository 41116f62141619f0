"""Calls of a known kind are lists of launches: later calls have to give what the first one gave for other values, with and without gradients."""
import numpy as np
import pytest
from scenarios import torch

import clnn
from clnn._tensor import repeat

_RNG = np.random.default_rng(0)


def _floats(*shape):
    return _RNG.standard_normal(shape).astype(np.float32)


def _numbers(high, *shape):
    return _RNG.integers(0, high, shape)


# name: (function of the library and its operands, makers of the operands)
CALLS = {
    "nansum": (lambda t, x: t.where(x > 1, np.nan, x).nansum(1), lambda: _floats(5, 6)),
    "count_nonzero": (lambda t, x: t.count_nonzero(x > 0, 1), lambda: _floats(5, 6)),
    "sum of bools": (lambda t, x: (x > 0).sum(0), lambda: _floats(5, 6)),
    "sum of bytes": (lambda t, i: i.to(t.uint8).sum(1), lambda: _numbers(200, 5, 6)),
    "any": (lambda t, x: (t.any(x > 1, 1), t.all(x > -2)), lambda: _floats(5, 6)),
    "diff": (lambda t, x: t.diff(x, dim=0), lambda: _floats(5, 6)),
    "trapezoid": (lambda t, y, x: t.trapezoid(y, x), lambda: _floats(5, 6), lambda: _floats(6)),
    "kron": (lambda t, x, y: t.kron(x, y), lambda: _floats(2, 3), lambda: _floats(3, 2)),
    "outer": (lambda t, x: t.outer(x[0], x[1]), lambda: _floats(5, 6)),
    "pairwise_distance": (lambda t, x, y: t.nn.functional.pairwise_distance(x, y), lambda: _floats(5, 6), lambda: _floats(5, 6)),
    "triplet_margin_loss": (lambda t, x, y, z: t.nn.functional.triplet_margin_loss(x, y, z), *[lambda: _floats(5, 6)] * 3),
    "multi_margin_loss": (lambda t, x, i: t.nn.functional.multi_margin_loss(x, i), lambda: _floats(5, 6), lambda: _numbers(6, 5)),
    "glu": (lambda t, x: t.nn.functional.glu(x), lambda: _floats(5, 6)),
    "prelu": (lambda t, x, w: t.nn.functional.prelu(x, w), lambda: _floats(5, 6), lambda: _floats(6)),
    "quantile": (lambda t, x: t.quantile(x, 0.3, 1), lambda: _floats(5, 6)),
    "cov": (lambda t, x: (t.cov(x), t.corrcoef(x)), lambda: _floats(3, 8)),
    "cross": (lambda t, x, y: t.linalg.cross(x, y), lambda: _floats(5, 3), lambda: _floats(5, 3)),
    "matrix_power": (lambda t, x: t.matrix_power(x, 3), lambda: _floats(4, 4)),
    "logsumexp": (lambda t, x: t.logsumexp(x, 1), lambda: _floats(5, 6)),
    "bilinear": (lambda t, x, y, w: t.nn.functional.bilinear(x, y, w), lambda: _floats(5, 3), lambda: _floats(5, 2), lambda: _floats(4, 3, 2)),
    "local_response_norm": (lambda t, x: t.nn.functional.local_response_norm(x, 3), lambda: _floats(2, 5, 4)),
    "pixel_shuffle": (lambda t, x: t.nn.functional.pixel_shuffle(x, 2), lambda: _floats(1, 8, 3, 3)),
    "fold": (lambda t, x: t.nn.functional.fold(x, (4, 4), 2), lambda: _floats(1, 12, 9)),
    "grid_sample": (lambda t, x, g: t.nn.functional.grid_sample(x, g.tanh(), align_corners=False), lambda: _floats(1, 2, 4, 4), lambda: _floats(1, 3, 3, 2)),
    "stacks": (lambda t, x, y: (t.vstack([x, y]), t.hstack([x, y]), t.dstack([x, y])), lambda: _floats(2, 3), lambda: _floats(2, 3)),
    "index": (lambda t, x, i, j: x[i, j], lambda: _floats(5, 6), lambda: _numbers(5, 4), lambda: _numbers(6, 4)),
    "index around": (lambda t, x, i, j: x[i, :, j], lambda: _floats(5, 2, 6), lambda: _numbers(5, 4), lambda: _numbers(6, 4)),
    "index_add": (lambda t, x, i, y: x.index_add(0, i, y), lambda: _floats(5, 6), lambda: _numbers(5, 3), lambda: _floats(3, 6)),
    "scatter_add": (lambda t, x, i, y: x.scatter_add(1, i, y), lambda: _floats(5, 6), lambda: _numbers(6, 5, 4), lambda: _floats(5, 4)),
    "take_along_dim": (lambda t, x, i: t.take_along_dim(x, i, 1), lambda: _floats(5, 6), lambda: _numbers(6, 5, 2)),
    "isin": (lambda t, i, j: t.isin(i, j), lambda: _numbers(9, 5, 6), lambda: _numbers(9, 3)),
    "lcm": (lambda t, i, j: t.lcm(i, j + 1), lambda: _numbers(9, 5), lambda: _numbers(9, 5)),
    "float_power": (lambda t, x: t.float_power(x, 2), lambda: _floats(5, 6)),
    "rot90": (lambda t, x: t.rot90(x), lambda: _floats(5, 6)),
    "pending operands": (lambda t, x: (t.nn.functional.glu(x * 2), (x * 3).norm(), (x + 1).tril(), (x - 1).std(1)), lambda: _floats(5, 6)),
    "renorm": (lambda t, x: x.renorm(2, 0, 1.0), lambda: _floats(5, 6)),
    "ndtri": (lambda t, x: (t.special.ndtri(x.sigmoid()), t.special.log_ndtr(x)), lambda: _floats(5, 6)),
    "gaussian_nll_loss": (lambda t, x, y, z: t.nn.functional.gaussian_nll_loss(x, y, z.exp()), *[lambda: _floats(5, 6)] * 3),
    "affine_grid": (lambda t, x: t.nn.functional.affine_grid(x, (2, 1, 3, 4), align_corners=False), lambda: _floats(2, 2, 3)),
    "masked_scatter": (lambda t, x, y: x.masked_scatter(x > 0, y), lambda: _floats(5, 6), lambda: _floats(5, 6)),
    "repeat_interleave": (lambda t, x: (x.repeat_interleave(2, 1), x.tile(2, 1)), lambda: _floats(5, 6)),
    "scatters": (lambda t, x, y: (t.select_scatter(x, y, 0, 1), t.slice_scatter(x, x[:2] * 2, 0, 1, 3), t.diagonal_scatter(x, y[:5])),
                 lambda: _floats(5, 6), lambda: _floats(6)),
    "cross_entropy of probabilities": (lambda t, x, y: t.nn.functional.cross_entropy(x, y.softmax(-1)), lambda: _floats(5, 6), lambda: _floats(5, 6)),
    "batch_norm": (lambda t, x: t.nn.functional.batch_norm(x, None, None, training=True), lambda: _floats(5, 6)),
    "lp_pool": (lambda t, x: t.nn.functional.lp_pool2d(x.exp(), 2, 2), lambda: _floats(1, 2, 4, 4)),
    "addcmul": (lambda t, x, y: (t.addcmul(x, x * 2, y, value=0.5), t.addcdiv(x, y, y * y + 1)), lambda: _floats(5, 6), lambda: _floats(5, 6)),
    "softsign": (lambda t, x: t.nn.functional.softsign(x * 2), lambda: _floats(5, 6)),
    "conv_transpose": (lambda t, x, w: t.nn.functional.conv_transpose2d(x, w), lambda: _floats(1, 2, 4, 4), lambda: _floats(2, 3, 2, 2)),
}


def _results(t, function, operands, tracked):
    """Values and gradients."""
    given = [t.tensor(a) for a in operands]
    leaves = [x.requires_grad_() for x in given if tracked and x.is_floating_point()]
    out = function(t, *given)
    out = out if isinstance(out, tuple) else (out,)
    ends = [r for r in out if r.requires_grad]
    grads = t.autograd.grad([(r * r).sum() for r in ends], leaves) if ends else ()
    return [r.detach().numpy() for r in (*out, *grads)]


@pytest.mark.parametrize("tracked", [False, True], ids=["plain", "gradients"])
@pytest.mark.parametrize("name", CALLS)
def test_later_calls_give_what_they_should(name, tracked):
    function, *makers = CALLS[name]
    for _ in range(5):
        operands = [make() for make in makers]
        for ours, theirs in zip(*[_results(t, function, operands, tracked) for t in (clnn, torch)], strict=True):
            assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


def test_operands_of_any_two_shapes():
    """Broadcasting is remembered by shapes and strides; what is pending is told from what is computed."""
    base = _floats(4, 3, 5)
    views = [lambda x: x, lambda x: x[0], lambda x: x[:, :1], lambda x: x[..., ::2][..., :1], lambda x: x.transpose(0, 1)[:, :1].transpose(0, 1),
             lambda x: x * 2, lambda x: (x + 1)[0], lambda x: x[0, 0], lambda x: x[:1, 0, 0], lambda x: x[1, 2, 3], lambda x: x[2:3].sum(0)]
    for _ in range(2):
        for first in views:
            for second in views:
                (a, s), (b, r) = [((u := first(x) - second(x)).numpy(), (u.stride() if u.is_contiguous() else None)) for x in (clnn.tensor(base), torch.tensor(base))]
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
                assert s == r


def test_copies_of_small_numbers_move_bits():
    """A half's NaN keeps its payload, as nothing is computed."""
    bits = clnn.arange(-32768, 32768, dtype=clnn.int16).reshape(256, 256)
    for dtype in (clnn.float16, clnn.bfloat16):
        assert (bits.view(dtype).t().contiguous().view(clnn.int16) == bits.t()).all()
        assert (bits.view(dtype)[:, 1::2].clone().view(clnn.int16) == bits[:, 1::2]).all()
    flags = bits > 0
    assert (flags.t().contiguous() == flags.t()).all() and flags.t().contiguous().view(clnn.uint8).max() == 1


def test_operands_that_are_copies_of_each_other():
    """A pending value and its copy are the same memory once computed; that is no kind of call for others."""
    for both in (False, True, True, False, True, False, False):
        a, b = _floats(5), _floats(5)
        x = clnn.tensor(a) * 2
        y = x.clone() if both else clnn.tensor(b) * 2
        np.testing.assert_allclose(clnn.outer(x, y).numpy(), np.outer(a * 2, (a if both else b) * 2), rtol=1e-5)


def test_answers_that_the_host_reads():
    for _ in range(5):
        a, i = _floats(4, 5), _numbers(7, 6)
        for t in (clnn, torch):
            x = t.tensor(a)
            assert t.equal(x, x.clone()) and not t.equal(x, x + 1) and t.allclose(x, x + 1e-9) and not t.allclose(x, x * 2)
            assert t.equal(x * 2, x * 2) and not t.equal(x * 2, x * 3)
        np.testing.assert_array_equal(clnn.nn.functional.one_hot(clnn.tensor(i)).numpy(), torch.nn.functional.one_hot(torch.tensor(i)).numpy())
        np.testing.assert_array_equal(clnn.histc(clnn.tensor(a), 6).numpy(), torch.histc(torch.tensor(a), 6).numpy())


def test_a_chain_that_is_written_piece_by_piece():
    a, rows = _floats(12, 4), clnn.zeros(12, 4)
    x, last, want = clnn.tensor(a), clnn.zeros(4), np.zeros(4, np.float32)
    for t in range(12):
        last = x[t] * 0.5 - last * 0.3 + 0.1
        rows[t] = last
        want = a[t] * np.float32(0.5) - want * np.float32(0.3) + np.float32(0.1)
        if t % 5 == 4:
            np.testing.assert_allclose(rows[t].numpy(), want, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(last.numpy(), want, rtol=1e-4, atol=1e-6)
    assert (rows[-1] == last).all()


@pytest.mark.parametrize("tracked", [False, True], ids=["plain", "gradients"])
@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_recurrent_layers_of_few_elements(kind, tracked):
    """All that a layer does is one entry; its results share no memory that a program can see, and their entries bear their names."""
    ours, theirs = getattr(clnn.nn, kind)(3, 4, batch_first=True), getattr(torch.nn, kind)(3, 4, batch_first=True)
    for step in range(5):
        with torch.no_grad():
            for p in theirs.parameters():
                p.add_(torch.tensor(_floats(*p.shape)) * 0.1)
        ours.load_state_dict({k: clnn.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
        a, h = _floats(2, 3, 3), _floats(1, 2, 4)
        got = []
        for t, layer in ((clnn, ours), (torch, theirs)):
            x, first = t.tensor(a), t.tensor(h)
            with t.set_grad_enabled(tracked):
                out, state = layer(x) if step % 2 else layer(x, (first, first) if kind == "LSTM" else first)
            states = state if kind == "LSTM" else (state,)
            grads = t.autograd.grad((out * out).sum() + sum([s.sum() for s in states]), list(layer.parameters())) if tracked else ()
            with t.no_grad():
                kept = [s.clone() for s in states]
                out.detach()[:, -1] = 7.0
                assert all([t.equal(s, k) for s, k in zip(states, kept)])
            got.append([out.detach().numpy(), *[s.detach().numpy() for s in states], *[g.numpy() for g in grads]])
            assert not tracked or [type(s.grad_fn).__name__ for s in states] == ["StackBackward0"] * len(states)
        for one, other in zip(*got, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


ENTRIES = {"sum": lambda t, x, w: x.sum(1), "mean": lambda t, x, w: x.mean(), "product": lambda t, x, w: x @ w,
           "linear": lambda t, x, w: t.nn.functional.linear(x, w.t().contiguous()),
           "same twice": lambda t, x, w: t.matmul(x, x.detach().t()), "softmax": lambda t, x, w: t.softmax(x, 1), "one of two": lambda t, x, w: x.detach() @ w,
           "cumsum": lambda t, x, w: x.cumsum(0), "gather": lambda t, x, w: x.gather(1, t.tensor([[0], [2], [1]])), "named": lambda t, x, w: x.sum(dim=0, keepdim=True),
           "index_select": lambda t, x, w: t.index_select(x, 0, t.tensor([2, 0])), "norm": lambda t, x, w: x.norm(dim=1), "itself": lambda t, x, w: t.matmul(w, w),
           "amax": lambda t, x, w: x.amax(1), "std": lambda t, x, w: x.std(0), "prod": lambda t, x, w: x.prod(1),
           "conv": lambda t, x, w: t.nn.functional.conv1d(x[None], w[:, :, None]),
           "layer norm": lambda t, x, w: t.nn.functional.layer_norm(x, (4,), w[0], w[1]), "rms norm": lambda t, x, w: t.nn.functional.rms_norm(x, (4,)),
           "max pool": lambda t, x, w: t.nn.functional.max_pool1d(x[None], 2), "norms and weight": lambda t, x, w: t.nn.functional.layer_norm(x.detach(), (4,), w[2])}


@pytest.mark.parametrize("name", ENTRIES)
def test_entries_of_repeated_composites(name, monkeypatch):
    """Their gradients and the names that they show are those of calls that are not repeated, with hooks on saved tensors in between, too."""
    function = ENTRIES[name]
    rounds = [(_floats(3, 4), _floats(4, 4)) for _ in range(7)]

    def computed():
        out = []
        for at, (x, w) in enumerate(rounds):
            a, b = clnn.tensor(x, requires_grad=True), clnn.tensor(w, requires_grad=True)
            if name == "conv":
                a = clnn.tensor(_fixed(4, 5), requires_grad=True)
            packed = []
            if at == 5:
                with clnn.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t.shape) or t, lambda t: t):
                    y = function(clnn, a, b)
            else:
                y = function(clnn, a, b)
            (y * y).sum().backward()
            out += [y.detach().numpy(), y.grad_fn.name(), packed, [e[0] and e[0].name() for e in y.grad_fn.next_functions]]
            out += [t.grad.numpy() for t in (a, b) if t.grad is not None]
        return out
    got = computed()
    monkeypatch.setattr(repeat, "on", False)
    want = computed()
    assert len(got) == len(want)
    for one, other in zip(got, want):
        assert np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other


def _fixed(*shape):
    return np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)


@pytest.mark.parametrize("name", ("matmul", "turned", "addmm", "chain", "stack", "layers"))
def test_a_weight_that_is_written_before_the_gradients(name):
    """Its gradient needs the other factor alone, so that is no error; where the other's gradient is wanted, too, it is one."""
    def run(t):
        weight = t.nn.Parameter(t.tensor(_fixed(4, 4)))
        one = {"matmul": lambda x: x @ weight, "turned": lambda x: x @ weight.t(), "addmm": lambda x: t.addmm(t.ones(4), x, weight),
               "chain": lambda x: t.relu(x @ weight) * 2, "stack": lambda x: t.matmul(x[None], weight),
               "layers": _product(t, weight)}[name]
        seen = []
        for at in range(6):
            x = (t.tensor(_fixed(3, 4)) + at).requires_grad_(at == 4)
            y = one(x)
            with t.no_grad():
                weight.add_(0.25)
            try:
                y.square().sum().backward()
                seen.append((weight.grad.tolist(), weight.grad.stride()))
            except RuntimeError as error:
                seen.append("modified by an inplace operation" in str(error))
            weight.grad = None
        return seen
    got, want = run(clnn), run(torch)
    assert got[4] is True is want[4]
    for one, other in zip(got[:4] + got[5:], want[:4] + want[5:]):
        assert one[1] == other[1]
        np.testing.assert_allclose(one[0], other[0], rtol=1e-5)


def _product(t, weight):
    class Product(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = weight

        def forward(self, x):
            return t.relu(x @ self.weight) + x.sum()
    return Product()


def test_waiting_for_builds_is_no_try():
    """Calls that were made while kernels were still to be built are repeated once they are there: they had no chance before."""
    device = clnn.tensor(1.0)._storage.device
    x = clnn.tensor(_fixed(5, 7))
    clnn.synchronize()

    def inner(t):
        return t.flip(0)

    def outer(t):
        return inner(t) * 2.0
    inner, outer = repeat.repeated(inner, "whole"), repeat.repeated(outer, "whole")
    for _ in range(12):
        device.waiting = True                   # as it is until somebody reads a result
        try:
            outer(x)
        finally:
            device.waiting = False
    for _ in range(4):
        inner(x)
    assert inner.again((x,)).__class__ is not repeat.Missed
