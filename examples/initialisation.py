"""Initialisation: where and as what parameters are made, with which values, and how to make a model without any.

    python examples/initialisation.py
"""
import clnn as torch
from clnn import nn

# Every layer takes device= and dtype=; a `with` block sets the device of all that is made inside.
device = torch.get_default_device()
layer = nn.Linear(6, 4, device=device, dtype=torch.bfloat16)
with torch.device(device):
    model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))
assert layer.weight.dtype is torch.bfloat16 and model[0].weight.device == device


def initialise(module):
    """Variance-preserving weights for ReLU, no bias."""
    if isinstance(module, nn.Linear):
        nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        nn.init.zeros_(module.bias)


torch.manual_seed(0)
model.apply(initialise)
x = torch.randn(512, 6)
with torch.no_grad():
    for module in model:
        x = module(x)
        print(f"{module!s:50} mean square of the output {x.square().mean().item():.2f}")

# skip_init leaves the values out, for those who set them anyway.
square = nn.utils.skip_init(nn.Linear, 5, 5)
nn.init.orthogonal_(square.weight, gain=2.0)
assert torch.allclose(square.weight @ square.weight.T, 4 * torch.eye(5), atol=1e-4)

# On the meta device a model has shapes and no memory: count first, allocate where it is wanted, then initialise.
with torch.device("meta"):
    big = nn.TransformerEncoderLayer(d_model=256, nhead=4, dim_feedforward=1024)
print("parameters:", sum(p.numel() for p in big.parameters()), "on", big.linear1.weight.device)
big.to_empty(device=device)
for module in big.modules():
    if hasattr(module, "reset_parameters"):
        module.reset_parameters()
    elif hasattr(module, "_reset_parameters"):
        module._reset_parameters()
assert big(torch.randn(3, 2, 256)).isfinite().all()
