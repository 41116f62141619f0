"""Rarer things that PyTorch's own tests assert of tensors: results and errors are the same in both, where clnn's words may go on after PyTorch's."""
import warnings

import pytest
from test_same_answers import shown

import clnn

other = pytest.importorskip("torch")

# A line is an expression; ``a; b`` runs a first.
LINES = r"""
torch.ones(3, 3)[3, 3, 3], 1
torch.ones(2)[2 ** 63]
torch.empty(4, 0)[:, [0, 1]]
T(2.)[T(0)]
torch.take_along_dim(torch.ones(2, 3), T([0, 1]), 0)
x.index_fill_(1, i, 1j)
torch.heaviside(x, x.double())
torch.heaviside(k, x)
torch.heaviside(x, T(1))
x[None].sub_(x)
x.index_put_((i,), x), x
k.scatter_(0, k, 3)
x.scatter_(0, T([[0, 0, 0]]), x)
x.expand(4, 2, 3).sub_(1.)
x.expand(1, 2, 3).stride(), x.t().expand(1, 1, 3, 2).stride(), T(1.).expand(1, 1).stride(), torch.ones(2, 1, 3).expand(1, 2, 4, 3).stride()
x.expand(-1, 2, 3)
torch.ones(3, 1).expand(3, 2).masked_fill_(T([[True, False], [False, False], [False, True]]), 5), torch.ones(1, 3).expand(2, 3).index_put_((i,), T(3.))
e = torch.ones(1, 3).expand(2, 3); e[T([0])] = 4.; e, torch.ones(1, 3).expand(2, 3).index_fill_(1, T([2]), 3.)
torch.ones(2, 3).index_reduce(1, T([0, 1, 1], dtype=torch.int32), x, 'mean'), T(3.).index_reduce(0, T([0]), T(2.), 'prod')
warned(lambda: torch.ones(1, 3).expand(2, 3).masked_fill_(T([True, False, True]), 5)), warned(lambda: torch.ones(1, 3).expand(2, 3).index_put_((i,), T(3.)))
warned(lambda: torch.ones(1, 3).expand(2, 3).index_fill_(1, T([2]), 3.)), warned(lambda: k.index_put_((T([1, 0]).byte(),), T([[3]]), True))
torch.broadcast_shapes((1, 2), 3, (4, 1, 1))
torch.broadcast_shapes((2, 1), (5, 1, 3), (4, 2, 3))
torch.broadcast_shapes((-1, 2))
x.view(-2, 3)
x.view(torch.float64)
torch.ones(2, 4)[:, 1:3].view(torch.float64)
torch.ones(2, 3)[:, :2].view(torch.float64)
x.unflatten(0, ())
x.unflatten(0, (-1, -1))
torch.view_as_complex(T(1.))
x.as_strided((2,), (1,), -1)
x.split([3, -1])
x.tensor_split(T([[1]]))
torch.atleast_2d([1, x])
torch.hstack([3])
torch.dstack((x, None))
torch.block_diag(x, 1.5)
torch.broadcast_tensors(x, 2)
torch.cartesian_prod(T([1]), 2)
torch.einsum('i,i', T([1.]), 2)
torch.stack([x, np.ones((2, 3))])
torch.linalg.multi_dot([x, 2])
torch.repeat_interleave(T([1, -1]))
torch.repeat_interleave(T([1., 2.]))
torch.repeat_interleave(T([[1]]))
torch.repeat_interleave(x, T([[1]]), 0)
torch.repeat_interleave(x, T([1, 2]).byte(), 0)
torch.repeat_interleave(x, T(-1), 0)
torch.repeat_interleave(T([0, 2, 1]), output_size=4)
torch.repeat_interleave(x, 2, 0, output_size=5)
torch.repeat_interleave(x, T(2), 0, output_size=5)
torch.repeat_interleave(x, T([1, 2]), 0, output_size=2)
torch.repeat_interleave(T([1, 2], dtype=torch.int32)), torch.repeat_interleave(x, T([1, 2]), 0, output_size=3), torch.repeat_interleave(x, T([2]), 1, output_size=6)
torch.nonzero_static(x, size=3), torch.nonzero_static(x, size=7, fill_value=9).stride()
torch.nonzero_static(x, size=-1)
torch.vander(T([1, 2]), N=-1)
torch.vander(T([1j, 2])), torch.vander(T([0., 2]), 3, True), torch.vander(T([True, False]), 0).shape, torch.vander(T([2, 3]).char(), 1), torch.vander(T([]), 3)
torch.linspace(T([0.]), 1, 3)
torch.logspace(T([0.]), T(1.), 3)
torch.linspace(0, 1j, 3, dtype=torch.float32)
torch.linspace(T(0.), 1j, 3)
torch.arange(0, 1e30)
torch.randint(0, 100000, (2,), dtype=torch.float16)
torch.randperm(4000, dtype=torch.float16)
torch.normal(0., -1., (2,))
torch.normal(x, c[:1])
torch.empty(2).uniform_(-3e38, 3e38)
torch.empty(2).half().uniform_(-1e5, 0)
torch.empty(2).bernoulli_(2)
torch.tensor([T([1, 2]), T([2, 3])])
torch.tensor(np.array([1, 2], dtype=object))
torch.from_numpy(np.array([1, 2], np.longdouble))
torch.asarray(bytearray(b'abc'))
torch.asarray([1], copy=False)
torch.asarray(x, dtype=torch.float64, copy=False)
torch.asarray(b'abcd', dtype=torch.uint8), torch.asarray(np.arange(3), copy=True), torch.asarray(x) is x, torch.asarray(p, requires_grad=True) is p
torch.frombuffer(bytearray(4), dtype=torch.int8, count=5)
torch.frombuffer(bytearray(4), dtype=torch.int8, offset=4)
torch.frombuffer(bytearray(5), dtype=torch.int32)
torch.frombuffer(bytearray(8), dtype=torch.int32, offset=-1)
torch.frombuffer(3, dtype=torch.int32)
b = bytearray(4); t = torch.frombuffer(b, dtype=torch.uint8, count=2, offset=1); b[1] = 7; t, torch.frombuffer(memoryview(b), dtype=torch.int16)
x.repeat_interleave(T([1., 2.]))
torch.std_mean(k)
torch.var_mean(x, 1, correction=0), torch.std_mean(x, (0, 1), keepdim=True), torch.var_mean(x, False)
torch.any(x, out=torch.empty(0).byte()), torch.all(x, 0, out=torch.ones(3).byte())
torch.diff(x, prepend=T([1.]))
torch.diff(x, append=torch.ones(1, 1))
torch.quantile(x, T([0.5, 1.5]))
torch.quantile(x, T(nan))
torch.quantile(x, k)
torch.quantile(x, T([0.25, 1.])), torch.quantile(x, T(0.), 0)
torch.histc(x, 3, 0, inf)
torch.histogram(x, 3, weight=torch.ones(2))
torch.histogram(k, 3)
torch.histogram(x, T([1.]))
torch.histogram(x, T([[1.]]))
torch.histogramdd(T([1.]), 2)
torch.histogramdd(x, 2, range=[0, 1])
torch.isin(T([True]), T([True]))
torch.isin(c, c)
torch.topk(T(1.), 0)
torch.searchsorted(T([[1., 3.]]), 2)
torch.searchsorted(T(1.), T(2.))
torch.searchsorted(x, torch.ones(2, 1), right=True, side='left')
torch.searchsorted(T([3., 1.]), T([2.]), sorter=T([5, 0]))
torch.searchsorted(T([3., 1.]), T([2.]), sorter=T([1, 0])), torch.searchsorted(T([[3., 1.]]), T([[2.]]), sorter=T([[1, 0]]))
""".strip().splitlines()


def warned(call):
    """The kinds and words of the warnings of a call."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        call()
    return [(w.category.__name__, str(w.message).partition(" (Triggered")[0]) for w in heard]


def outcome(line, lib):
    """(kind of the error or nothing, its words or what a line gives)."""
    import numpy as np
    lib.manual_seed(0)
    names = dict(torch=lib, np=np, T=lib.tensor, F=lib.nn.functional, nan=float("nan"), inf=float("inf"), x=lib.arange(6.).reshape(2, 3), warned=warned,
                 k=lib.arange(6).reshape(2, 3), p=lib.ones(2, 3, requires_grad=True), z=lib.zeros(0, 3), i=lib.tensor([1, 0]), c=lib.tensor([1 + 2j, 3 - 1j]))
    *before, last = line.split("; ")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec("\n".join(before), names)
            kind, got = "", shown(eval(last, names))
        except Exception as error:
            kind, got = next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins"), str(error).splitlines()[0]
    return kind, got.replace("clnn", "torch").replace("_C.", "")


@pytest.mark.parametrize("line", LINES)
def test_same(line):
    (kind, got), (want_kind, want) = outcome(line, clnn), outcome(line, other)
    assert kind == want_kind and (want in got if kind else got == want), f"{kind}: {got}\n{want_kind}: {want}"
