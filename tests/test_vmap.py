"""``vmap``: what a function sees of all samples, random numbers, nesting, gradients in and around it, rules of a program's own."""
import numpy as np
import pytest

import clnn
import clnn.nn.functional as F
from clnn import func, library
from clnn.testing import assert_close

X = np.random.default_rng(0).standard_normal((4, 3)).astype("float32")


def x():
    return clnn.tensor(X)


# Each is run on both packages: m, its func module, a tensor (4, 3).
PROGRAMS = {
    "a loop over a dimension": lambda m, f, a: m.vmap(lambda r: sum(v * i for i, v in enumerate(r)))(a),
    "views and indices": lambda m, f, a: m.vmap(lambda r: (r[1], r[None, :2].T, r[m.tensor([2, 0])], r.flip(0)[..., 0], r.unflatten(0, (3, 1))))(a),
    "rows by an index that differs": lambda m, f, a: m.vmap(lambda r, i: (r[i], r.gather(0, i.flip(0)), m.ones(5)[i]))(a, m.tensor([[0, 1], [2, 2], [1, 0], [0, 0]])),
    "writing into a copy": lambda m, f, a: m.vmap(lambda r: _written(m, r))(a),
    "written into another": lambda m, f, a: m.vmap(lambda r: m.zeros(3).scatter(0, m.tensor([1]), r[:1]))(a),
    "numbers among vectors": lambda m, f, a: m.vmap(lambda r, s: (r * s, (r > s).sum(), m.where(r > 0, r, s), s.unsqueeze(0)))(a, m.tensor([1.0, 2.0, 3.0, 4.0])),
    "a double among floats": lambda m, f, a: m.vmap(lambda r, s: r + s)(a, m.tensor([1.0, 2.0, 3.0, 4.0], dtype=m.float64)),
    "shapes": lambda m, f, a: m.vmap(lambda r: m.full((), float(r.numel() + r.dim() + r.shape[0])) + r)(a),
    "two levels": lambda m, f, a: m.vmap(lambda r: m.vmap(lambda s: s.dot(r) + r.sum(), in_dims=0)(a))(a),
    "two levels, one operand in each": lambda m, f, a: m.vmap(lambda r: m.vmap(lambda s: (s * r, s, r))(a[0]), out_dims=(1, 0, 0))(a[:, 0]),
    "no samples": lambda m, f, a: m.vmap(lambda r: r.exp().sum())(a[:0]),
    "chunks": lambda m, f, a: m.vmap(lambda r: (r * 2, r.sum()), chunk_size=3, out_dims=(1, 0))(a),
    "an output that all share": lambda m, f, a: m.vmap(lambda r: (r, m.ones(2)), out_dims=(0, None))(a),
    "gradient of each": lambda m, f, a: m.vmap(f.grad(lambda w, r: (w.sin() * r).sum()), in_dims=(None, 0))(a[0], a),
    "gradient around": lambda m, f, a: f.grad(lambda w: m.vmap(lambda r: (w * r).exp().sum())(a).sum())(a[0]),
    "gradient in and around": lambda m, f, a: f.grad(lambda w: m.vmap(f.grad(lambda r: (w * r).exp().sum()))(a).pow(2).sum())(a[0]),
    "hessians": lambda m, f, a: m.vmap(f.hessian(lambda r: (r ** 3).sum() * r[0]))(a),
    "jvp": lambda m, f, a: m.vmap(lambda r, t: f.jvp(lambda z: z.sin() * z[0], (r,), (t,)))(a, a.flip(0)),
    "vjp": lambda m, f, a: m.vmap(f.vjp(lambda z: m.stack([z.sum(), (z * z).sum()]), a[0])[1])(m.eye(2)),
    "jacrev in chunks": lambda m, f, a: f.jacrev(lambda z: (z[:, None] * z).tanh(), chunk_size=4)(a[0]),
    "jacfwd of a structure": lambda m, f, a: f.jacfwd(lambda z: {"s": z.sum(), "p": z.outer(z)})(a[0]),
    "Jacobian through layers": lambda m, f, a: f.jacrev(lambda z: _layers(m, z))(a.reshape(1, 3, 4)),
    "gradients of many outputs": lambda m, f, a: _rows_of_a_jacobian(m, a),
    "autograd.functional in one pass": lambda m, f, a: [m.autograd.functional.jacobian(lambda u, v: (m.stack([(u * v).sum(), u[0]]), u.outer(v)), (a[0], a[1]), **how)
                                                        for how in ({}, {"vectorize": True}, {"vectorize": True, "strategy": "forward-mode"})],
    "Jacobians forward are lists": lambda m, f, a: [m.tensor([isinstance(v, list) for v in (r, r[0])]) for r in (m.autograd.functional.jacobian(
        fn, (a[0], a[1]), vectorize=True, strategy="forward-mode") for fn in (lambda u, v: u * v, lambda u, v: (u * v, u)))],
    "autograd.functional.hessian in one pass": lambda m, f, a: [m.autograd.functional.hessian(lambda u: (u ** 3).sum() * u[0], a[0], vectorize=True,
                                                                outer_jacobian_strategy=how) for how in ("reverse-mode", "forward-mode")],
    "softmax and loss": lambda m, f, a: m.vmap(lambda r, t: m.nn.functional.cross_entropy(r.unsqueeze(0), t.unsqueeze(0), label_smoothing=0.1))(
        a, m.tensor([0, 2, 1, 1])),
    "loss of ignored classes": lambda m, f, a: m.vmap(lambda t: m.nn.functional.cross_entropy(a, t, m.tensor([1.0, 2.0, 3.0])), out_dims=0)(
        m.tensor([[0, 2, 1, 1], [0, -100, 2, 1]])),
    "convolution with kernels of each": lambda m, f, a: m.vmap(lambda k: m.nn.functional.conv1d(a[None], k.reshape(1, 1, 3).expand(2, 4, 3)))(a),
    "tables of each": lambda m, f, a: m.vmap(lambda w: m.nn.functional.embedding(m.tensor([1, 0]), w.reshape(3, 1)))(a),
    "numbers along a dimension": lambda m, f, a: m.vmap(lambda r: (r.any(0), r.all(), r.logsumexp(0), m.linalg.vector_norm(r), r.unfold(0, 1, 1), r.sort(0).values,
                                                              m.nn.functional.normalize(r, dim=0), r.cumsum(0), r.softmax(-1), r.amax((0,))))(a[0]),
    "nothing in a dimension": lambda m, f, a: m.vmap(lambda r: (r[:, None] @ m.zeros(1, 0), m.zeros(0, 3) @ r, r[:0].sum()))(a),
    "means of what is scattered": lambda m, f, a: m.vmap(lambda r, i: r.scatter_reduce(0, i, r[:2], "mean", include_self=False))(
        a, m.tensor([[0, 0], [1, 2], [2, 2], [0, 1]])),
    "masked scatter": lambda m, f, a: m.vmap(lambda r: r.masked_scatter(m.tensor([True, False, True]), r * 2))(a),
    "einsum": lambda m, f, a: m.vmap(lambda r: m.einsum("i,jk->ijk", r, a))(a),
    "linear algebra": lambda m, f, a: m.vmap(lambda r: m.linalg.solve(m.eye(3) * 4 + m.outer(r, r), r))(a),
    "sorting": lambda m, f, a: m.vmap(lambda r: (r.sort().values, r.argmax(), r.topk(2).indices, r.median(), r.cumsum(0)))(a),
}


def _written(m, r):
    out = r.new_zeros(2, 3)
    out[0] = r
    out[1, 1:] += r[:2] * 2
    return out, r.clone().mul_(2), m.zeros_like(r).copy_(r)


def _layers(m, z):
    nn = m.nn.functional
    h = nn.layer_norm(z, (4,))
    h = nn.max_pool1d(nn.pad(h, (1, 1), mode="reflect"), 2)
    return nn.log_softmax(h.flatten(1), -1).sum(0)[:3]


def _rows_of_a_jacobian(m, a):
    a = a.clone().requires_grad_()
    y = (a * a).sum(1)
    return m.autograd.grad(y, a, m.eye(4), retain_graph=True, is_grads_batched=True), m.vmap(lambda v: m.autograd.grad(y, a, v, retain_graph=True)[0])(m.eye(4))


@pytest.mark.share(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_torch(name):
    torch = pytest.importorskip("torch")
    got = PROGRAMS[name](clnn, func, x())
    want = PROGRAMS[name](torch, torch.func, torch.tensor(X))
    flat = clnn.utils._pytree.tree_leaves(got)
    reference = torch.utils._pytree.tree_leaves(want)
    assert len(flat) == len(reference)
    for g, w in zip(flat, reference):
        assert str(w.dtype) == str(g.dtype).replace("clnn", "torch") and tuple(g.shape) == tuple(w.shape)
        np.testing.assert_allclose(g.detach().numpy(), w.detach().numpy(), rtol=2e-5, atol=2e-5)


ERRORS = {
    "item": lambda m, a: m.vmap(lambda r: r.sum().item())(a),
    "if": lambda m, a: m.vmap(lambda r: r if r.sum() > 0 else -r)(a),
    "not batched": lambda m, a: m.vmap(lambda r: m.zeros(3).add_(r))(a),
    "copied into another": lambda m, a: m.vmap(lambda r: m.zeros(3).copy_(r))(a),
    "assigned to another": lambda m, a: m.vmap(lambda r: m.zeros(3, 3).__setitem__(0, r))(a),
    "random": lambda m, a: m.vmap(lambda r: r + m.rand(3))(a),
    "dropout": lambda m, a: m.vmap(lambda r: m.nn.functional.dropout(r))(a),
    "randomness": lambda m, a: m.vmap(lambda r: r, randomness="often")(a),
    "chunk": lambda m, a: m.vmap(lambda r: r, chunk_size=0)(a),
    "no tensor": lambda m, a: m.vmap(lambda r: 1.0)(a),
    "out_dims": lambda m, a: m.vmap(lambda r: r, out_dims=None)(a),
    "out_dims differ": lambda m, a: m.vmap(lambda r: (r, r), out_dims=(0, 0, 0))(a),
    "sizes": lambda m, a: m.vmap(lambda r, s: r)(a, a[:3]),
    "strict in one pass": lambda m, a: m.autograd.functional.jacobian(lambda r: r, a, strict=True, vectorize=True),
    "forward one by one": lambda m, a: m.autograd.functional.jacobian(lambda r: r, a, strategy="forward-mode"),
    "no strategy": lambda m, a: m.autograd.functional.jacobian(lambda r: r, a, strategy="sideways"),
    "shape": lambda m, a: m.vmap(lambda r: r.reshape(2, 2))(a),
    "mask": lambda m, a: m.vmap(lambda r: r[r > 0])(a),
    "mask of one shape": lambda m, a: m.vmap(lambda r: r[r == r])(a),
    "nonzero": lambda m, a: m.vmap(lambda r: m.where(r == r)[0])(a),
    "unique": lambda m, a: m.vmap(lambda r: m.unique(r * 0))(a),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_as_torch(name):
    torch = pytest.importorskip("torch")
    with pytest.raises(Exception) as want:
        ERRORS[name](torch, torch.tensor(X))
    with pytest.raises(type(want.value)) as got:
        ERRORS[name](clnn, x())
    assert str(got.value)


def test_random_numbers():
    ones = clnn.ones(3, 50)
    for draw in (lambda a: F.dropout(a, 0.5), lambda a: a * clnn.rand(50), lambda a: clnn.randn_like(a), lambda a: a.clone().uniform_(), clnn.bernoulli,
                 lambda a: clnn.bernoulli(a * 0.5), lambda a: clnn.randperm(50), lambda a: a.multinomial(20), lambda a: F.alpha_dropout(a, 0.5, True),
                 lambda a: F.scaled_dot_product_attention(a.view(1, 10, 5), a.view(1, 10, 5), clnn.eye(10)[None], dropout_p=0.5)):
        same = clnn.vmap(draw, randomness="same")(ones)
        assert clnn.equal(same[0], same[1]) and clnn.equal(same[0], same[2])
        if draw is not clnn.bernoulli:
            differ = clnn.vmap(draw, randomness="different")(ones)
            assert not clnn.equal(differ[0], differ[1]) and not clnn.equal(differ[1], differ[2])
    both = clnn.vmap(clnn.vmap(lambda a: a + clnn.rand(()), randomness="different"), randomness="same")(ones)
    assert clnn.equal(both[0], both[1]) and both[0, 0] != both[0, 1]


def test_a_draw_repeats_after_the_seed():
    def run():
        clnn.manual_seed(5)
        return clnn.vmap(lambda a: F.dropout(a, 0.3) + clnn.randn(3), randomness="different")(x()), clnn.rand(2)
    (a, after), (b, later) = run(), run()
    assert clnn.equal(a, b) and clnn.equal(after, later)


class Scaled(clnn.autograd.Function):
    """Twice its argument, on the host: no batched tensor passes."""

    @staticmethod
    def forward(ctx, a):
        return clnn.from_numpy(a.numpy() * 2)

    @staticmethod
    def backward(ctx, g):
        return g * 2


class Ruled(Scaled):
    seen = []

    @staticmethod
    def vmap(info, in_dims, a):
        Ruled.seen.append((info.batch_size, info.randomness, in_dims, tuple(a.shape)))
        return Ruled.apply(a.movedim(in_dims[0], 0)), 0


class Squared(clnn.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(a, b):
        return a * a * b

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return 2 * g * a * b, g * a * a


def test_functions_of_a_program():
    a = x().requires_grad_()
    r = clnn.vmap(Scaled.apply)(a)
    r.sum().backward()
    assert_close(r.detach(), x() * 2)
    assert_close(a.grad, clnn.full((4, 3), 2.0))
    assert_close(clnn.vmap(Ruled.apply, in_dims=1)(x()), x().T * 2)
    assert Ruled.seen == [(3, "error", (0,), (3, 4))]
    w = clnn.tensor([1.0, 2.0, 3.0], requires_grad=True)
    clnn.vmap(Squared.apply, in_dims=(0, None))(x(), w).sum().backward()          # the samples share w: it gets the sum
    assert_close(w.grad, (x() ** 2).sum(0))
    each = clnn.vmap(func.grad(lambda v, s: Squared.apply(s, v).sum()), in_dims=(None, 0))(w.detach(), x())
    assert_close(each, x() ** 2)


def test_operators_of_a_program():
    calls = []

    @library.custom_op("vmaptest::twice", mutates_args=())
    def twice(a: clnn.Tensor) -> clnn.Tensor:
        calls.append(tuple(a.shape))
        return clnn.from_numpy(a.numpy() * 2)
    assert_close(clnn.vmap(twice)(x()), x() * 2)
    assert calls == [(3,)] * 4
    twice.register_vmap(lambda info, in_dims, a: (twice(a), in_dims[0]))
    assert_close(clnn.vmap(twice, in_dims=1, out_dims=1)(x()), x() * 2)
    assert calls[4:] == [(3, 4)]


def test_what_a_function_sees():
    seen = []
    clnn.vmap(lambda a: seen.append(a) or a)(x())
    t = seen[0]
    assert isinstance(t, clnn.Tensor) and t.shape == (3,) and t.ndim == 1 and t.numel() == 3 and t.dtype is clnn.float32 and len(t) == 3
    assert clnn._C._functorch.is_batchedtensor(t) and "BatchedTensor" in repr(t) and t.device == x().device
    assert t.new_zeros(2).shape == (2,) and t.double().dtype is clnn.float64 and t.stride() == (1,) and t.is_contiguous()


def test_the_samples_share_what_is_written_once():
    """A running statistic that the samples would write differently is refused, as in PyTorch; without one the layer maps."""
    norm = clnn.nn.BatchNorm1d(3)
    with pytest.raises(RuntimeError, match="vmap"):
        clnn.vmap(lambda a: norm(a))(clnn.randn(2, 5, 3))
    models = [clnn.nn.BatchNorm1d(3) for _ in range(2)]
    params, buffers = func.stack_module_state(models)
    data = clnn.stack([x(), x() * 3])
    out = clnn.vmap(lambda p, b, a: func.functional_call(norm, (p, b), (a,)))(params, buffers, data)
    assert_close(out, clnn.stack([m(a) for m, a in zip(models, data)]))
    assert_close(buffers["running_var"], clnn.stack([m.running_var for m in models]))
    func.replace_all_batch_norm_modules_(norm)
    each = clnn.stack([norm(a) for a in clnn.stack([x(), x() * 3])])
    assert_close(clnn.vmap(lambda a: norm(a))(clnn.stack([x(), x() * 3])), each)


@pytest.mark.parametrize("make", [lambda: clnn.nn.GroupNorm(1, 3), lambda: clnn.nn.Conv1d(3, 2, 1), lambda: clnn.nn.Sequential(clnn.nn.Flatten(), clnn.nn.Linear(12, 2))])
def test_layers_of_no_samples(make):
    layer = make()
    weights = dict(layer.named_parameters())
    grads = func.vmap(func.grad(lambda p, r: func.functional_call(layer, p, r[None]).square().sum()), (None, 0))(weights, clnn.zeros(0, 3, 4))
    assert {k: g.shape for k, g in grads.items()} == {k: (0, *p.shape) for k, p in weights.items()}


def test_operators_of_no_samples():
    none = clnn.zeros(0, 3, 3, requires_grad=True)
    found = func.vmap(lambda m: (m.sort().values, m.sort().indices, m.median(), m[:2].tril(), m.max(0).values, clnn.linalg.qr(m)[1]))(none)
    assert [tuple(t.shape) for t in found] == [(0, 3, 3), (0, 3, 3), (0,), (0, 2, 3), (0, 3), (0, 3, 3)]
    found[0].sum().backward()
    assert none.grad.shape == none.shape
