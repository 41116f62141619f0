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
class Frozen(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.rnn, self.p, self.version = nn.Linear(2, 2), nn.LSTM(2, 3), nn.Parameter(torch.ones(2)), 3
        self.register_buffer("b", torch.ones(2))
    def forward(self, x):
        return self.fc(x) * self.p + self.b + self.rnn(x)[0].sum()
x = torch.ones(1, 2)
m = torch.jit.trace(Frozen().eval(), x)
f, k = torch.jit.freeze(m), torch.jit.freeze(m, preserved_attrs=["p"])
before = torch.allclose(f(x), m(x))
m.p.data.mul_(2)
before, torch.allclose(f(x), m(x)), list(f.state_dict()), f(x).requires_grad, [n for n, _ in k.named_parameters()], len(list(m.parameters()))

words(lambda: torch.jit.freeze(nn.Linear(2, 2).eval())), words(lambda: torch.jit.freeze(torch.jit.trace(nn.Linear(2, 2), torch.ones(1, 2))))

def kept(f):
    got = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: got.append((8 * t.detach()).round()) or t, lambda t: t):
        f()
    return got
x, y, z = (T([[1., 2.], [3., n]], requires_grad=True) for n in (4., 5., 6.))
F, S = nn.functional, (2,)
[kept(f) for f in (lambda: x * y, lambda: x / y, lambda: x ** y, lambda: x @ y, lambda: torch.atan2(x, y), lambda: torch.lerp(x, y, z), lambda: x.exp())]

FC, text = torch.testing.FileCheck, "one two\nthree four\nfour five\nsix one\n"
good = [FC().check("one").check_next("three").check_same("four").check_not("two").check("six"), FC().check_count("four", 2, exactly=True).check_regex("s.x"),
        FC().check_dag("six").check_dag("two"), FC().check_not("three").check("two"), FC().check_source_highlighted("four")]
good[-1].run("three four\n      ~~~~\n"), [f.run(text) for f in good[:-1]], FC().run("# CHECK-COUNT-2: four\n# CHECK-NEXT: six", text)

FC, text = torch.testing.FileCheck, "one two\nthree four\nfour five\nsix one\n"
bad = [FC(), FC().check("five").check("two"), FC().check("two").check_next("six"), FC().check("one").check_same("three"), FC().check_count("four", 3),
       FC().check_count("four", 1, exactly=True), FC().check("one").check_not("three").check("six"), FC().check_dag("six").check_dag("nine"),
       FC().check_regex("z+"), FC().check_dag("six").check_dag("two").check("four"), FC().check_source_highlighted("four")]
[words(lambda: f.run(text)).splitlines()[0] for f in bad]

bench, tb = torch.utils.ThroughputBenchmark(nn.Linear(2, 1)), torch.utils.throughput_benchmark
none = words(bench.benchmark)
bench.add_input(torch.ones(4, 2))
stats = bench.benchmark(num_calling_threads=2, num_warmup_iters=1, num_iters=8)
told = [line.split(":")[0] for line in str(stats).splitlines()]
none, bench.run_once(torch.ones(3, 2)).shape, stats.num_iters, told, tb.format_time(time_ms=1500), tb.format_time(time_us=2)

calls = []
class Loud(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args, kwargs=None):
        calls.append(func.__name__)
        return torch.overrides.redispatch_function(func, types, args, kwargs)
class Mode(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args, kwargs=None):
        calls.append(func.__name__)
        with self:
            return torch.overrides.redispatch_function(func, types, args, kwargs)
def scaled(a, b):
    if torch.overrides.has_torch_function((a, b)):
        return torch.overrides.handle_torch_function(scaled, (a, b), a, b)
    return a * b + 1
first = scaled(Loud(T([3.])), Loud(T([4.])))
with Mode():
    second = scaled(T([3.]), T([4.]))
first, second, type(first).__name__, calls

a = torch.eye(2).to_sparse()
a.smm(torch.ones(2, 2)).to_dense(), a.sspaddmm(a, torch.ones(2, 2), beta=2, alpha=3).to_dense(), words(lambda: T([1.]).reinforce(1)).splitlines()[0]

[words(lambda: torch.sparse_csr_tensor(*parts, check_invariants=True)) for parts in (([0, 1, 3], [0, 1], [1, 2]), ([1, 1, 2], [0, 1], [1, 2]))]

TT, Dyn = torch.fx.tensor_type.TensorType, torch.fx.tensor_type.Dyn
pairs = [(Dyn, TT((1, 2))), (TT((1, Dyn)), TT((1, 2))), (TT((1, 2)), TT((1, Dyn))), (int, Dyn), (int, float), (TT((1,)), TT((1, 2))), (TT((1, 2)), TT((1, 3)))]
TT[1, Dyn], TT[3], TT((1, 2)) == TT([1, 2]), [(torch.fx.tensor_type.is_consistent(*p), torch.fx.tensor_type.is_more_precise(*p)) for p in pairs]

tb = torch.fx.traceback
@tb.annotate_fn({"fn": 5})
def part(x):
    return x.exp()
def whole(x):
    with tb.annotate({"stage": 1}):
        y = x.sin()
        with tb.annotate({"tag": 2, "stage": 3}):
            y = y.cos()
        y = y + 1
    return part(y) * 2
with tb.preserve_node_meta():
    told = torch.fx.symbolic_trace(whole)
[[(n.name, n.meta.get("custom")) for n in g.graph.nodes] for g in (told, torch.fx.symbolic_trace(whole))], tb.has_preserved_node_meta(), tb.get_current_meta()

@torch._dynamo.nonstrict_trace
def inner(x):
    return x * 2
torch._dynamo.disallow_in_graph(torch.sub)
inner(torch.ones(2)), torch.sub(torch.ones(2), 1)

net = nn.Sequential(nn.Linear(3, 2), nn.Tanh())
again = torch.export.unflatten(torch.export.export(net, (torch.ones(1, 3),)))
list(again.state_dict()), torch.equal(again(torch.ones(1, 3)), net(torch.ones(1, 3))), again.get_submodule("0").weight is net[0].weight

q = torch.linspace(-1, 1, 32).view(1, 2, 4, 4)
outs = [F.scaled_dot_product_attention(q, q, q, m, is_causal=True) for m in (torch.ones(4, 4) * q[0, 0], (torch.arange(16) % 3 == 0).view(4, 4))]
outs, [torch.tensor(v, dtype=torch.int32) for v in (1.5, -1.5)], torch.zeros(1, 2, 1, 3).squeeze(0, 2).shape

x = torch.ones(4, 4)
with torch.autocast("cpu"):
    rows = [x.mv(x[0]), nn.GRU(4, 4)(x)[0], nn.RNN(4, 4)(x)[0], nn.Bilinear(4, 4, 2)(x, x), x @ x[0]]
    on = torch.is_autocast_enabled(), torch.is_autocast_enabled("cpu")
[r.dtype for r in rows], on

class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(x, factor=2.0):
        return x * factor
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor, ctx.count = inputs[1], len(inputs)
    @staticmethod
    def backward(ctx, g):
        return g * ctx.factor, None
x = torch.ones(2, requires_grad=True)
Scaled.apply(x).sum().backward()
Scaled.apply(x, 3.0).sum().backward()
x.grad

torch.manual_seed(0)
torch.quasirandom.SobolEngine(3, scramble=True).draw(4), torch.rand(2), torch.quasirandom.SobolEngine(2, scramble=True, seed=5).draw(2)

torch.tensor([-1.0], dtype=torch.uint8)

torch.tensor([-1, 255], dtype=torch.uint8), torch.tensor([1.9, 0.0], dtype=torch.uint8), torch.tensor(bytearray(b'ab')), torch.tensor(memoryview(b'ab'))

data = torch.utils.data
part = data.Subset(data.TensorDataset(torch.arange(10)), [3, 5, 7])
[next(iter(data.DataLoader(part, 2, collate_fn=lambda rows: (type(rows).__name__, rows)))), next(iter(data.DataLoader(part, 3)))]

class Asks(torch.utils._python_dispatch.TorchDispatchMode):
    def __torch_dispatch__(self, f, types, args=(), kwargs=None):
        return f(*args, **(kwargs or {}))
x = torch.arange(8.0).view(2, 4)
with Asks():
    got = [torch.fft.ifft(x), torch.fft.rfft(x), torch.fft.irfft(x), torch.fft.fft(x, norm="ortho"), torch.fft.ifft2(x), torch.fft.irfft2(x)]
[torch.view_as_real(g.resolve_conj()) + 0 if g.is_complex() else g for g in got]

v, edge, grads = torch.tensor([-1.0, 4.0]), torch.zeros(2), []
for f in (lambda v: v.clamp(min=0), lambda v: v.clamp(0, 1), lambda v: v.clamp(edge, edge + 1), lambda v: (-v).clamp_max(0).neg(),
          lambda v: torch.fmax(v, edge), lambda v: v ** 0 - 1):
    x = v.clone().requires_grad_()
    f(x).sqrt().sum().backward()
    grads.append(x.grad)
x = torch.tensor([[float("inf"), 0.2], [1.0, 2.0]], requires_grad=True)
x.logsumexp(1).sum().backward()
kept = []
for i in range(5):
    kept.append(torch.zeros(2))
    torch.logsumexp(torch.ones(2, 3) * i, 1, out=kept[-1])
grads, x.grad, kept, torch.full((9, 2), 1e3 / 7).std(0), torch.full((3, 7), 0.1).var(1, keepdim=True)
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
