"""Hooks on the graph, gradients that start or end at its nodes, and what may be written while it is kept: as PyTorch does."""
import functools

import pytest
from scenarios import assert_same

import clnn


def leaf(T, *values):
    return T.tensor(list(values) if len(values) > 1 else values[0], requires_grad=True)


def hooks_in_their_order(T):
    """Of the tensor, then of the node; at the leaf too, and none that only watch where nothing is accumulated."""
    log = []
    a = leaf(T, 1.0)
    b = a.clone()
    end = b.grad_fn.next_functions[0][0]
    b.grad_fn.register_prehook(lambda g: (log.append("node b"), (g[0] * 2,))[1])
    b.register_hook(lambda g: (log.append("b"), g * 3)[1])
    end.register_prehook(lambda g: (log.append("node a"), (g[0] * 2,))[1])
    end.register_hook(lambda inputs, outputs: log.append(("after", len(inputs), len(outputs))))
    a.register_hook(lambda g: (log.append("a"), g * 3)[1])
    b.sum().backward(retain_graph=True)
    log.append(a.grad.item())
    T.autograd.grad(b.sum(), (a,), retain_graph=True)
    log.append("|")
    T.autograd.grad(b.sum(), (b,), retain_graph=True)
    log.append("|")
    b.sum().backward(inputs=(b,))
    return log, b.grad, b.retains_grad


def gradients_of_the_newest_value(T):
    """``retain_grad`` follows a tensor through in-place operators, also through its views."""
    a = leaf(T, 1.0, 2.0).clone()
    a.retain_grad()
    a.mul_(2)
    a[:1].mul_(3)
    base = leaf(T, 1.0, 2.0).clone()
    view, other = base[:], base[:]
    view.retain_grad()
    other.retain_grad()
    view.mul_(2)
    (a.sum() + (view + other).sum()).backward()
    return a.grad, view.grad, other.grad


def gradients_between_nodes(T):
    x = leaf(T, 1.0, 2.0)
    middle = x.sin().sum()
    out = middle.exp() * 2
    edge = T.autograd.graph.get_gradient_edge(middle)
    first, = T.autograd.grad(out, edge)
    second, = T.autograd.grad(edge, x, grad_outputs=first, retain_graph=True)
    T.autograd.backward(edge)
    return first, second, x.grad, T.autograd.grad((x * 3).sum(), T.autograd.graph.get_gradient_edge(x))


def hooks_for_several(T):
    """They count within a pass and tell what it did not come by."""
    a, b, c = (leaf(T, 1.0, float(i)) for i in range(3))
    seen = []
    handle = T.autograd.graph.register_multi_grad_hook((a, b, c), lambda g: seen.append([None if t is None else t.tolist() for t in g]))
    first = T.autograd.graph.register_multi_grad_hook((a, b), lambda g: seen.append(g.tolist()), mode="any")
    (a * 2 + b).sum().backward()
    (c * a).sum().backward(inputs=[c])
    handle.remove()
    first.remove()
    a.sum().backward()
    return seen


def writing_what_is_kept(T):
    x = leaf(T, 1.0, 2.0)
    with T.autograd.graph.allow_mutation_on_saved_tensors():
        y = x.clone()
        z = y.sin()
        y.mul_(3)
        (z.sum() + (y * y).sum()).backward()
    return x.grad


def hooks_for_one_kept_value(T):
    y = (leaf(T, 1.0, 2.0) * 2).exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t * 2, lambda t: t)
    twice, = T.autograd.grad(y.sum(), [y.grad_fn.next_functions[0][0].next_functions[0][0].variable])
    return twice


def decorated_generators_catch(T):
    @T.enable_grad()
    def numbers():
        try:
            yield T.is_grad_enabled()
        except ValueError:
            yield "caught", T.is_grad_enabled()
    with T.no_grad():
        g = numbers()
        return next(g), g.throw(ValueError), T.is_grad_enabled()


def custom_outputs(T):
    """Arguments that are no tensors are no part of the graph; a constant's gradient may stay away."""
    class Halves(T.autograd.Function):
        @staticmethod
        def forward(ctx, factor, x):
            low, high = x * factor, x.clone()
            ctx.mark_non_differentiable(high)
            ctx._materialize_non_diff_grads = False
            return low, high

        @staticmethod
        def backward(ctx, low, high):
            return None, low * (2 if high is None else 3)
    x = leaf(T, 1.0, 2.0)
    low, high = Halves.apply(5, x)
    low.sum().backward()
    return x.grad, len(low.grad_fn.next_functions), high.requires_grad, low.grad_fn.metadata, len(x.sum().grad_fn.next_functions)


def gradients_of_another_dtype(T):
    """``grad_dtype``: gradients that arrive are cast, before hooks see them."""
    x, free, seen = T.ones(2, dtype=T.bfloat16, requires_grad=True), leaf(T, 1.0, 2.0), []
    x.grad_dtype, free.grad_dtype = T.float32, None
    x.register_hook(lambda g: seen.append(g.dtype.itemsize))
    (x * 3).sum().backward()
    (x * 3).sum().backward()
    free.grad = T.ones(2, dtype=T.float64)
    return x.grad, T.autograd.grad((x * 3).sum(), x), free.grad, free.grad_dtype, str(x.grad_dtype)[-7:], x.detach().grad_dtype is x.dtype, seen


def names_of_the_modes(T):
    """Where programs import them from."""
    import importlib
    modes = importlib.import_module(T.__name__ + ".autograd.grad_mode")
    with modes.set_multithreading_enabled(False), modes.no_grad():
        return T.is_grad_enabled(), modes.enable_grad is T.enable_grad


def refused(call):
    @functools.wraps(call)
    def run(T):
        x = leaf(T, 1.0, 2.0)
        return call(T, x, x * 3)
    return run


REFUSED = [refused(f) for f in (
    lambda T, x, y: T.autograd.grad(y.sum(), []),
    lambda T, x, y: T.autograd.grad(y, x, T.ones(3, 3), is_grads_batched=True),
    lambda T, x, y: T.autograd.grad(y.sum(), x, allow_unused=False, materialize_grads=True),
    lambda T, x, y: T.autograd.grad(T.autograd.graph.get_gradient_edge(y), x),
    lambda T, x, y: T.autograd.grad(T.autograd.graph.get_gradient_edge(y), x, T.ones(3)),
    lambda T, x, y: (x.register_post_accumulate_grad_hook(lambda t: t.grad), y.sum().backward()),
    lambda T, x, y: (x.register_post_accumulate_grad_hook(lambda t: t.add_(t.grad)), y.sum().backward(), x)[2],
    lambda T, x, y: (y.register_hook(lambda g: g.sum()), y.sum().backward()),
    lambda T, x, y: (y.register_hook(lambda g: "no"), y.sum().backward()),
    lambda T, x, y: setattr(x, "data", T.tensor([1, 2])),
    lambda T, x, y: (y.register_hook(lambda g: g.double()), y.sum().backward()),
    lambda T, x, y: setattr(x, "grad", x.double()),
    lambda T, x, y: setattr(x, "grad_dtype", 3),
    lambda T, x, y: setattr(y, "grad_dtype", T.float64),
    lambda T, x, y: (y.sum().backward(), setattr(x, "grad_dtype", T.float64)),
)]


@pytest.mark.parametrize("case", [hooks_in_their_order, gradients_of_the_newest_value, gradients_between_nodes, hooks_for_several, writing_what_is_kept,
                                  hooks_for_one_kept_value, decorated_generators_catch, custom_outputs, gradients_of_another_dtype,
                                  names_of_the_modes], ids=lambda f: f.__name__)
def test_same(case):
    assert_same(case)


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refused(number):
    assert_same(REFUSED[number])


def test_the_old_name_of_gradients_that_are_given():
    """It comes before `inputs`, as in PyTorch."""
    x = clnn.ones(2, requires_grad=True)
    with pytest.warns(FutureWarning, match="`grad_variables` is deprecated"):
        clnn.autograd.backward([x * 2], None, None, False, [clnn.ones(2)])
    assert x.grad.tolist() == [2.0, 2.0]
    with pytest.warns(FutureWarning), pytest.raises(RuntimeError, match="both passed"):
        clnn.autograd.backward([x * 2], [clnn.ones(2)], grad_variables=[clnn.ones(2)])


@pytest.mark.parametrize("name", ("where", "div", "lerp", "atan2", "maximum"))
def test_what_hooks_packed_is_unpacked_once_in_a_pass(name):
    """Also where the gradients of several operands ask for it, so that a checkpoint runs its function once more and no oftener."""
    one = {"where": lambda x, y: clnn.where(x.detach() > 0.5, x, y), "div": lambda x, y: x / y, "lerp": lambda x, y: clnn.lerp(x, y, x.detach()),
           "atan2": lambda x, y: clnn.atan2(x, y), "maximum": lambda x, y: clnn.maximum(x, y)}[name]
    packed, unpacked, runs = [], [], []
    for _ in range(4):
        x, y = (clnn.tensor([0.25, 0.75, 1.0], requires_grad=True) for _ in range(2))
        with clnn.autograd.graph.saved_tensors_hooks(lambda t: packed.append(0) or t, lambda t: unpacked.append(0) or t):
            z = one(x, y)
        z.sum().backward(retain_graph=True)
        z.sum().backward()
        assert len(unpacked) == 2 * len(packed)
        clnn.utils.checkpoint.checkpoint(lambda x, y: runs.append(0) or one(x, y), x, y, use_reentrant=False).sum().backward()
        twice = [g / 3 for g in (x.grad, y.grad)]
        for got, want in zip(twice, clnn.autograd.grad(one(x, y).sum(), (x, y))):
            clnn.testing.assert_close(got, want)
    assert len(runs) == 8


def hooks_that_pack_record_nothing(T):
    """So that they may ask for the NumPy array of a tensor that takes gradients."""
    modes = []

    def pack(t):
        modes.append(T.is_grad_enabled())
        return t.numpy().copy()

    class Twice(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    x = leaf(T, 1.0, 2.0)
    with T.autograd.graph.saved_tensors_hooks(pack, T.from_numpy):
        y = Twice.apply(x.exp() * x)
    y.sum().backward()
    return modes, T.is_grad_enabled(), x.grad


def test_hooks_that_pack_record_nothing():
    modes, after, grad = hooks_that_pack_record_nothing(clnn)
    assert modes == [False] * 4 and after
    assert_same(hooks_that_pack_record_nothing)


@pytest.mark.parametrize("call", ["F.elu_(x * 1)", "F.leaky_relu_(x * 1)", "F.celu_(x * 1)", "F.threshold_(x * 1, 0, 0)", "F.silu(x * 1, inplace=True)",
                                  "F.hardtanh_(x * 1)", "2 % x", "F.linear(x, w)", "F.linear(x, w, w[:, 0])", "x.tril()", "x.masked_fill(x > 0, 1)"])
def test_names_of_what_a_result_follows_from(call):
    torch = pytest.importorskip("torch")

    def names(t):
        values = dict(F=t.nn.functional, x=t.ones(2, 3, requires_grad=True), w=t.ones(4, 3, requires_grad=True))
        node = eval(call, values).grad_fn
        return node.name(), [n and (n.name(), [m and m.name() for m, _ in n.next_functions]) for n, _ in node.next_functions]
    assert names(clnn) == names(torch)
