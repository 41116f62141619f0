"""Less memory for more time: a deep network whose blocks are computed again in backward instead of kept.

    python examples/checkpointing.py
"""
import clnn as torch
from clnn import nn
from clnn.utils.checkpoint import checkpoint

WIDTH, BLOCKS, BATCH = 128, 8, 1024


class Deep(nn.Module):
    """Blocks of linear layers; with ``again`` they keep only their inputs."""

    def __init__(self, again):
        super().__init__()
        self.again = again
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Sigmoid(), nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Dropout(0.1)) for _ in range(BLOCKS))

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.again else block(x)
        return x


def step(again):
    """(bytes kept between forward and backward, gradient of the first layer)."""
    torch.manual_seed(0)                                # equal parameters, equal dropout
    net, x = Deep(again), torch.randn(BATCH, WIDTH)
    torch.synchronize()
    before = torch.memory_allocated()
    loss = net(x).square().mean()
    loss.item()
    kept = torch.memory_allocated() - before
    loss.backward()
    return kept, net.blocks[0][0].weight.grad


kept, expected = step(again=False)
kept_less, gradient = step(again=True)
print(f"kept for backward: {kept / 2**20:.1f} MiB, with checkpoints {kept_less / 2**20:.1f} MiB")
assert kept_less < 0.5 * kept
assert torch.equal(gradient, expected), "the second computation draws the same random numbers"
