"""Real programs, written against PyTorch, run with clnn in its place: both must train to the same losses."""
import importlib
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")


def flat(result):
    """All values of nested lists and dicts, tensors as arrays."""
    if isinstance(result, dict):
        return flat(list(result.items()))
    if isinstance(result, (list, tuple)):
        return [value for part in result for value in flat(part)]
    return [result.detach().numpy() if hasattr(result, "detach") else result]


class Library:
    """What a program imports, from one of the two libraries."""

    def __init__(self, name):
        self.name = name
        self.torch = importlib.import_module(name)
        self.nn = importlib.import_module(name + ".nn")
        self.F = importlib.import_module(name + ".nn.functional")
        self.optim = importlib.import_module(name + ".optim")
        self.data = importlib.import_module(name + ".utils.data")

    def module(self, path):
        return importlib.import_module(f"{self.name}.{path}")


def same_start(lib, model, seed=0):
    """Overwrite every parameter with numbers that do not depend on the library's own generator."""
    rng = np.random.default_rng(seed)
    with lib.torch.no_grad():
        for p in model.parameters():
            fan = max(1, p.numel() // p.shape[0]) if p.dim() > 1 else 10
            p.copy_(lib.torch.tensor((rng.standard_normal(tuple(p.shape)) / math.sqrt(fan)).astype("float32")))
    return model


def both_agree(program):
    """The program gives the same results under both libraries."""
    want, got = flat(program(Library("torch"))), flat(program(Library("clnn")))
    assert len(want) == len(got)
    for i, (w, g) in enumerate(zip(want, got)):
        if isinstance(w, str):
            assert g.replace("clnn", "torch") == w, f"result {i}"
        else:
            assert np.shape(g) == np.shape(w), f"result {i}"
            np.testing.assert_allclose(np.asarray(g, "float64"), np.asarray(w, "float64"), rtol=2e-3, atol=1e-5, err_msg=f"result {i}")


def numbers(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def labels(n, classes, seed=2):
    return np.random.default_rng(seed).integers(0, classes, n)


def cnn_with_batch_norm(lib):
    torch, nn, F = lib.torch, lib.nn, lib.F

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
            self.bn1 = nn.BatchNorm2d(8)
            self.conv2 = nn.Conv2d(8, 16, 3)
            self.pool = nn.MaxPool2d(2)
            self.fc = nn.Linear(16 * 3 * 3, 10)

        def forward(self, x):
            x = self.pool(F.relu(self.bn1(self.conv1(x))))
            x = F.relu(self.conv2(x))
            x = F.adaptive_avg_pool2d(x, (3, 3))
            return F.log_softmax(self.fc(x.view(x.size(0), -1)), dim=1)
    model = same_start(lib, Net())
    opt = lib.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    ds = lib.data.TensorDataset(torch.tensor(numbers(24, 1, 12, 12)), torch.tensor(labels(24, 10)))
    losses = []
    for epoch in range(3):
        model.train()
        for x, y in lib.data.DataLoader(ds, batch_size=8):
            opt.zero_grad()
            loss = F.nll_loss(model(x), y)
            loss.backward()
            opt.step()
            losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        losses.append(model(ds[:][0]).exp().sum(1).mean().item())
        losses.append((model(ds[:][0]).argmax(1) == ds[:][1]).float().mean().item())
    return losses


def residual_blocks(lib):
    torch, nn, F = lib.torch, lib.nn, lib.F

    class Block(nn.Module):
        def __init__(self, cin, cout, stride=1):
            super().__init__()
            self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(cout)
            self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(cout)
            self.shortcut = nn.Sequential() if stride == 1 and cin == cout else nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False),
                                                                                             nn.BatchNorm2d(cout))

        def forward(self, x):
            out = F.relu(self.bn1(self.conv1(x)), inplace=True)
            out = self.bn2(self.conv2(out))
            out += self.shortcut(x)
            return F.relu(out)
    model = same_start(lib, nn.Sequential(Block(3, 8), Block(8, 12, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, 5)))
    opt = lib.optim.AdamW(model.parameters(), lr=1e-2)
    sched = lib.optim.lr_scheduler.CosineAnnealingLR(opt, 6)
    x, y = torch.tensor(numbers(6, 3, 10, 10)), torch.tensor(labels(6, 5))
    losses = []
    for _ in range(6):
        opt.zero_grad(set_to_none=True)
        loss = nn.CrossEntropyLoss(label_smoothing=0.1)(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
        losses.append(loss.item())
    return losses


def small_gpt(lib):
    torch, nn, F = lib.torch, lib.nn, lib.F

    class Attention(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads, self.qkv, self.proj = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x):
            B, T, C = x.shape
            q, k, v = self.qkv(x).split(C, dim=2)
            q, k, v = (t.view(B, T, self.heads, C // self.heads).transpose(1, 2) for t in (q, k, v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.proj(y.transpose(1, 2).contiguous().view(B, T, C))

    class Layer(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.ln1, self.attn, self.ln2 = nn.LayerNorm(width), Attention(width, heads), nn.LayerNorm(width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            x = x + self.attn(self.ln1(x))
            return x + self.mlp(self.ln2(x))

    class GPT(nn.Module):
        def __init__(self, vocab=17, width=24, heads=3, context=12):
            super().__init__()
            self.tok, self.pos = nn.Embedding(vocab, width), nn.Embedding(context, width)
            self.blocks = nn.ModuleList([Layer(width, heads) for _ in range(2)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocab, bias=False)
            self.head.weight = self.tok.weight
            self.register_buffer("steps", torch.arange(context))

        def forward(self, idx, targets):
            x = self.tok(idx) + self.pos(self.steps[:idx.size(1)])
            for block in self.blocks:
                x = block(x)
            logits = self.head(self.norm(x))
            return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1), ignore_index=-1)
    model = same_start(lib, GPT())
    decay = [p for p in model.parameters() if p.dim() >= 2]
    rest = [p for p in model.parameters() if p.dim() < 2]
    opt = lib.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], lr=3e-3, betas=(0.9, 0.95))
    idx = torch.tensor(labels(4 * 12, 17).reshape(4, 12))
    losses = []
    for _ in range(5):
        loss = model(idx[:, :-1], idx[:, 1:])
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


def recurrent_tagger(lib):
    torch, nn, F = lib.torch, lib.nn, lib.F

    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb = nn.Embedding(11, 6, padding_idx=0)
            self.lstm = nn.LSTM(6, 7, num_layers=2, batch_first=True, bidirectional=True)
            self.gru = nn.GRU(14, 5, batch_first=True)
            self.out = nn.Linear(5, 3)

        def forward(self, x, h=None):
            y, (hn, cn) = self.lstm(self.emb(x))
            z, _ = self.gru(torch.tanh(y))
            return self.out(z), hn
    model = same_start(lib, Tagger())
    opt = lib.optim.RMSprop(model.parameters(), lr=1e-2)
    x, y = torch.tensor(labels(4 * 9, 11).reshape(4, 9)), torch.tensor(labels(4 * 9, 3, 5).reshape(4, 9))
    losses = []
    for _ in range(4):
        opt.zero_grad()
        logits, hn = model(x)
        loss = F.cross_entropy(logits.transpose(1, 2), y) + 0.01 * hn.pow(2).mean()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


def variational_autoencoder(lib):
    torch, nn, F = lib.torch, lib.nn, lib.F
    enc, mu, logvar = nn.Linear(20, 12), nn.Linear(12, 3), nn.Linear(12, 3)
    dec = nn.Sequential(nn.Linear(3, 12), nn.ReLU(), nn.Linear(12, 20), nn.Sigmoid())
    model = same_start(lib, nn.ModuleList([enc, mu, logvar, dec]))
    opt = lib.optim.Adam(model.parameters(), lr=1e-2)
    x = torch.sigmoid(torch.tensor(numbers(16, 20)))
    eps = torch.tensor(numbers(16, 3, seed=9))
    losses = []
    for _ in range(5):
        h = F.relu(enc(x))
        m, lv = mu(h), logvar(h)
        z = m + torch.exp(0.5 * lv) * eps
        loss = F.binary_cross_entropy(dec(z), x, reduction="sum") - 0.5 * torch.sum(1 + lv - m.pow(2) - lv.exp())
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


def transformer_encoder(lib):
    torch, nn = lib.torch, lib.nn
    layer = nn.TransformerEncoderLayer(d_model=12, nhead=3, dim_feedforward=20, dropout=0.0, batch_first=True, norm_first=True)
    model = same_start(lib, nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False))
    opt = lib.optim.NAdam(model.parameters(), lr=1e-2)
    x = torch.tensor(numbers(3, 7, 12))
    mask = nn.Transformer.generate_square_subsequent_mask(7)
    losses = []
    for _ in range(4):
        loss = nn.functional.smooth_l1_loss(model(x, mask=mask), torch.zeros(3, 7, 12))
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


def double_backward_penalty(lib):
    torch, nn = lib.torch, lib.nn
    model = same_start(lib, nn.Sequential(nn.Linear(5, 8), nn.Softplus(), nn.Linear(8, 1)))
    opt = lib.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for i in range(4):
        x = torch.tensor(numbers(6, 5, seed=i)).requires_grad_()
        g, = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        loss = ((g.norm(2, dim=1) - 1) ** 2).mean() + model(x).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


def generative_pair(lib):
    torch, nn, F = lib.torch, lib.nn, lib.F
    gen = same_start(lib, nn.Sequential(nn.ConvTranspose2d(4, 6, 3, 2), nn.BatchNorm2d(6), nn.ReLU(), nn.ConvTranspose2d(6, 1, 4, 2, 1), nn.Tanh()))
    dis = same_start(lib, nn.Sequential(nn.Conv2d(1, 5, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(5, 1, 3), nn.Flatten()), 7)
    og, od = lib.optim.Adam(gen.parameters(), lr=1e-3, betas=(0.5, 0.999)), lib.optim.Adam(dis.parameters(), lr=1e-3, betas=(0.5, 0.999))
    real, noise = torch.tensor(numbers(4, 1, 10, 10)), torch.tensor(numbers(4, 4, 2, 2, seed=3))
    losses = []
    for _ in range(3):
        fake = gen(noise)
        a, b = dis(real), dis(fake.detach())
        loss_d = F.binary_cross_entropy_with_logits(a, torch.ones_like(a)) + F.binary_cross_entropy_with_logits(b, torch.zeros_like(b))
        od.zero_grad()
        loss_d.backward()
        od.step()
        c = dis(fake)
        loss_g = F.binary_cross_entropy_with_logits(c, torch.ones_like(c))
        og.zero_grad()
        loss_g.backward()
        og.step()
        losses += [loss_d.item(), loss_g.item()]
    return losses


PROGRAMS = [cnn_with_batch_norm, residual_blocks, small_gpt, recurrent_tagger, variational_autoencoder, transformer_encoder,
            double_backward_penalty, generative_pair]


@pytest.mark.share(2)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_program(program):
    want = program(Library("torch"))
    got = program(Library("clnn"))
    np.testing.assert_allclose(got, want, rtol=2e-3, atol=1e-5)
