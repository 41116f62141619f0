"""Single calls on a few numbers, where the host's part is all that counts: layers of a policy network, cells, views, writes into parts, reads of one value."""
from __future__ import annotations

import clnn

from .setup import torch
from .timing import Case, Contender

SETUP = """
v, h, x, p, a = T.randn(128), T.randn(1, 128), T.randn(1, 4), T.softmax(T.randn(1, 2), 1), T.randn(100, 100)
first, last, cell, gate = T.nn.Linear(4, 128), T.nn.Linear(128, 2), T.nn.RNNCell(57, 128), T.nn.Linear(185, 128)
letter, rows, tracked, target = T.randn(1, 57), T.tensor([1, 5, 7]), T.randn(1, 5, requires_grad=True), T.tensor([1])
m, n, mask, edge = T.randn(16, 16), T.randn(16, 16), T.randn(16, 16) > 0, T.randn(16)
F = T.nn.functional
"""
CALLS = {"v + v": "v + v", "v.sum()": "v.sum()", "v.mean()": "v.mean()", "softmax of 1 x 2": "T.softmax(p, 1)", "argmax of 1 x 2": "p.argmax(1)",
         "cumsum of 128": "v.cumsum(0)", "product of 100 x 100": "a @ a", "rows by index": "v[rows]", "cat": "T.cat((letter, h), 1)",
         "linear 4 -> 128, recorded": "first(x)", "two layers and softmax, recorded": "T.softmax(last(T.relu(first(x))), 1)",
         "RNN cell 57 -> 128, recorded": "cell(letter, h)", "tanh(linear(cat)), recorded": "T.tanh(gate(T.cat((letter, h), 1)))",
         "cross-entropy, recorded": "F.cross_entropy(tracked, target)", "linear, sum and backward": "first(x).sum().backward()",
         "x.t()": "m.t()", "x.reshape(-1)": "m.reshape(-1)", "x[3]": "m[3]", "x[:, 1:3]": "m[:, 1:3]", "x[:, 1:3], recorded": "cell.weight_hh[:, 1:3]",
         "x[2] = v": "m[2] = edge", "x[1:5] = 2": "m[1:5] = 2.0", "x[mask] = 0": "m[mask] = 0.0", "x[mask]": "m[mask]", "x.mul_(y)": "m.mul_(n)",
         "x.clamp_(0, 1)": "m.clamp_(0, 1)", "x[0] * x[1]": "m[0] * m[1]", "truth of x > 0": "bool(v[0] > 0)",
         "sum and item": "v.sum().item()", "sample of a distribution": "T.distributions.Categorical(p).sample()"}
TIMES = 50              # calls in a run: nothing is waited for between them


def _repeated(library, text):
    place = {"T": library}
    library.manual_seed(0)
    exec(SETUP, place)
    exec(f"def run():\n    for _ in range({TIMES}):\n        {text}\n", place)
    return place["run"]


def calls():
    """Microseconds of one call."""
    for name, text in CALLS.items():
        contenders = [Contender("clnn", _repeated(clnn, text), clnn.synchronize)]
        if torch is not None:
            contenders.append(Contender("torch", _repeated(torch, text)))
        yield Case(name, "us", TIMES, contenders)
