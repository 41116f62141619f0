"""Linear algebra: determinants, solutions, factorisations."""
from ..._tensor.explain import explain

explain("inverse", "``inverse(A) A = I``; shape (*, N, N).",
        "clnn.inverse(clnn.tensor([[2., 0.], [0., 4.]]))", "tensor([[0.5000, 0.0000],\n        [0.0000, 0.2500]])")
explain("det", "Shape (*, N, N) gives (*): the product of the pivots, with the sign of the row exchanges.",
        "clnn.det(clnn.tensor([[1., 2.], [3., 4.]]))", "tensor(-2.)")
explain("slogdet", "``det(A) = sign exp(logabsdet)``, without overflow.",
        "clnn.slogdet(clnn.tensor([[2., 0.], [0., 4.]])).logabsdet", "tensor(2.0794)")
explain("linalg_slogdet", "``det(A) = sign exp(logabsdet)``, without overflow.",
        "clnn.linalg.slogdet(clnn.tensor([[2., 0.], [0., 4.]])).sign", "tensor(1.)")
explain("logdet", "", "clnn.logdet(clnn.tensor([[2., 0.], [0., 4.]]))", "tensor(2.0794)")
explain("linalg_solve", "", "clnn.linalg.solve(clnn.tensor([[2., 0.], [0., 4.]]), clnn.tensor([2., 4.]))", "tensor([1., 1.])")
explain("linalg_solve_triangular", "",
        "clnn.linalg.solve_triangular(clnn.tensor([[2., 0.], [1., 1.]]), clnn.tensor([[2.], [3.]]), upper=False)", "tensor([[1.],\n        [2.]])")
explain("cholesky", "LinAlgError when one is not positive definite.",
        "clnn.cholesky(clnn.tensor([[4., 2.], [2., 5.]]))", "tensor([[2., 0.],\n        [1., 2.]])")
explain("cholesky_solve", "",
        "clnn.cholesky_solve(clnn.tensor([[8.], [9.]]), clnn.tensor([[2., 0.], [1., 2.]]))", "tensor([[1.3750],\n        [1.2500]])")
explain("linalg_cholesky", "LinAlgError when one is not positive definite.",
        "clnn.linalg.cholesky(clnn.tensor([[4., 2.], [2., 5.]]))", "tensor([[2., 0.],\n        [1., 2.]])")
explain("linalg_qr", "", "clnn.linalg.qr(clnn.tensor([[2., 0.], [0., 3.]])).R.abs()", "tensor([[2., 0.],\n        [0., 3.]])")
explain("qr", "", "clnn.qr(clnn.tensor([[2., 0.], [0., 3.]]))[1].abs()", "tensor([[2., 0.],\n        [0., 3.]])")
explain("linalg_svd", "", "clnn.linalg.svd(clnn.tensor([[3., 0.], [0., 2.]])).S", "tensor([3., 2.])")
explain("linalg_svdvals", "The square roots of the eigenvalues of ``A^H A``.",
        "clnn.linalg.svdvals(clnn.tensor([[0., 2.], [3., 0.]]))", "tensor([3., 2.])")
explain("svd", "", "clnn.svd(clnn.tensor([[3., 0.], [0., 2.]])).S", "tensor([3., 2.])")
explain("linalg_eigh", "``A = V diag(w) V^H``.",
        "clnn.linalg.eigh(clnn.tensor([[2., 1.], [1., 2.]])).eigenvalues", "tensor([1., 3.])")
explain("linalg_eigvalsh", "Only the triangle that ``UPLO`` names is read.",
        "clnn.linalg.eigvalsh(clnn.tensor([[2., 1.], [1., 2.]]))", "tensor([1., 3.])")
explain("pinverse", "",
        "clnn.pinverse(clnn.tensor([[2., 0.], [0., 4.]]))", "tensor([[0.5000, 0.0000],\n        [0.0000, 0.2500]])")
explain("linalg_lstsq", "",
        "clnn.linalg.lstsq(clnn.tensor([[1.], [1.]]), clnn.tensor([[1.], [3.]])).solution", "tensor([[2.0000]])")
explain("linalg_matrix_rank", "", "clnn.linalg.matrix_rank(clnn.tensor([[1., 2.], [2., 4.]]))", "tensor(1)")
explain("linalg_matrix_norm", "", "clnn.linalg.matrix_norm(clnn.tensor([[1., 2.], [2., 4.]]))", "tensor(5.)")
explain("linalg_norm", "", "clnn.linalg.norm(clnn.tensor([3., 4.]))", "tensor(5.)")
explain("linalg_cond", "", "clnn.linalg.cond(clnn.tensor([[2., 0.], [0., 4.]]))", "tensor(2.)")
explain("linalg_cholesky_ex", "",
        "clnn.linalg.cholesky_ex(clnn.tensor([[4., 2.], [2., 5.]])).info", "tensor(0, dtype=clnn.int32)")
explain("linalg_inv_ex", "",
        "clnn.linalg.inv_ex(clnn.tensor([[2., 0.], [0., 4.]])).inverse", "tensor([[0.5000, 0.0000],\n        [0.0000, 0.2500]])")
explain("linalg_solve_ex", "",
        "clnn.linalg.solve_ex(clnn.tensor([[2., 0.], [0., 4.]]), clnn.tensor([[2.], [4.]])).result", "tensor([[1.],\n        [1.]])")
explain("linalg_ldl_factor_ex", "",
        "clnn.linalg.ldl_factor_ex(clnn.zeros(2, 2)).info", "tensor(1, dtype=clnn.int32)")
explain("linalg_ldl_solve", "",
        "clnn.linalg.ldl_solve(*clnn.linalg.ldl_factor(clnn.tensor([[0., 1.], [1., 0.]])), clnn.tensor([[2.], [3.]])).flatten()", "tensor([3., 2.])")
explain("lobpcg", "",
        "clnn.lobpcg(clnn.diag(clnn.arange(9.)), k=2)[0].round(decimals=3)", "tensor([8., 7.])")
explain("linalg_lu_factor", "",
        "clnn.linalg.lu_factor(clnn.tensor([[4., 2.], [2., 5.]])).LU", "tensor([[4.0000, 2.0000],\n        [0.5000, 4.0000]])")
explain("linalg_lu_factor_ex", "",
        "clnn.linalg.lu_factor_ex(clnn.tensor([[4., 2.], [2., 5.]])).info", "tensor(0, dtype=clnn.int32)")
explain("linalg_lu", "", "clnn.linalg.lu(clnn.tensor([[4., 2.], [2., 5.]])).U", "tensor([[4., 2.],\n        [0., 4.]])")
explain("lu", "", "clnn.lu(clnn.tensor([[4., 2.], [2., 5.]]))[0]", "tensor([[4.0000, 2.0000],\n        [0.5000, 4.0000]])")
explain("lu_unpack", "",
        "clnn.lu_unpack(*clnn.linalg.lu_factor(clnn.tensor([[4., 2.], [2., 5.]])))[1]", "tensor([[1.0000, 0.0000],\n        [0.5000, 1.0000]])")
explain("linalg_lu_solve", "",
        "clnn.linalg.lu_solve(*clnn.linalg.lu_factor(clnn.tensor([[2., 0.], [0., 4.]])), clnn.tensor([[2.], [4.]]))", "tensor([[1.],\n        [1.]])")
explain("lu_solve", "",
        "clnn.lu_solve(clnn.tensor([[2.], [4.]]), *clnn.linalg.lu_factor(clnn.tensor([[2., 0.], [0., 4.]])))", "tensor([[1.],\n        [1.]])")
explain("cholesky_inverse", "Given the factor of :func:`cholesky`.",
        "clnn.cholesky_inverse(clnn.tensor([[1., 0.], [1., 1.]]))", "tensor([[ 2., -1.],\n        [-1.,  1.]])")
explain("triangular_solve", "",
        "clnn.triangular_solve(clnn.tensor([[2.], [3.]]), clnn.tensor([[2., 0.], [1., 1.]]), upper=False)[0]", "tensor([[1.],\n        [2.]])")
explain("geqrf", "", "clnn.geqrf(clnn.tensor([[2., 0.], [0., 3.]]))[0].shape", "clnn.Size([2, 2])")
explain("orgqr", "", "clnn.orgqr(*clnn.geqrf(clnn.tensor([[2., 0.], [0., 3.]]))).abs()", "tensor([[1., 0.],\n        [0., 1.]])")
explain("ormqr", "",
        "clnn.ormqr(*clnn.geqrf(clnn.tensor([[2., 0.], [0., 3.]])), clnn.tensor([[1.], [2.]])).abs()", "tensor([[1.],\n        [2.]])")
explain("matrix_exp", "``I + A + A^2 / 2! + A^3 / 3! + ...``.",
        "clnn.matrix_exp(clnn.tensor([[0., 1.], [0., 0.]]))", "tensor([[1., 1.],\n        [0., 1.]])")
explain("linalg_tensorinv", "",
        "clnn.linalg.tensorinv(clnn.tensor([[2., 0.], [0., 4.]]), ind=1)", "tensor([[0.5000, 0.0000],\n        [0.0000, 0.2500]])")
explain("linalg_tensorsolve", "",
        "clnn.linalg.tensorsolve(clnn.tensor([[2., 0.], [0., 4.]]), clnn.tensor([2., 4.]))", "tensor([1., 1.])")
explain("linalg_vander", "``out[i, j] = x[i]^j``.",
        "clnn.linalg.vander(clnn.tensor([1., 2., 3.]))", "tensor([[1., 1., 1.],\n        [1., 2., 4.],\n        [1., 3., 9.]])")
explain("svd_lowrank", "", "clnn.svd_lowrank(clnn.tensor([[3., 0.], [0., 2.]]), q=2)[1].round()", "tensor([3., 2.])")
explain("pca_lowrank", "", "clnn.pca_lowrank(clnn.tensor([[1., 1.], [-1., -1.]]), q=1)[1]", "tensor([2.])")
explain("linalg_eig", "", "clnn.linalg.eig(clnn.tensor([[2., 0.], [0., 3.]])).eigenvalues.real.sort().values", "tensor([2., 3.])")
explain("linalg_eigvals", "The roots of ``det(A - lambda I) = 0``.",
        "clnn.linalg.eigvals(clnn.tensor([[2., 0.], [0., 3.]])).real.sort().values", "tensor([2., 3.])")
