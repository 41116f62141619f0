"""Sequences of different lengths in one tensor. T steps, B sequences, ``*`` the shape of an element."""
from collections import namedtuple

import numpy as np

import clnn
from clnn._tensor.inplace import type_name
from clnn._tensor.tensor import Tensor
from clnn.ops._batches import known

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
    if isinstance(lengths, Tensor) and lengths.ndim != 1:
        raise RuntimeError(f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.ndim}D {lengths.device.type} {type_name(lengths.dtype)} tensor")
    lengths = _as_list(lengths)
    if not input.numel():
        raise RuntimeError("Cannot pack empty tensors.")
    batch = input.shape[0 if batch_first else 1]
    if len(lengths) != batch:
        raise RuntimeError(f"Expected `len(lengths)` to be equal to batch_size, but got {len(lengths)} (batch_size={batch})")
    ranked, order, sorted_indices, unsorted_indices = np.asarray(lengths, np.int64), np.arange(batch), None, None
    if not enforce_sorted:
        order = np.argsort(-ranked, kind="stable")
        ranked, back = ranked[order], np.argsort(order)
        sorted_indices, unsorted_indices = clnn.tensor(order, device=input.device), clnn.tensor(back, device=input.device)
    if (ranked[:-1] < ranked[1:]).any():
        raise RuntimeError("`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
                           "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
                           "do not need ONNX exportability.")
    if ranked[-1] <= 0:
        raise RuntimeError("Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0")
    steps = input.shape[1 if batch_first else 0]
    there = ranked > np.arange(ranked[0])[:, None]
    # One gather of the elements where they lie.
    step, element = (1, steps) if batch_first else (batch, 1)
    positions = (np.arange(ranked[0])[:, None] * step + order * element)[:steps][there[:steps]]        # PyTorch does not mind lengths beyond the input
    data = input.reshape(-1, *input.shape[2:]).index_select(0, clnn.tensor(positions, device=input.device))
    return PackedSequence(data, clnn.tensor(there.sum(1)), sorted_indices, unsorted_indices)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """Undo :func:`pack_padded_sequence`.

    Returns:
        (padded sequences ``(T, B, *)`` or ``(B, T, *)``, lengths ``(B)``); T is *total_length* or the longest length.

    Example::

        >>> nn.utils.rnn.pad_packed_sequence(nn.utils.rnn.pack_sequence([clnn.tensor([1, 2]), clnn.tensor([3])]))[0].tolist()
        [[1, 3], [2, 0]]
    """
    sizes = np.asarray(_as_list(sequence.batch_sizes), np.int64)
    longest, batch = len(sizes), int(sizes[0])
    if total_length is not None and total_length < longest:
        raise ValueError("Expected total_length to be at least the length of the longest sequence in input, but got "
                         f"total_length={total_length} and max sequence length being {longest}")
    data = sequence.data
    order = range(batch) if sequence.unsorted_indices is None else _as_list(sequence.unsorted_indices)
    ranks = np.asarray(order, np.int64)
    # Row ``len(data)`` is one of padding, appended at the end.
    places = np.full((longest if total_length is None else total_length, batch), data.shape[0])
    places[:longest] = np.where(ranks < sizes[:, None], (np.cumsum(sizes) - sizes)[:, None] + ranks, data.shape[0])
    lengths = (sizes[:, None] > ranks).sum(0)
    return _chosen([data], places.T if batch_first else places, padding_value), clnn.tensor(lengths)


def _chosen(rows, places, padding_value):
    """Elements of the tensors ``rows``, one after the other and then one of padding, in the order of the array ``places``."""
    first, arrays = rows[0], known(rows)
    if arrays is not None:                                      # nothing is sent yet
        arrays.append(np.full((1, *first.shape[1:]), padding_value, arrays[0].dtype))
        return clnn.tensor(np.concatenate(arrays)[places], device=first.device)
    padding = clnn.full((1, *first.shape[1:]), padding_value, dtype=first.dtype, device=first.device)
    chosen = clnn.cat([*rows, padding]).index_select(0, clnn.tensor(places.reshape(-1), device=first.device))
    return chosen.reshape(*places.shape, *first.shape[1:])


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
    lengths = np.array([s.shape[0] for s in sequences])
    longest, dtype = int(lengths.max()), sequences[0].dtype
    sequences = [s if s.dtype is dtype else s.to(dtype) for s in sequences]
    if (lengths == longest).all():
        return clnn.stack(sequences, 0 if batch_first else 1)
    for s in sequences:
        if s.shape[1:] != sequences[0].shape[1:]:
            raise RuntimeError(f"pad_sequence: expected all sequences to have the trailing sizes {list(sequences[0].shape[1:])} of the first, but got "
                               f"{list(s.shape[1:])}")
    ends, steps = np.cumsum(lengths)[:, None], np.arange(longest)
    if padding_side == "left":
        steps = steps - (longest - lengths)[:, None]
    places = np.where((steps >= 0) & (steps < lengths[:, None]), ends - lengths[:, None] + steps, ends[-1])
    return _chosen(sequences, places if batch_first else places.T, padding_value)


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
