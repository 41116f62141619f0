"""Matrix products and other sums of products."""
from ..._tensor.explain import explain

explain("mm", "``out[i, j] = sum over k of input[i, k] mat2[k, j]``.",
        "clnn.mm(clnn.tensor([[1., 2.], [3., 4.]]), clnn.tensor([[1., 0.], [0., 1.]]))", "tensor([[1., 2.],\n        [3., 4.]])")
explain("bmm", "", "clnn.bmm(clnn.ones(1, 2, 3), clnn.ones(1, 3, 1))", "tensor([[[3.],\n         [3.]]])")
explain("matmul", "", "clnn.matmul(clnn.tensor([[1., 2.], [3., 4.]]), clnn.tensor([1., 1.]))", "tensor([3., 7.])")
explain("linear", "",
        "clnn.nn.functional.linear(clnn.tensor([[1., 2.]]), clnn.tensor([[3., 4.]]), clnn.tensor([1.]))", "tensor([[12.]])")
explain("mv", "``out[i] = sum over k of input[i, k] vec[k]``: ``(M, K) @ (K,) -> (M,)``.",
        "clnn.mv(clnn.tensor([[1., 2.], [3., 4.]]), clnn.tensor([1., 1.]))", "tensor([3., 7.])")
explain("addmm", "``input`` broadcasts to (M, N), ``mat1`` is (M, K), ``mat2`` (K, N); with ``beta=0`` the input is not read.",
        "clnn.addmm(clnn.tensor([1., 2.]), clnn.tensor([[1., 2.], [3., 4.]]), clnn.tensor([[1., 0.], [0., 1.]]))", "tensor([[2., 4.],\n        [4., 6.]])")
explain("addmv", "``input`` broadcasts to (M,), ``mat`` is (M, K), ``vec`` (K,); with ``beta=0`` the input is not read.",
        "clnn.addmv(clnn.tensor([1., 2.]), clnn.tensor([[1., 2.], [3., 4.]]), clnn.tensor([1., 1.]))", "tensor([4., 9.])")
explain("baddbmm", "", "clnn.baddbmm(clnn.ones(1, 1, 1), clnn.ones(1, 1, 3), clnn.ones(1, 3, 1))", "tensor([[[4.]]])")
explain("addbmm", "", "clnn.addbmm(clnn.ones(1, 1), clnn.ones(2, 1, 3), clnn.ones(2, 3, 1))", "tensor([[7.]])")
explain("addr", "",
        "clnn.addr(clnn.ones(2, 2), clnn.tensor([1., 2.]), clnn.tensor([3., 4.]))", "tensor([[4., 5.],\n        [7., 9.]])")
explain("dot", "``sum over i of input[i] tensor[i]``.", "clnn.dot(clnn.tensor([1., 2.]), clnn.tensor([3., 4.]))", "tensor(11.)")
explain("vdot", "``sum over i of conj(input[i]) other[i]``.",
        "clnn.vdot(clnn.tensor([1., 2.]), clnn.tensor([3., 4.]))", "tensor(11.)")
explain("outer", "``out[i, j] = input[i] vec2[j]``.",
        "clnn.outer(clnn.tensor([1., 2.]), clnn.tensor([3., 4.]))", "tensor([[3., 4.],\n        [6., 8.]])")
explain("inner", "", "clnn.inner(clnn.tensor([1., 2.]), clnn.tensor([3., 4.]))", "tensor(11.)")
explain("linalg_cross", "``(a2 b3 - a3 b2, a3 b1 - a1 b3, a1 b2 - a2 b1)``.",
        "clnn.linalg.cross(clnn.tensor([1., 0., 0.]), clnn.tensor([0., 1., 0.]))", "tensor([0., 0., 1.])")
explain("cross", "``(a2 b3 - a3 b2, a3 b1 - a1 b3, a1 b2 - a2 b1)``.",
        "clnn.cross(clnn.tensor([1., 0., 0.]), clnn.tensor([0., 1., 0.]), dim=0)", "tensor([0., 0., 1.])")
explain("kron", "``out[i P + k, j Q + l] = input[i, j] other[k, l]`` for ``other`` (P, Q); other numbers of dimensions alike.",
        "clnn.kron(clnn.tensor([1., 2.]), clnn.tensor([1., 10.]))", "tensor([ 1., 10.,  2., 20.])")
explain("tensordot", "", "clnn.tensordot(clnn.tensor([[1., 2.], [3., 4.]]), clnn.tensor([1., 1.]), 1)", "tensor([3., 7.])")
explain("linalg_multi_dot", "",
        "clnn.linalg.multi_dot([clnn.tensor([[1., 2.]]), clnn.tensor([[3.], [4.]]), clnn.tensor([[5.]])])", "tensor([[55.]])")
explain("chain_matmul", "Of two or more, in the order that costs least: see :func:`clnn.linalg.multi_dot`.",
        "clnn.chain_matmul(clnn.tensor([[1., 2.]]), clnn.tensor([[3.], [4.]]), clnn.tensor([[5.]]))", "tensor([[55.]])")
explain("matrix_power", "", "clnn.matrix_power(clnn.tensor([[1., 1.], [0., 1.]]), 3)", "tensor([[1., 3.],\n        [0., 1.]])")
explain("pairwise_distance", "``(sum |x1 - x2 + eps|^p)^(1/p)``: (*, D) and (*, D) give (*).",
        "clnn.nn.functional.pairwise_distance(clnn.tensor([[0., 0.]]), clnn.tensor([[3., 4.]]))", "tensor([5.0000])")
explain("cosine_similarity", "",
        "clnn.nn.functional.cosine_similarity(clnn.tensor([1., 0.]), clnn.tensor([1., 1.]), dim=0)", "tensor(0.7071)")
explain("cdist", "", "clnn.cdist(clnn.tensor([[0., 0.]]), clnn.tensor([[3., 4.], [0., 1.]]))", "tensor([[5., 1.]])")
explain("pdist", "", "clnn.nn.functional.pdist(clnn.tensor([[0., 0.], [3., 4.], [0., 1.]]))", "tensor([5.0000, 1.0000, 4.2426])")
explain("bilinear", "",
        "clnn.nn.functional.bilinear(clnn.tensor([[1., 2.]]), clnn.tensor([[3.]]), clnn.tensor([[[1.], [1.]]]))", "tensor([[9.]])")
