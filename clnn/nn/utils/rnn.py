"""Sequences of different lengths in one tensor. T steps, B sequences, ``*`` the shape of an element."""
from collections import namedtuple

import clnn
from clnn._tensor.tensor import Tensor

__all__ = ["PackedSequence", "invert_permutation", "pack_padded_sequence", "pad_packed_sequence", "pad_sequence", "unpad_sequence",
           "pack_sequence", "unpack_sequence"]

_Fields = namedtuple("PackedSequence_", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"])


class PackedSequence(_Fields):
    """The elements of several sequences, step by step, without padding; made by :func:`pack_padded_sequence`.

    Attributes:
        data: ``(sum of lengths, *)``.
        batch_sizes: how many sequences have each step.
        sorted_indices, unsorted_indices: the order of the sequences by falling length, and back (``None``: as they came).

    Example:
        >>> packed = nn.utils.rnn.pack_sequence([clnn.tensor([1, 2, 3]), clnn.tensor([4])])
        >>> packed.data, packed.batch_sizes
        (tensor([1, 4, 2, 3]), tensor([2, 1, 1]))
    """

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if batch_sizes is None:  # the (data, batch_sizes) pair in one argument
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args, **kwargs):
        """Move or cast the data (and move the indices)."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        indices = [None if i is None else i.to(data.device) for i in (self.sorted_indices, self.unsorted_indices)]
        return type(self)(data, self.batch_sizes, *indices)

    def cpu(self, *args, **kwargs):
        """Move to the CPU device."""
        return self.to(*args, device="cpu", **kwargs)

    def cuda(self, *args, **kwargs):
        """Move to the GPU."""
        return self.to(*args, device="cuda", **kwargs)

    def double(self):
        """Cast the data to float64."""
        return self.to(dtype=clnn.float64)

    def float(self):
        """Cast the data to float32."""
        return self.to(dtype=clnn.float32)

    def half(self):
        """Cast the data to float16."""
        return self.to(dtype=clnn.float16)

    def long(self):
        """Cast the data to int64."""
        return self.to(dtype=clnn.int64)

    def int(self):
        """Cast the data to int32."""
        return self.to(dtype=clnn.int32)

    def short(self):
        """Cast the data to int16."""
        return self.to(dtype=clnn.int16)

    def char(self):
        """Cast the data to int8."""
        return self.to(dtype=clnn.int8)

    def byte(self):
        """Cast the data to uint8."""
        return self.to(dtype=clnn.uint8)

    def pin_memory(self):
        """Nothing to do here."""
        return self

    def is_pinned(self):
        """Whether the data lies in pinned memory of the host."""
        return self.data.is_pinned()

    @property
    def is_cuda(self):
        """Whether the data is on a GPU."""
        return self.data.is_cuda


def invert_permutation(permutation):
    """The permutation that undoes *permutation*; ``None`` stays ``None``.

    Example::

        >>> nn.utils.rnn.invert_permutation(clnn.tensor([2, 0, 1]))
        tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    positions = clnn.arange(permutation.numel(), device=permutation.device)
    return clnn.empty_like(positions).index_copy(0, permutation, positions)


def apply_permutation(tensor, permutation, dim=1):
    """The slices of ``tensor`` along ``dim`` in another order."""
    return tensor.index_select(dim, permutation)


def _as_list(lengths):
    return [int(n) for n in (lengths.tolist() if isinstance(lengths, Tensor) else lengths)]


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """Pack padded sequences.

    Args:
        input: ``(T, B, *)``, or ``(B, T, *)`` with *batch_first*.
        lengths: the length of each sequence, a list or tensor.
        enforce_sorted: the lengths fall already; ``False`` sorts them. Default: ``True``.

    Returns:
        PackedSequence.

    Example::

        >>> x = clnn.tensor([[1, 2], [3, 0]])
        >>> nn.utils.rnn.pack_padded_sequence(x, [2, 1], batch_first=True).data
        tensor([1, 3, 2])
    """
    lengths = _as_list(lengths)
    if not input.numel():
        raise RuntimeError("Cannot pack empty tensors.")
    batch = input.shape[0 if batch_first else 1]
    if len(lengths) != batch:
        raise RuntimeError(f"Expected `len(lengths)` to be equal to batch_size, but got {len(lengths)} (batch_size={batch})")
    order, sorted_indices = range(batch), None
    if not enforce_sorted:
        order = sorted(range(batch), key=lambda b: -lengths[b])
        sorted_indices = clnn.tensor(order, device=input.device)
    ranked = [lengths[b] for b in order]
    if any(a < b for a, b in zip(ranked, ranked[1:])):
        raise RuntimeError("`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
                           "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
                           "do not need ONNX exportability.")
    if not ranked or ranked[-1] <= 0:
        raise RuntimeError("Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0")
    x = input.transpose(0, 1) if batch_first else input
    sizes = [sum(n > t for n in ranked) for t in range(ranked[0])]
    # one gather over the flattened (T B) positions
    positions = [t * batch + order[rank] for t, size in enumerate(sizes) for rank in range(size)]
    data = x.reshape(-1, *x.shape[2:]).index_select(0, clnn.tensor(positions, device=input.device))
    return PackedSequence(data, clnn.tensor(sizes, dtype=clnn.int64), sorted_indices, None)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """Undo :func:`pack_padded_sequence`.

    Returns:
        (padded sequences ``(T, B, *)`` or ``(B, T, *)``, lengths ``(B)``); T is *total_length* or the longest length.

    Example::

        >>> nn.utils.rnn.pad_packed_sequence(nn.utils.rnn.pack_sequence([clnn.tensor([1, 2]), clnn.tensor([3])]))[0].tolist()
        [[1, 3], [2, 0]]
    """
    sizes = _as_list(sequence.batch_sizes)
    longest, batch = len(sizes), sizes[0]
    if total_length is not None and total_length < longest:
        raise ValueError("Expected total_length to be at least the length of the longest sequence in input, but got "
                         f"total_length={total_length} and max sequence length being {longest}")
    data = sequence.data
    order = list(range(batch)) if sequence.unsorted_indices is None else _as_list(sequence.unsorted_indices)
    starts = [sum(sizes[:t]) for t in range(longest)]
    filler = data.shape[0]  # position of the row of padding, appended at the end
    steps = range(longest if total_length is None else total_length)

    def source(t, rank):
        return starts[t] + rank if t < longest and rank < sizes[t] else filler

    if batch_first:
        positions, shape = [source(t, rank) for rank in order for t in steps], (batch, len(steps))
    else:
        positions, shape = [source(t, rank) for t in steps for rank in order], (len(steps), batch)
    padding = clnn.full((1, *data.shape[1:]), padding_value, dtype=data.dtype, device=data.device)
    padded = clnn.cat([data, padding]).index_select(0, clnn.tensor(positions, device=data.device))
    lengths = [sum(size > rank for size in sizes) for rank in order]
    return padded.reshape(*shape, *data.shape[1:]), clnn.tensor(lengths, dtype=clnn.int64)


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Stack sequences ``(T_i, *)`` of different lengths, filled up to the longest.

    Example::

        >>> nn.utils.rnn.pad_sequence([clnn.tensor([1, 2]), clnn.tensor([3])], batch_first=True)
        tensor([[1, 2],
                [3, 0]])
    """
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    if not isinstance(sequences, (list, tuple)):
        if isinstance(sequences, Tensor):
            sequences = sequences.unbind(0)
        elif hasattr(sequences, "__iter__"):
            sequences = list(sequences)
        else:
            raise RuntimeError(f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}")
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    longest = max(s.shape[0] for s in sequences)

    def filled(s):
        missing = longest - s.shape[0]
        if not missing:
            return s
        filler = clnn.full((missing, *s.shape[1:]), padding_value, dtype=s.dtype, device=s.device)
        return clnn.cat([s, filler] if padding_side == "right" else [filler, s])

    return clnn.stack([filled(s) for s in sequences], 0 if batch_first else 1)


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """Undo :func:`pad_sequence`: a list of ``(T_i, *)`` tensors. As in PyTorch, ``padded_sequences`` itself is transposed where its batch is not first.

    Example::

        >>> nn.utils.rnn.unpad_sequence(clnn.tensor([[1, 3], [2, 0]]), [2, 1])
        [tensor([1, 2]), tensor([3])]
    """
    x = padded_sequences if batch_first else padded_sequences.transpose_(0, 1)
    return [row[:n].clone() for row, n in zip(x.unbind(0), _as_list(lengths))]


def pack_sequence(sequences, enforce_sorted=True):
    """Pack a list of ``(T_i, *)`` tensors.

    Example::

        >>> nn.utils.rnn.pack_sequence([clnn.tensor([1, 2]), clnn.tensor([3])]).data
        tensor([1, 3, 2])
    """
    return pack_padded_sequence(pad_sequence(sequences), [s.shape[0] for s in sequences], enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences):
    """Undo :func:`pack_sequence`: a list of ``(T_i, *)`` tensors.

    Example::

        >>> nn.utils.rnn.unpack_sequence(nn.utils.rnn.pack_sequence([clnn.tensor([1, 2]), clnn.tensor([3])]))
        [tensor([1, 2]), tensor([3])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
