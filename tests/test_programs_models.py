"""Programs of control, sequences, graphs and search, from the same seed: what they draw, learn and choose must be equal under both libraries."""
import copy

import pytest
from test_programs import both_agree

pytest.importorskip("torch")


def soft_actor_critic(lib):
    """Squashed Gaussian actions, two critics with slowly following copies, a learned temperature."""
    torch, nn, F = lib.torch, lib.nn, lib.F
    torch.manual_seed(0)

    def mlp(inputs, outputs):
        return nn.Sequential(nn.Linear(inputs, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, outputs))
    policy, critics = mlp(4, 4), nn.ModuleList([mlp(6, 1), mlp(6, 1)])
    targets, log_alpha = copy.deepcopy(critics), torch.zeros(1, requires_grad=True)
    optimizers = [lib.optim.Adam(p, lr=3e-3) for p in (critics.parameters(), policy.parameters(), [log_alpha])]
    state, action, reward, after = torch.randn(8, 4), torch.rand(8, 2) * 2 - 1, torch.randn(8, 1), torch.randn(8, 4)

    def act(s):
        mean, log_std = policy(s).chunk(2, -1)
        normal = torch.distributions.Normal(mean, log_std.clamp(-5, 2).exp())
        u = normal.rsample()
        a = torch.tanh(u)
        return a, (normal.log_prob(u) - torch.log(1 - a.pow(2) + 1e-6)).sum(-1, keepdim=True)

    def least(nets, s, a):
        return torch.min(*[net(torch.cat([s, a], -1)) for net in nets])
    out = []
    for _ in range(3):
        with torch.no_grad():
            a, log_p = act(after)
            goal = reward + 0.99 * (least(targets, after, a) - log_alpha.exp() * log_p)
        pair = torch.cat([state, action], -1)
        losses = [sum(F.mse_loss(net(pair), goal) for net in critics)]
        a, log_p = act(state)
        losses.append((log_alpha.exp().detach() * log_p - least(critics, state, a)).mean())
        losses.append(-(log_alpha * (log_p.detach() - 2)).mean())
        for loss, opt in zip(losses, optimizers):
            opt.zero_grad()
            loss.backward(retain_graph=True)
        for opt in optimizers:
            opt.step()
        with torch.no_grad():
            for p, slow in zip(critics.parameters(), targets.parameters()):
                slow.mul_(0.995).add_(p, alpha=0.005)
        out += [loss.item() for loss in losses]
    return [*out, targets.state_dict()]


def selective_scan(lib):
    """A state-space layer whose steps depend on the input, one time step after another."""
    torch, nn, F = lib.torch, lib.nn, lib.F
    torch.manual_seed(0)

    class Scan(nn.Module):
        def __init__(self, width=6, states=3):
            super().__init__()
            self.inner, self.conv = nn.Linear(width, 2 * width), nn.Conv1d(width, width, 4, groups=width, padding=3)
            self.mix, self.out = nn.Linear(width, 2 * states + 1), nn.Linear(width, width)
            self.A, self.D, self.states = nn.Parameter(torch.log(torch.arange(1, states + 1).float()).repeat(width, 1)), nn.Parameter(torch.ones(width)), states

        def forward(self, x):
            batch, length, width = x.shape
            u, gate = self.inner(x).chunk(2, -1)
            u = F.silu(self.conv(u.transpose(1, 2))[..., :length].transpose(1, 2))
            step, B, C = self.mix(u).split([1, self.states, self.states], -1)
            step = F.softplus(step)
            decay, drive = torch.exp(step[..., None] * -self.A.exp()), step[..., None] * B[:, :, None] * u[..., None]
            h, seen = x.new_zeros(batch, width, self.states), []
            for t in range(length):
                h = decay[:, t] * h + drive[:, t]
                seen.append((h * C[:, t, None]).sum(-1))
            return self.out((torch.stack(seen, 1) + u * self.D) * F.silu(gate))
    net = Scan()
    opt = lib.optim.AdamW(net.parameters(), lr=1e-2)
    x, out = torch.randn(3, 9, 6), []
    for _ in range(3):
        opt.zero_grad()
        loss = F.mse_loss(net(x), x.roll(1, 1))
        loss.backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        out += [loss.item(), norm]
    return [*out, net(x)]


def graph_attention(lib):
    """Softmax over the edges that end in one node, by the largest, the sum and the weighted sum of each."""
    torch, nn, F = lib.torch, lib.nn, lib.F
    torch.manual_seed(0)
    nodes, edges = 20, 70
    source, target = torch.randint(nodes, (edges,)), torch.randint(nodes, (edges,))
    x, y, w, a = torch.randn(nodes, 5), torch.randint(3, (nodes,)), nn.Linear(5, 6, bias=False), nn.Parameter(torch.randn(2, 2, 3))
    opt, out = lib.optim.Adam([*w.parameters(), a], lr=0.05), []
    for _ in range(3):
        h = w(x).view(nodes, 2, 3)
        score = F.leaky_relu((h * a[0]).sum(-1)[source] + (h * a[1]).sum(-1)[target], 0.2)
        most = torch.full((nodes, 2), -1e9).scatter_reduce(0, target[:, None].expand(-1, 2), score.detach(), "amax")
        weight = (score - most[target]).exp()
        total = torch.zeros(nodes, 2).index_add(0, target, weight)
        mixed = torch.zeros_like(h).index_add(0, target, h[source] * (weight / total[target])[..., None])
        loss = F.cross_entropy(mixed.mean(1), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        out += [loss.item(), a.grad.clone()]
    return out


def beam_search(lib):
    """Decoding with kept keys and values, whose rows move with the beams."""
    torch, nn, F = lib.torch, lib.nn, lib.F
    torch.manual_seed(0)
    width, heads, words, batch, beams = 16, 2, 11, 2, 3
    table, qkv, back, head = nn.Embedding(words, width), nn.Linear(width, 3 * width), nn.Linear(width, width), nn.Linear(width, words)
    with torch.no_grad():
        token, score = torch.zeros(batch * beams, dtype=torch.long), torch.tensor([0.0, -1e9, -1e9]).repeat(batch)
        keys = values = torch.empty(batch * beams, heads, 0, width // heads)
        text = token[:, None]
        for _ in range(6):
            q, k, v = (z.view(batch * beams, 1, heads, -1).transpose(1, 2) for z in qkv(table(token)).chunk(3, -1))
            keys, values = torch.cat([keys, k], 2), torch.cat([values, v], 2)
            mixed = F.scaled_dot_product_attention(q, keys, values).transpose(1, 2).reshape(batch * beams, width)
            every = (score[:, None] + F.log_softmax(head(back(mixed) + table(token)), -1)).view(batch, -1)
            score, place = every.topk(beams, -1)
            parent, token, score = (place // words + torch.arange(batch)[:, None] * beams).view(-1), (place % words).view(-1), score.view(-1)
            text, keys, values = torch.cat([text[parent], token[:, None]], 1), keys[parent], values[parent]
    return [text, score, keys]


def suppression(lib):
    """Boxes that overlap a better one are left out: shapes that hang on values, in every step others."""
    torch = lib.torch
    torch.manual_seed(0)
    corner = torch.rand(40, 2)
    boxes, score, kept = torch.cat([corner, corner + 0.1 + torch.rand(40, 2) * 0.3], 1), torch.rand(40), []
    area = (boxes[:, 2:] - boxes[:, :2]).prod(1)
    order = score.argsort(descending=True)
    while order.numel():
        best, rest = order[0], order[1:]
        kept.append(best.item())
        low, high = torch.max(boxes[best, :2], boxes[rest, :2]), torch.min(boxes[best, 2:], boxes[rest, 2:])
        shared = (high - low).clamp(min=0).prod(1)
        order = rest[shared / (area[best] + area[rest] - shared) <= 0.3]
    return kept


def volume_rendering(lib):
    """Rays through a field of density and colour: cumulative products of what is let through."""
    torch, nn, F = lib.torch, lib.nn, lib.F
    torch.manual_seed(0)
    field = nn.Sequential(nn.Linear(15, 16), nn.ReLU(), nn.Linear(16, 4))
    start, way, colour, waves = torch.randn(6, 3) * 0.1, F.normalize(torch.randn(6, 3), dim=-1), torch.rand(6, 3), 2.0 ** torch.arange(2)
    opt, out = lib.optim.RMSprop(field.parameters(), lr=1e-2), []
    for _ in range(3):
        depth = torch.linspace(2, 6, 9)[None] + torch.rand(6, 9) * 0.1
        at = start[:, None] + depth[..., None] * way[:, None]
        angle = (at[..., None] * waves).flatten(-2)
        seen = field(torch.cat([at, angle.sin(), angle.cos()], -1))
        length = torch.cat([depth.diff(), torch.full((6, 1), 1e10)], 1)
        opaque = 1 - torch.exp(-F.softplus(seen[..., 3]) * length)
        weight = opaque * torch.cumprod(torch.cat([torch.ones(6, 1), 1 - opaque + 1e-10], 1), 1)[:, :-1]
        loss = ((weight[..., None] * seen[..., :3].sigmoid()).sum(1) - colour).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        out.append(loss.item())
    return [*out, weight]


PROGRAMS = [soft_actor_critic, selective_scan, graph_attention, beam_search, suppression, volume_rendering]


@pytest.mark.share(2)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_program(program):
    both_agree(program)
