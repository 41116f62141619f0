"""Tools for weights: constraints by parametrisation, pruning, clipping, and sequences of different lengths.

    python examples/weight_tools.py
"""
import clnn as torch
from clnn import nn
from clnn.nn.utils import clip_grad_norm_, parameters_to_vector, parametrize, prune, rnn

torch.manual_seed(0)


class Symmetric(nn.Module):
    """Any square matrix -> a symmetric one."""

    def forward(self, matrix):
        return matrix.triu() + matrix.triu(1).T


# What is trained is the unconstrained matrix; what the layer uses is always symmetric.
layer = parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
layer(torch.randn(8, 3)).sum().backward()
print("norm before clipping:", clip_grad_norm_(layer.parameters(), max_norm=1.0).item())
print("gradients as one vector:", parameters_to_vector([p.grad for p in layer.parameters()]).shape)
optimizer.step()
assert torch.equal(layer.weight, layer.weight.T)
print(layer)

# Pruning masks the smallest weights, in several rounds, and makes it permanent at the end.
net = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
targets = [(module, "weight") for module in net if isinstance(module, nn.Linear)]
for _ in range(2):
    prune.global_unstructured(targets, pruning_method=prune.L1Unstructured, amount=0.5)
zeros = sum((module.weight == 0).sum().item() for module, _ in targets)
for module, name in targets:
    prune.remove(module, name)
print(f"{zeros} of {sum(module.weight.numel() for module, _ in targets)} weights are zero")
assert zeros == 240 and sorted(net.state_dict()) == ["0.bias", "0.weight", "2.bias", "2.weight"]

# Sequences of different lengths in one batch, without computing on the padding.
words = [torch.randn(n, 5) for n in (2, 4, 3)]
packed = rnn.pack_sequence(words, enforce_sorted=False)
output, (last, _) = nn.LSTM(5, 6)(packed)
padded, lengths = rnn.pad_packed_sequence(output, batch_first=True)
assert padded.shape == (3, 4, 6) and lengths.tolist() == [2, 4, 3] and torch.equal(padded[0, 1], last[0, 0])
