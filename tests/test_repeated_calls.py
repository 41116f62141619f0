"""Calls of a known kind are lists of launches: later calls have to give what the first one gave for other values, with and without gradients."""
import numpy as np
import pytest
from scenarios import torch

import clnn

_RNG = np.random.default_rng(0)


def _floats(*shape):
    return _RNG.standard_normal(shape).astype(np.float32)


def _numbers(high, *shape):
    return _RNG.integers(0, high, shape)


# name: (function of the library and its operands, makers of the operands)
CALLS = {
    "nansum": (lambda t, x: t.where(x > 1, np.nan, x).nansum(1), lambda: _floats(5, 6)),
    "count_nonzero": (lambda t, x: t.count_nonzero(x > 0, 1), lambda: _floats(5, 6)),
    "sum of bools": (lambda t, x: (x > 0).sum(0), lambda: _floats(5, 6)),
    "sum of bytes": (lambda t, i: i.to(t.uint8).sum(1), lambda: _numbers(200, 5, 6)),
    "any": (lambda t, x: (t.any(x > 1, 1), t.all(x > -2)), lambda: _floats(5, 6)),
    "diff": (lambda t, x: t.diff(x, dim=0), lambda: _floats(5, 6)),
    "trapezoid": (lambda t, y, x: t.trapezoid(y, x), lambda: _floats(5, 6), lambda: _floats(6)),
    "kron": (lambda t, x, y: t.kron(x, y), lambda: _floats(2, 3), lambda: _floats(3, 2)),
    "outer": (lambda t, x: t.outer(x[0], x[1]), lambda: _floats(5, 6)),
    "pairwise_distance": (lambda t, x, y: t.nn.functional.pairwise_distance(x, y), lambda: _floats(5, 6), lambda: _floats(5, 6)),
    "triplet_margin_loss": (lambda t, x, y, z: t.nn.functional.triplet_margin_loss(x, y, z), *[lambda: _floats(5, 6)] * 3),
    "multi_margin_loss": (lambda t, x, i: t.nn.functional.multi_margin_loss(x, i), lambda: _floats(5, 6), lambda: _numbers(6, 5)),
    "glu": (lambda t, x: t.nn.functional.glu(x), lambda: _floats(5, 6)),
    "prelu": (lambda t, x, w: t.nn.functional.prelu(x, w), lambda: _floats(5, 6), lambda: _floats(6)),
    "quantile": (lambda t, x: t.quantile(x, 0.3, 1), lambda: _floats(5, 6)),
    "cov": (lambda t, x: (t.cov(x), t.corrcoef(x)), lambda: _floats(3, 8)),
    "cross": (lambda t, x, y: t.linalg.cross(x, y), lambda: _floats(5, 3), lambda: _floats(5, 3)),
    "matrix_power": (lambda t, x: t.matrix_power(x, 3), lambda: _floats(4, 4)),
    "logsumexp": (lambda t, x: t.logsumexp(x, 1), lambda: _floats(5, 6)),
    "bilinear": (lambda t, x, y, w: t.nn.functional.bilinear(x, y, w), lambda: _floats(5, 3), lambda: _floats(5, 2), lambda: _floats(4, 3, 2)),
    "local_response_norm": (lambda t, x: t.nn.functional.local_response_norm(x, 3), lambda: _floats(2, 5, 4)),
    "pixel_shuffle": (lambda t, x: t.nn.functional.pixel_shuffle(x, 2), lambda: _floats(1, 8, 3, 3)),
    "fold": (lambda t, x: t.nn.functional.fold(x, (4, 4), 2), lambda: _floats(1, 12, 9)),
    "grid_sample": (lambda t, x, g: t.nn.functional.grid_sample(x, g.tanh(), align_corners=False), lambda: _floats(1, 2, 4, 4), lambda: _floats(1, 3, 3, 2)),
    "stacks": (lambda t, x, y: (t.vstack([x, y]), t.hstack([x, y]), t.dstack([x, y])), lambda: _floats(2, 3), lambda: _floats(2, 3)),
    "index": (lambda t, x, i, j: x[i, j], lambda: _floats(5, 6), lambda: _numbers(5, 4), lambda: _numbers(6, 4)),
    "index around": (lambda t, x, i, j: x[i, :, j], lambda: _floats(5, 2, 6), lambda: _numbers(5, 4), lambda: _numbers(6, 4)),
    "index_add": (lambda t, x, i, y: x.index_add(0, i, y), lambda: _floats(5, 6), lambda: _numbers(5, 3), lambda: _floats(3, 6)),
    "scatter_add": (lambda t, x, i, y: x.scatter_add(1, i, y), lambda: _floats(5, 6), lambda: _numbers(6, 5, 4), lambda: _floats(5, 4)),
    "take_along_dim": (lambda t, x, i: t.take_along_dim(x, i, 1), lambda: _floats(5, 6), lambda: _numbers(6, 5, 2)),
    "isin": (lambda t, i, j: t.isin(i, j), lambda: _numbers(9, 5, 6), lambda: _numbers(9, 3)),
    "lcm": (lambda t, i, j: t.lcm(i, j + 1), lambda: _numbers(9, 5), lambda: _numbers(9, 5)),
    "float_power": (lambda t, x: t.float_power(x, 2), lambda: _floats(5, 6)),
    "rot90": (lambda t, x: t.rot90(x), lambda: _floats(5, 6)),
}


def _results(t, function, operands, tracked):
    """Values and gradients."""
    given = [t.tensor(a) for a in operands]
    leaves = [x.requires_grad_() for x in given if tracked and x.is_floating_point()]
    out = function(t, *given)
    out = out if isinstance(out, tuple) else (out,)
    ends = [r for r in out if r.requires_grad]
    grads = t.autograd.grad([(r * r).sum() for r in ends], leaves) if ends else ()
    return [r.detach().numpy() for r in (*out, *grads)]


@pytest.mark.parametrize("tracked", [False, True], ids=["plain", "gradients"])
@pytest.mark.parametrize("name", CALLS)
def test_later_calls_give_what_they_should(name, tracked):
    function, *makers = CALLS[name]
    for _ in range(5):
        operands = [make() for make in makers]
        for ours, theirs in zip(*[_results(t, function, operands, tracked) for t in (clnn, torch)], strict=True):
            assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


def test_operands_of_any_two_shapes():
    """Broadcasting is remembered by shapes and strides; what is pending is told from what is computed."""
    base = _floats(4, 3, 5)
    views = [lambda x: x, lambda x: x[0], lambda x: x[:, :1], lambda x: x[..., ::2][..., :1], lambda x: x.transpose(0, 1)[:, :1].transpose(0, 1),
             lambda x: x * 2, lambda x: (x + 1)[0], lambda x: x[0, 0], lambda x: x[:1, 0, 0], lambda x: x[1, 2, 3], lambda x: x[2:3].sum(0)]
    for _ in range(2):
        for first in views:
            for second in views:
                (a, s), (b, r) = [((u := first(x) - second(x)).numpy(), (u.stride() if u.is_contiguous() else None)) for x in (clnn.tensor(base), torch.tensor(base))]
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
                assert s == r


def test_copies_of_small_numbers_move_bits():
    """A half's NaN keeps its payload, as nothing is computed."""
    bits = clnn.arange(-32768, 32768, dtype=clnn.int16).reshape(256, 256)
    for dtype in (clnn.float16, clnn.bfloat16):
        assert (bits.view(dtype).t().contiguous().view(clnn.int16) == bits.t()).all()
        assert (bits.view(dtype)[:, 1::2].clone().view(clnn.int16) == bits[:, 1::2]).all()
    flags = bits > 0
    assert (flags.t().contiguous() == flags.t()).all() and flags.t().contiguous().view(clnn.uint8).max() == 1
