"""The programs that texts about PyTorch's modules show, under ``import clnn as torch``, with what those texts state about them.

Each test follows one passage of the note on modules in PyTorch's documentation (``test_reference_articles.py`` has the shorter texts). What is
printed or listed is also compared with PyTorch, where that is installed.
"""
import subprocess
import sys
from collections import OrderedDict

import pytest
from transcripts import in_torch

import clnn
import clnn as torch
import clnn.nn.functional as F
from clnn import nn


class Affine(nn.Module):
    """A linear layer by hand: two parameters and one expression."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs))
        self.bias = nn.Parameter(torch.randn(outputs))

    def forward(self, x):
        return (x @ self.weight) + self.bias


class Pair(nn.Module):
    """Two children with a function between them."""

    def __init__(self):
        super().__init__()
        self.first = Affine(4, 3)
        self.second = Affine(3, 1)

    def forward(self, x):
        return self.second(F.relu(self.first(x)))


class Tower(nn.Module):
    """Children of children."""

    def __init__(self):
        super().__init__()
        self.entry = Affine(5, 4)
        self.pair = Pair()

    def forward(self, x):
        return self.pair(self.entry(x))


class Chooser(nn.Module):
    """Submodules from a list and a dictionary; the activation is chosen by name at the call."""

    def __init__(self, depth):
        super().__init__()
        self.steps = nn.ModuleList([Affine(4, 4) for _ in range(depth)])
        self.acts = nn.ModuleDict({"relu": nn.ReLU(), "leaky": nn.LeakyReLU()})
        self.last = Affine(4, 1)

    def forward(self, x, act):
        for step in self.steps:
            x = self.acts[act](step(x))
        return self.last(x)


# -- the note: a custom module, modules of modules ---------------------------------------------------------------------------------
def test_a_module_is_called():
    m = Affine(4, 3)
    x = torch.randn(4)
    y = m(x)
    assert y.shape == (3,) and y.grad_fn.name() == "AddBackward0" and repr(y).endswith("grad_fn=<AddBackward0>)")
    assert torch.equal(y, m.forward(x))
    assert clnn.allclose(y, torch.tensor([sum(x[i].item() * m.weight[i, j].item() for i in range(4)) + m.bias[j].item() for j in range(3)]))


def test_parameters_are_registered_by_assignment():
    m = Affine(4, 3)
    named = list(m.named_parameters())
    assert [name for name, _ in named] == ["weight", "bias"] and named[0][1] is m.weight
    assert all(isinstance(p, nn.Parameter) and p.requires_grad for p in m.parameters())
    text = str(named[1])
    assert text.startswith("('bias', Parameter containing:\ntensor([") and text.endswith("requires_grad=True))")


def test_sequential_feeds_outputs_on():
    net = nn.Sequential(Affine(4, 3), nn.ReLU(), Affine(3, 1))
    x = torch.randn(4)
    assert torch.equal(net(x), net[2](net[1](net[0](x)))) and net(x).grad_fn.name() == "AddBackward0"


def test_children_and_modules():
    pair, tower = Pair(), Tower()
    assert [str(child) for child in pair.named_children()] == ["('first', Affine())", "('second', Affine())"]
    assert list(pair.children()) == [pair.first, pair.second]
    shown = [str(entry) for entry in tower.named_modules()]
    whole = "Tower(\n  (entry): Affine()\n  (pair): Pair(\n    (first): Affine()\n    (second): Affine()\n  )\n)"
    inner = "Pair(\n  (first): Affine()\n  (second): Affine()\n)"
    assert shown == [f"('', {whole})", "('entry', Affine())", f"('pair', {inner})", "('pair.first', Affine())", "('pair.second', Affine())"]
    assert tower(torch.randn(5)).shape == (1,)


def test_lists_and_dictionaries_of_modules():
    net = Chooser(3)
    assert net(torch.randn(4), "relu").shape == (1,) and net(torch.randn(4), "leaky").grad_fn is not None
    names = [name for name, _ in net.named_parameters()]
    assert names == [f"steps.{i}.{kind}" for i in range(3) for kind in ("weight", "bias")] + ["last.weight", "last.bias"]
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'act'"):
        net(torch.randn(4))


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_moves_to_a_device_and_dtype(device, request):
    try:
        torch.ones(1, device=device)
    except RuntimeError:
        if device == "cpu":
            raise
        device = str(clnn.get_default_device())                               # the note's 'cuda' where there is no GPU
    if not clnn.get_default_device().physical.has_fp64:
        pytest.skip("the device has no float64")
    net = Chooser(2)
    weight = net.last.weight
    assert net.to(device=device) is net and net.to(dtype=torch.float64) is net
    assert net.last.weight is weight and weight.dtype is torch.float64 and weight.device == torch.ones(1, device=device).device
    y = net(torch.randn(4, device=device, dtype=torch.float64), "relu")
    assert y.dtype is torch.float64 and "dtype=clnn.float64, grad_fn=<AddBackward0>)" in repr(y)


def test_apply_initialises_linear_layers():
    @torch.no_grad()
    def initialise(m):
        if isinstance(m, nn.Linear):
            nn.init.xavier_normal_(m.weight)
            m.bias.fill_(0.5)

    net = nn.Sequential(nn.Linear(3, 2), nn.ReLU(), Affine(2, 2))
    bias = net[2].bias.tolist()
    assert net.apply(initialise) is net
    assert net[0].bias.tolist() == [0.5, 0.5] and net[0].bias.requires_grad and net[2].bias.tolist() == bias


# -- the note: training, modes ------------------------------------------------------------------------------------------------------
def test_training_drives_the_output_to_zero():
    """The note's loop with a larger step, so that few passes do."""
    torch.manual_seed(3)
    net = Pair()
    before = net.second.weight.detach().clone()
    optimizer = torch.optim.SGD(net.parameters(), lr=2e-3, weight_decay=1e-2, momentum=0.9)
    probe = torch.randn(64, 4)
    start = net(probe).abs().mean().item()
    for _ in range(400):
        loss = torch.abs(net(torch.randn(4)))
        net.zero_grad()
        loss.backward()
        optimizer.step()
    assert net.eval() is net and not net.training and not net.first.training
    assert net(probe).abs().mean().item() < 0.5 * start
    assert not torch.equal(before, net.second.weight) and repr(net.second.weight).startswith("Parameter containing:\ntensor([[")


def test_the_loop_as_shown_takes_the_same_course_as_in_torch():
    """The note's hyperparameters, 60 of its 10000 steps, on equal numbers."""
    real = pytest.importorskip("torch")
    real.manual_seed(0)
    start = [real.randn(4, 3), real.randn(3), real.randn(3, 1), real.randn(1)]
    inputs = real.randn(60, 4)
    ends = []
    for lib in (real, clnn):
        put = (lambda t: t) if lib is real else (lambda t: clnn.from_numpy(t.numpy()))
        w0, b0, w1, b1 = params = [lib.nn.Parameter(put(t.clone())) for t in start]
        optimizer = lib.optim.SGD(params, lr=1e-4, weight_decay=1e-2, momentum=0.9)
        for row in put(inputs):
            loss = lib.abs(lib.relu(row @ w0 + b0) @ w1 + b1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        ends.append([value for p in params for value in p.detach().flatten().tolist()])
    assert ends[1] == pytest.approx(ends[0], rel=1e-4, abs=1e-5)


def test_modes_change_what_a_module_does():
    class Shifted(nn.Module):
        def forward(self, x):
            return x + 3.0 if self.training else x

    m, x = Shifted(), torch.randn(4)
    assert m.training and torch.equal(m(x), x + 3.0)
    m.eval()
    assert torch.equal(m(x), x) and m.train().training

    norm = nn.BatchNorm1d(2)
    norm(torch.ones(3, 2) * 5)
    kept = norm.running_mean.tolist()
    assert kept == pytest.approx([0.5, 0.5])
    norm.eval()(torch.ones(3, 2))
    assert norm.running_mean.tolist() == kept                                  # left alone when not training


# -- the note: state ----------------------------------------------------------------------------------------------------------------
def test_saving_and_loading_a_module(tmp_path):
    net, fresh = Pair(), Pair()
    torch.save(net.state_dict(), tmp_path / "pair.pt")
    result = fresh.load_state_dict(torch.load(tmp_path / "pair.pt"))
    assert repr(result) == "<All keys matched successfully>"
    x = torch.randn(4)
    assert torch.equal(fresh(x), net(x))


class Smoothed(nn.Module):
    """A running mean, kept in a buffer."""

    def __init__(self, n, keep=0.75):
        super().__init__()
        self.keep = keep
        self.register_buffer("level", torch.zeros(n))

    def forward(self, x):
        self.level = self.keep * self.level + (1.0 - self.keep) * x
        return self.level


def test_buffers_are_state_but_not_learned(tmp_path):
    m = Smoothed(3)
    for value in (4.0, 8.0):
        m(torch.full((3,), value))
    assert m.level.tolist() == [2.75] * 3 and not m.level.requires_grad and list(m.parameters()) == []
    assert repr(m.state_dict()) == repr(OrderedDict([("level", torch.tensor([2.75, 2.75, 2.75]))]))
    torch.save(m.state_dict(), tmp_path / "level.pt")
    back = Smoothed(3)
    back.load_state_dict(torch.load(tmp_path / "level.pt"))
    assert torch.all(m.level == back.level)


def test_buffers_that_are_not_saved_still_move():
    m = Smoothed(3)
    m.register_buffer("scratch", torch.randn(5), persistent=False)
    assert list(m.state_dict()) == ["level"] and [name for name, _ in m.named_buffers()] == ["level", "scratch"]
    assert [b.shape for b in m.buffers()] == [(3,), (5,)]
    m.to(device=clnn.get_default_device(), dtype=torch.float16)
    assert m.level.dtype is torch.float16 and m.scratch.dtype is torch.float16


STATEFUL = """
class Kinds(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.randn(2))
        self.register_parameter('b', nn.Parameter(torch.randn(3)))
        self.register_parameter('reserved', None)
        self.many = nn.ParameterList([nn.Parameter(torch.randn(2)) for _ in range(3)])
        self.named = nn.ParameterDict({'tau': nn.Parameter(torch.randn(3)), 'rho': nn.Parameter(torch.randn(4))})
        self.register_buffer('kept', torch.randn(4), persistent=True)
        self.register_buffer('passing', torch.randn(5), persistent=False)
        self.register_buffer('empty', None)
        self.fc = nn.Linear(2, 3)
"""


def test_every_kind_of_state(tmp_path):
    names = {"torch": torch, "nn": nn}
    exec(STATEFUL, names)
    m, other = names["Kinds"](), names["Kinds"]()
    torch.save(m.state_dict(), tmp_path / "kinds.pt")
    assert repr(other.load_state_dict(torch.load(tmp_path / "kinds.pt"))) == "<All keys matched successfully>"
    expected = ["a", "b", "kept", "many.0", "many.1", "many.2", "named.rho", "named.tau", "fc.weight", "fc.bias"]   # a dict's names are sorted
    assert list(other.state_dict()) == expected
    assert all(torch.equal(value, m.state_dict()[name]) for name, value in other.state_dict().items())
    assert m.reserved is None and m.empty is None
    for name, value in (("reserved", 5), ("reserved", torch.ones(2)), ("empty", "text"), ("fc", 3)):
        with pytest.raises(TypeError, match="cannot assign"):
            setattr(m, name, value)
    m.reserved, m.empty = nn.Parameter(torch.ones(1)), torch.ones(1)
    assert list(m.state_dict())[2] == "reserved" and "empty" in m.state_dict()


def test_every_kind_of_state_prints_as_in_torch():
    shown = in_torch(STATEFUL + """
m = Kinds()
print(m)
print(m.state_dict())
print(list(m.state_dict()), [n for n, _ in m.named_buffers()], [n for n, _ in m.named_parameters()], sep='\\n')
for p in m.named_parameters():
    print(p)
""")
    assert "(named): ParameterDict(" in shown and "('named.rho', tensor([#, #, #, #]))" in shown


# -- the note: initialisation -------------------------------------------------------------------------------------------------------
def test_layers_are_made_where_and_as_asked():
    where = clnn.get_default_device()
    m = nn.Linear(5, 3, device=where)
    assert m.weight.device == where and m.weight.dtype is torch.float32
    assert nn.Linear(5, 3, dtype=torch.half).bias.dtype is torch.float16
    m = torch.nn.utils.skip_init(nn.Linear, 5, 3)
    nn.init.orthogonal_(m.weight)
    assert torch.allclose(m.weight @ m.weight.T, torch.eye(3), atol=1e-5)
    m = nn.BatchNorm2d(3, dtype=torch.half)
    assert repr(m.running_mean) == "tensor([0., 0., 0.], dtype=clnn.float16)" and m.num_batches_tracked.dtype is torch.int64


# -- the note: hooks ----------------------------------------------------------------------------------------------------------------
def test_forward_hooks_change_inputs_and_outputs():
    m, x = nn.Linear(3, 3), torch.randn(2, 3, requires_grad=True)
    plain = m(x)
    assert plain.grad_fn.name() == "AddmmBackward0"
    before = m.register_forward_pre_hook(lambda mod, inputs: inputs[0] + 2.0)
    assert torch.allclose(m(x), F.linear(x + 2.0, m.weight, m.bias)) and m(x).grad_fn.name() == "AddmmBackward0"
    after = m.register_forward_hook(lambda mod, inputs, output: output + inputs[0])    # inputs are those the pre-hook made
    both = m(x)
    assert torch.allclose(both, F.linear(x + 2.0, m.weight, m.bias) + x + 2.0) and both.grad_fn.name() == "AddBackward0"
    before.remove()
    after.remove()
    assert torch.equal(m(x), plain)


def test_backward_hooks_replace_gradients():
    """A list is as good as a tuple: the note's hook returns one."""
    m, x = nn.Linear(3, 3), torch.randn(2, 3, requires_grad=True)
    m(x).sum().backward()
    assert torch.allclose(x.grad, m.weight.detach().sum(0).expand(2, 3))
    m.zero_grad()
    x.grad.zero_()
    seen = []

    def hook(mod, grad_inputs, grad_outputs):
        seen.append((mod, type(grad_inputs), type(grad_outputs), grad_outputs[0].tolist()))
        return [torch.ones_like(g) * 42.0 for g in grad_inputs]

    m.register_full_backward_hook(hook)
    m(x).sum().backward()
    assert x.grad.tolist() == [[42.0] * 3] * 2 and repr(x.grad) == "tensor([[42., 42., 42.],\n        [42., 42., 42.]])"
    assert seen == [(m, tuple, tuple, [[1.0] * 3] * 2)] and m.weight.grad is not None


def test_hooks_print_as_in_torch():
    shown = in_torch("""
m = nn.Linear(3, 3)
x = torch.ones(2, 3, requires_grad=True)
print('without: {}'.format(m(x)))
h = m.register_forward_hook(lambda m, i, o: o + i[0])
print('with: {}'.format(m(x)))
h.remove()
m(x).sum().backward()
print('gradient: {}'.format(x.grad))
""")
    assert "grad_fn=<AddmmBackward0>" in shown and "grad_fn=<AddBackward0>" in shown


# -- the note: parametrisations and pruning -----------------------------------------------------------------------------------------
def test_orthogonal_weights_and_pruning():
    layer = nn.utils.parametrizations.orthogonal(nn.Linear(4, 4))
    assert torch.allclose(layer.weight @ layer.weight.T, torch.eye(4), atol=1e-5)
    pruned = nn.utils.prune.l1_unstructured(nn.Linear(4, 4), "weight", amount=0.5)
    assert (pruned.weight == 0).sum().item() == 8 and sorted(pruned.state_dict()) == ["bias", "weight_mask", "weight_orig"]
    nn.utils.prune.remove(pruned, "weight")
    assert sorted(pruned.state_dict()) == ["bias", "weight"]


# -- the module under torch's name -----------------------------------------------------------------------------------------------------
def test_import_as_torch():
    """``import clnn as torch`` and its submodules, and the same under PyTorch's own name through ``sys.modules``."""
    program = """
import sys
import clnn
sys.modules["torch"] = clnn
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import nn as again, optim, Tensor
from torch.nn import Module, Linear
from torch.nn.modules.utils import _pair
from torch.nn.parameter import Parameter
from torch.nn.utils import parametrize, prune, skip_init
from torch.optim import SGD, lr_scheduler
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset
import torch.utils.checkpoint
assert torch is clnn and nn is again is clnn.nn is sys.modules["clnn.nn"] and F is clnn.nn.functional and Parameter is clnn.nn.Parameter
assert SGD is clnn.optim.SGD and isinstance(Linear(2, 2).weight, Tensor) and _pair(3) == (3, 3)
assert sys.modules["torch.nn.parameter"] is sys.modules["clnn.nn.parameter"] and nn.__name__ == nn.__spec__.name == "clnn.nn"
from importlib.metadata import version
assert "2.4" < torch.__version__ == version("torch") == torch.version.__version__ and torch.__version__.endswith("+clnn")
try:
    import torch.nowhere
except ModuleNotFoundError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "No module named 'torch.nowhere'", done.stderr[-2000:]
