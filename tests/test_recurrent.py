"""Recurrent layers whose sizes fill vectors (one launch for all steps) against PyTorch."""
import numpy as np
import pytest

import clnn

torch = pytest.importorskip("torch")


@pytest.mark.share(2, both=True)
@pytest.mark.parametrize("name, kind", [("LSTM", dict(bidirectional=True)), ("LSTM", dict(num_layers=2, bias=False)), ("GRU", dict(bidirectional=True)),
                                        ("RNN", dict(nonlinearity="relu")), ("RNN", dict(bidirectional=True))])
def test_layer_equals_torch(name, kind):
    T, N, C, H = 4, 7, 5, 32
    theirs = getattr(torch.nn, name)(C, H, **kind)
    ours = getattr(clnn.nn, name)(C, H, **kind)
    ours.load_state_dict({k: clnn.tensor(v.detach().numpy()) for k, v in theirs.state_dict().items()})
    rng = np.random.default_rng(0)
    x = rng.standard_normal((T, N, C)).astype(np.float32)
    g = rng.standard_normal((T, N, H * (2 if kind.get("bidirectional") else 1))).astype(np.float32)
    results = []
    for lib, layer in ((clnn, ours), (torch, theirs)):
        leaf = lib.tensor(x, requires_grad=True)
        y, state = layer(leaf)
        loss = (y * lib.tensor(g)).sum()
        for part in state if isinstance(state, tuple) else (state,):
            loss = loss + (part * part).sum()
        loss.backward()
        results.append([y.detach().numpy(), leaf.grad.numpy()] + [p.grad.numpy() for p in layer.parameters()])
    for got, want in zip(*results):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_weights_put_in_the_place_of_the_parameters():
    """Programs drop or swap weights by the list of them."""
    results = []
    for lib in (clnn, torch):
        lib.manual_seed(0)
        layer, x = lib.nn.GRU(3, 4, 2), lib.ones(2, 1, 3)
        plain = layer(x)[0]
        layer._flat_weights = [w * 0.5 for w in layer._flat_weights]
        halved = layer(x)[0]
        halved.sum().backward()
        layer._flat_weights = list(layer.parameters())
        results.append([t.detach().numpy() for t in (plain, halved, layer.weight_ih_l0.grad, layer(x)[0])])
    for got, want in zip(*results):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
