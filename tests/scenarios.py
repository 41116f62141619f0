"""Small programs that run under clnn and under PyTorch, for tests that want the same result, or the same error, from both."""
import pytest

import clnn

torch = pytest.importorskip("torch")


def plain(value, lib):
    """A result without tensors, to compare between the libraries."""
    if isinstance(value, lib.Tensor):
        return [round(v, 4) for v in value.detach().reshape(-1).tolist()], list(value.shape), value.requires_grad
    if isinstance(value, dict):
        return {k: plain(v, lib) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v, lib) for v in value]
    if isinstance(value, (int, float, bool, type(None))):
        return value
    return str(value).replace("torch", "clnn")


def outcome(fn, lib):
    try:
        return plain(fn(lib), lib)
    except Exception as error:
        return type(error).__name__, str(error).replace("torch", "clnn").splitlines()[0][:60]


def net(lib):
    """A small model with every kind of member, and fixed values."""
    nn = lib.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 3)
            self.scale = nn.Parameter(lib.tensor([2.0]))
            self.register_buffer("seen", lib.tensor([0.0]))
            self.register_buffer("cache", lib.tensor([7.0]), persistent=False)
            self.register_parameter("none", None)
            self.block = nn.Sequential(nn.ReLU(), nn.Linear(3, 1, bias=False))

        def forward(self, x, gain=1.0):
            return self.block(self.fc(x)) * self.scale * gain

    model = Net()
    with lib.no_grad():
        for i, p in enumerate(model.parameters()):
            p.copy_(lib.arange(p.numel(), dtype=lib.float32).reshape(p.shape) * 0.1 + i * 0.05)
    return model


def assert_same(fn):
    """`fn(lib)` gives the same under both."""
    assert outcome(fn, clnn) == outcome(fn, torch)
