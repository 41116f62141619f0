"""Small programs whose time is mostly the host's: each a step of a well-known tutorial or of code that people write, with the same text for both libraries."""
from __future__ import annotations

import importlib
import math
import random

import numpy as np

import clnn

from .setup import torch
from .timing import Case, Contender


def _adam(lib, *modules):
    return lib.optim.Adam([p for m in modules for p in m.parameters()], 1e-3)


def character_rnn(lib):
    i2h, h2o = lib.nn.Linear(185, 128), lib.nn.Linear(128, 18)
    letters, target = np.random.default_rng(0).integers(0, 57, 7), lib.tensor([3])

    def step():
        line, h = lib.zeros(len(letters), 1, 57), lib.zeros(1, 128)
        for i, letter in enumerate(letters):
            line[i][0][int(letter)] = 1
        for i in range(line.size(0)):
            h = lib.tanh(i2h(lib.cat((line[i], h), 1)))
        loss = lib.nn.functional.nll_loss(lib.log_softmax(h2o(h), 1), target)
        loss.backward()
        for p in (*i2h.parameters(), *h2o.parameters()):
            p.data.add_(p.grad.data, alpha=-0.005)
            p.grad = None
        return loss.item()
    return step


def dqn(lib):
    def net():
        return lib.nn.Sequential(lib.nn.Linear(4, 128), lib.nn.ReLU(), lib.nn.Linear(128, 128), lib.nn.ReLU(), lib.nn.Linear(128, 2))
    policy, target, draw, pick = net(), net(), np.random.default_rng(0), random.Random(0)
    optimizer = lib.optim.AdamW(policy.parameters(), lr=1e-4, amsgrad=True)

    def state():
        return lib.tensor(draw.standard_normal((1, 4)), dtype=lib.float32)
    memory = [(state(), lib.tensor([[int(draw.integers(2))]]), None if draw.random() < 0.1 else state(), lib.tensor([1.0])) for _ in range(1000)]

    def step():
        states, actions, following, rewards = zip(*pick.sample(memory, 128))
        lasts = lib.tensor([s is not None for s in following])
        values = lib.zeros(128)
        with lib.no_grad():
            values[lasts] = target(lib.cat([s for s in following if s is not None])).max(1).values
        chosen = policy(lib.cat(states)).gather(1, lib.cat(actions))
        loss = lib.nn.functional.smooth_l1_loss(chosen, (values * 0.99 + lib.cat(rewards)).unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        lib.nn.utils.clip_grad_value_(policy.parameters(), 100)
        optimizer.step()
        mine, theirs = policy.state_dict(), target.state_dict()
        for name in mine:
            theirs[name] = mine[name] * 0.005 + theirs[name] * 0.995
        target.load_state_dict(theirs)
    return step


def lstm_written_out(lib):
    weights = [(lib.randn(64, 256) * 0.1).requires_grad_(), (lib.randn(64, 256) * 0.1).requires_grad_(), lib.zeros(256, requires_grad=True)]
    w, u, b = weights
    x = lib.randn(20, 8, 64)

    def step():
        h, c = lib.zeros(8, 64), lib.zeros(8, 64)
        for t in range(20):
            i, f, o, g = (x[t] @ w + h @ u + b).chunk(4, 1)
            c = lib.sigmoid(f) * c + lib.sigmoid(i) * lib.tanh(g)
            h = lib.sigmoid(o) * lib.tanh(c)
        (h ** 2).mean().backward()
        with lib.no_grad():
            for p in weights:
                p -= 0.1 * p.grad
                p.grad = None
    return step


def k_means(lib):
    points = lib.randn(500, 2)

    def step():
        centres = points[:5]
        for _ in range(5):
            nearest = lib.cdist(points, centres).argmin(1)
            centres = lib.stack([points[nearest == k].mean(0) for k in range(5)])
        return centres.sum().item()
    return step


def cbow(lib):
    words, first, last = lib.nn.Embedding(49, 10), lib.nn.Linear(40, 128), lib.nn.Linear(128, 49)
    optimizer = lib.optim.SGD([p for m in (words, first, last) for p in m.parameters()], lr=1e-3)
    texts = [(lib.tensor([i, i + 1, i + 3, i + 4]), lib.tensor([i + 2])) for i in range(20)]

    def step():
        total = 0
        for context, word in texts:
            optimizer.zero_grad()
            scores = lib.log_softmax(last(lib.relu(first(words(context).view(1, -1)))), 1)
            loss = lib.nn.functional.nll_loss(scores, word)
            loss.backward()
            optimizer.step()
            total += loss.item()
        return total
    return step


def maml(lib):
    net = lib.nn.Sequential(lib.nn.Linear(1, 40), lib.nn.ReLU(), lib.nn.Linear(40, 40), lib.nn.ReLU(), lib.nn.Linear(40, 1))
    optimizer, x = _adam(lib, net), lib.randn(10, 1)
    y, call = lib.sin(x), importlib.import_module(lib.__name__ + ".func").functional_call

    def step():
        optimizer.zero_grad()
        total = 0
        for _ in range(4):
            params = dict(net.named_parameters())
            grads = lib.autograd.grad(lib.nn.functional.mse_loss(call(net, params, (x,)), y), list(params.values()), create_graph=True)
            fast = {name: p - 0.01 * g for (name, p), g in zip(params.items(), grads)}
            total = total + lib.nn.functional.mse_loss(call(net, fast, (x,)), y)
        total.backward()
        optimizer.step()
        return total.item()
    return step


def polynomial(lib):
    x = lib.linspace(-math.pi, math.pi, 2000)
    y, factors = lib.sin(x), [lib.randn((), requires_grad=True) for _ in range(4)]

    def step():
        a, b, c, d = factors
        loss = (a + b * x + c * x ** 2 + d * x ** 3 - y).pow(2).sum()
        loss.backward()
        with lib.no_grad():
            for p in factors:
                p -= 1e-6 * p.grad
                p.grad = None
        return loss.item()
    return step


def suppression(lib):
    draw = np.random.default_rng(0)
    corners = draw.random((60, 4)).astype(np.float32)
    corners[:, 2:] += corners[:, :2]
    boxes, scores = lib.tensor(corners), lib.tensor(draw.random(60).astype(np.float32))

    def step():
        order, kept = scores.argsort(descending=True), []
        areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
        while order.numel() > 1:
            i, rest = order[0], order[1:]
            kept.append(i.item())
            width = lib.minimum(boxes[rest, 2], boxes[i, 2]) - lib.maximum(boxes[rest, 0], boxes[i, 0])
            height = lib.minimum(boxes[rest, 3], boxes[i, 3]) - lib.maximum(boxes[rest, 1], boxes[i, 1])
            both = width.clamp(min=0) * height.clamp(min=0)
            order = rest[both / (areas[i] + areas[rest] - both) <= 0.5]
        return kept
    return step


def actor_critic(lib):
    body, actor, critic = lib.nn.Linear(4, 128), lib.nn.Linear(128, 2), lib.nn.Linear(128, 1)
    optimizer, draw = _adam(lib, body, actor, critic), np.random.default_rng(0)
    categorical = importlib.import_module(lib.__name__ + ".distributions").Categorical

    def step():
        saved, reward, rewards = [], 0, []
        for _ in range(10):
            x = lib.relu(body(lib.from_numpy(draw.standard_normal(4).astype(np.float32))))
            choice = categorical(lib.softmax(actor(x), -1))
            action = choice.sample()
            saved.append((choice.log_prob(action), critic(x)))
            action.item()
        for _ in saved:
            reward = 1.0 + 0.99 * reward
            rewards.insert(0, reward)
        rewards = lib.tensor(rewards)
        rewards = (rewards - rewards.mean()) / (rewards.std() + 1e-6)
        actors = [-p * (r - v.item()) for (p, v), r in zip(saved, rewards)]
        critics = [lib.nn.functional.smooth_l1_loss(v, r.reshape(1)) for (_, v), r in zip(saved, rewards)]
        optimizer.zero_grad()
        (lib.stack(actors).sum() + lib.stack(critics).sum()).backward()
        optimizer.step()
    return step


def gibbs(lib):
    def step():
        spins, n = lib.ones(8, 8), 8
        for k in range(20):
            i, j = k % n, 3 * k % n
            around = spins[(i + 1) % n, j] + spins[i - 1, j] + spins[i, (j + 1) % n] + spins[i, j - 1]
            spins[i, j] = 1 if lib.rand(1).item() < 1 / (1 + math.exp(-2 * float(around))) else -1
        return spins.sum().item()
    return step


def metrics(lib):
    scores, labels = lib.rand(200, 10), lib.randint(0, 10, (200,))

    def step():
        guess, confusion = scores.argmax(1), lib.zeros(10, 10, dtype=lib.int64)
        for t, p in zip(labels[:30].tolist(), guess[:30].tolist()):
            confusion[t, p] += 1
        precision = confusion.diag() / (confusion.sum(0) + 1e-9)
        top = (scores.topk(3, 1).indices == labels[:, None]).any(1).float().mean().item()
        return (guess == labels).float().mean().item() + top + precision.mean().item()
    return step


LOOPS = {"character RNN, a name of 7 letters": character_rnn, "DQN, one step of 128": dqn, "LSTM written out, 20 steps of 8 x 64": lstm_written_out,
         "k-means, 5 rounds of 500 points": k_means, "CBOW, 20 steps with item()": cbow, "MAML, 4 tasks": maml, "polynomial fitted by hand": polynomial,
         "suppression of 60 boxes in Python": suppression, "actor-critic, 10 moves": actor_critic, "Gibbs sampling, 20 elements": gibbs,
         "metrics of a classifier": metrics}


def _run(lib, make):
    lib.manual_seed(0)
    return make(lib)


def loops():
    """Milliseconds of one step."""
    for name, make in LOOPS.items():
        contenders = [Contender("clnn", _run(clnn, make), clnn.synchronize)]
        if torch is not None:
            contenders.append(Contender("torch", _run(torch, make)))
        yield Case(name, "ms", 1, contenders)
