"""Dtypes that losses and searches take together, ranges of arguments, and what they raise, as PyTorch."""
import numpy as np
import pytest
from scenarios import torch

import clnn

DTYPES = ("float32", "float16", "int64", "bool")
LOSSES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss", "hinge_embedding_loss", "kl_div", "binary_cross_entropy",
          "binary_cross_entropy_with_logits")


def result(fn, lib):
    """dtype, shape and values, or what is raised."""
    try:
        got = fn(lib)
    except Exception as error:
        return type(error).__name__, str(error).replace("torch.", "").replace("clnn.", "")[:45]
    if not isinstance(got, lib.Tensor):
        return str(got)
    return str(got.dtype).rpartition(".")[2], tuple(got.shape), got.double().reshape(-1).tolist()


def same(fn, words=True):
    got, want = result(fn, clnn), result(fn, torch)
    if not words:                                                # one is a kind of the other
        got, want = ((r[0].replace("NotImplementedError", "RuntimeError"), *r[1:]) for r in (got, want))
    assert got[:1 + words] == want[:1 + words] and (len(got) < 3 or got[2] == pytest.approx(want[2], abs=1e-3, nan_ok=True)), (got, want)


@pytest.mark.share(3)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.filterwarnings("ignore:Using a target size", "ignore:reduction. 'mean'")
def test_losses_of_two_dtypes(loss):
    for one in DTYPES:
        for two in DTYPES:
            same(lambda t: getattr(t.nn.functional, loss)(t.tensor([0.0, 1.0]).to(getattr(t, one)), t.ones(2).to(getattr(t, two))), words=False)


@pytest.mark.parametrize("loss", LOSSES[:4])
@pytest.mark.filterwarnings("ignore:Using a target size")
def test_losses_without_dimensions(loss):
    for one, two in (("float32", "float64"), ("float64", "float32"), ("float16", "float32"), ("float32", "int64")):
        for a, b in (((), (2,)), ((2,), ()), ((), ())):
            if "float64" not in (one, two) or clnn.zeros(1)._storage.device.has_fp64:
                same(lambda t: getattr(t.nn.functional, loss)(t.full(a, 3.0).to(getattr(t, one)), t.ones(b).to(getattr(t, two))))


@pytest.mark.parametrize("loss", LOSSES[:3])
def test_gradients_of_two_dtypes(loss):
    def gradients(t):
        x, y = t.tensor([1.0, 3.0], dtype=t.float16, requires_grad=True), t.zeros(2, requires_grad=True)
        getattr(t.nn.functional, loss)(x, y).backward()
        return t.stack([x.grad.float(), y.grad]) * (1 if x.grad.dtype is t.float16 else 0)
    same(gradients)


@pytest.mark.parametrize("rows", ["float32", "int64", "int32", "float16"])
def test_searches_of_two_dtypes(rows):
    for values in ("float32", "int64", "int32"):
        for value in (2, [2, 5]):
            same(lambda t: t.searchsorted(t.tensor([1, 2, 3, 4], dtype=getattr(t, rows)), t.tensor(value, dtype=getattr(t, values))))
            same(lambda t: t.bucketize(t.tensor(value, dtype=getattr(t, values)), t.tensor([1, 2, 3, 4], dtype=getattr(t, rows)), right=True, out_int32=True))
    for number in (2, 2.5, True):
        same(lambda t: t.searchsorted(t.tensor([1, 2, 3, 4], dtype=getattr(t, rows)), number))


CALLS = {
    "number in a batch": lambda t: t.searchsorted(t.ones(2, 3), 1.0), "boundaries": lambda t: t.bucketize(1.0, t.ones(2, 3)),
    "sorter": lambda t: t.searchsorted(t.arange(3.0), t.ones(1), sorter=t.zeros(2, dtype=t.int64)),
    "sorter's dtype": lambda t: t.searchsorted(t.arange(3.0), t.ones(1), sorter=t.zeros(3)),
    "trapezoid's points": lambda t: t.trapezoid(t.ones(2, 3), t.ones(2)), "running": lambda t: t.cumulative_trapezoid(t.ones(2, 3), t.ones(2)),
    "points of fewer dimensions": lambda t: t.trapezoid(t.arange(12.0).view(2, 3, 2), t.arange(6.0).view(3, 2) ** 2, dim=1),
    "points of more dimensions": lambda t: t.trapezoid(t.arange(3.0), t.arange(6.0).view(3, 2)),
    "one_hot": lambda t: t.nn.functional.one_hot(t.tensor([0]), 0), "none hot": lambda t: t.nn.functional.one_hot(t.zeros(0, dtype=t.int64), 0),
    "coins of integers": lambda t: t.bernoulli(t.ones(1, dtype=t.int64)), "deviation": lambda t: t.zeros(2).normal_(0, -1),
    "permutation": lambda t: t.randperm(-1), "triangle": lambda t: t.linalg.eigvalsh(t.eye(2), UPLO="X"), "lower": lambda t: t.linalg.eigvalsh(t.eye(2), UPLO="l"),
    "mode": lambda t: t.compile(lambda x: x, mode="nonsense")(t.ones(1)), "backend": lambda t: t.compile(lambda x: x, backend="nonsense"),
    "option": lambda t: t.compile(lambda x: x, options={"max_autotun": True}),
    "option of triton": lambda t: t.compile(lambda x: x, options={"triton": True}), "no flag": lambda t: t.compile(lambda x: x, options={"max-autotune": "x"}),
    "dynamic": lambda t: t.compile(lambda x: x, dynamic=1), "mode of eager": lambda t: t.compile(lambda x: x, backend="eager", mode="nonsense")(t.ones(1)),
    "mode and options": lambda t: t.compile(lambda x: x, mode="default", options={"trace.enabled": True})(t.ones(1))}

CALLS.update({                                                   # operands that do not fit each other
    "features": lambda t: t.nn.Linear(3, 2)(t.ones(2, 4)), "matrices": lambda t: t.ones(2, 3) @ t.ones(2, 3),
    "matrix and vector": lambda t: t.ones(2, 3) @ t.ones(2),
    "vectors": lambda t: t.ones(2) @ t.ones(3), "stacks": lambda t: t.ones(2, 2, 3) @ t.ones(2, 2, 3), "leading sizes": lambda t: t.ones(2, 2, 3) @ t.ones(3, 3, 3),
    "features of doubles": lambda t: t.nn.Linear(3, 2)(t.ones(2, 3, dtype=t.float16)), "matrices of two dtypes": lambda t: t.ones(2, 2) @ t.ones(2, 2).long(),
    "bias": lambda t: t.nn.functional.conv1d(t.ones(1, 1, 3), t.ones(1, 1, 2), t.ones(1).half()),
    "attention": lambda t: t.nn.functional.scaled_dot_product_attention(t.ones(2, 2), t.ones(2, 2), t.ones(2, 2).half()),
    "complex places": lambda t: t.randint(0, 2, (2,), dtype=t.complex64),
    "padding": lambda t: t.nn.functional.pad(t.ones(2, 3), (1,) * 6), "odd padding": lambda t: t.nn.functional.pad(t.ones(2, 3), (1,)),
    "layer of a number": lambda t: t.nn.functional.layer_norm(t.ones(2, 3), 3), "no mean": lambda t: t.nn.functional.batch_norm(t.ones(2, 3), None, t.ones(3)),
    "lerp": lambda t: t.ones(2).lerp(t.ones(2).half(), 0.5), "solve": lambda t: t.linalg.solve(t.eye(2), t.ones(2).half()),
    "cdist": lambda t: t.cdist(t.ones(2, 2).long(), t.ones(2, 2).long()), "take_along_dim": lambda t: t.take_along_dim(t.ones(2), t.zeros(2).int(), 0),
    "groups": lambda t: t.nn.functional.conv_transpose1d(t.ones(1, 2, 3), t.ones(2, 1, 2), groups=3), "pool": lambda t: t.nn.functional.max_pool2d(t.ones(1, 2, 3, 3), 4),
    "negative bools": lambda t: -t.tensor([True]), "bools": lambda t: t.tensor([True]) - t.tensor([True]),
    "copied rows": lambda t: t.ones(3, 2).index_copy(0, t.tensor([0]), t.ones(2)),
    "gathered into itself": lambda t: (lambda x: t.gather(x, 0, t.tensor([0, 0]), out=x))(t.ones(2))})


@pytest.mark.parametrize("name", CALLS)
def test_call(name):
    same(CALLS[name])


@pytest.mark.parametrize("call", [lambda t, a: t.linalg.lu(a, pivot=False), lambda t, a: t.linalg.lu_factor(a, pivot=False),
                                  lambda t, a: t.linalg.lu_factor_ex(a, pivot=False), lambda t, a: t.linalg.svdvals(a, driver="gesvd")])
def test_only_on_other_devices(call):
    if clnn.zeros(1)._storage.device.kind == "cpu":
        same(lambda t: call(t, t.eye(2)))


NATIVE = {
    "bce": lambda t, a, b: a.binary_cross_entropy(b * 0.3, b, None, 2), "logits": lambda t, a, b: a.binary_cross_entropy_with_logits(b * 0.3, b, None, b * 2, 2),
    "kl_div": lambda t, a, b: a.kl_div(b, b * 2, 2), "l1": lambda t, a, b: a.l1_loss(b, b * 2, 2), "mse": lambda t, a, b: a.mse_loss(b, b * 3, 0),
    "smooth": lambda t, a, b: a.smooth_l1_loss(b, b * 3, 2, 2.0), "huber": lambda t, a, b: a.huber_loss(b, b * 3, 2, 1.5),
    "hinge": lambda t, a, b: a.hinge_embedding_loss(b, b, 1.0, 2), "margin": lambda t, a, b: a.soft_margin_loss(b, b * 3, 2),
    "ranking": lambda t, a, b: a.margin_ranking_loss(b, b * 3, b, 0.5, 2), "cosine": lambda t, a, b: a.cosine_embedding_loss(b[None], b[None], -b[:1], 0.5, 2),
    "triplet": lambda t, a, b: a.triplet_margin_loss(b[None], b[None] * 3, b[None], 1.0, 2.0, 1e-6, False, 2),
    "poisson": lambda t, a, b: a.poisson_nll_loss(b, b * 3, True, False, 1e-8, 2), "nll": lambda t, a, b: a.nll_loss(-b[None], t.tensor([0]), None, 2, -100),
    "cross_entropy": lambda t, a, b: a.cross_entropy_loss(b[None] * 0, t.tensor([0]), None, 2, -100, 0.1), "elu": lambda t, a, b: a.elu(-b, 1.0, 2.0, 0.5),
    "group_norm": lambda t, a, b: a.group_norm(t.arange(12.0).view(1, 4, 3), 2, None, None, 1e-5, True), "stack": lambda t, a, b: a._stack([b, b], 0),
    "logcumsumexp": lambda t, a, b: a._logcumsumexp(b, 0), "aminmax": lambda t, a, b: t.stack(list(a._aminmax(b * 2)))}


@pytest.mark.parametrize("name", NATIVE)
@pytest.mark.filterwarnings("ignore:_aminmax")
def test_native_orders(name):
    same(lambda t: NATIVE[name](t, t.ops.aten, t.ones(3)))


def test_arguments_that_are_missing_or_of_another_kind():
    F = clnn.nn.functional
    for fn, words in ((lambda t: t.randint(5), "got (int), but expected one of"), (lambda t: t.randint(0, 5, 3), "got (int, int, int), but expected one of"),
                      (lambda t: t.arange(), "arange()"), (lambda t: t.nn.functional.pad(t.ones(2), 1), "'pad' (position 2) must be tuple of ints, not int"),
                      (lambda t: t.nn.functional.conv2d(t.ones(1, 1, 2, 2)), "conv2d()"), (lambda t: t.nn.functional.avg_pool1d(t.ones(1, 2)), "avg_pool1d()")):
        got, want = result(fn, clnn), result(fn, torch)
        assert got[0] == want[0] == "TypeError"
        with pytest.raises(TypeError) as seen:
            fn(clnn)
        assert words in str(seen.value) and "<locals>" not in str(seen.value)
    assert clnn.arange(end=3).tolist() == [0, 1, 2] and F.pad(clnn.ones(1), [1, 1]).tolist() == [0, 1, 0]


@pytest.mark.parametrize("call", [
    lambda t, x, i: x.gather(0, i), lambda t, x, i: x.scatter(0, i, 1.0), lambda t, x, i: x.scatter_add(0, i, x),
    lambda t, x, i: x.gather(0, t.zeros(9, 9, dtype=t.long)),
    lambda t, x, i: x.expand(2, 3), lambda t, x, i: x.expand_as(t.zeros(2, 2)), lambda t, x, i: x[None].expand(3, 3, 5)])
def test_sizes_that_do_not_fit(call):
    """Which of two sizes is named, and the words up to what clnn adds."""
    texts = []
    for lib in (clnn, torch):
        with pytest.raises(RuntimeError) as caught:
            call(lib, lib.zeros(3, 4), lib.zeros(3, dtype=lib.long))
        texts.append(str(caught.value))
    assert texts[0].startswith(texts[1])


@pytest.mark.parametrize("name", ["abs", "fix", "sign", "signbit", "isposinf", "all", "any", "amax", "index_select", "masked_select", "take", "nan_to_num",
                                  "heaviside", "dot", "where", "complex", "inner", "float_power"])
def test_targets_of_other_dtypes(name):
    def words(t):
        x, i = t.tensor([1.5, 2.5]), t.tensor([0, 1])
        given = {"index_select": (x, 0, i), "masked_select": (x, x > 2), "take": (x, i), "where": (x > 2, x, x), "amax": (x, 0), "all": (x, 0), "any": (x, 0)}.get(
            name, (x, x) if name in ("heaviside", "dot", "complex", "inner", "float_power") else (x,))
        try:
            return getattr(t, name)(*given, out=t.empty(0, dtype=t.int16))
        except RuntimeError as error:
            return str(error)
    assert words(clnn) == words(torch)


def test_sums_into_a_target_have_its_dtype():
    for call in (lambda t, o: t.sum(t.tensor([[1.5, 2.5], [1.75, 0.5]]), 0, out=o), lambda t, o: t.prod(t.tensor([[1.5, 2.5], [1.75, 1.5]]), 0, out=o),
                 lambda t, o: t.sum(t.ones(2), 0, dtype=t.float16, out=o)):
        for dtype in ("int64", "float16", "bool"):
            same(lambda t: call(t, t.empty(0, dtype=getattr(t, dtype))))
    for call in (lambda t: t.ones(1).addmm_(t.eye(2), t.eye(2)), lambda t: t.ones(()).addmv_(t.eye(2), t.ones(2)), lambda t: t.ones(2).hsplit(0),
                 lambda t: t.ones(2).vsplit(1)):
        same(call)


@pytest.mark.parametrize("name", ["layer_norm", "group_norm", "batch_norm", "fixed batch_norm", "instance_norm", "prelu", "nll_loss", "cross_entropy", "bilinear"])
def test_parameters_of_another_dtype(name):
    kinds = [k for k in ("float32", "float64", "float16", "bfloat16") if k != "float64" or clnn.zeros(1)._storage.device.has_fp64]
    for one in kinds:
        for two in kinds:
            for three in (two,) if "batch" in name else (two, one):
                def call(t):
                    F, x = t.nn.functional, t.linspace(-1, 1, 24).view(2, 4, 3).to(getattr(t, one))
                    w, b = (t.linspace(1, 2, 4).to(getattr(t, kind)) for kind in (two, three))
                    y = {"layer_norm": lambda: F.layer_norm(x, (3,), w[:3].clone(), b[:3].clone()), "group_norm": lambda: F.group_norm(x, 2, w, b),
                         "batch_norm": lambda: F.batch_norm(x, w.clone(), w.clone(), b, b, True), "fixed batch_norm": lambda: F.batch_norm(x, w, w, b, b),
                         "instance_norm": lambda: F.instance_norm(x, None, None, w, b), "prelu": lambda: F.prelu(x, w),
                         "nll_loss": lambda: F.nll_loss(x, t.zeros(2, 3, dtype=t.int64), w), "bilinear": lambda: F.bilinear(x, x, w.expand(2, 3, 4)[..., :3]),
                         "cross_entropy": lambda: F.cross_entropy(x, t.zeros(2, 3, dtype=t.int64), w)}[name]()
                    return str(y.dtype)[5:].lstrip(".")
                same(call)


@pytest.mark.parametrize("call", [
    lambda t: t.nn.functional.interpolate(t.ones(2, 2), scale_factor=2), lambda t: t.nn.functional.interpolate(t.ones(1, 1, 2), scale_factor=2, mode="bicubic"),
    lambda t: t.nn.ConvTranspose1d(1, 1, 3, output_padding=2)(t.ones(1, 1, 3)), lambda t: t.nn.ConvTranspose3d(1, 1, 3, output_padding=2)(t.ones(1, 1, 3, 3, 3)),
    lambda t: t.nn.Bilinear(2, 3, 4)(t.ones(1, 2), t.ones(1, 2)), lambda t: t.nn.Bilinear(2, 3, 4)(t.ones(2, 2), t.ones(1, 3)),
    lambda t: t.nn.functional.pad(t.ones(3), (1, 1), mode="reflect"), lambda t: t.nn.Bilinear(2, 3, 4)(t.ones(2, 2), t.ones(3))])
def test_whole_words(call):
    def words(t):
        with pytest.raises((RuntimeError, NotImplementedError, ValueError)) as caught:
            call(t)
        return caught.type.__name__, str(caught.value)
    assert words(clnn) == words(torch)


@pytest.mark.parametrize("call", [
    lambda t: t.nn.functional.upsample(t.ones(1, 1, 2, 2), scale_factor=2), lambda t: t.nn.functional.dropout2d(t.ones(2, 2, 2)), lambda t: t.nn.NLLLoss2d(),
    lambda t: t.nn.functional.dropout2d(t.ones(2, 2)), lambda t: t.nn.functional.dropout3d(t.ones(2, 2, 2))])
def test_whole_warnings(call):
    def words(t):
        with pytest.warns((UserWarning, FutureWarning)) as heard:
            call(t)
        return [(w.category, str(w.message)) for w in heard]
    assert words(clnn) == words(torch)


def kinds(fn, t):
    """What a call gives, or the class of what it raises."""
    try:
        got = fn(t)
    except Exception as error:
        return "RuntimeError" if isinstance(error, clnn.DeviceError) else type(error).__name__
    parts = got if isinstance(got, tuple) else (got,)
    return [(str(p.dtype).rpartition(".")[2], p.tolist()) if isinstance(p, t.Tensor) else str(p) for p in parts]


def alike(*calls):
    for number, fn in enumerate(calls):
        assert kinds(fn, clnn) == kinds(fn, torch), number


def test_calls_without_their_arguments():
    one = lambda t: t.ones(2, 3)
    for name in "zeros ones empty rand randn".split():
        alike(lambda t: getattr(t, name)(), lambda t: tuple(getattr(t, name)(()).shape))
    for name in "view reshape permute expand repeat tile resize_ new_zeros new_ones new_empty".split():
        alike(lambda t: getattr(one(t), name)())
    alike(lambda t: t.tensor(1.0).view(()), lambda t: t.tensor(1.0).permute(()), lambda t: t.tensor(1.0).expand(()), lambda t: t.full((), 2.0),
          lambda t: one(t).resize_as_(t.tensor(1.0)), lambda t: t.einsum("i,i", t.ones(2), t.ones(2)), lambda t: t.tensordot(t.tensor(1.0), t.tensor(2.0), 0),
          lambda t: t.tensordot(t.tensor(1.0), t.tensor(2.0), 1), lambda t: t.tensordot(t.tensor(1.0), t.tensor(2.0)))


def test_arguments_of_other_types():
    one = lambda t: t.ones(2, 3)
    alike(lambda t: one(t).max(None), lambda t: t.min(one(t), dim=None), lambda t: one(t).max(), lambda t: t.zeros(2, layout=1), lambda t: t.linspace(0, "a", 3),
          lambda t: t.linspace(0, 1, "a"), lambda t: t.logspace("a", 1, 3), lambda t: t.arange(0, "a"), lambda t: t.eye("a"), lambda t: t.zeros(2, out=1),
          lambda t: t.full((2,), one(t)), lambda t: t.div(one(t), one(t), rounding_mode=1), lambda t: t.div(one(t), one(t), rounding_mode="a"))
    for name in ("a", "cp", "", "CPU", " cpu", "cpu:", "cpu:01", "cpu:-1", "float32"):
        alike(lambda t: t.device(name), lambda t: t.zeros(2, device=name))
    assert clnn.device(clnn.ones(1)._storage.device.name.split()[0]).type == clnn.ones(1).device.type      # a word of a device's name names it


@pytest.mark.parametrize("name", """argmax argmin argsort sort msort topk maximum fmax deg2rad frexp heaviside isposinf nansum quantile positive relu cov
                                    cosine_similarity cholesky_inverse lu_solve""".split())
def test_dtypes_that_the_operator_refuses(name):
    more = dict(topk=lambda x: (1,), quantile=lambda x: (0.5,), maximum=lambda x: (x,), fmax=lambda x: (x,), heaviside=lambda x: (x,),
                cosine_similarity=lambda x: (x, 0), lu_solve=lambda x: (x, x)).get(name, lambda x: ())
    for row in ("complex64", "bool", "int64") if name in ("cholesky_inverse", "relu", "cov") else ("complex64",):
        def call(t):
            x = t.ones(2, 2).to(getattr(t, row))
            return str(getattr(t, name)(x, *more(x)))
        if name not in ("positive", "cov", "cholesky_inverse", "lu_solve") or row != "complex64":
            assert (kinds(call, clnn) == "RuntimeError") is (kinds(call, torch) == "RuntimeError"), row


def test_out_where_there_is_none():
    x = lambda t: t.tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
    whole = lambda t: t.empty(0, dtype=t.int64)
    alike(*[lambda t, f=f: getattr(t, f)(x(t), out=t.empty(0)) for f in "positive real cov trapezoid unique relu isnan trace tile sum prod median".split()],
          *[lambda t, f=f: getattr(t.nn.functional, f)(x(t), out=t.empty(0)) for f in "elu leaky_relu hardsigmoid hardswish relu softsign".split()],
          lambda t: t.roll(x(t), 1, out=t.empty(0)), lambda t: t.rot90(x(t), out=t.empty(0)), lambda t: t.argsort(x(t), out=whole(t)),
          lambda t: t.count_nonzero(x(t), out=whole(t)), lambda t: t.tril_indices(2, 2, out=whole(t)), lambda t: t.sum(x(t), None, out=t.empty(())),
          lambda t: t.sum(x(t), 1, out=t.empty(2)), lambda t: t.ops.aten.roll.out(x(t), [1], [0], out=t.empty(0)),
          lambda t: t.ops.aten.elu.out(x(t), out=t.empty(0)))


def test_out_of_other_dtypes_and_memory():
    if not clnn.ones(1)._storage.device.has_fp64:
        pytest.skip("needs doubles")
    x = lambda t: t.tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]) / 3
    wide = lambda t, *s: t.empty(*s, dtype=t.float64)
    alike(lambda t: t.clamp(x(t), x(t), x(t) + 1, out=wide(t, 2, 3)), lambda t: t.clamp(x(t), 1, 2, out=wide(t, 2, 3)),
          lambda t: t.clamp_min(x(t), 1, out=wide(t, 2, 3)), lambda t: t.clamp_max(x(t), x(t), out=wide(t, 2, 3)),
          lambda t: t.mean(x(t), 1, out=wide(t, 2)), lambda t: t.nansum(x(t), 1, out=wide(t, 2)), lambda t: t.nanmean(x(t), 1, out=wide(t, 2)),
          lambda t: t.mean(x(t), 1, dtype=t.float64, out=t.empty(2)))
    assert t_close(lambda t: t.var(x(t), 1, out=wide(t, 2)))

    def own(t):
        y = x(t)
        return t.max(y, 0, out=(y[0], t.empty(3, dtype=t.int64)))
    alike(own)


def t_close(fn):
    return fn(clnn).tolist() == pytest.approx(fn(torch).tolist(), rel=1e-15)


def test_embedding_bag_as_operator():
    for mode in range(3):
        for last in (False, True):
            for padding in (None, 1):
                alike(lambda t: t.embedding_bag(t.arange(8.0).view(4, 2), t.tensor([0, 1, 2, 3, 1]), t.tensor([0, 2, 2]), False, mode, False, None, last, padding))


@pytest.mark.filterwarnings("ignore:put_ does not have")
def test_deterministic_mode():
    def within(call, **how):
        def run(t):
            t.use_deterministic_algorithms(True, **how)
            try:
                return str(call(t)).replace("clnn", "torch")
            finally:
                t.use_deterministic_algorithms(False)
        return run
    unpool = lambda t: t.nn.functional.max_unpool2d(*t.nn.functional.max_pool2d(t.arange(16.0).view(1, 1, 4, 4), 2, return_indices=True), 2)
    put = lambda t: t.zeros(2).put_(t.tensor([0]), t.tensor([1.0]))
    alike(within(unpool), within(put), within(put, warn_only=True), within(lambda t: t.zeros(2).resize_(4)), within(lambda t: t.zeros(2, dtype=t.int32).resize_(3)),
          within(lambda t: t.zeros(2).put_(t.tensor([0]), t.tensor([1.0]), accumulate=True)))


def test_names_of_gradients():
    def mask(t):
        y = t.zeros(2, 3, requires_grad=True) * 1
        y[t.tensor([[True, False, True], [False, True, True]])] = 1.0
        return y.grad_fn.name()
    alike(mask, lambda t: t.zeros(2, 3, requires_grad=True).repeat_interleave(2, 1).grad_fn.name(),
          lambda t: t.addcmul(t.tensor([True, False]), t.ones(2), t.ones(2), value=0.5))


def words(fn, t):
    with pytest.raises(RuntimeError) as caught:
        fn(t)
    return str(caught.value)


def test_windows_larger_than_their_input():
    x = lambda t, nd: t.ones((1, 1) + (2,) * nd)
    for kind in ("max", "avg"):
        for nd in (1, 2, 3):
            call = lambda t: getattr(t.nn.functional, f"{kind}_pool{nd}d")(x(t, nd), 3)
            assert words(call, clnn) == words(call, torch)
    for how in (dict(padding=2), dict(dilation=0)):
        call = lambda t: t.nn.functional.max_pool2d(x(t, 2), 2, **how)
        assert words(call, clnn) == words(call, torch)


def test_rows_of_grouped_products_begin_every_16_bytes():
    ends = lambda t: t.tensor([2, 4], dtype=t.int32)
    for shape in ((4, 3), (3, 4), (4, 4), (4, 8), (4, 12)):
        for use in (lambda m: m, lambda m: m.T, lambda m: m[:, ::2], lambda m: m[:, :3]):
            def call(t):
                a = use(t.ones(shape))
                return t.nn.functional.grouped_mm(a, t.ones(2, a.shape[1], 4), offs=ends(t))
            if use(torch.ones(shape)).shape[0] == 4:
                alike(call)


@pytest.mark.filterwarnings("ignore")
def test_quantised_recurrent_layers_want_batches():
    def call(t):
        q = t.ao.quantization.quantize_dynamic(t.nn.Sequential(t.nn.LSTM(3, 4)), {t.nn.LSTM})
        return q[0](t.ones(*shape))[0].shape
    for shape in ((5, 3), (3,), (5, 2, 3)):
        alike(call)


@pytest.mark.filterwarnings("ignore:Initializing zero-element")
def test_layers_of_impossible_sizes():
    for nd in (1, 2, 3):
        x = lambda t: t.ones((1, 2) + (7,) * nd)
        alike(lambda t: getattr(t.nn, f"Conv{nd}d")(2, 4, 0)(x(t)), lambda t: getattr(t.nn, f"ConvTranspose{nd}d")(2, 4, 0)(x(t)),
              lambda t: getattr(t.nn.functional, f"conv_transpose{nd}d")(x(t), t.ones((2, 4) + (3,) * nd), padding="same"),
              lambda t: getattr(t.nn, f"AdaptiveAvgPool{nd}d")(None)(x(t)), lambda t: getattr(t.nn, f"AdaptiveMaxPool{nd}d")(None)(x(t)))


def test_words_of_wrong_calls():
    """The first error of a call in PyTorch's words, whole: signatures with what does not match, counted as the program wrote it, as a function or a method."""
    def words(call, t):
        with pytest.raises(TypeError) as caught:
            eval(call, {"torch": t, "F": t.nn.functional, "x": t.ones(2, 3), "i": t.arange(3), "np": np})
        return str(caught.value).replace("clnn", "torch")
    calls = """torch.add(1) torch.add(x) torch.mul(x) torch.mul(x,x,x,x) torch.div(x) torch.pow(2,3) torch.pow(x,'a') torch.matmul(x,1) torch.bmm(x)
        torch.exp([1]) torch.tanh(np.zeros(3)) torch.sum(x,'a') torch.sum(x,0,keepdim=1) x.sum('a') x.sum((1.0,)) x.mean(True)
        x.mean(dim=1,keepdim='a') torch.prod(x,(0,1)) torch.std(x,1.0) torch.max(x,1.5) x.any('a') x.any(1.5) torch.sum(x,0,keepdim=None)
        torch.argmax(x,1,keepdim=None) torch.logsumexp(x,dim=None) torch.median(x,dim=None) torch.aminmax(x,dim=(0,1)) x.cumsum('a') x.cumsum()
        torch.sort(x,'a') torch.topk(x,1.5) torch.zeros('a') torch.ones([2,'a']) torch.empty([None]) torch.randn(1.5) torch.cat()
        torch.cat([x,x],dim=1.5) torch.stack([x,x],'a') torch.transpose(x,0) x.transpose('a',1) x.view('a') x.view(2,'a') x.view((2,3.5))
        x.reshape(2,1.5) x.permute('a') x.expand(2,None) x.repeat('a') x.unsqueeze() x.squeeze('a') x.add('a') x.add_('a') x.mul_('a') x.add_()
        x.masked_fill(x>1,'a') x.masked_fill_(x>1,None) x.copy_([1]) x.expand_as(1) x.type_as(1) x.clamp_('a') x.gather(0) torch.gather(x,i,0)
        F.linear(x) F.linear(x,1) F.conv2d(x) F.conv2d(x,1) F.pad(x,(1,1.5)) F.one_hot(i,1.5) F.cosine_similarity(x,x,dim='a') torch.clamp(x,'a')
        torch.where(1,x,x)""".split()
    for call in calls:
        assert words(call, clnn) == words(call, torch), call
    assert clnn.ones(2, 3).add(clnn.ones(3), alpha=2).sum() == 18           # what fits is not looked at


@pytest.mark.parametrize("make", [lambda t: t.ones(2, 3), lambda t: t.nn.Linear(3, 2)], ids=["tensor", "module"])
def test_forms_of_to(make):
    """Which arguments ``to`` takes, and what it says of others: a name that it does not know is no more passed over."""
    def outcome(call, t):
        try:
            got = eval(f"v.to({call})", {"torch": t, "v": make(t), "y": t.ones(2, dtype=t.float64)})
            return str(got.weight.dtype if isinstance(got, t.nn.Module) else got.dtype).rpartition(".")[2]
        except Exception as error:
            return type(error).__name__, str(error).replace("clnn", "torch")
    for call in """foo=1 tensor=y other=y [1] 'cpu',foo=1 torch.float64,'cpu' torch.float64,torch.float32 'cpu','cpu' y,torch.float32 dtype='float64' device=1.5 copy=1
            non_blocking=1 memory_format=1 'cpu',True torch.float64,dtype=torch.float32 layout=torch.strided float torch.float64,True 'cpu',torch.float64,True,False
            y,copy=True y,True dtype=float 'cpu',torch.float64,non_blocking=True None,torch.float64 device=None,dtype=None torch.float64,copy=True""".split():
        assert outcome(call, clnn) == outcome(call, torch), call


def test_old_order_still_warns():
    x = clnn.ones(2)
    with pytest.warns(UserWarning, match="deprecated"):
        assert clnn.add(x, 2, x).tolist() == [3.0, 3.0]

WRONG_CALLS = """torch.zeros(3, dtype=torch.int8).masked_fill(m, torch.tensor(300))
torch.zeros(3, dtype=torch.int8).masked_fill_(m, torch.tensor(300))
torch.zeros(3, dtype=torch.int8).masked_fill(m, torch.tensor(3))
torch.zeros(3).masked_fill(m, torch.tensor(1e300, dtype=torch.float64))
torch.zeros(3, dtype=torch.int8).index_fill(0, torch.tensor([0]), torch.tensor(300))
torch.zeros(2, dtype='float32')
torch.tensor([1], dtype='float32')
torch.full((2,), 1, dtype='int')
torch.zeros(2, dtype=1)"""


@pytest.mark.parametrize("call", WRONG_CALLS.split("\n"))
def test_wrong_calls(call):
    """Numbers beyond a dtype, names in place of dtypes, and so on: what PyTorch says of them, word by word."""
    def outcome(t):
        try:
            return str(eval(call, {"torch": t, "m": t.tensor([True, False, True])})).replace("clnn", "torch")
        except Exception as error:
            return type(error).__name__, str(error).replace("clnn", "torch")
    assert outcome(clnn) == outcome(torch)


@pytest.mark.parametrize("at", [3, -1])
def test_rows_that_are_not_there(at):
    for name in ("index_add", "index_select"):
        for t in (torch, clnn):
            with pytest.raises(IndexError, match="index out of range in self"):
                getattr(t.zeros(3), name)(0, t.tensor([at]), *[t.ones(1)] * (name == "index_add")).tolist()
    for t in (torch, clnn):
        with pytest.raises(RuntimeError, match=f"index {at} is out of bounds for dimension 0 with size 3"):
            t.zeros(3, 2).index_add_(0, t.tensor([at]), t.ones(1, 2)).tolist()
