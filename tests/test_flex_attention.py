"""Attention with functions of scores and masks, compared with PyTorch's; gradients with those of plain operators."""
import doctest
import importlib

import numpy as np
import pytest

import clnn
from clnn import nn

RNG = np.random.default_rng(3)
B, H, L, E = 2, 4, 21, 8
Q, K, V = (RNG.standard_normal((B, H, L, E)).astype(np.float32) for _ in range(3))
SLOPES, BIAS, RELATIVE = RNG.standard_normal(H).astype(np.float32), RNG.standard_normal((B, H, L, L)).astype(np.float32), RNG.standard_normal(2 * L).astype(np.float32)
DOCUMENT = np.repeat([0, 1, 2], [5, 7, 9])

SCORES = {
    "plain": lambda m: None,
    "slopes": lambda m, s=SLOPES: lambda x, b, h, q, k: x + m.tensor(s)[h] * (q - k),
    "causal": lambda m: lambda x, b, h, q, k: m.where(q >= k, x, -float("inf")),
    "bias": lambda m, t=BIAS: lambda x, b, h, q, k: x + m.tensor(t)[b, h, q, k],
    "capped": lambda m: lambda x, b, h, q, k: 3 * m.tanh(x / 3),
    "relative": lambda m, r=RELATIVE: lambda x, b, h, q, k: x + m.tensor(r)[q - k + L],
}
MASKS = {
    "all": lambda m, f: None,
    "causal": lambda m, f: f.create_block_mask(lambda b, h, q, k: q >= k, None, None, L, L, device=m.get_default_device(), BLOCK_SIZE=8),
    "documents": lambda m, f: f.create_block_mask(f.and_masks(lambda b, h, q, k: q >= k, f.or_masks(
        lambda b, h, q, k: (q - k).abs() <= 2, lambda b, h, q, k, d=m.tensor(DOCUMENT): d[q] == d[k])), B, H, L, L, device=m.get_default_device(), BLOCK_SIZE=(4, 8)),
    "some rows empty": lambda m, f: f.create_block_mask(lambda b, h, q, k: (q >= k) & (q > 3), B, None, L, L, device=m.get_default_device(), BLOCK_SIZE=4),
}


def modules():
    torch = pytest.importorskip("torch")
    return [(m, importlib.import_module(f"{m.__name__}.nn.attention.flex_attention")) for m in (clnn, torch)]


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.share(2)
@pytest.mark.parametrize("mask", MASKS)
def test_results(score, mask):
    outs = []
    for m, f in modules():
        outs.append(np.array(f.flex_attention(m.tensor(Q), m.tensor(K), m.tensor(V), score_mod=SCORES[score](m), block_mask=MASKS[mask](m, f)).tolist()))
    np.testing.assert_allclose(*outs, rtol=2e-5, atol=2e-6)


def test_gradients():
    """Also of what the score function captures."""
    from clnn.nn.attention.flex_attention import create_block_mask, flex_attention
    args = [clnn.tensor(t[:1, :2, :5, :3], dtype=clnn.float64, requires_grad=True) for t in (Q, K, V)]
    slopes = clnn.tensor(SLOPES[:2], dtype=clnn.float64, requires_grad=True)
    causal = create_block_mask(lambda b, h, q, k: (q >= k) & (q > 0), None, None, 5, 5, BLOCK_SIZE=2)

    def fn(q, k, v, s):
        return flex_attention(q, k, v, lambda x, b, h, i, j: x.sin() + s[h] * (i - j), causal, return_lse=True)[0]
    assert clnn.autograd.gradcheck(fn, (*args, slopes))
    out = flex_attention(*args, block_mask=causal)
    assert out[0, :, 0].abs().max() == 0


def test_groups_scales_and_further_results():
    from clnn.nn.attention.flex_attention import AuxRequest, flex_attention
    q, k, v = clnn.tensor(Q), clnn.tensor(K[:, :2]), clnn.tensor(V[:, :2, :, :5].copy())
    out, lse = flex_attention(q, k, v, scale=0.3, enable_gqa=True, return_lse=True)
    scores = np.einsum("bhle,bhse->bhls", Q, K[:, :2].repeat(2, 1)) * 0.3
    weights = np.exp(scores)
    np.testing.assert_allclose(lse.numpy(), np.log(weights.sum(-1)), rtol=1e-5)
    np.testing.assert_allclose(out.numpy(), weights / weights.sum(-1, keepdims=True) @ V[:, :2, :, :5].repeat(2, 1), rtol=2e-5, atol=1e-6)
    _, aux = flex_attention(q, k, v, scale=0.3, enable_gqa=True, return_aux=AuxRequest(max_scores=True))
    np.testing.assert_allclose(aux.max_scores.numpy(), scores.max(-1), rtol=1e-5)
    assert aux.lse is None and flex_attention(q.bfloat16(), k.bfloat16(), v.bfloat16(), enable_gqa=True).dtype is clnn.bfloat16


@pytest.mark.parametrize("mask", [m for m in MASKS if m != "all"])
def test_block_masks(mask):
    seen = []
    for m, f in modules():
        block = MASKS[mask](m, f)
        adjusted, part = block._adjust(9, 12), block[0]
        seen.append([t.tolist() for t in (block.to_dense(), block.kv_num_blocks, block.kv_indices, block.full_kv_num_blocks, block.full_kv_indices,
                                          block.q_num_blocks, block.q_indices, block.full_q_num_blocks, adjusted.to_dense(), part.to_dense())]
                    + [tuple(block.shape), tuple(part.shape), adjusted.seq_lengths, block.numel(), round(block.sparsity(), 4), block.BLOCK_SIZE,
                       block.to_string().partition("...")[0]])
    assert seen[0] == seen[1]


def test_errors():
    calls = (lambda m, f, t: f.flex_attention(t[0], t, t), lambda m, f, t: f.flex_attention(t, t[:, :2], t[:, :2]),
             lambda m, f, t: f.flex_attention(t, t[..., :4], t), lambda m, f, t: f.flex_attention(t, t[:1], t[:1]),
             lambda m, f, t: f.flex_attention(t, t, t, block_mask=f.create_block_mask(lambda b, h, q, k: q >= k, None, None, 64, 64, device=m.get_default_device())),
             lambda m, f, t: f.create_block_mask(lambda s, b, h, q, k: s, None, None, 4, 4, device=m.get_default_device()), lambda m, f, t: f.or_masks(3))
    for call in calls:
        kinds = []
        for m, f in modules():
            with pytest.raises(Exception) as caught:  # noqa: B017
                call(m, f, m.tensor(Q))
            kinds.append((caught.type.__name__, str(caught.value)[:20]))
        assert kinds[0] == kinds[1]


def test_causal_masks_for_other_numbers_of_keys():
    torch = pytest.importorskip("torch")
    from torch.nn.attention import bias as theirs
    for name in ("causal_upper_left", "causal_lower_right"):
        outs = [np.array(m.nn.functional.scaled_dot_product_attention(m.tensor(Q[:, :, :5].copy()), m.tensor(K), m.tensor(V), getattr(b, name)(5, L)).tolist())
                for m, b in ((clnn, nn.attention.bias), (torch, theirs))]
        np.testing.assert_allclose(*outs, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", ["flex_attention", "bias"])
def test_documentation(name):
    failed, tried = doctest.testmod(importlib.import_module(f"clnn.nn.attention.{name}"), extraglobs={"clnn": clnn, "nn": nn})
    assert not failed and tried


def _alone(q, k, v, seen=None):
    return nn.functional.scaled_dot_product_attention(*(t.transpose(0, 1) for t in (q, k, v)), attn_mask=seen).transpose(0, 1)


@pytest.mark.share(2)
@pytest.mark.parametrize("window", [(-1, -1), (-1, 0), (1, 1)], ids=str)
def test_sequences_of_unequal_length(window):
    from clnn.nn.attention.varlen import AuxRequest, varlen_attn
    r = np.random.default_rng(0)
    q, k, v = (clnn.tensor(r.standard_normal((12, 4, 8)).astype("float32"), requires_grad=True) for _ in range(3))
    ends = clnn.tensor([0, 3, 3, 8, 12], dtype=clnn.int32)
    got, lse = varlen_attn(q, k, v, ends, ends, 5, 5, window_size=window, return_aux=AuxRequest(lse=True))
    expected = []
    for a, b in ((0, 3), (3, 8), (8, 12)):
        i, j = np.indices((b - a, b - a))
        seen = (j <= i + (window[1] if window[1] >= 0 else 9)) & (j >= i - (window[0] if window[0] >= 0 else 9))
        expected.append(_alone(q[a:b], k[a:b], v[a:b], clnn.tensor(seen)))
    expected = clnn.cat(expected)
    assert clnn.allclose(got, expected, atol=1e-6) and lse.shape == (4, 12) and bool(lse.isfinite().all())
    mine, theirs = (clnn.autograd.grad((o * o).sum(), (q, k, v)) for o in (got, expected))
    assert all(clnn.allclose(a, b, atol=1e-5) for a, b in zip(mine, theirs))


def test_pages_of_keys():
    from clnn.nn.attention.varlen import varlen_attn
    r = np.random.default_rng(1)
    q, k, v = (clnn.tensor(r.standard_normal(s).astype("float32")) for s in ((3, 4, 8), (6, 2, 2, 8), (6, 2, 2, 8)))
    pages, used = clnn.tensor([[4, 0, 1], [2, 5, 3]], dtype=clnn.int32), clnn.tensor([5, 3], dtype=clnn.int32)
    got = varlen_attn(q, k, v, clnn.tensor([0, 1, 3], dtype=clnn.int32), None, 2, 6, seqused_k=used, block_table=pages, enable_gqa=True, window_size=(-1, 0))
    keys, values = (t[pages.long()].reshape(2, 6, 2, 8).repeat_interleave(2, 2) for t in (k, v))
    last = clnn.tensor([[True, True, False], [True, True, True]])
    assert clnn.allclose(got, clnn.cat([_alone(q[:1], keys[0, :5], values[0, :5]), _alone(q[1:], keys[1, :3], values[1, :3], last)]), atol=1e-6)
    with pytest.raises(ValueError, match="enable_gqa"):
        varlen_attn(q, k[0], v[0], clnn.tensor([0, 3]), clnn.tensor([0, 2]), 3, 2)
