"""Short calls of corners that programs reach, right and wrong ones, in PyTorch and in clnn: both give the same, or raise the same words."""
import warnings

import pytest
from test_same_answers import shown

import clnn

other = pytest.importorskip("torch")

# A line is an expression; ``a; b`` runs a first.
LINES = r"""
torch.zeros(2, device=3.5)
torch.empty(2, memory_format=3)
torch.zeros((2,), 3)
torch.full((2,), dtype='x')
torch.full((2,), 1, 3)
torch.full('a', 1)
torch.arange(1, 'a')
torch.arange(1, None)
torch.arange(T([5]))
torch.arange(1, foo=2)
torch.arange(end=5), torch.arange(start=2, end=5), torch.arange(T(2), end=5)
torch.linspace(1, 2, 2.5)
torch.logspace(1, 2, 3, 'a')
torch.eye(2, 'a')
torch.zeros_like(x, foo=3)
torch.zeros_like(x, dtype=3, requires_grad=True)
torch.zeros_like(x, requires_grad='a')
torch.full_like(x, T([2]))
torch.full_like(x, T(2)), torch.full_like(k, 1.9), torch.full_like(input=x, fill_value=3)
torch.rand_like(3)
torch.randint_like(x, 2.5)
torch.rand(2, generator=3)
torch.randint(2, 3)
torch.randint(2.5, (2,))
torch.randint(2, (2,), foo=1)
torch.randperm('a')
torch.zeros(2, requires_grad=True, out=torch.empty(3))
x.new_zeros('a')
x.new_zeros(2, dtype='x', requires_grad=True)
x.new_zeros(2, requires_grad='x')
x.new_full((2,), 1, 3)
x.new_full('a')
x.new_tensor([1], foo=1)
x.new_tensor(x) is x, x.new_tensor([1, 2]), k.new_tensor(x), x.new_zeros(2, dtype=torch.int32), x.new_ones(size=(2,), requires_grad=True)
x.fill_('a')
torch.fill(x, T([1, 2]))
torch.scalar_tensor([1])
torch.scalar_tensor(1j)
torch.scalar_tensor(True), torch.scalar_tensor(2, dtype=torch.int32), torch.scalar_tensor(1 + 0j), torch.scalar_tensor(1j, dtype=torch.complex64)
torch.tensor([1j], dtype=torch.float32)
torch.tensor([1j], dtype=torch.int32)
torch.hann_window('a')
torch.hann_window(3, dtype='x')
torch.empty_strided((2,), 'a')
torch.range(1)
torch.vander(x)
torch.complex(x, 3)
torch.normal(1, 1, 3)
x.squeeze(None)
torch.squeeze(x[:1], None)
x[:1].squeeze(), x[:1].squeeze(dim=0), torch.squeeze(x[:1], (0, 1))
F.gelu(x, 'none')
F.gelu(x, approximate='tanh'), nn.GELU('tanh')(x)
torch.sort(x, 0, True, True)
x.argsort(0, True, True)
x.sort(stable=None), x.sort(dim=0, stable=True, descending=True), torch.argsort(x, stable=True)
x.softmax()
torch.log_softmax(x)
x.softmax(None)
F.softmax(x), F.log_softmax(x, None), F.softmin(x), nn.Softmax()(x), x.softmax(0), torch.special.softmax(x, dim=1)
F.glu(T(1.))
x.index_put((T([0.]),), T([1.]))
x.index_put_((T([0], dtype=torch.int16),), T([1.]))
x.index_put_((T([0], dtype=torch.int32),), T([1.]))
torch.zeros(3).index_add(0, T([0.]), T([1.]))
torch.zeros(3).index_add(0, T([0, 1]), T([1.]))
torch.zeros(3).index_add_(0, T([[0]]), T([1.]))
torch.zeros(3).index_copy(0, T([0], dtype=torch.int32), T([1.]))
torch.zeros(3).index_copy_(0, T([[0]]), T([1.]))
torch.zeros(3).index_copy(0, T([0]), T([1]))
torch.zeros(3).index_fill(0, T([0], dtype=torch.int32), 1)
torch.zeros(3).index_fill_(0, T([[0]]), 1)
torch.zeros(3).index_reduce(0, T([0.]), T([1.]), 'prod')
torch.zeros(3).index_reduce(0, T([0]), T([1., 2.]), 'prod')
torch.zeros(3).index_reduce(0, T([0, 2]), T([3., 2.]), 'amax'), torch.ones(3).index_reduce_(0, T([0, 0]), T([3., 2.]), 'prod')
x.gather(0, T([[0.]]))
x.index_select(0, T([0.]))
x.take(T([0], dtype=torch.int32))
x.scatter_add(0, T([[0.]]), x)
x.put_(T([0]), T([1., 2.]))
torch.zeros(3, requires_grad=True).bitwise_not_()
torch.zeros(3, requires_grad=True).add_(torch.zeros(4))
torch.zeros(3).requires_grad_().view(3).mul_(torch.zeros(4))
g = torch.gradient(p)[0].sum(); g.backward(); g.backward(); p.grad
torch.gradient(x), torch.gradient(x ** 2, spacing=0.3), torch.gradient(x ** 3, dim=1, edge_order=2, spacing=2.)
torch.gradient(k, dim=-1), torch.gradient(T([1., 4, 9, 16]).half()), torch.gradient(T([1 + 1j, 4, 9j]), spacing=0.5)
p.sort()[0].grad_fn.name(), p.sort(stable=True)[0].grad_fn.name(), torch.sort(p, stable=False)[0].grad_fn.name(), p.msort().grad_fn.name()
torch.arange(4.).view(1, 4).msort().view(torch.int64)
torch.arange(6.).view(1, 6).sort(0)[0].stride(), torch.arange(6.).view(6, 1).sort(0).indices.stride(), torch.arange(6.).view(6, 1).topk(2, 0)[0].stride()
""".strip().splitlines()


def outcome(line, lib):
    import numpy as np
    lib.manual_seed(0)
    names = dict(torch=lib, np=np, T=lib.tensor, F=lib.nn.functional, nn=lib.nn, nan=float("nan"), inf=float("inf"), x=lib.arange(6.).reshape(2, 3),
                 k=lib.arange(6).reshape(2, 3), p=lib.ones(2, 3, requires_grad=True), z=lib.zeros(0, 3), i=lib.tensor([1, 0]), c=lib.tensor([1 + 2j, 3 - 1j]))
    *before, last = line.split("; ")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec("\n".join(before), names)
            got = shown(eval(last, names))
        except Exception as error:
            got = f"{next(c.__name__ for c in type(error).__mro__ if c.__module__ == 'builtins')}: {error}"
    return got.replace("clnn", "torch").replace("_C.", "")


@pytest.mark.parametrize("line", LINES)
def test_same(line):
    assert outcome(line, clnn) == outcome(line, other)
