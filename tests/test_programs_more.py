"""More programs in the style of PyTorch's examples: attention, diffusion, reinforcement, graphs, words.

Each runs with both libraries and must give the same results."""
import math
from collections import deque, namedtuple

import numpy as np
import pytest
from test_programs import both_agree, labels, numbers, same_start

pytest.importorskip("torch")


def seq2seq_attn(lib):
    """Translation with GRUs that attend to the encoder's states, written into a buffer row by row."""
    torch, nn, F = lib.torch, lib.nn, lib.F

    class Enc(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb = nn.Embedding(12, 8)
            self.gru = nn.GRU(8, 8)

        def forward(self, x, h):
            return self.gru(self.emb(x).view(1, 1, -1), h)

    class AttnDec(nn.Module):
        def __init__(self, L=6):
            super().__init__()
            self.emb = nn.Embedding(12, 8)
            self.attn = nn.Linear(16, L)
            self.comb = nn.Linear(16, 8)
            self.gru = nn.GRU(8, 8)
            self.out = nn.Linear(8, 12)

        def forward(self, x, h, enc):
            e = self.emb(x).view(1, 1, -1)
            w = F.softmax(self.attn(torch.cat((e[0], h[0]), 1)), dim=1)
            a = torch.bmm(w.unsqueeze(0), enc.unsqueeze(0))
            o = F.relu(self.comb(torch.cat((e[0], a[0]), 1)).unsqueeze(0))
            o, h = self.gru(o, h)
            return F.log_softmax(self.out(o[0]), dim=1), h, w

    e, d = same_start(lib, Enc()), same_start(lib, AttnDec(), 4)
    eo, do = lib.optim.SGD(e.parameters(), lr=0.05), lib.optim.SGD(d.parameters(), lr=0.05)
    crit = nn.NLLLoss()
    out = []
    src = torch.tensor([[3], [4], [5], [1]])
    tgt = torch.tensor([7, 8, 1]).view(-1, 1)
    for it in range(2):
        h = torch.zeros(1, 1, 8)
        enc = torch.zeros(6, 8)
        eo.zero_grad()
        do.zero_grad()
        loss = 0
        for i in range(src.size(0)):
            o, h = e(src[i], h)
            enc[i] = o[0, 0]
        x = torch.tensor([[0]])
        for i in range(tgt.size(0)):
            o, h, w = d(x, h, enc)
            topv, topi = o.topk(1)
            x = topi.squeeze().detach()
            loss += crit(o, tgt[i])
            if x.item() == 1:
                break
        loss.backward()
        eo.step()
        do.step()
        out += [loss.item() / tgt.size(0), w]
    return out


def ddpm(lib):
    """Denoising diffusion with tables gathered by time step, an averaged model and sampling."""
    torch, nn, F = lib.torch, lib.nn, lib.F
    T = 20
    betas = torch.linspace(1e-4, 0.02, T)
    alphas = 1.0 - betas
    ac = torch.cumprod(alphas, axis=0)
    acp = F.pad(ac[:-1], (1, 0), value=1.0)
    sra = torch.sqrt(1.0 / alphas)
    sac = torch.sqrt(ac)
    s1 = torch.sqrt(1.0 - ac)
    pv = betas * (1.0 - acp) / (1.0 - ac)

    def extract(a, t, shape):
        (b,) = t.shape
        return a.gather(-1, t.cpu()).reshape(b, *((1,) * (len(shape) - 1))).to(t.device)

    class SinPos(nn.Module):
        def __init__(self, d):
            super().__init__()
            self.dim = d

        def forward(self, t):
            h = self.dim // 2
            e = math.log(10000) / (h - 1)
            e = torch.exp(torch.arange(h, device=t.device) * -e)
            e = t[:, None] * e[None, :]
            return torch.cat((e.sin(), e.cos()), dim=-1)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.t = nn.Sequential(SinPos(8), nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 16))
            self.c1 = nn.Conv2d(1, 8, 3, padding=1)
            self.n = nn.GroupNorm(2, 8)
            self.c2 = nn.Conv2d(8, 1, 3, padding=1)

        def forward(self, x, t):
            s, b = self.t(t)[..., None, None].chunk(2, dim=1)
            return self.c2(F.silu(self.n(self.c1(x)) * (s + 1) + b))

    m = same_start(lib, Net())
    ema = {k: v.clone() for k, v in m.state_dict().items()}
    opt = lib.optim.Adam(m.parameters(), lr=1e-2)
    out = [sra, pv, extract(sac, torch.tensor([1, 5]), (2, 1, 4, 4))]
    for i in range(3):
        x0 = torch.tensor(numbers(3, 1, 6, 6, seed=i))
        noise = torch.tensor(numbers(3, 1, 6, 6, seed=i + 40))
        t = torch.tensor(labels(3, T, i)).long()
        xn = extract(sac, t, x0.shape) * x0 + extract(s1, t, x0.shape) * noise
        loss = F.smooth_l1_loss(noise, m(xn, t))
        opt.zero_grad()
        loss.backward()
        opt.step()
        out.append(loss.item())
        with torch.no_grad():
            for k, v in m.state_dict().items():
                ema[k].mul_(0.9).add_(v, alpha=0.1)
    m.load_state_dict(ema)
    x = torch.tensor(numbers(2, 1, 6, 6))

    @torch.no_grad()
    def p_sample(x, t, ti):
        mean = extract(sra, t, x.shape) * (x - extract(betas, t, x.shape) * m(x, t) / extract(s1, t, x.shape))
        return mean if ti == 0 else mean + torch.sqrt(extract(pv, t, x.shape)) * 0.1

    for i in reversed(range(0, 5)):
        x = p_sample(x, torch.full((2,), i, dtype=torch.long), i)
    return out + [x, x.requires_grad]


def reinforce(lib):
    """Policy gradients with torch.distributions: actor-critic, a clipped surrogate, a squashed normal."""
    torch, nn, F = lib.torch, lib.nn, lib.F
    Categorical, Normal = torch.distributions.Categorical, torch.distributions.Normal

    class Policy(nn.Module):
        def __init__(self):
            super().__init__()
            self.affine1 = nn.Linear(4, 16)
            self.action_head = nn.Linear(16, 2)
            self.value_head = nn.Linear(16, 1)
            self.saved_actions, self.rewards = [], []

        def forward(self, x):
            x = F.relu(self.affine1(x))
            return F.softmax(self.action_head(x), dim=-1), self.value_head(x)

    m = same_start(lib, Policy())
    opt = lib.optim.Adam(m.parameters(), lr=3e-2)
    eps = np.finfo(np.float32).eps.item()
    out = []
    for ep in range(2):
        for t in range(8):
            state = torch.from_numpy(numbers(4, seed=t)).float()
            probs, v = m(state)
            d = Categorical(probs)
            a = d.sample()
            assert a.shape == () and a.dtype == torch.int64
            a = torch.tensor(t % 2)
            m.saved_actions.append((d.log_prob(a), v, d.entropy()))
            m.rewards.append(float(t % 3))
        R, pl, vl, returns = 0, [], [], []
        for r in m.rewards[::-1]:
            R = r + 0.99 * R
            returns.insert(0, R)
        returns = torch.tensor(returns)
        returns = (returns - returns.mean()) / (returns.std() + eps)
        for (lp, v, e), R in zip(m.saved_actions, returns):
            adv = R - v.item()
            pl.append(-lp * adv - 0.01 * e)
            vl.append(F.smooth_l1_loss(v, torch.tensor([R])))
        opt.zero_grad()
        loss = torch.stack(pl).sum() + torch.stack(vl).sum()
        loss.backward()
        opt.step()
        out.append(loss.item())
        del m.rewards[:]
        del m.saved_actions[:]
    # gaussian PPO
    mu = nn.Linear(3, 2)
    same_start(lib, mu)
    logstd = nn.Parameter(torch.zeros(2))
    s = torch.tensor(numbers(6, 3))
    act = torch.tensor(numbers(6, 2))
    old = torch.tensor(numbers(6))
    adv = torch.tensor(numbers(6, seed=3))
    d = Normal(mu(s), logstd.exp().expand(6, 2))
    lp = d.log_prob(act).sum(-1)
    ratio = (lp - old).exp()
    loss = -torch.min(ratio * adv, torch.clamp(ratio, 0.8, 1.2) * adv).mean() - 0.01 * d.entropy().sum(-1).mean()
    loss.backward()
    out += [loss.item(), mu.weight.grad, logstd.grad, d.rsample().shape == (6, 2), repr(Categorical(torch.tensor([0.25, 0.75])))]
    # squashed SAC
    z = torch.tensor(numbers(6, 2))
    a = torch.tanh(z)
    lp = d.log_prob(z) - torch.log(1 - a.pow(2) + 1e-6)
    out.append(lp.detach())
    return out


def dqn(lib):
    """Q-learning with a replay memory of tuples, a boolean mask and a slowly moving target network."""
    torch, nn = lib.torch, lib.nn
    Tr = namedtuple("Transition", ("state", "action", "next_state", "reward"))
    mem = deque([], maxlen=50)
    p, t = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    same_start(lib, p)
    t.load_state_dict(p.state_dict())
    opt = lib.optim.AdamW(p.parameters(), lr=1e-2, amsgrad=True)
    out = []
    for i in range(20):
        s = torch.tensor(numbers(4, seed=i), dtype=torch.float32).unsqueeze(0)
        with torch.no_grad():
            a = p(s).max(1).indices.view(1, 1)
        mem.append(Tr(s, a, None if i % 5 == 4 else torch.tensor(numbers(4, seed=i + 1)).unsqueeze(0), torch.tensor([float(i % 3)])))
    for it in range(4):
        b = Tr(*zip(*[mem[(it * 3 + j) % 20] for j in range(8)]))
        mask = torch.tensor(tuple(map(lambda s: s is not None, b.next_state)), dtype=torch.bool)
        nf = torch.cat([s for s in b.next_state if s is not None])
        q = p(torch.cat(b.state)).gather(1, torch.cat(b.action))
        nv = torch.zeros(8)
        with torch.no_grad():
            nv[mask] = t(nf).max(1).values
        loss = nn.SmoothL1Loss()(q, ((nv * 0.99) + torch.cat(b.reward)).unsqueeze(1))
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(p.parameters(), 100)
        opt.step()
        td, pd = t.state_dict(), p.state_dict()
        for k in pd:
            td[k] = pd[k] * 0.005 + td[k] * 0.995
        t.load_state_dict(td)
        out.append(loss.item())
    return out + [t[0].weight]


def gnn(lib):
    """Graph convolution and graph attention by scatter and index_add."""
    torch, nn, F = lib.torch, lib.nn, lib.F
    ei = torch.tensor([[0, 1, 1, 2, 3, 4, 4, 0], [1, 0, 2, 1, 4, 3, 0, 4]])
    N = 5

    class GCN(nn.Module):
        def __init__(self, i, o):
            super().__init__()
            self.lin = nn.Linear(i, o, bias=False)
            self.bias = nn.Parameter(torch.empty(o))
            self.reset_parameters()

        def reset_parameters(self):
            nn.init.xavier_uniform_(self.lin.weight)
            self.bias.data.zero_()

        def forward(self, x, ei):
            loop = torch.arange(x.size(0)).repeat(2, 1)
            ei = torch.cat([ei, loop], dim=1)
            row, col = ei
            x = self.lin(x)
            deg = torch.zeros(x.size(0), dtype=x.dtype).scatter_add_(0, col, torch.ones_like(col, dtype=x.dtype))
            dis = deg.pow(-0.5)
            dis[dis == float("inf")] = 0
            norm = dis[row] * dis[col]
            return torch.zeros_like(x).index_add_(0, col, norm.view(-1, 1) * x[row]) + self.bias

    class GAT(nn.Module):
        def __init__(self, i, o, h=2):
            super().__init__()
            self.h, self.o = h, o
            self.lin = nn.Linear(i, h * o, bias=False)
            self.a = nn.Parameter(torch.randn(1, h, 2 * o))

        def forward(self, x, ei):
            row, col = ei
            x = self.lin(x).view(-1, self.h, self.o)
            e = F.leaky_relu((self.a * torch.cat([x[row], x[col]], dim=-1)).sum(-1), 0.2)
            mx = torch.full((x.size(0), self.h), float("-inf")).scatter_reduce(0, col.unsqueeze(-1).expand_as(e), e, reduce="amax")
            ex = (e - mx[col]).exp()
            den = torch.zeros(x.size(0), self.h).index_add(0, col, ex)[col]
            al = ex / (den + 1e-16)
            out = torch.zeros(x.size(0), self.h, self.o)
            out.index_add_(0, col, al.unsqueeze(-1) * x[row])
            return out.flatten(1)

    m = nn.ModuleList([GCN(6, 8), GAT(8, 3), GCN(6, 2)])
    same_start(lib, m)
    x = torch.tensor(numbers(N, 6))
    y = torch.tensor([0, 1, 0, 1, 1])
    tm = torch.tensor([True, True, False, True, False])
    opt = lib.optim.Adam(m.parameters(), lr=0.01, weight_decay=5e-4)
    out = []
    for i in range(4):
        opt.zero_grad()
        h = m[2](F.elu(m[1](F.relu(m[0](x, ei)), ei)), ei)
        o = F.log_softmax(h, dim=1)
        loss = F.nll_loss(o[tm], y[tm])
        loss.backward()
        opt.step()
        out.append(loss.item())
    out.append(o.max(1)[1][~tm].eq(y[~tm]).sum().item() / int((~tm).sum()))
    A = torch.zeros(N, N)
    A[ei[0], ei[1]] = 1
    D = torch.diag(A.sum(1))
    Lp = D - A
    out += [Lp, torch.linalg.eigvalsh(Lp), A.nonzero(), (A @ A > 0).sum(), torch.where(A > 0)[1]]
    batch = torch.tensor([0, 0, 1, 1, 1])
    pooled = torch.zeros(2, 6).scatter_reduce_(0, batch[:, None].expand(-1, 6), x, "mean", include_self=False)
    out.append(pooled)
    out.append(torch.bincount(batch, minlength=3))
    return out


def superres(lib):
    """Super-resolution by sub-pixel convolution, resizing and warping."""
    torch, nn, F = lib.torch, lib.nn, lib.F
    init = torch.nn.init

    class Net(nn.Module):
        def __init__(self, up):
            super().__init__()
            self.relu = nn.ReLU()
            self.conv1 = nn.Conv2d(1, 8, (5, 5), (1, 1), (2, 2))
            self.conv4 = nn.Conv2d(8, up**2, (3, 3), (1, 1), (1, 1))
            self.ps = nn.PixelShuffle(up)
            init.orthogonal_(self.conv1.weight, init.calculate_gain("relu"))
            init.orthogonal_(self.conv4.weight)

        def forward(self, x):
            return self.ps(self.conv4(self.relu(self.conv1(x))))

    m = same_start(lib, Net(2))
    opt = lib.optim.Adam(m.parameters(), lr=1e-2)
    x = torch.tensor(numbers(2, 1, 6, 6))
    hr = F.interpolate(x, scale_factor=2, mode="bicubic", align_corners=False)
    out = []
    for i in range(3):
        loss = nn.MSELoss()(m(x), hr) + nn.L1Loss()(m(x), hr)
        opt.zero_grad()
        loss.backward()
        opt.step()
        psnr = 10 * math.log10(1 / loss.item())
        out += [loss.item(), psnr]
    for mode in ("nearest", "bilinear", "area"):
        out.append(F.interpolate(x, size=(4, 9), mode=mode))
    th = torch.tensor([[[0.7, -0.2, 0.1], [0.3, 0.9, 0.0]]]).repeat(2, 1, 1)
    out.append(F.grid_sample(x, F.affine_grid(th, x.size(), align_corners=False), padding_mode="reflection", align_corners=False))
    out.append(F.pixel_unshuffle(x, 2))
    return out


def word2vec(lib):
    """Skip-grams with negative samples, and bags of embeddings."""
    torch, nn, F = lib.torch, lib.nn, lib.F

    class SG(nn.Module):
        def __init__(self, v, d):
            super().__init__()
            self.u = nn.Embedding(v, d)
            self.v = nn.Embedding(v, d)
            r = 0.5 / d
            init = nn.init
            init.uniform_(self.u.weight.data, -r, r)
            init.constant_(self.v.weight.data, 0)

        def forward(self, pu, pv, nv):
            eu, ev, en = self.u(pu), self.v(pv), self.v(nv)
            s = torch.clamp(torch.sum(torch.mul(eu, ev), dim=1), max=10, min=-10)
            s = -F.logsigmoid(s)
            n = torch.clamp(torch.bmm(en, eu.unsqueeze(2)).squeeze(), max=10, min=-10)
            return torch.mean(s - torch.sum(F.logsigmoid(-n), dim=1))

    m = same_start(lib, SG(12, 6))
    opt = lib.optim.SGD(m.parameters(), lr=0.3)
    out = []
    for i in range(3):
        loss = m(torch.LongTensor(labels(8, 12, i)), torch.LongTensor(labels(8, 12, i + 1)), torch.LongTensor(labels(24, 12, i + 2).reshape(8, 3)))
        opt.zero_grad()
        loss.backward()
        opt.step()
        out.append(loss.item())
    eb = nn.EmbeddingBag(12, 6, sparse=False, mode="mean")
    fc = nn.Linear(6, 3)
    same_start(lib, nn.ModuleList([eb, fc]))
    text = torch.tensor(labels(20, 12))
    off = torch.tensor([0, 4, 4, 11])
    o = fc(eb(text, off))
    loss = F.cross_entropy(o, torch.tensor([0, 1, 2, 0]))
    loss.backward()
    out += [loss.item(), eb.weight.grad, o]
    for mode in ("sum", "max"):
        out.append(F.embedding_bag(text, eb.weight, off, mode=mode))
    out.append(F.embedding_bag(text.view(4, 5), eb.weight, mode="sum", per_sample_weights=torch.tensor(numbers(4, 5))))
    e = nn.Embedding.from_pretrained(torch.eye(4), freeze=True)
    out += [e(torch.tensor([1, 3])), e.weight.requires_grad]
    return out


PROGRAMS = [seq2seq_attn, ddpm, reinforce, dqn, gnn, superres, word2vec]


@pytest.mark.share(2)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_program(program):
    both_agree(program)
