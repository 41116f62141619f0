"""The programs of two texts about ``nn.Module``, an article and a question-and-answer page, with what they state about them.

``test_reference_documents.py`` does the same for the longer note on modules.
"""
import pytest
from transcripts import in_torch

import clnn as torch
import clnn.nn.functional as F
from clnn import nn


# -- the article --------------------------------------------------------------------------------------------------------------------
class Stack(nn.Module):
    """Three linear layers, a ReLU after each."""

    def __init__(self, *sizes):
        super().__init__()
        for i in range(len(sizes) - 1):
            setattr(self, f"fc{i}", nn.Linear(sizes[i], sizes[i + 1], bias=True))

    def forward(self, x):
        for layer in self.children():
            x = torch.relu(layer(x))
        return x


class Head(nn.Module):
    """A module beside two bare parameters."""

    def __init__(self):
        super().__init__()
        self.body = Stack(1, 3, 3, 1)
        self.w = nn.Parameter(torch.randn(1))
        self.b = nn.Parameter(torch.randn(1))

    def forward(self, x):
        self.body(x)
        return self.w * x + self.b


STACK = """Stack(
  (fc0): Linear(in_features=1, out_features=3, bias=True)
  (fc1): Linear(in_features=3, out_features=3, bias=True)
  (fc2): Linear(in_features=3, out_features=1, bias=True)
)"""


def test_parameters_are_no_children():
    stack, head, x = Stack(1, 3, 3, 1), Head(), torch.tensor([1.0])
    assert str(stack) == STACK and stack(x).grad_fn.name() == "ReluBackward0" and head(x).grad_fn.name() == "AddBackward0"
    kinds = [(isinstance(layer, nn.Linear), isinstance(layer, nn.Embedding)) for _, layer in stack.named_children()]
    assert kinds == [(True, False)] * 3
    assert [(name, str(layer)) for name, layer in head.named_children()] == [("body", STACK)]
    assert [name for name, _ in head.named_parameters(recurse=False)] == ["w", "b"]
    head.w = nn.Linear(1, 1, bias=True) if head._parameters.pop("w") is not None else None
    assert [name for name, _ in head.named_children()] == ["body", "w"]


def test_named_modules_of_the_article():
    stack = Stack(1, 3, 3, 1)
    assert [f"Module:{entry}" for entry in stack.named_modules()][0] == f"Module:('', {STACK})"
    assert [name for name, _ in nn.Sequential(stack, nn.ReLU()).named_modules()] == ["", "0", "0.fc0", "0.fc1", "0.fc2", "1"]
    assert list(stack.modules())[0] is stack and len(list(stack.modules())) == 4


def test_parameters_by_name_and_count():
    stack = Stack(1, 3, 3, 1)
    names = [name for name, p in stack.named_parameters()]
    assert names == list(stack.state_dict().keys()) == [f"fc{i}.{kind}" for i in range(3) for kind in ("weight", "bias")]
    assert repr(stack.state_dict().keys()) == f"odict_keys({names})"
    assert stack.get_parameter("fc0.weight") is stack.fc0.weight and list(stack.named_buffers()) == []
    assert [(p.shape, p.numel()) for p in stack.parameters()] == [((3, 1), 3), ((3,), 3), ((3, 3), 9), ((3,), 3), ((1, 3), 3), ((1,), 1)]
    assert str(next(stack.parameters()).shape) == "clnn.Size([3, 1])"
    assert str(type(stack.fc0.weight)) == "<class 'clnn.nn.parameter.Parameter'>"


def test_weights_may_be_replaced():
    fc = nn.Linear(5, 4)
    assert fc.weight.abs().max().item() <= 5 ** -0.5                              # uniform on (-1/sqrt(in), 1/sqrt(in))
    fc.weight = nn.Parameter(torch.randn(2, 5))
    fc.bias = None
    assert fc(torch.ones(5)).shape == (2,) and list(fc.state_dict()) == ["weight"]
    with pytest.raises(TypeError, match="cannot assign 'clnn.FloatTensor' as parameter 'weight'"):
        fc.weight = torch.ones(2, 5)

    class Own(nn.Module):                                                           # the constructor that the article quotes
        def __init__(self, inputs, outputs, bias=True, device=None, dtype=None):
            factory = {"device": device, "dtype": dtype}
            super().__init__()
            self.weight = nn.Parameter(torch.empty((outputs, inputs), **factory))
            if bias:
                self.bias = nn.Parameter(torch.empty(outputs, **factory))
            else:
                self.register_parameter("bias", None)
            self.reset_parameters()

        def reset_parameters(self):
            nn.init.kaiming_uniform_(self.weight, a=5 ** 0.5)
            if self.bias is not None:
                fan_in, _ = nn.init._calculate_fan_in_and_fan_out(self.weight)
                bound = 1 / fan_in ** 0.5 if fan_in > 0 else 0
                nn.init.uniform_(self.bias, -bound, bound)

    assert Own(16, 3).weight.abs().max().item() <= 0.25 and Own(16, 3).bias.abs().max().item() <= 0.25
    assert Own(2, 3, bias=False).bias is None


def test_apply_returns_the_module_and_goes_deep():
    def initialise(module):
        if isinstance(module, nn.Linear):
            torch.nn.init.normal_(module.weight, mean=0.0, std=0.02)

    net = nn.Sequential(Stack(1, 40, 40, 1), nn.Linear(1, 1))
    assert net.apply(initialise) is net and net[0].fc1.weight.std().item() == pytest.approx(0.02, rel=0.2)
    visited = []

    def walk(module):
        for child in module.children():
            walk(child)
        visited.append(type(module).__name__)

    walk(net)
    assert visited == ["Linear"] * 3 + ["Stack", "Linear", "Sequential"]


def test_hooks_of_the_article(capsys):
    stack, x = Stack(1, 3, 3, 1), torch.tensor([1.0])
    outputs = []
    handles = [stack.register_forward_hook(lambda module, args, output: print(module, args, output)),
               stack.register_forward_hook(lambda module, args, output: outputs.append(output))]
    plain = [stack(x) for _ in range(3)]
    shown = capsys.readouterr().out
    assert shown.count(STACK + " (tensor([1.]),) tensor([") == 3 and shown.count("grad_fn=<ReluBackward0>)\n") == 3
    assert all(a is b for a, b in zip(outputs, plain))
    for handle in handles:
        handle.remove()
    stack(x)
    assert len(outputs) == 3 and capsys.readouterr().out == ""
    doubling = stack.register_forward_hook(lambda module, args, output: 2 * output)
    doubled = stack(x)
    assert torch.equal(doubled, 2 * plain[0]) and doubled.grad_fn.name() == "MulBackward0"
    doubling.remove()
    stack.register_forward_pre_hook(lambda module, args: print(args))
    assert torch.equal(stack(x), plain[0]) and capsys.readouterr().out == "(tensor([1.]),)\n"


def test_article_prints_as_in_torch():
    in_torch("""
net = nn.Sequential(nn.Linear(1, 3), nn.ReLU(), nn.Linear(3, 1))
for p in net.named_parameters():
    print(f'name: {p[0]} \\n param:{p[1]} \\n type:{type(p[1])}')
for p in net.parameters():
    print(f'shape:{p.shape}, \\t num_ele: {p.numel()}, \\t type:{type(p)}')
print(net.get_parameter('0.weight'))
print(net.state_dict().keys())
""")


# -- the question-and-answer page ----------------------------------------------------------------------------------------------------
def test_a_constructor_without_super():
    class Forgetful(nn.Module):
        def __init__(self):
            self.weight = nn.Parameter(torch.randn(2, 2))

    class Zebra(nn.Module):
        def __init__(self):
            self.features = nn.Sequential(nn.Conv2d(3, 4, kernel_size=3, padding=1), nn.MaxPool2d(kernel_size=3, stride=2))

    with pytest.raises(AttributeError, match=r"^cannot assign parameters before Module.__init__\(\) call$"):
        Forgetful()
    with pytest.raises(AttributeError, match=r"^cannot assign module before Module.__init__\(\) call$"):
        Zebra()


def test_a_network_of_convolutions_as_the_page_writes_it():
    class Small(nn.Module):
        def __init__(self, classes=10):
            super().__init__()
            self.convs = nn.Sequential(nn.Conv2d(3, 4, kernel_size=5, stride=2, padding=2), nn.MaxPool2d(kernel_size=3, stride=2),
                                       nn.Conv2d(4, 6, kernel_size=3, padding=1))
            self.pool = nn.AdaptiveAvgPool2d((2, 2))
            self.fc = nn.Sequential(nn.Linear(6 * 2 * 2, 8), nn.Linear(8, classes))

        def forward(self, x):
            x = F.max_pool2d(F.relu(self.convs(x)), 2, 2)
            x = self.pool(x).view(-1, 6 * 2 * 2)
            return F.log_softmax(self.fc(x), dim=1)

    y = Small()(torch.randn(2, 3, 24, 24))
    assert y.shape == (2, 10) and torch.allclose(y.exp().sum(1), torch.ones(2), atol=1e-5)


def test_old_style_convolution_class():
    """A subclass of the convolutions' base that passes everything by position, as older code does, and pads circularly itself."""
    from clnn.nn.modules.conv import _ConvNd
    from clnn.nn.modules.utils import _pair

    class OldConv(_ConvNd):
        def __init__(self, inputs, outputs, kernel, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode="zeros"):
            kernel, stride, padding, dilation = _pair(kernel), _pair(stride), _pair(padding), _pair(dilation)
            super(OldConv, self).__init__(inputs, outputs, kernel, stride, padding, dilation, False, _pair(0), groups, bias, padding_mode)

        def conv2d_forward(self, x, weight):
            if self.padding_mode == "circular":
                around = ((self.padding[1] + 1) // 2, self.padding[1] // 2, (self.padding[0] + 1) // 2, self.padding[0] // 2)
                return F.conv2d(F.pad(x, around, mode="circular"), weight, self.bias, self.stride, _pair(0), self.dilation, self.groups)
            return F.conv2d(x, weight, self.bias, self.stride, self.padding, self.dilation, self.groups)

        def forward(self, x):
            return self.conv2d_forward(x, self.weight)

    x = torch.randn(1, 2, 6, 6)
    for mode, pad in (("zeros", 1), ("circular", 2)):
        old, new = OldConv(2, 4, 3, padding=pad, groups=2, padding_mode=mode), nn.Conv2d(2, 4, 3, padding=1, groups=2, padding_mode=mode)
        new.load_state_dict(old.state_dict())
        assert torch.allclose(old(x), new(x), atol=1e-5) and old.weight.shape == (4, 1, 3, 3)
    assert repr(OldConv(2, 4, 3)) == "OldConv(2, 4, kernel_size=(3, 3), stride=(1, 1))"


def test_gradients_are_zeroed_after_every_pass():
    m = nn.Linear(3, 5)
    m(torch.ones(3)).sum().backward()
    assert str(m.bias).startswith("Parameter containing:\ntensor([") and m.bias.grad.tolist() == [1.0] * 5
    m.zero_grad()
    assert all(p.grad is None for p in m.parameters())
