"""Training steps as programs write them: families of models that the six of ``training`` do not stand for."""
from __future__ import annotations

import math

from .setup import RNG, array
from .training import classifier_step, compare


def classify(lib, net, optimizer, args):
    return classifier_step(lib, net, getattr(lib.optim, optimizer)(net.parameters(), lr=1e-3)), [lib.tensor(a) for a in args], net


def minimise(lib, net, loss_of, args, optimizer="Adam"):
    """A step of a model whose loss is computed from its inputs."""
    opt = getattr(lib.optim, optimizer)(net.parameters(), lr=1e-3)

    def step(*tensors):
        opt.zero_grad()
        loss = loss_of(*tensors)
        loss.backward()
        opt.step()
        return loss
    return step, [lib.tensor(a) for a in args], net


def labels(classes, *shape):
    return RNG.integers(0, classes, shape)


def encoder(lib):
    nn = lib.nn
    layer = nn.TransformerEncoderLayer(128, 4, 256, dropout=0.1, batch_first=True)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.enc, self.head = nn.Embedding(1000, 128), nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(128, 4)

        def forward(self, ids):
            return self.head(self.enc(self.emb(ids)).mean(1))
    return classify(lib, Model(), "AdamW", (labels(1000, 16, 64), labels(4, 16)))


def translator(lib):
    nn = lib.nn
    net = nn.Transformer(64, 4, 2, 2, 128, batch_first=True)
    source, target = array(16, 20, 64), array(16, 20, 64)
    return minimise(lib, net, lambda s, t: ((net(s, t, tgt_mask=net.generate_square_subsequent_mask(20)) - t) ** 2).mean(), (source, target))


def vae(lib):
    nn, f = lib.nn, lib.nn.functional

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.enc, self.mu, self.var = nn.Linear(784, 400), nn.Linear(400, 20), nn.Linear(400, 20)
            self.dec = nn.Sequential(nn.Linear(20, 400), nn.ReLU(), nn.Linear(400, 784), nn.Sigmoid())

        def forward(self, x):
            h = lib.relu(self.enc(x))
            mu, logvar = self.mu(h), self.var(h)
            z = mu + lib.randn_like(mu) * (0.5 * logvar).exp()
            y = self.dec(z)
            return f.binary_cross_entropy(y, x, reduction="sum") - 0.5 * (1 + logvar - mu * mu - logvar.exp()).sum()
    net = Model()
    return minimise(lib, net, net, (RNG.random((128, 784), dtype="float32"),))


def unet(lib):
    nn = lib.nn

    def double(cin, cout):
        return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1), nn.BatchNorm2d(cout), nn.ReLU(True), nn.Conv2d(cout, cout, 3, padding=1),
                             nn.BatchNorm2d(cout), nn.ReLU(True))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.down1, self.down2, self.mid = double(3, 16), double(16, 32), double(32, 64)
            self.pool, self.up2, self.up1 = nn.MaxPool2d(2), nn.ConvTranspose2d(64, 32, 2, 2), nn.ConvTranspose2d(32, 16, 2, 2)
            self.right2, self.right1, self.head = double(64, 32), double(32, 16), nn.Conv2d(16, 2, 1)

        def forward(self, x):
            a = self.down1(x)
            b = self.down2(self.pool(a))
            c = self.mid(self.pool(b))
            c = self.right2(lib.cat([self.up2(c), b], 1))
            return self.head(self.right1(lib.cat([self.up1(c), a], 1)))
    return classify(lib, Model(), "Adam", (array(4, 3, 64, 64), labels(2, 4, 64, 64)))


def mobilenet(lib):
    nn = lib.nn

    def block(cin, cout, stride):
        return nn.Sequential(nn.Conv2d(cin, cin, 3, stride, 1, groups=cin, bias=False), nn.BatchNorm2d(cin), nn.ReLU6(True),
                             nn.Conv2d(cin, cout, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU6(True))
    net = nn.Sequential(nn.Conv2d(3, 32, 3, 1, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6(True), block(32, 64, 1), block(64, 128, 2), block(128, 128, 1),
                        block(128, 256, 2), block(256, 256, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10))
    return classify(lib, net, "Adam", (array(16, 3, 32, 32), labels(10, 16)))


def vit(lib):
    nn = lib.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.patch = nn.Conv2d(3, 128, 4, 4)
            self.cls, self.place = nn.Parameter(lib.zeros(1, 1, 128)), nn.Parameter(lib.zeros(1, 65, 128))
            layer = nn.TransformerEncoderLayer(128, 4, 512, 0.0, "gelu", batch_first=True, norm_first=True)
            self.enc, self.head = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False), nn.Linear(128, 10)

        def forward(self, x):
            x = self.patch(x).flatten(2).transpose(1, 2)
            x = lib.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.place
            return self.head(self.enc(x)[:, 0])
    return classify(lib, Model(), "AdamW", (array(16, 3, 32, 32), labels(10, 16)))


def recurrent(kind, cell=False):
    def build(lib):
        nn = lib.nn

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.emb, self.head = nn.Embedding(100, 64), nn.Linear(128, 100)
                self.rnn = getattr(nn, kind)(64, 128) if cell else getattr(nn, kind)(64, 128, num_layers=2, batch_first=True)

            def forward(self, ids):
                x = self.emb(ids)
                if not cell:
                    return self.head(self.rnn(x)[0]).transpose(1, 2)
                state, out = None, []
                for i in range(x.shape[1]):
                    state = self.rnn(x[:, i], state)
                    out.append(state[0])
                return self.head(lib.stack(out, 1)).transpose(1, 2)
        return classify(lib, Model(), "Adam", (labels(100, 32, 32), labels(100, 32, 32)))
    return build


def bag(lib):
    nn = lib.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.bag, self.net = nn.EmbeddingBag(20000, 64, mode="mean"), nn.Linear(64, 4)

        def forward(self, ids):
            return self.net(self.bag(ids))
    return classify(lib, Model(), "SGD", (labels(20000, 64, 40), labels(4, 64)))


def gcn(lib):
    """Graph convolution by index_add over edges."""
    nn = lib.nn
    source, target = labels(2000, 10000), labels(2000, 10000)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(128, 64), nn.Linear(64, 7)

        def forward(self, x, s, t):
            h = lib.relu(self.a(lib.zeros_like(x).index_add(0, t, x[s])))
            return self.b(lib.zeros_like(h).index_add(0, t, h[s]))
    net = Model()
    return minimise(lib, net, lambda x, s, t, y: lib.nn.functional.cross_entropy(net(x, s, t), y), (array(2000, 128), source, target, labels(7, 2000)))


def audio(lib):
    nn = lib.nn
    net = nn.Sequential(nn.Conv1d(1, 32, 80, 16), nn.BatchNorm1d(32), nn.ReLU(), nn.MaxPool1d(4), nn.Conv1d(32, 64, 3), nn.BatchNorm1d(64), nn.ReLU(),
                        nn.MaxPool1d(4), nn.Conv1d(64, 64, 3), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(64, 35))
    return classify(lib, net, "Adam", (array(16, 1, 8000), labels(35, 16)))


def dcgan(lib):
    nn, f = lib.nn, lib.nn.functional
    g = nn.Sequential(nn.ConvTranspose2d(64, 128, 4, 1, 0, bias=False), nn.BatchNorm2d(128), nn.ReLU(True), nn.ConvTranspose2d(128, 64, 4, 2, 1, bias=False),
                      nn.BatchNorm2d(64), nn.ReLU(True), nn.ConvTranspose2d(64, 1, 4, 2, 1, bias=False), nn.Tanh())
    d = nn.Sequential(nn.Conv2d(1, 64, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, True), nn.Conv2d(64, 128, 4, 2, 1, bias=False), nn.BatchNorm2d(128),
                      nn.LeakyReLU(0.2, True), nn.Conv2d(128, 1, 4, 1, 0, bias=False), nn.Flatten())
    og, od = lib.optim.Adam(g.parameters(), 2e-4, betas=(0.5, 0.999)), lib.optim.Adam(d.parameters(), 2e-4, betas=(0.5, 0.999))

    def step(real, noise):
        one, zero = lib.ones(real.shape[0], 1), lib.zeros(real.shape[0], 1)
        fake = g(noise)
        od.zero_grad()
        loss = f.binary_cross_entropy_with_logits(d(real), one) + f.binary_cross_entropy_with_logits(d(fake.detach()), zero)
        loss.backward()
        od.step()
        og.zero_grad()
        lg = f.binary_cross_entropy_with_logits(d(fake), one)
        lg.backward()
        og.step()
        return loss + lg
    return step, [lib.tensor(array(32, 1, 16, 16)), lib.tensor(array(32, 64, 1, 1))], nn.ModuleList([g, d])


def llama(lib, width=128, heads=4, kv=2, length=64):
    """Two decoder blocks with RMS norm, rotary embedding, grouped heads and SwiGLU."""
    nn, f = lib.nn, lib.nn.functional
    half = width // heads // 2
    angle = lib.arange(length).float()[:, None] / 10000 ** (lib.arange(half).float() / half)
    cos, sin = angle.cos(), angle.sin()

    def rotate(x):
        a, b = x.chunk(2, -1)
        return lib.cat([a * cos - b * sin, b * cos + a * sin], -1)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.n1, self.n2 = nn.RMSNorm(width), nn.RMSNorm(width)
            self.q, self.k, self.v = nn.Linear(width, width, False), nn.Linear(width, kv * width // heads, False), nn.Linear(width, kv * width // heads, False)
            self.o, self.gate, self.up, self.down = (nn.Linear(width, width, False), nn.Linear(width, 344, False), nn.Linear(width, 344, False),
                                                     nn.Linear(344, width, False))

        def forward(self, x):
            b, n, _ = x.shape
            h = self.n1(x)
            q, k, v = (p(h).view(b, n, -1, width // heads).transpose(1, 2) for p in (self.q, self.k, self.v))
            y = f.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True, enable_gqa=True)
            x = x + self.o(y.transpose(1, 2).reshape(b, n, width))
            h = self.n2(x)
            return x + self.down(f.silu(self.gate(h)) * self.up(h))
    emb, blocks, norm, head = nn.Embedding(256, width), nn.Sequential(Block(), Block()), nn.RMSNorm(width), nn.Linear(width, 256, False)
    net = nn.Sequential(emb, blocks, norm, head)
    return minimise(lib, net, lambda x, y: f.cross_entropy(net(x).flatten(0, 1), y.flatten()), (labels(256, 8, length), labels(256, 8, length)), "AdamW")


def volumes(lib):
    nn = lib.nn
    net = nn.Sequential(nn.Conv3d(1, 16, 3, padding=1), nn.BatchNorm3d(16), nn.ReLU(), nn.MaxPool3d(2), nn.Conv3d(16, 32, 3, padding=1), nn.BatchNorm3d(32),
                        nn.ReLU(), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(32, 5))
    return classify(lib, net, "Adam", (array(4, 1, 24, 24, 24), labels(5, 4)))


def pinn(lib):
    """Heat equation: second derivatives by autograd.grad."""
    nn = lib.nn
    net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))

    def loss_of(x):
        x = x.clone().requires_grad_()
        u = net(x)
        d = lib.autograd.grad(u.sum(), x, create_graph=True)[0]
        dxx = lib.autograd.grad(d[:, 0].sum(), x, create_graph=True)[0][:, 0]
        return ((d[:, 1] - 0.1 * dxx) ** 2).mean() + (u - lib.sin(math.pi * x[:, :1])).pow(2).mean()
    return minimise(lib, net, loss_of, (RNG.random((512, 2), dtype="float32"),))


def diffusion(lib):
    """A residual convolutional network that predicts noise, conditioned on the time by an embedding."""
    nn, f = lib.nn, lib.nn.functional

    class Block(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.n1, self.c1, self.n2, self.c2, self.t = nn.GroupNorm(8, c), nn.Conv2d(c, c, 3, 1, 1), nn.GroupNorm(8, c), nn.Conv2d(c, c, 3, 1, 1), nn.Linear(64, c)

        def forward(self, x, t):
            h = self.c1(f.silu(self.n1(x))) + self.t(t)[:, :, None, None]
            return x + self.c2(f.silu(self.n2(h)))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.time = nn.Sequential(nn.Linear(32, 64), nn.SiLU(), nn.Linear(64, 64))
            self.first, self.blocks, self.last = nn.Conv2d(3, 32, 3, 1, 1), nn.ModuleList([Block(32) for _ in range(3)]), nn.Conv2d(32, 3, 3, 1, 1)

        def forward(self, x, t):
            w = t[:, None] * lib.exp(-math.log(1e4) / 16 * lib.arange(16))
            e = self.time(lib.cat([w.sin(), w.cos()], -1))
            x = self.first(x)
            for block in self.blocks:
                x = block(x, e)
            return self.last(x)
    net = Model()

    def loss_of(x, t):
        noise, a = lib.randn_like(x), lib.cos(t * 1.5)[:, None, None, None]
        return f.mse_loss(net(a * x + (1 - a * a).sqrt() * noise, t), noise)
    return minimise(lib, net, loss_of, (array(8, 3, 32, 32), RNG.random(8, dtype="float32")))


def policy(lib):
    """PPO's update of a small actor and critic."""
    nn = lib.nn
    actor = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 4))
    critic = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
    net = nn.ModuleList([actor, critic])
    opt = lib.optim.Adam(net.parameters(), 3e-4)

    def step(obs, act, old, adv, ret):
        dist = lib.distributions.Categorical(logits=actor(obs))
        ratio = (dist.log_prob(act) - old).exp()
        gain = lib.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean()
        loss = -gain + 0.5 * (critic(obs).squeeze(-1) - ret).pow(2).mean() - 0.01 * dist.entropy().mean()
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        opt.step()
        return loss
    data = (array(256, 8), labels(4, 256), array(256), array(256), array(256))
    return step, [lib.tensor(a) for a in data], net


def perceptron(lib):
    """What a first program trains: a few numbers per row, the layers called one by one."""
    nn, f = lib.nn, lib.nn.functional

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Linear(4, 64), nn.Linear(64, 64), nn.Linear(64, 2)

        def forward(self, x):
            x = f.relu(self.a(x))
            x = f.relu(self.b(x))
            return self.c(x)
    net = Net()
    return minimise(lib, net, lambda x, y: f.mse_loss(net(x), y), (array(32, 4), array(32, 2)), "SGD")


def digits_of_a_class(lib):
    """A convolutional network with dropout on few small images, written as a class."""
    nn, f = lib.nn, lib.nn.functional

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.c1, self.c2, self.drop, self.fc = nn.Conv2d(1, 4, 3), nn.Conv2d(4, 8, 3), nn.Dropout(0.25), nn.Linear(32, 10)

        def forward(self, x):
            x = f.max_pool2d(f.relu(self.c1(x)), 2)
            x = f.max_pool2d(f.relu(self.c2(x)), 2)
            return f.log_softmax(self.fc(self.drop(x.flatten(1))), 1)
    net = Net()
    return minimise(lib, net, lambda x, y: f.nll_loss(net(x), y), (array(8, 1, 14, 14), labels(10, 8)), "SGD")


def small_attention(lib):
    """One encoder layer in training, with its dropout, on sequences of ten."""
    nn = lib.nn
    net = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    return minimise(lib, net, lambda x, y: lib.nn.functional.mse_loss(net(x), y), (array(8, 10, 32), array(8, 10, 32)), "Adam")


FAMILIES = {"transformer encoder": encoder, "nn.Transformer": translator, "VAE": vae, "U-Net": unet, "MobileNet": mobilenet, "ViT": vit,
            "GRU of 2 layers": recurrent("GRU"), "LSTM of 2 layers": recurrent("LSTM"), "loop of LSTMCell": recurrent("LSTMCell", cell=True),
            "embedding bag": bag, "graph convolution": gcn, "audio CNN": audio, "DCGAN": dcgan, "LLaMA blocks": llama, "3-D CNN": volumes,
            "PINN": pinn, "diffusion": diffusion, "PPO update": policy,
            "small perceptron": perceptron, "small CNN with dropout": digits_of_a_class, "small encoder layer": small_attention}


def models():
    """Milliseconds per step, as written and recorded with ``clnn.compile``."""
    for name, make in FAMILIES.items():
        yield compare(name, make)
