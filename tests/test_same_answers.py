"""Short expressions of corners that programs reach, evaluated in PyTorch and in clnn: both give the same, or raise the same kind of exception."""
import warnings

import pytest

import clnn

other = pytest.importorskip("torch")

# A line is an expression; ``a; b`` runs a first. T is tensor, S an identity matrix in coordinates.
LINES = r"""
torch._foreach_add([T([1.]), T([2.])], 1), torch._foreach_norm([T([3., 4.])]), torch._foreach_clone([T([1.])])
torch._foreach_sqrt([])
torch._foreach_add([T([1.])], [1., 2.])
torch.arange(np.float32(2)), torch.arange(np.float64(2)), torch.arange(np.int16(2))
torch.addmm(2, torch.ones(2, 2), 3, torch.ones(2, 2), torch.ones(2, 2)), torch.addmm(2, torch.ones(2, 2), torch.ones(2, 2), torch.ones(2, 2))
torch.ones(2, 2).addmm_(2, torch.ones(2, 2), torch.ones(2, 2)), torch.ones(2, 2).addr_(2, 3, torch.ones(2), torch.ones(2))
torch.add(torch.ones(2), 3, 4), torch.ones(2).add(1, 2), torch.addcmul(torch.ones(2), 3, torch.ones(2), torch.ones(2))
torch.add(3, torch.ones(2), torch.ones(2))
torch.sspaddmm(S, S, torch.ones(2, 2), beta=2, alpha=3), torch.sspaddmm(2, S, 3, S, torch.ones(2, 2)), S.smm(torch.ones(2, 2)), torch.saddmm(S, S, torch.ones(2, 2))
torch.smm(torch.eye(2), torch.ones(2, 2))
torch.sparse_coo_tensor([[0]], [1.]).indices(), S.float_power(2), torch.zeros(2, 2, layout=torch.sparse_csr), torch.empty(2, layout=torch.sparse_coo)
S.to_sparse_csr().stride()
torch.testing.assert_close(S, S)
torch.testing.assert_close(S, torch.eye(2))
torch.testing.assert_close(S, torch.eye(2), check_layout=False)
torch.testing.assert_close(S, 2 * S)
torch.testing.assert_close(S.to_sparse_csr(), torch.eye(2).flip(0).to_sparse_csr())
""".strip().splitlines()


def shown(value):
    """What a program can see of a value, as text."""
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}[{', '.join(map(shown, value))}]"
    if hasattr(value, "is_sparse"):
        strides = value.stride() if "strided" in str(value.layout) and value.numel() else None
        return f"{value!r} {tuple(value.shape)} {strides} {value.dtype}"
    return repr(value)


def outcome(line, lib):
    import numpy as np
    names = dict(torch=lib, np=np, T=lib.tensor, S=lib.eye(2).to_sparse(), F=lib.nn.functional, nan=float("nan"), inf=float("inf"))
    *before, last = line.split("; ")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec("\n".join(before), names)
            return shown(eval(last, names)).replace("clnn.", "torch.")
        except Exception as exc:
            return next(c.__name__ for c in type(exc).__mro__ if c.__module__ == "builtins")


@pytest.mark.parametrize("line", LINES)
def test_same(line):
    assert outcome(line, clnn) == outcome(line, other)
