"""Multi-head attention, distances, the bilinear layer and the time-first convolution against PyTorch."""
import numpy as np
import pytest

import clnn
import clnn.nn.functional as F

torch = pytest.importorskip("torch")
TF = torch.nn.functional
L, S, N, E, H = 5, 7, 3, 8, 2


def floats(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def close(got, want, tol=3e-5):
    assert tuple(got.shape) == tuple(want.shape)
    np.testing.assert_allclose(got.detach().to(clnn.float64).numpy(), want.detach().to(torch.float64).numpy(), rtol=tol, atol=tol)


def compare(fn, arrays, tol=3e-5):
    """``fn(library, functional, tensors)`` on both: values and gradients of all arrays."""
    xs, ys = [clnn.tensor(a, requires_grad=True) for a in arrays], [torch.tensor(a, requires_grad=True) for a in arrays]
    got, want = fn(clnn, F, *xs), fn(torch, TF, *ys)
    got, want = (r if isinstance(r, tuple) else (r,) for r in (got, want))
    total, reference = 0, 0
    for k, (a, b) in enumerate(zip(got, want)):
        assert (a is None) == (b is None)
        if a is not None:
            close(a, b, tol)
            g = floats(*b.shape, seed=k + 5)
            total, reference = total + (a * clnn.tensor(g)).sum(), reference + (b * torch.tensor(g)).sum()
    total.backward()
    reference.backward()
    for x, y in zip(xs, ys):
        assert (x.grad is None) == (y.grad is None)
        if x.grad is not None:
            close(x.grad, y.grad, tol * 10)


def masks(lib, kind):
    rng = np.random.default_rng(1)
    hide = rng.random((L, S)) < 0.3
    hide[:, 0] = False
    padding = np.zeros((N, S), bool)
    padding[1, 4:] = True
    many = floats(N * H, L, S, seed=8)
    return {"none": {}, "bool": dict(attn_mask=lib.tensor(hide)), "float": dict(attn_mask=lib.tensor(many)),
            "padding": dict(key_padding_mask=lib.tensor(padding)),
            "both": dict(attn_mask=lib.tensor(floats(L, S)), key_padding_mask=lib.tensor(np.where(padding, -np.inf, 0).astype(np.float32)))}[kind]


PROJECTION = [floats(3 * E, E, seed=3) / 3, floats(3 * E, seed=4), floats(E, E, seed=5) / 3, floats(E, seed=6)]


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("mask", ["none", "bool", "float", "padding", "both"])
def test_masks(mask, need_weights):
    def attend(lib, f, q, k, v, w, b, wo, bo):
        return f.multi_head_attention_forward(q, k, v, E, H, w, b, None, None, False, 0.0, wo, bo, need_weights=need_weights, **masks(lib, mask))
    compare(attend, [floats(L, N, E), floats(S, N, E, seed=1), floats(S, N, E, seed=2), *PROJECTION])


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("extra", ["bias", "zero", "both"])
def test_extra_keys(extra, need_weights):
    def attend(lib, f, q, k, bk, bv, w, b, wo, bo):
        biases = (bk, bv) if extra != "zero" else (None, None)
        return f.multi_head_attention_forward(q, k, k, E, H, w, b, *biases, extra != "bias", 0.0, wo, bo, need_weights=need_weights,
                                              average_attn_weights=False, **masks(lib, "both"))
    compare(attend, [floats(L, N, E), floats(S, N, E, seed=1), floats(1, 1, E, seed=2), floats(1, 1, E, seed=7), *PROJECTION])


def test_self_attention_without_batch_and_bias():
    def attend(lib, f, x, w, wo):
        return f.multi_head_attention_forward(x, x, x, E, H, w, None, None, None, False, 0.0, wo, None)
    compare(attend, [floats(L, E), PROJECTION[0], PROJECTION[2]])


@pytest.mark.parametrize("need_weights", [True, False])
def test_causal_and_separate_projections(need_weights):
    def attend(lib, f, q, k, v, wq, wk, wv, b, wo, bo):
        mask = lib.ones(L, L).triu(1) > 0
        return f.multi_head_attention_forward(q, k, v, E, H, None, b, None, None, False, 0.0, wo, bo, need_weights=need_weights, attn_mask=mask,
                                              use_separate_proj_weight=True, q_proj_weight=wq, k_proj_weight=wk, v_proj_weight=wv, is_causal=True)
    compare(attend, [floats(L, N, E), floats(L, N, 6, seed=1), floats(L, N, 4, seed=2), floats(E, E), floats(E, 6), floats(E, 4), *PROJECTION[1:]])


def test_layer_and_errors():
    layer, other = clnn.nn.MultiheadAttention(E, H, batch_first=True), torch.nn.MultiheadAttention(E, H, batch_first=True)
    other.load_state_dict({k: torch.tensor(v.detach().numpy()) for k, v in layer.state_dict().items()})
    x = floats(N, L, E)
    for got, want in zip(layer(*[clnn.tensor(x)] * 3), other(*[torch.tensor(x)] * 3)):
        close(got, want)
    w = [clnn.tensor(p) for p in PROJECTION]
    q = clnn.tensor(floats(L, N, E))
    with pytest.raises(RuntimeError, match="is_causal"):
        F.multi_head_attention_forward(q, q, q, E, H, w[0], w[1], None, None, False, 0.0, w[2], w[3], is_causal=True)
    with pytest.raises(RuntimeError, match="attn_mask"):
        F.multi_head_attention_forward(q, q, q, E, H, w[0], w[1], None, None, False, 0.0, w[2], w[3], attn_mask=clnn.zeros(2, 2))
    with pytest.raises(AssertionError, match="embedding dimension"):
        F.multi_head_attention_forward(q, q, q, 6, H, w[0], w[1], None, None, False, 0.0, w[2], w[3])


def test_bilinear_and_conv_tbc():
    compare(lambda lib, f, a, b, w, c: f.bilinear(a, b, w, c), [floats(2, 4, 3), floats(2, 4, 5, seed=1), floats(6, 3, 5, seed=2), floats(6, seed=3)])
    compare(lambda lib, f, x, w, b: f.conv_tbc(x, w, b, 1), [floats(7, 2, 3), floats(3, 3, 4, seed=1), floats(4, seed=2)])


@pytest.mark.parametrize("p", [0.0, 1.0, 1.5, 2.0, 3.0, float("inf")])
def test_distances(p):
    a, b = floats(2, 5, 6), floats(2, 4, 6, seed=1)
    compare(lambda lib, f, x, y: lib.cdist(x, y, p), [a, b])
    compare(lambda lib, f, x: f.pdist(x, p), [a[0]])
    if p:
        compare(lambda lib, f, x, y: f.pairwise_distance(x, y, p), [a[:, :4], b])


def test_euclidean_distance_by_products():
    compare(lambda lib, f, x, y: lib.cdist(x, y), [floats(2, 40, 6), floats(1, 30, 6, seed=1)], tol=1e-4)
    compare(lambda lib, f, x, y: lib.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist"), [floats(2, 40, 6), floats(1, 30, 6, seed=1)])


def test_cosine_similarity():
    for dim in (0, -1):
        compare(lambda lib, f, x, y: f.cosine_similarity(x, y, dim), [floats(4, 5), floats(4, 5, seed=1)])
    compare(lambda lib, f, x, y: f.cosine_similarity(x, y), [floats(4, 5, 2), floats(5, 1, seed=1)])


def _padding_of_encoders(lib):
    """Which rows are zeros, for masks and settings under which PyTorch packs sequences and under which it does not."""
    import warnings
    nn = lib.nn
    ends = lib.tensor([[False, False, False, True], [False, False, True, True]])
    inside = lib.tensor([[False, True, False, False], [False, False, False, True]])
    x, seen = lib.ones(2, 4, 8), []

    def zeros(padding, heads=2, mask=None, grad=False, norm_first=False, train=False, **how):
        layer = nn.TransformerEncoderLayer(8, heads, 16, 0.0, batch_first=True, norm_first=norm_first)
        encoder = nn.TransformerEncoder(layer, 2, **how).train(train)
        with lib.set_grad_enabled(grad):
            seen.append((encoder(x, mask=mask, src_key_padding_mask=padding).abs().sum(-1) == 0).tolist())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for padding in (ends, inside, lib.zeros(2, 4).masked_fill(ends, float("-inf"))):
            zeros(padding)
        for how in (dict(heads=1), dict(mask=lib.zeros(4, 4)), dict(grad=True), dict(norm_first=True), dict(train=True), dict(enable_nested_tensor=False),
                    dict(mask_check=False)):
            zeros(ends, **how)
    return seen


def test_padding_of_encoders():
    torch = pytest.importorskip("torch")
    assert _padding_of_encoders(clnn) == _padding_of_encoders(torch)


def test_warnings_of_masks_and_layers():
    attention, x = clnn.nn.MultiheadAttention(8, 2), clnn.ones(3, 2, 8)
    with pytest.warns(UserWarning, match="mismatched key_padding_mask and attn_mask"):
        attention(x, x, x, key_padding_mask=clnn.zeros(2, 3, dtype=clnn.bool), attn_mask=clnn.zeros(3, 3))
    with pytest.warns(UserWarning, match="self_attn.batch_first was not True"):
        assert not clnn.nn.TransformerEncoder(clnn.nn.TransformerEncoderLayer(8, 2), 1).use_nested_tensor


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("need_weights", [True, False])
def test_samples_and_second_gradients(batch_first, need_weights):
    """Functions of samples, derivatives along a direction and gradients of gradients go through the views by heads."""
    rng = np.random.default_rng(3)
    layer = clnn.nn.MultiheadAttention(8, 2, batch_first=batch_first)
    x, d = (clnn.tensor(rng.standard_normal((3, 4, 8)).astype(np.float32)) for _ in range(2))
    many = clnn.tensor(rng.standard_normal((5, 3, 4, 8)).astype(np.float32))

    def f(t):
        return layer(t, t, t, need_weights=need_weights)[0]
    np.testing.assert_allclose(clnn.func.vmap(f)(many).detach().numpy(), np.stack([f(t).detach().numpy() for t in many]), rtol=1e-4, atol=1e-5)
    along = clnn.func.jvp(f, (x,), (d,))[1].detach().numpy()
    with clnn.no_grad():
        steps = (f(x + 1e-2 * d) - f(x - 1e-2 * d)).numpy() / 2e-2
    np.testing.assert_allclose(along, steps, rtol=2e-2, atol=2e-3)
    t = x.clone().requires_grad_()
    first, = clnn.autograd.grad(f(t).sin().sum(), t, create_graph=True)
    second, = clnn.autograd.grad((first * d).sum(), t)
    ahead, behind = (clnn.func.grad(lambda u: f(u).sin().sum())(x + s * d) for s in (1e-2, -1e-2))
    np.testing.assert_allclose(second.numpy(), (ahead - behind).detach().numpy() / 2e-2, rtol=5e-2, atol=2e-2)


def test_blocks_of_layers_can_be_replaced():
    """Subclasses put other blocks in, by PyTorch's names."""
    results = []
    for lib in (clnn, torch):
        class Encoder(lib.nn.TransformerEncoderLayer):
            def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
                out, self.weights = self.self_attn(x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask)
                return self.dropout1(out)

        class Decoder(lib.nn.TransformerDecoderLayer):
            def _mha_block(self, x, mem, attn_mask, key_padding_mask, is_causal=False):
                return super()._mha_block(x, mem, attn_mask, key_padding_mask) * 2

            def _ff_block(self, x):
                return super()._ff_block(x) + 1

        lib.manual_seed(0)
        encoder, decoder, x = Encoder(4, 2, 8, dropout=0.0), Decoder(4, 2, 8, dropout=0.0, norm_first=True), lib.linspace(-1, 1, 24).reshape(3, 2, 4)
        results.append([t.detach().numpy() for t in (encoder(x), encoder.weights, decoder(x, x), decoder._sa_block(x, None, None))])
    for got, want in zip(*results):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shapes", [dict(key_padding_mask=(2, 2)), dict(key_padding_mask=(3,)), dict(attn_mask=(3, 4)), dict(attn_mask=(4, 2, 2)), dict(is_causal=True),
                                    dict(attn_mask=(2, 2, 2, 2)), dict(attn_mask=(2, 2)), dict(key=(2, 1, 6)), dict(key=(2, 3, 7)), dict(key=(2, 6))], ids=str)
def test_words_about_masks(shapes):
    def words(t):
        layer = t.nn.MultiheadAttention(8, 2, kdim=6, vdim=6)
        kwargs = {name: shape if shape is True else t.ones(shape).bool() for name, shape in shapes.items() if name != "key"}
        said = []
        for query, key in ((t.ones(2, 3, 8), t.ones(shapes.get("key", (2, 3, 6)))), (t.ones(2, 8), t.ones(2, 6))):
            try:
                layer(query, key, t.ones(2, 3, 6) if query.dim() == 3 else key, **kwargs)
                said.append("fits")
            except (AssertionError, RuntimeError) as error:
                said.append(str(error).replace("clnn.", "torch."))
        return said
    assert words(clnn) == words(torch)
