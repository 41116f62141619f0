"""Training steps and generation where each step has another size: lengths of sentences, nodes and edges of graphs, rows of batches."""
from __future__ import annotations

import random

import clnn

from .setup import torch
from .timing import Case, Contender

STEPS = 40              # of one call
BEFORE = 240            # steps of the same kind that were made before


def perceptron(lib, pick):
    nn = lib.nn
    net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))

    def loss():
        n = pick.randint(1, 300)
        return nn.functional.mse_loss(net(lib.randn(n, 32)), lib.randn(n, 1))
    return [net], loss


def graph_convolution(lib, pick):
    first, last = lib.nn.Linear(16, 32), lib.nn.Linear(32, 4)

    def loss():
        n, e = pick.randint(20, 200), pick.randint(50, 800)
        s, d, x = lib.randint(0, n, (e,)), lib.randint(0, n, (e,)), lib.randn(n, 16)
        h = lib.relu(first(lib.zeros(n, 16).index_add(0, d, x[s]) + x))
        h = last(lib.zeros(n, 32).index_add(0, d, h[s]) + h)
        return lib.nn.functional.cross_entropy(h, lib.randint(0, 4, (n,)))
    return [first, last], loss


def sentences(lib, pick):
    embed, net, out = lib.nn.Embedding(1000, 64), lib.nn.GRU(64, 128, batch_first=True), lib.nn.Linear(128, 1000)

    def loss():
        x = lib.randint(0, 1000, (16, pick.randint(5, 60) + 1))
        return lib.nn.functional.cross_entropy(out(net(embed(x[:, :-1]))[0]).reshape(-1, 1000), x[:, 1:].reshape(-1))
    return [embed, net, out], loss


def packed(lib, pick):
    embed, net, out = lib.nn.Embedding(1000, 32), lib.nn.LSTM(32, 64, batch_first=True), lib.nn.Linear(64, 3)

    def loss():
        lengths = sorted([pick.randint(2, 30) for _ in range(8)], reverse=True)
        x = lib.nn.utils.rnn.pack_padded_sequence(embed(lib.randint(0, 1000, (8, lengths[0]))), lib.tensor(lengths), batch_first=True)
        return lib.nn.functional.cross_entropy(out(net(x)[1][0][-1]), lib.randint(0, 3, (8,)))
    return [embed, net, out], loss


def encoder(rows):
    def make(lib, pick):
        nn = lib.nn
        embed, out = nn.Embedding(1000, 64), nn.Linear(64, 5)
        net = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 2, enable_nested_tensor=False)

        def loss():
            n = rows if rows else pick.randint(4, 24)
            x = lib.randint(0, 1000, (n, pick.randint(5, 80)))
            return nn.functional.cross_entropy(out(net(embed(x), src_key_padding_mask=x == 0).mean(1)), lib.randint(0, 5, (n,)))
        return [embed, net, out], loss
    return make


def images(lib, pick):
    nn = lib.nn
    net = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
                        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))

    def loss():
        return nn.functional.cross_entropy(net(lib.randn(8, 3, pick.randint(20, 64), pick.randint(20, 64))), lib.randint(0, 10, (8,)))
    return [net], loss


PROGRAMS = {"perceptron, 1-300 rows": perceptron, "graph convolution, 20-200 nodes": graph_convolution, "GRU, 16 sentences of 5-60 words": sentences,
            "LSTM, 8 packed sentences of 2-30 words": packed, "encoder, 16 sentences of 5-80 words": encoder(16),
            "encoder, 4-24 sentences of 5-80 words": encoder(0), "CNN, images of 20-64 pixels": images}


def _steps(lib, make):
    lib.manual_seed(0)
    modules, loss = make(lib, random.Random(1))
    optimizer = lib.optim.Adam([p for m in modules for p in m.parameters()], 1e-3)

    def steps(count=STEPS):
        for _ in range(count):
            optimizer.zero_grad()
            got = loss()
            got.backward()
            optimizer.step()
            got.item()
    steps(BEFORE)
    return steps


def sizes():
    for name, make in PROGRAMS.items():
        contenders = [Contender("clnn", _steps(clnn, make), clnn.synchronize)]
        if torch is not None:
            contenders.append(Contender("torch", _steps(torch, make)))
        yield Case(name, "ms", STEPS, contenders)
