"""Arguments that PyTorch refuses or warns about: random numbers, targets of ``out=``, numbers in place of tensors, deprecated forms."""
import warnings

import pytest
from scenarios import torch

import clnn

REFUSED = {
    "bernoulli above 1": lambda t: t.bernoulli(t.tensor([0.5, 1.5])).sum().item(),
    "bernoulli below 0": lambda t: t.bernoulli(t.tensor([-0.1])).item(),
    "bernoulli of NaN": lambda t: t.zeros(2).bernoulli_(t.tensor([float("nan"), 0.5])).tolist(),
    "bernoulli number": lambda t: t.zeros(3).bernoulli_(1.5),
    "normal": lambda t: t.normal(t.zeros(2), -1.0),
    "normal tensor": lambda t: t.normal(t.zeros(2), t.tensor([1.0, -1.0])).tolist(),
    "poisson": lambda t: t.poisson(t.tensor([-1.0])),
    "multinomial": lambda t: t.multinomial(t.tensor([-1.0, 2.0]), 1),
    "multinomial of nothing": lambda t: t.multinomial(t.tensor([0.0, 0.0]), 1),
    "out of sort": lambda t: t.sort(t.ones(2), out=(t.ones(2), t.ones(2))),
    "out of topk": lambda t: t.topk(t.ones(2), 1, out=(t.ones(1), t.ones(1))),
    "out that repeats itself": lambda t: t.add(t.ones(3), 1, out=t.ones(1).expand(3)),
    "in place that repeats itself": lambda t: t.ones(1).expand(3).add_(1),
    "dot": lambda t: t.dot(t.ones(2), 1),
    "outer": lambda t: t.outer(t.ones(2), [1]),
    "equal": lambda t: t.equal(t.ones(1), 1),
    "allclose": lambda t: t.allclose(t.ones(1), 1.0),
    "unsqueeze": lambda t: t.unsqueeze(1.0, 0),
    "masked_fill": lambda t: t.ones(2).masked_fill([True, False], 0),
    "cross_entropy": lambda t: t.nn.functional.cross_entropy(t.ones(2, 2), 1),
}
WARNED = {
    "grid_sample": lambda t: t.nn.functional.grid_sample(t.ones(1, 1, 2, 2), t.zeros(1, 2, 2, 2)),
    "affine_grid": lambda t: t.nn.functional.affine_grid(t.ones(1, 2, 3), (1, 1, 2, 2)),
    "grid_sample told": lambda t: t.nn.functional.grid_sample(t.ones(1, 1, 2, 2), t.zeros(1, 2, 2, 2), align_corners=False),
    "cross": lambda t: t.cross(t.ones(2, 3), t.ones(2, 3)), "cross told": lambda t: t.cross(t.ones(2, 3), t.ones(2, 3), dim=1),
    "float": lambda t: float(t.ones(1, requires_grad=True)), "float without": lambda t: float(t.ones(1)),
    "range": lambda t: t.range(0, 2), "flags": lambda t: t.nn.functional.mse_loss(t.ones(2), t.ones(2), size_average=False),
    "out of another size": lambda t: t.add(t.ones(2), 1, out=t.ones(3)), "empty out": lambda t: t.add(t.ones(2), 1, out=t.ones(0)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    kinds = []
    for lib in (clnn, torch):
        with pytest.raises(Exception) as caught:
            REFUSED[name](lib)
        kinds.append(caught.value)
    mine, theirs = kinds
    assert type(mine).__name__ == type(theirs).__name__, (mine, theirs)


@pytest.mark.parametrize("name", WARNED)
def test_warned(name):
    texts = []
    for lib in (clnn, torch):
        with warnings.catch_warnings(record=True) as got:
            warnings.simplefilter("always")
            WARNED[name](lib)
        texts.append([(w.category.__name__, str(w.message)[:50]) for w in got])
    assert texts[0] == texts[1]


def test_valid_probabilities_pass():
    clnn.manual_seed(0)
    p = clnn.tensor([0.0, 1.0, 0.5, 1.0])
    assert clnn.bernoulli(p).tolist()[:2] == [0.0, 1.0]
    assert clnn.normal(clnn.zeros(2), clnn.tensor([0.0, 0.0])).tolist() == [0.0, 0.0]
