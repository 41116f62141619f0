"""Views, joining, splitting and rearranging."""
from ..._tensor.explain import explain

explain("view", "Only where the strides allow it; RuntimeError otherwise (:func:`reshape` copies then).",
        "clnn.arange(4).view(2, -1)", "tensor([[0, 1],\n        [2, 3]])")
explain("reshape", "``shape`` may hold one -1, which the number of elements decides.",
        "clnn.reshape(clnn.arange(4), (2, 2))", "tensor([[0, 1],\n        [2, 3]])")
explain("view_as", "", "clnn.arange(4).view_as(clnn.ones(2, 2))", "tensor([[0, 1],\n        [2, 3]])")
explain("reshape_as", "", "clnn.arange(4).reshape_as(clnn.ones(2, 2))", "tensor([[0, 1],\n        [2, 3]])")
explain("contiguous", "The elements in row-major order without gaps: the tensor itself where they lie so, else a copy.",
        "clnn.ones(2, 3).t().contiguous().stride()", "(2, 1)")
explain("permute", "The dimensions in another order, as a view: ``out.shape[i] = input.shape[dims[i]]``.",
        "clnn.permute(clnn.ones(2, 3, 4), (2, 0, 1)).shape", "clnn.Size([4, 2, 3])")
explain("transpose", "``out[..., i, ..., j, ...] = input[..., j, ..., i, ...]``, as a view.",
        "clnn.transpose(clnn.tensor([[1., 2.], [3., 4.]]), 0, 1)", "tensor([[1., 3.],\n        [2., 4.]])")
explain("t", "``out[i, j] = input[j, i]``, as a view; at most 2 dimensions.",
        "clnn.t(clnn.tensor([[1., 2.], [3., 4.]]))", "tensor([[1., 3.],\n        [2., 4.]])")
explain("broadcast_to", "A view of shape ``size``: dimensions of size 1 repeat, without memory.",
        "clnn.broadcast_to(clnn.tensor([1., 2.]), (2, 2))", "tensor([[1., 2.],\n        [1., 2.]])")
explain("squeeze", "A view. Dimensions of other sizes stay.", "clnn.squeeze(clnn.ones(1, 3, 1)).shape", "clnn.Size([3])")
explain("unsqueeze", "A view; ``dim`` counts in the result, from ``-ndim - 1`` to ``ndim``.",
        "clnn.unsqueeze(clnn.tensor([1., 2.]), 1)", "tensor([[1.],\n        [2.]])")
explain("flatten", "A view when the strides allow it, else a copy.",
        "clnn.flatten(clnn.ones(2, 3, 4), 1).shape", "clnn.Size([2, 12])")
explain("ravel", "All elements as a vector: a view when the strides allow it, else a copy.",
        "clnn.ravel(clnn.tensor([[1., 2.], [3., 4.]]))", "tensor([1., 2., 3., 4.])")
explain("unflatten", "A view; one size may be -1, and their product is the size of ``dim``.",
        "clnn.unflatten(clnn.arange(4), 0, (2, 2))", "tensor([[0, 1],\n        [2, 3]])")
explain("as_strided", "Element ``(i, j, ...)`` is element ``storage_offset + i stride[0] + j stride[1] + ...`` of the storage.",
        "clnn.as_strided(clnn.arange(4), (2, 2), (1, 1))", "tensor([[0, 1],\n        [1, 2]])")
explain("embed_strided", "",
        "clnn.ops.views.embed_strided(clnn.tensor([1., 2.]), (4,), (2,), (2,), 0)", "tensor([1., 0., 2., 0.])")
explain("diagonal", "``out[..., i] = input[..., i, i + offset]`` for the two dimensions, as a view.",
        "clnn.diagonal(clnn.tensor([[1., 2.], [3., 4.]]))", "tensor([1., 4.])")
explain("unfold", "A view: ``out[..., w, ..., k] = input[..., w step + k, ...]``.",
        "clnn.arange(5).unfold(0, 3, 2)", "tensor([[0, 1, 2],\n        [2, 3, 4]])")
explain("copy", "", "clnn.zeros(2).copy_(clnn.tensor([1., 2.]))", "tensor([1., 2.])")
explain("stack", "All at index i of ``dim`` are tensor i.",
        "clnn.stack([clnn.tensor([1., 2.]), clnn.tensor([3., 4.])])", "tensor([[1., 2.],\n        [3., 4.]])")
explain("atleast_1d", "Leading dimensions of size 1 are added; several tensors give a tuple.",
        "clnn.atleast_1d(clnn.tensor(5.))", "tensor([5.])")
explain("atleast_2d", "A vector becomes one row; several tensors give a tuple.",
        "clnn.atleast_2d(clnn.tensor([1., 2.]))", "tensor([[1., 2.]])")
explain("atleast_3d", "A vector becomes ``(1, N, 1)``, a matrix ``(M, N, 1)``; several tensors give a tuple.",
        "clnn.atleast_3d(clnn.tensor([1., 2.])).shape", "clnn.Size([1, 2, 1])")
explain("hstack", "", "clnn.hstack([clnn.tensor([1., 2.]), clnn.tensor([3.])])", "tensor([1., 2., 3.])")
explain("vstack", "", "clnn.vstack([clnn.tensor([1., 2.]), clnn.tensor([3., 4.])])", "tensor([[1., 2.],\n        [3., 4.]])")
explain("dstack", "", "clnn.dstack([clnn.tensor([1., 2.]), clnn.tensor([3., 4.])])", "tensor([[[1., 3.],\n         [2., 4.]]])")
explain("column_stack", "",
        "clnn.column_stack([clnn.tensor([1., 2.]), clnn.tensor([3., 4.])])", "tensor([[1., 3.],\n        [2., 4.]])")
explain("split_with_sizes", "", "clnn.split_with_sizes(clnn.tensor([1., 2., 3.]), [1, 2])", "(tensor([1.]), tensor([2., 3.]))")
explain("split", "", "clnn.split(clnn.tensor([1., 2., 3.]), 2)", "(tensor([1., 2.]), tensor([3.]))")
explain("chunk", "", "clnn.chunk(clnn.tensor([1., 2., 3.]), 2)", "(tensor([1., 2.]), tensor([3.]))")
explain("unsafe_split", "", "clnn.unsafe_split(clnn.tensor([1., 2., 3.]), 2)", "(tensor([1., 2.]), tensor([3.]))")
explain("unsafe_split_with_sizes", "", "clnn.unsafe_split_with_sizes(clnn.tensor([1., 2., 3.]), [1, 2])", "(tensor([1.]), tensor([2., 3.]))")
explain("unsafe_chunk", "", "clnn.unsafe_chunk(clnn.tensor([1., 2., 3.]), 2)", "(tensor([1., 2.]), tensor([3.]))")
explain("tensor_split", "", "clnn.tensor_split(clnn.tensor([1., 2., 3.]), 2)", "(tensor([1., 2.]), tensor([3.]))")
explain("hsplit", "Along dimension 1, of vectors along dimension 0.",
        "clnn.hsplit(clnn.tensor([1., 2., 3., 4.]), 2)", "(tensor([1., 2.]), tensor([3., 4.]))")
explain("vsplit", "Along dimension 0, of at least 2 dimensions.",
        "clnn.vsplit(clnn.tensor([[1., 2.], [3., 4.]]), 2)", "(tensor([[1., 2.]]), tensor([[3., 4.]]))")
explain("dsplit", "Along dimension 2, of at least 3 dimensions.",
        "[p.shape for p in clnn.dsplit(clnn.ones(1, 2, 4), 2)]", "[clnn.Size([1, 2, 2]), clnn.Size([1, 2, 2])]")
explain("unbind", "", "clnn.unbind(clnn.tensor([[1., 2.], [3., 4.]]))", "(tensor([1., 2.]), tensor([3., 4.]))")
explain("narrow", "``input[..., start:start + length, ...]``; ``start`` may be negative.",
        "clnn.narrow(clnn.tensor([1., 2., 3.]), 0, 1, 2)", "tensor([2., 3.])")
explain("select", "``input[..., index, ...]``, without that dimension.",
        "clnn.select(clnn.tensor([[1., 2.], [3., 4.]]), 0, 1)", "tensor([3., 4.])")
explain("meshgrid", '``indexing="ij"``: the first vector runs along dimension 0; ``"xy"`` exchanges the first two dimensions.',
        'clnn.meshgrid(clnn.tensor([1., 2.]), clnn.tensor([3., 4.]), indexing="ij")[0]', "tensor([[1., 1.],\n        [2., 2.]])")
explain("broadcast_tensors", "",
        "clnn.broadcast_tensors(clnn.tensor([1., 2.]), clnn.tensor([[3.], [4.]]))[0]", "tensor([[1., 2.],\n        [1., 2.]])")
explain("block_diag", "",
        "clnn.block_diag(clnn.tensor([[1., 2.]]), clnn.tensor([[3.]]))", "tensor([[1., 2., 0.],\n        [0., 0., 3.]])")
explain("cartesian_prod", "",
        "clnn.cartesian_prod(clnn.tensor([1., 2.]), clnn.tensor([3., 4.]))", "tensor([[1., 3.],\n        [1., 4.],\n        [2., 3.],\n        [2., 4.]])")
explain("combinations", "",
        "clnn.combinations(clnn.tensor([1., 2., 3.]), 2)", "tensor([[1., 2.],\n        [1., 3.],\n        [2., 3.]])")
explain("constant_pad_nd", "``pad`` counts as for :func:`pad`: (left, right, top, bottom, ...).",
        "clnn.constant_pad_nd(clnn.tensor([1., 2.]), (1, 1), 0.)", "tensor([0., 1., 2., 0.])")
explain("movedim", "", "clnn.movedim(clnn.ones(2, 3, 4), 0, -1).shape", "clnn.Size([3, 4, 2])")
explain("fliplr", "Dimension 1 of at least 2 reversed; a copy.",
        "clnn.fliplr(clnn.tensor([[1., 2.], [3., 4.]]))", "tensor([[2., 1.],\n        [4., 3.]])")
explain("flipud", "Dimension 0 reversed; a copy.",
        "clnn.flipud(clnn.tensor([[1., 2.], [3., 4.]]))", "tensor([[3., 4.],\n        [1., 2.]])")
explain("rot90", "", "clnn.rot90(clnn.tensor([[1., 2.], [3., 4.]]))", "tensor([[2., 4.],\n        [1., 3.]])")
explain("roll", "``out[(i + shift) mod N] = input[i]``.", "clnn.roll(clnn.tensor([1., 2., 3.]), 1)", "tensor([3., 1., 2.])")
explain("repeat", "", "clnn.tensor([1., 2.]).repeat(2, 2)", "tensor([[1., 2., 1., 2.],\n        [1., 2., 1., 2.]])")
explain("tile", "", "clnn.tile(clnn.tensor([1., 2.]), (2,))", "tensor([1., 2., 1., 2.])")
explain("repeat_interleave", "", "clnn.repeat_interleave(clnn.tensor([1., 2.]), 2)", "tensor([1., 1., 2., 2.])")
explain("narrow_copy", "``input[..., start:start + length, ...]`` with its own memory.",
        "clnn.narrow_copy(clnn.tensor([1., 2., 3.]), 0, 1, 2)", "tensor([2., 3.])")
explain("select_scatter", "",
        "clnn.select_scatter(clnn.zeros(2, 2), clnn.tensor([1., 2.]), 0, 1)", "tensor([[0., 0.],\n        [1., 2.]])")
explain("slice_scatter", "", "clnn.slice_scatter(clnn.zeros(4), clnn.tensor([1., 2.]), 0, 1, 3)", "tensor([0., 1., 2., 0.])")
explain("diagonal_scatter", "``src`` has the shape of :func:`diagonal`. The input stays as it is.",
        "clnn.diagonal_scatter(clnn.zeros(2, 2), clnn.tensor([1., 2.]))", "tensor([[1., 0.],\n        [0., 2.]])")
explain("as_strided_scatter", "",
        "clnn.as_strided_scatter(clnn.zeros(4), clnn.tensor([1., 2.]), (2,), (2,))", "tensor([1., 0., 2., 0.])")
explain("tril", "", "clnn.tril(clnn.ones(2, 2))", "tensor([[1., 0.],\n        [1., 1.]])")
explain("triu", "", "clnn.triu(clnn.ones(2, 2))", "tensor([[1., 1.],\n        [0., 1.]])")
explain("tril_indices", "", "clnn.tril_indices(2, 2)", "tensor([[0, 1, 1],\n        [0, 0, 1]])")
explain("triu_indices", "", "clnn.triu_indices(2, 2)", "tensor([[0, 0, 1],\n        [0, 1, 1]])")
explain("diag_embed", "", "clnn.diag_embed(clnn.tensor([1., 2.]))", "tensor([[1., 0.],\n        [0., 2.]])")
explain("diag", "", "clnn.diag(clnn.tensor([1., 2.]))", "tensor([[1., 0.],\n        [0., 2.]])")
explain("diagflat", "", "clnn.diagflat(clnn.tensor([1., 2.]))", "tensor([[1., 0.],\n        [0., 2.]])")
explain("trace", "``sum over i of input[i, i]``.", "clnn.trace(clnn.tensor([[1., 2.], [3., 4.]]))", "tensor(5.)")
