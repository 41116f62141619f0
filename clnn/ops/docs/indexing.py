"""Indexing, scattering, searching and sorting."""
from ..._tensor.explain import explain

explain("take_along_dim", "",
        "clnn.take_along_dim(clnn.tensor([[3., 1.], [2., 4.]]), clnn.tensor([[1], [0]]), 1)", "tensor([[1.],\n        [2.]])")
explain("take", "", "clnn.take(clnn.tensor([[1., 2.], [3., 4.]]), clnn.tensor([0, -1]))", "tensor([1., 4.])")
explain("masked_select", "",
        "clnn.masked_select(clnn.tensor([1., 2., 3.]), clnn.tensor([True, False, True]))", "tensor([1., 3.])")
explain("index_copy", "", "clnn.index_copy(clnn.zeros(3), 0, clnn.tensor([0, 2]), clnn.tensor([1., 2.]))", "tensor([1., 0., 2.])")
explain("index_fill", "", "clnn.index_fill(clnn.zeros(3), 0, clnn.tensor([0, 2]), 5.)", "tensor([5., 0., 5.])")
explain("index_reduce", "",
        'clnn.index_reduce(clnn.ones(3), 0, clnn.tensor([0, 0]), clnn.tensor([2., 3.]), "prod")', "tensor([6., 1., 1.])")
explain("index_put", "", "clnn.index_put(clnn.zeros(3), (clnn.tensor([0, 2]),), clnn.tensor([1., 2.]))", "tensor([1., 0., 2.])")
explain("put", "", "clnn.zeros(2, 2).put(clnn.tensor([0, 3]), clnn.tensor([1., 2.]))", "tensor([[1., 0.],\n        [0., 2.]])")
explain("scatter_add", "",
        "clnn.scatter_add(clnn.zeros(3), 0, clnn.tensor([0, 0, 2]), clnn.tensor([1., 2., 3.]))", "tensor([3., 0., 3.])")
explain("scatter_reduce", "",
        'clnn.scatter_reduce(clnn.zeros(3), 0, clnn.tensor([0, 0, 2]), clnn.tensor([1., 2., 3.]), "amax")', "tensor([2., 0., 3.])")
explain("masked_scatter", "",
        "clnn.masked_scatter(clnn.zeros(3), clnn.tensor([True, False, True]), clnn.tensor([1., 2.]))", "tensor([1., 0., 2.])")
explain("argwhere", "One row of coordinates per element that is not zero.",
        "clnn.argwhere(clnn.tensor([0., 3., 5.]))", "tensor([[1],\n        [2]])")
explain("nonzero_static", "The host need not wait for the count.",
        "clnn.nonzero_static(clnn.tensor([0., 3., 5.]), size=3)", "tensor([[ 1],\n        [ 2],\n        [-1]])")
explain("unravel_index", "The inverse of ``i stride_0 + j stride_1 + ...`` in row-major order.",
        "clnn.unravel_index(clnn.tensor([1, 3]), (2, 2))", "(tensor([0, 1]), tensor([1, 1]))")
explain("unique_consecutive", "``return_inverse`` and ``return_counts`` as for :func:`unique`.",
        "clnn.unique_consecutive(clnn.tensor([1., 1., 2., 1.]))", "tensor([1., 2., 1.])")
explain("searchsorted", "", "clnn.searchsorted(clnn.tensor([1., 3., 5.]), clnn.tensor([2., 3.]))", "tensor([1, 1])")
explain("bucketize", "", "clnn.bucketize(clnn.tensor([2., 6.]), clnn.tensor([1., 3., 5.]))", "tensor([1, 3])")
explain("isin", "``invert``: whether it does not. One of the two may be a number.",
        "clnn.isin(clnn.tensor([1., 2.]), clnn.tensor([2., 3.]))", "tensor([False,  True])")
explain("argsort", "The indices of :func:`sort`: ``input[argsort(input)]`` is in order.",
        "clnn.argsort(clnn.tensor([3., 1., 2.]))", "tensor([1, 2, 0])")
explain("msort", "``sort(input, 0).values``.", "clnn.msort(clnn.tensor([3., 1., 2.]))", "tensor([1., 2., 3.])")
explain("kthvalue", "", "clnn.kthvalue(clnn.tensor([3., 1., 2.]), 2).values", "tensor(2.)")
