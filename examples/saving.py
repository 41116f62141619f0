"""Saving and loading: the state of a model and of its training, in PyTorch's file format and as safetensors.

    python examples/saving.py [--folder DIR]
"""
import argparse
import tempfile
from pathlib import Path

import clnn as torch
from clnn import nn


def make():
    net = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
    return net, torch.optim.AdamW(net.parameters(), lr=0.05)


def train(net, optimizer, steps, seed):
    torch.manual_seed(seed)
    for _ in range(steps):
        x = torch.randn(16, 3)
        optimizer.zero_grad()
        (net(x) - x.sum(1, keepdim=True)).square().mean().backward()
        optimizer.step()


def main(folder):
    file = Path(folder) / "training.pt"
    net, optimizer = make()
    train(net, optimizer, 20, seed=0)
    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 1}, file)    # torch.load reads it, too
    train(net, optimizer, 5, seed=1)

    # Go on from the file in a new program: the same steps lead to the same numbers.
    resumed, again = make()
    state = torch.load(file)
    print(resumed.load_state_dict(state["net"]), "epoch", state["epoch"])
    again.load_state_dict(state["optimizer"])
    train(resumed, again, 5, seed=1)
    assert all(torch.equal(a, b) for a, b in zip(net.state_dict().values(), resumed.state_dict().values()))

    # A model with another head takes what fits; the report names the rest.
    other = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU())
    print(other.load_state_dict(state["net"], strict=False))
    try:
        other.load_state_dict(state["net"])
    except RuntimeError as error:
        print(error)

    # Made without memory, then filled from a safetensors file.
    torch.serialization.save_safetensors(net.state_dict(), Path(folder) / "net.safetensors", metadata={"made by": "saving.py"})
    with torch.device("meta"):
        empty, _ = make()
    empty.load_state_dict(torch.serialization.load_safetensors(Path(folder) / "net.safetensors"), assign=True)
    x = torch.randn(4, 3)
    assert torch.equal(empty.eval()(x), net.eval()(x))
    return file.stat().st_size


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder")
    folder = parser.parse_args().folder
    with tempfile.TemporaryDirectory() as temporary:
        print("bytes:", main(folder or temporary))
