"""What the examples in PyTorch's docstrings led to: short programs that give the same under PyTorch and under clnn, or raise the same."""
import ast
import warnings

import pytest
from test_same_answers import shown, words

import clnn

other = pytest.importorskip("torch")

# Programs, apart by empty lines; the last statement of each is an expression.
PROGRAMS = r"""
class Same(torch.autograd.Function):
    forward = staticmethod(lambda ctx, x: ctx.mark_dirty(x) or x)
    backward = staticmethod(lambda ctx, g: g)
x = torch.ones(2, requires_grad=True) * 2
y = x * x
Same.apply(x)
x._version, words(y.sum().backward)

t = torch.arange(4)
u = torch.from_dlpack(torch.utils.dlpack.to_dlpack(t))
u[0], t[2] = -9, 7
t, u

a = np.arange(3.)
a.flags.writeable = False
t = torch.from_dlpack(np.array(a))
b = np.from_dlpack(t)
b[0] = 4
t, b

H, x = torch.utils.hooks.RemovableHandle, torch.ones(2, requires_grad=True)
y, h = x * 2, torch.autograd.graph.register_multi_grad_hook([x], print)
[isinstance(i, H) for i in (x.register_hook(lambda g: g), y.grad_fn.register_hook(print), h)], h.remove(), y.sum().backward()

D = torch.export.Dim
x, y = D("x", max=5), D("y", min=2)
x, y, D("z", min=1, max=9), 2 * x + 1, (3 * (2 * x + 1) - 5).max, (y - 1).min, x + 1 - 1, D.AUTO, D.AUTO(min=3), D.AUTO(min=1) == D.AUTO(min=1), y.max

D, x = torch.export.Dim, torch.export.Dim("x")
[words(f) for f in (lambda: D("1x"), lambda: D("x", min=4, max=2), lambda: -1 * x, lambda: x + D("y"), lambda: x - 2., lambda: 3 - x, lambda: (x - 1).min)]

m = torch.nn.Sequential(torch.nn.Dropout(), torch.nn.BatchNorm1d(2))
torch.manual_seed(0)
p = torch.export.export(m, (torch.ones(3, 2),))
torch.rand(2), dict(m.named_buffers()), p.constants, dict(p.graph_signature.buffers_to_mutate)

class Shift(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("b", torch.ones(2), persistent=False)
    def forward(self, x):
        return x + self.b
p = torch.export.export(Shift(), (torch.ones(2),))
p.graph_signature.non_persistent_buffers, p.graph_signature.input_specs[0].persistent, p.graph_signature.user_inputs, p.constants

p = torch.arange(12.).reshape(2, 3, 2)
torch.nn.utils.rnn.unpad_sequence(p, T([2, 1, 2])), p

W = torch.distributions.Wishart
torch.manual_seed(3)
many, scaled = W(T([5., 3.]), covariance_matrix=torch.eye(3) + .2).sample((2,)), W(T(5.), scale_tril=torch.eye(3)).rsample((4,))
many, scaled, W(T(5.), precision_matrix=torch.eye(2)).rsample(max_try_correction=0)
"""


def outcome(program, lib):
    import numpy as np
    names = dict(torch=lib, np=np, T=lib.tensor, words=words, F=lib.nn.functional, nn=lib.nn)
    *before, last = ast.parse(program).body
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(ast.Module(before, []), "<program>", "exec"), names)
            return shown(eval(compile(ast.Expression(last.value), "<program>", "eval"), names)).replace("clnn.", "torch.")
        except Exception as exc:
            return next(c.__name__ for c in type(exc).__mro__ if c.__module__ == "builtins"), str(exc).replace("clnn.", "torch.").splitlines()[:1]


@pytest.mark.parametrize("program", PROGRAMS.strip().split("\n\n"))
def test_same(program):
    assert outcome(program, clnn) == outcome(program, other)
