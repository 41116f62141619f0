"""The autograd engine and ``clnn.autograd`` against PyTorch: each scenario runs with both libraries and must give the same."""
import gc
import re
import warnings
import weakref

import numpy as np
import pytest

import clnn

torch = pytest.importorskip("torch")
SCENARIOS = []


def scenario(fn):
    SCENARIOS.append(fn)
    return fn


def error(fn):
    try:
        fn()
    except Exception as exc:
        return type(exc).__name__, str(exc)
    return None


def plain(value):
    """Tensors as arrays, texts without library names and addresses, containers as lists."""
    if isinstance(value, (clnn.Tensor, torch.Tensor)):
        return value.detach().numpy()
    if isinstance(value, str):
        return re.sub(r"0x[0-9a-f]+", "0x", value.replace("torch::autograd::", "").replace("torch", "clnn"))
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


def same(a, b):
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.shape == b.shape and a.dtype == b.dtype and np.allclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    return a == b


# -- in-place operators and views ---------------------------------------------------------------------------------------------------
@scenario
def inplace_on_intermediate(T):
    x = T.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.add_(1)
    y.mul_(x)
    y.sum().backward()
    return x.grad, type(y.grad_fn).__name__ if T is torch else y.grad_fn.name()


@scenario
def view_of_written_base(T):
    x = T.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = x * 1
    v = y.view(-1)
    y.mul_(3)
    (v * T.tensor([1.0, 10, 100, 1000])).sum().backward()
    return x.grad


@scenario
def base_of_written_view(T):
    x = T.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = x * 1
    w = T.tensor([5.0, 6.0], requires_grad=True)
    row = y.select(0, 1)
    row.mul_(w)
    (y * y).sum().backward()
    return x.grad, w.grad, y


@scenario
def two_views(T):
    x = T.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 2
    a, b = y.view(3, 1), y.view(1, 3)
    a.mul_(2)
    b.add_(1)
    (a.reshape(3) * T.tensor([1.0, 2, 3])).sum().backward()
    return x.grad, a, b


@scenario
def views_of_a_base_without_history(T):
    x = T.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = T.zeros(4).reshape(2, 2)
    early = y.t()[0]
    y[0] = x[0] * 2
    z = T.zeros(4)[1:3]
    z.add_(x[1])
    (y ** 2).sum().backward(retain_graph=True)
    (early ** 3).sum().backward()
    (z ** 2).sum().backward()
    return x.grad, early.requires_grad, z.requires_grad, y.t()


@scenario
def written_views_and_layouts(T):
    w = T.tensor([1.0, 2.0], requires_grad=True)
    y = T.zeros(4)
    y[1:3] = w * 2
    (T.cat([T.zeros(3), y]) * T.arange(7.0)).sum().backward()          # the gradient of y lies inside another tensor
    x = T.arange(6.0).reshape(2, 3).requires_grad_()
    y = x.t() * 1                                                       # column-major memory
    early = y[1]
    y[0].mul_(3)
    y[:, 1].mul_(y[:, 0].detach().clone())
    (y * T.arange(6.0).reshape(3, 2)).sum().backward(retain_graph=True)
    (early * T.tensor([1.0, 10.0])).sum().backward()
    z = T.view_as_real((x.t() * 1.5).to(T.complex64))
    z[0, :, 0] = w
    (z * T.arange(12.0).reshape(3, 2, 2)).sum().backward()
    return w.grad, x.grad, y


@scenario
def copies_in_place_of_views(T):
    x = T.arange(6.0).reshape(2, 3).requires_grad_()
    y = T.t_copy(x)
    y.add_(1)
    first, second = T.unbind_copy(x)
    part = T.slice_copy(x, 1, 0, 2)
    (y[1] * 2 + first[0] + second[2] + part.sum()).sum().backward()
    return x.grad, y, T.view_copy(x, (3, 2)), T.detach_copy(x).requires_grad, T.squeeze_copy(x[:, None]).stride()


@scenario
def constants_written_over(T):
    x = T.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y, z = x * 2, x * 3
    y.zero_()
    z.copy_(T.ones(3))
    (y + z).sum().backward()
    w = T.tensor([1.5, -0.5], requires_grad=True)
    steps = T.autograd.grad((w.ceil() + w.round() + w.sign() + T.div(w, 0.3, rounding_mode="floor")).sum() / 0.0, w)
    return x.grad, y.requires_grad, z.requires_grad, steps, T.tensor(2).repeat_interleave(3).add_(T.arange(3))


@scenario
def second_gradients_through_parts(T):
    x = T.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    g = T.ones(4, requires_grad=True)
    p = T.stack([x, x * x]).reshape(2, 2, 2)
    first, = T.autograd.grad((p[0].select(0, 1) * p[1].select(0, 1)).sum() + (p[1][0] * g[2:]).sum(), x, create_graph=True)
    return T.autograd.grad(first, (x, g), T.tensor([1.0, -2.0, 3.0, 0.5]))


@scenario
def transpose_written(T):
    x = T.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = x.clone()
    y.t().mul_(T.tensor([[1.0, 2.0], [3.0, 4.0]]))
    (y ** 2).sum().backward()
    return x.grad, y


@scenario
def setitem(T):
    x = T.tensor([1.0, 2.0, 3.0], requires_grad=True)
    v = T.tensor([7.0], requires_grad=True)
    y = x * x
    y[1:2] = v * 2
    y[0] = 0
    (y * T.tensor([1.0, 2.0, 3.0])).sum().backward()
    return x.grad, v.grad


@scenario
def detached_shares_memory(T):
    x = T.tensor([1.0, 2.0], requires_grad=True)
    d = x.detach()
    d.add_(5)
    return x, d.requires_grad, x._version


@scenario
def data_is_invisible(T):
    x = T.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    x.data.mul_(10)
    y.sum().backward()
    return x, x.grad


@scenario
def no_grad_update(T):
    x = T.tensor([1.0, 2.0], requires_grad=True)
    (x * 3).sum().backward()
    with T.no_grad():
        x -= 0.5 * x.grad
    x.grad.zero_()
    (x * x).sum().backward()
    return x, x.grad


# -- errors -------------------------------------------------------------------------------------------------------------------------
@scenario
def errors(T):
    x = T.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()
    y.backward()
    got = [error(y.backward)]
    got.append(error(lambda: T.ones(2).sum().backward()))
    got.append(error(lambda: (x * 2).backward()))
    got.append(error(lambda: x.add_(1)))
    got.append(error(lambda: x.view(-1).add_(1)))
    got.append(error(lambda: T.tensor([1, 2], requires_grad=True)))
    got.append(error(lambda: x.numpy())[0])
    got.append(error(lambda: (x * 2).requires_grad_(False)))
    got.append(error(lambda: T.autograd.grad((x * 2).sum(), T.ones(2, requires_grad=True))))
    got.append(error(lambda: T.autograd.grad(x.sum(), T.ones(2))))
    got.append(error(lambda: T.ones(2).register_hook(print)))
    got.append(error(lambda: T.ones(2).retain_grad()))
    got.append(error(lambda: (x * 2).sum().backward(T.ones(3))))
    got.append(error(lambda: setattr(x, "grad", T.ones(3)))[0])
    return [g if isinstance(g, str) or g is None else (g[0], g[1].split(".")[0].split(";")[0][:90]) for g in got]


@scenario
def overwritten_saved_tensor(T):
    x = T.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    z = y * y
    y.add_(1)
    first = error(lambda: z.sum().backward())
    w = (x * 2).exp()
    w.mul_(2)
    second = error(lambda: w.sum().backward())
    ok = (x * 2) + 1
    ok.mul_(2)
    ok.sum().backward()
    return first[0], first[1][:88], second[0], second[1][:88], x.grad


# -- hooks --------------------------------------------------------------------------------------------------------------------------
@scenario
def hooks(T):
    log = []
    x = T.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.retain_grad()
    h = y.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: log.append(g.clone()))
    x.register_post_accumulate_grad_hook(lambda t: log.append(t.grad.clone()))
    y.sum().backward(retain_graph=True)
    h.remove()
    y.sum().backward()
    return log, x.grad, y.grad


@scenario
def node_hooks(T):
    log = []
    x = T.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.grad_fn.register_prehook(lambda outs: (outs[0] * 3,))
    y.grad_fn.register_hook(lambda ins, outs: log.append((len(ins), outs[0].clone())))
    y.sum().backward()
    return log, x.grad, [f[0].name() for f in y.grad_fn.next_functions if f[0] is not None]


@scenario
def multi_grad_hook(T):
    log = []
    a, b = T.ones(2, requires_grad=True), T.ones(2, requires_grad=True)
    T.autograd.graph.register_multi_grad_hook((a, b), lambda gs: log.append([g.clone() for g in gs]))
    (a * 2 + b * 3).sum().backward()
    return log


# -- higher derivatives ---------------------------------------------------------------------------------------------------------------
@scenario
def second_derivatives(T):
    x = T.tensor([0.5, 1.5, 2.5], requires_grad=True)
    y = (x.exp() * x.log() + x.sqrt().tanh() / x).sum()
    g, = T.autograd.grad(y, x, create_graph=True)
    h, = T.autograd.grad((g * g).sum(), x, create_graph=True)
    k, = T.autograd.grad(h.sum(), x)
    return g, h, k


@scenario
def partial_graphs(T):
    x, w = T.tensor([1.0, 2.0], requires_grad=True), T.tensor([3.0, 4.0], requires_grad=True)
    y = x * w
    z = y.sin() + x
    got = list(T.autograd.grad(z.sum(), (y, x), retain_graph=True))
    z.sum().backward(inputs=[w], retain_graph=True)
    got += [w.grad, x.grad]
    got += T.autograd.grad(z.sum(), (x, T.ones(1, requires_grad=True)), allow_unused=True)
    got += T.autograd.grad((x * 2).sum(), (x, T.ones(2, requires_grad=True)), materialize_grads=True)
    return got


@scenario
def gradient_penalty(T):
    x = T.tensor([[1.0, -2.0], [0.5, 3.0]], requires_grad=True)
    w = T.tensor([[1.0, 2.0], [3.0, -1.0]], requires_grad=True)
    y = (x @ w).relu().sum()
    g, = T.autograd.grad(y, x, create_graph=True)
    ((g.norm(2, dim=1) - 1) ** 2).mean().backward()
    return g, w.grad


@scenario
def functional(T):
    F = T.autograd.functional
    x, v = T.tensor([1.0, 2.0, 3.0]), T.tensor([0.5, 1.0, -1.0])

    def f(t):
        return (t ** 3).sum()

    def g(t):
        return t[:2] * t[1:]
    return [F.jacobian(g, x), F.hessian(f, x), F.vjp(g, x, T.tensor([1.0, 2.0])), F.jvp(g, x, v), F.hvp(f, x, v), F.vhp(f, x, v),
            F.jacobian(lambda a, b: a * b.sum(), (x, v)), F.hessian(lambda a, b: (a * b).sum() ** 2, (x, v))]


# -- custom functions -----------------------------------------------------------------------------------------------------------------
@scenario
def custom_function(T):
    class Scale(T.autograd.Function):
        @staticmethod
        def forward(ctx, x, k):
            ctx.k = k
            y = x * k
            ctx.save_for_backward(x, y)
            return y, x.sum()

        @staticmethod
        def backward(ctx, g, s):
            x, y = ctx.saved_tensors
            return g * ctx.k + s + 0 * y, None
    x = T.tensor([1.0, 2.0], requires_grad=True)
    y, s = Scale.apply(x, 3.0)
    name = y.grad_fn.name()
    (y * y).sum().backward(retain_graph=True)
    first = x.grad.clone()
    (y.sum() + s * 2).backward()
    return first, x.grad, name, y.grad_fn.next_functions[0][0].name(), str(y).split(",")[-1]


@scenario
def setup_context(T):
    class Cube(T.autograd.Function):
        @staticmethod
        def forward(x):
            return x ** 3, x.long()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0])
            ctx.mark_non_differentiable(output[1])
            ctx.set_materialize_grads(False)

        @staticmethod
        def backward(ctx, g, none):
            assert none is None
            x, = ctx.saved_tensors
            return g * 3 * x * x
    x = T.tensor([1.0, 2.0], requires_grad=True)
    y, i = Cube.apply(x)
    g, = T.autograd.grad(y.sum(), x, create_graph=True)
    h, = T.autograd.grad(g.sum(), x)
    return y, i, i.requires_grad, g, h


@scenario
def dirty_function(T):
    class Double(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2
    a = T.tensor([1.0, 2.0], requires_grad=True)
    b = a * 3
    c = Double.apply(b)
    (b * c).sum().backward()
    return a.grad, b is c, b


@scenario
def function_errors(T):
    def make(ret, once=False):
        class Fn(T.autograd.Function):
            @staticmethod
            def forward(ctx, x, y=None):
                return x * 2
            backward = staticmethod((lambda ctx, g: ret(g)) if not once else T.autograd.function.once_differentiable(lambda ctx, g: ret(g)))
        return Fn
    x = T.tensor([1.0, 2.0], requires_grad=True)
    got = [error(lambda: make(lambda g: (g, g, g)).apply(x, 1).sum().backward()),
           error(lambda: make(lambda g: (g, g)).apply(x, 1).sum().backward()),
           error(lambda: make(lambda g: T.ones(3)).apply(x).sum().backward())]
    g, = T.autograd.grad(make(lambda g: g * 2, True).apply(x).sum(), x, T.ones((), requires_grad=True), create_graph=True)
    got.append(error(lambda: g.sum().backward()))
    make(lambda g: T.ones(1)).apply(x).sum()
    return got


@scenario
def passthrough_function(T):
    class Same(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return -g
    x = T.tensor([1.0, 2.0], requires_grad=True)
    y = Same.apply(x)
    (y * 3).sum().backward()
    with T.no_grad():
        z = Same.apply(x)
    return x.grad, y is x, z.requires_grad


# -- modes ----------------------------------------------------------------------------------------------------------------------------
@scenario
def modes(T):
    x = T.ones(2, requires_grad=True)
    got = []
    with T.no_grad():
        got.append((x * 2).requires_grad)
        with T.enable_grad():
            got.append((x * 2).requires_grad)
    with T.set_grad_enabled(False):
        got.append((x * 2).requires_grad)
    with T.inference_mode():
        y = x * 2
        got += [y.requires_grad, T.is_inference_mode_enabled()]

    @T.no_grad()
    def f():
        return (x * 2).requires_grad
    return got + [f(), T.is_grad_enabled()]


@scenario
def saved_tensors_hooks(T):
    kept = []

    def pack(t):
        kept.append(tuple(t.shape))
        return t * 1
    x = T.tensor([1.0, 2.0], requires_grad=True)
    with T.autograd.graph.saved_tensors_hooks(pack, lambda t: t * 2):
        y = x * x
    y.sum().backward()
    with T.autograd.graph.save_on_cpu():
        z = (x * 3).exp()
    z.sum().backward()
    return len(kept), x.grad


@pytest.mark.share(2)
@pytest.mark.parametrize("fn", SCENARIOS, ids=lambda f: f.__name__)
def test_scenario(fn):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got, want = plain(fn(clnn)), plain(fn(torch))
    assert same(got, want), f"\nclnn : {got}\ntorch: {want}"


# -- what only clnn has to prove ------------------------------------------------------------------------------------------------------
def test_long_chain_neither_overflows_nor_leaks():
    gc.collect()
    gc.disable()
    try:
        x = clnn.ones(1, requires_grad=True)
        y = x
        for _ in range(100_000):
            y = y + 1
        alive = weakref.ref(y.grad_fn)
        y.backward()
        assert y.item() == 100_001 and x.grad.item() == 1
        del y
        assert alive() is None, "the graph survives its last tensor without the garbage collector"
        z = x * 2
        for _ in range(20_000):
            z = z * 1.0
        del z
    finally:
        gc.enable()


def test_no_reference_cycles():
    class Id(clnn.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 1
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g

    def step():
        x = clnn.randn(4, 4, requires_grad=True)
        y = Id.apply((x.exp() * x.view(16).reshape(4, 4)).tanh())
        y.max(1).values.sum().backward()
    step()
    gc.collect()
    gc.disable()
    try:
        before = sum(type(o) is clnn.Tensor for o in gc.get_objects())
        for _ in range(5):
            step()
        assert sum(type(o) is clnn.Tensor for o in gc.get_objects()) == before
    finally:
        gc.enable()


def test_gradcheck():
    from clnn.autograd import GradcheckError, gradcheck, gradgradcheck
    x = clnn.tensor(np.linspace(0.5, 2, 4), requires_grad=True)
    w = clnn.tensor(np.linspace(-1, 1, 4), requires_grad=True)
    assert gradcheck(lambda a, b: (a * b.sin(), a.log().sum()), (x, w))
    assert gradgradcheck(lambda a, b: a * b.sin(), (x, w))

    class Wrong(clnn.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            return t * 2

        @staticmethod
        def backward(ctx, g):
            return g * 3
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
        gradcheck(Wrong.apply, x)
    assert not gradcheck(Wrong.apply, x, raise_exception=False)
    assert np.allclose(x.detach().numpy(), np.linspace(0.5, 2, 4)), "inputs are restored"


def test_anomaly():
    x = clnn.tensor([-1.0], requires_grad=True)
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"), clnn.autograd.detect_anomaly():
        y = x.sqrt()
        with pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan values in its 0th output"):
            with pytest.warns(UserWarning, match="(?s)Error detected in SqrtBackward0. Traceback of forward call .*test_autograd.py"):
                y.backward()
    with clnn.autograd.set_detect_anomaly(True):
        assert clnn.autograd.is_anomaly_enabled()
    assert not clnn.autograd.is_anomaly_enabled()


def test_hooks_can_be_disabled():
    with clnn.autograd.graph.disable_saved_tensors_hooks("not now"):
        with pytest.raises(RuntimeError, match="not now"), clnn.autograd.graph.saved_tensors_hooks(None, None):
            pass


SHOWN = {
    "masked_fill": lambda t, x: x.masked_fill(x > 0, 0.0), "index_add": lambda t, x: t.zeros(3, 4).index_add(0, t.tensor([0, 1, 0]), x),
    "index_select": lambda t, x: x.index_select(0, t.tensor([1])), "addmm": lambda t, x: t.addmm(x, x, t.ones(4, 4)), "repeat": lambda t, x: x.repeat(2, 1),
    "matmul of vectors": lambda t, x: x[0] @ x[1], "matmul of stacks": lambda t, x: x[None] @ t.ones(4, 4), "linear": lambda t, x: t.nn.functional.linear(x, x),
    "squeeze": lambda t, x: x[:1].squeeze(0), "power of a number": lambda t, x: 2.0 ** x, "tril": lambda t, x: x.tril(),
    "tensor as it is": lambda t, x: x.view(3, 4), "median": lambda t, x: x.median(1).values, "reflected": lambda t, x: t.nn.functional.pad(x, (1, 1), "reflect"),
}


@pytest.mark.parametrize("case", SHOWN)
def test_names_of_operators_made_of_others(case):
    """``grad_fn`` names the operator that the program called."""
    names = [SHOWN[case](lib, lib.ones(3, 4, requires_grad=True)).grad_fn.name() for lib in (clnn, pytest.importorskip("torch"))]
    assert names[0] == names[1]


def test_gradients_with_history_are_no_views():
    """Programs detach them in place, and may change the seed."""
    for lib in (clnn, torch):
        x, y = lib.ones(2, 3, requires_grad=True), lib.ones(2, requires_grad=True)
        seed = lib.ones(2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lib.autograd.backward([(x.t() ** 2).sum(), y], [None, seed], create_graph=True)
        seed.zero_()
        assert x.grad.requires_grad and not x.grad._is_view() and x.grad.detach_() is x.grad and y.grad.tolist() == [1, 1]
