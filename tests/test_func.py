"""clnn.func and clnn.utils.checkpoint against PyTorch."""
import copy
import doctest
import importlib
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import clnn
from clnn import func, nn
from clnn.utils import _pytree as pytree
from clnn.utils.checkpoint import CheckpointError, checkpoint, checkpoint_sequential

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")

X = np.linspace(-1, 1, 4).astype("float32")
Y = (np.arange(12).reshape(3, 4) / 7).astype("float32")


def same(a, b):
    """Equal structure, values and requires_grad."""
    if isinstance(b, torch.Tensor):
        assert tuple(a.shape) == tuple(b.shape) and a.requires_grad == b.requires_grad
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=2e-5, atol=1e-6)
    elif isinstance(b, (tuple, list)):
        assert type(a).__name__ == type(b).__name__ and len(a) == len(b)
        for x, y in zip(a, b):
            same(x, y)
    elif isinstance(b, dict):
        assert a.keys() == b.keys()
        for key in b:
            same(a[key], b[key])
    else:
        assert a == b


def outer_leaf(m, f):
    w = m.tensor(X).requires_grad_()
    g = f.grad(lambda a: (w * a * a).sum())(m.tensor(X))
    return g, m.autograd.grad(g.sum(), w)[0]


def outer_argument(m, f):
    w = m.tensor(X).requires_grad_()
    g = f.grad(lambda a: (a * a * a).sum())(w)
    return g, m.autograd.grad(g.sum(), w)[0]


def under_no_grad(m, f):
    with m.no_grad():
        return f.grad(lambda a: (a * a).sum())(m.tensor(X))


def vjp_twice(m, f):
    out, back = f.vjp(lambda a: a * m.tensor(Y), m.tensor(X))
    return out, back(m.ones(3, 4)), back(m.ones(3, 4) * 2)


def vjp_structures(m, f):
    out, back, aux = f.vjp(lambda a, b: ((a * b, (a * b).sum()), a + 1), m.tensor(X), m.tensor(X), has_aux=True)
    return out, back((m.ones(4), m.ones(()))), aux


def linear_part(m, f):
    out, push = f.linearize(lambda a: a.sin(), m.tensor(X))
    return out, push(m.ones(4))


def per_sample(m, f):
    return f.vmap(f.grad(lambda w, a: (w * a).sin().sum()), in_dims=(None, 0))(m.tensor(X), m.tensor(Y))


def quartic(a):
    return (a.sin() * a.sum()).sum()


CASES = {
    "grad": lambda m, f: f.grad(lambda x: (x.sin() * x).sum())(m.tensor(X)),
    "grad of grad": lambda m, f: f.grad(lambda x: f.grad(lambda z: (z ** 3).sum())(x).sum())(m.tensor(X)),
    "argnums": lambda m, f: f.grad(lambda a, b: (a * b.exp()).sum(), argnums=(0, 1))(m.tensor(X), m.tensor(X)),
    "negative argnum": lambda m, f: f.grad(lambda a, b: (a * b.exp()).sum(), argnums=-1)(m.tensor(X), m.tensor(X)),
    "aux": lambda m, f: f.grad(lambda a: ((a * a).sum(), {"k": a * 2}), has_aux=True)(m.tensor(X)),
    "grad_and_value": lambda m, f: f.grad_and_value(lambda a: (a * a).sum())(m.tensor(X)),
    "grad_and_value aux": lambda m, f: f.grad_and_value(lambda a: ((a * a).sum(), a.exp()), has_aux=True)(m.tensor(X)),
    "dictionary": lambda m, f: f.grad(lambda d: (d["a"] * d["b"]).sum())({"a": m.tensor(X), "b": m.tensor(X)}),
    "unused argument": lambda m, f: f.grad(lambda a, b: b.sum())(m.tensor(X), m.tensor(X)),
    "outer leaf": outer_leaf,
    "outer argument": outer_argument,
    "no_grad outside": under_no_grad,
    "two levels kept apart": lambda m, f: f.grad(lambda a: a * f.grad(lambda b: a + b)(m.tensor(1.)))(m.tensor(1.)),
    "vjp": vjp_twice,
    "vjp structures": vjp_structures,
    "jvp": lambda m, f: f.jvp(lambda a: a.sin(), (m.tensor(X),), (m.tensor(X),)),
    "jvp structures": lambda m, f: f.jvp(lambda a, b: (a * b, a.sum()), (m.tensor(X), m.tensor(X)), (m.tensor(X), m.ones(4))),
    "jvp aux": lambda m, f: f.jvp(lambda a: (a.tanh(), a + 1), (m.tensor(X),), (m.ones(4),), has_aux=True),
    "linearize": linear_part,
    "jacrev": lambda m, f: f.jacrev(lambda a: m.tensor(Y) @ a.tanh())(m.tensor(X)),
    "jacrev structures": lambda m, f: f.jacrev(lambda a, b: {"o": a * b, "s": b.sum()}, argnums=(0, 1))(m.tensor(X), m.tensor(X)),
    "jacrev of a constant": lambda m, f: f.jacrev(lambda a: m.ones(2))(m.tensor(X)),
    "jacfwd": lambda m, f: f.jacfwd(lambda a: m.tensor(Y) @ a.tanh())(m.tensor(X)),
    "jacfwd structures": lambda m, f: f.jacfwd(lambda a, b: (a * b, b.sum()), argnums=(0, 1))(m.tensor(X), m.tensor(X)),
    "jacfwd matrix": lambda m, f: f.jacfwd(lambda a: (a ** 2).sum(0))(m.tensor(Y)),
    "hessian": lambda m, f: f.hessian(quartic)(m.tensor(X)),
    "hessian of a vector": lambda m, f: f.hessian(lambda a: m.tensor(Y) @ a.tanh())(m.tensor(X)),
    "hessian structures": lambda m, f: f.hessian(lambda a, b: {"o": (a.sin() * b).sum() * b, "s": (a * b).sum()}, argnums=(0, 1))(m.tensor(X), m.tensor(X)),
    "gradient of a hessian": lambda m, f: f.grad(lambda a: f.hessian(lambda b: (b ** 3) * a.sum())(a).sum())(m.tensor(X)),
    "forward over reverse": lambda m, f: f.jacfwd(f.jacrev(quartic))(m.tensor(X)),
    "reverse over forward": lambda m, f: f.jacrev(f.jacfwd(quartic))(m.tensor(X)),
    "vmap": lambda m, f: f.vmap(lambda a, b: (a * b).sum(), in_dims=(0, None))(m.tensor(Y), m.tensor(X)),
    "vmap outputs": lambda m, f: f.vmap(lambda a: (a * 2, a.sum()), in_dims=1, out_dims=(1, 0))(m.tensor(Y)),
    "vmap negative": lambda m, f: f.vmap(lambda a: a * 2, in_dims=-1, out_dims=-1)(m.tensor(Y)),
    "vmap dictionary": lambda m, f: f.vmap(lambda d, a: d["w"] * a, in_dims=({"w": None}, 0))({"w": m.tensor(X)}, m.tensor(Y)),
    "vmap of vmap": lambda m, f: f.vmap(f.vmap(lambda a, b: a * b, in_dims=(0, None)), in_dims=(0, None))(m.tensor(Y), m.tensor(2.)),
    "vmap keyword": lambda m, f: f.vmap(lambda a, b: a + b)(m.tensor(Y), b=m.tensor(Y)),
    "gradients per sample": per_sample,
}


@pytest.mark.parametrize("name", CASES)
def test_like_torch(name):
    same(CASES[name](clnn, func), CASES[name](torch, torch.func))


def test_vmap_gradients_flow():
    y = clnn.tensor(Y, requires_grad=True)
    func.vmap(lambda a: (a * a).sum())(y).sum().backward()
    np.testing.assert_allclose(y.grad.numpy(), 2 * Y, rtol=1e-6)


def test_vmap_randomness():
    x = clnn.zeros(3, 5)
    with pytest.raises(RuntimeError, match="randomness"):
        clnn.vmap(lambda a: a + clnn.rand(5))(x)
    equal = clnn.vmap(lambda a: a + clnn.rand(5), randomness="same")(x)
    assert clnn.equal(equal[0], equal[1]) and clnn.equal(equal[0], equal[2])
    differ = clnn.vmap(lambda a: a + clnn.rand(5), randomness="different")(x)
    assert not clnn.equal(differ[0], differ[1])


@pytest.mark.parametrize("call, kind, text", [
    (lambda x: func.grad(lambda a: a)(x), RuntimeError, "to return a scalar Tensor, got tensor with 1 dims"),
    (lambda x: func.grad(lambda a: 1.0)(x), RuntimeError, "to return a Tensor, got"),
    (lambda x: func.grad(lambda a: a.sum(), argnums=2)(x), RuntimeError, "Got argnum=2, but only 1 positional inputs"),
    (lambda x: func.grad(lambda a: a.sum(), argnums=(0, 0))(x), RuntimeError, "must be unique"),
    (lambda x: func.grad(lambda a: a.sum(), has_aux=True)(x), RuntimeError, "should be a tuple: (output, aux)"),
    (lambda x: func.grad(lambda a: a.sum())(x.long()), RuntimeError, "float"),
    (lambda x: func.jvp(lambda a: a, x, x), RuntimeError, "Expected primals to be a tuple"),
    (lambda x: func.jvp(lambda a: a, (x,), (clnn.ones(2),)), RuntimeError, "different size"),
    (lambda x: func.vjp(lambda a: a, x)[1]((x, x)), RuntimeError, "structure"),
    (lambda x: func.vjp(lambda a: a, x)[1](clnn.ones(3)), RuntimeError, "shape"),
    (lambda x: func.vmap(lambda a: a, in_dims=None)(x), ValueError, "expected `in_dims` to be int"),
    (lambda x: func.vmap(lambda a: a, in_dims=3)(x), ValueError, "Got in_dim=3 for some input, but that input is a Tensor of dimensionality 1"),
    (lambda x: func.vmap(lambda a, b: a, in_dims=(0,))(x, x), ValueError, "structure"),
    (lambda x: func.vmap(lambda a, b: a)(x, clnn.ones(5)), ValueError, "got sizes [4, 5] for the mapped dimension"),
    (lambda x: func.vmap(lambda a: 1.0)(x), ValueError, "must only return Tensors, got type <class 'float'>"),
    (lambda x: func.vmap(lambda a: a, randomness="often"), RuntimeError, "randomness"),
])
def test_errors(call, kind, text):
    with pytest.raises(kind, match=re.escape(text)):
        call(clnn.ones(4))


@pytest.mark.parametrize("call", [
    lambda t, x: t.vmap(abs, out_dims="a")(x), lambda t, x: t.vmap(abs, out_dims=(0, 0))(x), lambda t, x: t.func.vjp(abs, x)[1]((x, x)),
    lambda t, x: t.func.jacfwd(abs, randomness="x")(x), lambda t, x: t.func.linearize(t.exp, x)[1](t.ones(3)),
    *[lambda t, x, f=f, name=name: getattr(t.autograd.functional, name)(lambda a: f(t, a), x, *[x] * (name[-1] == "p"), strict=True)
      for name in ("jacobian", "hessian", "vjp", "jvp", "vhp", "hvp") for f in (lambda t, a: t.ones(()), lambda t, a: a.sum())],
    *[lambda t, x, name=name: getattr(t.autograd.functional, name)(t.sum, x) for name in ("jvp", "vhp", "hvp")],
    lambda t, x: t.autograd.functional.jacobian(lambda a, b: a * 2, (x, x), strict=True), lambda t, x: t.autograd.functional.jacobian(abs, x, strategy="x")])
def test_words_of_errors(call):
    found = []
    for t in (clnn, pytest.importorskip("torch")):
        try:
            found.append(str(call(t, t.ones(2))))
        except Exception as exc:
            found.append(f"{type(exc).__name__}: {exc}")
    assert found[0] == found[1].replace("torch", "clnn")


def test_errors_read_as_in_pytorch():
    torch = pytest.importorskip("torch")

    def said(m, f):
        def caught(call):
            try:
                call()
            except Exception as e:
                return type(e).__name__, str(e)
        x = m.ones(3, 2)
        return [caught(call) for call in (
            lambda: f.vmap(m.dot, in_dims=2)(x, x), lambda: f.vmap(lambda a, b: a)(x, m.ones(5)), lambda: f.vmap(lambda a: a, in_dims=0.5)(x),
            lambda: f.vmap(lambda: 1)(), lambda: f.vmap(lambda a, b: a, in_dims=(None, None))(x, x), lambda: f.vmap(lambda a: a, out_dims=None)(x),
            lambda: f.vmap(lambda a: 1.0)(x), lambda: f.grad(lambda a: a)(x), lambda: f.grad(lambda a: 1.0)(x), lambda: f.grad(lambda a: a, argnums=())(x),
            lambda: f.grad(lambda a: a.sum(), argnums=(0, 0))(x))]
    assert said(clnn, func) == said(torch, torch.func)


def test_modules_as_functions():
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))
    params = {k: v.detach() for k, v in model.named_parameters()}
    x = clnn.randn(5, 4)
    grads = func.grad(lambda p: func.functional_call(model, p, (x,)).square().mean())(params)
    model(x).square().mean().backward()
    for name, p in model.named_parameters():
        np.testing.assert_allclose(grads[name].numpy(), p.grad.numpy(), rtol=1e-5, atol=1e-7)
        assert not grads[name].requires_grad


def test_ensemble():
    models = [nn.Linear(4, 2) for _ in range(3)]
    params, buffers = func.stack_module_state(models)
    x = clnn.randn(5, 4)
    out = func.vmap(lambda p, b: func.functional_call(models[0], (p, b), (x,)))(params, buffers)
    for i, m in enumerate(models):
        assert clnn.allclose(out[i], m(x))


def test_batch_norms_lose_their_statistics():
    net = nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2))
    assert func.replace_all_batch_norm_modules_(net) is net
    assert net[1].running_mean is None and net[1].track_running_stats is False


# -- trees ------------------------------------------------------------------------------------------------------------------------

def test_trees():
    from collections import namedtuple
    Point = namedtuple("Point", "x y")
    tree = {"a": [1, (2, 3)], "b": Point(4, None)}
    leaves, spec = pytree.tree_flatten(tree)
    assert leaves == [1, 2, 3, 4, None] and spec.num_leaves == 5 and pytree.tree_unflatten(leaves, spec) == tree
    assert pytree.tree_map(str, tree)["b"] == Point("4", "None")
    assert pytree.broadcast_prefix({"a": 0, "b": 1}, spec) == [0, 0, 0, 1, 1] and pytree.broadcast_prefix({"a": 0}, spec) is None


# -- checkpoint --------------------------------------------------------------------------------------------------------------------

class Noise(nn.Module):
    def forward(self, x):
        return x * (clnn.rand_like(x.detach()) > 0.3)


@pytest.fixture(scope="module")
def net():
    clnn.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 16), nn.Tanh(), Noise(), nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 4))


def gradients(net, call):
    clnn.manual_seed(3)
    net.zero_grad()
    x = clnn.ones(8, 16, requires_grad=True)
    y = call(x)
    after = clnn.rand(2)
    y.square().sum().backward()
    return [y, after, x.grad, *[p.grad for p in net.parameters()]]


@pytest.mark.parametrize("call", [
    lambda net, x: checkpoint(net, x, use_reentrant=False),
    lambda net, x: checkpoint(net, x, use_reentrant=False, early_stop=False),
    lambda net, x: checkpoint(net, x, use_reentrant=True),
    lambda net, x: checkpoint_sequential(net, 3, x),
    lambda net, x: checkpoint(lambda a, scale: net(a) * scale, x, use_reentrant=False, scale=1.0),
    lambda net, x: checkpoint(lambda a: checkpoint(net[3:], checkpoint(net[:3], a, use_reentrant=False), use_reentrant=False), x, use_reentrant=False),
], ids=["plain", "no early stop", "reentrant", "sequential", "keyword", "nested"])
def test_checkpoint_repeats_the_run(net, call):
    for a, b in zip(gradients(net, net), gradients(net, lambda x: call(net, x))):
        assert clnn.equal(a, b)


def test_checkpoint_around_operators_in_place():
    def run(t, x):
        y = x * 1.0
        y /= y.sum()
        return y.mul_(y.sin()).log1p_().sum()
    got, expected = [], []
    for t, grads in ((clnn, got), (torch, expected)):
        x = t.tensor(X, requires_grad=True)
        t.utils.checkpoint.checkpoint(run, t, x, use_reentrant=False).backward()
        grads.append(x.grad.numpy())
    np.testing.assert_allclose(got[0], expected[0], rtol=1e-4)


def test_checkpoint_without_grad_mode(net):
    with clnn.no_grad():
        assert checkpoint(net, clnn.ones(1, 16)).grad_fn is None


def test_checkpoint_gives_gradients_of_closures_alone(net):
    loss = checkpoint(net, clnn.ones(2, 16), use_reentrant=False).sum()
    assert all(g is not None for g in clnn.autograd.grad(loss, list(net.parameters())))


def test_checkpoint_twice_through_one_graph(net):
    x = clnn.ones(2, 16, requires_grad=True)
    y = checkpoint(net[:2], x, use_reentrant=False).sum()
    y.backward(retain_graph=True)
    first = x.grad.clone()
    y.backward()
    assert clnn.allclose(x.grad, 2 * first)


def test_checkpoint_asks_for_its_kind():
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        checkpoint(clnn.sin, clnn.ones(2, 4))


def test_second_derivatives_through_a_checkpoint():
    x = clnn.tensor(X, requires_grad=True)
    g, = clnn.autograd.grad(checkpoint(lambda a: (a.exp() * a.tanh()).sum(), x, use_reentrant=False), x, create_graph=True)
    h, = clnn.autograd.grad(g.sum(), x)
    t = torch.tensor(X, requires_grad=True)
    tg, = torch.autograd.grad((t.exp() * t.tanh()).sum(), t, create_graph=True)
    np.testing.assert_allclose(h.numpy(), torch.autograd.grad(tg.sum(), t)[0].numpy(), rtol=1e-4)


def test_checkpoint_keeps_less():
    blocks = [nn.Sequential(nn.Linear(64, 64), nn.Sigmoid(), nn.Linear(64, 64), nn.Tanh()) for _ in range(4)]

    def kept(call):
        clnn.synchronize()
        x, before = clnn.ones(2048, 64), clnn.memory_allocated()
        for b in blocks:
            x = call(b, x)
        x._storage.buffer()
        return clnn.memory_allocated() - before
    assert kept(checkpoint) < 0.6 * kept(lambda b, x: b(x))


def test_autocast_is_repeated():
    seen, layer = [], nn.Linear(4, 4)

    def run(x):
        y = layer(x)
        seen.append(y.dtype)
        return y.float()
    with clnn.autocast("cpu", dtype=clnn.bfloat16):
        y = checkpoint(run, clnn.ones(2, 4), early_stop=False, use_reentrant=False)
    y.sum().backward()
    assert seen == [clnn.bfloat16] * 2


def test_a_function_that_changes_is_noticed():
    calls = []

    def run(x):
        calls.append(1)
        return x.exp().sin() if len(calls) == 1 else x.exp()
    with pytest.raises(CheckpointError, match="clnn.utils.checkpoint: A different number of tensors was saved"):
        checkpoint(run, clnn.ones(2, requires_grad=True), use_reentrant=False).sum().backward()
    sizes = iter([3, 2])

    def shrink(x):
        return x[:next(sizes)].exp()
    with pytest.raises(CheckpointError, match="clnn.utils.checkpoint: .* different metadata"):
        checkpoint(shrink, clnn.ones(4, requires_grad=True), use_reentrant=False).sum().backward()
    with pytest.raises(ValueError, match="keyword"):
        checkpoint(lambda a, k: a, clnn.ones(1), use_reentrant=True, k=1)
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad"):
        checkpoint(lambda a: a, clnn.ones(1), use_reentrant=True)


def test_contexts():
    log = []

    class Log:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            log.append(self.name)

        def __exit__(self, *exc):
            pass
    checkpoint(lambda a: a.exp(), clnn.ones(2, requires_grad=True), use_reentrant=False, context_fn=lambda: (Log("first"), Log("second"))).sum().backward()
    assert log == ["first", "second"]


@pytest.mark.parametrize("name", ["max", "sort", "argmax", "signs"])
def test_outputs_that_do_not_move(name):
    """Indices and truth values have tangents of zero in their own dtype."""
    fn = {"max": lambda x: tuple(x.max(1)), "sort": lambda x: [x * 2, *x.sort(1)], "argmax": lambda x: x.argmax(1), "signs": lambda x: x > 0}[name]
    got, want = ([tuple(lib.func.jvp(fn, (lib.tensor(Y).sin(),), (lib.tensor(Y),))), lib.func.jacfwd(fn)(lib.tensor(Y).sin())] for lib in (clnn, torch))
    same(got, want)
    assert [str(t.dtype)[5:] for t in pytree.tree_leaves(got)] == [str(t.dtype)[6:] for t in torch.utils._pytree.tree_leaves(want)]
    for call in (lambda lib: lib.func.vjp(fn, lib.tensor(Y)), lambda lib: lib.func.jacrev(fn)(lib.tensor(Y)), lambda lib: lib.func.hessian(fn)(lib.tensor(Y))):
        said = []
        for lib in (clnn, torch):
            with pytest.raises(RuntimeError) as caught:
                call(lib)
            said.append(str(caught.value).replace("clnn.", "torch."))
        assert said[0] == said[1]


@pytest.mark.parametrize("name", ["square", "exp", "abs", "real", "complex"])
def test_complex_arguments(name):
    """Tangents and gradients of complex numbers; Jacobians are refused them."""
    fn = {"square": lambda v: v * v, "exp": lambda v: v.exp(), "abs": lambda v: v.abs(), "real": lambda v: v.real, "complex": lambda v: v + 1j}[name]

    def outcomes(lib):
        z = lib.tensor([1 + 2j, 0.5 - 1j]) if name != "complex" else lib.tensor([1.0, 0.5])
        t = z * (2 - 1j) if z.is_complex() else z * 3
        f, (out, back) = lib.func, lib.func.vjp(fn, z)
        yield [out, *back(out * 2), *f.jvp(fn, (z,), (t,)), f.linearize(fn, z)[1](t), f.grad(lambda v: fn(v).abs().sum())(z), f.vmap(f.grad(lambda v: fn(v).abs()))(z)]
        for call in (lambda: f.jacrev(fn)(z), lambda: f.jacfwd(fn)(z), lambda: f.hessian(fn)(z), lambda: f.grad(lambda v: (fn(v) + 0j).sum())(z),
                     lambda: f.jvp(fn, (lib.tensor(1),), (lib.tensor(1),)), lambda: lib.autograd.functional.jacobian(lambda v: v * 1j, z)):
            with pytest.raises((RuntimeError, ValueError)) as caught:
                call()
            yield caught.type.__name__, str(caught.value).replace("clnn.", "torch.")
    (got, *said), (want, *heard) = outcomes(clnn), outcomes(torch)
    same(got, want)
    assert said == heard


@pytest.mark.parametrize("name", ["jacobian", "hessian", "vjp", "jvp", "vhp", "hvp"])
def test_strict_derivatives(name):
    """What does not depend on an input, or not twice, is refused in PyTorch's words."""
    for fn in (lambda t, x: t.ones(()), lambda t, x: x.sum(), lambda t, x: (x ** 3).sum(), lambda t, x, *rest: (x ** 3).sum()):
        for create in (False, True):
            said = []
            for t in (clnn, torch):
                x = t.tensor([1.0, 2.0])
                xs = (x, x) if fn.__code__.co_flags & 4 else x
                v = {"jacobian": (), "hessian": (), "vjp": (t.ones(()),)}.get(name, (xs,))
                try:
                    said.append(str(pytree.tree_leaves(getattr(t.autograd.functional, name)(lambda *a: fn(t, *a), xs, *v, strict=True, create_graph=create))[0].tolist()))
                except RuntimeError as error:
                    said.append(str(error))
            assert said[0] == said[1], create


# -- dimensions by name --------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("pattern, sizes", [
    ("b h w c -> b c h w", {}), ("b h w c -> h (b w) c", {}), ("b h (w1 w) c -> (b w1) h w c", {"w1": 2}), ("b ... -> ... b", {}), ("b ... c -> b (...) c", {}),
    ("b h w c -> b 1 h (w c) ()", {}), ("b h -> b", {}), ("b h w c -> b h w", {}), ("b b w c -> b w c", {}), ("b h w c", {}), ("b h w c -> b ((h w) c)", {}),
    ("b h w c -> b h w c", {"q": 2}), ("b h w c -> ... b h w c", {}), ("b h w 5 -> b h w", {}), ("b (h1 h2) w c -> b h1 h2 w c", {}),
    ("b (h1 h2) w c -> b h1 h2 w c", {"h1": 2})], ids=range(16))
def test_rearrange(pattern, sizes):
    got = []
    for lib in (clnn, torch):
        try:
            r = lib.func.rearrange(lib.arange(120.0).view(2, 3, 4, 5), pattern, **sizes)
            got.append((tuple(r.shape), r.flatten().tolist()))
        except Exception as error:
            got.append(isinstance(error, ValueError) or type(error).__name__ == "DimensionBindError")
    assert got[0] == got[1] and got[0] is not False


def refused(lib):
    """What transforms, gradients and views say to programs that they cannot take."""
    func, autograd, x = lib.func, lib.autograd, lib.ones(2, 3)
    vmap, whole = func.vmap, lib.ones(2, dtype=lib.int64)
    for call in (lambda: vmap(lib.randn_like)(x), lambda: vmap(lambda x: lib.randint_like(x, 3))(x), lambda: vmap(lambda x: x.sum().item())(x),
                 lambda: vmap(lambda x: 1 if x.any() else 2)(x), lambda: vmap(lambda x: x[x > 0])(x), lambda: vmap(lambda x: x.nonzero())(x),
                 lambda: vmap(lambda x: x.masked_select(x > 0))(x), lambda: vmap(lambda x: x)(1), lambda: func.jacrev(lambda x: 3)(x),
                 lambda: func.jacfwd(lambda x: 3)(x), lambda: func.grad(lambda x: x.sum())(3), lambda: func.grad(lambda x: x.sum(), has_aux=True)(x),
                 lambda: func.vjp(lambda x: 3, x), lambda: func.vjp(lambda x: x, x)[1](lib.ones(3)), lambda: func.jvp(lambda x: x, (x,), (lib.ones(3),)),
                 lambda: func.jvp(lambda x: x, x, x), lambda: autograd.functional.vjp(lambda x: x, x), lambda: autograd.functional.jacobian(lambda x: x, 3),
                 lambda: autograd.functional.hvp(lambda x: x.sum(), x, lib.ones(2)), lambda: autograd.grad(x.sum(), x), lambda: autograd.grad(x.sum(), [None]),
                 lambda: x.sum().requires_grad_().backward(inputs=[x]), lambda: lib.autograd.grad(x.requires_grad_().sum(), [None]),
                 lambda: whole.requires_grad_(), lambda: setattr(whole, "requires_grad", True), lambda: lib.nn.Parameter(whole),
                 lambda: lib.inference_mode()(lambda: lib.ones(2))().add_(1), lambda: lib.linalg.svd(x * float("nan")),
                 lambda: lib.nn.utils.rnn.pad_sequence([x], padding_side="up"), lambda: lib.ones(2).expand(()), lambda: lib.ones(2).bool().expand(()),
                 lambda: lib.zeros(2, 2).__setitem__((0, 0), lib.ones(2).half()), lambda: setattr(lib.ones(1), "grad", lib.ones(2)),
                 lambda: setattr(lib.ones(1), "grad", lib.ones(1).double()), lambda: copy.deepcopy(x * 2)):
        with pytest.raises((RuntimeError, ValueError, TypeError)) as caught:
            call()
        yield caught.type.__name__.lstrip("_"), str(caught.value).replace("clnn.", "torch.")


def test_what_programs_hear():
    assert list(refused(clnn)) == list(refused(torch))


@pytest.mark.parametrize("primals, tangents, words", [((), (), "primals to contain at least one"), ((1.0,), (1.0,), "primals to only contain Tensors, got"),
                                                      ((clnn.ones(2),), (1.0,), "tangents to only contain Tensors, got <class 'float'>")])
def test_jvp_of_what_is_no_tensor(primals, tangents, words):
    with pytest.raises(RuntimeError, match=words):
        clnn.func.jvp(clnn.sin, primals, tangents)


# -- documentation -----------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["clnn._vmap.mapping", "clnn._rearrange", "clnn.utils.checkpoint", "clnn.summary_", "clnn.profiler.profiler", "clnn.profiler.ranges",
                                  "clnn.profiler.averages", "clnn.random"])
def test_documentation_runs(name):
    failed, tried = doctest.testmod(importlib.import_module(name), extraglobs={"clnn": clnn, "nn": nn})
    assert not failed and (tried or name.endswith("averages"))


@pytest.mark.parametrize("name", ["checkpointing", "function_transforms"])
def test_examples(name, capsys):
    runpy.run_path(str(Path(__file__).resolve().parent.parent / "examples" / f"{name}.py"), run_name="__main__")
    assert capsys.readouterr().out
