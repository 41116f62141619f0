"""Hooks: look at activations and gradients, change them, and notice trouble, without touching the model.

    python examples/hooks.py
"""
import clnn as torch
from clnn import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))

# Forward hooks see inputs and outputs of every layer.
seen = {}


def remember(name):
    return lambda module, args, output: seen.update({name: (tuple(output.shape), (output == 0).float().mean().item())})


handles = [layer.register_forward_hook(remember(name)) for name, layer in model.named_children()]
model(torch.randn(64, 4))
for name, (shape, zeros) in seen.items():
    print(f"layer {name}: output {shape}, {100 * zeros:.0f} % zeros")
for handle in handles:
    handle.remove()

# A value that a hook returns goes on in place of the old one: noise on the input, a residual connection around the whole.
with model[0].register_forward_pre_hook(lambda module, args: args[0] + 0.1 * torch.randn_like(args[0])):
    noisy = model(torch.zeros(1, 4))
assert not torch.equal(noisy, model(torch.zeros(1, 4)))

# Backward hooks see, and may replace, the gradients on their way through a layer.
norms = []
model[2].register_full_backward_hook(lambda module, grad_input, grad_output: norms.append(grad_output[0].norm().item()))
model[0].register_full_backward_pre_hook(lambda module, grad_output: (grad_output[0].clamp(-0.01, 0.01),))
x = torch.randn(64, 4, requires_grad=True)
model(x).square().sum().backward()
print(f"gradient that reached the last layer: {norms[0]:.1f}")
assert model[0].bias.grad.abs().max().item() <= 0.64 + 1e-6              # 64 rows of at most 0.01

# Each parameter can step as soon as its gradient is there, so that no gradient outlives the backward pass.
optimizers = {p: torch.optim.SGD([p], lr=0.01) for p in model.parameters()}


def step_now(p):
    optimizers[p].step()
    optimizers[p].zero_grad()


for p in model.parameters():
    p.register_post_accumulate_grad_hook(step_now)
before = [p.detach().clone() for p in model.parameters()]
model(x).square().sum().backward()
assert all(p.grad is None and not torch.equal(p, old) for p, old in zip(model.parameters(), before))

# A hook on all modules finds the first layer that produces a value that is not finite.
broken = []
check = nn.modules.module.register_module_forward_hook(
    lambda module, args, output: broken.append(type(module).__name__) if not output.isfinite().all() else None)
nn.Sequential(nn.Linear(2, 2), nn.Threshold(-1e9, float("nan")), nn.Tanh())(torch.full((1, 2), -1e30))
check.remove()
print("not finite after:", broken[0])
