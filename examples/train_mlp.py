"""The smallest training loop: a two-layer network learns which of three spiral arms a point lies on.

    python examples/train_mlp.py [--device cpu]
"""
import argparse
import math

import clnn as torch
from clnn import nn


def spirals(count, device):
    """(points (3 * count, 2), arm of each point)."""
    radius = torch.linspace(0.1, 1, count, device=device)
    arms = [radius * 3.5 + 2 * math.pi / 3 * arm for arm in range(3)]
    points = torch.cat([torch.stack([radius * a.sin(), radius * a.cos()], 1) for a in arms])
    return points + 0.02 * torch.randn(points.shape, device=device), torch.arange(3, device=device).repeat_interleave(count)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default=None)
    parser.add_argument("--steps", type=int, default=400)
    args = parser.parse_args(argv)
    torch.manual_seed(0)
    device = torch.device(args.device) if args.device else torch.get_default_device()
    points, arms = spirals(100, device)
    net = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 3)).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
    for step in range(args.steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(points), arms)
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    accuracy = (net(points).argmax(1) == arms).float().mean().item()
    print(f"accuracy {100 * accuracy:.1f} % on {device}")
    return accuracy


if __name__ == "__main__":
    raise SystemExit(0 if main() > 0.95 else "the network did not learn the spirals")
