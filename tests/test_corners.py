"""Corners of PyTorch that programs reach sooner or later: inference mode, names in printed graphs, integers where floats are usual, kinds of errors."""
import pytest
from scenarios import outcome, torch

import clnn


def _failing(*calls):
    """The kind of each call's error, None where there is none."""
    kinds = []
    for call in calls:
        try:
            call()
            kinds.append(None)
        except Exception as error:
            kinds.append(next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"))
    return kinds


def _inference(t):
    with t.inference_mode():
        made, other = t.ones(2), t.zeros(2)
        other.add_(1)
        part = made[:1]
    leaf = t.ones(2, requires_grad=True)
    with t.inference_mode():
        view = t.zeros(2)
        outside = leaf * 2
    states = [x.is_inference() for x in (made, other, part, leaf, outside, made.clone(), made[0], made + 1, leaf.detach())]
    return [states, other, (made * leaf.detach()).sum(), (leaf + made).sum(), made.clone().add_(1),
            _failing(lambda: made.add_(1), lambda: made[0].fill_(2), lambda: made.copy_(other), lambda: t.add(other, 1, out=view), lambda: made._version,
                     lambda: made.requires_grad_(), lambda: made * leaf, lambda: leaf + made, lambda: t.nn.functional.linear(made, leaf),
                     lambda: made.__setitem__(0, 1.0), lambda: (made.clone() * leaf).sum().backward())]


CALLS = {
    "inference mode": _inference,
    "names of views": lambda t: [v.grad_fn.name() for x in [t.ones(2, 3, 4, requires_grad=True)] for v in (
        x[0], x[0, 1], x[:, 0], x[0, :], x[1:], x[0, 1:], x[1:, 0], x[..., 0], x[..., :2], x[None], x[0, None], x[:, 1:, None], x[:, None, :, 0], x[::2])],
    "gradients of any iterable": lambda t: [t.autograd.grad((x * x).sum(), {"x": x}.values()) for x in [t.ones(2, requires_grad=True)]]
    + [t.autograd.grad((x * x).sum(), (p for p in [x])) for x in [t.ones(2, requires_grad=True)]],
}


@pytest.mark.parametrize("name", CALLS)
def test_call(name):
    mine, theirs = outcome(CALLS[name], clnn), outcome(CALLS[name], torch)
    assert mine == theirs
