"""Where does the time of a training step go? Operators, kernels and modules, and how far each kernel is from what the device can do.

    python examples/profile_training.py                   # the best device
    python examples/profile_training.py --device cpu --trace trace.json

Prints three tables and writes a trace that chrome://tracing and ui.perfetto.dev show: host calls and device kernels on one clock.
"""
import argparse

import clnn as torch
from clnn import nn
from clnn.profiler import profile, record_function, schedule


class Net(nn.Module):
    """Two convolutions and a linear layer: (N, 3, 32, 32) -> (N, 10)."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.GELU())
        self.head = nn.Linear(16 * 32 * 32, 10)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default=None, help="gpu, cpu, or part of a device's name (default: the best one)")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--trace", default=None, help="file for the Chrome trace")
    args = parser.parse_args(argv)
    if args.device:
        torch.set_default_device(args.device)
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.AdamW(net.parameters())
    images, labels = torch.randn(args.batch, 3, 32, 32), torch.randint(0, 10, (args.batch,))

    # The first steps compile kernels: they are left out or watched and forgotten.
    with profile(schedule=schedule(wait=1, warmup=1, active=2), record_shapes=True, profile_memory=True) as prof:
        for _ in range(4):
            with record_function("forward"):
                loss = nn.functional.cross_entropy(net(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss.item()
            prof.step()

    print(prof.key_averages().table(sort_by="self_device_time_total", row_limit=10))
    print(prof.kernels().table(row_limit=10))
    print(prof.modules().table())
    if args.trace:
        prof.export_chrome_trace(args.trace)
    return prof


if __name__ == "__main__":
    main()
