"""Corners of PyTorch that programs reach sooner or later: inference mode, names in printed graphs, integers where floats are usual, kinds of errors."""
import numpy as np
import pytest
from scenarios import assert_same, outcome, torch

import clnn


def _words(call):
    """What the call's error says."""
    with pytest.raises(Exception) as info:
        call()
    return str(info.value).replace("clnn.", "torch.").partition(" (copy_: ")[0]


def _failing(*calls):
    """The kind of each call's error, None where there is none."""
    kinds = []
    for call in calls:
        try:
            call()
            kinds.append(None)
        except Exception as error:
            kinds.append(next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"))
    return kinds


def _inference(t):
    with t.inference_mode():
        made, other = t.ones(2), t.zeros(2)
        other.add_(1)
        part = made[:1]
    leaf = t.ones(2, requires_grad=True)
    with t.inference_mode():
        view = t.zeros(2)
        outside = leaf * 2
    states = [x.is_inference() for x in (made, other, part, leaf, outside, made.clone(), made[0], made + 1, leaf.detach())]
    return [states, other, (made * leaf.detach()).sum(), (leaf + made).sum(), made.clone().add_(1),
            _failing(lambda: made.add_(1), lambda: made[0].fill_(2), lambda: made.copy_(other), lambda: t.add(other, 1, out=view), lambda: made._version,
                     lambda: made.requires_grad_(), lambda: made * leaf, lambda: leaf + made, lambda: t.nn.functional.linear(made, leaf),
                     lambda: made.__setitem__(0, 1.0), lambda: (made.clone() * leaf).sum().backward())]


def _complex(t, *shape, seed=0):
    r = np.random.default_rng(seed)
    return t.tensor(r.standard_normal(shape) + 1j * r.standard_normal(shape), dtype=t.complex64)


def _through(t, f, x):
    """Values of ``f(x)`` and the gradient of a real number made of them all."""
    x = x.clone().requires_grad_(True)
    outs = f(x)
    outs = outs if isinstance(outs, tuple) else (outs,)
    total = 0
    for k, y in enumerate(outs):
        if y.requires_grad:
            total = total + (y * (k + 1 - 0.5j if y.is_complex() else k + 1)).real.sum()
    total.backward()
    return [list(outs), x.grad]


def _hermitian(t, n=3):
    a = _complex(t, n, n)
    return a @ a.mH + 2 * t.eye(n)


FUNCTIONS = {                                # of complex matrices: (function, its argument)
    "cholesky": (lambda t, a: t.linalg.cholesky(a), _hermitian), "upper cholesky": (lambda t, a: t.linalg.cholesky(a, upper=True), _hermitian),
    "eigvalsh": (lambda t, a: t.linalg.eigvalsh(a), _hermitian), "eigh": (lambda t, a: (lambda v: v @ v.mH)(t.linalg.eigh(a)[1][:, :1]), _hermitian),
    "cholesky_solve": (lambda t, a: t.cholesky_solve(_complex(t, 3, 2), a), lambda t: t.linalg.cholesky(_hermitian(t))),
    "qr": (lambda t, a: t.linalg.qr(a), lambda t: _complex(t, 4, 3)), "svdvals": (lambda t, a: t.linalg.svdvals(a), lambda t: _complex(t, 2, 4, 3)),
    "svd": (lambda t, a: (lambda u, s, vh: (u[:, :2] * s[:2]) @ vh[:2])(*t.linalg.svd(a, full_matrices=False)), lambda t: _complex(t, 4, 3)),
    "slogdet": (lambda t, a: tuple(t.linalg.slogdet(a)), lambda t: _complex(t, 3, 3)), "logdet": (lambda t, a: t.logdet(a), lambda t: _complex(t, 3, 3)),
    "pinv": (lambda t, a: t.linalg.pinv(a), lambda t: _complex(t, 4, 3)), "matrix_exp": (lambda t, a: t.matrix_exp(a), lambda t: _complex(t, 3, 3)),
    "lstsq": (lambda t, a: t.linalg.lstsq(a, _complex(t, 4, 2, seed=1)).solution, lambda t: _complex(t, 4, 3)),
    "lu": (lambda t, a: t.linalg.lu(a), lambda t: _complex(t, 3, 3)),
    "lu_solve": (lambda t, a: t.linalg.lu_solve(*t.linalg.lu_factor(a), _complex(t, 3, 2, seed=1), adjoint=True), lambda t: _complex(t, 3, 3)),
    "solve_triangular": (lambda t, a: t.linalg.solve_triangular(a, _complex(t, 3, 2, seed=1), upper=True), lambda t: _complex(t, 3, 3)),
    "norms": (lambda t, a: (t.linalg.matrix_norm(a, "nuc"), t.linalg.norm(a, 2), t.linalg.cond(a)), lambda t: _complex(t, 3, 3)),
    "var": (lambda t, a: (a.var(0), a.std(), a.var(1, unbiased=False)), lambda t: _complex(t, 4, 3)),
    "var_mean": (lambda t, a: t.var_mean(a, 1), lambda t: _complex(t, 4, 3)), "cov": (lambda t, a: t.cov(a), lambda t: _complex(t, 3, 5)),
    "sinc": (lambda t, a: t.sinc(a), lambda t: _complex(t, 4)), "logsumexp": (lambda t, a: a.logsumexp(0), lambda t: _complex(t, 4, 3)),
    "normalize": (lambda t, a: t.nn.functional.normalize(a), lambda t: _complex(t, 4, 3)),
    "conv2d": (lambda t, a: t.nn.functional.conv2d(a, _complex(t, 6, 2, 3, 2, seed=1), _complex(t, 6), stride=2, padding=1, groups=2), lambda t: _complex(t, 2, 4, 5, 4)),
    "conv2d's weight": (lambda t, a: t.nn.functional.conv2d(_complex(t, 2, 4, 5, 4), a, dilation=2, groups=2), lambda t: _complex(t, 6, 2, 2, 2)),
    "conv_transpose2d": (lambda t, a: t.nn.functional.conv_transpose2d(a, _complex(t, 4, 3, 3, 2, seed=1), stride=2, groups=2), lambda t: _complex(t, 1, 4, 3, 3)),
    "unfold": (lambda t, a: t.nn.functional.unfold(a, 2), lambda t: _complex(t, 1, 2, 3, 4)),
    "reflecting pad": (lambda t, a: t.nn.functional.pad(a.to(t.complex128), (1, 2), mode="reflect"), lambda t: _complex(t, 2, 20)),
    "masked_select": (lambda t, a: a.to(t.complex128).masked_select(a.real > 0), lambda t: _complex(t, 20)),
}


@pytest.mark.share(2)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_complex_function(name):
    f, argument = FUNCTIONS[name]
    mine, theirs = (_through(t, lambda x: f(t, x), argument(t)) for t in (clnn, torch))
    for got, want in zip([*mine[0], mine[1]], [*theirs[0], theirs[1]]):
        assert str(got.dtype).split(".")[1] == str(want.dtype).split(".")[1]
        np.testing.assert_allclose(got.detach().numpy(), want.detach().resolve_conj().numpy(), rtol=2e-3, atol=2e-3 * max(1.0, float(want.detach().abs().max())))


def _pooled(t):
    x = (t.arange(2 * 3 * 7 * 8).reshape(2, 3, 7, 8) * 37) % 41 - 20
    F = t.nn.functional
    return [F.avg_pool2d(x, k, s, p, c, inside, d) for k in (2, (3, 2)) for s in (None, 2) for p in (0, 1) for c in (False, True)
            for inside in (True, False) for d in (None, 3)] + [F.avg_pool1d(x[0], 3, 2, 1, True, False), F.avg_pool3d(x[None], 2, 1),
                                                               F.lp_pool2d(x.abs(), 2, 2), F.local_response_norm(x, 2)]


def _integer_convolutions(t):
    def numbers(*shape):
        n = int(np.prod(shape))
        return (t.arange(n) * 7 % 11 - 5).reshape(shape)
    x, F = numbers(2, 4, 6, 5), t.nn.functional
    return [F.conv2d(x.to(d), numbers(6, 4, 3, 2).to(d), numbers(6).to(d), **k) for d in (t.int64, t.int32, t.int8, t.uint8)
            for k in ({}, dict(stride=2, padding=1))] + [
        F.conv2d(x, numbers(6, 2, 2, 2), groups=2, dilation=2), F.conv2d(x[0], numbers(6, 4, 2, 3), padding="same"), F.conv1d(x[0], numbers(3, 6, 3)),
        F.conv3d(x[None], numbers(3, 2, 2, 2, 2)), F.conv_transpose2d(x, numbers(4, 3, 3, 2), numbers(6), stride=2, padding=1, output_padding=1, groups=2),
        F.conv_transpose1d(x[0], numbers(6, 3, 3), stride=2), F.conv_transpose2d(x, numbers(4, 3, 3, 2), dilation=2),
        _failing(lambda: F.conv2d(x.bool(), numbers(6, 4, 3, 2).bool()), lambda: F.conv_transpose2d(x.int(), numbers(4, 3, 3, 2).int()),
                 lambda: F.conv2d(x, numbers(6, 4, 3, 2).float()), lambda: F.avg_pool2d(x.int(), 2))]


def _factors(t):
    """Fractional factors of integers: cut off, refused, or taken as bools, by operator."""
    A, B, Z = t.arange(6).view(2, 3), t.arange(6).view(3, 2), t.ones(2, 2, dtype=t.int64)
    T = t.ones(2, 2, dtype=t.bool)
    return [t.addmm(Z, A, B, beta=0.5), t.addmm(Z, A, B, alpha=1.5), t.baddbmm(Z[None], A[None], B[None], alpha=0.5), t.addbmm(Z, A[None], B[None], beta=2.5),
            t.addmv(Z[0], A, B[:, 0], alpha=2.7), t.addcmul(Z, Z, Z, value=1.5), t.add(T, T, alpha=2), t.add(Z, Z.float(), alpha=0.5), t.add(Z, 2.0, alpha=0.5),
            _failing(lambda: t.add(Z, Z, alpha=0.5), lambda: t.sub(Z, 1, alpha=0.5), lambda: t.addr(Z, A[:, 0], B[0], alpha=0.5),
                     lambda: t.addr(Z, A[:, 0], B[0], beta=0.5), lambda: t.addcdiv(Z, Z, Z))]


def _kinds(t):
    x, l, F = t.arange(12.0).view(3, 4), t.int64, t.nn.functional
    return _failing(lambda: x.index_copy(0, t.tensor([0, 1]), x), lambda: x.index_add(0, t.tensor([0, 1]), x), lambda: x.as_strided((3, 3), (1,)),
                    lambda: F.linear(x, t.ones(2, 4), t.ones(3)), lambda: F.gaussian_nll_loss(x, x, -x), lambda: t.tensor({}), lambda: t.as_tensor(object()),
                    lambda: F.pad(x, (1, 1), mode="reflect", value=1), lambda: t.eye(-1), lambda: t.full((2,), "a"), lambda: x.unflatten(1, (3, 2)),
                    lambda: t.cholesky_solve(x, x), lambda: F.dropout1d(t.ones(2, 2, 2, 2)), lambda: F.dropout2d(t.ones(2, 3)), lambda: F.dropout3d(t.ones(2, 3, 4)),
                    lambda: x.gather(0, t.zeros(4, 4, dtype=l) + 5).sum().item(), lambda: x.masked_scatter(x > 3, t.ones(2)).sum().item(),
                    lambda: x["a"], lambda: x[{}], lambda: x[:, :1].expand(3, -2), lambda: t.utils.data.DistributedSampler(x))


def _whole_channels(t):
    """Which dimensions dropout2d takes for channels: those of a 3-d input are (N, C, L)."""
    y = t.nn.functional.dropout2d(t.ones(8, 16, 4), 0.5)
    return [bool((y.amax(2) == y.amin(2)).all()), bool((y.amax((1, 2)) != y.amin((1, 2))).all())]


def _results(t):
    """How results with names print, and which class they are of."""
    S = t.tensor([[2.0, 1.0], [1.0, 3.0]])
    found = [t.slogdet(S), t.linalg.slogdet(S), S.max(1), t.linalg.lu_factor(S), S.aminmax()]
    names = ("slogdet", "linalg_slogdet", "max", "linalg_lu_factor", "aminmax", "frexp", "histogram", "linalg_inv_ex", "svd", "triangular_solve", "topk_out")
    return [repr(r).replace("torch.", "clnn.") for r in found] + [isinstance(r, getattr(t.return_types, n)) for r, n in zip(found, names)] + [
        getattr(t.return_types, n).n_fields for n in names]


def _rare_methods(t):
    import warnings
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        x = t.arange(4.0)
        got = [x.clone().map2_(x + 1, x + 2, lambda a, b, c: a + b * c), (x + 1).polygamma_(1), x.resize(2, 2), x.resize_as(t.ones(2, 2)), x[1:]._is_view(),
               x._is_view(), x.module_load(t.ones(4)), x, t.ones(2, 3, 4).T.shape, t.ones(2, 3).T.shape, t.functional.stft is t.stft]
    return [*got, sorted(str(w.message)[:50] for w in seen if "`x.T`" not in str(w.message))]      # which comes once in a process


def _trees(t):
    import importlib
    from collections import namedtuple
    m = importlib.import_module(t.__name__ + ".utils._pytree")
    tree = {"a": [1, (2, 3)], "b": namedtuple("Pair", "x y")(4, 5)}
    return [[(m.keystr(path), leaf, m.key_get(tree, path)) for path, leaf in m.tree_leaves_with_path(tree)],
            [list(v) if isinstance(v, tuple) else v for v in m.tree_leaves(m.tree_map_with_path(lambda path, x, y: m.keystr(path) + str(x + y), tree, tree))],
            m.tree_is_leaf(3), m.tree_is_leaf([3]), len(m.tree_flatten_with_path(tree)[0]), m.tree_map_with_path(print, ())]


def _nodes(t):
    """What programs that draw or read the graph look at."""
    class Double(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.factor = 2
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * ctx.factor
    x = t.ones(3, requires_grad=True)
    mul, exp, own = 2 * x, x.exp(), Double.apply(x)
    parts = (own * exp + mul).grad_fn
    names, todo = [], [parts]
    while todo:
        node = todo.pop(0)
        if node is not None:
            names.append([type(node).__name__, node.name().rpartition(":")[2]])
            todo += [n for n, _ in node.next_functions]
    kept = [exp.grad_fn._saved_result.equal(exp), (x * x).grad_fn._saved_other is x, own.grad_fn.factor, own.grad_fn.saved_tensors, hasattr(exp.grad_fn, "_saved_no")]
    exp.sum().backward()
    shown = repr(own.grad_fn).partition(" at ")[0]
    return [names, kept, shown, [f.__class__ for f, _ in mul.grad_fn.next_functions][1], _failing(lambda: exp.grad_fn._saved_result),
            *[_message(lambda a=a, b=b: t.ones(a) * t.ones(b)) for a, b in (((2, 3), (3, 2)), ((4, 3, 2), (2, 3)))]]


def _message(call):
    with pytest.raises(RuntimeError) as info:
        call()
    return str(info.value).partition(" (mul:")[0]


def _registered_trees(t):
    """Classes that a program registers; subclasses of containers are leaves."""
    import importlib
    from collections import OrderedDict, defaultdict, deque
    m = importlib.import_module(t.__name__ + ".utils._pytree")

    class Output(OrderedDict):
        pass
    leaf = m.tree_is_leaf(Output(a=1))
    m.register_pytree_node(Output, m._dict_flatten, lambda values, keys: Output(zip(keys, values)), flatten_with_keys_fn=m._dict_flatten_with_keys)
    tree = [Output(a=1, b=(2, 3)), defaultdict(list, c=4), deque([5], 2)]
    doubled = m.tree_map(lambda v: 2 * v, tree)
    return [leaf, m.tree_leaves(tree), doubled == [Output(a=2, b=(4, 6)), defaultdict(list, c=8), deque([10], 2)], type(doubled[0]) is Output,
            doubled[1].default_factory is list, doubled[2].maxlen, [m.keystr(path) for path, _ in m.tree_leaves_with_path(tree)],
            m.tree_map(lambda a, b: a + b, tree, doubled)[0]["b"], _failing(lambda: m.register_pytree_node(Output, None, None))]


def _numbers_and_sizes(t):
    """Two numbers where an operand may be one; sizes, strides and dimensions that are tensors of one element."""
    n, x = t.tensor, t.arange(24.0)
    return [t.add(1, 2), t.sub(1, 2.5), t.mul(2, 3), t.div(7, 2), t.div(7, 2, rounding_mode="trunc"), t.div(-7, 2, rounding_mode="floor"), t.floor_divide(7, 2),
            t.add(True, 1), t.mul(1j, 2), x.as_strided((n(2), 3), (n(6), 1), n(1)), x.unfold(0, n(4), n(8)), x.view(n(4), 6).sum(n(0)), x.roll(n(2)),
            x.view(4, 6).diagonal(n(1)), x.view(1, 4, 6).movedim(n(0), n(1)), t.bincount(n([1, 2]), minlength=n(5)),
            _failing(lambda: t.add(1, None), lambda: t.pow(2, 3), lambda: x.sum(0.5), lambda: t.eq(1, 2))]


def _out_of_range(t):
    """Numbers that a dtype, a range or memory does not hold."""
    def made(value, name):
        return lambda: t.tensor(value, dtype=getattr(t, name))
    return [t.isin(1, t.arange(3)), t.tensor(-255, dtype=t.uint8), t.linspace(0, 1j, 3), t.fake_quantize_per_tensor_affine(t.linspace(-1, 1, 7), 0.2, 1, 0, 4),
            _failing(made(300, "uint8"), made([2**31], "int32"), made(float("nan"), "int64"), lambda: t.arange(0, float("inf")), lambda: t.logspace(0, 1, -3),
                     lambda: t.ones(4).as_strided((2,), (-1,)), lambda: t.ones(3).__delitem__(0))] + [
        f(t.ones(2)) for f in (lambda x: x * 1e40, lambda x: x - 1e40, lambda x: x / 1e40, lambda x: x < 1e300, lambda x: x.half() * 1e6, lambda x: 1e40 - x)]


def _shown(t):
    """Texts of classes, of dual tensors and of samples of a map."""
    ad, x, texts = t.autograd.forward_ad, t.ones(2), []
    with ad.dual_level():
        dual = ad.make_dual(x, x * 3)
        texts += [repr(v) for v in (dual, dual * dual, x)]
    t.func.vmap(lambda v: (texts.append(repr(v)), v)[1])(t.ones(2, 3))
    return texts + [str(c) for c in (t.Size, t.device, t.dtype, t.finfo, t.iinfo, t.layout, t.memory_format, t.optim.lr_scheduler.CyclicLR)] + [
        str(x.storage()).splitlines()[-1]]


CALLS = {
    "out of range": _out_of_range,
    "texts of classes": _shown,
    "classes in trees": _registered_trees,
    "numbers and sizes": _numbers_and_sizes,
    "nodes of the graph": _nodes,
    "paths of trees": _trees,
    "named results": _results,
    "rare methods": _rare_methods,
    "factors of integers": _factors,
    "kinds of errors": _kinds,
    "channels of dropout2d": _whole_channels,
    "pools of integers": _pooled,
    "convolutions of integers": _integer_convolutions,
    "inference mode": _inference,
    "the old constructors": lambda t: [c(a) for c in (t.Tensor, t.FloatTensor, t.ones(1).new) for a in ((2, 3), range(3), [1.5], np.ones(2, "f"))]
    + [t.ones(1).new(t.ones(2)), t.ones(1).new(t.Size([0])), t.ones(1).new()],
    "Sobol points in double": lambda t: [t.quasirandom.SobolEngine(3, scramble=True, seed=5).draw(4, dtype=t.float64)],
    "without a gradient": lambda t: [(r.grad_fn.name(), repr(r.detach()), r.requires_grad,
        _failing(lambda: r.sum().backward())) for y in [t.tensor([2., 3., 1.], requires_grad=True)]
                                     for r in (y // 2, t.heaviside(y, y), t.histogram(y, 3).hist, y.unique(), t.unique(y[None], dim=1),
                                     y.unique_consecutive(), t.geqrf(y[:, None]).tau,
                                               t.bincount(t.tensor([0, 1, 1]), y), t.linalg.ldl_factor(y[:1, None] * 2).LD)]
    + [y // 2 for y in [t.ones(1, requires_grad=True)]],
    "drawn with zeros as gradients": lambda t: [(r.grad_fn.name(), t.autograd.grad(r.sum() * float("inf"), y)[0].tolist()) for y in [t.tensor([0.5,
        0.25], requires_grad=True)]
                                                for r in (t.poisson(y), t.normal(y, 1.0), t.normal(0.0, y), t.bernoulli(y), y.clone().random_(),
                                                y.clone().log_normal_(), y.clone().fill_(2.))],
    "names of wholes": lambda t: [r.grad_fn.name() for F, y, k in [(t.nn.functional, t.eye(3, requires_grad=True) + 1, t.tensor([0, 2, 1]))] for r in (
        t.masked_fill(y, y > 1, 2.0), t.masked_fill(y, y > 1, t.tensor(2.0)), t.index_fill(y, 0, k, 1.0), t.index_fill(y, 0, k, t.tensor(1.0)),
        t.lerp(y, y, 0.5), t.lerp(y, y, y),
        t.scatter(y, 0, k[None], 1.0), t.scatter(y, 0, k[None], y), F.cross_entropy(y, k), F.cross_entropy(y, y.detach()), F.cross_entropy(y[None], k[None]),
        F.cross_entropy(y, k, label_smoothing=0.1), t.trapezoid(y), t.cumulative_trapezoid(y, y), F.rrelu(y, training=True), t.diag(y), t.atleast_3d(y), y.quantile(0.5),
        y.repeat_interleave(2), y.repeat_interleave(k), F.adaptive_avg_pool3d(y[None, None], 1), F.avg_pool3d(y[None, None], 1), t.linalg.householder_product(y, y[0]),
        t.linalg.lu(y)[1], t.linalg.inv_ex(y)[0], t.combinations(y[0]), F.pairwise_distance(y, y), t.fake_quantize_per_tensor_affine(y, 0.1, 0, 0,
        255), t.expand_copy(y, (2, 3, 3)),
        t.div(y, y, rounding_mode="floor"), t.special.i1(y), y[0] @ y, t.diagonal_scatter(y, y[0]), t.round(y, decimals=1))],
    "nothing scattered": lambda t: [t.ones(3).masked_scatter(t.zeros(3, dtype=t.bool), t.empty(0)), t.nn.functional.rrelu(t.ones(3), training=True),
                                    [(f"{f.name()}", repr(f)[:12]) for x, y in [(t.zeros(2), t.ones(1,
                                    requires_grad=True))] for f in [x.copy_(y).grad_fn, x[:1].mul_(y).grad_fn, x.grad_fn]]],
    "without dimensions": lambda t: [x.flip(0) for x in [t.tensor(2.0, requires_grad=True)]] + [t.zeros(()).mT,
        t.zeros(()).flip(-1)] + [_words(lambda: x[i]) for x in [t.zeros(())]
                                     for i in (0, slice(1, None), (..., 0), (0, 0), (None, 0, 0), (..., slice(1, None)))],
    "copies that do not fit": lambda t: [_words(lambda: t.ones(*s).copy_(t.ones(*o))) for s, o in (((2, 2), (3,)), ((2, 2), (3, 2)), ((2,), (2,
        2)), ((1,), (3,)), ((2, 2), (0,)))],
    "sizes of adaptive pools": lambda t: [_failing(lambda: getattr(t.nn.functional, f)(t.ones(1, 2, 4, 4), s)) for f in ("adaptive_avg_pool2d", "adaptive_max_pool2d",
                                          "adaptive_avg_pool3d") for s in ((2,), [2], (2, 2, 2,
                                          2))] + [_failing(lambda: t.nn.functional.adaptive_avg_pool1d(t.ones(2, 4), (1, 2)))],
    "erfcx at the ends": lambda t: [t.special.erfcx(t.tensor([float("inf"), -float("inf"), 1e300, 2.0], dtype=d)) for d in (t.float32, t.float64)],
    "names of views": lambda t: [v.grad_fn.name() for x in [t.ones(2, 3, 4, requires_grad=True)] for v in (
        x[0], x[0, 1], x[:, 0], x[0, :], x[1:], x[0, 1:], x[1:, 0], x[..., 0], x[..., :2], x[None], x[0, None], x[:, 1:, None], x[:, None, :, 0], x[::2])],
    "gradients of any iterable": lambda t: [t.autograd.grad((x * x).sum(), {"x": x}.values()) for x in [t.ones(2, requires_grad=True)]]
    + [t.autograd.grad((x * x).sum(), (p for p in [x])) for x in [t.ones(2, requires_grad=True)]],
}


@pytest.mark.share(2)
@pytest.mark.parametrize("name", CALLS)
def test_call(name):
    mine, theirs = outcome(CALLS[name], clnn), outcome(CALLS[name], torch)
    assert mine == theirs


def _small_mistakes(t):
    """Calls with an index or a divisor that kernels find out of range; nothing of their results is read."""
    n, f, x, one = t.tensor, t.nn.functional, t.ones(3, 4), t.ones(1, 1)
    return _failing(lambda: x[n([5])], lambda: x.gather(1, n([[9]])), lambda: x.scatter(1, n([[9]]), 1.0), lambda: x.scatter_add(1, n([[9]]), one),
                    lambda: x.index_select(0, n([7])), lambda: x.take(n([99])), lambda: x.index_fill(0, n([7]), 1.0), lambda: t.nn.Embedding(3, 2)(n([5])),
                    lambda: f.cross_entropy(t.ones(2, 3), n([0, 5])), lambda: n([1]) // n([0]), lambda: n([1]) // 0, lambda: n([1]) % 0, lambda: n([3]) // 2)


@pytest.mark.skipif(not clnn.get_default_device().physical.is_cpu, reason="kernels run later there")
def test_small_mistakes_show_at_once():
    expected = _small_mistakes(torch)
    for kernel in list(clnn.get_default_device().physical._kernels.values()):      # as in a new process: one that often took long is not waited for
        kernel.lost = 0.0
        kernel.costs.clear()
    for _ in range(3):                              # built, observed and repeated
        assert _small_mistakes(clnn) == expected
    assert clnn.ones(2).sum() == 2                  # nothing is left over


def test_dtypes_that_are_names():
    """Programs compare dtypes with these and ask for their limits; a tensor of them is refused in words, wherever it would be made."""
    narrow, x = clnn.float8_e4m3fn, clnn.ones(3)
    assert (clnn.complex32 is clnn.chalf, clnn.complex32.is_complex, clnn.complex32.itemsize) == (True, True, 4)
    assert (narrow.itemsize, narrow.is_floating_point, x.dtype == narrow, clnn.finfo(narrow).max, clnn.iinfo(clnn.uint32).max) == (1, True, False, 448.0, 2**32 - 1)
    for call in (lambda: x.to(narrow), lambda: clnn.zeros(3, dtype=narrow), lambda: clnn.tensor([1.0], dtype=narrow), lambda: x.to(clnn.complex32),
                 lambda: clnn.arange(3, dtype=narrow), lambda: clnn.rand(3, dtype=narrow), lambda: clnn.randint(3, (2,), dtype=narrow),
                 lambda: clnn.empty(3, dtype=narrow, device="meta"), lambda: clnn.set_default_dtype(narrow), lambda: clnn.nn.Linear(2, 2).to(narrow)):
        with pytest.raises(TypeError, match="only its name"):
            call()
    with pytest.raises(RuntimeError, match="Promotion"):
        clnn.promote_types(narrow, clnn.float32)


def test_the_default_dtype_may_change_between_calls():
    x = clnn.arange(3)
    for row in (clnn.float32, clnn.float64, clnn.float32):
        clnn.set_default_dtype(row)
        assert [t.dtype for t in (x / 2, x.sqrt(), x * 1.5, clnn.atan2(x, x), x.sigmoid(), clnn.ldexp(x, x), clnn.gradient(x)[0])] == [row] * 7
        assert clnn.logaddexp2(clnn.ones((), dtype=clnn.float16), x).dtype == clnn.logaddexp2(x, x.half()).dtype == clnn.float16
    clnn.set_default_dtype(clnn.float32)


def test_integrals_of_no_samples_and_twice_backward():
    """The former have the dtype of what they are of, and no history; the latter keep nothing that a second pass would lack."""
    def seen(t):
        x, n = t.ones(2, 3, requires_grad=True), t.ones(0, 3, dtype=t.int64)
        for y in (t.trapezoid(x), t.cumulative_trapezoid(x, dim=0), t.trapezoid(x, t.arange(3.0))):
            y.sum().backward()
            y.sum().backward()
        empty = t.trapezoid(x[:0], dim=0)
        return x.grad.tolist(), empty.tolist(), empty.requires_grad, str(t.trapezoid(n, dim=0).dtype)[-5:], t.trapezoid(n).shape[0]
    assert_same(seen)


def _gradients_in_memory(t):
    """Strides of gradients that programs ask for, which they may write to."""
    x, w = t.ones(2, 3, requires_grad=True), t.ones(4, 3, requires_grad=True)
    found = []
    for y in (x.mean(), x.mean(0).sum(), t.nn.functional.pad(x, (1, 1)).sum(), t.nn.functional.adaptive_avg_pool1d(x, 1).sum(), (x @ w.t()).square().sum()):
        g, = t.autograd.grad(y, x)
        found.append((g.stride(), g.add_(1).tolist()))
    hidden = x * 2
    hidden.retain_grad()
    hidden.mean().backward()
    found.append(hidden.grad.mul_(6).tolist())
    for y in ((x @ w.t()).square().sum(), t.nn.functional.linear(x, w).sum(), (w @ x.t()).square().sum()):
        found += [(g.stride(), g.tolist()) for g in t.autograd.grad(y, (x, w))]
    g, = t.autograd.grad((x @ w.t()).square().sum(), w, create_graph=True)
    return [*found, t.autograd.grad(g.square().sum(), w)[0].tolist()]


def test_gradients_can_be_written():
    assert _gradients_in_memory(clnn) == _gradients_in_memory(torch)


def _gradients_of_sums(t):
    x = t.ones(2, 3, requires_grad=True)
    found = [t.autograd.grad(y, x)[0].stride() for y in (x.sum(), (x + 1).sum(), x.sum(0).mul(t.ones(3)).sum(), x.mean(), x.sum(1).prod())]
    (x.sum() * 2).backward()
    return [*found, x.grad.stride(), x.grad.add_(1).tolist(), _failing(lambda: t.autograd.grad(x.sum(), x)[0].add_(1))]


def test_gradients_of_sums_are_views_of_one_element():
    assert _gradients_of_sums(clnn) == _gradients_of_sums(torch)


def _extremes_beside_nan(t):
    x = t.tensor([[1.0, float("nan"), 3.0], [1.0, 2.0, 2.0]], requires_grad=True)
    return [str(t.autograd.grad(y, x)[0].tolist()) for y in (x.amax(1).sum(), x.amin((0, 1)), x.max(), x.min(), x[1].max(), t.aminmax(x, dim=1)[0].sum(),
                                                             x[1].amax((0,), True).sum(), x[1, 0].amax(), x.norm(float("inf")))]


def test_gradients_of_extremes_beside_nan():
    assert _extremes_beside_nan(clnn) == _extremes_beside_nan(torch)


def _flags(t):
    x = t.ones(2)
    return _failing(lambda: x.requires_grad_(1), lambda: setattr(x, "requires_grad", 1), lambda: x.requires_grad_(True).resize_(3),
                    lambda: t.nn.Linear(1, 1).requires_grad_("no"))


def test_flags_are_bools():
    assert _flags(clnn) == _flags(torch) == ["TypeError", "RuntimeError", "RuntimeError", "TypeError"]


def test_names_in_graphs_and_of_constants():
    def names(t):
        x = t.ones(2, requires_grad=True)
        end = (1 - x).grad_fn.next_functions[-1][0]
        return (1 - x).grad_fn.name(), end.name(), type(end).__name__, (x - 1).grad_fn.name()
    assert names(clnn) == names(torch)
    assert [f"{c}" for c in (clnn.strided, clnn.channels_last)] == [str(c) for c in (clnn.strided, clnn.channels_last)] == ["clnn.strided", "clnn.channels_last"]
    with clnn._tensor_str.printoptions(precision=2):
        assert str(clnn.tensor([1.0, 2.555])) == "tensor([1.00, 2.56])"


def test_unknown_backends_of_groups():
    for name, kind in (("foo", AssertionError), ("cpu:foo", AssertionError), (3, ValueError)):
        with pytest.raises(kind):
            clnn.distributed.init_process_group(name, rank=0, world_size=1)
    assert not clnn.distributed.is_initialized()


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_functions_of_two_operands_take_one_that_is_the_same_along_rows(dtype):
    """A driver's compiler may die of its own built-ins there (Intel's does of fmax, fmin, hypot, copysign and nextafter)."""
    names = "fmax fmin hypot copysign nextafter logaddexp logaddexp2 arctan2 fmod maximum".split()
    rng, pairs = np.random.default_rng(0), (((3, 10, 1, 5), (10, 5)), ((40, 40), (40, 1)), ((40, 1), (1, 40)))
    if dtype == "float64" and not clnn.get_default_device().physical.has_fp64:
        pytest.skip("no doubles here")
    found = []
    for shape, other in pairs:
        a, b = (rng.standard_normal(s).astype(dtype) for s in (shape, other))
        a.flat[:3], b.flat[:2] = (np.nan, 0.0, np.inf), (-0.0, np.inf)
        with np.errstate(invalid="ignore"):
            found += [(name, getattr(np, name)(a, b), getattr(clnn, name)(clnn.tensor(a), clnn.tensor(b))) for name in names]
    for name, want, got in found:
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-5 if dtype == "float32" else 1e-13, atol=1e-6 if dtype == "float32" else 1e-14, err_msg=name)


def test_numbers_wrap_around_in_narrow_integers():
    def run(t):
        out = []
        for name, numbers in dict(int8=(200, -200), uint8=(-1, -3, 300), int16=(70000,)).items():
            x = t.tensor([1, 2, 3, 100], dtype=getattr(t, name))
            for v in numbers:
                for y in (v, t.tensor(v)):
                    out += [x // y, x % y, y % x, t.fmod(x, y), t.div(x, y, rounding_mode="trunc"), x < y, t.maximum(x, x + y).sum(), (x > y).sum()]
        return out
    assert_same(run)


BEYOND = {                                              # what numbers that a dtype does not hold do
    "operands": lambda t, x, v: [x.clamp(max=v), x.clamp(v), x.clamp(v, v)], "powers": lambda t, x, v: x ** v,
    "alternatives": lambda t, x, v: t.where(x > 1, x, v), "other alternatives": lambda t, x, v: t.where(x > 1, v, x),
    "factors": lambda t, x, v: t.add(x, x, alpha=v), "product": lambda t, x, v: t.addcmul(x, x, x, value=v),
    "like": lambda t, x, v: t.full_like(x, v), "rows": lambda t, x, v: x.index_fill(0, t.tensor([0]), v),
    "edges": lambda t, x, v: t.nn.functional.pad(x, (1, 1), value=v),
    "scattered": lambda t, x, v: x.scatter(0, t.tensor([0]), v), "threshold": lambda t, x, v: t.nn.functional.threshold(x, 1, v),
    "limits": lambda t, x, v: t.nn.functional.hardtanh(x, -1, v), "scaled rows": lambda t, x, v: x.index_add(0, t.tensor([0]), x[:1], alpha=v),
    "masked": lambda t, x, v: x.masked_fill(x > 1, v), "filled": lambda t, x, v: x.clone().fill_(v), "line": lambda t, x, v: t.linspace(0, v, 2, dtype=x.dtype),
    "element": lambda t, x, v: (x.__setitem__(0, v), x), "part": lambda t, x, v: (x.__setitem__(slice(1, 3), v), x),
    "mask": lambda t, x, v: (x.__setitem__(x > 1, v), x), "diagonal": lambda t, x, v: x.repeat(2, 1).fill_diagonal_(v),
}


@pytest.mark.parametrize("call", BEYOND.values(), ids=BEYOND)
def test_numbers_beyond_a_dtype(call):
    def run(t):
        return [outcome(lambda t: call(t, t.tensor([1, 2, 3, 100], dtype=getattr(t, name)), v), t)
                for name, numbers in dict(int8=(127, 200, -200, 2.5), uint8=(255, 256), int16=(70000,), int32=(2**31,), float16=(6e4, 1e5)).items()
                for v in numbers]
    assert_same(run)


def test_values_beyond_16_bit_floats_are_written_as_infinite():
    def run(t):
        x, mask = t.ones(2, 2, dtype=t.float16), t.tensor([[True, False], [False, True]])
        x[0, 1], x[mask] = 1e9, -1e9
        with pytest.raises(RuntimeError, match="value cannot be converted to type"):
            x[0, 0] = 1j
        return x, x.masked_fill(mask, 2 + 0j), outcome(lambda t: x.masked_fill(mask, -1e9), t)
    assert_same(run)


def test_interpolation_from_the_nearer_end():
    def run(t):
        a, b, w = (t.tensor(v, requires_grad=True) for v in ([1e8, 2.0, 3.0, -1e8], [1.0, 5.0, 1e8, 2.0], [1.0, 0.25, 0.75, 0.5]))
        t.lerp(a, b, w).sum().backward()
        z = t.tensor([1 + 1j, 2.0])
        complexes = [str(t.lerp(z, z * 3, v).tolist()) for v in (0.5j, 0.25, 1.0)]
        return a.grad, b.grad, w.grad, t.lerp(a, b, w), t.lerp(a, b, 1.0), a.lerp(b, 0.1), t.lerp(t.ones(2).half(), t.full((2,), 3.0).half(), 0.9), complexes
    assert_same(run)


FACTORS = {
    "sum": lambda t, x: t.add(x, x, alpha=1j), "product": lambda t, x: x.addcmul(x, x, value=1j), "weight": lambda t, x: x.lerp(x, 1j),
    "quotient": lambda t, x: x.addcdiv(x, x, value=1j), "norm": lambda t, x: t.linalg.vector_norm(x.int(), dtype=t.float32),
    "bytes of a number": lambda t, x: x[0].view(t.uint8), "bytes with gaps": lambda t, x: x[::2].view(t.int16),
    "powers of truth": lambda t, x: [(x > 1) ** True, (x > 1) ** False], "curve": lambda t, x: t.logspace(0, 1j, 3).abs(),
}


@pytest.mark.parametrize("call", FACTORS.values(), ids=FACTORS)
def test_factors_and_dtypes_that_do_not_fit(call):
    assert_same(lambda t: call(t, t.tensor([1.0, 2.0, 3.0])))


def test_operators_whose_calls_are_repeated_refuse_dtypes():
    x = clnn.tensor([True, False])
    for _ in range(3):
        for call in (clnn.cov, clnn.corrcoef, lambda x: x.dot(x)):
            with pytest.raises(RuntimeError, match="not implemented for 'Bool'|bool dtype is not supported"):
                call(x)


@pytest.mark.parametrize("name, shapes", [("addmm", ((3, 4), (3, 5), (5, 4))), ("baddbmm", ((4,), (2, 3, 5), (2, 5, 4))), ("addmv", ((3,), (3, 4), (4,))),
                                          ("addr", ((1, 4), (3,), (4,)))])
def test_a_summand_times_zero_has_a_gradient_of_zeros(name, shapes):
    def run(t):
        first, *factors = (t.ones(*s, requires_grad=True) for s in shapes)
        with t.no_grad():
            first.fill_(float("nan"))                   # not read, as PyTorch says
        result = getattr(t, name)(first, *factors, beta=0)
        result.sum().backward()
        return result.detach(), first.grad, *[f.grad for f in factors]
    assert_same(run)


def _overwritten_by_a_variable(t):
    x, c = t.zeros(2, requires_grad=True), t.ones(1, dtype=t.float64, requires_grad=True)
    y = x * 1
    y.copy_(c)
    z = x * 1
    z.fill_(c.float().sum())
    return (*t.autograd.grad((y * y * z).sum(), (x, c)), y.grad_fn.name(), z.grad_fn.name(), len(y.grad_fn.next_functions), y.grad_fn.next_functions[0][0].name())


@pytest.mark.parametrize("times", [1, 4])           # also where the pass is repeated
def test_what_a_variable_overwrites_gets_a_gradient_of_zeros(times):
    for _ in range(times):
        assert_same(_overwritten_by_a_variable)


def test_truth_values_are_no_dimensions_that_were_met():
    x = clnn.ones(2, 3)
    x.flip(1), x.flip((0, 1))
    for wrong in (lambda: x.flip(True), lambda: x.flip((False, 1)), lambda: x.flip(1.0)):
        with pytest.raises(TypeError):
            wrong()


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_the_least_number_by_minus_one(dtype):
    """Processors stop a program that divides these; PyTorch's quotient wraps around (and its own int32 // in C++ is such a program: no comparison)."""
    least = -2 ** (8 * getattr(clnn, dtype).itemsize - 1)
    x, y = clnn.tensor([least, least, 7], dtype=getattr(clnn, dtype)), clnn.tensor([-1, 3, -1], dtype=getattr(clnn, dtype))
    assert (x // y).tolist() == [least, least // 3, -7] and (x % y).tolist() == [0, least % 3, 0] and x.fmod(y).tolist() == [0, -(-least % 3), 0]
    assert clnn.div(x, y, rounding_mode="trunc").tolist() == [least, -(-least // 3), -7]
