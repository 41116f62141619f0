"""Where the stored elements of a sparse tensor are. Tensors that differ in their values only share one pattern, and what was worked out for it."""
from __future__ import annotations

import math
import weakref
from collections import namedtuple

from .._tensor.tensor import Tensor
from ..core import dtype as dt
from ..graph.op import REGISTRY
from ..ops.creation import arange, zeros

Packed = namedtuple("Packed", "start other place")       # compressed rows or columns: element k lies in `other[k]`; its value is number place[k] (None: k)


def fn(name):
    """An operator of the table by name."""
    return REGISTRY[name].fn


def narrow(t: Tensor, bound: int) -> Tensor:
    """``t`` in 32 bits where that holds what is below ``bound``: half of the memory to read, half of the passes to sort."""
    return t.to(dt.int32 if bound < 2 ** 31 else dt.int64)


def rising(ids, count):
    """(ids in order, the places that they had) by a stable sort; ``ids`` are below ``count``."""
    return fn("sort")(narrow(ids, count), 0)


def starts_of(sorted_ids, count):
    """Where each of 0 .. count starts in ``sorted_ids``: (count + 1), in 32 bits if they fit."""
    marks = arange(count + 1, dtype=sorted_ids.dtype, device=sorted_ids.device)
    return narrow(fn("searchsorted")(sorted_ids, marks), sorted_ids._numel)


class Pattern:
    """Places of elements in the sparse dimensions.

    ``sizes``: the sparse dimensions. ``indices``: int64 (dimensions, nnz), made when asked for. ``ordered``: places rise row by row and differ
    ("coalesced"). ``compressed``: (side, starts, others) as they were given for a compressed layout: side 0 for rows, 1 for columns.
    """

    __slots__ = ("sizes", "nnz", "ordered", "compressed", "blocks", "_indices", "_packed", "_turned", "_merged", "_twin")

    def __init__(self, sizes, indices, ordered=False, compressed=None):
        self.sizes, self.compressed = tuple(sizes), compressed
        self._indices, self._packed, self._turned = indices, {}, 0
        self._merged = self._twin = self.blocks = None          # blocks: the pattern of a stack of matrices as one of their blocks on a diagonal
        self.nnz = compressed[2]._numel if indices is None else indices.shape[1]
        self.ordered = ordered or self.nnz < 2

    @property
    def indices(self):
        """int64 (dimensions, nnz)."""
        if self._indices is None:
            side, starts, others = self.compressed
            ids = arange(self.nnz, dtype=starts.dtype, device=starts.device)
            lines = fn("searchsorted")(starts.contiguous(), ids, right=True) - 1
            self._indices = fn("stack")([lines, others.to(dt.int64)] if side == 0 else [others.to(dt.int64), lines])
        return self._indices

    @property
    def device(self):
        return (self._indices if self._indices is not None else self.compressed[2])._storage.device

    def key(self):
        """One number per element that rises row by row: its place among all ``sizes``."""
        if len(self.sizes) == 1:
            return self.indices[0]
        return flat_key(self.indices, self.sizes)

    def packed(self, side) -> Packed:
        """Compressed rows (side 0) or columns (1) of a pattern of two dimensions."""
        got = self._packed.get(side ^ self._turned)
        if got is None:
            got = self._packed[side ^ self._turned] = self._pack(side)
        return got

    def _pack(self, side):
        lines = self.sizes[side]
        if self.compressed is not None and self.compressed[0] == side:
            _, starts, others = self.compressed
            return Packed(narrow(starts.contiguous(), self.nnz), narrow(others.contiguous(), max(self.sizes)), None)
        ids, others = narrow(self.indices[side], max(*self.sizes, self.nnz)), narrow(self.indices[1 - side], max(*self.sizes, self.nnz))
        place = None
        if not (self.ordered and side == 0):
            ids, place = rising(ids, lines)
            others, place = others.index_select(0, place), place.to(ids.dtype)
        starts = starts_of(ids.contiguous(), lines).to(ids.dtype)
        return Packed(*[None if t is None else settled(t) for t in (starts, others, place)])

    def starts(self, side, dtype=dt.int64):
        """Where each row (or column) starts, for ``crow_indices()``; the pattern's elements must be in that order."""
        if self.compressed is not None and self.compressed[0] == side:
            return self.compressed[1]
        return self.packed(side).start.to(dtype)

    def merged(self):
        """(the pattern with each place once and in order, the number there of each element; None for the pattern itself)."""
        if self.ordered:
            return self, None
        if self._merged is None:
            if self.nnz < 2 or not self.sizes:
                several = self.nnz > 1                          # of no sparse dimensions: all in one place
                unique = Pattern(self.sizes, self.indices[:, :1] if several else self.indices, True)
                self._merged = unique, zeros(self.nnz, dtype=dt.int64, device=self.device) if several else None
            else:
                total = math.prod(self.sizes)
                keys, inverse = fn("unique")(narrow(self.key(), total), return_inverse=True)
                self._merged = Pattern(self.sizes, unflat(keys.to(dt.int64), self.sizes), True), settled(inverse)
        return self._merged

    def loose(self):
        """The same pattern without the promise that it is ordered."""
        if not self.ordered:
            return self
        other = Pattern(self.sizes, self.indices)
        other._packed, other._turned, other._merged = self._packed, self._turned, (self, None)
        return other

    def transposed(self):
        """The pattern of two dimensions with both exchanged. Both know what is worked out for either."""
        if self._twin is None:
            packed = self.compressed
            twin = self._twin = Pattern(self.sizes[::-1], None if self._indices is None else self._indices.flip(0), packed is not None and packed[0] == 1,
                                        None if packed is None else (1 - packed[0], *packed[1:]))
            twin._packed, twin._turned = self._packed, 1 - self._turned
        return self._twin

    def moved(self, change):
        """The pattern after ``change``, a function of tensors, on all of them (another device, a copy)."""
        packed = self.compressed
        return Pattern(self.sizes, None if self._indices is None else change(self._indices), self.ordered,
                       None if packed is None else (packed[0], change(packed[1]), change(packed[2])))


_known: dict = {}          # id of a tensor of indices -> (reference to it, its version, sizes, Pattern)


def remember(indices, pattern):
    """Let :func:`pattern_of` find the pattern of this very tensor again, as long as it lives and is not written."""
    key = id(indices)
    _known[key] = (weakref.ref(indices, lambda gone: _known.pop(key, None)), indices._version, pattern.sizes, pattern)
    return indices


def pattern_of(indices, sizes):
    """The pattern that was made of this tensor of indices before, not promised to be ordered; or None."""
    ref, version, known, pattern = _known.get(id(indices), (None, 0, (), None))
    return pattern.loose() if ref is not None and ref() is indices and version == indices._version and known == tuple(sizes) else None


def settled(t):
    """``t``, computed now: a pattern is kept for long, and what it came from need not be."""
    t._storage.buffer()
    return t


def flat_key(indices, sizes):
    """indices (dimensions, n) as numbers of elements of a dense block of ``sizes``."""
    key = indices[0]
    for d in range(1, len(sizes)):
        key = key * sizes[d] + indices[d]
    return key


def unflat(keys, sizes):
    """The inverse of :func:`flat_key`: int64 (dimensions, n)."""
    if len(sizes) == 1:
        return keys.unsqueeze(0)
    return fn("stack")(list(fn("unravel_index")(keys, tuple(sizes))))
