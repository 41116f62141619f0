"""Sparse gradients of embeddings, optimizers that take them, sparse parameters and buffers, files."""
import copy
import io
import pickle

import numpy as np
import pytest

import clnn
from clnn import nn

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")


def table_grad(lib, kind, offsets=None, weights=None, **options):
    w = lib.arange(12.0).reshape(4, 3).requires_grad_()
    places = lib.tensor([[1, 3], [1, 0]])
    if kind == "embedding":
        out = lib.nn.functional.embedding(places, w, sparse=True, **options)
    else:
        extra = dict(per_sample_weights=lib.tensor(weights)) if weights else {}
        out = lib.nn.functional.embedding_bag(places if offsets is None else places.reshape(-1), w, None if offsets is None else lib.tensor(offsets), sparse=True,
                                              **options, **extra)
    out.pow(2).sum().backward()
    return w.grad


@pytest.mark.parametrize("options", [dict(kind="embedding"), dict(kind="embedding", padding_idx=1), dict(kind="bag"), dict(kind="bag", mode="sum"),
                                     dict(kind="bag", offsets=[0, 3], mode="sum"), dict(kind="bag", offsets=[0, 3], mode="sum", weights=[1.0, 2.0, 3.0, 4.0]),
                                     dict(kind="bag", padding_idx=1)], ids=str)
def test_embeddings_have_sparse_gradients(options):
    torch = pytest.importorskip("torch")
    got, want = table_grad(clnn, **options), table_grad(torch, **options)
    assert got.is_sparse and not got.is_coalesced() and got._indices().tolist() == want._indices().tolist()
    np.testing.assert_allclose(got._values().numpy(), want._values().numpy(), rtol=1e-6)
    assert repr(got).replace("clnn.", "torch.") == repr(want)


def test_embeddings_refuse_what_is_not_sparse():
    with pytest.raises(RuntimeError, match="scale_grad_by_freq"):
        table_grad(clnn, "embedding", scale_grad_by_freq=True)
    with pytest.raises(ValueError, match="max mode"):
        table_grad(clnn, "bag", mode="max")


OPTIMIZERS = """SGD(p,lr=0.1) SGD(p,lr=0.1,momentum=0.9,dampening=0.1) SGD(p,lr=0.1,momentum=0.9,nesterov=True) SGD(p,lr=0.1,maximize=True) Adagrad(p,lr=0.1)
Adagrad(p,lr=0.1,lr_decay=0.5,initial_accumulator_value=0.1) SparseAdam(p,lr=0.1) SparseAdam(p,lr=0.1,maximize=True)""".split()
REFUSING = "Adam AdamW RMSprop Adamax Adadelta NAdam RAdam Rprop ASGD Muon Adafactor".split()


def trained(lib, text, steps=3):
    table, head = lib.nn.Embedding(6, 3, sparse=True), lib.nn.Linear(3, 2)
    with lib.no_grad():
        table.weight.copy_(lib.arange(18.0).reshape(6, 3) / 10)
        head.weight.copy_(lib.arange(6.0).reshape(2, 3) / 10)
        head.bias.zero_()
    p = list(table.parameters()) + ([] if "Sparse" in text or steps == 1 else list(head.parameters()))
    optimizer = eval(f"lib.optim.{text}", dict(lib=lib, p=p))
    for k in range(steps):
        optimizer.zero_grad()
        head(table(lib.tensor([[1, 3], [1, k]]))).pow(2).sum().backward()
        optimizer.step()
    return table.weight.detach(), head.weight.detach(), optimizer


@pytest.mark.parametrize("text", OPTIMIZERS)
def test_optimizers_take_sparse_gradients(text):
    torch = pytest.importorskip("torch")
    mine, theirs = trained(clnn, text), trained(torch, text)
    for a, b in zip(mine[:2], theirs[:2]):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=2e-5, atol=1e-6)
    a, b = mine[2].state_dict()["state"], theirs[2].state_dict()["state"]
    for k in b:
        assert set(a[k]) == set(b[k])
        for name, value in b[k].items():
            np.testing.assert_allclose(*[float(x[k][name]) if name == "step" else x[k][name].to_dense().numpy() for x in (a, b)], rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", REFUSING)
def test_optimizers_that_refuse_sparse_gradients(name):
    with pytest.raises(RuntimeError, match=f"{name} does not support sparse gradients"):
        trained(clnn, name + "(p)", 1)


def test_options_that_do_not_go_with_sparse_gradients():
    for text in ("SGD(p,lr=0.1,weight_decay=0.1)", "Adagrad(p,weight_decay=0.1)"):
        with pytest.raises(RuntimeError, match="sparse gradients"):
            trained(clnn, text, 1)
    with pytest.raises(ValueError, match="Sparse params"):
        clnn.optim.SparseAdam([clnn.eye(2).to_sparse().requires_grad_()])


def test_dense_and_sparse_gradients_add_up():
    def grads(order):
        w = clnn.ones(4, 3, requires_grad=True)
        for k in order:
            (nn.functional.embedding(clnn.tensor([k]), w, sparse=True).sum() if k < 4 else w.sum()).backward()
        return w.grad
    for order in ([1, 5], [5, 1], [5, 1, 1]):
        assert not grads(order).is_sparse and grads(order)[1].tolist() == [order.count(1) + 1.0] * 3
    assert grads([1, 1, 2]).is_sparse and grads([1, 1, 2]).to_dense()[:, 0].tolist() == [0, 2, 1, 0]
    w = clnn.ones(4, 3, requires_grad=True)
    (nn.functional.embedding(clnn.tensor([1]), w, sparse=True).sum() + (w @ clnn.ones(3)).sum()).backward()
    assert not w.grad.is_sparse and w.grad[1].tolist() == [2.0, 2.0, 2.0]
    w = clnn.ones(4, 3, requires_grad=True)
    optimizer = clnn.optim.SGD([w], lr=0.1)
    nn.functional.embedding(clnn.tensor([1]), w, sparse=True).sum().backward()
    optimizer.zero_grad(set_to_none=False)
    assert w.grad.is_sparse and w.grad._nnz() == 0


def test_steps_touch_the_rows_of_the_gradient_only():
    """The memory of a table is written in place: no copy of all of it."""
    table = nn.Embedding(1000, 8, sparse=True)
    optimizer = clnn.optim.SparseAdam(table.parameters(), lr=0.1)
    places = []
    for k in range(3):
        optimizer.zero_grad()
        table(clnn.tensor([k, 7, 7])).pow(2).sum().backward()
        optimizer.step()
        places.append(id(table.weight._storage.buffer()))
    assert len(set(places)) == 1


# -- modules and files --------------------------------------------------------------------------------------------------------------------
class Graph(nn.Module):
    """A layer of a graph network with a sparse buffer and a sparse parameter."""

    def __init__(self):
        super().__init__()
        self.register_buffer("adjacency", clnn.tensor([[0.0, 1, 0], [1, 0, 1], [0, 2, 0]]).to_sparse())
        self.mask = nn.Parameter(clnn.eye(2).to_sparse())
        self.linear = nn.Linear(2, 2)

    def forward(self, x):
        return self.adjacency @ self.linear((self.mask @ x.t()).t())


def test_modules_with_sparse_tensors():
    net, other = Graph(), Graph()
    other.adjacency = other.adjacency * 3
    net.load_state_dict(other.state_dict())
    assert net.adjacency.to_dense()[2, 1].item() == 6
    net = net.to(clnn.float16).float()
    assert net.adjacency.dtype is clnn.float32 and isinstance(net.mask, nn.Parameter) and len(list(net.parameters())) == 3
    x = clnn.randn(3, 2)
    net(x).pow(2).sum().backward()
    assert net.mask.grad.is_sparse and net.linear.weight.grad is not None
    before = net.mask.detach().to_dense()
    clnn.optim.SGD(net.parameters(), lr=0.1).step()
    moved = before - 0.1 * net.mask.grad.to_dense()
    assert bool(clnn.allclose(net.mask.detach().to_dense(), moved))
    twin = copy.deepcopy(net)
    assert isinstance(twin.mask, nn.Parameter) and twin.mask.is_sparse and bool(clnn.allclose(twin(x), net(x)))


def samples(lib):
    s = lib.sparse_coo_tensor([[0, 1, 1, 1], [2, 0, 2, 2]], [3.0, 4.0, 5.0, 6.0], (2, 3))
    return {"coo": s, "merged": s.coalesce(), "csr": s.to_sparse_csr(), "csc": s.coalesce().to_sparse_csc(), "whole": lib.sparse_coo_tensor([[1]], [7], (4,)),
            "blocks": lib.sparse_coo_tensor([[1, 0]], [[1.0, 2.0], [3.0, 4.0]], (2, 2)), "parameter": lib.nn.Parameter(s), "none": lib.sparse_coo_tensor((2, 2))}


@pytest.mark.parametrize("writer, reader", [("clnn", "clnn"), ("clnn", "torch"), ("torch", "clnn")])
def test_files(writer, reader):
    torch = pytest.importorskip("torch")
    writer, reader = ({"clnn": clnn, "torch": torch}[n] for n in (writer, reader))
    file = io.BytesIO()
    writer.save(samples(writer), file)
    file.seek(0)
    got, want = reader.load(file), samples(reader)
    for name, t in got.items():
        assert str(t.layout) == str(want[name].layout) and t.dtype == want[name].dtype and t.shape == want[name].shape and t._nnz() == want[name]._nnz(), name
        np.testing.assert_array_equal(*[x.detach().to_dense().numpy() for x in (t, want[name])])
        if t.is_sparse and name != "whole":
            assert t.is_coalesced() == want[name].is_coalesced()
    assert isinstance(got["parameter"], reader.nn.Parameter) and got["parameter"].requires_grad


def test_hostile_files_are_refused():
    from clnn._serialization import allowed
    places, values = clnn.tensor([[7]]), clnn.tensor([1.0])
    with pytest.raises(clnn.SerializationError, match="fit together"):
        allowed._rebuild_sparse_tensor(clnn.sparse_coo, (places, values, clnn.Size((2,)), True))
    with pytest.raises(clnn.SerializationError, match="layout"):
        allowed._layout("torch.sparse_bsr")
    for data in ((), (places, values), (places, [1.0], (2,), True), [places, values, (9,)]):
        with pytest.raises(TypeError):
            allowed._rebuild_sparse_tensor(clnn.sparse_coo, data)


def test_copies_and_pickles():
    for name, t in samples(clnn).items():
        for twin in (copy.copy(t), copy.deepcopy(t), pickle.loads(pickle.dumps(t)), t.clone(), t.detach()):
            assert twin.layout is t.layout and bool((twin.to_dense() == t.to_dense()).all())


def test_typed_constructors():
    t = clnn.sparse.FloatTensor(clnn.tensor([[0, 1], [1, 0]]), clnn.tensor([1.0, 2.0]), clnn.Size([2, 2]))
    assert isinstance(t, clnn.sparse.FloatTensor) and not isinstance(t, clnn.sparse.DoubleTensor) and t.type() == "clnn.sparse.FloatTensor"
    assert clnn.sparse.LongTensor(2, 3).shape == (2, 3)


@pytest.mark.parametrize("make", ["s", "s.to_sparse_csr()", "s.coalesce().to_sparse_csc()", "s.int()", "s.to(torch.complex64)", "torch.sparse_coo_tensor((2,3))",
                                  "torch.sparse_coo_tensor(torch.arange(2000).reshape(2,1000)%50,torch.arange(1000.)/7,(50,50))", "s.sum(1)"])
def test_prints_as_in_torch(make):
    torch = pytest.importorskip("torch")
    texts = [repr(eval(make, dict(torch=lib, s=lib.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.5, 4.0, 5.0], (2, 3))))) for lib in (clnn, torch)]
    mine, theirs = (" ".join(t.replace("clnn.", "torch.").split()) for t in texts)    # a name is a letter shorter, which can change where lines break
    assert mine == theirs


# -- programs -----------------------------------------------------------------------------------------------------------------------------
def edges(n=30, m=90):
    rng = np.random.default_rng(5)
    key = np.unique(np.concatenate([rng.integers(0, n * n, m), np.arange(n) * (n + 1)]))
    return np.stack([key // n, key % n]), rng.standard_normal((n, 12)).astype("f"), rng.integers(0, 3, n)


def graph_convolution(torch):
    """Kipf and Welling's network with a normalised adjacency matrix."""
    places, x, y = edges()
    a = torch.sparse_coo_tensor(torch.tensor(places), torch.ones(places.shape[1]), (30, 30)).coalesce()
    degree = torch.sparse.sum(a, dim=1).to_dense()
    i = a.indices()
    a = torch.sparse_coo_tensor(i, a.values() * degree[i[0]].pow(-0.5) * degree[i[1]].pow(-0.5), a.shape)
    w = [torch.nn.Parameter(torch.linspace(-1, 1, p * q).reshape(p, q)) for p, q in ((12, 8), (8, 3))]
    optimizer = torch.optim.Adam(w, lr=0.05)
    x, y, losses = torch.tensor(x), torch.tensor(y), []
    for _ in range(5):
        optimizer.zero_grad()
        out = torch.spmm(a, torch.relu(torch.sparse.mm(a, x @ w[0])) @ w[1])
        loss = torch.nn.functional.cross_entropy(out, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def graph_attention(torch):
    """Velickovic et al.: weights of edges by a sparse softmax, learned through the values."""
    places, x, y = edges()
    i, x, y, losses = torch.tensor(places), torch.tensor(x), torch.tensor(y), []
    w, at = torch.nn.Parameter(torch.linspace(-1, 1, 36).reshape(12, 3)), torch.nn.Parameter(torch.linspace(-1, 1, 6))
    optimizer = torch.optim.SGD([w, at], lr=0.1, momentum=0.9)
    for _ in range(5):
        h = x @ w
        e = torch.nn.functional.leaky_relu(torch.cat([h[i[0]], h[i[1]]], 1) @ at, 0.2)
        attention = torch.sparse.softmax(torch.sparse_coo_tensor(i, e, (30, 30)).coalesce(), 1)
        loss = torch.nn.functional.cross_entropy(torch.sparse.mm(attention, h), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def heat_equation(torch):
    """Conjugate gradients with the matrix of five points."""
    n = 8
    line = torch.sparse.spdiags(torch.tensor([[-1.0] * n, [2.0] * n, [-1.0] * n]), torch.tensor([-1, 0, 1]), (n, n)).coalesce()
    i, v, k = line.indices(), line.values(), torch.arange(n)
    rows = torch.cat([(i[0][:, None] * n + k).reshape(-1), (k[:, None] * n + i[0]).reshape(-1)])
    columns = torch.cat([(i[1][:, None] * n + k).reshape(-1), (k[:, None] * n + i[1]).reshape(-1)])
    values = torch.cat([v.repeat_interleave(n), v.repeat(n)])
    a = torch.sparse_coo_tensor(torch.stack([rows, columns]), values, (n * n, n * n)).coalesce().to_sparse_csr()
    b = torch.linspace(0, 1, n * n)
    x, r = torch.zeros(n * n), b.clone()
    p, size, sizes = r.clone(), r @ r, []
    for _ in range(20):
        ap = a @ p
        step = size / (p @ ap)
        x, r = x + step * p, r - step * ap
        size, before = r @ r, size
        p = r + size / before * p
        sizes.append(size.item())
    return [*x.tolist(), a.values().sum().item()]


@pytest.mark.parametrize("program", [graph_convolution, graph_attention, heat_equation], ids=lambda f: f.__name__)
def test_programs_as_in_torch(program):
    torch = pytest.importorskip("torch")
    np.testing.assert_allclose(program(clnn), program(torch), rtol=2e-4, atol=2e-4)


def test_recorded_steps_take_sparse_products():
    """``clnn.compile`` replays products with a matrix whose rows are known in order."""
    places, x, _ = edges()
    a, x, w = clnn.sparse_coo_tensor(places, np.ones(places.shape[1], "f"), (30, 30)), clnn.tensor(x), clnn.ones(12, 4, requires_grad=True)
    optimizer = clnn.optim.SGD([w], lr=0.01)

    def step(x):
        loss = (a @ (x @ w)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss
    plain = [step(x).item() for _ in range(4)]
    with clnn.no_grad():
        w.fill_(1.0)
    recorded = clnn.compile(step)
    np.testing.assert_allclose([recorded(x).item() for _ in range(4)], plain, rtol=1e-5)


def test_products_under_autocast():
    a, w = clnn.eye(4).to_sparse(), clnn.ones(4, 4, requires_grad=True)
    with clnn.autocast("cpu", dtype=clnn.bfloat16):
        out = a @ (clnn.ones(4, 4) @ w)
        assert out.dtype is clnn.bfloat16
        out.sum().backward()
    assert w.grad.dtype is clnn.float32 and bool((w.grad == 4).all())


def test_examples_in_docstrings():
    import doctest
    import importlib
    for name in ("", "._build", "._products", "._operators"):
        got = doctest.testmod(importlib.import_module("clnn.sparse" + name), extraglobs={"clnn": clnn}, optionflags=doctest.ELLIPSIS)
        assert not got.failed
    got = doctest.testmod(importlib.import_module("clnn.optim.sparse_adam"), extraglobs={"clnn": clnn, "nn": nn})
    assert got.attempted and not got.failed
