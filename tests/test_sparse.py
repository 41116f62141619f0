"""Sparse tensors against PyTorch and NumPy: what operators give, gradients, what is refused."""
import numpy as np
import pytest

import clnn

pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks", "ignore:Sparse CSR tensor support", "ignore:.*requires the.*")
ROWS, COLUMNS = [0, 0, 1, 3, 3, 1], [2, 5, 0, 5, 1, 0]              # one place twice, not in order
VALUES = np.array([1.5, -2.0, 0.5, 4.0, -3.0, 2.5], "f")
DENSE = np.random.default_rng(0).standard_normal((4, 6)).astype("f")
RIGHT = np.random.default_rng(1).standard_normal((6, 5)).astype("f")


def operands(lib):
    """Names for the expressions: s (4, 6) with values v, c the same coalesced, r by rows, h hybrid, b a stack, d and w dense."""
    v, d, w = (lib.tensor(x, requires_grad=True) for x in (VALUES, DENSE, RIGHT))
    places = lib.tensor([ROWS, COLUMNS])
    s = lib.sparse_coo_tensor(places, v, (4, 6))
    c = s.coalesce()
    stacked = lib.sparse_coo_tensor(lib.tensor([[0, 0, 1, 1, 2, 2], ROWS, COLUMNS]), v, (3, 4, 6))
    hybrid = lib.sparse_coo_tensor(lib.tensor([[3, 0, 3, 1]]), v[:4].reshape(4, 1) * w[:4], (4, 5))
    return dict(torch=lib, F=lib.nn.functional, v=v, d=d, w=w, s=s, c=c, r=c.to_sparse_csr(), h=hybrid, b=stacked)


def plain(t):
    return t.detach().to_dense().numpy() if t.layout not in ("clnn.strided",) and "strided" not in str(t.layout) else t.detach().numpy()


def both(text):
    """The results of an expression in clnn and in PyTorch."""
    torch = pytest.importorskip("torch")
    names, theirs = operands(clnn), operands(torch)
    return eval(text, names), names, eval(text, theirs), theirs


EXPRESSIONS = """s.to_dense()  s.coalesce()  s@w  d.t()@s  s@w[:,0]  torch.mv(s,w[:,1])  d[:,0]@s  torch.mm(s,w[:,:1])  torch.sparse.mm(c,w)  s.t()@d  s.T  s.mT
torch.addmm(w[:4],s,w)  torch.sparse.addmm(w[:4],s,w,beta=2.0,alpha=0.5)  torch.addmm(w[0],s,w)   torch.bmm(b,torch.stack([w,w,w]))
s@s.t()  torch.sparse.mm(s,c.t())  s*2  2*s  s/4  s//2  c*c  s*d  d*s  s*d[0]  s+c  c+c  s-c  d+s  d-s  -s  s.neg()  s.abs()  s.sin()  s.relu()  s**2  s.pow(3)
torch.square(s)  s.tanh()  s.sign()  s.isnan()  s.log1p()  F.relu(s)  torch.nan_to_num(s)  s.sum()  s.sum(0)  s.sum(1)  s.sum((0,1))  s.sum(1,keepdim=True)
torch.sparse.sum(b,(0,2))  torch.sparse.sum(b,0)  h.sum(0)  h.sum(1)  torch.sparse.sum(h)  s.norm()  s.norm(1)  torch.sparse.softmax(s,1)
torch.sparse.log_softmax(s,0)  torch.sparse.softmax(b,2)  s[1]  s[:,5]  s[3,5]  s[-1]  s[None]  s[...,0]  b[1]  b[:,1,0]  h[3]  s.select(0,3)
s.index_select(0,torch.tensor([3,0,3]))  s.index_select(1,torch.tensor([5,1]))  h.index_select(1,torch.tensor([4,0]))  s.narrow_copy(1,1,5)  s.narrow_copy(0,1,2)
h.narrow_copy(1,1,3)  torch.cat([s,c])  torch.cat([s,c,s],1)  torch.cat([h,h],1)  torch.stack([s,s],1)  s.unsqueeze(1)  s.unbind(0)[1]  h.unsqueeze(2)  b.transpose(0,2)
b.permute(2,0,1)  h.transpose(0,0)  s.clone()  s.double()  s.to(torch.float64)  s.half().float()  s.detach()  d.to_sparse()  d.relu().to_sparse()
d.relu().to_sparse(1)  d.sparse_mask(c)  s.sparse_mask(c)  r@w  r.t()@d  d.t()@r  r*3  r.sin()  r+r  r.to_dense()  r.sum()  r.to_sparse()  c.to_sparse_csc()
c.to_sparse_csc()@w  r.values()  c.values()*2  torch.zeros_like(s)  torch.empty_like(s)  F.linear(d,s)  F.linear(s,d)  F.linear(s,w.t(),w[0])  torch.smm(s,w)
torch.sspaddmm(s,s,w@w.t())  torch.hspmm(c,w)  torch.sparse.sampled_addmm(r,d,w@w.t(),beta=0.5)  s.any()  h.to_dense()  h*2  h+h  h.coalesce()
torch.sparse.spdiags(w[:3],torch.tensor([0,-1,2]),(4,6))  torch.sparse.sum(s*d)  (s*d).coalesce().values()  s.to_dense().sum(0)""".split()
UNSURE = {"s.isnan()", "s.any()", "torch.zeros_like(s)", "torch.empty_like(s)", "s.sign()", "s//2", "torch.hspmm(c,w)", "torch.smm(s,w)", "torch.sspaddmm(s,s,w@w.t())",
          "s.detach()", "h.transpose(0,0)", "s+c", "s-c", "torch.cat([s,c])", "h.sum(1)", "h+h"}         # no gradient, or another order or number of stored elements


@pytest.mark.share(2)
@pytest.mark.parametrize("text", EXPRESSIONS)
def test_as_torch(text):
    got, mine, want, theirs = both(text)
    assert str(got.layout).rpartition(".")[2] == str(want.layout).rpartition(".")[2]
    assert tuple(got.shape) == tuple(want.shape) and str(got.dtype).rpartition(".")[2] == str(want.dtype).rpartition(".")[2]
    np.testing.assert_allclose(plain(got), plain(want), rtol=2e-5, atol=1e-5)
    if "strided" not in str(got.layout):
        assert (got.sparse_dim(), got.dense_dim()) == (want.sparse_dim(), want.dense_dim())
        if text not in UNSURE:
            assert got._nnz() == want._nnz()


# PyTorch has no gradient for these, or one of a value that another thread of operators would be needed for
NO_GRADIENT = UNSURE | set("""s@s.t() torch.sparse.mm(s,c.t()) torch.mm(s,s.t()) s.to_dense().sum(0)""".split())


@pytest.mark.parametrize("text", [t for t in EXPRESSIONS if t not in NO_GRADIENT])
def test_gradients_as_torch(text):
    """Gradients reach the values of a sparse operand and dense operands as in PyTorch, where PyTorch has them."""
    got, mine, want, theirs = both(text)
    if not want.requires_grad:
        return
    try:
        dense = want.to_dense() if "strided" not in str(want.layout) else want
        (dense * dense).sum().backward()
    except (RuntimeError, NotImplementedError):
        pytest.skip("PyTorch has no gradient")
    dense = got.to_dense()
    (dense * dense).sum().backward()
    for name in "vdw":
        a, b = mine[name].grad, theirs[name].grad
        if b is not None:
            assert a is not None, name
            np.testing.assert_allclose(plain(a), plain(b), rtol=1e-4, atol=1e-4, err_msg=name)


# -- gradients of sparse tensors themselves -----------------------------------------------------------------------------------------------
def test_a_sparse_leaf_gets_a_gradient_of_its_pattern():
    s = clnn.sparse_coo_tensor([ROWS[:5], COLUMNS[:5]], VALUES[:5], (4, 6), requires_grad=True)
    assert s.is_leaf and s.grad is None and s.requires_grad
    w = clnn.tensor(RIGHT)
    (s @ w).sum().backward()
    assert s.grad.is_sparse and s.grad._nnz() == 5
    np.testing.assert_allclose(s.grad._values().numpy(), RIGHT.sum(1)[COLUMNS[:5]], rtol=1e-5)
    (s @ w).sum().backward()
    np.testing.assert_allclose(s.grad._values().numpy(), 2 * RIGHT.sum(1)[COLUMNS[:5]], rtol=1e-5)
    g, = clnn.autograd.grad(clnn.sparse.sum(s * s), s)
    np.testing.assert_allclose(g.to_dense().numpy(), 2 * s.detach().to_dense().numpy(), rtol=1e-6)
    seen = []
    s.register_hook(lambda g: seen.append(g.is_sparse))
    s.to_dense().sum().backward()
    assert seen == [True]
    s.grad = None
    assert s.grad is None
    with pytest.raises(RuntimeError, match="leaf"):
        s.mul_(2)


def test_second_gradients():
    s = clnn.sparse_coo_tensor([ROWS, COLUMNS], clnn.tensor(VALUES).double(), (4, 6)).requires_grad_()
    w = clnn.tensor(RIGHT).double().requires_grad_()
    check = clnn.sparse.as_sparse_gradcheck(clnn.autograd.gradcheck)
    assert check(lambda s, w: clnn.sparse.mm(s, w), (s, w))
    second = clnn.sparse.as_sparse_gradcheck(clnn.autograd.gradgradcheck)
    assert second(lambda s, w: (clnn.sparse.mm(s, w) ** 2).sum(), (s, w))
    assert check(lambda s: clnn.sparse.softmax(s, 1), s)


def test_a_custom_function_takes_and_gives_sparse_tensors():
    class Scaled(clnn.autograd.Function):
        @staticmethod
        def forward(ctx, places, values, shape, b):
            a = clnn.sparse_coo_tensor(places, values, shape)
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            full = g @ b.t()
            key = a._indices()[0] * a.shape[1] + a._indices()[1]
            return None, full.view(-1)[key], None, a.t() @ g

    class Doubled(clnn.autograd.Function):
        @staticmethod
        def forward(ctx, s):
            return s * 2

        @staticmethod
        def backward(ctx, g):
            assert g.is_sparse
            return g * 2
    v, b = clnn.tensor(VALUES, requires_grad=True), clnn.tensor(RIGHT, requires_grad=True)
    Scaled.apply(clnn.tensor([ROWS, COLUMNS]), v, (4, 6), b).sum().backward()
    np.testing.assert_allclose(v.grad.numpy(), RIGHT.sum(1)[COLUMNS], rtol=1e-5)
    first = v.grad.clone()
    v.grad = None
    (Doubled.apply(clnn.sparse_coo_tensor([ROWS, COLUMNS], v, (4, 6))) @ b).sum().backward()
    np.testing.assert_allclose(v.grad.numpy(), 2 * first.numpy(), rtol=1e-5)


# -- what is refused ------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("text", ["s.exp()", "s>0", "s.view(24)", "F.relu6(s)", "torch.softmax(s,0)", "s.max()", "s.argmax()", "s[0:1:2]", "s.sort()", "s.cumsum(0)",
                                  "torch.equal(s,s)", "F.conv1d(s[None],w[None])", "F.layer_norm(s,(6,))", "torch.einsum('ij,ij->i',s,s)", "s.contiguous()", "s.fill_(1)",
                                  "torch.ones_like(s)", "torch.fft.fft(s)", "torch.linalg.inv(s@s.t())", "s.unfold(0,2,1)", "s.storage()", "torch.where(s,s,s)"])
def test_other_operators_are_refused_by_one_guard(text):
    with pytest.raises((NotImplementedError, RuntimeError)) as caught:
        eval(text, operands(clnn))
    if isinstance(caught.value, NotImplementedError):
        assert "sparse" in str(caught.value)


def test_words_of_refusals():
    s, x = clnn.sparse_coo_tensor([ROWS, COLUMNS], VALUES, (4, 6)), clnn.ones(2, 2)
    with pytest.raises(NotImplementedError, match="Could not run 'aten::exp' with arguments from the 'SparseCPU' backend"):
        s.exp()
    with pytest.raises(NotImplementedError, match="'aten::exp' .* 'SparseCsrCPU'"):
        s.to_sparse_csr().exp()
    for fault, words in ((lambda: s.values(), "uncoalesced"), (lambda: s + 1, "add\\(sparse, dense\\)"), (lambda: s / x, "divisor"), (lambda: x.coalesce(), "Strided"),
                         (lambda: x.crow_indices(), "Strided"), (lambda: s.crow_indices(), "row compressed"), (lambda: s @ x, "inner sizes"),
                         (lambda: s @ clnn.ones(6, 1).double(), "dtype"), (lambda: x.copy_(clnn.eye(2).to_sparse()), "not implemented"), (lambda: bool(s), "ambiguous"),
                         (lambda: clnn.sparse_coo_tensor([[0]], [1., 2.], (2,)), "same nnz"), (lambda: clnn.sparse_coo_tensor([[0]], [1.], (2, 2)), "sparse_dim"),
                         (lambda: clnn.sparse_csr_tensor([0, 1], [0], [1.], (2, 2)), "rows \\+ 1")):
        with pytest.raises(RuntimeError, match=words):
            fault()
    with pytest.raises(TypeError, match="to_dense"):
        s.numpy()
    with pytest.raises(TypeError, match="assign"):
        s[0] = 1


def test_wrong_places_are_reported():
    for bad in ([[5], [0]], [[0], [9]], [[-1], [0]], [[0], [-1]]):
        t = clnn.sparse_coo_tensor(bad, [1.0], (2, 3))
        for product in (lambda: t @ clnn.ones(3, 20), lambda: clnn.ones(2, 2) @ t, t.to_dense, lambda: t @ clnn.ones(3)):
            with pytest.raises((IndexError, RuntimeError), match="out of range|out of bounds"):
                product().numpy()
    t = clnn.sparse_csr_tensor([0, 1, 5], [0, 1], [1.0, 2.0], (2, 2))
    with pytest.raises(IndexError):
        (t @ clnn.ones(2, 2)).numpy()
    with clnn.sparse.check_sparse_tensor_invariants():
        assert clnn.sparse.check_sparse_tensor_invariants.is_enabled()
        for make in (lambda: clnn.sparse_coo_tensor([[5]], [1.0], (2,)), lambda: clnn.sparse_coo_tensor([[-1]], [1.0], (2,)),
                     lambda: clnn.sparse_csr_tensor([0, 2, 1], [0], [1.0], (2, 2)), lambda: clnn.sparse_csr_tensor([0, 1, 1], [7], [1.0], (2, 2))):
            with pytest.raises(RuntimeError):
                make()
    assert not clnn.sparse.check_sparse_tensor_invariants.is_enabled()
    with pytest.raises(RuntimeError, match="found index 5"):
        clnn.sparse_coo_tensor([[5]], [1.0], (2,), check_invariants=True)


# -- products of many shapes ------------------------------------------------------------------------------------------------------------
@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bfloat16", "complex64"])
def test_products_of_all_widths(dtype):
    rng = np.random.default_rng(3)
    where = np.unique(rng.integers(0, 40 * 30, 300))
    rng.shuffle(where)
    kind = getattr(clnn, dtype)
    if kind is clnn.float64 and not clnn.ones(1)._storage.device.has_fp64:
        pytest.skip("needs fp64")
    values = clnn.tensor(rng.integers(-4, 5, where.size)).to(kind)
    if kind.is_complex:
        values = values * (1 + 2j)
    s = clnn.sparse_coo_tensor(np.stack([where // 30, where % 30]), values, (40, 30))
    full = s.to_dense()
    for n in (1, 2, 3, 7, 16, 17, 40, 64, 100) if kind is clnn.float32 else (1, 5, 21):
        b = clnn.tensor(rng.integers(-4, 5, (30, n))).to(kind)
        want = (full.to(clnn.complex64 if kind.is_complex else clnn.float32) @ b.to(clnn.complex64 if kind.is_complex else clnn.float32)).to(kind)
        for got in (s @ b, s.to_sparse_csr() @ b, (b.t() @ s.t()).t(), s.coalesce() @ b.t().contiguous().t()):
            assert bool((got == want).all()), n
    some = clnn.sparse.sampled_addmm(s, full, clnn.tensor(rng.integers(-4, 5, (30, 30))).to(kind), beta=0)
    assert some._nnz() == where.size


def test_empty_tensors():
    e = clnn.sparse_coo_tensor((3, 4))
    assert e._nnz() == 0 and bool((e.to_dense() == 0).all()) and tuple((e @ clnn.ones(4, 2)).shape) == (3, 2)
    assert (e + e)._nnz() == 0 and e.coalesce().is_coalesced() and e.sum().item() == 0 and e.sum(0)._nnz() == 0
    assert tuple((clnn.sparse_coo_tensor((3, 0)) @ clnn.ones(0, 2)).shape) == (3, 2) and (e @ e.t())._nnz() == 0
    assert e.to_sparse_csr().crow_indices().tolist() == [0, 0, 0, 0] and (e * clnn.eye(3, 4).to_sparse())._nnz() == 0
    assert clnn.zeros(2, 2).to_sparse()._nnz() == 0 and clnn.sparse.softmax(e, 1)._nnz() == 0
    scalar = clnn.sparse_coo_tensor(clnn.zeros(0, 2, dtype=clnn.int64), [1.0, 2.0], ())
    assert scalar.to_dense().item() == 3 and scalar.coalesce()._values().tolist() == [3.0]


def test_equal_bits_in_every_run():
    rng = np.random.default_rng(0)
    s = clnn.sparse_coo_tensor(rng.integers(0, 50, (2, 2000)), rng.standard_normal(2000).astype("f"), (50, 50))
    w = clnn.tensor(rng.standard_normal((50, 33)).astype("f"))
    first = (s @ w).numpy(), s.coalesce()._values().numpy(), (s.t() @ w).numpy()
    again = clnn.sparse_coo_tensor(s._indices(), s._values(), (50, 50))
    for a, b in zip(first, ((again @ w).numpy(), again.coalesce()._values().numpy(), (again.t() @ w).numpy())):
        np.testing.assert_array_equal(a, b)


def test_what_is_known_of_a_pattern_is_kept():
    """Tensors made of the same tensor of indices share what was worked out, until the indices are written."""
    i, w = clnn.tensor([ROWS, COLUMNS]), clnn.tensor(RIGHT)
    s = clnn.sparse_coo_tensor(i, VALUES, (4, 6))
    s @ w
    again = clnn.sparse_coo_tensor(i, VALUES * 2, (4, 6))
    assert again.pattern._packed is s.pattern._packed and not again.is_coalesced()
    c = s.coalesce()
    of_c = clnn.sparse_coo_tensor(c.indices(), c.values() + 1, (4, 6))
    assert not of_c.is_coalesced() and of_c.coalesce().pattern is c.pattern
    np.testing.assert_allclose((of_c @ w).numpy(), of_c.to_dense().numpy() @ RIGHT, rtol=1e-5, atol=1e-5)
    places = c.indices()
    places[0, 0] = 3                                            # a copy: the tensor it came from keeps its places
    assert c.indices()[0, 0].item() == 0
    i[0, 0] = 2
    moved = clnn.sparse_coo_tensor(i, VALUES, (4, 6))
    assert moved.to_dense()[2, 2].item() == 1.5 and s.to_dense()[2, 2].item() == 0
    bigger = clnn.sparse_coo_tensor(i, VALUES, (5, 6))
    assert (bigger @ w).shape == (5, 5)


def test_index_types_of_compressed_rows():
    for kind in ("int32", "int64"):
        t = clnn.sparse_csr_tensor(np.array([0, 1, 3], kind), np.array([2, 0, 2], kind), np.array([3.0, 4.0, 5.0]), (2, 3))
        assert str(t.crow_indices().dtype) == str(t.col_indices().dtype) == f"clnn.{kind}" and t.dtype is clnn.float64
        assert t.to_sparse().indices().tolist() == [[0, 1, 1], [2, 0, 2]] and (t.t() @ clnn.ones(2, 1, dtype=clnn.float64)).reshape(-1).tolist() == [4, 0, 8]
