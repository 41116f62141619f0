"""The layers of a model at a glance: output shapes, parameters, multiply-adds and memory.

    python examples/model_summary.py
"""
import clnn as torch
from clnn import nn

model = nn.Sequential(
    nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
    nn.Sequential(nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
    nn.Flatten(),
    nn.Linear(16 * 7 * 7, 10))

report = torch.summary(model, input_size=(32, 1, 28, 28))
print(report)
assert report.total_params == sum(p.numel() for p in model.parameters())

# Only the outer level, with other columns.
print(torch.summary(model, input_size=(1, 28, 28), batch_dim=0, depth=1, col_names=("input_size", "output_size", "mult_adds", "trainable")))
