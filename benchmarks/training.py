"""Whole training steps: forward, backward, optimiser. The same text builds the model for clnn and for PyTorch."""
from __future__ import annotations

import clnn

from .setup import RNG, array, contenders, ours, torch
from .timing import Case


def digits(lib):
    nn = lib.nn
    return nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64),
                         nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 10))


def mlp(lib):
    nn = lib.nn
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def lenet(lib):
    nn = lib.nn
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))


def resnet18(lib):
    """ResNet-18 of He et al. 2015 in its form for 32 x 32 images."""
    nn = lib.nn

    class Block(nn.Module):
        def __init__(self, cin, cout, stride):
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout)
            self.conv2, self.bn2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False), nn.BatchNorm2d(cout)
            self.short = nn.Sequential()
            if stride != 1 or cin != cout:
                self.short = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

        def forward(self, x):
            y = self.bn2(self.conv2(lib.relu(self.bn1(self.conv1(x)))))
            return lib.relu(y + self.short(x))
    layers, cin = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()], 64
    for cout, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        layers.append(Block(cin, cout, stride))
        cin = cout
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def gpt(lib, vocab=256, width=256, heads=8, depth=4, length=128):
    """A small decoder as in GPT-2: pre-norm blocks of causal attention and a GELU network."""
    nn = lib.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.net = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            b, n, _ = x.shape
            q, k, v = self.qkv(self.norm1(x)).reshape(b, n, 3, heads, width // heads).permute(2, 0, 3, 1, 4).unbind(0)
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, n, width))
            return x + self.net(self.norm2(x))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.place = nn.Embedding(vocab, width), nn.Embedding(length, width)
            self.blocks = nn.Sequential(*[Block() for _ in range(depth)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocab)

        def forward(self, ids):
            x = self.token(ids) + self.place(lib.arange(ids.shape[1]))
            return self.head(self.norm(self.blocks(x))).reshape(-1, vocab)
    return Model()


def lstm(lib):
    nn = lib.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.head = nn.LSTM(64, 128, batch_first=True), nn.Linear(128, 10)

        def forward(self, x):
            return self.head(self.rnn(x)[0][:, -1])
    return Model()


def _images(n, c, size):
    return array(n, c, size, size), RNG.integers(0, 10, n)


MODELS = [
    ("digits CNN, batch 64", digits, lambda: _images(64, 1, 8), "AdamW"),
    ("MLP 784-512-512-10, batch 64", mlp, lambda: (array(64, 784), RNG.integers(0, 10, 64)), "SGD"),
    ("LeNet-5, batch 64", lenet, lambda: _images(64, 1, 28), "SGD"),
    ("LSTM 64-128, batch 32, 50 steps", lstm, lambda: (array(32, 50, 64), RNG.integers(0, 10, 32)), "Adam"),
    ("GPT 4 x 256, batch 8 x 128", gpt, lambda: (RNG.integers(0, 256, (8, 128)), RNG.integers(0, 256, 1024)), "AdamW"),
    ("ResNet-18 on 32 x 32, batch 16", resnet18, lambda: _images(16, 3, 32), "SGD"),
]


def classifier_step(lib, net, opt):
    """A training step of a classifier."""
    def step(x, y):
        opt.zero_grad()
        loss = lib.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        return loss
    return step


def stepper(lib, build, data, optimizer):
    """(function that does one step, its arguments, the network)."""
    net = build(lib)
    inputs, labels = (lib.tensor(d) for d in data)
    kind = getattr(lib.optim, optimizer)
    opt = kind(net.parameters(), lr=1e-3, momentum=0.9) if optimizer == "SGD" else kind(net.parameters(), lr=1e-3)
    return classifier_step(lib, net, opt), (inputs, labels), net


def compare(name, make):
    """One line: ``make(library)`` gives what ``stepper`` gives; as written, recorded with ``clnn.compile``, and PyTorch."""
    def made(library):
        library.manual_seed(0)
        return make(library)
    step, args, net = made(clnn)

    def run():
        loss = step(*args)
        return [loss, *[p.detach() for p in net.parameters()]]
    found = contenders(run)
    compiled_step, compiled_args, _ = made(clnn)
    compiled = clnn.compile(compiled_step)
    found.append(ours(lambda: compiled(*compiled_args), "compiled"))
    if torch is not None:
        theirs, targs, _ = made(torch)
        found += contenders(lambda: None, lambda: theirs(*targs))[1:]
    return Case(name, "ms", 1, found)


def training():
    """Milliseconds per step, as written and recorded with ``clnn.compile``."""
    for name, build, make, optimizer in MODELS:
        data = make()
        yield compare(name, lambda lib, build=build, data=data, optimizer=optimizer: stepper(lib, build, data, optimizer))
