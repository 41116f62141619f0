"""clnn.nn.utils and clnn.nn.init against PyTorch."""
import copy
import importlib
import math

import numpy as np
import pytest

import clnn
from clnn import nn
from clnn.nn import init
from clnn.nn.utils import parametrizations, parametrize, prune

torch = pytest.importorskip("torch")
pytest.importorskip("torch.nn.utils.prune")
pytestmark = pytest.mark.filterwarnings("ignore")

RNG = np.random.default_rng(0)
W = RNG.standard_normal((4, 6)).astype(np.float32)


def linear(lib, values=W, bias=True):
    layer = lib.nn.Linear(values.shape[1], values.shape[0], bias=bias)
    with lib.no_grad():
        layer.weight.copy_(lib.tensor(values))
        if bias:
            layer.bias.copy_(lib.arange(values.shape[0], dtype=lib.float32) * 0.1)
    return layer


def close(a, b, atol=1e-5):
    np.testing.assert_allclose(a.detach().cpu().numpy(), b.detach().cpu().numpy(), atol=atol, rtol=1e-4)


def both(fn, atol=1e-5):
    """Run on both libraries and compare tensors, texts and numbers."""
    got, want = fn(clnn), fn(torch)
    assert len(got) == len(want)
    for a, b in zip(got, want):
        if isinstance(b, torch.Tensor):
            close(a, b, atol)
        else:
            assert str(a).replace("torch", "clnn") == str(b).replace("torch", "clnn")
    return got


# -- gradients and vectors --------------------------------------------------------------------------------------------------
def with_grads(lib):
    params = [lib.nn.Parameter(lib.tensor(W)), lib.nn.Parameter(lib.tensor(W[0]))]
    for i, p in enumerate(params):
        p.grad = lib.tensor(RNG_GRADS[i])
    return params


RNG_GRADS = [RNG.standard_normal((4, 6)).astype(np.float32) * 3, RNG.standard_normal(6).astype(np.float32)]


@pytest.mark.parametrize("max_norm, norm_type", [(1.0, 2.0), (100.0, 2.0), (0.5, 1.0), (0.3, math.inf)])
def test_clip_grad_norm(max_norm, norm_type):
    def run(lib):
        params = with_grads(lib)
        total = lib.nn.utils.clip_grad_norm_(params, max_norm, norm_type)
        return [total, *[p.grad for p in params]]

    both(run)


def test_clip_grad_value_and_total_norm():
    def run(lib):
        params = with_grads(lib)
        norm = lib.nn.utils.get_total_norm([p.grad for p in params], 3.0)
        lib.nn.utils.clip_grad_value_(params, 0.7)
        return [norm, *[p.grad for p in params], lib.nn.utils.clip_grad_norm_([], 1.0)]

    both(run)


def test_clip_grad_norm_rejects_nonfinite():
    p = nn.Parameter(clnn.ones(2))
    p.grad = clnn.tensor([math.nan, 1.0])
    with pytest.raises(RuntimeError, match="non-finite"):
        nn.utils.clip_grad_norm_(p, 1.0, error_if_nonfinite=True)


def test_parameters_to_vector_and_back():
    layer = linear(clnn)
    vector = nn.utils.parameters_to_vector(layer.parameters())
    assert tuple(vector.shape) == (28,)
    nn.utils.vector_to_parameters(vector * 2, layer.parameters())
    close(layer.weight, clnn.tensor(W * 2))
    with pytest.raises(TypeError):
        nn.utils.vector_to_parameters([1.0], layer.parameters())


# -- weight and spectral norm -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dim", [0, 1, None])
@pytest.mark.parametrize("modern", [False, True])
def test_weight_norm(dim, modern):
    def run(lib):
        where = lib.nn.utils.parametrizations if modern else lib.nn.utils
        layer = where.weight_norm(linear(lib), dim=dim)
        keys = list(layer.state_dict())
        out = layer(lib.ones(2, 6))
        out.sum().backward()
        grads = [p.grad for p in layer.parameters()]
        text = repr(layer)
        if modern:
            lib.nn.utils.parametrize.remove_parametrizations(layer, "weight")
        else:
            lib.nn.utils.remove_weight_norm(layer)
        return [keys, out, *grads, text, list(layer.state_dict()), layer.weight, type(layer).__name__]

    both(run, atol=1e-4)


def set_uv(layer, lib, modern):
    owner = layer.parametrizations.weight[0] if modern else layer
    names = ("_u", "_v") if modern else ("weight_u", "weight_v")
    for name, n in zip(names, (4, 6)):
        v = np.ones(n, np.float32) / math.sqrt(n)
        getattr(owner, name).copy_(lib.tensor(v))


@pytest.mark.parametrize("modern", [False, True])
def test_spectral_norm(modern):
    def run(lib):
        where = lib.nn.utils.parametrizations if modern else lib.nn.utils
        layer = where.spectral_norm(linear(lib), n_power_iterations=3)
        set_uv(layer, lib, modern)
        keys = list(layer.state_dict())
        out = layer(lib.ones(2, 6))
        out.sum().backward()
        grads = [p.grad for p in layer.parameters()]
        layer.eval()
        again = layer(lib.ones(2, 6))
        state = list(layer.state_dict().values())
        if modern:
            lib.nn.utils.parametrize.remove_parametrizations(layer, "weight")
        else:
            lib.nn.utils.remove_spectral_norm(layer)
        return [keys, out, *grads, again, *state, layer.weight, list(layer.state_dict())]

    both(run, atol=1e-4)


def test_spectral_norm_converges_to_one():
    layer = parametrizations.spectral_norm(linear(clnn), n_power_iterations=20)
    layer.weight
    top = np.linalg.svd(layer.weight.detach().cpu().numpy(), compute_uv=False)[0]
    assert abs(top - 1) < 1e-3


# -- parametrizations -------------------------------------------------------------------------------------------------------
def symmetric(lib):
    class Symmetric(lib.nn.Module):
        def forward(self, X):
            return X.triu() + X.triu(1).T

        def right_inverse(self, A):
            return A.triu()

    return Symmetric()


def doubled(lib, invertible=True):
    class Doubled(lib.nn.Module):
        def forward(self, X):
            return 2 * X

        if invertible:
            def right_inverse(self, Y):
                return Y / 2

    return Doubled()


def test_parametrize_chain_assign_and_remove():
    square = RNG.standard_normal((4, 4)).astype(np.float32)

    def run(lib):
        P = lib.nn.utils.parametrize
        layer = linear(lib, square)
        P.register_parametrization(layer, "weight", symmetric(lib))
        P.register_parametrization(layer, "weight", doubled(lib))
        P.register_parametrization(layer, "bias", doubled(lib))
        keys, text = list(layer.state_dict()), repr(layer)
        flags = P.is_parametrized(layer), P.is_parametrized(layer, "weight"), P.is_parametrized(layer, "x"), P.is_parametrized(lib.nn.ReLU())
        first = layer.weight.clone()
        layer(lib.ones(1, 4)).sum().backward()
        grad = layer.parametrizations.weight.original.grad
        layer.weight = lib.eye(4)
        assigned, original = layer.weight.clone(), layer.parametrizations.weight.original.clone()
        names = [n for n, _ in layer.named_parameters()]
        kind = P.type_before_parametrizations(layer).__name__
        twin = copy.deepcopy(layer)
        copied = repr(twin), twin.weight
        P.remove_parametrizations(layer, "weight")
        P.remove_parametrizations(layer, "bias", leave_parametrized=False)
        return [keys, text, flags, first, grad, assigned, original, names, kind, layer.weight, layer.bias, repr(layer), *copied,
                type(layer.weight).__name__, [n for n, _ in layer.named_parameters()]]

    both(run)


def test_parametrize_deepcopy_is_independent():
    layer = parametrize.register_parametrization(linear(clnn), "weight", doubled(clnn))
    twin = copy.deepcopy(layer)
    parametrize.remove_parametrizations(layer, "weight")
    close(twin.weight, layer.weight)


def test_parametrize_cached_and_buffers():
    layer = parametrize.register_parametrization(linear(clnn), "weight", doubled(clnn))
    with parametrize.cached():
        assert layer.weight is layer.weight
    assert layer.weight is not layer.weight
    layer.register_buffer("b", clnn.ones(2))
    parametrize.register_parametrization(layer, "b", doubled(clnn))
    assert layer.b.tolist() == [1.0, 1.0] and layer.parametrizations.b.original.tolist() == [0.5, 0.5]
    other = parametrize.transfer_parametrizations_and_params(layer, linear(clnn), "weight")
    close(other.weight, layer.weight)


@pytest.mark.parametrize("code", [
    "P.register_parametrization(layer, 'gone', doubled(lib))", "P.register_parametrization(layer, 'weight', lib.nn.Flatten(0))",
    "P.remove_parametrizations(layer, 'weight')", "P.ParametrizationList([], layer.weight)",
    "setattr(P.register_parametrization(layer, 'weight', doubled(lib, False)), 'weight', lib.ones(4, 6))",
    "P.remove_parametrizations(lib.nn.utils.parametrizations.weight_norm(layer), 'weight', leave_parametrized=False)",
    "lib.nn.utils.parametrizations.orthogonal(layer, orthogonal_map='x')", "lib.nn.utils.parametrizations.orthogonal(layer, 'bias')",
    "lib.nn.utils.parametrizations.orthogonal(layer, 'x')", "lib.nn.utils.remove_weight_norm(layer)", "lib.nn.utils.remove_spectral_norm(layer)",
    "lib.nn.utils.weight_norm(lib.nn.utils.weight_norm(layer))",
    "__import__('pickle').dumps(P.register_parametrization(layer, 'weight', doubled(lib)))"])
def test_parametrize_errors(code):
    def run(lib):
        try:
            eval(code, {"lib": lib, "P": lib.nn.utils.parametrize, "layer": linear(lib), "doubled": doubled, "setattr": setattr})
        except Exception as error:
            return [type(error).__name__, str(error).splitlines()[0][:60]]
        return ["no error"]

    both(run)


@pytest.mark.parametrize("shape", [(4, 4), (6, 3), (3, 6)])
@pytest.mark.parametrize("name", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("trivial", [True, False])
def test_orthogonal_parametrization(shape, name, trivial):
    values = RNG.standard_normal(shape).astype(np.float32)
    layer = parametrizations.orthogonal(linear(clnn, values), orthogonal_map=name, use_trivialization=trivial)
    weight = layer.weight.detach().cpu().numpy()
    gram = weight @ weight.T if shape[0] < shape[1] else weight.T @ weight
    np.testing.assert_allclose(gram, np.eye(min(shape)), atol=2e-4)
    layer.weight.sum().backward()
    assert layer.parametrizations.weight.original.grad is not None
    if not trivial:
        theirs = torch.nn.utils.parametrizations.orthogonal(linear(torch, values), orthogonal_map=name, use_trivialization=False)
        with torch.no_grad():
            theirs.parametrizations.weight.original.copy_(torch.tensor(layer.parametrizations.weight.original.detach().cpu().numpy()))
        close(layer.weight, theirs.weight, 1e-4)


def test_orthogonal_assignment():
    q = np.linalg.qr(RNG.standard_normal((5, 3)))[0].astype(np.float32)
    for trivial in (True, False):
        layer = parametrizations.orthogonal(linear(clnn, np.zeros((5, 3), np.float32) + np.eye(5, 3, dtype=np.float32)), orthogonal_map="householder",
                                            use_trivialization=trivial)
        layer.weight = clnn.tensor(q)
        np.testing.assert_allclose(np.abs(layer.weight.detach().cpu().numpy()), np.abs(q), atol=1e-4)


# -- pruning ----------------------------------------------------------------------------------------------------------------
PRUNE = ["prune.identity(m, 'weight')", "prune.l1_unstructured(m, 'weight', 0.4)", "prune.l1_unstructured(m, 'weight', 5)",
    "prune.l1_unstructured(m, 'weight', 0)",
         "prune.ln_structured(m, 'weight', 2, n=2, dim=0)", "prune.ln_structured(m, 'weight', 0.5, n=1, dim=-1)",
         "prune.custom_from_mask(m, 'bias', lib.tensor([1, 0, 1, 0]))",
         "prune.l1_unstructured(m, 'weight', 3, importance_scores=lib.tensor(-abs(W)))",
         "prune.l1_unstructured(prune.ln_structured(m, 'weight', 1, n=2, dim=0), 'weight', 0.25)",
         "prune.ln_structured(prune.ln_structured(m, 'weight', 1, n=2, dim=0), 'weight', 1, n=2, dim=0)",
         "prune.custom_from_mask(prune.l1_unstructured(m, 'weight', 3), 'weight', lib.tensor((W > 0).astype('float32')))",
         "prune.global_unstructured([(m, 'weight'), (m, 'bias')], prune.L1Unstructured, amount=9) or m"]


@pytest.mark.parametrize("code", PRUNE)
def test_pruning(code):
    def run(lib):
        P = lib.nn.utils.prune
        m = eval(code, {"prune": P, "lib": lib, "m": linear(lib), "W": W})
        out = m(lib.ones(2, 6))
        out.sum().backward()
        keys, state, grads = list(m.state_dict()), list(m.state_dict().values()), [p.grad for p in m.parameters()]
        pruned = P.is_pruned(m)
        name = "bias" if any(k.startswith("bias_") for k in keys) and "weight_orig" not in keys else "weight"
        P.remove(m, name)
        return [out, keys, *state, *grads, pruned, getattr(m, name), type(getattr(m, name)).__name__, sorted(m.state_dict())]

    both(run)


def test_random_pruning_counts():
    m = prune.random_unstructured(linear(clnn), "weight", 0.5)
    assert int((m.weight_mask == 0).sum().item()) == 12
    m = prune.random_structured(linear(clnn), "weight", 2, dim=1)
    assert int((m.weight_mask.sum(0) == 0).sum().item()) == 2
    close(prune.L1Unstructured(0.5).prune(clnn.tensor([1.0, -2.0])), clnn.tensor([0.0, -2.0]))


@pytest.mark.parametrize("code", ["prune.l1_unstructured(m, 'weight', 1.5)", "prune.l1_unstructured(m, 'weight', 99)",
    "prune.l1_unstructured(m, 'weight', -1)",
                                  "prune.l1_unstructured(m, 'weight', 'x')", "prune.ln_structured(m, 'bias', 1, n=2, dim=0)",
                                  "prune.ln_structured(m, 'weight', 1, n=2, dim=5)",
                                  "prune.remove(m, 'weight')", "prune.global_unstructured(3, prune.L1Unstructured, amount=1)",
                                  "prune.global_unstructured([(m, 'weight')], prune.LnStructured, amount=1, n=2)"])
def test_pruning_errors(code):
    def run(lib):
        with pytest.raises(Exception) as error:
            eval(code, {"prune": lib.nn.utils.prune, "m": linear(lib)})
        return [error.type.__name__, str(error.value)[:30]]

    both(run)


# -- packed sequences, fusion, functional calls -----------------------------------------------------------------------------
def test_sequence_tools():
    parts = [RNG.standard_normal((n, 2)).astype(np.float32) for n in (2, 4, 1)]

    def run(lib):
        R = lib.nn.utils.rnn
        seqs = [lib.tensor(p) for p in parts]
        packed = R.pack_sequence(seqs, enforce_sorted=False)
        back = R.unpack_sequence(packed)
        padded = R.pad_sequence(seqs, batch_first=True, padding_value=9.0)
        return [R.pad_sequence(seqs), padded, R.pad_sequence(seqs, padding_side="left"), *packed, *back,
                *R.unpad_sequence(padded, lib.tensor([2, 4, 1]), batch_first=True), *R.PackedSequence(packed.data, packed.batch_sizes)[:2]]

    both(run)


@pytest.mark.parametrize("lengths", [[1, 2], [2, 0], [2]])
def test_pack_errors(lengths):
    def run(lib):
        with pytest.raises(RuntimeError) as error:
            lib.nn.utils.rnn.pack_padded_sequence(lib.zeros(2, 2, 1), lengths)
        return [str(error.value)[:40]]

    both(run)


@pytest.mark.parametrize("transpose", [False, True])
def test_fuse_conv_bn(transpose):
    conv = (nn.ConvTranspose2d if transpose else nn.Conv2d)(3, 4, 3, bias=transpose)
    bn = nn.BatchNorm2d(4)
    bn(clnn.tensor(RNG.standard_normal((5, 4, 3, 3)).astype(np.float32)))
    init.uniform_(bn.weight, 0.5, 1.5)
    conv.eval(), bn.eval()
    x = clnn.tensor(RNG.standard_normal((2, 3, 5, 5)).astype(np.float32))
    fused = nn.utils.fuse_conv_bn_eval(conv, bn, transpose)
    close(fused(x), bn(conv(x)), 1e-4)
    assert isinstance(fused.weight, nn.Parameter)
    with pytest.raises(AssertionError, match="Fusion only for eval"):
        nn.utils.fuse_conv_bn_eval(conv.train(), bn)


def test_fuse_linear_bn():
    layer, bn = linear(clnn).eval(), nn.BatchNorm1d(4)
    bn(clnn.tensor(RNG.standard_normal((5, 4)).astype(np.float32)))
    bn.eval()
    x = clnn.tensor(RNG.standard_normal((2, 6)).astype(np.float32))
    close(nn.utils.fuse_linear_bn_eval(layer, bn)(x), bn(layer(x)), 1e-4)


def test_functional_call():
    layer, bn = linear(clnn), nn.BatchNorm1d(2)
    x = clnn.ones(1, 6)
    weight = clnn.zeros(4, 6, requires_grad=True)
    out = clnn.func.functional_call(layer, {"weight": weight}, x)
    close(out[0], layer.bias)
    out.sum().backward()
    assert weight.grad is not None and layer.weight.grad is None
    close(layer.weight, clnn.tensor(W))
    buffers = dict(bn.named_buffers())
    buffers = {k: v.clone() for k, v in buffers.items()}
    clnn.func.functional_call(bn, (dict(bn.named_parameters()), buffers), (clnn.ones(3, 2),))
    assert bn.running_mean.tolist() == [0.0, 0.0] and abs(buffers["running_mean"].tolist()[0] - 0.1) < 1e-6
    with pytest.raises(RuntimeError, match="Missing key"):
        clnn.func.functional_call(layer, {"weight": weight}, x, strict=True)
    with pytest.raises(AttributeError):
        clnn.func.functional_call(layer, {"foo.bar": weight}, x)
    close(clnn.func.functional_call(layer, {"foo": weight}, x), layer(x))       # no one has it, and it was not asked for with strict
    with pytest.raises(TypeError, match="not an instance"):
        clnn.func.functional_call(layer, {"weight": 3}, x)
    with pytest.raises(ValueError, match="multiple dictionaries"):
        clnn.func.functional_call(layer, ({"weight": weight}, {"weight": weight}), x)
    tied = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    tied[1].weight = tied[0].weight
    close(clnn.func.functional_call(tied, {"0.weight": clnn.eye(2) * 2}, clnn.ones(1, 2)), clnn.full((1, 2), 4.0))
    params, buffers = clnn.func.stack_module_state([linear(clnn), linear(clnn)])
    assert tuple(params["weight"].shape) == (2, 4, 6) and buffers == {}


def test_skip_init():
    assert tuple(nn.utils.skip_init(nn.Linear, 3, 2).weight.shape) == (2, 3)
    with pytest.raises(RuntimeError, match="device"):
        nn.utils.skip_init(nn.ReLU)
    assert init.uniform_(clnn.zeros(100)).max().item() > 0.5  # the functions are back


# -- init -------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name, param", [("linear", None), ("conv2d", None), ("tanh", None), ("relu", None), ("leaky_relu", None), ("leaky_relu",
    0.3),
                                         ("selu", None), ("sigmoid", None)])
def test_gain(name, param):
    assert init.calculate_gain(name, param) == torch.nn.init.calculate_gain(name, param)


@pytest.mark.parametrize("code", ["calculate_gain('x')", "calculate_gain('leaky_relu', 'x')", "eye_(z(3))", "dirac_(z(3, 3))",
    "dirac_(z(3, 3, 3), 2)",
                                  "kaiming_uniform_(z(3))", "kaiming_uniform_(z(3, 3), mode='x')", "orthogonal_(z(3))", "sparse_(z(3), 0.1)"])
def test_init_errors(code):
    def run(lib):
        with pytest.raises(ValueError) as error:
            eval("init." + code, {"init": lib.nn.init, "z": lib.zeros})
        return [str(error.value)]

    both(run)


@pytest.mark.parametrize("code", ["ones_(z(2, 3))", "zeros_(z(2) + 1)", "constant_(z(2), 0.3)", "eye_(z(3, 4))", "dirac_(z(4, 2, 3))",
    "dirac_(z(4, 2, 3, 3), 2)",
                                  "dirac_(z(2, 3, 3, 3, 3))"])
def test_init_exact(code):
    both(lambda lib: [eval("init." + code, {"init": lib.nn.init, "z": lib.zeros})])


@pytest.mark.parametrize("code, mean, std, low, high", [
    ("uniform_(t, -1., 3.)", 1, 4 / math.sqrt(12), -1, 3), ("normal_(t, 2., 0.5)", 2, 0.5, -9, 9), ("trunc_normal_(t, 0., 1., -1., 1.)", 0,
    0.5396, -1, 1),
    ("xavier_uniform_(t, 2.)", 0, 2 * math.sqrt(2 / 400), -0.25, 0.25), ("xavier_normal_(t)", 0, math.sqrt(2 / 400), -9, 9),
    ("kaiming_uniform_(t, nonlinearity='relu')", 0, math.sqrt(2 / 100), -0.25, 0.25), ("kaiming_normal_(t, mode='fan_out')", 0,
    math.sqrt(2 / 300), -9, 9)])
def test_init_statistics(code, mean, std, low, high):
    clnn.manual_seed(0)
    t = clnn.nn.Parameter(clnn.empty(300, 100))
    assert eval("init." + code, {"init": init, "t": t}) is t and t.requires_grad and t.grad_fn is None
    values = t.detach().cpu().numpy()
    assert abs(values.mean() - mean) < 0.02 and abs(values.std() / std - 1) < 0.02
    assert values.min() >= low and values.max() <= high


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 3, 2)])
def test_orthogonal(shape):
    t = init.orthogonal_(clnn.empty(shape), gain=2.0).cpu().numpy().reshape(shape[0], -1)
    gram = t @ t.T if t.shape[0] < t.shape[1] else t.T @ t
    np.testing.assert_allclose(gram, 4 * np.eye(len(gram)), atol=1e-4)


def test_sparse_and_deprecated_names():
    t = init.sparse_(clnn.empty(10, 4), 0.3).cpu().numpy()
    assert ((t == 0).sum(0) == 3).all()
    with pytest.warns(FutureWarning, match="deprecated"):
        init.uniform(clnn.empty(2))
    assert set(torch.nn.init.__all__) <= set(init.__all__)


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_gradients_of_samples(reduction):
    results = []
    for lib in (clnn, torch):
        lib.manual_seed(0)
        net = lib.nn.Sequential(lib.nn.Conv1d(2, 4, 2), lib.nn.GroupNorm(2, 4), lib.nn.Tanh(), lib.nn.Flatten(), lib.nn.Linear(8, 3))
        of_samples = importlib.import_module(lib.__name__ + ".nn.utils._per_sample_grad").call_for_per_sample_grads
        net[0].bias.requires_grad_(False)
        x = lib.tensor(np.linspace(-1, 1, 24, dtype="float32").reshape(4, 2, 3) ** 3)
        getattr(of_samples(net, loss_reduction=reduction)(x) ** 2, reduction)().backward()
        assert net[0].weight.grad is None and not hasattr(net[0].bias, "grad_sample")
        with pytest.raises(RuntimeError, match="several calls|multiple calls"):
            of_samples(net)
        results.append([p.grad_sample.numpy() for p in net.parameters() if p.requires_grad])
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_a_programs_pruning_gets_the_mask_so_far_by_name():
    class Every(prune.BasePruningMethod):
        PRUNING_TYPE = "unstructured"

        def compute_mask(self, t, *, default_mask):
            return default_mask * (t > 1.5)

    m = nn.Linear(2, 2, bias=False)
    m.weight.data = clnn.tensor([[1.0, 2.0], [3.0, 4.0]])
    Every.apply(m, "weight")
    prune.l1_unstructured(m, "weight", 1)
    Every.apply(m, "weight")
    assert m.weight_mask.tolist() == [[0, 0], [1, 1]] and Every().prune(clnn.ones(2)).tolist() == [0, 0]
