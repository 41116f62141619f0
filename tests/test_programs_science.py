"""Programs of science and of large models: equations, meta-learning, experts, adapters, data, Gaussian processes.

Each runs with both libraries and must give the same results."""
import math
import os
import tempfile

import numpy as np
import pytest
from test_programs import both_agree, numbers, same_start

pytest.importorskip("torch")


def pinn(lib):
    """A differential equation as a loss: second derivatives, Jacobians and Hessians of a network."""
    torch, nn = lib.torch, lib.nn
    m = same_start(lib, nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1)))
    opt = torch.optim.Adam(m.parameters(), lr=1e-2)
    out = []
    x, t = torch.tensor(numbers(10, 1), requires_grad=True), torch.tensor(numbers(10, 1, seed=2), requires_grad=True)
    lam = nn.Parameter(torch.tensor(0.1))
    opt.add_param_group({"params": [lam]})
    for i in range(3):
        u = m(torch.cat([x, t], dim=1))
        ux = torch.autograd.grad(u, x, grad_outputs=torch.ones_like(u), retain_graph=True, create_graph=True)[0]
        ut = torch.autograd.grad(u, t, torch.ones_like(u), create_graph=True)[0]
        uxx = torch.autograd.grad(ux.sum(), x, create_graph=True)[0]
        f = ut + u * ux - lam * uxx
        loss = (f**2).mean() + ((u - torch.sin(math.pi * x.detach())) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        out += [loss.item(), lam.item()]
    H = torch.autograd.functional.hessian(lambda z: m(z).sum(), torch.tensor(numbers(2)))
    J = torch.autograd.functional.jacobian(lambda z: m(z).tanh(), torch.tensor(numbers(3, 2)))
    out += [H, J]
    fu = lib.module("func")
    out.append(fu.vmap(fu.hessian(lambda z: m(z).squeeze()))(torch.tensor(numbers(3, 2))))
    out.append(fu.vmap(fu.jacrev(lambda z: m(z)))(torch.tensor(numbers(3, 2))))
    out.append(fu.jvp(lambda z: m(z), (torch.tensor(numbers(3, 2)),), (torch.ones(3, 2),))[1])
    return out


def neural_ode(lib):
    """An ordinary differential equation with the adjoint method as a custom Function."""
    torch, nn = lib.torch, lib.nn

    class Fn(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))

        def forward(self, t, y):
            return self.net(y**3)

    def rk4(f, t, dt, y):
        k1 = f(t, y)
        k2 = f(t + dt / 2, y + dt * k1 / 2)
        k3 = f(t + dt / 2, y + dt * k2 / 2)
        k4 = f(t + dt, y + dt * k3)
        return (k1 + 2 * k2 + 2 * k3 + k4) * dt / 6

    class Adjoint(torch.autograd.Function):
        @staticmethod
        def forward(ctx, func, y0, t, flat):
            with torch.no_grad():
                ys = [y0]
                for a, b in zip(t[:-1], t[1:]):
                    ys.append(ys[-1] + rk4(func, a, b - a, ys[-1]))
                ans = torch.stack(ys)
            ctx.func = func
            ctx.save_for_backward(t, ans)
            return ans

        @staticmethod
        def backward(ctx, go):
            t, ans = ctx.saved_tensors
            f = ctx.func
            ps = tuple(f.parameters())
            adj = torch.zeros_like(go[-1])
            gp = [torch.zeros_like(p) for p in ps]
            for i in range(len(t) - 1, 0, -1):
                adj = adj + go[i]
                with torch.enable_grad():
                    y = ans[i - 1].detach().requires_grad_(True)
                    o = y + rk4(f, t[i - 1], t[i] - t[i - 1], y)
                    g = torch.autograd.grad(o, (y,) + ps, adj, allow_unused=True)
                adj = g[0]
                gp = [a + (b if b is not None else 0) for a, b in zip(gp, g[1:])]
            return None, adj + go[0], None, torch.cat([p.reshape(-1) for p in gp])

    f = same_start(lib, Fn())
    opt = torch.optim.RMSprop(f.parameters(), lr=1e-2)
    y0, t = torch.tensor([[2.0, 0.0], [1.0, 0.5]]), torch.linspace(0.0, 1.0, 5)
    A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
    out = []
    with torch.no_grad():
        true = torch.stack([torch.mm(y0**1, torch.linalg.matrix_exp(A * float(s))) for s in t])
        out.append(true)
    for i in range(3):
        opt.zero_grad()
        p = Adjoint.apply(f, y0, t, torch.cat([q.contiguous().view(-1) for q in f.parameters()]))
        loss = torch.mean(torch.abs(p - true))
        loss.backward()
        opt.step()
        out += [loss.item(), f.net[0].weight.grad.norm()]
    out.append(p.grad_fn.name())
    return out


def maml(lib):
    """Learning to learn: functional calls, per-sample gradients, ensembles by vmap."""
    torch, nn, F = lib.torch, lib.nn, lib.F
    fu = lib.module("func")
    from_fc = fu.functional_call
    m = same_start(lib, nn.Sequential(nn.Linear(1, 8), nn.ReLU(), nn.Linear(8, 1)))
    params = {k: v.detach().clone().requires_grad_() for k, v in m.named_parameters()}
    out = []

    def loss_fn(p, x, y):
        return F.mse_loss(from_fc(m, p, (x,)), y)

    def inner(xs, ys, xq, yq):
        g = fu.grad(loss_fn)(params, xs, ys)
        new = {k: params[k] - 0.1 * g[k] for k in params}
        return loss_fn(new, xq, yq)

    opt = torch.optim.Adam(params.values(), lr=1e-2)
    for i in range(2):
        xs, xq = torch.tensor(numbers(3, 5, 1, seed=i)), torch.tensor(numbers(3, 5, 1, seed=i + 7))
        losses = fu.vmap(inner)(xs, xs.sin(), xq, xq.sin())
        loss = losses.mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        out += [loss.item(), losses]
    fast = list(m.parameters())
    for _ in range(2):
        x = torch.tensor(numbers(5, 1))
        loss = F.mse_loss(F.linear(F.relu(F.linear(x, fast[0], fast[1])), fast[2], fast[3]), x.sin())
        gr = torch.autograd.grad(loss, fast, create_graph=True)
        fast = [w - 0.1 * g for w, g in zip(fast, gr)]
    F.mse_loss(F.linear(F.relu(F.linear(x, *fast[:2])), *fast[2:]), x.cos()).backward()
    out.append(m[0].weight.grad)
    models = [same_start(lib, nn.Linear(3, 2), i) for i in range(3)]
    ps, bs = fu.stack_module_state(models)
    out.append(fu.vmap(lambda p, b, x: from_fc(models[0], (p, b), (x,)), in_dims=(0, 0, None))(ps, bs, torch.tensor(numbers(4, 3))))
    psg = fu.vmap(fu.grad(lambda p, x, y: F.cross_entropy(from_fc(models[0], p, (x.unsqueeze(0),)), y.unsqueeze(0))), in_dims=(None, 0, 0))(
        {k: v.detach() for k, v in models[0].named_parameters()}, torch.tensor(numbers(4, 3)), torch.tensor([0, 1, 1, 0])
    )
    out += [psg["weight"], psg["bias"]]
    return out


def moe(lib):
    """Mixture of experts: top-k routing, index_add of the experts' outputs, capacities."""
    torch, nn, F = lib.torch, lib.nn, lib.F

    class MoE(nn.Module):
        def __init__(self, d=6, n=4, k=2):
            super().__init__()
            self.gate = nn.Linear(d, n, bias=False)
            self.ex = nn.ModuleList(nn.Sequential(nn.Linear(d, 8), nn.SiLU(), nn.Linear(8, d)) for _ in range(n))
            self.n, self.k = n, k

        def forward(self, x):
            b, s, d = x.shape
            x = x.view(-1, d)
            logits = self.gate(x)
            w = F.softmax(logits, dim=1, dtype=torch.float)
            w, sel = torch.topk(w, self.k, dim=-1)
            w /= w.sum(dim=-1, keepdim=True)
            w = w.to(x.dtype)
            out = torch.zeros((b * s, d), dtype=x.dtype, device=x.device)
            mask = F.one_hot(sel, num_classes=self.n).permute(2, 1, 0)
            for e in range(self.n):
                idx, tx = torch.where(mask[e])
                if tx.shape[0] == 0:
                    continue
                h = self.ex[e](x[None, tx].reshape(-1, d)) * w[tx, idx, None]
                out.index_add_(0, tx, h.to(x.dtype))
            tpe = torch.mean(F.one_hot(sel, self.n).float(), dim=0)
            aux = torch.sum(tpe * logits.softmax(-1).mean(0).unsqueeze(0)) * self.n
            return out.reshape(b, s, d), aux

    m = same_start(lib, MoE())
    opt = lib.optim.AdamW(m.parameters(), lr=1e-2)
    x = torch.tensor(numbers(2, 5, 6))
    out = []
    for i in range(3):
        y, aux = m(x)
        loss = (y - x.flip(1)).pow(2).mean() + 0.01 * aux
        opt.zero_grad()
        loss.backward()
        opt.step()
        out += [loss.item(), aux]
    g = torch.zeros(10, 4).scatter(1, torch.topk(m.gate(x.view(-1, 6)), 2).indices, 1.0)
    cap = torch.cumsum(g, dim=0) * g - 1
    cap.masked_fill_(cap >= 3, -1)
    out += [g, cap, torch.einsum("sec,sm->ecm", F.one_hot(cap.clamp(min=0).long(), 3).float() * g.unsqueeze(-1), x.view(-1, 6))]
    return out


def lora_llama(lib):
    """A decoder block with rotary positions, grouped keys, low-rank adapters and a cache of keys and values."""
    torch, nn, F = lib.torch, lib.nn, lib.F

    class LoRA(nn.Linear):
        def __init__(self, i, o, r=2, alpha=4, **kw):
            nn.Linear.__init__(self, i, o, **kw)
            self.lora_A = nn.Parameter(self.weight.new_zeros((r, i)))
            self.lora_B = nn.Parameter(self.weight.new_zeros((o, r)))
            self.scaling = alpha / r
            self.weight.requires_grad = False
            self.merged = False

        def train(self, mode=True):
            nn.Linear.train(self, mode)
            if mode and self.merged:
                self.weight.data -= (self.lora_B @ self.lora_A) * self.scaling
                self.merged = False
            elif not mode and not self.merged:
                self.weight.data += (self.lora_B @ self.lora_A) * self.scaling
                self.merged = True

        def forward(self, x):
            r = F.linear(x, self.weight, bias=self.bias)
            return r if self.merged else r + (x @ self.lora_A.transpose(0, 1) @ self.lora_B.transpose(0, 1)) * self.scaling

    class RMSNorm(nn.Module):
        def __init__(self, d, eps=1e-6):
            super().__init__()
            self.eps = eps
            self.weight = nn.Parameter(torch.ones(d))

        def _norm(self, x):
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

        def forward(self, x):
            return self._norm(x.float()).type_as(x) * self.weight

    def rope(T, d, base=10000.0):
        inv = 1.0 / (base ** (torch.arange(0, d, 2)[:(d // 2)].float() / d))
        f = torch.outer(torch.arange(T, dtype=inv.dtype), inv)
        e = torch.cat((f, f), dim=-1)
        return e.cos(), e.sin()

    def rot(x):
        x1, x2 = x[...,:x.shape[-1] // 2], x[..., x.shape[-1] // 2:]
        return torch.cat((-x2, x1), dim=-1)

    def repeat_kv(x, n):
        b, s, h, d = x.shape
        return x[:, :, :, None, :].expand(b, s, h, n, d).reshape(b, s, h * n, d)

    class Att(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v, self.o = LoRA(8, 8, bias=False), nn.Linear(8, 4, bias=False), LoRA(8, 4, bias=False), nn.Linear(8, 8, bias=False)
            self.register_buffer("ck", torch.zeros(2, 8, 1, 4), persistent=False)
            self.register_buffer("cv", torch.zeros(2, 8, 1, 4), persistent=False)

        def forward(self, x, pos=0, cache=False):
            b, s, _ = x.shape
            q, k, v = self.q(x).view(b, s, 2, 4), self.k(x).view(b, s, 1, 4), self.v(x).view(b, s, 1, 4)
            c, si = rope(8, 4)
            c, si = c[pos:pos + s].unsqueeze(1), si[pos:pos + s].unsqueeze(1)
            q, k = q * c + rot(q) * si, k * c + rot(k) * si
            if cache:
                self.ck[:b, pos:pos + s] = k
                self.cv[:b, pos:pos + s] = v
                k, v = self.ck[:b,:pos + s], self.cv[:b,:pos + s]
            k, v = repeat_kv(k, 2), repeat_kv(v, 2)
            q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
            sc = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(4)
            if s > 1:
                mask = torch.full((s, s), float("-inf"), device=x.device)
                mask = torch.triu(mask, diagonal=1)
                mask = torch.hstack([torch.zeros((s, pos)), mask]).type_as(x)
                sc = sc + mask
            return self.o(torch.matmul(F.softmax(sc.float(), dim=-1).type_as(q), v).transpose(1, 2).contiguous().view(b, s, -1))

    class Blk(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.n1, self.n2, self.w1, self.w2, self.w3 = (
                Att(),
                RMSNorm(8),
                RMSNorm(8),
                nn.Linear(8, 12, bias=False),
                nn.Linear(12, 8, bias=False),
                nn.Linear(8, 12, bias=False),
            )

        def forward(self, x, *a):
            h = x + self.a(self.n1(x), *a)
            return h + self.w2(F.silu(self.w1(self.n2(h))) * self.w3(self.n2(h)))

    m = same_start(lib, Blk())
    m.n1.weight.data.fill_(1)
    x = torch.tensor(numbers(2, 5, 8))
    trainable = [n for n, p in m.named_parameters() if p.requires_grad]
    opt = torch.optim.AdamW(filter(lambda p: p.requires_grad, m.parameters()), lr=1e-2)
    out = [trainable]
    for i in range(2):
        loss = m(x).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        out.append(loss.item())
    m.train(False)
    with torch.inference_mode():
        full = m(x)
        a = m(x[:, :3], 0, True)
        b = m(x[:, 3:4], 3, True)
        c = m(x[:, 4:], 4, True)
        out += [full, torch.cat([a, b, c], 1), torch.allclose(full, torch.cat([a, b, c], 1), atol=1e-5)]
    sd = {k: v for k, v in m.state_dict().items() if "lora_" in k}
    out += [sorted(sd), sorted(m.state_dict())]
    r = m.load_state_dict(sd, strict=False)
    out += [r.missing_keys[:2]]
    probs = torch.softmax(full[:, -1], -1)
    ps, pi = torch.sort(probs, dim=-1, descending=True)
    cs = torch.cumsum(ps, dim=-1)
    mk = cs - ps > 0.6
    ps[mk] = 0.0
    ps.div_(ps.sum(dim=-1, keepdim=True))
    nt = torch.multinomial(ps, num_samples=1)
    out += [ps, torch.gather(pi, -1, nt).shape == (2, 1)]
    return out


def datasets(lib):
    """Datasets, samplers, collate functions and splits."""
    torch = lib.torch
    D = lib.data

    class Squares(D.Dataset):
        def __init__(s, n):
            s.n = n

        def __len__(s):
            return s.n

        def __getitem__(s, i):
            return {"x": torch.arange(i, i + 2).float(), "y": i * i, "name": f"s{i}", "t": (i, float(i)), "a": np.array([i, i])}

    class Stream(D.IterableDataset):
        def __iter__(s):
            return iter(range(7))

    class Bucket(D.Sampler):
        def __init__(s, lens, bs):
            s.l, s.bs = lens, bs

        def __iter__(s):
            order = sorted(range(len(s.l)), key=lambda i: s.l[i])
            return iter([order[i:i + s.bs] for i in range(0, len(order), s.bs)])

        def __len__(s):
            return -(-len(s.l) // s.bs)

    def collate(b):
        xs = [torch.ones(k) for k in b]
        return lib.nn.utils.rnn.pad_sequence(xs, batch_first=True), torch.tensor([len(q) for q in xs])

    out = []
    ds = Squares(10)
    for b in D.DataLoader(ds, batch_size=4):
        out += [b["x"], b["y"], b["name"], b["t"][0], b["t"][1], b["a"], str(b["t"][1].dtype)]
    out += [
        [b.tolist() for b in D.DataLoader(Stream(), batch_size=3)],
        [(a.shape, l.tolist()) for a, l in D.DataLoader([3, 1, 2, 5, 4], batch_sampler=Bucket([3, 1, 2, 5, 4], 2), collate_fn=collate)],
    ]
    out[-1] = str(out[-1])
    tr, va, te = D.random_split(ds, [0.6, 0.2, 0.2], generator=torch.Generator().manual_seed(0))
    out += [len(tr), len(va), len(te), sorted(list(tr.indices) + list(va.indices) + list(te.indices))]
    tr, va = D.random_split(ds, [7, 3])
    out += [len(D.ConcatDataset([tr, va])), len(D.Subset(ds, [1, 2]))]
    w = D.WeightedRandomSampler([0.1, 0.9, 0.0], 50, replacement=True)
    out += [2 not in list(w), len(w)]
    out.append(sorted(D.RandomSampler(range(5))))
    g = torch.Generator()
    g.manual_seed(3)
    a = [b.tolist() for b in D.DataLoader(torch.arange(6), batch_size=2, shuffle=True, generator=g)]
    g.manual_seed(3)
    out.append(a == [b.tolist() for b in D.DataLoader(torch.arange(6), batch_size=2, shuffle=True, generator=g)])
    out.append(sum(x.sum().item() for (x,) in D.DataLoader(D.TensorDataset(torch.arange(12).float()), batch_size=5)))
    return out


def gp_kmeans_pca(lib):
    """A Gaussian process, k-means and principal components."""
    torch = lib.torch
    X = torch.linspace(-3, 3, 12).unsqueeze(-1)
    Y = torch.sin(X).squeeze()
    ls, var, noise = (torch.tensor(v, requires_grad=True) for v in (0.0, 0.0, -2.0))
    opt = torch.optim.Adam([ls, var, noise], lr=0.1)
    out = []

    def k(a, b):
        return var.exp() * torch.exp(-0.5 * torch.cdist(a / ls.exp(), b / ls.exp()) ** 2)

    for i in range(4):
        K = k(X, X) + noise.exp() * torch.eye(12)
        Lc = torch.linalg.cholesky(K)
        al = torch.cholesky_solve(Y.unsqueeze(-1), Lc)
        nll = 0.5 * Y @ al.squeeze(-1) + Lc.diagonal().log().sum() + 6 * math.log(2 * math.pi)
        opt.zero_grad()
        nll.backward()
        opt.step()
        out += [nll.item(), ls.item()]
    with torch.no_grad():
        ks = k(torch.tensor([[0.5], [1.2]]), X)
        v = torch.linalg.solve_triangular(Lc, ks.T, upper=False)
        out += [ks @ al, (k(torch.tensor([[0.5], [1.2]]), torch.tensor([[0.5], [1.2]])) - v.T @ v).diagonal()]
    D = torch.tensor(numbers(20, 3))
    D[:10] += 4
    c = D[[0, 15]].clone()
    for _ in range(5):
        a = torch.cdist(D, c).argmin(1)
        oh = torch.zeros(2, 20).scatter_(0, a.unsqueeze(0), 1)
        c = oh @ D / oh.sum(1, keepdim=True)
        for j in range(2):
            assert torch.allclose(c[j], D[a == j].mean(0), atol=1e-5)
    out += [a, c]
    Dc = D - D.mean(0)
    U, S, V = torch.svd(Dc)
    proj = Dc @ V[:, :2]
    ev, evec = torch.linalg.eigh(Dc.T @ Dc / 19)
    out += [S, proj.abs(), ev, (S**2 / (S**2).sum()).cumsum(0)]
    w = torch.linalg.lstsq(torch.cat([D, torch.ones(20, 1)], 1), D.sum(1, keepdim=True) + 1).solution
    out.append(w)
    return out


def checkpoints(lib):
    """Training goes on from a checkpoint as if it had not stopped."""
    torch, nn = lib.torch, lib.nn
    m = same_start(lib, nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)))
    opt = torch.optim.Adam(m.parameters(), lr=1e-2)
    sch = torch.optim.lr_scheduler.MultiStepLR(opt, [1, 3], 0.1)
    m(torch.tensor(numbers(5, 3))).pow(2).sum().backward()
    opt.step()
    sch.step()
    out = []
    with tempfile.TemporaryDirectory() as d:
        p = os.path.join(d, "c.pt")
        torch.save(
            {"epoch": 3, "model": m.state_dict(), "opt": opt.state_dict(), "sch": sch.state_dict(), "list": [torch.arange(3), (1, "a")], "best": 1.5},
            p,
        )
        c = torch.load(p, map_location="cpu", weights_only=True)
        m2 = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
        out.append(str(m2.load_state_dict(c["model"])))
        o2 = torch.optim.Adam(m2.parameters(), lr=5.0)
        o2.load_state_dict(c["opt"])
        s2 = torch.optim.lr_scheduler.MultiStepLR(o2, [1, 3], 0.1)
        s2.load_state_dict(c["sch"])
        for mm, oo, ss in ((m, opt, sch), (m2, o2, s2)):
            oo.zero_grad()
            mm(torch.tensor(numbers(5, 3, seed=7))).pow(2).sum().backward()
            oo.step()
            ss.step()
            out += [mm[0].weight, oo.param_groups[0]["lr"], mm[1].num_batches_tracked.item()]
    out += [
        list(m.state_dict().keys()),
        str(m.state_dict()["1.num_batches_tracked"]),
        list(opt.state_dict()["state"][0]),
        sorted(opt.state_dict()["param_groups"][0]),
        repr(opt),
    ]
    return out


PROGRAMS = [pinn, neural_ode, maml, moe, lora_llama, datasets, gp_kmeans_pca, checkpoints]


@pytest.mark.share(2)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_program(program):
    both_agree(program)
