"""16-bit training in two ways: autocast to float16 with a gradient scaler, and a model that is bfloat16 throughout.

    python examples/mixed_precision.py
"""
import clnn as torch
from clnn import nn

STEPS = 60
DATA = torch.Generator().manual_seed(1)
X = torch.randn(256, 8, generator=DATA)
Y = (X[:, :1] * X[:, 1:2]).tanh()


def make(dtype=torch.float32):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1)).to(dtype)
    return net, torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)


def with_scaler():
    """Small float16 gradients would vanish, so the loss is scaled up and the gradients down again."""
    net, optimizer = make()
    scaler = torch.amp.GradScaler("gpu")
    for _ in range(STEPS):
        optimizer.zero_grad()
        with torch.autocast("gpu", dtype=torch.float16):
            output = net(X)
            loss = nn.functional.mse_loss(output, Y)
        assert output.dtype is torch.float16 and loss.dtype is torch.float32
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return loss.item()


def all_in_bfloat16():
    """Half the memory, and the range of float32, so no scaler; the steps are rounded to 8 bits of mantissa, too."""
    net, optimizer = make(torch.bfloat16)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(X.bfloat16()).float(), Y)
        loss.backward()
        optimizer.step()
    return loss.item()


for way in (with_scaler, all_in_bfloat16):
    loss = way()
    print(f"{way.__name__}: loss {loss:.4f}")
    assert loss < 0.5 * Y.square().mean().item()
