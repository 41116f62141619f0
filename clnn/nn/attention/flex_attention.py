"""Attention whose scores a Python function changes, as in ``torch.nn.attention.flex_attention``.

The functions are called once, with tensors of indices that broadcast against each other: batch ``(B, 1, 1, 1)``, head ``(H, 1, 1)``, query ``(Q, 1)`` and
key ``(K)`` in place of PyTorch's numbers under ``vmap``. So they are made of operators that work element by element and of indexing with the indices
(``slopes[h]``, ``document[q] == document[k]``); sums and other operators along dimensions are not for them. The matrix of scores is computed as a whole:
blocks that are masked cost memory and time as others do.
"""
from __future__ import annotations

import math
from typing import NamedTuple

import clnn
from clnn._tensor.tensor import Tensor
from clnn.nn import functional as F

__all__ = ["AuxOutput", "AuxRequest", "BlockMask", "FlexKernelOptions", "and_masks", "create_block_mask", "create_mask", "flex_attention", "noop_mask",
           "or_masks"]
FlexKernelOptions = dict
_DEFAULT_SPARSE_BLOCK_SIZE = 128        # rows and columns of a block


class AuxRequest(NamedTuple):
    """Which further results are wanted: the logarithm of the sum of exponentials of each query's scores, their maximum."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """Further results, None where not asked for."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


# -- masks --------------------------------------------------------------------------------------------------------------------------

def noop_mask(batch, head, token_q, token_kv):
    """Every query sees every key."""
    return batch.new_ones((), dtype=clnn.bool)


def or_masks(*mask_mods):
    """True where one of the masks is.

    Example:
        >>> from clnn.nn.attention.flex_attention import create_mask, or_masks
        >>> mask = or_masks(lambda b, h, q, kv: q > kv, lambda b, h, q, kv: q == kv)
        >>> create_mask(mask, None, None, 2, 2)
        tensor([[[[ True, False],
                  [ True,  True]]]])
    """
    return _combined(mask_mods, "or_masks", lambda a, b: a | b)


def and_masks(*mask_mods):
    """True where all of the masks are.

    Example::

        >>> from clnn.nn.attention.flex_attention import and_masks, create_mask
        >>> near = and_masks(lambda b, h, q, k: q >= k, lambda b, h, q, k: q - k < 2)
        >>> create_mask(near, None, None, 3, 3)[0, 0].int()
        tensor([[1, 0, 0],
                [1, 1, 0],
                [0, 1, 1]], dtype=clnn.int32)
    """
    return _combined(mask_mods, "and_masks", lambda a, b: a & b)


def _combined(mods, name, join):
    if not all(callable(m) for m in mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mods}")

    def mask(b, h, q_idx, kv_idx):
        got = mods[0](b, h, q_idx, kv_idx) if mods else b.new_full((), name == "and_masks", dtype=clnn.bool)
        for mod in mods[1:]:
            got = join(got, mod(b, h, q_idx, kv_idx))
        return got
    return mask


def _indices(B, H, Q, K, device):
    return tuple(clnn.arange(n, dtype=clnn.int32, device=device).reshape(n, *(1,) * after) for n, after in ((B, 3), (H, 2), (Q, 1), (K, 0)))


def _is_score_mod(fn):
    """Whether a function takes a score in front of the four indices."""
    import inspect
    required = [p for p in inspect.signature(fn).parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty]
    if len(required) not in (4, 5):
        raise AssertionError("Unknown function type")
    return len(required) == 5


def create_mask(mod_fn, B, H, Q_LEN, KV_LEN, device=None):
    """What a mask or score function gives for all indices: ``(B, H, Q_LEN, KV_LEN)``; B and H may be None for 1.

    Of a score function: False where it makes a score of 0 minus infinity.

    Example:
        >>> from clnn.nn.attention.flex_attention import create_mask
        >>> create_mask(lambda b, h, q, kv: q >= kv, None, None, 2, 2)
        tensor([[[[ True, False],
                  [ True,  True]]]])
    """
    B, H = B or 1, H or 1
    at, full = _indices(B, H, Q_LEN, KV_LEN, device), (B, H, Q_LEN, KV_LEN)
    if _is_score_mod(mod_fn):
        return mod_fn(clnn.zeros(full, device=device), *at).expand(full) != -math.inf
    return mod_fn(*at).expand(full)


class BlockMask:
    """Which blocks of the matrix of scores are computed.

    Attributes:
        kv_num_blocks, kv_indices: for each row of blocks ``(B, H, rows)`` the number of blocks in which some query sees some key, and which these are,
            first ones first ``(B, H, rows, columns)``; without those in which all see all, if there is ``full_kv_num_blocks``.
        full_kv_num_blocks, full_kv_indices: those in which all queries see all keys, or None.
        q_num_blocks, q_indices, full_q_num_blocks, full_q_indices: the same by columns.
        BLOCK_SIZE: rows and columns of a block. seq_lengths: numbers of queries and keys. mask_mod: the mask within blocks.
    """

    def __init__(self, seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, q_num_blocks, q_indices, full_q_num_blocks,
                 full_q_indices, BLOCK_SIZE=(128, 128), mask_mod=noop_mask, **orders):
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        self.seq_lengths, self.BLOCK_SIZE, self.mask_mod = tuple(seq_lengths), tuple(BLOCK_SIZE), mask_mod
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices

    @classmethod
    def from_kv_blocks(cls, kv_num_blocks, kv_indices, full_kv_num_blocks=None, full_kv_indices=None, BLOCK_SIZE=_DEFAULT_SPARSE_BLOCK_SIZE,
                       mask_mod=None, seq_lengths=None, compute_q_blocks=True, **orders):
        """A mask from its rows of blocks; the columns follow."""
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
        columns = (None,) * 4
        if compute_q_blocks:
            columns = _ordered(_dense(kv_num_blocks, kv_indices).transpose(-2, -1))
            columns += _ordered(_dense(full_kv_num_blocks, full_kv_indices).transpose(-2, -1)) if full_kv_indices is not None else (None, None)
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * size[0], kv_indices.shape[-1] * size[1])
        return cls(seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, *columns, size, mask_mod or noop_mask)

    def as_tuple(self, flatten=True):
        """Lengths, blocks and functions, as the constructor takes them."""
        size, lengths = (self.BLOCK_SIZE, self.seq_lengths) if flatten else ((self.BLOCK_SIZE,), (self.seq_lengths,))
        return (*lengths, *self._blocks(), *size, self.mask_mod)

    def _blocks(self):
        return (self.kv_num_blocks, self.kv_indices, self.full_kv_num_blocks, self.full_kv_indices, self.q_num_blocks, self.q_indices,
                self.full_q_num_blocks, self.full_q_indices)

    @property
    def shape(self):
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self):
        """Elements of the matrix of scores."""
        return math.prod(self.shape)

    def sparsity(self):
        """The share of the scores, in percent, that lie in blocks that are not computed."""
        blocks = int(self.kv_num_blocks.sum()) + (0 if self.full_kv_num_blocks is None else int(self.full_kv_num_blocks.sum()))
        return 100 * (1 - blocks * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def to_dense(self):
        """int32 ``(B, H, rows, columns)``: 1 for blocks that are computed."""
        partial = _dense(self.kv_num_blocks, self.kv_indices)
        return partial if self.full_kv_indices is None else partial | _dense(self.full_kv_num_blocks, self.full_kv_indices)

    def _seen(self):
        """bool (B, H, Q, K): scores that lie in blocks that are computed."""
        size, (q, k) = self.BLOCK_SIZE, self.seq_lengths
        return self.to_dense().bool().repeat_interleave(size[0], -2).repeat_interleave(size[1], -1)[..., :q, :k]

    def __getitem__(self, index):
        """The mask of some batches and heads; both dimensions stay."""
        index = tuple(slice(i, None if i == -1 else i + 1) if isinstance(i, int) else i for i in (index if isinstance(index, tuple) else (index,)))

        def cut(t):
            return None if t is None else t[index]
        return BlockMask(self.seq_lengths, *[cut(t) for t in self._blocks()], self.BLOCK_SIZE, self.mask_mod)

    def _adjust(self, new_q_len, new_kv_len):
        """The mask of the first queries and keys."""
        rows, columns = -(-new_q_len // self.BLOCK_SIZE[0]), -(-new_kv_len // self.BLOCK_SIZE[1])

        def cut(number, indices):
            return (None, None) if indices is None else _ordered(_dense(number, indices)[..., :rows, :columns])
        return BlockMask.from_kv_blocks(*cut(self.kv_num_blocks, self.kv_indices), *cut(self.full_kv_num_blocks, self.full_kv_indices), self.BLOCK_SIZE,
                                        self.mask_mod, (new_q_len, new_kv_len))

    def to(self, device):
        """The mask on another device."""
        return BlockMask(self.seq_lengths, *[None if t is None else t.to(device) for t in self._blocks()], self.BLOCK_SIZE, self.mask_mod)

    def to_string(self, grid_size=(20, 20), limit=4):
        """A picture of the blocks that are computed, for each batch and head; where several are drawn as one, some of them or all."""
        rows, columns = (-1, -1) if grid_size == -1 else grid_size
        dense, out = self.to_dense().float(), []
        lead = dense.shape[:-2]
        for number, picture in enumerate(dense.reshape(-1, *dense.shape[-2:])[:limit]):
            h, w = picture.shape
            step = (max(1, -(-h // rows)) if rows > 0 else 1, max(1, -(-w // columns)) if columns > 0 else 1)
            values = F.avg_pool2d(picture[None, None], step, ceil_mode=True, count_include_pad=False)[0, 0].tolist()
            place = tuple(number // math.prod(lead[i + 1:]) % lead[i] for i in range(len(lead)))
            out.append(f"{place}\n" + "".join("".join("██" if v == 1 else "  " if v == 0 else "░░" for v in row) + "\n" for row in values))
        return "\n".join([*out, *(["..."] if math.prod(lead) > limit else [])])

    def __repr__(self):
        return f"BlockMask(shape={tuple(self.shape)}, sparsity={self.sparsity():.2f}%,\n{self.to_string()}\n)"


def _dense(number, indices):
    """int32 (*, rows, columns): 1 at the first ``number`` of ``indices`` of each row."""
    columns = indices.shape[-1]
    valid = clnn.arange(columns, device=indices.device) < number.unsqueeze(-1)
    return clnn.zeros(indices.shape, dtype=clnn.int32, device=indices.device).scatter_add(-1, indices.long(), valid.int())


def _ordered(dense):
    """(numbers of ones per row, their columns first and then the others), int32."""
    order = clnn.argsort(dense.int(), dim=-1, descending=True, stable=True)
    return dense.sum(-1).to(clnn.int32), order.to(clnn.int32)


def create_block_mask(mask_mod, B, H, Q_LEN, KV_LEN, device=None, BLOCK_SIZE=_DEFAULT_SPARSE_BLOCK_SIZE, _compile=False, separate_full_blocks=True,
                      compute_dq_write_order=False, dq_kv_order=True):
    """The :class:`BlockMask` of a mask function.

    Args:
        mask_mod: ``mask_mod(b, h, q_idx, kv_idx)`` is True where query ``q_idx`` sees key ``kv_idx``.
        B, H: batches and heads, None where the mask does not depend on them.
        BLOCK_SIZE: rows and columns of a block, or one number for both.

    Example::

        >>> from clnn.nn.attention.flex_attention import create_block_mask
        >>> causal = create_block_mask(lambda b, h, q, k: q >= k, None, None, 4, 4, BLOCK_SIZE=2)
        >>> causal.to_dense()[0, 0]
        tensor([[1, 0],
                [1, 1]], dtype=clnn.int32)
    """
    if _is_score_mod(mask_mod):
        raise AssertionError("create-block_mask requires a mask_mod function! Got a function of a score and four indices")
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    rows, columns = -(-Q_LEN // size[0]), -(-KV_LEN // size[1])
    padded = F.pad(mask.int(), (0, columns * size[1] - KV_LEN, 0, rows * size[0] - Q_LEN))
    counts = padded.reshape(*mask.shape[:2], rows, size[0], columns, size[1]).sum((3, 5))
    full = (counts == size[0] * size[1]) if separate_full_blocks else counts < 0
    partial = (counts > 0) & ~full
    blocks = (*_ordered(partial.int()), *(_ordered(full.int()) if separate_full_blocks else (None, None)))
    return BlockMask.from_kv_blocks(*blocks, size, mask_mod, (Q_LEN, KV_LEN))


# -- attention -------------------------------------------------------------------------------------------------------------------------

def _check(query, key, value, enable_gqa, block_mask):
    if not query.dim() == key.dim() == value.dim() == 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"Expect query and key/value to have the same embedding dimension but got E={query.shape[-1]} and E={key.shape[-1]}.")
    heads, of_keys = query.shape[1], key.shape[1]
    if heads != of_keys and not enable_gqa:
        raise ValueError(f"Expect query and key/value to have the same number of heads but got Hq={heads} and Hkv={of_keys}. Try setting enable_gqa=True for "
                         "GQA.")
    if heads % of_keys:
        raise ValueError(f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={heads} and Hkv={of_keys}.")
    if query.shape[0] != key.shape[0] and (block_mask is None or key.shape[0] != 1):
        raise ValueError(f"Expect query and key/value to have the same batch size, or non-none block_mask, but got block_mask={block_mask}, "
                         f"Bq={query.shape[0]}, and Bkv={key.shape[0]}.")
    if block_mask is not None:
        q, k = block_mask.seq_lengths
        if (q, k) != (query.shape[2], key.shape[2]):
            raise ValueError(f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={query.shape[2]} and kv_len={key.shape[2]}. "
                             "As the block mask was created for another length, you need to create one for this one.")


def flex_attention(query, key, value, score_mod=None, block_mask=None, scale=None, enable_gqa=False, return_lse=False, kernel_options=None, *,
                   return_aux=None):
    """``softmax(score_mod(query @ key.T * scale)) @ value`` over the keys that ``block_mask`` lets a query see; zeros for queries that see none.

    Args:
        query: ``(B, Hq, L, E)``; key: ``(B, Hkv, S, E)``; value: ``(B, Hkv, S, Ev)``.
        score_mod: ``score_mod(score, b, h, q_idx, kv_idx)`` gives the score to use; see the module for what it may be made of.
        block_mask: see :func:`create_block_mask`.
        scale: default ``1 / sqrt(E)``.
        enable_gqa: ``Hq`` may be a multiple of ``Hkv``.
        return_lse: also the logarithm of each query's sum of exponentials ``(B, Hq, L)``; ``return_aux`` asks for that and more (:class:`AuxRequest`).
        kernel_options: accepted.

    Returns:
        ``(B, Hq, L, Ev)``, or with ``return_lse`` a pair, or with ``return_aux`` a pair with :class:`AuxOutput`.

    Example::

        >>> from clnn.nn.attention.flex_attention import flex_attention
        >>> x = clnn.arange(2.).reshape(1, 1, 2, 1)
        >>> flex_attention(x, x, x, lambda score, b, h, q, k: clnn.where(q >= k, score, -float("inf"))).flatten()
        tensor([0.0000, 0.7311])
    """
    _check(query, key, value, enable_gqa, block_mask)
    B, H, L, E = query.shape
    S, scale = key.shape[2], 1.0 / math.sqrt(E) if scale is None else scale
    mask = None
    if block_mask is not None:
        at = _indices(B, H, L, S, query.device)
        mask = block_mask.mask_mod(*at) & block_mask._seen()
    wants = return_lse or return_aux is not None
    if score_mod is None and mask is None and not wants:
        return F.scaled_dot_product_attention(query, key, value, scale=scale, enable_gqa=enable_gqa)
    wide = clnn.float64 if query.dtype is clnn.float64 else clnn.float32
    k, v = (t.to(wide).repeat_interleave(H // t.shape[1], 1) if H != t.shape[1] else t.to(wide) for t in (key, value))
    scores = (query.to(wide) @ k.transpose(-2, -1)) * scale
    if score_mod is not None:
        scores = score_mod(scores.to(query.dtype), *_indices(B, H, L, S, query.device)).to(wide).expand(B, H, L, S)
    if mask is not None:
        scores = clnn.where(mask, scores, -math.inf)
    top = scores.detach().amax(-1, keepdim=True)
    weights = (scores - clnn.where(top == -math.inf, 0.0, top)).exp()
    total = weights.sum(-1, keepdim=True)
    none = total == 0
    out = ((weights / clnn.where(none, 1.0, total)) @ v).to(query.dtype)
    if not wants:
        return out
    lse = (total.log() + clnn.where(none, 0.0, top)).squeeze(-1)
    if return_aux is not None:
        return out, AuxOutput(lse if return_aux.lse else None, top.squeeze(-1) if return_aux.max_scores else None)
    return out, lse
