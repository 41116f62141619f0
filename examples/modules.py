"""Modules from the inside: what gets registered, containers, walking through a model, changing it.

    python examples/modules.py
"""
import copy

import clnn as torch
from clnn import nn


class Encoder(nn.Module):
    """Layers from a list, an activation from a dictionary, a trained scale, and a buffer that counts calls."""

    def __init__(self, sizes, act="relu"):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.acts = nn.ModuleDict({"relu": nn.ReLU(), "tanh": nn.Tanh()})
        self.scale = nn.Parameter(torch.ones(1))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.act = act

    def forward(self, x):
        self.calls += 1
        for layer in self.layers:
            x = self.acts[self.act](layer(x))
        return x * self.scale


model = nn.Sequential(Encoder([4, 16, 8]), nn.Dropout(0.1), nn.Linear(8, 2))
print(model)
print("parameters:", {name: tuple(p.shape) for name, p in model.named_parameters()})
print("buffers:", [name for name, _ in model.named_buffers()])
assert model(torch.randn(3, 4)).shape == (3, 2) and model[0].calls.item() == 1

# A copy is independent. Freeze its encoder and give it a new head, as for fine-tuning.
tuned = copy.deepcopy(model)
tuned.get_submodule("0.layers").requires_grad_(False)
tuned.set_submodule("2", nn.Linear(8, 5))
tuned.insert(2, nn.LayerNorm(8))
trained = [name for name, p in tuned.named_parameters() if p.requires_grad]
print("trained:", trained)
assert trained == ["0.scale", "2.weight", "2.bias", "3.weight", "3.bias"]

# eval() turns dropout off; half() halves the memory.
tuned.eval().half()
x = torch.randn(3, 4, dtype=torch.float16)
assert torch.equal(tuned(x), tuned(x)) and tuned[0].calls.dtype is torch.int64

# A layer that learns its input size from the first batch.
lazy = nn.Sequential(nn.LazyConv2d(8, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(10))
lazy(torch.randn(2, 3, 8, 8))
print("after the first call:", lazy)
