"""Arguments that PyTorch refuses or warns about: random numbers, targets of ``out=``, numbers in place of tensors, deprecated forms."""
import warnings

import numpy as np
import pytest
from scenarios import torch

import clnn

REFUSED = {
    "bernoulli above 1": lambda t: t.bernoulli(t.tensor([0.5, 1.5])).sum().item(),
    "bernoulli below 0": lambda t: t.bernoulli(t.tensor([-0.1])).item(),
    "bernoulli of NaN": lambda t: t.zeros(2).bernoulli_(t.tensor([float("nan"), 0.5])).tolist(),
    "bernoulli number": lambda t: t.zeros(3).bernoulli_(1.5),
    "normal": lambda t: t.normal(t.zeros(2), -1.0),
    "normal tensor": lambda t: t.normal(t.zeros(2), t.tensor([1.0, -1.0])).tolist(),
    "poisson": lambda t: t.poisson(t.tensor([-1.0])),
    "multinomial": lambda t: t.multinomial(t.tensor([-1.0, 2.0]), 1),
    "multinomial of nothing": lambda t: t.multinomial(t.tensor([0.0, 0.0]), 1),
    "out of sort": lambda t: t.sort(t.ones(2), out=(t.ones(2), t.ones(2))),
    "out of topk": lambda t: t.topk(t.ones(2), 1, out=(t.ones(1), t.ones(1))),
    "out that repeats itself": lambda t: t.add(t.ones(3), 1, out=t.ones(1).expand(3)),
    "in place that repeats itself": lambda t: t.ones(1).expand(3).add_(1),
    "in place on a part of itself": lambda t: (lambda x: x[1:].add_(x[:-1]))(t.ones(4)),
    "in place on its transpose": lambda t: (lambda x: x.mul_(x.t()))(t.ones(2, 2)),
    "copy of a part of itself": lambda t: (lambda x: x[1:].copy_(x[:-1]))(t.ones(4)),
    "index on a part of itself": lambda t: (lambda x: x.__setitem__(t.tensor([1, 2, 3]), x[:3]))(t.ones(4)),
    "scatter of a part of itself": lambda t: (lambda x: x[1:].scatter_(0, t.tensor([0, 1]), x[:2]))(t.ones(4)),
    "out that is a part of the input": lambda t: (lambda x: t.exp(x[1:], out=x[:-1]))(t.ones(4)),
    "out that is a part of an input of a list": lambda t: (lambda x: t.cat([x[:2], x[2:4]], out=x[1:5]))(t.ones(6)),
    "maximum of a number": lambda t: t.maximum(t.ones(2), 1.0),
    "logical_and of a number": lambda t: t.ones(2).logical_and(1),
    "eq of a number and a tensor": lambda t: t.eq(1, t.ones(2)),
    "atan2 of numbers": lambda t: t.atan2(1.0, 2.0),
    "logaddexp2 of a number": lambda t: t.logaddexp2(t.ones(2), 1.0),
    "hypot of integers": lambda t: t.hypot(t.ones(2, dtype=t.int32), t.ones(2, dtype=t.int32)),
    "mse_loss of integers": lambda t: t.nn.functional.mse_loss(t.ones(2, dtype=t.int64), t.ones(2, dtype=t.int64)),
    "floor of bool": lambda t: t.ones(2, dtype=t.bool).floor(),
    "bag of integers": lambda t: t.nn.functional.embedding_bag(t.tensor([[0, 1]]), t.ones(2, 2, dtype=t.int64)),
    "kthvalue of bool": lambda t: t.ones(2, dtype=t.bool).kthvalue(1),
    "bool powers": lambda t: t.ones(2, dtype=t.bool).pow(t.ones(2, dtype=t.bool)),
    "unravel_index of floats": lambda t: t.unravel_index(t.ones(2), (2, 2)),
    "tril_indices of floats": lambda t: t.tril_indices(2, 2, dtype=t.float32),
    "linspace of bool": lambda t: t.linspace(0, 1, 3, dtype=t.bool),
    "linspace of 2.5 steps": lambda t: t.linspace(0, 1, 2.5),
    "vecdot of integers": lambda t: t.linalg.vecdot(t.ones(2, dtype=t.int64), t.ones(2, dtype=t.int64)),
    "negative rtol": lambda t: t.isclose(t.ones(2), t.ones(2), rtol=-1.0),
    "renorm of a vector": lambda t: t.renorm(t.ones(2), 2, 0, 1.0),
    "negative weights": lambda t: t.cov(t.ones(2, 3), fweights=t.tensor([1, -1, 2])),
    "out of another dtype": lambda t: t.norm(t.ones(2), out=t.zeros((), dtype=t.float64)),
    "out of positions": lambda t: t.argmax(t.ones(2), out=t.zeros(())),
    "out of all": lambda t: t.all(t.ones(2), out=t.zeros((), dtype=t.int64)),
    "floor out of another dtype": lambda t: t.floor(t.ones(2), out=t.zeros(2, dtype=t.float64)),
    "mv out of another dtype": lambda t: t.mv(t.ones(2, 2), t.ones(2), out=t.zeros(2, dtype=t.float64)),
    "arange out of another dtype": lambda t: t.arange(3, dtype=t.int32, out=t.zeros(3)),
    **{f"{n} out of another dtype": lambda t, n=n: getattr(t, n)(t.ones(2), out=t.zeros(2, dtype=t.float64)) for n in ("neg", "sign", "trunc", "nan_to_num")},
    "softmax out of another dtype": lambda t: t.softmax(t.ones(2), 0, out=t.zeros(2, dtype=t.float64)),
    "take out of another dtype": lambda t: t.take(t.ones(2), t.tensor([0]), out=t.zeros(1, dtype=t.float64)),
    "cat out of another dtype": lambda t: t.cat([t.ones(2)], out=t.zeros(2, dtype=t.int32)),
    "clamp out of another dtype": lambda t: t.clamp(t.ones(2), 0, 1, out=t.zeros(2, dtype=t.float64)),
    "list as out": lambda t: t.add(t.ones(2), 1, out=[t.ones(2)]), "numbers as out": lambda t: t.matmul(t.ones(2, 2), t.ones(2), out=[1.0, 2.0]),
    "take_along_dim out of itself": lambda t: (lambda x: t.take_along_dim(x, t.tensor([0, 0]), 0, out=x))(t.ones(2)),
    "gamma of half": lambda t: t._standard_gamma(t.ones(2, dtype=t.float16)), "gamma of integers": lambda t: t._standard_gamma(t.ones(2, dtype=t.int64)),
    "poisson of integers": lambda t: t.poisson(t.ones(2, dtype=t.int64)), "tangents of integers": lambda t: t.func.jvp(t.sin, (t.ones(2),), (t.ones(2).long(),)),
    "lengths in rows": lambda t: t.nn.utils.rnn.pack_padded_sequence(t.ones(2, 3), t.tensor([[3, 2]]), batch_first=True),
    "sort out of another dtype": lambda t: t.sort(t.ones(2), out=(t.zeros(2, dtype=t.float64), t.zeros(2, dtype=t.int64))),
    "renorm out of another dtype": lambda t: t.renorm(t.ones(2, 2), 2, 0, 1.0, out=t.zeros(2, 2, dtype=t.float64)),
    "no shape with an open size": lambda t: t.ones(1).reshape(0, -1),
    "float_power_ of single precision": lambda t: t.ones(2).float_power_(2),
    "narrow from a list": lambda t: t.ones(3).narrow(0, t.tensor([1]), 1),
    "no groups": lambda t: t.nn.functional.conv1d(t.ones(1, 2, 4), t.ones(2, 2, 2), groups=0),
    "pooling of too few dimensions": lambda t: t.nn.functional.adaptive_avg_pool2d(t.ones(2, 2), (2, 2)),
    "linear_cross_entropy of a vector": lambda t: t.nn.functional.linear_cross_entropy(t.ones(2, 3), t.ones(3), t.tensor([0, 1])),
    "ndtr of a number": lambda t: t.special.ndtr(1.0),
    "dropout of integers": lambda t: t.nn.functional.dropout(t.ones(2, dtype=t.int32)),
    "in place to another empty shape": lambda t: t.ones(0, 1, 3).add_(t.ones(0, 4, 3)),
    "digits of integers": lambda t: t.round(t.ones(2, dtype=t.int32), decimals=1),
    "dot": lambda t: t.dot(t.ones(2), 1),
    "outer": lambda t: t.outer(t.ones(2), [1]),
    "equal": lambda t: t.equal(t.ones(1), 1),
    "allclose": lambda t: t.allclose(t.ones(1), 1.0),
    "unsqueeze": lambda t: t.unsqueeze(1.0, 0),
    "masked_fill": lambda t: t.ones(2).masked_fill([True, False], 0),
    "cross_entropy": lambda t: t.nn.functional.cross_entropy(t.ones(2, 2), 1),
}
WARNED = {
    "grid_sample": lambda t: t.nn.functional.grid_sample(t.ones(1, 1, 2, 2), t.zeros(1, 2, 2, 2)),
    "affine_grid": lambda t: t.nn.functional.affine_grid(t.ones(1, 2, 3), (1, 1, 2, 2)),
    "grid_sample told": lambda t: t.nn.functional.grid_sample(t.ones(1, 1, 2, 2), t.zeros(1, 2, 2, 2), align_corners=False),
    "cross": lambda t: t.cross(t.ones(2, 3), t.ones(2, 3)), "cross told": lambda t: t.cross(t.ones(2, 3), t.ones(2, 3), dim=1),
    "float": lambda t: float(t.ones(1, requires_grad=True)), "float without": lambda t: float(t.ones(1)),
    "range": lambda t: t.range(0, 2), "flags": lambda t: t.nn.functional.mse_loss(t.ones(2), t.ones(2), size_average=False),
    "T twice": lambda t: (t.ones(3).T, t.ones(3).T),
    "out of another size": lambda t: t.add(t.ones(2), 1, out=t.ones(3)), "empty out": lambda t: t.add(t.ones(2), 1, out=t.ones(0)),
}


# Numbers where a flag, or fractions and flags where an integer is wanted.
MISTYPED = """x.sum(True) x.sum(1,1) x.unsqueeze(True) x.squeeze(True) t.zeros(True) t.ones((True,3)) x.transpose(0,True) x.flatten(True) x.cumsum(True)
              x.argmax(1,1) x.max(1,1) x.sort(1,1) x.topk(1,1,1) x.softmax(True) x.amin(True) x.flip(True) t.cat([x,x],True) t.eye(True) x.renorm(1,0.0,1)
              x.as_strided((2,),(1,),0.0) x.tensor_split(True) x.repeat_interleave(2.0) t.linspace(0,1,True) t.triu_indices(2,True) t.vander(j,2.0)
              t.combinations(j,2.0) t.tensordot(x,x.t(),1.0) t.searchsorted(x,x,right=1) t.isclose(x,x,equal_nan=1) x.nonzero(as_tuple=1) x.var(1,1)
              t.zeros(2,requires_grad=1) t.tensor(1.0,requires_grad='a') x.round(decimals=1.0) x.polygamma(1.0) x.cov(correction=1.0) t.set_num_threads(1.0)
              F.avg_pool1d(x,(2.0,)) F.max_pool1d(x,True) F.embedding(j,x,0.0) F.cross_entropy(x,j,ignore_index=1.0) F.pixel_unshuffle(x[None],1.0)
              x[:,:2].matrix_power(True) F.adaptive_avg_pool1d(x,(2.0,))""".split()


@pytest.mark.parametrize("source", MISTYPED)
def test_mistyped(source):
    kinds = []
    for lib in (clnn, torch):
        with pytest.raises(Exception) as caught:
            eval(source, {"t": lib, "F": lib.nn.functional, "x": lib.arange(6.0).reshape(2, 3), "j": lib.tensor([0, 1])})
        kinds.append(caught.typename)
    assert kinds[0] == kinds[1]


def test_flags_among_sizes():
    """PyTorch looks at the first size, and takes True for 1 behind it."""
    for lib in (clnn, torch):
        assert lib.zeros(2, True).shape == (2, 1) and lib.ones(3, 6).sum((0, True)).shape == ()


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    kinds = []
    for lib in (clnn, torch):
        with pytest.raises(Exception) as caught:
            REFUSED[name](lib)
        kinds.append(caught.value)
    mine, theirs = kinds
    assert type(mine).__name__ == type(theirs).__name__, (mine, theirs)


def test_complex_means_of_what_is_scattered():
    x, index, src = [1 + 1j, 2.0, 3j], [0, 0, 2], [2j, 4.0, 1.0]
    for reduce in ("sum", "mean", "prod"):
        got, want = (lib.tensor(x).scatter_reduce(0, lib.tensor(index), lib.tensor(src), reduce, include_self=False).tolist() for lib in (clnn, torch))
        assert got == want
    f = [lib.nn.functional.dropout(lib.ones(2, dtype=lib.int32), 1.0) for lib in (clnn, torch)]
    assert str(f[0].dtype)[5:] == str(f[1].dtype)[6:] == "int32" and f[0].tolist() == [0, 0]


def test_the_same_memory_is_no_overlap():
    """Inputs that are what is written, element by element, and interleaved or separate regions."""
    x = clnn.arange(6.0)
    clnn.add(x, 1, out=x)
    x.view(2, 3).mul_(x.reshape(2, 3))
    x[:3].add_(x[3:])
    x[::2].add_(x[1::2])
    assert x.tolist() == [17.0 + 29, 29.0, 45.0 + 16, 16.0, 25.0 + 36, 36.0]


@pytest.mark.parametrize("name", ["qr", "cholesky", "lu", "chain_matmul"])
def test_deprecated(name):
    texts = []
    for lib in (clnn, torch):
        before = lib.is_warn_always_enabled()
        lib.set_warn_always(True)
        try:
            with pytest.warns(UserWarning) as got:
                getattr(lib, name)(lib.eye(2))
        finally:
            lib.set_warn_always(before)
        texts.append(str(got[0].message)[:60])
    assert texts[0] == texts[1]


@pytest.mark.parametrize("name", ["qr", "cholesky", "lu", "lu_factor"])
def test_not_deprecated(name):
    """What replaces them is another entry."""
    before = clnn.is_warn_always_enabled()
    clnn.set_warn_always(True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            getattr(clnn.linalg, name)(clnn.eye(2))
    finally:
        clnn.set_warn_always(before)


def test_factors_before_operands_are_old():
    for lib in (clnn, torch):
        lib.set_warn_always(True)
    try:
        for lib in (clnn, torch):
            with pytest.warns(UserWarning) as got:
                assert lib.ones(1).add(2, lib.ones(1)).tolist() == [3.0]
                assert lib.ones(1).addcmul_(lib.tensor(2), lib.ones(1), lib.ones(1)).tolist() == [3.0]
            assert "deprecated:\n\tadd(Number alpha, Tensor other)\nConsider using one of" in str(got[0].message)
            assert "following signatures instead:\n\tadd(Tensor other, *, Number alpha = 1)" in str(got[0].message)
            assert "deprecated:\n\taddcmul_(Number value, Tensor tensor1, Tensor tensor2)\nConsider" in str(got[1].message)
            for no_number in (lib.ones(1), lib.ones((), requires_grad=True)):
                with pytest.raises(TypeError):
                    lib.ones(1).add(no_number, lib.ones(1))
    finally:
        for lib in (clnn, torch):
            lib.set_warn_always(False)


@pytest.mark.parametrize("name", WARNED)
def test_warned(name):
    texts = []
    for lib in (clnn, torch):
        with warnings.catch_warnings(record=True) as got:
            warnings.simplefilter("always")
            WARNED[name](lib)
        texts.append([(w.category.__name__, str(w.message)[:50]) for w in got])
    assert texts[0] == texts[1]


def test_valid_probabilities_pass():
    clnn.manual_seed(0)
    p = clnn.tensor([0.0, 1.0, 0.5, 1.0])
    assert clnn.bernoulli(p).tolist()[:2] == [0.0, 1.0]
    assert clnn.normal(clnn.zeros(2), clnn.tensor([0.0, 0.0])).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("call", ["FloatTensor(np.prod((2, 3)))", "LongTensor(np.array(3))", "Tensor(np.int32(2))", "ones(1).new(np.int64(2))", "Tensor(np.array(2.0))",
                                  "FloatTensor(2, device='cpu')", "FloatTensor(size=(2, 1))", "Tensor(True)", "FloatTensor(2.0)", "Tensor(np.float32(2))",
                                  "Tensor(None)"])
def test_constructors_take_sizes_of_numpy(call):
    found = []
    for lib in (clnn, torch):
        try:
            made = eval(f"lib.{call}", dict(lib=lib, np=np))
            found.append((tuple(made.shape), str(made.dtype).partition(".")[2]))
        except TypeError as exc:
            found.append(str(exc))
    assert found[0] == found[1]


@pytest.mark.parametrize("call", [
    "F.layer_norm(t.ones(2, 3).double(), (3,), t.ones(3), t.zeros(3))", "F.layer_norm(t.ones(2, 3), (3,), t.ones(3).double())",
    "F.layer_norm(t.ones(2, 3).bfloat16(), (3,), t.ones(3))", "F.batch_norm(t.ones(2, 3).double(), t.zeros(3), t.ones(3))",
    "F.batch_norm(t.ones(2, 3), t.zeros(3).double(), t.ones(3).double(), training=True)", "F.group_norm(t.ones(2, 4).double(), 2, t.ones(4))",
    "F.binary_cross_entropy(t.ones(2) * 0.5, t.zeros(2), weight=asking)", "F.binary_cross_entropy_with_logits(t.ones(2), t.zeros(2), pos_weight=asking)",
    "F.nll_loss(t.zeros(2, 2), t.tensor([0, 1]), weight=asking)", "F.cross_entropy(t.zeros(2, 2, 4), t.ones(2, 4).long(), weight=asking)",
    "F.multi_margin_loss(t.zeros(2, 2), t.tensor([0, 1]), weight=asking)", "asking.set_(t.zeros(3))", "t.ones(2).bfloat16().numpy()",
    "np.asarray(t.ones(2).bfloat16())", "t.bincount(t.ones(2, 2))", "t.ones(2).type('float32')", "t.ones(2).type(3)", "t.ones(2).norm('x')", "t.promote_types(1, 2)",
    "t.linalg.norm(t.ones(2), 'x')", "t.linalg.norm(t.ones(2), 'fro')", "t.numel(3)", "t.device('cpu', 'a')"])
def test_words_of_what_is_refused(call):
    found = []
    for lib in (clnn, torch):
        try:
            found.append(str(eval(call, dict(t=lib, F=lib.nn.functional, np=np, asking=lib.ones(2, requires_grad=True)))))
        except (RuntimeError, TypeError, ValueError) as exc:
            found.append(f"{type(exc).__name__}: {exc}")
    assert found[0] == found[1].replace("torch.", "clnn.")


def test_memory_that_nothing_wrote_is_filled_under_deterministic_algorithms():
    shown = []
    for lib in (clnn, torch):
        lib.use_deterministic_algorithms(True)
        try:
            made = [lib.empty(2), lib.empty(2, dtype=lib.int32), lib.empty_like(lib.ones(3, 2).t()), lib.ones(1).new_empty(1, dtype=lib.bool),
                    lib.empty_strided((2,), (1,))]
            lib.utils.deterministic.fill_uninitialized_memory = False
            assert lib.empty(2).shape == (2,)
        finally:
            lib.use_deterministic_algorithms(False)
            lib.utils.deterministic.fill_uninitialized_memory = True
        shown.append(str([(m.tolist(), m.stride()) for m in made]))
    assert shown[0] == shown[1]


def test_optimizers_learn_their_step_under_deterministic_algorithms(monkeypatch):
    monkeypatch.setattr("clnn._tensor.multi._plans", {})
    clnn.use_deterministic_algorithms(True)
    try:
        weight = clnn.ones(2, requires_grad=True)
        weight.sum().backward()
        clnn.optim.SGD([weight], 0.5, momentum=0.9).step()
    finally:
        clnn.use_deterministic_algorithms(False)
    assert weight.tolist() == [0.5, 0.5]


def test_functional_takes_a_stack_level_by_place():
    for name in ("softmax", "log_softmax", "softmin"):
        got, want = (getattr(lib.nn.functional, name)(lib.arange(6.0).view(2, 3), 1, 3).tolist() for lib in (clnn, torch))
        np.testing.assert_allclose(got, want, 1e-6)


@pytest.mark.parametrize("sorted_", [True, False])
def test_lengths_beyond_the_input(sorted_):
    """PyTorch packs what there is."""
    packed = [lib.nn.utils.rnn.pack_padded_sequence(lib.arange(6.0).view(2, 3, 1), [5, 4] if sorted_ else [2, 4], True, sorted_) for lib in (clnn, torch)]
    assert packed[0].data.tolist() == packed[1].data.tolist() and packed[0].batch_sizes.tolist() == packed[1].batch_sizes.tolist()


@pytest.mark.parametrize("equation, shapes", [("ij,jk->ik", [(2, 1), (1, 3)]), ("bi,bi->b", [(1, 1), (1, 1)]), ("i,i->", [(1,), (1,)]), ("ij,jk->ik", [(2, 3), (1, 4)]),
                                              ("ij,jk,kl->il", [(2, 3), (3, 1), (1, 2)]), ("ij,j->i", [(2, 3), (3,)]), ("bij,bjk->bik", [(2, 1, 3), (2, 3, 1)])])
def test_einsum_over_single_elements(equation, shapes):
    """No matrix product, so that autocast leaves their dtype."""
    got = []
    for lib in (clnn, torch):
        with lib.autocast("cpu", dtype=lib.bfloat16):
            r = lib.einsum(equation, *[lib.linspace(-1, 2, int(np.prod(s))).reshape(s) for s in shapes])
        got.append((str(r.dtype).split(".")[1], tuple(r.shape), pytest.approx(r.float().flatten().tolist(), rel=1e-2)))
    assert got[0][:2] == got[1][:2] and got[0][2].expected == got[1][2]


@pytest.mark.parametrize("call", [lambda x: x.sort(1), lambda x: x.sort(-1, descending=True), lambda x: (x.argsort(0),), lambda x: (x.msort(),),
                                  lambda x: (x.index_fill(1, (x[0, :1, 0, 0] * 0).long(), 2.0),)])
def test_results_lie_as_the_operand(call):
    for view in (lambda x: x.permute(1, 0, 3, 2), lambda x: x.transpose(0, 3), lambda x: x.permute(0, 3, 1, 2), lambda x: x[:, ::2], lambda x: x[:1].expand(2, 3, 4, 5)):
        got, want = ([(r.stride(), r.tolist()) for r in call(view((lib.arange(120.0) * 7 % 121).view(2, 3, 4, 5)))] for lib in (clnn, torch))
        assert got == want
