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
