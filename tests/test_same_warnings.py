"""What PyTorch warns of, once or each time: clnn says the same, and points at the program's line."""
import warnings

import pytest

import clnn

other = pytest.importorskip("torch")

CALLS = {
    "linear algebra that goes": lambda t, e: (t.triangular_solve(e[:, :1], e), t.qr(e), t.cholesky(e), t.lu(e), t.lu_solve(e[:, :1], *t.linalg.lu_factor(e))),
    "linear algebra that went": lambda t, e: [_raises(f, e) for f in (t.eig, t.symeig, e.solve, e.eig, t.matrix_rank)],
    "a copy of a tensor": lambda t, e: t.tensor(e),
    "volatile": lambda t, e: t.autograd.Variable(e, volatile=True),
    "gumbel": lambda t, e: t.nn.functional.gumbel_softmax(e, eps=1),
    "the default type": lambda t, e: t.set_default_tensor_type(t.FloatTensor),
    "one observation": lambda t, e: t.cov(t.ones(1)),
    "attention": lambda t, e: t.backends.cuda.sdp_kernel(enable_flash=False).__enter__(),
    "checkpoints": lambda t, e: (t.utils.checkpoint.checkpoint(t.sin, e), t.utils.checkpoint.checkpoint_sequential(t.nn.Sequential(t.nn.ReLU()), 1, e)),
    "norms of gradients": lambda t, e: t.nn.utils.clip_grad_norm([e], 1.0),
    "grids of one point": lambda t, e: t.nn.functional.affine_grid(t.ones(1, 2, 3), (1, 1, 1, 2), align_corners=True),
    "hooks without inputs": lambda t, e: _hooked(t)(e).sum().backward(),
}


def _raises(call, e):
    with pytest.raises(RuntimeError, match="This function was deprecated since version 1.9 and is now removed."):
        call(e)


def _hooked(t):
    layer = t.nn.Linear(3, 1)
    layer.register_full_backward_hook(lambda module, before, after: None)
    return layer


def _said(t, call):
    t.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            call(t, t.eye(3))
    finally:
        t.set_warn_always(False)
    return [(w.category, str(w.message).split(" (Triggered")[0]) for w in found], {w.filename for w in found}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_same(call):
    got, where = _said(clnn, call)
    assert got == _said(other, call)[0] and where <= {__file__}


def test_resizing_a_copy():
    for t in (clnn, other):
        with pytest.warns(UserWarning, match="non-inplace resize"), pytest.raises(RuntimeError, match="requested resize to 3 .3 elements in total.*size of 2 "):
            t.ones(2).resize(3)
