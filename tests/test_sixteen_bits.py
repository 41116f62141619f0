"""Floats of 16 bits against PyTorch's on a processor: what is rounded, and where."""
import numpy as np
import pytest

import clnn

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not clnn.get_default_device().physical.is_cpu, reason="PyTorch rounds elsewhere on GPUs")
A, B = (np.random.default_rng(i).standard_normal(256).astype("float32") for i in (0, 1))      # PyTorch rounds the last few of a length twice

# of the package, two tensors and the second one, none of it near 0
ROUNDED = [
    lambda m, x, y, z: (x + 0.1, x - 0.1, 0.3 - x, 0.1 + x, x * 0.3, x / 0.3, 0.3 / z, x % 0.3, x.fmod(0.3), x // 0.3),
    lambda m, x, y, z: (x > 0.3, x <= 0.3, x == 0.1, (x + 0.1) * 0.3 - 0.7),
    lambda m, x, y, z: (x + m.tensor(0.1), x * m.tensor(0.3), m.maximum(x, m.tensor(0.3)), x + m.arange(1000, 1256), x * m.arange(1000, 1256), x * m.tensor(1001)),
    lambda m, x, y, z: (x.clone().add_(0.1), x.add(y, alpha=0.3), x ** 3, x.clone().sub_(0.7), x.cumsum(0)[:9] + 0.1),
]


def of(m, dtype, *arrays):
    return [m.tensor(a).to(getattr(m, dtype)) for a in arrays]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("which", range(len(ROUNDED)))
def test_numbers_are_elements_where_pytorch_has_them_as_such(which, dtype):
    want, got = ([t.tolist() for t in ROUNDED[which](m, *of(m, dtype, A, B, np.abs(B) + 0.1))] for m in (torch, clnn))
    assert got == want


@pytest.mark.parametrize("options", [{}, dict(reduction="sum"), dict(label_smoothing=0.1), dict(weight=True), dict(reduction="none")])
def test_losses_of_classes(options):
    results = []
    for m in (torch, clnn):
        x, w = of(m, "bfloat16", A.reshape(32, 8) * 3, np.abs(B[:8]))
        given = {**options, "weight": w} if "weight" in options else options
        targets = m.tensor([-100 if i == 5 else i % 8 for i in range(32)])
        loss = m.nn.functional.cross_entropy(x.requires_grad_(), targets, **given)
        loss.sum().backward()
        results.append((loss.tolist(), x.log_softmax(-1).tolist(), x.grad.tolist() if not given else None))
    assert results[0] == results[1]


@pytest.mark.parametrize("name, options", [
    ("SGD", dict(momentum=0.9, nesterov=True, weight_decay=0.1)), ("Adam", dict(weight_decay=0.1)), ("AdamW", {}), ("NAdam", {}), ("RAdam", dict(weight_decay=0.1)),
    ("Adamax", dict(weight_decay=0.1)), ("Adadelta", {}), ("Adagrad", {}), ("RMSprop", dict(centered=True, momentum=0.5)), ("Rprop", {}), ("ASGD", {})])
def test_weights_of_16_bits_round_where_pytorch_rounds(name, options):
    first, slope = (np.random.default_rng(i).standard_normal(64).astype("float32") for i in (0, 1))      # PyTorch rounds the last few of a length twice
    results = []
    for m in (torch, clnn):
        p, g = m.nn.Parameter(m.tensor(first).bfloat16()), m.tensor(slope).bfloat16()
        optimizer = getattr(m.optim, name)([p], lr=0.01, **options)
        schedule = m.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        for step in range(6):
            p.grad = g * (1 - 0.3 * step)
            optimizer.step()
            schedule.step()
        results.append(p.detach().float().tolist())
    assert results[0] == results[1]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_gated_linear_units_round_where_pytorch_does(dtype):
    def of_glu(m):
        x, = of(m, dtype, A.reshape(8, 32))
        y = m.nn.functional.glu(x.requires_grad_())
        return y.tolist(), m.autograd.grad(y, x, y.detach() * 0.7)[0].tolist()
    assert of_glu(clnn) == of_glu(torch)
