"""Derivatives of functions instead of tensors: Newton's method by ``hessian``, per-sample gradients by ``vmap``, an ensemble by stacked state.

    python examples/function_transforms.py
"""
import clnn as torch
from clnn import nn
from clnn.func import functional_call, grad, hessian, stack_module_state, vmap

torch.manual_seed(0)


# Newton's method for a minimum of Rosenbrock's function.
def rosenbrock(p):
    x, y = p.unbind()
    return (1 - x) ** 2 + 100 * (y - x ** 2) ** 2


def solve2(matrix, v):
    """The solution of a system of two equations, by Cramer's rule."""
    (a, b), (c, d) = matrix.unbind()[0].unbind(), matrix.unbind()[1].unbind()
    return torch.stack([d * v[0] - b * v[1], a * v[1] - c * v[0]]) / (a * d - b * c)


p = torch.tensor([-1.2, 1.0])
for _ in range(8):
    p = p - solve2(hessian(rosenbrock)(p), grad(rosenbrock)(p))
print("minimum of Rosenbrock's function:", p.tolist())
assert (p - 1).abs().max() < 1e-3

# The gradient of each sample's loss.
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
params = {name: value.detach() for name, value in model.named_parameters()}
images, targets = torch.randn(6, 4), torch.randn(6, 1)


def loss(params, x, y):
    return (functional_call(model, params, (x,)) - y).square().mean()


per_sample = vmap(grad(loss), in_dims=(None, 0, 0))(params, images, targets)
together = grad(loss)(params, images, targets)
print("norm of each sample's gradient:", [round(g.norm().item(), 3) for g in per_sample["0.weight"]])
assert torch.allclose(per_sample["0.weight"].mean(0), together["0.weight"], atol=1e-5)

# Several models as one.
models = [nn.Linear(4, 2) for _ in range(3)]
stacked, buffers = stack_module_state(models)
outputs = vmap(lambda p, b, x: functional_call(models[0], (p, b), (x,)), in_dims=(0, 0, None))(stacked, buffers, images)
print("outputs of the ensemble:", tuple(outputs.shape))
assert torch.allclose(outputs[1], models[1](images), atol=1e-6)
