"""Nested tensors: what operators give for items of different sizes is what they give item by item; gradients follow."""
import numpy as np
import pytest

import clnn
from clnn import nn
from clnn.nn import functional as F

ITEMS = [np.random.RandomState(n).randn(n, 4).astype("f4") for n in (2, 3, 1)]
LAYOUTS = [clnn.strided, clnn.jagged]


def made(layout=clnn.jagged, **kwargs):
    return clnn.nested.nested_tensor([clnn.tensor(a) for a in ITEMS], layout=layout, **kwargs)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_questions(layout):
    n = made(layout)
    assert n.is_nested and isinstance(n, clnn.Tensor) and (n.size(0), n.size(2), n.dim(), n.numel(), n.dtype, n.layout) == (3, 4, 3, 24, clnn.float32, layout)
    assert [t.shape for t in n.unbind()] == [(2, 4), (3, 4), (1, 4)] and n[1].tolist() == ITEMS[1].tolist() and not clnn.ones(1).is_nested
    padded = n.to_padded_tensor(-1.0)
    assert padded.shape == (3, 3, 4) and padded[2, 1:].tolist() == [[-1.0] * 4] * 2 and padded[1].tolist() == ITEMS[1].tolist()
    assert clnn.nested.to_padded_tensor(n, 0.0, (3, 5, 4)).shape == (3, 5, 4)
    if layout is clnn.strided:
        with pytest.raises(RuntimeError, match="irregular"):
            n.size(1)
        assert repr(clnn.nested.nested_tensor([[1], [2, 3]])) == "nested_tensor([\n  tensor([1]),\n  tensor([2, 3])\n])"
    else:
        assert n.size(1) == (n * 2).size(1) and n.size(1) != 3 and n.offsets().tolist() == [0, 2, 5, 6] and n.values().shape == (6, 4)
        assert repr(n) == f"NestedTensor(size=(3, {n.size(1)}, 4), offsets=tensor([0, 2, 5, 6]), contiguous=True)"


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("call", [
    lambda n: n + n, lambda n: 2 * n, F.relu, lambda n: -n, lambda n: n.softmax(-1), lambda n: F.layer_norm(n, (4,)), lambda n: n.double(),
    lambda n: F.linear(n, clnn.arange(8.0).reshape(2, 4)), lambda n: n.chunk(2, -1)[1], lambda n: n.clone()], ids=range(10))
def test_operators_work_item_by_item(layout, call):
    for got, a in zip(call(made(layout)).unbind(), ITEMS):
        want = call(clnn.tensor(a))
        assert got.dtype is want.dtype
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-6)


def test_attention_of_heads():
    n = made()
    q = n.unflatten(-1, [2, 2]).transpose(1, 2)
    for got, a in zip(F.scaled_dot_product_attention(q, q, q).transpose(1, 2).flatten(-2).unbind(), ITEMS):
        h = clnn.tensor(a).reshape(1, -1, 2, 2).transpose(1, 2)
        want = F.scaled_dot_product_attention(h, h, h).transpose(1, 2).reshape(-1, 4)
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(n.view(3, -1, 2, 2).values().numpy(), n.values().reshape(-1, 2, 2).numpy())


def test_reductions_over_what_differs_are_dense():
    n = made()
    np.testing.assert_allclose(n.sum(1).numpy(), np.stack([a.sum(0) for a in ITEMS]), rtol=1e-5)
    np.testing.assert_allclose(n.mean(1).numpy(), np.stack([a.mean(0) for a in ITEMS]), rtol=1e-5)
    np.testing.assert_allclose(n.sum().item(), np.concatenate(ITEMS).sum(), rtol=1e-5)
    assert n.sum(-1).is_nested and n.sum(-1).unbind()[0].shape == (2,)


def test_gradients_reach_weights_values_and_leaves():
    linear = nn.Linear(4, 3)
    linear(made()).to_padded_tensor(0.0).sum().backward()
    np.testing.assert_allclose(linear.weight.grad.numpy()[0], np.concatenate(ITEMS).sum(0), rtol=1e-5)
    values = clnn.ones(5, 2, requires_grad=True)
    t = clnn.nested.nested_tensor_from_jagged(values, clnn.tensor([0, 2, 5]))
    assert t.values() is values
    (t * 3).values().sum().backward()
    assert values.grad.tolist() == [[3.0, 3.0]] * 5
    leaf = made(requires_grad=True)
    (leaf * 2).sum().backward()
    assert leaf.is_leaf and all((g == 2).all() for g in leaf.grad.unbind())


def test_dense_operands_broadcast_against_the_whole():
    n, per_item = made(), clnn.arange(3.0).reshape(3, 1, 1)
    got = (n * clnn.ones(4) + per_item).unbind()
    np.testing.assert_allclose(got[2].numpy(), ITEMS[2] + 2, rtol=1e-6)


def test_other_ways_to_make_one():
    x = clnn.arange(12.0).reshape(3, 4)
    assert clnn.nested.masked_select(x, x > 5).values().tolist() == [6.0, 7.0, 8.0, 9.0, 10.0, 11.0]
    parts = clnn.nested.narrow(x, 1, clnn.tensor([0, 1, 2]), clnn.tensor([2, 3, 1]), layout=clnn.jagged).unbind()
    assert [p.tolist() for p in parts] == [[0.0, 1.0], [5.0, 6.0, 7.0], [10.0]]
    assert clnn.nested.as_nested_tensor(x).size(1) == 4 and clnn.nested.as_nested_tensor(x).is_leaf
    assert not clnn.nested.as_nested_tensor([clnn.ones(2, requires_grad=True)]).is_leaf
    assert clnn.nested.nested_tensor_from_jagged(clnn.arange(5), lengths=clnn.tensor([4, 1])).offsets().tolist() == [0, 4, 5]


@pytest.mark.parametrize("call, text", [
    (lambda: clnn.nested.nested_tensor([clnn.ones(2), clnn.ones(2, 2)]), "same dimension"),
    (lambda: clnn.nested.nested_tensor([clnn.ones(1, 2), clnn.ones(1, 3)], layout=clnn.jagged), "jagged layout"),
    (lambda: made() + clnn.nested.nested_tensor([clnn.ones(3, 4)] * 3, layout=clnn.jagged), "binary pointwise function add.Tensor"),
    (lambda: made(clnn.strided).values(), "layout=jagged"), (lambda: made().softmax(0), "dimension 0 of a nested tensor"),
    (lambda: made().to_padded_tensor(0.0, (3, 1, 4)), "Truncation is not supported")], ids=range(6))
def test_errors(call, text):
    with pytest.raises(RuntimeError, match=text):
        call()


@pytest.mark.parametrize("layout", ["jagged", "strided"])
def test_one_mask_drops_of_all_items_and_is_drawn_even_for_nothing(layout):
    torch = pytest.importorskip("torch")
    if not clnn.ops.random.in_sequence(clnn.zeros(1)):
        pytest.skip("draws other numbers than PyTorch on a processor")
    said = []
    for lib in (torch, clnn):
        n = lib.nested.nested_tensor([lib.tensor(x) for x in ITEMS], layout=getattr(lib, layout))
        lib.manual_seed(3)
        said.append([(torch.cat([torch.tensor(x.tolist()) for x in lib.nn.functional.dropout(n, p, training=t).unbind()]).tolist(), lib.rand(1).item())
                     for p in (0.0, 0.3, 1.0) for t in (True, False)])
    assert np.allclose([n for _, n in said[0]], [n for _, n in said[1]])
    np.testing.assert_allclose([v for v, _ in said[1]], [v for v, _ in said[0]], rtol=1e-6)


def test_transposed_items_lie_one_after_the_other_where_they_differ():
    n = made().transpose(1, 2)
    np.testing.assert_array_equal(n.values().numpy(), np.concatenate([x.T for x in ITEMS], 1))
